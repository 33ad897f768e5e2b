//! What a slot's bytes mean.
//!
//! Layout: `docs/file-format.md`, "Row". Plain records and records compressed with the page's own dictionary version have no prefix; everything rarer starts with a tag.
//!
//! Invariants:
//! - a stored row takes at least [`STORED_BYTES_MIN`] bytes, so a forward pointer always fits where a row has been;
//! - what is padded to that says in its tag how many bytes it has, so a body read back is the body that was built.

use super::column_part::ColumnPart;
use super::page::{StoredKind, StoredRow};
use super::ranges::SlotRange;
use crate::FormatError;
use crate::wire::Reader;
use pagefold_types::{RID_BYTES, Rid};

/// No stored row is shorter: a forward pointer takes as much.
pub const STORED_BYTES_MIN: usize = 1 + RID_BYTES;

/// Bytes that a row away from home takes more than its body: tag, home RID, dictionary version.
pub const AWAY_OVERHEAD: usize = 1 + RID_BYTES + 2;

const TAG_FORWARD: u8 = 1;
const TAG_SHORT: u8 = 2;
const TAG_OTHER_VERSION: u8 = 3;
const TAG_AWAY: u8 = 4;
/// With 0 to 7 bytes in the page's form: 16 + their number. What needs no padding has no tag, or [`TAG_OTHER_VERSION`].
const TAG_PADDED: u8 = 16;
const TAG_PADDED_LAST: u8 = TAG_PADDED + STORED_BYTES_MIN as u8 - 1;
/// With 0 to 4 bytes in another form: 24 + their number.
const TAG_PADDED_OTHER: u8 = 24;
const TAG_PADDED_OTHER_LAST: u8 = TAG_PADDED_OTHER + (STORED_BYTES_MIN - 1 - OTHER_OVERHEAD) as u8;
const _: () = assert!(TAG_PADDED_LAST < TAG_PADDED_OTHER);

/// Bytes that a row in another form than its page's takes more than its body: tag and form.
pub const OTHER_OVERHEAD: usize = 3;

/// A record as it lies on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// The record itself.
    Plain(&'a [u8]),
    /// In another form.
    Compressed {
        /// The form: see [`forms`](super::forms).
        version: u16,
        /// The bytes.
        codes: &'a [u8],
    },
    /// A row of the column part of its page.
    Column {
        /// The part.
        part: ColumnPart<'a>,
        /// Its row.
        row: u16,
    },
}

impl<'a> Body<'a> {
    /// The form and the bytes of a row that lies by itself.
    ///
    /// # Panics
    /// For a row of a column part.
    #[must_use]
    pub fn parts(self) -> (u16, &'a [u8]) {
        match self {
            Body::Plain(record) => (0, record),
            Body::Compressed { version, codes } => (version, codes),
            Body::Column { .. } => unreachable!("a row of a column part has no bytes of its own"),
        }
    }

    /// The layout of its record.
    #[inline]
    #[must_use]
    pub fn layout(self) -> u8 {
        match self {
            Body::Plain(_) => 0,
            Body::Compressed { version, .. } => super::forms::layout_of(version),
            Body::Column { part, .. } => part.layout(),
        }
    }

    /// The dictionary version that is needed to read it; `None` when it needs none.
    #[must_use]
    pub fn dictionary(self) -> Option<u16> {
        match self {
            Body::Plain(_) => None,
            Body::Compressed { version, .. } => super::forms::dictionary_of(version),
            Body::Column { part, .. } => Some(part.dictionary()).filter(|version| *version != 0),
        }
    }
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored<'a> {
    /// A row in its home slot.
    Home(Body<'a>),
    /// A row that has moved here; its RID is that of its home.
    Away {
        /// Its home.
        home: Rid,
        /// The row.
        body: Body<'a>,
    },
    /// The home slot of a row that has moved.
    Forward(Rid),
    /// A row that the page hosts for another one, with others of that page.
    Hosted {
        /// Its home.
        home: Rid,
        /// The row.
        body: Body<'a>,
    },
    /// A slot that has hosted a row which has moved on by itself.
    HostedForward {
        /// Its home.
        home: Rid,
        /// Where it lies.
        target: Rid,
    },
    /// A slot whose row, if it has one, another page hosts.
    Forwarded(Rid),
}

impl<'a> Stored<'a> {
    /// Reads a slot's bytes; `page_version` is the dictionary version in the page header.
    ///
    /// # Errors
    /// When the tag or a length is wrong.
    #[inline]
    pub fn parse(row: StoredRow<'a>, page_version: u16) -> Result<Stored<'a>, FormatError> {
        let stored = match row.kind {
            StoredKind::Raw => Stored::Home(Body::Plain(row.bytes)),
            StoredKind::Compressed => Stored::Home(Body::Compressed { version: page_version, codes: row.bytes }),
            StoredKind::Special => Stored::parse_special(row.bytes, page_version)?,
            StoredKind::Column => Stored::Home(Body::Column { part: ColumnPart::new(row.bytes), row: row.area_row }),
            StoredKind::Forwarded => {
                let range = row.bytes.try_into().map_err(|_| FormatError::new("a range of another length"))?;
                return Ok(Stored::Forwarded(SlotRange::from_bytes(range).there(row.slot)));
            }
        };
        match (row.home, stored) {
            (None, stored) => Ok(stored),
            (Some(home), Stored::Home(body)) => Ok(Stored::Hosted { home, body }),
            (Some(home), Stored::Forward(target)) => Ok(Stored::HostedForward { home, target }),
            (Some(home), _) => Err(FormatError::new(format!("slot {} hosts the row {home}, but has something else", row.slot))),
        }
    }

    fn parse_special(bytes: &'a [u8], page_version: u16) -> Result<Stored<'a>, FormatError> {
        let mut reader = Reader::new(bytes);
        let mut rid = [0; RID_BYTES];
        match reader.u8()? {
            TAG_FORWARD => {
                rid.copy_from_slice(reader.take(RID_BYTES)?);
                Ok(Stored::Forward(Rid::from_bytes(rid)))
            }
            TAG_SHORT => {
                let length = reader.u8()?;
                Ok(Stored::Home(Body::Plain(reader.take(usize::from(length))?)))
            }
            tag @ TAG_PADDED..=TAG_PADDED_LAST => {
                let codes = padded(bytes, 1, tag - TAG_PADDED)?;
                Ok(Stored::Home(Body::Compressed { version: page_version, codes }))
            }
            tag @ TAG_PADDED_OTHER..=TAG_PADDED_OTHER_LAST => {
                let version = reader.u16()?;
                Ok(Stored::Home(Body::Compressed { version, codes: padded(bytes, OTHER_OVERHEAD, tag - TAG_PADDED_OTHER)? }))
            }
            TAG_OTHER_VERSION => Ok(Stored::Home(Body::Compressed { version: reader.u16()?, codes: reader.rest() })),
            TAG_AWAY => {
                rid.copy_from_slice(reader.take(RID_BYTES)?);
                let version = reader.u16()?;
                let rest = reader.rest();
                let body = if version == 0 { Body::Plain(rest) } else { Body::Compressed { version, codes: rest } };
                Ok(Stored::Away { home: Rid::from_bytes(rid), body })
            }
            other => Err(FormatError::new(format!("unknown row tag {other}"))),
        }
    }

    /// Appends the slot's bytes for a page of this dictionary version; returns the kind they have.
    ///
    /// # Panics
    /// For a row of a column part, or of a range, which is not put into a slot as it is.
    pub fn build(&self, page_version: u16, out: &mut Vec<u8>) -> StoredKind {
        match *self {
            Stored::Home(Body::Plain(record)) if record.len() >= STORED_BYTES_MIN => {
                out.extend_from_slice(record);
                StoredKind::Raw
            }
            Stored::Home(Body::Plain(record)) => {
                let start = out.len();
                out.push(TAG_SHORT);
                out.push(record.len() as u8);
                out.extend_from_slice(record);
                out.resize((start + STORED_BYTES_MIN).max(out.len()), 0);
                StoredKind::Special
            }
            Stored::Home(Body::Compressed { version, codes }) if version == page_version && codes.len() >= STORED_BYTES_MIN => {
                out.extend_from_slice(codes);
                StoredKind::Compressed
            }
            Stored::Home(Body::Compressed { version, codes }) => {
                let start = out.len();
                if version == page_version {
                    out.push(TAG_PADDED + codes.len() as u8);
                } else {
                    let padded = OTHER_OVERHEAD + codes.len() < STORED_BYTES_MIN;
                    out.push(if padded { TAG_PADDED_OTHER + codes.len() as u8 } else { TAG_OTHER_VERSION });
                    out.extend_from_slice(&version.to_le_bytes());
                }
                out.extend_from_slice(codes);
                out.resize((start + STORED_BYTES_MIN).max(out.len()), 0);
                StoredKind::Special
            }
            Stored::Away { home, body } => {
                out.push(TAG_AWAY);
                out.extend_from_slice(&home.to_bytes());
                let (version, bytes) = body.parts();
                out.extend_from_slice(&version.to_le_bytes());
                out.extend_from_slice(bytes);
                StoredKind::Special
            }
            Stored::Home(Body::Column { .. }) => unreachable!("a row of a column part is brought into another form first"),
            Stored::Hosted { .. } | Stored::HostedForward { .. } | Stored::Forwarded(_) => {
                unreachable!("the page's ranges say so, not the slot's bytes")
            }
            Stored::Forward(rid) => {
                out.push(TAG_FORWARD);
                out.extend_from_slice(&rid.to_bytes());
                StoredKind::Special
            }
        }
    }

    /// Bytes that [`Self::build`] appends.
    #[must_use]
    pub fn len(&self, page_version: u16) -> usize {
        match *self {
            Stored::Home(Body::Plain(record)) if record.len() >= STORED_BYTES_MIN => record.len(),
            Stored::Home(Body::Plain(record)) => STORED_BYTES_MIN.max(2 + record.len()),
            Stored::Home(Body::Compressed { version, codes }) => {
                let overhead = if version == page_version { 0 } else { OTHER_OVERHEAD };
                STORED_BYTES_MIN.max(overhead + codes.len())
            }
            Stored::Away { body, .. } => AWAY_OVERHEAD + body.parts().1.len(),
            Stored::Home(Body::Column { .. }) | Stored::Hosted { .. } | Stored::HostedForward { .. } | Stored::Forwarded(_) => 0,
            Stored::Forward(_) => STORED_BYTES_MIN,
        }
    }
}

/// Of a padded row, the bytes that are not padding.
fn padded(row: &[u8], start: usize, length: u8) -> Result<&[u8], FormatError> {
    match row.split_at_checked(start + usize::from(length)) {
        Some((front, zeros)) if row.len() == STORED_BYTES_MIN && zeros.iter().all(|byte| *byte == 0) => Ok(&front[start..]),
        _ => Err(FormatError::new(format!("a row of {} bytes is not padded as its tag says", row.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_lengths() {
        let long = [7u8; 40];
        for length in 0..long.len() {
            let bytes = &long[..length];
            let bodies = [Body::Plain(bytes), Body::Compressed { version: 3, codes: bytes }, Body::Compressed { version: 4, codes: bytes }];
            for body in bodies {
                for stored in [Stored::Home(body), Stored::Away { home: Rid::new(1, 2, 3), body }, Stored::Forward(Rid::MAX)] {
                    let mut out = Vec::new();
                    let kind = stored.build(3, &mut out);
                    assert_eq!(out.len(), stored.len(3));
                    assert!(out.len() >= STORED_BYTES_MIN);
                    assert_eq!(Stored::parse(StoredRow { kind, bytes: &out, slot: 0, area_row: 0, home: None }, 3).unwrap(), stored);
                }
            }
        }
    }

    #[test]
    fn hostile_bytes() {
        for tag in 0..=255u8 {
            for length in 0..12 {
                let bytes = vec![tag; length];
                let _ = Stored::parse(StoredRow { kind: StoredKind::Special, bytes: &bytes, slot: 0, area_row: 0, home: None }, 1);
            }
        }
    }

    #[test]
    fn padding_is_as_it_was_built() {
        let parse =
            |bytes: &[u8]| Stored::parse(StoredRow { kind: StoredKind::Special, bytes, slot: 0, area_row: 0, home: None }, 3).is_ok();
        for (version, most) in [(3, STORED_BYTES_MIN - 1), (4, STORED_BYTES_MIN - 1 - OTHER_OVERHEAD)] {
            for length in 0..=most {
                let mut row = Vec::new();
                let codes = [0xFF; STORED_BYTES_MIN];
                Stored::Home(Body::Compressed { version, codes: &codes[..length] }).build(3, &mut row);
                assert!(row.len() == STORED_BYTES_MIN && parse(&row));
                assert!(!parse(&row[..row.len() - 1]) && !parse(&[&row[..], &[0]].concat()));
                // Fewer bytes than there are: those left over are no padding.
                if length > 0 {
                    row[0] -= 1;
                    assert!(!parse(&row), "{length} bytes of version {version}");
                }
            }
        }
    }
}

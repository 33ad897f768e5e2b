//! Forms in which records are stored, and bringing records into them.
//!
//! | Form | What the bytes are |
//! |---|---|
//! | 0 | the record itself |
//! | 1 ... | codes of the dictionary of this version |
//! | 0x7FFF | the compact record (method `row`) |
//! | 0x8000 + version | 12-bit codes of the tokens of a dictionary whose own codes are Huffman codes |
//!
//! Invariant: LOAD, transactions and the estimator ask this file what is stored of a record, so they agree to the byte.

use super::stored::{Body, STORED_BYTES_MIN, Stored};
use crate::FormatError;
use pagefold_codec::row::{Coding, DECODE_SLACK, RowDictionary, RowEncoder};
use pagefold_types::CompactLayout;

/// The form of compact records.
pub const COMPACT: u16 = 0x7FFF;

/// Set in the form of 12-bit codes that are not the dictionary's own.
const SHORT: u16 = 0x8000;

/// The largest version of a dictionary.
pub const DICTIONARY_VERSION_MAX: u16 = COMPACT - 1;

/// Bytes that a form takes which is not the page's own: the tag and the form.
const TAG_BYTES: usize = 3;

/// The dictionary version of a form; `None` when it needs none.
#[must_use]
pub fn dictionary_of(form: u16) -> Option<u16> {
    match form & !SHORT {
        0 => None,
        COMPACT => None,
        version => Some(version),
    }
}

fn form_of(version: u16, coding: Coding) -> u16 {
    match coding {
        Coding::Own => version,
        Coding::Short => version | SHORT,
    }
}

/// Brings records into the form of a table.
#[derive(Debug)]
pub enum RecordEncoder {
    /// Compact records.
    Compact(CompactLayout),
    /// Codes of a dictionary.
    Codes {
        /// Its version.
        version: u16,
        /// For it.
        encoder: Box<RowEncoder>,
    },
}

impl RecordEncoder {
    /// For codes of a dictionary.
    #[must_use]
    pub fn codes(version: u16, dictionary: &RowDictionary) -> RecordEncoder {
        RecordEncoder::Codes { version, encoder: Box::new(RowEncoder::new(dictionary)) }
    }

    /// The form that most records get: that of the pages.
    #[must_use]
    pub fn page_form(&self) -> u16 {
        match self {
            RecordEncoder::Compact(_) => COMPACT,
            RecordEncoder::Codes { version, .. } => *version,
        }
    }

    /// Appends what is to be stored of a record to `out`, and returns its form. 0, and nothing appended: the record as it is, because that is not larger, or the other form is shorter than a forward pointer.
    pub fn append(&self, record: &[u8], out: &mut Vec<u8>) -> u16 {
        let start = out.len();
        let encoded = match self {
            RecordEncoder::Compact(layout) => layout.compact(record, out).map(|len| (len, COMPACT)),
            RecordEncoder::Codes { version, encoder } => {
                encoder.encode(record, TAG_BYTES, out).map(|(len, coding)| (len, form_of(*version, coding)))
            }
        };
        taken(encoded, start, out)
    }

    /// As [`append`](Self::append), for a record that differs little from one that is stored so.
    pub fn append_changed(&self, before: &[u8], stored: Body<'_>, record: &[u8], out: &mut Vec<u8>) -> u16 {
        let (RecordEncoder::Codes { version, encoder }, Body::Compressed { version: form, codes }) = (self, stored) else {
            return self.append(record, out);
        };
        if form & !SHORT != *version {
            return self.append(record, out);
        }
        let coding = if form == *version { Coding::Own } else { Coding::Short };
        let start = out.len();
        let encoded = encoder.reencode((before, codes, coding), record, TAG_BYTES, out);
        taken(encoded.map(|(len, coding)| (len, form_of(*version, coding))), start, out)
    }

    /// Bytes that a record takes in its slot on a page of this form, and whether it is brought into another form than its own.
    #[must_use]
    pub fn stored_len(&self, record: &[u8]) -> (usize, bool) {
        let encoded = match self {
            RecordEncoder::Compact(layout) => layout.compact_len(record).map(|len| (len, 0)),
            RecordEncoder::Codes { encoder, .. } => {
                encoder.encoded_len(record, TAG_BYTES).map(|(len, coding)| (len, if coding == Coding::Short { TAG_BYTES } else { 0 }))
            }
        };
        match encoded.filter(|(len, _)| *len >= STORED_BYTES_MIN) {
            Some((len, tag)) => (len + tag, true),
            None => (plain_len(record), false),
        }
    }
}

/// Bytes that a record takes in its slot as it is.
#[must_use]
pub fn plain_len(record: &[u8]) -> usize {
    Stored::Home(Body::Plain(record)).len(0)
}

/// The form, unless what was appended is too short to give way to a forward pointer.
fn taken(encoded: Option<(usize, u16)>, start: usize, out: &mut Vec<u8>) -> u16 {
    match encoded.filter(|(len, _)| *len >= STORED_BYTES_MIN) {
        Some((_, form)) => form,
        None => {
            out.truncate(start);
            0
        }
    }
}

/// The body with this form.
#[must_use]
pub fn body<'a>(form: u16, record: &'a [u8], stored: &'a [u8]) -> Body<'a> {
    if form == 0 { Body::Plain(record) } else { Body::Compressed { version: form, codes: stored } }
}

/// Writes the record that compressed bytes stand for to the front of `out`, which grows as needed; returns its length, at most `cap`. `dictionary` is that of the form's version.
///
/// # Errors
/// When there is no such dictionary, or the bytes are no such form.
#[inline]
pub fn decode(
    form: u16,
    bytes: &[u8],
    dictionary: Option<&RowDictionary>,
    compact: &CompactLayout,
    cap: usize,
    out: &mut Vec<u8>,
) -> Result<usize, FormatError> {
    if form == COMPACT {
        out.clear();
        let length = compact.expand(bytes, out).map_err(|e| FormatError::new(format!("compact record: {e}")))?;
        return if length <= cap { Ok(length) } else { Err(FormatError::new("compact record: longer than a row can be")) };
    }
    let dictionary = dictionary.ok_or_else(|| {
        FormatError::new(format!("a row of dictionary version {}, which does not exist", dictionary_of(form).unwrap_or(0)))
    })?;
    if out.len() < cap + DECODE_SLACK {
        out.resize(cap + DECODE_SLACK, 0);
    }
    let coding = if form & SHORT == 0 { Coding::Own } else { Coding::Short };
    dictionary.decode_into(coding, bytes, out, cap).map_err(|e| FormatError::new(e.to_string()))
}

//! The changes a data page can undergo.
//!
//! Invariants: an op is deterministic; applied to a valid page it leaves a valid page or an error and the page as it was.

use super::column_part;
use super::page::{DATA_HEADER_BYTES, DATA_PAGE_VERSION, DICTIONARY_VERSION, DataPage, LOW_BITS, Place, StoredKind, StoredRow};
use super::place::{self, ColumnImage};
use super::ranges::RANGE_BYTES;
use crate::FormatError;
use crate::page::{self, PageType, is_page_size, put_u16};
use crate::wire::{Reader, is_in_bits, put_bytes, put_splice, put_varint, read_splice};
use pagefold_codec::splice::{Splice, Unit};
use pagefold_types::SLOT_MAX;

/// One change of a data page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataOp<'a> {
    /// An empty page.
    Format {
        /// Its number in the data set.
        page_number: u32,
        /// Dictionary version its compressed rows will use.
        dictionary_version: u16,
    },
    /// A row into a free slot, or the next new one.
    Insert {
        /// The slot.
        slot: u16,
        /// Kind of the bytes.
        kind: StoredKind,
        /// The row.
        bytes: &'a [u8],
    },
    /// Another row into a used slot.
    Replace {
        /// The slot.
        slot: u16,
        /// Kind of the bytes.
        kind: StoredKind,
        /// The row.
        bytes: &'a [u8],
    },
    /// A piece of a row in the place of another.
    Splice {
        /// The slot.
        slot: u16,
        /// The pieces.
        splice: Splice<'a>,
    },
    /// A slot becomes free.
    Delete {
        /// The slot.
        slot: u16,
    },
    /// The row is deleted, but its bytes stay: a ghost, until nobody can need it any more.
    MarkDeleted {
        /// The slot.
        slot: u16,
    },
    /// A ghost becomes a row again.
    Undelete {
        /// The slot.
        slot: u16,
        /// Kind of the row.
        kind: StoredKind,
    },
    /// The slot of a ghost becomes free.
    Purge {
        /// The slot.
        slot: u16,
    },
    /// All rows of the page, in another arrangement.
    Rebuild(ColumnImage<'a>),
    /// A value of the column part changes in place.
    Patch {
        /// Offset in the area.
        at: u16,
        /// The bytes there.
        bytes: &'a [u8],
    },
    /// Other ranges: some go, or their rows come to lie on another page.
    Ranges(&'a [u8]),
}

impl<'a> DataOp<'a> {
    /// The op that turns the row `before` into `after`: what differs when the kind stays, else the whole row. `codes` is room for codes.
    #[must_use]
    pub fn change(slot: u16, before: StoredRow<'_>, kind: StoredKind, after: &'a [u8], codes: &'a mut Vec<u8>) -> DataOp<'a> {
        if before.kind != kind {
            return DataOp::Replace { slot, kind, bytes: after };
        }
        let splice = match kind {
            StoredKind::Compressed => Splice::between_compressed(before.bytes, after, codes),
            StoredKind::Raw | StoredKind::Special | StoredKind::Column | StoredKind::Forwarded => Splice::between(before.bytes, after),
        };
        DataOp::Splice { slot, splice }
    }
}

impl DataOp<'_> {
    /// Applies the change.
    ///
    /// # Errors
    /// When the page cannot take it: not a data page, a slot in the wrong state, or no room. The page is then unchanged.
    pub fn apply(&self, page: &mut [u8]) -> Result<(), FormatError> {
        if !matches!(self, DataOp::Format { .. }) {
            page::expect_type(page, PageType::Data)?;
        } else if !is_page_size(page.len()) {
            return Err(FormatError::new(format!("data page of {} bytes", page.len())));
        }
        match *self {
            DataOp::Format { page_number, dictionary_version } => {
                page.fill(0);
                page::init_header(page, page_number, PageType::Data, DATA_PAGE_VERSION);
                page::set_low_end(page, DATA_HEADER_BYTES as u16);
                put_u16(page, DICTIONARY_VERSION, dictionary_version);
                Ok(())
            }
            DataOp::Insert { slot, kind, bytes } => insert(page, slot, kind, bytes),
            DataOp::Replace { slot, kind, bytes } => replace(page, slot, kind, bytes),
            DataOp::Splice { slot, splice } => splice_row(page, slot, splice),
            DataOp::Delete { slot } => {
                row_here(page, slot)?;
                place::free(page, slot);
                place::add_rows(page, -1);
                Ok(())
            }
            DataOp::MarkDeleted { slot } => {
                let kind = row_here(page, slot)?.kind;
                place::set_ghost(page, slot, true, kind);
                place::add_rows(page, -1);
                Ok(())
            }
            DataOp::Undelete { slot, kind } => {
                ghost_slot(page, slot)?;
                if kind == StoredKind::Column && !DataPage::new(page).has_columns() {
                    return Err(FormatError::new(format!("slot {slot} becomes a row of a column part that there is not")));
                }
                place::set_ghost(page, slot, false, kind);
                place::add_rows(page, 1);
                Ok(())
            }
            DataOp::Purge { slot } => {
                ghost_slot(page, slot)?;
                place::free(page, slot);
                Ok(())
            }
            DataOp::Rebuild(image) => rebuild(page, &image),
            DataOp::Patch { at, bytes } => column_part::patch(page, at, bytes),
            DataOp::Ranges(ranges) => set_ranges(page, ranges),
        }
    }

    /// Appends the op's log form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            DataOp::Format { page_number, dictionary_version } => {
                out.push(0);
                out.extend_from_slice(&page_number.to_le_bytes());
                out.extend_from_slice(&dictionary_version.to_le_bytes());
            }
            DataOp::Insert { slot, kind, bytes } | DataOp::Replace { slot, kind, bytes } => {
                out.push(if matches!(self, DataOp::Insert { .. }) { 1 } else { 2 });
                out.extend_from_slice(&(slot | kind.bits() << 12).to_le_bytes());
                put_bytes(out, bytes);
            }
            DataOp::Splice { slot, splice } => {
                out.push(if is_in_bits(&splice) { 11 } else { 3 });
                put_varint(out, slot.into());
                put_splice(out, splice);
            }
            DataOp::Delete { slot } | DataOp::MarkDeleted { slot } | DataOp::Purge { slot } => {
                out.push(match self {
                    DataOp::Delete { .. } => 4,
                    DataOp::MarkDeleted { .. } => 5,
                    _ => 6,
                });
                out.extend_from_slice(&slot.to_le_bytes());
            }
            DataOp::Undelete { slot, kind } => {
                out.push(7);
                out.extend_from_slice(&(slot | kind.bits() << 12).to_le_bytes());
            }
            DataOp::Rebuild(image) => {
                out.push(8);
                out.extend_from_slice(&image.slots.to_le_bytes());
                out.extend_from_slice(&image.dictionary_version.to_le_bytes());
                [image.area, image.rows, image.directory].into_iter().for_each(|part| put_bytes(out, part));
                out.extend_from_slice(&image.ranges.to_le_bytes());
                out.push(u8::from(image.sparse));
            }
            DataOp::Patch { at, bytes } => {
                out.push(9);
                put_varint(out, at.into());
                put_bytes(out, bytes);
            }
            DataOp::Ranges(ranges) => {
                out.push(10);
                put_bytes(out, ranges);
            }
        }
    }

    /// Reads an op back from its log form.
    ///
    /// # Errors
    /// When the bytes are not an op.
    pub fn decode<'a>(reader: &mut Reader<'a>) -> Result<DataOp<'a>, FormatError> {
        let tag = reader.u8()?;
        Ok(match tag {
            0 => DataOp::Format { page_number: reader.u32()?, dictionary_version: reader.u16()? },
            1 | 2 => {
                let word = reader.u16()?;
                let slot = word & SLOT_MAX;
                let kind = StoredKind::from_bits(word >> 12).ok_or_else(|| FormatError::new("data op with an unknown row kind"))?;
                let bytes = reader.bytes()?;
                if tag == 1 { DataOp::Insert { slot, kind, bytes } } else { DataOp::Replace { slot, kind, bytes } }
            }
            3 | 11 => DataOp::Splice { slot: reader.varint16()?, splice: read_splice(reader, tag == 11)? },
            4 => DataOp::Delete { slot: reader.u16()? },
            5 => DataOp::MarkDeleted { slot: reader.u16()? },
            6 => DataOp::Purge { slot: reader.u16()? },
            7 => {
                let word = reader.u16()?;
                let kind = StoredKind::from_bits(word >> 12).ok_or_else(|| FormatError::new("data op with an unknown row kind"))?;
                DataOp::Undelete { slot: word & SLOT_MAX, kind }
            }
            8 => DataOp::Rebuild(ColumnImage {
                slots: reader.u16()?,
                dictionary_version: reader.u16()?,
                area: reader.bytes()?,
                rows: reader.bytes()?,
                directory: reader.bytes()?,
                ranges: reader.u16()?,
                sparse: reader.u8()? != 0,
            }),
            9 => DataOp::Patch { at: reader.varint16()?, bytes: reader.bytes()? },
            10 => DataOp::Ranges(reader.bytes()?),
            other => return Err(FormatError::new(format!("unknown data op {other}"))),
        })
    }
}

fn insert(page: &mut [u8], slot: u16, kind: StoredKind, bytes: &[u8]) -> Result<(), FormatError> {
    let view = DataPage::new(page);
    let slots = view.slot_count();
    if slot > slots || slot > SLOT_MAX || (slot < slots && !view.is_free(slot)) {
        return Err(FormatError::new(format!("insert into slot {slot}, which is in use or beyond the next of {slots}")));
    }
    refuse_column(kind)?;
    let growth = view.directory_growth(slot);
    if bytes.len() + growth > view.free_bytes() || bytes.len() > usize::from(LOW_BITS) {
        return Err(FormatError::new(format!("insert of {} bytes into {} free ones", bytes.len(), view.free_bytes())));
    }
    place::append(page, slot, kind, bytes, growth);
    place::add_rows(page, 1);
    Ok(())
}

/// Rows of a column part are made by [`DataOp::Rebuild`] only.
fn refuse_column(kind: StoredKind) -> Result<(), FormatError> {
    if matches!(kind, StoredKind::Column | StoredKind::Forwarded) { Err(FormatError::new("a single row of a column part")) } else { Ok(()) }
}

fn used_slot(page: &[u8], slot: u16) -> Result<StoredRow<'_>, FormatError> {
    DataPage::new(page).row(slot).ok_or_else(|| FormatError::new(format!("slot {slot} holds no row")))
}

/// The row in a slot that lies on this page.
fn row_here(page: &[u8], slot: u16) -> Result<StoredRow<'_>, FormatError> {
    let row = used_slot(page, slot)?;
    if row.kind == StoredKind::Forwarded { Err(FormatError::new(format!("the row of slot {slot} lies elsewhere"))) } else { Ok(row) }
}

fn set_ranges(page: &mut [u8], ranges: &[u8]) -> Result<(), FormatError> {
    let view = DataPage::new(page);
    let room = view.free_bytes() + view.ranges().len() * RANGE_BYTES;
    if !view.has_columns() || !ranges.len().is_multiple_of(RANGE_BYTES) || ranges.len() > room {
        return Err(FormatError::new(format!("{} bytes of ranges, there is room for {room}", ranges.len())));
    }
    let mut fresh = page.to_vec();
    place::set_ranges(&mut fresh, ranges);
    DataPage::new(&fresh).validate()?;
    page.copy_from_slice(&fresh);
    Ok(())
}

fn replace(page: &mut [u8], slot: u16, kind: StoredKind, bytes: &[u8]) -> Result<(), FormatError> {
    let before = used_slot(page, slot)?;
    let (length, forwarded) = (before.own_bytes(), before.kind == StoredKind::Forwarded);
    refuse_column(kind)?;
    let view = DataPage::new(page);
    if !view.fits_in_place_of(slot, bytes.len()) || bytes.len() > usize::from(LOW_BITS) {
        return Err(FormatError::new(format!("replacement of {} bytes for {length} does not fit the page", bytes.len())));
    }
    match view.find(slot) {
        Place::Single { offset, length, .. } if bytes.len() <= length => place::overwrite(page, slot, offset, length, kind, bytes),
        _ => {
            let growth = view.directory_growth(slot);
            place::forget(page, slot);
            place::append(page, slot, kind, bytes, growth);
        }
    }
    // A row of a forwarded slot comes here, or a pointer to it.
    place::add_rows(page, i32::from(forwarded));
    Ok(())
}

fn ghost_slot(page: &[u8], slot: u16) -> Result<(), FormatError> {
    let ghost = DataPage::new(page).ghost(slot, StoredKind::Raw);
    ghost.map(drop).ok_or_else(|| FormatError::new(format!("slot {slot} holds no deleted row")))
}

fn splice_row(page: &mut [u8], slot: u16, splice: Splice<'_>) -> Result<(), FormatError> {
    used_slot(page, slot)?;
    let Place::Single { offset, length, kind: Some(kind), .. } = DataPage::new(page).find(slot) else {
        return Err(FormatError::new(format!("the row of slot {slot} does not lie by itself")));
    };
    let row = &page[offset..offset + length];
    let (at, end) = (usize::from(splice.at), usize::from(splice.at) + splice.bytes.len());
    if splice.unit == Unit::Bytes && splice.bytes.len() == usize::from(splice.removed) && end <= length {
        page[offset + at..offset + end].copy_from_slice(splice.bytes);
        return Ok(());
    }
    let mut fresh = Vec::with_capacity(length + splice.bytes.len() + 1);
    splice.apply(row, &mut fresh).map_err(|e| FormatError::new(format!("change of slot {slot}: {e}")))?;
    replace(page, slot, kind, &fresh)
}

fn rebuild(page: &mut [u8], image: &ColumnImage<'_>) -> Result<(), FormatError> {
    if image.len() > page.len() {
        return Err(FormatError::new(format!("a page of {} bytes is rebuilt with {}", page.len(), image.len())));
    }
    let mut fresh = page.to_vec();
    image.write(&mut fresh);
    DataPage::new(&fresh).validate()?;
    page.copy_from_slice(&fresh);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    struct Rng(u64);
    impl Rng {
        fn below(&mut self, n: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % n as u64) as usize
        }
    }

    fn empty(size: usize) -> Vec<u8> {
        let mut page = vec![0u8; size];
        DataOp::Format { page_number: 4, dictionary_version: 0 }.apply(&mut page).unwrap();
        page
    }

    /// Applies by way of the log form, so that every op tests encode and decode too.
    fn apply(page: &mut [u8], op: DataOp<'_>) -> Result<(), FormatError> {
        let mut log = Vec::new();
        op.encode(&mut log);
        let mut reader = Reader::new(&log);
        let back = DataOp::decode(&mut reader)?;
        assert_eq!(back, op);
        assert!(reader.is_empty());
        let before = page.to_vec();
        let result = back.apply(page);
        if result.is_err() {
            assert_eq!(page, before, "a refused op changed the page");
        }
        result
    }

    #[test]
    fn behaves_like_a_map() {
        for size in [2048, 8192, 32768] {
            let mut rng = Rng(size as u64 + 77);
            let mut page = empty(size);
            let mut model: BTreeMap<u16, (StoredKind, Vec<u8>)> = BTreeMap::new();
            let mut ghosts: BTreeMap<u16, (StoredKind, Vec<u8>)> = BTreeMap::new();
            let kinds = [StoredKind::Raw, StoredKind::Compressed, StoredKind::Special];
            for step in 0..30_000 {
                let length = if rng.below(50) == 0 { rng.below(size) } else { rng.below(size / 12) };
                let bytes: Vec<u8> = (0..length).map(|i| (i + step) as u8).collect();
                let kind = kinds[rng.below(3)];
                let slot = rng.below(model.len() + ghosts.len() + 3) as u16;
                match rng.below(6) {
                    0 | 1 => {
                        let slot = DataPage::new(&page).free_slot();
                        let fits = DataPage::new(&page).fits(bytes.len());
                        let done = apply(&mut page, DataOp::Insert { slot, kind, bytes: &bytes });
                        assert_eq!(done.is_ok(), fits);
                        if fits {
                            assert!(model.insert(slot, (kind, bytes)).is_none());
                        }
                    }
                    2 => {
                        let fits = DataPage::new(&page).fits_in_place_of(slot, bytes.len());
                        assert_eq!(apply(&mut page, DataOp::Replace { slot, kind, bytes: &bytes }).is_ok(), fits);
                        if fits {
                            model.insert(slot, (kind, bytes));
                        }
                    }
                    3 if rng.below(2) == 0 => {
                        assert_eq!(apply(&mut page, DataOp::Delete { slot }).is_ok(), model.remove(&slot).is_some());
                    }
                    3 => {
                        let Some(row) = model.get_mut(&slot).filter(|row| row.1.len() >= 8) else {
                            assert!(apply(&mut page, DataOp::Splice { slot, splice: Splice::of_bytes(3, 5, &[9]) }).is_err());
                            continue;
                        };
                        let mut after = row.1.clone();
                        after.splice(3..3 + rng.below(5), [9u8, 8, 7][..rng.below(4)].iter().copied());
                        let before = DataPage::new(&page).row(slot).unwrap();
                        let bytes = before.bytes.to_vec();
                        let before = StoredRow { bytes: &bytes, ..before };
                        let fits = DataPage::new(&page).fits_in_place_of(slot, after.len());
                        assert_eq!(apply(&mut page, DataOp::change(slot, before, row.0, &after, &mut Vec::new())).is_ok(), fits);
                        if fits {
                            row.1 = after;
                        }
                    }
                    4 => {
                        let row = model.remove(&slot);
                        assert_eq!(apply(&mut page, DataOp::MarkDeleted { slot }).is_ok(), row.is_some());
                        ghosts.extend(row.map(|row| (slot, row)));
                    }
                    _ => {
                        let slot = ghosts.keys().nth(rng.below(ghosts.len().max(1))).copied().unwrap_or(slot);
                        let ghost = ghosts.remove(&slot);
                        let again = rng.below(2) == 0;
                        let kind = ghost.as_ref().map_or(StoredKind::Raw, |g| g.0);
                        let op = if again { DataOp::Undelete { slot, kind } } else { DataOp::Purge { slot } };
                        assert_eq!(apply(&mut page, op).is_ok(), ghost.is_some());
                        model.extend(ghost.filter(|_| again).map(|row| (slot, row)));
                    }
                }
                let view = DataPage::new(&page);
                view.validate().unwrap();
                if step % 16 == 0 {
                    for slot in 0..view.slot_count() + 2 {
                        assert_eq!(view.row(slot).map(|r| (r.kind, r.bytes.to_vec())), model.get(&slot).cloned());
                        assert_eq!(view.ghost(slot, StoredKind::Raw).map(|g| g.bytes), ghosts.get(&slot).map(|g| g.1.as_slice()));
                    }
                }
            }
        }
    }

    #[test]
    fn hostile_pages_do_not_panic() {
        let mut rng = Rng(5);
        let mut page = empty(2048);
        for slot in 0..20 {
            apply(&mut page, DataOp::Insert { slot, kind: StoredKind::Raw, bytes: &[slot as u8; 40] }).unwrap();
        }
        for _ in 0..50_000 {
            let mut bad = page.clone();
            for _ in 0..1 + rng.below(6) {
                let at = if rng.below(2) == 0 { rng.below(40) } else { rng.below(bad.len()) };
                bad[at] = rng.below(256) as u8;
            }
            let view = DataPage::new(&bad);
            let valid = view.validate().is_ok();
            for slot in [0, 1, 19, 20, 4095] {
                let row = view.row(slot);
                assert!(!valid || slot >= view.slot_count() || row.is_none_or(|r| r.bytes.len() < 2048));
            }
            if valid {
                let slot = view.free_slot();
                let _ = DataOp::Insert { slot, kind: StoredKind::Raw, bytes: &[1; 30] }.apply(&mut bad);
                let _ = DataOp::Delete { slot: 3 }.apply(&mut bad);
                DataPage::new(&bad).validate().unwrap();
            }
        }
    }
}

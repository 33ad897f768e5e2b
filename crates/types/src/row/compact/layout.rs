//! Where everything lies in a compact record. This file alone knows the layout; the others ask it.
//!
//! | Part | Bytes | What |
//! |---|---|---|
//! | NULL bitmap | as in the packed record | |
//! | lengths | (columns + 1) / 2 | 4 bits a column, the first in the low bits of the first byte: 0 to 14 bytes in the inline part; 15: long, two bytes there. An odd last half byte is zero |
//! | sums | 2 for each 16 columns but the first 16 | `u16` little-endian: bytes in the inline part before those 16 columns |
//! | inline part | | values of up to 14 bytes, and of each longer one: `u16` little-endian, low 15 bits = offset in the record behind its last byte; top bit = it is a large-value reference |
//! | long part | | the longer values, in column order |
//!
//! What is left of a value:
//!
//! | Type | Bytes |
//! |---|---|
//! | BOOLEAN, integers, dates, times, DECIMAL | two's complement in as few bytes as it takes, little-endian; none for zero |
//! | REAL, DOUBLE | without the low-order bytes that are zero |
//! | CHAR(n) | without blanks at the end |
//! | UUID, INTERVAL, VARCHAR, BYTEA, large-value references | all; a reference is always long |
//! | NULL | none |
//!
//! Invariants: there is one compact record for each packed record, and it holds the same values. A value in the long part starts where the one before it
//! there ends; the last one ends where the record ends. A column is found by adding up to 16 lengths at once, so in constant time; where a long value begins
//! says the long one before, which is looked for 16 columns at a time.

use std::ops::Range;

use crate::RecordError;
use crate::data_type::Physical;
use crate::row::layout::{ColumnLayout, RECORD_BYTES_MAX, RowLayout};

/// The longest value in the inline part, in bytes.
pub(super) const INLINE_MAX: usize = 14;

/// Length that says long.
pub(super) const LONG: usize = 15;

/// Bytes that a long value takes in the inline part.
pub(super) const LONG_INLINE: usize = 2;

/// Columns whose lengths are one word.
const GROUP: usize = 16;

/// Set in the end offset of a large-value reference.
pub(super) const LARGE_BIT: u16 = 0x8000;

const _: () = assert!(GROUP * 4 == u64::BITS as usize, "16 lengths are a word");
const _: () = assert!(GROUP * LONG <= u8::MAX as usize, "the sum of 16 lengths fits a byte");
const _: () = assert!(LONG == INLINE_MAX + 1 && LONG < 16, "a length takes four bits");

/// The layout of the compact records of one schema.
#[derive(Clone, Debug)]
pub struct CompactLayout {
    pub(super) packed: RowLayout,
    sums_start: usize,
    /// Bytes of NULL bitmap, lengths and sums.
    inline_start: usize,
    /// Characters of all CHAR columns, as far as a record can have them: at most so many bytes are blanks.
    pub(super) chars: usize,
    /// Offset and width of the numbers of up to eight bytes: of these the length is seen at once.
    pub(super) numbers: Box<[(u16, u8)]>,
    /// The other columns.
    pub(super) others: Box<[u16]>,
}

/// A column's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) bytes: Range<usize>,
    pub(super) large: bool,
}

/// Where a column's length lies and those before it: all that a look-up needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnPlace {
    group: usize,
    shift: u32,
    /// The lengths of the columns of the group before it.
    before: u64,
    sum_at: Option<usize>,
}

impl CompactLayout {
    /// The layout of compact records of the rows that `packed` lays out.
    #[must_use]
    pub fn new(packed: RowLayout) -> Self {
        let columns = packed.column_count();
        let sums_start = packed.bitmap_len() + columns.div_ceil(2);
        let inline_start = sums_start + 2 * columns.div_ceil(GROUP).saturating_sub(1);
        let chars = packed.columns.iter().map(|column| if let Physical::Char { chars } = column.physical { chars as usize } else { 0 });
        let chars = chars.sum::<usize>().min(RECORD_BYTES_MAX);
        let number = |column: &ColumnLayout| match column.physical {
            Physical::Boolean => Some(1),
            Physical::Int { width } | Physical::Decimal { width } if usize::from(width) <= size_of::<u64>() => Some(width),
            _ => None,
        };
        let numbers = packed.columns.iter().filter_map(|column| Some((column.offset, number(column)?))).collect();
        let others = (0..columns as u16).filter(|column| number(&packed.columns[usize::from(*column)]).is_none()).collect();
        Self { packed, sums_start, inline_start, chars, numbers, others }
    }

    /// The layout of the packed records.
    #[must_use]
    pub fn packed(&self) -> &RowLayout {
        &self.packed
    }

    /// Bytes of NULL bitmap, lengths and sums: the shortest compact record there can be.
    #[must_use]
    pub fn header_len(&self) -> usize {
        self.inline_start
    }

    /// Lengths of the columns from `GROUP * group` on; what lies behind those of the last column is undefined.
    #[inline]
    fn lengths(&self, record: &[u8], group: usize) -> u64 {
        let at = self.packed.bitmap_len() + group * (GROUP / 2);
        match record.get(at..).and_then(<[u8]>::first_chunk) {
            Some(word) => u64::from_le_bytes(*word),
            None => record.get(at..).unwrap_or_default().iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
        }
    }

    /// The length of a column as the record has it: 0 to 15.
    #[inline]
    pub(super) fn length(&self, record: &[u8], column: usize) -> Option<usize> {
        let byte = *record.get(self.packed.bitmap_len() + column / 2)?;
        Some(usize::from(byte >> (column % 2 * 4) & 15))
    }

    /// Writes the length of a column, which was zero.
    pub(super) fn set_length(&self, record: &mut [u8], column: usize, length: usize) {
        debug_assert!(length <= LONG);
        record[self.packed.bitmap_len() + column / 2] |= (length << (column % 2 * 4)) as u8;
    }

    /// No bit behind the last length is set? The record has at least the header.
    pub(super) fn lengths_are_clean(&self, record: &[u8]) -> bool {
        let columns = self.packed.column_count();
        columns.is_multiple_of(2) || self.length(record, columns) == Some(0)
    }

    /// Where the sum of the bytes before `column` lies, if there is one for it.
    pub(super) fn sum_at(&self, column: usize) -> Option<usize> {
        (column > 0 && column.is_multiple_of(GROUP)).then(|| self.sums_start + 2 * (column / GROUP - 1))
    }

    /// Where a column begins in the inline part, for the number of columns where that ends. The place may lie behind the record, when that is damaged.
    #[inline]
    pub(super) fn inline_offset(&self, record: &[u8], column: usize) -> usize {
        let last_group = self.packed.column_count().saturating_sub(1) / GROUP;
        let group = (column / GROUP).min(last_group);
        let before = match group {
            0 => 0,
            _ => self.sum_at(group * GROUP).and_then(|at| get_u16(record, at)).map_or(0, usize::from),
        };
        self.inline_start + before + sum_of_lengths(first_lengths(self.lengths(record, group), column - group * GROUP))
    }

    pub(super) fn place(&self, column: usize) -> ColumnPlace {
        let (group, in_group) = (column / GROUP, column % GROUP);
        ColumnPlace { group, shift: 4 * in_group as u32, before: first_lengths(u64::MAX, in_group), sum_at: self.sum_at(group * GROUP) }
    }

    /// Where the bytes of a column in the inline part of a record lie, which has at least the header; 15 bytes if they are long.
    #[inline]
    pub(super) fn inline_bytes(&self, record: &[u8], place: &ColumnPlace) -> Range<usize> {
        let lengths = self.lengths(record, place.group);
        let sum = place.sum_at.and_then(|at| get_u16(record, at)).unwrap_or(0);
        let start = self.inline_start + usize::from(sum) + sum_of_lengths(lengths & place.before);
        start..start + (lengths >> place.shift & 15) as usize
    }

    /// The last long column before `column`.
    fn long_before(&self, record: &[u8], column: usize) -> Option<usize> {
        (0..=column / GROUP).rev().find_map(|group| {
            let long = long_of(first_lengths(self.lengths(record, group), (column - group * GROUP).min(GROUP)));
            long.checked_ilog2().map(|bit| group * GROUP + bit as usize / 4)
        })
    }

    /// What the two bytes of a long column say: end, and whether it is a reference.
    #[inline]
    pub(super) fn long_end(&self, record: &[u8], column: usize) -> Option<(usize, bool)> {
        let word = get_u16(record, self.inline_offset(record, column))?;
        Some((usize::from(word & !LARGE_BIT), word & LARGE_BIT != 0))
    }

    /// Where the bytes of a column lie.
    #[inline]
    pub(super) fn span(&self, record: &[u8], column: usize) -> Result<Span, RecordError> {
        if record.len() < self.inline_start {
            return Err(self.length_error(record));
        }
        let length = self.length(record, column).filter(|_| column < self.packed.column_count());
        let length = length.ok_or(RecordError::NoSuchColumn { column })?;
        let (bytes, large) = if length < LONG {
            let start = self.inline_offset(record, column);
            (start..start + length, false)
        } else {
            let damaged = RecordError::EndOffset { column };
            let (end, large) = self.long_end(record, column).ok_or(damaged)?;
            let start = match self.long_before(record, column) {
                Some(before) => self.long_end(record, before).ok_or(damaged)?.0,
                None => self.inline_offset(record, self.packed.column_count()),
            };
            (start..end, large)
        };
        if bytes.start < self.inline_start || bytes.start > bytes.end || bytes.end > record.len() {
            return Err(RecordError::EndOffset { column });
        }
        Ok(Span { bytes, large })
    }

    #[cold]
    pub(super) fn length_error(&self, record: &[u8]) -> RecordError {
        RecordError::Length { bytes: record.len(), least: self.inline_start, most: RECORD_BYTES_MAX }
    }
}

#[inline]
pub(super) fn get_u16(record: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*record.get(at..)?.first_chunk()?))
}

/// The first `count` lengths, at most 16, and zeros.
#[inline]
fn first_lengths(lengths: u64, count: usize) -> u64 {
    lengths & u64::MAX.checked_shr(u64::BITS - 4 * count as u32).unwrap_or(0)
}

/// The lowest bit of each length that says long.
#[inline]
fn long_of(lengths: u64) -> u64 {
    let pairs = lengths & lengths >> 1;
    pairs & pairs >> 2 & 0x1111_1111_1111_1111
}

/// Bytes in the inline part of columns of these lengths.
#[inline]
fn sum_of_lengths(lengths: u64) -> usize {
    const EVEN: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    let bytes = (lengths & EVEN) + (lengths >> 4 & EVEN);
    let sum = bytes.wrapping_mul(0x0101_0101_0101_0101) >> 56;
    // Mostly none, and to count them takes longer than to see that.
    let long = long_of(lengths);
    if long == 0 { sum as usize } else { sum as usize - (LONG - LONG_INLINE) * long.count_ones() as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_added_at_once() {
        let mut state = 1_u64;
        for round in 0..10_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mixed = state ^ state >> 29;
            let lengths = if round % 3 == 0 { mixed | mixed << 1 | mixed >> 1 } else { mixed };
            for count in 0..=GROUP {
                let each = (0..count).map(|column| lengths as usize >> (4 * column) & 15);
                let sum: usize = each.clone().map(|length| if length == LONG { LONG_INLINE } else { length }).sum();
                let first = first_lengths(lengths, count);
                assert_eq!(sum_of_lengths(first), sum);
                assert_eq!(long_of(first).count_ones() as usize, each.clone().filter(|&length| length == LONG).count());
            }
        }
        assert_eq!(sum_of_lengths(u64::MAX), GROUP * LONG_INLINE);
        assert_eq!(sum_of_lengths(0xeeee_eeee_eeee_eeee), GROUP * INLINE_MAX);
    }
}

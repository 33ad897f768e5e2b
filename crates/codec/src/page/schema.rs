//! What the columns of a page are: derived from the layout of the packed records, once per table.

use super::bits::load;
use super::encoder::LARGE_BIT;
use pagefold_types::{DataType, Physical, RowLayout};

/// How a column is held in an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// BOOLEAN, integers, dates, times, DECIMAL of up to 8 bytes; REAL and DOUBLE by their bits. The width is that in the record.
    Int {
        /// Bytes in the record
        width: u8,
    },
    /// UUID, wider DECIMAL: bytes of one length.
    Fixed {
        /// Bytes in the record
        width: u8,
    },
    /// CHAR, VARCHAR, BYTEA.
    Variable {
        /// CHAR: characters; kept without trailing blanks.
        chars: Option<u32>,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PageColumn {
    pub(super) class: Class,
    /// Type: only columns of one type are tried as differences.
    pub(super) data_type: DataType,
    /// In the record: offset of the value; of the end offset for [`Class::Variable`].
    pub(super) at: usize,
    /// In the record: byte and mask of the NULL bit.
    pub(super) null_bit: Option<(usize, u8)>,
}

/// Where an integer column lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct IntColumn {
    pub(super) number: usize,
    /// In the record, as in [`PageColumn`].
    pub(super) at: usize,
    pub(super) null_bit: Option<(usize, u8)>,
}

/// The columns of a table's pages.
#[derive(Clone, Debug)]
pub struct PageSchema {
    pub(super) columns: Box<[PageColumn]>,
    /// The columns of [`Class::Int`], in the order of their places in the record.
    pub(super) ints: Box<[IntColumn]>,
    /// The others, likewise.
    pub(super) strings: Box<[usize]>,
    /// Bytes of a record before its variable columns.
    pub(super) fixed_len: usize,
    /// Where the end offsets of variable columns begin.
    ends_at: usize,
    /// Byte of the NULL bitmap and those of its bits that mean nothing.
    pub(super) unused_bits: Option<(usize, u8)>,
}

impl PageSchema {
    /// The columns of records of this layout.
    #[must_use]
    pub fn new(layout: &RowLayout) -> Self {
        let count = layout.column_count();
        let variable = (0..count).filter(|&c| layout.fixed_span(c).is_none()).count();
        // End offsets lie in column order before the variable columns.
        let ends_at = layout.fixed_len() - 2 * variable;
        let mut end_at = ends_at;
        let nullable = (0..count).filter(|&c| layout.is_nullable(c)).count();
        let unused_bits = (nullable % 8 > 0).then(|| (nullable / 8, u8::MAX << (nullable % 8)));
        let columns = (0..count).map(|c| {
            let data_type = layout.data_type(c);
            let (class, at) = match (layout.fixed_span(c), data_type.physical()) {
                (Some((at, width)), Physical::Uuid) => (Class::Fixed { width: width as u8 }, at),
                (Some((at, width)), _) if width > 8 => (Class::Fixed { width: width as u8 }, at),
                (Some((at, width)), _) => (Class::Int { width: width as u8 }, at),
                (None, physical) => {
                    let at = end_at;
                    end_at += 2;
                    let chars = if let Physical::Char { chars } = physical { Some(chars) } else { None };
                    (Class::Variable { chars }, at)
                }
            };
            PageColumn { class, data_type, at, null_bit: layout.null_bit(c) }
        });
        let columns: Box<[PageColumn]> = columns.collect();
        let numbered = || columns.iter().enumerate();
        let is_int = |column: &PageColumn| matches!(column.class, Class::Int { .. });
        let ints = numbered().filter(|(_, column)| is_int(column));
        let mut ints: Box<[IntColumn]> =
            ints.map(|(number, column)| IntColumn { number, at: column.at, null_bit: column.null_bit }).collect();
        ints.sort_unstable_by_key(|column| column.at);
        let strings = numbered().filter(|(_, column)| !is_int(column)).map(|(number, _)| number).collect();
        Self { ints, strings, columns, fixed_len: layout.fixed_len(), ends_at, unused_bits }
    }

    /// How many columns.
    #[must_use]
    pub fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// Is the column NULL in this packed record?
    ///
    /// # Panics
    /// When there is no such column.
    #[inline]
    #[must_use]
    pub fn is_null(&self, column: usize, record: &[u8]) -> bool {
        self.columns[column].null_bit.is_some_and(|(at, mask)| record.get(at).is_some_and(|byte| byte & mask != 0))
    }

    /// May the column be NULL?
    ///
    /// # Panics
    /// When there is no such column.
    #[must_use]
    pub fn is_nullable(&self, column: usize) -> bool {
        self.columns[column].null_bit.is_some()
    }

    /// Appends the numbers in an integer column of packed records; those of NULL rows are 0. False, and not all are appended, when a record is too short.
    ///
    /// # Panics
    /// When there is no such column, or it is not an [integer one](Self::is_int).
    pub fn record_ints<'r>(&self, column: usize, records: impl Iterator<Item = &'r [u8]>, out: &mut Vec<i64>) -> bool {
        let column = &self.columns[column];
        let Class::Int { width } = column.class else { panic!("an integer column") };
        let at = column.at;
        match width {
            8 => append_ints(records, at, i64::from_le_bytes, out),
            4 => append_ints(records, at, |bytes| i32::from_le_bytes(bytes).into(), out),
            2 => append_ints(records, at, |bytes| i16::from_le_bytes(bytes).into(), out),
            width => {
                let (width, shift) = (usize::from(width), 64 - 8 * u32::from(width));
                for record in records {
                    if record.len() < at + width {
                        return false;
                    }
                    out.push((load(record, at) << shift) as i64 >> shift);
                }
                true
            }
        }
    }

    /// The number in an integer column of a packed record; 0 where it is NULL, `None` when the record is too short.
    ///
    /// # Panics
    /// When there is no such column, or it is not an [integer one](Self::is_int).
    #[inline]
    #[must_use]
    pub fn record_int(&self, column: usize, record: &[u8]) -> Option<i64> {
        let PageColumn { class: Class::Int { width }, at, .. } = self.columns[column] else { panic!("an integer column") };
        let shift = 64 - 8 * u32::from(width);
        (record.len() >= at + usize::from(width)).then(|| (load(record, at) << shift) as i64 >> shift)
    }

    /// The bytes in any other column of a packed record, and whether they are a reference to a large value; `None` when the record is damaged.
    ///
    /// # Panics
    /// When there is no such column, or it is an integer one.
    #[inline]
    #[must_use]
    pub fn record_bytes<'r>(&self, column: usize, record: &'r [u8]) -> Option<(&'r [u8], bool)> {
        let PageColumn { class, at, .. } = self.columns[column];
        let word = |at: usize| Some(u16::from_le_bytes(record.get(at..at + 2)?.try_into().ok()?));
        match class {
            Class::Int { .. } => panic!("an integer column"),
            Class::Fixed { width } => Some((record.get(at..at + usize::from(width))?, false)),
            Class::Variable { .. } => {
                let start = if at == self.ends_at { self.fixed_len } else { usize::from(word(at - 2)? & !LARGE_BIT) };
                let end = word(at)?;
                Some((record.get(start..usize::from(end & !LARGE_BIT))?, end & LARGE_BIT != 0))
            }
        }
    }

    /// Is the column read by [`ColumnArea::int`](super::ColumnArea::int)? Else by [`ColumnArea::bytes`](super::ColumnArea::bytes).
    ///
    /// # Panics
    /// When there is no such column.
    #[must_use]
    pub fn is_int(&self, column: usize) -> bool {
        matches!(self.columns[column].class, Class::Int { .. })
    }
}

/// Appends the numbers of a width at a place of records. False when one is too short.
#[inline(always)]
fn append_ints<'r, const WIDTH: usize>(
    records: impl Iterator<Item = &'r [u8]>,
    at: usize,
    number: impl Fn([u8; WIDTH]) -> i64,
    out: &mut Vec<i64>,
) -> bool {
    out.reserve(records.size_hint().0);
    for record in records {
        let Some(bytes) = record.get(at..).and_then(<[u8]>::first_chunk) else { return false };
        out.push(number(*bytes));
    }
    true
}

/// The bytes of a CHAR without the blanks at their end.
pub(super) fn without_blanks(value: &[u8]) -> &[u8] {
    &value[..value.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1)]
}

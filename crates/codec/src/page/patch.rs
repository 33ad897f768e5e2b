//! Changes of a value in place: the bytes of an area to replace, where the new value fits the column's encoding as it is.
//!
//! Nothing else changes: other rows and columns read as before, and the directory, so the length, stays.

use std::ops::Range;

use super::area::ColumnArea;
use super::bits::{bit, replaced, unpack};
use super::encoder::{LARGE_BIT, fixed_int, is_null};
use super::ints::{Ints, Model};
use super::layout::{Entry, Kind};
use super::schema::{Class, without_blanks};

/// Bytes of an area to replace by as many others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// Offset in the area.
    pub offset: usize,
    /// What is there; empty when nothing has to change.
    pub old: Vec<u8>,
    /// What comes there, as long.
    pub new: Vec<u8>,
}

impl Patch {
    /// Sets it to replace these bytes of `area`; `new` has as many or more.
    fn set(&mut self, area: &[u8], span: Range<usize>, new: &[u8]) -> Option<()> {
        let old = area.get(span.clone())?;
        self.offset = span.start;
        self.old.clear();
        self.old.extend_from_slice(old);
        self.new.clear();
        self.new.extend_from_slice(new.get(..old.len())?);
        Some(())
    }
}

impl ColumnArea<'_> {
    /// Finds what turns a row from one record into another that differs from it in a few columns. False when the area has to be rebuilt for that, or a change could not be taken back in
    /// the same way: a value becomes NULL or was, or is a large value. `patches` are then anything. `before` is the row's record.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn patch_record(&self, row: usize, before: &[u8], after: &[u8], patches: &mut Vec<Patch>) -> bool {
        patches.clear();
        if before.len() < self.schema.fixed_len || after.len() < self.schema.fixed_len {
            return false;
        }
        let mut starts = (self.schema.fixed_len, self.schema.fixed_len);
        for (number, column) in self.schema.columns.iter().enumerate() {
            let null = (is_null(column, before), is_null(column, after));
            let span = |record: &[u8], start: &mut usize| match column.class {
                Class::Int { width } | Class::Fixed { width } => (column.at..column.at + usize::from(width), false),
                Class::Variable { .. } => {
                    let word = u16::from_le_bytes([record[column.at], record[column.at + 1]]);
                    let end = usize::from(word & !LARGE_BIT);
                    (std::mem::replace(start, end)..end, word & LARGE_BIT != 0)
                }
            };
            let ((old, old_large), (new, new_large)) = (span(before, &mut starts.0), span(after, &mut starts.1));
            let (Some(old), Some(new)) = (before.get(old), after.get(new)) else { return false };
            if null.0 == null.1 && old_large == new_large && old == new {
                continue;
            }
            let mut patch = Patch::default();
            let done = !(null.0 || null.1 || old_large || new_large)
                && match column.class {
                    Class::Int { .. } => self.patch_int(number, row, Some(fixed_int(column, after)), &mut patch),
                    Class::Fixed { .. } | Class::Variable { .. } => self.patch_bytes(number, row, Some(new), &mut patch),
                };
            if !done {
                return false;
            }
            if !patch.new.is_empty() {
                patches.push(patch);
            }
        }
        true
    }

    /// Finds what makes `value` the value of a row of an integer column, `None` being NULL. False when the area has to be rebuilt: the value does not fit the bits of
    /// the column or is not in its dictionary, other columns are differences to this one, or NULL becomes a value. `patch` is then anything.
    ///
    /// # Panics
    /// When there is no such column or row, or the column is not an integer one. `value` must be in the range of the column's type.
    pub fn patch_int(&self, column: usize, row: usize, value: Option<i64>, patch: &mut Patch) -> bool {
        self.column(column, row);
        let ints = self.ints_of(column);
        let Some(value) = value else { return self.patch_null(column, row, patch).is_some() };
        let partner = |other: usize| matches!(Ints::of(self.bytes, other).model, Model::Difference { partner } if partner == column);
        if ints.is_null(row) || (column + 1..self.schema.columns.len()).any(|other| self.schema.is_int(other) && partner(other)) {
            return false;
        }
        self.patch_number(&ints, row, value, patch).is_some()
    }

    fn patch_number(&self, ints: &Ints<'_>, row: usize, value: i64, patch: &mut Patch) -> Option<()> {
        let number = match ints.model {
            Model::Dictionary { at, count, width } => {
                let wanted = value.wrapping_sub(ints.base) as u64;
                (0..count).find(|index| unpack(self.bytes, at, width, *index) == wanted)? as u64
            }
            _ => ints.number_of(value, row)?,
        };
        if let Some(exceptions) = &ints.exceptions
            && let Some(index) = exceptions.find(self.bytes, row)
        {
            let shift = 64 - 8 * exceptions.bytes as u32;
            if (number << shift) as i64 >> shift != number as i64 {
                return None;
            }
            let at = exceptions.number_at(index);
            return patch.set(self.bytes, at..at + exceptions.bytes, &number.to_le_bytes());
        }
        if !ints.fits(number) {
            return None;
        }
        let (span, new) = replaced(self.bytes, ints.at, ints.width, row, number)?;
        patch.set(self.bytes, span, &new)
    }

    /// Makes a row NULL. What it was stays behind the bit: columns that are differences to it read as before.
    fn patch_null(&self, column: usize, row: usize, patch: &mut Patch) -> Option<()> {
        if self.is_null(column, row) {
            return patch.set(self.bytes, 0..0, &[]);
        }
        let at = Entry::read(self.bytes, column).nulls_at(self.rows())? + row / 8;
        let byte = *self.bytes.get(at)?;
        patch.set(self.bytes, at..at + 1, &[byte | 1 << (row % 8)])
    }

    /// As [`ColumnArea::patch_int`] for any other column: the bytes as in the record, CHAR with its trailing blanks. A value fits when it is in the dictionary of the
    /// column, or when the column keeps plain bytes and it is as long as the one before. A large-value reference is neither replaced nor put.
    ///
    /// # Panics
    /// When there is no such column or row, or the column is an integer one.
    pub fn patch_bytes(&self, column: usize, row: usize, value: Option<&[u8]>, patch: &mut Patch) -> bool {
        let class = self.column(column, row).class;
        let strings = self.strings_of(column);
        let Some(value) = value else {
            // A NULL row of a heap has no bytes: those there were cannot go.
            let stays = strings.has_dictionary() || strings.is_null(row);
            return stays && !strings.is_large(row) && self.patch_null(column, row, patch).is_some();
        };
        let large_at = strings.entry.large_at(self.rows());
        if strings.is_null(row) || large_at.is_some_and(|at| bit(self.bytes, at, row)) {
            return false;
        }
        let value = if matches!(class, Class::Variable { chars: Some(_) }) { without_blanks(value) } else { value };
        self.patch_string(column, row, value, patch).is_some()
    }

    fn patch_string(&self, column: usize, row: usize, value: &[u8], patch: &mut Patch) -> Option<()> {
        let strings = self.strings_of(column);
        let equal = |index: usize| strings.heap.compare(index, value, false).is_ok_and(std::cmp::Ordering::is_eq);
        if strings.has_dictionary() {
            let index = (0..strings.heap.count).find(|index| equal(*index))?;
            let (span, new) = replaced(self.bytes, strings.entry.at, strings.entry.width, row, index as u64)?;
            return patch.set(self.bytes, span, &new);
        }
        if equal(row) {
            return patch.set(self.bytes, 0..0, &[]);
        }
        if strings.entry.kind() != Kind::Bytes {
            return None;
        }
        let (prefix, span) = strings.heap.plain_span(row).ok()?;
        let rest = value.strip_prefix(prefix)?;
        if rest.len() == span.len() { patch.set(self.bytes, span, rest) } else { None }
    }
}

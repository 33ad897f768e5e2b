//! Conditions evaluated on an area: each leaves set, of the bits of a selection, those of rows that meet it. NULL meets none.
//!
//! Integers in a frame are compared as packed numbers, with translated bounds; values of dictionaries are looked at once each; strings are compared code by code until
//! they differ. Blocks of 64 rows of which none is selected any more are passed over.

use std::cmp::Ordering;
use std::ops::{Bound, RangeInclusive};

use super::area::{ColumnArea, append_value};
use super::bitmap::{Bitmap, bits_at};
use super::bits::{BLOCK, unpack};
use super::int_members::IntMembers;
use super::int_set::IntSet;
use super::ints::{Ints, Model, entry_of};
use super::schema::Class;
use super::strings::Strings;
use crate::CodecError;

/// Up to so many ranges are compared with each block of packed numbers, one after the other; of more, each value is looked for among them.
const SCANNED_MAX: usize = 8;
/// The same of strings.
const COMPARED_MAX: usize = 4;

/// Bit i of the result: number i is at most `span` above `least`.
#[inline]
fn within(numbers: &[u64; BLOCK], least: u64, span: u64) -> u64 {
    let mut bits = 0;
    for (group, numbers) in numbers.as_chunks::<8>().0.iter().enumerate() {
        let mut byte = 0;
        for (index, number) in numbers.iter().enumerate() {
            byte |= u64::from(number.wrapping_sub(least) <= span) << index;
        }
        bits |= byte << (8 * group);
    }
    bits
}

impl Ints<'_> {
    /// The packed numbers whose values lie between `least` and `most`, where values grow with them: least one and span. `None` when there are none.
    fn translated(&self, least: i64, most: i64) -> Option<(u64, u64)> {
        // The values of packed numbers start at the base and do not wrap, so what lies below the base is cut off.
        let factor = match self.model {
            Model::Multiple { factor } => factor.max(1),
            _ => 1,
        };
        if most < self.base {
            return None;
        }
        let low = if least <= self.base { 0 } else { (least.wrapping_sub(self.base) as u64).div_ceil(factor) };
        let high = most.wrapping_sub(self.base) as u64 / factor;
        (low <= high).then(|| (low, high - low))
    }

    /// Do values grow with packed numbers, without wrapping?
    fn grows(&self) -> bool {
        let most = super::bits::mask(self.width);
        let factor = match self.model {
            Model::Frame => Some(1),
            Model::Multiple { factor } => Some(factor),
            _ => None,
        };
        let top = factor.filter(|factor| *factor > 0).and_then(|factor| most.checked_mul(factor));
        self.exceptions.is_none() && top.is_some_and(|top| self.base.checked_add_unsigned(top).is_some())
    }
}

impl ColumnArea<'_> {
    pub(super) fn check_selection(&self, selection: &Bitmap) {
        assert_eq!(selection.len(), self.rows(), "a bit per row");
    }

    /// Takes NULL rows out of the selection. False when all are.
    fn take_out_nulls(&self, column: usize, selection: &mut Bitmap) -> bool {
        match self.nulls_of(column) {
            (_, true) => selection.words_mut().fill(0),
            (Some(at), _) => {
                selection.words_mut().iter_mut().enumerate().for_each(|(block, word)| *word &= !bits_at(self.bytes, at, block * BLOCK));
            }
            _ => return true,
        }
        selection.words().iter().any(|word| *word != 0)
    }

    /// Keeps the rows whose value is NULL, or those where it is not.
    ///
    /// # Panics
    /// When there is no such column, or the selection has not a bit for each row.
    pub fn select_null(&self, column: usize, null: bool, selection: &mut Bitmap) {
        self.check_selection(selection);
        if !null {
            self.take_out_nulls(column, selection);
            return;
        }
        match self.nulls_of(column) {
            (_, true) => {}
            (Some(at), _) => {
                selection.words_mut().iter_mut().enumerate().for_each(|(block, word)| *word &= bits_at(self.bytes, at, block * BLOCK));
            }
            _ => selection.words_mut().fill(0),
        }
    }

    /// Keeps the rows of an integer column whose value lies in `range`. REAL and DOUBLE are compared by their bits, so only equality has a meaning there.
    ///
    /// # Panics
    /// When there is no such column, it is not an integer one, or the selection has not a bit for each row.
    pub fn select_int(&self, column: usize, range: RangeInclusive<i64>, selection: &mut Bitmap) {
        self.check_selection(selection);
        let ints = self.ints_of(column);
        let (least, most) = range.into_inner();
        if least > most {
            selection.words_mut().fill(0);
        }
        if least > most || !self.take_out_nulls(column, selection) {
            return;
        }
        if let Model::Dictionary { at, count, width } = ints.model {
            let values = (0..count).map(|index| ints.base.wrapping_add(unpack(self.bytes, at, width, index) as i64));
            let meets: Vec<bool> = values.map(|value| (least..=most).contains(&value)).collect();
            return select_numbers(selection, &meets, |block, numbers| ints.numbers(block, numbers));
        }
        if ints.grows() {
            let Some((low, span)) = ints.translated(least, most) else { return selection.words_mut().fill(0) };
            if low == 0 && span >= super::bits::mask(ints.width) {
                return;
            }
            let mut numbers = [0; BLOCK];
            return each_block(selection, |block, _| {
                ints.numbers(block, &mut numbers);
                within(&numbers, low, span)
            });
        }
        let span = most.wrapping_sub(least) as u64;
        let (mut values, mut numbers) = ([0; BLOCK], [0; BLOCK]);
        each_block(selection, |block, _| {
            ints.values(block, &mut values);
            numbers.iter_mut().zip(&values).for_each(|(number, value)| *number = *value as u64);
            within(&numbers, least as u64, span)
        });
    }

    /// Keeps the rows of an integer column whose value is in a set; else as [`ColumnArea::select_int`].
    ///
    /// # Panics
    /// As there.
    pub fn select_ints(&self, column: usize, set: &IntSet, selection: &mut Bitmap) {
        self.check_selection(selection);
        let ranges = match set.ranges() {
            [] => return selection.words_mut().fill(0),
            [range] => return self.select_int(column, range.clone(), selection),
            ranges => ranges,
        };
        let ints = self.ints_of(column);
        if !self.take_out_nulls(column, selection) {
            return;
        }
        if ints.grows() {
            // Most of a long list lies beyond what the packed numbers of a page can be.
            let (top, mut packed) = (super::bits::mask(ints.width), Vec::new());
            let translated = ranges.iter().filter_map(|range| ints.translated(*range.start(), *range.end()));
            packed.extend(translated.filter(|(low, _)| *low <= top).take(SCANNED_MAX + 1));
            if packed.len() <= SCANNED_MAX {
                let mut numbers = [0; BLOCK];
                return each_block(selection, |block, _| {
                    ints.numbers(block, &mut numbers);
                    packed.iter().fold(0, |bits, (low, span)| bits | within(&numbers, *low, *span))
                });
            }
        }
        self.select_values(&ints, |value| set.contains(value), selection);
    }

    /// Keeps the rows of an integer column whose value is one of many; else as [`ColumnArea::select_int`].
    ///
    /// # Panics
    /// As there.
    pub fn select_members(&self, column: usize, members: &IntMembers, selection: &mut Bitmap) {
        self.check_selection(selection);
        let ints = self.ints_of(column);
        let (least, most) = members.bounds();
        // A page of keys that follow each other often has none.
        let none = least > most || ints.grows() && ints.translated(least, most).is_none_or(|(low, _)| low > super::bits::mask(ints.width));
        if none {
            return selection.words_mut().fill(0);
        }
        if self.take_out_nulls(column, selection) {
            self.select_values(&ints, |value| members.contains(value), selection);
        }
    }

    /// Keeps the rows whose value meets. NULLs are out.
    fn select_values(&self, ints: &Ints<'_>, meets: impl Fn(i64) -> bool, selection: &mut Bitmap) {
        if let Model::Dictionary { at, count, width } = ints.model {
            let values = (0..count).map(|index| ints.base.wrapping_add(unpack(self.bytes, at, width, index) as i64));
            let meets: Vec<bool> = values.map(meets).collect();
            return select_numbers(selection, &meets, |block, numbers| ints.numbers(block, numbers));
        }
        let mut values = [0; BLOCK];
        each_block(selection, |block, _| {
            ints.values(block, &mut values);
            values.iter().enumerate().fold(0, |bits, (index, value)| bits | u64::from(meets(*value)) << index)
        });
    }

    /// Keeps the rows of a column of strings whose bytes lie between the bounds, compared byte by byte; of CHAR, as if blanks without end followed value
    /// and bound. Rows whose value is a large-value reference keep their bit.
    ///
    /// # Errors
    /// When the area is damaged; the selection is then anything.
    ///
    /// # Panics
    /// When there is no such column, it is an integer one, or the selection has not a bit for each row.
    pub fn select_bytes_range(
        &self,
        column: usize,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        selection: &mut Bitmap,
    ) -> Result<(), CodecError> {
        let padded = matches!(self.schema.columns[column].class, Class::Variable { chars: Some(_) });
        self.select_heap(column, selection, |strings, index| {
            let above = match lower {
                Bound::Unbounded => true,
                Bound::Included(bound) => strings.heap.compare(index, bound, padded)? != Ordering::Less,
                Bound::Excluded(bound) => strings.heap.compare(index, bound, padded)? == Ordering::Greater,
            };
            Ok(above
                && match upper {
                    Bound::Unbounded => true,
                    Bound::Included(bound) => strings.heap.compare(index, bound, padded)? != Ordering::Greater,
                    Bound::Excluded(bound) => strings.heap.compare(index, bound, padded)? == Ordering::Less,
                })
        })
    }

    /// Keeps the rows of a column of strings whose value is `value`; else as [`ColumnArea::select_bytes_range`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    pub fn select_bytes_equal(&self, column: usize, value: &[u8], selection: &mut Bitmap) -> Result<(), CodecError> {
        let padded = matches!(self.schema.columns[column].class, Class::Variable { chars: Some(_) });
        self.select_heap(column, selection, |strings, index| Ok(strings.heap.compare(index, value, padded)? == Ordering::Equal))
    }

    /// Keeps the rows of a column of strings whose value is one of these, which ascend; of CHAR, without the blanks at their end. Else as
    /// [`ColumnArea::select_bytes_range`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    pub fn select_bytes_in(&self, column: usize, values: &[Vec<u8>], selection: &mut Bitmap) -> Result<(), CodecError> {
        let padded = matches!(self.schema.columns[column].class, Class::Variable { chars: Some(_) });
        let mut buffer = Vec::new();
        self.select_heap(column, selection, |strings, index| {
            if values.len() > COMPARED_MAX {
                buffer.clear();
                strings.heap.append(index, &mut buffer)?;
                return Ok(values.binary_search(&buffer).is_ok());
            }
            for value in values {
                if strings.heap.compare(index, value, padded)? == Ordering::Equal {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    /// Keeps the rows of a column of strings that begin so; of CHAR, without the blanks at their end. Else as [`ColumnArea::select_bytes_range`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    pub fn select_bytes_beginning(&self, column: usize, beginning: &[u8], selection: &mut Bitmap) -> Result<(), CodecError> {
        self.select_heap(column, selection, |strings, index| strings.heap.begins_with(index, beginning))
    }

    /// Keeps the rows of a column of strings whose bytes, CHAR with its trailing blanks, meet a test. It is asked once for each value of a dictionary, else
    /// for each row still selected. Rows whose value is a large-value reference keep their bit.
    ///
    /// # Errors
    /// As [`ColumnArea::select_bytes_range`].
    ///
    /// # Panics
    /// As there.
    pub fn select_bytes(&self, column: usize, mut test: impl FnMut(&[u8]) -> bool, selection: &mut Bitmap) -> Result<(), CodecError> {
        let class = self.schema.columns[column].class;
        let mut buffer = Vec::new();
        self.select_heap(column, selection, |strings, index| {
            buffer.clear();
            append_value(strings, class, index, false, &mut buffer)?;
            Ok(test(&buffer))
        })
    }

    /// Keeps the rows whose string, by its number in the heap, meets a test.
    fn select_heap(
        &self,
        column: usize,
        selection: &mut Bitmap,
        mut test: impl FnMut(&Strings<'_>, usize) -> Result<bool, CodecError>,
    ) -> Result<(), CodecError> {
        self.check_selection(selection);
        let strings = self.strings_of(column);
        if !self.take_out_nulls(column, selection) {
            return Ok(());
        }
        // A value of a dictionary is looked at when the first row has it.
        let mut known = vec![None; if strings.has_dictionary() { strings.heap.count } else { 0 }];
        for block in 0..selection.words().len() {
            let mut left = selection.words()[block];
            while left != 0 {
                let row = block * BLOCK + left.trailing_zeros() as usize;
                left &= left - 1;
                if strings.is_large(row) {
                    continue;
                }
                let index = strings.index(row);
                let meets = match known.get_mut(index) {
                    Some(Some(meets)) => *meets,
                    Some(unknown) => *unknown.insert(test(&strings, index)?),
                    None => test(&strings, index)?,
                };
                if !meets {
                    selection.set(row, false);
                }
            }
        }
        Ok(())
    }
}

/// Keeps of each block the bits that `test` returns; blocks without a bit are not looked at.
fn each_block(selection: &mut Bitmap, mut test: impl FnMut(usize, u64) -> u64) {
    for (block, word) in selection.words_mut().iter_mut().enumerate().filter(|(_, word)| **word != 0) {
        *word &= test(block, *word);
    }
}

/// Keeps the rows whose number is one that meets.
fn select_numbers(selection: &mut Bitmap, meets: &[bool], numbers_of: impl Fn(usize, &mut [u64; BLOCK])) {
    if meets.iter().all(|meets| *meets) {
        return;
    }
    let mut numbers = [0; BLOCK];
    each_block(selection, |block, _| {
        numbers_of(block, &mut numbers);
        let bit = |number: &u64| u64::from(meets.get(entry_of(*number, meets.len())).copied().unwrap_or(false));
        numbers.iter().enumerate().fold(0, |bits, (index, number)| bits | bit(number) << index)
    });
}

//! Many rows of a column of strings at once, in the form of Arrow's arrays: bytes and offsets.
//!
//! Values of dictionaries are copied as 32 bytes whatever their length, and what comes next is written over the excess: no copy of a length that is not known before. Longer values
//! and large-value references go one by one.

use std::ops::Range;

use super::area::{ColumnArea, append_value};
use super::bitmap::Bitmap;
use super::bits::{BLOCK, unpack_block};
use super::schema::Class;
use super::strings::{BLOCK_CODES, Strings};
use crate::CodecError;

/// Bytes of a copy.
const WIDE: usize = 32;
/// The room behind the end grows by so many bytes beyond what is needed.
const STEP: usize = 2048;

/// Appends to bytes; behind their end is room that copies may write to.
struct Tail<'b> {
    bytes: &'b mut Vec<u8>,
    /// Where they end; what lies behind is cut off at last.
    len: usize,
}

impl<'b> Tail<'b> {
    fn new(bytes: &'b mut Vec<u8>) -> Self {
        let len = bytes.len();
        Self { bytes, len }
    }

    /// Makes room for copies that together keep `count` bytes.
    #[inline(always)]
    fn reserve(&mut self, count: usize) {
        let wanted = self.len + count + WIDE;
        if self.bytes.len() < wanted {
            self.bytes.resize(wanted + STEP, 0);
        }
    }

    /// Copies all of `chunk` and keeps `len` bytes of it, for which there must be room.
    #[inline(always)]
    fn put(&mut self, chunk: &[u8; WIDE], len: usize) {
        self.bytes[self.len..][..WIDE].copy_from_slice(chunk);
        self.len += len;
    }
}

impl Drop for Tail<'_> {
    fn drop(&mut self) {
        self.bytes.truncate(self.len);
    }
}

/// The values of a dictionary, each as wide as a copy.
struct Values(Vec<([u8; WIDE], u8)>);

impl Values {
    /// `None` when one is longer.
    fn read(strings: &Strings<'_>, class: Class) -> Result<Option<Values>, CodecError> {
        let mut values = Vec::with_capacity(strings.heap.count);
        let mut buffer = Vec::new();
        for index in 0..strings.heap.count {
            buffer.clear();
            append_value(strings, class, index, false, &mut buffer)?;
            if buffer.len() > WIDE {
                return Ok(None);
            }
            let len = buffer.len() as u8;
            buffer.resize(WIDE, 0);
            let Some(chunk) = buffer.first_chunk() else { unreachable!("resized") };
            values.push((*chunk, len));
        }
        Ok(Some(Values(values)))
    }

    /// Appends the values of the rows of a block whose bits are set, and their ends.
    #[inline]
    fn append(&self, strings: &Strings<'_>, block: usize, rows: u64, tail: &mut Tail<'_>, ends: &mut Vec<i32>) -> Result<(), CodecError> {
        let mut numbers = [0; BLOCK];
        unpack_block(strings.area, strings.entry.at, strings.entry.width, block, &mut numbers);
        let (nulls, mut places) = (strings.nulls(block), [0; BLOCK]);
        tail.reserve(BLOCK * WIDE);
        let append = |number: u64, tail: &mut Tail<'_>| {
            let (value, len) = self.0.get(number as usize).ok_or(CodecError::Page("string outside its heap"))?;
            tail.put(value, usize::from(*len));
            Ok(tail.len as i32)
        };
        if rows == u64::MAX && nulls == 0 {
            for (place, number) in places.iter_mut().zip(&numbers) {
                *place = append(*number, tail)?;
            }
            ends.extend_from_slice(&places);
            return Ok(());
        }
        let mut left = rows;
        while left != 0 {
            let index = left.trailing_zeros() as usize;
            left &= left - 1;
            ends.push(if nulls >> index & 1 == 1 { tail.len as i32 } else { append(numbers[index], tail)? });
        }
        Ok(())
    }
}

impl ColumnArea<'_> {
    /// Appends the values of these rows of any other column to `bytes`, CHAR with its trailing blanks, and behind each the length of `bytes` to `ends`. NULL
    /// rows have no bytes. Values that are large-value references are given by their 16 bytes; see [`ColumnArea::large`].
    ///
    /// # Errors
    /// When the area is damaged, or `bytes` would be longer than `bytes_max` (or 2 GB); `ends` and `bytes` are then as they were.
    ///
    /// # Panics
    /// As [`ColumnArea::ints`].
    pub fn strings(
        &self,
        column: usize,
        rows: Range<usize>,
        ends: &mut Vec<i32>,
        bytes: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<(), CodecError> {
        self.check_rows(&rows);
        let blocks = (rows.start / BLOCK..rows.end.div_ceil(BLOCK)).map(|block| {
            let before = rows.start.saturating_sub(block * BLOCK);
            let behind = ((block + 1) * BLOCK).saturating_sub(rows.end);
            // Before and behind are less than a block, or the block is not one of the range.
            (block, u64::MAX << before & u64::MAX >> behind)
        });
        self.append_strings(column, rows.len(), blocks, ends, bytes, bytes_max)
    }

    /// As [`ColumnArea::strings`], for the selected rows.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As [`ColumnArea::ints_selected`], but for columns that are not integer ones.
    pub fn strings_selected(
        &self,
        column: usize,
        selection: &Bitmap,
        ends: &mut Vec<i32>,
        bytes: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<(), CodecError> {
        self.check_selection(selection);
        let blocks = selection.words().iter().copied().enumerate().filter(|(_, rows)| *rows != 0);
        self.append_strings(column, selection.count_ones(), blocks, ends, bytes, bytes_max)
    }

    /// `blocks`: the number of each block of 64 rows, and a bit for each of its rows; `count` of them are set.
    fn append_strings(
        &self,
        column: usize,
        count: usize,
        blocks: impl Iterator<Item = (usize, u64)>,
        ends: &mut Vec<i32>,
        bytes: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<(), CodecError> {
        let before = (ends.len(), bytes.len());
        let result = self.try_strings(column, count, blocks, ends, bytes, bytes_max.min(i32::MAX as usize));
        if result.is_err() {
            ends.truncate(before.0);
            bytes.truncate(before.1);
        }
        result
    }

    fn try_strings(
        &self,
        column: usize,
        count: usize,
        mut blocks: impl Iterator<Item = (usize, u64)>,
        ends: &mut Vec<i32>,
        bytes: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<(), CodecError> {
        let class = self.schema.columns[column].class;
        let strings = self.strings_of(column);
        ends.reserve(count);
        if strings.has_dictionary()
            && strings.heap.count <= count
            && !strings.has_large()
            && let Some(values) = Values::read(&strings, class)?
        {
            let mut tail = Tail::new(bytes);
            return blocks.try_for_each(|(block, rows)| {
                values.append(&strings, block, rows, &mut tail, ends)?;
                check_len(tail.len, bytes_max)
            });
        }
        let in_one_pass = !strings.has_dictionary() && !strings.has_large() && matches!(class, Class::Variable { chars: None });
        let mut lengths = [0; BLOCK_CODES];
        blocks.try_for_each(|(block, rows)| {
            let from_the_first = rows & rows.wrapping_add(1) == 0;
            if in_one_pass && from_the_first && strings.nulls(block) & rows == 0 {
                let count = rows.count_ones() as usize;
                if strings.heap.append_block(block, count, &mut lengths, (ends, bytes))? {
                    return check_len(bytes.len(), bytes_max);
                }
            }
            let mut left = rows;
            while left != 0 {
                let row = block * BLOCK + left.trailing_zeros() as usize;
                left &= left - 1;
                if !strings.is_null(row) {
                    append_value(&strings, class, strings.index(row), strings.is_large(row), bytes)?;
                }
                check_len(bytes.len(), bytes_max)?;
                ends.push(bytes.len() as i32);
            }
            Ok(())
        })
    }
}

fn check_len(len: usize, bytes_max: usize) -> Result<(), CodecError> {
    if len > bytes_max { Err(CodecError::Page("strings longer than permitted")) } else { Ok(()) }
}

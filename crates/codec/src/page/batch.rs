//! Many rows of a column at once, in the form of Arrow's arrays: integers and validity.

use std::ops::Range;

use super::area::ColumnArea;
use super::bitmap::{Bitmap, bits_at};
use super::bits::{BLOCK, bit, unpack, unpack_block};
use super::int_rows::{SLOPE_BITS, on_line};
use super::ints::{Ints, Model, entry_of};

/// Below so many selected rows of a block their values are read one by one.
const SPARSE: u32 = 6;

/// What an integer column is read as: the low bytes of its two's complement, or the floating-point number of these bits.
pub trait PageInt: Copy + Default {
    /// From the value as [`ColumnArea::int`] gives it.
    fn from_int(value: i64) -> Self;
}

macro_rules! page_int {
    ($($int:ty)*) => { $(impl PageInt for $int {
        #[inline(always)]
        fn from_int(value: i64) -> Self {
            value as $int
        }
    })* };
}

page_int!(i8 i16 i32 i64 i128);

impl PageInt for f32 {
    #[inline(always)]
    fn from_int(value: i64) -> Self {
        f32::from_bits(value as u32)
    }
}

impl PageInt for f64 {
    #[inline(always)]
    fn from_int(value: i64) -> Self {
        f64::from_bits(value as u64)
    }
}

impl Ints<'_> {
    /// The packed numbers of the rows 64 `block` to 64 `block` + 63, exceptions in their places. Those behind the last row are undefined.
    #[inline]
    pub(super) fn numbers(&self, block: usize, out: &mut [u64; BLOCK]) {
        unpack_block(self.area, self.at, self.width, block, out);
        if let Some(exceptions) = &self.exceptions {
            let first = block * BLOCK;
            let from = exceptions.position(self.area, first);
            for index in from..exceptions.count {
                let Some(number) = exceptions.row(self.area, index).checked_sub(first).and_then(|place| out.get_mut(place)) else { break };
                *number = exceptions.number(self.area, index);
            }
        }
    }

    /// The values of the rows of a block; those of NULL rows are something.
    #[inline]
    pub(super) fn values(&self, block: usize, out: &mut [i64; BLOCK]) {
        let mut numbers = [0; BLOCK];
        self.numbers(block, &mut numbers);
        let each = out.iter_mut().zip(&numbers);
        let base = self.base;
        match self.model {
            Model::Null => out.fill(0),
            Model::Frame => each.for_each(|(value, number)| *value = base.wrapping_add(*number as i64)),
            Model::Multiple { factor } => each.for_each(|(value, number)| *value = base.wrapping_add(number.wrapping_mul(factor) as i64)),
            Model::Linear { slope } => {
                let mut line = slope.wrapping_mul((block * BLOCK) as i64);
                for (value, number) in each {
                    *value = base.wrapping_add(line >> SLOPE_BITS).wrapping_add(*number as i64);
                    line = line.wrapping_add(slope);
                }
                debug_assert_eq!(line >> SLOPE_BITS, on_line(slope, (block + 1) * BLOCK));
            }
            Model::Dictionary { at, count, width } => {
                each.for_each(|(value, number)| {
                    *value = base.wrapping_add(unpack(self.area, at, width, entry_of(*number, count)) as i64);
                });
            }
            Model::Difference { partner } => {
                let partner = Ints::of(self.area, partner);
                // A difference to a difference is not one that was checked; it ends here.
                if !matches!(partner.model, Model::Difference { .. }) {
                    partner.values(block, out);
                }
                out.iter_mut().zip(&numbers).for_each(|(value, number)| *value = value.wrapping_add(base).wrapping_add(*number as i64));
            }
        }
    }
}

impl ColumnArea<'_> {
    /// # Panics
    /// When the rows do not exist.
    pub(super) fn check_rows(&self, rows: &Range<usize>) {
        assert!(rows.start <= rows.end && rows.end <= self.rows(), "rows {rows:?} of {}", self.rows());
    }

    /// Appends a bit for each of these rows: set when the value is not NULL. Returns how many are NULL.
    ///
    /// # Panics
    /// When there is no such column or the rows do not exist.
    pub fn validity(&self, column: usize, rows: Range<usize>, out: &mut Bitmap) -> usize {
        self.check_rows(&rows);
        let (nulls_at, all_null) = self.nulls_of(column);
        if all_null || nulls_at.is_none() {
            out.append(rows.len(), !all_null);
            return if all_null { rows.len() } else { 0 };
        }
        let mut count = 0;
        for first in rows.clone().step_by(64) {
            let bits = 64.min(rows.end - first);
            let nulls = nulls_at.map_or(0, |at| bits_at(self.bytes, at, first)) & u64::MAX >> (64 - bits);
            count += nulls.count_ones() as usize;
            out.append_word(!nulls, bits);
        }
        count
    }

    /// Appends a bit for each selected row: set when the value is not NULL. Returns how many are NULL.
    ///
    /// # Panics
    /// When there is no such column, or the selection has not a bit for each row.
    pub fn validity_selected(&self, column: usize, selection: &Bitmap, out: &mut Bitmap) -> usize {
        self.check_selection(selection);
        let count = selection.count_ones();
        let (nulls_at, all_null) = self.nulls_of(column);
        let Some(at) = nulls_at.filter(|_| !all_null) else {
            out.append(count, !all_null);
            return if all_null { count } else { 0 };
        };
        let mut nulls = 0;
        for row in selection.ones() {
            let null = bit(self.bytes, at, row);
            nulls += usize::from(null);
            out.append(1, !null);
        }
        nulls
    }

    /// Offset of the bitmap of NULL rows; and are all NULL?
    pub(super) fn nulls_of(&self, column: usize) -> (Option<usize>, bool) {
        let entry = super::layout::Entry::read(self.bytes, column);
        (entry.nulls_at(self.rows()), entry.kind() == super::layout::Kind::Null)
    }

    /// Appends the values of these rows of an integer column; those of NULL rows are something.
    ///
    /// # Panics
    /// When there is no such column, it is not an integer one, or the rows do not exist.
    pub fn ints<T: PageInt>(&self, column: usize, rows: Range<usize>, out: &mut Vec<T>) {
        self.check_rows(&rows);
        let ints = self.ints_of(column);
        out.reserve(rows.len());
        let (mut numbers, mut block) = ([0; BLOCK], [0; BLOCK]);
        let mut first = rows.start;
        while first < rows.end {
            let number = first / BLOCK;
            let end = rows.end.min((number + 1) * BLOCK);
            let part = first - number * BLOCK..end - number * BLOCK;
            if let Model::Frame = ints.model {
                // What most columns are, without a step between.
                ints.numbers(number, &mut numbers);
                out.extend(numbers[part].iter().map(|number| T::from_int(ints.base.wrapping_add(*number as i64))));
            } else {
                ints.values(number, &mut block);
                out.extend(block[part].iter().map(|value| T::from_int(*value)));
            }
            first = end;
        }
    }

    /// Appends the values of the selected rows of an integer column; those of NULL rows are something.
    ///
    /// # Panics
    /// When there is no such column, it is not an integer one, or the selection has not a bit for each row.
    pub fn ints_selected<T: PageInt>(&self, column: usize, selection: &Bitmap, out: &mut Vec<T>) {
        self.check_selection(selection);
        let ints = self.ints_of(column);
        let mut block = [0; BLOCK];
        for (number, word) in selection.words().iter().enumerate() {
            let mut left = *word;
            if left.count_ones() < SPARSE {
                while left != 0 {
                    let row = number * BLOCK + left.trailing_zeros() as usize;
                    out.push(T::from_int(self.int(column, row).unwrap_or_default()));
                    left &= left - 1;
                }
                continue;
            }
            ints.values(number, &mut block);
            while left != 0 {
                out.push(T::from_int(block[left.trailing_zeros() as usize]));
                left &= left - 1;
            }
        }
    }

    /// Appends a bit for each of these rows: set when the value is a large-value reference.
    ///
    /// # Panics
    /// As [`ColumnArea::validity`].
    pub fn large(&self, column: usize, rows: Range<usize>, out: &mut Bitmap) {
        self.check_rows(&rows);
        let entry = super::layout::Entry::read(self.bytes, column);
        for first in rows.clone().step_by(64) {
            let large = entry.large_at(self.rows()).map_or(0, |at| bits_at(self.bytes, at, first));
            out.append_word(large, 64.min(rows.end - first));
        }
    }

    /// Appends a bit for each selected row: set when the value is a large-value reference.
    ///
    /// # Panics
    /// As [`ColumnArea::validity_selected`].
    pub fn large_selected(&self, column: usize, selection: &Bitmap, out: &mut Bitmap) {
        self.check_selection(selection);
        match super::layout::Entry::read(self.bytes, column).large_at(self.rows()) {
            None => out.append(selection.count_ones(), false),
            Some(at) => selection.ones().for_each(|row| out.append(1, bit(self.bytes, at, row))),
        }
    }
}

//! Collects the values of an integer column and encodes the first n of them.
//!
//! A row that is NULL repeats the value before it (the first ones, the one after): so NULLs cost nothing but their bit, and every row has a value that other
//! columns can be differences to. What is chosen for n rows depends on these rows alone.

use std::ops::Range;

use super::bits::{bits_for, pack, packed_len};
use super::encoder::Parts;
use super::layout::{EXCEPTIONS, Entry, Kind, NULLS, OUTSIDE};
use super::nulls::RowBits;
use super::numbers::{Packing, extremes, sample_bits};

/// More distinct integers make no dictionary.
const DISTINCT_MAX: usize = 512;
const SLOT_BITS: u32 = 10;
/// When so many rows have hardly a value twice, no more are compared.
pub(super) const PROBE_ROWS: usize = 128;
/// Distinct values that are hardly one twice.
pub(super) const PROBE_DISTINCT: usize = PROBE_ROWS * 15 / 16;
const _: () = assert!(DISTINCT_MAX * 2 <= 1 << SLOT_BITS);

/// Fractional bits of a slope.
pub(super) const SLOPE_BITS: u32 = 16;
/// Steeper lines are not tried; up to here slope times row is below 2^63.
const SLOPE_MAX: i128 = 1 << 50;

/// Where a line is at `row`.
#[inline(always)]
pub(super) fn on_line(slope: i64, row: usize) -> i64 {
    slope.wrapping_mul(row as i64) >> SLOPE_BITS
}

/// What is known of the values up to a row.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Number of the row's value.
    id: u16,
    /// Distinct values up to and with it.
    count: u16,
}

/// The distinct values, in order of first occurrence.
#[derive(Debug)]
struct Distinct {
    values: Vec<i64>,
    /// By row. Ends where there were too many.
    rows: Vec<Seen>,
    /// Hash table: number of a value + 1.
    slots: Vec<u16>,
}

impl Distinct {
    fn new() -> Self {
        Self { values: Vec::new(), rows: Vec::new(), slots: vec![0; 1 << SLOT_BITS] }
    }

    fn clear(&mut self) {
        self.values.clear();
        self.rows.clear();
        self.slots.fill(0);
    }

    /// The values of rows from `row` on, which is the number of rows so far.
    #[inline]
    fn extend(&mut self, values: &[i64], row: usize) {
        if self.rows.len() < row {
            return;
        }
        self.rows.reserve(values.len());
        for value in values {
            if self.rows.len() == PROBE_ROWS && self.values.len() > PROBE_DISTINCT {
                return;
            }
            let Some(id) = self.id(*value) else { return };
            self.rows.push(Seen { id, count: self.values.len() as u16 });
        }
    }

    /// Number of a value; a new one when it is not known. `None` when there are too many.
    #[inline]
    fn id(&mut self, value: i64) -> Option<u16> {
        let mut slot = ((value as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - SLOT_BITS)) as usize;
        loop {
            match self.slots[slot] {
                0 if self.values.len() == DISTINCT_MAX => return None,
                0 => {
                    self.values.push(value);
                    self.slots[slot] = self.values.len() as u16;
                    return Some(self.values.len() as u16 - 1);
                }
                id if self.values[usize::from(id) - 1] == value => return Some(id - 1),
                _ => slot = (slot + 1) % (1 << SLOT_BITS),
            }
        }
    }

    /// The value of the row before once more.
    fn repeat(&mut self, row: usize) {
        if self.rows.len() == row {
            self.rows.push(self.rows.last().copied().unwrap_or(Seen { id: 0, count: 1 }));
        }
    }
}

/// The values of an integer column, one a row.
#[derive(Debug)]
pub(super) struct IntRows {
    pub(super) values: Vec<i64>,
    pub(super) nulls: RowBits,
    nullable: bool,
    all_null: bool,
    distinct: Distinct,
}

/// How a column's packed numbers become values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Model {
    Null,
    Frame,
    Multiple { divisor: Divisor },
    Linear { slope: i64 },
    Dictionary { count: usize },
    Difference { partner: usize },
}

/// How the first rows of a column are encoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct IntPlan {
    model: Model,
    /// Of the numbers; of the distinct values when there is a dictionary.
    packing: Packing,
    nulls: bool,
    /// Bytes of parameters behind the directory.
    pub(super) outside_bytes: usize,
    /// Bytes of bitmaps and numbers.
    pub(super) data_bytes: usize,
}

impl IntPlan {
    fn new(model: Model, packing: Packing, rows: usize) -> Self {
        let (kind, inline) = match model {
            Model::Null => (Kind::Null, true),
            Model::Frame => (Kind::Frame, i32::try_from(packing.base).is_ok()),
            Model::Multiple { .. } => (Kind::Multiple, false),
            Model::Linear { .. } => (Kind::Linear, false),
            Model::Dictionary { .. } => (Kind::Dictionary, false),
            Model::Difference { .. } => (Kind::Difference, i16::try_from(packing.base).is_ok()),
        };
        let outside_bytes = if inline { 0 } else { kind.outside_bytes() };
        let data_bytes = match model {
            Model::Null => 0,
            Model::Dictionary { count } => packed_len(rows, index_bits(count)) + packed_len(count, packing.width),
            _ => packing.len(rows),
        };
        Self { model, packing, nulls: false, outside_bytes, data_bytes }
    }

    fn bytes(&self) -> usize {
        self.outside_bytes + self.data_bytes
    }

    /// May other columns be differences to this one?
    pub(super) fn may_be_partner(&self) -> bool {
        !matches!(self.model, Model::Null | Model::Difference { .. })
    }

    /// Bits a row.
    fn row_bits(&self) -> u32 {
        if let Model::Dictionary { count } = self.model { index_bits(count) } else { self.packing.width }
    }

    /// Name of the encoding and bits a row.
    pub(super) fn describe(&self) -> (Kind, u32) {
        (self.kind(), self.row_bits())
    }

    fn kind(&self) -> Kind {
        match self.model {
            Model::Null => Kind::Null,
            Model::Frame => Kind::Frame,
            Model::Multiple { .. } => Kind::Multiple,
            Model::Linear { .. } => Kind::Linear,
            Model::Dictionary { .. } => Kind::Dictionary,
            Model::Difference { .. } => Kind::Difference,
        }
    }
}

/// Bits of the number of one of `count` things.
pub(super) fn index_bits(count: usize) -> u32 {
    bits_for(count.saturating_sub(1) as u64)
}

impl IntRows {
    pub(super) fn new(nullable: bool) -> Self {
        Self { values: Vec::new(), nulls: RowBits::default(), nullable, all_null: true, distinct: Distinct::new() }
    }

    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.nulls.clear();
        self.all_null = true;
        self.distinct.clear();
    }

    #[inline]
    pub(super) fn push(&mut self, value: i64) {
        self.extend(std::iter::once(value));
    }

    /// Rows with these values.
    #[inline]
    pub(super) fn extend(&mut self, values: impl Iterator<Item = i64>) {
        let row = self.values.len();
        self.values.extend(values);
        let (before, values) = self.values.split_at_mut(row);
        if let (true, Some(first)) = (self.nullable, values.first()) {
            if self.all_null {
                before.fill(*first);
                self.all_null = false;
            }
            self.nulls.push_unset(values.len());
        }
        self.distinct.extend(values, row);
    }

    /// Some of other rows, which have these values where they are not NULL.
    pub(super) fn push_rows(&mut self, values: &[i64], nulls: &RowBits, rows: Range<usize>) {
        if !self.nullable || nulls.count(rows.end) == nulls.count(rows.start) {
            return self.extend(values[rows].iter().copied());
        }
        for row in rows {
            if nulls.get(row) { self.push_null() } else { self.push(values[row]) }
        }
    }

    pub(super) fn push_null(&mut self) {
        let row = self.values.len();
        debug_assert!(self.nullable);
        self.nulls.push(true);
        self.distinct.repeat(row);
        self.values.push(self.values.last().copied().unwrap_or(0));
    }

    /// The smallest encoding of the first `rows` rows (at least one). `partners` are earlier columns this one may be a difference to; `work` is room to work in.
    pub(super) fn plan<'c>(
        &self,
        rows: usize,
        partners: impl Iterator<Item = (usize, &'c IntRows)>,
        work: &mut (Vec<i64>, Vec<i64>),
    ) -> IntPlan {
        let nulls = if self.nullable { self.nulls.count(rows) } else { 0 };
        if nulls == rows {
            return IntPlan::new(Model::Null, Packing::default(), rows);
        }
        let mut best = self.smallest(rows, partners, work);
        if nulls > 0 {
            best.nulls = true;
            best.data_bytes += rows.div_ceil(8);
        }
        best
    }

    fn smallest<'c>(
        &self,
        rows: usize,
        partners: impl Iterator<Item = (usize, &'c IntRows)>,
        (numbers, sorted): &mut (Vec<i64>, Vec<i64>),
    ) -> IntPlan {
        let values = &self.values[..rows];
        let mut best = IntPlan::new(Model::Frame, Packing::smallest(values, sorted), rows);
        if best.data_bytes == 0 {
            return best;
        }
        let consider = |best: &mut IntPlan, other: IntPlan| {
            if other.bytes() < best.bytes() {
                *best = other;
            }
        };
        let (least, most) = extremes(values);
        if let Some(divisor) = common_divisor(values, least) {
            let width = bits_for(most.wrapping_sub(least) as u64 / divisor.value());
            consider(&mut best, IntPlan::new(Model::Multiple { divisor }, Packing { base: least, width, ..Packing::default() }, rows));
        }
        if let Some(count) = self.distinct.rows.get(rows - 1).map(|seen| usize::from(seen.count)) {
            let packing = Packing { base: least, width: bits_for(most.wrapping_sub(least) as u64), ..Packing::default() };
            consider(&mut best, IntPlan::new(Model::Dictionary { count }, packing, rows));
        }
        if let Some(slope) = slope(values)
            && sample_bits(rows, |row| values[row].wrapping_sub(on_line(slope, row))) < best.row_bits()
        {
            numbers.clear();
            numbers.extend(values.iter().enumerate().map(|(row, value)| value.wrapping_sub(on_line(slope, row))));
            consider(&mut best, IntPlan::new(Model::Linear { slope }, Packing::smallest(numbers, sorted), rows));
        }
        for (partner, of) in partners {
            if sample_bits(rows, |row| values[row].wrapping_sub(of.values[row])) < best.row_bits() {
                self.differences(of, rows, numbers);
                consider(&mut best, IntPlan::new(Model::Difference { partner }, Packing::smallest(numbers, sorted), rows));
            }
        }
        best
    }

    /// Differences to another column; NULL rows repeat one, as nobody reads theirs.
    fn differences(&self, partner: &IntRows, rows: usize, out: &mut Vec<i64>) {
        out.clear();
        out.extend(self.values[..rows].iter().zip(&partner.values).map(|(value, partner)| value.wrapping_sub(*partner)));
        if self.nullable && self.nulls.count(rows) > 0 {
            let mut last = (0..rows).find(|row| !self.nulls.get(*row)).map_or(0, |row| out[row]);
            for (row, difference) in out.iter_mut().enumerate() {
                if self.nulls.get(row) {
                    *difference = last;
                }
                last = *difference;
            }
        }
    }

    /// Writes the first `rows` rows as planned and returns the column's entry. `column` gives the rows of a partner.
    pub(super) fn write<'c>(&self, plan: &IntPlan, rows: usize, column: impl Fn(usize) -> &'c IntRows, parts: &mut Parts) -> Entry {
        let values = &self.values[..rows];
        let Packing { base, width, .. } = plan.packing;
        let outside = parts.outside_at();
        let mut flags = if plan.nulls { NULLS } else { 0 } | if plan.packing.exceptions > 0 { EXCEPTIONS } else { 0 };
        if plan.nulls {
            self.nulls.write(rows, &mut parts.data);
        }
        let at = parts.data_at();
        let mut inline = 0;
        if plan.outside_bytes > 0 {
            flags |= OUTSIDE;
            inline = outside as u32;
            parts.outside.extend_from_slice(&base.to_le_bytes());
        }
        match plan.model {
            Model::Null => {}
            Model::Frame => {
                if plan.outside_bytes == 0 {
                    inline = base as i32 as u32;
                }
                plan.packing.write(values.iter().copied(), &mut parts.data);
            }
            Model::Multiple { divisor } => {
                parts.outside.extend_from_slice(&divisor.value().to_le_bytes());
                pack(values.iter().map(|value| divisor.quotient(value.wrapping_sub(base) as u64)), width, &mut parts.data);
            }
            Model::Linear { slope } => {
                parts.outside.extend_from_slice(&slope.to_le_bytes());
                let numbers = values.iter().enumerate().map(|(row, value)| value.wrapping_sub(on_line(slope, row)));
                plan.packing.write(numbers, &mut parts.data);
            }
            Model::Dictionary { count } => {
                pack(self.distinct.rows[..rows].iter().map(|seen| u64::from(seen.id)), plan.row_bits(), &mut parts.data);
                parts.outside.extend_from_slice(&(parts.data_at() as u16).to_le_bytes());
                parts.outside.extend_from_slice(&(count as u16).to_le_bytes());
                parts.outside.extend_from_slice(&[width as u8, 0]);
                pack(self.distinct.values[..count].iter().map(|value| value.wrapping_sub(base) as u64), width, &mut parts.data);
            }
            Model::Difference { partner } => {
                if plan.outside_bytes == 0 {
                    inline = u32::from(base as i16 as u16) | (partner as u32) << 16;
                } else {
                    parts.outside.extend_from_slice(&(partner as u16).to_le_bytes());
                }
                let mut numbers = Vec::new();
                self.differences(column(partner), rows, &mut numbers);
                plan.packing.write(numbers.iter().copied(), &mut parts.data);
            }
        }
        debug_assert_eq!(parts.outside_at() - outside, plan.outside_bytes);
        Entry::new(plan.kind(), flags, plan.row_bits(), at, inline)
    }
}

/// Slope of the line from the first to the last value, with [`SLOPE_BITS`] fractional bits.
fn slope(values: &[i64]) -> Option<i64> {
    let rise = i128::from(*values.last()?) - i128::from(*values.first()?);
    let slope = (rise << SLOPE_BITS) / (values.len() as i128 - 1).max(1);
    (values.len() > 2 && slope != 0 && slope.abs() <= SLOPE_MAX).then_some(slope as i64)
}

/// Divides multiples of a number exactly, without dividing: by the inverse of its odd part modulo 2^64 (Granlund, Montgomery 1994).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Divisor {
    inverse: u64,
    shift: u32,
    most: u64,
    value: u64,
}

impl Divisor {
    /// `value` is not 0.
    fn new(value: u64) -> Self {
        let shift = value.trailing_zeros();
        let odd = value >> shift;
        // Each step doubles the number of right bits; an odd number is its own inverse in three.
        let inverse = (0..5).fold(odd, |inverse, _| inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse))));
        Self { inverse, shift, most: u64::MAX / value, value }
    }

    fn value(self) -> u64 {
        self.value
    }

    /// `number` divided; more than `most` when it is no multiple.
    #[inline]
    fn quotient(self, number: u64) -> u64 {
        number.wrapping_mul(self.inverse).rotate_right(self.shift)
    }
}

/// The greatest number above 1 that divides all differences from `least`.
fn common_divisor(values: &[i64], least: i64) -> Option<Divisor> {
    let mut numbers = values.iter().map(|value| value.wrapping_sub(least) as u64);
    let mut divisor = Divisor::new(numbers.find(|number| *number > 0)?);
    for number in numbers {
        if divisor.quotient(number) > divisor.most {
            divisor = Divisor::new(gcd(divisor.value, number));
        }
        if divisor.value == 1 {
            return None;
        }
    }
    (divisor.value > 1).then_some(divisor)
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisors() {
        for value in [1, 2, 3, 7, 10, 48, 100, 1 << 40, 999_983, u64::MAX, 1 << 63] {
            let divisor = Divisor::new(value);
            for number in (0..2000).chain([u64::MAX, u64::MAX / 3, value, value.saturating_mul(5)]) {
                let quotient = divisor.quotient(number);
                assert_eq!(quotient <= divisor.most, number % value == 0, "{number} by {value}");
                assert!(number % value != 0 || quotient == number / value);
            }
        }
        assert_eq!(common_divisor(&[500, 700, 500, 1200, 100], 100).unwrap().value(), 100);
        assert_eq!(common_divisor(&[500, 501], 500), None);
        assert_eq!(common_divisor(&[500, 500], 500), None);
    }
}

//! One value of an integer column.
//!
//! Nothing here panics, whatever the bytes: what lies outside the area reads as zero.

use super::bits::{bit, load, load_u16, mask, packed_len, unpack};
use super::int_rows::on_line;
use super::layout::{EXCEPTION_HEADER_BYTES, EXCEPTIONS, Entry, Kind, NULLS, OUTSIDE, header_rows};

/// How packed numbers become values.
#[derive(Clone, Copy, Debug)]
pub(super) enum Model {
    Null,
    Frame,
    Multiple { factor: u64 },
    Linear { slope: i64 },
    Dictionary { at: usize, count: usize, width: u32 },
    Difference { partner: usize },
}

/// An integer column of an area.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ints<'a> {
    pub(super) area: &'a [u8],
    pub(super) at: usize,
    pub(super) width: u32,
    pub(super) base: i64,
    pub(super) model: Model,
    pub(super) nulls_at: Option<usize>,
    pub(super) exceptions: Option<Exceptions>,
}

/// The list of numbers that do not fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exceptions {
    /// Offset of the rows.
    pub(super) at: usize,
    pub(super) count: usize,
    /// Bytes of a number.
    pub(super) bytes: usize,
}

impl Exceptions {
    /// The list that starts at `at`.
    pub(super) fn read(area: &[u8], at: usize) -> Self {
        let bytes = area.get(at + 2).map_or(1, |bytes| usize::from(*bytes).clamp(1, 8));
        Self { at: at + EXCEPTION_HEADER_BYTES, count: usize::from(load_u16(area, at)), bytes }
    }

    #[inline]
    pub(super) fn row(&self, area: &[u8], index: usize) -> usize {
        usize::from(load_u16(area, self.at + 2 * index))
    }

    /// Offset of a number.
    pub(super) fn number_at(&self, index: usize) -> usize {
        self.at + 2 * self.count + self.bytes * index
    }

    pub(super) fn number(&self, area: &[u8], index: usize) -> u64 {
        let shift = 64 - 8 * self.bytes as u32;
        ((load(area, self.number_at(index)) << shift) as i64 >> shift) as u64
    }

    /// Index of the first exception of `row` or a later one.
    pub(super) fn position(&self, area: &[u8], row: usize) -> usize {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.row(area, middle) < row { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Index of the exception of `row`.
    pub(super) fn find(&self, area: &[u8], row: usize) -> Option<usize> {
        let index = self.position(area, row);
        (index < self.count && self.row(area, index) == row).then_some(index)
    }
}

/// Which entry of a dictionary of `count` a number stands for; the first one when it has none.
#[inline(always)]
pub(super) fn entry_of(number: u64, count: usize) -> usize {
    if number < count as u64 { number as usize } else { 0 }
}

/// A value of an integer column; `None` is NULL.
#[inline(always)]
pub(super) fn int(area: &[u8], column: usize, row: usize) -> Option<i64> {
    let entry = Entry::read(area, column);
    // What most columns are.
    if entry.is_plain_frame() {
        return Some(i64::from(entry.parameters as i32).wrapping_add(unpack(area, entry.at, entry.width, row) as i64));
    }
    int_of_any(area, column, row)
}

fn int_of_any(area: &[u8], column: usize, row: usize) -> Option<i64> {
    let entry = Entry::read(area, column);
    if entry.has(NULLS | EXCEPTIONS) {
        let ints = Ints::of(area, column);
        return if ints.is_null(row) { None } else { Some(ints.value(row)) };
    }
    let number = unpack(area, entry.at, entry.width, row) as i64;
    let outside = entry.outside();
    Some(match entry.kind() {
        // As `own_value`, but nothing is looked at that the encoding does not have.
        Kind::Multiple => load(area, outside).wrapping_add((number as u64).wrapping_mul(load(area, outside + 8))) as i64,
        Kind::Linear => (load(area, outside) as i64).wrapping_add(on_line(load(area, outside + 8) as i64, row)).wrapping_add(number),
        Kind::Difference if !entry.has(OUTSIDE) => {
            let partner = Entry::read(area, (entry.parameters >> 16) as usize);
            let of = if partner.is_plain_frame() {
                i64::from(partner.parameters as i32).wrapping_add(unpack(area, partner.at, partner.width, row) as i64)
            } else {
                Ints::of(area, (entry.parameters >> 16) as usize).own_value(row)
            };
            of.wrapping_add(i64::from(entry.parameters as u16 as i16)).wrapping_add(number)
        }
        Kind::Frame | Kind::Dictionary | Kind::Difference => Ints::of(area, column).value(row),
        _ => return None,
    })
}

impl<'a> Ints<'a> {
    #[inline(always)]
    pub(super) fn of(area: &'a [u8], column: usize) -> Self {
        let entry = Entry::read(area, column);
        let rows = header_rows(area);
        let outside = entry.outside();
        let base = if entry.has(OUTSIDE) { load(area, outside) as i64 } else { i64::from(entry.parameters as i32) };
        let mut ints =
            Self { area, at: entry.at, width: entry.width, base, model: Model::Frame, nulls_at: entry.nulls_at(rows), exceptions: None };
        match entry.kind() {
            Kind::Frame => {}
            Kind::Multiple => ints.model = Model::Multiple { factor: load(area, outside + 8) },
            Kind::Linear => ints.model = Model::Linear { slope: load(area, outside + 8) as i64 },
            Kind::Dictionary => {
                let word = load(area, outside + 8);
                let (at, count) = (usize::from(word as u16), usize::from((word >> 16) as u16));
                ints.model = Model::Dictionary { at, count, width: ((word >> 32) as u8).min(64).into() };
            }
            Kind::Difference => {
                let partner = if entry.has(OUTSIDE) { load_u16(area, outside + 8) } else { (entry.parameters >> 16) as u16 };
                ints.model = Model::Difference { partner: partner.into() };
                if !entry.has(OUTSIDE) {
                    ints.base = i64::from(entry.parameters as u16 as i16);
                }
            }
            _ => ints.model = Model::Null,
        }
        if entry.has(EXCEPTIONS) {
            ints.exceptions = Some(Exceptions::read(area, entry.at + packed_len(rows, entry.width)));
        }
        ints
    }

    /// May any row be NULL?
    pub(super) fn has_nulls(&self) -> bool {
        self.nulls_at.is_some() || matches!(self.model, Model::Null)
    }

    #[inline(always)]
    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls_at.is_some_and(|at| bit(self.area, at, row)) || matches!(self.model, Model::Null)
    }

    /// The packed number of a row, or what replaces it.
    #[inline(always)]
    pub(super) fn number(&self, row: usize) -> u64 {
        if let Some(exceptions) = &self.exceptions
            && let Some(index) = exceptions.find(self.area, row)
        {
            return exceptions.number(self.area, index);
        }
        unpack(self.area, self.at, self.width, row)
    }

    /// The value of a row of a column that is not a difference; something when it is NULL.
    #[inline(always)]
    fn own_value(&self, row: usize) -> i64 {
        let number = self.number(row);
        self.base.wrapping_add(match self.model {
            Model::Null => 0,
            Model::Frame | Model::Difference { .. } => number as i64,
            Model::Multiple { factor } => number.wrapping_mul(factor) as i64,
            Model::Linear { slope } => on_line(slope, row).wrapping_add(number as i64),
            Model::Dictionary { at, count, width } => unpack(self.area, at, width, entry_of(number, count)) as i64,
        })
    }

    /// The value of a row; something when it is NULL.
    #[inline(always)]
    pub(super) fn value(&self, row: usize) -> i64 {
        let own = self.own_value(row);
        match self.model {
            Model::Difference { partner } => Ints::of(self.area, partner).own_value(row).wrapping_add(own),
            _ => own,
        }
    }

    /// The packed number that makes `value` of a row; `None` when none of `width` bits does. Not for dictionaries.
    pub(super) fn number_of(&self, value: i64, row: usize) -> Option<u64> {
        let rest = value.wrapping_sub(self.base);
        match self.model {
            Model::Null | Model::Dictionary { .. } => None,
            Model::Frame => Some(rest as u64),
            Model::Multiple { factor } => (factor > 0 && (rest as u64).is_multiple_of(factor)).then(|| rest as u64 / factor),
            Model::Linear { slope } => Some(rest.wrapping_sub(on_line(slope, row)) as u64),
            Model::Difference { partner } => Some(rest.wrapping_sub(Ints::of(self.area, partner).own_value(row)) as u64),
        }
    }

    /// Does a number fit the bits of a packed one?
    pub(super) fn fits(&self, number: u64) -> bool {
        number <= mask(self.width)
    }
}

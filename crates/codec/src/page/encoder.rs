//! Rows to an area.
//!
//! Rows are taken in one by one, column by column; what they would take is planned for any first n of them, exactly, before anything is written. The same
//! rows give the same bytes.

use std::sync::Arc;

use super::bits::load;
use super::int_rows::{IntPlan, IntRows};
use super::layout::{AREA_BYTES_MAX, ENTRY_BYTES, HEADER_BYTES, Kind, ROWS_MAX};
use super::schema::{Class, PageColumn, PageSchema};
use super::spans::Spans;
use super::string_rows::{CodesOf, StringPlan, StringRows};
use crate::CodecError;
use crate::row::Encoder;

/// Set in an end offset of a record when the value is a large-value reference.
pub(super) const LARGE_BIT: u16 = 0x8000;

/// Lengths tried until the most rows that fit are known well enough.
const TRIALS_MAX: usize = 18;
/// A column may be the difference to one of so many columns before it: with all of them, the time to plan a page would grow with the square of their number.
const PARTNERS_BEFORE: usize = 16;
/// After so many trials the lengths lie on no line, and halving finds the way.
const TRIALS_ON_A_LINE: usize = 5;

/// The two growing parts of an area behind its directory, and where they start in it.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) outside: Vec<u8>,
    pub(super) data: Vec<u8>,
    outside_start: usize,
    data_start: usize,
}

impl Parts {
    /// Offset in the area of what is appended to `outside` next.
    pub(super) fn outside_at(&self) -> usize {
        self.outside_start + self.outside.len()
    }

    /// Offset in the area of what is appended to `data` next.
    pub(super) fn data_at(&self) -> usize {
        self.data_start + self.data.len()
    }
}

#[derive(Debug)]
pub(super) enum Rows {
    Ints(IntRows),
    Strings(StringRows),
}

impl Rows {
    fn of(schema: &PageSchema) -> Vec<Rows> {
        let columns = schema.columns.iter().map(|column| match column.class {
            Class::Int { .. } => Rows::Ints(IntRows::new(column.null_bit.is_some())),
            Class::Fixed { .. } | Class::Variable { .. } => Rows::Strings(StringRows::new(column.null_bit.is_some())),
        });
        columns.collect()
    }

    fn clear(&mut self) {
        match self {
            Rows::Ints(rows) => rows.clear(),
            Rows::Strings(rows) => rows.clear(),
        }
    }
}

#[derive(Debug)]
enum Plan {
    Ints(IntPlan),
    Strings(StringPlan),
}

impl Plan {
    fn outside_bytes(&self) -> usize {
        match self {
            Plan::Ints(plan) => plan.outside_bytes,
            Plan::Strings(plan) => plan.outside_bytes,
        }
    }

    fn bytes(&self) -> usize {
        ENTRY_BYTES
            + self.outside_bytes()
            + match self {
                Plan::Ints(plan) => plan.data_bytes,
                Plan::Strings(plan) => plan.data_bytes,
            }
    }

    fn describe(&self) -> (Kind, u32) {
        match self {
            Plan::Ints(plan) => plan.describe(),
            Plan::Strings(plan) => plan.describe(),
        }
    }
}

/// What a column takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnSize {
    /// Name of the encoding.
    pub encoding: &'static str,
    /// Bits a row of its packed numbers.
    pub bits: u32,
    /// Bytes, its part of the directory included.
    pub bytes: usize,
}

/// Collects rows and encodes the first n of them; reused from page to page.
#[derive(Debug)]
pub struct PageEncoder {
    pub(super) schema: Arc<PageSchema>,
    pub(super) codes: Option<Arc<Encoder>>,
    pub(super) columns: Vec<Rows>,
    /// The packed records, for those that stay when others are drained.
    records: Vec<u8>,
    record_ends: Vec<u32>,
    /// Of the first `planned` rows.
    plans: Vec<Plan>,
    planned: usize,
    /// Rows that fitted, or would have, the last time.
    fitted: usize,
    /// Rows from which on a look at the length is worthwhile.
    aim: usize,
    work: (Vec<i64>, Vec<i64>),
    spans: Spans,
    /// Room to work in when some rows stay.
    drained: Vec<Rows>,
}

impl PageEncoder {
    /// For rows of this schema. Without `codes`, no column is encoded by string codes; with them, reading needs their dictionary.
    #[must_use]
    pub fn new(schema: Arc<PageSchema>, codes: Option<Arc<Encoder>>) -> Self {
        Self {
            columns: Rows::of(&schema),
            schema,
            codes,
            records: Vec::new(),
            record_ends: Vec::new(),
            plans: Vec::new(),
            planned: 0,
            fitted: 0,
            aim: 1,
            work: Default::default(),
            spans: Spans::default(),
            drained: Vec::new(),
        }
    }

    /// How many rows it holds, up to [`ROWS_MAX`].
    #[must_use]
    pub fn rows(&self) -> usize {
        self.record_ends.len()
    }

    /// Bytes of the first `rows` records as they were pushed.
    ///
    /// # Panics
    /// When it holds fewer.
    #[must_use]
    pub fn record_bytes(&self, rows: usize) -> usize {
        rows.checked_sub(1).map_or(0, |last| self.record_ends[last] as usize)
    }

    /// A record that it holds, as it was pushed.
    ///
    /// # Panics
    /// When it holds fewer.
    #[must_use]
    pub fn held_record(&self, row: usize) -> &[u8] {
        &self.records[self.record_bytes(row)..self.record_bytes(row + 1)]
    }

    /// Bytes of the variable columns of the first `rows` rows, CHAR without trailing blanks.
    ///
    /// # Panics
    /// When it holds fewer.
    #[must_use]
    pub fn variable_bytes(&self, rows: usize) -> usize {
        let columns = self.schema.columns.iter().zip(&self.columns);
        columns
            .map(
                |(column, rows_of)| {
                    if let (Class::Variable { .. }, Rows::Strings(strings)) = (column.class, rows_of) { strings.bytes(rows) } else { 0 }
                },
            )
            .sum()
    }

    /// Takes in a packed record.
    ///
    /// # Errors
    /// When it is not a record of the schema; nothing is taken in then. That text is UTF-8 and values are in range is not looked at.
    ///
    /// # Panics
    /// When it holds [`ROWS_MAX`] rows.
    pub fn push(&mut self, record: &[u8]) -> Result<(), CodecError> {
        assert!(self.rows() < ROWS_MAX);
        self.spans.find(&self.schema, record)?;
        self.hold(record);
        let mut spans = self.spans.iter();
        for (column, rows) in self.schema.columns.iter().zip(&mut self.columns) {
            let null = is_null(column, record);
            match rows {
                Rows::Ints(rows) if null => rows.push_null(),
                Rows::Ints(rows) => rows.push(fixed_int(column, record)),
                Rows::Strings(rows) => {
                    let (start, end, large) = match column.class {
                        Class::Variable { .. } => spans.next().unwrap_or_default(),
                        Class::Int { width } | Class::Fixed { width } => (column.at, column.at + usize::from(width), false),
                    };
                    if null {
                        rows.push_null();
                    } else {
                        _ = rows.push(&record[start..end], large, self.codes.as_deref().map_or(CodesOf::Unknown, CodesOf::Encoder));
                    }
                }
            }
        }
        Ok(())
    }

    /// Keeps the record of a row that is taken in.
    pub(super) fn hold(&mut self, record: &[u8]) {
        self.records.extend_from_slice(record);
        self.record_ends.push(self.records.len() as u32);
        self.planned = 0;
    }

    /// Rows have come without records.
    pub(super) fn note_carried(&mut self, rows: usize) {
        self.record_ends.resize(self.record_ends.len() + rows, self.records.len() as u32);
        self.planned = 0;
    }

    /// Bytes of the area of the first `rows` rows; nothing is written.
    ///
    /// # Panics
    /// When it holds fewer, or `rows` is 0.
    pub fn len_of(&mut self, rows: usize) -> usize {
        self.plan(rows);
        HEADER_BYTES + self.plans.iter().map(Plan::bytes).sum::<usize>()
    }

    /// What each column takes in the area of the first `rows` rows.
    ///
    /// # Panics
    /// As [`PageEncoder::len_of`].
    pub fn column_sizes(&mut self, rows: usize) -> impl Iterator<Item = ColumnSize> {
        self.plan(rows);
        self.plans.iter().map(|plan| {
            let (kind, bits) = plan.describe();
            ColumnSize { encoding: kind.name(), bits, bytes: plan.bytes() }
        })
    }

    fn plan(&mut self, rows: usize) {
        assert!((1..=self.rows()).contains(&rows));
        if self.planned == rows {
            return;
        }
        self.plans.clear();
        for (number, column) in self.columns.iter().enumerate() {
            let plan = match column {
                Rows::Ints(ints) => {
                    let data_type = self.schema.columns[number].data_type;
                    let earlier = self.columns[..number].iter().zip(&self.plans).zip(&*self.schema.columns).enumerate();
                    let earlier = earlier.skip(number.saturating_sub(PARTNERS_BEFORE));
                    let partners = earlier.filter_map(|(partner, ((rows, plan), column))| match (rows, plan) {
                        (Rows::Ints(rows), Plan::Ints(plan)) if column.data_type == data_type && plan.may_be_partner() => {
                            Some((partner, rows))
                        }
                        _ => None,
                    });
                    Plan::Ints(ints.plan(rows, partners, &mut self.work))
                }
                Rows::Strings(strings) => Plan::Strings(strings.plan(rows, self.codes.is_some(), &mut self.work.0)),
            };
            self.plans.push(plan);
        }
        self.planned = rows;
    }

    /// So many rows it is to hold before [`PageEncoder::rows_that_fit`] is worth its time, which takes as long as encoding does: as many as the pages before had.
    #[must_use]
    pub fn rows_worth_a_trial(&self) -> usize {
        self.aim.min(ROWS_MAX)
    }

    /// How many of the rows it holds, of the first `rows_max`, fit into `room` bytes, with what so many rows take besides the area: as many as a few trials find. Not even
    /// one: 0.
    ///
    /// # Panics
    /// When `room` is above [`AREA_BYTES_MAX`].
    pub fn rows_that_fit(&mut self, room: usize, rows_max: usize, besides: impl Fn(usize) -> usize) -> usize {
        assert!(room <= AREA_BYTES_MAX);
        let held = self.rows().min(rows_max);
        // `fits` rows do, taking `bytes`; `too_many` do not, taking `too_long`.
        let (mut fits, mut bytes) = (0, HEADER_BYTES + ENTRY_BYTES * self.columns.len());
        let (mut too_many, mut too_long) = (held + 1, usize::MAX);
        // As many as the page before had, to begin with.
        let mut next = if self.fitted > 0 { self.fitted.min(held) } else { held };
        for trial in 1..=TRIALS_MAX {
            if next <= fits || next >= too_many {
                break;
            }
            let len = self.len_of(next) + besides(next);
            // What a row takes, as far as is known.
            let row_bytes = match (len <= room, trial) {
                (true, 1) => len.div_ceil(next),
                (true, _) if too_many > held => (len - bytes.min(len)).div_ceil(next - fits).max(1),
                (true, _) => too_long.saturating_sub(len).div_ceil(too_many - next).max(1),
                (false, _) => (len - bytes.min(len)).div_ceil(next - fits).max(1),
            };
            if len <= room {
                (fits, bytes) = (next, len);
                next = fits + (room - bytes) / row_bytes;
            } else {
                (too_many, too_long) = (next, len);
                next = too_many - (too_long - room).div_ceil(row_bytes).min(too_many);
            }
            next = next.clamp(fits, too_many - 1);
            if (next == fits || trial >= TRIALS_ON_A_LINE) && fits < held && too_many - fits > 2 + fits / 32 {
                next = if too_many > held { held } else { usize::midpoint(fits, too_many) };
            }
        }
        self.fitted = if fits == held { (fits * room / bytes.max(1)).min(ROWS_MAX) } else { fits };
        self.aim = self.fitted * 65 / 64 + 2;
        fits
    }

    /// Appends the area of the first `rows` rows to `out`; returns its length, that which [`PageEncoder::len_of`] tells. `None`, and `out` as it was, when that is above
    /// [`AREA_BYTES_MAX`].
    ///
    /// # Panics
    /// As [`PageEncoder::len_of`].
    pub fn encode(&mut self, rows: usize, out: &mut Vec<u8>) -> Option<usize> {
        let len = self.len_of(rows);
        if len > AREA_BYTES_MAX {
            return None;
        }
        let start = out.len();
        let outside_start = HEADER_BYTES + ENTRY_BYTES * self.columns.len();
        let outside_bytes: usize = self.plans.iter().map(Plan::outside_bytes).sum();
        let mut parts = Parts { outside_start, data_start: outside_start + outside_bytes, ..Parts::default() };
        for word in [rows, self.columns.len(), len] {
            out.extend_from_slice(&(word as u16).to_le_bytes());
        }
        for (column, plan) in self.columns.iter().zip(&self.plans) {
            let partner = |number: usize| match &self.columns[number] {
                Rows::Ints(rows) => rows,
                Rows::Strings(_) => unreachable!("partners are integer columns"),
            };
            let entry = match (column, plan) {
                (Rows::Ints(column), Plan::Ints(plan)) => column.write(plan, rows, partner, &mut parts),
                (Rows::Strings(column), Plan::Strings(plan)) => column.write(plan, rows, &mut self.work.0, &mut parts),
                _ => unreachable!("plans are of their columns"),
            };
            out.extend_from_slice(&entry.to_bytes());
        }
        out.extend_from_slice(&parts.outside);
        out.extend_from_slice(&parts.data);
        assert_eq!(out.len() - start, len, "the length is known before");
        Some(len)
    }

    /// Appends the distinct values of each variable column to `bytes`, and behind each the length of `bytes` to `ends`: what a dictionary of string codes is to be
    /// [trained](crate::row::train) on, with a page's rows at a time, as a page has equal values once.
    ///
    /// # Panics
    /// When `bytes` would become longer than 4 GB.
    pub fn sample_strings(&self, bytes: &mut Vec<u8>, ends: &mut Vec<u32>) {
        for (column, rows) in self.schema.columns.iter().zip(&self.columns) {
            if let (Class::Variable { .. }, Rows::Strings(rows)) = (column.class, rows) {
                for value in rows.distinct_values().filter(|value| !value.is_empty()) {
                    bytes.extend_from_slice(value);
                    ends.push(u32::try_from(bytes.len()).expect("samples are bounded to far below 4 GB"));
                }
            }
        }
    }

    /// Lets go of the first `rows` rows and keeps the others.
    ///
    /// # Panics
    /// When it holds fewer.
    pub fn drain(&mut self, rows: usize) {
        if self.drained.is_empty() {
            self.drained = Rows::of(&self.schema);
        }
        std::mem::swap(&mut self.columns, &mut self.drained);
        let (held, start) = (self.rows(), self.record_bytes(rows));
        for (own, from) in self.columns.iter_mut().zip(&self.drained) {
            own.clear();
            match (own, from) {
                (Rows::Ints(own), Rows::Ints(from)) => own.push_rows(&from.values, &from.nulls, rows..held),
                (Rows::Strings(own), Rows::Strings(from)) => own.push_rows(from, rows..held),
                _ => unreachable!("the same schema"),
            }
        }
        self.records.drain(..start);
        self.record_ends.drain(..rows);
        self.record_ends.iter_mut().for_each(|end| *end -= start as u32);
        self.planned = 0;
    }

    /// Lets go of all rows.
    pub fn clear(&mut self) {
        self.records.clear();
        self.record_ends.clear();
        self.planned = 0;
        self.columns.iter_mut().for_each(Rows::clear);
    }
}

#[inline]
pub(super) fn is_null(column: &PageColumn, record: &[u8]) -> bool {
    column.null_bit.is_some_and(|(at, mask)| record[at] & mask != 0)
}

/// The two's complement of an integer column of a record.
#[inline]
pub(super) fn fixed_int(column: &PageColumn, record: &[u8]) -> i64 {
    let Class::Int { width } = column.class else { unreachable!("an integer column") };
    let shift = 64 - 8 * u32::from(width);
    (load(record, column.at) << shift) as i64 >> shift
}

/// Characters of a text: bytes that do not continue one.
pub(super) fn char_count(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

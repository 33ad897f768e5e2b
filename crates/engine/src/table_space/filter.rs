//! The condition of a scan. Where rows lie by column, what it asks of single columns is answered from the values as they are encoded, and only rows that meet that are looked at.
//!
//! Invariants:
//! - a row is delivered exactly if its record satisfies the condition, however it lies;
//! - what encoded values cannot answer is asked of the record: terms of other kinds, and strings that lie in large-value pages.

use super::table::Table;
use crate::{Error, Result};
use pagefold_codec::page::{Bitmap, ColumnArea, PageSchema};
use pagefold_format::data::{DataPage, StoredKind, StoredRow};
use pagefold_types::{ColumnTest, ColumnValue, DataType, Predicate, RecordError, Value, ValueRef};
use std::ops::{Bound, Range, RangeInclusive};

/// A term that encoded values answer.
#[derive(Debug)]
enum Encoded {
    Ints(RangeInclusive<i64>),
    Strings(Bound<Vec<u8>>, Bound<Vec<u8>>),
    Null(bool),
}

/// A condition, taken apart.
#[derive(Debug)]
pub(crate) struct Filter {
    condition: Predicate,
    encoded: Vec<(usize, Encoded)>,
    /// What is asked of records beside that.
    rest: Option<Predicate>,
}

/// The number that an integer column has for a value. Of REAL and DOUBLE the bits do not order like the values.
fn int_of(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Boolean(value) => Some(value.into()),
        ValueRef::Int(value) => Some(value),
        ValueRef::Decimal(value) => i64::try_from(value).ok(),
        _ => None,
    }
}

/// The bytes that order like the values of a column of strings. Those of wider DECIMAL do not; and beside a CHAR, text that is longer equals none, but blanks would not count.
fn bytes_of(value: ValueRef<'_>, data_type: DataType) -> Option<Vec<u8>> {
    match (value, data_type) {
        (ValueRef::Text(text), DataType::Char(chars)) if text.chars().count() > chars as usize => None,
        (ValueRef::Text(text), _) => Some(text.into()),
        (ValueRef::Bytes(bytes), _) => Some(bytes.into()),
        (ValueRef::Uuid(bytes), _) => Some(bytes.into()),
        _ => None,
    }
}

/// A bound with its value turned into another; `None` when that cannot be.
fn bound<'v, T>(bound: Bound<ValueRef<'v>>, turn: impl Fn(ValueRef<'v>) -> Option<T>) -> Option<Bound<T>> {
    Some(match bound {
        Bound::Included(value) => Bound::Included(turn(value)?),
        Bound::Excluded(value) => Bound::Excluded(turn(value)?),
        Bound::Unbounded => Bound::Unbounded,
    })
}

/// The integers between two bounds. No integer lies beyond the ends of the type, so what is excluded there leaves none.
fn range(lower: Bound<i64>, upper: Bound<i64>) -> RangeInclusive<i64> {
    let least = match lower {
        Bound::Included(value) => Some(value),
        Bound::Excluded(value) => value.checked_add(1),
        Bound::Unbounded => Some(i64::MIN),
    };
    let most = match upper {
        Bound::Included(value) => Some(value),
        Bound::Excluded(value) => value.checked_sub(1),
        Bound::Unbounded => Some(i64::MAX),
    };
    let (least, most) = least.zip(most).unwrap_or((i64::MAX, i64::MIN));
    least..=most
}

impl Encoded {
    fn of(schema: &PageSchema, data_type: DataType, column: usize, test: ColumnTest<'_>) -> Option<Encoded> {
        match test {
            ColumnTest::Null => Some(Encoded::Null(true)),
            ColumnTest::NotNull => Some(Encoded::Null(false)),
            ColumnTest::Between(lower, upper) if schema.is_int(column) => {
                Some(Encoded::Ints(range(bound(lower, int_of)?, bound(upper, int_of)?)))
            }
            ColumnTest::Between(lower, upper) => {
                let bytes = |value| bytes_of(value, data_type);
                Some(Encoded::Strings(bound(lower, bytes)?, bound(upper, bytes)?))
            }
        }
    }

    /// Keeps the rows that meet it. Those whose value lies in large-value pages are kept.
    fn select(&self, area: &ColumnArea<'_>, column: usize, selection: &mut Bitmap) -> std::result::Result<(), pagefold_codec::CodecError> {
        match self {
            Encoded::Ints(range) => area.select_int(column, range.clone(), selection),
            Encoded::Null(null) => area.select_null(column, *null, selection),
            Encoded::Strings(Bound::Included(low), Bound::Included(high)) if low == high => {
                area.select_bytes_equal(column, low, selection)?;
            }
            Encoded::Strings(lower, upper) => {
                let (lower, upper) = (lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice));
                area.select_bytes_range(column, lower, upper, selection)?;
            }
        }
        Ok(())
    }
}

/// Which rows of the column part of a page.
#[derive(Clone, Debug)]
pub(crate) enum AreaRows {
    /// All.
    All,
    /// Those whose home the page is.
    AtHome,
    /// Those of these slots.
    Slots(Range<u16>),
}

/// The rows of its slots that a page has in its column part.
pub(super) fn rows_there(area: &ColumnArea<'_>, page: &DataPage<'_>, rows: &AreaRows) -> Bitmap {
    let any = matches!(rows, AreaRows::All) || matches!(rows, AreaRows::AtHome) && page.ranges().is_empty();
    let all = any && page.entries().next().is_none() && usize::from(page.row_count()) == area.rows();
    let mut found = Bitmap::new(area.rows(), all);
    if !all {
        let slots = match rows {
            AreaRows::Slots(slots) => slots.start..slots.end.min(page.slot_count()),
            _ => 0..page.slot_count(),
        };
        let is_wanted = |row: &StoredRow<'_>| row.kind == StoredKind::Column && (row.home.is_none() || !matches!(rows, AreaRows::AtHome));
        let wanted = slots.filter_map(|slot| page.row(slot)).filter(is_wanted);
        wanted.map(|row| usize::from(row.area_row)).filter(|row| *row < area.rows()).for_each(|row| found.set(row, true));
    }
    found
}

impl Filter {
    pub(crate) fn new(table: &Table, condition: &Predicate) -> Filter {
        let mut encoded: Vec<(usize, Encoded)> = Vec::new();
        let rest = condition.take_terms(|column, test| {
            let Some(term) = Encoded::of(table.decoder.columns(), table.layout.data_type(column), column, test) else { return false };
            // Two bounds of a column are one range.
            let same = encoded.iter_mut().find_map(|(other, term)| match term {
                Encoded::Ints(range) if *other == column => Some(range),
                _ => None,
            });
            match (same, term) {
                (Some(range), Encoded::Ints(more)) => *range = *range.start().max(more.start())..=*range.end().min(more.end()),
                (_, term) => encoded.push((column, term)),
            }
            true
        });
        Filter { condition: condition.clone(), encoded, rest }
    }

    /// Does a record satisfy the condition?
    pub(crate) fn matches(&self, table: &Table, record: &[u8]) -> Result<bool> {
        table.satisfies(&self.condition, record)
    }

    /// Keeps, of the rows of an area, those that satisfy the condition.
    pub(super) fn select(&self, table: &Table, area: &ColumnArea<'_>, selection: &mut Bitmap) -> Result<()> {
        let damaged = |e: pagefold_codec::CodecError| Error::Damaged { path: table.object(), reason: e.to_string() };
        let mut unknown = Bitmap::new(area.rows(), false);
        for (column, term) in &self.encoded {
            term.select(area, *column, selection).map_err(damaged)?;
            if let Encoded::Strings(..) = term {
                let mut large = Bitmap::default();
                area.large(*column, 0..area.rows(), &mut large);
                large.ones().for_each(|row| unknown.set(row, true));
            }
        }
        if self.rest.is_none() && unknown.count_ones() == 0 {
            return Ok(());
        }
        let mut record = Vec::new();
        for row in selection.clone().ones() {
            let Some(condition) = (if unknown.get(row) { Some(&self.condition) } else { self.rest.as_ref() }) else { continue };
            record.clear();
            area.record_columns(row, condition.columns(), &mut record).map_err(damaged)?;
            if !table.satisfies(condition, &record)? {
                selection.set(row, false);
            }
        }
        Ok(())
    }
}

impl Table {
    /// Is a condition true for a record? Of that only the columns that decide are read; large values are fetched.
    ///
    /// # Errors
    /// When the record or a large value is damaged.
    pub fn satisfies(&self, condition: &Predicate, record: &[u8]) -> Result<bool> {
        let damaged = |e: RecordError| Error::Damaged { path: self.object(), reason: e.to_string() };
        match condition.matches(&self.layout, record) {
            Err(RecordError::Large { .. }) => {}
            decided => return decided.map_err(damaged),
        }
        let value = |column: &usize| match self.layout.column(record, *column).map_err(damaged)? {
            ColumnValue::Value(value) => Ok(value.to_owned()),
            ColumnValue::Large(reference) => self.layout.large_value(*column, self.read_large(reference)?).map_err(damaged),
        };
        let values: Vec<Value> = condition.columns().iter().map(value).collect::<Result<_>>()?;
        let get = |column: usize| {
            let known = condition.columns().binary_search(&column).ok().and_then(|at| values.get(at));
            Ok::<_, Error>(known.map_or(ValueRef::Null, Value::as_ref))
        };
        Ok(condition.eval(get)? == Some(true))
    }
}

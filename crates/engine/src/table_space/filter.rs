//! The condition of a scan. Where rows lie by column, what it asks of single columns is answered from the values as they are encoded, and only rows of which that does not
//! decide are looked at.
//!
//! AND keeps what each part keeps, OR what one does; NOT is gone from bound conditions, so unknown need not be told from false. `<>` and NOT IN are the complement among the
//! values that are not NULL. All that is asked of the integers of one column is one set of ranges.
//!
//! Invariants:
//! - a row is delivered exactly if its record satisfies the condition, however it lies;
//! - what encoded values cannot answer is asked of the record: comparisons of two columns, order of wide DECIMAL, and strings that lie in large-value pages. Rows with such
//!   a string are kept by what is asked of its column, negated or not; as every step only keeps more the more its parts keep, none is lost before its record is asked.

use super::table::Table;
use crate::Error;
use pagefold_codec::CodecError;
use pagefold_codec::page::{Bitmap, ColumnArea, IntMembers, IntSet, PageSchema};
use pagefold_format::data::{DataPage, StoredKind, StoredRow};
use pagefold_types::{ColumnTest, DataType, LikePattern, Parts, Predicate, RecordError, Term, Value, ValueRef};
use std::ops::{Bound, Range, RangeInclusive};
use std::sync::Arc;

/// What strings are asked.
#[derive(Debug)]
enum StringTest {
    Between(Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// Ascending; of CHAR, without blanks at the end
    In(Vec<Vec<u8>>),
    Beginning(Vec<u8>),
    /// Of CHAR without blanks at the end
    Like(LikePattern, bool),
}

/// A question that encoded values answer.
#[derive(Debug)]
enum Encoded {
    Ints(IntSet),
    Strings { test: StringTest, negated: bool },
    Null(bool),
    Never,
}

/// A condition, taken apart.
#[derive(Debug)]
enum Step {
    Column(usize, Encoded),
    And(Vec<Step>),
    Or(Vec<Step>),
    /// Asked of the record.
    Record(Predicate),
}

/// A condition, and how it is answered where rows lie by column.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    condition: Option<Asked>,
    /// Columns whose integers are to be among these.
    members: Vec<(usize, Arc<IntMembers>)>,
}

/// What was asked for when a scan began.
#[derive(Clone, Debug)]
struct Asked {
    condition: Predicate,
    step: Arc<Step>,
    /// Columns whose strings are asked: where a value lies in large-value pages, the record decides.
    strings: Vec<usize>,
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

/// The bits of the floating-point numbers between two bounds, as integers. Values have whole numbers as keys: the bits without the sign, negative where
/// that is set; one behind infinity stands for all that is not a number.
fn float_range(lower: Bound<ValueRef<'_>>, upper: Bound<ValueRef<'_>>, data_type: DataType) -> Option<IntSet> {
    let (infinity, most, sign) = match data_type {
        DataType::Real => (i64::from(f32::INFINITY.to_bits()), i64::from(i32::MAX), i64::from(i32::MIN)),
        DataType::Double => (f64::INFINITY.to_bits() as i64, i64::MAX, i64::MIN),
        _ => return None,
    };
    let key = |value: ValueRef<'_>| {
        let (bits, nan) = match value {
            ValueRef::Real(value) => (i64::from(value.to_bits() as i32), value.is_nan()),
            ValueRef::Double(value) => (value.to_bits() as i64, value.is_nan()),
            _ => return None,
        };
        Some(if nan {
            infinity + 1
        } else if bits < 0 {
            sign - bits
        } else {
            bits
        })
    };
    let (least, greatest) = range(bound(lower, key)?, bound(upper, key)?).into_inner();
    let positive = least.max(0)..=greatest.min(infinity);
    // Of a key below zero, or of the other zero, its distance from there.
    let (near, far) = (greatest.min(0).saturating_neg(), least.max(-infinity).saturating_neg());
    let negative = (near <= far).then(|| sign + near..=sign + far);
    let mut set = IntSet::of(negative.into_iter().chain([positive]));
    if (least..=greatest).contains(&(infinity + 1)) {
        set = set.union(&IntSet::of([infinity + 1..=most, sign + infinity + 1..=-1]));
    }
    Some(set)
}

/// The integers that a column has for the values between two bounds.
fn ints_between(lower: Bound<ValueRef<'_>>, upper: Bound<ValueRef<'_>>, data_type: DataType) -> Option<IntSet> {
    if matches!(data_type, DataType::Real | DataType::Double) {
        return float_range(lower, upper, data_type);
    }
    Some(IntSet::of([range(bound(lower, int_of)?, bound(upper, int_of)?)]))
}

impl Encoded {
    fn of(schema: &PageSchema, data_type: DataType, column: usize, test: ColumnTest<'_>) -> Option<Encoded> {
        let is_char = matches!(data_type, DataType::Char(_));
        Some(match test {
            ColumnTest::Null => Encoded::Null(true),
            ColumnTest::NotNull => Encoded::Null(false),
            ColumnTest::Never => Encoded::Never,
            ColumnTest::Between(lower, upper) if schema.is_int(column) => Encoded::Ints(ints_between(lower, upper, data_type)?),
            ColumnTest::In { values, negated } if schema.is_int(column) => {
                let one = |value: &Value| ints_between(Bound::Included(value.as_ref()), Bound::Included(value.as_ref()), data_type);
                let sets = values.iter().map(one).collect::<Option<Vec<IntSet>>>()?;
                let set = IntSet::of(sets.iter().flat_map(|set| set.ranges().iter().cloned()));
                Encoded::Ints(if negated { set.complement() } else { set })
            }
            ColumnTest::Between(lower, upper) => {
                let bytes = |value| bytes_of(value, data_type);
                Encoded::Strings { test: StringTest::Between(bound(lower, bytes)?, bound(upper, bytes)?), negated: false }
            }
            ColumnTest::In { values, negated } => {
                // Text longer than a CHAR equals none.
                let too_long = |value: &&Value| matches!((value, data_type), (Value::Text(text), DataType::Char(n)) if text.chars().count() > n as usize);
                let bytes = values.iter().filter(|value| !too_long(value)).map(|value| bytes_of(value.as_ref(), data_type));
                let mut bytes = bytes.collect::<Option<Vec<Vec<u8>>>>()?;
                if is_char {
                    bytes.iter_mut().for_each(|value| {
                        let blanks = value.iter().rev().take_while(|byte| **byte == b' ').count();
                        value.truncate(value.len() - blanks);
                    });
                }
                bytes.sort_unstable();
                Encoded::Strings { test: StringTest::In(bytes), negated }
            }
            ColumnTest::Like { pattern, negated } => {
                let test = match pattern.is_prefix() {
                    true => StringTest::Beginning(pattern.prefix().as_bytes().to_vec()),
                    false => StringTest::Like(pattern.clone(), is_char),
                };
                Encoded::Strings { test, negated }
            }
        })
    }

    /// Keeps the rows that meet it. Those whose value lies in large-value pages are kept.
    fn select(&self, area: &ColumnArea<'_>, column: usize, selection: &mut Bitmap) -> Result<(), CodecError> {
        match self {
            Encoded::Never => *selection = Bitmap::new(area.rows(), false),
            Encoded::Ints(set) => area.select_ints(column, set, selection),
            Encoded::Null(null) => area.select_null(column, *null, selection),
            Encoded::Strings { test, negated: false } => test.select(area, column, selection)?,
            Encoded::Strings { test, negated: true } => {
                area.select_null(column, false, selection);
                let mut meets = selection.clone();
                test.select(area, column, &mut meets)?;
                let mut large = Bitmap::default();
                area.large(column, 0..area.rows(), &mut large);
                meets.subtract(&large);
                selection.subtract(&meets);
            }
        }
        Ok(())
    }

    /// Those that cost little come first.
    fn rank(&self) -> u8 {
        match self {
            Encoded::Never | Encoded::Null(_) => 0,
            Encoded::Ints(_) => 1,
            Encoded::Strings { .. } => 2,
        }
    }
}

impl StringTest {
    fn select(&self, area: &ColumnArea<'_>, column: usize, selection: &mut Bitmap) -> Result<(), CodecError> {
        match self {
            StringTest::Between(lower, upper) => {
                let (lower, upper) = (lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice));
                area.select_bytes_range(column, lower, upper, selection)
            }
            StringTest::In(values) => area.select_bytes_in(column, values, selection),
            StringTest::Beginning(beginning) => area.select_bytes_beginning(column, beginning, selection),
            StringTest::Like(pattern, trim) => {
                let meets = |bytes: &[u8]| match std::str::from_utf8(bytes) {
                    Ok(text) => pattern.matches(if *trim { text.trim_end_matches(' ') } else { text }),
                    // Damaged: the record, when it is read, says so.
                    Err(_) => true,
                };
                area.select_bytes(column, meets, selection)
            }
        }
    }
}

impl Step {
    fn of(table: &Table, term: Term<'_>) -> Step {
        match term.parts() {
            Parts::And(terms) => Step::several(table, &terms, false),
            Parts::Or(terms) => Step::several(table, &terms, true),
            Parts::Column(column, test) => match Encoded::of(table.decoder.columns(), table.layout.data_type(column), column, test) {
                Some(encoded) => Step::Column(column, encoded),
                None => Step::Record(term.to_predicate()),
            },
            Parts::Other => Step::Record(term.to_predicate()),
        }
    }

    /// What is asked of integers of one column becomes one question, and so does what is asked of records.
    fn several(table: &Table, terms: &[Term<'_>], any: bool) -> Step {
        let (mut steps, mut of_record): (Vec<Step>, Vec<Term<'_>>) = (Vec::new(), Vec::new());
        for term in terms {
            let step = Step::of(table, *term);
            let same = |other: &&mut Step| matches!((&**other, &step), (Step::Column(a, Encoded::Ints(_)), Step::Column(b, Encoded::Ints(_))) if a == b);
            match (steps.iter_mut().find(same), step) {
                (Some(Step::Column(_, Encoded::Ints(set))), Step::Column(_, Encoded::Ints(more))) => {
                    *set = if any { set.union(&more) } else { set.intersection(&more) };
                }
                (_, Step::Record(_)) => of_record.push(*term),
                (_, step) => steps.push(step),
            }
        }
        steps.sort_by_key(Step::rank);
        if !of_record.is_empty() {
            steps.push(Step::Record(Term::together(&of_record, any)));
        }
        match steps.len() {
            1 => steps.swap_remove(0),
            _ if any => Step::Or(steps),
            _ => Step::And(steps),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Step::Column(_, encoded) => encoded.rank(),
            Step::And(steps) | Step::Or(steps) => steps.iter().map(Step::rank).max().unwrap_or(0).max(2),
            Step::Record(_) => 3,
        }
    }

    /// Columns whose strings are asked.
    fn strings(&self, out: &mut Vec<usize>) {
        match self {
            Step::Column(column, Encoded::Strings { .. }) => out.push(*column),
            Step::And(steps) | Step::Or(steps) => steps.iter().for_each(|step| step.strings(out)),
            Step::Column(..) | Step::Record(_) => {}
        }
    }

    /// Keeps the rows that satisfy it, and those that are `unknown` and may.
    fn select(&self, table: &Table, area: &ColumnArea<'_>, unknown: &Bitmap, selection: &mut Bitmap) -> crate::Result<()> {
        match self {
            Step::Column(column, encoded) => encoded.select(area, *column, selection).map_err(|e| damaged(table, e))?,
            Step::And(steps) => {
                for step in steps {
                    if selection.is_zero() {
                        break;
                    }
                    step.select(table, area, unknown, selection)?;
                }
            }
            Step::Or(steps) => {
                let mut found = Bitmap::new(area.rows(), false);
                for step in steps {
                    // What one has found the next is not asked.
                    let mut part = selection.clone();
                    part.subtract(&found);
                    step.select(table, area, unknown, &mut part)?;
                    found.unite(&part);
                }
                *selection = found;
            }
            Step::Record(condition) => {
                let mut asked = selection.clone();
                asked.subtract(unknown);
                ask_records(table, area, condition, &asked, selection)?;
            }
        }
        Ok(())
    }
}

fn damaged(table: &Table, e: CodecError) -> Error {
    Error::Damaged { path: table.object(), reason: e.to_string() }
}

/// Takes out of the selection those of the asked rows whose record does not satisfy a condition.
fn ask_records(table: &Table, area: &ColumnArea<'_>, condition: &Predicate, asked: &Bitmap, selection: &mut Bitmap) -> crate::Result<()> {
    let mut record = Vec::new();
    for row in asked.ones() {
        record.clear();
        area.record_columns(row, condition.columns(), &mut record).map_err(|e| damaged(table, e))?;
        if !table.satisfies(condition, &record)? {
            selection.set(row, false);
        }
    }
    Ok(())
}

/// Fewer rows than these are not read column by column.
const ROWS_TOGETHER_MIN: usize = 4;

/// Which rows of the column part of a page.
#[derive(Clone, Debug)]
pub(crate) enum AreaRows {
    /// Those whose home the page is.
    AtHome,
    /// Those of these slots.
    Slots(Range<u16>),
    /// These, by their numbers there.
    These(Bitmap),
}

/// As many of these slots, from the first on, as have rows in the column part that follow each other there: which these are, and how many. `None` where they are too few to be read together.
pub(super) fn rows_in_order(area_rows: usize, page: &DataPage<'_>, slots: impl Iterator<Item = u16> + Clone) -> Option<(AreaRows, usize)> {
    let mut next = 0;
    let rows = page.area_rows(slots.clone()).map_while(|row| {
        let row = usize::from(row?);
        (next <= row && row < area_rows).then(|| next = row + 1)
    });
    let count = rows.count();
    if count < ROWS_TOGETHER_MIN {
        return None;
    }
    let mut these = Bitmap::new(area_rows, false);
    page.area_rows(slots).take(count).flatten().for_each(|row| these.set(row.into(), true));
    Some((AreaRows::These(these), count))
}

/// The rows of its slots that a page has in its column part.
pub(super) fn rows_there(area: &ColumnArea<'_>, page: &DataPage<'_>, rows: &AreaRows) -> Bitmap {
    if let AreaRows::These(these) = rows {
        return these.clone();
    }
    let any = matches!(rows, AreaRows::AtHome) && page.ranges().is_empty();
    let all = any && page.entries().next().is_none() && usize::from(page.row_count()) == area.rows();
    if let Some(words) = page.slots_in_area().filter(|_| any && !all) {
        let mut found = Bitmap::with_capacity(area.rows());
        words.for_each(|word| found.append_word(word.into(), 32));
        found.truncate(area.rows());
        found.append(area.rows() - found.len(), false);
        return found;
    }
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
        let (step, mut strings) = (Step::of(table, condition.term()), Vec::new());
        step.strings(&mut strings);
        strings.sort_unstable();
        strings.dedup();
        let asked = Asked { condition: condition.clone(), step: Arc::new(step), strings };
        Filter { condition: Some(asked), members: Vec::new() }
    }

    /// The same, and the integer of a column is one of these.
    pub(crate) fn with_members(mut self, column: usize, members: &Arc<IntMembers>) -> Filter {
        self.members.push((column, Arc::clone(members)));
        self
    }

    /// Does a record satisfy the condition?
    pub(crate) fn matches(&self, table: &Table, record: &[u8]) -> crate::Result<bool> {
        for (column, members) in &self.members {
            if !table.record_int(*column, record)?.is_some_and(|int| members.contains(int)) {
                return Ok(false);
            }
        }
        self.condition.as_ref().map_or(Ok(true), |asked| table.satisfies(&asked.condition, record))
    }

    /// Keeps, of the rows of an area, those that satisfy the condition.
    pub(super) fn select(&self, table: &Table, area: &ColumnArea<'_>, selection: &mut Bitmap) -> crate::Result<()> {
        if let Some(asked) = &self.condition {
            asked.select(table, area, selection)?;
        }
        for (column, members) in &self.members {
            if !selection.is_zero() {
                area.select_members(*column, members, selection);
            }
        }
        Ok(())
    }
}

impl Asked {
    fn select(&self, table: &Table, area: &ColumnArea<'_>, selection: &mut Bitmap) -> crate::Result<()> {
        let mut unknown = Bitmap::new(area.rows(), false);
        for column in &self.strings {
            let mut large = Bitmap::default();
            area.large(*column, 0..area.rows(), &mut large);
            unknown.unite(&large);
        }
        self.step.select(table, area, &unknown, selection)?;
        unknown.intersect(selection);
        ask_records(table, area, &self.condition, &unknown, selection)
    }
}

impl Table {
    /// Is a column one of integers that are equal just when its values are?
    pub(crate) fn is_int_column(&self, column: usize) -> bool {
        let is_float = |column| matches!(self.layout.data_type(column), DataType::Real | DataType::Double);
        column < self.layout.column_count() && self.decoder.columns().is_int(column) && !is_float(column)
    }

    /// The integer in a column of a record; `None` where it is NULL.
    #[inline]
    fn record_int(&self, column: usize, record: &[u8]) -> crate::Result<Option<i64>> {
        let columns = self.decoder.columns();
        if columns.is_null(column, record) {
            return Ok(None);
        }
        let short = || Error::Damaged { path: self.object(), reason: "a record that is too short".into() };
        columns.record_int(column, record).map(Some).ok_or_else(short)
    }

    /// Is a condition true for a record? Of that only the columns that decide are read; large values are fetched.
    ///
    /// # Errors
    /// When the record or a large value is damaged.
    pub fn satisfies(&self, condition: &Predicate, record: &[u8]) -> crate::Result<bool> {
        let damaged = |e: RecordError| Error::Damaged { path: self.object(), reason: e.to_string() };
        match condition.matches(&self.layout, record) {
            Err(RecordError::Large { .. }) => {}
            decided => return decided.map_err(damaged),
        }
        let values = self.values_of(record, condition.columns())?;
        let get = |column: usize| {
            let known = condition.columns().binary_search(&column).ok().and_then(|at| values.get(at));
            Ok::<_, Error>(known.map_or(ValueRef::Null, Value::as_ref))
        };
        Ok(condition.eval(get)? == Some(true))
    }
}

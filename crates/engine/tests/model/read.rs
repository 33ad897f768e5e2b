//! Every way to read: asked of the engine, and of the model's rows.

use crate::condition::Condition;
use crate::model::{Row, Rows, key, key_limit, key_order};
use crate::shape::{TableShape, World};
use crate::values::{order, same, same_row, shown, shown_row, stored, variable_bytes};
use pagefold_engine::btree::Direction as Way;
use pagefold_engine::database::{Scan, ScanRequest, Transaction};
use pagefold_engine::table_space::{BatchValues, IntMembers, RowBuffer, Table};
use pagefold_engine::{Error, Result as EngineResult};
use pagefold_types::{ColumnValue, DataType, Interval, KeyRange, LargeValueRef, Predicate, Rid, Value, ValueRef};
use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A read whose operands are known.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    Row(Rid),
    Key { index: usize, values: Vec<Value> },
    Range { index: usize, low: Option<Vec<Value>>, high: Option<Vec<Value>>, backward: bool, keys: bool, most: Option<usize> },
    Scan { columns: Option<Vec<usize>> },
    Columns { columns: Vec<usize>, condition: Option<Condition> },
    Everything,
}

/// What keeps a program from going on.
#[derive(Debug)]
pub(crate) enum Trouble {
    Engine(Error),
    Differs(String),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Engine(error)
    }
}

fn differs<T>(what: String) -> Result<T, Trouble> {
    Err(Trouble::Differs(what))
}

type Found = Vec<(Rid, Row)>;

/// The rows that a question is about, in the order in which they come; by RID where there is none.
fn rows_of(question: &Question, shape: &TableShape, rows: &Rows) -> Found {
    let all = || rows.iter().map(|(rid, row)| (*rid, row.clone()));
    match question {
        Question::Row(rid) => rows.get(rid).map(|row| (*rid, row.clone())).into_iter().collect(),
        Question::Key { index, values } => {
            let index = &shape.indexes[*index];
            let values = stored_key(shape, index, values);
            let wanted: Vec<&Value> = values.iter().collect();
            let mut found: Found = all().filter(|(_, row)| key_order(index, &key(index, row), &wanted) == Ordering::Equal).collect();
            found.sort_by(|a, b| key_order(index, &key(index, &a.1), &key(index, &b.1)).then(a.0.cmp(&b.0)));
            found
        }
        Question::Range { index, low, high, backward, most, .. } => {
            let index = &shape.indexes[*index];
            let bound = |bound: &Option<Vec<Value>>| bound.as_ref().map(|values| stored_key(shape, index, values));
            let (low, high) = (bound(low), bound(high));
            let beside = |row: &Row, bound: &Option<Vec<Value>>| {
                bound.as_ref().map(|bound| key_order(index, &key(index, row), &bound.iter().collect::<Vec<_>>()))
            };
            let mut found: Found = all()
                .filter(|(_, row)| beside(row, &low) != Some(Ordering::Less) && beside(row, &high).is_none_or(|o| o == Ordering::Less))
                .collect();
            found.sort_by(|a, b| key_order(index, &key(index, &a.1), &key(index, &b.1)).then(a.0.cmp(&b.0)));
            if *backward {
                found.reverse();
            }
            found.truncate(most.map_or(usize::MAX, |most| most.max(1)));
            found
        }
        Question::Columns { condition: Some(condition), .. } => all().filter(|(_, row)| condition.says(shape, row) == Some(true)).collect(),
        _ => all().collect(),
    }
}

/// Key values as rows have them.
fn stored_key(shape: &TableShape, index: &crate::shape::IndexShape, values: &[Value]) -> Vec<Value> {
    values.iter().zip(&index.columns).map(|(value, (column, _))| stored(value, shape.columns[*column].data_type)).collect()
}

/// A hash of what a question is answered with.
pub(crate) fn answer(question: &Question, shape: &TableShape, rows: &Rows) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (rid, row) in rows_of(question, shape, rows) {
        rid.hash(&mut hasher);
        format!("{row:?}").hash(&mut hasher);
    }
    hasher.finish()
}

/// Asks the engine, and compares.
pub(crate) fn ask(
    world: &World,
    t: &mut Transaction<'_>,
    shape: &TableShape,
    number: usize,
    question: &Question,
    rows: &Rows,
) -> Result<(), Trouble> {
    let table = &world.tables[number];
    let expected = rows_of(question, shape, rows);
    match question {
        Question::Row(rid) => {
            let found = t.row(table, *rid)?;
            match (expected.first(), found) {
                (None, None) => Ok(()),
                (Some((_, row)), Some(found)) if same_row(row, &found) => Ok(()),
                (row, found) => differs(format!(
                    "row {rid}: {} where {} is expected",
                    found.map_or("none".into(), |row| shown_row(&row)),
                    row.map_or("none".into(), |(_, row)| shown_row(row))
                )),
            }
        }
        Question::Key { index, values } => ask_key(world, t, shape, (number, *index), values, &expected),
        Question::Range { index, low, high, backward, keys, most } => {
            let range = match range_of(world, number, *index, low.as_deref(), high.as_deref()) {
                Ok(range) => range,
                // A bound that no key reaches.
                Err(_) => return Ok(()),
            };
            let way = if *backward { Way::Backward } else { Way::Forward };
            let most = most.map(|most| most.max(1));
            if *keys {
                let found = collect_keys(world, t, (number, *index), range, way, most)?;
                compare_keys(shape, *index, &found, &expected)
            } else {
                let found = collect_range(world, t, (number, *index), range, way, most)?;
                compare_in_order(&format!("range of index {index} {}", if *backward { "backward" } else { "forward" }), &found, &expected)
            }
        }
        Question::Scan { columns } => ask_scan(t, table, shape, columns.as_deref(), rows),
        Question::Columns { columns, condition } => ask_columns(t, table, shape, columns, condition.as_ref(), &expected),
        Question::Everything => ask_everything(world, t, shape, number, rows),
    }
}

fn compare_in_order(what: &str, found: &[(Rid, Vec<Value>)], expected: &Found) -> Result<(), Trouble> {
    for at in 0..found.len().max(expected.len()) {
        match (found.get(at), expected.get(at)) {
            (Some((rid, row)), Some((wanted, other))) if rid == wanted && same_row(row, other) => {}
            (found, wanted) => {
                let found = found.map_or("none".into(), |(rid, row)| format!("{rid} {}", shown_row(row)));
                let wanted = wanted.map_or("none".into(), |(rid, row)| format!("{rid} {}", shown_row(row)));
                return differs(format!("{what}, place {at}: {found} where {wanted} is expected"));
            }
        }
    }
    Ok(())
}

fn range_of(world: &World, table: usize, index: usize, low: Option<&[Value]>, high: Option<&[Value]>) -> EngineResult<KeyRange> {
    let layout = world.indexes[table][index].key_layout();
    let encode = |values: &[Value]| {
        let mut out = Vec::new();
        let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        layout.encode(&values, &mut out).map(|_| out).map_err(|e| Error::Value(e.to_string()))
    };
    Ok(KeyRange { start: low.map(encode).transpose()?.unwrap_or_default(), end: high.map(encode).transpose()? })
}

fn collect_range(
    world: &World,
    t: &mut Transaction<'_>,
    (table, index): (usize, usize),
    range: KeyRange,
    way: Way,
    most: Option<usize>,
) -> Result<Vec<(Rid, Vec<Value>)>, Trouble> {
    // With a limit, or nobody asks for more.
    let limit = most.filter(|most| most % 2 == 0).map(|most| most as u64);
    let request = ScanRequest { limit, ..ScanRequest::default() };
    let scan = t.read_view()?.range(&world.tables[table], &world.indexes[table][index], range, way, &request)?;
    let most = if limit.is_some() { usize::MAX } else { most.unwrap_or(usize::MAX) };
    Ok(scan.into_rows().take(most).collect::<EngineResult<_>>()?)
}

fn collect_keys(
    world: &World,
    t: &mut Transaction<'_>,
    (table, index): (usize, usize),
    range: KeyRange,
    way: Way,
    most: Option<usize>,
) -> Result<Vec<(Rid, Vec<Value>)>, Trouble> {
    let scan = t.read_view()?.keys(&world.tables[table], &world.indexes[table][index], range, way)?;
    Ok(scan.take(most.unwrap_or(usize::MAX)).collect::<EngineResult<_>>()?)
}

fn compare_keys(shape: &TableShape, index: usize, found: &[(Rid, Vec<Value>)], expected: &Found) -> Result<(), Trouble> {
    let columns = &shape.indexes[index];
    for at in 0..found.len().max(expected.len()) {
        let alike = |values: &[Value], row: &[Value]| {
            key(columns, row).iter().zip(values).all(|(a, b)| order(a, b) == Ordering::Equal) && values.len() == columns.columns.len()
        };
        match (found.get(at), expected.get(at)) {
            (Some((rid, values)), Some((wanted, row))) if rid == wanted && alike(values, row) => {}
            (found, wanted) => {
                let found = found.map_or("none".into(), |(rid, row)| format!("{rid} {}", shown_row(row)));
                let wanted = wanted.map_or("none".into(), |(rid, row)| format!("{rid} {}", shown_row(row)));
                return differs(format!("keys of index {index}, place {at}: {found} where that of {wanted} is expected"));
            }
        }
    }
    Ok(())
}

fn ask_key(
    world: &World,
    t: &mut Transaction<'_>,
    shape: &TableShape,
    (table, index): (usize, usize),
    values: &[Value],
    expected: &Found,
) -> Result<(), Trouble> {
    let refs: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
    let (table_of, index_of) = (&world.tables[table], &world.indexes[table][index]);
    let got = t.get(table_of, index_of, &refs, |rid, record| (rid, table_of.values(record)));
    let lengths: usize = values.iter().map(|value| 2 * variable_bytes(value) + 40).sum();
    let got = match got {
        Err(Error::Value(_)) if lengths > key_limit(&shape.indexes[index]) && expected.is_empty() => return Ok(()),
        got => got?,
    };
    let got = match got {
        Some((rid, values)) => vec![(rid, values?)],
        None => Vec::new(),
    };
    let first: Found = expected.iter().take(1).cloned().collect();
    compare_in_order(&format!("get {} by index {index}", shown_row(values)), &got, &first)?;
    // Some columns of it.
    let columns: Vec<usize> = (0..shape.columns.len()).step_by(2).collect();
    let mut buffer = RowBuffer::for_columns(table_of, &columns);
    let some = t.get_with(table_of, index_of, &refs, &mut buffer, |rid, record| {
        (rid, columns.iter().map(|column| column_of(table_of, record, *column)).collect::<EngineResult<Vec<_>>>())
    })?;
    match (some, expected.first()) {
        (None, None) => {}
        (Some((rid, values)), Some((wanted, row))) => {
            let values = values?;
            if rid != *wanted || !columns.iter().zip(&values).all(|(column, value)| same(&row[*column], value)) {
                return differs(format!(
                    "get of columns {columns:?}: {rid} {} where {wanted} {} is expected",
                    shown_row(&values),
                    shown_row(row)
                ));
            }
        }
        (some, row) => return differs(format!("get of some columns: {} where {} is expected", some.is_some(), row.is_some())),
    }
    let found = t.find(table_of, index_of, &refs)?;
    if !found.iter().eq(expected.iter().map(|(rid, _)| rid)) {
        let expected: Vec<Rid> = expected.iter().map(|(rid, _)| *rid).collect();
        return differs(format!("find {} by index {index}: {found:?} where {expected:?} is expected", shown_row(values)));
    }
    Ok(())
}

fn column_of(table: &Table, record: &[u8], column: usize) -> EngineResult<Value> {
    let damaged = |e: pagefold_types::RecordError| Error::Value(e.to_string());
    match table.layout().column(record, column).map_err(damaged)? {
        ColumnValue::Value(value) => Ok(value.to_owned()),
        ColumnValue::Large(large) => table.layout().large_value(column, table.read_large(large)?).map_err(damaged),
    }
}

fn ask_scan(
    t: &mut Transaction<'_>,
    table: &Arc<Table>,
    shape: &TableShape,
    columns: Option<&[usize]>,
    rows: &Rows,
) -> Result<(), Trouble> {
    let request = ScanRequest { columns: columns.map(<[usize]>::to_vec), ..ScanRequest::default() };
    let view = t.read_view()?;
    let counted = view.count_rows(table, || Ok::<_, Error>(()))?;
    if counted != rows.len() as u64 {
        return differs(format!("{counted} rows are counted where {} are expected", rows.len()));
    }
    let scan = view.scan(table, &request)?;
    let mut found: Vec<(Rid, Vec<Value>)> = scan.into_rows().collect::<EngineResult<_>>()?;
    found.sort_by_key(|(rid, _)| *rid);
    let all: Vec<usize> = (0..shape.columns.len()).collect();
    let columns = columns.unwrap_or(&all);
    let expected: Found =
        rows.iter().map(|(rid, row)| (*rid, Row::new(columns.iter().map(|column| row[*column].clone()).collect()))).collect();
    compare_in_order(&format!("scan of columns {columns:?}"), &found, &expected)
}

fn ask_columns(
    t: &mut Transaction<'_>,
    table: &Arc<Table>,
    shape: &TableShape,
    columns: &[usize],
    condition: Option<&Condition>,
    expected: &Found,
) -> Result<(), Trouble> {
    let text = condition.map(|condition| condition.text(shape));
    let parsed = text.as_ref().map(|text| Predicate::parse(text, &shape.schema()));
    let predicate = match parsed.transpose() {
        Ok(predicate) => predicate,
        Err(error) => return differs(format!("{text:?}: {error}")),
    };
    let request = ScanRequest { columns: Some(columns.to_vec()), condition: predicate, ..ScanRequest::default() };
    let view = t.read_view()?;
    let expected: Vec<Vec<Value>> = expected.iter().map(|(_, row)| columns.iter().map(|column| row[*column].clone()).collect()).collect();
    let found = rows_of_batches(table, shape, view.scan(table, &request)?)?;
    compare_in_any_order(&format!("columns {columns:?} where {text:?}"), &found, &expected)?;
    // And of these only rows that have one of some values in a column.
    let is_int = |column: &usize| {
        let data_type = shape.columns[*column].data_type;
        matches!(data_type, DataType::SmallInt | DataType::Integer | DataType::BigInt | DataType::Date)
    };
    let Some(at) = columns.iter().position(is_int) else { return Ok(()) };
    let int = |row: &Vec<Value>| if let Value::Int(int) = row[at] { Some(int) } else { None };
    let members = Arc::new(IntMembers::of(expected.iter().step_by(2).filter_map(int).chain([i64::MIN, 7]).collect()));
    let mut scan = view.scan(table, &request)?;
    scan.keep_members(columns[at], &members)?;
    let kept: Vec<Vec<Value>> = expected.into_iter().filter(|row| int(row).is_some_and(|int| members.contains(int))).collect();
    let found = rows_of_batches(table, shape, scan)?;
    compare_in_any_order(&format!("columns {columns:?} where {text:?}, members of column {}", columns[at]), &found, &kept)
}

fn rows_of_batches(table: &Arc<Table>, shape: &TableShape, scan: Scan) -> Result<Vec<Vec<Value>>, Trouble> {
    let mut found: Vec<Vec<Value>> = Vec::new();
    for batch in scan {
        let batch = batch?;
        let start = found.len();
        found.resize_with(start + batch.len(), Vec::new);
        for column in batch.columns() {
            let data_type = shape.columns[column.number()].data_type;
            let mut begin = 0;
            for row in 0..batch.len() {
                let is_there = column.validity().get(row);
                let value = match column.values() {
                    BatchValues::Ints(ints) => from_int(ints[row], data_type),
                    BatchValues::Bytes { bytes, ends, large } => {
                        let piece = &bytes[begin..ends[row] as usize];
                        begin = ends[row] as usize;
                        match (is_there, large.get(row)) {
                            (false, _) => Value::Null,
                            (true, false) => from_bytes(piece, data_type),
                            (true, true) => from_bytes(&table.read_large(LargeValueRef::from_bytes(piece).unwrap())?, data_type),
                        }
                    }
                };
                found[start + row].push(if is_there { value } else { Value::Null });
            }
            let nulls = found[start..].iter().filter(|row| matches!(row.last(), Some(Value::Null))).count();
            assert_eq!(nulls, column.null_count(), "NULLs of a column of a batch");
        }
    }
    Ok(found)
}

/// Batches have no RIDs: rows come in any order.
fn compare_in_any_order(what: &str, found: &[Vec<Value>], expected: &[Vec<Value>]) -> Result<(), Trouble> {
    let in_order = |rows: &[Vec<Value>]| {
        let mut rows: Vec<String> = rows.iter().map(|row| format!("{:?}", Exact(row))).collect();
        rows.sort_unstable();
        rows
    };
    let (found, expected) = (in_order(found), in_order(expected));
    if found == expected {
        return Ok(());
    }
    let cut = |rows: Vec<&String>| {
        let cut: Vec<String> = rows.iter().take(4).map(|row| row.chars().take(200).collect()).collect();
        cut.join("; ")
    };
    let extra = cut(found.iter().filter(|row| !expected.contains(row)).collect());
    let missing = cut(expected.iter().filter(|row| !found.contains(row)).collect());
    let (count, wanted) = (found.len(), expected.len());
    differs(format!("{what}: {count} rows where {wanted} are expected; not expected: {extra}; missing: {missing}"))
}

/// Values with the bits of floating-point numbers.
struct Exact<'r>(&'r [Value]);

impl std::fmt::Debug for Exact<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for value in self.0 {
            match value {
                Value::Real(x) => write!(f, "Real {:x}, ", x.to_bits())?,
                Value::Double(x) => write!(f, "Double {:x}, ", x.to_bits())?,
                other if shown(other).len() > 60 => {
                    let mut hasher = DefaultHasher::new();
                    format!("{other:?}").hash(&mut hasher);
                    write!(f, "{} {:x}, ", shown(other), hasher.finish())?;
                }
                other => write!(f, "{other:?}, ")?,
            }
        }
        Ok(())
    }
}

fn from_int(int: i64, data_type: DataType) -> Value {
    match data_type {
        DataType::Boolean => Value::Boolean(int != 0),
        DataType::Real => Value::Real(f32::from_bits(int as u32)),
        DataType::Double => Value::Double(f64::from_bits(int as u64)),
        DataType::Decimal { .. } => Value::Decimal(i128::from(int)),
        _ => Value::Int(int),
    }
}

fn from_bytes(bytes: &[u8], data_type: DataType) -> Value {
    match data_type {
        DataType::Decimal { .. } => {
            let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
            let mut whole = [if negative { 0xFF } else { 0 }; 16];
            whole[..bytes.len()].copy_from_slice(bytes);
            Value::Decimal(i128::from_le_bytes(whole))
        }
        DataType::Uuid => Value::Uuid(bytes.try_into().unwrap()),
        DataType::Interval => Value::Interval(Interval::from_bytes(bytes.try_into().unwrap())),
        DataType::Bytea => Value::Bytes(bytes.to_vec()),
        _ => Value::Text(String::from_utf8(bytes.to_vec()).unwrap()),
    }
}

/// How many rows are looked up one by one.
const LOOKED_UP: usize = 24;

fn ask_everything(world: &World, t: &mut Transaction<'_>, shape: &TableShape, number: usize, rows: &Rows) -> Result<(), Trouble> {
    let mut ask_one = |question: Question| ask(world, t, shape, number, &question, rows);
    ask_one(Question::Scan { columns: None })?;
    ask_one(Question::Columns { columns: (0..shape.columns.len()).collect(), condition: None })?;
    for index in 0..shape.indexes.len() {
        for (backward, keys) in [(false, false), (false, true), (true, false), (true, true)] {
            ask_one(Question::Range { index, low: None, high: None, backward, keys, most: None })?;
        }
    }
    let step = rows.len().div_ceil(LOOKED_UP).max(1);
    for (rid, row) in rows.iter().step_by(step) {
        ask_one(Question::Row(*rid))?;
        for (number, index) in shape.indexes.iter().enumerate() {
            ask_one(Question::Key { index: number, values: key(index, row).into_iter().cloned().collect() })?;
        }
    }
    Ok(())
}

//! Both sides, row by row: the rows of the foreign table in their order, and those that are here in theirs; then each index by its rows.

use crate::foreign::{Foreign, ForeignTable};
use pagefold_engine::btree::Direction;
use pagefold_engine::database::{Database, ScanRequest};
use pagefold_types::{DataType, KeyRange, Value, text};
use pagefold_utility::{Error, Progress, Result, Unit};

/// What a comparison has looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Rows that are the same.
    pub rows: u64,
    /// Values that are the same.
    pub values: u64,
    /// Entries of indexes that are those of their rows, each found by its key.
    pub entries: u64,
    /// The first difference.
    pub difference: Option<String>,
}

/// Rows between two looks at whether to stop.
const ROWS_PER_LOOK: u64 = 16 * 1024;

/// Compares a table with the one that it was loaded into, which has been left as it was.
///
/// # Errors
/// When one of both cannot be read. A difference is none.
pub fn compare(database: &Database, foreign: &dyn Foreign, table: &ForeignTable, progress: &dyn Progress) -> Result<Compared> {
    let here = database.table(&table.here)?;
    let view = database.read_view();
    let types: Vec<DataType> = here.attributes().schema.columns().iter().map(|column| column.data_type).collect();
    let mut compared = Compared::default();
    progress.start(&format!("comparing {}", table.name), Some(table.rows), Unit::Rows);
    let mut rows = view.scan(&here, &ScanRequest::default())?.into_rows();
    let (mut failed, mut stopped) = (None, false);
    foreign.visit_rows(table, &types, &mut |values| {
        match rows.next() {
            Some(Ok((_, own))) => compared.difference = difference(&own, values, table, &types, compared.rows),
            Some(Err(error)) => failed = Some(error),
            None => compared.difference = Some(format!("it has {} rows here, and more there", compared.rows)),
        }
        if compared.difference.is_some() || failed.is_some() {
            return false;
        }
        compared.rows += 1;
        compared.values += values.len() as u64;
        if compared.rows.is_multiple_of(ROWS_PER_LOOK) {
            progress.advance(ROWS_PER_LOOK);
            stopped = progress.interrupted();
        }
        !stopped
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    if stopped {
        return Err(Error::Interrupted);
    }
    if compared.difference.is_none() && rows.next().transpose()?.is_some() {
        compared.difference = Some(format!("it has {} rows there, and more here", compared.rows));
    }
    drop(rows);
    progress.finish();
    for index in database.indexes_of(&here) {
        if compared.difference.is_some() {
            break;
        }
        // Each entry leads to its row, which is looked up by it, and they are as many.
        let all = KeyRange { start: Vec::new(), end: None };
        let (mut entries, mut last) = (0, None);
        let columns: Vec<usize> = index.attributes().columns.iter().map(|(column, _)| *column).collect();
        progress.start(&format!("comparing index {}", index.name()), Some(table.rows), Unit::Rows);
        let request = ScanRequest { columns: Some(columns.clone()), ..ScanRequest::default() };
        let mut by_key = view.range(&here, &index, all, Direction::Forward, &request)?.into_rows();
        let (layout, mut key) = (index.key_layout(), Vec::new());
        while let Some((rid, record)) = by_key.next_record()? {
            key.clear();
            layout
                .encode_from_record(here.layout(), record, &mut key)
                .map_err(|e| Error::Data(format!("index \"{}\": {e}", index.name())))?;
            let this = (key.clone(), rid);
            if last.as_ref().is_some_and(|last| *last >= this) {
                compared.difference = Some(format!("index \"{}\" is out of order at entry {}", index.name(), entries + 1));
                break;
            }
            last = Some(this);
            entries += 1;
            if entries % ROWS_PER_LOOK == 0 {
                progress.advance(ROWS_PER_LOOK);
                if progress.interrupted() {
                    return Err(Error::Interrupted);
                }
            }
        }
        progress.finish();
        if entries != compared.rows && compared.difference.is_none() {
            let names = table.names_of(&columns).join(", ");
            compared.difference = Some(format!("index \"{}\" on ({names}) has {entries} entries for {} rows", index.name(), compared.rows));
        }
        compared.entries += entries;
    }
    Ok(compared)
}

/// The first value that differs.
fn difference(own: &[Value], other: &[Value], table: &ForeignTable, types: &[DataType], row: u64) -> Option<String> {
    let place = own.iter().zip(other).position(|(own, other)| !is_same(own, other))?;
    let shown = |value: &Value| text::to_text(value.as_ref(), &types[place]).chars().take(60).collect::<String>();
    let column = &table.columns[place].name;
    Some(format!("row {}, column \"{column}\": {} here, {} there", row + 1, shown(&own[place]), shown(&other[place])))
}

/// The same value to the last bit: -0 is not 0.
fn is_same(own: &Value, other: &Value) -> bool {
    match (own, other) {
        (Value::Double(own), Value::Double(other)) => own.to_bits() == other.to_bits(),
        (Value::Null, other) => matches!(other, Value::Null),
        (own, Value::Null) => matches!(own, Value::Null),
        _ => own == other,
    }
}

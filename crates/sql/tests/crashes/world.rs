//! A small database that speaks SQL on a simulated disk, and all that can be seen of it.

use pagefold_engine::database::{Database as Engine, OpenMode, Settings};
use pagefold_engine::log::LogSettings;
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::{Result, Silent};
use pagefold_io::{Clock, FaultStorage, SimulatedClock, Storage};
use pagefold_sql::{Database, Session, SqlError};
use pagefold_types::Value;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const DIRECTORY: &str = "db";

/// One line for each table, column, constraint, index, view and row.
pub(crate) type Dump = Arc<Vec<String>>;

pub(crate) fn open(storage: &FaultStorage, mode: OpenMode) -> Result<Database> {
    let clock: Arc<dyn Clock> = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    // Without background threads the calls come in the same order each time; old versions go to their file.
    let pools = PoolSettings { memory_bytes: 4 << 20, background_threads: 0, ..PoolSettings::default() };
    let log = LogSettings { segment_bytes: 128 << 10, spare_segments: 2, ..LogSettings::default() };
    let settings = Settings { pools, log, double_write_bytes: 64 << 10, version_bytes: 96_000, ..Settings::default() };
    let storage: Arc<dyn Storage> = Arc::new(storage.clone());
    Ok(Database::new(Arc::new(Engine::open(storage, clock, Path::new(DIRECTORY), mode, settings)?)))
}

/// Runs a statement to its end.
pub(crate) fn run(session: &mut Session, sql: &str) -> std::result::Result<Vec<Vec<Value>>, SqlError> {
    let mut answer = session.execute(sql, &[])?;
    let mut rows = Vec::new();
    while let Some(row) = answer.next_row()? {
        rows.push(row);
    }
    Ok(rows)
}

/// What is to be asked of every database, whatever is in it.
const DEFINITIONS: [&str; 8] = [
    "SELECT 'column', table_name, column_name, ordinal_position, column_default, is_nullable, data_type, character_maximum_length, \
     numeric_precision, numeric_scale FROM information_schema.columns",
    "SELECT 'constraint', table_name, constraint_name, constraint_type FROM information_schema.table_constraints",
    "SELECT 'key', table_name, constraint_name, column_name, ordinal_position FROM information_schema.key_column_usage",
    "SELECT 'reference', constraint_name, unique_constraint_name, update_rule, delete_rule FROM information_schema.referential_constraints",
    "SELECT 'view', table_name, check_option || ' ' || view_definition FROM information_schema.views",
    "SELECT 'sequence', sequence_name, increment FROM information_schema.sequences",
    "SELECT 'partition', table_name, partition_name, less_than, method, page_size_bytes FROM pagefold_partitions",
    "SELECT 'index', table_name, index_name, columns, is_unique, format, page_size_bytes FROM pagefold_indexes",
];

/// All that can be seen: definitions, rows, what views give.
pub(crate) fn dump(database: &Database, views: &[&str]) -> std::result::Result<Dump, String> {
    let mut session = database.session();
    let mut lines = Vec::new();
    for sql in DEFINITIONS {
        let rows = run(&mut session, sql).map_err(|e| format!("{sql}: {} {e}", e.sqlstate()))?;
        lines.extend(rows.into_iter().map(|row| format!("{row:?}")));
    }
    let tables = run(&mut session, "SELECT table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'")
        .map_err(|e| format!("tables: {e}"))?;
    for table in tables {
        let [Value::Text(name)] = table.as_slice() else { return Err(format!("a table of the name {table:?}")) };
        lines.push(format!("table {name}"));
        let found = run(&mut session, &format!("SELECT * FROM {name}")).map_err(|e| format!("rows of {name}: {} {e}", e.sqlstate()))?;
        let counted = run(&mut session, &format!("SELECT count(*) FROM {name}")).map_err(|e| format!("count of {name}: {e}"))?;
        if counted != [[Value::Int(found.len() as i64)]] {
            return Err(format!("{name} has {} rows, of which {counted:?} are counted", found.len()));
        }
        lines.extend(found.iter().map(|row| line(name, row)));
    }
    for view in views {
        // A view of what is gone fails, and goes on doing so.
        let found = run(&mut session, &format!("SELECT * FROM {view}"));
        let rows = found.unwrap_or_else(|e| vec![vec![Value::Text(e.sqlstate().to_owned())]]);
        lines.extend(rows.iter().map(|row| line(view, row)));
    }
    lines.sort_unstable();
    Ok(Arc::new(lines))
}

/// A row; of long texts the beginning and the length.
pub(crate) fn line(of: &str, row: &[Value]) -> String {
    let mut line = of.to_owned();
    for value in row {
        match value {
            Value::Text(text) if text.len() > 60 => write!(line, " {}.. {}", text.chars().take(12).collect::<String>(), hash(text)),
            value => write!(line, " {value:?}"),
        }
        .unwrap_or_default();
    }
    line
}

fn hash(text: &str) -> u64 {
    text.bytes().fold(text.len() as u64, |hash, byte| (hash.rotate_left(5) ^ u64::from(byte)).wrapping_mul(0x517C_C1B7_2722_0A95))
}

/// The first lines that only one of two has.
pub(crate) fn difference(expected: &Dump, found: &Dump) -> String {
    let only = |of: &Dump, not_of: &Dump| -> Vec<String> {
        of.iter().filter(|line| not_of.binary_search(line).is_err()).take(4).cloned().collect()
    };
    let (lost, new) = (only(expected, found), only(found, expected));
    format!("{} lines, {} were expected; lost: {lost:#?}; not to be there: {new:#?}", found.len(), expected.len())
}

/// Every page of a database that is closed, every row and index entry, and that every page has one owner.
pub(crate) fn check(storage: &FaultStorage) -> std::result::Result<(), String> {
    let report = pagefold_utility::check_files(storage, Path::new(DIRECTORY), &Silent).map_err(|e| format!("check: {e}"))?;
    report.errors.first().map_or(Ok(()), |first| {
        Err(format!("check: {} errors, the first in {}, page {}: {}", report.errors.len(), first.object, first.page, first.reason))
    })
}

//! REPORT: what tables and indexes take, level by level, and what the buffer pools did.
//!
//! * `table`: pages, rows, what compression gives
//! * `index`: levels with pages, keys and free bytes
//! * `log`: its files
//! * `text`: as a person reads it

mod index;
mod log;
mod table;
mod text;

pub use index::{IndexStatistics, LevelStatistics};
pub use log::LogStatistics;
pub use table::TableStatistics;

use crate::{Error, Progress, Result, Unit};
use pagefold_engine::CounterValues;
use pagefold_engine::database::Database;
use serde_json::{Map, Value, json};

/// A buffer pool.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolStatistics {
    /// Its name.
    pub name: String,
    /// Bytes of a frame.
    pub frame_bytes: usize,
    /// Bytes it may take.
    pub limit_bytes: usize,
    /// Bytes it has taken.
    pub used_bytes: usize,
    /// What it did since the database was opened.
    pub counters: CounterValues,
}

/// The outcome of REPORT.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DatabaseReport {
    /// Tables, by name.
    pub tables: Vec<TableStatistics>,
    /// Indexes, by name.
    pub indexes: Vec<IndexStatistics>,
    /// Buffer pools.
    pub pools: Vec<PoolStatistics>,
    /// The log, if there is one.
    pub log: Option<LogStatistics>,
}

/// Reports on everything, on a table and its indexes, or on an index.
///
/// # Errors
/// When there is no such table or index, a page is damaged, or the user wants to stop.
pub fn report(database: &Database, object: Option<&str>, progress: &dyn Progress) -> Result<DatabaseReport> {
    let (tables, indexes) = match object {
        None => (database.tables()?, database.indexes()?),
        Some(name) => match (database.table(name), database.index(name)) {
            (Ok(table), _) => {
                let indexes = database.indexes_of(&table);
                (vec![table], indexes)
            }
            (_, Ok(index)) => (vec![], vec![index]),
            _ => return Err(unknown(database, name)),
        },
    };
    let mut report = DatabaseReport::default();
    for table in tables {
        progress.start(&format!("table {}", table.name()), None, Unit::Pages);
        report.tables.push(TableStatistics::of(&table, progress)?);
        progress.finish();
    }
    for index in indexes {
        let pages = u64::from(index.data_set().page_count());
        progress.start(&format!("index {}", index.name()), Some(pages), Unit::Pages);
        let table = database.table_of(&index)?;
        report.indexes.push(IndexStatistics::of(&index, &table, progress)?);
        progress.finish();
    }
    let manager = database.manager();
    report.pools = manager
        .pools()
        .iter()
        .map(|pool| PoolStatistics {
            name: pool.name().into(),
            frame_bytes: pool.frame_bytes(),
            limit_bytes: pool.limit_bytes(),
            used_bytes: pool.used_bytes(),
            counters: manager.pool_counters(pool),
        })
        .collect();
    report.log = LogStatistics::of(database)?;
    Ok(report)
}

fn unknown(database: &Database, name: &str) -> Error {
    let mut names = database.table_names();
    names.extend(database.index_names());
    let hint = if names.is_empty() { "; the database is empty".into() } else { format!("; there are: {}", names.join(", ")) };
    pagefold_engine::Error::Unknown { kind: "table or index", name: name.into(), hint }.into()
}

/// A quotient that JSON can hold.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Rounded to what is worth reading.
fn rounded(value: f64) -> Value {
    json!((value * 1000.0).round() / 1000.0)
}

fn counters_json(counters: &CounterValues) -> Map<String, Value> {
    let mut map: Map<String, Value> = counters.fields().into_iter().map(|(name, value)| (name.to_string(), json!(value))).collect();
    map.insert("hits".into(), json!(counters.hits()));
    map
}

impl DatabaseReport {
    /// As `--json` prints it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let pools: Vec<Value> = self
            .pools
            .iter()
            .map(|pool| {
                let mut value = json!({
                    "name": pool.name, "page_size_bytes": pool.frame_bytes, "limit_bytes": pool.limit_bytes, "used_bytes": pool.used_bytes,
                });
                if let Value::Object(map) = &mut value {
                    map.extend(counters_json(&pool.counters));
                }
                value
            })
            .collect();
        json!({
            "tables": self.tables.iter().map(TableStatistics::to_json).collect::<Vec<_>>(),
            "indexes": self.indexes.iter().map(IndexStatistics::to_json).collect::<Vec<_>>(),
            "pools": pools,
            "log": self.log.as_ref().map(LogStatistics::to_json),
        })
    }

    /// As a person reads it.
    #[must_use]
    pub fn to_text(&self) -> String {
        text::render(self)
    }
}

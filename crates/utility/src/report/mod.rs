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
    /// Tables and indexes that cannot be measured because they are damaged.
    pub damaged: Vec<DamagedObject>,
}

/// A table or index that is damaged, or whose file the system does not give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedObject {
    /// "table" or "index".
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// What is wrong.
    pub reason: String,
    /// The command that mends it; `None`: the system does not give its file, and nothing else is known to be wrong.
    pub mended_by: Option<&'static str>,
}

impl DamagedObject {
    fn table(name: &str, error: &Error) -> DamagedObject {
        let mended_by = error.is_damage().then_some("salvage");
        DamagedObject { kind: "table", name: name.into(), reason: error.to_string(), mended_by }
    }

    fn index(name: &str, error: &Error) -> DamagedObject {
        let reason = match error {
            Error::Engine(pagefold_engine::Error::DamagedIndex { reason, .. }) => reason.clone(),
            other => other.to_string(),
        };
        let mended_by = error.is_damage().then_some("rebuild-index");
        DamagedObject { kind: "index", name: name.into(), reason, mended_by }
    }
}

/// Reports on everything, on a table and its indexes, or on an index. What is damaged is in the report, and keeps nothing else out of it.
///
/// # Errors
/// When there is no such table or index, one cannot be read for another reason than damage, or the user wants to stop.
pub fn report(database: &Database, object: Option<&str>, progress: &dyn Progress) -> Result<DatabaseReport> {
    let (table_names, index_names) = (database.table_names(), database.index_names());
    let mut report = DatabaseReport::default();
    let (tables, mut indexes) = match object {
        None => (table_names, index_names),
        Some(name) if table_names.iter().any(|other| other == name) => (vec![name.to_owned()], Vec::new()),
        Some(name) if index_names.iter().any(|other| other == name) => (Vec::new(), vec![name.to_owned()]),
        Some(name) => return Err(unknown(database, name)),
    };
    for name in tables {
        progress.start(&format!("table {name}"), None, Unit::Pages);
        let measured = database.table(&name).map_err(Error::from).and_then(|table| {
            if object.is_some() {
                indexes.extend(table.all_indexes().iter().map(|index| index.name().to_owned()));
            }
            TableStatistics::of(&database.read_view(), &table, progress)
        });
        match measured {
            Ok(measured) => report.tables.push(measured),
            Err(error) if error.is_damage() || error.is_refusal() => report.damaged.push(DamagedObject::table(&name, &error)),
            // It was dropped meanwhile.
            Err(Error::Engine(pagefold_engine::Error::Unknown { .. })) if object.is_none() => {}
            Err(error) => return Err(error),
        }
        progress.finish();
    }
    for name in indexes {
        progress.start(&format!("index {name}"), None, Unit::Pages);
        let measured = measure_index(database, &name, progress);
        match measured {
            Ok(measured) => report.indexes.push(measured),
            Err(error) if error.is_damage() || error.is_refusal() => {
                // One that cannot be opened with its table is not to blame.
                if report.damaged.iter().all(|table| table.kind != "table" || table.reason != error.to_string()) {
                    report.damaged.push(DamagedObject::index(&name, &error));
                }
            }
            Err(Error::Engine(pagefold_engine::Error::Unknown { .. })) if object.is_none() => {}
            Err(error) => return Err(error),
        }
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

fn measure_index(database: &Database, name: &str, progress: &dyn Progress) -> Result<IndexStatistics> {
    let index = database.index(name)?;
    index.check_usable()?;
    let table = database.table_of(&index)?;
    IndexStatistics::of(&index, &table, progress)
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
            "damaged": self.damaged.iter().map(|damaged| json!({
                "kind": damaged.kind, "name": damaged.name, "reason": damaged.reason, "mended_by": damaged.mended_by,
            })).collect::<Vec<_>>(),
            "log": self.log.as_ref().map(LogStatistics::to_json),
        })
    }

    /// As a person reads it.
    #[must_use]
    pub fn to_text(&self) -> String {
        text::render(self)
    }
}

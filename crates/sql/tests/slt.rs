//! The files of `tests/slt`: SQL with what comes of it. Each file has a database of its own, in memory.
//!
//! Values are written as PostgreSQL's psql does, NULL as `NULL`, an empty text as `(empty)`. `statement error REGEX` looks at `SQLSTATE message`, and DETAIL, CONTEXT and HINT behind it.

#![allow(clippy::unwrap_used, reason = "tests")]

use pagefold_engine::database::{Database as Engine, OpenMode, Settings};
use pagefold_io::{MemoryStorage, OsClock};
use pagefold_sql::{Database, Session, SqlError};
use pagefold_types::{DataType, Value, text};
use sqllogictest::{DBOutput, DefaultColumnType, Runner};
use std::path::Path;
use std::sync::Arc;

struct Connection(Session);

/// An error as the files have it.
#[derive(Debug)]
struct Failed(SqlError);

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.0.sqlstate(), self.0)?;
        if let Some(detail) = self.0.detail() {
            write!(f, " DETAIL {}", detail.replace('\n', "; "))?;
        }
        if let Some(context) = self.0.context() {
            write!(f, " CONTEXT {context}")?;
        }
        if let Some(hint) = self.0.hint() {
            write!(f, " HINT {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failed {}

fn shown(value: &Value, data_type: &DataType) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::Text(text) if text.is_empty() => "(empty)".into(),
        value => text::to_text(value.as_ref(), data_type),
    }
}

impl sqllogictest::DB for Connection {
    type Error = Failed;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failed> {
        let mut answer = self.0.execute(sql, &[]).map_err(Failed)?;
        let types: Vec<DataType> = answer.columns().map(|column| column.data_type).collect();
        let mut rows = Vec::new();
        while let Some(row) = answer.next_row().map_err(Failed)? {
            rows.push(row.iter().zip(&types).map(|(value, data_type)| shown(value, data_type)).collect());
        }
        if types.is_empty() {
            return Ok(DBOutput::StatementComplete(answer.count()));
        }
        let of = |data_type: &DataType| match data_type {
            DataType::SmallInt | DataType::Integer | DataType::BigInt => DefaultColumnType::Integer,
            DataType::Real | DataType::Double | DataType::Decimal { .. } => DefaultColumnType::FloatingPoint,
            _ => DefaultColumnType::Text,
        };
        Ok(DBOutput::Rows { types: types.iter().map(of).collect(), rows })
    }
}

fn database() -> Database {
    let storage = Arc::new(MemoryStorage::new());
    let engine = Engine::open(storage, Arc::new(OsClock), Path::new("memory"), OpenMode::Create, Settings::default()).unwrap();
    Database::new(Arc::new(engine))
}

#[test]
fn files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let only = std::env::var("PAGEFOLD_SLT").unwrap_or_default();
    let (mut ran, mut failed) = (0, Vec::new());
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "slt")) {
        if !file.to_string_lossy().contains(&only) {
            continue;
        }
        let database = database();
        let mut runner = Runner::new(|| {
            let session = database.session();
            async move { Ok(Connection(session)) }
        });
        ran += 1;
        if let Err(error) = runner.run_file(file) {
            failed.push(format!("{}", error.display(false)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    assert!(ran > 0 || !only.is_empty(), "no files");
}

//! Databases with both ways of running queries, and statements that are run in both.

#![allow(dead_code, reason = "each test uses some of it")]

use pagefold_engine::database::{Database as Engine, OpenMode, Settings};
use pagefold_io::{MemoryStorage, OsClock};
use pagefold_sql::{Database, Session};
use pagefold_sql_analytics::DataFusion;
use pagefold_types::Value;
use std::path::Path;
use std::sync::Arc;

/// A new one, in memory.
pub(crate) fn database(threads: usize) -> Database {
    database_of(Arc::new(DataFusion::with_threads(threads)))
}

/// The same, by this one.
pub(crate) fn database_of(analytics: Arc<DataFusion>) -> Database {
    let storage = Arc::new(MemoryStorage::new());
    let engine = Engine::open(storage, Arc::new(OsClock), Path::new("memory"), OpenMode::Create, Settings::default()).unwrap();
    Database::with_analytics(Arc::new(engine), None, analytics)
}

/// All rows, or the SQLSTATE.
pub(crate) type Outcome = Result<Vec<Vec<Value>>, &'static str>;

pub(crate) fn run(session: &mut Session, sql: &str) -> Outcome {
    session.execute(sql, &[]).and_then(pagefold_sql::Answer::rows).map_err(|error| error.sqlstate())
}

/// Runs what must not fail.
pub(crate) fn done(session: &mut Session, sql: &str) -> Vec<Vec<Value>> {
    match session.execute(sql, &[]).and_then(pagefold_sql::Answer::rows) {
        Ok(rows) => rows,
        Err(error) => panic!("{error} ({})\n{sql}", error.sqlstate()),
    }
}

/// The same statement in both ways, and whether it was run by batches.
pub(crate) fn both(database: &Database, session: &mut Session, sql: &str) -> (Outcome, Outcome, bool) {
    done(session, "SET analytics = off");
    let by_rows = run(session, sql);
    done(session, "SET analytics = on");
    let before = database.analytics_statements();
    let by_batches = run(session, sql);
    (by_rows, by_batches, database.analytics_statements() > before)
}

/// Rows in an order in which they can be compared.
pub(crate) fn in_order(outcome: Outcome) -> Outcome {
    outcome.map(|mut rows| {
        rows.sort();
        rows
    })
}

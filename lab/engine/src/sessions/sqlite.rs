//! SQLite: a connection for each terminal, WAL.
//!
//! Transactions that change something begin with BEGIN IMMEDIATE. Only one of them runs at a time;
//! the others wait in line in this process, which wakes the next one at once, or, if that is asked
//! for, by SQLite's busy handler, which sleeps and looks again.

use super::{Access, Connection, Done, Failure, Query, Rows};
use pagefold_types::Value;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ErrorCode, ToSql, params_from_iter};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Who has it may change something.
static WRITER: Mutex<()> = Mutex::new(());

/// A connection.
#[derive(Debug)]
pub struct Sqlite {
    connection: rusqlite::Connection,
    waits_in_line: bool,
    turn: Option<MutexGuard<'static, ()>>,
}

fn failure(error: &rusqlite::Error, text: &str) -> Failure {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Failure::Retry("BUSY"),
        _ => Failure::fatal(format!("SQLite: {error}, in {text}")),
    }
}

/// Amounts are whole numbers there.
struct Bound<'a>(&'a Value);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Value::Null => ToSqlOutput::Owned(rusqlite::types::Value::Null),
            Value::Int(number) => (*number).into(),
            Value::Decimal(number) => i64::try_from(*number).expect("cents").into(),
            Value::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            other => panic!("{other:?} is in no table of these"),
        })
    }
}

fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Int(number),
        ValueRef::Real(number) => Value::Double(number),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
    }
}

impl Sqlite {
    /// Opens a database, or makes it.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(file: &Path, synchronous: &str, cache_bytes: usize, foreign_keys: bool, waits_in_line: bool) -> Done<Sqlite> {
        let connection = rusqlite::Connection::open(file).map_err(|error| failure(&error, "open"))?;
        let synchronous = if synchronous == "on" { "FULL" } else { "OFF" };
        let pragmas = format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; PRAGMA cache_size = -{}; PRAGMA foreign_keys = {foreign_keys}",
            cache_bytes >> 10
        );
        connection.busy_timeout(Duration::from_secs(60)).map_err(|error| failure(&error, "busy_timeout"))?;
        connection.execute_batch(&pragmas).map_err(|error| failure(&error, &pragmas))?;
        connection.set_prepared_statement_cache_capacity(100);
        Ok(Sqlite { connection, waits_in_line, turn: None })
    }

    /// Runs the texts that make the tables.
    ///
    /// # Errors
    /// When one of them cannot be run.
    pub fn create(&mut self, definitions: &[String]) -> Done<()> {
        for text in definitions {
            self.connection.execute_batch(text).map_err(|error| failure(&error, text))?;
        }
        Ok(())
    }

    fn command(&mut self, text: &str) -> Done<()> {
        let run = || self.connection.prepare_cached(text)?.execute([]);
        run().map(drop).map_err(|error| failure(&error, text))
    }
}

impl Connection for Sqlite {
    fn begin(&mut self, access: Access) -> Done<()> {
        if access == Access::Read {
            return self.command("BEGIN");
        }
        if self.waits_in_line {
            // A terminal that ended with the lock has ended the run, too.
            self.turn = Some(WRITER.lock().unwrap_or_else(PoisonError::into_inner));
        }
        self.command("BEGIN IMMEDIATE").inspect_err(|_| self.turn = None)
    }

    fn rows(&mut self, query: Query, params: &[Value]) -> Done<Rows> {
        self.say(query.text_without_locks(), params)
    }

    fn change(&mut self, query: Query, params: &[Value]) -> Done<u64> {
        let text = query.text_without_locks();
        let run = || self.connection.prepare_cached(text)?.execute(params_from_iter(params.iter().map(Bound)));
        run().map(|count| count as u64).map_err(|error| failure(&error, text))
    }

    fn commit(&mut self) -> Done<()> {
        let done = self.command("COMMIT");
        self.turn = None;
        done
    }

    fn rollback(&mut self) -> Done<()> {
        // BEGIN may have failed, or the error may have ended the transaction.
        let done = if self.connection.is_autocommit() { Ok(()) } else { self.command("ROLLBACK") };
        self.turn = None;
        done
    }

    fn say(&mut self, text: &str, params: &[Value]) -> Done<Rows> {
        let run = || {
            let mut statement = self.connection.prepare_cached(text)?;
            let columns = statement.column_count();
            let mut found = statement.query(params_from_iter(params.iter().map(Bound)))?;
            let mut rows = Rows::new();
            while let Some(row) = found.next()? {
                rows.push((0..columns).map(|at| row.get_ref(at).map(value)).collect::<rusqlite::Result<_>>()?);
            }
            Ok(rows)
        };
        run().map_err(|error| failure(&error, text))
    }
}

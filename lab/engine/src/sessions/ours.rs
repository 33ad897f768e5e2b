//! pagefold: a session for each terminal.

use super::{Access, Connection, Done, Failure, Query, Rows, text};
use pagefold_engine::database::{Database as Engine, OpenMode, Settings};
use pagefold_engine::pool::PoolSettings;
use pagefold_io::{OsClock, OsStorage};
use pagefold_sql::{Answer, Database, Session, SqlError, Statement};
use pagefold_types::Value;
use std::path::Path;
use std::sync::Arc;

/// How a database is used.
#[derive(Clone, Debug)]
pub struct Use {
    /// That of transactions that change something.
    pub isolation: String,
    /// Do commits wait for the device: off, relaxed (until the log is written), on.
    pub synchronous: String,
}

/// Those of a database with this much memory for its pools.
#[must_use]
pub fn settings(memory_bytes: usize) -> Settings {
    Settings { pools: PoolSettings { memory_bytes, ..PoolSettings::default() }, ..Settings::default() }
}

/// Opens a database, or makes it; after a crash it is recovered first.
///
/// # Errors
/// When it cannot be opened.
pub fn open(directory: &Path, memory_bytes: usize) -> Done<Database> {
    let engine = Engine::open(Arc::new(OsStorage), Arc::new(OsClock), directory, OpenMode::Create, settings(memory_bytes));
    let engine = engine.map_err(|error| Failure::fatal(format!("{}: {error}", directory.display())))?;
    Ok(Database::new(Arc::new(engine)))
}

/// Runs the texts that make the tables.
///
/// # Errors
/// When one of them cannot be run.
pub fn create(database: &Database, definitions: &[String]) -> Done<()> {
    let mut session = database.session();
    for text in definitions {
        session.execute(text, &[]).and_then(Answer::rows).map_err(|error| failure(&error, text))?;
    }
    Ok(())
}

fn failure(error: &SqlError, text: &str) -> Failure {
    if error.is_retryable() {
        return Failure::Retry(error.sqlstate());
    }
    let detail = error.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
    Failure::fatal(format!("{} {error}{detail}, in {text}", error.sqlstate()))
}

/// A session with its statements.
#[derive(Debug)]
pub struct Ours {
    session: Session,
    statements: Vec<Statement>,
    begin_write: Statement,
    begin_read: Statement,
    commit: Statement,
    rollback: Statement,
}

impl Ours {
    /// A session that has prepared these statements, which are numbered.
    ///
    /// # Errors
    /// When one of them cannot be prepared.
    pub fn new(database: &Database, of: &Use, queries: impl IntoIterator<Item = Query>) -> Done<Ours> {
        let mut session = database.session();
        let set = format!("SET synchronous_commit = {}", of.synchronous);
        session.execute(&set, &[]).and_then(Answer::rows).map_err(|error| failure(&error, &set))?;
        let mut prepare = |text: &str| session.prepare(text).map_err(|error| failure(&error, text));
        let statements = queries.into_iter().map(|query| prepare(query.text)).collect::<Done<_>>()?;
        let begin_write = prepare(&format!("BEGIN ISOLATION LEVEL {}", of.isolation))?;
        let reads = if of.isolation == "serializable" { "serializable" } else { "repeatable read" };
        let begin_read = prepare(&format!("BEGIN ISOLATION LEVEL {reads} READ ONLY"))?;
        let (commit, rollback) = (prepare("COMMIT")?, prepare("ROLLBACK")?);
        Ok(Ours { session, statements, begin_write, begin_read, commit, rollback })
    }

    /// The plan of a text, line by line.
    ///
    /// # Errors
    /// When it has none.
    pub fn plan(&mut self, of: &str, params: &[Value]) -> Done<Vec<String>> {
        let rows = self.say(&format!("EXPLAIN {of}"), params)?;
        rows.iter().map(|row| text(&row[0]).map(str::to_owned)).collect()
    }
}

fn run<R>(session: &mut Session, statement: &Statement, params: &[Value], take: impl FnOnce(Answer<'_>) -> Result<R, SqlError>) -> Done<R> {
    session.run(statement, params).and_then(take).map_err(|error| failure(&error, statement.text()))
}

impl Connection for Ours {
    fn begin(&mut self, access: Access) -> Done<()> {
        let begin = if access == Access::Read { &self.begin_read } else { &self.begin_write };
        run(&mut self.session, begin, &[], |answer| answer.rows()).map(drop)
    }

    fn rows(&mut self, query: Query, params: &[Value]) -> Done<Rows> {
        run(&mut self.session, &self.statements[query.number], params, |answer| answer.rows())
    }

    fn change(&mut self, query: Query, params: &[Value]) -> Done<u64> {
        run(&mut self.session, &self.statements[query.number], params, |answer| Ok(answer.count()))
    }

    fn commit(&mut self) -> Done<()> {
        run(&mut self.session, &self.commit, &[], |answer| answer.rows()).map(drop)
    }

    fn rollback(&mut self) -> Done<()> {
        run(&mut self.session, &self.rollback, &[], |answer| answer.rows()).map(drop)
    }

    fn say(&mut self, text: &str, params: &[Value]) -> Done<Rows> {
        self.session.execute(text, params).and_then(Answer::rows).map_err(|error| failure(&error, text))
    }
}

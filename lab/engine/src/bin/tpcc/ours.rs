//! pagefold: a session for each terminal.

use crate::connection::{Access, Connection, Done, Failure, Rows, text};
use crate::schema::definitions;
use crate::statements::Query;
use pagefold_engine::database::{Database as Engine, OpenMode, Settings};
use pagefold_engine::pool::PoolSettings;
use pagefold_io::{OsClock, OsStorage};
use pagefold_sql::{Answer, Database, Session, SqlError, Statement};
use pagefold_types::Value;
use std::path::Path;
use std::sync::Arc;

/// How a database is used.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    /// That of transactions that change something.
    pub(crate) isolation: String,
    pub(crate) synchronous: String,
}

pub(crate) fn settings(memory_bytes: usize) -> Settings {
    Settings { pools: PoolSettings { memory_bytes, ..PoolSettings::default() }, ..Settings::default() }
}

/// Opens a database, or makes it; after a crash it is recovered first.
pub(crate) fn open(directory: &Path, memory_bytes: usize) -> Done<Database> {
    let engine = Engine::open(Arc::new(OsStorage), Arc::new(OsClock), directory, OpenMode::Create, settings(memory_bytes));
    let engine = engine.map_err(|error| Failure::fatal(format!("{}: {error}", directory.display())))?;
    Ok(Database::new(Arc::new(engine)))
}

/// Makes the tables.
pub(crate) fn create(database: &Database, method: &str, foreign_keys: bool) -> Done<()> {
    let mut session = database.session();
    for text in definitions(foreign_keys, |_| format!(" WITH (compress = '{method}')")) {
        session.execute(&text, &[]).and_then(Answer::rows).map_err(|error| failure(&error, &text))?;
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
pub(crate) struct Ours {
    session: Session,
    statements: Vec<Statement>,
    begin_write: Statement,
    begin_read: Statement,
    commit: Statement,
    rollback: Statement,
}

impl Ours {
    pub(crate) fn new(database: &Database, of: &Use) -> Done<Ours> {
        let mut session = database.session();
        let set = format!("SET synchronous_commit = {}", of.synchronous);
        session.execute(&set, &[]).and_then(Answer::rows).map_err(|error| failure(&error, &set))?;
        let mut prepare = |text: &str| session.prepare(text).map_err(|error| failure(&error, text));
        let statements = Query::all().map(|query| prepare(query.text())).collect::<Done<_>>()?;
        let begin_write = prepare(&format!("BEGIN ISOLATION LEVEL {}", of.isolation))?;
        let reads = if of.isolation == "serializable" { "serializable" } else { "repeatable read" };
        let begin_read = prepare(&format!("BEGIN ISOLATION LEVEL {reads} READ ONLY"))?;
        let (commit, rollback) = (prepare("COMMIT")?, prepare("ROLLBACK")?);
        Ok(Ours { session, statements, begin_write, begin_read, commit, rollback })
    }

    /// The plan of each statement.
    pub(crate) fn explain(&mut self) -> Done<Vec<(Query, Vec<String>)>> {
        let mut explained = Vec::new();
        for query in Query::all() {
            explained.push((query, self.plan(query.text(), &vec![Value::Int(1); query.parameters()])?));
        }
        Ok(explained)
    }

    /// The plan of a text, line by line.
    pub(crate) fn plan(&mut self, of: &str, params: &[Value]) -> Done<Vec<String>> {
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
        run(&mut self.session, &self.statements[query.0], params, |answer| answer.rows())
    }

    fn change(&mut self, query: Query, params: &[Value]) -> Done<u64> {
        run(&mut self.session, &self.statements[query.0], params, |answer| Ok(answer.count()))
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

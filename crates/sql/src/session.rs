//! A session: what a program, or one connection of a server, talks to.
//!
//! A session is a value. It has at most one transaction: one that BEGIN opened, or one for the single statement that runs. What is wrong with a statement takes that
//! statement back; within BEGIN the transaction has then failed, as in PostgreSQL: it can only be rolled back, as a whole or to a savepoint.
//!
//! * `transaction`: BEGIN, COMMIT, savepoints; `run`: statements with a plan
//! * `copy`: COPY; `cursor`: cursors; `utility`: what is no part of a transaction
//!
//! Invariants:
//! - a statement has happened as a whole or not at all;
//! - a plan is used only with the version of the catalog that it was made with;
//! - an [`Answer`] that is dropped before its end ends its transaction, if it is the statement's own.

mod copy;
mod cursor;
mod parts;
mod run;
mod temporary;
mod transaction;
mod utility;

pub use copy::CopyStream;

use crate::answer::Answer;
use crate::bind::{Output, TEXT};
use crate::define;
use crate::execute::{Execution, Limits, Run, change};
use crate::parse::{Parsed, Syntax, identifier, parse};
use crate::planned::{ByText, Planned, Plans};
use crate::sequences::Drawn;
use crate::sessions::Listed;
use crate::settings::Settings;
use crate::{Database, SqlError, SqlResult};
use copy::Text;
use pagefold_engine::database::{TableChange, Transaction, TransactionOptions};
use pagefold_io::{Clock, OsClock};
use pagefold_types::{DataType, Value};
use sqlparser::ast::{self, Statement as Node};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing::{debug_span, field};
pub(crate) use transaction::unix_micros;
use transaction::{Open, no_savepoint, set_modes};
use utility::Watcher;

/// A session.
#[derive(Debug)]
pub struct Session {
    /// Before the database, which may end with this session: what plans have would stay in its directory.
    plans: Plans,
    pub(crate) database: Database,
    clock: Arc<dyn Clock>,
    /// Microseconds since 1970 at which the statement began that runs, or ran last.
    statement_began: i64,
    listed: Listed,
    pub(crate) open: Option<Open>,
    pub(crate) settings: Settings,
    cancelled: Arc<AtomicBool>,
    /// Numbers of sequences that it was given.
    drawn: Arc<Drawn>,
    prepared: HashMap<String, Statement>,
    /// Statements that were executed, by their texts, as they were read.
    read: ByText<Statement>,
    watcher: Watcher,
    /// The schema of its temporary tables, once there was one.
    temporary: Option<Arc<str>>,
    /// What is to be known of the last statement beside its answer.
    notices: Vec<Notice>,
}

/// What a session's transaction is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionState {
    /// There is none.
    None,
    /// BEGIN opened one.
    Open,
    /// A statement in it has failed.
    Failed,
}

/// What is to be known of a statement that has done what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// In a sentence.
    pub message: String,
    /// More about it.
    pub detail: Option<String>,
}

/// Ends the statement that a session runs, from another thread.
#[derive(Clone, Debug)]
pub struct Canceller(Arc<AtomicBool>);

impl Canceller {
    /// Ends it with SQLSTATE 57014. Without one that runs, nothing happens.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A statement that is read once, and run as often as is liked: by any session of the same database.
#[derive(Clone, Debug)]
pub struct Statement {
    text: Arc<str>,
    syntax: Arc<Syntax>,
    /// Types that PREPARE gave to parameters.
    types: Arc<[DataType]>,
}

impl Statement {
    /// One that stands within another.
    fn of(node: Node, types: &[DataType]) -> Statement {
        Statement { text: node.to_string().into(), syntax: Arc::new(Syntax::Sql(Box::new(node))), types: types.into() }
    }

    /// The same with other types of its parameters.
    fn with_types(&self, types: &[DataType]) -> Statement {
        Statement { types: types.into(), ..self.clone() }
    }

    /// Types that PREPARE gave to parameters.
    pub(crate) fn types(&self) -> &[DataType] {
        &self.types
    }

    pub(crate) fn shared_text(&self) -> &Arc<str> {
        &self.text
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl Session {
    pub(crate) fn new(database: Database) -> Session {
        Session {
            listed: database.enter_session(),
            database,
            clock: Arc::new(OsClock),
            statement_began: 0,
            open: None,
            settings: Settings::default(),
            cancelled: Arc::new(AtomicBool::new(false)),
            drawn: Arc::default(),
            plans: Plans::default(),
            prepared: HashMap::new(),
            read: ByText::default(),
            watcher: Watcher::default(),
            temporary: None,
            notices: Vec::new(),
        }
    }

    /// Ends its statements from elsewhere.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        Canceller(Arc::clone(&self.cancelled))
    }

    /// Is there a transaction?
    #[must_use]
    pub fn transaction_state(&self) -> TransactionState {
        match &self.open {
            Some(open) if open.is_explicit && open.has_failed => TransactionState::Failed,
            Some(open) if open.is_explicit => TransactionState::Open,
            _ => TransactionState::None,
        }
    }

    /// Looks at what there is, as the next statement would find it: for tools that show definitions.
    ///
    /// # Errors
    /// 25P02 when the transaction has failed; those of the commit, without a transaction.
    pub fn look<R>(&mut self, look: impl FnOnce(&mut Transaction<'static>) -> R) -> SqlResult<R> {
        if self.transaction_state() == TransactionState::Failed {
            return Err(aborted());
        }
        let looked = look(&mut self.begin().transaction);
        self.end_statement()?;
        Ok(looked)
    }

    /// What is to be known of the last statement beside its answer: that something was there already, or went with something else.
    #[must_use]
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// The schema of its temporary tables, once it has made one: a name without a schema means what is there first.
    #[must_use]
    pub fn temporary_schema(&self) -> Option<&str> {
        self.temporary.as_deref()
    }

    /// Refuses a change of a table that is to be made without SQL, when a rule of the table, a foreign key or a view forbids it.
    ///
    /// # Errors
    /// 2BP01 with the name of what forbids it, 42804, 42501.
    pub fn check_change(&mut self, table: &str, change: &TableChange) -> SqlResult<()> {
        self.look_defining(|defining| defining.check_change(table, change))
    }

    /// Refuses to drop a table or index without SQL when foreign keys, views or defaults rely on it.
    ///
    /// # Errors
    /// 2BP01 with the names of what forbids it, 42501.
    pub fn check_drop(&mut self, name: &str) -> SqlResult<()> {
        self.look_defining(|defining| defining.check_drop(name))
    }

    /// In a transaction of its own, which is taken back.
    fn look_defining(&mut self, look: impl FnOnce(&mut define::Defining<'_>) -> SqlResult<()>) -> SqlResult<()> {
        let mut open = self.opened_apart();
        let run = self.run_of(&open);
        look(&mut define::Defining::new(&mut open.transaction, run))
    }

    /// A transaction beside that of the session.
    fn opened_apart(&self) -> Open {
        Open::new(&self.database, self.clock.as_ref(), &Arc::default(), TransactionOptions::default(), false)
    }

    /// What its statements are run with.
    fn run_of(&self, open: &Open) -> Run<'_> {
        Run {
            database: &self.database,
            now: open.now(open.began),
            memory: self.settings.work_mem,
            limits: self.limits(),
            drawn: &self.drawn,
        }
    }

    /// Has it neither a transaction nor anything that was set or prepared?
    #[must_use]
    pub fn is_as_new(&self) -> bool {
        self.open.is_none() && self.temporary.is_none() && self.prepared.is_empty() && !self.settings.has_changed
    }

    /// Reads a text of one statement.
    ///
    /// # Errors
    /// 42601 when it is none, or several.
    pub fn prepare(&mut self, text: &str) -> SqlResult<Statement> {
        let mut parsed = parse(text)?;
        match (parsed.pop(), parsed.is_empty()) {
            (Some(Parsed { syntax, .. }), true) => Ok(Statement { text: text.into(), syntax: Arc::new(syntax), types: Arc::new([]) }),
            (None, _) => Err(SqlError::syntax("there is no statement")),
            _ => Err(SqlError::syntax("there is more than one statement")),
        }
    }

    /// The statements of a text, each by itself.
    ///
    /// # Errors
    /// 42601 when it is none.
    pub fn statements(&mut self, text: &str) -> SqlResult<Vec<Statement>> {
        let statement = |parsed: Parsed| Statement { text: parsed.text.into(), syntax: Arc::new(parsed.syntax), types: Arc::new([]) };
        Ok(parse(text)?.into_iter().map(statement).collect())
    }

    /// Runs one statement, with values for its parameters: `$1` and so on, or `?` one after the other. A [`Value::Decimal`] has the scale that the statement gives its parameter: that of the column
    /// it is for or compared with, of a cast, of PREPARE. Where there is none, as beside an operator, it is refused (22023); texts and other numbers are not.
    ///
    /// # Errors
    /// Whatever is wrong with it, with a SQLSTATE.
    pub fn execute(&mut self, text: &str, params: &[Value]) -> SqlResult<Answer<'_>> {
        let statement = match self.read.get(text) {
            Some(statement) => statement.clone(),
            None => {
                let statement = self.prepare(text).inspect_err(|_| self.fail())?;
                self.read.put(&statement.text, statement.clone());
                statement
            }
        };
        self.run(&statement, params)
    }

    /// Runs all statements of a text, and gives each answer to `each`. Ends with the first that fails.
    ///
    /// # Errors
    /// That of the statement; those of `each`.
    pub fn execute_all(&mut self, text: &str, mut each: impl FnMut(Answer<'_>) -> SqlResult<()>) -> SqlResult<()> {
        let statements = self.statements(text).inspect_err(|_| self.fail())?;
        statements.iter().try_for_each(|statement| each(self.run(statement, &[])?))
    }

    /// Runs a statement that was read before.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn run(&mut self, statement: &Statement, params: &[Value]) -> SqlResult<Answer<'_>> {
        self.run_with(statement, params, Text::None)
    }

    fn run_with(&mut self, statement: &Statement, params: &[Value], text: Text<'_>) -> SqlResult<Answer<'_>> {
        self.cancelled.store(false, Ordering::Relaxed);
        self.notices.clear();
        self.listed.begins(&statement.text, self.clock.monotonic());
        self.statement_began = unix_micros(self.clock.as_ref());
        let span = debug_span!(target: "pagefold", "statement", text = statement.text(), rows = field::Empty, sqlstate = field::Empty);
        let given = span.in_scope(|| self.given(statement, params, text));
        match given {
            Ok(Given::Ran(ran)) => Ok(Answer::of(self, ran, span)),
            Ok(Given::Done(done)) => Ok(Answer::command(self, done, span)),
            Ok(Given::Fetched(fetched)) => Ok(Answer::fetched(self, fetched, span)),
            Err(error) => {
                span.record("sqlstate", error.sqlstate());
                self.fail();
                Err(error)
            }
        }
    }

    /// What a statement gives. Whoever asks takes back what failed.
    fn given(&mut self, statement: &Statement, params: &[Value], text: Text<'_>) -> SqlResult<Given> {
        let syntax = Arc::clone(&statement.syntax);
        if self.transaction_state() == TransactionState::Failed && !ends_failed(&syntax) {
            return Err(aborted());
        }
        let _entered = self.enter_temporary(&syntax)?;
        let node = match &*syntax {
            Syntax::Copy(copy) => return self.copy(statement, copy, text).map(Given::Ran),
            Syntax::Cursor(cursor) => return self.cursor(cursor, params),
            Syntax::Utility(utility) => return self.utility(utility).map(Given::Done),
            Syntax::Sequence(alter) => return self.define(|defining| defining.alter_sequence(alter)).map(Given::Done),
            Syntax::Sql(node) => &**node,
        };
        match node {
            node if is_planned(node) => self.plan_and_run(statement, params).map(Given::Ran),
            Node::Execute { name: Some(name), parameters, .. } => {
                let (prepared, params) = self.prepared(name, parameters, params)?;
                self.plan_and_run(&prepared, &params).map(Given::Ran)
            }
            Node::Explain { .. } => self.explain(node, params).map(Given::Done),
            node => self.command(node).map(Given::Done),
        }
    }

    fn limits(&self) -> Limits {
        let deadline = self.settings.statement_timeout.map(|timeout| self.clock.monotonic() + timeout);
        Limits { cancelled: Arc::clone(&self.cancelled), clock: Arc::clone(&self.clock), deadline }
    }

    /// Statements that give no rows, or whose rows are few; their tag.
    fn command(&mut self, node: &Node) -> SqlResult<Done> {
        match node {
            Node::StartTransaction { modes, modifier: None, statements, .. } if statements.is_empty() => self.begin_explicit(modes),
            Node::Commit { chain, modifier: None, .. } => self.commit(*chain),
            Node::Rollback { chain, savepoint: None } => self.rollback(*chain),
            Node::Rollback { savepoint: Some(name), .. } => self.roll_back_to(&identifier(name)),
            Node::Savepoint { name } => self.savepoint(identifier(name)),
            Node::ReleaseSavepoint { name } => {
                let wanted = identifier(name);
                let open = self.explicit("RELEASE SAVEPOINT")?;
                let Some(at) = open.savepoints.iter().rposition(|own| own.name == wanted) else { return Err(no_savepoint(&wanted)) };
                open.savepoints.truncate(at);
                open.release_cursors_since(at);
                Ok(Done::tag("RELEASE"))
            }
            Node::Set(set) => self.set(set),
            Node::Reset(ast::ResetStatement { reset }) => {
                let name = match reset {
                    ast::Reset::ALL => "all".to_owned(),
                    ast::Reset::ConfigurationParameter(name) => name.to_string().to_lowercase(),
                };
                self.change_settings(false, |settings| settings.reset(&name)).map(|()| Done::tag("RESET"))
            }
            Node::ShowVariable { variable } => {
                let name = variable.iter().map(|part| part.value.to_lowercase()).collect::<Vec<_>>().join(".");
                let name = if name == "transaction.isolation.level" { "transaction_isolation".to_owned() } else { name };
                let value = match name.as_str() {
                    "transaction_isolation" => {
                        let isolation = self.open.as_ref().map_or(self.settings.isolation, |open| open.options.isolation);
                        crate::settings::isolation_name(isolation).to_owned()
                    }
                    _ => self.settings.show(&name)?,
                };
                Ok(Done::lines("SHOW", &name, vec![value]))
            }
            Node::Vacuum(vacuum) => {
                if vacuum.full || vacuum.sort_only || vacuum.delete_only || vacuum.reindex || vacuum.recluster || vacuum.boost {
                    return Err(SqlError::unsupported(format!("{node}")).with_hint("REORG writes a table anew."));
                }
                if self.open.is_some() {
                    return Err(SqlError::new("25001", "VACUUM cannot run inside a transaction block"));
                }
                if let Some(name) = &vacuum.table_name {
                    let wanted = crate::parse::object_name(name)?;
                    let found = crate::catalog::TableRef::find(&mut self.begin().transaction, &wanted).map(drop);
                    self.end_statement()?;
                    found?;
                }
                Ok(Done::tag("VACUUM"))
            }
            Node::Prepare { name, data_types, statement: inner } => {
                if !is_planned(inner) {
                    return Err(SqlError::syntax("PREPARE takes SELECT, VALUES, INSERT, UPDATE or DELETE"));
                }
                let types: Vec<DataType> = data_types.iter().map(crate::bind::types::data_type).collect::<SqlResult<_>>()?;
                let wanted = identifier(name);
                if self.prepared.contains_key(&wanted) {
                    return Err(SqlError::new("42P05", format!("prepared statement \"{wanted}\" already exists")));
                }
                self.prepared.insert(wanted, Statement::of((**inner).clone(), &types));
                Ok(Done::tag("PREPARE"))
            }
            Node::Deallocate { name, .. } => {
                let wanted = identifier(name);
                if wanted == "all" {
                    self.prepared.clear();
                } else if self.prepared.remove(&wanted).is_none() {
                    return Err(SqlError::new("26000", format!("prepared statement \"{wanted}\" does not exist")));
                }
                Ok(Done::tag("DEALLOCATE"))
            }
            node => self.define(|defining| defining.define(node)),
        }
    }

    /// Statements that define something.
    fn define(&mut self, define: impl FnOnce(&mut define::Defining<'_>) -> SqlResult<String>) -> SqlResult<Done> {
        let limits = self.limits();
        let memory = self.settings.work_mem;
        // They would have to be made anew in any case.
        self.plans.forget_all();
        self.begin();
        let Some(open) = &mut self.open else { return Err(SqlError::new("XX000", "a statement without a transaction")) };
        open.has_run = true;
        open.settle_cursors(&limits)?;
        let savepoint = open.transaction.savepoint();
        let run = Run { database: &self.database, now: open.now(self.statement_began), memory, limits, drawn: &self.drawn };
        let mut defining = define::Defining::new(&mut open.transaction, run);
        match define(&mut defining) {
            Ok(tag) => {
                self.notices = defining.notices;
                self.end_statement()?;
                Ok(Done { tag, rows: None })
            }
            Err(error) => {
                if open.transaction.failure().is_none() {
                    open.transaction.roll_back_to(savepoint)?;
                }
                Err(error)
            }
        }
    }

    fn set(&mut self, set: &ast::Set) -> SqlResult<Done> {
        match set {
            ast::Set::SetTransaction { modes, snapshot: None, session: false, .. } => {
                let (database, clock, doing) = (self.database.clone(), Arc::clone(&self.clock), Arc::clone(&self.listed.doing));
                let open = self.explicit("SET TRANSACTION")?;
                if open.has_run {
                    return Err(SqlError::new("25001", "SET TRANSACTION ISOLATION LEVEL must be called before any query"));
                }
                let mut options = open.options;
                set_modes(&mut options, modes)?;
                *open = Open::new(&database, clock.as_ref(), &doing, options, true);
            }
            ast::Set::SetTransaction { modes, session: true, .. } => {
                let mut options = self.settings.options();
                set_modes(&mut options, modes)?;
                self.change_settings(false, |settings| {
                    (settings.isolation, settings.read_only, settings.has_changed) = (options.isolation, options.read_only, true);
                    Ok(())
                })?;
            }
            ast::Set::SingleAssignment { scope, variable, values, .. } => {
                let value = values.iter().map(crate::settings::text_of).collect::<Vec<_>>().join(", ");
                let name = variable.to_string().to_lowercase();
                let is_local = matches!(scope, Some(ast::ContextModifier::Local));
                self.change_settings(is_local, |settings| settings.set(&name, &value))?;
            }
            ast::Set::SetTimeZone { value, .. } => {
                self.change_settings(false, |settings| settings.set("timezone", &crate::settings::text_of(value)))?;
            }
            ast::Set::SetNames { charset_name, .. } => {
                self.change_settings(false, |settings| settings.set("client_encoding", &charset_name.value))?;
            }
            other => return Err(SqlError::unsupported(format!("{other}"))),
        }
        Ok(Done::tag("SET"))
    }
}

/// Columns, and rows of them.
pub(crate) type DoneRows = (Arc<[Output]>, Vec<Vec<Value>>);

/// What a statement without rows, or with a few of them, gives.
pub(crate) struct Done {
    pub(crate) tag: String,
    pub(crate) rows: Option<DoneRows>,
}

impl Done {
    fn tag(tag: &str) -> Done {
        Done { tag: tag.into(), rows: None }
    }

    /// Lines of one column.
    fn lines(tag: &str, name: &str, lines: Vec<String>) -> Done {
        let columns = Arc::new([Output { name: name.into(), data_type: TEXT }]);
        Done { tag: tag.into(), rows: Some((columns, lines.into_iter().map(|line| vec![Value::Text(line)]).collect())) }
    }
}

/// What a statement gives.
enum Given {
    Ran(Ran),
    Done(Done),
    Fetched(Fetched),
}

/// Rows that a cursor is asked for: so many, or all.
pub(crate) struct Fetched {
    pub(crate) name: String,
    pub(crate) outputs: Arc<[Output]>,
    pub(crate) rows: Option<u64>,
}

/// A statement that was begun.
pub(crate) enum Ran {
    Rows { planned: Arc<Planned>, operator: Box<dyn crate::execute::Operator>, execution: Box<Execution> },
    Row { planned: Arc<Planned>, row: Option<Vec<Value>> },
    Changed { planned: Arc<Planned>, changed: change::Changed },
}

/// Has a statement a plan?
fn is_planned(node: &Node) -> bool {
    matches!(node, Node::Query(_) | Node::Insert(_) | Node::Update(_) | Node::Delete(_) | Node::Merge(_))
}

/// Can a statement run in a transaction that has failed?
fn ends_failed(syntax: &Syntax) -> bool {
    matches!(syntax, Syntax::Sql(node) if matches!(**node, Node::Commit { .. } | Node::Rollback { .. }))
}

/// 25P02: a statement of the transaction has failed.
fn aborted() -> SqlError {
    SqlError::new("25P02", "current transaction is aborted, commands ignored until end of transaction block")
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(mut open) = self.open.take() {
            open.cursors.clear();
            drop(open.transaction.rollback());
        }
        // What this cannot drop goes when the database is opened anew, and somebody makes a temporary table.
        drop(self.drop_temporary());
    }
}

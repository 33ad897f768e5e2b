//! Steps of scripts, run in a session.

use crate::expected::Block;
use crate::script::{Placed, Step, Then};
use crate::show::Table;
use pagefold_engine::database::{Database as Engine, OpenMode, Settings};
use pagefold_io::{MemoryStorage, OpenOptions, OsClock, Storage};
use pagefold_lab_engine::data::Outcome;
use pagefold_sql::{CopyStream, Database, Session, SqlError, SqlResult, TransactionState};
use pagefold_types::{Value, text};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// Where files are that COPY reads.
pub(crate) const FOLDER: &str = "/regress";

/// What a step gave here.
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(crate) blocks: Vec<Block>,
    pub(crate) error: Option<Failure>,
}

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) sqlstate: String,
    pub(crate) message: String,
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Failure {
        Failure { sqlstate: error.sqlstate().into(), message: error.message().into() }
    }
}

pub(crate) struct Runner {
    database: Database,
    session: Session,
    /// As what psql shows NULL.
    null: String,
    /// extra_float_digits: what the scripts set it to.
    digits: i32,
    timeout: u64,
    /// The last row alone that was given, as `\gset` takes it.
    row: Vec<(String, String)>,
    variables: HashMap<String, String>,
}

impl Runner {
    /// A database of its own, in memory, where the files of `data` are, too.
    pub(crate) fn new(timeout: u64, data: &Path) -> Outcome<Runner> {
        let storage = MemoryStorage::new();
        storage.create_directory(Path::new(FOLDER))?;
        storage.create_directory(&Path::new(FOLDER).join("data"))?;
        for entry in std::fs::read_dir(data)? {
            let path = entry?.path();
            let Some(name) = path.file_name() else { continue };
            let file = storage.open(&Path::new(FOLDER).join("data").join(name), &OpenOptions::create_new())?;
            file.write_at(&std::fs::read(&path)?, 0)?;
        }
        let engine = Engine::open(Arc::new(storage), Arc::new(OsClock), Path::new("memory"), OpenMode::Create, Settings::default())?;
        let database = Database::new(Arc::new(engine));
        let session = database.session();
        let mut runner = Runner { database, session, null: String::new(), digits: 1, timeout, row: Vec::new(), variables: HashMap::new() };
        runner.reconnect()?;
        Ok(runner)
    }

    fn reconnect(&mut self) -> Outcome<()> {
        self.session = self.database.session();
        self.session.execute(&format!("SET statement_timeout = '{}s'", self.timeout), &[])?.tag()?;
        Ok(())
    }

    /// Has a statement failed within BEGIN, so that nothing is done until its end?
    pub(crate) fn has_failed(&self) -> bool {
        self.session.transaction_state() == TransactionState::Failed
    }

    pub(crate) fn run(&mut self, placed: &Placed) -> Given {
        match &placed.step {
            Step::Command(command) => {
                self.command(command);
                Given::default()
            }
            Step::Sql { text, data, then } => {
                let text = self.with_variables(text);
                let ran = catch_unwind(AssertUnwindSafe(|| self.sql(&text, data.as_deref())));
                let mut given = ran.unwrap_or_else(|_| {
                    // What was going on is gone with the session.
                    let failure = Failure { sqlstate: "XX000".into(), message: "panic".into() };
                    let _ = self.reconnect();
                    Given { blocks: Vec::new(), error: Some(failure) }
                });
                match then {
                    Then::Print => {}
                    Then::Set => {
                        given.blocks.clear();
                        self.variables.extend(std::mem::take(&mut self.row));
                    }
                    Then::Execute => {
                        let made: Vec<String> = self.row.iter().map(|(_, value)| value.clone()).collect();
                        given.blocks.clear();
                        for text in made {
                            let Given { blocks, error } = self.sql(&text, None);
                            given.blocks.extend(blocks);
                            given.error = given.error.or(error);
                        }
                    }
                }
                given
            }
        }
    }

    fn command(&mut self, command: &str) {
        let words: Vec<&str> = command.split_whitespace().collect();
        match words.as_slice() {
            ["pset", "null", text, ..] => self.null = text.trim_matches('\'').replace("\\\\", "\\"),
            ["c" | "connect", ..] => _ = self.reconnect(),
            _ => {}
        }
    }

    /// Variables that results have set.
    fn with_variables(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.variables {
            text = text.replace(&format!(":'{name}'"), &format!("'{}'", value.replace('\'', "''"))).replace(&format!(":{name}"), value);
        }
        text
    }

    fn sql(&mut self, text: &str, data: Option<&[String]>) -> Given {
        let mut given = Given::default();
        if let Err(error) = self.statements(text, data, &mut given.blocks) {
            given.error = Some(error.into());
        }
        given
    }

    fn statements(&mut self, text: &str, data: Option<&[String]>, blocks: &mut Vec<Block>) -> SqlResult<()> {
        // Whatever is no statement fails the transaction, as it does when it is executed.
        let statements = match self.session.statements(text) {
            Ok(statements) => statements,
            Err(_) => {
                self.session.execute(text, &[])?;
                return Ok(());
            }
        };
        for statement in &statements {
            match statement.copy_stream() {
                Some(CopyStream::In) => {
                    let mut rows: Vec<u8> = Vec::new();
                    for line in data.unwrap_or_default() {
                        rows.extend_from_slice(line.as_bytes());
                        rows.push(b'\n');
                    }
                    rows.extend_from_slice(b"\\.\n");
                    self.session.copy_from(statement, &mut rows.as_slice())?;
                }
                Some(CopyStream::Out) => {
                    let mut written = Vec::new();
                    self.session.copy_to(statement, &mut written)?;
                    let lines: Vec<String> = String::from_utf8_lossy(&written).lines().map(str::to_owned).collect();
                    if !lines.is_empty() {
                        blocks.push(Block::Lines(lines));
                    }
                }
                None => {
                    let words: Vec<&str> = statement.text().split(|c: char| c.is_whitespace() || c == '=').collect();
                    if let [set, name, .., value] = words.as_slice()
                        && set.eq_ignore_ascii_case("set")
                        && name.eq_ignore_ascii_case("extra_float_digits")
                    {
                        self.digits = value.parse().unwrap_or(self.digits);
                    }
                    let answer = self.session.run(statement, &[])?;
                    let columns: Vec<_> = answer.columns().map(|column| (column.name.to_owned(), column.data_type)).collect();
                    let gives_rows = !columns.is_empty() || answer.command_tag() == "SELECT";
                    let rows = answer.rows()?;
                    self.row.clear();
                    if let [row] = rows.as_slice() {
                        let set = columns.iter().zip(row).filter(|(_, value)| !matches!(value, Value::Null));
                        self.row.extend(set.map(|((name, data_type), value)| (name.clone(), text::to_text(value.as_ref(), data_type))));
                    }
                    if gives_rows {
                        blocks.push(Table { columns, rows }.block(&self.null, self.digits));
                    }
                }
            }
        }
        Ok(())
    }
}

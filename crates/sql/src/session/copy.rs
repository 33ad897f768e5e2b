//! COPY in a session: with a file it runs as any other statement; else whoever runs it gives the text, or takes it.

use super::run::{PLANS_MAX, is_stale};
use super::{Ran, Session, Statement};
use crate::answer::Answer;
use crate::bind::copy::{CopyInput, CopyOutput, TextInput, TextOutput};
use crate::copy::columnar::{ColumnFiles, ColumnFormat, not_here};
use crate::copy::file::{self, CopyFile};
use crate::copy::statement::{CopyEnd, CopyStatement, Direction};
use crate::execute::{Execution, Limits, Run, change, copy, copy_columns, open};
use crate::parse::Syntax;
use crate::planned::Action;
use crate::{Database, SqlError, SqlResult};
use std::io::{BufRead, Write};
use std::sync::Arc;

/// What a statement takes from whoever runs it, or gives to them, beside rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyStream {
    /// COPY FROM STDIN: run it by [`Session::copy_from`].
    In,
    /// COPY TO STDOUT: run it by [`Session::copy_to`].
    Out,
}

/// The text of COPY, where it is no file.
pub(super) enum Text<'t> {
    /// There is none.
    None,
    In(&'t mut dyn BufRead),
    Out(&'t mut dyn Write),
}

impl Statement {
    /// What it takes or gives beside rows; of most statements nothing.
    #[must_use]
    pub fn copy_stream(&self) -> Option<CopyStream> {
        match &*self.syntax {
            Syntax::Copy(copy) if matches!(copy.end, CopyEnd::Client) => Some(match copy.direction {
                Direction::From => CopyStream::In,
                Direction::To => CopyStream::Out,
            }),
            _ => None,
        }
    }
}

impl Session {
    /// Runs COPY ... FROM STDIN with the text that `input` gives; how many rows have come. All of them have, or none.
    ///
    /// It is read up to its end, or to a line `\.`, and not a byte further.
    ///
    /// # Errors
    /// Whatever is wrong with the statement or a row, with a SQLSTATE; [`SqlError::context`] says in which line and column. 58030 where `input` fails.
    pub fn copy_from(&mut self, statement: &Statement, input: &mut dyn BufRead) -> SqlResult<u64> {
        self.copied(statement, CopyStream::In, Text::In(input))
    }

    /// Runs COPY ... TO STDOUT, whose text goes to `output`; how many rows were written. When it fails, some may have been.
    ///
    /// # Errors
    /// Whatever is wrong with the statement, with a SQLSTATE; 58030 where `output` fails.
    pub fn copy_to(&mut self, statement: &Statement, output: &mut dyn Write) -> SqlResult<u64> {
        self.copied(statement, CopyStream::Out, Text::Out(output))
    }

    fn copied(&mut self, statement: &Statement, stream: CopyStream, text: Text<'_>) -> SqlResult<u64> {
        if statement.copy_stream() != Some(stream) {
            let what = match stream {
                CopyStream::In => "COPY FROM STDIN",
                CopyStream::Out => "COPY TO STDOUT",
            };
            self.fail();
            return Err(SqlError::new("42809", format!("the statement is no {what}")));
        }
        let mut answer: Answer<'_> = self.run_with(statement, &[], text)?;
        while answer.next_row()?.is_some() {}
        Ok(answer.count())
    }

    /// Plans and runs it.
    pub(super) fn copy(&mut self, statement: &Statement, copy: &CopyStatement, mut text: Text<'_>) -> SqlResult<Ran> {
        if let (CopyEnd::Client, Text::None) = (&copy.end, &text) {
            let (what, call) = match copy.direction {
                Direction::From => ("COPY FROM STDIN takes rows", "copy_from"),
                Direction::To => ("COPY TO STDOUT gives text", "copy_to"),
            };
            return Err(SqlError::new("0A000", format!("{what}: it is run by Session::{call}")));
        }
        let limits = self.limits();
        let mut tries = 0;
        loop {
            tries += 1;
            self.begin();
            let mut has_begun = false;
            match self.copy_once(statement, &mut text, &limits, &mut has_begun) {
                // A table was written anew between the plan and its use.
                Err(error) if !has_begun && is_stale(&error) && tries < PLANS_MAX && self.can_follow() => self.forget(&statement.text),
                done => return done,
            }
        }
    }

    /// `has_begun`: some of the text was asked for, or given.
    fn copy_once(&mut self, statement: &Statement, text: &mut Text<'_>, limits: &Limits, has_begun: &mut bool) -> SqlResult<Ran> {
        let planned = self.kept(statement)?;
        planned.refuse_params()?;
        let memory = self.settings.work_mem;
        let Some(own) = &mut self.open else { return Err(SqlError::new("XX000", "a statement without a transaction")) };
        own.has_run = true;
        if planned.changes_rows() {
            own.settle_cursors(limits)?;
        }
        limits.check()?;
        let savepoint = own.transaction.savepoint();
        let run = Run { database: &self.database, now: own.now(self.statement_began), memory, limits: limits.clone(), drawn: &self.drawn };
        let mut execution = Execution::new(&run, own.transaction.read_view()?, Vec::new(), Arc::clone(&planned.subplans));
        execution.look_at(&planned.system, &mut own.transaction)?;
        let done = match &planned.action {
            Action::CopyFrom(plan) => {
                *has_begun = true;
                match &plan.input {
                    CopyInput::Text(input) => {
                        let copied = |bytes: &mut dyn BufRead| copy::copy_from(plan, input, bytes, &mut own.transaction, &execution);
                        read(input, text, &execution, copied)
                    }
                    CopyInput::Columns { format, file } => column_files(&self.database, *format)
                        .and_then(|files| copy_columns::copy_from(plan, (files, *format, file), &mut own.transaction, &execution)),
                }
            }
            Action::CopyTo(plan) => {
                execution.analytics = self.settings.analytics;
                let mut source = open(&plan.source, &execution.context())?;
                *has_begun = true;
                let rows = match &plan.output {
                    CopyOutput::Text(output) => {
                        let copied = |bytes: &mut dyn Write| copy::copy_to(plan, output, source.as_mut(), bytes, &execution);
                        write(output, text, &execution, copied)
                    }
                    CopyOutput::Columns { format, file } => column_files(&self.database, *format)
                        .and_then(|files| copy_columns::copy_to(plan, (files, *format, file), source.as_mut(), &execution)),
                };
                rows.map(|rows| change::Changed { rows, ..change::Changed::default() })
            }
            _ => Err(SqlError::new("XX000", "a COPY that is planned as something else")),
        };
        match done {
            Ok(changed) => Ok(Ran::Changed { planned, changed }),
            Err(error) => {
                if own.transaction.failure().is_none() {
                    own.transaction.roll_back_to(savepoint)?;
                }
                Err(error)
            }
        }
    }
}

fn column_files(database: &Database, format: ColumnFormat) -> SqlResult<&dyn ColumnFiles> {
    database.utilities().map(|utilities| utilities.as_ref() as &dyn ColumnFiles).ok_or_else(|| not_here(format))
}

fn no_text() -> SqlError {
    SqlError::new("XX000", "a COPY without its text")
}

/// Runs with what is read.
fn read<R>(
    plan: &TextInput,
    text: &mut Text<'_>,
    execution: &Execution,
    run: impl FnOnce(&mut dyn BufRead) -> SqlResult<R>,
) -> SqlResult<R> {
    match (&plan.file, text) {
        (Some(name), _) => run(&mut file::open(execution.database.engine(), name)?),
        (None, Text::In(input)) => run(*input),
        (None, _) => Err(no_text()),
    }
}

/// Runs with where it is written.
fn write<R>(
    plan: &TextOutput,
    text: &mut Text<'_>,
    execution: &Execution,
    run: impl FnOnce(&mut dyn Write) -> SqlResult<R>,
) -> SqlResult<R> {
    match (&plan.file, text) {
        (Some(name), _) => {
            let mut file = CopyFile::create(execution.database.engine(), name)?;
            let done = run(&mut file)?;
            file.finish().map(|()| done)
        }
        (None, Text::Out(output)) => run(*output),
        (None, _) => Err(no_text()),
    }
}

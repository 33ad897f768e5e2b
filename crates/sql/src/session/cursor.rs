//! Cursors: queries of a transaction whose rows are pulled by FETCH.
//!
//! A cursor is insensitive: it gives what its query saw when it was declared. The snapshot keeps what others do from it. What its own transaction does it would see as it comes to the
//! rows, so before that changes anything the rows that are left are taken, and wait in memory or in a scratch file.
//!
//! Invariants:
//! - a cursor ends with its transaction, and with a return to a savepoint from before it;
//! - no row of a table changes, and nothing is defined, while a cursor has not its rows.

use super::transaction::Open;
use super::{Done, Fetched, Given, Ran, Session, Statement};
use crate::analytics::When;
use crate::bind::Output;
use crate::cursor::CursorStatement;
use crate::execute::spill::RowList;
use crate::execute::{Execution, Limits, Operator, given};
use crate::{SqlError, SqlResult};
use pagefold_types::Value;
use sqlparser::ast::{Query, Statement as Node};
use std::sync::Arc;

/// Cursors that are open at once: each may keep as many rows as `work_mem` has.
const CURSORS_MAX: usize = 1000;

/// A query whose rows are pulled.
pub(crate) struct Cursor {
    outputs: Arc<[Output]>,
    rows: Rows,
    /// Its rows are taken: nothing that changes is seen any more.
    is_settled: bool,
    /// What comes behind the rows that were taken.
    failed: Option<SqlError>,
    /// Savepoints that there were when it was declared.
    savepoints: usize,
}

enum Rows {
    Pulled { operator: Box<dyn Operator>, execution: Box<Execution> },
    Kept(std::vec::IntoIter<Vec<Value>>),
}

impl std::fmt::Debug for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor").field("outputs", &self.outputs).field("is_settled", &self.is_settled).finish_non_exhaustive()
    }
}

impl Cursor {
    fn fill(&mut self, row: &mut Vec<Value>) -> SqlResult<bool> {
        let is_there = match &mut self.rows {
            Rows::Pulled { operator, execution } => operator.fill(&execution.context(), row)?,
            Rows::Kept(rows) => given(rows.next(), row),
        };
        match self.failed.take() {
            Some(error) if !is_there => Err(error),
            failed => {
                self.failed = failed;
                Ok(is_there)
            }
        }
    }

    /// Takes all rows that are left. What is wrong with one of them is told when it is asked for.
    fn settle(&mut self, limits: &Limits) -> SqlResult<()> {
        let Rows::Pulled { operator, execution } = &mut self.rows else { return Ok(()) };
        if self.is_settled {
            return Ok(());
        }
        execution.limits = limits.clone();
        let mut kept = RowList::default();
        loop {
            match operator.next(&execution.context()) {
                Ok(Some(row)) => kept.push(execution, row)?,
                Ok(None) => break,
                Err(error) if error.sqlstate() == "57014" => return Err(error),
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
        }
        *operator = Box::new(kept.finish(execution)?);
        self.is_settled = true;
        Ok(())
    }
}

impl Session {
    pub(super) fn cursor(&mut self, cursor: &CursorStatement, params: &[Value]) -> SqlResult<Given> {
        match cursor {
            CursorStatement::Declare { name, query } => self.declare(name, query, params),
            CursorStatement::Close { name } => {
                match (name, &mut self.open) {
                    (None, None) => {}
                    (None, Some(open)) => open.cursors.clear(),
                    (Some(name), open) => {
                        let closed = open.as_mut().and_then(|open| open.cursors.remove(name));
                        closed.ok_or_else(|| no_cursor(name))?;
                    }
                }
                Ok(tag(if name.is_some() { "CLOSE CURSOR" } else { "CLOSE CURSOR ALL" }))
            }
            CursorStatement::Fetch { name, rows, moves } => {
                let limits = self.limits();
                let cursor = self.open.as_mut().and_then(|open| open.cursors.get_mut(name)).ok_or_else(|| no_cursor(name))?;
                // Each FETCH has the time that a statement has.
                if let Rows::Pulled { execution, .. } = &mut cursor.rows {
                    execution.limits = limits;
                }
                if !moves {
                    let outputs = Arc::clone(&cursor.outputs);
                    return Ok(Given::Fetched(Fetched { name: name.clone(), outputs, rows: *rows }));
                }
                let (mut moved, mut row) = (0, Vec::new());
                while rows.is_none_or(|rows| moved < rows) && self.fetch_row(name, &mut row)? {
                    moved += 1;
                }
                Ok(tag(&format!("MOVE {moved}")))
            }
        }
    }

    fn declare(&mut self, name: &str, query: &Query, params: &[Value]) -> SqlResult<Given> {
        let open = self.explicit("DECLARE CURSOR")?;
        if open.cursors.contains_key(name) {
            return Err(SqlError::new("42P03", format!("cursor \"{name}\" already exists")));
        }
        if open.cursors.len() >= CURSORS_MAX {
            return Err(SqlError::new("54000", format!("more than {CURSORS_MAX} cursors at once")));
        }
        let statement = Statement::of(Node::Query(Box::new(query.clone())), &[]);
        // Its rows are pulled for as long as the transaction is open, each FETCH by a time of its own.
        let analytics = std::mem::replace(&mut self.settings.analytics, When::Off);
        let ran = self.plan_and_run(&statement, params);
        self.settings.analytics = analytics;
        let (outputs, rows) = match ran? {
            Ran::Rows { planned, operator, execution } => (Arc::clone(&planned.outputs), Rows::Pulled { operator, execution }),
            Ran::Row { planned, row } => {
                let rows: Vec<Vec<Value>> = row.into_iter().collect();
                (Arc::clone(&planned.outputs), Rows::Kept(rows.into_iter()))
            }
            Ran::Changed { .. } => return Err(SqlError::unsupported("a cursor of a statement that is no query")),
        };
        let Some(open) = &mut self.open else { return Err(no_cursor(name)) };
        let cursor = Cursor { outputs, rows, is_settled: false, failed: None, savepoints: open.savepoints.len() };
        open.cursors.insert(name.to_owned(), cursor);
        Ok(tag("DECLARE CURSOR"))
    }

    /// The next row of a cursor. One that fails gives no other.
    pub(crate) fn fetch_row(&mut self, name: &str, row: &mut Vec<Value>) -> SqlResult<bool> {
        let Some(open) = &mut self.open else { return Err(no_cursor(name)) };
        let cursor = open.cursors.get_mut(name).ok_or_else(|| no_cursor(name))?;
        let filled = cursor.fill(row);
        if filled.is_err() {
            open.cursors.remove(name);
        }
        filled
    }
}

impl Open {
    /// Something is about to change: cursors take what they see now.
    pub(super) fn settle_cursors(&mut self, limits: &Limits) -> SqlResult<()> {
        let mut failed = None;
        // One that could not take its rows has lost some.
        self.cursors.retain(|_, cursor| match cursor.settle(limits) {
            Ok(()) => true,
            Err(error) => {
                failed.get_or_insert(error);
                false
            }
        });
        failed.map_or(Ok(()), Err)
    }

    /// The transaction goes back to this savepoint, the first being 0: later cursors are gone.
    pub(super) fn close_cursors_since(&mut self, savepoint: usize) {
        self.cursors.retain(|_, cursor| cursor.savepoints <= savepoint);
    }

    /// Savepoints from this one on are no more: cursors since are those of what was before.
    pub(super) fn release_cursors_since(&mut self, savepoint: usize) {
        self.cursors.values_mut().for_each(|cursor| cursor.savepoints = cursor.savepoints.min(savepoint));
    }
}

fn tag(tag: &str) -> Given {
    Given::Done(Done::tag(tag))
}

fn no_cursor(name: &str) -> SqlError {
    SqlError::new("34000", format!("cursor \"{name}\" does not exist"))
}

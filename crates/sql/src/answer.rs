//! What a statement gives: rows that are pulled, or how many have changed.

use crate::bind::Output;
use crate::execute::{Execution, Operator, given};
use crate::session::{Done, Fetched, Notice, Ran, Session};
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, Value};
use std::sync::Arc;

/// A column of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Column<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type.
    pub data_type: DataType,
}

/// The answer to a statement. Rows are computed as they are pulled. A statement that changes rows has done so before there is an answer.
pub struct Answer<'s> {
    session: &'s mut Session,
    outputs: Arc<[Output]>,
    rows: Rows,
    tag: String,
    /// Rows that were given, or changed.
    count: u64,
    counts: bool,
    /// Of the statement, until the answer is gone.
    span: tracing::Span,
    /// Nothing more comes, and the statement's own transaction has ended.
    is_done: bool,
}

enum Rows {
    Pulled {
        operator: Box<dyn Operator>,
        execution: Box<Execution>,
    },
    Kept(std::vec::IntoIter<Vec<Value>>),
    /// Of a cursor: so many more, or all.
    Fetched {
        name: String,
        left: Option<u64>,
    },
}

impl std::fmt::Debug for Answer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer").field("outputs", &self.outputs).field("tag", &self.tag).field("count", &self.count).finish_non_exhaustive()
    }
}

impl<'s> Answer<'s> {
    pub(crate) fn of(session: &'s mut Session, ran: Ran, span: tracing::Span) -> Answer<'s> {
        let (outputs, tag, rows, count) = match ran {
            Ran::Rows { planned, operator, execution } => {
                let rows = Rows::Pulled { operator, execution };
                (Arc::clone(&planned.outputs), planned.tag.to_owned(), rows, 0)
            }
            Ran::Row { planned, row } => {
                let rows: Vec<Vec<Value>> = row.into_iter().collect();
                let count = rows.len() as u64;
                (Arc::clone(&planned.outputs), planned.tag.to_owned(), Rows::Kept(rows.into_iter()), count)
            }
            Ran::Changed { planned, changed } => {
                (Arc::clone(&planned.outputs), planned.tag.to_owned(), Rows::Kept(changed.returned.into_iter()), changed.rows)
            }
        };
        Answer { session, outputs, rows, tag, count, counts: true, span, is_done: false }
    }

    pub(crate) fn command(session: &'s mut Session, done: Done, span: tracing::Span) -> Answer<'s> {
        let (outputs, rows) = done.rows.unwrap_or_else(|| (Arc::new([]), Vec::new()));
        let rows = Rows::Kept(rows.into_iter());
        Answer { session, outputs, rows, tag: done.tag, count: 0, counts: false, span, is_done: false }
    }

    pub(crate) fn fetched(session: &'s mut Session, fetched: Fetched, span: tracing::Span) -> Answer<'s> {
        let Fetched { name, outputs, rows } = fetched;
        let rows = Rows::Fetched { name, left: rows };
        Answer { session, outputs, rows, tag: "FETCH".into(), count: 0, counts: true, span, is_done: false }
    }

    /// What is to be known of the statement beside its answer.
    #[must_use]
    pub fn notices(&self) -> &[Notice] {
        self.session.notices()
    }

    /// Its columns; none of a statement that gives no rows.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = Column<'_>> {
        self.outputs.iter().map(|output| Column { name: &output.name, data_type: output.data_type })
    }

    /// The next row. `None` at the end: a statement without BEGIN is committed then.
    ///
    /// # Errors
    /// What goes wrong with the row, or the commit. Nothing more comes then.
    pub fn next_row(&mut self) -> SqlResult<Option<Vec<Value>>> {
        let mut row = Vec::with_capacity(self.outputs.len());
        Ok(self.fill_row(&mut row)?.then_some(row))
    }

    /// Puts the next row in the place of another one, whose memory it uses again; false at the end, where the row means nothing. Faster than [`next_row`](Self::next_row) where no row is kept.
    ///
    /// # Errors
    /// As [`next_row`](Self::next_row).
    pub fn fill_row(&mut self, row: &mut Vec<Value>) -> SqlResult<bool> {
        if self.is_done {
            return Ok(false);
        }
        let filled = match &mut self.rows {
            Rows::Pulled { operator, execution } => {
                let filled = self.span.in_scope(|| operator.fill(&execution.context(), row));
                self.count += u64::from(matches!(filled, Ok(true)));
                filled
            }
            Rows::Kept(rows) => Ok(given(rows.next(), row)),
            Rows::Fetched { left: Some(0), .. } => Ok(false),
            Rows::Fetched { name, left } => {
                *left = left.map(|left| left - 1);
                let filled = self.span.in_scope(|| self.session.fetch_row(name, row));
                self.count += u64::from(matches!(filled, Ok(true)));
                filled
            }
        };
        match filled {
            Ok(true) => Ok(true),
            Ok(false) => self.finish().map(|()| false),
            Err(error) => {
                self.span.record("sqlstate", error.sqlstate());
                self.is_done = true;
                self.rows = Rows::Kept(Vec::new().into_iter());
                self.session.fail();
                Err(error)
            }
        }
    }

    fn finish(&mut self) -> SqlResult<()> {
        if self.is_done {
            return Ok(());
        }
        self.is_done = true;
        self.span.record("rows", self.count);
        // What reads the transaction's rows goes before it.
        self.rows = Rows::Kept(Vec::new().into_iter());
        self.session.answered()
    }

    /// All rows.
    ///
    /// # Errors
    /// As [`next_row`](Self::next_row).
    pub fn rows(mut self) -> SqlResult<Vec<Vec<Value>>> {
        let mut rows = Vec::new();
        while let Some(row) = self.next_row()? {
            rows.push(row);
        }
        Ok(rows)
    }

    /// Pulls all rows that are left, and says what was done, as PostgreSQL does: `SELECT 3`, `INSERT 0 1`, `CREATE TABLE`.
    ///
    /// # Errors
    /// As [`next_row`](Self::next_row).
    pub fn tag(mut self) -> SqlResult<String> {
        let mut row = Vec::new();
        while self.fill_row(&mut row)? {}
        Ok(if self.counts { format!("{} {}", self.tag, self.count) } else { self.tag.clone() })
    }

    /// Rows that a statement has changed; of a query those given so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// What was done, without the number of rows: `SELECT`, `CREATE TABLE`.
    #[must_use]
    pub fn command_tag(&self) -> &str {
        &self.tag
    }

    /// Does a tag have a number of rows?
    #[must_use]
    pub fn counts_rows(&self) -> bool {
        self.counts
    }
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        // Who wants to know whether the commit went well asks for all rows.
        let finished: Result<(), SqlError> = self.finish();
        drop(finished);
    }
}

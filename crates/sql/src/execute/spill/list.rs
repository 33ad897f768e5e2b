//! Rows that are collected, and then read once in their order: in memory as far as the statement has it.

use super::{RowWriter, Rows, Share};
use crate::SqlResult;
use crate::execute::{Context, Execution, Operator, Tuple, bytes_of, given};

/// Collects rows.
#[derive(Debug, Default)]
pub(crate) struct RowList {
    rows: Vec<Tuple>,
    share: Share,
    /// All that come from the first one on that had no place in memory.
    spilled: Option<RowWriter>,
}

impl RowList {
    pub(crate) fn push(&mut self, execution: &Execution, row: Tuple) -> SqlResult<()> {
        if self.spilled.is_none() && self.share.take(&execution.budget, bytes_of(&row)) {
            self.rows.push(row);
            return Ok(());
        }
        self.spilled.get_or_insert_with(|| RowWriter::new(execution)).push(execution, &row)
    }

    /// The rows, to be read.
    pub(crate) fn finish(self, execution: &Execution) -> SqlResult<ListRows> {
        let spilled = self.spilled.map(|writer| writer.finish(execution)).transpose()?;
        Ok(ListRows { rows: self.rows.into_iter(), share: self.share, spilled })
    }
}

/// The rows of a list.
#[derive(Debug)]
pub(crate) struct ListRows {
    rows: std::vec::IntoIter<Tuple>,
    share: Share,
    spilled: Option<Rows>,
}

impl Operator for ListRows {
    fn fill(&mut self, context: &Context<'_>, row: &mut Tuple) -> SqlResult<bool> {
        if let Some(next) = self.rows.next() {
            self.share.give_back(&context.execution.budget, bytes_of(&next));
            return Ok(given(Some(next), row));
        }
        match &mut self.spilled {
            Some(rows) => rows.read(row),
            None => Ok(false),
        }
    }
}

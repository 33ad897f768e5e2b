//! Rows of a table, as the statement sees them: by columns, in as many parts as there are threads.

use super::Kind;
use crate::SqlResult;
use pagefold_engine::database::{ReadView, Scan, ScanRequest};
use pagefold_engine::table_space::{ColumnBatch, Table};
use pagefold_types::Predicate;
use std::collections::VecDeque;
use std::sync::Arc;

/// Rows of a table that are to be read: those that a view sees, and for which a condition is true.
#[derive(Debug)]
pub struct TableScan {
    pub(super) name: String,
    /// `None` where it is only said what would be done.
    pub(super) view: Option<ReadView>,
    /// One, or partitions.
    pub(super) parts: Vec<Arc<Table>>,
    pub(super) columns: Vec<usize>,
    pub(super) condition: Option<Predicate>,
    /// Rows of the table, whatever the condition.
    pub(super) table_rows: f64,
}

impl TableScan {
    /// The name of the table.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Opens it, in at most so many parts: each row comes in one of them.
    ///
    /// # Errors
    /// When the table does not count for the view any more.
    pub fn open(&self, threads: usize) -> SqlResult<Vec<PartScans>> {
        let Some(view) = &self.view else { return Ok(Vec::new()) };
        let threads = threads.max(1);
        let request = ScanRequest { columns: Some(self.columns.clone()), condition: self.condition.clone(), limit: None, rids: false };
        let empty = || PartScans { view: view.clone(), request: request.clone(), later: VecDeque::new(), open: VecDeque::new() };
        let mut all: Vec<PartScans> = (0..threads).map(|_| empty()).collect();
        if self.parts.len() >= 2 * threads {
            // So many tables are opened one by one.
            for (at, table) in self.parts.iter().enumerate() {
                all[at % threads].later.push_back(Arc::clone(table));
            }
            return Ok(all);
        }
        for table in &self.parts {
            for (part, scan) in all.iter_mut().zip(view.scan(table, &request)?.split(threads)) {
                part.open.push_back((Arc::clone(table), scan));
            }
        }
        Ok(all)
    }
}

/// What one thread reads of a table.
#[derive(Debug)]
pub struct PartScans {
    view: ReadView,
    request: ScanRequest,
    later: VecDeque<Arc<Table>>,
    open: VecDeque<(Arc<Table>, Scan)>,
}

impl PartScans {
    /// The next rows, which may be none, with the table that they are of; `None` at the end.
    ///
    /// # Errors
    /// When a page is damaged, or the view has ended.
    pub fn next_batch(&mut self) -> SqlResult<Option<(Arc<Table>, ColumnBatch)>> {
        loop {
            if let Some((table, scan)) = self.open.front_mut() {
                if let Some(batch) = scan.next().transpose()? {
                    return Ok(Some((Arc::clone(table), batch)));
                }
                self.open.pop_front();
                continue;
            }
            let Some(table) = self.later.pop_front() else { return Ok(None) };
            let scan = self.view.scan(&table, &self.request)?;
            self.open.push_back((table, scan));
        }
    }
}

/// Kinds of columns of a table.
pub(super) fn kinds(schema: &pagefold_types::Schema, columns: &[usize]) -> Option<Vec<Kind>> {
    columns.iter().map(|column| schema.columns().get(*column).and_then(|column| Kind::of(&column.data_type))).collect()
}

//! Scans that are pulled: batches of columns, or rows.

use super::ReadView;
use super::walk::Walk;
use crate::index::Index;
use crate::table_space::{ColumnBatch, Filter, Gathering, RowBuffer, RowSink, Table, buffer_for};
use crate::{Error, Result};
use pagefold_types::{Predicate, Rid, Value};
use std::ops::ControlFlow;
use std::sync::Arc;

/// What a scan is to deliver.
#[derive(Clone, Debug, Default)]
pub struct ScanRequest {
    /// Columns, by number, in this order; `None`: all.
    pub columns: Option<Vec<usize>>,
    /// Only rows for which it is true.
    pub condition: Option<Predicate>,
    /// The RID of each row, too.
    pub rids: bool,
}

/// Batches of the columns of rows: an iterator that owns all that it needs.
#[derive(Debug)]
pub struct Scan {
    view: ReadView,
    table: Arc<Table>,
    walk: Walk,
    columns: Vec<usize>,
    filter: Option<Arc<Filter>>,
    condition: Option<Predicate>,
    rids: bool,
    buffer: RowBuffer,
    is_done: bool,
}

impl Scan {
    pub(super) fn new(view: ReadView, table: Arc<Table>, walk: Walk, request: &ScanRequest) -> Result<Scan> {
        let columns = request.columns.clone().unwrap_or_else(|| (0..table.attributes().schema.columns().len()).collect());
        // Refuses columns that are not there.
        drop(ColumnBatch::new(&table, &columns)?);
        let buffer = buffer_for(&table, &columns, request.condition.as_ref());
        let filter = request.condition.as_ref().map(|condition| Arc::new(Filter::new(&table, condition)));
        let condition = request.condition.clone();
        Ok(Scan { view, table, walk, columns, filter, condition, rids: request.rids, buffer, is_done: false })
    }

    /// The same rows in parts for as many threads: each row comes in one of them. In one part where rows come in an order.
    #[must_use]
    pub fn split(self, parts: usize) -> Vec<Scan> {
        let more = (1..parts).map_while(|_| {
            Some(Scan {
                view: self.view.clone(),
                table: Arc::clone(&self.table),
                walk: self.walk.part()?,
                columns: self.columns.clone(),
                filter: self.filter.clone(),
                condition: self.condition.clone(),
                rids: self.rids,
                buffer: buffer_for(&self.table, &self.columns, self.condition.as_ref()),
                is_done: self.is_done,
            })
        });
        let mut all: Vec<Scan> = more.collect();
        all.push(self);
        all
    }

    /// The same, row by row, with all columns. The condition counts, the choice of columns does not.
    #[must_use]
    pub fn into_rows(self) -> RowScan {
        RowScan { filter: self.filter, ..RowScan::new(self.view, self.table, self.walk, RowBuffer::default()) }
    }

    fn next_batch(&mut self) -> Result<Option<ColumnBatch>> {
        let batch = ColumnBatch::new(&self.table, &self.columns)?;
        let batch = if self.rids { batch.with_rids() } else { batch };
        let mut gathering = Gathering { table: &self.table, batch, filter: self.filter.as_deref() };
        while !self.is_done && !gathering.batch.is_full() {
            self.view.check()?;
            self.is_done = !self.walk.step(&self.view.reading(), &self.table, &mut self.buffer, &mut gathering)?;
        }
        gathering.settle()?;
        let batch = gathering.batch;
        Ok((!batch.is_empty() || !self.is_done).then_some(batch))
    }
}

impl Iterator for Scan {
    type Item = Result<ColumnBatch>;

    /// A thousand rows and more, or fewer, even none, where few rows satisfy the condition. After an error nothing more comes.
    fn next(&mut self) -> Option<Result<ColumnBatch>> {
        let next = self.next_batch();
        self.is_done |= next.is_err();
        next.transpose()
    }
}

/// Rows one by one: an iterator that owns all that it needs. [`next_record`](Self::next_record) lends them without taking them apart.
#[derive(Debug)]
pub struct RowScan {
    view: ReadView,
    table: Arc<Table>,
    walk: Walk,
    /// Keys of this index are all that is delivered.
    keys_of: Option<Arc<Index>>,
    filter: Option<Arc<Filter>>,
    buffer: RowBuffer,
    records: Records,
    is_done: bool,
}

/// Records of a step that have not been delivered.
#[derive(Debug, Default)]
struct Records {
    bytes: Vec<u8>,
    /// RID and end of each.
    rows: Vec<(Rid, usize)>,
    at: usize,
}

impl RowSink<Error> for Records {
    fn row(&mut self, rid: Rid, record: &[u8]) -> Result<ControlFlow<()>> {
        self.bytes.extend_from_slice(record);
        self.rows.push((rid, self.bytes.len()));
        Ok(ControlFlow::Continue(()))
    }
}

impl RowScan {
    pub(super) fn new(view: ReadView, table: Arc<Table>, walk: Walk, buffer: RowBuffer) -> RowScan {
        RowScan { view, table, walk, keys_of: None, filter: None, buffer, records: Records::default(), is_done: false }
    }

    /// Of the keys of an index alone.
    pub(super) fn of_keys(view: ReadView, table: Arc<Table>, index: Arc<Index>, walk: Walk) -> RowScan {
        RowScan { keys_of: Some(index), ..RowScan::new(view, table, walk, RowBuffer::default()) }
    }

    /// The RID and record of the next row; of a scan of keys alone, its key.
    ///
    /// # Errors
    /// When a page is damaged, or nothing more is to be read. After an error nothing more comes.
    pub fn next_record(&mut self) -> Result<Option<(Rid, &[u8])>> {
        let found = self.find_next();
        self.is_done |= found.is_err();
        found?;
        let Records { bytes, rows, at } = &self.records;
        let Some((rid, end)) = at.checked_sub(1).and_then(|at| rows.get(at)) else { return Ok(None) };
        let start = at.checked_sub(2).and_then(|before| rows.get(before)).map_or(0, |(_, end)| *end);
        Ok(Some((*rid, &bytes[start..*end])))
    }

    /// Goes to the next record: `records.at` is behind it, or 0 at the end.
    fn find_next(&mut self) -> Result<()> {
        loop {
            while self.records.at < self.records.rows.len() {
                let start = self.records.at.checked_sub(1).map_or(0, |before| self.records.rows[before].1);
                let end = self.records.rows[self.records.at].1;
                self.records.at += 1;
                let record = &self.records.bytes[start..end];
                if self.filter.as_ref().map_or(Ok(true), |filter| filter.matches(&self.table, record))? {
                    return Ok(());
                }
            }
            self.records.bytes.clear();
            self.records.rows.clear();
            self.records.at = 0;
            if self.is_done {
                return Ok(());
            }
            self.view.check()?;
            self.is_done = !self.walk.step(&self.view.reading(), &self.table, &mut self.buffer, &mut self.records)?;
        }
    }
}

impl Iterator for RowScan {
    type Item = Result<(Rid, Vec<Value>)>;

    /// The values of the next row; of a scan of keys alone, those of its key, in the order of the index.
    fn next(&mut self) -> Option<Result<(Rid, Vec<Value>)>> {
        let (table, index) = (Arc::clone(&self.table), self.keys_of.clone());
        let values = |record: &[u8]| match &index {
            Some(index) => index.key_layout().decode(record).map_err(|e| Error::Value(format!("{}: {e}", index.object()))),
            None => table.values(record),
        };
        match self.next_record() {
            Ok(next) => next.map(|(rid, record)| Ok((rid, values(record)?))),
            Err(error) => Some(Err(error)),
        }
    }
}

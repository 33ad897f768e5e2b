//! Scans that are pulled: batches of columns, or rows.
//!
//! Invariant: a row that is delivered counts for the limit, one that a condition leaves out does not.

use super::ReadView;
use super::walk::Walk;
use crate::index::Index;
use crate::table_space::{BatchSizes, ColumnBatch, CopiedRow, Copying, Filter, Gathering, PageCopy, Records, RowBuffer, Table, buffer_for};
use crate::{Error, Result};
use pagefold_codec::page::IntMembers;
use pagefold_types::{Predicate, Rid, Value};
use std::sync::Arc;

/// What a scan is to deliver.
#[derive(Clone, Debug, Default)]
pub struct ScanRequest {
    /// Columns, by number, in this order; `None`: all.
    pub columns: Option<Vec<usize>>,
    /// Only rows for which it is true.
    pub condition: Option<Predicate>,
    /// At most so many rows; `None`: all.
    pub limit: Option<u64>,
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
    /// So many rows more.
    left: u64,
    rids: bool,
    buffer: RowBuffer,
    /// Of the batch before.
    sizes: BatchSizes,
    is_done: bool,
}

impl Scan {
    pub(super) fn new(view: ReadView, table: Arc<Table>, walk: Walk, request: &ScanRequest) -> Result<Scan> {
        let columns = request.columns.clone().unwrap_or_else(|| (0..table.attributes().schema.columns().len()).collect());
        table.check_columns(&columns)?;
        let buffer = buffer_for(&table, &columns, request.condition.as_ref());
        let filter = request.condition.as_ref().map(|condition| Arc::new(Filter::new(&table, condition)));
        let (condition, left) = (request.condition.clone(), request.limit.unwrap_or(u64::MAX));
        Ok(Scan {
            view,
            table,
            walk,
            columns,
            filter,
            condition,
            left,
            rids: request.rids,
            buffer,
            sizes: BatchSizes::default(),
            is_done: left == 0,
        })
    }

    /// Leaves out rows whose integer in a column is not one of these, or is NULL: from the next step on. Dates and times are the integers that they are stored as.
    ///
    /// # Errors
    /// When the column is not one of those that the scan was asked for, or is none of integers.
    pub fn keep_members(&mut self, column: usize, members: &Arc<IntMembers>) -> Result<()> {
        if !self.columns.contains(&column) || !self.table.is_int_column(column) {
            return Err(Error::Value(format!("{}: the scan has no column number {column} of integers", self.table.object())));
        }
        let filter = self.filter.as_deref().cloned().unwrap_or_default().with_members(column, members);
        self.filter = Some(Arc::new(filter));
        Ok(())
    }

    /// The same rows in parts for as many threads: each row comes in one of them. In one part where rows come in an order, or no more than some.
    #[must_use]
    pub fn split(self, parts: usize) -> Vec<Scan> {
        let parts = if self.left < u64::MAX { 1 } else { parts };
        let more = (1..parts).map_while(|_| {
            Some(Scan {
                view: self.view.clone(),
                table: Arc::clone(&self.table),
                walk: self.walk.part()?,
                columns: self.columns.clone(),
                filter: self.filter.clone(),
                condition: self.condition.clone(),
                left: self.left,
                rids: self.rids,
                buffer: buffer_for(&self.table, &self.columns, self.condition.as_ref()),
                sizes: BatchSizes::default(),
                is_done: self.is_done,
            })
        });
        let mut all: Vec<Scan> = more.collect();
        all.push(self);
        all
    }

    /// The same, row by row.
    #[must_use]
    pub fn into_rows(self) -> RowScan {
        RowScan {
            columns: self.columns,
            filter: self.filter,
            left: self.left,
            is_done: self.is_done,
            ..RowScan::new(self.view, self.table, self.walk, self.buffer)
        }
    }

    /// The rows of the next step by themselves: of a scan by pages those of the next page, else a few, and more with each step. So many batches come as there are steps, in their order, those
    /// without a row too. A limit does not count. `used`: a batch of this scan that is not needed any more, whose memory is taken.
    ///
    /// # Errors
    /// As for the iterator.
    pub fn next_step(&mut self, used: Option<ColumnBatch>) -> Result<Option<ColumnBatch>> {
        if self.is_done {
            return Ok(None);
        }
        let batch = match used {
            Some(mut used) => {
                used.clear();
                used
            }
            None => self.empty_batch()?,
        };
        let mut gathering = Gathering { table: &self.table, batch, filter: self.filter.as_deref() };
        self.view.check()?;
        self.is_done = !self.walk.step(&self.view.reading(), &self.table, &mut self.buffer, &mut gathering)?;
        gathering.settle()?;
        gathering.batch.sizes(&mut self.sizes);
        Ok((!gathering.batch.is_empty() || !self.is_done).then_some(gathering.batch))
    }

    fn empty_batch(&self) -> Result<ColumnBatch> {
        let batch = ColumnBatch::new(&self.table, &self.columns, &self.sizes)?;
        Ok(if self.rids { batch.with_rids() } else { batch })
    }

    fn next_batch(&mut self) -> Result<Option<ColumnBatch>> {
        let mut gathering = Gathering { table: &self.table, batch: self.empty_batch()?, filter: self.filter.as_deref() };
        while !self.is_done && !gathering.batch.is_full() && (gathering.batch.len() as u64) < self.left {
            self.view.check()?;
            self.is_done = !self.walk.step(&self.view.reading(), &self.table, &mut self.buffer, &mut gathering)?;
        }
        gathering.settle()?;
        let mut batch = gathering.batch;
        batch.sizes(&mut self.sizes);
        if self.left < u64::MAX {
            batch.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
            self.left -= batch.len() as u64;
            self.is_done |= self.left == 0;
        }
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
    /// Of the table's columns, those that are delivered; none of a scan of keys.
    columns: Vec<usize>,
    filter: Option<Arc<Filter>>,
    /// So many rows more.
    left: u64,
    buffer: RowBuffer,
    /// Of the last step; those from `at` on have not been delivered.
    records: Records,
    at: usize,
    /// The page of the last step, if it was copied as it lies.
    page: PageCopy,
    is_done: bool,
}

impl RowScan {
    fn new(view: ReadView, table: Arc<Table>, walk: Walk, buffer: RowBuffer) -> RowScan {
        RowScan {
            view,
            table,
            walk,
            keys_of: None,
            columns: Vec::new(),
            filter: None,
            left: u64::MAX,
            buffer,
            records: Records::default(),
            at: 0,
            page: PageCopy::default(),
            is_done: false,
        }
    }

    /// Of the keys of an index alone.
    pub(super) fn of_keys(view: ReadView, table: Arc<Table>, index: Arc<Index>, walk: Walk) -> RowScan {
        RowScan { keys_of: Some(index), ..RowScan::new(view, table, walk, RowBuffer::default()) }
    }

    /// The RID and record of the next row, of which the columns that were asked for may be read; of a scan of keys alone, its key.
    ///
    /// # Errors
    /// When a page is damaged, or nothing more is to be read. After an error nothing more comes.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<(Rid, &[u8])>> {
        if self.left == 0 {
            return Ok(None);
        }
        let is_there = match self.page.next(&self.table, &mut self.buffer) {
            Ok(CopiedRow::Here | CopiedRow::Decoded) => true,
            Ok(CopiedRow::None) if self.at < self.records.len() => {
                self.at += 1;
                true
            }
            other => self.find_record(other)?,
        };
        if !is_there {
            return Ok(None);
        }
        self.left -= u64::from(self.left < u64::MAX);
        Ok(self.current())
    }

    /// Nothing more comes.
    fn ends(&mut self) {
        (self.left, self.is_done) = (0, true);
    }

    /// The row that was delivered last.
    #[inline]
    fn current(&self) -> Option<(Rid, &[u8])> {
        self.page.row(&self.buffer).or_else(|| self.records.get(self.at.checked_sub(1)?))
    }

    /// Finds the next row where the page that was copied has none, or one that has moved. False at the end. After an error nothing more comes.
    fn find_record(&mut self, copied: Result<CopiedRow>) -> Result<bool> {
        let found = copied.and_then(|copied| self.read_record(copied));
        found.inspect_err(|_| self.ends())
    }

    fn read_record(&mut self, mut copied: CopiedRow) -> Result<bool> {
        loop {
            match copied {
                CopiedRow::Here | CopiedRow::Decoded => return Ok(true),
                CopiedRow::Moved => {
                    self.records.clear();
                    self.at = 0;
                    let (rid, records) = (self.page.rid(), &mut self.records);
                    self.view.reading().read_noted(&self.table, rid, &mut self.buffer, |record| records.push(rid, record))?;
                }
                CopiedRow::None if self.at == self.records.len() && !self.step()? => return Ok(false),
                CopiedRow::None => {}
            }
            if self.at < self.records.len() {
                self.at += 1;
                return Ok(true);
            }
            copied = self.page.next(&self.table, &mut self.buffer)?;
        }
    }

    /// Reads a little more. False at the end.
    fn step(&mut self) -> Result<bool> {
        self.records.clear();
        self.at = 0;
        if self.is_done {
            return Ok(false);
        }
        self.view.check()?;
        let (table, filter) = (&*self.table, self.filter.as_deref());
        let mut copying = Copying { table, records: &mut self.records, page: &mut self.page, filter };
        self.is_done = !self.walk.step(&self.view.reading(), table, &mut self.buffer, &mut copying)?;
        Ok(true)
    }

    /// The values that are delivered of a record, or of a key.
    #[inline]
    fn values(&self, record: &[u8], values: &mut Vec<Value>) -> Result<()> {
        values.clear();
        match &self.keys_of {
            Some(index) => {
                *values = index.key_layout().decode(record).map_err(|e| Error::Value(format!("{}: {e}", index.object())))?;
                Ok(())
            }
            None => self.table.values_into(record, &self.columns, values),
        }
    }

    /// RID and values of the row that was delivered last; `None` when it is gone.
    #[inline]
    fn values_of_current(&self, values: &mut Vec<Value>) -> Result<Option<Rid>> {
        let Some((rid, record)) = self.current() else { return Ok(None) };
        match self.values(record, values) {
            Err(error) if error.is_damage() => self.reread(rid, values),
            done => done.map(|()| Some(rid)),
        }
    }

    /// The transaction may have taken the row back since it was read, and a large value with it.
    #[cold]
    fn reread(&self, rid: Rid, values: &mut Vec<Value>) -> Result<Option<Rid>> {
        self.view.check()?;
        let reread = self.view.reading().read_noted(&self.table, rid, &mut RowBuffer::default(), |record| {
            let matches = self.filter.as_ref().map_or(Ok(true), |filter| filter.matches(&self.table, record))?;
            matches.then(|| self.values(record, values)).transpose()
        })?;
        Ok(reread.transpose()?.flatten().map(|()| rid))
    }

    /// Puts the values of the next row, of the columns that were asked for, in the place of others, and gives its RID; of a scan of keys alone, those of its key, in the order of the index.
    ///
    /// # Errors
    /// As [`next_record`](Self::next_record).
    #[inline]
    pub fn next_values(&mut self, values: &mut Vec<Value>) -> Result<Option<Rid>> {
        loop {
            if self.next_record()?.is_none() {
                return Ok(None);
            }
            match self.values_of_current(values) {
                Ok(None) => {}
                Ok(found) => return Ok(found),
                Err(error) => {
                    self.ends();
                    return Err(error);
                }
            }
        }
    }
}

impl Iterator for RowScan {
    type Item = Result<(Rid, Vec<Value>)>;

    /// As [`next_values`](RowScan::next_values).
    fn next(&mut self) -> Option<Result<(Rid, Vec<Value>)>> {
        let mut values = Vec::with_capacity(self.columns.len());
        let found = self.next_values(&mut values).transpose()?;
        Some(found.map(|rid| (rid, values)))
    }
}

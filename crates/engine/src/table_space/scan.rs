//! Scans: every row once, in page order.
//!
//! Invariants:
//! - a row that has moved, or that another page hosts, is delivered where it lies, under the RID of its home; forward pointers and ranges are passed over;
//! - the visitor runs under the page's shared latch: it must not ask for other pages of the table for change.

use super::batch::ColumnBatch;
use super::filter::{AreaRows, Filter};
use super::read::{RowBuffer, check_type};
use super::table::Table;
use crate::Error;
use crate::data_set::DataSet;
use crate::pool::{Access, Prefetch};
use pagefold_codec::page::ColumnArea;
use pagefold_format::data::{DataPage, Stored};
use pagefold_types::{Predicate, Rid};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How a scan ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanOutcome {
    /// Every row was delivered.
    Complete,
    /// The visitor stopped it.
    Stopped,
}

/// What takes the rows of a scan.
pub(crate) trait RowSink<E> {
    /// A row by itself.
    fn row(&mut self, rid: Rid, record: &[u8]) -> Result<ControlFlow<()>, E>;

    /// Rows that a page has in its column part; false: they are to come one by one.
    fn area(&mut self, area: &ColumnArea<'_>, page: &DataPage<'_>, rows: &AreaRows) -> Result<bool, E> {
        let _ = (area, page, rows);
        Ok(false)
    }

    /// All rows of a page were delivered; it is not latched any more.
    fn end_of_page(&mut self) -> Result<ControlFlow<()>, E> {
        Ok(ControlFlow::Continue(()))
    }
}

/// Delivers all rows one by one.
pub(crate) struct Rows<F>(pub(crate) F);

impl<E, F: FnMut(Rid, &[u8]) -> Result<ControlFlow<()>, E>> RowSink<E> for Rows<F> {
    #[inline]
    fn row(&mut self, rid: Rid, record: &[u8]) -> Result<ControlFlow<()>, E> {
        self.0(rid, record)
    }
}

/// Gathers the rows that a filter lets through in a batch.
#[derive(Debug)]
pub(crate) struct Gathering<'t> {
    pub(crate) table: &'t Table,
    pub(crate) batch: ColumnBatch,
    pub(crate) filter: Option<&'t Filter>,
}

impl Gathering<'_> {
    fn row(&mut self, rid: Rid, record: &[u8]) -> Result<(), Error> {
        self.batch.push_record(self.table, rid, record, self.filter)
    }

    fn area(&mut self, area: &ColumnArea<'_>, page: &DataPage<'_>, rows: &AreaRows) -> Result<bool, Error> {
        // Whose rows these are nobody says here.
        if self.batch.rids().is_some() {
            return Ok(false);
        }
        self.batch.push_area(self.table, area, page, rows, self.filter).map(|()| true)
    }

    /// All columns have all rows from now on.
    pub(crate) fn settle(&mut self) -> Result<(), Error> {
        self.batch.settle(self.table)
    }
}

impl RowSink<Error> for Gathering<'_> {
    fn row(&mut self, rid: Rid, record: &[u8]) -> Result<ControlFlow<()>, Error> {
        self.row(rid, record).map(|()| ControlFlow::Continue(()))
    }

    fn area(&mut self, area: &ColumnArea<'_>, page: &DataPage<'_>, rows: &AreaRows) -> Result<bool, Error> {
        self.area(area, page, rows)
    }
}

/// What rows are to be read into that become columns, or are looked at by a condition.
pub(crate) fn buffer_for(table: &Table, columns: &[usize], condition: Option<&Predicate>) -> RowBuffer {
    RowBuffer::for_columns(table, &[columns, condition.map_or(&[][..], Predicate::columns)].concat())
}

/// Delivers the rows that a filter lets through in batches.
pub(crate) struct Batches<'t, F> {
    gathering: Gathering<'t>,
    visit: F,
}

impl<'t, F> Batches<'t, F> {
    /// Of these columns.
    pub(crate) fn new(table: &'t Table, columns: &[usize], filter: Option<&'t Filter>, visit: F) -> Result<Self, Error> {
        Ok(Batches { gathering: Gathering { table, batch: ColumnBatch::new(table, columns)?, filter }, visit })
    }

    /// Delivers the rows that are left.
    pub(crate) fn finish<E: From<Error>>(mut self) -> Result<ControlFlow<()>, E>
    where
        F: FnMut(&ColumnBatch) -> Result<ControlFlow<()>, E>,
    {
        if self.gathering.batch.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        self.deliver()
    }

    fn deliver<E: From<Error>>(&mut self) -> Result<ControlFlow<()>, E>
    where
        F: FnMut(&ColumnBatch) -> Result<ControlFlow<()>, E>,
    {
        self.gathering.settle()?;
        let flow = (self.visit)(&self.gathering.batch);
        self.gathering.batch.clear();
        flow
    }
}

impl<E: From<Error>, F: FnMut(&ColumnBatch) -> Result<ControlFlow<()>, E>> RowSink<E> for Batches<'_, F> {
    fn row(&mut self, rid: Rid, record: &[u8]) -> Result<ControlFlow<()>, E> {
        self.gathering.row(rid, record)?;
        Ok(ControlFlow::Continue(()))
    }

    fn area(&mut self, area: &ColumnArea<'_>, page: &DataPage<'_>, rows: &AreaRows) -> Result<bool, E> {
        Ok(self.gathering.area(area, page, rows)?)
    }

    fn end_of_page(&mut self) -> Result<ControlFlow<()>, E> {
        if !self.gathering.batch.is_full() {
            return Ok(ControlFlow::Continue(()));
        }
        self.deliver()
    }
}

impl Table {
    /// Delivers some columns of every row that satisfies the condition, in batches of a thousand rows and more; of less, even none, where few rows satisfy it.
    ///
    /// # Errors
    /// When a page is damaged, there is no such column, or the visitor fails.
    pub fn scan_columns<E: From<Error>>(
        &self,
        columns: &[usize],
        condition: Option<&Predicate>,
        visit: impl FnMut(&ColumnBatch) -> Result<ControlFlow<()>, E>,
    ) -> Result<ScanOutcome, E> {
        let filter = condition.map(|condition| Filter::new(self, condition));
        let mut sink = Batches::new(self, columns, filter.as_ref(), visit)?;
        let mut buffer = buffer_for(self, columns, condition);
        let _visiting = self.visit();
        for (number, data_set) in self.partitions().enumerate() {
            let pages: Vec<u32> = data_set.space().data_pages().collect();
            if self.scan_into(number as u16, data_set, &pages, &mut buffer, &mut sink)? == ScanOutcome::Stopped {
                return Ok(ScanOutcome::Stopped);
            }
        }
        Ok(if sink.finish()?.is_break() { ScanOutcome::Stopped } else { ScanOutcome::Complete })
    }

    /// Delivers every row: RID and record.
    ///
    /// # Errors
    /// When a page is damaged, or the visitor fails.
    pub fn scan<E: From<Error>>(
        &self,
        buffer: &mut RowBuffer,
        mut visit: impl FnMut(Rid, &[u8]) -> Result<ControlFlow<()>, E>,
    ) -> Result<ScanOutcome, E> {
        for (number, data_set) in self.partitions().enumerate() {
            let pages: Vec<u32> = data_set.space().data_pages().collect();
            let outcome = self.scan_pages(number as u16, data_set, &pages, buffer, &mut visit)?;
            if outcome == ScanOutcome::Stopped {
                return Ok(outcome);
            }
        }
        Ok(ScanOutcome::Complete)
    }

    /// Delivers the rows of some data pages (ascending) of a partition.
    ///
    /// # Errors
    /// As [`Self::scan`].
    pub fn scan_pages<E: From<Error>>(
        &self,
        partition: u16,
        data_set: &DataSet,
        pages: &[u32],
        buffer: &mut RowBuffer,
        visit: &mut impl FnMut(Rid, &[u8]) -> Result<ControlFlow<()>, E>,
    ) -> Result<ScanOutcome, E> {
        let _visiting = self.visit();
        self.scan_into(partition, data_set, pages, buffer, &mut Rows(visit))
    }

    fn scan_into<E: From<Error>>(
        &self,
        partition: u16,
        data_set: &DataSet,
        pages: &[u32],
        buffer: &mut RowBuffer,
        sink: &mut impl RowSink<E>,
    ) -> Result<ScanOutcome, E> {
        let manager = &self.core.manager;
        let window = (manager.settings().bytes_per_io / data_set.page_bytes()).max(1);
        let position = Arc::new(AtomicU32::new(0));
        for (i, &number) in pages.iter().enumerate() {
            position.store(number, Ordering::Relaxed);
            if i % window == 0 {
                // One window ahead; at the start the first one too.
                let from = if i == 0 { 0 } else { i + window };
                let to = (i + 2 * window).min(pages.len());
                if from < to {
                    let range = pages[from]..pages[to - 1] + 1;
                    manager.prefetch(data_set, Prefetch::Sequential, std::iter::once(range).collect(), Some(&position));
                }
            }
            let page = manager.shared(data_set, number, Access::Scan)?;
            check_type(data_set, number, &page)?;
            let view = DataPage::new(&page);
            let version = view.dictionary_version();
            let columns_done = self.area_to(data_set, number, &view, &AreaRows::All, sink)?;
            for slot in view.slots(columns_done) {
                let Some(row) = view.row(slot) else { continue };
                let (rid, body) = match Stored::parse(row, version).map_err(|e| data_set.corrupt(number, e))? {
                    Stored::Home(body) => (Rid::new(partition, number, slot), body),
                    Stored::Away { home, body } | Stored::Hosted { home, body } => (home, body),
                    Stored::Forward(_) | Stored::HostedForward { .. } | Stored::Forwarded(_) => continue,
                };
                if self.decode(data_set, number, body, buffer, |record| sink.row(rid, record))??.is_break() {
                    return Ok(ScanOutcome::Stopped);
                }
            }
            drop(page);
            if sink.end_of_page()?.is_break() {
                return Ok(ScanOutcome::Stopped);
            }
        }
        Ok(ScanOutcome::Complete)
    }

    /// Offers rows of the column part of a page, if it has one, to a sink. Whether that took them.
    pub(super) fn area_to<E: From<Error>>(
        &self,
        data_set: &DataSet,
        number: u32,
        page: &DataPage<'_>,
        rows: &AreaRows,
        sink: &mut impl RowSink<E>,
    ) -> Result<bool, E> {
        let Some(part) = page.column_part().filter(|part| !part.area().is_empty()) else { return Ok(false) };
        let version = Some(part.dictionary()).filter(|version| *version != 0);
        let dictionary = version.and_then(|version| self.dictionaries.tokens_of(version));
        let area = self.decoder.area(part, dictionary).map_err(|e| self.undecodable(data_set, number, version, e))?;
        sink.area(&area, page, rows)
    }

    /// Asks for the pages of rows that will be read soon (list prefetch).
    ///
    /// # Errors
    /// When a RID names a partition that does not exist.
    pub fn prefetch_rows(&self, rids: &[Rid]) -> Result<(), Error> {
        let mut pages: Vec<(u16, u32)> = rids.iter().map(|rid| (rid.partition(), rid.page())).collect();
        pages.sort_unstable();
        pages.dedup();
        for group in pages.chunk_by(|a, b| a.0 == b.0) {
            let mut ranges: Vec<Range<u32>> = Vec::new();
            for (_, page) in group {
                match ranges.last_mut() {
                    Some(last) if last.end == *page => last.end += 1,
                    _ => ranges.push(*page..page + 1),
                }
            }
            self.core.manager.prefetch(self.partition(group[0].0)?, Prefetch::List, ranges, None);
        }
        Ok(())
    }
}

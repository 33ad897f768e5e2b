//! What scans have in common: the pages that they come to, and what takes the rows of these.
//!
//! Invariants:
//! - a row that has moved, or that another page hosts, is delivered with its home page, under the RID of that;
//! - a sink takes rows under their page's shared latch: it asks for no other page, and runs nothing of a program's.

use super::batch::ColumnBatch;
use super::filter::{AreaRows, Filter};
use super::page_copy::PageCopy;
use super::read::RowBuffer;
use super::table::Table;
use crate::Error;
use crate::data_set::DataSet;
use crate::pool::{Access, Prefetch};
use pagefold_codec::page::ColumnArea;
use pagefold_format::data::{ColumnPart, DataPage};
use pagefold_types::{Predicate, Rid};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What takes the rows of a scan.
pub(crate) trait RowSink<E> {
    /// A row by itself.
    fn row(&mut self, rid: Rid, record: &[u8]) -> Result<ControlFlow<()>, E>;

    /// Rows that a page has in its column part; false: they are to come one by one.
    fn area(&mut self, area: &ColumnArea<'_>, page: &DataPage<'_>, rows: &AreaRows) -> Result<bool, E> {
        let _ = (area, page, rows);
        Ok(false)
    }

    /// Rows that lie on a page as their records; false: they are to come one by one.
    fn records<'r>(&mut self, records: impl Iterator<Item = (Rid, &'r [u8])>) -> Result<bool, E> {
        let _ = records;
        Ok(false)
    }

    /// All of a page by row that is the same for every snapshot, by partition and number; false: its rows are to come one by one.
    fn page(&mut self, place: (u16, u32), bytes: &[u8]) -> Result<bool, E> {
        let _ = (place, bytes);
        Ok(false)
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
    /// All columns have all rows from now on.
    pub(crate) fn settle(&mut self) -> Result<(), Error> {
        self.batch.settle(self.table)
    }
}

impl RowSink<Error> for Gathering<'_> {
    fn row(&mut self, rid: Rid, record: &[u8]) -> Result<ControlFlow<()>, Error> {
        self.batch.push_record(self.table, rid, record, self.filter)?;
        Ok(ControlFlow::Continue(()))
    }

    fn area(&mut self, area: &ColumnArea<'_>, page: &DataPage<'_>, rows: &AreaRows) -> Result<bool, Error> {
        // Whose rows these are nobody says here.
        if self.batch.rids().is_some() {
            return Ok(false);
        }
        self.batch.push_area(self.table, area, page, rows, self.filter).map(|()| true)
    }

    /// Records that lie there as they are need no copy.
    fn page(&mut self, (partition, number): (u16, u32), bytes: &[u8]) -> Result<bool, Error> {
        match DataPage::new(bytes).raw_records().filter(|_| self.table.decoder.layout() == 0) {
            Some(records) => self.records(records.map(|(slot, record)| (Rid::new(partition, number, slot), record))),
            None => Ok(false),
        }
    }

    fn records<'r>(&mut self, records: impl Iterator<Item = (Rid, &'r [u8])>) -> Result<bool, Error> {
        self.batch.push_records(self.table, records, self.filter).map(|()| true)
    }
}

/// What rows are to be read into that become columns, or are looked at by a condition.
pub(crate) fn buffer_for(table: &Table, columns: &[usize], condition: Option<&Predicate>) -> RowBuffer {
    RowBuffer::for_columns(table, &[columns, condition.map_or(&[][..], Predicate::columns)].concat())
}

/// Rows, copied.
#[derive(Debug, Default)]
pub(crate) struct Records {
    bytes: Vec<u8>,
    /// RID and end of each.
    rows: Vec<(Rid, usize)>,
}

impl Records {
    #[inline]
    pub(crate) fn push(&mut self, rid: Rid, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.rows.push((rid, self.bytes.len()));
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// One of them.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<(Rid, &[u8])> {
        let (rid, end) = *self.rows.get(at)?;
        let start = at.checked_sub(1).map_or(0, |before| self.rows[before].1);
        Some((rid, &self.bytes[start..end]))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Rid, &[u8])> {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    /// Keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }
}

impl RowSink<Error> for Records {
    #[inline]
    fn row(&mut self, rid: Rid, record: &[u8]) -> Result<ControlFlow<()>, Error> {
        self.push(rid, record);
        Ok(ControlFlow::Continue(()))
    }
}

/// Copies the rows that a filter lets through; whole pages where there is no filter.
#[derive(Debug)]
pub(crate) struct Copying<'t> {
    pub(crate) table: &'t Table,
    pub(crate) records: &'t mut Records,
    pub(crate) page: &'t mut PageCopy,
    pub(crate) filter: Option<&'t Filter>,
}

impl RowSink<Error> for Copying<'_> {
    #[inline]
    fn row(&mut self, rid: Rid, record: &[u8]) -> Result<ControlFlow<()>, Error> {
        if let Some(filter) = self.filter
            && !filter.matches(self.table, record)?
        {
            return Ok(ControlFlow::Continue(()));
        }
        self.records.push(rid, record);
        Ok(ControlFlow::Continue(()))
    }

    fn page(&mut self, place: (u16, u32), bytes: &[u8]) -> Result<bool, Error> {
        let is_taken = self.filter.is_none();
        if is_taken {
            self.page.take(self.table, place, bytes);
        }
        Ok(is_taken)
    }
}

/// The data pages of a table as they were listed once, in order; threads may share them.
#[derive(Debug)]
pub(crate) struct DataPages {
    list: Arc<PageList>,
    taken: Range<usize>,
}

#[derive(Debug)]
struct PageList {
    /// Partition and page.
    pages: Vec<(u16, u32)>,
    next: AtomicUsize,
}

impl DataPages {
    /// Those that a table has now.
    pub(crate) fn of(table: &Table) -> DataPages {
        let of_partition = |(number, data_set): (usize, &Arc<DataSet>)| {
            let pages: Vec<u32> = data_set.space().data_pages().collect();
            pages.into_iter().map(move |page| (number as u16, page))
        };
        DataPages::from(table.data_sets().enumerate().flat_map(of_partition).collect::<Vec<_>>())
    }

    /// Others of the same list: each page is taken by one.
    pub(crate) fn part(&self) -> DataPages {
        DataPages { list: Arc::clone(&self.list), taken: 0..0 }
    }

    /// The next page. Those behind it are asked for.
    #[inline]
    pub(crate) fn next(&mut self, table: &Table) -> Result<Option<(u16, u32)>, Error> {
        if self.taken.is_empty() && !self.take(table)? {
            return Ok(None);
        }
        Ok(self.taken.next().and_then(|at| self.list.pages.get(at).copied()))
    }

    /// Takes the next pages from the list, as many as one I/O reads, and asks for those behind them.
    fn take(&mut self, table: &Table) -> Result<bool, Error> {
        let pages = &self.list.pages;
        let Some(last) = pages.last() else { return Ok(false) };
        let bytes_per_io = table.core.manager.settings().bytes_per_io;
        let window = (bytes_per_io / table.partition(last.0)?.page_bytes()).max(1);
        let from = self.list.next.fetch_add(window, Ordering::Relaxed);
        let Some(ahead) = pages.get(from..).filter(|ahead| !ahead.is_empty()) else { return Ok(false) };
        self.taken = from..(from + window).min(pages.len());
        let partition = ahead[0].0;
        let ahead: Vec<u32> = ahead.iter().take(2 * window).take_while(|(of, _)| *of == partition).map(|(_, page)| *page).collect();
        let (first, end) = (ahead[0], ahead[ahead.len() - 1].saturating_add(1));
        // What lies between pages comes with them, unless that is most of it.
        let (kind, ranges) = if end.saturating_sub(first) as usize <= 2 * ahead.len() {
            (Prefetch::Sequential, std::iter::once(first..end).collect())
        } else {
            (Prefetch::List, ranges_of(&ahead))
        };
        table.core.manager.prefetch(table.partition(partition)?, kind, ranges, None);
        Ok(true)
    }
}

impl From<Vec<(u16, u32)>> for DataPages {
    /// Partition and page of each, ascending.
    fn from(pages: Vec<(u16, u32)>) -> DataPages {
        DataPages { list: Arc::new(PageList { pages, next: AtomicUsize::new(0) }), taken: 0..0 }
    }
}

/// Runs of page numbers that follow each other.
pub(super) fn ranges_of(pages: &[u32]) -> Vec<Range<u32>> {
    let runs = pages.chunk_by(|a, b| a.checked_add(1) == Some(*b));
    runs.map(|run| run[0]..run[run.len() - 1].saturating_add(1)).collect()
}

impl Table {
    /// Delivers rows whose homes are on these pages as they are now, committed or not. Rows that have moved are fetched by way of their home: so each that was there before the scan and stays is delivered once, whatever
    /// moves meanwhile. Of those that come, change or go meanwhile an observer is told. Nothing is latched while `visit` runs.
    ///
    /// # Errors
    /// When a page is damaged, or the visitor fails.
    pub(crate) fn visit_newest<E: From<Error>>(
        &self,
        mut pages: DataPages,
        mut visit: impl FnMut(Rid, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut buffer, mut records) = (RowBuffer::default(), Records::default());
        while let Some(place) = pages.next(self)? {
            self.newest_of_page(place, &mut buffer, &mut records)?;
            records.iter().try_for_each(|(rid, record)| visit(rid, record))?;
            records.clear();
        }
        Ok(())
    }

    fn newest_of_page(&self, (partition, number): (u16, u32), buffer: &mut RowBuffer, records: &mut Records) -> Result<(), Error> {
        let data_set = self.partition(partition)?;
        let mut moved = Vec::new();
        let Some(page) = self.data_page(data_set, number, Access::Scan)? else { return Ok(()) };
        let _ = self.rows_as_they_lie((&**data_set, number, partition), &DataPage::new(&page), false, buffer, &mut moved, records)?;
        drop(page);
        for slot in moved {
            let rid = Rid::new(partition, number, slot);
            self.read(rid, buffer, |record| records.push(rid, record))?;
        }
        Ok(())
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
        match self.own_area(data_set, number, page)? {
            Some(area) => sink.area(&area, page, rows),
            None => Ok(false),
        }
    }

    /// The column part of a page; `None` without one, and of another layout than the table's: rows of these come one by one.
    pub(super) fn own_area<'p>(&'p self, data_set: &DataSet, number: u32, page: &DataPage<'p>) -> Result<Option<ColumnArea<'p>>, Error> {
        let is_own = |part: &ColumnPart<'_>| !part.area().is_empty() && part.layout() == self.decoder.layout();
        let Some(part) = page.column_part().filter(is_own) else { return Ok(None) };
        let version = Some(part.dictionary()).filter(|version| *version != 0);
        let dictionary = version.and_then(|version| self.dictionaries.tokens_of(version));
        self.decoder.area(part, dictionary).map(Some).map_err(|e| self.undecodable(data_set, number, version, e))
    }

    /// Asks for the pages of rows that will be read soon (list prefetch).
    ///
    /// # Errors
    /// When a RID names a partition that does not exist.
    pub(crate) fn prefetch_rows(&self, rids: impl Iterator<Item = Rid>) -> Result<(), Error> {
        let mut pages: Vec<(u16, u32)> = rids.map(|rid| (rid.partition(), rid.page())).collect();
        pages.sort_unstable();
        pages.dedup();
        for of_partition in pages.chunk_by(|a, b| a.0 == b.0) {
            let ranges = ranges_of(&of_partition.iter().map(|(_, page)| *page).collect::<Vec<_>>());
            self.core.manager.prefetch(self.partition(of_partition[0].0)?, Prefetch::List, ranges, None);
        }
        Ok(())
    }
}

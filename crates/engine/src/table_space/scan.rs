//! Scans: every row once, in page order.
//!
//! Invariants:
//! - a row that has moved is delivered where it lies, under the RID of its home; forward pointers are passed over;
//! - the visitor runs under the page's shared latch: it must not ask for other pages of the table for change.

use super::read::{RowBuffer, check_type};
use super::table::Table;
use crate::Error;
use crate::data_set::DataSet;
use crate::pool::{Access, Prefetch};
use pagefold_format::data::{DataPage, Stored};
use pagefold_types::Rid;
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

impl Table {
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
            for slot in 0..view.slot_count() {
                let Some(row) = view.row(slot) else { continue };
                let (rid, body) = match Stored::parse(row, version).map_err(|e| data_set.corrupt(number, e))? {
                    Stored::Home(body) => (Rid::new(partition, number, slot), body),
                    Stored::Away { home, body } => (home, body),
                    Stored::Forward(_) => continue,
                };
                if self.decode(data_set, number, body, buffer, |record| visit(rid, record))??.is_break() {
                    return Ok(ScanOutcome::Stopped);
                }
            }
        }
        Ok(ScanOutcome::Complete)
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

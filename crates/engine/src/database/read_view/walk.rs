//! How a scan comes to its rows: a little at a time, and nothing is latched in between.
//!
//! Invariants:
//! - the pages of a table are listed when the scan begins: rows that the view sees have their homes there, as its snapshot is older than the list;
//! - parts of a scan share the list and take the next pages from it, so each row comes in one part, and no thread is left without work while another has some.

use super::super::leftovers::key_of;
use super::super::reading::Reading;
use crate::Error;
use crate::Result;
use crate::btree::{Direction, Position};
use crate::index::Index;
use crate::pool::Prefetch;
use crate::table_space::{Looks, RowBuffer, RowSink, Table};
use crate::transaction::TransactionState;
use pagefold_types::{KeyRange, Rid};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rows that are looked at in one step by an index or a list.
const ROWS_A_STEP: usize = 64;

/// Where a scan is.
#[derive(Debug)]
pub(super) enum Walk {
    Pages(PageWalk),
    Entries(Box<EntryWalk>),
    Rids(RidWalk),
}

/// Of a table, page by page.
#[derive(Debug)]
pub(super) struct PageWalk {
    list: Arc<PageList>,
    taken: Range<usize>,
    looks: Looks,
}

#[derive(Debug)]
struct PageList {
    /// Partition and page.
    pages: Vec<(u16, u32)>,
    next: AtomicUsize,
}

/// By an index.
#[derive(Debug)]
pub(super) struct EntryWalk {
    index: Arc<Index>,
    position: Position,
    /// Removals before the current leaf was copied.
    removals: u64,
    keys_only: bool,
    /// Rows of this step; with the place of their key in `keys`, if they may have another one by now.
    wanted: Vec<(Rid, Option<Range<usize>>)>,
    keys: Vec<u8>,
    own: Vec<u8>,
    steps: u64,
}

/// By a list.
#[derive(Debug)]
pub(super) struct RidWalk {
    rids: Vec<Rid>,
    at: usize,
}

impl Walk {
    pub(super) fn pages(table: &Table) -> Walk {
        let of_partition = |(number, data_set): (usize, &Arc<crate::DataSet>)| {
            let pages: Vec<u32> = data_set.space().data_pages().collect();
            pages.into_iter().map(move |page| (number as u16, page))
        };
        let pages = table.partitions().enumerate().flat_map(of_partition).collect();
        let list = Arc::new(PageList { pages, next: AtomicUsize::new(0) });
        Walk::Pages(PageWalk { list, taken: 0..0, looks: Looks::default() })
    }

    pub(super) fn entries(index: &Arc<Index>, range: KeyRange, direction: Direction, keys_only: bool) -> Walk {
        let position = Position::new(range, direction);
        Walk::Entries(Box::new(EntryWalk {
            index: Arc::clone(index),
            position,
            removals: 0,
            keys_only,
            wanted: Vec::new(),
            keys: Vec::new(),
            own: Vec::new(),
            steps: 0,
        }))
    }

    pub(super) fn rids(rids: Vec<Rid>) -> Walk {
        Walk::Rids(RidWalk { rids, at: 0 })
    }

    /// Another part of the same rows; `None` where they come in an order.
    pub(super) fn part(&self) -> Option<Walk> {
        match self {
            Walk::Pages(walk) => Some(Walk::Pages(PageWalk { list: Arc::clone(&walk.list), taken: 0..0, looks: Looks::default() })),
            Walk::Entries(_) | Walk::Rids(_) => None,
        }
    }

    /// Delivers the next few rows. False at the end.
    pub(super) fn step(
        &mut self,
        reading: &Reading<'_>,
        table: &Table,
        buffer: &mut RowBuffer,
        sink: &mut impl RowSink<Error>,
    ) -> Result<bool> {
        match self {
            Walk::Pages(walk) => walk.step(reading, table, buffer, sink),
            Walk::Entries(walk) => walk.step(reading, table, buffer, sink),
            Walk::Rids(walk) => walk.step(reading, table, buffer, sink),
        }
    }
}

impl PageWalk {
    fn step(&mut self, reading: &Reading<'_>, table: &Table, buffer: &mut RowBuffer, sink: &mut impl RowSink<Error>) -> Result<bool> {
        if self.taken.is_empty() && !self.take(table)? {
            return Ok(false);
        }
        let Some(place) = self.taken.next().and_then(|at| self.list.pages.get(at)) else { return Ok(false) };
        let mut unseen: Vec<Arc<TransactionState>> = Vec::new();
        let note = |writer: &Arc<TransactionState>| {
            if reading.serializable.is_some() && unseen.iter().all(|known| known.id() != writer.id()) {
                unseen.push(Arc::clone(writer));
            }
        };
        let _ = table.scan_page_visible(*place, reading.snapshot, buffer, &mut self.looks, sink, note)?;
        reading.overwritten(&unseen)?;
        Ok(true)
    }

    /// Takes the next pages from the list, and asks for those behind them.
    fn take(&mut self, table: &Table) -> Result<bool> {
        let pages = &self.list.pages;
        let Some(last) = pages.last() else { return Ok(false) };
        let window = table.pages_per_io(table.partition(last.0)?);
        let from = self.list.next.fetch_add(window, Ordering::Relaxed);
        let Some(ahead) = pages.get(from..).filter(|ahead| !ahead.is_empty()) else { return Ok(false) };
        self.taken = from..(from + window).min(pages.len());
        let partition = ahead[0].0;
        let ahead = ahead.iter().take(2 * window).take_while(|(of, _)| *of == partition).map(|(_, page)| *page);
        table.prefetch_pages(table.partition(partition)?, &ahead.collect::<Vec<_>>());
        Ok(true)
    }
}

impl EntryWalk {
    fn step(&mut self, reading: &Reading<'_>, table: &Table, buffer: &mut RowBuffer, sink: &mut impl RowSink<Error>) -> Result<bool> {
        let is_more = self.gather(reading, table, sink)?;
        let EntryWalk { index, position: _, keys_only, wanted, keys, own, steps, .. } = self;
        // Not for a few rows: these are there soon.
        if *steps > 0 && !*keys_only {
            prefetch(table, wanted.iter().map(|(rid, _)| *rid))?;
        }
        *steps += 1;
        for (rid, doubtful) in wanted.drain(..) {
            let read = reading.read_noted(table, rid, buffer, |record| {
                if let Some(key) = doubtful.clone().map(|key| &keys[key]) {
                    key_of(table, index, record, own)?;
                    if *own != key {
                        return Ok(ControlFlow::Continue(()));
                    }
                }
                sink.row(rid, if *keys_only { own } else { record })
            })?;
            read.transpose()?;
        }
        Ok(is_more)
    }

    /// The next rows that the table is to be asked for, and keys of those that may have another one by now. Keys that need no such question are delivered, if they are all that is wanted.
    fn gather(&mut self, reading: &Reading<'_>, table: &Table, sink: &mut impl RowSink<Error>) -> Result<bool> {
        let EntryWalk { index, position, removals, keys_only, wanted, keys, .. } = self;
        let tree = index.tree();
        keys.clear();
        for _ in 0..ROWS_A_STEP {
            if position.is_between_leaves() {
                *removals = reading.core.leftovers.removals();
            }
            let Some((key, rid)) = position.next(&tree)? else { return Ok(false) };
            reading.note_row(table, rid)?;
            let is_doubtful = reading.is_doubtful(table, index, rid, *removals);
            if *keys_only && !is_doubtful {
                let _ = sink.row(rid, key)?;
                continue;
            }
            let from = keys.len();
            keys.extend_from_slice(if is_doubtful { key } else { &[] });
            wanted.push((rid, is_doubtful.then_some(from..keys.len())));
            if *keys_only {
                // It comes before those behind it.
                return Ok(true);
            }
        }
        Ok(true)
    }
}

impl RidWalk {
    fn step(&mut self, reading: &Reading<'_>, table: &Table, buffer: &mut RowBuffer, sink: &mut impl RowSink<Error>) -> Result<bool> {
        let rids = &self.rids[self.at..(self.at + ROWS_A_STEP).min(self.rids.len())];
        self.at += rids.len();
        prefetch(table, rids.iter().copied())?;
        for rid in rids {
            reading.note_row(table, *rid)?;
            reading.read_noted(table, *rid, buffer, |record| sink.row(*rid, record))?.transpose()?;
        }
        Ok(self.at < self.rids.len())
    }
}

/// List prefetch: the pages of these rows, in ascending order.
fn prefetch(table: &Table, rids: impl Iterator<Item = Rid>) -> Result<()> {
    let mut pages: Vec<(u16, u32)> = rids.map(|rid| (rid.partition(), rid.page())).collect();
    pages.sort_unstable();
    pages.dedup();
    for of_partition in pages.chunk_by(|a, b| a.0 == b.0) {
        let ranges = of_partition.iter().map(|(_, page)| *page..page.saturating_add(1)).collect();
        table.manager().prefetch(table.partition(of_partition[0].0)?, Prefetch::List, ranges, None);
    }
    Ok(())
}

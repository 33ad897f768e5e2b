//! How a scan comes to its rows: a little at a time, and nothing is latched in between.
//!
//! Invariants:
//! - the pages of a table are listed when the scan begins: rows that the view sees have their homes there, as its snapshot is older than the list;
//! - parts of a scan share that list and take the next pages from it, so each row comes in one part, and no thread is left without work while another has some;
//! - by an index one row is looked at first, and then more and more in a step: who wants few has not read many.

use super::super::reading::{Doubt, Entries, Reading};
use crate::btree::Direction;
use crate::index::Index;
use crate::table_space::{DataPages, Looks, RowBuffer, RowSink, Table};
use crate::transaction::TransactionState;
use crate::{Error, Result};
use pagefold_types::{KeyRange, Rid};
use std::ops::Range;
use std::sync::Arc;

/// Rows that are looked at in one step by an index or a list.
const ROWS_A_STEP: usize = 64;

/// A range before all others.
const NO_KEYS: KeyRange = KeyRange { start: Vec::new(), end: Some(Vec::new()) };

/// Where a scan is.
#[derive(Debug)]
pub(super) enum Walk {
    Pages(PageWalk),
    Entries(Box<EntryWalk>),
    Rids(RidWalk),
}

/// Of a table, page by page.
#[derive(Debug)]
pub(in crate::database) struct PageWalk {
    pages: DataPages,
    looks: Looks,
}

/// By an index, range by range.
#[derive(Debug)]
pub(super) struct EntryWalk {
    index: Arc<Index>,
    entries: Entries,
    /// Those that come after that of `entries`.
    ranges: std::vec::IntoIter<KeyRange>,
    keys_only: bool,
    /// Rows of this step.
    wanted: Vec<Rid>,
    /// Those of them that may have another key by now: which, and the place of the key of their entry in `keys`.
    doubtful: Vec<(usize, Range<usize>)>,
    keys: Vec<u8>,
    doubt: Doubt,
    step: Step,
}

/// How many rows the next step by an index looks at: twice as many as the one before.
#[derive(Debug)]
struct Step(usize);

impl Step {
    fn next(&mut self) -> usize {
        let rows = self.0;
        self.0 = (2 * rows).min(ROWS_A_STEP);
        rows
    }
}

/// By a list.
#[derive(Debug)]
pub(super) struct RidWalk {
    rids: Vec<Rid>,
    at: usize,
}

impl Walk {
    pub(super) fn pages(pages: DataPages) -> Walk {
        Walk::Pages(PageWalk::of(pages))
    }

    /// One range after the other.
    pub(super) fn entries(index: &Arc<Index>, ranges: Vec<KeyRange>, direction: Direction, keys_only: bool) -> Walk {
        Walk::Entries(Box::new(EntryWalk {
            index: Arc::clone(index),
            entries: Entries::new(NO_KEYS, direction),
            ranges: ranges.into_iter(),
            keys_only,
            wanted: Vec::new(),
            doubtful: Vec::new(),
            keys: Vec::new(),
            doubt: Doubt::default(),
            step: Step(1),
        }))
    }

    pub(super) fn rids(rids: Vec<Rid>) -> Walk {
        Walk::Rids(RidWalk { rids, at: 0 })
    }

    /// Another part of the same rows; `None` where they come in an order.
    pub(super) fn part(&self) -> Option<Walk> {
        match self {
            Walk::Pages(walk) => Some(Walk::pages(walk.pages.part())),
            Walk::Entries(_) | Walk::Rids(_) => None,
        }
    }

    /// Delivers the next few rows. False at the end, or when the sink has enough.
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
    pub(in crate::database) fn of(pages: DataPages) -> PageWalk {
        PageWalk { pages, looks: Looks::default() }
    }

    /// Delivers the rows of the next page. False at the end, or when the sink has enough.
    pub(in crate::database) fn step(
        &mut self,
        reading: &Reading<'_>,
        table: &Table,
        buffer: &mut RowBuffer,
        sink: &mut impl RowSink<Error>,
    ) -> Result<bool> {
        let Some(place) = self.pages.next(table)? else { return Ok(false) };
        let mut unseen = Unseen::new(reading);
        let flow = table.scan_page_visible(place, reading.snapshot, buffer, &mut self.looks, sink, |writer| unseen.note(writer))?;
        unseen.tell()?;
        Ok(flow.is_continue())
    }

    /// How many rows of the next page are seen. `None` at the end.
    pub(super) fn count_next(&mut self, reading: &Reading<'_>, table: &Table) -> Result<Option<u64>> {
        let Some(place) = self.pages.next(table)? else { return Ok(None) };
        let mut unseen = Unseen::new(reading);
        let rows = table.count_page_visible(place, reading.snapshot, &mut self.looks, |writer| unseen.note(writer))?;
        unseen.tell()?;
        Ok(Some(rows))
    }
}

/// Who has changed rows of a page in a way that the snapshot does not see, each once: under SERIALIZABLE.
struct Unseen<'r> {
    reading: &'r Reading<'r>,
    writers: Vec<Arc<TransactionState>>,
}

impl<'r> Unseen<'r> {
    fn new(reading: &'r Reading<'r>) -> Unseen<'r> {
        Unseen { reading, writers: Vec::new() }
    }

    fn note(&mut self, writer: &Arc<TransactionState>) {
        if self.reading.serializable.is_some() && self.writers.iter().all(|known| known.id() != writer.id()) {
            self.writers.push(Arc::clone(writer));
        }
    }

    fn tell(self) -> Result<()> {
        self.reading.overwritten(&self.writers)
    }
}

impl EntryWalk {
    fn step(&mut self, reading: &Reading<'_>, table: &Table, buffer: &mut RowBuffer, sink: &mut impl RowSink<Error>) -> Result<bool> {
        let most = self.step.next();
        let is_more = self.gather(most, reading, table, sink)?;
        let EntryWalk { index, keys_only, wanted, doubtful, keys, doubt, .. } = self;
        // Not for a few rows: these are there soon.
        if most == ROWS_A_STEP && !*keys_only {
            table.prefetch_rows(wanted.iter().copied())?;
        }
        let mut doubtful = doubtful.iter();
        let mut next_doubtful = doubtful.next();
        let mut at = 0;
        while at < wanted.len() {
            let end = next_doubtful.map_or(wanted.len(), |(at, _)| *at);
            for run in wanted[at..end].chunk_by(|a, b| (a.partition(), a.page()) == (b.partition(), b.page())) {
                let mut done = 0;
                if run.len() > 1 && table.read_settled_of_page(run.iter().copied(), buffer, sink, &mut done)?.is_break() {
                    return Ok(false);
                }
                for rid in &run[done..] {
                    let flow = reading.read_noted(table, *rid, buffer, |record| sink.row(*rid, record))?;
                    if flow.transpose()?.is_some_and(|flow| flow.is_break()) {
                        return Ok(false);
                    }
                }
            }
            at = end;
            if let Some((_, key)) = next_doubtful {
                let (rid, key) = (wanted[at], &keys[key.clone()]);
                let row = |record: &[u8]| sink.row(rid, if *keys_only { key } else { record });
                let flow = reading.read_of_entry((table, index), (Some(key), rid), buffer, doubt, row)?;
                if flow.transpose()?.is_some_and(|flow| flow.is_break()) {
                    return Ok(false);
                }
                next_doubtful = doubtful.next();
                at += 1;
            }
        }
        Ok(is_more)
    }

    /// The next rows that the table is to be asked for, and keys of those that may have another one by now. Keys that need no such question are delivered, if they are all that is wanted.
    fn gather(&mut self, most: usize, reading: &Reading<'_>, table: &Table, sink: &mut impl RowSink<Error>) -> Result<bool> {
        let EntryWalk { index, entries, ranges, keys_only, wanted, doubtful, keys, .. } = self;
        keys.clear();
        wanted.clear();
        doubtful.clear();
        if most > 1 {
            wanted.reserve(ROWS_A_STEP);
        }
        let mut left = most;
        while left > 0 {
            while !entries.has_more(reading, index)? {
                let Some(range) = ranges.next() else { return Ok(false) };
                entries.restart(range);
            }
            if !*keys_only {
                let settled = entries.next_settled(reading, (table, index), left, wanted)?;
                left -= settled;
                if settled > 0 {
                    continue;
                }
            }
            left -= 1;
            let Some((key, rid, is_doubtful)) = entries.next(reading, table, index)? else { return Ok(false) };
            if *keys_only && !is_doubtful {
                if sink.row(rid, key)?.is_break() {
                    return Ok(false);
                }
                continue;
            }
            if is_doubtful {
                let from = keys.len();
                keys.extend_from_slice(key);
                doubtful.push((wanted.len(), from..keys.len()));
            }
            wanted.push(rid);
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
        table.prefetch_rows(rids.iter().copied())?;
        for rid in rids {
            reading.note_row(table, *rid)?;
            let flow = reading.read_noted(table, *rid, buffer, |record| sink.row(*rid, record))?;
            if flow.transpose()?.is_some_and(|flow| flow.is_break()) {
                return Ok(false);
            }
        }
        Ok(self.at < self.rids.len())
    }
}

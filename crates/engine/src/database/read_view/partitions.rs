//! Scans of several tables that are partitions of one: one after the other, or in the order of an index that they all have.
//!
//! Invariants:
//! - all tables and indexes are looked at when the scan is made: what does not count for the view is refused then;
//! - a scan opens one table at a time, so its memory does not grow with the number of partitions, but for the keys of a merge: one of each;
//! - under an order rows come by their keys, whichever partition has them.

use super::{ReadView, RowScan, Scan, ScanRequest};
use crate::Result;
use crate::btree::Direction;
use crate::index::Index;
use crate::table_space::{ColumnBatch, Table};
use pagefold_types::{KeyRange, Rid, Value};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// A partition that is to be read.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its table.
    pub table: Arc<Table>,
    /// By this index of it, in these ranges; `None`: as its rows lie.
    pub by: Option<(Arc<Index>, Vec<KeyRange>)>,
}

/// In which order parts with indexes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartOrder {
    /// Part by part, as they are listed: so the keys of one come before those of the next.
    Parts(Direction),
    /// By the keys of all.
    Keys(Direction),
}

/// Scans of tables, each with its table, one after the other.
#[derive(Debug)]
struct Pieces {
    view: ReadView,
    request: ScanRequest,
    direction: Direction,
    /// So many rows more.
    left: u64,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Parts(VecDeque<Part>),
    Merge(Merge),
}

/// Batches of the columns of rows of several partitions, each with its table.
#[derive(Debug)]
pub struct PartScan {
    pieces: Pieces,
    current: Option<(Arc<Table>, Scan)>,
    is_done: bool,
}

/// The rows of several partitions, one by one.
#[derive(Debug)]
pub struct PartRows {
    pieces: Pieces,
    current: Option<RowScan>,
    is_done: bool,
}

impl ReadView {
    /// The rows of several partitions.
    ///
    /// # Errors
    /// As [`ReadView::scan`], for any of them.
    pub fn parts(&self, parts: Vec<Part>, order: PartOrder, request: &ScanRequest) -> Result<PartScan> {
        for part in &parts {
            self.check_objects(&part.table, part.by.as_ref().map(|(index, _)| &**index))?;
        }
        let (PartOrder::Parts(direction) | PartOrder::Keys(direction)) = order;
        let source = match order {
            PartOrder::Keys(_) if parts.len() > 1 && parts.iter().all(|part| part.by.is_some()) => {
                Source::Merge(Merge::new(self, parts, direction)?)
            }
            _ => Source::Parts(parts.into()),
        };
        let left = request.limit.unwrap_or(u64::MAX);
        let pieces = Pieces { view: self.clone(), request: request.clone(), direction, left, source };
        Ok(PartScan { pieces, current: None, is_done: left == 0 })
    }
}

impl Pieces {
    /// The scan of the next table, or of some rows of it; `None` at the end.
    fn next(&mut self) -> Result<Option<(Arc<Table>, Scan)>> {
        if self.left == 0 {
            return Ok(None);
        }
        if self.left < u64::MAX {
            self.request.limit = Some(self.left);
        }
        match &mut self.source {
            Source::Parts(parts) => {
                let Some(Part { table, by }) = parts.pop_front() else { return Ok(None) };
                let scan = match by {
                    None => self.view.scan(&table, &self.request)?,
                    Some((index, ranges)) => self.view.ranges(&table, &index, ranges, self.direction, &self.request)?,
                };
                Ok(Some((table, scan)))
            }
            Source::Merge(merge) => {
                let Some((table, rids)) = merge.next()? else { return Ok(None) };
                let scan = self.view.rows(&table, rids, &self.request)?;
                Ok(Some((table, scan)))
            }
        }
    }

    fn delivered(&mut self, rows: u64) {
        self.left -= if self.left < u64::MAX { rows } else { 0 };
    }
}

impl PartScan {
    /// The same, row by row.
    #[must_use]
    pub fn into_rows(self) -> PartRows {
        PartRows { pieces: self.pieces, current: self.current.map(|(_, scan)| scan.into_rows()), is_done: self.is_done }
    }

    /// The same rows in parts for as many threads: each row comes in one of them. In one part where rows come in an order, or no more than some.
    #[must_use]
    pub fn split(mut self, count: usize) -> Vec<PartScan> {
        let parts = match &mut self.pieces.source {
            Source::Parts(parts) if parts.iter().all(|part| part.by.is_none()) && self.pieces.left == u64::MAX => std::mem::take(parts),
            _ => return vec![self],
        };
        let mut of_threads = vec![VecDeque::new(); count.clamp(1, parts.len().max(1))];
        let threads = of_threads.len();
        parts.into_iter().enumerate().for_each(|(at, part)| of_threads[at % threads].push_back(part));
        let (view, request, direction) = (self.pieces.view.clone(), self.pieces.request.clone(), self.pieces.direction);
        let mut scans: Vec<PartScan> = of_threads
            .into_iter()
            .map(|parts| {
                let source = Source::Parts(parts);
                let pieces = Pieces { view: view.clone(), request: request.clone(), direction, left: u64::MAX, source };
                PartScan { pieces, current: None, is_done: self.is_done }
            })
            .collect();
        if let Some(first) = scans.first_mut() {
            first.current = self.current;
        }
        scans
    }

    fn next_batch(&mut self) -> Result<Option<(Arc<Table>, ColumnBatch)>> {
        loop {
            match &mut self.current {
                Some((table, scan)) => match scan.next().transpose()? {
                    Some(batch) => {
                        self.pieces.delivered(batch.len() as u64);
                        return Ok(Some((Arc::clone(table), batch)));
                    }
                    None => self.current = None,
                },
                None => match self.pieces.next()? {
                    Some(piece) => self.current = Some(piece),
                    None => return Ok(None),
                },
            }
        }
    }
}

impl Iterator for PartScan {
    type Item = Result<(Arc<Table>, ColumnBatch)>;

    /// As those of [`Scan`], with the table that each is of. After an error nothing more comes.
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let next = self.next_batch().transpose();
        self.is_done = !matches!(next, Some(Ok(_)));
        next
    }
}

impl PartRows {
    fn next_row(&mut self) -> Result<Option<Vec<Value>>> {
        loop {
            match &mut self.current {
                Some(rows) => match rows.next().transpose()? {
                    Some((_, values)) => {
                        self.pieces.delivered(1);
                        return Ok(Some(values));
                    }
                    None => self.current = None,
                },
                None => match self.pieces.next()? {
                    Some((_, scan)) => self.current = Some(scan.into_rows()),
                    None => return Ok(None),
                },
            }
        }
    }
}

impl Iterator for PartRows {
    type Item = Result<Vec<Value>>;

    /// The values of the next row, of the columns that were asked for. After an error nothing more comes.
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let next = self.next_row().transpose();
        self.is_done = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Rows that are read at once, at most.
const RUN_ROWS: usize = 1024;

/// The entries of the indexes of several partitions, by key. A range after the other, as they are listed.
#[derive(Debug)]
struct Merge {
    view: ReadView,
    parts: Vec<Part>,
    direction: Direction,
    /// Which range of each.
    range: usize,
    cursors: Vec<RowScan>,
    heap: BinaryHeap<Head>,
}

/// The next entry of a partition.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    key: Vec<u8>,
    part: usize,
    rid: Rid,
    backward: bool,
}

impl Ord for Head {
    /// The greatest is the one that comes first.
    fn cmp(&self, other: &Head) -> Ordering {
        let ascending = (&other.key, other.part, other.rid).cmp(&(&self.key, self.part, self.rid));
        if self.backward { ascending.reverse() } else { ascending }
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Merge {
    fn new(view: &ReadView, parts: Vec<Part>, direction: Direction) -> Result<Merge> {
        let mut merge = Merge { view: view.clone(), parts, direction, range: 0, cursors: Vec::new(), heap: BinaryHeap::new() };
        merge.open()?;
        Ok(merge)
    }

    /// Opens the next range in every partition.
    fn open(&mut self) -> Result<()> {
        self.cursors.clear();
        for part in &self.parts {
            let Some((index, ranges)) = &part.by else { continue };
            let Some(range) = ranges.get(self.range) else { continue };
            self.cursors.push(self.view.keys(&part.table, index, range.clone(), self.direction)?);
        }
        (0..self.cursors.len()).try_for_each(|part| self.refill(part))
    }

    fn refill(&mut self, part: usize) -> Result<()> {
        let backward = self.direction == Direction::Backward;
        if let Some((rid, key)) = self.cursors[part].next_record()? {
            self.heap.push(Head { key: key.to_vec(), part, rid, backward });
        }
        Ok(())
    }

    /// Rows of one partition that come next.
    fn next(&mut self) -> Result<Option<(Arc<Table>, Vec<Rid>)>> {
        while self.heap.is_empty() {
            self.range += 1;
            self.open()?;
            if self.cursors.is_empty() {
                return Ok(None);
            }
        }
        let mut rids = Vec::new();
        let Some(part) = self.heap.peek().map(|head| head.part) else { return Ok(None) };
        while rids.len() < RUN_ROWS && self.heap.peek().is_some_and(|head| head.part == part) {
            let Some(head) = self.heap.pop() else { break };
            rids.push(head.rid);
            self.refill(part)?;
        }
        Ok(Some((Arc::clone(&self.parts[part].table), rids)))
    }
}

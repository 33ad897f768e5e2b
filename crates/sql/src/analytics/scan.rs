//! Rows of a table, as the statement sees them: by columns, in as many parts as there are threads.
//!
//! Invariant: all parts of a scan go the same way, by pages or by an index, so that each row comes in one of them.

use super::Kind;
use crate::SqlResult;
use crate::catalog::Part;
use pagefold_engine::btree::Direction;
use pagefold_engine::database::{ReadView, Scan, ScanRequest};
use pagefold_engine::index::Index;
use pagefold_engine::table_space::{ColumnBatch, IntMembers, Table};
use pagefold_types::{KeyRange, Predicate, ValueRef, prefix_end};
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// Work of a key that is looked up by an index, of a row that is then read, and of one that a scan by pages looks at: in microseconds.
const KEY: f64 = 2.0;
const ROW: f64 = 1.0;
const ROW_OF_PAGES: f64 = 0.008;
/// Keys whose rows are counted to know how many a key has, and rows of which that is not told exactly.
const COUNTED_KEYS: usize = 16;
const COUNTED_ROWS: usize = 256;

/// Rows of a table that are to be read: those that a view sees, and for which a condition is true.
#[derive(Debug)]
pub struct TableScan {
    pub(super) name: String,
    /// `None` where it is only said what would be done.
    pub(super) view: Option<ReadView>,
    /// One, or partitions.
    pub(super) parts: Vec<Part>,
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
        let of = Arc::new(Whole {
            view: view.clone(),
            parts: self.parts.clone(),
            request,
            rows: self.table_rows,
            threads,
            by_index: OnceLock::new(),
        });
        let part = |number| PartScans { of: Arc::clone(&of), number, members: Vec::new(), later: VecDeque::new(), open: VecDeque::new() };
        let mut all: Vec<PartScans> = (0..threads).map(part).collect();
        if self.parts.len() >= 2 * threads {
            // So many tables are opened one by one.
            for (at, part) in self.parts.iter().enumerate() {
                all[at % threads].later.push_back(Arc::clone(&part.table));
            }
            return Ok(all);
        }
        for Part { table, .. } in &self.parts {
            for (part, scan) in all.iter_mut().zip(view.scan(table, &of.request)?.split(threads)) {
                part.open.push_back((Arc::clone(table), scan));
            }
        }
        Ok(all)
    }
}

/// What all parts of a scan have in common.
#[derive(Debug)]
struct Whole {
    view: ReadView,
    parts: Vec<Part>,
    request: ScanRequest,
    /// Rows of the table.
    rows: f64,
    threads: usize,
    /// By which of the lists of members an index is asked, if that is less work than to read all pages: decided once.
    by_index: OnceLock<Option<usize>>,
}

/// The integers that a column is to have, by the number of the column in the table.
type Members = (usize, Arc<IntMembers>);

impl Whole {
    fn column(&self, at: usize) -> usize {
        self.request.columns.as_ref().and_then(|columns| columns.get(at)).copied().unwrap_or(usize::MAX)
    }

    fn choose(&self, members: &[Members]) -> Option<usize> {
        let by_pages = self.rows * ROW_OF_PAGES;
        let work = |at: usize| self.work(&members[at], by_pages).map(|work| (at, work));
        let best = (0..members.len()).filter_map(work).min_by(|(_, a), (_, b)| a.total_cmp(b));
        best.filter(|(_, work)| *work < by_pages).map(|(at, _)| at)
    }

    /// Work of looking these up by an index in each part, if all have one, and it is not more than `most` for the keys alone.
    fn work(&self, (column, members): &Members, most: f64) -> Option<f64> {
        let keys = members.len() as f64 * self.parts.len() as f64 * KEY;
        if keys >= most {
            return None;
        }
        let (mut rows, values) = (0.0, members.to_vec());
        for part in &self.parts {
            rows += self.rows_a_key(part, index_of(part, *column)?, &values) * values.len() as f64;
        }
        Some(keys + rows * ROW)
    }

    /// How many rows a key has, as far as some of them tell.
    fn rows_a_key(&self, part: &Part, index: &Arc<Index>, keys: &[i64]) -> f64 {
        if index.attributes().unique && index.key_layout().column_count() == 1 {
            return 1.0;
        }
        let (step, mut rows, mut counted) = (keys.len().div_ceil(COUNTED_KEYS).max(1), 0, 0);
        for key in keys.iter().step_by(step).filter_map(|key| range_of(index, *key)) {
            // Who cannot be asked is not used.
            let Ok(entries) = self.view.keys(&part.table, index, key, Direction::Forward) else { return f64::INFINITY };
            rows += entries.take(COUNTED_ROWS).count();
            counted += 1;
        }
        rows as f64 / f64::from(counted.max(1))
    }
}

/// An index that begins with a column.
fn index_of(part: &Part, column: usize) -> Option<&Arc<Index>> {
    part.indexes.iter().find(|index| index.key_layout().columns().next().is_some_and(|(first, _)| first == column))
}

/// Where an index has the entries of rows with a number in its first column; `None` for one that the column cannot have.
fn range_of(index: &Index, key: i64) -> Option<KeyRange> {
    let mut start = Vec::new();
    index.key_layout().encode(&[ValueRef::Int(key)], &mut start).ok()?;
    let mut end = start.clone();
    let is_bounded = prefix_end(&mut end);
    Some(KeyRange { start, end: is_bounded.then_some(end) })
}

/// What one thread reads of a table.
#[derive(Debug)]
pub struct PartScans {
    of: Arc<Whole>,
    /// Among the parts.
    number: usize,
    /// What rows of pages have to have.
    members: Vec<Members>,
    later: VecDeque<Arc<Table>>,
    open: VecDeque<(Arc<Table>, Scan)>,
}

impl PartScans {
    /// Leaves out rows whose integer in a column, by its number among those that are read, is none of these, or is NULL. All parts of a scan are told the same, each once, and before any of them
    /// reads. Where that is less work rows are looked up by an index: then true.
    ///
    /// # Errors
    /// When a column is none of integers; those of the scan.
    pub fn keep(&mut self, members: &[(usize, Arc<IntMembers>)]) -> SqlResult<bool> {
        let mut members: Vec<Members> = members.iter().map(|(at, members)| (self.of.column(*at), Arc::clone(members))).collect();
        let by_index = *self.of.by_index.get_or_init(|| self.of.choose(&members));
        if let Some(at) = by_index {
            self.look_up(members.swap_remove(at), &members)?;
        } else {
            for (_, scan) in &mut self.open {
                members.iter().try_for_each(|(column, members)| scan.keep_members(*column, members))?;
            }
            self.members = members;
        }
        Ok(by_index.is_some())
    }

    /// Reads rows by an index instead: this part those of its share of the keys.
    fn look_up(&mut self, (column, keys): Members, others: &[Members]) -> SqlResult<()> {
        let (of, keys) = (Arc::clone(&self.of), keys.to_vec());
        let place = |number: usize| keys.len() * number / of.threads;
        let own = &keys[place(self.number)..place(self.number + 1)];
        self.open.clear();
        self.later.clear();
        for part in &of.parts {
            let Some(index) = index_of(part, column) else { continue };
            let ranges = own.iter().filter_map(|key| range_of(index, *key)).collect();
            let mut scan = of.view.ranges(&part.table, index, ranges, Direction::Forward, &of.request)?;
            others.iter().try_for_each(|(column, members)| scan.keep_members(*column, members))?;
            self.open.push_back((Arc::clone(&part.table), scan));
        }
        Ok(())
    }

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
            let mut scan = self.of.view.scan(&table, &self.of.request)?;
            self.members.iter().try_for_each(|(column, members)| scan.keep_members(*column, members))?;
            self.open.push_back((table, scan));
        }
    }
}

/// Kinds of columns of a table.
pub(super) fn kinds(schema: &pagefold_types::Schema, columns: &[usize]) -> Option<Vec<Kind>> {
    columns.iter().map(|column| schema.columns().get(*column).and_then(|column| Kind::of(&column.data_type))).collect()
}

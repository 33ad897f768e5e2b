//! Writing a table anew beside transactions that change its rows; or several, or into several: range partitions that are divided or become one.
//!
//! The rows are read as they are on their pages, committed or not, and written into a new table under the same name, in its form: another
//! method, page size, dictionary. Meanwhile the RIDs of rows that change are noted. Such a row is *settled* by a look at it: it is
//! put into the new table, changed there or taken out, as it is then in the old one. So the order of the notes does not matter, nor does
//! it whether one comes twice. When all rows have a place, who changes one settles it himself: so what is left only becomes less.
//!
//! Where there are several new tables, each has a range of keys, and a row goes to that of its key. One whose key changes so that another one of them is its place is
//! put in there and taken out here when it is settled; its RID in the old table stays. A row that goes from one old table to another is two rows that are settled by themselves.
//!
//! 1. From [`Change::begin_table_again`](super::Change::begin_table_again) or [`Change::begin_partitions_again`](super::Change::begin_partitions_again) on changes are noted. 2. [`TableBuild::fill`] writes what is there; the caller builds
//!    the indexes. 3. [`Change::define_table`](super::Change::define_table): what was noted is settled, what was written is on disk, and the log names it; from then on its pages are
//!    logged. 4. [`Change::finish_table`](super::Change::finish_table): what was noted since is settled beside the writers; then these are kept out, by a lock of the
//!    whole table that is asked for again and again, for [`DRAIN`] each, and the change drops the old table. 5. The commit of the change: whoever looks the table up
//!    finds the new one. Snapshots from before go on with the old one.
//!
//! Nobody of those who have changed something runs at the switch. So all that the new table has is committed, and no row of it has a
//! version or a lock: it needs to know nothing of transactions.
//!
//! Invariants:
//! - what is written into the new table has no undo: it comes to be with the change, or goes as a whole;
//! - nobody settles a row while the log comes to name the table: what was changed before that is on disk, what is changed after it is in the log;
//! - a row that is not in the new table as it is in the old one is noted, or is about to be settled;
//! - an error of a row that is not committed so, or that changes just then, is none: the row is noted.

use super::index_build::name_row;
use super::open::DatabaseState;
use super::row_places::{PagedPlaces, RowAt, RowPlaces, SortedPlaces};
use super::shadow::{Buffers, Shadow, Source, Target, Unsettled, is_of_row};
use crate::directory::scratch_file;
use crate::hash::FastSet;
use crate::index::{Entries, EntryQueue};
use crate::table_space::row_gate::RowObserver;
use crate::table_space::{BulkLoader, DataPages, RowBuffer, Table};
use crate::transaction::{OpenScratch, TransactionState};
use crate::{Error, Progress, Result};
use pagefold_types::{KeyLayout, KeyRange};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// So long writers are kept waiting at most for others, who have changed something in the table and have not ended.
pub const DRAIN: Duration = Duration::from_millis(40);

/// Between two such times: so others lose a small part of their time, however long one of them takes.
pub(super) const PAUSE: Duration = Duration::from_millis(400);

/// Rows between two looks at whether to stop.
const ROWS_PER_LOOK: u64 = 4096;

/// What was done for rows that changed meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableBuildCounts {
    /// Rows that were settled by who had noted them.
    pub noted: u64,
    /// Rows that were settled by those who changed them.
    pub at_once: u64,
    /// How often the table was asked for as a whole; all times but the last were in vain.
    pub drains: u64,
    /// Rows that changed while they were read, and were looked at again.
    pub again: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Filling,
    /// The log names what was written.
    Defined,
    /// It is as the old table, and nobody changes that any more.
    Complete,
}

/// Tables that are being written anew beside writers: mostly one.
#[derive(Debug)]
pub struct TableBuild {
    database: Arc<DatabaseState>,
    state: Arc<TransactionState>,
    olds: Vec<Arc<Table>>,
    shadow: Arc<Shadow>,
    /// Rows that were taken from the notes, and are to be settled next.
    next: Entries,
    stage: Stage,
    counts: TableBuildCounts,
    complete: Arc<AtomicBool>,
}

impl TableBuild {
    /// There is a new table; and if there are ranges, one for each.
    pub(super) fn begin(
        database: &Arc<DatabaseState>,
        state: &Arc<TransactionState>,
        (olds, targets): (Vec<Arc<Table>>, Vec<Target>),
        ranges: Option<(KeyLayout, Vec<KeyRange>)>,
        complete: Arc<AtomicBool>,
    ) -> TableBuild {
        let number = targets.first().map_or(0, |target| target.table.object_id);
        let noted = EntryQueue::new(scratch(database, format!("table-{number}-noted")));
        let source = |old: &Arc<Table>| {
            let attributes = old.attributes();
            let hidden = (0..attributes.schema.len()).filter(|column| attributes.layouts.is_dropped(*column)).collect();
            Source { object_id: old.object_id, hidden, places: OnceLock::new() }
        };
        let shadow = Arc::new(Shadow {
            database: Arc::clone(database),
            sources: olds.iter().map(source).collect(),
            targets,
            ranges,
            noted,
            is_at_once: AtomicBool::new(false),
            at_once: AtomicU64::new(0),
        });
        for old in &olds {
            *old.gate.close() = Some(Arc::clone(&shadow) as Arc<dyn RowObserver>);
        }
        TableBuild {
            database: Arc::clone(database),
            state: Arc::clone(state),
            olds,
            shadow,
            next: Entries::default(),
            stage: Stage::Filling,
            counts: TableBuildCounts::default(),
            complete,
        }
    }

    /// The tables that are replaced.
    #[must_use]
    pub fn olds(&self) -> &[Arc<Table>] {
        &self.olds
    }

    /// The tables that are written.
    #[must_use]
    pub fn targets(&self) -> &[Target] {
        &self.shadow.targets
    }

    /// What was done so far.
    #[must_use]
    pub fn counts(&self) -> TableBuildCounts {
        TableBuildCounts { at_once: self.shadow.at_once.load(Ordering::Relaxed), ..self.counts }
    }

    /// Rows that were noted and wait to be settled.
    #[must_use]
    pub fn noted(&self) -> u64 {
        self.shadow.noted.len() + self.next.left()
    }

    /// Writes the rows that there are, in the order in which they lie. `placed` is told of each where it has come to, for the indexes; how
    /// many were written.
    ///
    /// # Errors
    /// When a page is damaged, a row does not fit the new table, a write fails, or `placed` does.
    pub fn fill<E: From<Error>>(
        &mut self,
        mut placed: impl FnMut(RowAt, &[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, E> {
        let olds = self.olds.clone();
        let open = |(source, target)| PagedPlaces::new(self.scratch_for_places(source, target));
        let of_source = |source| (0..self.shadow.targets.len()).map(|target| open((source, target))).collect();
        let mut places: Vec<Vec<PagedPlaces>> = (0..olds.len()).map(of_source).collect();
        let rows = self.fill_with(
            |push| visit_newest(&olds, push),
            |old, new, record| {
                places[old.table][new.table].push(old.rid, new.rid)?;
                placed(new, record)
            },
        )?;
        for (source, places) in places.into_iter().enumerate() {
            let places = places.into_iter().map(PagedPlaces::finish).collect::<Result<_>>()?;
            self.set_places(source, RowPlaces::new(places))?;
        }
        Ok(rows)
    }

    /// Visits the rows that there are, committed or not, in the order in which they lie: for who puts them in another one before
    /// [they are written](Self::fill_with). A row that changes later is noted.
    ///
    /// # Errors
    /// When a page is damaged, or the visitor fails.
    pub fn visit_rows<E: From<Error>>(&self, visit: impl FnMut(RowAt, &[u8]) -> std::result::Result<(), E>) -> std::result::Result<(), E> {
        visit_newest(&self.olds, visit)
    }

    /// Writes rows in the order in which `rows` gives them: each of those that were [visited](Self::visit_rows), once, as it was. `placed` is told of each
    /// where it was, where it has come to, and its record there. How many were written. [`Self::place`] follows.
    ///
    /// # Errors
    /// As [`Self::fill`]; when `rows` fails.
    pub fn fill_with<E: From<Error>>(
        &mut self,
        rows: impl FnOnce(&mut dyn FnMut(RowAt, &[u8]) -> std::result::Result<(), E>) -> std::result::Result<(), E>,
        mut placed: impl FnMut(RowAt, RowAt, &[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, E> {
        // With each loader the rows that have no place yet: those of the page that is being filled.
        let mut loaders = Vec::with_capacity(self.shadow.targets.len());
        for target in &self.shadow.targets {
            loaders.push((BulkLoader::new(&target.table)?, VecDeque::new()));
        }
        let (mut count, mut again, mut fresh, mut key) = (0, 0, Vec::new(), Vec::new());
        let mut told = |waiting: &mut VecDeque<RowAt>, new: RowAt, record: &[u8]| match waiting.pop_front() {
            Some(old) => placed(old, new, record),
            None => Ok(()),
        };
        rows(&mut |row, record| {
            let (source, old) = (&self.shadow.sources[row.table], &self.olds[row.table]);
            let to = self.shadow.target_of(old, row.rid, record, &mut key);
            let to = match to.and_then(|to| self.shadow.anew(source, old, &self.shadow.targets[to], record, &mut fresh).map(|()| to)) {
                Ok(to) => to,
                Err(error) => {
                    self.check_changing(row, record, error)?;
                    again += 1;
                    return Ok(());
                }
            };
            let (loader, waiting) = &mut loaders[to];
            waiting.push_back(row);
            count += 1;
            loader.push(&fresh, |rid, record| told(waiting, RowAt { table: to, rid }, record))
        })?;
        for (table, (loader, mut waiting)) in loaders.into_iter().enumerate() {
            loader.finish(|rid, record| told(&mut waiting, RowAt { table, rid }, record))?;
        }
        self.counts.again += again;
        Ok(count)
    }

    /// Says where all rows have come to that [were written in an order](Self::fill_with), in the order of where they were: by `places`, which calls what it gets with the old and
    /// the new place of each. They are kept in scratch files if they are many.
    ///
    /// # Errors
    /// When old places are not in order, a file cannot be written, or `places` fails.
    pub fn place<E: From<Error>>(
        &mut self,
        places: impl FnOnce(&mut dyn FnMut(RowAt, RowAt) -> std::result::Result<(), E>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let of_source = |source| {
            let open = |target| SortedPlaces::new(self.scratch_for_places(source, target));
            (0..self.shadow.targets.len()).map(open).collect()
        };
        let mut sorted: Vec<Vec<SortedPlaces>> = (0..self.olds.len()).map(of_source).collect();
        places(&mut |old, new| Ok(sorted[old.table][new.table].push(old.rid, new.rid)?))?;
        for (source, sorted) in sorted.into_iter().enumerate() {
            self.set_places(source, RowPlaces::new(sorted))?;
        }
        Ok(())
    }

    fn scratch_for_places(&self, source: usize, target: usize) -> OpenScratch {
        scratch(&self.database, format!("table-{}-placed-{source}", self.shadow.targets[target].table.object_id))
    }

    fn set_places(&self, source: usize, places: RowPlaces) -> Result<()> {
        let is_filled = || Error::Parameter(format!("what replaces {} is filled already", self.olds[source].object()));
        self.shadow.sources[source].places.set(places).map_err(|_| is_filled())
    }

    pub(super) fn is_filling(&self) -> bool {
        self.stage == Stage::Filling
    }

    /// The log is about to name the table: nobody settles a row before it [has](Self::is_defined).
    pub(super) fn is_about_to_be_defined(&self) {
        self.shadow.is_at_once.store(false, Ordering::Release);
        // Who is at it has come to the end then.
        self.olds.iter().for_each(|old| drop(old.gate.close()));
    }

    pub(super) fn is_defined(&mut self) {
        self.stage = Stage::Defined;
    }

    /// Settles what was noted, beside writers, who settle what they change from now on.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; when a page cannot be read, a row does not fit, or there is no room.
    pub fn settle(&mut self, progress: &dyn Progress) -> Result<()> {
        if let Some(source) = self.shadow.sources.iter().position(|source| source.places.get().is_none()) {
            return Err(Error::Parameter(format!("what replaces {} is not filled yet", self.olds[source].object())));
        }
        self.shadow.is_at_once.store(true, Ordering::Release);
        // Those that are noted again, as they change just then, wait for the next time.
        let noted = self.noted();
        self.settle_some(noted, Some(progress))
    }

    /// Settles all that is left: nobody changes a row any more.
    pub(super) fn settle_last(&mut self) -> Result<()> {
        self.settle_some(u64::MAX, None)?;
        self.shadow.noted.check()?;
        if self.shadow.has_ended() {
            let object = self.targets().first().map_or_else(String::new, |target| target.table.object());
            return Err(Error::Stale { object, why: "was taken back" });
        }
        self.targets().iter().try_for_each(check_keys)?;
        self.stage = Stage::Complete;
        self.complete.store(true, Ordering::Release);
        Ok(())
    }

    pub(super) fn is_complete(&self) -> bool {
        self.stage == Stage::Complete
    }

    /// Writers are about to be kept out.
    pub(super) fn drains(&mut self) {
        self.counts.drains += 1;
    }

    /// Settles so many rows, or all that are there. `progress`: beside writers.
    fn settle_some(&mut self, most: u64, progress: Option<&dyn Progress>) -> Result<()> {
        let (mut settled, mut seen, mut buffers) = (0, FastSet::default(), Buffers::default());
        while settled < most {
            let Some((source, rid)) = self.next.next() else {
                self.next = self.shadow.noted.take()?;
                seen.clear();
                if self.next.left() == 0 {
                    break;
                }
                continue;
            };
            settled += 1;
            let source = source.as_slice().try_into().map_or(usize::MAX, |number| usize::from(u16::from_le_bytes(number)));
            let row = RowAt { table: source, rid };
            let Some(old) = self.olds.get(source) else { continue };
            // Of the rows that were noted together each is looked at once: it is as it is now.
            if !seen.insert((source as u64, rid)) {
                continue;
            }
            self.counts.noted += 1;
            self.database.core.manager.prepare_log()?;
            match (self.shadow.settle(old, row, &mut buffers), progress) {
                (Ok(()), _) => {}
                (Err(Unsettled::Row(error)), Some(_)) => {
                    self.check_changing(row, &buffers.record, error)?;
                    self.counts.again += 1;
                }
                (Err(Unsettled::Row(error)), None) => return Err(self.of_row(row, error)),
                (Err(Unsettled::Table(error)), _) => return Err(error),
            }
            if let Some(progress) = progress
                && settled.is_multiple_of(ROWS_PER_LOOK)
            {
                progress.advance(ROWS_PER_LOOK);
                if progress.interrupted() {
                    return Err(Error::Interrupted);
                }
            }
        }
        Ok(())
    }

    /// A row could not be written: it is noted, if it is not committed as it was read.
    fn check_changing(&self, row: RowAt, record: &[u8], error: Error) -> Result<()> {
        if !is_of_row(&error) {
            return Err(error);
        }
        let snapshot = self.database.core.transactions.snapshot(self.state.id());
        let old = &self.olds[row.table];
        let visible = old.read_visible(row.rid, &snapshot, &mut RowBuffer::default(), |seen| seen == record, |_| ())?;
        if visible == Some(true) {
            return Err(self.of_row(row, error));
        }
        self.shadow.note(row);
        Ok(())
    }

    /// An error of a row, which it names.
    fn of_row(&self, row: RowAt, error: Error) -> Error {
        match error {
            Error::Value(reason) => {
                let (old, rid) = (&self.olds[row.table], row.rid);
                let named = old.read(rid, &mut RowBuffer::default(), |record| name_row(old, record, rid));
                let row = named.ok().flatten().unwrap_or_else(|| format!("the row {rid}"));
                Error::Value(format!("{row}: {reason}"))
            }
            error => error,
        }
    }
}

/// Visits the rows of tables, committed or not, one table after the other.
fn visit_newest<E: From<Error>>(
    tables: &[Arc<Table>],
    mut visit: impl FnMut(RowAt, &[u8]) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut tables = tables.iter().enumerate();
    tables.try_for_each(|(table, old)| old.visit_newest(DataPages::of(old), |rid, record| visit(RowAt { table, rid }, record)))
}

fn scratch(database: &DatabaseState, name: String) -> OpenScratch {
    let (storage, directory) = (Arc::clone(&database.core.storage), database.core.directory.clone());
    Box::new(move || scratch_file(storage.as_ref(), &directory, &name))
}

/// Refuses an index that has not as many entries as there are rows; and a key that two rows have in a unique index of columns without NULL: the old index was wrong, and has let it pass.
fn check_keys(target: &Target) -> Result<()> {
    let columns = target.table.attributes().schema.columns();
    for index in &target.indexes {
        let (entries, rows) = (index.data_set.facts().rows, target.table.row_count());
        if entries != rows {
            let reason = format!("it has {entries} entries for {rows} rows after the table was written anew");
            return Err(Error::Damaged { path: index.object(), reason });
        }
        let attributes = index.attributes();
        let has_twice = {
            let facts = index.data_set.facts();
            facts.keys < facts.rows
        };
        if !attributes.unique || !has_twice || attributes.columns.iter().any(|(column, _)| columns[*column].nullable) {
            continue;
        }
        let mut last: Option<Vec<u8>> = None;
        index.tree().check(&mut |key, _| {
            if last.as_deref() == Some(key) {
                return Err(index.duplicate(key));
            }
            last.get_or_insert_default().clear();
            last.get_or_insert_default().extend_from_slice(key);
            Ok(())
        })?;
    }
    Ok(())
}

impl Drop for TableBuild {
    fn drop(&mut self) {
        for old in &self.olds {
            *old.gate.close() = None;
            old.end_build(self.state.id());
        }
    }
}

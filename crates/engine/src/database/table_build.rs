//! Writing a table anew beside transactions that change its rows.
//!
//! The rows are read as they are on their pages, committed or not, and written into a new table under the same name, in its form: another
//! method, page size, dictionary. Meanwhile the RIDs of rows that change are noted. Such a row is *settled* by a look at it: it is
//! put into the new table, changed there or taken out, as it is then in the old one. So the order of the notes does not matter, nor does
//! it whether one comes twice. When all rows have a place, who changes one settles it himself: so what is left only becomes less.
//!
//! 1. From [`Change::begin_table_again`](super::Change::begin_table_again) on changes are noted. 2. [`TableBuild::fill`] writes what is there; the caller builds
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
//! - who looks at a row to settle it has its place to himself until it is settled: what he has seen is not older than what is there;
//! - nobody settles a row while the log comes to name the table: what was changed before that is on disk, what is changed after it is in the log;
//! - a row that is not in the new table as it is in the old one is noted, or is about to be settled;
//! - an error of a row that is not committed so, or that changes just then, is none: the row is noted.

use super::index_build::name_row;
use super::leftovers::key_of;
use super::open::DatabaseState;
use super::row_places::{PlacedRows, RowPlaces, SortedPlaces};
use crate::btree::Unless;
use crate::directory::scratch_file;
use crate::hash::FastSet;
use crate::index::{Entries, EntryQueue, Index};
use crate::pool::By;
use crate::table_space::row_gate::RowObserver;
use crate::table_space::{BulkLoader, DataPages, RowBuffer, Table};
use crate::transaction::TransactionState;
use crate::{Error, Progress, Result};
use pagefold_types::{DataType, LargeValueRef, Rid, ValueRef, key_bytes_max};
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

/// What those who change rows meet.
#[derive(Debug)]
struct Shadow {
    database: Arc<DatabaseState>,
    table: Arc<Table>,
    indexes: Vec<Arc<Index>>,
    /// Columns that are dropped: in the new table they are NULL.
    hidden: Vec<usize>,
    noted: EntryQueue,
    /// When all rows have one.
    places: OnceLock<RowPlaces>,
    /// Do those who change rows settle them?
    is_at_once: AtomicBool,
    at_once: AtomicU64,
}

impl RowObserver for Shadow {
    fn has_column(&self, _: usize) -> bool {
        true
    }

    fn keeps_inside(&self, _: usize) -> bool {
        false
    }

    fn wants_records(&self) -> bool {
        false
    }

    fn row_changed(&self, table: &Table, rid: Rid, _: Option<&[u8]>, _: Option<&[u8]>) {
        if self.table.lifetime.has_ended() {
            // It was given up.
            return;
        }
        if !self.is_at_once.load(Ordering::Acquire) || self.noted.check().is_err() {
            return self.noted.put(&[], rid);
        }
        self.at_once.fetch_add(1, Ordering::Relaxed);
        // Nobody but who looks at notes is told of an error: the one who changes the row does not fail for it.
        let settled = self.database.core.manager.prepare_log().map_err(Unsettled::Table);
        match settled.and_then(|()| self.settle(table, rid, &mut Buffers::default())) {
            Ok(()) => {}
            Err(Unsettled::Row(error)) if is_of_row(&error) => self.noted.put(&[], rid),
            Err(Unsettled::Row(error) | Unsettled::Table(error)) => self.noted.fail(error),
        }
    }
}

/// Why a row is not settled.
#[derive(Debug)]
enum Unsettled {
    /// It cannot be brought into the new form, or a large value of it be read. In the new table nothing has changed.
    Row(Error),
    /// Something else, or in the midst of it: the new table is of no use any more.
    Table(Error),
}

impl From<Error> for Unsettled {
    fn from(error: Error) -> Unsettled {
        Unsettled::Table(error)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Filling,
    /// The log names what was written.
    Defined,
    /// It is as the old table, and nobody changes that any more.
    Complete,
}

/// A table that is being written anew beside writers.
#[derive(Debug)]
pub struct TableBuild {
    database: Arc<DatabaseState>,
    state: Arc<TransactionState>,
    old: Arc<Table>,
    shadow: Arc<Shadow>,
    /// Rows that were taken from the notes, and are to be settled next.
    next: Entries,
    stage: Stage,
    counts: TableBuildCounts,
    complete: Arc<AtomicBool>,
}

impl TableBuild {
    pub(super) fn begin(
        database: &Arc<DatabaseState>,
        state: &Arc<TransactionState>,
        (old, table): (Arc<Table>, Arc<Table>),
        indexes: Vec<Arc<Index>>,
        complete: Arc<AtomicBool>,
    ) -> TableBuild {
        let (storage, directory) = (Arc::clone(&database.core.storage), database.core.directory.clone());
        let name = format!("table-{}-noted", table.object_id);
        let noted = EntryQueue::new(Box::new(move || scratch_file(storage.as_ref(), &directory, &name)));
        let of_old = old.attributes();
        let hidden = (0..of_old.schema.len()).filter(|column| of_old.layouts.is_dropped(*column)).collect();
        let shadow = Arc::new(Shadow {
            database: Arc::clone(database),
            hidden,
            table,
            indexes,
            noted,
            places: OnceLock::new(),
            is_at_once: AtomicBool::new(false),
            at_once: AtomicU64::new(0),
        });
        *old.gate.close() = Some(Arc::clone(&shadow) as Arc<dyn RowObserver>);
        TableBuild {
            database: Arc::clone(database),
            state: Arc::clone(state),
            old,
            shadow,
            next: Entries::default(),
            stage: Stage::Filling,
            counts: TableBuildCounts::default(),
            complete,
        }
    }

    /// The table that is replaced.
    #[must_use]
    pub fn old(&self) -> &Arc<Table> {
        &self.old
    }

    /// The table that is written.
    #[must_use]
    pub fn table(&self) -> &Arc<Table> {
        &self.shadow.table
    }

    /// Its indexes.
    #[must_use]
    pub fn indexes(&self) -> &[Arc<Index>] {
        &self.shadow.indexes
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
        mut placed: impl FnMut(Rid, &[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, E> {
        let (old, mut places) = (Arc::clone(&self.old), PlacedRows::default());
        let rows = self.fill_with(
            |push| old.visit_newest(DataPages::of(&old), push),
            |old, new, record| {
                places.push(old, new);
                placed(new, record)
            },
        )?;
        self.set_places(RowPlaces::new(places))?;
        Ok(rows)
    }

    /// Visits the rows that there are, committed or not, in the order in which they lie: for who puts them in another one before
    /// [they are written](Self::fill_with). A row that changes later is noted.
    ///
    /// # Errors
    /// When a page is damaged, or the visitor fails.
    pub fn visit_rows<E: From<Error>>(&self, visit: impl FnMut(Rid, &[u8]) -> std::result::Result<(), E>) -> std::result::Result<(), E> {
        self.old.visit_newest(DataPages::of(&self.old), visit)
    }

    /// Writes rows in the order in which `rows` gives them: each of those that were [visited](Self::visit_rows), once, as it was. `placed` is told of each its
    /// RID, where it has come to, and its record there. How many were written. [`Self::place`] follows.
    ///
    /// # Errors
    /// As [`Self::fill`]; when `rows` fails.
    pub fn fill_with<E: From<Error>>(
        &mut self,
        rows: impl FnOnce(&mut dyn FnMut(Rid, &[u8]) -> std::result::Result<(), E>) -> std::result::Result<(), E>,
        mut placed: impl FnMut(Rid, Rid, &[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, E> {
        let mut loader = BulkLoader::new(&self.shadow.table)?;
        // The rows that have no place yet: those of the page that is being filled.
        let (mut waiting, mut count, mut again, mut fresh) = (VecDeque::new(), 0, 0, Vec::new());
        let mut told = |waiting: &mut VecDeque<Rid>, new: Rid, record: &[u8]| match waiting.pop_front() {
            Some(old) => placed(old, new, record),
            None => Ok(()),
        };
        rows(&mut |rid, record| {
            let record = match self.shadow.anew(&self.old, record, &mut fresh) {
                Ok(()) => &fresh,
                Err(error) => {
                    self.check_changing(rid, record, error)?;
                    again += 1;
                    return Ok(());
                }
            };
            waiting.push_back(rid);
            count += 1;
            loader.push(record, |new, record| told(&mut waiting, new, record))
        })?;
        loader.finish(|new, record| told(&mut waiting, new, record))?;
        self.counts.again += again;
        Ok(count)
    }

    /// Says where all rows have come to that [were written in an order](Self::fill_with), in the order of their old RIDs: by `places`, which calls what it gets with the old and
    /// the new RID of each. They are kept in a scratch file if they are many.
    ///
    /// # Errors
    /// When RIDs are not in order, the file cannot be written, or `places` fails.
    pub fn place<E: From<Error>>(
        &mut self,
        places: impl FnOnce(&mut dyn FnMut(Rid, Rid) -> std::result::Result<(), E>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let (storage, directory) = (Arc::clone(&self.database.core.storage), self.database.core.directory.clone());
        let name = format!("table-{}-placed", self.table().object_id);
        let mut sorted = SortedPlaces::new(Box::new(move || scratch_file(storage.as_ref(), &directory, &name)));
        places(&mut |old, new| Ok(sorted.push(old, new)?))?;
        Ok(self.set_places(RowPlaces::sorted(sorted))?)
    }

    fn set_places(&self, places: RowPlaces) -> Result<()> {
        let is_filled = || Error::Parameter(format!("the new {} is filled already", self.table().object()));
        self.shadow.places.set(places).map_err(|_| is_filled())
    }

    pub(super) fn is_filling(&self) -> bool {
        self.stage == Stage::Filling
    }

    /// The log is about to name the table: nobody settles a row before it [has](Self::is_defined).
    pub(super) fn is_about_to_be_defined(&self) {
        self.shadow.is_at_once.store(false, Ordering::Release);
        // Who is at it has come to the end then.
        drop(self.old.gate.close());
    }

    pub(super) fn is_defined(&mut self) {
        self.stage = Stage::Defined;
    }

    /// Settles what was noted, beside writers, who settle what they change from now on.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; when a page cannot be read, a row does not fit, or there is no room.
    pub fn settle(&mut self, progress: &dyn Progress) -> Result<()> {
        if self.shadow.places.get().is_none() {
            return Err(Error::Parameter(format!("the new {} is not filled yet", self.table().object())));
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
        if self.table().lifetime.has_ended() {
            return Err(Error::Stale { object: self.table().object(), why: "was taken back" });
        }
        self.check_keys()?;
        self.stage = Stage::Complete;
        self.complete.store(true, Ordering::Release);
        Ok(())
    }

    /// Refuses an index that has not as many entries as there are rows; and a key that two rows have in a unique index of columns without NULL: the old index was wrong, and has let it pass.
    fn check_keys(&self) -> Result<()> {
        let columns = self.table().attributes().schema.columns();
        for index in self.indexes() {
            let (entries, rows) = (index.data_set.facts().rows, self.table().row_count());
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
            let Some((_, rid)) = self.next.next() else {
                self.next = self.shadow.noted.take()?;
                seen.clear();
                if self.next.left() == 0 {
                    break;
                }
                continue;
            };
            settled += 1;
            // Of the rows that were noted together each is looked at once: it is as it is now.
            if !seen.insert(rid) {
                continue;
            }
            self.counts.noted += 1;
            self.database.core.manager.prepare_log()?;
            match (self.shadow.settle(&self.old, rid, &mut buffers), progress) {
                (Ok(()), _) => {}
                (Err(Unsettled::Row(error)), Some(_)) => {
                    self.check_changing(rid, &buffers.record, error)?;
                    self.counts.again += 1;
                }
                (Err(Unsettled::Row(error)), None) => return Err(self.of_row(rid, error)),
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
    fn check_changing(&self, rid: Rid, record: &[u8], error: Error) -> Result<()> {
        if !is_of_row(&error) {
            return Err(error);
        }
        let snapshot = self.database.core.transactions.snapshot(self.state.id());
        let visible = self.old.read_visible(rid, &snapshot, &mut RowBuffer::default(), |seen| seen == record, |_| ())?;
        if visible == Some(true) {
            return Err(self.of_row(rid, error));
        }
        self.shadow.noted.put(&[], rid);
        Ok(())
    }

    /// An error of a row, which it names.
    fn of_row(&self, rid: Rid, error: Error) -> Error {
        match error {
            Error::Value(reason) => {
                let named = self.old.read(rid, &mut RowBuffer::default(), |record| name_row(&self.old, record, rid));
                let row = named.ok().flatten().unwrap_or_else(|| format!("the row {rid}"));
                Error::Value(format!("{row}: {reason}"))
            }
            error => error,
        }
    }
}

impl Shadow {
    /// Makes a row in the new table what it is now in the old one.
    fn settle(&self, old: &Table, rid: Rid, buffers: &mut Buffers) -> std::result::Result<(), Unsettled> {
        let Buffers { rows, record, fresh, before, keys } = buffers;
        let Some(places) = self.places.get() else { return Ok(()) };
        // Before the look at it: who changes it meanwhile settles it afterwards, or has noted it.
        let place = places.of(rid)?;
        record.clear();
        let is_there = old.read(rid, rows, |bytes| record.extend_from_slice(bytes))?.is_some();
        let Some(new) = place.new else {
            if is_there {
                self.anew(old, record, fresh).map_err(Unsettled::Row)?;
                let new = self.table.insert_record(By::Nobody, fresh)?;
                self.move_entries(None, Some(fresh), new, keys)?;
                place.set(Some(new));
            }
            return Ok(());
        };
        before.clear();
        let was_there = self.table.read(new, rows, |bytes| before.extend_from_slice(bytes))?.is_some();
        if !was_there {
            let reason = format!("no row in slot {}, where one was written", new.slot());
            return Err(Error::corrupt(self.table.object(), new.page(), reason).into());
        }
        if !is_there {
            self.move_entries(Some(before), None, new, keys)?;
            self.table.delete(new)?;
            place.set(None);
            return Ok(());
        }
        let large = self.large_values(&self.table, before)?;
        self.anew(old, record, fresh).map_err(Unsettled::Row)?;
        if large.is_empty() && fresh == before {
            return Ok(());
        }
        self.move_entries(Some(before), Some(fresh), new, keys)?;
        self.table.replace_record(By::Nobody, new, fresh)?;
        Ok(large.into_iter().try_for_each(|value| self.table.free_large(value))?)
    }

    /// A row has this record instead of that one: so have its entries.
    fn move_entries(&self, before: Option<&[u8]>, after: Option<&[u8]>, rid: Rid, keys: &mut (Vec<u8>, Vec<u8>)) -> Result<()> {
        let (old, new) = keys;
        for index in &self.indexes {
            let tree = index.tree();
            before.map(|record| key_of(&self.table, index, record, old)).transpose()?;
            after.map(|record| key_of(&self.table, index, record, new)).transpose()?;
            if before.is_some() && after.is_some() && old == new {
                continue;
            }
            if before.is_some() {
                tree.delete(old, rid)?;
            }
            // Keys pass from row to row; that none is there twice at the end, the old index has seen to.
            if after.is_some() {
                tree.insert_by(By::Nobody, new, rid, Unless::Entry)?;
            }
        }
        Ok(())
    }

    /// The record of a row in the new table. Large values lie in pages of the old one, and another page size has another limit: such rows
    /// are built anew. Keys of all indexes can be made of it.
    fn anew(&self, old: &Table, record: &[u8], fresh: &mut Vec<u8>) -> Result<()> {
        fresh.clear();
        let hidden = &self.hidden;
        let is_same = hidden.is_empty() && record.len() <= self.table.record_bytes_max() && self.large_values(old, record)?.is_empty();
        if is_same {
            fresh.extend_from_slice(record);
        } else {
            let shown: Vec<usize> = (0..old.layout().column_count()).filter(|column| !hidden.contains(column)).collect();
            let values = old.values_of(record, &shown)?;
            let mut refs = vec![ValueRef::Null; old.layout().column_count()];
            shown.iter().zip(&values).for_each(|(column, value)| refs[*column] = value.as_ref());
            self.table.build_record(By::Nobody, &refs, fresh)?;
        }
        let mut key = Vec::new();
        let columns = self.table.attributes().schema.columns();
        // In keys CHAR is padded.
        let is_padded = |index: &Index| index.attributes().columns.iter().any(|(c, _)| matches!(columns[*c].data_type, DataType::Char(_)));
        let is_short = |index: &Index| fresh.len() < key_bytes_max(index.data_set.page_bytes()) / SHORT_PART;
        let has_key = |index: &&Arc<Index>| is_same && is_short(index) && !is_padded(index);
        let keys = self.indexes.iter().filter(|index| !has_key(index)).try_for_each(|index| key_of(&self.table, index, fresh, &mut key));
        if keys.is_err() && !is_same {
            // The row does not come, and nothing names them.
            self.large_values(&self.table, fresh)?.into_iter().try_for_each(|value| self.table.free_large(value))?;
        }
        keys
    }

    fn large_values(&self, table: &Table, record: &[u8]) -> Result<Vec<LargeValueRef>> {
        let found = table.layout().large_values(record).map_err(|e| Error::Damaged { path: table.object(), reason: e.to_string() })?;
        Ok(found.into_iter().map(|(_, value)| value).collect())
    }
}

/// May it be one of a row that changes just then? A row that does not fit, or a large value that has gone.
fn is_of_row(error: &Error) -> bool {
    matches!(error, Error::Value(_)) || error.is_damage()
}

/// A record with less than this part of the longest key's bytes makes no key that is too long.
const SHORT_PART: usize = 4;

/// What is used for each row that is settled.
#[derive(Default)]
struct Buffers {
    rows: RowBuffer,
    record: Vec<u8>,
    fresh: Vec<u8>,
    before: Vec<u8>,
    keys: (Vec<u8>, Vec<u8>),
}

impl Drop for TableBuild {
    fn drop(&mut self) {
        *self.old.gate.close() = None;
        self.old.end_build(self.state.id());
    }
}

//! Building an index of a table beside transactions that change its rows.
//!
//! The rows are read as they are on their pages, committed or not, and sorted; the index is built from that. Meanwhile the
//! keys of every row that changes are noted (Mohan, Narang 1992: "without side-file" and "side-file" algorithms; here the
//! side-file says only which entries are to be looked at again). Such an entry is *settled* by a look at its row: it is put in
//! or taken out, as the row has the key or not. So the order of the notes does not matter, nor does it whether one comes twice.
//!
//! 1. From [`Change::begin_index`] on changes are noted. 2. The caller scans, sorts and fills. 3. [`Change::define_index`]:
//!    what was built is on disk, and the log names it; from then on its pages are logged. 4. [`IndexBuild::switch`]: entries
//!    are settled beside the writers, and the last few with the gate of the table closed; then the index is one of the
//!    table's, and statements keep it themselves. 5. [`IndexBuild::complete`]: transactions that had changed rows before
//!    know nothing of the index when they are taken back. When all of them have ended, what they may have left is settled.
//!    6. The commit of the change: snapshots from then on use the index, older ones never.
//!
//! Invariants:
//! - when the gate is closed for the switch and nothing is noted any more, the index has the key of every row as it is on its
//!   page; of a row that a running transaction has changed also every key that it had since;
//! - the gate is never closed for more than [`ALONE_MAX`] entries at once;
//! - an entry that is not the key of its row for all is looked at again before the commit, or left to be removed after it;
//! - of two rows that have a key of a unique index, one is looked at again when all that could take it back has ended: then
//!   both are committed, or one has the key no more. What changes after the switch sees to that itself.

use super::leftovers::key_of;
use super::open::DatabaseState;
use crate::btree::Unless;
use crate::directory::scratch_file;
use crate::index::{Entries, EntryQueue, Index, IndexBuilder};
use crate::pool::{By, MiniTransaction};
use crate::table_space::row_gate::RowObserver;
use crate::table_space::{DataPages, RowBuffer, Table};
use crate::transaction::{LockError, Mode, REMOVER, Resource, Snapshot, TransactionState};
use crate::{Error, Progress, Result};
use pagefold_format::index::build::BuiltTree;
use pagefold_format::log::{Leftover, Undo};
use pagefold_io::{Clock, OsClock};
use pagefold_types::{Rid, text};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Entries that are settled while the gate is closed, at most.
pub const ALONE_MAX: u64 = 256;

/// Entries between two looks at whether the log has room.
const PREPARED: u64 = 64;

/// Entries between two looks at whether to stop.
const ENTRIES_PER_LOOK: u64 = 4096;

/// How long others are waited for before it is looked at whether to stop.
const WAIT: Duration = Duration::from_millis(50);

/// What a build has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuildCounts {
    /// Entries that were settled beside writers.
    pub beside: u64,
    /// Entries that were settled while writers were kept out.
    pub alone: u64,
    /// The most of these at once.
    pub alone_most: u64,
    /// How often writers were kept out.
    pub closed: u64,
    /// Entries that were looked at again when the transactions that had changed their rows had ended.
    pub again: u64,
}

/// Notes keys of rows that change.
#[derive(Debug)]
struct Noting {
    index: Arc<Index>,
    noted: EntryQueue,
}

impl RowObserver for Noting {
    fn has_column(&self, column: usize) -> bool {
        self.index.has_column(|own| own == column)
    }

    fn keeps_inside(&self, column: usize) -> bool {
        self.has_column(column)
    }

    fn wants_records(&self) -> bool {
        true
    }

    fn row_changed(&self, table: &Table, rid: Rid, before: Option<&[u8]>, after: Option<&[u8]>) {
        let key = |record: Option<&[u8]>| {
            let mut key = Vec::new();
            // A row that has no key, as a value is too long for one, is looked at again by itself.
            if record.is_some_and(|record| key_of(table, &self.index, record, &mut key).is_err()) {
                key.clear();
            }
            record.map(|_| key)
        };
        let (before, after) = (key(before), key(after));
        if before != after {
            before.iter().chain(&after).for_each(|key| self.noted.put(key, rid));
        }
    }
}

/// How far a build has come.
#[derive(Debug)]
enum Stage {
    Filling,
    /// The log names what was built.
    Defined,
    /// Statements keep the index. These transactions may have changed rows before.
    Switched(Vec<u64>),
    Complete,
}

/// An index that is being built beside writers.
#[derive(Debug)]
pub struct IndexBuild {
    database: Arc<DatabaseState>,
    state: Arc<TransactionState>,
    table: Arc<Table>,
    index: Arc<Index>,
    noting: Arc<Noting>,
    /// Transactions that may have changed rows before changes were noted.
    before: Vec<u64>,
    /// Entries that were taken from the notes, and are to be settled next.
    next: Entries,
    /// Entries that are to be looked at again.
    again: Arc<EntryQueue>,
    stage: Stage,
    counts: BuildCounts,
    complete: Arc<AtomicBool>,
}

impl IndexBuild {
    pub(super) fn begin(
        database: &Arc<DatabaseState>,
        state: &Arc<TransactionState>,
        table: Arc<Table>,
        index: Arc<Index>,
        complete: Arc<AtomicBool>,
    ) -> IndexBuild {
        let queue = |what: &str| {
            let (storage, directory) = (Arc::clone(&database.core.storage), database.core.directory.clone());
            let name = format!("index-{}-{what}", index.object_id);
            EntryQueue::new(Box::new(move || scratch_file(storage.as_ref(), &directory, &name)))
        };
        let noting = Arc::new(Noting { index: Arc::clone(&index), noted: queue("noted") });
        *table.gate.close() = Some(Arc::clone(&noting) as Arc<dyn RowObserver>);
        // Whoever is not in this list changes rows only now, and that is noted.
        let before = others(database, &table, state);
        IndexBuild {
            database: Arc::clone(database),
            state: Arc::clone(state),
            again: Arc::new(queue("again")),
            table,
            index,
            noting,
            before,
            next: Entries::default(),
            stage: Stage::Filling,
            counts: BuildCounts::default(),
            complete,
        }
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The index.
    #[must_use]
    pub fn index(&self) -> &Arc<Index> {
        &self.index
    }

    /// What was done so far.
    #[must_use]
    pub fn counts(&self) -> BuildCounts {
        self.counts
    }

    /// Entries that were noted and wait to be settled.
    #[must_use]
    pub fn noted(&self) -> u64 {
        self.noting.noted.len() + self.next.left()
    }

    /// Delivers the key of every row, to be sorted and [filled in](Self::fill).
    ///
    /// # Errors
    /// When a page is damaged, or the visitor fails.
    pub fn scan<E: From<Error>>(&self, mut visit: impl FnMut(&[u8], Rid) -> std::result::Result<(), E>) -> std::result::Result<(), E> {
        let mut key = Vec::new();
        self.table.visit_newest(DataPages::of(&self.table), |rid, record| {
            match key_of(&self.table, &self.index, record, &mut key) {
                Ok(()) => visit(&key, rid)?,
                // Perhaps it is taken back.
                Err(_) => self.noting.noted.put(&[], rid),
            }
            Ok(())
        })
    }

    /// Starts filling the index with what [`Self::scan`] gave, sorted. All RIDs will have slots of at most `slot_max`.
    #[must_use]
    pub fn fill(&self, slot_max: u16) -> Filler<'_> {
        Filler { build: self, builder: self.index.build(slot_max) }
    }

    pub(super) fn is_filling(&self) -> bool {
        matches!(self.stage, Stage::Filling)
    }

    pub(super) fn is_defined(&mut self) {
        self.stage = Stage::Defined;
    }

    /// Those of the transactions that are waited for which have not ended.
    fn waited_for(&self) -> Vec<u64> {
        let list = match &self.stage {
            Stage::Switched(users) => users,
            _ => &self.before,
        };
        let mut running = others(&self.database, &self.table, &self.state);
        running.retain(|transaction| list.contains(transaction));
        running
    }

    /// Waits for a moment, or until one of the transactions has ended that have to.
    pub fn wait(&self) {
        self.database.core.locks.wait_for_end(&self.waited_for(), WAIT);
    }

    /// Settles what was noted, and makes the index one that statements keep. False when a transaction has not ended that may
    /// have changed rows before changes were noted: nothing has happened then.
    ///
    /// # Errors
    /// [`Error::DuplicateKey`]; [`Error::Interrupted`]; when a page cannot be read, or there is no room.
    pub fn switch(&mut self, progress: &dyn Progress) -> Result<bool> {
        match self.stage {
            Stage::Filling => return Err(Error::Parameter(format!("{} is not defined yet", self.index.object()))),
            Stage::Switched(_) | Stage::Complete => return Ok(true),
            Stage::Defined => {}
        }
        if !self.waited_for().is_empty() {
            return Ok(false);
        }
        let mut is_slower = false;
        loop {
            let noted = self.noted();
            if noted > ALONE_MAX && !is_slower {
                self.counts.beside += self.settle_some(noted, Some(progress))?;
                // When as much comes as is settled, writers have to wait now and then.
                is_slower = self.noted() > noted / 2;
                continue;
            }
            let table = Arc::clone(&self.table);
            let mut gate = table.gate.close();
            let settled = self.settle_some(ALONE_MAX, None)?;
            self.counts.closed += 1;
            self.counts.alone += settled;
            self.counts.alone_most = self.counts.alone_most.max(settled);
            if self.noted() == 0 {
                self.noting.noted.check()?;
                self.check_lives()?;
                *gate = None;
                table.add_index(&self.index);
                self.stage = Stage::Switched(others(&self.database, &table, &self.state));
                return Ok(true);
            }
            drop(gate);
            if progress.interrupted() {
                return Err(Error::Interrupted);
            }
        }
    }

    /// Settles what was left to be looked at again. False when a transaction has not ended that may have changed rows before
    /// the switch: nothing has happened then. Afterwards the change may be committed.
    ///
    /// # Errors
    /// As [`Self::switch`].
    pub fn complete(&mut self, progress: &dyn Progress) -> Result<bool> {
        match self.stage {
            Stage::Complete => return Ok(true),
            Stage::Switched(_) => {}
            _ => return Err(Error::Parameter(format!("{} is not kept by statements yet", self.index.object()))),
        }
        if !self.waited_for().is_empty() {
            return Ok(false);
        }
        self.check_lives()?;
        let again = Arc::clone(&self.again);
        again.check()?;
        while again.len() > 0 {
            for (key, rid) in again.take()? {
                if self.counts.again.is_multiple_of(PREPARED) {
                    self.database.core.manager.prepare_log()?;
                }
                if self.counts.again.is_multiple_of(ENTRIES_PER_LOOK) && progress.interrupted() {
                    return Err(Error::Interrupted);
                }
                self.conclude(&key, rid)?;
                self.counts.again += 1;
            }
        }
        self.stage = Stage::Complete;
        self.complete.store(true, Ordering::Release);
        Ok(true)
    }

    /// Calls `step` until it is done; in between it waits for others, so long at most.
    pub(super) fn until(
        &mut self,
        patience: Duration,
        progress: &dyn Progress,
        step: impl Fn(&mut IndexBuild) -> Result<bool>,
    ) -> Result<()> {
        let began = OsClock.monotonic();
        while !step(self)? {
            if progress.interrupted() {
                return Err(Error::Interrupted);
            }
            let Some(holder) = self.waited_for().first().copied() else { continue };
            let waited = OsClock.monotonic().saturating_sub(began);
            if waited >= patience {
                let resource = Resource::Object(self.table.object_id);
                return Err(LockError::Timeout { waiter: self.state.id(), resource, holder, waited }.into());
            }
            self.wait();
        }
        Ok(())
    }

    fn check_lives(&self) -> Result<()> {
        match self.index.lifetime.has_ended() {
            true => Err(Error::Stale { object: self.index.object(), why: "was taken back" }),
            false => Ok(()),
        }
    }

    /// Settles so many entries, or all that are there; how many.
    fn settle_some(&mut self, most: u64, progress: Option<&dyn Progress>) -> Result<u64> {
        let mut settled = 0;
        while settled < most {
            let Some((key, rid)) = self.next.next() else {
                self.next = self.noting.noted.take()?;
                if self.next.left() == 0 {
                    break;
                }
                continue;
            };
            if settled.is_multiple_of(PREPARED) {
                self.database.core.manager.prepare_log()?;
            }
            self.settle(&key, rid)?;
            settled += 1;
            if let Some(progress) = progress
                && settled.is_multiple_of(ENTRIES_PER_LOOK)
            {
                progress.advance(ENTRIES_PER_LOOK);
                if progress.interrupted() {
                    return Err(Error::Interrupted);
                }
            }
        }
        Ok(settled)
    }

    /// Puts an entry in, or takes it out, as its row is now. One that changes meanwhile is noted again.
    fn settle(&self, key: &[u8], rid: Rid) -> Result<()> {
        let own = self.own_key(rid)?;
        let is_changing = self.database.core.versions.newest(self.table.object_id, rid)?.is_some_and(|writer| writer.is_active());
        let own = match own {
            Some(Err(_)) if !is_changing => {
                // If it is committed so, that is an error; else it has been taken back since.
                self.check_committed(rid)?;
                self.noting.noted.put(&[], rid);
                None
            }
            Some(Err(_)) | None => None,
            Some(Ok(own)) => Some(own),
        };
        // It may be the key of the row again when its transaction is taken back.
        let is_kept = is_changing || own.as_deref() == Some(key);
        if is_changing {
            self.again.put(key, rid);
        }
        if key.is_empty() {
            return Ok(());
        }
        self.put_or_take(key, rid, is_kept)?;
        if is_kept && let Some(other) = self.other_with_key(key, rid)? {
            if self.is_twice(key, rid, other)? {
                return Err(self.index.duplicate(key));
            }
            self.again.put(key, rid);
        }
        Ok(())
    }

    fn put_or_take(&self, key: &[u8], rid: Rid, is_kept: bool) -> Result<()> {
        let tree = self.index.tree();
        if !is_kept {
            tree.delete(key, rid)?;
        } else {
            tree.insert_by(By::Nobody, key, rid, Unless::Entry)?;
        }
        Ok(())
    }

    /// Looks at an entry again: nobody can bring an earlier key of its row back any more, but who keeps the index himself.
    fn conclude(&self, key: &[u8], rid: Rid) -> Result<()> {
        let core = &self.database.core;
        let locked = core.locks.lock_for_removal(Resource::Row(self.table.object_id, rid), Mode::Exclusive);
        if locked.is_some() {
            let own = self.own_key(rid)?.transpose()?;
            if !key.is_empty() {
                self.put_or_take(key, rid, own.as_deref() == Some(key))?;
            }
        } else {
            // Somebody changes it. What it was before him must have a key; the entry goes when he has ended, if it is not his.
            self.check_committed(rid)?;
            if !key.is_empty() {
                self.leave(key, rid)?;
            }
        }
        drop(locked);
        if !key.is_empty() && self.index.attributes().unique && !self.index.has_null(key) {
            let snapshot = core.transactions.snapshot(self.state.id());
            if self.visible_key(&snapshot, rid)?.as_deref() != Some(key) {
                return Ok(());
            }
            let mut cursor = self.index.tree().key_cursor(key);
            while let Some((_, other)) = cursor.next()? {
                if other != rid && self.visible_key(&snapshot, other)?.as_deref() == Some(key) {
                    return Err(self.index.duplicate(key));
                }
            }
        }
        Ok(())
    }

    /// Leaves an entry for whoever removes what transactions have left, after the commit.
    fn leave(&self, key: &[u8], rid: Rid) -> Result<()> {
        let (core, object_id) = (&self.database.core, self.index.object_id);
        core.leftovers.enter(&self.state, Leftover::Entry { object_id, key: key.to_vec(), rid });
        let mut mtr = MiniTransaction::begin(&core.manager);
        mtr.set_undo(By::Transaction(&self.state), Undo::KeptEntry { object_id, key, rid });
        mtr.commit().map(drop)
    }

    /// The key that a row has on its page, or why it has none.
    fn own_key(&self, rid: Rid) -> Result<Option<Result<Vec<u8>>>> {
        self.table.read(rid, &mut RowBuffer::default(), |record| {
            let mut key = Vec::new();
            key_of(&self.table, &self.index, record, &mut key).map(|()| key)
        })
    }

    /// The key that a row has for a snapshot.
    fn visible_key(&self, snapshot: &Snapshot, rid: Rid) -> Result<Option<Vec<u8>>> {
        let key = |record: &[u8]| {
            let mut key = Vec::new();
            key_of(&self.table, &self.index, record, &mut key).map(|()| key)
        };
        self.table.read_visible(rid, snapshot, &mut RowBuffer::default(), key, |_| ())?.transpose()
    }

    /// Refuses a row that is committed and has no key: which one, and why.
    fn check_committed(&self, rid: Rid) -> Result<()> {
        let snapshot = self.database.core.transactions.snapshot(self.state.id());
        self.visible_key(&snapshot, rid).map(drop).map_err(|error| match error {
            Error::Value(reason) => {
                let named = self.table.read(rid, &mut RowBuffer::default(), |record| name_row(&self.table, record, rid));
                let row = named.ok().flatten().unwrap_or_else(|| format!("the row {rid}"));
                Error::Value(format!("{}, {row}: {reason}", self.table.object()))
            }
            error => error,
        })
    }

    /// Another row with an entry of a key, in a unique index.
    fn other_with_key(&self, key: &[u8], rid: Rid) -> Result<Option<Rid>> {
        if !self.index.attributes().unique || self.index.has_null(key) {
            return Ok(None);
        }
        let mut cursor = self.index.tree().key_cursor(key);
        while let Some((_, other)) = cursor.next()? {
            if other != rid {
                return Ok(Some(other));
            }
        }
        Ok(None)
    }

    /// Do two rows that are committed have the key?
    fn is_twice(&self, key: &[u8], one: Rid, other: Rid) -> Result<bool> {
        let snapshot = self.database.core.transactions.snapshot(self.state.id());
        let has_key = |rid| Ok::<_, Error>(self.visible_key(&snapshot, rid)?.as_deref() == Some(key));
        Ok(has_key(one)? && has_key(other)?)
    }
}

impl Drop for IndexBuild {
    fn drop(&mut self) {
        if matches!(self.stage, Stage::Filling | Stage::Defined) {
            *self.table.gate.close() = None;
        }
        self.table.end_build(self.state.id());
    }
}

/// A row for people: by its primary key, or by its RID.
pub(super) fn name_row(table: &Table, record: &[u8], rid: Rid) -> String {
    let columns = &table.attributes().primary_key;
    let Some(values) = table.values(record).ok().filter(|_| !columns.is_empty()) else {
        return format!("the row {rid}");
    };
    let own = table.attributes().schema.columns();
    let text = |column: &usize| text::to_text(values[*column].as_ref(), &own[*column].data_type).chars().take(60).collect::<String>();
    format!("the row with primary key ({})", columns.iter().map(text).collect::<Vec<_>>().join(", "))
}

/// The other transactions that may have changed rows of a table.
pub(super) fn others(database: &DatabaseState, table: &Table, own: &TransactionState) -> Vec<u64> {
    let mut users = database.core.locks.users_of(table.object_id);
    users.retain(|user| *user != own.id() && *user != REMOVER);
    users
}

/// Fills an index that is being built beside writers.
pub struct Filler<'b> {
    build: &'b IndexBuild,
    builder: IndexBuilder<'b>,
}

impl Filler<'_> {
    /// Adds an entry, in ascending order of (key, RID).
    ///
    /// # Errors
    /// [`Error::DuplicateKey`] in a unique index when two rows have the key that are committed; when the order is wrong, or a write fails.
    pub fn push(&mut self, key: &[u8], rid: Rid) -> Result<()> {
        let Filler { build, builder } = self;
        if let Some((last, other)) = builder.last()
            && build.index.attributes().unique
            && last == key
            && !build.index.has_null(key)
        {
            if build.is_twice(key, rid, other)? {
                return Err(build.index.duplicate(key));
            }
            // One of them may have gone when the other one came, or is taken back.
            build.again.put(key, other);
            build.again.put(key, rid);
        }
        builder.push_any(key, rid)
    }

    /// Writes what is left; returns the counts of every level.
    ///
    /// # Errors
    /// When a write fails.
    pub fn finish(self) -> Result<BuiltTree> {
        self.builder.finish()
    }
}

//! Checkpoints, and recovery when a database is opened.
//!
//! A checkpoint is fuzzy: others go on changing pages. It notes the end of the log (`redo`), writes every page that was dirty then, syncs, writes maps and headers, and only then a checkpoint
//! record and the control slot that names it. So recovery reads the log from `redo` of the last whole checkpoint on.
//!
//! It costs what was used since the last one, not what there is: it looks at data sets that are in the list of those used (`changed_list.rs`), and its record names what is not as the catalog says
//! (`objects/beside.rs`). When that is much, it writes the catalog anew, as a data set that nobody names before the control slot does: it has what was committed at `redo`.
//!
//! Invariants:
//! - segments are given back only below what the last two checkpoints need: when the newer control slot is damaged, the older one still has its log;
//! - the record comes before the control slot that names it, and is durable before;
//! - catalogs that a control slot names are there: one that no slot names any more is removed;
//! - what was dropped meanwhile is written, too, and its file is there until then: redo from before the drop finds its pages as it expects them.

use super::change::{index_entry, table_entry};
use super::defining::Defining;
use super::definitions::Staged;
use super::leftovers::Removal;
use super::open::{Database, DatabaseState, control_state, write_catalog_data_set};
use crate::catalog::{OtherEntry, index_definition, table_definition};
use crate::core::Work;
use crate::data_set::{DataSet, DataSetAttributes};
use crate::directory::{DATA_DIRECTORY, LOG_DIRECTORY, write_control};
use crate::index::Index;
use crate::log::{Log, LogReader};
use crate::objects::{Beside, Objects, Place};
use crate::pool::{BufferManager, LogSink};
use crate::recovery::{Damaged, DataSets, Defined, Definitions, GiveUp, GivenUp, ObjectsById, redo, roll_back};
use crate::steps::stepping;
use crate::table_space::Table;
use crate::transaction::TransactionState;
use crate::{Error, Result, spans};
use pagefold_format::log::{Checkpoint, DataSetState, Lsn, RecordKind, RunningTransaction};
use pagefold_format::wire::put_varint;
use pagefold_io::Storage;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Whether a checkpoint writes the catalog anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteCatalog {
    /// When much is beside it.
    WhenMuch,
    /// It is closed: from then on the catalog says everything.
    Always,
}

/// Where a log begins: 0 stands for none.
const FIRST_LSN: Lsn = 4096;

/// Reads the record of a checkpoint of the database in a directory; also its end.
///
/// # Errors
/// When the log is missing, or has no checkpoint at this position; when it cannot be read.
pub fn read_checkpoint(storage: &dyn Storage, directory: &Path, log_id: u128, at: Lsn) -> Result<(Checkpoint, Lsn)> {
    let directory = directory.join(LOG_DIRECTORY);
    let damaged = |reason: String| Error::Damaged { path: directory.display().to_string(), reason };
    let mut reader = LogReader::open(storage, &directory, log_id, at, at.saturating_add(1))?;
    let record = reader.next()?.filter(|r| r.start == at && RecordKind::from_u8(r.kind) == Some(RecordKind::Checkpoint));
    let Some(record) = record else { return Err(damaged(format!("no checkpoint at {at}, which the control file names"))) };
    let checkpoint = Checkpoint::decode(record.body).map_err(|e| damaged(format!("the checkpoint at {at}: {e}")))?;
    Ok((checkpoint, record.end))
}

impl ObjectsById for DatabaseState {
    fn table(&self, object_id: u32) -> Result<Option<Arc<Table>>> {
        let table = match self.table_by_id(object_id) {
            // A reader goes on without it.
            Err(error) if !self.core.writable && (error.is_damage() || error.is_refusal()) => return Ok(None),
            found => found?,
        };
        table.iter().try_for_each(|table| self.record_damage(table))?;
        Ok(table)
    }
    fn table_of(&self, object_id: u32, transaction: u64) -> Result<Option<Arc<Table>>> {
        match self.definitions.altered(object_id, transaction) {
            Some(altered) => Ok(Some(altered)),
            None => ObjectsById::table(self, object_id),
        }
    }
    fn index(&self, object_id: u32) -> Result<Option<Arc<Index>>> {
        let Some(index) = self.index_by_id(object_id)? else { return Ok(None) };
        if index.damage().is_some() {
            // What is taken back was never there for it.
            ObjectsById::table(self, index.table_id)?;
            return Ok(None);
        }
        Ok(Some(index))
    }
    fn data_set(&self, file_id: u32) -> Result<Option<Arc<DataSet>>> {
        if let Some(data_set) = self.core.manager.data_set(file_id) {
            return Ok(Some(data_set));
        }
        // Seldom: after a crash, of a transaction that began before the last checkpoint.
        let described = self.objects.read().described_files()?;
        let Some((_, table)) = described.into_iter().find(|(entry, _)| entry.file_id == file_id) else { return Ok(None) };
        let _opened = self.live_table_by_id(table)?;
        Ok(self.core.manager.data_set(file_id))
    }
    fn manager(&self) -> &BufferManager {
        &self.core.manager
    }
    fn undefine(&self, transaction: u64, after: Lsn) {
        self.definitions.taken_back(transaction, after);
    }
}

impl DatabaseState {
    /// Data sets that were used since the last checkpoint looked, and are there still. They stay in the list.
    fn used_data_sets(&self) -> impl Iterator<Item = Arc<DataSet>> {
        self.core.changed_list.all().into_iter().filter_map(|file_id| self.core.manager.data_set(file_id))
    }

    /// Takes the records of a transaction back, down to but without the one at `until`; 0 for all.
    ///
    /// # Errors
    /// When a record or page cannot be read.
    pub(crate) fn take_back(&self, state: &TransactionState, until: Lsn) -> Result<()> {
        match self.core.log().filter(|_| state.last_lsn() > until) {
            Some(log) => roll_back(self, log, state, until),
            None => Ok(()),
        }
    }

    /// Logs that a transaction, if it has logged anything, is taken back wholly.
    pub(super) fn log_rolled_back(&self, state: &TransactionState) -> Result<()> {
        let Some(log) = self.core.log().filter(|_| state.last_lsn() != 0) else { return Ok(()) };
        let mut body = Vec::new();
        put_varint(&mut body, state.id());
        LogSink::append(log.as_ref(), RecordKind::RolledBack, &[&body], &mut |_| {}).map(drop)
    }

    /// Makes sure that there is a log. Afterwards changes of what the catalog names are logged.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn ensure_log(&self) -> Result<()> {
        if self.core.log().is_some() {
            return Ok(());
        }
        let turn = self.checkpointing.lock();
        if self.core.log().is_some() {
            return Ok(());
        }
        let core = &self.core;
        core.check_writable()?;
        let storage = Arc::clone(&core.storage);
        // All that may find no room comes before the control file names the log: who tries again makes another, and removes this one.
        let double_write = core.open_double_write()?;
        let log = Log::create(storage, &core.log_directory(), core.log_id, core.log_settings, FIRST_LSN)?;
        // Everything that the catalog names is on disk, and as it says, so there is nothing to write before the first checkpoint.
        let checkpoint = Checkpoint { redo: FIRST_LSN, next_transaction: core.transactions.next_id(), ..Checkpoint::default() };
        // Twice: a control slot that knows of no log would have a database without it, should the other one be damaged.
        self.record_checkpoint(&log, &checkpoint, None)?;
        self.record_checkpoint(&log, &checkpoint, None).inspect_err(|error| core.poison(error))?;
        core.set_log(log, double_write);
        drop(turn);
        Ok(())
    }

    /// Writes a checkpoint, so that recovery has less to do and old log segments are used again. Others may go on working.
    ///
    /// # Errors
    /// When something cannot be written.
    pub fn checkpoint(&self) -> Result<()> {
        self.checkpoint_with(WriteCatalog::WhenMuch)
    }

    fn checkpoint_with(&self, catalog: WriteCatalog) -> Result<()> {
        let _turn = self.checkpointing.lock();
        self.sweep_former();
        if self.core.log().is_none() {
            return Ok(());
        }
        spans::checkpoint(self.log_bytes_since_checkpoint()).in_scope(|| self.write_checkpoint(catalog))?;
        self.checkpoints.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Leaves nothing to be redone, and one catalog, which both control slots name and which says everything: the log of a database that was closed can be
    /// damaged without hiding a name. Writes nothing when that is as it was found.
    fn rest(&self) -> Result<()> {
        let Some(log) = self.core.log() else { return Ok(()) };
        let as_found = log.end() == self.found_in_order.load(Ordering::Acquire)
            && self.objects.read().beside.is_empty()
            && !self.used_data_sets().any(|d| d.is_logged() && (d.is_changed() || d.is_unrecorded()));
        if !(as_found && self.has_one_catalog() && !self.has_resting_pages()) {
            match self.checkpoint_with(WriteCatalog::Always) {
                // Two without a catalog find room, and what is free by then may have some for it.
                Err(error) if error.is_no_room() => {
                    self.checkpoint()?;
                    self.checkpoint()?;
                    self.checkpoint_with(WriteCatalog::Always)?;
                }
                written => written?,
            }
        }
        if self.has_one_catalog() {
            return Ok(());
        }
        // The other slot names the same checkpoint: nothing has changed since, and nobody is there to change anything.
        let core = &self.core;
        let _turn = self.checkpointing.lock();
        core.check_writable()?;
        self.name_checkpoint(core.checkpoint.load(Ordering::Relaxed), None)?;
        let keep = core.keep_log.load(Ordering::Relaxed);
        let _ = self.give_back_log(log, keep);
        let _ = self.give_blocks_back(keep);
        self.sweep_former();
        Ok(())
    }

    fn has_one_catalog(&self) -> bool {
        let current = self.objects.read().catalog.file_id();
        self.other_catalog.lock().as_ref().is_some_and(|other| other.file_id() == current)
    }

    /// Bytes by which the log has grown since the last checkpoint: what recovery would have to read.
    #[must_use]
    pub fn log_bytes_since_checkpoint(&self) -> u64 {
        let core = &self.core;
        core.log().map_or(0, |log| log.end().saturating_sub(core.checkpoint.load(Ordering::Relaxed)))
    }

    /// Where the log ends: behind all that has been committed so far. 0 without a log.
    #[must_use]
    pub fn log_end(&self) -> Lsn {
        self.core.log().map_or(0, |log| log.end())
    }

    /// Returns when everything before this place of the log is durable: for who tells others what a transaction has committed that need not be.
    ///
    /// # Errors
    /// When the log cannot be written, or ends before it.
    pub fn make_durable(&self, before: Lsn) -> Result<()> {
        self.core.log().map_or(Ok(()), |log| log.make_durable(before))
    }

    /// A checkpoint when the log has grown enough for one, by the thread for that, or else by this one.
    pub(super) fn checkpoint_when_due(&self) {
        let limit = self.core.checkpoint_bytes;
        if self.log_bytes_since_checkpoint() >= limit && !self.core.maintenance.ask(Work::Checkpoint) {
            // Who has committed does not fail for it: what keeps it from being written is met by whoever writes next.
            let _ = self.checkpoint();
        }
    }

    /// On a full device: checkpoints, so that segments of the log can be used again that only the last ones need. False when there is nothing to be had of that: running transactions need all there is, or what keeps the
    /// oldest segment (an archive, a reader) kept it the last time, too. Others who come meanwhile wait, and may have what it gives.
    fn give_log_back_for_room(&self) -> bool {
        let Some(log) = self.core.log() else { return false };
        let kept_from = || self.core.keep_log.load(Ordering::Relaxed);
        let oldest_segment = || {
            let needed = written(&self.core.transactions.active()).iter().fold(log.end(), |needed, one| needed.min(one.first));
            log.segments_below(needed).into_iter().min()
        };
        let before = kept_from();
        let mut in_vain = self.room_sought.lock();
        if kept_from() > before {
            return true;
        }
        // What is not durable yet is not given back.
        if log.make_durable(log.end()).is_err() {
            return false;
        }
        let Some(oldest) = oldest_segment() else { return false };
        if in_vain.is_some_and(|(segment, end)| segment == oldest && log.end() < end + log.segment_bytes() / 4) {
            return false;
        }
        // The log is kept from the last but one on.
        let done = (0..2).try_for_each(|_| self.checkpoint());
        *in_vain = oldest_segment().filter(|left| *left == oldest).map(|left| (left, log.end()));
        done.is_ok() && in_vain.is_none()
    }

    /// Makes room in the log for what a statement writes next; where there is none, by checkpoints.
    pub(super) fn prepare_log(&self, prepare: impl Fn() -> Result<()>) -> Result<()> {
        match prepare() {
            Err(error) if error.is_no_room() && self.give_log_back_for_room() => prepare(),
            prepared => prepared,
        }
    }

    /// The log segment that is needed after the next, and what waits to be written, by the thread for that, when it is time. Without a thread whoever needs it does it.
    pub(super) fn keep_log_ahead(&self) {
        let Some(log) = self.core.log() else { return };
        if log.wants_segment_ahead() {
            self.core.maintenance.ask(Work::LogSegment);
        }
        if log.wants_to_be_written() {
            self.core.maintenance.ask(Work::LogWrite);
        }
    }

    /// Writes the dirty pages of one table or index, those of running transactions too, as the deferred-write engine does when frames are short.
    ///
    /// # Errors
    /// When a page cannot be written.
    pub fn write_dirty_pages(&self, data_set: &DataSet) -> Result<()> {
        self.core.manager.flush_pages(data_set)
    }

    fn write_checkpoint(&self, catalog: WriteCatalog) -> Result<()> {
        let core = &self.core;
        let Some(log) = core.log() else { return Ok(()) };
        core.check_writable()?;
        let used: Vec<Arc<DataSet>> = self.used_data_sets().filter(|data_set| data_set.is_logged()).collect();
        // What finds no room in the log stays for the next one; whoever needs a damaged page meets that.
        let _ = self.give_empty_pages_back(&used);
        let held = core.leftovers.hold();
        let defining = self.defining.read();
        let mut cut = self.cut_objects(catalog);
        let (redo, transactions, leftovers, (definitions, staged)) = log.cut(|end| {
            self.seal_free_pages(&used, end);
            let active = core.transactions.active();
            let (ended, running): (Vec<_>, Vec<_>) = active.into_iter().partition(|state| state.is_commit_logged());
            (end, written(&running), core.leftovers.all(&ended), self.definitions.all())
        });
        cut.take_used(self, &staged);
        drop((held, defining));
        let next_transaction = core.transactions.next_id();
        let checkpoint = Checkpoint { redo, next_transaction, transactions, leftovers, definitions, ..Checkpoint::default() };
        let written = self.write_from_cut(log, &mut cut, checkpoint);
        if written.is_err() {
            cut.used.iter().for_each(|data_set| data_set.set_unrecorded());
        }
        self.objects.write().beside.put_back(std::mem::take(&mut cut.beside));
        // Until now nothing of what was there at the cut could go.
        drop((cut, staged));
        self.sweep_former();
        written
    }

    /// Takes what is beside the catalog, to be put back, and with it the objects that a checkpoint is about to write.
    fn cut_objects(&self, catalog: WriteCatalog) -> Cut {
        let mut objects = self.objects.write();
        let beside = std::mem::take(&mut objects.beside);
        let later = beside.objects.iter().map(|object_id| (*object_id, There::of(&objects, *object_id))).collect();
        let is_written = match catalog {
            WriteCatalog::WhenMuch => beside.is_much(objects.len()),
            WriteCatalog::Always => true,
        };
        let all = is_written.then(|| There::all(&objects));
        Cut { beside, later, all, used: Vec::new(), staged: BTreeSet::new() }
    }

    /// Writes what was there at the cut of a checkpoint, and what transactions were making then; then the checkpoint.
    fn write_from_cut(&self, log: &Log, cut: &mut Cut, mut checkpoint: Checkpoint) -> Result<()> {
        let core = &self.core;
        for data_set in cut.used.iter().map(stepping) {
            let changed = data_set.take_changed();
            if changed && data_set.is_defined() {
                core.manager.flush(data_set)?;
            }
            if data_set.take_unrecorded() || changed {
                cut.beside.data_sets.insert(data_set.file_id(), state_of(data_set));
            }
        }
        let catalog = match &cut.all {
            Some(all) => {
                let definitions = all.iter().filter_map(|(object_id, there)| {
                    there.definition().map(|definition| definition.map(|bytes| (*object_id, Cow::Owned(bytes)))).transpose()
                });
                Some(write_catalog_data_set(core, definitions)?)
            }
            None => None,
        };
        // A new catalog has everything but what running transactions make.
        let named = |state: &&DataSetState| catalog.is_none() || cut.staged.contains(&state.file_id);
        checkpoint.data_sets = cut.beside.data_sets.values().filter(named).copied().collect();
        if catalog.is_none() {
            for (object_id, there) in &cut.later {
                checkpoint.committed.push((*object_id, there.as_ref().map_or(Ok(None), There::definition)?));
            }
        }
        let recorded = self.record_from_cut(log, checkpoint, catalog.as_ref());
        match (&recorded, &catalog) {
            (Ok(()), Some(_)) => {
                cut.beside.objects.clear();
                let staged = &cut.staged;
                cut.beside.data_sets.retain(|file_id, _| staged.contains(file_id));
            }
            (Err(_), Some(catalog)) if core.check_writable().is_ok() => _ = core.drop_data_set(catalog),
            _ => {}
        }
        recorded
    }

    fn record_from_cut(&self, log: &Log, checkpoint: Checkpoint, catalog: Option<&Arc<DataSet>>) -> Result<()> {
        let core = &self.core;
        core.storage.sync_directory(&core.directory.join(DATA_DIRECTORY))?;
        let oldest = checkpoint.oldest();
        self.record_checkpoint(log, &checkpoint, catalog)?;
        let keep = core.keep_log.swap(oldest, Ordering::Relaxed).min(oldest);
        // What could not be given back now is given back by the next checkpoint.
        let _ = self.give_back_log(log, keep);
        let _ = self.give_blocks_back(keep);
        Ok(())
    }

    /// Writes the record of a checkpoint, then the control slot that names it, and a new catalog if there is one.
    fn record_checkpoint(&self, log: &Log, checkpoint: &Checkpoint, catalog: Option<&Arc<DataSet>>) -> Result<()> {
        let mut body = Vec::new();
        checkpoint.encode(&mut body);
        let place = LogSink::append(log, RecordKind::Checkpoint, &[&body], &mut |_| {})?;
        log.make_durable(place.end)?;
        self.name_checkpoint(place.start, catalog)
    }

    /// Writes the control slot that names the checkpoint at this position, and a new catalog if there is one.
    fn name_checkpoint(&self, at: Lsn, catalog: Option<&Arc<DataSet>>) -> Result<()> {
        let core = &self.core;
        let mut objects = self.objects.write();
        let passage = core.pass()?;
        core.checkpoint.store(at, Ordering::Relaxed);
        let control = control_state(core, objects.control.sequence + 1, catalog.unwrap_or(&objects.catalog));
        if let Err(error) = write_control(core.storage.as_ref(), &core.directory, &control) {
            core.poison(&error);
            return Err(error);
        }
        drop(passage);
        objects.control = control;
        let before = Arc::clone(&objects.catalog);
        if let Some(catalog) = catalog {
            objects.catalog = Arc::clone(catalog);
        }
        // The other slot names the one before. What this slot named until now nobody names, unless it is one of these.
        let named = [before.file_id(), objects.catalog.file_id()];
        let replaced = self.other_catalog.lock().replace(before);
        drop(objects);
        self.former.leave(replaced.filter(|catalog| !named.contains(&catalog.file_id())));
        Ok(())
    }

    /// Brings the database to where the log ends. Of a reader, its pages in memory and its overlay.
    ///
    /// `other_has_no_log`: a process ended while it made the log, and the other control slot does not name it. What is
    /// committed from now on must not depend on the newer slot alone, so a checkpoint goes into the other one.
    ///
    /// `without`: tables that are gone afterwards, if they are too damaged to be recovered: which were.
    pub(super) fn recover(
        &self,
        checkpoint: &Checkpoint,
        known_durable: Lsn,
        other_has_no_log: bool,
        without: Option<GiveUp<'_>>,
    ) -> Result<Vec<GivenUp>> {
        let core = &self.core;
        let span = spans::recovery(&core.directory, checkpoint.redo).entered();
        // The next checkpoint leaves this one named by the other slot: what both need is kept, and nothing before.
        core.keep_log.store(checkpoint.oldest(), Ordering::Relaxed);
        let mut data_sets = DataSets::new();
        let objects = self.objects.write().take();
        let mut definitions = Definitions::new(core, objects, Vec::new(), checkpoint, &mut data_sets)?;
        let (directory, id) = (core.log_directory(), core.log_id);
        let mut reader = LogReader::open(core.storage.as_ref(), &directory, id, checkpoint.redo, known_durable)?;
        let redone = redo(&mut reader, checkpoint, &mut data_sets, &core.manager, &mut definitions)?;
        spans::recovered(&span, redone.end, redone.records, redone.losers.len());
        // It may have a segment behind the end open, which is removed now, and whose room is needed.
        drop(reader);
        let Defined { objects, gone, given_up } = definitions.finish(Damaged::GoOn { without }, &mut data_sets)?;
        data_sets.values().for_each(|d| d.set_recovering(false));
        drop(data_sets);
        *self.objects.write() = objects;
        self.former.leave(gone);
        let in_order = redone.records == 0 && redone.losers.is_empty() && redone.leftovers.is_empty() && checkpoint.definitions.is_empty();
        if in_order && !core.writable {
            self.sweep_former();
            self.settle_files()?;
            return Ok(given_up);
        }
        let log = Log::open(Arc::clone(&core.storage), &directory, id, core.log_settings, redone.end)?;
        // By now the log is durable as it was read: files that it says are gone may go. A process that was killed may have written that and not synced it.
        self.sweep_former();
        self.settle_files()?;
        core.set_log(log, core.open_double_write()?);
        core.transactions.continue_from(redone.next_transaction);
        *core.last_commit_ns.lock() = redone.last_commit_ns;
        let tables: Vec<Arc<Table>> = self.objects.read().tables.opened().filter(|table| table.check_usable().is_ok()).collect();
        // What the log has of them they did not get.
        tables.iter().try_for_each(|table| self.record_damage(table))?;
        if in_order {
            // A checkpoint that was not completed may have written headers: that is found when they are read.
            self.found_in_order.store(redone.end, Ordering::Release);
            tables.iter().try_for_each(|table| table.load_dictionaries())?;
            if other_has_no_log && core.writable {
                self.write_checkpoint(WriteCatalog::WhenMuch)?;
            }
            return Ok(given_up);
        }
        for table in &tables {
            table.load_dictionaries()?;
            for data_set in table.data_sets().filter(|d| d.is_defined()) {
                for number in redone.pages.get(&data_set.file_id()).into_iter().flatten() {
                    table.renew_space_class(data_set, *number)?;
                }
            }
        }
        if core.writable && !given_up.is_empty() && matches!(without, Some(GiveUp::Tables(_))) {
            // Before the others are taken back: of these tables they are not, and whoever applies this log to them, from a copy, has to end where they were given up.
            self.log_gone(given_up.iter().flat_map(|gone| &gone.objects))?;
        }
        let losers = redone.losers.values().map(|loser| self.end_loser(loser)).collect::<Result<Vec<_>>>()?;
        // Not before all are taken back: nothing says here what room on pages the others need for that.
        losers.iter().flatten().for_each(|state| self.bring_rows_home(state));
        // Of transactions without an end nothing is left.
        for left in redone.leftovers.of_committed() {
            let removal = self.remove_leftover(left, 0, &core.transactions.horizon(), &core.transactions.pins())?;
            if removal != Removal::Gone {
                core.leftovers.hold_back(left.clone());
            }
        }
        // Entries that the losers' undo had no room to take out.
        self.remove_leftovers_in_background()?;
        match if core.writable { self.write_checkpoint(WriteCatalog::WhenMuch) } else { Ok(()) } {
            // The catalog finds none: the log has it all the same.
            Err(error) if error.is_no_room() => {}
            written => written?,
        }
        Ok(given_up)
    }

    /// Says in the log that these objects are gone, in a transaction of its own.
    fn log_gone<'o>(&self, mut objects: impl Iterator<Item = &'o u32>) -> Result<()> {
        let core = &self.core;
        let held = self.defining.write();
        let state = core.transactions.begin();
        objects.try_for_each(|object_id| self.log_definition(&state, *object_id, None, None))?;
        if let Some(end) = core.log_commit(&state)?
            && let Some(log) = core.log()
        {
            log.make_durable(end)?;
        }
        self.publish(&state, &mut Defining::default(), |timestamp| core.leftovers.committed(state.id(), timestamp, Vec::new()));
        drop(held);
        core.release_undo_room(&state);
        Ok(())
    }

    fn end_loser(&self, loser: &RunningTransaction) -> Result<Option<TransactionState>> {
        let Some(log) = self.core.log() else { return Ok(None) };
        let state = TransactionState::recovered(loser.id, loser.first, loser.last);
        roll_back(self, log, &state, 0)?;
        self.log_rolled_back(&state)?;
        Ok(Some(state))
    }
}

impl Database {
    /// Closes the database in order. Dropping it does the same, but keeps errors to itself. Where a full disk has no room for the catalog, everything is in the log, and the next open brings the database in
    /// order.
    ///
    /// # Errors
    /// When something cannot be written: the next open then brings the database in order.
    pub fn close(mut self) -> Result<()> {
        drop(self.live.take());
        drop(self.renewal.take());
        drop(self.maintenance.take());
        self.remove_leftovers()?;
        self.sweep_former();
        match (self.rest(), self.core.log()) {
            (Err(error), Some(log)) if error.is_no_room() => log.make_durable(log.end())?,
            (written, _) => written?,
        }
        self.closed = true;
        Ok(())
    }
}

impl Drop for Database {
    /// Leaves nothing to be redone. What fails here is made good when the database is opened again.
    fn drop(&mut self) {
        drop(self.live.take());
        drop(self.renewal.take());
        drop(self.maintenance.take());
        if !self.closed && self.core.check_writable().is_ok() {
            // Nobody has a snapshot any more.
            let _ = self.remove_leftovers();
            self.sweep_former();
            let _ = self.rest();
        }
        // Tables, indexes and read views may outlive it.
        self.core.close();
    }
}

/// What there was at the cut of a checkpoint, as far as it is to be written.
struct Cut {
    beside: Beside,
    /// What is beside the catalog; `None`: it is gone.
    later: Vec<(u32, Option<There>)>,
    /// Everything, when the catalog is to be written anew.
    all: Option<Vec<(u32, There)>>,
    /// Data sets that were used since the last checkpoint looked.
    used: Vec<Arc<DataSet>>,
    /// Files of what running transactions make.
    staged: BTreeSet<u32>,
}

impl Cut {
    /// Takes the data sets that were used, and leaves out of what is beside the catalog what is gone.
    fn take_used(&mut self, database: &DatabaseState, staged: &[Staged]) {
        let core = &database.core;
        let objects = database.objects.read();
        let data_sets = staged.iter().flat_map(Staged::data_sets);
        let mut staged_objects = BTreeSet::new();
        for data_set in data_sets {
            self.staged.insert(data_set.file_id());
            staged_objects.insert(data_set.attributes.object_id);
        }
        let is_there = |object_id: u32| objects.has(object_id) || staged_objects.contains(&object_id);
        self.beside.data_sets.retain(|_, state| is_there(state.object_id));
        for file_id in core.changed_list.take() {
            let Some(data_set) = core.manager.data_set(file_id) else { continue };
            data_set.left_list();
            if is_there(data_set.attributes.object_id) {
                self.used.push(data_set);
            } else if data_set.is_changed() || !data_set.is_logged() {
                // It is none of the database yet: who makes it writes it.
                data_set.enter();
            }
        }
        self.used.sort_unstable_by_key(|data_set| data_set.file_id());
    }
}

/// An object at the cut.
enum There {
    Table(Arc<Place<Table>>),
    Index(Arc<Place<Index>>),
    Other(Arc<Place<OtherEntry>>),
}

impl There {
    fn of(objects: &Objects, object_id: u32) -> Option<There> {
        let table = objects.tables.by_id(object_id).cloned().map(There::Table);
        let index = || objects.indexes.by_id(object_id).cloned().map(There::Index);
        table.or_else(index).or_else(|| objects.others.by_id(object_id).cloned().map(There::Other))
    }

    fn all(objects: &Objects) -> Vec<(u32, There)> {
        let tables = objects.tables.places().map(|place| (place.object_id, There::Table(Arc::clone(place))));
        let indexes = objects.indexes.places().map(|place| (place.object_id, There::Index(Arc::clone(place))));
        let others = objects.others.places().map(|place| (place.object_id, There::Other(Arc::clone(place))));
        tables.chain(indexes).chain(others).collect()
    }

    /// What the catalog is to say of it.
    fn definition(&self) -> Result<Option<Vec<u8>>> {
        let described = match self {
            There::Table(place) => match place.opened() {
                Some(table) => return table_definition(&table_entry(&table)).map(Some),
                None => place.definition(),
            },
            There::Index(place) => match place.opened() {
                Some(index) => return index_definition(&index_entry(&index)).map(Some),
                None => place.definition(),
            },
            There::Other(place) => place.definition(),
        };
        // Opened just now.
        match described {
            Some(definition) => Ok(Some(definition)),
            None => self.definition(),
        }
    }
}

/// A data set as a checkpoint has it.
fn state_of(data_set: &DataSet) -> DataSetState {
    let header_writes = if data_set.is_defined() { data_set.header_writes() } else { 0 };
    let DataSetAttributes { file_id, object_id, partition, .. } = data_set.attributes;
    DataSetState { file_id, header_writes, object_id, partition }
}

/// Those of the running transactions that have written something.
fn written(running: &[Arc<TransactionState>]) -> Vec<RunningTransaction> {
    let written = running.iter().filter(|state| state.last_lsn() != 0);
    written.map(|state| RunningTransaction { id: state.id(), first: state.first_lsn(), last: state.last_lsn() }).collect()
}

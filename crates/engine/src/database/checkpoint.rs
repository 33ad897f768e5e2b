//! Checkpoints, and recovery when a database is opened.
//!
//! A checkpoint is fuzzy: others go on changing pages. It notes the end of the log (`redo`), writes every page that was dirty then, syncs, writes maps and headers, and only then a checkpoint
//! record and the control slot that names it. So recovery reads the log from `redo` of the last whole checkpoint on.
//!
//! When tables or indexes came or went since the last one, it writes the catalog anew, as a data set that nobody names before the control slot does: it has what was committed at `redo`.
//!
//! Invariants:
//! - segments are given back only below what the last two checkpoints need: when the newer control slot is damaged, the older one still has its log;
//! - the record comes before the control slot that names it, and is durable before;
//! - catalogs that a control slot names are there: one that no slot names any more is removed;
//! - what was dropped meanwhile is written, too, and its file is there until then: redo from before the drop finds its pages as it expects them.

use super::change::entries;
use super::control_file::write_control;
use super::definitions::Staged;
use super::leftovers::Removal;
use super::maintenance::Work;
use super::objects::{Broken, Objects};
use super::open::{Database, DatabaseState, control_state, write_catalog_data_set};
use crate::core::LOG_DIRECTORY;
use crate::data_set::{DataSet, DataSetAttributes};
use crate::index::Index;
use crate::log::{Log, LogReader};
use crate::pool::{BufferManager, LogSink};
use crate::recovery::{DataSets, Defined, Definitions, ObjectsById, redo, roll_back};
use crate::steps::stepping;
use crate::table_space::Table;
use crate::transaction::TransactionState;
use crate::{Error, Result};
use pagefold_format::log::{Checkpoint, DataSetState, Lsn, RecordKind, RunningTransaction};
use pagefold_format::wire::put_varint;
use pagefold_io::Storage;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

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
    fn table(&self, object_id: u32) -> Option<Arc<Table>> {
        self.table_by_id(object_id)
    }
    fn index(&self, object_id: u32) -> Option<Arc<Index>> {
        self.index_by_id(object_id)
    }
    fn data_set(&self, file_id: u32) -> Option<Arc<DataSet>> {
        self.core.manager.data_set(file_id)
    }
    fn manager(&self) -> &BufferManager {
        &self.core.manager
    }
    fn undefine(&self, transaction: u64, after: Lsn) {
        self.definitions.taken_back(transaction, after);
    }
}

impl DatabaseState {
    /// The data sets of all tables and indexes.
    fn data_sets(&self) -> DataSets {
        self.objects.read().data_sets().map(stepping).map(|data_set| (data_set.file_id(), data_set)).collect()
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
        // Everything that the catalog names is on disk, so there is nothing to write before the first checkpoint.
        let data_sets = self.data_sets().values().map(|data_set| state_of(data_set)).collect();
        let checkpoint = Checkpoint { redo: FIRST_LSN, next_transaction: core.transactions.next_id(), data_sets, ..Checkpoint::default() };
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
        let _turn = self.checkpointing.lock();
        self.sweep_former();
        if self.core.log().is_some() { self.write_checkpoint() } else { Ok(()) }
    }

    /// Leaves nothing to be redone, and one catalog, which both control slots name. Writes nothing when that is as it was found.
    fn rest(&self) -> Result<()> {
        let Some(log) = self.core.log() else { return Ok(()) };
        let as_found = log.end() == self.found_in_order.load(Ordering::Acquire) && !self.data_sets().values().any(|d| d.is_changed());
        if !(as_found && self.has_one_catalog()) {
            self.checkpoint()?;
        }
        if self.has_one_catalog() { Ok(()) } else { self.checkpoint() }
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

    /// A checkpoint when the log has grown enough for one, by the thread for that, or else by this one.
    pub(super) fn checkpoint_when_due(&self) {
        let limit = self.core.checkpoint_bytes;
        if self.log_bytes_since_checkpoint() >= limit && !self.core.maintenance.ask(Work::Checkpoint) {
            // Who has committed does not fail for it: what keeps it from being written is met by whoever writes next.
            let _ = self.checkpoint();
        }
    }

    /// Writes the dirty pages of one table or index, those of running transactions too, as the deferred-write engine does when frames are short.
    ///
    /// # Errors
    /// When a page cannot be written.
    pub fn write_dirty_pages(&self, data_set: &DataSet) -> Result<()> {
        self.core.manager.flush_pages(data_set)
    }

    fn write_checkpoint(&self) -> Result<()> {
        let core = &self.core;
        let Some(log) = core.log() else { return Ok(()) };
        core.check_writable()?;
        let held = core.leftovers.hold();
        let defining = self.defining.read();
        let objects = self.objects.read().clone();
        let catalog_is_old = self.catalog_is_old.swap(false, Ordering::AcqRel);
        let (redo, transactions, leftovers, (definitions, staged)) = log.cut(|end| {
            let active = core.transactions.active();
            let (ended, running): (Vec<_>, Vec<_>) = active.into_iter().partition(|state| state.is_commit_logged());
            (end, written(&running), core.leftovers.all(&ended), self.definitions.all())
        });
        drop((held, defining));
        let next_transaction = core.transactions.next_id();
        let cut = Checkpoint { redo, next_transaction, transactions, data_sets: Vec::new(), leftovers, definitions };
        let written = self.write_from_cut(log, &objects, &staged, cut, catalog_is_old);
        if written.is_err() && catalog_is_old {
            self.catalog_is_old.store(true, Ordering::Release);
        }
        // Until now nothing of what was there at the cut could go.
        drop((objects, staged));
        self.sweep_former();
        written
    }

    /// Writes what was there at the cut of a checkpoint, and what transactions were making then; then the checkpoint.
    fn write_from_cut(&self, log: &Log, objects: &Objects, staged: &[Staged], cut: Checkpoint, catalog_is_old: bool) -> Result<()> {
        let core = &self.core;
        let mut data_sets = Vec::new();
        for data_set in objects.data_sets().chain(staged.iter().flat_map(Staged::data_sets)).map(stepping) {
            if data_set.is_defined() && data_set.take_changed() {
                core.manager.flush(&data_set)?;
            }
            data_sets.push(state_of(&data_set));
        }
        let catalog = if catalog_is_old { Some(write_catalog_data_set(core, &entries(objects))?) } else { None };
        let recorded = self.record_from_cut(log, Checkpoint { data_sets, ..cut }, catalog.as_ref());
        if let (Err(_), Some(catalog)) = (&recorded, &catalog)
            && core.check_writable().is_ok()
        {
            let _ = core.drop_data_set(catalog);
        }
        recorded
    }

    fn record_from_cut(&self, log: &Log, checkpoint: Checkpoint, catalog: Option<&Arc<DataSet>>) -> Result<()> {
        let core = &self.core;
        core.storage.sync_directory(&core.directory.join(crate::DATA_DIRECTORY))?;
        let oldest = checkpoint.transactions.iter().map(|t| t.first).fold(checkpoint.redo, Lsn::min);
        self.record_checkpoint(log, &checkpoint, catalog)?;
        let keep = core.keep_log.swap(oldest, Ordering::Relaxed);
        // What could not be given back now is given back by the next checkpoint.
        let _ = self.give_back_log(log, keep.min(oldest));
        Ok(())
    }

    /// Writes the record of a checkpoint, then the control slot that names it, and a new catalog if there is one.
    fn record_checkpoint(&self, log: &Log, checkpoint: &Checkpoint, catalog: Option<&Arc<DataSet>>) -> Result<()> {
        let core = &self.core;
        let mut body = Vec::new();
        checkpoint.encode(&mut body);
        let place = LogSink::append(log, RecordKind::Checkpoint, &[&body], &mut |_| {})?;
        log.make_durable(place.end)?;
        let mut objects = self.objects.write();
        let passage = core.pass()?;
        core.checkpoint.store(place.start, Ordering::Relaxed);
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
    pub(super) fn recover(&self, checkpoint: &Checkpoint, broken: Vec<Broken>, known_durable: Lsn, other_has_no_log: bool) -> Result<()> {
        let core = &self.core;
        let mut data_sets = self.data_sets();
        let objects = self.objects.read().clone();
        let mut definitions = Definitions::new(core, objects, broken, checkpoint, &mut data_sets)?;
        let (directory, id) = (core.log_directory(), core.log_id);
        let mut reader = LogReader::open(core.storage.as_ref(), &directory, id, checkpoint.redo, known_durable)?;
        let redone = redo(&mut reader, checkpoint, &mut data_sets, &core.manager, &mut definitions)?;
        // It may have a segment behind the end open, which is removed now, and whose room is needed.
        drop(reader);
        let Defined { objects, gone, changed } = definitions.finish(&mut data_sets)?;
        data_sets.values().for_each(|d| d.set_recovering(false));
        drop(data_sets);
        *self.objects.write() = objects;
        self.former.leave(gone);
        let in_order = redone.records == 0 && redone.losers.is_empty() && redone.leftovers.is_empty() && checkpoint.definitions.is_empty();
        if in_order && !core.writable {
            self.sweep_former();
            return Ok(());
        }
        let log = Log::open(Arc::clone(&core.storage), &directory, id, core.log_settings, redone.end)?;
        // By now the log is durable as it was read: files that it says are gone may go. A process that was killed may have written that and not synced it.
        self.sweep_former();
        if core.writable {
            self.remove_unnamed()?;
        }
        core.set_log(log, core.open_double_write()?);
        core.transactions.continue_from(redone.next_transaction);
        *core.last_commit_ns.lock() = redone.last_commit_ns;
        let tables = self.objects.read().tables.clone();
        self.catalog_is_old.store(changed, Ordering::Release);
        if in_order {
            // A checkpoint that was not completed may have written headers.
            let is_written = |state: &DataSetState| core.manager.data_set(state.file_id).is_some_and(|d| state_of(&d) == *state);
            if checkpoint.data_sets.iter().all(is_written) {
                self.found_in_order.store(redone.end, Ordering::Release);
            }
            return if other_has_no_log && core.writable { self.write_checkpoint() } else { Ok(()) };
        }
        for table in tables.values() {
            table.load_dictionaries()?;
            for data_set in table.partitions().filter(|d| d.is_defined()) {
                for number in redone.pages.get(&data_set.file_id()).into_iter().flatten() {
                    table.renew_space_class(data_set, *number)?;
                }
            }
        }
        let losers = redone.losers.values().map(|loser| self.end_loser(loser)).collect::<Result<Vec<_>>>()?;
        // Not before all are taken back: nothing says here what room on pages the others need for that.
        losers.iter().flatten().for_each(|state| self.bring_rows_home(state));
        // Of transactions without an end nothing is left.
        for leftover in redone.leftovers.iter().filter(|l| l.transaction == 0) {
            let removal = self.remove_leftover(&leftover.left, 0, &core.transactions.horizon(), &core.transactions.pins())?;
            if removal != Removal::Gone {
                core.leftovers.hold_back(leftover.left.clone());
            }
        }
        // Entries that the losers' undo had no room to take out.
        self.remove_leftovers_in_background()?;
        match if core.writable { self.write_checkpoint() } else { Ok(()) } {
            // The catalog finds none: the log has it all the same.
            Err(error) if error.is_no_room() => Ok(()),
            written => written,
        }
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

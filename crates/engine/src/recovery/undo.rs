//! Taking back what a transaction did: when it rolls back, and after a crash.
//!
//! Undo is logical: rows may have moved and leaves split since. Each step is a mini-transaction whose record is a compensation record, which names the next step; so a crash in between
//! never takes anything back twice (ARIES). Every record of a transaction gets one, also where nothing is to be done to a page: redo tells by it what the transaction does not leave.
//!
//! Invariant: undo needs no room. An index entry whose removal would need some (what is left of a block can take more bytes than all did) is left, as a commit leaves the entry of an old key, and removed later. Deleted rows are ghosts that keep theirs, and what an update of a running transaction freed is not given to others before it ends.

use crate::btree::Removed;
use crate::data_set::DataSet;
use crate::index::Index;
use crate::log::Log;
use crate::pool::{BufferManager, By, MiniTransaction};
use crate::steps::step;
use crate::table_space::Table;
use crate::transaction::TransactionState;
use crate::{Error, Result};
use pagefold_format::log::{Action, Leftover, Lsn, RecordKind, Role, Undo};
use pagefold_types::Rid;
use std::sync::Arc;

/// Finds what undo records name.
pub(crate) trait ObjectsById {
    /// The table; `None` when it was dropped. An error when it cannot be opened; so for the others.
    fn table(&self, object_id: u32) -> Result<Option<Arc<Table>>>;
    /// The same for a transaction that may have altered it.
    fn table_of(&self, object_id: u32, transaction: u64) -> Result<Option<Arc<Table>>>;
    /// The index; `None` when it was dropped or is damaged.
    fn index(&self, object_id: u32) -> Result<Option<Arc<Index>>>;
    /// The data set; `None` when it was dropped.
    fn data_set(&self, file_id: u32) -> Result<Option<Arc<DataSet>>>;
    /// What a transaction has defined behind its record at `after` is about to be taken back.
    fn undefine(&self, transaction: u64, after: Lsn);
    /// The buffer manager of all of them.
    fn manager(&self) -> &BufferManager;
}

/// Takes back the records of a transaction, the latest first, down to but without the one at `until`; 0 for all of them.
///
/// # Errors
/// When a record or page cannot be read: the database is in doubt then, and the next open goes on from here.
pub(crate) fn roll_back(objects: &dyn ObjectsById, log: &Log, state: &TransactionState, until: Lsn) -> Result<()> {
    let damaged = |at: Lsn, reason: String| Error::Damaged { path: "log".into(), reason: format!("the record at {at}: {reason}") };
    // The record at `at`, or, where that takes something back, the one before all of that.
    let find = |mut at: Lsn| -> Result<(Lsn, Vec<u8>)> {
        while at > until {
            step();
            let record = log.read(at)?;
            if RecordKind::from_u8(record.kind) != Some(RecordKind::Action) {
                return Err(damaged(at, "not an action, but a transaction's chain leads here".into()));
            }
            at = match Action::decode(&record.body).map_err(|e| damaged(at, e.to_string()))?.role {
                Role::Compensation { transaction, next } if transaction == state.id() && next < at => next,
                _ => return Ok((at, record.body)),
            };
        }
        Ok((at, Vec::new()))
    };
    let (mut at, mut body) = find(state.last_lsn())?;
    while at > until {
        let Role::Undoable { transaction, previous, undo } = Action::decode(&body).map_err(|e| damaged(at, e.to_string()))?.role else {
            return Err(damaged(at, "not one of a transaction".into()));
        };
        if transaction != state.id() || previous >= at {
            return Err(damaged(at, format!("not one of transaction {}", state.id())));
        }
        // The compensation record names what is next to be taken back, past all that has been already: so who returns to a savepoint again and again does not read all of that each time.
        let before = find(previous)?;
        if let Undo::Definition { .. } = undo {
            objects.undefine(state.id(), previous);
        }
        take_back(objects, state, (at, before.0), undo)?;
        (at, body) = before;
    }
    Ok(())
}

/// Takes one action back. What belongs to an object that was dropped is gone with it. What came together is taken out in steps: until the last one, the next step leads to the record at `again`, which is this one; then to that at `next`.
///
/// # Errors
/// When a page cannot be read, or is not as the log says.
fn take_back(objects: &dyn ObjectsById, state: &TransactionState, (again, next): (Lsn, Lsn), undo: Undo<'_>) -> Result<()> {
    let by = By::Undo(state, next);
    let take_out_rows = |object_id, first, count| {
        objects.table_of(object_id, state.id())?.map_or(Ok(()), |table| table.take_rows_out(state, (again, next), first, count))
    };
    let take_out_entries = |object_id, entries: Vec<(&[u8], Rid)>| {
        let Some(index) = objects.index(object_id)? else { return Ok(()) };
        entries.into_iter().enumerate().rev().try_for_each(|(number, (key, rid))| {
            step();
            take_entry_out(objects, &index, By::Undo(state, if number == 0 { next } else { again }), key, rid)
        })
    };
    match undo {
        Undo::InsertedRow { object_id, rid } => take_out_rows(object_id, rid, 1),
        Undo::InsertedRows { object_id, rid, count } => take_out_rows(object_id, rid, count),
        Undo::DeletedRow { object_id, .. } | Undo::UpdatedRow { object_id, .. } => {
            objects.table_of(object_id, state.id())?.map_or(Ok(()), |table| table.take_back(by, undo))
        }
        Undo::InsertedEntry { object_id, key, rid } => take_out_entries(object_id, vec![(key, rid)]),
        Undo::InsertedEntries { object_id, entries } => take_out_entries(object_id, entries.iter().collect()),
        // Nothing is to be done, but redo has to learn that it is not left any more.
        Undo::KeptEntry { .. } | Undo::KeptLargeValue { .. } | Undo::Definition { .. } => compensate(objects, by),
        Undo::AllocatedPage { file_id, page } => {
            let Some(data_set) = objects.data_set(file_id)? else { return Ok(()) };
            if page == 0 || page >= data_set.page_count() {
                return Err(data_set.corrupt(page, "the log has it as a page that was taken"));
            }
            let mut mtr = MiniTransaction::begin(objects.manager());
            mtr.free(&data_set, page);
            mtr.set_by(by);
            mtr.commit().map(drop)
        }
    }
}

fn take_entry_out(objects: &dyn ObjectsById, index: &Index, by: By<'_>, key: &[u8], rid: Rid) -> Result<()> {
    if index.tree().delete_by(by, key, rid)? != Removed::NeedsRoom {
        index.core.leftovers.entry_removed();
        return Ok(());
    }
    leave_entry(index, key, rid)?;
    compensate(objects, by)
}

/// Logs that something is taken back for which no page changes.
fn compensate(objects: &dyn ObjectsById, by: By<'_>) -> Result<()> {
    let mut mtr = MiniTransaction::begin(objects.manager());
    mtr.set_by(by);
    mtr.commit().map(drop)
}

/// Leaves an entry for later, for good, whatever becomes of the rollback: a transaction of its own does it. After a crash before the compensation record both are done again, which does no harm. What
/// this logs is less than what is kept of the log for taking the entry back: it has the key once.
fn leave_entry(index: &Index, key: &[u8], rid: Rid) -> Result<()> {
    let core = &index.core;
    let state = core.transactions.begin();
    let undo = Undo::KeptEntry { object_id: index.object_id, key, rid };
    core.leftovers.enter(&state, Leftover::Entry { object_id: index.object_id, key: key.to_vec(), rid });
    let mut mtr = MiniTransaction::begin(&core.manager);
    mtr.set_undo(By::Transaction(&state), undo);
    mtr.commit()?;
    core.log_commit(&state)?;
    core.transactions.commit(&state, |timestamp| core.leftovers.committed(state.id(), timestamp, Vec::new()));
    core.release_undo_room(&state);
    Ok(())
}

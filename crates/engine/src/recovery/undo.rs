//! Taking back what a transaction did: when it rolls back, and after a crash.
//!
//! Undo is logical: rows may have moved and leaves split since. Each step is a mini-transaction whose record is a compensation record, which names the next step; so a crash in between
//! never takes anything back twice (ARIES). Every record of a transaction gets one, also where nothing is to be done to a page: redo tells by it what the transaction does not leave.
//!
//! Invariant: undo needs no room. Deleted rows are ghosts that keep theirs, and what an update of a running transaction freed is not given to others before it ends.

use crate::data_set::DataSet;
use crate::index::Index;
use crate::log::Log;
use crate::pool::{BufferManager, By, MiniTransaction};
use crate::table_space::Table;
use crate::transaction::TransactionState;
use crate::{Error, Result};
use pagefold_format::log::{Action, Lsn, RecordKind, Role, Undo};
use std::sync::Arc;

/// Finds what undo records name.
pub(crate) trait ObjectsById {
    /// The table; `None` when it was dropped.
    fn table(&self, object_id: u32) -> Option<Arc<Table>>;
    /// The index; `None` when it was dropped.
    fn index(&self, object_id: u32) -> Option<Arc<Index>>;
    /// The data set; `None` when it was dropped.
    fn data_set(&self, file_id: u32) -> Option<Arc<DataSet>>;
    /// The buffer manager of all of them.
    fn manager(&self) -> &BufferManager;
}

/// Takes back the records of a transaction, the latest first, down to but without the one at `until`; 0 for all of them.
///
/// # Errors
/// When a record or page cannot be read: the database is in doubt then, and the next open goes on from here.
pub(crate) fn roll_back(objects: &dyn ObjectsById, log: &Log, state: &TransactionState, until: Lsn) -> Result<()> {
    let mut at = state.last_lsn();
    while at > until {
        let record = log.read(at)?;
        let damaged = |reason: String| Error::Damaged { path: "log".into(), reason: format!("the record at {at}: {reason}") };
        if RecordKind::from_u8(record.kind) != Some(RecordKind::Action) {
            return Err(damaged("not an action, but a transaction's chain leads here".into()));
        }
        let next = match Action::decode(&record.body).map_err(|e| damaged(e.to_string()))?.role {
            Role::Undoable { transaction, previous, undo } if transaction == state.id() && previous < at => {
                take_back(objects, By::Undo(state, previous), undo)?;
                previous
            }
            Role::Compensation { transaction, next } if transaction == state.id() && next < at => next,
            _ => return Err(damaged(format!("not one of transaction {}", state.id()))),
        };
        at = next;
    }
    Ok(())
}

/// Takes one action back. What belongs to an object that was dropped is gone with it.
///
/// # Errors
/// When a page cannot be read, or is not as the log says.
pub(crate) fn take_back(objects: &dyn ObjectsById, by: By<'_>, undo: Undo<'_>) -> Result<()> {
    match undo {
        Undo::InsertedRow { object_id, .. } | Undo::DeletedRow { object_id, .. } | Undo::UpdatedRow { object_id, .. } => {
            objects.table(object_id).map_or(Ok(()), |table| table.take_back(by, undo))
        }
        Undo::InsertedEntry { object_id, key, rid } => {
            let Some(index) = objects.index(object_id) else { return Ok(()) };
            index.tree().delete_by(by, key, rid)?;
            index.core.leftovers.entry_removed();
            Ok(())
        }
        // Nothing is to be done, but redo has to learn that it is not left any more.
        Undo::KeptEntry { .. } | Undo::KeptLargeValue { .. } => {
            let mut mtr = MiniTransaction::begin(objects.manager());
            mtr.set_by(by);
            mtr.commit().map(drop)
        }
        Undo::AllocatedPage { file_id, page } => {
            let Some(data_set) = objects.data_set(file_id) else { return Ok(()) };
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

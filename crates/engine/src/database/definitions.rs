//! What transactions define and have not committed yet: for checkpoints, which keep it for recovery.
//!
//! A table or index comes or goes with the commit of its transaction. The log says so when it is defined (`Undo::Definition`), as it says what is left of a row: nothing is to be done to take it back,
//! and redo does it when it comes to the commit.
//!
//! Invariants:
//! - a definition is entered here before its record is in the log, so a checkpoint may have one that redo meets again: they are told apart by the transaction and its record before;
//! - commits with definitions take place while nobody else has `DatabaseState::defining`: at a checkpoint's cut each is whole, in the catalog, or has not begun.

use super::open::DatabaseState;
use crate::Result;
use crate::pool::{By, MiniTransaction};
use crate::transaction::TransactionState;
use pagefold_format::log::{CheckpointDefinition, Undo};
use parking_lot::Mutex;
use std::sync::Arc;

/// Definitions of running transactions, in the order of their records.
#[derive(Debug, Default)]
pub(super) struct RunningDefinitions(Mutex<Vec<CheckpointDefinition>>);

impl RunningDefinitions {
    /// The transaction is ended.
    pub(super) fn ended(&self, transaction: u64) {
        self.0.lock().retain(|definition| definition.transaction != transaction);
    }

    /// All, for a checkpoint.
    pub(super) fn all(&self) -> Vec<CheckpointDefinition> {
        self.0.lock().clone()
    }
}

impl DatabaseState {
    /// Logs that a table or index comes with the commit of a transaction, given its rows of the catalog, or goes.
    pub(super) fn log_definition(&self, state: &Arc<TransactionState>, object_id: u32, rows: Option<Vec<u8>>) -> Result<()> {
        let definition = CheckpointDefinition { transaction: state.id(), after: state.last_lsn(), object_id, rows };
        self.definitions.0.lock().push(definition.clone());
        let mut mtr = MiniTransaction::begin(&self.core.manager);
        mtr.set_undo(By::Transaction(state), Undo::Definition { object_id, rows: definition.rows.as_deref() });
        mtr.commit().map(drop)
    }
}

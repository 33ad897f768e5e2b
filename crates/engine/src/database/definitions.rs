//! What transactions define and have not committed yet: for checkpoints, which keep it for recovery.
//!
//! A table or index comes or goes with the commit of its transaction. The log says so when it is defined (`Undo::Definition`), as it says what is left of a row: nothing is to be done to take it back,
//! and redo does it when it comes to the commit.
//!
//! What a transaction makes is found here by its number, by undo and by whoever removes what was left, until the commit.
//!
//! Invariants:
//! - a definition is entered here before its record is in the log, so a checkpoint may have one that redo meets again: they are told apart by the transaction and its record before;
//! - it goes out of here before the record that takes it back is in the log: a checkpoint in between does not have it, and a transaction without an end is taken back wholly after a crash;
//! - commits with definitions take place while nobody else has `DatabaseState::defining`: at a checkpoint's cut each is whole, in the catalog, or has not begun.

use super::open::DatabaseState;
use crate::Result;
use crate::data_set::DataSet;
use crate::index::Index;
use crate::log::Lsn;
use crate::pool::{By, MiniTransaction};
use crate::table_space::Table;
use crate::transaction::TransactionState;
use pagefold_format::log::{CheckpointDefinition, Undo};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a transaction makes.
#[derive(Clone, Debug)]
pub(super) enum Staged {
    Table(Arc<Table>),
    Index(Arc<Index>),
    /// A table that is there as it will be: the transaction alone goes by that.
    Altered(Arc<Table>),
}

impl Staged {
    /// Its data sets, those too whose record is in the log and which nobody can use yet.
    pub(super) fn data_sets(&self) -> Vec<Arc<DataSet>> {
        match self {
            Staged::Table(table) => table.all_partitions(),
            Staged::Index(index) => vec![Arc::clone(&index.data_set)],
            Staged::Altered(_) => Vec::new(),
        }
    }
}

#[derive(Debug)]
struct Running {
    definition: CheckpointDefinition,
    /// What has pages that are logged.
    staged: Option<Staged>,
}

/// Definitions of running transactions, in the order of their records.
#[derive(Debug, Default)]
pub(super) struct RunningDefinitions {
    all: Mutex<Vec<Running>>,
    count: AtomicUsize,
}

impl RunningDefinitions {
    fn change<R>(&self, change: impl FnOnce(&mut Vec<Running>) -> R) -> R {
        let mut all = self.all.lock();
        let changed = change(&mut all);
        self.count.store(all.len(), Ordering::Release);
        changed
    }

    fn remove(&self, is_it: impl Fn(&CheckpointDefinition) -> bool) {
        self.change(|all| {
            for gone in all.extract_if(.., |running| is_it(&running.definition)) {
                if let Some(Staged::Altered(table)) = gone.staged {
                    table.count_altering(false);
                }
            }
        });
    }

    /// The transaction is ended.
    pub(super) fn ended(&self, transaction: u64) {
        self.remove(|definition| definition.transaction == transaction);
    }

    /// What the transaction has defined behind its record at `after` is about to be taken back.
    pub(super) fn taken_back(&self, transaction: u64, after: Lsn) {
        self.remove(|definition| (definition.transaction, definition.after) == (transaction, after));
    }

    /// All, for a checkpoint, and what they make.
    pub(super) fn all(&self) -> (Vec<CheckpointDefinition>, Vec<Staged>) {
        let all = self.all.lock();
        let staged = all.iter().filter_map(|running| running.staged.clone());
        (all.iter().map(|running| running.definition.clone()).collect(), staged.collect())
    }

    fn find<T>(&self, is_it: impl Fn(&Staged) -> Option<Arc<T>>) -> Option<Arc<T>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.all.lock().iter().find_map(|running| is_it(running.staged.as_ref()?))
    }

    /// The table of this number that a running transaction makes.
    pub(super) fn table(&self, object_id: u32) -> Option<Arc<Table>> {
        self.find(|staged| match staged {
            Staged::Table(table) if table.object_id == object_id => Some(Arc::clone(table)),
            _ => None,
        })
    }

    /// The table of this number as a running transaction has altered it last.
    pub(super) fn altered(&self, object_id: u32, transaction: u64) -> Option<Arc<Table>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let all = self.all.lock();
        all.iter().rev().filter(|running| running.definition.transaction == transaction).find_map(|running| match &running.staged {
            Some(Staged::Altered(table)) if table.object_id == object_id => Some(Arc::clone(table)),
            _ => None,
        })
    }

    /// The index of this number that a running transaction makes.
    pub(super) fn index(&self, object_id: u32) -> Option<Arc<Index>> {
        self.find(|staged| match staged {
            Staged::Index(index) if index.object_id == object_id => Some(Arc::clone(index)),
            _ => None,
        })
    }
}

impl DatabaseState {
    /// Logs that a table or index comes with the commit of a transaction, given its rows of the catalog, or goes. With `staged`, changes of its pages are logged from now on.
    pub(super) fn log_definition(
        &self,
        state: &Arc<TransactionState>,
        object_id: u32,
        rows: Option<Vec<u8>>,
        staged: Option<Staged>,
    ) -> Result<()> {
        staged.iter().flat_map(Staged::data_sets).for_each(|data_set| data_set.set_logged());
        if let Some(Staged::Altered(table)) = &staged {
            table.count_altering(true);
        }
        let definition = CheckpointDefinition { transaction: state.id(), after: state.last_lsn(), object_id, rows };
        self.definitions.change(|all| all.push(Running { definition: definition.clone(), staged }));
        let mut mtr = MiniTransaction::begin(&self.core.manager);
        mtr.set_undo(By::Transaction(state), Undo::Definition { object_id, rows: definition.rows.as_deref() });
        mtr.commit().map(drop).inspect_err(|_| self.definitions.taken_back(state.id(), definition.after))
    }
}

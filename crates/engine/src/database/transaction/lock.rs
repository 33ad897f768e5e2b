//! Locking rows that a statement has chosen, as SELECT ... FOR UPDATE and FOR SHARE do.

use super::super::read_view::ReadView;
use super::{Transaction, Writes};
use crate::table_space::{RowBuffer, Table};
use crate::transaction::{Mode, Resource};
use crate::{Error, Result};
use pagefold_types::Rid;
use std::time::Duration;

/// What others may do with a row that is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowLock {
    /// Lock it likewise. Nobody changes it.
    Shared,
    /// Neither lock nor change it.
    Exclusive,
}

/// What happens when another transaction has a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockWait {
    /// It is waited for, as long as the transaction waits for locks.
    #[default]
    Wait,
    /// An error at once (NOWAIT).
    NoWait,
    /// The row is passed over (SKIP LOCKED).
    Skip,
}

/// What became of a row that a statement had chosen, when it was locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// It is as the statement saw it.
    Unchanged,
    /// It is locked, but was changed since the statement saw it: whoever chose it by a condition looks again.
    Changed,
    /// It is not there any more.
    Gone,
    /// Another transaction has it; it was passed over.
    Skipped,
}

impl Transaction<'_> {
    /// Locks a row that a statement has seen in its view, until the end of the transaction, and says what became of it since. A statement may lock many rows, each by itself: one that is not had
    /// leaves those before locked.
    ///
    /// # Errors
    /// [`Error::Lock`] when it cannot be had in time, or at once where that was asked; [`Error::Conflict`] when the snapshot is that of the transaction and the row was changed since.
    pub fn lock_seen(&mut self, view: &ReadView, table: &Table, rid: Rid, lock: RowLock, wait: LockWait) -> Result<Locked> {
        if view.transaction() != self.state.id() {
            return Err(Error::Parameter("a read view of another transaction".into()));
        }
        self.statement_that(Writes::Nothing, table, |t| {
            t.note_read(table, rid)?;
            let mode = match lock {
                RowLock::Shared => Mode::Shared,
                RowLock::Exclusive => Mode::Exclusive,
            };
            let timeout = if wait == LockWait::Wait { t.options.lock_timeout } else { Duration::ZERO };
            let core = &t.database.core;
            let held = core.locks.lock_past_removals(t.state.id(), Resource::Row(table.object_id, rid), mode, timeout);
            match held {
                Err(_) if wait == LockWait::Skip => return Ok(Locked::Skipped),
                held => held?,
            };
            core.check_writable()?;
            let is_newer = core.versions.newest(table.object_id, rid)?.is_some_and(|writer| !view.snapshot().sees(&writer));
            if is_newer && t.snapshot.is_some() {
                return Err(Error::Conflict { object: table.name().into(), rid });
            }
            Ok(match table.read(rid, &mut RowBuffer::default(), |_| ())? {
                None => Locked::Gone,
                Some(()) if is_newer => Locked::Changed,
                Some(()) => Locked::Unchanged,
            })
        })
    }
}

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
    /// It is as the statement saw it, and has this RID by now.
    Moved(Rid),
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
                None if is_newer && t.snapshot.is_none() => return t.follow_seen(view, table, rid, (mode, wait)),
                None => Locked::Gone,
                Some(()) if is_newer => Locked::Changed,
                Some(()) => Locked::Unchanged,
            })
        })
    }

    /// Locks, by the RID that it has by now, a row that may have been put elsewhere since a statement saw it. What it is there counts: it may have been changed before it was moved, or since.
    fn follow_seen(&self, view: &ReadView, table: &Table, seen: Rid, (mode, wait): (Mode, LockWait)) -> Result<Locked> {
        let core = &self.database.core;
        let timeout = if wait == LockWait::Wait { self.options.lock_timeout } else { Duration::ZERO };
        let mut rid = seen;
        while let Some(moved) = core.moves.of(table.object_id, rid) {
            rid = moved.to;
            match core.locks.lock_past_removals(self.state.id(), Resource::Row(table.object_id, rid), mode, timeout) {
                Err(_) if wait == LockWait::Skip => return Ok(Locked::Skipped),
                held => held?,
            };
        }
        core.check_writable()?;
        let mut buffer = RowBuffer::default();
        let Some(now) = table.read(rid, &mut buffer, <[u8]>::to_vec)? else { return Ok(Locked::Gone) };
        let then = table.read_visible(seen, view.snapshot(), &mut buffer, |record| record == now, |_| ())?;
        Ok(if then == Some(true) { Locked::Moved(rid) } else { Locked::Changed })
    }

    /// A row is locked for change that may have been put elsewhere before: locks it there, too. The RID that it has by now.
    pub(super) fn follow_locked(&self, table: &Table, mut rid: Rid) -> Result<Rid> {
        while let Some(moved) = self.database.core.moves.of(table.object_id, rid) {
            rid = moved.to;
            self.acquire(Resource::Row(table.object_id, rid))?;
        }
        Ok(rid)
    }
}

//! Savepoints, commit and rollback.

use super::{Durability, MoveMade, Savepoint, Transaction};
use crate::core::Work;
use crate::log::Lsn;
use crate::table_space::is_visiting;
use crate::{Error, Result};
use std::sync::Arc;

impl Transaction<'_> {
    /// A point to come back to.
    #[must_use]
    pub fn savepoint(&self) -> Savepoint {
        Savepoint { transaction: self.state.id(), last: self.state.last_lsn() }
    }

    /// Takes back everything since a savepoint. Locks stay. The transaction goes on from there, also when a lock was not had, or a row was changed by others.
    ///
    /// # Errors
    /// When the savepoint is of another transaction, or serialization has failed. When a page or the log cannot be read: the transaction can only be rolled back then.
    pub fn roll_back_to(&mut self, savepoint: Savepoint) -> Result<()> {
        if !matches!(self.failed, Some(Error::Lock(_) | Error::Conflict { .. })) {
            self.check()?;
        }
        self.refuse_inside_visitor()?;
        if savepoint.transaction != self.state.id() {
            return Err(Error::Parameter(format!("a savepoint of transaction {}, this is {}", savepoint.transaction, self.state.id())));
        }
        self.failed = None;
        self.take_back(savepoint.last).inspect_err(|e| self.failed = Some(e.clone()))
    }

    /// Makes everything durable, and seen by others.
    ///
    /// # Errors
    /// When the log cannot be written: whether the transaction is committed shows when the database is opened again. When only rollback is left.
    pub fn commit(mut self) -> Result<()> {
        self.check()?;
        self.note_definition(|defining, by| defining.note_layouts(by))?;
        self.log_definitions()?;
        let core = &self.database.core;
        let serializable = self.serializable().filter(|_| self.snapshot.is_some());
        // From here on no table is replaced before the commit is seen, or by nobody else.
        let replacing = (!self.defining.is_empty()).then(|| self.database.defining.write());
        let replaced_by_none =
            serializable.filter(|_| replacing.is_none() && self.state.last_lsn() != 0).map(|_| self.database.defining.read());
        if let Some(serializable) = serializable {
            if self.state.last_lsn() != 0 {
                self.check_objects_read()?;
            }
            serializable.before_commit(self.state.id())?;
        }
        if let Some(end) = self.log_commit()?
            && let Err(error) = self.reach_durability(end)
        {
            // Nobody knows whether it is committed, so nothing more may be built on it.
            core.poison(&error);
            self.ended = true;
            core.locks.release_all(self.state.id());
            return Err(error);
        }
        self.ended = true;
        let is_serializable = self.serializable().is_some() && self.snapshot.is_some();
        let rows = self.state.take_rows();
        if rows.is_empty() && !is_serializable && self.defining.is_empty() {
            (self.snapshot, self.pin) = (None, None);
            core.transactions.end_read_only(&self.state);
            self.leave_tables(None);
            core.locks.release_all(self.state.id());
            self.snapshot_ended();
            self.database.resume_renewals(self.state.id());
            return Ok(());
        }
        let mut commit = 0;
        let committed = |timestamp| {
            commit = timestamp;
            if is_serializable {
                core.serializable.committed(self.state.id(), timestamp);
            }
            // Before what makes room for others in the old places.
            core.moves.committed(timestamp, self.moves.iter().map(MoveMade::row));
            core.leftovers.committed(self.state.id(), timestamp, rows);
        };
        if self.defining.is_empty() {
            core.transactions.commit(&self.state, committed);
        } else {
            self.database.publish(&self.state, &mut self.defining, committed);
        }
        drop((replacing, replaced_by_none));
        self.leave_tables(Some(commit));
        (self.snapshot, self.pin) = (None, None);
        for (index, key, row) in self.known_keys.all() {
            // One that has a note is in memory.
            if let Ok(Some(index)) = self.database.index_by_id(index) {
                index.known_keys.committed(key, commit, row);
            }
        }
        core.release_undo_room(&self.state);
        self.database.bring_rows_home(&self.state);
        core.locks.release_all(self.state.id());
        // What cannot be removed now is removed later; the commit stands. A visitor has a page latched.
        if is_visiting(core) {
            core.maintenance.ask(Work::Leftovers);
        } else {
            let _ = self.database.remove_leftovers_unless_busy();
        }
        self.database.sweep_former();
        self.database.resume_renewals(self.state.id());
        Ok(())
    }

    /// Waits until the commit whose record ends here is as durable as was asked for, or as it has to be.
    fn reach_durability(&self, end: Lsn) -> Result<()> {
        let core = &self.database.core;
        let Some(log) = core.log() else { return Ok(()) };
        match self.options.durability {
            // Files of what it has dropped go: that must not be known no more after a crash.
            _ if !self.defining.is_empty() => log.make_durable(end),
            Durability::Durable => log.make_durable(end),
            Durability::Relaxed => log.write_out().inspect(|()| _ = core.maintenance.ask(Work::Sync)),
            Durability::Off => Ok(()),
        }
    }

    /// A snapshot of this transaction has ended: perhaps the last one that needed something.
    fn snapshot_ended(&self) {
        let core = &self.database.core;
        self.database.sweep_former();
        if core.leftovers.may_be_there() {
            core.maintenance.ask(Work::Leftovers);
        }
    }

    /// Puts the record of the commit into the log; where that ends. `None` when there is nothing to commit.
    pub(in crate::database) fn log_commit(&self) -> Result<Option<Lsn>> {
        self.database.core.log_commit(&self.state)
    }

    /// Takes everything back.
    ///
    /// # Errors
    /// When a page or the log cannot be read: the rest is taken back when the database is opened again, and until then nothing is written.
    pub fn rollback(mut self) -> Result<()> {
        self.refuse_inside_visitor()?;
        self.end_by_rollback()
    }

    /// Refuses to take something back inside a visitor: its page is latched.
    pub(super) fn refuse_inside_visitor(&self) -> Result<()> {
        match is_visiting(&self.database.core) {
            true => Err(Error::Busy("this thread is visiting rows; take changes back after the visit".into())),
            false => Ok(()),
        }
    }

    pub(super) fn end_by_rollback(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(());
        }
        let core = Arc::clone(&self.database.core);
        if let Some(serializable) = self.serializable().filter(|_| self.snapshot.is_some()) {
            serializable.aborted(self.state.id());
        }
        (self.snapshot, self.pin) = (None, None);
        if let Err(error) = self.check_whole().and_then(|()| self.take_back(0)).and_then(|()| self.database.log_rolled_back(&self.state)) {
            core.poison(&error);
            core.locks.release_all(self.state.id());
            return Err(error);
        }
        if self.state.last_lsn() == 0 {
            // Nothing was changed: what others have of it, such as a read view, is as good as after a commit.
            core.transactions.end_read_only(&self.state);
        } else {
            core.transactions.abort(&self.state);
        }
        self.leave_tables(None);
        core.release_undo_room(&self.state);
        self.database.bring_rows_home(&self.state);
        core.locks.release_all(self.state.id());
        self.snapshot_ended();
        self.database.resume_renewals(self.state.id());
        Ok(())
    }

    /// Refuses when a page has a change of this transaction that the log does not have. It stays active then, so that nobody sees the change before the database is opened again, without it.
    pub(super) fn check_whole(&self) -> Result<()> {
        match self.state.is_cut_short() {
            true => Err(Error::Poisoned(format!("a change of transaction {} was cut short", self.state.id()))),
            false => Ok(()),
        }
    }

    pub(super) fn take_back(&mut self, until: Lsn) -> Result<()> {
        // First the list: a checkpoint in between must not have what is not left any more, while a transaction without an end is taken back wholly after a crash.
        self.database.core.leftovers.taken_back(self.state.id(), until);
        self.known_keys.taken_back(until);
        self.moves.retain(|made| made.at < until);
        self.database.take_back(&self.state, until)?;
        self.defining.taken_back(&self.database, until);
        Ok(())
    }
}

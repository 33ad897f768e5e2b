//! Transactions of a session: one that BEGIN opened, or one for the single statement that runs.
//!
//! Invariant: what reads the rows of a transaction, its cursors, ends before it.

use super::cursor::Cursor;
use super::{Done, Session};
use crate::expression::Now;
use crate::planned::Plans;
use crate::sessions::{Doing, InTransaction};
use crate::settings::Settings;
use crate::{Database, SqlError, SqlResult};
use pagefold_engine::database::{Durability, Isolation, Savepoint, Transaction, TransactionOptions};
use pagefold_io::Clock;
use sqlparser::ast;
use std::collections::HashMap;
use std::sync::Arc;

/// What is set when a transaction has ended.
#[derive(Clone, Debug)]
pub(crate) struct After {
    commit: Settings,
    rollback: Settings,
}

/// A savepoint, and what was set there: now, and after the transaction.
#[derive(Debug)]
pub(super) struct NamedSavepoint {
    pub(super) name: String,
    savepoint: Savepoint,
    settings: (Settings, Option<Box<After>>),
}

/// A transaction of a session.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) transaction: Transaction<'static>,
    /// BEGIN opened it.
    pub(crate) is_explicit: bool,
    /// A statement has failed: only rollback is left, to a savepoint or of all.
    pub(super) has_failed: bool,
    pub(super) savepoints: Vec<NamedSavepoint>,
    /// Microseconds since 1970 at which it began.
    pub(crate) began: i64,
    pub(super) options: TransactionOptions,
    pub(super) has_run: bool,
    /// It may use the plans of the session, where definitions are the newest ones.
    pub(super) finds_newest: bool,
    pub(super) cursors: HashMap<String, Cursor>,
    /// Settings that it has changed, as they are when it has ended; nothing as long as there are none.
    pub(super) after: Option<Box<After>>,
    /// Plans of its own: of what it has made itself, or of its snapshot.
    pub(super) plans: Plans,
    /// Lets others see that the session has it.
    _shown: InTransaction,
}

/// Microseconds since 1970.
pub(crate) fn unix_micros(clock: &dyn Clock) -> i64 {
    i64::try_from(clock.unix_time().as_micros()).unwrap_or(i64::MAX)
}

impl Open {
    /// What the time is for a statement that began then.
    pub(super) fn now(&self, statement: i64) -> Now {
        Now { transaction: self.began, statement: statement.max(self.began) }
    }

    pub(super) fn new(database: &Database, clock: &dyn Clock, doing: &Arc<Doing>, options: TransactionOptions, is_explicit: bool) -> Open {
        let transaction = database.engine().begin_owned(options);
        let began = unix_micros(clock);
        Open {
            _shown: doing.within(transaction.id()),
            transaction,
            is_explicit,
            has_failed: false,
            savepoints: Vec::new(),
            began,
            options,
            has_run: false,
            finds_newest: true,
            cursors: HashMap::new(),
            after: None,
            plans: Plans::default(),
        }
    }
}

impl Session {
    /// A statement has failed: its own transaction ends, and one that BEGIN opened has failed with it.
    pub(crate) fn fail(&mut self) {
        self.listed.doing.ends();
        match &mut self.open {
            Some(open) if open.is_explicit => open.has_failed = true,
            _ => {
                if let Some(open) = self.open.take() {
                    // The error of the statement is told; the next open of the database ends what this cannot.
                    drop(open.transaction.rollback());
                }
            }
        }
    }

    /// The transaction; one for the statement, if there is none.
    pub(crate) fn begin(&mut self) -> &mut Open {
        let options = self.settings.options();
        let (clock, database, doing) = (&self.clock, &self.database, &self.listed.doing);
        self.open.get_or_insert_with(|| Open::new(database, clock.as_ref(), doing, options, false))
    }

    /// The answer to a statement is gone.
    pub(crate) fn answered(&mut self) -> SqlResult<()> {
        self.listed.doing.ends();
        self.end_statement()
    }

    /// Ends the transaction of a single statement.
    pub(crate) fn end_statement(&mut self) -> SqlResult<()> {
        match &self.open {
            Some(open) if !open.is_explicit => {}
            _ => return Ok(()),
        }
        match self.open.take() {
            Some(open) => self.settle(open),
            None => Ok(()),
        }
    }

    /// Commits. Numbers of sequences that the transaction was given are never given again then, also when it has changed nothing.
    pub(super) fn settle(&self, open: Open) -> SqlResult<()> {
        open.transaction.commit()?;
        let taken = self.drawn.settled();
        if taken == 0 {
            return Ok(());
        }
        match open.options.durability {
            Durability::Durable => Ok(self.database.engine().make_durable(taken)?),
            _ => Ok(()),
        }
    }

    pub(super) fn begin_explicit(&mut self, modes: &[ast::TransactionMode]) -> SqlResult<Done> {
        let mut options = self.settings.options();
        set_modes(&mut options, modes)?;
        if self.open.is_none() {
            self.open = Some(Open::new(&self.database, self.clock.as_ref(), &self.listed.doing, options, true));
        }
        Ok(Done::tag("BEGIN"))
    }

    pub(super) fn explicit(&mut self, what: &str) -> SqlResult<&mut Open> {
        match &mut self.open {
            Some(open) if open.is_explicit => Ok(open),
            _ => Err(SqlError::new("25P01", format!("{what} can only be used in transaction blocks"))),
        }
    }

    pub(super) fn commit(&mut self, chain: bool) -> SqlResult<Done> {
        if chain {
            self.explicit("COMMIT AND CHAIN")?;
        }
        let Some(mut open) = self.open.take() else { return Ok(Done::tag("COMMIT")) };
        self.settings_after(&mut open, true);
        // What reads the transaction's rows goes before it.
        open.cursors.clear();
        let options = open.options;
        let tag = if open.has_failed {
            open.transaction.rollback()?;
            "ROLLBACK"
        } else {
            self.settle(open)?;
            "COMMIT"
        };
        if chain {
            self.open = Some(Open::new(&self.database, self.clock.as_ref(), &self.listed.doing, options, true));
        }
        Ok(Done::tag(tag))
    }

    /// What is set when a transaction has ended: of SET LOCAL nothing, of SET what was committed.
    fn settings_after(&mut self, open: &mut Open, commits: bool) {
        if let Some(after) = open.after.take() {
            self.settings = if commits && !open.has_failed { after.commit } else { after.rollback };
        }
    }

    /// SET and RESET. `is_local`: up to the end of the transaction.
    pub(super) fn change_settings(&mut self, is_local: bool, change: impl Fn(&mut Settings) -> SqlResult<()>) -> SqlResult<()> {
        match self.open.as_mut().filter(|open| open.is_explicit) {
            Some(open) => {
                let unchanged = || Box::new(After { commit: self.settings.clone(), rollback: self.settings.clone() });
                let mut after = open.after.clone().unwrap_or_else(unchanged);
                if !is_local {
                    change(&mut after.commit)?;
                }
                change(&mut self.settings)?;
                open.after = Some(after);
                Ok(())
            }
            // Its transaction is that of the statement: it would end with it.
            None if is_local => change(&mut self.settings.clone()),
            None => change(&mut self.settings),
        }
    }

    pub(super) fn savepoint(&mut self, name: String) -> SqlResult<Done> {
        let settings = self.settings.clone();
        let open = self.explicit("SAVEPOINT")?;
        let (savepoint, settings) = (open.transaction.savepoint(), (settings, open.after.clone()));
        open.savepoints.push(NamedSavepoint { name, savepoint, settings });
        Ok(Done::tag("SAVEPOINT"))
    }

    pub(super) fn rollback(&mut self, chain: bool) -> SqlResult<Done> {
        if chain {
            self.explicit("ROLLBACK AND CHAIN")?;
        }
        if let Some(mut open) = self.open.take() {
            self.settings_after(&mut open, false);
            open.cursors.clear();
            let options = open.options;
            open.transaction.rollback()?;
            if chain {
                self.open = Some(Open::new(&self.database, self.clock.as_ref(), &self.listed.doing, options, true));
            }
        }
        Ok(Done::tag("ROLLBACK"))
    }

    pub(super) fn roll_back_to(&mut self, wanted: &str) -> SqlResult<Done> {
        let open = self.explicit("ROLLBACK TO SAVEPOINT")?;
        let Some(at) = open.savepoints.iter().rposition(|own| own.name == wanted) else { return Err(no_savepoint(wanted)) };
        open.close_cursors_since(at);
        open.transaction.roll_back_to(open.savepoints[at].savepoint)?;
        open.savepoints.truncate(at + 1);
        open.has_failed = false;
        open.plans = Plans::default();
        let settings = open.savepoints[at].settings.clone();
        open.after = settings.1;
        self.settings = settings.0;
        Ok(Done::tag("ROLLBACK"))
    }
}

/// What SET TRANSACTION and BEGIN say.
pub(super) fn set_modes(options: &mut TransactionOptions, modes: &[ast::TransactionMode]) -> SqlResult<()> {
    for mode in modes {
        match mode {
            ast::TransactionMode::AccessMode(mode) => options.read_only = *mode == ast::TransactionAccessMode::ReadOnly,
            ast::TransactionMode::IsolationLevel(level) => {
                options.isolation = match level {
                    // As in PostgreSQL, nobody sees what is not committed.
                    ast::TransactionIsolationLevel::ReadUncommitted | ast::TransactionIsolationLevel::ReadCommitted => {
                        Isolation::ReadCommitted
                    }
                    ast::TransactionIsolationLevel::RepeatableRead | ast::TransactionIsolationLevel::Snapshot => Isolation::RepeatableRead,
                    ast::TransactionIsolationLevel::Serializable => Isolation::Serializable,
                }
            }
        }
    }
    Ok(())
}

pub(super) fn no_savepoint(name: &str) -> SqlError {
    SqlError::new("3B001", format!("savepoint \"{name}\" does not exist"))
}

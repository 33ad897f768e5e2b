//! A database that speaks SQL: what all its sessions share.

use crate::sequences::{Drawn, SequenceCall, SequenceRef, Sequences};
use crate::sessions::{Listed, SessionNow, Sessions};
use crate::temporary::PREFIX;
use crate::{Analytics, Session, SqlError, SqlResult, Utilities};
use pagefold_engine::database as engine;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A database that speaks SQL. A clone is the same one.
#[derive(Clone, Debug)]
pub struct Database {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    engine: Arc<engine::Database>,
    sequences: Sequences,
    sessions: Arc<Sessions>,
    utilities: Option<Arc<dyn Utilities>>,
    analytics: Option<Arc<dyn Analytics>>,
    /// Statements that were run by it, or a part of them.
    analytics_statements: AtomicU64,
    /// Sessions that have made temporary tables.
    temporary: Mutex<u32>,
}

impl Database {
    /// Over one that is open. Of one database there is to be one of these in a process: its sessions share numbers of sequences.
    #[must_use]
    pub fn new(engine: Arc<engine::Database>) -> Database {
        Database::sharing(engine, None, None)
    }

    /// The same with utilities as statements: REORG, ESTIMATE and others.
    #[must_use]
    pub fn with_utilities(engine: Arc<engine::Database>, utilities: Arc<dyn Utilities>) -> Database {
        Database::sharing(engine, Some(utilities), None)
    }

    /// The same, where large queries are run by batches.
    #[must_use]
    pub fn with_analytics(engine: Arc<engine::Database>, utilities: Option<Arc<dyn Utilities>>, analytics: Arc<dyn Analytics>) -> Database {
        Database::sharing(engine, utilities, Some(analytics))
    }

    fn sharing(engine: Arc<engine::Database>, utilities: Option<Arc<dyn Utilities>>, analytics: Option<Arc<dyn Analytics>>) -> Database {
        let (sequences, sessions, temporary) = (Sequences::default(), Arc::default(), Mutex::default());
        let analytics_statements = AtomicU64::new(0);
        Database { shared: Arc::new(Shared { engine, sequences, sessions, utilities, analytics, analytics_statements, temporary }) }
    }

    pub(crate) fn analytics(&self) -> Option<&Arc<dyn Analytics>> {
        self.shared.analytics.as_ref()
    }

    pub(crate) fn count_analytics(&self) {
        self.shared.analytics_statements.fetch_add(1, Ordering::Relaxed);
    }

    /// Statements that were run by batches, or a part of them.
    #[must_use]
    pub fn analytics_statements(&self) -> u64 {
        self.shared.analytics_statements.load(Ordering::Relaxed)
    }

    pub(crate) fn utilities(&self) -> Option<&Arc<dyn Utilities>> {
        self.shared.utilities.as_ref()
    }

    /// Another session has come.
    pub(crate) fn enter_session(&self) -> Listed {
        self.shared.sessions.enter()
    }

    /// What all sessions do, at this moment of the monotonic clock.
    pub(crate) fn sessions(&self, clock: Duration) -> Vec<SessionNow> {
        self.shared.sessions.now(clock)
    }

    /// A new session, without a transaction.
    #[must_use]
    pub fn session(&self) -> Session {
        Session::new(self.clone())
    }

    /// A schema for temporary tables of a session. Those that are there when the first is asked for were left by a process that is no more: they go.
    pub(crate) fn temporary_schema(&self) -> SqlResult<Arc<str>> {
        let mut count = self.shared.temporary.lock().unwrap_or_else(PoisonError::into_inner);
        if *count == 0 {
            self.session().drop_left_temporary()?;
        }
        *count += 1;
        Ok(format!("{PREFIX}{count}").into())
    }

    /// The engine's own interface.
    #[must_use]
    pub fn engine(&self) -> &Arc<engine::Database> {
        &self.shared.engine
    }

    /// A number of a sequence, for a session that was given these.
    pub(crate) fn number(&self, call: &SequenceCall, drawn: &Drawn) -> SqlResult<i64> {
        match call {
            SequenceCall::Next(sequence) => {
                let (number, taken) = self.shared.sequences.next(&self.shared.engine, sequence)?;
                drawn.given(sequence, number, taken);
                Ok(number)
            }
            SequenceCall::Current(sequence) => drawn.current(sequence),
            SequenceCall::Last => drawn.last(),
            SequenceCall::Set(sequence) => Err(SqlError::new("XX000", format!("a number of \"{}\" that is set", sequence.name))),
        }
    }

    /// The next number of a sequence is this one, or the one behind it where this is given.
    pub(crate) fn set_number(&self, sequence: &SequenceRef, number: i64, is_given: bool, drawn: &Drawn) -> SqlResult<()> {
        let taken = self.shared.sequences.set(&self.shared.engine, sequence, number, is_given)?;
        drawn.set(sequence, is_given.then_some(number), taken);
        Ok(())
    }
}

//! The sessions of a database, and what each does: for `pagefold_statements`.
//!
//! Invariants:
//! - a session is listed from its beginning to its end;
//! - what a statement tells costs it a look at the clock, and where its text is not that of the one before a lock that nobody else wants: no copy of the text.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// All sessions.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    next: AtomicU64,
    listed: Mutex<BTreeMap<u64, Arc<Doing>>>,
}

/// What a session does.
#[derive(Debug, Default)]
pub(crate) struct Doing {
    id: u64,
    /// 0: it has none.
    transaction: AtomicU64,
    is_running: AtomicBool,
    statements: AtomicU64,
    /// When the last one began: nanoseconds of the monotonic clock.
    began: AtomicU64,
    /// The statement that runs, or ran last.
    last: Mutex<Option<Arc<str>>>,
}

/// A session at one moment.
#[derive(Clone, Debug)]
pub(crate) struct SessionNow {
    pub(crate) id: u64,
    pub(crate) transaction: Option<u64>,
    pub(crate) is_running: bool,
    /// Statements that it has begun.
    pub(crate) statements: u64,
    /// The one that runs, or ran last, and how long ago it began.
    pub(crate) statement: Option<(Arc<str>, Duration)>,
}

/// A session is listed for as long as this lives.
#[derive(Debug)]
pub(crate) struct Listed {
    sessions: Arc<Sessions>,
    pub(crate) doing: Arc<Doing>,
    /// As `doing` has it, for this session alone.
    last: Option<Arc<str>>,
}

impl Listed {
    /// A statement begins.
    pub(crate) fn begins(&mut self, text: &Arc<str>, clock: Duration) {
        let doing = &self.doing;
        if !self.last.as_ref().is_some_and(|last| Arc::ptr_eq(last, text)) {
            *doing.last() = Some(Arc::clone(text));
            self.last = Some(Arc::clone(text));
        }
        doing.began.store(u64::try_from(clock.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        // Nobody else counts here.
        doing.statements.store(doing.statements.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        doing.is_running.store(true, Ordering::Relaxed);
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.sessions.listed().remove(&self.doing.id);
    }
}

/// A session has this transaction for as long as this lives.
#[derive(Debug)]
pub(crate) struct InTransaction {
    doing: Arc<Doing>,
    id: u64,
}

impl Drop for InTransaction {
    fn drop(&mut self) {
        // Another one may have come already.
        let _ = self.doing.transaction.compare_exchange(self.id, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Sessions {
    fn listed(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Doing>>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another one has come.
    pub(crate) fn enter(self: &Arc<Self>) -> Listed {
        let doing = Arc::new(Doing { id: self.next.fetch_add(1, Ordering::Relaxed) + 1, ..Doing::default() });
        self.listed().insert(doing.id, Arc::clone(&doing));
        Listed { sessions: Arc::clone(self), doing, last: None }
    }

    /// All of them, by number, at this moment of the monotonic clock.
    pub(crate) fn now(&self, clock: Duration) -> Vec<SessionNow> {
        let all: Vec<Arc<Doing>> = self.listed().values().cloned().collect();
        all.iter().map(|doing| doing.now(clock)).collect()
    }
}

impl Doing {
    fn last(&self) -> MutexGuard<'_, Option<Arc<str>>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The statement has ended.
    pub(crate) fn ends(&self) {
        self.is_running.store(false, Ordering::Relaxed);
    }

    /// A transaction has begun.
    pub(crate) fn within(self: &Arc<Self>, id: u64) -> InTransaction {
        self.transaction.store(id, Ordering::Relaxed);
        InTransaction { doing: Arc::clone(self), id }
    }

    fn now(&self, clock: Duration) -> SessionNow {
        let (last, began) = (self.last().clone(), Duration::from_nanos(self.began.load(Ordering::Relaxed)));
        let transaction = self.transaction.load(Ordering::Relaxed);
        SessionNow {
            id: self.id,
            transaction: (transaction != 0).then_some(transaction),
            is_running: self.is_running.load(Ordering::Relaxed),
            statements: self.statements.load(Ordering::Relaxed),
            statement: last.map(|text| (text, clock.saturating_sub(began))),
        }
    }
}

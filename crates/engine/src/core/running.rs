//! Utilities that run just now, and how far they are: what others may look at.
//!
//! Invariants:
//! - what is registered goes when the utility has ended, however it did;
//! - telling costs one atomic addition; a lock is taken only where a phase begins or ends.

use crate::{Progress, Unit, spans};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// So many are shown at most.
const SHOWN_MAX: usize = 64;

/// A phase of a utility.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Phase {
    pub(crate) name: String,
    pub(crate) total: Option<u64>,
    pub(crate) unit: &'static str,
}

#[derive(Debug)]
struct One {
    name: String,
    begun: Duration,
    phase: Mutex<Phase>,
    done: AtomicU64,
}

/// A utility as it is at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunningUtility {
    pub(crate) name: String,
    pub(crate) begun: Duration,
    pub(crate) phase: Phase,
    pub(crate) done: u64,
}

/// All that run.
#[derive(Debug, Default)]
pub(crate) struct RunningUtilities(Mutex<Vec<Arc<One>>>);

impl RunningUtilities {
    /// From now on what is told to the progress is seen here as well.
    pub(crate) fn watch<'a>(&'a self, name: String, begun: Duration, progress: &'a dyn Progress) -> Watched<'a> {
        let span = spans::utility(&name);
        let one = Arc::new(One { name, begun, phase: Mutex::default(), done: AtomicU64::new(0) });
        self.0.lock().push(Arc::clone(&one));
        Watched { all: self, one, progress, span }
    }

    /// Those that run now.
    pub(crate) fn now(&self) -> Vec<RunningUtility> {
        let all: Vec<Arc<One>> = self.0.lock().iter().take(SHOWN_MAX).cloned().collect();
        let of = |one: &Arc<One>| RunningUtility {
            name: one.name.clone(),
            begun: one.begun,
            phase: one.phase.lock().clone(),
            done: one.done.load(Ordering::Relaxed),
        };
        all.iter().map(of).collect()
    }
}

/// A progress that others can see.
pub struct Watched<'a> {
    all: &'a RunningUtilities,
    one: Arc<One>,
    progress: &'a dyn Progress,
    span: tracing::Span,
}

impl std::fmt::Debug for Watched<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.one.fmt(f)
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.all.0.lock().retain(|one| !Arc::ptr_eq(one, &self.one));
    }
}

impl Progress for Watched<'_> {
    fn start(&self, phase: &str, total: Option<u64>, unit: Unit) {
        let name = match unit {
            Unit::Bytes => "bytes",
            Unit::Rows => "rows",
            Unit::Pages => "pages",
            Unit::Partitions => "partitions",
        };
        spans::phase(&self.span, phase, total, name);
        *self.one.phase.lock() = Phase { name: phase.to_owned(), total, unit: name };
        self.one.done.store(0, Ordering::Relaxed);
        self.progress.start(phase, total, unit);
    }

    fn advance(&self, n: u64) {
        self.one.done.fetch_add(n, Ordering::Relaxed);
        self.progress.advance(n);
    }

    fn finish(&self) {
        self.progress.finish();
    }

    fn interrupted(&self) -> bool {
        self.progress.interrupted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Silent;

    #[test]
    fn what_runs_is_seen_until_it_ends() {
        let all = RunningUtilities::default();
        {
            let watched = all.watch("reorg t".into(), Duration::from_secs(3), &Silent);
            watched.start("reading", Some(100), Unit::Rows);
            watched.advance(30);
            watched.advance(12);
            let now = all.now();
            assert_eq!((now[0].name.as_str(), now[0].done, now[0].phase.total, now[0].phase.unit), ("reorg t", 42, Some(100), "rows"));
            // Another phase begins anew.
            watched.start("building", None, Unit::Pages);
            assert_eq!((all.now()[0].done, all.now()[0].phase.name.as_str()), (0, "building"));
            let _other = all.watch("load u".into(), Duration::ZERO, &Silent);
            assert_eq!(all.now().len(), 2);
        }
        assert!(all.now().is_empty());
    }
}

//! The same for each partition, several at once.

use crate::error::no_thread;
use crate::{Progress, Result, Unit};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Builder;

/// Tells how far all are, in partitions, and passes the wish to stop on.
struct Shared<'a> {
    outer: &'a dyn Progress,
    failed: &'a AtomicBool,
}

impl Progress for Shared<'_> {
    fn start(&self, _phase: &str, _total: Option<u64>, _unit: Unit) {}
    fn advance(&self, _n: u64) {}
    fn finish(&self) {}
    fn interrupted(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.outer.interrupted()
    }
}

/// Runs something for each of these, on so many threads at most (0: as many as there are processors, at most four). What came of each, in their
/// order. After an error those that have not begun do not begin, and those that have are asked to stop.
///
/// # Errors
/// The first.
pub(crate) fn each<T: Sync, R: Send>(
    what: &str,
    all: &[T],
    threads: usize,
    progress: &dyn Progress,
    run: impl Fn(&T, &dyn Progress) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let threads = if threads > 0 { threads } else { std::thread::available_parallelism().map_or(1, usize::from).min(4) };
    progress.start(what, Some(all.len() as u64), Unit::Partitions);
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let outcomes: Vec<Mutex<Option<Result<R>>>> = all.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        let shared = Shared { outer: progress, failed: &failed };
        while !failed.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = all.get(at) else { return };
            let outcome = run(one, &shared);
            if outcome.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            *outcomes[at].lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(outcome);
            progress.advance(1);
        }
    };
    std::thread::scope(|scope| -> Result<()> {
        // This thread is one of them.
        for _ in 1..threads.min(all.len()) {
            Builder::new().spawn_scoped(scope, work).map_err(|error| no_thread(&error))?;
        }
        work();
        Ok(())
    })?;
    let mut found = Vec::with_capacity(all.len());
    let mut interrupted = None;
    for outcome in outcomes {
        match outcome.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            Some(Ok(done)) => found.push(done),
            // What failed comes before those who were asked to stop for it.
            Some(Err(crate::Error::Interrupted)) | None => interrupted = Some(crate::Error::Interrupted),
            Some(Err(error)) => return Err(error),
        }
    }
    progress.finish();
    interrupted.map_or(Ok(found), Err)
}

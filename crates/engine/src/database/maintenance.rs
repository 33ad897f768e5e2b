//! The thread that keeps an open database in order: checkpoints when the log has grown, removal of what commits have left for readers that are gone, the sync of relaxed commits.
//!
//! Invariants:
//! - it does only what others could do at any time, so nothing depends on when it comes round to it, or whether there is one;
//! - an error it meets is final for the log or a data set, which then say so to whoever writes next; others, such as a full disk, are met again by the next attempt.

use super::open::DatabaseState;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// So long relaxed commits are gathered for one sync.
const SYNC_DELAY: Duration = Duration::from_millis(20);

/// Something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Write a checkpoint.
    Checkpoint,
    /// Remove what no snapshot needs any more.
    Leftovers,
    /// Make the log durable.
    Sync,
}

#[derive(Debug, Default)]
struct Asked {
    /// There is a thread.
    running: bool,
    stop: bool,
    work: Vec<Work>,
}

/// What the thread is asked for.
#[derive(Debug, Default)]
pub(crate) struct Maintenance {
    asked: Mutex<Asked>,
    arrived: Condvar,
}

impl Maintenance {
    /// Asks for something. False when there is no thread to do it.
    pub(crate) fn ask(&self, work: Work) -> bool {
        let mut asked = self.asked.lock();
        if asked.running && !asked.work.contains(&work) {
            asked.work.push(work);
            self.arrived.notify_one();
        }
        asked.running
    }

    /// What is to be done next; `None` when the thread is to end.
    fn next(&self) -> Option<Work> {
        let mut asked = self.asked.lock();
        loop {
            if asked.stop {
                asked.running = false;
                return None;
            }
            if !asked.work.is_empty() {
                return Some(asked.work.remove(0));
            }
            self.arrived.wait(&mut asked);
        }
    }
}

/// The thread; ends when this is dropped.
#[derive(Debug)]
pub(super) struct MaintenanceThread {
    state: Arc<DatabaseState>,
    thread: Option<JoinHandle<()>>,
}

impl MaintenanceThread {
    /// Starts it. `None` when the system has no thread: everything still works, only later.
    pub(super) fn start(state: &Arc<DatabaseState>) -> Option<MaintenanceThread> {
        let worker = Arc::clone(state);
        state.core.maintenance.asked.lock().running = true;
        match std::thread::Builder::new().name("pagefold-maintenance".into()).spawn(move || worker.maintain()) {
            Ok(thread) => Some(MaintenanceThread { state: Arc::clone(state), thread: Some(thread) }),
            Err(_) => {
                state.core.maintenance.asked.lock().running = false;
                None
            }
        }
    }
}

impl Drop for MaintenanceThread {
    fn drop(&mut self) {
        let maintenance = &self.state.core.maintenance;
        maintenance.asked.lock().stop = true;
        maintenance.arrived.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic in it has been reported; there is nothing to add.
            let _ = thread.join();
        }
    }
}

impl DatabaseState {
    fn maintain(&self) {
        while let Some(work) = self.core.maintenance.next() {
            let done = match work {
                Work::Checkpoint if self.log_bytes_since_checkpoint() < self.core.checkpoint_bytes => Ok(()),
                Work::Checkpoint => self.checkpoint(),
                Work::Leftovers => self.remove_leftovers(),
                Work::Sync => {
                    self.core.manager.clock().sleep(SYNC_DELAY);
                    self.core.log().map_or(Ok(()), |log| log.make_durable(log.end()))
                }
            };
            drop(done);
        }
    }
}

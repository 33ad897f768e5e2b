//! The threads that keep an open database in order: one for checkpoints when the log has grown, removal of what commits have left for readers that are gone, the sync of relaxed commits; another for what takes
//! long, dictionaries.
//!
//! Invariants:
//! - they do only what others could do at any time, so nothing depends on when they come round to it, or whether there are any;
//! - an error they meet is final for the log or a data set, which then say so to whoever writes next; others, such as a full disk, are met again by the next attempt;
//! - a thread counts as running for as long as it does, however it ends. What a panic has left half done nobody knows: the next who writes is told, and nothing is written any more.

use super::open::DatabaseState;
use crate::core::{Core, Maintenance, Work};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// So long relaxed commits are gathered for one sync.
const SYNC_DELAY: Duration = Duration::from_millis(20);

/// The life of a thread, in the thread itself.
struct Running<'a> {
    core: &'a Core,
    asked: &'a Maintenance,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.core.poison(&format!("the thread {} panicked", std::thread::current().name().unwrap_or_default()));
        }
        self.asked.ended();
    }
}

/// A thread; ends when this is dropped.
#[derive(Debug)]
pub(super) struct MaintenanceThread {
    state: Arc<DatabaseState>,
    asked_of: fn(&Core) -> &Maintenance,
    thread: Option<JoinHandle<()>>,
}

impl MaintenanceThread {
    /// Starts the one for what is short. `None` when the system has no thread: everything still works, only later.
    pub(super) fn start(state: &Arc<DatabaseState>) -> Option<MaintenanceThread> {
        MaintenanceThread::start_for(state, "pagefold-maintenance", |core| &core.maintenance)
    }

    /// Starts the one for what takes long.
    pub(super) fn start_renewal(state: &Arc<DatabaseState>) -> Option<MaintenanceThread> {
        MaintenanceThread::start_for(state, "pagefold-renewal", |core| &core.renewal)
    }

    fn start_for(state: &Arc<DatabaseState>, name: &str, asked_of: fn(&Core) -> &Maintenance) -> Option<MaintenanceThread> {
        let worker = Arc::clone(state);
        asked_of(&state.core).begins();
        match std::thread::Builder::new().name(name.into()).spawn(move || worker.maintain(asked_of(&worker.core))) {
            Ok(thread) => Some(MaintenanceThread { state: Arc::clone(state), asked_of, thread: Some(thread) }),
            Err(_) => {
                asked_of(&state.core).ended();
                None
            }
        }
    }
}

#[cfg(test)]
impl MaintenanceThread {
    /// Waits until the thread has ended by itself; what it panicked with.
    pub(super) fn join(&mut self) -> std::thread::Result<()> {
        self.thread.take().map_or(Ok(()), JoinHandle::join)
    }
}

impl Drop for MaintenanceThread {
    fn drop(&mut self) {
        (self.asked_of)(&self.state.core).stop();
        if let Some(thread) = self.thread.take() {
            // A panic in it has poisoned the database; there is nothing to add.
            let _ = thread.join();
        }
    }
}

impl DatabaseState {
    fn maintain(&self, asked: &Maintenance) {
        let _running = Running { core: &self.core, asked };
        while let Some(work) = asked.next() {
            let done = match work {
                Work::Checkpoint if self.log_bytes_since_checkpoint() < self.core.checkpoint_bytes => Ok(()),
                Work::Checkpoint => self.checkpoint(),
                Work::Leftovers => self.remove_leftovers_in_background(),
                Work::Dictionary(object_id) => {
                    self.renew_in_background(object_id);
                    Ok(())
                }
                Work::LogSegment => self.core.log().map_or(Ok(()), |log| log.prepare_ahead()),
                Work::LogWrite => self.core.log().map_or(Ok(()), |log| log.write_out()),
                Work::Sync => {
                    self.core.manager.clock().sleep(SYNC_DELAY);
                    self.core.log().map_or(Ok(()), |log| log.make_durable(log.end()))
                }
            };
            drop(done);
            // What was dropped meanwhile stayed for as long as this had it.
            self.sweep_former();
        }
    }
}

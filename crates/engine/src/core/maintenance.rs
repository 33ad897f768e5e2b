//! What threads in the background are asked for: by whoever works on the database, of whoever keeps it in order, if there is a thread.

use parking_lot::{Condvar, Mutex};

/// Something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Write a checkpoint.
    Checkpoint,
    /// Remove what no snapshot needs any more.
    Leftovers,
    /// Make the log durable.
    Sync,
    /// Make the next segment of the log.
    LogSegment,
    /// Write what has been logged, without a sync.
    LogWrite,
    /// Look at the dictionaries of this table.
    Dictionary(u32),
}

#[derive(Debug, Default)]
struct Asked {
    /// There is a thread.
    running: bool,
    stop: bool,
    work: Vec<Work>,
}

/// What a thread is asked for.
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

    /// There is a thread from now on.
    pub(crate) fn begins(&self) {
        self.asked.lock().running = true;
    }

    /// The thread has ended, or could not be started.
    pub(crate) fn ended(&self) {
        let mut asked = self.asked.lock();
        asked.running = false;
        asked.work.clear();
    }

    /// The thread is to end.
    pub(crate) fn stop(&self) {
        self.asked.lock().stop = true;
        self.arrived.notify_one();
    }

    /// Is the thread to end? What takes long looks now and then.
    pub(crate) fn is_stopping(&self) -> bool {
        self.asked.lock().stop
    }

    /// What is to be done next; `None` when the thread is to end.
    pub(crate) fn next(&self) -> Option<Work> {
        let mut asked = self.asked.lock();
        loop {
            if asked.stop {
                return None;
            }
            if !asked.work.is_empty() {
                return Some(asked.work.remove(0));
            }
            self.arrived.wait(&mut asked);
        }
    }
}

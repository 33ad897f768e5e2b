//! Ends the test when nothing moves any more: a hang is shown with what was going on, and not by a time-out somewhere else.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

/// So long nothing moves in a hang, and in nothing else.
const STILL: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Shared {
    state: Mutex<(u64, bool)>,
    ended: Condvar,
}

/// A thread that looks for progress until this is dropped.
pub(crate) struct Watch {
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Watch {
    /// `describe` says what is going on.
    pub(crate) fn new(describe: impl Fn() -> String + Send + 'static) -> Watch {
        let shared = Arc::new(Shared::default());
        let watched = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let mut state = watched.state.lock();
            let mut seen = state.0;
            while !state.1 {
                let in_time = watched.ended.wait_for(&mut state, STILL);
                if in_time.timed_out() && state.0 == seen && !state.1 {
                    eprintln!("no progress for {} s:\n{}", STILL.as_secs(), describe());
                    // The threads that hang cannot be ended.
                    std::process::exit(101);
                }
                seen = state.0;
            }
        });
        Watch { shared, thread: Some(thread) }
    }

    /// Something has been done.
    pub(crate) fn progress(&self) {
        self.shared.state.lock().0 += 1;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.state.lock().1 = true;
        self.shared.ended.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

//! The live view: what the process that writes does, for whoever looks on from another process.
//!
//! Who looks holds a shared lock on the file `live/asked`. While somebody does, [`DatabaseState::metrics`] go into the file `live/view` once a second, into its two places in turn.
//!
//! Invariants:
//! - when nobody looks, the thread finds out once a second that a file is not there, and does nothing else;
//! - nothing here keeps anybody from anything: no lock is waited for, what cannot be written is not, and no error goes anywhere;
//! - a view says when it was written and by which opening of the database, so an old one is known for what it is.

use super::open::{DatabaseState, new_id};
use crate::Result;
use crate::directory::make_directory;
use pagefold_format::live_view::{LIVE_PLACE_BYTES, LiveView};
use pagefold_io::{Clock, File, Lock, LockKind, OpenOptions, Storage, read_exact_at};
use parking_lot::{Condvar, Mutex};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

const LIVE_DIRECTORY: &str = "live";
/// Between two views.
pub const LIVE_INTERVAL: Duration = Duration::from_secs(1);
/// The thread that writes has a lock to see whether others have it: for moments.
const ASK_PATIENCE: Duration = Duration::from_secs(1);

fn asked_path(directory: &Path) -> PathBuf {
    directory.join(LIVE_DIRECTORY).join("asked")
}

fn view_path(directory: &Path) -> PathBuf {
    directory.join(LIVE_DIRECTORY).join("view")
}

/// The thread; ends when this is dropped.
#[derive(Debug)]
pub(super) struct LiveThread {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl LiveThread {
    /// `None` when the system has no thread: nobody can look then.
    pub(super) fn start(state: &Arc<DatabaseState>) -> Option<LiveThread> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let (worker, stopped) = (Arc::downgrade(state), Arc::clone(&stop));
        let run = move || {
            let mut showing = None;
            loop {
                let mut is_stopped = stopped.0.lock();
                if !*is_stopped {
                    stopped.1.wait_for(&mut is_stopped, LIVE_INTERVAL);
                }
                if *is_stopped {
                    return;
                }
                drop(is_stopped);
                let Some(state) = worker.upgrade() else { return };
                state.show_if_asked(&mut showing);
            }
        };
        let thread = std::thread::Builder::new().name("pagefold-live".into()).spawn(run).ok()?;
        Some(LiveThread { stop, thread: Some(thread) })
    }
}

impl Drop for LiveThread {
    fn drop(&mut self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // It has nothing that anybody waits for.
            let _ = thread.join();
        }
    }
}

/// What is written while somebody looks.
#[derive(Debug)]
pub(super) struct Showing {
    file: Arc<dyn File>,
    opening: u128,
    sequence: u64,
}

impl DatabaseState {
    /// Once a second: lets see what is done, if somebody wants to.
    pub(super) fn show_if_asked(&self, showing: &mut Option<Showing>) {
        self.core.transactions.tick();
        let shown = self.is_asked().and_then(|asked| if asked { self.show(showing).map(|()| true) } else { Ok(false) });
        // The next time it is begun anew.
        if !matches!(shown, Ok(true)) {
            *showing = None;
        }
    }

    /// Does somebody look? A file that nobody holds is left over.
    fn is_asked(&self) -> Result<bool> {
        let (storage, path) = (self.core.storage.as_ref(), asked_path(&self.core.directory));
        if !storage.exists(&path)? {
            return Ok(false);
        }
        match storage.lock(&path) {
            Ok(_nobody) => {
                storage.remove(&path)?;
                Ok(false)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    fn show(&self, showing: &mut Option<Showing>) -> Result<()> {
        let showing = match showing {
            Some(showing) => showing,
            None => {
                let path = view_path(&self.core.directory);
                let file = self.core.storage.open(&path, &OpenOptions::create())?;
                let opening = new_id(self.core.manager.clock().as_ref(), &path);
                showing.insert(Showing { file, opening, sequence: 0 })
            }
        };
        showing.sequence += 1;
        let unix_time_ns = self.core.manager.clock().unix_time().as_nanos() as u64;
        let view = LiveView { sequence: showing.sequence, opening: showing.opening, unix_time_ns, text: self.metrics() };
        Ok(showing.file.write_at(&view.build(), view.place() * LIVE_PLACE_BYTES as u64)?)
    }
}

/// Somebody who looks on.
#[derive(Debug)]
pub struct Onlooker {
    storage: Arc<dyn Storage>,
    clock: Arc<dyn Clock>,
    directory: PathBuf,
    /// Since when, in nanoseconds since 1970.
    since_ns: u64,
    asked: Option<Box<dyn Lock>>,
    last: Option<LiveView>,
}

impl Onlooker {
    /// Asks the process that writes the database in a directory to show what it does, for as long as this is there.
    ///
    /// # Errors
    /// When nothing can be written there.
    pub fn ask(storage: &Arc<dyn Storage>, clock: &Arc<dyn Clock>, directory: &Path) -> Result<Onlooker> {
        let since_ns = clock.unix_time().as_nanos() as u64;
        let (storage, clock) = (Arc::clone(storage), Arc::clone(clock));
        let mut onlooker = Onlooker { storage, clock, directory: directory.to_path_buf(), since_ns, asked: None, last: None };
        onlooker.ask_again()?;
        Ok(onlooker)
    }

    /// Asks once more: the file may have been taken for one that nobody holds.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn ask_again(&mut self) -> Result<()> {
        make_directory(self.storage.as_ref(), &self.directory.join(LIVE_DIRECTORY))?;
        self.asked = None;
        self.asked = Some(self.storage.lock_within(&asked_path(&self.directory), LockKind::Shared, ASK_PATIENCE)?);
        Ok(())
    }

    /// The newest view that was written since it was asked for; `None` when there is none yet.
    ///
    /// # Errors
    /// Those of the device.
    pub fn look(&mut self) -> Result<Option<&LiveView>> {
        let path = view_path(&self.directory);
        if self.storage.exists(&path)? {
            let file = self.storage.open(&path, &OpenOptions::read_only())?;
            for place in 0..2 {
                let at = place * LIVE_PLACE_BYTES as u64;
                let there = usize::try_from(file.len()?.saturating_sub(at)).map_or(LIVE_PLACE_BYTES, |bytes| bytes.min(LIVE_PLACE_BYTES));
                let mut bytes = vec![0; there];
                read_exact_at(file.as_ref(), &mut bytes, at)?;
                let Some(view) = LiveView::parse(&bytes, place) else { continue };
                let is_new = self.last.as_ref().is_none_or(|last| view.unix_time_ns > last.unix_time_ns);
                if view.unix_time_ns >= self.since_ns && is_new {
                    self.last = Some(view);
                }
            }
        }
        Ok(self.last.as_ref())
    }

    /// How old what was seen last is; without it, how long it has been waited for.
    #[must_use]
    pub fn age(&self) -> Duration {
        let since = self.last.as_ref().map_or(self.since_ns, |last| last.unix_time_ns);
        self.clock.unix_time().saturating_sub(Duration::from_nanos(since))
    }
}

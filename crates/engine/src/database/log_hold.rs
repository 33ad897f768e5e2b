//! Keeping the log while a copy is taken.
//!
//! One lock file says it all: a copy has it locked from before it looks for the last checkpoint until it has read the log; who gives log back locks it for that moment, or gives nothing back.

use crate::{Error, Result};
use pagefold_io::{Clock, Lock, Storage};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

const HOLD_NAME: &str = "log.hold";
/// Giving log back takes moments, archiving it first a while.
const ATTEMPTS: u32 = 400;
const WAIT: Duration = Duration::from_millis(10);

/// While this is there, no log is given back.
#[derive(Debug)]
pub(crate) struct LogHold {
    /// None where nothing can be written: so nobody gives log back either.
    _lock: Option<Box<dyn Lock>>,
}

impl LogHold {
    /// `None` when somebody else has it.
    pub(crate) fn try_take(storage: &dyn Storage, directory: &Path) -> Result<Option<LogHold>> {
        match storage.lock(&directory.join(HOLD_NAME)) {
            Ok(lock) => Ok(Some(LogHold { _lock: Some(lock) })),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits a while for whoever gives log back. On a file system that is read only nobody does.
    pub(crate) fn take(storage: &dyn Storage, clock: &dyn Clock, directory: &Path) -> Result<LogHold> {
        for _ in 0..ATTEMPTS {
            match LogHold::try_take(storage, directory) {
                Ok(Some(hold)) => return Ok(hold),
                Ok(None) => {}
                Err(error) if error.is_kind(&[ErrorKind::ReadOnlyFilesystem]) => return Ok(LogHold { _lock: None }),
                Err(error) => return Err(error),
            }
            clock.sleep(WAIT);
        }
        let who = storage.lock_holder(&directory.join(HOLD_NAME)).map_or(String::new(), |who| format!(" by {who}"));
        Err(Error::Busy(format!("another copy of {} is being taken{who}", directory.display())))
    }
}

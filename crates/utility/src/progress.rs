//! How long work tells how far it is, and asks whether it is to stop.

use crate::{Error, Progress, Result};

/// So much is done: every `step` of it is told, and then it is asked whether to stop.
///
/// # Errors
/// [`Error::Interrupted`] when it is.
pub(crate) fn tell(done: u64, step: u64, progress: &dyn Progress) -> Result<()> {
    if done.is_multiple_of(step) {
        progress.advance(step);
        if progress.interrupted() {
            return Err(Error::Interrupted);
        }
    }
    Ok(())
}

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

/// Values between two looks at whether to stop.
const VALUES_PER_LOOK: usize = 128 * 1024;

/// Rows of so many columns between two looks at whether to stop.
pub(crate) fn rows_per_look(columns: usize) -> u64 {
    (VALUES_PER_LOOK / columns.max(8)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_rows_are_looked_at_more_often() {
        assert_eq!([1, 8, 500, 4096].map(rows_per_look), [16_384, 16_384, 262, 32]);
    }
}

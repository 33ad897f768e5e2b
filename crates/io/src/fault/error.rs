//! The error that stands for the end of the simulated machine.

use std::error::Error;
use std::fmt;
use std::io;

#[derive(Debug)]
struct SimulatedCrash;

impl fmt::Display for SimulatedCrash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("simulated crash")
    }
}

impl Error for SimulatedCrash {}

pub(super) fn simulated_crash() -> io::Error {
    io::Error::other(SimulatedCrash)
}

/// Whether a simulated crash is at the bottom of the error, however it was wrapped.
#[must_use]
pub fn is_simulated_crash(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<SimulatedCrash>() {
            return true;
        }
        // The source of an `io::Error` is the source of what it wraps, not what it wraps.
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{error_at, error_on};
    use std::path::Path;

    #[test]
    fn a_crash_is_recognised_through_layers() {
        let path = Path::new("/x");
        let wrapped = error_on("load", path, error_at("write", path, 7, simulated_crash()));
        assert!(is_simulated_crash(&wrapped));
        assert_eq!(wrapped.to_string(), "load /x: write /x at offset 7: simulated crash");
        assert!(is_simulated_crash(&io::Error::other(wrapped)));
        assert!(!is_simulated_crash(&error_on("write", path, io::Error::from_raw_os_error(5))));
    }
}

//! How a command ends when it does not end well, and the exit code that goes with it.
//!
//! | Exit code | Meaning |
//! |---|---|
//! | 0 | done; also when whoever read the output stopped reading |
//! | 1 | what was asked for failed, or was interrupted; the database is as it was |
//! | 2 | wrong use |

use pagefold::interchange::InterchangeError;
use pagefold::sql::SqlError;
use pagefold::{Error, utility};
use std::io;
use std::process::ExitCode;

/// Result of a command.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Why a command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line asks for something that cannot be.
    Usage(String),
    /// It failed.
    Failed(String),
    /// It failed, and the output has said all there is to say.
    Reported,
    /// Nobody reads the output any more.
    OutputClosed,
}

impl Failure {
    /// The exit code.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Failure::OutputClosed => ExitCode::SUCCESS,
            Failure::Failed(_) | Failure::Reported => ExitCode::from(1),
            Failure::Usage(_) => ExitCode::from(2),
        }
    }

    /// What to tell the user, if anything.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Failure::Usage(message) | Failure::Failed(message) => Some(message),
            Failure::Reported | Failure::OutputClosed => None,
        }
    }
}

/// The only pipe that is written to is standard output.
fn from_io(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::Failed(error.to_string()),
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Failure {
        let detail = error.detail().map_or_else(String::new, |detail| format!("\n  {detail}"));
        Failure::Failed(format!("{} {}{detail}", error.sqlstate(), error.message()))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        from_io(&error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match &error {
            Error::Io(io) => from_io(io),
            Error::Parameter(_) => Failure::Usage(error.to_string()),
            _ => Failure::Failed(error.to_string()),
        }
    }
}

impl From<InterchangeError> for Failure {
    fn from(error: InterchangeError) -> Failure {
        match &error {
            InterchangeError::Io(io) => from_io(io),
            _ => Failure::Failed(error.to_string()),
        }
    }
}

impl From<utility::Error> for Failure {
    fn from(error: utility::Error) -> Failure {
        match error {
            utility::Error::Engine(error) => error.into(),
            utility::Error::Interchange(error) => error.into(),
            utility::Error::Usage(message) => Failure::Usage(message),
            other => Failure::Failed(other.to_string()),
        }
    }
}

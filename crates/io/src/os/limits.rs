//! What the operating system lets a process have.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this process have as many files open as the system allows it to ask for: a reader has every data set open, and shells begin with few. How many that is; `None`: without a limit.
///
/// For programs, not for libraries: the limit is the whole process's, and programs that use `select` need it low.
pub fn allow_open_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    // What cannot be raised stays as it is.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    getrlimit(Resource::Nofile).current
}

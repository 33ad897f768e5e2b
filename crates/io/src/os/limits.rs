//! What the operating system lets a process have, and a thread.

use rustix::process::{Resource, Rlimit, getrlimit, setpriority_process, setrlimit};
use rustix::thread::gettid;

/// A thread of this nice value gets a tenth of what others get while they want the processor, and all of it else.
const BEHIND_OTHERS: i32 = 10;

/// Lets other threads go before this one, for good: for work that nobody waits for.
pub fn let_others_go_first() {
    // Linux has priorities of threads, by their ids. Where it is refused the work is done like any other.
    let _ = setpriority_process(Some(gettid()), BEHIND_OTHERS);
}

/// Lets this process have as many files open as the system allows it to ask for: a reader has every data set open, and shells begin with few. How many that is; `None`: without a limit.
///
/// For programs, not for libraries: the limit is the whole process's, and programs that use `select` need it low.
pub fn allow_open_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    // What cannot be raised stays as it is.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    getrlimit(Resource::Nofile).current
}

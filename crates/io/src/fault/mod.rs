//! A simulated disk for crash and fault tests, replayable by seed.
//!
//! | File | What |
//! |---|---|
//! | `storage` | [`FaultStorage`]: the seam's traits on a simulated disk |
//! | `file` | its files and locks |
//! | `disk` | what the program sees, what is durable, and what lies between |
//! | `image` | the disk as a machine might find it after a crash |
//! | `plan` | which call goes wrong, and how |
//! | `call` | calls, their kinds and their log |

mod call;
mod disk;
mod error;
mod file;
mod image;
mod plan;
mod storage;
#[cfg(test)]
mod tests;

pub use call::{Call, CallKind};
pub use disk::FaultOptions;
pub use error::is_simulated_crash;
pub use image::CrashPolicy;
pub use plan::{Failure, Fault, Repeat, Trigger};
pub use storage::FaultStorage;

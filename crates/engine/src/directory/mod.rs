//! A database directory: the names of its files, its control file, and who may write in it.
//!
//! * `control_file`: which state counts
//! * `making`: what may be there before a database is made, and the lock of who writes
//! * `scratch`: files of one process

mod control_file;
mod making;
mod scratch;

pub use control_file::{ControlFile, control_path, read_control};
pub(crate) use control_file::{create_control, empty_slot, sync_what_was_found, write_control};
pub use making::lock_path;
pub(crate) use making::{FIRST_CATALOG, check_nothing_is_lost, prepare_directory, take_lock};
pub(crate) use scratch::{make_directory, nameless, readers_directory, scratch_file};

use std::path::{Path, PathBuf};

/// Folder of the data sets in a database directory.
pub const DATA_DIRECTORY: &str = "data";

/// Name of the double-write file.
pub const DOUBLE_WRITE_NAME: &str = "doublewrite";

/// Folder of the log in a database directory.
pub const LOG_DIRECTORY: &str = "log";

/// Folder of what concerns readers in a database directory.
pub(crate) const READERS_DIRECTORY: &str = "readers";

/// Where a data set lies.
#[must_use]
pub fn data_set_path(directory: &Path, file_id: u32) -> PathBuf {
    directory.join(DATA_DIRECTORY).join(format!("{file_id:08x}.pfd"))
}

/// The file id in the name of a data set.
#[must_use]
pub fn file_id_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?.strip_suffix(".pfd")?;
    (name.len() == 8).then(|| u32::from_str_radix(name, 16).ok()).flatten()
}

//! Files for what statements do not keep in memory.

use super::Database;
use crate::Result;
use crate::directory::scratch_file;
use pagefold_io::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Two files never have one name at once: each is made, and then has none.
static NUMBER: AtomicU64 = AtomicU64::new(0);

impl Database {
    /// A file without a name, of this process alone, in the folder of the database. It goes with its last handle, and with the process: nothing in it outlives a crash.
    ///
    /// # Errors
    /// The storage's, as where nothing can be written.
    pub fn scratch_file(&self) -> Result<Arc<dyn File>> {
        let name = format!("rows-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        Ok(scratch_file(self.core.storage.as_ref(), &self.core.directory, &name)?)
    }
}

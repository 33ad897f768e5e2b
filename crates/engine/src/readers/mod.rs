//! Readers: processes that read a database beside the one that writes it.
//!
//! A reader sees one state for as long as it is open: what a crash at the moment of its registration would have left, brought in order by recovery. So all that recovery promises after a crash
//! holds for a reader, too. Its recovery, and everything else it writes, stays in an overlay of its own ([`pagefold_io::Overlay`]).
//!
//! The files underneath are kept as they were (copy on write, as in SQL Server's database snapshots): before the writer overwrites a page in place, it appends the old image to the
//! preserved-pages file of each reader that has not got it yet. A reader reads a page from its data set first and then looks whether it was preserved: so it never waits for the writer,
//! and an image that was torn, or newer, has been replaced by then.
//!
//! * `preserved`: the preserved-pages file
//! * `gate`: the writer's side: what excludes registration, and preserving
//! * `locks`: the lock `gate`, and what happens when who has it was stopped
//! * `registration`: the reader's side: taking a snapshot of the files
//! * `view`: files as they were at registration
//!
//! | In `readers/` | What |
//! |---|---|
//! | `gate` | shared by whoever changes what a reader needs, for a batch of pages or a control slot; exclusive while a reader registers |
//! | `turn` | held by who waits for `gate`, so that batches after batches do not keep a reader out |
//! | `gate.<n>`, `turn.<n>` | the same, begun by who has waited for too long; the newest count |
//! | `*.tmp` | for a moment: a file of one process that has no name from then on |
//! | `<16 hex digits>.pfr` | a reader's preserved pages; locked by it for as long as it lives, so that the file of one that died is known, and removed |
//!
//! Invariants:
//! - whoever registers holds `gate` alone: no page, control slot or image of a double write is being written meanwhile;
//! - a page that was in a data set at registration is in the preserved-pages file before it is overwritten;
//! - log segments are not written over while a reader is there: they are removed, and its handles keep them;
//! - a reader that cannot be served (a full disk) is told so by its file, which is emptied: it gets errors from then on, the writer none.

mod gate;
mod locks;
mod preserved;
mod registration;
mod view;

pub(crate) use gate::{Gate, Passage};
pub use registration::Snapshot;

use pagefold_io::{File, OpenOptions, Storage};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Folder of what concerns readers in a database directory.
pub(crate) const READERS_DIRECTORY: &str = "readers";

fn readers_directory(directory: &Path) -> PathBuf {
    directory.join(READERS_DIRECTORY)
}

/// Makes the folder if it is not there. Nothing in it has to survive a crash, nor has its name.
fn make_directory(storage: &dyn Storage, readers: &Path) -> io::Result<()> {
    if storage.exists(readers)? {
        return Ok(());
    }
    match storage.create_directory(readers) {
        // Somebody else was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// A file of this process alone, for what it does not want to keep in memory. It has no name, and goes with its last handle.
///
/// # Errors
/// The storage's.
pub(crate) fn scratch_file(storage: &dyn Storage, directory: &Path, name: &str) -> io::Result<Arc<dyn File>> {
    let readers = readers_directory(directory);
    make_directory(storage, &readers)?;
    nameless(storage, &readers.join(name).with_extension("tmp"))
}

/// Makes a file and takes its name away. One that a process which died has left is used again.
fn nameless(storage: &dyn Storage, path: &Path) -> io::Result<Arc<dyn File>> {
    let file = storage.open(path, &OpenOptions::create())?;
    match storage.remove(path) {
        // A reader that registers removes names that were left.
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(file),
    }
}

fn is_preserved_pages(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "pfr")
}

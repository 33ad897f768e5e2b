//! What the process that writes a database and those that read it beside have to do with each other.
//!
//! * `writer`: the writer's side: what excludes registration, and preserving
//! * `locks`: the lock `gate`, and what happens when who has it was stopped
//! * `preserved`: the preserved-pages file
//!
//! The readers' side is `crate::readers`.
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

mod locks;
mod preserved;
mod writer;

pub(crate) use locks::{Listed, is_newest, remove_if_there, take_alone};
pub(crate) use preserved::{Registered, entry_at};
pub(crate) use writer::{Gate, Passage};

use std::path::Path;

pub(crate) fn is_preserved_pages(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "pfr")
}

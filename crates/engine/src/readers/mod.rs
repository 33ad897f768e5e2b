//! Readers: processes that read a database beside the one that writes it.
//!
//! A reader sees one state for as long as it is open: what a crash at the moment of its registration would have left, brought in order by recovery. So all that recovery promises after a crash
//! holds for a reader, too. Its recovery, and everything else it writes, stays in an overlay of its own ([`pagefold_io::Overlay`]).
//!
//! The files underneath are kept as they were (copy on write, as in SQL Server's database snapshots): before the writer overwrites a page in place, it appends the old image to the
//! preserved-pages file of each reader that has not got it yet. A reader reads a page from its data set first and then looks whether it was preserved: so it never waits for the writer,
//! and an image that was torn, or newer, has been replaced by then.
//!
//! * `registration`: taking a snapshot of the files
//! * `view`: files as they were at registration
//!
//! What the writer does for them, and the files that both know, is `crate::gate`.

mod refused;
mod registration;
mod view;

pub use registration::Snapshot;

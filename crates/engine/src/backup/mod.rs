//! COPY of a database in use, and making a database from copies and log.
//!
//! * `source`: the database as its files have it, whoever writes it
//! * `walk`: the pages of a data set, map before pages
//! * `take`: taking a copy
//! * `stream`: a copy as one file
//! * `restore`: a database directory that is being made
//! * `recover`: from copies and log to a database
//! * `defining`: what the log says of tables and indexes, before it is applied
//! * `mount`: the database that copies make, as files, without making it
//!
//! A copy is fuzzy: pages are read while transactions go on, each as it is on disk at that moment. The log from the last checkpoint before the first page to behind the last one makes it whole, as
//! after a crash: opening it is recovery. It needs nothing of the process that writes, but that no log is given back meanwhile.
//!
//! Why that is enough: a page is on disk only when the log up to its LSN is durable, so a log that is read after the last page has everything that pages have. Of each data set the header is read before
//! map pages, and map pages before the pages they describe; they are written the other way round. So a page may be newer than its map word and a map newer than its header, as after a crash, never older.
//! A page changed since the checkpoint has its changes in the log; one that was made since has all of itself there, so it may be missing.
//!
//! Tables and indexes that come and go are in the log, but not the pages that were built before one came: a copy has those of all data sets that its log defines. Recovery from an older copy stops before the commit
//! of an object whose pages it does not have.

mod defining;
mod mount;
mod recover;
mod restore;
mod source;
mod stream;
mod take;
#[cfg(test)]
mod tests;
mod walk;

pub use mount::{MountOptions, MountedCopy};
pub use recover::{RecoverOptions, Recovered, Stop, Until, recover};
pub use stream::CopyReader;
pub use take::{CopyReport, copy_tables_to_file, copy_to_directory, copy_to_file};

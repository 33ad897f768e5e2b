//! The log: an endless stream of records in segment files, written by groups, read back from any record's start.
//!
//! What is promised, and how ([`record`] and [`segment`] have the bytes):
//!
//! - **Durable is durable.** Everything below [`Log::durable`] is read back after a crash at any time, however the device orders, tears or
//!   drops what was not synced.
//! - **A prefix.** What is read back is what was appended up to some record, never with a gap and never with anything else behind it: not
//!   older contents of a segment used again (a checksum is seeded with database and position), and not records of the same positions that
//!   a crash cut off (opening for writing zeroes and removes what lies behind the end, synced, before it appends).
//! - **Damage.** Each group write begins with a Flush record that names the position up to which the log was durable before the write was
//!   issued. A record that is not valid ends the log, unless it lies below the position that a valid Flush record anywhere behind it names,
//!   or below what the caller knows to have been durable: then it is damage, and an error. So damage (any flipped bit) below the durable
//!   position that the last whole Flush record names is always reported. Damage above it cannot be told from a torn write: it cuts the log
//!   at the damaged record, which loses records of the writes since that Flush record's position and nothing before them.
//!   Damage to the header of a segment that is read is always reported.
//! - **Failures.** An append for which no segment can be made (a full disk) fails and leaves nothing behind; the log stays usable. A failed
//!   write or sync of records, or of the directory, poisons the log for good; what was durable before stays so.

mod files;
mod parts;
pub mod reader;
pub mod record;
pub mod segment;
#[cfg(test)]
mod tests;
mod turn;
pub mod writer;

pub(crate) use parts::{LogParts, SegmentSources, archive_name};
pub(crate) use reader::LogEnd;
pub use reader::LogReader;
pub use record::{BODY_BYTES_MAX, Lsn, Record, RecordRef};
pub(crate) use segment::{SEGMENT_HEADER_BYTES, segment_number, segment_path};
pub use writer::{Appended, Log, LogSettings};

//! What the log is for: redo after a crash, undo of what was not committed, checkpoints that bound both.
//!
//! * `double_writes`: pages whose place on disk is torn or old are restored from their second image
//! * `definitions`: which tables and indexes there are meanwhile
//! * `redo`: everything from the last checkpoint on is applied again (ARIES: repeating history)
//! * `undo`: what takes an action back, when a transaction rolls back and after a crash
//!
//! | State found at start | What happens |
//! |---|---|
//! | no log | the database is what its control file names |
//! | a log that ends with a checkpoint | the same: closed in order |
//! | records behind the last checkpoint | double writes are restored, redo from the checkpoint on, undo of transactions without an end, a new checkpoint |
//! | a torn record at the end of the log | it and what follows never happened: nobody was told that it had |
//! | a damaged record that was durable | an error that names segment and offset; nothing is changed |
//! | a crash during any of this | the same again: redo skips what a page already has, undo goes on behind its last compensation record |
//! | a partition in the log that neither catalog nor checkpoint name | it is added to its table, and its file made anew; if the table was dropped, its records are skipped |
//! | a data set without a file at the checkpoint, with one on disk | the file is made anew: the log has all of it |
//! | a data set that catalog or log name has no file | if the log says later that its object was dropped, or its transaction is not committed, the file went with that; otherwise an error |
//! | a data set that neither catalog nor log name | it is removed after redo |
//! | opened for reading only | the same, in the reader's overlay, without a checkpoint (`readers/`) |

mod definitions;
mod double_writes;
mod leftovers;
mod redo;
mod undo;

pub(crate) use definitions::{Damaged, Defined, Definitions};
pub use definitions::{GiveUp, GivenUp};
pub(crate) use double_writes::{put_back, restore_double_writes};
pub(crate) use redo::{DataSets, redo};
pub(crate) use undo::{ObjectsById, roll_back};

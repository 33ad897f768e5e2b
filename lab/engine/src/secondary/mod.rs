//! Secondary indexes of LINEITEM under pagefold and rival engines: size, time to build, and how near the folds come to what their pages allow.
//!
//! * `run`: builds them all in turn and prints the tables
//! * `pagefold`: each format and page size, and the bound for folds
//! * `rivals`: SQLite and LMDB (by `--features rivals`)

mod pagefold;
#[cfg(feature = "rivals")]
mod rivals;
mod run;

pub(crate) use run::{Settings, run};

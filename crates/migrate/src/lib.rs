//! Databases of other kinds: what they would take here, all of their tables with keys and indexes brought over, and both sides compared.
//!
//! | Module | What |
//! |---|---|
//! | [`foreign`] | what any such database gives: tables, columns, keys, indexes, rows; the seam for further kinds |
//! | [`sqlite`] | SQLite files |
//! | `load` | all tables into a database |
//! | `estimate` | what they would take |
//! | `compare` | row by row, value by value |
//!
//! Invariants:
//! - what is read of a foreign database is one state of it, and nothing is written to it;
//! - a value that comes over is the same value: where a type has none that all values fit, the column and a row are named, and nothing is loaded.

mod compare;
mod estimate;
pub mod foreign;
mod load;
pub mod sqlite;

pub use compare::{Compared, compare};
pub use estimate::{ForeignEstimate, TableEstimates, estimate};
pub use foreign::{Foreign, ForeignColumn, ForeignIndex, ForeignTable};
pub use load::{ForeignLoad, LoadedTable, load};

//! Buffer pools, mini-transactions, B+tree, table spaces, catalog, transactions.
//!
//! `docs/ARCHITECTURE.md` is the way in; `docs/rules.md` has the rules that hold between the parts.
//!
//! The layers, from low to high. A module names only modules of lower layers, and none of its own (`tests/layers.rs` sees to that):
//!
//! | Layer | Modules |
//! |---|---|
//! | means | `changed_list`, `doubling`, `hash`, `progress`, `spans`, `steps` |
//! | who sees and changes what | `transaction` |
//! | what can go wrong | `error` |
//! | a database directory, names | `directory`, `names` |
//! | files, and who else reads them | `gate`, `log`, `open_files`, `space_map` |
//! | memory for pages | `frames` |
//! | files of pages | `data_set` |
//! | pages in memory | `pool` |
//! | what all objects share | `copy_pages`, `core` |
//! | an index | `index` |
//! | its tree | `btree`, `sampling` |
//! | tables | `table_space` |
//! | what there is | `catalog` |
//! | what of that is open | `objects` |
//! | after a crash | `recovery` |
//! | reading beside a writer | `readers` |
//! | an open database | `database` |
//! | copies of it | `backup` |

pub mod backup;
pub mod btree;
pub mod catalog;
mod changed_list;
mod copy_pages;
mod core;
mod data_set;
pub mod database;
pub mod directory;
mod doubling;
mod error;
mod frames;
mod gate;
mod hash;
pub mod index;
pub mod log;
mod names;
mod objects;
mod open_files;
pub mod pool;
mod progress;
pub mod readers;
mod recovery;
mod sampling;
mod space_map;
mod spans;
mod steps;
pub mod table_space;
#[cfg(test)]
mod test_random;
pub mod transaction;

pub use data_set::{DataSet, DataSetAttributes, DataSetEntry, DataSetFacts, Extents};
pub use directory::{DATA_DIRECTORY, DOUBLE_WRITE_NAME, LOG_DIRECTORY, data_set_path, file_id_of};
pub use error::{Error, Result};
pub use frames::{CounterValues, Pool};
pub use progress::{Progress, Silent, Unit};

//! Buffer pools, mini-transactions, B+tree, table spaces, catalog.
//!
//! `docs/ARCHITECTURE.md` has the rules that hold between the parts.

mod catalog;
mod copy_pages;
mod core;
mod data_set;
pub mod database;
mod error;
pub mod index;
pub mod pool;
mod space_map;
pub mod table_space;

pub use data_set::{DataSet, DataSetAttributes, DataSetFacts, Extents};
pub use error::{Error, Result};
pub use pool::CounterValues;

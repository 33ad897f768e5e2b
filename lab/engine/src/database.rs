//! Databases of pagefold that a program makes for itself.

use crate::data::{LINE_NUMBER, ORDER_KEY, Outcome};
use pagefold_engine::database::{Database, OpenMode, Settings};
use pagefold_engine::index::{Index, IndexAttributes, IndexFormat};
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::{Method, Table, TableAttributes};
use pagefold_io::{OsClock, OsStorage};
use pagefold_lab::lineitem::layout;
use pagefold_types::{Column, Direction, Schema};
use std::path::Path;
use std::sync::Arc;

/// A database in a folder, made if there is none, with so much memory for its pools.
pub fn create(folder: &Path, memory_bytes: usize) -> Outcome<Database> {
    let settings = Settings { pools: PoolSettings { memory_bytes, ..PoolSettings::default() }, ..Settings::default() };
    Ok(Database::open(Arc::new(OsStorage), Arc::new(OsClock), folder, OpenMode::Create, settings)?)
}

/// Method, bytes of a page, and format and bytes of a page of the primary key.
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    /// Method of the table.
    pub method: Method,
    /// Bytes of its pages.
    pub page_bytes: usize,
    /// Format of the primary key, and bytes of its pages.
    pub key: (IndexFormat, usize),
}

/// An empty LINEITEM with its primary key in a new database.
pub fn create_lineitem(folder: &Path, stored: Stored, memory_bytes: usize) -> Outcome<(Database, Arc<Table>, Arc<Index>)> {
    let database = create(folder, memory_bytes)?;
    let layout = layout();
    let column = |i: usize| Column::new(format!("c{i}"), layout.data_type(i), false);
    let schema = Schema::new((0..layout.column_count()).map(column).collect())?;
    let mut attributes = TableAttributes::new("lineitem", schema).with_page_bytes(stored.page_bytes);
    attributes.method = stored.method;
    attributes.primary_key = vec![ORDER_KEY, LINE_NUMBER];
    let mut change = database.change();
    let table = change.create_table(attributes)?;
    let columns = [ORDER_KEY, LINE_NUMBER].map(|column| (column, Direction::Ascending)).to_vec();
    let (format, page_bytes) = stored.key;
    change.create_index(&table, IndexAttributes::new("key", columns, true).with_format(format, page_bytes))?;
    change.commit()?;
    let (table, key) = (database.table("lineitem")?, database.index("key")?);
    Ok((database, table, key))
}

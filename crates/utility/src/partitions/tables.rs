//! A table, or the partitions of one, as where rows go.
//!
//! Invariant: a partition is opened when something of it is asked for: one that is damaged is in the way of none of the others.

use crate::{Error, Result};
use pagefold_engine::Error as EngineError;
use pagefold_engine::database::{Database, PartitionedTable};
use pagefold_engine::table_space::Table;
use pagefold_types::{Direction, PackedRow, Value, ValueRef};
use std::sync::{Arc, OnceLock};

/// One table, or all partitions of a partitioned one, in the order of their keys.
pub(crate) struct Tables<'d> {
    database: &'d Database,
    pub(crate) whole: Option<Arc<PartitionedTable>>,
    /// The one, or a partition that can be used.
    first: Arc<Table>,
    tables: Vec<OnceLock<Arc<Table>>>,
}

/// The table of this name; of a partitioned one a partition, which stands for the columns of all.
///
/// # Errors
/// When there is none, or it cannot be opened.
pub fn first_table(database: &Database, name: &str) -> Result<Arc<Table>> {
    Ok(Arc::clone(Tables::find(database, name)?.first()))
}

impl<'d> Tables<'d> {
    /// What has this name.
    ///
    /// # Errors
    /// When there is none, or no partition can be opened.
    pub(crate) fn find(database: &'d Database, name: &str) -> Result<Tables<'d>> {
        match database.table(name) {
            Err(unknown @ EngineError::Unknown { .. }) => match database.partitioned_table(name) {
                Err(EngineError::Unknown { .. }) => Err(unknown.into()),
                whole => Tables::of(database, whole?, Vec::new()),
            },
            table => {
                let first = table?;
                Ok(Tables { database, whole: None, tables: vec![OnceLock::from(Arc::clone(&first))], first })
            }
        }
    }

    /// The partitions of a table, of which these are known; none: they are found when they are asked for.
    pub(crate) fn of(database: &'d Database, whole: Arc<PartitionedTable>, known: Vec<Arc<Table>>) -> Result<Tables<'d>> {
        let tables: Vec<OnceLock<Arc<Table>>> = match known.is_empty() {
            true => whole.partitions().iter().map(|_| OnceLock::new()).collect(),
            false => known.into_iter().map(OnceLock::from).collect(),
        };
        let mut refused = None;
        for (cell, partition) in tables.iter().zip(whole.partitions()) {
            let found = cell.get().map_or_else(|| database.table_of_partition(partition), |table| Ok(Arc::clone(table)));
            match found {
                Ok(first) => return Ok(Tables { database, whole: Some(whole), first, tables }),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.map_or_else(|| Error::Data(format!("{} has no partition", whole.object())), Error::from))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.tables.len()
    }

    /// One of them, by its number in the order of keys.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(crate) fn table(&self, at: usize) -> Result<&Arc<Table>> {
        if let (None, Some(whole)) = (self.tables[at].get(), &self.whole) {
            let table = self.database.table_of_partition(&whole.partitions()[at])?;
            return Ok(self.tables[at].get_or_init(|| table));
        }
        Ok(self.tables[at].get().unwrap_or(&self.first))
    }

    /// All of them.
    ///
    /// # Errors
    /// When one cannot be opened.
    pub(crate) fn all(&self) -> Result<Vec<Arc<Table>>> {
        (0..self.len()).map(|at| self.table(at).cloned()).collect()
    }

    /// Those that can be opened.
    pub(crate) fn usable(&self) -> impl Iterator<Item = &Arc<Table>> {
        (0..self.len()).filter_map(|at| self.table(at).ok())
    }

    /// The one, or a partition that stands for the columns.
    pub(crate) fn first(&self) -> &Arc<Table> {
        &self.first
    }

    /// The name of the whole.
    pub(crate) fn name(&self) -> &str {
        self.whole.as_ref().map_or_else(|| self.first.name(), |whole| whole.name())
    }

    /// The longest record that each takes.
    pub(crate) fn record_bytes_max(&self) -> usize {
        self.usable().map(|table| table.record_bytes_max()).min().unwrap_or_else(|| self.first.record_bytes_max())
    }

    /// Where a row of these values goes.
    pub(crate) fn place_of(&self, values: &[ValueRef<'_>], key: &mut Vec<u8>) -> Result<usize> {
        let Some(whole) = &self.whole else { return Ok(0) };
        whole.key(values, key)?;
        Ok(whole.find_for(key)?)
    }

    /// Where the row with these values of the primary key may be. All of them where the key lacks a column by which the table is divided.
    pub(crate) fn places_of_key(&self, values: &[ValueRef<'_>]) -> Result<Vec<usize>> {
        let Some(whole) = &self.whole else { return Ok(vec![0]) };
        let columns: Vec<(usize, Direction)> = whole.primary_key().iter().map(|column| (*column, Direction::Ascending)).collect();
        Ok(match whole.key_from(&columns, values)? {
            Some(key) => whole.find(&key).into_iter().collect(),
            None => (0..self.len()).collect(),
        })
    }

    /// Where a packed row goes.
    pub(crate) fn place_of_row(&self, row: PackedRow<'_>, key: &mut Vec<u8>) -> Result<usize> {
        let Some(whole) = &self.whole else { return Ok(0) };
        match row {
            PackedRow::Wide(values) => self.place_of(&values.iter().map(Value::as_ref).collect::<Vec<_>>(), key),
            PackedRow::Record(record) => {
                key.clear();
                let encoded = whole.key_layout().encode_from_record(self.first.layout(), record, key);
                encoded.map_err(|e| Error::Data(format!("table \"{}\": {e}", self.name())))?;
                Ok(whole.find_for(key)?)
            }
        }
    }
}

//! A table, or the partitions of one, as where rows go.

use crate::{Error, Result};
use pagefold_engine::Error as EngineError;
use pagefold_engine::database::{Database, PartitionedTable};
use pagefold_engine::table_space::Table;
use pagefold_types::{Direction, PackedRow, Value, ValueRef};
use std::sync::Arc;

/// One table, or all partitions of a partitioned one, in the order of their keys.
pub(crate) struct Tables {
    pub(crate) whole: Option<Arc<PartitionedTable>>,
    pub(crate) tables: Vec<Arc<Table>>,
}

/// The table of this name; of a partitioned one its first partition, which stands for the columns of all.
///
/// # Errors
/// When there is none, or it cannot be opened.
pub fn first_table(database: &Database, name: &str) -> Result<Arc<Table>> {
    Ok(Arc::clone(Tables::find(database, name)?.first()))
}

impl Tables {
    /// What has this name.
    pub(crate) fn find(database: &Database, name: &str) -> Result<Tables> {
        match database.table(name) {
            Err(unknown @ EngineError::Unknown { .. }) => match database.partitioned_table(name) {
                Err(EngineError::Unknown { .. }) => Err(unknown.into()),
                whole => {
                    let whole = whole?;
                    let tables = whole.partitions().iter().map(|partition| database.table_of_partition(partition));
                    Ok(Tables { tables: tables.collect::<pagefold_engine::Result<_>>()?, whole: Some(whole) })
                }
            },
            table => Ok(Tables { whole: None, tables: vec![table?] }),
        }
    }

    /// The one, or the first: it stands for the columns.
    pub(crate) fn first(&self) -> &Arc<Table> {
        &self.tables[0]
    }

    /// The name of the whole.
    pub(crate) fn name(&self) -> &str {
        self.whole.as_ref().map_or_else(|| self.first().name(), |whole| whole.name())
    }

    /// The longest record that each takes.
    pub(crate) fn record_bytes_max(&self) -> usize {
        self.tables.iter().map(|table| table.record_bytes_max()).min().unwrap_or_default()
    }

    /// Where a row of these values goes.
    pub(crate) fn place_of(&self, values: &[ValueRef<'_>], key: &mut Vec<u8>) -> Result<usize> {
        let Some(whole) = &self.whole else { return Ok(0) };
        whole.key(values, key)?;
        Ok(whole.find_for(key)?)
    }

    /// Where the row with these values of the primary key is, if there can be one.
    pub(crate) fn place_of_key(&self, values: &[ValueRef<'_>]) -> Result<Option<usize>> {
        let Some(whole) = &self.whole else { return Ok(Some(0)) };
        let columns: Vec<(usize, Direction)> = whole.primary_key().iter().map(|column| (*column, Direction::Ascending)).collect();
        match whole.key_from(&columns, values)? {
            Some(key) => Ok(whole.find(&key)),
            None => Err(Error::Data(format!("the primary key of \"{}\" lacks a column by which it is divided", self.name()))),
        }
    }

    /// Where a packed row goes.
    pub(crate) fn place_of_row(&self, row: PackedRow<'_>, key: &mut Vec<u8>) -> Result<usize> {
        let Some(whole) = &self.whole else { return Ok(0) };
        match row {
            PackedRow::Wide(values) => self.place_of(&values.iter().map(Value::as_ref).collect::<Vec<_>>(), key),
            PackedRow::Record(record) => {
                key.clear();
                let encoded = whole.key_layout().encode_from_record(self.first().layout(), record, key);
                encoded.map_err(|e| Error::Data(format!("table \"{}\": {e}", self.name())))?;
                Ok(whole.find_for(key)?)
            }
        }
    }
}

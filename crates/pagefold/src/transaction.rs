//! Transactions.

use crate::definition::{IndexDefinition, PartitionDefinition, TableDefinition};
use crate::table::Table;
use crate::{Error, Result};
use pagefold_engine::database::{self as engine, Isolation, Savepoint};
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::table_space as space;
use pagefold_types::Direction;
use std::cell::RefCell;
use std::sync::Arc;

/// A transaction: what it does happens as a whole with [`commit`](Self::commit), or not at all. Dropping it takes everything back. It keeps its database open, and can be sent to another thread.
#[derive(Debug)]
pub struct Transaction {
    inner: RefCell<engine::Transaction<'static>>,
}

impl Transaction {
    pub(crate) fn new(inner: engine::Transaction<'static>) -> Transaction {
        Transaction { inner: RefCell::new(inner) }
    }

    /// Runs something in the engine's transaction. Nothing of that calls back.
    pub(crate) fn with<T>(&self, run: impl FnOnce(&mut engine::Transaction<'static>) -> T) -> T {
        run(&mut self.inner.borrow_mut())
    }

    /// What it sees of others.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.inner.borrow().isolation()
    }

    /// The table of this name, as this transaction sees it.
    ///
    /// # Errors
    /// [`Error::Unknown`] when there is none.
    pub fn table(&self, name: &str) -> Result<Table<'_>> {
        loop {
            let table = match self.with(|t| t.table(name)) {
                Err(Error::Unknown { .. }) if self.is_partitioned(name)? => return Table::of_partitions(self, name),
                found => found?,
            };
            match Table::new(self, Arc::clone(&table)) {
                // It was written anew between the look at its name and the one at its indexes.
                Err(Error::Stale { .. }) if self.isolation() == Isolation::ReadCommitted && !self.is_still(name, &table) => {}
                found => return found,
            }
        }
    }

    /// Does the table still have the name?
    fn is_still(&self, name: &str, table: &Arc<space::Table>) -> bool {
        self.with(|t| t.table(name)).is_ok_and(|now| Arc::ptr_eq(&now, table))
    }

    /// Is there a partitioned table of this name?
    fn is_partitioned(&self, name: &str) -> Result<bool> {
        match self.with(|t| t.partitioned_table(name)) {
            Ok(_) => Ok(true),
            Err(Error::Unknown { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes a table, and with a primary key the index on it, `<table>_pk`. Others see it after the commit.
    ///
    /// # Errors
    /// [`Error::Exists`] when the name is taken; when a column, type or page size cannot be.
    pub fn create_table(&self, name: &str, mut definition: TableDefinition) -> Result<Table<'_>> {
        if let Some(divided) = definition.take_partitions() {
            return self.create_partitioned_table(name, definition, &divided);
        }
        let attributes = definition.attributes(name)?;
        let table = self.with(|t| {
            let savepoint = t.savepoint();
            let key: Vec<_> = attributes.primary_key.iter().map(|column| (*column, Direction::Ascending)).collect();
            let table = t.create_table(attributes)?;
            if !key.is_empty() {
                let attributes = IndexAttributes::new(format!("{name}_pk"), key, true).with_format(IndexFormat::Prefix, 8192);
                if let Err(error) = t.create_index(&table, attributes) {
                    // Where only rollback is left, that takes the table back, too.
                    let _ = t.roll_back_to(savepoint);
                    return Err(error);
                }
            }
            Ok(table)
        })?;
        Table::new(self, table)
    }

    fn create_partitioned_table(
        &self,
        name: &str,
        definition: TableDefinition,
        (columns, partitions): &(Vec<String>, Vec<PartitionDefinition>),
    ) -> Result<Table<'_>> {
        let attributes = definition.attributes(name)?;
        let column = |column: &String| attributes.schema.index_of(column).map_err(|e| Error::Parameter(format!("table \"{name}\": {e}")));
        let columns = columns.iter().map(column).collect::<Result<Vec<usize>>>()?;
        let specs = partitions.iter().map(|partition| partition.spec(&attributes, &columns)).collect::<Result<Vec<_>>>()?;
        let key: Vec<_> = attributes.primary_key.iter().map(|column| (*column, Direction::Ascending)).collect();
        self.or_back(|t| {
            t.create_partitioned_table(&attributes, &columns, &specs)?;
            if key.is_empty() {
                return Ok(());
            }
            let index = IndexAttributes::new(format!("{name}_pk"), key, true).with_format(IndexFormat::Prefix, 8192);
            t.create_partitioned_index(name, &index)
        })?;
        Table::of_partitions(self, name)
    }

    /// Runs something, and takes it back when it fails.
    fn or_back<R>(&self, run: impl FnOnce(&mut engine::Transaction<'static>) -> Result<R>) -> Result<R> {
        self.with(|t| {
            let savepoint = t.savepoint();
            // Where only rollback is left, that takes it back, too.
            run(t).inspect_err(|_| drop(t.roll_back_to(savepoint)))
        })
    }

    /// What a partition is to be, for a table that is there.
    fn spec(&self, table: &str, partition: &PartitionDefinition) -> Result<engine::PartitionSpec> {
        self.with(|t| {
            let whole = t.partitioned_table(table)?;
            let first = t.table_of_partition(whole.first())?;
            partition.spec(first.attributes(), whole.columns())
        })
    }

    /// Adds a partition to a partitioned table, behind the last one, which it is like, with its indexes.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the last one has no limit, or the new one is not above that; [`Error::Exists`]; [`Error::Unknown`]; those of locks.
    pub fn add_partition(&self, table: &str, partition: &PartitionDefinition) -> Result<()> {
        let spec = self.spec(table, partition)?;
        self.with(|t| t.add_partition(table, &spec)).map(drop)
    }

    /// Drops a partition with its rows, however many there are. Who has an older snapshot goes on with them.
    ///
    /// # Errors
    /// [`Error::Unknown`]; [`Error::Parameter`] when it is the only one; those of locks.
    pub fn drop_partition(&self, table: &str, partition: &str) -> Result<()> {
        self.with(|t| t.drop_partition(table, partition))
    }

    /// A table takes the place of a partition, and the partition that of the table, each with its rows and indexes and under the name of the
    /// other. Whatever their sizes, no row is written; the table is read only if it has no index that begins with the columns of the ranges.
    ///
    /// # Errors
    /// [`Error::Parameter`] says what differs: both have the same columns, primary key and indexes. [`Error::OutOfRange`] names a row of
    /// the table that belongs in another partition.
    pub fn exchange_partition(&self, table: &str, partition: &str, with: &str) -> Result<()> {
        self.with(|t| t.exchange_partition(table, partition, with))
    }

    /// Drops the first partition with its rows, and adds one behind the last: a window of time that goes on. Returns the name of the one that was
    /// dropped.
    ///
    /// # Errors
    /// As [`add_partition`](Self::add_partition) and [`drop_partition`](Self::drop_partition).
    pub fn rotate_partition(&self, table: &str, partition: &PartitionDefinition) -> Result<String> {
        let spec = self.spec(table, partition)?;
        self.with(|t| t.rotate_partition(table, &spec))
    }

    /// Makes an index of the rows that a table has now. It is used by this transaction at once, by others after the commit.
    ///
    /// # Errors
    /// [`Error::DuplicateKey`] when it is to be unique and the rows are not; [`Error::Exists`]; when there is no such column; those of locks.
    pub fn create_index(&self, name: &str, table: &str, definition: IndexDefinition) -> Result<()> {
        self.with(|t| {
            let found = t.table(table);
            if let (Err(Error::Unknown { .. }), Ok(whole)) = (&found, t.partitioned_table(table)) {
                return t.create_partitioned_index(table, &definition.attributes(name, whole.schema())?);
            }
            let table = found?;
            let attributes = definition.attributes(name, &table.attributes().schema)?;
            t.create_index(&table, attributes).map(drop)
        })
    }

    /// Drops a table and its indexes.
    ///
    /// # Errors
    /// [`Error::Unknown`]; those of locks.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        self.with(|t| match t.drop_table(name) {
            Err(unknown @ Error::Unknown { .. }) => match t.partitioned_table(name) {
                Ok(_) => t.drop_partitioned_table(name),
                Err(_) => Err(unknown),
            },
            dropped => dropped,
        })
    }

    /// Takes all rows of a table away at once, however many there are. Who has an older snapshot goes on with them; a handle of
    /// before is of no use any more.
    ///
    /// # Errors
    /// [`Error::Unknown`]; those of locks.
    pub fn truncate_table(&self, name: &str) -> Result<Table<'_>> {
        if self.with(|t| t.table(name)).is_err() && self.is_partitioned(name)? {
            self.or_back(|t| {
                let whole = t.partitioned_table(name)?;
                whole.partitions().iter().try_for_each(|partition| t.truncate_table(partition.table_name()).map(drop))
            })?;
            return Table::of_partitions(self, name);
        }
        Table::new(self, self.with(|t| t.truncate_table(name))?)
    }

    /// Changes what a table is, all of it or nothing, at once, whatever its size: rows stay as they are stored, and are read as the table says from now on. This transaction
    /// sees it so, others after the commit; who has an older snapshot goes on with the columns and names that were. A handle of before is of no use any more.
    ///
    /// ```
    /// # use pagefold::{DataType, Database, TableChange, TableDefinition, Value};
    /// # use pagefold::types::Column;
    /// # fn main() -> pagefold::Result<()> {
    /// # let database = Database::in_memory()?;
    /// # let transaction = database.begin();
    /// # let definition = TableDefinition::new().column("name", DataType::Varchar(None)).nullable("built", DataType::SmallInt);
    /// # transaction.create_table("ship", definition.primary_key(["name"]))?.insert(("Fram", 1892))?;
    /// let masts = Column::new("masts", DataType::Integer, false);
    /// let ships = transaction.alter_table("ship", [
    ///     TableChange::AddColumn { column: masts, value: Value::Int(3) },
    ///     TableChange::RenameColumn { column: "built".into(), to: "launched".into() },
    /// ])?;
    /// ships.insert(("Vega", 1872, 2))?;
    /// let fram = ships.get("Fram")?.expect("it is there");
    /// assert_eq!((fram.get::<i64>("launched")?, fram.get::<i64>("masts")?), (1892, 3));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::Exists`]; [`Error::Parameter`] when there is no such column, or an index, the primary key or the ranges of partitions keep it as it is;
    /// [`Error::Value`] when a value forbids it: the row is named; those of locks.
    pub fn alter_table(&self, name: &str, changes: impl IntoIterator<Item = engine::TableChange>) -> Result<Table<'_>> {
        let changes: Vec<engine::TableChange> = changes.into_iter().collect();
        if self.with(|t| t.table(name)).is_err() && self.is_partitioned(name)? {
            self.with(|t| t.change_partitioned_table(name, &changes))?;
            return Table::of_partitions(self, name);
        }
        Table::new(self, self.with(|t| t.change_table(name, &changes))?)
    }

    /// Gives an index another name, or other attributes.
    ///
    /// # Errors
    /// [`Error::Unknown`]; [`Error::Exists`] when the name is taken; those of locks.
    pub fn alter_index(&self, name: &str, changes: impl IntoIterator<Item = engine::IndexChange>) -> Result<()> {
        let changes: Vec<engine::IndexChange> = changes.into_iter().collect();
        self.with(|t| match (t.change_index(name, &changes), changes.as_slice()) {
            // Perhaps it is one of a partitioned table.
            (Err(unknown @ Error::Unknown { .. }), [engine::IndexChange::Rename(to)]) => match t.rename_partitioned_index(name, to) {
                Err(Error::Unknown { .. }) => Err(unknown),
                renamed => renamed,
            },
            (changed, _) => changed.map(drop),
        })
    }

    /// Drops an index.
    ///
    /// # Errors
    /// [`Error::Unknown`]; those of locks.
    pub fn drop_index(&self, name: &str) -> Result<()> {
        self.with(|t| match t.drop_index(name) {
            Err(unknown @ Error::Unknown { .. }) => match t.drop_partitioned_index(name) {
                Err(Error::Unknown { .. }) => Err(unknown),
                dropped => dropped,
            },
            dropped => dropped,
        })
    }

    /// A point to come back to.
    #[must_use]
    pub fn savepoint(&self) -> Savepoint {
        self.inner.borrow().savepoint()
    }

    /// Takes back everything since a savepoint.
    ///
    /// # Errors
    /// When the savepoint is of another transaction, or only rollback is left.
    pub fn roll_back_to(&self, savepoint: Savepoint) -> Result<()> {
        self.with(|t| t.roll_back_to(savepoint))
    }

    /// Makes everything durable, and seen by others.
    ///
    /// # Errors
    /// Those for which [`Error::is_retryable`] is true: nothing has happened, begin again. When the log cannot be written: whether it is committed shows when the database is opened again.
    pub fn commit(self) -> Result<()> {
        self.inner.into_inner().commit()
    }

    /// Takes everything back.
    ///
    /// # Errors
    /// When the log cannot be read: it is taken back when the database is opened again.
    pub fn rollback(self) -> Result<()> {
        self.inner.into_inner().rollback()
    }

    /// Has it failed for what others have done, so that only rollback is left, and another try may succeed?
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.inner.borrow().failure().is_some_and(Error::is_retryable)
    }
}

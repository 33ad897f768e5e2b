//! Making and dropping tables and indexes, as part of a transaction.
//!
//! Invariants:
//! - what the transaction has made is found by it alone until the commit, what it has dropped by everybody else;
//! - a savepoint that is returned to takes back what was made and dropped since, and so does a statement that fails;
//! - a table that gets an index, or is dropped, is locked as a whole until the transaction ends: nobody else changes its rows meanwhile. Readers go on.

use super::super::defining::{Definer, Defining};
use super::super::leftovers::key_of;
use super::super::read_view::PageWalk;
use super::super::reading::Reading;
use super::{Transaction, Writes};
use crate::catalog::OtherEntry;
use crate::core::Lifetime;
use crate::index::{Index, IndexAttributes};
use crate::pool::Frees;
use crate::table_space::{DataPages, Layouts, RowBuffer, RowSink, Table, TableAttributes};
use crate::{Error, Result};
use pagefold_format::catalog::{DefinedKind, Notes};
use pagefold_types::{DataType, Rid, Schema, SchemaError};
use std::ops::ControlFlow;
use std::sync::Arc;

impl Transaction<'_> {
    /// Makes a table. The transaction can use it at once, others after the commit.
    ///
    /// # Errors
    /// When the name is taken or an attribute is out of range; when another transaction is about to take the name or give it back and does not end in time; when there is no room.
    pub fn create_table(&mut self, attributes: TableAttributes) -> Result<Arc<Table>> {
        self.define(None, |t| {
            let table = t.note_definition(|defining, by| defining.create_table(by, attributes))?;
            // What the log does not name, recovery does not know: the first partition is named before it has a file.
            table.add_partition()?;
            t.log_definitions()?;
            Ok(table)
        })
    }

    /// Makes an index of the rows that the table has now. The transaction can use it at once, unless its snapshot is older; others after the commit.
    ///
    /// Waits until no other transaction that has changed rows of the table runs. Each entry is logged and inserted by itself, so for a table with many rows `utility::create_index` is faster.
    ///
    /// # Errors
    /// [`Error::DuplicateKey`] when rows of the table have a key twice and the index is to be unique. When the name is taken, an attribute is out of range, or the table was dropped or replaced; those of
    /// locks; when there is no room.
    pub fn create_index(&mut self, table: &Table, attributes: IndexAttributes) -> Result<Arc<Index>> {
        self.define(None, |t| {
            t.check_table(table, None)?;
            t.check_seen(&table.lifetime, || table.object())?;
            let snapshot = t.snapshot.clone();
            let index = t.note_definition(|defining, by| defining.create_index(by, table, attributes, snapshot.as_deref()))?;
            t.log_definitions()?;
            t.fill(table, &index)?;
            table.add_index(&index);
            Ok(index)
        })
    }

    /// Drops the table of a name with its indexes. Who has an older snapshot goes on with it.
    ///
    /// # Errors
    /// When there is none; those of locks; when there is no room in the log.
    pub fn drop_table(&mut self, name: &str) -> Result<()> {
        self.drop_named_table(name, false)
    }

    /// `frees_range`: another partition takes the place of one.
    fn drop_named_table(&mut self, name: &str, frees_range: bool) -> Result<()> {
        self.define(Some(Frees::Objects), |t| {
            let table = t.note_definition(|defining, by| {
                // As it is for this transaction: by an exchange it may have become a partition, or be none any more.
                let own = defining.table(name).map(|own| own.range().is_some());
                let table = defining.drop_table(by, name)?;
                match (frees_range, own.unwrap_or(table.range().is_some())) {
                    (false, true) => Err(Error::Parameter(format!("{} is a partition: it goes as one of its table", table.object()))),
                    _ => Ok(table),
                }
            })?;
            t.check_seen(&table.lifetime, || table.object())?;
            t.log_definitions()
        })
    }

    /// Drops the index of a name. Who has an older snapshot goes on with it.
    ///
    /// # Errors
    /// As [`drop_table`](Self::drop_table).
    pub fn drop_index(&mut self, name: &str) -> Result<()> {
        self.define(Some(Frees::Objects), |t| {
            let index = t.note_definition(|defining, by| {
                let index = defining.drop_index(by, name)?;
                defining.check_alone(by, &index).map(|()| index)
            })?;
            t.check_seen(&index.lifetime, || index.object())?;
            t.log_definitions()
        })
    }

    /// Takes all rows of a table away at once, however many: an empty table with the same attributes and indexes comes in its
    /// place. Who has an older snapshot goes on with the rows. Returns the table that counts from now on.
    ///
    /// # Errors
    /// As [`drop_table`](Self::drop_table) and [`create_table`](Self::create_table); the table is as it was then.
    pub fn truncate_table(&mut self, name: &str) -> Result<Arc<Table>> {
        let savepoint = self.savepoint();
        let result = self.make_anew(name, |_, _| Ok(()));
        if result.is_err() {
            // Where only rollback is left, that takes it back, too.
            let _ = self.roll_back_to(savepoint);
        }
        result
    }

    /// An empty table comes in the place of one, with the same indexes, in which a column has another type: for who writes its rows anew. They are read in a view that was taken
    /// before, and after the caller has locked the table as a whole, as whoever alters it does.
    ///
    /// # Errors
    /// As [`truncate_table`](Self::truncate_table); when there is no such column, or the columns make no table or key.
    pub fn write_table_anew(&mut self, name: &str, column: &str, data_type: DataType) -> Result<Arc<Table>> {
        let savepoint = self.savepoint();
        let result = self.make_anew(name, |attributes, layouts| {
            let mut columns = attributes.schema.columns().to_vec();
            let refuse = |e: SchemaError| Error::Parameter(format!("table \"{name}\": {e}"));
            columns[attributes.schema.index_of(column).map_err(refuse)?].data_type = data_type;
            attributes.schema = Schema::new(columns).map_err(refuse)?;
            attributes.layouts = layouts.fresh(&attributes.schema);
            attributes.source_schema.clear();
            attributes.notes.set_statistics(None).map_err(|e| Error::Parameter(e.to_string()))
        });
        if result.is_err() {
            let _ = self.roll_back_to(savepoint);
        }
        result
    }

    fn make_anew(&mut self, name: &str, change: impl FnOnce(&mut TableAttributes, &Layouts) -> Result<()>) -> Result<Arc<Table>> {
        let old = self.table(name)?;
        // With what is said of them now, by this transaction too.
        let again = |index: &Arc<Index>| IndexAttributes { notes: (*self.notes_of_index(index)).clone(), ..index.attributes().clone() };
        let indexes: Vec<IndexAttributes> = self.defining.indexes_as_now(&old).iter().map(again).collect();
        let mut attributes = TableAttributes { notes: (*self.notes_of_table(&old)).clone(), ..old.attributes().clone() };
        change(&mut attributes, &old.attributes_now().layouts)?;
        self.drop_named_table(name, true)?;
        let table = self.create_table(attributes)?;
        for attributes in indexes {
            self.create_index(&table, attributes)?;
        }
        Ok(table)
    }

    /// What is said of a table: what this transaction says, or what is committed.
    #[must_use]
    pub fn notes_of_table(&self, table: &Table) -> Arc<Notes> {
        self.defining.notes(table.object_id).unwrap_or_else(|| table.notes())
    }

    /// What is said of an index, as [`notes_of_table`](Self::notes_of_table).
    #[must_use]
    pub fn notes_of_index(&self, index: &Index) -> Arc<Notes> {
        self.defining.notes(index.object_id).unwrap_or_else(|| index.notes())
    }

    /// Says something else of a table: comments, defaults of columns, constraints and whatever else the engine does not act on. Others see it after the commit.
    ///
    /// # Errors
    /// When the table was dropped or replaced, too much is said, or it is divided by ranges, which only a new table can be; those of locks; when there is no room in the log.
    pub fn alter_table(&mut self, table: &Table, notes: Notes) -> Result<()> {
        self.define(None, |t| {
            t.check_table(table, None)?;
            t.check_seen(&table.lifetime, || table.object())?;
            t.note_definition(|defining, by| defining.alter_table(by, table, notes))?;
            t.log_definitions()
        })
    }

    /// Says something else of an index.
    ///
    /// # Errors
    /// As [`alter_table`](Self::alter_table).
    pub fn alter_index(&mut self, index: &Index, notes: Notes) -> Result<()> {
        self.define(None, |t| {
            t.check_seen(&index.lifetime, || index.object())?;
            t.note_definition(|defining, by| defining.alter_index(by, index, notes))?;
            t.log_definitions()
        })
    }

    /// Makes what has a name and no pages: a view, a sequence or a schema. The engine keeps it and does nothing with it.
    ///
    /// # Errors
    /// When the name is taken, by whatever it is; when too much is said; those of locks; when there is no room in the log.
    pub fn create_object(&mut self, kind: DefinedKind, name: &str, notes: Notes) -> Result<Arc<OtherEntry>> {
        if !matches!(kind, DefinedKind::View | DefinedKind::Sequence | DefinedKind::Schema) {
            return Err(Error::Parameter(format!("\"{name}\": a {} is not made so", kind.name())));
        }
        self.define(None, |t| {
            let made = t.note_definition(|defining, by| defining.create_other(by, kind, name, notes))?;
            t.log_definitions()?;
            Ok(made)
        })
    }

    /// A view, sequence or schema by its name: one that this transaction has made, or one that is committed.
    ///
    /// # Errors
    /// When there is none.
    pub fn object(&self, kind: DefinedKind, name: &str) -> Result<Arc<OtherEntry>> {
        self.defining.other(&self.database, kind, name)
    }

    /// Names of tables, in their order: those that are committed now and those that this transaction has made; partitions are tables. A transaction with a snapshot may not find one of them.
    #[must_use]
    pub fn table_names(&self) -> Vec<String> {
        let committed = self.database.objects.read();
        let places = committed.tables.places().filter(|place| !self.defining.has_dropped(place.object_id));
        let mut names: Vec<String> = places.map(|place| place.name.to_string()).collect();
        names.extend(self.defining.tables().map(|table| table.name().to_owned()));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The same of views, sequences, schemas and partitioned tables.
    #[must_use]
    pub fn object_names(&self, kind: DefinedKind) -> Vec<String> {
        let mut names = self.database.object_names(kind);
        // A name that another one has now is none of this kind.
        names.retain(|name| self.object(kind, name).is_ok());
        names.extend(self.defining.others_made().filter(|made| made.kind == kind).map(|made| made.name.clone()));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Says something else of a view, sequence or schema.
    ///
    /// # Errors
    /// When there is none, or too much is said; those of locks; when there is no room in the log.
    pub fn alter_object(&mut self, kind: DefinedKind, name: &str, notes: Notes) -> Result<()> {
        self.define(None, |t| {
            t.note_definition(|defining, by| defining.alter_other(by, kind, name, notes))?;
            t.log_definitions()
        })
    }

    /// Drops a view, sequence or schema. What refers to it is not looked at.
    ///
    /// # Errors
    /// When there is none; those of locks; when there is no room in the log.
    pub fn drop_object(&mut self, kind: DefinedKind, name: &str) -> Result<()> {
        self.define(Some(Frees::Objects), |t| {
            t.note_definition(|defining, by| defining.drop_other(by, kind, name))?;
            t.log_definitions()
        })
    }

    /// Refuses what others have made since the snapshot of the transaction, if it has one.
    pub(super) fn check_seen(&self, lifetime: &Lifetime, object: impl FnOnce() -> String) -> Result<()> {
        match &self.snapshot {
            Some(snapshot) if !lifetime.is_staged() => lifetime.check(Some(snapshot.timestamp()), self.state.id(), object),
            _ => Ok(()),
        }
    }

    /// Runs a statement that makes or drops something; what it did is taken back when it fails.
    pub(super) fn define<R>(&mut self, frees: Option<Frees>, run: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        self.prepare(frees.map_or(Writes::Anything, Writes::ToFree))?;
        let result = self.or_nothing(run);
        self.database.checkpoint_when_due();
        result
    }

    /// Something is defined, and not logged yet.
    pub(super) fn note_definition<R>(&mut self, define: impl FnOnce(&mut Defining, Definer<'_>) -> Result<R>) -> Result<R> {
        let by = Definer { database: &self.database, state: &self.state, lock_timeout: self.options.lock_timeout };
        define(&mut self.defining, by)
    }

    /// Logs what has been defined since the last time.
    pub(super) fn log_definitions(&mut self) -> Result<()> {
        self.defining.log(&self.database, &self.state, true)
    }

    /// Enters all rows of a table, which is locked as a whole, into an empty index. Nothing of that is ever taken back by itself: the index is.
    fn fill(&mut self, table: &Table, index: &Index) -> Result<()> {
        let snapshot = self.database.core.transactions.snapshot(self.state.id());
        let reading = Reading { serializable: None, read: None, ..self.reading(&snapshot) };
        let (mut walk, mut buffer) = (PageWalk::of(DataPages::of(table)), RowBuffer::default());
        let mut filling = Filling { table, index, entries: Vec::new(), key: Vec::new() };
        while walk.step(&reading, table, &mut buffer, &mut filling)? {
            filling.enter()?;
        }
        Ok(())
    }

    /// Damaged indexes of a table that are unique and that this transaction has not dropped.
    pub(super) fn damaged_unique_indexes(&self, table: &Table) -> Vec<Arc<Index>> {
        if !table.has_damaged_indexes() {
            return Vec::new();
        }
        let all = table.damaged_indexes();
        all.iter().filter(|index| index.attributes().unique && !self.defining.has_dropped(index.object_id)).cloned().collect()
    }

    /// Indexes of a table as this transaction has them, that it keeps.
    pub(super) fn indexes_of(&self, table: &Table) -> Arc<[Arc<Index>]> {
        let indexes = table.indexes();
        if self.defining.is_empty() {
            return indexes;
        }
        indexes.iter().filter(|index| !self.defining.has_dropped(index.object_id)).cloned().collect()
    }
}

/// What is entered into a new index, page by page of its table.
struct Filling<'a> {
    table: &'a Table,
    index: &'a Index,
    entries: Vec<(Vec<u8>, Rid)>,
    key: Vec<u8>,
}

impl RowSink<Error> for Filling<'_> {
    fn row(&mut self, rid: Rid, record: &[u8]) -> Result<ControlFlow<()>> {
        key_of(self.table, self.index, record, &mut self.key)?;
        self.entries.push((self.key.clone(), rid));
        Ok(ControlFlow::Continue(()))
    }
}

impl Filling<'_> {
    /// Enters what the page had.
    fn enter(&mut self) -> Result<()> {
        const PREPARED: usize = 64;
        self.entries.sort_unstable();
        let tree = self.index.tree();
        for entries in self.entries.chunks(PREPARED) {
            self.index.core.manager.prepare_log()?;
            for (key, rid) in entries {
                tree.insert(key, *rid)?;
            }
        }
        self.entries.clear();
        Ok(())
    }
}

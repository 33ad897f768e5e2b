//! Changes of tables and indexes: between transactions, what the utilities do; and in transactions that go on.

use crate::alterations::alter_in;
use crate::model::Whole;
use crate::player::{Halt, Player, Writer};
use crate::steps::{Definition, Within};
use crate::values::{number, short_row};
use crate::world::{Shape, TABLES, create_table, index_attributes, index_page_bytes, table_attributes};
use pagefold_engine::database::{Database, Durability, Isolation, ScanRequest};
use pagefold_engine::index::IndexAttributes;
use pagefold_engine::{Error, Silent};
use pagefold_interchange::{FileFormat, FileSink, InterchangeError, ParquetOptions};
use pagefold_types::{Direction, Value, ValueRef};
use pagefold_utility::{
    IndexOptions, LoadMode, LoadOptions, ReorgOptions, RowOrder, Scan, ScanOptions, Setting, create_index, drop_object, load, reorg,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The table that exported rows are loaded into. Not into their own: a file says nothing of the lengths of texts, and indexes stay only where all columns do.
const COPY: &str = "copy";

type Done = Result<(), pagefold_utility::Error>;

impl Player<'_> {
    /// Changes tables or indexes; nobody has a transaction.
    pub(crate) fn define(&mut self, definition: Definition) -> Result<(), Halt> {
        // What is dropped is gone with the change, all at once.
        let mut state = self.committed.state.clone();
        if let Definition::DropAndCreate { table, .. } = definition {
            state[table].clear();
        }
        self.promise.lock().begin(state.clone());
        match run(self.database, definition) {
            Ok(()) => {
                self.promise.lock().settle(Durability::Durable);
                self.committed.redefine(state);
                Ok(())
            }
            Err(error) => {
                let allowed = match &error {
                    pagefold_utility::Error::Engine(error) => self.expect_trouble(error, &format!("{definition:?}")),
                    pagefold_utility::Error::Interchange(InterchangeError::Io(error)) => {
                        let error = std::io::Error::new(error.kind(), error.to_string());
                        self.expect_trouble(&error.into(), &format!("{definition:?}"))
                    }
                    other => Err(Halt::Fault(format!("{definition:?}: {other}"))),
                };
                if allowed.is_ok() {
                    self.promise.lock().refuse();
                }
                allowed
            }
        }
    }
}

impl Player<'_> {
    /// Makes or drops something in a transaction, which goes on.
    pub(crate) fn define_within(&mut self, writer: usize, within: Within) -> Result<(), Halt> {
        if !self.writers.contains_key(&writer) {
            self.begin(writer, Isolation::ReadCommitted, Durability::Durable);
        }
        let Some(mut w) = self.writers.remove(&writer).filter(|w| !w.failed) else { return Ok(()) };
        let done = self.try_within(&mut w, within);
        self.writers.insert(writer, w);
        done
    }

    fn try_within(&mut self, w: &mut Writer<'_>, within: Within) -> Result<(), Halt> {
        if w.transaction.isolation() != Isolation::ReadCommitted && w.snapshot.is_none() {
            // It takes the snapshot.
            self.must(w.transaction.table(TABLES[0]), "a table by its name")?;
            w.snapshot = Some((self.committed.state.clone(), self.committed.count));
        }
        let (table, whole) = match within {
            Within::Replace { table, .. } | Within::Index { table, .. } | Within::Alter { table, .. } => (table, Whole::Table(table)),
            Within::MakeAndDrop { table, .. } => (table, Whole::Name(table)),
        };
        let done = define_in(w, within);
        // Locks of a statement that failed stay.
        let was_used = self.is_used(whole);
        let has_changed = |other: &Writer<'_>| {
            let altered = other.alterations.iter().map(|altered| altered.table);
            other.overlay.keys().map(|(of, _)| *of).chain(altered).any(|of| whole == Whole::Table(of))
        };
        let was_changed = self.writers.values().any(has_changed);
        w.wholes.insert(whole);
        match done {
            Ok(()) if was_changed => Err(Halt::Fault(format!("{within:?}: done, though another one is at the table"))),
            Ok(()) => {
                self.trouble.meet("something made or dropped in a transaction");
                w.defines = true;
                self.altered(w, within);
                if let Within::Replace { .. } = within {
                    let seen = w.snapshot.iter().flat_map(|(state, _)| state[table].keys()).chain(self.committed.state[table].keys());
                    let own = w.overlay.keys().filter(|(of, _)| *of == table).map(|(_, n)| n);
                    let gone: Vec<i64> = seen.chain(own).copied().collect();
                    w.overlay.extend(gone.into_iter().map(|n| ((table, n), None)));
                }
                Ok(())
            }
            Err(Error::Lock(_)) if was_used => {
                self.trouble.meet("a table that another one holds");
                w.failed = true;
                Ok(())
            }
            Err(Error::Busy(_)) if self.building.as_ref().is_some_and(|building| building.table == table) => {
                self.trouble.meet("a definition of a table of which an index is being built");
                Ok(())
            }
            Err(Error::Stale { .. } | Error::Exists { .. } | Error::Unknown { .. }) if self.defined_since(w, table) => {
                self.trouble.meet("a definition that does not go with the snapshot");
                Ok(())
            }
            Err(error) => self.expect_trouble(&error, &format!("{within:?}")),
        }
    }
}

fn define_in(w: &mut Writer<'_>, within: Within) -> Result<(), Error> {
    let t = &mut w.transaction;
    match within {
        Within::Replace { table, method } => {
            let (name, mut shape) = (TABLES[table], Shape::default().0[table]);
            shape.method = method;
            let savepoint = t.savepoint();
            let mut replace = || {
                t.drop_table(name)?;
                let made = t.create_table(table_attributes(name, shape))?;
                w.made.extend(made.data_sets().cloned());
                for attributes in index_attributes(name, shape) {
                    w.made.push(Arc::clone(t.create_index(&made, attributes)?.data_set()));
                }
                Ok(())
            };
            let replaced = replace();
            if replaced.as_ref().is_err_and(|error| !matches!(error, Error::Lock(_) | Error::Poisoned(_))) {
                t.roll_back_to(savepoint)?;
            }
            replaced
        }
        Within::Index { table, format } => {
            let name = format!("{}_more", TABLES[table]);
            if t.index(&name).is_ok() {
                return t.drop_index(&name);
            }
            let columns = vec![(6, Direction::Ascending), (2, Direction::Descending)];
            let attributes = IndexAttributes::new(name, columns, false).with_format(format, index_page_bytes(format));
            let object = t.table(TABLES[table])?;
            w.made.push(Arc::clone(t.create_index(&object, attributes)?.data_set()));
            Ok(())
        }
        Within::Alter { table, alteration, seed } => alter_in(w, table, alteration, seed),
        Within::MakeAndDrop { table, method } => {
            let name = format!("{}_short", TABLES[table]);
            let savepoint = t.savepoint();
            let mut make_and_drop = || {
                let mut shape = Shape::default().0[table];
                shape.method = method;
                let made = t.create_table(table_attributes(&name, shape))?;
                w.made.extend(made.data_sets().cloned());
                let row = short_row(1, 1);
                let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
                t.insert(&made, &values)?;
                t.drop_table(&name)
            };
            let done = make_and_drop();
            if done.as_ref().is_err_and(|error| !matches!(error, Error::Lock(_) | Error::Poisoned(_))) {
                t.roll_back_to(savepoint)?;
            }
            done
        }
    }
}

fn run(database: &Database, definition: Definition) -> Done {
    match definition {
        Definition::DropAndCreate { table, method } => {
            let mut shape = Shape::default().0[table];
            shape.method = method;
            let mut change = database.change();
            change.drop_table(TABLES[table])?;
            create_table(&mut change, TABLES[table], shape)?;
            Ok(change.commit()?)
        }
        Definition::Reorganize { table, method, page_bytes } => {
            // In the order of an index that the table has just then, or as they lie.
            let indexes = database.table(TABLES[table]).map_or_else(|_| Vec::new(), |table| table.all_indexes());
            let order = indexes.last().filter(|_| page_bytes == 4096).map(|index| RowOrder::Index(index.name().into()));
            let sort_bytes = Some(0);
            let options = ReorgOptions {
                method: Some(Setting::Given(method)),
                page_bytes: Some(page_bytes),
                order,
                sort_bytes,
                ..ReorgOptions::default()
            };
            reorg(database, TABLES[table], &options, &Silent).map(drop)
        }
        Definition::ReorganizeIndex { index, format } => {
            let indexes = database.indexes().unwrap();
            let name = indexes[index % indexes.len()].name().to_string();
            let page_bytes = Some(index_page_bytes(format));
            let options = ReorgOptions { format: Some(Setting::Given(format)), page_bytes, ..ReorgOptions::default() };
            reorg(database, &name, &options, &Silent).map(drop)
        }
        Definition::CreateIndex { table, format } => {
            let name = format!("{}_more", TABLES[table]);
            if database.index(&name).is_ok() {
                return drop_object(database, &name).map(drop);
            }
            let columns = [("u".to_string(), Direction::Ascending), ("m".to_string(), Direction::Descending)];
            let page_bytes = Some(index_page_bytes(format));
            let options = IndexOptions { format: Setting::Given(format), page_bytes, ..IndexOptions::default() };
            create_index(database, &name, TABLES[table], &columns, &options, &Silent).map(drop)
        }
        Definition::ExportAndLoad { table, method } => {
            let file = PathBuf::from("rows.parquet");
            let object = database.table(TABLES[table])?;
            let format = FileFormat::Parquet(ParquetOptions::default());
            let scan = Scan::new(database, TABLES[table], &ScanOptions::default())?;
            let mut sink = FileSink::create(Arc::clone(database.outside()), &file, &format, &scan.output()?)?;
            let page_bytes = object.attributes().page_bytes;
            let options = LoadOptions {
                mode: LoadMode::Replace,
                method: Setting::Given(method),
                page_bytes,
                encode_threads: 1,
                ..LoadOptions::default()
            };
            let done =
                scan.run(&mut sink, &Silent).and_then(|_| load(database, COPY, std::slice::from_ref(&file), &options, &Silent)).map(drop);
            drop(sink);
            // What could not be written wholly is removed already.
            if database.outside().exists(&file).map_err(Error::from)? {
                database.outside().remove(&file).map_err(Error::from)?;
            }
            done?;
            if visible_rows(database, COPY)? != visible_rows(database, TABLES[table])? {
                return Err(pagefold_utility::Error::Data("the copy has other rows".into()));
            }
            Ok(())
        }
    }
}

/// Only the columns that are there: a file has no others.
fn visible_rows(database: &Database, table: &str) -> Result<BTreeMap<i64, Vec<Value>>, Error> {
    let table = database.table(table)?;
    let scan = database.read_view().scan(&table, &ScanRequest::default())?;
    let visible = |values: &[Value]| table.attributes().visible_columns().into_iter().map(|at| values[at].clone()).collect();
    scan.into_rows().map(|row| row.map(|(_, values)| (number(&values), visible(&values)))).collect()
}

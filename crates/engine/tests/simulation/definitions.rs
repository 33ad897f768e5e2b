//! Changes of tables and indexes between transactions: what the utilities do.

use crate::player::{Halt, Player};
use crate::steps::Definition;
use crate::values::number;
use crate::world::{Shape, TABLES, create_table, index_page_bytes};
use pagefold_engine::database::{Database, Durability};
use pagefold_engine::table_space::RowBuffer;
use pagefold_engine::{Error, Silent};
use pagefold_interchange::{FileFormat, FileSink, InterchangeError, ParquetOptions};
use pagefold_types::{Direction, Value};
use pagefold_utility::{
    IndexOptions, LoadMode, LoadOptions, ReorgOptions, Setting, create_index, drop_object, export, load, reorg, table_schema,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
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
            let options = ReorgOptions { method: Some(Setting::Given(method)), page_bytes: Some(page_bytes), ..ReorgOptions::default() };
            reorg(database, TABLES[table], &options, &Silent).map(drop)
        }
        Definition::ReorganizeIndex { index, format } => {
            let indexes = database.indexes();
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
            let mut sink = FileSink::create(Arc::clone(database.outside()), &file, &format, &table_schema(&object)?)?;
            let page_bytes = object.attributes().page_bytes;
            let options = LoadOptions {
                mode: LoadMode::Replace,
                method: Setting::Given(method),
                page_bytes,
                encode_threads: 1,
                ..LoadOptions::default()
            };
            let done = export(database, TABLES[table], &mut sink, &Silent)
                .and_then(|_| load(database, COPY, std::slice::from_ref(&file), &options, &Silent))
                .map(drop);
            drop(sink);
            // What could not be written wholly is removed already.
            if database.outside().exists(&file).map_err(Error::from)? {
                database.outside().remove(&file).map_err(Error::from)?;
            }
            done?;
            if rows(database, COPY)? != rows(database, TABLES[table])? {
                return Err(pagefold_utility::Error::Data("the copy has other rows".into()));
            }
            Ok(())
        }
    }
}

fn rows(database: &Database, table: &str) -> Result<BTreeMap<i64, Vec<Value>>, Error> {
    let table = database.table(table)?;
    let mut rows = BTreeMap::new();
    table.scan(&mut RowBuffer::default(), |_, record| {
        let values = table.values(record)?;
        rows.insert(number(&values), values);
        Ok::<_, Error>(ControlFlow::Continue(()))
    })?;
    Ok(rows)
}

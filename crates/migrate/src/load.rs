//! All tables of a foreign database, with keys and indexes.
//!
//! Invariant: all of them come, or none: when one fails, those before it are dropped again.

use crate::compare::{Compared, compare};
use crate::foreign::{Foreign, ForeignTable};
use pagefold_engine::database::Database;
use pagefold_utility::{Error, IndexOptions, LoadOptions, LoadReport, Progress, Result, create_index, drop_object, load_source};
use std::collections::HashSet;

/// A table that was loaded.
#[derive(Clone, Debug)]
pub struct LoadedTable {
    /// Its name here.
    pub name: String,
    /// What LOAD says of it.
    pub report: LoadReport,
    /// Bytes of all its indexes.
    pub index_bytes: u64,
    /// Names of its indexes, without that of the primary key.
    pub indexes: Vec<String>,
    /// What turned out not to be possible, each with a word on why.
    pub left_out: Vec<String>,
    /// What the comparison found, if there was to be one.
    pub compared: Option<Compared>,
}

/// What was loaded.
#[derive(Clone, Debug, Default)]
pub struct ForeignLoad {
    /// The tables.
    pub tables: Vec<LoadedTable>,
}

/// The names that tables, their keys and indexes are to have.
fn names<'t>(tables: &'t [&ForeignTable]) -> impl Iterator<Item = String> + 't {
    tables.iter().flat_map(|table| {
        let key = (!table.primary_key.is_empty()).then(|| format!("{}_pk", table.here));
        std::iter::once(table.here.clone()).chain(key).chain(table.indexes.iter().map(|index| index.name.clone()))
    })
}

/// Which of the names of tables, keys and indexes are there already.
fn names_taken(database: &Database, tables: &[&ForeignTable]) -> Vec<String> {
    let (known, indexes) = (database.table_names(), database.index_names());
    names(tables).filter(|name| known.contains(name) || indexes.contains(name)).collect()
}

/// Loads these tables. `options` say how rows and keys are stored; `compares`: they are read back and compared, value by value.
///
/// # Errors
/// When a name is taken, values of a column have no type in common, there is no room, or something differs. The database is then as it was.
pub fn load(
    database: &Database,
    foreign: &dyn Foreign,
    tables: &[&ForeignTable],
    options: &LoadOptions,
    compares: bool,
    progress: &dyn Progress,
) -> Result<ForeignLoad> {
    let taken = names_taken(database, tables);
    if !taken.is_empty() {
        return Err(Error::Data(format!("the database has {} already", taken.join(", "))));
    }
    let mut seen = HashSet::new();
    let twice: Vec<String> = names(tables).filter(|name| !seen.insert(name.clone())).collect();
    if !twice.is_empty() {
        return Err(Error::Data(format!("two of the tables and indexes would be called {}", twice.join(", "))));
    }
    let (mut done, mut made) = (ForeignLoad::default(), Vec::new());
    for table in tables {
        match load_table(database, foreign, table, &mut made, (options, compares), progress) {
            Ok(loaded) => done.tables.push(loaded),
            Err(error) => {
                let left: Vec<&str> = made.iter().filter(|name| drop_object(database, name).is_err()).map(String::as_str).collect();
                return Err(match left.is_empty() {
                    true => error,
                    false => Error::Data(format!("{error}; {} could not be dropped again", left.join(", "))),
                });
            }
        }
    }
    Ok(done)
}

fn load_table(
    database: &Database,
    foreign: &dyn Foreign,
    table: &ForeignTable,
    made: &mut Vec<String>,
    (options, compares): (&LoadOptions, bool),
    progress: &dyn Progress,
) -> Result<LoadedTable> {
    progress.start(&format!("types of {}", table.name), None, pagefold_utility::Unit::Rows);
    let mut source = foreign.source(table)?;
    progress.finish();
    let options = LoadOptions { primary_key: table.names_of(&table.primary_key), ..options.clone() };
    let report = load_source(database, &table.here, source.as_mut(), &options, progress)?;
    drop(source);
    made.push(table.here.clone());
    if report.rows != table.rows {
        let reason = format!("{} rows of table \"{}\" came, and it has {}", report.rows, table.name, table.rows);
        return Err(Error::Data(format!("{}: {reason}", foreign.path().display())));
    }
    let mut loaded = LoadedTable {
        name: table.here.clone(),
        index_bytes: report.index_bytes,
        report,
        indexes: Vec::new(),
        left_out: Vec::new(),
        compared: None,
    };
    for index in &table.indexes {
        let columns: Vec<_> = index.columns.iter().map(|(column, direction)| (table.columns[*column].name.clone(), *direction)).collect();
        let of_index = IndexOptions {
            unique: index.unique,
            format: options.key_format,
            page_bytes: options.key_page_bytes,
            costs: options.costs,
            sort_bytes: options.sort_bytes,
            ..IndexOptions::default()
        };
        match create_index(database, &index.name, &table.here, &columns, &of_index, progress) {
            Ok(built) => {
                loaded.index_bytes += built.size_bytes;
                loaded.indexes.push(index.name.clone());
            }
            // A key that is too long.
            Err(Error::Engine(pagefold_engine::Error::Value(reason))) => {
                loaded.left_out.push(format!("index \"{}\": {reason}", index.name))
            }
            Err(error) => return Err(error),
        }
    }
    if compares {
        let compared = compare(database, foreign, table, progress)?;
        if let Some(difference) = &compared.difference {
            return Err(Error::Data(format!("table \"{}\" is not as it was in {}: {difference}", table.name, foreign.path().display())));
        }
        loaded.compared = Some(compared);
    }
    Ok(loaded)
}

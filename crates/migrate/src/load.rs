//! All tables of a foreign database, with keys and indexes.
//!
//! Invariant: all of them come, or none: when one fails, those before it are dropped again.

use crate::compare::{Compared, compare};
use crate::foreign::{Foreign, ForeignTable};
use pagefold_engine::database::Database;
use pagefold_utility::{Error, IndexOptions, LoadOptions, LoadReport, Progress, Result, create_index, drop_object, load_source};

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
    /// What the comparison found, if there was to be one.
    pub compared: Option<Compared>,
}

/// What was loaded.
#[derive(Clone, Debug, Default)]
pub struct ForeignLoad {
    /// The tables.
    pub tables: Vec<LoadedTable>,
}

/// Which of the names of tables and indexes are there already.
#[must_use]
pub fn names_taken(database: &Database, tables: &[&ForeignTable]) -> Vec<String> {
    let (known, indexes) = (database.table_names(), database.index_names());
    let is_taken = |name: &&String| known.contains(name) || indexes.contains(name);
    let all = tables.iter().flat_map(|table| std::iter::once(&table.here).chain(table.indexes.iter().map(|index| &index.name)));
    all.filter(is_taken).cloned().collect()
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
    let mut done = ForeignLoad::default();
    for table in tables {
        match load_table(database, foreign, table, options, compares, progress) {
            Ok(loaded) => done.tables.push(loaded),
            Err(error) => {
                let loaded = done.tables.iter().map(|table| table.name.as_str()).chain([table.here.as_str()]);
                for name in loaded.filter(|name| database.table(name).is_ok()) {
                    // What cannot be dropped now is said by nothing but the error that is there.
                    let _ = drop_object(database, name);
                }
                return Err(error);
            }
        }
    }
    Ok(done)
}

fn load_table(
    database: &Database,
    foreign: &dyn Foreign,
    table: &ForeignTable,
    options: &LoadOptions,
    compares: bool,
    progress: &dyn Progress,
) -> Result<LoadedTable> {
    progress.start(&format!("types of {}", table.name), None, pagefold_utility::Unit::Rows);
    let mut source = foreign.source(table)?;
    progress.finish();
    let options = LoadOptions { primary_key: table.names_of(&table.primary_key), ..options.clone() };
    let report = load_source(database, &table.here, source.as_mut(), &options, progress)?;
    drop(source);
    let mut loaded = LoadedTable { name: table.here.clone(), index_bytes: report.index_bytes, report, indexes: Vec::new(), compared: None };
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
        loaded.index_bytes += create_index(database, &index.name, &table.here, &columns, &of_index, progress)?.size_bytes;
        loaded.indexes.push(index.name.clone());
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

//! `pagefold load` and `pagefold estimate` of databases of other kinds: all of their tables at once.

use super::estimate::{aligned, document};
use crate::arguments::LoadArguments;
use crate::failure::{Failure, Result};
use crate::session::{Session, remove_new_database};
use crate::size::{grouped, size_text};
use pagefold::interchange::InterchangeError;
use pagefold::io::OsStorage;
use pagefold::utility::{Error, EstimateOptions, LoadOptions, Scratch};
use pagefold_migrate::sqlite::{Mixed, SqliteFile, is_sqlite, with_table};
use pagefold_migrate::{Foreign, ForeignTable, LoadedTable, TableEstimates};
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What rows of a new table are stored in, if nothing is said.
const METHOD: &str = "page";
const FORMAT: &str = "prefix";
const INDEX_PAGE_BYTES: usize = 8192;

/// The file, and the table, that a name stands for, if it is one of another kind of database.
pub(super) fn named(source: &Path) -> Option<(PathBuf, Option<String>)> {
    if is_sqlite(source) {
        return Some((source.to_owned(), None));
    }
    with_table(source).map(|(file, table)| (file, Some(table)))
}

/// What is to be loaded from where.
pub(super) struct From {
    file: PathBuf,
    /// Only these.
    only: Vec<String>,
    /// The name that the one table is to have.
    name: Option<String>,
}

/// Whether that is what LOAD is asked for.
pub(super) fn of_load(arguments: &LoadArguments) -> Result<Option<From>> {
    match arguments.files.as_slice() {
        [] => {
            let path = PathBuf::from(&arguments.table);
            let Some((file, table)) = named(&path) else {
                return Err(Failure::Usage(format!("no FILE to load into table \"{}\", and \"{0}\" is no SQLite file", arguments.table)));
            };
            let only = if table.is_some() { table.into_iter().collect() } else { arguments.tables.clone() };
            Ok(Some(From { file, only, name: None }))
        }
        [one] => Ok(named(one).map(|(file, table)| From { file, only: table.into_iter().collect(), name: Some(arguments.table.clone()) })),
        [..] => Ok(None),
    }
}

/// Options that only a database of another kind has.
pub(super) fn not_for_files(options: &str) -> Failure {
    Failure::Usage(format!("{options} are for SQLite files"))
}

fn open(file: &Path, mixed_as_text: bool) -> Result<SqliteFile> {
    let mixed = if mixed_as_text { Mixed::AsText } else { Mixed::Refuse };
    Ok(SqliteFile::open(file, mixed).map_err(Error::from)?)
}

/// The tables that are meant.
fn chosen<'f>(foreign: &'f SqliteFile, only: &[String]) -> Result<Vec<&'f ForeignTable>> {
    if only.is_empty() {
        return Ok(foreign.tables().iter().collect());
    }
    let known = || foreign.tables().iter().map(|table| table.name.as_str()).collect::<Vec<_>>().join(", ");
    let find = |name: &String| {
        foreign.table(name).ok_or_else(|| -> Failure {
            let reason = format!("it has no table \"{name}\"; there are: {}", known());
            Error::Interchange(InterchangeError::File { path: foreign.path().to_owned(), reason }).into()
        })
    };
    let mut tables: Vec<&ForeignTable> = Vec::with_capacity(only.len());
    for name in only {
        let table = find(name)?;
        if !tables.iter().any(|other| other.name == table.name) {
            tables.push(table);
        }
    }
    Ok(tables)
}

/// LOAD of all tables, or some.
pub(super) fn load(session: &Session, arguments: &LoadArguments, from: &From, options: &LoadOptions) -> Result<()> {
    if arguments.append || arguments.replace || arguments.primary_key.is_some() || arguments.columns.is_some() || arguments.reject.is_some()
    {
        return Err(Failure::Usage(
            "from a SQLite file new tables are made, with its columns and keys: --append, --replace, --primary-key, --columns and --reject do not go with it".into(),
        ));
    }
    let foreign = open(&from.file, arguments.mixed_as_text)?;
    let mut tables: Vec<ForeignTable> = chosen(&foreign, &from.only)?.into_iter().cloned().collect();
    if let Some(name) = &from.name {
        let [table] = tables.as_mut_slice() else {
            let known = tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(Failure::Usage(format!(
                "{} has several tables ({known}): say which, as in {0}:TABLE, or leave the name \"{name}\" out to load all",
                from.file.display()
            )));
        };
        table.here.clone_from(name);
    }
    session.bars.clear();
    foreign.check().map_err(Error::from)?;
    let (database, new) = session.open_or_create(&arguments.database)?;
    let refs: Vec<&ForeignTable> = tables.iter().collect();
    let outcome = pagefold_migrate::load(&database, &foreign, &refs, options, !arguments.no_compare, &session.bars);
    session.bars.clear();
    let loaded = match outcome {
        Ok(loaded) => loaded,
        Err(error) => {
            drop(database);
            if new {
                remove_new_database(&arguments.database);
            }
            return Err(error.into());
        }
    };
    let sum = |of: &dyn Fn(&LoadedTable) -> u64| loaded.tables.iter().map(of).sum::<u64>();
    let (size, index_size) = (sum(&|t| t.report.size_bytes), sum(&|t| t.index_bytes));
    let mut left_out = left_out(&foreign, &refs, from.only.is_empty());
    left_out.extend(loaded.tables.iter().flat_map(|table| table.left_out.iter().map(|what| format!("{}: {what}", table.name))));
    if session.global.json {
        let table = |(there, here): (&&ForeignTable, &LoadedTable)| {
            json!({
                "table": here.name,
                "rows": here.report.rows,
                "source_bytes": there.bytes,
                "source_index_bytes": there.index_bytes,
                "size_bytes": here.report.size_bytes,
                "index_bytes": here.index_bytes,
                "primary_key": there.names_of(&there.primary_key),
                "indexes": here.indexes,
                "columns": super::decided::json(&here.report.decided)["columns"],
                "rows_compared": here.compared.as_ref().map(|compared| compared.rows),
                "values_compared": here.compared.as_ref().map(|compared| compared.values),
                "entries_compared": here.compared.as_ref().map(|compared| compared.entries),
            })
        };
        return session.told(session.print_json(&json!({
            "source": from.file.display().to_string(),
            "source_bytes": foreign.bytes(),
            "tables": refs.iter().zip(&loaded.tables).map(table).collect::<Vec<Json>>(),
            "rows": sum(&|t| t.report.rows),
            "size_bytes": size + index_size,
            "left_out": left_out,
            "elapsed_s": session.elapsed_s(),
            "cpu_s": session.cpu_s(),
        })));
    }
    let mut lines = vec![["table", "rows", "there", "its indexes", "here", "key and indexes"].map(str::to_owned).to_vec()];
    for (there, here) in refs.iter().zip(&loaded.tables) {
        let size = |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), size_text);
        lines.push(vec![
            here.name.clone(),
            grouped(here.report.rows),
            size(there.bytes),
            size(there.index_bytes),
            size_text(here.report.size_bytes),
            size_text(here.index_bytes),
        ]);
    }
    let mut text = aligned(&lines);
    text += &format!(
        "{} tables with {} rows loaded in {:.2} s: {} there, {} here\n",
        loaded.tables.len(),
        grouped(sum(&|t| t.report.rows)),
        session.elapsed_s(),
        size_text(foreign.bytes()),
        size_text(size + index_size)
    );
    if !arguments.no_compare {
        let compared = |of: &dyn Fn(&pagefold_migrate::Compared) -> u64| grouped(sum(&|t| t.compared.as_ref().map_or(0, of)));
        text += &format!(
            "compared: {} rows, {} values and {} index entries are the same\n",
            compared(&|c| c.rows),
            compared(&|c| c.values),
            compared(&|c| c.entries)
        );
    }
    session.told(session.print(&(text + &listed(&left_out))))
}

/// What is not brought over.
fn left_out(foreign: &SqliteFile, tables: &[&ForeignTable], all: bool) -> Vec<String> {
    let of_tables = tables.iter().flat_map(|table| table.left_out.iter().map(|what| format!("{}: {what}", table.name)));
    of_tables.chain(foreign.left_out().iter().filter(|_| all).cloned()).collect()
}

fn listed(left_out: &[String]) -> String {
    if left_out.is_empty() {
        return String::new();
    }
    left_out.iter().fold("not brought over:\n".to_owned(), |text, what| format!("{text}  {what}\n"))
}

/// ESTIMATE of all tables, or some.
pub(super) fn estimate(session: &Session, file: &Path, (only, mixed_as_text): (&[String], bool), options: &EstimateOptions) -> Result<()> {
    if !options.primary_key.is_empty() || !options.proposals.is_empty() {
        return Err(Failure::Usage("a SQLite file has keys and indexes: --primary-key and --key do not go with it".into()));
    }
    let foreign = open(file, mixed_as_text)?;
    let tables = chosen(&foreign, only)?;
    let scratch = Scratch { storage: Arc::new(OsStorage), directory: std::env::temp_dir() };
    let estimated = pagefold_migrate::estimate(&foreign, &tables, &scratch, options, &session.bars);
    session.bars.clear();
    let estimated = estimated?;
    let page_bytes = options.page_bytes;
    let of = |table: &TableEstimates| {
        let rows = table.table_bytes(METHOD, page_bytes).unwrap_or_default();
        (rows, table.index_bytes(FORMAT, INDEX_PAGE_BYTES))
    };
    let total = estimated
        .tables
        .iter()
        .map(of)
        .fold((0, 0, 0), |sum, (rows, keys)| (sum.0 + rows.0 + keys.0, sum.1 + rows.1 + keys.1, sum.2 + rows.2 + keys.2));
    let left_out = left_out(&foreign, &tables, only.is_empty());
    if session.global.json {
        let table = |table: &TableEstimates| {
            let (rows, keys) = of(table);
            let mut all = document(session, &table.report);
            all["object"] = table.table.name.clone().into();
            all["source_bytes"] = table.table.bytes.into();
            all["source_index_bytes"] = table.table.index_bytes.into();
            all["size_bytes"] = rows.1.into();
            all["index_bytes"] = keys.1.into();
            all
        };
        return session.print_json(&json!({
            "source": file.display().to_string(),
            "source_bytes": foreign.bytes(),
            "method": METHOD,
            "index_format": FORMAT,
            "size_bytes_low": total.0,
            "size_bytes": total.1,
            "size_bytes_high": total.2,
            "tables": estimated.tables.iter().map(table).collect::<Vec<Json>>(),
            "left_out": left_out,
            "elapsed_s": session.elapsed_s(),
            "cpu_s": session.cpu_s(),
        }));
    }
    let mut lines = vec![["table", "rows", "there", "its indexes", METHOD, "none", "key and indexes"].map(str::to_owned).to_vec()];
    for table in &estimated.tables {
        let known = |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), size_text);
        let (rows, keys) = of(table);
        let none = table.table_bytes("none", page_bytes).map(|none| none.1);
        lines.push(vec![
            table.table.name.clone(),
            grouped(table.report.rows),
            known(table.table.bytes),
            known(table.table.index_bytes),
            size_text(rows.1),
            known(none),
            size_text(keys.1),
        ]);
    }
    let between = if total.0 == total.2 { String::new() } else { format!(" ({} to {})", size_text(total.0), size_text(total.2)) };
    let mut text = aligned(&lines);
    text += &format!(
        "{} in {}: {} there would be {}{between} here, under {METHOD} with {FORMAT} indexes\n",
        file.display(),
        foreign.kind(),
        size_text(foreign.bytes()),
        size_text(total.1),
    );
    if only.is_empty() {
        text += &format!("one table under every method: pagefold estimate {}:TABLE --json\n", file.display());
    }
    session.print(&(text + &listed(&left_out)))
}

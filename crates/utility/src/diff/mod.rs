//! DIFF: what differs between two states of a database, each a database or copies of one.
//!
//! Both sides are looked at as a reader would see them: files, with the log applied to a scratch file. Objects are told apart by name. Of a table that both have, pages are compared where its data
//! sets have the same files on both sides; where none differs, no row is read. Else all rows of both are: each is hashed to 128 bits and sorted by the primary key, in bounded memory.
//!
//! * `rows`: rows of a table that both have
//! * `report`: what was found
//!
//! Invariants:
//! - a table that one side does not have, because it is a copy of others, is neither gone nor new;
//! - rows with the same key and the same hash are the same; two that differ have the same hash with a chance of 1 in 2^128;
//! - without a primary key a row is the same when all its values are; what is changed is then one row less and another one more.

mod report;
mod rows;

pub use report::{DiffReport, ObjectDiff, PagesDiff, RowChange, RowsDiff, TableDiff};

use crate::check::{Context, DataSetFile, Expected};
use crate::progress::tell;
use crate::{Progress, Result, Silent, Unit};
use pagefold_engine::DataSet;
use pagefold_engine::backup::{MountOptions, MountedCopy};
use pagefold_engine::database::{Database, OpenMode, Settings};
use pagefold_engine::directory::read_control;
use pagefold_engine::index::Index;
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::readers::Snapshot;
use pagefold_engine::table_space::{Table, TableAttributes};
use pagefold_format::data_set_header::ObjectKind;
use pagefold_format::page;
use pagefold_io::{Clock, Storage};
use pagefold_types::{Column, Direction};
use rows::rows;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Pages between two looks at whether to stop.
const PAGES_PER_LOOK: u64 = 256;

/// One side of a comparison.
pub struct DiffSide {
    name: String,
    storage: Arc<dyn Storage>,
    directory: PathBuf,
    database_id: u128,
    database: Database,
    /// A copy of some tables only: which has it?
    copy: Option<MountedCopy>,
}

impl DiffSide {
    /// A copy, and those that go on from it, in their order.
    ///
    /// # Errors
    /// When one is damaged or missing.
    pub fn of_copies(
        storage: &Arc<dyn Storage>,
        clock: &Arc<dyn Clock>,
        copies: &[PathBuf],
        settings: Settings,
        progress: &dyn Progress,
    ) -> Result<DiffSide> {
        let copy = MountedCopy::open(storage, clock, copies, &MountOptions::default(), progress)?;
        let database = copy.database(clock, quiet(settings))?;
        DiffSide::of(copy.storage(), copy.directory().to_path_buf(), database, Some(copy))
    }

    /// A database, as it is now, whoever writes it.
    ///
    /// # Errors
    /// When there is none, or it is damaged.
    pub fn of_database(storage: &Arc<dyn Storage>, clock: &Arc<dyn Clock>, directory: &Path, settings: Settings) -> Result<DiffSide> {
        let files = Snapshot::take(storage, directory, settings.direct)?.storage();
        let open = || Database::open(Arc::clone(&files), Arc::clone(clock), directory, OpenMode::Write, quiet(settings));
        // What the log has for its files is in them then.
        open()?.close()?;
        DiffSide::of(Arc::clone(&files), directory.to_path_buf(), open()?, None)
    }

    fn of(storage: Arc<dyn Storage>, directory: PathBuf, database: Database, copy: Option<MountedCopy>) -> Result<DiffSide> {
        let database_id = read_control(storage.as_ref(), &directory)?.current.database_id;
        Ok(DiffSide { name: directory.display().to_string(), storage, directory, database_id, database, copy })
    }

    fn has(&self, table: &str) -> bool {
        self.copy.as_ref().is_none_or(|copy| copy.has_table(table))
    }
}

/// Nothing is done to the files but what is asked for.
fn quiet(settings: Settings) -> Settings {
    Settings { pools: PoolSettings { background_threads: 0, ..settings.pools }, direct: false, ..settings }
}

/// What is to be compared.
#[derive(Clone, Copy, Debug)]
pub struct DiffOptions {
    /// List so many rows of each table that differ.
    pub rows_listed: usize,
    /// Memory for rows that are sorted.
    pub sort_bytes: usize,
}

/// Compares two sides.
///
/// # Errors
/// When something is damaged, or the user wants to stop.
pub fn diff(first: &DiffSide, second: &DiffSide, options: DiffOptions, progress: &dyn Progress) -> Result<DiffReport> {
    let mut report = DiffReport { sides: [first.name.clone(), second.name.clone()], ..DiffReport::default() };
    let both_have = |name: &String| first.has(name) && second.has(name);
    let names = |side: &DiffSide| -> BTreeSet<String> { side.database.table_names().into_iter().filter(both_have).collect() };
    let (old, new) = (names(first), names(second));
    report.gone.extend(old.difference(&new).map(|name| format!("table \"{name}\"")));
    report.new.extend(new.difference(&old).map(|name| format!("table \"{name}\"")));
    for name in old.intersection(&new) {
        let (a, b) = (first.database.table(name)?, second.database.table(name)?);
        indexes(&a, &b, &mut report);
        report.tables.push(table(first, second, &a, &b, options, progress)?);
    }
    Ok(report)
}

fn indexes(a: &Table, b: &Table, report: &mut DiffReport) {
    let (old, new) = (a.all_indexes(), b.all_indexes());
    let lacks = |list: &[Arc<Index>], name: &str| list.iter().all(|index| index.name() != name);
    let text = |index: &Arc<Index>| format!("index \"{}\"", index.name());
    report.gone.extend(old.iter().filter(|index| lacks(&new, index.name())).map(text));
    report.new.extend(new.iter().filter(|index| lacks(&old, index.name())).map(text));
    for (own, other) in old.iter().filter_map(|own| Some((own, new.iter().find(|other| other.name() == own.name())?))) {
        let (x, y) = (own.attributes_now(), other.attributes_now());
        let mut definition = Vec::new();
        let columns = |table: &Table, columns: &[(usize, Direction)]| {
            let name = |column: usize| table.attributes().schema.columns().get(column).map_or("?", |column| column.name.as_str());
            let text = columns
                .iter()
                .map(|(column, way)| format!("{}{}", name(*column), if *way == Direction::Descending { " DESC" } else { "" }));
            text.collect::<Vec<_>>().join(", ")
        };
        says(&mut definition, "columns", columns(a, &x.columns), columns(b, &y.columns));
        says(&mut definition, "unique", x.unique, y.unique);
        says(&mut definition, "format", x.format.name(), y.format.name());
        says(&mut definition, "page size", x.page_bytes, y.page_bytes);
        says(&mut definition, "pctfree", x.pctfree, y.pctfree);
        says(&mut definition, "pool", &x.pool, &y.pool);
        says(&mut definition, "damaged", own.damage().unwrap_or("no"), other.damage().unwrap_or("no"));
        if x.notes != y.notes {
            definition.push("what else is said of it differs".into());
        }
        if !definition.is_empty() {
            report.indexes.push(ObjectDiff { name: own.name().to_owned(), definition });
        }
    }
}

/// A line where two definitions differ.
fn says<T: PartialEq + ToString>(lines: &mut Vec<String>, what: &str, first: T, second: T) {
    if first != second {
        lines.push(format!("{what}: {} before, {} after", first.to_string(), second.to_string()));
    }
}

/// The columns that a user sees. One that was dropped goes with the next REORG, which makes no difference.
fn visible(table: &TableAttributes) -> impl Iterator<Item = &Column> {
    table.visible_columns().into_iter().filter_map(|column| table.schema.columns().get(column))
}

fn key_text(table: &TableAttributes) -> String {
    let names = table.primary_key.iter().filter_map(|column| table.schema.columns().get(*column)).map(|column| column.name.as_str());
    names.collect::<Vec<_>>().join(", ")
}

fn columns_text(table: &TableAttributes) -> String {
    let text = visible(table).map(|column| {
        let null = if column.nullable { "" } else { " NOT NULL" };
        format!("{} {}{null}", column.name, column.data_type)
    });
    text.collect::<Vec<_>>().join(", ")
}

fn table(
    first: &DiffSide,
    second: &DiffSide,
    a: &Arc<Table>,
    b: &Arc<Table>,
    options: DiffOptions,
    progress: &dyn Progress,
) -> Result<TableDiff> {
    let (x, y) = (a.attributes_now(), b.attributes_now());
    let mut definition = Vec::new();
    says(&mut definition, "columns", columns_text(&x), columns_text(&y));
    says(&mut definition, "primary key", key_text(&x), key_text(&y));
    says(&mut definition, "method", x.method.name(), y.method.name());
    says(&mut definition, "page size", x.page_bytes, y.page_bytes);
    says(&mut definition, "pctfree", x.pctfree, y.pctfree);
    says(&mut definition, "maxrows", x.maxrows, y.maxrows);
    says(&mut definition, "partition size", x.partition_bytes, y.partition_bytes);
    says(&mut definition, "pool", &x.pool, &y.pool);
    if x.range.as_ref().map(|range| &range.keys) != y.range.as_ref().map(|range| &range.keys) {
        definition.push("it has another range of keys".into());
    }
    if x.notes != y.notes {
        definition.push("what else is said of it differs".into());
    }
    let mut compared = TableDiff { object: ObjectDiff { name: a.name().to_owned(), definition }, ..TableDiff::default() };
    let mut same_rows = false;
    if first.database_id == second.database_id
        && let Some((pages, table_is_same)) = pages(first, second, a, b, progress)?
    {
        (compared.pages, same_rows) = (Some(pages), table_is_same);
    }
    let same_columns = visible(&x).eq(visible(&y));
    compared.rows = match (same_columns, same_rows) {
        (false, _) => None,
        (true, true) => Some(RowsDiff { same: b.row_count(), ..RowsDiff::default() }),
        (true, false) => Some(rows(first, second, a, b, options, progress)?),
    };
    Ok(compared)
}

/// Compares the pages of a table and of its indexes, where their data sets are in the same files; true when those of the table are all the same.
fn pages(first: &DiffSide, second: &DiffSide, a: &Table, b: &Table, progress: &dyn Progress) -> Result<Option<(PagesDiff, bool)>> {
    let (old, new): (Vec<_>, Vec<_>) = (a.data_sets().cloned().collect(), b.data_sets().cloned().collect());
    if old.first().map(|set| set.file_id()) != new.first().map(|set| set.file_id()) || old.is_empty() {
        return Ok(None);
    }
    let mut pages = PagesDiff::default();
    let total = new.iter().map(|set| u64::from(set.page_count())).sum();
    progress.start(&format!("comparing pages of {}", a.name()), Some(total), Unit::Pages);
    for partition in 0..old.len().max(new.len()) {
        data_set(first, second, old.get(partition), new.get(partition), ObjectKind::Table, &mut pages, progress)?;
    }
    let is_same = pages.changed + pages.gone + pages.new == 0;
    let others = b.all_indexes();
    for own in a.all_indexes().iter().filter(|own| own.damage().is_none()) {
        let other = others.iter().find(|other| other.name() == own.name() && other.damage().is_none());
        if let Some(other) = other.filter(|other| other.data_set().file_id() == own.data_set().file_id()) {
            data_set(first, second, Some(own.data_set()), Some(other.data_set()), ObjectKind::Index, &mut pages, progress)?;
        }
    }
    progress.finish();
    Ok(Some((pages, is_same)))
}

fn data_set(
    first: &DiffSide,
    second: &DiffSide,
    old: Option<&Arc<DataSet>>,
    new: Option<&Arc<DataSet>>,
    kind: ObjectKind,
    pages: &mut PagesDiff,
    progress: &dyn Progress,
) -> Result<()> {
    let mut context = Context::new(&Silent);
    let mut open = |side: &DiffSide, set: Option<&Arc<DataSet>>| {
        let set = set.filter(|set| set.is_defined())?;
        let expected = Expected {
            object: String::new(),
            file_id: set.file_id(),
            object_id: 0,
            kind,
            partition: 0,
            page_bytes: set.page_bytes(),
            leaf_bytes: set.page_bytes(),
            header_writes: 0,
        };
        DataSetFile::open(side.storage.as_ref(), &side.directory, side.database_id, &expected, &mut context)
    };
    let (mut old, mut new) = (open(first, old), open(second, new));
    let used = |set: &Option<DataSetFile>| -> Vec<u32> { set.as_ref().map(|set| set.used_pages().collect()).unwrap_or_default() };
    let (of_old, of_new) = (used(&old), used(&new));
    let (mut i, mut j, mut done) = (0, 0, 0u64);
    let (mut left, mut right) = (Vec::new(), Vec::new());
    while i < of_old.len() || j < of_new.len() {
        match (of_old.get(i), of_new.get(j)) {
            (Some(a), Some(b)) if a == b => {
                if let (Some(old), Some(new)) = (&mut old, &mut new) {
                    old.read_raw(*a, &mut left).map_err(pagefold_engine::Error::from)?;
                    new.read_raw(*b, &mut right).map_err(pagefold_engine::Error::from)?;
                }
                // How often each was written says nothing.
                for page in [&mut left, &mut right] {
                    page::set_write_counter(page, 0);
                    page[..8].fill(0);
                }
                if left == right {
                    pages.same += 1
                } else {
                    pages.changed += 1
                }
                (i, j) = (i + 1, j + 1);
            }
            (Some(a), Some(b)) if a > b => (pages.new, j) = (pages.new + 1, j + 1),
            (None, _) => (pages.new, j) = (pages.new + 1, j + 1),
            (Some(_), _) => (pages.gone, i) = (pages.gone + 1, i + 1),
        }
        done += 1;
        tell(done, PAGES_PER_LOOK, progress)?;
    }
    Ok(())
}

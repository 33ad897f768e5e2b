//! Collecting the keys of a table and building its indexes.

use crate::estimate::{Proposal, choose_format_of};
use crate::key_sort::KeySorter;
use crate::options::INDEX_PAGE_BYTES;
use crate::partitions::{Tables, create_partitioned_index};
use crate::progress::tell;
use crate::{Error, IndexOptions, Progress, Result, Setting, Unit};
use pagefold_advisor::Choice;
use pagefold_engine::database::{Change, Database, IndexBuild};
use pagefold_engine::index::{Index, IndexAttributes};
use pagefold_engine::table_space::Table;
use pagefold_format::index::build::BuiltTree;
use pagefold_types::{Direction, Rid};
use std::sync::Arc;
use std::time::Duration;

/// Entries between two looks at whether to stop.
const ENTRIES_PER_LOOK: u64 = 64 * 1024;

/// Collects the keys of one index.
pub(crate) struct KeyCollector {
    index: Arc<Index>,
    sorter: KeySorter,
    key: Vec<u8>,
}

impl KeyCollector {
    pub(crate) fn new(database: &Database, index: Arc<Index>, sort_bytes: usize) -> KeyCollector {
        let sorter = KeySorter::new(database, &format!("{:08x}", index.data_set().file_id()), sort_bytes);
        KeyCollector { index, sorter, key: Vec::new() }
    }

    pub(crate) fn push_row(&mut self, table: &Table, record: &[u8], rid: Rid) -> Result<()> {
        self.key.clear();
        self.index
            .key_layout()
            .encode_from_record(table.layout(), record, &mut self.key)
            // Rows come in the order of the source.
            .map_err(|e| Error::Row { row: self.sorter.len(), reason: e.to_string() })?;
        self.sorter.push(&self.key, rid)
    }

    /// Sorts and builds.
    pub(crate) fn build(self, progress: &dyn Progress) -> Result<(Arc<Index>, BuiltTree)> {
        self.build_as(true, progress)
    }

    /// The same, where a key of a unique index may be there twice for now, as rows change meanwhile.
    pub(crate) fn build_beside(self, progress: &dyn Progress) -> Result<(Arc<Index>, BuiltTree)> {
        self.build_as(false, progress)
    }

    fn build_as(self, checks_keys: bool, progress: &dyn Progress) -> Result<(Arc<Index>, BuiltTree)> {
        let total = self.sorter.len();
        progress.start(&format!("building index {}", self.index.name()), Some(total), Unit::Rows);
        let mut builder = self.index.build(self.sorter.slot_max());
        let mut done = 0u64;
        let mut twice = None;
        let drained = self.sorter.drain(|key, rid| {
            let pushed = if checks_keys { builder.push(key, rid) } else { builder.push_any(key, rid) };
            if let Err(error) = pushed {
                if matches!(error, pagefold_engine::Error::DuplicateKey { .. }) {
                    twice = Some(key.to_vec());
                }
                return Err(error.into());
            }
            done += 1;
            tell(done, ENTRIES_PER_LOOK, progress)
        });
        if let (Err(Error::Engine(error)), Some(key)) = (&drained, twice) {
            return Err(Error::KeyTwice { index: self.index, key, reason: error.to_string() });
        }
        drained?;
        // An empty index has no file (DEFINE NO).
        let built = if total > 0 { builder.finish()? } else { BuiltTree::default() };
        progress.finish();
        Ok((self.index, built))
    }
}

/// Collects the keys of several indexes in one pass.
#[derive(Default)]
pub(crate) struct KeyCollectors(Vec<KeyCollector>);

impl KeyCollectors {
    pub(crate) fn push(&mut self, collector: KeyCollector) {
        self.0.push(collector);
    }

    pub(crate) fn into_vec(self) -> Vec<KeyCollector> {
        self.0
    }

    pub(crate) fn push_row(&mut self, table: &Table, record: &[u8], rid: Rid) -> Result<()> {
        self.0.iter_mut().try_for_each(|collector| collector.push_row(table, record, rid))
    }
}

/// What CREATE INDEX or REORG of an index did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexReport {
    /// RIDs.
    pub rids: u64,
    /// Distinct keys.
    pub keys: u64,
    /// Levels, from the leaves to the root.
    pub built: BuiltTree,
    /// Pages, all kinds.
    pub pages: u64,
    /// Bytes of those.
    pub size_bytes: u64,
    /// What was chosen as format and page size, if they were to be.
    pub choice: Option<Choice>,
}

pub(crate) fn index_report(index: &Index, built: BuiltTree, choice: Option<Choice>) -> IndexReport {
    let data_set = index.data_set();
    let facts = data_set.facts().clone();
    IndexReport {
        rids: facts.rows,
        keys: facts.keys,
        built,
        pages: u64::from(data_set.page_count()),
        size_bytes: u64::from(data_set.page_count()) * data_set.page_bytes() as u64,
        choice,
    }
}

/// Builds an index on the rows that a table has, beside transactions that change them. These wait only for a moment, when the index becomes one that they keep.
///
/// # Errors
/// When the table or a column does not exist, the name is taken, a key is too long, or two rows have the same key of a unique index; when transactions that had changed rows do not end in time, or another
/// index of the table is being built. The database is then as it was.
pub fn create_index(
    database: &Database,
    name: &str,
    table: &str,
    columns: &[(String, Direction)],
    options: &IndexOptions,
    progress: &dyn Progress,
) -> Result<IndexReport> {
    let progress: &dyn Progress = &database.watch(format!("create-index {name}"), progress);
    let tables = Tables::find(database, table)?;
    let table = tables.first();
    let mut numbers = Vec::with_capacity(columns.len());
    for (column, direction) in columns {
        let number = table.attributes().schema.index_of(column).map_err(|e| Error::Usage(format!("table \"{}\": {e}", table.name())))?;
        numbers.push((number, *direction));
    }
    let (format, page_bytes, choice) = match options.format {
        Setting::Given(format) => (format, options.page_bytes.unwrap_or(INDEX_PAGE_BYTES), None),
        Setting::Auto => {
            let proposal = Proposal { name: name.into(), columns: columns.to_vec(), unique: options.unique };
            let (pages, how) = ((options.page_bytes, options.pctfree), (options.costs, options.sort_bytes));
            let (format, page_bytes, choice) = choose_format_of(database, table.name(), &proposal, pages, how, progress)?;
            (format, page_bytes, Some(choice))
        }
    };
    let attributes =
        IndexAttributes { pctfree: options.pctfree, ..IndexAttributes::new(name, numbers, options.unique).with_format(format, page_bytes) };
    let built = match &tables.whole {
        Some(whole) => create_partitioned_index(database, whole, &attributes, options, progress)?,
        None => build_index(database, table.name(), attributes, options, progress)?,
    };
    Ok(IndexReport { choice, ..built })
}

/// Builds an index of these attributes beside transactions that change rows of its table.
pub(crate) fn build_index(
    database: &Database,
    table: &str,
    attributes: IndexAttributes,
    options: &IndexOptions,
    progress: &dyn Progress,
) -> Result<IndexReport> {
    let schema = database.table(table)?.attributes().schema.clone();
    let mut change = database.change();
    let mut build = change.begin_index(table, attributes)?;
    if build.table().attributes().schema != schema {
        return Err(pagefold_engine::Error::Busy(format!("table \"{table}\" was replaced just now")).into());
    }
    let built = fill(database, &build, options.sort_bytes, progress)?;
    finish(&mut change, &mut build, options.patience, progress)?;
    change.commit()?;
    Ok(index_report(build.index(), built, None))
}

/// Fills an index that is built beside writers with what its table has now.
pub(crate) fn fill(database: &Database, build: &IndexBuild, sort_bytes: usize, progress: &dyn Progress) -> Result<BuiltTree> {
    let (index, table) = (build.index(), build.table());
    let mut sorter = KeySorter::new(database, &format!("{:08x}", index.data_set().file_id()), sort_bytes);
    progress.start(&format!("reading the keys of {}", table.name()), Some(table.row_count()), Unit::Rows);
    build.scan(|key, rid| {
        sorter.push(key, rid)?;
        tell(sorter.len(), ENTRIES_PER_LOOK, progress)
    })?;
    progress.finish();
    let total = sorter.len();
    progress.start(&format!("building index {}", index.name()), Some(total), Unit::Rows);
    let mut filler = build.fill(sorter.slot_max());
    let mut done = 0u64;
    sorter.drain(|key, rid| {
        filler.push(key, rid)?;
        done += 1;
        tell(done, ENTRIES_PER_LOOK, progress)
    })?;
    // An empty index has no file (DEFINE NO).
    let built = if total > 0 { filler.finish()? } else { BuiltTree::default() };
    progress.finish();
    Ok(built)
}

/// What is left to be done for an index that was filled.
pub(crate) fn finish(change: &mut Change<'_>, build: &mut IndexBuild, patience: Duration, progress: &dyn Progress) -> Result<()> {
    change.finish_index(build, patience, progress).map(drop).map_err(stopped)
}

/// An error of the engine; one who was asked to stop has stopped.
pub(crate) fn stopped(error: pagefold_engine::Error) -> Error {
    match error {
        pagefold_engine::Error::Interrupted => Error::Interrupted,
        error => error.into(),
    }
}

//! Collecting the keys of a table and building its indexes.

use crate::estimate::{Proposal, choose_format_of};
use crate::key_sort::KeySorter;
use crate::options::INDEX_PAGE_BYTES;
use crate::{Error, IndexOptions, Progress, Result, Setting, Unit};
use pagefold_advisor::Choice;
use pagefold_engine::database::{Change, Database};
use pagefold_engine::index::{Index, IndexAttributes};
use pagefold_engine::table_space::{RowBuffer, Table};
use pagefold_format::index::build::BuiltTree;
use pagefold_types::{Direction, Rid};
use std::ops::ControlFlow;
use std::sync::Arc;

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

    fn push_row(&mut self, table: &Table, record: &[u8], rid: Rid) -> Result<()> {
        self.key.clear();
        self.index
            .key_layout()
            .encode_from_record(table.layout(), record, &mut self.key)
            .map_err(|e| Error::Data(format!("table \"{}\", row {}: {e}", table.name(), table.row_count() + self.sorter.len() + 1)))?;
        self.sorter.push(&self.key, rid)
    }

    /// Sorts and builds.
    pub(crate) fn build(self, progress: &dyn Progress) -> Result<(Arc<Index>, BuiltTree)> {
        let total = self.sorter.len();
        progress.start(&format!("building index {}", self.index.name()), Some(total), Unit::Rows);
        let mut builder = self.index.build(self.sorter.slot_max());
        let mut done = 0u64;
        self.sorter.drain(|key, rid| {
            builder.push(key, rid)?;
            done += 1;
            if done.is_multiple_of(ENTRIES_PER_LOOK) {
                progress.advance(ENTRIES_PER_LOOK);
                if progress.interrupted() {
                    return Err(Error::Interrupted);
                }
            }
            Ok(())
        })?;
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

    /// Fresh indexes for `table`, with the attributes of those that `old` has.
    pub(crate) fn for_copies(
        database: &Database,
        change: &mut Change<'_>,
        old: &Table,
        table: &Table,
        sort_bytes: usize,
    ) -> Result<KeyCollectors> {
        let mut collectors = KeyCollectors::default();
        for index in database.indexes_of(old) {
            let fresh = change.create_index(table, index.attributes().clone())?;
            collectors.push(KeyCollector::new(database, fresh, sort_bytes));
        }
        Ok(collectors)
    }

    pub(crate) fn push_row(&mut self, table: &Table, record: &[u8], rid: Rid) -> Result<()> {
        self.0.iter_mut().try_for_each(|collector| collector.push_row(table, record, rid))
    }

    /// Takes the keys of all rows that the table has.
    pub(crate) fn scan(mut self, table: &Table, progress: &dyn Progress) -> Result<KeyCollectors> {
        if self.0.is_empty() {
            return Ok(self);
        }
        progress.start(&format!("reading the keys of {}", table.name()), Some(table.row_count()), Unit::Rows);
        let mut rows = 0u64;
        table.scan(&mut RowBuffer::default(), |rid, record| {
            self.push_row(table, record, rid)?;
            rows += 1;
            if rows.is_multiple_of(ENTRIES_PER_LOOK) {
                progress.advance(ENTRIES_PER_LOOK);
                if progress.interrupted() {
                    return Err(Error::Interrupted);
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        progress.finish();
        Ok(self)
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

fn index_report(index: &Index, built: BuiltTree, choice: Option<Choice>) -> IndexReport {
    let data_set = index.data_set();
    IndexReport {
        rids: built.rids,
        keys: built.keys,
        built,
        pages: u64::from(data_set.page_count()),
        size_bytes: u64::from(data_set.page_count()) * data_set.page_bytes() as u64,
        choice,
    }
}

/// Builds an index on the rows that a table has.
///
/// # Errors
/// When the table or a column does not exist, the name is taken, a key is too long, or two rows have the same key of a unique index. The database is then as it was.
pub fn create_index(
    database: &Database,
    name: &str,
    table: &str,
    columns: &[(String, Direction)],
    options: &IndexOptions,
    progress: &dyn Progress,
) -> Result<IndexReport> {
    let mut change = database.change();
    let table = change.lock_table(table)?;
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
    let (index, built) = build_one(database, &mut change, &table, attributes, options.sort_bytes, progress)?;
    change.commit()?;
    Ok(index_report(&index, built, choice))
}

/// Stages one index of a live table and builds it.
pub(crate) fn build_one(
    database: &Database,
    change: &mut Change<'_>,
    table: &Table,
    attributes: IndexAttributes,
    sort_bytes: usize,
    progress: &dyn Progress,
) -> Result<(Arc<Index>, BuiltTree)> {
    let index = change.create_index(table, attributes)?;
    let mut collectors = KeyCollectors::default();
    collectors.push(KeyCollector::new(database, index, sort_bytes));
    let mut built = collectors.scan(table, progress)?.into_vec().into_iter().map(|collector| collector.build(progress));
    built.next().unwrap_or_else(|| Err(Error::Data("no index was built".into())))
}

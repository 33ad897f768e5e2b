//! REORG: writes a table or an index anew, with another method, format, page size or order of rows, beside those who change rows. The object is replaced when all is done.

use crate::drop::no_object;
use crate::estimate::{choose_format, choose_method};
use crate::index_build::{KeyCollector, KeyCollectors, fill, finish, stopped};
use crate::options::PATIENCE;
use crate::partitions::reorg_partitioned;
use crate::progress::{rows_per_look, tell};
use crate::reorg_incremental::{IncrementalReport, reorg_incrementally};
use crate::row_order::{fill_in_order, key_of_order};
use crate::{Error, Progress, ReorgOptions, Result, Setting, Unit};
use pagefold_advisor::Choice;
use pagefold_engine::database::Database;
use pagefold_engine::table_space::{SampledRecords, Table, TableAttributes};
use std::sync::Arc;

pub(crate) const SORT_BYTES: usize = 64 << 20;

/// Pages before and after.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReorgReport {
    /// Pages of all kinds before.
    pub pages_before: u64,
    /// Bytes of those.
    pub size_bytes_before: u64,
    /// Pages of all kinds after.
    pub pages: u64,
    /// Bytes of those.
    pub size_bytes: u64,
    /// Rows of a table, RIDs of an index.
    pub rows: u64,
    /// What was chosen as method, or as format and page size, if it was to be.
    pub choice: Option<Choice>,
    /// What was done a part at a time. Pages and bytes are those of data pages then, as the rest stays.
    pub incremental: Option<IncrementalReport>,
}

/// Reorganises the table or index of this name.
///
/// # Errors
/// When there is none, an option does not go with it, or there is no room. The database is then as it was.
pub fn reorg(database: &Database, object: &str, options: &ReorgOptions, progress: &dyn Progress) -> Result<ReorgReport> {
    let progress: &dyn Progress = &database.watch(format!("reorg {object}"), progress);
    match reorg_partitioned(database, object, options, progress)? {
        Some(report) => Ok(report),
        None => reorg_one(database, object, options, progress),
    }
}

/// The same of one that is not divided, or a partition.
pub(crate) fn reorg_one(database: &Database, object: &str, options: &ReorgOptions, progress: &dyn Progress) -> Result<ReorgReport> {
    match (database.table(object), database.index(object), options.incremental) {
        (Ok(_), _, Some(how)) => reorg_incrementally(database, object, (options, how), progress),
        (Ok(_), _, None) => reorg_table(database, object, options, progress),
        (Err(_), Ok(_), Some(_)) => Err(Error::Usage(format!("\"{object}\" is an index: only tables are reorganized incrementally"))),
        (Err(_), Ok(_), None) => reorg_index(database, object, options, progress),
        (Err(pagefold_engine::Error::Unknown { .. }), Err(pagefold_engine::Error::Unknown { .. }), _) => Err(no_object(database, object)),
        (Err(pagefold_engine::Error::Unknown { .. }), Err(error), _) | (Err(error), ..) => Err(error.into()),
    }
}

fn reorg_table(database: &Database, name: &str, options: &ReorgOptions, progress: &dyn Progress) -> Result<ReorgReport> {
    if options.format.is_some() {
        return Err(Error::Usage(format!("\"{name}\" is a table: it has a compression, not an index format")));
    }
    let old = &database.table(name)?;
    let attributes = old.attributes_now();
    let order = options.order.as_ref().map(|order| key_of_order(old, order)).transpose()?;
    let sort_bytes = options.sort_bytes.unwrap_or(SORT_BYTES);
    let page_bytes = options.page_bytes.unwrap_or(attributes.page_bytes);
    let pctfree = options.pctfree.unwrap_or(attributes.pctfree);
    let (method, choice) = match options.method {
        None => (attributes.method, None),
        Some(Setting::Given(method)) => (method, None),
        Some(Setting::Auto) if options.keep_dictionary => {
            return Err(Error::Usage("a dictionary can be kept only for the method that has it, not where one is to be chosen".into()));
        }
        Some(Setting::Auto) => {
            let (method, choice) = choose_method(database, old.name(), (page_bytes, pctfree), options.costs, progress)?;
            (method, Some(choice))
        }
    };
    let mut change = database.change();
    let mut build = change.begin_table_again(old, TableAttributes { method, pctfree, ..attributes.with_page_bytes(page_bytes) })?;
    let (table, indexes) = (Arc::clone(&build.targets()[0].table), build.targets()[0].indexes.clone());
    if method.dictionary_type().is_some() {
        let kept = old.dictionary().filter(|_| options.keep_dictionary);
        let dictionary = match kept {
            Some(compressor) => Some(compressor.dictionary().clone()),
            None => sample_table(old, progress)?.train(method, table.layout(), old.row_count(), table.attributes().page_fill()),
        };
        if let Some(dictionary) = dictionary {
            table.set_dictionary(dictionary)?;
        }
    }
    let mut collectors = KeyCollectors::default();
    for index in indexes {
        collectors.push(KeyCollector::new(database, index, sort_bytes));
    }
    let mut placed = |rid, record: &[u8]| collectors.push_row(&table, record, rid);
    match &order {
        Some(key) => fill_in_order(database, &mut build, key, options, progress, placed)?,
        None => {
            progress.start(&format!("reorganizing {}", old.name()), Some(old.row_count()), Unit::Rows);
            let (mut rows, step) = (0u64, rows_per_look(old.layout().column_count()));
            build.fill(|new, record| {
                placed(new.rid, record)?;
                rows += 1;
                tell(rows, step, progress)
            })?;
            progress.finish();
        }
    }
    for collector in collectors.into_vec() {
        collector.build_beside(progress)?;
    }
    change.finish_table(&mut build, options.patience, progress).map_err(stopped)?;
    let ((pages_before, size_bytes_before), (pages, size_bytes)) = (size(old), size(&table));
    change.commit()?;
    drop(build);
    Ok(ReorgReport { pages_before, size_bytes_before, pages, size_bytes, rows: table.row_count(), choice, incremental: None })
}

/// A sample of the rows of a table for a dictionary.
pub(crate) fn sample_table(table: &Table, progress: &dyn Progress) -> Result<SampledRecords> {
    progress.start(&format!("training the dictionary of {}", table.name()), None, Unit::Rows);
    let sample = table.sample_records()?;
    progress.finish();
    Ok(sample)
}

fn size(table: &Table) -> (u64, u64) {
    let pages: u64 = table.data_sets().map(|data_set| u64::from(data_set.page_count())).sum();
    (pages, pages * table.attributes().page_bytes as u64)
}

fn reorg_index(database: &Database, name: &str, options: &ReorgOptions, progress: &dyn Progress) -> Result<ReorgReport> {
    if options.method.is_some() || options.keep_dictionary {
        return Err(Error::Usage(format!("\"{name}\" is an index: it has a format, not a compression with a dictionary")));
    }
    if options.order.is_some() {
        return Err(Error::Usage(format!("\"{name}\" is an index: its entries have their order")));
    }
    let old = database.index(name)?;
    let mut attributes = old.attributes_now();
    attributes.pctfree = options.pctfree.unwrap_or(attributes.pctfree);
    let (format, page_bytes, choice) = match options.format {
        Some(Setting::Auto) => {
            let chosen = choose_format(database, name, options.page_bytes, attributes.pctfree, options.costs, progress)?;
            (chosen.0, chosen.1, Some(chosen.2))
        }
        given => {
            let format = given.and_then(Setting::given).unwrap_or(attributes.format);
            (format, options.page_bytes.unwrap_or(attributes.page_bytes), None)
        }
    };
    let mut change = database.change();
    let mut build = change.begin_index_again(attributes.with_format(format, page_bytes))?;
    fill(database, &build, options.sort_bytes.unwrap_or(SORT_BYTES), progress)?;
    finish(&mut change, &mut build, options.patience.unwrap_or(PATIENCE), progress)?;
    let (fresh, old) = (Arc::clone(build.index()), change.replace_index(name, options.patience, progress).map_err(stopped)?);
    let pages_of = |index: &pagefold_engine::index::Index| u64::from(index.data_set().page_count());
    let bytes_of = |index: &pagefold_engine::index::Index| pages_of(index) * index.data_set().page_bytes() as u64;
    let report = ReorgReport {
        pages_before: pages_of(&old),
        size_bytes_before: bytes_of(&old),
        pages: pages_of(&fresh),
        size_bytes: bytes_of(&fresh),
        rows: fresh.data_set().facts().rows,
        choice,
        incremental: None,
    };
    change.commit()?;
    Ok(report)
}

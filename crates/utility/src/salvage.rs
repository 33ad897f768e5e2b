//! SALVAGE: the rows of all pages of a table that can be read, from its files alone: nothing of the table is opened, so nothing that is damaged keeps the rest from being read.
//!
//! Invariants:
//! - a row on a page that is whole is delivered, whatever has become of header page, space map, other pages, other objects and indexes;
//! - nothing of a page that is damaged is delivered, nor of one that is an older content of itself: these are named;
//! - the database is not changed.

use crate::check::{
    Context, DataSetFile, IndexFile, PageError, TableFiles, Visit, files_in_order, index_expected, index_object, known_log,
    read_control_slots, read_entries, read_large, table_expected, table_object,
};
use crate::{Error, Progress, Result, Unit};
use pagefold_engine::catalog::{CatalogEntries, IndexEntry, TableEntry};
use pagefold_engine::database::Settings;
use pagefold_interchange::{BatchBuilder, InterchangeError, Sink, TableSchema, arrow_schema_from_bytes};
use pagefold_io::{Clock, Storage};
use pagefold_types::{Rid, RowLayout};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Rows in a batch.
const BATCH_ROWS: usize = 8192;

/// Rows that an index has, and no page that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostKeys {
    /// Partition and page on which they are at home.
    pub page: (u16, u32),
    /// How many.
    pub rows: u64,
    /// Index that tells of them.
    pub index: String,
    /// The lowest of their keys, as texts.
    pub first: String,
    /// The highest.
    pub last: String,
}

/// A value that could not be read whole: what there is of it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostValue {
    /// The row, as "(partition, page, slot)".
    pub row: String,
    /// Its column.
    pub column: String,
}

/// What SALVAGE found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// Rows delivered.
    pub rows: u64,
    /// Pages of the table looked at.
    pub pages: u64,
    /// Was the log applied? If not, what was committed since the last checkpoint may lack.
    pub log_applied: bool,
    /// What is damaged of the table and the catalog, by page.
    pub damage: Vec<PageError>,
    /// The rows that lack, as far as an index tells.
    pub lost: Vec<LostKeys>,
    /// Large values that were not whole.
    pub values: Vec<LostValue>,
}

impl SalvageReport {
    /// Is nothing missing?
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.damage.is_empty() && self.lost.is_empty() && self.values.is_empty() && self.log_applied
    }
}

/// A table that can be salvaged.
pub struct Salvaged {
    storage: Arc<dyn Storage>,
    database_id: u128,
    log_applied: bool,
    entry: TableEntry,
    /// Its indexes, that of the primary key first.
    indexes: Vec<IndexEntry>,
    schema: TableSchema,
    damage: Vec<PageError>,
}

impl Salvaged {
    /// Looks a table up in what can be read of the catalog.
    ///
    /// # Errors
    /// When there is no database, no slot of its control file is whole, or what can be read of the catalog has no such table.
    pub fn open(storage: &Arc<dyn Storage>, clock: &Arc<dyn Clock>, directory: &Path, table: &str, settings: Settings) -> Result<Salvaged> {
        let progress = crate::Silent;
        let (files, log_applied) = files_in_order(storage, clock, directory, table, settings)?;
        let mut context = Context::new(&progress);
        let control = read_control_slots(files.as_ref(), directory, &mut context)?;
        let Some(slot) = control.current else {
            return Err(Error::Data(format!("{}: no slot of the control file is whole; recover it from a copy", directory.display())));
        };
        let log = known_log(files.as_ref(), directory, &slot);
        let (entries, _) = read_entries(files.as_ref(), directory, &slot, &log, &mut context)?;
        let damage = context.finish().errors;
        let CatalogEntries { tables, indexes, .. } = entries;
        let known: Vec<String> = tables.iter().map(|entry| entry.attributes.name.clone()).collect();
        let Some(entry) = tables.into_iter().find(|entry| entry.attributes.name == table) else {
            let catalog = if damage.is_empty() { String::new() } else { "; the catalog is damaged: `check` says where".into() };
            return Err(Error::Data(format!("no table \"{table}\"; there are: {}{catalog}", known.join(", "))));
        };
        let is_primary = |index: &IndexEntry| index.attributes.columns.iter().map(|(column, _)| column).eq(&entry.attributes.primary_key);
        let mut indexes: Vec<IndexEntry> = indexes.into_iter().filter(|index| index.table_id == entry.object_id).collect();
        indexes.sort_by_key(|index| !is_primary(index));
        let own = entry.attributes.schema.clone();
        let schema = match &entry.attributes.source_schema {
            source if source.is_empty() => TableSchema::from_schema(own),
            source => TableSchema::from_parts(arrow_schema_from_bytes(source)?, own)?,
        };
        Ok(Salvaged { storage: files, database_id: slot.database_id, log_applied, entry, indexes, schema, damage })
    }

    /// The columns that come out.
    #[must_use]
    pub fn schema(&self) -> &TableSchema {
        &self.schema
    }

    /// Writes all rows that can be read into a sink.
    ///
    /// # Errors
    /// When the sink fails, or the user wants to stop. What is damaged is no error but in the report.
    pub fn run(&self, directory: &Path, sink: &mut dyn Sink, progress: &dyn Progress) -> Result<SalvageReport> {
        let entry = &self.entry;
        let mut context = Context::new(progress);
        let Some(mut table) = TableFiles::open(self.storage.as_ref(), directory, self.database_id, entry, &mut context) else {
            return Err(Error::Data(format!("{}: the schema in the catalog makes no rows", table_object(entry))));
        };
        // Large values are read beside the pages that name them.
        let mut values = ValueFiles { sets: self.sets(directory, progress), lost: Vec::new() };
        progress.start(&format!("salvaging {}", table_object(entry)), Some(table.page_count()), Unit::Pages);
        let columns: Vec<usize> = (0..entry.attributes.schema.len()).collect();
        let layout = table.layout.clone();
        let mut builder = BatchBuilder::new(&self.schema, &layout, &columns, BATCH_ROWS)?;
        let (mut delivered, mut failed) = (Delivered::default(), None);
        table.salvage(&mut context, &mut |_, what| {
            let Visit::Row { rid, partition, page, record } = what else { return };
            if failed.is_some() {
                return;
            }
            match push(&mut builder, sink, &mut values, (entry, &layout), (rid, partition, page), record) {
                Ok(()) => delivered.note(rid),
                Err(error) => failed = Some(error),
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        if !builder.is_empty() {
            sink.write(&builder.finish()?)?;
        }
        sink.finish()?;
        let lost = self.lost_keys(directory, &delivered, progress)?;
        progress.finish();
        let found = context.finish();
        let damage = self.damage.iter().cloned().chain(found.errors).collect();
        Ok(SalvageReport { rows: delivered.rows, pages: found.pages, log_applied: self.log_applied, damage, lost, values: values.lost })
    }

    /// The data sets once more; what is wrong with them is said elsewhere.
    fn sets(&self, directory: &Path, progress: &dyn Progress) -> Vec<Option<DataSetFile>> {
        let mut quiet = Context::new(progress);
        let open = |partition| {
            let expected = table_expected(&self.entry, partition)?;
            DataSetFile::open(self.storage.as_ref(), directory, self.database_id, &expected, &mut quiet)
        };
        let mut sets: Vec<Option<DataSetFile>> = (0..self.entry.data_sets.len()).map(open).collect();
        sets.iter_mut().flatten().for_each(DataSetFile::salvage);
        sets
    }

    /// What the first index that is whole has of rows that were not delivered.
    fn lost_keys(&self, directory: &Path, delivered: &Delivered, progress: &dyn Progress) -> Result<Vec<LostKeys>> {
        for entry in &self.indexes {
            let mut quiet = Context::new(progress);
            let set = index_expected(entry)
                .and_then(|expected| DataSetFile::open(self.storage.as_ref(), directory, self.database_id, &expected, &mut quiet));
            let Some(set) = set.filter(|set| !set.damaged) else { continue };
            let key_layout = entry.attributes.key_layout(&self.entry.attributes.schema);
            let mut file = IndexFile { entry, key_layout: key_layout.clone(), set: Some(set), broken: false };
            let mut lost: BTreeMap<(u16, u32), LostKeys> = BTreeMap::new();
            file.check(&mut quiet, &mut |_, key, rid| {
                if delivered.has(rid) {
                    return;
                }
                let page = (rid.partition(), rid.page());
                let key = key_layout.describe(key);
                let found = lost.entry(page).or_insert_with(|| LostKeys {
                    page,
                    rows: 0,
                    index: index_object(entry),
                    first: key.clone(),
                    last: String::new(),
                });
                // Entries come in the order of their keys.
                found.rows += 1;
                found.last = key;
            })?;
            if !file.broken && file.set.as_ref().is_some_and(|set| !set.damaged) {
                return Ok(lost.into_values().collect());
            }
        }
        Ok(Vec::new())
    }
}

/// The rows that were delivered: a bit a slot.
#[derive(Default)]
struct Delivered {
    rows: u64,
    slots: BTreeMap<(u16, u32), Vec<u64>>,
}

impl Delivered {
    fn note(&mut self, rid: Rid) {
        self.rows += 1;
        let words = self.slots.entry((rid.partition(), rid.page())).or_default();
        let at = usize::from(rid.slot()) / 64;
        words.resize(words.len().max(at + 1), 0);
        words[at] |= 1 << (rid.slot() % 64);
    }

    fn has(&self, rid: Rid) -> bool {
        let words = self.slots.get(&(rid.partition(), rid.page()));
        words.and_then(|words| words.get(usize::from(rid.slot()) / 64)).is_some_and(|word| word >> (rid.slot() % 64) & 1 == 1)
    }
}

/// Where large values lie, and which of them are not whole.
struct ValueFiles {
    sets: Vec<Option<DataSetFile>>,
    lost: Vec<LostValue>,
}

fn push(
    builder: &mut BatchBuilder<'_>,
    sink: &mut dyn Sink,
    values: &mut ValueFiles,
    (entry, layout): (&TableEntry, &RowLayout),
    (rid, partition, page): (Rid, u16, u32),
    record: &[u8],
) -> Result<()> {
    let columns = entry.attributes.schema.columns();
    let named: Vec<_> = layout.large_values(record).unwrap_or_default();
    let mut seen = BTreeSet::new();
    builder.push_records(&[record], |reference| {
        let at = named.iter().position(|(column, named)| *named == reference && seen.insert(*column));
        let Some(at) = at else { return Err(InterchangeError::LargeValue(format!("row {rid} names no such value"))) };
        let column = &columns[named[at].0];
        let mut bytes = Vec::new();
        let quiet = crate::Silent;
        let whole = read_large(
            &mut values.sets,
            (rid, (usize::from(partition), page)),
            column.data_type,
            reference,
            &mut Context::new(&quiet),
            &mut |part| bytes.extend_from_slice(part),
        );
        if !whole {
            // A character that was cut is left out.
            if column.data_type.is_text() {
                let valid = std::str::from_utf8(&bytes).map_or_else(|error| error.valid_up_to(), str::len);
                bytes.truncate(valid);
            }
            values.lost.push(LostValue { row: rid.to_string(), column: column.name.clone() });
        }
        Ok(bytes)
    })?;
    if builder.is_full() {
        sink.write(&builder.finish()?)?;
    }
    Ok(())
}

/// Writes the rows of a table that can be read into a sink.
///
/// # Errors
/// As [`Salvaged::open`] and [`Salvaged::run`].
pub fn salvage(
    storage: &Arc<dyn Storage>,
    clock: &Arc<dyn Clock>,
    directory: &Path,
    table: &str,
    settings: Settings,
    sink: &mut dyn Sink,
    progress: &dyn Progress,
) -> Result<SalvageReport> {
    Salvaged::open(storage, clock, directory, table, settings)?.run(directory, sink, progress)
}

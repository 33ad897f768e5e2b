//! The order of CHECK.

use super::catalog::read_entries;
use super::data_set::DataSetFile;
use super::difference::{Buckets, Element, Side, Sum, hash};
use super::files::{ControlSlots, files_on_disk, read_control_slots};
use super::findings::{CheckReport, Context};
use super::log::{is_in_order, known_log, read_log};
use super::table::{TableFiles, Visit, table_object};
use super::tree::{IndexFile, index_expected, index_object};
use super::unique::check_unique;
use crate::{Progress, Result, Unit};
use pagefold_engine::DOUBLE_WRITE_NAME;
use pagefold_engine::catalog::{CatalogEntries, IndexEntry, TableEntry};
use pagefold_engine::database::{Database, GiveUp, GivenUp, Settings};
use pagefold_engine::directory::{control_path, lock_path, read_control};
use pagefold_engine::pool::double_write;
use pagefold_engine::readers::Snapshot;
use pagefold_engine::table_space::range_key_layout;
use pagefold_format::control::SlotState;
use pagefold_format::log::Leftover;
use pagefold_io::{Clock, Storage};
use pagefold_types::{KeyError, Rid, RowLayout};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Checks the database in a directory, beside a process that writes it, too: as it was at one moment, with its log applied in memory and in a file of the reader's own.
///
/// # Errors
/// When the directory holds no database, its control file cannot be read or is of a newer format, the log cannot be applied, or the user wants to stop. What is damaged is no error but in
/// the report.
pub fn check(
    storage: &Arc<dyn Storage>,
    clock: &Arc<dyn Clock>,
    directory: &Path,
    settings: Settings,
    progress: &dyn Progress,
) -> Result<CheckReport> {
    // A reader registers in the directory: not in one that is no database.
    if !storage.exists(&control_path(directory))? {
        return check_files(storage.as_ref(), directory, progress);
    }
    // A writer has files that nobody names yet, and has removed all others. Its lock is not tried: a writer that comes just then would be refused.
    let is_written = storage.lock_holder(&lock_path(directory)).is_some();
    let unnamed = if is_written { Vec::new() } else { files_on_disk(storage.as_ref(), directory)? };
    let snapshot = match Snapshot::take(storage, directory, settings.direct) {
        Ok(snapshot) => snapshot.storage(),
        // What keeps a reader out is found in the files.
        Err(error) if error.is_damage() || error.is_refusal() => return check_files(storage.as_ref(), directory, progress),
        Err(error) => return Err(error.into()),
    };
    let slot = read_control(snapshot.as_ref(), directory)?.current;
    // Recovery replaces a slot, and the catalog that it named is needed no more.
    let catalogs = catalogs(&read_control_slots(snapshot.as_ref(), directory, &mut Context::new(progress))?);
    let mut unnamed: Vec<_> = unnamed.into_iter().filter(|(_, file_id)| file_id.is_none_or(|id| !catalogs.contains(&id))).collect();
    let mut context = Context::new(progress);
    if !is_in_order(snapshot.as_ref(), directory, &slot)? {
        // Of the snapshot only.
        let given_up = bring_in_order(&snapshot, clock, directory, settings)?;
        note_given_up(&given_up, "recover the database from a copy", &mut context);
        if !given_up.is_empty() {
            // Their files nobody names here.
            unnamed = Vec::new();
        }
    }
    check_double_writes(storage.as_ref(), directory, slot.database_id, &mut context)?;
    check_named(Checked { storage: snapshot.as_ref(), directory, is_wanted: &|_| true, unnamed }, context)
}

/// Tables that could not get what the log has for them, and with what they can be had.
pub(super) fn note_given_up(given_up: &[GivenUp], otherwise: &str, context: &mut Context<'_>) {
    for GivenUp { table, error, .. } in given_up {
        let (object, page, reason) = match error {
            pagefold_engine::Error::Corrupt { object, page, reason } => (object.clone(), *page, reason.clone()),
            other => (format!("table {table:?}"), 0, other.to_string()),
        };
        let then = format!(
            "it cannot get what the log has for it, and until it is dropped nothing can be written; nothing more of it was checked: \
             salvage it (`pagefold salvage`) and drop it, or {otherwise}"
        );
        context.error(&object, page, format!("{reason}: {then}"));
    }
}

/// Applies the log to the files of a snapshot. The tables that are too damaged for that are gone from it.
fn bring_in_order(
    snapshot: &Arc<dyn Storage>,
    clock: &Arc<dyn Clock>,
    directory: &Path,
    settings: Settings,
) -> pagefold_engine::Result<Vec<GivenUp>> {
    let database = Database::open_giving_up(Arc::clone(snapshot), Arc::clone(clock), directory, settings, GiveUp::Any)?;
    let given_up = database.given_up().to_vec();
    database.close()?;
    Ok(given_up)
}

/// The files of a database as they were at one moment, with its log applied in memory and in a file of the reader's own, as far as damage lets that be done; false when it does not: then what
/// was committed since the last checkpoint may lack. `wanted`: a table that must be among them, even if it is as it was before.
///
/// # Errors
/// When there is no database, or it is of a newer format.
pub(crate) fn files_in_order(
    storage: &Arc<dyn Storage>,
    clock: &Arc<dyn Clock>,
    directory: &Path,
    wanted: &str,
    settings: Settings,
) -> Result<(Arc<dyn Storage>, bool)> {
    use pagefold_engine::Error;
    let snapshot = match Snapshot::take(storage, directory, settings.direct) {
        Ok(snapshot) => snapshot.storage(),
        Err(error) if error.is_damage() || error.is_refusal() => return Ok((Arc::clone(storage), false)),
        Err(error) => return Err(error.into()),
    };
    let slot = match read_control(snapshot.as_ref(), directory) {
        Ok(control) => control.current,
        Err(Error::Damaged { .. }) => return Ok((snapshot, false)),
        Err(error) => return Err(error.into()),
    };
    if is_in_order(snapshot.as_ref(), directory, &slot)? {
        // So it is, too, when nobody can tell what it has.
        let is_known = known_log(snapshot.as_ref(), directory, &slot).says_all;
        return Ok((snapshot, is_known));
    }
    match bring_in_order(&snapshot, clock, directory, settings) {
        Ok(given_up) if given_up.iter().all(|gone| gone.table != wanted) => Ok((snapshot, true)),
        // What that has changed is not used.
        _ => Ok((Snapshot::take(storage, directory, settings.direct)?.storage(), false)),
    }
}

/// A double-write file that cannot be used is made anew by the next writer; until then no torn page can be put back.
fn check_double_writes(storage: &dyn Storage, directory: &Path, database_id: u128, context: &mut Context<'_>) -> Result<()> {
    match double_write::images(storage, &directory.join(DOUBLE_WRITE_NAME), database_id) {
        Ok(_) => Ok(()),
        Err(pagefold_engine::Error::Damaged { path, reason }) => {
            let then = "the next command that writes makes it anew; pages that a crash has torn since cannot be put back from it";
            context.error("double-write file", 0, format!("{path}: {reason}: {then}"));
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Checks the database in a directory, from its files alone.
///
/// # Errors
/// When the directory holds no database, its control file cannot be read or is of a newer format, it was not closed in order, it changes meanwhile, or the user wants to stop. What is damaged
/// is no error but in the report.
pub fn check_files(storage: &dyn Storage, directory: &Path, progress: &dyn Progress) -> Result<CheckReport> {
    let unnamed = files_on_disk(storage, directory)?;
    let mut context = Context::new(progress);
    if let Some(slot) = read_control_slots(storage, directory, &mut Context::new(progress))?.current {
        check_double_writes(storage, directory, slot.database_id, &mut context)?;
    }
    check_named(Checked { storage, directory, is_wanted: &|_| true, unnamed }, context)
}

/// Files of a database that is checked.
pub(super) struct Checked<'a> {
    pub(super) storage: &'a dyn Storage,
    pub(super) directory: &'a Path,
    /// Only tables of these names are there.
    pub(super) is_wanted: &'a dyn Fn(&str) -> bool,
    /// Those that it does not name are left over.
    pub(super) unnamed: Vec<(PathBuf, Option<u32>)>,
}

/// Checks the database.
pub(super) fn check_named(checked: Checked<'_>, mut context: Context<'_>) -> Result<CheckReport> {
    let Checked { storage, directory, is_wanted, unnamed } = checked;
    let progress = context.progress();
    let control = read_control_slots(storage, directory, &mut context)?;
    let Some(slot) = control.current else { return Ok(context.finish()) };
    context.want_exact_headers(slot.checkpoint == 0);
    progress.start("checking the catalog", None, Unit::Pages);
    let log = match read_log(storage, directory, &slot, &mut context) {
        // The slot before knows less: what is behind its checkpoint is in the log alone, and was told of by the damaged one.
        Err(crate::Error::Data(reason)) if control.slots.iter().any(|slot| matches!(slot, SlotState::Damaged(_))) => {
            context.error("log", 0, format!("{reason}; opening the database for writing brings them up to date"));
            return Ok(context.finish());
        }
        read => read?,
    };
    context.without_log(!log.says_all);
    let (entries, whole) = read_entries(storage, directory, &slot, &log, &mut context)?;
    progress.finish();
    for (path, file_id) in unnamed {
        if !is_named(&entries, &catalogs(&control), file_id) {
            if !whole {
                context.error(
                    &path.display().to_string(),
                    0,
                    "no table or index has this file, as far as catalog and log can be read: it may be one of theirs",
                );
            } else if file_id.is_some() || path.extension().is_some_and(|extension| extension == "tmp") {
                context.leftover(&path, "harmless: a command left it that did not finish; the next one that writes removes it");
            } else {
                context.leftover(&path, "harmless: not a file of a database");
            }
        }
    }
    let left = log.checkpoint.map(|checkpoint| checkpoint.leftovers).unwrap_or_default();
    let left: Vec<Leftover> = left.into_iter().map(|left| left.left).collect();
    for table in entries.tables.iter().filter(|table| is_wanted(&table.attributes.name)) {
        let indexes: Vec<&IndexEntry> = entries.indexes.iter().filter(|index| index.table_id == table.object_id).collect();
        check_table((storage, directory, slot.database_id), table, &indexes, &left, &mut context)?;
    }
    check_unique((storage, directory, slot.database_id), &entries, is_wanted, &mut context)?;
    let after = read_control_slots(storage, directory, &mut Context::new(progress))?;
    if after.current.is_some_and(|now| now.sequence != slot.sequence) {
        return Err(crate::Error::Data(format!("{} was changed while it was checked; check it again", directory.display())));
    }
    Ok(context.finish())
}

/// The files of the catalogs that the control file names.
fn catalogs(control: &ControlSlots) -> Vec<u32> {
    let valid = control.slots.iter().filter_map(|slot| if let SlotState::Valid(slot) = slot { Some(slot) } else { None });
    valid.map(|slot| slot.catalog_file_id).collect()
}

fn is_named(entries: &CatalogEntries, catalogs: &[u32], file_id: Option<u32>) -> bool {
    let Some(file_id) = file_id else { return false };
    let tables = entries.tables.iter().flat_map(|t| &t.data_sets);
    let indexes = entries.indexes.iter().flat_map(|i| &i.data_sets);
    // A data set without a file must not have one.
    catalogs.contains(&file_id) || tables.chain(indexes).any(|d| d.file_id == file_id && d.header_writes.is_some())
}

/// An index and the sums of both sides.
struct Compared<'a> {
    file: IndexFile<'a>,
    of_rows: Sum,
    of_entries: Sum,
}

/// `left`: what commits have left and nobody could remove.
fn check_table(
    (storage, directory, database_id): (&dyn Storage, &Path, u128),
    entry: &TableEntry,
    indexes: &[&IndexEntry],
    left: &[Leftover],
    context: &mut Context<'_>,
) -> Result<()> {
    let progress = context.progress();
    let Some(mut table) = TableFiles::open(storage, directory, database_id, entry, context) else { return Ok(()) };
    let mut compared: Vec<Compared<'_>> = Vec::new();
    for index in indexes {
        if let Some(reason) = &index.damaged {
            // What lies in its file is not looked at any more, and may lack what has changed since.
            let reason = format!("it was found damaged ({reason}) and is not used since: `rebuild-index` builds it anew");
            context.error(&index_object(index), 0, reason);
            continue;
        }
        let set = index_expected(index).and_then(|expected| DataSetFile::open(storage, directory, database_id, &expected, context));
        let key_layout = index.attributes.key_layout(&entry.attributes.schema);
        compared.push(Compared {
            file: IndexFile { entry: index, key_layout, broken: set.is_none(), set },
            of_rows: Sum::default(),
            of_entries: Sum::default(),
        });
    }
    progress.start(&format!("checking {}", table_object(entry)), Some(table.page_count()), Unit::Pages);
    let layout = table.layout.clone();
    let (mut key, mut scratch) = (Vec::new(), Vec::new());
    let range = entry.attributes.range.as_ref();
    let range = range.map(|range| (range, range_key_layout(&entry.attributes.name, &entry.attributes.schema, &range.columns)));
    table.check(context, &mut |context, what| {
        let Visit::Row { rid, page, record, .. } = what else { return };
        if let Some((range, keys)) = &range {
            key.clear();
            let encoded = keys.encode_from_record(&layout, record, &mut key);
            if encoded.is_err() || key < range.keys.start || range.keys.end.as_ref().is_some_and(|end| key >= *end) {
                context.error(
                    &table_object(entry),
                    page,
                    format!("row {rid} has the key {}, which belongs in another partition", keys.describe(&key)),
                );
            }
        }
        for index in &mut compared {
            match key_of(&index.file, &layout, record, &mut key) {
                Ok(()) => index.of_rows.add(hash(&key, rid, &mut scratch)),
                Err(error) => {
                    context.error(&table_object(entry), page, format!("row {rid} in {}: {error}", index_object(index.file.entry)));
                }
            }
        }
    })?;
    progress.finish();
    for index in &mut compared {
        let pages = index.file.set.as_ref().map_or(0, |set| u64::from(set.page_count));
        progress.start(&format!("checking {}", index_object(index.file.entry)), Some(pages), Unit::Pages);
        let Compared { file, of_entries, .. } = index;
        file.check(context, &mut |_, key, rid| of_entries.add(hash(key, rid, &mut scratch)))?;
        if index.of_rows != index.of_entries {
            report_difference(&mut table, index, left, context)?;
        }
        progress.finish();
    }
    Ok(())
}

/// The key that a row has in an index, made anew.
fn key_of(index: &IndexFile<'_>, layout: &RowLayout, record: &[u8], key: &mut Vec<u8>) -> std::result::Result<(), KeyError> {
    key.clear();
    index.key_layout.encode_from_record(layout, record, key).map(drop)
}

/// Names the rows without entry and the entries without row: two more passes over both.
fn report_difference(
    table: &mut TableFiles<'_>,
    index: &mut Compared<'_>,
    leftovers: &[Leftover],
    context: &mut Context<'_>,
) -> Result<()> {
    let layout = table.layout.clone();
    let (mut key, mut scratch) = (Vec::new(), Vec::new());
    let mut buckets = Buckets::new(index.of_rows.count().max(index.of_entries.count()));
    table.again(context, &mut |what| {
        if let Visit::Row { rid, record, .. } = what
            && key_of(&index.file, &layout, record, &mut key).is_ok()
        {
            buckets.add(Side::Left, hash(&key, rid, &mut scratch));
        }
    })?;
    index.file.again(context, &mut |_, key, rid| buckets.add(Side::Right, hash(key, rid, &mut scratch)))?;
    let mut elements = buckets.elements();
    table.again(context, &mut |what| {
        if let Visit::Row { rid, partition, page, record } = what
            && key_of(&index.file, &layout, record, &mut key).is_ok()
        {
            elements.add(Side::Left, hash(&key, rid, &mut scratch), partition, page, &key, rid);
        }
    })?;
    index.file.again(context, &mut |page, key, rid| elements.add(Side::Right, hash(key, rid, &mut scratch), 0, page, key, rid))?;
    let name = index_object(index.file.entry);
    let Some((rows, entries)) = elements.finish() else {
        let reason = format!(
            "{} rows, {} entries: more of them have no partner than can be listed",
            index.of_rows.count(),
            index.of_entries.count()
        );
        context.error(&name, 0, reason);
        return Ok(());
    };
    let keys = &index.file.key_layout;
    let mut left: BTreeMap<Rid, &Element> = rows.iter().map(|row| (row.rid, row)).collect();
    let (of_table, of_index) = (table.entry.object_id, index.file.entry.object_id);
    let is_left = |element: &Element| {
        leftovers.iter().any(|left| match left {
            Leftover::Ghost { object_id, rid, .. } => (*object_id, *rid) == (of_table, element.rid),
            Leftover::Entry { object_id, key, rid } => (*object_id, *rid, key[..] == element.key[..]) == (of_index, element.rid, true),
            Leftover::LargeValue { .. } => false,
        })
    };
    for entry in entries.iter().filter(|entry| leftovers.is_empty() || !is_left(entry)) {
        let (key, rid) = (keys.describe(&entry.key), entry.rid);
        if let Some(row) = left.remove(&rid) {
            context.error(&name, entry.page, format!("entry {key} of row {rid}: the row has the key {}", keys.describe(&row.key)));
        } else if !table.is_unreadable(rid) {
            context.error(&name, entry.page, format!("entry {key} of row {rid}: no such row can be read"));
        }
    }
    // Where pages of the index are damaged, the rows whose entries were on them are not to blame.
    if index.file.broken {
        if !left.is_empty() {
            context.error(&name, 0, format!("{} rows have no entry that can be read", left.len()));
        }
        return Ok(());
    }
    for row in left.into_values() {
        let object = table_object(table.entry);
        context.error(&object, row.page, format!("row {} has no entry {} in {name}", row.rid, keys.describe(&row.key)));
    }
    Ok(())
}

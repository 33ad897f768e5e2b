//! Keys that are to be unique over all partitions of a table: those of unique indexes without a column by which the table is divided.
//!
//! Keys are compared by hashes of 64 bits, so many at a time as memory takes, in as many passes over the indexes as that makes; two that are equal are looked at themselves.

use super::data_set::DataSetFile;
use super::findings::Context;
use super::tree::{IndexFile, index_expected, index_object};
use crate::{Result, Unit};
use pagefold_engine::catalog::{CatalogEntries, IndexEntry, TableEntry};
use pagefold_engine::database::{partition_name, split_partition_name};
use pagefold_format::catalog::DefinedKind;
use pagefold_io::Storage;
use pagefold_types::Rid;
use std::collections::HashMap;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// Hashes that are held at a time: 64 MB.
const HASHES_MAX: u64 = 8 << 20;
/// Keys that are named, of one index.
const NAMED_MAX: usize = 1000;

/// An entry: number of its share, page, key, RID.
type Entry = (usize, u32, Box<[u8]>, Rid);

/// Gets entries as [`Entry`] has them.
type EntryOfShare<'v> = dyn FnMut(usize, u32, &[u8], Rid) + 'v;

/// Reports keys that rows of two partitions have. `is_wanted`: only tables of these names are there.
///
/// # Errors
/// Only when the user wants to stop.
pub(super) fn check_unique(
    (storage, directory, database_id): (&dyn Storage, &Path, u128),
    entries: &CatalogEntries,
    is_wanted: &dyn Fn(&str) -> bool,
    context: &mut Context<'_>,
) -> Result<()> {
    for whole in entries.others.iter().filter(|other| other.kind == DefinedKind::PartitionedIndex) {
        let mut shares = Vec::new();
        for (table, index) in shares_of(entries, &whole.name, whole.notes.partitioned_table()) {
            if !is_wanted(&table.attributes.name) {
                continue;
            }
            // What is wrong with it was said before.
            let expected = index_expected(index);
            let set = context
                .muted(|context| expected.and_then(|expected| DataSetFile::open(storage, directory, database_id, &expected, context)));
            let key_layout = index.attributes.key_layout(&table.attributes.schema);
            shares.push(IndexFile { entry: index, key_layout, broken: set.is_none(), set });
        }
        if shares.len() > 1 {
            compare(&whole.name, &mut shares, context)?;
        }
    }
    Ok(())
}

/// What the partitions of a table have of an index, if its keys are unique over all of them.
fn shares_of<'e>(entries: &'e CatalogEntries, index: &str, table: Option<u32>) -> Vec<(&'e TableEntry, &'e IndexEntry)> {
    let mut shares = Vec::new();
    for member in &entries.tables {
        let Some(range) = member.attributes.range.as_ref().filter(|range| Some(range.table) == table) else { continue };
        let Some((_, partition)) = split_partition_name(&member.attributes.name) else { continue };
        let wanted = partition_name(index, partition);
        let share = entries.indexes.iter().find(|own| own.table_id == member.object_id && own.attributes.name == wanted);
        let lacks = |share: &&IndexEntry| range.columns.iter().any(|column| share.attributes.columns.iter().all(|(own, _)| own != column));
        shares.extend(share.filter(|share| share.attributes.unique).filter(lacks).map(|share| (member, share)));
    }
    shares
}

fn compare(name: &str, shares: &mut [IndexFile<'_>], context: &mut Context<'_>) -> Result<()> {
    let keys: u64 = shares.iter().filter_map(|share| share.set.as_ref()?.header.as_ref()).map(|header| header.keys).sum();
    let pages: u64 = shares.iter().filter_map(|share| share.set.as_ref()).map(|set| u64::from(set.page_count)).sum();
    let passes = keys / HASHES_MAX + 1;
    let progress = context.progress();
    progress.start(&format!("comparing keys of index \"{name}\" in all partitions"), Some(pages * passes), Unit::Pages);
    let mut twice: HashMap<u64, Vec<Entry>> = HashMap::new();
    let mut hashes: Vec<u64> = Vec::new();
    for pass in 0..passes {
        hashes.clear();
        visit(shares, context, &mut |_, _, key, _| {
            let hash = xxh3_64(key);
            // Headers may be wrong about how many there are.
            if hash % passes == pass && (hashes.len() as u64) < 4 * HASHES_MAX {
                hashes.push(hash);
            }
        })?;
        hashes.sort_unstable();
        let equal = hashes.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        twice.extend(equal.map(|hash| (hash, Vec::new())).take(NAMED_MAX));
    }
    if !twice.is_empty() {
        visit(shares, context, &mut |share, page, key, rid| {
            if let Some(found) = twice.get_mut(&xxh3_64(key)) {
                found.push((share, page, key.into(), rid));
            }
        })?;
        let mut found: Vec<_> = twice.into_values().collect();
        found.sort_unstable();
        for entries in &found {
            for (at, (share, page, key, rid)) in entries.iter().enumerate() {
                let Some((other, _, _, of_other)) = entries[..at].iter().find(|other| other.2 == *key) else { continue };
                let (own, other) = (&shares[*share], &shares[*other]);
                let reason = format!(
                    "key {} of row {rid} is also that of row {of_other} in {}: it is to be unique over all partitions",
                    own.key_layout.describe(key),
                    index_object(other.entry)
                );
                context.error(&index_object(own.entry), *page, reason);
            }
        }
    }
    progress.finish();
    Ok(())
}

/// Delivers the entries of all shares whose keys have no NULL.
fn visit(shares: &mut [IndexFile<'_>], context: &mut Context<'_>, visit: &mut EntryOfShare<'_>) -> Result<()> {
    for (number, share) in shares.iter_mut().enumerate() {
        let layout = share.key_layout.clone();
        let has_null = |key: &[u8]| {
            layout.fixed_len().is_none() && layout.decode(key).is_ok_and(|values| values.iter().any(|value| value.as_ref().is_null()))
        };
        share.again(context, &mut |page, key, rid| {
            if !has_null(key) {
                visit(number, page, key, rid);
            }
        })?;
    }
    Ok(())
}

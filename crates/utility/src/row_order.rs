//! Rows of a table that is written anew in the order of a key: an external merge sort of whole rows.
//!
//! What is sorted is the key, then the record, then how long the key is: the sorter of keys puts that in order as it is, and the record is found again behind the key.
//! So the old table is read once, in the order in which it lies, and nothing is fetched by RID. Only large values are, when their row is written.
//!
//! Invariants:
//! - a row has changed since it was read only if it was noted: what is written of it then does not matter;
//! - rows and the places that they come to are sorted by way of temporary files: memory has what is sorted at a time, and a block of each run while these are merged.

use crate::key_sort::KeySorter;
use crate::progress::tell;
use crate::{Error, Progress, ReorgOptions, Result, RowOrder, Unit};
use pagefold_engine::database::{Database, RowAt, TableBuild, partition_name, split_partition_name};
use pagefold_engine::table_space::Table;
use pagefold_types::{Direction, KeyLayout, Rid};
use std::sync::Arc;

/// Rows between two looks at whether to stop.
const ROWS_PER_LOOK: u64 = 16 * 1024;

/// The key by which a table is to be ordered.
pub(crate) fn key_of_order(table: &Table, order: &RowOrder) -> Result<KeyLayout> {
    let attributes = table.attributes_now();
    match order {
        RowOrder::PrimaryKey if attributes.primary_key.is_empty() => {
            Err(Error::Usage(format!("table \"{}\" has no primary key: name an index for the order of its rows", table.name())))
        }
        RowOrder::PrimaryKey => {
            let columns: Vec<_> = attributes.primary_key.iter().map(|column| (*column, Direction::Ascending)).collect();
            Ok(KeyLayout::new(&attributes.schema, &columns))
        }
        RowOrder::Index(name) => {
            let of_partition = split_partition_name(table.name()).map(|(_, partition)| partition_name(name, partition));
            let is_named = |index: &str| index == name || of_partition.as_deref() == Some(index);
            match table.all_indexes().iter().find(|index| is_named(index.name())) {
                Some(index) => Ok(index.key_layout().clone()),
                None => Err(Error::Usage(format!("table \"{}\" has no index \"{name}\" for the order of its rows", table.name()))),
            }
        }
    }
}

/// Writes the rows of a table anew in the order of a key. `placed` is told of each where it has come to.
pub(crate) fn fill_in_order(
    database: &Database,
    build: &mut TableBuild,
    key: &KeyLayout,
    options: &ReorgOptions,
    progress: &dyn Progress,
    mut placed: impl FnMut(Rid, &[u8]) -> Result<()>,
) -> Result<()> {
    let (old, sort_bytes) = (Arc::clone(&build.olds()[0]), options.sort_bytes.unwrap_or(crate::reorg::SORT_BYTES));
    // That of a file that the old table alone has; without one it has no rows.
    let id = old.data_sets().next().map_or(0, |data_set| data_set.file_id());
    let mut rows = KeySorter::new(database, &format!("{id:08x}-rows"), sort_bytes);
    let mut sorted = Vec::new();
    progress.start(&format!("sorting the rows of {}", old.name()), Some(old.row_count()), Unit::Rows);
    build.visit_rows(|row, record| {
        sorted.clear();
        // One without a key will not be committed so: it comes first, if it is written at all.
        let key_bytes = key.encode_from_record(old.layout(), record, &mut sorted).unwrap_or(0);
        sorted.truncate(key_bytes);
        sorted.extend_from_slice(record);
        sorted.extend_from_slice(&(key_bytes as u16).to_le_bytes());
        rows.push(&sorted, row.rid)?;
        tell(rows.len(), ROWS_PER_LOOK, progress)
    })?;
    progress.finish();
    progress.start(&format!("reorganizing {}", old.name()), Some(rows.len()), Unit::Rows);
    let mut places = KeySorter::new(database, &format!("{id:08x}-places"), sort_bytes);
    build.fill_with(
        |push| {
            rows.drain(|sorted, rid| {
                let record =
                    record_of(sorted).ok_or_else(|| Error::Data("a sorted row was read back otherwise than it was written".into()))?;
                push(only(rid), record)
            })
        },
        |old, new, record| {
            // RIDs are in the order of their numbers.
            places.push(&old.rid.to_u64().to_be_bytes(), new.rid)?;
            placed(new.rid, record)?;
            tell(places.len(), ROWS_PER_LOOK, progress)
        },
    )?;
    progress.finish();
    build.place(|push| {
        places.drain(|old, new| {
            let old = old.try_into().ok().and_then(|bytes| Rid::from_u64(u64::from_be_bytes(bytes)));
            push(only(old.ok_or_else(|| Error::Data("a RID was read back otherwise than it was written".into()))?), only(new))
        })
    })
}

/// A row of the one table there is.
fn only(rid: Rid) -> RowAt {
    RowAt { table: 0, rid }
}

/// Without the key before it and its length behind it.
fn record_of(sorted: &[u8]) -> Option<&[u8]> {
    let (rest, length) = sorted.split_last_chunk::<2>()?;
    rest.get(usize::from(u16::from_le_bytes(*length))..)
}

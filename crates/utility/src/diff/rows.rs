//! Rows of a table that both sides have: each hashed, and sorted by the primary key with the side that it is from.
//!
//! Invariant: memory is that for sorting, and what is kept of the rows of one key.

use super::{DiffOptions, DiffSide, RowChange, RowsDiff};
use crate::key_sort::KeySorter;
use crate::progress::tell;
use crate::{Error, Progress, Result, Unit};
use pagefold_engine::database::ScanRequest;
use pagefold_engine::table_space::Table;
use pagefold_types::{Direction, KeyLayout, Rid, Value};
use std::cmp::Ordering;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// Rows between two looks at whether to stop.
const ROWS_PER_LOOK: u64 = 16 * 1024;
const SIDE_BYTES: usize = 1;
const HASH_BYTES: usize = 16;

/// Compares the rows of both: entries of key, side and hash, sorted.
pub(super) fn rows(
    first: &DiffSide,
    second: &DiffSide,
    a: &Arc<Table>,
    b: &Arc<Table>,
    options: DiffOptions,
    progress: &dyn Progress,
) -> Result<RowsDiff> {
    // By the key that both have; without one by the hash of all values.
    let attributes = a.attributes();
    let is_keyed = !attributes.primary_key.is_empty() && super::key_text(attributes) == super::key_text(b.attributes());
    let columns: Vec<(usize, Direction)> = attributes.primary_key.iter().map(|column| (*column, Direction::Ascending)).collect();
    let keys = is_keyed.then(|| KeyLayout::new(&attributes.schema, &columns));
    let mut sorter = KeySorter::in_directory(Arc::clone(&second.storage), second.directory.clone(), "diff", options.sort_bytes);
    for (number, side, table) in [(0u8, first, a), (1, second, b)] {
        progress.start(&format!("reading {} of {}", table.name(), side.name), Some(table.row_count()), Unit::Rows);
        // What a dropped column has stays in old rows until they are written anew, and nobody sees it.
        let (visible, of_key) = (table.attributes().visible_columns(), &table.attributes().primary_key);
        let mut rows = side.database.read_view().scan(table, &ScanRequest::default())?.into_rows();
        let (mut key, mut read) = (Vec::new(), 0u64);
        for row in &mut rows {
            let (rid, values) = row?;
            key.clear();
            if let Some(keys) = &keys {
                let parts: Vec<_> = of_key.iter().map(|column| values[*column].as_ref()).collect();
                keys.encode(&parts, &mut key).map_err(|e| Error::Data(format!("table \"{}\": {e}", table.name())))?;
                key.push(number);
                key.extend_from_slice(&hash(visible.iter().map(|column| &values[*column])).to_le_bytes());
            } else {
                key.extend_from_slice(&hash(visible.iter().map(|column| &values[*column])).to_le_bytes());
                key.push(number);
            }
            sorter.push(&key, rid)?;
            read += 1;
            tell(read, ROWS_PER_LOOK, progress)?;
        }
        progress.finish();
    }
    progress.start(&format!("comparing rows of {}", a.name()), Some(sorter.len()), Unit::Rows);
    let mut found = RowsDiff::default();
    let mut group = Group::default();
    let mut done = 0u64;
    let end = |group: &mut Group, found: &mut RowsDiff| {
        for (what, rid) in group.changes(is_keyed, found) {
            if found.listed.len() < options.rows_listed {
                let key = keys.as_ref().map_or_else(|| format!("row {rid}"), |keys| keys.describe(&group.key));
                found.listed.push((what, key));
            }
        }
        group.sides.iter_mut().for_each(Vec::clear);
    };
    sorter.drain(|entry, rid| {
        let (key, side, hash) = match is_keyed {
            true => {
                let (key, rest) = entry.split_at(entry.len() - HASH_BYTES - SIDE_BYTES);
                (key, rest[0], &rest[SIDE_BYTES..])
            }
            false => (&entry[..HASH_BYTES], entry[HASH_BYTES], &entry[..HASH_BYTES]),
        };
        if group.key != key {
            end(&mut group, &mut found);
            group.key.clear();
            group.key.extend_from_slice(key);
        }
        group.add(side, hash, rid);
        done += 1;
        tell(done, ROWS_PER_LOOK, progress)
    })?;
    end(&mut group, &mut found);
    progress.finish();
    Ok(found)
}

/// Rows of one key. Those that come more than once, which only a table without a key has, are counted: of each side the first RIDs are kept.
#[derive(Default)]
struct Group {
    key: Vec<u8>,
    sides: [Vec<(Vec<u8>, Rid)>; 2],
    counts: [u64; 2],
}

/// RIDs of equal rows that are kept.
const EQUAL_ROWS_KEPT: usize = 1000;

impl Group {
    fn add(&mut self, side: u8, hash: &[u8], rid: Rid) {
        let side = usize::from(side.min(1));
        self.counts[side] += 1;
        if self.sides[side].len() < EQUAL_ROWS_KEPT {
            self.sides[side].push((hash.to_vec(), rid));
        }
    }

    /// Counts what became of them; what can be listed.
    fn changes(&mut self, is_keyed: bool, found: &mut RowsDiff) -> Vec<(RowChange, Rid)> {
        let [old, new] = std::mem::take(&mut self.counts);
        // Those that have an equal one on the other side go: both are in the order of hashes.
        let [left, right] = &mut self.sides;
        let (mut i, mut j, mut same) = (0, 0, 0u64);
        let (mut only_left, mut only_right) = (Vec::new(), Vec::new());
        while let (Some((a, first)), Some((b, second))) = (left.get(i), right.get(j)) {
            match a.cmp(b) {
                Ordering::Equal => (same, i, j) = (same + 1, i + 1, j + 1),
                Ordering::Less => {
                    only_left.push(*first);
                    i += 1;
                }
                Ordering::Greater => {
                    only_right.push(*second);
                    j += 1;
                }
            }
        }
        only_left.extend(left[i..].iter().map(|(_, rid)| *rid));
        only_right.extend(right[j..].iter().map(|(_, rid)| *rid));
        if !is_keyed {
            // All of the group are equal, those too that are not kept.
            same = old.min(new);
        }
        let (old, new) = (old - same, new - same);
        let changed = if is_keyed { old.min(new) } else { 0 };
        found.same += same;
        found.changed += changed;
        (found.deleted, found.inserted) = (found.deleted + old - changed, found.inserted + new - changed);
        let changed = usize::try_from(changed).unwrap_or(usize::MAX);
        let of = |what: RowChange, rids: Vec<Rid>, from: usize| rids.into_iter().skip(from).map(move |rid| (what, rid));
        let pairs = only_right.iter().take(changed).map(|rid| (RowChange::Changed, *rid)).collect::<Vec<_>>().into_iter();
        pairs.chain(of(RowChange::Deleted, only_left, changed)).chain(of(RowChange::Inserted, only_right, changed)).collect()
    }
}

/// The same for the same values to the last bit, wherever large ones lie.
fn hash<'v>(values: impl Iterator<Item = &'v Value>) -> u128 {
    let mut hasher = Xxh3::new();
    for value in values {
        let mut put = |kind: u8, bytes: &[u8]| {
            hasher.update(&[kind]);
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        match value {
            Value::Null => put(0, &[]),
            Value::Boolean(value) => put(1, &[u8::from(*value)]),
            Value::Int(value) => put(2, &value.to_le_bytes()),
            Value::Decimal(value) => put(3, &value.to_le_bytes()),
            Value::Real(value) => put(4, &value.to_bits().to_le_bytes()),
            Value::Double(value) => put(5, &value.to_bits().to_le_bytes()),
            Value::Text(value) => put(6, value.as_bytes()),
            Value::Bytes(value) => put(7, value),
            Value::Uuid(value) => put(8, value),
            Value::Interval(value) => put(9, &value.to_bytes()),
        }
    }
    hasher.digest128()
}

//! Removing deleted rows: their index entries, their slots, their large values. Those of one commit lose their entries together, in the order of the keys of each index.
//!
//! Invariants:
//! - a ghost is removed when no snapshot needs it and nobody may remember its RID. That stays so: what is asked for here is older than the commit that deleted it;
//! - its entries go before its slot, of every index that the table has by then;
//! - what cannot be done together is left to be done one by one, which meets the same error: an entry that is gone already does no harm.

use super::leftovers::{Removal, key_of};
use super::open::DatabaseState;
use crate::Result;
use crate::hash::FastMap;
use crate::index::Index;
use crate::recovery::ObjectsById;
use crate::table_space::Table;
use crate::transaction::{Horizon, Pins};
use pagefold_format::log::Leftover;
use pagefold_types::Rid;
use std::ops::Range;
use std::sync::Arc;

/// So many are looked at together: enough that each leaf which loses entries is packed once, or a few times ...
const GHOSTS_TOGETHER: usize = 1 << 16;
/// ... or fewer, when their records take so many bytes.
const RECORD_BYTES_TOGETHER: usize = 8 << 20;
/// Fewer have their entries taken out one by one.
const FEW_GHOSTS: usize = 4;

/// A deleted row.
#[derive(Clone, Copy)]
pub(super) struct Ghost {
    pub(super) object_id: u32,
    pub(super) rid: Rid,
    pub(super) kind: u8,
}

/// Ghosts whose entries are out of some indexes: their records, and the indexes.
#[derive(Default)]
pub(super) struct WithoutEntries(FastMap<(u32, Rid), (Vec<u8>, Indexes)>);

type Indexes = Arc<Vec<Arc<Index>>>;

/// What is to be done about a ghost.
enum Due {
    Not,
    /// It is gone, or its table is.
    Done,
    Now(Arc<Table>, Vec<u8>),
}

/// Keys of an index, one behind the other, with their rows.
#[derive(Default)]
struct Keys {
    bytes: Vec<u8>,
    keys: Vec<(Range<usize>, Rid)>,
}

impl Keys {
    fn sorted(&self) -> Vec<(&[u8], Rid)> {
        let mut entries: Vec<_> = self.keys.iter().map(|(key, rid)| (&self.bytes[key.clone()], *rid)).collect();
        entries.sort_unstable();
        entries
    }
}

impl DatabaseState {
    /// Takes the index entries of those ghosts out that may go, of the first of what is left: how many it has looked at, at least one of any. On an error no ghost is without entries: whoever removes
    /// it meets that.
    pub(super) fn take_entries_out(
        &self,
        left: &[Leftover],
        committed: u64,
        (horizon, pins): (&Horizon, &Pins),
    ) -> (usize, WithoutEntries) {
        if left.len() < FEW_GHOSTS || !self.core.writable {
            return (left.len(), WithoutEntries::default());
        }
        let mut seen = 0;
        let without = self.try_to_take_out(left, committed, (horizon, pins), &mut seen);
        (seen, without.unwrap_or_default())
    }

    fn try_to_take_out(
        &self,
        left: &[Leftover],
        committed: u64,
        (horizon, pins): (&Horizon, &Pins),
        seen: &mut usize,
    ) -> Result<WithoutEntries> {
        let mut due: Vec<(Arc<Table>, Rid, Vec<u8>)> = Vec::new();
        let mut bytes = 0;
        for left in left.iter().take(GHOSTS_TOGETHER) {
            if bytes >= RECORD_BYTES_TOGETHER {
                break;
            }
            *seen += 1;
            if let Leftover::Ghost { object_id, rid, kind } = *left
                && let Due::Now(table, record) = self.due(Ghost { object_id, rid, kind }, committed, horizon, pins)?
            {
                bytes += record.len();
                due.push((table, rid, record));
            }
        }
        let mut without = WithoutEntries::default();
        for of_table in due.chunk_by_mut(|a, b| a.0.object_id == b.0.object_id).filter(|ghosts| ghosts.len() >= FEW_GHOSTS) {
            let table = Arc::clone(&of_table[0].0);
            let indexes = Arc::new(table.indexes().iter().cloned().collect::<Vec<_>>());
            for index in indexes.iter() {
                let (mut keys, mut key) = (Keys::default(), Vec::new());
                for (_, rid, record) in of_table.iter() {
                    key_of(&table, index, record, &mut key)?;
                    let start = keys.bytes.len();
                    keys.bytes.extend_from_slice(&key);
                    keys.keys.push((start..keys.bytes.len(), *rid));
                }
                self.delete_entries(index, &keys.sorted())?;
            }
            for (_, rid, record) in of_table {
                without.0.insert((table.object_id, *rid), (std::mem::take(record), Arc::clone(&indexes)));
            }
        }
        Ok(without)
    }

    fn delete_entries(&self, index: &Index, mut entries: &[(&[u8], Rid)]) -> Result<()> {
        let tree = index.tree();
        while let Some((key, rid)) = entries.first() {
            self.core.manager.prepare_log()?;
            let mut done = tree.delete_run(entries)?.entries;
            if done == 0 {
                tree.delete(key, *rid)?;
                done = 1;
            }
            self.core.leftovers.entry_removed();
            entries = &entries[done..];
        }
        Ok(())
    }

    fn due(&self, Ghost { object_id, rid, kind }: Ghost, committed: u64, horizon: &Horizon, pins: &Pins) -> Result<Due> {
        let Some(table) = ObjectsById::table(self, object_id)? else { return Ok(Due::Done) };
        let page = (table.partition(rid.partition())?.file_id(), rid.page());
        let remembered = pins.may_remember(self.core.births.of(page, rid.slot()), committed);
        if remembered || table.is_needed(rid, horizon, |_| Ok(true))? {
            return Ok(Due::Not);
        }
        let record = table.ghost_record(rid, kind)?;
        // Another row may lie there by now, whose kind is another one.
        debug_assert!(record.is_some(), "the deleted row {rid} is gone already");
        Ok(record.map_or(Due::Done, |record| Due::Now(table, record)))
    }

    fn is_gone(&self, ghost: Ghost) -> Removal {
        self.core.moves.forget(ghost.object_id, ghost.rid);
        Removal::Gone
    }

    /// Removes a ghost, with the entries that it still has.
    pub(super) fn remove_ghost(
        &self,
        ghost: Ghost,
        committed: u64,
        (horizon, pins): (&Horizon, &Pins),
        without: &mut WithoutEntries,
    ) -> Result<Removal> {
        let Ghost { object_id, rid, kind } = ghost;
        let known = without.0.remove(&(object_id, rid));
        let (table, record, done) = match known {
            Some((record, indexes)) => {
                let Some(table) = ObjectsById::table(self, object_id)? else { return Ok(self.is_gone(ghost)) };
                (table, record, indexes)
            }
            None => match self.due(ghost, committed, horizon, pins)? {
                Due::Not => return Ok(Removal::Needed),
                Due::Done => return Ok(self.is_gone(ghost)),
                Due::Now(table, record) => (table, record, Arc::default()),
            },
        };
        // Nobody remembers this RID, who would follow the row to where it has gone.
        self.core.moves.forget(object_id, rid);
        let mut key = Vec::new();
        for index in table.indexes().iter().filter(|index| !done.iter().any(|done| Arc::ptr_eq(done, index))) {
            key_of(&table, index, &record, &mut key)?;
            index.tree().delete(&key, rid)?;
            self.core.leftovers.entry_removed();
        }
        table.purge(rid, kind, &record)?;
        Ok(Removal::Gone)
    }
}

//! Keys that are unique over all partitions of a table: of a unique index without a column by which the table is divided.
//!
//! Each partition has its share of such an index, with its own keys, so partitions come and go as ever. Who gives a key to a row looks in the shares of all others, too: those whose
//! [bounds](crate::index) the key is in.
//!
//! Invariants:
//! - the key is locked for the whole table before anybody looks for it, and before it is locked in a share: so of two who give a key to rows of two partitions one comes second;
//! - shares are those that there are when the key is locked. One that comes later has no row with this key but by who has the lock; one that goes meanwhile, or is written anew, is an error of a
//!   stale object, and it is looked again;
//! - a share that is damaged, and may have the key, is an error: whether the key is free nobody can tell.

use super::super::leftovers::key_of;
use super::Transaction;
use crate::index::Index;
use crate::objects::{partition_name, split_partition_name};
use crate::table_space::{RowBuffer, Table};
use crate::transaction::{Resource, Snapshot};
use crate::{Error, Result};
use pagefold_types::Rid;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What a partition has of an index.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    pub(crate) table: Arc<Table>,
    pub(crate) index: Arc<Index>,
}

impl Share {
    /// Has a row this key, as a snapshot sees it? Entries may be left of rows that have it no more.
    pub(in crate::database) fn row_has_key(&self, rid: Rid, key: &[u8], snapshot: &Snapshot) -> Result<bool> {
        let Share { table, index } = self;
        let mut own = Vec::new();
        let has_key = |record: &[u8]| key_of(table, index, record, &mut own).map(|()| own == key);
        let seen = table.read_visible(rid, snapshot, &mut RowBuffer::default(), has_key, |_| ())?;
        Ok(seen.transpose()?.unwrap_or(false))
    }
}

/// The shares of an index, as the transaction has found them.
#[derive(Debug)]
pub(super) struct Shares {
    version: (u64, usize),
    name: String,
    all: Arc<[Share]>,
}

/// The partitioned table over which the keys of an index of a partition are unique, by number; `None`: they are by themselves.
pub(crate) fn spans(table: &Table, index: &Index) -> Option<u32> {
    let range = table.range()?;
    let attributes = index.attributes();
    let lacks = |column: &usize| attributes.columns.iter().all(|(own, _)| own != column);
    (attributes.unique && range.columns.iter().any(lacks)).then_some(range.table)
}

impl Transaction<'_> {
    /// Locks a key for all partitions of a table, if it is unique over all of them.
    pub(super) fn lock_key_of_all(&mut self, table: &Table, index: &Index, key: &[u8]) -> Result<()> {
        let Some(whole) = spans(table, index) else { return Ok(()) };
        if !self.wholes.contains(&whole) {
            // Who has very many of these keys takes the table for himself instead.
            self.database.core.locks.lock_within(self.state.id(), whole, self.options.lock_timeout)?;
            self.wholes.push(whole);
        }
        // Two indexes of a table have different keys.
        let columns =
            index.attributes().columns.iter().fold(0u64, |seed, (column, _)| seed.wrapping_mul(4099).wrapping_add(*column as u64 + 1));
        self.acquire(Resource::Key(whole, xxh3_64_with_seed(key, columns)))
    }

    /// The living row of another partition that has a key of a unique index, if there is one: it is locked then. The key is locked.
    pub(super) fn taker_elsewhere(&mut self, table: &Table, index: &Index, key: &[u8]) -> Result<Option<(Arc<Table>, Rid)>> {
        if spans(table, index).is_none() {
            return Ok(None);
        }
        loop {
            // Read first: what is found may be newer, never older.
            let version = self.definitions_version();
            let shares = self.shares(table, index)?;
            match self.taker_in(&shares, index.object_id, key) {
                Err(Error::Stale { .. }) if self.definitions_version() != version => {}
                Ok(None) => {
                    self.check_former(table, index, &shares, key)?;
                    return Ok(None);
                }
                found => return found,
            }
        }
    }

    fn taker_in(&mut self, shares: &[Share], own: u32, key: &[u8]) -> Result<Option<(Arc<Table>, Rid)>> {
        for Share { table, index } in shares.iter().filter(|share| share.index.object_id != own) {
            // That there is no entry need not be noted as read: nobody else adds one, as long as the key is locked.
            index.check_usable()?;
            if !index.tree().may_have(key)? || index.tree().key_cursor(key).next()?.is_none() {
                continue;
            }
            // From now on it is neither dropped nor written anew.
            self.lock_within(table)?;
            self.check_table(table, None)?;
            if let Some(rid) = self.row_with_key(table, index, key, None)? {
                return Ok(Some((Arc::clone(table), rid)));
            }
        }
        Ok(None)
    }

    /// A conflict when the snapshot of the transaction has the key in a partition that is there no more: it would see the key twice.
    fn check_former(&mut self, table: &Table, index: &Index, now: &[Share], key: &[u8]) -> Result<()> {
        let Some(snapshot) = self.snapshot.clone() else { return Ok(()) };
        let Some(name) = split_partition_name(table.name()).map(|(name, _)| name.to_owned()) else { return Ok(()) };
        let seen = self.defining.partitioned_table(&self.database, &name, Some(snapshot.timestamp()))?;
        let is_former = |object_id: u32| now.iter().all(|share| share.table.object_id != object_id);
        for partition in seen.partitions().iter().filter(|partition| is_former(partition.object_id())) {
            let former = self.table_of_partition(partition)?;
            let is_share = |own: &&Arc<Index>| (&own.attributes().columns, own.attributes().unique) == (&index.attributes().columns, true);
            let Some(index) = self.indexes(&former)?.iter().find(is_share).cloned() else { continue };
            let share = Share { table: former, index };
            let mut cursor = share.index.tree().key_cursor(key);
            while let Some((_, rid)) = cursor.next()? {
                if share.row_has_key(rid, key, &snapshot)? {
                    return Err(Error::Conflict { object: share.table.name().into(), rid });
                }
            }
        }
        Ok(())
    }

    /// The shares of an index, of which one is this, as they are now.
    pub(super) fn shares(&mut self, table: &Table, index: &Index) -> Result<Arc<[Share]>> {
        // As it is called by now: this transaction may have exchanged it.
        let own = self.defining.index_by_id(index.object_id).cloned();
        let called = own.as_deref().unwrap_or(index).name();
        let names = split_partition_name(called).zip(split_partition_name(table.name()));
        let Some(((name, _), (of_table, _))) = names else { return Ok(Arc::default()) };
        // Read first: what is found may be newer, never older.
        let version = self.definitions_version();
        if let Some(known) = self.shares.iter().find(|known| known.name == name && known.version == version) {
            return Ok(Arc::clone(&known.all));
        }
        let (name, of_table) = (name.to_owned(), of_table.to_owned());
        let partitioned = self.defining.partitioned_table(&self.database, &of_table, None)?;
        let mut all = Vec::with_capacity(partitioned.partitions().len());
        for partition in partitioned.partitions() {
            let found = self.defining.table_of(&self.database, partition)?;
            let wanted = partition_name(&name, partition.name());
            let is_share = |own: &Arc<Index>| {
                own.name() == wanted && (&own.attributes().columns, own.attributes().unique) == (&index.attributes().columns, true)
            };
            let damaged = found.damaged_indexes();
            let known = self.indexes_of(&found);
            let share = known
                .iter()
                .chain(damaged.iter())
                .map(|own| self.defining.index_by_id(own.object_id).unwrap_or(own))
                .find(|own| is_share(own));
            // One that is not there yet: who builds it looks at the keys of all.
            all.extend(share.map(|share| Share { table: found.clone(), index: Arc::clone(share) }));
        }
        let all: Arc<[Share]> = all.into();
        self.shares.retain(|known| known.name != name);
        self.shares.push(Shares { version, name, all: Arc::clone(&all) });
        Ok(all)
    }
}

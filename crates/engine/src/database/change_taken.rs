//! Tables of another database in a change of whole objects: what RECOVER of a table puts in the place of what there is.
//!
//! Invariants:
//! - as with other tables of a change: nothing is seen before the commit, and then all of it is;
//! - pages are copied as they are, so RIDs and layouts of rows stay, and the entries of an index that is copied with its table fit;
//! - an index that cannot be copied is named, empty: who commits has built it.

use super::change::Change;
use super::open::Database;
use crate::index::{Index, IndexAttributes};
use crate::objects::{PartitionedTable, partition_name, split_partition_name};
use crate::table_space::{Table, TableAttributes};
use crate::{Error, Progress, Result, Unit};
use pagefold_format::catalog::{DefinedKind, Notes};
use pagefold_types::{KeyRange, Schema};
use std::sync::Arc;

/// A table that was taken from another database.
#[derive(Debug)]
pub struct TakenTable {
    /// It.
    pub table: Arc<Table>,
    /// Its indexes, as they were there.
    pub indexes: Vec<Arc<Index>>,
    /// Those that are empty, and have to be built.
    pub to_build: Vec<Arc<Index>>,
}

/// What a change has dropped to put something else in its place.
#[derive(Debug, Default)]
pub struct Dropped {
    schema: Option<Schema>,
    /// Of a partition: its keys.
    keys: Option<KeyRange>,
    /// Of the name of a partition: what it is of.
    whole: Option<Whole>,
    /// Names of the indexes that went with it.
    pub indexes: Vec<String>,
}

/// The partitioned table of a partition that comes alone.
#[derive(Debug)]
struct Whole {
    object_id: u32,
    /// Which indexes each of its partitions has.
    shares: Vec<IndexAttributes>,
    /// What is said of it: the notes of one of its partitions, which all have the same.
    notes: Option<Notes>,
}

impl Dropped {
    /// Was there something?
    #[must_use]
    pub fn is_something(&self) -> bool {
        self.schema.is_some()
    }

    /// The keys of the partition that was there.
    #[must_use]
    pub fn keys(&self) -> Option<&KeyRange> {
        self.keys.as_ref()
    }
}

impl Change<'_> {
    /// Drops the table or partitioned table of a name, if there is one, in whatever state it is, and keeps others from making one. Nobody changes its rows from then on, and what was changed is durable in the log.
    ///
    /// # Errors
    /// Those of locks.
    pub fn drop_to_replace(&mut self, name: &str) -> Result<Dropped> {
        let dropped = self.define(|defining, by| {
            by.lock_name(name)?;
            let mut dropped = Dropped::default();
            if let Some((whole, partition)) = split_partition_name(name) {
                by.lock_name(whole)?;
                if let Some(live) = by.database.other(DefinedKind::PartitionedTable, whole)? {
                    let now = defining.lock_partitioned(by, whole)?;
                    let one = now.partitions().iter().find_map(|sibling| defining.table_of(by.database, sibling).ok());
                    let notes = one.map(|table| table.attributes_now().notes);
                    let mut shares = Vec::new();
                    for index in defining.partitioned_indexes(by.database, &now) {
                        let of = |sibling| {
                            let own = defining.table_of(by.database, sibling).ok()?.all_indexes();
                            own.into_iter().find(|own| own.name() == PartitionedTable::index_name(&index, sibling))
                        };
                        if let Some(like) = now.partitions().iter().find_map(of) {
                            shares.push(IndexAttributes { name: partition_name(&index, partition), ..like.attributes_now() });
                        }
                    }
                    dropped.whole = Some(Whole { object_id: live.object_id, shares, notes });
                }
            }
            let tables = if by.database.other(DefinedKind::PartitionedTable, name)?.is_some() {
                let whole = defining.lock_partitioned(by, name)?;
                dropped.schema = Some(whole.schema().clone());
                dropped.indexes = defining.partitioned_indexes(by.database, &whole);
                defining.drop_partitioned_table(by, name)?
            } else if by.database.table_names().iter().any(|there| there == name) {
                let table = defining.drop_table(by, name)?;
                dropped.schema = Some(table.attributes().schema.clone());
                dropped.keys = table.range().map(|range| range.keys.clone());
                vec![table]
            } else {
                Vec::new()
            };
            dropped.indexes.extend(tables.iter().flat_map(|table| table.all_indexes()).map(|index| index.name().to_owned()));
            Ok(dropped)
        })?;
        if let Some(log) = self.database().core.log() {
            log.make_durable(log.end())?;
        }
        Ok(dropped)
    }

    /// A table of another database, or all partitions of a partitioned one, with the indexes, in the place of what was dropped. Where that had other columns, `replace` must say so.
    ///
    /// # Errors
    /// When there is none, it has other columns, or as a partition other keys, than what was dropped, a name is taken by something else, a partition does not go with those that there are, or a page is damaged.
    pub fn take_table(
        &mut self,
        from: &Database,
        name: &str,
        dropped: &Dropped,
        replace: bool,
        progress: &dyn Progress,
    ) -> Result<Vec<TakenTable>> {
        let check_columns = |schema: &Schema| match &dropped.schema {
            Some(now) if now != schema && !replace => {
                let text = |schema: &Schema| {
                    let columns = schema.columns().iter().map(|column| format!("{} {}", column.name, column.data_type));
                    columns.collect::<Vec<_>>().join(", ")
                };
                Err(Error::Parameter(format!(
                    "table \"{name}\" had other columns then ({}) than it has now ({}): it is put in the place of that only if it is said so (--replace)",
                    text(schema),
                    text(now)
                )))
            }
            _ => Ok(()),
        };
        if let Some(other) = from.other(DefinedKind::PartitionedTable, name)? {
            let whole = from.partitioned_table(name)?;
            check_columns(whole.schema())?;
            let fresh = self.define(|defining, by| {
                let fresh = defining.create_other(by, DefinedKind::PartitionedTable, name, other.notes.clone())?;
                for index in from.partitioned_indexes_of(&whole) {
                    let Some(other) = from.other(DefinedKind::PartitionedIndex, &index)? else { continue };
                    let mut notes = other.notes.clone();
                    notes.set_partitioned_table(fresh.object_id).map_err(|e| Error::Parameter(e.to_string()))?;
                    defining.create_other(by, DefinedKind::PartitionedIndex, &index, notes)?;
                }
                Ok(fresh)
            })?;
            let mut taken = Vec::with_capacity(whole.partitions().len());
            for partition in whole.partitions() {
                let table = from.table_of_partition(partition)?;
                taken.push(self.take_one(from, &table, Some(fresh.object_id), None, progress)?);
            }
            return Ok(taken);
        }
        let table = from.table(name)?;
        check_columns(&table.attributes().schema)?;
        let Some((whole, _)) = split_partition_name(name).filter(|_| table.range().is_some()) else {
            return Ok(vec![self.take_one(from, &table, None, None, progress)?]);
        };
        let keys = table.range().map(|range| &range.keys);
        if dropped.keys.as_ref().is_some_and(|now| Some(now) != keys) && !replace {
            return Err(Error::Parameter(format!(
                "table \"{name}\" had other keys then than it has now, as partitions were divided or put together since: rows of now would be lost; it is put in the place of that only if it is said so (--replace)"
            )));
        }
        match &dropped.whole {
            Some(own) => Ok(vec![self.take_one(from, &table, Some(own.object_id), Some(own), progress)?]),
            None => Err(Error::Parameter(format!("table \"{name}\" is a partition of \"{whole}\", which is not there: recover that"))),
        }
    }

    /// `alone`: of a partition that comes alone, what the whole is now.
    fn take_one(
        &mut self,
        from: &Database,
        old: &Table,
        whole: Option<u32>,
        alone: Option<&Whole>,
        progress: &dyn Progress,
    ) -> Result<TakenTable> {
        let shares = alone.map(|whole| whole.shares.as_slice());
        let mut attributes: TableAttributes = old.attributes_now();
        if let Some(notes) = alone.and_then(|whole| whole.notes.as_ref()) {
            // What is said of the table is what is said of it now; statistics are of the rows.
            let statistics = attributes.notes.statistics().map(<[u8]>::to_vec);
            attributes.notes = notes.clone();
            attributes.notes.set_statistics(statistics).map_err(|e| Error::Parameter(e.to_string()))?;
        }
        if let (Some(range), Some(whole)) = (&mut attributes.range, whole) {
            range.table = whole;
        }
        let fresh = self.define(|defining, by| defining.create_table_of_pages(by, attributes))?;
        let indexes = old.all_indexes();
        let of_indexes = indexes.iter().filter(|index| index.damage().is_none()).map(|index| index.data_set());
        let bytes = old.data_sets().chain(of_indexes).map(|data_set| u64::from(data_set.page_count()) * data_set.page_bytes() as u64).sum();
        progress.start(&format!("taking over {}", old.name()), Some(bytes), Unit::Bytes);
        let mut told = |bytes: u64| {
            progress.advance(bytes);
            if progress.interrupted() { Err(Error::Interrupted) } else { Ok(()) }
        };
        for data_set in old.data_sets() {
            let copy = fresh.add_partition()?;
            if data_set.is_defined() {
                copy.copy_pages(data_set, &from.core.manager, &mut told)?;
            }
        }
        fresh.load_dictionaries()?;
        fresh.check_dictionaries()?;
        let mut taken = TakenTable { table: Arc::clone(&fresh), indexes: Vec::new(), to_build: Vec::new() };
        for index in &indexes {
            // Of a partition: is it what it had of an index of the whole that is there no more?
            let is_share = |name: &str| {
                let of = split_partition_name(name).map(|(of, _)| of);
                of.is_some_and(|of| matches!(from.other(DefinedKind::PartitionedIndex, of), Ok(Some(_))))
            };
            if shares.is_some_and(|shares| shares.iter().all(|share| share.name != index.name())) && is_share(index.name()) {
                continue;
            }
            let now = shares.into_iter().flatten().find(|share| share.name == index.name());
            let own = index.attributes_now();
            let is_other = now.is_some_and(|now| (&now.columns, now.unique) != (&own.columns, own.unique));
            if index.damage().is_some() || is_other {
                let attributes = if is_other { now.cloned().unwrap_or(own) } else { own };
                taken.to_build.push(self.create_index(&fresh, attributes)?);
                continue;
            }
            let copy = self.create_index(&fresh, own.clone())?;
            let copied = match index.data_set().is_defined() {
                true => copy.data_set().copy_pages(index.data_set(), &from.core.manager, &mut told),
                false => Ok(()),
            };
            match copied {
                Ok(()) => taken.indexes.push(copy),
                // What of it was copied is not to be used.
                Err(error) if error.is_damage() => {
                    let name = own.name.clone();
                    self.define(|defining, by| defining.drop_index(by, &name))?;
                    taken.to_build.push(self.create_index(&fresh, own)?);
                }
                Err(error) => return Err(error),
            }
        }
        for share in shares.into_iter().flatten() {
            let has = taken.indexes.iter().chain(&taken.to_build).any(|index| index.name() == share.name);
            if !has {
                taken.to_build.push(self.create_index(&fresh, share.clone())?);
            }
        }
        progress.finish();
        Ok(taken)
    }
}

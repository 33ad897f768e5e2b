//! Tables and indexes that were dropped or replaced, for as long as somebody needs them.
//!
//! Invariants:
//! - as long as a snapshot may count it, a former object is found, by name and by number, and what transactions have left in it is removed as in any other;
//! - the pages of a data set leave memory, and its file the directory, when nobody has the data set any more: no handle, no reader, no thread that writes its pages.

use super::open::DatabaseState;
use crate::Result;
use crate::catalog::OtherEntry;
use crate::data_set::DataSet;
use crate::gate::Gate;
use crate::index::Index;
use crate::objects::Replaced;
use crate::pool::BufferManager;
use crate::table_space::Table;
use pagefold_format::catalog::DefinedKind;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug, Default)]
struct Lists {
    tables: Vec<Arc<Table>>,
    indexes: Vec<Arc<Index>>,
    /// Tables and indexes that are there, as they were before they were altered.
    tables_before: Vec<Arc<Table>>,
    indexes_before: Vec<Arc<Index>>,
    /// What has no pages, and the commit that dropped it.
    others: Vec<(Arc<OtherEntry>, u64)>,
    /// Of objects that no snapshot counts, and catalogs of before.
    data_sets: Vec<Arc<DataSet>>,
}

/// Former objects.
#[derive(Debug, Default)]
pub(crate) struct Former {
    lists: Mutex<Lists>,
    /// How many things are in the lists.
    count: AtomicUsize,
}

impl Former {
    /// At the commit of a change, in the order of commits.
    pub(super) fn replaced(&self, replaced: &Replaced, timestamp: u64) {
        replaced.tables.iter().for_each(|table| table.lifetime.begin(timestamp));
        replaced.indexes.iter().for_each(|index| index.lifetime.begin(timestamp));
        replaced.dropped_tables.iter().for_each(|table| table.lifetime.end(timestamp));
        replaced.dropped_indexes.iter().for_each(|index| index.lifetime.end(timestamp));
        for (table, before) in &replaced.altered_tables {
            table.lifetime.begin(timestamp);
            before.lifetime.end(timestamp);
        }
        for (index, before) in &replaced.altered_indexes {
            index.lifetime.begin(timestamp);
            before.lifetime.end(timestamp);
        }
        let mut lists = self.lists.lock();
        lists.tables_before.extend(replaced.altered_tables.iter().map(|(_, before)| Arc::clone(before)));
        lists.indexes_before.extend(replaced.altered_indexes.iter().map(|(_, before)| Arc::clone(before)));
        lists.tables.extend(replaced.dropped_tables.iter().cloned());
        lists.indexes.extend(replaced.dropped_indexes.iter().cloned());
        lists.others.extend(replaced.dropped_others.iter().map(|other| (Arc::clone(other), timestamp)));
        self.counted(&lists);
    }

    /// These data sets go when nobody has them any more.
    pub(super) fn leave(&self, data_sets: impl IntoIterator<Item = Arc<DataSet>>) {
        let mut lists = self.lists.lock();
        lists.data_sets.extend(data_sets);
        self.counted(&lists);
    }

    fn counted(&self, lists: &Lists) {
        let objects = lists.tables.len() + lists.indexes.len() + lists.tables_before.len() + lists.indexes_before.len();
        self.count.store(objects + lists.others.len() + lists.data_sets.len(), Ordering::Release);
    }

    fn find<T>(&self, all: impl FnOnce(&Lists) -> &Vec<Arc<T>>, is_it: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        all(&self.lists.lock()).iter().find(|object| is_it(object)).cloned()
    }

    /// What had this name and kind, and no pages, when the snapshot of this timestamp was taken, if it was dropped since.
    fn other(&self, kind: DefinedKind, name: &str, timestamp: u64) -> Option<Arc<OtherEntry>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let lists = self.lists.lock();
        let of_name = lists.others.iter().filter(|(other, until)| other.kind == kind && other.name == name && *until > timestamp);
        // Of those that had the name one after the other.
        of_name.min_by_key(|(_, until)| *until).map(|(other, _)| Arc::clone(other))
    }

    /// Former tables for which this is true.
    fn tables(&self, is_it: impl Fn(&Table) -> bool) -> Vec<Arc<Table>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let lists = self.lists.lock();
        lists.tables.iter().chain(&lists.tables_before).filter(|table| is_it(table)).cloned().collect()
    }

    /// The former indexes of a table.
    pub(super) fn indexes_of(&self, table_id: u32) -> Vec<Arc<Index>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let lists = self.lists.lock();
        lists.indexes.iter().chain(&lists.indexes_before).filter(|index| index.table_id == table_id).cloned().collect()
    }

    /// Removes what nobody needs. `oldest`: the timestamp of the oldest snapshot.
    fn sweep(&self, manager: &BufferManager, oldest: u64) {
        let mut unused = Vec::new();
        {
            let mut lists = self.lists.lock();
            let Lists { tables, indexes, others, data_sets, tables_before, indexes_before } = &mut *lists;
            tables_before.retain(|table| table.lifetime.until() > oldest);
            indexes_before.retain(|index| index.lifetime.until() > oldest);
            others.retain(|(_, until)| *until > oldest);
            for table in tables.extract_if(.., |table| table.lifetime.until() <= oldest) {
                data_sets.extend(table.data_sets().cloned());
            }
            for index in indexes.extract_if(.., |index| index.lifetime.until() <= oldest) {
                data_sets.push(Arc::clone(&index.data_set));
            }
            unused.extend(data_sets.extract_if(.., |data_set| manager.forget_unused(data_set)));
            self.counted(&lists);
        }
        if unused.is_empty() {
            return;
        }
        // A reader that registers finds the files of all that the log names so far, or none.
        let passage = manager.gate().map(Gate::pass);
        for data_set in unused {
            manager.discard(&data_set);
            // What cannot be removed now goes at the next open.
            if !matches!(passage, Some(Err(_))) {
                let _ = data_set.remove();
            }
        }
    }
}

impl DatabaseState {
    /// The table of a name that counts for the snapshot of this timestamp.
    pub(super) fn table_of_snapshot(&self, name: &str, timestamp: u64) -> Result<Option<Arc<Table>>> {
        let live = self.objects.read().tables.get(name).map(|place| place.object_id);
        let live = live.map_or(Ok(None), |object_id| self.live_table_by_id(object_id))?;
        let is_it = |table: &Table| table.name() == name && table.lifetime.covers(timestamp);
        // From the live ones it goes to the former ones.
        let former = || self.former.find(|lists| &lists.tables, is_it).or_else(|| self.former.find(|lists| &lists.tables_before, is_it));
        Ok(live.filter(|table| is_it(table)).or_else(former))
    }

    /// What has no pages, was dropped, and counts for the snapshot of this timestamp.
    pub(super) fn former_other(&self, kind: DefinedKind, name: &str, timestamp: u64) -> Option<Arc<OtherEntry>> {
        self.former.other(kind, name, timestamp)
    }

    /// Tables that were dropped or replaced, and that a snapshot may still see, for which this is true.
    pub(super) fn former_tables(&self, is_it: impl Fn(&Table) -> bool) -> Vec<Arc<Table>> {
        self.former.tables(is_it)
    }

    /// The table of a number that somebody has used and that is there.
    pub(super) fn opened_table(&self, object_id: u32) -> Option<Arc<Table>> {
        self.objects.read().tables.by_id(object_id)?.opened()
    }

    /// The index of a name that counts for the snapshot of this timestamp.
    pub(super) fn index_of_snapshot(&self, name: &str, timestamp: u64) -> Result<Option<Arc<Index>>> {
        let live = self.objects.read().indexes.get(name).cloned();
        let live = live.map_or(Ok(None), |place| self.open_index(&place))?;
        let is_it = |index: &Index| index.name() == name && index.lifetime.covers(timestamp);
        let former = || self.former.find(|lists| &lists.indexes, is_it).or_else(|| self.former.find(|lists| &lists.indexes_before, is_it));
        Ok(live.filter(|index| is_it(index)).or_else(former))
    }

    /// The table of a number, also a former one, and one that a running transaction makes.
    ///
    /// # Errors
    /// When nobody has used it and it cannot be opened.
    pub(crate) fn table_by_id(&self, object_id: u32) -> Result<Option<Arc<Table>>> {
        // In the order in which it goes from one place to the next, where it is before it leaves.
        if let Some(staged) = self.definitions.table(object_id) {
            return Ok(Some(staged));
        }
        let former = || self.former.find(|lists| &lists.tables, |table| table.object_id == object_id);
        Ok(self.live_table_by_id(object_id)?.or_else(former))
    }

    /// The index of a number, as [`table_by_id`](Self::table_by_id).
    ///
    /// # Errors
    /// As [`table_by_id`](Self::table_by_id).
    pub(crate) fn index_by_id(&self, object_id: u32) -> Result<Option<Arc<Index>>> {
        if let Some(staged) = self.definitions.index(object_id) {
            return Ok(Some(staged));
        }
        let live = self.objects.read().indexes.by_id(object_id).cloned();
        let live = live.map_or(Ok(None), |place| self.open_index(&place))?;
        Ok(live.or_else(|| self.former.find(|lists| &lists.indexes, |index| index.object_id == object_id)))
    }

    /// Gives memory and files of former objects back that nobody needs any more.
    pub(crate) fn sweep_former(&self) {
        if self.former.count.load(Ordering::Acquire) > 0 {
            self.former.sweep(&self.core.manager, self.core.transactions.oldest_snapshot());
        }
    }
}

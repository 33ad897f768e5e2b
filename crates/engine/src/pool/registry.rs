//! What pools and data sets there are, and what their counters say.
//!
//! Invariants:
//! - a pool is never taken away, and no two have one name;
//! - a data set is found by its file id as long as somebody has it; one that is discarded has no page in memory any more.

use super::manager::BufferManager;
use crate::data_set::DataSet;
use crate::frames::{CounterValues, Pool};
use crate::{Error, Result};
use pagefold_format::page::is_page_size;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Weak};

impl BufferManager {
    /// Makes a pool.
    ///
    /// # Errors
    /// When the name is taken or the frame size is no page size.
    pub fn create_pool(&self, name: &str, frame_bytes: usize, limit_bytes: usize) -> Result<Arc<Pool>> {
        if !is_page_size(frame_bytes) {
            return Err(Error::Parameter(format!("buffer pool \"{name}\": {frame_bytes} bytes is no page size")));
        }
        let mut pools = self.pools.write();
        if pools.iter().any(|pool| pool.name() == name) {
            return Err(Error::Exists { kind: "buffer pool", name: name.into() });
        }
        let pool = Arc::new(Pool::new(name.into(), frame_bytes, limit_bytes));
        pools.push(Arc::clone(&pool));
        Ok(pool)
    }

    /// The pool of this name; made with the whole memory as its limit when it is not there.
    ///
    /// # Errors
    /// When a pool of this name has another frame size.
    pub fn pool(&self, name: &str, frame_bytes: usize) -> Result<Arc<Pool>> {
        if let Some(pool) = self.pools.read().iter().find(|pool| pool.name() == name) {
            if pool.frame_bytes() != frame_bytes {
                return Err(Error::Parameter(format!(
                    "buffer pool \"{name}\" has frames of {} bytes, pages of {frame_bytes} do not fit",
                    pool.frame_bytes()
                )));
            }
            return Ok(Arc::clone(pool));
        }
        match self.create_pool(name, frame_bytes, self.settings.memory_bytes) {
            // Somebody else was quicker.
            Err(Error::Exists { .. }) => self.pool(name, frame_bytes),
            made => made,
        }
    }

    /// All pools.
    #[must_use]
    pub fn pools(&self) -> Vec<Arc<Pool>> {
        self.pools.read().clone()
    }

    /// Counters of a pool: of all objects assigned to it. A folded index counts in the pool of its leaves.
    #[must_use]
    pub fn pool_counters(&self, pool: &Pool) -> CounterValues {
        let mut sum = CounterValues::default();
        for data_set in self.data_sets.read().values().filter_map(Weak::upgrade) {
            if data_set.pools[0].name() == pool.name() {
                sum += data_set.counters();
            }
        }
        sum
    }

    /// Counters of all pools together, those of objects that are gone included.
    #[must_use]
    pub fn counters(&self) -> CounterValues {
        let mut sum = *self.retired.lock();
        for data_set in self.data_sets.read().values().filter_map(Weak::upgrade) {
            sum += data_set.counters();
        }
        sum
    }

    /// Makes a data set's pages known to the replacement.
    pub(crate) fn register(&self, data_set: &Arc<DataSet>) {
        self.data_sets.write().insert(data_set.file_id(), Arc::downgrade(data_set));
    }

    /// If only the caller has the data set, it is forgotten: from here on nobody else can come to it.
    pub(crate) fn forget_unused(&self, data_set: &Arc<DataSet>) -> bool {
        let mut data_sets = self.data_sets.write();
        // Whoever has none of his own gets it from the map, under its lock.
        let unused = Arc::strong_count(data_set) == 1;
        if unused {
            // What others did with it, before they gave it up, comes before what is done now.
            fence(Ordering::Acquire);
            data_sets.remove(&data_set.file_id());
        }
        unused
    }

    /// Takes all pages of a data set out of memory, dirty ones too, without writing them. Nobody uses it any more.
    pub(crate) fn discard(&self, data_set: &DataSet) {
        self.background().finish(data_set.file_id());
        let _writer = data_set.write_lock.lock();
        for (_, word) in data_set.translation.all() {
            if word.state().dirty {
                self.dirty_pages.fetch_sub(1, Ordering::Relaxed);
            }
            if let Some((unit, second)) = word.discard() {
                self.give_frame_back(&data_set.pools[usize::from(second)], unit);
            }
        }
        self.data_sets.write().remove(&data_set.file_id());
        *self.retired.lock() += data_set.counters();
    }

    pub(crate) fn data_set(&self, file_id: u32) -> Option<Arc<DataSet>> {
        self.data_sets.read().get(&file_id).and_then(Weak::upgrade)
    }
}

//! Indexes that are damaged: what the log is to say of them.
//!
//! Invariant: before a row is changed, or a change is taken back or redone, without an index of its table, the log says that this index is damaged.

use super::defining::{Definer, Defining};
use super::open::DatabaseState;
use crate::Result;
use crate::index::Index;
use crate::table_space::Table;
use std::sync::Arc;

impl DatabaseState {
    /// Makes sure that the log says of each damaged index of a table that it is damaged, before rows are changed without it: should its data set come
    /// back as it was, from a copy of the file or because what lacked is there again, nobody is to believe it.
    ///
    /// It is a transaction of its own, which stays when that of the caller is taken back. The caller keeps the index from being dropped, or nobody drops any: the database is being recovered.
    ///
    /// # Errors
    /// When the log has no room; when the system does not give the file of one.
    pub(crate) fn record_damage(&self, table: &Table) -> Result<()> {
        if !table.has_damaged_indexes() || table.damaged_indexes().iter().all(|index| index.recorded_damage().is_some()) {
            return Ok(());
        }
        // It may be whole, and would lack what changes now. What a reader brings in order stays its own.
        if let Some(refusal) = table.damaged_indexes().iter().find_map(|index| index.refusal().cloned()) {
            return if self.core.writable { Err(refusal) } else { Ok(()) };
        }
        let guard = self.defining.write();
        // Another thread may have done it by now, or dropped the index.
        let is_there = |index: &&Arc<Index>| self.objects.read().indexes.by_id(index.object_id).is_some_and(|place| place.has(index));
        let indexes = table.damaged_indexes();
        let unknown: Vec<_> = indexes.iter().filter(|index| index.recorded_damage().is_none()).filter(is_there).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let mark = |defining: &mut Defining, by: Definer<'_>| {
            unknown.iter().try_for_each(|index| defining.mark_damaged(by, index, index.damage().unwrap_or_default()))
        };
        self.commit_alone(guard, mark).map(drop)
    }
}

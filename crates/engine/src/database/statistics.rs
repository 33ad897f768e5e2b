//! Statistics of tables and indexes: what the log and the catalog are to say of them.
//!
//! Statistics are advice: nothing that the engine does depends on them. So they are put there beside everybody else, by a transaction of their own that locks neither the table nor
//! its rows, under the lock alone that commits of definitions take for a moment. Who alters the same object meanwhile in a transaction of his own says what he has seen of its notes: if he has seen
//! the former statistics, those are there again after his commit.
//!
//! Invariant: of an index that is known to be damaged the log goes on to say so.

use super::open::DatabaseState;
use crate::index::Index;
use crate::table_space::Table;
use crate::{Error, Result};
use pagefold_format::catalog::Notes;
use std::sync::Arc;

/// Statistics of a table and of indexes of it, as bytes, and how many of the changes of its rows they have.
#[derive(Debug, Default)]
pub struct GatheredStatistics {
    /// Of the table; `None`: as they are.
    pub table: Option<Vec<u8>>,
    /// What [`Table::rows_changed`] said when gathering began.
    pub rows_changed: u64,
    /// Of indexes.
    pub indexes: Vec<(Arc<Index>, Vec<u8>)>,
}

impl DatabaseState {
    /// Puts statistics among the notes of a table and of indexes of it. An index that is not there any more is passed over. Nobody waits for it but who commits definitions, or writes a checkpoint.
    ///
    /// # Errors
    /// [`Error::Stale`] when the table is not there any more; when they are too long; when the database cannot be written or the log has no room.
    pub fn set_statistics(&self, table: &Arc<Table>, gathered: GatheredStatistics) -> Result<()> {
        let core = &self.core;
        core.check_writable()?;
        self.ensure_log()?;
        core.manager.prepare_log()?;
        let with = |notes: Arc<Notes>, statistics: Vec<u8>, object: &dyn Fn() -> String| {
            let mut notes = Notes::clone(&notes);
            let set = notes.set_statistics(Some(statistics));
            set.map(|()| notes).map_err(|error| Error::Parameter(format!("{}: {error}", object())))
        };
        let guard = self.defining.write();
        if !self.objects.read().tables.by_id(table.object_id).is_some_and(|place| place.has(table)) {
            return Err(Error::Stale { object: table.object(), why: "was dropped or replaced" });
        }
        let end = self.commit_alone(guard, |defining, by| {
            if let Some(statistics) = gathered.table {
                let notes = with(table.notes(), statistics, &|| table.object())?;
                defining.note_table_notes(by, table, notes)?;
            }
            for (index, statistics) in gathered.indexes {
                if self.objects.read().indexes.by_id(index.object_id).is_some_and(|place| place.has(&index)) {
                    let notes = with(index.notes(), statistics, &|| index.object())?;
                    defining.note_index_notes(by, &index, notes, index.recorded_damage().map(str::to_owned))?;
                }
            }
            Ok(())
        })?;
        table.forget_changed_rows(gathered.rows_changed);
        self.checkpoint_when_due();
        match (end, core.log()) {
            (Some(end), Some(log)) => log.make_durable(end),
            _ => Ok(()),
        }
    }
}

//! Putting a row elsewhere as it is, so that its page becomes empty.
//!
//! For pages, log, recovery and old snapshots that is a row that is deleted and another one of the same values that is inserted, with all its index entries, by one transaction. What is
//! more: who has seen the old RID under READ COMMITTED is led to the new one (`transaction/moves.rs`), and nothing counts as changed for statistics.
//!
//! No lock of references is needed: whoever looks whether a key is there looks at what is committed at one moment, and the row is there before that commit and after it.
//!
//! Invariants:
//! - who moves rows has a lock timeout of zero: a row or key that somebody else has just now stays where it is;
//! - he is serializable: who has read the row meets a change of it, and what is done to it later comes after the move. So a reader whose marks are at the old place is in the structures that it
//!   would be in if the row had stayed;
//! - values outside the row are copied: the old ones go with the ghost.

use super::super::leftovers::key_of;
use super::{Isolation, Transaction, Writes};
use crate::log::Lsn;
use crate::pool::By;
use crate::table_space::{RowBuffer, Table, Targets};
use crate::{Error, Result};
use pagefold_types::{Rid, Value, ValueRef};
use std::time::Duration;

/// A row that a transaction has put elsewhere.
#[derive(Debug)]
pub(super) struct MoveMade {
    /// The transaction's last record before it.
    pub(super) at: Lsn,
    object: u32,
    from: Rid,
    to: Rid,
}

impl MoveMade {
    /// Table, old RID and new one.
    pub(super) fn row(&self) -> (u32, Rid, Rid) {
        (self.object, self.from, self.to)
    }
}

/// What became of a row that was to be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::database) enum RowMoved {
    /// It has this RID from the commit on.
    To(Rid),
    /// There is no such row.
    Gone,
    /// No page has room for it that is to have more rows. Nothing has happened.
    NoPlace,
}

impl Transaction<'_> {
    /// Puts a row on a page that is to have more rows.
    ///
    /// # Errors
    /// [`Error::Lock`] and [`Error::Conflict`] when somebody else has the row or a key of it, or has changed it: after a return to a savepoint the next one can be moved. Those of
    /// [`insert`](Self::insert).
    pub(in crate::database) fn move_row(&mut self, table: &Table, rid: Rid, targets: &mut Targets<'_>) -> Result<RowMoved> {
        debug_assert!(self.options.isolation == Isolation::Serializable && self.options.lock_timeout == Duration::ZERO);
        let at = self.state.last_lsn();
        let mut has_place = true;
        let moved = self.statement_that(Writes::Anything, table, |t| {
            let Some(rid) = t.lock_row(table, rid)? else { return Ok(RowMoved::Gone) };
            let Some(record) = table.read(rid, &mut RowBuffer::default(), <[u8]>::to_vec)? else { return Ok(RowMoved::Gone) };
            let gate = table.gate.pass();
            let found = table.mark_deleted(By::Transaction(&t.state), rid)?;
            debug_assert!(found, "the row is locked");
            if let Some(observer) = &*gate {
                observer.row_changed(table, rid, Some(&record), None);
            }
            drop(gate);
            t.meet_readers(table, rid)?;
            let record = t.record_anew(table, record)?;
            let gate = table.gate.pass();
            let Some(to) = table.insert_record_onto(By::Transaction(&t.state), &record, targets)? else {
                has_place = false;
                return Err(Error::Busy(format!("no page of {} has room for the row", table.object())));
            };
            if let Some(observer) = &*gate {
                observer.row_changed(table, to, None, Some(&record));
            }
            let indexes = t.indexes_of(table);
            drop(gate);
            t.meet_readers(table, to)?;
            let mut key = Vec::new();
            for index in indexes.iter() {
                key_of(table, index, &record, &mut key)?;
                t.insert_free_entry(table, index, &key, to)?;
            }
            t.moves.push(MoveMade { at, object: table.object_id, from: rid, to });
            Ok(RowMoved::To(to))
        });
        match moved {
            Err(Error::Busy(_)) if !has_place => Ok(RowMoved::NoPlace),
            moved => moved,
        }
    }

    /// The record of a row that is inserted anew: with values outside of its own, and as wide as a page takes it.
    fn record_anew(&self, table: &Table, record: Vec<u8>) -> Result<Vec<u8>> {
        let damaged = |e: pagefold_types::RecordError| Error::Damaged { path: table.object(), reason: e.to_string() };
        if record.len() <= table.record_bytes_max() && table.layout().large_values(&record).map_err(damaged)?.is_empty() {
            return Ok(record);
        }
        let values = table.values(&record)?;
        let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        let mut anew = Vec::new();
        table.build_record(By::Transaction(&self.state), &values, &mut anew)?;
        Ok(anew)
    }
}

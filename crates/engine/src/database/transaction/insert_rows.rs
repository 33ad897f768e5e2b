//! Inserting many rows at once: what loads into tables in use, COPY and INSERT of a query do.
//!
//! Invariants:
//! - all rows come, with their index entries, or none does;
//! - they come to the table in their order; entries of the rows of a page in the order of their keys;
//! - before each page, each row and each entry there is room in the log for it: what they take together may be more than any statement has that changes one row.

use super::super::leftovers::key_of;
use super::{STATEMENTS_PER_LOOK, Transaction, Writes};
use crate::index::Index;
use crate::pool::By;
use crate::table_space::{Filled, Filling, PageFiller, RecordList, Table};
use crate::{Error, Result};
use pagefold_types::{Rid, ValueRef};
use std::sync::Arc;

/// Rows that come one by one before it is looked again whether they had better fill pages.
const ROWS_PER_LOOK: usize = 32;

/// Takes the rows of [`Transaction::insert_rows`].
pub struct RowsToCome<'t, 'd> {
    transaction: &'t Transaction<'d>,
    table: &'t Table,
    records: RecordList,
    /// Why a row was refused first. The statement fails then, whoever has been told.
    failed: Option<Error>,
}

impl RowsToCome<'_, '_> {
    /// A row of values.
    ///
    /// # Errors
    /// When a value does not fit its column, or there is no room for a large one.
    pub fn push(&mut self, values: &[ValueRef<'_>]) -> Result<()> {
        let built = self.transaction.prepare_record().and_then(|()| {
            // A value outside may be written before the next one fails: what is in the log by then the statement takes back.
            self.table.build_record(By::Transaction(&self.transaction.state), values, self.records.bytes())
        });
        built.inspect_err(|error| _ = self.failed.get_or_insert_with(|| error.clone()))?;
        self.records.end();
        Ok(())
    }

    /// A row as a record of the table's [layout](Table::layout), without large values.
    ///
    /// # Errors
    /// When it is too long for a page.
    pub fn push_record(&mut self, record: &[u8]) -> Result<()> {
        if record.len() > self.table.record_bytes_max() {
            return Err(Error::Value(format!("{}: a record of {} bytes", self.table.object(), record.len())));
        }
        self.records.bytes().extend_from_slice(record);
        self.records.end();
        Ok(())
    }
}

impl Transaction<'_> {
    /// Inserts the rows that `fill` gives, with their index entries, all of them or none; returns how many. They are held in memory until then, so who has very many calls this several times. Rows enough for
    /// some pages fill these one by one, which costs a fraction of inserting them each by itself, in time and in bytes of the log.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), for any of them; those of `fill`.
    pub fn insert_rows(&mut self, table: &Table, fill: impl FnOnce(&mut RowsToCome<'_, '_>) -> Result<()>) -> Result<u64> {
        self.statement(table, |t| {
            let mut rows = RowsToCome { transaction: t, table, records: RecordList::default(), failed: None };
            let filled = fill(&mut rows);
            let RowsToCome { records, failed, .. } = rows;
            failed.map_or(filled, Err)?;
            t.insert_records(table, &records)?;
            Ok(records.len() as u64)
        })
    }

    fn insert_records(&mut self, table: &Table, records: &RecordList) -> Result<()> {
        if table.range().is_some() {
            (0..records.len()).try_for_each(|number| table.check_range(records.get(number)))?;
        }
        let state = Arc::clone(&self.state);
        let mut filling = Filling::MuchRoom;
        let (mut next, mut looks_at) = (0, 0);
        while next < records.len() {
            self.prepare(Writes::Anything)?;
            if next >= looks_at && matches!(filling, Filling::MuchRoom) {
                filling = PageFiller::begin(table, &state, records, next)?;
                looks_at = next + ROWS_PER_LOOK;
            }
            if let Filling::Pages(pages) = &mut filling {
                self.escalate_when_many(table);
                match self.insert_page(table, pages, records, next)? {
                    Filled::Page(_, rows) => next += rows,
                    Filled::TooFew => filling = Filling::TooFew,
                    Filled::NotNow => (filling, looks_at) = (Filling::MuchRoom, next + ROWS_PER_LOOK),
                }
                self.database.checkpoint_when_due();
            } else {
                self.escalate_when_due(table);
                self.insert_record(table, records.get(next), None)?;
                next += 1;
            }
        }
        Ok(())
    }

    /// Inserts the rows from number `first` on that fill a page, if they do.
    fn insert_page(&mut self, table: &Table, filler: &mut PageFiller<'_>, records: &RecordList, first: usize) -> Result<Filled> {
        let gate = table.gate.pass();
        let filled = filler.fill(records, first)?;
        let Filled::Page(place, rows) = filled else { return Ok(filled) };
        let numbered =
            |number: usize| (Rid::new(place.partition(), place.page(), place.slot() + number as u16), records.get(first + number));
        if let Some(observer) = &*gate {
            (0..rows).map(numbered).for_each(|(rid, record)| observer.row_changed(table, rid, None, Some(record)));
        }
        // As they are with these changes.
        let indexes = self.indexes_of(table);
        drop(gate);
        for (rid, record) in (0..rows).map(numbered) {
            self.check_damaged(table, None, record)?;
            self.wrote_row(table, rid)?;
        }
        table.count_many(place.partition(), rows as u64, |counters| &counters.batch_inserts)?;
        let mut key = Vec::new();
        for index in indexes.iter() {
            let mut keys = RecordList::default();
            for (_, record) in (0..rows).map(numbered) {
                key_of(table, index, record, &mut key)?;
                keys.bytes().extend_from_slice(&key);
                keys.end();
            }
            let mut entries: Vec<(&[u8], Rid)> = (0..rows).map(|number| (keys.get(number), numbered(number).0)).collect();
            entries.sort_unstable();
            self.insert_entries(table, index, &entries)?;
        }
        Ok(filled)
    }

    /// Adds the entries of new rows, which ascend.
    fn insert_entries(&mut self, table: &Table, index: &Index, entries: &[(&[u8], Rid)]) -> Result<()> {
        let unique = index.attributes().unique;
        // Whoever waits for a lock has nothing latched.
        for (key, _) in entries.iter().filter(|(key, _)| unique && !index.has_null(key)) {
            self.claim_key(table, index, key)?;
        }
        let mut rest = entries;
        while let Some((key, rid)) = rest.first() {
            self.prepare_record()?;
            // Of a key that was in use something may be known, and a NULL is no key: such come one by one.
            let is_plain = |(key, _): &&(&[u8], Rid)| {
                !unique
                    || !index.has_null(key) && self.known_keys.row(index.object_id, key).is_none() && index.known_keys.note(key).is_none()
            };
            let run = rest.iter().take_while(is_plain).copied();
            let added = index.tree().insert_run(By::Transaction(&self.state), run, unique)?;
            if added == 0 {
                self.insert_free_entry(table, index, key, *rid)?;
            }
            let (done, later) = rest.split_at(added.max(1));
            if added > 0 {
                done.iter().try_for_each(|(key, _)| self.inserted_key(index, key))?;
            }
            rest = later;
        }
        Ok(())
    }

    /// Room in the log for one record more.
    fn prepare_record(&self) -> Result<()> {
        self.database.prepare_log(|| self.database.core.manager.prepare_log())
    }

    /// As [`escalate_when_due`](Self::escalate_when_due), in a statement that locks many rows.
    fn escalate_when_many(&mut self, table: &Table) {
        self.statements = self.statements.wrapping_add(STATEMENTS_PER_LOOK - 1 - self.statements % STATEMENTS_PER_LOOK);
        self.escalate_when_due(table);
    }
}

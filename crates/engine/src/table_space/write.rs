//! Inserting and deleting single rows. Pages for them: [`page_search`](super::page_search).
//!
//! Invariants:
//! - the stored size of a row is known before a page is asked to take it; a page op never fails for want of room;
//! - a row that moves leaves its RID behind: its home slot points to where it is, and is corrected when it moves again;
//! - every change is one mini-transaction, with the logical undo that takes it back;
//! - what a transaction deletes stays on its page as a ghost: taking it back needs no room, and older snapshots still read it;
//! - a page other than the home page is latched only if that needs no waiting, so two moves cannot wait for each other; who starts over for that does so in turn ([`Rounds`](super::rounds)).

use super::page_search::RowPage;
use super::read::RowBuffer;
use super::rounds::Rounds;
use super::table::Table;
use super::thin_pages::Targets;
use crate::data_set::DataSet;
use crate::pool::{Access, By, MiniTransaction, PageHandle};
use crate::transaction::{Before, Mode, Resource};
use crate::{Error, Result};
use pagefold_format::data::forms;
use pagefold_format::data::{Body, DataOp, DataPage, Stored, StoredKind, row_space};
use pagefold_format::log::{Counts, Leftover, Undo};
use pagefold_format::op::PageOp;
use pagefold_format::page;
use pagefold_types::{ColumnValue, LargeValueRef, Rid, Value, ValueRef};
use std::time::Duration;

impl Table {
    /// Inserts a row of values; long ones go to large-value pages.
    ///
    /// # Errors
    /// When a value does not fit its column, or there is no room.
    pub fn insert(&self, values: &[ValueRef<'_>]) -> Result<Rid> {
        self.core.check_writable()?;
        let mut record = Vec::new();
        self.build_record(By::Nobody, values, &mut record)?;
        self.insert_record(By::Nobody, &record)
    }

    /// Appends the record of a row, after moving out values that make it too wide.
    ///
    /// # Errors
    /// When a value does not fit its column, the fixed part alone is too wide, or there is no room for a large value.
    pub fn build_record(&self, by: By<'_>, values: &[ValueRef<'_>], record: &mut Vec<u8>) -> Result<()> {
        self.build_record_with(by, values, &mut Vec::new(), record)
    }

    /// The same, where columns have these values outside already; what is named again is taken out of the list.
    fn build_record_with(
        &self,
        by: By<'_>,
        values: &[ValueRef<'_>],
        outside: &mut Vec<(usize, LargeValueRef)>,
        record: &mut Vec<u8>,
    ) -> Result<()> {
        let refused = |e: pagefold_types::ValueError| Error::Value(format!("{}: {e}", self.object()));
        let key = &self.attributes.primary_key;
        let mut large = self.layout.plan_large(values, self.record_bytes_max(), key).map_err(refused)?;
        if !large.is_empty() {
            // A value in an index is not to lie outside, if others can instead.
            // In one that is damaged, too: it is to be built anew.
            let indexes = self.all_indexes();
            let indexed = indexes.iter().flat_map(|index| index.attributes().columns.iter().map(|column| column.0));
            let mut keep: Vec<usize> = key.iter().copied().chain(indexed).collect();
            // Nor is one in an index that is being built.
            if let Some(observer) = &*self.gate.pass() {
                keep.extend((0..values.len()).filter(|column| observer.keeps_inside(*column)));
            }
            large = self.layout.plan_large(values, self.record_bytes_max(), &keep).unwrap_or(large);
        }
        if large.is_empty() {
            return self.layout.encode(values, record).map(drop).map_err(refused);
        }
        let mut columns: Vec<ColumnValue<'_>> = values.iter().map(|value| ColumnValue::Value(*value)).collect();
        for column in large {
            if let Some(known) = outside.iter().position(|(other, _)| *other == column) {
                columns[column] = ColumnValue::Large(outside.swap_remove(known).1);
                continue;
            }
            let bytes = self.layout.large_bytes(column, values[column]).map_err(refused)?;
            columns[column] = ColumnValue::Large(self.write_large(by, &bytes)?);
        }
        self.layout.encode_columns(&columns, record).map(drop).map_err(refused)
    }

    /// The values of a record, large ones fetched.
    ///
    /// # Errors
    /// When the record or a large value is damaged.
    pub fn values(&self, record: &[u8]) -> Result<Vec<Value>> {
        enum Failure {
            Record(pagefold_types::RecordError),
            Engine(Error),
        }
        impl From<pagefold_types::RecordError> for Failure {
            fn from(e: pagefold_types::RecordError) -> Failure {
                Failure::Record(e)
            }
        }
        self.layout.decode_owned(record, |reference| self.read_large(reference).map_err(Failure::Engine)).map_err(|failure| match failure {
            Failure::Record(e) => Error::Damaged { path: self.object(), reason: e.to_string() },
            Failure::Engine(e) => e,
        })
    }

    /// The values of some columns of a record, large ones fetched.
    ///
    /// # Errors
    /// As [`values`](Self::values).
    pub fn values_of(&self, record: &[u8], columns: &[usize]) -> Result<Vec<Value>> {
        let mut values = Vec::with_capacity(columns.len());
        self.values_into(record, columns, &mut values)?;
        Ok(values)
    }

    /// The same, behind other values.
    ///
    /// # Errors
    /// As [`values`](Self::values).
    pub fn values_into(&self, record: &[u8], columns: &[usize], values: &mut Vec<Value>) -> Result<()> {
        let damaged = |e: pagefold_types::RecordError| Error::Damaged { path: self.object(), reason: e.to_string() };
        for column in columns {
            if let Some(reference) = self.layout.push_column(record, *column, values).map_err(damaged)? {
                values.push(self.layout.large_value(*column, self.read_large(reference)?).map_err(damaged)?);
            }
        }
        Ok(())
    }

    /// Inserts a finished record.
    ///
    /// # Errors
    /// When there is no room.
    pub fn insert_record(&self, by: By<'_>, record: &[u8]) -> Result<Rid> {
        self.check_dictionaries()?;
        self.watch_row(record);
        let inserted = self.insert_record_with(by, record, |space, locked| self.page_for(space, locked).map(Some))?;
        inserted.ok_or_else(|| Error::corrupt(self.object(), 0, "no page for a row"))
    }

    /// Inserts a finished record onto a page of some; `None` when none of them has room. Nothing has happened then.
    ///
    /// # Errors
    /// As [`insert_record`](Self::insert_record).
    pub(crate) fn insert_record_onto(&self, by: By<'_>, record: &[u8], targets: &mut Targets<'_>) -> Result<Option<Rid>> {
        self.check_dictionaries()?;
        self.insert_record_with(by, record, |space, locked| self.page_for_thin(space, locked, targets))
    }

    /// `page`: one with so many bytes for a row and its slot, none of those named.
    fn insert_record_with<'t>(
        &'t self,
        by: By<'_>,
        record: &[u8],
        mut page: impl FnMut(usize, &[(u16, u32)]) -> Result<Option<RowPage<'t>>>,
    ) -> Result<Option<Rid>> {
        let mut codes = Vec::new();
        let form = self.encoder().map_or(0, |encoder| encoder.append(record, &mut codes));
        let body = forms::body(form, record, &codes);
        let stored = Stored::Home(body).len(self.page_form());
        let (space, mut bytes) = (row_space(stored), Vec::with_capacity(stored));
        let mut locked = Vec::new();
        let (rid, (partition, mut mtr, handle)) = loop {
            let Some(page) = page(space, &locked)? else { return Ok(None) };
            if let Some(rid) = self.free_row(by, page.0.number(), &page.1, page.2) {
                break (rid, page);
            }
            locked.push((page.0.number(), page.1.number(page.2)));
        };
        let slot = rid.slot();
        let kind = Stored::Home(body).build(DataPage::new(mtr.bytes(handle)).dictionary_version(), &mut bytes);
        if let (Err(error), By::Transaction(state)) = (self.enter_version(by, rid, || Before::Absent), by) {
            // A new page stays, empty, for who comes next.
            self.note_space(&mut mtr, handle);
            mtr.commit()?;
            self.core.locks.release_wholly(state.id(), Resource::Row(self.object_id, rid));
            return Err(error);
        }
        mtr.set_by(by);
        self.note_birth(&mtr, handle, slot);
        mtr.apply(handle, PageOp::Data(DataOp::Insert { slot, kind, bytes: &bytes }))?;
        self.note_space(&mut mtr, handle);
        mtr.count(partition, Counts { rows: 1, ..Counts::default() });
        mtr.set_undo(by, Undo::InsertedRow { object_id: self.object_id, rid });
        mtr.commit()?;
        Ok(Some(rid))
    }

    /// Notes after which commit a row comes that takes a new slot of a page.
    pub(super) fn note_birth(&self, mtr: &MiniTransaction<'_>, handle: PageHandle, slot: u16) {
        let (transactions, slots) = (&self.core.transactions, DataPage::new(mtr.bytes(handle)).slot_count());
        if slot == slots {
            let page = (mtr.data_set(handle).file_id(), mtr.number(handle));
            self.core.births.note(page, slots, transactions.last_commit(), transactions.last_end(), || transactions.recent_pins());
        }
    }

    /// A free slot of a page, locked for a transaction: whoever sees the row waits for it. `None` when others still lock all of them: they took an insert back, or waited for one that was
    /// taken back, or for one that deleted the row.
    fn free_row(&self, by: By<'_>, partition: u16, mtr: &MiniTransaction<'_>, handle: PageHandle) -> Option<Rid> {
        let number = mtr.number(handle);
        let view = DataPage::new(mtr.bytes(handle));
        let mut free = view.free_slots().filter(|slot| *slot <= pagefold_types::SLOT_MAX).map(|slot| Rid::new(partition, number, slot));
        let By::Transaction(state) = by else { return free.next() };
        let locks = &self.core.locks;
        free.find(|rid| locks.lock(state.id(), Resource::Row(self.object_id, *rid), Mode::Exclusive, Duration::ZERO).is_ok())
    }

    /// Changes some fixed-width or short columns of a row. False when there is no such row.
    ///
    /// # Errors
    /// When a value does not fit its column, or there is no room.
    pub fn update(&self, rid: Rid, changes: &[(usize, ValueRef<'_>)]) -> Result<bool> {
        self.core.check_writable()?;
        if let Some(found) = self.update_fixed(By::Nobody, rid, changes)? {
            return Ok(found);
        }
        let mut buffer = RowBuffer::default();
        let mut fresh = Vec::new();
        let mut unused = Vec::new();
        let outcome = self.read(rid, &mut buffer, |record| self.changed_record(By::Nobody, record, changes, &mut fresh, &mut unused))?;
        let Some(outcome) = outcome else { return Ok(false) };
        outcome?;
        let found = self.replace_record(By::Nobody, rid, &fresh)?;
        for reference in unused {
            self.free_large(reference)?;
        }
        Ok(found)
    }

    /// Builds the record after a change; `unused` gets the large values that it no longer names.
    pub(crate) fn changed_record(
        &self,
        by: By<'_>,
        record: &[u8],
        changes: &[(usize, ValueRef<'_>)],
        fresh: &mut Vec<u8>,
        unused: &mut Vec<LargeValueRef>,
    ) -> Result<()> {
        let refused = |e: pagefold_types::ValueError| Error::Value(format!("{}: {e}", self.object()));
        let damaged = |e: pagefold_types::RecordError| Error::Damaged { path: self.object(), reason: e.to_string() };
        // A row that is older than a column, or a width, may be longer now than a page has room for.
        let fits = record.len() <= self.record_bytes_max();
        if fits && changes.iter().all(|(column, _)| self.layout.fixed_span(*column).is_some()) {
            fresh.extend_from_slice(record);
            return changes.iter().try_for_each(|(column, value)| self.layout.patch_fixed(fresh, *column, *value).map_err(refused));
        }
        let (changing, mut outside): (Vec<_>, Vec<_>) = self
            .layout
            .large_values(record)
            .map_err(damaged)?
            .into_iter()
            .partition(|(column, _)| changes.iter().any(|(c, _)| c == column));
        let values = self.values(record)?;
        let mut changed: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        for (column, value) in changes {
            *changed.get_mut(*column).ok_or_else(|| Error::Value(format!("{}: no column number {column}", self.object())))? = *value;
        }
        // What does not change stays where it is, if it is still to lie outside.
        self.build_record_with(by, &changed, &mut outside, fresh)?;
        unused.extend(changing.into_iter().chain(outside).map(|(_, reference)| reference));
        Ok(())
    }

    /// Keeps what a row was before a transaction changes it. The page is latched for change, and not changed yet.
    pub(super) fn enter_version(&self, by: By<'_>, rid: Rid, before: impl FnOnce() -> Before) -> Result<()> {
        let By::Transaction(state) = by else { return Ok(()) };
        if self.core.versions.push(self.object_id, rid, state, before())? {
            state.note_row(self.object_id, rid);
        }
        Ok(())
    }

    /// A change has been taken back, on the page, which is still latched: its version goes.
    pub(super) fn take_version_back(&self, by: By<'_>, rid: Rid) -> Result<()> {
        if let By::Undo(state, _) = by {
            self.core.versions.take_back(self.object_id, rid, state)?;
        }
        Ok(())
    }

    fn enter_leftover(&self, by: By<'_>, left: Leftover) {
        if let By::Transaction(state) = by {
            self.core.leftovers.enter(state, left);
        }
    }

    /// The body of a row at home or away from it.
    pub(super) fn body_in<'p>(&self, bytes: &'p [u8], slot: u16) -> Result<Body<'p>> {
        let view = DataPage::new(bytes);
        let number = page::page_number(bytes);
        let damaged = |reason: String| Error::corrupt(self.object(), number, reason);
        let row = view.row(slot).ok_or_else(|| damaged(format!("no row in slot {slot}")))?;
        match Stored::parse(row, view.dictionary_version()).map_err(|e| damaged(e.to_string()))? {
            Stored::Home(body) | Stored::Away { body, .. } | Stored::Hosted { body, .. } => Ok(body),
            Stored::Forward(_) | Stored::HostedForward { .. } | Stored::Forwarded(_) => Err(damaged(format!("slot {slot} points further"))),
        }
    }

    /// Where the row of a home slot is. `None` when the slot holds no home.
    pub(super) fn stored(&self, data_set: &DataSet, bytes: &[u8], rid: Rid) -> Result<Option<Place>> {
        super::read::check_type(data_set, rid.page(), bytes)?;
        let view = DataPage::new(bytes);
        let Some(row) = view.row(rid.slot()) else { return Ok(None) };
        Ok(match Stored::parse(row, view.dictionary_version()).map_err(|e| data_set.corrupt(rid.page(), e))? {
            Stored::Home(_) => Some(Place::Home),
            Stored::Forward(target) => Some(Place::Away(target)),
            Stored::Forwarded(target) => Some(Place::Hosted(target)),
            Stored::Away { .. } | Stored::Hosted { .. } | Stored::HostedForward { .. } => None,
        })
    }

    /// The same for the slot of a page that hosts a row: whether that is there, or has moved on by itself. `None` when there is no row.
    pub(super) fn stored_here(&self, bytes: &[u8], slot: u16) -> Result<Option<Place>> {
        let view = DataPage::new(bytes);
        let Some(row) = view.row(slot) else { return Ok(None) };
        let damaged = |reason: String| Error::corrupt(self.object(), page::page_number(bytes), reason);
        match Stored::parse(row, view.dictionary_version()).map_err(|e| damaged(e.to_string()))? {
            Stored::Hosted { .. } => Ok(Some(Place::Home)),
            Stored::HostedForward { target, .. } => Ok(Some(Place::Away(target))),
            _ => Err(damaged(format!("slot {slot} hosts something else than a row"))),
        }
    }

    /// Whether a page hosts a row, or a ghost of it, in this slot.
    ///
    /// # Errors
    /// When the page hosts another row there, or none: then the range of the row's home is wrong.
    pub(super) fn expect_hosted(&self, bytes: &[u8], rid: Rid, slot: u16) -> Result<()> {
        match DataPage::new(bytes).home_of(slot) {
            Some(home) if home == rid => Ok(()),
            home => {
                let reason = format!("slot {slot} is to host the row {rid}, and hosts {home:?}");
                Err(Error::corrupt(self.object(), page::page_number(bytes), reason))
            }
        }
    }

    /// Latches the page a row has moved to, unless that is latched already; `None` when it would mean waiting, and the caller starts over.
    pub(super) fn latch_without_waiting<'a>(&'a self, mtr: &mut MiniTransaction<'a>, target: Rid) -> Result<Option<PageHandle>> {
        let data_set = self.partition(target.partition())?;
        if let Some(handle) = mtr.handle_of(data_set, target.page()) {
            return Ok(Some(handle));
        }
        Ok(self.manager().exclusive_unless_busy(data_set, target.page())?.map(|page| mtr.adopt(page)))
    }

    /// Deletes a row and its large values. False when there is no such row.
    ///
    /// # Errors
    /// When a page is damaged.
    pub fn delete(&self, rid: Rid) -> Result<bool> {
        self.core.check_writable()?;
        let mut large = Vec::new();
        let mut buffer = RowBuffer::default();
        let found = self.read(rid, &mut buffer, |record| self.layout.large_values(record))?;
        let Some(found) = found else { return Ok(false) };
        large.extend(found.map_err(|e| Error::Damaged { path: self.object(), reason: e.to_string() })?);
        let found = self.take_out(By::Nobody, rid)?;
        large.into_iter().try_for_each(|(_, reference)| self.free_large(reference))?;
        Ok(found)
    }

    /// Takes a row out of its page; its large values stay. False when there is no such row.
    pub(super) fn take_out(&self, by: By<'_>, rid: Rid) -> Result<bool> {
        self.change_slots(by, rid, Slots { ghost: None, rows: -1, undo: None, pages: &[], purge: false }, |slot, _| DataOp::Delete { slot })
    }

    /// Deletes a row for a transaction: it stays as a ghost. False when there is no such row.
    ///
    /// # Errors
    /// When a page is damaged.
    pub(crate) fn mark_deleted(&self, by: By<'_>, rid: Rid) -> Result<bool> {
        let undo = |kind: StoredKind| Undo::DeletedRow { object_id: self.object_id, rid, kind: kind.bits() as u8 };
        self.change_slots(by, rid, Slots { ghost: None, rows: -1, undo: Some(&undo), pages: &[], purge: false }, |slot, _| {
            DataOp::MarkDeleted { slot }
        })
    }

    /// The record of a ghost, whose home slot had this kind; `None` when there is none.
    pub(crate) fn ghost_record(&self, rid: Rid, kind: u8) -> Result<Option<Vec<u8>>> {
        let Some(kind) = StoredKind::from_bits(u16::from(kind)) else { return Ok(None) };
        let data_set = self.partition(rid.partition())?;
        let Some(page) = self.data_page(data_set, rid.page(), Access::Random)? else { return Ok(None) };
        let view = DataPage::new(&page);
        let mut buffer = RowBuffer::default();
        if let Some(Place::Hosted(target)) = self.stored(data_set, &page, rid)? {
            let there = self.partition(target.partition())?;
            let page = self.pointed_page(there, target.page())?;
            self.expect_hosted(&page, rid, target.slot())?;
            let view = DataPage::new(&page);
            let Some(row) = view.ghost(target.slot(), kind) else { return Ok(None) };
            return match Stored::parse(row, view.dictionary_version()).map_err(|e| there.corrupt(target.page(), e))? {
                Stored::Hosted { body, .. } => self.decode(there, target.page(), body, &mut buffer, <[u8]>::to_vec).map(Some),
                Stored::HostedForward { target, .. } => self.ghost_away(rid, target, &mut buffer),
                _ => Ok(None),
            };
        }
        let Some(row) = view.ghost(rid.slot(), kind) else { return Ok(None) };
        let stored = Stored::parse(row, view.dictionary_version());
        match stored.map_err(|e| data_set.corrupt(rid.page(), e))? {
            Stored::Home(body) => self.decode(data_set, rid.page(), body, &mut buffer, <[u8]>::to_vec).map(Some),
            Stored::Away { .. } | Stored::Hosted { .. } | Stored::HostedForward { .. } | Stored::Forwarded(_) => Ok(None),
            Stored::Forward(target) => self.ghost_away(rid, target, &mut buffer),
        }
    }

    /// The record of a ghost that has moved there by itself; its home is latched.
    fn ghost_away(&self, rid: Rid, target: Rid, buffer: &mut RowBuffer) -> Result<Option<Vec<u8>>> {
        let data_set = self.partition(target.partition())?;
        let page = self.pointed_page(data_set, target.page())?;
        let view = DataPage::new(&page);
        let Some(row) = view.ghost(target.slot(), StoredKind::Special) else { return Ok(None) };
        match Stored::parse(row, view.dictionary_version()).map_err(|e| data_set.corrupt(target.page(), e))? {
            Stored::Away { home, body } if home == rid => self.decode(data_set, target.page(), body, buffer, <[u8]>::to_vec).map(Some),
            _ => Ok(None),
        }
    }

    /// Frees the slots and the large values of a ghost at once.
    pub(crate) fn purge(&self, rid: Rid, kind: u8, record: &[u8]) -> Result<()> {
        let Some(kind) = StoredKind::from_bits(u16::from(kind)) else { return Ok(()) };
        let large = self.layout.large_values(record).map_err(|e| Error::Damaged { path: self.object(), reason: e.to_string() })?;
        let mut pages = Vec::new();
        for (_, value) in large {
            let data_set = self.large_data_set(value)?;
            self.large_pages(value, |page| pages.push((&**data_set, page)))?;
        }
        self.change_slots(By::Nobody, rid, Slots { ghost: Some(kind), rows: 0, undo: None, pages: &pages, purge: true }, |slot, _| {
            DataOp::Purge { slot }
        })
        .map(drop)
    }

    /// Makes a ghost, whose home slot had this kind, a row again. False when there is none.
    pub(super) fn undelete(&self, by: By<'_>, rid: Rid, home: StoredKind) -> Result<bool> {
        // A row away from home is always of a special kind.
        let kind = |at_home| if at_home { home } else { StoredKind::Special };
        let slots = Slots { ghost: Some(home), rows: 1, undo: None, pages: &[], purge: false };
        self.change_slots(by, rid, slots, |slot, at_home| DataOp::Undelete { slot, kind: kind(at_home) })
    }

    /// Applies an op to the home slot of a row or ghost, and to the slot it has moved to.
    fn change_slots(&self, by: By<'_>, rid: Rid, slots: Slots<'_>, op: impl Fn(u16, bool) -> DataOp<'static>) -> Result<bool> {
        let home_set = self.partition(rid.partition())?;
        let mut rounds = Rounds::of(self);
        loop {
            rounds.begin();
            let mut place = None;
            let mut mtr = MiniTransaction::begin(self.manager());
            let Some(home) = self.latch_home(&mut mtr, home_set, rid.page())? else { return Ok(false) };
            // A row that is hosted has nothing at home; of one that moved by itself, both slots change.
            let hosted = match self.stored(home_set, mtr.bytes(home), rid)? {
                Some(Place::Hosted(target)) => {
                    let Some(handle) = self.latch_without_waiting(&mut mtr, target)? else { continue };
                    self.expect_hosted(mtr.bytes(handle), rid, target.slot())?;
                    Some((handle, target.slot()))
                }
                _ => None,
            };
            let (first, first_slot) = hosted.unwrap_or((home, rid.slot()));
            let view = DataPage::new(mtr.bytes(first));
            let row = match slots.ghost {
                Some(kind) => view.ghost(first_slot, kind),
                None => view.row(first_slot),
            };
            let Some(row) = row else { return Ok(false) };
            let kind = row.kind;
            match Stored::parse(row, view.dictionary_version()).map_err(|e| home_set.corrupt(rid.page(), e))? {
                Stored::Home(_) => {}
                Stored::Hosted { .. } if hosted.is_some() => {}
                // A slot that hosts a row of another page is no RID.
                Stored::Hosted { .. } | Stored::Away { .. } | Stored::Forwarded(_) => return Ok(false),
                Stored::HostedForward { .. } if hosted.is_none() => return Ok(false),
                Stored::Forward(target) | Stored::HostedForward { target, .. } => {
                    let Some(handle) = self.latch_without_waiting(&mut mtr, target)? else { continue };
                    place = Some((handle, target.slot()));
                }
            }
            if matches!(by, By::Transaction(_)) {
                let (handle, slot) = place.unwrap_or((first, first_slot));
                let image = self.image(home_set, rid.page(), self.body_in(mtr.bytes(handle), slot)?)?;
                self.enter_version(by, rid, || Before::Present(image.bytes().into()))?;
                self.enter_leftover(by, Leftover::Ghost { object_id: self.object_id, rid, kind: kind.bits() as u8 });
            }
            mtr.set_by(by);
            if let Some((handle, slot)) = place {
                mtr.apply(handle, PageOp::Data(op(slot, false)))?;
                self.note_space(&mut mtr, handle);
            }
            mtr.apply(first, PageOp::Data(op(first_slot, true)))?;
            self.note_space(&mut mtr, first);
            self.take_version_back(by, rid)?;
            let counted = mtr.data_set(first);
            mtr.count(counted, Counts { rows: slots.rows, ..Counts::default() });
            if let Some((host, slot)) = hosted {
                self.drop_empty_range(&mut mtr, home, rid, host, slot)?;
            }
            slots.pages.iter().for_each(|(data_set, page)| mtr.free(data_set, *page));
            if slots.purge {
                mtr.ghost_gone(home_set, rid);
            }
            if let Some(undo) = slots.undo {
                mtr.set_undo(by, undo(kind));
            }
            mtr.commit()?;
            return Ok(true);
        }
    }
}

/// What [`Table::change_slots`] is to do.
struct Slots<'a> {
    /// Kind of the ghost's home slot; `None`: it is a row.
    ghost: Option<StoredKind>,
    /// By how much the number of rows changes.
    rows: i64,
    /// What takes it back.
    undo: Option<&'a dyn Fn(StoredKind) -> Undo<'static>>,
    /// Pages to be given back with it.
    pages: &'a [(&'a DataSet, u32)],
    /// Nothing is left then.
    purge: bool,
}

/// Where the row of a home slot is.
pub(super) enum Place {
    Home,
    /// Moved there by itself.
    Away(Rid),
    /// There, if there is one, with others of its page.
    Hosted(Rid),
}

//! Putting another record in the place of a row's: where it is, by a change of its column part, or on another page.
//!
//! Invariants:
//! - the stored size of a row is known before a page is asked to take it;
//! - a row that moves leaves its RID behind: its home slot points to where it is, and is corrected when it moves again;
//! - a row that is away goes home with a change for which there is room at home again: else in the end nearly all rows would be away, each with a pointer;
//! - what taking a change back may need is reserved with the change.

use super::row_image::{self, RowImage};
use super::table::Table;
use super::write::Place;
use crate::Result;
use crate::pool::{By, MiniTransaction, PageHandle};
use crate::transaction::Before;
use pagefold_codec::page::Patch;
use pagefold_codec::splice::Splice;
use pagefold_format::data::forms;
use pagefold_format::data::{AWAY_OVERHEAD, Body, DataOp, DataPage, ENTRY_BYTES, SLOT_BYTES, STORED_BYTES_MIN, Stored, StoredKind};
use pagefold_format::log::{Earlier, Undo};
use pagefold_format::op::PageOp;
use pagefold_types::Rid;

impl Table {
    /// Puts another record in the place of a row. False when there is no such row.
    ///
    /// # Errors
    /// When there is no room.
    pub fn replace_record(&self, by: By<'_>, rid: Rid, record: &[u8]) -> Result<bool> {
        self.check_dictionaries()?;
        self.watch_row(record);
        let mut codes = Vec::new();
        let form = self.encoder().map_or(0, |encoder| encoder.append(record, &mut codes));
        let body = forms::body(form, record, &codes);
        self.replace_body(by, rid, |_| Ok(RowImage::of(body)))
    }

    /// Puts another body in the place of a row's, which `change` makes of it. False when there is no such row.
    pub(super) fn replace_body(&self, by: By<'_>, rid: Rid, change: impl Fn(Body<'_>) -> Result<RowImage>) -> Result<bool> {
        let home_set = self.partition(rid.partition())?;
        loop {
            let mut mtr = MiniTransaction::begin(self.manager());
            let home = mtr.latch(home_set, rid.page())?;
            let Some(stored) = self.stored(home_set, mtr.bytes(home), rid)? else { return Ok(false) };
            let (place, slot, target) = match stored {
                Place::Home => (home, rid.slot(), None),
                Place::Away(target) => match self.latch_without_waiting(&mut mtr, home, rid, target)? {
                    Some(handle) => (handle, target.slot(), Some(target)),
                    None => continue,
                },
            };
            let before = self.image(home_set, rid.page(), self.body_in(mtr.bytes(place), slot)?)?;
            let after = change(before.body())?;
            let row = LatchedRow { rid, home, away: target.map(|target| (place, target.slot())) };
            if self.replace_latched(by, mtr, &row, &before, after.body(), None)? == Replaced::Done {
                return Ok(true);
            }
        }
    }

    /// Puts another body in the place of a row's, all of whose pages are latched.
    pub(super) fn replace_latched<'a>(
        &'a self,
        by: By<'_>,
        mut mtr: MiniTransaction<'a>,
        row: &LatchedRow,
        before: &RowImage,
        after: Body<'_>,
        records: Option<(&[u8], &[u8])>,
    ) -> Result<Replaced> {
        let rid = row.rid;
        let (place, slot) = row.away.unwrap_or((row.home, rid.slot()));
        let decoded;
        let records = match records {
            None if self.by_column() => {
                decoded = (self.record_of(before.body())?, self.record_of(after)?);
                Some((&*decoded.0, &*decoded.1))
            }
            given => given.filter(|_| self.by_column()),
        };
        if let Some(kept) = self.room_at_home(by, &mtr, row, before.body(), after) {
            self.enter_version(by, rid, || Before::Present(before.bytes().into()))?;
            self.changed.note(before.body().dictionary(), after.dictionary());
            self.move_home(by, &mut mtr, row, after, kept)?;
            let mut codes = Vec::new();
            let before = row_image::earlier(after, before.body(), &mut codes);
            return self.commit_update(by, mtr, rid, before).map(|()| Replaced::Done);
        }
        let change = self.change_in_place(by, &mtr, place, slot, row.away.map(|_| rid), after, records)?;
        if change.is_none() && self.by_column() && !matches!(by, By::Undo(..)) {
            let home_set = self.partition(rid.partition())?;
            // Room may come of a rebuild; a page without even that for a pointer loses all its rows. Either is done by itself, and then all is looked at again.
            let wanted = Stored::Home(after).len(self.page_form()) + ENTRY_BYTES;
            if row.away.is_none() && self.rebuild(&mut mtr, home_set, row.home, wanted)? {
                mtr.commit()?;
                return Ok(Replaced::Again);
            }
            if !DataPage::new(mtr.bytes(row.home)).fits_in_place_of(rid.slot(), STORED_BYTES_MIN) {
                self.evacuate(mtr, home_set, rid.partition(), row.home)?;
                return Ok(Replaced::Again);
            }
        }
        self.enter_version(by, rid, || Before::Present(before.bytes().into()))?;
        self.changed.note(before.body().dictionary(), after.dictionary());
        match change {
            Some(change) => self.apply_in_place(by, &mut mtr, place, slot, change)?,
            None => mtr = self.move_row(by, mtr, row, after, records)?,
        }
        let mut codes = Vec::new();
        let before = match records {
            Some((before, after)) => Earlier::Record(Splice::between(after, before)),
            None => row_image::earlier(after, before.body(), &mut codes),
        };
        self.commit_update(by, mtr, rid, before).map(|()| Replaced::Done)
    }

    /// Ends an update, which `before` takes back.
    pub(super) fn commit_update<'m>(&self, by: By<'m>, mut mtr: MiniTransaction<'m>, rid: Rid, before: Earlier<'m>) -> Result<()> {
        mtr.set_undo(by, Undo::UpdatedRow { object_id: self.object_id, rid, before });
        self.take_version_back(by, rid);
        mtr.commit().map(drop)
    }

    /// How a stored row is replaced where it is; `None` when its page has no room. `away_from` is the home of a row that has moved; `records` are those before and after, where rows may lie by column.
    #[expect(clippy::too_many_arguments, reason = "a row, where it is, and what it is to be")]
    fn change_in_place(
        &self,
        by: By<'_>,
        mtr: &MiniTransaction<'_>,
        handle: PageHandle,
        slot: u16,
        away_from: Option<Rid>,
        body: Body<'_>,
        records: Option<(&[u8], &[u8])>,
    ) -> Result<Option<InPlace>> {
        let view = DataPage::new(mtr.bytes(handle));
        let Some(before) = view.row(slot) else { return Ok(None) };
        let lost = records.map_or(0, |(before, after)| self.lost_bytes(before, after));
        if let (StoredKind::Column, Some((old, new))) = (before.kind, records) {
            let column = self.body_in(mtr.bytes(handle), slot)?;
            if let Some(patches) = self.patches(column, old, new)? {
                return Ok(Some(InPlace::Patches { patches, freed: lost }));
            }
        }
        let stored = match away_from {
            Some(home) => Stored::Away { home, body },
            None => Stored::Home(body),
        };
        // What others may need is not taken, but by who takes something back: it is for that.
        let reserved = if matches!(by, By::Undo(..)) { 0 } else { self.core.reservations.of_page(mtr.identity(handle)) };
        let length = stored.len(view.dictionary_version());
        let grows = before.own_bytes() < length;
        if !view.fits_in_place_of(slot, length + if grows { reserved } else { 0 }) {
            return Ok(None);
        }
        let mut bytes = Vec::with_capacity(length);
        let kind = stored.build(view.dictionary_version(), &mut bytes);
        let freed = if before.kind == StoredKind::Column { lost } else { before.own_bytes().saturating_sub(bytes.len()) };
        Ok(Some(InPlace::Row { kind, bytes, freed }))
    }

    fn apply_in_place(&self, by: By<'_>, mtr: &mut MiniTransaction<'_>, handle: PageHandle, slot: u16, change: InPlace) -> Result<()> {
        let (kind, bytes, freed) = match change {
            InPlace::Patches { patches, freed } => return self.apply_patches(by, mtr, handle, &patches, freed),
            InPlace::Row { kind, bytes, freed } => (kind, bytes, freed),
        };
        if let By::Transaction(state) = by
            && (freed > 0 || self.by_column())
        {
            self.core.reservations.enter(state.id(), mtr.identity(handle), freed);
        }
        let view = DataPage::new(mtr.bytes(handle));
        let Some(before) = view.row(slot) else { return Ok(()) };
        let same_length = before.own_bytes() == bytes.len();
        let mut codes = Vec::new();
        let op = DataOp::change(slot, before, kind, &bytes, &mut codes);
        mtr.apply(handle, PageOp::Data(op))?;
        if !same_length {
            self.note_space(mtr, handle);
        }
        Ok(())
    }

    /// Whether a row that is away is to go home: there is room for what it becomes, and for what it was, should the change be taken back. The bytes to be kept for that.
    ///
    /// Not while its transaction keeps room where the row is: earlier changes may need that.
    fn room_at_home(&self, by: By<'_>, mtr: &MiniTransaction<'_>, row: &LatchedRow, before: Body<'_>, after: Body<'_>) -> Option<usize> {
        let (place, _) = row.away.filter(|_| !self.by_column())?;
        match by {
            By::Undo(..) => return None,
            By::Transaction(state) if self.core.reservations.keeps(state.id(), mtr.identity(place)) => return None,
            By::Transaction(_) | By::Nobody => {}
        }
        let view = DataPage::new(mtr.bytes(row.home));
        let [before, after] = [before, after].map(|body| Stored::Home(body).len(view.dictionary_version()));
        let reserved = self.core.reservations.of_page(mtr.identity(row.home));
        view.fits_in_place_of(row.rid.slot(), before.max(after) + reserved).then_some(before.saturating_sub(after))
    }

    /// Moves a row home, where there is room for it and for `kept` bytes more.
    fn move_home(&self, by: By<'_>, mtr: &mut MiniTransaction<'_>, row: &LatchedRow, body: Body<'_>, kept: usize) -> Result<()> {
        if let (By::Transaction(state), 1..) = (by, kept) {
            self.core.reservations.enter(state.id(), mtr.identity(row.home), kept);
        }
        if let Some((place, slot)) = row.away {
            mtr.apply(place, PageOp::Data(DataOp::Delete { slot }))?;
            self.note_space(mtr, place);
        }
        let mut bytes = Vec::new();
        let kind = Stored::Home(body).build(DataPage::new(mtr.bytes(row.home)).dictionary_version(), &mut bytes);
        mtr.apply(row.home, PageOp::Data(DataOp::Replace { slot: row.rid.slot(), kind, bytes: &bytes }))?;
        self.note_space(mtr, row.home);
        Ok(())
    }

    /// Moves a row to another page. The mini-transaction that comes back is to be committed.
    fn move_row<'a>(
        &'a self,
        by: By<'_>,
        mut mtr: MiniTransaction<'a>,
        row: &LatchedRow,
        body: Body<'_>,
        records: Option<(&[u8], &[u8])>,
    ) -> Result<MiniTransaction<'a>> {
        let LatchedRow { rid, home, away: old } = *row;
        // A row of a column part may have to move although its record became shorter. What it was has to fit where it comes to.
        let lost = records.map_or(0, |(before, after)| self.lost_bytes(before, after));
        let (partition, mut away, handle) = self.page_for_moved(AWAY_OVERHEAD + SLOT_BYTES + body.parts().1.len() + lost)?;
        if let (By::Transaction(state), 1..) = (by, lost) {
            self.core.reservations.enter(state.id(), away.identity(handle), lost);
        }
        let view = DataPage::new(away.bytes(handle));
        let target_slot = view.free_slot();
        let mut bytes = Vec::new();
        let kind = Stored::Away { home: rid, body }.build(view.dictionary_version(), &mut bytes);
        let target = Rid::new(partition, away.number(handle), target_slot);
        away.apply(handle, PageOp::Data(DataOp::Insert { slot: target_slot, kind, bytes: &bytes }))?;
        self.note_space(&mut away, handle);
        mtr.absorb(away);
        bytes.clear();
        let home_version = DataPage::new(mtr.bytes(home)).dictionary_version();
        let kind = Stored::Forward(target).build(home_version, &mut bytes);
        mtr.apply(home, PageOp::Data(DataOp::Replace { slot: rid.slot(), kind, bytes: &bytes }))?;
        self.note_space(&mut mtr, home);
        if let Some((place, slot)) = old {
            mtr.apply(place, PageOp::Data(DataOp::Delete { slot }))?;
            self.note_space(&mut mtr, place);
        }
        Ok(mtr)
    }
}

/// A row whose pages are latched.
pub(super) struct LatchedRow {
    pub(super) rid: Rid,
    pub(super) home: PageHandle,
    /// Where it is, if not at home.
    pub(super) away: Option<(PageHandle, u16)>,
}

/// How a row is replaced where it is. `freed` are the bytes that taking it back may need again.
enum InPlace {
    /// In the column part.
    Patches { patches: Vec<Patch>, freed: usize },
    /// By itself.
    Row { kind: StoredKind, bytes: Vec<u8>, freed: usize },
}

/// What has come of a replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replaced {
    Done,
    /// Only room was made: the row may lie elsewhere now.
    Again,
}

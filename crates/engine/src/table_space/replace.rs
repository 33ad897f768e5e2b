//! Putting another record in the place of a row's: where it is, by a change of its column part, or on another page.
//!
//! Invariants:
//! - the stored size of a row is known before a page is asked to take it;
//! - a row that moves leaves its RID behind: its home slot points to where it is, and is corrected when it moves again;
//! - a row that is away goes home with a change for which there is room at home again: else in the end nearly all rows would be away, each with a pointer;
//! - what taking a change back may need is reserved with the change.

use super::columns::WORTHWHILE;
use super::forward_range::{THIN_PART, room_to_forward_area};
use super::page_search::RowPage;
use super::rounds::Rounds;
use super::row_image::{self, RowImage};
use super::table::Table;
use super::write::Place;
use crate::pool::{By, MiniTransaction, PageHandle, keep_for_undo};
use crate::transaction::{Before, TransactionState};
use crate::{Error, Result};
use pagefold_codec::page::Patch;
use pagefold_codec::splice::Splice;
use pagefold_format::data::forms;
use pagefold_format::data::{
    AWAY_OVERHEAD, Body, DataOp, DataPage, ENTRY_BYTES, OTHER_OVERHEAD, SLOT_BYTES, STORED_BYTES_MIN, SingleRow, Stored, StoredKind,
};
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
        let mut rounds = Rounds::of(self);
        loop {
            rounds.begin();
            let mut mtr = MiniTransaction::begin(self.manager());
            let Some(home) = self.latch_home(&mut mtr, home_set, rid.page())? else { return Ok(false) };
            // Of a row that is hosted, the slot that hosts it is as good as its home, which stays latched.
            let (home, at, stored) = match self.stored(home_set, mtr.bytes(home), rid)? {
                None => return Ok(false),
                Some(Place::Hosted(target)) => {
                    let Some(host) = self.latch_without_waiting(&mut mtr, target)? else { continue };
                    self.expect_hosted(mtr.bytes(host), rid, target.slot())?;
                    let Some(stored) = self.stored_here(mtr.bytes(host), target.slot())? else { return Ok(false) };
                    (host, target, stored)
                }
                Some(stored) => (home, rid, stored),
            };
            let (place, slot, target) = match stored {
                Place::Home | Place::Hosted(_) => (home, at.slot(), None),
                Place::Away(target) => match self.latch_without_waiting(&mut mtr, target)? {
                    Some(handle) => (handle, target.slot(), Some(target)),
                    None => continue,
                },
            };
            let before = self.image(home_set, rid.page(), self.body_in(mtr.bytes(place), slot)?)?;
            let after = change(before.body())?;
            let row = LatchedRow { rid, home, at, away: target.map(|target| (place, target)), at_once: rounds.are_many() };
            let is_short = after.body().parts().1.len() < self.attributes.page_bytes / THIN_PART;
            if self.replace_latched(by, mtr, &row, &before, after.body(), None)? == Replaced::Done {
                if at != rid && is_short && matches!(by, By::Transaction(_)) {
                    self.leave_thin_page(at)?;
                }
                return Ok(true);
            }
        }
    }

    /// Puts another body in the place of a row's, all of whose pages are latched.
    pub(super) fn replace_latched<'a>(
        &'a self,
        by: By<'a>,
        mut mtr: MiniTransaction<'a>,
        row: &LatchedRow,
        before: &RowImage,
        after: Body<'_>,
        records: Option<(&[u8], &[u8])>,
    ) -> Result<Replaced> {
        let rid = row.rid;
        let (place, at) = row.away.unwrap_or((row.home, row.at));
        let decoded;
        let records = match records {
            None if self.by_column() => {
                decoded = (self.record_of(before.body())?, self.record_of(after)?);
                Some((&*decoded.0, &*decoded.1))
            }
            given => given.filter(|_| self.by_column()),
        };
        let shrunk = shrinkage(before.body(), after);
        let entry = self.core.reservations.of_row((self.object_id, rid));
        let own = entry.unwrap_or(0);
        if let (By::Transaction(state), Some((before, _))) = (by, records) {
            self.reserve_page_room(state, rid, before, None)?;
        }
        // For most rows nothing is kept, and nothing is to be.
        let has_entry = entry.is_some() || self.by_column();
        let keep_room = |at, bytes| if has_entry || bytes > 0 { self.keep_room(by, rid, at, bytes) } else { Ok(()) };
        let kept = self.kept_at_home(by, own, shrunk);
        let is_one_layout = before.body().layout() == after.layout() && self.logs_records();
        let undo = |codes| match records.filter(|_| is_one_layout) {
            Some((before, after)) => Earlier::Record(Splice::between(after, before)),
            // Its page may be built anew by column before that is taken back.
            None if self.by_column() => row_image::whole(before.body()),
            None => row_image::earlier(after, before.body(), codes),
        };
        let mut codes = Vec::new();
        if self.fits_at_home(by, &mtr, row, after, kept) {
            self.enter_version(by, rid, || Before::Present(before.bytes().into()))?;
            mtr.set_by(by);
            self.changed.note(before.body().dictionary(), after.dictionary());
            self.move_home(&mut mtr, row, after)?;
            keep_room(row.at, with_form(kept))?;
            return self.commit_update(by, mtr, rid, undo(&mut codes)).map(|()| Replaced::Done);
        }
        let kept_here = if self.by_column() && row.away.is_some() { 0 } else { kept };
        let mut change = self.change_in_place(by, &mtr, row, after, records, (own, kept_here))?;
        if change.is_none() && self.by_column() {
            // Room comes of a rebuild, or of rows that another page hosts from now on. Each is done by itself, and then all is looked at again.
            let wanted = Stored::Home(after).len(self.page_form()) + ENTRY_BYTES + kept_here.saturating_sub(own);
            if row.away.is_none() && !row.at_once && self.make_room_by(by, &mut mtr, place, Some(at.slot()), wanted)? {
                mtr.commit()?;
                return Ok(Replaced::Again);
            }
            change = self.change_by_rebuild(by, &mut mtr, row, after, (own, kept_here))?;
        }
        if change.is_none() && self.by_column() {
            // The row moves by itself. Its pointer takes the place of a row that lies by itself at home; else it takes room, which may be kept for others. Who takes something back needs a pointer
            // only when the page of the row has been built anew since: then its own room is there, whatever is kept for rows that were patched since.
            if self.point_to(by, &mut mtr, row, Rid::MIN, false)? == Pointed::NoRoom {
                // Where forwarding others gives nothing, a row that has moved to this page goes on; or this one goes with others of its range to where there is room for it.
                let forwards = |mtr: &mut _| self.make_room(mtr, row.home, Some(row.at.slot()), POINTER_ROOM);
                let made = if row.at_once {
                    self.pass_on(&mut mtr, row.home, row.at.slot())? || forwards(&mut mtr)?
                } else {
                    forwards(&mut mtr)?
                        || self.pass_on(&mut mtr, row.home, row.at.slot())?
                        || self.forward_along(&mut mtr, row.home, POINTER_ROOM)?
                };
                if !made && !self.forward_area(&mut mtr, row.home)? {
                    return Err(Error::Value(format!("{}: the row {rid} finds no room", self.object())));
                }
                mtr.commit()?;
                return Ok(Replaced::Again);
            }
        }
        // A row that moves has its room before its version is entered: where there is none, nothing has happened.
        let target = match change {
            Some(_) => None,
            None => {
                let kept_away = if self.by_column() { 0 } else { kept };
                // On a page by column an entry takes the place of a slot.
                let slot = if self.by_column() { ENTRY_BYTES } else { SLOT_BYTES };
                let space = AWAY_OVERHEAD + slot + after.parts().1.len() + kept_away;
                match self.page_for_moved(by, rid, space, &mtr)? {
                    Some((target, more)) => Some((target, kept_away + more)),
                    None => return Ok(Replaced::Again),
                }
            }
        };
        if let Err(error) = self.enter_version(by, rid, || Before::Present(before.bytes().into())) {
            // A new page stays, empty, for who comes next.
            if let Some(((_, mut away, page), _)) = target {
                self.note_space(&mut away, page);
                away.commit()?;
            }
            return Err(error);
        }
        mtr.set_by(by);
        self.changed.note(before.body().dictionary(), after.dictionary());
        let lies_by_itself = row.away.is_some() || target.is_some();
        let (at, kept) = match (change, target) {
            (Some(change), _) => {
                self.apply_in_place(&mut mtr, place, at.slot(), change)?;
                (at, kept_here)
            }
            (None, Some((target, kept))) => (self.move_row(by, &mut mtr, row, after, target)?, kept),
            (None, None) => return Err(Error::corrupt(self.object(), rid.page(), "a row without a place")),
        };
        keep_room(at, kept)?;
        let was_long = shrunk >= (self.attributes.page_bytes / WORTHWHILE) as isize;
        match by {
            By::Transaction(state) if (lies_by_itself || at != rid) && shrunk > 0 => state.note_away(self.object_id, rid, was_long),
            By::Undo(state, _) if at != rid => state.note_away(self.object_id, rid, was_long),
            By::Transaction(_) | By::Undo(..) | By::Nobody => {}
        }
        self.commit_update(by, mtr, rid, undo(&mut codes)).map(|()| Replaced::Done)
    }

    /// Makes room on a page that is latched, for `wanted` bytes more than are kept there: builds it anew, or has another page host some of its rows. False when there is none to be made. The
    /// mini-transaction is to be committed. `slot`: see [`forward_range`](Self::forward_range).
    fn make_room<'a>(&'a self, mtr: &mut MiniTransaction<'a>, page: PageHandle, slot: Option<u16>, wanted: usize) -> Result<bool> {
        let data_set = mtr.data_set(page);
        Ok(self.rebuild(mtr, data_set, page, wanted)? || self.forward_range(mtr, page, slot, wanted)?)
    }

    /// As [`make_room`](Self::make_room). Taking something back writes no images for which there may be no room in the log, and takes no pages for that.
    fn make_room_by<'a>(
        &'a self,
        by: By<'_>,
        mtr: &mut MiniTransaction<'a>,
        page: PageHandle,
        slot: Option<u16>,
        wanted: usize,
    ) -> Result<bool> {
        if !matches!(by, By::Undo(..)) {
            return self.make_room(mtr, page, slot, wanted);
        }
        let data_set = mtr.data_set(page);
        Ok(self.may_rebuild(by) && self.rebuild(mtr, data_set, page, wanted)?)
    }

    fn may_rebuild(&self, by: By<'_>) -> bool {
        !matches!(by, By::Undo(..)) || self.has_log_for_images()
    }

    /// Has the log room for images of two pages, beside what is kept for taking changes back?
    pub(super) fn has_log_for_images(&self) -> bool {
        self.manager().log().is_none_or(|log| log.has_spare(2 * self.attributes.page_bytes as u64))
    }

    /// Bytes to be kept for a row at home after a change that makes it shorter by `shrunk` bytes, when `own` are kept for it now.
    fn kept_at_home(&self, by: By<'_>, own: usize, shrunk: isize) -> usize {
        match by {
            By::Nobody => 0,
            _ if self.by_column() => POINTER_ROOM,
            _ => own.saturating_add_signed(shrunk),
        }
    }

    /// Keeps room for taking a change back, on the page where the row lies now, which is latched.
    pub(super) fn keep_room(&self, by: By<'_>, rid: Rid, at: Rid, bytes: usize) -> Result<()> {
        let (row, place) = ((self.object_id, rid), self.place(at)?);
        match by {
            By::Transaction(state) => self.core.reservations.keep(state, row, place, bytes),
            By::Undo(..) => self.core.reservations.moved(row, place, bytes),
            By::Nobody => {}
        }
        Ok(())
    }

    /// Where rows lie by column: reserves room of pages yet to be taken for a row to move to, should it have to become `record` again. Its home page is latched. `stays`: the row stays there, and so
    /// many bytes are kept for it on that page.
    pub(super) fn reserve_page_room(&self, state: &TransactionState, rid: Rid, record: &[u8], stays: Option<usize>) -> Result<()> {
        let (row, place) = ((self.object_id, rid), self.place(rid)?);
        let last = self.last_partition()?;
        // Twice as much: a page that takes such rows may stay half empty.
        let bytes = 2 * (AWAY_OVERHEAD + ENTRY_BYTES + self.single_bytes(record).0);
        let more = self.core.reservations.reserve(state, row, place, stays, last, bytes.min(self.attributes.page_bytes))?;
        if let Some(log) = self.manager().log().filter(|_| more > 0) {
            keep_for_undo(log, state, more as u64);
        }
        Ok(())
    }

    /// Ends an update, which `before` takes back.
    pub(super) fn commit_update<'m>(&self, by: By<'m>, mut mtr: MiniTransaction<'m>, rid: Rid, before: Earlier<'m>) -> Result<()> {
        mtr.set_undo(by, Undo::UpdatedRow { object_id: self.object_id, rid, before });
        self.take_version_back(by, rid)?;
        mtr.commit().map(drop)
    }

    /// How a row is replaced where it is; `None` when its page has no room. `records` are those before and after, where rows may lie by column;
    /// `own` bytes are kept for the row, and `kept` are to be kept after the change.
    fn change_in_place(
        &self,
        by: By<'_>,
        mtr: &MiniTransaction<'_>,
        row: &LatchedRow,
        body: Body<'_>,
        records: Option<(&[u8], &[u8])>,
        (own, kept): (usize, usize),
    ) -> Result<Option<InPlace>> {
        let (handle, at) = row.away.unwrap_or((row.home, row.at));
        let view = DataPage::new(mtr.bytes(handle));
        let Some(before) = view.row(at.slot()) else { return Ok(None) };
        if let (StoredKind::Column, Some((old, new))) = (before.kind, records) {
            let column = self.body_in(mtr.bytes(handle), at.slot())?;
            if let Some(patches) = self.patches(column, old, new)? {
                return Ok(Some(InPlace::Patches(patches)));
            }
        }
        let stored = match row.away {
            Some(_) => Stored::Away { home: row.rid, body },
            None => Stored::Home(body),
        };
        let length = stored.len(view.dictionary_version());
        // What others may need is not taken, but by who takes something back: it is for that, unless it is for pointers.
        let grows = before.own_bytes() < length && (self.by_column() || !matches!(by, By::Undo(..)));
        let others = if grows { mtr.data_set(handle).kept_bytes(mtr.number(handle)).saturating_sub(own) + kept } else { 0 };
        if !view.fits_in_place_of(at.slot(), length + others) {
            return Ok(None);
        }
        let mut bytes = Vec::with_capacity(length);
        let kind = stored.build(view.dictionary_version(), &mut bytes);
        Ok(Some(InPlace::Row { kind, bytes }))
    }

    /// As [`change_in_place`](Self::change_in_place), by a rebuild of the page without what the row is there: in a column part it has no bytes of its own that could be given back.
    fn change_by_rebuild(
        &self,
        by: By<'_>,
        mtr: &mut MiniTransaction<'_>,
        row: &LatchedRow,
        body: Body<'_>,
        (own, kept): (usize, usize),
    ) -> Result<Option<InPlace>> {
        if row.away.is_some() || !self.may_rebuild(by) {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let kind = Stored::Home(body).build(DataPage::new(mtr.bytes(row.home)).dictionary_version(), &mut bytes);
        let kept = mtr.data_set(row.home).kept_bytes(row.at.page()).saturating_sub(own) + kept;
        let fits = self.rebuild_with(mtr, row.home, SingleRow::Alone { slot: row.at.slot(), kind, bytes: &bytes }, kept, false)?;
        Ok(fits.then_some(InPlace::Rebuild { kind, bytes, kept }))
    }

    /// Puts a pointer in the place of a row that moves by itself; the page is rebuilt without the row where it has no room for that. `apply` is false to ask only.
    fn point_to(&self, by: By<'_>, mtr: &mut MiniTransaction<'_>, row: &LatchedRow, target: Rid, apply: bool) -> Result<Pointed> {
        let view = DataPage::new(mtr.bytes(row.home));
        let slot = row.at.slot();
        let mut bytes = Vec::new();
        let kind = Stored::Forward(target).build(view.dictionary_version(), &mut bytes);
        let own = self.core.reservations.of_row((self.object_id, row.rid)).unwrap_or(0);
        let takes_room = self.by_column() && view.row(slot).is_some_and(|row| row.own_bytes() == 0);
        // However many pointers there are, the area can go: room for that stays.
        let others = if takes_room && !matches!(by, By::Undo(..)) {
            mtr.data_set(row.home).kept_bytes(row.at.page()).saturating_sub(own) + room_to_forward_area(&view)
        } else {
            0
        };
        if takes_room && !view.fits_in_place_of(slot, bytes.len() + others) {
            let done = self.rebuild_with(mtr, row.home, SingleRow::Alone { slot, kind, bytes: &bytes }, others, apply)?;
            return Ok(if done { Pointed::Done } else { Pointed::NoRoom });
        }
        if apply {
            mtr.apply(row.home, PageOp::Data(DataOp::Replace { slot, kind, bytes: &bytes }))?;
            self.note_space(mtr, row.home);
        }
        Ok(Pointed::Done)
    }

    /// Is there room for a pointer in the place of a row that is to move by itself?
    pub(super) fn has_room_for_pointer(&self, mtr: &mut MiniTransaction<'_>, row: &LatchedRow) -> Result<bool> {
        Ok(self.point_to(By::Nobody, mtr, row, Rid::MIN, false)? == Pointed::Done)
    }

    fn apply_in_place(&self, mtr: &mut MiniTransaction<'_>, handle: PageHandle, slot: u16, change: InPlace) -> Result<()> {
        let (kind, bytes) = match change {
            InPlace::Patches(patches) => return apply_patches(mtr, handle, &patches),
            InPlace::Row { kind, bytes } => (kind, bytes),
            InPlace::Rebuild { kind, bytes, kept } => {
                let done = self.rebuild_with(mtr, handle, SingleRow::Alone { slot, kind, bytes: &bytes }, kept, true)?;
                let number = mtr.number(handle);
                return if done { Ok(()) } else { Err(Error::corrupt(self.object(), number, "a page rebuilt in two ways")) };
            }
        };
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

    /// Whether a row that is away is to go home: there is room for what it becomes, and for `kept` bytes more, should it have to become again what it was.
    pub(super) fn fits_at_home(&self, by: By<'_>, mtr: &MiniTransaction<'_>, row: &LatchedRow, after: Body<'_>, kept: usize) -> bool {
        if row.away.is_none() || matches!(by, By::Undo(..)) {
            return false;
        }
        let view = DataPage::new(mtr.bytes(row.home));
        let others = mtr.data_set(row.home).kept_bytes(row.at.page());
        view.fits_in_place_of(row.at.slot(), Stored::Home(after).len(view.dictionary_version()) + with_form(kept) + others)
    }

    /// Moves a row home, where there is room for it.
    pub(super) fn move_home(&self, mtr: &mut MiniTransaction<'_>, row: &LatchedRow, body: Body<'_>) -> Result<()> {
        if let Some((place, at)) = row.away {
            mtr.apply(place, PageOp::Data(DataOp::Delete { slot: at.slot() }))?;
            self.note_space(mtr, place);
        }
        let mut bytes = Vec::new();
        let kind = Stored::Home(body).build(DataPage::new(mtr.bytes(row.home)).dictionary_version(), &mut bytes);
        mtr.apply(row.home, PageOp::Data(DataOp::Replace { slot: row.at.slot(), kind, bytes: &bytes }))?;
        self.note_space(mtr, row.home);
        Ok(())
    }

    /// Moves a row to another page, which has room for it; gives its place there.
    pub(super) fn move_row<'a>(
        &self,
        by: By<'_>,
        mtr: &mut MiniTransaction<'a>,
        row: &LatchedRow,
        body: Body<'_>,
        (partition, mut away, handle): RowPage<'a>,
    ) -> Result<Rid> {
        let view = DataPage::new(away.bytes(handle));
        let target_slot = view.free_slot();
        let mut bytes = Vec::new();
        let kind = Stored::Away { home: row.rid, body }.build(view.dictionary_version(), &mut bytes);
        let target = Rid::new(partition.number(), away.number(handle), target_slot);
        away.apply(handle, PageOp::Data(DataOp::Insert { slot: target_slot, kind, bytes: &bytes }))?;
        self.note_space(&mut away, handle);
        mtr.absorb(away);
        if self.point_to(by, mtr, row, target, true)? == Pointed::NoRoom {
            return Err(Error::corrupt(self.object(), row.at.page(), "no room for a pointer that has its room"));
        }
        if let Some((place, at)) = row.away {
            mtr.apply(place, PageOp::Data(DataOp::Delete { slot: at.slot() }))?;
            self.note_space(mtr, place);
        }
        Ok(target)
    }
}

/// What a pointer takes more on a page than a row of its column part.
pub(super) const POINTER_ROOM: usize = STORED_BYTES_MIN + ENTRY_BYTES;

/// Bytes kept for a row that comes home: in another form than its page's it takes more there than away.
pub(super) fn with_form(kept: usize) -> usize {
    if kept > 0 { kept + OTHER_OVERHEAD } else { 0 }
}

/// Puts new bytes into a column part.
pub(super) fn apply_patches(mtr: &mut MiniTransaction<'_>, handle: PageHandle, patches: &[Patch]) -> Result<()> {
    patches.iter().try_for_each(|patch| mtr.apply(handle, PageOp::Data(DataOp::Patch { at: patch.offset as u16, bytes: &patch.new })))
}

/// By how many bytes a row that lies by itself becomes shorter (longer, if that is negative), at least.
fn shrinkage(before: Body<'_>, after: Body<'_>) -> isize {
    let ((form, old), (other, new)) = (before.parts(), after.parts());
    // What is of another form than its page takes more.
    let overhead = if form == other { 0 } else { OTHER_OVERHEAD as isize };
    old.len() as isize - new.len() as isize + overhead
}

/// A row whose pages are latched.
pub(super) struct LatchedRow {
    pub(super) rid: Rid,
    /// Its home page, or the one that hosts it.
    pub(super) home: PageHandle,
    /// Its slot there.
    pub(super) at: Rid,
    /// Where it is, if not there: it has moved by itself.
    pub(super) away: Option<(PageHandle, Rid)>,
    /// Room has been made again and again: now the row moves by itself.
    pub(super) at_once: bool,
}

/// How a row is replaced where it is.
enum InPlace {
    /// In the column part.
    Patches(Vec<Patch>),
    /// By itself.
    Row { kind: StoredKind, bytes: Vec<u8> },
    /// By itself, on its page built anew, with so many bytes kept free there.
    Rebuild { kind: StoredKind, bytes: Vec<u8>, kept: usize },
}

/// What has come of a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pointed {
    Done,
    NoRoom,
}

/// What has come of a replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replaced {
    Done,
    /// Only room was made: the row may lie elsewhere now.
    Again,
}

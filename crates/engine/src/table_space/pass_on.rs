//! Where rows lie by column: a row that lies by itself goes to another page, where its page needs the room.
//!
//! Such a row may fill a page but for a few bytes. The page's own rows, and those that it hosts, lie by column beside it and may be so few, so
//! short or so scattered that forwarding them gives nothing, or takes more than it gives: then none of them could leave a pointer when it becomes
//! longer. The row that has moved costs its home nothing when it moves again: the pointer there is written over. One that lies by itself and is not away
//! yet, too long to be hosted beside a range, leaves a pointer in its own place.
//!
//! Invariants:
//! - beside the page that needs the room none is waited for;
//! - a row that has moved, and for which room is kept on its page, stays there: the room is for taking changes back.

use super::replace::{LatchedRow, POINTER_ROOM};
use super::row_image::RowImage;
use super::table::Table;
use super::write::Place;
use crate::pool::{By, MiniTransaction, PageHandle};
use crate::{Error, Result};
use pagefold_format::data::{AWAY_OVERHEAD, DataPage, ENTRY_BYTES, Entry, STORED_BYTES_MIN, Stored, StoredKind};
use pagefold_types::Rid;

impl Table {
    /// The longest row that lies by itself on a page, which is latched for change, and not in `but`, goes to another page, or home; else the longest of its area; or nothing happens, as others have pages that it needs, and the
    /// caller is to try again. False when there is none that gives the room of a pointer. The mini-transaction is to be committed.
    ///
    /// # Errors
    /// When there is no room for another page: nothing has happened then.
    pub(super) fn pass_on<'a>(&'a self, mtr: &mut MiniTransaction<'a>, from: PageHandle, but: u16) -> Result<bool> {
        let view = DataPage::new(mtr.bytes(from));
        let worthwhile = |entry: &Entry| !entry.ghost && entry.slot != but && usize::from(entry.length) >= STORED_BYTES_MIN + POINTER_ROOM;
        let mut alone: Vec<(u16, u16)> = view.entries().filter(worthwhile).map(|entry| (entry.length, entry.slot)).collect();
        alone.sort_unstable_by(|one, other| other.cmp(one));
        let (partition, number) = (mtr.data_set(from).attributes.partition, mtr.number(from));
        let mut busy = false;
        for (_, slot) in alone {
            let view = DataPage::new(mtr.bytes(from));
            let Some(row) = view.row(slot) else { continue };
            let stored = Stored::parse(row, view.dictionary_version()).map_err(|e| mtr.data_set(from).corrupt(number, e))?;
            let here = Rid::new(partition, number, slot);
            let (rid, body, has_moved) = match stored {
                Stored::Away { home, body } => (home, body, true),
                Stored::Home(body) => (here, body, false),
                Stored::Hosted { home, body } => (home, body, false),
                Stored::Forward(_) | Stored::HostedForward { .. } | Stored::Forwarded(_) => continue,
            };
            if has_moved && self.core.reservations.of_row((self.object_id, rid)).is_some_and(|bytes| bytes > 0) {
                continue;
            }
            let image = RowImage::of(body);
            let (home, at) = if has_moved {
                let Some(pointer) = self.pointer_to(mtr, rid, here)? else {
                    busy = true;
                    continue;
                };
                pointer
            } else {
                (from, here)
            };
            let row = LatchedRow { rid, home, at, away: has_moved.then_some((from, here)), at_once: false };
            if self.fits_at_home(By::Nobody, mtr, &row, image.body(), 0) {
                self.move_home(mtr, &row, image.body())?;
                return Ok(true);
            }
            let space = AWAY_OVERHEAD + ENTRY_BYTES + image.body().parts().1.len();
            let page = self.page_for(space, &[(partition, number), (at.partition(), at.page()), (rid.partition(), rid.page())])?;
            let target = self.move_row(By::Nobody, mtr, &row, image.body(), page)?;
            let place = self.place(target)?;
            self.core.reservations.moved((self.object_id, rid), place, 0);
            return Ok(true);
        }
        Ok(self.pass_on_of_area(mtr, from, but)? || busy)
    }

    /// The longest row of a page's area, which is latched for change, goes to another page and leaves a pointer, for which the page is built anew; not that of `but`. False when there is none that gives
    /// the room of a pointer.
    fn pass_on_of_area<'a>(&'a self, mtr: &mut MiniTransaction<'a>, from: PageHandle, but: u16) -> Result<bool> {
        let (data_set, number) = (mtr.data_set(from), mtr.number(from));
        let partition = data_set.attributes.partition;
        let view = DataPage::new(mtr.bytes(from));
        let mut longest: Option<(u16, Rid, (u8, Vec<u8>))> = None;
        for slot in (0..view.slot_count()).filter(|slot| *slot != but) {
            let Some(row) = view.row(slot).filter(|row| row.kind == StoredKind::Column) else { continue };
            let rid = row.home.unwrap_or(Rid::new(partition, number, slot));
            let least = longest.as_ref().map_or(STORED_BYTES_MIN + POINTER_ROOM, |longest| longest.2.1.len() + 1);
            let body = self.body_in(mtr.bytes(from), slot)?;
            let record = Some(self.stored_record(data_set, number, body)?).filter(|(_, record)| record.len() >= least);
            longest = record.map(|record| (slot, rid, record)).or(longest);
        }
        let Some((slot, rid, (layout, record))) = longest else { return Ok(false) };
        // Who has an older snapshot may still read it in its layout.
        let image = self.encoded_as(layout, &record)?;
        let body = image.body();
        let row = LatchedRow { rid, home: from, at: Rid::new(partition, number, slot), away: None, at_once: false };
        if !self.has_room_for_pointer(mtr, &row)? {
            return Ok(false);
        }
        let space = AWAY_OVERHEAD + ENTRY_BYTES + body.parts().1.len();
        let page = self.page_for(space, &[(partition, number), (rid.partition(), rid.page())])?;
        let target = self.move_row(By::Nobody, mtr, &row, body, page)?;
        let place = self.place(target)?;
        self.core.reservations.moved((self.object_id, rid), place, 0);
        Ok(true)
    }

    /// The page that has the pointer to a row which lies there by itself, latched, and the slot: its home, or a page that hosts its slot. `None` when others have it latched.
    fn pointer_to<'a>(&'a self, mtr: &mut MiniTransaction<'a>, rid: Rid, here: Rid) -> Result<Option<(PageHandle, Rid)>> {
        let home_set = self.partition(rid.partition())?;
        let Some(home) = self.latch_without_waiting(mtr, rid)? else { return Ok(None) };
        let (home, at, stored) = match self.stored(home_set, mtr.bytes(home), rid)? {
            Some(Place::Hosted(target)) => {
                let Some(host) = self.latch_without_waiting(mtr, target)? else { return Ok(None) };
                self.expect_hosted(mtr.bytes(host), rid, target.slot())?;
                (host, target, self.stored_here(mtr.bytes(host), target.slot())?)
            }
            stored => (home, rid, stored),
        };
        match stored {
            Some(Place::Away(target)) if target == here => Ok(Some((home, at))),
            _ => Err(Error::corrupt(
                self.object(),
                here.page(),
                format!("slot {} has the row {rid}, whose home says otherwise", here.slot()),
            )),
        }
    }
}

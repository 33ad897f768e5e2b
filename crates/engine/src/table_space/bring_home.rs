//! Bringing a row home that was long and is not any more.
//!
//! A transaction that makes a row shorter, or takes back that it became longer, keeps room for the row to be as long again until it ends: so the
//! row stays where it was long, often alone on a page. When the transaction has ended that room is free, and the row goes home if it fits
//! there. So pages that were taken for long rows are empty again, and who needs pages for such rows next has them.
//!
//! Invariants:
//! - nothing but the place of the row changes: no version is entered, and nothing takes it back;
//! - the row goes only where all that is kept for others is still free afterwards, and what is kept for the row goes with it;
//! - beside the home page no page is waited for.

use super::columns::WORTHWHILE;
use super::replace::{LatchedRow, POINTER_ROOM, with_form};
use super::row_image::RowImage;
use super::table::Table;
use super::write::Place;
use crate::Result;
use crate::pool::{By, MiniTransaction};
use pagefold_format::data::{Body, DataOp, DataPage, SingleRow};
use pagefold_format::op::PageOp;
use pagefold_format::page::{self, PageType};
use pagefold_types::Rid;

impl Table {
    /// Moves a row home that has moved away by itself, if its home has room for it. Of one that another page hosts, the place there: if that page is nearly empty now,
    /// [all its rows](Self::leave_after_long_rows) are to go elsewhere, once those have gone home that lie there by themselves. The log is to have room.
    ///
    /// # Errors
    /// When a page is damaged or cannot be read.
    pub(crate) fn bring_home(&self, rid: Rid) -> Result<Option<Rid>> {
        let home_set = self.partition(rid.partition())?;
        if !self.has_log_for_images() {
            return Ok(None);
        }
        loop {
            let mut mtr = MiniTransaction::begin(self.manager());
            let Some(home) = self.latch_home(&mut mtr, home_set, rid.page())? else { return Ok(None) };
            let (home, at, stored) = match self.stored(home_set, mtr.bytes(home), rid)? {
                None => return Ok(None),
                Some(Place::Hosted(target)) => {
                    let Some(host) = self.latch_without_waiting(&mut mtr, target)? else { continue };
                    self.expect_hosted(mtr.bytes(host), rid, target.slot())?;
                    let Some(stored) = self.stored_here(mtr.bytes(host), target.slot())? else { return Ok(None) };
                    (host, target, stored)
                }
                Some(stored) => (home, rid, stored),
            };
            let Place::Away(target) = stored else {
                return Ok((at != rid).then_some(at));
            };
            let Some(place) = self.latch_without_waiting(&mut mtr, target)? else { continue };
            let image: RowImage = self.image(home_set, rid.page(), self.body_in(mtr.bytes(place), target.slot())?)?;
            let row = LatchedRow { rid, home, at, away: Some((place, target)), at_once: false };
            // Somebody may have changed it since, who may have to take that back.
            let own = self.core.reservations.of_row((self.object_id, rid));
            let own = own.map(|bytes| if self.by_column() { POINTER_ROOM } else { bytes }).unwrap_or(0);
            if self.fits_at_home(By::Nobody, &mtr, &row, image.body(), own) {
                self.move_home(&mut mtr, &row, image.body())?;
            } else if !self.move_into_area(&mut mtr, &row, image.body(), with_form(own))? {
                return Ok(None);
            }
            self.core.reservations.moved((self.object_id, rid), self.place(at)?, with_form(own));
            mtr.commit()?;
            return Ok((at != rid).then_some(at));
        }
    }

    /// A page that hosts rows which were long, as [`leave_thin_page`](Self::leave_thin_page): it is built anew first, if it has more room then, since its area still has the long rows.
    ///
    /// # Errors
    /// When a page is damaged.
    pub(crate) fn leave_after_long_rows(&self, at: Rid) -> Result<()> {
        let data_set = self.partition(at.partition())?;
        let mut mtr = MiniTransaction::begin(self.manager());
        let Some(page) = self.latch_home(&mut mtr, data_set, at.page())? else { return Ok(()) };
        let bytes = mtr.bytes(page);
        let view = DataPage::new(bytes);
        let worthwhile = bytes.len() / WORTHWHILE;
        let has_garbage = page::page_type(bytes) == Some(PageType::Data) && view.room_when_rebuilt() > view.free_bytes();
        if has_garbage && self.has_log_for_images() {
            self.rebuild_if(&mut mtr, data_set, page, |room, free| room >= free + worthwhile)?;
        }
        mtr.commit()?;
        self.join_ranges(at)
    }

    /// Where rows lie by column: moves a row home whose page has room for it only in its area, and builds that anew. False, and nothing has happened, when it has none.
    fn move_into_area(&self, mtr: &mut MiniTransaction<'_>, row: &LatchedRow, body: Body<'_>, kept: usize) -> Result<bool> {
        let Some((place, there)) = row.away.filter(|_| self.by_column()) else { return Ok(false) };
        let kept = mtr.data_set(row.home).kept_bytes(row.at.page()) + kept;
        if !self.rebuild_with(mtr, row.home, SingleRow::ByColumn { slot: row.at.slot(), body }, kept, true)? {
            return Ok(false);
        }
        mtr.apply(place, PageOp::Data(DataOp::Delete { slot: there.slot() }))?;
        self.note_space(mtr, place);
        Ok(true)
    }
}

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

use super::replace::{LatchedRow, POINTER_ROOM, with_form};
use super::row_image::RowImage;
use super::table::Table;
use super::write::Place;
use crate::Result;
use crate::pool::{By, MiniTransaction};
use pagefold_types::Rid;

impl Table {
    /// Moves a row home that has moved away by itself, if its home has room for it; of one that is hosted on a page that is nearly empty, all rows of that page go
    /// elsewhere, where that is possible. The log is to have room.
    ///
    /// # Errors
    /// When a page is damaged or cannot be read.
    pub(crate) fn bring_home(&self, rid: Rid) -> Result<()> {
        let home_set = self.partition(rid.partition())?;
        if !self.has_log_for_images() {
            return Ok(());
        }
        loop {
            let mut mtr = MiniTransaction::begin(self.manager());
            let home = mtr.latch(home_set, rid.page())?;
            let (home, at, stored) = match self.stored(home_set, mtr.bytes(home), rid)? {
                None => return Ok(()),
                Some(Place::Hosted(target)) => {
                    let Some(host) = self.latch_without_waiting(&mut mtr, target)? else { continue };
                    self.expect_hosted(mtr.bytes(host), rid, target.slot())?;
                    let Some(stored) = self.stored_here(mtr.bytes(host), target.slot())? else { return Ok(()) };
                    (host, target, stored)
                }
                Some(stored) => (home, rid, stored),
            };
            let Place::Away(target) = stored else {
                drop(mtr);
                return if at == rid { Ok(()) } else { self.leave_thin_page(at) };
            };
            let Some(place) = self.latch_without_waiting(&mut mtr, target)? else { continue };
            let image: RowImage = self.image(home_set, rid.page(), self.body_in(mtr.bytes(place), target.slot())?)?;
            let row = LatchedRow { rid, home, at, away: Some((place, target)) };
            // Somebody may have changed it since, who may have to take that back.
            let own = self.core.reservations.of_row((self.object_id, rid));
            let own = own.map(|bytes| if self.by_column() { POINTER_ROOM } else { bytes }).unwrap_or(0);
            if !self.fits_at_home(By::Nobody, &mtr, &row, image.body(), own) {
                return Ok(());
            }
            self.move_home(&mut mtr, &row, image.body())?;
            self.core.reservations.moved((self.object_id, rid), (self.partition(at.partition())?, at.page()), with_form(own));
            return mtr.commit().map(drop);
        }
    }
}

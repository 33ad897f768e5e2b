//! Changing fixed-width columns of a row.
//!
//! Such a change keeps the length of the record, so all of it happens under one latch of the row's page: the record is decoded and changed, and only the codes
//! near the change are made anew. Invariant: buffers are the thread's own, so nothing is allocated for a row.

use super::read::{RowBuffer, check_type};
use super::row_image::RowImage;
use super::table::Table;
use super::write::LatchedRow;
use crate::pool::{By, MiniTransaction};
use crate::{Error, Result};
use pagefold_format::data::{DataPage, Stored, forms};
use pagefold_types::{Rid, ValueError, ValueRef};
use std::cell::RefCell;

/// Buffers of a thread, kept from update to update.
#[derive(Default)]
struct Scratch {
    before: RowBuffer,
    after: Vec<u8>,
    codes: Vec<u8>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Table {
    /// Changes fixed-width columns of a row that is at home. Whether there is such a row; `None`, and nothing has happened, when the row is not at home or a column is of variable width.
    ///
    /// # Errors
    /// When a value does not fit its column, or the row has to move and there is no room.
    pub(crate) fn update_fixed(&self, by: By<'_>, rid: Rid, changes: &[(usize, ValueRef<'_>)]) -> Result<Option<bool>> {
        if changes.iter().any(|(column, _)| self.layout.fixed_span(*column).is_none()) {
            return Ok(None);
        }
        SCRATCH.with_borrow_mut(|scratch| self.update_fixed_with(by, rid, changes, scratch))
    }

    fn update_fixed_with(&self, by: By<'_>, rid: Rid, changes: &[(usize, ValueRef<'_>)], scratch: &mut Scratch) -> Result<Option<bool>> {
        let refused = |e: ValueError| Error::Value(format!("{}: {e}", self.object()));
        let data_set = self.partition(rid.partition())?;
        let mut mtr = MiniTransaction::begin(self.manager());
        let home = mtr.latch(data_set, rid.page())?;
        let page = mtr.bytes(home);
        check_type(data_set, rid.page(), page)?;
        let view = DataPage::new(page);
        let Some(row) = view.row(rid.slot()) else { return Ok(Some(false)) };
        let old = match Stored::parse(row, view.dictionary_version()).map_err(|e| data_set.corrupt(rid.page(), e))? {
            Stored::Home(body) => body,
            Stored::Forward(_) => return Ok(None),
            Stored::Away { .. } => return Ok(Some(false)),
        };
        let Scratch { before, after, codes } = scratch;
        let body = self.decode(data_set, rid.page(), old, before, |before| {
            after.clear();
            after.extend_from_slice(before);
            changes.iter().try_for_each(|(column, value)| self.layout.patch_fixed(after, *column, *value)).map_err(refused)?;
            codes.clear();
            let form = self.encoder().map_or(0, |encoder| encoder.append_changed(before, old, after, codes));
            Ok::<_, Error>(forms::body(form, after, codes))
        })??;
        let image = RowImage::of(old);
        self.replace_latched(by, mtr, &LatchedRow { rid, home, away: None }, &image, body)?;
        Ok(Some(true))
    }
}

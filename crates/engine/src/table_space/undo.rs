//! Taking back what a transaction did to rows.

use super::read::RowBuffer;
use super::row_image::RowImage;
use super::table::Table;
use crate::pool::By;
use crate::transaction::Resource;
use crate::{Error, Result};
use pagefold_codec::splice::Splice;
use pagefold_format::data::{Body, StoredKind, forms};
use pagefold_format::log::{Earlier, Undo};
use pagefold_types::Rid;

impl Table {
    /// Takes one change of a row back.
    ///
    /// # Errors
    /// When the row is not as the change left it: the log or a page is damaged.
    pub(crate) fn take_back(&self, by: By<'_>, undo: Undo<'_>) -> Result<()> {
        let (rid, done) = match undo {
            Undo::InsertedRow { rid, .. } => {
                let done = self.take_out(by, rid)?;
                if let By::Undo(state, _) = by {
                    self.core.reservations.forget((self.object_id, rid));
                    // There is no such row any more, and others may want the slot.
                    self.core.locks.release_wholly(state.id(), Resource::Row(self.object_id, rid));
                }
                (rid, done)
            }
            Undo::DeletedRow { rid, kind, .. } => {
                let kind = StoredKind::from_bits(u16::from(kind)).ok_or_else(|| self.not_as_logged(rid))?;
                (rid, self.undelete(by, rid, kind)?)
            }
            Undo::UpdatedRow { rid, before, .. } => {
                let back = |body: Body<'_>| match before {
                    Earlier::Record(splice) => self.earlier_record(rid, body, splice),
                    before => RowImage::earlier(body, before).ok_or_else(|| self.not_as_logged(rid)),
                };
                (rid, self.replace_body(by, rid, back)?)
            }
            Undo::InsertedEntry { .. }
            | Undo::AllocatedPage { .. }
            | Undo::KeptEntry { .. }
            | Undo::KeptLargeValue { .. }
            | Undo::Definition { .. } => return Ok(()),
        };
        if done { Ok(()) } else { Err(self.not_as_logged(rid)) }
    }

    /// What a row was before its record changed so.
    fn earlier_record(&self, rid: Rid, now: Body<'_>, splice: Splice<'_>) -> Result<RowImage> {
        let mut earlier = Vec::new();
        let data_set = self.partition(rid.partition())?;
        let spliced = self.decode(data_set, rid.page(), now, &mut RowBuffer::default(), |record| splice.apply(record, &mut earlier))?;
        spliced.map_err(|_| self.not_as_logged(rid))?;
        let mut codes = Vec::new();
        let form = self.encoder().map_or(0, |encoder| encoder.append(&earlier, &mut codes));
        Ok(RowImage::of(forms::body(form, &earlier, &codes)))
    }

    fn not_as_logged(&self, rid: Rid) -> Error {
        Error::corrupt(self.object(), rid.page(), format!("slot {} is not as the log says", rid.slot()))
    }
}

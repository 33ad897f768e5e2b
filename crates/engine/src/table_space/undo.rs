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
        let gate = self.gate.pass();
        let rid = match undo {
            Undo::InsertedRow { rid, .. } | Undo::DeletedRow { rid, .. } | Undo::UpdatedRow { rid, .. } => rid,
            _ => return Ok(()),
        };
        let before = self.record_for(&gate, rid)?;
        self.take_back_row(by, rid, undo)?;
        if let Some(observer) = &*gate {
            observer.row_changed(self, rid, before.as_deref(), self.record_for(&gate, rid)?.as_deref());
        }
        if let (Undo::InsertedRow { .. }, By::Undo(state, _)) = (undo, by) {
            // There is no such row any more, and others may want the slot.
            self.core.locks.release_wholly(state.id(), Resource::Row(self.object_id, rid));
        }
        Ok(())
    }

    fn take_back_row(&self, by: By<'_>, rid: Rid, undo: Undo<'_>) -> Result<()> {
        let done = match undo {
            Undo::InsertedRow { .. } => {
                let done = self.take_out(by, rid)?;
                if let By::Undo(..) = by {
                    self.core.reservations.forget((self.object_id, rid));
                }
                done
            }
            Undo::DeletedRow { kind, .. } => {
                let kind = StoredKind::from_bits(u16::from(kind)).ok_or_else(|| self.not_as_logged(rid))?;
                self.undelete(by, rid, kind)?
            }
            Undo::UpdatedRow { before, .. } => {
                let back = |body: Body<'_>| match before {
                    Earlier::Record(splice) => self.earlier_record(rid, body, splice),
                    before => RowImage::earlier(body, before).ok_or_else(|| self.not_as_logged(rid)),
                };
                self.replace_body(by, rid, back)?
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

//! Taking back what a transaction did to rows.

use super::read::RowBuffer;
use super::row_image::RowImage;
use super::table::Table;
use crate::log::Lsn;
use crate::pool::By;
use crate::steps::step;
use crate::transaction::{Resource, TransactionState};
use crate::{Error, Result};
use pagefold_codec::splice::Splice;
use pagefold_format::data::{Body, StoredKind};
use pagefold_format::log::{Earlier, Undo};
use pagefold_types::Rid;

impl Table {
    /// Takes a change or the deletion of a row back.
    ///
    /// # Errors
    /// When the row is not as the change left it: the log or a page is damaged.
    pub(crate) fn take_back(&self, by: By<'_>, undo: Undo<'_>) -> Result<()> {
        let gate = self.gate.pass();
        let (Undo::DeletedRow { rid, .. } | Undo::UpdatedRow { rid, .. }) = undo else { return Ok(()) };
        let before = self.record_for(&gate, rid)?;
        self.take_back_row(by, rid, undo)?;
        if let Some(observer) = &*gate {
            observer.row_changed(self, rid, before.as_deref(), self.record_for(&gate, rid)?.as_deref());
        }
        Ok(())
    }

    /// Takes rows out that came together, or one, from the last one on. The last step leads to the record at `next`, those before it to that at `again`, which leads here once more: after a crash some may be out already. Their slots
    /// are given to no other row that comes before all are out; a row that moves may lie in one, away from its home, and is passed over.
    ///
    /// # Errors
    /// As [`take_back`](Self::take_back).
    pub(crate) fn take_rows_out(&self, state: &TransactionState, (again, next): (Lsn, Lsn), first: Rid, count: u16) -> Result<()> {
        let rid = |number: u16| Rid::new(first.partition(), first.page(), first.slot() + number);
        for number in (0..count).rev() {
            step();
            let (rid, is_last) = (rid(number), number == 0);
            let gate = self.gate.pass();
            let before = self.record_for(&gate, rid)?;
            let is_out = self.take_out(By::Undo(state, if is_last { next } else { again }), rid)?;
            if !is_out && is_last {
                return Err(self.not_as_logged(rid));
            }
            self.core.reservations.forget((self.object_id, rid));
            if let (Some(observer), true) = (&*gate, is_out) {
                observer.row_changed(self, rid, before.as_deref(), None);
            }
        }
        // There are no such rows any more, and others may want the slots.
        (0..count).for_each(|number| self.core.locks.release_wholly(state.id(), Resource::Row(self.object_id, rid(number))));
        Ok(())
    }

    fn take_back_row(&self, by: By<'_>, rid: Rid, undo: Undo<'_>) -> Result<()> {
        let done = match undo {
            Undo::DeletedRow { kind, .. } => {
                let kind = StoredKind::from_bits(u16::from(kind)).ok_or_else(|| self.not_as_logged(rid))?;
                self.undelete(by, rid, kind)?
            }
            Undo::UpdatedRow { before, .. } => {
                let back = |body: Body<'_>| match before {
                    Earlier::Record(splice) => self.earlier_record(rid, body, splice),
                    before => {
                        let earlier = RowImage::earlier(body, before).ok_or_else(|| self.not_as_logged(rid))?;
                        self.as_short_as_can_be(rid, earlier)
                    }
                };
                self.replace_body(by, rid, back)?
            }
            Undo::InsertedRow { .. }
            | Undo::InsertedRows { .. }
            | Undo::InsertedEntry { .. }
            | Undo::InsertedEntries { .. }
            | Undo::AllocatedPage { .. }
            | Undo::KeptEntry { .. }
            | Undo::KeptLargeValue { .. }
            | Undo::Definition { .. } => return Ok(()),
        };
        if done { Ok(()) } else { Err(self.not_as_logged(rid)) }
    }

    /// What a row was before its record changed so. The change was made in the layout of this table, which is as it was then; a later one of the same
    /// transaction may have brought the row into its own meanwhile.
    fn earlier_record(&self, rid: Rid, now: Body<'_>, splice: Splice<'_>) -> Result<RowImage> {
        let mut earlier = Vec::new();
        let data_set = self.partition(rid.partition())?;
        let record = self.decode(data_set, rid.page(), now, &mut RowBuffer::default(), <[u8]>::to_vec)?;
        splice.apply(&record, &mut earlier).map_err(|_| self.not_as_logged(rid))?;
        self.encoded_as(self.decoder.layout(), &earlier)
    }

    /// Where rows lie by column, what a row was whose layout changed with it is logged as its record: it lies by itself again, as short as others.
    fn as_short_as_can_be(&self, rid: Rid, earlier: RowImage) -> Result<RowImage> {
        if !self.by_column() {
            return Ok(earlier);
        }
        let (layout, record) = self.stored_record(self.partition(rid.partition())?, rid.page(), earlier.body())?;
        self.encoded_as(layout, &record)
    }

    fn not_as_logged(&self, rid: Rid) -> Error {
        Error::corrupt(self.object(), rid.page(), format!("slot {} is not as the log says", rid.slot()))
    }
}

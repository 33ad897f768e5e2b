//! Changing fixed-width columns of a row.
//!
//! Such a change keeps the length of the record, so all of it happens under one latch of the row's page: the record is decoded and changed, and only the codes
//! near the change are made anew. Invariant: buffers are the thread's own, so nothing is allocated for a row.

use super::read::RowBuffer;
use super::replace::{LatchedRow, Replaced};
use super::rounds::Rounds;
use super::table::Table;
use crate::pool::{By, MiniTransaction};
use crate::{Error, Result};
use pagefold_format::data::{Body, DataPage, Stored, forms};
use pagefold_types::{Rid, ValueError, ValueRef};
use std::cell::RefCell;

/// Buffers of a thread, kept from update to update.
#[derive(Default)]
struct Scratch {
    before: RowBuffer,
    after: Vec<u8>,
    codes: Vec<u8>,
    /// Where rows lie by column: the record before.
    record: Vec<u8>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Table {
    /// Changes fixed-width columns of a row that is at home. Whether there is such a row; `None`, and nothing has happened, when the row is not at home, a column is of variable width, or the row of
    /// an earlier layout is longer in this one than a page has room for.
    ///
    /// # Errors
    /// When a value does not fit its column, or the row has to move and there is no room.
    pub(crate) fn update_fixed(&self, by: By<'_>, rid: Rid, changes: &[(usize, ValueRef<'_>)]) -> Result<Option<bool>> {
        self.check_dictionaries()?;
        if changes.iter().any(|(column, _)| self.layout.fixed_span(*column).is_none()) {
            return Ok(None);
        }
        SCRATCH.with_borrow_mut(|scratch| {
            let mut rounds = Rounds::of(self);
            loop {
                rounds.begin();
                if let Some(outcome) = self.update_fixed_with(by, rid, changes, scratch, rounds.are_many())? {
                    return Ok(outcome);
                }
            }
        })
    }

    /// `None` when only room was made.
    fn update_fixed_with(
        &self,
        by: By<'_>,
        rid: Rid,
        changes: &[(usize, ValueRef<'_>)],
        scratch: &mut Scratch,
        at_once: bool,
    ) -> Result<Option<Option<bool>>> {
        let refused = |e: ValueError| Error::Value(format!("{}: {e}", self.object()));
        let data_set = self.partition(rid.partition())?;
        let mut mtr = MiniTransaction::begin(self.manager());
        let Some(home) = self.latch_home(&mut mtr, data_set, rid.page())? else { return Ok(Some(Some(false))) };
        let view = DataPage::new(mtr.bytes(home));
        let Some(row) = view.row(rid.slot()) else { return Ok(Some(Some(false))) };
        let old = match Stored::parse(row, view.dictionary_version()).map_err(|e| data_set.corrupt(rid.page(), e))? {
            Stored::Home(body) => body,
            Stored::Forward(_) | Stored::Forwarded(_) => return Ok(Some(None)),
            Stored::Away { .. } | Stored::Hosted { .. } | Stored::HostedForward { .. } => return Ok(Some(Some(false))),
        };
        let Scratch { before, after, codes, record } = scratch;
        let form = self.decode(data_set, rid.page(), old, before, |before| {
            after.clear();
            after.extend_from_slice(before);
            changes.iter().try_for_each(|(column, value)| self.layout.patch_fixed(after, *column, *value)).map_err(refused)?;
            codes.clear();
            if self.by_column() {
                record.clear();
                record.extend_from_slice(before);
            }
            // A row of a column part mostly stays there: how it would lie by itself is asked only if not.
            let encoder = self.encoder().filter(|_| !matches!(old, Body::Column { .. }));
            Ok::<_, Error>(encoder.map_or(0, |encoder| encoder.append_changed(before, old, after, codes)))
        })??;
        if after.len() > self.record_bytes_max() {
            return Ok(Some(None));
        }
        let form = if let Body::Column { .. } = old {
            if let Some(patches) = self.patches(old, record, after)? {
                return self.patch_latched(by, mtr, rid, home, (record, after), &patches).map(|()| Some(Some(true)));
            }
            self.encoder().map_or(0, |encoder| encoder.append(after, codes))
        } else {
            form
        };
        let image = self.image(data_set, rid.page(), old)?;
        let body = forms::body(form, after, codes);
        let done =
            self.replace_latched(by, mtr, &LatchedRow { rid, home, at: rid, away: None, at_once }, &image, body, Some((record, after)))?;
        Ok((done == Replaced::Done).then_some(Some(true)))
    }
}

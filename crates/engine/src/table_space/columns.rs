//! Pages whose rows lie by column (method `page`): rebuilding them, changing rows in place, and giving it up.
//!
//! Invariants:
//! - what is kept on a page for taking changes back is still free when it has been rebuilt: see [`Reservations`](super::reservations);
//! - a page with a column part has no rows that are away from home, and no more slots than there is room for forward pointers: so all of its rows can move away;
//! - how a row lies is no part of its versions and undo: they have its record.

use super::replace::{LatchedRow, POINTER_ROOM, apply_patches};
use super::row_image::RowImage;
use super::table::{Method, Table};
use super::write::page_room;
use crate::data_set::DataSet;
use crate::pool::{By, MiniTransaction, PageHandle};
use crate::table_space::RowBuffer;
use crate::transaction::Before;
use crate::{Error, Result};
use pagefold_codec::page::Patch;
use pagefold_codec::splice::Splice;
use pagefold_format::data::{
    AWAY_OVERHEAD, Body, ColumnBuilder, ColumnImage, DataOp, DataPage, Entry, SLOT_BYTES, STORED_BYTES_MIN, Stored, StoredKind,
    area_encoder, column_rows_max, row_space,
};
use pagefold_format::log::Earlier;
use pagefold_format::op::PageOp;
use pagefold_format::space_map::class_needed;
use pagefold_types::Rid;

/// Of a page's bytes, inserts leave one in so many to rows that change.
pub(super) const RESERVE: usize = 32;
/// A page is rebuilt for an insert only if one byte in so many is free then.
const WORTHWHILE: usize = 8;

impl Table {
    /// Are rows to lie by column?
    pub(super) fn by_column(&self) -> bool {
        self.attributes.method == Method::Page
    }

    /// What an insert leaves free on a page.
    pub(super) fn insert_reserve(&self) -> usize {
        if self.by_column() { self.attributes.page_bytes / RESERVE } else { 0 }
    }

    /// What versions keep of a row: its body; of a row of a column part, its record.
    pub(super) fn image(&self, data_set: &DataSet, page: u32, body: Body<'_>) -> Result<RowImage> {
        match body {
            Body::Column { .. } => self.decode(data_set, page, body, &mut RowBuffer::default(), |record| RowImage::of(Body::Plain(record))),
            body => Ok(RowImage::of(body)),
        }
    }

    /// The record of a body that lies by itself, copied.
    pub(super) fn record_of(&self, body: Body<'_>) -> Result<Vec<u8>> {
        let mut buffer = Vec::new();
        let dictionary = body.dictionary().and_then(|version| self.dictionaries.tokens_of(version));
        let record = self.decoder.decode(body, dictionary, &mut buffer);
        record.map(<[u8]>::to_vec).map_err(|e| Error::Damaged { path: self.object(), reason: e.to_string() })
    }

    /// Rebuilds a page, which is latched for change, if `wanted` bytes are free then, more than now. Its mini-transaction is to be committed.
    pub(super) fn rebuild(&self, mtr: &mut MiniTransaction<'_>, data_set: &DataSet, handle: PageHandle, wanted: usize) -> Result<bool> {
        self.rebuild_if(mtr, data_set, handle, |room, free| room >= wanted && room > free)
    }

    /// Rebuilds a page, which is latched for change, if `accept` says so of the bytes that are free then and now. Its mini-transaction is to be committed.
    pub(super) fn rebuild_if(
        &self,
        mtr: &mut MiniTransaction<'_>,
        data_set: &DataSet,
        handle: PageHandle,
        accept: impl Fn(usize, usize) -> bool,
    ) -> Result<bool> {
        let number = mtr.number(handle);
        let bytes = mtr.bytes(handle);
        let view = DataPage::new(bytes);
        let version = self.dictionaries.newest().map_or(0, |dictionary| dictionary.version());
        let is_stored = version == 0 || data_set.facts().dictionaries.iter().any(|root| root.version == version);
        let slots_max = column_rows_max(bytes.len(), self.attributes.maxrows);
        if !is_stored || usize::from(view.slot_count()) > slots_max {
            return Ok(false);
        }
        let mut builder = self.builder(version);
        let image = builder.rebuild(&view, &self.decoder, |version| self.dictionaries.tokens_of(version));
        let free = view.free_bytes();
        let kept = data_set.kept_bytes(number);
        let room = |image: &ColumnImage<'_>| bytes.len().checked_sub(image.len() + kept);
        let image = image
            .map_err(|e| data_set.corrupt(number, e))?
            .filter(|image| room(image).is_some_and(|room| accept(room, free.saturating_sub(kept))));
        let done = match image {
            Some(image) => mtr.apply(handle, PageOp::Data(DataOp::Rebuild(image))).map(|()| true)?,
            None => false,
        };
        if done {
            self.note_space(mtr, handle);
        }
        self.builders.lock().push(builder);
        Ok(done)
    }

    /// What pages are rebuilt with: string codes of the dictionary of this version, unless it is 0.
    fn builder(&self, version: u16) -> ColumnBuilder {
        if let Some(builder) = self.builders.lock().pop().filter(|builder| builder.dictionary_version() == version) {
            return builder;
        }
        let dictionary = self.dictionaries.tokens_of(version);
        ColumnBuilder::new(area_encoder(self.decoder.columns().clone(), dictionary), version)
    }

    /// Rebuilds the page that the last insert went to, if that makes room for many more rows.
    pub(super) fn rebuild_for_inserts(&self, data_set: &DataSet, number: u32, space: usize) -> Result<()> {
        let manager = self.manager();
        if number == 0 || number >= data_set.page_count() {
            return Ok(());
        }
        // Inserts go by the class, which is a little less than there is.
        if data_set.space().word(number).class() >= class_needed(space, data_set.page_bytes()) {
            return Ok(());
        }
        manager.make_resident(data_set, number)?;
        let Some(page) = manager.try_exclusive(data_set, number) else { return Ok(()) };
        if super::read::check_type(data_set, number, &page).is_err() {
            return Ok(());
        }
        let wanted = space.max(self.attributes.page_bytes / WORTHWHILE);
        let mut mtr = MiniTransaction::begin(manager);
        let handle = mtr.adopt(page);
        if self.rebuild(&mut mtr, data_set, handle, wanted)? {
            mtr.commit()?;
        }
        Ok(())
    }

    /// What turns a row of a column part into another record where it is; `None` when that is not possible.
    pub(super) fn patches(&self, body: Body<'_>, before: &[u8], after: &[u8]) -> Result<Option<Vec<Patch>>> {
        let Body::Column { part, row } = body else { return Ok(None) };
        let dictionary = body.dictionary().and_then(|version| self.dictionaries.tokens_of(version));
        let area = self.decoder.area(part, dictionary).map_err(|e| Error::Damaged { path: self.object(), reason: e.to_string() })?;
        let mut patches = Vec::new();
        let found = usize::from(row) < area.rows() && area.patch_record(row.into(), before, after, &mut patches);
        Ok(found.then_some(patches))
    }

    /// Changes a row of a column part, whose page is latched, where it is.
    pub(super) fn patch_latched(
        &self,
        by: By<'_>,
        mut mtr: MiniTransaction<'_>,
        rid: Rid,
        home: PageHandle,
        (before, after): (&[u8], &[u8]),
        patches: &[Patch],
    ) -> Result<()> {
        if let By::Transaction(state) = by {
            self.reserve_page_room(state, rid, before)?;
        }
        self.enter_version(by, rid, || Before::Present(RowImage::of(Body::Plain(before)).bytes().into()))?;
        apply_patches(&mut mtr, home, patches)?;
        self.keep_room(by, rid, rid, POINTER_ROOM)?;
        self.commit_update(by, mtr, rid, Earlier::Record(Splice::between(after, before)))
    }

    /// Bytes that a record takes when it lies by itself, and whether it is encoded then.
    pub(super) fn single_bytes(&self, record: &[u8]) -> (usize, bool) {
        self.encoder().map_or((record.len(), false), |encoder| encoder.stored_len(record))
    }

    /// Moves the longest row that lies by itself at home on a page away: that gives more room than its pointer takes. The mini-transaction comes back, as it was, when there is none.
    pub(super) fn thin_out<'a>(
        &'a self,
        mut mtr: MiniTransaction<'a>,
        partition: u16,
        home: PageHandle,
    ) -> Result<std::result::Result<(), MiniTransaction<'a>>> {
        let view = DataPage::new(mtr.bytes(home));
        let (number, form) = (mtr.number(home), view.dictionary_version());
        let singles = (0..view.slot_count()).filter_map(|slot| view.row(slot)).filter(|row| row.kind != StoredKind::Column);
        let at_home = singles.filter(|row| matches!(Stored::parse(*row, form), Ok(Stored::Home(_))));
        let longest = at_home.max_by_key(|row| row.bytes.len()).filter(|row| row.bytes.len() > STORED_BYTES_MIN);
        let Some(slot) = longest.map(|row| row.slot) else { return Ok(Err(mtr)) };
        let rid = Rid::new(partition, number, slot);
        let image = RowImage::of(self.body_in(mtr.bytes(home), slot)?);
        let space = AWAY_OVERHEAD + SLOT_BYTES + image.body().parts().1.len();
        let Some(target) = self.page_for_moved(By::Nobody, rid, space)? else { return Ok(Err(mtr)) };
        let at = self.move_row(&mut mtr, &LatchedRow { rid, home, away: None }, image.body(), target)?;
        self.core.reservations.moved((self.object_id, rid), (self.partition(at.partition())?, at.page()), |_| 0);
        mtr.commit()?;
        Ok(Ok(()))
    }

    /// Moves all rows and ghosts of a page away, which leave forward pointers: what can be done on a page that has no room for one more of them. Nothing has changed in `mtr`; it is committed.
    pub(super) fn evacuate<'a>(
        &'a self,
        mut mtr: MiniTransaction<'a>,
        data_set: &'a DataSet,
        partition: u16,
        home: PageHandle,
    ) -> Result<()> {
        let number = mtr.number(home);
        let view = DataPage::new(mtr.bytes(home));
        let (form, slots) = (view.dictionary_version(), view.slot_count());
        let mut kept: Vec<(u16, StoredKind, bool, Vec<u8>)> = Vec::new();
        let mut moving: Vec<MovingRow> = Vec::new();
        let mut buffer = RowBuffer::default();
        for slot in 0..slots {
            let (row, ghost) = match view.row(slot) {
                Some(row) => (row, false),
                None => match view.ghost(slot, StoredKind::Special) {
                    Some(row) => (row, true),
                    None => continue,
                },
            };
            let body = match Stored::parse(row, form).map_err(|e| data_set.corrupt(number, e))? {
                Stored::Home(body) => body,
                Stored::Forward(_) | Stored::Away { .. } => {
                    kept.push((slot, row.kind, ghost, row.bytes.to_vec()));
                    continue;
                }
            };
            let home = Rid::new(partition, number, slot);
            let bytes = self.decode(data_set, number, body, &mut buffer, |record| {
                let (mut codes, mut bytes) = (Vec::new(), Vec::new());
                let form = self.encoder().map_or(0, |encoder| encoder.append(record, &mut codes));
                Stored::Away { home, body: pagefold_format::data::forms::body(form, record, &codes) }.build(self.page_form(), &mut bytes);
                bytes
            })?;
            moving.push(MovingRow { slot, ghost, bytes });
        }
        let pages = self.pages_for(&moving)?;
        let mut rows = moving.into_iter();
        for (target_partition, mut away, handle, count) in pages {
            let target_set = self.partition(target_partition)?;
            for MovingRow { slot, ghost, bytes, .. } in rows.by_ref().take(count) {
                let target_slot = DataPage::new(away.bytes(handle)).slot_count();
                let target = Rid::new(target_partition, away.number(handle), target_slot);
                away.apply(handle, PageOp::Data(DataOp::Insert { slot: target_slot, kind: StoredKind::Special, bytes: &bytes }))?;
                if ghost {
                    away.apply(handle, PageOp::Data(DataOp::MarkDeleted { slot: target_slot }))?;
                }
                let mut pointer = Vec::new();
                let kind = Stored::Forward(target).build(form, &mut pointer);
                kept.push((slot, kind, ghost, pointer));
                self.core.reservations.moved((self.object_id, Rid::new(partition, number, slot)), (target_set, target.page()), |_| 0);
            }
            self.note_space(&mut away, handle);
            mtr.absorb(away);
        }
        kept.sort_unstable_by_key(|row| row.0);
        let (mut singles, mut directory) = (Vec::new(), Vec::new());
        for (slot, kind, ghost, bytes) in &kept {
            let offset = (pagefold_format::data::COLUMN_ROWS_START + singles.len()) as u16;
            let entry = Entry { slot: *slot, kind: *kind, ghost: *ghost, offset, length: bytes.len() as u16 };
            directory.extend_from_slice(&entry.to_bytes());
            singles.extend_from_slice(bytes);
        }
        let image = ColumnImage { slots, dictionary_version: 0, area: &[], rows: &singles, directory: &directory };
        mtr.apply(home, PageOp::Data(DataOp::Rebuild(image)))?;
        self.note_space(&mut mtr, home);
        mtr.commit().map(drop)
    }

    /// New pages for these rows, and how many of them each takes. If there is no room for all, there is none: the pages that were made stay, empty, for who comes next.
    fn pages_for<'a>(&'a self, rows: &[MovingRow]) -> Result<Vec<(u16, MiniTransaction<'a>, PageHandle, usize)>> {
        let mut pages: Vec<(u16, MiniTransaction<'a>, PageHandle, usize)> = Vec::new();
        let (mut left, room) = (0, page_room(self.attributes.page_bytes));
        let maxrows = usize::from(self.attributes.maxrows);
        for row in rows {
            let space = row_space(row.bytes.len());
            if left < space || pages.last().is_some_and(|page| page.3 == maxrows) {
                match self.new_moved_page() {
                    Ok((partition, mtr, handle)) => pages.push((partition, mtr, handle, 0)),
                    Err(error) => {
                        pages.into_iter().try_for_each(|(_, mtr, _, _)| mtr.commit().map(drop))?;
                        return Err(error);
                    }
                }
                left = room;
            }
            left = left.saturating_sub(space);
            if let Some(page) = pages.last_mut() {
                page.3 += 1;
            }
        }
        Ok(pages)
    }
}

/// A row or ghost that is to move away, as it will lie there.
struct MovingRow {
    slot: u16,
    ghost: bool,
    bytes: Vec<u8>,
}

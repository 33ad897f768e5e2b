//! Pages whose rows lie by column (method `page`): rebuilding them, and changing rows in place. Pages without room: [`forward_range`](super::forward_range).
//!
//! Invariants:
//! - what is kept on a page for taking changes back is still free when it has been rebuilt: see `core/reservations.rs`;
//! - how a row lies is no part of its versions and undo: they have its record.

use super::attributes::Method;
use super::replace::{POINTER_ROOM, apply_patches};
use super::row_image::{self, RowImage};
use super::table::Table;
use crate::data_set::DataSet;
use crate::pool::{By, MiniTransaction, PageHandle};
use crate::transaction::Before;
use crate::{Error, Result};
use pagefold_codec::page::Patch;
use pagefold_codec::splice::Splice;
use pagefold_format::FormatError;
use pagefold_format::data::{
    Body, ColumnBuilder, ColumnImage, DataOp, DataPage, OwnPage, PlacedRow, SingleRow, SlotRange, area_encoder, column_rows_max, forms,
};
use pagefold_format::log::Earlier;
use pagefold_format::op::PageOp;
use pagefold_format::space_map::{class_not_empty, class_of};
use pagefold_types::Rid;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Of a page's bytes, inserts leave one in so many to rows that change.
pub(super) const RESERVE: usize = 32;
/// A page is rebuilt for rows that come only if one byte in so many is expected to be free then.
const EXPECTED: usize = 13;
/// Once it is built, it is taken if one byte in so many is free: what is expected is often a little too much, and the work is done.
pub(super) const WORTHWHILE: usize = 16;

impl Table {
    /// How many pages have been built anew by column since the database was opened, those included that were built to find out only whether rows fit.
    #[must_use]
    pub fn images_built(&self) -> u64 {
        self.images.load(Ordering::Relaxed)
    }

    /// Are rows to lie by column?
    pub(super) fn by_column(&self) -> bool {
        self.attributes.method == Method::Page
    }

    /// What an insert leaves free on a page.
    pub(super) fn insert_reserve(&self) -> usize {
        if self.by_column() { self.attributes.page_bytes / RESERVE } else { 0 }
    }

    /// What versions keep of a row: its body; of a row of a column part, its record, in the layout that it is stored in.
    pub(super) fn image(&self, data_set: &DataSet, page: u32, body: Body<'_>) -> Result<RowImage> {
        match body {
            Body::Column { .. } => {
                let (layout, record) = self.stored_record(data_set, page, body)?;
                Ok(RowImage::of(forms::record_body(layout, &record)))
            }
            body => Ok(RowImage::of(body)),
        }
    }

    /// The record of a row in the layout that it is stored in, copied, and the number of that.
    pub(super) fn stored_record(&self, data_set: &DataSet, page: u32, body: Body<'_>) -> Result<(u8, Vec<u8>)> {
        let dictionary = body.dictionary().and_then(|version| self.dictionaries.tokens_of(version));
        let mut buffer = Vec::new();
        let record = self.decoder.decode_as_stored(body, dictionary, &mut buffer).map(<[u8]>::to_vec);
        record.map(|record| (body.layout(), record)).map_err(|e| self.undecodable(data_set, page, body.dictionary(), e))
    }

    /// What is stored of a record of a layout by itself, without that it is brought into another one.
    pub(super) fn encoded_as(&self, layout: u8, record: &[u8]) -> Result<RowImage> {
        let mut codes = Vec::new();
        let form = if layout == self.decoder.layout() {
            self.encoder().map_or(0, |encoder| encoder.append(record, &mut codes))
        } else if matches!(self.attributes.method, Method::Row | Method::Page) {
            let encoder = self.decoder.compact_encoder(layout);
            encoder.map_err(|e| Error::Damaged { path: self.object(), reason: e.to_string() })?.append(record, &mut codes)
        } else {
            return Ok(RowImage::of(forms::record_body(layout, record)));
        };
        Ok(RowImage::of(forms::body(form, record, &codes)))
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
        let Some(version) = self.area_version(data_set).filter(|_| !view.slots_in_use_exceed(self.slots_max())) else { return Ok(false) };
        let mut builder = self.builder(version);
        self.images.fetch_add(1, Ordering::Relaxed);
        let image = builder.rebuild(&view, &self.decoder, |version| self.dictionaries.tokens_of(version));
        let free = view.free_bytes();
        let kept = data_set.kept_bytes(number);
        let image = image.map_err(|e| data_set.corrupt(number, e))?.filter(|image| image.len() <= bytes.len());
        let room = image.as_ref().map_or(0, |image| bytes.len() - image.len());
        let image = image.filter(|_| room >= kept && accept(room - kept, free.saturating_sub(kept)));
        let done = image.is_some();
        match image {
            Some(image) => self.put_image(mtr, handle, image)?,
            // Else the same page would be built in vain again with the next change that seems to give room.
            None => data_set.space().note_overestimate(number, view.room_when_rebuilt().saturating_sub(room)),
        }
        self.builders.lock().push(builder);
        Ok(done)
    }

    /// Puts what has been built anew in the place of a page, and brings the space map up to date.
    pub(super) fn put_image(&self, mtr: &mut MiniTransaction<'_>, page: PageHandle, image: ColumnImage<'_>) -> Result<()> {
        mtr.apply(page, PageOp::Data(DataOp::Rebuild(image)))?;
        mtr.data_set(page).space().note_overestimate(mtr.number(page), 0);
        self.note_space(mtr, page);
        Ok(())
    }

    /// Slots in use that a page may have and be rebuilt.
    pub(super) fn slots_max(&self) -> usize {
        column_rows_max(self.attributes.page_bytes, self.attributes.maxrows)
    }

    /// Rebuilds a page, which is latched for change, so that in the place of one of its rows there is another, or a pointer; and `kept` bytes are free. False, and nothing has happened,
    /// when there is no room for that. `apply` is false to ask only.
    pub(super) fn rebuild_with(
        &self,
        mtr: &mut MiniTransaction<'_>,
        handle: PageHandle,
        single: SingleRow<'_>,
        kept: usize,
        apply: bool,
    ) -> Result<bool> {
        let (data_set, number) = (mtr.data_set(handle), mtr.number(handle));
        let view = DataPage::new(mtr.bytes(handle));
        let Some(version) = self.area_version(data_set).filter(|_| !view.slots_in_use_exceed(self.slots_max())) else { return Ok(false) };
        let mut builder = self.builder(version);
        let others = (0..view.slot_count()).filter(|slot| *slot != single.slot()).map(|slot| PlacedRow { slot, page: view, at: slot });
        let ranges: Vec<SlotRange> = view.ranges().iter().collect();
        let own = OwnPage { page: view, bytes: self.attributes.page_bytes.saturating_sub(kept) };
        let image = self.image_of(&mut builder, others, Some(single), (&ranges, own)).map_err(|e| data_set.corrupt(number, e))?;
        let image = image.filter(|image| image.len() + kept <= self.attributes.page_bytes);
        let fits = image.is_some();
        if let Some(image) = image.filter(|_| apply) {
            self.put_image(mtr, handle, image)?;
        }
        self.builders.lock().push(builder);
        Ok(fits)
    }

    /// A page built anew with these rows, one more by itself, and ranges. `None` when its rows cannot lie by column.
    pub(super) fn image_of<'b, 'p>(
        &self,
        builder: &'b mut ColumnBuilder,
        rows: impl Iterator<Item = PlacedRow<'p>>,
        single: Option<SingleRow<'p>>,
        (ranges, own): (&[SlotRange], OwnPage<'p>),
    ) -> std::result::Result<Option<ColumnImage<'b>>, FormatError> {
        self.images.fetch_add(1, Ordering::Relaxed);
        builder.build(rows, single, (ranges, Some(own)), &self.decoder, |version| self.dictionaries.tokens_of(version))
    }

    /// The version of the dictionary that pages of a data set are rebuilt with, 0 without one. `None` while it is not stored there.
    pub(super) fn area_version(&self, data_set: &DataSet) -> Option<u16> {
        let version = self.dictionaries.newest().map_or(0, |dictionary| dictionary.version());
        (version == 0 || data_set.facts().dictionaries.iter().any(|root| root.version == version)).then_some(version)
    }

    /// What pages are rebuilt with: string codes of the dictionary of this version, unless it is 0.
    pub(super) fn builder(&self, version: u16) -> ColumnBuilder {
        let known = self.builders.lock().pop().filter(|builder| builder.dictionary_version() == version);
        let mut builder = known.unwrap_or_else(|| {
            let codes = self.dictionaries.get(version).map(|compressor| Arc::clone(compressor.string_codes()));
            ColumnBuilder::new(area_encoder(self.decoder.columns().clone(), codes), version)
        });
        builder.set_takes_later(self.takes_later_layouts());
        builder
    }

    /// The class that a page may have when it is rebuilt; 0 when that is not worthwhile. `overestimate`: how wrong that was the last time, in bytes.
    pub(super) fn class_when_rebuilt(&self, view: &DataPage<'_>, overestimate: usize) -> u8 {
        let page_bytes = self.attributes.page_bytes;
        let room = view.room_when_rebuilt().saturating_sub(overestimate);
        if room < view.free_bytes() + page_bytes / EXPECTED || view.is_full(self.attributes.maxrows) {
            return 0;
        }
        // The class of an empty page is for those that have no rows.
        let class = class_of(room, page_bytes);
        if view.slot_count() > 0 { class.min(class_not_empty(page_bytes)) } else { class }
    }

    /// What turns a row of a column part into another record where it is; `None` when that is not possible.
    pub(super) fn patches(&self, body: Body<'_>, before: &[u8], after: &[u8]) -> Result<Option<Vec<Patch>>> {
        let Body::Column { part, row } = body else { return Ok(None) };
        if part.layout() != self.decoder.layout() {
            return Ok(None);
        }
        let dictionary = body.dictionary().and_then(|version| self.dictionaries.tokens_of(version));
        let area = self.decoder.area(part, dictionary).map_err(|e| Error::Damaged { path: self.object(), reason: e.to_string() })?;
        let mut patches = Vec::new();
        let found = usize::from(row) < area.rows() && area.patch_record(row.into(), before, after, &mut patches);
        Ok(found.then_some(patches))
    }

    /// Changes a row of a column part, whose page is latched, where it is.
    pub(super) fn patch_latched<'a>(
        &self,
        by: By<'a>,
        mut mtr: MiniTransaction<'a>,
        rid: Rid,
        home: PageHandle,
        (before, after): (&[u8], &[u8]),
        patches: &[Patch],
    ) -> Result<()> {
        match by {
            By::Transaction(state) => self.reserve_page_room(state, rid, before, Some(POINTER_ROOM))?,
            By::Undo(..) | By::Nobody => self.keep_room(by, rid, rid, POINTER_ROOM)?,
        }
        self.enter_version(by, rid, || Before::Present(RowImage::of(self.record_body(before)).bytes().into()))?;
        mtr.set_by(by);
        apply_patches(&mut mtr, home, patches)?;
        let body = self.record_body(before);
        let earlier = if self.logs_records() { Earlier::Record(Splice::between(after, before)) } else { row_image::whole(body) };
        self.commit_update(by, mtr, rid, earlier)
    }

    /// May a change be taken back by what differs between two records? Not one of a transaction that has altered the table: recovery may have brought the row
    /// into the layout of before by then.
    pub(super) fn logs_records(&self) -> bool {
        !(self.attributes.layouts.number() > 0 && self.lifetime.is_staged())
    }

    /// Bytes that a record takes when it lies by itself, and whether it is encoded then.
    pub(super) fn single_bytes(&self, record: &[u8]) -> (usize, bool) {
        self.encoder().map_or((record.len(), false), |encoder| encoder.stored_len(record))
    }
}

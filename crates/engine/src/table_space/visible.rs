//! Rows as a snapshot sees them.
//!
//! A page has the newest state of its rows; what a snapshot must not see yet is put right from the versions in memory, which are looked up under the page's shared latch: a writer enters
//! them under its exclusive latch, before the page changes.
//!
//! Invariants:
//! - a row is found by way of its home page, wherever it has moved: versions are kept under the home RID, and only its latch makes page and versions agree;
//! - a row without versions is the same for every snapshot.

use super::filter::{AreaRows, rows_in_order, rows_there};
use super::read::RowBuffer;
use super::row_image;
use super::scan::RowSink;
use super::table::Table;
use crate::data_set::DataSet;
use crate::frames::add;
use crate::pool::Access;
use crate::transaction::{Horizon, Seen, Snapshot, TransactionState};
use crate::{Error, Result};
use pagefold_codec::page::ColumnArea;
use pagefold_format::data::{Body, DataPage, SlotRange, Stored, StoredKind, StoredRow, forms};
use pagefold_types::Rid;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a scan finds out of a page; kept from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// Slots that the snapshot sees otherwise than the page has them.
    changed: Vec<(u16, Seen)>,
    /// Slots whose rows lie elsewhere.
    moved: Vec<u16>,
    copies: Copies,
}

/// Pages are delivered from where they lie, under their latch, and from a copy where threads have
/// to sleep for latches: a scan is nearly always in the middle of some page, and who waits for
/// that waits until the scan's thread runs again. Copying all of them would cost a scan that is
/// alone a tenth of its time and more.
#[derive(Debug, Default)]
struct Copies {
    page: Vec<u8>,
    /// Sleeps for latches of the data set, when last looked at.
    sleeps: Option<u64>,
    /// So many pages are still copied.
    left: u32,
}

/// So many pages are copied after somebody has slept for a latch.
const COPIED_PAGES: u32 = 1024;

impl Copies {
    /// Is the next page to be copied?
    fn are_due(&mut self, data_set: &DataSet) -> bool {
        let sleeps = data_set.counters.latch_sleeps.load(Ordering::Relaxed);
        if self.sleeps.replace(sleeps).is_some_and(|before| before != sleeps) {
            self.left = COPIED_PAGES;
        }
        let due = self.left > 0;
        self.left = self.left.saturating_sub(1);
        due
    }
}

/// Counts rows.
struct Counted(u64);

impl RowSink<Error> for Counted {
    fn row(&mut self, _: Rid, _: &[u8]) -> Result<ControlFlow<()>> {
        self.0 += 1;
        Ok(ControlFlow::Continue(()))
    }

    fn area(&mut self, area: &ColumnArea<'_>, page: &DataPage<'_>, rows: &AreaRows) -> Result<bool> {
        self.0 += rows_there(area, page, rows).count_ones() as u64;
        Ok(true)
    }
}

impl Table {
    /// Calls `visit` with the record of a row as the snapshot sees it. `None` when it sees none. `unseen` gets who has changed the row in a way that the snapshot does not see.
    ///
    /// # Errors
    /// When a page is damaged.
    pub(crate) fn read_visible<R>(
        &self,
        rid: Rid,
        snapshot: &Snapshot,
        buffer: &mut RowBuffer,
        visit: impl FnMut(&[u8]) -> R,
        mut unseen: impl FnMut(&Arc<TransactionState>),
    ) -> Result<Option<R>> {
        let data_set = self.partition(rid.partition())?;
        data_set.counters.getpages.add_snapshot_lookup(buffer.column_count(self));
        let Some(home) = self.data_page(data_set, rid.page(), Access::Random)? else { return Ok(None) };
        match self.core.versions.look_noting(self.object_id, rid, snapshot, &mut unseen)? {
            Seen::Absent => return Ok(None),
            Seen::Present(image) => return self.decode(data_set, rid.page(), row_image::body_of(&image), buffer, visit).map(Some),
            Seen::Current | Seen::NotDeleted => {}
        }
        let view = DataPage::new(&home);
        let Some(row) = view.row(rid.slot()) else { return Ok(None) };
        let target = match Stored::parse(row, view.dictionary_version()).map_err(|e| data_set.corrupt(rid.page(), e))? {
            Stored::Home(body) => return self.decode(data_set, rid.page(), body, buffer, visit).map(Some),
            Stored::Away { .. } | Stored::Hosted { .. } | Stored::HostedForward { .. } => return Ok(None),
            Stored::Forwarded(target) => return self.read_hosted(rid, target, buffer, visit),
            Stored::Forward(target) => target,
        };
        // The home stays latched: else somebody could change the row between the look at its versions and the look at the row. Writers wait for no page while they hold another one.
        let away = self.partition(target.partition())?;
        let page = self.pointed_page(away, target.page())?;
        let view = DataPage::new(&page);
        match view.row(target.slot()).map(|row| Stored::parse(row, view.dictionary_version())) {
            Some(Ok(Stored::Away { home, body })) if home == rid => self.decode(away, target.page(), body, buffer, visit).map(Some),
            Some(Err(error)) => Err(away.corrupt(target.page(), error)),
            _ => Err(away.corrupt(target.page(), format!("row {rid} is said to be in slot {}, but is not", target.slot()))),
        }
    }

    /// Calls `visit` with the record of a row that is the same for every snapshot taken now. `None` when that is not certain: there are versions on its page, it has moved, `is_doubtful` says
    /// so, or there is no such row. What it asks, it asks while the page cannot change.
    ///
    /// # Errors
    /// When a page is damaged.
    #[inline]
    pub(crate) fn read_settled<R>(
        &self,
        rid: Rid,
        buffer: &mut RowBuffer,
        is_doubtful: impl FnOnce() -> bool,
        visit: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let data_set = self.partition(rid.partition())?;
        let Some(page) = self.data_page(data_set, rid.page(), Access::Random)? else { return Ok(None) };
        let view = DataPage::new(&page);
        let Some(row) = view.row(rid.slot()) else { return Ok(None) };
        if self.core.versions.page_may_have(self.object_id, rid) || is_doubtful() {
            return Ok(None);
        }
        match Stored::parse(row, view.dictionary_version()).map_err(|e| data_set.corrupt(rid.page(), e))? {
            Stored::Home(body) => {
                data_set.counters.getpages.add_lookup(buffer.column_count(self));
                self.decode(data_set, rid.page(), body, buffer, visit).map(Some)
            }
            Stored::Away { .. } | Stored::Forward(_) | Stored::Hosted { .. } | Stored::HostedForward { .. } | Stored::Forwarded(_) => {
                Ok(None)
            }
        }
    }

    /// Delivers rows of one page, given by their RIDs: those at the beginning that are the same for every snapshot, and lie on the page. `done` says how many these were; the others are to be read one by
    /// one.
    ///
    /// # Errors
    /// When the page is damaged, or the sink fails.
    pub(crate) fn read_settled_of_page<E: From<Error>>(
        &self,
        mut rids: impl Iterator<Item = Rid> + Clone,
        buffer: &mut RowBuffer,
        sink: &mut impl RowSink<E>,
        done: &mut usize,
    ) -> std::result::Result<ControlFlow<()>, E> {
        let Some(first) = rids.clone().next() else { return Ok(ControlFlow::Continue(())) };
        let data_set = self.partition(first.partition())?;
        let number = first.page();
        let Some(page) = self.data_page(data_set, number, Access::Random)? else { return Ok(ControlFlow::Continue(())) };
        if self.core.versions.page_may_have(self.object_id, first) {
            return Ok(ControlFlow::Continue(()));
        }
        let view = DataPage::new(&page);
        let version = view.dictionary_version();
        // Nearly all rows of a page by row are records, or codes of its own form.
        let plain_slots = if view.has_columns() { 0 } else { view.slot_count() };
        let dictionary = forms::dictionary_of(version).and_then(|version| self.dictionaries.tokens_of(version));
        let (own, layout) = (self.decoder.layout(), forms::layout_of(version));
        if own == 0
            && let Some(records) = view.raw_records_of(rids.clone().map(Rid::slot))
            && sink.records(records.map(|(slot, record)| (Rid::new(first.partition(), number, slot), record)))?
        {
            *done = rids.count();
            data_set.counters.getpages.add_snapshot_lookups(*done, buffer.column_count(self));
            return Ok(ControlFlow::Continue(()));
        }
        let mut flow = ControlFlow::Continue(());
        let mut area = self.own_area(data_set, number, &view)?;
        loop {
            // Rows of the column part, as long as they follow each other.
            if let Some(known) = &area
                && let Some((rows, count)) = rows_in_order(known.rows(), &view, rids.clone().map(Rid::slot))
            {
                if sink.area(known, &view, &rows)? {
                    *done += count;
                    rids.nth(count - 1);
                } else {
                    area = None;
                }
            }
            let Some(rid) = rids.next() else { break };
            let plain = if rid.slot() < plain_slots { view.plain_row(rid.slot()) } else { None };
            match plain {
                Some((StoredKind::Raw, record)) if own == 0 => flow = sink.row(rid, record)?,
                Some((StoredKind::Compressed, codes)) if layout == own => {
                    let body = Body::Compressed { version, codes };
                    let length = buffer.decode(&self.decoder, body, dictionary);
                    let length = length.map_err(|e| self.undecodable(data_set, number, body.dictionary(), e))?;
                    flow = sink.row(rid, &buffer.bytes()[..length])?;
                }
                _ => {
                    if let Some(row) = view.row(rid.slot()) {
                        match Stored::parse(row, version).map_err(|e| data_set.corrupt(number, e))? {
                            Stored::Home(body) => flow = self.decode(data_set, number, body, buffer, |record| sink.row(rid, record))??,
                            Stored::Forward(_) | Stored::Forwarded(_) => break,
                            Stored::Away { .. } | Stored::Hosted { .. } | Stored::HostedForward { .. } => {}
                        }
                    }
                }
            }
            *done += 1;
            if flow.is_break() {
                break;
            }
        }
        data_set.counters.getpages.add_snapshot_lookups(*done, buffer.column_count(self));
        Ok(flow)
    }

    /// Whether some snapshot sees an earlier record of the row that passes a test.
    pub(crate) fn is_needed(&self, rid: Rid, horizon: &Horizon, mut test: impl FnMut(&[u8]) -> Result<bool>) -> Result<bool> {
        let data_set = self.partition(rid.partition())?;
        let mut buffer = RowBuffer::default();
        for image in self.core.versions.needed(self.object_id, rid, horizon)?.1 {
            if self.decode(data_set, rid.page(), row_image::body_of(&image), &mut buffer, &mut test)?? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Delivers the rows that the snapshot sees whose home is one page, given by partition and number: RID and record. Rows that have moved are fetched by way of their home, so each comes once whatever moves meanwhile.
    /// `unseen` gets who has changed rows in a way that the snapshot does not see.
    ///
    /// # Errors
    /// When a page is damaged, or the sink fails.
    pub(crate) fn scan_page_visible<E: From<Error>>(
        &self,
        (partition, page_number): (u16, u32),
        snapshot: &Snapshot,
        buffer: &mut RowBuffer,
        Looks { changed, moved, copies }: &mut Looks,
        sink: &mut impl RowSink<E>,
        mut unseen: impl FnMut(&Arc<TransactionState>),
    ) -> std::result::Result<ControlFlow<()>, E> {
        let data_set = self.partition(partition)?;
        moved.clear();
        let Some(page) = self.data_page(data_set, page_number, Access::Scan)? else { return Ok(ControlFlow::Continue(())) };
        let rows = u64::from(DataPage::new(&page).slot_count());
        add(&data_set.counters.rows_scanned, rows);
        add(&data_set.counters.values_scanned, rows * buffer.column_count(self) as u64);
        let versions = &self.core.versions;
        let others =
            versions.of_page(self.object_id, partition, page_number, snapshot, changed, |_, by| unseen(by)).map_err(Error::from)?;
        // A page without versions is the same for every snapshot.
        let is_settled = changed.is_empty() && others == Seen::Current;
        if is_settled && !DataPage::new(&page).has_columns() && sink.page((partition, page_number), &page)? {
            return Ok(ControlFlow::Continue(()));
        }
        // Where other pages host rows of this one, it has to stay as it is until these are
        // delivered.
        let copied = copies.are_due(data_set) && DataPage::new(&page).ranges().iter().all(|range| range.hosted);
        let latched = if copied {
            copies.page.clear();
            copies.page.extend_from_slice(&page);
            drop(page);
            None
        } else {
            Some(page)
        };
        let view = DataPage::new(latched.as_deref().unwrap_or(&copies.page));
        let columns_done = is_settled && self.area_to(data_set, page_number, &view, &AreaRows::AtHome, sink)?;
        let place = (&***data_set, page_number, partition);
        let flow = if is_settled {
            self.rows_as_they_lie(place, &view, columns_done, buffer, moved, sink)?
        } else {
            self.rows_of_versions(place, &view, (changed, &others), buffer, moved, sink)?
        };
        if flow.is_break() {
            return Ok(flow);
        }
        drop(latched);
        for slot in moved.iter() {
            let rid = Rid::new(partition, page_number, *slot);
            let flow = self.read_visible(rid, snapshot, buffer, |record| sink.row(rid, record), &mut unseen)?;
            if flow.transpose()?.is_some_and(|flow| flow.is_break()) {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// How many rows that the snapshot sees have their home on a page, given by partition and number. `unseen` as in [`scan_page_visible`](Self::scan_page_visible).
    ///
    /// # Errors
    /// When a page is damaged.
    pub(crate) fn count_page_visible(
        &self,
        place: (u16, u32),
        snapshot: &Snapshot,
        looks: &mut Looks,
        mut unseen: impl FnMut(&Arc<TransactionState>),
    ) -> Result<u64> {
        let data_set = self.partition(place.0)?;
        let Some(page) = self.data_page(data_set, place.1, Access::Scan)? else { return Ok(0) };
        let others = self.core.versions.of_page(self.object_id, place.0, place.1, snapshot, &mut looks.changed, |_, by| unseen(by))?;
        let is_settled = looks.changed.is_empty() && others == Seen::Current;
        if is_settled && let Some(rows) = DataPage::new(&page).rows_at_home() {
            add(&data_set.counters.rows_scanned, rows as u64);
            return Ok(rows as u64);
        }
        drop(page);
        let mut counted = Counted(0);
        let mut buffer = RowBuffer::for_columns(self, &[]);
        let flow: ControlFlow<()> = self.scan_page_visible(place, snapshot, &mut buffer, looks, &mut counted, unseen)?;
        debug_assert!(flow.is_continue());
        Ok(counted.0)
    }

    /// Delivers the rows of a page that has no versions. `moved` gets the slots whose rows lie elsewhere.
    pub(super) fn rows_as_they_lie<E: From<Error>>(
        &self,
        (data_set, number, partition): (&DataSet, u32, u16),
        view: &DataPage<'_>,
        columns_done: bool,
        buffer: &mut RowBuffer,
        moved: &mut Vec<u16>,
        sink: &mut impl RowSink<E>,
    ) -> std::result::Result<ControlFlow<()>, E> {
        let version = view.dictionary_version();
        let page = (data_set, number, partition);
        let dictionary = forms::dictionary_of(version).and_then(|version| self.dictionaries.tokens_of(version));
        let (own, layout) = (self.decoder.layout(), forms::layout_of(version));
        // Nearly all rows that lie by themselves are records, or codes of the page's own form: these come without the steps that other rows take.
        let mut single = |row: StoredRow<'_>| -> std::result::Result<ControlFlow<()>, E> {
            match row.kind {
                StoredKind::Raw if own == 0 && row.home.is_none() => sink.row(Rid::new(partition, number, row.slot), row.bytes),
                StoredKind::Compressed if layout == own && row.home.is_none() => {
                    // No closure: the result of one in that of the other is moved in memory for each row.
                    let body = Body::Compressed { version, codes: row.bytes };
                    let length = buffer.decode(&self.decoder, body, dictionary);
                    let length = length.map_err(|e| self.undecodable(data_set, number, body.dictionary(), e))?;
                    sink.row(Rid::new(partition, number, row.slot), &buffer.bytes()[..length])
                }
                _ => self.any_row(page, row, version, buffer, moved, sink),
            }
        };
        if view.has_columns() {
            if columns_done {
                for row in view.rows_by_themselves() {
                    if single(row)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            } else {
                for slot in 0..view.slot_count() {
                    let Some(row) = view.row(slot).filter(|row| row.kind != StoredKind::Forwarded) else { continue };
                    if single(row)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
            for range in view.ranges().iter().filter(|range| !range.hosted) {
                if self.rows_of_range((partition, number), view, range, buffer, sink)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            return Ok(ControlFlow::Continue(()));
        }
        for slot in 0..view.slot_count() {
            let Some((kind, bytes)) = view.plain_row(slot) else { continue };
            if single(StoredRow { kind, bytes, slot, area_row: 0, home: None })?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Delivers the rows of a range that another page hosts. The home page has no versions and stays latched: so they are the same for every snapshot, and stay where they are.
    fn rows_of_range<E: From<Error>>(
        &self,
        (partition, number): (u16, u32),
        home: &DataPage<'_>,
        range: SlotRange,
        buffer: &mut RowBuffer,
        sink: &mut impl RowSink<E>,
    ) -> std::result::Result<ControlFlow<()>, E> {
        let (there, host) = (self.partition(range.there.partition())?, range.there.page());
        let page = self.pointed_page(there, host)?;
        self.expect_hosted(&page, Rid::new(partition, number, range.first), range.there.slot())?;
        let view = DataPage::new(&page);
        let slots = range.there.slot()..range.there.slot().saturating_add(range.count);
        let columns_done = self.area_to(there, host, &view, &AreaRows::Slots(slots.clone()), sink)?;
        for slot in slots {
            let Some(row) = view.row(slot).filter(|row| !columns_done || row.kind != StoredKind::Column) else { continue };
            let rid = Rid::new(partition, number, range.first + (slot - range.there.slot()));
            debug_assert!(home.row(rid.slot()).is_some_and(|row| row.kind == StoredKind::Forwarded), "a row that is here and there");
            let flow = match Stored::parse(row, view.dictionary_version()).map_err(|e| there.corrupt(host, e))? {
                Stored::Hosted { body, .. } => self.decode(there, host, body, buffer, |record| sink.row(rid, record))??,
                // It has moved on by itself.
                Stored::HostedForward { target, .. } => match self.read_away(rid, target, buffer, |record| sink.row(rid, record))? {
                    Some(flow) => flow?,
                    None => ControlFlow::Continue(()),
                },
                _ => return Err(there.corrupt(host, format!("slot {slot} is to host the row {rid}, and does not")).into()),
            };
            if flow.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Delivers a row of any kind.
    fn any_row<E: From<Error>>(
        &self,
        (data_set, number, partition): (&DataSet, u32, u16),
        row: StoredRow<'_>,
        version: u16,
        buffer: &mut RowBuffer,
        moved: &mut Vec<u16>,
        sink: &mut impl RowSink<E>,
    ) -> std::result::Result<ControlFlow<()>, E> {
        let slot = row.slot;
        match Stored::parse(row, version).map_err(|e| data_set.corrupt(number, e))? {
            Stored::Home(body) => {
                self.decode(data_set, number, body, buffer, |record| sink.row(Rid::new(partition, number, slot), record))?
            }
            Stored::Away { .. } | Stored::Hosted { .. } | Stored::HostedForward { .. } => Ok(ControlFlow::Continue(())),
            Stored::Forward(_) | Stored::Forwarded(_) => {
                moved.push(slot);
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    /// As [`rows_as_they_lie`](Self::rows_as_they_lie), where a snapshot sees other rows than the page has: `changed` of some slots, `others` of all others.
    fn rows_of_versions<E: From<Error>>(
        &self,
        (data_set, number, partition): (&DataSet, u32, u16),
        view: &DataPage<'_>,
        (changed, others): (&[(u16, Seen)], &Seen),
        buffer: &mut RowBuffer,
        moved: &mut Vec<u16>,
        sink: &mut impl RowSink<E>,
    ) -> std::result::Result<ControlFlow<()>, E> {
        let version = view.dictionary_version();
        let mut next_changed = changed.iter().peekable();
        // Changed slots may lie behind the last one in use.
        let end = changed.last().map_or(0, |last| last.0 + 1).max(view.slot_count());
        for slot in 0..end {
            let flow = match next_changed.next_if(|(changed, _)| *changed == slot).map_or(others, |(_, seen)| seen) {
                Seen::Absent => continue,
                Seen::Present(image) => {
                    let rid = Rid::new(partition, number, slot);
                    self.decode(data_set, number, row_image::body_of(image), buffer, |record| sink.row(rid, record))??
                }
                Seen::Current | Seen::NotDeleted => {
                    let Some(row) = view.row(slot) else { continue };
                    self.any_row((data_set, number, partition), row, version, buffer, moved, sink)?
                }
            };
            if flow.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

//! Rows that come many at once, in a transaction: they fill new pages, each of which is encoded once, and is in the log once, as it lies on disk.
//!
//! Invariants:
//! - rows get their places in the order in which they come;
//! - a new page is filled only while no page that is there has much room: what deletes leave is used again, however rows come;
//! - every slot of the page is locked, and the versions of its rows are entered, before the page changes; whoever cannot have all of that leaves the page empty for who comes next;
//! - one undo takes all rows of the page out, one after the other, from the last one on.

use super::page_search::{RowPage, page_room};
use super::table::Table;
use crate::data_set::DataSet;
use crate::pool::{By, MiniTransaction};
use crate::transaction::{Before, Mode, Resource, TransactionState};
use crate::{Error, Result};
use pagefold_format::data::{ColumnPacker, DataOp, DataPage, PackedPage, PagePacker, Stored, forms, row_space};
use pagefold_format::log::{Counts, Undo};
use pagefold_format::op::PageOp;
use pagefold_format::space_map::class_needed;
use pagefold_types::Rid;
use std::sync::Arc;
use std::time::Duration;

/// A page of which one byte in so many is free has much room.
const MUCH_ROOM: usize = 4;
/// Records that would fill fewer pages than this are not worth a look: as they are, and where rows lie by column, which takes a fraction.
const PAGES_WORTHWHILE: (usize, usize) = (2, 6);

/// So many pages without rows are tried, of which others have locked slots.
const PAGES_TRIED: usize = 4;
/// What the log has to have for taking a row out, at most.
const LOG_BYTES_A_ROW: usize = 128;
/// So many pages without rows are passed over when one with rows and much room is looked for.
const EMPTY_PAGES_PASSED: usize = 64;

/// Records, or keys, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct RecordList {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl RecordList {
    /// Where a record is to be appended; [`end`](Self::end) is to be called then.
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// A record ends here.
    pub(crate) fn end(&mut self) {
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Where a record begins.
    fn start(&self, number: usize) -> usize {
        number.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    pub(crate) fn get(&self, number: usize) -> &[u8] {
        &self.bytes[self.start(number)..self.ends[number]]
    }
}

/// How rows had better come.
pub(crate) enum Filling<'t> {
    /// Onto pages of their own.
    Pages(PageFiller<'t>),
    /// One by one: there is a page with much room.
    MuchRoom,
    /// One by one: there are too few of them.
    TooFew,
}

/// What became of rows that were to fill a page.
pub(crate) enum Filled {
    /// They have: the RID of the first one, and how many.
    Page(Rid, usize),
    /// They do not fill one, and no more come.
    TooFew,
    /// Another dictionary has come, or others have what it takes. Nothing has happened.
    NotNow,
}

/// Fills pages.
pub(crate) struct PageFiller<'t> {
    table: &'t Table,
    state: &'t Arc<TransactionState>,
    /// Where rows lie by column: those of pages to come, and how many records it has been given.
    columns: Option<(Box<ColumnPacker>, usize)>,
    /// The newest dictionary when it began; 0 without one.
    version: u16,
    singles: Singles,
    stored: Vec<u8>,
    /// Pages of which others have locked a slot that they know from before: that may last long.
    busy: Vec<(u16, u32)>,
}

/// The rows of the next page, each by itself, as they were encoded when the page was cut: meanwhile another dictionary may be the newest.
#[derive(Debug, Default)]
struct Singles {
    codes: Vec<u8>,
    /// Of each row its form, and where its codes end.
    rows: Vec<(u16, usize)>,
}

impl Singles {
    fn clear(&mut self) {
        self.codes.clear();
        self.rows.clear();
    }

    fn push(&mut self, table: &Table, record: &[u8]) {
        let form = table.encoder().map_or(0, |encoder| encoder.append(record, &mut self.codes));
        self.rows.push((form, self.codes.len()));
    }

    /// A row; `record` is its record.
    fn row<'r>(&'r self, number: usize, record: &'r [u8]) -> Stored<'r> {
        let start = number.checked_sub(1).map_or(0, |before| self.rows[before].1);
        let (form, end) = self.rows[number];
        Stored::Home(forms::body(form, record, &self.codes[start..end]))
    }
}

impl<'t> PageFiller<'t> {
    /// For the records from number `first` on.
    ///
    /// # Errors
    /// When a dictionary is damaged, or there is no room for the table's first partition.
    pub(crate) fn begin(table: &'t Table, state: &'t Arc<TransactionState>, records: &RecordList, first: usize) -> Result<Filling<'t>> {
        table.check_dictionaries()?;
        let attributes = table.attributes();
        let (as_they_are, by_column) = PAGES_WORTHWHILE;
        let pages = if table.by_column() { by_column } else { as_they_are };
        if records.bytes.len() - records.start(first) < pages * attributes.page_bytes {
            return Ok(Filling::TooFew);
        }
        if table.has_much_room()? {
            return Ok(Filling::MuchRoom);
        }
        // Before the packer looks: should that find a newer one, no page is filled.
        let version = table.dictionary().map_or(0, |dictionary| dictionary.version());
        // The packer leaves room for rows that change; single rows that come leave as much.
        let columns = table.by_column().then(|| (Box::new(table.column_packer(0)), first));
        Ok(Filling::Pages(PageFiller { table, state, columns, version, singles: Singles::default(), stored: Vec::new(), busy: Vec::new() }))
    }

    /// Puts the rows from number `first` on, which come behind those of the page before, onto a page of their own, as many as fill it.
    ///
    /// # Errors
    /// When there is no room, or a record is none of the table.
    pub(crate) fn fill(&mut self, records: &RecordList, first: usize) -> Result<Filled> {
        let Some(page) = self.cut(records, first)? else { return Ok(Filled::TooFew) };
        // The record of the page, and what taking its rows out takes.
        let log_bytes = 4 * self.table.attributes().page_bytes + page.rows * LOG_BYTES_A_ROW;
        if self.table.manager().log().is_some_and(|log| !log.has_spare(log_bytes as u64)) {
            return Ok(Filled::NotNow);
        }
        let mut put = Put::Busy;
        for _ in 0..PAGES_TRIED {
            if matches!(put, Put::Busy) {
                put = self.put(self.table.empty_page(&self.busy)?, records, first, page)?;
            }
        }
        let Put::There(rid) = put else { return Ok(Filled::NotNow) };
        if let Some((packer, _)) = &mut self.columns {
            packer.take(page.rows);
        }
        (first..first + page.rows).for_each(|number| self.table.watch_row(records.get(number)));
        Ok(Filled::Page(rid, page.rows))
    }

    /// What comes onto the next page; `None`: the records do not fill one.
    fn cut(&mut self, records: &RecordList, first: usize) -> Result<Option<PackedPage>> {
        if let Some((packer, pushed)) = &mut self.columns {
            let table = self.table;
            loop {
                if let Some(page) = packer.next_page(false) {
                    self.singles.clear();
                    let one_by_one = if page.columns { 0 } else { page.rows };
                    (first..first + one_by_one).for_each(|number| self.singles.push(table, records.get(number)));
                    return Ok(Some(page));
                }
                if *pushed == records.len() {
                    return Ok(None);
                }
                packer.push(records.get(*pushed)).map_err(|e| Error::Value(format!("{}: {e}", table.object())))?;
                *pushed += 1;
            }
        }
        let attributes = self.table.attributes();
        let mut packer = PagePacker::new(attributes.page_bytes, 0, attributes.maxrows);
        let (mut row_bytes, page_form) = (0, self.table.page_form());
        self.singles.clear();
        for number in first..records.len() {
            let record = records.get(number);
            self.singles.push(self.table, record);
            let bytes = self.singles.row(number - first, record).len(page_form);
            if packer.push(bytes) && number > first {
                return Ok(Some(PackedPage { rows: number - first, columns: false, row_bytes }));
            }
            row_bytes += row_space(bytes);
        }
        Ok(None)
    }

    /// Do the rows fit the page as it is?
    fn fits(&self, records: &RecordList, first: usize, page: PackedPage, view: &DataPage<'_>) -> bool {
        let version = view.dictionary_version();
        let row_bytes = |number: usize| row_space(self.singles.row(number, records.get(first + number)).len(version));
        page.columns || (0..page.rows).map(row_bytes).sum::<usize>() <= view.free_bytes()
    }

    /// Puts rows onto a page, or leaves it empty for who comes next.
    fn put(&mut self, place: RowPage<'_>, records: &RecordList, first: usize, page: PackedPage) -> Result<Put> {
        let (table, state) = (self.table, self.state);
        let (partition, mut mtr, handle) = place;
        let slots = 0..page.rows as u16;
        let place = Rid::new(partition.number(), mtr.number(handle), 0);
        let rid = |slot| Rid::new(place.partition(), place.page(), slot);
        let leave_empty = |mut mtr: MiniTransaction<'_>| {
            table.note_space(&mut mtr, handle);
            mtr.commit().map(drop)
        };
        // Another dictionary may have come meanwhile: the rows are for that one then.
        let is_newest = table.dictionary().map_or(0, |dictionary| dictionary.version()) == self.version;
        let is_stored = self.version == 0 || partition.facts().dictionaries.iter().any(|root| root.version == self.version);
        if !is_newest || !is_stored || !self.fits(records, first, page, &DataPage::new(mtr.bytes(handle))) {
            return leave_empty(mtr).map(|()| Put::Unfit);
        }
        let (locks, versions) = (&table.core.locks, &table.core.versions);
        let lock = |slot: u16| Resource::Row(table.object_id, rid(slot));
        let give_up = |locked: u16| (0..locked).for_each(|slot| locks.release_wholly(state.id(), lock(slot)));
        let busy = slots.clone().find(|slot| locks.lock(state.id(), lock(*slot), Mode::Exclusive, Duration::ZERO).is_err());
        if let Some(locked) = busy {
            self.busy.push((place.partition(), place.page()));
            leave_empty(mtr)?;
            give_up(locked);
            return Ok(Put::Busy);
        }
        let by = By::Transaction(state);
        for slot in slots.clone() {
            if let Err(error) = table.enter_version(by, rid(slot), || Before::Absent) {
                leave_empty(mtr)?;
                (0..slot).try_for_each(|slot| versions.take_back(table.object_id, rid(slot), state).map(drop))?;
                give_up(slots.end);
                return Err(error);
            }
        }
        mtr.set_by(by);
        table.note_birth(&mtr, handle, 0);
        if let Some((packer, _)) = self.columns.as_mut().filter(|_| page.columns) {
            mtr.apply(handle, PageOp::Data(DataOp::Rebuild(packer.image(page.rows))))?;
        } else {
            let version = DataPage::new(mtr.bytes(handle)).dictionary_version();
            for slot in slots {
                self.stored.clear();
                let row = self.singles.row(slot.into(), records.get(first + usize::from(slot)));
                let kind = row.build(version, &mut self.stored);
                mtr.apply(handle, PageOp::Data(DataOp::Insert { slot, kind, bytes: &self.stored }))?;
            }
        }
        table.note_space(&mut mtr, handle);
        mtr.count(partition, Counts { rows: page.rows as i64, ..Counts::default() });
        mtr.set_undo(by, Undo::InsertedRows { object_id: table.object_id, rid: place, count: page.rows as u16 });
        mtr.commit()?;
        Ok(Put::There(place))
    }
}

/// What became of rows that were to come onto a page.
enum Put {
    /// They are there, the first with this RID.
    There(Rid),
    /// Others have locked a slot.
    Busy,
    /// They are not as the page wants them.
    Unfit,
}

impl Table {
    /// Has some page with rows so much room that rows had better come there?
    fn has_much_room(&self) -> Result<bool> {
        let last = self.last_partition()?;
        let before = self.partition_is_full(last).then(|| self.partitions().filter(|partition| partition.number() != last.number()));
        Ok([last].into_iter().chain(before.into_iter().flatten()).any(|partition| self.has_page_with_much_room(partition)))
    }

    fn has_page_with_much_room(&self, data_set: &DataSet) -> bool {
        let room = page_room(self.attributes().page_bytes);
        let [much, all] = [room / MUCH_ROOM, room].map(|space| class_needed(space, data_set.page_bytes()));
        let space = data_set.space();
        let mut from = 0;
        // Pages without rows are filled as new ones are.
        for _ in 0..EMPTY_PAGES_PASSED {
            match space.find_from(much, from).filter(|number| *number < data_set.page_count()) {
                Some(number) if space.free_class_of(number) < all => return true,
                Some(number) => from = number + 1,
                None => return false,
            }
        }
        false
    }

    /// A page without rows, latched; none of `but`.
    fn empty_page(&self, but: &[(u16, u32)]) -> Result<RowPage<'_>> {
        let room = page_room(self.attributes().page_bytes);
        let partition = self.last_partition()?;
        if let Some((mut mtr, handle)) = self.page_with_room(partition, room, None, but, &mut false)? {
            let view = DataPage::new(mtr.bytes(handle));
            if view.slot_count() == 0 && view.ranges().iter().next().is_none() {
                if view.dictionary_version() != self.page_form() {
                    let op = DataOp::Format { page_number: mtr.number(handle), dictionary_version: self.page_form() };
                    mtr.apply(handle, PageOp::Data(op))?;
                }
                return Ok((partition, mtr, handle));
            }
        }
        self.new_page()
    }
}

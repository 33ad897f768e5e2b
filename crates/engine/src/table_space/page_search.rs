//! Finding pages for rows: with room for one that comes or moves, or new ones; and what the space map says of them.
//!
//! Invariants:
//! - what is kept on a page for running transactions is not given to others;
//! - a new page is taken only when no other page can be had, and pages that others have latched are tried again before that: one more, taken each time that many work at once, stays for good;
//! - a page other than the one that is latched already is latched only if that needs no waiting;
//! - the map may promise too much, never for long: who finds that out corrects it;
//! - a page without rows may be given back (`empty_pages.rs`) until it is latched.

use super::columns::WORTHWHILE;
use super::partition::Partition;
use super::table::Table;
use crate::Result;
use crate::data_set::DataSet;
use crate::pool::{By, ExclusivePage, MiniTransaction, PageHandle};
use pagefold_format::data::{DATA_HEADER_BYTES, DataOp, DataPage};
use pagefold_format::log::Counts;
use pagefold_format::op::PageOp;
use pagefold_format::page;
use pagefold_format::space_map::{CLASS_FULL, class_needed, class_of};
use pagefold_types::Rid;

/// So often pages with room are looked for, while others have those there are latched, before a new one is taken.
const BUSY_ROUNDS: usize = 16;

impl Table {
    /// A data page, latched, with `space` bytes for a row and its slot, whatever the page's dictionary version; none of `but`.
    pub(super) fn page_for(&self, space: usize, but: &[(u16, u32)]) -> Result<RowPage<'_>> {
        // A row of another version than the page's has a longer prefix; an entry is longer than a slot.
        let space = (space + 3 + self.insert_reserve()).min(page_room(self.attributes.page_bytes));
        for round in 0..BUSY_ROUNDS {
            let mut busy = false;
            let last = self.last_partition()?;
            if let Some((mtr, handle)) = self.page_with_room(last, space, last.insert_hint.get(), but, &mut busy)? {
                last.insert_hint.set(mtr.number(handle));
                return Ok((last, mtr, handle));
            }
            // Room that deletes have left in the partitions before is used before another partition is added.
            if self.partition_is_full(last) {
                for partition in self.partitions.before(last) {
                    if let Some((mtr, handle)) = self.page_with_room(partition, space, None, but, &mut busy)? {
                        self.partitions.found_room_in(partition);
                        return Ok((partition, mtr, handle));
                    }
                }
            }
            if !busy {
                break;
            }
            // Others have all pages with room just now, for the moment that a change of a page takes. None of them is waited for: the caller may have one latched that its owner wants.
            if round + 1 < BUSY_ROUNDS {
                std::thread::yield_now();
            }
        }
        let (partition, mtr, handle) = self.new_page()?;
        partition.insert_hint.set(mtr.number(handle));
        Ok((partition, mtr, handle))
    }

    /// A new data page, latched.
    pub(super) fn new_page(&self) -> Result<RowPage<'_>> {
        self.new_page_as(self.page_form())
    }

    /// The same, of a form that other pages have.
    pub(super) fn new_page_as(&self, form: u16) -> Result<RowPage<'_>> {
        let partition = self.growing_partition(1)?;
        self.store_dictionaries(partition)?;
        let mut mtr = MiniTransaction::begin(self.manager());
        let handle = mtr.create(partition, CLASS_FULL, true)?;
        self.format_page(&mut mtr, partition, handle, form)?;
        Ok((partition, mtr, handle))
    }

    fn format_page<'a>(&self, mtr: &mut MiniTransaction<'a>, data_set: &'a DataSet, handle: PageHandle, form: u16) -> Result<()> {
        let page_number = mtr.number(handle);
        mtr.apply(handle, PageOp::Data(DataOp::Format { page_number, dictionary_version: form }))?;
        mtr.count(data_set, Counts { data_pages: 1, ..Counts::default() });
        Ok(())
    }

    /// As [`page_for`](Self::page_for), for a row that is to be away from home; with the bytes to be kept there. `latched` has the pages where it lies. `None` when a page that could take it is latched by others just now, and a
    /// change is taken back where rows lie by column: that takes no page that it may not need.
    pub(super) fn page_for_moved<'a>(
        &'a self,
        by: By<'_>,
        rid: Rid,
        space: usize,
        latched: &MiniTransaction<'a>,
    ) -> Result<Option<(RowPage<'a>, usize)>> {
        let By::Undo(..) = by else { return self.page_for(space, &[]).map(|page| Some((page, 0))) };
        if !self.by_column() {
            return self.page_for(space, &[]).map(|page| Some((page, 0)));
        }
        let manager = self.manager();
        let last = self.last_partition()?;
        // That of the pages that are reserved for the row.
        let reserved = self.core.reservations.reserve_of((self.object_id, rid));
        let own = reserved.map_or(Ok(last), |data_set| self.partition(data_set.attributes.partition))?;
        for partition in [Some(own), (own.number() != last.number()).then_some(last)].into_iter().flatten() {
            for number in partition.undo_pages.all() {
                if latched.handle_of(partition, number).is_some() {
                    continue;
                }
                let Some(page) = manager.exclusive_unless_busy(partition, number)? else { return Ok(None) };
                if partition.is_kept(number) && self.has_room(&page, space) {
                    let mut mtr = MiniTransaction::begin(manager);
                    let handle = mtr.adopt(page);
                    return Ok(Some(((partition, mtr, handle), 0)));
                }
                partition.undo_pages.remove(number);
            }
        }
        let data_set = last.data_set();
        let class = class_needed(space, data_set.page_bytes());
        let mut next = 0;
        loop {
            let Some(number) = data_set.space().find_from(class, next).filter(|number| *number < data_set.page_count()) else { break };
            next = number + 1;
            if latched.handle_of(data_set, number).is_some() {
                continue;
            }
            let Some(page) = self.latch_found(data_set, number)? else { return Ok(None) };
            let Some(kept) = data_set.kept_of_rows(number) else { continue };
            let has_room = self.has_room(&page, space + kept);
            let mut mtr = MiniTransaction::begin(manager);
            let handle = mtr.adopt(page);
            if has_room {
                return Ok(Some(((last, mtr, handle), 0)));
            }
            // The map promised what only a rebuild gives.
            self.note_space(&mut mtr, handle);
            data_set.space().expect(number, 0);
            mtr.commit()?;
        }
        let mut mtr = MiniTransaction::begin(manager);
        let handle = mtr.create_reserved(own, CLASS_FULL)?;
        self.format_page(&mut mtr, own, handle, self.page_form())?;
        own.undo_pages.add(mtr.number(handle));
        Ok(Some(((own, mtr, handle), page_room(self.attributes.page_bytes) - space)))
    }

    /// A page of a partition with `space` bytes of room, latched, and none of `but`; first the hinted one, if there is a hint. Pages that others have latched are passed over; `busy` says so.
    pub(super) fn page_with_room<'a>(
        &'a self,
        partition: &'a Partition,
        space: usize,
        hint: Option<u32>,
        but: &[(u16, u32)],
        busy: &mut bool,
    ) -> Result<Option<(MiniTransaction<'a>, PageHandle)>> {
        let number = partition.number();
        self.page_with_room_from(partition, space, (hint, 0), &|page| but.contains(&(number, page)), busy)
    }

    /// The same, from page `from` on, and of none that `pass_over` says.
    pub(super) fn page_with_room_from<'a>(
        &'a self,
        partition: &'a Partition,
        space: usize,
        (hint, mut from): (Option<u32>, u32),
        pass_over: &dyn Fn(u32) -> bool,
        busy: &mut bool,
    ) -> Result<Option<(MiniTransaction<'a>, PageHandle)>> {
        let (manager, data_set) = (self.manager(), partition.data_set());
        let class = class_needed(space, data_set.page_bytes());
        let mut hint = hint.filter(|hint| data_set.space().free_class_of(*hint) >= class);
        loop {
            let number = match hint.take() {
                Some(number) => number,
                None => {
                    let Some(number) = data_set.space().find_from(class, from) else { break };
                    // The same page again would be as busy.
                    from = number + 1;
                    number
                }
            };
            if number >= data_set.page_count() || pass_over(number) {
                continue;
            }
            let Some(page) = self.latch_found(data_set, number)? else {
                *busy = true;
                continue;
            };
            let Some(kept) = data_set.kept_of_rows(number) else { continue };
            let has_room = self.has_room(&page, space + kept);
            let mut mtr = MiniTransaction::begin(manager);
            let handle = mtr.adopt(page);
            if has_room {
                return Ok(Some((mtr, handle)));
            }
            let wanted = space.max(self.attributes.page_bytes / WORTHWHILE);
            if self.by_column()
                && page::page_type(mtr.bytes(handle)) == Some(page::PageType::Data)
                && self.rebuild(&mut mtr, data_set, handle, wanted)?
            {
                hint = Some(number);
            } else {
                // The map promised too much (MAXROWS, a rebuild that is not worthwhile): correct it, or the same page comes again.
                self.note_space(&mut mtr, handle);
                data_set.space().expect(number, 0);
            }
            mtr.commit()?;
        }
        Ok(None)
    }

    /// Latches a page that the map has found, unless somebody else has it latched, or it has been given back since. That is to be asked of one that is latched, too: [`DataSet::kept_of_rows`].
    pub(super) fn latch_found<'a>(&self, data_set: &'a DataSet, number: u32) -> Result<Option<ExclusivePage<'a>>> {
        match self.manager().exclusive_unless_busy(data_set, number) {
            Err(_) if data_set.is_given_back(number) => Ok(None),
            page => page,
        }
    }

    pub(super) fn has_room(&self, bytes: &[u8], space: usize) -> bool {
        let view = DataPage::new(bytes);
        page::page_type(bytes) == Some(page::PageType::Data) && view.free_bytes() >= space && !view.is_full(self.attributes.maxrows)
    }

    /// Brings the space map up to date with a page.
    pub(super) fn note_space(&self, mtr: &mut MiniTransaction<'_>, handle: PageHandle) {
        let bytes = mtr.bytes(handle);
        let class = self.space_class(bytes);
        if self.by_column() {
            let (view, number) = (DataPage::new(bytes), mtr.number(handle));
            let mut space = mtr.data_set(handle).space();
            let class = self.class_when_rebuilt(&view, space.overestimate(number));
            space.expect(number, class);
        }
        mtr.set_space_class(handle, class);
    }

    /// Brings the space map up to date with a page after redo.
    pub(crate) fn renew_space_class(&self, data_set: &DataSet, number: u32) -> Result<()> {
        if data_set.space().word(number).class() < CLASS_FULL {
            return Ok(());
        }
        let (class, expected) = {
            let page = self.manager().shared(data_set, number, crate::pool::Access::Scan)?;
            super::read::check_type(data_set, number, &page)?;
            let expected = if self.by_column() { self.class_when_rebuilt(&DataPage::new(&page), 0) } else { 0 };
            (self.space_class(&page), expected)
        };
        let mut space = data_set.space();
        space.expect(number, expected);
        space.set_class(number, class);
        Ok(())
    }

    /// The class of a data page as it is now.
    pub(super) fn space_class(&self, bytes: &[u8]) -> u8 {
        let view = DataPage::new(bytes);
        if view.is_full(self.attributes.maxrows) { CLASS_FULL } else { class_of(view.free_bytes(), bytes.len()) }
    }
}

/// A page for rows, latched, and its partition.
pub(super) type RowPage<'a> = (&'a Partition, MiniTransaction<'a>, PageHandle);

/// Room for rows on an empty page.
#[must_use]
pub(super) fn page_room(page_bytes: usize) -> usize {
    page_bytes - DATA_HEADER_BYTES
}

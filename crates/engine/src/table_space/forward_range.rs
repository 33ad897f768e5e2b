//! Where rows lie by column: a page without room forwards a range of its slots to another page, which hosts their rows.
//!
//! So a page that is changed until its rows do not fit any more is not given up: its rows go on lying by column, some of
//! them elsewhere, and no row needs a pointer of its own. A page that hosts rows may itself lose them again, to another
//! page that hosts them then.
//!
//! Invariants:
//! - a row that is hosted is found by way of its home page: the home's range names the page and slot where it lies. That slot is as good as a home: taking a change back may leave a forward pointer there;
//! - no page has more rows by column than there is room for forward pointers: so all of them can be taken back, whatever has come meanwhile;
//! - both pages, and the home where a hosted range goes on, change in one mini-transaction, with all of them latched; beside the page that is given up for, none is waited for;
//! - what is kept on a page for taking changes back is free on it afterwards, and goes with the rows for which it is kept;
//! - what comes to another page means the same there, also where one of the two is from before the table was altered;
//! - a forward pointer of a page's own row stays at home; versions and locks of a row stay under its RID.

use super::columns::{RESERVE, WORTHWHILE};
use super::page_search::page_room;
use super::partition::Partition;
use super::table::Table;
use crate::Result;
use crate::data_set::DataSet;
use crate::pool::{MiniTransaction, PageHandle};
use pagefold_format::data::{
    COLUMN_ROWS_START, ColumnBuilder, ColumnImage, DataOp, DataPage, OwnPage, PlacedRow, RANGE_BYTES, SlotRange, Stored, StoredKind,
    put_ranges,
};
use pagefold_format::log::Counts;
use pagefold_format::op::PageOp;
use pagefold_format::page::{self, PageType};
use pagefold_format::space_map::{CLASS_EMPTY, class_needed};
use pagefold_types::{Rid, SLOT_MAX};
use std::ops::Range;

/// Of the pages that may have room for a range, so many are tried before a new one is taken.
const CANDIDATES: usize = 8;

/// Slots side by side that can be forwarded: of the page's own, or of one range that it hosts.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: u16,
    end: u16,
    /// Rows and ghosts that would go.
    rows: usize,
    hosted: Option<SlotRange>,
}

/// What has come of an attempt to forward a run.
enum Forwarded {
    Done,
    NotSo,
    /// The table of the home has no room for one more range.
    HomeIsFull,
    /// No page takes so many rows.
    Fewer(usize),
}

/// So many ranges are tried at a time that may be joined with others.
const JOINS_MAX: usize = 4;

/// What is done where a home has no room for one more range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtHome {
    /// Some of what lies there is forwarded. It may be for another page that this page was full of, and all is to be looked at again.
    MakeRoom,
    AsItIs,
}

/// Which pages may host a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hosts {
    All,
    /// The same. Own rows of the page are forwarded, all of a run, for its area's sake.
    ForArea,
    /// Those that have something on them already.
    InUse,
    /// The home of the rows, and pages that host the slots beside theirs: so that there are fewer ranges.
    Joined,
}

/// A page of which no more than this part is used, all by rows that it hosts, is given up when one of them is changed.
pub(super) const THIN_PART: usize = 4;

/// A page that may host a range, as it would be then.
struct Host<'a> {
    mtr: MiniTransaction<'a>,
    handle: PageHandle,
    partition: &'a Partition,
}

impl Table {
    /// Forwards rows of a page, which is latched for change, but not that of `slot`, so that `wanted` bytes more are free
    /// than are kept on it, and some to spare; or that it is nearer to that; or nothing, when others have pages that it needs,
    /// and the caller is to try again. False, and nothing has happened, when that is not possible. The mini-transaction is to
    /// be committed.
    ///
    /// # Errors
    /// When there is no room for another page: nothing has happened then.
    pub(super) fn forward_range<'a>(
        &'a self,
        mtr: &mut MiniTransaction<'a>,
        from: PageHandle,
        slot: Option<u16>,
        wanted: usize,
    ) -> Result<bool> {
        self.forward_from(mtr, from, slot, (wanted, Hosts::All), AtHome::MakeRoom)
    }

    /// Forwards rows of a page by column, which is latched for change, though that gives no room: when none are left there, their area is gone.
    ///
    /// # Errors
    /// As [`forward_range`](Self::forward_range).
    pub(super) fn forward_area<'a>(&'a self, mtr: &mut MiniTransaction<'a>, from: PageHandle) -> Result<bool> {
        self.forward_from(mtr, from, None, (0, Hosts::ForArea), AtHome::AsItIs)
    }

    /// As [`forward_range`](Self::forward_range), of any rows of the page, and of no other page's.
    pub(super) fn forward_along<'a>(&'a self, mtr: &mut MiniTransaction<'a>, from: PageHandle, wanted: usize) -> Result<bool> {
        self.forward_from(mtr, from, None, (wanted, Hosts::All), AtHome::AsItIs)
    }

    /// If the page of a row, which it hosts, has few rows and hosts all of them, they go where there are others: so it is empty, for a row that is as long as a page. A row that was long when it came,
    /// and by itself, would keep its page when it is short. Nothing happens where there is no room elsewhere.
    ///
    /// # Errors
    /// When a page is damaged.
    pub(crate) fn leave_thin_page(&self, at: Rid) -> Result<()> {
        self.forward_hosted(at, |bytes| self.is_thin(bytes).then_some(Hosts::InUse))
    }

    /// Ranges that a page hosts go home, or to pages that host their neighbours, where there is room for them; those of a thin page, as [`leave_thin_page`](Self::leave_thin_page).
    ///
    /// # Errors
    /// When a page is damaged.
    pub(super) fn join_ranges(&self, at: Rid) -> Result<()> {
        self.forward_hosted(at, |bytes| Some(if self.is_thin(bytes) { Hosts::InUse } else { Hosts::Joined }))
    }

    /// Forwards ranges that a page hosts, one in each step, for as long as `hosts` says where to.
    fn forward_hosted(&self, at: Rid, hosts: impl Fn(&[u8]) -> Option<Hosts>) -> Result<()> {
        let data_set = self.partition(at.partition())?;
        let mut left = None;
        while left != Some(0) {
            let mut mtr = MiniTransaction::begin(self.manager());
            let Some(page) = self.latch_home(&mut mtr, data_set, at.page())? else { return Ok(()) };
            let Some(hosts) = hosts(mtr.bytes(page)).filter(|_| self.has_log_for_images()) else { return Ok(()) };
            let ranges = left.unwrap_or_else(|| DataPage::new(mtr.bytes(page)).ranges().iter().filter(|range| range.hosted).count());
            let done = ranges > 0
                && match self.forward_from(&mut mtr, page, None, (0, hosts), AtHome::AsItIs) {
                    Ok(done) => mtr.commit().map(|_| done)?,
                    Err(error) if error.is_no_room() => false,
                    Err(error) => return Err(error),
                };
            left = Some(if done { ranges - 1 } else { 0 });
        }
        Ok(())
    }

    /// Has a page few rows, and hosts all of them?
    fn is_thin(&self, bytes: &[u8]) -> bool {
        let view = DataPage::new(bytes);
        page::page_type(bytes) == Some(PageType::Data)
            && view.free_bytes() >= bytes.len() - bytes.len() / THIN_PART
            && view.ranges().iter().all(|range| range.hosted)
            && (0..view.slot_count()).all(|slot| view.ranges().of(slot).is_some() || stored(&view, slot).is_none())
    }

    fn forward_from<'a>(
        &'a self,
        mtr: &mut MiniTransaction<'a>,
        from: PageHandle,
        slot: Option<u16>,
        (wanted, hosts): (usize, Hosts),
        at_home: AtHome,
    ) -> Result<bool> {
        let view = DataPage::new(mtr.bytes(from));
        // Were all others gone, there would be this table.
        let stay = view.ranges().iter().filter(|range| !range.hosted || slot.is_some_and(|slot| range.contains(slot))).count();
        if COLUMN_ROWS_START + stay * RANGE_BYTES + wanted > self.attributes.page_bytes {
            return Ok(false);
        }
        let mut runs = runs(&view, slot);
        runs.sort_unstable_by_key(|run| run.rows);
        // Ranges that become fewer by it come first, the shortest of all.
        let mut tried = 0;
        for run in runs.iter().filter(|run| run.hosted.is_some_and(|range| (range.first, range.end()) == (run.first, run.end))) {
            let Some(home) = self.home_of_run(mtr, from, run)? else { continue };
            if !self.may_be_joined(mtr, from, home, run)? {
                continue;
            }
            if let Forwarded::Done = self.forward_some(mtr, from, home, (run, run.rows), (wanted, Hosts::Joined))? {
                return Ok(true);
            }
            tried += 1;
            if tried == JOINS_MAX {
                break;
            }
        }
        runs.reverse();
        let mut busy = false;
        if hosts == Hosts::ForArea {
            runs.retain(|run| run.hosted.is_none());
        }
        for run in runs {
            let Some(home) = self.home_of_run(mtr, from, &run)? else {
                busy = true;
                continue;
            };
            // What takes too much on another page goes in smaller parts.
            let mut most = run.rows;
            while most > 0 {
                match self.forward_some(mtr, from, home, (&run, most), (wanted, hosts))? {
                    Forwarded::Done => return Ok(true),
                    Forwarded::NotSo => break,
                    // The home has pages of others, or rows of its own, that can go elsewhere.
                    Forwarded::HomeIsFull if at_home == AtHome::MakeRoom => {
                        if self.forward_from(mtr, home, None, (2 * RANGE_BYTES, hosts), AtHome::AsItIs)? {
                            return Ok(true);
                        }
                        break;
                    }
                    Forwarded::HomeIsFull => break,
                    Forwarded::Fewer(tried) => most = tried / 2,
                }
            }
        }
        Ok(busy)
    }

    /// Whether the home of a range that a page hosts, or a page that hosts slots beside it, says that it has the room for it.
    fn may_be_joined(&self, mtr: &MiniTransaction<'_>, from: PageHandle, home: PageHandle, run: &Run) -> Result<bool> {
        let Some(range) = run.hosted else { return Ok(false) };
        let page_bytes = self.attributes.page_bytes;
        let (view, view_of_home) = (DataPage::new(mtr.bytes(from)), DataPage::new(mtr.bytes(home)));
        let per_row = bytes_a_row(&view, page_bytes);
        let has_room = |per_row: usize, data_set: &DataSet, number| {
            let space = run.rows * per_row + RANGE_BYTES;
            data_set.space().free_class_of(number) >= class_needed(space.min(page_room(page_bytes)), page_bytes)
        };
        if has_room(per_row.min(bytes_a_row(&view_of_home, page_bytes)), mtr.data_set(home), mtr.number(home)) {
            return Ok(true);
        }
        for other in DataPage::new(mtr.bytes(home)).ranges().iter().filter(|other| is_beside(other, range.there.slot(), range.count)) {
            if has_room(per_row, self.partition(other.there.partition())?, other.there.page()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The home page of a run, latched; `None` when somebody else has it.
    fn home_of_run<'a>(&'a self, mtr: &mut MiniTransaction<'a>, from: PageHandle, run: &Run) -> Result<Option<PageHandle>> {
        let Some(range) = run.hosted else { return Ok(Some(from)) };
        let data_set = self.partition(range.there.partition())?;
        let number = range.there.page();
        if let Some(handle) = mtr.handle_of(data_set, number) {
            return Ok(Some(handle));
        }
        let Some(page) = self.manager().exclusive_unless_busy(data_set, number)? else { return Ok(None) };
        super::read::check_type(data_set, number, &page)?;
        Ok(Some(mtr.adopt(page)))
    }

    fn forward_some<'a>(
        &'a self,
        mtr: &mut MiniTransaction<'a>,
        from: PageHandle,
        home: PageHandle,
        (run, most): (&Run, usize),
        (wanted, hosts): (usize, Hosts),
    ) -> Result<Forwarded> {
        let (data_set, number) = (mtr.data_set(from), mtr.number(from));
        if self.area_version(data_set).is_none() {
            self.store_dictionaries(data_set)?;
        }
        let Some(version) = self.area_version(data_set) else { return Ok(Forwarded::NotSo) };
        let partition = data_set.attributes.partition;
        let kept = data_set.kept_bytes(number);
        let page_bytes = self.attributes.page_bytes;
        let view = DataPage::new(mtr.bytes(from));
        // Where a home has no room for another range, all of a hosted one goes, or nothing.
        let whole = matches!(hosts, Hosts::Joined | Hosts::ForArea)
            || run.hosted.is_some() && {
                let kept = mtr.data_set(home).kept_bytes(mtr.number(home));
                DataPage::new(mtr.bytes(home)).free_bytes() < 2 * RANGE_BYTES + kept
            };
        if whole && run.hosted.is_some_and(|range| (range.first, range.end()) != (run.first, run.end)) {
            return Ok(Forwarded::HomeIsFull);
        }
        // What stays keeps its dictionary: with the newest it might take more.
        let own = view.column_part().filter(|part| part.rows() > 0).map(|part| part.dictionary());
        let mut builder = self.builder(own.filter(|own| *own == 0 || self.dictionaries.get(*own).is_some()).unwrap_or(version));
        let used = page_bytes - view.free_bytes().min(page_bytes);
        let per_row = bytes_a_row(&view, page_bytes);
        let few = (wanted + page_bytes / WORTHWHILE).div_ceil(per_row).clamp(1, most);
        let mut rows = if whole { run.rows } else { few };
        // The fewest rows, doubled until what is left has the room.
        let (range, gone, left, claims, claimed) = loop {
            let (range, gone) = tail(&view, run, rows);
            let goes = |slot: u16| range.contains(slot) && is_of_range(&view, slot);
            let stays = (0..view.slot_count()).filter(|slot| !goes(*slot)).map(|slot| PlacedRow { slot, page: view, at: slot });
            let ranges = without(view.ranges().iter(), run.hosted.map(|_| gone), (run.hosted.is_none()).then_some(range));
            let claims = self.claims(&view, (partition, number), range);
            let claimed = claims.iter().map(|claim| claim.1).sum::<usize>();
            let own = OwnPage { page: view, bytes: page_bytes.saturating_sub(kept.saturating_sub(claimed) + wanted) };
            let image = self.image_of(&mut builder, stays, None, (&ranges, own)).map_err(|e| data_set.corrupt(number, e))?;
            let enough = image.as_ref().is_some_and(|image| image.len() + kept.saturating_sub(claimed) + wanted <= page_bytes);
            if enough || rows == most || whole {
                // If it is not enough, others are to follow.
                break (range, gone, image.filter(|image| enough || image.len() + RANGE_BYTES < used), claims, claimed);
            }
            rows = (2 * rows).min(most);
        };
        let Some(left) = left else {
            self.builders.lock().push(builder);
            return Ok(Forwarded::NotSo);
        };
        let space = rows * per_row + RANGE_BYTES;
        // Where the rows are at home: what the host is to say of them.
        let at_home = match run.hosted {
            Some(hosted) => hosted.there(range.first),
            None => Rid::new(partition, number, range.first),
        };
        let counts = live_rows(&view, range);
        // What a hosted range had around its rows is free at home.
        let gone_at_home = SlotRange { first: run.hosted.map_or(gone.first, |hosted| hosted.there(gone.first).slot()), ..gone };
        let mut other = self.builder(version);
        if home != from
            && let Some(image) = self.image_at_home(mtr, (from, range), (home, gone_at_home, at_home), &mut other, (space, claimed))?
        {
            self.put_image(mtr, from, left)?;
            self.put_image(mtr, home, image)?;
            let (home_set, home_number) = (mtr.data_set(home), mtr.number(home));
            for (rid, bytes) in claims {
                self.core.reservations.moved((self.object_id, rid), (self.partition(at_home.partition())?.data_set(), home_number), bytes);
            }
            mtr.count(data_set, Counts { rows: -counts, ..Counts::default() });
            mtr.count(home_set, Counts { rows: counts, ..Counts::default() });
            self.builders.lock().extend([builder, other]);
            return Ok(Forwarded::Done);
        }
        let beside = self.host_beside(mtr, &view, home, (range, at_home), &mut other, (space, claimed))?;
        let found = match beside {
            Some((host, there, neighbour)) => Some((host, there, Some(neighbour))),
            None if hosts == Hosts::Joined => None,
            None => self.host(&view, (range, at_home), &mut other, (space, claimed), hosts)?.map(|(host, there)| (host, there, None)),
        };
        let Some((mut host, there, neighbour)) = found else {
            return Ok(if whole { Forwarded::NotSo } else { Forwarded::Fewer(rows) });
        };
        let moved = SlotRange { first: at_home.slot(), count: range.count, hosted: false, there };
        let moved = neighbour.map_or(moved, |neighbour| SlotRange {
            first: moved.first.min(neighbour.first),
            count: moved.count + neighbour.count,
            ..moved
        });
        if home == from {
            // What is left gets the range as it is now.
            let mut directory = left.directory[..left.directory.len() - usize::from(left.ranges) * RANGE_BYTES].to_vec();
            let ranges = without(view.ranges().iter(), neighbour, Some(moved));
            put_ranges(&ranges, &mut directory);
            let image = ColumnImage { directory: &directory, ranges: ranges.len() as u16, ..left };
            self.put_image(mtr, from, image)?;
        } else {
            self.put_image(mtr, from, left)?;
            let kept = without(DataPage::new(mtr.bytes(home)).ranges().iter(), Some(gone_at_home), None);
            let mut table = Vec::new();
            put_ranges(&without(kept.into_iter(), neighbour, Some(moved)), &mut table);
            mtr.apply(home, PageOp::Data(DataOp::Ranges(&table)))?;
            self.note_space(mtr, home);
        }
        for (rid, bytes) in claims {
            self.core.reservations.moved((self.object_id, rid), (host.partition.data_set(), there.page()), bytes);
        }
        mtr.count(data_set, Counts { rows: -counts, ..Counts::default() });
        host.mtr.count(host.partition, Counts { rows: counts, ..Counts::default() });
        mtr.absorb(host.mtr);
        self.builders.lock().extend([builder, other]);
        Ok(Forwarded::Done)
    }

    /// What is kept on a page for rows of a range, which goes with them.
    fn claims(&self, page: &DataPage<'_>, (partition, number): (u16, u32), range: SlotRange) -> Vec<(Rid, usize)> {
        let rows = (range.first..range.end()).filter(|slot| is_of_range(page, *slot) && !is_pointer(page, *slot));
        let rids = rows.map(|slot| page.home_of(slot).unwrap_or(Rid::new(partition, number, slot)));
        let reservations = &self.core.reservations;
        rids.filter_map(|rid| Some((rid, reservations.of_row((self.object_id, rid))?))).collect()
    }

    /// The home of a range that another page hosts, with the rows of the range at home again: its image, if there is room for that. `gone` are the slots that the home's table names for them.
    fn image_at_home<'b>(
        &self,
        mtr: &MiniTransaction<'_>,
        (from, range): (PageHandle, SlotRange),
        (home, gone, at_home): (PageHandle, SlotRange, Rid),
        builder: &'b mut ColumnBuilder,
        (space, spare): (usize, usize),
    ) -> Result<Option<ColumnImage<'b>>> {
        let (data_set, number, bytes) = (mtr.data_set(home), mtr.number(home), mtr.bytes(home));
        let (view, from) = (DataPage::new(bytes), DataPage::new(mtr.bytes(from)));
        let taken = data_set.kept_bytes(number) + spare + bytes.len() / RESERVE;
        let slots = range.first..range.end();
        let rows = slots.clone().filter(|slot| is_of_range(&from, *slot)).count();
        // On a page of few rows they seem longer than they are.
        let space = space.min(rows * bytes_a_row(&view, bytes.len()) + RANGE_BYTES);
        let class = class_needed((space + spare).min(page_room(bytes.len())), bytes.len());
        let can = data_set.space().free_class_of(number) >= class
            && keeps_meaning(&from, range, view.dictionary_version())
            && self.area_version(data_set) == Some(builder.dictionary_version())
            && usize::from(view.row_count()) + rows <= self.slots_max()
            // A pointer says what kind of slot it lies in.
            && !slots.clone().any(|slot| is_pointer(&from, slot));
        if !can {
            return Ok(None);
        }
        let placed = (0..view.slot_count()).map(|slot| match slot.checked_sub(at_home.slot()).map(|at| range.first + at) {
            Some(at) if slots.contains(&at) && is_of_range(&from, at) => PlacedRow { slot, page: from, at },
            _ => PlacedRow { slot, page: view, at: slot },
        });
        let ranges = without(view.ranges().iter(), Some(gone), None);
        let own = OwnPage { page: view, bytes: bytes.len().saturating_sub(taken) };
        let image = self.image_of(builder, placed, None, (&ranges, own)).map_err(|e| data_set.corrupt(number, e))?;
        Ok(image.filter(|image| image.len() + taken <= bytes.len()))
    }

    /// A page that hosts the slots beside those of a range already, and hosts both from now on, as one range: so ranges do not become more and shorter. With the first slot there, and what the home's
    /// table has of these slots.
    fn host_beside<'a>(
        &'a self,
        mtr: &MiniTransaction<'a>,
        from: &DataPage<'_>,
        home: PageHandle,
        (range, at_home): (SlotRange, Rid),
        builder: &mut ColumnBuilder,
        (space, spare): (usize, usize),
    ) -> Result<Option<(Host<'a>, Rid, SlotRange)>> {
        let manager = self.manager();
        let neighbours = DataPage::new(mtr.bytes(home)).ranges().iter();
        for neighbour in neighbours.filter(|other| is_beside(other, at_home.slot(), range.count)) {
            let number = neighbour.there.page();
            let partition = self.partition(neighbour.there.partition())?;
            let data_set = partition.data_set();
            let class = class_needed((space + spare).min(page_room(self.attributes.page_bytes)), data_set.page_bytes());
            if mtr.handle_of(data_set, number).is_some() || data_set.space().free_class_of(number) < class {
                continue;
            }
            let Some(page) = manager.exclusive_unless_busy(data_set, number)? else { continue };
            let mut own = MiniTransaction::begin(manager);
            let handle = own.adopt(page);
            let mut host = Host { mtr: own, handle, partition };
            if let Some(there) = self.take_in(&mut host, from, (range, at_home), Some(neighbour), builder, spare)? {
                return Ok(Some((host, there, neighbour)));
            }
        }
        Ok(None)
    }

    /// A page that hosts a range of another one from now on, and its first slot there. It has `space` bytes for that and `spare` more.
    fn host<'a>(
        &'a self,
        from: &DataPage<'_>,
        (range, at_home): (SlotRange, Rid),
        builder: &mut ColumnBuilder,
        (space, spare): (usize, usize),
        hosts: Hosts,
    ) -> Result<Option<(Host<'a>, Rid)>> {
        let manager = self.manager();
        let partition = self.last_partition()?;
        let data_set = partition.data_set();
        let class = class_needed((space + spare).min(page_room(self.attributes.page_bytes)), data_set.page_bytes());
        // First the page that hosted rows last: it has room that nobody else looks for.
        let mut hint = partition.host_hint.get();
        // What is wanted of a page is a guess, so few are tried; one without anything on it does as well as a new one.
        let tries: &[(u8, usize)] = if matches!(hosts, Hosts::All | Hosts::ForArea) {
            &[(class, CANDIDATES), (CLASS_EMPTY, usize::MAX)]
        } else {
            &[(class, CANDIDATES)]
        };
        for &(class, candidates) in tries {
            let (mut next, mut tried) = (0, 0);
            while tried < candidates {
                let number = match hint.take() {
                    Some(number) => number,
                    None => {
                        let Some(number) = data_set.space().find_from(class, next) else { break };
                        next = number + 1;
                        number
                    }
                };
                let found = if number < data_set.page_count() { data_set.space().free_class_of(number) } else { 0 };
                if found < class || hosts == Hosts::InUse && found == CLASS_EMPTY {
                    continue;
                }
                let Some(page) = self.latch_found(data_set, number)?.filter(|_| !data_set.is_given_back(number)) else { continue };
                tried += usize::from(self.place_for(&page, data_set, from, range, None, builder).is_some());
                let mut mtr = MiniTransaction::begin(manager);
                let handle = mtr.adopt(page);
                let mut host = Host { mtr, handle, partition };
                if let Some(there) = self.take_in(&mut host, from, (range, at_home), None, builder, spare)? {
                    partition.host_hint.set(number);
                    return Ok(Some((host, there)));
                }
                // The map promised too much.
                self.note_space(&mut host.mtr, handle);
                data_set.space().expect(number, 0);
                host.mtr.commit()?;
            }
        }
        if hosts == Hosts::InUse {
            return Ok(None);
        }
        // A page for which it is not so would be made in vain.
        let form = Some(self.page_form()).filter(|form| keeps_meaning(from, range, *form)).unwrap_or(from.dictionary_version());
        let (partition, mtr, handle) = self.new_page_as(form)?;
        partition.host_hint.set(mtr.number(handle));
        let mut host = Host { mtr, handle, partition };
        match self.take_in(&mut host, from, (range, at_home), None, builder, spare)? {
            Some(there) => Ok(Some((host, there))),
            None => {
                // The page stays, empty, for who comes next.
                self.note_space(&mut host.mtr, handle);
                host.mtr.commit()?;
                Ok(None)
            }
        }
    }

    /// The first of the slots for a range on a page that is to host it, and for those that it hosts already and that are to lie with it; `None` when it has too many rows or slots, or codes of another dictionary.
    fn place_for(
        &self,
        bytes: &[u8],
        data_set: &DataSet,
        from: &DataPage<'_>,
        range: SlotRange,
        hosted: Option<SlotRange>,
        builder: &ColumnBuilder,
    ) -> Option<u16> {
        let view = DataPage::new(bytes);
        if page::page_type(bytes) != Some(PageType::Data) || !keeps_meaning(from, range, view.dictionary_version()) {
            return None;
        }
        // Where others were hosted there is room again.
        let count = range.count + hosted.map_or(0, |hosted| hosted.count);
        let first = view.free_run(count, hosted.map_or(0..0, |hosted| hosted.first..hosted.end()));
        let rows = (range.first..range.end()).filter(|slot| is_of_range(from, *slot)).count();
        let fits_in = self.area_version(data_set) == Some(builder.dictionary_version())
            && first + count <= SLOT_MAX + 1
            && usize::from(view.row_count()) + rows <= self.slots_max();
        fits_in.then_some(first)
    }

    /// Puts the rows of a range on the page that is to host them, if it can, together with a neighbour of it, as the home's table has that, which it hosts already; gives the first slot there.
    fn take_in(
        &self,
        host: &mut Host<'_>,
        from: &DataPage<'_>,
        (range, at_home): (SlotRange, Rid),
        neighbour: Option<SlotRange>,
        builder: &mut ColumnBuilder,
        spare: usize,
    ) -> Result<Option<Rid>> {
        let number = host.mtr.number(host.handle);
        let bytes = host.mtr.bytes(host.handle);
        let view = DataPage::new(bytes);
        let hosted = neighbour.map(|neighbour| neighbour.seen_from_there(at_home.partition(), at_home.page()));
        if hosted.is_some_and(|hosted| view.ranges().of(hosted.first) != Some(hosted)) {
            return Ok(None);
        }
        let Some(first) = self.place_for(bytes, host.partition, from, range, hosted, builder) else { return Ok(None) };
        // The slots at home of all that lies there from now on.
        let home_first = neighbour.map_or(at_home.slot(), |neighbour| neighbour.first.min(at_home.slot()));
        let count = range.count + neighbour.map_or(0, |neighbour| neighbour.count);
        let there = Rid::new(host.partition.number(), number, first);
        let come = (0..count).filter_map(|at| {
            let (slot, at_home_slot) = (first + at, home_first + at);
            match neighbour.filter(|neighbour| neighbour.contains(at_home_slot)) {
                Some(neighbour) => Some(PlacedRow { slot, page: view, at: neighbour.there(at_home_slot).slot() }),
                None => {
                    let at = range.first + (at_home_slot - at_home.slot());
                    is_of_range(from, at).then_some(PlacedRow { slot, page: *from, at })
                }
            }
        });
        let all = SlotRange { first, count, hosted: true, there: Rid::new(at_home.partition(), at_home.page(), home_first) };
        let ranges = without(view.ranges().iter(), hosted, Some(all));
        let own = |slots: Range<u16>| {
            let stay = slots.filter(move |slot| !hosted.is_some_and(|hosted| hosted.contains(*slot)));
            stay.map(|slot| PlacedRow { slot, page: view, at: slot })
        };
        let behind = own(first + count..view.slot_count());
        let taken = host.partition.kept_bytes(number) + spare;
        let own_page = OwnPage { page: view, bytes: bytes.len().saturating_sub(taken) };
        let image = self
            .image_of(builder, own(0..first).chain(come).chain(behind), None, (&ranges, own_page))
            .map_err(|e| host.partition.corrupt(number, e))?;
        let Some(image) = image.filter(|image| image.len() + taken <= bytes.len()) else { return Ok(None) };
        self.put_image(&mut host.mtr, host.handle, image)?;
        Ok(Some(there))
    }

    /// Takes a range without rows out of its home and of the page that hosts it, both of which are latched.
    pub(super) fn drop_empty_range(
        &self,
        mtr: &mut MiniTransaction<'_>,
        home: PageHandle,
        rid: Rid,
        host: PageHandle,
        slot: u16,
    ) -> Result<()> {
        let view = DataPage::new(mtr.bytes(host));
        let Some(range) = view.ranges().of(slot).filter(|range| range.hosted) else { return Ok(()) };
        let has_one = |slot| view.row(slot).is_some() || view.ghost(slot, StoredKind::Special).is_some();
        if (range.first..range.end()).any(has_one) {
            return Ok(());
        }
        let Some(at_home) = DataPage::new(mtr.bytes(home)).ranges().of(rid.slot()) else { return Ok(()) };
        for (handle, range) in [(home, at_home), (host, range)] {
            let mut table = Vec::new();
            put_ranges(&without(DataPage::new(mtr.bytes(handle)).ranges().iter(), Some(range), None), &mut table);
            mtr.apply(handle, PageOp::Data(DataOp::Ranges(&table)))?;
            self.note_space(mtr, handle);
        }
        Ok(())
    }
}

/// Room that it takes at most to forward all rows that a page has by column, and their area with them.
pub(super) fn room_to_forward_area(page: &DataPage<'_>) -> usize {
    runs(page, None).iter().filter(|run| run.hosted.is_none()).count() * RANGE_BYTES
}

/// About how many bytes a row of a page takes there; 1 at least, and as many as a page has where there is no row to tell.
fn bytes_a_row(view: &DataPage<'_>, page_bytes: usize) -> usize {
    let other = COLUMN_ROWS_START + view.ranges().len() * RANGE_BYTES;
    let used = page_bytes.saturating_sub(view.free_bytes() + other);
    match usize::from(view.row_count()) {
        0 => page_bytes,
        rows => used.div_ceil(rows).max(1),
    }
}

/// Whether slots that are forwarded lie beside so many others of their page.
fn is_beside(range: &SlotRange, first: u16, count: u16) -> bool {
    !range.hosted && (range.first == first + count || range.end() == first)
}

/// What a slot has of a row or ghost.
fn stored<'p>(page: &DataPage<'p>, slot: u16) -> Option<Stored<'p>> {
    let row = page.row(slot).or_else(|| page.ghost(slot, StoredKind::Special))?;
    Stored::parse(row, page.dictionary_version()).ok()
}

/// Does what a slot holds go with a range? A pointer at home stays.
fn is_of_range(page: &DataPage<'_>, slot: u16) -> bool {
    stored(page, slot).is_some_and(|stored| match stored {
        Stored::Home(_) | Stored::Hosted { .. } | Stored::HostedForward { .. } => true,
        Stored::Forward(_) | Stored::Away { .. } | Stored::Forwarded(_) => false,
    })
}

/// Does what comes of a range mean the same on a page of this form? Ghosts that lie by themselves keep their bytes, which say only together with the form of their page how they are to be read; that of
/// pages differs where the table has been altered.
fn keeps_meaning(from: &DataPage<'_>, range: SlotRange, form: u16) -> bool {
    let lies_by_itself = |slot: u16| from.ghost(slot, StoredKind::Special).is_some_and(|ghost| ghost.kind != StoredKind::Column);
    from.dictionary_version() == form || !(range.first..range.end()).any(lies_by_itself)
}

fn is_pointer(page: &DataPage<'_>, slot: u16) -> bool {
    matches!(stored(page, slot), Some(Stored::HostedForward { .. }))
}

/// The runs of a page that have rows, without one slot.
fn runs(page: &DataPage<'_>, not: Option<u16>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut goes_on = false;
    for slot in 0..page.slot_count() {
        let range = page.ranges().of(slot);
        let is_away = || page.row(slot).is_some() && matches!(stored(page, slot), Some(Stored::Away { .. }));
        if not == Some(slot) || range.is_some_and(|range| !range.hosted) || (range.is_none() && is_away()) {
            goes_on = false;
            continue;
        }
        let rows = usize::from(is_of_range(page, slot));
        match runs.last_mut().filter(|run| goes_on && run.hosted == range) {
            Some(run) => (run.end, run.rows) = (slot + 1, run.rows + rows),
            None => runs.push(Run { first: slot, end: slot + 1, rows, hosted: range }),
        }
        goes_on = true;
    }
    runs.retain(|run| run.rows > 0);
    runs
}

/// The slots at the end of a run from the first to the last of so many rows; and the slots of the run that go with them.
fn tail(page: &DataPage<'_>, run: &Run, rows: usize) -> (SlotRange, SlotRange) {
    let mut having = (run.first..run.end).rev().filter(|slot| is_of_range(page, *slot));
    let last = having.next().unwrap_or(run.first);
    let first = if rows > 1 { having.nth(rows - 2).unwrap_or(run.first) } else { last };
    let range = |first, end| SlotRange { first, count: end - first, hosted: run.hosted.is_some(), there: Rid::MIN };
    // Slots without rows stay with their home, where others come to them.
    let gone = match run.hosted {
        Some(_) => range(if rows == run.rows { run.first } else { first }, run.end),
        None => range(first, last + 1),
    };
    (range(first, last + 1), gone)
}

/// Rows of a range, ghosts not counted.
fn live_rows(page: &DataPage<'_>, range: SlotRange) -> i64 {
    (range.first..range.end()).filter(|slot| page.row(*slot).is_some() && is_of_range(page, *slot)).count() as i64
}

/// A table without the slots of a range, all of which are of one of its ranges, and with another range.
fn without(ranges: impl Iterator<Item = SlotRange>, gone: Option<SlotRange>, come: Option<SlotRange>) -> Vec<SlotRange> {
    let mut table: Vec<SlotRange> = Vec::new();
    for range in ranges {
        match gone.filter(|gone| range.contains(gone.first)) {
            None => table.push(range),
            Some(gone) => {
                let parts = [(range.first, gone.first), (gone.end(), range.end())];
                let kept = parts.into_iter().filter(|(from, to)| from < to);
                table.extend(kept.map(|(from, to)| SlotRange { first: from, count: to - from, there: range.there(from), ..range }));
            }
        }
    }
    table.extend(come);
    table.sort_unstable_by_key(|range| range.first);
    table
}

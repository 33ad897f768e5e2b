//! Thin pages: those that are to become empty, by their rows going to others, and where these go.
//!
//! A [`Plan`] is made from the space map alone, which has of each page how much room it may have. It divides the data pages in two: those to be emptied, as many of the thinnest as the others
//! have room for, and the others. Rows go from the former to the latter, so none goes in circles, and each is moved once by a plan.
//!
//! Invariants:
//! - a plan is a guess: a page may have less room than the map says, and others insert and delete meanwhile. Who moves rows asks the pages.

use super::page_search::{RowPage, page_room};
use super::table::Table;
use crate::Result;
use crate::pool::Access;
use pagefold_format::data::{DataPage, Stored};
use pagefold_format::space_map::{CLASS_EMPTY, CLASS_FULL, CLASS_PARTS};
use pagefold_types::Rid;

/// A table that takes so many percent of the pages that its rows need is left as it is.
const GOOD_PERCENT: u64 = 110;
/// What is aimed at: a little less.
const GOAL_PERCENT: u64 = 104;
/// Of the room that pages may have, so many percent are counted on.
const USABLE_PERCENT: u64 = 96;

/// Pages of the partitions of a table.
#[derive(Debug, Default)]
struct PageSet(Vec<Vec<u64>>);

impl PageSet {
    fn insert(&mut self, (partition, page): (u16, u32)) {
        let (partition, word) = (usize::from(partition), page as usize / 64);
        if self.0.len() <= partition {
            self.0.resize_with(partition + 1, Vec::new);
        }
        let words = &mut self.0[partition];
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        words[word] |= 1 << (page % 64);
    }

    fn contains(&self, (partition, page): (u16, u32)) -> bool {
        self.0.get(usize::from(partition)).and_then(|words| words.get(page as usize / 64)).is_some_and(|word| word >> (page % 64) & 1 == 1)
    }
}

/// Which pages are to be emptied, and which are to have their rows.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    sources: PageSet,
    /// The sources, from the end of the last partition on.
    pub(crate) pages: Vec<(u16, u32)>,
    /// Data pages without rows.
    pub(crate) empty: Vec<(u16, u32)>,
    /// Data pages with rows.
    pub(crate) used: u64,
    /// So many would do, if their rows lay as close as can be.
    pub(crate) needed: u64,
}

impl Plan {
    /// Where its rows go.
    pub(crate) fn targets(&self) -> Targets<'_> {
        Targets { plan: self, at: (0, 0) }
    }
}

/// Where rows of a plan go: pages from the beginning on.
#[derive(Debug)]
pub(crate) struct Targets<'p> {
    plan: &'p Plan,
    /// Where room was found last.
    at: (u16, u32),
}

impl Targets<'_> {
    /// Goes on where other targets of the plan have been.
    pub(crate) fn going_on_at(mut self, at: (u16, u32)) -> Self {
        self.at = at;
        self
    }

    /// Where room was found last.
    pub(crate) fn at(&self) -> (u16, u32) {
        self.at
    }
}

impl Table {
    /// Which pages had better be emptied, by what the space map says now. `thorough`: also where that makes little difference.
    pub(crate) fn plan_of_thin_pages(&self, thorough: bool) -> Plan {
        let attributes = self.attributes();
        let full = (CLASS_PARTS * page_room(attributes.page_bytes) / attributes.page_bytes) as u64;
        // LOAD leaves so much of each page free, and more is not asked for.
        let capacity = (full * u64::from(100 - attributes.pctfree.min(99)) / 100).max(1);
        let mut plan = Plan::default();
        let mut pages: Vec<(u16, u32, u8)> = Vec::new();
        let mut histogram = [0_u64; 256];
        for partition in self.partitions() {
            let space = partition.space();
            for page in space.data_pages() {
                match space.free_class_of(page) {
                    CLASS_EMPTY => plan.empty.push((partition.attributes.partition, page)),
                    class => {
                        let used = (full as usize).saturating_sub(usize::from(class.saturating_sub(CLASS_FULL))).max(1) as u8;
                        histogram[usize::from(used)] += 1;
                        pages.push((partition.attributes.partition, page, used));
                    }
                }
            }
        }
        let bytes = |used: usize| histogram[used] * used as u64;
        plan.used = pages.len() as u64;
        plan.needed = (0..256).map(bytes).sum::<u64>().div_ceil(capacity);
        let is_good = plan.used * 100 <= plan.needed * GOOD_PERCENT || plan.used <= plan.needed + 1;
        if is_good && !thorough || plan.used < 2 {
            return plan;
        }
        let left = if thorough { plan.needed } else { (plan.needed * GOAL_PERCENT).div_ceil(100) };
        let goal = plan.used - left.clamp(1, plan.used);
        let room_of = |used: usize| capacity.saturating_sub(used as u64);
        let mut room: u64 = (0..256).map(|used| histogram[used] * room_of(used)).sum();
        // The thinnest pages, one class after the other, as long as the others have room for all that they have.
        let (mut chosen, mut moving, mut below, mut of_last) = (0_u64, 0_u64, 0_usize, 0_u64);
        for (used, count) in histogram.into_iter().enumerate().skip(1) {
            let each = used as u64;
            let fits = |more: u64| (moving + more * each) * 100 <= (room - more * room_of(used)) * USABLE_PERCENT;
            let most = count.min(goal - chosen);
            let (mut low, mut high) = (0, most);
            while low < high {
                let middle = (low + high).div_ceil(2);
                if fits(middle) { low = middle } else { high = middle - 1 }
            }
            (chosen, moving, room) = (chosen + low, moving + low * each, room - low * room_of(used));
            (below, of_last) = (used, low);
            if low < count {
                break;
            }
        }
        for (partition, page, used) in pages.into_iter().rev() {
            let used = usize::from(used);
            let is_source = used < below || used == below && of_last > 0;
            if is_source {
                of_last -= u64::from(used == below);
                plan.sources.insert((partition, page));
                plan.pages.push((partition, page));
            }
        }
        plan
    }

    /// A data page of the targets with `space` bytes for a row and its slot, latched, none of `but`; `None` when none of them has as much.
    pub(super) fn page_for_thin(&self, space: usize, but: &[(u16, u32)], targets: &mut Targets<'_>) -> Result<Option<RowPage<'_>>> {
        let space = (space + 3 + self.insert_reserve()).min(page_room(self.attributes().page_bytes));
        let start = targets.at;
        let sources = &targets.plan.sources;
        // On to the end, and once more from the beginning: pages that were passed over for a longer row may do.
        for (from, until) in [(start, None), ((0, 0), Some(start))] {
            for partition in self.partitions_from(from.0) {
                let number = partition.number();
                if until.is_some_and(|until| number > until.0) {
                    break;
                }
                let first = if number == from.0 { from.1 } else { 0 };
                let pass_over = |page: u32| sources.contains((number, page)) || but.contains(&(number, page));
                if let Some((mtr, handle)) = self.page_with_room_from(partition, space, (None, first), &pass_over, &mut false)? {
                    targets.at = (number, mtr.number(handle));
                    return Ok(Some((partition, mtr, handle)));
                }
            }
        }
        Ok(None)
    }

    /// The RIDs of all rows that lie on a page, or have their home there.
    ///
    /// # Errors
    /// When the page is damaged.
    pub(crate) fn rows_on_page(&self, (partition, number): (u16, u32)) -> Result<Vec<Rid>> {
        let data_set = self.partition(partition)?;
        let Some(page) = self.data_page(data_set, number, Access::Scan)? else { return Ok(Vec::new()) };
        let view = DataPage::new(&page);
        let mut rows = Vec::new();
        for slot in 0..view.slot_count() {
            let Some(row) = view.row(slot) else { continue };
            rows.push(match Stored::parse(row, view.dictionary_version()).map_err(|e| data_set.corrupt(number, e))? {
                Stored::Away { home, .. } => home,
                Stored::Hosted { .. } | Stored::HostedForward { .. } => match view.home_of(slot) {
                    Some(home) => home,
                    None => continue,
                },
                Stored::Home(_) | Stored::Forward(_) | Stored::Forwarded(_) => Rid::new(partition, number, slot),
            });
        }
        Ok(rows)
    }
}

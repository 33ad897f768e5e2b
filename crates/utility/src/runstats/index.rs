//! Statistics of an index: levels, leaf pages, RIDs and distinct keys are known; what neighbours have in common is seen on leaves, all of them or random ones.
//!
//! A leaf is taken with the first entry of the one after it: so every two neighbours belong to one leaf. Of a random leaf a run of neighbours is looked at, from a random one on, and counts for all of
//! the leaf.

use super::bounds::RatioSums;
use super::sample::Sample;
use crate::estimate::random::SplitMix64;
use crate::{Error, Progress, Result, Unit};
use pagefold_engine::index::Index;
use pagefold_engine::pool::Prefetch;
use pagefold_format::catalog::{Figure, Looked, Statistics, figure};
use pagefold_format::index::leaf_view::LeafView;
use pagefold_types::Rid;

/// Leaves that are asked for ahead, and between two looks at whether to stop.
const WINDOW: usize = 32;
/// Neighbours that are looked at of each leaf of a sample: leaves differ more than parts of one do.
const RUN_PAIRS: usize = 64;
/// Distance of two pages of one row after the other from which on the second is waited for by itself: the next page comes with the one before.
const NEXT: u32 = 1;

/// What is seen of neighbours.
struct Neighbours<'a> {
    index: &'a Index,
    /// Pairs of neighbours, and those whose rows lie on one page or the next.
    near: RatioSums,
    /// Pairs whose rows lie on different pages, and those that do not lie on the next one.
    far: RatioSums,
    /// Pairs, and those that differ in the first columns.
    differ: Vec<RatioSums>,
    /// Of those that were seen.
    differing: Vec<u64>,
    key_bytes: RatioSums,
    entries: u64,
    ends: Vec<usize>,
    last: Option<(Vec<u8>, Rid)>,
    page: PageCounts,
}

/// Counts of one leaf.
#[derive(Clone, Debug, Default)]
struct PageCounts {
    entries: u64,
    key_bytes: u64,
    pairs: u64,
    near: u64,
    changes: u64,
    far: u64,
    differ: Vec<u64>,
}

impl<'a> Neighbours<'a> {
    fn new(index: &'a Index) -> Neighbours<'a> {
        let columns = index.attributes().columns.len();
        Neighbours {
            index,
            near: RatioSums::default(),
            far: RatioSums::default(),
            differ: vec![RatioSums::default(); columns],
            differing: vec![0; columns],
            key_bytes: RatioSums::default(),
            entries: 0,
            ends: Vec::new(),
            last: None,
            page: PageCounts { differ: vec![0; columns], ..PageCounts::default() },
        }
    }

    /// The next entry in key order: of the leaf itself, or the first of the one after it.
    fn push(&mut self, key: &[u8], rid: Rid, is_own: bool) -> Result<()> {
        if let Some((last_key, last_rid)) = &mut self.last {
            // Others may have moved entries since the leaf before was read.
            if (last_key.as_slice(), *last_rid) >= (key, rid) {
                return Ok(());
            }
            self.page.pairs += 1;
            let is_one_partition = last_rid.partition() == rid.partition();
            let steps = rid.page().wrapping_sub(last_rid.page());
            let is_near = is_one_partition && steps <= NEXT;
            self.page.near += u64::from(is_near);
            self.page.changes += u64::from(!(is_one_partition && steps == 0));
            self.page.far += u64::from(!is_near);
            if last_key != key {
                let common = last_key.iter().zip(key).take_while(|(a, b)| a == b).count();
                let damaged = |_| Error::Data(format!("index \"{}\": a key that is none", self.index.name()));
                self.index.key_layout().column_ends(key, &mut self.ends).map_err(damaged)?;
                self.page.differ.iter_mut().zip(&self.ends).for_each(|(differ, end)| *differ += u64::from(common < *end));
            }
        }
        if is_own {
            self.page.entries += 1;
            self.page.key_bytes += key.len() as u64;
        }
        match &mut self.last {
            Some((last_key, last_rid)) => {
                last_key.clear();
                last_key.extend_from_slice(key);
                *last_rid = rid;
            }
            None => self.last = Some((key.to_vec(), rid)),
        }
        Ok(())
    }

    fn leaf(&mut self, leaf: &LeafView<'_>) -> Result<()> {
        leaf.for_each(|key, rid| self.push(key, rid, true), |e| Error::Data(e.to_string()))
    }

    /// Some neighbours of a leaf. Its entries, and whether the first entry of the leaf after it is the last one's neighbour and wanted.
    fn some_of(&mut self, leaf: &LeafView<'_>, random: &mut SplitMix64) -> Result<(usize, bool)> {
        let entries = leaf.rid_count();
        // The last entry of the leaf has its neighbour in the one after it: all entries begin a pair.
        let pairs = entries.min(RUN_PAIRS);
        let from = random.below((entries - pairs) as u64 + 1) as usize;
        leaf.for_some(from, pairs + 1, |key, rid| self.push(key, rid, true), |e| Error::Data(e.to_string()))?;
        Ok((entries, from + pairs == entries))
    }

    /// The leaf has so many entries: what was seen of some of them counts for all.
    fn end_leaf(&mut self, entries: Option<usize>) {
        let columns = self.page.differ.len();
        let page = std::mem::replace(&mut self.page, PageCounts { differ: vec![0; columns], ..PageCounts::default() });
        let differing = page.differ.clone();
        let scale = entries.map_or(1.0, |entries| entries as f64 / page.pairs.max(1) as f64);
        let push = |sums: &mut RatioSums, x: u64, y: u64| sums.push_part(x as f64 * scale, y as f64 * scale, x as f64);
        push(&mut self.near, page.pairs, page.near);
        push(&mut self.far, page.changes, page.far);
        push(&mut self.key_bytes, page.entries, page.key_bytes);
        self.differ.iter_mut().zip(page.differ).for_each(|(sums, differ)| push(sums, page.pairs, differ));
        self.differing.iter_mut().zip(&differing).for_each(|(sum, differ)| *sum += differ);
        self.entries += page.entries;
    }

    fn finish(self, leaves: u64, is_all: bool) -> Statistics {
        let facts = self.index.data_set().facts().clone();
        let (leaves_read, columns) = (self.near.clusters(), self.differ.len());
        // Runs are parts of leaves: what is left of those counts, too.
        let left = if is_all { 0.0 } else { (1.0 - self.entries as f64 / facts.rows.max(1) as f64).clamp(1e-9, 1.0) };
        let mut out =
            Statistics { looked: Looked { pages_read: leaves_read, pages: leaves, rows_read: self.entries }, ..Statistics::default() };
        for (number, figure) in [
            (figure::ROWS, Figure::exact(facts.rows as f64)),
            (figure::DATA_PAGES, Figure::exact(leaves as f64)),
            (figure::PAGES, Figure::exact(f64::from(self.index.data_set().page_count()))),
            (figure::KEYS, Figure::exact(facts.keys as f64)),
            (figure::LEVELS, Figure::exact(f64::from(facts.levels))),
            (figure::KEY_BYTES, self.key_bytes.mean(left)),
            (figure::CLUSTER_RATIO, if self.near.x() > 0.0 { self.near.share(left) } else { Figure::exact(1.0) }),
            (figure::SYNCHRONOUS_SHARE, if is_all && self.far.x() == 0.0 { Figure::exact(0.0) } else { self.far.share(left) }),
        ] {
            out.figures.set(number, figure);
        }
        // There is one more value than there are neighbours that differ.
        let pairs = facts.rows.saturating_sub(1) as f64;
        let most = facts.keys as f64;
        let distinct = |(sums, seen): (&RatioSums, &u64)| {
            let share = sums.share(left);
            let of = |share: f64| if facts.rows == 0 { 0.0 } else { (1.0 + share * pairs).min(most) };
            // What was seen is there.
            Figure::within(of(share.value), of(share.low).max((1.0 + *seen as f64).min(most)).min(of(share.value)), of(share.high))
        };
        let seen = self.differ.iter().zip(&self.differing).take(columns - 1);
        out.prefixes = if is_all {
            seen.map(|(_, seen)| Figure::exact(if self.entries == 0 { 0.0 } else { 1.0 + *seen as f64 })).collect()
        } else {
            seen.map(distinct).collect()
        };
        out.prefixes.push(Figure::exact(most));
        out
    }
}

/// Gathers statistics of an index.
///
/// # Errors
/// When a page is damaged, or the user wants to stop.
pub(super) fn gather(index: &Index, sample: Sample, seed: u64, progress: &dyn Progress) -> Result<Statistics> {
    index.check_usable()?;
    let leaves = u64::from(index.data_set().facts().data_pages);
    let mut neighbours = Neighbours::new(index);
    let Some(wanted) = sample.pages_of(leaves) else {
        all(&mut neighbours, leaves, progress)?;
        let read = neighbours.near.clusters();
        return Ok(neighbours.finish(read, true));
    };
    let mut random = SplitMix64(seed ^ 0x0069_6E64_6578);
    // Pages above the leaves are drawn, too, and passed over.
    let with_others = wanted + wanted / 8 + 8;
    let pages = index.data_set().draw_pages(with_others, true, |n| random.below(n));
    progress.start(&format!("reading a sample of {}", index.name()), Some(wanted), Unit::Pages);
    for window in pages.chunks(WINDOW) {
        let mut sorted: Vec<u32> = window.to_vec();
        sorted.sort_unstable();
        let ranges = sorted.into_iter().map(|page| page..page.saturating_add(1)).collect();
        index.manager().prefetch(index.data_set(), Prefetch::List, ranges, None);
        let before = neighbours.near.clusters();
        for page in window {
            if neighbours.near.clusters() == wanted {
                break;
            }
            neighbours.last = None;
            let seen = index.visit_leaf(*page, |leaf| neighbours.some_of(leaf, &mut random).map(|seen| (seen, leaf.next())))?;
            let Some(((entries, is_end), next)) = seen else { continue };
            if is_end && next != 0 {
                index.visit_leaf(next, |leaf| first_pair(leaf, &mut neighbours))?;
            }
            neighbours.end_leaf(Some(entries));
        }
        progress.advance(neighbours.near.clusters() - before);
        if progress.interrupted() {
            return Err(Error::Interrupted);
        }
    }
    progress.finish();
    let mut statistics = neighbours.finish(leaves, false);
    statistics.seed = Some(seed);
    Ok(statistics)
}

/// The first entry of the leaf after the one that was read.
fn first_pair(leaf: &LeafView<'_>, neighbours: &mut Neighbours<'_>) -> Result<()> {
    let mut key = Vec::new();
    match leaf.pair(Default::default(), &mut key) {
        Some(rid) => neighbours.push(&key, rid, false),
        None => Ok(()),
    }
}

/// Every leaf, in key order.
fn all(neighbours: &mut Neighbours<'_>, leaves: u64, progress: &dyn Progress) -> Result<()> {
    let index = neighbours.index;
    progress.start(&format!("reading {}", index.name()), Some(leaves), Unit::Pages);
    let mut cursor = index.tree().all(pagefold_engine::btree::Direction::Forward);
    let mut read = 0usize;
    while let Some(run) = cursor.next_run()? {
        // A pair over the end of a leaf counts with the leaf in which it ends: all are there.
        neighbours.leaf(&run.leaf)?;
        neighbours.end_leaf(None);
        read += 1;
        progress.advance(1);
        if read.is_multiple_of(WINDOW) && progress.interrupted() {
            return Err(Error::Interrupted);
        }
    }
    progress.finish();
    Ok(())
}

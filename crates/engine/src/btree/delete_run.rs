//! Taking several entries out in the order of their keys: those that are on one leaf with one descent and one record of the log.
//!
//! Invariants:
//! - whatever is not plain is left to [`delete`](BTree::delete): a key whose list of RIDs may reach over an edge of the leaf, and a leaf that has no room for what is left;
//! - a prefix leaf that loses many pairs is packed anew from the others: each removal by itself would decode and encode a block. The bytes follow from what is in the log, as for any other change.

use super::delete::is_to_be_merged;
use super::tree::{BTree, Fences, Step, search_bytes};
use crate::Result;
use crate::frames::add;
use crate::pool::{MiniTransaction, PageHandle};
use pagefold_format::FormatError;
use pagefold_format::index::leaf::Place;
use pagefold_format::index::leaf_view::{LeafLayout, LeafView};
use pagefold_format::index::ops::LeafOp;
use pagefold_format::index::prefix::builder::PrefixLeafBuilder;
use pagefold_format::log::Counts;
use pagefold_format::op::PageOp;
use pagefold_types::{RID_BYTES, Rid};

/// A prefix leaf is packed anew when it loses so many pairs, and one in so many of its pairs: each that goes by itself takes about as long as 100 that stay.
const PAIRS_TO_PACK: usize = 8;
const PART_TO_PACK: usize = 32;

/// Entries that are looked at together at most.
const RUN_MAX: usize = 4096;

/// Bytes of keys and RIDs that are taken out one by one, about: a record of the log stays short.
const RUN_BYTES: usize = 4096;

/// What became of the entries of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunRemoved {
    /// So many of the first ones are not there any more; 0 when the first one is to be taken out by itself.
    pub(crate) entries: usize,
    /// So many of these were there.
    pub(crate) found: usize,
}

/// What a leaf is without some pairs.
struct Packed {
    format: LeafOp<'static>,
    /// The pairs that stay, as `Append` takes them.
    run: Option<(u16, Vec<u8>)>,
    removed: usize,
    keys_gone: i64,
}

impl<'t> BTree<'t> {
    /// Takes the first of these entries out, which ascend: those that lie on the leaf of the first one.
    ///
    /// # Errors
    /// When a page is damaged or cannot be read, or the log takes no more.
    pub(crate) fn delete_run(&self, entries: &[(&[u8], Rid)]) -> Result<RunRemoved> {
        let Some((key, rid)) = entries.first().copied() else { return Ok(RunRemoved::default()) };
        let first = search_bytes(key, rid);
        let mut fences = Fences::default();
        let page = self.leaf_for_change(&first, |step| match step {
            Step::Start => fences = Fences::default(),
            Step::Down(node, i) => fences.narrow(&node, i),
        })?;
        let Some(page) = page else { return Ok(RunRemoved::default()) };
        let at_edge = |key: &[u8]| [&fences.low, &fences.high].into_iter().flatten().any(|fence| fence.starts_with(key));
        let is_here = |(key, rid): &(&[u8], Rid)| {
            !at_edge(key) && fences.high.as_ref().is_none_or(|high| search_bytes(key, *rid).as_slice() < high.as_slice())
        };
        let here = entries.iter().take(RUN_MAX).take_while(|entry| is_here(entry)).count();
        let (run, before) = (&entries[..here], LeafView::new(&page).fill());
        let mut mtr = MiniTransaction::begin(self.manager);
        let handle = mtr.adopt(page);
        let removed = match self.packed_without(mtr.number(handle), &LeafView::new(mtr.bytes(handle)), run)? {
            Some(packed) => packed.put(&mut mtr, handle, here)?,
            None => self.remove_each(&mut mtr, handle, run)?,
        };
        if removed.found == 0 {
            return Ok(removed);
        }
        let view = LeafView::new(mtr.bytes(handle));
        let merge = is_to_be_merged((before, view.fill()), view.rid_count(), &first);
        mtr.commit()?;
        add(&self.data_set.counters.deletes, removed.found as u64);
        if merge {
            match self.merge(&first) {
                // A neighbour that is damaged takes no part: the entries are out.
                Err(error) if error.is_damage() => {}
                merged => merged?,
            }
        }
        Ok(removed)
    }

    /// Takes entries out of a leaf one by one, as far as their record stays short and the leaf has room for what is left of their blocks.
    fn remove_each(&self, mtr: &mut MiniTransaction<'t>, handle: PageHandle, run: &[(&[u8], Rid)]) -> Result<RunRemoved> {
        let (mut removed, mut bytes, mut keys_gone) = (RunRemoved::default(), 0, 0);
        for &(key, rid) in run {
            let view = LeafView::new(mtr.bytes(handle));
            let (place, is_there) = view.lower_bound_rid(key, rid);
            if is_there {
                let number = mtr.number(handle);
                let change = view.plan_remove(key, rid).map_err(|e| self.damaged(number, e));
                let change = match change {
                    // What has been taken out is to be committed first.
                    Err(error) if removed.found == 0 => return Err(error),
                    Ok(change) if change.as_ref().is_none_or(|change| view.takes(change)) && bytes < RUN_BYTES => change,
                    _ => break,
                };
                keys_gone += i64::from(view.is_alone(place, key, rid));
                let op = LeafOp::Remove { key, rid };
                match &change {
                    Some(change) => mtr.apply_leaf(handle, op, |leaf| change.apply(leaf, key))?,
                    None => mtr.apply(handle, PageOp::Leaf(op))?,
                }
                bytes += key.len() + RID_BYTES;
                removed.found += 1;
            }
            removed.entries += 1;
        }
        if removed.found > 0 {
            mtr.count(self.data_set, Counts { rows: -(removed.found as i64), keys: -keys_gone, ..Counts::default() });
        }
        Ok(removed)
    }

    /// The pairs of a prefix leaf but for these, packed as a build does. `None` for other leaves, for few pairs, and where the others do not fit, as gaps between RIDs become wider than any was.
    fn packed_without(&self, number: u32, view: &LeafView<'_>, run: &[(&[u8], Rid)]) -> Result<Option<Packed>> {
        let layout = view.layout();
        let LeafLayout::Prefix { fixed_key_bytes } = layout else { return Ok(None) };
        if run.len() < PAIRS_TO_PACK || run.len() * PART_TO_PACK < view.rid_count() {
            return Ok(None);
        }
        let damaged = |e: FormatError| self.damaged(number, e);
        let mut builder = PrefixLeafBuilder::new(self.data_set.leaf_bytes(), fixed_key_bytes, 0);
        let (mut gone, mut removed, mut is_full) = (run.iter().peekable(), 0, false);
        let (mut keys, mut keys_left) = (DistinctKeys::default(), DistinctKeys::default());
        let keep = |key: &[u8], rid: Rid| {
            keys.see(key);
            while gone.next_if(|other| **other < (key, rid)).is_some() {}
            if gone.next_if(|other| **other == (key, rid)).is_some() {
                removed += 1;
                return Ok(());
            }
            keys_left.see(key);
            is_full = is_full || builder.push(key, rid).map_err(damaged)?;
            Ok(())
        };
        view.for_each(keep, damaged)?;
        if is_full || builder.flush().map_err(damaged)? {
            return Ok(None);
        }
        let mut image = vec![0; self.data_set.leaf_bytes()];
        let run = match builder.is_empty() {
            true => None,
            false => {
                builder.finish(&mut image, number, 0).map_err(damaged)?;
                let packed = LeafView::new(&image);
                let (count, run) = packed.run(Place::default(), packed.end()).map_err(damaged)?;
                Some((count as u16, run))
            }
        };
        let packed = Packed { format: layout.format_op(number, view.next()), run, removed, keys_gone: keys.count - keys_left.count };
        // What a page cannot take is found out on a copy.
        let fits = packed.ops().try_for_each(|op| op.apply(&mut image)).is_ok();
        Ok(fits.then_some(packed))
    }
}

impl Packed {
    fn ops(&self) -> impl Iterator<Item = LeafOp<'_>> {
        let append = self.run.as_ref().map(|(count, run)| LeafOp::Append { count: *count, run });
        std::iter::once(self.format).chain(append)
    }

    fn put(&self, mtr: &mut MiniTransaction<'_>, handle: PageHandle, entries: usize) -> Result<RunRemoved> {
        if self.removed > 0 {
            self.ops().try_for_each(|op| mtr.apply(handle, PageOp::Leaf(op)))?;
            let data_set = mtr.data_set(handle);
            mtr.count(data_set, Counts { rows: -(self.removed as i64), keys: -self.keys_gone, ..Counts::default() });
        }
        Ok(RunRemoved { entries, found: self.removed })
    }
}

/// Counts keys that come in order.
#[derive(Default)]
struct DistinctKeys {
    count: i64,
    last: Vec<u8>,
}

impl DistinctKeys {
    fn see(&mut self, key: &[u8]) {
        if self.count == 0 || self.last != key {
            self.count += 1;
            self.last.clear();
            self.last.extend_from_slice(key);
        }
    }
}

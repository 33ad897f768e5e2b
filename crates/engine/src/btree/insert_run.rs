//! Adding several entries in the order of their keys: those that come to one leaf, as far as it takes them as it is, with one descent and one record of the log.
//!
//! Invariant: whatever is not plain is left to [`insert_by`](BTree::insert_by): a key that is there already, or whose list of RIDs may reach over an edge of the leaf, and a leaf that is full.

use super::tree::{BTree, Fences, Step, search_bytes};
use crate::Result;
use crate::frames::add;
use crate::pool::{By, MiniTransaction};
use pagefold_format::index::leaf_view::LeafView;
use pagefold_format::index::ops::LeafOp;
use pagefold_format::log::{Counts, EntryList, Undo};
use pagefold_types::Rid;

/// Bytes of keys and RIDs in a run, about: a record of the log stays short.
const RUN_BYTES: usize = 4096;

impl BTree<'_> {
    /// Adds the first of these entries, which ascend, for a transaction, and says how many: 0 when the first one is to be added by itself. `unique`: none of a key that is there.
    ///
    /// # Errors
    /// When a page is damaged, or the log takes no more.
    pub(crate) fn insert_run<'k>(&self, by: By<'_>, entries: impl Iterator<Item = (&'k [u8], Rid)>, unique: bool) -> Result<usize> {
        let mut entries = entries.peekable();
        let Some((key, rid)) = entries.peek().copied() else { return Ok(0) };
        let mut search = search_bytes(key, rid);
        let mut fences = Fences::default();
        let page = self.leaf_for_change(&search, |step| match step {
            Step::Start => fences = Fences::default(),
            Step::Down(node, i) => fences.narrow(&node, i),
        })?;
        let Some(page) = page else { return Ok(0) };
        let at_edge = |key: &[u8]| [&fences.low, &fences.high].into_iter().flatten().any(|fence| fence.starts_with(key));
        let (mut list, mut count, mut keys) = (Vec::new(), 0, 0);
        let mut mtr = MiniTransaction::begin(self.manager);
        let handle = mtr.adopt(page);
        for (key, rid) in entries {
            search.clear();
            search.extend_from_slice(key);
            search.extend_from_slice(&rid.to_bytes());
            let is_here = fences.high.as_ref().is_none_or(|high| search < *high);
            if !is_here || at_edge(key) || self.check_key(key).is_err() || list.len() >= RUN_BYTES {
                break;
            }
            let view = LeafView::new(mtr.bytes(handle));
            let is_known = view.lower_bound(key).1;
            if is_known && (unique || view.lower_bound_rid(key, rid).1) {
                break;
            }
            let number = mtr.number(handle);
            let plan = view.plan_insert(key, rid).map_err(|e| self.damaged(number, e));
            // What has been added is to be committed first.
            let plan = match plan {
                Err(error) if count == 0 => return Err(error),
                Ok(plan) if plan.fits(&view) => plan,
                _ => break,
            };
            mtr.apply_leaf(handle, LeafOp::Insert { key, rid }, |leaf| plan.apply(leaf, key, rid))?;
            EntryList::push(&mut list, key, rid);
            count += 1;
            keys += i64::from(!is_known);
        }
        if count == 0 {
            return Ok(0);
        }
        mtr.count(self.data_set, Counts { rows: count as i64, keys, ..Counts::default() });
        let entries = EntryList::parse(&list).map_err(|e| crate::Error::Value(e.to_string()))?;
        mtr.set_undo(by, Undo::InsertedEntries { object_id: self.index.object_id, entries });
        mtr.commit()?;
        entries.iter().for_each(|(key, _)| self.index.added(key));
        add(&self.data_set.counters.batch_inserts, count as u64);
        Ok(count)
    }
}

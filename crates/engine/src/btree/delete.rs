//! Deleting an entry.

use super::insert::edge_seen;
use super::split::RoomFor;
use super::tree::{BTree, search_bytes};
use crate::Result;
use crate::pool::{By, MiniTransaction};
use pagefold_format::index::header::FOLDED_PAGE_BYTES;
use pagefold_format::index::leaf_view::LeafView;
use pagefold_format::index::ops::LeafOp;
use pagefold_format::log::Counts;
use pagefold_types::Rid;

/// Leaves are looked at for merging when their fill passes one of so many equal steps below one half.
const MERGE_STEPS: usize = 16;

impl BTree<'_> {
    /// Takes an entry out; false when it is not there. Afterwards the leaf is merged with a neighbour if both fit in one.
    ///
    /// # Errors
    /// When a page is damaged or cannot be read or written.
    pub fn delete(&self, key: &[u8], rid: Rid) -> Result<bool> {
        self.delete_by(By::Nobody, key, rid)
    }

    /// Takes an entry out; when a transaction is rolled back, for that. There is nothing that puts it back.
    ///
    /// # Errors
    /// As [`Self::delete`].
    pub(crate) fn delete_by(&self, by: By<'_>, key: &[u8], rid: Rid) -> Result<bool> {
        let search = search_bytes(key, rid);
        let mut elsewhere = None;
        let (page, place, edge, change) = loop {
            let mut edge = false;
            let found = self.leaf_for_change(&search, |step| edge = edge_seen(edge, step, key))?;
            let Some(page) = found else { return Ok(false) };
            let view = LeafView::new(&page);
            let (place, found) = view.lower_bound_rid(key, rid);
            if !found {
                return Ok(false);
            }
            if !edge || elsewhere.is_some() {
                let number = page.number();
                let change = view.plan_remove(key, rid).map_err(|e| self.damaged(number, e))?;
                if change.as_ref().is_none_or(|change| view.takes(change)) {
                    break (page, place, edge, change);
                }
                drop(page);
                self.split(&search, key, rid, RoomFor::Removal)?;
                continue;
            }
            drop(page);
            let lock = self.data_set.structure_lock.lock();
            let mut cursor = self.key_cursor(key);
            elsewhere = Some((cursor.next()?.is_some() && cursor.next()?.is_some(), lock));
        };
        let view = LeafView::new(&page);
        let key_goes = view.is_alone(place, key, rid) && !(edge && elsewhere.as_ref().is_some_and(|e| e.0));
        let before = fill_step(&view, page.len());
        let mut mtr = MiniTransaction::begin(self.manager);
        let handle = mtr.adopt(page);
        mtr.apply_leaf(handle, LeafOp::Remove { key, rid }, change.as_ref())?;
        mtr.count(self.data_set, Counts { rows: -1, keys: -i64::from(key_goes), ..Counts::default() });
        mtr.set_by(by);
        let bytes = mtr.bytes(handle);
        let view = LeafView::new(bytes);
        let after = fill_step(&view, bytes.len());
        let merge = after < before && after < MERGE_STEPS / 2;
        mtr.commit()?;
        drop(elsewhere);
        if merge {
            self.merge(&search)?;
        }
        Ok(true)
    }
}

/// How full a leaf is, in steps, in memory or on disk, whichever is more; 0 only when it is empty.
fn fill_step(leaf: &LeafView<'_>, page_bytes: usize) -> usize {
    if leaf.is_empty() {
        return 0;
    }
    let in_memory = (page_bytes - leaf.free_bytes()) * MERGE_STEPS / page_bytes;
    let folded = leaf.folded_bytes() * MERGE_STEPS / FOLDED_PAGE_BYTES;
    1 + in_memory.max(folded)
}

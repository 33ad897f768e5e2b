//! Deleting an entry.

use super::insert::edge_seen;
use super::split::RoomFor;
use super::tree::{BTree, search_bytes};
use crate::Result;
use crate::frames::add;
use crate::pool::{By, MiniTransaction};
use pagefold_format::index::leaf_view::{FULL, LeafView};
use pagefold_format::index::ops::LeafOp;
use pagefold_format::log::Counts;
use pagefold_format::op::PageOp;
use pagefold_types::Rid;

/// Leaves are looked at for merging when their fill passes one of so many equal steps ...
const MERGE_STEPS: usize = 16;
/// ... or with one in so many of the removals that take out as much as a leaf has ...
const MERGE_LOOKS: usize = 4;
/// ... and is below this then: three fuller ones do not fit on two.
const MERGE_BELOW: usize = FULL / 4 * 3;

/// What became of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removed {
    Yes,
    /// There was no such entry.
    NotThere,
    /// Something is taken back, and there is no room for what is left on the leaf, nor for a page more: the entry is still there.
    NeedsRoom,
}

impl BTree<'_> {
    /// Takes an entry out; false when it is not there. Afterwards the leaf is merged with a neighbour if both fit in one.
    ///
    /// # Errors
    /// When a page is damaged or cannot be read or written.
    pub fn delete(&self, key: &[u8], rid: Rid) -> Result<bool> {
        Ok(self.delete_by(By::Nobody, key, rid)? == Removed::Yes)
    }

    /// Takes an entry out; when a transaction is rolled back, for that. Then it may stay where there is no room for what is left ([`Removed::NeedsRoom`]). There is nothing that puts it back.
    ///
    /// # Errors
    /// As [`Self::delete`].
    pub(crate) fn delete_by(&self, by: By<'_>, key: &[u8], rid: Rid) -> Result<Removed> {
        let search = search_bytes(key, rid);
        let mut elsewhere = None;
        let mut levelled = 0;
        let (page, place, edge, change) = loop {
            let mut edge = false;
            let found = self.leaf_for_change(&search, |step| edge = edge_seen(edge, step, key))?;
            let Some(page) = found else { return Ok(Removed::NotThere) };
            let view = LeafView::new(&page);
            let (place, found) = view.lower_bound_rid(key, rid);
            if !found {
                return Ok(Removed::NotThere);
            }
            if !edge || elsewhere.is_some() {
                let number = page.number();
                let change = view.plan_remove(key, rid).map_err(|e| self.damaged(number, e))?;
                if change.as_ref().is_none_or(|change| view.takes(change)) {
                    break (page, place, edge, change);
                }
                drop(page);
                if !self.has_log_for_structure(by) {
                    return Ok(Removed::NeedsRoom);
                }
                match self.make_room(&search, key, rid, RoomFor::Removal, &mut levelled) {
                    Err(error) if error.is_no_room() && matches!(by, By::Undo(..)) => return Ok(Removed::NeedsRoom),
                    done => done?,
                }
                continue;
            }
            drop(page);
            let lock = self.data_set.structure_lock.lock();
            let mut cursor = self.key_cursor(key);
            elsewhere = Some((cursor.next()?.is_some() && cursor.next()?.is_some(), lock));
        };
        let view = LeafView::new(&page);
        let key_goes = view.is_alone(place, key, rid) && !(edge && elsewhere.as_ref().is_some_and(|e| e.0));
        let before = view.fill();
        let mut mtr = MiniTransaction::begin(self.manager);
        let handle = mtr.adopt(page);
        let op = LeafOp::Remove { key, rid };
        match &change {
            Some(change) => mtr.apply_leaf(handle, op, |leaf| change.apply(leaf, key))?,
            None => mtr.apply(handle, PageOp::Leaf(op))?,
        }
        mtr.count(self.data_set, Counts { rows: -1, keys: -i64::from(key_goes), ..Counts::default() });
        mtr.set_by(by);
        let view = LeafView::new(mtr.bytes(handle));
        let (fill, rids) = (view.fill(), view.rid_count());
        let merge = is_to_be_merged((before, fill), rids, &search);
        mtr.commit()?;
        add(&self.data_set.counters.deletes, 1);
        drop(elsewhere);
        // An empty leaf that stays goes with the next merge beside it.
        if merge && self.has_log_for_structure(by) {
            match self.merge(&search) {
                // A neighbour that is damaged takes no part: the entry is out.
                Err(error) if error.is_damage() => {}
                merged => merged?,
            }
        }
        Ok(Removed::Yes)
    }

    /// May a change of structure be written to the log? Taking something back does only what the log has room for, beside what is kept there.
    fn has_log_for_structure(&self, by: By<'_>) -> bool {
        let bytes = (STRUCTURE_LEAVES_MAX * self.data_set.leaf_bytes()) as u64;
        !matches!(by, By::Undo(..)) || self.manager.log().is_none_or(|log| log.has_spare(bytes))
    }
}

/// More leaves than a merge writes to the log, or making room in one, with what that does to the pages above.
const STRUCTURE_LEAVES_MAX: usize = 8;

/// Whether a leaf with so many RIDs left, whose fill has come down from one to another, may be merged with a neighbour now.
pub(super) fn is_to_be_merged((before, after): (usize, usize), rids: usize, search: &[u8]) -> bool {
    rids == 0 || is_step_down(before, after) || after < MERGE_BELOW && is_look_due(search, rids)
}

/// Whether a removal is one of those after which a leaf of so many RIDs is looked at, [`MERGE_LOOKS`] times while as much goes as it has. Where as much comes as goes, no fill passes a step: leaves
/// that have two lists of RIDs each, of which the oldest go and newer ones come behind, would stay at two thirds for good. Which removal it is depends on what is removed alone.
fn is_look_due(search: &[u8], rids: usize) -> bool {
    // FNV-1a (Fowler, Noll, Vo 1991).
    let hash = search.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3));
    (hash >> 32).is_multiple_of((rids / MERGE_LOOKS).max(1) as u64)
}

/// Has the fill of a leaf come down a step, to where its entries may fit on other leaves?
fn is_step_down(before: usize, after: usize) -> bool {
    let step = |fill: usize| fill * MERGE_STEPS / FULL;
    step(after) < step(before) && after < MERGE_BELOW
}

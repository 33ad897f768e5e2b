//! Inserting an entry.
//!
//! First as if there were room: shared latches down to the leaf, which alone is latched exclusively. When the leaf is full it gives entries to a neighbour or is split, by a mini-transaction
//! of its own which nothing ever takes back, and the insert starts again.

use super::split::RoomFor;
use super::tree::{BTree, Step, search_bytes};
use crate::frames::add;
use crate::pool::{By, MiniTransaction};
use crate::{Error, Result};
use pagefold_format::index::leaf_view::LeafView;
use pagefold_format::index::ops::LeafOp;
use pagefold_format::log::{Counts, Undo};
use pagefold_format::op::PageOp;
use pagefold_format::space_map::CLASS_NO_ROWS;
use pagefold_types::Rid;

/// What keeps an entry from being added. It is looked for under the latch under which the entry is added, so no other descent is needed for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unless {
    /// Nothing: the caller knows that the entry is not there.
    Nothing,
    /// The entry is there.
    Entry,
    /// Any entry of the key is.
    Key,
}

impl BTree<'_> {
    /// Adds an entry.
    ///
    /// # Errors
    /// [`Error::DuplicateKey`] in a unique index; also when (key, RID) is there already, the key is too long, a page is damaged or there is no room.
    pub fn insert(&self, key: &[u8], rid: Rid) -> Result<()> {
        let is_single = self.index.attributes().unique && !self.index.has_null(key);
        let inserted = self.insert_by(By::Nobody, key, rid, if is_single { Unless::Key } else { Unless::Nothing })?;
        if inserted { Ok(()) } else { Err(self.index.duplicate(key)) }
    }

    /// Adds an entry for a transaction, or does nothing, and says false. In a unique index an entry with the same key may be left of a deleted row; only who knows the rows can tell.
    ///
    /// # Errors
    /// When the key is too long, a page is damaged or there is no room; with [`Unless::Nothing`] when the entry is there.
    pub(crate) fn insert_by(&self, by: By<'_>, key: &[u8], rid: Rid, unless: Unless) -> Result<bool> {
        self.check_key(key)?;
        let search = search_bytes(key, rid);
        // Whether other leaves have the key, and the lock that keeps it so.
        let mut elsewhere = None;
        let mut levelled = 0;
        loop {
            let mut edge = false;
            let found = self.leaf_for_change(&search, |step| edge = edge_seen(edge, step, key))?;
            let Some(page) = found else {
                self.create_root()?;
                continue;
            };
            let view = LeafView::new(&page);
            let known = view.lower_bound(key).1;
            let is_there = match unless {
                Unless::Nothing => false,
                Unless::Entry => known && view.lower_bound_rid(key, rid).1,
                Unless::Key => known || elsewhere.as_ref().is_some_and(|(has_key, _)| *has_key),
            };
            if is_there {
                return Ok(false);
            }
            let number = page.number();
            let plan = view.plan_insert(key, rid).map_err(|e| self.damaged(number, e))?;
            if !plan.fits(&view) {
                // Ascending inserts leave full leaves behind.
                if view.next() == 0 && view.is_behind_all(key, rid) {
                    levelled = 2;
                }
                drop(page);
                self.make_room(&search, key, rid, RoomFor::Insert, &mut levelled)?;
                continue;
            }
            if edge && !known && elsewhere.is_none() {
                drop(page);
                let lock = self.data_set.structure_lock.lock();
                elsewhere = Some((self.key_cursor(key).next()?.is_some(), lock));
                continue;
            }
            let new_key = !(known || edge && elsewhere.as_ref().is_some_and(|e| e.0));
            let mut mtr = MiniTransaction::begin(self.manager);
            let handle = mtr.adopt(page);
            mtr.apply_leaf(handle, LeafOp::Insert { key, rid }, |leaf| plan.apply(leaf, key, rid))?;
            mtr.count(self.data_set, Counts { rows: 1, keys: i64::from(new_key), ..Counts::default() });
            mtr.set_undo(by, Undo::InsertedEntry { object_id: self.index.object_id, key, rid });
            mtr.commit()?;
            self.index.added(key);
            add(&self.data_set.counters.inserts, 1);
            return Ok(true);
        }
    }

    pub(super) fn check_key(&self, key: &[u8]) -> Result<()> {
        let most = pagefold_types::key_bytes_max(self.data_set.page_bytes());
        if key.len() > most {
            return Err(Error::Value(format!("index \"{}\": a key of {} bytes; at most {most} fit", self.index.name(), key.len())));
        }
        Ok(())
    }

    /// Makes the first leaf, unless another thread does.
    fn create_root(&self) -> Result<()> {
        let _first = self.data_set.structure_lock.lock();
        if self.root().0 != 0 {
            return Ok(());
        }
        let mut mtr = MiniTransaction::begin(self.manager);
        let handle = mtr.create(self.data_set, CLASS_NO_ROWS, true)?;
        let number = mtr.number(handle);
        mtr.apply(handle, PageOp::Leaf(self.leaf_layout().format_op(number, 0)))?;
        mtr.set_root(self.data_set, number, 1);
        mtr.count(self.data_set, Counts { data_pages: 1, ..Counts::default() });
        mtr.commit().map(drop)
    }
}

/// Does the key's RID list, if there is one, perhaps reach over an edge of the leaf? Then a separator on the way down begins with the key.
pub(super) fn edge_seen(edge: bool, step: Step<'_>, key: &[u8]) -> bool {
    match step {
        Step::Start => false,
        Step::Down(node, i) => edge || (i > 0 && node.separator(i - 1).starts_with(key)) || node.separator(i).starts_with(key),
    }
}

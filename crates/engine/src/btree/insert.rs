//! Inserting an entry.
//!
//! First as if there were room: shared latches down to the leaf, which alone is latched exclusively. When the leaf is full it is split by a mini-transaction of its own, which nothing ever
//! takes back, and the insert starts again.

use super::tree::{BTree, Step, search_bytes};
use crate::pool::{MiniTransaction, Undo};
use crate::{Error, Result};
use pagefold_format::index::leaf::Leaf;
use pagefold_format::index::ops::LeafOp;
use pagefold_format::op::PageOp;
use pagefold_format::space_map::CLASS_NO_ROWS;
use pagefold_types::Rid;

impl BTree<'_> {
    /// Adds an entry.
    ///
    /// # Errors
    /// [`Error::DuplicateKey`] in a unique index; also when (key, RID) is there already, the key is too long, a page is damaged or there is no room.
    pub fn insert(&self, key: &[u8], rid: Rid) -> Result<()> {
        self.check_key(key)?;
        let search = search_bytes(key, rid);
        loop {
            let mut edge = false;
            let found = self.leaf_for_change(&search, |step| edge = edge_seen(edge, step, key))?;
            let Some(page) = found else {
                self.create_root()?;
                continue;
            };
            let view = Leaf::new(&page);
            let known = view.lower_bound(key).1;
            if known && self.index.attributes().unique && !self.index.has_null(key) {
                return Err(self.index.duplicate(key));
            }
            let number = page.number();
            let plan = view.plan_insert(key, rid).map_err(|e| self.damaged(number, e))?;
            if !plan.fits(&view) {
                drop(page);
                self.split(&search, key, rid)?;
                continue;
            }
            let mut mtr = MiniTransaction::begin(self.manager);
            let handle = mtr.adopt(page);
            mtr.apply(handle, PageOp::Leaf(LeafOp::Insert { key, rid }))?;
            mtr.set_undo(Undo::InsertedEntry { object_id: self.index.object_id, key, rid });
            mtr.commit()?;
            let new_key = !known && plan.new_entry && !(edge && self.has_two_rids(key)?);
            let mut facts = self.data_set.facts();
            facts.rows += 1;
            facts.keys += u64::from(new_key);
            return Ok(());
        }
    }

    fn check_key(&self, key: &[u8]) -> Result<()> {
        let most = pagefold_types::key_bytes_max(self.data_set.page_bytes());
        if key.len() > most {
            return Err(Error::Value(format!("index \"{}\": a key of {} bytes; at most {most} fit", self.index.name(), key.len())));
        }
        Ok(())
    }

    fn has_two_rids(&self, key: &[u8]) -> Result<bool> {
        let mut cursor = self.key_cursor(key);
        Ok(cursor.next()?.is_some() && cursor.next()?.is_some())
    }

    /// Makes the first leaf, unless another thread does.
    fn create_root(&self) -> Result<()> {
        let mut mtr = MiniTransaction::begin(self.manager);
        let handle = mtr.create(self.data_set, CLASS_NO_ROWS, true)?;
        let number = mtr.number(handle);
        let mut facts = self.data_set.facts();
        if facts.root_page != 0 {
            drop(facts);
            drop(mtr);
            self.data_set.space().free(number);
            return Ok(());
        }
        mtr.apply(handle, PageOp::Leaf(LeafOp::Format { page_number: number, kind: self.leaf_kind(), next: 0 }))?;
        mtr.commit()?;
        (facts.root_page, facts.levels) = (number, 1);
        facts.data_pages += 1;
        Ok(())
    }
}

/// Does the key's RID list, if there is one, perhaps reach over an edge of the leaf? Then a separator on the way down begins with the key.
pub(super) fn edge_seen(edge: bool, step: Step<'_>, key: &[u8]) -> bool {
    match step {
        Step::Start => false,
        Step::Down(node, i) => edge || (i > 0 && node.separator(i - 1).starts_with(key)) || node.separator(i).starts_with(key),
    }
}

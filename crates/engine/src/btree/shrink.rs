//! Non-leaf pages that have become small, and roots that are not needed any more.
//!
//! A small page is merged with a neighbour under the same page if both fit on one. One that has a single child and whose neighbour is full gets one of that neighbour's children: so a leaf always has a
//! neighbour that it can be merged with. A root with a single child is replaced by it. Each is a mini-transaction of its own without undo; when one does not come about, the next
//! removal from the page tries again.

use super::tree::{BTree, Retry};
use crate::Result;
use crate::pool::{ExclusivePage, MiniTransaction};
use pagefold_format::index::non_leaf::{NonLeaf, put_separator};
use pagefold_format::index::ops::NonLeafOp;
use pagefold_format::op::PageOp;

/// A merged page keeps a part of its bytes free, else the next separator would split it again: one in so many.
const SPARE: usize = 8;

/// Is it worthwhile to look for a neighbour that it can be merged with?
pub(super) fn is_small(node: &NonLeaf<'_>, page_bytes: usize) -> bool {
    node.separator_count() == 0 || page_bytes - node.free_bytes() <= page_bytes / 4
}

impl<'a> BTree<'a> {
    /// Merges the non-leaf page of this level on the way to `search` if it is small. True: the tree has changed.
    pub(super) fn shrink(&self, search: &[u8], level: u16) -> Result<bool> {
        let mut retry = Retry::default();
        loop {
            if self.root().1 <= level + 1 {
                drop(retry);
                return self.replace_root();
            }
            let Some(parent) = self.page_for_change(search, level + 1, &mut retry, |_| {})? else { continue };
            let view = NonLeaf::new(&parent);
            let Some(last) = view.separator_count().checked_sub(1) else {
                drop(parent);
                // It may be that one's turn.
                retry = Retry::default();
                if self.shrink(search, level + 1)? {
                    continue;
                }
                return Ok(false);
            };
            let child = view.child_for(search);
            let at = child.min(last);
            let numbers = [view.child(at), view.child(at + 1)];
            let left = self.manager.exclusive_resident(self.data_set, numbers[0])?;
            let right = if left.is_some() { self.manager.exclusive_resident(self.data_set, numbers[1])? } else { None };
            match (left, right) {
                (Some(left), Some(right)) => {
                    self.expect(left.number(), &left, level)?;
                    self.expect(right.number(), &right, level)?;
                    drop(retry);
                    return self.shrink_pair(search, level, (parent, at), (left, right), child > at);
                }
                (left, _) => {
                    let missing = numbers[usize::from(left.is_some())];
                    drop((parent, left));
                    self.fetch(missing, &mut retry)?;
                }
            }
        }
    }

    /// Merges the children `at` and `at + 1` of `parent`; the right one or the left one is perhaps small.
    fn shrink_pair(
        &self,
        search: &[u8],
        level: u16,
        (parent, at): (ExclusivePage<'a>, usize),
        (left, right): (ExclusivePage<'a>, ExclusivePage<'a>),
        own_is_right: bool,
    ) -> Result<bool> {
        let (left_view, right_view, above) = (NonLeaf::new(&left), NonLeaf::new(&right), NonLeaf::new(&parent));
        let own = if own_is_right { &right_view } else { &left_view };
        if !is_small(own, left.len()) {
            return Ok(false);
        }
        let single = own.separator_count() == 0;
        let between = above.separator(at).to_vec();
        let mut run = Vec::new();
        put_separator(&mut run, &between, right_view.child(0));
        run.extend_from_slice(&right_view.run(0));
        let count = right_view.separator_count() + 1;
        let bytes = right.len() - right_view.free_bytes() + NonLeaf::separator_bytes(between.len());
        let spare = if single { 0 } else { left.len() / SPARE };
        if bytes + spare <= left_view.free_bytes() {
            let gone = right.number();
            let mut mtr = MiniTransaction::begin(self.manager);
            let (left, _, parent) = (mtr.adopt(left), mtr.adopt(right), mtr.adopt(parent));
            mtr.apply(left, PageOp::NonLeaf(NonLeafOp::Append { count: count as u16, run: &run }))?;
            mtr.apply(parent, PageOp::NonLeaf(NonLeafOp::Remove { index: at as u16 }))?;
            mtr.free(self.data_set, gone);
            let above = NonLeaf::new(mtr.bytes(parent));
            let small = is_small(&above, mtr.bytes(parent).len());
            mtr.commit()?;
            if small {
                self.shrink(search, level + 1)?;
            }
            return Ok(true);
        }
        if !single {
            return Ok(false);
        }
        // The child of the neighbour that is next to the single one.
        let (moved, up) = if own_is_right {
            let Some(last) = left_view.separator_count().checked_sub(1) else { return Ok(false) };
            (left_view.child(last + 1), left_view.separator(last).to_vec())
        } else {
            (right_view.child(0), right_view.separator(0).to_vec())
        };
        if up.len() > between.len() + above.free_bytes() {
            return Ok(false);
        }
        let (last, old) = (left_view.separator_count().saturating_sub(1), right_view.child(0));
        let second = right_view.child(1);
        let mut mtr = MiniTransaction::begin(self.manager);
        let (left, right, parent) = (mtr.adopt(left), mtr.adopt(right), mtr.adopt(parent));
        let mut apply = |page, op| mtr.apply(page, PageOp::NonLeaf(op));
        if own_is_right {
            apply(left, NonLeafOp::KeepFirst { count: last as u16 })?;
            apply(right, NonLeafOp::SetFirstChild { child: moved })?;
            apply(right, NonLeafOp::Insert { separator: &between, child: old })?;
        } else {
            apply(left, NonLeafOp::Insert { separator: &between, child: moved })?;
            apply(right, NonLeafOp::SetFirstChild { child: second })?;
            apply(right, NonLeafOp::Remove { index: 0 })?;
        }
        apply(parent, NonLeafOp::Replace { index: at as u16, separator: &up })?;
        mtr.commit()?;
        Ok(true)
    }

    /// Replaces a root with a single child by that, and so on.
    fn replace_root(&self) -> Result<bool> {
        let mut changed = false;
        loop {
            let (root, levels) = self.root();
            if levels < 2 {
                return Ok(changed);
            }
            let page = self.manager.exclusive(self.data_set, root)?;
            if self.root() != (root, levels) {
                continue;
            }
            self.expect(root, &page, levels - 1)?;
            let view = NonLeaf::new(&page);
            if view.separator_count() > 0 {
                return Ok(changed);
            }
            let child = view.child(0);
            let mut mtr = MiniTransaction::begin(self.manager);
            mtr.adopt(page);
            mtr.set_root(self.data_set, child, levels - 1);
            mtr.free(self.data_set, root);
            mtr.commit()?;
            changed = true;
        }
    }
}

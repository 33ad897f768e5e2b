//! Merging leaves, and non-leaf pages that have become small.
//!
//! A merge is one mini-transaction without undo: the right page's entries go to the left one, its separator leaves the page above, its page is given back. A root with one child
//! is replaced by it. Merging is a matter of space only, so it is given up where it would have to wait against the order of latches.

use super::tree::{BTree, Retry};
use crate::Result;
use crate::pool::{ExclusivePage, MiniTransaction, PageHandle};
use pagefold_format::index::leaf_view::LeafView;
use pagefold_format::index::non_leaf::{NonLeaf, put_separator};
use pagefold_format::index::ops::{LeafOp, NonLeafOp};
use pagefold_format::log::Counts;
use pagefold_format::op::PageOp;

/// A merged page must keep a part of its bytes free, else the next insert would split it again: one in so many.
const SPARE: usize = 8;

/// So often a merge starts over because pages had to be read.
const TRIES: u32 = 16;

impl<'a> BTree<'a> {
    /// Merges the leaf where `search` belongs with a neighbour under the same page, if both fit in one.
    pub(super) fn merge(&self, search: &[u8]) -> Result<()> {
        let mut retry = Retry::default();
        for _ in 0..TRIES {
            let mut mtr = MiniTransaction::begin(self.manager);
            if self.try_merge(&mut mtr, search, &mut retry)? {
                mtr.commit()?;
                return Ok(());
            }
        }
        Ok(())
    }

    /// False when a page had to be read.
    fn try_merge(&self, mtr: &mut MiniTransaction<'a>, search: &[u8], retry: &mut Retry) -> Result<bool> {
        let (root, levels) = self.root();
        if levels < 2 {
            return Ok(true);
        }
        let mut page = self.manager.exclusive(self.data_set, root)?;
        if self.root() != (root, levels) {
            return Ok(false);
        }
        // Non-leaf pages from the lowest that stays as it is, or the root, with the child taken.
        let mut path: Vec<(ExclusivePage<'a>, usize)> = Vec::new();
        let mut top_is_root = true;
        for depth in 1..levels {
            self.expect(page.number(), &page, levels - depth)?;
            let view = NonLeaf::new(&page);
            let i = view.child_for(search);
            if view.separator_count() > 1 && used(&page) > page.len() / 2 {
                top_is_root = depth == 1;
                path.clear();
            }
            let child = view.child(i);
            path.push((page, i));
            if depth + 1 == levels {
                break;
            }
            match self.manager.exclusive_resident(self.data_set, child)? {
                Some(next) => page = next,
                None => {
                    drop(path);
                    self.fetch(child, retry)?;
                    return Ok(false);
                }
            }
        }
        let Some((parent, i)) = path.last() else { return Ok(true) };
        let view = NonLeaf::new(parent);
        if view.separator_count() == 0 {
            return Ok(true);
        }
        let at = (*i).min(view.separator_count() - 1);
        let (left_number, right_number) = (view.child(at), view.child(at + 1));
        let mut pair = Vec::with_capacity(2);
        for number in [left_number, right_number] {
            match self.manager.exclusive_resident(self.data_set, number)? {
                Some(leaf) => {
                    self.expect(number, &leaf, 0)?;
                    pair.push(leaf);
                }
                None => {
                    drop((path, pair));
                    self.fetch(number, retry)?;
                    return Ok(false);
                }
            }
        }
        let (Some(right), Some(left)) = (pair.pop(), pair.pop()) else { return Ok(true) };
        let (left_view, right_view) = (LeafView::new(&left), LeafView::new(&right));
        let spare = self.data_set.page_bytes() / SPARE;
        let spare = if right_view.is_empty() { 0 } else { spare };
        let Some((count, run)) = left_view.joins(&right_view, spare) else { return Ok(true) };
        let next = right_view.next();
        let left = mtr.adopt(left);
        mtr.adopt(right);
        mtr.apply(left, PageOp::Leaf(LeafOp::Append { count: count as u16, run: &run }))?;
        mtr.apply(left, PageOp::Leaf(LeafOp::SetNext { next }))?;
        mtr.free(self.data_set, right_number);
        mtr.count(self.data_set, Counts { data_pages: -1, ..Counts::default() });
        self.take_separator_out(mtr, path, at, top_is_root)?;
        Ok(true)
    }

    /// Takes separator `at` out of the last page of the path and merges upward.
    fn take_separator_out(
        &self,
        mtr: &mut MiniTransaction<'a>,
        mut path: Vec<(ExclusivePage<'a>, usize)>,
        mut at: usize,
        top_is_root: bool,
    ) -> Result<()> {
        while let Some((page, _)) = path.pop() {
            let (number, page_bytes) = (page.number(), page.len());
            let node = mtr.adopt(page);
            mtr.apply(node, PageOp::NonLeaf(NonLeafOp::Remove { index: at as u16 }))?;
            let view = NonLeaf::new(mtr.bytes(node));
            if path.is_empty() {
                if top_is_root && view.separator_count() == 0 && number == self.root().0 {
                    let levels = self.root().1;
                    let child = view.child(0);
                    mtr.set_root(self.data_set, child, levels - 1);
                    mtr.free(self.data_set, number);
                }
                return Ok(());
            }
            if page_bytes - view.free_bytes() > page_bytes / 4 && view.separator_count() > 0 {
                return Ok(());
            }
            let Some((above, i)) = path.last() else { return Ok(()) };
            match self.merge_non_leaf(mtr, node, above, *i)? {
                Some((separator, right)) => {
                    at = separator;
                    mtr.free(self.data_set, right);
                }
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Merges a non-leaf page, child `i` of `above`, with a neighbour. Returns the separator to take out and the page that is empty now.
    fn merge_non_leaf(
        &self,
        mtr: &mut MiniTransaction<'a>,
        node: PageHandle,
        above: &ExclusivePage<'a>,
        i: usize,
    ) -> Result<Option<(usize, u32)>> {
        let parent = NonLeaf::new(above);
        let at = if i < parent.separator_count() {
            i
        } else if i > 0 {
            i - 1
        } else {
            return Ok(None);
        };
        let node_is_left = at == i;
        let other_number = parent.child(if node_is_left { i + 1 } else { i - 1 });
        // Against the order of latches nothing is waited for, and nothing is read.
        let Some(other) = self.manager.try_exclusive(self.data_set, other_number) else { return Ok(None) };
        self.expect(other_number, &other, u16::from(NonLeaf::new(mtr.bytes(node)).level()))?;
        let own = NonLeaf::new(mtr.bytes(node));
        let other_view = NonLeaf::new(&other);
        let (left, right) = if node_is_left { (own, other_view) } else { (other_view, own) };
        let separator = parent.separator(at);
        let right_bytes = if node_is_left { other.len() - right.free_bytes() } else { mtr.bytes(node).len() - right.free_bytes() };
        let spare = self.data_set.page_bytes() / SPARE;
        if right_bytes + NonLeaf::separator_bytes(separator.len()) + spare > left.free_bytes() {
            return Ok(None);
        }
        let mut run = Vec::new();
        put_separator(&mut run, separator, right.child(0));
        run.extend_from_slice(&right.run(0));
        let count = right.separator_count() as u16 + 1;
        let own_number = mtr.number(node);
        let other = mtr.adopt(other);
        let (left, gone) = if node_is_left { (node, other_number) } else { (other, own_number) };
        mtr.apply(left, PageOp::NonLeaf(NonLeafOp::Append { count, run: &run }))?;
        Ok(Some((at, gone)))
    }
}

fn used(page: &[u8]) -> usize {
    page.len() - NonLeaf::new(page).free_bytes()
}

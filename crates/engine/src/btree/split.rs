//! Splitting a full leaf whose neighbours are full, too, and the non-leaf pages above it that have no room for one more separator.
//!
//! A split is one mini-transaction without undo. All pages it takes are made before anything is latched; those not needed after all are given back.
//! Exclusive latches are held from the lowest page that cannot split downward.
//!
//! Ascending insertion is recognised by an entry that goes behind all others of its leaf: the leaf stays full and the new one starts empty. Non-leaf pages do the same.

use super::tree::{BTree, Retry, Step, Target};
use crate::Result;
use crate::pool::{ExclusivePage, MiniTransaction, PageHandle};
use pagefold_format::FormatError;
use pagefold_format::index::leaf::Place;
use pagefold_format::index::leaf_view::LeafView;
use pagefold_format::index::limits::put_separator;
use pagefold_format::index::non_leaf::NonLeaf;
use pagefold_format::index::ops::{LeafOp, NonLeafOp};
use pagefold_format::log::Counts;
use pagefold_format::op::PageOp;
use pagefold_format::space_map::CLASS_NO_ROWS;
use pagefold_types::Rid;

/// The latched part of a path: from the lowest page that has room for another separator, or the root, to the leaf.
struct Path<'a> {
    /// Non-leaf pages from the top, each with its number.
    nodes: Vec<ExclusivePage<'a>>,
    leaf: ExclusivePage<'a>,
    levels: u16,
}

/// What has come of a try.
enum Tried<T> {
    Done(T),
    /// This page is to be read first.
    Missing(u32),
    /// The tree has changed meanwhile.
    Again,
}

/// What a leaf needs room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RoomFor {
    Insert,
    /// Of an entry from a prefix leaf: what is left can take more bytes than all did.
    Removal,
}

impl<'a> BTree<'a> {
    /// Makes room in the leaf that this entry belongs to: levels it with a neighbour or splits it. `levelled` keeps a change from levelling twice.
    pub(super) fn make_room(&self, search: &[u8], key: &[u8], rid: Rid, room_for: RoomFor, levelled: &mut usize) -> Result<()> {
        if *levelled < 1 && self.level(search, key, rid, room_for)? {
            *levelled += 1;
            return Ok(());
        }
        self.split(search, key, rid, room_for)
    }

    /// Splits the leaf that this entry belongs to, unless it has room by now.
    fn split(&self, search: &[u8], key: &[u8], rid: Rid, room_for: RoomFor) -> Result<()> {
        let mut retry = Retry::default();
        loop {
            let wanted = self.pages_for_split(search, &mut retry)?;
            let mut mtr = MiniTransaction::begin(self.manager);
            let mut fresh = Vec::with_capacity(wanted);
            let outcome = self.try_split(&mut mtr, &mut fresh, wanted, (search, key, rid, room_for), &retry);
            // What was not used goes back, whatever happened.
            fresh.iter().for_each(|handle| mtr.release(*handle));
            match outcome {
                Ok(Tried::Done(())) => {
                    drop(retry);
                    mtr.commit()?;
                    return Ok(());
                }
                Ok(Tried::Missing(page)) => {
                    drop(mtr);
                    self.fetch(page, &mut retry)?;
                }
                Ok(Tried::Again) => {}
                Err(error) => {
                    drop(mtr);
                    self.wait_for_frames(error, &mut retry)?;
                }
            }
        }
    }

    /// How many pages a split will take: a leaf, one for each full page above it, and a root when all are full.
    fn pages_for_split(&self, search: &[u8], retry: &mut Retry<'a>) -> Result<usize> {
        let most = self.separator_bytes_max();
        let mut full = 0;
        let mut to_the_root = true;
        self.leaf_again(Target::At(search), retry, |step| match step {
            Step::Start => (full, to_the_root) = (0, true),
            Step::Down(node, _) if node.free_bytes() >= most => (full, to_the_root) = (0, false),
            Step::Down(..) => full += 1,
        })?;
        Ok(1 + full + usize::from(to_the_root))
    }

    /// Done when the mini-transaction holds a split, or there is nothing to split. `fresh` are the pages made and not used.
    fn try_split(
        &self,
        mtr: &mut MiniTransaction<'a>,
        fresh: &mut Vec<PageHandle>,
        wanted: usize,
        (search, key, rid, room_for): (&[u8], &[u8], Rid, RoomFor),
        retry: &Retry<'a>,
    ) -> Result<Tried<()>> {
        for i in 0..wanted {
            fresh.push(mtr.create_in(retry.turn(), self.data_set, CLASS_NO_ROWS, i == 0)?);
        }
        let path = match self.path_for_split(search)? {
            Tried::Done(path) => path,
            Tried::Missing(page) => return Ok(Tried::Missing(page)),
            Tried::Again => return Ok(Tried::Again),
        };
        let view = LeafView::new(&path.leaf);
        let number = path.leaf.number();
        if self.has_room(&view, key, rid, room_for).map_err(|e| self.damaged(number, e))? {
            return Ok(Tried::Done(()));
        }
        let top_is_root = path.nodes.len() + 1 == usize::from(path.levels);
        let top_is_full = path.nodes.first().is_none_or(|top| NonLeaf::new(top).free_bytes() < self.separator_bytes_max());
        // The top page takes a separator unless it is full; then it is the root.
        let needed = if top_is_full { 2 + path.nodes.len() } else { path.nodes.len() };
        if fresh.len() < needed || (top_is_full && !top_is_root) {
            return Ok(Tried::Again);
        }
        let mut separator = Vec::new();
        let right = fresh.remove(0);
        let right_number = mtr.number(right);
        let empty = view.layout().format_op(right_number, view.next());
        let mut nodes = path.nodes;
        let last = view.place_before(view.end()).ok_or_else(|| self.damaged(number, "a full leaf without entries"))?;
        if room_for == RoomFor::Insert && view.is_behind_all(key, rid) {
            self.separator(&view, number, last, (key, rid), &mut separator)?;
            let leaf = mtr.adopt(path.leaf);
            mtr.apply(right, PageOp::Leaf(empty))?;
            mtr.apply(leaf, PageOp::Leaf(LeafOp::SetNext { next: right_number }))?;
        } else {
            let cut = view.cut(1, 2).ok_or_else(|| self.damaged(number, "a full leaf with one entry"))?;
            separator = self.separator_at(&view, number, cut)?;
            let (count, run) = view.run(cut, view.end()).map_err(|e| self.damaged(number, e))?;
            let leaf = mtr.adopt(path.leaf);
            mtr.apply(right, PageOp::Leaf(empty))?;
            mtr.apply(right, PageOp::Leaf(LeafOp::Append { count: count as u16, run: &run }))?;
            mtr.apply(leaf, PageOp::Leaf(LeafOp::KeepFirst { cut }))?;
            mtr.apply(leaf, PageOp::Leaf(LeafOp::SetNext { next: right_number }))?;
        }
        mtr.count(self.data_set, Counts { data_pages: 1, ..Counts::default() });
        let mut child = right_number;
        while let Some(node) = nodes.pop() {
            let view = NonLeaf::new(&node);
            if NonLeaf::separator_bytes(separator.len()) <= view.free_bytes() {
                let handle = mtr.adopt(node);
                mtr.apply(handle, PageOp::NonLeaf(NonLeafOp::Insert { separator: &separator, child }))?;
                return Ok(Tried::Done(()));
            }
            (separator, child) = self.split_non_leaf(mtr, node, fresh.remove(0), &separator, child)?;
        }
        let root = fresh.remove(0);
        let (root_number, old_root) = (mtr.number(root), self.root().0);
        let level = path.levels as u8;
        mtr.apply(root, PageOp::NonLeaf(NonLeafOp::Format { page_number: root_number, level, first_child: old_root }))?;
        mtr.apply(root, PageOp::NonLeaf(NonLeafOp::Insert { separator: &separator, child }))?;
        mtr.set_root(self.data_set, root_number, path.levels + 1);
        Ok(Tried::Done(()))
    }

    /// Does the leaf take the change now? Also when there is nothing to remove any more.
    pub(super) fn has_room(&self, view: &LeafView<'_>, key: &[u8], rid: Rid, room_for: RoomFor) -> std::result::Result<bool, FormatError> {
        match room_for {
            RoomFor::Insert => Ok(view.plan_insert(key, rid)?.fits(view)),
            RoomFor::Removal if !view.lower_bound_rid(key, rid).1 => Ok(true),
            RoomFor::Removal => Ok(view.plan_remove(key, rid)?.is_none_or(|change| view.takes(&change))),
        }
    }

    /// The separator between the pair before `cut` and the one at it.
    pub(super) fn separator_at(&self, view: &LeafView<'_>, number: u32, cut: Place) -> Result<Vec<u8>> {
        let before = view.place_before(cut).ok_or_else(|| self.damaged(number, "a cut before all entries"))?;
        let (mut first, mut separator) = (Vec::new(), Vec::new());
        let first_rid = view.pair(cut, &mut first).ok_or_else(|| self.damaged(number, "a cut behind all entries"))?;
        self.separator(view, number, before, (&first, first_rid), &mut separator)?;
        Ok(separator)
    }

    /// The separator between the pair at `last` and the one that follows.
    fn separator(
        &self,
        view: &LeafView<'_>,
        number: u32,
        last: Place,
        (first, first_rid): (&[u8], Rid),
        separator: &mut Vec<u8>,
    ) -> Result<()> {
        let mut key = Vec::new();
        let rid = view.pair(last, &mut key).ok_or_else(|| self.damaged(number, "no entry where the last one is"))?;
        put_separator(&key, rid, first, first_rid, separator);
        Ok(())
    }

    /// Splits a non-leaf page and adds a separator; returns the separator and page for the level above.
    fn split_non_leaf(
        &self,
        mtr: &mut MiniTransaction<'a>,
        node: ExclusivePage<'a>,
        right: PageHandle,
        separator: &[u8],
        child: u32,
    ) -> Result<(Vec<u8>, u32)> {
        let view = NonLeaf::new(&node);
        let (level, count) = (view.level(), view.separator_count());
        let (page_number, left_number) = (mtr.number(right), node.number());
        let format = |first_child| PageOp::NonLeaf(NonLeafOp::Format { page_number, level, first_child });
        if view.lower_bound(separator).0 == count {
            mtr.adopt(node);
            mtr.apply(right, format(child))?;
            return Ok((separator.to_vec(), page_number));
        }
        let middle = middle_separator(&view);
        if middle + 1 >= count {
            return Err(self.damaged(left_number, "a full non-leaf page with too few separators"));
        }
        let (up, first, run) = (view.separator(middle).to_vec(), view.child(middle + 1), view.run(middle + 1));
        let left = mtr.adopt(node);
        mtr.apply(right, format(first))?;
        mtr.apply(right, PageOp::NonLeaf(NonLeafOp::Append { count: (count - middle - 1) as u16, run: &run }))?;
        mtr.apply(left, PageOp::NonLeaf(NonLeafOp::KeepFirst { count: middle as u16 }))?;
        let half = if separator < up.as_slice() { left } else { right };
        mtr.apply(half, PageOp::NonLeaf(NonLeafOp::Insert { separator, child }))?;
        Ok((up, page_number))
    }

    /// Latches the path of a split exclusively.
    fn path_for_split(&self, search: &[u8]) -> Result<Tried<Path<'a>>> {
        let (root, levels) = self.root();
        // Read like any other, when the new pages have been given back.
        let Some(mut page) = self.manager.exclusive_resident(self.data_set, root)? else { return Ok(Tried::Missing(root)) };
        if self.root() != (root, levels) {
            return Ok(Tried::Again);
        }
        let mut nodes = Vec::new();
        for depth in 1..levels {
            self.expect(page.number(), &page, levels - depth)?;
            let view = NonLeaf::new(&page);
            if view.free_bytes() >= self.separator_bytes_max() {
                nodes.clear();
            }
            let child = view.child(view.child_for(search));
            nodes.push(page);
            match self.manager.exclusive_resident(self.data_set, child)? {
                Some(next) => page = next,
                None => return Ok(Tried::Missing(child)),
            }
        }
        self.expect(page.number(), &page, 0)?;
        Ok(Tried::Done(Path { nodes, leaf: page, levels }))
    }
}

/// The separator with about half of the bytes before it.
fn middle_separator(node: &NonLeaf<'_>) -> usize {
    let bytes = |i: usize| NonLeaf::separator_bytes(node.separator(i).len());
    let total: usize = (0..node.separator_count()).map(bytes).sum();
    let mut sum = 0;
    for i in 0..node.separator_count() {
        sum += bytes(i);
        if sum * 2 >= total {
            return i.max(1);
        }
    }
    node.separator_count() / 2
}

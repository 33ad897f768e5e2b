//! Merging leaves.
//!
//! A leaf without entries is always taken out: the leaf before it, under the same page, then names the one after it; where it is the first leaf of all, nothing names it. Nothing is copied, and
//! how full its neighbours are does not matter. Where it is the first child of its page but not the first leaf of all, it takes the entries of the leaf after it, whose page goes instead.
//! Thin leaves, two to five side by side, are merged into one fewer: as few as will do. So no five leaves side by side stay much below three quarters of what they hold.
//!
//! Each is one mini-transaction without undo that takes one page from the tree. It comes behind the delete that made the leaf thin; when a crash comes in between, who works next on a neighbour
//! takes an empty leaf out.

use super::moves::Moves;
use super::neighbours::Neighbours;
use super::shrink::is_small;
use super::tree::BTree;
use crate::Result;
use crate::pool::{MiniTransaction, PageHandle};
use pagefold_format::index::leaf_view::FULL;
use pagefold_format::index::non_leaf::NonLeaf;
use pagefold_format::index::ops::{LeafOp, NonLeafOp};
use pagefold_format::log::Counts;
use pagefold_format::op::PageOp;
use std::ops::Range;

/// Merged leaves are not fuller than this, else the next insert would split them again.
const MERGED: usize = FULL / 16 * 15;

/// So many spreads that should fit by the fill of leaves are tried for whether they do.
const TRIES: usize = 2;

/// So many leaves to either side are looked at.
const REACH: usize = 2;

impl<'a> BTree<'a> {
    /// Takes the leaf where `search` belongs out if it is empty; merges it with its neighbours if one leaf fewer will do.
    pub(super) fn merge(&self, search: &[u8]) -> Result<()> {
        loop {
            let Some(leaves) = self.neighbours(search, REACH)? else { return Ok(()) };
            if leaves.leaves.len() < 2 {
                // An only child has no neighbour unless the page above gets another child.
                drop(leaves);
                if self.shrink(search, 1)? {
                    continue;
                }
                return Ok(());
            }
            let empty = (0..leaves.leaves.len()).find(|i| leaves.view(*i).is_empty());
            let small = match empty {
                Some(0) if leaves.first == 0 && leaves.at_left_edge => Some(self.unlink_first(leaves)?),
                // The leaf behind comes in the place of the empty one.
                Some(0) => self.merge_by(leaves, 1, |moves| moves.empty(1, 0))?,
                Some(gone) => self.merge_by(leaves, gone, |_| Some(()))?,
                None => self.merge_thin(leaves)?,
            };
            let Some(small) = small else { return Ok(()) };
            if small {
                self.shrink(search, 1)?;
            }
            if empty.is_none() {
                return Ok(());
            }
        }
    }

    /// Takes an empty leaf out that comes before all others. True: the page above has become small.
    fn unlink_first(&self, leaves: Neighbours<'a>) -> Result<bool> {
        let (gone, child) = (leaves.leaves[0].number(), leaves.leaves[1].number());
        let Neighbours { parent, leaves, .. } = leaves;
        let mut mtr = MiniTransaction::begin(self.manager);
        let parent = mtr.adopt(parent);
        for leaf in leaves {
            mtr.adopt(leaf);
        }
        mtr.apply(parent, PageOp::NonLeaf(NonLeafOp::SetFirstChild { child }))?;
        mtr.apply(parent, PageOp::NonLeaf(NonLeafOp::Remove { index: 0 }))?;
        self.take_out(mtr, parent, gone)
    }

    /// Merges leaves into one fewer, as few as will do.
    fn merge_thin(&self, leaves: Neighbours<'a>) -> Result<Option<bool>> {
        let fills: Vec<usize> = (0..leaves.leaves.len()).map(|i| leaves.view(i).fill()).collect();
        for spread in spreads(&fills, leaves.own).take(TRIES) {
            let mut moves = Moves::new(&leaves);
            if spread.make(&mut moves).is_some() && moves.separate(&leaves, Some(spread.gone)) {
                return self.make(leaves, spread.gone, &moves).map(Some);
            }
        }
        Ok(None)
    }

    /// Takes leaf `gone` out when `empty` has moved what it has elsewhere; `None` when that does not fit.
    fn merge_by(&self, leaves: Neighbours<'a>, gone: usize, empty: impl FnOnce(&mut Moves) -> Option<()>) -> Result<Option<bool>> {
        let mut moves = Moves::new(&leaves);
        if empty(&mut moves).is_none() || !moves.separate(&leaves, Some(gone)) {
            return Ok(None);
        }
        self.make(leaves, gone, &moves).map(Some)
    }

    /// Makes the moves; the leaf `gone` goes, and the leaf before it names the next. True: the page above has become small.
    fn make(&self, leaves: Neighbours<'a>, gone: usize, moves: &Moves) -> Result<bool> {
        let next = leaves.view(gone).next();
        let mut mtr = MiniTransaction::begin(self.manager);
        let (parent, leaves) = leaves.make(&mut mtr, moves)?;
        mtr.apply(leaves[gone - 1], PageOp::Leaf(LeafOp::SetNext { next }))?;
        let gone = mtr.number(leaves[gone]);
        self.take_out(mtr, parent, gone)
    }

    fn take_out(&self, mut mtr: MiniTransaction<'a>, parent: PageHandle, gone: u32) -> Result<bool> {
        mtr.free(self.data_set, gone);
        mtr.count(self.data_set, Counts { data_pages: -1, ..Counts::default() });
        let parent = mtr.bytes(parent);
        let small = is_small(&NonLeaf::new(parent), parent.len());
        mtr.commit()?;
        Ok(small)
    }
}

/// How the entries of leaf `gone` are spread over the leaves of `range`, so that all others are about as full.
struct Spread {
    range: Range<usize>,
    gone: usize,
    /// What each leaf gives to the one next to it, on the way from leaf `gone` to both ends; leaf `gone` gives this to the one before it, the rest to the one behind.
    flows: Vec<usize>,
}

/// By their fill alone: which leaves go on one fewer? Few leaves first.
fn spreads(fills: &[usize], own: usize) -> impl Iterator<Item = Spread> {
    (2..=fills.len()).filter_map(move |count| {
        let firsts = own.saturating_sub(count - 1)..=own.min(fills.len() - count);
        firsts.flat_map(|first| (first + 1..first + count).map(move |gone| (first, gone))).find_map(|(first, gone)| {
            let range = first..first + count;
            flows(fills, range.clone(), gone).map(|flows| Spread { range, gone, flows })
        })
    })
}

/// [`Spread::flows`]; `None` when leaves would be too full, or one would have to give more than it has.
fn flows(fills: &[usize], range: Range<usize>, gone: usize) -> Option<Vec<usize>> {
    let level = fills[range.clone()].iter().sum::<usize>().div_ceil(range.len() - 1);
    if level > MERGED {
        return None;
    }
    let mut flows = vec![0; fills.len()];
    let mut wanted = 0;
    for i in range.start..gone {
        wanted = (wanted + level).checked_sub(fills[i])?;
        flows[i + 1] = wanted;
    }
    let mut behind = 0;
    for i in (gone + 1..range.end).rev() {
        behind = (behind + level).checked_sub(fills[i])?;
        if i - 1 != gone {
            flows[i - 1] = behind;
        }
    }
    let enough = range.filter(|i| *i != gone).all(|i| flows[i] < fills[i]);
    enough.then_some(flows)
}

impl Spread {
    /// Does it on copies; `None` when something does not fit after all, or a leaf would be too full.
    fn make(&self, moves: &mut Moves) -> Option<()> {
        let (gone, last) = (self.gone, self.range.end - 1);
        for i in self.range.start + 1..gone {
            moves.shift_some(i, i - 1, self.flows[i])?;
        }
        for i in (gone + 1..last).rev() {
            moves.shift_some(i, i + 1, self.flows[i])?;
        }
        if gone < last && self.flows[gone] < moves.view(gone).fill() {
            moves.shift_some(gone, gone - 1, self.flows[gone])?;
            moves.empty(gone, gone + 1)?;
        } else {
            moves.empty(gone, gone - 1)?;
        }
        self.range.clone().all(|i| i == gone || moves.view(i).fill() <= MERGED).then_some(())
    }
}

//! Moving entries between leaves side by side.
//!
//! All is worked out on copies first: so it is known to fit, to the byte, before a page changes. Then the same ops are applied to the pages, by one mini-transaction without undo.

use super::neighbours::Neighbours;
use super::tree::search_bytes;
use crate::Result;
use crate::pool::{MiniTransaction, PageHandle};
use pagefold_format::index::leaf::Place;
use pagefold_format::index::leaf_view::{FULL, LeafLayout, LeafView};
use pagefold_format::index::limits::put_separator;
use pagefold_format::index::non_leaf::NonLeaf;
use pagefold_format::index::ops::{LeafOp, NonLeafOp};
use pagefold_format::op::PageOp;
use pagefold_format::page;

/// Less is not worth changing two pages.
const LITTLE: usize = FULL / 64;

/// A change of a leaf.
enum Step {
    Append(u16, Vec<u8>),
    Prepend(u16, Vec<u8>),
    KeepFirst(Place),
    KeepFrom(Place),
    Format(LeafLayout, u32, u32),
}

impl Step {
    fn op(&self) -> LeafOp<'_> {
        match self {
            Step::Append(count, run) => LeafOp::Append { count: *count, run },
            Step::Prepend(count, run) => LeafOp::Prepend { count: *count, run },
            Step::KeepFirst(cut) => LeafOp::KeepFirst { cut: *cut },
            Step::KeepFrom(cut) => LeafOp::KeepFrom { cut: *cut },
            Step::Format(layout, number, next) => layout.format_op(*number, *next),
        }
    }
}

/// Leaves as they will be.
pub(super) struct Moves {
    images: Vec<Vec<u8>>,
    /// Changes in order, each with its leaf.
    steps: Vec<(usize, Step)>,
    /// Changes of the page above.
    above: Vec<(u16, Option<Vec<u8>>)>,
}

impl Moves {
    pub(super) fn new(leaves: &Neighbours<'_>) -> Moves {
        Moves { images: leaves.leaves.iter().map(|leaf| leaf.to_vec()).collect(), steps: Vec::new(), above: Vec::new() }
    }

    pub(super) fn view(&self, i: usize) -> LeafView<'_> {
        LeafView::new(&self.images[i])
    }

    fn apply(&mut self, i: usize, step: Step) -> Option<()> {
        step.op().apply(&mut self.images[i]).ok()?;
        self.steps.push((i, step));
        Some(())
    }

    /// All entries of a leaf go to the one before or behind it. `None` when that does not fit.
    pub(super) fn empty(&mut self, from: usize, to: usize) -> Option<()> {
        if self.view(to).is_empty() {
            // With its slot bits it might take more bytes for them.
            let (number, next) = (page::page_number(&self.images[to]), self.view(to).next());
            self.apply(to, Step::Format(self.view(from).layout(), number, next))?;
        }
        let view = self.view(from);
        let (count, run) = view.run(Place::default(), view.end()).ok()?;
        let (count, forward) = (count as u16, to > from);
        self.apply(to, if forward { Step::Prepend(count, run) } else { Step::Append(count, run) })
    }

    /// Entries of about this fill go from a leaf to the one before or behind it. `None` when that does not fit, or there are too few entries.
    pub(super) fn shift(&mut self, from: usize, to: usize, fill: usize) -> Option<()> {
        let (view, forward) = (self.view(from), to > from);
        let all = view.fill();
        let cut = view.cut(if forward { all.saturating_sub(fill) } else { fill }, all)?;
        let (start, end) = if forward { (cut, view.end()) } else { (Place::default(), cut) };
        let (count, run) = view.run(start, end).ok()?;
        let count = count as u16;
        self.apply(to, if forward { Step::Prepend(count, run) } else { Step::Append(count, run) })?;
        self.apply(from, if forward { Step::KeepFirst(cut) } else { Step::KeepFrom(cut) })
    }

    /// As [`Self::shift`], unless it is too little to be worthwhile.
    pub(super) fn shift_some(&mut self, from: usize, to: usize, fill: usize) -> Option<()> {
        if fill < LITTLE { Some(()) } else { self.shift(from, to, fill) }
    }

    /// The leaf `gone` and the separator before it go from the page above; separators that do not part the leaves as they will be are replaced. False when the page above has no room for
    /// that.
    pub(super) fn separate(&mut self, leaves: &Neighbours<'_>, gone: Option<usize>) -> bool {
        let mut above = leaves.parent.to_vec();
        if let Some(gone) = gone {
            self.above.push(((leaves.first + gone - 1) as u16, None));
            if op_above(self.above[0].0, None).apply(&mut above).is_err() {
                return false;
            }
        }
        let left: Vec<usize> = (0..self.images.len()).filter(|i| Some(*i) != gone).collect();
        for (at, pair) in left.windows(2).enumerate() {
            let index = leaves.first + at;
            let Some(between) = separator(&self.view(pair[0]), &self.view(pair[1]), NonLeaf::new(&above).separator(index)) else {
                continue;
            };
            if op_above(index as u16, Some(&between)).apply(&mut above).is_err() {
                return false;
            }
            self.above.push((index as u16, Some(between)));
        }
        true
    }
}

impl<'a> Neighbours<'a> {
    /// Makes the moves on the pages, which are the mini-transaction's from now on: handles of the page above and of the leaves.
    pub(super) fn make(self, mtr: &mut MiniTransaction<'a>, moves: &Moves) -> Result<(PageHandle, Vec<PageHandle>)> {
        let parent = mtr.adopt(self.parent);
        let leaves: Vec<PageHandle> = self.leaves.into_iter().map(|leaf| mtr.adopt(leaf)).collect();
        for (i, step) in &moves.steps {
            mtr.apply(leaves[*i], PageOp::Leaf(step.op()))?;
        }
        for (index, separator) in &moves.above {
            mtr.apply(parent, PageOp::NonLeaf(op_above(*index, separator.as_deref())))?;
        }
        Ok((parent, leaves))
    }
}

/// The separator between two leaves; `None` when that which there is parts them.
fn separator(left: &LeafView<'_>, right: &LeafView<'_>, old: &[u8]) -> Option<Vec<u8>> {
    let (mut last, mut first, mut separator) = (Vec::new(), Vec::new(), Vec::new());
    let last_rid = left.place_before(left.end()).and_then(|place| left.pair(place, &mut last));
    let first_rid = right.pair(Place::default(), &mut first);
    let parts = last_rid.is_none_or(|rid| search_bytes(&last, rid).as_slice() < old)
        && first_rid.is_none_or(|rid| old <= search_bytes(&first, rid).as_slice());
    if parts {
        return None;
    }
    put_separator(&last, last_rid?, &first, first_rid?, &mut separator);
    Some(separator)
}

fn op_above(index: u16, separator: Option<&[u8]>) -> NonLeafOp<'_> {
    match separator {
        Some(separator) => NonLeafOp::Replace { index, separator },
        None => NonLeafOp::Remove { index },
    }
}

//! Leaves side by side under one page: what levelling and merging work on.
//!
//! The page above is latched exclusively, then leaves from left to right, in the order of all latches. While the page above is latched nobody comes to any of its leaves, and who
//! was at one before has let go of it when its latch is had: so a leaf that is taken out here is nobody's.

use super::tree::{BTree, Retry, Step};
use crate::Result;
use crate::pool::ExclusivePage;
use pagefold_format::index::leaf_view::LeafView;
use pagefold_format::index::non_leaf::NonLeaf;

/// A leaf and its neighbours under the same page.
pub(super) struct Neighbours<'a> {
    /// The page above.
    pub(super) parent: ExclusivePage<'a>,
    /// Neighbours in order, without gaps.
    pub(super) leaves: Vec<ExclusivePage<'a>>,
    /// The first of them is this child.
    pub(super) first: usize,
    /// The leaf that was looked for, among `leaves`.
    pub(super) own: usize,
    /// No leaf comes before the first child of the page above.
    pub(super) at_left_edge: bool,
}

impl Neighbours<'_> {
    pub(super) fn view(&self, i: usize) -> LeafView<'_> {
        LeafView::new(&self.leaves[i])
    }
}

impl<'a> BTree<'a> {
    /// The leaf where `search` belongs with its neighbours, up to so many to either side; more where it is the first or the last. Next to it they are read when they are not in memory, further away
    /// they are left out then. `None` when the leaf is the root.
    pub(super) fn neighbours(&self, search: &[u8], reach: usize) -> Result<Option<Neighbours<'a>>> {
        let mut retry = Retry::default();
        loop {
            let mut at_left_edge = true;
            let parent = self.page_for_change(search, 1, &mut retry, |step| match step {
                Step::Start => at_left_edge = true,
                Step::Down(_, i) => at_left_edge &= i == 0,
            })?;
            let Some(parent) = parent else { return Ok(None) };
            let view = NonLeaf::new(&parent);
            let (child, last) = (view.child_for(search), view.separator_count());
            let from = child.saturating_sub(reach).min(last.saturating_sub(2 * reach));
            let mut first = from;
            let mut leaves = Vec::with_capacity(2 * reach + 1);
            let mut missing = None;
            for i in from..=last.min(from + 2 * reach) {
                let number = view.child(i);
                if let Some(leaf) = self.manager.exclusive_resident(self.data_set, number)? {
                    self.expect(number, &leaf, 0)?;
                    leaves.push(leaf);
                    continue;
                }
                if i > child + 1 {
                    break;
                }
                if i + 1 < child {
                    leaves.clear();
                    first = i + 1;
                    continue;
                }
                missing = Some(number);
                break;
            }
            let Some(number) = missing else {
                return Ok(Some(Neighbours { parent, leaves, first, own: child - first, at_left_edge }));
            };
            drop((parent, leaves));
            self.fetch(number, &mut retry)?;
        }
    }
}

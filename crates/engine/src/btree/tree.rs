//! Descents.
//!
//! Latches are taken from the top down and, on one level, from left to right; so nobody waits in a circle. A child is latched before its parent is let go.
//! No latch is held while a page is read or a frame is sought: a page that is not in memory is read with all latches released, and the descent starts again.
//! New pages are made before anything is latched, and given back before a page is read.
//!
//! A descent ends, however little memory there is: one that misses a page which it has had read before waits for its turn to have frames that nobody takes
//! (`pool/reserve.rs`). Then each page that it needs is missed once at most. A turn is taken with nothing latched, and a function that may take one is called by nobody who has one: they share it, as a
//! [`Retry`].
//!
//! The root's number changes only while its page is latched exclusively: whoever has latched the page and then finds its number still to be the root's has the root.
//!
//! A descent knows the fences of the leaf it ends in: all that is between them, and nothing else, is below it, and was when its latch was taken. Cursors go on by
//! fences; there is nothing to repair when leaves split or merge behind them.

use crate::data_set::DataSet;
use crate::index::{Index, IndexFormat};
use crate::pool::{Access, BufferManager, ExclusivePage, SharedPage, Turn};
use crate::{Error, Result};
use pagefold_format::index::leaf_view::LeafLayout;
use pagefold_format::index::non_leaf::NonLeaf;
use pagefold_format::page::{self, PageType};
use pagefold_types::{RID_BYTES, Rid, key_bytes_max};

/// A B+tree. Keys are prefix-free byte strings.
#[derive(Clone, Copy, Debug)]
pub struct BTree<'a> {
    pub(super) manager: &'a BufferManager,
    pub(super) data_set: &'a DataSet,
    pub(super) index: &'a Index,
}

impl Index {
    /// The tree in its pages.
    #[must_use]
    pub fn tree(&self) -> BTree<'_> {
        BTree { manager: self.manager(), data_set: self.data_set(), index: self }
    }
}

/// What a descent does. It starts again when a page had to be read.
#[derive(Clone, Copy)]
pub(super) enum Step<'n> {
    /// It starts at the root; what was seen before is void.
    Start,
    /// From this page down to this child.
    Down(NonLeaf<'n>, usize),
}

/// Where a descent goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target<'k> {
    /// The leaf that holds, or would hold, the first entry not less than this.
    At(&'k [u8]),
    /// The leaf that holds, or would hold, the last entry less than this; `None`: the last entry.
    Before(Option<&'k [u8]>),
}

impl<'k> Target<'k> {
    /// The key that is looked for; none where it is the last one.
    #[inline]
    fn key(self) -> Option<&'k [u8]> {
        match self {
            Target::At(search) => Some(search),
            Target::Before(search) => search,
        }
    }

    pub(super) fn child(self, node: &NonLeaf<'_>) -> usize {
        match self {
            Target::At(search) => node.child_for(search),
            Target::Before(Some(search)) => node.lower_bound(search).0,
            Target::Before(None) => node.separator_count(),
        }
    }
}

/// The bounds of what is below a page: from the low one, which is included, to the high one, which is not. `None`: no bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fences {
    pub(super) low: Option<Vec<u8>>,
    pub(super) high: Option<Vec<u8>>,
}

impl Fences {
    /// Narrows them to child `i` of `node`.
    pub(super) fn narrow(&mut self, node: &NonLeaf<'_>, i: usize) {
        if i > 0 {
            set(&mut self.low, node.separator(i - 1));
        }
        if i < node.separator_count() {
            set(&mut self.high, node.separator(i));
        }
    }
}

fn set(fence: &mut Option<Vec<u8>>, bytes: &[u8]) {
    let fence = fence.get_or_insert_default();
    fence.clear();
    fence.extend_from_slice(bytes);
}

/// A descent has so many pages read before it waits for its turn, though none of them twice: what it needs may be others each time.
const READS_MAX: usize = 64;

/// What a descent that starts again remembers.
#[derive(Debug, Default)]
pub(super) struct Retry<'a> {
    /// The page whose read failed, so that an error counts only when the tree still leads there.
    failed: Option<u32>,
    /// Pages that were read without a turn.
    read: Vec<u32>,
    turn: Option<Turn<'a>>,
}

impl<'a> Retry<'a> {
    /// The turn, when there is one.
    #[inline]
    pub(super) fn turn(&self) -> Option<&Turn<'a>> {
        self.turn.as_ref()
    }
}

impl<'a> BTree<'a> {
    /// How leaves are laid out that inserts make: with no slot bits at first; inserts raise them.
    pub(super) fn leaf_layout(&self) -> LeafLayout {
        self.index.leaf_layout(0)
    }

    fn is_prefix(&self) -> bool {
        self.index.attributes().format == IndexFormat::Prefix
    }

    /// The longest separator that can come: the longest key and a RID.
    pub(super) fn separator_bytes_max(&self) -> usize {
        let longest = key_bytes_max(self.data_set.page_bytes());
        NonLeaf::separator_bytes(self.index.key_layout().fixed_len().map_or(longest, |n| n.min(longest)) + RID_BYTES)
    }

    /// Root page and number of levels; (0, 0) when there is no page yet.
    pub(super) fn root(&self) -> (u32, u16) {
        self.data_set.root()
    }

    pub(super) fn damaged(&self, number: u32, reason: impl ToString) -> Error {
        self.data_set.corrupt(number, reason)
    }

    /// Refuses a page that is not what the level wants.
    #[inline]
    pub(super) fn expect(&self, number: u32, bytes: &[u8], levels_below: u16) -> Result<()> {
        let fits = match page::page_type(bytes) {
            Some(PageType::Leaf) => levels_below == 0 && !self.is_prefix(),
            Some(PageType::PrefixLeaf) => levels_below == 0 && self.is_prefix(),
            Some(PageType::NonLeaf) => levels_below > 0 && u16::from(NonLeaf::new(bytes).level()) == levels_below,
            _ => false,
        };
        if fits { Ok(()) } else { Err(self.damaged(number, format!("not an index page of level {levels_below}"))) }
    }

    /// Reads a page with no latch held, and waits for who changes it.
    pub(super) fn fetch(&self, number: u32, retry: &mut Retry<'a>) -> Result<()> {
        if retry.turn.is_none() {
            // Had it stayed, the descent would not come here again.
            if retry.read.contains(&number) || retry.read.len() == READS_MAX {
                retry.turn = Some(self.manager.take_turn());
            } else {
                retry.read.push(number);
            }
        }
        match self.manager.shared_in(retry.turn(), self.data_set, number, Access::Random) {
            Ok(_) => retry.failed = None,
            // The page may have been given back since its number was found. If it was not, the next descent comes here again.
            Err(_) if retry.failed != Some(number) => retry.failed = Some(number),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Waits for a turn where no frame could be had without one; every other error is one. Nothing is latched.
    pub(super) fn wait_for_frames(&self, error: Error, retry: &mut Retry<'a>) -> Result<()> {
        match error {
            Error::PoolFull(_) if retry.turn.is_none() => {
                retry.turn = Some(self.manager.take_turn());
                Ok(())
            }
            error => Err(error),
        }
    }

    /// Descends to a leaf with shared latches; `visit` sees each step. `None` when there is no page yet.
    #[inline]
    pub(super) fn leaf(&self, target: Target<'_>, visit: impl FnMut(Step<'_>)) -> Result<Option<SharedPage<'a>>> {
        self.leaf_again(target, &mut Retry::default(), visit)
    }

    /// As [`Self::leaf`], as part of something that starts again itself.
    #[inline]
    pub(super) fn leaf_again(
        &self,
        target: Target<'_>,
        retry: &mut Retry<'a>,
        mut visit: impl FnMut(Step<'_>),
    ) -> Result<Option<SharedPage<'a>>> {
        'restart: loop {
            visit(Step::Start);
            let (root, levels) = self.root();
            if root == 0 {
                // One that is damaged looks like an empty one.
                return self.index.check_usable().map(|()| None);
            }
            let mut page = match self.manager.shared_in(retry.turn(), self.data_set, root, Access::Random) {
                Ok(page) => page,
                Err(error) => {
                    if self.root() == (root, levels) {
                        self.wait_for_frames(error, retry)?;
                    }
                    continue;
                }
            };
            if self.root() != (root, levels) {
                continue;
            }
            for depth in 1..levels {
                self.expect(page.number(), &page, levels - depth)?;
                let node = NonLeaf::new(&page);
                let i = target.child(&node);
                visit(Step::Down(node, i));
                let child = node.child(i);
                match self.manager.shared_resident(self.data_set, child) {
                    Some(next) => page = next,
                    None => {
                        drop(page);
                        self.fetch(child, retry)?;
                        continue 'restart;
                    }
                }
            }
            self.expect(page.number(), &page, 0)?;
            self.index.note_request(page.number(), target.key());
            self.data_set.counters.getpages.add_lookup(0);
            return Ok(Some(page));
        }
    }

    /// Descends to a leaf and its fences.
    pub(super) fn leaf_and_fences(&self, target: Target<'_>, mut visit: impl FnMut(Step<'_>)) -> Result<Option<(SharedPage<'a>, Fences)>> {
        let mut fences = Fences::default();
        let leaf = self.leaf(target, |step| {
            match step {
                Step::Start => fences = Fences::default(),
                Step::Down(node, i) => fences.narrow(&node, i),
            }
            visit(step);
        })?;
        Ok(leaf.map(|leaf| (leaf, fences)))
    }

    /// Descends with shared latches to a leaf latched exclusively. `visit` as for [`Self::leaf`].
    pub(super) fn leaf_for_change(&self, search: &[u8], visit: impl FnMut(Step<'_>)) -> Result<Option<ExclusivePage<'a>>> {
        self.page_for_change(search, 0, &mut Retry::default(), visit)
    }

    fn note_change(&self, level: u16, page: u32, search: &[u8]) {
        if level == 0 {
            self.index.note_request(page, Some(search));
        }
    }

    /// Descends with shared latches to a page of this level, so many levels above the leaves, latched exclusively; `None` when the tree has no such level.
    pub(super) fn page_for_change(
        &self,
        search: &[u8],
        level: u16,
        retry: &mut Retry<'a>,
        mut visit: impl FnMut(Step<'_>),
    ) -> Result<Option<ExclusivePage<'a>>> {
        'restart: loop {
            visit(Step::Start);
            let (root, levels) = self.root();
            if levels <= level {
                return self.index.check_usable().map(|()| None);
            }
            if levels == level + 1 {
                let page = match self.manager.exclusive_in(retry.turn(), self.data_set, root) {
                    Ok(page) => page,
                    Err(error) => {
                        if self.root() == (root, levels) {
                            self.wait_for_frames(error, retry)?;
                        }
                        continue;
                    }
                };
                if self.root() == (root, levels) {
                    self.expect(root, &page, level)?;
                    self.note_change(level, root, search);
                    return Ok(Some(page));
                }
                continue;
            }
            let mut page = match self.manager.shared_in(retry.turn(), self.data_set, root, Access::Random) {
                Ok(page) => page,
                Err(error) => {
                    if self.root() == (root, levels) {
                        self.wait_for_frames(error, retry)?;
                    }
                    continue;
                }
            };
            if self.root() != (root, levels) {
                continue;
            }
            for below in (level..levels - 1).rev() {
                self.expect(page.number(), &page, below + 1)?;
                let node = NonLeaf::new(&page);
                let i = node.child_for(search);
                visit(Step::Down(node, i));
                let child = node.child(i);
                if below == level {
                    if let Some(found) = self.manager.exclusive_resident(self.data_set, child)? {
                        self.expect(child, &found, level)?;
                        self.note_change(level, child, search);
                        return Ok(Some(found));
                    }
                } else if let Some(next) = self.manager.shared_resident(self.data_set, child) {
                    page = next;
                    continue;
                }
                drop(page);
                self.fetch(child, retry)?;
                continue 'restart;
            }
            return Err(self.damaged(root, format!("{levels} levels")));
        }
    }
}

/// `key || RID`, which orders like (key, RID).
pub(super) fn search_bytes(key: &[u8], rid: Rid) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(key.len() + RID_BYTES);
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(&rid.to_bytes());
    bytes
}

//! Ranges of entries, forward and backward.
//!
//! A cursor copies one leaf after the other and holds no latch while its user works; it goes on at the fence of the copied leaf. So each leaf is delivered as it was at one moment, every
//! entry that was there all the time is delivered once, in order, and what happens to leaves meanwhile does not matter.
//!
//! From its second leaf on a cursor asks for the leaves to come, as the non-leaf page above lists them (dynamic prefetch).

use super::tree::{BTree, Fences, Step, Target};
use crate::Result;
use crate::pool::Prefetch;
use pagefold_format::FormatError;
use pagefold_format::index::leaf::{self, Leaf, Place};
use pagefold_format::index::leaf_view::LeafView;
use pagefold_format::index::non_leaf::NonLeaf;
use pagefold_format::index::prefix::PrefixLeaf;
use pagefold_format::index::prefix::reader::{BlockRids, PlaceReader};
use pagefold_format::page::{self, PageType};
use pagefold_types::{KeyRange, Rid};
use std::cell::Cell;

/// Which way a cursor goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// In key order.
    Forward,
    /// Against it.
    Backward,
}

/// A part of a leaf: places from `from` up to `to`.
#[derive(Clone, Copy)]
pub struct Run<'c> {
    /// The leaf.
    pub leaf: LeafView<'c>,
    /// First place.
    pub from: Place,
    /// First place behind.
    pub to: Place,
}

/// Where a cursor goes on.
#[derive(Debug)]
enum Next {
    At(Vec<u8>),
    Before(Option<Vec<u8>>),
    Done,
}

impl Next {
    /// Before the first entry of a range.
    fn of(range: &KeyRange, direction: Direction) -> Next {
        match direction {
            _ if range.end.as_ref().is_some_and(|end| *end <= range.start) => Next::Done,
            Direction::Forward => Next::At(range.start.clone()),
            Direction::Backward => Next::Before(range.end.clone()),
        }
    }
}

/// Goes through a range of entries.
#[derive(Debug)]
pub struct Cursor<'a> {
    tree: BTree<'a>,
    position: Position,
}

thread_local! {
    /// Memory of a copy that is not needed any more: most cursors copy one leaf, and an allocator takes longer for a page than the copy does.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The bytes of a leaf.
#[derive(Debug, Default)]
struct LeafCopy(Vec<u8>);

impl LeafCopy {
    fn take(&mut self, page: &[u8]) {
        if self.0.capacity() == 0 {
            self.0 = SPARE.take();
        }
        self.0.clear();
        self.0.extend_from_slice(page);
    }
}

impl std::ops::Deref for LeafCopy {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for LeafCopy {
    fn drop(&mut self) {
        let spare = std::mem::take(&mut self.0);
        if spare.capacity() > 0 {
            // While a thread ends there is nowhere to keep it.
            let _ = SPARE.try_with(|kept| kept.set(spare));
        }
    }
}

/// Where a cursor is, without its tree: for who holds the index otherwise.
#[derive(Debug)]
pub(crate) struct Position {
    range: KeyRange,
    direction: Direction,
    next: Next,
    /// Copy of the current leaf.
    page: LeafCopy,
    /// Where the cursor is, if the current leaf is a prefix leaf.
    reader: PlaceReader,
    /// RIDs of the block that it is in, where keys are not looked at.
    block: BlockRids,
    from: Place,
    to: Place,
    leaves: u64,
    prefetch: Lookahead,
}

/// Children of the non-leaf page above the current leaf that come next.
#[derive(Debug, Default)]
struct Lookahead {
    wanted: Vec<u32>,
    /// The next request is due when the cursor has come to this separator.
    due: Option<Vec<u8>>,
    /// The same, once `wanted` has been asked for: a descent may start again in between.
    due_then: Option<Vec<u8>>,
}

/// Prefetch reaches so many I/Os ahead.
const PREFETCH_IOS: usize = 2;

impl<'a> Cursor<'a> {
    pub(super) fn new(tree: BTree<'a>, range: KeyRange, direction: Direction) -> Cursor<'a> {
        Cursor { tree, position: Position::new(range, direction) }
    }

    /// The next entry.
    ///
    /// # Errors
    /// When a page is damaged or cannot be read.
    #[expect(clippy::should_implement_trait, reason = "the key is lent")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<(&[u8], Rid)>> {
        self.position.next(&self.tree)
    }

    /// What is left of the current leaf, or else the next leaf, all at once. Its entries are in key order also when the cursor goes backward.
    ///
    /// # Errors
    /// When a page is damaged or cannot be read.
    pub fn next_run(&mut self) -> Result<Option<Run<'_>>> {
        let position = &mut self.position;
        if !position.has_more(&self.tree)? {
            return Ok(None);
        }
        let (from, to) = (position.from, position.to);
        position.from = position.to;
        Ok(Some(Run { leaf: LeafView::new(&position.page), from, to }))
    }

    /// Leaves read so far.
    #[must_use]
    pub fn leaf_count(&self) -> u64 {
        self.position.leaves
    }
}

impl Position {
    /// Before the first entry of a range.
    pub(crate) fn new(range: KeyRange, direction: Direction) -> Position {
        Position {
            next: Next::of(&range, direction),
            range,
            direction,
            page: LeafCopy::default(),
            reader: PlaceReader::new(),
            block: BlockRids::default(),
            from: Place::default(),
            to: Place::default(),
            leaves: 0,
            prefetch: Lookahead::default(),
        }
    }

    /// Goes before the first entry of another range.
    pub(crate) fn restart(&mut self, range: KeyRange) {
        self.next = Next::of(&range, self.direction);
        self.range = range;
        (self.from, self.to) = (Place::default(), Place::default());
        (self.leaves, self.prefetch) = (0, Lookahead::default());
    }

    /// Is there another entry? Copies the next leaf if need be.
    #[inline]
    pub(crate) fn has_more(&mut self, tree: &BTree<'_>) -> Result<bool> {
        while self.from >= self.to {
            if !self.load(tree)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The next entry of the tree.
    #[inline]
    pub(crate) fn next(&mut self, tree: &BTree<'_>) -> Result<Option<(&[u8], Rid)>> {
        if !self.has_more(tree)? {
            return Ok(None);
        }
        if page::page_type(&self.page) == Some(PageType::PrefixLeaf) {
            return self.next_of_prefix_leaf(tree).map(Some);
        }
        let view = Leaf::new(&self.page);
        let place = match self.direction {
            Direction::Forward => {
                let place = self.from;
                self.from = if place.rid + 1 < view.entry(place.entry).rid_count() {
                    Place { rid: place.rid + 1, ..place }
                } else {
                    Place { entry: place.entry + 1, rid: 0 }
                };
                place
            }
            Direction::Backward => {
                self.to = if self.to.rid > 0 {
                    Place { rid: self.to.rid - 1, ..self.to }
                } else {
                    let entry = self.to.entry - 1;
                    Place { entry, rid: view.entry(entry).rid_count().saturating_sub(1) }
                };
                self.to
            }
        };
        let entry = view.entry(place.entry);
        Ok(Some((entry.key, leaf::rid(&entry, place.rid))))
    }

    fn next_of_prefix_leaf(&mut self, tree: &BTree<'_>) -> Result<(&[u8], Rid)> {
        let view = PrefixLeaf::new(&self.page);
        let damaged = |e: FormatError| tree.damaged(page::page_number(&self.page), e);
        match self.direction {
            Direction::Forward => {
                let place = self.from;
                self.reader.go(&view, place).map_err(damaged)?;
                self.from = if place.rid + 1 < self.reader.pairs_of_block() {
                    Place { rid: place.rid + 1, ..place }
                } else {
                    Place { entry: place.entry + 1, rid: 0 }
                };
            }
            Direction::Backward => {
                self.to = view.place_before(self.to).unwrap_or_default();
                self.reader.go(&view, self.to).map_err(damaged)?;
            }
        }
        Ok(self.reader.pair())
    }

    /// Goes behind as many entries of the copied leaf as `most`, until `take` refuses one, and appends their RIDs; their keys are not looked at. How many it took; none of a cursor that goes backward.
    #[inline]
    pub(crate) fn take_rids(
        &mut self,
        tree: &BTree<'_>,
        most: usize,
        rids: &mut Vec<Rid>,
        mut take: impl FnMut(Rid) -> Result<bool>,
    ) -> Result<usize> {
        if self.direction == Direction::Backward || self.from >= self.to {
            return Ok(0);
        }
        let view = LeafView::new(&self.page);
        let damaged = |e: FormatError| tree.damaged(page::page_number(&self.page), e);
        let first = rids.len();
        let behind = view.rids(self.from, self.to, most, &mut self.block, rids).map_err(damaged)?;
        let mut end = first;
        while end < rids.len() && take(rids[end])? {
            end += 1;
        }
        let taken = end - first;
        if end == rids.len() {
            self.from = behind;
            return Ok(taken);
        }
        rids.truncate(first);
        self.from = view.rids(self.from, self.to, taken, &mut self.block, rids).map_err(damaged)?;
        Ok(taken)
    }

    /// Whether the next entry comes from a leaf that is not copied yet.
    #[inline]
    pub(crate) fn is_between_leaves(&self) -> bool {
        self.from >= self.to
    }

    /// Copies the next leaf; false when there is none.
    fn load(&mut self, tree: &BTree<'_>) -> Result<bool> {
        let target = match &self.next {
            Next::At(search) => Target::At(search),
            Next::Before(search) => Target::Before(search.as_deref()),
            Next::Done => return Ok(false),
        };
        let (direction, lookahead, active) = (self.direction, &mut self.prefetch, self.leaves > 0);
        let most = tree.manager.settings().bytes_per_io * PREFETCH_IOS / tree.data_set.page_bytes();
        let found = tree.leaf_and_fences(target, |step| match step {
            Step::Down(node, i) if active && node.level() == 1 => lookahead.see(direction, &node, i, most),
            _ => {}
        })?;
        let Some((page, fences)) = found else {
            self.next = Next::Done;
            return Ok(false);
        };
        self.page.take(&page);
        self.reader.reset();
        self.block.reset();
        drop(page);
        self.leaves += 1;
        self.bound(fences);
        self.ask(tree);
        Ok(true)
    }

    /// Cuts the copied leaf to what is still to be delivered, and finds out where to go on. The leaf may reach beyond both: neighbours have merged with it meanwhile.
    fn bound(&mut self, fences: Fences) {
        let view = LeafView::new(&self.page);
        let (start, end) = match &self.next {
            Next::At(search) => (search.as_slice(), self.range.end.as_deref()),
            Next::Before(search) => (self.range.start.as_slice(), search.as_deref()),
            Next::Done => return,
        };
        self.from = if fences.low.as_deref().is_none_or(|low| low < start) { view.seek(start) } else { Place::default() };
        self.to = match end {
            Some(end) if fences.high.as_deref().is_none_or(|high| high > end) => view.seek(end),
            _ => view.end(),
        };
        self.next = match (self.direction, fences.low, fences.high) {
            (Direction::Forward, _, Some(high)) if self.range.end.as_ref().is_none_or(|end| high < *end) => Next::At(high),
            (Direction::Backward, Some(low), _) if low > self.range.start => Next::Before(Some(low)),
            _ => Next::Done,
        };
    }

    /// Asks for what the descent saw.
    fn ask(&mut self, tree: &BTree<'_>) {
        let mut pages = std::mem::take(&mut self.prefetch.wanted);
        if pages.is_empty() || matches!(self.next, Next::Done) {
            return;
        }
        self.prefetch.due = self.prefetch.due_then.take();
        pages.sort_unstable();
        let mut ranges: Vec<std::ops::Range<u32>> = Vec::new();
        for page in pages {
            match ranges.last_mut() {
                Some(last) if last.end == page => last.end += 1,
                _ => ranges.push(page..page + 1),
            }
        }
        tree.manager.prefetch(tree.data_set, Prefetch::Dynamic, ranges, None);
    }
}

impl Lookahead {
    /// The cursor is at child `i` of the page above the leaves.
    fn see(&mut self, direction: Direction, node: &NonLeaf<'_>, i: usize, most: usize) {
        self.wanted.clear();
        let here = if i == 0 { &[][..] } else { node.separator(i - 1) };
        let early = self.due.as_deref().is_some_and(|due| match direction {
            Direction::Forward => here < due,
            Direction::Backward => here > due,
        });
        if early {
            return;
        }
        let range = match direction {
            Direction::Forward => i + 1..(i + 1 + most).min(node.separator_count() + 1),
            Direction::Backward => i.saturating_sub(most)..i,
        };
        // Half way through what is asked for now.
        let middle = usize::midpoint(range.start, range.end);
        let turn = if middle == 0 { &[][..] } else { node.separator(middle - 1) };
        self.due_then = Some(turn.to_vec());
        self.wanted.extend(range.map(|child| node.child(child)));
    }
}

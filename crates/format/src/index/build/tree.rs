//! All levels of an index, in one pass over (key, RID) in order.
//!
//! Leaves are finished from left to right; each gives the level above a separator and its page number, and so on up. What a finished page does not need any more is gone: memory
//! is one page a level.

use super::leaf::LeafBuilder;
use super::non_leaf::NonLeafBuilder;
use crate::FormatError;
use crate::index::header::LeafKind;
use crate::index::leaf_view::LeafLayout;
use crate::index::limits::put_separator;
use crate::index::non_leaf::LEVEL_MAX;
use crate::index::prefix::builder::PrefixLeafBuilder;
use pagefold_types::Rid;

/// Where finished pages go.
pub trait PageSink {
    /// What fails there.
    type Error: From<FormatError>;

    /// A number for the next page.
    ///
    /// # Errors
    /// When there is none.
    fn allocate(&mut self, leaf: bool) -> Result<u32, Self::Error>;

    /// Does it take page images? When not, none are made.
    fn wants_images(&self) -> bool {
        true
    }

    /// The next page of a level (0: leaves) begins at this separator: what is below it lies in the pages before. It is said of every page but the first of its level, from left to right.
    fn begins(&mut self, _level: usize, _separator: &[u8]) {}

    /// Takes a finished page (empty, when images are not wanted).
    ///
    /// # Errors
    /// When it cannot.
    fn take(&mut self, page_number: u32, leaf: bool, image: &[u8]) -> Result<(), Self::Error>;
}

/// A sink that only counts: for estimates.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingSink {
    /// Pages so far.
    pub pages: u32,
}

impl PageSink for CountingSink {
    type Error = FormatError;

    fn allocate(&mut self, _leaf: bool) -> Result<u32, FormatError> {
        self.pages = self.pages.checked_add(1).ok_or_else(|| FormatError::new("more pages than a data set can have"))?;
        Ok(self.pages)
    }

    fn wants_images(&self) -> bool {
        false
    }

    fn take(&mut self, _page_number: u32, _leaf: bool, _image: &[u8]) -> Result<(), FormatError> {
        Ok(())
    }
}

/// Sums over the pages of one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelFacts {
    /// Pages.
    pub pages: u64,
    /// Entries of leaves, children of non-leaf pages.
    pub keys: u64,
    /// Bytes neither header, keys nor key map use, in memory.
    pub free_bytes: u64,
    /// Leaves that fold: bytes of their folds, headers included.
    pub folded_bytes: u64,
}

/// What was built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuiltTree {
    /// Root page; 0 when there was no entry.
    pub root_page: u32,
    /// Levels from the leaves (first) to the root.
    pub levels: Vec<LevelFacts>,
    /// Distinct keys.
    pub keys: u64,
    /// RIDs.
    pub rids: u64,
    /// Bytes of all distinct keys.
    pub key_bytes: u64,
}

/// The leaf being filled. A plain one says that a pair belongs into the next leaf, a prefix leaf that it is full and which of the pairs it got are left for the next.
#[derive(Debug)]
enum Filling {
    Plain(Box<LeafBuilder>),
    Prefix(Box<PrefixLeafBuilder>),
}

impl Filling {
    fn new(layout: LeafLayout, leaf_bytes: usize, free_percent: u8) -> Filling {
        match layout {
            LeafLayout::Plain(kind) => Filling::Plain(Box::new(LeafBuilder::new(kind, leaf_bytes, free_percent))),
            LeafLayout::Prefix { fixed_key_bytes } => {
                let free_bytes = leaf_bytes * usize::from(free_percent.min(99)) / 100;
                Filling::Prefix(Box::new(PrefixLeafBuilder::new(leaf_bytes, fixed_key_bytes, free_bytes)))
            }
        }
    }

    fn last(&self) -> Option<(&[u8], Rid)> {
        match self {
            Filling::Plain(leaf) => Some(leaf.packer().last()),
            Filling::Prefix(leaf) => leaf.last(),
        }
    }

    fn facts(&self) -> LevelFacts {
        match self {
            Filling::Plain(leaf) => {
                let packer = leaf.packer();
                LevelFacts {
                    pages: 1,
                    keys: packer.entry_count() as u64,
                    free_bytes: packer.free_bytes() as u64,
                    folded_bytes: packer.folded_bytes() as u64,
                }
            }
            Filling::Prefix(leaf) => {
                LevelFacts { pages: 1, keys: leaf.key_count() as u64, free_bytes: leaf.free_bytes() as u64, folded_bytes: 0 }
            }
        }
    }
}

/// Builds an index.
#[derive(Debug)]
pub struct TreeBuilder<S> {
    sink: S,
    leaf: Filling,
    leaf_bytes: usize,
    non_leaf_bytes: usize,
    non_leaf_free_percent: u8,
    levels: Vec<NonLeafBuilder>,
    built: BuiltTree,
    /// Number of the leaf being filled.
    number: u32,
    /// Is it the first?
    first: bool,
    /// Separator before the leaf being filled.
    separator: Vec<u8>,
    image: Vec<u8>,
}

/// Free space in non-leaf pages is at most this, whatever PCTFREE says.
const NON_LEAF_FREE_PERCENT_MAX: u8 = 10;

impl<S: PageSink> TreeBuilder<S> {
    /// For leaves of `leaf_bytes` in memory and non-leaf pages of `non_leaf_bytes`, with PCTFREE `free_percent`. The kind's slot bits must do for all RIDs.
    #[must_use]
    pub fn new(sink: S, kind: LeafKind, leaf_bytes: usize, non_leaf_bytes: usize, free_percent: u8) -> TreeBuilder<S> {
        TreeBuilder::with_layout(sink, LeafLayout::Plain(kind), leaf_bytes, non_leaf_bytes, free_percent)
    }

    /// The same for leaves of either layout.
    #[must_use]
    pub fn with_layout(sink: S, layout: LeafLayout, leaf_bytes: usize, non_leaf_bytes: usize, free_percent: u8) -> TreeBuilder<S> {
        TreeBuilder {
            sink,
            leaf: Filling::new(layout, leaf_bytes, free_percent),
            leaf_bytes,
            non_leaf_bytes,
            non_leaf_free_percent: free_percent.min(NON_LEAF_FREE_PERCENT_MAX),
            levels: Vec::new(),
            built: BuiltTree::default(),
            number: 0,
            first: true,
            separator: Vec::new(),
            image: Vec::new(),
        }
    }

    /// The key and RID pushed last; `None` before the first.
    #[must_use]
    pub fn last(&self) -> Option<(&[u8], Rid)> {
        if self.number == 0 { None } else { self.leaf.last() }
    }

    /// The sink.
    #[must_use]
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// Adds a RID. A unique index's caller has made sure that keys differ.
    ///
    /// # Errors
    /// When (key, RID) does not ascend, the key has a wrong length, or the sink fails.
    pub fn push(&mut self, key: &[u8], rid: Rid) -> Result<(), S::Error> {
        if self.number == 0 {
            self.number = self.sink.allocate(true)?;
        } else if self.leaf.last().is_some_and(|last| last >= (key, rid)) {
            return Err(FormatError::new("keys and RIDs do not ascend").into());
        }
        let new_key = self.built.rids == 0 || self.leaf.last().is_none_or(|last| last.0 != key);
        let images = self.sink.wants_images();
        match &mut self.leaf {
            Filling::Plain(leaf) => {
                if !add(leaf, key, rid, images)? {
                    let (last_key, last_rid) = leaf.packer().last();
                    let mut separator = Vec::new();
                    put_separator(last_key, last_rid, key, rid, &mut separator);
                    self.next_leaf(separator)?;
                    if let Filling::Plain(leaf) = &mut self.leaf {
                        add(leaf, key, rid, images)?;
                    }
                }
            }
            Filling::Prefix(leaf) => {
                if leaf.push(key, rid)? {
                    self.next_prefix_leaf()?;
                }
            }
        }
        self.built.rids += 1;
        if new_key {
            self.built.keys += 1;
            self.built.key_bytes += key.len() as u64;
        }
        Ok(())
    }

    /// Finishes the leaf; the next one begins behind the separator.
    fn next_leaf(&mut self, separator: Vec<u8>) -> Result<(), S::Error> {
        let next = self.sink.allocate(true)?;
        self.sink.begins(0, &separator);
        self.finish_leaf(next)?;
        (self.first, self.number, self.separator) = (false, next, separator);
        Ok(())
    }

    fn next_prefix_leaf(&mut self) -> Result<(), S::Error> {
        let mut separator = Vec::new();
        if let Filling::Prefix(leaf) = &self.leaf {
            let [last, first] = leaf.boundary().ok_or_else(|| FormatError::new("a full leaf without a next pair"))?;
            put_separator(last.0, last.1, first.0, first.1, &mut separator);
        }
        self.next_leaf(separator)
    }

    fn finish_leaf(&mut self, next: u32) -> Result<(), S::Error> {
        self.facts(0, |tree| tree.leaf.facts());
        let images = self.sink.wants_images();
        match &mut self.leaf {
            Filling::Plain(leaf) if images => {
                self.image.resize(self.leaf_bytes, 0);
                leaf.finish(self.number, next, &mut self.image);
            }
            Filling::Plain(leaf) => leaf.reset(),
            Filling::Prefix(leaf) => {
                self.image.resize(self.leaf_bytes, 0);
                leaf.finish(&mut self.image, self.number, next)?;
            }
        }
        self.sink.take(self.number, true, if images { &self.image } else { &[] })?;
        let separator = std::mem::take(&mut self.separator);
        if next != 0 || !self.first {
            self.add_child(0, &separator, self.number)?;
        }
        Ok(())
    }

    fn facts(&mut self, level: usize, of: impl FnOnce(&Self) -> LevelFacts) {
        let more = of(self);
        if self.built.levels.len() <= level {
            self.built.levels.resize(level + 1, LevelFacts::default());
        }
        let sum = &mut self.built.levels[level];
        sum.pages += more.pages;
        sum.keys += more.keys;
        sum.free_bytes += more.free_bytes;
        sum.folded_bytes += more.folded_bytes;
    }

    /// Gives a finished page of the level below to non-leaf level `level` (0: above the leaves).
    fn add_child(&mut self, level: usize, separator: &[u8], child: u32) -> Result<(), S::Error> {
        if level >= usize::from(LEVEL_MAX) {
            return Err(FormatError::new("more levels than an index can have").into());
        }
        if self.levels.len() == level {
            self.levels.push(NonLeafBuilder::new(level as u8 + 1, self.non_leaf_bytes, self.non_leaf_free_percent));
        }
        let images = self.sink.wants_images();
        let page = &mut self.levels[level];
        if page.first_child.is_none() {
            page.start(separator, child);
        } else if !page.push(separator, child, images) {
            let (number, low_separator) = self.finish_non_leaf(level)?;
            self.add_child(level + 1, &low_separator, number)?;
            self.levels[level].start(separator, child);
            self.sink.begins(level + 1, separator);
        }
        Ok(())
    }

    fn finish_non_leaf(&mut self, level: usize) -> Result<(u32, Vec<u8>), S::Error> {
        let number = self.sink.allocate(false)?;
        self.facts(level + 1, |tree| LevelFacts {
            pages: 1,
            keys: tree.levels[level].separators as u64 + 1,
            free_bytes: tree.levels[level].free_bytes() as u64,
            folded_bytes: 0,
        });
        let page = &mut self.levels[level];
        if self.sink.wants_images() {
            self.image.resize(self.non_leaf_bytes, 0);
            page.finish(number, &mut self.image)?;
            self.sink.take(number, false, &self.image)?;
        } else {
            self.sink.take(number, false, &[])?;
        }
        Ok((number, std::mem::take(&mut page.low_separator)))
    }

    /// Finishes what is open on each level, up to the root.
    ///
    /// # Errors
    /// When the sink fails.
    pub fn finish(mut self) -> Result<(BuiltTree, S), S::Error> {
        if self.number == 0 {
            return Ok((self.built, self.sink));
        }
        while let Filling::Prefix(leaf) = &mut self.leaf
            && leaf.flush()?
        {
            self.next_prefix_leaf()?;
        }
        self.finish_leaf(0)?;
        self.built.root_page = self.number;
        let mut level = 0;
        while level < self.levels.len() {
            let (number, low_separator) = self.finish_non_leaf(level)?;
            self.built.root_page = number;
            level += 1;
            if level < self.levels.len() {
                self.add_child(level, &low_separator, number)?;
            }
        }
        Ok((self.built, self.sink))
    }
}

/// Adds a RID to a plain leaf, or only counts it; false: it belongs into the next one.
fn add(leaf: &mut LeafBuilder, key: &[u8], rid: Rid, images: bool) -> Result<bool, FormatError> {
    if images { leaf.push(key, rid) } else { leaf.count(key, rid) }
}

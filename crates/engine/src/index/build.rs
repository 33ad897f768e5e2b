//! Building an index from entries in order: past the pool, each page written once.
//!
//! Invariant: nothing of the index is seen before the catalog names it.

use super::attributes::IndexFormat;
use super::space::Index;
use crate::pool::BulkWriter;
use crate::{Error, Result};
use pagefold_codec::index::slot_bits_for;
use pagefold_format::FormatError;
use pagefold_format::index::build::{BuiltTree, PageSink, TreeBuilder};
use pagefold_format::index::header::LeafKind;
use pagefold_format::index::leaf_view::LeafLayout;
use pagefold_format::space_map::CLASS_NO_ROWS;
use pagefold_types::Rid;

/// What a page sink refuses.
#[derive(Debug)]
struct BuildError(Error);

impl From<FormatError> for BuildError {
    fn from(error: FormatError) -> BuildError {
        BuildError(Error::Value(error.to_string()))
    }
}

struct Sink<'a> {
    writer: BulkWriter<'a>,
}

impl PageSink for Sink<'_> {
    type Error = BuildError;

    fn allocate(&mut self, _leaf: bool) -> std::result::Result<u32, BuildError> {
        self.writer.data_set().append_page(CLASS_NO_ROWS).map_err(BuildError)
    }

    fn wants_images(&self) -> bool {
        true
    }

    fn take(&mut self, page_number: u32, _leaf: bool, image: &[u8]) -> std::result::Result<(), BuildError> {
        self.writer.push(page_number, image).map_err(BuildError)
    }
}

/// Fills an empty index.
pub struct IndexBuilder<'a> {
    index: &'a Index,
    builder: TreeBuilder<Sink<'a>>,
}

impl Index {
    /// How its leaves are laid out, for RIDs whose slots are at most `slot_max`.
    #[must_use]
    pub fn leaf_layout(&self, slot_max: u16) -> LeafLayout {
        let fixed_key_bytes = self.key_layout.fixed_len().map_or(0, |length| length as u16);
        let single = self.attributes.unique;
        match self.attributes.format {
            IndexFormat::Plain => LeafLayout::Plain(LeafKind { single, fold: false, fixed_key_bytes, slot_bits: 12 }),
            IndexFormat::Fold => LeafLayout::Plain(LeafKind { single, fold: true, fixed_key_bytes, slot_bits: slot_bits_for(slot_max) }),
            IndexFormat::Prefix => LeafLayout::Prefix { fixed_key_bytes },
        }
    }

    /// Starts filling the empty index. All RIDs will have slots of at most `slot_max`.
    #[must_use]
    pub fn build(&self, slot_max: u16) -> IndexBuilder<'_> {
        let sink = Sink { writer: BulkWriter::new(&self.data_set) };
        let (leaf, non_leaf) = (self.attributes.page_bytes, self.attributes.disk_bytes());
        let builder = TreeBuilder::with_layout(sink, self.leaf_layout(slot_max), leaf, non_leaf, self.attributes.pctfree);
        IndexBuilder { index: self, builder }
    }
}

impl IndexBuilder<'_> {
    /// Adds an entry, in ascending order of (key, RID).
    ///
    /// # Errors
    /// [`Error::DuplicateKey`] in a unique index; when the order is wrong, or a write fails.
    pub fn push(&mut self, key: &[u8], rid: Rid) -> Result<()> {
        if self.index.attributes.unique && self.builder.last().is_some_and(|(last, _)| last == key) && !self.index.has_null(key) {
            return Err(self.index.duplicate(key));
        }
        self.push_any(key, rid)
    }

    /// The same, whatever rows have the key: somebody else sees to it that none is there twice in the end.
    ///
    /// # Errors
    /// As [`push`](Self::push), but for that.
    pub fn push_any(&mut self, key: &[u8], rid: Rid) -> Result<()> {
        self.builder.push(key, rid).map_err(|e| e.0)
    }

    /// The entry added last.
    pub(crate) fn last(&self) -> Option<(&[u8], Rid)> {
        self.builder.last()
    }

    /// Writes what is left; returns the counts of every level.
    ///
    /// # Errors
    /// When a write fails.
    pub fn finish(self) -> Result<BuiltTree> {
        let (built, mut sink) = self.builder.finish().map_err(|e| e.0)?;
        sink.writer.flush()?;
        let mut facts = self.index.data_set.facts();
        facts.root_page = built.root_page;
        facts.levels = built.levels.len() as u16;
        facts.rows = built.rids;
        facts.keys = built.keys;
        facts.data_pages = built.levels.first().map_or(0, |level| level.pages as u32);
        drop(facts);
        Ok(built)
    }
}

impl Index {
    /// Does the key hold a NULL? Such keys never count as duplicates.
    pub(crate) fn has_null(&self, key: &[u8]) -> bool {
        self.key_layout.fixed_len().is_none()
            && self.key_layout.decode(key).is_ok_and(|values| values.iter().any(|value| value.as_ref().is_null()))
    }

    /// The error for a key that is there already.
    pub(crate) fn duplicate(&self, key: &[u8]) -> Error {
        Error::DuplicateKey { index: self.name().into(), key: self.key_layout.describe(key) }
    }
}

//! Look-ups.

use super::cursor::{Cursor, Direction};
use super::tree::{BTree, Target, search_bytes};
use crate::Result;
use pagefold_format::index::leaf_view::LeafView;
use pagefold_types::{KeyRange, Rid, prefix_end};

impl<'a> BTree<'a> {
    /// The first RID under a key.
    ///
    /// # Errors
    /// When a page is damaged or cannot be read.
    #[inline]
    pub fn first_rid(&self, key: &[u8]) -> Result<Option<Rid>> {
        let Some(page) = self.leaf(Target::At(key), |_| {})? else { return Ok(None) };
        match LeafView::new(&page).first_rid(key) {
            Ok(rid) => return Ok(Some(rid)),
            Err(true) => return Ok(None),
            Err(false) => {}
        }
        drop(page);
        // The beginning of the key's RIDs may have been deleted from the end of this leaf; then the rest is on the next.
        let mut cursor = self.key_cursor(key);
        Ok(cursor.next()?.map(|(_, rid)| rid))
    }

    /// Is there this entry?
    ///
    /// # Errors
    /// When a page is damaged or cannot be read.
    pub fn contains(&self, key: &[u8], rid: Rid) -> Result<bool> {
        let Some(page) = self.leaf(Target::At(&search_bytes(key, rid)), |_| {})? else { return Ok(false) };
        Ok(LeafView::new(&page).lower_bound_rid(key, rid).1)
    }

    /// May there be an entry with this key? It is asked whether it lies between the first and the last one that there were, or have come since.
    ///
    /// # Errors
    /// When a page is damaged or cannot be read.
    pub(crate) fn may_have(&self, key: &[u8]) -> Result<bool> {
        self.index.key_bounds.may_have(key, || self.ends())
    }

    /// The same of a range of keys.
    ///
    /// # Errors
    /// When a page is damaged or cannot be read.
    pub(crate) fn may_have_in(&self, range: &KeyRange) -> Result<bool> {
        self.index.key_bounds.may_have_in(range, || self.ends())
    }

    /// The first key and the last one.
    ///
    /// # Errors
    /// When a page is damaged or cannot be read.
    pub(crate) fn ends(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let end = |direction| Ok::<_, crate::Error>(self.all(direction).next()?.map(|(key, _)| key.to_vec()));
        Ok(end(Direction::Forward)?.zip(end(Direction::Backward)?))
    }

    /// Entries of a range of keys, in key order or backward.
    #[must_use]
    pub fn range(&self, range: KeyRange, direction: Direction) -> Cursor<'a> {
        Cursor::new(*self, range, direction)
    }

    /// All entries.
    #[must_use]
    pub fn all(&self, direction: Direction) -> Cursor<'a> {
        self.range(KeyRange { start: Vec::new(), end: None }, direction)
    }

    /// All entries of one key.
    #[must_use]
    pub fn key_cursor(&self, key: &[u8]) -> Cursor<'a> {
        let mut end = key.to_vec();
        let end = prefix_end(&mut end).then_some(end);
        self.range(KeyRange { start: key.to_vec(), end }, Direction::Forward)
    }
}

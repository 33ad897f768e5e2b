//! Look-ups.

use super::cursor::{Cursor, Direction};
use super::tree::{BTree, Target, search_bytes};
use crate::Result;
use crate::index::Pieces;
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

    /// May there be an entry with this key? A filter of the keys says it where there is one, else their bounds, and a look.
    ///
    /// # Errors
    /// When a page is damaged or cannot be read.
    pub(crate) fn may_have(&self, key: &[u8]) -> Result<bool> {
        let (bounds, filter) = (&self.index.key_bounds, &self.index.key_filter);
        let may_have = match filter.may_have(key) {
            Some(false) => return Ok(false),
            Some(true) => true,
            None if !bounds.may_have(key, || self.ends())? => return Ok(false),
            None => self.key_cursor(key).next()?.is_some(),
        };
        filter.looked(self.manager.filter_memory(), self);
        Ok(may_have)
    }

    /// The same of a range of keys: of one key, or of those that begin with something.
    ///
    /// # Errors
    /// When a page is damaged or cannot be read.
    pub(crate) fn may_have_in(&self, range: &KeyRange) -> Result<bool> {
        if self.is_of_one_key(range) {
            return self.may_have(&range.start);
        }
        self.index.key_bounds.may_have_in(range, || self.ends())
    }

    fn is_of_one_key(&self, range: &KeyRange) -> bool {
        let mut behind = range.start.clone();
        let end = prefix_end(&mut behind).then_some(behind);
        end == range.end && self.index.key_layout().column_ends(&range.start, &mut Vec::new()).is_ok()
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

/// Entries of a piece: about those of a leaf.
const ENTRIES_OF_PIECE: usize = 256;

impl Pieces for BTree<'_> {
    fn keys(&self) -> usize {
        usize::try_from(self.data_set.facts().keys).unwrap_or(usize::MAX)
    }

    fn read(&self, from: &[u8], key: &mut dyn FnMut(&[u8])) -> Result<Option<Vec<u8>>> {
        let mut entries = self.range(KeyRange { start: from.to_vec(), end: None }, Direction::Forward);
        let mut last = Vec::new();
        for at in 0..ENTRIES_OF_PIECE {
            let Some((own, _)) = entries.next()? else { return Ok(None) };
            if at == 0 || own != last {
                key(own);
                last.clear();
                last.extend_from_slice(own);
            }
        }
        // The first byte string behind this key: other entries that it has tell nothing new.
        last.push(0);
        Ok(Some(last))
    }
}

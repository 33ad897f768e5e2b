//! Non-leaf pages: separators and children.
//!
//! | Offset | Size | Field |
//! |---|---|---|
//! | 32 | 1 | level: 1 above the leaves, and so on |
//! | 33 | 1 | 0 |
//! | 34 | 2 | bytes that all separators share |
//! | 36 | 4 | first child |
//! | 40 | | separators in order, without gaps: length (u16), bytes |
//! | end - 10 (i + 1) | 10 | key map entry i: offset of the separator (u16), its head (u32), the child after it (u32) |
//!
//! In the common header, count is the number of separators and low end the end of the separators; garbage is always 0.
//!
//! Separators are prefixes of `key || RID`. Everything below the child before a separator is less than it, everything below the child after it is not.
//! Most descents read the key map alone: child and head lie in one entry.
//!
//! Invariant: as for leaves, the bytes are a function of the contents, and no access panics whatever the bytes.

use super::search::{self, map_head, map_offset};
use crate::FormatError;
use crate::page::{self, HEADER_BYTES, PageType, get_u16, get_u32, is_page_size, put_u16, put_u32};
use pagefold_codec::index::layout::{common_prefix, key_head, u16_at};
use std::cmp::Ordering;

const LEVEL: usize = HEADER_BYTES;
const COMMON_PREFIX: usize = LEVEL + 2;
const FIRST_CHILD: usize = COMMON_PREFIX + 2;

/// Bytes of common and non-leaf header; separators start here.
pub const NON_LEAF_HEADER_BYTES: usize = FIRST_CHILD + 4;
const _: () = assert!(NON_LEAF_HEADER_BYTES == 40);
/// Bytes of a key map entry.
pub const CHILD_MAP_BYTES: usize = 10;
/// Format version of non-leaf pages.
pub const NON_LEAF_VERSION: u8 = 1;
/// The highest level: a bound for descents into damaged indexes.
pub const LEVEL_MAX: u8 = 32;

/// A non-leaf page that can be searched.
#[derive(Clone, Copy)]
pub struct NonLeaf<'a> {
    pub(super) page: &'a [u8],
    pub(super) count: usize,
    pub(super) prefix: usize,
}

impl<'a> NonLeaf<'a> {
    /// A view of `page`.
    #[inline]
    #[must_use]
    pub fn new(page: &'a [u8]) -> NonLeaf<'a> {
        if page.len() < NON_LEAF_HEADER_BYTES {
            return NonLeaf { page: &[], count: 0, prefix: 0 };
        }
        let most = (page.len() - NON_LEAF_HEADER_BYTES) / CHILD_MAP_BYTES;
        NonLeaf { page, count: usize::from(page::count(page)).min(most), prefix: usize::from(get_u16(page, COMMON_PREFIX)) }
    }

    /// Number of separators; children are one more.
    #[inline]
    #[must_use]
    pub fn separator_count(&self) -> usize {
        self.count
    }

    /// Levels down to the leaves.
    #[must_use]
    pub fn level(&self) -> u8 {
        self.page.get(LEVEL).copied().unwrap_or(0)
    }

    /// Child `i`, of `0..=separator_count()`; 0 when there is none.
    #[inline]
    #[must_use]
    pub fn child(&self, i: usize) -> u32 {
        if i == 0 {
            return if self.page.is_empty() { 0 } else { get_u32(self.page, FIRST_CHILD) };
        }
        if i > self.count {
            return 0;
        }
        let at = self.page.len() - CHILD_MAP_BYTES * i + 6;
        get_u32(self.page, at)
    }

    /// Separator `i`, that between children i and i + 1; empty when there is none.
    #[inline]
    #[must_use]
    pub fn separator(&self, i: usize) -> &'a [u8] {
        if i >= self.count {
            return &[];
        }
        let at = self.offset(i);
        let Some(length) = u16_at(self.page, at) else { return &[] };
        self.page.get(at + 2..at + 2 + usize::from(length)).unwrap_or(&[])
    }

    #[inline]
    pub(super) fn offset(&self, i: usize) -> usize {
        usize::from(map_offset::<CHILD_MAP_BYTES>(self.page, i))
    }

    /// Bytes that neither separators nor key map use.
    #[must_use]
    pub fn free_bytes(&self) -> usize {
        (self.page.len() - CHILD_MAP_BYTES * self.count).saturating_sub(self.low_end())
    }

    pub(super) fn low_end(&self) -> usize {
        if self.page.is_empty() { 0 } else { usize::from(page::low_end(self.page)) }
    }

    /// Bytes that another separator of this length takes.
    #[must_use]
    pub fn separator_bytes(length: usize) -> usize {
        2 + length + CHILD_MAP_BYTES
    }

    /// Number of the child below which `search` (a key, or `key || RID`) is or would be: that after the last separator that is not greater.
    #[inline]
    #[must_use]
    pub fn child_for(&self, search: &[u8]) -> usize {
        let (i, found) = self.lower_bound(search);
        i + usize::from(found)
    }

    /// First separator that is not less than `search`, and whether it is equal.
    #[inline]
    #[must_use]
    pub fn lower_bound(&self, search: &[u8]) -> (usize, bool) {
        if self.count == 0 {
            return (0, false);
        }
        if self.prefix > 0 {
            let first = self.separator(0);
            let shared = first.get(..self.prefix).unwrap_or(first);
            match search.get(..shared.len()).map_or_else(|| search.cmp(shared), |start| start.cmp(shared)) {
                Ordering::Less => return (0, false),
                Ordering::Greater => return (self.count, false),
                Ordering::Equal => {}
            }
        }
        let rest = search.get(self.prefix..).unwrap_or(&[]);
        search::lower_bound::<CHILD_MAP_BYTES>(self.page, self.count, key_head(rest, 0), |i| {
            self.separator(i).get(self.prefix..).unwrap_or(&[]).cmp(rest)
        })
    }

    /// Separators `from..` with their children, as an `Append` op takes them.
    #[must_use]
    pub fn run(&self, from: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.low_end() + 4 * self.count);
        for i in from..self.count {
            put_separator(&mut bytes, self.separator(i), self.child(i + 1));
        }
        bytes
    }
}

/// Appends a separator and its child as an `Append` op takes them: child (u32), length (u16), bytes.
pub fn put_separator(out: &mut Vec<u8>, separator: &[u8], child: u32) {
    out.extend_from_slice(&child.to_le_bytes());
    crate::wire::put_bytes(out, separator);
}

pub(super) fn format(page: &mut [u8], page_number: u32, level: u8, first_child: u32) {
    page.fill(0);
    page::init_header(page, page_number, PageType::NonLeaf, NON_LEAF_VERSION);
    page[LEVEL] = level;
    page::set_low_end(page, NON_LEAF_HEADER_BYTES as u16);
    set_first_child(page, first_child);
}

pub(super) fn set_first_child(page: &mut [u8], child: u32) {
    put_u32(page, FIRST_CHILD, child);
}

pub(super) fn set_prefix(page: &mut [u8], bytes: usize) {
    put_u16(page, COMMON_PREFIX, bytes as u16);
}

/// Checks the structure of a non-leaf page, once after a read: offsets and lengths in bounds, separators without gaps.
///
/// # Errors
/// What is wrong.
pub fn validate(page: &[u8]) -> Result<(), FormatError> {
    if !is_page_size(page.len()) || page::page_type(page) != Some(PageType::NonLeaf) || page::page_version(page) != NON_LEAF_VERSION {
        return Err(FormatError::new(format!("not a non-leaf page of version {NON_LEAF_VERSION}")));
    }
    let view = NonLeaf::new(page);
    if !(1..=LEVEL_MAX).contains(&view.level()) || page[LEVEL + 1] != 0 || page::garbage(page) != 0 {
        return Err(FormatError::new("header of the non-leaf page"));
    }
    let map = page.len() - CHILD_MAP_BYTES * view.count;
    if usize::from(page::count(page)) != view.count || view.low_end() > map {
        return Err(FormatError::new(format!("{} separators do not fit the page", page::count(page))));
    }
    let mut at = NON_LEAF_HEADER_BYTES;
    for i in 0..view.count {
        if view.offset(i) != at {
            return Err(FormatError::new(format!("separator {i} is not where the one before ends")));
        }
        let length = u16_at(page, at).ok_or_else(|| FormatError::new(format!("separator {i} is cut off")))?;
        at += 2 + usize::from(length);
        if at > view.low_end() {
            return Err(FormatError::new(format!("separator {i} is cut off")));
        }
    }
    if at != view.low_end() {
        return Err(FormatError::new("the separators do not end where the header says"));
    }
    if view.count > 0 && view.prefix > view.separator(0).len() {
        return Err(FormatError::new("common prefix longer than the first separator"));
    }
    Ok(())
}

/// Checks all of [`validate`] and that separators ascend, prefix and heads are exact, free bytes are zero, children are pages.
///
/// # Errors
/// What is wrong.
pub fn check(page: &[u8]) -> Result<(), FormatError> {
    validate(page)?;
    let view = NonLeaf::new(page);
    let prefix = if view.count == 0 { 0 } else { common_prefix(view.separator(0), view.separator(view.count - 1)) };
    if prefix != view.prefix {
        return Err(FormatError::new(format!("common prefix is {prefix} bytes, not {}", view.prefix)));
    }
    for i in 0..view.count {
        if i > 0 && view.separator(i - 1) >= view.separator(i) {
            return Err(FormatError::new(format!("separators {} and {i} do not ascend", i - 1)));
        }
        if map_head::<CHILD_MAP_BYTES>(page, i) != key_head(view.separator(i), prefix) {
            return Err(FormatError::new(format!("head of separator {i} is not its own")));
        }
    }
    if (0..=view.count).any(|i| view.child(i) == 0) {
        return Err(FormatError::new("a child is page 0"));
    }
    if page[view.low_end()..page.len() - CHILD_MAP_BYTES * view.count].iter().any(|b| *b != 0) {
        return Err(FormatError::new("free bytes are not zero"));
    }
    Ok(())
}

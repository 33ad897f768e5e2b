//! The changes of a non-leaf page. Each checks first and then cannot fail: on an error the page is as it was.

use super::non_leaf::{self, CHILD_MAP_BYTES, NON_LEAF_HEADER_BYTES, NonLeaf};
use crate::FormatError;
use crate::page::{self, put_u16};
use crate::wire::Reader;
use pagefold_codec::index::layout::{common_prefix, key_head};

pub(super) fn insert(page: &mut [u8], separator: &[u8], child: u32) -> Result<(), FormatError> {
    let view = NonLeaf::new(page);
    let (i, found) = view.lower_bound(separator);
    if found {
        return Err(FormatError::new("this separator is there already"));
    }
    insert_at(page, i, separator, child)
}

fn insert_at(page: &mut [u8], i: usize, separator: &[u8], child: u32) -> Result<(), FormatError> {
    let view = NonLeaf::new(page);
    let n = view.count;
    let bytes = 2 + separator.len();
    if separator.len() > usize::from(u16::MAX) || NonLeaf::separator_bytes(separator.len()) > view.free_bytes() {
        return Err(FormatError::new("the non-leaf page has no room for this separator"));
    }
    let at = if i < n { view.offset(i) } else { view.low_end() };
    let (low_end, prefix, end) = (view.low_end(), view.prefix, page.len());
    if at < NON_LEAF_HEADER_BYTES || at > low_end {
        return Err(damaged());
    }
    page.copy_within(at..low_end, at + bytes);
    put_u16(page, at, separator.len() as u16);
    page[at + 2..at + bytes].copy_from_slice(separator);
    page::set_low_end(page, (low_end + bytes) as u16);
    page.copy_within(end - CHILD_MAP_BYTES * n..end - CHILD_MAP_BYTES * i, end - CHILD_MAP_BYTES * (n + 1));
    page::set_count(page, n as u16 + 1);
    shift_offsets(page, i + 1, n + 1, bytes as u16);
    let slot = end - CHILD_MAP_BYTES * (i + 1);
    put_u16(page, slot, at as u16);
    page[slot + 2..slot + 6].copy_from_slice(&key_head(separator, prefix).to_le_bytes());
    page[slot + 6..slot + 10].copy_from_slice(&child.to_le_bytes());
    renew_prefix(page);
    Ok(())
}

/// Takes separator `i` and the child after it out.
pub(super) fn remove(page: &mut [u8], i: usize) -> Result<(), FormatError> {
    let view = NonLeaf::new(page);
    let n = view.count;
    if i >= n {
        return Err(FormatError::new(format!("no separator {i} of {n}")));
    }
    let (at, bytes, low_end, end) = (view.offset(i), 2 + view.separator(i).len(), view.low_end(), page.len());
    if at < NON_LEAF_HEADER_BYTES || at + bytes > low_end || low_end > end {
        return Err(damaged());
    }
    page.copy_within(at + bytes..low_end, at);
    page[low_end - bytes..low_end].fill(0);
    page::set_low_end(page, (low_end - bytes) as u16);
    page.copy_within(end - CHILD_MAP_BYTES * n..end - CHILD_MAP_BYTES * (i + 1), end - CHILD_MAP_BYTES * (n - 1));
    page[end - CHILD_MAP_BYTES * n..end - CHILD_MAP_BYTES * (n - 1)].fill(0);
    page::set_count(page, n as u16 - 1);
    shift_offsets(page, i, n - 1, (bytes as u16).wrapping_neg());
    renew_prefix(page);
    Ok(())
}

/// Another separator in place of separator `i`, its child unchanged.
pub(super) fn replace(page: &mut [u8], i: usize, separator: &[u8]) -> Result<(), FormatError> {
    let view = NonLeaf::new(page);
    if i >= view.count {
        return Err(FormatError::new(format!("no separator {i} of {}", view.count)));
    }
    let old = view.separator(i);
    let ascends = (i == 0 || view.separator(i - 1) < separator) && (i + 1 == view.count || separator < view.separator(i + 1));
    if !ascends {
        return Err(FormatError::new("replaced separators do not ascend"));
    }
    if separator.len() > old.len() + view.free_bytes() {
        return Err(FormatError::new("the non-leaf page has no room for this separator"));
    }
    let child = view.child(i + 1);
    remove(page, i)?;
    insert_at(page, i, separator, child)
}

/// Keeps the first `n` separators, and one child more.
pub(super) fn keep_first(page: &mut [u8], n: usize) -> Result<(), FormatError> {
    let view = NonLeaf::new(page);
    if n > view.count {
        return Err(FormatError::new(format!("no {n} separators to keep of {}", view.count)));
    }
    let low_end = if n < view.count { view.offset(n) } else { view.low_end() };
    let end = page.len();
    if low_end < NON_LEAF_HEADER_BYTES || low_end > end - CHILD_MAP_BYTES * view.count {
        return Err(damaged());
    }
    page[low_end..end - CHILD_MAP_BYTES * n].fill(0);
    page::set_low_end(page, low_end as u16);
    page::set_count(page, n as u16);
    renew_prefix(page);
    Ok(())
}

/// Appends `count` separators that all order after those there are.
pub(super) fn append(page: &mut [u8], count: usize, run: &[u8]) -> Result<(), FormatError> {
    let view = NonLeaf::new(page);
    let mut last = view.count.checked_sub(1).map(|i| view.separator(i));
    let mut reader = Reader::new(run);
    let mut bytes = 0;
    for _ in 0..count {
        reader.u32()?;
        let separator = reader.bytes()?;
        if last.is_some_and(|l| l >= separator) {
            return Err(FormatError::new("append: separators do not ascend"));
        }
        last = Some(separator);
        bytes += NonLeaf::separator_bytes(separator.len());
    }
    if !reader.is_empty() {
        return Err(FormatError::new("append: bytes after the last separator"));
    }
    if bytes > view.free_bytes() {
        return Err(FormatError::new("the non-leaf page has no room for these separators"));
    }
    let mut reader = Reader::new(run);
    for _ in 0..count {
        let child = reader.u32()?;
        let separator = reader.bytes()?;
        let n = NonLeaf::new(page).count;
        insert_at(page, n, separator, child)?;
    }
    Ok(())
}

fn renew_prefix(page: &mut [u8]) {
    let view = NonLeaf::new(page);
    let n = view.count;
    let prefix = if n == 0 { 0 } else { common_prefix(view.separator(0), view.separator(n - 1)) };
    if prefix == view.prefix {
        return;
    }
    non_leaf::set_prefix(page, prefix);
    for i in 0..n {
        let head = key_head(NonLeaf::new(page).separator(i), prefix);
        let at = page.len() - CHILD_MAP_BYTES * (i + 1) + 2;
        page[at..at + 4].copy_from_slice(&head.to_le_bytes());
    }
}

fn shift_offsets(page: &mut [u8], from: usize, to: usize, by: u16) {
    let end = page.len();
    if from >= to {
        return;
    }
    let map = &mut page[end - CHILD_MAP_BYTES * to..end - CHILD_MAP_BYTES * from];
    for slot in map.chunks_exact_mut(CHILD_MAP_BYTES) {
        let offset = u16::from_le_bytes([slot[0], slot[1]]).wrapping_add(by);
        slot[..2].copy_from_slice(&offset.to_le_bytes());
    }
}

fn damaged() -> FormatError {
    FormatError::new("the non-leaf page is damaged")
}

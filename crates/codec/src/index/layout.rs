//! The expanded body of a leaf: entries from `start` up, key map from the page's end down.
//!
//! | Part | Bytes |
//! |---|---|
//! | entry | key length (u16, unless all keys have one length), number of RIDs (u16, unless single), key, RIDs (7 bytes each, big-endian, ascending) |
//! | key map, entry i at `page.len() - 6 (i + 1)` | offset of the entry (u16; top bit reserved: the entry has deleted marks), key head (u32) |
//!
//! Invariant: entries lie in key order without gaps, so an entry ends where the next begins and the body is a function of its contents.
//! A key head is the 4 bytes after the prefix that all keys of the page share, zero-padded, as a number: heads order like keys, equal heads decide nothing.

use super::FoldError;
pub use crate::bytes::common_prefix;

/// Bytes of a RID.
pub const RID_BYTES: usize = 7;
/// Bytes of a key map entry.
pub const MAP_BYTES: usize = 6;
/// Selects the offset in a key map entry; the bit above is reserved.
pub const OFFSET_MASK: u16 = 0x7FFF;

/// What all entries of a leaf have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Length of every key; 0 when lengths differ.
    pub fixed_key_bytes: u16,
    /// One RID per entry, and no count of them (unique index).
    pub single: bool,
    /// All slots on this leaf are below `2^slot_bits`; at most 12. Only the fold uses it.
    pub slot_bits: u8,
}

impl Shape {
    /// Bytes before the key.
    #[inline]
    #[must_use]
    pub fn prefix_bytes(self) -> usize {
        2 * usize::from(self.fixed_key_bytes == 0) + 2 * usize::from(!self.single)
    }

    /// Bytes of an entry, its key map entry not counted.
    #[inline]
    #[must_use]
    pub fn entry_bytes(self, key_bytes: usize, rids: usize) -> usize {
        self.prefix_bytes() + key_bytes + RID_BYTES * rids
    }
}

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Order-preserving key.
    pub key: &'a [u8],
    /// RIDs of 7 bytes each, ascending.
    pub rids: &'a [u8],
}

impl<'a> Entry<'a> {
    /// Reads the entry at `offset`; `None` when it reaches beyond `page`, or has no RID.
    #[inline]
    #[must_use]
    pub fn read(page: &'a [u8], offset: usize, shape: Shape) -> Option<Entry<'a>> {
        let mut at = offset;
        let key_bytes = if shape.fixed_key_bytes == 0 {
            let n = u16_at(page, at)?;
            at += 2;
            n
        } else {
            shape.fixed_key_bytes
        };
        let rids = if shape.single {
            1
        } else {
            let n = u16_at(page, at)?;
            at += 2;
            n
        };
        let key_end = at + usize::from(key_bytes);
        let end = key_end + RID_BYTES * usize::from(rids);
        if rids == 0 {
            return None;
        }
        Some(Entry { key: page.get(at..key_end)?, rids: page.get(key_end..end)? })
    }

    /// Number of RIDs.
    #[inline]
    #[must_use]
    pub fn rid_count(&self) -> usize {
        self.rids.len() / RID_BYTES
    }

    /// The packed RID number `i`; 0 when there is none.
    #[inline]
    #[must_use]
    pub fn rid(&self, i: usize) -> u64 {
        rid_at(self.rids, i * RID_BYTES)
    }

    /// The last packed RID; 0 when there is none.
    #[inline]
    #[must_use]
    pub fn last_rid(&self) -> u64 {
        rid_at(self.rids, self.rids.len().saturating_sub(RID_BYTES))
    }
}

/// The little-endian `u16` at `at`; `None` when it reaches beyond `bytes`.
#[inline]
#[must_use]
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let b = bytes.get(at..at + 2)?;
    Some(u16::from_le_bytes([b[0], b[1]]))
}

/// The packed RID at `at`; 0 when it reaches beyond `bytes`.
#[inline]
#[must_use]
pub fn rid_at(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..at + RID_BYTES) {
        Some(b) => u64::from_be_bytes([0, b[0], b[1], b[2], b[3], b[4], b[5], b[6]]),
        None => 0,
    }
}

/// A packed RID's seven bytes.
#[inline]
#[must_use]
pub fn rid_bytes(packed: u64) -> [u8; RID_BYTES] {
    let b = packed.to_be_bytes();
    [b[1], b[2], b[3], b[4], b[5], b[6], b[7]]
}

/// The key's head after a common prefix of `prefix` bytes.
#[inline]
#[must_use]
pub fn key_head(key: &[u8], prefix: usize) -> u32 {
    let rest = key.get(prefix..).unwrap_or(&[]);
    match rest.first_chunk::<4>() {
        Some(chunk) => u32::from_be_bytes(*chunk),
        None => {
            let mut chunk = [0u8; 4];
            chunk[..rest.len()].copy_from_slice(rest);
            u32::from_be_bytes(chunk)
        }
    }
}

/// Writes key map entry `i`.
///
/// # Errors
/// [`FoldError::NoRoom`] when it would lie outside `page`.
#[inline]
pub fn put_map(page: &mut [u8], i: usize, offset: usize, head: u32) -> Result<(), FoldError> {
    let at = page.len().checked_sub(MAP_BYTES * (i + 1)).ok_or(FoldError::NoRoom("key map"))?;
    let slot = page[at..].first_chunk_mut::<MAP_BYTES>().ok_or(FoldError::NoRoom("key map"))?;
    slot[..2].copy_from_slice(&(offset as u16).to_le_bytes());
    slot[2..].copy_from_slice(&head.to_le_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_order_like_keys() {
        let keys: [&[u8]; 7] = [b"ab", b"ab\0", b"aba", b"abcd", b"abcde", b"abce", b"abd"];
        for pair in keys.windows(2) {
            assert!(key_head(pair[0], 2) <= key_head(pair[1], 2));
        }
        assert_eq!(key_head(b"ab", 2), 0);
        assert_eq!(key_head(b"ab", 9), 0);
        assert_eq!(key_head(b"abcdef", 2), u32::from_be_bytes(*b"cdef"));
    }

    #[test]
    fn damaged_entries_are_none() {
        let shape = Shape { fixed_key_bytes: 0, single: false, slot_bits: 12 };
        let mut page = vec![3, 0, 1, 0, b'k', b'e', b'y', 0, 0, 0, 0, 0, 0, 9];
        let entry = Entry::read(&page, 0, shape).unwrap();
        assert_eq!((entry.key, entry.rid_count(), entry.rid(0), entry.last_rid()), (&b"key"[..], 1, 9, 9));
        for n in 0..page.len() {
            assert_eq!(Entry::read(&page[..n], 0, shape), None);
        }
        page[2] = 0;
        assert_eq!(Entry::read(&page, 0, shape), None, "no RID");
        assert_eq!(Entry::read(&page, 40, shape), None);
    }
}

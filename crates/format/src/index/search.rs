//! Binary search over key heads, for leaves and non-leaf pages alike.
//!
//! A key map grows down from the page's end in steps of `STRIDE` bytes; each entry has an offset (u16) and a head (u32).

use std::cmp::Ordering;

/// First of the entries `0..n` that is not less than the key with this head. `compare(i)` orders entry i against the key in full; it is asked only where heads are equal.
/// The second value tells whether that entry compares equal.
#[inline]
pub(crate) fn lower_bound<const STRIDE: usize>(page: &[u8], n: usize, head: u32, compare: impl Fn(usize) -> Ordering) -> (usize, bool) {
    let (mut low, mut high) = (0, n);
    let mut found = false;
    while low < high {
        let middle = (low + high) / 2;
        let order = match map_head::<STRIDE>(page, middle).cmp(&head) {
            Ordering::Equal => compare(middle),
            order => order,
        };
        if order == Ordering::Less {
            low = middle + 1;
        } else {
            high = middle;
            found = order == Ordering::Equal;
        }
    }
    // `found` belongs to the entry at `high`, which is `low` now; it is false when nothing was at or above the key.
    (low, found)
}

/// Head of entry `i`; 0 when there is none.
#[inline]
pub(crate) fn map_head<const STRIDE: usize>(page: &[u8], i: usize) -> u32 {
    let at = page.len().wrapping_sub(STRIDE * (i + 1)).wrapping_add(2);
    match page.get(at..at.wrapping_add(4)) {
        Some(b) => u32::from_le_bytes([b[0], b[1], b[2], b[3]]),
        None => 0,
    }
}

/// Offset field of entry `i`; 0 when there is none.
#[inline]
pub(crate) fn map_offset<const STRIDE: usize>(page: &[u8], i: usize) -> u16 {
    let at = page.len().wrapping_sub(STRIDE * (i + 1));
    match page.get(at..at.wrapping_add(2)) {
        Some(b) => u16::from_le_bytes([b[0], b[1]]),
        None => 0,
    }
}

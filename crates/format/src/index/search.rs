//! Search over key heads, for leaves and non-leaf pages alike.
//!
//! A key map grows down from the page's end in steps of `STRIDE` bytes; each entry has an offset (u16) and a head (u32).
//!
//! A leaf that a look-up comes to is mostly not in the processor's caches, so what counts is how often it must wait for memory before it knows where to look next. A binary search
//! waits at almost each of its ten steps. Here a step looks at many evenly spaced heads at once, whose lines come at the same time: two waits, then the entries.

use std::cmp::Ordering;

/// Parts that a step cuts a long range into.
const MANY: usize = 16;
/// Ranges up to this are finished one entry after the other.
const FEW: usize = 8;

/// First of the entries `0..n` that is not less than the key with this head. `compare(i)` orders entry i against the key in full; it is asked only where heads are equal.
/// The second value tells whether that entry compares equal.
#[inline]
pub(crate) fn lower_bound<const STRIDE: usize>(page: &[u8], n: usize, head: u32, compare: impl Fn(usize) -> Ordering) -> (usize, bool) {
    let mut low = first_head_at_least::<STRIDE>(page, 0, n, head);
    // Entries with this head; mostly none or few.
    let mut steps = 0;
    while low < n && map_head::<STRIDE>(page, low) == head {
        match compare(low) {
            Ordering::Less => low += 1,
            order => return (low, order == Ordering::Equal),
        }
        steps += 1;
        if steps == FEW {
            return among_equal_heads::<STRIDE>(page, low, n, head, compare);
        }
    }
    (low, false)
}

/// Binary search in a long run of equal heads that begins at or before `low`.
#[cold]
fn among_equal_heads<const STRIDE: usize>(
    page: &[u8],
    mut low: usize,
    n: usize,
    head: u32,
    compare: impl Fn(usize) -> Ordering,
) -> (usize, bool) {
    let mut high = match head.checked_add(1) {
        Some(above) => first_head_at_least::<STRIDE>(page, low, n, above),
        None => n,
    };
    let mut found = false;
    while low < high {
        let middle = usize::midpoint(low, high);
        let order = compare(middle);
        if order == Ordering::Less {
            low = middle + 1;
        } else {
            high = middle;
            found = order == Ordering::Equal;
        }
    }
    // `found` belongs to the entry at `high`, which is `low` now; it is false when none was at or above the key.
    (low, found)
}

/// As [`lower_bound`], where comparing is dear and many entries may have one head: a binary search among those.
#[inline]
pub(crate) fn lower_bound_by_halves<const STRIDE: usize>(
    page: &[u8],
    n: usize,
    head: u32,
    compare: impl Fn(usize) -> Ordering,
) -> (usize, bool) {
    let low = first_head_at_least::<STRIDE>(page, 0, n, head);
    if low == n || map_head::<STRIDE>(page, low) != head {
        return (low, false);
    }
    if low + 1 == n || map_head::<STRIDE>(page, low + 1) != head {
        return match compare(low) {
            Ordering::Less => (low + 1, false),
            order => (low, order == Ordering::Equal),
        };
    }
    among_equal_heads::<STRIDE>(page, low, n, head, compare)
}

/// First of the entries `low..high` whose head is not less than `head`, or `high`.
#[inline]
fn first_head_at_least<const STRIDE: usize>(page: &[u8], mut low: usize, mut high: usize, head: u32) -> usize {
    while high - low > FEW {
        let parts = if high - low > 4 * MANY { MANY } else { MANY / 2 };
        let step = (high - low) / parts;
        // No look depends on another: they wait for memory together.
        let mut less = 0;
        for part in 1..parts {
            less += usize::from(map_head::<STRIDE>(page, low + part * step) < head);
        }
        // Entry `low + less * step` is less than the key (for less > 0), the one a step on is not.
        if less + 1 < parts {
            high = low + (less + 1) * step;
        }
        low += less * step;
    }
    let mut less = 0;
    for i in low..high {
        less += usize::from(map_head::<STRIDE>(page, i) < head);
    }
    low + less
}

/// Head of entry `i`; 0 when there is none.
#[inline(always)]
pub(crate) fn map_head<const STRIDE: usize>(page: &[u8], i: usize) -> u32 {
    let at = page.len().wrapping_sub(STRIDE * (i + 1)).wrapping_add(2);
    match page.get(at..at.wrapping_add(4)) {
        Some(b) => u32::from_le_bytes([b[0], b[1], b[2], b[3]]),
        None => 0,
    }
}

/// Offset field of entry `i`; 0 when there is none.
#[inline(always)]
pub(crate) fn map_offset<const STRIDE: usize>(page: &[u8], i: usize) -> u16 {
    let at = page.len().wrapping_sub(STRIDE * (i + 1));
    match page.get(at..at.wrapping_add(2)) {
        Some(b) => u16::from_le_bytes([b[0], b[1]]),
        None => 0,
    }
}

//! The smallest form of some pairs, and its size, before a byte is written.

use super::entries::Entries;
use super::{HEAD_BYTES, HEADER_BYTES, KeyForm, LINEAR_BITS, PAIRS_MAX, WIDTH_MAX, WINDOW_MAX, gather, to_linear, width_of};
use crate::bytes::common_prefix;

/// Keys of one block in form 3 at most: a search goes through them one by one.
pub(super) const TEXT_ENTRIES_MAX: usize = 32;

/// A form for a block and all that has been found out on the way to it.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) form: KeyForm,
    /// Entries have all RIDs of a key; else one each.
    pub(super) grouped: bool,
    pub(super) entries: usize,
    pub(super) pairs: usize,
    /// All keys of the index have one length.
    pub(super) fixed: bool,
    pub(super) key_bytes: usize,
    pub(super) window: Window,
    /// Codes of the keys, each key once; empty when the window is too wide.
    pub(super) codes: Vec<u64>,
    pub(super) code_width: u32,
    pub(super) count_width: u32,
    pub(super) rids: RidPlan,
    body_bytes: usize,
}

/// Where keys differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    /// Bytes behind it.
    pub(super) tail: usize,
    pub(super) bytes: usize,
    pub(super) mask: u128,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RidPlan {
    pub(super) slots: u64,
    pub(super) ascending: bool,
    pub(super) base: u64,
    pub(super) first_width: u32,
    pub(super) gap_width: u32,
    bits: usize,
}

impl RidPlan {
    pub(super) fn base_bytes(&self) -> usize {
        width_of(self.base).div_ceil(8) as usize
    }
}

impl Plan {
    /// The smallest form for these pairs, of an index whose keys all have `fixed_key_bytes` (0: lengths differ). `None` for no pairs, for more than a block takes, and for keys longer than a block can say.
    #[must_use]
    pub fn new(entries: &Entries, fixed_key_bytes: usize) -> Option<Plan> {
        let (pairs, distinct) = (entries.pair_count(), entries.entry_count());
        if pairs == 0 || pairs > PAIRS_MAX || entries.key(0).len() > usize::from(u16::MAX) {
            return None;
        }
        let key_bytes = entries.key(0).len();
        let fixed = fixed_key_bytes != 0;
        let one_length = fixed || (1..distinct).all(|i| entries.key(i).len() == key_bytes);
        let slots = 1 + entries.all_rids().iter().map(|rid| rid & 0xFFF).max().unwrap_or(0);
        let grouped_rids = rid_plan(entries, slots, true);
        let most_rids = if distinct == pairs { 1 } else { (0..distinct).map(|i| entries.rids(i).len()).max().unwrap_or(1) };
        let count_width = if distinct == 1 { 0 } else { width_of(most_rids as u64 - 1) };
        let mut plan = Plan {
            form: KeyForm::One,
            grouped: true,
            entries: distinct,
            pairs,
            fixed,
            key_bytes,
            window: Window::default(),
            codes: Vec::new(),
            code_width: 0,
            count_width,
            rids: grouped_rids,
            body_bytes: HEADER_BYTES + if fixed { 0 } else { 2 },
        };
        let mut bits = grouped_rids.bits + distinct * count_width as usize;
        if distinct > 1 {
            let window = if one_length { plan.find_codes(entries) } else { None };
            if let Some(window) = window {
                plan.window = window;
                plan.choose_codes(&mut bits, entries, slots);
            } else {
                plan.form = KeyForm::Text;
                plan.body_bytes += text_bytes(entries, fixed);
            }
        }
        plan.body_bytes += plan.rids.base_bytes() + bits.div_ceil(8);
        Some(plan)
    }

    /// Bytes of the block on a leaf whose keys share `shared` bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self, shared: usize) -> usize {
        self.body_bytes + self.rest_bytes(shared)
    }

    /// Bytes of the first key that are neither shared nor in the head.
    pub(super) fn rest_bytes(&self, shared: usize) -> usize {
        self.key_bytes.saturating_sub(shared + HEAD_BYTES)
    }

    /// More keys than a search should go through?
    #[must_use]
    pub fn is_slow(&self) -> bool {
        self.form == KeyForm::Text && self.entries > TEXT_ENTRIES_MAX
    }

    /// The window of keys of one length, and their codes.
    fn find_codes(&mut self, entries: &Entries) -> Option<Window> {
        let (n, first) = (entries.entry_count(), entries.key(0));
        let start = entries.shared_bytes();
        let bytes = (first.len() - start).min(WINDOW_MAX);
        let end = start + bytes;
        let whole = window(&first[start..end]);
        let mut mask = 0;
        for i in 1..n {
            let key = entries.key(i);
            mask |= window(&key[start..end]) ^ whole;
            if key[end..] != first[end..] {
                return None;
            }
        }
        if mask.count_ones() > WIDTH_MAX {
            return None;
        }
        let zeros = mask.trailing_zeros() / 8;
        let tail = first.len() - end + zeros as usize;
        if tail > usize::from(u8::MAX) {
            return None;
        }
        self.codes.reserve(n);
        self.codes.extend((0..n).map(|i| gather::pick(window(&entries.key(i)[start..end]), mask)));
        Some(Window { tail, bytes: bytes - zeros as usize, mask: mask >> (8 * zeros) })
    }

    /// Codes from the first or from the one before, with counts or without: what takes the fewest bits.
    fn choose_codes(&mut self, bits: &mut usize, entries: &Entries, slots: u64) {
        self.body_bytes += 2 + self.window.bytes;
        let n = self.codes.len();
        let frame = width_of(self.codes[n - 1] - self.codes[0]);
        let delta = self.codes.windows(2).map(|c| width_of(c[1] - c[0])).max().unwrap_or(0);
        (self.form, self.code_width) = if delta < frame { (KeyForm::Delta, delta) } else { (KeyForm::Frame, frame) };
        *bits += (n - 1) * self.code_width as usize;
        if self.pairs > n {
            let rids = rid_plan(entries, slots, false);
            let single = rids.bits + (self.pairs - 1) * self.code_width as usize;
            if single + 8 * rids.base_bytes() < *bits + 8 * self.rids.base_bytes() {
                (self.grouped, self.entries, self.count_width, self.rids) = (false, self.pairs, 0, rids);
                *bits = single;
            }
        }
    }
}

/// At most 16 bytes as a big-endian number.
#[inline]
pub(super) fn window(bytes: &[u8]) -> u128 {
    // Two loads that may overlap: no copy of a length that is not known.
    match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(first), Some(last)) => {
            u128::from(u64::from_be_bytes(*first)) << (8 * (bytes.len() - 8)) | u128::from(u64::from_be_bytes(*last))
        }
        _ => u128::from(short_window(bytes)),
    }
}

#[inline]
fn short_window(bytes: &[u8]) -> u64 {
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            u64::from(u32::from_be_bytes(*first)) << (8 * (bytes.len() - 4)) | u64::from(u32::from_be_bytes(*last))
        }
        _ => bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)),
    }
}

fn rid_plan(entries: &Entries, slots: u64, grouped: bool) -> RidPlan {
    let rids = entries.all_rids();
    let linear = |rid: u64| to_linear(rid, slots);
    let first = linear(rids[0]);
    let (mut low, mut high, mut before) = (first, first, first);
    let mut ascending = true;
    // The bits of all gaps together are as wide as the widest.
    let (mut gaps, mut list_gaps) = (0, 0);
    let entry_count = if grouped { entries.entry_count() } else { rids.len() };
    if entry_count == rids.len() {
        for rid in &rids[1..] {
            let rid = linear(*rid);
            ascending &= rid > before;
            gaps |= rid.wrapping_sub(before).wrapping_sub(1);
            (low, high, before) = (low.min(rid), high.max(rid), rid);
        }
    } else {
        for i in 0..entry_count {
            for (j, rid) in entries.rids(i).iter().enumerate().skip(usize::from(i == 0)) {
                let rid = linear(*rid);
                let gap = rid.wrapping_sub(before).wrapping_sub(1);
                ascending &= rid > before;
                gaps |= gap;
                if j > 0 {
                    list_gaps |= gap;
                } else {
                    (low, high) = (low.min(rid), high.max(rid));
                }
                before = rid;
            }
        }
    }
    let all_gaps = if ascending { width_of(gaps) } else { LINEAR_BITS };
    let ascending_bits = (rids.len() - 1) * all_gaps as usize;
    let (first_width, gap_width) = (width_of(high - low), width_of(list_gaps));
    let bits = entry_count * first_width as usize + (rids.len() - entry_count) * gap_width as usize;
    if ascending && ascending_bits <= bits {
        return RidPlan { slots, ascending: true, base: first, first_width: 0, gap_width: all_gaps, bits: ascending_bits };
    }
    RidPlan { slots, ascending: false, base: low, first_width, gap_width, bits }
}

/// Bytes of the numbers beside the byte of a token.
pub(super) fn escape_bytes(number: usize, limit: usize) -> usize {
    if number < limit { 0 } else { 2 }
}

fn text_bytes(entries: &Entries, fixed: bool) -> usize {
    let mut sum = 0;
    for i in 1..entries.entry_count() {
        let (before, key) = (entries.key(i - 1), entries.key(i));
        let shared = common_prefix(before, key);
        let (dropped, added) = (before.len() - shared, key.len() - shared);
        sum += 1 + added + if fixed { escape_bytes(added, 255) } else { escape_bytes(dropped, 15) + escape_bytes(added, 15) };
    }
    sum
}

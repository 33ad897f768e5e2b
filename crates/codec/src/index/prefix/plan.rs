//! The smallest form of some pairs, and its size, before a byte is written.

use super::entries::Entries;
use super::{HEAD_BYTES, HEADER_BYTES, KeyForm, LINEAR_BITS, PAIRS_MAX, WIDTH_MAX, WINDOW_MAX, gather, to_linear, width_of};
use crate::bytes::common_prefix;

/// Keys of one block in form 3 at most: a search goes through them one by one.
pub(super) const TEXT_ENTRIES_MAX: usize = 32;

/// A form for a block and all that has been found out on the way to it.
#[derive(Clone, Debug, Default)]
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
    pub(super) coded: Coded,
    pub(super) code_width: u32,
    pub(super) count_width: u32,
    pub(super) rids: RidPlan,
    body_bytes: usize,
}

/// The pairs of a plan as numbers. An insert that keeps the window works on these alone: no key is put together for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Coded {
    /// Codes of the keys, each key once; empty when the window is too wide.
    pub(super) codes: Vec<u64>,
    /// End of each key's RIDs in `linear`.
    pub(super) ends: Vec<u32>,
    pub(super) linear: Vec<u64>,
    pub(super) slots: u64,
}

impl Coded {
    pub(super) fn clear(&mut self) {
        self.codes.clear();
        self.ends.clear();
        self.linear.clear();
    }

    /// Where the RIDs of key `i` begin.
    #[inline]
    pub(super) fn start(&self, i: usize) -> usize {
        if i == 0 { 0 } else { self.ends[i - 1] as usize }
    }

    #[inline]
    pub(super) fn rids(&self, i: usize) -> &[u64] {
        &self.linear[self.start(i)..self.ends[i] as usize]
    }
}

/// Where keys differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    /// Bytes behind it.
    pub(super) tail: usize,
    pub(super) bytes: usize,
    pub(super) mask: u128,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RidPlan {
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
        let linear = entries.all_rids().iter().map(|rid| to_linear(*rid, slots)).collect();
        let coded = Coded { codes: Vec::new(), ends: entries.rid_ends().to_vec(), linear, slots };
        let mut plan = Plan { coded, ..Plan::default() };
        plan.begin(fixed, key_bytes);
        if distinct > 1 {
            match if one_length { plan.find_codes(entries) } else { None } {
                Some(window) => plan.window = window,
                None => plan.body_bytes += text_bytes(entries, fixed),
            }
        }
        plan.settle();
        Some(plan)
    }

    /// Before what is in `coded` now is planned.
    pub(super) fn begin(&mut self, fixed: bool, key_bytes: usize) {
        (self.fixed, self.key_bytes, self.window) = (fixed, key_bytes, Window::default());
        self.body_bytes = HEADER_BYTES + if fixed { 0 } else { 2 };
    }

    /// Chooses the form, by what is in `coded`; window and the bytes of text, if there are any, are known.
    pub(super) fn settle(&mut self) {
        let (distinct, pairs) = (self.coded.ends.len(), self.coded.linear.len());
        (self.grouped, self.entries, self.pairs) = (true, distinct, pairs);
        let most_rids = if distinct == pairs { 1 } else { (0..distinct).map(|i| self.coded.rids(i).len()).max().unwrap_or(1) };
        self.count_width = if distinct == 1 { 0 } else { width_of(most_rids as u64 - 1) };
        self.rids = rid_plan(&self.coded, true);
        self.code_width = 0;
        let mut bits = self.rids.bits + distinct * self.count_width as usize;
        if distinct == 1 {
            self.form = KeyForm::One;
        } else if self.coded.codes.is_empty() {
            self.form = KeyForm::Text;
        } else {
            self.choose_codes(&mut bits);
        }
        self.body_bytes += self.rids.base_bytes() + bits.div_ceil(8);
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
        self.coded.codes.reserve(n);
        self.coded.codes.extend((0..n).map(|i| gather::pick(window(&entries.key(i)[start..end]), mask)));
        Some(Window { tail, bytes: bytes - zeros as usize, mask: mask >> (8 * zeros) })
    }

    /// Codes from the first or from the one before, with counts or without: what takes the fewest bits.
    fn choose_codes(&mut self, bits: &mut usize) {
        self.body_bytes += 2 + self.window.bytes;
        let codes = &self.coded.codes;
        let n = codes.len();
        let frame = width_of(codes[n - 1] - codes[0]);
        // The bits of all differences together are as wide as the widest.
        let delta = width_of(codes.windows(2).fold(0, |all, c| all | (c[1] - c[0])));
        (self.form, self.code_width) = if delta < frame { (KeyForm::Delta, delta) } else { (KeyForm::Frame, frame) };
        *bits += (n - 1) * self.code_width as usize;
        if self.pairs > n {
            let rids = rid_plan(&self.coded, false);
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

fn rid_plan(coded: &Coded, grouped: bool) -> RidPlan {
    let rids = coded.linear.as_slice();
    let (first, entry_count) = (rids[0], if grouped { coded.ends.len() } else { rids.len() });
    // The bits of all gaps together are as wide as the widest.
    let (mut gaps, mut list_gaps, mut ascending) = (0, 0, true);
    for pair in rids.windows(2) {
        if pair[1] <= pair[0] {
            ascending = false;
            break;
        }
        gaps |= pair[1] - pair[0] - 1;
    }
    let (mut low, mut high) = (first, first);
    if entry_count == rids.len() {
        if ascending {
            high = rids[rids.len() - 1];
        } else {
            (low, high) = rids.iter().fold((first, first), |(low, high), rid| (low.min(*rid), high.max(*rid)));
        }
    } else {
        for i in 0..entry_count {
            let list = coded.rids(i);
            (low, high) = (low.min(list[0]), high.max(list[0]));
            for pair in list.windows(2) {
                list_gaps |= pair[1].wrapping_sub(pair[0]).wrapping_sub(1);
            }
        }
    }
    let all_gaps = if ascending { width_of(gaps) } else { LINEAR_BITS };
    let ascending_bits = (rids.len() - 1) * all_gaps as usize;
    let (first_width, gap_width) = (width_of(high - low), width_of(list_gaps));
    let bits = entry_count * first_width as usize + (rids.len() - entry_count) * gap_width as usize;
    if ascending && ascending_bits <= bits {
        return RidPlan { ascending: true, base: first, first_width: 0, gap_width: all_gaps, bits: ascending_bits };
    }
    RidPlan { ascending: false, base: low, first_width, gap_width, bits }
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

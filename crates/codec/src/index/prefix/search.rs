//! Search in a block, which stays as it is.

use super::view::Block;
use super::{HEAD_BYTES, KeyForm, WINDOW_MAX, bits, from_linear, gather, plan::window};
use std::cmp::Ordering;

/// Parts that a step of a search cuts codes into.
const PARTS: usize = 8;

/// Where a search for a key ends.
#[derive(Clone, Copy)]
struct Found {
    /// First entry whose key is not less.
    entry: usize,
    equal: bool,
    /// Entries with that key, when `equal`: more than one where each pair is an entry.
    equals: usize,
}

/// The first code that is not less than that of a key that is unlike all keys: where it first differs from them settles it, below that bit its own do not matter.
#[cold]
fn code_behind(key: u128, differs: u128, mask: u128) -> u64 {
    let bit = 127 - differs.leading_zeros();
    let below = (1u128 << bit) - 1;
    if key >> bit & 1 == 1 { gather::pick(key | below, mask) + 1 } else { gather::pick(key & !below, mask) }
}

impl Block<'_> {
    /// Orders the first pair's RID against `rid`, packed.
    #[inline]
    #[must_use]
    pub fn cmp_first_rid(&self, rid: u64) -> Ordering {
        let (page, slot) = (rid >> 12, rid & 0xFFF);
        // A slot that nothing in the block has is behind the last one of its page.
        self.first_of(0).cmp(&(page * self.slots + slot.min(self.slots))).then(if slot < self.slots {
            Ordering::Equal
        } else {
            Ordering::Greater
        })
    }

    /// First pair whose key is not less than `key`, and whether its key is `key`. One past the last when all are less. `own` is `key` without the bytes that all keys of the leaf share.
    #[inline]
    #[must_use]
    pub fn lower_bound(&self, own: &[u8]) -> (usize, bool) {
        let found = self.find_key(own, false);
        (self.pairs_before(found.entry), found.equal)
    }

    /// The first RID of `key`, packed. `own` as in [`Block::lower_bound`].
    #[inline]
    #[must_use]
    pub fn find(&self, own: &[u8]) -> Option<u64> {
        let found = self.find_key(own, false);
        if !found.equal {
            return None;
        }
        let linear = if self.ascending { self.linear(self.pairs_before(found.entry)) } else { self.first_of(found.entry) };
        Some(from_linear(linear, self.slots))
    }

    /// First pair that is not less than (`key`, `rid`), and whether it is that.
    #[inline]
    #[must_use]
    pub fn lower_bound_pair(&self, own: &[u8], rid: u64) -> (usize, bool) {
        let found = self.find_key(own, true);
        let first = self.pairs_before(found.entry);
        if !found.equal {
            return (first, false);
        }
        let (page, slot) = (rid >> 12, rid & 0xFFF);
        // A slot that nothing in the block has is behind the last one of its page.
        let target = page * self.slots + slot.min(self.slots);
        let (at, there) = if found.equals > 1 {
            self.among_entries(found, target)
        } else {
            let count = self.count_of(found.entry);
            let (value, gaps) = if self.ascending {
                (self.linear(first), self.gaps + first * self.gap_width as usize)
            } else {
                (self.first_of(found.entry), self.gaps + (first - found.entry) * self.gap_width as usize)
            };
            let (at, value) = bits::sums_lower_bound(self.bytes, gaps, self.gap_width, count - 1, 1, value, target);
            (at, at < count && value == target)
        };
        (first + at, there && slot < self.slots)
    }

    fn among_entries(&self, found: Found, target: u64) -> (usize, bool) {
        for at in 0..found.equals {
            let linear = self.linear(found.entry + at);
            if linear >= target {
                return (at, linear == target);
            }
        }
        (found.equals, false)
    }

    /// The packed RID of pair `pair`; of any when there is none.
    #[inline]
    #[must_use]
    pub fn rid(&self, pair: usize) -> u64 {
        from_linear(self.linear(pair.min(self.pairs - 1)), self.slots)
    }

    #[inline]
    fn linear(&self, pair: usize) -> u64 {
        if self.ascending {
            return self.base + pair as u64 + bits::sum(self.bytes, self.gaps, self.gap_width, pair);
        }
        if self.count_width == 0 && self.entries > 1 {
            return self.first_of(pair);
        }
        let (mut entry, mut first) = (0, 0);
        while entry + 1 < self.entries && first + self.count_of(entry) <= pair {
            first += self.count_of(entry);
            entry += 1;
        }
        let gaps = self.gaps + (first - entry) * self.gap_width as usize;
        self.first_of(entry) + (pair - first) as u64 + bits::sum(self.bytes, gaps, self.gap_width, pair - first)
    }

    fn all_less(&self) -> Found {
        Found { entry: self.entries, equal: false, equals: 0 }
    }

    /// `all`: count the equal ones.
    #[inline]
    fn find_key(&self, own: &[u8], all: bool) -> Found {
        match self.form {
            KeyForm::One => match self.cmp_first_key(own) {
                Ordering::Less => self.all_less(),
                order => Found { entry: 0, equal: order == Ordering::Equal, equals: 1 },
            },
            KeyForm::Frame | KeyForm::Delta => self.find_code(own, all),
            KeyForm::Text => self.find_text(own),
        }
    }

    #[inline]
    fn find_code(&self, own: &[u8], all: bool) -> Found {
        let own_bytes = self.key_bytes - self.frame.shared.len();
        if own.len() != own_bytes || own_bytes > WINDOW_MAX {
            return self.find_long(own, own_bytes, all);
        }
        // The whole key is one number: that it is like the others outside the mask is one comparison.
        let (key, first, mask) = (window(own), self.first_number(), self.mask << (8 * self.tail));
        let differs = (key ^ first) & !mask;
        let (base, mut target) = gather::pick_two(first, key, mask);
        if differs != 0 {
            target = code_behind(key, differs, mask);
        }
        let (entry, code) = self.code_lower_bound(base, target);
        if differs != 0 || entry == self.entries || code != target {
            return Found { entry, equal: false, equals: 0 };
        }
        let equals = if all && self.pairs == self.entries { self.equal_codes(base, entry, target) } else { 1 };
        Found { entry, equal: true, equals }
    }

    /// As [`Self::find_code`], for what is not as long as the block's keys, and for keys longer than a window.
    fn find_long(&self, own: &[u8], own_bytes: usize, all: bool) -> Found {
        let start = own_bytes - self.tail - self.window_bytes;
        let end = own_bytes - self.tail;
        // Before the window all keys are like the first.
        if start > 0 {
            let order = match own.get(..start) {
                Some(before) => self.cmp_own(0, start, before),
                None => self.cmp_own(0, own.len(), own).then(Ordering::Greater),
            };
            match order {
                Ordering::Less => return self.all_less(),
                Ordering::Greater => return Found { entry: 0, equal: false, equals: 0 },
                Ordering::Equal => {}
            }
        }
        let key = match own.get(start..end) {
            Some(bytes) => window(bytes),
            None => {
                let mut padded = [0; WINDOW_MAX];
                padded[..own.len() - start].copy_from_slice(&own[start..]);
                window(&padded[..self.window_bytes])
            }
        };
        let first = self.first_window();
        let differs = (key ^ first) & !self.mask;
        let base = gather::pick(first, self.mask);
        if differs != 0 {
            return Found { entry: self.code_lower_bound(base, code_behind(key, differs, self.mask)).0, equal: false, equals: 0 };
        }
        let target = gather::pick(key, self.mask);
        let (entry, code) = self.code_lower_bound(base, target);
        if entry == self.entries || code != target || own.len() < end {
            return Found { entry, equal: false, equals: 0 };
        }
        match self.cmp_own(end, own_bytes, &own[end..]) {
            Ordering::Equal => {
                let equals = if all && self.pairs == self.entries { self.equal_codes(base, entry, target) } else { 1 };
                Found { entry, equal: true, equals }
            }
            Ordering::Greater => Found { entry, equal: false, equals: 0 },
            Ordering::Less => Found { entry: self.code_lower_bound(base, target + 1).0, equal: false, equals: 0 },
        }
    }

    /// Orders bytes `from..to` of the first key's own against `key`.
    pub(super) fn cmp_own(&self, from: usize, to: usize, key: &[u8]) -> Ordering {
        let head = self.frame.head.to_be_bytes();
        let in_head = &head[from.min(HEAD_BYTES)..to.min(HEAD_BYTES)];
        let in_rest = self.rest.get(from.saturating_sub(HEAD_BYTES)..to.saturating_sub(HEAD_BYTES)).unwrap_or(&[]);
        match key.get(..in_head.len()) {
            Some(start) => in_head.cmp(start).then_with(|| in_rest.cmp(&key[in_head.len()..])),
            None => in_head.cmp(key),
        }
    }

    /// First entry whose code is not less than `target`, and that code.
    #[inline]
    fn code_lower_bound(&self, base: u64, target: u64) -> (usize, u64) {
        if target <= base {
            return (0, base);
        }
        let n = self.entries - 1;
        if self.form == KeyForm::Delta {
            return bits::sums_lower_bound(self.bytes, self.codes, self.code_width, n, 0, base, target);
        }
        let wanted = target - base;
        let code = |i: usize| bits::get(self.bytes, self.codes + i * self.code_width as usize, self.code_width);
        let (mut low, mut len) = (0, n);
        // No look of a step waits for another.
        while len > PARTS {
            let part = len / PARTS;
            let less = (1..PARTS).map(|i| usize::from(code(low + i * part) < wanted)).sum::<usize>();
            // The code a part on, if there is one, is not less.
            len = if less + 1 < PARTS { part } else { len - less * part };
            low += less * part;
        }
        low += (low..low + len).map(|i| usize::from(code(i) < wanted)).sum::<usize>();
        (low + 1, base + code(low.min(n - 1)))
    }

    /// Entries from `entry` on that have `target`.
    fn equal_codes(&self, base: u64, entry: usize, target: u64) -> usize {
        let width = self.code_width as usize;
        let code = |i: usize| bits::get(self.bytes, self.codes + (i - 1) * width, self.code_width);
        let same = |i: &usize| if self.form == KeyForm::Delta { code(*i) == 0 } else { base + code(*i) == target };
        1 + (entry + 1..self.entries).take_while(same).count()
    }

    fn find_text(&self, own: &[u8]) -> Found {
        let shared = self.frame.shared.len();
        let at_first = match self.cmp_first_key(own) {
            Ordering::Less => self.matching_first(own),
            order => return Found { entry: 0, equal: order == Ordering::Equal, equals: 1 },
        };
        // Bytes of the key before that are as in the key looked for, of what the leaf does not share; the key before is less.
        let mut matching = at_first;
        let mut tokens = self.tokens();
        for entry in 1..self.entries {
            let Some(token) = tokens.next() else { return self.all_less() };
            let kept = token.shared.saturating_sub(shared);
            if kept > matching {
                continue;
            }
            if kept < matching {
                return Found { entry, equal: false, equals: 0 };
            }
            let wanted = own.get(kept..).unwrap_or(&[]);
            match token.suffix.cmp(wanted) {
                Ordering::Less => matching = kept + crate::bytes::common_prefix(token.suffix, wanted),
                order => return Found { entry, equal: order == Ordering::Equal, equals: 1 },
            }
        }
        self.all_less()
    }

    /// Bytes that the first key's own and `own` share.
    fn matching_first(&self, own: &[u8]) -> usize {
        let head = self.frame.head.to_be_bytes();
        let head = &head[..(self.key_bytes - self.frame.shared.len()).min(HEAD_BYTES)];
        let in_head = crate::bytes::common_prefix(head, own);
        if in_head < HEAD_BYTES { in_head } else { HEAD_BYTES + crate::bytes::common_prefix(self.rest, &own[HEAD_BYTES..]) }
    }
}

//! A pair behind the last one of a block of bit-packed keys, as inserts in order bring them: bits are moved, no number is unpacked but the last.
//!
//! Invariant: the bytes are those of [`Plan::new`](super::Plan::new) for the same pairs. That is so as long as no number gets wider: the code of the last key less that of the one before, or
//! of the first, and the gap between the last RIDs. Gaps are never wider than the first RIDs would be beside them, and differences that were not chosen do not become narrower.

use super::encode::BitWriter;
use super::view::Block;
use super::{KeyForm, LINEAR_BITS, PAIRS_MAX, bits, gather, to_linear, width_of};

/// Bits that are moved at once.
const MOVED_BITS: usize = 56;

impl Block<'_> {
    /// Appends to `out` the block with a pair more behind its last, whose key has not been there; the head of its first key is as it was. False, and nothing is appended, where this way does
    /// not serve. `own` is the key without the bytes that all keys of the leaf share.
    #[must_use]
    pub fn append(&self, own: &[u8], rid: u64, out: &mut Vec<u8>) -> bool {
        let n = self.pairs;
        let is_such = self.form.is_packed() && self.entries == n && self.ascending && n < PAIRS_MAX;
        if !is_such {
            return false;
        }
        let Some(code) = self.code_of(own) else { return false };
        let first = gather::pick(self.first_window(), self.mask);
        let (last, number) = match self.form {
            KeyForm::Frame => {
                let last = bits::get(self.bytes, self.codes + (n - 2) * self.code_width as usize, self.code_width);
                (first + last, code.wrapping_sub(first))
            }
            _ => {
                let last = first + bits::sum(self.bytes, self.codes, self.code_width, n - 1);
                (last, code.wrapping_sub(last))
            }
        };
        if code <= last || width_of(number) > self.code_width {
            return false;
        }
        let last_linear = self.base + bits::sum(self.bytes, self.gaps, self.gap_width, n - 1) + (n - 1) as u64;
        let Some(numbered) = self.numbered_with(rid, last_linear) else { return false };
        let linear = to_linear(rid, numbered.slots);
        if linear <= numbered.last || width_of(linear - numbered.last - 1) > self.gap_width {
            return false;
        }
        let gap = linear - numbered.last - 1;
        let (start, head) = (out.len(), self.codes / 8);
        let codes = (n - 1) * self.code_width as usize;
        let gaps = (n - 1) * self.gap_width as usize;
        let end = start + head + (codes + gaps + (self.code_width + self.gap_width) as usize).div_ceil(8);
        out.extend_from_slice(&self.bytes[..head + codes / 8]);
        out[start] = n as u8 | 0x80;
        out[start + 1] = n as u8;
        let slots = u16::from_le_bytes([out[start + 3], out[start + 4]]) & 0xF000 | (numbered.slots - 1) as u16;
        out[start + 3..start + 5].copy_from_slice(&slots.to_le_bytes());
        let base_bytes = width_of(numbered.base).div_ceil(8) as usize;
        let base_at = start + head - base_bytes;
        out[base_at..base_at + base_bytes].copy_from_slice(&numbered.base.to_le_bytes()[..base_bytes]);
        out.resize(end + 8, 0);
        let begun = bits::get(self.bytes, self.codes + codes / 8 * 8, codes as u32 % 8);
        let mut writer = BitWriter::within(&mut out[start + head..], codes, begun);
        writer.put(self.code_width, number);
        for at in (0..gaps).step_by(MOVED_BITS) {
            let width = MOVED_BITS.min(gaps - at) as u32;
            writer.put(width, bits::get(self.bytes, self.gaps + at, width));
        }
        writer.put(self.gap_width, gap);
        out.truncate(end);
        true
    }

    /// How RIDs are numbered with `rid` among them. A slot that is greater than all numbers them anew, and where all are of one page the gaps between them stay: as a page fills, each row has such a slot.
    fn numbered_with(&self, rid: u64, last: u64) -> Option<Numbered> {
        let slots = (rid & 0xFFF) + 1;
        if slots <= self.slots {
            return Some(Numbered { slots: self.slots, base: self.base, last });
        }
        let page = self.base / self.slots;
        if page >> (LINEAR_BITS - 12) != 0 || page != last / self.slots {
            return None;
        }
        let (base, of_last) = (page * slots + self.base % self.slots, page * slots + last % self.slots);
        let is_as_long = width_of(base).div_ceil(8) == width_of(self.base).div_ceil(8);
        is_as_long.then_some(Numbered { slots, base, last: of_last })
    }
}

/// RIDs of a block as numbers without gaps between pages.
struct Numbered {
    slots: u64,
    base: u64,
    last: u64,
}

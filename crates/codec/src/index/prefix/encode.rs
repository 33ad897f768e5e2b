//! A plan's bytes.

use super::entries::Entries;
use super::plan::Plan;
use super::{HEAD_BYTES, KeyForm, WIDTH_MAX};
use crate::bytes::common_prefix;

/// Writes numbers one behind the other; what is not yet a whole byte waits.
pub(super) struct BitWriter<'a> {
    bytes: &'a mut [u8],
    /// Next byte to be written.
    at: usize,
    waiting: u64,
    /// Bits that wait, less than 8 between two numbers.
    bits: u32,
}

impl<'a> BitWriter<'a> {
    /// Goes on behind `bits` bits; `begun`: those of the last, begun byte.
    #[inline]
    pub(super) fn within(bytes: &'a mut [u8], bits: usize, begun: u64) -> BitWriter<'a> {
        BitWriter { bytes, at: bits / 8, waiting: begun, bits: (bits % 8) as u32 }
    }
}

impl BitWriter<'_> {
    /// Adds a number of `width` bits, at most 56. There are 8 bytes from where it begins.
    #[inline]
    pub(super) fn put(&mut self, width: u32, value: u64) {
        debug_assert!(width <= WIDTH_MAX && value >> width == 0);
        self.waiting |= value << self.bits;
        self.bits += width;
        self.bytes[self.at..self.at + 8].copy_from_slice(&self.waiting.to_le_bytes());
        self.at += (self.bits / 8) as usize;
        self.waiting >>= self.bits & !7;
        self.bits &= 7;
    }
}

impl BitWriter<'_> {
    /// Adds `count` numbers, `number(i)` being the i-th: as many at once as make at most 56 bits, since each addition waits for the one before.
    #[inline]
    fn put_all(&mut self, width: u32, count: usize, number: impl Fn(usize) -> u64) {
        match width {
            0 => {}
            1..=7 => self.put_all_by::<8>(width, count, number),
            8..=14 => self.put_all_by::<4>(width, count, number),
            15..=28 => self.put_all_by::<2>(width, count, number),
            _ => self.put_all_by::<1>(width, count, number),
        }
    }

    #[inline]
    fn put_all_by<const N: u32>(&mut self, width: u32, count: usize, number: impl Fn(usize) -> u64) {
        let whole = count - count % N as usize;
        for i in (0..whole).step_by(N as usize) {
            let numbers = (0..N).fold(0, |all, j| all | number(i + j as usize) << (j * width));
            self.put(N * width, numbers);
        }
        (whole..count).for_each(|i| self.put(width, number(i)));
    }
}

impl Plan {
    /// Appends the block as it is on a leaf whose keys share `shared` bytes; exactly [`Plan::bytes`] of them. `entries` are those the plan was made for.
    ///
    /// # Panics
    /// May panic when they are others.
    pub fn encode(&self, entries: &Entries, shared: usize, out: &mut Vec<u8>) {
        self.put(entries.key(0).get(shared + HEAD_BYTES..).unwrap_or(&[]), out);
        if self.form == KeyForm::Text {
            self.put_text(entries, out);
        }
    }

    /// All but the text; `rest` is what the first key has behind the shared bytes and the head.
    pub(super) fn put(&self, rest: &[u8], out: &mut Vec<u8>) {
        let rids = &self.rids;
        out.push((self.pairs - 1) as u8 | u8::from(rids.ascending) << 7);
        out.push((self.entries - 1) as u8);
        let base_bytes = rids.base_bytes();
        out.push(self.form as u8 | (self.count_width as u8) << 2 | (base_bytes as u8) << 5);
        let window_bytes = if self.form.is_packed() { self.window.bytes - 1 } else { 0 };
        out.extend_from_slice(&((self.coded.slots - 1) as u16 | (window_bytes as u16) << 12).to_le_bytes());
        out.push(rids.first_width as u8);
        out.push(rids.gap_width as u8);
        if !self.fixed {
            out.extend_from_slice(&(self.key_bytes as u16).to_le_bytes());
        }
        out.extend_from_slice(rest);
        if self.form.is_packed() {
            out.push(self.code_width as u8);
            out.push(self.window.tail as u8);
            out.extend_from_slice(&self.window.mask.to_be_bytes()[16 - self.window.bytes..]);
        }
        out.extend_from_slice(&rids.base.to_le_bytes()[..base_bytes]);
        self.put_bits(out);
    }

    fn put_bits(&self, out: &mut Vec<u8>) {
        let (rids, coded) = (&self.rids, &self.coded);
        let codes = if self.form.is_packed() { (self.entries - 1) * self.code_width as usize } else { 0 };
        let counts = if self.count_width == 0 { 0 } else { self.entries * self.count_width as usize };
        let (firsts, gaps) = if rids.ascending { (0, self.pairs - 1) } else { (self.entries, self.pairs - self.entries) };
        let firsts = firsts * rids.first_width as usize;
        let end = out.len() + (codes + counts + firsts + gaps * rids.gap_width as usize).div_ceil(8);
        let start = out.len();
        out.resize(end + 8, 0);
        let mut writer = BitWriter { bytes: &mut out[start..], at: 0, waiting: 0, bits: 0 };
        if self.form.is_packed() {
            self.put_codes(&mut writer);
        }
        if self.count_width > 0 {
            writer.put_all(self.count_width, self.entries, |i| coded.rids(i).len() as u64 - 1);
        }
        let put_gaps = |writer: &mut BitWriter<'_>, list: &[u64]| {
            writer.put_all(rids.gap_width, list.len() - 1, |i| list[i + 1] - list[i] - 1);
        };
        if rids.ascending {
            put_gaps(&mut writer, &coded.linear);
        } else if self.grouped {
            writer.put_all(rids.first_width, self.entries, |i| coded.rids(i)[0] - rids.base);
            if self.pairs > self.entries {
                for i in 0..self.entries {
                    put_gaps(&mut writer, coded.rids(i));
                }
            }
        } else {
            writer.put_all(rids.first_width, coded.linear.len(), |i| coded.linear[i] - rids.base);
        }
        out.truncate(end);
    }

    fn put_codes(&self, writer: &mut BitWriter<'_>) {
        let frame = self.form == KeyForm::Frame;
        let codes = self.coded.codes.as_slice();
        if self.grouped {
            let base = |i: usize| codes[if frame { 0 } else { i }];
            return writer.put_all(self.code_width, codes.len() - 1, |i| codes[i + 1] - base(i));
        }
        for (i, code) in codes.iter().enumerate() {
            if i > 0 {
                writer.put(self.code_width, code - codes[if frame { 0 } else { i - 1 }]);
            }
            for _ in 1..self.coded.rids(i).len() {
                writer.put(self.code_width, if frame { code - codes[0] } else { 0 });
            }
        }
    }

    fn put_text(&self, entries: &Entries, out: &mut Vec<u8>) {
        for i in 1..self.entries {
            let (before, key) = (entries.key(i - 1), entries.key(i));
            let shared = common_prefix(before, key);
            let (dropped, added) = (before.len() - shared, key.len() - shared);
            if self.fixed {
                out.push(added.min(255) as u8);
            } else {
                out.push((dropped.min(15) << 4 | added.min(15)) as u8);
                if dropped >= 15 {
                    out.extend_from_slice(&(dropped as u16).to_le_bytes());
                }
            }
            if added >= if self.fixed { 255 } else { 15 } {
                out.extend_from_slice(&(added as u16).to_le_bytes());
            }
            out.extend_from_slice(&key[shared..]);
        }
    }
}

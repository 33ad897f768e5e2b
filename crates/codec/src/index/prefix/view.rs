//! A block as it lies in a leaf.
//!
//! Invariants: [`Block::read`] has checked that every part lies within the block, so no access panics, whatever the bytes; keys and RIDs of a damaged block may be in any order.

use super::entries::Entries;
use super::{BlockError, HEAD_BYTES, HEADER_BYTES, KeyForm, LINEAR_BITS, WIDTH_MAX, WINDOW_MAX, bits, from_linear, gather, plan::window};
use crate::index::layout::key_head;

/// What a block's leaf knows of it.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Length of every key of the index; 0: lengths differ.
    pub fixed_key_bytes: usize,
    /// The bytes that all keys of the leaf share.
    pub shared: &'a [u8],
    /// The 4 bytes after those of the block's first key, zero-padded.
    pub head: u32,
}

/// A block that can be searched.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    pub(super) frame: Frame<'a>,
    /// The block, and what lies behind it: a load may reach there.
    pub(super) bytes: &'a [u8],
    pub(super) pairs: usize,
    pub(super) entries: usize,
    pub(super) form: KeyForm,
    pub(super) key_bytes: usize,
    /// Of the first key.
    pub(super) rest: &'a [u8],
    pub(super) code_width: u32,
    pub(super) count_width: u32,
    pub(super) first_width: u32,
    pub(super) gap_width: u32,
    pub(super) tail: usize,
    pub(super) window_bytes: usize,
    pub(super) mask: u128,
    pub(super) ascending: bool,
    pub(super) slots: u64,
    pub(super) base: u64,
    // Where bits begin.
    pub(super) codes: usize,
    pub(super) counts: usize,
    pub(super) firsts: usize,
    pub(super) gaps: usize,
    /// Where tokens begin and the block ends, in bytes.
    pub(super) text: usize,
    pub(super) end: usize,
}

impl<'a> Block<'a> {
    /// Reads the block in the first `len` of `bytes`. What lies behind does not matter, but that loads are faster where 8 bytes do.
    ///
    /// # Errors
    /// When a part does not lie in the block.
    #[inline(always)]
    pub fn read(bytes: &'a [u8], len: usize, frame: Frame<'a>) -> Result<Block<'a>, BlockError> {
        let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else { return Err(BlockError("shorter than its header")) };
        let pairs = usize::from(header[0] & 0x7F) + 1;
        let entries = usize::from(header[1]) + 1;
        let form = KeyForm::from_bits(header[2]);
        let count_width = u32::from(header[2] >> 2 & 7);
        let base_bytes = usize::from(header[2] >> 5);
        let slots = u16::from_le_bytes([header[3], header[4]]);
        let window_bytes = usize::from(slots >> 12) + 1;
        let (first_width, gap_width) = (u32::from(header[5]), u32::from(header[6]));
        let ascending = header[0] & 0x80 != 0;
        let mut at = HEADER_BYTES;
        let mut key_bytes = frame.fixed_key_bytes;
        if key_bytes == 0 {
            let Some(length) = bytes.get(at..at + 2) else { return Err(BlockError("shorter than its header")) };
            key_bytes = usize::from(u16::from_le_bytes([length[0], length[1]]));
            at += 2;
        }
        if first_width > WIDTH_MAX || gap_width > WIDTH_MAX || entries > pairs || key_bytes < frame.shared.len() {
            return Err(BlockError("header out of range"));
        }
        if (form == KeyForm::One) != (entries == 1) || (entries > 1 && (count_width == 0) != (entries == pairs)) {
            return Err(BlockError("numbers of keys and RIDs do not fit each other"));
        }
        if (ascending && first_width != 0) || (entries == 1 && count_width != 0) {
            return Err(BlockError("widths of what is not there"));
        }
        let rest_end = at + key_bytes.saturating_sub(frame.shared.len() + HEAD_BYTES);
        let Some(rest) = bytes.get(at..rest_end) else { return Err(BlockError("first key cut off")) };
        at = rest_end;
        let (mut code_width, mut tail, mut mask) = (0, 0, 0);
        if form.is_packed() {
            let Some(fields) = bytes.get(at..at + 2 + window_bytes) else { return Err(BlockError("mask cut off")) };
            (code_width, tail, mask) = (u32::from(fields[0]), usize::from(fields[1]), window_of(&fields[2..]));
            if code_width > WIDTH_MAX || mask.count_ones() > WIDTH_MAX || window_bytes + tail + frame.shared.len() > key_bytes {
                return Err(BlockError("window out of range"));
            }
            at += fields.len();
        }
        let Some(base) = bytes.get(at..at + base_bytes) else { return Err(BlockError("RID base cut off")) };
        let base = base.iter().rev().fold(0, |base, b| base << 8 | u64::from(*b));
        at += base_bytes;
        let codes = at * 8;
        let counts = codes + (entries - 1) * code_width as usize;
        let firsts = counts + if count_width == 0 { 0 } else { entries * count_width as usize };
        let gaps = firsts + if ascending { 0 } else { entries * first_width as usize };
        let gap_count = if ascending { pairs - 1 } else { pairs - entries };
        let text = (gaps + gap_count * gap_width as usize).div_ceil(8);
        if text > len || len > bytes.len() || (form != KeyForm::Text && text != len) {
            return Err(BlockError("length is not that of its parts"));
        }
        Ok(Block {
            frame,
            bytes,
            pairs,
            entries,
            form,
            key_bytes,
            rest,
            code_width,
            count_width,
            first_width,
            gap_width,
            tail,
            window_bytes,
            mask,
            ascending,
            slots: u64::from(slots & 0xFFF) + 1,
            base,
            codes,
            counts,
            firsts,
            gaps,
            text,
            end: len,
        })
    }

    /// Number of pairs.
    #[inline]
    #[must_use]
    pub fn pair_count(&self) -> usize {
        self.pairs
    }

    /// Is the block's first key not less than `key`, both without what the leaf shares? `head` is the head of that.
    #[inline]
    #[must_use]
    pub fn cmp_first_key(&self, key_rest: &[u8]) -> std::cmp::Ordering {
        cmp_padded(self.frame.head, self.rest, self.key_bytes - self.frame.shared.len(), key_rest)
    }

    /// The smallest RID of the first key, packed.
    #[inline]
    #[must_use]
    pub fn first_rid(&self) -> u64 {
        from_linear(self.first_of(0), self.slots)
    }

    /// Appends the first key.
    pub fn first_key(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.frame.shared);
        let head = self.frame.head.to_be_bytes();
        out.extend_from_slice(&head[..(self.key_bytes - self.frame.shared.len()).min(HEAD_BYTES)]);
        out.extend_from_slice(self.rest);
    }

    /// The head of its first key.
    #[inline]
    #[must_use]
    pub fn head(&self) -> u32 {
        self.frame.head
    }

    /// Bytes of the block.
    #[inline]
    #[must_use]
    pub fn byte_count(&self) -> usize {
        self.end
    }

    /// Length of the first key.
    #[inline]
    #[must_use]
    pub fn key_bytes(&self) -> usize {
        self.key_bytes
    }

    /// Bytes that the block would have on a leaf whose keys share `shared` bytes.
    #[inline]
    #[must_use]
    pub fn bytes_sharing(&self, shared: usize) -> usize {
        self.end - self.rest.len() + self.key_bytes.saturating_sub(shared + HEAD_BYTES)
    }

    /// Appends the block as it would be on a leaf whose keys share these bytes; returns the head of its first key there.
    ///
    /// # Errors
    /// When its keys do not begin with them.
    pub fn put_sharing(&self, shared: &[u8], out: &mut Vec<u8>) -> Result<u32, BlockError> {
        let mut key = Vec::with_capacity(self.key_bytes);
        self.first_key(&mut key);
        if !key.starts_with(shared) || (self.form.is_packed() && self.window_bytes + self.tail + shared.len() > self.key_bytes) {
            return Err(BlockError("keys do not begin with the shared bytes"));
        }
        let rest = HEADER_BYTES + if self.frame.fixed_key_bytes == 0 { 2 } else { 0 };
        out.extend_from_slice(&self.bytes[..rest]);
        out.extend_from_slice(key.get(shared.len() + HEAD_BYTES..).unwrap_or(&[]));
        out.extend_from_slice(&self.bytes[rest + self.rest.len()..self.end]);
        Ok(key_head(&key, shared.len()))
    }

    /// Linear first RID of entry `entry` in a block whose RIDs do not ascend; the base where they do.
    #[inline]
    pub(super) fn first_of(&self, entry: usize) -> u64 {
        if self.ascending {
            return self.base;
        }
        self.base + bits::get(self.bytes, self.firsts + entry * self.first_width as usize, self.first_width)
    }

    /// RIDs of entry `entry`.
    #[inline]
    pub(super) fn count_of(&self, entry: usize) -> usize {
        if self.count_width == 0 {
            return if self.entries == 1 { self.pairs } else { 1 };
        }
        bits::get(self.bytes, self.counts + entry * self.count_width as usize, self.count_width) as usize + 1
    }

    /// RIDs before entry `entry`.
    #[inline]
    pub(super) fn pairs_before(&self, entry: usize) -> usize {
        if entry == 0 {
            return 0;
        }
        if entry >= self.entries {
            return self.pairs;
        }
        entry + bits::sum(self.bytes, self.counts, self.count_width, entry) as usize
    }

    /// All that the block has of the first key, at most 16 bytes, as one number.
    #[inline]
    pub(super) fn first_number(&self) -> u128 {
        let own = self.key_bytes - self.frame.shared.len();
        if own <= HEAD_BYTES {
            return u128::from(self.frame.head) >> (8 * (HEAD_BYTES - own));
        }
        u128::from(self.frame.head) << (8 * self.rest.len()) | window(self.rest)
    }

    /// The window of the first key, as a number.
    pub(super) fn first_window(&self) -> u128 {
        let own = self.key_bytes - self.frame.shared.len();
        if own <= WINDOW_MAX {
            let all = self.first_number() >> (8 * self.tail);
            return if self.window_bytes == WINDOW_MAX { all } else { all & ((1 << (8 * self.window_bytes)) - 1) };
        }
        let head = self.frame.head.to_be_bytes();
        let start = own - self.tail - self.window_bytes;
        (start..own - self.tail).fold(0, |all, i| {
            let byte = if i < HEAD_BYTES { head[i] } else { self.rest.get(i - HEAD_BYTES).copied().unwrap_or(0) };
            all << 8 | u128::from(byte)
        })
    }

    /// Replaces the contents of `out` by the block's pairs. Keys and RIDs that do not ascend, counts that do not fit: an error.
    ///
    /// # Errors
    /// When the block is not what an encoder writes of ascending pairs.
    pub fn decode(&self, out: &mut Entries) -> Result<(), BlockError> {
        out.clear();
        // Room for an insert, too. Keys of form 3 are of the first one's length or not.
        out.reserve(self.entries, self.pairs, self.key_bytes.min(256));
        let mut first = Vec::with_capacity(self.key_bytes);
        self.first_key(&mut first);
        let mut rids = RidReader::new(self);
        out.push(&first, rids.next_of_entry(true)?);
        match self.form {
            KeyForm::One => self.decode_list(out, &mut rids, self.pairs)?,
            KeyForm::Frame | KeyForm::Delta => self.decode_packed(out, &mut rids, &mut first)?,
            KeyForm::Text => self.decode_text(out, &mut rids)?,
        }
        if out.pair_count() == self.pairs { Ok(()) } else { Err(BlockError("counts do not add up")) }
    }

    /// Appends the RIDs of all pairs, packed: as [`decode`](Self::decode), without the keys.
    ///
    /// # Errors
    /// When the block is damaged in a way that RIDs show.
    pub fn rids(&self, out: &mut Vec<u64>) -> Result<(), BlockError> {
        let end = out.len() + self.pairs;
        out.reserve(self.pairs);
        let mut rids = RidReader::new(self);
        for entry in 0..self.entries {
            for i in 0..self.count_of(entry).min(end - out.len()) {
                out.push(rids.next_of_entry(i == 0)?);
            }
        }
        if out.len() == end { Ok(()) } else { Err(BlockError("counts do not add up")) }
    }

    fn decode_list(&self, out: &mut Entries, rids: &mut RidReader<'_, '_>, count: usize) -> Result<(), BlockError> {
        if count > 1 && out.pair_count() + count - 1 > self.pairs {
            return Err(BlockError("counts do not add up"));
        }
        for _ in 1..count {
            out.push_rid(rids.next_of_entry(false)?);
        }
        Ok(())
    }

    fn decode_packed(&self, out: &mut Entries, rids: &mut RidReader<'_, '_>, key: &mut [u8]) -> Result<(), BlockError> {
        self.decode_list(out, rids, self.count_of(0))?;
        let whole = self.first_window();
        let rest = whole & !self.mask;
        let first = gather::pick(whole, self.mask);
        let limit = 1u64 << self.mask.count_ones();
        let window = self.key_bytes - self.tail - self.window_bytes..self.key_bytes - self.tail;
        let mut code = first;
        for i in 1..self.entries {
            let number = bits::get(self.bytes, self.codes + (i - 1) * self.code_width as usize, self.code_width);
            let next = number + if self.form == KeyForm::Frame { first } else { code };
            if next < code || next >= limit {
                return Err(BlockError("codes do not ascend"));
            }
            let rid = rids.next_of_entry(true)?;
            if next == code {
                if self.count_width != 0 || out.all_rids().last().is_some_and(|last| *last >= rid) {
                    return Err(BlockError("pairs do not ascend"));
                }
                out.push_rid(rid);
                continue;
            }
            code = next;
            let value = (rest | gather::spread(code, self.mask)).to_be_bytes();
            key[window.clone()].copy_from_slice(&value[WINDOW_MAX - self.window_bytes..]);
            out.push_key(key, rid);
            self.decode_list(out, rids, self.count_of(i))?;
        }
        Ok(())
    }

    fn decode_text(&self, out: &mut Entries, rids: &mut RidReader<'_, '_>) -> Result<(), BlockError> {
        self.decode_list(out, rids, self.count_of(0))?;
        let mut tokens = self.tokens();
        let mut before_bytes = self.key_bytes;
        let shared_bytes = self.frame.shared.len();
        for i in 1..self.entries {
            let token = tokens.next().ok_or(BlockError("token out of range"))?;
            // A suffix that is greater where it begins, or begins behind the key before, makes the key greater.
            let ascends = match out.key(i - 1).get(token.shared) {
                Some(byte) => token.suffix.first().is_some_and(|first| first > byte),
                None => !token.suffix.is_empty(),
            };
            if !ascends || token.shared < shared_bytes || token.shared > before_bytes {
                return Err(BlockError("keys do not ascend"));
            }
            before_bytes = token.shared + token.suffix.len();
            out.push_suffix(token.shared, token.suffix, rids.next_of_entry(true)?);
            self.decode_list(out, rids, self.count_of(i))?;
        }
        if tokens.at == self.end { Ok(()) } else { Err(BlockError("bytes behind the last token")) }
    }

    /// The tokens of form 3.
    #[inline]
    pub(super) fn tokens(&self) -> Tokens<'a> {
        Tokens { bytes: self.bytes, at: self.text, end: self.end, fixed: self.frame.fixed_key_bytes != 0, before_bytes: self.key_bytes }
    }

    /// Are counts and tokens such that searches end within the block? With [`Block::read`] all that later accesses rely on.
    ///
    /// # Errors
    /// When they are not.
    pub fn validate(&self) -> Result<(), BlockError> {
        let counts = bits::sum(self.bytes, self.counts, self.count_width, self.entries) as usize;
        if self.count_width != 0 && counts + self.entries != self.pairs {
            return Err(BlockError("counts do not add up"));
        }
        if self.form == KeyForm::Text {
            let mut tokens = self.tokens();
            if !(1..self.entries).all(|_| tokens.next().is_some()) || tokens.at != self.end {
                return Err(BlockError("token out of range"));
            }
        }
        Ok(())
    }
}

/// A big-endian number.
fn window_of(bytes: &[u8]) -> u128 {
    window(bytes)
}

/// Orders the key of `bytes` bytes that is a head and a rest against `key`.
#[inline]
fn cmp_padded(head: u32, rest: &[u8], bytes: usize, key: &[u8]) -> std::cmp::Ordering {
    let head = head.to_be_bytes();
    let head = &head[..bytes.min(HEAD_BYTES)];
    match key.get(..head.len()) {
        Some(start) => head.cmp(start).then_with(|| rest.cmp(&key[head.len()..])),
        None => head.cmp(key),
    }
}

/// One key of form 3: what it shares with the one before, and what follows.
pub(super) struct Token<'a> {
    pub(super) shared: usize,
    pub(super) suffix: &'a [u8],
}

pub(super) struct Tokens<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
    fixed: bool,
    before_bytes: usize,
}

impl<'a> Tokens<'a> {
    /// The next token; `None` behind the last, or when it is damaged.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Token<'a>> {
        let bytes = self.bytes.get(..self.end)?;
        let token = *bytes.get(self.at)?;
        let mut at = self.at + 1;
        let mut escaped = |number: usize, limit: usize| {
            if number < limit {
                return Some(number);
            }
            let number = bytes.get(at..at + 2)?;
            at += 2;
            Some(usize::from(u16::from_le_bytes([number[0], number[1]])))
        };
        let (dropped, added) = if self.fixed {
            let added = escaped(usize::from(token), 255)?;
            (added, added)
        } else {
            let dropped = escaped(usize::from(token >> 4), 15)?;
            (dropped, escaped(usize::from(token & 15), 15)?)
        };
        let suffix = bytes.get(at..at + added)?;
        let shared = self.before_bytes.checked_sub(dropped)?;
        self.at = at + added;
        self.before_bytes = shared + added;
        Some(Token { shared, suffix })
    }
}

/// RIDs one after the other, packed. A division where an entry begins or a gap is long, else steps from page to page.
struct RidReader<'b, 'a> {
    block: &'b Block<'a>,
    page: u64,
    slot: u64,
    entry: usize,
    /// Bit of the next gap.
    gap: usize,
    pair: usize,
}

impl<'b, 'a> RidReader<'b, 'a> {
    fn new(block: &'b Block<'a>) -> RidReader<'b, 'a> {
        let (page, slot) = (block.base / block.slots, block.base % block.slots);
        RidReader { block, page, slot, entry: 0, gap: block.gaps, pair: 0 }
    }

    /// The next one: the first of an entry, or a further one.
    #[inline(always)]
    fn next_of_entry(&mut self, first: bool) -> Result<u64, BlockError> {
        let block = self.block;
        if first && !block.ascending {
            let linear = block.first_of(self.entry);
            (self.page, self.slot) = (linear / block.slots, linear % block.slots);
            self.entry += 1;
        } else if self.pair > 0 {
            self.slot += 1;
            // Rows that came one after the other have no gaps.
            if block.gap_width > 0 {
                self.slot += bits::get(block.bytes, self.gap, block.gap_width);
                self.gap += block.gap_width as usize;
            }
            if self.slot >= block.slots {
                self.page += self.slot / block.slots;
                self.slot %= block.slots;
            }
        }
        self.pair += 1;
        if self.page >> (LINEAR_BITS - 12) != 0 {
            return Err(BlockError("RID out of range"));
        }
        Ok(self.page << 12 | self.slot)
    }
}

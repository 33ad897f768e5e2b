//! The tables that decoding reads, and the loops over them.
//!
//! A code word is found in two steps, so that what the next one waits for is short. Its length follows from the next 11 bits by a table of
//! 8 KB: in canonical order lengths ascend, so also of most longer words the first 11 bits tell the length; of the at most four prefixes that words of
//! several lengths share, the first word of each length does. The length is all that the next code word waits for. Meanwhile the word's number gives
//! the token's rank, and that its place and length (16 KB) among the bytes of [`TokenTable`].
//!
//! Tokens are copied as 32 bytes whatever their length, as in [`TokenTable`].
//!
//! Invariant, on which the unsafe code rests: [`MAX_TOKEN_LEN`] bytes of `bytes` can be read at the offset of every entry of `index`, and no entry's
//! length is more than that. Entries are those of a [`TokenTable`] with the same `bytes`, or 0. Only [`DecodeTable::new`] makes one.
#![expect(
    unsafe_code,
    reason = "copies of 32 bytes without a bounds check each: rows decode 1.6 times as fast as through slices (example huffman)"
)]

use std::ptr;
use std::sync::Arc;

use super::bits::BitReader;
use super::codes::{CODE_WORD_BITS_MAX, HuffmanCodes, PADDING_BITS_MAX};
use crate::row::codes::CODE_COUNT;
use crate::row::table::{DECODE_SLACK, MAX_TOKEN_LEN, TokenTable, split};

/// Leading bits that most lengths follow from.
const PREFIX_BITS: u32 = 11;

/// Code words decoded between two looks at the room left and the bits left.
const GROUP: usize = 3;

/// With so many bits left, a group can be decoded: its last word begins before the padding, wherever it begins.
const GROUP_BITS: isize = (CODE_WORD_BITS_MAX as usize * (GROUP - 1)) as isize + PADDING_BITS_MAX as isize + 1;

const _: () = assert!(GROUP * CODE_WORD_BITS_MAX as usize <= BitReader::REFILLED_BITS, "a group needs one refill");
const _: () = assert!(GROUP * MAX_TOKEN_LEN <= DECODE_SLACK, "a group writes no more than the slack");

#[derive(Clone)]
pub(super) struct DecodeTable {
    /// By the next 11 bits: length of the code word (low 8 bits) and what, added to its number, gives its token's rank (upper 24, modulo 2^24);
    /// 0 where that takes more bits.
    prefixes: Box<[u32; 1 << PREFIX_BITS]>,
    /// By length: the entries that `prefixes` has, and where the words of up to this length end, as fractions of 2^16.
    by_len: [(u32, u32); CODE_WORD_BITS_MAX as usize + 1],
    /// By rank: offset of the token in `bytes` and its length, as in [`TokenTable`]; 0 where there is none.
    index: Box<[u32; CODE_COUNT]>,
    bytes: Arc<[u8]>,
    /// The processor has AVX and BMI2.
    #[cfg(target_arch = "x86_64")]
    wide: bool,
}

/// How the decoding of a row ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Decoded {
    /// So many bytes are written; when they are fewer than was needed and permitted, they are the row.
    Bytes(usize),
    /// These are no code words, padded with ones.
    Damaged,
}

/// A row on its way.
struct Lane<'c> {
    reader: BitReader<'c>,
    /// Where it goes. All its writes are to `limit + DECODE_SLACK` bytes from here on.
    out: *mut u8,
    /// Bytes written.
    at: usize,
    /// Decoding may stop here: at most `limit + 1`.
    stop: usize,
}

impl Lane<'_> {
    #[inline(always)]
    fn has_group(&self) -> bool {
        self.reader.remaining() >= GROUP_BITS && self.at < self.stop
    }
}

impl DecodeTable {
    pub(super) fn new(tokens: &TokenTable, codes: &HuffmanCodes) -> Self {
        let first = codes.first_of_lens();
        let histogram = codes.histogram();
        let mut by_len = [(0, 0); CODE_WORD_BITS_MAX as usize + 1];
        for len in 1..by_len.len() {
            let (word, rank) = first[len];
            let end = (word + u32::from(histogram[len])) << (CODE_WORD_BITS_MAX as usize - len);
            by_len[len] = (rank.wrapping_sub(word) << 8 | len as u32, end);
        }
        let mut table = Self {
            prefixes: Box::new([0; 1 << PREFIX_BITS]),
            by_len,
            index: Box::new([0; CODE_COUNT]),
            bytes: tokens.shared_bytes(),
            #[cfg(target_arch = "x86_64")]
            wide: std::arch::is_x86_feature_detected!("avx") && std::arch::is_x86_feature_detected!("bmi2"),
        };
        for (token, rank) in codes.by_rank().into_iter().zip(0..) {
            let rank: usize = rank;
            table.index[rank] = tokens.entry(token);
        }
        let rest = CODE_WORD_BITS_MAX - PREFIX_BITS;
        for prefix in 0..1 << PREFIX_BITS {
            let (lowest, highest) = (prefix << rest, (prefix + 1 << rest) - 1);
            let len = table.len_of(lowest);
            if len == table.len_of(highest) {
                table.prefixes[prefix as usize] = table.by_len[len].0;
            }
        }
        table
    }

    /// Decodes as on a processor without AVX and BMI2.
    #[cfg(test)]
    pub(super) fn without_wide_copies(mut self) -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            self.wide = false;
        }
        self
    }

    /// Length of the code word that these 16 bits begin with.
    #[cold]
    #[inline(never)]
    fn len_of(&self, bits: u32) -> usize {
        (1..CODE_WORD_BITS_MAX as usize).find(|&len| bits < self.by_len[len].1).unwrap_or(CODE_WORD_BITS_MAX as usize)
    }

    /// Bytes of the tables that are not those of [`TokenTable`].
    pub(super) fn len(&self) -> usize {
        size_of_val(&*self.prefixes) + size_of_val(&*self.index)
    }

    /// Takes a code word off `reader` and returns its token's entry. The reader has been refilled not more than a group ago.
    #[inline(always)]
    pub(super) fn next_entry(&self, reader: &mut BitReader<'_>) -> u32 {
        let bits = reader.bits();
        let mut entry = self.prefixes[(bits >> (u64::BITS - PREFIX_BITS)) as usize];
        if entry == 0 {
            entry = self.by_len[self.len_of((bits >> (u64::BITS - CODE_WORD_BITS_MAX)) as u32)].0;
        }
        // The shifts take the low six bits of the entry; a length is never 0.
        let number = (bits >> (entry.wrapping_neg() & 63)) as u32;
        reader.skip(entry & 63);
        self.index[number.wrapping_add(entry >> 8) as usize % CODE_COUNT]
    }

    /// Number of bytes that the code word takes in the row, taken off `reader`.
    #[inline(always)]
    pub(super) fn next_len(&self, reader: &mut BitReader<'_>) -> usize {
        split(self.next_entry(reader)).1
    }

    /// Appends the row that `compressed` holds to `out`; what is no row, or longer than `limit`, leaves `out` as it was.
    pub(super) fn append(&self, compressed: &[u8], out: &mut Vec<u8>, limit: usize) -> Decoded {
        out.reserve(limit.saturating_add(DECODE_SLACK));
        let room = out.spare_capacity_mut();
        assert!(room.len() - DECODE_SLACK >= limit);
        // SAFETY: `room` is valid for writes of `limit + DECODE_SLACK` bytes.
        let [decoded] = unsafe { self.copy_tokens([(compressed, room.as_mut_ptr().cast(), limit)], usize::MAX) };
        if let Decoded::Bytes(len) = decoded
            && len <= limit
        {
            // SAFETY: the first `len` bytes of the spare capacity have been written.
            unsafe { out.set_len(out.len() + len) };
        }
        decoded
    }

    /// Writes the tokens of the code words in `compressed` to the front of `out`, until `need` bytes are written or there are no more, or more than
    /// `limit` are written.
    ///
    /// # Panics
    /// When `out` is shorter than `limit + DECODE_SLACK`.
    pub(super) fn fill(&self, compressed: &[u8], out: &mut [u8], limit: usize, need: usize) -> Decoded {
        assert!(out.len().checked_sub(DECODE_SLACK).is_some_and(|room| room >= limit));
        // SAFETY: `out` is valid for writes of `limit + DECODE_SLACK` bytes.
        let [decoded] = unsafe { self.copy_tokens([(compressed, out.as_mut_ptr(), limit)], need) };
        decoded
    }

    /// Writes each of the rows to a part of `out` of its own, side by side: row k begins at `k * (limit + DECODE_SLACK)`.
    ///
    /// # Panics
    /// When `out` is shorter than all parts.
    pub(super) fn fill_side_by_side<const LANES: usize>(&self, rows: [&[u8]; LANES], out: &mut [u8], limit: usize) -> [Decoded; LANES] {
        let stride = limit + DECODE_SLACK;
        let mut parts = out.chunks_exact_mut(stride);
        let lanes = rows.map(|row| (row, parts.next().expect("a part for each row").as_mut_ptr(), limit));
        // SAFETY: each part is valid for writes of `limit + DECODE_SLACK` bytes, and they do not overlap.
        unsafe { self.copy_tokens(lanes, usize::MAX) }
    }

    /// Decodes rows side by side: compressed row, where it goes, and its limit in bytes. What has more bytes than the limit may have been cut off
    /// behind it.
    ///
    /// # Safety
    /// Each place must be valid for writes of `limit + DECODE_SLACK` bytes, which do not overlap.
    #[inline(always)]
    unsafe fn copy_tokens<const LANES: usize>(&self, rows: [(&[u8], *mut u8, usize); LANES], need: usize) -> [Decoded; LANES] {
        #[cfg(target_arch = "x86_64")]
        if self.wide {
            // SAFETY: by contract; and `wide` says that the processor has AVX and BMI2.
            return unsafe { self.copy_tokens_wide(rows, need) };
        }
        // SAFETY: by contract.
        unsafe { self.copy_tokens_portable(rows, need) }
    }

    /// The same code, compiled to copy 32 bytes with one load and one store, and to shift by any number in one step.
    ///
    /// # Safety
    /// As [`copy_tokens`](Self::copy_tokens); and the processor must have AVX and BMI2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx,bmi2")]
    unsafe fn copy_tokens_wide<const LANES: usize>(&self, rows: [(&[u8], *mut u8, usize); LANES], need: usize) -> [Decoded; LANES] {
        // SAFETY: by contract.
        unsafe { self.copy_tokens_portable(rows, need) }
    }

    /// # Safety
    /// As [`copy_tokens`](Self::copy_tokens).
    #[inline(always)]
    unsafe fn copy_tokens_portable<const LANES: usize>(&self, rows: [(&[u8], *mut u8, usize); LANES], need: usize) -> [Decoded; LANES] {
        let mut lanes = rows.map(|(compressed, out, limit)| Lane {
            reader: BitReader::new(compressed),
            out,
            at: 0,
            stop: need.min(limit.saturating_add(1)),
        });
        while lanes.iter().all(Lane::has_group) {
            for lane in &mut lanes {
                lane.reader.refill();
            }
            for _ in 0..GROUP {
                for lane in &mut lanes {
                    // SAFETY: `at` was below `stop`, so at most `limit`, before the group, which writes at most `DECODE_SLACK`.
                    unsafe { self.copy_token(lane) };
                }
            }
        }
        // SAFETY: by contract.
        lanes.map(|lane| unsafe { self.finish(lane) })
    }

    /// Decodes the rest of a row.
    ///
    /// # Safety
    /// Its place must be valid for writes of `limit + DECODE_SLACK` bytes.
    #[inline(always)]
    unsafe fn finish(&self, mut lane: Lane<'_>) -> Decoded {
        // Another row may have ended before this one.
        while lane.has_group() {
            lane.reader.refill();
            for _ in 0..GROUP {
                // SAFETY: as in `copy_tokens_portable`.
                unsafe { self.copy_token(&mut lane) };
            }
        }
        // Fewer bits than a group is sure to find: each word for itself. The last bits are padding unless one of them is zero.
        lane.reader.refill();
        loop {
            if lane.at >= lane.stop {
                return Decoded::Bytes(lane.at);
            }
            let remaining = lane.reader.remaining();
            if remaining <= PADDING_BITS_MAX as isize && (remaining <= 0 || lane.reader.rest_is_ones()) {
                return if remaining < 0 { Decoded::Damaged } else { Decoded::Bytes(lane.at) };
            }
            // SAFETY: `at` is below `stop`, so at most `limit`, and a token takes at most `MAX_TOKEN_LEN` bytes.
            unsafe { self.copy_token(&mut lane) };
        }
    }

    /// Copies the token of the next code word.
    ///
    /// # Safety
    /// `lane.out` must be valid for writes of [`MAX_TOKEN_LEN`] bytes from `lane.at` on.
    #[inline(always)]
    unsafe fn copy_token(&self, lane: &mut Lane<'_>) {
        let (offset, len) = split(self.next_entry(&mut lane.reader));
        debug_assert!(offset + MAX_TOKEN_LEN <= self.bytes.len() && len <= MAX_TOKEN_LEN);
        // SAFETY: the invariant of this module; `out` by contract; the table and what the caller owns exclusively do not overlap.
        unsafe { ptr::copy_nonoverlapping(self.bytes.as_ptr().add(offset), lane.out.add(lane.at), MAX_TOKEN_LEN) };
        lane.at += len;
    }
}

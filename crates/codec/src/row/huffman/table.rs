//! The tables that decoding reads, and the loops over them.
//!
//! A code word is found in two steps, so that what the next one waits for is short. Its length follows from the next 11 bits by a table of
//! 2 KB: in canonical order lengths ascend, so also of most longer words the first 11 bits tell the length; of the at most four prefixes that words of
//! several lengths share, the first word of each length does. The length is all that the next code word waits for. Meanwhile the word's number gives
//! the token's rank, and that its place and length (16 KB) among the bytes of [`TokenTable`].
//!
//! Decoding two rows side by side was measured to be no faster than one by one.
//!
//! Tokens are copied as 32 bytes whatever their length, as in [`TokenTable`].
//!
//! Invariant, on which the unsafe code rests: [`MAX_TOKEN_LEN`] bytes of `bytes` can be read at the offset of every entry of `index`, and no entry's
//! length is more than that. Entries are those of a [`TokenTable`] with the same `bytes`, or 0. Only [`DecodeTable::new`] makes one.
#![expect(
    unsafe_code,
    reason = "copies of 32 bytes without a bounds check each: rows decode 1.2 to 1.3 times as fast as through slices (example huffman)"
)]

use std::ptr;
use std::sync::Arc;

use super::bits::{BitReader, ShortRow};
use super::codes::{CODE_WORD_BITS_MAX, HuffmanCodes, PADDING_BITS_MAX};
use crate::row::codes::CODE_COUNT;
use crate::row::table::{DECODE_SLACK, MAX_TOKEN_LEN, TokenTable, split};

/// Leading bits that most lengths follow from.
const PREFIX_BITS: u32 = 11;

/// Code words decoded between two looks at the room left and the bits left.
const GROUP: usize = 3;

/// With so many bits left, a group can be decoded: its last word begins before the padding, wherever it begins.
const GROUP_BITS: isize = (CODE_WORD_BITS_MAX as usize * (GROUP - 1)) as isize + PADDING_BITS_MAX as isize + 1;

/// Code words looked for behind the last group at once.
const TAIL: usize = 4;

const _: () = assert!(GROUP * CODE_WORD_BITS_MAX as usize <= BitReader::REFILLED_BITS, "a group needs one refill");
const _: () = assert!(GROUP_BITS + CODE_WORD_BITS_MAX as isize <= BitReader::REFILLED_BITS as isize, "what is behind the groups needs one");
const _: () = assert!(GROUP * MAX_TOKEN_LEN <= DECODE_SLACK && TAIL * MAX_TOKEN_LEN <= DECODE_SLACK, "writes within the slack");

/// How long code words are, and what their numbers say.
#[derive(Clone)]
struct WordLens {
    /// By the next 11 bits: length of the code word; 0 where it takes more bits to tell.
    prefixes: [u8; 1 << PREFIX_BITS],
    /// By length: what, added to the number of a code word, gives its token's rank (modulo 2^32), and where the words of up to this length end, as
    /// fractions of 2^16. More entries than lengths, a power of two.
    by_len: [(u32, u32); 32],
}

#[derive(Clone)]
pub(super) struct DecodeTable {
    lens: Box<WordLens>,
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

/// A row on its way. It is decoded only if its place is valid for writes of `limit + DECODE_SLACK` bytes.
struct Lane<'c> {
    reader: BitReader<'c>,
    /// Its place.
    out: *mut u8,
    /// Bytes written.
    at: usize,
    /// Decoding stops when so many are: at most `limit + 1`.
    stop: usize,
}

impl<'c> Lane<'c> {
    #[inline(always)]
    fn new(reader: BitReader<'c>, out: *mut u8, limit: usize, need: usize) -> Self {
        Self { reader, out, at: 0, stop: need.min(limit.saturating_add(1)) }
    }

    #[inline(always)]
    fn has_group(&self) -> bool {
        self.reader.remaining() >= GROUP_BITS && self.at < self.stop
    }
}

impl DecodeTable {
    pub(super) fn new(tokens: &TokenTable, codes: &HuffmanCodes) -> Self {
        let first = codes.first_of_lens();
        let histogram = codes.histogram();
        let mut by_len = [(0, 0); 32];
        for len in 1..first.len() {
            let (word, rank) = first[len];
            let end = (word + u32::from(histogram[len])) << (CODE_WORD_BITS_MAX as usize - len);
            by_len[len] = (rank.wrapping_sub(word), end);
        }
        let mut table = Self {
            lens: Box::new(WordLens { prefixes: [0; 1 << PREFIX_BITS], by_len }),
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
            let (lowest, highest) = (prefix << rest, ((prefix + 1) << rest) - 1);
            let len = table.len_of(lowest);
            if len == table.len_of(highest) {
                table.lens.prefixes[prefix as usize] = len as u8;
            }
        }
        table
    }

    /// Decodes as on a processor without AVX and BMI2.
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
        (1..CODE_WORD_BITS_MAX as usize).find(|&len| bits < self.lens.by_len[len].1).unwrap_or(CODE_WORD_BITS_MAX as usize)
    }

    /// Bytes of the tables that are not those of [`TokenTable`].
    pub(super) fn len(&self) -> usize {
        size_of_val(&*self.lens) + size_of_val(&*self.index)
    }

    /// Length of the first code word of `bits`, and its token's entry.
    #[inline(always)]
    fn look_up(&self, bits: u64) -> (u32, u32) {
        let mut len = u32::from(self.lens.prefixes[(bits >> (u64::BITS - PREFIX_BITS)) as usize]);
        if len == 0 {
            len = self.len_of((bits >> (u64::BITS - CODE_WORD_BITS_MAX)) as u32) as u32;
        }
        // A length is 1 to 16.
        let number = (bits >> (len.wrapping_neg() & 63)) as u32;
        (len, self.index[number.wrapping_add(self.lens.by_len[len as usize % self.lens.by_len.len()].0) as usize % CODE_COUNT])
    }

    /// Takes a code word off `reader`; returns how many bytes its token has.
    #[inline]
    pub(super) fn skip_code(&self, reader: &mut BitReader<'_>) -> usize {
        reader.refill();
        let (len, entry) = self.look_up(reader.padded_bits());
        reader.take(len);
        split(entry).1
    }

    /// Appends the row that `compressed` holds to `out`; what is no row, or longer than `limit`, leaves `out` as it was.
    pub(super) fn append(&self, compressed: &[u8], out: &mut Vec<u8>, limit: usize) -> Decoded {
        out.reserve(limit.saturating_add(DECODE_SLACK));
        let room = out.spare_capacity_mut();
        assert!(room.len() - DECODE_SLACK >= limit);
        let mut short = ShortRow::default();
        let lane = Lane::new(BitReader::new(compressed, &mut short), room.as_mut_ptr().cast(), limit, usize::MAX);
        // SAFETY: `room` is valid for writes of `limit + DECODE_SLACK` bytes.
        let decoded = unsafe { self.run(lane) };
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
    #[inline]
    pub(super) fn fill(&self, compressed: &[u8], out: &mut [u8], limit: usize, need: usize) -> Decoded {
        assert!(out.len().checked_sub(DECODE_SLACK).is_some_and(|room| room >= limit));
        let mut short = ShortRow::default();
        let lane = Lane::new(BitReader::new(compressed, &mut short), out.as_mut_ptr(), limit, need);
        // SAFETY: `out` is valid for writes of `limit + DECODE_SLACK` bytes.
        unsafe { self.run(lane) }
    }

    /// Decodes a row.
    ///
    /// # Safety
    /// As [`Lane`] says of its place.
    #[inline(always)]
    unsafe fn run(&self, lane: Lane<'_>) -> Decoded {
        #[cfg(target_arch = "x86_64")]
        if self.wide {
            // SAFETY: by contract; and `wide` says that the processor has AVX and BMI2.
            return unsafe { self.run_wide(lane) };
        }
        // SAFETY: by contract.
        unsafe { self.run_portable(lane) }
    }

    /// [`run_portable`](Self::run_portable), compiled to copy 32 bytes with one load and one store, and to shift by any number in one step.
    ///
    /// # Safety
    /// As [`run`](Self::run); and the processor must have AVX and BMI2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx,bmi2")]
    unsafe fn run_wide(&self, lane: Lane<'_>) -> Decoded {
        // SAFETY: by contract.
        unsafe { self.run_portable(lane) }
    }

    /// # Safety
    /// As [`Lane`] says of its place.
    #[inline(always)]
    unsafe fn run_portable(&self, mut lane: Lane<'_>) -> Decoded {
        while lane.has_group() {
            lane.reader.refill();
            for _ in 0..GROUP {
                // SAFETY: `at` was below `stop`, so at most `limit`, before the group, which writes at most `DECODE_SLACK`.
                unsafe { self.copy_token(&mut lane) };
            }
        }
        if lane.at >= lane.stop {
            return Decoded::Bytes(lane.at);
        }
        lane.reader.refill();
        let Ok(mut remaining) = u32::try_from(lane.reader.remaining()) else { return Decoded::Damaged };
        let mut bits = lane.reader.padded_bits();
        loop {
            // Some tokens are copied whatever remains, and those whose words go beyond the end, as padding does, are not counted: no branch depends on
            // how many there are.
            let mut all_taken = u32::MAX;
            for _ in 0..TAIL {
                let (len, entry) = self.look_up(bits);
                // SAFETY: `at` was below `stop`, so at most `limit`, before the tail, which writes at most `DECODE_SLACK`.
                let bytes = unsafe { self.copy_entry(entry, lane.out.add(lane.at)) };
                all_taken &= u32::from(len <= remaining).wrapping_neg();
                let len = len & all_taken;
                remaining -= len;
                bits <<= len;
                lane.at += bytes & all_taken as usize;
            }
            if all_taken == 0 {
                let padded = remaining <= PADDING_BITS_MAX && bits >> (u64::BITS - PADDING_BITS_MAX) == (1 << PADDING_BITS_MAX) - 1;
                return if padded { Decoded::Bytes(lane.at) } else { Decoded::Damaged };
            }
            if lane.at >= lane.stop {
                return Decoded::Bytes(lane.at);
            }
        }
    }

    /// Copies the token of the next code word.
    ///
    /// # Safety
    /// `lane.out` must be valid for writes of [`MAX_TOKEN_LEN`] bytes from `lane.at` on.
    #[inline(always)]
    unsafe fn copy_token(&self, lane: &mut Lane<'_>) {
        let (len, entry) = self.look_up(lane.reader.bits());
        lane.reader.take(len);
        // SAFETY: by contract.
        lane.at += unsafe { self.copy_entry(entry, lane.out.add(lane.at)) };
    }

    /// Copies the token of an entry and returns its length.
    ///
    /// # Safety
    /// `out` must be valid for writes of [`MAX_TOKEN_LEN`] bytes.
    #[inline(always)]
    unsafe fn copy_entry(&self, entry: u32, out: *mut u8) -> usize {
        let (offset, len) = split(entry);
        debug_assert!(offset + MAX_TOKEN_LEN <= self.bytes.len() && len <= MAX_TOKEN_LEN);
        // SAFETY: the invariant of this module; `out` by contract; the table and what the caller owns exclusively do not overlap.
        unsafe { ptr::copy_nonoverlapping(self.bytes.as_ptr().add(offset), out, MAX_TOKEN_LEN) };
        len
    }
}

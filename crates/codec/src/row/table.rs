//! The table that decoding reads: tokens by code.
//!
//! A token is copied as 32 bytes whatever its length, and the next one is written over the excess: no branch depends on a token's length.
//!
//! Invariant, on which the unsafe code rests: [`MAX_TOKEN_LEN`] bytes of `bytes` can be read at the offset of every entry of `index`, and no
//! entry's length is more than that. Only [`TokenTable::new`] makes one.
#![expect(
    unsafe_code,
    reason = "copies of 32 bytes without a bounds check each: rows decode 1.6 times as fast as through slices (lab, bench row_decode)"
)]

use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use super::codes::{CODE_BITS, CODE_COUNT, CODE_MASK};

/// The longest token, in bytes.
pub const MAX_TOKEN_LEN: usize = 32;

/// Codes decoded between two looks at the room left.
const GROUP: usize = 4;
const GROUP_LEN: usize = GROUP * CODE_BITS as usize / 8;

/// Bytes behind the longest permitted row that decoding may overwrite.
pub const DECODE_SLACK: usize = GROUP * MAX_TOKEN_LEN;

#[derive(Clone)]
pub(super) struct TokenTable {
    /// By code: offset of the token in `bytes` (upper 24 bits) and its length (lower 8); 0 where there is no token.
    index: Box<[u32; CODE_COUNT]>,
    /// Tokens one behind the other; one that the next begins with shares its bytes.
    bytes: Arc<[u8]>,
    /// The processor has AVX.
    #[cfg(target_arch = "x86_64")]
    wide_copies: bool,
}

impl TokenTable {
    /// # Panics
    /// When there are more than 4,096 tokens, or one is longer than [`MAX_TOKEN_LEN`].
    pub(super) fn new(tokens: &[&[u8]]) -> Self {
        assert!(tokens.len() <= CODE_COUNT);
        let mut index = Box::new([0; CODE_COUNT]);
        let mut bytes = Vec::new();
        for (code, token) in tokens.iter().enumerate() {
            assert!(token.len() <= MAX_TOKEN_LEN);
            index[code] = (bytes.len() << 8 | token.len()) as u32;
            if !tokens.get(code + 1).is_some_and(|next| next.starts_with(token)) {
                bytes.extend_from_slice(token);
            }
        }
        bytes.extend_from_slice(&[0; MAX_TOKEN_LEN]);
        Self {
            index,
            bytes: bytes.into(),
            #[cfg(target_arch = "x86_64")]
            wide_copies: std::arch::is_x86_feature_detected!("avx"),
        }
    }

    /// Decodes as on a processor without AVX.
    pub(super) fn without_wide_copies(mut self) -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            self.wide_copies = false;
        }
        self
    }

    /// The token of `code`; empty when there is none.
    #[inline]
    pub(super) fn token(&self, code: u16) -> &[u8] {
        let (offset, len) = self.index.get(usize::from(code)).map_or((0, 0), |&entry| split(entry));
        &self.bytes[offset..offset + len]
    }

    /// The entry of the index for `code`, which [`split`] takes apart; 0 when there is no token.
    pub(super) fn entry(&self, code: u16) -> u32 {
        self.index.get(usize::from(code)).copied().unwrap_or(0)
    }

    /// What the entries' offsets refer to: [`MAX_TOKEN_LEN`] bytes can be read at each.
    pub(super) fn shared_bytes(&self) -> Arc<[u8]> {
        Arc::clone(&self.bytes)
    }

    /// Bytes of the table.
    pub(super) fn len(&self) -> usize {
        size_of_val(&*self.index) + self.bytes.len()
    }

    /// Appends the tokens of the codes in `compressed` to `out` and returns their length; `None`, and `out` as it was, when that is more
    /// than `limit`.
    pub(super) fn append(&self, compressed: &[u8], out: &mut Vec<u8>, limit: usize) -> Option<usize> {
        out.reserve(limit.saturating_add(DECODE_SLACK));
        let room = out.spare_capacity_mut();
        assert!(room.len() - DECODE_SLACK >= limit);
        // SAFETY: `room` is valid for writes of `limit + DECODE_SLACK` bytes.
        let len = unsafe { self.copy_tokens(compressed, room.as_mut_ptr().cast(), limit, usize::MAX) };
        if len > limit {
            return None;
        }
        // SAFETY: the first `len` bytes of the spare capacity have been written.
        unsafe { out.set_len(out.len() + len) };
        Some(len)
    }

    /// Writes the tokens of the codes in `compressed` to the front of `out`, until `need` bytes are written or there are no more codes;
    /// returns how many are written, or `None` when that is more than `limit`.
    ///
    /// # Panics
    /// When `out` is shorter than `limit + DECODE_SLACK`.
    pub(super) fn fill(&self, compressed: &[u8], out: &mut [u8], limit: usize, need: usize) -> Option<usize> {
        assert!(out.len().checked_sub(DECODE_SLACK).is_some_and(|room| room >= limit));
        // SAFETY: `out` is valid for writes of `limit + DECODE_SLACK` bytes.
        let len = unsafe { self.copy_tokens(compressed, out.as_mut_ptr(), limit, need) };
        (len <= limit).then_some(len)
    }

    /// Appends the tokens of some of the codes that `packed` begins with to `out` and returns their length; `None`, and `out` as it was, when that is more than `limit` or a code
    /// has no token. Behind its end `packed` reads as zeros. `each` is told, for every code in turn, how long the tokens up to its own are together.
    #[inline]
    pub(super) fn append_codes(
        &self,
        packed: &[u8],
        codes: Range<usize>,
        out: &mut Vec<u8>,
        limit: usize,
        each: impl FnMut(usize),
    ) -> Option<usize> {
        out.reserve(limit.saturating_add(DECODE_SLACK));
        let room = out.spare_capacity_mut();
        assert!(room.len() - DECODE_SLACK >= limit);
        let room = room.as_mut_ptr().cast();
        #[cfg(target_arch = "x86_64")]
        let len = if self.wide_copies {
            // SAFETY: `room` is valid for writes of `limit + DECODE_SLACK` bytes; and `wide_copies` says that the processor has AVX.
            unsafe { self.copy_some_avx(packed, codes, room, limit, each) }
        } else {
            // SAFETY: as above.
            unsafe { self.copy_some(packed, codes, room, limit, each) }
        };
        #[cfg(not(target_arch = "x86_64"))]
        // SAFETY: as above.
        let len = unsafe { self.copy_some(packed, codes, room, limit, each) };
        let len = len?;
        // SAFETY: the first `len` bytes of the spare capacity have been written.
        unsafe { out.set_len(out.len() + len) };
        Some(len)
    }

    /// # Safety
    /// As [`copy_some`](Self::copy_some); and the processor must have AVX.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx")]
    unsafe fn copy_some_avx(
        &self,
        packed: &[u8],
        codes: Range<usize>,
        out: *mut u8,
        limit: usize,
        each: impl FnMut(usize),
    ) -> Option<usize> {
        // SAFETY: by contract.
        unsafe { self.copy_some(packed, codes, out, limit, each) }
    }

    /// Writes the tokens of some codes to `out` and returns their length; `None` when that is more than `limit` or a code has no token.
    ///
    /// # Safety
    /// `out` must be valid for writes of `limit + DECODE_SLACK` bytes.
    #[inline(always)]
    unsafe fn copy_some(
        &self,
        packed: &[u8],
        codes: Range<usize>,
        out: *mut u8,
        limit: usize,
        mut each: impl FnMut(usize),
    ) -> Option<usize> {
        let (mut at, mut shortest) = (0, usize::MAX);
        let mut first = codes.start;
        while first < codes.end && at <= limit {
            // A code starts with a byte or in the middle of one, so eight bytes hold five.
            let bit = first * CODE_BITS as usize;
            let word = load(packed, bit / 8) >> (bit % 8);
            // Four tokens are copied whatever their number, and those too many not counted.
            let count = codes.end - first;
            for index in 0..GROUP {
                // SAFETY: `at` was at most `limit` before the group, and each of its four tokens takes at most `MAX_TOKEN_LEN` bytes.
                let len = unsafe { self.copy_token(word >> (index as u32 * CODE_BITS), out.add(at)) };
                if index < count {
                    at += len;
                    shortest = shortest.min(len);
                    each(at);
                }
            }
            first += GROUP;
        }
        (at <= limit && shortest > 0).then_some(at)
    }

    /// Returns how many bytes are written, up to `limit + DECODE_SLACK`; more than `limit` says that there may be more codes.
    ///
    /// # Safety
    /// `out` must be valid for writes of `limit + DECODE_SLACK` bytes.
    #[inline(always)]
    unsafe fn copy_tokens(&self, compressed: &[u8], out: *mut u8, limit: usize, need: usize) -> usize {
        #[cfg(target_arch = "x86_64")]
        if self.wide_copies {
            // SAFETY: by contract; and `wide_copies` says that the processor has AVX.
            return unsafe { self.copy_tokens_avx(compressed, out, limit, need) };
        }
        // SAFETY: by contract.
        unsafe { self.copy_tokens_portable(compressed, out, limit, need) }
    }

    /// The same code, compiled to copy 32 bytes with one load and one store.
    ///
    /// # Safety
    /// As [`copy_tokens`](Self::copy_tokens); and the processor must have AVX.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx")]
    unsafe fn copy_tokens_avx(&self, compressed: &[u8], out: *mut u8, limit: usize, need: usize) -> usize {
        // SAFETY: by contract.
        unsafe { self.copy_tokens_portable(compressed, out, limit, need) }
    }

    /// # Safety
    /// As [`copy_tokens`](Self::copy_tokens).
    #[inline(always)]
    unsafe fn copy_tokens_portable(&self, compressed: &[u8], out: *mut u8, limit: usize, need: usize) -> usize {
        // While `at` is below `stop`, it is at most `limit`, so that a group, which writes at most `DECODE_SLACK`, ends in bounds.
        let stop = need.min(limit.saturating_add(1));
        let mut at = 0;
        let mut rest = compressed;
        while let Some(codes) = rest.first_chunk() {
            if at >= stop {
                return at;
            }
            let codes = u64::from_le_bytes(*codes);
            for index in 0..GROUP as u32 {
                // SAFETY: `at` was below `stop` before the group, and each of its four tokens takes at most `MAX_TOKEN_LEN` bytes.
                at += unsafe { self.copy_token(codes >> (index * CODE_BITS), out.add(at)) };
            }
            rest = &rest[GROUP_LEN..];
        }
        if at >= stop {
            return at;
        }
        // Up to 7 bytes, 4 codes, are left. Where the row has 8, its last 8 end with them.
        let codes = match compressed.last_chunk() {
            // Two shifts, as the left bytes may be none and a shift by 64 is none.
            Some(last) => u64::from_le_bytes(*last) >> 1 >> (63 - rest.len() * 8),
            None => rest.iter().rev().fold(0, |codes, &byte| codes << 8 | u64::from(byte)),
        };
        // Four tokens are copied whatever their number, and those too many not counted: no branch depends on it.
        let count = rest.len() * 8 / CODE_BITS as usize;
        for index in 0..GROUP {
            // SAFETY: as above.
            let len = unsafe { self.copy_token(codes >> (index as u32 * CODE_BITS), out.add(at)) };
            at += if index < count { len } else { 0 };
        }
        at
    }

    /// Copies the token of the low 12 bits of `codes` and returns its length.
    ///
    /// # Safety
    /// `out` must be valid for writes of [`MAX_TOKEN_LEN`] bytes.
    #[inline(always)]
    unsafe fn copy_token(&self, codes: u64, out: *mut u8) -> usize {
        let (offset, len) = split(self.index[(codes & CODE_MASK) as usize]);
        debug_assert!(offset + MAX_TOKEN_LEN <= self.bytes.len() && len <= MAX_TOKEN_LEN);
        // SAFETY: the invariant of this module; `out` by contract; the table and what the caller owns exclusively do not overlap.
        unsafe { ptr::copy_nonoverlapping(self.bytes.as_ptr().add(offset), out, MAX_TOKEN_LEN) };
        len
    }
}

/// The eight bytes at `at`; zeros behind the end.
#[inline(always)]
fn load(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(<[u8]>::first_chunk) {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => bytes.get(at..).unwrap_or_default().iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// Offset and length in an entry of the index.
#[inline(always)]
pub(super) fn split(entry: u32) -> (usize, usize) {
    ((entry >> 8) as usize, (entry & 0xff) as usize)
}

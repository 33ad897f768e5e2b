//! The dictionary of a partition: what each 12-bit code stands for.
//!
//! Invariants of a [`Dictionary`], checked wherever one is made:
//! - it has 256 to 4,096 tokens of 1 to 16 bytes; token n has code n;
//! - each of the 256 single bytes is a token, so every row can be encoded;
//! - no token occurs twice.
//!
//! ## Serial form, version 1
//!
//! | Offset | Size | Field |
//! |---|---|---|
//! | 0 | 1 | version: 1 |
//! | 1 | 1 | zero |
//! | 2 | 2 | number of tokens n |
//! | 4 | (n + 1) / 2 | length of each token less one, 4 bits each, the first in the low bits; zero where n is odd |
//! | | sum of lengths | the tokens' bytes in code order |

use super::codes::CODE_COUNT;
use crate::CodecError;

/// The longest token, in bytes.
pub const MAX_TOKEN_LEN: usize = 16;

const VERSION: u8 = 1;
const HEADER_LEN: usize = 4;
const SINGLE_BYTES: usize = 256;

/// A token's bytes in the first places; what follows is zero.
pub(super) type Entry = [u8; MAX_TOKEN_LEN];

/// Tokens by code: immutable, and enough to decode rows. To encode them, make an [`Encoder`](super::Encoder) of it.
#[derive(Clone)]
pub struct Dictionary {
    /// 64 KB that decoding copies from. Frequent tokens come first, so that they share cache lines and pages.
    pub(super) entries: Box<[Entry; CODE_COUNT]>,
    /// Lengths by code; 0 where there is no token.
    pub(super) lens: Box<[u8; CODE_COUNT]>,
    count: u16,
}

impl Dictionary {
    /// A dictionary of these tokens, in this order.
    ///
    /// # Errors
    /// When the tokens break one of the invariants of this module.
    pub fn from_tokens<T: AsRef<[u8]>>(tokens: &[T]) -> Result<Self, CodecError> {
        if !(SINGLE_BYTES..=CODE_COUNT).contains(&tokens.len()) {
            return Err(CodecError::Dictionary("number of tokens is not 256 to 4,096"));
        }
        let mut entries = zeroed_entries();
        let mut lens = Box::new([0; CODE_COUNT]);
        let mut single_bytes = 0;
        for ((token, entry), len) in tokens.iter().map(AsRef::as_ref).zip(entries.iter_mut()).zip(lens.iter_mut()) {
            if token.is_empty() || token.len() > MAX_TOKEN_LEN {
                return Err(CodecError::Dictionary("length of a token is not 1 to 16"));
            }
            entry[..token.len()].copy_from_slice(token);
            *len = token.len() as u8;
            single_bytes += usize::from(token.len() == 1);
        }
        // 256 single bytes, none of them twice, are all of them.
        if single_bytes != SINGLE_BYTES {
            return Err(CodecError::Dictionary("not every single byte is a token"));
        }
        let mut sorted: Vec<(u128, u8)> =
            entries.iter().zip(lens.iter()).take(tokens.len()).map(|(entry, &len)| (u128::from_le_bytes(*entry), len)).collect();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(CodecError::Dictionary("a token occurs twice"));
        }
        Ok(Self { entries, lens, count: tokens.len() as u16 })
    }

    /// Number of tokens, 256 to 4,096. Codes from here on mean nothing.
    #[must_use]
    pub fn token_count(&self) -> usize {
        usize::from(self.count)
    }

    /// The bytes that `code` stands for; empty when it stands for nothing.
    #[must_use]
    pub fn token(&self, code: u16) -> &[u8] {
        let code = usize::from(code);
        match (self.entries.get(code), self.lens.get(code)) {
            (Some(entry), Some(&len)) => &entry[..usize::from(len)],
            _ => &[],
        }
    }

    /// The tokens in code order.
    pub fn tokens(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        (0..self.count).map(|code| self.token(code))
    }

    /// The serial form.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let count = self.token_count();
        let mut bytes = Vec::with_capacity(self.serial_len());
        bytes.push(VERSION);
        bytes.push(0);
        bytes.extend_from_slice(&self.count.to_le_bytes());
        for pair in self.lens[..count].chunks(2) {
            let low = pair[0] - 1;
            let high = pair.get(1).map_or(0, |len| len - 1);
            bytes.push(low | high << 4);
        }
        for token in self.tokens() {
            bytes.extend_from_slice(token);
        }
        bytes
    }

    /// Length of the serial form in bytes.
    #[must_use]
    pub fn serial_len(&self) -> usize {
        let count = self.token_count();
        HEADER_LEN + count.div_ceil(2) + self.lens.iter().map(|&len| usize::from(len)).sum::<usize>()
    }

    /// Reads the serial form back.
    ///
    /// # Errors
    /// When `bytes` is not exactly a serial form. Any bytes at all are safe to hand in.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CodecError> {
        let truncated = CodecError::Dictionary("truncated");
        let (header, rest) = bytes.split_first_chunk::<HEADER_LEN>().ok_or(truncated)?;
        let [version, zero, count @ ..] = *header;
        if version != VERSION || zero != 0 {
            return Err(CodecError::Dictionary("unknown version"));
        }
        let count = usize::from(u16::from_le_bytes(count));
        if !(SINGLE_BYTES..=CODE_COUNT).contains(&count) {
            return Err(CodecError::Dictionary("number of tokens is not 256 to 4,096"));
        }
        let (nibbles, mut rest) = rest.split_at_checked(count.div_ceil(2)).ok_or(truncated)?;
        if count % 2 == 1 && nibbles[count / 2] >> 4 != 0 {
            return Err(CodecError::Dictionary("padding is not zero"));
        }
        let mut tokens = Vec::with_capacity(count);
        for code in 0..count {
            let len = usize::from(nibbles[code / 2] >> (code % 2 * 4) & 0xf) + 1;
            let (token, after) = rest.split_at_checked(len).ok_or(truncated)?;
            tokens.push(token);
            rest = after;
        }
        if !rest.is_empty() {
            return Err(CodecError::Dictionary("bytes after the last token"));
        }
        Self::from_tokens(&tokens)
    }
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dictionary").field("tokens", &self.count).finish_non_exhaustive()
    }
}

/// 64 KB of zeros on the heap, without passing over the stack.
fn zeroed_entries() -> Box<[Entry; CODE_COUNT]> {
    match vec![[0; MAX_TOKEN_LEN]; CODE_COUNT].into_boxed_slice().try_into() {
        Ok(entries) => entries,
        Err(_) => unreachable!("the vector has CODE_COUNT elements"),
    }
}

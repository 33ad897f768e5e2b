//! The dictionary of a partition: what each 12-bit code stands for.
//!
//! Invariants of a [`Dictionary`], checked wherever one is made:
//! - it has 256 to 4,096 tokens of 1 to 32 bytes; each of the 256 single bytes is one, so every row can be encoded;
//! - the tokens ascend, so none occurs twice, and a token's code is its rank.
//!
//! The order of the codes is free (a decode table with the frequent tokens first was measured to be no faster), so it is spent on a small serial
//! form.
//!
//! ## Serial form, version 1
//!
//! | Offset | Size | Field |
//! |---|---|---|
//! | 0 | 1 | version: 1 |
//! | 1 | 1 | type: 0 (F, codes of 12 bits), 1 (H, Huffman codes) |
//! | 2 | 2 | number of tokens |
//! | 4 | | the tokens in code order, each as below |
//! | | | type H only: the lengths of their code words, see [`HuffmanCodes`](super::HuffmanCodes) |
//!
//! | Size | Field |
//! |---|---|
//! | 1 | low 4 bits: number of leading bytes taken from the token before; high 4 bits: number of own bytes less one, or 15: see next field |
//! | 0 or 1 | number of own bytes less one, where it is 15 or more |
//! | | own bytes |

use super::codes::CODE_COUNT;
use super::table::{MAX_TOKEN_LEN, TokenTable};
use crate::CodecError;
use std::ops::Range;

const VERSION: u8 = 1;
const HEADER_LEN: usize = 4;
const NIBBLE_MAX: usize = 15;
pub(super) const SINGLE_BYTES: usize = 256;

const BAD_COUNT: CodecError = CodecError::Dictionary("number of tokens is not 256 to 4,096");

/// How rows are encoded with a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DictionaryType {
    /// F: codes of 12 bits (method `fixed`).
    Fixed = 0,
    /// H: Huffman codes of up to 16 bits (method `huffman`).
    Huffman = 1,
}

/// Tokens by code: immutable, and enough to decode rows. To encode them, make an [`Encoder`](super::Encoder) of it.
#[derive(Clone)]
pub struct Dictionary {
    pub(super) table: TokenTable,
    count: u16,
}

impl Dictionary {
    /// A dictionary of these tokens.
    ///
    /// # Errors
    /// When there are not 256 to 4,096 of 1 to 32 bytes, or one occurs twice, or a single byte is not among them.
    pub fn from_tokens<T: AsRef<[u8]>>(tokens: &[T]) -> Result<Self, CodecError> {
        let mut sorted: Vec<&[u8]> = tokens.iter().map(AsRef::as_ref).collect();
        sorted.sort_unstable();
        Self::from_sorted(&sorted)
    }

    fn from_sorted(tokens: &[&[u8]]) -> Result<Self, CodecError> {
        if !(SINGLE_BYTES..=CODE_COUNT).contains(&tokens.len()) {
            return Err(BAD_COUNT);
        }
        if tokens.iter().any(|token| !(1..=MAX_TOKEN_LEN).contains(&token.len())) {
            return Err(CodecError::Dictionary("length of a token is not 1 to 32"));
        }
        if !tokens.is_sorted_by(|a, b| a < b) {
            return Err(CodecError::Dictionary("tokens do not ascend"));
        }
        // No token occurs twice, so 256 single bytes are all of them.
        if tokens.iter().filter(|token| token.len() == 1).count() != SINGLE_BYTES {
            return Err(CodecError::Dictionary("not every single byte is a token"));
        }
        Ok(Self { table: TokenTable::new(tokens), count: tokens.len() as u16 })
    }

    /// Decodes as on a processor without AVX: what tests and fuzzers compare the other way with.
    #[doc(hidden)]
    #[must_use]
    pub fn without_wide_copies(self) -> Self {
        Self { table: self.table.without_wide_copies(), ..self }
    }

    /// Number of tokens, 256 to 4,096. Codes from here on mean nothing.
    #[must_use]
    pub fn token_count(&self) -> usize {
        usize::from(self.count)
    }

    /// The bytes that `code` stands for; empty when it stands for nothing.
    #[must_use]
    pub fn token(&self, code: u16) -> &[u8] {
        self.table.token(code)
    }

    /// Appends what some of the codes that lie in `packed`, one behind the other, stand for; `None`, and `out` as it was, when that is more than `limit` bytes or a code stands for
    /// nothing. Codes behind the end of `packed` are zeros. `each` is told, for every code in turn, the length of what is appended with it.
    #[inline]
    pub(crate) fn append_codes(
        &self,
        packed: &[u8],
        codes: Range<usize>,
        out: &mut Vec<u8>,
        limit: usize,
        each: impl FnMut(usize),
    ) -> Option<usize> {
        self.table.append_codes(packed, codes, out, limit, each)
    }

    /// The tokens in code order, that is ascending.
    pub fn tokens(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        (0..self.count).map(|code| self.token(code))
    }

    /// Bytes of memory that decoding reads at random: what competes for the processor's caches.
    #[must_use]
    pub fn table_len(&self) -> usize {
        self.table.len()
    }

    /// The serial form.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.to_bytes_of_type(DictionaryType::Fixed)
    }

    /// The serial form up to the last token, for a dictionary of this type.
    pub(super) fn to_bytes_of_type(&self, dictionary_type: DictionaryType) -> Vec<u8> {
        let mut bytes = vec![VERSION, dictionary_type as u8];
        bytes.extend_from_slice(&self.count.to_le_bytes());
        let mut before: &[u8] = &[];
        for token in self.tokens() {
            let shared = before.iter().zip(token).take(NIBBLE_MAX).take_while(|(a, b)| a == b).count();
            // A token greater than the one before has a byte of its own, but not always within the first 15.
            let own = &token[shared..];
            let own_len = own.len() - 1;
            bytes.push((shared | own_len.min(NIBBLE_MAX) << 4) as u8);
            if own_len >= NIBBLE_MAX {
                bytes.push(own_len as u8);
            }
            bytes.extend_from_slice(own);
            before = token;
        }
        bytes
    }

    /// Reads the serial form back.
    ///
    /// # Errors
    /// When `bytes` is not exactly a serial form of type F. Any bytes at all are safe to hand in.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CodecError> {
        match Self::read(bytes)? {
            (dictionary, DictionaryType::Fixed, []) => Ok(dictionary),
            (_, DictionaryType::Fixed, _) => Err(CodecError::Dictionary("bytes after the last token")),
            (_, DictionaryType::Huffman, _) => Err(CodecError::Dictionary("type is not F")),
        }
    }

    /// Reads the tokens, and returns the type and what follows them.
    pub(super) fn read(bytes: &[u8]) -> Result<(Self, DictionaryType, &[u8]), CodecError> {
        let truncated = CodecError::Dictionary("truncated");
        let (&[version, dictionary_type, low, high], mut rest) = bytes.split_first_chunk::<HEADER_LEN>().ok_or(truncated)?;
        if version != VERSION {
            return Err(CodecError::Dictionary("unknown version"));
        }
        let dictionary_type = match dictionary_type {
            0 => DictionaryType::Fixed,
            1 => DictionaryType::Huffman,
            _ => return Err(CodecError::Dictionary("unknown type")),
        };
        let count = usize::from(u16::from_le_bytes([low, high]));
        if !(SINGLE_BYTES..=CODE_COUNT).contains(&count) {
            return Err(BAD_COUNT);
        }
        let mut tokens: Vec<([u8; MAX_TOKEN_LEN], usize)> = Vec::with_capacity(count);
        let mut token = [0; MAX_TOKEN_LEN];
        let mut len = 0;
        for _ in 0..count {
            let (&lens, after) = rest.split_first().ok_or(truncated)?;
            rest = after;
            let shared = usize::from(lens) & NIBBLE_MAX;
            let mut own_len = usize::from(lens >> 4);
            if own_len == NIBBLE_MAX {
                let (&long, after) = rest.split_first().ok_or(truncated)?;
                rest = after;
                own_len = usize::from(long);
            }
            let (own, after) = rest.split_at_checked(own_len + 1).ok_or(truncated)?;
            rest = after;
            if shared > len || shared + own.len() > MAX_TOKEN_LEN {
                return Err(CodecError::Dictionary("lengths of a token"));
            }
            len = shared + own.len();
            token[shared..len].copy_from_slice(own);
            tokens.push((token, len));
        }
        let tokens: Vec<&[u8]> = tokens.iter().map(|(bytes, len)| &bytes[..*len]).collect();
        Ok((Self::from_sorted(&tokens)?, dictionary_type, rest))
    }
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dictionary").field("tokens", &self.count).finish_non_exhaustive()
    }
}

//! Codes from rows.

use super::codes::{CodeWriter, compressed_len};
use super::dictionary::Dictionary;
use super::trie::Trie;

/// What it takes to encode rows with a dictionary. Readers do not need it.
pub struct Encoder {
    trie: Trie,
}

impl Encoder {
    /// The encoder of `dictionary`.
    #[must_use]
    pub fn new(dictionary: &Dictionary) -> Self {
        Self { trie: Trie::new(dictionary.tokens()) }
    }

    /// Appends `row` in compressed form to `out` and returns the length of that; or leaves `out` as it was and returns `None` when the
    /// compressed form would not be smaller than the row.
    pub fn encode(&self, row: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let start = out.len();
        let mut writer = CodeWriter::new(out);
        self.codes(row, |code| writer.push(code));
        writer.finish();
        let len = out.len() - start;
        if len < row.len() {
            Some(len)
        } else {
            out.truncate(start);
            None
        }
    }

    /// Bytes that `row` takes as [`encode`](Self::encode) would write it; `None` when that would leave it as it is.
    #[must_use]
    pub fn encoded_len(&self, row: &[u8]) -> Option<usize> {
        let mut codes = 0;
        self.codes(row, |_| codes += 1);
        Some(compressed_len(codes)).filter(|&len| len < row.len())
    }

    /// Calls `emit` with each code of `row` in order.
    #[inline]
    pub fn codes(&self, row: &[u8], mut emit: impl FnMut(u16)) {
        let mut rest = row;
        while !rest.is_empty() {
            let (len, code) = self.trie.longest(rest);
            // Every single byte is a token.
            debug_assert!(len > 0);
            emit(code);
            rest = &rest[len..];
        }
    }
}

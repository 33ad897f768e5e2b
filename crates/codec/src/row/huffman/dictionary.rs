//! A dictionary with Huffman codes, and one of either type.
//!
//! Serial form: that of [`Dictionary`] with type 1, then the code lengths ([`HuffmanCodes`]).

use super::codes::HuffmanCodes;
use super::table::DecodeTable;
use crate::CodecError;
use crate::row::dictionary::{Dictionary, DictionaryType};

/// Tokens and their code words: immutable, and enough to decode rows. To encode them, make a [`HuffmanEncoder`](super::HuffmanEncoder) of it.
#[derive(Clone)]
pub struct HuffmanDictionary {
    pub(super) tokens: Dictionary,
    pub(super) codes: HuffmanCodes,
    pub(super) table: DecodeTable,
}

impl HuffmanDictionary {
    /// The dictionary of these tokens and code words.
    ///
    /// # Errors
    /// When there are not as many code words as tokens.
    pub fn new(tokens: Dictionary, codes: HuffmanCodes) -> Result<Self, CodecError> {
        if tokens.token_count() != codes.lens().len() {
            return Err(CodecError::Dictionary("not as many codes as tokens"));
        }
        let table = DecodeTable::new(&tokens.table, &codes);
        Ok(Self { tokens, codes, table })
    }

    /// Decodes as on a processor without AVX and BMI2: what tests and fuzzers compare the other way with.
    #[doc(hidden)]
    #[must_use]
    pub fn without_wide_copies(self) -> Self {
        Self { table: self.table.without_wide_copies(), ..self }
    }

    /// The tokens; decodes rows that are stored with codes of 12 bits.
    #[must_use]
    pub fn tokens(&self) -> &Dictionary {
        &self.tokens
    }

    /// The code words.
    #[must_use]
    pub fn codes(&self) -> &HuffmanCodes {
        &self.codes
    }

    /// Bytes of memory that decoding reads at random, that of rows with 12-bit codes included.
    #[must_use]
    pub fn table_len(&self) -> usize {
        self.tokens.table_len() + self.table.len()
    }

    /// The serial form.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.tokens.to_bytes_of_type(DictionaryType::Huffman);
        self.codes.write(&mut bytes);
        bytes
    }
}

impl std::fmt::Debug for HuffmanDictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HuffmanDictionary").field("tokens", &self.tokens.token_count()).field("codes", &self.codes).finish_non_exhaustive()
    }
}

/// A dictionary of either type: what a chain of dictionary pages holds.
#[derive(Debug, Clone)]
pub enum RowDictionary {
    /// Type F.
    Fixed(Dictionary),
    /// Type H.
    Huffman(HuffmanDictionary),
}

impl RowDictionary {
    /// Reads the serial form back, whatever its type.
    ///
    /// # Errors
    /// When `bytes` is not exactly a serial form. Any bytes at all are safe to hand in.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CodecError> {
        match Dictionary::read(bytes)? {
            (tokens, DictionaryType::Fixed, []) => Ok(Self::Fixed(tokens)),
            (_, DictionaryType::Fixed, _) => Err(CodecError::Dictionary("bytes after the last token")),
            (tokens, DictionaryType::Huffman, codes) => {
                let codes = HuffmanCodes::from_bytes(codes, tokens.token_count())?;
                HuffmanDictionary::new(tokens, codes).map(Self::Huffman)
            }
        }
    }

    /// The serial form; its length is the dictionary's size on pages.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Fixed(dictionary) => dictionary.to_bytes(),
            Self::Huffman(dictionary) => dictionary.to_bytes(),
        }
    }

    /// F or H.
    #[must_use]
    pub fn dictionary_type(&self) -> DictionaryType {
        match self {
            Self::Fixed(_) => DictionaryType::Fixed,
            Self::Huffman(_) => DictionaryType::Huffman,
        }
    }

    /// The tokens; decodes rows that are stored with codes of 12 bits.
    #[must_use]
    pub fn tokens(&self) -> &Dictionary {
        match self {
            Self::Fixed(dictionary) => dictionary,
            Self::Huffman(dictionary) => dictionary.tokens(),
        }
    }

    /// The code words of type H.
    #[must_use]
    pub fn codes(&self) -> Option<&HuffmanCodes> {
        match self {
            Self::Fixed(_) => None,
            Self::Huffman(dictionary) => Some(dictionary.codes()),
        }
    }

    /// Number of tokens, 256 to 4,096.
    #[must_use]
    pub fn token_count(&self) -> usize {
        self.tokens().token_count()
    }

    /// Bytes of memory that decoding reads at random.
    #[must_use]
    pub fn table_len(&self) -> usize {
        match self {
            Self::Fixed(dictionary) => dictionary.table_len(),
            Self::Huffman(dictionary) => dictionary.table_len(),
        }
    }
}

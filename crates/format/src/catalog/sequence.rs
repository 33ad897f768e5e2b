//! How the numbers of a sequence go.
//!
//! | Tag | Attribute |
//! |---|---|
//! | 1 | first number; 3 increment; 5 least; 7 greatest: 8 bytes each, signed |
//! | 9 | no bytes: it begins anew when it has come to its end |
//! | 10 | numbers taken at once |

use super::attributes::{Attribute, Attributes, Kept, put, put_number};
use crate::FormatError;

/// The numbers of a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// The first number.
    pub start: i64,
    /// What the next one is more.
    pub increment: i64,
    /// The least.
    pub least: i64,
    /// The greatest.
    pub greatest: i64,
    /// Begins anew when it has come to its end.
    pub cycles: bool,
    /// Numbers taken at once.
    pub cache: u32,
    /// What a later version has said.
    pub kept: Kept,
}

impl Default for Sequence {
    /// 1, 2, 3 ...
    fn default() -> Sequence {
        Sequence { start: 1, increment: 1, least: 1, greatest: i64::MAX, cycles: false, cache: 1, kept: Kept::default() }
    }
}

fn signed(attribute: Attribute<'_>) -> Result<i64, FormatError> {
    let bytes = attribute.bytes.try_into().map_err(|_| FormatError::new(format!("attribute {} is no number of 8 bytes", attribute.tag)))?;
    Ok(i64::from_le_bytes(bytes))
}

impl Sequence {
    /// As attributes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (tag, number) in [(1, self.start), (3, self.increment), (5, self.least), (7, self.greatest)] {
            put(&mut out, tag, &number.to_le_bytes());
        }
        if self.cycles {
            put(&mut out, 9, &[]);
        }
        put_number(&mut out, 10, self.cache.into());
        self.kept.merge(out)
    }

    /// Read back.
    ///
    /// # Errors
    /// When the bytes are none, or a later version has said what must be known.
    pub fn decode(bytes: &[u8]) -> Result<Sequence, FormatError> {
        let mut found = Sequence::default();
        for attribute in Attributes::new(bytes) {
            let attribute = attribute?;
            match attribute.tag {
                1 => found.start = signed(attribute)?,
                3 => found.increment = signed(attribute)?,
                5 => found.least = signed(attribute)?,
                7 => found.greatest = signed(attribute)?,
                9 => found.cycles = attribute.mark()?,
                10 => found.cache = attribute.number()?,
                _ => found.kept.keep(attribute)?,
            }
        }
        if found.increment == 0 || found.least > found.greatest || !(found.least..=found.greatest).contains(&found.start) {
            return Err(FormatError::new("a sequence that has no numbers"));
        }
        Ok(found)
    }
}

//! A partition of a table that is divided by ranges.
//!
//! | Tag | Attribute |
//! |---|---|
//! | 1 | number of the partition |
//! | 3 | limit: the key, as in an index, that is the first behind the range; none: there is no end |
//! | 5 | method, as text, where it is not that of the table |
//! | 7 | page size, where it is not that of the table |

use super::attributes::{Attributes, Kept, put, put_number};
use crate::FormatError;

/// A range of rows with attributes of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangePartition {
    /// Number of the partition.
    pub number: u16,
    /// The key that is the first behind the range.
    pub limit: Option<Vec<u8>>,
    /// Its method, where it has one of its own.
    pub method: Option<String>,
    /// Its page size, where it has one of its own.
    pub page_bytes: Option<u32>,
    /// What a later version has said.
    pub kept: Kept,
}

impl RangePartition {
    /// As attributes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, 1, self.number.into());
        self.limit.iter().for_each(|limit| put(&mut out, 3, limit));
        self.method.iter().for_each(|method| put(&mut out, 5, method.as_bytes()));
        self.page_bytes.iter().for_each(|bytes| put_number(&mut out, 7, u64::from(*bytes)));
        self.kept.merge(out)
    }

    /// Read back.
    ///
    /// # Errors
    /// When the bytes are none, or a later version has said what must be known.
    pub fn decode(bytes: &[u8]) -> Result<RangePartition, FormatError> {
        let mut found = RangePartition::default();
        let mut number = None;
        for attribute in Attributes::new(bytes) {
            let attribute = attribute?;
            match attribute.tag {
                1 => number = Some(attribute.number()?),
                3 => found.limit = Some(attribute.bytes.to_vec()),
                5 => found.method = Some(attribute.text()?.into()),
                7 => found.page_bytes = Some(attribute.number()?),
                _ => found.kept.keep(attribute)?,
            }
        }
        found.number = number.ok_or_else(|| FormatError::new("a partition without a number"))?;
        Ok(found)
    }
}

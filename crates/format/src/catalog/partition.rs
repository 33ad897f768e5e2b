//! A range partition: a table that has the rows of a partitioned table whose keys are in a range.
//!
//! | Tag | Attribute |
//! |---|---|
//! | 1 | number of the partition, which no other partition of the table has |
//! | 3 | limit: the key, as in an index, that is the first behind the range; none: there is no end |
//! | 5 | method, as text; a table says its own, so nobody needs it |
//! | 7 | page size, likewise |
//! | 9 | start: the first key of the range; none: there is no beginning |
//! | 11 | object id of the partitioned table |

use super::attributes::{Attributes, Kept, put, put_number};
use crate::FormatError;

/// Of which rows a table is a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangePartition {
    /// Number of the partition.
    pub number: u16,
    /// The first key of the range; `None`: it has no beginning.
    pub start: Option<Vec<u8>>,
    /// The key that is the first behind the range; `None`: it has no end.
    pub limit: Option<Vec<u8>>,
    /// Object id of the partitioned table.
    pub table: Option<u32>,
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
        self.start.iter().for_each(|start| put(&mut out, 9, start));
        self.table.iter().for_each(|table| put_number(&mut out, 11, u64::from(*table)));
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
                9 => found.start = Some(attribute.bytes.to_vec()),
                11 => found.table = Some(attribute.number()?),
                _ => found.kept.keep(attribute)?,
            }
        }
        found.number = number.ok_or_else(|| FormatError::new("a partition without a number"))?;
        Ok(found)
    }
}

//! Rows to train a dictionary on.

use crate::CodecError;

/// Rows one behind the other, and where each ends.
#[derive(Debug, Clone, Copy)]
pub struct RowSample<'a> {
    bytes: &'a [u8],
    ends: &'a [u32],
}

impl<'a> RowSample<'a> {
    /// Rows that lie one behind the other in `bytes`; `ends` are the offsets behind each.
    ///
    /// # Errors
    /// When `ends` does not ascend, or goes beyond `bytes`.
    pub fn new(bytes: &'a [u8], ends: &'a [u32]) -> Result<Self, CodecError> {
        let beyond = ends.last().is_some_and(|&end| end as usize > bytes.len());
        if beyond || !ends.is_sorted() {
            return Err(CodecError::Row("end offsets of the sample do not ascend within it"));
        }
        Ok(Self { bytes, ends })
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Length of all rows together in bytes.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.ends.last().map_or(0, |&end| end as usize)
    }

    /// Row `index`.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn row(&self, index: usize) -> &'a [u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.bytes[start..self.ends[index] as usize]
    }

    /// The rows in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        let sample = *self;
        (0..self.len()).map(move |index| sample.row(index))
    }
}

//! Non-leaf pages filled in order.

use crate::FormatError;
use crate::index::non_leaf::{NON_LEAF_HEADER_BYTES, NonLeaf, put_separator};
use crate::index::ops::NonLeafOp;

/// Fills one non-leaf page after the other.
#[derive(Clone, Debug)]
pub(super) struct NonLeafBuilder {
    level: u8,
    page_bytes: usize,
    limit: usize,
    pub(super) first_child: Option<u32>,
    /// The separator before the first child: it goes to the level above with this page.
    pub(super) low_separator: Vec<u8>,
    run: Vec<u8>,
    pub(super) separators: usize,
    used: usize,
}

impl NonLeafBuilder {
    pub(super) fn new(level: u8, page_bytes: usize, free_percent: u8) -> NonLeafBuilder {
        let fill = page_bytes.saturating_sub(NON_LEAF_HEADER_BYTES) * usize::from(100 - free_percent.min(99)) / 100;
        NonLeafBuilder {
            level,
            page_bytes,
            limit: NON_LEAF_HEADER_BYTES + fill,
            first_child: None,
            low_separator: Vec::new(),
            run: Vec::new(),
            separators: 0,
            used: NON_LEAF_HEADER_BYTES,
        }
    }

    pub(super) fn start(&mut self, low_separator: &[u8], child: u32) {
        self.first_child = Some(child);
        self.low_separator.clear();
        self.low_separator.extend_from_slice(low_separator);
        self.run.clear();
        self.separators = 0;
        self.used = NON_LEAF_HEADER_BYTES;
    }

    /// Adds a separator and the child after it; `false`: they belong into the next page.
    pub(super) fn push(&mut self, separator: &[u8], child: u32, images: bool) -> bool {
        let used = self.used + NonLeaf::separator_bytes(separator.len());
        if used > self.limit && (self.separators > 1 || used > self.page_bytes) {
            return false;
        }
        self.used = used;
        self.separators += 1;
        if images {
            put_separator(&mut self.run, separator, child);
        }
        true
    }

    pub(super) fn free_bytes(&self) -> usize {
        self.page_bytes - self.used
    }

    pub(super) fn finish(&self, page_number: u32, out: &mut [u8]) -> Result<(), FormatError> {
        let first_child = self.first_child.unwrap_or(0);
        NonLeafOp::Format { page_number, level: self.level, first_child }.apply(out)?;
        NonLeafOp::Append { count: self.separators as u16, run: &self.run }.apply(out)
    }
}

//! One bit per row: NULL, or a large-value reference.

/// Bits of the rows collected so far.
#[derive(Debug, Default)]
pub(super) struct RowBits {
    /// Up to the last one that is set.
    bytes: Vec<u8>,
    rows: usize,
}

impl RowBits {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.rows = 0;
    }

    #[inline]
    pub(super) fn push(&mut self, set: bool) {
        if set {
            self.bytes.resize(self.rows / 8 + 1, 0);
            self.bytes[self.rows / 8] |= 1 << (self.rows % 8);
        }
        self.rows += 1;
    }

    /// So many rows that are not set.
    pub(super) fn push_unset(&mut self, rows: usize) {
        self.rows += rows;
    }

    #[inline]
    pub(super) fn get(&self, row: usize) -> bool {
        self.bytes.get(row / 8).is_some_and(|byte| byte >> (row % 8) & 1 == 1)
    }

    /// How many of the first `rows` rows are set.
    pub(super) fn count(&self, rows: usize) -> usize {
        let whole: usize = self.bytes.iter().take(rows / 8).map(|byte| byte.count_ones() as usize).sum();
        let last = self.bytes.get(rows / 8).map_or(0, |byte| (byte & ((1 << (rows % 8)) - 1)).count_ones());
        whole + last as usize
    }

    /// Appends the bits of the first `rows` rows; those behind them in the last byte are zero.
    pub(super) fn write(&self, rows: usize, out: &mut Vec<u8>) {
        let end = out.len() + rows.div_ceil(8);
        out.extend_from_slice(&self.bytes[..rows.div_ceil(8).min(self.bytes.len())]);
        out.resize(end, 0);
        if let (Some(last), true) = (out.last_mut(), !rows.is_multiple_of(8)) {
            *last &= (1 << (rows % 8)) - 1;
        }
    }
}

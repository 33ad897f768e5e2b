//! One bit per row: NULL, or a large-value reference.

/// Bits of the rows collected so far.
#[derive(Debug, Default)]
pub(super) struct RowBits {
    bytes: Vec<u8>,
    rows: usize,
    any: bool,
}

impl RowBits {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.rows = 0;
        self.any = false;
    }

    #[inline]
    pub(super) fn push(&mut self, set: bool) {
        if self.rows.is_multiple_of(8) {
            self.bytes.push(0);
        }
        if set {
            self.bytes[self.rows / 8] |= 1 << (self.rows % 8);
            self.any = true;
        }
        self.rows += 1;
    }

    #[inline]
    pub(super) fn get(&self, row: usize) -> bool {
        self.bytes[row / 8] >> (row % 8) & 1 == 1
    }

    /// How many of the first `rows` rows are set.
    pub(super) fn count(&self, rows: usize) -> usize {
        if !self.any {
            return 0;
        }
        let (whole, last) = self.bytes[..rows.div_ceil(8)].split_at(rows / 8);
        let last: u32 = last.iter().map(|byte| (byte & ((1 << (rows % 8)) - 1)).count_ones()).sum();
        last as usize + whole.iter().map(|byte| byte.count_ones() as usize).sum::<usize>()
    }

    /// Appends the bits of the first `rows` rows; those behind them in the last byte are zero.
    pub(super) fn write(&self, rows: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes[..rows.div_ceil(8)]);
        if let (Some(last), true) = (out.last_mut(), !rows.is_multiple_of(8)) {
            *last &= (1 << (rows % 8)) - 1;
        }
    }
}

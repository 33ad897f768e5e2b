//! How many rows there are, and where to find some of them.

/// Places in the files to start from, for samples: at first one every 64 KB, then rarer, so that there are never more than these.
const CHECKPOINTS_MAX: usize = 4_096;
const CHECKPOINT_BYTES: u64 = 64 * 1024;

/// Where a row starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checkpoint {
    pub(crate) row: u64,
    pub(crate) file: usize,
    pub(crate) offset: u64,
    pub(crate) line: u64,
}

/// The rows, and where to find some of them.
#[derive(Debug, Default)]
pub(crate) struct RowIndex {
    pub(crate) rows: u64,
    checkpoints: Vec<Checkpoint>,
    spacing: u64,
}

impl RowIndex {
    /// Counts a row and its place.
    pub(crate) fn add(&mut self, file: usize, offset: u64, line: u64) {
        let here = Checkpoint { row: self.rows, file, offset, line };
        self.rows += 1;
        let due =
            self.checkpoints.last().is_none_or(|last| last.file != file || here.offset - last.offset >= self.spacing.max(CHECKPOINT_BYTES));
        if due {
            self.checkpoints.push(here);
        }
        if self.checkpoints.len() > CHECKPOINTS_MAX {
            let mut keep = false;
            self.checkpoints.retain(|_| {
                keep = !keep;
                keep
            });
            self.spacing = 2 * self.spacing.max(CHECKPOINT_BYTES);
        }
    }

    /// The last place at or before a row.
    pub(crate) fn before(&self, row: u64) -> Option<Checkpoint> {
        let behind = self.checkpoints.partition_point(|c| c.row <= row);
        self.checkpoints.get(behind.checked_sub(1)?).copied()
    }
}

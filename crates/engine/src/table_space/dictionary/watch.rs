//! Rows that came into a table lately, and when they are to be looked at.
//!
//! Invariant: who inserts never waits here: when somebody else has the sample, the row is not in it.

use super::sample::SampledRecords;
use super::sampler::Sampler;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of rows that are kept, at most.
const RECENT_BYTES: usize = 1 << 20;
/// So many bytes of rows are waited for at least.
const WINDOW_MIN: u64 = 128 << 10;
/// Rows are looked at each time that so much of what the table takes has come.
const WINDOW_PART: u64 = 16;

/// What has come since the last look.
#[derive(Debug, Default)]
pub(in crate::table_space) struct Watch {
    /// Bytes of rows.
    bytes: AtomicU64,
    /// They are looked at when there are so many; 0: not known yet.
    due: AtomicU64,
    recent: Mutex<Recent>,
}

/// A sample of the rows that came.
#[derive(Debug)]
struct Recent(Sampler);

impl Default for Recent {
    fn default() -> Recent {
        Recent(Sampler::new(RECENT_BYTES))
    }
}

impl Watch {
    /// A row has come into a table that takes `table_bytes()`. Is it time to look?
    #[inline]
    pub(in crate::table_space) fn note(&self, record: &[u8], table_bytes: impl FnOnce() -> u64) -> bool {
        let bytes = self.bytes.fetch_add(record.len() as u64, Ordering::Relaxed) + record.len() as u64;
        if let Some(mut recent) = self.recent.try_lock() {
            recent.0.push(record);
        }
        let mut due = self.due.load(Ordering::Relaxed);
        if due == 0 {
            due = self.look_after(table_bytes());
        }
        bytes >= due && bytes - (record.len() as u64) < due
    }

    /// The next look is due when a part of these bytes has come; how much that is.
    fn look_after(&self, table_bytes: u64) -> u64 {
        let due = (table_bytes / WINDOW_PART).max(WINDOW_MIN);
        self.due.store(due, Ordering::Relaxed);
        due
    }

    /// Takes what has come: a sample of it, and how many bytes it was in all.
    pub(super) fn take(&self, table_bytes: u64) -> (SampledRecords, u64) {
        let recent = std::mem::take(&mut *self.recent.lock());
        let bytes = self.bytes.swap(0, Ordering::Relaxed);
        self.look_after(table_bytes);
        (recent.0.into_sample(), bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_all_that_came_is_kept_and_a_look_is_due_once() {
        let watch = Watch::default();
        let mut due = 0;
        for i in 0..100_000u32 {
            due += u32::from(watch.note(&[i as u8; 100], || 64 << 20));
        }
        assert_eq!(due, 1, "4 of 10 MB");
        let (sample, bytes) = watch.take(64 << 20);
        assert_eq!(bytes, 10_000_000);
        assert!((RECENT_BYTES / 3..=RECENT_BYTES).contains(&sample.bytes()), "{}", sample.bytes());
        // All kinds of rows are in it, the last ones too.
        assert!(sample.iter().filter(|record| record[0] >= 128).count() > sample.len() / 3);
        assert_eq!(watch.take(0).1, 0);
        assert!((0..2000).map(|_| watch.note(&[1; 100], || 0)).filter(|due| *due).count() == 1, "128 of 200 KB");
    }
}

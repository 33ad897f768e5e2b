//! What everybody may know about one transaction.
//!
//! Invariants:
//! - The commit word changes once: from 0 (active) to a timestamp or to `u64::MAX` (aborted). Timestamps are between these two.
//! - Once its commit is in the log it is never taken back, though others may not see it yet.
//! - One with a change that the log does not have stays active for good: others see what was before it.
//! - `first_lsn` is set once, by the first log record; `last_lsn` never goes back. 0 = none.

use pagefold_types::Rid;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

const ACTIVE: u64 = 0;
const ABORTED: u64 = u64::MAX;

/// A transaction, shared by its owner, the versions that it made, and checkpoints.
#[derive(Debug)]
pub struct TransactionState {
    id: u64,
    commit: AtomicU64,
    first_lsn: AtomicU64,
    last_lsn: AtomicU64,
    commit_logged: AtomicBool,
    /// A page has a change of it that the log does not have: it can neither be committed nor taken back.
    cut_short: AtomicBool,
    /// Rows with versions that it was the first to enter, by table.
    rows: Mutex<Vec<(u32, Rid)>>,
    /// Rows for which it keeps room on their pages, by table.
    kept: Mutex<Vec<(u32, Rid)>>,
    /// Rows that may go home when it has ended, by table.
    away: Mutex<BTreeMap<(u32, Rid), bool>>,
    /// Bytes of the log that are kept for taking it back.
    undo_bytes: AtomicU64,
    /// Read views that see its changes, and nothing that came after their snapshots.
    views: AtomicU32,
    /// It keeps one snapshot to its end, and may change rows by it.
    keeps_snapshot: AtomicBool,
    /// What the clock that ticks once a second had when it began, in milliseconds.
    begun_ms: u64,
}

impl TransactionState {
    pub(super) fn new(id: u64, begun_ms: u64) -> TransactionState {
        TransactionState { begun_ms, ..TransactionState::recovered(id, 0, 0) }
    }

    /// When it began, by the clock that ticks once a second.
    pub(super) fn begun_ms(&self) -> u64 {
        self.begun_ms
    }

    /// One that was running when the database came down, as the log has it.
    pub(crate) fn recovered(id: u64, first: u64, last: u64) -> TransactionState {
        TransactionState {
            id,
            commit: AtomicU64::new(ACTIVE),
            first_lsn: AtomicU64::new(first),
            last_lsn: AtomicU64::new(last),
            commit_logged: AtomicBool::new(false),
            cut_short: AtomicBool::new(false),
            rows: Mutex::default(),
            kept: Mutex::default(),
            away: Mutex::default(),
            undo_bytes: AtomicU64::new(0),
            views: AtomicU32::new(0),
            keeps_snapshot: AtomicBool::new(false),
            begun_ms: 0,
        }
    }

    /// Its number; never 0, never used again.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// When it was committed; `None` while it is active and after it was aborted.
    #[must_use]
    pub fn commit_timestamp(&self) -> Option<u64> {
        match self.commit.load(Ordering::Acquire) {
            ACTIVE | ABORTED => None,
            timestamp => Some(timestamp),
        }
    }

    /// Neither committed nor aborted.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.commit.load(Ordering::Acquire) == ACTIVE
    }

    /// Rolled back.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        self.commit.load(Ordering::Acquire) == ABORTED
    }

    /// Committed at or before `timestamp`.
    #[must_use]
    pub fn committed_by(&self, timestamp: u64) -> bool {
        // Active wraps to the largest value, aborted to the one before: neither is below a timestamp.
        self.commit.load(Ordering::Acquire).wrapping_sub(1) < timestamp
    }

    /// Start of its first log record, 0 when it has none.
    #[must_use]
    pub fn first_lsn(&self) -> u64 {
        self.first_lsn.load(Ordering::Acquire)
    }

    /// Start of its latest log record, 0 when it has none: where its undo begins.
    #[must_use]
    pub fn last_lsn(&self) -> u64 {
        self.last_lsn.load(Ordering::Acquire)
    }

    /// Notes a log record of this transaction that starts at `start`. Called in log order by the transaction's own thread.
    ///
    /// A checkpoint that reads both positions meanwhile may see the first without the latest; it reads the latest again from the log,
    /// since that record lies behind the position at which the checkpoint began.
    pub fn logged(&self, start: u64) {
        debug_assert!(start > self.last_lsn());
        if self.first_lsn.load(Ordering::Relaxed) == 0 {
            self.first_lsn.store(start, Ordering::Release);
        }
        self.last_lsn.store(start, Ordering::Release);
    }

    /// Notes that it keeps one snapshot to its end, and may change rows by it.
    pub(crate) fn note_keeps_snapshot(&self) {
        self.keeps_snapshot.store(true, Ordering::Relaxed);
    }

    /// Does it keep one snapshot, by which it may change rows?
    pub(crate) fn keeps_snapshot(&self) -> bool {
        self.keeps_snapshot.load(Ordering::Relaxed)
    }

    /// Notes that the record of its commit is in the log.
    pub(crate) fn note_commit_logged(&self) {
        self.commit_logged.store(true, Ordering::Release);
    }

    /// Whether the record of its commit is in the log, durable or not.
    #[must_use]
    pub fn is_commit_logged(&self) -> bool {
        self.commit_logged.load(Ordering::Acquire)
    }

    /// Notes that a page has a change of it which the log refused.
    pub(crate) fn note_cut_short(&self) {
        self.cut_short.store(true, Ordering::Release);
    }

    /// Whether a page has a change of it that the log does not have.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.cut_short.load(Ordering::Acquire)
    }

    /// Notes a row that has a version of this transaction now.
    pub(crate) fn note_row(&self, object: u32, rid: Rid) {
        self.rows.lock().push((object, rid));
    }

    /// The rows noted.
    pub(crate) fn take_rows(&self) -> Vec<(u32, Rid)> {
        std::mem::take(&mut *self.rows.lock())
    }

    /// A read view of it is taken: it is active.
    pub(crate) fn view_begins(&self) {
        self.views.fetch_add(1, Ordering::Release);
    }

    /// A read view of it is gone.
    pub(crate) fn view_ends(&self) {
        self.views.fetch_sub(1, Ordering::Release);
    }

    /// Is there a read view that sees its changes, but not those of others who have committed before or after it since?
    pub(super) fn has_views(&self) -> bool {
        self.views.load(Ordering::Acquire) > 0
    }

    /// Notes that so many bytes of the log more are kept for taking it back.
    pub(crate) fn note_undo_bytes(&self, bytes: u64) {
        self.undo_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The bytes of the log noted.
    pub(crate) fn take_undo_bytes(&self) -> u64 {
        self.undo_bytes.swap(0, Ordering::Relaxed)
    }

    /// Notes a row for which room is kept.
    pub(crate) fn note_kept(&self, object: u32, rid: Rid) {
        self.kept.lock().push((object, rid));
    }

    /// The rows noted for which room is kept.
    pub(crate) fn take_kept(&self) -> Vec<(u32, Rid)> {
        std::mem::take(&mut *self.kept.lock())
    }

    /// Notes a row that lies away from home, and may have room there when this has ended; and whether it has been long.
    pub(crate) fn note_away(&self, object: u32, rid: Rid, was_long: bool) {
        *self.away.lock().entry((object, rid)).or_default() |= was_long;
    }

    /// The rows noted, in the order of their pages, and whether they have been long.
    pub(crate) fn take_away(&self) -> BTreeMap<(u32, Rid), bool> {
        std::mem::take(&mut *self.away.lock())
    }

    pub(super) fn publish(&self, timestamp: u64) {
        debug_assert!(self.is_active() && timestamp != ACTIVE && timestamp != ABORTED);
        self.commit.store(timestamp, Ordering::Release);
    }

    pub(super) fn publish_abort(&self) {
        debug_assert!(self.is_active());
        self.commit.store(ABORTED, Ordering::Release);
    }
}

//! What is known of unique keys that many rows have had: the one row that may have such a key, noted by the commits of those who have looked at all.
//!
//! Invariants:
//! - the lock of a key is held by whoever asks for its note, or makes it. So a note stays true while the row changes: whoever gives the key to another row replaces it at his commit, before he gives the
//!   lock up;
//! - it says nothing to who has a snapshot of before that commit: for him other rows may have the key;
//! - there are few. One that is lost costs a look at all rows.

use pagefold_types::Rid;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Keys of an index.
const KEYS_MAX: usize = 1024;

/// The commit of a note, and the row that may have the key.
type Note = (u64, Option<Rid>);

/// The notes of an index.
#[derive(Debug, Default)]
pub(crate) struct KnownKeys {
    /// As long as there are none, nobody waits here.
    count: AtomicUsize,
    keys: Mutex<BTreeMap<Box<[u8]>, Note>>,
}

impl KnownKeys {
    /// The note of a key, whose lock the caller holds.
    #[inline]
    pub(crate) fn note(&self, key: &[u8]) -> Option<Note> {
        if self.count.load(Ordering::Acquire) == 0 { None } else { self.keys.lock().get(key).copied() }
    }

    /// After this commit no row but this one has the key, whose lock the caller holds.
    pub(crate) fn committed(&self, key: &[u8], commit: u64, row: Option<Rid>) {
        let mut keys = self.keys.lock();
        if let Some(note) = keys.get_mut(key) {
            *note = (commit, row);
            return;
        }
        if keys.len() >= KEYS_MAX {
            keys.clear();
        }
        keys.insert(key.into(), (commit, row));
        self.count.store(keys.len(), Ordering::Release);
    }
}

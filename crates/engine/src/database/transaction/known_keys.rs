//! What a transaction knows of unique keys that many rows have had: so that who deletes such a key and inserts it again does not look at all of these each time.
//!
//! A check of a unique key looks at every row that the index has an entry for: all but one are no more, and their entries stay while anybody may need them. When it has looked at many it is noted which
//! row, if any, has the key, and that all others do not have it. While the transaction holds the lock of the key nobody else gives it to a row, so this holds on: only the transaction itself changes
//! it, by giving the key to another row, and by taking changes back.
//!
//! Invariants:
//! - what is noted at a record of the transaction is so for as long as that record is not taken back. Then the note before it counts again, or, where there is none, the rows are looked at;
//! - the row noted may have lost the key: it is looked at;
//! - of a key that has a note, here or in the index, each entry that the transaction inserts is noted.

use crate::log::Lsn;
use pagefold_types::Rid;
use std::collections::BTreeMap;
use std::sync::Arc;

/// From so many entries on it is noted what was found.
pub(super) const ENTRIES_NOTED: usize = 8;

/// A row that may have a key; all others have not.
#[derive(Debug)]
struct Note {
    /// The transaction's last record then.
    at: Lsn,
    index: u32,
    key: Arc<[u8]>,
    row: Option<Rid>,
    /// The note of the same key before it.
    before: Option<usize>,
}

/// The notes of a transaction.
#[derive(Debug, Default)]
pub(super) struct KnownKeys {
    /// In the order of the log.
    notes: Vec<Note>,
    /// By index and key, the newest.
    newest: BTreeMap<u32, BTreeMap<Arc<[u8]>, usize>>,
}

impl KnownKeys {
    /// The row that may have a key, if that is known.
    pub(super) fn row(&self, index: u32, key: &[u8]) -> Option<Option<Rid>> {
        let newest = self.newest.get(&index)?.get(key)?;
        Some(self.notes.get(*newest)?.row)
    }

    /// At the transaction's record at `at` no row but this one has a key.
    pub(super) fn note(&mut self, at: Lsn, index: u32, key: &[u8], row: Option<Rid>) {
        let keys = self.newest.entry(index).or_default();
        let (key, before) = match keys.get_key_value(key) {
            Some((key, newest)) => (Arc::clone(key), Some(*newest)),
            None => (Arc::from(key), None),
        };
        if before.is_some_and(|before| self.notes[before].row == row) {
            return;
        }
        keys.insert(Arc::clone(&key), self.notes.len());
        self.notes.push(Note { at, index, key, row, before });
    }

    /// The transaction is taken back down to its record at `last`.
    pub(super) fn taken_back(&mut self, last: Lsn) {
        while let Some(note) = self.notes.pop_if(|note| note.at > last) {
            let Some(keys) = self.newest.get_mut(&note.index) else { continue };
            match note.before {
                Some(before) => _ = keys.insert(note.key, before),
                None => _ = keys.remove(&note.key),
            }
        }
    }

    /// What is known at last: index, key and row.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, &[u8], Option<Rid>)> {
        let newest = self.newest.iter().flat_map(|(index, keys)| keys.iter().map(move |(key, newest)| (*index, &**key, *newest)));
        newest.filter_map(|(index, key, newest)| Some((index, key, self.notes.get(newest)?.row)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_back_is_as_it_was_before() {
        let (mut known, row) = (KnownKeys::default(), |slot| Some(Rid::new(0, 1, slot)));
        known.note(10, 1, b"a", None);
        known.note(20, 1, b"a", row(2));
        known.note(30, 2, b"a", row(3));
        known.note(40, 1, b"a", row(4));
        assert_eq!([known.row(1, b"a"), known.row(2, b"a"), known.row(1, b"b")], [Some(row(4)), Some(row(3)), None]);
        known.taken_back(35);
        assert_eq!([known.row(1, b"a"), known.row(2, b"a")], [Some(row(2)), Some(row(3))]);
        known.note(50, 1, b"a", row(5));
        assert_eq!(known.all().collect::<Vec<_>>(), [(1, &b"a"[..], row(5)), (2, &b"a"[..], row(3))]);
        known.taken_back(10);
        assert_eq!([known.row(1, b"a"), known.row(2, b"a")], [Some(None), None]);
        known.taken_back(0);
        assert_eq!(known.row(1, b"a"), None);
        assert_eq!(known.all().count(), 0);
    }
}

//! Who holds which lock, for storages that keep it themselves.

use std::collections::BTreeMap;

use crate::storage::LockKind;

/// Locks by the number of the locked file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Held {
    /// How many share it; `None`: one has it alone.
    files: BTreeMap<u64, Option<u64>>,
}

impl Held {
    /// Takes a lock unless somebody has one that excludes it.
    pub(crate) fn take(&mut self, number: u64, kind: LockKind) -> bool {
        match (kind, self.files.get_mut(&number)) {
            (LockKind::Shared, Some(Some(holders))) => *holders += 1,
            (_, Some(_)) => return false,
            (LockKind::Shared, None) => drop(self.files.insert(number, Some(1))),
            (LockKind::Exclusive, None) => drop(self.files.insert(number, None)),
        }
        true
    }

    /// Gives back a lock that was taken, of whichever kind: both kinds are never held at once.
    pub(crate) fn give_back(&mut self, number: u64) {
        if let Some(Some(holders @ 2..)) = self.files.get_mut(&number) {
            *holders -= 1;
        } else {
            self.files.remove(&number);
        }
    }
}

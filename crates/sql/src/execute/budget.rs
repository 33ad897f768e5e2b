//! Memory of a statement, in two accounts: what operators keep that can be written to a file, and what cannot.
//!
//! Invariants:
//! - what can be written to a file is kept as long as both together have room, but for the least that each operator needs;
//! - what cannot does not suffer for that: it may be as much as all of it by itself. So a statement may take up to twice as much.

use super::Tuple;
use crate::{SqlError, SqlResult};
use pagefold_types::Value;
use std::cell::Cell;

/// Memory that a statement may take for rows it keeps.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    most: usize,
    /// Of what cannot be written to a file.
    kept: Cell<usize>,
    /// Of what can.
    shared: Cell<usize>,
}

impl Budget {
    pub(crate) fn new(most: usize) -> Budget {
        Budget { most, kept: Cell::new(0), shared: Cell::new(0) }
    }

    /// Charges what cannot be written to a file.
    pub(crate) fn take(&self, bytes: usize) -> SqlResult<()> {
        match self.kept.get().checked_add(bytes) {
            Some(kept) if kept <= self.most => {
                self.kept.set(kept);
                Ok(())
            }
            _ => Err(self.too_little()),
        }
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        self.kept.set(self.kept.get().saturating_sub(bytes));
    }

    /// What is kept that cannot be written to a file.
    pub(super) fn kept(&self) -> usize {
        self.kept.get()
    }

    /// What the statement may take.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Is there room for so much that can be written to a file?
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.taken().saturating_add(bytes) <= self.most
    }

    /// Charges what can be written to a file, in any case.
    pub(crate) fn share(&self, bytes: usize) {
        self.shared.set(self.shared.get().saturating_add(bytes));
    }

    pub(crate) fn give_share_back(&self, bytes: usize) {
        self.shared.set(self.shared.get().saturating_sub(bytes));
    }

    /// As it was before, but for what is kept on.
    pub(super) fn go_back_to(&self, before: &Budget, kept_on: usize) {
        self.kept.set(before.kept.get().saturating_add(kept_on));
        self.shared.set(before.shared.get());
    }

    fn too_little(&self) -> SqlError {
        let (number, unit) = if self.most < 1 << 20 { (self.most >> 10, "kB") } else { (self.most >> 20, "MB") };
        let message = format!("the statement needs more than the {number} {unit} of memory that work_mem allows");
        SqlError::new("53200", message).with_hint("SET work_mem = '256MB' allows more.")
    }

    /// Bytes of both accounts.
    pub(crate) fn taken(&self) -> usize {
        self.kept.get().saturating_add(self.shared.get())
    }
}

/// Bytes that a row takes in memory.
pub(crate) fn bytes_of(tuple: &[Value]) -> usize {
    let heap = |value: &Value| match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    size_of_val(tuple) + tuple.iter().map(heap).sum::<usize>() + size_of::<Tuple>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_to_a_file_does_not_suffer_for_what_can() {
        let budget = Budget::new(100);
        budget.share(150);
        assert!(!budget.has_room(0));
        budget.take(0).unwrap();
        budget.take(100).unwrap();
        assert_eq!(budget.take(1).unwrap_err().sqlstate(), "53200");
        assert_eq!(budget.take(usize::MAX).unwrap_err().sqlstate(), "53200");
        budget.give_share_back(150);
        assert!(budget.has_room(0) && !budget.has_room(1));
        budget.give_back(60);
        assert!(budget.has_room(60) && !budget.has_room(61));
        assert_eq!(budget.taken(), 40);
    }
}

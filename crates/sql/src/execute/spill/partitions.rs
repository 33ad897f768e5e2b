//! Rows in lists by the hash of a key: rows whose keys are equal come to the same list.
//!
//! Each level of partitions has hashes of its own, so a list that is divided again is divided evenly.

use super::{RowWriter, Rows};
use crate::SqlResult;
use crate::execute::Execution;
use pagefold_types::Value;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Lists of a level.
const PARTITIONS: usize = 16;

/// The list of a key.
fn number_of(key: &[u8], level: u32) -> usize {
    let hash = xxh3_64_with_seed(key, u64::from(level));
    usize::try_from(hash % PARTITIONS as u64).unwrap_or(0)
}

/// Takes rows, by their keys.
#[derive(Debug)]
pub(crate) struct Partitions {
    level: u32,
    lists: Vec<RowWriter>,
}

impl Partitions {
    pub(crate) fn new(execution: &Execution, level: u32) -> Partitions {
        Partitions { level, lists: (0..PARTITIONS).map(|_| RowWriter::new(execution)).collect() }
    }

    pub(crate) fn push(&mut self, execution: &Execution, key: &[u8], row: &[Value]) -> SqlResult<()> {
        self.lists[number_of(key, self.level)].push(execution, row)
    }

    /// The lists, in their order.
    pub(crate) fn finish(self, execution: &Execution) -> SqlResult<Vec<Rows>> {
        self.lists.into_iter().map(|list| list.finish(execution)).collect()
    }
}

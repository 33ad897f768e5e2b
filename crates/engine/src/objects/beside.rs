//! What the catalog's data set does not say yet: every checkpoint names it, until the catalog is written anew: when it is much, and when the database is closed.
//!
//! Invariant: catalog and checkpoint together say what there was at the checkpoint's cut, and how often the header page of each data set has been written.

use pagefold_format::log::{Checkpoint, DataSetState};
use std::collections::{BTreeMap, BTreeSet};

/// So many objects and data sets at least may be beside the catalog.
const LEAST: usize = 64;
/// One of so many objects may be: so what writing the catalog costs is shared by as many changes.
const PART: usize = 8;

/// Objects and data sets that are not as the catalog says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beside {
    /// Those that came, went or were altered since it was written.
    pub(crate) objects: BTreeSet<u32>,
    /// Those whose header page was written since, or that came, as the last checkpoint had them.
    pub(crate) data_sets: BTreeMap<u32, DataSetState>,
}

impl Beside {
    /// What a checkpoint says beside its catalog.
    pub(crate) fn of(checkpoint: &Checkpoint) -> Beside {
        Beside {
            objects: checkpoint.committed.iter().map(|(object_id, _)| *object_id).collect(),
            data_sets: checkpoint.data_sets.iter().map(|state| (state.file_id, *state)).collect(),
        }
    }

    /// This object came, went or was altered.
    pub(crate) fn defined(&mut self, object_id: u32) {
        self.objects.insert(object_id);
    }

    /// Does the catalog say everything?
    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.data_sets.is_empty()
    }

    /// Is it so much that the catalog is to be written anew, of so many objects?
    pub(crate) fn is_much(&self, objects: usize) -> bool {
        let most = LEAST.max(objects / PART);
        self.objects.len() > most || self.data_sets.len() > 2 * most
    }

    /// Puts back what a checkpoint has taken, beside what came meanwhile.
    pub(crate) fn put_back(&mut self, taken: Beside) {
        self.objects.extend(taken.objects);
        for (file_id, state) in taken.data_sets {
            self.data_sets.entry(file_id).or_insert(state);
        }
    }
}

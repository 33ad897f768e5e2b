//! The state of the simulated disk.
//!
//! Invariants:
//!
//! - A file's `current` content is its `durable` content with the `pending` changes applied in order (but for what a failed sync with
//!   [`Fault::SyncDropsWritesFromDiskOnly`](super::Fault) left in the cache only).
//! - The tree of names is the durable tree with the pending changes of names applied in order.
//! - A change of a name waits for the sync of each directory that it touches. When it becomes durable, so do all earlier changes of the
//!   same names: a directory never goes through states that it was not in.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::call::{Call, CallKind};
use super::plan::Plan;
use crate::held::Held;
use crate::sparse::SparseBytes;
use crate::tree::{Change, Node, Place, Tree};

/// The simulated disk's properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultOptions {
    /// Decides what a crash in the middle of a call leaves under [`CrashPolicy::KeepAll`](super::CrashPolicy).
    pub seed: u64,
    /// What the disk writes atomically: a power of two up to 4096, usually 512 or 4096.
    pub sector_bytes: u32,
    /// Alignment of files opened for direct I/O.
    pub alignment: usize,
    /// Bytes that all files together may take, in blocks of 4 KB.
    pub capacity: Option<u64>,
    /// How many calls the log keeps: the first ones.
    pub log_calls_max: usize,
}

impl Default for FaultOptions {
    fn default() -> Self {
        Self { seed: 0, sector_bytes: 512, alignment: 1, capacity: None, log_calls_max: 1 << 20 }
    }
}

/// A change of a file's content or length.
#[derive(Debug, Clone)]
pub(super) enum FileChange {
    Write { offset: u64, data: Box<[u8]> },
    SetLen(u64),
    Allocate { offset: u64, len: u64 },
    PunchHole { offset: u64, len: u64 },
}

impl FileChange {
    pub(super) fn apply(&self, content: &mut SparseBytes) {
        match self {
            Self::Write { offset, data } => content.write(data, *offset),
            Self::SetLen(len) => content.set_len(*len),
            Self::Allocate { offset, len } => content.allocate(*offset, *len),
            Self::PunchHole { offset, len } => content.punch_hole(*offset, *len),
        }
    }

    /// The length of the file afterwards.
    pub(super) fn len_after(&self, len: u64) -> u64 {
        match self {
            Self::Write { offset, data } if !data.is_empty() => len.max(offset + data.len() as u64),
            Self::Allocate { offset, len: allocated } if *allocated > 0 => len.max(offset + allocated),
            Self::SetLen(len) => *len,
            Self::Write { .. } | Self::Allocate { .. } | Self::PunchHole { .. } => len,
        }
    }

    fn bytes_to_take(&self, content: &SparseBytes) -> u64 {
        match self {
            Self::Write { offset, data } => content.bytes_to_take(*offset, data.len() as u64),
            Self::Allocate { offset, len } => content.bytes_to_take(*offset, *len),
            Self::SetLen(_) | Self::PunchHole { .. } => 0,
        }
    }
}

/// Something that waits for a sync.
#[derive(Debug, Clone)]
pub(super) struct Pending<T> {
    pub(super) change: T,
    /// The machine stopped in the middle of it.
    pub(super) in_flight: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Inode {
    pub(super) durable: SparseBytes,
    pub(super) current: SparseBytes,
    pub(super) pending: Vec<Pending<FileChange>>,
    pub(super) handles: u64,
}

/// A change of names and the directories whose sync it waits for.
#[derive(Debug, Clone)]
pub(super) struct NameChange {
    pub(super) change: Change,
    unsynced: BTreeSet<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Disk {
    pub(super) options: FaultOptions,
    pub(super) tree: Tree,
    pub(super) durable_tree: Tree,
    pub(super) names: Vec<Pending<NameChange>>,
    pub(super) inodes: BTreeMap<u64, Inode>,
    pub(super) next_number: u64,
    pub(super) locked: Held,
    pub(super) crashed: bool,
    pub(super) plan: Plan,
    pub(super) calls: u64,
    pub(super) calls_by_kind: [u64; CallKind::ALL.len()],
    pub(super) log: Vec<Call>,
}

/// Marks, from the last to the first, the changes that `wanted` picks and every earlier one that touches a name of a marked one.
pub(super) fn with_predecessors<'a>(
    changes: impl DoubleEndedIterator<Item = &'a Change> + ExactSizeIterator,
    mut wanted: impl FnMut(usize) -> bool,
) -> Vec<bool> {
    let mut marked = vec![false; changes.len()];
    let mut places: BTreeSet<&Place> = BTreeSet::new();
    for (index, change) in changes.enumerate().rev() {
        // Asked in any case, so that a random choice draws the same numbers whatever came before.
        let is_wanted = wanted(index);
        if is_wanted || change.places().any(|place| places.contains(place)) {
            marked[index] = true;
            places.extend(change.places());
        }
    }
    marked
}

impl Disk {
    pub(super) fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// Bytes that the files which the program can see take.
    pub(super) fn taken_bytes(&self) -> u64 {
        let named = self.tree.files();
        let visible = self.inodes.iter().filter(|(number, inode)| inode.handles > 0 || named.contains(number));
        visible.map(|(_, inode)| inode.current.taken_bytes()).sum()
    }

    pub(super) fn inode(&mut self, number: u64) -> io::Result<&mut Inode> {
        self.inodes.get_mut(&number).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Changes a file, as far as the program sees; the disk has it after a sync.
    pub(super) fn change_file(&mut self, number: u64, change: FileChange, in_flight: bool) -> io::Result<()> {
        if let Some(capacity) = self.options.capacity {
            let to_take = change.bytes_to_take(&self.inode(number)?.current);
            if to_take > 0 && self.taken_bytes().saturating_add(to_take) > capacity {
                return Err(rustix::io::Errno::NOSPC.into());
            }
        }
        let inode = self.inode(number)?;
        change.apply(&mut inode.current);
        inode.pending.push(Pending { change, in_flight });
        Ok(())
    }

    /// Makes a file's changes durable.
    pub(super) fn sync_file(&mut self, number: u64) -> io::Result<()> {
        let inode = self.inode(number)?;
        for pending in inode.pending.drain(..) {
            pending.change.apply(&mut inode.durable);
        }
        Ok(())
    }

    /// Loses a file's changes since the last sync.
    pub(super) fn drop_pending(&mut self, number: u64, from_disk_only: bool) -> io::Result<()> {
        let inode = self.inode(number)?;
        inode.pending.clear();
        if !from_disk_only {
            inode.current = inode.durable.clone();
        }
        Ok(())
    }

    /// Changes names, as far as the program sees.
    pub(super) fn change_names(&mut self, change: Change, in_flight: bool) {
        self.tree.apply(&change);
        let unsynced = change.places().map(|place| place.directory).collect();
        self.names.push(Pending { change: NameChange { change, unsynced }, in_flight });
    }

    /// Makes the changes of names in a directory durable.
    pub(super) fn sync_directory(&mut self, directory: u64) {
        for pending in &mut self.names {
            pending.change.unsynced.remove(&directory);
        }
        let synced = |index: usize| self.names[index].change.unsynced.is_empty();
        let durable = with_predecessors(self.names.iter().map(|pending| &pending.change.change), synced);
        let mut marks = durable.into_iter();
        let tree = &mut self.durable_tree;
        self.names.retain(|pending| {
            let is_durable = marks.next() == Some(true);
            if is_durable {
                tree.apply(&pending.change.change);
            }
            !is_durable
        });
        self.drop_unnamed();
    }

    /// Forgets files that have no name, no handle and no way back after a crash.
    fn drop_unnamed(&mut self) {
        let mut kept = self.tree.files();
        kept.append(&mut self.durable_tree.files());
        kept.extend(self.names.iter().filter_map(|pending| match pending.change.change {
            Change::Link { node: Node::File(number), .. } | Change::Move { node: Node::File(number), .. } => Some(number),
            _ => None,
        }));
        self.inodes.retain(|number, inode| inode.handles > 0 || kept.contains(number));
    }
}

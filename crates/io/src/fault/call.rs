//! What is counted and logged: one call at the seam each.

use std::path::Path;
use std::sync::Arc;

/// What a call does. `exists`, `len`, `alignment` and `path` are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum CallKind {
    /// `open` of a file that is there.
    Open,
    /// `open` or `lock` that creates the file.
    Create,
    /// `lock` of a file that is there.
    Lock,
    /// `list`.
    List,
    /// `read_at`.
    Read,
    /// `write_at`.
    Write,
    /// `sync`.
    Sync,
    /// `set_len`.
    SetLen,
    /// `allocate`.
    Allocate,
    /// `punch_hole`.
    PunchHole,
    /// `remove`.
    Remove,
    /// `rename`.
    Rename,
    /// `create_directory`.
    CreateDirectory,
    /// `remove_directory`.
    RemoveDirectory,
    /// `sync_directory`.
    SyncDirectory,
}

impl CallKind {
    /// All kinds, in order.
    pub const ALL: [Self; 15] = [
        Self::Open,
        Self::Create,
        Self::Lock,
        Self::List,
        Self::Read,
        Self::Write,
        Self::Sync,
        Self::SetLen,
        Self::Allocate,
        Self::PunchHole,
        Self::Remove,
        Self::Rename,
        Self::CreateDirectory,
        Self::RemoveDirectory,
        Self::SyncDirectory,
    ];

    /// Whether a crash just before the call and one just after can leave different disks. A test that crashes at every call may skip the
    /// others.
    #[must_use]
    pub fn changes_disk(self) -> bool {
        !matches!(self, Self::Open | Self::Lock | Self::List | Self::Read)
    }

    /// Whether the call can run out of space.
    #[must_use]
    pub fn takes_space(self) -> bool {
        matches!(self, Self::Create | Self::Write | Self::Allocate | Self::CreateDirectory)
    }
}

/// A call at the seam.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its number, from 0 for the first call on this storage.
    pub index: u64,
    /// What it does.
    pub kind: CallKind,
    /// The file or directory; for a rename, where it goes from. A file goes by the path it was opened under.
    pub path: Arc<Path>,
    /// First byte, where there is one; for `set_len`, the new length.
    pub offset: u64,
    /// Bytes, where there are some.
    pub len: u64,
}

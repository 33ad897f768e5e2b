//! Which call goes wrong, and how.

use std::io;
use std::path::Path;

use rustix::io::Errno;

use super::call::{Call, CallKind};

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The device reports an I/O error (EIO).
    Io,
    /// No space is left (ENOSPC). Only calls that take space fail that way.
    NoSpace,
    /// Any other kind.
    Kind(io::ErrorKind),
}

impl Failure {
    pub(super) fn error(self) -> io::Error {
        match self {
            Self::Io => Errno::IO.into(),
            Self::NoSpace => Errno::NOSPC.into(),
            Self::Kind(kind) => kind.into(),
        }
    }
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The machine stops in the middle of the call: it fails, with part of its effect perhaps on the disk, and so do all calls after it.
    Crash,
    /// The call fails and does nothing. (A sync: the unsynced writes stay unsynced.)
    Error(Failure),
    /// A read delivers at most so many bytes.
    ShortRead(usize),
    /// A write fails after it has written so many bytes.
    ShortWrite(usize, Failure),
    /// A sync fails with EIO, and the file's unsynced writes are gone: reads see the old content.
    SyncDropsWrites,
    /// A sync fails with EIO, and the file's unsynced writes never reach the disk; reads see them all the same, and the next sync reports
    /// success. This is what Linux does, whose cache counts a page as clean after one failed write.
    SyncDropsWritesFromDiskOnly,
    /// A sync, of a file or directory, reports success and does nothing.
    LoseSync,
    /// A write reports success and does nothing.
    LoseWrite,
    /// A write reports success and goes to this offset of the same file instead.
    MisdirectWrite(u64),
    /// One bit of what a read delivers or a write stores is wrong: the bit with this number, modulo the bits there are.
    FlipBit(u64),
}

impl Fault {
    fn concerns(self, kind: CallKind) -> bool {
        match self {
            Self::Crash => true,
            Self::Error(failure) => failure != Failure::NoSpace || kind.takes_space(),
            Self::ShortRead(_) => kind == CallKind::Read,
            Self::ShortWrite(..) | Self::LoseWrite | Self::MisdirectWrite(_) => kind == CallKind::Write,
            Self::SyncDropsWrites | Self::SyncDropsWritesFromDiskOnly => kind == CallKind::Sync,
            Self::LoseSync => matches!(kind, CallKind::Sync | CallKind::SyncDirectory),
            Self::FlipBit(_) => matches!(kind, CallKind::Read | CallKind::Write),
        }
    }
}

/// How often a fault happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Repeat {
    /// At one call.
    #[default]
    Once,
    /// At that call and all later ones that match.
    Forever,
}

/// Which call a fault waits for: the first that the fault concerns (a read fault a read, and so on), that is of one of the kinds and on
/// one of the paths, and that comes at `from_call` or later, after `skip` such calls were let through.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trigger {
    /// Index of the first call that counts, from 0.
    pub from_call: u64,
    /// Kinds that count; all when empty.
    pub kinds: Vec<CallKind>,
    /// Paths that count: those that contain this text; all when empty.
    pub path_contains: String,
    /// Matching calls to let through first.
    pub skip: u64,
    /// Once or from then on.
    pub repeat: Repeat,
}

impl Trigger {
    /// The first call that the fault concerns at or after the call with this index.
    #[must_use]
    pub fn at(from_call: u64) -> Self {
        Self { from_call, ..Self::default() }
    }

    /// A call of this kind, after `skip` others.
    #[must_use]
    pub fn kind(kind: CallKind, skip: u64) -> Self {
        Self { kinds: vec![kind], skip, ..Self::default() }
    }

    /// Only on paths that contain this text.
    #[must_use]
    pub fn on_path(mut self, text: &str) -> Self {
        self.path_contains = text.to_owned();
        self
    }

    /// From then on, not once.
    #[must_use]
    pub fn forever(mut self) -> Self {
        self.repeat = Repeat::Forever;
        self
    }

    fn matches(&self, call: &Call) -> bool {
        let path_matches = |path: &Path| path.to_string_lossy().contains(&self.path_contains);
        call.index >= self.from_call && (self.kinds.is_empty() || self.kinds.contains(&call.kind)) && path_matches(&call.path)
    }
}

#[derive(Debug, Clone)]
struct Entry {
    trigger: Trigger,
    fault: Fault,
    to_skip: u64,
    spent: bool,
}

/// The faults that wait for their calls.
#[derive(Debug, Clone, Default)]
pub(super) struct Plan {
    entries: Vec<Entry>,
}

impl Plan {
    pub(super) fn add(&mut self, trigger: Trigger, fault: Fault) {
        self.entries.push(Entry { to_skip: trigger.skip, trigger, fault, spent: false });
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// The fault of this call. Of several the crash comes first, then the one added first.
    pub(super) fn decide(&mut self, call: &Call) -> Option<Fault> {
        let mut decided = None;
        for entry in &mut self.entries {
            if entry.spent || !entry.fault.concerns(call.kind) || !entry.trigger.matches(call) {
                continue;
            }
            if entry.to_skip > 0 {
                entry.to_skip -= 1;
            } else if decided.is_none() || entry.fault == Fault::Crash {
                entry.spent = entry.trigger.repeat == Repeat::Once;
                decided = Some(entry.fault);
            }
        }
        decided
    }
}

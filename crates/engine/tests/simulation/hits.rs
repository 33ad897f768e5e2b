//! What the recovery of a disk image meets, by its log and its pages.

use pagefold_engine::LOG_DIRECTORY;
use pagefold_engine::database::{read_checkpoint, read_control};
use pagefold_engine::log::LogReader;
use pagefold_format::data::{DataOp, StoredKind};
use pagefold_format::index::ops::{LeafOp, NonLeafOp};
use pagefold_format::log::{Action, Change, Commit, RecordKind, Role, next_change};
use pagefold_format::op::PageOp;
use pagefold_format::page;
use pagefold_format::wire::Reader;
use pagefold_io::{FaultStorage, OpenOptions, Storage, read_exact_at};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Kinds of work behind the last checkpoint of an image.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hits {
    /// A page on disk was last changed by a transaction without an end.
    pub(crate) stolen: bool,
    /// A leaf or non-leaf page was split.
    pub(crate) split: bool,
    /// Pages of an index were merged into one fewer.
    pub(crate) merged: bool,
    /// An empty leaf was taken out.
    pub(crate) unlinked: bool,
    /// Three leaves or more were merged into one fewer.
    pub(crate) spread: bool,
    /// A full leaf gave entries to a neighbour.
    pub(crate) levelled: bool,
    /// A row went to another page.
    pub(crate) moved: bool,
    /// A page by column was rebuilt.
    pub(crate) rebuilt: bool,
    /// A transaction has no end.
    pub(crate) unfinished: bool,
}

impl Hits {
    /// Of an image whose log is as recovery would find it; nothing when the database has none yet, or its log is cut short.
    pub(crate) fn of(image: &FaultStorage) -> Hits {
        Hits::read(image).unwrap_or_default()
    }

    fn read(image: &FaultStorage) -> Option<Hits> {
        let directory = Path::new("db");
        let control = read_control(image, directory).ok()?.current;
        let (checkpoint, _) = read_checkpoint(image, directory, control.log_id, control.checkpoint).ok()?;
        let mut reader = LogReader::open(image, &directory.join(LOG_DIRECTORY), control.log_id, checkpoint.redo, 0).ok()?;
        let mut hits = Hits::default();
        // Ends of the records of each transaction without an end.
        let mut running: BTreeMap<u64, BTreeSet<u64>> = checkpoint.transactions.iter().map(|t| (t.id, BTreeSet::new())).collect();
        while let Some(record) = reader.next().ok()? {
            match RecordKind::from_u8(record.kind) {
                Some(RecordKind::Action) => {
                    let action = Action::decode(record.body).ok()?;
                    if let Role::Undoable { transaction, .. } | Role::Compensation { transaction, .. } = action.role {
                        running.entry(transaction).or_default().insert(record.end);
                    }
                    hits.add_changes(action.changes)?;
                }
                Some(RecordKind::Commit) => drop(running.remove(&Commit::decode(record.body).ok()?.transaction)),
                Some(RecordKind::RolledBack) => drop(running.remove(&Reader::new(record.body).varint().ok()?)),
                _ => {}
            }
        }
        hits.unfinished = !running.is_empty();
        let ends: BTreeSet<u64> = running.into_values().flatten().collect();
        hits.stolen = !ends.is_empty() && page_lsns(image)?.iter().any(|lsn| ends.contains(lsn));
        Some(hits)
    }

    fn add_changes(&mut self, changes: &[u8]) -> Option<()> {
        let mut reader = Reader::new(changes);
        let (mut removed, mut replaced, mut copied, mut above) = (false, false, false, false);
        while !reader.is_empty() {
            let (_, _, Change::Page(op)) = next_change(&mut reader).ok()? else { continue };
            match op {
                PageOp::NonLeaf(NonLeafOp::Insert { .. }) => self.split = true,
                PageOp::NonLeaf(NonLeafOp::Remove { .. }) => removed = true,
                PageOp::NonLeaf(NonLeafOp::Replace { .. }) => replaced = true,
                PageOp::NonLeaf(NonLeafOp::Append { .. }) => above = true,
                PageOp::Leaf(LeafOp::Append { .. } | LeafOp::Prepend { .. }) => copied = true,
                PageOp::Data(DataOp::Insert { kind: StoredKind::Special, .. }) => self.moved = true,
                PageOp::Data(DataOp::Rebuild(_)) => self.rebuilt = true,
                _ => {}
            }
        }
        self.merged |= removed;
        self.unlinked |= removed && !copied && !replaced && !above;
        self.spread |= removed && replaced && copied;
        self.levelled |= replaced && copied && !removed;
        Some(())
    }
}

/// The LSNs of all pages on disk.
fn page_lsns(image: &FaultStorage) -> Option<Vec<u64>> {
    let mut lsns = Vec::new();
    for path in image.list(Path::new("db/data")).ok()? {
        let file = image.open(&path, &OpenOptions::read_only()).ok()?;
        let mut bytes = vec![0; file.len().ok()? as usize];
        read_exact_at(file.as_ref(), &mut bytes, 0).ok()?;
        let page_bytes = u32::from_le_bytes(bytes.get(52..56)?.try_into().ok()?) as usize;
        lsns.extend(bytes.chunks_exact(page_bytes.max(page::HEADER_BYTES)).map(page::lsn));
    }
    Some(lsns)
}

//! Analysis and redo in one pass over the log.
//!
//! Invariants:
//! - history is repeated: actions of transactions that will be taken back are redone, too;
//! - a page op is applied when the page's LSN is below the end of its record; a page that a record formats is made anew without a look at what is on disk, since the log has
//!   everything that follows;
//! - which pages are in use, roots and dictionaries come out right because all their changes from the checkpoint on are applied in order, whatever the map on disk has of them; counts because a header
//!   says up to which LSN it has them.

use super::definitions::Definitions;
use super::leftovers::Leftovers;
use crate::data_set::{DataSet, DataSetAttributes};
use crate::log::LogReader;
use crate::pool::{BufferManager, MiniTransaction};
use crate::{Error, Result};
use pagefold_format::data::DataOp;
use pagefold_format::index::ops::{LeafOp, NonLeafOp};
use pagefold_format::log::{
    Action, Change, Checkpoint, CheckpointLeftover, Commit, DataSetOp, Leftover, Lsn, RecordKind, Role, RunningTransaction, next_change,
};
use pagefold_format::op::PageOp;
use pagefold_format::wire::Reader;
use pagefold_format::{FormatError, page};
use pagefold_types::Rid;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Data sets by file id.
pub(crate) type DataSets = BTreeMap<u32, Arc<DataSet>>;

/// What the log said.
#[derive(Debug, Default)]
pub(crate) struct Redone {
    /// Transactions without an end, by id.
    pub(crate) losers: BTreeMap<u64, RunningTransaction>,
    /// The lowest transaction id never used.
    pub(crate) next_transaction: u64,
    /// End of the log.
    pub(crate) end: Lsn,
    /// Records that changed something or ended a transaction.
    pub(crate) records: u64,
    /// Pages that a record named, by file id.
    pub(crate) pages: BTreeMap<u32, BTreeSet<u32>>,
    /// The latest time of a commit, in nanoseconds since 1970-01-01 UTC.
    pub(crate) last_commit_ns: u64,
    /// What transactions may have left.
    pub(crate) leftovers: Leftovers,
    /// What the checkpoint has of running transactions, by transaction and start of its record before.
    listed: HashMap<(u64, Lsn), Leftover>,
}

/// Redoes what follows a checkpoint. Data sets that were added since come into `data_sets`.
///
/// # Errors
/// When the log is damaged, or a page that it does not make anew cannot be read.
pub(crate) fn redo(
    reader: &mut LogReader,
    checkpoint: &Checkpoint,
    data_sets: &mut DataSets,
    manager: &BufferManager,
    definitions: &mut Definitions,
) -> Result<Redone> {
    let mut redone = Redone {
        losers: checkpoint.transactions.iter().map(|t| (t.id, *t)).collect(),
        next_transaction: checkpoint.next_transaction,
        leftovers: Leftovers::of(&checkpoint.leftovers),
        // A transaction enters what it leaves before its record is in the log; a checkpoint may come in between.
        listed: checkpoint.leftovers.iter().filter(|l| l.transaction != 0).map(|l| ((l.transaction, l.after), l.left.clone())).collect(),
        ..Redone::default()
    };
    // Pages of the record at hand that had not seen it: all its ops are applied, though the first one stamps the page.
    let mut redoing: Vec<(u32, u32)> = Vec::new();
    while let Some(record) = reader.next()? {
        let damaged = |e: FormatError| Error::Damaged { path: "log".into(), reason: format!("the record at {}: {e}", record.start) };
        match RecordKind::from_u8(record.kind) {
            Some(RecordKind::Action) => {
                let action = Action::decode(record.body).map_err(damaged)?;
                redone.records += 1;
                redone.note_transaction(&action.role, record.start);
                definitions.follow(&action.role, data_sets)?;
                let mut changes = Reader::new(action.changes);
                redoing.clear();
                while !changes.is_empty() {
                    let (file_id, number, change) = next_change(&mut changes).map_err(damaged)?;
                    if let Change::DataSet(DataSetOp::Partition { object_id, partition }) = change {
                        // A table that nobody names was dropped later.
                        let table = definitions.table(object_id, data_sets)?;
                        let added = table.map(|table| table.redo_partition(file_id, partition)).transpose()?.flatten();
                        data_sets.extend(added.map(|data_set| (file_id, data_set)));
                        continue;
                    }
                    // One that nobody names was dropped before the checkpoint; one that is missing or broken, later.
                    let found = definitions.data_set(file_id, data_sets)?;
                    let Some(data_set) = found.filter(|data_set| !data_set.is_poisoned()) else { continue };
                    let redo = match change {
                        Change::DataSet(DataSetOp::Free) => {
                            let DataSetAttributes { object_id, partition, .. } = data_set.attributes;
                            redone.leftovers.forget_large_value(object_id, partition, number);
                            redo_data_set(&data_set, number, DataSetOp::Free, record.end)
                        }
                        Change::Page(op) => {
                            let known = redoing.contains(&(file_id, number));
                            redone.pages.entry(file_id).or_default().insert(number);
                            redo_page(manager, &data_set, number, op, (record.end, known)).map(|applied| {
                                if applied && !known {
                                    redoing.push((file_id, number));
                                }
                            })
                        }
                        Change::DataSet(DataSetOp::GhostGone { slot }) => {
                            let DataSetAttributes { object_id, partition, .. } = data_set.attributes;
                            redone.leftovers.forget_ghost(object_id, Rid::new(partition, number, slot));
                            Ok(())
                        }
                        Change::DataSet(op) => redo_data_set(&data_set, number, op, record.end),
                    };
                    if let Err(error) = redo {
                        definitions.broken(data_set, error);
                    }
                }
            }
            Some(RecordKind::Commit) => {
                let commit = Commit::decode(record.body).map_err(damaged)?;
                definitions.committed(commit.transaction, data_sets)?;
                redone.losers.remove(&commit.transaction);
                redone.last_commit_ns = redone.last_commit_ns.max(commit.unix_time_ns);
                redone.leftovers.committed(commit.transaction);
                redone.records += 1;
            }
            Some(RecordKind::RolledBack) => {
                let id = Reader::new(record.body).varint().map_err(damaged)?;
                definitions.taken_back(id, 0, data_sets);
                redone.losers.remove(&id);
                redone.records += 1;
            }
            Some(RecordKind::Checkpoint) => {}
            None => return Err(damaged(FormatError::new(format!("unknown kind {}", record.kind)))),
        }
    }
    redone.end = reader.end();
    Ok(redone)
}

impl Redone {
    fn note_transaction(&mut self, role: &Role<'_>, start: Lsn) {
        let (Role::Undoable { transaction: id, .. } | Role::Compensation { transaction: id, .. }) = *role else { return };
        self.losers.entry(id).or_insert(RunningTransaction { id, first: start, last: start }).last = start;
        self.next_transaction = self.next_transaction.max(id + 1);
        match *role {
            Role::Undoable { previous, undo, .. } => {
                let left = undo.leaves().filter(|left| self.listed.get(&(id, previous)) != Some(left));
                if let Some(left) = left {
                    self.leftovers.push(CheckpointLeftover { transaction: id, after: previous, left });
                }
            }
            // What was taken back leaves nothing.
            Role::Compensation { next, .. } => self.leftovers.taken_back(id, next),
            Role::Structure => {}
        }
    }
}

/// Applies an op when the page has not seen its record, or is being brought to it (`known`). Did it?
fn redo_page(manager: &BufferManager, data_set: &DataSet, number: u32, op: PageOp<'_>, (end, known): (Lsn, bool)) -> Result<bool> {
    let mut mtr = MiniTransaction::begin(manager);
    let leaf = match op {
        PageOp::Image(_) | PageOp::Data(DataOp::Format { .. }) | PageOp::Leaf(LeafOp::Format { .. } | LeafOp::FormatPrefix { .. }) => {
            Some(true)
        }
        PageOp::NonLeaf(NonLeafOp::Format { .. }) => Some(false),
        _ => None,
    };
    let handle = match leaf {
        // A page that was never taken is not made: the record that takes it comes before.
        Some(_) if number >= data_set.page_count() => return Err(data_set.corrupt(number, "the log formats a page that it has not taken")),
        Some(leaf) => {
            // The next write must not have the counter of what is there now.
            data_set.see_write_counter(number);
            mtr.adopt_fresh(manager.create(None, data_set, number, leaf)?)
        }
        None => mtr.latch(data_set, number)?,
    };
    if leaf.is_none() && !known && page::lsn(mtr.bytes(handle)) >= end {
        return Ok(false);
    }
    mtr.apply(handle, op)?;
    if page::page_number(mtr.bytes(handle)) != number {
        return Err(data_set.corrupt(number, format!("the log makes it page {}", page::page_number(mtr.bytes(handle)))));
    }
    mtr.redone(end);
    Ok(true)
}

fn redo_data_set(data_set: &DataSet, page: u32, op: DataSetOp, end: Lsn) -> Result<()> {
    match op {
        DataSetOp::Allocate { class } => data_set.redo_space(page, Some(class)),
        DataSetOp::Free => data_set.redo_space(page, None),
        DataSetOp::Count(_) if end <= data_set.header_lsn() => Ok(()),
        DataSetOp::Dictionary { version, .. } if !data_set.has_room_for_dictionary(version) => {
            Err(data_set.corrupt(page, format!("the log adds dictionary version {version} to as many as there can be")))
        }
        other => {
            data_set.apply(page, other);
            Ok(())
        }
    }
}

//! Serializable snapshot isolation: Cahill, Röhm, Fekete 2008, with the refinements of Ports and Grittner 2012 (commit order, read-only
//! transactions, summaries of committed ones).
//!
//! A transaction that read a state from before another one's change depends on it: an edge reader -> writer. A history that is not
//! serializable has `in -> pivot -> out` among concurrent transactions (`in` and `out` may be the same), where `out` is the first of the
//! whole cycle to commit. So one of the three is made to fail as soon as such a structure is complete and its `out` has committed or is
//! about to.
//!
//! Invariants:
//! - Callers mark before they read and check after they have written: a reader calls `on_read_..` under the latch under which it reads (for
//!   a range: before its first leaf), a writer calls `on_write_row` / `on_insert_key` under the latch under which it changes. So of two
//!   transactions that meet, one sees the other's mark or the other's version.
//! - From [`Serializable::before_commit`] on a transaction is prepared: it can no longer be made to fail, and it counts as one that may be
//!   the first to commit, until its timestamp says better.
//! - An ended transaction is kept while one that it may be concurrent with is active, or may still get a snapshot from before its commit.
//! - A failed transaction is out of every structure: each later call for it returns the same error, until `aborted`.
//! - Memory: [`MarkLimits`]. Above the limit on committed transactions the older half becomes one ([`SUMMARY`]): all their marks, the
//!   latest of their commits, the earliest commit that any of them depends on. That makes more failures, never fewer.
//! - Lock order: a turn to commit, the core, the table of snapshots.

use super::manager::Transactions;
use super::read_marks::{MarkLimits, ReadMarks};
use super::snapshot::Snapshot;
use super::state::TransactionState;
use crate::hash::FastMap;
use pagefold_types::Rid;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// Whether a serializable transaction may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It may.
    ReadWrite,
    /// It has promised not to; such a one fails less often.
    ReadOnly,
}

/// The transaction cannot be serialized with those beside it. Run again, it cannot fail by the same ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "transaction {transaction} cannot be serialized: {} read what {} has changed, which read what {} has changed and committed first; \
     run it again",
    name(*.reader), name(*.pivot), name(*.writer)
)]
#[non_exhaustive]
pub struct SerializationFailure {
    /// The one that fails: reader or pivot, or the writer before its commit.
    pub transaction: u64,
    /// It depends on the pivot. 0 for one of several that are no longer told apart, as in the others.
    pub reader: u64,
    /// It depends on the writer.
    pub pivot: u64,
    /// It commits first.
    pub writer: u64,
}

fn name(transaction: u64) -> String {
    if transaction == SUMMARY { "an earlier transaction".into() } else { format!("transaction {transaction}") }
}

/// Stands for several committed transactions.
const SUMMARY: u64 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
enum Phase {
    Active,
    Prepared,
    Committed(u64),
}

#[derive(Debug)]
struct Node {
    snapshot: u64,
    access: Access,
    phase: Phase,
    failure: Option<SerializationFailure>,
    /// Those that depend on it, until it is committed. Some of them may be gone.
    readers: BTreeSet<u64>,
    /// Those that it depends on, until it is committed.
    writers: BTreeSet<u64>,
    /// The earliest commit that it depends on, among those no longer in `writers`.
    earliest_writer: Option<(u64, u64)>,
}

impl Node {
    fn depends_since(&mut self, commit: u64, writer: u64) {
        self.earliest_writer = Some(self.earliest_writer.map_or((commit, writer), |known| known.min((commit, writer))));
    }
}

/// Whether one at `a` may commit before one at `b`. What is active is asked again when it prepares.
fn may_be_first(a: Phase, b: Phase) -> bool {
    match (a, b) {
        (Phase::Active, _) | (Phase::Prepared, Phase::Committed(_)) => false,
        (Phase::Committed(a), Phase::Committed(b)) => a < b,
        (Phase::Prepared | Phase::Committed(_), _) => true,
    }
}

#[derive(Debug)]
struct Core {
    limits: MarkLimits,
    nodes: FastMap<u64, Node>,
    marks: ReadMarks,
    /// (Snapshot, transaction) of those active or prepared.
    open: BTreeSet<(u64, u64)>,
    /// Commit -> transaction, without the summary.
    committed: BTreeMap<u64, u64>,
}

/// The serializable transactions of a database.
#[derive(Debug)]
pub struct Serializable {
    transactions: Arc<Transactions>,
    core: Mutex<Core>,
}

type Checked = Result<(), SerializationFailure>;

impl Serializable {
    /// No transaction yet.
    #[must_use]
    pub fn new(transactions: Arc<Transactions>, limits: MarkLimits) -> Serializable {
        let core =
            Core { limits, nodes: FastMap::default(), marks: ReadMarks::new(limits), open: BTreeSet::new(), committed: BTreeMap::new() };
        Serializable { transactions, core: Mutex::new(core) }
    }

    /// Makes the transaction serializable: before its first read. The snapshot is the one for all of it.
    #[must_use]
    pub fn begin(&self, state: &TransactionState, access: Access) -> Snapshot {
        let mut core = self.core.lock();
        // Within the lock: what is concurrent with this snapshot is not forgotten before it is known.
        let snapshot = self.transactions.snapshot(state.id());
        let node = Node {
            snapshot: snapshot.timestamp(),
            access,
            phase: Phase::Active,
            failure: None,
            readers: BTreeSet::new(),
            writers: BTreeSet::new(),
            earliest_writer: None,
        };
        let known = core.nodes.insert(state.id(), node);
        debug_assert!(known.is_none(), "transaction {} is serializable already", state.id());
        core.open.insert((snapshot.timestamp(), state.id()));
        snapshot
    }

    /// The transaction reads a row, or finds that it is not there.
    ///
    /// # Errors
    /// [`SerializationFailure`]: the transaction is to be rolled back. So for all calls below.
    pub fn on_read_row(&self, transaction: u64, object: u32, rid: Rid) -> Checked {
        self.mark(transaction, |marks| marks.mark_row(transaction, object, rid))
    }

    /// The transaction reads all of a table or index.
    ///
    /// # Errors
    /// As [`on_read_row`](Self::on_read_row).
    pub fn on_read_object(&self, transaction: u64, object: u32) -> Checked {
        self.mark(transaction, |marks| marks.mark_object(transaction, object))
    }

    /// The transaction looks for all keys of a range of an index, or for one key (both bounds included and equal). The rows that it finds
    /// are marked apart.
    ///
    /// # Errors
    /// As [`on_read_row`](Self::on_read_row).
    pub fn on_read_range(&self, transaction: u64, index: u32, low: Bound<&[u8]>, high: Bound<&[u8]>) -> Checked {
        self.mark(transaction, |marks| marks.mark_range(transaction, index, low, high))
    }

    /// The transaction has found a version that its snapshot does not see: by `writer`, the first one after what it does see
    /// ([`VersionStore::look_noting`](super::VersionStore::look_noting)).
    ///
    /// # Errors
    /// As [`on_read_row`](Self::on_read_row).
    pub fn on_read_of_version_overwritten_by(&self, transaction: u64, writer: &TransactionState) -> Checked {
        let mut core = self.core.lock();
        core.check(transaction)?;
        if core.nodes.contains_key(&writer.id()) {
            return core.add_edge(transaction, writer.id(), transaction);
        }
        match (core.nodes.get(&SUMMARY), writer.commit_timestamp()) {
            (Some(Node { phase: Phase::Committed(latest), .. }), Some(commit)) if commit <= *latest => {
                core.add_edge_to_summarized(transaction, writer.id(), commit)
            }
            // It is not serializable itself.
            _ => Ok(()),
        }
    }

    /// The transaction changes, inserts or deletes a row.
    ///
    /// # Errors
    /// As [`on_read_row`](Self::on_read_row).
    pub fn on_write_row(&self, transaction: u64, object: u32, rid: Rid) -> Checked {
        self.meet_readers(transaction, |marks| marks.readers_of_row(object, rid))
    }

    /// The transaction enters a key into an index: also a key that was there for another row.
    ///
    /// # Errors
    /// As [`on_read_row`](Self::on_read_row).
    pub fn on_insert_key(&self, transaction: u64, index: u32, key: &[u8]) -> Checked {
        self.meet_readers(transaction, |marks| marks.readers_of_key(index, key))
    }

    /// The transaction takes a key out of an index.
    ///
    /// # Errors
    /// As [`on_read_row`](Self::on_read_row).
    pub fn on_delete_key(&self, transaction: u64, index: u32, key: &[u8]) -> Checked {
        self.on_insert_key(transaction, index, key)
    }

    /// The transaction has done all it wants and is about to log its commit. When this returns `Ok` it commits
    /// ([`committed`](Self::committed)), or the log is at its end and [`aborted`](Self::aborted) is called.
    ///
    /// # Errors
    /// As [`on_read_row`](Self::on_read_row).
    pub fn before_commit(&self, transaction: u64) -> Checked {
        let mut core = self.core.lock();
        core.check(transaction)?;
        core.check_as_writer(transaction)?;
        if let Some(node) = core.nodes.get_mut(&transaction) {
            node.phase = Phase::Prepared;
        }
        Ok(())
    }

    /// The transaction commits: called with its timestamp from within [`Transactions::commit`].
    pub fn committed(&self, transaction: u64, timestamp: u64) {
        let published = self.transactions.last_commit();
        let mut core = self.core.lock();
        core.commit(transaction, timestamp, published);
        core.clean_up(published);
    }

    /// The transaction has been rolled back.
    pub fn aborted(&self, transaction: u64) {
        let published = self.transactions.last_commit();
        let mut core = self.core.lock();
        if let Some(node) = core.nodes.remove(&transaction) {
            core.open.remove(&(node.snapshot, transaction));
        }
        core.marks.remove(transaction);
        core.clean_up(published);
    }

    /// Whether the transaction is bound to fail: somebody who waits on its behalf may stop.
    #[must_use]
    pub fn has_failed(&self, transaction: u64) -> bool {
        self.core.lock().check(transaction).is_err()
    }

    /// (Transactions kept, marks kept).
    #[must_use]
    pub fn kept(&self) -> (usize, usize) {
        let core = self.core.lock();
        (core.nodes.len(), core.marks.len())
    }

    fn mark(&self, transaction: u64, mark: impl FnOnce(&mut ReadMarks)) -> Checked {
        let mut core = self.core.lock();
        core.check(transaction)?;
        mark(&mut core.marks);
        if core.marks.len() > core.limits.total {
            core.summarize(usize::MAX, self.transactions.last_commit());
        }
        Ok(())
    }

    fn meet_readers(&self, writer: u64, readers: impl FnOnce(&ReadMarks) -> Vec<u64>) -> Checked {
        let mut core = self.core.lock();
        core.check(writer)?;
        debug_assert!(core.nodes.get(&writer).is_none_or(|node| node.access == Access::ReadWrite));
        readers(&core.marks).into_iter().try_for_each(|reader| core.add_edge(reader, writer, writer))
    }
}

impl Core {
    fn check(&self, transaction: u64) -> Checked {
        self.nodes.get(&transaction).and_then(|node| node.failure).map_or(Ok(()), Err)
    }

    /// A node that takes part: neither gone nor failed.
    fn live(&self, transaction: u64) -> Option<&Node> {
        self.nodes.get(&transaction).filter(|node| node.failure.is_none())
    }

    /// `reader` has read from before a change by `writer`; `running` is the one of them whose call this is.
    fn add_edge(&mut self, reader: u64, writer: u64, running: u64) -> Checked {
        let (Some(from), Some(to)) = (self.live(reader), self.live(writer)) else { return Ok(()) };
        let one_after_the_other = matches!(from.phase, Phase::Committed(commit) if commit <= to.snapshot)
            || matches!(to.phase, Phase::Committed(commit) if commit <= from.snapshot);
        if reader == writer || one_after_the_other {
            return Ok(());
        }
        // What is committed needs to know less: as a pivot it is dangerous only by writers that committed before it.
        let (from_phase, to_phase) = (from.phase, to.phase);
        if !matches!(from_phase, Phase::Committed(_))
            && let Some(node) = self.nodes.get_mut(&reader)
        {
            node.writers.insert(writer);
        }
        if !matches!(to_phase, Phase::Committed(_))
            && let Some(node) = self.nodes.get_mut(&writer)
        {
            node.readers.insert(reader);
        }
        self.check_pivot_writer(reader, writer, running)?;
        let Some(pivot) = self.live(reader) else { return Ok(()) };
        let readers: Vec<u64> = pivot.readers.iter().copied().collect();
        readers.into_iter().try_for_each(|first| self.check_structure(first, reader, (writer, to_phase), running))
    }

    /// The edge ends at a transaction that is known by its summary only.
    fn add_edge_to_summarized(&mut self, reader: u64, writer: u64, commit: u64) -> Checked {
        self.check_pivot_writer(reader, SUMMARY, reader)?;
        let Some(pivot) = self.nodes.get_mut(&reader) else { return Ok(()) };
        pivot.depends_since(commit, writer);
        let readers: Vec<u64> = pivot.readers.iter().copied().collect();
        readers.into_iter().try_for_each(|first| self.check_structure(first, reader, (writer, Phase::Committed(commit)), reader))
    }

    /// Structures `reader -> pivot -> x`.
    fn check_pivot_writer(&mut self, reader: u64, pivot: u64, running: u64) -> Checked {
        let Some(node) = self.live(pivot) else { return Ok(()) };
        let mut writers: Vec<(u64, Phase)> =
            node.writers.iter().filter_map(|&writer| self.live(writer).map(|node| (writer, node.phase))).collect();
        writers.extend(node.earliest_writer.map(|(commit, writer)| (writer, Phase::Committed(commit))));
        writers.into_iter().try_for_each(|writer| self.check_structure(reader, pivot, writer, running))
    }

    /// Structures `x -> y -> writer`, before the writer commits.
    fn check_as_writer(&mut self, writer: u64) -> Checked {
        let Some(node) = self.live(writer) else { return Ok(()) };
        let pivots: Vec<u64> = node.readers.iter().copied().collect();
        for pivot in pivots {
            let Some(node) = self.live(pivot) else { continue };
            let readers: Vec<u64> = node.readers.iter().copied().collect();
            for reader in readers {
                self.check_structure(reader, pivot, (writer, Phase::Prepared), writer)?;
            }
        }
        Ok(())
    }

    /// Makes one of the three fail if they may be part of a cycle in which `writer` commits first.
    fn check_structure(&mut self, reader: u64, pivot: u64, (writer, writer_phase): (u64, Phase), running: u64) -> Checked {
        let (Some(first), Some(middle)) = (self.live(reader), self.live(pivot)) else { return Ok(()) };
        let reader_allows = match (first.access, writer_phase) {
            // The latest of the summarized ones may be the reader, too.
            (_, Phase::Committed(commit)) if reader == SUMMARY => first.phase >= Phase::Committed(commit),
            _ if reader == writer => true,
            // Nothing depends on a read-only transaction but by what it saw.
            (Access::ReadOnly, Phase::Committed(commit)) => commit <= first.snapshot,
            (Access::ReadOnly, _) => false,
            (Access::ReadWrite, _) => may_be_first(writer_phase, first.phase),
        };
        if !reader_allows || !may_be_first(writer_phase, middle.phase) {
            return Ok(());
        }
        // The pivot, where possible: run again it is no longer concurrent with the writer. The running one is always active.
        let candidates = [pivot, reader, running];
        let victim = candidates.into_iter().find(|&victim| self.live(victim).is_some_and(|node| node.phase == Phase::Active));
        let victim = victim.unwrap_or(running);
        let failure = SerializationFailure { transaction: victim, reader, pivot, writer };
        if let Some(node) = self.nodes.get_mut(&victim) {
            node.failure = Some(failure);
        }
        if victim == running { Err(failure) } else { Ok(()) }
    }

    fn commit(&mut self, transaction: u64, timestamp: u64, published: u64) {
        let Some(node) = self.nodes.get(&transaction) else { return };
        debug_assert_eq!(node.phase, Phase::Prepared);
        let commits = node.writers.iter().filter_map(|&writer| match self.nodes.get(&writer)?.phase {
            Phase::Committed(commit) => Some((commit, writer)),
            // Later than this one.
            Phase::Active | Phase::Prepared => None,
        });
        let earliest = commits.min();
        if let Some(node) = self.nodes.get_mut(&transaction) {
            node.phase = Phase::Committed(timestamp);
            if let Some((commit, writer)) = earliest {
                node.depends_since(commit, writer);
            }
            (node.readers, node.writers) = (BTreeSet::new(), BTreeSet::new());
            self.open.remove(&(node.snapshot, transaction));
        }
        self.committed.insert(timestamp, transaction);
        if self.committed.len() > self.limits.committed {
            self.summarize(self.committed.len().div_ceil(2), published);
        }
    }

    /// Forgets what is concurrent with nobody any more. `published`: no snapshot taken later is older.
    fn clean_up(&mut self, published: u64) {
        let oldest = self.open.first().map_or(published, |&(snapshot, _)| snapshot.min(published));
        while let Some(first) = self.committed.first_entry()
            && *first.key() <= oldest
        {
            let transaction = first.remove();
            self.nodes.remove(&transaction);
            self.marks.remove(transaction);
        }
        if matches!(self.nodes.get(&SUMMARY), Some(Node { phase: Phase::Committed(latest), .. }) if *latest <= oldest) {
            self.nodes.remove(&SUMMARY);
            self.marks.remove(SUMMARY);
        }
    }

    /// Makes one of the earliest committed transactions, of those whose states say when they committed.
    fn summarize(&mut self, count: usize, published: u64) {
        let mut gone = BTreeMap::new();
        while gone.len() < count
            && let Some(earliest) = self.committed.first_entry()
            && *earliest.key() <= published
        {
            let (commit, transaction) = earliest.remove_entry();
            let Some(node) = self.nodes.remove(&transaction) else { continue };
            gone.insert(transaction, commit);
            let summary = self.nodes.entry(SUMMARY).or_insert_with(|| Node {
                snapshot: 0,
                access: Access::ReadWrite,
                phase: Phase::Committed(commit),
                failure: None,
                readers: BTreeSet::new(),
                writers: BTreeSet::new(),
                earliest_writer: None,
            });
            summary.phase = Phase::Committed(commit);
            if let Some((commit, writer)) = node.earliest_writer {
                summary.depends_since(commit, writer);
            }
            self.marks.hand_over(transaction, SUMMARY);
        }
        if gone.is_empty() {
            return;
        }
        for node in self.nodes.values_mut().map(crate::steps::stepping).filter(|node| !matches!(node.phase, Phase::Committed(_))) {
            let readers = node.readers.len();
            node.readers.retain(|reader| !gone.contains_key(reader));
            if node.readers.len() < readers {
                node.readers.insert(SUMMARY);
            }
            let earliest = node.writers.iter().filter_map(|writer| Some((*gone.get(writer)?, *writer))).min();
            node.writers.retain(|writer| !gone.contains_key(writer));
            if let Some((commit, writer)) = earliest {
                node.depends_since(commit, writer);
            }
        }
    }
}

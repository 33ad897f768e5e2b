//! Versions of a page's rows as bytes, for the file of those that found no room in memory.
//!
//! | What | Bytes |
//! |---|---|
//! | for each row with versions, by slot: slot | 2 |
//! | number of its entries, oldest first | 4 |
//! | of each entry: number of its writer among those of the page | 4 |
//! | changes | 4 |
//! | 0: there was no row, 1: deleted since, 2: a stored body | 1 |
//! | of a body: length | 4 |
//! | the body | |
//!
//! Writers stay in memory, so that what a snapshot sees of them, and whether all snapshots see all of them, is known without the file.

use super::chain::{Before, Chain, Entry};
use super::page_versions::SlotChain;
use super::snapshot::Snapshot;
use super::state::TransactionState;
use super::version_file::{Extent, damaged};
use std::io;
use std::sync::Arc;

/// The versions of a page that lie in the file.
#[derive(Debug)]
pub(super) struct Spilled {
    pub(super) extent: Extent,
    /// Ascending by their numbers.
    writers: Box<[Arc<TransactionState>]>,
}

const ABSENT: u8 = 0;
const NOT_DELETED: u8 = 1;
const PRESENT: u8 = 2;

impl Spilled {
    pub(super) fn new(extent: Extent, writers: Box<[Arc<TransactionState>]>) -> Spilled {
        Spilled { extent, writers }
    }

    /// In memory.
    pub(super) fn heap_bytes(&self) -> usize {
        size_of::<Spilled>() + self.writers.len() * size_of::<Arc<TransactionState>>()
    }

    /// Whether every snapshot from `oldest` on sees all of the changes.
    pub(super) fn is_seen_by_all(&self, oldest: u64) -> bool {
        self.writers.iter().all(|writer| writer.committed_by(oldest))
    }

    /// Whether the snapshot sees all of the changes.
    pub(super) fn is_seen(&self, snapshot: &Snapshot) -> bool {
        self.writers.iter().all(|writer| snapshot.sees(writer))
    }

    /// Bytes of versions of a page of which some writer has not ended.
    pub(super) fn uncommitted_bytes(&self) -> usize {
        if self.writers.iter().any(|writer| writer.is_active()) { self.heap_bytes() } else { 0 }
    }

    /// Reads the versions from the bytes of the extent.
    ///
    /// # Errors
    /// `InvalidData` when they are none.
    pub(super) fn decode(&self, bytes: &[u8]) -> io::Result<Vec<SlotChain>> {
        let mut reader = Reader(bytes);
        let mut chains = Vec::new();
        while !reader.0.is_empty() {
            let slot = u16::from_le_bytes(reader.take()?);
            let count = u32::from_le_bytes(reader.take()?);
            let mut entries = Vec::new();
            for _ in 0..count {
                let writer = u32::from_le_bytes(reader.take()?) as usize;
                let by = Arc::clone(self.writers.get(writer).ok_or_else(damaged)?);
                let changes = u32::from_le_bytes(reader.take()?);
                let [kind] = reader.take()?;
                let before = match kind {
                    ABSENT => Before::Absent,
                    NOT_DELETED => Before::NotDeleted,
                    PRESENT => {
                        let length = u32::from_le_bytes(reader.take()?) as usize;
                        Before::Present(reader.bytes(length)?.into())
                    }
                    _ => return Err(damaged()),
                };
                entries.push(Entry { by, before, changes });
            }
            chains.push(SlotChain { slot, chain: Chain::of(entries).ok_or_else(damaged)? });
        }
        Ok(chains)
    }
}

/// Everybody who has made a version of these rows, by number.
pub(super) fn writers_of(chains: &[SlotChain]) -> Box<[Arc<TransactionState>]> {
    let mut writers: Vec<Arc<TransactionState>> =
        chains.iter().flat_map(|chain| chain.chain.entries()).map(|entry| Arc::clone(&entry.by)).collect();
    writers.sort_unstable_by_key(|writer| writer.id());
    writers.dedup_by_key(|writer| writer.id());
    writers.into()
}

/// Appends the versions to `bytes`; `writers` are those of [`writers_of`].
pub(super) fn encode(chains: &[SlotChain], writers: &[Arc<TransactionState>], bytes: &mut Vec<u8>) {
    for SlotChain { slot, chain } in chains {
        bytes.extend(slot.to_le_bytes());
        bytes.extend((chain.entries().len() as u32).to_le_bytes());
        for Entry { by, before, changes } in chain.entries() {
            let writer = writers.partition_point(|writer| writer.id() < by.id());
            bytes.extend((writer as u32).to_le_bytes());
            bytes.extend(changes.to_le_bytes());
            match before {
                Before::Absent => bytes.push(ABSENT),
                Before::NotDeleted => bytes.push(NOT_DELETED),
                Before::Present(body) => {
                    bytes.push(PRESENT);
                    bytes.extend((body.len() as u32).to_le_bytes());
                    bytes.extend(&**body);
                }
            }
        }
    }
}

/// What [`encode`] appends at most, in bytes.
pub(super) fn encoded_bytes(chains: &[SlotChain]) -> usize {
    let entry = |entry: &Entry| 13 + entry.before.heap_bytes();
    chains.iter().map(|chain| 6 + chain.chain.entries().iter().map(entry).sum::<usize>()).sum()
}

struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn bytes(&mut self, count: usize) -> io::Result<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk().ok_or_else(damaged)?;
        self.0 = rest;
        Ok(*taken)
    }
}

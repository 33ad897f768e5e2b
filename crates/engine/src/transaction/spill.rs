//! Row versions that find no room in memory go to a file, page by page, and come back.
//!
//! Invariants:
//! - All versions of a page are in memory, or all are in the file. That changes under the lock of their shard, kept for writing.
//! - What is known of versions in the file without reading them is by whom they are: that is enough to forget them when all snapshots
//!   see all of them, and for a snapshot that does.

use super::page_versions::{PageVersions, SlotChain};
use super::spilled::{self, Spilled};
use super::state::TransactionState;
use super::version_file::{BLOCK_BYTES, OpenScratch, VersionFile, damaged};
use super::versions::{SHARDS, Sweep, VersionStore};
use std::io;
use std::sync::Arc;

/// Versions of a page that take less stay in memory, where they take hardly more than what would say where they lie.
const SPILLED_BYTES_MIN: usize = 192;

/// Versions of a page that go to the file, their writers, and their length there.
type ToSpill<'p> = (&'p mut PageVersions, Box<[Arc<TransactionState>]>, usize);

impl VersionStore {
    /// The same; what finds no room in memory goes to a file of at most about `limit` bytes, which is opened when it is needed.
    #[must_use]
    pub(crate) fn with_file(mut self, open: OpenScratch, limit: u64) -> VersionStore {
        self.file = (limit >= BLOCK_BYTES as u64).then(|| VersionFile::new(open, limit));
        self
    }

    /// Brings all versions to the file that can be there.
    #[cfg(test)]
    pub(super) fn spill_all(&self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        (0..SHARDS).try_for_each(|shard| self.spill_shard(shard, file).map(|done| assert!(done)))
    }

    /// Bytes of the file in use.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.file.as_ref().map_or(0, VersionFile::bytes)
    }

    /// Looks at the versions of a page; those in the file are read from there, and stay there.
    #[inline]
    pub(super) fn in_memory<R>(&self, versions: &PageVersions, look: impl FnOnce(&PageVersions) -> R) -> io::Result<R> {
        let Some(spilled) = &versions.spilled else { return Ok(look(versions)) };
        Ok(look(&PageVersions { added_by: versions.added_by.clone(), chains: self.read(spilled)?, spilled: None }))
    }

    fn read(&self, spilled: &Spilled) -> io::Result<Vec<SlotChain>> {
        let file = self.file.as_ref().ok_or_else(damaged)?;
        spilled.decode(&file.read(&spilled.extent)?)
    }

    /// Brings the versions of a page back from the file.
    pub(super) fn bring_back(&self, versions: &mut PageVersions) -> io::Result<()> {
        let Some(spilled) = &versions.spilled else { return Ok(()) };
        let chains = self.read(spilled)?;
        let bytes_before = versions.bytes();
        self.release(versions);
        versions.chains = chains;
        self.count(bytes_before, versions.bytes());
        Ok(())
    }

    /// Forgets versions in the file when every snapshot from `oldest` on sees all of them.
    pub(super) fn forget_spilled(&self, versions: &mut PageVersions, oldest: u64) {
        if versions.spilled.as_ref().is_some_and(|spilled| spilled.is_seen_by_all(oldest)) {
            self.release(versions);
        }
    }

    /// The versions are not in the file any more.
    fn release(&self, versions: &mut PageVersions) {
        if let (Some(spilled), Some(file)) = (versions.spilled.take(), &self.file) {
            file.release(spilled.extent);
        }
    }

    /// Brings versions of a shard's pages to the file, block by block. False when that has reached its limit.
    fn spill_shard(&self, shard: usize, file: &VersionFile) -> io::Result<bool> {
        let mut pages = self.shards[shard].0.write();
        let (mut bytes, mut waiting) = (Vec::with_capacity(BLOCK_BYTES), Vec::new());
        for versions in pages.values_mut() {
            let most = spilled::encoded_bytes(&versions.chains);
            if most > BLOCK_BYTES || versions.chains.is_empty() || versions.bytes() < SPILLED_BYTES_MIN {
                continue;
            }
            if bytes.len() + most > BLOCK_BYTES {
                if !self.spill(file, &bytes, &mut waiting)? {
                    return Ok(false);
                }
                bytes.clear();
            }
            let (start, writers) = (bytes.len(), spilled::writers_of(&versions.chains));
            spilled::encode(&versions.chains, &writers, &mut bytes);
            waiting.push((versions, writers, bytes.len() - start));
        }
        self.spill(file, &bytes, &mut waiting)
    }

    /// Writes a block of the file: the versions of these pages, with their writers, and their lengths. False when the limit is reached.
    fn spill(&self, file: &VersionFile, bytes: &[u8], pages: &mut Vec<ToSpill<'_>>) -> io::Result<bool> {
        if pages.is_empty() {
            return Ok(true);
        }
        let lengths: Vec<usize> = pages.iter().map(|(_, _, length)| *length).collect();
        let Some(extents) = file.write(bytes, &lengths)? else { return Ok(false) };
        for ((versions, writers, _), extent) in pages.drain(..).zip(extents) {
            let bytes_before = versions.bytes();
            versions.chains = Vec::new();
            versions.spilled = Some(Box::new(Spilled::new(extent, writers)));
            self.count(bytes_before, versions.bytes());
        }
        Ok(true)
    }

    /// Brings versions to the file until a quarter of the memory is free, or all are there that can be, or it has reached its limit.
    pub(super) fn spill_for(&self, sweep: &mut Sweep, wanted: u64) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        for _ in 0..SHARDS {
            if self.bytes() + wanted <= self.limit - self.limit / 4 {
                return Ok(());
            }
            if !self.spill_shard(sweep.hand, file)? {
                return Ok(());
            }
            sweep.hand = (sweep.hand + 1) % SHARDS;
        }
        Ok(())
    }
}

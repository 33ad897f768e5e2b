//! The one piece of memory that all buffer frames are cut from.
//!
//! The arena is an anonymous mapping of the memory limit; the system backs it with memory as it is touched, 2 MB at a time, which took 5 to 8 ms in a virtual machine. So what comes next is touched ahead by a
//! thread in the background: as much as there is, at most [`AHEAD_CHUNKS`]. The arena is cut into chunks of 256 KB, and a chunk into frames of one size. A frame is named by its unit: its offset in 2 KB steps. Behind the chunks lie the frames of the reserve (`pool/reserve.rs`), which are beside the limit.
//!
//! Invariants:
//! - a chunk belongs to one pool or is free; frames of a chunk never overlap;
//! - who may touch a frame's bytes is decided by the page word that names it (`word.rs`), not here.

use crate::{Error, Result};
use parking_lot::Mutex;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a chunk.
pub(crate) const CHUNK_BYTES: usize = 256 * 1024;
/// Frames start at multiples of this.
pub(crate) const UNIT_BYTES: usize = 2048;
/// Bytes of the frames of the reserve. A change of a tree needs at most the pages on the way to a leaf, a new page for each of them and a new
/// root, or the pages on the way and four neighbours of the leaf. Pages of 32 KB have sixteen children at least, as keys
/// have 2,000 bytes at most: a tree of all the pages that have numbers has nine levels, and nineteen frames do. Trees of smaller pages
/// are higher, and take less.
pub(crate) const RESERVE_BYTES: usize = 1 << 20;

/// So much memory is touched ahead, at most.
const AHEAD_CHUNKS: u32 = ((8 << 20) / CHUNK_BYTES) as u32;

const UNITS_PER_CHUNK: u32 = (CHUNK_BYTES / UNIT_BYTES) as u32;

/// The memory of all pools.
#[derive(Debug)]
pub(crate) struct Arena {
    base: NonNull<u8>,
    chunks: u32,
    /// Chunks that no pool has had yet; later they go from pool to pool.
    free_chunks: Mutex<Vec<u32>>,
    /// Chunks that pools have had: the first so many.
    used: AtomicU32,
    /// Chunks that have been touched, or are about to be.
    touched: AtomicU32,
}

// SAFETY: the arena only hands out addresses; access to the bytes behind them is ordered by the atomic page words.
#[expect(unsafe_code, reason = "the mapping is plain memory, not tied to a thread")]
unsafe impl Send for Arena {}
// SAFETY: as above; the list of free chunks is behind a mutex.
#[expect(unsafe_code, reason = "the mapping is plain memory, not tied to a thread")]
unsafe impl Sync for Arena {}

impl Arena {
    /// Reserves `bytes`, rounded down to whole chunks, at least one.
    ///
    /// # Errors
    /// When the address range is refused.
    pub(crate) fn new(bytes: usize) -> Result<Arena> {
        let chunks = u32::try_from(bytes / CHUNK_BYTES)
            .ok()
            .filter(|n| *n < u32::MAX / UNITS_PER_CHUNK - (RESERVE_BYTES / CHUNK_BYTES) as u32)
            .ok_or_else(|| Error::Parameter(format!("a memory limit of {bytes} bytes is too large")))?
            .max(1);
        let base = map(chunks as usize * CHUNK_BYTES + RESERVE_BYTES)?;
        Ok(Arena {
            base,
            chunks,
            free_chunks: Mutex::new((0..chunks).rev().collect()),
            used: AtomicU32::new(0),
            touched: AtomicU32::new(0),
        })
    }

    /// Units in the whole arena, those of the reserve included.
    pub(crate) fn units(&self) -> u32 {
        self.first_reserved_unit() + (RESERVE_BYTES / UNIT_BYTES) as u32
    }

    /// The first unit behind the chunks.
    pub(crate) fn first_reserved_unit(&self) -> u32 {
        self.chunks * UNITS_PER_CHUNK
    }

    /// Takes a free chunk; returns its first unit.
    pub(crate) fn take_chunk(&self) -> Option<u32> {
        let chunk = self.free_chunks.lock().pop()?;
        self.used.fetch_max(chunk + 1, Ordering::Relaxed);
        Some(chunk * UNITS_PER_CHUNK)
    }

    /// How far memory should be touched, when half of what had been touched ahead is used.
    fn to_be_touched(&self) -> Option<u32> {
        let used = self.used.load(Ordering::Relaxed);
        let ahead = used.min(AHEAD_CHUNKS);
        let is_due = self.touched.load(Ordering::Relaxed) < self.chunks.min(used + ahead / 2);
        is_due.then(|| self.chunks.min(used + ahead))
    }

    /// Is it time for [`touch_ahead`](Self::touch_ahead)?
    pub(crate) fn wants_touch(&self) -> bool {
        self.to_be_touched().is_some()
    }

    /// Has the system back the chunks that pools will want next with memory. What is in them stays.
    pub(crate) fn touch_ahead(&self) {
        let Some(to) = self.to_be_touched() else { return };
        let from = self.touched.fetch_max(to, Ordering::Relaxed).max(self.used.load(Ordering::Relaxed));
        if from < to {
            populate(self.address(from * UNITS_PER_CHUNK), (to - from) as usize * CHUNK_BYTES);
        }
    }

    /// Address of the frame that starts at `unit`.
    #[inline]
    pub(crate) fn address(&self, unit: u32) -> NonNull<u8> {
        debug_assert!(unit < self.units());
        // SAFETY: unit < units(), so the address lies in the mapping.
        #[expect(unsafe_code, reason = "one addition instead of a bounds-checked slice on every getpage")]
        unsafe {
            self.base.add(unit as usize * UNIT_BYTES)
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        unmap(self.base, self.units() as usize * UNIT_BYTES);
    }
}

#[cfg(not(miri))]
fn map(bytes: usize) -> Result<NonNull<u8>> {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
    let refused = |e: rustix::io::Errno| Error::Parameter(format!("a memory limit of {bytes} bytes cannot be had: {e}"));
    // SAFETY: a fresh anonymous mapping aliases nothing.
    #[expect(unsafe_code, reason = "a mapping is not touched before use, a zeroed allocation of this alignment would be")]
    let base = unsafe {
        let base = mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE)
            .map_err(refused)?;
        // Fewer TLB misses on random getpages; merely advice, so a refusal does not matter.
        let _ = madvise(base, bytes, Advice::LinuxHugepage);
        base
    };
    NonNull::new(base.cast()).ok_or_else(|| Error::Parameter("the system mapped memory at address 0".into()))
}

#[cfg(not(miri))]
fn populate(from: NonNull<u8>, bytes: usize) {
    use rustix::mm::{Advice, madvise};
    // SAFETY: the range lies in the mapping, and no byte of it changes. Where the system does not know this advice, memory comes as it is touched.
    #[expect(unsafe_code, reason = "whoever takes a new frame would wait for memory")]
    unsafe {
        let _ = madvise(from.as_ptr().cast(), bytes, Advice::LinuxPopulateWrite);
    }
}

#[cfg(miri)]
fn populate(_: NonNull<u8>, _: usize) {}

#[cfg(not(miri))]
fn unmap(base: NonNull<u8>, bytes: usize) {
    // SAFETY: the mapping was made by `map` with this length, and no frame outlives the arena.
    #[expect(unsafe_code, reason = "the counterpart of map")]
    unsafe {
        let _ = rustix::mm::munmap(base.as_ptr().cast(), bytes);
    }
}

#[cfg(miri)]
fn layout(bytes: usize) -> std::alloc::Layout {
    std::alloc::Layout::from_size_align(bytes, 4096).expect("a valid layout")
}

#[cfg(miri)]
fn map(bytes: usize) -> Result<NonNull<u8>> {
    // SAFETY: bytes > 0.
    #[expect(unsafe_code, reason = "Miri has no mmap")]
    NonNull::new(unsafe { std::alloc::alloc_zeroed(layout(bytes)) }).ok_or_else(|| Error::Parameter("out of memory".into()))
}

#[cfg(miri)]
fn unmap(base: NonNull<u8>, bytes: usize) {
    // SAFETY: allocated by `map` with this layout.
    #[expect(unsafe_code, reason = "Miri has no mmap")]
    unsafe {
        std::alloc::dealloc(base.as_ptr(), layout(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of the arena that the system has backed, as its page map tells: eight bytes for each page, the highest bit of a page that is there. Nobody writes anything here.
    fn resident_bytes(arena: &Arena) -> usize {
        const PAGE_BYTES: usize = 4096;
        let mut entries = vec![0; arena.chunks as usize * CHUNK_BYTES / PAGE_BYTES * 8];
        let first = arena.base.as_ptr() as usize / PAGE_BYTES * 8;
        let pages = std::fs::File::open("/proc/self/pagemap").unwrap();
        std::os::unix::fs::FileExt::read_exact_at(&pages, &mut entries, first as u64).unwrap();
        entries.chunks_exact(8).filter(|entry| entry[7] >> 7 == 1).count() * PAGE_BYTES
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no mmap")]
    fn memory_is_touched_ahead_of_who_takes_it() {
        let chunks = 200;
        let arena = Arena::new(chunks * CHUNK_BYTES).unwrap();
        assert!(!arena.wants_touch(), "nothing is used yet");
        assert_eq!(resident_bytes(&arena), 0);
        let mut touched = 0;
        for taken in 1..=chunks as u32 {
            let unit = arena.take_chunk().unwrap();
            assert_eq!(unit, (taken - 1) * UNITS_PER_CHUNK, "in the order of addresses");
            if arena.wants_touch() {
                arena.touch_ahead();
                assert!(!arena.wants_touch());
                let there = resident_bytes(&arena) + taken as usize * CHUNK_BYTES;
                assert!(there >= arena.touched.load(Ordering::Relaxed) as usize * CHUNK_BYTES, "{there} bytes with {taken} chunks");
                touched += 1;
            }
            let ahead = arena.touched.load(Ordering::Relaxed).saturating_sub(taken);
            assert!(ahead <= taken.min(AHEAD_CHUNKS));
            assert!(taken < 4 || ahead >= taken.min(AHEAD_CHUNKS).min(chunks as u32 - taken) / 2, "{ahead} ahead of {taken}");
        }
        assert!(touched < 30, "{touched} times");
        assert!(arena.take_chunk().is_none() && !arena.wants_touch());
    }
}

//! A buffer pool: frames of one size, and the clock that decides which page leaves.
//!
//! A pool takes chunks from the arena as it needs them, up to its limit. When the arena has none left, a pool below its fair share takes a chunk from the pool
//! that has most. Pages that scans bring in go round a ring: when it is long enough, a scan that needs a frame takes that of the oldest page in the ring, unless somebody else
//! has used it meanwhile. So scans recycle their own frames and do not flush the pool.
//!
//! Invariant: a frame is in exactly one place: in `free`, or named by one page word, or with a thread that is about to give it to a page.

use super::arena::{CHUNK_BYTES, UNIT_BYTES};
use parking_lot::Mutex;
use std::collections::VecDeque;

/// Bytes of frames in the ring before scans take from it: room for what is prefetched and not yet read.
const RING_BYTES: usize = 1 << 20;

/// A buffer pool.
#[derive(Debug)]
pub struct Pool {
    name: String,
    frame_bytes: usize,
    limit_bytes: usize,
    state: Mutex<PoolState>,
}

#[derive(Debug, Default)]
pub(crate) struct PoolState {
    /// First units of its chunks.
    pub(crate) chunks: Vec<u32>,
    pub(crate) free: Vec<u32>,
    /// Frames of pages that scans brought in, oldest first. A frame whose page has left since may be here too.
    ring: VecDeque<u32>,
    hand_chunk: usize,
    hand_frame: u32,
}

impl Pool {
    pub(crate) fn new(name: String, frame_bytes: usize, limit_bytes: usize) -> Pool {
        Pool { name, frame_bytes, limit_bytes: limit_bytes.max(CHUNK_BYTES), state: Mutex::default() }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of a frame.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    /// The most memory it takes.
    #[must_use]
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Memory it has taken.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.state.lock().chunks.len() * CHUNK_BYTES
    }

    pub(crate) fn units_per_frame(&self) -> u32 {
        (self.frame_bytes / UNIT_BYTES) as u32
    }

    pub(crate) fn frames_per_chunk(&self) -> u32 {
        (CHUNK_BYTES / self.frame_bytes) as u32
    }

    /// Frames it can have.
    #[must_use]
    pub fn frames_max(&self) -> usize {
        self.limit_bytes / CHUNK_BYTES * self.frames_per_chunk() as usize
    }

    pub(crate) fn state(&self) -> parking_lot::MutexGuard<'_, PoolState> {
        self.state.lock()
    }

    /// A free frame, if there is one.
    pub(crate) fn pop_free(&self) -> Option<u32> {
        self.state.lock().free.pop()
    }

    /// A frame's page has left.
    pub(crate) fn push_free(&self, unit: u32) {
        self.state.lock().free.push(unit);
    }

    /// May it take another chunk?
    pub(crate) fn below_limit(&self) -> bool {
        (self.state.lock().chunks.len() + 1) * CHUNK_BYTES <= self.limit_bytes
    }

    pub(crate) fn chunk_count(&self) -> usize {
        self.state.lock().chunks.len()
    }

    /// Adds a chunk, and gives its first frame to the caller; the others are free.
    pub(crate) fn add_chunk(&self, first_unit: u32) -> u32 {
        let mut state = self.state.lock();
        state.chunks.push(first_unit);
        let step = self.units_per_frame();
        state.free.extend((1..self.frames_per_chunk()).rev().map(|frame| first_unit + frame * step));
        first_unit
    }

    /// A scan has brought a page into this frame.
    pub(crate) fn push_ring(&self, unit: u32) {
        let mut state = self.state.lock();
        // Where there are free frames nobody takes from the ring, and it would grow for ever.
        if state.ring.len() >= self.frames_max() {
            state.ring.pop_front();
        }
        state.ring.push_back(unit);
    }

    /// The oldest frame of the ring, when the ring is long enough.
    pub(crate) fn pop_ring(&self) -> Option<u32> {
        let mut state = self.state.lock();
        let enough = (RING_BYTES / self.frame_bytes).min(state.chunks.len() * self.frames_per_chunk() as usize / 4);
        if state.ring.len() > enough { state.ring.pop_front() } else { None }
    }

    /// The frame that the clock's hand points to; the hand moves on.
    pub(crate) fn next_candidate(&self) -> Option<u32> {
        let mut state = self.state.lock();
        if state.chunks.is_empty() {
            return None;
        }
        if state.hand_chunk >= state.chunks.len() {
            state.hand_chunk = 0;
            state.hand_frame = 0;
        }
        let unit = state.chunks[state.hand_chunk] + state.hand_frame * self.units_per_frame();
        state.hand_frame += 1;
        if state.hand_frame == self.frames_per_chunk() {
            state.hand_frame = 0;
            state.hand_chunk += 1;
        }
        Some(unit)
    }
}

//! Who gets a frame, and which page leaves for it.
//!
//! Invariants:
//! - whoever asks for a frame gets one, or an error, in bounded time: pages that others have latched are not waited for without end;
//! - a chunk changes hands when all its pages have left;
//! - whose turn it is (`reserve.rs`) takes no page from memory but of earlier turns. All others may take any page that nobody has latched, the
//!   last chunk of another pool too: so they may drive each other's pages out, and it is for them to wait for their turn then.

use super::manager::{Access, BufferManager};
use super::reserve::Turn;
use crate::data_set::DataSet;
use crate::frames::{CHUNK_BYTES, Evict, Eviction, Pool, add};
use crate::{Error, Result};
use std::cmp::Reverse;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Dirty pages met on the way that make the search stop and write them.
const DIRTY_CANDIDATES: usize = 64;

/// How many frames a scan looks at for one without uses before it takes one with.
const SCAN_CANDIDATES: usize = 64;

/// How many times an empty-handed search for a frame is repeated, with a pause, before it fails.
const FRAME_TRIES: u32 = 1000;

/// Of these so many are made at once, the rest with a pause in between.
const FRAME_YIELDS: u32 = 300;
const FRAME_PAUSE: Duration = Duration::from_millis(1);

impl BufferManager {
    /// A frame for a page of this pool: of the reserve, where it is the caller's turn.
    pub(super) fn acquire_frame(&self, pool: &Pool, access: Access, turn: Option<&Turn<'_>>) -> Result<u32> {
        for attempt in 0..FRAME_TRIES {
            let found = match turn {
                Some(turn) => self.reserved_frame(pool, turn)?,
                None => self.frame_of_pool(pool, access)?,
            };
            if let Some(unit) = found {
                return Ok(unit);
            }
            match attempt {
                0..10 => {}
                10..FRAME_YIELDS => std::thread::yield_now(),
                // Those who have the frames may not be running.
                _ => self.clock.sleep(FRAME_PAUSE),
            }
        }
        Err(Error::PoolFull(pool.name().into()))
    }

    /// A frame whose page has left, or never came.
    pub(super) fn give_frame_back(&self, pool: &Pool, unit: u32) {
        if self.reserve.has(unit) { self.reserve.give_back(unit) } else { pool.push_free(unit) }
    }

    fn frame_of_pool(&self, pool: &Pool, access: Access) -> Result<Option<u32>> {
        if let Some(unit) = pool.pop_free() {
            return Ok(Some(unit));
        }
        let may_grow = pool.below_limit();
        if may_grow {
            // Whoever gets a chunk has one of its frames at once: others may be quick to take all that are free.
            if let Some(first_unit) = self.arena.take_chunk() {
                if self.arena.wants_touch() {
                    self.background().request_touch();
                }
                return Ok(Some(pool.add_chunk(first_unit)));
            }
            if self.below_share(pool)
                && let Some(first_unit) = self.steal_chunk(pool)?
            {
                return Ok(Some(pool.add_chunk(first_unit)));
            }
        }
        if let Some(unit) = self.evict_one(pool, access)? {
            return Ok(Some(unit));
        }
        let stolen = if may_grow { self.steal_chunk(pool)? } else { None };
        Ok(stolen.map(|first_unit| pool.add_chunk(first_unit)))
    }

    /// A frame of the reserve; the pages of earlier turns leave for it if need be.
    fn reserved_frame(&self, pool: &Pool, turn: &Turn<'_>) -> Result<Option<u32>> {
        let units = pool.units_per_frame();
        if let Some(unit) = self.reserve.take(units, turn) {
            return Ok(Some(unit));
        }
        let mut dirty = Vec::new();
        for unit in self.reserve.of_earlier_turns(turn) {
            match self.try_evict(None, unit, Evict::Force) {
                (Eviction::Evicted, _) => self.reserve.give_back(unit),
                (Eviction::Dirty, Some(page)) => dirty.push(page),
                _ => {}
            }
        }
        self.write_for_frames(dirty)?;
        Ok(self.reserve.take(units, turn))
    }

    /// Has the pool fewer chunks than its share, were the arena divided equally among the pools in use?
    fn below_share(&self, pool: &Pool) -> bool {
        let pools = self.pools.read();
        let in_use = pools.iter().filter(|p| p.chunk_count() > 0).count().max(1);
        let share = self.settings.memory_bytes / CHUNK_BYTES / (in_use + usize::from(pool.chunk_count() == 0));
        pool.chunk_count() < share
    }

    /// Makes a page leave. For a scan the oldest of the ring, else one without uses, else any; otherwise the clock decides.
    fn evict_one(&self, pool: &Pool, access: Access) -> Result<Option<u32>> {
        let mut dirty = Vec::new();
        while access == Access::Scan
            && let Some(unit) = pool.pop_ring()
        {
            match self.try_evict(Some(pool), unit, Evict::Unused) {
                (Eviction::Evicted, _) => return Ok(Some(unit)),
                (Eviction::Dirty, Some(page)) => dirty.push(page),
                _ => {}
            }
        }
        let frames = pool.chunk_count() * pool.frames_per_chunk() as usize;
        let rounds: &[(Evict, usize)] = match access {
            Access::Scan => &[(Evict::Unused, SCAN_CANDIDATES), (Evict::Force, SCAN_CANDIDATES), (Evict::Clock, 4 * frames + 8)],
            Access::Random => &[(Evict::Clock, 4 * frames + 8)],
        };
        for (how, most) in rounds {
            for _ in 0..*most {
                let Some(unit) = pool.next_candidate() else { break };
                match self.try_evict(Some(pool), unit, *how) {
                    (Eviction::Evicted, _) => return Ok(Some(unit)),
                    (Eviction::Dirty, Some(page)) if dirty.len() < DIRTY_CANDIDATES => dirty.push(page),
                    _ => {}
                }
                if dirty.len() == DIRTY_CANDIDATES {
                    break;
                }
            }
        }
        self.write_for_frames(dirty)?;
        Ok(None)
    }

    /// Takes the page of a frame out of memory if it is one of this pool: the frame's chunk may have gone to another pool since the frame was chosen (by the ring, or the clock's hand). Without a
    /// pool: of whatever pool it is.
    fn try_evict(&self, pool: Option<&Pool>, unit: u32, how: Evict) -> (Eviction, Option<(Arc<DataSet>, u32)>) {
        let owner = self.owners[unit as usize].load(Ordering::Acquire);
        let page = owner as u32;
        let Some(data_set) = self.data_sets.read().get(&((owner >> 32) as u32)).and_then(Weak::upgrade) else {
            return (Eviction::Kept, None);
        };
        let word = data_set.translation.get_or_make(page);
        let mut outcome = Eviction::Kept;
        for (second, own) in data_set.pools.iter().enumerate() {
            if outcome == Eviction::Kept && pool.is_none_or(|pool| std::ptr::eq(&raw const **own, pool)) {
                outcome = word.try_evict(unit, second == 1, how);
            }
        }
        (outcome, Some((data_set, page)))
    }

    /// Takes a chunk from the pool that has most, for one that needs it. One that has none takes it from any, if need be the last: there may be more pools than chunks.
    fn steal_chunk(&self, for_pool: &Pool) -> Result<Option<u32>> {
        let own = for_pool.chunk_count();
        let mut victims = self.pools();
        victims.retain(|pool| pool.name() != for_pool.name() && pool.chunk_count() > own.max(usize::from(own > 0)));
        if own == 0 {
            // Another one each time: two pools that are needed together should not take each other's.
            let turns = self.last_victim.fetch_add(1, Ordering::Relaxed) % victims.len().max(1);
            victims.rotate_left(turns);
        } else {
            victims.retain(|pool| pool.chunk_count() > 1);
        }
        victims.sort_by_key(|pool| Reverse(pool.chunk_count()));
        victims.truncate(if own == 0 { usize::MAX } else { 1 });
        for victim in victims {
            let chunks = victim.state().chunks.clone();
            for first_unit in chunks {
                let mut dirty = Vec::new();
                for _ in 0..2 {
                    if self.empty_chunk(&victim, first_unit, &mut dirty) {
                        self.steals.fetch_add(1, Ordering::Relaxed);
                        return Ok(Some(first_unit));
                    }
                    self.write_for_frames(std::mem::take(&mut dirty))?;
                }
            }
        }
        Ok(None)
    }

    /// Tries to evict every page of a chunk; on success the chunk belongs to nobody.
    fn empty_chunk(&self, pool: &Pool, first_unit: u32, dirty: &mut Vec<(Arc<DataSet>, u32)>) -> bool {
        let units: Vec<u32> = (0..pool.frames_per_chunk()).map(|frame| first_unit + frame * pool.units_per_frame()).collect();
        let mut taken = {
            let mut state = pool.state();
            let of_chunk: Vec<u32> = state.free.iter().copied().filter(|unit| units.contains(unit)).collect();
            state.free.retain(|unit| !units.contains(unit));
            of_chunk
        };
        for unit in &units {
            if !taken.contains(unit) {
                match self.try_evict(Some(pool), *unit, Evict::Force) {
                    (Eviction::Evicted, _) => taken.push(*unit),
                    (Eviction::Dirty, Some(page)) => dirty.push(page),
                    _ => {}
                }
            }
        }
        let mut state = pool.state();
        if taken.len() == units.len() {
            state.chunks.retain(|chunk| *chunk != first_unit);
            true
        } else {
            state.free.extend(taken);
            false
        }
    }

    /// Writes dirty pages because their frames are wanted.
    fn write_for_frames(&self, mut pages: Vec<(Arc<DataSet>, u32)>) -> Result<()> {
        pages.sort_unstable_by_key(|(data_set, page)| (data_set.file_id(), *page));
        for group in pages.chunk_by(|a, b| a.0.file_id() == b.0.file_id()) {
            let mut numbers: Vec<u32> = group.iter().map(|(_, page)| *page).collect();
            // Ring and clock may have met the same page.
            numbers.dedup();
            // Busy ones are in the list of dirty pages still.
            let writes = self.write_pages(&group[0].0, &numbers, &mut Vec::new())?;
            add(&group[0].0.counters.synchronous_writes, writes);
        }
        Ok(())
    }
}

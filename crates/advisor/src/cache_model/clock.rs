//! One pool with the replacement that the engine has: a clock with small use counters (`engine/src/pool/replacement.rs`, `engine/src/frames/word.rs`).
//!
//! A page that is read gets two uses, and a third as the descent that missed it comes again; each further request is one more, up to three. The hand takes a use away where there is one, and takes
//! the page where there is none.
//!
//! Where only a part of the pages is simulated, a pool with as small a part of the frames stands for the whole one (Waldspurger, Saemundsson, Ahmad, Park: Cache modeling and optimization using
//! miniature simulations, USENIX ATC 2017).
//!
//! Invariant: a page is in one frame at most, and `frame_of` says in which.

use std::collections::HashMap;

const USES_MAX: u8 = 3;

/// A pool of so many frames.
#[derive(Clone, Debug)]
pub struct ClockPool {
    frames: Vec<(u64, u8)>,
    frames_max: usize,
    frame_of: HashMap<u64, usize>,
    hand: usize,
}

impl ClockPool {
    /// An empty pool.
    #[must_use]
    pub fn new(frames: usize) -> ClockPool {
        ClockPool { frames: Vec::new(), frames_max: frames, frame_of: HashMap::new(), hand: 0 }
    }

    /// The page is asked for. Was it there?
    pub fn request(&mut self, page: u64) -> bool {
        if let Some(frame) = self.frame_of.get(&page) {
            let uses = &mut self.frames[*frame].1;
            *uses = (*uses + 1).min(USES_MAX);
            return true;
        }
        if self.frames_max == 0 {
            return false;
        }
        if self.frames.len() < self.frames_max {
            self.frame_of.insert(page, self.frames.len());
            self.frames.push((page, USES_MAX));
            return false;
        }
        loop {
            let frame = self.hand;
            self.hand = (self.hand + 1) % self.frames_max;
            let (there, uses) = &mut self.frames[frame];
            if *uses > 0 {
                *uses -= 1;
                continue;
            }
            self.frame_of.remove(there);
            (*there, *uses) = (page, USES_MAX);
            self.frame_of.insert(page, frame);
            return false;
        }
    }

    /// Pages that are there.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// None?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Has every frame a page?
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.frames.len() >= self.frames_max
    }
}

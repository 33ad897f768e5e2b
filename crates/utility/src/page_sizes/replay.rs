//! What a pool would hit: the requests of a key trace, on the pages that the keys would lie on.
//!
//! A pool is simulated with the engine's replacement (`ClockPool`): the first half of the trace fills it, the second half is counted. Beside that stack distances give the hit ratio of pools of all
//! sizes that forget the least recently used page.
//!
//! Of a trace that has a part of the keys only those leaves are simulated of which it has all keys, in as small a part of the frames. Pages above the leaves reach over what was recorded; they are
//! asked for so much more often than leaves that they are taken to be in memory, and their frames are not the leaves'. A folded index has them in a pool of their own, which grows at the cost of
//! the leaves' until it holds them.

use pagefold_advisor::{ClockPool, DistanceCounts, IndexCandidate, LevelPlaces, MissRatioCurve, NOT_SAMPLED, StackDistances};
use pagefold_format::index::header::FOLDED_PAGE_BYTES;
use pagefold_format::key_trace::KeyTrace;

/// Pools take memory in chunks of this (`docs/buffer-pools.md`).
const CHUNK_BYTES: u64 = 256 << 10;

/// What a pool of so many bytes would hit.
#[derive(Clone, Debug)]
pub struct PoolForecast {
    /// Bytes of the pool.
    pub pool_bytes: u64,
    /// Frames that leaves have of it.
    pub leaf_frames: u64,
    /// Leaves, of all of them, that the forecast is from.
    pub leaves_sampled: u64,
    /// The part of the requests that finds its leaf in memory.
    pub hit_ratio: f64,
    /// Pages read for a request.
    pub reads_per_request: f64,
    /// Pages read a second, at as many requests a second as there were; none when the trace does not say.
    pub reads_per_s: Option<f64>,
    /// Requests of the trace.
    pub requests: f64,
    /// Requests a second; none when the trace does not say.
    pub requests_per_s: Option<f64>,
    /// Were there requests enough to fill the pool, or for all leaves, before those that count?
    pub is_warm: bool,
    /// Hit ratio of leaves for any number of frames, by least recently used, from an empty pool on.
    pub curve: MissRatioCurve,
    format: FrameNeeds,
}

impl PoolForecast {
    /// Pages read for a request with a pool of so many bytes that forgets the least recently used page, once each page has been read.
    #[must_use]
    pub fn reads_with(&self, pool_bytes: u64) -> f64 {
        if pool_bytes < CHUNK_BYTES {
            return 1.0;
        }
        let frames = self.format.frames(pool_bytes).leaves;
        // In a pool that they share with the leaves pages above them have frames, too.
        let leaves = if self.format.shares { frames.saturating_sub(self.format.upper) } else { frames };
        (1.0 - self.curve.hit_ratio(leaves) - self.curve.first_ratio()).max(0.0)
    }
}

/// What decides how many frames leaves have.
#[derive(Clone, Copy, Debug)]
struct FrameNeeds {
    page_bytes: u64,
    folds: bool,
    /// Pages above the leaves.
    upper: u64,
    /// They are simulated with the leaves.
    shares: bool,
}

/// Frames of leaves and, where pages above them come and go in the same pool, whether they do.
struct Frames {
    leaves: u64,
    shares_with_upper: bool,
}

impl FrameNeeds {
    fn of(candidate: &IndexCandidate, levels: &[LevelPlaces]) -> FrameNeeds {
        FrameNeeds {
            page_bytes: candidate.page_bytes as u64,
            folds: candidate.folds(),
            upper: levels.iter().skip(1).map(|level| level.pages).sum(),
            shares: !candidate.folds() && levels.iter().all(|level| level.pages_sampled == level.pages),
        }
    }

    fn frames(&self, pool_bytes: u64) -> Frames {
        let chunks = (pool_bytes / CHUNK_BYTES).max(1);
        let per_chunk = CHUNK_BYTES / self.page_bytes;
        let of_upper = if self.folds { (self.upper * FOLDED_PAGE_BYTES as u64).div_ceil(CHUNK_BYTES).min(chunks / 2) } else { 0 };
        let all = (chunks - of_upper).max(1) * per_chunk;
        let leaves = if self.folds || self.shares { all } else { all.saturating_sub(self.upper).max(1) };
        Frames { leaves, shares_with_upper: self.shares }
    }
}

/// Puts the requests of a trace to a pool for an index whose keys lie on these pages of each level; none when the trace says nothing about it.
#[must_use]
pub fn forecast(trace: &KeyTrace, candidate: &IndexCandidate, levels: &[LevelPlaces], pool_bytes: u64) -> Option<PoolForecast> {
    let leaves = levels.first().filter(|leaves| leaves.pages_sampled > 0)?;
    if trace.references.is_empty() || trace.requests_seen == 0 {
        return None;
    }
    let format = FrameNeeds::of(candidate, levels);
    let rate = leaves.pages_sampled as f64 / leaves.pages as f64;
    let Frames { leaves: leaf_frames, shares_with_upper } = format.frames(pool_bytes);
    let pool_frames = ((leaf_frames as f64 * rate).round() as usize).max(1);
    let mut pool = ClockPool::new(pool_frames);
    let (mut distances, mut counts) = (StackDistances::default(), DistanceCounts::default());
    let half = trace.references.len() / 2;
    let (mut leaf_misses, mut upper_misses, mut is_warm) = (0u64, 0u64, false);
    for (at, key) in trace.references.iter().enumerate() {
        if at == half {
            is_warm = pool.is_full() || pool.len() as u64 >= leaves.pages_sampled;
        }
        let counted = u64::from(at >= half);
        if shares_with_upper {
            for (level, places) in levels.iter().enumerate().skip(1).rev() {
                let page = (level as u64) << 32 | u64::from(places.page_of[*key as usize]);
                upper_misses += counted * u64::from(!pool.request(page));
            }
        }
        let page = leaves.page_of[*key as usize];
        if page != NOT_SAMPLED {
            leaf_misses += counted * u64::from(!pool.request(u64::from(page)));
            counts.add(distances.request(u64::from(page)));
        }
    }
    // Requests that the sample lacks, or has too many of, are for the hottest pages: hits.
    let requests = trace.requests_seen as f64 * (trace.references.len() - half) as f64 / trace.references.len() as f64;
    let leaf_reads = (leaf_misses as f64 / (requests * rate)).min(1.0);
    let reads_per_request = leaf_reads + upper_misses as f64 / requests;
    let requests_per_s = (trace.elapsed_ns > 0).then(|| trace.requests as f64 * 1e9 / trace.elapsed_ns as f64);
    Some(PoolForecast {
        pool_bytes,
        leaf_frames,
        leaves_sampled: leaves.pages_sampled,
        hit_ratio: 1.0 - leaf_reads,
        reads_per_request,
        reads_per_s: requests_per_s.map(|per_s| per_s * reads_per_request),
        requests: trace.requests as f64,
        requests_per_s,
        is_warm,
        format,
        curve: counts.curve(trace.requests_seen as f64, rate),
    })
}

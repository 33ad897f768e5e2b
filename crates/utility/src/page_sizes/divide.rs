//! One memory for several indexes: which page size and format each of them has, and how much of the memory, so that they read least together.
//!
//! What each would read is from the stack distances of its trace: of pools that forget the least recently used page, once each page has been read. The engine's replacement differs from that by a
//! point or two of the hit ratio; which division is best hardly depends on it.

use super::{PageSizeLine, PageSizeReport, PoolForecast};
use pagefold_advisor::{IndexCandidate, StoredAs, assign};

/// Memory is divided in so many parts at most.
const UNITS_MAX: u64 = 512;
const CHUNK_BYTES: u64 = 256 << 10;

/// What one index gets.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexAssignment {
    /// The index.
    pub index: String,
    /// Its format and page size.
    pub candidate: IndexCandidate,
    /// Bytes of its pool.
    pub pool_bytes: u64,
    /// Pages read a second; of a trace that does not say how long it took, pages read for all its requests.
    pub reads: f64,
    /// The same, as the index is now, in that pool.
    pub reads_now: f64,
    /// Bytes of its pages.
    pub size_bytes: u64,
}

/// The best division of so many bytes among the indexes of these reports, each made with a trace; `None` when one was made without.
#[must_use]
pub fn divide_memory(reports: &[PageSizeReport], memory_bytes: u64) -> Option<Vec<IndexAssignment>> {
    let chunks = (memory_bytes / CHUNK_BYTES).max(1);
    let unit_bytes = chunks.div_ceil(UNITS_MAX) * CHUNK_BYTES;
    let units = (memory_bytes / unit_bytes) as usize;
    let pool_bytes = |units: usize| units as u64 * unit_bytes;
    let mut objects = Vec::with_capacity(reports.len());
    for report in reports {
        let lines: Vec<(&PageSizeLine, &PoolForecast)> =
            report.lines.iter().filter_map(|line| Some((line, line.forecast.as_ref()?))).collect();
        let way = |(line, forecast): &(&PageSizeLine, &PoolForecast)| StoredAs {
            reads: (0..=units).map(|n| forecast.reads_with(pool_bytes(n)) * requests(forecast)).collect(),
            size_bytes: line.estimate.size_bytes(),
        };
        let ways: Vec<StoredAs> = lines.iter().map(way).collect();
        objects.push((report, lines, ways));
    }
    let ways: Vec<Vec<StoredAs>> = objects.iter().map(|(_, _, ways)| ways.clone()).collect();
    let mut assignments = Vec::with_capacity(reports.len());
    for ((report, lines, _), own) in objects.iter().zip(assign(&ways, units)?) {
        let estimate = &lines[own.way].0.estimate;
        let now = report.lines[report.present].forecast.as_ref();
        assignments.push(IndexAssignment {
            index: report.index.clone(),
            candidate: estimate.candidate,
            pool_bytes: pool_bytes(own.units),
            reads: own.reads,
            reads_now: now.map_or(f64::NAN, |now| now.reads_with(pool_bytes(own.units)) * requests(now)),
            size_bytes: estimate.size_bytes(),
        });
    }
    Some(assignments)
}

fn requests(forecast: &PoolForecast) -> f64 {
    forecast.requests_per_s.unwrap_or(forecast.requests)
}

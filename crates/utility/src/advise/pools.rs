//! One memory for all objects: how much of it each gets, and in which way each is stored, so that the workload takes least time.
//!
//! What an object reads in a pool of some size is known from a key trace, where there is one of it (`page_sizes`). Without one requests are taken to be spread evenly: then a pool that holds a part of
//! the pages hits that part of the requests. Scans read every page of what does not fit. Memory is divided exactly, by dynamic programming (`assign`).
//!
//! Invariant: what objects get together is no more than there is.

use super::objects::{Advised, Decided, ObjectAdvice, ObjectKind};
use super::{AdviseOptions, PoolShare};
use crate::page_sizes::{PageSizeOptions, PoolForecast, page_sizes};
use crate::{Progress, Result};
use pagefold_advisor::{Goal, Operations, StoredAs, Way, assign, decide};
use pagefold_engine::database::Database;

/// Memory is divided in so many parts at most.
const UNITS_MAX: u64 = 512;
/// Pools take memory in chunks of this (`docs/buffer-pools.md`).
const CHUNK_BYTES: u64 = 256 << 10;

/// What one object reads in one way.
struct Reads {
    /// From a trace.
    forecast: Option<PoolForecast>,
    /// Requests for single pages, and pages of all scans.
    requests: f64,
    scanned: f64,
    memory_bytes: f64,
}

impl Reads {
    fn of(way: &Way, operations: &Operations, rows: u64, forecast: Option<PoolForecast>) -> Reads {
        // Inserts into a table that ascend come to few pages; those into an index come to any.
        let Operations { lookups, snapshot_lookups, updates, deletes, inserts, .. } = operations;
        let requests = [lookups, snapshot_lookups, updates, deletes, inserts].into_iter().map(|count| *count as f64).sum();
        let pages = way.size_bytes.value as f64 / way.disk_page_bytes as f64;
        let scans = operations.rows_scanned as f64 / rows.max(1) as f64;
        Reads { forecast, requests, scanned: scans * pages, memory_bytes: way.memory_bytes.max(1) as f64 }
    }

    /// Pages read with a pool of so many bytes.
    fn with(&self, pool_bytes: u64) -> f64 {
        let missing = (1.0 - pool_bytes as f64 / self.memory_bytes).max(0.0);
        let single = self.forecast.as_ref().map_or(missing, |forecast| forecast.reads_with(pool_bytes).min(1.0));
        let scanned = if missing > 0.0 { self.scanned } else { 0.0 };
        self.requests * single + scanned
    }
}

/// What the trace of an index says of its ways; none where there is no trace.
fn forecasts(
    database: &Database,
    object: &ObjectAdvice,
    options: &AdviseOptions,
    progress: &dyn Progress,
) -> Result<Vec<(String, usize, PoolForecast)>> {
    let Some(trace) = options.traces.get(&object.name).filter(|_| object.kind == ObjectKind::Index) else { return Ok(Vec::new()) };
    let asked = PageSizeOptions { trace: Some(trace.clone()), pool_bytes: options.memory_bytes, ..PageSizeOptions::default() };
    let lines = page_sizes(database, &object.name, &asked, progress)?.lines;
    let of_line = |line: crate::PageSizeLine| {
        let candidate = line.estimate.candidate;
        line.forecast.map(|forecast| (candidate.format().to_owned(), candidate.page_bytes, forecast))
    };
    Ok(lines.into_iter().filter_map(of_line).collect())
}

/// Divides the memory among the objects that the workload uses, enters what each would read and how long that takes, and decides anew where time is to be least.
pub(super) fn divide(database: &Database, objects: &mut [ObjectAdvice], options: &AdviseOptions, progress: &dyn Progress) -> Result<()> {
    let Some(workload) = &options.workload else { return Ok(()) };
    let read_s = workload.read_ns().unwrap_or(options.read_ns) / 1e9;
    let chunks = (options.memory_bytes / CHUNK_BYTES).max(1);
    let unit_bytes = chunks.div_ceil(UNITS_MAX) * CHUNK_BYTES;
    let units = (options.memory_bytes / unit_bytes) as usize;
    let mut used = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        let Advised::Decided(decided) = &object.advised else { continue };
        let Some(operations) = workload.objects.get(&object.name).filter(|operations| !operations.is_none()) else { continue };
        let forecasts = forecasts(database, object, options, progress)?;
        let of_way = |way: &Way| {
            let forecast = forecasts.iter().find(|(name, page_bytes, _)| name == way.name && *page_bytes == way.page_bytes);
            Reads::of(way, operations, decided.subject.rows, forecast.map(|(_, _, forecast)| forecast.clone()))
        };
        used.push((at, decided.ways.iter().map(of_way).collect::<Vec<Reads>>(), !forecasts.is_empty()));
    }
    let stored_as = |decided: &Decided, reads: &[Reads], way: usize| {
        let cpu_s = decided.ways[way].cpu_s.unwrap_or(0.0);
        let time = |units: usize| cpu_s + reads[way].with(units as u64 * unit_bytes) * read_s;
        StoredAs { reads: (0..=units).map(time).collect(), size_bytes: decided.ways[way].size_bytes.value }
    };
    // By time any way may be best; by size the way is known, and memory is divided for that.
    let ways_of = |decided: &Decided| match options.goal {
        Goal::Time => (0..decided.ways.len()).collect(),
        Goal::Size => vec![if decided.decision.change { decided.decision.best } else { decided.subject.present }],
    };
    let (mut now, mut then) = (Vec::new(), Vec::new());
    for (at, reads, _) in &used {
        let Advised::Decided(decided) = &objects[*at].advised else { continue };
        now.push(vec![stored_as(decided, reads, decided.subject.present)]);
        then.push(ways_of(decided).into_iter().map(|way| stored_as(decided, reads, way)).collect::<Vec<_>>());
    }
    let (Some(now), Some(then)) = (assign(&now, units), assign(&then, units)) else { return Ok(()) };
    for (number, (at, reads, is_traced)) in used.iter().enumerate() {
        let object = &mut objects[*at];
        let Advised::Decided(decided) = &mut object.advised else { continue };
        let pool_bytes = then[number].units as u64 * unit_bytes;
        for (way, reads) in decided.ways.iter_mut().zip(reads) {
            let count = reads.with(pool_bytes);
            way.reads = Some(count);
            way.time_s = Some(way.cpu_s.unwrap_or(0.0) + count * read_s);
        }
        if options.goal == Goal::Time {
            decided.decision = decide(&decided.subject, &decided.ways, Goal::Time);
        }
        let best = if decided.decision.change { decided.decision.best } else { decided.subject.present };
        let (present, requests) = (&reads[decided.subject.present], reads[best].requests + reads[best].scanned);
        object.pool = Some(PoolShare {
            pool_bytes,
            pool_bytes_now: now[number].units as u64 * unit_bytes,
            reads: reads[best].with(pool_bytes),
            reads_now: present.with(now[number].units as u64 * unit_bytes),
            requests,
            is_traced: *is_traced,
        });
    }
    Ok(())
}

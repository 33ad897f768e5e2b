//! `pagefold page-sizes`

use super::estimate::aligned;
use crate::arguments::PageSizesArguments;
use crate::failure::{Failure, Result};
use crate::session::Session;
use crate::size::{grouped, size_text};
use pagefold::advisor::{IndexCandidate, LevelSaved};
use pagefold::engine::OpenMode;
use pagefold::engine::index::KeyTrace;
use pagefold::io::{OpenOptions, OsStorage, Storage};
use pagefold::utility::{self, IndexAssignment, PageSizeLine, PageSizeOptions, PageSizeReport, PoolForecast};
use serde_json::{Value as Json, json};
use std::path::Path;

/// The largest trace that is read.
const TRACE_FILE_MAX: u64 = 256 << 20;

pub(super) fn run(session: &Session, arguments: &PageSizesArguments) -> Result<()> {
    let PageSizesArguments { indexes, trace, .. } = arguments;
    if !trace.is_empty() && trace.len() != indexes.len() {
        return Err(Failure::Usage(format!("{} of --trace for {} indexes: give one for each, in their order", trace.len(), indexes.len())));
    }
    let traces = trace.iter().map(|path| read_trace(path)).collect::<Result<Vec<KeyTrace>>>()?;
    let pool_bytes = arguments.pool.map_or(session.memory_bytes(), |pool| pool.0);
    let database = session.open(&arguments.database, OpenMode::Read)?;
    let mut traces = traces.into_iter();
    let mut reports = Vec::with_capacity(indexes.len());
    for index in indexes {
        let options = PageSizeOptions {
            sample_pages: arguments.sample_pages,
            seed: arguments.seed,
            pctfree: arguments.pctfree,
            trace: traces.next(),
            pool_bytes,
        };
        reports.push(utility::page_sizes(&database, index, &options, &session.bars)?);
    }
    let division = if reports.len() > 1 { utility::divide_memory(&reports, pool_bytes) } else { None };
    session.bars.clear();
    if session.global.json {
        let division = division.as_ref().map(|all| all.iter().map(assignment_json).collect::<Vec<Json>>());
        return session.print_json(&json!({
            "indexes": reports.iter().map(document).collect::<Vec<Json>>(),
            "division": division,
            "elapsed_s": session.elapsed_s(),
            "cpu_s": session.cpu_s(),
        }));
    }
    let mut out: String = reports.iter().map(|report| text(report) + "\n").collect();
    if let Some(division) = division {
        out += &division_text(&division, pool_bytes);
    }
    session.print(&(out + &format!("{:.2} s\n", session.elapsed_s())))
}

fn assignment_json(own: &IndexAssignment) -> Json {
    json!({
        "index": own.index,
        "format": own.candidate.format(),
        "page_size_bytes": own.candidate.page_bytes,
        "pool_bytes": own.pool_bytes,
        "reads_per_s": own.reads,
        "reads_now_per_s": own.reads_now,
        "size_bytes": own.size_bytes,
    })
}

fn division_text(division: &[IndexAssignment], pool_bytes: u64) -> String {
    let mut rows = vec![["index", "format", "page size", "pool", "reads a second", "as it is now", "size"].map(str::to_owned).to_vec()];
    let reads = |reads: f64| grouped(reads.round() as u64);
    for own in division {
        rows.push(vec![
            own.index.clone(),
            own.candidate.format().to_owned(),
            size_text(own.candidate.page_bytes as u64),
            size_text(own.pool_bytes),
            reads(own.reads),
            reads(own.reads_now),
            size_text(own.size_bytes),
        ]);
    }
    let all = division.iter().map(|own| own.reads).sum();
    let title = format!("With {} of pools together this is best, with {} reads a second:", size_text(pool_bytes), reads(all));
    format!("{title}\n{}", aligned(&rows))
}

pub(super) fn read_trace(path: &Path) -> Result<KeyTrace> {
    let file = OsStorage.open(path, &OpenOptions::read_only())?;
    let bytes = file.len()?;
    if bytes > TRACE_FILE_MAX {
        return Err(Failure::Failed(format!("{}: {} are too many for a key trace", path.display(), size_text(bytes))));
    }
    let mut content = vec![0; bytes as usize];
    pagefold::io::read_exact_at(file.as_ref(), &mut content, 0)?;
    KeyTrace::decode(&content).map_err(|e| Failure::Failed(format!("{}: {e}", path.display())))
}

fn document(report: &PageSizeReport) -> Json {
    json!({
        "index": report.index,
        "columns": report.columns,
        "unique": report.unique,
        "rids": report.rids,
        "sample": report.is_sample,
        "now": {
            "format": report.now.method,
            "page_size_bytes": report.now.page_bytes,
            "levels": report.levels_now,
            "leaf_pages": report.now.data_pages,
            "pages": report.now.pages,
            "size_bytes": report.now.size_bytes,
        },
        "page_sizes": report.lines.iter().map(line_json).collect::<Vec<Json>>(),
        "levels_saved": report.levels_saved.iter().map(saved_json).collect::<Vec<Json>>(),
    })
}

pub(super) fn saved_json(saved: &LevelSaved) -> Json {
    json!({
        "format": saved.candidate.format(),
        "page_size_bytes": saved.candidate.page_bytes,
        "levels": saved.levels,
        "levels_before": saved.levels_before,
        "more_bytes": saved.more_bytes,
        "more_leaf_bytes": saved.more_leaf_bytes,
    })
}

fn line_json(line: &PageSizeLine) -> Json {
    let e = &line.estimate;
    json!({
        "format": e.candidate.format(),
        "page_size_bytes": e.candidate.page_bytes,
        "key_too_long_bytes": e.key_too_long,
        "levels": e.levels,
        "leaf_pages": e.leaf_pages.value,
        "leaf_pages_low": e.leaf_pages.low,
        "leaf_pages_high": e.leaf_pages.high,
        "non_leaf_pages": e.non_leaf_pages,
        "pages": e.pages.value,
        "size_bytes": e.size_bytes(),
        "forecast": line.forecast.as_ref().map(forecast_json),
    })
}

fn forecast_json(forecast: &PoolForecast) -> Json {
    json!({
        "pool_bytes": forecast.pool_bytes,
        "leaf_frames": forecast.leaf_frames,
        "leaves_sampled": forecast.leaves_sampled,
        "hit_ratio": forecast.hit_ratio,
        "reads_per_request": forecast.reads_per_request,
        "reads_per_s": forecast.reads_per_s,
        "is_warm": forecast.is_warm,
    })
}

fn name(candidate: &IndexCandidate) -> String {
    format!("{}, {}", candidate.format(), size_text(candidate.page_bytes as u64))
}

pub(super) fn saved_text(saved: &LevelSaved) -> String {
    let signed = |bytes: i64| format!("{}{}", if bytes < 0 { "-" } else { "+" }, size_text(bytes.unsigned_abs()));
    format!(
        "{}: {} levels where there are {}, for {} on disk and {} for each leaf that is read.\n",
        name(&saved.candidate),
        saved.levels,
        saved.levels_before,
        signed(saved.more_bytes),
        signed(saved.more_leaf_bytes)
    )
}

fn text(report: &PageSizeReport) -> String {
    let unique = if report.unique { ", unique" } else { "" };
    let mut out = format!("Index {} ({}){unique}: {} rows\n", report.index, report.columns, grouped(report.rids));
    out += &format!(
        "Now: {}, pages of {}: {} levels, {} pages, {}\n",
        report.now.method,
        size_text(report.now.page_bytes as u64),
        report.levels_now,
        grouped(report.now.pages),
        size_text(report.now.size_bytes)
    );
    if report.is_sample {
        out += "From a sample of its leaves.\n";
    }
    let forecast = report.lines.iter().find_map(|line| line.forecast.as_ref());
    let mut head = vec!["format", "page size", "levels", "pages above", "leaf pages", "size"];
    if let Some(forecast) = forecast {
        out += &format!("Hits and reads are of a pool of {}.\n", size_text(forecast.pool_bytes));
        head.extend(["hits", "reads for a request", "reads a second"]);
    }
    let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<String>>()];
    for line in &report.lines {
        let e = &line.estimate;
        let mut row = vec![e.candidate.format().to_owned(), size_text(e.candidate.page_bytes as u64)];
        if let Some(bytes) = e.key_too_long {
            row.push(format!("a key of {bytes} bytes is too long"));
            rows.push(row);
            continue;
        }
        row.extend([e.levels.len().to_string(), grouped(e.non_leaf_pages), grouped(e.leaf_pages.value), size_text(e.size_bytes())]);
        if let Some(f) = &line.forecast {
            row.extend([format!("{:.1} %", f.hit_ratio * 100.0), format!("{:.4}", f.reads_per_request)]);
            row.push(f.reads_per_s.map_or("-".into(), |reads| grouped(reads.round() as u64)));
        }
        rows.push(row);
    }
    out += &format!("\n{}", aligned(&rows));
    if report.levels_saved.is_empty() {
        out += "No page size has fewer levels.\n";
    } else {
        out += "The smallest page sizes that save a level:\n";
        report.levels_saved.iter().for_each(|saved| out += &format!("  {}", saved_text(saved)));
    }
    if forecast.is_some_and(|forecast| !forecast.is_warm) {
        out += "The trace is too short to fill the pool: what is said of hits is of a pool that still fills.\n";
    }
    out
}

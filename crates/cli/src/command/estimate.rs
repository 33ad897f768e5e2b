//! `pagefold estimate`

use super::{choice, foreign, page_sizes};
use crate::arguments::EstimateArguments;
use crate::column_list::{column_names, key_columns};
use crate::failure::{Failure, Result};
use crate::session::{Session, find_files, page_bytes};
use crate::size::{grouped, size_text};
use pagefold::advisor::{self, IndexEstimate, Interval, LevelSaved, Saving};
use pagefold::engine::OpenMode;
use pagefold::interchange::{OpenSource, open_source};
use pagefold::io::{OsStorage, Storage};
use pagefold::utility::{self, EstimateOptions, EstimateReport, IndexesEstimate, ObjectNow, Proposal, Scratch};
use serde_json::{Value as Json, json};
use std::sync::Arc;

pub(super) fn run(session: &Session, arguments: &EstimateArguments) -> Result<()> {
    let options = options(session, arguments)?;
    if let [source] = arguments.source.as_slice()
        && let Some((file, table)) = foreign::named(source)
    {
        let only = if table.is_some() { table.into_iter().collect() } else { arguments.tables.clone() };
        return foreign::estimate(session, &file, (&only, arguments.mixed_as_text), &options);
    }
    if !arguments.tables.is_empty() || arguments.mixed_as_text {
        return Err(foreign::not_for_files("--tables and --mixed-as-text"));
    }
    let report = estimate(session, arguments, &options)?;
    session.bars.clear();
    if session.global.json { session.print_json(&document(session, &report)) } else { session.print(&text(session, arguments, &report)) }
}

fn options(session: &Session, arguments: &EstimateArguments) -> Result<EstimateOptions> {
    let proposal = |text: &String| {
        let columns = key_columns(text).map_err(|e| Failure::Usage(format!("--key: {e}")))?;
        Ok(Proposal { name: text.trim().to_owned(), columns, unique: arguments.unique })
    };
    let primary_key = arguments.primary_key.as_deref().map(column_names).transpose();
    Ok(EstimateOptions {
        page_bytes: page_bytes(arguments.page_size),
        method: arguments.compress,
        primary_key: primary_key.map_err(|e| Failure::Usage(format!("--primary-key: {e}")))?.unwrap_or_default(),
        proposals: arguments.key.iter().map(proposal).collect::<Result<Vec<_>>>()?,
        sample_pages: arguments.sample_pages,
        seed: arguments.seed,
        sort_bytes: session.sort_bytes(),
        ..EstimateOptions::default()
    })
}

fn estimate(session: &Session, arguments: &EstimateArguments, options: &EstimateOptions) -> Result<EstimateReport> {
    let [first, rest @ ..] = arguments.source.as_slice() else {
        return Err(Failure::Usage("nothing to estimate".into()));
    };
    let is_directory = OsStorage.list(first).is_ok();
    if !is_directory && arguments.index.is_none() {
        let files = find_files(&arguments.source)?;
        let source_options = OpenSource { csv: arguments.text.options()? };
        let mut source = open_source(&OsStorage, &files, &source_options)?;
        let scratch = Scratch { storage: Arc::new(OsStorage), directory: std::env::temp_dir() };
        return Ok(utility::estimate_source(source.as_mut(), &scratch, options, &session.bars)?);
    }
    let database = session.open(first, OpenMode::Read)?;
    match (&arguments.index, rest) {
        (Some(index), []) => Ok(utility::estimate_index(&database, index, options, &session.bars)?),
        (None, [table]) => Ok(utility::estimate_table(&database, &table.to_string_lossy(), options, &session.bars)?),
        (Some(_), _) => Err(Failure::Usage("with --index only the database is given: pagefold estimate DB --index NAME".into())),
        (None, _) => {
            let first = first.display();
            Err(Failure::Usage(format!("{first} is a directory: give a table (pagefold estimate {first} TABLE) or --index NAME")))
        }
    }
}

fn now_json(now: Option<&ObjectNow>) -> Json {
    now.map_or(Json::Null, |now| {
        json!({
            "method": now.method, "page_size_bytes": now.page_bytes, "pages": now.pages, "data_pages": now.data_pages, "size_bytes": now.size_bytes,
        })
    })
}

fn saving_json(saving: &Saving) -> Json {
    json!({
        "encoding_bytes": saving.encoding_bytes, "free_space_bytes": saving.free_space_bytes,
        "rounding_bytes": saving.rounding_bytes, "other_bytes": saving.other_bytes, "total_bytes": saving.total_bytes(),
    })
}

pub(super) fn document(session: &Session, report: &EstimateReport) -> Json {
    let methods = report.methods.iter().map(|m| {
        let e = &m.estimate;
        json!({
            "method": e.method,
            "page_size_bytes": e.options.page_bytes,
            "dictionary": e.dictionary,
            "pages": e.pages.value,
            "pages_low": e.pages.low,
            "pages_high": e.pages.high,
            "data_pages": e.data_pages.value,
            "dictionary_pages": e.dictionary_pages,
            "large_value_pages": e.large_pages,
            "size_bytes": e.size_bytes(),
            "record_bytes": e.record_bytes,
            "row_bytes": e.row_bytes,
            "compressed_rows": e.compressed_rows,
            "saving": saving_json(&m.saving),
        })
    });
    let indexes = report.indexes.iter().flat_map(|index| index.lines.iter().map(move |line| index_json(index, line)));
    let index_advice = report.indexes.iter().map(|i| {
        json!({
            "name": i.name, "advice": i.advice, "choice": choice::json(i.choice.as_ref()), "now": now_json(i.now.as_ref()),
            "levels_saved": levels_saved(i).iter().map(page_sizes::saved_json).collect::<Vec<Json>>(),
        })
    });
    let sample =
        report.sample.as_ref().map(|s| json!({ "pages": s.pages, "rows": s.rows, "clusters": s.clusters, "all_keys": s.all_keys }));
    json!({
        "object": report.object,
        "rows": report.rows,
        "now": now_json(report.now.as_ref()),
        "sample": sample,
        "methods": methods.collect::<Vec<Json>>(),
        "indexes": indexes.collect::<Vec<Json>>(),
        "advice": report.advice,
        "choice": choice::json(report.choice.as_ref()),
        "index_advice": index_advice.collect::<Vec<Json>>(),
        "elapsed_s": session.elapsed_s(),
        "cpu_s": session.cpu_s(),
    })
}

fn index_json(index: &IndexesEstimate, line: &utility::IndexReportLine) -> Json {
    let e = &line.estimate;
    json!({
        "name": index.name,
        "columns": index.columns,
        "unique": index.unique,
        "duplicates": index.duplicates,
        "format": e.candidate.format(),
        "page_size_bytes": e.candidate.page_bytes,
        "key_too_long_bytes": e.key_too_long,
        "keys": e.keys,
        "rids": e.rids,
        "entry_bytes": e.entry_bytes,
        "stored_bytes": e.stored_bytes,
        "levels": e.levels,
        "leaf_pages": e.leaf_pages.value,
        "leaf_pages_low": e.leaf_pages.low,
        "leaf_pages_high": e.leaf_pages.high,
        "pages": e.pages.value,
        "pages_low": e.pages.low,
        "pages_high": e.pages.high,
        "size_bytes": e.size_bytes(),
        "space_reduction": line.space_reduction,
        "buffer_unused": e.buffer_unused(),
        "saving": saving_json(&line.saving),
    })
}

/// `4,223` or `4,190 to 4,260`.
fn interval(pages: Interval) -> String {
    if pages.low == pages.high {
        grouped(pages.value)
    } else {
        format!("{} ({} to {})", grouped(pages.value), grouped(pages.low), grouped(pages.high))
    }
}

fn percent(part: f64) -> String {
    format!("{:.0} %", 100.0 * part)
}

/// Left-aligned first column, right-aligned others.
pub(super) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> =
        (0..columns).map(|c| rows.iter().filter_map(|r| r.get(c)).map(|t| t.chars().count()).max().unwrap_or(0)).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::from(" ");
        for (i, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width - cell.chars().count());
            line += &if i == 0 { format!(" {cell}{pad}") } else { format!("   {pad}{cell}") };
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

fn words<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.iter().map(|t| (*t).to_owned()).collect()
}

fn text(session: &Session, arguments: &EstimateArguments, report: &EstimateReport) -> String {
    let what = if report.object.is_empty() {
        arguments.source.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    } else {
        format!("\"{}\"", report.object)
    };
    let mut out = format!("Estimate for {what}: {} rows\n", grouped(report.rows));
    if let Some(sample) = &report.sample {
        out += &format!(
            "From a sample of {} rows; in brackets the 95 % interval.{}\n",
            grouped(sample.rows),
            if sample.all_keys { " The keys of all rows were read." } else { "" }
        );
    }
    if let Some(now) = &report.now {
        out += &format!(
            "Now: {}, pages of {}: {} pages, {}\n",
            now.method,
            size_text(now.page_bytes as u64),
            grouped(now.pages),
            size_text(now.size_bytes)
        );
    }
    if !report.methods.is_empty() {
        let first = report.methods[0].estimate.size_bytes();
        let base = report.now.as_ref().map_or(first, |now| now.size_bytes);
        let mut rows = vec![words(["method", "page size", "pages", "size", "share", "from encoding", "free space", "rounding"])];
        for m in &report.methods {
            let e = &m.estimate;
            let signed =
                |bytes: i64| if bytes < 0 { format!("-{}", size_text(bytes.unsigned_abs())) } else { size_text(bytes.unsigned_abs()) };
            rows.push(vec![
                e.method.to_owned(),
                size_text(e.options.page_bytes as u64),
                interval(e.pages),
                size_text(e.size_bytes()),
                percent(e.size_bytes() as f64 / base.max(1) as f64),
                signed(m.saving.encoding_bytes),
                signed(m.saving.free_space_bytes),
                signed(m.saving.rounding_bytes),
            ]);
        }
        out += &format!("\n{}", aligned(&rows));
        out += &format!("\n{}\n", report.advice);
    }
    for index in &report.indexes {
        out += &index_text(index);
    }
    out + &format!("\n{:.2} s\n", session.elapsed_s())
}

fn index_text(index: &IndexesEstimate) -> String {
    let unique = if index.unique { ", unique" } else { "" };
    let mut out = format!("\nIndex {} ({}){unique}\n", index.name, index.columns);
    if index.duplicates > 0 {
        out += &format!("It would be refused: {} rows have a key that another row has.\n", grouped(index.duplicates));
    }
    if let Some(now) = &index.now {
        out += &format!(
            "Now: {}, pages of {}: {} pages, {}\n",
            now.method,
            size_text(now.page_bytes as u64),
            grouped(now.pages),
            size_text(now.size_bytes)
        );
    }
    let mut rows = vec![words(["format", "page size", "levels", "leaf pages", "all pages", "size", "leaf space saved", "buffer unused"])];
    for line in &index.lines {
        let e = &line.estimate;
        let mut row = vec![e.candidate.format().to_owned(), size_text(e.candidate.page_bytes as u64)];
        match e.key_too_long {
            Some(bytes) => row.push(format!("a key of {bytes} bytes is too long")),
            None => row.extend([
                e.levels.len().to_string(),
                interval(e.leaf_pages),
                interval(e.pages),
                size_text(e.size_bytes()),
                percent(line.space_reduction),
                percent(e.buffer_unused()),
            ]),
        }
        rows.push(row);
    }
    out += &aligned(&rows);
    levels_saved(index).iter().for_each(|saved| out += &format!("A level less: {}", page_sizes::saved_text(saved)));
    out + &format!("{}\n", index.advice)
}

/// Which of the page sizes save a level: against what is there now or, for an index that is not there, against plain leaves of 8 KB.
fn levels_saved(index: &IndexesEstimate) -> Vec<LevelSaved> {
    let (format, page_bytes) = index.now.as_ref().map_or(("plain", 8192), |now| (now.method.as_str(), now.page_bytes));
    let estimates: Vec<IndexEstimate> = index.lines.iter().map(|line| line.estimate.clone()).collect();
    let before = estimates.iter().find(|e| e.candidate.format() == format && e.candidate.page_bytes == page_bytes);
    before.map(|before| advisor::levels_saved(&estimates, before)).unwrap_or_default()
}

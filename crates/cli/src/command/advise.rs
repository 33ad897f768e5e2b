//! `pagefold advise`

use super::estimate::aligned;
use super::page_sizes::read_trace;
use crate::arguments::{AdviseArguments, GoalArgument};
use crate::failure::{Failure, Result};
use crate::session::Session;
use crate::size::{grouped, size_text};
use pagefold::advisor::{Finding, Goal, Verdict, Way};
use pagefold::engine::OpenMode;
use pagefold::io::{OpenOptions, OsStorage, Storage, read_exact_at};
use pagefold::utility::{self, AdvicePlan, AdviseOptions, Advised, Applied, Calibration, ObjectAdvice, Totals, Workload};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The largest document that is read.
const DOCUMENT_MAX: u64 = 64 << 20;

/// Reads a document.
fn read<T>(path: &Path, parse: impl Fn(&[u8]) -> utility::Result<T>) -> Result<T> {
    let file = OsStorage.open(path, &OpenOptions::read_only())?;
    let bytes = file.len()?;
    if bytes > DOCUMENT_MAX {
        return Err(Failure::Failed(format!("{}: {} are too many", path.display(), size_text(bytes))));
    }
    let mut content = vec![0; bytes as usize];
    read_exact_at(file.as_ref(), &mut content, 0)?;
    parse(&content).map_err(|e| Failure::Failed(format!("{}: {e}", path.display())))
}

pub(super) fn run(session: &Session, arguments: &AdviseArguments) -> Result<()> {
    if arguments.goal == GoalArgument::Time && arguments.workload.is_none() {
        return Err(Failure::Usage("--goal time: which way takes least time depends on what is done; give --workload FILE".into()));
    }
    let workload = arguments.workload.as_deref().map(|path| read(path, Workload::from_json)).transpose()?;
    let mut traces = BTreeMap::new();
    for trace in &arguments.trace {
        let Some((index, path)) = trace.rsplit_once('=') else {
            return Err(Failure::Usage(format!("--trace {trace}: write INDEX=FILE")));
        };
        traces.insert(index.to_owned(), read_trace(Path::new(path))?);
    }
    let calibration = match &arguments.calibration {
        Some(path) if OsStorage.exists(path)? => read(path, Calibration::from_json)?,
        _ => Calibration::default(),
    };
    let options = AdviseOptions {
        workload,
        calibration,
        only: arguments.objects.clone(),
        goal: if arguments.goal == GoalArgument::Size { Goal::Size } else { Goal::Time },
        sample_pages: (!arguments.all_pages).then_some(arguments.sample_pages),
        seed: arguments.seed,
        memory_bytes: arguments.pools.map_or(session.memory_bytes(), |pools| pools.0),
        traces,
        ..AdviseOptions::default()
    };
    let mode = if arguments.apply { OpenMode::Write } else { OpenMode::Read };
    let database = session.open(&arguments.database, mode)?;
    if let Some(unknown) = options.traces.keys().find(|name| !database.index_names().contains(name)) {
        return Err(Failure::Failed(format!("--trace: there is no index \"{unknown}\"")));
    }
    let plan = utility::advise(&database, &options, &session.bars)?;
    if let Some(path) = arguments.calibration.as_deref().filter(|_| plan.calibration != options.calibration) {
        write_calibration(path, &plan.calibration)?;
    }
    let applied = if arguments.apply { Some(utility::apply_advice(&database, &plan, &session.bars)?) } else { None };
    session.bars.clear();
    let name = arguments.database.display().to_string();
    let told = if session.global.json {
        session.print_json(&document(session, &plan, &options, &name, applied.as_ref()))
    } else {
        session.print(&text(session, &plan, &options, &name, applied.as_ref()))
    };
    match applied {
        None => told,
        Some(applied) => {
            session.told(told)?;
            if applied.failed.is_empty() && applied.left.is_empty() { Ok(()) } else { Err(Failure::Failed(unfinished(&applied))) }
        }
    }
}

/// The file is there whole, or as it was.
fn write_calibration(path: &Path, calibration: &Calibration) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".new");
    let new = path.with_file_name(name);
    let text = format!("{:#}\n", calibration.to_json());
    let written = OsStorage.open(&new, &OpenOptions::create()).and_then(|file| {
        file.set_len(0)?;
        file.write_at(text.as_bytes(), 0)?;
        file.sync()
    });
    written.and_then(|()| OsStorage.rename(&new, path)).map_err(|e| {
        // The reason why it was not written is what is told.
        drop(OsStorage.remove(&new));
        Failure::Failed(format!("{}: {e}", path.display()))
    })
}

/// What of a plan was not done.
fn unfinished(applied: &Applied) -> String {
    let mut parts: Vec<String> = applied.failed.iter().map(|(name, reason)| format!("\"{name}\" is as it was: {reason}")).collect();
    if !applied.left.is_empty() {
        parts.push(format!("not done: {}; what is done stays done, the same command does the rest", applied.left.join(", ")));
    }
    parts.join("; ")
}

/// A command as it is typed.
fn command_line(object: &ObjectAdvice, database: &str) -> Option<String> {
    let arguments = object.command()?;
    let quoted = |argument: &str| {
        let is_plain = !argument.is_empty() && argument.chars().all(|c| c.is_alphanumeric() || "_-./:".contains(c));
        if is_plain { argument.to_owned() } else { format!("'{}'", argument.replace('\'', "'\\''")) }
    };
    let words = arguments.iter().map(|argument| if argument == "DB" { quoted(database) } else { quoted(argument) });
    Some(format!("pagefold {}", words.collect::<Vec<_>>().join(" ")))
}

fn way_json(way: &Way) -> Json {
    json!({
        "name": way.name,
        "page_size_bytes": way.page_bytes,
        "size_bytes": way.size_bytes.value,
        "size_bytes_low": way.size_bytes.low,
        "size_bytes_high": way.size_bytes.high,
        "read_ns": way.cost.map(|cost| cost.read_ns),
        "write_ns": way.cost.map(|cost| cost.write_ns),
        "cpu_s": way.cpu_s,
        "reads": way.reads,
        "time_s": way.time_s,
    })
}

fn finding_json(finding: &Finding, ways: &[Way]) -> Json {
    let way = &ways[finding.way];
    json!({
        "rule": finding.rule,
        "verdict": if finding.verdict == Verdict::Against { "against" } else { "note" },
        "name": way.name,
        "page_size_bytes": way.page_bytes,
        "reason": finding.reason,
    })
}

fn hit_ratio(reads: f64, requests: f64) -> f64 {
    if requests > 0.0 { (1.0 - reads / requests).max(0.0) } else { 1.0 }
}

fn object_json(object: &ObjectAdvice, database: &str) -> Json {
    let mut json = json!({
        "name": object.name,
        "kind": object.kind.to_string(),
        "sample": object.is_sample,
        "now": object.now.as_ref().map(|now| json!({ "name": now.method, "page_size_bytes": now.page_bytes, "size_bytes": now.size_bytes })),
        "change": object.change().is_some(),
        "reason": object.reason(),
        "command": command_line(object, database),
        "damaged": matches!(object.advised, Advised::Damaged(_)),
        "pool": object.pool.map(|pool| json!({
            "pool_bytes": pool.pool_bytes,
            "pool_bytes_now": pool.pool_bytes_now,
            "reads": pool.reads,
            "reads_now": pool.reads_now,
            "hit_ratio": hit_ratio(pool.reads, pool.requests),
            "traced": pool.is_traced,
        })),
    });
    if let Advised::Decided(decided) = &object.advised {
        json["best"] = way_json(&decided.ways[decided.decision.best]);
        json["ways"] = decided.ways.iter().map(way_json).collect();
        json["findings"] = decided.decision.findings.iter().map(|finding| finding_json(finding, &decided.ways)).collect();
    }
    json
}

fn document(session: &Session, plan: &AdvicePlan, options: &AdviseOptions, database: &str, applied: Option<&Applied>) -> Json {
    let per_s = |reads: f64| options.workload.as_ref().and_then(|workload| workload.elapsed_s).filter(|s| *s > 0.0).map(|s| reads / s);
    let total = |total: &Totals| json!({ "size_bytes": total.size_bytes, "cpu_s": total.cpu_s, "reads": total.reads, "reads_per_s": per_s(total.reads) });
    json!({
        "pools_bytes": options.memory_bytes,
        "objects": plan.objects.iter().map(|object| object_json(object, database)).collect::<Vec<_>>(),
        "commands": plan.steps().filter_map(|object| command_line(object, database)).collect::<Vec<_>>(),
        "before": total(&plan.before),
        "after": total(&plan.after),
        "applied": applied.map(|applied| json!({
            "done": applied.done.iter().map(|(name, report)| json!({
                "name": name, "size_bytes_before": report.size_bytes_before, "size_bytes": report.size_bytes,
            })).collect::<Vec<_>>(),
            "failed": applied.failed.iter().map(|(name, reason)| json!({ "name": name, "reason": reason })).collect::<Vec<_>>(),
            "left": applied.left,
        })),
        "elapsed_s": session.elapsed_s(),
        "cpu_s": session.cpu_s(),
    })
}

fn text(session: &Session, plan: &AdvicePlan, options: &AdviseOptions, database: &str, applied: Option<&Applied>) -> String {
    let has_pools = plan.objects.iter().any(|object| object.pool.is_some());
    let mut head = vec!["", "", "now", "", "best", ""];
    if has_pools {
        head.extend(["pool", "hits", "reads", "reads now"]);
    }
    let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    let way = |name: &str, page_bytes: usize| format!("{name} of {}", size_text(page_bytes as u64));
    for object in &plan.objects {
        let mut row = vec![object.name.clone(), object.kind.to_string()];
        if let Some(now) = &object.now {
            row.extend([way(&now.method, now.page_bytes), size_text(now.size_bytes)]);
        }
        match object.change() {
            Some(best) => row.extend([way(best.name, best.page_bytes), size_text(best.size_bytes.value)]),
            None if object.now.is_some() => row.extend(["stays".to_owned(), String::new()]),
            None => {}
        }
        if let Some(pool) = &object.pool {
            let count = |reads: f64| grouped(reads.round() as u64);
            let hits = format!("{:.1} %", 100.0 * hit_ratio(pool.reads, pool.requests));
            row.extend([size_text(pool.pool_bytes), hits, count(pool.reads), count(pool.reads_now)]);
        }
        rows.push(row);
    }
    let mut out = aligned(&rows);
    out += &format!("\nAll together: {} now, {} then.\n", size_text(plan.before.size_bytes), size_text(plan.after.size_bytes));
    if plan.before.cpu_s > 0.0 {
        out += &format!("Processors, for the workload: {:.3} s now, {:.3} s then.\n", plan.before.cpu_s, plan.after.cpu_s);
    }
    if has_pools {
        let reads = |reads: f64| match options.workload.as_ref().and_then(|workload| workload.elapsed_s).filter(|s| *s > 0.0) {
            Some(s) => format!("{:.1} times a second", reads / s),
            None => format!("{} times", grouped(reads.round() as u64)),
        };
        let (then, now) = (reads(plan.after.reads), reads(plan.before.reads));
        out += &format!("With {} of pools divided like this it would read {then}; as it is now, {now}.\n", size_text(options.memory_bytes));
    }
    out += "\nWhy:\n";
    for object in &plan.objects {
        out += &format!("  {}: {}\n", object.name, object.reason());
        if let Advised::Decided(decided) = &object.advised {
            let best = &decided.ways[decided.decision.best];
            let is_shown = |finding: &&Finding| {
                let way = &decided.ways[finding.way];
                // Of what is ruled out only what would have been smaller is of interest.
                finding.rule != "too_small" && (finding.verdict == Verdict::Note || way.size_bytes.value < best.size_bytes.value)
            };
            for finding in decided.decision.findings.iter().filter(is_shown) {
                let way = &decided.ways[finding.way];
                out += &format!("    {}: {} [{}]\n", way.label(), finding.reason, finding.rule);
            }
        }
    }
    let commands: Vec<String> = plan.steps().filter_map(|object| command_line(object, database)).collect();
    match applied {
        None if commands.is_empty() => out += "\nNothing is to be done.\n",
        None => out += &format!("\nCommands, or `pagefold advise {database} --apply`:\n  {}\n", commands.join("\n  ")),
        Some(applied) => {
            out += "\nDone:\n";
            for (name, report) in &applied.done {
                out += &format!("  {name}: {} instead of {}\n", size_text(report.size_bytes), size_text(report.size_bytes_before));
            }
            if applied.done.is_empty() {
                out += "  nothing was to be done\n";
            }
        }
    }
    out + &format!("\n{:.2} s\n", session.elapsed_s())
}

//! `pagefold reorg`

use super::choice;
use crate::arguments::ReorgArguments;
use crate::failure::{Failure, Result};
use crate::session::{Session, page_bytes};
use crate::size::{grouped, size_text};
use pagefold::engine::OpenMode;
use pagefold::utility::{self, Costs, Incremental, IncrementalReport, ReorgOptions, ReorgReport};
use serde_json::json;

pub(super) fn run(session: &Session, arguments: &ReorgArguments) -> Result<()> {
    let options = ReorgOptions {
        method: arguments.compress,
        format: arguments.format,
        page_bytes: arguments.page_size.map(page_bytes),
        pctfree: arguments.pctfree,
        keep_dictionary: arguments.keep_dictionary,
        order: arguments.order.clone(),
        costs: Costs::Measured,
        incremental: arguments.incremental.then(|| Incremental { rows_max: arguments.max_rows.map(|rows| rows as usize) }),
        ..ReorgOptions::default()
    };
    let database = session.open(&arguments.database, OpenMode::Write)?;
    let done = utility::reorg(&database, &arguments.object, &options, &session.bars).map_err(|error| match error {
        utility::Error::Interrupted if arguments.incremental => {
            Failure::Failed("interrupted; rows that were moved by then stay where they are now".into())
        }
        error => error.into(),
    })?;
    session.bars.clear();
    let elapsed_s = session.elapsed_s();
    if session.global.json {
        return session.told(session.print_json(&json!({
            "name": arguments.object,
            "rows": done.rows,
            "pages_before": done.pages_before,
            "size_bytes_before": done.size_bytes_before,
            "pages": done.pages,
            "size_bytes": done.size_bytes,
            "reason": choice::reason(done.choice.as_ref()),
            "choice": choice::json(done.choice.as_ref()),
            "incremental": done.incremental.map(|by_parts| json!({
                "rows_moved": by_parts.rows_moved,
                "rows_left": by_parts.rows_left,
                "pages_free": by_parts.pages_free,
                "cut_short": by_parts.is_cut_short,
            })),
            "elapsed_s": elapsed_s,
            "cpu_s": session.cpu_s(),
        })));
    }
    if let Some(by_parts) = done.incremental {
        return session.told(session.print(&told_by_parts(&arguments.object, elapsed_s, &done, by_parts)));
    }
    session.told(session.print(&format!(
        "\"{}\" written anew in {elapsed_s:.2} s ({} rows)\n{}  before: {} pages, {}\n  now:    {} pages, {} ({})",
        arguments.object,
        grouped(done.rows),
        choice::text(done.choice.as_ref()),
        grouped(done.pages_before),
        size_text(done.size_bytes_before),
        grouped(done.pages),
        size_text(done.size_bytes),
        difference(done.size_bytes_before, done.size_bytes)
    )))
}

fn told_by_parts(name: &str, elapsed_s: f64, done: &ReorgReport, by_parts: IncrementalReport) -> String {
    let mut text = format!(
        "\"{name}\": {} rows moved in {elapsed_s:.2} s, {} pages free\n  before: {} data pages, {}\n  now:    {} data pages, {} ({})",
        grouped(by_parts.rows_moved),
        grouped(by_parts.pages_free),
        grouped(done.pages_before),
        size_text(done.size_bytes_before),
        grouped(done.pages),
        size_text(done.size_bytes),
        difference(done.size_bytes_before, done.size_bytes)
    );
    if by_parts.is_cut_short {
        text += "\n  not done: a transaction needs rows as they were; run it again later";
    }
    text
}

fn difference(before: u64, now: u64) -> String {
    if before == 0 || before == now {
        return "the same".to_owned();
    }
    let percent = 100.0 * (now as f64 / before as f64 - 1.0);
    if percent < 0.0 { format!("{:.1} % less", -percent) } else { format!("{percent:.1} % more") }
}

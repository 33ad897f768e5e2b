//! `pagefold reorg`

use super::choice;
use crate::arguments::ReorgArguments;
use crate::failure::Result;
use crate::session::{Session, page_bytes};
use crate::size::{grouped, size_text};
use pagefold::engine::OpenMode;
use pagefold::utility::{self, Costs, ReorgOptions};
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
        ..ReorgOptions::default()
    };
    let database = session.open(&arguments.database, OpenMode::Write)?;
    let done = utility::reorg(&database, &arguments.object, &options, &session.bars)?;
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
            "elapsed_s": elapsed_s,
            "cpu_s": session.cpu_s(),
        })));
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

fn difference(before: u64, now: u64) -> String {
    if before == 0 || before == now {
        return "the same".to_owned();
    }
    let percent = 100.0 * (now as f64 / before as f64 - 1.0);
    if percent < 0.0 { format!("{:.1} % less", -percent) } else { format!("{percent:.1} % more") }
}

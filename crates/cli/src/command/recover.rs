//! `pagefold recover`

use crate::arguments::RecoverArguments;
use crate::arguments::time_text;
use crate::failure::Result;
use crate::progress;
use crate::session::Session;
use crate::size::grouped;
use pagefold::backup::{RecoverOptions, Stop, Until, recover};
use pagefold::engine::OpenMode;
use pagefold::io::{Clock, OsClock, OsStorage, Storage};
use pagefold::utility::{RecoverTablesOptions, recover_tables};
use serde_json::json;
use std::sync::Arc;

pub(super) fn run(session: &Session, arguments: &RecoverArguments) -> Result<()> {
    let until = match (arguments.until, arguments.until_lsn) {
        (Some(time), _) => Until::Time(time),
        (_, Some(lsn)) => Until::Lsn(lsn),
        _ => Until::End,
    };
    let options = RecoverOptions { logs: arguments.log.clone(), until };
    let (storage, clock): (Arc<dyn Storage>, Arc<dyn Clock>) = (Arc::new(OsStorage), Arc::new(OsClock));
    progress::begin_changes();
    if !arguments.table.is_empty() {
        return tables(session, arguments, options);
    }
    let target = &arguments.database;
    let done = recover(&storage, &clock, target, &arguments.copies, &options, session.settings()?, &session.bars)?;
    session.bars.clear();
    let elapsed_s = session.elapsed_s();
    let changed = match done.stop {
        Stop::TablesChanged(time) => Some(time_text(time)),
        Stop::EndOfLog | Stop::Asked => None,
    };
    if session.global.json {
        return session.told(session.print_json(&json!({
            "database": target.display().to_string(),
            "pages": done.pages,
            "log_end": done.log_end,
            "last_commit_time": (done.last_commit_ns > 0).then(|| time_text(done.last_commit_ns)),
            "stopped_before_tables_changed": changed,
            "elapsed_s": elapsed_s,
            "cpu_s": session.cpu_s(),
        })));
    }
    let mut text = format!(
        "{} recovered in {elapsed_s:.2} s: {} pages from copies, log up to position {}",
        target.display(),
        grouped(done.pages),
        done.log_end
    );
    if done.last_commit_ns > 0 {
        text += &format!("\n  last transaction committed at {}", time_text(done.last_commit_ns));
    }
    if done.stop == Stop::EndOfLog && is_short(until, done.log_end) {
        text += "\n  the log ends before what was asked for";
    }
    if let Some(time) = changed {
        text += &format!(
            "\n  the log goes on past a load, reorg, create-index or drop at {time}, which it does not hold; recovered to just before. Take a copy after such commands"
        );
    }
    session.told(session.print(&text))
}

/// Puts tables back into a database.
fn tables(session: &Session, arguments: &RecoverArguments, recover: RecoverOptions) -> Result<()> {
    let (storage, clock): (Arc<dyn Storage>, Arc<dyn Clock>) = (Arc::new(OsStorage), Arc::new(OsClock));
    let directory = &arguments.database;
    let database = session.open(directory, OpenMode::Write)?;
    let (until, settings) = (recover.until, session.settings()?);
    let options = RecoverTablesOptions { recover, replace: arguments.replace, settings, sort_bytes: session.sort_bytes() };
    let seam = (&storage, &clock);
    let done = recover_tables(&database, seam, directory, &arguments.table, &arguments.copies, &options, &session.bars)?;
    database.close()?;
    session.bars.clear();
    let changed = match done.stop {
        Stop::TablesChanged(time) => Some(time_text(time)),
        Stop::EndOfLog | Stop::Asked => None,
    };
    if session.global.json {
        let tables = done.tables.iter().map(|table| {
            json!({
                "name": table.name,
                "rows": table.rows,
                "pages": table.pages,
                "indexes": table.indexes,
                "built_indexes": table.built_indexes,
                "replaced": table.replaced,
            })
        });
        return session.told(session.print_json(&json!({
            "database": directory.display().to_string(),
            "tables": tables.collect::<Vec<_>>(),
            "gone_indexes": done.gone_indexes,
            "log_end": done.log_end,
            "last_commit_time": (done.last_commit_ns > 0).then(|| time_text(done.last_commit_ns)),
            "stopped_before_tables_changed": changed,
            "elapsed_s": session.elapsed_s(),
            "cpu_s": session.cpu_s(),
        })));
    }
    let mut text = String::new();
    for table in &done.tables {
        let what = if table.replaced { "put back in the place of what there was" } else { "put back" };
        text +=
            &format!("Table \"{}\" {what}: {} rows, {} pages with its indexes\n", table.name, grouped(table.rows), grouped(table.pages));
        if !table.built_indexes.is_empty() {
            text += &format!("  built from its rows: {}\n", table.built_indexes.join(", "));
        }
    }
    if !done.gone_indexes.is_empty() {
        text += &format!("  indexes that there were not then are gone: {}\n", done.gone_indexes.join(", "));
    }
    text += &format!("  log up to position {}, {:.2} s", done.log_end, session.elapsed_s());
    if done.stop == Stop::EndOfLog && is_short(until, done.log_end) {
        text += "\n  the log ends before what was asked for";
    }
    if let Some(time) = changed {
        text += &format!("\n  the table was dropped, got another name, or was loaded or reorganized, at {time}; recovered to just before");
    }
    session.told(session.print(&text))
}

/// Does a log that ends here lack something of what was asked for?
fn is_short(until: Until, log_end: u64) -> bool {
    match until {
        Until::End => false,
        Until::Time(_) => true,
        Until::Lsn(lsn) => log_end < lsn,
    }
}

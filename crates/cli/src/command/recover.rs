//! `pagefold recover`

use crate::arguments::RecoverArguments;
use crate::arguments::time_text;
use crate::failure::Result;
use crate::progress;
use crate::session::Session;
use crate::size::grouped;
use pagefold::backup::{RecoverOptions, Stop, Until, recover};
use pagefold::io::{Clock, OsClock, OsStorage, Storage};
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
    if done.stop == Stop::EndOfLog && until != Until::End {
        text += "\n  the log ends before what was asked for";
    }
    if let Some(time) = changed {
        text += &format!(
            "\n  the log goes on past a load, reorg, create-index or drop at {time}, which it does not hold; recovered to just before. Take a copy after such commands"
        );
    }
    session.told(session.print(&text))
}

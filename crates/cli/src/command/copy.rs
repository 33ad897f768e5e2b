//! `pagefold copy`

use super::output_file::check_outside;
use crate::arguments::CopyArguments;
use crate::arguments::time_text;
use crate::failure::{Failure, Result};
use crate::progress;
use crate::session::Session;
use crate::size::{grouped, size_text};
use pagefold::Error;
use pagefold::backup::{copy_tables_to_file, copy_to_directory};
use pagefold::engine::OpenMode;
use pagefold::io::{Clock, OsClock, OsStorage, Storage};
use serde_json::json;
use std::io::ErrorKind;
use std::sync::Arc;

pub(super) fn run(session: &Session, arguments: &CopyArguments) -> Result<()> {
    let (database, target) = (&arguments.database, &arguments.target);
    let is_file = target.extension().is_some_and(|extension| extension == "pfc");
    if !is_file && arguments.incremental.is_some() {
        return Err(Failure::Usage("--incremental makes a file: its name must end with .pfc".into()));
    }
    if !is_file && !arguments.table.is_empty() {
        return Err(Failure::Usage("--table makes a file: its name must end with .pfc".into()));
    }
    if OsStorage.exists(target)? {
        return Err(Failure::Failed(format!("{} already exists", target.display())));
    }
    check_outside(database, target)?;
    progress::begin_changes();
    let settings = session.settings()?;
    // Brought in order and to a checkpoint, unless somebody is writing it, who does that as well.
    match pagefold::engine::open(database, OpenMode::Write, settings) {
        Ok(open) => {
            open.prepare_copy()?;
            open.close()?;
        }
        Err(Error::Locked(..)) => {}
        // What cannot be brought in order here is brought in order in the copy.
        Err(Error::Io(error)) if error.kind() == ErrorKind::ReadOnlyFilesystem => {}
        Err(error) => return Err(error.into()),
    }
    let (storage, clock): (Arc<dyn Storage>, Arc<dyn Clock>) = (Arc::new(OsStorage), Arc::new(OsClock));
    let base = arguments.incremental.as_deref();
    let report = match is_file {
        true => copy_tables_to_file(&storage, &clock, database, target, &arguments.table, base, &session.bars)?,
        false => copy_to_directory(&storage, &clock, database, target, settings, &session.bars)?,
    };
    session.bars.clear();
    let elapsed_s = session.elapsed_s();
    if session.global.json {
        return session.told(session.print_json(&json!({
            "target": target.display().to_string(),
            "tables": (!arguments.table.is_empty()).then_some(&arguments.table),
            "data_sets": report.data_sets,
            "pages": report.pages,
            "page_bytes": report.page_bytes,
            "log_bytes": report.log_bytes,
            "log_end": report.log_end,
            "last_commit_time": (report.last_commit_ns > 0).then(|| time_text(report.last_commit_ns)),
            "size_bytes": report.size_bytes,
            "damaged_indexes": report.damaged_indexes,
            "elapsed_s": elapsed_s,
            "cpu_s": session.cpu_s(),
        })));
    }
    let damaged = match report.damaged_indexes.as_slice() {
        [] => String::new(),
        names => format!("\n  damaged, here and in the copy, until `rebuild-index` builds them anew: {}", names.join(", ")),
    };
    let what = match arguments.table.as_slice() {
        [] => String::new(),
        names => format!("{} of ", names.join(", ")),
    };
    session.told(session.print(&format!(
        "{what}{} copied to {} in {elapsed_s:.2} s\n  {} pages of {} data sets, {} of log, {}{damaged}",
        database.display(),
        target.display(),
        grouped(report.pages),
        grouped(report.data_sets),
        size_text(report.log_bytes),
        size_text(report.size_bytes)
    )))
}

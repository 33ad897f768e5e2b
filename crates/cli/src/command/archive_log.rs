//! `pagefold archive-log`

use super::output_file::check_directory_outside;
use crate::arguments::ArchiveLogArguments;
use crate::failure::Result;
use crate::session::Session;
use pagefold::backup::archive_state;
use pagefold::engine::OpenMode;
use pagefold::io::OsStorage;
use serde_json::json;

pub(super) fn run(session: &Session, arguments: &ArchiveLogArguments) -> Result<()> {
    if arguments.off || arguments.archive.is_some() {
        // The working directory of the next writer is another one.
        let archive = arguments.archive.as_deref().map(std::path::absolute).transpose()?;
        archive.iter().try_for_each(|archive| check_directory_outside(&arguments.database, archive))?;
        let database = session.open(&arguments.database, OpenMode::Write)?;
        database.set_log_archive(archive.as_deref())?;
        database.close()?;
    }
    let state = archive_state(&OsStorage, &arguments.database)?;
    if session.global.json {
        return session.print_json(&json!({
            "archive": state.as_ref().map(|state| state.path.display().to_string()),
            "waiting_segments": state.as_ref().map(|state| state.waiting_segments),
            "problem": state.and_then(|state| state.problem),
        }));
    }
    session.print(&match state {
        None => "the log is not archived".to_owned(),
        Some(state) => {
            let problem = state.problem.map_or_else(String::new, |problem| format!("\n  {problem}: the log stays with the database"));
            format!("the log is archived in {}{problem}", state.path.display())
        }
    })
}

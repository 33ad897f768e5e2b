//! `pagefold report`

use crate::arguments::ReportArguments;
use crate::failure::Result;
use crate::session::Session;
use pagefold::engine::OpenMode;
use pagefold::utility;

pub(super) fn run(session: &Session, arguments: &ReportArguments) -> Result<()> {
    let database = session.open(&arguments.database, OpenMode::Read)?;
    let report = utility::report(&database, arguments.object.as_deref(), &session.bars)?;
    session.bars.clear();
    if session.global.json { session.print_json(&report.to_json()) } else { session.print(&report.to_text()) }
}

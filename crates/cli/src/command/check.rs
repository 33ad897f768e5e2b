//! `pagefold check`

use crate::arguments::CheckArguments;
use crate::failure::{Failure, Result};
use crate::session::Session;
use pagefold::io::OsStorage;
use pagefold::utility;

pub(super) fn run(session: &Session, arguments: &CheckArguments) -> Result<()> {
    let found = match utility::check(&OsStorage, &arguments.database, &session.bars) {
        Err(utility::Error::Engine(pagefold::Error::NeedsRecovery(_))) => {
            session.recover(&arguments.database)?;
            utility::check(&OsStorage, &arguments.database, &session.bars)?
        }
        found => found?,
    };
    session.bars.clear();
    if session.global.json {
        session.print_json(&found.to_json())?;
    } else {
        session.print(&found.to_text())?;
    }
    if found.is_clean() { Ok(()) } else { Err(Failure::Reported) }
}

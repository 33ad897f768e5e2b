//! `pagefold check`

use crate::arguments::CheckArguments;
use crate::failure::{Failure, Result};
use crate::session::Session;
use pagefold::io::{Clock, OsClock, OsStorage, Storage};
use pagefold::utility;
use std::sync::Arc;

pub(super) fn run(session: &Session, arguments: &CheckArguments) -> Result<()> {
    let (storage, clock): (Arc<dyn Storage>, Arc<dyn Clock>) = (Arc::new(OsStorage), Arc::new(OsClock));
    let found = utility::check(&storage, &clock, &arguments.database, session.settings()?, &session.bars)?;
    session.bars.clear();
    if session.global.json {
        session.print_json(&found.to_json())?;
    } else {
        let errors_per_object = if arguments.all_errors { usize::MAX } else { utility::ERRORS_SHOWN };
        session.print(&found.to_text(errors_per_object))?;
    }
    if found.is_clean() { Ok(()) } else { Err(Failure::Reported) }
}

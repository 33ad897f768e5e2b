//! `pagefold check`

use crate::arguments::CheckArguments;
use crate::failure::{Failure, Result};
use crate::session::{Session, is_copy};
use pagefold::io::{Clock, OsClock, OsStorage, Storage};
use pagefold::utility;
use std::path::PathBuf;
use std::sync::Arc;

pub(super) fn run(session: &Session, arguments: &CheckArguments) -> Result<()> {
    let (storage, clock): (Arc<dyn Storage>, Arc<dyn Clock>) = (Arc::new(OsStorage), Arc::new(OsClock));
    let settings = session.settings()?;
    let found = if is_copy(&arguments.database) {
        let copies: Vec<PathBuf> = std::iter::once(&arguments.database).chain(&arguments.copies).cloned().collect();
        utility::check_copies(&storage, &clock, &copies, settings, &session.bars)?
    } else if let Some(copy) = arguments.copies.first() {
        return Err(Failure::Usage(format!("{} is a database: {} cannot go on from it", arguments.database.display(), copy.display())));
    } else {
        utility::check(&storage, &clock, &arguments.database, settings, &session.bars)?
    };
    session.bars.clear();
    if session.global.json {
        session.print_json(&found.to_json())?;
    } else {
        let errors_per_object = if arguments.all_errors { usize::MAX } else { utility::ERRORS_SHOWN };
        session.print(&found.to_text(errors_per_object))?;
    }
    if found.is_clean() { Ok(()) } else { Err(Failure::Reported) }
}

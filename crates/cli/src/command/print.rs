//! `pagefold print`

use crate::arguments::PrintArguments;
use crate::failure::{Failure, Result};
use crate::session::Session;
use pagefold::io::OsStorage;
use pagefold::utility::{self, PrintWhat};

pub(super) fn run(session: &Session, arguments: &PrintArguments) -> Result<()> {
    let what = match (arguments.page, arguments.dictionary) {
        (Some(page), _) => PrintWhat::Page(page),
        (None, true) => PrintWhat::Dictionary,
        (None, false) => PrintWhat::Header,
    };
    let printed = utility::print(&OsStorage, &arguments.database, &arguments.object, arguments.partition, what);
    // An object or page that does not exist is no wrong use, as in the other commands.
    let printed = printed.map_err(|error| match error {
        utility::Error::Usage(message) => Failure::Failed(message),
        other => other.into(),
    })?;
    if session.global.json { session.print_json(&printed.to_json()) } else { session.print(&printed.to_text()) }
}

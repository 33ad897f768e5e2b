//! `pagefold print`

use crate::arguments::PrintArguments;
use crate::failure::{Failure, Result};
use crate::session::{Session, is_copy};
use pagefold::backup::{MountOptions, MountedCopy};
use pagefold::io::{Clock, OsClock, OsStorage, Storage};
use pagefold::utility::{self, DatabaseFiles, PrintWhat};
use std::path::PathBuf;
use std::sync::Arc;

pub(super) fn run(session: &Session, arguments: &PrintArguments) -> Result<()> {
    let what = match (arguments.page, arguments.dictionary) {
        (Some(page), _) => PrintWhat::Page(page),
        (None, true) => PrintWhat::Dictionary,
        (None, false) => PrintWhat::Header,
    };
    let (storage, clock): (Arc<dyn Storage>, Arc<dyn Clock>) = (Arc::new(OsStorage), Arc::new(OsClock));
    let settings = session.settings()?;
    let mounted = if is_copy(&arguments.database) {
        let copies: Vec<PathBuf> = arguments.base.iter().chain([&arguments.database]).cloned().collect();
        Some(MountedCopy::open(&storage, &clock, &copies, &MountOptions::default(), &session.bars)?)
    } else if let Some(base) = arguments.base.first() {
        return Err(Failure::Usage(format!(
            "{} is a database, which does not go on from {}",
            arguments.database.display(),
            base.display()
        )));
    } else {
        None
    };
    session.bars.clear();
    let (storage, directory) = match &mounted {
        Some(copy) => (copy.storage(), copy.directory()),
        None => (storage, arguments.database.as_path()),
    };
    let files = DatabaseFiles { storage: &storage, clock: &clock, directory, settings };
    let printed = utility::print(&files, &arguments.object, arguments.partition, what);
    // An object or page that does not exist is no wrong use, as in the other commands.
    let printed = printed.map_err(|error| match error {
        utility::Error::Usage(message) => Failure::Failed(message),
        other => other.into(),
    })?;
    if session.global.json { session.print_json(&printed.to_json()) } else { session.print(&printed.to_text()) }
}

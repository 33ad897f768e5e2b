//! `pagefold diff`

use crate::arguments::DiffArguments;
use crate::failure::{Failure, Result};
use crate::session::{Session, is_copy};
use pagefold::io::{Clock, OsClock, OsStorage, Storage};
use pagefold::utility::{DiffOptions, DiffSide, diff};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) fn run(session: &Session, arguments: &DiffArguments) -> Result<()> {
    let first = side(session, &arguments.first, &arguments.first_base)?;
    let second = side(session, &arguments.second, &arguments.second_base)?;
    let options = DiffOptions { rows_listed: arguments.rows, sort_bytes: session.sort_bytes() };
    let found = diff(&first, &second, options, &session.bars)?;
    session.bars.clear();
    if session.global.json {
        session.print_json(&found.to_json())?;
    } else {
        session.print(&found.to_text())?;
    }
    if found.is_same() { Ok(()) } else { Err(Failure::Reported) }
}

fn side(session: &Session, path: &Path, base: &[PathBuf]) -> Result<DiffSide> {
    let (storage, clock): (Arc<dyn Storage>, Arc<dyn Clock>) = (Arc::new(OsStorage), Arc::new(OsClock));
    let settings = session.settings()?;
    if is_copy(path) {
        let copies: Vec<PathBuf> = base.iter().map(PathBuf::as_path).chain([path]).map(Path::to_path_buf).collect();
        return Ok(DiffSide::of_copies(&storage, &clock, &copies, settings, &session.bars)?);
    }
    if let Some(base) = base.first() {
        return Err(Failure::Usage(format!("{} is a database, which does not go on from {}", path.display(), base.display())));
    }
    Ok(DiffSide::of_database(&storage, &clock, path, settings)?)
}

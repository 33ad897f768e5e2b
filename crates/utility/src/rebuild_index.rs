//! REBUILD-INDEX: an index is built anew from the rows of its table, whatever state its pages are in: none of them is read.

use crate::index_build::{IndexReport, fill, finish, index_report, stopped};
use crate::options::PATIENCE;
use crate::{Progress, Result};
use pagefold_engine::database::Database;
use std::sync::Arc;

/// Builds the index of this name anew, with the attributes that it has.
///
/// # Errors
/// When there is none, a page of its table is damaged, or two rows have the same key of a unique index. The database is then as it was.
pub fn rebuild_index(database: &Database, name: &str, sort_bytes: usize, progress: &dyn Progress) -> Result<IndexReport> {
    let progress: &dyn Progress = &database.watch(format!("rebuild-index {name}"), progress);
    let attributes = database.index(name)?.attributes_now();
    let mut change = database.change();
    let mut build = change.begin_index_again(attributes)?;
    let built = fill(database, &build, sort_bytes, progress)?;
    finish(&mut change, &mut build, PATIENCE, progress)?;
    let index = Arc::clone(build.index());
    change.replace_index(name, None, progress).map_err(stopped)?;
    change.commit()?;
    Ok(index_report(&index, built, None))
}

//! REBUILD-INDEX: an index is built anew from the rows of its table, whatever state its pages are in: none of them is read.

use crate::index_build::{IndexReport, build_one, index_report};
use crate::{Progress, Result};
use pagefold_engine::database::Database;

/// Builds the index of this name anew, with the attributes that it has.
///
/// # Errors
/// When there is none, a page of its table is damaged, or two rows have the same key of a unique index. The database is then as it was.
pub fn rebuild_index(database: &Database, name: &str, sort_bytes: usize, progress: &dyn Progress) -> Result<IndexReport> {
    let mut change = database.change();
    let old = change.drop_index(name)?;
    let table = database.table_of(&old)?;
    let (index, built) = build_one(database, &mut change, &table, old.attributes().clone(), sort_bytes, progress)?;
    change.commit()?;
    Ok(index_report(&index, built, None))
}

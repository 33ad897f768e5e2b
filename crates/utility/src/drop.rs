//! DROP: the object goes, and its space comes back.

use crate::Result;
use crate::access::find_primary_key_index;
use crate::partitions::drop_partitioned;
use pagefold_engine::Error;
use pagefold_engine::database::Database;
use std::sync::Arc;

/// What was dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DropReport {
    /// "table" or "index".
    pub kind: &'static str,
    /// Indexes that went with a table.
    pub indexes: Vec<String>,
    /// The table whose primary key has no index any more: its rows can no longer be had by it.
    pub without_key: Option<String>,
    /// Bytes of files removed; `None`: of a table that the database was recovered without, nobody has counted them.
    pub freed_bytes: Option<u64>,
}

/// Drops the table (with its indexes) or index of this name, whatever state its files are in.
///
/// # Errors
/// When there is none.
pub fn drop_object(database: &Database, name: &str) -> Result<DropReport> {
    if let Some(report) = drop_partitioned(database, name)? {
        return Ok(report);
    }
    let mut report = DropReport::default();
    let mut change = database.change();
    match (database.table(name), database.index(name)) {
        // Which of the two it is called so by is known, though it cannot be opened.
        (Err(Error::Unknown { .. }), Err(Error::Unknown { .. })) => {
            return Err(no_object(database, name));
        }
        (Err(Error::Unknown { .. }), index) => {
            report.kind = "index";
            let index = index?;
            let table = database.table_of(&index)?;
            let is_key = find_primary_key_index(&table).is_some_and(|key| Arc::ptr_eq(&key, &index));
            report.without_key = is_key.then(|| table.name().to_owned());
            report.freed_bytes = Some(change.drop_index(name)?.data_set().allocated_bytes());
        }
        _ => {
            report.kind = "table";
            let table = change.drop_unread_table(name)?;
            if table.range().is_some() {
                let what = format!("\"{name}\" is a partition: `pagefold partition drop` drops it");
                return Err(crate::Error::Usage(what));
            }
            let indexes = table.all_indexes();
            let data_sets = table.data_sets().chain(indexes.iter().map(|index| index.data_set()));
            report.freed_bytes = Some(data_sets.map(|data_set| data_set.allocated_bytes()).sum());
            report.indexes.extend(indexes.iter().map(|index| index.name().to_owned()));
        }
    }
    change.commit()?;
    Ok(report)
}

/// Neither a table nor an index has this name.
pub(crate) fn no_object(database: &Database, name: &str) -> crate::Error {
    let names: Vec<String> = database.table_names().into_iter().chain(database.index_names()).collect();
    crate::Error::Data(match names.as_slice() {
        [] => format!("no table or index \"{name}\"; there are none"),
        names => {
            const SHOWN: usize = 20;
            let more = if names.len() > SHOWN { ", ..." } else { "" };
            format!("no table or index \"{name}\"; there are: {}{more}", names[..names.len().min(SHOWN)].join(", "))
        }
    })
}

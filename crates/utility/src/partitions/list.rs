//! What there is of each partition.

use crate::Result;
use pagefold_engine::database::{Database, PartitionedTable};
use pagefold_engine::table_space::Method;

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionLine {
    /// Its name among the partitions.
    pub name: String,
    /// The name of its table.
    pub table: String,
    /// The values that are the first behind it, as text; `None`: it has no end.
    pub limit: Option<String>,
    /// The first values of its range, where no other partition ends with them: rows between are in none.
    pub gap_before: Option<String>,
    /// Compression.
    pub method: Method,
    /// Page size.
    pub page_bytes: usize,
    /// Rows.
    pub rows: u64,
    /// Bytes of its pages.
    pub size_bytes: u64,
    /// Bytes of the pages of its indexes.
    pub index_bytes: u64,
}

/// The partitions of a table, in the order of their keys.
///
/// # Errors
/// When there is no such partitioned table, or a partition cannot be opened.
pub fn list_partitions(database: &Database, table: &str) -> Result<Vec<PartitionLine>> {
    let whole = database.partitioned_table(table)?;
    let mut lines = Vec::with_capacity(whole.own_partitions().len());
    let mut end = whole.first().keys().end.as_deref().filter(|_| whole.is_open());
    for partition in whole.own_partitions() {
        let table = database.table_of_partition(partition)?;
        let bytes = |data_set: &pagefold_engine::DataSet| u64::from(data_set.page_count()) * data_set.page_bytes() as u64;
        let keys = partition.keys();
        lines.push(PartitionLine {
            name: partition.name().to_owned(),
            table: partition.table_name().to_owned(),
            limit: keys.end.as_deref().map(|end| limit_text(&whole, end)),
            gap_before: end.filter(|end| keys.start != *end).map(|_| limit_text(&whole, &keys.start)),
            method: table.attributes().method,
            page_bytes: table.attributes().page_bytes,
            rows: table.row_count(),
            size_bytes: table.data_sets().map(|data_set| bytes(data_set)).sum(),
            index_bytes: table.indexes().iter().map(|index| bytes(index.data_set())).sum(),
        });
        end = keys.end.as_deref();
    }
    Ok(lines)
}

/// A limit as text: the values that rows behind it begin with.
fn limit_text(whole: &PartitionedTable, limit: &[u8]) -> String {
    match whole.readable_limit(limit) {
        Some((layout, key, false)) => layout.describe(&key),
        Some((layout, key, true)) => format!("{}, MAXVALUE)", layout.describe(&key).trim_end_matches(')')),
        None => whole.key_layout().describe(limit),
    }
}

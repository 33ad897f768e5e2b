//! What an index takes, level by level. Every page is read.

use super::{counters_json, ratio, rounded};
use crate::{Progress, Result};
use pagefold_engine::CounterValues;
use pagefold_engine::index::{Index, IndexFormat};
use pagefold_engine::table_space::Table;
use pagefold_types::Direction;
use serde_json::{Value, json};

/// One level of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LevelStatistics {
    /// 1 is the root, the last level the leaves.
    pub level: u32,
    /// Pages.
    pub pages: u64,
    /// Average keys of a page: of leaves entries, above them children.
    pub keys_avg: f64,
    /// Average bytes of a page that are free in memory.
    pub free_bytes_avg: f64,
}

/// An index, measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexStatistics {
    /// Its name.
    pub name: String,
    /// Its table.
    pub table: String,
    /// Its columns with their order: `a, b DESC`.
    pub columns: String,
    /// No key twice?
    pub unique: bool,
    /// How leaves are stored.
    pub format: String,
    /// Bytes of a leaf in memory.
    pub page_bytes: usize,
    /// Bytes of a page on disk.
    pub disk_page_bytes: usize,
    /// Distinct keys.
    pub keys: u64,
    /// RIDs.
    pub rids: u64,
    /// All pages in use.
    pub pages: u64,
    /// Bytes of those.
    pub size_bytes: u64,
    /// Bytes of the file, extents that are not used yet included.
    pub allocated_bytes: u64,
    /// Average bytes of a key.
    pub key_bytes_avg: f64,
    /// Folded leaves: their bytes on disk over their bytes in memory.
    pub folded_share: f64,
    /// Share of the leaf buffers that is unused.
    pub buffer_unused: f64,
    /// Share of the leaf pages on disk that is unused.
    pub disk_unused: f64,
    /// From the root to the leaves.
    pub levels: Vec<LevelStatistics>,
    /// What was asked of its pages since the database was opened.
    pub counters: CounterValues,
}

impl IndexStatistics {
    pub(super) fn of(index: &Index, table: &Table, progress: &dyn Progress) -> Result<IndexStatistics> {
        let attributes = index.attributes();
        let data_set = index.data_set();
        let facts = data_set.facts().clone();
        let levels = index.tree().levels()?;
        progress.advance(levels.iter().map(|level| level.pages).sum());
        let average = |sum: u64, pages: u64| ratio(sum as f64, pages as f64);
        let leaves = levels.first().copied().unwrap_or_default();
        let buffers = leaves.pages * attributes.page_bytes as u64;
        let used = buffers.saturating_sub(leaves.free_bytes);
        let folds = attributes.format == IndexFormat::Fold;
        let columns: Vec<String> = attributes
            .columns
            .iter()
            .map(|(column, direction)| {
                let name = table.attributes().schema.columns().get(*column).map_or("?", |c| c.name.as_str());
                if *direction == Direction::Descending { format!("{name} DESC") } else { name.to_string() }
            })
            .collect();
        Ok(IndexStatistics {
            name: index.name().into(),
            table: table.name().into(),
            columns: columns.join(", "),
            unique: attributes.unique,
            format: attributes.format.name().into(),
            page_bytes: attributes.page_bytes,
            disk_page_bytes: data_set.page_bytes(),
            keys: facts.keys,
            rids: facts.rows,
            pages: u64::from(data_set.page_count()),
            size_bytes: u64::from(data_set.page_count()) * data_set.page_bytes() as u64,
            allocated_bytes: data_set.allocated_bytes(),
            key_bytes_avg: average(leaves.key_bytes, leaves.keys),
            folded_share: if folds { average(leaves.folded_bytes, used) } else { 1.0 },
            buffer_unused: average(leaves.free_bytes, buffers),
            disk_unused: if folds {
                let disk = leaves.pages * data_set.page_bytes() as u64;
                average(disk.saturating_sub(leaves.folded_bytes), disk)
            } else {
                average(leaves.free_bytes, buffers)
            },
            levels: levels
                .iter()
                .rev()
                .zip(1..)
                .map(|(level, number)| LevelStatistics {
                    level: number,
                    pages: level.pages,
                    keys_avg: average(level.keys, level.pages),
                    free_bytes_avg: average(level.free_bytes, level.pages),
                })
                .collect(),
            counters: data_set.counters(),
        })
    }

    pub(super) fn to_json(&self) -> Value {
        let levels: Vec<Value> = self
            .levels
            .iter()
            .map(|l| json!({ "level": l.level, "pages": l.pages, "keys_avg": rounded(l.keys_avg), "free_bytes_avg": rounded(l.free_bytes_avg) }))
            .collect();
        json!({
            "name": self.name,
            "table": self.table,
            "columns": self.columns,
            "unique": self.unique,
            "format": self.format,
            "page_size_bytes": self.page_bytes,
            "disk_page_size_bytes": self.disk_page_bytes,
            "keys": self.keys,
            "rids": self.rids,
            "pages": self.pages,
            "size_bytes": self.size_bytes,
            "allocated_bytes": self.allocated_bytes,
            "key_bytes_avg": rounded(self.key_bytes_avg),
            "folded_share": rounded(self.folded_share),
            "buffer_unused": rounded(self.buffer_unused),
            "disk_unused": rounded(self.disk_unused),
            "levels": levels,
            "counters": counters_json(&self.counters),
        })
    }
}

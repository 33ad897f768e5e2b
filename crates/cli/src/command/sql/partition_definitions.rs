//! Partitions as SQL: PARTITION BY of a definition, and what one partition has otherwise than the table.
//!
//! Invariant: the first partition stands for the table; whatever another one has of its own is said behind that.

use super::catalog::{Found, Writer, has_default_pool, page_size, text, with};
use super::words::quoted;
use pagefold::Result;
use pagefold::engine::catalog::{PartitionedTable, RangePartition};
use pagefold::engine::index::IndexAttributes;
use pagefold::engine::table::TableAttributes;

impl Writer<'_, '_> {
    /// PARTITION BY, with a blank behind it.
    pub(super) fn partition_by(&mut self, found: &Found, whole: &PartitionedTable) -> Result<String> {
        let columns: Vec<String> = whole.columns().iter().map(|column| found.column_name(*column)).collect();
        let columns = columns.join(", ");
        if whole.is_open() {
            return Ok(format!("PARTITION BY RANGE ({columns}) "));
        }
        let mut parts = Vec::with_capacity(whole.partitions().len());
        for partition in whole.partitions() {
            let values = whole.limit_texts(partition).into_iter().map(|own| own.map_or_else(|| "MAXVALUE".into(), |own| text(&own)));
            let limit = values.collect::<Vec<String>>().join(", ");
            let options = self.own_storage(found, partition)?;
            parts.push(format!("PARTITION {} VALUES LESS THAN ({limit}){options}", quoted(partition.name())));
        }
        Ok(format!("PARTITION BY RANGE ({columns}) (\n    {}\n) ", parts.join(",\n    ")))
    }

    /// How a partition is stored otherwise than the table when it is made, with a blank before it.
    fn own_storage(&mut self, found: &Found, partition: &RangePartition) -> Result<String> {
        let own = self.transaction.table_of_partition(partition)?;
        let (own, first) = (own.attributes(), found.attributes());
        let mut options = Vec::new();
        if own.method != first.method {
            options.push(format!("compress = '{}'", own.method));
        }
        if own.page_bytes != first.page_bytes {
            options.push(format!("page_size = {}", page_size(own.page_bytes)));
        }
        Ok(if options.is_empty() { String::new() } else { format!(" {}", with(&options)) })
    }

    /// Statements that make the partitions of a table which is made before them.
    pub(super) fn partitions_of(&mut self, found: &Found, whole: &PartitionedTable) -> Result<Vec<String>> {
        if !whole.is_open() {
            return Ok(Vec::new());
        }
        let (of, mut statements) = (self.name(whole.name()), Vec::with_capacity(whole.own_partitions().len()));
        for partition in whole.own_partitions() {
            let from = bound(whole.start_texts(partition), whole.columns().len());
            let to = bound(whole.limit_texts(partition), whole.columns().len());
            let name = whole.name().rsplit_once('.').map_or_else(String::new, |(schema, _)| format!("{schema}.")) + partition.name();
            let (name, options) = (self.name(&name), self.own_storage(found, partition)?);
            statements.push(format!("CREATE TABLE {name} PARTITION OF {of} FOR VALUES FROM ({from}) TO ({to}){options};"));
        }
        Ok(statements)
    }

    /// Statements that give single partitions, and their indexes, what they have of their own.
    pub(super) fn own_parameters(&mut self, found: &Found, whole: &PartitionedTable) -> Result<Vec<String>> {
        let mut statements = Vec::new();
        for partition in whole.partitions() {
            let own = self.transaction.table_of_partition(partition)?;
            let options = table_parameters(own.attributes(), found.attributes());
            if !options.is_empty() {
                statements.push(format!("ALTER TABLE {} SET ({});", self.name(partition.table_name()), options.join(", ")));
            }
            for (name, first) in found.indexes() {
                let Some(index) = self.transaction.index_of_partition(partition, &own, name)? else { continue };
                let (index, first) = (index.attributes(), first.attributes());
                let is_same =
                    |a: &IndexAttributes, b: &IndexAttributes| (a.format, a.page_bytes, a.pctfree) == (b.format, b.page_bytes, b.pctfree);
                let own = self.name(&PartitionedTable::index_name(name, partition));
                if !is_same(index, first) {
                    let format = format!("format = '{}'", index.format.name());
                    let options = [format, format!("page_size = {}", page_size(index.page_bytes)), format!("pctfree = {}", index.pctfree)];
                    statements.push(format!("REORG INDEX {own} {};", with(&options)));
                }
                let follows = if is_same(index, first) { index.pool == first.pool } else { has_default_pool(index) };
                if !follows {
                    statements.push(format!("-- the index {own} has the pool {}", text(&index.pool)));
                }
            }
        }
        Ok(statements)
    }
}

/// A bound of a partition, with a word for each column that it has no value for.
fn bound(values: Vec<Option<String>>, columns: usize) -> String {
    let rest = if values.last().is_some_and(Option::is_none) { "MAXVALUE" } else { "MINVALUE" };
    let mut words: Vec<String> = values.into_iter().flatten().map(|value| text(&value)).collect();
    words.resize(columns, rest.to_owned());
    words.join(", ")
}

/// What a partition has otherwise than it gets when the table is made.
fn table_parameters(own: &TableAttributes, first: &TableAttributes) -> Vec<String> {
    let mut options = Vec::new();
    if own.pctfree != first.pctfree {
        options.push(format!("pctfree = {}", own.pctfree));
    }
    if own.maxrows != first.maxrows {
        options.push(format!("maxrows = {}", own.maxrows));
    }
    // The pool goes with the page size.
    let made = if own.page_bytes == first.page_bytes {
        first.pool.clone()
    } else {
        TableAttributes::new("", own.schema.clone()).with_page_bytes(own.page_bytes).pool
    };
    if own.pool != made {
        options.push(format!("pool = {}", text(&own.pool)));
    }
    options
}

//! The report as a person reads it.

use super::{DatabaseReport, IndexStatistics, TableStatistics};
use crate::print::columns::{Align, Grid, count, size};
use crate::runstats::time_text;
use pagefold_engine::database::split_partition_name;

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

pub(super) fn render(report: &DatabaseReport) -> String {
    let mut out = String::new();
    if !report.tables.is_empty() {
        let head = ["TABLE", "METHOD", "PAGE", "ROWS", "PAGES WITH ROWS", "SIZE", "UNCOMPRESSED", "RATIO", "BYTES A ROW", "ROWS A PAGE"];
        let mut grid = Grid::new(&head, &[Align::Left, Align::Left]);
        for t in &report.tables {
            grid.row(vec![
                t.name.clone(),
                t.method.clone(),
                size(t.page_bytes as u64),
                count(t.rows),
                count(t.npages),
                size(t.size_bytes),
                size(t.uncompressed_size_bytes),
                format!("{:.2}", t.ratio()),
                format!("{:.1} of {:.1}", t.stored_bytes_avg, t.record_bytes_avg),
                format!("{:.1}", t.rows_per_page_avg),
            ]);
        }
        out.push_str(&grid.to_string());
        report.tables.iter().for_each(|table| notes(table, &mut out));
        // Those of a partition are those of the others.
        let is_like = |a: &TableStatistics, b: &TableStatistics| {
            split_partition_name(&a.name).zip(split_partition_name(&b.name)).is_some_and(|(a, b)| a.0 == b.0) && a.columns == b.columns
        };
        let mut before: Option<&TableStatistics> = None;
        for table in &report.tables {
            if before.is_none_or(|before| !is_like(before, table)) {
                columns(table, &mut out);
            }
            before = Some(table);
        }
    }
    for index in &report.indexes {
        out.push('\n');
        describe(index, &mut out);
    }
    if !report.damaged.is_empty() {
        out.push('\n');
    }
    for damaged in &report.damaged {
        let (kind, name, reason) = (damaged.kind, &damaged.name, &damaged.reason);
        out.push_str(&match damaged.mended_by {
            Some(mended_by) => format!("DAMAGED {kind} {name}: {reason}; `{mended_by}` mends it\n"),
            None => format!("NOT READ {kind} {name}: {reason}\n"),
        });
    }
    if !report.pools.is_empty() {
        let head = ["POOL", "FRAME", "USED", "LIMIT", "GETPAGES", "HITS", "READS", "PREFETCHED", "WRITTEN", "EXPANDED"];
        let mut grid = Grid::new(&head, &[Align::Left]);
        for pool in &report.pools {
            let c = &pool.counters;
            let hits = if c.getpages == 0 { "-".into() } else { percent(c.hits() as f64 / c.getpages as f64) };
            let prefetched = c.sequential_prefetch_pages + c.dynamic_prefetch_pages + c.list_prefetch_pages;
            grid.row(vec![
                pool.name.clone(),
                size(pool.frame_bytes as u64),
                size(pool.used_bytes as u64),
                size(pool.limit_bytes as u64),
                count(c.getpages),
                hits,
                count(c.synchronous_reads),
                count(prefetched),
                count(c.pages_written),
                count(c.expansions),
            ]);
        }
        out.push_str(&format!("\n{grid}"));
    }
    if let Some(log) = &report.log {
        let plural = |n: u64, what: &str| format!("{} {what}{}", count(n), if n == 1 { "" } else { "s" });
        let spare = if log.spare_segments > 0 { format!(", {} spare", count(log.spare_segments)) } else { String::new() };
        let segments = plural(log.segments, "segment");
        out.push_str(&format!("\nLOG {segments}{spare}, {}; last checkpoint at {}\n", size(log.size_bytes), count(log.checkpoint_lsn)));
        if let Some(problem) = &log.archive_problem {
            let waiting = plural(log.waiting_segments, "segment");
            out.push_str(&format!("    WARNING {problem}: {waiting} of the log cannot be given back, and the log grows\n"));
        }
    }
    out
}

/// Names and types.
fn columns(table: &TableStatistics, out: &mut String) {
    out.push_str(&format!("\nCOLUMNS of {}\n", table.name));
    let width = table.columns.iter().map(|c| c.name.chars().count()).max().unwrap_or(0);
    for column in &table.columns {
        let pad = " ".repeat(width - column.name.chars().count());
        let not_null = if column.nullable { "" } else { " NOT NULL" };
        let name: String = column.name.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect();
        out.push_str(&format!("  {name}{pad}  {}{not_null}\n", column.data_type));
    }
    if !table.primary_key.is_empty() {
        out.push_str(&format!("  primary key ({})\n", table.primary_key.join(", ")));
    }
}

/// What is worth a line of its own.
fn notes(table: &TableStatistics, out: &mut String) {
    let mut notes = Vec::new();
    if table.dictionary_pages > 0 {
        notes.push(format!(
            "{} dictionary pages, {} of the rows compressed",
            count(table.dictionary_pages),
            percent(table.compressed_share)
        ));
    }
    if table.moved_share > 0.0 {
        notes.push(format!("{} of the rows have moved: a REORG brings them home", percent(table.moved_share)));
    }
    if table.partitions > 1 {
        notes.push(format!("{} partitions", table.partitions));
    }
    if table.allocated_bytes > table.size_bytes + table.size_bytes / 10 {
        notes.push(format!("{} allocated", size(table.allocated_bytes)));
    }
    if table.pages_read < table.npages {
        notes.push(format!("averages and ratio from {} pages", count(table.pages_read)));
    }
    if let Some(gathered_ms) = table.statistics_unix_ms {
        notes.push(format!("statistics of {} UTC", time_text(gathered_ms)));
    }
    if !notes.is_empty() {
        out.push_str(&format!("  {}: {}\n", table.name, notes.join("; ")));
    }
}

fn describe(index: &IndexStatistics, out: &mut String) {
    let unique = if index.unique { "unique, " } else { "" };
    out.push_str(&format!(
        "INDEX {} on {}({}): {unique}{}, {} leaves, {}, {} keys, {} RIDs\n",
        index.name,
        index.table,
        index.columns,
        index.format,
        size(index.page_bytes as u64),
        size(index.size_bytes),
        count(index.keys),
        count(index.rids),
    ));
    if index.levels.is_empty() {
        out.push_str("  empty\n");
        return;
    }
    if index.format == "fold" {
        out.push_str(&format!(
            "  folded to {} of their bytes; {} of the buffers and {} of the leaf pages on disk unused\n",
            percent(index.folded_share),
            percent(index.buffer_unused),
            percent(index.disk_unused),
        ));
    }
    let mut grid = Grid::new(&["  LEVEL", "PAGES", "AVERAGE KEYS", "AVERAGE FREE BYTES"], &[]);
    for level in &index.levels {
        let name = if level.level as usize == index.levels.len() { "leaves".into() } else { level.level.to_string() };
        grid.row(vec![name, count(level.pages), format!("{:.1}", level.keys_avg), format!("{:.0}", level.free_bytes_avg)]);
    }
    out.push_str(&grid.to_string());
}

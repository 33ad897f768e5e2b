//! What a table takes.
//!
//! Rows, pages and bytes are exact: header pages have them. Averages and the comparison with uncompressed rows are exact for tables of at most [`PAGES_READ_MAX`] data pages; of larger ones
//! so many pages, evenly spread, are read.

use super::{counters_json, ratio, rounded};
use crate::runstats::kept;
use crate::{Error, Progress, Result};
use pagefold_engine::CounterValues;
use pagefold_engine::database::{ReadView, ScanRequest};
use pagefold_engine::pool::Access;
use pagefold_engine::table_space::Table;
use pagefold_format::chain::pages_needed;
use pagefold_format::data::{Body, DataPage, PagePacker, Stored};
use pagefold_types::Column;
use serde_json::{Value, json};
use std::sync::Arc;

/// So many data pages are read at most.
const PAGES_READ_MAX: usize = 1024;

/// A table, measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableStatistics {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Columns of its primary key by name.
    pub primary_key: Vec<String>,
    /// Compression.
    pub method: String,
    /// Bytes of a page.
    pub page_bytes: usize,
    /// Partitions that have a file.
    pub partitions: usize,
    /// Rows.
    pub rows: u64,
    /// Pages that hold rows.
    pub npages: u64,
    /// Pages of dictionaries.
    pub dictionary_pages: u64,
    /// All pages in use: rows, dictionaries, large values, space map, headers.
    pub pages: u64,
    /// Bytes of those.
    pub size_bytes: u64,
    /// Bytes of the files, extents that are not used yet included.
    pub allocated_bytes: u64,
    /// Data pages read for what follows.
    pub pages_read: u64,
    /// Average bytes of a record before compression.
    pub record_bytes_avg: f64,
    /// Average bytes of a row on its page.
    pub stored_bytes_avg: f64,
    /// Average rows of a page.
    pub rows_per_page_avg: f64,
    /// Average free bytes of a page.
    pub free_bytes_avg: f64,
    /// Share of the rows that are compressed.
    pub compressed_share: f64,
    /// Share of the rows that have moved from home.
    pub moved_share: f64,
    /// Bytes that the table would take without compression, from the rows that were read.
    pub uncompressed_size_bytes: u64,
    /// When RUNSTATS gathered the statistics that are kept of it: milliseconds since 1970-01-01 UTC.
    pub statistics_unix_ms: Option<u64>,
    /// What was asked of its pages since the database was opened.
    pub counters: CounterValues,
}

#[derive(Default)]
struct Sums {
    pages: u64,
    rows: u64,
    /// Rows whose homes are on the pages, and their bytes.
    records: u64,
    record_bytes: u64,
    stored_bytes: u64,
    free_bytes: u64,
    compressed: u64,
    moved: u64,
}

impl TableStatistics {
    pub(super) fn of(view: &ReadView, table: &Arc<Table>, progress: &dyn Progress) -> Result<TableStatistics> {
        let attributes = table.attributes();
        let mut out = TableStatistics {
            name: table.name().into(),
            columns: attributes.visible_columns().into_iter().map(|column| attributes.schema.columns()[column].clone()).collect(),
            primary_key: attributes.primary_key.iter().map(|c| attributes.schema.columns()[*c].name.clone()).collect(),
            method: attributes.method.name().into(),
            page_bytes: attributes.page_bytes,
            rows: table.row_count(),
            statistics_unix_ms: kept(&table.notes()).map(|statistics| statistics.gathered_ms),
            ..TableStatistics::default()
        };
        for data_set in table.data_sets() {
            let facts = data_set.facts().clone();
            out.partitions += usize::from(data_set.is_defined());
            out.npages += u64::from(facts.data_pages);
            out.dictionary_pages += facts.dictionaries.iter().map(|d| pages_needed(d.bytes as usize, out.page_bytes) as u64).sum::<u64>();
            out.pages += u64::from(data_set.page_count());
            out.allocated_bytes += data_set.allocated_bytes();
        }
        out.size_bytes = out.pages * out.page_bytes as u64;
        let mut packer = PagePacker::new(out.page_bytes, attributes.pctfree, attributes.maxrows);
        let sums = read_pages((view, table), out.npages, &mut packer, progress)?;
        let average = |sum: u64, of: u64| ratio(sum as f64, of as f64);
        out.pages_read = sums.pages;
        out.record_bytes_avg = average(sums.record_bytes, sums.records);
        out.stored_bytes_avg = average(sums.stored_bytes, sums.rows);
        out.rows_per_page_avg = average(sums.rows, sums.pages);
        out.free_bytes_avg = average(sums.free_bytes, sums.pages);
        out.compressed_share = average(sums.compressed, sums.rows);
        out.moved_share = average(sums.moved, sums.rows);
        let packed = (packer.pages() as f64 * ratio(out.rows as f64, sums.records as f64)).ceil() as u64;
        out.uncompressed_size_bytes = (packed + out.pages.saturating_sub(out.npages + out.dictionary_pages)) * out.page_bytes as u64;
        for data_set in table.data_sets() {
            out.counters += data_set.counters();
        }
        Ok(out)
    }

    /// Size over size without compression.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        ratio(self.size_bytes as f64, self.uncompressed_size_bytes as f64)
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "columns": self.columns.iter().map(|c| json!({
                "name": c.name, "type": c.data_type.to_string(), "nullable": c.nullable,
            })).collect::<Vec<_>>(),
            "primary_key": self.primary_key,
            "method": self.method,
            "page_size_bytes": self.page_bytes,
            "partitions": self.partitions,
            "rows": self.rows,
            "npages": self.npages,
            "dictionary_pages": self.dictionary_pages,
            "pages": self.pages,
            "size_bytes": self.size_bytes,
            "allocated_bytes": self.allocated_bytes,
            "pages_read": self.pages_read,
            "record_bytes_avg": rounded(self.record_bytes_avg),
            "stored_bytes_avg": rounded(self.stored_bytes_avg),
            "rows_per_page_avg": rounded(self.rows_per_page_avg),
            "free_bytes_avg": rounded(self.free_bytes_avg),
            "compressed_share": rounded(self.compressed_share),
            "moved_share": rounded(self.moved_share),
            "uncompressed_size_bytes": self.uncompressed_size_bytes,
            "ratio": rounded(self.ratio()),
            "statistics_unix_ms": self.statistics_unix_ms,
            "counters": counters_json(&self.counters),
        })
    }
}

fn read_pages((view, table): (&ReadView, &Arc<Table>), npages: u64, packer: &mut PagePacker, progress: &dyn Progress) -> Result<Sums> {
    let mut sums = Sums::default();
    let step = (npages as usize).div_ceil(PAGES_READ_MAX).max(1);
    let mut skipped = 0;
    for (partition, data_set) in (0..).zip(table.data_sets()) {
        for number in data_set.data_page_numbers() {
            skipped += 1;
            if skipped % step != 0 {
                continue;
            }
            {
                let Some(page) = table.data_page(data_set, number, Access::Scan)? else { continue };
                let view = DataPage::new(&page);
                sums.pages += 1;
                sums.free_bytes += view.free_bytes() as u64;
                sums.stored_bytes += view.column_part().map_or(0, |part| part.area().len()) as u64;
                for slot in 0..view.slot_count() {
                    let Some(row) = view.row(slot) else { continue };
                    match Stored::parse(row, view.dictionary_version()) {
                        Ok(Stored::Home(body)) => sums.count(row.own_bytes(), body),
                        Ok(Stored::Away { body, .. }) => {
                            sums.count(row.bytes.len(), body);
                            sums.moved += 1;
                        }
                        Ok(Stored::Hosted { body, .. }) => {
                            sums.count(row.own_bytes(), body);
                            sums.moved += 1;
                        }
                        Ok(Stored::Forward(_) | Stored::HostedForward { .. }) => sums.stored_bytes += row.bytes.len() as u64,
                        Ok(Stored::Forwarded(_)) => {}
                        Err(error) => return Err(data_set.corrupt(number, error).into()),
                    }
                }
            }
            let mut rows = view.scan_pages(table, vec![(partition, number)], &ScanRequest::default())?.into_rows();
            while let Some((_, record)) = rows.next_record()? {
                sums.records += 1;
                sums.record_bytes += record.len() as u64;
                packer.push(record.len());
            }
            progress.advance(1);
            if progress.interrupted() {
                return Err(Error::Interrupted);
            }
        }
    }
    Ok(sums)
}

impl Sums {
    fn count(&mut self, stored_bytes: usize, body: Body<'_>) {
        self.rows += 1;
        self.stored_bytes += stored_bytes as u64;
        self.compressed += u64::from(!matches!(body, Body::Plain(_)));
    }
}

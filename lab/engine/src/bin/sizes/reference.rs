//! The Ziv-Lempel tree in data pages: trained on the rows that LOAD trains on, stored by the arithmetic that LOAD fills pages with.

use pagefold_engine::database::{Database, ScanRequest};
use pagefold_engine::table_space::{SampledRecords, Table};
use pagefold_format::data::forms::plain_len;
use pagefold_format::data::{PagePacker, STORED_BYTES_MIN};
use pagefold_lab::lz_tree::{Growth, LzTree};
use pagefold_lab_engine::data::Outcome;
use std::sync::Arc;

/// Pages with the rows of a table that is stored without compression, were they stored with the reference's codes. A row that they do not make smaller counts as it is.
pub(crate) fn pages(database: &Database, table: &Arc<Table>, sample: &SampledRecords, growth: Growth) -> Outcome<u64> {
    let rows: Vec<&[u8]> = sample.iter().collect();
    let tree = LzTree::train(&rows, growth);
    let attributes = table.attributes();
    let mut packer = PagePacker::new(attributes.page_bytes, attributes.pctfree, attributes.maxrows);
    let mut scan = database.read_view().scan(table, &ScanRequest::default())?.into_rows();
    while let Some((_, record)) = scan.next_record()? {
        let plain = plain_len(record);
        let stored = tree.encoded_len(record).map_or(plain, |codes| codes.max(STORED_BYTES_MIN).min(plain));
        packer.push(stored);
    }
    Ok(packer.pages())
}

//! The sample of a source that a dictionary is trained on. LOAD and the estimator share it.
//!
//! Invariant: deterministic for a given source, so that a full estimate equals the load.

use crate::Result;
use pagefold_engine::table_space::{SAMPLE_ROWS, Sampler};
use pagefold_interchange::{Packer, Source, TableSchema};
use pagefold_types::{PackedRow, PackedRows, RowLayout};

const SAMPLE_SEED: u64 = 0x7061_6765_666F_6C64;

/// Samples a source for a dictionary. Rows wider than `record_bytes_max` neither are in the sample nor count.
///
/// # Errors
/// When the source cannot be read.
pub fn sample_source(source: &mut dyn Source, table: &TableSchema, layout: &RowLayout, record_bytes_max: usize) -> Result<Sampler> {
    let packer = Packer::new(table, layout, (0..layout.column_count()).collect(), record_bytes_max);
    let mut sampler = Sampler::default();
    let mut rows = PackedRows::default();
    for batch in source.sample(SAMPLE_ROWS, SAMPLE_SEED)? {
        rows.clear();
        packer.pack(&batch?, &mut rows)?;
        for row in rows.iter() {
            if let PackedRow::Record(record) = row {
                sampler.push(record);
            }
        }
    }
    Ok(sampler)
}

//! TPC-H tables made in process, as a source of LOAD.
//!
//! Invariant: a source gives the same rows every time.

use arrow_array::RecordBatch;
use pagefold::interchange::{Batches, InterchangeError, Source, TableSchema};
use std::sync::atomic::{AtomicU64, Ordering};
use tpchgen::generators::{LineItemGenerator, OrderGenerator};
use tpchgen_arrow::arrow::datatypes::SchemaRef;
use tpchgen_arrow::{LineItemArrow, OrderArrow};

/// Rows of a generated batch.
const BATCH_ROWS: usize = 8_192;
/// Rows of a cluster of a sample.
const CLUSTER_ROWS: usize = 256;

/// A table of the TPC-H schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TpchTable {
    Lineitem,
    Orders,
}

type Generated = Box<dyn Iterator<Item = Result<RecordBatch, InterchangeError>> + Send>;

impl TpchTable {
    /// Part `part` (from 1) of `parts` equal parts of the table.
    fn generate(self, scale_factor: f64, part: i32, parts: i32, batch_rows: usize) -> Generated {
        match self {
            TpchTable::Lineitem => {
                let generator = LineItemGenerator::new(scale_factor, part, parts);
                Box::new(LineItemArrow::new(generator).with_batch_size(batch_rows).map(|batch| Ok(batch?)))
            }
            TpchTable::Orders => {
                let generator = OrderGenerator::new(scale_factor, part, parts);
                Box::new(OrderArrow::new(generator).with_batch_size(batch_rows).map(|batch| Ok(batch?)))
            }
        }
    }

    /// The Arrow version that the generator was built with is ours.
    fn schema(self) -> SchemaRef {
        match self {
            TpchTable::Lineitem => LineItemArrow::schema_ref(),
            TpchTable::Orders => OrderArrow::schema_ref(),
        }
    }
}

/// Rows of a TPC-H table.
pub(crate) struct TpchSource {
    table: TpchTable,
    scale_factor: f64,
    schema: TableSchema,
    kept: Option<Vec<RecordBatch>>,
    rows: u64,
    bytes: u64,
    bytes_done: AtomicU64,
}

impl TpchSource {
    /// Generates the table once, to know how many rows it has. With `keep` the batches stay in memory, so that a later load does not generate them again.
    ///
    /// # Errors
    /// When a column cannot be stored, or `look` wants to stop; it is called with the rows of each batch.
    pub(crate) fn new<E: From<InterchangeError>>(
        table: TpchTable,
        scale_factor: f64,
        keep: bool,
        mut look: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<TpchSource, E> {
        let schema = TableSchema::from_arrow(table.schema())?;
        let mut kept = keep.then(Vec::new);
        let (mut rows, mut bytes) = (0, 0);
        for batch in table.generate(scale_factor, 1, 1, BATCH_ROWS) {
            let batch = batch?;
            rows += batch.num_rows() as u64;
            bytes += batch.get_array_memory_size() as u64;
            look(batch.num_rows() as u64)?;
            if let Some(kept) = &mut kept {
                kept.push(batch);
            }
        }
        Ok(TpchSource { table, scale_factor, schema, kept, rows, bytes, bytes_done: AtomicU64::new(0) })
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Are the rows in memory?
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): where in its stratum a cluster begins.
fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

impl Source for TpchSource {
    fn table(&self) -> &TableSchema {
        &self.schema
    }

    fn has_names(&self) -> bool {
        true
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.rows)
    }

    /// Bytes of the Arrow batches: there are no files.
    fn bytes_total(&self) -> u64 {
        self.bytes
    }

    fn bytes_done(&self) -> u64 {
        self.bytes_done.load(Ordering::Relaxed)
    }

    fn batches(&mut self) -> Result<Batches<'_>, InterchangeError> {
        self.bytes_done.store(0, Ordering::Relaxed);
        let done = &self.bytes_done;
        let count = move |batch: &RecordBatch| {
            done.fetch_add(batch.get_array_memory_size() as u64, Ordering::Relaxed);
        };
        Ok(match &self.kept {
            Some(kept) => Box::new(kept.iter().inspect(move |batch| count(batch)).cloned().map(Ok)),
            None => Box::new(self.table.generate(self.scale_factor, 1, 1, BATCH_ROWS).inspect(move |batch| {
                batch.as_ref().map(count).unwrap_or_default();
            })),
        })
    }

    /// The beginnings of parts spread over the table: the generator can start at any part.
    fn sample(&mut self, rows: u64, seed: u64) -> Result<Batches<'_>, InterchangeError> {
        let clusters = rows.div_ceil(CLUSTER_ROWS as u64).max(1);
        if clusters.saturating_mul(CLUSTER_ROWS as u64 * 2) >= self.rows {
            return self.batches();
        }
        let stratum_rows = self.rows / clusters;
        // Parts of about a cluster each; one of each stratum's is taken.
        let parts_of_stratum = (stratum_rows / CLUSTER_ROWS as u64).max(1);
        let parts = i32::try_from(clusters * parts_of_stratum).unwrap_or(i32::MAX);
        let (table, scale_factor) = (self.table, self.scale_factor);
        Ok(Box::new((0..clusters).flat_map(move |stratum| {
            let within = mix(seed.wrapping_add(stratum)) % parts_of_stratum;
            let part = i32::try_from(stratum * parts_of_stratum + within + 1).unwrap_or(parts);
            table.generate(scale_factor, part.min(parts), parts, CLUSTER_ROWS).take(1)
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(batches: Batches<'_>) -> Vec<RecordBatch> {
        batches.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn kept_and_generated_rows_are_the_same() {
        for table in [TpchTable::Lineitem, TpchTable::Orders] {
            let mut seen = 0;
            let mut make = |keep| {
                TpchSource::new(table, 0.002, keep, |n| {
                    seen += n;
                    Ok::<_, InterchangeError>(())
                })
                .unwrap()
            };
            let (mut kept, mut generated) = (make(true), make(false));
            assert!(kept.is_kept() && !generated.is_kept());
            let (a, b) = (rows(kept.batches().unwrap()), rows(generated.batches().unwrap()));
            assert_eq!(a, b);
            let count: u64 = a.iter().map(|batch| batch.num_rows() as u64).sum();
            assert_eq!((kept.rows(), generated.rows(), seen), (count, count, 2 * count));
            assert_eq!(kept.bytes_done(), kept.bytes_total());
        }
    }

    #[test]
    fn samples_are_spread_and_repeatable() {
        let mut source = TpchSource::new(TpchTable::Orders, 0.02, true, |_| Ok::<_, InterchangeError>(())).unwrap();
        let sample = rows(source.sample(2_560, 7).unwrap());
        let count: usize = sample.iter().map(RecordBatch::num_rows).sum();
        assert!((2_300..=2_560).contains(&count), "{count}");
        assert_eq!(sample, rows(source.sample(2_560, 7).unwrap()));
        assert_ne!(sample, rows(source.sample(2_560, 8).unwrap()));
        let all = rows(source.sample(1 << 40, 7).unwrap());
        assert_eq!(all.iter().map(|b| b.num_rows() as u64).sum::<u64>(), source.rows());
    }
}

//! Tables to estimate, and databases to load them into.

use crate::random::Rng;
use arrow_array::{ArrayRef, Date32Array, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use pagefold_advisor::Cost;
use pagefold_engine::database::{Database, OpenMode, Settings};
use pagefold_engine::pool::PoolSettings;
use pagefold_interchange::{Batches, InterchangeError, ParquetOptions, ParquetSink, Sink, Source, TableSchema};
use pagefold_io::{MemoryStorage, OpenOptions, SimulatedClock, Storage};
use pagefold_utility::{Costs, Scratch};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tpchgen::generators::{LineItem, LineItemGenerator};

/// What everything costs in tests that are not about costs.
pub(crate) const SAME: Costs = Costs::Given(|_, _| Cost { read_ns: 1.0, write_ns: 1.0 });

/// Batches in memory as a source.
pub(crate) struct Rows {
    table: TableSchema,
    batches: Vec<RecordBatch>,
}

impl Rows {
    pub(crate) fn new(batches: Vec<RecordBatch>) -> Rows {
        Rows { table: TableSchema::from_arrow(batches[0].schema()).unwrap(), batches }
    }

    /// A Parquet file of them, in memory, with row groups of so many rows.
    pub(crate) fn parquet(&self, name: &str, row_group_rows: usize) -> MemoryStorage {
        let mut bytes = Vec::new();
        let mut sink = ParquetSink::new(&mut bytes, &self.table, &ParquetOptions { row_group_rows, ..ParquetOptions::default() }).unwrap();
        self.batches.iter().for_each(|batch| sink.write(batch).unwrap());
        sink.finish().unwrap();
        drop(sink);
        let storage = MemoryStorage::new();
        storage.open(Path::new(name), &OpenOptions::create()).unwrap().write_at(&bytes, 0).unwrap();
        storage
    }

    fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn slice(&self, mut from: usize, mut count: usize) -> RecordBatch {
        for batch in &self.batches {
            if from < batch.num_rows() {
                count = count.min(batch.num_rows() - from);
                return batch.slice(from, count);
            }
            from -= batch.num_rows();
        }
        unreachable!()
    }
}

impl Source for Rows {
    fn table(&self) -> &TableSchema {
        &self.table
    }

    fn has_names(&self) -> bool {
        true
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.rows() as u64)
    }

    fn bytes_total(&self) -> u64 {
        0
    }

    fn bytes_done(&self) -> u64 {
        0
    }

    fn batches(&mut self) -> Result<Batches<'_>, InterchangeError> {
        Ok(Box::new(self.batches.iter().cloned().map(Ok)))
    }

    /// One cluster of 64 rows in each of equal strata.
    fn sample(&mut self, rows: u64, seed: u64) -> Result<Batches<'_>, InterchangeError> {
        const CLUSTER: usize = 64;
        let (all, count) = (self.rows(), (rows as usize).div_ceil(CLUSTER).max(1));
        if count * CLUSTER >= all {
            return self.batches();
        }
        let mut rng = Rng(seed);
        let starts: Vec<usize> = (0..count)
            .map(|i| {
                let (first, behind) = (all * i / count, all * (i + 1) / count);
                first + rng.below((behind - first - CLUSTER + 1) as u64) as usize
            })
            .collect();
        Ok(Box::new(starts.into_iter().map(|start| Ok(self.slice(start, CLUSTER)))))
    }
}

/// LINEITEM with the types of the Parquet files that `tpchgen` writes.
pub(crate) fn lineitem(scale_factor: f64) -> Rows {
    let items: Vec<LineItem<'static>> = LineItemGenerator::new(scale_factor, 1, 1).iter().collect();
    let batch = |items: &[LineItem<'static>]| {
        let ints = |of: fn(&LineItem<'static>) -> i64| Arc::new(items.iter().map(of).collect::<Int64Array>()) as ArrayRef;
        let decimals = |of: fn(&LineItem<'static>) -> i64| {
            let values: Decimal128Array = items.iter().map(|item| Some(i128::from(of(item)))).collect();
            Arc::new(values.with_precision_and_scale(15, 2).unwrap()) as ArrayRef
        };
        let dates = |of: fn(&LineItem<'static>) -> tpchgen::dates::TPCHDate| {
            Arc::new(items.iter().map(|item| Some(of(item).to_unix_epoch())).collect::<Date32Array>()) as ArrayRef
        };
        let texts = |of: fn(&LineItem<'static>) -> &'static str| {
            Arc::new(items.iter().map(|item| Some(of(item))).collect::<StringArray>()) as ArrayRef
        };
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("l_orderkey", ints(|i| i.l_orderkey)),
            ("l_partkey", ints(|i| i.l_partkey)),
            ("l_suppkey", ints(|i| i.l_suppkey)),
            ("l_linenumber", Arc::new(items.iter().map(|i| i.l_linenumber).collect::<Int32Array>())),
            ("l_quantity", decimals(|i| i.l_quantity * 100)),
            ("l_extendedprice", decimals(|i| i.l_extendedprice.into_inner())),
            ("l_discount", decimals(|i| i.l_discount.into_inner())),
            ("l_tax", decimals(|i| i.l_tax.into_inner())),
            ("l_returnflag", texts(|i| i.l_returnflag)),
            ("l_linestatus", texts(|i| i.l_linestatus)),
            ("l_shipdate", dates(|i| i.l_shipdate)),
            ("l_commitdate", dates(|i| i.l_commitdate)),
            ("l_receiptdate", dates(|i| i.l_receiptdate)),
            ("l_shipinstruct", texts(|i| i.l_shipinstruct)),
            ("l_shipmode", texts(|i| i.l_shipmode)),
            ("l_comment", texts(|i| i.l_comment)),
        ];
        let fields: Vec<Field> = columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), false)).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.into_iter().map(|(_, array)| array).collect()).unwrap()
    };
    Rows::new(items.chunks(8192).map(batch).collect())
}

/// Numbers, short and long texts, NULLs; a few texts are longer than a page.
pub(crate) fn mixed(rows: u64, longest: u64, seed: u64) -> Rows {
    let mut rng = Rng(seed);
    let words = ["alpha", "beta", "gamma", "delta ", "epsilon", "zeta eta", "theta", "iota"];
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("few", DataType::Int32, true),
        Field::new("name", DataType::Utf8, true),
        Field::new("amount", DataType::Decimal128(12, 2), false),
        Field::new("note", DataType::Utf8, true),
    ]));
    let mut batches = Vec::new();
    for first in (0..rows.max(1)).step_by(1000) {
        let numbers: Vec<u64> = (first..(first + 1000).min(rows)).collect();
        let text = |rng: &mut Rng, length: u64| {
            let mut text = String::new();
            while (text.len() as u64) < length {
                text.push_str(words[rng.below(8) as usize]);
                if rng.below(3) == 0 {
                    text.push_str(&rng.below(1_000_000).to_string());
                }
            }
            text
        };
        let names: StringArray = numbers.iter().map(|_| (rng.below(9) > 0).then(|| format!("name {}", rng.below(rows / 3 + 1)))).collect();
        let notes: StringArray = numbers
            .iter()
            .map(|_| match rng.below(100) {
                0..5 => None,
                5 => {
                    let length = rng.below(longest + 1);
                    Some(text(&mut rng, length))
                }
                _ => {
                    let length = rng.below(60);
                    Some(text(&mut rng, length))
                }
            })
            .collect();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(numbers.iter().map(|n| (*n * 7919 % rows.max(1)) as i64).collect::<Int64Array>()),
            Arc::new(numbers.iter().map(|_| (rng.below(5) > 0).then(|| rng.below(12) as i32)).collect::<Int32Array>()),
            Arc::new(names),
            Arc::new(
                numbers
                    .iter()
                    .map(|_| Some(i128::from(rng.below(10_000_000))))
                    .collect::<Decimal128Array>()
                    .with_precision_and_scale(12, 2)
                    .unwrap(),
            ),
            Arc::new(notes),
        ];
        batches.push(RecordBatch::try_new(Arc::clone(&schema), columns).unwrap());
    }
    Rows::new(batches)
}

pub(crate) fn database(storage: Arc<dyn Storage>, memory_bytes: usize) -> Database {
    let settings = Settings { pools: PoolSettings { memory_bytes, ..PoolSettings::default() }, ..Settings::default() };
    Database::open(storage, Arc::new(SimulatedClock::new(std::time::Duration::ZERO)), Path::new("db"), OpenMode::Create, settings).unwrap()
}

pub(crate) fn scratch() -> Scratch {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    storage.create_directory(Path::new("scratch")).unwrap();
    Scratch { storage, directory: PathBuf::from("scratch") }
}

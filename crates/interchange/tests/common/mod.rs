//! Helpers of the tests.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]

use arrow_array::RecordBatch;
use pagefold_interchange::{BatchBuilder, CsvOptions, OpenSource, Packer, Source, TableSchema, open_source};
use pagefold_io::{FileWriter, MemoryStorage, OpenOptions, Storage};
use pagefold_types::{ColumnValue, PackedRow, PackedRows, RowLayout, Value};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

pub fn put(storage: &dyn Storage, path: &str, bytes: &[u8]) {
    let file = storage.open(Path::new(path), &OpenOptions::create()).unwrap();
    file.set_len(0).unwrap();
    FileWriter::at(file, 0).write_all(bytes).unwrap();
}

pub fn get(storage: &dyn Storage, path: &str) -> Vec<u8> {
    pagefold_io::read_file(storage, Path::new(path), 1 << 30).unwrap()
}

pub fn memory() -> Arc<dyn Storage> {
    Arc::new(MemoryStorage::new())
}

pub fn open_csv(storage: &dyn Storage, paths: &[&str], options: CsvOptions) -> Result<Box<dyn Source>, String> {
    let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
    open_source(storage, &paths, &OpenSource { csv: options }).map_err(|e| e.to_string())
}

pub fn batches(source: &mut dyn Source) -> Result<Vec<RecordBatch>, String> {
    source.batches().map_err(|e| e.to_string())?.collect::<Result<_, _>>().map_err(|e| e.to_string())
}

/// Batches to records and back to batches, with `rows` rows a batch.
pub fn through_records(table: &TableSchema, batches: &[RecordBatch], limit: usize, rows: usize) -> Vec<RecordBatch> {
    let layout = RowLayout::new(table.schema()).unwrap();
    let packer = Packer::new(table, &layout, (0..table.schema().len()).collect(), limit);
    let columns: Vec<usize> = (0..table.schema().len()).collect();
    let mut builder = BatchBuilder::new(table, &layout, &columns, rows).unwrap();
    let mut out = Vec::new();
    let mut packed = PackedRows::default();
    for batch in batches {
        packed.clear();
        packer.pack(batch, &mut packed).unwrap();
        assert_eq!(packed.len(), batch.num_rows());
        for row in packed.iter() {
            match row {
                PackedRow::Record(record) => {
                    layout.validate(record).unwrap();
                    builder.push_records(&[record], |_| unreachable!("no large values")).unwrap();
                }
                PackedRow::Wide(values) => builder.push_row(values).unwrap(),
            }
            if builder.is_full() {
                out.push(builder.finish().unwrap());
            }
        }
    }
    if !builder.is_empty() {
        out.push(builder.finish().unwrap());
    }
    out
}

/// All values of all batches, row by row.
pub fn rows(table: &TableSchema, batches: &[RecordBatch]) -> Vec<Vec<Value>> {
    let layout = RowLayout::new(table.schema()).unwrap();
    let packer = Packer::new(table, &layout, (0..table.schema().len()).collect(), 1 << 20);
    let mut packed = PackedRows::default();
    for batch in batches {
        packer.pack(batch, &mut packed).unwrap();
    }
    packed
        .iter()
        .map(|row| match row {
            PackedRow::Wide(values) => values.to_vec(),
            PackedRow::Record(record) => layout
                .decode(record)
                .unwrap()
                .into_iter()
                .map(|v| match v {
                    ColumnValue::Value(v) => v.to_owned(),
                    ColumnValue::Large(_) => unreachable!("no large values"),
                })
                .collect(),
        })
        .collect()
}

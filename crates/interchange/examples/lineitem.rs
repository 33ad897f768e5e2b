//! Speed of the ways between files, batches and records, on LINEITEM: `cargo run --release --example lineitem [scale factor]`.
//!
//! Everything lies in memory; each line is the median of several repeats, in MB of packed records per second
//! of CPU time.
#![allow(clippy::unwrap_used)]

use arrow_array::{ArrayRef, RecordBatch};
use pagefold_interchange::{BatchBuilder, CsvOptions, FileFormat, OpenSource, Packer, ParquetOptions, TableSchema, open_source};
use pagefold_io::{FileWriter, MemoryStorage, OpenOptions, Storage};
use pagefold_types::{KeyLayout, PackedRow, PackedRows, Predicate, RowLayout};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// CPU seconds of this thread, so that other work on the machine counts less; Linux only.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

fn median(mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            let start = cpu_seconds();
            run();
            cpu_seconds() - start
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[2]
}

fn main() {
    let scale: f64 = std::env::args().nth(1).map_or(0.1, |s| s.parse().unwrap());
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let file = storage.open(Path::new("lineitem.tbl"), &OpenOptions::create()).unwrap();
    let mut out = BufWriter::with_capacity(1 << 20, FileWriter::at(Arc::clone(&file), 0));
    for line in tpchgen::generators::LineItemGenerator::new(scale, 1, 1).iter() {
        writeln!(out, "{line}").unwrap();
    }
    out.flush().unwrap();
    let text_bytes = file.len().unwrap();

    let open = |path: &str| open_source(&*storage, &[PathBuf::from(path)], &OpenSource::default()).unwrap();
    let mut source = open("lineitem.tbl");
    let table = source.table().clone();
    let batches: Vec<RecordBatch> = source.batches().unwrap().map(Result::unwrap).collect();
    let layout = RowLayout::new(table.schema()).unwrap();
    let all: Vec<usize> = (0..16).collect();
    let packer = Packer::new(&table, &layout, all.clone(), 4_000);
    let mut packed = PackedRows::default();
    batches.iter().for_each(|b| packer.pack(b, &mut packed).unwrap());
    let records: Vec<&[u8]> = packed.iter().map(|r| if let PackedRow::Record(r) = r { r } else { &[] }).collect();
    let bytes = packed.record_bytes() as f64;
    println!("{} rows, {:.1} MB of text, {:.1} MB of records", records.len(), text_bytes as f64 / 1e6, bytes / 1e6);
    for column in table.schema().columns() {
        print!("{} {}, ", column.name, column.data_type);
    }
    println!();
    let show = |what: &str, seconds: f64| {
        println!("{what:42} {:8.0} MB/s {:8.1} ns a row", bytes / seconds / 1e6, seconds * 1e9 / records.len() as f64);
    };

    show("text: types from the whole file", median(|| drop(open("lineitem.tbl"))));
    show("text: rows to batches", median(|| source.batches().unwrap().for_each(|b| drop(b.unwrap()))));
    let mut again = PackedRows::default();
    show(
        "batches to records",
        median(|| {
            for batch in &batches {
                again.clear();
                packer.pack(batch, &mut again).unwrap();
            }
        }),
    );
    let views: Vec<RecordBatch> = batches.iter().map(with_views).collect();
    let view_table = TableSchema::from_arrow(views[0].schema()).unwrap();
    let view_packer = Packer::new(&view_table, &layout, all.clone(), 4_000);
    show(
        "batches with string views to records",
        median(|| {
            for batch in &views {
                again.clear();
                view_packer.pack(batch, &mut again).unwrap();
            }
        }),
    );
    show("records: validate", median(|| records.iter().for_each(|r| layout.validate(r).unwrap())));
    for (what, columns) in [("records to batches, 16 columns", &all[..]), ("records to batches, 2 columns", &[4, 10])] {
        let mut builder = BatchBuilder::new(&table, &layout, columns, 8_192).unwrap();
        show(
            what,
            median(|| {
                for chunk in records.chunks(64) {
                    builder.push_records(chunk, |_| unreachable!()).unwrap();
                    if builder.is_full() {
                        drop(builder.finish().unwrap());
                    }
                }
                drop(builder.finish().unwrap());
            }),
        );
    }
    let keys = KeyLayout::new(table.schema(), &[(0, pagefold_types::Direction::Ascending), (3, pagefold_types::Direction::Ascending)]);
    let mut key = Vec::new();
    show(
        "records to keys of two columns",
        median(|| {
            for record in &records {
                key.clear();
                keys.encode_from_record(&layout, record, &mut key).unwrap();
            }
        }),
    );
    let predicate = Predicate::parse("column5 < 24 and column11 between '1994-01-01' and '1994-12-31'", table.schema()).unwrap();
    let mut count = 0;
    show("condition on two columns", median(|| count += records.iter().filter(|r| predicate.matches(&layout, r).unwrap()).count()));
    let (quantity, date) = (layout.reader(4).unwrap(), layout.reader(10).unwrap());
    let mut sum = 0;
    show(
        "two columns by readers",
        median(|| records.iter().for_each(|r| sum += quantity.int(r).ok().flatten().unwrap_or(0) + date.int(r).unwrap().unwrap_or(0))),
    );
    for (path, format) in [
        ("out.csv", FileFormat::Csv(CsvOptions::default())),
        ("out.parquet", FileFormat::Parquet(ParquetOptions::default())),
        ("out.json", FileFormat::JsonLines),
    ] {
        let write = || {
            let mut out = Vec::new();
            let mut sink = format.sink(&mut out, &table, Some(Path::new(path))).unwrap();
            batches.iter().for_each(|b| sink.write(b).unwrap());
            sink.finish().unwrap();
            drop(sink);
            out
        };
        show(&format!("batches to {path}"), median(|| drop(write())));
        let out = write();
        FileWriter::at(storage.open(Path::new(path), &OpenOptions::create()).unwrap(), 0).write_all(&out).unwrap();
    }
    let mut parquet = open("out.parquet");
    show("Parquet to batches", median(|| parquet.batches().unwrap().for_each(|b| drop(b.unwrap()))));
    show(
        "Parquet: sample of 2 % of the rows",
        median(|| parquet.sample(records.len() as u64 / 50, 1).unwrap().for_each(|b| drop(b.unwrap()))),
    );
    show("text: sample of 2 % of the rows", median(|| source.sample(records.len() as u64 / 50, 1).unwrap().for_each(|b| drop(b.unwrap()))));
    println!("({count} {sum})");
}

fn with_views(batch: &RecordBatch) -> RecordBatch {
    let schema = batch.schema();
    let columns = batch.columns().iter().zip(schema.fields()).map(|(array, field)| {
        let array: ArrayRef = match field.data_type() {
            arrow_schema::DataType::Utf8 => arrow_cast::cast(array, &arrow_schema::DataType::Utf8View).unwrap(),
            _ => Arc::clone(array),
        };
        (field.name().clone(), array, field.is_nullable())
    });
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

//! Parquet files: there and back, several at once, samples, damage.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use arrow_array::{Array, ArrayRef, Date64Array, Int64Array, RecordBatch, StringArray, Time32SecondArray, TimestampSecondArray};
use common::{Rng, batches, get, memory, open_csv, put, rows};
use pagefold_interchange::{CsvOptions, FileFormat, FileSink, ParquetOptions, Sink, TableSchema};
use pagefold_io::Storage;
use pagefold_types::Value;
use std::path::Path;
use std::sync::Arc;

fn numbers(from: i64, count: i64) -> RecordBatch {
    let n: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + count));
    let t: ArrayRef = Arc::new(StringArray::from_iter((from..from + count).map(|i| (i % 5 > 0).then(|| format!("text {i}")))));
    RecordBatch::try_from_iter_with_nullable([("n", n, false), ("t", t, true)]).unwrap()
}

fn write(storage: &Arc<dyn Storage>, path: &str, batch: &RecordBatch, options: ParquetOptions) {
    let table = TableSchema::from_arrow(batch.schema()).unwrap();
    let mut sink = FileSink::create(Arc::clone(storage), Path::new(path), &FileFormat::Parquet(options), &table).unwrap();
    sink.write(batch).unwrap();
    sink.finish().unwrap();
}

#[test]
fn there_and_back() {
    let storage = memory();
    let batch = numbers(0, 30_000);
    for zstd_level in [None, Some(3), Some(9)] {
        write(&storage, "t.parquet", &batch, ParquetOptions { zstd_level, row_group_rows: 7_000 });
        let mut source = open_csv(&*storage, &["t.parquet"], CsvOptions::default()).unwrap();
        assert_eq!((source.row_count(), source.has_names()), (Some(30_000), true));
        let all = batches(&mut *source).unwrap();
        assert!(all.iter().all(|b| b.num_rows() <= 8_192 && b.schema() == batch.schema()));
        assert_eq!(rows(source.table(), &all), rows(source.table(), std::slice::from_ref(&batch)));
        assert!(source.bytes_done() > source.bytes_total() / 2);
        assert_eq!(batches(&mut *source).unwrap(), all, "a second time");
    }
    assert!(!storage.exists(Path::new("t.parquet.partial")).unwrap());
    let mut source = open_csv(&*storage, &["t.parquet"], CsvOptions::default()).unwrap();
    let projected: Vec<RecordBatch> = source.batches_of(&[1]).unwrap().collect::<Result<_, _>>().unwrap();
    let whole: Vec<RecordBatch> = batches(&mut *source).unwrap().iter().map(|b| b.project(&[1]).unwrap()).collect();
    assert_eq!(projected, whole);
}

#[test]
fn several_files() {
    let storage = memory();
    write(&storage, "a.parquet", &numbers(0, 1_000), ParquetOptions::default());
    write(&storage, "b.parquet", &numbers(1_000, 500), ParquetOptions::default());
    let mut source = open_csv(&*storage, &["a.parquet", "b.parquet"], CsvOptions::default()).unwrap();
    let all = batches(&mut *source).unwrap();
    assert_eq!(rows(source.table(), &all), rows(source.table(), &[numbers(0, 1_500)]));
    let other: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    write(&storage, "c.parquet", &RecordBatch::try_from_iter([("m", other)]).unwrap(), ParquetOptions::default());
    let error = open_csv(&*storage, &["a.parquet", "c.parquet"], CsvOptions::default()).map(|_| ()).unwrap_err();
    assert_eq!(error, "c.parquet: its columns are not those of a.parquet");
    put(&*storage, "d.csv", b"1,2\n");
    let error = open_csv(&*storage, &["a.parquet", "d.csv"], CsvOptions::default()).map(|_| ()).unwrap_err();
    assert!(error.contains("d.csv: is not of the same format"));
}

#[test]
fn samples() {
    let storage = memory();
    write(&storage, "a.parquet", &numbers(0, 60_000), ParquetOptions { row_group_rows: 9_000, ..ParquetOptions::default() });
    write(&storage, "b.parquet", &numbers(60_000, 40_000), ParquetOptions::default());
    let mut source = open_csv(&*storage, &["a.parquet", "b.parquet"], CsvOptions::default()).unwrap();
    for seed in 0..20 {
        let sample: Vec<RecordBatch> = source.sample(2_560, seed).unwrap().collect::<Result<_, _>>().unwrap();
        assert!((10..=11).contains(&sample.len()), "{}", sample.len());
        for (i, batch) in sample.iter().enumerate() {
            let n = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
            assert!(batch.num_rows() == 256 || sample.len() == 11 || n.value(n.len() - 1) == 59_999, "{}", batch.num_rows());
            assert!((0..n.len()).all(|k| n.value(k) == n.value(0) + k as i64), "neighbours");
            assert_eq!(n.value(0) / 10_000, i as i64, "one in each stratum");
        }
    }
    let all: usize = source.sample(1_000_000, 1).unwrap().map(|b| b.unwrap().num_rows()).sum();
    assert_eq!(all, 100_000);
}

/// Whole clusters, so many of each part, and most of the file is not read.
#[test]
fn samples_of_parts() {
    let storage = memory();
    write(&storage, "a.parquet", &numbers(0, 150_000), ParquetOptions { row_group_rows: 2_500, ..ParquetOptions::default() });
    write(&storage, "b.parquet", &numbers(150_000, 50_000), ParquetOptions { row_group_rows: 2_000, ..ParquetOptions::default() });
    let mut source = open_csv(&*storage, &["a.parquet", "b.parquet"], CsvOptions::default()).unwrap();
    let part = |n: i64| if n < 150_000 { n / 2_500 } else { 60 + (n - 150_000) / 2_000 };
    for seed in 0..20 {
        let before = source.bytes_done();
        let (sample, each) = source.sample_of_parts(40 * 256, seed).unwrap();
        let sample: Vec<RecordBatch> = sample.collect::<Result<_, _>>().unwrap();
        assert_eq!((sample.len(), each), (40, 4));
        for draw in sample.chunks(each) {
            let first = draw[0].column(0).as_any().downcast_ref::<Int64Array>().unwrap().value(0);
            for batch in draw {
                let n = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
                assert!(n.len() == 256 && (0..256).all(|k| n.value(k) == n.value(0) + k as i64), "neighbours");
                assert_eq!((part(n.value(0)), part(n.value(255))), (part(first), part(first)));
                let t = batch.column(1).as_any().downcast_ref::<StringArray>().unwrap();
                assert!((0..256).all(|k| t.is_null(k) == (n.value(k) % 5 == 0)));
            }
        }
        let read = source.bytes_done() - before;
        assert!(read * 5 < source.bytes_total() * 2, "{read} of {}", source.bytes_total());
        let keys: Vec<RecordBatch> = source.sample_of(&[1], 2_560, seed).unwrap().collect::<Result<_, _>>().unwrap();
        assert!(keys.len() >= 10 && keys.iter().all(|batch| batch.num_columns() == 1));
    }
    let (few, each) = source.sample_of_parts(2_560, 1).unwrap();
    assert_eq!((few.count() >= 10, each), (true, 1), "too few clusters for ten parts");
}

#[test]
fn no_file_is_an_error_of_one_line() {
    let storage = memory();
    put(&*storage, "t.parquet", b"no Parquet at all, but some text");
    put(&*storage, "empty.parquet", b"");
    for path in ["t.parquet", "empty.parquet", "none.parquet"] {
        let error = open_csv(&*storage, &[path], CsvOptions::default()).map(|_| ()).unwrap_err();
        assert!(error.contains(path) && !error.contains('\n'), "{error}");
    }
}

/// Cut and damaged files give errors or other rows, never a panic. `PAGEFOLD_DAMAGE_ROUNDS` asks for more of them.
#[test]
fn damaged_files() {
    let storage = memory();
    write(&storage, "t.parquet", &numbers(0, 600), ParquetOptions { row_group_rows: 200, ..ParquetOptions::default() });
    let good = get(&*storage, "t.parquet");
    let mut rng = Rng(51);
    let mut refused = 0;
    let rounds = std::env::var("PAGEFOLD_DAMAGE_ROUNDS").map_or(3_000, |n| n.parse().unwrap());
    for i in 0..rounds {
        let mut bytes = good.clone();
        if i % 3 == 0 {
            bytes.truncate(rng.below(good.len() as u64) as usize);
        } else {
            for _ in 0..=rng.below(3) {
                let at = rng.below(good.len() as u64) as usize;
                bytes[at] ^= 1 << rng.below(8);
            }
        }
        put(&*storage, "d.parquet", &bytes);
        let read = open_csv(&*storage, &["d.parquet"], CsvOptions::default()).and_then(|mut s| {
            // A sample looks at the page index, too.
            let _ = s.sample(300, i).map(|sample| sample.map(drop).count());
            let _ = s.sample_of_parts(300, i).map(|(sample, _)| sample.map(drop).count());
            batches(&mut *s)
        });
        refused += u32::from(read.is_err());
    }
    assert!(refused > 1_000, "{refused}");
}

#[test]
fn a_file_appears_only_when_complete() {
    let storage = memory();
    put(&*storage, "t.parquet", b"old");
    let batch = numbers(0, 10);
    let table = TableSchema::from_arrow(batch.schema()).unwrap();
    let mut sink =
        FileSink::create(Arc::clone(&storage), Path::new("t.parquet"), &FileFormat::Parquet(ParquetOptions::default()), &table).unwrap();
    sink.write(&batch).unwrap();
    drop(sink);
    assert_eq!(get(&*storage, "t.parquet"), b"old");
    assert!(!storage.exists(Path::new("t.parquet.partial")).unwrap());
}

/// Values of a megabyte: batches stay small, rows come back.
#[test]
fn wide_rows() {
    let storage = memory();
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..40).map(|i| format!("{i}").repeat(500_000))));
    let batch = RecordBatch::try_from_iter([("t", texts)]).unwrap();
    write(&storage, "t.parquet", &batch, ParquetOptions::default());
    let mut source = open_csv(&*storage, &["t.parquet"], CsvOptions::default()).unwrap();
    let all = batches(&mut *source).unwrap();
    assert!(all.len() > 2, "{}", all.len());
    let through = common::through_records(source.table(), &all, 8_000, 8_192);
    let back = rows(source.table(), &through);
    assert_eq!(back.len(), 40);
    assert!(back.iter().enumerate().all(|(i, r)| r[0] == Value::Text(format!("{i}").repeat(500_000))));
}

/// Parquet has no seconds and no dates of 64 bits: they are written as what others read, and seconds come back here.
#[test]
fn times_are_such_for_everybody() {
    let storage = memory();
    let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(vec![Some(0), None, Some(1_700_000_000)]));
    let zoned: ArrayRef = Arc::new(TimestampSecondArray::from(vec![Some(0), None, Some(1_700_000_000)]).with_timezone("UTC"));
    let time: ArrayRef = Arc::new(Time32SecondArray::from(vec![Some(0), None, Some(86_399)]));
    let date: ArrayRef = Arc::new(Date64Array::from(vec![Some(0), None, Some(86_400_000)]));
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("seconds", seconds, true),
        ("zoned", zoned, true),
        ("time", time, true),
        ("date", date, true),
    ])
    .unwrap();
    write(&storage, "t.parquet", &batch, ParquetOptions::default());
    let file = storage.open(Path::new("t.parquet"), &pagefold_io::OpenOptions::read_only()).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    pagefold_io::read_exact_at(&*file, &mut bytes, 0).unwrap();
    let metadata = parquet::file::metadata::ParquetMetaDataReader::new().parse_and_finish(&bytes::Bytes::from(bytes)).unwrap();
    for column in metadata.file_metadata().schema_descr().columns() {
        assert!(column.logical_type_ref().is_some(), "{} is an integer to others", column.name());
    }
    let mut source = open_csv(&*storage, &["t.parquet"], CsvOptions::default()).unwrap();
    let all = batches(&mut *source).unwrap();
    let types: Vec<String> = source.table().schema().columns().iter().map(|c| c.data_type.to_string()).collect();
    assert_eq!(types, ["TIMESTAMP(0)", "TIMESTAMP(0) WITH TIME ZONE", "TIME(0)", "TIMESTAMP(3)"]);
    let expected = rows(&TableSchema::from_arrow(batch.schema()).unwrap(), std::slice::from_ref(&batch));
    assert_eq!(rows(source.table(), &all), expected);
}

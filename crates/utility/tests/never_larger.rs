//! Rows that compression has little to gain from: under every method a table takes at most a page more than uncompressed, and ESTIMATE says to the page what it will take.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use arrow_array::RecordBatch;
use pagefold_advisor::Cost;
use pagefold_codec::block;
use pagefold_engine::database::{Database, OpenMode, Settings};
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::Method;
use pagefold_interchange::{BatchBuilder, Batches, InterchangeError, Source, TableSchema};
use pagefold_io::{MemoryStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, RowLayout, Schema, Value};
use pagefold_utility::{Costs, EstimateOptions, LoadMode, LoadOptions, Scratch, Silent, estimate_source, load_source};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const PAGE_SIZES: [usize; 3] = [2048, 8192, 32768];

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }

    fn hex(&mut self, count: usize) -> String {
        (0..count).map(|_| char::from(b"0123456789abcdef"[(self.next() % 16) as usize])).collect()
    }

    fn text(&mut self, count: usize) -> String {
        let words = ["carefully ", "final ", "deposits ", "express ", "requests ", "haggle "];
        let mut text = String::new();
        while text.len() < count {
            text.push_str(words[(self.next() % 6) as usize]);
        }
        text.truncate(count);
        text
    }
}

/// Rows in memory.
struct Rows {
    table: TableSchema,
    batch: RecordBatch,
}

impl Rows {
    fn new(types: &[DataType], rows: usize, seed: u64, mut row: impl FnMut(usize, &mut Random) -> Vec<Value>) -> Rows {
        let column = |(number, data_type): (usize, &DataType)| Column::new(format!("c{number}"), *data_type, true);
        let table = TableSchema::from_schema(Schema::new(types.iter().enumerate().map(column).collect()).unwrap());
        let layout = RowLayout::new(table.schema()).unwrap();
        let all: Vec<usize> = (0..types.len()).collect();
        let mut builder = BatchBuilder::new(&table, &layout, &all, usize::MAX).unwrap();
        let mut random = Random(seed);
        (0..rows).for_each(|number| builder.push_row(&row(number, &mut random)).unwrap());
        let batch = builder.finish().unwrap();
        Rows { table, batch }
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
        Some(self.batch.num_rows() as u64)
    }

    fn bytes_total(&self) -> u64 {
        0
    }

    fn bytes_done(&self) -> u64 {
        0
    }

    fn batches(&mut self) -> Result<Batches<'_>, InterchangeError> {
        Ok(Box::new(std::iter::once(Ok(self.batch.clone()))))
    }

    fn sample(&mut self, _: u64, _: u64) -> Result<Batches<'_>, InterchangeError> {
        self.batches()
    }
}

fn database() -> Database {
    let settings = Settings { pools: PoolSettings { memory_bytes: 16 << 20, ..PoolSettings::default() }, ..Settings::default() };
    let clock = Arc::new(SimulatedClock::new(Duration::ZERO));
    Database::open(Arc::new(MemoryStorage::new()), clock, Path::new("db"), OpenMode::Create, settings).unwrap()
}

/// Loads under every method, and compares with `none` and with what ESTIMATE says.
fn check(name: &str, mut rows: Rows, base: &LoadOptions) {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    storage.create_directory(Path::new("scratch")).unwrap();
    let scratch = Scratch { storage, directory: PathBuf::from("scratch") };
    let options = EstimateOptions {
        page_sizes: PAGE_SIZES.to_vec(),
        pctfree: base.pctfree,
        maxrows: base.maxrows,
        costs: Costs::Given(|_, _| Cost { read_ns: 1.0, write_ns: 1.0 }),
        ..EstimateOptions::default()
    };
    let said = estimate_source(&mut rows, &scratch, &options, &Silent).unwrap().methods;
    assert_eq!(said.len(), PAGE_SIZES.len() * Method::ALL.len());
    for page_bytes in PAGE_SIZES {
        let mut none = 0;
        for method in Method::ALL {
            let load = LoadOptions { method: method.into(), page_bytes, ..base.clone() };
            let done = load_source(&database(), "t", &mut rows, &load, &Silent).unwrap();
            if method == Method::None {
                none = done.pages;
            }
            assert!(done.pages <= none + 1, "{name}, {method}, {page_bytes}: {} pages, {none} uncompressed", done.pages);
            let line = said.iter().find(|m| m.estimate.method == method.name() && m.estimate.options.page_bytes == page_bytes).unwrap();
            assert_eq!(line.estimate.pages.value, done.pages, "{name}, {method}, {page_bytes}");
            assert_eq!(line.estimate.dictionary, done.dictionary, "{name}, {method}, {page_bytes}");
        }
    }
}

fn plain() -> LoadOptions {
    LoadOptions { encode_threads: 1, ..LoadOptions::default() }
}

const TEXT: DataType = DataType::Varchar(None);

fn short_texts(rows: usize) -> Rows {
    Rows::new(&[DataType::Integer, TEXT], rows, 1, |n, random| vec![Value::Int(n as i64), Value::Text(random.text(n % 60))])
}

#[test]
fn tiny_tables() {
    for rows in [0, 1, 2, 7, 40] {
        check("tiny", short_texts(rows), &plain());
    }
    check("one long row", Rows::new(&[TEXT], 1, 2, |_, random| vec![Value::Text(random.text(1500))]), &plain());
}

#[test]
fn short_rows() {
    check("only NULL", Rows::new(&[TEXT, DataType::BigInt], 9_000, 5, |_, _| vec![Value::Null, Value::Null]), &plain());
    // Codes of a row are shorter than any row may be.
    check("constant", Rows::new(&[DataType::Char(60)], 5_000, 6, |_, _| vec![Value::Text("none".into())]), &plain());
}

#[test]
fn long_rows() {
    for bytes in [680, 1010, 2030, 8100, 16_400, 40_000] {
        let rows = if bytes > 2_000 { 12 } else { 80 };
        let half = |random: &mut Random| random.hex(bytes / 2) + &random.text(bytes - bytes / 2);
        check("hexadecimal and text", Rows::new(&[TEXT], rows, 7, |_, random| vec![Value::Text(half(random))]), &plain());
        check("random", Rows::new(&[DataType::Bytea], rows, 8, |_, random| vec![Value::Bytes(random.bytes(bytes))]), &plain());
    }
    // All lengths about those at which a row less goes on a page.
    let lengths = |n: usize, random: &mut Random| vec![Value::Bytes(random.bytes(480 + n % 240))];
    check("about a quarter of a page", Rows::new(&[DataType::Bytea], 240, 9, lengths), &plain());
}

#[test]
fn few_rows_on_a_page() {
    for maxrows in [1, 3, 40] {
        check("MAXROWS", short_texts(300), &LoadOptions { maxrows: Some(maxrows), ..plain() });
    }
    for pctfree in [1, 35, 99] {
        check("PCTFREE", short_texts(300), &LoadOptions { pctfree, ..plain() });
    }
}

#[test]
fn nothing_to_gain() {
    let compressed = |_: usize, random: &mut Random| {
        let mut out = Vec::new();
        // A block that is stored as it is would be longer than the text is.
        let text = random.text(900);
        assert!(block::compress(text.as_bytes(), &mut out) < text.len());
        vec![Value::Bytes(out)]
    };
    check("compressed bytes", Rows::new(&[DataType::Bytea], 600, 10, compressed), &plain());
    check("random bytes", Rows::new(&[DataType::Bytea], 1_500, 11, |_, random| vec![Value::Bytes(random.bytes(100))]), &plain());
    check(
        "random keys",
        Rows::new(&[DataType::Uuid], 3_000, 12, |_, random| {
            let mut key = [0; 16];
            key.copy_from_slice(&random.bytes(16));
            vec![Value::Uuid(key)]
        }),
        &plain(),
    );
    check(
        "random numbers",
        Rows::new(&[DataType::BigInt, DataType::Double], 3_000, 13, |_, random| {
            vec![Value::Int(random.next() as i64), Value::Double(f64::from_bits(random.next() >> 12 | 0x3FF0 << 48))]
        }),
        &plain(),
    );
    check("hexadecimal digits", Rows::new(&[DataType::Char(32)], 2_000, 14, |_, random| vec![Value::Text(random.hex(32))]), &plain());
    // One row of ten has something to gain.
    check(
        "mostly random",
        Rows::new(&[TEXT, DataType::Bytea], 1_000, 15, |n, random| {
            if n % 10 == 0 { vec![Value::Text(random.text(120)), Value::Null] } else { vec![Value::Null, Value::Bytes(random.bytes(120))] }
        }),
        &plain(),
    );
}

/// Rows that come later in transactions are of another kind than those that the dictionary was trained on.
#[test]
fn rows_appended() {
    let types = [TEXT, DataType::Bytea];
    let text = |_: usize, random: &mut Random| vec![Value::Text(random.text(200)), Value::Null];
    let noise = |_: usize, random: &mut Random| vec![Value::Null, Value::Bytes(random.bytes(200))];
    for page_bytes in [2048, 8192] {
        let pages = |method: Method| {
            let database = database();
            let load = LoadOptions { method: method.into(), page_bytes, ..plain() };
            load_source(&database, "t", &mut Rows::new(&types, 1_000, 16, text), &load, &Silent).unwrap();
            let more = LoadOptions { mode: LoadMode::Append, ..load };
            load_source(&database, "t", &mut Rows::new(&types, 3_000, 17, noise), &more, &Silent).unwrap().pages
        };
        let none = pages(Method::None);
        for method in Method::ALL {
            let taken = pages(method);
            assert!(taken <= none + 1, "{method}, {page_bytes}: {taken} pages, {none} uncompressed");
        }
    }
}

#[test]
fn shortest_rows() {
    check("numbers", Rows::new(&[DataType::SmallInt], 9_000, 3, |n, _| vec![Value::Int((n % 30_000) as i64)]), &plain());
    check("truth values", Rows::new(&[DataType::Boolean], 9_000, 3, |n, _| vec![Value::Boolean(n % 3 == 0)]), &plain());
    check("characters", Rows::new(&[DataType::Char(1)], 9_000, 4, |_, random| vec![Value::Text(random.hex(1))]), &plain());
}

#[test]
fn dictionaries_that_save_no_page() {
    // Rows of which one goes on a page of 2 KB, compressed or not.
    let letters = |_: usize, random: &mut Random| {
        let letter = |_| char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-"[(random.next() % 64) as usize]);
        vec![Value::Text((0..1_500).map(letter).collect())]
    };
    check("one on a page", Rows::new(&[TEXT], 400, 18, letters), &plain());
    check("both", short_texts(900), &LoadOptions { pctfree: 60, maxrows: Some(5), ..plain() });
}

/// A dictionary is trained on rows from everywhere, so what comes first does not decide what it is good for.
#[test]
fn rows_of_two_kinds_in_either_order() {
    const EACH: usize = 7_000;
    let letters = |random: &mut Random| {
        let letter = |_| char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"[(random.next() % 26) as usize]);
        (0..1_300).map(letter).collect()
    };
    let pages = |letters_first: bool| {
        let row = |n: usize, random: &mut Random| {
            let text = if (n < EACH) == letters_first { letters(random) } else { random.text(1_300) };
            vec![Value::Text(text)]
        };
        let load = LoadOptions { method: Method::Fixed.into(), ..plain() };
        load_source(&database(), "t", &mut Rows::new(&[TEXT], 2 * EACH, 20, row), &load, &Silent).unwrap().pages
    };
    let (first, last) = (pages(true), pages(false));
    println!("{first} pages with the letters first, {last} with them last");
    assert!(first.abs_diff(last) * 50 < last, "{first} pages with the letters first, {last} with them last");
}

/// Rows of which nearly nothing is left: they are padded to what a forward pointer takes.
#[test]
fn rows_that_compress_best() {
    let row = |n: usize, _: &mut Random| {
        let letter = |n: usize| char::from(b'a' + (n % 26) as u8);
        vec![Value::Text(format!("{}{}{}", letter(n), "the same in every row, whatever number it has; so it is a token ", letter(n / 26)))]
    };
    check("two letters", Rows::new(&[TEXT], 30_000, 21, row), &plain());
    let pages = |method: Method| {
        let load = LoadOptions { method: method.into(), ..plain() };
        load_source(&database(), "t", &mut Rows::new(&[TEXT], 30_000, 21, row), &load, &Silent).unwrap().pages
    };
    let none = pages(Method::None);
    for method in [Method::Fixed, Method::Huffman] {
        let taken = pages(method);
        assert!(taken * 4 < none, "{method}: {taken} pages, {none} uncompressed");
    }
}

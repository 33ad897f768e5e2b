//! How often intervals of samples of 100 pages have the truth in them, over twenty files of different kinds: many numeric columns, keys with long runs, few values, drifts.
//!
//! `cargo test --release -p pagefold-utility --test estimate -- intervals_over_twenty_files --ignored --nocapture`; `PAGEFOLD_COVERAGE_SEEDS` samples of each (10),
//! `PAGEFOLD_COVERAGE_MB` the size of a file (5), `PAGEFOLD_COVERAGE_FILES` other files of the same kinds (1000), `PAGEFOLD_COVERAGE_PAGES` of a sample (100),
//! `PAGEFOLD_COVERAGE_ONLY` one file by its name.

use crate::random::Rng;
use crate::tables::{Rows, SAME, database};
use arrow_array::{ArrayRef, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{Field, Schema};
use pagefold_advisor::Interval;
use pagefold_engine::database::Database;
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::Method;
use pagefold_io::MemoryStorage;
use pagefold_types::Direction;
use pagefold_utility::{EstimateOptions, IndexOptions, LoadOptions, Silent, create_index, estimate_index, estimate_table, load_source};
use std::collections::BTreeMap;
use std::sync::Arc;

const PAGE_BYTES: usize = 8192;
const LEAF_BYTES: usize = 2048;
const METHODS: [Method; 5] = [Method::None, Method::Row, Method::Page, Method::Fixed, Method::Huffman];
/// Samples of an index for each of a table: they take less time, and few of the files have an index that is large enough for one.
const INDEX_SAMPLES: u64 = 20;
const FORMATS: [(IndexFormat, usize); 3] =
    [(IndexFormat::Plain, LEAF_BYTES), (IndexFormat::Fold, PAGE_BYTES), (IndexFormat::Prefix, PAGE_BYTES)];

/// What a column is like.
#[derive(Clone, Copy)]
enum Kind {
    /// The row's number.
    Counter,
    /// Any of so many numbers.
    Any(u64),
    /// One of so many numbers, far apart.
    Few(u64),
    /// The same for so many rows.
    Runs(u64),
    /// A step of at most so many to the next.
    Walk(u64),
    /// Any of a number that grows with the row's.
    Drift(u64),
    /// A DECIMAL(12, 2).
    Price(u64),
    /// A DOUBLE.
    Measured,
    /// A few words and a number.
    Text(u64),
    /// NULL but for one row of so many.
    Sparse(u64),
    /// Texts that come again after so many rows.
    Again(u64),
    /// Texts of which few are very long.
    LongTail,
}

use Kind::{Again, Any, Counter, Drift, Few, LongTail, Measured, Price, Runs, Sparse, Text, Walk};

/// The first column is the key of the index.
fn files() -> Vec<(&'static str, Vec<Kind>)> {
    let many = |first: Kind, kind: Kind, columns: usize| [vec![first], vec![kind; columns]].concat();
    vec![
        ("random numbers", many(Counter, Any(1 << 40), 16)),
        ("small random numbers", many(Any(1000), Any(1000), 20)),
        ("prices", many(Counter, Price(1_000_000), 14)),
        ("measured", many(Runs(50), Measured, 12)),
        ("sensors", many(Runs(700), Walk(20), 24)),
        ("slow sensors", many(Counter, Walk(1), 24)),
        ("drift", many(Counter, Drift(1 << 30), 16)),
        ("few values", many(Few(12), Few(12), 20)),
        ("two values", many(Few(2), Few(2), 24)),
        ("long runs", many(Runs(5000), Runs(900), 16)),
        ("short runs", many(Runs(7), Runs(30), 16)),
        ("sparse", many(Counter, Sparse(20), 30)),
        ("texts", many(Text(3), Text(6), 3)),
        ("short texts", many(Text(1), Text(1), 8)),
        ("orders", vec![Counter, Runs(4), Few(5), Price(500_000), Walk(3), Few(3), Text(5), Any(2000), Price(100), Few(7)]),
        ("trades", vec![Runs(20), Walk(5), Price(100_000), Any(10_000), Few(40), Few(2), Walk(50), Measured, Any(64), Counter]),
        ("log", vec![Walk(9), Few(6), Text(8), Few(300), Sparse(9), Any(65_536)]),
        ("wide mix", [vec![Any(1 << 50)], [Any(100), Walk(40), Price(9000), Few(90)].repeat(6)].concat()),
        ("grown prices", [vec![Drift(1 << 20)], [Drift(40_000), Price(100_000), Few(16)].repeat(4)].concat()),
        ("events", vec![Few(9), Walk(2), Runs(300), Text(4), Sparse(3), Measured, Price(2000), Any(1 << 24)]),
    ]
}

/// Files of which a small sample says little: what they have shows over many pages, or on few of them.
fn unlike_their_samples() -> Vec<(&'static str, Vec<Kind>)> {
    vec![
        ("texts again after 3,000 rows", vec![Counter, Again(3000), Again(3000)]),
        ("texts again after 300 rows", vec![Counter, Again(300)]),
        ("long tails", vec![Counter, LongTail, LongTail]),
        ("all alike", vec![Few(1); 12]),
        ("random numbers", vec![Any(1 << 40); 9]),
        ("few texts and many numbers", vec![Counter, Text(2), Any(1 << 30), Runs(40), Text(9)]),
    ]
}

fn column(kind: Kind, rows: u64, rng: &mut Rng) -> ArrayRef {
    let words = ["ash", "birch", "cedar", "elm ", "fir", "hazel", "larch ", "maple", "oak", "rowan"];
    let far = |n: u64| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) as i64;
    let (mut last, start) = (1_000_000i64, rng.below(1 << 40));
    let mut ints =
        |of: &mut dyn FnMut(u64, &mut Rng) -> i64| -> ArrayRef { Arc::new((0..rows).map(|row| of(row, rng)).collect::<Int64Array>()) };
    match kind {
        Counter => ints(&mut |row, _| row as i64),
        Any(n) => ints(&mut |_, rng| rng.below(n) as i64),
        Few(n) => ints(&mut |_, rng| far(rng.below(n))),
        Runs(n) => ints(&mut |row, _| far(start + row / n)),
        Walk(n) => ints(&mut |_, rng| {
            last += rng.below(2 * n + 1) as i64 - n as i64;
            last
        }),
        Drift(n) => ints(&mut |row, rng| rng.below(1 + n * row / rows) as i64),
        Price(n) => {
            let prices = (0..rows).map(|_| Some(i128::from(rng.below(n))));
            Arc::new(prices.collect::<Decimal128Array>().with_precision_and_scale(12, 2).unwrap())
        }
        Measured => Arc::new((0..rows).map(|_| Some(20.0 + rng.below(1 << 30) as f64 / 1e8)).collect::<Float64Array>()),
        Text(n) => {
            let text = |rng: &mut Rng| {
                let text: String = (0..1 + rng.below(n)).map(|_| words[rng.below(10) as usize]).collect();
                text + &rng.below(500).to_string()
            };
            Arc::new((0..rows).map(|_| Some(text(rng))).collect::<StringArray>())
        }
        Again(n) => {
            let text = |rng: &mut Rng| (0..4 + rng.below(9)).map(|_| format!("{:x}", rng.below(1 << 20))).collect::<String>();
            let texts: Vec<String> = (0..n).map(|_| text(rng)).collect();
            Arc::new((0..rows).map(|row| Some(&texts[(row % n) as usize])).collect::<StringArray>())
        }
        LongTail => {
            let text = |rng: &mut Rng| {
                let length = (4.0 / (1.0 - rng.below(1 << 20) as f64 / (1u64 << 20) as f64)).min(3000.0) as u64;
                (0..length).map(|_| char::from(b'a' + (rng.below(26) * rng.below(26) / 25) as u8)).collect::<String>()
            };
            Arc::new((0..rows).map(|_| Some(text(rng))).collect::<StringArray>())
        }
        Sparse(n) => Arc::new((0..rows).map(|_| (rng.below(n) == 0).then(|| rng.below(1 << 32) as i64)).collect::<Int64Array>()),
    }
}

fn number_of(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |number| number.parse().unwrap())
}

fn rows(kinds: &[Kind], seed: u64, bytes: u64) -> Rows {
    let mut rng = Rng(seed);
    let rows = (bytes / (16 + 9 * kinds.len() as u64)).min(bytes * 12 / 1000);
    let columns: Vec<ArrayRef> = kinds.iter().map(|kind| column(*kind, rows, &mut rng)).collect();
    let nullable = |kind: &Kind| matches!(kind, Sparse(_));
    let fields = columns.iter().zip(kinds).enumerate();
    let fields: Vec<Field> = fields.map(|(i, (c, kind))| Field::new(format!("c{i}"), c.data_type().clone(), nullable(kind))).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    Rows::new((0..rows as usize).step_by(4096).map(|from| batch.slice(from, 4096.min(rows as usize - from))).collect())
}

#[derive(Default)]
struct Cases {
    inside: u64,
    widths: Vec<f64>,
    errors: Vec<f64>,
}

impl Cases {
    fn see(&mut self, interval: Interval, truth: u64) {
        self.inside += u64::from(interval.contains(truth));
        self.widths.push(interval.half_width());
        self.errors.push(interval.value as f64 / truth as f64 - 1.0);
    }

    fn add(&mut self, other: &Cases) {
        self.inside += other.inside;
        self.widths.extend(&other.widths);
        self.errors.extend(&other.errors);
    }

    fn line(&self) -> String {
        let (mut widths, mut errors) = (self.widths.clone(), self.errors.clone());
        widths.sort_unstable_by(f64::total_cmp);
        errors.sort_unstable_by(f64::total_cmp);
        let n = widths.len();
        let percent = |part: f64| part * 100.0;
        format!(
            "{} of {n} inside; half-width {:.2} % (most {:.1} %); errors {:+.1} to {:+.1} %, median {:+.2} %",
            self.inside,
            percent(widths[n / 2]),
            percent(widths[n - 1]),
            percent(errors[0]),
            percent(errors[n - 1]),
            percent(errors[n / 2])
        )
    }
}

fn loaded(kinds: &[Kind], (seed, bytes): (u64, u64), method: Method) -> (Database, u64) {
    let database = database(Arc::new(MemoryStorage::new()), 64 << 20);
    let options = LoadOptions { method: method.into(), page_bytes: PAGE_BYTES, ..LoadOptions::default() };
    let pages = load_source(&database, "t", &mut rows(kinds, seed, bytes), &options, &Silent).unwrap().pages;
    (database, pages)
}

/// The cases of one file, by method or format.
fn cases((number, kinds): (usize, &[Kind]), seeds: u64, (bytes, pages): (u64, u64)) -> BTreeMap<String, Cases> {
    let mut all: BTreeMap<String, Cases> = BTreeMap::new();
    let file_seed = number_of("PAGEFOLD_COVERAGE_FILES", 1000) + number as u64;
    let truths = METHODS.map(|method| loaded(kinds, (file_seed, bytes), method).1);
    let (plain, _) = loaded(kinds, (file_seed, bytes), Method::None);
    let options = |seed: u64, page_bytes: usize| EstimateOptions {
        page_sizes: vec![page_bytes],
        page_bytes,
        seed,
        sample_pages: Some(pages),
        costs: SAME,
        ..EstimateOptions::default()
    };
    for seed in 0..seeds {
        let report = estimate_table(&plain, "t", &options(seed, PAGE_BYTES), &Silent).unwrap();
        assert!(report.sample.is_some() || bytes < 5_000_000);
        for (method, truth) in METHODS.iter().zip(truths) {
            let found = report.methods.iter().find(|m| m.estimate.method == method.name() && m.estimate.options.page_bytes == PAGE_BYTES);
            // A dictionary that does not pay is no candidate.
            let Some(found) = found else { continue };
            all.entry(method.name().into()).or_default().see(found.estimate.pages, truth);
        }
    }
    for (direction, way) in [(Direction::Ascending, "ascending"), (Direction::Descending, "descending")] {
        let columns = vec![("c0".to_owned(), direction)];
        let build = |name: &str, (format, page_bytes): (IndexFormat, usize)| {
            let options = IndexOptions { format: format.into(), page_bytes: Some(page_bytes), ..IndexOptions::default() };
            create_index(&plain, name, "t", &columns, &options, &Silent).unwrap().pages
        };
        let truths = FORMATS.map(|format| build(&format!("{}_{way}", format.0), format));
        for seed in 0..seeds * INDEX_SAMPLES {
            let mut options = options(seed, LEAF_BYTES);
            options.page_sizes = vec![LEAF_BYTES, PAGE_BYTES];
            let report = estimate_index(&plain, &format!("plain_{way}"), &options, &Silent).unwrap();
            if report.sample.is_none() {
                continue;
            }
            for ((format, page_bytes), truth) in FORMATS.iter().zip(truths) {
                let mut lines = report.indexes[0].lines.iter().map(|line| &line.estimate);
                let found = lines.find(|e| e.candidate.format() == format.name() && e.candidate.page_bytes == *page_bytes).unwrap();
                all.entry(format!("index {format} {way}")).or_default().see(found.pages, truth);
            }
        }
    }
    all
}

fn run(seeds: u64, files: Vec<(&'static str, Vec<Kind>)>) -> BTreeMap<String, Cases> {
    let mut all: BTreeMap<String, Cases> = BTreeMap::new();
    let only = std::env::var("PAGEFOLD_COVERAGE_ONLY");
    for (number, (name, kinds)) in files.iter().enumerate() {
        if only.as_ref().is_ok_and(|only| only != name) {
            continue;
        }
        let size = (number_of("PAGEFOLD_COVERAGE_MB", 5) * 1_000_000, number_of("PAGEFOLD_COVERAGE_PAGES", 100));
        for (what, cases) in cases((number, kinds), seeds, size) {
            if cases.inside < cases.widths.len() as u64 {
                println!("{name}, {what}: {}", cases.line());
            }
            all.entry(what).or_default().add(&cases);
        }
    }
    println!();
    for (what, cases) in &all {
        println!("{what}: {}", cases.line());
    }
    all
}

fn check(seeds: u64, files: Vec<(&'static str, Vec<Kind>)>) {
    let all = run(seeds, files);
    let (inside, cases) = all.values().fold((0, 0), |sum, cases| (sum.0 + cases.inside, sum.1 + cases.widths.len() as u64));
    println!("{inside} of {cases}");
    assert!(inside * 100 >= cases * 95, "{inside} of {cases}");
    for (what, cases) in &all {
        let (inside, cases) = (cases.inside, cases.widths.len() as u64);
        assert!(inside * 100 >= cases * 95, "{what}: {inside} of {cases}");
    }
}

#[test]
fn intervals_over_some_files() {
    check(3, files().into_iter().filter(|(name, _)| ["prices", "orders"].contains(name)).collect());
}

#[test]
#[ignore = "takes long: twenty files, ten samples of each"]
fn intervals_over_twenty_files() {
    check(number_of("PAGEFOLD_COVERAGE_SEEDS", 10), files());
}

/// However few pages are asked for.
#[test]
#[ignore = "takes long: files of three sizes, samples of five"]
fn intervals_of_few_pages() {
    let (mut inside, mut all) = (0, 0);
    for kilobytes in [700, 1500, 4000] {
        for pages in [2, 10, 20, 40, 100] {
            for (number, (name, kinds)) in unlike_their_samples().iter().enumerate() {
                for (what, cases) in cases((number, kinds), number_of("PAGEFOLD_COVERAGE_SEEDS", 10), (kilobytes * 1000, pages)) {
                    (inside, all) = (inside + cases.inside, all + cases.widths.len() as u64);
                    if cases.inside < cases.widths.len() as u64 {
                        println!("{kilobytes} KB, {pages} pages, {name}, {what}: {}", cases.line());
                    }
                }
            }
        }
    }
    println!("{inside} of {all}");
    assert!(inside * 100 >= all * 95, "{inside} of {all}");
}

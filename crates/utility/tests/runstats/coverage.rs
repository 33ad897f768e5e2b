//! Samples: of 200 seeds, each figure is inside its interval in 93 % at least.

use super::full::{cut_key, gather};
use super::world::{columns, make, open, rows, storage};
use pagefold_engine::database::{Database, OpenMode, TransactionOptions};
use pagefold_engine::table_space::{Method, Table};
use pagefold_format::catalog::{Figures, Statistics, figure};
use pagefold_types::ValueRef;
use pagefold_utility::{ReorgOptions, RunstatsOptions, Sample, Silent, TableRunstats, reorg, runstats};
use std::collections::BTreeMap;
use std::sync::Arc;

const SEEDS: u64 = 200;
const INSIDE_MIN: u64 = SEEDS * 93 / 100;

#[derive(Default)]
struct Hits(BTreeMap<String, (u64, u64)>);

impl Hits {
    fn count(&mut self, what: String, hit: bool) {
        let counts = self.0.entry(what).or_default();
        counts.0 += u64::from(hit);
        counts.1 += 1;
    }

    fn figures(&mut self, of: &str, sample: &Statistics, truth: &Statistics) {
        for (number, figure) in sample.figures.iter() {
            self.count(format!("{of}, figure {number}"), figure.contains(truth.figures.get(number).unwrap().value));
        }
    }
}

/// Of each column: all keys in order; the least and greatest of each page.
struct Truth {
    sorted: Vec<Vec<u8>>,
    pages: Vec<(Vec<u8>, Vec<u8>)>,
    page_count: usize,
}

/// Intervals that say nothing would always hold.
fn narrow_enough(sample: &TableRunstats) {
    let width = |figures: &Figures, number| figures.get(number).map_or(0.0, |figure| figure.high - figure.low);
    let of_table = &sample.statistics.figures;
    let stored = of_table.get(figure::STORED_BYTES).unwrap();
    assert!(width(of_table, figure::STORED_BYTES) < 0.25 * stored.value, "{stored:?}");
    let column = |name: &str| {
        let number = columns().iter().position(|column| column.name == name).unwrap();
        &sample.statistics.column(number as u32).unwrap().figures
    };
    for (name, number, most) in [
        ("kind", figure::NULL_SHARE, 0.15),
        ("city", figure::NULL_SHARE, 0.35),
        ("flag", figure::NULL_SHARE, 0.12),
        ("kind", figure::CORRELATION, 0.4),
        ("id", figure::CORRELATION, 0.5),
        ("kind", figure::DISTINCT, 1_000.0),
        ("flag", figure::DISTINCT, 0.0),
        ("price", figure::HISTOGRAM_ERROR, 0.0),
    ] {
        assert!(width(column(name), number) <= most, "{name}, figure {number}: {:?}", column(name).get(number));
    }
    let error = column("price").get(figure::HISTOGRAM_ERROR).unwrap().value;
    assert!(error < 0.12, "{error}");
    let wide = column("note").get(figure::DISTINCT).unwrap();
    assert!(wide.low > 500.0 && wide.value < 40_000.0, "{wide:?}");
}

fn compare(hits: &mut Hits, sample: &TableRunstats, truth: &TableRunstats, columns_truth: &[Truth]) {
    assert!(sample.statistics.seed.is_some(), "a sample");
    hits.figures("table", &sample.statistics, &truth.statistics);
    let all_rows = truth.statistics.figures.get(figure::ROWS).unwrap().value;
    for (found, known) in sample.statistics.columns.iter().zip(&truth.statistics.columns) {
        let name = &columns()[found.column as usize].name;
        let Truth { sorted, pages, page_count } = &columns_truth[found.column as usize];
        for number in [figure::NULL_SHARE, figure::VALUE_BYTES, figure::DISTINCT, figure::CORRELATION] {
            let truth = known.figures.get(number).unwrap();
            // Of a column all of whose values were NULL no correlation is said.
            let Some(figure) = found.figures.get(number) else { continue };
            hits.count(format!("{name}, figure {number}"), figure.contains(truth.value));
        }
        let beyond = found.figures.get(figure::BEYOND_SHARE).unwrap().high * *page_count as f64;
        if let (Some(least), Some(greatest)) = (&found.least, &found.greatest) {
            let below = pages.iter().filter(|page| page.0 < *least).count();
            let above = pages.iter().filter(|page| page.1 > *greatest).count();
            hits.count(format!("{name}, least"), below as f64 <= beyond + 1e-9);
            hits.count(format!("{name}, greatest"), above as f64 <= beyond + 1e-9);
        }
        let error = found.figures.get(figure::HISTOGRAM_ERROR).map_or(1.0, |figure| figure.value);
        let steps = found.bounds.len().saturating_sub(1).max(1) as f64;
        let n = sorted.len() as f64;
        let holds = found.bounds.iter().enumerate().all(|(step, bound)| {
            let below = sorted.partition_point(|key| key < bound) as f64 / n;
            let until = sorted.partition_point(|key| key <= bound) as f64 / n;
            below - error <= step as f64 / steps && step as f64 / steps <= until + error
        });
        hits.count(format!("{name}, histogram"), holds);
        let share =
            |value: &Vec<u8>| (sorted.partition_point(|key| key <= value) - sorted.partition_point(|key| key < value)) as f64 / all_rows;
        hits.count(format!("{name}, frequent"), found.frequent.iter().all(|(value, figure)| figure.contains(share(value))));
    }
    for (found, known) in sample.indexes.iter().zip(&truth.indexes) {
        assert!(found.statistics.seed.is_some(), "a sample of {}", found.name);
        hits.figures(&found.name, &found.statistics, &known.statistics);
        for (at, (figure, truth)) in found.statistics.prefixes.iter().zip(&known.statistics.prefixes).enumerate() {
            hits.count(format!("{}, prefix {at}", found.name), figure.contains(truth.value));
        }
    }
}

/// Rows of some places become longer, and leave their pages.
fn grow(database: &Database, table: &Arc<Table>) {
    let mut transaction = database.begin(TransactionOptions::default());
    for (at, (rid, _)) in rows(database, table).iter().enumerate().filter(|(at, _)| at % 9 == 0 && at / 700 % 3 == 0) {
        let note = format!("{at} longer ").repeat(12);
        assert!(transaction.update(table, *rid, &[(3, ValueRef::Text(&note))]).unwrap());
    }
    transaction.commit().unwrap();
}

fn covered(method: Method, page_bytes: usize, row_count: i64) {
    let storage = storage();
    let database = open(&storage, OpenMode::Create);
    let table = make(&database, Method::None, page_bytes, row_count, 77);
    if method == Method::None {
        grow(&database, &table);
    } else {
        // Written anew, a table is the same each time; one that gets its dictionary while rows come is not. Nor does who only reads do something in the background.
        reorg(&database, "t", &ReorgOptions { method: Some(method.into()), ..ReorgOptions::default() }, &Silent).unwrap();
    }
    drop(table);
    database.close().unwrap();
    let database = open(&storage, OpenMode::Read);
    let table = database.table("t").unwrap();
    let truth = gather(&database);
    let all = rows(&database, &table);
    let of_column = |number: usize, data_type| {
        let mut pages: BTreeMap<(u16, u32), (Vec<u8>, Vec<u8>)> = BTreeMap::new();
        let mut sorted = Vec::new();
        for (rid, row) in &all {
            let Some(key) = cut_key(data_type, &row[number]) else { continue };
            let page = pages.entry((rid.partition(), rid.page())).or_insert_with(|| (key.clone(), key.clone()));
            page.0 = key.clone().min(std::mem::take(&mut page.0));
            page.1 = key.clone().max(std::mem::take(&mut page.1));
            sorted.push(key);
        }
        sorted.sort();
        let page_count = truth.statistics.figures.get(figure::DATA_PAGES).unwrap().value as usize;
        Truth { sorted, pages: pages.into_values().collect(), page_count }
    };
    let columns_truth: Vec<Truth> = columns().iter().enumerate().map(|(number, column)| of_column(number, column.data_type)).collect();
    let mut hits = Hits::default();
    for seed in 0..SEEDS {
        let options = RunstatsOptions { sample: Sample::Percent(10.0), seed, keep: false };
        let mut report = runstats(&database, &["t".into()], &options, &Silent).unwrap();
        let sample = report.tables.pop().unwrap();
        narrow_enough(&sample);
        compare(&mut hits, &sample, &truth, &columns_truth);
    }
    assert_eq!(gather(&database).statistics.figures, truth.statistics.figures, "the table has changed meanwhile");
    for (what, (inside, of)) in &hits.0 {
        println!("{what}: {inside} of {of}");
    }
    let low: Vec<_> = hits.0.iter().filter(|(_, (inside, of))| *inside * SEEDS < INSIDE_MIN * of).collect();
    assert!(hits.0.len() > 90, "{} figures", hits.0.len());
    assert!(low.is_empty(), "{method}: figures that are inside too seldom: {low:?}");
}

#[test]
fn figures_are_inside_their_intervals_none() {
    covered(Method::None, 2048, 15_000);
}

#[test]
fn figures_are_inside_their_intervals_page() {
    covered(Method::Page, 2048, 25_000);
}

#[test]
fn figures_are_inside_their_intervals_huffman() {
    covered(Method::Huffman, 2048, 15_000);
}

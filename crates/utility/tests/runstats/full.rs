//! Everything is read: what comes out is what brute force over the rows gives.

use super::random::Rng;
use super::world::{columns, insert, make, open, rows, storage};
use pagefold_engine::database::{Database, OpenMode, TransactionOptions};
use pagefold_engine::table_space::{Method, Table};
use pagefold_format::catalog::{Figure, Statistics, figure};
use pagefold_types::{Column, DataType, Direction, KeyLayout, Rid, Schema, Value, ValueRef};
use pagefold_utility::{RunstatsOptions, Silent, TableRunstats, report, runstats};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A value as statistics have it: texts are cut.
pub(crate) fn cut_key(data_type: DataType, value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Text(text) if text.len() > 48 => key(data_type, &Value::Text(text[..48].into())),
        other => key(data_type, other),
    }
}

/// A value as a key.
pub(crate) fn key(data_type: DataType, value: &Value) -> Option<Vec<u8>> {
    let text;
    let value = match value {
        Value::Null => return None,
        Value::Text(whole) => {
            let trimmed = if let DataType::Char(_) = data_type { whole.trim_end_matches(' ') } else { whole };
            text = trimmed;
            ValueRef::Text(text)
        }
        other => other.as_ref(),
    };
    let key_type = if data_type.is_text() { DataType::Varchar(None) } else { data_type };
    let schema = Schema::new(vec![Column::new("value", key_type, false)]).unwrap();
    let mut key = Vec::new();
    KeyLayout::new(&schema, &[(0, Direction::Ascending)]).encode(&[value], &mut key).unwrap();
    Some(key)
}

fn width(data_type: DataType, value: &Value) -> usize {
    match value {
        Value::Text(text) if matches!(data_type, DataType::Char(_)) => text.trim_end_matches(' ').len(),
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => data_type.fixed_width().unwrap(),
    }
}

/// Rank correlation with the order of the rows.
fn spearman(keys: &[Option<Vec<u8>>]) -> f64 {
    let there: Vec<(usize, &Vec<u8>)> = keys.iter().flatten().enumerate().collect();
    let mut sorted: Vec<&Vec<u8>> = there.iter().map(|(_, key)| *key).collect();
    sorted.sort();
    let rank = |key: &Vec<u8>| (sorted.partition_point(|k| *k < key) + sorted.partition_point(|k| *k <= key)) as f64 / 2.0;
    let pairs: Vec<(f64, f64)> = there.iter().map(|(at, key)| (*at as f64, rank(key))).collect();
    let n = pairs.len() as f64;
    let (x, y) = (pairs.iter().map(|p| p.0).sum::<f64>() / n, pairs.iter().map(|p| p.1).sum::<f64>() / n);
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    pairs.iter().for_each(|(a, b)| (xx, xy, yy) = (xx + (a - x).powi(2), xy + (a - x) * (b - y), yy + (b - y).powi(2)));
    if xx * yy > 0.0 { xy / (xx * yy).sqrt() } else { 0.0 }
}

fn get(statistics: &Statistics, number: u32) -> Figure {
    statistics.figures.get(number).unwrap_or_else(|| panic!("no figure {number}"))
}

#[track_caller]
fn exact(figure: Figure, truth: f64, what: &str) {
    assert!(figure.is_exact() && (figure.value - truth).abs() <= 1e-9 * truth.abs().max(1.0), "{what}: {figure:?}, not {truth}");
}

pub(crate) fn gather(database: &Database) -> TableRunstats {
    let options = RunstatsOptions { keep: false, ..RunstatsOptions::default() };
    runstats(database, &["t".into()], &options, &Silent).unwrap().tables.pop().unwrap()
}

/// Compares everything with the rows; `has_large`: the column of notes has values outside.
fn compare(database: &Database, table: &Arc<Table>, large: Option<usize>) {
    let (found, all) = (gather(database), rows(database, table));
    let statistics = &found.statistics;
    exact(get(statistics, figure::ROWS), all.len() as f64, "rows");
    let reported = report(database, Some("t"), &Silent).unwrap();
    let reported = &reported.tables[0];
    exact(get(statistics, figure::DATA_PAGES), reported.npages as f64, "pages");
    exact(get(statistics, figure::PAGES), reported.pages as f64, "all pages");
    let with_rows = all.iter().map(|(rid, _)| (rid.partition(), rid.page())).collect::<BTreeSet<_>>().len();
    exact(get(statistics, figure::PAGES_WITH_ROWS_SHARE), with_rows as f64 / reported.npages.max(1) as f64, "pages with rows");
    exact(get(statistics, figure::RECORD_BYTES), reported.record_bytes_avg, "record bytes");
    exact(get(statistics, figure::STORED_BYTES), reported.stored_bytes_avg, "stored bytes");
    exact(get(statistics, figure::MOVED_SHARE), reported.moved_share, "moved");
    exact(get(statistics, figure::COMPRESSED_SHARE), reported.compressed_share, "compressed");
    for (number, column) in columns().iter().enumerate() {
        let of_column = statistics.column(number as u32).unwrap();
        let get = |figure| of_column.figures.get(figure).unwrap();
        let keys: Vec<Option<Vec<u8>>> = all.iter().map(|(_, row)| key(column.data_type, &row[number])).collect();
        let name = &column.name;
        let there: Vec<&Vec<u8>> = keys.iter().flatten().collect();
        let nulls = keys.len() - there.len();
        exact(get(figure::NULL_SHARE), nulls as f64 / keys.len().max(1) as f64, name);
        let widths: usize =
            all.iter().filter(|(_, row)| !row[number].as_ref().is_null()).map(|(_, row)| width(column.data_type, &row[number])).sum();
        let fixed = column.data_type.fixed_width().map(|width| width as f64);
        exact(get(figure::VALUE_BYTES), fixed.unwrap_or(widths as f64 / there.len().max(1) as f64), name);
        let distinct: BTreeSet<&Vec<u8>> = there.iter().copied().collect();
        exact(get(figure::DISTINCT), distinct.len() as f64, name);
        let keys: Vec<Option<Vec<u8>>> = all.iter().map(|(_, row)| cut_key(column.data_type, &row[number])).collect();
        let there: Vec<&Vec<u8>> = keys.iter().flatten().collect();
        let distinct: BTreeSet<&Vec<u8>> = there.iter().copied().collect();
        if large == Some(number) {
            assert!(of_column.least.is_none() && of_column.bounds.is_empty() && of_column.frequent.is_empty());
            continue;
        }
        assert_eq!(of_column.least.as_ref(), distinct.first().copied(), "{name}");
        assert_eq!(of_column.greatest.as_ref(), distinct.last().copied(), "{name}");
        assert_eq!(get(figure::BEYOND_SHARE).high, 0.0);
        if there.is_empty() {
            assert!(of_column.bounds.is_empty() && of_column.frequent.is_empty());
            continue;
        }
        let mut sorted = there.clone();
        sorted.sort();
        let (n, steps) = (sorted.len() as f64, of_column.bounds.len() - 1);
        assert_eq!(steps, sorted.len().min(64), "{name}");
        assert_eq!(get(figure::HISTOGRAM_ERROR).value, 0.0);
        for (step, bound) in of_column.bounds.iter().enumerate() {
            let (below, until) = (sorted.partition_point(|key| *key < bound) as f64, sorted.partition_point(|key| *key <= bound) as f64);
            let wanted = step as f64 / steps as f64 * n;
            assert!(below <= wanted + 1e-6 && wanted <= until + 1e-6, "{name}, step {step}: {below} {wanted} {until}");
        }
        let mut counts: BTreeMap<&Vec<u8>, usize> = BTreeMap::new();
        there.iter().for_each(|key| *counts.entry(key).or_default() += 1);
        let mut by_count: Vec<usize> = counts.values().copied().collect();
        by_count.sort_unstable_by(|a, b| b.cmp(a));
        for (place, (value, share)) in of_column.frequent.iter().enumerate() {
            assert_eq!(counts[value], by_count[place], "{name}");
            exact(*share, by_count[place] as f64 / keys.len() as f64, name);
        }
        let few = distinct.len() <= 16;
        assert!(!few || of_column.frequent.len() == distinct.len(), "{name}: all of few values");
        let correlation = get(figure::CORRELATION);
        assert!((correlation.value - spearman(&keys)).abs() < 0.02, "{name}: {correlation:?}, not {}", spearman(&keys));
    }
    let entry = |row: &[Value], index: &[usize]| -> Vec<u8> {
        let nullable = |column: &usize| columns()[*column].clone();
        let schema = Schema::new(index.iter().map(nullable).collect()).unwrap();
        let order: Vec<(usize, Direction)> = (0..index.len()).map(|at| (at, Direction::Ascending)).collect();
        let values: Vec<ValueRef<'_>> = index.iter().map(|column| row[*column].as_ref()).collect();
        let mut key = Vec::new();
        KeyLayout::new(&schema, &order).encode(&values, &mut key).unwrap();
        key
    };
    for (index, of) in found.indexes.iter().zip([&[0usize][..], &[1, 9]]) {
        let mut entries: Vec<(Vec<u8>, Rid)> = all.iter().map(|(rid, row)| (entry(row, of), *rid)).collect();
        entries.sort();
        let get = |number| get(&index.statistics, number);
        exact(get(figure::ROWS), entries.len() as f64, "RIDs");
        let pairs: Vec<_> = entries.windows(2).collect();
        let near = |pair: &&&[(Vec<u8>, Rid)]| (pair[0].1.page()..=pair[0].1.page() + 1).contains(&pair[1].1.page());
        let same = |pair: &&&[(Vec<u8>, Rid)]| pair[0].1.page() == pair[1].1.page();
        let near_count = pairs.iter().filter(near).count() as f64;
        exact(get(figure::CLUSTER_RATIO), if pairs.is_empty() { 1.0 } else { near_count / pairs.len() as f64 }, &index.name);
        let changes = pairs.iter().filter(|pair| !same(pair)).count() as f64;
        let far = pairs.len() as f64 - near_count;
        exact(get(figure::SYNCHRONOUS_SHARE), if changes > 0.0 { far / changes } else { 0.0 }, &index.name);
        for (at, prefix) in index.statistics.prefixes.iter().enumerate() {
            let distinct: BTreeSet<Vec<u8>> = all.iter().map(|(_, row)| entry(row, &of[..=at])).collect();
            exact(*prefix, distinct.len() as f64, &format!("{} {at}", index.name));
        }
        exact(get(figure::KEYS), index.statistics.prefixes.last().unwrap().value, "keys");
        let bytes: usize = entries.iter().map(|(key, _)| key.len()).sum();
        exact(get(figure::KEY_BYTES), bytes as f64 / entries.len().max(1) as f64, "key bytes");
        let levels = database.index(&index.name).unwrap().tree().levels().unwrap();
        exact(get(figure::LEVELS), levels.len() as f64, "levels");
        exact(get(figure::DATA_PAGES), levels.first().map_or(0, |level| level.pages) as f64, "leaf pages");
    }
}

#[test]
fn all_methods_empty_full_updated_and_deleted_from() {
    for method in Method::ALL {
        let storage = storage();
        let database = open(&storage, OpenMode::Create);
        let table = make(&database, method, 4096, 0, 1);
        compare(&database, &table, None);
        insert(&database, &table, 0..1, 2);
        compare(&database, &table, None);
        insert(&database, &table, 1..4_000, 3);
        database.renew_dictionaries("t").ok();
        compare(&database, &table, None);
        // Rows that grow leave their pages, and a pointer there.
        let mut random = Rng(4);
        let all = rows(&database, &table);
        let mut transaction = database.begin(TransactionOptions::default());
        for (rid, _) in all.iter().filter(|_| random.below(10) == 0).collect::<Vec<_>>() {
            let note = "longer ".repeat(20 + random.below(20) as usize) + &random.below(1 << 30).to_string();
            assert!(transaction.update(&table, *rid, &[(3, ValueRef::Text(&note))]).unwrap());
        }
        transaction.commit().unwrap();
        compare(&database, &table, None);
        let mut transaction = database.begin(TransactionOptions::default());
        for (rid, row) in &all {
            // Some pages lose all of their rows.
            if matches!(row[0], Value::Int(id) if id % 3 == 0 || (1_000..1_800).contains(&id)) {
                assert!(transaction.delete(&table, *rid).unwrap());
            }
        }
        transaction.commit().unwrap();
        database.remove_leftovers().unwrap();
        compare(&database, &table, None);
    }
}

#[test]
fn values_outside_of_their_rows() {
    for method in [Method::None, Method::Page] {
        let storage = storage();
        let database = open(&storage, OpenMode::Create);
        let table = make(&database, method, 4096, 500, 5);
        let mut transaction = database.begin(TransactionOptions::default());
        for (at, (rid, _)) in rows(&database, &table).iter().enumerate().filter(|(at, _)| at % 50 == 0) {
            // Two of each.
            let note = format!("large {}", at / 100).repeat(2_000);
            assert!(transaction.update(&table, *rid, &[(3, ValueRef::Text(&note))]).unwrap());
        }
        transaction.commit().unwrap();
        database.remove_leftovers().unwrap();
        compare(&database, &table, Some(3));
    }
}

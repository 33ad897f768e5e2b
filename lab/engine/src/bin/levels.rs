//! Levels of a large index: 50 million rows with a key of three CHAR columns, beside what follows from the lengths of its keys alone.
//!
//! `cargo run --release -p pagefold-lab-engine --bin levels`
//!
//! The key is CHAR(12), CHAR(9), CHAR(20): 41 bytes, so that an entry is as long as in the published figures (50,127,002 rows; pages of 2 KB have about 37 entries). Each
//! column is a word and a number with leading zeros; the numbers count up from row to row, the last column's fastest.
//!
//! What is predicted, for pages of P bytes:
//!
//! * An entry of a unique index takes 2 (length) + 41 + 7 (RID) + 6 (key map) = 56 bytes, of P - 56: so floor((P - 56) / 56) entries a leaf, all leaves but the last full.
//! * A separator is the shortest prefix of a leaf's first key that is greater than the key before: up to and with the first byte in which the two differ, which is the highest
//!   digit that changes when the numbers count up. It takes 12 bytes more, of P - 40. Non-leaf pages are filled one after the other; the separator that no longer fits goes to
//!   the level above.
//!
//! Both follow from row numbers; no page and no key is looked at.

use clap::Parser;
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::table_space::TableAttributes;
use pagefold_lab::measure::Clock;
use pagefold_lab_engine::database::create;
use pagefold_types::{Column, DataType, Direction, Rid, Schema};
use pagefold_utility::{Silent, report};
use std::error::Error;
use std::path::{Path, PathBuf};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Options.
#[derive(Debug, Parser)]
struct Options {
    /// Rows of the table.
    #[arg(long, default_value_t = 50_127_002)]
    rows: u64,
    /// Page sizes, in KB.
    #[arg(long, default_value = "2,16", value_delimiter = ',')]
    page_sizes: Vec<usize>,
    /// Folder for the databases; a temporary one by default. Each takes about 60 bytes a row and is removed again.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Memory of the pools, in MB.
    #[arg(long, default_value_t = 256)]
    memory_mb: usize,
}

/// A column: its word, its digits, and how many rows have the same number one behind the other.
struct Part {
    word: &'static str,
    digits: usize,
    every: u64,
}

const PARTS: [Part; 3] = [
    Part { word: "cust", digits: 8, every: 1_000 },
    Part { word: "acct", digits: 5, every: 20 },
    Part { word: "session", digits: 13, every: 1 },
];

/// The column's number in a row.
fn number(part: usize, row: u64) -> u64 {
    let rounds = if part == 0 { u64::MAX } else { PARTS[part - 1].every / PARTS[part].every };
    row / PARTS[part].every % rounds
}

fn key(row: u64, out: &mut Vec<u8>) {
    out.clear();
    for (i, part) in PARTS.iter().enumerate() {
        out.extend_from_slice(part.word.as_bytes());
        let mut digits = [b'0'; 20];
        let mut rest = number(i, row);
        for digit in digits[..part.digits].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        out.extend_from_slice(&digits[..part.digits]);
    }
}

fn column_bytes(part: &Part) -> usize {
    part.word.len() + part.digits
}

/// Length of the separator before a row that is the first of its leaf.
fn separator(row: u64) -> usize {
    let mut before = 0;
    for (i, part) in PARTS.iter().enumerate() {
        before += column_bytes(part);
        if row.is_multiple_of(part.every) {
            // This column's number is one more than in the row before; trailing zeros were nines.
            let mut zeros = 0;
            let mut rest = number(i, row);
            while rest.is_multiple_of(10) {
                rest /= 10;
                zeros += 1;
            }
            return before - zeros;
        }
    }
    before
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Level {
    pages: u64,
    keys: u64,
    free_bytes: u64,
}

/// Levels from the leaves to the root.
fn predict(rows: u64, page_bytes: u64) -> Vec<Level> {
    let key_bytes: usize = PARTS.iter().map(column_bytes).sum();
    let entry = 2 + key_bytes as u64 + 7 + 6;
    let fanout = (page_bytes - 56) / entry;
    let leaves = rows.div_ceil(fanout);
    let mut levels = vec![Level { pages: leaves, keys: rows, free_bytes: leaves * (page_bytes - 56) - rows * entry }];
    let mut separators: Vec<usize> = (1..leaves).map(|leaf| separator(leaf * fanout)).collect();
    while levels.last().is_some_and(|level| level.pages > 1) {
        let mut level = Level { pages: 1, keys: separators.len() as u64 + 1, free_bytes: 0 };
        let mut above = Vec::new();
        let mut free = page_bytes - 40;
        for length in separators {
            let takes = 12 + length as u64;
            if takes > free {
                above.push(length);
                level.pages += 1;
                level.free_bytes += free;
                free = page_bytes - 40;
            } else {
                free -= takes;
            }
        }
        level.free_bytes += free;
        separators = above;
        levels.push(level);
    }
    levels
}

/// Builds the index; gives its levels as REPORT has them, from the leaves to the root, and the seconds.
fn build(folder: &Path, rows: u64, page_bytes: usize, memory_bytes: usize) -> Outcome<(Vec<pagefold_utility::LevelStatistics>, f64, u64)> {
    let database = create(folder, memory_bytes)?;
    let column = |i: usize| Column::new(["customer", "account", "session"][i], DataType::Char(column_bytes(&PARTS[i]) as u32), false);
    let schema = Schema::new((0..PARTS.len()).map(column).collect())?;
    let start_s = Clock::Wall.now_s();
    let mut change = database.change();
    // The rows themselves are not what is measured: the table stays empty.
    let table = change.create_table(TableAttributes::new("accesses", schema))?;
    let columns = (0..PARTS.len()).map(|i| (i, Direction::Ascending)).collect();
    let index = change.create_index(&table, IndexAttributes::new("key", columns, true).with_format(IndexFormat::Plain, page_bytes))?;
    let mut builder = index.build(99);
    let mut bytes = Vec::new();
    for row in 0..rows {
        key(row, &mut bytes);
        builder.push(&bytes, Rid::new(0, (row / 100) as u32, (row % 100) as u16))?;
    }
    builder.finish()?;
    change.commit()?;
    let build_s = Clock::Wall.now_s() - start_s;
    let report = report(&database, Some("key"), &Silent)?;
    let statistics = report.indexes.into_iter().next().ok_or("no index in the report")?;
    Ok((statistics.levels.into_iter().rev().collect(), build_s, statistics.size_bytes))
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    let scratch = tempfile::tempdir()?;
    let folder = options.folder.clone().unwrap_or_else(|| scratch.path().to_path_buf());
    std::fs::create_dir_all(&folder)?;
    let mut same = true;
    for kilobytes in &options.page_sizes {
        let page_bytes = kilobytes * 1024;
        let predicted = predict(options.rows, page_bytes as u64);
        let place = folder.join(format!("levels-{kilobytes}"));
        let (built, build_s, size_bytes) = build(&place, options.rows, page_bytes, options.memory_mb << 20)?;
        std::fs::remove_dir_all(&place)?;
        println!("pages of {kilobytes} KB, {} rows: {:.1} MB, built in {build_s:.1} s", options.rows, size_bytes as f64 / 1e6);
        println!(
            "{:>5} {:>12} {:>10} {:>12}   predicted {:>12} {:>10} {:>12}",
            "level", "pages", "keys", "free bytes", "pages", "keys", "free bytes"
        );
        same &= built.len() == predicted.len();
        for (number, (level, own)) in built.iter().zip(&predicted).rev().enumerate() {
            let average = |sum: u64| sum as f64 / own.pages as f64;
            let (keys, free) = (average(own.keys), average(own.free_bytes));
            let equal = level.pages == own.pages && (level.keys_avg - keys).abs() < 1e-6 && (level.free_bytes_avg - free).abs() < 1e-6;
            same &= equal;
            println!(
                "{:>5} {:>12} {:>10.2} {:>12.2}   {:9} {:>12} {keys:>10.2} {free:>12.2}",
                number + 1,
                level.pages,
                level.keys_avg,
                level.free_bytes_avg,
                if equal { "equal" } else { "DIFFERS" },
                own.pages,
            );
        }
        println!("{} levels, predicted {}\n", built.len(), predicted.len());
    }
    if same { Ok(()) } else { Err("what was built is not what was predicted".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_where_keys_differ() {
        let (mut before, mut own) = (Vec::new(), Vec::new());
        for row in (1..30_000).chain(999_990..1_000_010).chain([10_000_000, 50_000_000]) {
            key(row - 1, &mut before);
            key(row, &mut own);
            assert!(before < own && own.len() == 41);
            let shared = before.iter().zip(&own).take_while(|(a, b)| a == b).count();
            assert_eq!(separator(row), shared + 1, "row {row}");
        }
    }

    #[test]
    fn what_is_built_is_what_is_predicted() {
        let folder = tempfile::tempdir().expect("a folder");
        for (rows, page_bytes) in [(1, 2048), (33, 2048), (34, 2048), (200_000, 2048), (200_000, 8192)] {
            let place = folder.path().join(format!("{rows}-{page_bytes}"));
            let (built, ..) = build(&place, rows, page_bytes, 16 << 20).expect("an index");
            let predicted = predict(rows, page_bytes as u64);
            let facts =
                |pages: u64, keys: f64, free: f64| (pages, (keys * pages as f64).round() as u64, (free * pages as f64).round() as u64);
            let built: Vec<_> = built.iter().map(|l| facts(l.pages, l.keys_avg, l.free_bytes_avg)).collect();
            assert_eq!(built, predicted.iter().map(|l| (l.pages, l.keys, l.free_bytes)).collect::<Vec<_>>());
        }
    }
}

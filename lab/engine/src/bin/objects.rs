//! What tables and indexes cost as objects: many of them, each with an index, made in one transaction, opened, used, dropped; and one CREATE TABLE among them.
//!
//! `cargo run --release -p pagefold-lab-engine --bin objects`
//!
//! Elapsed times on a real directory. Each round has a database of its own; what is printed is the median of the rounds, with the least and the greatest. Opening comes after the database was
//! closed, with its files in the operating system's cache.

use clap::Parser;
use pagefold_engine::database::{Database, Durability, OpenMode, Settings, TransactionOptions};
use pagefold_engine::index::IndexAttributes;
use pagefold_engine::table_space::TableAttributes;
use pagefold_io::{OsClock, OsStorage};
use pagefold_lab::measure::{Clock, Spread};
use pagefold_lab_engine::data::Outcome;
use pagefold_types::{Column, DataType, Direction, Schema, ValueRef};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Options.
#[derive(Debug, Parser)]
struct Options {
    /// Tables, each with an index.
    #[arg(long, default_value = "1000,10000", value_delimiter = ',')]
    tables: Vec<usize>,
    /// Rounds.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Of all tables so many have a row inserted and looked up.
    #[arg(long, default_value_t = 1000)]
    used: usize,
}

fn open(folder: &Path, mode: OpenMode) -> Outcome<Database> {
    Ok(Database::open(Arc::new(OsStorage), Arc::new(OsClock), folder, mode, Settings::default())?)
}

fn attributes(name: String) -> Outcome<TableAttributes> {
    let columns = vec![Column::new("n", DataType::BigInt, false), Column::new("v", DataType::Varchar(None), true)];
    Ok(TableAttributes::new(name, Schema::new(columns)?))
}

fn index_attributes(i: usize) -> IndexAttributes {
    IndexAttributes::new(format!("i{i:05}"), vec![(0, Direction::Ascending)], true)
}

/// The steps of a round, by name, with their milliseconds.
fn round(tables: usize, used: usize) -> Outcome<Vec<(&'static str, f64)>> {
    let folder = tempfile::tempdir()?;
    let folder = folder.path().join("db");
    let mut steps = Vec::new();
    let mut start = Clock::Wall.now_s();
    let mut step = |name, divided: usize| {
        let now = Clock::Wall.now_s();
        steps.push((name, (now - start) * 1e3 / divided as f64));
        start = Clock::Wall.now_s();
    };
    let database = open(&folder, OpenMode::Create)?;
    step("create the database", 1);
    let mut transaction = database.begin(TransactionOptions::default());
    for i in 0..tables {
        let table = transaction.create_table(attributes(format!("t{i:05}"))?)?;
        transaction.create_index(&table, index_attributes(i))?;
    }
    step("create all in one transaction", 1);
    transaction.commit()?;
    step("its commit", 1);
    database.close()?;
    step("close", 1);
    let database = open(&folder, OpenMode::Write)?;
    step("open", 1);
    let used = used.min(tables);
    let each = tables / used;
    for i in 0..used {
        let mut transaction = database.begin(TransactionOptions { durability: Durability::Off, ..TransactionOptions::default() });
        let table = database.table(&format!("t{:05}", i * each))?;
        transaction.insert(&table, &[ValueRef::Int(i as i64), ValueRef::Text("used")])?;
        let index = database.index(&format!("i{:05}", i * each))?;
        let found = transaction.find(&table, &index, &[ValueRef::Int(i as i64)])?;
        if found.len() != 1 {
            return Err("a row is missing".into());
        }
        transaction.commit()?;
    }
    step("first use of a table, each", used);
    database.close()?;
    step("close after use", 1);
    let database = open(&folder, OpenMode::Write)?;
    step("open again", 1);
    for i in 0..20 {
        let mut transaction = database.begin(TransactionOptions::default());
        transaction.create_table(attributes(format!("one{i:05}"))?)?;
        transaction.commit()?;
    }
    step("one CREATE TABLE, committed, each of 20", 20);
    for i in 0..20 {
        let mut transaction = database.begin(TransactionOptions::default());
        transaction.drop_table(&format!("one{i:05}"))?;
        transaction.commit()?;
    }
    step("one DROP TABLE, committed, each of 20", 20);
    let mut transaction = database.begin(TransactionOptions::default());
    for i in 0..tables {
        transaction.drop_table(&format!("t{i:05}"))?;
    }
    step("drop all in one transaction", 1);
    transaction.commit()?;
    step("its commit", 1);
    if !database.table_names().is_empty() {
        return Err("tables are left".into());
    }
    database.close()?;
    step("close", 1);
    Ok(steps)
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    for tables in options.tables {
        let mut all: BTreeMap<usize, (&str, Vec<f64>)> = BTreeMap::new();
        for _ in 0..options.rounds {
            for (at, (name, ms)) in round(tables, options.used)?.into_iter().enumerate() {
                all.entry(at).or_insert((name, Vec::new())).1.push(ms);
            }
        }
        println!("{tables} tables, each with an index; milliseconds, median of {} rounds (least-greatest)", options.rounds);
        for (name, ms) in all.into_values() {
            let Spread { low, median, high } = Spread::of(ms);
            println!("  {name:<42} {median:>9.2} ({low:.2}-{high:.2})");
        }
    }
    Ok(())
}

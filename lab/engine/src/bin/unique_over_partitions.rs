//! What it costs that keys are unique over all partitions: rows are inserted where the key has the column by which the table is divided, where it ascends with it, and where it has nothing to do
//! with it; beside a table that is not divided. Keys come in their order, and in none: then a new one is between the first and the last key of each partition.
//!
//! `cargo run --release -p pagefold-lab-engine --bin unique_over_partitions -- --rows 100000 --rounds 5`

use clap::Parser;
use pagefold_engine::database::{Database, Durability, PartitionSpec, Transaction, TransactionOptions, limit_key};
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::table_space::{Table, TableAttributes};
use pagefold_lab_engine::data::Outcome;
use pagefold_lab_engine::random::Random;
use pagefold_types::{Column, DataType, Direction, Schema, ValueRef};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

#[derive(Debug, Parser)]
struct Options {
    #[arg(long, default_value_t = 100_000)]
    rows: i64,
    #[arg(long, default_value_t = 5)]
    rounds: u64,
    #[arg(long, value_delimiter = ',', default_value = "12,100,512")]
    partitions: Vec<i64>,
}

/// Rows of a transaction.
const ROWS_AT_ONCE: usize = 100;

/// How keys lie to partitions.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Keys {
    /// The table is not divided.
    Undivided,
    /// Nor is it here, and numbers come in no order.
    UndividedInNoOrder,
    /// The key is (day, number).
    WithColumn,
    /// It is the number, which ascends with the day.
    Ascending,
    /// It is the number, of any day; numbers ascend.
    AnyDay,
    /// It is the number, of any day, and numbers come in no order.
    AnyDayInNoOrder,
}

const ALL: [Keys; 6] = [Keys::Undivided, Keys::WithColumn, Keys::Ascending, Keys::AnyDay, Keys::UndividedInNoOrder, Keys::AnyDayInNoOrder];

impl Keys {
    fn is_divided(self) -> bool {
        !matches!(self, Self::Undivided | Self::UndividedInNoOrder)
    }
}

struct Side {
    keys: Keys,
    database: Database,
}

fn attributes(keys: Keys) -> Outcome<TableAttributes> {
    let columns = ["day", "id", "amount"].map(|name| Column::new(name, DataType::BigInt, false));
    let primary_key = if keys == Keys::WithColumn { vec![0, 1] } else { vec![1] };
    Ok(TableAttributes { primary_key, ..TableAttributes::new("t", Schema::new(columns.to_vec())?) })
}

fn create(folder: &Path, keys: Keys, partitions: i64) -> Outcome<Side> {
    let folder = folder.join(format!("{keys:?}"));
    std::fs::create_dir_all(&folder)?;
    let database = pagefold_lab_engine::database::create(&folder, 256 << 20)?;
    let attributes = attributes(keys)?;
    let key = attributes.primary_key.iter().map(|column| (*column, Direction::Ascending)).collect();
    let index = IndexAttributes::new("t_pk", key, true).with_format(IndexFormat::Prefix, 8192);
    let mut t = database.begin(TransactionOptions::default());
    if !keys.is_divided() {
        let table = t.create_table(attributes)?;
        t.create_index(&table, index)?;
    } else {
        let spec = |day: i64| {
            let limit = if day + 1 == partitions { None } else { limit_key(&attributes, &[0], &[Some(ValueRef::Int(day + 1))])? };
            Ok(PartitionSpec { name: format!("d{day}"), limit, ..PartitionSpec::default() })
        };
        let specs = (0..partitions).map(spec).collect::<Outcome<Vec<_>>>()?;
        t.create_partitioned_table(&attributes, &[0], &specs)?;
        t.create_partitioned_index("t", &index)?;
    }
    t.commit()?;
    Ok(Side { keys, database })
}

/// Days and numbers of rows, in the order in which they come.
fn rows(options: &Options, keys: Keys, partitions: i64, random: &mut Random) -> Vec<(i64, i64)> {
    let day = |id: i64| id * partitions / options.rows;
    let mut rows: Vec<(i64, i64)> = (0..options.rows).map(|id| (day(id), id)).collect();
    for at in (1..rows.len()).rev() {
        let other = random.below(at + 1);
        match keys {
            Keys::Undivided | Keys::WithColumn | Keys::Ascending => {}
            Keys::AnyDay => (rows[at].0, rows[other].0) = (rows[other].0, rows[at].0),
            Keys::UndividedInNoOrder | Keys::AnyDayInNoOrder => rows.swap(at, other),
        }
    }
    if keys == Keys::AnyDayInNoOrder {
        let days: Vec<i64> = rows.iter().map(|(day, _)| *day).rev().collect();
        rows.iter_mut().zip(days).for_each(|(row, day)| row.0 = day);
    }
    rows
}

fn table_of(t: &mut Transaction<'_>, keys: Keys, day: i64) -> Outcome<Arc<Table>> {
    if !keys.is_divided() {
        return Ok(t.table("t")?);
    }
    let whole = t.partitioned_table("t")?;
    Ok(t.table_of_partition(&whole.partitions()[usize::try_from(day)?])?)
}

/// Nanoseconds a row.
fn insert(side: &Side, rows: &[(i64, i64)]) -> Outcome<f64> {
    let options = TransactionOptions { durability: Durability::Off, ..TransactionOptions::default() };
    let begun = Instant::now();
    for chunk in rows.chunks(ROWS_AT_ONCE) {
        let mut t = side.database.begin(options);
        for (day, id) in chunk {
            let table = table_of(&mut t, side.keys, *day)?;
            t.insert(&table, &[ValueRef::Int(*day), ValueRef::Int(*id), ValueRef::Int(7)])?;
        }
        t.commit()?;
    }
    Ok(begun.elapsed().as_secs_f64() * 1e9 / rows.len() as f64)
}

/// The rows that a side has, and one that it must refuse where numbers are unique.
fn check(side: &Side, rows: &[(i64, i64)]) -> Outcome<()> {
    let found: u64 = side.database.tables()?.iter().map(|table| table.row_count()).sum();
    let mut t = side.database.begin(TransactionOptions::default());
    let (day, id) = rows[rows.len() / 2];
    let other = if day == 0 { 1 } else { 0 };
    let table = table_of(&mut t, side.keys, other)?;
    let twice = t.insert(&table, &[ValueRef::Int(other), ValueRef::Int(id), ValueRef::Int(7)]);
    match (found == rows.len() as u64, twice.is_err() == (side.keys != Keys::WithColumn)) {
        (true, true) => Ok(()),
        _ => Err(format!("{:?}: {found} rows; a number twice: {twice:?}", side.keys).into()),
    }
}

fn median(values: &mut [f64]) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0], values[values.len() - 1])
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    println!(
        "{} rows, {ROWS_AT_ONCE} a transaction, {} rounds; microseconds a row, median (least to greatest)",
        options.rows, options.rounds
    );
    for partitions in &options.partitions {
        let mut took = vec![Vec::new(); ALL.len()];
        for round in 0..options.rounds {
            let folder = tempfile::tempdir()?;
            for (keys, took) in ALL.into_iter().zip(&mut took) {
                let side = create(folder.path(), keys, *partitions)?;
                let rows = rows(&options, keys, *partitions, &mut Random(round + 1));
                took.push(insert(&side, &rows)? / 1e3);
                check(&side, &rows)?;
            }
        }
        println!("{partitions} partitions");
        for (keys, took) in ALL.into_iter().zip(&mut took) {
            let (middle, least, most) = median(took);
            println!("{:>18} {middle:>8.2} ({least:.2} to {most:.2})", format!("{keys:?}"));
        }
    }
    Ok(())
}

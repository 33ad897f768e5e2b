//! What ESTIMATE says a method costs, beside what it then costs: rows inserted into a table with its primary key, and read by it.
//!
//! `cargo run --release -p pagefold-lab-engine --bin costs -- --data DIR`
//!
//! Told are times the base, the table without compression: what the estimate says, what was measured, and by how much the first is off. What is measured: rows come in the order of the source, 100 a
//! transaction, log on, nobody syncs, into a table that has the dictionary of a load; then two columns of rows are read by their keys, in random order. Methods take turns, piece by piece; processor time of the thread; medians over the rounds. A table without a
//! primary key gets one of numbers.

use clap::Parser;
use pagefold_codec::row::RowDictionary;
use pagefold_engine::database::{Database, Durability, ScanRequest, TransactionOptions};
use pagefold_engine::index::{Index, IndexAttributes};
use pagefold_engine::table_space::{Method, RowBuffer, Table, TableAttributes};
use pagefold_io::{OsStorage, Storage};
use pagefold_lab::measure::{Clock, Spread};
use pagefold_lab_engine::data::Outcome;
use pagefold_lab_engine::database::create;
use pagefold_lab_engine::inputs::{self, Input};
use pagefold_lab_engine::random::Random;
use pagefold_types::{Column, Direction, Schema, Value, ValueRef};
use pagefold_utility::{EstimateOptions, LoadOptions, Scratch, Setting, Silent, estimate_source, load_source};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Parser)]
struct Options {
    /// TPC-H scale factor of the eight tables to generate; 0 for none of them.
    #[arg(long, default_value_t = 0.05)]
    scale_factor: f64,
    /// Rows of each table like a bank's; 0 for none of them.
    #[arg(long, default_value_t = 50_000)]
    bank_rows: u64,
    /// A folder with files: `.csv`, `.parquet`. Can be given again.
    #[arg(long, value_name = "DIR")]
    data: Vec<PathBuf>,
    /// Only tables whose name holds this.
    #[arg(long)]
    only: Option<String>,
    /// Rows of a table, at most.
    #[arg(long, default_value_t = 100_000)]
    rows: usize,
    /// Rounds.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Bytes of a page of tables.
    #[arg(long, default_value_t = 8192)]
    page_size: usize,
}

/// Farther off than this is too far.
const OFF_MAX: f64 = 0.25;

/// Look-ups of a turn: few, so that the machine is as fast for all; many beside what the first ones find in no cache.
const READ_GROUP: usize = 2000;

struct Rows {
    schema: Schema,
    key: Vec<usize>,
    rows: Vec<Vec<Value>>,
    /// What a load makes of them, by method.
    dictionaries: Vec<Option<RowDictionary>>,
}

/// The rows of a table and the columns of its key: the first one that holds every value once, where the source names none. `None` when there is no such column.
fn rows_of(input: &mut Input, options: &Options, folder: &Path) -> Outcome<Option<Rows>> {
    let database = create(folder, 256 << 20)?;
    let mut dictionaries = Vec::new();
    for method in Method::ALL {
        let load_options = LoadOptions { method: Setting::Given(method), page_bytes: options.page_size, ..LoadOptions::default() };
        load_source(&database, method.name(), input, &load_options, &Silent)?;
        dictionaries.push(database.table(method.name())?.dictionary().map(|compressor| compressor.dictionary().clone()));
    }
    let table = database.table(Method::None.name())?;
    let request = ScanRequest::default();
    let scan = database.begin(TransactionOptions::default()).read_view()?.scan(&table, &request)?;
    let rows: Vec<Vec<Value>> = scan.into_rows().take(options.rows).map(|row| row.map(|row| row.1)).collect::<Result<_, _>>()?;
    let schema = table.attributes().schema.clone();
    let named: Vec<usize> = input.primary_key.iter().filter_map(|name| schema.columns().iter().position(|c| c.name == *name)).collect();
    let is_key = |column: &usize| {
        let mut values: Vec<String> = rows.iter().map(|row| format!("{:?}", row[*column])).collect();
        values.sort_unstable();
        rows.iter().all(|row| !matches!(row[*column], Value::Null)) && values.windows(2).all(|pair| pair[0] != pair[1])
    };
    let key = if named.is_empty() { (0..schema.len()).find(is_key).into_iter().collect() } else { named };
    if key.is_empty() {
        return Ok(None);
    }
    let columns = schema.columns().iter().enumerate();
    let columns = columns.map(|(i, c)| Column::new(c.name.clone(), c.data_type, c.nullable && !key.contains(&i))).collect();
    Ok(Some(Rows { schema: Schema::new(columns)?, key, rows, dictionaries }))
}

/// A table with its key.
struct Stored {
    table: Arc<Table>,
    key: Arc<Index>,
}

impl Stored {
    fn new(database: &Database, rows: &Rows, at: usize, page_bytes: usize) -> Outcome<Stored> {
        let name = Method::ALL[at].name();
        let mut attributes = TableAttributes::new(name, rows.schema.clone()).with_page_bytes(page_bytes);
        attributes.method = Method::ALL[at];
        attributes.primary_key.clone_from(&rows.key);
        let mut change = database.change();
        let table = change.create_table(attributes)?;
        let columns = rows.key.iter().map(|column| (*column, Direction::Ascending)).collect();
        let key = change.create_index(&table, IndexAttributes::new(format!("{name}_key"), columns, true))?;
        if let Some(dictionary) = rows.dictionaries[at].clone() {
            table.set_dictionary(dictionary)?;
        }
        change.commit()?;
        Ok(Stored { table, key })
    }
}

/// Seconds of each method to read two columns of each row by its key, and to insert it. Methods take turns, a transaction each.
fn measure(database: &Database, rows: &Rows, page_bytes: usize, round: usize) -> Outcome<[(f64, f64); Method::ALL.len()]> {
    let unsynced = TransactionOptions { durability: Durability::Off, ..TransactionOptions::default() };
    let values: Vec<Vec<ValueRef<'_>>> = rows.rows.iter().map(|row| row.iter().map(Value::as_ref).collect()).collect();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let keys: Vec<Vec<ValueRef<'_>>> =
        values.iter().map(|_| &values[random.below(values.len())]).map(|row| rows.key.iter().map(|c| row[*c]).collect()).collect();
    let stored = (0..Method::ALL.len()).map(|at| Stored::new(database, rows, at, page_bytes)).collect::<Outcome<Vec<_>>>()?;
    let mut took = [(0.0, 0.0); Method::ALL.len()];
    // The first one pays for what all of them read: another one each time.
    let turns = |piece: usize| (0..Method::ALL.len()).map(move |turn| (turn + piece) % Method::ALL.len());
    for (piece, group) in values.chunks(100).enumerate() {
        for at in turns(piece + round) {
            let (Stored { table, .. }, took) = (&stored[at], &mut took[at]);
            let start = Clock::Thread.now_s();
            let mut transaction = database.begin(unsynced);
            for row in group {
                transaction.insert(table, row)?;
            }
            transaction.commit()?;
            took.1 += Clock::Thread.now_s() - start;
        }
    }
    // The second time everything is cached.
    for _ in 0..2 {
        took.iter_mut().for_each(|took| took.0 = 0.0);
        for (piece, group) in keys.chunks(READ_GROUP).enumerate() {
            for at in turns(piece + round) {
                let (Stored { table, key }, took) = (&stored[at], &mut took[at]);
                let mut buffer = RowBuffer::for_columns(table, &[0, rows.schema.len() / 2]);
                let start = Clock::Thread.now_s();
                let mut transaction = database.begin(unsynced);
                for values in group {
                    transaction
                        .get_with(table, key, values, &mut buffer, |_, record| black_box(record).len())?
                        .ok_or("a key is missing")?;
                }
                took.0 += Clock::Thread.now_s() - start;
            }
        }
    }
    Ok(took)
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    let mut pending = inputs::tpch(options.scale_factor);
    for folder in &options.data {
        pending.extend(inputs::files(folder)?);
    }
    pending.extend(inputs::bank(options.bank_rows, 1));
    pending.retain(|input| options.only.as_ref().is_none_or(|only| input.name.contains(only)));
    let scratch = tempfile::tempdir()?;
    println!("times the base: said, measured (median of {} rounds), how far the first is off\n", options.rounds);
    println!("{:<24} {:>8} {:<9} {:>24} {:>24}", "", "rows", "", "read", "write");
    let (mut all, mut far) = (0, 0);
    for pending in pending {
        let mut input = pending.read()?;
        let name = input.name.clone();
        let Some(rows) = rows_of(&mut input, &options, &scratch.path().join(format!("{all} source")))? else {
            println!("{name}: no column is a key");
            continue;
        };
        let storage: Arc<dyn Storage> = Arc::new(OsStorage);
        let place = Scratch { storage, directory: scratch.path().into() };
        let primary_key = rows.key.iter().map(|column| rows.schema.columns()[*column].name.clone()).collect();
        let asked = EstimateOptions { page_bytes: options.page_size, page_sizes: Vec::new(), primary_key, ..EstimateOptions::default() };
        let choice = estimate_source(&mut input, &place, &asked, &Silent)?.choice.ok_or("no choice")?;
        let said = |method: Method| choice.considered.iter().find(|a| a.name == method.name()).and_then(|a| a.cost);
        let mut took = vec![(Vec::new(), Vec::new()); Method::ALL.len()];
        for round in 0..options.rounds {
            let folder = scratch.path().join(format!("{name} {round}"));
            let database = create(&folder, 1 << 30)?;
            for (took, (read_s, write_s)) in took.iter_mut().zip(measure(&database, &rows, options.page_size, round)?) {
                took.0.push(read_s);
                took.1.push(write_s);
            }
            drop(database);
            std::fs::remove_dir_all(&folder)?;
        }
        let base_said = said(Method::None).ok_or("no cost of the base")?;
        let each_ns = |seconds: &[f64]| Spread::of(seconds.iter().copied()).median / rows.rows.len() as f64 * 1e9;
        let base = [(base_said.read_ns, each_ns(&took[0].0)), (base_said.write_ns, each_ns(&took[0].1))];
        let text = base.map(|(said, found)| format!("{said:.0} {found:.0} ns"));
        println!("{name:<24} {:>8} {:<9} {:>24} {:>24}", rows.rows.len(), Method::None.name(), text[0], text[1]);
        for (method, of_method) in Method::ALL.iter().zip(&took).skip(1) {
            let Some(cost) = said(*method) else { continue };
            let ratio = |own: &[f64], base: &[f64]| Spread::of(own.iter().zip(base).map(|(own, base)| own / base)).median;
            let pairs = [
                (cost.read_ns / base_said.read_ns, ratio(&of_method.0, &took[0].0)),
                (cost.write_ns / base_said.write_ns, ratio(&of_method.1, &took[0].1)),
            ];
            let text = pairs.map(|(said, found)| {
                let off = said / found - 1.0;
                all += 1;
                far += usize::from(off.abs() > OFF_MAX);
                format!("{said:.2} {found:.2} {:+.0} %", off * 100.0)
            });
            println!("{name:<24} {:>8} {:<9} {:>24} {:>24}", rows.rows.len(), method.name(), text[0], text[1]);
        }
    }
    println!("\n{far} of {all} are off by more than {:.0} %", OFF_MAX * 100.0);
    Ok(())
}

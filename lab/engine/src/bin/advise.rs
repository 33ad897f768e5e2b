//! Is what ADVISE says best what measuring every alternative shows to be best, and does a workload take the processors as long as it foretells?
//!
//! `cargo run --release -p pagefold-lab-engine --bin advise -- --data DIR`
//!
//! **Objects.** Each table is loaded without compression, with plain indexes: its primary key, and one on a column that is not unique. ADVISE says for each table and index what is best. Then each is
//! written anew in every way there is, and measured: bytes of all pages, look-ups (two columns by key, or entries), inserts into an empty table with the same dictionary (or of half of the entries).
//! Best is the smallest of those whose measured costs are within what rules allow. Printed: what was advised, its place among the allowed by size, how much larger than the best it is.
//!
//! **Workloads.** Three kinds, in transactions of 100 operations, on tables of more rows than calibration takes. Operations are counted while the workload runs on the table without compression;
//! from that it is foretold what each method takes, and then each method runs it. Processor time of the thread; of each hundred
//! operations the least of some rounds.

use clap::Parser;
use pagefold_advisor::{READ_MAX, WRITE_MAX, Way};
use pagefold_engine::database::{Database, Durability, ScanRequest, TransactionOptions};
use pagefold_engine::index::{Index, IndexAttributes, IndexFormat};
use pagefold_engine::table_space::{Method, RowBuffer, Table, TableAttributes};
use pagefold_lab::measure::Clock;
use pagefold_lab_engine::data::Outcome;
use pagefold_lab_engine::database::create;
use pagefold_lab_engine::inputs::{self, Input};
use pagefold_lab_engine::random::Random;
use pagefold_types::{Rid, Value, ValueRef};
use pagefold_utility::{
    AdviseOptions, Advised, IndexOptions, LoadOptions, ObjectAdvice, ObjectKind, ReorgOptions, Setting, Silent, Workload, advise,
    create_index, load_source, reorg,
};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Parser)]
struct Options {
    /// TPC-H scale factor of the eight tables to generate; 0 for none of them.
    #[arg(long, default_value_t = 0.01)]
    scale_factor: f64,
    /// Rows of each table like a bank's; 0 for none of them.
    #[arg(long, default_value_t = 20_000)]
    bank_rows: u64,
    /// A folder with files: `.csv`, `.parquet`. Can be given again.
    #[arg(long, value_name = "DIR")]
    data: Vec<PathBuf>,
    /// Only tables whose name holds this.
    #[arg(long)]
    only: Option<String>,
    /// Rows that are inserted and looked up for a measurement, at most.
    #[arg(long, default_value_t = 8_000)]
    rows: usize,
    /// Times that each measurement is taken; the least counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Leave the objects out.
    #[arg(long)]
    no_objects: bool,
    /// Leave the workloads out.
    #[arg(long)]
    no_workloads: bool,
}

const MEMORY_BYTES: usize = 512 << 20;
const GROUP: usize = 100;

fn unsynced() -> TransactionOptions {
    TransactionOptions { durability: Durability::Off, ..TransactionOptions::default() }
}

/// The least time of some runs.
fn least(rounds: usize, mut run: impl FnMut() -> Outcome<f64>) -> Outcome<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..rounds {
        least = least.min(run()?);
    }
    Ok(least)
}

fn timed(work: impl FnOnce() -> Outcome<()>) -> Outcome<f64> {
    let start = Clock::Thread.now_s();
    work()?;
    Ok(Clock::Thread.now_s() - start)
}

/// One way, measured.
struct Measured {
    way: Way,
    size_bytes: u64,
    read_s: f64,
    write_s: f64,
}

/// A table with rows to work with.
struct Subject<'d> {
    database: &'d Database,
    rows: Vec<Vec<Value>>,
    /// The index of the primary key, if there is one.
    key: Option<String>,
    key_columns: Vec<usize>,
    order: Vec<usize>,
}

const TABLE: &str = "t";

impl<'d> Subject<'d> {
    fn new(database: &'d Database, rows_max: usize) -> Outcome<Subject<'d>> {
        let table = database.table(TABLE)?;
        let scan = database.read_view().scan(&table, &ScanRequest::default())?;
        let rows: Vec<Vec<Value>> = scan.into_rows().take(rows_max).map(|row| row.map(|row| row.1)).collect::<Result<_, _>>()?;
        let key_columns = table.attributes().primary_key.clone();
        let mut random = Random(7);
        let order = (0..rows.len()).map(|_| random.below(rows.len())).collect();
        let key = (!key_columns.is_empty()).then(|| format!("{TABLE}_pk"));
        Ok(Subject { database, rows, key, key_columns, order })
    }

    fn key_of<'r>(&self, row: &'r [Value]) -> Vec<ValueRef<'r>> {
        self.key_columns.iter().map(|column| row[*column].as_ref()).collect()
    }

    /// Two columns of each row, by its key; without one by its number.
    fn look_up(&self) -> Outcome<f64> {
        let table = self.database.table(TABLE)?;
        let key = self.key.as_ref().map(|key| self.database.index(key)).transpose()?;
        let columns = [0, table.attributes().schema.len() / 2];
        let mut rids: Vec<Rid> = Vec::new();
        if key.is_none() {
            let mut scan = self.database.read_view().scan(&table, &ScanRequest::default())?.into_rows();
            while let (true, Some((rid, _))) = (rids.len() < self.rows.len(), scan.next_record()?) {
                rids.push(rid);
            }
        }
        let mut buffer = RowBuffer::for_columns(&table, &columns);
        timed(|| {
            for group in self.order.chunks(GROUP) {
                let mut transaction = self.database.begin(unsynced());
                for number in group {
                    match &key {
                        Some(key) => {
                            let values = self.key_of(&self.rows[*number]);
                            transaction.get_with(&table, key, &values, &mut buffer, |_, record| black_box(record).len())?;
                        }
                        None => _ = transaction.read(&table, rids[*number], &mut buffer, |record| black_box(record).len())?,
                    }
                }
            }
            Ok(())
        })
    }

    /// All rows into a table like the one that is there, with a plain index of the key.
    fn insert(&self, name: &str) -> Outcome<f64> {
        let like = self.database.table(TABLE)?;
        let own = like.attributes();
        let attributes = TableAttributes {
            method: own.method,
            primary_key: own.primary_key.clone(),
            ..TableAttributes::new(name, own.schema.clone()).with_page_bytes(own.page_bytes)
        };
        let mut change = self.database.change();
        let table = change.create_table(attributes)?;
        if !self.key_columns.is_empty() {
            let columns = self.key_columns.iter().map(|column| (*column, pagefold_types::Direction::Ascending)).collect();
            change.create_index(&table, IndexAttributes::new(format!("{name} key"), columns, true))?;
        }
        if let Some(dictionary) = like.dictionary() {
            table.set_dictionary(dictionary.dictionary().clone())?;
        }
        change.commit()?;
        let values: Vec<Vec<ValueRef<'_>>> = self.rows.iter().map(|row| row.iter().map(Value::as_ref).collect()).collect();
        let took = timed(|| {
            for group in values.chunks(GROUP) {
                let mut transaction = self.database.begin(unsynced());
                group.iter().try_for_each(|row| transaction.insert(&table, row).map(drop))?;
                transaction.commit()?;
            }
            Ok(())
        })?;
        drop(table);
        let mut change = self.database.change();
        change.drop_table(name)?;
        change.commit()?;
        Ok(took)
    }
}

fn measure_table(subject: &Subject<'_>, way: &Way, rounds: usize) -> Outcome<Measured> {
    let options =
        ReorgOptions { method: Some(Setting::Given(way.name.parse()?)), page_bytes: Some(way.page_bytes), ..ReorgOptions::default() };
    let size_bytes = reorg(subject.database, TABLE, &options, &Silent)?.size_bytes;
    subject.look_up()?;
    let read_s = least(rounds, || subject.look_up())?;
    let mut round = 0;
    let write_s = least(rounds, || {
        round += 1;
        subject.insert(&format!("inserted {round}"))
    })?;
    Ok(Measured { way: way.clone(), size_bytes, read_s, write_s })
}

fn measure_index(database: &Database, name: &str, way: &Way, (rows, rounds): (usize, usize)) -> Outcome<Measured> {
    let format: IndexFormat = way.name.parse()?;
    let options = ReorgOptions { format: Some(Setting::Given(format)), page_bytes: Some(way.page_bytes), ..ReorgOptions::default() };
    let size_bytes = reorg(database, name, &options, &Silent)?.size_bytes;
    let index: Arc<Index> = database.index(name)?;
    let mut entries: Vec<(Vec<u8>, Rid)> = Vec::new();
    {
        let mut cursor = index.tree().all(pagefold_engine::btree::Direction::Forward);
        while let Some((key, rid)) = cursor.next()? {
            entries.push((key.to_vec(), rid));
        }
    }
    let step = (entries.len() / rows).max(1);
    let entries: Vec<(Vec<u8>, Rid)> = entries.into_iter().step_by(step).collect();
    let mut random = Random(5);
    let order: Vec<usize> = entries.iter().map(|_| random.below(entries.len())).collect();
    let look_up = || {
        timed(|| {
            for number in &order {
                black_box(index.tree().first_rid(&entries[*number].0)?);
            }
            Ok(())
        })
    };
    look_up()?;
    let read_s = least(rounds, look_up)?;
    // The other half, in random order.
    let mut others: Vec<usize> = (0..entries.len()).skip(1).step_by(2).collect();
    for at in (1..others.len()).rev() {
        others.swap(at, random.below(at + 1));
    }
    let write_s = least(rounds, || {
        for number in &others {
            index.tree().delete(&entries[*number].0, entries[*number].1)?;
        }
        timed(|| Ok(others.iter().try_for_each(|number| index.tree().insert(&entries[*number].0, entries[*number].1))?))
    })?;
    Ok(Measured { way: way.clone(), size_bytes, read_s, write_s })
}

#[derive(Default)]
struct Tally {
    objects: usize,
    within: usize,
    small: usize,
}

/// Says where what was advised stands among what was measured.
fn judge(name: &str, advice: &ObjectAdvice, mut all: Vec<Measured>, tally: &mut Tally) {
    let Advised::Decided(decided) = &advice.advised else { return };
    let label = |way: &Way| format!("{} {}K", way.name, way.page_bytes / 1024);
    let (base_way, best_way) = (&decided.ways[decided.subject.base], &decided.ways[decided.decision.best]);
    let is = |measured: &Measured, way: &Way| measured.way.name == way.name && measured.way.page_bytes == way.page_bytes;
    let Some(base) = all.iter().find(|m| is(m, base_way)).map(|m| (m.read_s, m.write_s)) else { return };
    let ratios = |m: &Measured| (m.read_s / base.0, m.write_s / base.1);
    let allowed = |m: &Measured| is(m, base_way) || ratios(m).0 <= READ_MAX && ratios(m).1 <= WRITE_MAX;
    all.sort_by_key(|m| m.size_bytes);
    let Some(advised) = all.iter().find(|m| is(m, best_way)) else { return };
    let within: Vec<&Measured> = all.iter().filter(|m| allowed(m)).collect();
    let best = within[0];
    let place = within
        .iter()
        .position(|m| is(m, best_way))
        .map_or_else(|| "not allowed".to_owned(), |at| format!("{} of {}", at + 1, within.len()));
    let more = 100.0 * (advised.size_bytes as f64 / best.size_bytes as f64 - 1.0);
    // Where all ways are within an extent there is nothing to advise on: such objects are not counted.
    let small = advised.size_bytes.saturating_sub(best.size_bytes) < 48 << 10 && more > 5.0 && allowed(advised);
    let good = allowed(advised) && more <= 5.0;
    if small {
        tally.small += 1;
    } else {
        tally.objects += 1;
        tally.within += usize::from(good);
    }
    let (read, write) = ratios(advised);
    println!(
        "{name:<26} {:>9} KB  {:<11} {:>8} KB {read:>5.2} {write:>5.2}   {:<11} {:>8} KB  {place:<12} {more:>+6.1} %  {}",
        advice.now.as_ref().map_or(0, |now| now.size_bytes) / 1024,
        label(best_way),
        advised.size_bytes / 1024,
        label(&best.way),
        best.size_bytes / 1024,
        match (good, small) {
            (_, true) => "an extent",
            (true, _) => "",
            (false, _) => "MISS",
        }
    );
    let dearer = all.iter().take_while(|m| m.size_bytes < best.size_bytes);
    for m in dearer.filter(|m| (m.size_bytes as f64) < 0.95 * best.size_bytes as f64).take(2) {
        println!(
            "{:<26} ({} would take {} KB, but {:.2} and {:.2} times as long)",
            "",
            label(&m.way),
            m.size_bytes / 1024,
            ratios(m).0,
            ratios(m).1
        );
    }
}

fn loaded(input: &mut Input, folder: &Path) -> Outcome<Database> {
    let database = create(folder, MEMORY_BYTES)?;
    let options = LoadOptions {
        method: Setting::Given(Method::None),
        primary_key: input.primary_key.clone(),
        key_format: Setting::Given(IndexFormat::Plain),
        ..LoadOptions::default()
    };
    load_source(&database, TABLE, input, &options, &Silent)?;
    Ok(database)
}

fn objects(input: &mut Input, folder: &Path, options: &Options, tally: &mut Tally) -> Outcome<()> {
    let name = input.name.clone();
    let database = loaded(input, folder)?;
    let table: Arc<Table> = database.table(TABLE)?;
    let schema = table.attributes().schema.clone();
    let column = &schema.columns()[schema.len() / 2].name;
    create_index(
        &database,
        "by_middle",
        TABLE,
        &[(column.clone(), pagefold_types::Direction::Ascending)],
        &IndexOptions::default(),
        &Silent,
    )?;
    drop(table);
    let plan = advise(&database, &AdviseOptions::default(), &Silent)?;
    let subject = Subject::new(&database, options.rows)?;
    for advice in &plan.objects {
        let Advised::Decided(decided) = &advice.advised else { continue };
        let mut all = Vec::new();
        for way in &decided.ways {
            all.push(match advice.kind {
                ObjectKind::Table => measure_table(&subject, way, options.rounds)?,
                ObjectKind::Index => measure_index(&database, &advice.name, way, (options.rows, options.rounds))?,
            });
        }
        if advice.kind == ObjectKind::Table {
            // Indexes are advised for the table as it was.
            let back = ReorgOptions { method: Some(Setting::Given(Method::None)), page_bytes: Some(8192), ..ReorgOptions::default() };
            reorg(&database, TABLE, &back, &Silent)?;
        }
        let what = if advice.kind == ObjectKind::Table { name.clone() } else { format!("{name} {}", advice.name) };
        judge(&what, advice, all, tally);
    }
    Ok(())
}

/// Kinds of work.
const WORKLOADS: [&str; 3] = ["look-ups and changes", "scans beside look-ups of whole rows", "inserts, deletes, look-ups"];

/// Processor seconds of the thread for each piece of a workload. Of what a piece takes in several runs the least counts: others use the machine, too.
#[derive(Default)]
struct Pieces {
    least: Vec<f64>,
    at: usize,
}

impl Pieces {
    fn run(&mut self, work: impl FnOnce() -> Outcome<()>) -> Outcome<()> {
        let took = timed(work)?;
        match self.least.get_mut(self.at) {
            Some(least) => *least = least.min(took),
            None => self.least.push(took),
        }
        self.at += 1;
        Ok(())
    }

    fn sum(&self) -> f64 {
        self.least.iter().sum()
    }
}

/// A key to ask for, and a value to put there.
struct Drawn {
    key: Vec<Value>,
    value: Value,
}

impl Drawn {
    fn key(&self) -> Vec<ValueRef<'_>> {
        self.key.iter().map(Value::as_ref).collect()
    }
}

/// One of the workloads on table `t`, the same each time.
fn run_workload(
    kind: usize,
    database: &Database,
    rows: &[Vec<Value>],
    (key_columns, column): (&[usize], usize),
    pieces: &mut Pieces,
) -> Outcome<()> {
    pieces.at = 0;
    let (table, key) = (database.table(TABLE)?, database.index(&format!("{TABLE}_pk"))?);
    let mut random = Random(kind as u64 + 21);
    let middle = random.below(rows.len() / 2);
    // Keys and values to come are made before the clock runs, and lie in the caches then: getting them is not the database's work.
    let mut draw = |below: usize| -> Vec<Drawn> {
        let draw = |_| {
            let number = random.below(below);
            let key = key_columns.iter().map(|column| rows[number][*column].clone()).collect();
            Drawn { key, value: rows[random.below(below)][column].clone() }
        };
        (0..GROUP).map(draw).collect()
    };
    let values: Vec<Vec<ValueRef<'_>>> = rows.iter().map(|row| row.iter().map(Value::as_ref).collect()).collect();
    let (few, all) = ([0, table.attributes().schema.len() / 2], rows.len());
    let mut narrow = RowBuffer::for_columns(&table, &few);
    let mut whole = RowBuffer::default();
    match kind {
        0 => {
            for _ in 0..300 {
                let drawn = draw(all);
                let drawn_keys: Vec<Vec<ValueRef<'_>>> = drawn.iter().map(Drawn::key).collect();
                pieces.run(|| {
                    let mut transaction = database.begin(unsynced());
                    for (turn, drawn) in drawn.iter().enumerate() {
                        if turn % 5 < 4 {
                            transaction.get_with(&table, &key, &drawn_keys[turn], &mut narrow, |_, record| black_box(record).len())?;
                        } else {
                            let rid = transaction.find(&table, &key, &drawn_keys[turn])?[0];
                            transaction.update(&table, rid, &[(column, drawn.value.as_ref())])?;
                        }
                    }
                    Ok(transaction.commit()?)
                })?;
            }
        }
        1 => {
            for turn in 0..6 {
                let request = ScanRequest { columns: (turn % 2 == 0).then(|| few.to_vec()), ..ScanRequest::default() };
                let mut scan = database.read_view().scan(&table, &request)?.into_rows();
                let mut is_more = true;
                while is_more {
                    pieces.run(|| {
                        for _ in 0..20 * GROUP {
                            is_more = scan.next_record()?.map(|(_, record)| black_box(record).len()).is_some();
                            if !is_more {
                                break;
                            }
                        }
                        Ok(())
                    })?;
                }
                for _ in 0..20 {
                    let drawn = draw(all);
                    let drawn_keys: Vec<Vec<ValueRef<'_>>> = drawn.iter().map(Drawn::key).collect();
                    pieces.run(|| {
                        let mut transaction = database.begin(unsynced());
                        for key_of_row in &drawn_keys {
                            transaction.get_with(&table, &key, key_of_row, &mut whole, |_, record| black_box(record).len())?;
                        }
                        Ok(())
                    })?;
                }
            }
        }
        _ => {
            // A part of the rows goes and comes again.
            let part: Vec<usize> = (middle..middle + all / 4).collect();
            for group in part.chunks(GROUP) {
                pieces.run(|| {
                    let mut transaction = database.begin(unsynced());
                    for number in group {
                        let of_row: Vec<ValueRef<'_>> = key_columns.iter().map(|column| values[*number][*column]).collect();
                        let rid = transaction.find(&table, &key, &of_row)?[0];
                        transaction.delete(&table, rid)?;
                    }
                    Ok(transaction.commit()?)
                })?;
            }
            pieces.run(|| Ok(database.remove_leftovers()?))?;
            for group in part.chunks(GROUP) {
                let drawn = draw(middle + 1);
                let drawn_keys: Vec<Vec<ValueRef<'_>>> = drawn.iter().map(Drawn::key).collect();
                pieces.run(|| {
                    let mut transaction = database.begin(unsynced());
                    group.iter().try_for_each(|number| transaction.insert(&table, &values[*number]).map(drop))?;
                    for key_of_row in &drawn_keys {
                        transaction.get_with(&table, &key, key_of_row, &mut narrow, |_, record| black_box(record).len())?;
                    }
                    Ok(transaction.commit()?)
                })?;
            }
        }
    }
    Ok(())
}

fn workloads(input: &mut Input, folder: &Path, options: &Options, off: &mut Vec<f64>) -> Outcome<()> {
    let name = input.name.clone();
    let database = loaded(input, folder)?;
    let table = database.table(TABLE)?;
    let key_columns = table.attributes().primary_key.clone();
    let scan = database.read_view().scan(&table, &ScanRequest::default())?;
    let rows: Vec<Vec<Value>> = scan.into_rows().map(|row| row.map(|row| row.1)).collect::<Result<_, _>>()?;
    let is_number =
        |column: &usize| rows.iter().take(100).all(|row| !matches!(row[*column], Value::Text(_) | Value::Bytes(_) | Value::Null));
    let others = || (0..table.attributes().schema.len()).filter(|column| !key_columns.contains(column));
    let Some(column) = others().find(is_number).or_else(|| others().next()) else { return Ok(()) };
    drop(table);
    let mut calibration = pagefold_utility::Calibration::default();
    for (kind, what) in WORKLOADS.iter().enumerate() {
        let method_anew = |method: Method| ReorgOptions { method: Some(Setting::Given(method)), ..ReorgOptions::default() };
        reorg(&database, TABLE, &method_anew(Method::None), &Silent)?;
        let before = Workload::of(&database);
        run_workload(kind, &database, &rows, (&key_columns, column), &mut Pieces::default())?;
        let workload = Workload::of(&database).since(&before);
        let asked =
            AdviseOptions { workload: Some(workload), calibration: calibration.clone(), sample_pages: None, ..AdviseOptions::default() };
        let plan = advise(&database, &asked, &Silent)?;
        calibration = plan.calibration.clone();
        let cpu_of = |kind: ObjectKind, name: Option<&str>| -> f64 {
            let objects = plan.objects.iter().filter(|object| object.kind == kind);
            let ways = objects.filter_map(|object| match &object.advised {
                Advised::Decided(decided) => {
                    let present = &decided.ways[decided.subject.present];
                    let of = |way: &&Way| way.page_bytes == present.page_bytes && name.is_none_or(|name| way.name == name);
                    if name.is_some() { decided.ways.iter().find(of) } else { Some(present) }
                }
                _ => None,
            });
            ways.filter_map(|way| way.cpu_s).sum()
        };
        for method in Method::ALL {
            let said = cpu_of(ObjectKind::Table, Some(method.name())) + cpu_of(ObjectKind::Index, None);
            let mut pieces = Pieces::default();
            for _ in 0..options.rounds {
                reorg(&database, TABLE, &method_anew(method), &Silent)?;
                run_workload(kind, &database, &rows, (&key_columns, column), &mut pieces)?;
            }
            let measured = pieces.sum();
            let by = said / measured - 1.0;
            off.push(by.abs());
            println!(
                "{name:<12} {:>7} rows  {what:<36} {:<8} said {said:>7.4} s  measured {measured:>7.4} s  {:>+6.1} %{}",
                rows.len(),
                method.name(),
                100.0 * by,
                if by.abs() > 0.2 { "  FAR" } else { "" }
            );
        }
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let options = Options::parse();
    let all = || -> Outcome<Vec<inputs::Pending>> {
        let mut pending = inputs::tpch(options.scale_factor);
        for folder in &options.data {
            pending.extend(inputs::files(folder)?);
        }
        pending.extend(inputs::bank(options.bank_rows, 1));
        pending.retain(|input| options.only.as_ref().is_none_or(|only| input.name.contains(only)));
        Ok(pending)
    };
    let scratch = tempfile::tempdir()?;
    if !options.no_objects {
        println!(
            "{:<26} {:>12}  {:<11} {:>11} {:>5} {:>5}   {:<11} {:>11}  {:<12} {:>8}\n",
            "object", "now", "advised", "", "read", "write", "best", "", "place", "larger"
        );
        let mut tally = Tally::default();
        for (number, pending) in all()?.into_iter().enumerate() {
            let mut input = pending.read()?;
            let folder = scratch.path().join(format!("objects {number}"));
            objects(&mut input, &folder, &options, &mut tally)?;
            std::fs::remove_dir_all(&folder)?;
        }
        println!(
            "\n{} of {} objects: the best, or at most 5 % larger; {} others differ by less than an extent (48 KB)\n",
            tally.within, tally.objects, tally.small
        );
    }
    if !options.no_workloads {
        let mut off = Vec::new();
        for (number, pending) in all()?.into_iter().enumerate() {
            let mut input = pending.read()?;
            if input.primary_key.is_empty() || input.rows().iter().map(|batch| batch.num_rows()).sum::<usize>() < 10_000 {
                continue;
            }
            let folder = scratch.path().join(format!("workloads {number}"));
            workloads(&mut input, &folder, &options, &mut off)?;
            std::fs::remove_dir_all(&folder)?;
        }
        off.sort_by(f64::total_cmp);
        let far = off.iter().filter(|by| **by > 0.2).count();
        println!(
            "\n{far} of {} predictions are off by more than 20 %; median {:.1} %",
            off.len(),
            100.0 * off.get(off.len() / 2).copied().unwrap_or(0.0)
        );
    }
    Ok(())
}

//! Partitions are divided, put together and written anew beside threads that change their rows: these go on meanwhile, and at the end each row is as who wrote it says.
//!
//! `PAGEFOLD_STRESS_SECONDS` and `PAGEFOLD_STRESS_SEED` make it longer, and another one.

#![allow(clippy::unwrap_used, reason = "tests")]

use pagefold::utility::{self, PartitionText, Progress, ReorgOptions, Setting, Silent, Unit};
use pagefold::{
    DataType, Database, Error, IndexDefinition, Isolation, Method, PartitionDefinition, Result, Row, Table, TableDefinition,
    TransactionOptions,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const DAYS: u64 = 100;
const WRITERS: i32 = 3;

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// Texts by day and number.
type Rows = BTreeMap<(i32, i32), String>;

/// Row of a writer, whose numbers nobody else has.
fn own_number(writer: i32, random: &mut Random) -> i32 {
    random.below(60) as i32 * WRITERS + writer
}

fn create() -> Database {
    let database = Database::in_memory().unwrap();
    let definition = TableDefinition::new()
        .column("day", DataType::Integer)
        .column("id", DataType::Integer)
        .nullable("text", DataType::Varchar(None))
        .primary_key(["day", "id"])
        .partition_by(["day"])
        .partition(PartitionDefinition::below("a", 40))
        .partition(PartitionDefinition::below("b", 70).method(Method::Page))
        .partition(PartitionDefinition::rest("rest").page_bytes(2048));
    let t = database.begin();
    t.create_table("sales", definition).unwrap();
    t.create_index("by_id", "sales", IndexDefinition::new(["id"])).unwrap();
    t.commit().unwrap();
    database
}

/// Changes rows in a transaction. What its rows are then.
fn change(table: &Table<'_>, mut rows: Rows, writer: i32, random: &mut Random) -> Result<Rows> {
    for _ in 0..=random.below(8) {
        let (day, id) = (random.below(DAYS) as i32, own_number(writer, random));
        let length = [3, 40, 300, 30_000][random.below(4) as usize];
        let text = "pagefold ".repeat(1 + length / 9) + &random.0.to_string();
        let is_there = rows.contains_key(&(day, id));
        let some = rows.keys().nth(random.below(rows.len().max(1) as u64) as usize).copied();
        match (random.below(5), some) {
            (0 | 1, _) | (_, None) if !is_there => {
                table.insert((day, id, text.as_str()))?;
                rows.insert((day, id), text);
            }
            (2, Some(key)) => {
                assert!(table.delete(key)?, "{key:?} is gone");
                rows.remove(&key);
            }
            (3, Some(key)) => {
                assert!(table.update(key, [("text", text.as_str())])?, "{key:?} is gone");
                rows.insert(key, text);
            }
            // To another day, perhaps of another partition.
            (_, Some(key)) if !rows.contains_key(&(day, key.1)) => {
                assert!(table.update(key, [("day", day)])?, "{key:?} is gone");
                let text = rows.remove(&key).unwrap();
                rows.insert((day, key.1), text);
            }
            _ => {}
        }
    }
    Ok(rows)
}

fn is_passing(error: &Error) -> bool {
    error.is_retryable() || matches!(error, Error::Stale { .. })
}

#[derive(Default)]
struct Counts {
    commits: AtomicU64,
    again: AtomicU64,
    looks: AtomicU64,
    done: AtomicBool,
}

/// It is over when a thread has failed, too.
struct Over<'c>(&'c AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn write(database: &Database, writer: i32, seed: u64, counts: &Counts) -> Rows {
    let (_over, mut random, mut rows) = (Over(&counts.done), Random(seed * 100 + writer as u64), Rows::new());
    while !counts.done.load(Ordering::Relaxed) {
        let isolation = [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable][random.below(3) as usize];
        let t = database.begin_with(TransactionOptions { isolation, ..TransactionOptions::default() });
        let changed = t.table("sales").and_then(|table| {
            let then = change(&table, rows.clone(), writer, &mut random)?;
            if !random.one_in(4) {
                return Ok(then);
            }
            let savepoint = t.savepoint();
            change(&table, then.clone(), writer, &mut random)?;
            t.roll_back_to(savepoint)?;
            Ok(then)
        });
        match changed {
            Ok(_) if random.one_in(6) => t.rollback().unwrap(),
            Ok(then) => match t.commit() {
                Ok(()) => {
                    rows = then;
                    counts.commits.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => {
                    assert!(is_passing(&error), "writer {writer}: {error}");
                    counts.again.fetch_add(1, Ordering::Relaxed);
                }
            },
            Err(error) => {
                assert!(is_passing(&error), "writer {writer}: {error}");
                counts.again.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    rows
}

fn of_row(row: Result<Row>) -> ((i32, i32), String) {
    let row = row.unwrap();
    ((row.get("day").unwrap(), row.get("id").unwrap()), row.get("text").unwrap())
}

/// One snapshot is the same by scan, by key and by the other index, however often it is looked at.
fn read(database: &Database, reader: u64, counts: &Counts) {
    let (_over, mut random) = (Over(&counts.done), Random(reader + 77));
    while !counts.done.load(Ordering::Relaxed) {
        let t = database.begin_with(TransactionOptions { isolation: Isolation::RepeatableRead, ..TransactionOptions::default() });
        let table = t.table("sales").unwrap();
        let scanned: Rows = table.scan().unwrap().map(of_row).collect();
        for _ in 0..1 + random.below(3) {
            let by_key: Rows = table.range::<i32>(..).unwrap().map(of_row).collect();
            assert!(by_key == scanned, "{} rows by key, {} by scan", by_key.len(), scanned.len());
            let by_id: Rows = table.by("by_id").unwrap().range::<i32>(..).unwrap().map(of_row).collect();
            assert!(by_id == scanned, "{} rows by id, {} by scan", by_id.len(), scanned.len());
            counts.looks.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Counts what is committed until the rows are kept from being changed.
struct Watching<'c>(&'c AtomicU64, AtomicU64);

impl Progress for Watching<'_> {
    fn start(&self, phase: &str, _total: Option<u64>, _unit: Unit) {
        if phase.starts_with("what changed") {
            self.1.store(self.0.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
    fn advance(&self, _n: u64) {}
    fn finish(&self) {}
    fn interrupted(&self) -> bool {
        false
    }
}

#[test]
fn partitions_are_divided_and_put_together_beside_writers() {
    let number = |name: &str, otherwise: u64| std::env::var(name).map_or(otherwise, |value| value.parse().unwrap());
    let (seconds, seed) = (number("PAGEFOLD_STRESS_SECONDS", 3), number("PAGEFOLD_STRESS_SEED", 1));
    let database = create();
    let (counts, mut done, mut beside) = (Counts::default(), BTreeMap::<&str, u64>::new(), 0);
    let expected: Rows = std::thread::scope(|scope| {
        let (database, counts) = (&database, &counts);
        let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || write(database, writer, seed, counts))).collect();
        let readers: Vec<_> = (0..2).map(|reader| scope.spawn(move || read(database, reader, counts))).collect();
        let over = Over(&counts.done);
        let (mut random, start, mut name) = (Random(seed), Instant::now(), 0);
        while !counts.done.load(Ordering::Relaxed)
            && (start.elapsed() < Duration::from_secs(seconds) || done.len() < 3 || counts.looks.load(Ordering::Relaxed) < 5)
        {
            let before = counts.commits.load(Ordering::Relaxed);
            while counts.commits.load(Ordering::Relaxed) < before + 20 && !counts.done.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let engine = database.engine();
            let partitions = utility::list_partitions(engine, "sales").unwrap();
            let at = random.below(partitions.len() as u64) as usize;
            name += 1;
            let begun = counts.commits.load(Ordering::Relaxed);
            let watching = Watching(&counts.commits, AtomicU64::new(begun));
            let (what, result) = match random.below(3) {
                0 if partitions.len() < 8 => {
                    let day = random.below(DAYS).to_string();
                    let method = random.one_in(2).then(|| Method::ALL[random.below(5) as usize]);
                    let below = PartitionText { name: Some(format!("p{name}")), limit: vec![Some(day)], method, ..Default::default() };
                    let split = utility::split_partition(engine, "sales", &partitions[at].name, &below, None, &watching);
                    match split {
                        // The day is of another partition.
                        Err(utility::Error::Usage(_)) => continue,
                        split => ("split", split.map(drop)),
                    }
                }
                1 if partitions.len() > 2 && at + 1 < partitions.len() => {
                    let both = [partitions[at].name.clone(), partitions[at + 1].name.clone()];
                    ("merge", utility::merge_partitions(engine, "sales", &both, &format!("p{name}"), &watching).map(drop))
                }
                _ => {
                    let method = Some(Setting::Given(Method::ALL[random.below(5) as usize]));
                    let options = ReorgOptions { method, ..ReorgOptions::default() };
                    let table = format!("sales/{}", partitions[at].name);
                    ("reorg", utility::reorg(engine, &table, &options, &watching).map(drop))
                }
            };
            result.unwrap_or_else(|error| panic!("{what}: {error}"));
            beside += watching.1.load(Ordering::Relaxed) - begun;
            *done.entry(what).or_default() += 1;
        }
        drop(over);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    println!(
        "{done:?}; {} transactions, {beside} of them beside, {} begun again, {} looks; {} rows",
        counts.commits.load(Ordering::Relaxed),
        counts.again.load(Ordering::Relaxed),
        counts.looks.load(Ordering::Relaxed),
        expected.len()
    );
    let t = database.begin();
    let found: Rows = t.table("sales").unwrap().scan().unwrap().map(of_row).collect();
    assert!(found == expected, "{} rows, not {}", found.len(), expected.len());
    t.commit().unwrap();
    let engine = database.engine();
    let checked = utility::check(engine.storage(), engine.manager().clock(), engine.directory(), Default::default(), &Silent).unwrap();
    assert!(checked.errors.is_empty(), "{:?}", checked.errors);
    assert!(beside > 0, "nobody committed anything beside");
}

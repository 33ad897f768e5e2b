//! Trees in less memory than their pages need: what one thread, or some, do still ends.
//!
//! A clock counts how often pages are read, and a test fails when there are more reads than there can be: a hang is found without waiting for it.

use super::*;
use crate::btree::Direction;
use crate::database::{Database, OpenMode, Settings};
use crate::frames::CHUNK_BYTES;
use crate::index::{Index, IndexAttributes, IndexFormat};
use crate::table_space::TableAttributes;
use crate::test_random::Random;
use pagefold_format::space_map::CLASS_FULL;
use pagefold_io::{Clock, MemoryStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Direction as Order, Rid, Schema, ValueRef};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Page sizes of eight pools.
const SIZES: [usize; 8] = [2048, 4096, 6144, 8192, 12288, 16384, 24576, 32768];

/// More reads than one operation makes.
const READS_MAX: u64 = 10_000;

/// Asked twice for the time of each read. So many times more it is asked, and then something turns in a circle.
#[derive(Debug)]
struct CountingClock {
    clock: SimulatedClock,
    left: AtomicU64,
}

impl CountingClock {
    fn allow(&self, reads: u64) {
        self.left.store(2 * reads, Ordering::Relaxed);
    }
}

impl Clock for CountingClock {
    fn monotonic(&self) -> Duration {
        let left = self.left.fetch_sub(1, Ordering::Relaxed);
        assert!(left > 0, "more pages are read than there can be");
        self.clock.monotonic()
    }
    fn unix_time(&self) -> Duration {
        self.clock.unix_time()
    }
    fn thread_cpu(&self) -> Duration {
        self.clock.thread_cpu()
    }
    fn process_cpu(&self) -> Duration {
        self.clock.process_cpu()
    }
    fn sleep(&self, duration: Duration) {
        self.clock.sleep(duration);
    }
}

fn open(memory_bytes: usize) -> (Database, Arc<CountingClock>) {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let clock = Arc::new(CountingClock { clock: SimulatedClock::new(Duration::from_secs(1)), left: AtomicU64::new(u64::MAX) });
    let pools = PoolSettings { memory_bytes, background_threads: 0, ..PoolSettings::default() };
    let settings = Settings { pools, ..Settings::default() };
    (Database::open(storage, Arc::clone(&clock) as _, Path::new("db"), OpenMode::Create, settings).unwrap(), clock)
}

fn schema() -> Schema {
    Schema::new(vec![Column::new("n", DataType::BigInt, false), Column::new("t", DataType::Varchar(None), false)]).unwrap()
}

fn key(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

fn rid(n: u64) -> Rid {
    Rid::new(0, (n >> 8) as u32, n as u16 & 0xFF)
}

/// Everything an index is asked for and does, in an order of its own; `before` is called before each.
fn work(index: &Index, random: &mut Random, rounds: u64, keys: u64, mut before: impl FnMut()) {
    let tree = index.tree();
    for _ in 0..rounds {
        before();
        let n = random.below(keys);
        match random.below(8) {
            0..3 => match tree.insert(&key(n), rid(n)) {
                Ok(()) | Err(crate::Error::DuplicateKey { .. }) => {}
                Err(error) => panic!("{error}"),
            },
            3..5 => drop(tree.delete(&key(n), rid(n)).unwrap()),
            5 => {
                let mut cursor = tree.all(Direction::Backward);
                assert!(cursor.next().unwrap().is_none_or(|(_, rid)| rid.page() <= (keys >> 8) as u32));
            }
            _ => assert!(tree.first_rid(&key(n)).unwrap().is_none_or(|found| found == rid(n))),
        }
    }
}

/// One chunk is left for the two pools of a folded index: the pages of others are in use.
#[test]
fn two_pools_of_one_index_share_a_chunk() {
    let (database, clock) = open(2 << 20);
    let mut change = database.change();
    let mut tables = Vec::new();
    for bytes in SIZES {
        let table = change.create_table(TableAttributes::new(format!("t{bytes}"), schema()).with_page_bytes(bytes)).unwrap();
        table.insert(&[ValueRef::Int(1), ValueRef::Text("x")]).unwrap();
        tables.push(table);
    }
    let attributes = IndexAttributes::new("i", vec![(0, Order::Ascending)], true).with_format(IndexFormat::Fold, 16384);
    let index = change.create_index(&tables[0], attributes).unwrap();
    for n in 0..20_000 {
        index.tree().insert(&key(n), rid(n)).unwrap();
    }
    assert!(index.tree().levels().unwrap().len() > 1);
    // Each of the others has one chunk, and a page in it that somebody has latched.
    let in_use: Vec<SharedPage<'_>> = tables
        .iter()
        .map(|table| table.data_sets().next().unwrap())
        .filter(|data_set| data_set.page_bytes() != 16384)
        .map(|data_set| {
            let number = (1..data_set.page_count()).find(|n| data_set.space().word(*n).class() > CLASS_FULL).unwrap();
            database.manager().shared(data_set, number, Access::Random).unwrap()
        })
        .collect();
    assert_eq!(in_use.len(), 7);
    let turns = database.manager().turns();
    work(&index, &mut Random(5), 1000, 20_000, || clock.allow(READS_MAX));
    assert!(database.manager().turns() > turns, "nobody had to wait for a turn");
    drop(in_use);
    assert_eq!(index.tree().check(&mut |_, _| Ok(())).unwrap(), []);
}

/// Tables and indexes of all formats, with pages of eight sizes.
fn many(database: &Database) -> Vec<Arc<Index>> {
    let mut change = database.change();
    let mut indexes = Vec::new();
    for (number, bytes) in SIZES.into_iter().enumerate() {
        let table = change.create_table(TableAttributes::new(format!("t{bytes}"), schema()).with_page_bytes(bytes)).unwrap();
        for (format, bytes) in [
            (IndexFormat::Plain, SIZES[7 - number]),
            (IndexFormat::Prefix, SIZES[(number + 3) % 8]),
            (IndexFormat::Fold, [8192, 16384, 32768][number % 3]),
        ] {
            let name = format!("i{number}_{format}");
            let attributes = IndexAttributes::new(name, vec![(0, Order::Ascending)], true).with_format(format, bytes);
            indexes.push(change.create_index(&table, attributes).unwrap());
        }
    }
    change.commit().unwrap();
    indexes
}

#[test]
fn pages_of_eight_sizes_in_four_chunks() {
    let (database, clock) = open(4 * CHUNK_BYTES);
    let indexes = many(&database);
    let mut random = Random(6);
    for _ in 0..400 {
        let index = &indexes[random.below(indexes.len() as u64) as usize];
        work(index, &mut random, 20, 4000, || clock.allow(READS_MAX));
    }
    assert!(database.manager().steals() > 100, "{} chunks changed hands", database.manager().steals());
    for index in &indexes {
        clock.allow(READS_MAX);
        assert_eq!(index.tree().check(&mut |_, _| Ok(())).unwrap(), []);
    }
}

#[test]
fn eight_threads_in_four_chunks() {
    let (database, clock) = open(4 * CHUNK_BYTES);
    let indexes = many(&database);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (indexes, clock) = (&indexes, &clock);
            scope.spawn(move || {
                let mut random = Random(thread);
                for _ in 0..100 {
                    let index = &indexes[random.below(indexes.len() as u64) as usize];
                    // Each page that one reads may be one that another read before.
                    work(index, &mut random, 20, 4000, || clock.allow(64 * READS_MAX));
                }
            });
        }
    });
    println!("{} chunks changed hands, {} turns", database.manager().steals(), database.manager().turns());
    assert!(database.manager().steals() > 100);
    for index in &indexes {
        assert_eq!(index.tree().check(&mut |_, _| Ok(())).unwrap(), []);
    }
}

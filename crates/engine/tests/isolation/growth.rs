//! A table in use grows into further partitions: nothing is lost, and room in the partitions before is used first.

use crate::world::{Form, Random, World, open};
use pagefold_engine::btree::Direction as Way;
use pagefold_engine::database::Isolation::{ReadCommitted, RepeatableRead};
use pagefold_engine::database::{Database, OpenMode, Settings, TransactionOptions};
use pagefold_engine::index::IndexFormat;
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::{Method, TableAttributes};
use pagefold_engine::{Error, Silent};
use pagefold_io::{MemoryStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Schema, ValueRef};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const FORM: Form = Form {
    method: Method::None,
    format: IndexFormat::Plain,
    memory_bytes: 4 << 20,
    background_threads: 1,
    page_bytes: 2048,
    small_partitions: Some((4, 16)),
    small_extents: false,
};

/// A statement that is refused, as the memory for versions is full, leaves no page that nobody finds again.
#[test]
fn refused_updates_leave_no_pages() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    drop(open(&storage, Form { small_partitions: None, ..FORM }, OpenMode::Create));
    let settings = Settings {
        version_bytes: 20_000,
        version_file_bytes: 0,
        pools: PoolSettings { memory_bytes: 4 << 20, ..PoolSettings::default() },
        ..Settings::default()
    };
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let database = Database::open(Arc::clone(&storage), clock, Path::new("db"), OpenMode::Write, settings).unwrap();
    let table = database.table("t").unwrap();
    let text = "x".repeat(100);
    let rids: Vec<_> = (0..400)
        .map(|number| {
            let mut t = database.begin(TransactionOptions::default());
            let rid = t.insert(&table, &[ValueRef::Int(number), ValueRef::Int(1), ValueRef::Text(&text)]).unwrap();
            t.commit().unwrap();
            rid
        })
        .collect();
    database.remove_leftovers().unwrap();
    let mut holder = database.begin(TransactionOptions::default());
    let mut filling = rids.iter();
    while filling.next().is_some_and(|rid| holder.update(&table, *rid, &[(2, ValueRef::Text(&text))]).is_ok()) {}
    let pages = || table.data_sets().map(|partition| partition.facts().data_pages).sum::<u32>();
    let (before, long, mut refused) = (pages(), "z".repeat(1_900), 0);
    for rid in rids.iter().rev().take(100) {
        let mut t = database.begin(TransactionOptions::default());
        refused += u32::from(matches!(t.update(&table, *rid, &[(2, ValueRef::Text(&long))]), Err(Error::VersionsFull(_))));
        t.rollback().unwrap();
    }
    assert!(refused > 50 && pages() <= before + 2, "{refused} refused, {before} and {} pages", pages());
    holder.rollback().unwrap();
    drop(table);
    database.close().unwrap();
    let report = pagefold_utility::check_files(storage.as_ref(), Path::new("db"), &Silent).unwrap();
    assert!(report.errors.is_empty(), "{:?}", report.errors.first());
}

/// A value outside its row stays where it is while others of the row change, whatever is taken back, and goes when it changes itself.
#[test]
fn an_unchanged_large_value_is_not_written_again() {
    for method in Method::ALL {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let world = open(&storage, Form { method, small_partitions: None, ..FORM }, OpenMode::Create);
        let columns = ["n", "short", "long"].map(|name| {
            let data_type = if name == "n" { DataType::BigInt } else { DataType::Varchar(None) };
            Column::new(name, data_type, false)
        });
        let mut t = world.begin(ReadCommitted);
        let mut attributes = TableAttributes::new("blobs", Schema::new(columns.into()).unwrap()).with_page_bytes(2048);
        attributes.method = method;
        let table = t.create_table(attributes).unwrap();
        let long: String = (0..40_000).map(|i| char::from(b'a' + (i * i % 23) as u8)).collect();
        let rid = t.insert(&table, &[ValueRef::Int(1), ValueRef::Text("short"), ValueRef::Text(&long)]).unwrap();
        t.commit().unwrap();
        let row = |long: &str| {
            let mut reader = world.begin(ReadCommitted);
            let values = reader.row(&table, rid).unwrap().unwrap();
            assert_eq!(values[2].as_ref(), ValueRef::Text(long), "{method}");
        };
        let mut old = world.begin(RepeatableRead);
        assert!(old.row(&table, rid).unwrap().is_some());
        world.database.checkpoint().unwrap();
        for i in 0..20 {
            let mut t = world.begin(ReadCommitted);
            let text = "word ".repeat(i);
            let savepoint = t.savepoint();
            assert!(t.update(&table, rid, &[(1, ValueRef::Text(&text))]).unwrap());
            if i % 3 == 0 {
                t.roll_back_to(savepoint).unwrap();
            }
            if i % 4 == 0 {
                t.rollback().unwrap()
            } else {
                t.commit().unwrap()
            }
            row(&long);
        }
        assert!(world.database.log_bytes_since_checkpoint() < 20_000, "{method}: {}", world.database.log_bytes_since_checkpoint());
        // It changes: the old reader still has it.
        let mut t = world.begin(ReadCommitted);
        assert!(t.update(&table, rid, &[(2, ValueRef::Text(&long[1..]))]).unwrap());
        t.commit().unwrap();
        row(&long[1..]);
        assert_eq!(old.row(&table, rid).unwrap().unwrap()[2].as_ref(), ValueRef::Text(&long));
        let mut t = world.begin(ReadCommitted);
        assert!(t.update(&table, rid, &[(2, ValueRef::Text("short, too"))]).unwrap());
        t.commit().unwrap();
        old.commit().unwrap();
        world.database.remove_leftovers().unwrap();
        drop(table);
        let World { database, table, by_number, by_value } = world;
        drop((table, by_number, by_value));
        database.close().unwrap();
        let report = pagefold_utility::check_files(storage.as_ref(), Path::new("db"), &Silent).unwrap();
        assert!(report.errors.is_empty(), "{method}: {:?}", report.errors.first());
    }
}

fn partitions(world: &World) -> usize {
    world.table.data_sets().count()
}

#[test]
fn partitions_come_while_threads_insert_and_are_there_after_the_next_open() {
    for method in [Method::None, Method::Fixed] {
        // The dictionary is in every partition.
        let form = Form { method, small_partitions: Some((4, if method == Method::Fixed { 40 } else { 16 })), ..FORM };
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let world = open(&storage, form, OpenMode::Create);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let world = &world;
                scope.spawn(move || {
                    let mut random = Random(thread);
                    for part in 0..10 {
                        let mut t = world.begin(ReadCommitted);
                        for i in 0..20 {
                            let number = (thread as i64 * 10 + part) * 20 + i;
                            world.insert(&mut t, number, number % 7, &random.text(9)).unwrap();
                        }
                        if part % 4 == 3 {
                            t.rollback().unwrap()
                        } else {
                            t.commit().unwrap()
                        }
                        if part == 5 {
                            world.database.checkpoint().unwrap();
                        }
                    }
                });
            }
        });
        let rows = world.check();
        assert_eq!(rows.len(), 4 * 8 * 20);
        let count = partitions(&world);
        assert!(count >= 5, "{count} partitions");
        drop(world);
        let world = open(&storage, form, OpenMode::Write);
        assert_eq!(partitions(&world), count);
        assert!(world.check() == rows, "rows after the next open");
        // A new catalog names them all.
        world.database.change().commit().unwrap();
        drop(world);
        let world = open(&storage, form, OpenMode::Write);
        assert_eq!(partitions(&world), count);
        assert!(world.check() == rows, "rows after a new catalog");
    }
}

#[test]
fn room_in_earlier_partitions_is_used_before_another_one_comes() {
    let world = World::with(FORM);
    world.fill((0..400).map(|number| (number, 1)));
    let count = partitions(&world);
    assert!(count >= 7, "{count} partitions");
    let mut first = 400;
    for _ in 0..5 {
        let mut t = world.begin(ReadCommitted);
        for (rid, ..) in world.through(&mut t, &world.by_number, Way::Forward).into_iter().take(300) {
            assert!(t.delete(&world.table, rid).unwrap());
        }
        t.commit().unwrap();
        world.database.remove_leftovers().unwrap();
        world.fill((first..first + 300).map(|number| (number, 1)));
        first += 300;
    }
    assert_eq!(partitions(&world), count);
    assert_eq!(world.check().len(), 400);
}

#[test]
fn large_values_go_to_further_partitions() {
    let world = World::with(FORM);
    let mut random = Random(7);
    let texts: Vec<String> = (0..12).map(|_| (0..9000).map(|_| char::from(b'a' + random.below(26) as u8)).collect()).collect();
    let mut t = world.begin(ReadCommitted);
    for (number, text) in texts.iter().enumerate() {
        world.insert(&mut t, number as i64, 0, text).unwrap();
    }
    t.commit().unwrap();
    assert!(partitions(&world) >= 3, "{} partitions", partitions(&world));
    let rows = world.check();
    assert!(texts.iter().enumerate().all(|(number, text)| rows[&(number as i64)].1 == *text));
}

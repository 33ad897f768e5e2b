//! A disk without a byte of room: everything is still read, and rows, tables and indexes can be given up.

use crate::world::{Form, Random, World, open, try_open};
use pagefold_engine::database::Isolation::ReadCommitted;
use pagefold_engine::database::{OpenMode, Transaction};
use pagefold_engine::readers::Snapshot;
use pagefold_io::{FaultOptions, FaultStorage, Storage};
use pagefold_types::ValueRef;
use std::path::Path;
use std::sync::Arc;

fn filled(disk: &FaultStorage) -> (Arc<dyn Storage>, World) {
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let world = open(&storage, Form::default(), OpenMode::Create);
    world.fill((0..1500).map(|number| (number, number % 7)));
    world.database.checkpoint().unwrap();
    (storage, world)
}

/// Rows come until pages have no room, and are changed until the log has none: a transaction that is returned keeps it. Without one checkpoints give it back again and again.
fn fill_up<'w>(world: &'w World, random: &mut Random) -> Transaction<'w> {
    let mut keeper = world.begin(ReadCommitted);
    world.set(&mut keeper, 1_400, 5).unwrap();
    for number in 10_000.. {
        let mut t = world.begin(ReadCommitted);
        let text = random.text(200);
        if world.insert(&mut t, number, 3, &text).and_then(|_| t.commit()).is_err() {
            break;
        }
    }
    let refused = (0..).find_map(|turn| change_text(world, 5, turn).err()).unwrap();
    assert!(refused.is_no_room(), "{refused}");
    keeper
}

/// Takes room in the log only.
fn change_text(world: &World, number: i64, turn: u32) -> pagefold_engine::Result<()> {
    let mut t = world.begin(ReadCommitted);
    let rid = world.find(&mut t, number).unwrap();
    t.update(&world.table, rid, &[(2, ValueRef::Text(["x", "y"][turn as usize % 2]))])?;
    t.commit()
}

#[test]
fn readers_of_a_full_disk_need_no_file() {
    for closed in [true, false] {
        let disk = FaultStorage::new(FaultOptions::default());
        let (storage, world) = filled(&disk);
        let expected = world.committed();
        // Left by a process that died: recovery has something to do, and writes to what is the reader's own.
        let disk = if closed {
            drop(world);
            disk
        } else {
            let image = disk.crash_image(pagefold_io::CrashPolicy::KeepAll);
            drop(world);
            image
        };
        drop(storage);
        let storage: Arc<dyn Storage> = Arc::new(disk.clone());
        disk.set_capacity(Some(disk.taken_bytes()));
        let reader = open(&storage, Form::default(), OpenMode::Read);
        assert_eq!(reader.check(), expected);
        let second = open(&storage, Form::default(), OpenMode::Read);
        assert_eq!(second.check(), expected, "beside another one");
        let refused = try_open(&storage, Form::default(), OpenMode::Write).map(drop).unwrap_err();
        assert!(refused.to_string().contains("is being written by another process"), "{refused}: nobody writes under them");
        drop((reader, second));
        let writer = open(&storage, Form::default(), OpenMode::Write);
        disk.set_capacity(Some(disk.taken_bytes()));
        let refused = Snapshot::take(&storage, Path::new("db"), false).unwrap_err();
        assert!(refused.is_no_room() && refused.to_string().contains("the disk has no room for the file of a reader"), "{refused}");
        disk.set_capacity(None);
        assert!(Snapshot::take(&storage, Path::new("db"), false).unwrap().is_registered());
        assert_eq!(writer.check(), expected);
    }
}

/// There is room for the reader's file, but not for what it changes.
#[test]
fn what_a_reader_changes_is_kept_in_memory_when_the_disk_becomes_full() {
    let disk = FaultStorage::new(FaultOptions::default());
    let (storage, world) = filled(&disk);
    let snapshot = Snapshot::take(&storage, Path::new("db"), false).unwrap();
    disk.set_capacity(Some(disk.taken_bytes()));
    let own = open(&snapshot.storage(), Form::default(), OpenMode::Write);
    let mut t = own.begin(ReadCommitted);
    for number in 0..500 {
        own.set(&mut t, number, 99).unwrap();
    }
    t.commit().unwrap();
    own.database.checkpoint().unwrap();
    let rows = own.check();
    assert_eq!(rows.values().filter(|(value, _)| *value == 99).count(), 500);
    drop(own);
    disk.set_capacity(None);
    assert_eq!(open(&snapshot.storage(), Form::default(), OpenMode::Read).check(), rows);
    assert_eq!(world.check().values().filter(|(value, _)| *value == 99).count(), 0);
}

#[test]
fn on_a_full_disk_rows_are_deleted_and_tables_and_indexes_dropped() {
    for reopened in [false, true] {
        let disk = FaultStorage::new(FaultOptions::default());
        let (storage, mut world) = filled(&disk);
        disk.set_capacity(Some(disk.taken_bytes()));
        let mut keeper = Some(fill_up(&world, &mut Random(4)));
        if reopened {
            keeper = None;
            drop(world);
            world = open(&storage, Form::default(), OpenMode::Write);
        }
        let before = world.committed().len();
        if !reopened {
            let refused = change_text(&world, 5, 1).unwrap_err();
            assert!(refused.is_no_room(), "{refused}");
        }
        let mut t = world.begin(ReadCommitted);
        for number in 0..800 {
            let rid = world.find(&mut t, number).unwrap();
            assert!(t.delete(&world.table, rid).unwrap());
        }
        t.commit().unwrap();
        keeper.into_iter().for_each(|keeper| keeper.rollback().unwrap());
        world.database.remove_leftovers().unwrap();
        assert_eq!(world.check().len(), before - 800);
        // What was begun can be taken back.
        let mut t = world.begin(ReadCommitted);
        for number in 800..900 {
            let rid = world.find(&mut t, number).unwrap();
            assert!(t.delete(&world.table, rid).unwrap());
        }
        t.rollback().unwrap();
        assert_eq!(world.check().len(), before - 800);
        // The log is free again, and small transactions go on.
        (0..2_000).for_each(|turn| change_text(&world, 1_000, turn).unwrap());
        let taken = disk.taken_bytes();
        let mut change = world.database.change();
        change.drop_index("value").unwrap();
        change.commit().unwrap();
        let mut t = world.begin(ReadCommitted);
        t.drop_table("t").unwrap();
        t.commit().unwrap();
        let World { database, table, by_number, by_value, .. } = world;
        drop((table, by_number, by_value));
        database.close().unwrap();
        assert!(disk.taken_bytes() < taken - 100_000, "{} bytes of {taken} are left", disk.taken_bytes());
        let again = pagefold_engine::database::Database::open(
            Arc::clone(&storage),
            Arc::new(pagefold_io::SimulatedClock::new(std::time::Duration::from_secs(1))),
            Path::new("db"),
            OpenMode::Write,
            pagefold_engine::database::Settings::default(),
        )
        .unwrap();
        assert!(again.tables().unwrap().is_empty() && again.indexes().unwrap().is_empty());
    }
}

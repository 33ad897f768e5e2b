//! Blocks of free pages go back to the file system: with a checkpoint, never while somebody needs them, and a full disk is met before a page is taken.

use crate::leaves::FORMATS;
use crate::tables::{FORM, begin, text};
use crate::world::{Form, Random, Rows, World, open};
use pagefold_engine::database::{Isolation, OpenMode};
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::Method;
use pagefold_engine::{LOG_DIRECTORY, Silent};
use pagefold_io::{CallKind, CrashPolicy, FaultOptions, FaultStorage, OpenOptions, Storage};
use pagefold_utility::check_files;
use std::path::Path;
use std::sync::Arc;

const ROWS: i64 = 12_000;
/// Rows that are left: every fourth of the first half.
fn stays(number: i64) -> bool {
    number < ROWS / 2 && number % 4 == 0
}

fn disk() -> (FaultStorage, Arc<dyn Storage>) {
    let storage = FaultStorage::new(FaultOptions { log_calls_max: 0, ..FaultOptions::default() });
    (storage.clone(), Arc::new(storage))
}

/// Bytes on the disk but for the log.
fn taken(storage: &FaultStorage) -> u64 {
    let log = storage.list(&Path::new("db").join(LOG_DIRECTORY)).unwrap();
    let length = |path| storage.open(path, &OpenOptions::read_only()).unwrap().len().unwrap();
    storage.taken_bytes() - log.iter().map(|path| length(path)).sum::<u64>()
}

fn insert(world: &World, numbers: std::ops::Range<i64>, rows: &mut Rows, random: &mut Random) {
    let numbers: Vec<i64> = numbers.collect();
    for some in numbers.chunks(500) {
        let mut transaction = begin(world, Isolation::ReadCommitted);
        for number in some {
            let row = (random.below(500) as i64, text(random));
            world.insert(&mut transaction, *number, row.0, &row.1).unwrap();
            rows.insert(*number, row);
        }
        transaction.commit().unwrap();
    }
}

fn delete_most(world: &World, rows: &mut Rows) {
    let gone: Vec<i64> = rows.keys().copied().filter(|number| !stays(*number)).collect();
    for some in gone.chunks(500) {
        let mut transaction = begin(world, Isolation::ReadCommitted);
        for number in some {
            let rid = world.find(&mut transaction, *number).unwrap();
            assert!(transaction.delete(&world.table, rid).unwrap());
        }
        transaction.commit().unwrap();
    }
    rows.retain(|number, _| stays(*number));
}

fn assert_rows(world: &World, rows: &Rows) {
    let mut transaction = world.begin(Isolation::RepeatableRead);
    let seen = world.see(&mut transaction);
    let differs = seen.iter().find(|(number, row)| rows.get(number) != Some(row));
    assert!(seen == *rows, "{} rows, {} expected; {differs:?}", seen.len(), rows.len());
}

fn assert_checked(storage: &FaultStorage) {
    let report = check_files(storage, Path::new("db"), &Silent).unwrap();
    assert!(report.errors.is_empty(), "{:?}", report.errors);
}

#[test]
fn what_rows_and_entries_took_goes_back_and_is_taken_again() {
    for method in Method::ALL {
        for (format, _) in FORMATS {
            let form = Form { method, format, page_bytes: if format == IndexFormat::Fold { 4096 } else { 2048 }, ..FORM };
            let (disk, storage) = disk();
            let (mut rows, mut random) = (Rows::new(), Random(3));
            let world = open(&storage, form, OpenMode::Create);
            insert(&world, 1..ROWS, &mut rows, &mut random);
            world.database.checkpoint().unwrap();
            let full = taken(&disk);
            delete_most(&world, &mut rows);
            world.database.remove_leftovers().unwrap();
            world.database.checkpoint().unwrap();
            assert_eq!(world.database.given_back_bytes(), 0, "recovery from the checkpoint before this one needs the pages");
            let before = taken(&disk);
            world.database.checkpoint().unwrap();
            let given_back = world.database.given_back_bytes();
            let data_sets = world.table.data_sets().chain([world.by_number.data_set(), world.by_value.data_set()]);
            let bytes: usize = data_sets.map(|data_set| data_set.page_count() as usize * data_set.page_bytes()).sum();
            assert!(given_back as usize * 4 > bytes, "{method}, {format}: {given_back} of {bytes} bytes");
            assert_eq!(before - taken(&disk), given_back);
            assert_rows(&world, &rows);
            // Opened again, also as after a crash.
            let killed = disk.crash_image(CrashPolicy::KeepAll);
            drop(world);
            let lowest = taken(&disk);
            for disk in [disk, killed] {
                let storage: Arc<dyn Storage> = Arc::new(disk.clone());
                let world = open(&storage, form, OpenMode::Write);
                assert!(taken(&disk) < lowest + full / 20, "{method}, {format}: {} bytes, {lowest} before", taken(&disk));
                assert_rows(&world, &rows);
                let mut again = rows.clone();
                insert(&world, ROWS..2 * ROWS, &mut again, &mut random);
                assert_rows(&world, &again);
                drop(world);
                assert_checked(&disk);
                assert!(taken(&disk) < full * 3 / 2, "{method}, {format}: {} bytes, {full} before", taken(&disk));
                assert_rows(&open(&storage, form, OpenMode::Write), &again);
            }
        }
    }
}

#[test]
fn nothing_goes_while_a_reader_or_a_copy_may_need_it() {
    let (disk, storage) = disk();
    let (mut rows, mut random) = (Rows::new(), Random(4));
    let world = open(&storage, FORM, OpenMode::Create);
    insert(&world, 1..ROWS, &mut rows, &mut random);
    // A reader sees what is in the log.
    world.database.checkpoint().unwrap();
    let reader = open(&storage, FORM, OpenMode::Read);
    let before = rows.clone();
    delete_most(&world, &mut rows);
    world.database.remove_leftovers().unwrap();
    let checkpoints = || (0..3).for_each(|_| world.database.checkpoint().unwrap());
    checkpoints();
    assert_eq!(disk.calls_of(CallKind::PunchHole), 0);
    assert_rows(&reader, &before);
    drop(reader);
    let hold = storage.lock(&Path::new("db").join("log.hold")).unwrap();
    checkpoints();
    assert_eq!(disk.calls_of(CallKind::PunchHole), 0);
    drop(hold);
    checkpoints();
    assert!(world.database.given_back_bytes() > 0 && disk.calls_of(CallKind::PunchHole) > 0);
    assert_rows(&world, &rows);
    let reader = open(&storage, FORM, OpenMode::Read);
    assert_rows(&reader, &rows);
}

#[test]
fn a_full_disk_is_met_before_a_page_is_taken() {
    for method in [Method::None, Method::Page] {
        let form = Form { method, small_extents: true, ..FORM };
        let (disk, storage) = disk();
        let (mut rows, mut random) = (Rows::new(), Random(5));
        let mut world = open(&storage, form, OpenMode::Create);
        insert(&world, 1..ROWS, &mut rows, &mut random);
        delete_most(&world, &mut rows);
        world.database.remove_leftovers().unwrap();
        (0..3).for_each(|_| world.database.checkpoint().unwrap());
        assert!(world.database.given_back_bytes() > 0);
        for opened_again in [false, true] {
            if opened_again {
                drop(world);
                world = open(&storage, form, OpenMode::Write);
            }
            // Room for the log and little more.
            disk.set_capacity(Some(disk.taken_bytes() + (64 << 10)));
            let mut refused = 0;
            for number in ROWS..2 * ROWS {
                let mut transaction = begin(&world, Isolation::ReadCommitted);
                let row = (random.below(500) as i64, text(&mut random));
                match world.insert(&mut transaction, number, row.0, &row.1) {
                    Ok(_) if number % 3 == 0 => transaction.rollback().unwrap(),
                    Ok(_) => {
                        transaction.commit().unwrap();
                        rows.insert(number, row);
                    }
                    Err(error) => {
                        assert!(error.is_no_room(), "{error}");
                        refused += 1;
                    }
                }
                if refused > 20 {
                    break;
                }
            }
            assert!(refused > 0, "{method}: there was room for everything");
            // What is in memory finds its place.
            world.database.write_dirty_pages(world.table.data_sets().next().unwrap()).unwrap();
            world.database.write_dirty_pages(world.by_number.data_set()).unwrap();
            assert_rows(&world, &rows);
            disk.set_capacity(None);
            delete_most(&world, &mut rows);
            world.database.remove_leftovers().unwrap();
            (0..3).for_each(|_| world.database.checkpoint().unwrap());
            assert_rows(&world, &rows);
        }
        drop(world);
        assert_checked(&disk);
    }
}

/// The catalog, which closing writes, finds no room before there is some.
#[test]
fn closing_gives_room_back_where_there_is_none() {
    let (disk, storage) = disk();
    let (mut rows, mut random) = (Rows::new(), Random(6));
    let world = open(&storage, FORM, OpenMode::Create);
    insert(&world, 1..ROWS, &mut rows, &mut random);
    (0..2).for_each(|_| world.database.checkpoint().unwrap());
    let full = disk.taken_bytes();
    disk.set_capacity(Some(full));
    let gone: Vec<i64> = rows.keys().copied().filter(|number| *number >= ROWS * 3 / 4).collect();
    for some in gone.chunks(100) {
        let mut transaction = begin(&world, Isolation::ReadCommitted);
        for number in some {
            let rid = world.find(&mut transaction, *number).unwrap();
            assert!(transaction.delete(&world.table, rid).unwrap());
            rows.remove(number);
        }
        transaction.commit().unwrap();
    }
    drop(world);
    assert!(disk.taken_bytes() + (100 << 10) < full, "{} of {full} bytes", disk.taken_bytes());
    let world = open(&storage, FORM, OpenMode::Write);
    assert_rows(&world, &rows);
    insert(&world, ROWS..ROWS + 500, &mut rows, &mut random);
    assert_rows(&world, &rows);
    drop(world);
    assert_checked(&disk);
}

//! Transactions that change far more rows than the memory for versions takes, and lock more than are locked one by one: old versions lie
//! in a file, and one lock stands for all rows.

use crate::world::{Form, Random, Rows, World, is_retryable, try_open_with};
use pagefold_engine::database::{Isolation, OpenMode, Settings, TransactionOptions};
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::Method;
use pagefold_engine::{Error, Result};
use pagefold_io::{CrashPolicy, FaultOptions, FaultStorage, MemoryStorage, Storage};
use pagefold_types::{Rid, ValueRef};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const ROWS: i64 = 6_000;

fn small(settings: Settings) -> Settings {
    Settings { version_bytes: 100_000, row_locks_max: 500, ..settings }
}

fn open(storage: &Arc<dyn Storage>, form: Form, mode: OpenMode) -> World {
    try_open_with(storage, form, mode, small).unwrap()
}

fn filled(storage: &Arc<dyn Storage>, form: Form) -> (World, Vec<Rid>) {
    let world = open(storage, form, OpenMode::Create);
    let mut random = Random(7);
    let mut rids = Vec::new();
    // Small transactions: nothing lies in the file yet.
    for first in (0..ROWS).step_by(100) {
        let mut transaction = world.begin(Isolation::ReadCommitted);
        let rows = (first..first + 100).map(|number| world.insert(&mut transaction, number, number, &random.text(12)).unwrap());
        rids.extend(rows);
        transaction.commit().unwrap();
    }
    assert_eq!(world.database.version_file_bytes(), 0);
    (world, rids)
}

/// Changes every row: its value, its text to one of another length, or it goes and comes again.
fn change_all(world: &World, transaction: &mut pagefold_engine::database::Transaction<'_>, rids: &[Rid], seed: u64) -> Result<()> {
    let mut random = Random(seed);
    for (number, rid) in (0..).zip(rids) {
        match number % 4 {
            0 => assert!(transaction.update(&world.table, *rid, &[(1, ValueRef::Int(-number - 1))])?),
            1 | 2 => assert!(transaction.update(&world.table, *rid, &[(2, ValueRef::Text(&random.text(30)))])?),
            _ => {
                assert!(transaction.delete(&world.table, *rid)?);
                world.insert(transaction, ROWS + number, number, &random.text(12))?;
            }
        }
    }
    Ok(())
}

fn memory() -> Arc<dyn Storage> {
    Arc::new(MemoryStorage::new())
}

fn forms() -> impl Iterator<Item = Form> {
    let formats = [IndexFormat::Plain, IndexFormat::Fold, IndexFormat::Prefix];
    Method::ALL.into_iter().zip(formats.into_iter().cycle()).map(|(method, format)| Form { method, format, ..Form::default() })
}

#[test]
fn every_row_of_a_table_larger_than_the_memory_for_versions_is_changed() {
    for form in forms() {
        let (world, rids) = filled(&memory(), form);
        let before = world.committed();
        let mut reader = world.begin(Isolation::RepeatableRead);
        assert_eq!(world.see(&mut reader), before);
        let mut writer = world.begin(Isolation::ReadCommitted);
        change_all(&world, &mut writer, &rids, 1).unwrap();
        assert!(world.database.version_file_bytes() > 100_000, "{form:?}");
        assert!(world.database.version_bytes() <= 200_000, "{}", world.database.version_bytes());
        assert!(world.database.locks_held(writer.id()) < 1_000, "{}", world.database.locks_held(writer.id()));
        let own = world.see(&mut writer);
        assert_ne!(own, before);
        assert_eq!(world.see(&mut reader), before, "{form:?}, beside the writer");
        writer.commit().unwrap();
        assert_eq!(world.see(&mut reader), before, "{form:?}, after the commit");
        assert_eq!(world.committed(), own);
        drop(reader);
        assert_eq!(world.check(), own);
        assert_eq!((world.database.version_bytes(), world.database.version_file_bytes()), (0, 0), "{form:?}");
    }
}

#[test]
fn such_a_transaction_is_taken_back_and_returns_to_savepoints() {
    for form in forms() {
        let (world, rids) = filled(&memory(), form);
        let before = world.committed();
        let mut reader = world.begin(Isolation::RepeatableRead);
        assert_eq!(world.see(&mut reader).len(), ROWS as usize);
        let mut writer = world.begin(Isolation::ReadCommitted);
        assert!(writer.update(&world.table, rids[0], &[(1, ValueRef::Int(77))]).unwrap());
        let savepoint = writer.savepoint();
        change_all(&world, &mut writer, &rids, 2).unwrap();
        writer.roll_back_to(savepoint).unwrap();
        let mut expected = before.clone();
        expected.get_mut(&0).unwrap().0 = 77;
        assert_eq!(world.see(&mut writer), expected, "{form:?}");
        assert_eq!(world.see(&mut reader), before, "{form:?}");
        change_all(&world, &mut writer, &rids, 3).unwrap();
        writer.rollback().unwrap();
        assert_eq!(world.see(&mut reader), before, "{form:?}");
        drop(reader);
        assert_eq!(world.check(), before, "{form:?}");
        assert_eq!((world.database.version_bytes(), world.database.version_file_bytes()), (0, 0), "{form:?}");
    }
}

/// The process ends in the middle: what lay in the file was for its readers alone.
#[test]
fn such_a_transaction_is_taken_back_by_recovery() {
    for form in forms() {
        let faults = FaultStorage::new(FaultOptions::default());
        let storage: Arc<dyn Storage> = Arc::new(faults.clone());
        let (world, rids) = filled(&storage, form);
        let before = world.committed();
        let mut writer = world.begin(Isolation::ReadCommitted);
        change_all(&world, &mut writer, &rids, 4).unwrap();
        let image: Arc<dyn Storage> = Arc::new(faults.crash_image(CrashPolicy::KeepAll));
        let again = open(&image, form, OpenMode::Write);
        assert_eq!(again.check(), before, "{form:?}");
        let files = image.list(Path::new("db/readers")).unwrap_or_default();
        assert!(files.iter().all(|file| file.extension().is_none_or(|extension| extension != "tmp")), "{files:?}");
    }
}

/// With one lock for all rows nobody else changes one, or locks one; readers go on. Who comes first with a row of his own keeps it.
#[test]
fn one_lock_stands_for_all_rows() {
    let (world, rids) = filled(&memory(), Form::default());
    let change = |transaction: &mut pagefold_engine::database::Transaction<'_>, at: usize| {
        transaction.update(&world.table, rids[at], &[(1, ValueRef::Int(-5))])
    };
    // Somebody is there: rows stay locked one by one.
    let mut other = world.begin_impatient(Isolation::ReadCommitted);
    assert!(change(&mut other, 5_999).unwrap());
    let mut writer = world.begin_impatient(Isolation::ReadCommitted);
    for at in 0..3_000 {
        assert!(change(&mut writer, at).unwrap());
    }
    assert!(world.database.locks_held(writer.id()) >= 3_000);
    assert!(change(&mut other, 5_998).unwrap());
    assert!(is_retryable(&change(&mut other, 10)));
    other.rollback().unwrap();
    // Nobody is there any more.
    for at in 3_000..6_000 {
        assert!(change(&mut writer, at).unwrap());
    }
    assert!(world.database.locks_held(writer.id()) < 1_000, "{}", world.database.locks_held(writer.id()));
    let mut other = world.begin_impatient(Isolation::ReadCommitted);
    assert!(matches!(change(&mut other, 10), Err(Error::Lock(_))));
    drop(other);
    let mut other = world.begin_impatient(Isolation::ReadCommitted);
    assert!(matches!(world.insert(&mut other, 100_000, 1, ""), Err(Error::Lock(_))));
    assert_eq!(world.committed()[&10].0, 10);
    drop(other);
    // What is removed of others' old entries asks for the lock, too.
    world.database.remove_leftovers().unwrap();
    // One who waits gets his turn when it ends.
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let options = TransactionOptions { lock_timeout: Duration::from_secs(60), ..TransactionOptions::default() };
            let mut other = world.database.begin(options);
            assert!(other.update(&world.table, rids[10], &[(1, ValueRef::Int(-6))]).unwrap());
            other.commit().unwrap();
        });
        world.until_waiting(1);
        writer.commit().unwrap();
        waits.join().unwrap();
    });
    let rows = world.check();
    assert_eq!((rows[&10].0, rows[&11].0, rows[&5_999].0), (-6, -5, -5));
}

/// The file finds no room: the statement fails alone, and what was there is there.
#[test]
fn no_room_for_versions_in_the_file() {
    for form in forms() {
        let faults = FaultStorage::new(FaultOptions::default());
        let storage: Arc<dyn Storage> = Arc::new(faults.clone());
        let (world, rids) = filled(&storage, form);
        let before = world.committed();
        // The log and the pages have room, the file none.
        let world = {
            drop(world);
            let limited = |settings: Settings| Settings { version_file_bytes: 300_000, ..small(settings) };
            try_open_with(&storage, form, OpenMode::Write, limited).unwrap()
        };
        let mut writer = world.begin(Isolation::ReadCommitted);
        let mut refused = None;
        for round in 0..20 {
            refused = change_some(&world, &mut writer, &rids, round).err();
            if refused.is_some() {
                break;
            }
        }
        let Some(Error::VersionsFull(reason)) = &refused else { panic!("{form:?}: {refused:?}") };
        assert!(reason.contains("of their file"), "{reason}");
        writer.rollback().unwrap();
        assert_eq!(world.check(), before, "{form:?}");
    }
}

/// New rows, which have versions, too.
fn change_some(world: &World, transaction: &mut pagefold_engine::database::Transaction<'_>, rids: &[Rid], round: i64) -> Result<()> {
    if round == 0 {
        return change_all(world, transaction, rids, 5);
    }
    (0..ROWS).try_for_each(|number| world.insert(transaction, 10 * round * ROWS + number, number, "text").map(drop))
}

/// Readers of every level look on while large transactions come and go.
#[test]
fn readers_beside_large_transactions() {
    let (world, rids) =
        filled(&memory(), Form { method: Method::Page, format: IndexFormat::Prefix, memory_bytes: 8 << 20, ..Form::default() });
    let sum = |rows: &Rows| rows.values().map(|row| row.0).sum::<i64>();
    let expected = sum(&world.committed());
    let done = std::sync::atomic::AtomicBool::new(false);
    let looks = std::thread::scope(|scope| {
        let readers: Vec<_> = [Isolation::RepeatableRead, Isolation::Serializable]
            .map(|isolation| {
                let (world, done) = (&world, &done);
                scope.spawn(move || {
                    let mut looks = 0;
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        let mut reader = world.begin(isolation);
                        assert_eq!(sum(&world.see(&mut reader)), expected);
                        looks += 1;
                    }
                    looks
                })
            })
            .into();
        for round in 1..=4 {
            let mut writer = world.begin(Isolation::ReadCommitted);
            // The sum stays: what one row gets another one loses.
            for pair in rids.chunks(2) {
                for (rid, value) in [(pair[0], round), (pair[1], -round)] {
                    let now = world.row(&mut writer, rid).unwrap().1.0;
                    assert!(writer.update(&world.table, rid, &[(1, ValueRef::Int(now + value))]).unwrap());
                }
            }
            if round % 2 == 0 { writer.rollback().unwrap() } else { writer.commit().unwrap() }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        readers.into_iter().map(|reader| reader.join().unwrap()).sum::<u32>()
    });
    assert!(looks > 0);
    assert_eq!(sum(&world.check()), expected);
}

//! Single cases.

use crate::images::{contents, verify};
use crate::model::{Left, Promise};
use crate::player::work;
use crate::steps::{Mix, history};
use crate::values::{COLUMNS, Size, row, short_row};
use crate::world::{Random, Shape, TABLES, create, open};
use pagefold_engine::database::{Isolation, OpenMode, TransactionOptions};
use pagefold_io::{CrashPolicy, Failure, FaultOptions, FaultStorage, Repeat};
use pagefold_types::{Value, ValueRef};
use parking_lot::Mutex;
use std::sync::Arc;

/// A slot that is used again may hold a ghost of another kind than the one that the log tells of first.
#[test]
fn a_ghost_in_the_slot_of_one_that_was_removed() {
    let storage = FaultStorage::new(FaultOptions::default());
    create(&storage, Shape::default()).unwrap();
    let database = open(&storage, OpenMode::Write).unwrap();
    let table = database.table(TABLES[1]).unwrap();
    let odd: String = (0..60u32).filter_map(|i| char::from_u32(33 + i * 37 % 90)).collect();
    let mut sizes = [Size::Null; COLUMNS];
    sizes[1] = Size::Short;
    let insert = |n: i64, text: &str| {
        let mut values = Vec::clone(&row(n, &sizes, 1));
        (values[1], values[3]) = (Value::Text(text.into()), Value::Text(String::new()));
        let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        let mut t = database.begin(TransactionOptions::default());
        let rid = t.insert(&table, &values).unwrap();
        t.commit().unwrap();
        rid
    };
    let delete = |rid| {
        let mut t = database.begin(TransactionOptions::default());
        assert!(t.delete(&table, rid).unwrap());
        t.commit().unwrap();
    };
    // One that does not shrink, one that does; and the other way round.
    let known = "carefully final deposits sleep furiously ";
    for (first, second) in [(odd.as_str(), known), (known, odd.as_str())] {
        let rid = insert(1, first);
        database.checkpoint().unwrap();
        delete(rid);
        assert_eq!(insert(2, second), rid, "the slot is used again");
        let mut reader = database.begin(TransactionOptions { isolation: Isolation::RepeatableRead, ..TransactionOptions::default() });
        assert!(reader.row(&table, rid).unwrap().is_some());
        delete(rid);
        assert!(reader.row(&table, rid).unwrap().is_some());
        verify(&storage.crash_image(CrashPolicy::DropAll), &Promise::default(), Left::Durable).unwrap();
        drop(reader);
        database.remove_leftovers().unwrap();
    }
}

#[test]
fn a_reader_recovers_for_itself() {
    let storage = FaultStorage::new(FaultOptions::default());
    create(&storage, Shape::default()).unwrap();
    let database = open(&storage, OpenMode::Write).unwrap();
    let promise: Arc<Mutex<Promise>> = Arc::default();
    work(&database, &promise, &history(&mut Random(3), Mix::plain(), 80)).unwrap();
    let image = storage.crash_image(CrashPolicy::DropAll);
    let promise = promise.lock();
    for _ in 0..2 {
        assert_eq!(&contents(&open(&image, OpenMode::Read).unwrap()), promise.last());
    }
    let hash = image.content_hash();
    drop(open(&image, OpenMode::Read).unwrap());
    assert_eq!(image.content_hash(), hash, "nothing stays of a reader");
    assert_eq!(&contents(&open(&image, OpenMode::Write).unwrap()), promise.last());
}

/// A process is killed when it has logged the end of a table and has not made that durable. The next one reads it, and removes the files;
/// the machine stops at any of its calls.
#[test]
fn files_of_what_is_dropped_go_when_the_log_that_says_so_is_durable() {
    let base = FaultStorage::new(FaultOptions::default());
    create(&base, Shape::default()).unwrap();
    let database = open(&base, OpenMode::Write).unwrap();
    work(&database, &Arc::default(), &history(&mut Random(3), Mix::plain(), 40)).unwrap();
    database.close().unwrap();
    let mut logged = 0;
    for call in 0..60 {
        let storage = base.crash_image(CrashPolicy::KeepAll);
        let database = open(&storage, OpenMode::Write).unwrap();
        storage.error_at(storage.calls() + call, Failure::Io, Repeat::Forever);
        let mut change = database.change();
        let dropped = change.drop_table(TABLES[1]).map(drop).and_then(|()| change.commit()).is_ok();
        drop(database);
        storage.clear_faults();
        storage.set_observer(move |storage, before| {
            for seed in 0..6 {
                let image = storage.crash_image(CrashPolicy::Random(seed ^ storage.calls()));
                let opened = open(&image, OpenMode::Write).map(drop);
                assert!(opened.is_ok(), "killed at call {call}, crash {seed} before {before:?}: {opened:?}");
            }
        });
        let again = open(&storage, OpenMode::Write).unwrap();
        logged += u32::from(!dropped && again.table(TABLES[1]).is_err());
        drop(again);
        storage.clear_observer();
    }
    assert!(logged > 0, "no process was killed between writing and syncing");
}

/// The first statement makes the log. When that finds no room, the next one makes it, and nothing that the control file names by then may go before it is there.
#[test]
fn a_log_that_finds_no_room_is_made_later() {
    let base = FaultStorage::new(FaultOptions::default());
    create(&base, Shape::default()).unwrap();
    let mut refused = 0;
    for call in 0..60 {
        let storage = base.crash_image(CrashPolicy::KeepAll);
        let first = storage.calls();
        storage.set_observer(move |storage, _| {
            if storage.calls() == first + call {
                storage.set_capacity(Some(storage.taken_bytes()));
            }
        });
        let database = open(&storage, OpenMode::Write).unwrap();
        let table = database.table(TABLES[0]).unwrap();
        let row = short_row(1, 1);
        let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
        let mut t = database.begin(TransactionOptions::default());
        refused += u64::from(t.insert(&table, &values).is_err());
        t.rollback().unwrap();
        storage.set_capacity(None);
        storage.set_observer(move |storage, before| {
            let image = storage.crash_image(CrashPolicy::DropAll);
            verify(&image, &Promise::default(), Left::Durable).unwrap_or_else(|e| panic!("full at call {call}, before {before:?}: {e}"));
        });
        let mut t = database.begin(TransactionOptions::default());
        t.insert(&table, &values).unwrap();
        t.rollback().unwrap();
        storage.clear_observer();
    }
    assert!(refused > 5, "only {refused} were refused");
}

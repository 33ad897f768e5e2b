//! Tables and indexes that a transaction makes and drops beside changes of rows: all of it or nothing, also with savepoints, statements that fail, crashes, and others who look.

use crate::world::{Form, Scans, World, open, parts};
use pagefold_engine::btree::Direction as Way;
use pagefold_engine::database::Isolation::{self, ReadCommitted, RepeatableRead, Serializable};
use pagefold_engine::database::{Database, Durability, OpenMode, RowScan, Settings, Transaction, TransactionOptions};
use pagefold_engine::index::{Index, IndexAttributes, IndexFormat};
use pagefold_engine::table_space::{Method, Table, TableAttributes};
use pagefold_engine::{Error, Result};
use pagefold_io::{CrashPolicy, Failure, FaultOptions, FaultStorage, MemoryStorage, Repeat, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Direction, Rid, Schema, ValueRef};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const LEVELS: [Isolation; 3] = [ReadCommitted, RepeatableRead, Serializable];

fn attributes(name: &str, method: Method) -> TableAttributes {
    let columns = [("number", DataType::BigInt), ("value", DataType::BigInt), ("text", DataType::Varchar(None))];
    let schema = Schema::new(columns.into_iter().map(|(name, kind)| Column::new(name, kind, false)).collect()).unwrap();
    TableAttributes { method, ..TableAttributes::new(name, schema).with_page_bytes(2048) }
}

fn key(name: &str, column: usize, unique: bool, format: IndexFormat) -> IndexAttributes {
    let page_bytes = if format == IndexFormat::Fold { 8192 } else { 2048 };
    IndexAttributes::new(name, vec![(column, Direction::Ascending)], unique).with_format(format, page_bytes)
}

fn insert(t: &mut Transaction<'_>, table: &Table, number: i64, value: i64) -> Result<()> {
    // Some of them large, some as wide as a page.
    let text = "word ".repeat(if number % 7 == 0 { 900 } else { (number % 5) as usize });
    t.insert(table, &[ValueRef::Int(number), ValueRef::Int(value), ValueRef::Text(&text)]).map(drop)
}

/// Values by number, by scan; the same by every index given.
fn rows(t: &mut Transaction<'_>, table: &Arc<Table>, indexes: &[&Arc<Index>]) -> BTreeMap<i64, i64> {
    let collect = |scan: RowScan| {
        let mut rows = BTreeMap::new();
        for row in scan {
            let (number, (value, text)) = parts(&row.unwrap().1);
            assert_eq!(text.len(), "word ".len() * if number % 7 == 0 { 900 } else { (number % 5) as usize });
            assert!(rows.insert(number, value).is_none(), "{number} twice");
        }
        rows
    };
    let rows = collect(t.rows(table).unwrap());
    for index in indexes {
        assert_eq!(collect(t.rows_by(table, index, Way::Forward).unwrap()), rows, "by {}", index.name());
    }
    rows
}

fn is_unknown<T>(result: &Result<T>) -> bool {
    matches!(result, Err(Error::Unknown { .. }))
}

fn is_stale<T>(result: &Result<T>) -> bool {
    matches!(result, Err(Error::Stale { .. }))
}

fn numbers(range: std::ops::Range<i64>) -> BTreeMap<i64, i64> {
    range.map(|number| (number, number * 10)).collect()
}

/// Data sets on the disk.
fn files(storage: &dyn Storage) -> usize {
    storage.list(Path::new("db/data")).unwrap().len()
}

#[test]
fn a_table_comes_with_its_rows_and_its_indexes() {
    for (turn, method) in Method::ALL.into_iter().enumerate() {
        let (isolation, format) = (LEVELS[turn % 3], IndexFormat::ALL[turn % 3]);
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let form = Form::default();
        let world = open(&storage, form, OpenMode::Create);
        world.fill([(1, 1)]);
        let mut old = world.begin(RepeatableRead);
        assert_eq!(world.see(&mut old).len(), 1);
        let mut t = world.begin(isolation);
        assert!(is_unknown(&t.table("u")));
        let table = t.create_table(attributes("u", method)).unwrap();
        assert!(Arc::ptr_eq(&t.table("u").unwrap(), &table) && Arc::ptr_eq(&t.index("number").unwrap(), &world.by_number));
        let by_number = t.create_index(&table, key("u_number", 0, true, format)).unwrap();
        for number in 0..60 {
            insert(&mut t, &table, number, number * 10).unwrap();
        }
        assert!(matches!(insert(&mut t, &table, 7, 0), Err(Error::DuplicateKey { .. })));
        // Of rows that are there.
        let by_value = t.create_index(&table, key("u_value", 1, false, format)).unwrap();
        for number in 60..80 {
            insert(&mut t, &table, number, number * 10).unwrap();
        }
        world.insert(&mut t, 2, 2, "beside it").unwrap();
        assert_eq!(rows(&mut t, &table, &[&by_number, &by_value]), numbers(0..80));
        // Nobody else finds it, or may use it.
        let mut other = world.begin(ReadCommitted);
        assert!(is_unknown(&other.table("u")) && is_unknown(&other.index("u_number")) && is_unknown(&world.database.table("u")));
        assert!(is_stale(&other.insert(&table, &[ValueRef::Int(1), ValueRef::Int(1), ValueRef::Text("")])));
        assert!(is_stale(&other.find(&table, &by_number, &[ValueRef::Int(1)])));
        // Checkpoints come when they come.
        world.database.checkpoint().unwrap();
        insert(&mut t, &table, 80, 800).unwrap();
        t.commit().unwrap();
        assert_eq!(rows(&mut other, &table, &[&by_number, &by_value]), numbers(0..81));
        assert!(is_stale(&old.table("u")) && is_stale(&old.row(&table, Rid::new(0, 1, 0))));
        assert_eq!(world.see(&mut old).len(), 1);
        drop((old, other, table, by_number, by_value));
        world.database.close().unwrap();
        drop((world.table, world.by_number, world.by_value));
        let world = open(&storage, form, OpenMode::Write);
        let mut t = world.begin(RepeatableRead);
        let (table, by_number, by_value) = (t.table("u").unwrap(), t.index("u_number").unwrap(), t.index("u_value").unwrap());
        assert_eq!(table.attributes().method, method);
        assert_eq!(rows(&mut t, &table, &[&by_number, &by_value]), numbers(0..81));
        assert_eq!(world.see(&mut t).len(), 2);
    }
}

/// Nothing is left of what is taken back: no name, no file, no index that a table would keep up.
#[test]
fn what_is_made_is_taken_back() {
    for isolation in LEVELS {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let world = open(&storage, Form::default(), OpenMode::Create);
        world.fill((0..50).map(|number| (number, number % 5)));
        (0..2).for_each(|_| world.database.checkpoint().unwrap());
        let before = files(storage.as_ref());
        let mut t = world.begin(isolation);
        let table = t.create_table(attributes("u", Method::Page)).unwrap();
        insert(&mut t, &table, 1, 10).unwrap();
        let savepoint = t.savepoint();
        let index = t.create_index(&table, key("u_number", 0, true, IndexFormat::Prefix)).unwrap();
        let on_value = t.create_index(&world.table, key("extra", 1, false, IndexFormat::Plain)).unwrap();
        insert(&mut t, &table, 2, 20).unwrap();
        world.insert(&mut t, 100, 3, "").unwrap();
        assert_eq!(t.find(&world.table, &on_value, &[ValueRef::Int(3)]).unwrap().len(), 11);
        t.roll_back_to(savepoint).unwrap();
        assert!(is_unknown(&t.index("u_number")) && is_unknown(&t.index("extra")));
        assert!(is_stale(&t.find(&table, &index, &[ValueRef::Int(1)])));
        assert!(is_stale(&t.find(&world.table, &on_value, &[ValueRef::Int(1)])));
        assert_eq!(rows(&mut t, &table, &[]), numbers(1..2));
        drop((index, on_value));
        // The same names again, and other keys.
        let index = t.create_index(&table, key("u_number", 1, true, IndexFormat::Fold)).unwrap();
        insert(&mut t, &table, 2, 20).unwrap();
        assert_eq!(rows(&mut t, &table, &[&index]), numbers(1..3));
        // A statement that fails takes nothing else along.
        world.insert(&mut t, 101, 3, "").unwrap();
        let twice = t.create_index(&world.table, key("once", 1, true, IndexFormat::Prefix));
        assert!(matches!(twice, Err(Error::DuplicateKey { .. })), "{twice:?}");
        assert!(matches!(t.create_table(attributes("u", Method::None)), Err(Error::Exists { .. })));
        assert!(matches!(t.create_table(attributes("t", Method::None)), Err(Error::Exists { .. })));
        assert!(is_unknown(&t.drop_table("nothing").map(drop)) && is_unknown(&t.drop_index("nothing")));
        world.insert(&mut t, 102, 3, "").unwrap();
        assert_eq!(world.table.indexes().len(), 2);
        assert_eq!(rows(&mut t, &table, &[&index]), numbers(1..3));
        t.rollback().unwrap();
        assert!(is_unknown(&world.database.table("u")));
        let mut t = world.begin(isolation);
        assert!(is_stale(&t.insert(&table, &[ValueRef::Int(9), ValueRef::Int(9), ValueRef::Text("")])));
        assert_eq!(world.see(&mut t).len(), 50);
        t.commit().unwrap();
        assert_eq!(world.check().len(), 50);
        drop((table, index));
        (0..2).for_each(|_| world.database.checkpoint().unwrap());
        assert_eq!(files(storage.as_ref()), before);
    }
}

/// One takes the place of another in one transaction; who has a snapshot goes on with what was there.
#[test]
fn a_table_replaces_another_one_of_its_name() {
    for isolation in LEVELS {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let world = open(&storage, Form::default(), OpenMode::Create);
        world.fill((0..40).map(|number| (number, number)));
        let mut old = world.begin(RepeatableRead);
        assert_eq!(world.see(&mut old).len(), 40);
        let mut t = world.begin(isolation);
        let kept = t.savepoint();
        t.drop_table("t").unwrap();
        assert!(is_stale(&t.table("t")) && is_stale(&t.index("value")) && is_stale(&t.drop_table("t").map(drop)));
        assert!(is_stale(&t.insert(&world.table, &[ValueRef::Int(1), ValueRef::Int(1), ValueRef::Text("")])));
        t.roll_back_to(kept).unwrap();
        assert_eq!(world.see(&mut t).len(), 40);
        t.drop_table("t").unwrap();
        let fresh = t.create_table(attributes("t", Method::Fixed)).unwrap();
        let by_number = t.create_index(&fresh, key("number", 0, true, IndexFormat::Prefix)).unwrap();
        for number in 0..30 {
            insert(&mut t, &fresh, number, number * 10).unwrap();
        }
        // Made and dropped again.
        let unused = t.create_table(attributes("unused", Method::Row)).unwrap();
        t.create_index(&unused, key("unused_key", 0, true, IndexFormat::Plain)).unwrap();
        insert(&mut t, &unused, 1, 1).unwrap();
        t.drop_table("unused").unwrap();
        assert!(is_unknown(&t.table("unused")) && is_stale(&t.row(&unused, Rid::new(0, 1, 0))));
        assert_eq!(rows(&mut t, &fresh, &[&by_number]), numbers(0..30));
        // Others see the one that is there.
        assert_eq!(world.committed().len(), 40);
        t.commit().unwrap();
        assert_eq!(world.see(&mut old).len(), 40);
        let mut now = world.begin(isolation);
        assert_eq!(rows(&mut now, &fresh, &[&by_number]), numbers(0..30));
        assert!(is_unknown(&now.index("value")) && is_unknown(&now.table("unused")));
        assert!(is_stale(&now.row(&world.table, Rid::new(0, 1, 0))));
        drop((old, now, unused));
        let World { database, table, by_number: first, by_value } = world;
        drop((table, first, by_value, fresh, by_number));
        (0..2).for_each(|_| database.checkpoint().unwrap());
        // Catalog, table, index.
        assert_eq!(files(storage.as_ref()), 3);
    }
}

/// A key that an index no longer forbids may come twice, and after a return to the savepoint it may not.
#[test]
fn a_dropped_index_forbids_nothing() {
    let world = World::new();
    world.fill((0..10).map(|number| (number, number)));
    let mut t = world.begin(ReadCommitted);
    let savepoint = t.savepoint();
    t.drop_index("number").unwrap();
    world.insert(&mut t, 3, 300, "").unwrap();
    t.roll_back_to(savepoint).unwrap();
    assert!(matches!(world.insert(&mut t, 3, 300, ""), Err(Error::DuplicateKey { .. })));
    t.drop_index("number").unwrap();
    world.insert(&mut t, 3, 300, "").unwrap();
    let again = t.create_index(&world.table, key("number", 0, true, IndexFormat::Plain));
    assert!(matches!(again, Err(Error::DuplicateKey { .. })), "{again:?}");
    let again = t.create_index(&world.table, key("number", 0, false, IndexFormat::Plain)).unwrap();
    assert_eq!(t.find(&world.table, &again, &[ValueRef::Int(3)]).unwrap().len(), 2);
    t.commit().unwrap();
    let mut t = world.begin(RepeatableRead);
    assert_eq!(t.find(&world.table, &again, &[ValueRef::Int(3)]).unwrap().len(), 2);
    assert_eq!(world.table.indexes().len(), 2);
}

/// Nobody keeps an index up that its transaction has made and dropped again, and it is not dropped once more with its table.
#[test]
fn an_index_that_is_made_and_dropped_leaves_nothing() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let world = open(&storage, Form::default(), OpenMode::Create);
    let mut t = world.begin(RepeatableRead);
    assert_eq!(world.see(&mut t).len(), 0);
    world.fill([(1, 1)]);
    // Its snapshot is older than the index, which it can drop all the same.
    let index = t.create_index(&world.table, key("short", 1, true, IndexFormat::Plain)).unwrap();
    assert!(is_stale(&t.find(&world.table, &index, &[ValueRef::Int(1)])));
    t.drop_index("short").unwrap();
    t.commit().unwrap();
    assert_eq!(world.table.indexes().len(), 2);
    world.fill([(2, 1)]);
    assert_eq!(index.data_set().facts().rows, 1);
    let mut t = world.begin(ReadCommitted);
    t.drop_table("t").unwrap();
    t.commit().unwrap();
    world.database.close().unwrap();
    assert!(
        Database::open(
            storage,
            Arc::new(SimulatedClock::new(Duration::from_secs(1))),
            Path::new("db"),
            OpenMode::Write,
            Settings::default()
        )
        .unwrap()
        .table_names()
        .is_empty()
    );
}

/// Files of what is dropped go at once, so a crash must not bring it back: such a commit is durable whatever was asked for.
#[test]
fn what_is_dropped_is_dropped_for_good() {
    let storage = FaultStorage::new(FaultOptions::default());
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let World { database, table, by_number, by_value } = open(&shared, Form::default(), OpenMode::Create);
    drop((table, by_number, by_value));
    let mut t = database.begin(TransactionOptions { durability: Durability::Off, ..TransactionOptions::default() });
    t.drop_table("t").unwrap();
    t.commit().unwrap();
    let image = storage.crash_image(CrashPolicy::DropAll);
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let opened = Database::open(Arc::new(image), clock, Path::new("db"), OpenMode::Write, Settings::default()).unwrap();
    assert!(opened.tables().unwrap().is_empty() && opened.indexes().unwrap().is_empty());
}

/// Who changes rows of a table and who drops it, or builds an index of it, wait for each other; so do two who want a name.
#[test]
fn definitions_and_changes_of_rows_wait_for_each_other() {
    let world = World::new();
    let rid = world.fill([(1, 1)])[0];
    let is_lock = |result: Result<()>| matches!(result, Err(Error::Lock(_)));
    let mut writer = world.begin_impatient(ReadCommitted);
    world.set(&mut writer, 1, 2).unwrap();
    assert!(is_lock(world.begin_impatient(ReadCommitted).drop_table("t")));
    assert!(is_lock(world.begin_impatient(ReadCommitted).create_index(&world.table, key("x", 1, false, IndexFormat::Plain)).map(drop)));
    writer.rollback().unwrap();
    let mut definer = world.begin_impatient(ReadCommitted);
    definer.create_index(&world.table, key("x", 1, false, IndexFormat::Plain)).unwrap();
    definer.create_table(attributes("u", Method::None)).unwrap();
    assert!(is_lock(world.begin_impatient(ReadCommitted).delete(&world.table, rid).map(drop)));
    assert!(is_lock(world.begin_impatient(ReadCommitted).create_table(attributes("u", Method::None)).map(drop)));
    // Readers go on.
    assert_eq!(world.committed().len(), 1);
    definer.rollback().unwrap();
    world.begin_impatient(ReadCommitted).create_table(attributes("u", Method::None)).unwrap();
    // They wait as long as they are to.
    let mut writer = world.begin(ReadCommitted);
    world.set(&mut writer, 1, 2).unwrap();
    std::thread::scope(|scope| {
        let dropped = scope.spawn(|| {
            let options = TransactionOptions { lock_timeout: Duration::from_secs(60), ..TransactionOptions::default() };
            let mut t = world.database.begin(options);
            t.drop_table("t")?;
            t.commit()
        });
        world.until_waiting(1);
        writer.commit().unwrap();
        dropped.join().unwrap().unwrap();
    });
    assert!(is_unknown(&world.database.table("t")));
}

/// A crash before each call of the disk: the table is there with all its rows, or nothing of it is; and what a change of rows did beside it likewise.
#[test]
fn a_crash_leaves_all_or_nothing() {
    let build = |storage: &FaultStorage| {
        let shared: Arc<dyn Storage> = Arc::new(storage.clone());
        let world = open(&shared, Form::default(), OpenMode::Create);
        world.fill((0..20).map(|number| (number, number)));
        world
    };
    let work = |world: &World| -> Result<()> {
        let mut t = world.begin(ReadCommitted);
        t.drop_index("value")?;
        let table = t.create_table(attributes("u", Method::Huffman))?;
        for number in 0..8 {
            insert(&mut t, &table, number, number * 10)?;
        }
        world.database.checkpoint()?;
        let savepoint = t.savepoint();
        let unused = t.create_table(attributes("unused", Method::Page))?;
        insert(&mut t, &unused, 7, 70)?;
        t.roll_back_to(savepoint)?;
        t.create_index(&table, key("u_number", 0, true, IndexFormat::Fold))?;
        let again = t.create_index(&world.table, key("value", 1, true, IndexFormat::Prefix))?;
        world.insert(&mut t, 20, 20, "")?;
        assert_eq!(t.find(&world.table, &again, &[ValueRef::Int(20)])?.len(), 1);
        insert(&mut t, &table, 8, 80)?;
        t.commit()
    };
    let calls = {
        let storage = FaultStorage::new(FaultOptions::default());
        let world = build(&storage);
        let before = storage.calls();
        work(&world).unwrap();
        before..storage.calls()
    };
    assert!(calls.end - calls.start > 10, "{calls:?}");
    let (mut all, mut nothing) = (0, 0);
    for at in calls.clone() {
        let storage = FaultStorage::new(FaultOptions::default());
        let world = build(&storage);
        storage.error_at(at, Failure::Io, Repeat::Forever);
        let done = work(&world);
        let image = storage.crash_image(CrashPolicy::Random(at));
        std::mem::forget(world.database);
        let shared: Arc<dyn Storage> = Arc::new(image);
        let world = open(&shared, Form::default(), OpenMode::Write);
        let mut t = world.begin(RepeatableRead);
        if world.database.table("u").is_ok() {
            all += 1;
            let (table, index) = (t.table("u").unwrap(), t.index("u_number").unwrap());
            assert_eq!(rows(&mut t, &table, &[&index]), numbers(0..9), "{at}");
            assert_eq!((world.see(&mut t).len(), world.by_value.attributes().unique), (21, true), "{at}");
        } else {
            assert!(done.is_err(), "{at}");
            nothing += 1;
            assert_eq!((world.see(&mut t).len(), world.by_value.attributes().unique), (20, false), "{at}");
        }
        assert!(is_unknown(&world.database.table("unused")));
        assert_eq!(world.check().len(), if world.by_value.attributes().unique { 21 } else { 20 });
    }
    assert!(nothing > 0, "{all} {nothing}");
}

//! An index that is damaged takes nothing else away, and is not believed again whatever comes back.

use pagefold_engine::database::{Database, GiveUp, GivenUp, OpenMode, Settings, TransactionOptions};
use pagefold_engine::index::IndexAttributes;
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::TableAttributes;
use pagefold_engine::{Error, Silent};
use pagefold_io::{Clock, CrashPolicy, FaultOptions, FaultStorage, OpenOptions, SimulatedClock, Storage, read_exact_at};
use pagefold_types::{Column, DataType, Direction, Rid, Schema, ValueRef};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

fn open(storage: &FaultStorage, mode: OpenMode) -> Database {
    Database::open(Arc::new(storage.clone()), clock(), Path::new("db"), mode, settings()).unwrap()
}

fn settings() -> Settings {
    let pools = PoolSettings { memory_bytes: 16 << 20, background_threads: 0, ..PoolSettings::default() };
    Settings { pools, ..Settings::default() }
}

fn clock() -> Arc<SimulatedClock> {
    Arc::new(SimulatedClock::new(Duration::from_secs(1)))
}

const ROWS: i64 = 500;

/// Tables `t` and `u` with a unique index on `a` and another on `b`, closed in order.
fn made() -> FaultStorage {
    let storage = FaultStorage::new(FaultOptions::default());
    let database = open(&storage, OpenMode::Create);
    let mut t = database.begin(TransactionOptions::default());
    for name in ["t", "u"] {
        let columns = ["a", "b", "c"].map(|name| Column::new(name, DataType::BigInt, false));
        let table = t.create_table(TableAttributes::new(name, Schema::new(columns.to_vec()).unwrap())).unwrap();
        for (column, unique) in [(0, true), (1, false)] {
            let key = vec![(column, Direction::Ascending)];
            t.create_index(&table, IndexAttributes::new(format!("{name}_{}", ["a", "b"][column]), key, unique)).unwrap();
        }
        for a in 0..ROWS {
            t.insert(&table, &[ValueRef::Int(a), ValueRef::Int(a % 7), ValueRef::Int(0)]).unwrap();
        }
    }
    t.commit().unwrap();
    database.close().unwrap();
    storage
}

fn insert(database: &Database, table: &str, a: i64) -> pagefold_engine::Result<Rid> {
    let table = database.table(table)?;
    let mut t = database.begin(TransactionOptions::default());
    let rid = t.insert(&table, &[ValueRef::Int(a), ValueRef::Int(a % 7), ValueRef::Int(1)])?;
    t.commit().map(|_| rid)
}

fn rows(database: &Database, table: &str) -> u64 {
    let (view, table) = (database.read_view(), database.table(table).unwrap());
    let mut rows = 0;
    for batch in view.scan(&table, &Default::default()).unwrap() {
        rows += batch.unwrap().len() as u64;
    }
    rows
}

fn path_of(database: &Database, index: &str) -> PathBuf {
    database.index(index).unwrap().data_set().path().to_path_buf()
}

fn bytes(storage: &FaultStorage, path: &Path) -> Vec<u8> {
    let file = storage.open(path, &OpenOptions::read_only()).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    read_exact_at(file.as_ref(), &mut bytes, 0).unwrap();
    bytes
}

fn put(storage: &FaultStorage, path: &Path, bytes: &[u8]) {
    if storage.exists(path).unwrap() {
        storage.remove(path).unwrap();
    }
    let file = storage.open(path, &OpenOptions::create_new()).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.sync().unwrap();
    storage.sync_directory(path.parent().unwrap()).unwrap();
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Damage {
    Header,
    Map,
    Short,
    Removed,
    OfAnother,
}

const ALL: [Damage; 5] = [Damage::Header, Damage::Map, Damage::Short, Damage::Removed, Damage::OfAnother];

fn damage(storage: &FaultStorage, path: &Path, other: &Path, how: Damage) {
    let mut changed = bytes(storage, path);
    match how {
        Damage::Header => changed[70] ^= 4,
        Damage::Map => changed[8192 + 100] ^= 1,
        Damage::Short => changed.truncate(2 * 8192),
        Damage::Removed => return storage.remove(path).unwrap(),
        Damage::OfAnother => changed = bytes(storage, other),
    }
    put(storage, path, &changed);
}

fn is_refused<T: std::fmt::Debug>(result: &pagefold_engine::Result<T>, name: &str) {
    assert!(matches!(result, Err(Error::DamagedIndex { index, .. }) if index == name), "{result:?}");
}

#[test]
fn rows_are_read_and_changed_without_an_index_that_is_damaged() {
    for how in ALL {
        let storage = made();
        let database = open(&storage, OpenMode::Write);
        let (path, other) = (path_of(&database, "t_b"), path_of(&database, "u_b"));
        database.close().unwrap();
        let whole = bytes(&storage, &path);
        damage(&storage, &path, &other, how);
        // Nothing is noted of it before something is changed: should it come back, it is as good as it was.
        for mode in [OpenMode::Read, OpenMode::Write] {
            let database = open(&storage, mode);
            assert_eq!(rows(&database, "t"), ROWS as u64, "{how:?}");
            assert!(database.index("t_b").unwrap().damage().is_some(), "{how:?}");
            let table = database.table("t").unwrap();
            assert_eq!(database.indexes_of(&table).len(), 1);
            let mut t = database.begin(TransactionOptions { read_only: true, ..TransactionOptions::default() });
            let index = database.index("t_b").unwrap();
            is_refused(&t.get(&table, &index, &[ValueRef::Int(3)], |_, _| ()), "t_b");
            let index = database.index("t_a").unwrap();
            assert!(t.get(&table, &index, &[ValueRef::Int(3)], |_, _| ()).unwrap().is_some());
            drop(t);
            drop(database);
        }
        let untouched = storage.crash_image(CrashPolicy::KeepAll);
        put(&untouched, &path, &whole);
        assert!(open(&untouched, OpenMode::Write).index("t_b").unwrap().damage().is_none(), "{how:?}");
        let database = open(&storage, OpenMode::Write);
        insert(&database, "t", 7000).unwrap();
        insert(&database, "u", 7000).unwrap();
        // It comes back as it was: in the crash, and after the database was closed.
        let image = storage.crash_image(CrashPolicy::KeepAll);
        put(&image, &path, &whole);
        database.close().unwrap();
        put(&storage, &path, &whole);
        for storage in [image, storage] {
            for mode in [OpenMode::Read, OpenMode::Write, OpenMode::Write, OpenMode::Read] {
                let database = open(&storage, mode);
                assert!(database.index("t_b").unwrap().damage().is_some(), "{how:?}, {mode:?}");
                assert_eq!(rows(&database, "t"), ROWS as u64 + 1, "{how:?}");
            }
            let database = open(&storage, OpenMode::Write);
            let mut change = database.change();
            change.drop_index("t_b").unwrap();
            change.commit().unwrap();
            assert!(!storage.exists(&path).unwrap());
            insert(&database, "t", 7001).unwrap();
            database.close().unwrap();
            assert_eq!(open(&storage, OpenMode::Read).index_names(), ["t_a", "u_a", "u_b"]);
        }
    }
}

#[test]
fn keys_of_a_unique_index_that_is_damaged_are_not_given() {
    for how in ALL {
        let storage = made();
        let database = open(&storage, OpenMode::Write);
        let (path, other) = (path_of(&database, "t_a"), path_of(&database, "u_a"));
        database.close().unwrap();
        damage(&storage, &path, &other, how);
        for _ in 0..2 {
            let database = open(&storage, OpenMode::Write);
            is_refused(&insert(&database, "t", 7000), "t_a");
            insert(&database, "u", 7000)
                .or_else(|error| if matches!(error, Error::DuplicateKey { .. }) { Ok(Rid::MIN) } else { Err(error) })
                .unwrap();
            let table = database.table("t").unwrap();
            let mut t = database.begin(TransactionOptions::default());
            let by_b = database.index("t_b").unwrap();
            let rid = t.get(&table, &by_b, &[ValueRef::Int(3)], |rid, _| rid).unwrap().unwrap();
            is_refused(&t.update(&table, rid, &[(0, ValueRef::Int(9000))]), "t_a");
            assert!(t.update(&table, rid, &[(1, ValueRef::Int(5)), (2, ValueRef::Int(8))]).unwrap());
            assert!(t.delete(&table, rid).unwrap());
            t.commit().unwrap();
            database.close().unwrap();
        }
        assert_eq!(rows(&open(&storage, OpenMode::Read), "t"), ROWS as u64 - 2);
    }
}

/// A process stopped with everything in the log: 100 rows that were committed in `t`, one that was not, and one in `u`. With two of its paths.
fn stopped(paths: impl FnOnce(&Database) -> [PathBuf; 2]) -> (FaultStorage, [PathBuf; 2]) {
    let storage = made();
    let database = open(&storage, OpenMode::Write);
    let paths = paths(&database);
    for a in 8000..8100 {
        insert(&database, "t", a).unwrap();
    }
    let table = database.table("t").unwrap();
    let mut loser = database.begin(TransactionOptions::default());
    loser.insert(&table, &[ValueRef::Int(9999), ValueRef::Int(3), ValueRef::Int(0)]).unwrap();
    insert(&database, "u", 8000).unwrap();
    // Up to the commit in `u` everything is in the log.
    let image = storage.crash_image(CrashPolicy::KeepAll);
    drop(loser);
    (image, paths)
}

#[test]
fn what_the_log_has_for_an_index_that_is_damaged_keeps_nothing_from_being_recovered() {
    for how in ALL {
        let (image, [path, other]) = stopped(|database| ["t_b", "u_b"].map(|index| path_of(database, index)));
        let whole = bytes(&image, &path);
        damage(&image, &path, &other, how);
        assert_eq!(rows(&open(&image, OpenMode::Read), "t"), ROWS as u64 + 100, "{how:?}");
        let recovered = open(&image, OpenMode::Write);
        assert_eq!((rows(&recovered, "t"), rows(&recovered, "u")), (ROWS as u64 + 100, ROWS as u64 + 1), "{how:?}");
        assert!(recovered.index("t_b").unwrap().damage().is_some(), "{how:?}");
        drop(recovered);
        put(&image, &path, &whole);
        let again = open(&image, OpenMode::Write);
        assert!(again.index("t_b").unwrap().damage().is_some(), "{how:?}: it lacks what was committed");
        insert(&again, "t", 8100).unwrap();
        again.close().unwrap();
    }
}

#[test]
fn a_table_that_lacks_what_the_log_has_for_it_is_given_up_and_the_others_are_there() {
    for how in ALL {
        let path_of = |database: &Database, table| database.table(table).unwrap().data_sets().next().unwrap().path().to_path_buf();
        let (image, [path, other]) = stopped(|database| ["t", "u"].map(|table| path_of(database, table)));
        damage(&image, &path, &other, how);
        let settings = settings();
        let try_to_open = |mode| Database::open(Arc::new(image.clone()), clock(), Path::new("db"), mode, settings);
        // What is committed would be lost: nothing is changed.
        let refused = try_to_open(OpenMode::Write).unwrap_err().to_string();
        assert!(refused.contains("table \"t\""), "{how:?}: {refused}");
        // Readers, which lose nothing by it, go on without the table.
        let reader = open(&image, OpenMode::Read);
        assert!(reader.table("t").is_err() && rows(&reader, "u") == ROWS as u64 + 1, "{how:?}");
        drop(reader);
        let give_up = |table: &str| {
            let names = [table.to_owned()];
            Database::open_giving_up(Arc::new(image.clone()), clock(), Path::new("db"), settings, GiveUp::Tables(&names))
        };
        assert!(give_up("u").is_err(), "{how:?}: another one is damaged");
        let opened = give_up("t").unwrap();
        let [GivenUp { table, error, .. }] = opened.given_up() else { panic!("{how:?}: {:?}", opened.given_up()) };
        assert!(table == "t" && error.is_damage(), "{how:?}: {error}");
        assert_eq!((opened.table_names(), opened.index_names()), (vec!["u".into()], vec!["u_a".into(), "u_b".into()]), "{how:?}");
        assert_eq!(rows(&opened, "u"), ROWS as u64 + 1, "{how:?}");
        insert(&opened, "u", 8001).unwrap();
        let crashed = image.crash_image(CrashPolicy::DropAll);
        drop(opened);
        for storage in [image, crashed] {
            let again = open(&storage, OpenMode::Write);
            assert_eq!((again.table_names(), rows(&again, "u")), (vec!["u".into()], ROWS as u64 + 2), "{how:?}");
            assert!(!storage.exists(&path).unwrap(), "{how:?}");
        }
    }
}

/// Deletes a row, and may give another one another key.
fn leave_something(database: &Database, table: &str, updates: bool) {
    let (table, index) = (database.table(table).unwrap(), database.index(&format!("{table}_a")).unwrap());
    let mut t = database.begin(TransactionOptions::default());
    let rids: Vec<Rid> = [100, 200].iter().map(|a| t.find(&table, &index, &[ValueRef::Int(*a)]).unwrap()[0]).collect();
    assert!(t.delete(&table, rids[0]).unwrap());
    if updates {
        assert!(t.update(&table, rids[1], &[(1, ValueRef::Int(6000))]).unwrap());
    }
    t.commit().unwrap();
}

/// One leaf page of an index of which a commit has left entries to be removed: by the commit itself, at the end, and by recovery.
#[test]
fn what_a_commit_has_left_may_lie_on_a_page_that_is_damaged() {
    const LEAF: usize = 2 * 8192 + 600;
    for crashes in [false, true] {
        let storage = made();
        let database = open(&storage, OpenMode::Write);
        let path = path_of(&database, "t_b");
        let mut image = storage.clone();
        let spoil = |storage: &FaultStorage| {
            let mut changed = bytes(storage, &path);
            changed[LEAF] ^= 1;
            put(storage, &path, &changed);
        };
        if crashes {
            // Somebody may still see it: nothing is removed before the crash.
            let reader = database.read_view();
            leave_something(&database, "t", true);
            insert(&database, "u", 7000).unwrap();
            image = storage.crash_image(CrashPolicy::KeepAll);
            drop((reader, database));
            spoil(&image);
        } else {
            database.close().unwrap();
            spoil(&image);
            let database = open(&image, OpenMode::Write);
            // The new key would go to that page.
            leave_something(&database, "t", false);
            insert(&database, "u", 7000).unwrap();
            database.close().unwrap();
        }
        let reader = open(&image, OpenMode::Read);
        assert_eq!((rows(&reader, "t"), rows(&reader, "u")), (ROWS as u64 - 1, ROWS as u64 + 1), "{crashes}");
        drop(reader);
        // CHECK names the page, and nothing that was left.
        let report = check_of(&image);
        assert!(report.iter().any(|error| error.starts_with("index \"t_b\"") && error.contains("page 2")), "{report:?}");
        assert!(report.iter().all(|error| error.starts_with("index \"t_b\"")), "{report:?}");
        for round in 0..2 {
            let database = open(&image, OpenMode::Write);
            assert_eq!((rows(&database, "t"), rows(&database, "u")), (ROWS as u64 - 1, ROWS as u64 + 1 + round), "{crashes}");
            insert(&database, "u", 7001 + round as i64).unwrap();
            database.close().unwrap();
        }
        let database = open(&image, OpenMode::Write);
        let mut t = database.begin(TransactionOptions::default());
        t.drop_index("t_b").unwrap();
        t.commit().unwrap();
        database.remove_leftovers().unwrap();
        insert(&database, "t", 100).unwrap();
        assert_eq!(rows(&database, "t"), ROWS as u64);
        database.close().unwrap();
        assert_eq!(check_of(&image), Vec::<String>::new());
    }
}

fn check_of(storage: &FaultStorage) -> Vec<String> {
    let (storage, clock) = (Arc::new(storage.clone()) as Arc<dyn Storage>, clock() as Arc<dyn Clock>);
    let report = pagefold_utility::check(&storage, &clock, Path::new("db"), settings(), &Silent).unwrap();
    report.errors.iter().map(|error| format!("{}, page {}: {}", error.object, error.page, error.reason)).collect()
}

/// Several tables that cannot get what the log has for them: each alone keeps the database from being opened, so they are given up together.
#[test]
fn several_damaged_tables_are_given_up_together() {
    let storage = made();
    let database = open(&storage, OpenMode::Write);
    let mut t = database.begin(TransactionOptions::default());
    t.create_table(TableAttributes::new("v", Schema::new(vec![Column::new("a", DataType::BigInt, false)]).unwrap())).unwrap();
    t.commit().unwrap();
    let paths = ["t", "u"].map(|table| database.table(table).unwrap().data_sets().next().unwrap().path().to_path_buf());
    ["t", "u"].into_iter().for_each(|table| _ = insert(&database, table, 7000).unwrap());
    let image = storage.crash_image(CrashPolicy::KeepAll);
    drop(database);
    paths.iter().for_each(|path| damage(&image, path, path, Damage::Header));
    let give_up = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Database::open_giving_up(Arc::new(image.clone()), clock(), Path::new("db"), settings(), GiveUp::Tables(&names))
    };
    assert!(give_up(&["t"]).is_err() && give_up(&["u"]).is_err());
    let errors = check_of(&image);
    assert!(errors.iter().any(|error| error.contains("\"t\"")) && errors.iter().any(|error| error.contains("\"u\"")), "{errors:?}");
    let database = give_up(&["t", "u"]).unwrap();
    assert_eq!(database.table_names(), ["v"]);
    database.close().unwrap();
    open(&image, OpenMode::Write).close().unwrap();
}

/// A table that cannot get what the log has for it, and of which a commit has left something: readers have all others.
#[test]
fn what_a_commit_has_left_of_a_damaged_table_keeps_readers_from_nothing_else() {
    for how in ALL {
        let storage = made();
        let database = open(&storage, OpenMode::Write);
        let path_of = |table| database.table(table).unwrap().data_sets().next().unwrap().path().to_path_buf();
        let (path, other) = (path_of("t"), path_of("u"));
        let reader = database.read_view();
        leave_something(&database, "t", true);
        insert(&database, "u", 7000).unwrap();
        let image = storage.crash_image(CrashPolicy::KeepAll);
        drop((reader, database));
        damage(&image, &path, &other, how);
        let reader = open(&image, OpenMode::Read);
        assert!(reader.table("t").is_err() && rows(&reader, "u") == ROWS as u64 + 1, "{how:?}");
        drop(reader);
        let names = ["t".to_owned()];
        let given_up = Database::open_giving_up(Arc::new(image.clone()), clock(), Path::new("db"), settings(), GiveUp::Tables(&names));
        let database = given_up.unwrap();
        insert(&database, "u", 7001).unwrap();
        database.close().unwrap();
    }
}

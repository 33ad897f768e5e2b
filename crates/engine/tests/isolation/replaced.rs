//! Tables and indexes that are dropped or replaced while somebody has them.

use crate::world::{Form, Random, Scans, World, all_keys, open};
use pagefold_engine::btree::Direction as Way;
use pagefold_engine::database::Isolation::{ReadCommitted, RepeatableRead, Serializable};
use pagefold_engine::database::{OpenMode, ScanRequest, Transaction};
use pagefold_engine::index::{Index, IndexAttributes, IndexFormat};
use pagefold_engine::table_space::{Method, Table};
use pagefold_engine::{Error, Silent};
use pagefold_interchange::{FileFormat, FileSink, ParquetOptions};
use pagefold_io::{MemoryStorage, Storage};
use pagefold_types::{Direction, Value, ValueRef};
use pagefold_utility::{IndexOptions, ReorgOptions, ScanOptions, Setting, create_index, drop_object, get, reorg};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn reorganize(world: &World, method: Method) {
    let options = ReorgOptions { method: Some(Setting::Given(method)), ..ReorgOptions::default() };
    reorg(&world.database, "t", &options, &Silent).unwrap();
}

fn count(reader: &mut Transaction<'_>, table: &Arc<Table>) -> Result<u64, Error> {
    reader.rows(table)?.try_fold(0, |rows, row| row.map(|_| rows + 1))
}

fn count_keys(reader: &mut Transaction<'_>, table: &Arc<Table>, index: &Arc<Index>) -> Result<u64, Error> {
    reader.keys_of(table, index, Way::Forward)?.try_fold(0, |keys, key| key.map(|_| keys + 1))
}

fn files(storage: &Arc<dyn Storage>) -> usize {
    storage.list(Path::new("db/data")).unwrap().len()
}

fn is_stale<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Stale { .. }))
}

fn filled(form: Form, rows: i64) -> (Arc<dyn Storage>, World) {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let world = open(&storage, form, OpenMode::Create);
    world.fill((0..rows).map(|number| (number, number % 7)));
    (storage, world)
}

/// Whoever asks for the indexes of a table while one is replaced finds the former one or the new one, or hears that the table is another one by now; never none.
#[test]
fn the_indexes_of_a_table_are_those_of_one_commit() {
    let (_storage, world) = filled(Form::default(), 50);
    let before = world.database.index_names().len();
    let (is_over, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let mut reader = world.begin(ReadCommitted);
                    match reader.table("t").and_then(|table| reader.indexes(&table)) {
                        Ok(found) => assert_eq!(found.len(), before),
                        Err(Error::Stale { .. } | Error::Lock(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                    looks.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let names = world.database.index_names();
        let replace = |name: &str| -> Result<(), Error> {
            let mut writer = world.begin(ReadCommitted);
            let attributes = writer.index(name)?.attributes().clone();
            writer.drop_index(name)?;
            let table = writer.table("t")?;
            writer.create_index(&table, attributes)?;
            writer.commit()
        };
        let replaced = (0..4_000).try_for_each(|round| replace(&names[round % names.len()]));
        is_over.store(true, Ordering::Relaxed);
        replaced.unwrap();
    });
    assert!(looks.into_inner() > 0);
}

/// Safe code must never read frames that belong to another page, nor wait for ever: the pages of a table stay as long as somebody has it.
#[test]
fn threads_scan_a_table_that_is_reorganized_again_and_again() {
    const ROWS: u64 = 3_000;
    // Far less memory than the tables of some reorganizations take.
    let (storage, world) = filled(Form { memory_bytes: 2 << 20, background_threads: 2, ..Form::default() }, ROWS as i64);
    let (done, scans) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for isolation in [ReadCommitted, RepeatableRead, Serializable] {
            let (database, done, scans) = (&world.database, &done, &scans);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let mut reader = database.begin(pagefold_engine::database::TransactionOptions { isolation, ..Default::default() });
                    let (table, index) = (reader.table("t").unwrap(), reader.index("number"));
                    for _ in 0..3 {
                        match count(&mut reader, &table) {
                            Ok(rows) => assert_eq!(rows, ROWS),
                            Err(error) => {
                                assert!(isolation == ReadCommitted && is_stale::<()>(Err(error.clone())), "{isolation:?}: {error}")
                            }
                        }
                        if let Ok(index) = &index {
                            match count_keys(&mut reader, &table, index) {
                                Ok(keys) => assert_eq!(keys, ROWS),
                                // Between the two look-ups there may be a change.
                                Err(Error::Parameter(_)) if isolation == ReadCommitted => {}
                                Err(error) => {
                                    assert!(isolation == ReadCommitted && is_stale::<()>(Err(error.clone())), "{isolation:?}: {error}")
                                }
                            }
                        }
                        scans.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        for round in 0..24 {
            reorganize(&world, Method::ALL[round % Method::ALL.len()]);
            // However few processors there are, readers come to be.
            let before = scans.load(Ordering::Relaxed);
            while scans.load(Ordering::Relaxed) < before + 2 {
                std::thread::yield_now();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    let World { database, table, by_number, by_value } = world;
    drop((table, by_number, by_value));
    (0..2).for_each(|_| database.checkpoint().unwrap());
    // Catalog, table, two indexes.
    assert_eq!(files(&storage), 4);
}

#[test]
fn a_snapshot_sees_what_was_there_before_a_reorganization() {
    for method in Method::ALL {
        let (_, world) = filled(Form::default(), 500);
        let mut old = world.begin(RepeatableRead);
        assert_eq!(count(&mut old, &world.table).unwrap(), 500);
        let rids = world.fill([(1_000, 1)]);
        let mut writer = world.begin(ReadCommitted);
        assert!(writer.delete(&world.table, rids[0]).unwrap());
        world.set(&mut writer, 3, 100).unwrap();
        writer.commit().unwrap();
        world.fill([(1_001, 1)]);
        reorganize(&world, method);
        let mut writer = world.begin(ReadCommitted);
        let table = writer.table("t").unwrap();
        writer.insert(&table, &[ValueRef::Int(2_000), ValueRef::Int(1), ValueRef::Text("new")]).unwrap();
        writer.commit().unwrap();
        world.database.remove_leftovers().unwrap();
        // By its handle, by its name, and by its indexes.
        let (again, index) = (old.table("t").unwrap(), old.index("value").unwrap());
        assert!(Arc::ptr_eq(&again, &world.table));
        assert_eq!((count(&mut old, &again).unwrap(), count_keys(&mut old, &again, &index).unwrap()), (500, 500));
        assert_eq!(old.find(&again, &world.by_value, &[ValueRef::Int(100)]).unwrap(), []);
        let fresh = world.database.table("t").unwrap();
        assert!(is_stale(count(&mut old, &fresh)), "rows of later transactions would be seen");
        let mut new = world.begin(RepeatableRead);
        assert_eq!(count(&mut new, &fresh).unwrap(), 502);
        assert!(is_stale(count(&mut new, &again)));
    }
}

#[test]
fn an_index_that_was_built_later_is_not_for_an_older_snapshot() {
    let (_, world) = filled(Form::default(), 100);
    let mut old = world.begin(RepeatableRead);
    assert_eq!(count(&mut old, &world.table).unwrap(), 100);
    let mut writer = world.begin(ReadCommitted);
    let rid = writer.find(&world.table, &world.by_number, &[ValueRef::Int(5)]).unwrap()[0];
    writer.delete(&world.table, rid).unwrap();
    writer.commit().unwrap();
    let options = IndexOptions { format: Setting::Given(IndexFormat::Plain), ..IndexOptions::default() };
    create_index(&world.database, "later", "t", &[("value".into(), Direction::Ascending)], &options, &Silent).unwrap();
    let later = world.database.index("later").unwrap();
    assert!(is_stale(count_keys(&mut old, &world.table, &later)) && is_stale(old.index("later")));
    assert_eq!(count_keys(&mut old, &world.table, &world.by_number).unwrap(), 100);
    assert_eq!(count_keys(&mut world.begin(RepeatableRead), &world.table, &later).unwrap(), 99);
    // One that is dropped is there for who began before.
    let mut reader = world.begin(RepeatableRead);
    assert_eq!(count(&mut reader, &world.table).unwrap(), 99);
    drop_object(&world.database, "later").unwrap();
    let found = reader.index("later").unwrap();
    assert_eq!(count_keys(&mut reader, &world.table, &found).unwrap(), 99);
    assert!(is_stale(count_keys(&mut world.begin(RepeatableRead), &world.table, &later)));
}

#[test]
fn what_was_dropped_or_replaced_takes_no_changes() {
    let (_, world) = filled(Form::default(), 50);
    let (old, old_index) = (Arc::clone(&world.table), Arc::clone(&world.by_number));
    let rid = world.begin(ReadCommitted).find(&old, &old_index, &[ValueRef::Int(7)]).unwrap()[0];
    reorganize(&world, Method::Row);
    let row = [ValueRef::Int(100), ValueRef::Int(1), ValueRef::Text("lost")];
    for isolation in [ReadCommitted, RepeatableRead, Serializable] {
        let mut writer = world.begin(isolation);
        assert!(is_stale(writer.insert(&old, &row)));
        assert!(is_stale(writer.update(&old, rid, &[(1, ValueRef::Int(9))])));
        assert!(is_stale(writer.delete(&old, rid)) && is_stale(writer.lock(&old, rid)));
        assert!(is_stale(writer.get(&old, &old_index, &[ValueRef::Int(7)], |rid, _| rid)));
        assert!(is_stale(writer.row(&old, rid)));
        let table = writer.table("t").unwrap();
        assert_eq!(writer.find(&table, &writer_index(&world), &[ValueRef::Int(7)]).unwrap().len(), 1);
        // An index of the table that was.
        let found = writer.find(&table, &old_index, &[ValueRef::Int(7)]);
        assert!(matches!(found, Err(Error::Parameter(_))), "{found:?}");
        writer.rollback().unwrap();
    }
    drop_object(&world.database, "t").unwrap();
    let mut writer = world.begin(ReadCommitted);
    assert!(is_stale(writer.insert(&old, &row)));
    assert!(matches!(writer.table("t"), Err(Error::Unknown { .. })));
}

fn writer_index(world: &World) -> Arc<Index> {
    world.database.index("number").unwrap()
}

#[test]
fn handles_and_savepoints_of_others_are_refused() {
    let (_, world) = filled(Form::default(), 10);
    let (_, other) = filled(Form::default(), 10);
    let mut writer = world.begin(ReadCommitted);
    let row = [ValueRef::Int(100), ValueRef::Int(1), ValueRef::Text("")];
    assert!(matches!(writer.insert(&other.table, &row), Err(Error::Parameter(_))));
    assert!(matches!(count(&mut writer, &other.table), Err(Error::Parameter(_))));
    assert!(matches!(writer.find(&world.table, &other.by_number, &[ValueRef::Int(1)]), Err(Error::Parameter(_))));
    let savepoint = world.begin(ReadCommitted).savepoint();
    world.set(&mut writer, 1, 77).unwrap();
    assert!(matches!(writer.roll_back_to(savepoint), Err(Error::Parameter(_))));
    writer.commit().unwrap();
    let changed = world.begin(ReadCommitted).find(&world.table, &world.by_value, &[ValueRef::Int(77)]).unwrap();
    assert_eq!(changed.len(), 1);
}

/// What a transaction changes is found by the indexes that its snapshot has: where one of these is gone, it changes nothing any more.
#[test]
fn a_table_that_lost_an_index_takes_no_changes_of_older_snapshots() {
    for isolation in [RepeatableRead, Serializable] {
        for drops in [false, true] {
            let (_, world) = filled(Form::default(), 10);
            let mut old = world.begin(isolation);
            assert_eq!(count(&mut old, &world.table).unwrap(), 10);
            if drops {
                drop_object(&world.database, "number").unwrap();
            } else {
                reorg(&world.database, "number", &ReorgOptions::default(), &Silent).unwrap();
            }
            let index = old.index("number").unwrap();
            assert_eq!(count_keys(&mut old, &world.table, &index).unwrap(), 10);
            let row = [ValueRef::Int(100), ValueRef::Int(1), ValueRef::Text("")];
            assert!(is_stale(old.insert(&world.table, &row)));
            // Who comes later, and who sees what is there, may change rows.
            let mut new = world.begin(isolation);
            new.insert(&world.table, &row).unwrap();
            new.commit().unwrap();
        }
    }
}

/// Marks on a former index are met by nobody who changes rows: a serializable transaction that has read by it changes nothing elsewhere either.
#[test]
fn a_serializable_transaction_that_read_an_index_since_replaced_changes_nothing() {
    for by_view in [false, true] {
        let (_, world) = filled(Form::default(), 10);
        let mut change = world.database.change();
        let attributes = world.table.attributes().clone();
        change.create_table(pagefold_engine::table_space::TableAttributes { name: "other".into(), ..attributes }).unwrap();
        change.commit().unwrap();
        let other = world.database.table("other").unwrap();
        let row = |number| [ValueRef::Int(number), ValueRef::Int(0), ValueRef::Text("")];
        let mut first = world.begin(Serializable);
        if by_view {
            let view = first.read_view().unwrap();
            assert_eq!(view.keys(&world.table, &world.by_number, all_keys(), Way::Forward).unwrap().count(), 10);
        } else {
            assert_eq!(first.find(&world.table, &world.by_number, &[ValueRef::Int(50)]).unwrap(), []);
        }
        reorg(&world.database, "number", &ReorgOptions::default(), &Silent).unwrap();
        let mut second = world.begin(Serializable);
        assert_eq!(count(&mut second, &other).unwrap(), 0);
        second.insert(&world.table, &row(50)).unwrap();
        second.commit().unwrap();
        let done = first.insert(&other, &row(1)).and_then(|_| first.commit());
        assert!(matches!(done, Err(Error::Serialization(_))), "by a view: {by_view}");
    }
}

/// Entries of deleted rows stay in a former index when these go: it is not believed.
#[test]
fn a_former_index_has_no_keys_of_rows_that_are_gone() {
    let (_, world) = filled(Form::default(), 3);
    let mut older = world.begin(RepeatableRead);
    assert_eq!(count(&mut older, &world.table).unwrap(), 3);
    let mut writer = world.begin(ReadCommitted);
    let rid = world.find(&mut writer, 1).unwrap();
    assert!(writer.delete(&world.table, rid).unwrap());
    writer.commit().unwrap();
    let mut reader = world.begin(RepeatableRead);
    assert_eq!(count_keys(&mut reader, &world.table, &world.by_number).unwrap(), 2);
    let view = reader.read_view().unwrap();
    drop_object(&world.database, "number").unwrap();
    older.commit().unwrap();
    world.database.remove_leftovers().unwrap();
    assert_eq!(count_keys(&mut reader, &world.table, &world.by_number).unwrap(), 2);
    assert_eq!(view.keys(&world.table, &world.by_number, all_keys(), Way::Forward).unwrap().filter(Result::is_ok).count(), 2);
}

/// An index that lacks rows would be believed.
#[test]
fn an_index_that_is_not_built_does_not_come() {
    let (_, world) = filled(Form::default(), 10);
    let mut change = world.database.change();
    let attributes = IndexAttributes::new("empty", vec![(1, Direction::Ascending)], false);
    change.create_index(&world.table, attributes).unwrap();
    assert!(matches!(change.commit(), Err(Error::Parameter(_))));
    assert!(world.database.index("empty").is_err());
    assert_eq!(world.check().len(), 10);
}

/// What utilities read is what was committed when they began: not what others are about to do, nor leftovers of what they did.
#[test]
fn utilities_read_what_is_committed() {
    let (_, world) = filled(Form::default(), 10);
    let rid = world.find(&mut world.begin(ReadCommitted), 3).unwrap();
    let mut writer = world.begin(ReadCommitted);
    world.insert(&mut writer, 100, 1, "not yet").unwrap();
    world.set(&mut writer, 5, 55).unwrap();
    assert!(writer.delete(&world.table, rid).unwrap());
    let get = |number: i64| get(&world.database, "t", &[number.to_string()]).unwrap();
    assert_eq!((get(100), get(5).unwrap()[1].clone()), (None, Value::Int(5)));
    assert!(get(3).is_some());
    for index in [None, Some("value"), Some("number")] {
        let options = ScanOptions { index: index.map(str::to_string), ..ScanOptions::default() };
        let scan = pagefold_utility::Scan::new(&world.database, "t", &options).unwrap();
        assert_eq!(rows_of(&world, &scan), 10, "{index:?}");
    }
    // A scan reads what was there when it was prepared.
    let scan = pagefold_utility::Scan::new(&world.database, "t", &ScanOptions::default()).unwrap();
    writer.commit().unwrap();
    world.fill([(200, 1)]);
    assert_eq!(rows_of(&world, &scan), 10);
    assert_eq!((get(3), get(5).unwrap()[1].clone()), (None, Value::Int(55)));
}

/// Runs a scan into a file; how many rows came.
fn rows_of(world: &World, scan: &pagefold_utility::Scan) -> u64 {
    let format = FileFormat::Parquet(ParquetOptions::default());
    let schema = scan.output().unwrap();
    let mut sink = FileSink::create(Arc::clone(world.database.outside()), Path::new("rows.parquet"), &format, &schema).unwrap();
    scan.run(&mut sink, &Silent).unwrap()
}

/// Nothing of a table that is gone keeps memory or room on the disk when its last user has gone: neither after a commit nor after a change that was given up.
#[test]
fn what_nobody_has_any_more_goes() {
    let (storage, world) = filled(Form::default(), 2_000);
    (0..2).for_each(|_| world.database.checkpoint().unwrap());
    let before = files(&storage);
    let mut random = Random(1);
    let mut seen = BTreeSet::new();
    for round in 0..12 {
        let mut reader = world.begin(RepeatableRead);
        let table = reader.table("t").unwrap();
        assert_eq!(count(&mut reader, &table).unwrap(), 2_000);
        reorganize(&world, Method::ALL[random.below(5) as usize]);
        seen.insert(files(&storage));
        assert!(files(&storage) > before, "the reader has them");
        assert_eq!(count(&mut reader, &table).unwrap(), 2_000);
        if round % 2 == 0 {
            drop(table);
            reader.commit().unwrap();
        } else {
            // A handle without a transaction.
            reader.rollback().unwrap();
            assert!(files(&storage) > before);
            drop(table);
            world.database.checkpoint().unwrap();
        }
        if round == 0 {
            // The handles of the world are of the first table.
            assert!(files(&storage) > before);
        }
    }
    let World { database, table, by_number, by_value } = world;
    drop((table, by_number, by_value));
    {
        let mut change = database.change();
        let schema = database.table("t").unwrap().attributes().schema.clone();
        let staged = change.create_table(pagefold_engine::table_space::TableAttributes::new("staged", schema)).unwrap();
        staged.insert(&[ValueRef::Int(1), ValueRef::Int(1), ValueRef::Text("x")]).unwrap();
        let mut reader = database.begin(Default::default());
        assert!(is_stale(count(&mut reader, &staged)));
        let (view, request) = (change.read_view(), ScanRequest::default());
        assert_eq!(view.scan(&staged, &request).unwrap().into_rows().map(Result::unwrap).count(), 1);
        drop(change);
        assert!(is_stale(view.scan(&staged, &request)));
    }
    // Afterwards both control slots name the same catalog.
    (0..2).for_each(|_| database.checkpoint().unwrap());
    assert_eq!(files(&storage), before, "{seen:?}");
    database.close().unwrap();
    assert_eq!(files(&storage), before);
}

/// Who changes rows of a table that took the place of another one meets no marks of those who have read that one: so they must not have changed anything.
#[test]
fn a_serializable_transaction_that_read_a_table_since_replaced_changes_nothing() {
    let (_, world) = filled(Form::default(), 20);
    let mut change = world.database.change();
    let attributes = world.table.attributes().clone();
    change.create_table(pagefold_engine::table_space::TableAttributes { name: "other".into(), ..attributes }).unwrap();
    change.commit().unwrap();
    let other = world.database.table("other").unwrap();
    let row = |number| [ValueRef::Int(number), ValueRef::Int(0), ValueRef::Text("")];
    let (mut first, mut reader, mut before) = (world.begin(Serializable), world.begin(Serializable), world.begin(Serializable));
    for transaction in [&mut first, &mut reader, &mut before] {
        assert_eq!(count(transaction, &world.table).unwrap(), 20);
    }
    before.insert(&other, &row(1)).unwrap();
    before.commit().unwrap();
    reorganize(&world, Method::Row);
    // It counts the rows of the other table, and adds one to this.
    let mut second = world.begin(Serializable);
    let fresh = second.table("t").unwrap();
    assert_eq!(count(&mut second, &other).unwrap(), 1);
    second.insert(&fresh, &row(100)).unwrap();
    second.commit().unwrap();
    // It has counted the rows of this table, and would add one to the other.
    first.insert(&other, &row(2)).unwrap();
    assert!(matches!(first.commit(), Err(Error::Serialization(_))));
    reader.commit().unwrap();
    assert_eq!(count(&mut world.begin(RepeatableRead), &other).unwrap(), 1);
}

//! Read views: what a statement sees as a value, and scans that are pulled from it, each against what the rows are.

use crate::world::{Form, Random, Rows, World, all_keys, keys_from, open, parts};
use pagefold_codec::page::Bitmap;
use pagefold_engine::Error;
use pagefold_engine::btree::Direction as Way;
use pagefold_engine::database::Isolation::{ReadCommitted, RepeatableRead, Serializable};
use pagefold_engine::database::{OpenMode, ReadView, Scan, ScanRequest, TransactionOptions};
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::{BatchValues, ColumnBatch, Method, Table};
use pagefold_io::{MemoryStorage, Storage};
use pagefold_types::{LargeValueRef, Predicate, Rid, Value, ValueRef};
use pagefold_utility::{ReorgOptions, Setting, drop_object, reorg};
use std::collections::BTreeMap;
use std::sync::Arc;

fn is_send<T: Send + 'static>(value: T) -> T {
    value
}

/// The rows of a batch of all columns.
fn rows_of(table: &Table, batch: &ColumnBatch) -> Vec<(i64, (i64, String))> {
    let [number, value, text] = batch.columns() else { panic!("three columns") };
    let BatchValues::Bytes { bytes, ends, large } = text.values() else { panic!("texts") };
    let all = |validity: &Bitmap| validity.len() == batch.len() && validity.count_ones() == batch.len();
    assert!(batch.columns().iter().all(|column| all(column.validity())));
    let text = |row: usize| {
        let start = if row == 0 { 0 } else { ends[row - 1] as usize };
        let bytes = bytes[start..ends[row] as usize].to_vec();
        let bytes = if large.get(row) { table.read_large(LargeValueRef::from_bytes(&bytes).unwrap()).unwrap() } else { bytes };
        String::from_utf8(bytes).unwrap()
    };
    (0..batch.len()).map(|row| (number.ints()[row], (value.ints()[row], text(row)))).collect()
}

fn all_rows(table: &Table, scan: Scan) -> Vec<(i64, (i64, String))> {
    scan.flat_map(|batch| rows_of(table, &batch.unwrap())).collect()
}

fn as_map(rows: Vec<(i64, (i64, String))>) -> Rows {
    let count = rows.len();
    let rows: Rows = rows.into_iter().collect();
    assert_eq!(rows.len(), count, "a number twice");
    rows
}

/// Looks in every way, and finds the same.
fn look(world: &World, view: &ReadView, expected: &Rows) {
    let (table, everything) = (&world.table, ScanRequest::default());
    assert_eq!(as_map(all_rows(table, view.scan(table, &everything).unwrap())), *expected);
    // With RIDs, which give the same rows again, in any order.
    let with_rids = ScanRequest { rids: true, ..ScanRequest::default() };
    let mut rids: BTreeMap<i64, Rid> = BTreeMap::new();
    for batch in view.scan(table, &with_rids).unwrap() {
        let batch = batch.unwrap();
        let rows = rows_of(table, &batch);
        rids.extend(rows.iter().map(|row| row.0).zip(batch.rids().unwrap().iter().copied()));
    }
    assert!(rids.keys().eq(expected.keys()));
    let wanted: Vec<Rid> = rids.values().rev().copied().collect();
    let listed: Vec<i64> = all_rows(table, view.rows(table, wanted, &everything).unwrap()).into_iter().map(|row| row.0).collect();
    assert!(listed.iter().eq(expected.keys().rev()));
    for (number, rid) in rids.iter().step_by(7) {
        assert_eq!(parts(&view.row(table, *rid).unwrap().unwrap()), (*number, expected[number].clone()));
    }
    // In parts.
    let parts_of_it = view.scan(table, &everything).unwrap().split(3);
    assert_eq!(parts_of_it.len(), 3);
    let found: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = parts_of_it.into_iter().map(|part| scope.spawn(|| all_rows(table, is_send(part)))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(as_map(found), *expected);
    // By the indexes, both ways; keys alone.
    for (index, is_number) in [(&world.by_number, true), (&world.by_value, false)] {
        for way in [Way::Forward, Way::Backward] {
            let rows = all_rows(table, view.range(table, index, all_keys(), way, &everything).unwrap());
            let mut keys: Vec<i64> = rows.iter().map(|row| if is_number { row.0 } else { row.1.0 }).collect();
            let mut alone = Vec::new();
            for found in view.keys(table, index, all_keys(), way).unwrap() {
                let (rid, key) = found.unwrap();
                let [Value::Int(key)] = key[..] else { panic!("a number") };
                assert_eq!(if is_number { rids[&key] } else { rid }, rid);
                alone.push(key);
            }
            assert_eq!(alone, keys, "{} {way:?}", index.name());
            if way == Way::Backward {
                keys.reverse();
            }
            assert!(keys.is_sorted());
            assert_eq!(as_map(rows), *expected, "{} {way:?}", index.name());
        }
    }
    // By lists of keys, of which some have no row and some come twice.
    for way in [Way::Forward, Way::Backward] {
        let numbers: Vec<i64> = (0..450).rev().step_by(3).chain([7, 7]).collect();
        let keys = numbers.iter().map(|number| keys_from(&world.by_number, *number..=*number)).collect();
        let listed = all_rows(table, view.ranges(table, &world.by_number, keys, way, &everything).unwrap());
        let wanted = numbers.iter().filter_map(|number| Some((*number, expected.get(number)?.clone())));
        assert!(listed.into_iter().eq(wanted), "{way:?}");
        let ranges = [(30, 35), (5, 5), (9, 3), (0, 10)].map(|(low, high)| keys_from(&world.by_value, low..=high)).to_vec();
        let listed = all_rows(table, view.ranges(table, &world.by_value, ranges, way, &everything).unwrap());
        let mut values: Vec<i64> = expected.values().map(|row| row.0).collect();
        values.sort_unstable_by_key(|value| if way == Way::Forward { *value } else { -*value });
        let of = |range: std::ops::RangeInclusive<i64>| values.iter().copied().filter(move |value| range.contains(value));
        assert!(listed.into_iter().map(|row| row.1.0).eq(of(30..=35).chain(of(5..=5)).chain(of(0..=10))), "{way:?}");
    }
    // Some columns, under a condition; rows one by one.
    let condition = Predicate::parse("value >= 10 and number < 200", &table.attributes().schema).unwrap();
    let some = |rows: &mut dyn Iterator<Item = (i64, i64)>| {
        let mut rows: Vec<_> = rows.filter(|(number, value)| *value >= 10 && *number < 200).collect();
        rows.sort_unstable();
        rows
    };
    let expected_some = some(&mut expected.iter().map(|(number, (value, _))| (*number, *value)));
    let request = ScanRequest { columns: Some(vec![1, 0]), condition: Some(condition), ..ScanRequest::default() };
    let mut found = Vec::new();
    for batch in view.scan(table, &request).unwrap() {
        let batch = batch.unwrap();
        found.extend(batch.columns()[1].ints().iter().copied().zip(batch.columns()[0].ints().iter().copied()));
    }
    found.sort_unstable();
    assert_eq!(found, expected_some);
    let mut one_by_one = Vec::new();
    for row in view.scan(table, &request).unwrap().into_rows() {
        let [Value::Int(value), Value::Int(number)] = row.unwrap().1[..] else { panic!("two numbers") };
        one_by_one.push((number, value));
    }
    one_by_one.sort_unstable();
    assert_eq!(one_by_one, expected_some);
}

fn text(random: &mut Random) -> String {
    let text = random.text(12);
    if random.below(20) == 0 { text.repeat(60) } else { text }
}

/// Rows come, go, grow and move; views of older moments see what they saw.
#[test]
fn views_see_what_transactions_see() {
    for (turn, method) in Method::ALL.into_iter().enumerate() {
        let format = IndexFormat::ALL[turn % 3];
        let form = Form { method, format, small_partitions: (turn % 2 == 1).then_some((40, 40)), ..Form::default() };
        let world = World::with(form);
        let mut random = Random(turn as u64);
        let mut views: Vec<(ReadView, Rows)> = Vec::new();
        for round in 0..10 {
            let isolation = [ReadCommitted, RepeatableRead, Serializable][round % 3];
            let mut t = world.begin(isolation);
            for _ in 0..60 {
                let number = random.below(300) as i64;
                let text = text(&mut random);
                match world.find(&mut t, number) {
                    Some(rid) if random.below(3) == 0 => drop(t.delete(&world.table, rid).unwrap()),
                    Some(rid) => {
                        let changes = [(1, ValueRef::Int(random.below(30) as i64)), (2, ValueRef::Text(&text))];
                        assert!(t.update(&world.table, rid, &changes).unwrap());
                    }
                    None => drop(world.insert(&mut t, number, random.below(30) as i64, &text).unwrap()),
                }
            }
            // Its own changes are seen, others do not see them.
            let own = world.see(&mut t);
            look(&world, &t.read_view().unwrap(), &own);
            for (view, expected) in &views {
                look(&world, view, expected);
            }
            if random.below(4) == 0 {
                t.rollback().unwrap();
            } else {
                t.commit().unwrap();
            }
            world.database.remove_leftovers().unwrap();
            let mut reader = world.begin([RepeatableRead, ReadCommitted][round % 2]);
            let seen = world.see(&mut reader);
            views.push((reader.read_view().unwrap(), seen));
            // It outlives its transaction.
            reader.commit().unwrap();
            if views.len() > 4 {
                views.remove(random.below(4) as usize);
            }
        }
        drop(views);
        world.check();
    }
}

/// Nothing is latched between two items: others change the very rows that a scan is at, and it goes on with what it saw.
#[test]
fn a_slow_reader_keeps_nobody_waiting() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let world = open(&storage, Form::default(), OpenMode::Create);
    world.fill((0..3_000).map(|number| (number, 1)));
    let mut reader = world.begin(ReadCommitted);
    let view = reader.read_view().unwrap();
    let request = ScanRequest { columns: Some(vec![1]), ..ScanRequest::default() };
    let mut pages = view.scan(&world.table, &request).unwrap();
    let mut entries = view.range(&world.table, &world.by_number, all_keys(), Way::Forward, &request).unwrap();
    let (first, other) = (pages.next().unwrap().unwrap(), entries.next().unwrap().unwrap());
    let mut writer = world.begin(ReadCommitted);
    for number in 0..3_000 {
        world.set(&mut writer, number, 2).unwrap();
    }
    writer.commit().unwrap();
    world.database.remove_leftovers().unwrap();
    let options = ReorgOptions { method: Some(Setting::Given(Method::Page)), ..ReorgOptions::default() };
    reorg(&world.database, "t", &options, &pagefold_engine::Silent).unwrap();
    drop_object(&world.database, "t").unwrap();
    for (batch, rest) in [(first, pages), (other, entries)] {
        let mut count = batch.len();
        assert!(batch.columns()[0].ints().iter().all(|value| *value == 1));
        for batch in rest {
            let batch = batch.unwrap();
            assert!(batch.columns()[0].ints().iter().all(|value| *value == 1));
            count += batch.len();
        }
        assert_eq!(count, 3_000);
    }
}

/// A view ends with an error when it is cancelled, when its transaction is rolled back, and when the database is closed.
#[test]
fn views_end() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let world = open(&storage, Form::default(), OpenMode::Create);
    let rid = world.fill((0..3_000).map(|number| (number, 1)))[0];
    let everything = ScanRequest::default();
    let mut reader = world.begin(RepeatableRead);
    let view = reader.read_view().unwrap();
    let mut scan = view.scan(&world.table, &everything).unwrap();
    assert!(scan.next().unwrap().is_ok());
    let other = view.clone();
    std::thread::spawn(move || other.cancel()).join().unwrap();
    assert!(matches!(scan.next(), Some(Err(Error::Cancelled))) && scan.next().is_none());
    assert!(matches!(view.row(&world.table, rid), Err(Error::Cancelled)));
    let view = reader.read_view().unwrap();
    assert!(view.row(&world.table, rid).is_ok());
    let other_world = World::new();
    assert!(matches!(view.scan(&other_world.table, &everything).map(drop), Err(Error::Parameter(_))));
    assert!(view.scan(&world.table, &ScanRequest { columns: Some(vec![3]), ..ScanRequest::default() }).is_err());
    let mut scan = view.scan(&world.table, &everything).unwrap().into_rows();
    assert!(scan.next_record().unwrap().is_some());
    world.insert(&mut reader, 5_000, 1, "").unwrap();
    reader.rollback().unwrap();
    assert!(matches!(view.row(&world.table, rid), Err(Error::Stale { .. })));
    let ended = std::iter::from_fn(|| scan.next()).find_map(Result::err);
    assert!(matches!(ended, Some(Error::Stale { .. })), "{ended:?}");
    let mut reader = world.begin(RepeatableRead);
    let view = reader.read_view().unwrap();
    // One that has changed nothing may as well be rolled back.
    reader.rollback().unwrap();
    let World { database, table, .. } = world;
    let mut scan = view.scan(&table, &everything).unwrap();
    database.close().unwrap();
    assert!(matches!(scan.next(), Some(Err(Error::Closed(_)))));
    assert!(matches!(table.insert(&[ValueRef::Int(1), ValueRef::Int(1), ValueRef::Text("")]), Err(Error::Closed(_))));
}

/// Reads through views count as reads of their transaction: of two that each change what the other has read, one is refused.
#[test]
fn views_of_serializable_transactions_leave_marks() {
    for by_index in [false, true] {
        let world = World::new();
        world.fill([(1, 1), (2, 1)]);
        let (mut a, mut b) = (world.begin(Serializable), world.begin(Serializable));
        for t in [&mut a, &mut b] {
            let view = t.read_view().unwrap();
            let everything = ScanRequest::default();
            let scan = match by_index {
                true => view.range(&world.table, &world.by_value, all_keys(), Way::Forward, &everything).unwrap(),
                false => view.scan(&world.table, &everything).unwrap(),
            };
            assert_eq!(all_rows(&world.table, scan).len(), 2);
        }
        let change = |t: &mut pagefold_engine::database::Transaction<'_>, number| world.set(t, number, 2);
        let (first, second) = (change(&mut a, 1), change(&mut b, 2));
        let refused = first.is_err() || second.is_err() || a.commit().is_err() | b.commit().is_err();
        assert!(refused, "by index: {by_index}");
    }
}

/// A transaction may own what it needs, and go to another thread; one for reading only changes nothing.
#[test]
fn transactions_that_own_their_database() {
    let World { database, table, by_number, .. } = World::new();
    let database = Arc::new(database);
    let mut t = database.begin_owned(TransactionOptions::default());
    let made = table.clone();
    let t = std::thread::spawn(move || {
        t.insert(&made, &[ValueRef::Int(1), ValueRef::Int(1), ValueRef::Text("")]).unwrap();
        t
    });
    let t = is_send(t.join().unwrap());
    t.commit().unwrap();
    let mut reader = database.begin_owned(TransactionOptions { read_only: true, isolation: Serializable, ..TransactionOptions::default() });
    drop(database);
    let rid = reader.find(&table, &by_number, &[ValueRef::Int(1)]).unwrap()[0];
    assert!(matches!(reader.delete(&table, rid), Err(Error::ReadOnly(_))));
    assert!(matches!(reader.drop_table("t"), Err(Error::ReadOnly(_))));
    assert!(reader.row(&table, rid).unwrap().is_some());
    reader.commit().unwrap();
    // The last one that had it has closed it.
    assert!(matches!(table.insert(&[ValueRef::Int(2), ValueRef::Int(1), ValueRef::Text("")]), Err(Error::Closed(_))));
}

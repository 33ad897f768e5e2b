//! What a scan sees that is open while rows change: nothing of what others do, and of the rows that its own transaction changes what they are when it comes to them.

use crate::world::{Form, Random, Rows, Scans, World, all_keys, keys_from, parts};
use pagefold_engine::btree::Direction as Way;
use pagefold_engine::database::Isolation::{self, ReadCommitted, RepeatableRead, Serializable};
use pagefold_engine::database::{ReadView, RowScan, Scan, ScanRequest, Transaction};
use pagefold_engine::index::{Index, IndexFormat};
use pagefold_engine::table_space::{ColumnBatch, IntMembers, Method, Table};
use pagefold_engine::{Error, Result};
use pagefold_types::{Rid, Value, ValueRef};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const LEVELS: [Isolation; 3] = [ReadCommitted, RepeatableRead, Serializable];
type Seen = (i64, (i64, String));

/// A scan of rows, and which way it goes.
fn scans(world: &World, view: &ReadView) -> Vec<(&'static str, RowScan)> {
    let (table, everything) = (&world.table, ScanRequest::default());
    let by = |index: &Arc<Index>, way| view.range(table, index, all_keys(), way, &everything).unwrap().into_rows();
    let pages = || view.scan(table, &everything).unwrap();
    let rids: Vec<Rid> = pages().into_rows().map(|row| row.unwrap().0).collect();
    let listed = (0..400).map(|number| number..=number).chain([400..=i64::MAX - 1]);
    let listed = listed.map(|numbers| keys_from(&world.by_number, numbers)).collect();
    let mut scans = vec![
        ("pages", pages().into_rows()),
        ("by number", by(&world.by_number, Way::Forward)),
        ("by number, backward", by(&world.by_number, Way::Backward)),
        ("by value", by(&world.by_value, Way::Forward)),
        ("by value, backward", by(&world.by_value, Way::Backward)),
        ("list of keys", view.ranges(table, &world.by_number, listed, Way::Forward, &everything).unwrap().into_rows()),
        ("RIDs", view.rows(table, rids, &everything).unwrap().into_rows()),
    ];
    scans.extend(pages().split(2).into_iter().map(|part| ("part", part.into_rows())));
    scans
}

fn row(found: Result<(Rid, Vec<Value>)>) -> Seen {
    parts(&found.unwrap().1)
}

/// A scan that is read batch by batch, in the memory of the one before.
struct Batches {
    table: Arc<Table>,
    scan: Scan,
    batch: Option<ColumnBatch>,
    at: usize,
}

impl Iterator for Batches {
    type Item = Seen;

    fn next(&mut self) -> Option<Seen> {
        loop {
            if let Some(batch) = self.batch.as_ref().filter(|batch| self.at < batch.len()) {
                let mut values = Vec::new();
                batch.values_into(&self.table, self.at, &mut values).unwrap();
                values.resize(3, Value::Text(String::new()));
                self.at += 1;
                return Some(parts(&values));
            }
            let next = self.scan.next_step(self.batch.take());
            (self.batch, self.at) = (Some(next.unwrap()?), 0);
        }
    }
}

/// Scans that are read batch by batch: of all columns, and of numbers alone, which give no texts; whether they have RIDs, or are told all numbers that may come, does not change what they give.
fn batches(world: &World, view: &ReadView) -> Vec<(&'static str, Batches)> {
    let table = &world.table;
    let numbers = ScanRequest { columns: Some(vec![0, 1]), ..ScanRequest::default() };
    let with_rids = ScanRequest { rids: true, ..ScanRequest::default() };
    let by = |index: &Arc<Index>, way, request: &ScanRequest| view.range(table, index, all_keys(), way, request).unwrap();
    let listed: Vec<_> = (0..400).map(|number| keys_from(&world.by_number, number..=number)).collect();
    let told = |mut scan: Scan| {
        scan.keep_members(0, &Arc::new(IntMembers::of((0..10_000).collect()))).unwrap();
        scan
    };
    let scans = vec![
        ("pages", view.scan(table, &ScanRequest::default()).unwrap()),
        ("numbers of pages", view.scan(table, &numbers).unwrap()),
        ("pages, told", told(view.scan(table, &ScanRequest::default()).unwrap())),
        ("by number", told(by(&world.by_number, Way::Forward, &ScanRequest::default()))),
        ("by number", by(&world.by_number, Way::Forward, &ScanRequest::default())),
        ("by number", by(&world.by_number, Way::Forward, &with_rids)),
        ("numbers by number", by(&world.by_number, Way::Forward, &numbers)),
        ("by value, backward", by(&world.by_value, Way::Backward, &ScanRequest::default())),
        ("numbers by value", by(&world.by_value, Way::Forward, &numbers)),
        ("numbers by a list", view.ranges(table, &world.by_number, listed, Way::Forward, &numbers).unwrap()),
    ];
    let open = |(name, scan)| (name, Batches { table: Arc::clone(table), scan, batch: None, at: 0 });
    scans.into_iter().map(open).collect()
}

/// Random changes of rows, and a text that is large now and then. The numbers of these rows.
fn change(world: &World, t: &mut Transaction<'_>, random: &mut Random, rows: &mut Rows, changes: usize) -> BTreeSet<i64> {
    let mut touched = BTreeSet::new();
    for _ in 0..changes {
        let number = random.below(400) as i64;
        touched.insert(number);
        let (value, text) = (random.below(40) as i64, random.text(10).repeat(if random.below(12) == 0 { 60 } else { 1 }));
        match world.find(t, number) {
            Some(rid) if random.below(3) == 0 => {
                assert!(t.delete(&world.table, rid).unwrap());
                rows.remove(&number);
                continue;
            }
            Some(rid) => assert!(t.update(&world.table, rid, &[(1, ValueRef::Int(value)), (2, ValueRef::Text(&text))]).unwrap()),
            None => drop(world.insert(t, number, value, &text).unwrap()),
        }
        rows.insert(number, (value, text));
    }
    touched
}

fn forms() -> impl Iterator<Item = Form> {
    let form = |(turn, method)| Form {
        method,
        format: IndexFormat::ALL[turn % 3],
        small_partitions: (turn % 2 == 1).then_some((40, 40)),
        ..Form::default()
    };
    Method::ALL.into_iter().enumerate().map(form)
}

fn filled(form: Form, random: &mut Random) -> (World, Rows) {
    let world = World::with(form);
    let mut rows = Rows::new();
    let mut t = world.begin(ReadCommitted);
    change(&world, &mut t, random, &mut rows, 400);
    t.commit().unwrap();
    (world, rows)
}

/// Between two items of each scan others change, delete and insert rows, take back, and what is left goes; indexes come and go.
#[test]
fn nothing_of_what_others_do() {
    for (turn, form) in forms().enumerate() {
        for isolation in LEVELS {
            let mut random = Random(turn as u64);
            let (world, mut rows) = filled(form, &mut random);
            let mut reader = world.begin(isolation);
            // Of a transaction with changes of its own, too.
            change(&world, &mut reader, &mut random, &mut rows, 20 * (turn % 2));
            let view = reader.read_view().unwrap();
            let mut open: Vec<(&str, RowScan, Vec<Seen>)> =
                scans(&world, &view).into_iter().map(|(name, scan)| (name, scan, Vec::new())).collect();
            let mut by_batches: Vec<(&str, Batches, Vec<Seen>)> =
                batches(&world, &view).into_iter().map(|(name, scan)| (name, scan, Vec::new())).collect();
            for round in 0..6 {
                for (_, scan, seen) in &mut open {
                    seen.extend(scan.by_ref().take(random.below(60) as usize).map(row));
                }
                for (_, scan, seen) in &mut by_batches {
                    seen.extend(scan.take(random.below(60) as usize));
                }
                let mut writer = world.begin_impatient(ReadCommitted);
                // Rows that the reader has locked are left alone.
                for _ in 0..40 {
                    let number = random.below(400) as i64;
                    let Some(rid) = world.find(&mut writer, number) else { continue };
                    let savepoint = writer.savepoint();
                    let changed = match random.below(4) {
                        0 => writer.delete(&world.table, rid),
                        1 => writer.update(&world.table, rid, &[(1, ValueRef::Int(random.below(40) as i64))]),
                        2 => writer.update(&world.table, rid, &[(0, ValueRef::Int(1000 + 1000 * round + number))]),
                        _ => writer.update(&world.table, rid, &[(2, ValueRef::Text(&random.text(200)))]),
                    };
                    if changed.is_err() {
                        writer.roll_back_to(savepoint).unwrap();
                    }
                }
                if random.below(3) == 0 {
                    writer.rollback().unwrap()
                } else {
                    writer.commit().unwrap()
                }
                world.database.remove_leftovers().unwrap();
            }
            let mut in_parts = Rows::new();
            for (name, scan, mut seen) in open {
                seen.extend(scan.map(row));
                match name {
                    "by number" => assert!(seen.is_sorted_by_key(|row| row.0)),
                    "by value" => assert!(seen.is_sorted_by_key(|row| row.1.0)),
                    "by number, backward" => assert!(seen.iter().rev().is_sorted_by_key(|row| row.0)),
                    "by value, backward" => assert!(seen.iter().rev().is_sorted_by_key(|row| row.1.0)),
                    _ => {}
                }
                let (count, seen) = (seen.len(), seen.into_iter().collect::<Rows>());
                if name == "part" {
                    in_parts.extend(seen);
                } else {
                    assert!(seen == rows && count == rows.len(), "{name}, {isolation:?}: {count} rows, not {}", rows.len());
                }
            }
            assert!(in_parts == rows, "in parts, {isolation:?}");
            let numbers: Rows = rows.iter().map(|(number, (value, _))| (*number, (*value, String::new()))).collect();
            for (name, scan, mut seen) in by_batches {
                seen.extend(scan);
                let is_in_order = match name {
                    "by number" | "numbers by number" => seen.is_sorted_by_key(|row| row.0),
                    "by value, backward" => seen.iter().rev().is_sorted_by_key(|row| row.1.0),
                    "numbers by value" => seen.is_sorted_by_key(|row| row.1.0),
                    _ => true,
                };
                let (count, expected) = (seen.len(), if name.starts_with("numbers") { &numbers } else { &rows });
                let is_same = seen.into_iter().collect::<Rows>() == *expected && count == rows.len();
                assert!(is_in_order && is_same, "{name} by batches, {isolation:?}: {count} rows, not {}", rows.len());
            }
        }
    }
}

/// An index is built, one is dropped, the table is emptied and dropped: scans that are open go on.
#[test]
fn tables_and_indexes_come_and_go() {
    for isolation in LEVELS {
        let mut random = Random(7);
        let (world, rows) = filled(Form::default(), &mut random);
        let mut reader = world.begin(isolation);
        let view = reader.read_view().unwrap();
        let mut open: Vec<_> = scans(&world, &view).into_iter().filter(|(name, _)| *name != "part").collect();
        let mut seen: Vec<Vec<Seen>> = open.iter_mut().map(|(_, scan)| vec![row(scan.next().unwrap())]).collect();
        let mut definer = world.begin(ReadCommitted);
        definer.drop_index("value").unwrap();
        // Who has dropped it does not read by it any more; views of before do.
        assert!(matches!(definer.rows_by(&world.table, &world.by_value, Way::Forward), Err(Error::Stale { .. })));
        definer.commit().unwrap();
        let mut definer = world.begin(ReadCommitted);
        let before = definer.read_view().unwrap();
        let mut own = before.scan(&world.table, &ScanRequest::default()).unwrap().into_rows();
        assert!(own.next().unwrap().is_ok());
        let savepoint = definer.savepoint();
        definer.drop_table("t").unwrap();
        assert!(matches!(definer.rows(&world.table), Err(Error::Stale { .. })));
        assert!(before.scan(&world.table, &ScanRequest::default()).is_ok());
        definer.roll_back_to(savepoint).unwrap();
        assert_eq!(definer.rows(&world.table).unwrap().map(Result::unwrap).count(), rows.len());
        definer.truncate_table("t").unwrap();
        assert!(matches!(definer.rows(&world.table), Err(Error::Stale { .. })));
        definer.commit().unwrap();
        assert_eq!(own.map(Result::unwrap).count() + 1, rows.len());
        let mut definer = world.begin(ReadCommitted);
        definer.drop_table("t").unwrap();
        definer.commit().unwrap();
        for ((name, scan), seen) in open.into_iter().zip(&mut seen) {
            seen.extend(scan.map(row));
            assert!(seen.len() == rows.len() && seen.iter().cloned().collect::<Rows>() == rows, "{name}, {isolation:?}");
        }
    }
}

/// The transaction of the scans changes rows between their items: rows that it leaves alone come once, others as they were or as they are; after its commit, too.
#[test]
fn own_changes_between_items() {
    for (turn, form) in forms().enumerate() {
        for isolation in LEVELS {
            let mut random = Random(100 + turn as u64);
            let (world, rows) = filled(form, &mut random);
            let mut t = world.begin(isolation);
            let view = t.read_view().unwrap();
            let mut open: Vec<_> = scans(&world, &view).into_iter().map(|(name, scan)| (name, scan, Vec::new())).collect();
            let mut now = rows.clone();
            // What each row was at some time, and those that were never changed.
            let mut states: BTreeMap<i64, BTreeSet<(i64, String)>> =
                rows.iter().map(|(number, row)| (*number, BTreeSet::from([row.clone()]))).collect();
            let mut untouched: BTreeSet<i64> = rows.keys().copied().collect();
            for _ in 0..5 {
                for (_, scan, seen) in &mut open {
                    seen.extend(scan.by_ref().take(random.below(60) as usize).map(row));
                }
                let savepoint = t.savepoint();
                let mut next = now.clone();
                untouched = &untouched - &change(&world, &mut t, &mut random, &mut next, 15);
                for (number, row) in &next {
                    states.entry(*number).or_default().insert(row.clone());
                }
                // Some of it was seen before it is taken back.
                for (_, scan, seen) in &mut open {
                    seen.extend(scan.by_ref().take(random.below(20) as usize).map(row));
                }
                if random.below(3) == 0 {
                    t.roll_back_to(savepoint).unwrap();
                } else {
                    now = next;
                }
            }
            if turn % 2 == 0 {
                t.commit().unwrap();
            }
            let mut in_parts = Vec::new();
            for (name, scan, mut seen) in open {
                seen.extend(scan.map(row));
                for (number, row) in &seen {
                    assert!(states.get(number).is_some_and(|states| states.contains(row)), "{name}, {isolation:?}: {number} {row:?}");
                }
                if name == "part" {
                    in_parts.append(&mut seen);
                } else {
                    come_once(name, &seen, &untouched);
                }
            }
            come_once("parts", &in_parts, &untouched);
        }
    }
}

fn come_once(name: &str, seen: &[Seen], numbers: &BTreeSet<i64>) {
    for number in numbers {
        assert_eq!(seen.iter().filter(|row| row.0 == *number).count(), 1, "{name}: row {number}, which is as it was");
    }
}

/// A program that takes back what it did with some of the rows goes on with its scan, by whatever way that comes to them.
#[test]
fn rows_are_changed_one_by_one_and_some_taken_back() {
    for isolation in LEVELS {
        for way in 0..3 {
            let mut random = Random(way);
            let (world, rows) = filled(Form::default(), &mut random);
            let mut t = world.begin(isolation);
            let view = t.read_view().unwrap();
            let everything = ScanRequest::default();
            let scan = match way {
                0 => view.scan(&world.table, &everything),
                1 => view.range(&world.table, &world.by_number, all_keys(), Way::Forward, &everything),
                _ => view.range(&world.table, &world.by_number, all_keys(), Way::Backward, &everything),
            };
            let mut expected = Rows::new();
            let long = "long ".repeat(900);
            for found in scan.unwrap().into_rows() {
                let (rid, values) = found.unwrap();
                let (number, (value, text)) = parts(&values);
                let savepoint = t.savepoint();
                assert!(t.update(&world.table, rid, &[(1, ValueRef::Int(value + 1)), (2, ValueRef::Text(&long))]).unwrap());
                if number % 2 == 0 {
                    t.roll_back_to(savepoint).unwrap();
                }
                let row = if number % 2 == 0 { (value, text) } else { (value + 1, long.clone()) };
                assert!(expected.insert(number, row).is_none(), "{number} twice");
            }
            drop(view);
            assert_eq!(expected.len(), rows.len());
            assert!(world.see(&mut t) == expected);
            t.commit().unwrap();
            assert!(world.check() == expected);
        }
    }
}

/// Rows that the scan has come to, with large values, are taken back before they are delivered.
#[test]
fn large_values_that_are_taken_back() {
    for isolation in LEVELS {
        let world = World::new();
        let rids = world.fill((0..40).map(|number| (number, number)));
        let mut t = world.begin(isolation);
        let savepoint = t.savepoint();
        let long = "long ".repeat(900);
        for rid in &rids {
            assert!(t.update(&world.table, *rid, &[(2, ValueRef::Text(&long))]).unwrap());
        }
        for number in 100..110 {
            world.insert(&mut t, number, number, &long).unwrap();
        }
        let view = t.read_view().unwrap();
        let mut open: Vec<_> = scans(&world, &view).into_iter().filter(|(name, _)| *name != "part").collect();
        let first: Vec<Seen> = open.iter_mut().map(|(_, scan)| scan.take(2).map(row).last().unwrap()).collect();
        assert!(first.iter().all(|row| row.1.1 == long));
        t.roll_back_to(savepoint).unwrap();
        // Others take the pages of these values.
        let mut other = world.begin(ReadCommitted);
        for number in 200..300 {
            world.insert(&mut other, number, number, &"other ".repeat(800)).unwrap();
        }
        other.commit().unwrap();
        for (name, scan) in open {
            let rest: Vec<Seen> = scan.map(row).collect();
            assert!(rest.iter().all(|row| row.1.1.is_empty() && row.0 < 100), "{name}: {rest:?}");
            assert!(rest.len() >= 30, "{name}: {} rows", rest.len());
        }
    }
}

/// A view of a transaction with changes outlives its commit. Others change the same rows then, again and again: the view goes on with what that transaction left.
#[test]
fn a_view_outlives_the_commit_of_its_changes() {
    for isolation in LEVELS {
        let world = World::new();
        world.fill((0..60).map(|number| (number, 1)));
        let mut t = world.begin(isolation);
        for number in 0..20 {
            world.set(&mut t, number, 2).unwrap();
        }
        for number in 20..40 {
            let rid = world.find(&mut t, number).unwrap();
            assert!(t.delete(&world.table, rid).unwrap());
        }
        for number in 60..80 {
            world.insert(&mut t, number, 3, "").unwrap();
        }
        let expected = world.see(&mut t);
        let view = t.read_view().unwrap();
        t.commit().unwrap();
        let look = |when: &str| {
            for (name, scan) in scans(&world, &view).into_iter().filter(|(name, _)| *name != "part") {
                let seen: Vec<Seen> = scan.map(row).collect();
                let count = seen.len();
                assert!(seen.into_iter().collect::<Rows>() == expected && count == expected.len(), "{name}, {when}, {isolation:?}");
            }
            let keys = view.keys(&world.table, &world.by_value, all_keys(), Way::Forward).unwrap();
            let keys: Vec<Value> = keys.map(|key| key.unwrap().1.remove(0)).collect();
            let mut values: Vec<Value> = expected.values().map(|row| Value::Int(row.0)).collect();
            values.sort_by_key(|value| format!("{value:?}"));
            assert_eq!(keys, values, "{when}, {isolation:?}");
        };
        look("at once");
        for round in 0..6 {
            let mut writer = world.begin(ReadCommitted);
            for number in (0..80).filter(|number| number % 3 != round % 3) {
                match world.find(&mut writer, number) {
                    Some(rid) if number % 5 == round % 5 => assert!(writer.delete(&world.table, rid).unwrap()),
                    Some(rid) => assert!(writer.update(&world.table, rid, &[(1, ValueRef::Int(10 + round))]).unwrap()),
                    None => drop(world.insert(&mut writer, number, 20 + round, "").unwrap()),
                }
            }
            writer.commit().unwrap();
            world.database.remove_leftovers().unwrap();
            look("after changes of others");
        }
        // When it is gone, so is what it needed.
        drop(view);
        world.check();
    }
}

/// Columns that are asked for need not be those of the index, by which an entry is told from one of an earlier key.
#[test]
fn few_columns_by_an_index() {
    for form in forms() {
        let mut random = Random(5);
        let (world, rows) = filled(form, &mut random);
        let mut reader = world.begin(RepeatableRead);
        let view = reader.read_view().unwrap();
        let mut writer = world.begin(ReadCommitted);
        for number in rows.keys() {
            world.set(&mut writer, *number, 100).unwrap();
        }
        for columns in [vec![], vec![0], vec![2], vec![2, 0]] {
            let request = ScanRequest { columns: Some(columns.clone()), rids: true, ..ScanRequest::default() };
            for index in [&world.by_number, &world.by_value] {
                let range = || view.range(&world.table, index, all_keys(), Way::Forward, &request).unwrap();
                let mut count = 0;
                for batch in range() {
                    let batch = batch.unwrap();
                    assert_eq!(batch.rids().unwrap().len(), batch.len());
                    count += batch.len();
                }
                assert_eq!(count, rows.len(), "{columns:?} by {}", index.name());
                let found = range().into_rows().map(|row| row.unwrap().1);
                let wanted = |(number, (_, text)): (&i64, &(i64, String))| {
                    let value = |column: &usize| if *column == 0 { Value::Int(*number) } else { Value::Text(text.as_str().into()) };
                    columns.iter().map(value).collect::<Vec<Value>>()
                };
                let sorted = |mut rows: Vec<Vec<Value>>| {
                    rows.sort_by_key(|row| format!("{row:?}"));
                    rows
                };
                assert!(sorted(found.collect()) == sorted(rows.iter().map(wanted).collect()), "{columns:?} by {}", index.name());
            }
        }
    }
}

/// A limit counts rows that are delivered; who wants few rows by an index does not read many.
#[test]
fn as_many_as_are_wanted() {
    for form in forms() {
        let mut random = Random(9);
        let (world, rows) = filled(form, &mut random);
        world.database.remove_leftovers().unwrap();
        let view = world.database.read_view();
        let predicate = pagefold_types::Predicate::parse("number >= 100", &world.table.attributes().schema).unwrap();
        for condition in [None, Some(predicate)] {
            let all = rows.keys().filter(|number| condition.is_none() || **number >= 100).copied().collect::<Vec<_>>();
            for limit in [0, 1, 7, 64, all.len() - 1, all.len(), all.len() + 1] {
                let request = ScanRequest { condition: condition.clone(), limit: Some(limit as u64), ..ScanRequest::default() };
                let by_number = || view.range(&world.table, &world.by_number, all_keys(), Way::Forward, &request).unwrap();
                let wanted = &all[..limit.min(all.len())];
                let found: Vec<i64> = by_number().into_rows().map(|found| row(found).0).collect();
                assert_eq!(found, wanted);
                let batches: Vec<i64> = by_number().flat_map(|batch| batch.unwrap().columns()[0].ints().to_vec()).collect();
                assert_eq!(batches, wanted);
                let pages = || view.scan(&world.table, &request).unwrap();
                assert_eq!(pages().split(3).len(), 1);
                let batches: Vec<_> = pages().map(Result::unwrap).collect();
                assert_eq!(batches.iter().map(|batch| batch.len()).sum::<usize>(), wanted.len());
                for column in batches.iter().flat_map(|batch| batch.columns().iter().map(|column| (batch.len(), column))) {
                    assert_eq!((column.1.validity().len(), column.1.null_count()), (column.0, 0));
                }
                assert_eq!(pages().into_rows().map(row).count(), wanted.len());
            }
        }
        let asked = || world.table.data_sets().map(|data_set| data_set.counters().getpages).sum::<u64>();
        let before = asked();
        let one = ScanRequest { limit: Some(1), ..ScanRequest::default() };
        assert_eq!(view.range(&world.table, &world.by_value, all_keys(), Way::Backward, &one).unwrap().into_rows().map(row).count(), 1);
        assert!(asked() - before <= 3, "{} pages", asked() - before);
    }
}

/// The rows of some pages, and all of them page by page.
#[test]
fn pages_by_their_numbers() {
    for form in forms() {
        let mut random = Random(3);
        let (world, rows) = filled(form, &mut random);
        let view = world.database.read_view();
        let all = world.table.data_sets().map(|data_set| data_set.data_page_numbers());
        let all: Vec<(u16, u32)> =
            (0..).zip(all).flat_map(|(partition, pages)| pages.into_iter().map(move |page| (partition, page))).collect();
        let of = |pages: Vec<(u16, u32)>| view.scan_pages(&world.table, pages, &ScanRequest::default()).unwrap();
        let mut seen = Rows::new();
        for page in &all {
            for found in of(vec![*page]).into_rows() {
                let rid = found.as_ref().unwrap().0;
                assert_eq!((rid.partition(), rid.page()), *page);
                let (number, row) = row(found);
                assert!(seen.insert(number, row).is_none());
            }
        }
        assert!(seen == rows);
        // Every third, by several threads' parts.
        let some: Vec<(u16, u32)> = all.iter().copied().step_by(3).collect();
        let expected: usize = some.iter().map(|page| of(vec![*page]).into_rows().count()).sum();
        assert_eq!(of(some).split(2).into_iter().flat_map(|part| part.into_rows().map(row)).count(), expected);
        assert_eq!(of(Vec::new()).into_rows().count(), 0);
    }
}

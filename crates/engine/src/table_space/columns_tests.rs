//! Tables under `page`: what becomes of their pages, and that transactions can be taken back whatever became of them.

use super::tests::{load_rows, refs};
use super::*;
use crate::database::{Database, Isolation, OpenMode, Settings, TransactionOptions};
use crate::pool::{Access, By, PoolSettings};
use crate::test_random::Random;
use crate::{Error, Result};
use pagefold_format::data::{DataPage, Stored, StoredKind};
use pagefold_io::{MemoryStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Rid, Schema, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

type Model = BTreeMap<Rid, Vec<Value>>;

fn database(storage: &Arc<MemoryStorage>, mode: OpenMode) -> Database {
    let storage: Arc<dyn Storage> = Arc::clone(storage) as Arc<dyn Storage>;
    let pools = PoolSettings { memory_bytes: 4 << 20, ..PoolSettings::default() };
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    Database::open(storage, clock, Path::new("db"), mode, Settings { pools, ..Settings::default() }).unwrap()
}

fn row(random: &mut Random, id: i64, long: bool) -> Vec<Value> {
    let words = ["final ", "express ", "slyly ", "ironic "];
    let count = if long { 6 + random.index(6) } else { random.index(3) };
    let text: String = (0..count).map(|_| words[random.index(4)]).collect();
    vec![Value::Int(id), Value::Int(random.index(500) as i64), Value::Text(text)]
}

/// A table of 2,000 rows, loaded into full pages.
fn loaded(database: &Database, random: &mut Random) -> (Arc<Table>, Model) {
    let schema = Schema::new(vec![
        Column::new("id", DataType::BigInt, false),
        Column::new("n", DataType::Integer, true),
        Column::new("text", DataType::Varchar(None), false),
    ]);
    let mut change = database.change();
    let attributes = TableAttributes { method: Method::Page, ..TableAttributes::new("t", schema.unwrap()).with_page_bytes(4096) };
    let table = change.create_table(attributes).unwrap();
    let rows: Vec<Vec<Value>> = (0..2000).map(|id| row(random, id, false)).collect();
    let rids = load_rows(&table, &rows);
    change.commit().unwrap();
    (table, rids.into_iter().zip(rows).collect())
}

fn compare(table: &Table, model: &Model) {
    let mut seen = Model::new();
    let visited = table.visit_newest(DataPages::of(table), |rid, record| {
        assert!(seen.insert(rid, table.values(record)?).is_none(), "row {rid} came twice");
        Ok::<_, Error>(())
    });
    visited.unwrap();
    assert!(seen == *model);
}

/// Rows by how they lie.
#[derive(Debug, Default)]
struct Census {
    /// By column; those that are hosted among them.
    columns: usize,
    /// By themselves on a page with a column part; the same.
    singles: usize,
    /// Moved by themselves.
    moved: usize,
    /// On another page, with others of theirs.
    hosted: usize,
}

fn census(table: &Table) -> Census {
    let mut census = Census::default();
    for data_set in table.data_sets() {
        for number in data_set.data_page_numbers() {
            let page = table.manager().shared(data_set, number, Access::Scan).unwrap();
            let view = DataPage::new(&page);
            view.validate().unwrap();
            for row in (0..view.slot_count()).filter_map(|slot| view.row(slot)) {
                match Stored::parse(row, view.dictionary_version()).unwrap() {
                    Stored::Forward(_) | Stored::HostedForward { .. } => census.moved += 1,
                    Stored::Away { .. } | Stored::Forwarded(_) => {}
                    stored => {
                        census.columns += usize::from(row.kind == StoredKind::Column);
                        census.singles += usize::from(row.kind != StoredKind::Column && view.has_columns());
                        census.hosted += usize::from(matches!(stored, Stored::Hosted { .. }));
                    }
                }
            }
        }
    }
    census
}

/// A slot that a page has for rows of another one means no row to who names it; how many there are with one.
fn hosted_slots_are_no_rids(table: &Table) -> usize {
    let mut slots = Vec::new();
    for (partition, data_set) in table.data_sets().enumerate() {
        for number in data_set.data_page_numbers() {
            let page = table.manager().shared(data_set, number, Access::Scan).unwrap();
            let view = DataPage::new(&page);
            let hosted = (0..view.slot_count()).filter(|slot| view.row(*slot).is_some_and(|row| row.home.is_some()));
            slots.extend(hosted.map(|slot| Rid::new(partition as u16, number, slot)));
        }
    }
    for rid in &slots {
        assert!(table.get(*rid).unwrap().is_none(), "{rid}");
        assert!(!table.update(*rid, &[(1, Value::Int(1).as_ref())]).unwrap() && !table.take_out(By::Nobody, *rid).unwrap(), "{rid}");
        assert!((1..=4).all(|kind| table.ghost_record(*rid, kind).unwrap().is_none()), "{rid}");
    }
    slots.len()
}

#[test]
fn pages_are_filled_and_changed_and_forward_rows() {
    let storage = Arc::new(MemoryStorage::new());
    let database = database(&storage, OpenMode::Create);
    let mut random = Random(4);
    let (table, mut model) = loaded(&database, &mut random);
    let Census { columns, singles, moved, hosted } = census(&table);
    assert_eq!((columns, singles, moved, hosted), (2000, 0, 0, 0));
    let pages = table.data_sets().map(|data_set| data_set.data_page_numbers().len()).sum::<usize>();
    assert!(pages < 12, "{pages} pages");

    // Numbers from the range that is there fit their column as it is.
    let rids: Vec<Rid> = model.keys().copied().collect();
    for rid in rids.iter().step_by(3) {
        let n = Value::Int(random.index(500) as i64);
        assert!(table.update(*rid, &[(1, n.as_ref())]).unwrap());
        model.get_mut(rid).unwrap()[1] = n;
    }
    let Census { columns, .. } = census(&table);
    assert!(columns > 1990, "{columns} rows by column");
    compare(&table, &model);

    // Inserts fill pages, which are rebuilt again and again.
    for id in 2000..6000 {
        let row = row(&mut random, id, false);
        let rid = table.insert(&refs(&row)).unwrap();
        assert!(model.insert(rid, row).is_none());
    }
    let Census { columns, singles, moved, hosted } = census(&table);
    assert!(columns > 5000 && columns + singles <= 6000 && moved + hosted == 0, "{columns} {singles} {moved} {hosted}");
    compare(&table, &model);

    // Longer texts do not fit: rows lie by themselves, then others of their page go to one that hosts them. None moves by itself.
    for rid in rids.iter().take(400) {
        let row = row(&mut random, 1, true);
        assert!(table.update(*rid, &[(2, row[2].as_ref())]).unwrap());
        model.get_mut(rid).unwrap()[2] = row[2].clone();
    }
    let Census { columns, singles, moved, hosted } = census(&table);
    assert!(hosted > 100 && moved == 0 && columns + singles == 6000, "{columns} {singles} {moved} {hosted}");
    assert!(hosted_slots_are_no_rids(&table) >= hosted);
    compare(&table, &model);
    for rid in &rids {
        assert_eq!(table.get(*rid).unwrap().map(|record| table.values(&record).unwrap()).as_ref(), model.get(rid));
    }
}

/// One random change of a row, in a transaction and its model.
fn change_row(
    transaction: &mut crate::database::Transaction<'_>,
    table: &Arc<Table>,
    model: &mut Model,
    random: &mut Random,
) -> Result<()> {
    let rid = model.keys().nth(random.index(model.len())).copied();
    let long = random.index(3) == 0;
    let fresh = row(random, 7, long);
    match (random.index(8), rid) {
        (0, _) | (_, None) => {
            let rid = transaction.insert(table, &refs(&fresh))?;
            assert!(model.insert(rid, fresh).is_none());
        }
        (1, Some(rid)) => {
            assert!(transaction.delete(table, rid)?);
            model.remove(&rid);
        }
        (2..=4, Some(rid)) => {
            assert!(transaction.update(table, rid, &[(1, fresh[1].as_ref())])?);
            model.get_mut(&rid).unwrap()[1] = fresh[1].clone();
        }
        (_, Some(rid)) => {
            assert!(transaction.update(table, rid, &[(2, fresh[2].as_ref())])?);
            model.get_mut(&rid).unwrap()[2] = fresh[2].clone();
        }
    }
    Ok(())
}

#[test]
fn transactions_are_taken_back() {
    let storage = Arc::new(MemoryStorage::new());
    let database = database(&storage, OpenMode::Create);
    let mut random = Random(8);
    let (table, mut model) = loaded(&database, &mut random);
    let mut found = Vec::new();
    for round in 0..120 {
        let options = TransactionOptions { isolation: Isolation::ReadCommitted, ..TransactionOptions::default() };
        let mut transaction = database.begin(options);
        let mut after = model.clone();
        for _ in 0..random.index(500) {
            change_row(&mut transaction, &table, &mut after, &mut random).unwrap();
        }
        // Somebody else makes pages be rebuilt meanwhile.
        let mut other = database.begin(options);
        let mut others = Vec::new();
        for _ in 0..random.index(40) {
            let row = row(&mut random, round, false);
            others.push((other.insert(&table, &refs(&row)).unwrap(), row));
        }
        other.commit().unwrap();
        if random.index(2) == 0 {
            transaction.rollback().unwrap();
        } else {
            transaction.commit().unwrap();
            model = after;
        }
        model.extend(others);
        if round % 10 == 9 {
            hosted_slots_are_no_rids(&table);
            compare(&table, &model);
            found.push(census(&table));
        }
    }
    let most = |of: fn(&Census) -> usize| found.iter().map(of).max().unwrap();
    assert!(most(|census| census.columns) > 100 && most(|census| census.singles) > 100 && most(|census| census.hosted) > 100, "{found:?}");
    drop(table);
    drop(database);
    let database = self::database(&storage, OpenMode::Read);
    compare(&database.table("t").unwrap(), &model);
}

/// Changes rows of nearly a page, beside which nothing has room, not even a pointer in their place; gives the pages there are in the end, and the rows there were at most.
fn change_wide_rows(method: Method, seed: u64) -> (usize, usize) {
    let storage = Arc::new(MemoryStorage::new());
    let database = database(&storage, OpenMode::Create);
    let mut random = Random(seed);
    let columns = vec![Column::new("id", DataType::BigInt, false), Column::new("text", DataType::Varchar(None), false)];
    let attributes = TableAttributes { method, ..TableAttributes::new("t", Schema::new(columns).unwrap()).with_page_bytes(2048) };
    let mut change = database.change();
    let table = change.create_table(attributes).unwrap();
    change.commit().unwrap();
    let widest =
        table.record_bytes_max() - table.layout.encode(&refs(&[Value::Int(0), Value::Text(String::new())]), &mut Vec::new()).unwrap();
    let wide_row = |random: &mut Random, id: i64| {
        let length = match random.index(4) {
            0 => random.index(60),
            1 => widest - random.index(90),
            2 => widest - random.index(9),
            _ => random.index(widest),
        };
        let text = (0..length).map(|_| char::from(33 + random.index(94) as u8)).collect();
        vec![Value::Int(id), Value::Text(text)]
    };
    let (mut model, mut most) = (Model::new(), 0);
    let options = TransactionOptions { isolation: Isolation::ReadCommitted, ..TransactionOptions::default() };
    for round in 0..60 {
        let mut transaction = database.begin(options);
        let mut after = model.clone();
        for _ in 0..1 + random.index(30) {
            let rid = after.keys().nth(random.index(after.len().max(1))).copied();
            let fresh = wide_row(&mut random, round);
            match (random.index(8), rid) {
                (0, _) | (_, None) => {
                    let rid = transaction.insert(&table, &refs(&fresh)).unwrap();
                    assert!(after.insert(rid, fresh).is_none());
                }
                (1, Some(rid)) => {
                    assert!(transaction.delete(&table, rid).unwrap());
                    after.remove(&rid);
                }
                (_, Some(rid)) => {
                    assert!(transaction.update(&table, rid, &[(1, fresh[1].as_ref())]).unwrap());
                    after.get_mut(&rid).unwrap()[1] = fresh[1].clone();
                }
            }
            most = most.max(model.len() + after.len());
        }
        if random.index(2) == 0 {
            transaction.rollback().unwrap();
        } else {
            transaction.commit().unwrap();
            model = after;
        }
        compare(&table, &model);
        database.remove_leftovers().unwrap();
    }
    (table.data_sets().map(|data_set| data_set.data_page_numbers().len()).sum(), most)
}

#[test]
fn rows_as_wide_as_a_page_are_changed() {
    for method in [Method::None, Method::Row, Method::Page, Method::Fixed, Method::Huffman] {
        for seed in 0..60 {
            let (pages, most) = change_wide_rows(method, seed);
            assert!(pages <= most, "{method:?}, seed {seed}: {pages} pages for {most} rows at most");
        }
    }
}

/// Short rows beside each other that become as wide as a page, but for so many bytes, one after the other.
fn widen_rows(page_bytes: usize, rows: i64, short: usize, shuffled: bool) {
    let storage = Arc::new(MemoryStorage::new());
    let database = database(&storage, OpenMode::Create);
    let columns = vec![Column::new("id", DataType::BigInt, false), Column::new("text", DataType::Varchar(None), false)];
    let schema = Schema::new(columns).unwrap();
    let attributes = TableAttributes { method: Method::Page, ..TableAttributes::new("t", schema).with_page_bytes(page_bytes) };
    let mut change = database.change();
    let table = change.create_table(attributes).unwrap();
    change.commit().unwrap();
    let mut random = Random(3);
    let row = |id, text: String| vec![Value::Int(id), Value::Text(text)];
    let widest = table.record_bytes_max() - table.layout.encode(&refs(&row(0, String::new())), &mut Vec::new()).unwrap() - short;
    let mut model = Model::new();
    let options = TransactionOptions { isolation: Isolation::ReadCommitted, ..TransactionOptions::default() };
    let mut transaction = database.begin(options);
    for id in 0..rows {
        let fresh = row(id, String::new());
        model.insert(transaction.insert(&table, &refs(&fresh)).unwrap(), fresh);
    }
    transaction.commit().unwrap();
    let mut rids: Vec<Rid> = model.keys().copied().collect();
    for at in (1..rids.len()).filter(|_| shuffled) {
        rids.swap(at, random.index(at + 1));
    }
    for rid in rids {
        let row = model.get_mut(&rid).unwrap();
        row[1] = Value::Text((0..widest).map(|_| char::from(33 + random.index(94) as u8)).collect());
        let mut transaction = database.begin(options);
        let done = transaction.update(&table, rid, &[(1, row[1].as_ref())]);
        assert!(matches!(done, Ok(true)), "{page_bytes} {short}, row {:?}: {done:?}", row[0]);
        transaction.commit().unwrap();
    }
    compare(&table, &model);
    let pages: usize = table.data_sets().map(|data_set| data_set.data_page_numbers().len()).sum();
    let fit = page_bytes / (page_bytes - short);
    assert!(pages <= model.len() / fit + 6, "{page_bytes} {short}: {pages} pages for {rows} rows");
}

#[test]
fn rows_become_as_wide_as_a_page() {
    for (page_bytes, rows, short) in
        [(8192, 300, 250), (4096, 300, 128), (4096, 40, 128), (8192, 300, 1000), (2048, 300, 1000), (8192, 300, 60), (4096, 300, 0)]
    {
        widen_rows(page_bytes, rows, short, false);
        widen_rows(page_bytes, rows, short, true);
    }
}

/// Of rows as wide as a page and tiny ones, half of all changes are taken back: pages of the table in the end.
fn take_back_wide_rows(maxrows: u16, changes: usize) -> usize {
    let storage = Arc::new(MemoryStorage::new());
    let database = database(&storage, OpenMode::Create);
    let columns = vec![Column::new("id", DataType::BigInt, false), Column::new("text", DataType::Varchar(None), false)];
    let mut attributes =
        TableAttributes { method: Method::Page, ..TableAttributes::new("t", Schema::new(columns).unwrap()).with_page_bytes(4096) };
    attributes.maxrows = maxrows;
    let mut change = database.change();
    let table = change.create_table(attributes).unwrap();
    change.commit().unwrap();
    let mut random = Random(9);
    let row = |id: i64, random: &mut Random| {
        let length = if random.index(2) == 0 { 0 } else { table.record_bytes_max() - 12 };
        vec![Value::Int(id), Value::Text((0..length).map(|_| char::from(33 + random.index(94) as u8)).collect())]
    };
    let options = TransactionOptions { isolation: Isolation::ReadCommitted, ..TransactionOptions::default() };
    let mut transaction = database.begin(options);
    let mut model: Model =
        (0..26).map(|id| row(id, &mut random)).map(|row| (transaction.insert(&table, &refs(&row)).unwrap(), row)).collect();
    transaction.commit().unwrap();
    let rids: Vec<Rid> = model.keys().copied().collect();
    for round in 0..changes / 4 {
        let mut transaction = database.begin(options);
        let mut after = model.clone();
        for _ in 0..4 {
            let (rid, fresh) = (rids[random.index(rids.len())], row(round as i64, &mut random));
            assert!(transaction.update(&table, rid, &[(1, fresh[1].as_ref())]).unwrap());
            after.get_mut(&rid).unwrap()[1] = fresh[1].clone();
        }
        if random.index(2) == 0 {
            transaction.rollback().unwrap();
        } else {
            transaction.commit().unwrap();
            model = after;
        }
    }
    compare(&table, &model);
    table.data_sets().map(|data_set| data_set.data_page_numbers().len()).sum()
}

#[test]
fn what_is_taken_back_finds_the_pages_that_are_there() {
    for maxrows in [4096, 5] {
        let course = [2_000, 8_000].map(|changes| take_back_wide_rows(maxrows, changes));
        assert!(course[1] <= 45, "MAXROWS {maxrows}: {course:?} pages for 26 rows");
    }
}

/// Large values and rows that change, in partitions of 16 pages.
#[test]
fn pages_given_back_in_full_partitions_are_taken_again() {
    for (method, large) in [(Method::None, true), (Method::None, false), (Method::Page, true), (Method::Page, false)] {
        let storage = Arc::new(MemoryStorage::new());
        let database = database(&storage, OpenMode::Create);
        let columns = vec![Column::new("id", DataType::BigInt, false), Column::new("text", DataType::Varchar(None), false)];
        let mut attributes = TableAttributes { method, ..TableAttributes::new("t", Schema::new(columns).unwrap()).with_page_bytes(2048) };
        attributes.partition_bytes = 16 * 2048;
        let mut change = database.change();
        let table = change.create_table(attributes).unwrap();
        change.commit().unwrap();
        let mut random = Random(1);
        let mut rids = Vec::new();
        let mut course = Vec::new();
        for step in 0..4_000 {
            let length = if large { 6_000 } else { [0, 20, 600][random.index(3)] };
            let row = vec![Value::Int(step), Value::Text((0..length).map(|_| char::from(33 + random.index(94) as u8)).collect())];
            let mut transaction = database.begin(TransactionOptions::default());
            if rids.len() < 20 {
                rids.push(transaction.insert(&table, &refs(&row)).unwrap());
            } else {
                assert!(transaction.update(&table, rids[random.index(rids.len())], &[(1, row[1].as_ref())]).unwrap());
            }
            transaction.commit().unwrap();
            database.remove_leftovers().unwrap();
            if step % 1_000 == 999 {
                course.push(table.data_sets().count());
            }
        }
        assert!(course[3] <= course[0] + 2 && course[3] <= 12, "{method:?}: {course:?} partitions");
    }
}

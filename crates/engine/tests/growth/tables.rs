//! Pages of tables: rows that are replaced by others, fixed columns that change, texts that grow and shrink, in
//! transactions of every size, with and without an old reader.

use crate::world::{Form, Random, Rows, World, open};
use crate::{Course, changes};
use pagefold_engine::Error;
use pagefold_engine::database::{Durability, Isolation, OpenMode, Transaction, TransactionOptions};
use pagefold_engine::index::IndexFormat;
use pagefold_engine::pool::{Access, By};
use pagefold_engine::table_space::{BulkLoader, Method, TableAttributes};
use pagefold_format::data::DataPage;
use pagefold_format::page::{self, PageType};
use pagefold_io::{MemoryStorage, Storage};
use pagefold_types::{Rid, ValueRef};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Methods whose rows lie one by one.
const BY_ROW: [Method; 4] = [Method::None, Method::Row, Method::Fixed, Method::Huffman];
const ROWS: i64 = 20_000;
/// How rows lie, but for the method.
pub(crate) const FORM: Form = Form {
    method: Method::None,
    format: IndexFormat::Plain,
    memory_bytes: 16 << 20,
    background_threads: 0,
    page_bytes: 2048,
    small_partitions: None,
    small_extents: false,
};
/// How often pages are counted in a run.
const COUNTS: u64 = 40;
/// Pages that make no difference: ends of partitions, the page that inserts go to.
const SLACK: u64 = 6;

/// What a change does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A row is deleted, another one inserted.
    Replace,
    /// A column of fixed width.
    Number,
    /// A text, to one of another length.
    Text,
    /// One of these.
    Any,
}

pub(crate) fn text(random: &mut Random) -> String {
    // Mostly short, sometimes long; words that compress and letters that do not.
    let words = if random.below(10) == 0 { 40 } else { 13 };
    let letters = (0..random.below(12)).map(|_| char::from(b'a' + random.below(26) as u8)).collect::<String>();
    random.text(words) + &letters
}

pub(crate) fn begin(world: &World, isolation: Isolation) -> Transaction<'_> {
    world.database.begin(TransactionOptions { isolation, durability: Durability::Off, ..TransactionOptions::default() })
}

pub(crate) fn pages(world: &World) -> u64 {
    world.table.data_sets().map(|partition| u64::from(partition.page_count())).sum()
}

/// Pages of a table with these rows that was just loaded.
pub(crate) fn fresh_pages(form: Form, rows: &Rows) -> u64 {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let world = open(&storage, form, OpenMode::Create);
    let mut change = world.database.change();
    let mut attributes = TableAttributes::new("fresh", world.table.attributes().schema.clone()).with_page_bytes(form.page_bytes);
    attributes.method = form.method;
    let table = change.create_table(attributes).unwrap();
    if let Some(dictionary) = world.table.dictionary() {
        table.set_dictionary(dictionary.dictionary().clone()).unwrap();
    }
    let mut loader = BulkLoader::new(&table).unwrap();
    let mut placed = |_: Rid, _: &[u8]| Ok::<_, Error>(());
    for (number, (value, text)) in rows {
        let mut record = Vec::new();
        table.build_record(By::Nobody, &[ValueRef::Int(*number), ValueRef::Int(*value), ValueRef::Text(text)], &mut record).unwrap();
        loader.push(&record, &mut placed).unwrap();
    }
    loader.finish(&mut placed).unwrap();
    table.data_sets().map(|partition| u64::from(partition.page_count())).sum()
}

/// Makes changes, and counts pages meanwhile.
fn churn(world: &World, live: &mut [(Rid, i64)], kind: Kind, per_transaction: u64, total: u64) -> Course {
    let mut random = Random(per_transaction + total);
    let mut next = ROWS + total as i64;
    let mut course = Course::default();
    let mut done = 0;
    for part in 1..=COUNTS {
        while done < total * part / COUNTS {
            let mut transaction = begin(world, Isolation::ReadCommitted);
            for _ in 0..per_transaction {
                done += 1;
                let at = random.below(live.len() as u64) as usize;
                let value = random.below(1000) as i64;
                let kind = if kind == Kind::Any { [Kind::Replace, Kind::Number, Kind::Text][random.below(3) as usize] } else { kind };
                let rid = live[at].0;
                match kind {
                    Kind::Replace => {
                        assert!(transaction.delete(&world.table, rid).unwrap());
                        next += 1;
                        live[at] = (world.insert(&mut transaction, next, value, &text(&mut random)).unwrap(), next);
                    }
                    Kind::Number => assert!(transaction.update(&world.table, rid, &[(1, ValueRef::Int(value))]).unwrap()),
                    Kind::Text | Kind::Any => {
                        assert!(transaction.update(&world.table, rid, &[(2, ValueRef::Text(&text(&mut random)))]).unwrap());
                    }
                }
            }
            transaction.commit().unwrap();
        }
        course.0.push(pages(world));
    }
    course
}

pub(crate) fn filled(form: Form) -> (World, Vec<(Rid, i64)>) {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let world = open(&storage, form, OpenMode::Create);
    let mut random = Random(3);
    let mut transaction = begin(&world, Isolation::ReadCommitted);
    let live = (0..ROWS).map(|number| (world.insert(&mut transaction, number, number % 1000, &text(&mut random)).unwrap(), number));
    let live = live.collect();
    transaction.commit().unwrap();
    (world, live)
}

fn levels_off(form: Form, kind: Kind, per_transaction: u64) {
    let method = form.method;
    let (world, mut live) = filled(form);
    let course = churn(&world, &mut live, kind, per_transaction, changes(60_000));
    let rows = world.check();
    let numbers: BTreeMap<i64, Rid> = live.into_iter().map(|(rid, number)| (number, rid)).collect();
    assert!(rows.keys().eq(numbers.keys()), "{method}, {kind:?}: other rows than those that should be there");
    course.assert_level(&format!("{method}, {kind:?}, {per_transaction} a transaction"), fresh_pages(form, &rows), SLACK);
}

fn every_size(kind: Kind) {
    for method in BY_ROW {
        for per_transaction in [1, 20, 1000] {
            levels_off(Form { method, ..FORM }, kind, per_transaction);
        }
    }
}

/// Where rows lie by column: pages of 4 KB. On the smallest ones a row that lies by itself is a thirtieth of the page, and some of them wait on each for the page to be built anew.
#[test]
fn rows_by_column() {
    for kind in [Kind::Replace, Kind::Number, Kind::Text, Kind::Any] {
        for per_transaction in [1, 20, 1000] {
            levels_off(Form { method: Method::Page, page_bytes: 4096, ..FORM }, kind, per_transaction);
        }
    }
}

/// What other pages host for a page lies in few ranges: else they become ever more and shorter, and take the page's room.
#[test]
fn ranges_stay_few() {
    let form = Form { method: Method::Page, page_bytes: 4096, ..FORM };
    let (world, mut live) = filled(form);
    churn(&world, &mut live, Kind::Text, 20, 200_000);
    let (mut ranges, mut pages) = (0, 0);
    for data_set in world.table.data_sets() {
        for number in 2..data_set.page_count() {
            let bytes = world.database.manager().shared(data_set, number, Access::Scan).unwrap();
            if page::page_type(&bytes) == Some(PageType::Data) {
                (ranges, pages) = (ranges + DataPage::new(&bytes).ranges().len(), pages + 1);
            }
        }
    }
    println!("{ranges} ranges on {pages} pages");
    assert!(ranges > 0 && ranges <= 3 * pages, "{ranges} ranges on {pages} pages");
    world.check();
}

#[test]
fn rows_replaced_by_others() {
    every_size(Kind::Replace);
}

#[test]
fn numbers_that_change() {
    every_size(Kind::Number);
}

#[test]
fn texts_that_grow_and_shrink() {
    every_size(Kind::Text);
}

#[test]
fn changes_of_every_kind() {
    every_size(Kind::Any);
}

/// An old reader keeps what it may see or remember: each row that was there, once.
fn beside_an_idle_reader(method: Method, isolation: Isolation, per_transaction: u64) {
    let form = Form { method, memory_bytes: 16 << 20, ..Form::default() };
    let (world, mut live) = filled(form);
    let mut reader = begin(&world, isolation);
    let (first, number) = live[0];
    assert_eq!(world.row(&mut reader, first).unwrap().0, number);
    let course = churn(&world, &mut live, Kind::Replace, per_transaction, changes(100_000));
    let [earlier, later] = course.halves();
    let fresh = fresh_pages(form, &world.committed());
    println!("{method}, {per_transaction} a transaction, beside {isolation:?}: {earlier} pages, then {later}; fresh {fresh}");
    assert!(later * 10 <= earlier * 11 + 10 * SLACK, "{method}: pages grow: {course:?}");
    assert!(later * 10 <= fresh * 25, "{method}: {later} pages, fresh {fresh}");
    // The row that the reader remembers is gone for it, or as it was; its RID means no other row.
    match isolation {
        Isolation::ReadCommitted => assert!(world.row(&mut reader, first).is_none_or(|row| row.0 == number)),
        _ => assert_eq!(world.row(&mut reader, first).unwrap().0, number),
    }
    drop(reader);
    world.check();
}

#[test]
fn rows_replaced_beside_an_idle_transaction() {
    beside_an_idle_reader(Method::None, Isolation::ReadCommitted, 20);
    beside_an_idle_reader(Method::Huffman, Isolation::ReadCommitted, 1000);
    beside_an_idle_reader(Method::None, Isolation::RepeatableRead, 20);
    beside_an_idle_reader(Method::Page, Isolation::ReadCommitted, 20);
    beside_an_idle_reader(Method::Page, Isolation::RepeatableRead, 20);
}

fn letters(random: &mut Random, length: usize) -> String {
    (0..length).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
}

fn set_text(world: &World, rid: Rid, text: &str) {
    let mut transaction = begin(world, Isolation::ReadCommitted);
    assert!(transaction.update(&world.table, rid, &[(2, ValueRef::Text(text))]).unwrap());
    transaction.commit().unwrap();
}

/// One row among others, which goes to a page of its own and comes home again.
#[test]
fn a_row_by_column_that_goes_away_and_comes_home() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let world = open(&storage, Form { method: Method::Page, ..Form::default() }, OpenMode::Create);
    let rids = world.fill((0..300).map(|number| (number, number)));
    let mut random = Random(1);
    let mut course = Course::default();
    for _ in 0..100 {
        set_text(&world, rids[5], &letters(&mut random, 1400));
        set_text(&world, rids[5], "");
        course.0.push(pages(&world));
    }
    let [earlier, later] = course.halves();
    assert!(later <= earlier + SLACK, "pages grow: {course:?}");
    world.check();
}

/// Rows that go away one by one, each in a database that was just opened, or all in one.
#[test]
fn rows_by_column_that_go_away_after_an_opening() {
    let pages_after = |reopen: bool| {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let form = Form { method: Method::Page, ..Form::default() };
        let mut world = open(&storage, form, OpenMode::Create);
        let rids = world.fill((0..300).map(|number| (number, number)));
        let mut random = Random(1);
        for rid in rids.iter().step_by(5) {
            set_text(&world, *rid, &letters(&mut random, 400));
            if reopen {
                drop(world);
                world = open(&storage, form, OpenMode::Write);
            }
        }
        world.check();
        pages(&world)
    };
    let (opened_once, opened_again) = (pages_after(false), pages_after(true));
    assert!(opened_again <= opened_once + SLACK, "{opened_again} pages, {opened_once} without openings");
}

/// Rows from a few bytes to nearly a page, each changed to another length, or deleted and inserted anew: a short one keeps a page from a long one, but that levels off.
#[test]
fn rows_of_all_lengths() {
    const LENGTHS: [usize; 5] = [5, 20, 100, 1_900, 3_900];
    for method in Method::ALL {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let form = Form { method, page_bytes: 4096, ..FORM };
        let world = open(&storage, form, OpenMode::Create);
        let mut random = Random(5);
        let any = |random: &mut Random| {
            let length = LENGTHS[random.below(LENGTHS.len() as u64) as usize];
            letters(random, length)
        };
        let mut rids: Vec<Rid> = Vec::new();
        for number in 0..400 {
            let mut transaction = begin(&world, Isolation::ReadCommitted);
            rids.push(world.insert(&mut transaction, number, 1, &any(&mut random)).unwrap());
            transaction.commit().unwrap();
        }
        let mut course = Course::default();
        for _ in 0..COUNTS {
            for _ in 0..changes(60_000) / COUNTS {
                let at = random.below(rids.len() as u64) as usize;
                let text = any(&mut random);
                let mut transaction = begin(&world, Isolation::ReadCommitted);
                if random.below(2) == 0 {
                    assert!(transaction.update(&world.table, rids[at], &[(2, ValueRef::Text(&text))]).unwrap());
                } else {
                    assert!(transaction.delete(&world.table, rids[at]).unwrap());
                    rids[at] = world.insert(&mut transaction, at as i64, 1, &text).unwrap();
                }
                transaction.commit().unwrap();
            }
            course.0.push(pages(&world));
        }
        let rows = world.check();
        assert_eq!(rows.len(), rids.len());
        let (fresh, quarter) = (fresh_pages(form, &rows), course.0.len() / 4);
        let (then, now) = (course.0[2 * quarter - 1], course.0[course.0.len() - 1]);
        println!("{method}, all lengths: {then} pages, then {now}; fresh {fresh}: {:.2}", now as f64 / fresh as f64);
        assert!(now <= then + then / 20 + SLACK, "{method}: {then} pages, then {now}");
        assert!(now <= 2 * fresh + SLACK, "{method}: {now} pages, fresh {fresh}");
    }
}

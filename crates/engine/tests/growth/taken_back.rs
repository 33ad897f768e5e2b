//! Rows that are made long and short again, or whose change is taken back: what one transaction needs at once is all that the file grows by, and rows go home.

use crate::tables::{begin, pages};
use crate::world::{Form, Random, World, open};
use pagefold_engine::database::{Isolation, OpenMode};
use pagefold_engine::pool::Access;
use pagefold_engine::table_space::Method;
use pagefold_format::data::DataPage;
use pagefold_io::{MemoryStorage, Storage};
use pagefold_types::{Rid, ValueRef};
use std::sync::Arc;

const ROWS: i64 = 3_000;
/// Long enough that a page of 4 KB has two of them.
const LONG: usize = 1_500;
/// Of the file: pages that inserts go to, the map, dictionaries.
const SLACK: u64 = 6;

/// How a row becomes short again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Back {
    /// The transaction is rolled back.
    Rollback,
    /// It goes back to a savepoint, and commits something else.
    Savepoint,
    /// It makes the row short itself.
    Shortened,
    /// The next transaction does.
    ShortenedLater,
}

const WAYS: [Back; 4] = [Back::Rollback, Back::Savepoint, Back::Shortened, Back::ShortenedLater];

fn long(random: &mut Random) -> String {
    (0..LONG).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
}

fn set(world: &World, transaction: &mut pagefold_engine::database::Transaction<'_>, rids: &[Rid], mut text: impl FnMut() -> String) {
    for rid in rids {
        assert!(transaction.update(&world.table, *rid, &[(2, ValueRef::Text(&text()))]).unwrap());
    }
}

/// Rows are made long and short again, so many in a transaction.
fn there_and_back(world: &World, rids: &[Rid], back: Back, random: &mut Random) {
    let mut transaction = begin(world, Isolation::ReadCommitted);
    let savepoint = transaction.savepoint();
    set(world, &mut transaction, rids, || long(random));
    match back {
        Back::Rollback => return transaction.rollback().unwrap(),
        Back::Savepoint => {
            transaction.roll_back_to(savepoint).unwrap();
            assert!(transaction.update(&world.table, rids[0], &[(1, ValueRef::Int(7))]).unwrap());
        }
        Back::Shortened => set(world, &mut transaction, rids, String::new),
        Back::ShortenedLater => {
            transaction.commit().unwrap();
            transaction = begin(world, Isolation::ReadCommitted);
            set(world, &mut transaction, rids, String::new);
        }
    }
    transaction.commit().unwrap();
}

fn pages_with_rows(world: &World) -> u64 {
    let mut pages = 0;
    for data_set in world.table.data_sets() {
        for number in data_set.data_page_numbers() {
            let bytes = world.database.manager().shared(data_set, number, Access::Scan).unwrap();
            pages += u64::from(DataPage::new(&bytes).row_count() > 0);
        }
    }
    pages
}

fn takes_what_a_transaction_needs(method: Method, back: Back, at_once: usize) {
    takes_what_is_needed_at_once(Form { method, memory_bytes: 16 << 20, ..Form::default() }, ROWS, back, at_once);
}

fn takes_what_is_needed_at_once(form: Form, rows: i64, back: Back, at_once: usize) {
    let method = form.method;
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let world = open(&storage, form, OpenMode::Create);
    let rids = world.fill((0..rows).map(|number| (number, number)));
    let mut random = Random(1);
    let fresh = pages(&world);
    let in_use = pages_with_rows(&world);
    let mut course = Vec::new();
    for _ in 0..3 {
        for some in rids.chunks(at_once) {
            there_and_back(&world, some, back, &mut random);
        }
        course.push(pages(&world));
    }
    // Where rows lie by column, as much again is kept for taking changes back.
    let needed = (at_once * LONG) as u64 / form.page_bytes as u64 * if method == Method::Page { 4 } else { 2 };
    println!("{method}, {back:?}, {at_once} at once: {fresh} pages, then {course:?}; needed at once {needed}");
    assert!(course[2] <= fresh * 13 / 10 + needed + SLACK, "{method}, {back:?}, {at_once} at once: {fresh} pages, then {course:?}");
    let in_use_now = pages_with_rows(&world);
    println!("with rows: {in_use}, then {in_use_now}");
    // Where rows lie by column they are a little scattered: others were forwarded to make room for them.
    let most = if method == Method::Page { in_use * 3 / 2 } else { in_use * 13 / 10 };
    assert!(in_use_now <= most + SLACK, "{method}, {back:?}, {at_once} at once: {in_use} pages with rows, then {in_use_now}");
    assert!(course[2] <= course[1] + SLACK, "{method}, {back:?}, {at_once} at once: pages grow: {course:?}");
    world.check();
}

#[test]
fn rows_made_long_and_taken_back() {
    for method in [Method::None, Method::Fixed] {
        for back in WAYS {
            for at_once in [1, 30] {
                takes_what_a_transaction_needs(method, back, at_once);
            }
        }
    }
}

/// Where rows lie by column: others are forwarded to make room for those that become long, and come together again.
#[test]
fn rows_by_column_made_long_and_taken_back() {
    let rows = ROWS / 2;
    for back in WAYS {
        for at_once in [1, 30, rows as usize] {
            let form = Form { method: Method::Page, memory_bytes: 16 << 20, ..Form::default() };
            takes_what_is_needed_at_once(form, rows, back, at_once);
        }
    }
}

/// All rows in one transaction: afterwards they lie together again, and the next one takes the pages that were taken for it.
#[test]
fn all_rows_made_long_at_once() {
    for method in [Method::None, Method::Fixed] {
        for back in WAYS {
            takes_what_a_transaction_needs(method, back, ROWS as usize);
        }
    }
}

/// Where rows lie by column: no change is refused, nothing is lost, and rows come together again.
fn by_column(page_bytes: usize, rows: i64) {
    for back in WAYS {
        for at_once in [1, 30, rows as usize] {
            let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
            let form = Form { method: Method::Page, page_bytes, memory_bytes: 16 << 20, ..Form::default() };
            let world = open(&storage, form, OpenMode::Create);
            let rids = world.fill((0..rows).map(|number| (number, number)));
            let (fresh, in_use) = (pages(&world), pages_with_rows(&world));
            let mut random = Random(1);
            for some in rids.chunks(at_once) {
                there_and_back(&world, some, back, &mut random);
            }
            let what = format!("pages of {page_bytes}, {back:?}, {at_once} at once");
            let in_use_now = pages_with_rows(&world);
            println!("{what}: {fresh} pages, then {}; with rows {in_use}, then {in_use_now}", pages(&world));
            assert!(in_use_now <= in_use * 3 / 2 + SLACK, "{what}: {in_use} pages with rows, then {in_use_now}");
            let found = world.check();
            assert!(found.len() == rows as usize && found.values().all(|(_, text)| text.is_empty()), "{what}");
        }
    }
}

#[test]
fn rows_by_column_made_long_on_pages_of_2_kb() {
    by_column(2048, ROWS);
}

#[test]
fn rows_by_column_made_long_on_pages_of_4_kb() {
    by_column(4096, ROWS / 2);
}

#[test]
fn rows_by_column_made_long_on_pages_of_16_kb() {
    by_column(16384, ROWS / 2);
}

/// Images of pages built and pages asked for, a row that is taken back, of so many in one transaction: by the return to a savepoint, and by the end of the transaction.
fn work_of_a_rollback(rows: i64) -> [[f64; 2]; 2] {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let form = Form { method: Method::Page, memory_bytes: 32 << 20, ..Form::default() };
    let world = open(&storage, form, OpenMode::Create);
    let rids = world.fill((0..rows).map(|number| (number, number)));
    let mut random = Random(1);
    let counts = || [world.table.images_built(), world.table.data_sets().map(|partition| partition.counters().getpages).sum()];
    let mut transaction = begin(&world, Isolation::ReadCommitted);
    let savepoint = transaction.savepoint();
    set(&world, &mut transaction, &rids, || long(&mut random));
    let before = counts();
    transaction.roll_back_to(savepoint).unwrap();
    let taken_back = counts();
    transaction.rollback().unwrap();
    let after = counts();
    world.check();
    [(before, taken_back), (taken_back, after)].map(|(from, to)| [0, 1].map(|i| (to[i] - from[i]) as f64 / rows as f64))
}

/// Where rows lie by column, taking a row back takes as much however many there are, and hardly ever a page built anew. At the end they come together: the page of each is built anew, and its home.
#[test]
fn work_of_taking_long_rows_back() {
    for rows in [200, 800, 3_200] {
        let [[images, getpages], [images_at_end, getpages_at_end]] = work_of_a_rollback(rows);
        println!("{rows} rows taken back: {images:.2} images and {getpages:.2} getpages a row");
        println!("at the end of the transaction: {images_at_end:.2} images and {getpages_at_end:.2} getpages a row");
        assert!(images < 0.2 && getpages < 8.0, "{rows} rows: {images} images and {getpages} getpages a row");
        assert!(images_at_end < 4.0 && getpages_at_end < 8.0, "{rows} rows: {images_at_end} and {getpages_at_end} a row at the end");
    }
}

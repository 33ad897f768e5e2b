//! Altered tables where other features meet them: copies and what is recovered from them, a disk that is full.

use crate::{Model, Random, add, alter, begin, change_rows, create, fill, open, open_at, rid, set_type};
use crate::{Scans, settings};
use pagefold_engine::backup::{MountOptions, MountedCopy, RecoverOptions, Until, recover};
use pagefold_engine::btree::Direction;
use pagefold_engine::database::{Database, Isolation, OpenMode, TableChange, Transaction};
use pagefold_engine::directory::read_control;
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::table_space::{Method, Table};
use pagefold_engine::{Error, Silent, file_id_of};
use pagefold_format::data::forms::{layout_of, record_form};
use pagefold_format::page::{self, PageIdentity, PageType};
use pagefold_io::{Clock, CrashPolicy, Failure, FaultOptions, FaultStorage, OpenOptions, Repeat, SimulatedClock, Storage, read_exact_at};
use pagefold_types::{Column, Direction as Order, KeyRange, Value, ValueRef};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Transactions that alter the table and change its rows; so many changes of the table were made.
fn work(database: &Database, model: &mut Model, random: &mut Random, next: &mut i64) -> u32 {
    let mut altered = 0;
    for _ in 0..10 {
        let mut t = begin(database, Isolation::ReadCommitted);
        for _ in 0..random.below(12) {
            match random.below(6) {
                0 => altered += u32::from(alter(&mut t, model, random)),
                _ => change_rows(&mut t, model, random, next),
            }
        }
        t.commit().unwrap();
        model.check(&mut begin(database, Isolation::ReadCommitted), "live");
        if random.below(3) == 0 {
            database.checkpoint().unwrap();
        }
    }
    altered
}

/// What was altered before a copy is in it, what was altered after it comes from the next copy or from the log.
#[test]
fn copies_and_logs_have_altered_tables() {
    for (at, method) in Method::ALL.into_iter().enumerate() {
        let storage: Arc<dyn Storage> = Arc::new(FaultStorage::new(FaultOptions::default()));
        let clock: Arc<dyn Clock> = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
        let database = open(&storage, OpenMode::Create);
        create(&database, method, IndexFormat::ALL[at % 3]);
        storage.create_directory(Path::new("archive")).unwrap();
        database.set_log_archive(Some(Path::new("archive"))).unwrap();
        let (mut random, mut model, mut next) = (Random(at as u64 + 40), Model::of(&database), 0);
        let mut altered = [0; 3];
        altered[0] = work(&database, &mut model, &mut random, &mut next);
        database.copy(Path::new("whole.pfc"), None, &Silent).unwrap();
        let in_whole = model.clone();
        drop(database);
        let database = open(&storage, OpenMode::Write);
        database.set_log_archive(Some(Path::new("archive"))).unwrap();
        in_whole.check(&mut begin(&database, Isolation::ReadCommitted), &format!("{method} reopened"));
        altered[1] = work(&database, &mut model, &mut random, &mut next);
        database.copy(Path::new("more.pfc"), Some(Path::new("whole.pfc")), &Silent).unwrap();
        let in_more = model.clone();
        altered[2] = work(&database, &mut model, &mut random, &mut next);
        assert!(altered.iter().all(|count| *count > 1), "{method}: {altered:?}");
        drop(database);
        let made = |target: &str, copies: &[&str], logs: &[&str], expected: &Model| {
            let copies: Vec<PathBuf> = copies.iter().map(PathBuf::from).collect();
            let options = RecoverOptions { logs: logs.iter().map(PathBuf::from).collect(), until: Until::End };
            recover(&storage, &clock, Path::new(target), &copies, &options, settings(), &Silent).unwrap();
            let database = open_at(&storage, target, OpenMode::Write);
            expected.check(&mut begin(&database, Isolation::ReadCommitted), &format!("{method} {target}"));
            // It goes on as any other.
            let (mut random, mut model, mut next) = (Random(1), expected.clone(), next);
            work(&database, &mut model, &mut random, &mut next);
            model.check(&mut begin(&database, Isolation::ReadCommitted), &format!("{method} {target}, later"));
        };
        made("of-whole", &["whole.pfc"], &[], &in_whole);
        made("of-both", &["whole.pfc", "more.pfc"], &[], &in_more);
        made("by-log", &["whole.pfc"], &["archive", "db"], &model);
        made("by-both", &["whole.pfc", "more.pfc"], &["archive", "db"], &model);
        // The table alone, put back into a database that is in use: its pages have rows of all layouts that it had.
        let database = open(&storage, OpenMode::Write);
        for (copies, expected) in [(&["whole.pfc"][..], &in_whole), (&["whole.pfc", "more.pfc"], &in_more)] {
            let what = format!("{method} taken from {copies:?}");
            let copies: Vec<PathBuf> = copies.iter().map(PathBuf::from).collect();
            let recover = RecoverOptions { logs: Vec::new(), until: Until::End };
            let mount = MountOptions { recover, tables: vec!["t".into()], scratch: Some("db/recover".into()) };
            let mounted = MountedCopy::open(&storage, &clock, &copies, &mount, &Silent).unwrap();
            let then = mounted.database(&clock, settings()).unwrap();
            let mut change = database.change();
            let dropped = change.drop_to_replace("t").unwrap();
            let taken = change.take_table(&then, "t", &dropped, true, &Silent).unwrap();
            assert!(taken.iter().all(|taken| taken.to_build.is_empty()), "{what}");
            change.commit().unwrap();
            expected.check(&mut begin(&database, Isolation::ReadCommitted), &what);
            let mut model = expected.clone();
            work(&database, &mut model, &mut random, &mut next);
            model.check(&mut begin(&database, Isolation::ReadCommitted), &format!("{what}, later"));
        }
        drop(database);
        let database = open(&storage, OpenMode::Write);
        database.table("t").unwrap();
    }
}

type Everything = (Vec<Column>, BTreeMap<i64, Vec<Value>>);

/// The columns, and the rows by key; by the index on the price there are as many.
fn everything(t: &mut Transaction<'_>) -> Everything {
    let table = t.table("t").unwrap();
    let visible = table.attributes().visible_columns();
    let columns = visible.iter().map(|at| table.attributes().schema.columns()[*at].clone()).collect();
    let mut rows = BTreeMap::new();
    for row in t.rows(&table).unwrap() {
        let (_, values) = row.unwrap();
        let Value::Int(id) = values[0] else { panic!("{values:?}") };
        rows.insert(id, visible.iter().map(|at| values[*at].clone()).collect());
    }
    let index = t.index("by_price").unwrap();
    let found = t.rows_by(&table, &index, Direction::Forward).unwrap();
    assert_eq!(found.collect::<Result<Vec<_>, Error>>().unwrap().len(), rows.len());
    (columns, rows)
}

/// A statement without room leaves the table as it was, and the transaction can be rolled back, or is by recovery.
#[test]
fn an_alter_without_room_leaves_nothing_behind() {
    let (mut rows_refused, mut alters_refused, mut made) = (0, 0, 0);
    for method in Method::ALL {
        for killed in [false, true] {
            let what = format!("{method}, killed: {killed}");
            let disk = FaultStorage::new(FaultOptions::default());
            let shared: Arc<dyn Storage> = Arc::new(disk.clone());
            let database = open(&shared, OpenMode::Create);
            create(&database, method, IndexFormat::Prefix);
            fill(&database, 0..600);
            let mut t = begin(&database, Isolation::ReadCommitted);
            t.change_table("t", &[add("note", "text", true, Value::Null), TableChange::DropColumn("small".into())]).unwrap();
            t.commit().unwrap();
            database.checkpoint().unwrap();
            disk.set_capacity(Some(disk.taken_bytes()));
            let before = everything(&mut begin(&database, Isolation::ReadCommitted));
            let mut t = begin(&database, Isolation::ReadCommitted);
            let mut random = Random(3);
            let mut digits = 8;
            for number in 0..60_u64 {
                let own = everything(&mut t);
                let (done, refused) = if number % 4 == 3 {
                    // The index on it is built anew.
                    digits += u32::from(digits < 30);
                    let changes =
                        [set_type("price", &format!("decimal({digits},2)")), add(&format!("c{number}"), "integer", true, Value::Int(7))];
                    (t.change_table("t", &changes).map(drop), &mut alters_refused)
                } else {
                    let table = t.table("t").unwrap();
                    let row = rid(&mut t, &table, random.below(600) as i64);
                    let note: String = (0..900).map(|_| char::from(b'a' + random.below(26) as u8)).collect();
                    (t.update(&table, row, &[(4, ValueRef::Text(&note))]).map(|found| assert!(found)), &mut rows_refused)
                };
                match done {
                    Ok(()) => made += 1,
                    Err(error) => {
                        *refused += 1;
                        assert!(matches!(error, Error::Io(_)), "{what}: {error:?}");
                        assert_eq!(everything(&mut t), own, "{what}: {error}");
                    }
                }
            }
            if killed {
                std::mem::forget(t);
                let image = disk.crash_image(CrashPolicy::DropAll);
                std::mem::forget(database);
                let shared: Arc<dyn Storage> = Arc::new(image.clone());
                let database = open(&shared, OpenMode::Write);
                assert_eq!(everything(&mut begin(&database, Isolation::ReadCommitted)), before, "{what}");
                continue;
            }
            t.rollback().unwrap();
            assert_eq!(everything(&mut begin(&database, Isolation::ReadCommitted)), before, "{what}");
            disk.set_capacity(None);
            let mut t = begin(&database, Isolation::ReadCommitted);
            t.change_table("t", &[set_type("price", "decimal(12,2)")]).unwrap();
            t.commit().unwrap();
            assert_eq!(everything(&mut begin(&database, Isolation::ReadCommitted)).1, before.1, "{what}");
        }
    }
    println!("{made} statements made, {rows_refused} changes of rows and {alters_refused} of tables refused");
    assert!(rows_refused > 10 && alters_refused > 10 && made > 10);
}

/// Pages whose rows say that they are of a layout that the table has not had: an error that names object, page and reason, by every way to read, and whoever writes does not panic either.
#[test]
fn rows_of_a_layout_that_is_not_there_are_an_error() {
    /// Where a data page says the form of its rows.
    const FORM: usize = 32;
    let mut damaged = 0;
    for method in Method::ALL {
        let storage: Arc<dyn Storage> = Arc::new(FaultStorage::new(FaultOptions { seed: 5, ..FaultOptions::default() }));
        let database = open(&storage, OpenMode::Create);
        create(&database, method, IndexFormat::Plain);
        fill(&database, 0..60);
        let mut t = begin(&database, Isolation::ReadCommitted);
        let table = t.change_table("t", &[add("more", "integer", false, Value::Int(1))]).unwrap();
        for id in 100..400 {
            let text = format!("text of {id} ").repeat(4);
            let row = [ValueRef::Int(id), ValueRef::Int(id % 100), ValueRef::Text(&text), ValueRef::Decimal(id.into()), ValueRef::Int(7)];
            t.insert(&table, &row).unwrap();
        }
        t.commit().unwrap();
        let (database_id, file_id) =
            (read_control(storage.as_ref(), Path::new("db")).unwrap().current.database_id, table.data_sets().next().unwrap().file_id());
        drop(table);
        database.close().unwrap();
        let mut pages = 0;
        for path in storage.list(Path::new("db/data")).unwrap().iter().filter(|path| file_id_of(path) == Some(file_id)) {
            let file = storage.open(path, &OpenOptions::read_write()).unwrap();
            let mut bytes = vec![0; file.len().unwrap() as usize];
            read_exact_at(file.as_ref(), &mut bytes, 0).unwrap();
            for (page_number, bytes) in (0..).zip(bytes.chunks_exact_mut(2048)) {
                let form = page::get_u16(bytes, FORM);
                if page::is_of_type(bytes, PageType::Data) && layout_of(form) == 1 {
                    page::put_u16(bytes, FORM, form ^ record_form(1) ^ record_form(9));
                    page::seal(bytes, &PageIdentity { database_id, file_id, page_number });
                    pages += 1;
                }
            }
            file.write_at(&bytes, 0).unwrap();
        }
        assert!(pages > 0, "{method}: no page of the layout");
        damaged += pages;
        let database = open(&storage, OpenMode::Write);
        let mut t = begin(&database, Isolation::ReadCommitted);
        let (table, pk) = (t.table("t").unwrap(), t.index("t_pk").unwrap());
        let is_named = |error: &Error| {
            let text = error.to_string();
            assert!(
                text.contains("\"t\"") && text.contains("page ") && text.contains("layout 9, which the table has not had"),
                "{method}: {text}"
            );
        };
        let by_scan: Vec<Error> = t.rows(&table).unwrap().filter_map(Result::err).take(1).collect();
        let by_key: Vec<Error> = t.rows_by(&table, &pk, Direction::Forward).unwrap().filter_map(Result::err).take(1).collect();
        by_scan.iter().chain(&by_key).for_each(is_named);
        assert_eq!((by_scan.len(), by_key.len()), (1, 1), "{method}");
        is_named(&t.find(&table, &pk, &[ValueRef::Int(300)]).unwrap_err());
        let all = KeyRange { start: Vec::new(), end: None };
        let keys = t.read_view().unwrap().keys(&table, &pk, all, Direction::Forward).unwrap();
        let rid = keys.last().unwrap().unwrap().0;
        is_named(&t.row(&table, rid).unwrap_err());
        is_named(&t.update(&table, rid, &[(1, ValueRef::Int(3))]).unwrap_err());
        // Who looks at all rows finds it, too, and nothing has changed then.
        is_named(&t.change_table("t", &[set_type("small", "integer")]).unwrap_err());
        assert_eq!(table.attributes(), database.table("t").unwrap().attributes());
    }
    println!("{damaged} pages");
}

/// A transaction altered the table twice and changed rows, which are on disk when it is lost: recovery takes it back, also when an earlier recovery was cut short, wherever that was.
#[test]
fn a_table_altered_twice_by_a_lost_transaction_is_as_it_was() {
    let rename = || TableChange::RenameColumn { column: "small".into(), to: "little".into() };
    let nullable = || TableChange::DropNotNull("text".into());
    let pairs = [
        [rename(), nullable()],
        // It takes the values as they lie, and makes no layout.
        [set_type("price", "decimal(9,2)"), nullable()],
        [add("more", "integer", false, Value::Int(1)), TableChange::DropColumn("more".into())],
        [nullable(), add("more", "integer", false, Value::Int(1))],
    ];
    let mut cut_short = 0;
    for (at, method) in Method::ALL.into_iter().enumerate() {
        for (number, changes) in pairs.iter().enumerate() {
            let disk = FaultStorage::new(FaultOptions { seed: number as u64, ..FaultOptions::default() });
            let shared: Arc<dyn Storage> = Arc::new(disk.clone());
            let database = open(&shared, OpenMode::Create);
            create(&database, method, IndexFormat::ALL[at % 3]);
            fill(&database, 0..60);
            let before = everything(&mut begin(&database, Isolation::ReadCommitted));
            let mut t = begin(&database, Isolation::ReadCommitted);
            for change in changes {
                t.change_table("t", std::slice::from_ref(change)).unwrap();
            }
            let table = t.table("t").unwrap();
            for id in 0..30 {
                let row = rid(&mut t, &table, id);
                assert!(t.update(&table, row, &[(2, ValueRef::Text("changed"))]).unwrap());
            }
            database.checkpoint().unwrap();
            let image = disk.crash_image(CrashPolicy::KeepAll);
            std::mem::forget(t);
            std::mem::forget(database);
            for call in (at as u64 * 11..).step_by(59) {
                let what = format!("{method}, {changes:?}, an error at call {call}");
                let first = image.crash_image(CrashPolicy::KeepAll);
                first.error_at(call, Failure::Io, Repeat::Once);
                let clock: Arc<dyn Clock> = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
                let opened = Database::open(Arc::new(first.clone()), clock, Path::new("db"), OpenMode::Write, settings());
                let is_whole = opened.is_ok() && first.calls() <= call;
                cut_short += u32::from(opened.is_err());
                drop(opened);
                let again: Arc<dyn Storage> = Arc::new(first.crash_image(CrashPolicy::KeepAll));
                let database = open(&again, OpenMode::Write);
                assert_eq!(everything(&mut begin(&database, Isolation::ReadCommitted)), before, "{what}");
                if is_whole {
                    break;
                }
            }
        }
    }
    println!("{cut_short} recoveries cut short");
    assert!(cut_short > 100, "{cut_short}");
}

/// Indexes that a transaction makes of a table that it has altered, or that are built anew as their columns change: after a crash each row is found by each of them, whatever became of the
/// transaction.
#[test]
fn indexes_of_altered_tables_are_whole_after_a_crash() {
    let new_column = || vec![add("more", "integer", true, Value::Null)];
    let cases: [(&str, Vec<TableChange>, Option<usize>); 5] = [
        ("a new column", new_column(), Some(4)),
        ("another type", vec![set_type("price", "decimal(30,2)")], None),
        ("without NOT NULL", vec![TableChange::DropNotNull("price".into())], None),
        ("NOT NULL", vec![TableChange::SetNotNull("small".into()), set_type("small", "bigint")], Some(1)),
        ("twice", [new_column(), vec![set_type("more", "bigint")]].concat(), Some(4)),
    ];
    for (at, (what, changes, column)) in cases.into_iter().enumerate() {
        for end in ["commit", "roll back", "roll back to a savepoint"] {
            let disk = FaultStorage::new(FaultOptions::default());
            let shared: Arc<dyn Storage> = Arc::new(disk.clone());
            let database = open(&shared, OpenMode::Create);
            create(&database, Method::ALL[at % 5], IndexFormat::ALL[at % 3]);
            fill(&database, 0..60);
            let mut t = begin(&database, Isolation::ReadCommitted);
            let savepoint = t.savepoint();
            for change in &changes {
                t.change_table("t", std::slice::from_ref(change)).unwrap();
            }
            if let Some(column) = column {
                let table = t.table("t").unwrap();
                t.create_index(&table, IndexAttributes::new("another", vec![(column, Order::Descending)], false)).unwrap();
            }
            match end {
                "roll back" => t.rollback().unwrap(),
                "commit" => t.commit().unwrap(),
                _ => {
                    t.roll_back_to(savepoint).unwrap();
                    t.commit().unwrap();
                }
            }
            let mut t = begin(&database, Isolation::ReadCommitted);
            let table = t.table("t").unwrap();
            let row = rid(&mut t, &table, 7);
            assert!(t.update(&table, row, &[(2, ValueRef::Text("changed later"))]).unwrap());
            t.commit().unwrap();
            let before = everything(&mut begin(&database, Isolation::ReadCommitted));
            let image: Arc<dyn Storage> = Arc::new(disk.crash_image(CrashPolicy::KeepAll));
            drop(database);
            let database = open(&image, OpenMode::Write);
            let what = format!("{what}, {end}");
            let mut t = begin(&database, Isolation::ReadCommitted);
            assert_eq!(everything(&mut t), before, "{what}");
            let table = t.table("t").unwrap();
            let by_price = t.index("by_price").unwrap();
            for id in 0..60 {
                let found = t.find(&table, &by_price, &[ValueRef::Decimal(id.into())]).unwrap();
                assert_eq!(found.len(), 1, "{what}: {id}");
            }
            let row = rid(&mut t, &table, 3);
            assert!(t.delete(&table, row).unwrap(), "{what}");
            let values: Vec<ValueRef<'_>> = [ValueRef::Int(100), ValueRef::Int(1), ValueRef::Text("new"), ValueRef::Decimal(9)]
                .into_iter()
                .chain(std::iter::repeat(ValueRef::Null))
                .take(table.attributes().schema.len())
                .collect();
            t.insert(&table, &values).unwrap();
            assert_eq!(t.find(&table, &by_price, &[ValueRef::Decimal(9)]).unwrap().len(), 2, "{what}");
            t.commit().unwrap();
        }
    }
}

/// Rows of the former layout that are changed come into the new one, and with it to other pages: these are as full as pages that were changed without that.
#[test]
fn rows_changed_after_an_alter_take_no_more_pages() {
    for method in [Method::Page, Method::Row, Method::None] {
        for (alteration, column) in [
            (add("more", "bigint", true, Value::Null), 4),
            (add("more", "bigint", false, Value::Int(0)), 4),
            (set_type("small", "bigint"), 1),
        ] {
            let pages = [false, true].map(|is_altered| {
                let database = super::in_memory(method);
                fill(&database, 0..6_000);
                let mut t = begin(&database, Isolation::ReadCommitted);
                let mut table = t.table("t").unwrap();
                let column = if is_altered {
                    table = t.change_table("t", std::slice::from_ref(&alteration)).unwrap();
                    t.commit().unwrap();
                    t = begin(&database, Isolation::ReadCommitted);
                    column
                } else {
                    1
                };
                let mut changed = 0;
                for step in [3, 1] {
                    let ids: Vec<i64> = (0..6_000).step_by(step).collect();
                    for id in ids {
                        let row = rid(&mut t, &table, id);
                        assert!(t.update(&table, row, &[(column, ValueRef::Int(id % 30_000))]).unwrap());
                        changed += 1;
                        let pages = pages_of(&table);
                        assert!(pages < 4_000, "{method} {alteration:?}: {pages} pages after {changed} changes");
                    }
                    t.commit().unwrap();
                    t = begin(&database, Isolation::ReadCommitted);
                }
                pages_of(&table)
            });
            println!("{method} {alteration:?}: {pages:?}");
            assert!(pages[1] < pages[0] * 3, "{method} {alteration:?}: {pages:?}");
        }
    }
}

fn pages_of(table: &Table) -> u32 {
    table.data_sets().map(|data_set| data_set.page_count()).sum()
}

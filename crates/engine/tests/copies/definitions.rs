//! Recovery to moments before, between and after tables and indexes came and went in transactions: against a model.
//!
//! `PAGEFOLD_RECOVERY_MOMENTS`: how many moments, 200 by default.

use crate::place::{Place, recover, settings};
use crate::world::Random;
use pagefold_engine::backup::{Stop, Until, copy_to_directory, copy_to_file};
use pagefold_engine::btree::Direction as Way;
use pagefold_engine::database::{
    Database, IndexChange, Isolation, OpenMode, ReadView, ScanRequest, TableChange, Transaction, TransactionOptions,
};
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::table_space::{Method, TableAttributes};
use pagefold_engine::{Result, Silent};
use pagefold_io::{Clock, OsClock, SimulatedClock};
use pagefold_types::{Column, DataType, Direction, KeyRange, Schema, Value, ValueRef};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const SECONDS: u64 = 400;
/// Copies taken while tables come and go.
const COPIES: u64 = 60;

/// A table: its rows, and whether it has an index on their texts.
#[derive(Clone, Debug, Default, PartialEq)]
struct Made {
    rows: BTreeMap<i64, String>,
    by_text: bool,
}

type Model = BTreeMap<&'static str, Made>;

fn text(random: &mut Random, n: i64) -> String {
    format!("text {n} ").repeat(if random.below(15) == 0 { 400 } else { 1 + random.below(6) as usize })
}

fn key(name: String, column: usize, unique: bool, random: &mut Random) -> IndexAttributes {
    let format = IndexFormat::ALL[random.below(3) as usize];
    let attributes = IndexAttributes::new(name, vec![(column, Direction::Ascending)], unique);
    attributes.with_format(format, if format == IndexFormat::Fold { 8192 } else { 2048 })
}

/// What a transaction does: some changes of some tables.
fn work(t: &mut Transaction<'_>, model: &mut Model, random: &mut Random) -> Result<()> {
    for _ in 0..=random.below(6) {
        let name = NAMES[random.below(4) as usize];
        let Some(made) = model.get_mut(name) else {
            let columns = vec![Column::new("n", DataType::BigInt, false), Column::new("text", DataType::Varchar(None), false)];
            let mut attributes = TableAttributes::new(name, Schema::new(columns).unwrap()).with_page_bytes(2048);
            attributes.method = Method::ALL[random.below(5) as usize];
            let table = t.create_table(attributes)?;
            t.create_index(&table, key(format!("{name}_n"), 0, true, random))?;
            model.insert(name, Made::default());
            continue;
        };
        let table = t.table(name)?;
        match random.below(22) {
            20 => {
                let now = table.attributes().schema.columns()[1].name.clone();
                let to = format!("text{}", random.below(1_000_000));
                let renamed = TableChange::RenameColumn { column: now, to };
                t.change_table(name, &[renamed, TableChange::Pctfree(random.below(50) as u8)])?;
            }
            // To a name that is free, if there is one.
            21 => {
                let Some(to) = NAMES.into_iter().find(|name| !model.contains_key(name)) else { continue };
                t.change_table(name, &[TableChange::Rename(to.into())])?;
                for key in ["n", "text"].iter().take(1 + usize::from(model[name].by_text)) {
                    t.change_index(&format!("{name}_{key}"), &[IndexChange::Rename(format!("{to}_{key}"))])?;
                }
                let made = model.remove(name).unwrap_or_default();
                model.insert(to, made);
            }
            0 => {
                t.drop_table(name)?;
                model.remove(name);
            }
            1 | 2 if made.by_text => {
                t.drop_index(&format!("{name}_text"))?;
                made.by_text = false;
            }
            1 | 2 => {
                // Keys have their limits, texts do not.
                if made.rows.values().all(|text| text.len() < 100) {
                    t.create_index(&table, key(format!("{name}_text"), 1, false, random))?;
                    made.by_text = true;
                }
            }
            3 => {
                let (savepoint, before) = (t.savepoint(), model.clone());
                work(t, model, random)?;
                t.roll_back_to(savepoint)?;
                *model = before;
            }
            _ => {
                let n = random.below(60) as i64;
                let text = if made.by_text { format!("text {n}") } else { text(random, n) };
                let by_n = t.index(&format!("{name}_n"))?;
                let rid = t.find(&table, &by_n, &[ValueRef::Int(n)])?.first().copied();
                match (rid, random.below(3)) {
                    (None, _) => {
                        t.insert(&table, &[ValueRef::Int(n), ValueRef::Text(&text)])?;
                        made.rows.insert(n, text);
                    }
                    (Some(rid), 0) => {
                        assert!(t.delete(&table, rid)?);
                        made.rows.remove(&n);
                    }
                    (Some(rid), _) => {
                        assert!(t.update(&table, rid, &[(1, ValueRef::Text(&text))])?);
                        made.rows.insert(n, text);
                    }
                }
            }
        }
    }
    Ok(())
}

fn rows(database: &Database, view: &ReadView, name: &str, index: Option<&str>) -> BTreeMap<i64, String> {
    let (table, request) = (database.table(name).unwrap(), ScanRequest::default());
    let scan = match index {
        Some(index) => {
            let all = KeyRange { start: Vec::new(), end: None };
            view.range(&table, &database.index(index).unwrap(), all, Way::Forward, &request).unwrap()
        }
        None => view.scan(&table, &request).unwrap(),
    };
    let row = |values: Vec<Value>| match <[Value; 2]>::try_from(values) {
        Ok([Value::Int(n), Value::Text(text)]) => (n, text),
        other => panic!("{other:?}"),
    };
    scan.into_rows().map(|found| row(found.unwrap().1)).collect()
}

fn contents(database: &Database) -> BTreeMap<String, Made> {
    let view = database.read_view();
    let tables = database.tables().unwrap().into_iter().filter(|table| NAMES.contains(&table.name()));
    let made = tables.map(|table| {
        let name = table.name();
        let found = rows(database, &view, name, None);
        assert_eq!(rows(database, &view, name, Some(&format!("{name}_n"))), found, "{name} by n");
        let by_text = format!("{name}_text");
        let has_index = database.index(&by_text).is_ok();
        if has_index {
            assert_eq!(rows(database, &view, name, Some(&by_text)), found, "{name} by text");
        }
        assert_eq!(database.indexes_of(&table).len(), 1 + usize::from(has_index));
        (name.to_string(), Made { rows: found, by_text: has_index })
    });
    made.collect()
}

#[test]
fn recovery_to_any_moment_has_the_tables_of_that_moment() {
    let moments = std::env::var("PAGEFOLD_RECOVERY_MOMENTS").ok().and_then(|n| n.parse().ok()).unwrap_or(200_u64);
    let clock = SimulatedClock::new(Duration::from_secs(1_000_000));
    let place = Place::new(Arc::new(clock.clone()));
    place.storage.create_directory(Path::new("archive")).unwrap();
    let database = place.open("db", OpenMode::Write).unwrap();
    database.set_log_archive(Some(Path::new("archive"))).unwrap();
    let mut random = Random(11);
    let mut model = Model::new();
    let now = || clock.unix_time().as_nanos() as u64;
    let mut states = vec![(now(), model.clone())];
    // Copies, and from which state on they can be used.
    let mut copies: Vec<(String, usize)> = Vec::new();
    for second in 0..SECONDS {
        clock.advance(Duration::from_secs(1));
        let isolation = [Isolation::ReadCommitted, Isolation::RepeatableRead][random.below(2) as usize];
        let mut t = database.begin(TransactionOptions { isolation, ..TransactionOptions::default() });
        let before = model.clone();
        work(&mut t, &mut model, &mut random).unwrap();
        if second % 130 == 60 {
            // In the middle of a transaction.
            database.checkpoint().unwrap();
            let file = format!("copy{second}.pfc");
            database.copy(Path::new(&file), None, &Silent).unwrap();
            copies.push((file, states.len()));
        }
        if random.below(6) == 0 {
            t.rollback().unwrap();
            model = before;
        } else {
            t.commit().unwrap();
        }
        states.push((now(), model.clone()));
        if random.below(10) == 0 {
            database.checkpoint().unwrap();
        }
    }
    database.close().unwrap();
    let defined = states.windows(2).filter(|pair| !pair[0].1.keys().eq(pair[1].1.keys())).count();
    assert!(defined > 20, "tables came or went {defined} times only");
    for moment in 0..moments {
        let at = copies[0].1 + random.below((states.len() - copies[0].1) as u64) as usize;
        let until = states[at].0 + random.below(999_999_999);
        let usable: Vec<&String> = copies.iter().filter(|(_, from)| *from <= at).map(|(file, _)| file).collect();
        let file = usable[random.below(usable.len() as u64) as usize];
        let name = format!("made{moment}");
        let done = recover(&place, &name, &[file], &["archive", "db"], Until::Time(until)).unwrap();
        assert!(matches!(done.stop, Stop::Asked | Stop::EndOfLog), "{:?}", done.stop);
        let made = place.open(&name, OpenMode::Write).unwrap();
        let found = contents(&made);
        let expected: BTreeMap<String, Made> = states[at].1.iter().map(|(name, made)| ((*name).to_string(), made.clone())).collect();
        assert!(found == expected, "second {at} from {file}: {:?} instead of {:?}", found.keys(), expected.keys());
        made.close().unwrap();
        let report = pagefold_utility::check_files(place.storage.as_ref(), Path::new(&name), &Silent).unwrap();
        assert!(report.errors.is_empty(), "second {at}: {:?}", report.errors.first());
    }
}

/// Lets the writer end when all copies are taken, and when one fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// However the processors are shared, the writer has done half as much as there are copies; or has failed, which is seen when it is joined.
fn wait_for(done: &AtomicU64, copies: u64, writer: &ScopedJoinHandle<'_, ()>) {
    while done.load(Ordering::Relaxed) < copies / 2 && !writer.is_finished() {
        std::thread::yield_now();
    }
}

#[test]
fn copies_beside_tables_that_come_and_go() {
    let place = Place::new(Arc::new(OsClock));
    let database = place.open("db", OpenMode::Write).unwrap();
    place.create_table(&database, "kept", 10);
    place.create_table(&database, "replaced", 10);
    let (is_done, replaced) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let mut change = database.change();
                change.drop_table("replaced").unwrap();
                let schema = Schema::new(vec![Column::new("n", DataType::BigInt, false)]).unwrap();
                let table = change.create_table(TableAttributes::new("replaced", schema)).unwrap();
                (0..10).for_each(|n| _ = table.insert(&[ValueRef::Int(n)]).unwrap());
                change.commit().unwrap();
                let replaced = replaced.fetch_add(1, Ordering::Relaxed) + 1;
                // A file that comes and goes faster than a copy can open it is in none.
                std::thread::sleep(Duration::from_millis(2));
                if replaced % 7 == 0 {
                    database.checkpoint().unwrap();
                }
            }
        });
        let ends = Ends(&is_done);
        for number in 0..COPIES {
            let (directory, file) = (format!("copy{number}"), format!("copy{number}.pfc"));
            let path = Path::new(&directory);
            copy_to_directory(&place.storage, &place.clock, Path::new("db"), path, settings(), &Silent).unwrap();
            copy_to_file(&place.storage, &place.clock, Path::new("db"), Path::new(&file), None, &Silent).unwrap();
            let made = format!("made{number}");
            assert_eq!(recover(&place, &made, &[&file], &[], Until::End).unwrap().stop, Stop::EndOfLog);
            for directory in [&directory, &made] {
                let copy = place.open(directory, OpenMode::Write).unwrap();
                let view = copy.read_view();
                for name in ["kept", "replaced"] {
                    let table = copy.table(name).unwrap();
                    let rows = view.scan(&table, &ScanRequest::default()).unwrap().into_rows().count();
                    assert_eq!(rows, 10, "{name} in {directory}");
                }
                drop(view);
                copy.close().unwrap();
            }
            wait_for(&replaced, number, &writer);
        }
        drop(ends);
        writer.join().unwrap();
        println!("{COPIES} copies, {} replacements", replaced.load(Ordering::Relaxed));
    });
}

/// Whoever writes opens the database, changes something and closes it: what the copy's files say of themselves is what its catalog says of them.
#[test]
fn copies_beside_processes_that_write_a_little() {
    let place = Place::new(Arc::new(OsClock));
    let (is_done, closed) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut number = 1 << 30;
            while !is_done.load(Ordering::Relaxed) {
                let database = place.open("db", OpenMode::Write).unwrap();
                for _ in 0..5 {
                    number += 1;
                    crate::insert(&database, number, "a row that comes and goes");
                }
                database.close().unwrap();
                closed.fetch_add(1, Ordering::Relaxed);
            }
        });
        let ends = Ends(&is_done);
        for number in 0..COPIES {
            let directory = format!("copy{number}");
            let path = Path::new(&directory);
            copy_to_directory(&place.storage, &place.clock, Path::new("db"), path, settings(), &Silent).unwrap();
            let report = pagefold_utility::check_files(place.storage.as_ref(), path, &Silent).unwrap();
            assert!(report.errors.is_empty(), "copy {number}: {:?}", report.errors);
            wait_for(&closed, number, &writer);
        }
        drop(ends);
        writer.join().unwrap();
        println!("{COPIES} copies, closed {} times", closed.load(Ordering::Relaxed));
    });
}

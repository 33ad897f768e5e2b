//! Copies of a database in use, and databases made from copies and log.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod definitions;
mod faults;
mod logs;
mod place;
mod tables;

#[allow(dead_code, reason = "the world of the simulation does more")]
mod world;

use pagefold_engine::backup::{Until, copy_to_directory};
use pagefold_engine::database::{Database, OpenMode, TransactionOptions};
use pagefold_engine::{Error, Progress, Silent, Unit};
use pagefold_io::{Clock, CrashPolicy, FaultOptions, FaultStorage, OsClock, SimulatedClock};
use parking_lot::Mutex;
use place::{Place, recover, settings};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use world::{Random, TABLES, contents, find, row, text_of, wide};

const THREADS: i64 = 3;
const KEYS: i64 = 40;

/// What the keys of one thread have held after each of its commits.
struct History {
    states: Mutex<Vec<[BTreeMap<i64, String>; 2]>>,
    /// Commits that were begun, and acknowledged.
    begun: AtomicUsize,
    acknowledged: AtomicUsize,
}

fn work(database: &Database, thread: i64, history: &History, stop: &AtomicBool) {
    let mut random = Random(thread as u64 + 77);
    while !stop.load(Ordering::Relaxed) {
        let mut state = history.states.lock().last().unwrap().clone();
        let mut transaction = database.begin(TransactionOptions::default());
        for _ in 0..=random.below(8) {
            let table = random.below(2) as usize;
            let object = database.table(TABLES[table]).unwrap();
            let n = random.below(KEYS as u64) as i64 * THREADS + thread;
            let text = text_of(&mut random);
            let wide = wide(n, &text);
            let values = row(n, &text, &wide);
            match (find(&mut transaction, database, table, n).unwrap(), random.below(3)) {
                (None, _) => {
                    transaction.insert(&object, &values).unwrap();
                    state[table].insert(n, text);
                }
                (Some(rid), 0) => {
                    assert!(transaction.delete(&object, rid).unwrap());
                    state[table].remove(&n);
                }
                (Some(rid), _) => {
                    let changes: Vec<_> = values.into_iter().enumerate().skip(1).collect();
                    assert!(transaction.update(&object, rid, &changes).unwrap());
                    state[table].insert(n, text);
                }
            }
        }
        if random.below(6) == 0 {
            transaction.rollback().unwrap();
        } else {
            history.states.lock().push(state);
            history.begun.fetch_add(1, Ordering::SeqCst);
            transaction.commit().unwrap();
            history.acknowledged.fetch_add(1, Ordering::SeqCst);
        }
        match random.below(30) {
            0 => database.checkpoint().unwrap(),
            1..6 => steal(database, &mut random),
            _ => {}
        }
    }
}

/// Writes pages of running transactions.
fn steal(database: &Database, random: &mut Random) {
    let mut data_sets: Vec<_> =
        database.tables().unwrap().iter().flat_map(|table| table.data_sets().cloned().collect::<Vec<_>>()).collect();
    data_sets.extend(database.indexes().unwrap().iter().map(|index| Arc::clone(index.data_set())));
    database.write_dirty_pages(&data_sets[random.below(data_sets.len() as u64) as usize]).unwrap();
}

/// The keys of each thread are as after one of its commits between what was acknowledged before the copy and what was begun before its end.
fn assert_fits(place: &Place, directory: &str, histories: &[History], bounds: &[(usize, usize)]) {
    let database = place.open(directory, OpenMode::Write).unwrap();
    let found = contents(&database);
    for (thread, (history, (least, most))) in histories.iter().zip(bounds).enumerate() {
        let of = |table: &BTreeMap<i64, String>| -> BTreeMap<i64, String> {
            table.iter().filter(|(n, _)| **n % THREADS == thread as i64).map(|(n, text)| (*n, text.clone())).collect()
        };
        let own = [of(&found[0]), of(&found[1])];
        let states = history.states.lock();
        assert!(states[*least..=*most].contains(&own), "{directory}: thread {thread} is not as after one of its commits {least} to {most}");
    }
    // It goes on like any other.
    let mut transaction = database.begin(TransactionOptions::default());
    let table = database.table(TABLES[0]).unwrap();
    transaction.insert(&table, &row(1 << 40, "new", &wide(1 << 40, "new"))).unwrap();
    transaction.commit().unwrap();
    database.close().unwrap();
    assert!(contents(&place.open(directory, OpenMode::Read).unwrap())[0].contains_key(&(1 << 40)));
}

#[test]
fn copies_of_a_database_in_use_are_states_between_their_begin_and_end() {
    let place = Place::new(Arc::new(OsClock));
    let database = place.open("db", OpenMode::Write).unwrap();
    let new = || History { states: Mutex::new(vec![Default::default()]), begun: AtomicUsize::new(0), acknowledged: AtomicUsize::new(0) };
    let histories: Vec<History> = (0..THREADS).map(|_| new()).collect();
    let stop = AtomicBool::new(false);
    let mut checks = Vec::new();
    std::thread::scope(|scope| {
        for (thread, history) in (0..).zip(&histories) {
            let (database, stop) = (&database, &stop);
            scope.spawn(move || work(database, thread, history, stop));
        }
        let mut chain: Vec<PathBuf> = Vec::new();
        for round in 0..16 {
            let wait = histories[0].acknowledged.load(Ordering::SeqCst) + 12;
            while histories[0].acknowledged.load(Ordering::SeqCst) < wait {
                std::thread::yield_now();
            }
            let least: Vec<usize> = histories.iter().map(|h| h.acknowledged.load(Ordering::SeqCst)).collect();
            let directory = format!("made-{round}");
            if round % 4 == 0 {
                chain.clear();
            }
            if round % 4 == 3 {
                copy_to_directory(&place.storage, &place.clock, Path::new("db"), Path::new(&directory), settings(), &Silent).unwrap();
            } else {
                let file = PathBuf::from(format!("copy-{round}.pfc"));
                let base = chain.last().cloned();
                // With a checkpoint and without one, as beside another process.
                let report = match round % 2 {
                    0 => database.copy(&file, base.as_deref(), &Silent),
                    _ => place.copy_beside(&file, base.as_deref()),
                };
                assert!(report.unwrap().log_end > 0);
                chain.push(file);
            }
            let most: Vec<usize> = histories.iter().map(|h| h.begun.load(Ordering::SeqCst)).collect();
            checks.push((directory, chain.clone(), least.into_iter().zip(most).collect::<Vec<_>>()));
        }
        stop.store(true, Ordering::Relaxed);
    });
    for (directory, chain, bounds) in &checks {
        if !place.storage.exists(Path::new(directory)).unwrap() {
            recover(&place, directory, chain, &[], Until::End).unwrap();
        }
        assert_fits(&place, directory, &histories, bounds);
    }
    let commits: usize = histories.iter().map(|h| h.acknowledged.load(Ordering::SeqCst)).sum();
    assert!(commits > 200, "{commits} commits only");
}

/// Does something each time so much has been copied.
struct Meanwhile<F> {
    act: F,
    calls: AtomicUsize,
}

impl<F: Fn(usize) -> bool + Sync> Progress for Meanwhile<F> {
    fn start(&self, _phase: &str, _total: Option<u64>, _unit: Unit) {}
    fn advance(&self, _n: u64) {}
    fn finish(&self) {}
    fn interrupted(&self) -> bool {
        (self.act)(self.calls.fetch_add(1, Ordering::Relaxed))
    }
}

fn insert(database: &Database, n: i64, text: &str) {
    let table = database.table(TABLES[0]).unwrap();
    let mut transaction = database.begin(TransactionOptions::default());
    transaction.insert(&table, &row(n, text, &wide(n, text))).unwrap();
    transaction.commit().unwrap();
}

#[test]
fn the_log_stays_while_a_copy_is_taken() {
    let place = Place::simulated();
    let database = place.open("db", OpenMode::Write).unwrap();
    insert(&database, 1, "before");
    // Each call: more log than there is room in a segment, and two checkpoints, each of which would give back what lies before the one before.
    let meanwhile = Meanwhile {
        act: |call| {
            if call < 6 {
                (0..40).for_each(|i| insert(&database, 1000 + call as i64 * 40 + i, &"long ".repeat(60)));
                database.checkpoint().unwrap();
                database.checkpoint().unwrap();
            }
            false
        },
        calls: AtomicUsize::new(0),
    };
    database.copy(Path::new("copy.pfc"), None, &meanwhile).unwrap();
    let segments = place.storage.list(Path::new("db/log")).unwrap().len();
    assert!(segments > 4, "{segments} segments");
    recover(&place, "made", &["copy.pfc"], &[], Until::End).unwrap();
    let made = place.open("made", OpenMode::Write).unwrap();
    assert_eq!(contents(&made), contents(&database));
    // Afterwards it is given back.
    (0..4).for_each(|_| database.checkpoint().unwrap());
    assert!(place.segments("db/log") < segments);
}

#[test]
fn a_copy_that_is_interrupted_leaves_nothing() {
    let place = Place::simulated();
    let database = place.open("db", OpenMode::Write).unwrap();
    insert(&database, 1, "row");
    for stop_at in 0..3 {
        let stop = Meanwhile { act: |call| call == stop_at, calls: AtomicUsize::new(0) };
        assert!(matches!(database.copy(Path::new("copy.pfc"), None, &stop), Err(Error::Interrupted)));
        assert_eq!(place.names(), ["db"]);
    }
    database.copy(Path::new("copy.pfc"), None, &Silent).unwrap();
    assert!(matches!(database.copy(Path::new("copy.pfc"), None, &Silent), Err(Error::Exists { .. })));
    assert!(matches!(recover(&place, "db", &["copy.pfc"], &[], Until::End), Err(Error::Exists { .. })));
    assert_eq!(place.names(), ["copy.pfc", "db"]);
}

#[test]
fn a_copy_during_which_tables_change_begins_anew() {
    let place = Place::simulated();
    let database = place.open("db", OpenMode::Write).unwrap();
    insert(&database, 1, "row");
    let meanwhile = Meanwhile {
        act: |call| {
            if call == 1 {
                place.drop_index(&database, "plain_m");
                insert(&database, 2, "after");
            }
            false
        },
        calls: AtomicUsize::new(0),
    };
    database.copy(Path::new("copy.pfc"), None, &meanwhile).unwrap();
    recover(&place, "made", &["copy.pfc"], &[], Until::End).unwrap();
    let made = place.open("made", OpenMode::Write).unwrap();
    assert!(made.index("plain_m").is_err());
    assert_eq!(contents(&made), contents(&database));
}

#[test]
fn an_increment_has_what_changed_and_data_sets_that_are_new() {
    let place = Place::simulated();
    let database = place.open("db", OpenMode::Write).unwrap();
    (0..300).for_each(|n| insert(&database, n, "some text that makes pages"));
    let whole = database.copy(Path::new("whole.pfc"), None, &Silent).unwrap();
    let nothing = database.copy(Path::new("nothing.pfc"), Some(Path::new("whole.pfc")), &Silent).unwrap();
    // A header and a map page of each data set.
    assert_eq!(nothing.pages, 2 * nothing.data_sets);
    assert!(whole.pages > 2 * nothing.pages, "{whole:?}");
    insert(&database, 1000, "one more");
    let one = database.copy(Path::new("one.pfc"), Some(Path::new("nothing.pfc")), &Silent).unwrap();
    assert!(one.pages > nothing.pages && one.pages < nothing.pages + 10, "{one:?}");
    place.drop_index(&database, "coded_m");
    place.create_table(&database, "third", 500);
    let more = database.copy(Path::new("more.pfc"), Some(Path::new("one.pfc")), &Silent).unwrap();
    recover(&place, "made", &["whole.pfc", "nothing.pfc", "one.pfc", "more.pfc"], &[], Until::End).unwrap();
    let made = place.open("made", OpenMode::Write).unwrap();
    assert_eq!(contents(&made), contents(&database));
    assert_eq!(made.table("third").unwrap().row_count(), 500);
    assert!(made.index("coded_m").is_err());
    // As large as a whole one made at the same time, when both control slots name the same catalog.
    for database in [&made, &database] {
        (0..2).for_each(|_| database.checkpoint().unwrap());
    }
    drop((made, database));
    let size = |directory: &str| -> usize { place.storage.list(&Path::new(directory).join("data")).unwrap().len() };
    assert_eq!(size("made"), size("db"));
    assert!(more.pages < whole.pages);
}

#[test]
fn a_chain_with_a_gap_is_refused_and_the_gap_named() {
    let place = Place::simulated();
    let database = place.open("db", OpenMode::Write).unwrap();
    for (name, base) in [("a", None), ("b", Some("a")), ("c", Some("b")), ("d", None)] {
        insert(&database, i64::from(name.as_bytes()[0]), "row");
        let base = base.map(|base| PathBuf::from(format!("{base}.pfc")));
        database.copy(Path::new(&format!("{name}.pfc")), base.as_deref(), &Silent).unwrap();
    }
    let refused = |chain: &[&str], text: &str| {
        let error = recover(&place, "made", chain, &[], Until::End).unwrap_err().to_string();
        assert!(error.contains(text), "{chain:?}: {error}");
        assert!(place.names().iter().all(|name| !name.starts_with("made")), "{:?}", place.names());
    };
    refused(&["b.pfc"], "b.pfc: it goes on from copy");
    refused(&["a.pfc", "c.pfc"], "c.pfc: it goes on from copy");
    refused(&["a.pfc", "d.pfc"], "d.pfc: it is a whole copy");
    refused(&["d.pfc", "b.pfc"], "d.pfc is another one");
    refused(&["none.pfc"], "none.pfc");
    recover(&place, "made", &["a.pfc", "b.pfc", "c.pfc"], &[], Until::End).unwrap();
    let mut expected = contents(&database);
    expected[0].remove(&i64::from(b'd'));
    assert_eq!(contents(&place.open("made", OpenMode::Write).unwrap()), expected);
    // Of another database.
    place.create("other");
    let other = place.open("other", OpenMode::Write).unwrap();
    let error = other.copy(Path::new("x.pfc"), Some(Path::new("a.pfc")), &Silent).unwrap_err().to_string();
    assert!(error.contains("a.pfc: a copy of another database"), "{error}");
    // Of the same before it was recovered.
    let made = place.open("made", OpenMode::Write);
    let error = made.unwrap().copy(Path::new("x.pfc"), Some(Path::new("a.pfc")), &Silent).unwrap_err().to_string();
    assert!(error.contains("another log since"), "{error}");
}

#[test]
fn a_database_without_log_can_be_copied() {
    let clock: Arc<dyn Clock> = Arc::new(SimulatedClock::new(Duration::from_secs(1_000)));
    let place = Place::on(FaultStorage::new(FaultOptions::default()), clock);
    // It has no table.
    drop(place.open("db", OpenMode::Create).unwrap());
    let report = place.copy_beside(Path::new("copy.pfc"), None).unwrap();
    assert_eq!(report.log_end, 0);
    let error = recover(&place, "made", &["copy.pfc"], &[], Until::Time(1)).unwrap_err().to_string();
    assert!(error.contains("had no log"), "{error}");
    recover(&place, "made", &["copy.pfc"], &[], Until::End).unwrap();
    let made = place.open("made", OpenMode::Write).unwrap();
    place.create_table(&made, "t", 5);
    assert_eq!(made.table("t").unwrap().row_count(), 5);
    // What goes on from it holds everything.
    let database = place.open("db", OpenMode::Write).unwrap();
    place.create_table(&database, "t", 6);
    database.copy(Path::new("later.pfc"), Some(Path::new("copy.pfc")), &Silent).unwrap();
    recover(&place, "later", &["copy.pfc", "later.pfc"], &[], Until::End).unwrap();
    assert_eq!(place.open("later", OpenMode::Write).unwrap().table("t").unwrap().row_count(), 6);
}

/// What the log defines since the checkpoint comes along, with the pages that it was made with: whenever the process that made it ended.
#[test]
fn a_copy_has_what_the_log_defines() {
    let place = Place::simulated();
    let database = place.open("db", OpenMode::Write).unwrap();
    (0..20).for_each(|n| insert(&database, n, "row"));
    drop(database);
    let mut seen = BTreeMap::new();
    for call in 0.. {
        let run = Place::on(place.faults.crash_image(CrashPolicy::KeepAll), Arc::clone(&place.clock));
        run.faults.crash_at(run.faults.calls() + call);
        let done = run.open("db", OpenMode::Write).and_then(|database| {
            let mut change = database.change();
            change.drop_index("coded_m")?;
            let attributes = database.table(TABLES[0])?.attributes().clone();
            let empty = pagefold_engine::table_space::TableAttributes { name: "empty".into(), ..attributes };
            change.create_table(empty)?;
            change.commit()?;
            run.try_create_table(&database, "third", 500)
        });
        let finished = !run.faults.is_crashed();
        let image = Place::on(run.faults.crash_image(CrashPolicy::KeepAll), Arc::clone(&place.clock));
        image.copy_beside(Path::new("copy.pfc"), None).unwrap_or_else(|e| panic!("call {call}: {e}"));
        recover(&image, "made", &["copy.pfc"], &[], Until::End).unwrap_or_else(|e| panic!("call {call}: {e}"));
        let [made, database] = ["made", "db"].map(|directory| image.open(directory, OpenMode::Write).unwrap());
        let what = |database: &Database| -> Vec<(String, u64)> {
            let tables = database.tables().unwrap();
            let indexes = database.indexes().unwrap().into_iter().map(|index| (index.name().to_owned(), 0));
            tables.iter().map(|table| (table.name().to_owned(), table.row_count())).chain(indexes).collect()
        };
        assert_eq!(what(&made), what(&database), "call {call}");
        assert_eq!(contents(&made), contents(&database), "call {call}");
        *seen.entry(what(&made)).or_insert(0) += 1;
        if finished {
            done.unwrap();
            break;
        }
    }
    assert_eq!(seen.len(), 3, "before, between and after: {seen:?}");
}

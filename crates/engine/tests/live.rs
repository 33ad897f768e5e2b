//! What the process that writes shows, and how another one sees it.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use pagefold_engine::database::{Database, LIVE_INTERVAL, Onlooker, OpenMode, Settings, TransactionOptions};
use pagefold_engine::index::IndexAttributes;
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::TableAttributes;
use pagefold_engine::{Progress, Silent, Unit};
use pagefold_format::live_view::{LIVE_PLACE_BYTES, LIVE_TEXT_BYTES_MAX, LiveView};
use pagefold_io::{Clock, MemoryStorage, OpenOptions, OsClock, Storage, read_file};
use pagefold_types::{Column, DataType, Direction, Schema, ValueRef};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const DB: &str = "db";
const ASKED: &str = "db/live/asked";
const VIEW: &str = "db/live/view";

struct Place {
    storage: Arc<dyn Storage>,
    clock: Arc<dyn Clock>,
}

impl Place {
    fn new() -> Place {
        Place { storage: Arc::new(MemoryStorage::new()), clock: Arc::new(OsClock) }
    }

    fn open(&self, background_threads: usize) -> Database {
        let pools = PoolSettings { memory_bytes: 4 << 20, background_threads, ..PoolSettings::default() };
        let settings = Settings { pools, ..Settings::default() };
        Database::open(Arc::clone(&self.storage), Arc::clone(&self.clock), Path::new(DB), OpenMode::Create, settings).unwrap()
    }

    fn ask(&self) -> Onlooker {
        Onlooker::ask(&self.storage, &self.clock, Path::new(DB)).unwrap()
    }

    fn exists(&self, path: &str) -> bool {
        self.storage.exists(Path::new(path)).unwrap()
    }

    /// The bytes of the file with the view.
    fn view(&self) -> Vec<u8> {
        read_file(self.storage.as_ref(), Path::new(VIEW), 2 * LIVE_PLACE_BYTES).unwrap_or_default()
    }
}

fn table(database: &Database, name: &str, rows: i64) {
    let mut change = database.change();
    let schema = Schema::new(vec![Column::new("n", DataType::BigInt, false)]).unwrap();
    let table = change.create_table(TableAttributes::new(name, schema)).unwrap();
    change.create_index(&table, IndexAttributes::new(format!("{name}_pk"), vec![(0, Direction::Ascending)], true)).unwrap();
    change.commit().unwrap();
    let table = database.table(name).unwrap();
    let mut transaction = database.begin(TransactionOptions::default());
    for n in 0..rows {
        transaction.insert(&table, &[ValueRef::Int(n)]).unwrap();
    }
    transaction.commit().unwrap();
}

/// Waits until something is so.
#[track_caller]
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = OsClock.monotonic();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(OsClock.monotonic() - begun < Duration::from_secs(60), "{what}");
        OsClock.sleep(Duration::from_millis(20));
    }
}

fn next(onlooker: &mut Onlooker, than: u64) -> LiveView {
    until("no view comes", || onlooker.look().unwrap().filter(|view| view.unix_time_ns > than).cloned())
}

#[test]
fn nothing_is_written_until_somebody_looks_and_after_he_has_gone() {
    let place = Place::new();
    let database = place.open(1);
    table(&database, "t", 500);
    OsClock.sleep(LIVE_INTERVAL * 5 / 2);
    assert!(!place.exists("db/live"));
    let mut onlooker = place.ask();
    let first = next(&mut onlooker, 0);
    let second = next(&mut onlooker, first.unix_time_ns);
    assert_eq!((second.opening, second.sequence > first.sequence), (first.opening, true));
    for part in [
        "pagefold_pool_getpages_total{pool=\"",
        "pagefold_object_getpages_total{object=\"table t\"}",
        "index t_pk",
        "pagefold_commits_total ",
    ] {
        assert!(second.text.contains(part), "{part} is not in {}", second.text);
    }
    assert!(onlooker.age() < Duration::from_secs(30));
    // A second one beside it.
    let mut other = place.ask();
    drop(onlooker);
    let third = next(&mut other, second.unix_time_ns);
    drop(other);
    until("it is not noticed that nobody looks", || (!place.exists(ASKED)).then_some(()));
    let before = place.view();
    OsClock.sleep(LIVE_INTERVAL * 5 / 2);
    assert!(place.view() == before && LiveView::parse(&before[(third.place() as usize) * LIVE_PLACE_BYTES..], third.place()).is_some());
    // What was written before one asks is not shown to him.
    let mut late = place.ask();
    assert!(late.look().unwrap().is_none_or(|view| view.sequence > third.sequence));
    // With the database closed nothing new comes.
    next(&mut late, third.unix_time_ns);
    database.close().unwrap();
    let last = late.look().unwrap().unwrap().sequence;
    OsClock.sleep(LIVE_INTERVAL * 2);
    assert_eq!(late.look().unwrap().unwrap().sequence, last);
    assert!(late.age() >= LIVE_INTERVAL);
}

#[test]
fn a_place_that_is_torn_is_passed_over() {
    let place = Place::new();
    let database = place.open(1);
    table(&database, "t", 10);
    let mut onlooker = place.ask();
    let view = next(&mut onlooker, 0);
    next(&mut onlooker, view.unix_time_ns);
    database.close().unwrap();
    let bytes = place.view();
    let newest =
        (0..2).filter_map(|at| LiveView::parse(&bytes[at as usize * LIVE_PLACE_BYTES..], at)).max_by_key(|view| view.sequence).unwrap();
    let at = newest.place() * LIVE_PLACE_BYTES as u64 + 100;
    let file = place.storage.open(Path::new(VIEW), &OpenOptions::read_write()).unwrap();
    file.write_at(&[0xFF; 7], at).unwrap();
    let mut fresh = place.ask();
    // The other place is from before it asked; of this one nothing is believed.
    assert_eq!(fresh.look().unwrap(), None);
    file.set_len(50).unwrap();
    assert_eq!(fresh.look().unwrap(), None);
}

/// The samples of a name.
fn samples<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    text.lines().filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']))).collect()
}

#[test]
fn who_waits_for_whom_and_what_runs_is_shown() {
    let place = Place::new();
    let database = place.open(0);
    table(&database, "t", 100);
    let t = database.table("t").unwrap();
    let pk = database.index("t_pk").unwrap();
    let mut first = database.begin(TransactionOptions::default());
    let rid = first.find(&t, &pk, &[ValueRef::Int(7)]).unwrap()[0];
    assert!(first.delete(&t, rid).unwrap());
    let watched = database.watch("reorg \"t\"", &Silent);
    watched.start("reading\nrows", Some(200), Unit::Rows);
    watched.advance(50);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut second = database.begin(TransactionOptions::default());
            let done = second.delete(&t, rid).unwrap();
            second.rollback().unwrap();
            done
        });
        until("nobody waits", || (database.waiting_transactions() > 0).then_some(()));
        let text = database.metrics();
        let wait = until("the wait is not shown", || samples(&database.metrics(), "pagefold_lock_wait").first().map(ToString::to_string));
        assert!(wait.contains("of table t") && wait.contains(&format!("for=\"{}\"", first.id())), "{wait}");
        assert_eq!(samples(&text, "pagefold_locks_waiting"), ["pagefold_locks_waiting 1"]);
        assert_eq!(samples(&text, "pagefold_transactions_active"), ["pagefold_transactions_active 2"]);
        assert!(samples(&text, "pagefold_transaction_locks")[0].contains(&format!("transaction=\"{}\"", first.id())));
        assert_eq!(
            samples(&text, "pagefold_utility_done"),
            ["pagefold_utility_done{utility=\"reorg \\\"t\\\"\",phase=\"reading\\nrows\",unit=\"rows\"} 50"]
        );
        assert_eq!(samples(&text, "pagefold_utility_total").len(), 1);
        first.rollback().unwrap();
        assert!(waiting.join().unwrap());
    });
    drop(watched);
    let text = database.metrics();
    assert!(samples(&text, "pagefold_lock_wait").is_empty() && samples(&text, "pagefold_utility_done").is_empty());
    // Each name has its head once, before its first sample, and its samples together.
    let mut seen: Vec<&str> = Vec::new();
    for line in text.lines() {
        let name = line.trim_start_matches("# HELP ").trim_start_matches("# TYPE ");
        let name = &name[..name.find([' ', '{']).unwrap()];
        if seen.last() != Some(&name) {
            assert!(!seen.contains(&name) && line.starts_with("# HELP "), "{line}");
            seen.push(name);
        }
    }
    assert!(seen.len() >= 38, "{seen:?}");
}

#[test]
fn the_text_is_bounded_whatever_there_is() {
    let place = Place::new();
    let database = place.open(0);
    let long = "x".repeat(60);
    (0..80).for_each(|n| table(&database, &format!("{long}{n}"), 3));
    let transactions: Vec<_> = (0..200).map(|_| database.begin(TransactionOptions::default())).collect();
    let text = database.metrics();
    assert_eq!(samples(&text, "pagefold_transaction_age_seconds").len(), 32);
    assert_eq!(samples(&text, "pagefold_transactions_active"), ["pagefold_transactions_active 200"]);
    assert_eq!(samples(&text, "pagefold_object_getpages_total").len(), 64);
    assert_eq!(samples(&text, "pagefold_objects_left_out"), ["pagefold_objects_left_out 96"]);
    assert!(text.len() < LIVE_TEXT_BYTES_MAX, "{} bytes", text.len());
    drop(transactions);
}

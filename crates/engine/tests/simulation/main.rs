//! Random transactions on a simulated disk, and a crash at every I/O call: what was acknowledged is there, and nothing else.
//!
//! A run is given by its seed. Longer runs: `PAGEFOLD_SIMULATION_IMAGES=10000000 cargo test --release -p pagefold-engine --test simulation -- --nocapture`.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod flips;
mod hits;
mod hostile_log;
mod lost_writes;
mod world;

use hits::Hits;
use pagefold_engine::database::{Database, Isolation, OpenMode, TransactionOptions, control_path, read_control};
use pagefold_engine::{Error, Result};
use pagefold_format::control::{CONTROL_SLOT_BYTES, ControlSlot, SlotState};
use pagefold_io::{CallKind, CrashPolicy, Failure, FaultOptions, FaultStorage, OpenOptions, Repeat, Storage, read_exact_at};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use world::{Random, Shape, State, TABLES, change, contents, create, find, open, renew, row, wide};

/// What may be found after a crash now.
#[derive(Clone, Default)]
struct Promise {
    /// What was acknowledged.
    committed: State,
    /// What the commit under way makes of it.
    committing: Option<State>,
}

/// What was opened and compared.
#[derive(Default)]
struct Tally {
    images: HashSet<u64>,
    states: u64,
    /// Distinct images by what their recovery meets, and by what is in them.
    kinds: BTreeMap<String, u64>,
}

impl Tally {
    /// Counts an image; false when there was one like it.
    fn add(&mut self, image: &FaultStorage, labels: &[String], in_recovery: bool) -> bool {
        if !self.images.insert(image.content_hash()) {
            return false;
        }
        let hits = Hits::of(image);
        let kinds = [
            ("a stolen page", hits.stolen),
            ("a split", hits.split),
            ("a merge", hits.merged),
            ("an empty leaf taken out", hits.unlinked),
            ("three leaves or more merged", hits.spread),
            ("two leaves levelled", hits.levelled),
            ("a moved row", hits.moved),
            ("a rebuilt page", hits.rebuilt),
            ("a transaction without an end", hits.unfinished),
            ("a recovery cut short", in_recovery),
        ];
        let met = kinds.into_iter().filter(|(_, met)| *met).map(|(kind, _)| kind.to_string());
        met.chain(labels.iter().cloned()).for_each(|kind| *self.kinds.entry(kind).or_default() += 1);
        true
    }
}

/// How often, on average, a step is followed by something else.
#[derive(Clone, Copy)]
struct Pace {
    /// Transactions to a checkpoint.
    checkpoint: u64,
    /// Changes to a write of pages of running transactions.
    steal: u64,
    /// Changes to a renewal of dictionaries.
    renew: u64,
}

impl Pace {
    fn of(seed: u64) -> Pace {
        Pace {
            checkpoint: [9, 3, 60][seed as usize % 3],
            steal: [10, 2, 25][seed as usize / 3 % 3],
            renew: [40, 12][seed as usize / 9 % 2],
        }
    }
}

fn work(database: &Database, random: &mut Random, promise: &Mutex<Promise>, transactions: u64) -> Result<()> {
    let pace = Pace::of(random.0);
    for _ in 0..transactions {
        let mut model = promise.lock().committed.clone();
        let mut transaction = database.begin(TransactionOptions::default());
        for _ in 0..=random.below(12) {
            if random.below(8) == 0 {
                let savepoint = transaction.savepoint();
                let mut lost = model.clone();
                for _ in 0..=random.below(3) {
                    change(&mut transaction, database, &mut lost, random)?;
                }
                transaction.roll_back_to(savepoint)?;
            }
            change(&mut transaction, database, &mut model, random)?;
            if random.below(pace.steal) == 0 {
                steal(database, random)?;
            }
            if random.below(pace.renew) == 0 {
                renew(database, random)?;
            }
        }
        if random.below(5) == 0 {
            transaction.rollback()?;
        } else {
            promise.lock().committing = Some(model.clone());
            transaction.commit()?;
            *promise.lock() = Promise { committed: model, committing: None };
        }
        if random.below(pace.checkpoint) == 0 {
            database.checkpoint()?;
        }
    }
    Ok(())
}

/// Writes pages of running transactions.
fn steal(database: &Database, random: &mut Random) -> Result<()> {
    let mut data_sets: Vec<_> = database.tables().iter().flat_map(|table| table.partitions().cloned().collect::<Vec<_>>()).collect();
    data_sets.extend(database.indexes().iter().map(|index| Arc::clone(index.data_set())));
    database.write_dirty_pages(&data_sets[random.below(data_sets.len() as u64) as usize])
}

/// Opens an image and compares; with `again`, crashes at a call of the recovery first.
fn verify(image: &FaultStorage, promise: &Promise, what: &str) {
    let database = open(image, OpenMode::Write).unwrap_or_else(|e| panic!("{what}: {e}"));
    let found = contents(&database);
    let fits = found == promise.committed || promise.committing.as_ref() == Some(&found);
    assert!(fits, "{what}: found {found:?}\npromised {:?}\nor {:?}", promise.committed, promise.committing);
}

/// With the newer control slot damaged, the older one has all that it takes. Not when the two have different catalogs: the older one's files are gone then, and that is said.
fn verify_older_slot(image: &FaultStorage, promise: &Promise, what: &str) {
    let path = control_path(Path::new("db"));
    let current = read_control(image, Path::new("db")).unwrap().current;
    let older = 1 - ControlSlot::slot_number(current.sequence);
    let mut slot = [0; CONTROL_SLOT_BYTES];
    let file = image.open(&path, &OpenOptions::read_only()).unwrap();
    read_exact_at(file.as_ref(), &mut slot, (older * CONTROL_SLOT_BYTES) as u64).unwrap();
    if !matches!(ControlSlot::parse(&slot, older), SlotState::Valid(found) if found.catalog_file_id == current.catalog_file_id) {
        return;
    }
    image.flip_bit(&path, ((1 - older) * CONTROL_SLOT_BYTES + 40) as u64, 3).unwrap();
    verify(image, promise, &format!("{what}, the newer control slot damaged"));
}

/// Opens what is left of a database that was being made: it has all of its tables, or none.
fn verify_new(image: &FaultStorage, what: &str) {
    let database = open(image, OpenMode::Create).unwrap_or_else(|e| panic!("{what}: {e}"));
    if !database.tables().is_empty() {
        assert_eq!(contents(&database), State::default(), "{what}");
    }
}

fn run(seed: u64, sector_bytes: u32, transactions: u64, tally: &Arc<Mutex<Tally>>) {
    let storage = FaultStorage::new(FaultOptions { seed, sector_bytes, log_calls_max: 0, ..FaultOptions::default() });
    let shape = Shape::of(seed);
    let methods = shape.methods().map(|method| format!("tables under {method}"));
    let formats = shape.formats().map(|format| format!("indexes {format}"));
    let labels = [methods.as_slice(), &formats, &[format!("sectors of {sector_bytes}")]].concat();
    let (counted, all_labels) = (Arc::clone(tally), labels.clone());
    storage.set_observer(move |storage, call| {
        for policy in [CrashPolicy::DropAll, CrashPolicy::KeepAll, CrashPolicy::Random(storage.calls() ^ seed)] {
            let image = storage.crash_image(policy);
            if counted.lock().add(&image, &all_labels, false) {
                let what =
                    format!("seed {seed}, sectors of {sector_bytes}, before call {} ({call:?}) of making it, {policy:?}", storage.calls());
                verify_new(&image, &what);
                counted.lock().states += 1;
            }
        }
    });
    create(&storage, shape).unwrap();
    let promise = Arc::new(Mutex::new(Promise::default()));
    let (watched, counted) = (Arc::clone(&promise), Arc::clone(tally));
    storage.set_observer(move |storage, call| {
        let promise = watched.lock().clone();
        for policy in [CrashPolicy::DropAll, CrashPolicy::KeepAll, CrashPolicy::Random(storage.calls() ^ seed)] {
            let image = storage.crash_image(policy);
            if !counted.lock().add(&image, &labels, false) {
                continue;
            }
            let what = format!("seed {seed}, sectors of {sector_bytes}, before call {} ({call:?}), {policy:?}", storage.calls());
            // Sometimes the recovery crashes too.
            if storage.calls().is_multiple_of(5) {
                let calls = storage.calls() % 40;
                image.crash_at(image.calls() + calls);
                drop(open(&image, OpenMode::Write));
                let second = image.crash_image(CrashPolicy::Random(calls));
                if counted.lock().add(&second, &labels, true) {
                    verify(&second, &promise, &format!("{what}, and after {calls} calls of recovery"));
                }
            } else {
                verify(&image, &promise, &what);
            }
            counted.lock().states += 1;
            if storage.calls() % 7 == 3 {
                verify_older_slot(&storage.crash_image(policy), &promise, &what);
                counted.lock().states += 1;
            }
        }
    });
    let database = open(&storage, OpenMode::Write).unwrap();
    let mut random = Random(seed);
    work(&database, &mut random, &promise, transactions).unwrap();
    // The process is killed at some call, and the machine goes on: what was written and not synced is still read, but not durable.
    storage.error_at(storage.calls() + random.below(120), Failure::Io, Repeat::Forever);
    let _ = work(&database, &mut random, &promise, transactions);
    drop(database);
    storage.clear_faults();
    let database = open(&storage, OpenMode::Write).unwrap();
    let found = contents(&database);
    {
        let mut promise = promise.lock();
        assert!(found == promise.committed || promise.committing.as_ref() == Some(&found), "seed {seed}: killed");
        // What has been seen once is never lost.
        *promise = Promise { committed: found, committing: None };
    }
    work(&database, &mut random, &promise, transactions / 4).unwrap();
    drop(database);
    storage.clear_observer();
    verify(&storage, &promise.lock(), &format!("seed {seed}: at the end"));
}

#[test]
fn nothing_is_lost_in_a_crash() {
    let wanted = std::env::var("PAGEFOLD_SIMULATION_IMAGES").ok().and_then(|n| n.parse().ok()).unwrap_or(5_000);
    let tally = Arc::new(Mutex::new(Tally::default()));
    let first = std::env::var("PAGEFOLD_SIMULATION_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    for seed in first.. {
        run(seed, if seed % 2 == 0 { 512 } else { 4096 }, 40, &tally);
        let tally = tally.lock();
        if seed % 50 == 0 {
            println!("{} states, {} distinct images, seed {seed}", tally.states, tally.images.len());
        }
        if tally.images.len() >= wanted {
            break;
        }
    }
    let tally = tally.lock();
    println!("{} states, {} distinct images, of these with: {:#?}", tally.states, tally.images.len(), tally.kinds);
}

/// Kills the process at a call, which may be one of making the database, lets another one open it and go on, and crashes the machine at each of its calls.
fn run_killed_at(seed: u64, call: u64, transactions: u64, tally: &Arc<Mutex<Tally>>) {
    let (storage, shape) = (FaultStorage::new(FaultOptions { seed, log_calls_max: 0, ..FaultOptions::default() }), Shape::of(seed));
    let what = format!("seed {seed}, killed at call {call}");
    let promise = Arc::new(Mutex::new(Promise::default()));
    storage.error_at(call, Failure::Io, Repeat::Forever);
    let made = create(&storage, shape).is_ok();
    if made && let Ok(database) = open(&storage, OpenMode::Write) {
        let _ = work(&database, &mut Random(seed), &promise, transactions);
    }
    storage.clear_faults();
    // What the next process sees may not be durable yet: until it has opened the database, a crash may take back what nobody was told of.
    let image = storage.crash_image(CrashPolicy::KeepAll);
    if made {
        verify(&image, &promise.lock(), &what);
        let seen = contents(&open(&image, OpenMode::Write).unwrap());
        promise.lock().committing = Some(seen);
    } else {
        verify_new(&image, &what);
    }
    let made = Arc::new(AtomicBool::new(made));
    let (watched, is_made, counted, text) = (Arc::clone(&promise), Arc::clone(&made), Arc::clone(tally), what.clone());
    storage.set_observer(move |storage, call| {
        let promise = watched.lock().clone();
        for policy in [CrashPolicy::DropAll, CrashPolicy::Random(storage.calls() ^ seed)] {
            let image = storage.crash_image(policy);
            if counted.lock().add(&image, &[], false) {
                let what = format!("{text}, before call {} ({call:?}), {policy:?}", storage.calls());
                if is_made.load(Ordering::Relaxed) {
                    verify(&image, &promise, &what)
                } else {
                    verify_new(&image, &what)
                }
                counted.lock().states += 1;
            }
        }
    });
    if open(&storage, OpenMode::Create).unwrap_or_else(|e| panic!("{what}: {e}")).tables().is_empty() {
        create(&storage, shape).unwrap_or_else(|e| panic!("{what}: {e}"));
    }
    made.store(true, Ordering::Relaxed);
    let database = open(&storage, OpenMode::Write).unwrap_or_else(|e| panic!("{what}: {e}"));
    let found = contents(&database);
    *promise.lock() = Promise { committed: found, committing: None };
    work(&database, &mut Random(call), &promise, 3).unwrap();
    drop(database);
    storage.clear_observer();
    verify(&storage, &promise.lock(), &what);
}

/// Behind every call that changes names, and at every so many-th of the others (`PAGEFOLD_SIMULATION_KILL_EVERY`, 1: each), of as many runs as `PAGEFOLD_SIMULATION_KILL_RUNS` says.
#[test]
fn a_process_is_killed_at_any_call_and_then_the_machine() {
    let setting = |name: &str, default: usize| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    let (every, runs) = (setting("PAGEFOLD_SIMULATION_KILL_EVERY", 100), setting("PAGEFOLD_SIMULATION_KILL_RUNS", 3));
    let tally = Arc::new(Mutex::new(Tally::default()));
    let mut kills = 0;
    for seed in 1..=runs as u64 {
        let transactions = 12;
        let storage = FaultStorage::new(FaultOptions { seed, ..FaultOptions::default() });
        create(&storage, Shape::of(seed)).unwrap();
        let database = open(&storage, OpenMode::Write).unwrap();
        work(&database, &mut Random(seed), &Mutex::default(), transactions).unwrap();
        drop(database);
        for (number, call) in storage.call_log().into_iter().enumerate() {
            let names = matches!(call.kind, CallKind::Create | CallKind::Remove | CallKind::Rename | CallKind::CreateDirectory);
            if names || (number + seed as usize).is_multiple_of(every) {
                run_killed_at(seed, call.index + 1, transactions, &tally);
                kills += 1;
            }
        }
    }
    let tally = tally.lock();
    println!("{kills} kills, {} distinct images after them, of these with: {:#?}", tally.images.len(), tally.kinds);
    assert!(tally.states > 100, "only {} states", tally.states);
}

/// A run with a fault at one call; afterwards the database is opened again, as it is or after a crash.
fn run_with_fault(seed: u64, transactions: u64, fault: &dyn Fn(&FaultStorage), policy: Option<CrashPolicy>, what: &str) -> bool {
    let storage = FaultStorage::new(FaultOptions { seed, ..FaultOptions::default() });
    create(&storage, Shape::of(seed)).unwrap();
    let promise = Mutex::new(Promise::default());
    fault(&storage);
    let outcome = open(&storage, OpenMode::Write).and_then(|database| work(&database, &mut Random(seed), &promise, transactions));
    storage.clear_faults();
    let promise = promise.into_inner();
    let found = policy.map_or_else(|| storage.clone(), |policy| storage.crash_image(policy));
    verify(&found, &promise, what);
    outcome.is_err()
}

#[test]
fn an_error_at_any_call_loses_nothing() {
    let transactions = 8;
    let calls = {
        let storage = FaultStorage::new(FaultOptions { seed: 5, ..FaultOptions::default() });
        create(&storage, Shape::default()).unwrap();
        let first = storage.calls();
        let database = open(&storage, OpenMode::Write).unwrap();
        work(&database, &mut Random(5), &Mutex::default(), transactions).unwrap();
        drop(database);
        first..storage.calls() + 3
    };
    let mut failed = 0;
    for call in calls.clone() {
        for (failure, repeat) in [(Failure::Io, Repeat::Once), (Failure::Io, Repeat::Forever), (Failure::NoSpace, Repeat::Forever)] {
            let fault = |storage: &FaultStorage| storage.error_at(call, failure, repeat);
            let what = format!("{failure:?} {repeat:?} at call {call}");
            failed += u64::from(run_with_fault(5, transactions, &fault, None, &what));
        }
        let fault = |storage: &FaultStorage| storage.short_write_at(call, 700, Failure::NoSpace);
        failed += u64::from(run_with_fault(5, transactions, &fault, None, &format!("short write at call {call}")));
        // A sync that fails and drops what it should have made durable; then the machine dies.
        let fault = |storage: &FaultStorage| storage.sync_drops_at(call);
        let what = format!("a sync that drops its data at call {call}");
        failed += u64::from(run_with_fault(5, transactions, &fault, Some(CrashPolicy::DropAll), &what));
    }
    println!("{} calls, {failed} runs ended early", calls.end - calls.start);
    assert!(failed > 500, "only {failed} faults were met");
}

#[test]
fn a_full_disk_is_an_error_of_the_statement() {
    let mut refused = 0;
    for seed in 1..40 {
        let storage = FaultStorage::new(FaultOptions { seed, ..FaultOptions::default() });
        create(&storage, Shape::of(seed)).unwrap();
        let database = open(&storage, OpenMode::Write).unwrap();
        let promise = Mutex::new(Promise::default());
        let mut random = Random(seed);
        work(&database, &mut random, &promise, 3).unwrap();
        // Room for little more.
        storage.set_capacity(Some(storage.taken_bytes() + seed * 512));
        let mut transaction = database.begin(TransactionOptions::default());
        let mut model = promise.lock().committed.clone();
        for _ in 0..4_000 {
            match change(&mut transaction, &database, &mut model, &mut random) {
                Ok(()) => {}
                Err(Error::Io(_)) => {
                    refused += 1;
                    break;
                }
                Err(other) => panic!("seed {seed}: {other}"),
            }
        }
        // What was done before the statement that failed stands, or goes, as its user likes.
        if seed % 2 == 0 {
            transaction.rollback().unwrap();
        } else {
            transaction.commit().unwrap();
            promise.lock().committed = model;
        }
        storage.set_capacity(None);
        assert_eq!(contents(&database), promise.lock().committed, "seed {seed}");
        work(&database, &mut random, &promise, 10).unwrap();
        drop(database);
        verify(&storage, &promise.lock(), &format!("seed {seed}, opened again"));
    }
    assert!(refused > 10, "only {refused} statements were refused");
}

#[test]
fn works_without_crashes() -> Result<()> {
    for seed in 1..6 {
        let storage = FaultStorage::new(FaultOptions { seed, ..FaultOptions::default() });
        create(&storage, Shape::of(seed))?;
        let promise = Mutex::new(Promise::default());
        for part in 0..4 {
            let database = open(&storage, OpenMode::Write)?;
            work(&database, &mut Random(seed * 10 + part), &promise, 60)?;
            assert_eq!(contents(&database), promise.lock().committed, "seed {seed}, part {part}");
            drop(database);
            let database = open(&storage, OpenMode::Write)?;
            assert_eq!(contents(&database), promise.lock().committed, "seed {seed}, part {part}, opened again");
        }
    }
    Ok(())
}

/// Rows come with ascending numbers, the oldest go: leaves are emptied and taken out.
#[test]
fn a_queue_survives_crashes() {
    const ROWS: i64 = 900;
    let storage = FaultStorage::new(FaultOptions { log_calls_max: 0, ..FaultOptions::default() });
    create(&storage, Shape::default()).unwrap();
    let promise = Arc::new(Mutex::new(Promise::default()));
    let tally = Arc::new(Mutex::new(Tally::default()));
    let (watched, counted) = (Arc::clone(&promise), Arc::clone(&tally));
    storage.set_observer(move |storage, call| {
        let image = storage.crash_image(CrashPolicy::DropAll);
        if counted.lock().add(&image, &[], false) {
            verify(&image, &watched.lock().clone(), &format!("before call {} ({call:?})", storage.calls()));
        }
    });
    let database = open(&storage, OpenMode::Write).unwrap();
    let table = database.table(TABLES[0]).unwrap();
    for part in 0..40 {
        let mut model = promise.lock().committed.clone();
        let mut t = database.begin(TransactionOptions::default());
        for n in part * 60..(part + 1) * 60 {
            t.insert(&table, &row(n, "", &wide(n, ""))).unwrap();
            model[0].insert(n, String::new());
            if n >= ROWS {
                let oldest = find(&mut t, &database, 0, n - ROWS).unwrap().unwrap();
                assert!(t.delete(&table, oldest).unwrap());
                model[0].remove(&(n - ROWS));
            }
        }
        promise.lock().committing = Some(model.clone());
        t.commit().unwrap();
        *promise.lock() = Promise { committed: model, committing: None };
        if part % 8 == 7 {
            database.checkpoint().unwrap();
        }
    }
    let leaves = database.index(&format!("{}_pk", TABLES[0])).unwrap().tree().levels().unwrap()[0].pages;
    assert!(leaves <= 13, "{leaves} leaves");
    drop(table);
    drop(database);
    let tally = tally.lock();
    println!("{} distinct images, of these with: {:#?}", tally.images.len(), tally.kinds);
    assert!(tally.kinds.get("an empty leaf taken out").is_some_and(|n| *n > 5), "{:?}", tally.kinds);
}

/// A slot that is used again may hold a ghost of another kind than the one that the log tells of first.
#[test]
fn a_ghost_in_the_slot_of_one_that_was_removed() {
    let storage = FaultStorage::new(FaultOptions::default());
    create(&storage, Shape::default()).unwrap();
    let database = open(&storage, OpenMode::Write).unwrap();
    let table = database.table(TABLES[1]).unwrap();
    let odd: String = (0..60u32).filter_map(|i| char::from_u32(33 + i * 37 % 90)).collect();
    let insert = |n: i64, text: &str| {
        let mut t = database.begin(TransactionOptions::default());
        let rid = t.insert(&table, &row(n, text, &wide(n, text))).unwrap();
        t.commit().unwrap();
        rid
    };
    let delete = |rid| {
        let mut t = database.begin(TransactionOptions::default());
        assert!(t.delete(&table, rid).unwrap());
        t.commit().unwrap();
    };
    // One that does not shrink, one that does; and the other way round.
    let known = "carefully final deposits sleep furiously ";
    for (first, second) in [(odd.as_str(), known), (known, odd.as_str())] {
        let rid = insert(1, first);
        database.checkpoint().unwrap();
        delete(rid);
        assert_eq!(insert(2, second), rid, "the slot is used again");
        let mut reader = database.begin(TransactionOptions { isolation: Isolation::RepeatableRead, ..TransactionOptions::default() });
        assert!(reader.row(&table, rid).unwrap().is_some());
        delete(rid);
        assert!(reader.row(&table, rid).unwrap().is_some());
        verify(&storage.crash_image(CrashPolicy::DropAll), &Promise::default(), "with a ghost");
        drop(reader);
        database.remove_leftovers().unwrap();
    }
}

#[test]
fn a_reader_recovers_for_itself() {
    let storage = FaultStorage::new(FaultOptions::default());
    create(&storage, Shape::default()).unwrap();
    let database = open(&storage, OpenMode::Write).unwrap();
    let promise = Mutex::new(Promise::default());
    work(&database, &mut Random(3), &promise, 5).unwrap();
    let image = storage.crash_image(CrashPolicy::DropAll);
    let committed = &promise.lock().committed;
    for _ in 0..2 {
        assert_eq!(&contents(&open(&image, OpenMode::Read).unwrap()), committed);
    }
    let hash = image.content_hash();
    drop(open(&image, OpenMode::Read).unwrap());
    assert_eq!(image.content_hash(), hash, "nothing stays of a reader");
    assert_eq!(&contents(&open(&image, OpenMode::Write).unwrap()), committed);
}

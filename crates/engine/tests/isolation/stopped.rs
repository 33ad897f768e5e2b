//! Readers that are stopped, at any moment: they keep neither the writer nor other readers from anything, and see one state when they go on.

use crate::world::{Form, Random, Rows, World, open};
use pagefold_engine::Error;
use pagefold_engine::database::Isolation::ReadCommitted;
use pagefold_engine::database::OpenMode;
use pagefold_engine::readers::Snapshot;
use pagefold_io::{FaultOptions, FaultStorage, LockKind, MemoryStorage, Storage};
use pagefold_types::ValueRef;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A transaction, its pages, and a checkpoint.
fn write(world: &World, random: &mut Random) {
    let mut t = world.begin(ReadCommitted);
    for _ in 0..30 {
        let (number, value) = (random.below(600) as i64, random.below(1000) as i64);
        let rid = world.find(&mut t, number).unwrap();
        t.update(&world.table, rid, &[(1, ValueRef::Int(value)), (2, ValueRef::Text(&random.text(30)))]).unwrap();
    }
    t.commit().unwrap();
    let indexes = [&world.by_number, &world.by_value].map(|index| index.data_set());
    world.table.data_sets().chain(indexes).filter(|d| d.is_defined()).for_each(|d| world.database.write_dirty_pages(d).unwrap());
    world.database.checkpoint().unwrap();
}

fn filled(storage: &Arc<dyn Storage>) -> World {
    let world = open(storage, Form::default(), OpenMode::Create);
    world.fill((0..600).map(|number| (number, number % 7)));
    write(&world, &mut Random(1));
    world
}

/// The process that has the gate alone is stopped: somebody else's lock, for ever.
#[test]
fn who_is_stopped_with_the_gate_is_overtaken() {
    for name in ["gate", "turn"] {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let writer = filled(&storage);
        let before = open(&storage, Form::default(), OpenMode::Read);
        let seen = before.committed();
        let stopped = storage.lock_within(&Path::new("db/readers").join(name), LockKind::Exclusive, Duration::ZERO).unwrap();
        write(&writer, &mut Random(2));
        let reader = open(&storage, Form::default(), OpenMode::Read);
        assert_eq!(reader.committed(), writer.committed());
        assert_eq!(before.committed(), seen, "what was preserved before and after");
        write(&writer, &mut Random(3));
        drop(stopped);
        let last = open(&storage, Form::default(), OpenMode::Read);
        assert_eq!(last.check(), writer.check());
        let gates =
            || storage.list(Path::new("db/readers")).unwrap().iter().filter(|path| path.to_str().unwrap().contains("/gate")).count();
        assert_eq!(gates(), 1, "{name}: older gates go when nobody has them");
    }
}

/// Several in a row, each with the gate that the one before has lost.
#[test]
fn one_after_the_other_can_be_stopped() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let writer = filled(&storage);
    let mut stopped = Vec::new();
    for round in 0..3 {
        let name = if round == 0 { "db/readers/gate".to_owned() } else { format!("db/readers/gate.{round}") };
        stopped.push(storage.lock_within(Path::new(&name), LockKind::Exclusive, Duration::ZERO).unwrap());
        write(&writer, &mut Random(round));
        assert_eq!(open(&storage, Form::default(), OpenMode::Read).committed(), writer.committed());
    }
}

/// Pages are being written: a reader does not begin meanwhile, and says so.
#[test]
fn a_writer_that_is_stopped_amid_pages_keeps_new_readers_out_and_they_say_so() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let writer = filled(&storage);
    let old = open(&storage, Form::default(), OpenMode::Read);
    let stopped = storage.lock_within(Path::new("db/readers/gate"), LockKind::Shared, Duration::ZERO).unwrap();
    let refused = Snapshot::take(&storage, Path::new("db"), false).unwrap_err();
    assert!(matches!(&refused, Error::Busy(why) if why.contains("has begun to write pages")), "{refused}");
    // Nor does one get past it that comes when others have begun a new gate.
    let turn = storage.lock_within(Path::new("db/readers/turn"), LockKind::Exclusive, Duration::ZERO).unwrap();
    let refused = Snapshot::take(&storage, Path::new("db"), false).unwrap_err();
    assert!(matches!(&refused, Error::Busy(why) if why.contains("has begun to write pages")), "{refused}");
    assert!(storage.exists(Path::new("db/readers/gate.1")).unwrap());
    assert_eq!(old.committed(), writer.committed(), "who is there already is not concerned");
    drop((stopped, turn));
    assert!(Snapshot::take(&storage, Path::new("db"), false).unwrap().is_registered());
}

/// A reader is stopped before each of its calls in turn, for as long as it takes the writer to commit, write pages and checkpoint, and another reader to come and go.
#[test]
fn a_reader_that_is_stopped_at_any_call_costs_at_most_itself() {
    let run = |stop_at: u64, writes: u64| -> (u64, Option<Rows>, Vec<Rows>) {
        let disk = FaultStorage::new(FaultOptions::default());
        let storage: Arc<dyn Storage> = Arc::new(disk.clone());
        let writer = Arc::new(filled(&storage));
        let states = Arc::new(parking_lot::Mutex::new(vec![writer.committed()]));
        let (calls, inside) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        disk.set_observer({
            let (writer, states, calls, inside, storage) =
                (Arc::clone(&writer), Arc::clone(&states), Arc::clone(&calls), Arc::clone(&inside), Arc::clone(&storage));
            move |_, _| {
                if inside.swap(true, Ordering::SeqCst) {
                    return;
                }
                // What a call finds when it is made is what it finds after the stop.
                if calls.fetch_add(1, Ordering::SeqCst) == stop_at {
                    for round in 0..writes {
                        write(&writer, &mut Random(50 + round));
                        states.lock().push(writer.committed());
                        let other = open(&storage, Form::default(), OpenMode::Read);
                        assert_eq!(other.committed(), writer.committed(), "call {stop_at}: another reader");
                    }
                }
                inside.store(false, Ordering::SeqCst);
            }
        });
        let reader = Snapshot::take(&storage, Path::new("db"), false);
        disk.clear_observer();
        let calls = calls.load(Ordering::SeqCst);
        let seen = reader.map(|snapshot| open(&snapshot.storage(), Form::default(), OpenMode::Read).check());
        let seen = seen.map_err(|error| panic!("stopped at call {stop_at}: {error}")).ok();
        let states = states.lock().clone();
        writer.check();
        (calls, seen, states)
    };
    let (calls, _, _) = run(u64::MAX, 0);
    let every = if std::env::var_os("PAGEFOLD_STOPS").is_some() { 1 } else { 5 };
    let mut later = 0;
    for stop_at in (0..calls).step_by(every) {
        let (_, seen, states) = run(stop_at, 2);
        let seen = seen.unwrap();
        assert!(states.contains(&seen), "stopped at call {stop_at} of {calls}: the reader sees no state that was committed");
        later += u32::from(seen != states[0]);
    }
    println!("stopped at {} of {calls} calls; {later} saw what was committed meanwhile", calls.div_ceil(every as u64));
    assert!(later > 0, "none was overtaken: this shows nothing");
}

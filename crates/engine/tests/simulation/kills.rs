//! A process that is killed at any call, and then the machine.

use crate::images::{Tally, contents, verify, verify_new};
use crate::model::{Left, Promise};
use crate::player::{Player, work};
use crate::setting;
use crate::steps::{Mix, Step, history};
use crate::world::{Random, Shape, create, open};
use pagefold_engine::database::{Database, OpenMode};
use pagefold_io::{CallKind, CrashPolicy, Failure, FaultOptions, FaultStorage, Repeat};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn steps(seed: u64, count: usize) -> Vec<Step> {
    history(&mut Random(seed), Mix::plain(), count)
}

/// Takes steps as far as the process lives.
fn work_while_it_lives(database: &Database, promise: &Arc<Mutex<Promise>>, steps: &[Step]) {
    let mut player = Player::new(database, promise, &Arc::default());
    player.trouble.killed.store(true, Ordering::Relaxed);
    let _ = player.play(steps);
}

/// Kills the process at a call, which may be one of making the database, lets another one open it and go on, and crashes the machine at each of its calls.
fn run_killed_at(seed: u64, call: u64, count: usize, tally: &Arc<Mutex<Tally>>) {
    let (storage, shape) = (FaultStorage::new(FaultOptions { seed, log_calls_max: 0, ..FaultOptions::default() }), Shape::of(seed));
    let what = format!("seed {seed}, killed at call {call}");
    let promise: Arc<Mutex<Promise>> = Arc::default();
    storage.error_at(call, Failure::Io, Repeat::Forever);
    let made = create(&storage, shape).is_ok();
    if made && let Ok(database) = open(&storage, OpenMode::Write) {
        work_while_it_lives(&database, &promise, &steps(seed, count));
    }
    storage.clear_faults();
    // What the next process sees may not be durable yet: until it has opened the database, a crash may take back what nobody was told of.
    let image = storage.crash_image(CrashPolicy::KeepAll);
    if made {
        verify(&image, &promise.lock(), Left::Written).unwrap_or_else(|e| panic!("{what}: {e}"));
        let seen = contents(&open(&image, OpenMode::Write).unwrap());
        promise.lock().begin(seen);
    } else {
        verify_new(&image).unwrap_or_else(|e| panic!("{what}: {e}"));
    }
    let made = Arc::new(AtomicBool::new(made));
    let (watched, is_made, counted, text) = (Arc::clone(&promise), Arc::clone(&made), Arc::clone(tally), what.clone());
    storage.set_observer(move |storage, call| {
        let promise = watched.lock().clone();
        for policy in [CrashPolicy::DropAll, CrashPolicy::Random(storage.calls() ^ seed)] {
            let image = storage.crash_image(policy);
            if counted.lock().is_new(&image) {
                let verified = if is_made.load(Ordering::Relaxed) { verify(&image, &promise, Left::Durable) } else { verify_new(&image) };
                verified.unwrap_or_else(|e| panic!("{text}, before call {} ({call:?}), {policy:?}: {e}", storage.calls()));
            }
        }
    });
    if open(&storage, OpenMode::Create).unwrap_or_else(|e| panic!("{what}: {e}")).table_names().is_empty() {
        create(&storage, shape).unwrap_or_else(|e| panic!("{what}: {e}"));
    }
    made.store(true, Ordering::Relaxed);
    let database = open(&storage, OpenMode::Write).unwrap_or_else(|e| panic!("{what}: {e}"));
    // Read before the promise is held: whoever watches the calls asks for it.
    let found = contents(&database);
    promise.lock().found(found);
    work(&database, &promise, &steps(call, 20)).unwrap();
    drop(database);
    storage.clear_observer();
    verify(&storage, &promise.lock(), Left::Written).unwrap_or_else(|e| panic!("{what}: {e}"));
}

/// Behind every call that changes names, and at every so many-th of the others (`PAGEFOLD_SIMULATION_KILL_EVERY`, 1: each), of as many runs as `PAGEFOLD_SIMULATION_KILL_RUNS` says.
#[test]
fn a_process_is_killed_at_any_call_and_then_the_machine() {
    let (every, runs) = (setting("PAGEFOLD_SIMULATION_KILL_EVERY", 100), setting("PAGEFOLD_SIMULATION_KILL_RUNS", 1));
    let tally = Arc::new(Mutex::new(Tally::default()));
    let mut kills = 0;
    for seed in 1..=runs as u64 {
        let count = 80;
        let storage = FaultStorage::new(FaultOptions { seed, ..FaultOptions::default() });
        create(&storage, Shape::of(seed)).unwrap();
        let database = open(&storage, OpenMode::Write).unwrap();
        work(&database, &Arc::default(), &steps(seed, count)).unwrap();
        drop(database);
        for (number, call) in storage.call_log().into_iter().enumerate() {
            let names = matches!(call.kind, CallKind::Create | CallKind::Remove | CallKind::Rename | CallKind::CreateDirectory);
            if names || (number + seed as usize).is_multiple_of(every) {
                run_killed_at(seed, call.index + 1, count, &tally);
                kills += 1;
            }
        }
    }
    let images = tally.lock().images.len();
    println!("{kills} kills, {images} distinct images after them");
    assert!(images > 100, "only {images} images");
}

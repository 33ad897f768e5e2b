//! An error at one call of a run, or from one on; afterwards the database is opened again, as it is or after a crash.

use crate::images::{contents, verify};
use crate::model::{Left, Promise};
use crate::player::{Halt, work};
use crate::steps::{Mix, Step, history};
use crate::world::{Random, Shape, create, open};
use pagefold_engine::database::OpenMode;
use pagefold_io::{CrashPolicy, Failure, FaultOptions, FaultStorage, Repeat};
use parking_lot::Mutex;
use std::sync::Arc;

const SEED: u64 = 5;

fn steps(count: usize) -> Vec<Step> {
    history(&mut Random(SEED), Mix::plain(), count)
}

/// Did the run end early?
fn run_with_fault(steps: &[Step], fault: &dyn Fn(&FaultStorage), policy: Option<CrashPolicy>, what: &str) -> bool {
    let storage = FaultStorage::new(FaultOptions { seed: SEED, ..FaultOptions::default() });
    create(&storage, Shape::default()).unwrap();
    let promise: Arc<Mutex<Promise>> = Arc::default();
    fault(&storage);
    let ended = match open(&storage, OpenMode::Write) {
        // What a statement may say to such an error is not asked here, only what is there afterwards.
        Ok(database) => matches!(work(&database, &promise, steps), Err(Halt::Fault(_) | Halt::Killed)),
        Err(_) => true,
    };
    storage.clear_faults();
    let found = policy.map_or_else(|| storage.clone(), |policy| storage.crash_image(policy));
    verify(&found, &promise.lock(), Left::Written).unwrap_or_else(|e| panic!("{what}: {e}"));
    ended
}

#[test]
fn an_error_at_any_call_loses_nothing() {
    let steps = steps(60);
    let calls = {
        let storage = FaultStorage::new(FaultOptions { seed: SEED, ..FaultOptions::default() });
        create(&storage, Shape::default()).unwrap();
        let first = storage.calls();
        let database = open(&storage, OpenMode::Write).unwrap();
        work(&database, &Arc::default(), &steps).unwrap();
        drop(database);
        first..storage.calls() + 3
    };
    let mut failed = 0;
    for call in calls.clone() {
        for (failure, repeat) in [(Failure::Io, Repeat::Once), (Failure::Io, Repeat::Forever), (Failure::NoSpace, Repeat::Forever)] {
            let fault = |storage: &FaultStorage| storage.error_at(call, failure, repeat);
            let what = format!("{failure:?} {repeat:?} at call {call}");
            failed += u64::from(run_with_fault(&steps, &fault, None, &what));
        }
        let fault = |storage: &FaultStorage| storage.short_write_at(call, 700, Failure::NoSpace);
        failed += u64::from(run_with_fault(&steps, &fault, None, &format!("short write at call {call}")));
        // A sync that fails and drops what it should have made durable; then the machine dies.
        let fault = |storage: &FaultStorage| storage.sync_drops_at(call);
        let what = format!("a sync that drops its data at call {call}");
        failed += u64::from(run_with_fault(&steps, &fault, Some(CrashPolicy::DropAll), &what));
    }
    println!("{} calls, {failed} runs ended early", calls.end - calls.start);
    assert!(failed > 500, "only {failed} faults were met");
}

#[test]
fn works_without_errors() {
    for seed in 1..6 {
        let storage = FaultStorage::new(FaultOptions { seed, ..FaultOptions::default() });
        create(&storage, Shape::of(seed)).unwrap();
        let promise: Arc<Mutex<Promise>> = Arc::default();
        for part in 0..4 {
            let database = open(&storage, OpenMode::Write).unwrap();
            let steps = history(&mut Random(seed * 10 + part), Mix { readers: true, writers: 3, ..Mix::plain() }, 400);
            work(&database, &promise, &steps).unwrap();
            database.remove_leftovers().unwrap();
            assert_eq!(contents(&database), *promise.lock().last(), "seed {seed}, part {part}");
            crate::images::check_beside(&storage).unwrap_or_else(|e| panic!("seed {seed}, part {part}: {e}"));
            drop(database);
            verify(&storage, &promise.lock(), Left::Written).unwrap_or_else(|e| panic!("seed {seed}, part {part}, opened again: {e}"));
        }
    }
}

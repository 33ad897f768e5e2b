//! Writes that say they are done and do nothing: each write call of a run, one after the other.
//!
//! What follows must notice it (an error of the run, of the next open, or of the next read of everything), or it is repaired: everything acknowledged is there. What cannot be noticed is told below.
//! More runs: `PAGEFOLD_LOST_WRITE_SEEDS=20 cargo test --release -p pagefold-engine --test simulation -- lost --nocapture`.

use crate::images::try_contents;
use crate::model::{Left, Promise};
use crate::player::work;
use crate::steps::{Mix, history};
use crate::world::{Random, Shape, create, open};
use pagefold_engine::database::OpenMode;
use pagefold_io::{CallKind, CrashPolicy, FaultOptions, FaultStorage};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Closed,
    Crashed,
}

/// What became of a lost write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// The run met an error.
    RunFails,
    /// The next open does.
    OpenFails,
    /// Reading everything does.
    ReadFails,
    /// Nothing is missing.
    Repaired,
    /// Something is missing, or there that should not be, and nobody notices.
    Silent,
}

/// A new database; with an even seed one that has to be recovered.
fn start(seed: u64, log_calls_max: usize) -> (FaultStorage, Arc<Mutex<Promise>>) {
    let storage = FaultStorage::new(FaultOptions { seed, log_calls_max, ..FaultOptions::default() });
    create(&storage, Shape::default()).unwrap();
    let promise: Arc<Mutex<Promise>> = Arc::default();
    if seed % 2 == 1 {
        return (storage, promise);
    }
    let database = open(&storage, OpenMode::Write).unwrap();
    work(&database, &promise, &history(&mut Random(seed + 100), Mix::plain(), 80)).unwrap();
    (storage.crash_image(CrashPolicy::Random(seed)), promise)
}

fn fate(seed: u64, steps: usize, call: u64, end: End) -> Fate {
    let (storage, promise) = start(seed, 0);
    storage.lose_write_at(call);
    let Ok(database) = open(&storage, OpenMode::Write) else { return Fate::OpenFails };
    let fails = work(&database, &promise, &history(&mut Random(seed), Mix::plain(), steps)).is_err();
    if end == End::Crashed {
        // What comes after the work is lost.
        storage.crash_at(storage.calls());
    }
    drop(database);
    let image = storage.crash_image(CrashPolicy::KeepAll);
    let Ok(database) = open(&image, OpenMode::Write) else { return Fate::OpenFails };
    let Ok(found) = try_contents(&database) else { return Fate::ReadFails };
    let allowed = promise.lock().allows(&found, Left::Durable);
    match allowed {
        true if fails => Fate::RunFails,
        true => Fate::Repaired,
        false => Fate::Silent,
    }
}

/// The writes of a run: call, what it is, and whether it is the last one of the log before the end.
fn writes(seed: u64, steps: usize) -> Vec<(u64, String, bool)> {
    let (storage, promise) = start(seed, usize::MAX);
    let first = storage.calls();
    let database = open(&storage, OpenMode::Write).unwrap();
    work(&database, &promise, &history(&mut Random(seed), Mix::plain(), steps)).unwrap();
    let ended = storage.calls();
    drop(database);
    let calls = storage.call_log().into_iter().filter(|call| call.index >= first && call.kind == CallKind::Write);
    let mut writes: Vec<_> =
        calls.map(|call| (call.index, format!("{} at {}, {} bytes", call.path.display(), call.offset, call.len), false)).collect();
    if let Some(last) = writes.iter_mut().rev().find(|(call, what, _)| *call < ended && what.contains("log")) {
        last.2 = true;
    }
    writes
}

/// The last group of the log before a crash has nothing behind it that says that it was durable: when its write does nothing, it is as if the crash had come before.
#[test]
fn a_lost_write_is_noticed_or_repaired() {
    let steps = 60;
    let (mut fates, mut silent, mut count) = (BTreeMap::new(), Vec::new(), 0);
    let seeds = std::env::var("PAGEFOLD_LOST_WRITE_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(2);
    for seed in 1..=seeds {
        for (call, what, last_of_log) in writes(seed, steps) {
            let kind = ["doublewrite", "log", "data", "control"].into_iter().find(|kind| what.contains(kind)).unwrap_or("other");
            for end in [End::Closed, End::Crashed] {
                let fate = fate(seed, steps, call, end);
                *fates.entry((kind, end, fate)).or_insert(0) += 1;
                count += 1;
                if fate == Fate::Silent && !(last_of_log && end == End::Crashed) {
                    silent.push(format!("seed {seed}, {end:?}, call {call}: {what}"));
                }
            }
        }
    }
    println!("{count} runs: {fates:?}");
    assert!(silent.is_empty(), "{silent:#?}");
}

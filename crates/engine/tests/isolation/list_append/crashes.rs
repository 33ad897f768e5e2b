//! Histories that go on after crashes: what was acknowledged is there, what was cut off in its commit is there wholly or not at all, and the rest is not.

use super::check::{assert_allowed, counts};
use super::clients::{Clients, Lists};
use super::history::{History, Outcome};
use crate::world::{Form, Random, open, try_open};
use pagefold_engine::Error;
use pagefold_engine::database::Isolation::{self, ReadCommitted, RepeatableRead, Serializable};
use pagefold_engine::database::OpenMode;
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::Method;
use pagefold_io::{CrashPolicy, FaultOptions, FaultStorage, Storage};
use std::sync::Arc;

const THREADS: u64 = 4;

fn crashes_at(lists: Lists, isolation: Isolation, form: Form) {
    let rounds = std::env::var("PAGEFOLD_HISTORY_CRASHES").ok().and_then(|n| n.parse().ok());
    let rounds = rounds.unwrap_or(if cfg!(debug_assertions) { 25 } else { 100 });
    let mut storage = FaultStorage::new(FaultOptions { seed: 3, ..FaultOptions::default() });
    let as_storage = |storage: &FaultStorage| Arc::new(storage.clone()) as Arc<dyn Storage>;
    drop(open(&as_storage(&storage), form, OpenMode::Create));
    let clients = Clients::new(lists, isolation);
    let mut history = History::new();
    let mut random = Random(77);
    let (mut in_doubt, mut in_recovery) = (0, 0);
    for round in 0..rounds {
        // Long enough for some checkpoints, or within recovery.
        let calls = if random.below(4) == 0 { random.below(60) } else { random.below(1_500) };
        storage.crash_at(storage.calls() + calls);
        match try_open(&as_storage(&storage), form, OpenMode::Write) {
            Err(error) => {
                assert!(storage.is_crashed(), "round {round}: {error}");
                in_recovery += 1;
            }
            Ok(world) => std::thread::scope(|scope| {
                let (clients, world) = (&clients, &world);
                let threads: Vec<_> = (0..THREADS)
                    .map(|thread| {
                        let mut random = Random(round * THREADS + thread);
                        scope.spawn(move || clients.work(world, &mut random, usize::MAX))
                    })
                    .collect();
                while world.database.checkpoint().is_ok() {
                    std::thread::yield_now();
                }
                for thread in threads {
                    let (part, error) = thread.join().unwrap();
                    assert!(matches!(error, Some(Error::Io(_) | Error::Poisoned(_))), "round {round}: {error:?}");
                    in_doubt += part.iter().filter(|t| t.outcome == Outcome::InDoubt).count();
                    history.extend(part);
                }
            }),
        }
        storage = storage.crash_image([CrashPolicy::DropAll, CrashPolicy::KeepAll, CrashPolicy::Random(round)][round as usize % 3]);
        if round % 3 == 2 {
            let world = open(&as_storage(&storage), form, OpenMode::Write);
            history.push(clients.read_all(&world));
            world.check();
        }
    }
    let world = open(&as_storage(&storage), form, OpenMode::Write);
    history.push(clients.read_all(&world));
    let (committed, others) = counts(&history);
    println!(
        "{lists:?}, {isolation:?}: {rounds} crashes, {in_recovery} of them in recovery; {committed} transactions committed, {in_doubt} in doubt, {} not",
        others - in_doubt
    );
    assert!(committed as u64 > rounds && in_doubt > 0);
    assert_allowed(&history, isolation, "with crashes");
    world.check();
}

const FORM: Form = Form {
    method: Method::None,
    format: IndexFormat::Plain,
    memory_bytes: 2 << 20,
    background_threads: 0,
    page_bytes: 2048,
    small_partitions: None,
    small_extents: false,
};

#[test]
fn of_texts_at_serializable() {
    crashes_at(Lists::Texts, Serializable, Form { method: Method::Fixed, format: IndexFormat::Fold, ..FORM });
}

#[test]
fn of_rows_at_repeatable_read() {
    crashes_at(Lists::Rows, RepeatableRead, FORM);
}

#[test]
fn of_texts_at_read_committed() {
    crashes_at(Lists::Texts, ReadCommitted, FORM);
}

#[test]
fn of_rows_with_prefix_indexes() {
    crashes_at(Lists::Rows, RepeatableRead, Form { format: IndexFormat::Prefix, ..FORM });
}

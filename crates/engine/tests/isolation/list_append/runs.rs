//! Histories of eight threads, with checkpoints going on and on a pool that is smaller than the data.

use super::check::{assert_allowed, counts};
use super::clients::{Clients, Lists};
use super::history::History;
use crate::world::{Form, Random, World, open};
use pagefold_engine::database::Isolation::{self, ReadCommitted, RepeatableRead, Serializable};
use pagefold_engine::database::OpenMode;
use pagefold_engine::index::IndexFormat;
use pagefold_engine::table_space::Method;
use pagefold_io::{MemoryStorage, Storage};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const THREADS: usize = 8;

/// Transactions to be committed by a test.
fn wanted() -> usize {
    let set = std::env::var("PAGEFOLD_HISTORY_TRANSACTIONS").ok().and_then(|n| n.parse().ok());
    set.unwrap_or(if cfg!(debug_assertions) { 6_000 } else { 100_000 })
}

/// The threads' histories, until so many transactions of each are committed.
fn work_at_once(clients: &Clients, world: &World, commits: usize) -> History {
    let running = AtomicUsize::new(THREADS);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS as u64)
            .map(|thread| {
                let running = &running;
                scope.spawn(move || {
                    let (history, error) = clients.work(world, &mut Random(900 + thread), commits);
                    running.fetch_sub(1, Ordering::Release);
                    assert!(error.is_none(), "{error:?}");
                    history
                })
            })
            .collect();
        while running.load(Ordering::Acquire) > 0 && !threads.iter().any(std::thread::ScopedJoinHandle::is_finished) {
            world.database.checkpoint().unwrap();
            std::thread::sleep(Duration::from_millis(2));
        }
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

fn history(lists: Lists, isolation: Isolation, form: Form) {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let world = open(&storage, form, OpenMode::Create);
    let clients = Clients::new(lists, isolation);
    let mut history = work_at_once(&clients, &world, wanted() / THREADS);
    history.push(clients.read_all(&world));
    let (committed, others) = counts(&history);
    println!("{lists:?}, {isolation:?}: {committed} transactions committed, {others} not");
    assert!(committed > wanted() / THREADS * THREADS, "{committed} transactions");
    assert_allowed(&history, isolation, &format!("{lists:?}, {form:?}"));
    world.check();
}

const SMALL: Form = Form {
    method: Method::None,
    format: IndexFormat::Plain,
    memory_bytes: 1 << 20,
    background_threads: 1,
    page_bytes: 2048,
    small_partitions: None,
    small_extents: false,
};

#[test]
fn of_texts_at_read_committed() {
    history(Lists::Texts, ReadCommitted, SMALL);
}

#[test]
fn of_texts_at_repeatable_read() {
    history(Lists::Texts, RepeatableRead, Form { method: Method::Fixed, ..SMALL });
}

#[test]
fn of_texts_at_serializable() {
    history(Lists::Texts, Serializable, Form { format: IndexFormat::Fold, ..SMALL });
}

#[test]
fn of_rows_at_repeatable_read() {
    history(Lists::Rows, RepeatableRead, Form { format: IndexFormat::Fold, ..SMALL });
}

#[test]
fn of_rows_at_serializable() {
    history(Lists::Rows, Serializable, SMALL);
}

#[test]
fn of_rows_with_prefix_indexes() {
    history(Lists::Rows, RepeatableRead, Form { format: IndexFormat::Prefix, ..SMALL });
}

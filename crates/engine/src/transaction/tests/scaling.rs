//! What an operation costs, in steps, beside ever more of what it has nothing to do with.

use crate::steps::{assert_grows_by_doubling, steps_of};
use crate::transaction::{LockTable, Mode, Resource, Transactions};
use pagefold_io::SimulatedClock;
use pagefold_types::Rid;
use std::sync::{Arc, mpsc};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);
const TABLE: u32 = 1;
const INDEX: u32 = 2;

fn transactions() -> Arc<Transactions> {
    Arc::new(Transactions::new(Arc::new(SimulatedClock::new(Duration::ZERO)), 1))
}

/// A rollback of inserts with a unique key: the locks of rows go one by one, the latest first, those of keys stay.
#[test]
fn giving_up_one_of_many_locks() {
    let mut counted = Vec::new();
    for rows in [200, 800, 3200] {
        let locks = LockTable::new();
        for i in 0..rows {
            locks.lock(1, Resource::Row(TABLE, Rid::new(0, i as u32, 0)), Mode::Exclusive, LONG).unwrap();
            locks.lock(1, Resource::Key(INDEX, i), Mode::Exclusive, LONG).unwrap();
        }
        let (steps, ()) = steps_of(|| {
            (0..rows).rev().for_each(|i| locks.release_wholly(1, Resource::Row(TABLE, Rid::new(0, i as u32, 0))));
        });
        assert_eq!(locks.held(1), rows as usize);
        locks.release_all(1);
        assert!(locks.is_empty());
        counted.push((rows, steps / rows));
    }
    println!("steps per lock given up: {counted:?}");
    assert_grows_by_doubling(&counted, 0);
}

/// Many who wait for one row: each looks for a deadlock before it sleeps.
#[test]
fn waiting_behind_many() {
    let mut counted = Vec::new();
    for waiters in [8, 32, 128u64] {
        let locks = LockTable::new();
        let row = Resource::Row(TABLE, Rid::new(0, 1, 1));
        locks.lock(1, row, Mode::Exclusive, LONG).unwrap();
        let (send, receive) = mpsc::channel();
        std::thread::scope(|scope| {
            for id in 2..2 + waiters {
                let (locks, send) = (&locks, send.clone());
                scope.spawn(move || {
                    let (steps, granted) = steps_of(|| locks.lock(id, row, Mode::Exclusive, LONG));
                    granted.unwrap();
                    let (released, ()) = steps_of(|| locks.release_all(id));
                    send.send(steps + released).unwrap();
                });
            }
            while locks.waiting() < waiters as usize {
                std::thread::yield_now();
            }
            locks.release_all(1);
        });
        drop(send);
        counted.push((waiters, receive.iter().max().unwrap()));
        assert_eq!(locks.deadlocks(), 0);
        assert!(locks.is_empty());
    }
    println!("steps of the wait that took most: {counted:?}");
    assert_grows_by_doubling(&counted, 0);
}

/// A transaction ends beside others.
#[test]
fn ending_beside_many() {
    let mut counted = Vec::new();
    for open in [160, 640, 2560u64] {
        let transactions = transactions();
        let others: Vec<_> = (0..open).map(|_| transactions.begin()).collect();
        let (steps, ()) = steps_of(|| {
            let state = transactions.begin();
            transactions.commit(&state, |_| ());
        });
        assert_eq!(transactions.active().len(), others.len());
        counted.push((open, steps));
    }
    println!("steps of an end: {counted:?}");
    assert_grows_by_doubling(&counted, 0);
}

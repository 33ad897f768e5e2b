//! What an operation costs, in steps, beside ever more of what it has nothing to do with.

use crate::steps::{assert_grows_by_doubling, steps_of};
use crate::transaction::read_marks::ReadMarks;
use crate::transaction::{Access, LockTable, MarkLimits, Mode, Resource, Serializable, Transactions};
use pagefold_io::SimulatedClock;
use pagefold_types::Rid;
use std::ops::Bound::{Excluded, Included};
use std::sync::atomic::{AtomicU64, Ordering};
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

/// Threads that lock the same row again and again: none is woken for what another one gets.
#[test]
fn wake_ups_of_a_hot_row() {
    for threads in [10, 50, 200u64] {
        let locks = LockTable::new();
        let row = Resource::Row(TABLE, Rid::new(0, 1, 1));
        let next = AtomicU64::new(1);
        let most = AtomicU64::new(0);
        let changes = 20;
        locks.lock(u64::MAX - 1, row, Mode::Exclusive, LONG).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..changes {
                        let id = next.fetch_add(1, Ordering::Relaxed);
                        let (steps, ()) = steps_of(|| {
                            locks.lock(id, row, Mode::Exclusive, LONG).unwrap();
                            std::thread::yield_now();
                            locks.release_all(id);
                        });
                        most.fetch_max(steps, Ordering::Relaxed);
                    }
                });
            }
            while locks.waiting() < threads as usize {
                std::thread::yield_now();
            }
            locks.release_all(u64::MAX - 1);
        });
        let ((waits, wake_ups), grants, most) = (locks.waits(), threads * changes, most.into_inner());
        println!("{threads} threads, {grants} grants: {waits} waits, {wake_ups} wake-ups, {most} steps at most");
        assert!((threads..=grants).contains(&waits) && (waits..=2 * waits).contains(&wake_ups));
        // Of a wait: an edge of the search for cycles for each of two looks at the graph, and who is first, for each release.
        assert!(most <= 4);
        assert!(locks.is_empty());
    }
}

/// A key is inserted beside transactions that have each read many keys and ranges of the index.
#[test]
fn inserting_a_key_beside_many_marks() {
    for points in [true, false] {
        let mut counted = Vec::new();
        for owners in [16, 64, 256u64] {
            let mut marks = ReadMarks::new(MarkLimits::default());
            for owner in 1..=owners {
                for i in 0..100 {
                    // No two of them meet.
                    let low = (i * owners + owner) * 4;
                    let (low, high) = (low.to_be_bytes(), (low + 2).to_be_bytes());
                    let high = if points { Included(&low[..]) } else { Excluded(&high[..]) };
                    marks.mark_range(owner, INDEX, Included(&low), high);
                }
            }
            let key = |owner: u64, offset: u64| ((50 * owners + owner) * 4 + offset).to_be_bytes();
            let (found, readers) = steps_of(|| marks.readers_of_key(INDEX, &key(owners / 2, 0)));
            let (nothing, nobody) = steps_of(|| marks.readers_of_key(INDEX, &key(owners / 2, 3)));
            assert_eq!((readers, nobody), (vec![owners / 2], vec![]));
            let (removal, ()) = steps_of(|| marks.remove(owners / 2));
            assert!(marks.readers_of_key(INDEX, &key(owners / 2, 0)).is_empty());
            println!(
                "points: {points}, {owners} transactions: {found} and {nothing} steps for a key, {} for taking a mark out",
                removal / 100
            );
            counted.push((owners, found.max(nothing).max(removal / 100)));
        }
        assert_grows_by_doubling(&counted, 8);
    }
}

/// Many transactions have read the same row, and one of them ends.
#[test]
fn taking_a_mark_off_what_all_have_read() {
    let mut counted = Vec::new();
    for owners in [16, 64, 256u64] {
        let mut marks = ReadMarks::new(MarkLimits::default());
        for owner in 1..=owners {
            marks.mark_row(owner, TABLE, Rid::new(0, 1, 1));
            marks.mark_range(owner, INDEX, Included(b"k"), Included(b"k"));
        }
        let (steps, ()) = steps_of(|| marks.remove(owners / 2));
        assert_eq!(marks.readers_of_key(INDEX, b"k").len() as u64, owners - 1);
        counted.push((owners, steps));
    }
    println!("steps of taking a mark off: {counted:?}");
    assert_grows_by_doubling(&counted, 2);
}

/// More marks than there may be, of transactions that all run: there is nobody to be thrown together.
#[test]
fn marking_above_the_limit() {
    let mut counted = Vec::new();
    for owners in [16, 64, 256u64] {
        let transactions = transactions();
        let limits = MarkLimits { total: 10, ..MarkLimits::default() };
        let serializable = Serializable::new(Arc::clone(&transactions), limits);
        let all: Vec<_> = (0..owners).map(|_| transactions.begin()).collect();
        let snapshots: Vec<_> = all.iter().map(|state| serializable.begin(state, Access::ReadWrite)).collect();
        for state in &all {
            serializable.on_read_row(state.id(), TABLE, Rid::new(0, state.id() as u32, 1)).unwrap();
        }
        let (steps, marked) = steps_of(|| serializable.on_read_row(all[0].id(), TABLE, Rid::new(0, 0, 1)));
        marked.unwrap();
        counted.push((owners, steps));
        drop(snapshots);
    }
    println!("steps of a mark: {counted:?}");
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

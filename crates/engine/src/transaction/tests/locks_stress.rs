//! The lock table under many threads.

use crate::test_random::Random;
use crate::transaction::{LockError, LockTable, Mode, Resource};
use pagefold_types::Rid;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

/// Rows are locked in random order, so deadlocks are frequent. Nobody ever has a row that somebody else has, nobody waits for ever.
#[test]
fn rows_in_random_order_by_eight_threads() {
    let table = Arc::new(LockTable::new());
    let owners: Arc<Vec<AtomicU64>> = Arc::new((0..10).map(|_| AtomicU64::new(0)).collect());
    let next = Arc::new(AtomicU64::new(1));
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let (table, owners, next) = (Arc::clone(&table), Arc::clone(&owners), Arc::clone(&next));
            std::thread::spawn(move || {
                let mut random = Random(thread);
                let mut deadlocks = 0;
                for _ in 0..3000 {
                    let transaction = next.fetch_add(1, Ordering::Relaxed);
                    let mut mine = Vec::new();
                    for _ in 0..1 + random.below(4) {
                        let row = random.index(owners.len());
                        match table.lock(transaction, Resource::Row(1, Rid::new(0, 0, row as u16)), Mode::Exclusive, LONG) {
                            Ok(true) => {
                                assert_eq!(owners[row].swap(transaction, Ordering::Relaxed), 0);
                                mine.push(row);
                            }
                            Ok(false) => assert_eq!(owners[row].load(Ordering::Relaxed), transaction),
                            Err(LockError::Deadlock { victim, cycle }) => {
                                assert_eq!(victim, transaction);
                                assert_eq!(cycle.iter().map(|edge| edge.waiter).max(), Some(victim));
                                deadlocks += 1;
                                break;
                            }
                            Err(other) => panic!("{other}"),
                        }
                        if random.below(8) == 0 {
                            std::thread::yield_now();
                        }
                    }
                    assert_eq!(table.held(transaction), mine.len());
                    mine.iter().for_each(|&row| assert_eq!(owners[row].swap(0, Ordering::Relaxed), transaction));
                    table.release_all(transaction);
                }
                deadlocks
            })
        })
        .collect();
    let deadlocks: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert!(table.is_empty());
    assert!(deadlocks > 0);
}

/// Rows are locked in ascending order: no deadlock exists, so none may be found.
#[test]
fn no_victims_without_a_deadlock() {
    let table = Arc::new(LockTable::new());
    let next = Arc::new(AtomicU64::new(1));
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let (table, next) = (Arc::clone(&table), Arc::clone(&next));
            std::thread::spawn(move || {
                let mut random = Random(100 + thread);
                for _ in 0..3000 {
                    let transaction = next.fetch_add(1, Ordering::Relaxed);
                    let mut rows: Vec<u16> = (0..1 + random.below(4)).map(|_| random.below(8) as u16).collect();
                    rows.sort_unstable();
                    for &row in &rows {
                        let resource = Resource::Row(1, Rid::new(0, 0, row));
                        table.lock(transaction, resource, Mode::Exclusive, LONG).unwrap();
                        // Given up before the next one is waited for.
                        if random.below(4) == 0 {
                            table.release(transaction, resource);
                        }
                    }
                    table.release_all(transaction);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(table.is_empty());
}

#[test]
fn timeouts_name_the_holder() {
    let table = LockTable::new();
    let row = Resource::Row(3, Rid::new(1, 2, 4));
    assert!(table.lock(7, row, Mode::Exclusive, LONG).unwrap());
    for waited in [Duration::ZERO, Duration::from_millis(5)] {
        let error = table.lock(9, row, Mode::Exclusive, waited).unwrap_err();
        assert_eq!(error, LockError::Timeout { waiter: 9, resource: row, holder: 7, waited });
    }
    let error = table.lock(9, row, Mode::Exclusive, Duration::from_millis(5)).unwrap_err().to_string();
    assert_eq!(error, "transaction 9 waited 5 ms for row 1:2:4 of object 3, which transaction 7 holds");
    assert_eq!((table.held(7), table.held(9)), (1, 0));
    table.release_all(7);
    assert!(table.is_empty());
}

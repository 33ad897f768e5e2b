//! States and snapshots.

use crate::test_random::Random;
use crate::transaction::{Snapshot, TransactionState, Transactions};
use pagefold_io::SimulatedClock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn transactions() -> Transactions {
    Transactions::new(Arc::new(SimulatedClock::default()), 1)
}

#[test]
fn snapshots_see_what_was_committed_before_them_and_their_own() {
    let all = transactions();
    let (one, two) = (all.begin(), all.begin());
    let before = all.snapshot(one.id());
    assert!(before.sees(&one) && !before.sees(&two));
    let mut called = 0;
    let timestamp = all.commit(&two, |timestamp| called = timestamp);
    assert_eq!((timestamp, called, two.commit_timestamp()), (1, 1, Some(1)));
    let after = all.snapshot(0);
    assert!(!before.sees(&two) && after.sees(&two) && !after.sees(&one));
    all.abort(&one);
    assert!(!all.snapshot(0).sees(&one) && one.is_aborted() && one.commit_timestamp().is_none());
    let reader = all.begin();
    all.end_read_only(&reader);
    assert_eq!(all.last_commit(), 1);
    assert!(all.active().is_empty());
}

#[test]
fn log_positions_of_active_transactions() {
    let all = Transactions::new(Arc::new(SimulatedClock::default()), 40);
    let (one, two) = (all.begin(), all.begin());
    assert_eq!((one.id(), two.id(), all.next_id()), (40, 41, 42));
    one.logged(100);
    one.logged(250);
    let seen: Vec<_> = all.active().iter().map(|state| (state.id(), state.first_lsn(), state.last_lsn())).collect();
    assert_eq!(seen, [(40, 100, 250), (41, 0, 0)]);
}

#[test]
fn horizon_against_a_list_of_snapshots() {
    let mut random = Random(11);
    let all = transactions();
    let mut open: Vec<Snapshot> = Vec::new();
    for _ in 0..20_000 {
        match random.below(4) {
            0 => open.push(all.snapshot(0)),
            1 if !open.is_empty() => drop(open.swap_remove(random.index(open.len()))),
            2 => drop(all.commit(&all.begin(), |_| ())),
            _ => {
                let held: BTreeSet<u64> = open.iter().map(Snapshot::timestamp).collect();
                let last = all.last_commit();
                let oldest = held.first().copied().unwrap_or(last);
                let horizon = all.horizon();
                assert_eq!((all.oldest_snapshot(), horizon.oldest()), (oldest, oldest));
                let from = last.saturating_sub(random.below(40));
                let until = from + 1 + random.below(20);
                assert_eq!(horizon.separates(from, until), until > last || held.range(from..until).next().is_some());
            }
        }
    }
    drop(open);
    assert_eq!(all.oldest_snapshot(), all.last_commit());
}

/// Commits in threads; a snapshot sees a prefix of them, the same at each look, and purge never overtakes it.
#[test]
fn snapshots_are_stable_beside_commits() {
    let all = Arc::new(transactions());
    let states: Arc<Vec<Arc<TransactionState>>> = Arc::new((0..20_000).map(|_| all.begin()).collect());
    let (next, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let (all, states, next, done) = (Arc::clone(&all), Arc::clone(&states), Arc::clone(&next), Arc::clone(&done));
            std::thread::spawn(move || {
                if thread < 2 {
                    while let Some(state) = states.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                        all.commit(state, |_| ());
                    }
                    done.store(true, Ordering::Relaxed);
                    return;
                }
                let mut random = Random(thread);
                while !done.load(Ordering::Relaxed) {
                    let snapshot = all.snapshot(0);
                    let picked: Vec<_> = (0..20).map(|_| &states[random.index(states.len())]).collect();
                    let first: Vec<bool> = picked.iter().map(|state| snapshot.sees(state)).collect();
                    assert!(all.oldest_snapshot() <= snapshot.timestamp() && all.horizon().oldest() <= snapshot.timestamp());
                    let second: Vec<bool> = picked.iter().map(|state| snapshot.sees(state)).collect();
                    assert_eq!(first, second);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let commits: BTreeMap<u64, u64> = states.iter().map(|state| (state.commit_timestamp().unwrap(), state.id())).collect();
    assert_eq!((commits.len() as u64, *commits.last_key_value().unwrap().0), (20_000, 20_000));
}

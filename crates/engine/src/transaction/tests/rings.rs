//! Rings of dependencies: each transaction reads what the next one changes. In whatever order they go on, not all of them may commit.

use crate::test_random::Random;
use crate::transaction::{Access, MarkLimits, Serializable, TransactionState, Transactions};
use pagefold_io::SimulatedClock;
use pagefold_types::Rid;
use std::sync::Arc;

const TABLE: u32 = 1;

fn world(limits: MarkLimits) -> (Arc<Transactions>, Serializable) {
    let transactions = Arc::new(Transactions::new(Arc::new(SimulatedClock::default()), 1));
    let serializable = Serializable::new(Arc::clone(&transactions), limits);
    (transactions, serializable)
}

/// How many of a ring commit, each going through read, write, prepare, commit, in random order, without anything else that could stop them.
fn run(length: usize, seed: u64, limits: MarkLimits) -> usize {
    let mut random = Random(seed);
    let (transactions, all) = world(limits);
    let rid = |row: usize| Rid::new(0, (row % length) as u32, 0);
    let states: Vec<Arc<TransactionState>> = (0..length).map(|_| transactions.begin()).collect();
    let snapshots: Vec<_> = states.iter().map(|state| all.begin(state, Access::ReadWrite)).collect();
    let mut steps = vec![0; length];
    let mut failed = vec![false; length];
    while steps.iter().any(|&step| step < 4) {
        let me = random.index(length);
        let id = states[me].id();
        let next = &states[(me + 1) % length];
        let done = match steps[me] {
            0 => all.on_read_row(id, TABLE, rid(me)).and_then(|()| {
                // The next one has written already: its version is found, unless it has been taken back.
                let is_written = steps[(me + 1) % length] > 1 && !failed[(me + 1) % length];
                if is_written { all.on_read_of_version_overwritten_by(id, next) } else { Ok(()) }
            }),
            1 => all.on_write_row(id, TABLE, rid(me + length - 1)),
            2 => all.before_commit(id),
            3 => {
                transactions.commit(&states[me], |timestamp| all.committed(id, timestamp));
                Ok(())
            }
            _ => continue,
        };
        steps[me] += 1;
        if done.is_err() {
            all.aborted(id);
            transactions.abort(&states[me]);
            (steps[me], failed[me]) = (4, true);
        }
    }
    drop(snapshots);
    failed.iter().filter(|&&failed| !failed).count()
}

#[test]
fn never_a_whole_ring() {
    for limits in [MarkLimits::default(), MarkLimits { committed: 1, ..MarkLimits::default() }] {
        for length in 2..6 {
            let committed: Vec<usize> = (0..10_000).map(|seed| run(length, seed, limits)).collect();
            assert_eq!(committed.iter().position(|&committed| committed == length), None, "length {length}");
            // Often one failure is enough; a longer ring can be broken in two places at once.
            let enough = committed.iter().filter(|&&committed| committed + 1 == length).count();
            println!("{length}: {enough} of 10000 with one failure");
            assert!(enough > 4_000, "length {length}: {enough}");
        }
    }
}

#[test]
fn what_commits_while_another_one_begins_is_kept() {
    let (transactions, all) = world(MarkLimits::default());
    let one = transactions.begin();
    drop(all.begin(&one, Access::ReadWrite));
    all.on_read_row(one.id(), TABLE, Rid::new(0, 1, 1)).unwrap();
    all.before_commit(one.id()).unwrap();
    let mut two = None;
    transactions.commit(&one, |timestamp| {
        all.committed(one.id(), timestamp);
        // Its snapshot does not see the commit.
        let state = transactions.begin();
        let snapshot = all.begin(&state, Access::ReadWrite);
        two = Some((state, snapshot));
    });
    let (two, snapshot) = two.unwrap();
    assert!(!snapshot.sees(&one));
    assert_eq!(all.kept(), (2, 1));
    all.aborted(two.id());
    assert_eq!(all.kept(), (0, 0));
}

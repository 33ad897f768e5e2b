//! All parts together under threads: pairs of counters whose sum must not go below zero (write skew breaks that under plain snapshots).

use crate::test_random::Random;
use crate::transaction::{
    Access, Before, LockTable, MarkLimits, Mode, Resource, Seen, Serializable, Snapshot, TransactionState, Transactions, VersionStore,
};
use pagefold_io::SimulatedClock;
use pagefold_types::Rid;
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const TABLE: u32 = 1;
const PAIRS: usize = 3;

fn rid(row: usize) -> Rid {
    Rid::new(0, 1, row as u16)
}

struct World {
    transactions: Arc<Transactions>,
    versions: VersionStore,
    locks: LockTable,
    serializable: Serializable,
    /// Each under the latch of its page.
    rows: Vec<RwLock<i64>>,
    /// Committed transactions that have seen a sum below zero. Counted, since a thread that panics would keep its locks.
    wrong: AtomicU64,
}

/// The transaction must be rolled back.
struct Stop;

impl World {
    fn read(&self, state: &TransactionState, snapshot: &Snapshot, row: usize) -> Result<i64, Stop> {
        let latch = self.rows[row].read();
        self.serializable.on_read_row(state.id(), TABLE, rid(row)).map_err(|_| Stop)?;
        let mut unseen = None;
        let seen = self.versions.look_noting(TABLE, rid(row), snapshot, |writer| unseen = Some(Arc::clone(writer))).unwrap();
        if let Some(writer) = unseen {
            self.serializable.on_read_of_version_overwritten_by(state.id(), &writer).map_err(|_| Stop)?;
        }
        match seen {
            Seen::Current => Ok(*latch),
            Seen::Present(body) => Ok(i64::from_le_bytes(body.as_ref().try_into().unwrap())),
            other => panic!("{other:?}"),
        }
    }

    fn write(
        &self,
        state: &Arc<TransactionState>,
        snapshot: &Snapshot,
        row: usize,
        value: i64,
        undo: &mut Vec<(usize, i64)>,
    ) -> Result<(), Stop> {
        self.locks.lock(state.id(), Resource::Row(TABLE, rid(row)), Mode::Exclusive, Duration::from_secs(60)).map_err(|_| Stop)?;
        if self.versions.newest(TABLE, rid(row)).unwrap().is_some_and(|newest| !snapshot.sees(&newest)) {
            return Err(Stop);
        }
        let mut latch = self.rows[row].write();
        self.versions.push(TABLE, rid(row), state, Before::Present(latch.to_le_bytes().as_slice().into())).unwrap();
        undo.push((row, *latch));
        *latch = value;
        self.serializable.on_write_row(state.id(), TABLE, rid(row)).map_err(|_| Stop)
    }

    /// Takes one from a counter of a pair while there is something in it, else fills it up. Whether it was committed.
    fn transact(&self, random: &mut Random) -> bool {
        let state = self.transactions.begin();
        let snapshot = self.serializable.begin(&state, Access::ReadWrite);
        let mut undo = Vec::new();
        let pair = random.index(PAIRS);
        let mut run = || {
            let (left, right) = (self.read(&state, &snapshot, pair * 2)?, self.read(&state, &snapshot, pair * 2 + 1)?);
            if random.below(2) == 0 {
                std::thread::yield_now();
            }
            if left + right > 0 {
                let row = random.index(2);
                self.write(&state, &snapshot, pair * 2 + row, [left, right][row] - 1, &mut undo)?;
            } else {
                self.write(&state, &snapshot, pair * 2, 1, &mut undo)?;
                self.write(&state, &snapshot, pair * 2 + 1, 1, &mut undo)?;
            }
            if random.below(2) == 0 {
                std::thread::yield_now();
            }
            self.serializable.before_commit(state.id()).map_err(|_| Stop)?;
            Ok::<i64, Stop>(left + right)
        };
        let done = run();
        if let Ok(sum) = done {
            self.wrong.fetch_add(u64::from(sum < 0), Ordering::Relaxed);
            // As long as the log takes.
            std::thread::yield_now();
            self.transactions.commit(&state, |timestamp| self.serializable.committed(state.id(), timestamp));
        } else {
            for (row, value) in undo.drain(..).rev() {
                let mut latch = self.rows[row].write();
                *latch = value;
                assert!(self.versions.take_back(TABLE, rid(row), &state).unwrap());
            }
            self.serializable.aborted(state.id());
            self.transactions.abort(&state);
        }
        self.locks.release_all(state.id());
        drop(snapshot);
        for (row, _) in undo {
            self.versions.needed(TABLE, rid(row), &self.transactions.horizon()).unwrap();
        }
        done.is_ok()
    }
}

#[test]
fn no_write_skew_between_threads() {
    for limits in [MarkLimits::default(), MarkLimits { committed: 2, total: 8, ..MarkLimits::default() }] {
        let transactions = Arc::new(Transactions::new(Arc::new(SimulatedClock::default()), 1));
        let world = Arc::new(World {
            versions: VersionStore::new(Arc::clone(&transactions), 1 << 20),
            locks: LockTable::new(),
            serializable: Serializable::new(Arc::clone(&transactions), limits),
            transactions,
            rows: (0..PAIRS * 2).map(|_| RwLock::new(0)).collect(),
            wrong: AtomicU64::new(0),
        });
        let threads: Vec<_> = (0..6)
            .map(|thread| {
                let world = Arc::clone(&world);
                std::thread::spawn(move || {
                    let mut random = Random(thread);
                    (0..5000).filter(|_| world.transact(&mut random)).count()
                })
            })
            .collect();
        let committed: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        println!("{committed} of 30000 committed");
        assert!(committed > 1000, "{committed}");
        assert_eq!(world.wrong.load(Ordering::Relaxed), 0);
        for pair in world.rows.chunks(2) {
            assert!(*pair[0].read() + *pair[1].read() >= 0);
        }
        assert!(world.locks.is_empty() && world.transactions.active().is_empty());
        world.serializable.aborted(u64::MAX);
        world.versions.sweep();
        assert_eq!((world.serializable.kept(), world.versions.bytes()), ((0, 0), 0));
    }
}

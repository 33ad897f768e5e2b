//! Random histories of short transactions, step by step against rows and an index in memory; whatever commits must be the same as if
//! the transactions had run one after the other, in some order: all are tried.

use crate::test_random::Random;
use crate::transaction::{
    Access, Before, LockTable, MarkLimits, Mode, Resource, Seen, Serializable, SerializationFailure, Snapshot, TransactionState,
    Transactions, VersionStore,
};
use pagefold_io::SimulatedClock;
use pagefold_types::Rid;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::Included;
use std::sync::Arc;
use std::time::Duration;

const TABLE: u32 = 1;
const INDEX: u32 = 2;
const KEYS: u8 = 5;

#[derive(Clone, Debug, PartialEq)]
enum Event {
    Get(u8, Option<u64>),
    Range(u8, u8, Vec<(u8, u64)>),
    Scan(Vec<(u8, u64)>),
    Put(u8, u64),
    Delete(u8),
}

#[derive(Clone, Debug)]
struct Stored {
    key: u8,
    value: u64,
    deleted: bool,
}

enum Fate {
    Running,
    Prepared,
    Committed,
    Aborted,
}

struct Client {
    state: Arc<TransactionState>,
    snapshot: Option<Snapshot>,
    access: Access,
    undo: Vec<(Rid, Option<Stored>)>,
    events: Vec<Event>,
    fate: Fate,
}

/// Why a step could not be done.
enum Stop {
    Conflict,
    Serialization(SerializationFailure),
}

impl From<SerializationFailure> for Stop {
    fn from(failure: SerializationFailure) -> Stop {
        Stop::Serialization(failure)
    }
}

struct World {
    transactions: Arc<Transactions>,
    versions: VersionStore,
    locks: LockTable,
    serializable: Option<Serializable>,
    rows: BTreeMap<Rid, Stored>,
    index: BTreeMap<u8, Vec<Rid>>,
    values: u64,
}

impl World {
    fn new(limits: MarkLimits, checked: bool) -> World {
        let transactions = Arc::new(Transactions::new(Arc::new(SimulatedClock::default()), 1));
        World {
            versions: VersionStore::new(Arc::clone(&transactions), 1 << 20),
            locks: LockTable::new(),
            serializable: checked.then(|| Serializable::new(Arc::clone(&transactions), limits)),
            transactions,
            rows: BTreeMap::new(),
            index: BTreeMap::new(),
            values: 0,
        }
    }

    fn begin(&self, access: Access) -> Client {
        let state = self.transactions.begin();
        let snapshot = match &self.serializable {
            Some(serializable) => serializable.begin(&state, access),
            None => self.transactions.snapshot(state.id()),
        };
        Client { state, snapshot: Some(snapshot), access, undo: Vec::new(), events: Vec::new(), fate: Fate::Running }
    }

    fn see(&self, client: &Client, rid: Rid) -> Result<Option<u64>, Stop> {
        let id = client.state.id();
        if let Some(serializable) = &self.serializable {
            serializable.on_read_row(id, TABLE, rid)?;
        }
        let mut unseen = None;
        let seen =
            self.versions.look_noting(TABLE, rid, client.snapshot.as_ref().unwrap(), |writer| unseen = Some(Arc::clone(writer))).unwrap();
        if let (Some(serializable), Some(writer)) = (&self.serializable, unseen) {
            serializable.on_read_of_version_overwritten_by(id, &writer)?;
        }
        Ok(match (seen, self.rows.get(&rid)) {
            (Seen::Current, Some(row)) if !row.deleted => Some(row.value),
            (Seen::NotDeleted, Some(row)) => Some(row.value),
            (Seen::Present(body), _) => Some(u64::from_le_bytes(body.as_ref().try_into().unwrap())),
            _ => None,
        })
    }

    /// Rows of a key range that the client sees.
    fn range(&self, client: &Client, low: u8, high: u8) -> Result<Vec<(u8, Rid, u64)>, Stop> {
        if let Some(serializable) = &self.serializable {
            serializable.on_read_range(client.state.id(), INDEX, Included(&[low]), Included(&[high]))?;
        }
        let mut found = Vec::new();
        for (&key, rids) in self.index.range(low..=high) {
            for &rid in rids {
                found.extend(self.see(client, rid)?.map(|value| (key, rid, value)));
            }
        }
        Ok(found)
    }

    fn lock(&self, client: &Client, resource: Resource) -> Result<(), Stop> {
        self.locks.lock(client.state.id(), resource, Mode::Exclusive, Duration::ZERO).map(drop).map_err(|_| Stop::Conflict)
    }

    fn change(&mut self, client: &mut Client, rid: Rid, before: Before, after: Stored) -> Result<(), Stop> {
        let id = client.state.id();
        self.lock(client, Resource::Row(TABLE, rid))?;
        self.versions.push(TABLE, rid, &client.state, before).unwrap();
        client.undo.push((rid, self.rows.get(&rid).cloned()));
        let (key, is_there) = (after.key, !after.deleted);
        let was_there = self.rows.insert(rid, after).is_some_and(|before| !before.deleted);
        if let Some(serializable) = &self.serializable {
            serializable.on_write_row(id, TABLE, rid)?;
            match (was_there, is_there) {
                (false, true) => serializable.on_insert_key(id, INDEX, &[key])?,
                (true, false) => serializable.on_delete_key(id, INDEX, &[key])?,
                _ => {}
            }
        }
        Ok(())
    }

    fn step(&mut self, client: &mut Client, random: &mut Random) -> Result<(), Stop> {
        let key = random.below(u64::from(KEYS)) as u8;
        let writes = client.access == Access::ReadWrite;
        match random.below(10) {
            0..3 => {
                let found = self.range(client, key, key)?;
                assert!(found.len() < 2);
                client.events.push(Event::Get(key, found.first().map(|row| row.2)));
            }
            3 => {
                let high = key + random.below(3) as u8;
                let found = self.range(client, key, high)?;
                client.events.push(Event::Range(key, high, found.into_iter().map(|(key, _, value)| (key, value)).collect()));
            }
            4 => {
                if let Some(serializable) = &self.serializable {
                    serializable.on_read_object(client.state.id(), TABLE)?;
                }
                let mut found = BTreeMap::new();
                for (&rid, row) in &self.rows {
                    found.extend(self.see(client, rid)?.map(|value| (row.key, value)));
                }
                client.events.push(Event::Scan(found.into_iter().collect()));
            }
            deletes if writes => {
                self.lock(client, Resource::Key(INDEX, u64::from(key)))?;
                let snapshot = client.snapshot.as_ref().unwrap();
                let rids = self.index.get(&key).cloned().unwrap_or_default();
                if rids.iter().filter_map(|&rid| self.versions.newest(TABLE, rid).unwrap()).any(|newest| !snapshot.sees(&newest)) {
                    return Err(Stop::Conflict);
                }
                let found = self.range(client, key, key)?;
                client.events.push(Event::Get(key, found.first().map(|row| row.2)));
                self.values += 1;
                let value = self.values;
                match (deletes, found.first()) {
                    (5, None) => {}
                    (5, Some(&(_, rid, old))) => {
                        self.change(client, rid, Before::NotDeleted, Stored { key, value: old, deleted: true })?;
                        client.events.push(Event::Delete(key));
                    }
                    (_, None) => {
                        let number = self.rows.len() as u32;
                        let rid = Rid::new(0, 1 + number / 4, (number % 4) as u16);
                        self.index.entry(key).or_default().push(rid);
                        self.change(client, rid, Before::Absent, Stored { key, value, deleted: false })?;
                        client.events.push(Event::Put(key, value));
                    }
                    (_, Some(&(_, rid, old))) => {
                        let before = Before::Present(old.to_le_bytes().as_slice().into());
                        self.change(client, rid, before, Stored { key, value, deleted: false })?;
                        client.events.push(Event::Put(key, value));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn prepare(&self, client: &mut Client) -> Result<(), Stop> {
        if let Some(serializable) = &self.serializable {
            serializable.before_commit(client.state.id())?;
        }
        client.fate = Fate::Prepared;
        Ok(())
    }

    fn commit(&self, client: &mut Client) {
        let id = client.state.id();
        self.transactions.commit(&client.state, |timestamp| {
            if let Some(serializable) = &self.serializable {
                serializable.committed(id, timestamp);
            }
        });
        client.fate = Fate::Committed;
        client.snapshot = None;
        self.locks.release_all(id);
    }

    fn abort(&mut self, client: &mut Client) {
        for (rid, before) in client.undo.drain(..).rev() {
            match before {
                // The row's number and index entry stay, as those of a deleted row.
                None => drop(self.rows.entry(rid).and_modify(|row| row.deleted = true)),
                Some(row) => drop(self.rows.insert(rid, row)),
            }
            assert!(self.versions.take_back(TABLE, rid, &client.state).unwrap());
        }
        if let Some(serializable) = &self.serializable {
            serializable.aborted(client.state.id());
        }
        self.transactions.abort(&client.state);
        client.fate = Fate::Aborted;
        client.snapshot = None;
        self.locks.release_all(client.state.id());
    }
}

/// Whether the events of all are what they would see one after the other, in some order that ends in `last`.
fn has_serial_order(all: &[Vec<Event>], state: &BTreeMap<u8, u64>, left: &mut Vec<usize>, last: &BTreeMap<u8, u64>) -> bool {
    if left.is_empty() {
        return state == last;
    }
    for at in 0..left.len() {
        let chosen = left.remove(at);
        let mut state = state.clone();
        let fits = all[chosen].iter().all(|event| match event {
            Event::Get(key, value) => state.get(key) == value.as_ref(),
            Event::Range(low, high, rows) => state.range(low..=high).map(|(&key, &value)| (key, value)).eq(rows.iter().copied()),
            Event::Scan(rows) => state.iter().map(|(&key, &value)| (key, value)).eq(rows.iter().copied()),
            Event::Put(key, value) => {
                state.insert(*key, *value);
                true
            }
            Event::Delete(key) => state.remove(key).is_some(),
        });
        let found = fits && has_serial_order(all, &state, left, last);
        left.insert(at, chosen);
        if found {
            return true;
        }
    }
    false
}

#[derive(Debug, Default)]
struct Outcome {
    serializable: bool,
    committed: usize,
    failures: usize,
}

/// A few rows, then up to five transactions beside each other.
fn history(seed: u64, limits: MarkLimits, checked: bool) -> Outcome {
    let mut random = Random(seed);
    let mut world = World::new(limits, checked);
    let mut client = world.begin(Access::ReadWrite);
    while client.events.len() < 8 {
        assert!(world.step(&mut client, &mut random).is_ok());
    }
    assert!(world.prepare(&mut client).is_ok());
    world.commit(&mut client);
    let rows =
        |world: &World| -> BTreeMap<u8, u64> { world.rows.values().filter(|row| !row.deleted).map(|row| (row.key, row.value)).collect() };
    let start = rows(&world);
    let mut clients: Vec<Client> = Vec::new();
    let count = 3 + random.index(3);
    let mut failures = 0;
    for _ in 0..200 {
        // The choices do not depend on what failed, as far as possible: histories with and without checks are much the same.
        let (who, what, seed) = (random.index(count), random.below(8), random.next());
        if who >= clients.len() {
            let access = if random.below(4) == 0 { Access::ReadOnly } else { Access::ReadWrite };
            clients.push(world.begin(access));
            continue;
        }
        let client = &mut clients[who];
        let stopped = match (&client.fate, what) {
            (Fate::Running, 0) if client.events.len() > 1 => world.prepare(client),
            (Fate::Running, _) => world.step(client, &mut Random(seed)),
            (Fate::Prepared, 0..3) => {
                world.commit(client);
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(stop) = stopped {
            if let Stop::Serialization(failure) = stop {
                assert_eq!(failure.transaction, client.state.id());
                failures += 1;
            }
            world.abort(client);
        }
        if clients.len() == count && clients.iter().all(|client| matches!(client.fate, Fate::Committed | Fate::Aborted)) {
            break;
        }
    }
    for client in &mut clients {
        match client.fate {
            Fate::Running => world.abort(client),
            Fate::Prepared => world.commit(client),
            Fate::Committed | Fate::Aborted => {}
        }
    }
    let committed: Vec<Vec<Event>> =
        clients.iter().filter(|client| matches!(client.fate, Fate::Committed)).map(|client| client.events.clone()).collect();
    let serializable = has_serial_order(&committed, &start, &mut (0..committed.len()).collect(), &rows(&world));
    if let Some(checker) = &world.serializable {
        checker.aborted(u64::MAX);
        assert_eq!(checker.kept(), (0, 0), "seed {seed}");
    }
    Outcome { serializable, committed: committed.len(), failures }
}

fn histories(count: u64, limits: MarkLimits) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for seed in 0..count {
        let checked = history(seed, limits, true);
        assert!(checked.serializable, "seed {seed}");
        let unchecked = history(seed, limits, false);
        *counts.entry("committed").or_default() += checked.committed;
        *counts.entry("committed without checks").or_default() += unchecked.committed;
        *counts.entry("failures").or_default() += checked.failures;
        *counts.entry("wrong without checks").or_default() += usize::from(!unchecked.serializable);
        *counts.entry("needless failures").or_default() += if unchecked.serializable { checked.failures } else { 0 };
    }
    counts
}

#[test]
fn what_commits_is_serializable() {
    let counts = histories(30_000, MarkLimits::default());
    println!("{counts:?}");
    assert!(counts["wrong without checks"] > 1000 && counts["needless failures"] * 10 < counts["committed"], "{counts:?}");
}

#[test]
fn with_coarse_marks_and_summaries() {
    for limits in [
        MarkLimits { rows_per_page: 1, per_object: 2, per_transaction: 3, total: 4, committed: 1 },
        MarkLimits { committed: 1, ..MarkLimits::default() },
        MarkLimits { committed: 2, total: 6, ..MarkLimits::default() },
    ] {
        let counts = histories(8_000, limits);
        println!("{counts:?}");
        assert!(counts["committed"] * 2 > counts["committed without checks"], "{counts:?}");
    }
}

/// Two doctors on call, each signs off because the other is there.
#[test]
fn write_skew_fails_and_says_who() {
    let transactions = Arc::new(Transactions::new(Arc::new(SimulatedClock::default()), 1));
    let all = Serializable::new(Arc::clone(&transactions), MarkLimits::default());
    let (one, two) = (transactions.begin(), transactions.begin());
    let (_one, _two) = (all.begin(&one, Access::ReadWrite), all.begin(&two, Access::ReadWrite));
    let (left, right) = (Rid::new(0, 1, 0), Rid::new(0, 1, 1));
    for (reader, row) in [(1, left), (1, right), (2, left), (2, right)] {
        all.on_read_row(reader, TABLE, row).unwrap();
    }
    all.on_write_row(1, TABLE, left).unwrap();
    all.on_write_row(2, TABLE, right).unwrap();
    all.before_commit(1).unwrap();
    transactions.commit(&one, |timestamp| all.committed(1, timestamp));
    assert!(all.has_failed(2) && !all.has_failed(1));
    let failure = all.before_commit(2).unwrap_err();
    assert_eq!((failure.transaction, failure.reader, failure.pivot, failure.writer), (2, 1, 2, 1));
    let text = "transaction 2 cannot be serialized: transaction 1 read what transaction 2 has changed, which read what \
                transaction 1 has changed and committed first; run it again";
    assert_eq!(failure.to_string(), text);
    all.aborted(2);
}

/// One transaction stays open while many others come and go: what is kept of them is bounded.
#[test]
fn long_transaction_beside_many() {
    let transactions = Arc::new(Transactions::new(Arc::new(SimulatedClock::default()), 1));
    let limits = MarkLimits { per_transaction: 100, total: 1000, committed: 20, ..MarkLimits::default() };
    let all = Serializable::new(Arc::clone(&transactions), limits);
    let long = transactions.begin();
    let _snapshot = all.begin(&long, Access::ReadWrite);
    let mut random = Random(5);
    let mut ended = BTreeSet::new();
    for _ in 0..5000 {
        let one = transactions.begin();
        let _snapshot = all.begin(&one, Access::ReadWrite);
        for _ in 0..10 {
            let rid = Rid::new(0, random.below(1000) as u32, random.below(50) as u16);
            all.on_read_row(one.id(), TABLE, rid).unwrap();
        }
        all.on_write_row(one.id(), TABLE + 1, Rid::new(0, random.below(1000) as u32, 0)).unwrap();
        all.before_commit(one.id()).unwrap();
        ended.insert(transactions.commit(&one, |timestamp| all.committed(one.id(), timestamp)));
        let (kept, marks) = all.kept();
        assert!(kept <= 23 && marks <= 1100, "{kept} {marks}");
    }
    all.aborted(long.id());
    assert_eq!(all.kept(), (0, 0));
}

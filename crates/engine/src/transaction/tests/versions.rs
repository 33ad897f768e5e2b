//! The version store against a list of all versions.

use crate::test_random::Random;
use crate::transaction::{Before, Seen, Snapshot, TransactionState, Transactions, VersionStore};
use pagefold_io::{Clock, SimulatedClock};
use pagefold_types::Rid;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const TABLE: u32 = 7;
const ROWS: usize = 12;

fn rid(row: usize) -> Rid {
    Rid::new(3, 100 + row as u32 / 4, row as u16 % 4)
}

/// What a page has of a row.
#[derive(Clone, Debug, Default, PartialEq)]
enum OnPage {
    #[default]
    Nothing,
    Row(Vec<u8>),
    Deleted(Vec<u8>),
}

#[derive(PartialEq)]
enum Undo {
    Row(usize, OnPage),
    Page(usize),
}

struct Running {
    state: Arc<TransactionState>,
    undo: Vec<Undo>,
    savepoints: Vec<usize>,
}

struct World {
    random: Random,
    transactions: Arc<Transactions>,
    store: VersionStore,
    page: Vec<OnPage>,
    /// For each row all its versions: (writer, body).
    all: Vec<Vec<(u64, Option<Vec<u8>>)>>,
    commits: BTreeMap<u64, u64>,
    running: Vec<Running>,
    snapshots: Vec<Snapshot>,
    bodies: u64,
}

impl World {
    fn new(seed: u64) -> World {
        let transactions = Arc::new(Transactions::new(Arc::new(SimulatedClock::default()), 1));
        World {
            random: Random(seed),
            store: VersionStore::new(Arc::clone(&transactions), 1 << 20),
            transactions,
            page: vec![OnPage::Nothing; ROWS],
            all: vec![Vec::new(); ROWS],
            commits: BTreeMap::new(),
            running: Vec::new(),
            snapshots: Vec::new(),
            bodies: 0,
        }
    }

    /// The running transaction that adds this page.
    fn adder(&self, page: usize) -> Option<u64> {
        self.running.iter().find(|one| one.undo.contains(&Undo::Page(page))).map(|one| one.state.id())
    }

    /// Puts the first rows on a page.
    fn add_page(&mut self, at: usize) {
        let page = self.random.index(ROWS / 4);
        let rows = page * 4..page * 4 + 4;
        let is_unused = |row: usize| self.page[row] == OnPage::Nothing && self.store.newest(TABLE, rid(row)).is_none();
        if !rows.clone().all(is_unused) {
            return;
        }
        self.store.push_page(TABLE, 3, 100 + page as u32, &self.running[at].state).unwrap();
        self.running[at].undo.push(Undo::Page(page));
        for row in rows {
            if self.random.below(3) > 0 {
                self.write(at, row);
            }
        }
    }

    /// Takes deleted rows off a page, as purge does, so that the page can be added again.
    fn purge(&mut self) {
        for row in 0..ROWS {
            if matches!(self.page[row], OnPage::Deleted(_)) && self.store.newest(TABLE, rid(row)).is_none() {
                self.page[row] = OnPage::Nothing;
            }
        }
    }

    fn write(&mut self, at: usize, row: usize) {
        let me = self.running[at].state.id();
        let last = self.all[row].last().map(|version| version.0);
        if last.is_some_and(|last| last != me && self.running.iter().any(|other| other.state.id() == last)) {
            return;
        }
        let adder = self.adder(row / 4);
        if adder.is_some_and(|adder| adder != me) {
            return;
        }
        self.bodies += 1;
        let body = vec![self.bodies as u8; 3 + self.random.index(20)];
        let before = self.page[row].clone();
        let unused = self.store.newest(TABLE, rid(row)).is_none();
        let (entry, after, version) = match &before {
            OnPage::Nothing => (Before::Absent, OnPage::Row(body.clone()), Some(body)),
            OnPage::Row(old) if self.random.below(3) > 0 => (Before::Present(old.as_slice().into()), OnPage::Row(body.clone()), Some(body)),
            OnPage::Row(old) => (Before::NotDeleted, OnPage::Deleted(old.clone()), None),
            OnPage::Deleted(old) if last == Some(me) => (Before::Present(old.as_slice().into()), OnPage::Row(body.clone()), Some(body)),
            OnPage::Deleted(_) if unused => (Before::Absent, OnPage::Row(body.clone()), Some(body)),
            OnPage::Deleted(_) => return,
        };
        let first = self.store.push(TABLE, rid(row), &self.running[at].state, entry).unwrap();
        let changed = |undo: &Undo| matches!(undo, Undo::Row(other, _) if *other == row);
        assert_eq!(first, adder.is_none() && (last != Some(me) || !self.running[at].undo.iter().any(changed)));
        self.page[row] = after;
        self.all[row].push((me, version));
        self.running[at].undo.push(Undo::Row(row, before));
    }

    fn roll_back(&mut self, at: usize, to: usize) {
        while self.running[at].undo.len() > to {
            match self.running[at].undo.pop().unwrap() {
                Undo::Row(row, before) => {
                    self.page[row] = before;
                    assert!(self.store.take_back(TABLE, rid(row), &self.running[at].state));
                    self.all[row].pop();
                }
                Undo::Page(page) => assert!(self.store.take_back_page(TABLE, 3, 100 + page as u32, &self.running[at].state)),
            }
        }
    }

    fn look(&self, row: usize, seen: Seen) -> Option<Vec<u8>> {
        match (seen, &self.page[row]) {
            (Seen::Current, OnPage::Row(body)) | (Seen::NotDeleted, OnPage::Deleted(body)) => Some(body.clone()),
            (Seen::Current, _) | (Seen::Absent, _) => None,
            (Seen::Present(body), _) => Some(body.to_vec()),
            (Seen::NotDeleted, page) => panic!("{page:?} is not deleted"),
        }
    }

    /// What a snapshot must see, and the first writer that it must not see.
    fn model(&self, row: usize, snapshot: &Snapshot) -> (Option<Vec<u8>>, Option<u64>) {
        let sees = |by: u64| by == snapshot.own() || self.commits.get(&by).is_some_and(|&commit| commit <= snapshot.timestamp());
        let seen = self.all[row].iter().rposition(|version| sees(version.0));
        let next = self.all[row].get(seen.map_or(0, |at| at + 1)).map(|version| version.0);
        (seen.and_then(|at| self.all[row][at].1.clone()), next)
    }

    fn check(&self, snapshot: &Snapshot) {
        for row in 0..ROWS {
            let (body, unseen) = self.model(row, snapshot);
            let mut noted = None;
            let seen = self.store.look_noting(TABLE, rid(row), snapshot, |writer| noted = Some(writer.id()));
            assert_eq!(self.look(row, seen), body, "row {row}");
            // On an added page the slots without rows are too new, too.
            assert!(noted == unseen || self.page[row] == OnPage::Nothing, "row {row}: {noted:?} {unseen:?} {:?}", self.all[row]);
            assert_eq!(self.store.look(TABLE + 1, rid(row), snapshot), Seen::Current);
            match self.store.newest(TABLE, rid(row)) {
                Some(_) if self.page[row] == OnPage::Nothing => {}
                Some(newest) => {
                    // Of those that all snapshots see alike the oldest may stand for the newest.
                    let last = self.all[row].last().unwrap().0;
                    assert_eq!(
                        snapshot.sees(&newest),
                        snapshot.own() == last || self.commits.get(&last).is_some_and(|&commit| commit <= snapshot.timestamp())
                    );
                }
                None => assert_eq!(unseen, None),
            }
        }
        let mut rows = vec![(9, Seen::Absent)];
        for page in 0..ROWS.div_ceil(4) {
            let others = self.store.of_page(TABLE, 3, 100 + page as u32, snapshot, &mut rows, |_, _| ());
            assert!(rows.is_sorted_by_key(|row| row.0));
            for slot in 0..4 {
                let seen = rows.iter().find(|row| row.0 == slot).map_or_else(|| others.clone(), |row| row.1.clone());
                assert_eq!(seen, self.store.look(TABLE, rid(page * 4 + usize::from(slot)), snapshot));
            }
        }
    }

    fn step(&mut self) {
        let at = if self.running.is_empty() { 0 } else { self.random.index(self.running.len()) };
        match self.random.below(30) {
            0 | 1 if self.running.len() < 4 => {
                self.running.push(Running { state: self.transactions.begin(), undo: Vec::new(), savepoints: Vec::new() });
            }
            2 | 3 if !self.running.is_empty() => {
                let one = self.running.swap_remove(at);
                let commit = self.transactions.commit(&one.state, |_| ());
                self.commits.insert(one.state.id(), commit);
            }
            4 if !self.running.is_empty() => {
                self.roll_back(at, 0);
                let one = self.running.swap_remove(at);
                self.transactions.abort(&one.state);
            }
            5 if !self.running.is_empty() => {
                let undone = self.running[at].undo.len();
                self.running[at].savepoints.push(undone);
            }
            6 if !self.running.is_empty() => {
                if let Some(savepoint) = self.running[at].savepoints.pop() {
                    self.roll_back(at, savepoint);
                }
            }
            7 | 8 if self.snapshots.len() < 5 => self.snapshots.push(self.transactions.snapshot(0)),
            9 if !self.snapshots.is_empty() => {
                let at = self.random.index(self.snapshots.len());
                self.snapshots.swap_remove(at);
            }
            10 => {
                let row = self.random.index(ROWS);
                self.store.needed(TABLE, rid(row), &self.transactions.horizon());
            }
            11 => drop(self.store.sweep()),
            12 => {
                let own = self.running.get(at).map_or(0, |one| one.state.id());
                let snapshot = self.transactions.snapshot(own);
                self.check(&snapshot);
                self.snapshots.iter().for_each(|snapshot| self.check(snapshot));
            }
            13 if !self.running.is_empty() => self.add_page(at),
            14 => self.purge(),
            _ if !self.running.is_empty() => {
                let row = self.random.index(ROWS);
                self.write(at, row);
            }
            _ => {}
        }
    }
}

#[test]
fn versions_against_a_list_of_all() {
    for seed in 0..60 {
        let mut world = World::new(seed);
        (0..3000).for_each(|_| world.step());
        while let Some(at) = world.running.len().checked_sub(1) {
            world.roll_back(at, 0);
            let one = world.running.swap_remove(at);
            world.transactions.abort(&one.state);
        }
        world.snapshots.iter().for_each(|snapshot| world.check(snapshot));
        world.snapshots.clear();
        world.store.sweep();
        assert_eq!(world.store.bytes(), 0);
        assert!((0..ROWS).all(|row| !world.store.page_may_have(TABLE, rid(row))));
    }
}

#[test]
fn one_long_reader_holds_one_version_of_each_row() {
    let transactions = Arc::new(Transactions::new(Arc::new(SimulatedClock::default()), 1));
    let store = VersionStore::new(Arc::clone(&transactions), 1 << 20);
    let update = |row: usize, body: u8| {
        let one = transactions.begin();
        store.push(TABLE, rid(row), &one, Before::Present(vec![body; 100].into())).unwrap();
        transactions.commit(&one, |_| ());
    };
    update(0, 1);
    let reader = transactions.snapshot(0);
    (0..50_000).for_each(|n| update(0, n as u8));
    assert_eq!(store.look(TABLE, rid(0), &reader), Seen::Present(vec![0; 100].into()));
    assert!(store.bytes() < 4096, "{}", store.bytes());
    drop(reader);
    assert!(!store.needed(TABLE, rid(0), &transactions.horizon()).0);
    assert_eq!(store.bytes(), 0);
}

#[test]
fn many_snapshots_of_one_hot_row() {
    let transactions = Arc::new(Transactions::new(Arc::new(SimulatedClock::default()), 1));
    let store = VersionStore::new(Arc::clone(&transactions), 1 << 20);
    let mut readers = Vec::new();
    for n in 0..200_u8 {
        readers.push((n, transactions.snapshot(0)));
        let one = transactions.begin();
        store.push(TABLE, rid(0), &one, Before::Present(vec![n].into())).unwrap();
        transactions.commit(&one, |_| ());
    }
    for (n, reader) in &readers {
        assert_eq!(store.look(TABLE, rid(0), reader), Seen::Present(vec![*n].into()));
    }
}

#[test]
fn full_store_says_who_holds_it() {
    let clock = SimulatedClock::default();
    let transactions = Arc::new(Transactions::new(Arc::new(clock.clone()) as Arc<dyn Clock>, 1));
    let store = VersionStore::new(Arc::clone(&transactions), 100_000);
    let fill = |from: u32| {
        (from..).find_map(|page| {
            let one = transactions.begin();
            let pushed = store.push(TABLE, Rid::new(0, page, 0), &one, Before::Present(vec![0; 200].into()));
            transactions.commit(&one, |_| ());
            pushed.err().map(|full| (page, full))
        })
    };
    let reader = transactions.snapshot(0);
    clock.advance(Duration::from_secs(90));
    let (page, full) = fill(0).unwrap();
    assert!((200..500).contains(&page), "{page}");
    assert_eq!(full.oldest, Some((Duration::from_secs(90), u64::from(page) + 1 - 1)));
    assert!(store.bytes() <= 100_000);
    let text = full.to_string();
    assert!(text.contains("100000 bytes: a long reader holds them (the oldest snapshot is 90.0 s old"), "{text}");
    // Without the reader the same goes on without end.
    drop(reader);
    let one = transactions.begin();
    for page in 0..10_000 {
        let other = transactions.begin();
        store.push(TABLE, Rid::new(0, page, 0), &other, Before::Present(vec![0; 200].into())).unwrap();
        transactions.commit(&other, |_| ());
    }
    // A transaction alone can fill it, too.
    let full =
        (0..10_000).find_map(|page| store.push(TABLE, Rid::new(1, page, 0), &one, Before::Present(vec![0; 200].into())).err()).unwrap();
    assert!(full.to_string().contains("transactions that have not ended hold"), "{full}");
}

#[test]
fn one_note_for_all_rows_of_an_added_page() {
    let transactions = Arc::new(Transactions::new(Arc::new(SimulatedClock::default()), 1));
    let store = VersionStore::new(Arc::clone(&transactions), 1 << 20);
    let (one, two) = (transactions.begin(), transactions.begin());
    let (before, early) = (transactions.snapshot(0), transactions.snapshot(two.id()));
    for page in 0..1000 {
        store.push_page(TABLE, 0, page, &one).unwrap();
        for slot in 0..100 {
            assert!(!store.push(TABLE, Rid::new(0, page, slot), &one, Before::Absent).unwrap());
        }
    }
    assert!(store.bytes() < 100_000);
    let mut rows = Vec::new();
    let mut writers = Vec::new();
    assert_eq!(store.of_page(TABLE, 0, 5, &before, &mut rows, |slot, by| writers.push((slot, by.id()))), Seen::Absent);
    assert_eq!((rows.len(), writers), (0, vec![(None, one.id())]));
    let own = transactions.snapshot(one.id());
    assert_eq!(store.look(TABLE, Rid::new(0, 5, 3), &own), Seen::Current);
    transactions.commit(&one, |_| ());
    // One that sees its own row there, but not the others.
    store.push(TABLE, Rid::new(0, 5, 3), &two, Before::Present(vec![1].into())).unwrap();
    assert_eq!(store.of_page(TABLE, 0, 5, &early, &mut rows, |_, _| ()), Seen::Absent);
    assert_eq!(rows, [(3, Seen::Current)]);
    assert_eq!(store.look(TABLE, Rid::new(0, 5, 3), &early), Seen::Current);
    assert_eq!(store.look(TABLE, Rid::new(0, 5, 4), &early), Seen::Absent);
}

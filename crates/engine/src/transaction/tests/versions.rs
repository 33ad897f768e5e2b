//! The version store against a list of all versions.

use crate::test_random::Random;
use crate::transaction::{Before, Seen, Snapshot, TransactionState, Transactions, VersionError, VersionStore};
use pagefold_io::{Clock, FaultOptions, FaultStorage, MemoryStorage, OpenOptions, SimulatedClock, Storage};
use pagefold_types::Rid;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
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
    spills: bool,
}

impl World {
    fn new(seed: u64, spills: bool) -> World {
        let transactions = Arc::new(Transactions::new(Arc::new(SimulatedClock::default()), 1));
        World {
            random: Random(seed),
            store: with_file(VersionStore::new(Arc::clone(&transactions), 1 << 20), 1 << 20),
            spills,
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
        let is_unused = |row: usize| self.page[row] == OnPage::Nothing && self.store.newest(TABLE, rid(row)).unwrap().is_none();
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
            if matches!(self.page[row], OnPage::Deleted(_)) && self.store.newest(TABLE, rid(row)).unwrap().is_none() {
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
        let unused = self.store.newest(TABLE, rid(row)).unwrap().is_none();
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
                    assert!(self.store.take_back(TABLE, rid(row), &self.running[at].state).unwrap());
                    self.all[row].pop();
                }
                Undo::Page(page) => {
                    assert!(self.store.take_back_page(TABLE, 3, 100 + page as u32, &self.running[at].state).unwrap());
                }
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
            let seen = self.store.look_noting(TABLE, rid(row), snapshot, |writer| noted = Some(writer.id())).unwrap();
            assert_eq!(self.look(row, seen), body, "row {row}");
            // On an added page the slots without rows are too new, too.
            assert!(noted == unseen || self.page[row] == OnPage::Nothing, "row {row}: {noted:?} {unseen:?} {:?}", self.all[row]);
            assert_eq!(self.store.look(TABLE + 1, rid(row), snapshot).unwrap(), Seen::Current);
            match self.store.newest(TABLE, rid(row)).unwrap() {
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
            let others = self.store.of_page(TABLE, 3, 100 + page as u32, snapshot, &mut rows, |_, _| ()).unwrap();
            assert!(rows.is_sorted_by_key(|row| row.0));
            for slot in 0..4 {
                let seen = rows.iter().find(|row| row.0 == slot).map_or_else(|| others.clone(), |row| row.1.clone());
                assert_eq!(seen, self.store.look(TABLE, rid(page * 4 + usize::from(slot)), snapshot).unwrap());
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
                self.store.needed(TABLE, rid(row), &self.transactions.horizon()).unwrap();
            }
            11 => _ = self.store.sweep(),
            15 | 16 if self.spills => self.store.spill_all().unwrap(),
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

/// With a file of its own.
fn with_file(store: VersionStore, limit: u64) -> VersionStore {
    let open = || MemoryStorage::new().open(Path::new("versions"), &OpenOptions::create());
    store.with_file(Box::new(open), limit)
}

fn against_a_list_of_all(spills: bool) {
    let mut blocks = 0;
    for seed in 0..60 {
        let mut world = World::new(seed, spills);
        for _ in 0..3000 {
            world.step();
            blocks += u64::from(world.store.file_bytes() > 0);
        }
        while let Some(at) = world.running.len().checked_sub(1) {
            world.roll_back(at, 0);
            let one = world.running.swap_remove(at);
            world.transactions.abort(&one.state);
        }
        world.snapshots.iter().for_each(|snapshot| world.check(snapshot));
        world.snapshots.clear();
        world.store.sweep();
        assert_eq!((world.store.bytes(), world.store.file_bytes()), (0, 0));
        assert!((0..ROWS).all(|row| !world.store.page_may_have(TABLE, rid(row))));
    }
    assert_eq!(blocks > 20_000, spills, "{blocks}");
}

#[test]
fn versions_against_a_list_of_all() {
    against_a_list_of_all(false);
}

#[test]
fn versions_in_a_file_against_a_list_of_all() {
    against_a_list_of_all(true);
}

/// One transaction changes far more than the memory takes, and is committed or taken back, beside an older reader.
#[test]
fn versions_that_find_no_room_go_to_the_file() {
    for commits in [false, true] {
        let transactions = Arc::new(Transactions::new(Arc::new(SimulatedClock::default()), 1));
        let store = with_file(VersionStore::new(Arc::clone(&transactions), 100_000), 1 << 30);
        let rids: Vec<Rid> = (0..200).flat_map(|page| (0..100).map(move |slot| Rid::new(0, page, slot))).collect();
        let body = |rid: Rid| -> Arc<[u8]> { rid.to_u64().to_le_bytes().repeat(10).into() };
        let (reader, one) = (transactions.snapshot(0), transactions.begin());
        for rid in &rids {
            assert!(store.push(TABLE, *rid, &one, Before::Present(body(*rid))).unwrap());
            assert!(store.bytes() <= 110_000, "{}", store.bytes());
        }
        assert!(store.file_bytes() > 1_500_000);
        let own = transactions.snapshot(one.id());
        for rid in rids.iter().step_by(7) {
            assert_eq!(store.look(TABLE, *rid, &reader).unwrap(), Seen::Present(body(*rid)));
            assert_eq!(store.look(TABLE, *rid, &own).unwrap(), Seen::Current);
        }
        let mut rows = Vec::new();
        assert_eq!(store.of_page(TABLE, 0, 17, &reader, &mut rows, |_, _| ()).unwrap(), Seen::Current);
        assert_eq!(rows.len(), 100);
        if commits {
            transactions.commit(&one, |_| ());
            let (late, horizon) = (transactions.snapshot(0), transactions.horizon());
            for rid in &rids {
                assert_eq!(store.look(TABLE, *rid, &late).unwrap(), Seen::Current);
                assert!(store.needed(TABLE, *rid, &horizon).unwrap().0);
                assert!(store.bytes() <= 110_000, "{}", store.bytes());
            }
            drop((reader, own, late));
            assert!(!store.needed(TABLE, rids[0], &transactions.horizon()).unwrap().0);
            store.sweep();
        } else {
            for rid in rids.iter().rev() {
                assert!(store.take_back(TABLE, *rid, &one).unwrap());
                assert!(store.bytes() <= 110_000, "{}", store.bytes());
            }
        }
        assert_eq!((store.bytes(), store.file_bytes()), (0, 0));
    }
}

/// What the file has instead of a version is an error.
#[test]
fn a_damaged_file_gives_no_version() {
    let transactions = Arc::new(Transactions::new(Arc::new(SimulatedClock::default()), 1));
    let storage = MemoryStorage::new();
    let file = storage.open(Path::new("versions"), &OpenOptions::create()).unwrap();
    let opened = Arc::clone(&file);
    let store = VersionStore::new(Arc::clone(&transactions), 1 << 20).with_file(Box::new(move || Ok(Arc::clone(&opened))), 1 << 20);
    let (reader, one) = (transactions.snapshot(0), transactions.begin());
    store.push(TABLE, rid(0), &one, Before::Present(vec![7; 500].into())).unwrap();
    store.spill_all().unwrap();
    assert_eq!(store.look(TABLE, rid(0), &reader).unwrap(), Seen::Present(vec![7; 500].into()));
    file.write_at(&[8], 100).unwrap();
    assert_eq!(store.look(TABLE, rid(0), &reader).unwrap_err().kind(), ErrorKind::InvalidData);
    assert!(store.take_back(TABLE, rid(0), &one).is_err());
    assert!(matches!(store.push(TABLE, rid(1), &one, Before::Absent), Err(VersionError::File(_))));
    file.set_len(0).unwrap();
    assert!(store.newest(TABLE, rid(0)).is_err());
}

/// A limit of the file is told, and nothing is lost by it.
#[test]
fn a_file_that_is_full_refuses_further_versions() {
    let transactions = Arc::new(Transactions::new(Arc::new(SimulatedClock::default()), 1));
    let store = with_file(VersionStore::new(Arc::clone(&transactions), 100_000), 512 << 10);
    let (reader, one) = (transactions.snapshot(0), transactions.begin());
    let push = |page: u32| store.push(TABLE, Rid::new(0, page, 0), &one, Before::Present(vec![page as u8; 300].into()));
    let (page, full) = (0..100_000).find_map(|page| push(page).err().map(|full| (page, full))).unwrap();
    assert!(page > 400, "{page}");
    let text = full.to_string();
    assert!(text.contains("bytes of their file"), "{text}");
    assert!((256 << 10..=512 << 10).contains(&store.file_bytes()), "{}", store.file_bytes());
    for other in 0..page {
        assert_eq!(store.look(TABLE, Rid::new(0, other, 0), &reader).unwrap(), Seen::Present(vec![other as u8; 300].into()));
    }
    (0..page).rev().for_each(|page| assert!(store.take_back(TABLE, Rid::new(0, page, 0), &one).unwrap()));
    assert_eq!((store.bytes(), store.file_bytes()), (0, 0));
}

/// That the device had no room is not remembered: as soon as it has some, versions go there. The time stands still.
#[test]
fn a_device_that_has_room_again_takes_versions() {
    let transactions = Arc::new(Transactions::new(Arc::new(SimulatedClock::default()), 1));
    let storage = FaultStorage::new(FaultOptions::default());
    let file = storage.open(Path::new("versions"), &OpenOptions::create()).unwrap();
    let store = VersionStore::new(Arc::clone(&transactions), 100_000).with_file(Box::new(move || Ok(Arc::clone(&file))), 1 << 30);
    let (reader, one) = (transactions.snapshot(0), transactions.begin());
    let push = |page: u32| store.push(TABLE, Rid::new(0, page, 0), &one, Before::Present(vec![page as u8; 300].into()));
    storage.set_capacity(Some(0));
    let full = (0..1000).find(|page| push(*page).is_err()).unwrap();
    for _ in 0..2 {
        assert!(matches!(push(full), Err(VersionError::File(error)) if error.kind() == ErrorKind::StorageFull));
    }
    storage.set_capacity(None);
    for page in full..400 {
        push(page).unwrap();
    }
    assert_eq!(store.look(TABLE, Rid::new(0, 0, 0), &reader).unwrap(), Seen::Present(vec![0; 300].into()));
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
    assert_eq!(store.look(TABLE, rid(0), &reader).unwrap(), Seen::Present(vec![0; 100].into()));
    assert!(store.bytes() < 4096, "{}", store.bytes());
    drop(reader);
    assert!(!store.needed(TABLE, rid(0), &transactions.horizon()).unwrap().0);
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
        assert_eq!(store.look(TABLE, rid(0), reader).unwrap(), Seen::Present(vec![*n].into()));
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
    let VersionError::Full(full) = full else { panic!("{full}") };
    assert_eq!(full.oldest, Some((Duration::from_secs(90), u64::from(page) + 1 - 1)));
    assert!(store.bytes() <= 100_000);
    let text = full.to_string();
    assert!(text.contains("100000 bytes of memory: a long reader holds them (the oldest snapshot is 90.0 s old"), "{text}");
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
    assert_eq!(store.of_page(TABLE, 0, 5, &before, &mut rows, |slot, by| writers.push((slot, by.id()))).unwrap(), Seen::Absent);
    assert_eq!((rows.len(), writers), (0, vec![(None, one.id())]));
    let own = transactions.snapshot(one.id());
    assert_eq!(store.look(TABLE, Rid::new(0, 5, 3), &own).unwrap(), Seen::Current);
    transactions.commit(&one, |_| ());
    // One that sees its own row there, but not the others.
    store.push(TABLE, Rid::new(0, 5, 3), &two, Before::Present(vec![1].into())).unwrap();
    assert_eq!(store.of_page(TABLE, 0, 5, &early, &mut rows, |_, _| ()).unwrap(), Seen::Absent);
    assert_eq!(rows, [(3, Seen::Current)]);
    assert_eq!(store.look(TABLE, Rid::new(0, 5, 3), &early).unwrap(), Seen::Current);
    assert_eq!(store.look(TABLE, Rid::new(0, 5, 4), &early).unwrap(), Seen::Absent);
}

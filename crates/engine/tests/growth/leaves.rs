//! Leaves of indexes: queues, time series, random replacement, RID lists.

use crate::world::{Form, Random, World};
use crate::{Course, changes};
use pagefold_engine::btree::Direction as Way;
use pagefold_engine::database::{Database, Isolation, OpenMode, Settings};
use pagefold_engine::index::{Index, IndexAttributes, IndexFormat};
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::TableAttributes;
use pagefold_io::{MemoryStorage, SimulatedClock, Storage};
use pagefold_types::{Column, DataType, Direction, Rid, Schema};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

type Entry = (Vec<u8>, Rid);

pub(crate) const FORMATS: [(IndexFormat, usize); 3] = [(IndexFormat::Plain, 2048), (IndexFormat::Fold, 8192), (IndexFormat::Prefix, 2048)];

const RIDS_A_PAGE: u64 = 60;

/// How often pages are counted in a run.
const COUNTS: u64 = 40;

/// Pages that make no difference: the leaves at the ends, and those that have just become thin.
const SLACK: u64 = 3;

fn database() -> Database {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let settings = Settings { pools: PoolSettings { memory_bytes: 64 << 20, ..PoolSettings::default() }, ..Settings::default() };
    Database::open(storage, clock, Path::new("db"), OpenMode::Create, settings).unwrap()
}

/// An index by number or by text, filled as a build does it.
fn built(database: &Database, attributes: IndexAttributes, entries: impl Iterator<Item = Entry>) -> Arc<Index> {
    let columns = [("number", DataType::BigInt), ("text", DataType::Varchar(None))];
    let schema = Schema::new(columns.into_iter().map(|(name, kind)| Column::new(name, kind, false)).collect()).unwrap();
    let mut change = database.change();
    let table = change.create_table(TableAttributes::new("t", schema)).unwrap();
    let index = change.create_index(&table, attributes).unwrap();
    let entries: Vec<Entry> = entries.collect();
    let mut builder = index.build(entries.iter().map(|e| e.1.slot()).max().unwrap());
    for (key, rid) in entries {
        builder.push(&key, rid).unwrap();
    }
    builder.finish().unwrap();
    change.commit().unwrap();
    database.index("i").unwrap()
}

/// Leaves that the same entries take when they are loaded.
fn fresh_leaves(index: &Index) -> u64 {
    let IndexAttributes { columns, unique, format, page_bytes, .. } = index.attributes().clone();
    let attributes = IndexAttributes::new("i", columns.into_iter().map(|c| (0, c.1)).collect(), unique).with_format(format, page_bytes);
    let mut entries = Vec::new();
    let mut cursor = index.tree().all(Way::Forward);
    while let Some((key, rid)) = cursor.next().unwrap() {
        entries.push((key.to_vec(), rid));
    }
    // Texts have keys of any length.
    let text = index.key_layout().fixed_len().is_none();
    let attributes = IndexAttributes { columns: vec![(usize::from(text), Direction::Ascending)], ..attributes };
    u64::from(built(&database(), attributes, entries.into_iter()).data_set().facts().data_pages)
}

fn number_key(number: u64) -> Vec<u8> {
    (number | 1 << 63).to_be_bytes().to_vec()
}

/// A text of 20 to 60 characters: few of them fill a leaf.
fn text_key(number: u64) -> Vec<u8> {
    let mut random = Random(number);
    let length = 20 + random.below(41);
    let mut key: Vec<u8> = (0..length).map(|_| b'a' + random.below(26) as u8).collect();
    key.push(0);
    key
}

/// RID of row `n` of a table.
fn rid(n: u64) -> Rid {
    Rid::new(0, (n / RIDS_A_PAGE) as u32, (n % RIDS_A_PAGE) as u16)
}

/// What comes and what goes.
trait Load {
    const WHAT: &'static str;
    const UNIQUE: bool;
    const TEXT: bool = false;
    /// Changes of a normal run.
    const CHANGES: u64 = 100_000;

    /// What there is at first.
    fn start(&self) -> BTreeSet<Entry>;

    /// Entries that come and entries that go.
    fn step(&mut self, random: &mut Random) -> (Vec<Entry>, Vec<Entry>);
}

/// So many changes of a load: leaves level off, and the first key is found at once.
fn run<L: Load>(new: impl Fn() -> L) {
    for (format, page_bytes) in FORMATS {
        let mut load = new();
        let what = format!("{}, {format}", L::WHAT);
        let attributes = IndexAttributes::new("i", vec![(usize::from(L::TEXT), Direction::Ascending)], L::UNIQUE);
        let database = database();
        let index = built(&database, attributes.with_format(format, page_bytes), load.start().into_iter());
        let tree = index.tree();
        let mut random = Random(7);
        let mut course = Course::default();
        let (mut done, all) = (0, changes(L::CHANGES));
        while done < all {
            let (come, go) = load.step(&mut random);
            done += (come.len() + go.len()) as u64;
            for (key, rid) in come {
                tree.insert(&key, rid).unwrap();
            }
            for (key, rid) in go {
                assert!(tree.delete(&key, rid).unwrap());
            }
            if done >= (course.0.len() as u64 + 1) * all / COUNTS {
                course.0.push(u64::from(index.data_set().facts().data_pages));
                first_key_is_found_at_once(&what, &index);
            }
        }
        assert_eq!(tree.check(&mut |_, _| Ok(())).unwrap(), []);
        course.assert_level(&what, fresh_leaves(&index), SLACK);
    }
}

/// A descent, and perhaps another one beside it.
fn first_key_is_found_at_once(what: &str, index: &Index) {
    let getpages = || index.data_set().counters().getpages;
    for way in [Way::Forward, Way::Backward] {
        let before = getpages();
        assert!(index.tree().all(way).next().unwrap().is_some());
        let (used, levels) = (getpages() - before, u64::from(index.data_set().facts().levels));
        assert!(used <= 2 * levels, "{what}: {used} getpages for the first key, {way:?}, of {levels} levels");
    }
}

/// Ascending keys; the oldest go.
struct Queue {
    next: u64,
    live: u64,
}

impl Load for Queue {
    const WHAT: &'static str = "queue";
    const UNIQUE: bool = true;

    fn start(&self) -> BTreeSet<Entry> {
        (0..self.next).map(|n| (number_key(n), rid(n))).collect()
    }

    fn step(&mut self, random: &mut Random) -> (Vec<Entry>, Vec<Entry>) {
        let n = 1 + random.below(50);
        let entries = |from: u64| (from..from + n).map(|i| (number_key(i), rid(i))).collect();
        self.next += n;
        (entries(self.next - n), entries(self.next - n - self.live))
    }
}

#[test]
fn queue() {
    run(|| Queue { next: 10_000, live: 10_000 });
}

/// One that is almost empty all the time.
#[test]
fn short_queue() {
    run(|| Queue { next: 10, live: 10 });
}

/// A stack that grows by several leaves and shrinks again.
struct Stack {
    height: u64,
}

impl Load for Stack {
    const WHAT: &'static str = "stack";
    const UNIQUE: bool = true;

    fn start(&self) -> BTreeSet<Entry> {
        (0..self.height).map(|n| (number_key(n), rid(n))).collect()
    }

    fn step(&mut self, _: &mut Random) -> (Vec<Entry>, Vec<Entry>) {
        let entries: Vec<Entry> = (self.height..self.height + 2_000).map(|n| (number_key(n), rid(n))).collect();
        (entries.clone(), entries.into_iter().rev().collect())
    }
}

#[test]
fn stack() {
    run(|| Stack { height: 500 });
}

/// A time series: ascending keys; ranges of the oldest third go, at random.
struct Rollover {
    next: u64,
    live: BTreeSet<u64>,
}

impl Load for Rollover {
    const WHAT: &'static str = "rollover";
    const UNIQUE: bool = true;

    fn start(&self) -> BTreeSet<Entry> {
        self.live.iter().map(|n| (number_key(*n), rid(*n))).collect()
    }

    fn step(&mut self, random: &mut Random) -> (Vec<Entry>, Vec<Entry>) {
        let n = 1 + random.below(200);
        let come: Vec<u64> = (self.next..self.next + n).collect();
        self.next += n;
        let oldest = self.live.first().unwrap();
        // The numbers of the oldest third of rows spread over more than a third of all numbers.
        let at = oldest + random.below((self.next - oldest) / 2);
        let gone: Vec<u64> = self.live.range(at..).take(n as usize).copied().collect();
        self.live.extend(&come);
        for n in &gone {
            self.live.remove(n);
        }
        let entries = |numbers: Vec<u64>| numbers.into_iter().map(|n| (number_key(n), rid(n))).collect();
        (entries(come), entries(gone))
    }
}

#[test]
fn rollover() {
    run(|| Rollover { next: 20_000, live: (0..20_000).collect() });
}

/// Any row goes, another takes its place.
struct Replacement<const TEXT: bool> {
    live: Vec<u64>,
    taken: BTreeSet<u64>,
}

impl<const TEXT: bool> Replacement<TEXT> {
    fn new(rows: u64) -> Replacement<TEXT> {
        let mut random = Random(3);
        let mut taken = BTreeSet::new();
        while taken.len() < rows as usize {
            taken.insert(random.below(1 << 40));
        }
        Replacement { live: taken.iter().copied().collect(), taken }
    }

    fn key(number: u64) -> Vec<u8> {
        if TEXT { text_key(number) } else { number_key(number) }
    }
}

impl<const TEXT: bool> Load for Replacement<TEXT> {
    const WHAT: &'static str = if TEXT { "random texts" } else { "random numbers" };
    const UNIQUE: bool = true;
    const TEXT: bool = TEXT;

    fn start(&self) -> BTreeSet<Entry> {
        self.live.iter().enumerate().map(|(row, number)| (Self::key(*number), rid(row as u64))).collect()
    }

    fn step(&mut self, random: &mut Random) -> (Vec<Entry>, Vec<Entry>) {
        let row = random.below(self.live.len() as u64);
        let number = std::iter::repeat_with(|| random.below(1 << 40)).find(|n| self.taken.insert(*n)).unwrap();
        let old = std::mem::replace(&mut self.live[row as usize], number);
        self.taken.remove(&old);
        (vec![(Self::key(number), rid(row))], vec![(Self::key(old), rid(row))])
    }
}

#[test]
fn random_numbers() {
    run(|| Replacement::<false>::new(10_000));
}

#[test]
fn random_texts() {
    run(|| Replacement::<true>::new(5_000));
}

const LISTS: u64 = 170;
/// RIDs of a list: two and a half lists fill a folded leaf.
const LISTED: u64 = 400;

/// Long RID lists; of each the oldest goes, and the newest comes behind all.
struct Duplicates {
    next: u64,
    lists: Vec<VecDeque<u64>>,
}

impl Load for Duplicates {
    const WHAT: &'static str = "duplicates";
    const UNIQUE: bool = false;
    /// Each list is replaced five times.
    const CHANGES: u64 = 10 * LISTS * LISTED;

    fn start(&self) -> BTreeSet<Entry> {
        let list = |(key, rids): (usize, &VecDeque<u64>)| rids.iter().map(|n| (number_key(key as u64), rid(*n))).collect::<Vec<_>>();
        self.lists.iter().enumerate().flat_map(list).collect()
    }

    fn step(&mut self, random: &mut Random) -> (Vec<Entry>, Vec<Entry>) {
        let key = random.below(self.lists.len() as u64);
        let list = &mut self.lists[key as usize];
        list.push_back(self.next);
        let oldest = list.pop_front().unwrap();
        self.next += 1;
        (vec![(number_key(key), rid(self.next - 1))], vec![(number_key(key), rid(oldest))])
    }
}

#[test]
fn duplicates() {
    let list = |key| (key..LISTS * LISTED).step_by(LISTS as usize).collect();
    run(|| Duplicates { next: LISTS * LISTED, lists: (0..LISTS).map(list).collect() });
}

/// One key has most rows, which come and go in no order; other keys lie around it.
struct HotKey {
    live: Vec<u64>,
    free: Vec<u64>,
}

impl Load for HotKey {
    const WHAT: &'static str = "hot key";
    const UNIQUE: bool = false;

    fn start(&self) -> BTreeSet<Entry> {
        let others = (0..2_000).filter(|n| *n != 1_000).map(|n| (number_key(n), rid(100_000 + n)));
        others.chain(self.live.iter().map(|n| (number_key(1_000), rid(*n)))).collect()
    }

    fn step(&mut self, random: &mut Random) -> (Vec<Entry>, Vec<Entry>) {
        let mut any = |list: &[u64]| random.below(list.len() as u64) as usize;
        let (comes, goes) = (any(&self.free), any(&self.live));
        std::mem::swap(&mut self.free[comes], &mut self.live[goes]);
        (vec![(number_key(1_000), rid(self.live[goes]))], vec![(number_key(1_000), rid(self.free[comes]))])
    }
}

#[test]
fn hot_key() {
    run(|| HotKey { live: (0..20_000).step_by(2).collect(), free: (1..20_000).step_by(2).collect() });
}

/// Transactions of some rows each; rows go when nobody can see them any more.
fn transactions<N: FnMut(&mut Random) -> (i64, i64)>(what: &str, start: Range<i64>, new: impl Fn() -> N) {
    for (format, _) in FORMATS {
        let mut numbers = new();
        let world = World::with(Form { format, memory_bytes: 32 << 20, ..Form::default() });
        let mut random = Random(5);
        let mut rids: BTreeMap<i64, Rid> = start.clone().zip(world.fill(start.clone().map(|n| (n, n / 10)))).collect();
        let mut courses = [Course::default(), Course::default()];
        let (mut done, all) = (0, changes(20_000));
        while done < all {
            let mut t = world.begin(Isolation::ReadCommitted);
            for _ in 0..20 {
                let (comes, goes) = numbers(&mut random);
                rids.insert(comes, world.insert(&mut t, comes, comes / 10, "").unwrap());
                t.delete(&world.table, rids.remove(&goes).unwrap()).unwrap();
            }
            // Some are taken back.
            if random.below(10) == 0 {
                let savepoint = t.savepoint();
                for n in 0..30 {
                    world.insert(&mut t, 1 << 40 | n, n, "").unwrap();
                }
                t.roll_back_to(savepoint).unwrap();
            }
            t.commit().unwrap();
            done += 40;
            if done % 200 == 0 {
                world.database.remove_leftovers().unwrap();
            }
            if done >= (courses[0].0.len() as u64 + 1) * all / COUNTS {
                world.database.remove_leftovers().unwrap();
                for (course, index) in courses.iter_mut().zip([&world.by_number, &world.by_value]) {
                    course.0.push(u64::from(index.data_set().facts().data_pages));
                    first_key_is_found_at_once(what, index);
                }
            }
        }
        for (course, index) in courses.iter().zip([&world.by_number, &world.by_value]) {
            assert_eq!(index.data_set().facts().rows, rids.len() as u64);
            assert_eq!(index.tree().check(&mut |_, _| Ok(())).unwrap(), []);
            course.assert_level(&format!("{what}, {format}, {}", index.name()), fresh_leaves(index), SLACK);
        }
    }
}

#[test]
fn queue_of_transactions() {
    transactions("queue of transactions", 0..3_000, || {
        let mut next = 3_000;
        move |_| {
            next += 1;
            (next - 1, next - 3_001)
        }
    });
}

#[test]
fn replacement_in_transactions() {
    transactions("replacement in transactions", 0..3_000, || {
        // Numbers at random, each once: 2^31 - 1 is prime.
        let number = |n: i64| n * 48_271 % ((1 << 31) - 1);
        let mut live: Vec<i64> = (0..3_000).collect();
        let mut next = 3_000;
        move |random| {
            next += 1;
            let at = random.below(live.len() as u64) as usize;
            (number(next), std::mem::replace(&mut live[at], number(next)))
        }
    });
}

//! Indexes that are built beside transactions that change their table's rows: every interleaving of the two, by one thread and by many.

use crate::world::{Form, Random, Scans, World, is_retryable, open, parts};
use pagefold_engine::btree::Direction as Way;
use pagefold_engine::database::Isolation::{self, ReadCommitted, RepeatableRead, Serializable};
use pagefold_engine::database::{ALONE_MAX, Change, IndexBuild, OpenMode, RowScan, Savepoint, Transaction};
use pagefold_engine::index::{Index, IndexAttributes, IndexFormat};
use pagefold_engine::table_space::{Method, RowBuffer, Table};
use pagefold_engine::{Error, Progress, Result, Silent, Unit};
use pagefold_io::{Failure, Fault, FaultOptions, FaultStorage, MemoryStorage, Repeat, Storage, Trigger};
use pagefold_types::{Direction, Rid, ValueRef};
use pagefold_utility::{IndexOptions, ReorgOptions, create_index, drop_object, reorg};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

const LEVELS: [Isolation; 3] = [ReadCommitted, RepeatableRead, Serializable];

fn attributes(columns: &[(usize, Direction)], unique: bool, format: IndexFormat) -> IndexAttributes {
    let page_bytes = if format == IndexFormat::Fold { 8192 } else { 2048 };
    IndexAttributes::new("beside", columns.to_vec(), unique).with_format(format, page_bytes)
}

/// Keys with their rows, in order.
fn sorted(build: &IndexBuild) -> Result<Vec<(Vec<u8>, Rid)>> {
    let mut entries = Vec::new();
    build.scan(|key, rid| {
        entries.push((key.to_vec(), rid));
        Ok::<_, Error>(())
    })?;
    entries.sort_unstable();
    Ok(entries)
}

fn fill(build: &IndexBuild, entries: &[(Vec<u8>, Rid)]) -> Result<()> {
    let slot_max = entries.iter().map(|(_, rid)| rid.slot()).max().unwrap_or(0);
    let mut filler = build.fill(slot_max);
    entries.iter().try_for_each(|(key, rid)| filler.push(key, *rid))?;
    if entries.is_empty() { Ok(()) } else { filler.finish().map(drop) }
}

/// The key of a record.
fn key_of(table: &Table, index: &Index, record: &[u8]) -> Vec<u8> {
    let mut key = Vec::new();
    index.key_layout().encode_from_record(table.layout(), record, &mut key).unwrap();
    key
}

/// A transaction sees the same rows by the index, by its keys alone, both ways, and by a scan.
fn compare(world: &World, t: &mut Transaction<'_>, index: &Arc<Index>) {
    let collect = |mut scan: RowScan, key: &dyn Fn(&[u8]) -> Vec<u8>| {
        let mut found = Vec::new();
        while let Some((rid, bytes)) = scan.next_record().unwrap() {
            found.push((key(bytes), rid));
        }
        found
    };
    let own = |record: &[u8]| key_of(&world.table, index, record);
    let mut expected = collect(t.rows(&world.table).unwrap(), &own);
    expected.sort_unstable();
    for way in [Way::Forward, Way::Backward] {
        let mut rows = collect(t.rows_by(&world.table, index, way).unwrap(), &own);
        let mut keys = collect(t.keys_of(&world.table, index, way).unwrap(), &<[u8]>::to_vec);
        if matches!(way, Way::Backward) {
            rows.reverse();
            keys.reverse();
        }
        // Rows of one key come in the order of their RIDs either way.
        rows.sort();
        keys.sort();
        assert!(rows == expected, "rows by the index and by scan, {way:?}: {} and {}", rows.len(), expected.len());
        assert!(keys == expected, "keys by the index and rows by scan, {way:?}: {} and {}", keys.len(), expected.len());
    }
}

/// When nothing runs any more: an entry for each row, and no other.
fn check_entries(world: &World, index: &Index) {
    world.database.remove_leftovers().unwrap();
    let mut entries = 0;
    let faults = index.tree().check(&mut |key, rid| {
        entries += 1;
        let own = world.table.read(rid, &mut RowBuffer::default(), |record| key_of(&world.table, index, record))?;
        assert!(own.as_deref() == Some(key), "an entry without its row {rid}");
        Ok(())
    });
    assert_eq!(faults.unwrap().len(), 0);
    assert_eq!(entries, world.table.row_count(), "entries and rows");
    assert_eq!(index.data_set().facts().rows, entries, "the count of entries");
}

/// A writer of the stepped test.
struct Writer<'w> {
    transaction: Transaction<'w>,
    savepoints: Vec<Savepoint>,
    failed: bool,
}

/// The build, as far as it has come.
struct Building<'w> {
    build: IndexBuild,
    change: Change<'w>,
    entries: Option<Vec<(Vec<u8>, Rid)>>,
    stage: usize,
    /// A snapshot from before, and what it sees.
    old: Option<(Transaction<'w>, usize)>,
}

/// What a run has met.
#[derive(Debug, Default)]
struct Met {
    built: u64,
    duplicates: u64,
    withdrawn: u64,
    waited: u64,
    again: u64,
    refused: u64,
}

const NUMBERS: u64 = 60;

fn statement(world: &World, w: &mut Writer<'_>, random: &mut Random, has_others: bool, met: &mut Met) {
    let (number, value) = (random.below(NUMBERS) as i64, random.below(12) as i64);
    let t = &mut w.transaction;
    let found = match t.find(&world.table, &world.by_number, &[ValueRef::Int(number)]) {
        Ok(found) => found.first().copied(),
        Err(error) => {
            assert!(is_retryable::<()>(&Err(error)));
            w.failed = true;
            return;
        }
    };
    let words = random.pick_words();
    let done = match (found, random.below(10)) {
        (None, _) => world.insert(t, number, value, &random.text(words)).map(drop),
        (Some(rid), 0..3) => t.delete(&world.table, rid).map(drop),
        (Some(rid), 3..7) => t.update(&world.table, rid, &[(1, ValueRef::Int(value))]).map(drop),
        // Rows move.
        (Some(rid), 7) => {
            let text = random.text(words);
            t.update(&world.table, rid, &[(2, ValueRef::Text(&text))]).map(drop)
        }
        (Some(rid), 8) => {
            let text = random.text(words);
            t.update(&world.table, rid, &[(1, ValueRef::Int(value)), (2, ValueRef::Text(&text))]).map(drop)
        }
        // To another number, which may be taken: the statement is taken back alone.
        (Some(rid), _) => t.update(&world.table, rid, &[(0, ValueRef::Int(random.below(NUMBERS) as i64))]).map(drop),
    };
    match done {
        Ok(()) => {}
        Err(Error::DuplicateKey { .. }) => met.refused += 1,
        result @ Err(_) => {
            assert!(is_retryable(&result), "{result:?}");
            // One who is alone with the build never waits, and meets nobody.
            assert!(has_others || !matches!(result, Err(Error::Lock(_))), "{result:?}");
            w.failed = true;
        }
    }
}

trait Words {
    fn pick_words(&mut self) -> u64;
}

impl Words for Random {
    fn pick_words(&mut self) -> u64 {
        [3, 3, 30, 200][self.below(4) as usize]
    }
}

/// One step of the build. What it gives when it is over: did it come to be?
fn build_step(building: &mut Building<'_>, met: &mut Met) -> Result<bool> {
    let Building { build, change, entries, stage, .. } = building;
    match *stage {
        0 => *entries = Some(sorted(build)?),
        1 => fill(build, entries.as_deref().unwrap())?,
        2 => change.define_index(build)?,
        3 => {
            if !build.switch(&Silent)? {
                met.waited += 1;
                return Ok(false);
            }
        }
        _ => {
            if !build.complete(&Silent)? {
                met.waited += 1;
                return Ok(false);
            }
            met.again += build.counts().again;
            assert!(build.counts().alone_most <= ALONE_MAX);
            return Ok(true);
        }
    }
    *stage += 1;
    Ok(false)
}

/// The committed rows.
fn committed(world: &World) -> BTreeMap<i64, (i64, String)> {
    let mut rows = BTreeMap::new();
    let mut t = world.begin(RepeatableRead);
    for row in t.rows(&world.table).unwrap() {
        let (number, row) = parts(&row.unwrap().1);
        assert!(rows.insert(number, row).is_none());
    }
    rows
}

fn has_twice(world: &World, columns: &[(usize, Direction)]) -> bool {
    let rows = committed(world);
    let key = |(number, (value, _)): (&i64, &(i64, String))| {
        columns.iter().map(|(column, _)| if *column == 0 { *number } else { *value }).collect::<Vec<_>>()
    };
    let mut keys: Vec<_> = rows.iter().map(key).collect();
    keys.sort_unstable();
    keys.windows(2).any(|pair| pair[0] == pair[1])
}

/// Writers and a build take steps in turn, as a seed says.
fn stepped(seed: u64, met: &mut Met) {
    let mut random = Random(seed);
    let form = Form {
        method: Method::ALL[random.below(5) as usize],
        format: IndexFormat::ALL[random.below(3) as usize],
        small_partitions: (random.below(4) == 0).then_some((4, 24)),
        ..Form::default()
    };
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let world = open(&storage, form, OpenMode::Create);
    world.fill((0..random.below(NUMBERS) as i64).map(|number| (number, number % 12)));
    let count = 1 + random.below(3) as usize;
    let mut writers: Vec<Option<Writer<'_>>> = (0..count).map(|_| None).collect();
    let mut building: Option<Building<'_>> = None;
    let mut left = 1 + random.below(3);
    for step in 0.. {
        if left == 0 || step > 4_000 {
            break;
        }
        match random.below(20) {
            0..3 => match &mut building {
                None => {
                    let (columns, unique) = match random.below(5) {
                        0 => (vec![(0, Direction::Descending)], true),
                        1 => (vec![(1, Direction::Ascending)], true),
                        2 => (vec![(1, Direction::Descending), (0, Direction::Ascending)], true),
                        _ => (vec![(1, Direction::Descending)], false),
                    };
                    let mut old = (random.below(2) == 0).then(|| (world.begin(RepeatableRead), 0));
                    if let Some((t, rows)) = &mut old {
                        *rows = world.see(t).len();
                    }
                    let mut change = world.database.change_within(Duration::ZERO);
                    let format = IndexFormat::ALL[random.below(3) as usize];
                    let build = change.begin_index("t", attributes(&columns, unique, format)).unwrap();
                    building = Some(Building { build, change, entries: None, stage: 0, old });
                }
                Some(at_work) => {
                    match build_step(at_work, met) {
                        Ok(false) => continue,
                        Ok(true) => {
                            let Building { build, change, old, .. } = building.take().unwrap();
                            change.commit().unwrap();
                            met.built += 1;
                            let index = Arc::clone(build.index());
                            drop(build);
                            compare(&world, &mut world.begin(RepeatableRead), &index);
                            if let Some((mut t, rows)) = old {
                                // What is older than the index does not use it, and misses nothing.
                                assert!(matches!(t.index("beside"), Err(Error::Stale { .. })));
                                assert!(t.find(&world.table, &index, &[ValueRef::Int(1)]).is_err());
                                assert_eq!(world.see(&mut t).len(), rows);
                            }
                            // It goes on to be right beside those who ran.
                            for _ in 0..random.below(40) {
                                let at = random.below(count as u64) as usize;
                                write(&world, &mut writers, at, &mut random, met);
                                if random.below(8) == 0 {
                                    compare(&world, &mut world.begin(RepeatableRead), &index);
                                }
                            }
                            writers.iter_mut().for_each(|writer| drop(writer.take()));
                            check_entries(&world, &index);
                            world.check();
                            drop(index);
                            drop_object(&world.database, "beside").unwrap();
                        }
                        Err(Error::DuplicateKey { index, .. }) => {
                            assert_eq!(index, "beside");
                            let Building { build, change, .. } = building.take().unwrap();
                            let columns = build.index().attributes().columns.clone();
                            assert!(has_twice(&world, &columns), "a duplicate that is not there");
                            drop((build, change));
                            met.duplicates += 1;
                        }
                        Err(error) => panic!("{error}"),
                    }
                    left -= 1;
                }
            },
            3 if random.below(12) == 0 && building.is_some() => {
                // The process that builds gives up.
                building = None;
                met.withdrawn += 1;
                assert!(world.database.index("beside").is_err());
            }
            4 => world.database.remove_leftovers().unwrap(),
            5 if random.below(3) == 0 => world.database.checkpoint().unwrap(),
            6 if building.is_some() => {
                let busy = world.database.change_within(Duration::ZERO).drop_table("t");
                assert!(matches!(busy, Err(Error::Busy(_))), "{busy:?}");
            }
            _ => {
                let at = random.below(count as u64) as usize;
                write(&world, &mut writers, at, &mut random, met);
            }
        }
    }
    drop(building);
    drop(writers);
    world.check();
    drop(world);
    let world = open(&storage, form, OpenMode::Write);
    world.check();
    assert_eq!(storage.list(Path::new("db/data")).unwrap().iter().filter(|path| path.extension().is_some_and(|e| e == "tmp")).count(), 0);
}

fn write<'w>(world: &'w World, writers: &mut [Option<Writer<'w>>], at: usize, random: &mut Random, met: &mut Met) {
    let has_others = writers.iter().enumerate().any(|(other, writer)| other != at && writer.is_some());
    let Some(w) = &mut writers[at] else {
        let transaction = world.begin_impatient(LEVELS[random.below(3) as usize]);
        writers[at] = Some(Writer { transaction, savepoints: Vec::new(), failed: false });
        return;
    };
    if w.failed && random.below(2) == 0 && !w.savepoints.is_empty() {
        let savepoint = w.savepoints[random.below(w.savepoints.len() as u64) as usize];
        w.failed = w.transaction.roll_back_to(savepoint).is_err();
        return;
    }
    match random.below(if w.failed { 1 } else { 24 }) {
        0 => {
            let Writer { transaction, failed, .. } = writers[at].take().unwrap();
            if failed || random.below(3) == 0 {
                transaction.rollback().unwrap();
            } else {
                let done = transaction.commit();
                assert!(done.is_ok() || is_retryable(&done), "{done:?}");
            }
        }
        1 | 2 => w.savepoints.push(w.transaction.savepoint()),
        3 if !w.savepoints.is_empty() => {
            let at = random.below(w.savepoints.len() as u64) as usize;
            w.savepoints.truncate(at + 1);
            w.transaction.roll_back_to(w.savepoints[at]).unwrap();
        }
        _ => statement(world, w, random, has_others, met),
    }
}

/// `PAGEFOLD_BUILDS`: how many histories.
#[test]
fn steps_of_writers_and_of_a_build_in_every_order() {
    let histories = std::env::var("PAGEFOLD_BUILDS").ok().and_then(|n| n.parse().ok()).unwrap_or(150);
    let mut met = Met::default();
    for seed in 0..histories {
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| stepped(seed, &mut met)));
        assert!(done.is_ok(), "seed {seed}");
    }
    println!("{met:?}");
    assert!(met.built > histories / 2 && met.waited > 0 && met.again > 0, "{met:?}");
    assert!(met.duplicates > 0 && met.withdrawn > 0 && met.refused > 0, "{met:?}");
}

/// Entries that writers leave are settled beside them, but for the last few.
#[test]
fn writers_are_kept_out_for_few_entries() {
    let world = World::new();
    world.fill((0..4_000).map(|number| (number, number % 7)));
    let mut change = world.database.change();
    let mut build = change.begin_index("t", attributes(&[(1, Direction::Ascending)], false, IndexFormat::Prefix)).unwrap();
    let entries = sorted(&build).unwrap();
    fill(&build, &entries).unwrap();
    let mut t = world.begin(ReadCommitted);
    for number in 0..4_000 {
        assert!(world.set(&mut t, number, number % 7 + 1).unwrap());
    }
    t.commit().unwrap();
    assert_eq!(build.noted(), 8_000, "the key before and the key after");
    change.define_index(&mut build).unwrap();
    assert!(build.switch(&Silent).unwrap());
    let counts = build.counts();
    assert_eq!((counts.beside, counts.alone, counts.closed), (8_000, 0, 1), "{counts:?}");
    assert!(build.complete(&Silent).unwrap());
    let index = Arc::clone(build.index());
    change.commit().unwrap();
    drop(build);
    compare(&world, &mut world.begin(RepeatableRead), &index);
    check_entries(&world, &index);
}

/// Others change rows as fast as they can: no writer fails but for others, and each index is right.
fn threads(form: Form, unique: bool) {
    const WRITERS: usize = 6;
    const ROUNDS: usize = 6;
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let world = open(&storage, form, OpenMode::Create);
    world.fill((0..3_000).map(|number| (number, number)));
    let (done, commits, running) = (AtomicBool::new(false), AtomicU64::new(0), AtomicUsize::new(WRITERS));
    let (mut most, mut alone, mut noted, mut built) = (0, 0, 0, 0);
    std::thread::scope(|scope| {
        struct Running<'a>(&'a AtomicUsize);
        impl Drop for Running<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Release);
            }
        }
        for thread in 0..WRITERS {
            let (world, done, commits, running) = (&world, &done, &commits, &running);
            scope.spawn(move || {
                let _running = Running(running);
                let mut random = Random(thread as u64 + 7);
                while !done.load(Ordering::Relaxed) {
                    let mut w = Writer { transaction: world.begin(LEVELS[thread % 3]), savepoints: Vec::new(), failed: false };
                    for _ in 0..1 + random.below(12) {
                        if w.failed {
                            break;
                        }
                        if random.below(5) == 0 {
                            w.savepoints.push(w.transaction.savepoint());
                        }
                        change_one(world, &mut w, thread as u64, unique, &mut random);
                    }
                    if random.below(6) == 0
                        && let Some(savepoint) = w.savepoints.first()
                        && !w.failed
                    {
                        w.transaction.roll_back_to(*savepoint).unwrap();
                    }
                    let ended = if w.failed || random.below(5) == 0 { w.transaction.rollback() } else { w.transaction.commit() };
                    assert!(ended.is_ok() || is_retryable(&ended), "{ended:?}");
                    commits.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        struct End<'a>(&'a AtomicBool);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _end = End(&done);
        for round in 0..ROUNDS {
            let mut change = world.database.change();
            let format = IndexFormat::ALL[round % 3];
            let mut build = change.begin_index("t", attributes(&[(1, Direction::Descending)], unique, format)).unwrap();
            let entries = sorted(&build).unwrap();
            // However few processors there are, writers come to be.
            let before = commits.load(Ordering::Relaxed);
            while commits.load(Ordering::Relaxed) < before + 40 && running.load(Ordering::Acquire) == WRITERS {
                std::thread::yield_now();
            }
            fill(&build, &entries).unwrap();
            change.finish_index(&mut build, Duration::from_secs(600), &Silent).unwrap();
            let index = Arc::clone(build.index());
            let counts = build.counts();
            change.commit().unwrap();
            drop(build);
            (most, alone, noted, built) =
                (counts.alone_most.max(most), alone + counts.alone, noted + counts.alone + counts.beside, built + 1);
            for _ in 0..3 {
                compare(&world, &mut world.begin(RepeatableRead), &index);
            }
            if round + 1 < ROUNDS {
                drop(index);
                drop_object(&world.database, "beside").unwrap();
            }
        }
    });
    println!("{form:?}: {built} built, {noted} noted, {alone} alone, {most} at most; {} transactions", commits.into_inner());
    assert!(noted > 0 && most <= ALONE_MAX, "{most} entries at once");
    let index = world.database.index("beside").unwrap();
    compare(&world, &mut world.begin(RepeatableRead), &index);
    check_entries(&world, &index);
    let rows = world.check();
    drop((world, index));
    let world = open(&storage, form, OpenMode::Write);
    assert!(world.check() == rows);
    check_entries(&world, &world.database.index("beside").unwrap());
}

/// Values are unique by what they are made of, if they are to be.
fn change_one(world: &World, w: &mut Writer<'_>, thread: u64, unique: bool, random: &mut Random) {
    let number = random.below(3_000) as i64;
    let value = if unique { number + 3_000 * random.below(4) as i64 } else { random.below(50) as i64 };
    let t = &mut w.transaction;
    let result = (|| {
        let found = t.find(&world.table, &world.by_number, &[ValueRef::Int(number)])?.first().copied();
        let words = random.pick_words();
        let text = random.text(words);
        match (found, random.below(8)) {
            (None, _) => world.insert(t, number, value, &text).map(drop),
            (Some(rid), 0 | 1) => t.delete(&world.table, rid).map(drop),
            (Some(rid), 2) => t.update(&world.table, rid, &[(2, ValueRef::Text(&text))]).map(drop),
            (Some(rid), _) => t.update(&world.table, rid, &[(1, ValueRef::Int(value)), (2, ValueRef::Text(&text))]).map(drop),
        }
    })();
    match result {
        Ok(()) => {}
        // Another one was faster.
        Err(Error::DuplicateKey { index, .. }) => assert!(index == "number" || unique, "thread {thread}: {index}"),
        // An index of before was dropped.
        Err(Error::Stale { .. }) => w.failed = true,
        result @ Err(_) => {
            assert!(is_retryable(&result), "{result:?}");
            w.failed = true;
        }
    }
}

fn form(method: Method, format: IndexFormat) -> Form {
    Form { method, format, background_threads: 2, memory_bytes: 2 << 20, ..Form::default() }
}

#[test]
fn beside_threads_of_rows_as_they_are() {
    threads(form(Method::None, IndexFormat::Plain), false);
}

#[test]
fn beside_threads_of_rows_by_column() {
    threads(form(Method::Page, IndexFormat::Prefix), true);
}

#[test]
fn beside_threads_of_codes_and_many_partitions() {
    threads(Form { small_partitions: Some((40, 40)), ..form(Method::Huffman, IndexFormat::Fold) }, true);
}

#[test]
fn others_that_define_something_of_the_table_are_refused() {
    let world = World::new();
    world.fill((0..50).map(|number| (number, number)));
    let mut change = world.database.change_within(Duration::ZERO);
    let key = || attributes(&[(1, Direction::Ascending)], false, IndexFormat::Plain);
    let mut build = change.begin_index("t", key()).unwrap();
    for stage in 0..4 {
        let is_busy =
            |result: Result<()>| assert!(matches!(&result, Err(Error::Busy(what)) if what.contains("beside")), "{stage}: {result:?}");
        let of_utility = |result: pagefold_utility::Result<()>| match result {
            Err(pagefold_utility::Error::Engine(error)) => is_busy(Err(error)),
            other => panic!("{stage}: {other:?}"),
        };
        is_busy(world.database.change_within(Duration::ZERO).begin_index("t", IndexAttributes { name: "other".into(), ..key() }).map(drop));
        is_busy(world.begin(ReadCommitted).create_index(&world.table, IndexAttributes { name: "other".into(), ..key() }).map(drop));
        is_busy(world.begin(ReadCommitted).drop_table("t"));
        is_busy(world.begin(ReadCommitted).drop_index("value"));
        of_utility(drop_object(&world.database, "t").map(drop));
        of_utility(reorg(&world.database, "t", &ReorgOptions::default(), &Silent).map(drop));
        of_utility(reorg(&world.database, "value", &ReorgOptions::default(), &Silent).map(drop));
        assert!(world.begin(ReadCommitted).index("beside").is_err());
        // Not complete: not committed.
        match stage {
            0 => fill(&build, &sorted(&build).unwrap()).unwrap(),
            1 => change.define_index(&mut build).unwrap(),
            2 => assert!(build.switch(&Silent).unwrap()),
            _ => assert!(build.complete(&Silent).unwrap()),
        }
    }
    change.commit().unwrap();
    drop(build);
    reorg(&world.database, "beside", &ReorgOptions::default(), &Silent).unwrap();
    drop_object(&world.database, "beside").unwrap();
    let mut change = world.database.change();
    let build = change.begin_index("t", key()).unwrap();
    assert!(matches!(change.commit(), Err(Error::Parameter(_))), "it is not complete");
    drop(build);
    drop_object(&world.database, "t").unwrap();
}

/// A transaction that ran before the build, or came before the switch, is waited for, and nobody else waits.
#[test]
fn a_build_waits_for_transactions_and_nobody_for_it() {
    let world = World::new();
    world.fill((0..50).map(|number| (number, number)));
    let mut first = world.begin(ReadCommitted);
    world.set(&mut first, 1, 100).unwrap();
    let mut change = world.database.change();
    let mut build = change.begin_index("t", attributes(&[(1, Direction::Ascending)], true, IndexFormat::Plain)).unwrap();
    fill(&build, &sorted(&build).unwrap()).unwrap();
    let timeout = change.finish_index(&mut build, Duration::ZERO, &Silent);
    assert!(matches!(timeout, Err(Error::Lock(_))), "{timeout:?}");
    let mut second = world.begin_impatient(Serializable);
    world.set(&mut second, 2, 200).unwrap();
    world.insert(&mut second, 60, 60, "").unwrap();
    assert!(!build.switch(&Silent).unwrap());
    first.rollback().unwrap();
    assert!(build.switch(&Silent).unwrap());
    // From here on statements keep it, and keep it unique.
    let mut third = world.begin_impatient(RepeatableRead);
    assert!(matches!(world.insert(&mut third, 61, 1, ""), Err(Error::DuplicateKey { .. })));
    // Perhaps its key is given back.
    assert!(matches!(world.insert(&mut third, 61, 2, ""), Err(Error::Lock(_))));
    third.rollback().unwrap();
    let mut third = world.begin_impatient(RepeatableRead);
    world.insert(&mut third, 61, 61, "").unwrap();
    assert!(!build.complete(&Silent).unwrap());
    second.rollback().unwrap();
    assert!(build.complete(&Silent).unwrap(), "the third one keeps it itself");
    let index = Arc::clone(build.index());
    change.commit().unwrap();
    drop(build);
    compare(&world, &mut world.begin(RepeatableRead), &index);
    third.rollback().unwrap();
    compare(&world, &mut world.begin(RepeatableRead), &index);
    check_entries(&world, &index);
}

/// A deadline that comes at one of the looks.
struct Deadline(AtomicU64);

impl Progress for Deadline {
    fn start(&self, _phase: &str, _total: Option<u64>, _unit: Unit) {}
    fn advance(&self, _n: u64) {}
    fn finish(&self) {}
    fn interrupted(&self) -> bool {
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| Some(left.saturating_sub(1))) == Ok(1)
    }
}

#[test]
fn a_build_that_is_stopped_or_finds_no_room_leaves_nothing() {
    let storage = FaultStorage::new(FaultOptions::default());
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let world = open(&shared, Form::default(), OpenMode::Create);
    world.fill((0..3_000).map(|number| (number, number % 100)));
    // The second one leaves one catalog.
    (0..2).for_each(|_| world.database.checkpoint().unwrap());
    let files = || storage.list(Path::new("db/data")).unwrap().len();
    let before = files();
    let columns = [("value".to_string(), Direction::Ascending)];
    let (mut failed, mut done, mut next) = (0, 0, 10_000);
    for room in (0..40u64).map(|n| (n * 16) << 10) {
        // Somebody changes rows meanwhile.
        let mut t = world.begin(ReadCommitted);
        world.insert(&mut t, next, 1, "").unwrap();
        t.rollback().unwrap();
        storage.set_capacity(Some(storage.taken_bytes() + room));
        let mut change = world.database.change();
        let result = change.begin_index("t", attributes(&[(1, Direction::Ascending)], false, IndexFormat::Plain)).and_then(|mut build| {
            let entries = sorted(&build)?;
            fill(&build, &entries)?;
            change.finish_index(&mut build, Duration::ZERO, &Silent)
        });
        match result.and_then(|_| change.commit()) {
            Ok(()) => {
                storage.set_capacity(None);
                drop_object(&world.database, "beside").unwrap();
                done += 1;
            }
            Err(error) => {
                assert!(error.is_no_room(), "{error}");
                storage.set_capacity(None);
                failed += 1;
            }
        }
        assert!(world.database.index("beside").is_err());
        world.fill([(next, 5)]);
        next += 1;
        (0..2).for_each(|_| world.database.checkpoint().unwrap());
        assert_eq!(files(), before, "with room for {room} bytes");
    }
    assert!(failed > 2 && done > 2, "{failed} failed, {done} done");
    let waiting = world.begin(ReadCommitted);
    drop(waiting);
    // A transaction that does not end: only a stop ends the wait.
    let mut t = world.begin(ReadCommitted);
    world.set(&mut t, 1, 7).unwrap();
    let stopped = create_index(&world.database, "beside", "t", &columns, &IndexOptions::default(), &Deadline(AtomicU64::new(4)));
    assert!(matches!(stopped, Err(pagefold_utility::Error::Interrupted)), "{stopped:?}");
    t.commit().unwrap();
    (0..2).for_each(|_| world.database.checkpoint().unwrap());
    assert_eq!(files(), before);
    create_index(&world.database, "beside", "t", &columns, &IndexOptions::default(), &Silent).unwrap();
    check_entries(&world, &world.database.index("beside").unwrap());
    world.check();
}

/// What is noted finds no place: the build fails, writers do not.
#[test]
fn writers_go_on_when_their_notes_find_no_room() {
    let storage = FaultStorage::new(FaultOptions::default());
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let world = open(&shared, Form::default(), OpenMode::Create);
    world.fill((0..2_000).map(|number| (number, number)));
    let mut change = world.database.change();
    let mut build =
        change.begin_index("t", attributes(&[(1, Direction::Ascending), (0, Direction::Ascending)], false, IndexFormat::Plain)).unwrap();
    fill(&build, &sorted(&build).unwrap()).unwrap();
    let trigger = Trigger { path_contains: "index-".into(), repeat: Repeat::Forever, ..Trigger::default() };
    storage.inject(trigger, Fault::Error(Failure::NoSpace));
    for round in 0..8 {
        let mut t = world.begin(ReadCommitted);
        for number in 0..2_000 {
            assert!(world.set(&mut t, number, number + round).unwrap());
        }
        t.commit().unwrap();
    }
    let failed = change.finish_index(&mut build, Duration::ZERO, &Silent);
    assert!(failed.unwrap_err().is_no_room());
    drop((build, change));
    assert_eq!(world.check().len(), 2_000);
}

/// A key too long, or twice: only what is committed counts.
#[test]
fn rows_that_are_taken_back_do_not_hinder_a_build() {
    let world = World::new();
    world.fill((0..50).map(|number| (number, number)));
    let long = "x".repeat(1_500);
    for (column, unique, commits) in [(2, false, false), (2, false, true), (1, true, false), (1, true, true)] {
        let mut change = world.database.change();
        let mut build = change.begin_index("t", attributes(&[(column, Direction::Ascending)], unique, IndexFormat::Plain)).unwrap();
        let mut t = world.begin(ReadCommitted);
        world.insert(&mut t, 1_000, if unique { 7 } else { 0 }, &long).unwrap();
        fill(&build, &sorted(&build).unwrap()).unwrap();
        change.define_index(&mut build).unwrap();
        let mut switched = build.switch(&Silent);
        assert!(matches!(switched, Ok(true)), "{switched:?}");
        assert!(matches!(build.complete(&Silent), Ok(false)));
        if commits {
            t.commit().unwrap();
            switched = build.complete(&Silent);
            match switched {
                Err(Error::DuplicateKey { key, .. }) if unique => assert!(key.contains('7'), "{key}"),
                Err(Error::Value(_)) if !unique => {}
                other => panic!("{other:?}"),
            }
            drop((build, change));
            let mut t = world.begin(ReadCommitted);
            let rid = world.find(&mut t, 1_000).unwrap();
            t.delete(&world.table, rid).unwrap();
            t.commit().unwrap();
        } else {
            t.rollback().unwrap();
            assert!(build.complete(&Silent).unwrap());
            change.commit().unwrap();
            check_entries(&world, build.index());
            drop(build);
            drop_object(&world.database, "beside").unwrap();
        }
    }
    world.check();
}

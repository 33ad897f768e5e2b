//! Tables that are written anew beside transactions that change their rows: every interleaving of the two, by one thread and by many.

use crate::world::{Form, Random, Rows, World, is_retryable, open};
use pagefold_engine::database::Isolation::{self, ReadCommitted, RepeatableRead, Serializable};
use pagefold_engine::database::{Change, OpenMode, RowAt, Savepoint, ScanRequest, TableBuild, Transaction};
use pagefold_engine::index::{Index, IndexFormat};
use pagefold_engine::table_space::{Method, Table, TableAttributes};
use pagefold_engine::transaction::LockError;
use pagefold_engine::{Error, Progress, Result, Silent, Unit};
use pagefold_io::{Failure, Fault, FaultOptions, FaultStorage, MemoryStorage, Repeat, Storage, Trigger};
use pagefold_types::{Column, DataType, Rid, Schema, ValueRef};
use pagefold_utility::{ReorgOptions, Setting, reorg};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const LEVELS: [Isolation; 3] = [ReadCommitted, RepeatableRead, Serializable];
const NUMBERS: u64 = 60;

fn begin(change: &mut Change<'_>, world: &World, method: Method, page_bytes: usize) -> Result<TableBuild> {
    let old = world.database.table("t")?;
    let attributes = TableAttributes { method, ..old.attributes_now().with_page_bytes(page_bytes) };
    let build = change.begin_table_again(&old, attributes)?;
    if method.dictionary_type().is_some() {
        let (sample, table) = (old.sample_records()?, &build.targets()[0].table);
        if let Some(dictionary) = sample.train(method, table.layout(), old.row_count(), table.attributes().page_fill()) {
            table.set_dictionary(dictionary)?;
        }
    }
    Ok(build)
}

/// Writes the rows and builds the indexes.
fn fill(build: &mut TableBuild) -> Result<u64> {
    fill_and(build, u64::MAX, || ())
}

/// The same; and does something when so many rows have their place.
fn fill_and(build: &mut TableBuild, after: u64, act: impl FnOnce()) -> Result<u64> {
    fill_as(build, None, after, act)
}

/// Rows in another order than that in which they lie.
type Ordered = Vec<(RowAt, Vec<u8>)>;

fn ordered(build: &TableBuild) -> Ordered {
    let mut rows = Ordered::new();
    build
        .visit_rows(|row, record| {
            rows.push((row, record.to_vec()));
            Ok::<_, Error>(())
        })
        .unwrap();
    rows.sort_unstable_by(|a, b| b.1.cmp(&a.1));
    rows
}

fn fill_as(build: &mut TableBuild, order: Option<Ordered>, after: u64, act: impl FnOnce()) -> Result<u64> {
    let (table, indexes) = (Arc::clone(&build.targets()[0].table), build.targets()[0].indexes.clone());
    let mut entries: Vec<Vec<(Vec<u8>, Rid)>> = vec![Vec::new(); indexes.len()];
    let (mut rows, mut act) = (0, Some(act));
    let mut placed = |row: RowAt, record: &[u8]| {
        rows += 1;
        if rows == after
            && let Some(act) = act.take()
        {
            act();
        }
        for (index, entries) in indexes.iter().zip(&mut entries) {
            let mut key = Vec::new();
            index.key_layout().encode_from_record(table.layout(), record, &mut key).unwrap();
            entries.push((key, row.rid));
        }
        Ok::<_, Error>(())
    };
    match order {
        None => drop(build.fill(placed)?),
        Some(order) => {
            let mut places = Vec::new();
            build.fill_with(
                |push| order.iter().try_for_each(|(row, record)| push(*row, record)),
                |old, new, record| {
                    places.push((old, new));
                    placed(new, record)
                },
            )?;
            places.sort_unstable();
            build.place::<Error>(|push| places.iter().try_for_each(|(old, new)| push(*old, *new)))?;
        }
    }
    for (index, mut entries) in indexes.iter().zip(entries) {
        entries.sort_unstable();
        let mut builder = index.build(entries.iter().map(|(_, rid)| rid.slot()).max().unwrap_or(0));
        entries.iter().try_for_each(|(key, rid)| builder.push_any(key, *rid))?;
        if !entries.is_empty() {
            builder.finish()?;
        }
    }
    Ok(rows)
}

/// The world as it is now.
fn renewed(world: World) -> World {
    let table = world.database.table("t").unwrap();
    let (by_number, by_value) = (world.database.index("number").unwrap(), world.database.index("value").unwrap());
    World { table, by_number, by_value, ..world }
}

/// The table that has the name for a transaction, and its index of numbers.
fn of_now(t: &mut Transaction<'_>) -> Result<(Arc<Table>, Arc<Index>)> {
    let table = t.table("t")?;
    let by_number = t.indexes(&table)?.into_iter().find(|index| index.name() == "number");
    Ok((table, by_number.unwrap()))
}

/// What a transaction sees of the table that has the name for it.
fn seen(t: &mut Transaction<'_>) -> Rows {
    use crate::world::{Scans, parts};
    let table = t.table("t").unwrap();
    t.rows(&table).unwrap().map(|row| parts(&row.unwrap().1)).collect()
}

fn committed(world: &World) -> Rows {
    seen(&mut world.begin(RepeatableRead))
}

#[derive(Debug, Default)]
struct Met {
    in_order: u64,
    rebuilt: u64,
    waited: u64,
    withdrawn: u64,
    noted: u64,
    at_once: u64,
    again: u64,
    stale: u64,
    old_snapshots: u64,
}

struct Writer<'w> {
    transaction: Transaction<'w>,
    savepoints: Vec<Savepoint>,
    failed: bool,
}

/// One statement about a row, found by its number. What is to be done to it, `random` says.
fn change_row(t: &mut Transaction<'_>, number: i64, other: i64, random: &mut Random) -> Result<()> {
    let (table, by_number) = of_now(t)?;
    let found = t.find(&table, &by_number, &[ValueRef::Int(number)])?.first().copied();
    let value = random.below(12) as i64;
    let words = [3, 3, 30, 200, 900][random.below(5) as usize];
    let text = random.text(words);
    match (found, random.below(10)) {
        (None, 0) => {
            let rows: Vec<_> =
                (0..70).map(|n| [ValueRef::Int(1_000 + 100 * number + n), ValueRef::Int(n), ValueRef::Text("row")]).collect();
            rows.iter().try_for_each(|row| t.insert(&table, row).map(drop))
        }
        (None, _) => t.insert(&table, &[ValueRef::Int(number), ValueRef::Int(value), ValueRef::Text(&text)]).map(drop),
        (Some(rid), 0..3) => t.delete(&table, rid).map(drop),
        (Some(rid), 3..6) => t.update(&table, rid, &[(1, ValueRef::Int(value))]).map(drop),
        (Some(rid), 6..8) => t.update(&table, rid, &[(2, ValueRef::Text(&text))]).map(drop),
        (Some(rid), 8) => t.update(&table, rid, &[(1, ValueRef::Int(value)), (2, ValueRef::Text(&text))]).map(drop),
        // To another number, which may be taken: the statement is taken back alone.
        (Some(rid), _) => t.update(&table, rid, &[(0, ValueRef::Int(other))]).map(drop),
    }
}

fn write<'w>(world: &'w World, writers: &mut [Option<Writer<'w>>], random: &mut Random, met: &mut Met) {
    let at = random.below(writers.len() as u64) as usize;
    let Some(w) = &mut writers[at] else {
        let transaction = world.begin_impatient(LEVELS[random.below(3) as usize]);
        writers[at] = Some(Writer { transaction, savepoints: Vec::new(), failed: false });
        return;
    };
    match random.below(12) {
        0 | 1 if !w.failed => {
            let ended = writers[at].take().unwrap().transaction.commit();
            assert!(ended.is_ok() || is_retryable(&ended), "{ended:?}");
        }
        2 => writers[at].take().unwrap().transaction.rollback().unwrap(),
        3 if !w.failed => w.savepoints.push(w.transaction.savepoint()),
        4 if !w.failed => {
            if let Some(savepoint) = w.savepoints.pop() {
                w.transaction.roll_back_to(savepoint).unwrap();
            }
        }
        _ if w.failed => writers[at].take().unwrap().transaction.rollback().unwrap(),
        5 => {
            // It has a snapshot, and has changed nothing.
            let table = w.transaction.table("t").unwrap();
            let looked = w.transaction.read_view().and_then(|view| view.scan(&table, &ScanRequest::default()).map(drop));
            assert!(looked.is_ok() || is_retryable(&looked), "{looked:?}");
            w.failed = looked.is_err();
        }
        _ => {
            let (number, other) = (random.below(NUMBERS) as i64, random.below(NUMBERS) as i64);
            match change_row(&mut w.transaction, number, other, random) {
                Ok(()) | Err(Error::DuplicateKey { .. }) => {}
                // It has looked at the table before it was replaced.
                Err(Error::Stale { .. }) => {
                    assert!(w.transaction.isolation() != ReadCommitted);
                    (w.failed, met.stale) = (true, met.stale + 1);
                }
                result @ Err(_) => {
                    assert!(is_retryable(&result), "{result:?}");
                    w.failed = true;
                }
            }
        }
    }
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
    let mut writers: Vec<Option<Writer<'_>>> = (0..1 + random.below(3)).map(|_| None).collect();
    let mut building: Option<(TableBuild, Change<'_>, u64, Option<Ordered>)> = None;
    let mut old: Option<(Transaction<'_>, Rows)> = None;
    for _ in 0..600 {
        match random.below(20) {
            0..3 => match &mut building {
                None => {
                    let mut change = world.database.change_within(Duration::ZERO);
                    let method = Method::ALL[random.below(5) as usize];
                    // A partition has 16 pages at least.
                    let page_bytes = if form.small_partitions.is_some() { 2048 } else { [2048, 4096, 16384][random.below(3) as usize] };
                    match begin(&mut change, &world, method, page_bytes) {
                        Ok(build) => building = Some((build, change, 0, None)),
                        Err(error) => assert!(matches!(error, Error::Lock(_)), "{error}"),
                    }
                    if old.is_none() {
                        let mut reader = world.begin(RepeatableRead);
                        let rows = seen(&mut reader);
                        old = Some((reader, rows));
                    }
                }
                Some((build, change, stage, order)) => {
                    match *stage {
                        // Writers go on between reading and writing.
                        0 if seed % 2 == 1 => *order = Some(ordered(build)),
                        0 => {}
                        1 => {
                            met.in_order += u64::from(order.is_some());
                            fill_as(build, order.take(), u64::MAX, || ()).map(drop).unwrap();
                        }
                        2 => change.define_table(build, &Silent).unwrap(),
                        3 => build.settle(&Silent).unwrap(),
                        _ => match change.finish_table(build, Some(Duration::ZERO), &Silent) {
                            Err(Error::Lock(_)) => met.waited += 1,
                            result => {
                                let counts = result.unwrap();
                                (met.noted, met.at_once, met.again) =
                                    (met.noted + counts.noted, met.at_once + counts.at_once, met.again + counts.again);
                                let before = committed(&world);
                                let (build, change, ..) = building.take().unwrap();
                                let table = Arc::clone(&build.targets()[0].table);
                                change.commit().unwrap();
                                drop(build);
                                assert!(Arc::ptr_eq(&world.database.table("t").unwrap(), &table));
                                assert!(committed(&world) == before, "seed {seed}: what is committed is another table");
                                met.rebuilt += 1;
                                continue;
                            }
                        },
                    }
                    *stage += 1;
                }
            },
            3 if random.below(12) == 0 && building.is_some() => {
                building = None;
                met.withdrawn += 1;
            }
            4 => world.database.remove_leftovers().unwrap(),
            5 if random.below(3) == 0 => world.database.checkpoint().unwrap(),
            6 if random.below(8) == 0 => {
                if let Some((mut reader, rows)) = old.take() {
                    assert!(seen(&mut reader) == rows, "seed {seed}: an old snapshot sees other rows");
                    met.old_snapshots += 1;
                }
            }
            _ => write(&world, &mut writers, &mut random, met),
        }
    }
    drop((building, writers, old));
    let rows = committed(&world);
    let world = renewed(world);
    assert!(world.check() == rows, "seed {seed}");
    drop(world);
    let world = open(&storage, form, OpenMode::Write);
    assert!(world.check() == rows, "seed {seed}, opened again");
}

#[test]
fn every_interleaving_gives_the_same_rows() {
    let mut met = Met::default();
    let seeds: u64 = std::env::var("PAGEFOLD_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(150);
    (0..seeds).for_each(|seed| stepped(seed, &mut met));
    println!("{met:?}");
    let Met { rebuilt, in_order, waited, withdrawn, noted, at_once, again: _, stale, old_snapshots } = met;
    assert!(
        in_order > 100
            && rebuilt > 100
            && waited > 100
            && withdrawn > 20
            && noted > 1_000
            && at_once > 1_000
            && stale > 20
            && old_snapshots > 50
    );
}

/// Others change rows as fast as they can, each its own, while the table goes from each method to each other: none of them fails, and at
/// the end each row is as who wrote it says.
fn threads(format: IndexFormat, small_partitions: Option<(u16, u64)>, rounds: usize) {
    const WRITERS: u64 = 4;
    const EACH: u64 = 400;
    let form = Form { format, small_partitions, background_threads: 2, memory_bytes: 6 << 20, ..Form::default() };
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let world = open(&storage, form, OpenMode::Create);
    let (done, commits, running) = (AtomicBool::new(false), AtomicU64::new(0), AtomicUsize::new(WRITERS as usize));
    let mut total = Met::default();
    let expected: Rows = std::thread::scope(|scope| {
        struct Ends<'a>(&'a AtomicUsize, &'a AtomicBool);
        impl Drop for Ends<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Release);
                self.1.store(true, Ordering::Relaxed);
            }
        }
        let writer = |thread: u64| {
            let _ends = Ends(&running, &done);
            let mut random = Random(thread + 7);
            let mut own = Rows::new();
            while !done.load(Ordering::Relaxed) {
                let mut t = world.begin(ReadCommitted);
                let (mut next, mut failed) = (own.clone(), false);
                for _ in 0..1 + random.below(12) {
                    let number = (random.below(EACH) * WRITERS + thread) as i64;
                    // Replaced while the statement looked for its row: it is looked up again.
                    let result = loop {
                        let state = random.0;
                        match one_of_own(&mut t, number, &mut random) {
                            Err(Error::Stale { .. }) => random.0 = state,
                            result => break result,
                        }
                    };
                    match result {
                        Ok(Some(row)) => drop(next.insert(number, row)),
                        Ok(None) => drop(next.remove(&number)),
                        result => {
                            assert!(matches!(result, Err(Error::Lock(LockError::Deadlock { .. }))), "{result:?}");
                            failed = true;
                            break;
                        }
                    }
                }
                if failed || random.below(5) == 0 {
                    t.rollback().unwrap();
                    assert!(!failed, "nobody else has these rows");
                } else {
                    t.commit().unwrap();
                    own = next;
                }
                commits.fetch_add(1, Ordering::Relaxed);
            }
            own
        };
        let handles: Vec<_> = (0..WRITERS).map(|thread| scope.spawn(move || writer(thread))).collect();
        let _end = Ends(&running, &done);
        for round in 0..rounds {
            let before = commits.load(Ordering::Relaxed);
            while commits.load(Ordering::Relaxed) < before + 40 && running.load(Ordering::Acquire) == WRITERS as usize {
                std::thread::yield_now();
            }
            let mut change = world.database.change();
            let method = Method::ALL[(round + round / 5) % 5];
            let page_bytes = if small_partitions.is_some() { 2048 } else { [2048, 8192, 4096][round % 3] };
            let mut build = begin(&mut change, &world, method, page_bytes).unwrap();
            fill(&mut build).unwrap();
            let counts = change.finish_table(&mut build, Some(Duration::from_secs(600)), &Silent).unwrap();
            change.commit().unwrap();
            drop(build);
            total = Met {
                rebuilt: total.rebuilt + 1,
                noted: total.noted + counts.noted,
                at_once: total.at_once + counts.at_once,
                waited: total.waited + counts.drains - 1,
                ..total
            };
        }
        done.store(true, Ordering::Relaxed);
        handles.into_iter().flat_map(|handle| handle.join().unwrap()).collect()
    });
    println!("{format:?}: {total:?}; {} transactions, {} rows", commits.into_inner(), expected.len());
    assert!(total.noted > 0);
    let world = renewed(world);
    assert!(world.check() == expected);
    drop(world);
    let world = open(&storage, form, OpenMode::Write);
    assert!(world.check() == expected);
}

/// Changes a row that nobody else changes; what it is then.
fn one_of_own(t: &mut Transaction<'_>, number: i64, random: &mut Random) -> Result<Option<(i64, String)>> {
    let (table, by_number) = of_now(t)?;
    let (value, how) = (random.below(50) as i64, random.below(8));
    let words = [3, 30, 200, 700][random.below(4) as usize];
    let text = random.text(words);
    let Some(rid) = t.find(&table, &by_number, &[ValueRef::Int(number)])?.first().copied() else {
        t.insert(&table, &[ValueRef::Int(number), ValueRef::Int(value), ValueRef::Text(&text)])?;
        return Ok(Some((value, text)));
    };
    if how < 2 {
        assert!(t.delete(&table, rid)?);
        return Ok(None);
    }
    let (_, (earlier, earlier_text)) = crate::world::parts(&t.row(&table, rid)?.unwrap());
    if how == 2 {
        assert!(t.update(&table, rid, &[(2, ValueRef::Text(&text))])?);
        return Ok(Some((earlier, text)));
    }
    if how < 5 {
        assert!(t.update(&table, rid, &[(1, ValueRef::Int(value))])?);
        return Ok(Some((value, earlier_text)));
    }
    assert!(t.update(&table, rid, &[(1, ValueRef::Int(value)), (2, ValueRef::Text(&text))])?);
    Ok(Some((value, text)))
}

#[test]
fn from_each_method_to_each_other_beside_threads() {
    threads(IndexFormat::Prefix, None, 25);
}

#[test]
fn beside_threads_in_many_partitions() {
    threads(IndexFormat::Fold, Some((40, 40)), 10);
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

fn to(method: Method) -> ReorgOptions {
    ReorgOptions { method: Some(Setting::Given(method)), ..ReorgOptions::default() }
}

/// Who has changed something and does not end is waited for, in short turns: others go on, and nothing has happened when it is given up.
#[test]
fn a_transaction_that_does_not_end_keeps_the_table_from_being_replaced() {
    let world = World::new();
    world.fill((0..500).map(|number| (number, number)));
    let mut open_one = world.begin(ReadCommitted);
    world.set(&mut open_one, 1, 7).unwrap();
    let (is_over, commits) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let mut t = world.begin(ReadCommitted);
                world.set(&mut t, 2, 9).unwrap();
                t.commit().unwrap();
                commits.fetch_add(1, Ordering::Relaxed);
            }
        });
        let options = ReorgOptions { patience: Some(Duration::from_millis(900)), ..to(Method::Row) };
        let began = Instant::now();
        let failed = reorg(&world.database, "t", &options, &Silent);
        assert!(began.elapsed() >= Duration::from_millis(900), "whoever else ends meanwhile does not shorten it");
        assert!(matches!(failed, Err(pagefold_utility::Error::Engine(Error::Lock(LockError::Timeout { .. })))), "{failed:?}");
        let failed = reorg(&world.database, "value", &ReorgOptions { method: None, ..options }, &Silent);
        assert!(matches!(failed, Err(pagefold_utility::Error::Engine(Error::Lock(LockError::Timeout { .. })))), "{failed:?}");
        let before = commits.load(Ordering::Relaxed);
        while commits.load(Ordering::Relaxed) < before + 10 {
            std::thread::yield_now();
        }
        let stopped = reorg(&world.database, "t", &to(Method::Row), &Deadline(AtomicU64::new(2)));
        assert!(matches!(stopped, Err(pagefold_utility::Error::Interrupted)), "{stopped:?}");
        is_over.store(true, Ordering::Relaxed);
    });
    open_one.commit().unwrap();
    assert_eq!(world.check().len(), 500);
    assert_eq!(reorg(&world.database, "t", &to(Method::Row), &Silent).unwrap().rows, 500);
    let world = renewed(world);
    assert_eq!((world.table.attributes().method, world.check()[&1].0), (Method::Row, 7));
}

/// Two transactions that wait for each other by way of the one who wants the table: that one gives up, and asks again.
#[test]
fn who_writes_a_table_anew_is_the_victim_of_its_deadlocks() {
    let world = World::new();
    world.fill((0..50).map(|number| (number, number)));
    let mut change = world.database.change();
    change.create_table(TableAttributes { name: "u".into(), ..world.table.attributes_now() }).unwrap();
    change.commit().unwrap();
    let other = world.database.table("u").unwrap();
    let mut first = world.begin(ReadCommitted);
    world.set(&mut first, 1, 7).unwrap();
    let mut second = world.begin(ReadCommitted);
    let rid = second.insert(&other, &[ValueRef::Int(1), ValueRef::Int(1), ValueRef::Text("")]).unwrap();
    std::thread::scope(|scope| {
        let anew = scope.spawn(|| {
            let options = ReorgOptions { patience: Some(Duration::from_secs(600)), ..to(Method::Row) };
            reorg(&world.database, "t", &options, &Silent)
        });
        world.until_waiting(1);
        let waits = scope.spawn(move || {
            // Behind who wants the table.
            let table = second.table("t").unwrap();
            let (by_number, mut tries) = (second.index("number").unwrap(), 0);
            let rid = second.find(&table, &by_number, &[ValueRef::Int(2)]).unwrap()[0];
            while second.update(&table, rid, &[(1, ValueRef::Int(8))]).is_err() {
                tries += 1;
                assert!(tries < 2);
            }
            second.commit()
        });
        // And behind the second one, whichever of both comes first.
        let table = first.table("u").unwrap();
        let locked = first.lock(&table, rid);
        assert!(locked.is_ok(), "{locked:?}");
        waits.join().unwrap().unwrap();
        first.commit().unwrap();
        anew.join().unwrap().unwrap();
    });
    let rows = renewed(world).check();
    assert_eq!((rows[&1].0, rows[&2].0), (7, 8));
}

#[test]
fn what_is_stopped_or_finds_no_room_leaves_nothing() {
    let storage = FaultStorage::new(FaultOptions::default());
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let mut world = open(&shared, Form::default(), OpenMode::Create);
    world.fill((0..3_000).map(|number| (number, number % 100)));
    (0..2).for_each(|_| world.database.checkpoint().unwrap());
    let files = || storage.list(Path::new("db/data")).unwrap().len();
    let before = files();
    let (mut failed, mut done) = (0, 0);
    for (round, room) in (0..60u64).map(|n| (n * 16) << 10).enumerate() {
        storage.set_capacity(Some(storage.taken_bytes() + room));
        let mut change = world.database.change();
        let method = Method::ALL[round % 5];
        let result = begin(&mut change, &world, method, 4096).and_then(|mut build| {
            fill(&mut build)?;
            change.define_table(&mut build, &Silent)?;
            // Somebody changes rows meanwhile, and takes it back, for which there is always room.
            let mut t = world.begin(ReadCommitted);
            let wrote = world.set(&mut t, 5, 1);
            t.rollback().unwrap();
            wrote?;
            change.finish_table(&mut build, Some(Duration::ZERO), &Silent)
        });
        match result.and_then(|_| change.commit()) {
            Ok(()) => done += 1,
            Err(error) => {
                assert!(error.is_no_room(), "{error}");
                failed += 1;
            }
        }
        storage.set_capacity(None);
        world = renewed(world);
        (0..2).for_each(|_| world.database.checkpoint().unwrap());
        assert_eq!(files(), before, "with room for {room} bytes");
        assert_eq!(world.check().len(), 3_000);
    }
    assert!(failed > 2 && done > 2, "{failed} failed, {done} done");
}

/// What is noted finds no place: the table is not replaced, writers do not fail.
#[test]
fn writers_go_on_when_notes_of_their_rows_find_no_room() {
    let storage = FaultStorage::new(FaultOptions::default());
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let world = open(&shared, Form::default(), OpenMode::Create);
    world.fill((0..2_000).map(|number| (number, number)));
    let mut change = world.database.change();
    let mut build = begin(&mut change, &world, Method::Row, 4096).unwrap();
    fill(&mut build).unwrap();
    let trigger = Trigger { path_contains: "table-".into(), repeat: Repeat::Forever, ..Trigger::default() };
    storage.inject(trigger, Fault::Error(Failure::NoSpace));
    for round in 1..20 {
        let mut t = world.begin(ReadCommitted);
        for number in 0..2_000 {
            assert!(world.set(&mut t, number, number + round).unwrap());
        }
        t.commit().unwrap();
    }
    let failed = change.finish_table(&mut build, Some(Duration::ZERO), &Silent);
    assert!(failed.unwrap_err().is_no_room());
    drop((build, change));
    assert_eq!(world.check().len(), 2_000);
}

/// Rows that change while the table is written are settled by who writes it; those that change afterwards, by who changes them.
#[test]
fn rows_are_settled_beside_writers() {
    let world = World::new();
    world.fill((0..2_000).map(|number| (number, number)));
    let mut change = world.database.change();
    let mut build = begin(&mut change, &world, Method::Page, 8192).unwrap();
    assert_eq!(fill(&mut build).unwrap(), 2_000);
    let mut t = world.begin(ReadCommitted);
    for number in 0..2_000 {
        assert!(world.set(&mut t, number, number + 1).unwrap());
    }
    t.commit().unwrap();
    assert_eq!(build.noted(), 2_000);
    change.define_table(&mut build, &Silent).unwrap();
    build.settle(&Silent).unwrap();
    assert_eq!((build.noted(), build.counts().noted, build.counts().at_once), (0, 2_000, 0));
    let mut t = world.begin(ReadCommitted);
    for number in 0..2_000 {
        assert!(world.set(&mut t, number, number + 2).unwrap());
    }
    // Taken back, it is settled again.
    let savepoint = t.savepoint();
    world.insert(&mut t, 3_000, 1, "").unwrap();
    t.roll_back_to(savepoint).unwrap();
    t.commit().unwrap();
    assert_eq!((build.noted(), build.counts().at_once), (0, 2_002));
    let counts = change.finish_table(&mut build, Some(Duration::ZERO), &Silent).unwrap();
    assert_eq!((counts.noted, counts.at_once, counts.drains), (2_000, 2_002, 1), "{counts:?}");
    change.commit().unwrap();
    drop(build);
    let rows = renewed(world).check();
    assert!(rows.len() == 2_000 && rows.iter().all(|(number, row)| row.0 == number + 2));
}

/// Long texts go, come and change between the look at their page and the look at them.
#[test]
fn long_values_change_while_they_are_read() {
    let text = |number: i64, round: u64| format!("{round} of {number} {}", Random(number as u64 + round).text(900));
    for method in Method::ALL {
        let world = World::with(Form { method, ..Form::default() });
        let mut t = world.begin(ReadCommitted);
        for number in 0..40 {
            world.insert(&mut t, number, number, &text(number, 0)).unwrap();
        }
        t.commit().unwrap();
        let mut taken_back = world.begin(ReadCommitted);
        for number in 40..80 {
            world.insert(&mut taken_back, number, number, &text(number, 0)).unwrap();
        }
        let mut change = world.database.change();
        // Of its rows it is known at once where they have come to.
        let mut build = begin(&mut change, &world, Method::None, 4096).unwrap();
        let mut running = None;
        fill_and(&mut build, 2, || {
            let mut t = world.begin(ReadCommitted);
            for number in 0..20 {
                let rid = world.find(&mut t, number).unwrap();
                match number % 2 {
                    0 => assert!(t.delete(&world.table, rid).unwrap()),
                    _ => assert!(t.update(&world.table, rid, &[(2, ValueRef::Text(&text(number, 1)))]).unwrap()),
                }
            }
            t.commit().unwrap();
            taken_back.rollback().unwrap();
            world.database.remove_leftovers().unwrap();
            // Others take the pages.
            let mut t = world.begin(ReadCommitted);
            for number in 100..130 {
                world.insert(&mut t, number, number, &text(number, 2)).unwrap();
            }
            t.commit().unwrap();
            let mut t = world.begin(ReadCommitted);
            for number in 130..140 {
                world.insert(&mut t, number, number, &text(number, 2)).unwrap();
            }
            running = Some(t);
        })
        .unwrap();
        change.define_table(&mut build, &Silent).unwrap();
        running.unwrap().rollback().unwrap();
        let counts = change.finish_table(&mut build, Some(Duration::ZERO), &Silent).unwrap();
        assert!(counts.again > 0, "{method}: {counts:?}");
        let before = committed(&world);
        change.commit().unwrap();
        drop(build);
        let rows = renewed(world).check();
        assert!(rows == before && rows.len() == 60, "{method}: {} rows", rows.len());
        for (number, (value, found)) in rows {
            let round = if number >= 100 { 2 } else { u64::from(number < 20) };
            assert!(value == number && found == text(number, round), "{method}: row {number}");
        }
    }
}

/// A row that the new form cannot have: an error that names it, if it is committed; none, if it is taken back.
#[test]
fn a_row_that_does_not_fit_is_named() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let world = open(&storage, Form { page_bytes: 16384, ..Form::default() }, OpenMode::Create);
    let mut change = world.database.change();
    let text = |n| if n == 0 { DataType::BigInt } else { DataType::Varchar(None) };
    let columns = (0..400).map(|n| Column::new(format!("c{n}"), text(n), true)).collect();
    let attributes =
        TableAttributes { primary_key: vec![0], ..TableAttributes::new("wide", Schema::new(columns).unwrap()).with_page_bytes(16384) };
    let table = change.create_table(attributes).unwrap();
    change.commit().unwrap();
    let row = |number: i64| (0..400).map(|n| if n == 0 { ValueRef::Int(number) } else { ValueRef::Text("eight of") }).collect::<Vec<_>>();
    let mut t = world.begin(ReadCommitted);
    t.insert(&table, &row(7)).unwrap();
    let options = ReorgOptions { page_bytes: Some(2048), patience: Some(Duration::ZERO), ..ReorgOptions::default() };
    let waits = reorg(&world.database, "wide", &options, &Silent);
    assert!(matches!(waits, Err(pagefold_utility::Error::Engine(Error::Lock(_)))), "{waits:?}");
    t.commit().unwrap();
    let refused = reorg(&world.database, "wide", &options, &Silent).unwrap_err().to_string();
    assert!(refused.contains("primary key (7)") && refused.contains("wide"), "{refused}");
    assert_eq!(world.database.table("wide").unwrap().row_count(), 1);
    let options = ReorgOptions { page_bytes: Some(8192), ..options };
    assert_eq!(reorg(&world.database, "wide", &options, &Silent).unwrap().rows, 1);
}

/// The old index has lost an entry, so that a key came a second time: the new one does not pass for one that has each key once.
#[test]
fn a_key_that_two_rows_have_is_found() {
    let world = World::new();
    world.fill((0..300).map(|number| (number, number)));
    let mut key = Vec::new();
    world.by_number.key_layout().encode(&[ValueRef::Int(7)], &mut key).unwrap();
    let rid = world.find(&mut world.begin(ReadCommitted), 7).unwrap();
    assert!(world.by_number.tree().delete(&key, rid).unwrap());
    world.fill([(7, 1)]);
    let failed = reorg(&world.database, "t", &to(Method::Page), &Silent);
    assert!(
        matches!(&failed, Err(pagefold_utility::Error::Engine(Error::DuplicateKey { index, key })) if index == "number" && key.contains('7')),
        "{failed:?}"
    );
}

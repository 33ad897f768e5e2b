//! Threads with random transactions on numbered registers: a register is a row of the table of the living or of that of the dead, its version and writer in it, with a value of up to several pages.
//!
//! To delete a row is to put one with the next version into the other table. So in every snapshot each register is there exactly once.

use crate::history::{Committed, INITIAL, Level, check};
use crate::number;
use crate::random::Random;
use crate::read::{Question, ask};
use crate::shape::{ColumnShape, IndexShape, Shape, TableShape, World, dictionary, open};
use crate::watch::Watch;
use pagefold_engine::btree::Direction;
use pagefold_engine::database::{Durability, Isolation, OpenMode, ScanRequest, Transaction, TransactionOptions};
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::table_space::{LIVE_MAX, Method};
use pagefold_engine::{Error, Result, Silent};
use pagefold_io::MemoryStorage;
use pagefold_types::{DataType, KeyRange, Rid, Value, ValueRef};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

const THREADS: usize = 4;
const REGISTERS: usize = 8;
/// Committed transactions of a test in an ordinary run.
const COMMITS: u64 = 800;

/// Indexes of a table that are built beside the threads.
const BUILT: usize = 4;

const LIVING: usize = 0;
const DEAD: usize = 1;

fn shape(method: Method, format: IndexFormat) -> Shape {
    let column = |data_type| ColumnShape { data_type, nullable: false };
    let columns = vec![column(DataType::Integer), column(DataType::BigInt), column(DataType::BigInt), column(DataType::Varchar(None))];
    let page_bytes = if format == IndexFormat::Fold { 8192 } else { 2048 };
    let index = |columns, unique| IndexShape { columns, unique, format, page_bytes };
    let table = |dictionary| TableShape {
        columns: columns.clone(),
        indexes: vec![index(vec![(0, false)], true), index(vec![(2, true), (1, false)], false)],
        method,
        page_bytes: 2048,
        maxrows: 4096,
        small_partitions: false,
        primary_key: true,
        dictionary,
    };
    Shape { tables: vec![table(Some(1)), table(None)], memory_bytes: 6 * (256 << 10), checkpoint_bytes: 64 << 10 }
}

/// The value of a version: it follows from who wrote it, and may take several pages.
fn payload(writer: u64, version: u64) -> String {
    let mut random = Random(writer << 20 | version);
    let length = match random.below(8) {
        0 => 0,
        1..5 => random.below(40),
        5 | 6 => random.below(4_000),
        _ => random.below(14_000),
    };
    (0..length).map(|_| random.of(&['a', 'b', 'é', ' '])).collect()
}

/// Where a register is, and what it holds.
struct Found {
    table: usize,
    rid: Rid,
    version: u64,
    writer: u64,
}

fn parts(row: &[Value]) -> (usize, u64, u64) {
    let [Value::Int(register), Value::Int(version), Value::Int(writer), Value::Text(text)] = row else { panic!("{row:?}") };
    assert!(*text == payload(*writer as u64, *version as u64), "the value of version {version} of {register} by {writer}");
    (*register as usize, *version as u64, *writer as u64)
}

struct Client<'w> {
    world: &'w World,
    random: Random,
    isolation: Isolation,
}

fn begin(world: &World, isolation: Isolation) -> Transaction<'_> {
    // One who waits for ever is for the watch to find.
    let lock_timeout = Duration::from_secs(600);
    world.database.begin(TransactionOptions { isolation, durability: Durability::Relaxed, lock_timeout, ..TransactionOptions::default() })
}

fn find(world: &World, t: &mut Transaction<'_>, register: usize) -> Result<Found> {
    let mut found = Vec::new();
    for table in [LIVING, DEAD] {
        for rid in t.find(&world.tables[table], &world.indexes[table][0], &[ValueRef::Int(register as i64)])? {
            let row = t.row(&world.tables[table], rid)?.unwrap_or_else(|| panic!("{register} at {rid}: found, and not there"));
            let (_, version, writer) = parts(&row);
            found.push(Found { table, rid, version, writer });
        }
    }
    assert!(found.len() == 1, "register {register} is there {} times", found.len());
    Ok(found.remove(0))
}

/// All registers, by a scan or by an index.
fn find_all(world: &World, t: &mut Transaction<'_>, how: u64) -> Result<Vec<(usize, u64, u64)>> {
    let mut found = Vec::new();
    for table in [LIVING, DEAD] {
        let (of, indexes, request) = (&world.tables[table], &world.indexes[table], ScanRequest::default());
        let all = KeyRange { start: Vec::new(), end: None };
        // One that was built beside the threads, as soon as the snapshot has it.
        let beside = if how == 3 { t.index(&format!("beside_{table}_0")).ok() } else { None };
        let view = t.read_view()?;
        let scan = match (how, &beside) {
            (0, _) => view.scan(of, &request)?,
            (1, _) => view.range(of, &indexes[0], all, Direction::Backward, &request)?,
            (_, Some(beside)) => view.range(of, beside, all, Direction::Forward, &request)?,
            (_, None) => view.range(of, &indexes[1], all, Direction::Forward, &request)?,
        };
        for row in scan.into_rows() {
            found.push(parts(&row?.1));
        }
    }
    found.sort_unstable();
    let registers: Vec<usize> = found.iter().map(|(register, ..)| *register).collect();
    assert!(registers.iter().copied().eq(0..REGISTERS), "registers {registers:?}");
    Ok(found)
}

fn put(world: &World, t: &mut Transaction<'_>, table: usize, (register, version, writer): (usize, u64, u64)) -> Result<()> {
    let text = payload(writer, version);
    let row = [ValueRef::Int(register as i64), ValueRef::Int(version as i64), ValueRef::Int(writer as i64), ValueRef::Text(&text)];
    t.insert(&world.tables[table], &row).map(drop)
}

impl Client<'_> {
    /// A transaction; `None` when it did not commit.
    fn run(&mut self, id: u64) -> Result<Option<Committed>> {
        let (world, mut t) = (self.world, begin(self.world, self.isolation));
        let mut done = Committed { id, ..Committed::default() };
        for _ in 0..1 + self.random.below(4) {
            let register = self.random.below(REGISTERS as u64) as usize;
            let what = self.random.below(12);
            if what == 0 {
                let how = self.random.below(4);
                done.reads.extend(find_all(world, &mut t, how)?);
                continue;
            }
            let found = find(world, &mut t, register)?;
            done.reads.push((register, found.version, found.writer));
            let next = found.version + 1;
            let savepoint = (what > 8).then(|| t.savepoint());
            match what {
                1..4 => continue,
                4..10 => {
                    let text = payload(id, next);
                    let changes = [(1, ValueRef::Int(next as i64)), (2, ValueRef::Int(id as i64)), (3, ValueRef::Text(&text))];
                    assert!(t.update(&world.tables[found.table], found.rid, &changes)?, "a row of the snapshot is not there");
                }
                _ => {
                    assert!(t.delete(&world.tables[found.table], found.rid)?, "a row of the snapshot is not there");
                    put(world, &mut t, LIVING + DEAD - found.table, (register, next, id))?;
                }
            }
            match savepoint {
                Some(savepoint) if self.random.one_in(2) => t.roll_back_to(savepoint)?,
                _ => done.writes.push((register, next)),
            }
        }
        if self.random.one_in(8) {
            t.rollback()?;
            return Ok(None);
        }
        t.commit()?;
        Ok(Some(done))
    }
}

/// Builds an index beside the threads: on the register alone, or on who wrote it last.
fn build_beside(world: &World, table: usize, number: usize) {
    let (columns, unique) = match number % 2 {
        0 => (vec![(0, pagefold_types::Direction::Descending)], true),
        _ => (vec![(2, pagefold_types::Direction::Ascending), (0, pagefold_types::Direction::Ascending)], false),
    };
    let format = IndexFormat::ALL[number % 3];
    let attributes = IndexAttributes::new(format!("beside_{table}_{number}"), columns, unique);
    let attributes = attributes.with_format(format, if format == IndexFormat::Fold { 8192 } else { 2048 });
    let mut change = world.database.change();
    let mut build = change.begin_index(world.tables[table].name(), attributes).unwrap();
    let mut entries = Vec::new();
    build
        .scan(|key, rid| {
            entries.push((key.to_vec(), rid));
            Ok::<_, Error>(())
        })
        .unwrap();
    entries.sort_unstable();
    let mut filler = build.fill(entries.iter().map(|(_, rid)| rid.slot()).max().unwrap_or(0));
    entries.iter().for_each(|(key, rid)| filler.push(key, *rid).unwrap());
    if !entries.is_empty() {
        filler.finish().unwrap();
    }
    // One who waits for ever is for the watch to find.
    change.finish_index(&mut build, Duration::from_secs(600), &Silent).unwrap();
    change.commit().unwrap();
}

/// A thread's histories have ended, however it ends.
struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

fn histories(method: Method, format: IndexFormat, isolation: Isolation, level: Level) {
    let storage = MemoryStorage::new();
    let shape = shape(method, format);
    let world = open(&storage, &shape, OpenMode::Create, 1).unwrap();
    let mut t = begin(&world, isolation);
    for register in 0..REGISTERS {
        put(&world, &mut t, LIVING, (register, 0, INITIAL)).unwrap();
    }
    t.commit().unwrap();
    let wanted = number("PAGEFOLD_MODEL_COMMITS").unwrap_or(COMMITS);
    let (next, commits, others, writers) = (AtomicU64::new(1), AtomicU64::new(0), AtomicU64::new(0), AtomicUsize::new(THREADS));
    let doing: Arc<Mutex<BTreeMap<usize, u64>>> = Arc::default();
    let shown = Arc::clone(&doing);
    let watch = Watch::new(move || format!("{method}, {format}, {isolation:?}: threads and their transactions: {:?}", shown.lock()));
    let clients: Vec<Vec<Committed>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (world, next, commits, others, writers, doing, watch) = (&world, &next, &commits, &others, &writers, &doing, &watch);
                scope.spawn(move || {
                    let _running = Running(writers);
                    let mut client = Client { world, random: Random(thread as u64 + 40), isolation };
                    let mut history = Vec::new();
                    while commits.load(Ordering::Relaxed) < wanted {
                        let id = next.fetch_add(1, Ordering::Relaxed);
                        doing.lock().insert(thread, id);
                        match client.run(id) {
                            Ok(Some(done)) => {
                                commits.fetch_add(1, Ordering::Relaxed);
                                history.push(done);
                            }
                            Ok(None) => {}
                            Err(Error::Lock(_) | Error::Conflict { .. } | Error::Serialization(_)) => {
                                others.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(error) => panic!("transaction {id}: {error}"),
                        }
                        watch.progress();
                    }
                    history
                })
            })
            .collect();
        let (mut random, mut built) = (Random(7), [0; 2]);
        while writers.load(Ordering::Acquire) > 0 && !threads.iter().any(std::thread::ScopedJoinHandle::is_finished) {
            let number = random.below(2) as usize;
            let table = &world.tables[number];
            match random.below(5) {
                3 | 4 if built[number] < BUILT => {
                    build_beside(&world, number, built[number]);
                    built[number] += 1;
                }
                0 => world.database.checkpoint().unwrap(),
                1 => world.database.remove_leftovers().unwrap(),
                _ if method.dictionary_type().is_some() && table.dictionary_versions().len() < LIVE_MAX => {
                    world.database.use_dictionary(table.name(), dictionary(method, random.below(4))).map(drop).unwrap();
                }
                _ => drop(world.database.renew_dictionaries(table.name()).unwrap()),
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (commits, others) = (commits.into_inner(), others.into_inner());
    println!("{method}, {format}, {isolation:?}: {commits} committed, {others} not");
    assert!(others > 0, "no two transactions have met");
    // What is left agrees with who wrote last.
    let mut t = begin(&world, Isolation::RepeatableRead);
    let left = find_all(&world, &mut t, 0).unwrap();
    t.commit().unwrap();
    let reader = Committed { id: u64::MAX, reads: left.clone(), writes: Vec::new() };
    let mut all = clients;
    for (register, version, _) in &left {
        let newest = all.iter().flatten().flat_map(|t| &t.writes).filter(|(of, _)| of == register).map(|(_, version)| *version).max();
        assert_eq!(newest.unwrap_or(0), *version, "the version of {register}");
    }
    all.push(vec![reader]);
    if let Err(error) = check(&all, level) {
        panic!("{method}, {format}, {isolation:?}: {error}");
    }
    close_and_compare(world, &storage, &shape, &left);
}

/// The same after it was opened again, by every way to read.
fn close_and_compare(world: World, storage: &MemoryStorage, shape: &Shape, left: &[(usize, u64, u64)]) {
    world.database.close().unwrap();
    drop((world.tables, world.indexes));
    let report = pagefold_utility::check_files(storage, std::path::Path::new("db"), &Silent).unwrap();
    assert!(report.is_clean(), "{}", report.to_text(usize::MAX));
    let world = open(storage, shape, OpenMode::Write, 1).unwrap();
    let mut t = begin(&world, Isolation::RepeatableRead);
    assert_eq!(find_all(&world, &mut t, 1).unwrap(), left);
    for table in [LIVING, DEAD] {
        let scan = t.read_view().unwrap().scan(&world.tables[table], &ScanRequest::default()).unwrap();
        let rows = scan.into_rows().map(|row| row.map(|(rid, row)| (rid, Arc::new(row)))).collect::<Result<_>>().unwrap();
        ask(&world, &mut t, &shape.tables[table], table, &Question::Everything, &rows).unwrap();
    }
}

#[test]
fn of_rows_as_they_are() {
    histories(Method::None, IndexFormat::Plain, Isolation::RepeatableRead, Level::Snapshot);
    histories(Method::None, IndexFormat::Fold, Isolation::Serializable, Level::Serializable);
}

#[test]
fn of_compact_rows() {
    histories(Method::Row, IndexFormat::Prefix, Isolation::RepeatableRead, Level::Snapshot);
    histories(Method::Row, IndexFormat::Plain, Isolation::Serializable, Level::Serializable);
}

#[test]
fn of_rows_by_column() {
    histories(Method::Page, IndexFormat::Fold, Isolation::RepeatableRead, Level::Snapshot);
    histories(Method::Page, IndexFormat::Prefix, Isolation::Serializable, Level::Serializable);
}

#[test]
fn of_fixed_codes() {
    histories(Method::Fixed, IndexFormat::Plain, Isolation::RepeatableRead, Level::Snapshot);
    histories(Method::Fixed, IndexFormat::Fold, Isolation::Serializable, Level::Serializable);
}

#[test]
fn of_huffman_codes() {
    histories(Method::Huffman, IndexFormat::Prefix, Isolation::RepeatableRead, Level::Snapshot);
    histories(Method::Huffman, IndexFormat::Fold, Isolation::Serializable, Level::Serializable);
}

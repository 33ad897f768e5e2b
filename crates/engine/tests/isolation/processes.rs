//! Readers of other processes: each sees what was committed when it was opened, for as long as it is open, whatever the writer does.

use crate::world::{Form, Random, Rows, World, open, parts};
use pagefold_engine::database::Isolation::ReadCommitted;
use pagefold_engine::database::{Database, OpenMode, ScanRequest, Settings};
use pagefold_engine::index::IndexFormat;
use pagefold_engine::readers::Snapshot;
use pagefold_engine::table_space::Method;
use pagefold_engine::{Error, Result};
use pagefold_io::{
    CallKind, CrashPolicy, Failure, Fault, FaultOptions, FaultStorage, MemoryStorage, OsStorage, Repeat, SimulatedClock, Storage, Trigger,
};
use pagefold_types::ValueRef;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Changes random rows in a transaction.
fn change(world: &World, random: &mut Random, count: u64, keys: u64) -> Result<()> {
    let mut t = world.begin(ReadCommitted);
    for _ in 0..count {
        let number = random.below(keys) as i64;
        let value = random.below(1000) as i64;
        let words = if random.below(20) == 0 { 300 } else { 30 };
        let text = random.text(words);
        match t.find(&world.table, &world.by_number, &[ValueRef::Int(number)])?.first() {
            Some(&rid) if random.below(4) == 0 => drop(t.delete(&world.table, rid)?),
            Some(&rid) => drop(t.update(&world.table, rid, &[(1, ValueRef::Int(value)), (2, ValueRef::Text(&text))])?),
            None => drop(world.insert(&mut t, number, value, &text)?),
        }
    }
    if random.below(5) == 0 { t.rollback() } else { t.commit() }
}

/// Pages of running transactions, too, go to their places.
fn write_pages(world: &World) -> Result<()> {
    let indexes = [&world.by_number, &world.by_value].map(|index| index.data_set());
    let tables = world.table.data_sets();
    tables.chain(indexes).filter(|d| d.is_defined()).try_for_each(|d| world.database.write_dirty_pages(d))
}

/// Everything by scan; fails where the others panic.
fn scan(world: &World) -> Result<Rows> {
    let scan = world.database.read_view().scan(&world.table, &ScanRequest::default())?;
    scan.into_rows().map(|row| row.map(|(_, row)| parts(&row))).collect()
}

fn pfr_files(storage: &dyn Storage) -> usize {
    let files = storage.list(Path::new("db/readers")).unwrap();
    files.iter().filter(|path| path.extension().is_some_and(|e| e == "pfr")).count()
}

const FORMS: [(Method, IndexFormat); 3] =
    [(Method::None, IndexFormat::Plain), (Method::Fixed, IndexFormat::Fold), (Method::None, IndexFormat::Prefix)];

/// A reader, what it must see, and how often it has been looked at.
type Reader = (World, Rows);

/// Every kind of thing a writer does, with readers that come and go.
fn writer_and_readers(storage: &Arc<dyn Storage>, form: Form, seed: u64, rounds: u64) {
    let mut random = Random(seed);
    let mut writer = open(storage, form, OpenMode::Create);
    let mut readers: Vec<Reader> = Vec::new();
    let small = Form { memory_bytes: 2 << 20, ..form };
    for round in 0..rounds {
        for _ in 0..random.below(4) {
            let count = 1 + random.below(60);
            change(&writer, &mut random, count, 1500).unwrap();
        }
        // One that is running while readers are opened and pages are written.
        let mut running = writer.begin(ReadCommitted);
        for number in 0..random.below(30) as i64 {
            writer.insert(&mut running, 100_000 + number, number, "not committed").unwrap();
        }
        if random.below(2) == 0 {
            write_pages(&writer).unwrap();
        }
        if random.below(4) == 0 {
            writer.database.checkpoint().unwrap();
        }
        if readers.len() < 4 {
            let expected = writer.committed();
            let reader = open(storage, small, OpenMode::Read);
            assert_eq!(reader.committed(), expected, "seed {seed}, round {round}: a new reader");
            readers.push((reader, expected));
        }
        running.rollback().unwrap();
        write_pages(&writer).unwrap();
        match random.below(12) {
            0 => writer.database.checkpoint().unwrap(),
            1 => {
                // As LOAD with --replace does.
                drop(writer);
                writer = open(storage, form, OpenMode::Write);
                let mut change = writer.database.change();
                change
                    .fork_table("t")
                    .and_then(|table| change.fork_index("number", &table).and(change.fork_index("value", &table)))
                    .unwrap();
                change.commit().unwrap();
                let (table, by_number, by_value) = (
                    writer.database.table("t").unwrap(),
                    writer.database.index("number").unwrap(),
                    writer.database.index("value").unwrap(),
                );
                writer = World { table, by_number, by_value, ..writer };
            }
            2 => {
                drop(writer);
                writer = open(storage, form, OpenMode::Write);
            }
            _ => {}
        }
        let at = random.below(readers.len() as u64) as usize;
        let (reader, expected) = &readers[at];
        assert_eq!(&reader.check(), expected, "seed {seed}, round {round}: a reader sees something else");
        if random.below(3) == 0 {
            drop(readers.swap_remove(at));
        }
        assert_eq!(pfr_files(storage.as_ref()), readers.len(), "a reader that goes takes its file along");
    }
    for (reader, expected) in &readers {
        assert_eq!(&reader.check(), expected, "seed {seed}: at the end");
    }
    assert!(
        matches!(readers.last().map(|(r, _)| change(r, &mut random, 5, 10)), None | Some(Err(Error::ReadOnly(_)))),
        "a reader changes nothing"
    );
}

#[test]
fn readers_see_the_moment_at_which_they_were_opened_for_ever() {
    for (method, format) in FORMS {
        for seed in 1..=2 {
            let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
            writer_and_readers(&storage, Form { method, format, ..Form::default() }, seed, 40);
        }
    }
}

#[test]
fn the_same_on_the_file_system() {
    let here = tempfile::tempdir().unwrap();
    let storage: Arc<dyn Storage> = Arc::new(Below(here.path().to_owned()));
    writer_and_readers(&storage, Form { background_threads: 2, ..Form::default() }, 3, 25);
}

/// The operating system's files below a directory.
#[derive(Debug)]
struct Below(std::path::PathBuf);

impl Storage for Below {
    fn open(&self, path: &Path, options: &pagefold_io::OpenOptions) -> std::io::Result<Arc<dyn pagefold_io::File>> {
        OsStorage.open(&self.0.join(path), options)
    }
    fn remove(&self, path: &Path) -> std::io::Result<()> {
        OsStorage.remove(&self.0.join(path))
    }
    fn rename(&self, from: &Path, to: &Path) -> std::io::Result<()> {
        OsStorage.rename(&self.0.join(from), &self.0.join(to))
    }
    fn exists(&self, path: &Path) -> std::io::Result<bool> {
        OsStorage.exists(&self.0.join(path))
    }
    fn list(&self, path: &Path) -> std::io::Result<Vec<std::path::PathBuf>> {
        let listed = OsStorage.list(&self.0.join(path))?;
        Ok(listed.iter().map(|path| path.strip_prefix(&self.0).unwrap().to_owned()).collect())
    }
    fn create_directory(&self, path: &Path) -> std::io::Result<()> {
        OsStorage.create_directory(&self.0.join(path))
    }
    fn remove_directory(&self, path: &Path) -> std::io::Result<()> {
        OsStorage.remove_directory(&self.0.join(path))
    }
    fn sync_directory(&self, path: &Path) -> std::io::Result<()> {
        OsStorage.sync_directory(&self.0.join(path))
    }
    fn lock(&self, path: &Path) -> std::io::Result<Box<dyn pagefold_io::Lock>> {
        OsStorage.lock(&self.0.join(path))
    }
    fn lock_within(&self, path: &Path, kind: pagefold_io::LockKind, limit: Duration) -> std::io::Result<Box<dyn pagefold_io::Lock>> {
        OsStorage.lock_within(&self.0.join(path), kind, limit)
    }
}

#[test]
fn money_is_conserved_in_readers_opened_while_threads_write() {
    const ACCOUNTS: i64 = 3000;
    for background_threads in [0, 2] {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let form = Form { memory_bytes: 1 << 20, background_threads, ..Form::default() };
        let writer = open(&storage, form, OpenMode::Create);
        writer.fill((0..ACCOUNTS).map(|number| (number, 100)));
        let (stop, committed) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (writer, stop, committed) = (&writer, &stop, &committed);
                scope.spawn(move || {
                    let mut random = Random(thread);
                    while !stop.load(Ordering::Relaxed) {
                        let mut t = writer.begin(ReadCommitted);
                        let (from, to) = (random.below(ACCOUNTS as u64) as i64, random.below(ACCOUNTS as u64) as i64);
                        // The lower one first, so that nobody waits in a circle.
                        for (number, amount) in [(from.min(to), 7), (from.max(to), -7)] {
                            let rid = writer.find(&mut t, number).unwrap();
                            assert!(t.lock(&writer.table, rid).unwrap());
                            let value = writer.row(&mut t, rid).unwrap().1.0;
                            let text = random.text(20);
                            t.update(&writer.table, rid, &[(1, ValueRef::Int(value + amount)), (2, ValueRef::Text(&text))]).unwrap();
                        }
                        t.commit().unwrap();
                        if committed.fetch_add(1, Ordering::Relaxed) % 50 == 0 {
                            write_pages(writer).unwrap();
                        }
                        if random.below(300) == 0 {
                            writer.database.checkpoint().unwrap();
                        }
                    }
                });
            }
            for round in 0..12 {
                let before = committed.load(Ordering::Relaxed);
                let reader = open(&storage, Form { memory_bytes: 2 << 20, ..form }, OpenMode::Read);
                let rows = reader.check();
                assert_eq!(rows.len(), ACCOUNTS as usize);
                assert_eq!(rows.values().map(|(value, _)| value).sum::<i64>(), ACCOUNTS * 100, "round {round}");
                while committed.load(Ordering::Relaxed) < before + 60 {
                    std::thread::yield_now();
                }
                assert_eq!(reader.check(), rows, "round {round}: later");
            }
            stop.store(true, Ordering::Relaxed);
        });
        println!("{} transactions", committed.into_inner());
        writer.check();
    }
}

fn filled(storage: &Arc<dyn Storage>) -> (World, Random) {
    let world = open(storage, Form::default(), OpenMode::Create);
    let mut random = Random(9);
    world.fill((0..1500).map(|number| (number, number % 7)));
    world.database.checkpoint().unwrap();
    // Something for recovery, and pages that it does not read.
    change(&world, &mut random, 10, 1500).unwrap();
    write_pages(&world).unwrap();
    (world, random)
}

#[test]
fn the_file_of_a_reader_that_died_is_removed() {
    let living = MemoryStorage::new();
    let (writer, _) = filled(&(Arc::new(living.clone()) as Arc<dyn Storage>));
    let reader = open(&(Arc::new(living.clone()) as Arc<dyn Storage>), Form::default(), OpenMode::Read);
    // A copy has the files, but nobody who holds the locks.
    let copies = [living.snapshot(), living.snapshot()];
    drop((reader, writer));
    let [for_writer, for_reader] = copies.map(|copy| Arc::new(copy) as Arc<dyn Storage>);
    assert_eq!((pfr_files(for_writer.as_ref()), pfr_files(&living)), (1, 0));
    let writer = open(&for_writer, Form::default(), OpenMode::Write);
    change(&writer, &mut Random(1), 30, 1500).unwrap();
    write_pages(&writer).unwrap();
    writer.database.checkpoint().unwrap();
    assert_eq!(pfr_files(for_writer.as_ref()), 0, "by a writer");
    let reader = open(&for_reader, Form::default(), OpenMode::Read);
    assert_eq!(pfr_files(for_reader.as_ref()), 1, "by another reader, which has its own");
    drop(reader);
    assert_eq!(pfr_files(for_reader.as_ref()), 0);
}

/// What is written to the directory of readers fails: the writer goes on, and the reader sees what it saw, or an error.
#[test]
fn a_reader_that_cannot_be_served_gets_errors_and_the_writer_none() {
    let (mut served, mut refused) = (0, 0);
    for call in 0..12 {
        for (kind, fault) in [
            (CallKind::Write, Fault::Error(Failure::NoSpace)),
            (CallKind::Write, Fault::ShortWrite(1000, Failure::NoSpace)),
            (CallKind::Write, Fault::Error(Failure::Io)),
            (CallKind::Open, Fault::Error(Failure::Io)),
            (CallKind::Read, Fault::Error(Failure::Io)),
        ] {
            let disk = FaultStorage::new(FaultOptions::default());
            let storage: Arc<dyn Storage> = Arc::new(disk.clone());
            let (writer, mut random) = filled(&storage);
            let expected = writer.committed();
            let reader = open(&storage, Form::default(), OpenMode::Read);
            disk.inject(Trigger::kind(kind, call).on_path(".pfr"), fault);
            for _ in 0..3 {
                change(&writer, &mut random, 40, 1500).unwrap();
                write_pages(&writer).unwrap();
                writer.database.checkpoint().unwrap();
            }
            disk.clear_faults();
            match scan(&reader) {
                Ok(rows) => {
                    assert_eq!(rows, expected, "{kind:?} {call}");
                    served += 1;
                }
                Err(error) => {
                    assert!(error.to_string().contains("open the database again"), "{error}");
                    refused += 1;
                }
            }
            let now = writer.committed();
            drop(reader);
            assert_eq!(open(&storage, Form::default(), OpenMode::Read).committed(), now);
        }
    }
    println!("{served} readers served, {refused} refused");
    assert!(served > 5 && refused > 5, "{served} {refused}");
}

/// With a reader registered, an error or a crash at any call of the writer loses nothing that was committed, and the reader never sees anything else.
#[test]
fn errors_and_crashes_of_the_writer_with_a_reader_there() {
    // The states at the ends of the transactions, and whether all went well.
    let run = |plan: &dyn Fn(&FaultStorage)| {
        let disk = FaultStorage::new(FaultOptions { seed: 5, ..FaultOptions::default() });
        let storage: Arc<dyn Storage> = Arc::new(disk.clone());
        let (writer, mut random) = filled(&storage);
        let mut states = vec![writer.committed()];
        let reader = open(&storage, Form::default(), OpenMode::Read);
        let first = disk.calls();
        plan(&disk);
        let worked = (0..3).try_for_each(|_| {
            change(&writer, &mut random, 25, 1500)?;
            states.push(writer.committed());
            write_pages(&writer)?;
            writer.database.checkpoint()
        });
        let calls = disk.calls() - first;
        (disk, writer, reader, states, worked, calls)
    };
    let (_, _, _, all, worked, calls) = run(&|_| {});
    worked.unwrap();
    for at in (0..calls).step_by(7) {
        let (disk, writer, reader, states, worked, _) = run(&|disk| disk.error_at(disk.calls() + at, Failure::Io, Repeat::Once));
        disk.clear_faults();
        match scan(&reader) {
            Ok(rows) => assert_eq!(rows, states[0], "error at {at}"),
            Err(error) => assert!(error.to_string().contains("open the database again"), "{error}"),
        }
        drop((writer, reader));
        let storage: Arc<dyn Storage> = Arc::new(disk.clone());
        let found = open(&storage, Form::default(), OpenMode::Write).check();
        assert!(all[states.len() - 1..].contains(&found) && (worked.is_err() || found == all[3]), "error at {at}");
        for policy in [CrashPolicy::DropAll, CrashPolicy::KeepAll] {
            let (disk, writer, reader, states, worked, _) = run(&|disk| disk.crash_at(disk.calls() + at));
            // What follows the last control slot may fail.
            assert!(worked.is_err() || states.len() == all.len(), "crash at {at}");
            let image: Arc<dyn Storage> = Arc::new(disk.crash_image(policy));
            drop((writer, reader));
            let next = open(&image, Form::default(), OpenMode::Read).committed();
            assert!(all[states.len() - 1..].contains(&next), "crash at {at}");
            assert_eq!(open(&image, Form::default(), OpenMode::Write).check(), next, "crash at {at}: a reader and the next writer");
            assert_eq!(pfr_files(image.as_ref()), 0);
        }
    }
    println!("{calls} calls");
}

#[test]
fn a_snapshot_is_a_database_of_its_own() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let (writer, mut random) = filled(&storage);
    let expected = writer.committed();
    let snapshot = Snapshot::take(&storage, Path::new("db"), false).unwrap();
    assert!(snapshot.is_registered());
    let own = open(&snapshot.storage(), Form::default(), OpenMode::Write);
    assert_eq!(own.check(), expected);
    for _ in 0..5 {
        change(&own, &mut random, 50, 1500).unwrap();
        change(&writer, &mut random, 50, 1500).unwrap();
        write_pages(&writer).unwrap();
    }
    let (mine, others) = (own.committed(), writer.committed());
    assert!(mine != others && snapshot.scratch_bytes() > 0);
    drop(own);
    assert_eq!(open(&snapshot.storage(), Form::default(), OpenMode::Read).committed(), mine);
    assert_eq!(writer.check(), others);
}

#[test]
fn a_reader_of_a_database_that_was_closed_in_order_writes_nothing() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let world = open(&storage, Form::default(), OpenMode::Create);
    world.fill((0..1500).map(|number| (number, 1)));
    drop(world);
    let snapshot = Snapshot::take(&storage, Path::new("db"), false).unwrap();
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let reader = Database::open(snapshot.storage(), clock, Path::new("db"), OpenMode::Read, Settings::default()).unwrap();
    assert_eq!(reader.table("t").unwrap().row_count(), 1500);
    assert_eq!(snapshot.scratch_bytes(), 4096, "the header of its own file, as a reader of the snapshot");
}

#[test]
fn where_the_directory_cannot_be_written_a_reader_is_not_registered() {
    let disk = FaultStorage::new(FaultOptions::default());
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let (writer, _) = filled(&storage);
    let expected = writer.committed();
    for kind in [std::io::ErrorKind::PermissionDenied, std::io::ErrorKind::ReadOnlyFilesystem] {
        disk.inject(Trigger::default().on_path("readers").forever(), Fault::Error(Failure::Kind(kind)));
        assert!(!Snapshot::take(&storage, Path::new("db"), false).unwrap().is_registered());
        assert_eq!(open(&storage, Form::default(), OpenMode::Read).check(), expected, "it recovers in memory");
        disk.clear_faults();
    }
    assert!(Snapshot::take(&storage, Path::new("db"), false).unwrap().is_registered());
}

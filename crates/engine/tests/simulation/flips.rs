//! Each bit of each file of a database that was not closed, flipped: it is reported, it is repaired, or nobody needs it; rows never differ in silence.
//!
//! To open the database for each of millions of bits would take days. So bits are told apart by what reads them first: a page's checksum; the reader of the log; the one of the double-write file; the
//! one of the control file. Those that it reads alike are opened as a whole once, and some more of them at random; so are bits in what nobody reads.
//!
//! All bits of a megabyte: `cargo test --release -p pagefold-engine --test simulation -- every_bit --ignored --nocapture`.

use crate::images::try_contents;
use crate::model::{Promise, State};
use crate::player::{Player, work};
use crate::statements::fill;
use crate::steps::{Mix, Step, history, statement};
use crate::world::{Random, Shape, create, open};
use pagefold_engine::Error;
use pagefold_engine::database::OpenMode;
use pagefold_engine::directory::read_control;
use pagefold_engine::log::LogReader;
use pagefold_engine::pool::double_write;
use pagefold_engine::{LOG_DIRECTORY, file_id_of};
use pagefold_format::page::{self, PageIdentity};
use pagefold_io::{CallKind, CrashPolicy, FaultOptions, FaultStorage, OpenOptions, Storage, read_exact_at};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use xxhash_rust::xxh3::xxh3_64;

/// What became of a flipped bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// An error when the database is opened.
    OpenFails,
    /// An error when everything is read and compared, as CHECK does.
    ReadFails,
    /// Everything is there.
    Harmless,
    /// Rows differ, and nobody says so.
    Silent,
}

/// A database as a machine that stopped has left it, and what is in it.
struct Target {
    storage: FaultStorage,
    expected: State,
    database_id: u128,
}

fn read(storage: &FaultStorage, path: &Path, offset: u64, bytes: &mut [u8]) {
    read_exact_at(storage.open(path, &OpenOptions::read_only()).unwrap().as_ref(), bytes, offset).unwrap();
}

impl Target {
    /// With so many rows and some beside: pages written behind the last checkpoint, transactions behind it, and one without an end.
    fn new(rows: i64, checkpoints: bool) -> Target {
        // Without a list of its calls: there are many millions of them.
        let storage = FaultStorage::new(FaultOptions { seed: 8, log_calls_max: 0, ..FaultOptions::default() });
        create(&storage, Shape::default()).unwrap();
        let (mut random, promise) = (Random(8), Arc::<Mutex<Promise>>::default());
        let database = open(&storage, OpenMode::Write).unwrap();
        let mut player = Player::new(&database, &promise, &Arc::default());
        fill(&mut player, (0..rows).map(|n| (n as usize % 2, 1_000 + n)));
        player.step(&Step::Commit { writer: 0 }).unwrap();
        work(&database, &promise, &history(&mut random, Mix::plain(), 60)).unwrap();
        if checkpoints {
            database.checkpoint().unwrap();
        }
        work(&database, &promise, &history(&mut random, Mix::plain(), 50)).unwrap();
        let mut open_ended = Player::new(&database, &promise, &Arc::default());
        let steps: Vec<Step> = (0..20).map(|i| Step::Write { writer: 0, statement: statement(&mut random, i % 2, (26, true)) }).collect();
        open_ended.play(&steps).unwrap();
        for table in database.tables().unwrap() {
            table.data_sets().for_each(|data_set| database.write_dirty_pages(data_set).unwrap());
        }
        let storage = storage.crash_image(CrashPolicy::KeepAll);
        drop(open_ended);
        let expected = promise.lock().last().clone();
        let whole = open(&storage.crash_image(CrashPolicy::KeepAll), OpenMode::Write).unwrap();
        assert_eq!(try_contents(&whole).unwrap(), expected);
        let mut slot = [0; 4096];
        read(&storage, Path::new("db/control"), 0, &mut slot);
        Target { storage, expected, database_id: u128::from_le_bytes(slot[32..48].try_into().unwrap()) }
    }

    fn fate(&self, path: &Path, bit: u64) -> Fate {
        let storage = self.storage.crash_image(CrashPolicy::KeepAll);
        storage.flip_bit(path, bit / 8, (bit % 8) as u32).unwrap();
        let database = match open(&storage, OpenMode::Write) {
            Ok(database) => database,
            Err(Error::Parameter(reason) | Error::Value(reason)) => panic!("not an error of damage: {reason}"),
            Err(_) => return Fate::OpenFails,
        };
        match try_contents(&database) {
            Err(_) => Fate::ReadFails,
            Ok(found) if found == self.expected => Fate::Harmless,
            Ok(_) => Fate::Silent,
        }
    }

    /// All files, with their lengths.
    fn files(&self) -> Vec<(PathBuf, u64)> {
        let names = ["db", "db/data", "db/log"].map(|directory| self.storage.list(Path::new(directory)).unwrap());
        let length = |path: &PathBuf| self.storage.open(path, &OpenOptions::read_only()).and_then(|file| file.len()).ok();
        names.into_iter().flatten().filter_map(|path| length(&path).map(|length| (path, length))).collect()
    }

    /// The pages of a data set; `None` for other files.
    fn pages(&self, path: &Path, length: u64) -> Option<Vec<(PageIdentity, Vec<u8>)>> {
        let file_id = file_id_of(path)?;
        let mut header = [0; 64];
        read(&self.storage, path, 0, &mut header);
        let page_bytes = u64::from(u32::from_le_bytes(header[52..56].try_into().unwrap()));
        let pages = (0..length / page_bytes).map(|number| {
            let mut bytes = vec![0; page_bytes as usize];
            read(&self.storage, path, number * page_bytes, &mut bytes);
            (PageIdentity { database_id: self.database_id, file_id, page_number: number as u32 }, bytes)
        });
        Some(pages.collect())
    }

    /// What the reader of a file makes of it: the same for all bits that are alike. `None` when nobody reads it.
    fn reading(&self, kind: &str, storage: &FaultStorage) -> Option<String> {
        let directory = Path::new("db");
        let control = read_control(storage, directory);
        match (kind, control) {
            ("control", Ok(control)) => Some(format!("{:?}, damaged: {}", control.current, control.damaged.is_some())),
            ("control", Err(_)) => Some("refused".into()),
            ("doublewrite", _) => {
                let images = double_write::images(storage, &directory.join("doublewrite"), self.database_id);
                let short = |images: Vec<double_write::Image>| {
                    images.iter().map(|image| (image.file_id, image.page_number, xxh3_64(&image.bytes))).collect::<Vec<_>>()
                };
                Some(images.map_or("refused".into(), |images| format!("{:?}", short(images))))
            }
            ("log", Ok(control)) => {
                let from = control.current.checkpoint;
                let log = directory.join(LOG_DIRECTORY);
                let mut reader = match LogReader::open(storage, &log, control.current.log_id, from, from + 1) {
                    Ok(reader) => reader,
                    Err(_) => return Some("no reader".into()),
                };
                let mut records = Vec::new();
                loop {
                    match reader.next() {
                        Ok(Some(record)) => {
                            let parts = [record.start, record.kind.into(), xxh3_64(record.body)];
                            records.extend(parts.into_iter().flat_map(u64::to_le_bytes));
                        }
                        Ok(None) => return Some(format!("to {}: {}", reader.end(), xxh3_64(&records))),
                        Err(_) => return Some("damaged".into()),
                    }
                }
            }
            _ => None,
        }
    }

    /// Flips every `every`-th bit.
    fn flip(&self, every: usize) {
        let files = self.files();
        let next = AtomicUsize::new(0);
        let parts: Vec<_> = std::thread::scope(|scope| {
            let work = || {
                let mut tally = Tally::default();
                while let Some((path, length)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    self.flip_file(path, *length, every, &mut tally);
                }
                tally
            };
            let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut all = Tally::default();
        parts.into_iter().for_each(|part| all.add(part));
        let bytes: u64 = files.iter().map(|(_, length)| length).sum();
        println!("{bytes} bytes: {} flips, each read by what reads it first; opened as a whole: {:?}", all.flips, all.fates);
        assert!(all.silent.is_empty(), "{} silent: {:#?}", all.silent.len(), &all.silent[..all.silent.len().min(40)]);
    }

    fn flip_file(&self, path: &Path, length: u64, every: usize, tally: &mut Tally) {
        let Some(pages) = self.pages(path, length) else {
            let name = path.file_name().unwrap().to_string_lossy();
            let kind = ["control", "doublewrite", "spare"].into_iter().find(|kind| name.starts_with(kind)).unwrap_or("log");
            let storage = self.storage.crash_image(CrashPolicy::KeepAll);
            let mut known = HashSet::new();
            for bit in (0..length * 8).step_by(every) {
                tally.flips += 1;
                storage.flip_bit(path, bit / 8, (bit % 8) as u32).unwrap();
                let reading = self.reading(kind, &storage);
                storage.flip_bit(path, bit / 8, (bit % 8) as u32).unwrap();
                if known.insert(reading) || tally.flips.is_multiple_of(1_999) {
                    tally.judge(kind, self.fate(path, bit), path, bit);
                }
            }
            return;
        };
        for (identity, mut bytes) in pages {
            let bits = bytes.len() as u64 * 8;
            let from = u64::from(identity.page_number) * bits;
            let in_use = page::verify(&bytes, &identity).is_ok();
            // A page that was never written is not read.
            assert!(in_use || bytes.iter().all(|byte| *byte == 0), "{path:?}, page {}: written, but not whole", identity.page_number);
            for bit in (0..bits as usize).step_by(if in_use { 1 } else { every }) {
                tally.flips += 1;
                if in_use {
                    bytes[bit / 8] ^= 1 << (bit % 8);
                    assert!(page::verify(&bytes, &identity).is_err(), "bit {bit} of page {} of {path:?}", identity.page_number);
                    bytes[bit / 8] ^= 1 << (bit % 8);
                }
            }
            let kind = if in_use { "page" } else { "page never written" };
            for bit in (from + 7..from + bits).step_by(bits as usize / 2) {
                tally.judge(kind, self.fate(path, bit), path, bit);
            }
        }
    }
}

#[derive(Debug, Default)]
struct Tally {
    flips: u64,
    fates: BTreeMap<(&'static str, Fate), u64>,
    silent: Vec<String>,
}

impl Tally {
    fn judge(&mut self, kind: &'static str, fate: Fate, path: &Path, bit: u64) {
        *self.fates.entry((kind, fate)).or_default() += 1;
        if fate == Fate::Silent {
            self.silent.push(format!("bit {bit} of {}", path.display()));
        }
    }

    fn add(&mut self, other: Tally) {
        self.flips += other.flips;
        other.fates.into_iter().for_each(|(key, count)| *self.fates.entry(key).or_default() += count);
        self.silent.extend(other.silent);
    }
}

#[test]
fn flipped_bits_of_a_megabyte() {
    Target::new(400, true).flip(1_201);
}

#[test]
fn flipped_bits_of_a_new_database() {
    Target::new(40, false).flip(601);
}

/// Nothing behind the last group of the log says that it was durable: damaged, it is as if the crash had come before it was written, and no other way.
#[test]
fn the_last_group_of_the_log_is_there_or_was_never_written() {
    // So many that the last group does not come to the end of its segment.
    let target = Target::new(44, true);
    let storage = target.storage.crash_image(CrashPolicy::KeepAll);
    let database = open(&storage, OpenMode::Write).unwrap();
    let promise: Arc<Mutex<Promise>> = Arc::default();
    promise.lock().found(target.expected.clone());
    let last = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&last);
    storage.set_observer(move |_, call| {
        if call.kind == CallKind::Write && call.path.starts_with("db/log") {
            *seen.lock() = Some(call.clone());
        }
    });
    let mut player = Player::new(&database, &promise, &Arc::default());
    fill(&mut player, (0..5).map(|n| (n as usize % 2, 5_000 + n)));
    player.step(&Step::Commit { writer: 0 }).unwrap();
    let model = promise.lock().last().clone();
    let image = storage.crash_image(CrashPolicy::KeepAll);
    let last = last.lock().clone().unwrap();
    let (mut there, mut never) = (0, 0);
    for bit in (last.offset * 8..(last.offset + last.len) * 8).step_by(61) {
        let storage = image.crash_image(CrashPolicy::KeepAll);
        storage.flip_bit(&last.path, bit / 8, (bit % 8) as u32).unwrap();
        let found = try_contents(&open(&storage, OpenMode::Write).unwrap()).unwrap();
        assert!(found == model || found == target.expected, "bit {bit}");
        *if found == model { &mut there } else { &mut never } += 1;
    }
    println!("{there} with the last commit, {never} without");
    assert!(there > 0 && never > 0);
}

#[test]
#[ignore = "takes long; the full run"]
fn every_bit_of_a_megabyte() {
    Target::new(1_500, true).flip(1);
}

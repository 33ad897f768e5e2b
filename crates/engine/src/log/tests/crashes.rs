//! Crashes and failures at every call.

use super::super::segment::segment_path;
use super::super::{LogSettings, Lsn};
use super::{DATABASE, Log, Record, SETTINGS, append, body, create, directory, is_crash, read, reopen};
use crate::Result;
use crate::test_random::Random;
use pagefold_io::{CallKind, CrashPolicy, Failure, Fault, FaultOptions, FaultStorage, Repeat, Storage, Trigger};
use std::sync::Arc;

/// What was done to a log.
#[derive(Default)]
struct Model {
    created: bool,
    /// Where a reader may start: nothing before is needed.
    from: Lsn,
    records: Vec<Record>,
    /// What `make_durable` has promised.
    durable: Lsn,
}

/// How records and groups look.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    /// Any length, any number to a group.
    Mixed,
    /// A group of 128 bytes each: those of a segment used again begin where the old ones did.
    Aligned,
}

impl Shape {
    fn body(self, seed: u64) -> Vec<u8> {
        match self {
            Shape::Mixed => body(seed),
            Shape::Aligned => (0..91).map(|at| (seed.wrapping_mul(0x9E37_79B9) >> (at % 24)) as u8).collect(),
        }
    }

    fn steps(self) -> u64 {
        if self == Shape::Mixed { 90 } else { 240 }
    }
}

impl Model {
    /// Works on a log until the end or an error that `goes_on` does not accept.
    fn work(&mut self, storage: &Arc<dyn Storage>, shape: Shape, goes_on: impl Fn(&crate::Error) -> bool) -> Result<Option<Log>> {
        let pass = |result: Result<()>| result.or_else(|error| if goes_on(&error) { Ok(()) } else { Err(error) });
        self.from = if shape == Shape::Aligned { 128 } else { 77 };
        self.durable = self.from;
        let log = match create(storage, self.from) {
            Err(error) if goes_on(&error) => return Ok(None),
            other => other?,
        };
        self.created = true;
        let mut random = Random(5);
        for step in 0..shape.steps() {
            let appended = append(&log, (step % 200) as u8, &shape.body(step)).map(|record| self.records.push(record));
            pass(appended)?;
            let choice = if shape == Shape::Aligned { [0, 0, 0, 0, 1][random.index(5)] } else { random.below(5) };
            match choice {
                0 => {
                    let end = log.end();
                    pass(log.make_durable(end).map(|()| self.durable = end))?;
                }
                1 => pass(log.write_out())?,
                _ => {}
            }
            if step % 25 == 24 {
                if let Some(record) = self.records.iter().rfind(|record| record.end <= self.durable) {
                    self.from = record.start;
                }
                pass(log.recycle(self.from, true))?;
            }
        }
        Ok(Some(log))
    }

    /// The records that a reader may find, of which it must find those that are durable.
    fn check_read(&self, storage: &dyn Storage, context: &str) -> Lsn {
        let (records, end) = read(storage, self.from, self.durable).unwrap_or_else(|error| panic!("{context}: {error}"));
        let expected: Vec<&Record> = self.records.iter().filter(|record| record.start >= self.from).collect();
        let prefix = records.len() <= expected.len() && records.iter().zip(&expected).all(|(found, expected)| found == *expected);
        assert!(prefix, "{context}: what is read is not a prefix of what was appended");
        let last = records.last().map_or(self.from, |record| record.end);
        // A Flush record may be all that is left of a group.
        assert!(end >= self.durable && (end == last || end == last + 24), "{context}: {end} after {last}, {} was durable", self.durable);
        assert!(last >= self.durable, "{context}: durable records are missing");
        end
    }

    /// Reads the disk after a crash, goes on, crashes again.
    fn check(&self, image: FaultStorage, seed: u64, shape: Shape, context: &str) {
        if !self.created {
            let storage: Arc<dyn Storage> = Arc::new(image);
            create(&storage, 1).unwrap_or_else(|error| panic!("{context}: {error}"));
            return;
        }
        let mut random = Random(seed);
        let storage: Arc<dyn Storage> = Arc::new(image.clone());
        let end = self.check_read(storage.as_ref(), context);
        let records = self.records.iter().filter(|record| record.end <= end).cloned().collect();
        let mut next = Model { created: true, records, ..*self };
        next.durable = next.durable.max(next.records.last().map_or(self.from, |record| record.end));
        // In half of the cases the machine stops again, somewhere in here.
        if random.below(2) == 0 {
            image.crash_at(image.calls() + random.below(20));
        }
        let result = next.go_on(&storage, end, &mut random, shape);
        if let Err(error) = &result {
            assert!(is_crash(error), "{context}: {error}");
        }
        for policy in [CrashPolicy::DropAll, CrashPolicy::Random(random.next())] {
            let second = image.crash_image(policy);
            next.check_read(&second, &format!("{context}, then {policy:?}"));
        }
        // A process that stops without the machine: all that was written is there, whether or not it was synced.
        if result.is_ok() && !image.is_crashed() {
            image.clear_faults();
            let end = next.check_read(storage.as_ref(), context);
            let log = reopen(&storage, end).unwrap();
            next.records.retain(|record| record.end <= end);
            next.durable = log.durable().min(next.records.last().map_or(self.from, |record| record.end));
            next.check_read(&image.crash_image(CrashPolicy::DropAll), &format!("{context}, then the process stopped"));
        }
    }

    fn go_on(&mut self, storage: &Arc<dyn Storage>, end: Lsn, random: &mut Random, shape: Shape) -> Result<()> {
        let log = reopen(storage, end)?;
        for _ in 0..4 + random.below(8) {
            let seed = 1_000_000 + random.below(1000);
            self.records.push(append(&log, 9, &shape.body(seed))?);
            match random.below(3) {
                0 => {
                    log.make_durable(log.end())?;
                    self.durable = log.end();
                }
                1 => log.write_out()?,
                _ => {}
            }
        }
        Ok(())
    }
}

fn disk(seed: u64, sector_bytes: u32) -> (FaultStorage, Arc<dyn Storage>) {
    let disk = FaultStorage::new(FaultOptions { seed, sector_bytes, ..FaultOptions::default() });
    (disk.clone(), Arc::new(disk))
}

/// Calls of the work without faults.
fn calls(shape: Shape) -> u64 {
    let (disk, storage) = disk(0, 512);
    let mut model = Model::default();
    let log = model.work(&storage, shape, |_| false).unwrap().unwrap();
    assert!(log.end() > 3 * 12_288 || shape == Shape::Aligned);
    disk.calls()
}

fn crash_at_every_call(shape: Shape, sector_bytes: u32) {
    let calls = calls(shape);
    assert!(calls > 150, "{calls}");
    for call in 0..=calls {
        let (disk, storage) = disk(call, sector_bytes);
        disk.crash_at(call);
        let mut model = Model::default();
        if let Err(error) = model.work(&storage, shape, |_| false) {
            assert!(is_crash(&error), "{error}");
        }
        let policies = [CrashPolicy::DropAll, CrashPolicy::KeepAll].into_iter().chain((0..4).map(|n| CrashPolicy::Random(call * 8 + n)));
        for (number, policy) in policies.enumerate() {
            let context = format!("sectors of {sector_bytes}, crash at call {call}, {policy:?}");
            model.check(disk.crash_image(policy), call * 100 + number as u64, shape, &context);
        }
    }
}

#[test]
fn crashes_with_sectors_of_512() {
    crash_at_every_call(Shape::Mixed, 512);
}

#[test]
fn crashes_with_sectors_of_4096() {
    crash_at_every_call(Shape::Mixed, 4096);
}

#[test]
fn crashes_with_aligned_groups() {
    crash_at_every_call(Shape::Aligned, 512);
    crash_at_every_call(Shape::Aligned, 4096);
}

#[test]
fn failures_at_every_call() {
    let (mut poisoned, mut usable) = (0, 0);
    for call in 0..calls(Shape::Mixed) {
        let faults = [
            Fault::Error(Failure::Io),
            Fault::Error(Failure::NoSpace),
            Fault::ShortWrite(100, Failure::Io),
            Fault::SyncDropsWrites,
            Fault::SyncDropsWritesFromDiskOnly,
        ];
        for (number, fault) in faults.into_iter().enumerate() {
            let (disk, storage) = disk(call, 512);
            disk.inject(Trigger { repeat: Repeat::Once, ..Trigger::at(call) }, fault);
            let mut model = Model::default();
            let log = model.work(&storage, Shape::Mixed, |error| !is_crash(error)).unwrap();
            let context = format!("{fault:?} at call {call}");
            let Some(log) = log else { continue };
            if log.poisoned().is_some() {
                poisoned += 1;
                let end = log.end();
                assert!(append(&log, 1, b"x").is_err() && log.end() == end, "{context}");
                assert!(log.make_durable(log.durable()).is_ok() && (log.durable() == end || log.make_durable(end).is_err()), "{context}");
            } else {
                usable += 1;
                log.make_durable(log.end()).unwrap();
                model.durable = log.end();
            }
            for (image, policy) in [CrashPolicy::DropAll, CrashPolicy::Random(call)].into_iter().enumerate() {
                let seed = call * 100 + number as u64 * 10 + image as u64;
                model.check(disk.crash_image(policy), seed, Shape::Mixed, &context);
            }
        }
    }
    assert!(poisoned > 50 && usable > 50, "{poisoned} and {usable}");
}

/// Records of a group that a crash cut off must not follow those that took their place.
fn what_was_cut_off(segment_bytes: u64) {
    let (disk, storage) = disk(1, 512);
    let settings = LogSettings { segment_bytes, ..SETTINGS };
    let log = Log::create(storage, directory(), DATABASE, settings, 4096).unwrap();
    // Groups of exactly one block each.
    let group = |content: u8| append(&log, content, &[content; 4096 - 24 - 13]).unwrap();
    let first = group(1);
    log.make_durable(first.end).unwrap();
    let second = group(2);
    log.write_out().unwrap();
    let third = group(3);
    log.write_out().unwrap();
    assert_eq!((second.start, third.start), (first.end + 24, second.end + 24));
    // The second write is lost, the third is not.
    let image = disk.crash_image(CrashPolicy::KeepAll);
    image.overwrite_at_rest(&segment_path(directory(), 0), 4096 + second.start, &[0; 4000]).unwrap();
    let storage: Arc<dyn Storage> = Arc::new(image.clone());
    let (records, end) = read(storage.as_ref(), 4096, first.end).unwrap();
    assert_eq!((records, end), (vec![first.clone()], second.start));
    let log = reopen(&storage, end).unwrap();
    // Another record, which ends where the third group began.
    let other = append(&log, 4, &[4; 4096 - 24 - 24 - 13]).unwrap();
    log.make_durable(other.end).unwrap();
    log.prepare_next().unwrap();
    assert_eq!(other.end, second.end);
    let (records, end) = read(&image.crash_image(CrashPolicy::DropAll), 4096, 0).unwrap();
    assert_eq!((records, end), (vec![first, other.clone()], other.end));
}

#[test]
fn what_was_cut_off_in_the_same_segment_does_not_come_back() {
    what_was_cut_off(32 << 10);
}

#[test]
fn what_was_cut_off_in_the_next_segment_does_not_come_back() {
    what_was_cut_off(16 << 10);
}

#[test]
fn a_failed_sync_of_the_directory_poisons() {
    let (disk, storage) = disk(1, 512);
    let log = create(&storage, 1).unwrap();
    let first = append(&log, 1, b"first").unwrap();
    disk.inject(Trigger::kind(CallKind::SyncDirectory, 0), Fault::Error(Failure::Io));
    assert!(append(&log, 2, &[2; 20_000]).is_err());
    assert!(log.poisoned().is_some() && log.end() == first.end);
    assert!(append(&log, 3, b"third").is_err() && log.make_durable(first.end).is_err());
}

/// A process is stopped between giving the next segment its name and syncing that name; the log ends just where that segment begins.
#[test]
fn the_name_of_a_segment_that_a_stopped_process_made_is_made_durable() {
    let (disk, storage) = disk(1, 512);
    let log = create(&storage, 4096).unwrap();
    let first = append(&log, 1, &[1; (12 << 10) - 4096 - 24 - 13]).unwrap();
    log.make_durable(first.end).unwrap();
    assert_eq!(first.end, 12 << 10);
    disk.inject(Trigger::kind(CallKind::SyncDirectory, 0), Fault::Error(Failure::Io));
    assert!(log.prepare_next().is_err());
    drop(log);
    assert!(storage.exists(&segment_path(directory(), 1)).unwrap());
    let log = reopen(&storage, first.end).unwrap();
    let second = append(&log, 2, b"second").unwrap();
    log.make_durable(second.end).unwrap();
    let (records, _) = read(&disk.crash_image(CrashPolicy::DropAll), 4096, 0).unwrap();
    assert_eq!(records, [first, second]);
}

//! Without crashes: round trips, many threads, a full disk.

use super::super::record::FLUSH_KIND;
use super::super::{BODY_BYTES_MAX, Log, LogSettings};
use super::{DATABASE, SETTINGS, append, body, create, directory, read, reopen};
use crate::Error;
use crate::test_random::Random;
use pagefold_io::{CountingStorage, FaultOptions, FaultStorage, MemoryStorage, Storage};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn memory() -> Arc<dyn Storage> {
    Arc::new(MemoryStorage::new())
}

#[test]
fn records_come_back_over_segment_boundaries_and_openings() {
    for start in [1, 12_287, 12_288, 12_289, 5 << 40] {
        let storage = memory();
        let mut log = create(&storage, start).unwrap();
        let mut all = Vec::new();
        for seed in 0..300 {
            all.push(append(&log, (seed % 255) as u8, &body(seed)).unwrap());
            if seed % 7 == 0 {
                log.write_out().unwrap();
            }
            if seed % 11 == 0 {
                log.make_durable(log.end()).unwrap();
                assert_eq!(log.durable(), log.end());
            }
            if seed % 60 == 59 {
                log.write_out().unwrap();
                drop(log);
                let (records, end) = read(storage.as_ref(), start, 0).unwrap();
                assert_eq!((records.len(), end), (all.len(), all.last().unwrap().end));
                log = reopen(&storage, end).unwrap();
                assert_eq!((log.end(), log.durable()), (end, end));
            }
            // From the buffer and from the files.
            for record in all.iter().rev().step_by(17) {
                assert_eq!(&log.read(record.start).unwrap(), record);
            }
        }
        log.make_durable(log.end()).unwrap();
        assert!(read(storage.as_ref(), start, log.end()).unwrap() == (all.clone(), log.end()));
        let middle = &all[150];
        assert_eq!(read(storage.as_ref(), middle.start, 0).unwrap().0, all[150..]);
        for nowhere in [middle.start + 1, log.end(), log.end() + 1, u64::MAX] {
            assert!(log.read(nowhere).is_err());
        }
    }
}

#[test]
fn a_record_of_the_greatest_length_and_none_longer() {
    let storage = memory();
    let settings = LogSettings { segment_bytes: 1 << 20, ..SETTINGS };
    let log = Log::create(Arc::clone(&storage), directory(), DATABASE, settings, 1).unwrap();
    let mut long = vec![7; BODY_BYTES_MAX];
    long[BODY_BYTES_MAX - 1] = 8;
    let before = append(&log, 1, b"before").unwrap();
    let record = append(&log, 2, &long).unwrap();
    let behind = append(&log, 3, b"behind").unwrap();
    assert!(log.read(record.start).unwrap() == record);
    log.make_durable(behind.end).unwrap();
    assert!(log.read(record.start).unwrap() == record);
    assert!(read(storage.as_ref(), 1, 0).unwrap().0 == [before, record, behind]);
    long.push(0);
    assert!(matches!(append(&log, 2, &long), Err(Error::Parameter(_))));
    assert!(matches!(append(&log, FLUSH_KIND, b""), Err(Error::Parameter(_))));
    assert!(matches!(log.make_durable(log.end() + 1), Err(Error::Parameter(_))));
}

#[test]
fn the_buffer_is_bounded() {
    let storage = memory();
    let log = Log::create(Arc::clone(&storage), directory(), DATABASE, LogSettings::default(), 1).unwrap();
    for _ in 0..40 {
        append(&log, 1, &vec![5; 1 << 20]).unwrap();
    }
    assert_eq!(log.durable(), 1);
    assert!(read(storage.as_ref(), 1, 0).unwrap().0.len() >= 32, "appending has written most of it");
}

#[test]
fn without_sync_there_is_none() {
    let counting = CountingStorage::new(memory());
    let storage: Arc<dyn Storage> = Arc::new(counting.clone());
    let log = Log::create(Arc::clone(&storage), directory(), DATABASE, LogSettings { sync: false, ..SETTINGS }, 1).unwrap();
    let before = counting.counts();
    for seed in 0..50 {
        let end = append(&log, 1, &body(seed)).unwrap().end;
        log.make_durable(end).unwrap();
        assert_eq!(log.durable(), end);
    }
    let counts = counting.counts().since(&before);
    assert_eq!((counts.syncs, counts.directory_syncs), (0, 0));
    assert_eq!(read(storage.as_ref(), 1, 0).unwrap().0.len(), 50);
}

#[test]
fn one_write_and_one_sync_make_a_group_durable() {
    let counting = CountingStorage::new(memory());
    let storage: Arc<dyn Storage> = Arc::new(counting.clone());
    let log = create(&storage, 1).unwrap();
    for _ in 0..20 {
        append(&log, 1, b"one of many").unwrap();
    }
    let before = counting.counts();
    log.make_durable(log.end()).unwrap();
    log.make_durable(log.end()).unwrap();
    let counts = counting.counts().since(&before);
    assert_eq!((counts.writes, counts.syncs, counts.directory_syncs), (1, 1, 0));
}

/// Who asks in time never makes a segment itself: it is there, one more than the next.
#[test]
fn segments_are_made_ahead() {
    let storage = memory();
    let files = || storage.list(directory()).unwrap().len();
    let log = create(&storage, 1).unwrap();
    log.prepare_next().unwrap();
    assert!(!log.wants_segment_ahead(), "hardly anything is logged yet");
    let (mut asked, mut made) = (0_u64, files());
    for _ in 0..600 {
        append(&log, 1, &[7; 500]).unwrap();
        // What every statement does: nothing is left to be made.
        log.prepare_next().unwrap();
        assert!(asked == 0 || files() == made, "made by who needed it");
        if log.wants_segment_ahead() {
            assert!(!log.wants_segment_ahead(), "once is enough");
            log.prepare_ahead().unwrap();
            asked += 1;
        }
        made = files();
    }
    let segments = log.end() / log.segment_bytes();
    assert!(segments > 10 && asked.abs_diff(segments) < segments / 2, "asked {asked} times for {segments} segments");
}

/// Once for each megabyte that nobody has written, and not again while it is being written.
#[test]
fn what_waits_is_to_be_written() {
    let storage = memory();
    let log = create(&storage, 1).unwrap();
    let (mut asked, mut waiting) = (0, 0);
    for round in 0..9 {
        for _ in 0..500 {
            let before = log.end();
            waiting += append(&log, 1, &[7; 1000]).unwrap().end - before;
            if log.wants_to_be_written() {
                assert!(waiting >= 1 << 20, "{waiting} bytes");
                asked += 1;
                waiting = 0;
            }
            assert!(waiting < (1 << 20) + 5000, "{waiting} bytes wait");
        }
        // By whomever and whenever: what is written need not be written again.
        if round % 3 == 2 {
            log.write_out().unwrap();
            waiting = 0;
        }
    }
    assert_eq!(asked, 3, "of half a megabyte each three rounds");
}

#[test]
fn segments_are_used_again() {
    let counting = CountingStorage::new(memory());
    let storage: Arc<dyn Storage> = Arc::new(counting.clone());
    let log = create(&storage, 1).unwrap();
    let mut kept = Vec::new();
    for seed in 0..2000 {
        kept.push(append(&log, 1, &body(seed)).unwrap());
        if seed % 20 == 0 {
            log.make_durable(log.end()).unwrap();
            kept.drain(..kept.len().saturating_sub(10));
            log.recycle(kept[0].start, true).unwrap();
            log.prepare_next().unwrap();
        }
    }
    log.make_durable(log.end()).unwrap();
    let files = storage.list(directory()).unwrap().len() as u64;
    assert!(files < 20, "{files} files");
    assert_eq!(read(storage.as_ref(), kept[0].start, 0).unwrap().0, kept);
    let (segments, made) = (log.end() / 12_288, counting.counts().space_changes);
    assert!(segments > 100 && made < segments / 2, "{made} of {segments} segments were made anew");
    // What is not durable is not recycled.
    let end = append(&log, 1, &vec![1; 50_000]).unwrap().end;
    log.recycle(end, true).unwrap();
    assert_eq!(read(storage.as_ref(), kept.last().unwrap().start, 0).unwrap().0.len(), 1);
    // Opening cleans up, and keeps spares.
    log.make_durable(end).unwrap();
    drop(log);
    let log = reopen(&storage, end).unwrap();
    append(&log, 1, b"x").unwrap();
    log.make_durable(log.end()).unwrap();
}

#[test]
fn a_full_disk_fails_the_append_and_nothing_else() {
    let disk = FaultStorage::new(FaultOptions { capacity: Some(5 * (16 << 10)), ..FaultOptions::default() });
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    let log = create(&storage, 1).unwrap();
    let (mut kept, mut refused) = (Vec::new(), 0);
    for seed in 0..400 {
        match append(&log, 1, &body(seed)) {
            Ok(record) => kept.push(record),
            Err(Error::Io(error)) => {
                assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
        assert_eq!(log.poisoned(), None);
        log.make_durable(log.end()).unwrap();
        if seed == 300 {
            assert!(refused > 50);
            disk.set_capacity(None);
            refused = 0;
        }
    }
    assert!(refused == 0 && kept.len() > 120, "{refused} refused, {} kept", kept.len());
    assert_eq!(read(storage.as_ref(), 1, log.end()).unwrap(), (kept, log.end()));
}

#[test]
fn many_threads_append_commit_and_read() {
    let storage = memory();
    let log = create(&storage, 1).unwrap();
    let all = Mutex::new(Vec::new());
    let published = AtomicU64::new(0);
    let cuts = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (log, all, published, cuts) = (&log, &all, &published, &cuts);
            scope.spawn(move || {
                let mut random = Random(thread);
                let mut own = Vec::new();
                for count in 0..400 {
                    let bytes = body(thread * 1000 + count);
                    let at = log
                        .append(thread as u8, &[&bytes], &mut |at| {
                            published.fetch_add(1, Ordering::Relaxed);
                            all.lock().push((at, thread, count));
                        })
                        .unwrap();
                    own.push((at, bytes));
                    match random.below(6) {
                        0 => {
                            log.make_durable(at.end).unwrap();
                            assert!(log.durable() >= at.end);
                        }
                        1 => log.write_out().unwrap(),
                        2 => cuts.lock().push(log.cut(|end| (end, published.load(Ordering::Relaxed)))),
                        _ => {}
                    }
                    let (at, bytes) = &own[random.index(own.len())];
                    let record = log.read(at.start).unwrap();
                    assert!(record.body == *bytes && record.end == at.end && u64::from(record.kind) == thread);
                }
            });
        }
    });
    log.make_durable(log.end()).unwrap();
    let (records, end) = read(storage.as_ref(), 1, 0).unwrap();
    let all = all.into_inner();
    assert_eq!((records.len(), end), (all.len(), log.end()));
    for (record, (at, thread, count)) in records.iter().zip(&all) {
        assert_eq!((record.start, record.end, u64::from(record.kind)), (at.start, at.end, *thread));
        assert!(record.body == body(thread * 1000 + count));
    }
    for (end, count) in cuts.into_inner() {
        assert_eq!(all.iter().filter(|(at, ..)| at.end <= end).count() as u64, count);
        // A cut is a place to read from.
        if count % 16 == 0 {
            assert_eq!(read(storage.as_ref(), end, 0).unwrap().0.len() as u64, all.len() as u64 - count);
        }
    }
}

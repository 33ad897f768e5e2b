//! Bytes that are not what was written.

use super::super::segment::segment_path;
use super::super::{Log, LogSettings};
use super::{DATABASE, SETTINGS, append, create, directory, read, reopen};
use crate::Error;
use pagefold_io::{FaultOptions, FaultStorage, OpenOptions, Storage};
use std::sync::Arc;

const STREAM: u64 = 12_288;

fn disk() -> (FaultStorage, Arc<dyn Storage>) {
    let disk = FaultStorage::new(FaultOptions::default());
    (disk.clone(), Arc::new(disk))
}

/// The reason of an error about a segment.
fn damage<T>(result: crate::Result<T>, segment: u64) -> String {
    match result {
        Err(Error::Damaged { path, reason }) => {
            assert_eq!(path, segment_path(directory(), segment).to_str().unwrap());
            reason
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the damage was not noticed"),
    }
}

#[test]
fn a_bit_flip_below_what_a_flush_record_names_is_damage_and_one_above_cuts() {
    let (disk, storage) = disk();
    let start = STREAM - 1200;
    let log = create(&storage, start).unwrap();
    let mut records = Vec::new();
    let mut named = start;
    for group in 0..8 {
        named = log.end();
        for number in 0..group % 3 + 1 {
            records.push(append(&log, number, &vec![group; 50 + 60 * usize::from(number)]).unwrap());
            if group == 5 {
                log.write_out().unwrap();
            }
        }
        log.make_durable(log.end()).unwrap();
    }
    let end = log.end();
    assert!(start < STREAM - 500 && end > STREAM + 300 && named < end, "{start} {named} {end}");
    for at in start..end {
        let (path, offset) = (segment_path(directory(), at / STREAM), 4096 + at % STREAM);
        for bit in 0..8 {
            disk.flip_bit(&path, offset, bit).unwrap();
            let result = read(storage.as_ref(), start, 0);
            if at < named {
                let frames = records.iter().flat_map(|record| [record.start, record.end]);
                let reason = damage(result, frames.filter(|&frame| frame <= at).max().unwrap_or(start) / STREAM);
                assert!(reason.contains("damaged"), "{reason}");
            } else {
                let (found, found_end) = result.unwrap();
                assert!(found_end >= named && found_end <= at && records.starts_with(&found), "position {at}");
                assert!(found.len() >= records.iter().filter(|record| record.end <= named).count());
                // Who knows that it was durable is told.
                assert!(damage(read(storage.as_ref(), start, end), 1).contains("damaged"));
            }
            disk.flip_bit(&path, offset, bit).unwrap();
        }
    }
    assert_eq!(read(storage.as_ref(), start, end).unwrap(), (records, end));
    for bit in (0..4096 * 8).step_by(41) {
        for segment in [0, 1] {
            disk.flip_bit(&segment_path(directory(), segment), bit / 8, (bit % 8) as u32).unwrap();
            damage(read(storage.as_ref(), start, 0), segment);
            disk.flip_bit(&segment_path(directory(), segment), bit / 8, (bit % 8) as u32).unwrap();
        }
    }
}

#[test]
fn segments_that_are_missing_or_of_others() {
    let (_, storage) = disk();
    let log = create(&storage, 1).unwrap();
    for number in 0..5 {
        let end = append(&log, number, &vec![1; 10_000]).unwrap().end;
        log.make_durable(end).unwrap();
    }
    let path = |segment: u64| segment_path(directory(), segment);
    let aside = directory().join("aside");
    for segment in 0..3 {
        storage.rename(&path(segment), &aside).unwrap();
        let reason = damage(read(storage.as_ref(), 1, 0), segment.saturating_sub(1)).to_string();
        assert!(reason.contains(if segment == 0 { "missing" } else { "damaged" }), "{reason}");
        storage.rename(&aside, &path(segment)).unwrap();
    }
    // The end is gone, and no record says so; who knows how far it went is told.
    storage.rename(&path(4), &aside).unwrap();
    assert_eq!(read(storage.as_ref(), 1, 0).unwrap().0.len(), 4);
    assert!(damage(read(storage.as_ref(), 1, log.end()), 3).contains("damaged"));
    storage.rename(&aside, &path(4)).unwrap();

    let other = Log::create(Arc::clone(&storage), "/other".as_ref(), 99, SETTINGS, 1 + STREAM).unwrap();
    drop(other);
    storage.rename(&path(1), &aside).unwrap();
    storage.rename(&segment_path("/other".as_ref(), 1), &path(1)).unwrap();
    assert!(damage(read(storage.as_ref(), 1, 0), 1).contains("another database"));
    storage.rename(&path(3), &path(1)).unwrap();
    assert!(damage(read(storage.as_ref(), 1, 0), 1).contains("it is segment 0000000000000003"));
    storage.remove(&path(1)).unwrap();
    let settings = LogSettings { segment_bytes: 20 << 10, ..SETTINGS };
    drop(Log::create(Arc::clone(&storage), "/third".as_ref(), DATABASE, settings, 1 + (16 << 10)).unwrap());
    storage.rename(&segment_path("/third".as_ref(), 1), &path(1)).unwrap();
    assert!(damage(read(storage.as_ref(), 1, 0), 1).contains("20480 bytes a segment"));
    storage.rename(&aside, &path(1)).unwrap();
    storage.open(&path(1), &OpenOptions::read_write()).unwrap().set_len(16_000).unwrap();
    assert!(damage(read(storage.as_ref(), 1, 0), 1).contains("16000 bytes long"));
    storage.open(&path(1), &OpenOptions::read_write()).unwrap().set_len(100).unwrap();
    assert!(damage(read(storage.as_ref(), 1, 0), 1).contains("no header"));
    for path in storage.list(directory()).unwrap() {
        storage.remove(&path).unwrap();
    }
    assert!(matches!(read(storage.as_ref(), 1, 0), Err(Error::Damaged { .. })));
}

#[test]
fn the_header_of_a_segment_in_which_nothing_lies_does_no_harm() {
    for (start, size) in [(1, 5), (STREAM - 1200, 1186 - 12), (1, STREAM as usize - 100)] {
        let (disk, storage) = disk();
        let log = create(&storage, start).unwrap();
        let record = append(&log, 1, &vec![1; size]).unwrap();
        log.make_durable(record.end).unwrap();
        let last = log.end() / STREAM;
        log.prepare_next().unwrap();
        drop(log);
        let next = segment_path(directory(), last + 1);
        for bit in (0..4096 * 8).step_by(1201) {
            disk.flip_bit(&next, bit / 8, (bit % 8) as u32).unwrap();
            let (found, end) = read(storage.as_ref(), start, record.end).unwrap();
            assert_eq!(found, std::slice::from_ref(&record));
            // Nor does its length.
            if bit % 7 == 0 {
                let length = bit % 16_384 + if bit % 2 == 0 { 0 } else { 10_000 };
                storage.open(&next, &OpenOptions::read_write()).unwrap().set_len(length).unwrap();
                assert_eq!(read(storage.as_ref(), start, record.end).unwrap().0, std::slice::from_ref(&record));
            }
            // Who writes makes it anew.
            let log = reopen(&storage, end).unwrap();
            log.prepare_next().unwrap();
            drop(log);
            assert_eq!(read(storage.as_ref(), start, record.end).unwrap(), (vec![record.clone()], end));
        }
        // A record in it does: beginning there, and crossing into it.
        let log = reopen(&storage, log_end(&storage, start)).unwrap();
        let second = append(&log, 2, &vec![2; STREAM as usize + 500]).unwrap();
        log.write_out().unwrap();
        drop(log);
        disk.flip_bit(&next, 100, 0).unwrap();
        assert!(damage(read(storage.as_ref(), start, 0), last + 1).contains("checksum"), "{second:?}");
        disk.flip_bit(&next, 100, 0).unwrap();
        storage.open(&next, &OpenOptions::read_write()).unwrap().set_len(4100).unwrap();
        assert!(damage(read(storage.as_ref(), start, 0), last + 1).contains("4100 bytes long"), "{second:?}");
    }
}

#[test]
fn the_header_of_the_segment_where_the_log_ends() {
    let (disk, storage) = disk();
    let log = create(&storage, 1).unwrap();
    let first = append(&log, 1, &[1; 10]).unwrap();
    let second = append(&log, 2, &vec![2; (STREAM - first.end - (first.end - first.start - 10)) as usize]).unwrap();
    assert_eq!(second.end, STREAM);
    log.write_out().unwrap();
    log.prepare_next().unwrap();
    drop(log);
    disk.flip_bit(&segment_path(directory(), 1), 100, 0).unwrap();
    let log = reopen(&storage, log_end(&storage, 1)).unwrap();
    let third = append(&log, 3, b"third").unwrap();
    log.make_durable(third.end).unwrap();
    assert_eq!(read(storage.as_ref(), 1, third.end).unwrap().0, [first, second, third]);
}

fn log_end(storage: &Arc<dyn Storage>, start: u64) -> u64 {
    read(storage.as_ref(), start, 0).unwrap().1
}

#[test]
fn bytes_of_any_kind_are_read_without_harm() {
    let (_, storage) = disk();
    let log = create(&storage, 1).unwrap();
    let first = append(&log, 1, b"first").unwrap();
    log.make_durable(first.end).unwrap();
    log.prepare_next().unwrap();
    drop(log);
    let mut random = crate::test_random::Random(3);
    for round in 0..300 {
        for segment in 0..2 {
            let from = if segment == 0 { 4096 + first.end } else { 4096 };
            let bytes: Vec<u8> =
                (from..16 << 10).map(|_| if round % 2 == 0 { random.next() as u8 } else { random.below(3) as u8 }).collect();
            let file = storage.open(&segment_path(directory(), segment), &OpenOptions::read_write()).unwrap();
            file.write_at(&bytes, from).unwrap();
            // The length of a frame that the segments cannot hold, or just can.
            if segment == 0 {
                let length = [u32::MAX, 64 << 20, 13, 24_000 - round, 12][round as usize % 5];
                file.write_at(&length.to_le_bytes(), from + 8).unwrap();
            }
        }
        assert_eq!(read(storage.as_ref(), 1, first.end).unwrap(), (vec![first.clone()], first.end));
    }
}

//! Segments of the log with any bytes in them: the reader ends, and delivers only what has a right checksum; also where somebody has made checksums right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_engine::log::{Log, LogReader, LogSettings};
use pagefold_fuzz::input::Input;
use pagefold_io::{File, MemoryStorage, OpenOptions, Storage, read_exact_at};
use std::path::Path;
use std::sync::{Arc, LazyLock};
use xxhash_rust::xxh3::xxh3_64_with_seed;

const ID: u128 = 7;
const START: u64 = 4096;
const HEADER: usize = 4096;
const SEGMENT: usize = 16 << 10;

/// A log of a few records, in groups.
static LOG: LazyLock<(MemoryStorage, Vec<(u64, Vec<u8>)>)> = LazyLock::new(|| {
    let memory = MemoryStorage::new();
    let storage: Arc<dyn Storage> = Arc::new(memory.clone());
    let settings = LogSettings { segment_bytes: SEGMENT as u64, ..LogSettings::default() };
    let log = Log::create(storage, Path::new("log"), ID, settings, START).expect("a log");
    let mut records = Vec::new();
    for i in 0..40u8 {
        let body = vec![i; usize::from(i) * 20];
        let place = log.append(i, &[&body], &mut |_| {}).expect("room");
        records.push((place.start, body));
        if i % 4 == 0 {
            log.make_durable(place.end).expect("durable");
        }
    }
    log.make_durable(log.end()).expect("durable");
    (memory, records)
});

/// Makes checksums right: that of a segment's header, and that of the frame at an offset, if it ends in the segment.
fn mend(segment: &dyn File, number: u64, offset: usize) {
    let mut bytes = vec![0; SEGMENT];
    read_exact_at(segment, &mut bytes, 0).expect("a segment");
    if offset < HEADER {
        let sum = xxh3_64_with_seed(&bytes[8..HEADER], 0);
        segment.write_at(&sum.to_le_bytes(), 0).expect("room");
        return;
    }
    let Some(length) = bytes[offset..].get(8..12).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize) else { return };
    let Some(frame) = bytes.get(offset..offset.saturating_add(length)).filter(|frame| frame.len() > 12) else { return };
    let start = number * (SEGMENT - HEADER) as u64 + (offset - HEADER) as u64;
    let seed = xxh3_64_with_seed(&start.to_le_bytes(), xxh3_64_with_seed(&ID.to_le_bytes(), 0));
    segment.write_at(&xxh3_64_with_seed(&frame[8..], seed).to_le_bytes(), offset as u64).expect("room");
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let (memory, records) = &*LOG;
    let storage = memory.snapshot();
    let segments = storage.list(Path::new("log")).expect("a directory");
    let durable = [0, u64::from(input.u16())][usize::from(input.byte() & 1)];
    let mut mended = false;
    while !input.is_empty() {
        let choice = input.byte();
        let which = usize::from(choice & 0x7F) % segments.len();
        let offset = usize::from(input.u16()) % SEGMENT;
        let file = storage.open(&segments[which], &OpenOptions::read_write()).expect("a file");
        if choice & 0x80 != 0 {
            mended = true;
            mend(&*file, which as u64, offset);
            continue;
        }
        let length = usize::from(input.byte()).min(SEGMENT - offset);
        file.write_at(input.take(length), offset as u64).expect("room");
    }
    let Ok(mut reader) = LogReader::open(&storage, Path::new("log"), ID, records[0].0, durable) else { return };
    let mut known = records.iter();
    let mut end = records[0].0;
    while let Ok(Some(record)) = reader.next() {
        assert!(record.start >= end && record.end > record.start + record.body.len() as u64, "back");
        end = record.end;
        if !mended {
            let (start, body) = known.next().expect("no more than were written");
            assert!(record.start == *start && record.body == body, "a record that nobody wrote");
        }
    }
    assert!(end <= (segments.len() * SEGMENT) as u64);
});

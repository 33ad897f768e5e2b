//! A segment of the log with any bytes in it: the reader ends, and delivers only what has a right checksum.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_engine::log::{Log, LogReader, LogSettings};
use pagefold_fuzz::input::Input;
use pagefold_io::{MemoryStorage, OpenOptions, Storage};
use std::path::Path;
use std::sync::{Arc, LazyLock};

const ID: u128 = 7;
const START: u64 = 4096;

/// A log of a few records, in groups.
static LOG: LazyLock<(MemoryStorage, Vec<(u64, Vec<u8>)>)> = LazyLock::new(|| {
    let memory = MemoryStorage::new();
    let storage: Arc<dyn Storage> = Arc::new(memory.clone());
    let settings = LogSettings { segment_bytes: 16 << 10, ..LogSettings::default() };
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

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let (memory, records) = &*LOG;
    let storage = memory.snapshot();
    let segments = storage.list(Path::new("log")).expect("a directory");
    while !input.is_empty() {
        let path = &segments[usize::from(input.byte()) % segments.len()];
        let offset = u64::from(input.u16());
        let length = usize::from(input.byte());
        let bytes = input.take(length);
        let file = storage.open(path, &OpenOptions::read_write()).expect("a file");
        file.write_at(bytes, offset % (16 << 10)).expect("room");
    }
    let Ok(mut reader) = LogReader::open(&storage, Path::new("log"), ID, records[0].0, 0) else { return };
    let mut known = records.iter();
    while let Ok(Some(record)) = reader.next() {
        let (start, body) = known.next().expect("no more than were written");
        assert!(record.start == *start && record.body == body, "a record that nobody wrote");
    }
});

//! The log as its user sees it.

mod crashes;
mod damage;
mod use_;

use super::{Log, LogReader, LogSettings, Lsn, Record};
use crate::Result;
use crate::test_random::Random;
use pagefold_io::{Storage, is_simulated_crash};
use std::path::Path;
use std::sync::Arc;

const DATABASE: u128 = 0xDA7A;
const SETTINGS: LogSettings = LogSettings { segment_bytes: 16 << 10, sync: true, spare_segments: 2 };

fn directory() -> &'static Path {
    Path::new("/log")
}

fn create(storage: &Arc<dyn Storage>, start: Lsn) -> Result<Log> {
    Log::create(Arc::clone(storage), directory(), DATABASE, SETTINGS, start)
}

fn reopen(storage: &Arc<dyn Storage>, end: Lsn) -> Result<Log> {
    Log::open(Arc::clone(storage), directory(), DATABASE, SETTINGS, end)
}

/// The records from a position on, and the end of the log.
fn read(storage: &dyn Storage, from: Lsn, known_durable: Lsn) -> Result<(Vec<Record>, Lsn)> {
    let mut reader = LogReader::open(storage, directory(), DATABASE, from, known_durable)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next()? {
        records.push(record.to_record());
    }
    assert!(reader.next()?.is_none(), "the end stays the end");
    Ok((records, reader.end()))
}

/// Appends a record.
fn append(log: &Log, kind: u8, body: &[u8]) -> Result<Record> {
    let (head, tail) = body.split_at(body.len() / 3);
    let mut published = None;
    let appended = log.append(kind, &[head, tail], &mut |appended| published = Some(appended));
    assert_eq!(published, appended.as_ref().ok().copied(), "published when appended, and only then");
    appended.map(|at| Record { start: at.start, end: at.end, kind, body: body.to_vec() })
}

/// A body that no other seed gives, most of them short, some longer than a segment.
fn body(seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let length = match random.below(12) {
        0 => random.below(30_000),
        1..4 => random.below(3000),
        _ => random.below(200),
    };
    (0..length).map(|_| random.next() as u8).collect()
}

fn is_crash(error: &crate::Error) -> bool {
    matches!(error, crate::Error::Io(error) if is_simulated_crash(error))
}

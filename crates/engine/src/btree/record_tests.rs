//! What is recorded of look-ups and changes, in what order, and what is left out.

use super::tests::{Shape, UP, create_index, key, open};
use crate::Error;
use crate::database::OpenMode;
use crate::index::{Index, IndexFormat, RecordOptions};
use crate::test_random::Random;
use pagefold_format::key_trace::{KeySpan, KeyTrace, spans_have};
use pagefold_io::MemoryStorage;
use pagefold_types::Rid;
use std::sync::Arc;

const SHAPE: Shape = Shape { columns: &[(0, UP)], unique: true, keys: 1 << 40 };
const ALL: RecordOptions = RecordOptions { bytes_max: 1 << 20, one_in: 1 };

fn rid(n: u64) -> Rid {
    Rid::new(0, (n / 60) as u32, (n % 60) as u16)
}

fn with_index(entries: u64, format: IndexFormat, page_bytes: usize, test: impl FnOnce(&Index)) {
    let storage = Arc::new(MemoryStorage::new());
    let database = open(&storage, OpenMode::Create, 64 << 20);
    let mut change = database.change();
    let index = create_index(&mut change, SHAPE, format, page_bytes);
    let mut builder = index.build(59);
    (0..entries).for_each(|n| builder.push(&key(&index, SHAPE, 2 * n), rid(n)).unwrap());
    builder.finish().unwrap();
    test(&index);
}

fn keys_in_order(trace: &KeyTrace) -> Vec<Vec<u8>> {
    trace.references.iter().map(|number| trace.keys[*number as usize].clone()).collect()
}

/// Counted by one in 61, by whichever thread.
fn is_about(counted: u64, requests: u64) -> bool {
    counted.abs_diff(requests) <= 61
}

#[test]
fn all_requests_in_their_order() {
    for (format, page_bytes) in [(IndexFormat::Plain, 2048), (IndexFormat::Fold, 8192), (IndexFormat::Prefix, 4096)] {
        with_index(20_000, format, page_bytes, |index| {
            let (tree, mut random) = (index.tree(), Random(4));
            assert_eq!(index.stop_recording_keys(), None);
            tree.first_rid(&key(index, SHAPE, 8)).unwrap();
            index.record_keys(&ALL).unwrap();
            assert!(matches!(index.record_keys(&ALL), Err(Error::Busy(_))));
            let mut expected = Vec::new();
            for _ in 0..5_000 {
                let key = key(index, SHAPE, 2 * random.below(20_000));
                tree.first_rid(&key).unwrap();
                expected.push(key);
            }
            let trace = index.stop_recording_keys().unwrap();
            assert!(keys_in_order(&trace) == expected);
            assert!(trace.keys.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(is_about(trace.requests, 5_000) && trace.requests_seen == trace.requests, "{}", trace.requests);
            assert_eq!((trace.spans.as_slice(), trace.entries, trace.full), (&[KeySpan::all()][..], 20_000, false));
            // Nothing more comes, and a second trace begins empty.
            tree.first_rid(&key(index, SHAPE, 8)).unwrap();
            assert_eq!(index.stop_recording_keys(), None);
            index.record_keys(&ALL).unwrap();
            let new = key(index, SHAPE, 12_345);
            tree.insert(&new, rid(70_000)).unwrap();
            tree.delete(&new, rid(70_000)).unwrap();
            let changes = keys_in_order(&index.stop_recording_keys().unwrap());
            assert!(changes.len() >= 2 && changes.iter().all(|key| key.starts_with(&new)), "{changes:?}");
        });
    }
}

#[test]
fn some_spans_whole_and_others_not() {
    with_index(1_600_000, IndexFormat::Plain, 2048, |index| {
        let (tree, mut random) = (index.tree(), Random(5));
        index.record_keys(&RecordOptions { bytes_max: 16 << 20, one_in: 2 }).unwrap();
        let wanted: Vec<u64> = (0..60_000).map(|_| 2 * random.below(1_600_000)).collect();
        wanted.iter().for_each(|n| assert!(tree.first_rid(&key(index, SHAPE, *n)).unwrap().is_some()));
        // Leaves that come while it goes on have no bit; their keys are looked at.
        let inserted: Vec<u64> = (0..4_000).map(|n| 2 * n + 1).chain((0..4_000).map(|n| 1_000_001 + 2 * n)).collect();
        inserted.iter().for_each(|n| tree.insert(&key(index, SHAPE, *n), rid(4_000_000 + n)).unwrap());
        let trace = index.stop_recording_keys().unwrap();
        assert!(trace.spans.len() >= 16 && trace.spans.windows(2).all(|pair| pair[0].ends_before(&pair[1].low)), "{}", trace.spans.len());
        let expected: Vec<Vec<u8>> = wanted.iter().map(|n| key(index, SHAPE, *n)).filter(|key| spans_have(&trace.spans, key)).collect();
        assert!(keys_in_order(&trace)[..expected.len()] == expected);
        let part = expected.len() as f64 / wanted.len() as f64;
        assert!((0.42..0.58).contains(&part), "{part}");
        let kept = keys_in_order(&trace).split_off(expected.len());
        for n in inserted {
            let key = key(index, SHAPE, n);
            let is_kept = kept.iter().any(|kept| kept.starts_with(&key));
            assert_eq!(is_kept, spans_have(&trace.spans, &key), "{n}");
        }
    });
}

#[test]
fn small_indexes_are_recorded_in_windows() {
    with_index(10_000, IndexFormat::Plain, 4096, |index| {
        let (tree, mut random) = (index.tree(), Random(6));
        index.record_keys(&RecordOptions { bytes_max: 32 << 20, one_in: 4 }).unwrap();
        const REQUESTS: u64 = (1 << 16) * 8;
        for _ in 0..REQUESTS {
            tree.first_rid(&key(index, SHAPE, 2 * random.below(10_000))).unwrap();
        }
        let trace = index.stop_recording_keys().unwrap();
        assert!(is_about(trace.requests, REQUESTS));
        // Two windows of eight.
        assert!(
            is_about(trace.requests_seen, REQUESTS / 4) && is_about(trace.references.len() as u64, REQUESTS / 4),
            "{}",
            trace.references.len()
        );
    });
}

#[test]
fn a_full_trace_ends_by_itself() {
    with_index(10_000, IndexFormat::Plain, 4096, |index| {
        let tree = index.tree();
        index.record_keys(&RecordOptions { bytes_max: 1_000, one_in: 1 }).unwrap();
        (0..5_000).for_each(|n| assert!(tree.first_rid(&key(index, SHAPE, 2 * n)).unwrap().is_some()));
        let trace = index.stop_recording_keys().unwrap();
        // Two bytes of length and eight of key each.
        assert!(trace.full && trace.references.len() == 100, "{}", trace.references.len());
        assert!(index.record_keys(&RecordOptions { one_in: 0, ..ALL }).is_err());
        assert!(index.record_keys(&RecordOptions { bytes_max: usize::MAX, ..ALL }).is_err());
        assert_eq!(index.stop_recording_keys(), None);
    });
}

#[test]
fn threads_record_together() {
    with_index(50_000, IndexFormat::Prefix, 8192, |index| {
        index.record_keys(&RecordOptions { bytes_max: 16 << 20, one_in: 1 }).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    let mut random = Random(thread);
                    (0..20_000)
                        .for_each(|_| assert!(index.tree().first_rid(&key(index, SHAPE, 2 * random.below(50_000))).unwrap().is_some()));
                });
            }
        });
        let trace = index.stop_recording_keys().unwrap();
        assert_eq!(trace.references.len(), 80_000);
        assert!(trace.requests.abs_diff(80_000) <= 4 * 61);
        assert_eq!(KeyTrace::decode(&trace.encode()).unwrap(), trace);
    });
}

//! Scans both ways while leaves are emptied, taken out, merged, levelled and split behind, before and below them.

use super::cursor::Direction;
use super::tests::{Model, Shape, UP, create_index, key, no_faults, open};
use crate::database::OpenMode;
use crate::index::{Index, IndexFormat};
use crate::test_random::Random;
use pagefold_io::MemoryStorage;
use pagefold_types::Rid;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const SHAPE: Shape = Shape { columns: &[(0, UP), (2, UP)], unique: false, keys: 1 << 30 };
const KEYS: u64 = 12_000;
/// One key in so many stays all the time: whole leaves lie between two of them.
const STAYS: u64 = 700;
const WRITERS: u64 = 3;

fn entry(index: &Index, n: u64) -> (Vec<u8>, Rid) {
    (key(index, SHAPE, n), Rid::new(0, (n / 60) as u32, (n % 60) as u16))
}

/// Takes ranges of its own keys out and puts them back, from the front, from the back or in no order.
fn write(index: &Index, writer: u64) {
    let tree = index.tree();
    let mut random = Random(50 + writer);
    for _ in 0..12 {
        let start = random.below(KEYS);
        let own = |n: &u64| n % WRITERS == writer && !n.is_multiple_of(STAYS);
        let mut range: Vec<u64> = (start..(start + 4_000).min(KEYS)).filter(own).collect();
        for _ in 0..2 {
            match random.below(3) {
                0 => range.reverse(),
                1 => {
                    for i in (1..range.len()).rev() {
                        range.swap(i, random.below(i as u64 + 1) as usize);
                    }
                }
                _ => range.sort_unstable(),
            }
            let go = tree.contains(&entry(index, range[0]).0, entry(index, range[0]).1).unwrap();
            for n in &range {
                let (key, rid) = entry(index, *n);
                if go {
                    assert!(tree.delete(&key, rid).unwrap());
                } else {
                    tree.insert(&key, rid).unwrap();
                }
            }
        }
    }
}

/// Scans until all writers have ended; the number of scans.
fn scan(index: &Index, direction: Direction, working: &AtomicU32) -> u32 {
    let mut staying: Vec<_> = (0..KEYS).step_by(STAYS as usize).map(|n| entry(index, n)).collect();
    if direction == Direction::Backward {
        staying.reverse();
    }
    let mut scans = 0;
    while working.load(Ordering::Relaxed) > 0 {
        let mut expected = staying.iter();
        let mut next = expected.next();
        let mut last: Option<(Vec<u8>, Rid)> = None;
        let mut cursor = index.tree().all(direction);
        while let Some((key, rid)) = cursor.next().unwrap() {
            let now = (key.to_vec(), rid);
            let goes_on = last.is_none_or(|last| if direction == Direction::Forward { last < now } else { now < last });
            assert!(goes_on, "an entry comes twice, or late");
            if next == Some(&now) {
                next = expected.next();
            }
            last = Some(now);
        }
        assert_eq!(next, None, "an entry that was there all the time was not seen");
        scans += 1;
    }
    scans
}

#[test]
fn scans_see_what_stays_once() {
    for (format, page_bytes, memory) in [
        (IndexFormat::Plain, 2048, 64 << 20),
        (IndexFormat::Fold, 8192, 64 << 20),
        (IndexFormat::Prefix, 2048, 64 << 20),
        (IndexFormat::Plain, 2048, 1 << 20),
    ] {
        let storage = Arc::new(MemoryStorage::new());
        let database = open(&storage, OpenMode::Create, memory);
        let mut change = database.change();
        let index = create_index(&mut change, SHAPE, format, page_bytes);
        let mut model: Model = (0..KEYS).map(|n| entry(&index, n)).collect();
        for (key, rid) in &model {
            index.tree().insert(key, *rid).unwrap();
        }
        let full = index.tree().levels().unwrap()[0].pages;
        let working = AtomicU32::new(WRITERS as u32);
        let failed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (index, working, failed) = (&index, &working, &failed);
                scope.spawn(move || {
                    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| write(index, writer)));
                    failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
                    working.fetch_sub(1, Ordering::Relaxed);
                });
            }
            let scanners: Vec<_> = [Direction::Forward, Direction::Backward]
                .map(|direction| {
                    let (index, working) = (&index, &working);
                    scope.spawn(move || scan(index, direction, working))
                })
                .into_iter()
                .collect();
            for scanner in scanners {
                assert!(scanner.join().unwrap() > 0);
            }
        });
        assert!(!failed.into_inner());
        // Then all goes but what stays: leaves go with it.
        model.retain(|(key, rid)| {
            let stays = (0..KEYS).step_by(STAYS as usize).any(|n| entry(&index, n) == (key.clone(), *rid));
            if !stays {
                index.tree().delete(key, *rid).unwrap();
            }
            stays
        });
        no_faults(&index.tree(), &model);
        let left = index.tree().levels().unwrap()[0].pages;
        assert!(full > 20 && left <= 3, "{full} leaves, then {left}");
    }
}

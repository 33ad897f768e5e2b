//! Flipped bits, misplaced pages, stale pages: every one is found, nothing panics.

use crate::sample::{DB, Place, Rng, build, contents, fill, open, places, refs, run_check, sample};
use pagefold_engine::database::OpenMode;
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::table_space::{Method, TableAttributes};
use pagefold_io::MemoryStorage;
use pagefold_types::{Direction, Rid, ValueRef};
use pagefold_utility::{PrintWhat, Silent, print, report};
use std::collections::BTreeMap;
use std::path::Path;

/// Whatever a command makes of a damaged database: an answer or an error, but no panic.
fn commands_do_not_panic(storage: &MemoryStorage, damaged: &Place) {
    let _ = contents(storage);
    if let Ok(database) = open(storage, OpenMode::Read) {
        let _ = report(&database, None, &Silent).map(|r| (r.to_json().to_string(), r.to_text()));
    }
    let file = damaged.path.file_stem().unwrap().to_str().unwrap();
    for object in ["catalog", "control", "parts", "small", "parts_code", "parts_id", file] {
        for what in [PrintWhat::Header, PrintWhat::Page(damaged.number), PrintWhat::Dictionary] {
            let _ = print(storage, Path::new(DB), object, 0, what).map(|p| (p.to_json().to_string(), p.to_text()));
        }
    }
}

fn flips(count: usize, seed: u64) {
    let storage = sample();
    assert!(run_check(&storage).is_clean());
    let (used, _) = places(&storage);
    let mut rng = Rng(seed);
    for i in 0..count {
        // Every control slot and page in turn, then at random; control slots more often than their share.
        let place = if i < used.len() { &used[i] } else { &used[rng.below(used.len())] };
        let place = if i % 50 == 49 { &used[i / 50 % 2] } else { place };
        let good = place.read(&storage);
        let bit = rng.below(good.len() * 8);
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        place.write(&storage, &bad);
        let found = run_check(&storage);
        assert!(!found.is_clean(), "bit {bit} of {place:?} was not found");
        if i % 50 == 0 {
            commands_do_not_panic(&storage, place);
        }
        place.write(&storage, &good);
    }
    assert!(run_check(&storage).is_clean());
}

#[test]
fn flipped_bits_are_found() {
    flips(2_000, 1);
}

#[test]
#[ignore = "takes long; the full run"]
fn ten_thousand_flipped_bits_are_found() {
    flips(10_000, 2);
}

#[test]
fn flips_in_free_space_are_harmless() {
    let storage = sample();
    let before = contents(&storage).unwrap();
    let (_, free) = places(&storage);
    assert!(free.len() > 20);
    let mut rng = Rng(3);
    for round in 0..100 {
        for _ in 0..10 {
            let place = &free[rng.below(free.len())];
            let mut bytes = place.read(&storage);
            let bit = rng.below(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            place.write(&storage, &bytes);
        }
        let report = run_check(&storage);
        assert!(report.is_clean(), "round {round}: {}", report.to_text());
    }
    assert_eq!(contents(&storage).unwrap(), before);
}

#[test]
fn misplaced_pages_are_found() {
    let storage = sample();
    let (used, _) = places(&storage);
    let mut rng = Rng(4);
    let mut done = 0;
    while done < 600 {
        let (from, to) = (&used[rng.below(used.len())], &used[rng.below(used.len())]);
        let (bytes, good) = (from.read(&storage), to.read(&storage));
        if bytes.len() != good.len() || bytes == good {
            continue;
        }
        to.write(&storage, &bytes);
        assert!(!run_check(&storage).is_clean(), "{from:?} in the place of {to:?} was not found");
        if done % 50 == 0 {
            commands_do_not_panic(&storage, to);
        }
        to.write(&storage, &good);
        done += 1;
    }
}

/// A database and the older contents of its pages: all were whole pages in their places once.
fn with_history() -> (MemoryStorage, BTreeMap<Place, Vec<Vec<u8>>>) {
    let storage = MemoryStorage::new();
    let database = open(&storage, OpenMode::Create).unwrap();
    let mut rng = Rng(6);
    let mut change = database.change();
    let mut history: BTreeMap<Place, Vec<Vec<u8>>> = BTreeMap::new();
    let tables = [("a", Method::None, 2048), ("b", Method::Fixed, 8192)].map(|(name, method, page_bytes)| {
        let attributes = TableAttributes { method, ..TableAttributes::new(name, crate::sample::schema()).with_page_bytes(page_bytes) };
        fill(&mut change, attributes, 700, &mut rng)
    });
    let key = vec![(2, Direction::Ascending), (0, Direction::Ascending)];
    let attributes = |name: &str, format, page_bytes| IndexAttributes::new(name, key.clone(), false).with_format(format, page_bytes);
    let indexes = [
        build(&mut change, &tables[0], attributes("ai", IndexFormat::Plain, 2048), true, &mut rng),
        build(&mut change, &tables[1], attributes("bi", IndexFormat::Fold, 8192), true, &mut rng),
    ];
    for round in 0..8u64 {
        for (table, index) in tables.iter().zip(&indexes) {
            for data_set in table.partitions().chain([index.data_set()]) {
                database.manager().flush(data_set).unwrap();
            }
        }
        for place in places_without_control(&storage) {
            let bytes = place.read(&storage);
            let versions = history.entry(place).or_default();
            if versions.last() != Some(&bytes) {
                versions.push(bytes);
            }
        }
        for (table, index) in tables.iter().zip(&indexes) {
            let rids: Vec<Rid> = crate::sample::entries_of(table, index).into_iter().map(|(_, rid)| rid).collect();
            for rid in &rids {
                if rng.below(8) == 0 {
                    let words = rng.below(9);
                    table.update(*rid, &[(3, ValueRef::Text(&crate::sample::text(&mut rng, words)))]).unwrap();
                }
            }
            for id in 0..60 {
                let row = crate::sample::random_row(&mut rng, 10_000 + round as i64 * 100 + id);
                let rid = table.insert(&refs(&row)).unwrap();
                let mut entry = Vec::new();
                index.key_layout().encode_from_values(&refs(&row), &mut entry).unwrap();
                index.tree().insert(&entry, rid).unwrap();
            }
        }
    }
    change.commit().unwrap();
    drop(database);
    (storage, history)
}

/// Pages in use of the data sets that are complete; the catalog does not name them yet.
fn places_without_control(storage: &MemoryStorage) -> Vec<Place> {
    places(storage).0.into_iter().filter(|place| place.path.extension().is_some()).collect()
}

#[test]
fn stale_pages_are_found() {
    let (storage, history) = with_history();
    let report = run_check(&storage);
    assert!(report.is_clean(), "{}", report.to_text());
    let now: Vec<Place> = places(&storage).0;
    let mut stale = 0;
    for (place, versions) in &history {
        if !now.contains(place) {
            continue;
        }
        let good = place.read(&storage);
        for old in versions.iter().filter(|old| **old != good) {
            place.write(&storage, old);
            assert!(!run_check(&storage).is_clean(), "an older content of {place:?} was not found");
            if stale % 100 == 0 {
                commands_do_not_panic(&storage, place);
            }
            stale += 1;
        }
        place.write(&storage, &good);
    }
    assert!(run_check(&storage).is_clean());
    assert!(stale >= 400, "only {stale} stale pages");
}

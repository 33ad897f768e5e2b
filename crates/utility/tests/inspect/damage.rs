//! Flipped bits, misplaced pages, stale pages: every one is found, and no command panics.

use crate::commands::{all_commands, reading_commands};
use crate::sample::{Place, Rng, build, contents, fill, open, places, refs, run_check, sample};
use pagefold_engine::database::OpenMode;
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::table_space::{Method, TableAttributes};
use pagefold_io::MemoryStorage;
use pagefold_types::{Direction, Rid, ValueRef};
use std::collections::BTreeMap;

/// How thorough a run is.
#[derive(Clone, Copy)]
struct Effort {
    /// Bits flipped, pages misplaced.
    count: usize,
    /// Commands that only read are run on every so many-th damaged database, and all on every so many-th (no part of the 50 in `flips`).
    reading_every: usize,
    all_every: usize,
}

const NORMAL: Effort = Effort { count: 2_000, reading_every: 50, all_every: 499 };
const FULL: Effort = Effort { count: 10_000, reading_every: 1, all_every: 61 };

impl Effort {
    /// The full run, thinned out by `PAGEFOLD_COMMANDS_EVERY`: commands on every so many-th of the databases that would have them.
    fn full(count: usize) -> Effort {
        let every = std::env::var("PAGEFOLD_COMMANDS_EVERY").map_or(1, |n| n.parse().unwrap());
        Effort { count, reading_every: FULL.reading_every * every, all_every: FULL.all_every * every }
    }

    /// What number `i` of the damaged databases gets.
    fn commands(self, i: usize, storage: &MemoryStorage, damaged: &Place) {
        if i.is_multiple_of(self.all_every) {
            all_commands(storage, damaged);
        } else if i.is_multiple_of(self.reading_every) {
            reading_commands(storage, damaged);
        }
    }
}

/// Threads that flip bits, each in a database of its own.
const SHARDS: usize = 4;

/// Gives how many were found.
fn flips(effort: Effort, seed: u64) -> usize {
    let shard = move |shard: usize| {
        let storage = sample();
        assert!(run_check(&storage).is_clean());
        let (used, _) = places(&storage);
        let mut found = 0;
        for i in (shard..effort.count).step_by(SHARDS) {
            let mut rng = Rng((seed << 32) + i as u64);
            // Every control slot and page in turn, then at random; control slots more often than their share.
            let place = if i < used.len() { &used[i] } else { &used[rng.below(used.len())] };
            let place = if i % 50 == 49 { &used[i / 50 % 2] } else { place };
            let good = place.read(&storage);
            let bit = rng.below(good.len() * 8);
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            place.write(&storage, &bad);
            assert!(!run_check(&storage).is_clean(), "bit {bit} of {place:?} was not found");
            found += 1;
            effort.commands(i, &storage, place);
            place.write(&storage, &good);
        }
        assert!(run_check(&storage).is_clean());
        found
    };
    std::thread::scope(|scope| {
        let shards: Vec<_> = (0..SHARDS).map(|number| scope.spawn(move || shard(number))).collect();
        shards.into_iter().map(|shard| shard.join().unwrap()).sum()
    })
}

#[test]
fn flipped_bits_are_found() {
    flips(NORMAL, 1);
}

#[test]
#[ignore = "takes long; the full run"]
fn all_flipped_bits_are_found_and_no_command_panics() {
    println!("{} of {} flipped bits found", flips(Effort::full(FULL.count), 2), FULL.count);
}

#[test]
#[ignore = "takes long; the full run"]
fn all_pages_out_of_place_are_found_and_no_command_panics() {
    println!("{} of 1000 misplaced pages found", misplaced_pages(Effort::full(1_000)));
    println!("{} stale pages, all found", stale_pages(Effort::full(1_000)));
    println!("{} flips in free space, all harmless", flips_in_free_space(1_000));
}

#[test]
fn flips_in_free_space_are_harmless() {
    flips_in_free_space(100);
}

/// Ten flips a round; gives how many there were.
fn flips_in_free_space(rounds: usize) -> usize {
    let storage = sample();
    let before = contents(&storage).unwrap();
    let (_, free) = places(&storage);
    assert!(free.len() > 20);
    let mut rng = Rng(3);
    for round in 0..rounds {
        for _ in 0..10 {
            let place = &free[rng.below(free.len())];
            let mut bytes = place.read(&storage);
            let bit = rng.below(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            place.write(&storage, &bytes);
        }
        let report = run_check(&storage);
        assert!(report.is_clean(), "round {round}: {}", report.to_text(usize::MAX));
    }
    assert_eq!(contents(&storage).unwrap(), before);
    10 * rounds
}

#[test]
fn misplaced_pages_are_found() {
    misplaced_pages(Effort { count: 600, ..NORMAL });
}

/// Pages in the place of others; gives how many were found.
fn misplaced_pages(effort: Effort) -> usize {
    let storage = sample();
    let (used, _) = places(&storage);
    let mut rng = Rng(4);
    let mut done = 0;
    while done < effort.count {
        let (from, to) = (&used[rng.below(used.len())], &used[rng.below(used.len())]);
        let (bytes, good) = (from.read(&storage), to.read(&storage));
        if bytes.len() != good.len() || bytes == good {
            continue;
        }
        to.write(&storage, &bytes);
        assert!(!run_check(&storage).is_clean(), "{from:?} in the place of {to:?} was not found");
        effort.commands(done, &storage, to);
        to.write(&storage, &good);
        done += 1;
    }
    done
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
            for data_set in table.data_sets().chain([index.data_set()]) {
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
            let rids: Vec<Rid> = crate::sample::entries_of(&change.read_view(), table, index).into_iter().map(|(_, rid)| rid).collect();
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
    let stale = stale_pages(NORMAL);
    assert!(stale >= 400, "only {stale} stale pages");
}

/// Older contents of pages in their own places; gives how many were found.
fn stale_pages(effort: Effort) -> usize {
    let (storage, history) = with_history();
    let report = run_check(&storage);
    assert!(report.is_clean(), "{}", report.to_text(usize::MAX));
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
            effort.commands(stale, &storage, place);
            stale += 1;
        }
        place.write(&storage, &good);
    }
    assert!(run_check(&storage).is_clean());
    stale
}

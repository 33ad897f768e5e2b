//! SALVAGE of tables of which one page after the other is damaged: what an undamaged page holds is there, and what is damaged is named.
//!
//! The whole run, every kind of damage on every page: `PAGEFOLD_DAMAGE=all cargo test --release -p pagefold-utility --test inspect salvage -- --nocapture`

use crate::sample::{DB, Place, control_slot, file_of, open, places, sample};
use pagefold_engine::database::{OpenMode, Settings};
use pagefold_engine::pool::PoolSettings;
use pagefold_format::page::{self, PageIdentity, PageType};
use pagefold_interchange::FileFormat;
use pagefold_io::{Clock, MemoryStorage, OpenOptions, SimulatedClock, Storage, read_file};
use pagefold_utility::{SalvageReport, Salvaged, Silent, check_files, rebuild_index};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const TABLES: [&str; 4] = ["small", "parts", "wide", "short"];

/// The rows of a table that can be read, as lines.
pub(crate) fn salvage(storage: &MemoryStorage, table: &str) -> (BTreeSet<String>, SalvageReport) {
    let storage: Arc<dyn Storage> = Arc::new(storage.clone());
    let clock: Arc<dyn Clock> = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let pools = PoolSettings { memory_bytes: 8 << 20, background_threads: 0, ..PoolSettings::default() };
    let settings = Settings { pools, direct: false, ..Settings::default() };
    let salvaged = Salvaged::open(&storage, &clock, Path::new(DB), table, settings).unwrap();
    let mut bytes = Vec::new();
    let mut sink = FileFormat::JsonLines.sink(&mut bytes, salvaged.schema(), None).unwrap();
    let report = salvaged.run(Path::new(DB), sink.as_mut(), &Silent).unwrap();
    drop(sink);
    let lines: Vec<String> = String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(lines.len() as u64, report.rows);
    let rows: BTreeSet<String> = lines.into_iter().collect();
    assert_eq!(rows.len() as u64, report.rows, "no row comes twice");
    (rows, report)
}

pub(crate) fn files_of(storage: &MemoryStorage, table: &str) -> Vec<std::path::PathBuf> {
    let database = open(storage, OpenMode::Read).unwrap();
    database.table(table).unwrap().data_sets().map(|data_set| file_of(data_set.file_id())).collect()
}

fn page_type(storage: &MemoryStorage, place: &Place) -> PageType {
    let file_id = pagefold_engine::file_id_of(&place.path).unwrap();
    let identity = PageIdentity { database_id: control_slot(storage).database_id, file_id, page_number: place.number };
    page::verify(&place.read(storage), &identity).unwrap()
}

/// The ids of the rows that lack, and none that was not there; rows may come with a value that was not whole.
fn lacking(all: &BTreeSet<String>, found: &BTreeSet<String>, report: &SalvageReport) -> BTreeSet<i64> {
    let id = |row: &String| row.split(['{', ':', ',']).nth(2).unwrap().trim().parse::<i64>().unwrap();
    let changed = found.difference(all).count();
    assert!(changed <= report.values.len(), "{changed} rows are none that there were; {} values are said to lack", report.values.len());
    let (all, found): (BTreeSet<i64>, BTreeSet<i64>) = (all.iter().map(id).collect(), found.iter().map(id).collect());
    assert!(found.is_subset(&all));
    all.difference(&found).copied().collect()
}

#[derive(Default, Debug)]
struct Counts {
    damaged: u64,
    lacking: u64,
    values: u64,
}

fn damage_each_page(table: &str, whole_run: bool) -> Counts {
    let storage = sample();
    let (all, report) = salvage(&storage, table);
    assert!(report.is_whole(), "{table}: {report:?}");
    let files = files_of(&storage, table);
    let pages: Vec<Place> = places(&storage).0.into_iter().filter(|place| files.contains(&place.path)).collect();
    let mut counts = Counts::default();
    // Each row lies on one page: so all pages together hold each row once.
    let mut of_pages: BTreeMap<(std::path::PathBuf, u32), BTreeSet<i64>> = BTreeMap::new();
    for (turn, place) in pages.iter().enumerate() {
        let (good, kind) = (place.read(&storage), page_type(&storage, place));
        let kinds: &[u8] = if whole_run { &[0, 1, 2] } else { &[[0], [1]][turn % 2] };
        for how in kinds {
            match how {
                0 => {
                    let mut bad = good.clone();
                    bad[(turn * 37 + 5) % good.len()] ^= 1 << (turn % 8);
                    place.write(&storage, &bad);
                }
                1 => place.write(&storage, &vec![0; good.len()]),
                _ => place.write(&storage, &vec![0xA5; good.len()]),
            }
            let (found, report) = salvage(&storage, table);
            counts.damaged += 1;
            let named = |number: u32| report.damage.iter().any(|e| e.page == number);
            assert!(named(place.number), "{table}, {place:?}, {how}: not named in {:?}", report.damage);
            let lacks = lacking(&all, &found, &report);
            counts.values += report.values.len() as u64;
            match kind {
                PageType::Header | PageType::SpaceMap => assert!(lacks.is_empty(), "{table}, {place:?}: {} rows lack", lacks.len()),
                PageType::LargeValue => {
                    assert!(lacks.is_empty() && !report.values.is_empty(), "{table}, {place:?}: {} rows lack", lacks.len());
                }
                PageType::Data => {
                    // An index tells which they are.
                    let told: u64 = report.lost.iter().map(|lost| lost.rows).sum();
                    assert_eq!(told, lacks.len() as u64, "{table}, {place:?}: {:?}", report.lost);
                    let before = of_pages.entry((place.path.clone(), place.number)).or_insert_with(|| lacks.clone());
                    assert_eq!(*before, lacks, "{table}, {place:?}");
                }
                _ => {}
            }
        }
        place.write(&storage, &good);
    }
    let lost: Vec<i64> = of_pages.values().flatten().copied().collect();
    counts.lacking = lost.len() as u64;
    assert_eq!(lost.len(), all.len(), "{table}: each row lacks when its page is damaged, and only then");
    assert_eq!(lost.into_iter().collect::<BTreeSet<_>>().len(), all.len());
    // Two pages in each other's places: both are missing, and nothing else.
    let data: Vec<&Place> = pages.iter().filter(|place| of_pages.contains_key(&(place.path.clone(), place.number))).collect();
    for pair in data.chunks_exact(2).step_by(if whole_run { 1 } else { 4 }) {
        let (a, b) = (pair[0].read(&storage), pair[1].read(&storage));
        pair[0].write(&storage, &b);
        pair[1].write(&storage, &a);
        let (found, report) = salvage(&storage, table);
        let expected: BTreeSet<i64> = pair.iter().flat_map(|place| &of_pages[&(place.path.clone(), place.number)]).copied().collect();
        assert_eq!(lacking(&all, &found, &report), expected, "{table}: {pair:?} in each other's places");
        pair[0].write(&storage, &a);
        pair[1].write(&storage, &b);
        counts.damaged += 1;
    }
    // A file that is cut off, or is not there.
    for path in &files {
        let content = read_file(&storage, path, 1 << 30).unwrap();
        let page_bytes = pages.iter().find(|place| place.path == *path).unwrap().bytes;
        // Extents behind the last page in use are nothing that can lack.
        let count = 1 + pages.iter().filter(|place| place.path == *path).map(|place| place.number as usize).max().unwrap();
        for keep in (0..count).step_by(if whole_run { 1 } else { 1 + count / 5 }) {
            storage.open(path, &OpenOptions::read_write()).unwrap().set_len((keep * page_bytes + 100) as u64).unwrap();
            let (found, report) = salvage(&storage, table);
            let behind = of_pages.iter().filter(|((of, number), _)| of == path && *number >= keep as u32);
            let expected: BTreeSet<i64> = behind.flat_map(|(_, rows)| rows).copied().collect();
            let lacks = lacking(&all, &found, &report);
            // A dictionary that was cut off takes rows along.
            assert!(lacks.is_superset(&expected) && !report.is_whole(), "{table}, {path:?} cut to {keep} pages");
            if ["small", "short"].contains(&table) {
                assert_eq!(lacks, expected, "{table}, {path:?} cut to {keep} pages");
            }
            storage.open(path, &OpenOptions::read_write()).unwrap().write_at(&content, 0).unwrap();
            counts.damaged += 1;
        }
        storage.remove(path).unwrap();
        let (found, report) = salvage(&storage, table);
        let of_file: BTreeSet<i64> = of_pages.iter().filter(|((of, _), _)| of == path).flat_map(|(_, rows)| rows).copied().collect();
        assert_eq!(lacking(&all, &found, &report), of_file, "{table} without {path:?}");
        assert!(!report.is_whole());
        storage.open(path, &OpenOptions::create_new()).unwrap().write_at(&content, 0).unwrap();
        counts.damaged += 1;
    }
    let (found, report) = salvage(&storage, table);
    assert!(found == all && report.is_whole(), "{table}, when all is as it was: {report:?}");
    counts
}

#[test]
fn salvage_delivers_what_undamaged_pages_hold() {
    let whole_run = std::env::var("PAGEFOLD_DAMAGE").is_ok_and(|what| what == "all");
    for table in TABLES {
        if std::env::var("PAGEFOLD_DAMAGE_TABLE").is_ok_and(|only| only != table) {
            continue;
        }
        println!("{table}: {:?}", damage_each_page(table, whole_run));
    }
}

/// Whatever is damaged of an index but its header and map, it is built anew.
#[test]
fn an_index_with_damaged_pages_is_rebuilt() {
    let storage = sample();
    let mut rebuilt = 0;
    for name in ["small_id", "small_code", "parts_code", "parts_both", "wide_amount"] {
        let file = {
            let database = open(&storage, OpenMode::Read).unwrap();
            file_of(database.index(name).unwrap().data_set().file_id())
        };
        let pages: Vec<Place> = places(&storage).0.into_iter().filter(|place| place.path == file && place.number > 1).collect();
        for place in pages.iter().step_by(1 + pages.len() / 4) {
            let damaged = storage.snapshot();
            place.write(&damaged, &vec![0x5A; place.bytes]);
            assert!(!check_files(&damaged, Path::new(DB), &Silent).unwrap().is_clean());
            let database = open(&damaged, OpenMode::Write).unwrap();
            let rows = database.table_of(&database.index(name).unwrap()).unwrap().row_count();
            assert_eq!(rebuild_index(&database, name, 1 << 20, &Silent).unwrap().rids, rows);
            database.close().unwrap();
            let report = check_files(&damaged, Path::new(DB), &Silent).unwrap();
            assert!(report.is_clean(), "{name}, {place:?}: {}", report.to_text(usize::MAX));
            rebuilt += 1;
        }
    }
    println!("{rebuilt} indexes rebuilt");
    assert!(rebuilt >= 10);
}

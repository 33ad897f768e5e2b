//! Copies are checked and printed as they are; what is damaged of one is found, page by page.

use crate::sample::{DB, Rng, open, print_from, run_check, sample, settings};
use pagefold_engine::backup::{MountOptions, MountedCopy, RecoverOptions, copy_tables_to_file, copy_to_file};
use pagefold_engine::database::{OpenMode, TransactionOptions};
use pagefold_format::copy::{COPY_BLOCK_HEADER_BYTES, COPY_HEADER_BYTES, CopyBlock};
use pagefold_format::page;
use pagefold_io::{Clock, MemoryStorage, OpenOptions, SimulatedClock, Storage, read_file};
use pagefold_types::ValueRef;
use pagefold_utility::{CheckReport, DatabaseFiles, PrintWhat, Printed, RecoverTablesOptions, Silent, check_copies, print, recover_tables};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const COPY: &str = "copy.pfc";

fn clock() -> Arc<dyn Clock> {
    Arc::new(SimulatedClock::new(Duration::from_secs(1)))
}

fn shared(storage: &MemoryStorage) -> Arc<dyn Storage> {
    Arc::new(storage.clone())
}

/// The sample, a transaction that its files do not have yet, and a whole copy.
fn copied() -> MemoryStorage {
    let storage = sample();
    let database = open(&storage, OpenMode::Write).unwrap();
    let small = database.table("small").unwrap();
    let mut transaction = database.begin(TransactionOptions::default());
    let row = [ValueRef::Int(5_000_000), ValueRef::Null, ValueRef::Text("code"), ValueRef::Text("in the log alone"), ValueRef::Null];
    transaction.insert(&small, &row).unwrap();
    transaction.commit().unwrap();
    copy_to_file(&shared(&storage), &clock(), Path::new(DB), Path::new(COPY), None, &Silent).unwrap();
    database.close().unwrap();
    storage
}

fn check(storage: &MemoryStorage, copies: &[&str]) -> CheckReport {
    let copies: Vec<PathBuf> = copies.iter().map(PathBuf::from).collect();
    check_copies(&shared(storage), &clock(), &copies, settings(), &Silent).unwrap()
}

fn print_copy(storage: &MemoryStorage, object: &str, what: PrintWhat) -> pagefold_utility::Result<Printed> {
    let copy = MountedCopy::open(&shared(storage), &clock(), &[COPY.into()], &MountOptions::default(), &Silent)?;
    let clock = clock();
    let files = DatabaseFiles { storage: &copy.storage(), clock: &clock, directory: copy.directory(), settings: settings() };
    print(&files, object, 0, what)
}

/// A page in a copy.
#[derive(Clone, Copy, Debug)]
struct CopiedPage {
    file_id: u32,
    number: u32,
    at: usize,
    bytes: usize,
}

/// Where pages lie in a copy, and where blocks begin.
fn places(copy: &[u8]) -> (Vec<CopiedPage>, Vec<usize>) {
    let (mut pages, mut blocks, mut at) = (Vec::new(), Vec::new(), COPY_HEADER_BYTES);
    while at < copy.len() {
        let (block, bytes) = CopyBlock::parse(copy[at..].first_chunk().unwrap()).unwrap();
        blocks.push(at);
        at += COPY_BLOCK_HEADER_BYTES;
        if let CopyBlock::Pages { file_id, page_bytes, first } = block {
            let page_bytes = page_bytes as usize;
            pages.extend((0..bytes / page_bytes).map(|i| CopiedPage {
                file_id,
                number: first + i as u32,
                at: at + i * page_bytes,
                bytes: page_bytes,
            }));
        }
        at += bytes;
    }
    (pages, blocks)
}

fn bytes_of(storage: &MemoryStorage, path: &str) -> Vec<u8> {
    read_file(storage, Path::new(path), 1 << 30).unwrap()
}

fn flip(storage: &MemoryStorage, path: &str, at: usize, bits: u8) {
    let file = storage.open(Path::new(path), &OpenOptions::read_write()).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, at as u64).unwrap();
    file.write_at(&[byte[0] ^ bits], at as u64).unwrap();
}

#[test]
fn a_copy_is_checked_as_the_database_that_it_makes() {
    let storage = copied();
    let (found, own) = (check(&storage, &[COPY]), run_check(&storage));
    assert!(found.is_clean() && own.is_clean(), "{found:?} {own:?}");
    assert_eq!((found.rows, found.index_entries), (own.rows, own.index_entries));
    // Nothing is left of that, and nothing is made.
    let names: Vec<PathBuf> = storage.list(Path::new("")).unwrap();
    assert_eq!(names, [PathBuf::from(COPY), PathBuf::from(DB)]);
    // A copy that goes on from it, alone and behind it.
    let database = open(&storage, OpenMode::Write).unwrap();
    let mut transaction = database.begin(TransactionOptions::default());
    let parts = database.table("parts").unwrap();
    for n in 0..300 {
        let row = [ValueRef::Int(6_000_000 + n), ValueRef::Null, ValueRef::Text("code"), ValueRef::Text("later"), ValueRef::Null];
        transaction.insert(&parts, &row).unwrap();
    }
    transaction.commit().unwrap();
    database.copy(Path::new("later.pfc"), Some(Path::new(COPY)), &Silent).unwrap();
    drop(database);
    let later = check(&storage, &[COPY, "later.pfc"]);
    assert!(later.is_clean() && later.rows == found.rows + 300, "{later:?}");
    let copies: [&[&str]; 2] = [&["later.pfc"], &["later.pfc", COPY]];
    for copies in copies {
        let copies: Vec<PathBuf> = copies.iter().map(PathBuf::from).collect();
        let refused = check_copies(&shared(&storage), &clock(), &copies, settings(), &Silent).unwrap_err();
        assert!(refused.to_string().contains("later.pfc: it goes on from copy"), "{refused}");
    }
}

#[test]
fn a_copy_of_some_tables_is_checked_for_these() {
    let storage = copied();
    let whole = check(&storage, &[COPY]);
    let mut rows = 0;
    for table in ["small", "parts", "wide", "short", "empty"] {
        let path = format!("{table}.pfc");
        copy_tables_to_file(&shared(&storage), &clock(), Path::new(DB), Path::new(&path), &[table.into()], None, &Silent).unwrap();
        let found = check(&storage, &[&path]);
        assert!(found.is_clean() && found.pages < whole.pages, "{table}: {found:?}");
        rows += found.rows;
        // It is no copy of the others.
        let options = MountOptions { tables: vec!["gone".into()], ..MountOptions::default() };
        let refused = MountedCopy::open(&shared(&storage), &clock(), &[path.into()], &options, &Silent).unwrap_err().to_string();
        assert!(refused.contains("does not have table \"gone\"") && refused.contains(table), "{refused}");
    }
    assert_eq!(rows, whole.rows);
    let names: Vec<String> = ["wide", "small", "wide"].map(String::from).to_vec();
    copy_tables_to_file(&shared(&storage), &clock(), Path::new(DB), Path::new("two.pfc"), &names, None, &Silent).unwrap();
    assert!(check(&storage, &["two.pfc"]).is_clean());
    let nothing = copy_tables_to_file(&shared(&storage), &clock(), Path::new(DB), Path::new("x.pfc"), &["smal".into()], None, &Silent);
    assert!(nothing.unwrap_err().to_string().contains("no table \"smal\""));
    // A table that is damaged is in nobody's way but its own.
    let database = open(&storage, OpenMode::Read).unwrap();
    let file_id = database.table("wide").unwrap().data_sets().next().unwrap().file_id();
    drop(database);
    flip(&storage, crate::sample::file_of(file_id).to_str().unwrap(), 100, 4);
    let copy = |table: &str| {
        let path = format!("again-{table}.pfc");
        copy_tables_to_file(&shared(&storage), &clock(), Path::new(DB), Path::new(&path), &[table.into()], None, &Silent)
    };
    copy("small").unwrap();
    let refused = copy("wide").unwrap_err().to_string();
    assert!(refused.contains("wide"), "{refused}");
}

#[test]
fn every_page_of_a_copy_is_printed_as_it_is_in_the_database() {
    let storage = copied();
    let copy = bytes_of(&storage, COPY);
    let mounted = MountedCopy::open(&shared(&storage), &clock(), &[COPY.into()], &MountOptions::default(), &Silent).unwrap();
    let clock = clock();
    let files = DatabaseFiles { storage: &mounted.storage(), clock: &clock, directory: mounted.directory(), settings: settings() };
    let mut types: BTreeMap<String, usize> = BTreeMap::new();
    for place in places(&copy).0.iter().step_by(2) {
        let object = format!("{:08x}", place.file_id);
        let own = print(&files, &object, 0, PrintWhat::Page(place.number)).unwrap().to_json();
        let here = &copy[place.at..place.at + place.bytes];
        // The catalog has another file by now.
        let there = read_file(&storage, &crate::sample::file_of(place.file_id), 1 << 30).unwrap_or_default();
        let there = there.get(place.number as usize * place.bytes..).and_then(|rest| rest.get(..place.bytes));
        assert_eq!((own["page"].as_u64(), own["structure"].as_str()), (Some(place.number.into()), Some("valid")), "{place:?}: {own}");
        // Where the page has not been written since.
        if there == Some(here) {
            let database = print_from(&storage, &object, PrintWhat::Page(place.number)).unwrap().to_json();
            assert_eq!(own, database, "{place:?}");
        }
        *types.entry(own["header"]["type"].as_str().unwrap().into()).or_default() += 1;
    }
    assert_eq!(types.len(), 9, "not all page types: {types:?}");
    for (object, what) in [("control", PrintWhat::Header), ("catalog", PrintWhat::Page(2)), ("parts", PrintWhat::Dictionary)] {
        assert!(!print_copy(&storage, object, what).unwrap().to_text().is_empty());
    }
    assert!(print_copy(&storage, "nothing", PrintWhat::Header).unwrap_err().to_string().contains("there are: "));
}

#[test]
fn damage_of_a_copy_is_found_and_printed_as_far_as_it_makes_sense() {
    let whole = copied();
    let copy = bytes_of(&whole, COPY);
    let mut rng = Rng(11);
    // Of each page type some pages, each with some bytes that are not as they were.
    let mut of_type: BTreeMap<u8, Vec<CopiedPage>> = BTreeMap::new();
    for place in places(&copy).0 {
        of_type.entry(page::page_type(&copy[place.at..]).unwrap() as u8).or_default().push(place);
    }
    assert_eq!(of_type.len(), 9, "not all page types");
    let mut structures = BTreeSet::new();
    for (kind, pages) in &of_type {
        for _ in 0..10 {
            let place = pages[rng.below(pages.len())];
            let storage = whole.snapshot();
            for _ in 0..=rng.below(3) {
                // The header of the page, or all of it.
                let within = if rng.below(3) == 0 { rng.below(40) } else { rng.below(place.bytes) };
                flip(&storage, COPY, place.at + within, 1 << rng.below(8));
            }
            if bytes_of(&storage, COPY) == copy {
                continue;
            }
            let found = check(&storage, &[COPY]);
            let named = found.errors.iter().any(|e| e.page == place.number && e.object.contains(&format!("{:08x}", place.file_id)));
            assert!(named, "page type {kind}, {place:?}: {found:?}");
            let printed = print_copy(&storage, &format!("{:08x}", place.file_id), PrintWhat::Page(place.number));
            if let Ok(printed) = printed {
                let json = printed.to_json();
                // Only the checksum can be whole again by itself: then it is not this page.
                assert!(!json["header"]["checksum"].as_str().unwrap().ends_with(", matches"), "{json}");
                assert!(json["bytes"].is_array() && !printed.to_text().is_empty(), "{json}");
                structures.insert((*kind, json["structure"] == "valid"));
            }
        }
    }
    // In most types some damage shows in the structure, too.
    assert!(structures.iter().filter(|(_, valid)| !valid).count() >= 5, "{structures:?}");
}

#[test]
fn blocks_that_are_damaged_are_named() {
    let whole = copied();
    let copy = bytes_of(&whole, COPY);
    let (_, blocks) = places(&copy);
    let (manifest, others) = blocks.split_last().unwrap();
    let mut rng = Rng(3);
    for block in others.iter().step_by(others.len().div_ceil(12)) {
        let at = block + rng.below(COPY_BLOCK_HEADER_BYTES);
        let storage = whole.snapshot();
        flip(&storage, COPY, at, 1 << rng.below(8));
        let found = check(&storage, &[COPY]);
        assert!(found.errors.iter().any(|e| e.object.starts_with(COPY)), "block at {block}, byte {at}: {found:?}");
    }
    for at in [0, 9, 17, 30, 41, *manifest, manifest + 20, copy.len() - 1] {
        let storage = whole.snapshot();
        flip(&storage, COPY, at, 1);
        let refused = check_copies(&shared(&storage), &clock(), &[COPY.into()], settings(), &Silent).unwrap_err().to_string();
        assert!(refused.contains(COPY), "byte {at}: {refused}");
    }
}

#[test]
fn an_index_that_is_damaged_in_the_copy_is_built_and_a_table_is_refused() {
    let whole = copied();
    let database = open(&whole, OpenMode::Read).unwrap();
    let index = database.index("small_code").unwrap().data_set().file_id();
    let table = database.table("small").unwrap().data_sets().next().unwrap().file_id();
    drop(database);
    let copy = bytes_of(&whole, COPY);
    let used = crate::sample::places(&whole).0;
    for (file_id, builds) in [(index, true), (table, false)] {
        let path = crate::sample::file_of(file_id);
        let is_used = |place: &CopiedPage| used.iter().any(|own| own.path == path && own.number == place.number);
        for place in places(&copy).0.into_iter().filter(|place| place.file_id == file_id && is_used(place)).step_by(4) {
            let storage = whole.snapshot();
            flip(&storage, COPY, place.at + place.bytes / 2, 8);
            let database = open(&storage, OpenMode::Write).unwrap();
            let recover =
                RecoverTablesOptions { recover: RecoverOptions::default(), replace: false, settings: settings(), sort_bytes: 1 << 20 };
            let seam = (&shared(&storage), &clock());
            let done = recover_tables(&database, seam, Path::new(DB), &["small".into()], &[COPY.into()], &recover, &Silent);
            match done {
                Ok(done) if builds => assert_eq!(done.tables[0].built_indexes, ["small_code"], "{place:?}"),
                Err(error) if !builds => {
                    assert!(error.to_string().contains("page") || error.to_string().contains("damaged"), "{place:?}: {error}")
                }
                other => panic!("{place:?}: {other:?}"),
            }
            database.close().unwrap();
            let found = run_check(&storage);
            assert!(found.is_clean(), "{place:?}: {found:?}");
        }
    }
}

//! Pages that are valid by themselves and wrong together: sealed anew, so that no checksum tells.

use crate::sample::{DB, Place, control_slot, file_of, open, places, print_from, run_check, sample};
use pagefold_codec::splice::Splice;
use pagefold_engine::database::OpenMode;
use pagefold_format::control::CONTROL_SLOT_BYTES;
use pagefold_format::data::{DataOp, DataPage, Stored};
use pagefold_format::index::leaf::{self, Leaf};
use pagefold_format::index::ops::LeafOp;
use pagefold_format::op::PageOp;
use pagefold_format::page::{self, PageIdentity, PageType, put_u32};
use pagefold_format::space_map::{CLASS_NO_ROWS, CLASS_UNALLOCATED, SpaceWord};
use pagefold_io::{MemoryStorage, OpenOptions, Storage};
use pagefold_types::Rid;
use pagefold_utility::{Error, PrintWhat, Silent, check_files, report};
use std::path::Path;

struct Pages {
    storage: MemoryStorage,
    database_id: u128,
    file_id: u32,
    places: Vec<Place>,
}

impl Pages {
    /// The pages of a table's first partition, or of an index.
    fn of(storage: &MemoryStorage, object: &str) -> Pages {
        let database = open(storage, OpenMode::Read).unwrap();
        let file_id = match database.table(object) {
            Ok(table) => table.data_sets().next().unwrap().file_id(),
            Err(_) => database.index(object).unwrap().data_set().file_id(),
        };
        let places = places(storage).0.into_iter().filter(|place| place.path == file_of(file_id)).collect();
        Pages { storage: storage.clone(), database_id: control_slot(storage).database_id, file_id, places }
    }

    fn pages_of_type(&self, wanted: PageType) -> Vec<(u32, Vec<u8>)> {
        let all = self.places.iter().map(|place| (place.number, place.read(&self.storage)));
        all.filter(|(_, bytes)| page::page_type(bytes) == Some(wanted)).collect()
    }

    fn write(&self, number: u32, bytes: &mut [u8]) {
        page::seal(bytes, &PageIdentity { database_id: self.database_id, file_id: self.file_id, page_number: number });
        let place = self.places.iter().find(|place| place.number == number).unwrap();
        place.write(&self.storage, bytes);
    }
}

/// Checks that an error of this object says this, and that reading the rest does not panic.
fn expect(storage: &MemoryStorage, object: &str, reason: &str) {
    let found = run_check(storage);
    assert!(
        found.errors.iter().any(|e| e.object.starts_with(object) && e.reason.contains(reason)),
        "{object}: \"{reason}\" is not in\n{}",
        found.to_text(usize::MAX)
    );
}

#[test]
fn an_entry_that_is_missing() {
    for index in ["small_id", "small_code", "wide_more"] {
        let storage = sample();
        let pages = Pages::of(&storage, index);
        let (number, mut bytes) = pages.pages_of_type(PageType::Leaf).pop().unwrap();
        let entry = Leaf::new(&bytes).entry(3);
        let (key, rid) = (entry.key.to_vec(), leaf::rid(&entry, 0));
        PageOp::Leaf(LeafOp::Remove { key: &key, rid }).apply(&mut bytes).unwrap();
        pages.write(number, &mut bytes);
        let table = format!("table \"{}\"", index.split('_').next().unwrap());
        expect(&storage, &table, &format!("row {rid} has no entry"));
        expect(&storage, &format!("index \"{index}\""), "RIDs, the header says");
    }
}

#[test]
fn an_entry_without_row() {
    let storage = sample();
    let pages = Pages::of(&storage, "small_code");
    let (number, mut bytes) = pages.pages_of_type(PageType::Leaf).pop().unwrap();
    let key = Leaf::new(&bytes).entry(1).key.to_vec();
    let rid = Rid::new(0, 1_000_000, 1);
    PageOp::Leaf(LeafOp::Insert { key: &key, rid }).apply(&mut bytes).unwrap();
    pages.write(number, &mut bytes);
    expect(&storage, "index \"small_code\"", &format!("of row {rid}: no such row"));
}

#[test]
fn a_row_with_another_key() {
    let storage = sample();
    let pages = Pages::of(&storage, "small");
    let (number, mut bytes) = pages.pages_of_type(PageType::Data).swap_remove(2);
    let view = DataPage::new(&bytes);
    let home = |slot: &u16| view.row(*slot).is_some_and(|row| matches!(Stored::parse(row, 0), Ok(Stored::Home(_))) && row.bytes.len() > 20);
    let slot = (0..view.slot_count()).find(home).unwrap();
    // The NULL bitmap takes one byte; the id follows.
    DataOp::Splice { slot, splice: Splice::of_bytes(1, 8, &77_777i64.to_le_bytes()) }.apply(&mut bytes).unwrap();
    pages.write(number, &mut bytes);
    expect(&storage, "index \"small_id\"", &format!("of row {}: the row has the key (77777)", Rid::new(0, number, slot)));
}

#[test]
fn a_pointer_to_nowhere() {
    let storage = sample();
    let pages = Pages::of(&storage, "small");
    let mut done = false;
    for (number, mut bytes) in pages.pages_of_type(PageType::Data) {
        let view = DataPage::new(&bytes);
        let forward = |slot: &u16| view.row(*slot).is_some_and(|row| matches!(Stored::parse(row, 0), Ok(Stored::Forward(_))));
        let Some(slot) = (0..view.slot_count()).find(forward) else { continue };
        let mut other = Vec::new();
        let kind = Stored::Forward(Rid::new(0, number, 4000)).build(0, &mut other);
        DataOp::Replace { slot, kind, bytes: &other }.apply(&mut bytes).unwrap();
        pages.write(number, &mut bytes);
        done = true;
        break;
    }
    assert!(done, "no row has moved");
    expect(&storage, "table \"small\"", "but it is not");
    expect(&storage, "table \"small\"", "which does not point to it");
}

fn change_word(pages: &Pages, number: u32, change: impl Fn(SpaceWord) -> SpaceWord) {
    let (map, mut bytes) = pages.pages_of_type(PageType::SpaceMap).swap_remove(0);
    let at = page::HEADER_BYTES + 4 * (number - map) as usize;
    let word = SpaceWord(page::get_u32(&bytes, at));
    put_u32(&mut bytes, at, change(word).0);
    pages.write(map, &mut bytes);
}

#[test]
fn a_space_map_that_is_wrong() {
    let storage = sample();
    let pages = Pages::of(&storage, "wide");
    let (number, _) = pages.pages_of_type(PageType::Data).swap_remove(1);
    change_word(&pages, number, |word| SpaceWord::new(word.class() ^ 1, word.write_counter()));
    expect(&storage, "table \"wide\"", "free-space class");
    let storage = sample();
    let pages = Pages::of(&storage, "small_code");
    let (number, _) = pages.pages_of_type(PageType::Leaf).swap_remove(1);
    change_word(&pages, number, |word| SpaceWord::new(CLASS_UNALLOCATED, word.write_counter()));
    expect(&storage, "index \"small_code\"", "which the space map has as free");
    // A page that was given back, and of which the map says that it is in use.
    let storage = sample();
    let leaked = ["small", "parts", "wide", "small_code", "parts_id"].iter().any(|object| {
        let pages = Pages::of(&storage, object);
        let (map, bytes) = pages.pages_of_type(PageType::SpaceMap).swap_remove(0);
        let words: Vec<SpaceWord> = pagefold_format::space_map::words(&bytes).unwrap().collect();
        let free = words.iter().position(|word| word.class() == CLASS_UNALLOCATED && word.write_counter() > 0);
        let Some(free) = free else { return false };
        change_word(&pages, map + free as u32, |word| SpaceWord::new(CLASS_NO_ROWS, word.write_counter()));
        expect(&storage, "", "leaked space");
        true
    });
    assert!(leaked, "no page was given back");
}

#[test]
fn a_leaf_that_links_elsewhere() {
    let storage = sample();
    let pages = Pages::of(&storage, "small_id");
    let (number, mut bytes) = pages.pages_of_type(PageType::Leaf).swap_remove(1);
    PageOp::Leaf(LeafOp::SetNext { next: number }).apply(&mut bytes).unwrap();
    pages.write(number, &mut bytes);
    expect(&storage, "index \"small_id\"", &format!("says that page {number} follows"));
}

#[test]
fn two_rows_that_share_a_large_value() {
    let storage = sample();
    let pages = Pages::of(&storage, "small");
    let layout = pagefold_types::RowLayout::new(&crate::sample::schema()).unwrap();
    let mut first: Option<Vec<u8>> = None;
    for (number, mut bytes) in pages.pages_of_type(PageType::Data) {
        let view = DataPage::new(&bytes);
        let mut found = None;
        for slot in 0..view.slot_count() {
            let Some(Ok(Stored::Home(pagefold_format::data::Body::Plain(record)))) = view.row(slot).map(|row| Stored::parse(row, 0)) else {
                continue;
            };
            if let Some((_, reference)) = layout.large_values(record).unwrap_or_default().first() {
                let reference = reference.to_bytes().to_vec();
                let at = record.windows(16).position(|w| w == reference).unwrap();
                found = Some((slot, at, reference));
                break;
            }
        }
        let Some((slot, at, reference)) = found else { continue };
        let Some(other) = &first else {
            first = Some(reference);
            continue;
        };
        DataOp::Splice { slot, splice: Splice::of_bytes(at, other.len(), other) }.apply(&mut bytes).unwrap();
        pages.write(number, &mut bytes);
        expect(&storage, "table \"small\"", "which something else names too");
        return;
    }
    panic!("no two pages with large values");
}

#[test]
fn files_that_nobody_names_or_that_are_gone() {
    let storage = sample();
    storage.open(&file_of(999), &OpenOptions::create_new()).unwrap().write_at(&[1; 100], 0).unwrap();
    storage.open(&Path::new(DB).join("data/x.tmp"), &OpenOptions::create_new()).unwrap();
    storage.open(&Path::new(DB).join("data/notes"), &OpenOptions::create_new()).unwrap();
    let report = run_check(&storage);
    assert!(report.is_clean(), "they are harmless: {}", report.to_text(usize::MAX));
    let named: Vec<&str> = report.leftovers.iter().map(|leftover| leftover.path.as_str()).collect();
    assert_eq!(named, ["db/data/000003e7.pfd", "db/data/notes", "db/data/x.tmp"]);
    storage.remove(&Path::new(DB).join("data/notes")).unwrap();
    // The next writer removes them.
    drop(open(&storage, OpenMode::Write).unwrap());
    assert!(run_check(&storage).leftovers.is_empty());
    let pages = Pages::of(&storage, "small_id");
    storage.remove(&file_of(pages.file_id)).unwrap();
    expect(&storage, "index \"small_id\"", "000000");
}

#[test]
fn control_slots() {
    let storage = sample();
    let path = Path::new(DB).join("control");
    let control = Place { path, offset: 0, bytes: 2 * CONTROL_SLOT_BYTES, number: 0 };
    let good = control.read(&storage);
    let current = control_slot(&storage);
    let old = 1 - (current.sequence % 2) as usize;
    // The slot that is not in use may be empty, but not put back to the state before.
    let mut bad = good.clone();
    bad[old * CONTROL_SLOT_BYTES..][..CONTROL_SLOT_BYTES].fill(0);
    control.write(&storage, &bad);
    assert!(run_check(&storage).is_clean());
    let mut older = current;
    older.sequence -= 3;
    bad[old * CONTROL_SLOT_BYTES..][..CONTROL_SLOT_BYTES].copy_from_slice(&older.build());
    control.write(&storage, &bad);
    expect(&storage, "control file", "a lost write");
    // The slot in use: the state before has the same catalog.
    let mut bad = good.clone();
    bad[(1 - old) * CONTROL_SLOT_BYTES + 9] ^= 4;
    control.write(&storage, &bad);
    expect(&storage, "control file", "checksum does not match");
    assert_eq!(open(&storage, OpenMode::Read).unwrap().table_names(), open(&sample(), OpenMode::Read).unwrap().table_names());
    // Both.
    bad[old * CONTROL_SLOT_BYTES + 100] ^= 1;
    control.write(&storage, &bad);
    expect(&storage, "control file", "no slot is whole");
    for object in ["control", "00000001", "catalog"] {
        let _ = print_from(&storage, object, PrintWhat::Page(0));
    }
    // A newer format is not touched, and a directory without database is none.
    let nowhere = check_files(&storage, Path::new("nowhere"), &Silent);
    assert!(matches!(nowhere, Err(Error::Engine(pagefold_engine::Error::NotADatabase(_)))));
    control.write(&storage, &good);
    assert!(run_check(&storage).is_clean());
}

#[test]
fn print_and_report_say_what_there_is() {
    let storage = sample();
    let say = |object: &str, what: PrintWhat| print_from(&storage, object, what).unwrap();
    let header = say("small", PrintWhat::Header).to_json();
    assert_eq!(header["data_set"]["kind"], "table");
    let database = open(&storage, OpenMode::Read).unwrap();
    assert_eq!(header["data_set"]["rows"], database.table("small").unwrap().row_count());
    let fixed = say("parts", PrintWhat::Dictionary).to_json();
    assert!(fixed["dictionary"]["type"].as_str().unwrap().starts_with('F') && fixed["dictionary"]["nodes"].as_u64().unwrap() > 256);
    assert!(fixed["dictionary"]["most_frequent"][0]["occurrences"].as_u64().unwrap() > 10);
    let huffman = say("wide", PrintWhat::Dictionary).to_json();
    assert!(huffman["dictionary"]["type"].as_str().unwrap().starts_with('H'));
    assert_eq!(huffman["dictionary"]["most_frequent"][0]["code_bits"], huffman["dictionary"]["code_lengths"][0]["bits"]);
    assert!(print_from(&storage, "small", PrintWhat::Dictionary).is_err());
    assert!(print_from(&storage, "nobody", PrintWhat::Header).unwrap_err().to_string().contains("small_code"));
    assert!(print_from(&storage, "small", PrintWhat::Page(9999)).is_err());
    for object in ["small", "parts", "wide", "short", "small_id", "parts_code", "wide_amount", "catalog"] {
        let pages = header_pages(&storage, object);
        for number in 0..pages {
            let printed = say(object, PrintWhat::Page(number));
            let json = printed.to_json();
            if json["structure"] != "valid" {
                assert!(json["header"]["checksum"].as_str().unwrap().contains("never written") || json["structure"].is_null(), "{json}");
            }
            assert!(printed.to_text().contains("checksum"));
        }
    }
    let all = report(&database, None, &Silent).unwrap();
    let json = all.to_json();
    assert_eq!((json["tables"].as_array().unwrap().len(), json["indexes"].as_array().unwrap().len()), (5, 9));
    for table in &all.tables {
        let rows = database.table(&table.name).unwrap().row_count();
        assert_eq!(table.rows, rows);
        assert!(rows == 0 || (table.record_bytes_avg > 20.0 && table.size_bytes > 0 && table.npages > 0));
    }
    let fixed = all.tables.iter().find(|t| t.name == "wide").unwrap();
    assert!(fixed.ratio() < 0.9 && fixed.compressed_share > 0.9, "{fixed:?}");
    for index in &all.indexes {
        assert_eq!(index.levels.first().unwrap().pages, 1);
        let leaves = index.levels.last().unwrap();
        assert!(leaves.keys_avg > 1.0 && index.rids > 0);
        for pair in index.levels.windows(2) {
            // Every page but the root is a child of the level above.
            assert!((pair[0].keys_avg * pair[0].pages as f64 - pair[1].pages as f64).abs() < 1e-6);
        }
    }
    assert!(json["pools"].as_array().unwrap().iter().any(|pool| pool["getpages"].as_u64().unwrap() > 0));
    let text = all.to_text();
    assert!(text.contains("wide_amount") && text.contains("leaves"), "{text}");
    assert_eq!(report(&database, Some("parts"), &Silent).unwrap().indexes.len(), 3);
    assert!(report(&database, Some("nobody"), &Silent).is_err());
    if std::env::var_os("SHOW").is_some() {
        println!("{text}\n{}", say("wide", PrintWhat::Dictionary).to_text());
        println!("{}\n{}", say("parts_code", PrintWhat::Page(2)).to_text(), say("wide", PrintWhat::Header).to_text());
        println!("{}", print_from(&storage, "control", PrintWhat::Header).unwrap().to_text());
    }
}

fn header_pages(storage: &MemoryStorage, object: &str) -> u32 {
    let printed = print_from(storage, object, PrintWhat::Header).unwrap().to_json();
    printed["data_set"]["pages"].as_u64().unwrap() as u32
}

//! One damaged page or file of one object takes away nothing else: a database of 30 objects, of which every page and every file is damaged in turn. All others
//! are read and written, what is damaged is named, and dropped, built anew or salvaged; what was damaged beside the data sets is recovered from a copy.
//!
//! The ordinary run takes of each kind of page and file one; all of them:
//! `PAGEFOLD_DAMAGE=all cargo test --workspace --test inspect matrix -- --nocapture`

use crate::sample::{DB, Place, Rng, build, control_slot, fill, places, refs, run_check_beside, schema, without_images};
use pagefold_engine::backup::{RecoverOptions, copy_to_file, recover};
use pagefold_engine::btree::Direction as Walk;
use pagefold_engine::database::{Database, OpenMode, ScanRequest, Settings, TransactionOptions};
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::log::LogSettings;
use pagefold_engine::pool::PoolSettings;
use pagefold_engine::table_space::{Method, Table, TableAttributes};
use pagefold_format::page::{self, PageIdentity, PageType};
use pagefold_interchange::FileFormat;
use pagefold_io::{Clock, MemoryStorage, OpenOptions, SimulatedClock, Storage, read_file};
use pagefold_types::{Direction, Value, ValueRef};
use pagefold_utility::{SalvageReport, Salvaged, Silent, check_files, drop_object, rebuild_index, report};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

const ROWS: i64 = 240;

/// Ten tables under all methods, one of them of several partitions, and twenty indexes of all formats.
fn thirty() -> (MemoryStorage, MemoryStorage) {
    let storage = MemoryStorage::new();
    let database = open(&storage, OpenMode::Create).unwrap();
    let mut rng = Rng(11);
    let mut change = database.change();
    let methods = [Method::None, Method::Row, Method::Page, Method::Fixed, Method::Huffman];
    for number in 0..10usize {
        let (method, page_bytes) = (methods[number % 5], [2048, 4096, 8192][number % 3]);
        let pages = if number == 3 { 16 } else { 1 << 20 };
        let attributes = TableAttributes {
            method,
            partition_bytes: pages * page_bytes as u64,
            primary_key: vec![0],
            ..TableAttributes::new(format!("t{number}"), schema()).with_page_bytes(page_bytes)
        };
        let table = fill(&mut change, attributes, if number == 3 { 3 * ROWS } else { ROWS }, &mut rng);
        let (up, down) = (Direction::Ascending, Direction::Descending);
        let formats = [(IndexFormat::Plain, 2048), (IndexFormat::Fold, 8192), (IndexFormat::Prefix, 4096)];
        let index = |name: String, columns: Vec<(usize, Direction)>, unique: bool, at: usize| {
            let (format, page_bytes) = formats[at % 3];
            IndexAttributes::new(name, columns, unique).with_format(format, page_bytes)
        };
        build(&mut change, &table, index(format!("t{number}_id"), vec![(0, up)], true, number), number % 2 == 0, &mut rng);
        build(
            &mut change,
            &table,
            index(format!("t{number}_code"), vec![(2, down), (0, up)], false, number + 1),
            number % 2 == 1,
            &mut rng,
        );
    }
    change.commit().unwrap();
    insert_rows(&database, &mut rng, 5000..5005);
    database.close().unwrap();
    let older = storage.snapshot();
    let database = open(&storage, OpenMode::Write).unwrap();
    insert_rows(&database, &mut rng, 6000..6040);
    database.close().unwrap();
    (older, storage)
}

/// Some rows more in each table, in one transaction.
fn insert_rows(database: &Database, rng: &mut Rng, ids: Range<i64>) {
    let mut t = database.begin(TransactionOptions::default());
    for number in 0..10 {
        let table = database.table(&format!("t{number}")).unwrap();
        ids.clone().for_each(|id| _ = t.insert(&table, &refs(&row(rng, id))).unwrap());
    }
    t.commit().unwrap();
}

fn row(rng: &mut Rng, id: i64) -> Vec<Value> {
    crate::sample::random_row(rng, id)
}

/// A hash of everything that an object has.
fn of_table(database: &Database, table: &Arc<Table>) -> pagefold_engine::Result<(u64, u64)> {
    let (mut rows, mut sum) = (0, 0u64);
    let mut scan = database.read_view().scan(table, &ScanRequest::default())?.into_rows();
    while let Some((rid, record)) = scan.next_record()? {
        rows += 1;
        sum = sum.wrapping_add(xxh3_64(record) ^ xxh3_64(&rid.to_bytes()));
        if table.layout().large_values(record).is_ok_and(|values| !values.is_empty()) {
            sum = sum.wrapping_add(xxh3_64(format!("{:?}", table.values(record)?).as_bytes()));
        }
    }
    Ok((rows, sum))
}

fn of_index(database: &Database, name: &str) -> pagefold_engine::Result<(u64, u64)> {
    let index = database.index(name)?;
    let (mut entries, mut sum) = (0, 0u64);
    let mut cursor = index.tree().all(Walk::Forward);
    while let Some((key, rid)) = cursor.next()? {
        entries += 1;
        sum = sum.wrapping_add(xxh3_64(key) ^ xxh3_64(&rid.to_bytes()));
    }
    Ok((entries, sum))
}

fn of(database: &Database, name: &str) -> pagefold_engine::Result<(u64, u64)> {
    match name.contains('_') {
        true => of_index(database, name),
        false => of_table(database, &database.table(name)?),
    }
}

/// The table that an object is, or is of.
fn table_name(object: &str) -> &str {
    object.split('_').next().unwrap_or(object)
}

fn salvage(storage: &MemoryStorage, table: &str) -> (BTreeSet<String>, SalvageReport) {
    let storage: Arc<dyn Storage> = Arc::new(storage.clone());
    let clock: Arc<dyn Clock> = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let salvaged = Salvaged::open(&storage, &clock, Path::new(DB), table, settings()).unwrap();
    let mut bytes = Vec::new();
    let mut sink = FileFormat::JsonLines.sink(&mut bytes, salvaged.schema(), None).unwrap();
    let report = salvaged.run(Path::new(DB), sink.as_mut(), &Silent).unwrap();
    drop(sink);
    (String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect(), report)
}

fn settings() -> Settings {
    let pools = PoolSettings { memory_bytes: 8 << 20, background_threads: 0, ..PoolSettings::default() };
    // The end of a log is looked for in a whole segment.
    let log = LogSettings { segment_bytes: 1 << 20, ..LogSettings::default() };
    Settings { pools, log, direct: false, ..Settings::default() }
}

fn open(storage: &MemoryStorage, mode: OpenMode) -> pagefold_engine::Result<Database> {
    let storage: Arc<dyn Storage> = Arc::new(storage.clone());
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    Database::open(storage, clock, Path::new(DB), mode, settings())
}

/// The database as it is when nothing is damaged.
struct Whole {
    older: MemoryStorage,
    storage: MemoryStorage,
    /// What each object has.
    contents: BTreeMap<String, (u64, u64)>,
    /// Which object a file is of.
    files: BTreeMap<PathBuf, String>,
    rows: BTreeMap<String, BTreeSet<String>>,
    places: Vec<Place>,
    counts: BTreeMap<(String, &'static str, &'static str), u64>,
    /// Rows that each data page took along.
    lacking: BTreeMap<String, u64>,
}

/// What becomes of a data set, or of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum How {
    Bit,
    Zeros,
    Cut(u32),
    Older,
    Swapped,
    Removed,
}

impl How {
    fn name(self) -> &'static str {
        match self {
            How::Bit => "one bit",
            How::Zeros => "zeroed",
            How::Cut(_) => "cut off",
            How::Older => "older version",
            How::Swapped => "swapped",
            How::Removed => "removed",
        }
    }
}

fn put(storage: &MemoryStorage, path: &Path, bytes: &[u8]) {
    let file = storage.open(path, &OpenOptions::create()).unwrap();
    file.set_len(0).unwrap();
    file.write_at(bytes, 0).unwrap();
}

fn bytes_of(storage: &MemoryStorage, path: &Path) -> Vec<u8> {
    read_file(storage, path, 1 << 30).unwrap()
}

impl Whole {
    fn new() -> Whole {
        let (older, storage) = thirty();
        assert!(check_files(&storage, Path::new(DB), &Silent).unwrap().is_clean());
        let (mut contents, mut files, mut rows) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let database = open(&storage, OpenMode::Read).unwrap();
        for table in database.tables().unwrap() {
            table.data_sets().for_each(|set| _ = files.insert(set.path().to_path_buf(), table.name().to_owned()));
            contents.insert(table.name().to_owned(), of(&database, table.name()).unwrap());
            rows.insert(table.name().to_owned(), salvage(&storage, table.name()).0);
        }
        for index in database.indexes().unwrap() {
            files.insert(index.data_set().path().to_path_buf(), index.name().to_owned());
            contents.insert(index.name().to_owned(), of(&database, index.name()).unwrap());
        }
        drop(database);
        assert_eq!(contents.len(), 30);
        let places = places(&storage).0;
        Whole { older, storage, contents, files, rows, places, counts: BTreeMap::new(), lacking: BTreeMap::new() }
    }

    fn page_type(&self, place: &Place) -> PageType {
        let file_id = pagefold_engine::file_id_of(&place.path).unwrap();
        let identity = PageIdentity { database_id: control_slot(&self.storage).database_id, file_id, page_number: place.number };
        page::verify(&place.read(&self.storage), &identity).unwrap()
    }

    /// What a kind of object is called in the table of counts.
    fn kind(&self, object: &str) -> &'static str {
        match (object.contains('_'), object) {
            (true, _) => "index",
            (false, "t3") => "table of several partitions",
            _ => "table",
        }
    }

    /// Everything but `owners`, and the indexes of tables among them, is there.
    fn check_others(&self, database: &Database, owners: &[&str], case: &str) {
        for (name, expected) in &self.contents {
            if !owners.iter().any(|owner| owner == name || *owner == table_name(name)) {
                let found = of(database, name);
                assert!(found.as_ref().is_ok_and(|found| found == expected), "{case}: {name}: {found:?}");
            }
        }
    }

    /// All tables without damage are written; those with a damaged index as far as it lets them.
    fn write_others(&self, database: &Database, owners: &[&str], case: &str) {
        let mut rng = Rng(77);
        for name in self.rows.keys().filter(|name| !owners.contains(&name.as_str())) {
            let table = database.table(name).unwrap_or_else(|error| panic!("{case}: {name}: {error}"));
            let mut t = database.begin(TransactionOptions::default());
            let inserted = t.insert(&table, &refs(&row(&mut rng, 9999)));
            let damaged: Vec<&&str> = owners.iter().filter(|owner| table_name(owner) == name).collect();
            match &inserted {
                Ok(rid) => assert!(t.delete(&table, *rid).unwrap(), "{case}: {name}"),
                Err(error) => {
                    let names = damaged.iter().any(|owner| error.to_string().contains(**owner));
                    assert!(names, "{case}: {name}: {error}");
                }
            }
            // A column that no index has.
            let mut scan = t.read_view().unwrap().scan(&table, &ScanRequest::default()).unwrap().into_rows();
            let rid = scan.next_record().unwrap().map(|(rid, _)| rid);
            let updated = t.update(&table, rid.unwrap(), &[(1, ValueRef::Decimal(5))]);
            assert!(updated.as_ref().is_ok_and(|updated| *updated), "{case}: {name}: {updated:?}");
            t.rollback().unwrap_or_else(|error| panic!("{case}: {name}: {error}"));
        }
    }

    /// Data sets of `owners` are damaged, or the page at `place`.
    fn run(&mut self, damaged: &MemoryStorage, owners: &[&str], page: &'static str, how: How, place: Option<&Place>) {
        let case = format!("{owners:?}, {page}, {how:?}, {place:?}");
        let found = check_files(damaged, Path::new(DB), &Silent).unwrap();
        for owner in owners {
            let named = found.errors.iter().any(|error| error.object.contains(&format!("\"{owner}\"")));
            assert!(named, "{case}: {owner} is not named in {:?}", found.errors);
        }
        let database = open(damaged, OpenMode::Read).unwrap_or_else(|error| panic!("{case}: {error}"));
        self.check_others(&database, owners, &case);
        for owner in owners {
            // Whoever needs it is told which it is.
            let read = of(&database, owner);
            let names = |name: &str| read.as_ref().is_err_and(|error| error.to_string().contains(&format!("\"{name}\"")));
            let is_named = names(owner) || owners.contains(&table_name(owner)) && names(table_name(owner));
            // Another partition may have the same dictionary.
            let elsewhere = page == "dictionary" && *owner == "t3" && read.as_ref().is_ok_and(|found| *found == self.contents[*owner]);
            assert!(is_named || elsewhere, "{case}: {owner}: {read:?}");
        }
        let said = report(&database, None, &Silent).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert!(said.tables.len() + said.indexes.len() + said.damaged.len() >= 30 - 2 * owners.len(), "{case}: {said:?}");
        drop(database);
        let written = damaged.snapshot();
        let database = open(&written, OpenMode::Write).unwrap();
        self.write_others(&database, owners, &case);
        drop(database);
        self.check_others(&open(&written, OpenMode::Read).unwrap(), owners, &case);
        for owner in owners {
            if owner.contains('_') {
                for storage in [damaged.snapshot(), written.snapshot()] {
                    self.mend_index(&storage, owners, owner, &case);
                }
            } else {
                self.mend_table(damaged, owners, owner, (page, how), place, &case);
            }
        }
        let kind = self.kind(owners[0]).to_owned();
        *self.counts.entry((kind, page, how.name())).or_default() += 1;
    }

    fn mend_index(&self, storage: &MemoryStorage, owners: &[&str], owner: &str, case: &str) {
        let table_too = owners.contains(&table_name(owner));
        let dropped = storage.snapshot();
        let database = open(storage, OpenMode::Write).unwrap();
        if !table_too {
            rebuild_index(&database, owner, 1 << 20, &Silent).unwrap_or_else(|error| panic!("{case}: {owner}: {error}"));
            database.close().unwrap_or_else(|error| panic!("{case}: {owner}: {error}"));
            let again = open(storage, OpenMode::Read).unwrap();
            assert_eq!(of(&again, owner).unwrap(), self.contents[owner], "{case}: {owner}");
        }
        let database = open(&dropped, OpenMode::Write).unwrap();
        let name = if table_too { table_name(owner) } else { owner };
        drop_object(&database, name).unwrap_or_else(|error| panic!("{case}: {owner}: {error}"));
        database.close().unwrap();
        if owners.len() == 1 {
            for storage in [storage, &dropped] {
                let found = check_files(storage, Path::new(DB), &Silent).unwrap();
                assert!(found.is_clean(), "{case}: {owner}: {:?}", found.errors);
            }
        }
    }

    fn mend_table(
        &mut self,
        damaged: &MemoryStorage,
        owners: &[&str],
        owner: &str,
        (page, how): (&str, How),
        place: Option<&Place>,
        case: &str,
    ) {
        let (rows, report) = salvage(damaged, owner);
        assert!(!report.damage.is_empty(), "{case}");
        let all = &self.rows[owner];
        let lack = all.difference(&rows).count() as u64;
        match (page, how) {
            // Values that are not whole change the line of their row.
            ("large value", _) => assert_eq!((rows.len(), lack > 0), (all.len(), true), "{case}"),
            ("header" | "space map", How::Bit | How::Zeros) => assert_eq!(lack, 0, "{case}"),
            ("data", How::Bit) if place.is_some() => *self.lacking.entry(owner.to_owned()).or_default() += lack,
            // Rows of another time are of another page, whole as it may be; those of this one are not given out as what they were.
            (_, How::Older) => {}
            _ => assert!(rows.is_subset(all) || !report.values.is_empty(), "{case}"),
        }
        let storage = damaged.snapshot();
        let database = open(&storage, OpenMode::Write).unwrap();
        drop_object(&database, owner).unwrap_or_else(|error| panic!("{case}: {owner}: {error}"));
        database.close().unwrap_or_else(|error| panic!("{case}: {owner}: {error}"));
        let found = check_files(&storage, Path::new(DB), &Silent).unwrap();
        let others = found.errors.iter().any(|error| owners.iter().all(|owner| !error.object.contains(owner)));
        assert!(!others && (owners.len() > 1 || found.is_clean()), "{case}: {:?}", found.errors);
    }

    /// Something beside the data sets of tables and indexes is damaged: the database goes on, or says what is wrong, and is recovered from its copy.
    fn run_beside(&mut self, damaged: &MemoryStorage, copy: &Path, what: &'static str, how: &'static str) {
        let case = format!("{what}, {how}");
        let names = ["catalog", "control", "log", "double-write", "format version", "no control file", "pagefold database"];
        let goes_on = match open(&damaged.snapshot(), OpenMode::Read) {
            Ok(database) => {
                self.check_others(&database, &[], &case);
                let written = damaged.snapshot();
                let database = open(&written, OpenMode::Write).unwrap_or_else(|error| panic!("{case}: {error}"));
                self.write_others(&database, &[], &case);
                drop(database);
                self.check_others(&open(&written, OpenMode::Read).unwrap(), &[], &case);
                true
            }
            Err(error) => {
                let said = error.to_string();
                assert!(names.iter().any(|name| said.contains(name)), "{case}: {said}");
                assert!(open(&damaged.snapshot(), OpenMode::Write).is_err(), "{case}");
                false
            }
        };
        if !goes_on {
            let (storage, clock): (Arc<dyn Storage>, Arc<dyn Clock>) =
                (Arc::new(damaged.snapshot()), Arc::new(SimulatedClock::new(Duration::from_secs(1))));
            let target = Path::new("recovered");
            recover(&storage, &clock, target, &[copy.to_path_buf()], &RecoverOptions::default(), settings(), &Silent)
                .unwrap_or_else(|error| panic!("{case}: {error}"));
            let database = Database::open(storage, clock, target, OpenMode::Read, settings()).unwrap();
            self.check_others(&database, &[], &case);
        }
        let outcome = if goes_on { "goes on" } else { "recover" };
        *self.counts.entry((what.into(), how, outcome)).or_default() += 1;
    }
}

fn page_name(kind: PageType, number: u32) -> &'static str {
    match kind {
        PageType::Header => "header",
        PageType::SpaceMap => "space map",
        PageType::Data => "data",
        PageType::Dictionary => "dictionary",
        PageType::LargeValue => "large value",
        _ if number == 2 => "first page of the tree",
        _ => "page of the tree",
    }
}

#[test]
fn one_damaged_page_or_file_takes_away_nothing_else() {
    let all = std::env::var("PAGEFOLD_DAMAGE").is_ok_and(|value| value == "all");
    let mut whole = Whole::new();
    let mut seen = BTreeSet::new();
    let mut is_wanted = |case: (&'static str, &'static str, &'static str)| all || seen.insert(case);
    let files: Vec<(PathBuf, String)> = whole.files.iter().map(|(path, owner)| (path.clone(), owner.clone())).collect();
    // Pages.
    for (turn, place) in whole.places.clone().iter().enumerate() {
        let Some(owner) = whole.files.get(&place.path).cloned() else { continue };
        let page = page_name(whole.page_type(place), place.number);
        let good = place.read(&whole.storage);
        for how in [How::Bit, How::Zeros] {
            if !is_wanted((whole.kind(&owner), page, how.name())) {
                continue;
            }
            let damaged = without_images(&whole.storage);
            let mut bad = vec![0; good.len()];
            if how == How::Bit {
                bad.copy_from_slice(&good);
                bad[(turn * 131 + 7) % good.len()] ^= 1 << (turn % 8);
            }
            place.write(&damaged, &bad);
            whole.run(&damaged, &[&owner], page, how, Some(place));
        }
    }
    // Whole data sets.
    for (number, (path, owner)) in files.iter().enumerate() {
        let pages: Vec<&Place> = whole.places.iter().filter(|place| place.path == *path).collect();
        let (page_bytes, count) = (pages[0].bytes as u64, 1 + pages.iter().map(|place| place.number).max().unwrap());
        let good = bytes_of(&whole.storage, path);
        for how in [How::Cut(0), How::Cut(1), How::Cut(count / 2), How::Cut(count - 1), How::Older, How::Swapped, How::Removed] {
            let before = bytes_of(&whole.older, path);
            if how == How::Older && before == good || !is_wanted((whole.kind(owner), "file", how.name())) {
                continue;
            }
            let damaged = without_images(&whole.storage);
            let mut owners = vec![owner.as_str()];
            match how {
                How::Cut(pages) => {
                    damaged.open(path, &OpenOptions::read_write()).unwrap().set_len(u64::from(pages) * page_bytes + 100).unwrap();
                }
                How::Older => put(&damaged, path, &before),
                How::Removed => damaged.remove(path).unwrap(),
                _ => {
                    let (other, other_owner) = &files[(number + 1 + number % 7) % files.len()];
                    put(&damaged, path, &bytes_of(&whole.storage, other));
                    put(&damaged, other, &good);
                    if other_owner != owner {
                        owners.push(other_owner);
                    }
                }
            }
            whole.run(&damaged, &owners, "file", how, None);
        }
    }
    // Each row lacks when its page is damaged, and only then.
    if all {
        for (table, rows) in &whole.rows {
            assert_eq!(whole.lacking.get(table).copied().unwrap_or_default(), rows.len() as u64, "{table}");
        }
    }
    beside(&mut whole, all);
    let cases: u64 = whole.counts.values().sum();
    println!("{cases} damaged databases of 30 objects:");
    for ((kind, page, how), count) in &whole.counts {
        println!("{count:6}  {kind}: {page}, {how}");
    }
}

/// A page that the double-write file has is whole for whoever reads, and no damage any more once somebody has written.
#[test]
fn a_damaged_page_with_an_image_is_put_back() {
    let whole = Whole::new();
    let mut mended = 0;
    for place in whole.places.iter().filter(|place| whole.files.contains_key(&place.path)) {
        let damaged = whole.storage.snapshot();
        let mut bad = place.read(&damaged);
        bad[place.number as usize % place.bytes] ^= 16;
        place.write(&damaged, &bad);
        let is_clean = |storage: &MemoryStorage| run_check_beside(storage).is_clean();
        if !is_clean(&damaged) {
            continue;
        }
        mended += 1;
        let owner = &whole.files[&place.path];
        assert_eq!(place.read(&damaged), bad, "a reader writes nothing");
        let reader = open(&damaged, OpenMode::Read).unwrap();
        assert_eq!(of(&reader, owner).unwrap(), whole.contents[owner], "{place:?}");
        drop(reader);
        let (rows, report) = salvage(&damaged, table_name(owner));
        assert!(report.is_whole() && rows == whole.rows[table_name(owner)], "{place:?}: {report:?}");
        open(&damaged, OpenMode::Write).unwrap().close().unwrap();
        assert!(check_files(&damaged, Path::new(DB), &Silent).unwrap().is_clean(), "{place:?}");
    }
    assert!(mended > 30, "{mended}");
}

/// Control file, catalogs, log, double-write file.
fn beside(whole: &mut Whole, all: bool) {
    let (storage, clock): (Arc<dyn Storage>, Arc<dyn Clock>) =
        (Arc::new(whole.storage.clone()), Arc::new(SimulatedClock::new(Duration::from_secs(1))));
    let copy = Path::new("copy.pfc");
    copy_to_file(&storage, &clock, Path::new(DB), copy, None, &Silent).unwrap();
    let directory = Path::new(DB);
    let mut others: Vec<(PathBuf, &'static str)> =
        vec![(directory.join("control"), "control file"), (directory.join("doublewrite"), "double-write file")];
    others.extend(whole.storage.list(&directory.join("log")).unwrap().into_iter().map(|path| (path, "log segment")));
    let catalogs = whole.storage.list(&directory.join("data")).unwrap().into_iter().filter(|path| !whole.files.contains_key(path));
    others.extend(catalogs.map(|path| (path, "catalog")));
    for (path, what) in others {
        let good = bytes_of(&whole.storage, &path);
        // Every page of 4 KB; of the log, which is longer, some.
        let step = if all { 4096 } else { good.len().max(4096) / 2 };
        for at in (0..good.len()).step_by(step).take(if all { 400 } else { 2 }) {
            for how in ["one bit", "zeroed"] {
                let damaged = whole.storage.snapshot();
                let mut bad = good.clone();
                if how == "one bit" {
                    bad[at + 70] ^= 4
                } else {
                    bad[at..(at + 4096).min(good.len())].fill(0)
                }
                put(&damaged, &path, &bad);
                whole.run_beside(&damaged, copy, what, how);
            }
        }
        for how in ["cut off", "older version", "swapped", "removed"] {
            let damaged = whole.storage.snapshot();
            match how {
                "cut off" => put(&damaged, &path, &good[..good.len() / 2]),
                "older version" if whole.older.exists(&path).unwrap() => put(&damaged, &path, &bytes_of(&whole.older, &path)),
                "swapped" => {
                    let (other, _) = whole.files.iter().next().unwrap();
                    put(&damaged, &path, &bytes_of(&whole.storage, other));
                }
                "removed" => damaged.remove(&path).unwrap(),
                _ => continue,
            }
            whole.run_beside(&damaged, copy, what, how);
        }
    }
}

//! Disk images as crashes leave them: opened, compared with what was promised, and checked page by page.
//!
//! An image that is like one before, in all names and contents, is looked at once.

use crate::alterations::as_seen;
use crate::coverage::{Coverage, Kind};
use crate::model::{Left, Promise, Rows, State};
use crate::values::number;
use crate::world::{DIRECTORY, TABLES, open, settings};
use pagefold_engine::btree::Direction;
use pagefold_engine::database::{Database, OpenMode, ScanRequest, TransactionOptions};
use pagefold_engine::directory::{control_path, read_control};
use pagefold_engine::table_space::RowBuffer;
use pagefold_engine::{Error, Silent};
use pagefold_format::control::{CONTROL_SLOT_BYTES, ControlSlot, SlotState};
use pagefold_io::{Clock, FaultStorage, OpenOptions, SimulatedClock, Storage, read_exact_at};
use pagefold_types::KeyRange;
use std::collections::{BTreeMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What was opened and compared.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) images: HashSet<u64>,
    pub(crate) states: u64,
    /// What came of statements.
    pub(crate) met: BTreeMap<&'static str, u64>,
    /// Histories that failed.
    pub(crate) faults: u64,
    /// Distinct images by what is in them.
    pub(crate) labels: BTreeMap<String, u64>,
    /// Distinct images by what their recovery meets, and by what was done before.
    pub(crate) coverage: BTreeMap<Kind, u64>,
}

impl Tally {
    /// Counts an image; false when there was one like it.
    pub(crate) fn is_new(&mut self, image: &FaultStorage) -> bool {
        self.images.insert(image.content_hash())
    }

    /// Counts what is in an image.
    pub(crate) fn add(&mut self, coverage: &Coverage, labels: &[String]) {
        self.states += 1;
        for label in labels {
            *self.labels.entry(label.clone()).or_default() += 1;
        }
        for kind in coverage.kinds() {
            *self.coverage.entry(kind).or_default() += 1;
        }
    }

    /// Prints everything, kinds that no image had too.
    pub(crate) fn print(&self) {
        println!("{} states, {} distinct images; of these with:", self.states, self.images.len());
        self.met.iter().for_each(|(what, count)| println!("{count:>9} statements: {what}"));
        self.labels.iter().for_each(|(label, count)| println!("{count:>9} {label}"));
        for kind in Coverage::names() {
            println!("{:>9} {}: {}", self.coverage.get(&kind).copied().unwrap_or(0), kind.0, kind.1);
        }
    }
}

/// Opens an image and compares; then all of its pages are checked.
pub(crate) fn verify(image: &FaultStorage, promise: &Promise, left: Left) -> Result<(), String> {
    guarded(|| {
        image.set_capacity(None);
        let database = open(image, OpenMode::Write).map_err(|e| format!("opening: {e}"))?;
        let found = try_contents(&database)?;
        if !promise.allows(&found, left) {
            return Err(promise.difference(&found));
        }
        database.close().map_err(|e| format!("closing: {e}"))?;
        check(image)
    })
}

/// With the newer control slot damaged, the older one has all that it takes. Not when the two have different catalogs: the older one's files are gone then, and that is said.
pub(crate) fn verify_older_slot(image: &FaultStorage, promise: &Promise, left: Left) -> Result<(), String> {
    let path = control_path(Path::new(DIRECTORY));
    let current = read_control(image, Path::new(DIRECTORY)).map_err(|e| e.to_string())?.current;
    let older = 1 - ControlSlot::slot_number(current.sequence);
    let mut slot = [0; CONTROL_SLOT_BYTES];
    let file = image.open(&path, &OpenOptions::read_only()).map_err(|e| e.to_string())?;
    read_exact_at(file.as_ref(), &mut slot, (older * CONTROL_SLOT_BYTES) as u64).map_err(|e| e.to_string())?;
    if !matches!(ControlSlot::parse(&slot, older), SlotState::Valid(found) if found.catalog_file_id == current.catalog_file_id) {
        return Ok(());
    }
    image.flip_bit(&path, ((1 - older) * CONTROL_SLOT_BYTES + 40) as u64, 3).map_err(|e| e.to_string())?;
    verify(image, promise, left).map_err(|e| format!("the newer control slot damaged: {e}"))
}

/// Opens what is left of a database that was being made: it has all of its tables, or none.
pub(crate) fn verify_new(image: &FaultStorage) -> Result<(), String> {
    guarded(|| {
        let database = open(image, OpenMode::Create).map_err(|e| format!("opening: {e}"))?;
        if !database.table_names().is_empty() && try_contents(&database)? != State::default() {
            return Err("a database that was being made has rows".into());
        }
        database.close().map_err(|e| format!("closing: {e}"))?;
        check(image)
    })
}

/// A panic is a fault like others.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_string()));
        Err(format!("panic: {}", words.unwrap_or_default()))
    })
}

/// Every page of a database that is closed, every row and index entry, and that every page has one owner.
pub(crate) fn check(image: &FaultStorage) -> Result<(), String> {
    let report = pagefold_utility::check_files(image, Path::new(DIRECTORY), &Silent).map_err(|e| format!("check: {e}"))?;
    report.errors.first().map_or(Ok(()), |first| {
        Err(format!("check: {} errors, the first in {}, page {}: {}", report.errors.len(), first.object, first.page, first.reason))
    })
}

/// The same beside a database that is open.
pub(crate) fn check_beside(storage: &FaultStorage) -> Result<(), String> {
    let clock: Arc<dyn Clock> = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    let storage: Arc<dyn Storage> = Arc::new(storage.clone());
    let report = pagefold_utility::check(&storage, &clock, Path::new(DIRECTORY), settings(), &Silent).map_err(|e| format!("check: {e}"))?;
    report.errors.first().map_or(Ok(()), |first| Err(format!("check beside it: {}, page {}: {}", first.object, first.page, first.reason)))
}

/// Reads everything, and checks that tables and indexes agree.
pub(crate) fn contents(database: &Database) -> State {
    try_contents(database).unwrap_or_else(|reason| panic!("{reason}"))
}

/// As [`contents`]; what is wrong, in words.
pub(crate) fn try_contents(database: &Database) -> Result<State, String> {
    let mut state = State::default();
    for (rows, name) in state.iter_mut().zip(TABLES) {
        *rows = rows_of(database, name)?;
    }
    Ok(state)
}

fn rows_of(database: &Database, name: &str) -> Result<Rows, String> {
    let in_words = |e: Error| e.to_string();
    let object = database.table(name).map_err(in_words)?;
    let (mut state, mut rids, mut faults) = (Rows::new(), BTreeMap::new(), Vec::new());
    let scan = database.read_view().scan(&object, &ScanRequest::default()).map_err(in_words)?;
    for row in scan.into_rows() {
        let (rid, values) = row.map_err(in_words)?;
        let n = number(&values);
        if state.insert(n, Arc::new(as_seen(&object, values))).is_some() {
            faults.push(format!("row {n} twice"));
        }
        rids.insert(rid, n);
    }
    let rows = rids.len() as u64;
    if object.row_count() != rows {
        faults.push(format!("{rows} rows, {} counted", object.row_count()));
    }
    for index in database.indexes_of(&object) {
        let (mut entries, mut own) = (0, Vec::new());
        let found = index.tree().check(&mut |key, rid| {
            entries += 1;
            own.clear();
            let found = object.read(rid, &mut RowBuffer::default(), |record| {
                index.key_layout().encode_from_record(object.layout(), record, &mut own).map(drop)
            })?;
            if !matches!(found, Some(Ok(()))) || own != key {
                faults.push(format!("{}: an entry without its row {rid}", index.name()));
            }
            Ok(())
        });
        faults.extend(found.map_err(in_words)?.iter().map(|fault| format!("{}: {fault:?}", index.name())));
        if entries != rows {
            faults.push(format!("{}: {entries} entries", index.name()));
        }
    }
    let all = KeyRange { start: Vec::new(), end: None };
    let mut transaction = database.begin(TransactionOptions::default());
    let index = database.index(&format!("{name}_pk")).map_err(in_words)?;
    let view = transaction.read_view().map_err(in_words)?;
    let scan = view.range(&object, &index, all, Direction::Forward, &ScanRequest::default()).map_err(in_words)?;
    let ranged = scan.into_rows().map(|row| row.map(|(rid, _)| rids.get(&rid).copied())).collect::<Result<_, Error>>();
    let through_index: Vec<Option<i64>> = ranged.map_err(in_words)?;
    if !through_index.iter().flatten().eq(state.keys()) || through_index.len() != state.len() {
        faults.push(format!("rows by {} and by scan differ", index.name()));
    }
    if faults.is_empty() { Ok(state) } else { Err(format!("{name}: {}", faults.join("; "))) }
}

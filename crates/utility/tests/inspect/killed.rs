//! Databases as a kill leaves them: the log has something that the files have not.

use crate::salvage::{files_of, salvage};
use crate::sample::{DB, Rng, open, print_from, random_row, refs, run_check_beside, sample, table_attributes};
use pagefold_engine::database::{OpenMode, TransactionOptions};
use pagefold_engine::table_space::Method;
use pagefold_format::control::CONTROL_SLOT_BYTES;
use pagefold_io::{MemoryStorage, OpenOptions, Storage};
use pagefold_utility::{PageError, PrintWhat, check_files};
use std::path::Path;

/// Of "parts" and "small" the log has rows, of "late" everything.
fn killed() -> MemoryStorage {
    let storage = sample();
    let database = open(&storage, OpenMode::Write).unwrap();
    let mut change = database.change();
    change.create_table(table_attributes("late", Method::None, 4096, 64)).unwrap();
    change.commit().unwrap();
    let mut rng = Rng(3);
    let mut t = database.begin(TransactionOptions::default());
    for name in ["late", "parts", "small"] {
        let table = database.table(name).unwrap();
        for id in 70_000..70_020 {
            t.insert(&table, &refs(&random_row(&mut rng, id))).unwrap();
        }
    }
    t.commit().unwrap();
    storage.snapshot()
}

fn damage(storage: &MemoryStorage, path: &Path, at: u64) {
    storage.open(path, &OpenOptions::read_write()).unwrap().write_at(&[0x5A; 64], at).unwrap();
}

#[test]
fn what_the_log_alone_names_is_printed() {
    let storage = killed();
    assert!(check_files(&storage, Path::new(DB), &pagefold_utility::Silent).is_err(), "its files do not say everything");
    for object in ["late", "small", "small_id", "parts_code", "catalog", "control"] {
        let printed = print_from(&storage, object, PrintWhat::Header).unwrap_or_else(|error| panic!("{object}: {error}"));
        assert!(printed.to_text().contains("checksum") || object == "control", "{object}: {}", printed.to_text());
    }
    assert!(print_from(&storage, "parts", PrintWhat::Dictionary).unwrap().to_json()["dictionary"]["most_frequent"].is_array());
    let unknown = print_from(&storage, "nobody", PrintWhat::Header).unwrap_err().to_string();
    assert!(unknown.contains("late") && unknown.contains("small_code"), "{unknown}");
    assert!(run_check_beside(&storage).is_clean());
}

/// A table that cannot get what the log has for it is named, with its partition; all others are checked, and salvaged, with their log.
#[test]
fn one_table_that_cannot_be_recovered_hides_no_other() {
    let storage = killed();
    let (before, _) = salvage(&storage, "parts");
    let (small_before, _) = salvage(&storage, "small");
    assert!((70_000..70_020).all(|id| small_before.iter().any(|row| row.contains(&format!("{id}")))));
    let partitions = files_of(&storage, "parts");
    let last = partitions.len() - 1;
    damage(&storage, &partitions[last], 0);
    assert!(open(&storage, OpenMode::Write).unwrap_err().to_string().contains(&format!("table \"parts\", partition {last}, page 0")));
    let found = run_check_beside(&storage);
    let [error] = found.errors.as_slice() else { panic!("{:?}", found.errors) };
    assert!(
        error.object == format!("table \"parts\", partition {last}") && error.page == 0 && error.reason.contains("salvage"),
        "{error:?}"
    );
    assert!(found.rows > 900, "{found:?}");
    // A second one.
    damage(&storage, &files_of(&storage, "short")[0], 2048 * 3);
    let found = run_check_beside(&storage);
    assert!(found.errors.iter().any(|error| error.object.contains("short") && error.page == 3), "{:?}", found.errors);
    let (small, report) = salvage(&storage, "small");
    assert!(report.is_whole() && small == small_before, "{report:?}");
    let (parts, report) = salvage(&storage, "parts");
    assert!(!report.log_applied && parts.is_subset(&before) && parts.len() >= 2000, "{} of {} rows, {report:?}", parts.len(), before.len());
}

/// Segments of the log, none of which can be read any more: their headers are damaged, or all that lies behind them.
fn damage_log(storage: &MemoryStorage, headers: bool) {
    let segments = storage.list(&Path::new(DB).join("log")).unwrap();
    assert!(!segments.is_empty());
    for path in segments {
        if headers {
            damage(storage, &path, 0);
            continue;
        }
        let file = storage.open(&path, &OpenOptions::read_write()).unwrap();
        file.write_at(&vec![0; (file.len().unwrap() - 4096) as usize], 4096).unwrap();
    }
}

fn no_lost_write<'a>(errors: impl IntoIterator<Item = &'a PageError>) {
    let found: Vec<_> = errors.into_iter().filter(|error| error.reason.contains("lost or misplaced")).collect();
    assert!(found.is_empty(), "{found:?}");
}

/// When a database is closed, its catalog says everything: what becomes of the log then hides no name and blames no file.
#[test]
fn a_closed_database_whose_log_is_damaged() {
    [true, false].into_iter().for_each(closed_with_damaged_log);
}

fn closed_with_damaged_log(headers: bool) {
    let storage = killed();
    open(&storage, OpenMode::Write).unwrap().close().unwrap();
    let names = ["late", "parts", "small", "short"];
    let before = names.map(|name| salvage(&storage, name).0);
    assert_eq!(before[0].len(), 20);
    damage_log(&storage, headers);
    assert!(open(&storage, OpenMode::Write).is_err());
    for (name, before) in names.into_iter().zip(before) {
        let (rows, report) = salvage(&storage, name);
        assert!(rows == before && !report.log_applied && report.damage.is_empty() && report.lost.is_empty(), "{name}: {report:?}");
        print_from(&storage, name, PrintWhat::Header).unwrap();
    }
    let found = run_check_beside(&storage);
    assert!(found.errors.iter().all(|error| error.object == "log") && found.leftovers.is_empty(), "{found:?}");
    assert_eq!(found.errors.len(), 1);
}

/// What only the log had is lost with it. What the files have is not, and they are not blamed for being newer than the catalog.
#[test]
fn a_killed_database_whose_log_is_damaged() {
    [true, false].into_iter().for_each(killed_with_damaged_log);
}

fn killed_with_damaged_log(headers: bool) {
    let storage = killed();
    let (after, _) = salvage(&storage, "parts");
    damage_log(&storage, headers);
    let (parts, report) = salvage(&storage, "parts");
    assert!(!report.log_applied && parts.is_subset(&after) && parts.len() + 20 >= after.len(), "{report:?}");
    no_lost_write(&report.damage);
    let found = run_check_beside(&storage);
    no_lost_write(&found.errors);
    assert!(found.errors.iter().any(|error| error.object == "log"), "{:?}", found.errors);
    assert!(found.leftovers.is_empty(), "of no file it is known that nobody needs it: {:?}", found.leftovers);
}

/// A control file that lacks its end has its first slot.
#[test]
fn a_control_file_that_is_cut_off() {
    let slot_bytes = CONTROL_SLOT_BYTES as u64;
    for length in [0, 100, slot_bytes - 1, slot_bytes, slot_bytes + 100, 2 * slot_bytes - 1] {
        let storage = sample();
        let (before, _) = salvage(&storage, "small");
        let control = Path::new(DB).join("control");
        storage.open(&control, &OpenOptions::read_write()).unwrap().set_len(length).unwrap();
        let found = run_check_beside(&storage);
        assert!(found.errors.iter().any(|error| error.reason.contains("bytes long") || error.reason.contains("cut off")), "{found:?}");
        if length < slot_bytes {
            let error = open(&storage, OpenMode::Write).unwrap_err().to_string();
            assert!(error.contains("cut off"), "{length} bytes: {error}");
            continue;
        }
        open(&storage, OpenMode::Read).unwrap().close().unwrap();
        assert_eq!(salvage(&storage, "small").0, before, "{length} bytes");
        open(&storage, OpenMode::Write).unwrap().close().unwrap();
        let found = run_check_beside(&storage);
        assert!(found.is_clean(), "{length} bytes: {found:?}");
    }
}

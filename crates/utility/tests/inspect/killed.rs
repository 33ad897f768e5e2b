//! Databases as a kill leaves them: the log has something that the files have not.

use crate::salvage::{files_of, salvage};
use crate::sample::{DB, Rng, open, print_from, random_row, refs, run_check_beside, sample, table_attributes};
use pagefold_engine::database::{OpenMode, TransactionOptions};
use pagefold_engine::table_space::Method;
use pagefold_io::{MemoryStorage, OpenOptions, Storage};
use pagefold_utility::{PrintWhat, check_files};
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

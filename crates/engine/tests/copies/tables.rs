//! Single tables in copies, and put back from them: whatever others do meanwhile, and whatever goes wrong.

use crate::insert;
use crate::place::{Place, settings};
use crate::world::{Random, TABLES, contents, find, row, text_of, wide};
use pagefold_engine::backup::{RecoverOptions, Stop, Until, copy_tables_to_file};
use pagefold_engine::btree::Direction as Way;
use pagefold_engine::database::{Database, Isolation, OpenMode, ScanRequest, TransactionOptions};
use pagefold_engine::index::IndexAttributes;
use pagefold_engine::table_space::TableAttributes;
use pagefold_engine::{Error, Silent};
use pagefold_io::{Clock, CrashPolicy, Failure, Fault, FaultStorage, OsClock, SimulatedClock, Trigger};
use pagefold_types::{Column, DataType, Direction, KeyRange, Schema, ValueRef};
use pagefold_utility::{
    DiffOptions, DiffSide, IndexOptions, RecoverTablesOptions, RecoverTablesReport, check_copies, diff, recover_tables,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

fn put_back(
    place: &Place,
    database: &Database,
    (tables, copies, logs): (&[&str], &[&str], &[&str]),
    until: Until,
    replace: bool,
) -> Result<RecoverTablesReport, pagefold_utility::Error> {
    let recover = RecoverOptions { logs: logs.iter().map(PathBuf::from).collect(), until };
    let options = RecoverTablesOptions { recover, replace, settings: settings(), sort_bytes: 1 << 20 };
    let tables: Vec<String> = tables.iter().map(ToString::to_string).collect();
    let copies: Vec<PathBuf> = copies.iter().map(PathBuf::from).collect();
    recover_tables(database, (&place.storage, &place.clock), Path::new("db"), &tables, &copies, &options, &Silent)
}

fn copy(place: &Place, file: &str, tables: &[&str], base: Option<&str>) -> Result<(), Error> {
    let tables: Vec<String> = tables.iter().map(ToString::to_string).collect();
    let base = base.map(Path::new);
    copy_tables_to_file(&place.storage, &place.clock, Path::new("db"), Path::new(file), &tables, base, &Silent).map(drop)
}

fn archive(place: &Place, database: &Database) {
    place.storage.create_directory(Path::new("archive")).unwrap();
    database.set_log_archive(Some(Path::new("archive"))).unwrap();
}

fn check(place: &Place, database: Database) {
    database.close().unwrap();
    let report = pagefold_utility::check_files(place.storage.as_ref(), Path::new("db"), &Silent).unwrap();
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn a_table_comes_back_as_it_was_and_the_others_stay() {
    let place = Place::simulated();
    let database = place.open("db", OpenMode::Write).unwrap();
    archive(&place, &database);
    (0..200).for_each(|n| insert(&database, n, &"some text ".repeat(1 + n as usize % 9)));
    let then = contents(&database);
    database.copy(Path::new("whole.pfc"), None, &Silent).unwrap();
    copy(&place, "one.pfc", &[TABLES[0]], None).unwrap();
    (200..300).for_each(|n| insert(&database, n, "later"));
    copy(&place, "more.pfc", &[TABLES[0]], Some("one.pfc")).unwrap();
    let later = contents(&database);
    let mut transaction = database.begin(TransactionOptions::default());
    let other = database.table(TABLES[1]).unwrap();
    transaction.insert(&other, &row(7, "of the other table", &wide(7, "of the other table"))).unwrap();
    transaction.commit().unwrap();
    let other = contents(&database)[1].clone();
    let chains: [(&[&str], &[&str], &_); 5] = [
        (&["whole.pfc"], &[], &then[0]),
        (&["one.pfc"], &[], &then[0]),
        (&["one.pfc", "more.pfc"], &[], &later[0]),
        (&["one.pfc"], &["archive", "db"], &later[0]),
        (&["whole.pfc"], &[], &then[0]),
    ];
    for (chain, logs, expected) in chains {
        // What was done since the copy is in the log as well, until a table takes the place of the one that it is of.
        let recovered = put_back(&place, &database, (&[TABLES[0]], chain, logs), Until::End, false).unwrap();
        if !logs.is_empty() && recovered.stop != Stop::EndOfLog {
            assert!(matches!(recovered.stop, Stop::TablesChanged(_)), "{recovered:?}");
        }
        let found = contents(&database);
        assert_eq!((&found[0], &found[1]), (expected, &other), "{chain:?}");
        assert_eq!((recovered.tables.len(), recovered.tables[0].rows), (1, expected.len() as u64));
        assert!(recovered.tables[0].replaced && recovered.gone_indexes.is_empty(), "{recovered:?}");
        // It goes on like any other.
        insert(&database, 10_000, "new");
        assert!(contents(&database)[0].contains_key(&10_000));
    }
    // A dropped one comes back.
    let mut change = database.change();
    change.drop_table(TABLES[0]).unwrap();
    change.commit().unwrap();
    let recovered = put_back(&place, &database, (&[TABLES[0]], &["one.pfc"], &[]), Until::End, false).unwrap();
    assert!(!recovered.tables[0].replaced);
    assert_eq!(contents(&database)[0], then[0]);
    check(&place, database);
}

#[test]
fn what_does_not_go_is_refused_and_nothing_changes() {
    let place = Place::simulated();
    let database = place.open("db", OpenMode::Write).unwrap();
    (0..50).for_each(|n| insert(&database, n, "row"));
    copy(&place, "one.pfc", &[TABLES[0]], None).unwrap();
    copy(&place, "other.pfc", &[TABLES[1]], None).unwrap();
    let before = contents(&database);
    let refused = |tables: &[&str], copies: &[&str], text: &str| {
        let error = put_back(&place, &database, (tables, copies, &[]), Until::End, false).unwrap_err().to_string();
        assert!(error.contains(text), "{tables:?}: {error}");
        assert_eq!(contents(&database), before);
    };
    refused(&[TABLES[1]], &["one.pfc"], "does not have table");
    refused(&[TABLES[0], TABLES[1]], &["one.pfc"], "does not have table");
    refused(&["nothing"], &["one.pfc"], "does not have table");
    refused(&[TABLES[0]], &[], "no copy");
    refused(&[TABLES[0]], &["one.pfc", "other.pfc"], "other.pfc");
    // Both together need both in one.
    database.copy(Path::new("whole.pfc"), None, &Silent).unwrap();
    refused(&["nothing"], &["whole.pfc"], "nothing");
    // A name that something else has by now.
    let mut change = database.change();
    change.drop_table(TABLES[0]).unwrap();
    let schema = Schema::new(vec![Column::new("n", DataType::BigInt, false), Column::new("x", DataType::Double, true)]).unwrap();
    let table = change.create_table(TableAttributes::new(TABLES[0], schema)).unwrap();
    change.create_index(&table, IndexAttributes::new("by_x", vec![(1, Direction::Ascending)], false)).unwrap();
    change.commit().unwrap();
    let other_columns = put_back(&place, &database, (&[TABLES[0]], &["one.pfc"], &[]), Until::End, false).unwrap_err().to_string();
    assert!(other_columns.contains("had other columns then") && other_columns.contains("x DOUBLE"), "{other_columns}");
    assert!(database.index("by_x").is_ok());
    let recovered = put_back(&place, &database, (&[TABLES[0]], &["one.pfc"], &[]), Until::End, true).unwrap();
    assert_eq!(recovered.gone_indexes, ["by_x"]);
    assert!(database.index("by_x").is_err());
    assert_eq!(contents(&database), before);
    check(&place, database);
}

#[test]
fn an_index_that_came_after_the_copy_is_built_where_the_log_names_it() {
    let place = Place::simulated();
    let database = place.open("db", OpenMode::Write).unwrap();
    (0..80).for_each(|n| insert(&database, n, &format!("text {n}")));
    copy(&place, "one.pfc", &[TABLES[0]], None).unwrap();
    let options = IndexOptions::default();
    pagefold_utility::create_index(&database, "by_text", TABLES[0], &[("text".into(), Direction::Ascending)], &options, &Silent).unwrap();
    (80..120).for_each(|n| insert(&database, n, &format!("text {n}")));
    let now = contents(&database);
    let recovered = put_back(&place, &database, (&[TABLES[0]], &["one.pfc"], &["db"]), Until::End, false).unwrap();
    assert_eq!(recovered.tables[0].built_indexes, ["by_text"]);
    assert_eq!(recovered.stop, Stop::EndOfLog);
    assert_eq!(contents(&database), now);
    let (table, index) = (database.table(TABLES[0]).unwrap(), database.index("by_text").unwrap());
    let all = KeyRange { start: Vec::new(), end: None };
    let rows = database.read_view().range(&table, &index, all, Way::Forward, &ScanRequest::default()).unwrap().into_rows();
    assert_eq!(rows.count(), 120);
    // Without the log it was not there.
    let recovered = put_back(&place, &database, (&[TABLES[0]], &["one.pfc"], &[]), Until::End, false).unwrap();
    assert_eq!((recovered.gone_indexes, recovered.tables[0].rows), (vec!["by_text".to_string()], 80));
    check(&place, database);
}

#[test]
fn the_log_takes_a_table_to_before_it_was_dropped_and_past_what_others_lost() {
    let place = Place::simulated();
    let database = place.open("db", OpenMode::Write).unwrap();
    (0..40).for_each(|n| insert(&database, n, "row"));
    copy(&place, "one.pfc", &[TABLES[0]], None).unwrap();
    // A table that no copy has comes, and goes, and another one is dropped: that is nothing to this one.
    place.create_table(&database, "third", 300);
    (40..60).for_each(|n| insert(&database, n, "row"));
    let mut change = database.change();
    change.drop_table("third").unwrap();
    change.drop_table(TABLES[1]).unwrap();
    change.commit().unwrap();
    (60..80).for_each(|n| insert(&database, n, "row"));
    let mut change = database.change();
    change.drop_table(TABLES[0]).unwrap();
    change.commit().unwrap();
    place.create_table(&database, "fourth", 3);
    let recovered = put_back(&place, &database, (&[TABLES[0]], &["one.pfc"], &["db"]), Until::End, false).unwrap();
    assert!(matches!(recovered.stop, Stop::TablesChanged(_)), "{recovered:?}");
    assert_eq!(recovered.tables[0].rows, 80);
    // A moment before that.
    let moment = recovered.log_end;
    let earlier = put_back(&place, &database, (&[TABLES[0]], &["one.pfc"], &["db"]), Until::Lsn(moment - 1), false).unwrap();
    assert!(earlier.log_end < moment && earlier.stop == Stop::Asked && earlier.tables[0].rows == 80, "{earlier:?}");
    check(&place, database);
}

/// What transactions of other tables had done before the log of the copy begins is no matter of the table that is copied: rows that were inserted, changed and deleted
/// without an end, and rows that were deleted with one, and are kept for an older snapshot.
#[test]
fn others_have_changed_what_is_not_in_the_copy() {
    let place = Place::simulated();
    let database = place.open("db", OpenMode::Write).unwrap();
    (0..60).for_each(|n| insert(&database, n, "row"));
    let other = database.table(TABLES[1]).unwrap();
    let mut random = Random(3);
    let mut transaction = database.begin(TransactionOptions::default());
    for n in 0..60 {
        let text = text_of(&mut random);
        transaction.insert(&other, &row(n, &text, &wide(n, &text))).unwrap();
    }
    transaction.commit().unwrap();
    let mut old = database.begin(TransactionOptions { isolation: Isolation::RepeatableRead, ..TransactionOptions::default() });
    old.read_view().unwrap();
    let mut ended = database.begin(TransactionOptions::default());
    for n in 0..20 {
        let rid = find(&mut ended, &database, 1, n).unwrap().unwrap();
        assert!(ended.delete(&other, rid).unwrap());
    }
    ended.commit().unwrap();
    let mut open = database.begin(TransactionOptions::default());
    for n in 20..40 {
        let rid = find(&mut open, &database, 1, n).unwrap().unwrap();
        let text = text_of(&mut random);
        assert!(match n % 2 {
            0 => open.delete(&other, rid).unwrap(),
            _ => open.update(&other, rid, &[(1, ValueRef::Text(&text)), (3, ValueRef::Text(&wide(n, &text)))]).unwrap(),
        });
        open.insert(&other, &row(100 + n, &text, &wide(100 + n, &text))).unwrap();
    }
    // The log of the copy begins behind all of that.
    database.checkpoint().unwrap();
    database.checkpoint().unwrap();
    (60..70).for_each(|n| insert(&database, n, "row"));
    copy(&place, "one.pfc", &[TABLES[0]], None).unwrap();
    let report = check_copies(&place.storage, &place.clock, &[PathBuf::from("one.pfc")], settings(), &Silent).unwrap();
    assert!(report.is_clean() && report.rows == 70, "{report:?}");
    let recovered = put_back(&place, &database, (&[TABLES[0]], &["one.pfc"], &[]), Until::End, false).unwrap();
    assert_eq!(recovered.tables[0].rows, 70);
    // The copy of the other one has what the transaction did, and takes it back.
    copy(&place, "other.pfc", &[TABLES[1]], None).unwrap();
    let report = check_copies(&place.storage, &place.clock, &[PathBuf::from("other.pfc")], settings(), &Silent).unwrap();
    assert!(report.is_clean() && report.rows == 40, "{report:?}");
    drop((open, old));
    check(&place, database);
    assert_eq!(contents(&place.open("db", OpenMode::Write).unwrap())[1].len(), 40);
}

/// Whoever writes the other table goes on; the one that is copied and put back is as after one of its commits.
#[test]
fn tables_are_copied_and_put_back_beside_others_that_write() {
    let place = Place::new(Arc::new(OsClock));
    let database = place.open("db", OpenMode::Write).unwrap();
    archive(&place, &database);
    let (stop, done) = (AtomicBool::new(false), AtomicI64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random(5);
            // Its partitions are small, and not without end.
            for n in 0..3000 {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                OsClock.sleep(Duration::from_millis(1));
                let mut transaction = database.begin(TransactionOptions::default());
                let table = database.table(TABLES[1]).unwrap();
                let text = "x".repeat(random.below(300) as usize);
                transaction.insert(&table, &row(n, &text, &wide(n, &text))).unwrap();
                transaction.commit().unwrap();
                done.store(n + 1, Ordering::SeqCst);
                if random.below(10) == 0 {
                    database.checkpoint().unwrap();
                }
            }
        });
        let mut expected = 0;
        for round in 0..12 {
            (0..15).for_each(|n| insert(&database, 100_000 + round * 100 + n, "row"));
            expected += 15;
            let file = format!("{round}.pfc");
            copy(&place, &file, &[TABLES[0]], None).unwrap();
            let report = check_copies(&place.storage, &place.clock, &[PathBuf::from(&file)], settings(), &Silent).unwrap();
            assert!(report.is_clean(), "round {round}: {report:?}");
            (0..5).for_each(|n| insert(&database, 200_000 + round * 100 + n, "not in the copy"));
            let logs: &[&str] = if round % 2 == 0 { &[] } else { &["archive", "db"] };
            let before = done.load(Ordering::SeqCst);
            let recovered = put_back(&place, &database, (&[TABLES[0]], &[&file], logs), Until::End, false).unwrap();
            expected += if logs.is_empty() { 0 } else { 5 };
            assert_eq!(recovered.tables[0].rows, expected, "round {round}");
            // Nothing of the others is lost.
            let other = database.table(TABLES[1]).unwrap();
            assert!(other.row_count() as i64 >= before);
        }
        stop.store(true, Ordering::Relaxed);
    });
    let found = contents(&database);
    assert_eq!((found[0].len(), found[1].len() as i64), (12 * 15 + 6 * 5, done.load(Ordering::SeqCst)));
    check(&place, database);
}

/// A disk with the database, a copy of a table from before, and rows that came later.
fn disk() -> FaultStorage {
    let place = Place::simulated();
    let database = place.open("db", OpenMode::Write).unwrap();
    (0..30).for_each(|n| insert(&database, n, "a row"));
    copy(&place, "one.pfc", &[TABLES[0]], None).unwrap();
    (30..60).for_each(|n| insert(&database, n, "a later row"));
    drop(database);
    place.faults.crash_image(CrashPolicy::KeepAll)
}

fn place_on(disk: &FaultStorage) -> Place {
    Place::on(disk.crash_image(CrashPolicy::KeepAll), Arc::new(SimulatedClock::new(Duration::from_secs(2_000))))
}

#[test]
fn putting_a_table_back_survives_errors_and_crashes_at_every_call() {
    let disk = disk();
    let act = |place: &Place| -> Result<(), pagefold_utility::Error> {
        let database = place.open("db", OpenMode::Write)?;
        put_back(place, &database, (&[TABLES[0]], &["one.pfc"], &[]), Until::End, false)?;
        Ok(database.close()?)
    };
    let place = place_on(&disk);
    act(&place).unwrap();
    let calls = place.faults.calls();
    let (mut old, mut new) = (0, 0);
    for call in 0..calls {
        for fault in [Fault::Crash, Fault::Error(Failure::Io), Fault::Error(Failure::NoSpace), Fault::SyncDropsWrites] {
            let place = place_on(&disk);
            place.faults.inject(Trigger::at(call), fault);
            let done = act(&place);
            for policy in [CrashPolicy::KeepAll, CrashPolicy::DropAll, CrashPolicy::Random(call)] {
                let name = format!("{fault:?} at call {call} of {calls}, {policy:?}: {done:?}");
                let after = place_on(&place.faults.crash_image(policy));
                let database = after.open("db", OpenMode::Write).unwrap_or_else(|e| panic!("{name}: {e}"));
                match contents(&database)[0].len() {
                    30 => new += 1,
                    60 if done.is_err() => old += 1,
                    rows => panic!("{name}: {rows} rows"),
                }
                database.close().unwrap();
                let report = pagefold_utility::check_files(after.storage.as_ref(), Path::new("db"), &Silent).unwrap();
                assert!(report.is_clean(), "{name}: {report:?}");
            }
        }
    }
    assert!(old > 100 && new > 10, "{old} times as before, {new} times as at the copy");
}

#[test]
fn differences_are_those_that_were_made() {
    let place = Place::simulated();
    let database = place.open("db", OpenMode::Write).unwrap();
    (0..300).for_each(|n| insert(&database, n, "some text"));
    database.copy(Path::new("a.pfc"), None, &Silent).unwrap();
    let sides = |first: &str, second: &str| {
        let side = |name: &str| match name {
            "db" => DiffSide::of_database(&place.storage, &place.clock, Path::new("db"), settings()).unwrap(),
            copy => DiffSide::of_copies(&place.storage, &place.clock, &[PathBuf::from(copy)], settings(), &Silent).unwrap(),
        };
        diff(&side(first), &side(second), DiffOptions { rows_listed: 5, sort_bytes: 1 << 16 }, &Silent).unwrap()
    };
    let same = sides("a.pfc", "db");
    assert!(same.is_same() && same.tables.len() == 2, "{same:?}");
    assert_eq!(same.tables.iter().map(|table| table.rows.as_ref().unwrap().same).sum::<u64>(), 300);
    // Nothing is read of rows whose pages are the same.
    assert!(same.tables.iter().all(|table| table.pages.is_some_and(|pages| pages.changed + pages.gone + pages.new == 0)));
    let mut transaction = database.begin(TransactionOptions::default());
    let table = database.table(TABLES[0]).unwrap();
    let index = database.index(&format!("{}_pk", TABLES[0])).unwrap();
    for n in [3, 5, 8] {
        let rid = transaction.find(&table, &index, &[ValueRef::Int(n)]).unwrap()[0];
        assert!(transaction.delete(&table, rid).unwrap());
    }
    for n in [10, 20] {
        let rid = transaction.find(&table, &index, &[ValueRef::Int(n)]).unwrap()[0];
        let wide = wide(n, "another text");
        let values: Vec<_> = row(n, "another text", &wide).into_iter().enumerate().skip(1).collect();
        assert!(transaction.update(&table, rid, &values).unwrap());
    }
    transaction.commit().unwrap();
    (1000..1004).for_each(|n| insert(&database, n, "new"));
    place.create_table(&database, "third", 9);
    place.drop_index(&database, &format!("{}_m", TABLES[1]));
    for (first, second, inserted, deleted) in [("a.pfc", "db", 4, 3), ("db", "a.pfc", 3, 4)] {
        let found = sides(first, second);
        let table = found.tables.iter().find(|table| table.object.name == TABLES[0]).unwrap();
        let rows = table.rows.as_ref().unwrap();
        assert_eq!((rows.inserted, rows.deleted, rows.changed, rows.same), (inserted, deleted, 2, 295), "{found:?}");
        assert!(table.pages.unwrap().changed > 0 && rows.listed.len() == 5);
        let keys: Vec<&str> = rows.listed.iter().map(|(_, key)| key.as_str()).collect();
        assert!(keys[0].contains('3') && keys[1].contains('5') && keys[2].contains('8') && keys[3].contains("10"), "{keys:?}");
        let (there, lacks) = if second == "db" { (&found.new, &found.gone) } else { (&found.gone, &found.new) };
        assert_eq!(there, &["table \"third\""]);
        assert_eq!(lacks, &[format!("index \"{}_m\"", TABLES[1])]);
    }
    // Written anew: other files, the same rows.
    let options = pagefold_utility::ReorgOptions::default();
    pagefold_utility::reorg(&database, TABLES[0], &options, &Silent).unwrap();
    let found = sides("a.pfc", "db");
    let table = found.tables.iter().find(|table| table.object.name == TABLES[0]).unwrap();
    assert!(table.pages.is_none() && table.rows.as_ref().unwrap().same == 295, "{found:?}");
    // A copy of one table says nothing of the others.
    copy(&place, "one.pfc", &[TABLES[0]], None).unwrap();
    let found = sides("one.pfc", "db");
    assert!(found.is_same() && found.tables.len() == 1, "{found:?}");
}

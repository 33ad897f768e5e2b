//! Errors and crashes while a copy is taken or a database is recovered: the source is unharmed, and nothing half made is taken for whole.

use crate::insert;
use crate::place::{Place, recover, settings};
use crate::world::contents;
use pagefold_engine::backup::Until;
use pagefold_engine::database::OpenMode;
use pagefold_engine::{Error, Silent};
use pagefold_io::{CrashPolicy, Failure, Fault, FaultStorage, SimulatedClock, Storage, Trigger};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A disk with the database and a copy of it from before, and what the database holds.
fn disk() -> FaultStorage {
    let place = Place::simulated();
    let database = place.open("db", OpenMode::Write).unwrap();
    place.storage.create_directory(Path::new("archive")).unwrap();
    database.set_log_archive(Some(Path::new("archive"))).unwrap();
    (0..30).for_each(|n| insert(&database, n, "a row"));
    database.copy(Path::new("before.pfc"), None, &Silent).unwrap();
    (30..60).for_each(|n| insert(&database, n, "a later row"));
    drop(database);
    place.faults.crash_image(CrashPolicy::KeepAll)
}

fn place_on(disk: &FaultStorage) -> Place {
    Place::on(disk.crash_image(CrashPolicy::KeepAll), Arc::new(SimulatedClock::new(Duration::from_secs(2_000))))
}

/// The database is as it was; a copy, or a database made from one, is not there, or is whole.
fn check(disk: &FaultStorage, what: &str) {
    let place = place_on(disk);
    let expected = contents(&place.open("db", OpenMode::Write).unwrap_or_else(|e| panic!("{what}: {e}")));
    assert_eq!(expected[0].len(), 60, "{what}");
    if place.storage.exists(Path::new("after.pfc")).unwrap() {
        recover(&place, "check", &["before.pfc", "after.pfc"], &[], Until::End).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(contents(&place.open("check", OpenMode::Write).unwrap()), expected, "{what}");
    }
    if place.storage.exists(Path::new("made")).unwrap() {
        assert_eq!(contents(&place.open("made", OpenMode::Write).unwrap_or_else(|e| panic!("{what}: {e}"))), expected, "{what}");
    }
}

fn copy(place: &Place) -> Result<(), Error> {
    place.copy_beside(Path::new("after.pfc"), Some(Path::new("before.pfc"))).map(drop)
}

fn make(place: &Place) -> Result<(), Error> {
    recover(place, "made", &["before.pfc"], &["archive", "db"], Until::End).map(drop)
}

/// Each call goes wrong once.
fn every_call(what: &str, act: fn(&Place) -> Result<(), Error>) {
    let disk = disk();
    let place = place_on(&disk);
    act(&place).unwrap();
    check(&place.faults, what);
    let calls = place.faults.calls();
    let faults = [Fault::Crash, Fault::Error(Failure::Io), Fault::Error(Failure::NoSpace), Fault::SyncDropsWrites];
    for call in 0..calls {
        for fault in faults {
            let place = place_on(&disk);
            place.faults.inject(Trigger::at(call), fault);
            let done = act(&place);
            let name = format!("{what}: {fault:?} at call {call} of {calls}: {done:?}");
            assert!(fault != Fault::Crash || done.is_err() || call + 3 > calls, "{name}");
            for policy in [CrashPolicy::KeepAll, CrashPolicy::DropAll, CrashPolicy::Random(call)] {
                let after = place.faults.crash_image(policy);
                if done.is_ok() {
                    assert!(after.exists(Path::new("after.pfc")).unwrap() || after.exists(Path::new("made")).unwrap(), "{name}");
                }
                check(&after, &name);
            }
            if done.is_err() && fault != Fault::Crash {
                // It can be done again at once, in the same place.
                place.faults.clear_faults();
                if let Err(error) = act(&place) {
                    assert!(matches!(error, Error::Exists { .. }), "{name}: then {error}");
                }
            }
        }
    }
}

#[test]
fn a_copy_survives_errors_and_crashes_at_every_call() {
    every_call("copy", copy);
}

#[test]
fn recovery_from_copies_survives_errors_and_crashes_at_every_call() {
    every_call("recover", make);
}

/// Whatever call is the last of a database that is being closed: nothing of it is damaged, before it is opened again and after.
#[test]
fn a_database_whose_closing_was_cut_short_is_whole() {
    let base = disk();
    let mut calls = 0;
    for call in 0.. {
        let place = place_on(&base);
        let database = place.open("db", OpenMode::Write).unwrap();
        insert(&database, 1000, "the last row");
        place.faults.crash_at(place.faults.calls() + call);
        drop(database);
        for policy in [CrashPolicy::KeepAll, CrashPolicy::DropAll, CrashPolicy::Random(call)] {
            let after = Place::on(place.faults.crash_image(policy), Arc::clone(&place.clock));
            let report = pagefold_utility::check(&after.storage, &after.clock, Path::new("db"), settings(), &Silent).unwrap();
            assert!(report.errors.is_empty(), "call {call}, {policy:?}: {:?}", report.errors);
            let again = after.open("db", OpenMode::Write).unwrap();
            assert_eq!(contents(&again)[0].len(), 61, "call {call}, {policy:?}");
            again.close().unwrap();
            let report = pagefold_utility::check_files(after.storage.as_ref(), Path::new("db"), &Silent).unwrap();
            assert!(report.is_clean(), "call {call}, {policy:?}, then closed: {report:?}");
        }
        calls = call;
        if !place.faults.is_crashed() {
            break;
        }
    }
    assert!(calls > 20, "{calls} calls only");
}

//! Archive of the log, and recovery to a point in time.

use crate::insert;
use crate::place::{Place, recover};
use crate::world::{Random, State, change, contents};
use pagefold_engine::backup::{Stop, Until};
use pagefold_engine::database::{Database, OpenMode, TransactionOptions, archive_state};
use pagefold_engine::{Error, Silent};
use pagefold_io::{Clock, OpenOptions, SimulatedClock};
use pagefold_types::ValueRef;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

/// A database whose states at some times are known, by second.
struct Known {
    place: Place,
    clock: SimulatedClock,
    model: State,
    random: Random,
    states: Vec<(u64, State)>,
}

impl Known {
    fn new() -> Known {
        let clock = SimulatedClock::new(Duration::from_secs(1_000_000));
        let place = Place::new(Arc::new(clock.clone()));
        place.storage.create_directory(Path::new("archive")).unwrap();
        Known { place, clock, model: State::default(), random: Random(5), states: Vec::new() }
    }

    fn open(&self) -> Database {
        let database = self.place.open("db", OpenMode::Write).unwrap();
        database.set_log_archive(Some(Path::new("archive"))).unwrap();
        database
    }

    /// One transaction a second.
    fn work(&mut self, database: &Database, seconds: usize) {
        for _ in 0..seconds {
            self.clock.advance(Duration::from_secs(1));
            let mut transaction = database.begin(TransactionOptions::default());
            for _ in 0..self.random.below(12) {
                change(&mut transaction, database, &mut self.model, &mut self.random).unwrap();
            }
            transaction.commit().unwrap();
            self.states.push((self.clock.unix_time().as_nanos() as u64, self.model.clone()));
            if self.random.below(8) == 0 {
                database.checkpoint().unwrap();
            }
        }
    }

    fn at(&self, time: u64) -> &State {
        &self.states.iter().rev().find(|(commit, _)| *commit <= time).unwrap().1
    }
}

#[test]
fn recovery_to_a_point_in_time_has_the_commits_up_to_it_and_no_other() {
    let mut known = Known::new();
    let database = known.open();
    known.work(&database, 60);
    database.copy(Path::new("whole.pfc"), None, &Silent).unwrap();
    let copied = known.states.len();
    known.work(&database, 40);
    database.copy(Path::new("more.pfc"), Some(Path::new("whole.pfc")), &Silent).unwrap();
    let copied_more = known.states.len();
    known.work(&database, 300);
    // The writer is gone; part of its log is in the archive, the rest with it.
    drop(database);
    let logs = ["archive", "db"];
    let mut lsn = 0;
    for (i, time) in known.states.iter().map(|(time, _)| *time).enumerate().step_by(23) {
        for (chain, from) in [(&["whole.pfc"][..], copied), (&["whole.pfc", "more.pfc"], copied_more)] {
            for until in [time, time + SECOND / 2] {
                let made = format!("made-{i}-{}-{}", chain.len(), until % SECOND);
                let done = recover(&known.place, &made, chain, &logs, Until::Time(until));
                if i + 1 < from {
                    let error = done.unwrap_err().to_string();
                    assert!(error.contains("use an earlier copy"), "{error}");
                    continue;
                }
                let done = done.unwrap();
                assert_eq!(done.stop, if i + 1 < known.states.len() { Stop::Asked } else { Stop::EndOfLog });
                assert_eq!(contents(&known.place.open(&made, OpenMode::Write).unwrap()), *known.at(until), "second {i}");
                lsn = done.log_end;
            }
        }
    }
    // By position, and to the end.
    let done = recover(&known.place, "by-lsn", &["whole.pfc"], &logs, Until::Lsn(lsn)).unwrap();
    assert_eq!(done.log_end, lsn);
    let done = recover(&known.place, "end", &["whole.pfc", "more.pfc"], &logs, Until::End).unwrap();
    assert_eq!(done.stop, Stop::EndOfLog);
    assert_eq!(contents(&known.place.open("end", OpenMode::Write).unwrap()), known.model);
    let error = recover(&known.place, "x", &["whole.pfc"], &logs, Until::Lsn(5000)).unwrap_err().to_string();
    assert!(error.contains("use an earlier copy"), "{error}");
}

#[test]
fn a_missing_segment_is_named_unless_nothing_of_it_is_wanted() {
    let mut known = Known::new();
    let database = known.open();
    known.work(&database, 20);
    database.copy(Path::new("whole.pfc"), None, &Silent).unwrap();
    known.work(&database, 300);
    drop(database);
    let storage = Arc::clone(&known.place.storage);
    let archived = storage.list(Path::new("archive")).unwrap().remove(0);
    let segments = storage.list(&archived).unwrap();
    assert!(segments.len() > 6, "{segments:?}");
    let gone = &segments[segments.len() - 3];
    storage.rename(gone, Path::new("gone")).unwrap();
    let name = gone.file_stem().unwrap().to_str().unwrap();
    let error = recover(&known.place, "made", &["whole.pfc"], &["archive", "db"], Until::End).unwrap_err().to_string();
    assert!(error.contains(name) && error.contains("missing"), "{error}");
    let (time, state) = &known.states[25];
    recover(&known.place, "early", &["whole.pfc"], &["archive", "db"], Until::Time(*time)).unwrap();
    assert_eq!(contents(&known.place.open("early", OpenMode::Write).unwrap()), *state);
    // Without the last ones there is just less.
    let done = recover(&known.place, "less", &["whole.pfc"], &["archive"], Until::End);
    assert!(done.is_err(), "a gap within the archive");
    storage.rename(Path::new("gone"), gone).unwrap();
    let done = recover(&known.place, "less", &["whole.pfc"], &["archive"], Until::End).unwrap();
    let less = contents(&known.place.open("less", OpenMode::Write).unwrap());
    assert_eq!(less, *known.at(done.last_commit_ns));
    // A damaged one is an error, not the end.
    let file = storage.open(gone, &OpenOptions::read_write()).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, 9000).unwrap();
    file.write_at(&[byte[0] ^ 1], 9000).unwrap();
    let error = recover(&known.place, "made", &["whole.pfc"], &["archive", "db"], Until::End).unwrap_err();
    assert!(matches!(&error, Error::Damaged { path, .. } if path.contains(name)), "{error}");
    // It may be whole elsewhere, and cut off here.
    file.write_at(&byte, 9000).unwrap();
    let mut whole = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut whole, 0).unwrap();
    file.set_len(4096).unwrap();
    assert!(recover(&known.place, "made", &["whole.pfc"], &["archive", "db"], Until::End).is_err());
    storage.create_directory(Path::new("second")).unwrap();
    let second = storage.open(&Path::new("second").join(gone.file_name().unwrap()), &OpenOptions::create_new()).unwrap();
    second.write_at(&whole, 0).unwrap();
    recover(&known.place, "both", &["whole.pfc"], &["archive", "db", "second"], Until::End).unwrap();
    assert_eq!(contents(&known.place.open("both", OpenMode::Write).unwrap()), known.model);
    file.set_len(0).unwrap();
    file.write_at(&whole, 0).unwrap();
    file.write_at(&[byte[0] ^ 1], 9000).unwrap();
    // Neither are directories without log, or with that of another database.
    let error = recover(&known.place, "made", &["whole.pfc"], &["early/data"], Until::End).unwrap_err().to_string();
    assert!(error.contains("early/data: no segment"), "{error}");
    let error = recover(&known.place, "made", &["whole.pfc"], &["early"], Until::End).unwrap_err().to_string();
    assert!(error.contains("another database's log") || error.contains("missing"), "{error}");
}

#[test]
fn without_its_archive_the_log_stays() {
    let mut known = Known::new();
    let database = known.open();
    known.work(&database, 10);
    database.copy(Path::new("whole.pfc"), None, &Silent).unwrap();
    known.work(&database, 100);
    let storage = Arc::clone(&known.place.storage);
    let state = || archive_state(storage.as_ref(), Path::new("db")).unwrap().unwrap();
    assert_eq!(state().problem, None);
    let few = known.place.segments("db/log");
    storage.rename(Path::new("archive"), Path::new("elsewhere")).unwrap();
    known.work(&database, 200);
    assert!(known.place.segments("db/log") > few + 4);
    assert!(state().problem.unwrap().contains("missing") && state().waiting_segments > 4);
    // The setting stays with the database.
    drop(database);
    let database = known.place.open("db", OpenMode::Write).unwrap();
    known.work(&database, 30);
    storage.rename(Path::new("elsewhere"), Path::new("archive")).unwrap();
    (0..3).for_each(|_| database.checkpoint().unwrap());
    assert!(known.place.segments("db/log") <= few && state().problem.is_none());
    recover(&known.place, "made", &["whole.pfc"], &["archive", "db"], Until::End).unwrap();
    assert_eq!(contents(&known.place.open("made", OpenMode::Write).unwrap()), known.model);
    database.set_log_archive(None).unwrap();
    assert_eq!(archive_state(storage.as_ref(), Path::new("db")).unwrap(), None);
    assert!(database.set_log_archive(Some(Path::new("nowhere"))).is_err());
}

#[test]
fn recovery_stops_before_tables_are_changed() {
    let mut known = Known::new();
    let database = known.open();
    known.work(&database, 10);
    database.copy(Path::new("whole.pfc"), None, &Silent).unwrap();
    known.work(&database, 10);
    let before = known.model.clone();
    known.clock.advance(Duration::from_secs(1));
    let time = known.clock.unix_time().as_nanos() as u64;
    known.place.create_table(&database, "third", 5);
    known.work(&database, 10);
    database.copy(Path::new("after.pfc"), None, &Silent).unwrap();
    known.work(&database, 10);
    drop(database);
    let done = recover(&known.place, "made", &["whole.pfc"], &["archive", "db"], Until::End).unwrap();
    assert_eq!(done.stop, Stop::TablesChanged(time));
    assert_eq!(contents(&known.place.open("made", OpenMode::Write).unwrap()), before);
    let done = recover(&known.place, "after", &["after.pfc"], &["archive", "db"], Until::End).unwrap();
    assert_eq!(done.stop, Stop::EndOfLog);
    assert_eq!(contents(&known.place.open("after", OpenMode::Write).unwrap()), known.model);
}

/// Tables that come empty, and what goes, are in the log: recovery goes through them, and to any moment between.
#[test]
fn recovery_goes_through_definitions() {
    let mut known = Known::new();
    let database = known.open();
    known.work(&database, 10);
    database.copy(Path::new("whole.pfc"), None, &Silent).unwrap();
    let clock = known.clock.clone();
    let now = || {
        let now = clock.unix_time().as_nanos() as u64;
        clock.advance(Duration::from_secs(1));
        now
    };
    let mut moments = vec![(now(), 0, true)];
    known.place.create_table(&database, "third", 0);
    moments.push((now(), 1, true));
    let table = database.table("third").unwrap();
    for n in 0..3 {
        let mut transaction = database.begin(TransactionOptions::default());
        transaction.insert(&table, &[ValueRef::Int(n)]).unwrap();
        transaction.commit().unwrap();
    }
    moments.push((now(), 4, true));
    known.place.drop_index(&database, "coded_m");
    moments.push((now(), 4, false));
    known.work(&database, 10);
    let mut change = database.change();
    change.drop_table("third").unwrap();
    change.commit().unwrap();
    moments.push((now(), 0, false));
    database.checkpoint().unwrap();
    known.work(&database, 10);
    drop(table);
    drop(database);
    for (i, (time, third, index)) in moments.into_iter().enumerate() {
        let name = format!("made{i}");
        let done = recover(&known.place, &name, &["whole.pfc"], &["archive", "db"], Until::Time(time)).unwrap();
        assert_eq!(done.stop, Stop::Asked);
        let made = known.place.open(&name, OpenMode::Write).unwrap();
        // One more than rows; 0: no table.
        assert_eq!(made.table("third").map_or(0, |table| table.row_count() + 1), third, "moment {i}");
        assert_eq!(made.index("coded_m").is_ok(), index, "moment {i}");
    }
    let done = recover(&known.place, "end", &["whole.pfc"], &["archive", "db"], Until::End).unwrap();
    assert_eq!(done.stop, Stop::EndOfLog);
    assert_eq!(contents(&known.place.open("end", OpenMode::Write).unwrap()), known.model);
}

#[test]
fn a_recovered_database_and_the_old_one_do_not_take_each_others_log() {
    let mut known = Known::new();
    let database = known.open();
    known.work(&database, 10);
    database.copy(Path::new("whole.pfc"), None, &Silent).unwrap();
    recover(&known.place, "made", &["whole.pfc"], &[], Until::End).unwrap();
    let made = known.place.open("made", OpenMode::Write).unwrap();
    made.set_log_archive(Some(Path::new("archive"))).unwrap();
    let expected = contents(&made);
    // Both go on, and both archive.
    for n in 0..300 {
        insert(&made, 10_000 + n, &"made ".repeat(40));
        if n % 20 == 0 {
            made.checkpoint().unwrap();
        }
    }
    known.work(&database, 200);
    made.copy(Path::new("of-made.pfc"), None, &Silent).unwrap();
    insert(&made, 20_000, "last");
    made.close().unwrap();
    drop(database);
    assert_eq!(known.place.storage.list(Path::new("archive")).unwrap().len(), 2);
    recover(&known.place, "old", &["whole.pfc"], &["archive", "db"], Until::End).unwrap();
    assert_eq!(contents(&known.place.open("old", OpenMode::Write).unwrap()), known.model);
    recover(&known.place, "new", &["of-made.pfc"], &["archive", "made"], Until::End).unwrap();
    let new = contents(&known.place.open("new", OpenMode::Write).unwrap());
    assert_eq!(new[0].len(), expected[0].len() + 301);
    // Crossed, it is refused.
    for (copy, log) in [("whole.pfc", "made/log"), ("of-made.pfc", "db/log")] {
        let error = recover(&known.place, "x", &[copy], &[log], Until::End).unwrap_err().to_string();
        assert!(error.contains("another database's log") || error.contains("missing"), "{error}");
    }
}

//! Advice that is carried out, with a crash, an error or a full disk at its calls of the disk: each object is as it was or as it was to be, in the order of the plan, no
//! row is lost, and advice that is asked for again does the rest.
//!
//! All calls: `PAGEFOLD_ADVICE_EVERY=1`.

use crate::{DIRECTORY, alter_table, contents, open, small};
use pagefold_engine::database::{Database, OpenMode};
use pagefold_io::{CrashPolicy, Failure, FaultOptions, FaultStorage, OpenOptions, Repeat, Storage};
use pagefold_utility::{AdviseOptions, Applied, Calibration, LoadOptions, Progress, Silent, Unit, advise, apply_advice, check_files, load};
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Two tables that nobody has compressed, one of them altered since.
fn base() -> FaultStorage {
    let storage = FaultStorage::new(FaultOptions { seed: 11, sector_bytes: 4096, ..FaultOptions::default() });
    for (name, rows) in [("t", 0..2_200), ("other", 0..1_600)] {
        let mut text = String::from("id,city,remark\n");
        rows.for_each(|n| _ = writeln!(text, "{n},city {},{}", n % 7, "carefully final deposits ".repeat(2 + n % 5)));
        let file = storage.open(Path::new("rows.csv"), &OpenOptions::create()).unwrap();
        file.set_len(0).unwrap();
        file.write_at(text.as_bytes(), 0).unwrap();
        let database = open(&storage, OpenMode::Create).unwrap();
        let options = LoadOptions { primary_key: vec!["id".into()], ..small() };
        load(&database, name, &["rows.csv".into()], &options, &Silent).unwrap();
    }
    storage.remove(Path::new("rows.csv")).unwrap();
    alter_table(&open(&storage, OpenMode::Write).unwrap()).unwrap();
    storage
}

/// The user wants to stop when this step begins.
struct StopAt {
    step: String,
    reached: AtomicBool,
}

impl Progress for StopAt {
    fn start(&self, phase: &str, _total: Option<u64>, _unit: Unit) {
        self.reached.fetch_or(phase.starts_with(&self.step), Ordering::Relaxed);
    }

    fn advance(&self, _n: u64) {}

    fn finish(&self) {}

    fn interrupted(&self) -> bool {
        self.reached.load(Ordering::Relaxed)
    }
}

/// What opening finds, once what a crash has left is gone; and nothing is damaged or leaked.
fn state(storage: &FaultStorage, what: &str) -> Vec<String> {
    let database = open(storage, OpenMode::Write).unwrap_or_else(|e| panic!("{what}: {e}"));
    let seen = contents(&database);
    let objects = 1 + database.tables().unwrap().len() + database.indexes().unwrap().len();
    drop(database);
    let report = check_files(storage, Path::new(DIRECTORY), &Silent).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(report.errors.is_empty(), "{what}: {:?}", report.errors);
    assert_eq!(storage.list(&Path::new(DIRECTORY).join("data")).unwrap().len(), objects, "{what}: space leaked");
    seen
}

/// Asks for advice with what was measured once, and does it.
fn advise_and_apply(database: &Database, calibration: &Calibration) -> Applied {
    let plan = advise(database, &options(calibration), &Silent).unwrap();
    apply_advice(database, &plan, &Silent).unwrap()
}

fn options(calibration: &Calibration) -> AdviseOptions {
    AdviseOptions { calibration: calibration.clone(), sample_pages: None, ..AdviseOptions::default() }
}

#[test]
fn advice_that_is_cut_short_at_any_call_loses_nothing_and_is_finished_the_next_time() {
    let every: u64 = std::env::var("PAGEFOLD_ADVICE_EVERY").ok().and_then(|every| every.parse().ok()).unwrap_or(23);
    let base = base();
    let copy = || base.crash_image(CrashPolicy::KeepAll);
    let plan = advise(&open(&copy(), OpenMode::Write).unwrap(), &options(&Calibration::default()), &Silent).unwrap();
    let steps: Vec<String> = plan.steps().map(|object| object.name.clone()).collect();
    assert!(steps.len() >= 2 && steps.contains(&"t".into()) && steps.contains(&"other".into()), "{steps:?}");
    // What there is after none, one, two of the steps: whoever wants to stop has just that.
    let mut states = vec![state(&copy(), "before")];
    for step in 1..=steps.len() + 1 {
        let run = copy();
        let stop = StopAt { step: format!("{step}/"), reached: AtomicBool::new(false) };
        let applied = apply_advice(&open(&run, OpenMode::Write).unwrap(), &plan, &stop).unwrap();
        // A small object may be done before anybody looks.
        let done = applied.done.len();
        assert!(done + 1 >= step && applied.failed.is_empty() && applied.left == steps[done..], "stopped at step {step}: {applied:?}");
        let found = state(&run, &format!("stopped at step {step}"));
        if done == states.len() {
            states.push(found);
        } else {
            assert_eq!(states[done], found, "stopped at step {step}");
        }
    }
    assert_eq!(states.len(), steps.len() + 1);
    let (last, mut met, mut finished) = (states.len() - 1, vec![0_u64; states.len()], 0);
    for (failure, repeat) in [(None, Repeat::Once), (Some(Failure::Io), Repeat::Once), (Some(Failure::NoSpace), Repeat::Forever)] {
        for call in (0..).step_by(every as usize) {
            let run = copy();
            let at = run.calls() + call;
            match failure {
                None => run.crash_at(at),
                Some(failure) => run.error_at(at, failure, repeat),
            }
            let outcome = open(&run, OpenMode::Write).and_then(|database| apply_advice(&database, &plan, &Silent));
            let reached = run.calls() > at || run.is_crashed();
            run.clear_faults();
            let acknowledged = outcome.as_ref().map_or(0, |applied| applied.done.len());
            let policies = [CrashPolicy::DropAll, CrashPolicy::KeepAll, CrashPolicy::Random(call)];
            for policy in &policies[..if failure.is_none() { 3 } else { 1 }] {
                let what = format!("{failure:?} at call {call}, {policy:?}");
                let image = if failure.is_none() { run.crash_image(*policy) } else { run.clone() };
                let found = state(&image, &what);
                // An error spoils one object; the next ones may be done all the same.
                let place = states.iter().position(|state| *state == found);
                if failure.is_none() {
                    let place = place.unwrap_or_else(|| panic!("{what}: {found:?}, {states:?}"));
                    assert!(place >= acknowledged, "{what}: {acknowledged} steps were acknowledged, {place} are there");
                }
                place.iter().for_each(|place| met[*place] += 1);
                // All of it is done the next time, and nothing is left after that.
                if (call / every).is_multiple_of(3) && place != Some(last) {
                    let database = open(&image, OpenMode::Write).unwrap();
                    let applied = advise_and_apply(&database, &plan.calibration);
                    assert!(applied.failed.is_empty() && applied.left.is_empty(), "{what}: {applied:?}");
                    let left = place.map(|place| steps[place..].to_vec());
                    let done: Vec<String> = applied.done.iter().map(|(name, _)| name.clone()).collect();
                    assert!(left.is_none_or(|left| left == done), "{what}: {done:?}");
                    assert_eq!(advise(&database, &options(&plan.calibration), &Silent).unwrap().steps().count(), 0, "{what}");
                    drop(database);
                    assert_eq!(state(&image, &what), states[last], "{what}, and again");
                    finished += 1;
                }
            }
            if !reached {
                break;
            }
        }
    }
    println!("{steps:?}: found after so many steps {met:?}; finished {finished} times");
    assert!(met.iter().all(|count| *count > 0) && finished > 5, "{met:?}, {finished}");
}

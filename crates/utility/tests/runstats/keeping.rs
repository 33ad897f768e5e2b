//! Statistics that are kept: over a close and a crash, a REORG, beside writers; and when they are gathered again.

use super::world::{insert, make, open, storage};
use pagefold_engine::database::{OpenMode, TransactionOptions};
use pagefold_engine::table_space::Method;
use pagefold_format::catalog::figure;
use pagefold_io::MemoryStorage;
use pagefold_types::ValueRef;
use pagefold_utility::{
    Error, Progress, ReorgOptions, RunstatsOptions, RunstatsReport, Sample, Silent, Unit, drop_object, is_stale, kept_statistics, reorg,
    runstats, runstats_if_stale,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn rows_of(report: &RunstatsReport) -> Option<f64> {
    Some(report.tables.first()?.statistics.figures.get(figure::ROWS)?.value)
}

#[test]
fn they_stay_over_reorg_and_a_close() {
    let storage = storage();
    let database = open(&storage, OpenMode::Create);
    make(&database, Method::None, 4096, 2_000, 1);
    assert_eq!(kept_statistics(&database, &[]).unwrap().without, ["t"]);
    let gathered = runstats(&database, &[], &RunstatsOptions::default(), &Silent).unwrap();
    assert_eq!(kept_statistics(&database, &["t".into()]).unwrap(), gathered);
    // What else is said of the table stays, and is said beside them.
    let mut transaction = database.begin(TransactionOptions::default());
    let table = database.table("t").unwrap();
    let mut notes = (*table.notes()).clone();
    notes.set_comment(Some("of ships")).unwrap();
    transaction.alter_table(&table, notes).unwrap();
    transaction.commit().unwrap();
    assert_eq!(kept_statistics(&database, &["t".into()]).unwrap(), gathered);
    runstats(&database, &[], &RunstatsOptions::default(), &Silent).unwrap();
    assert_eq!(table.notes().comment(), Some("of ships"));
    drop(table);
    database.close().unwrap();
    let database = open(&storage, OpenMode::Write);
    let kept = kept_statistics(&database, &[]).unwrap();
    assert_eq!((rows_of(&kept), kept.tables[0].indexes.len()), (Some(2_000.0), 2));
    reorg(&database, "t", &ReorgOptions { method: Some(Method::Page.into()), ..ReorgOptions::default() }, &Silent).unwrap();
    let after = kept_statistics(&database, &[]).unwrap();
    assert_eq!((rows_of(&after), after.tables[0].indexes.len()), (Some(2_000.0), 2));
    drop_object(&database, "t").unwrap();
    assert_eq!(kept_statistics(&database, &[]).unwrap(), RunstatsReport::default());
}

#[test]
fn they_stay_over_a_crash() {
    let memory = MemoryStorage::new();
    let storage: std::sync::Arc<dyn pagefold_io::Storage> = std::sync::Arc::new(memory.clone());
    let database = open(&storage, OpenMode::Create);
    make(&database, Method::Row, 4096, 500, 1);
    let gathered = runstats(&database, &[], &RunstatsOptions::default(), &Silent).unwrap();
    // As another process would find it if this one ended here: the log is all that has them.
    let copy = memory.snapshot();
    let copied: std::sync::Arc<dyn pagefold_io::Storage> = std::sync::Arc::new(copy);
    let again = open(&copied, OpenMode::Write);
    assert_eq!(kept_statistics(&again, &["t".into()]).unwrap(), gathered);
    drop(database);
}

#[test]
fn nobody_waits_for_them() {
    let storage = storage();
    let database = open(&storage, OpenMode::Create);
    let table = make(&database, Method::None, 2048, 6_000, 1);
    // Somebody has changed a row and does not end.
    let mut other = database.begin(TransactionOptions::default());
    let rid = super::world::rows(&database, &table)[17].0;
    assert!(other.update(&table, rid, &[(9, ValueRef::Int(-5))]).unwrap());
    let (stop, written) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut id = 1_000_000;
            while !stop.load(Ordering::Relaxed) {
                insert(&database, &table, id..id + 50, id as u64);
                id += 50;
                written.fetch_add(50, Ordering::Relaxed);
            }
        });
        for round in 0..20 {
            let sample = if round % 2 == 0 { Sample::All } else { Sample::Pages(64) };
            let before = written.load(Ordering::Relaxed);
            let options = RunstatsOptions { sample, seed: round, ..RunstatsOptions::default() };
            let report = runstats(&database, &["t".into()], &options, &Silent).unwrap();
            assert_eq!(report.tables[0].statistics.seed.is_some(), round % 2 == 1);
            let after = written.load(Ordering::Relaxed) + 50;
            let rows = rows_of(&report).unwrap() as u64;
            assert!((6_000 + before..=6_000 + after).contains(&rows), "{before} {rows} {after}");
            let least = report.tables[0].statistics.columns[9].least.clone().unwrap();
            assert!(least >= vec![0x80, 0, 0, 0], "what is not committed is not seen");
        }
        stop.store(true, Ordering::Relaxed);
    });
    other.commit().unwrap();
    assert!(database.table("t").unwrap().notes().statistics().is_some());
}

#[test]
fn they_are_gathered_again_after_a_share_of_the_rows_has_changed() {
    let storage = storage();
    let database = open(&storage, OpenMode::Create);
    let table = make(&database, Method::None, 4096, 1_000, 1);
    let again = |share| runstats_if_stale(&database, share, &RunstatsOptions::default(), &Silent).unwrap().tables.len();
    assert_eq!((again(0.2), again(0.2)), (1, 0), "nothing was known");
    let all = super::world::rows(&database, &table);
    let update = |count: usize| {
        let mut transaction = database.begin(TransactionOptions::default());
        all[..count].iter().for_each(|(rid, _)| assert!(transaction.update(&table, *rid, &[(8, ValueRef::Boolean(true))]).unwrap()));
        transaction.commit().unwrap();
    };
    update(200);
    assert_eq!((table.rows_changed(), is_stale(&table, 0.2), again(0.2)), (200, false, 0));
    update(1);
    assert!(is_stale(&table, 0.2));
    assert_eq!((again(0.2), table.rows_changed(), again(0.2)), (1, 0, 0));
    insert(&database, &table, 2_000..2_300, 9);
    database.close().unwrap();
    // What was counted is forgotten; how many more there are is not.
    let database = open(&storage, OpenMode::Write);
    assert!(is_stale(&database.table("t").unwrap(), 0.2));
    assert!(!is_stale(&database.table("t").unwrap(), 0.4));
    assert_eq!(kept_statistics(&database, &[]).unwrap().tables[0].rows_changed, 300);
}

/// Wants to stop after so many looks.
struct Stops(AtomicU64);

impl Progress for Stops {
    fn start(&self, _phase: &str, _total: Option<u64>, _unit: Unit) {}
    fn advance(&self, _n: u64) {}
    fn finish(&self) {}
    fn interrupted(&self) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) == 0
    }
}

#[test]
fn it_can_be_stopped() {
    let storage = storage();
    let database = open(&storage, OpenMode::Create);
    make(&database, Method::None, 2048, 3_000, 1);
    for looks in [0, 2, 4] {
        let stopped = runstats(&database, &[], &RunstatsOptions::default(), &Stops(AtomicU64::new(looks)));
        assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
        assert_eq!(kept_statistics(&database, &[]).unwrap().without, ["t"]);
    }
    assert!(matches!(runstats(&database, &["u".into()], &RunstatsOptions::default(), &Silent), Err(Error::Engine(_))));
}

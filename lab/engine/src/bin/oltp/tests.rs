//! Each workload for a moment, with small tables, on either side.

use crate::pgbench::Pgbench;
use crate::sysbench::Sysbench;
use crate::workload::{Settings, Workload, run};
use crate::ycsb::{Ycsb, YcsbKind};
use pagefold_lab_engine::sessions::Connection;
use pagefold_lab_engine::sessions::ours::{self, Ours, Use};
use std::time::Duration;

const SETTINGS: Settings = Settings { terminals: 3, duration: Duration::from_millis(300), seed: 1, is_loud: false };

/// `breaks`: a statement after which what has to hold does not.
fn holds<W: Workload>(workload: &W, breaks: &str) {
    let directory = tempfile::tempdir().unwrap();
    let database = ours::open(directory.path(), 64 << 20).unwrap();
    ours::create(&database, &workload.definitions(" WITH (compress = 'page', key_format = 'prefix')")).unwrap();
    let of = Use { isolation: "read committed".into(), synchronous: "off".into() };
    let connect = || Ours::new(&database, &of, workload.queries());
    workload.load(&mut connect().unwrap()).unwrap();
    let measured = run(workload, &SETTINGS, connect).unwrap();
    assert!(measured.count() > 10, "{}: {}", workload.name(), measured.count());
    let mut connection = connect().unwrap();
    workload.check(&mut connection, measured.told).unwrap();
    connection.say(breaks, &[]).unwrap();
    assert!(workload.check(&mut connection, measured.told).is_err(), "{}", workload.name());
}

#[test]
fn what_has_to_hold_does_and_is_seen_when_it_does_not() {
    for kind in [YcsbKind::A, YcsbKind::B, YcsbKind::C, YcsbKind::D, YcsbKind::E, YcsbKind::F] {
        holds(&Ycsb::new(kind, 500, SETTINGS.terminals), "DELETE FROM usertable WHERE ycsb_key = (SELECT max(ycsb_key) FROM usertable)");
    }
    holds(&Pgbench::new(1), "UPDATE pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = 3");
    for writes in [false, true] {
        holds(&Sysbench { rows: 500, writes }, "DELETE FROM sbtest1 WHERE id = 7");
    }
}

#[cfg(feature = "rivals")]
#[test]
fn sqlite_runs_the_same() {
    use pagefold_lab_engine::sessions::sqlite::Sqlite;
    fn by_sqlite<W: Workload>(workload: &W) {
        let directory = tempfile::tempdir().unwrap();
        let connect = || Sqlite::open(&directory.path().join("oltp"), "off", 1 << 22, true, true);
        let mut connection = connect().unwrap();
        connection.create(&workload.definitions("")).unwrap();
        workload.load(&mut connection).unwrap();
        let measured = run(workload, &SETTINGS, connect).unwrap();
        assert!(measured.count() > 10);
        workload.check(&mut connection, measured.told).unwrap();
    }
    for kind in [YcsbKind::D, YcsbKind::E, YcsbKind::F] {
        by_sqlite(&Ycsb::new(kind, 500, SETTINGS.terminals));
    }
    by_sqlite(&Pgbench::new(1));
    by_sqlite(&Sysbench { rows: 500, writes: true });
}

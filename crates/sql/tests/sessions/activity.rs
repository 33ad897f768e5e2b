//! What tables of the database's own say of what goes on: locks and waits, statements, pools; of what is stored.

use super::{database, number, run};
use pagefold_sql::Session;
use pagefold_types::Value;
use pagefold_utility::{ReorgOptions, RunstatsOptions, Silent, reorg, runstats};
use std::thread;
use std::time::{Duration, Instant};

fn texts(session: &mut Session, sql: &str) -> Vec<String> {
    let rows = run(session, sql);
    rows.iter().map(|row| row.iter().map(|value| format!("{value:?}")).collect::<Vec<_>>().join(" ")).collect()
}

/// Asks until there is such a row.
fn until(session: &mut Session, sql: &str) -> Vec<Value> {
    let begun = Instant::now();
    loop {
        if let Some(row) = run(session, sql).pop() {
            return row;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{sql}");
        thread::yield_now();
    }
}

#[test]
fn who_waits_for_whom_is_seen() {
    let database = database();
    let (mut one, mut two, mut third) = (database.session(), database.session(), database.session());
    run(&mut one, "CREATE TABLE t (id INTEGER PRIMARY KEY, x INTEGER)");
    run(&mut one, "INSERT INTO t VALUES (1, 0), (2, 0)");
    run(&mut one, "BEGIN");
    run(&mut one, "UPDATE t SET x = 1 WHERE id = 1");
    let own = number(&mut one, "SELECT transaction_id FROM pagefold_transactions WHERE is_own");
    assert_eq!(texts(&mut third, "SELECT state, statement FROM pagefold_statements WHERE session_id = 1").len(), 1);
    assert_eq!(number(&mut third, "SELECT count(*) FROM pagefold_statements WHERE NOT is_own AND state = 'idle in transaction'"), 1);
    let held = format!("FROM pagefold_locks WHERE transaction_id = {own} AND object_name = 't'");
    assert_eq!(number(&mut third, &format!("SELECT count(*) {held} AND lock_type = 'row' AND mode = 'exclusive' AND is_granted")), 1);
    assert_eq!(number(&mut third, &format!("SELECT count(*) {held} AND lock_type = 'table' AND mode = 'intent exclusive'")), 1);
    assert_eq!(number(&mut third, "SELECT count(*) FROM pagefold_locks WHERE NOT is_granted"), 0);
    let waiting = thread::spawn(move || {
        run(&mut two, "UPDATE t SET x = 2 WHERE id = 1");
        two
    });
    let wait = until(&mut third, "SELECT transaction_id, lock_type, object_name, mode, waits_for FROM pagefold_locks WHERE NOT is_granted");
    assert_eq!(wait[1..], [Value::Text("row".into()), Value::Text("t".into()), Value::Text("exclusive".into()), Value::Int(own)]);
    let Value::Int(waiter) = wait[0] else { panic!("{wait:?}") };
    assert_eq!(number(&mut third, &format!("SELECT waits_for FROM pagefold_transactions WHERE transaction_id = {waiter}")), own);
    let running = format!("SELECT statement FROM pagefold_statements WHERE state = 'running' AND transaction_id = {waiter}");
    assert_eq!(run(&mut third, &running), [[Value::Text("UPDATE t SET x = 2 WHERE id = 1".into())]]);
    run(&mut one, "ROLLBACK");
    let two = waiting.join().unwrap();
    assert_eq!(number(&mut third, "SELECT count(*) FROM pagefold_locks"), 0, "all is given up");
    assert_eq!(number(&mut third, "SELECT count(*) FROM pagefold_statements"), 3);
    drop((one, two));
    assert_eq!(texts(&mut third, "SELECT session_id, state, is_own FROM pagefold_statements"), ["Int(3) Text(\"running\") Boolean(true)"]);
}

#[test]
fn a_statement_that_failed_does_not_run_any_more() {
    let database = database();
    let (mut one, mut other) = (database.session(), database.session());
    let state = |other: &mut Session| {
        texts(other, "SELECT state, statements, transaction_id IS NULL FROM pagefold_statements WHERE session_id = 1")
    };
    assert_eq!(state(&mut other), ["Text(\"idle\") Int(0) Boolean(true)"]);
    assert!(one.execute("SELECT 1 / 0", &[]).and_then(|answer| answer.rows()).is_err());
    assert_eq!(state(&mut other), ["Text(\"idle\") Int(1) Boolean(true)"]);
    let mut answer = one.execute("SELECT v FROM generate_series(1, 3) AS s(v)", &[]).unwrap();
    assert!(answer.next_row().unwrap().is_some());
    assert_eq!(state(&mut other), ["Text(\"running\") Int(2) Boolean(false)"], "rows are left");
    drop(answer);
    assert_eq!(state(&mut other), ["Text(\"idle\") Int(2) Boolean(true)"]);
    run(&mut one, "BEGIN");
    run(&mut one, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE");
    assert_eq!(state(&mut other), ["Text(\"idle in transaction\") Int(4) Boolean(false)"]);
    run(&mut one, "COMMIT");
    assert_eq!(state(&mut other), ["Text(\"idle\") Int(5) Boolean(true)"]);
}

#[test]
fn pools_counters_and_the_log_are_those_of_the_engine() {
    let database = database();
    let mut session = database.session();
    run(&mut session, "CREATE TABLE t (id INTEGER PRIMARY KEY, x VARCHAR)");
    let commits = number(&mut session, "SELECT commits FROM pagefold_log");
    run(&mut session, "INSERT INTO t SELECT v, 'row ' || v FROM generate_series(1, 1000) AS s(v)");
    assert_eq!(number(&mut session, "SELECT commits FROM pagefold_log"), commits + 1);
    run(&mut session, "SELECT * FROM t");
    let pool =
        number(&mut session, "SELECT sum(getpages) FROM pagefold_pools WHERE hit_ratio BETWEEN 0 AND 1 AND used_bytes <= limit_bytes");
    let of_pools = "SELECT sum(value) FROM pagefold_counters WHERE counter = 'getpages' AND object_type = 'pool'";
    assert!(pool > 0 && number(&mut session, of_pools) >= pool);
    let inserts = "SELECT sum(value) FROM pagefold_counters WHERE counter IN ('inserts', 'batch_inserts') AND object_name = 't'";
    assert_eq!(number(&mut session, inserts), 1000);
    assert_eq!(number(&mut session, "SELECT count(*) FROM pagefold_utilities"), 0);
}

#[test]
fn dictionaries_and_statistics_are_listed_by_partition() {
    let database = database();
    let mut session = database.session();
    run(
        &mut session,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, x VARCHAR, d DATE) WITH (compress = 'fixed') \
         PARTITION BY RANGE (id) (PARTITION low VALUES LESS THAN (20001), PARTITION high VALUES LESS THAN (MAXVALUE))",
    );
    run(
        &mut session,
        "INSERT INTO t SELECT v, CASE WHEN v % 4 > 0 THEN 'a text of some length ' || v % 10 END, DATE '2020-01-01' + (v % 100)::integer FROM generate_series(1, 20000) AS s(v)",
    );
    assert_eq!(number(&mut session, "SELECT count(*) FROM pagefold_column_statistics"), 0);
    reorg(database.engine(), "t/low", &ReorgOptions::default(), &Silent).unwrap();
    runstats(database.engine(), &["t".into()], &RunstatsOptions::default(), &Silent).unwrap();
    let dictionaries = "SELECT table_name, partition_name, count(*), sum(CASE WHEN is_newest THEN 1 ELSE 0 END) FROM pagefold_dictionaries \
                        WHERE size_bytes > 0 GROUP BY 1, 2";
    let found = run(&mut session, dictionaries);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0][..2], [Value::Text("t".into()), Value::Text("low".into())]);
    assert_eq!(found[0][3], Value::Int(1), "one is the newest");
    let columns = "SELECT column_name, null_share, distinct_values, least, greatest, pages_read = pages, gathered_at IS NOT NULL \
                   FROM pagefold_column_statistics WHERE table_name = 't' AND partition_name = 'low' ORDER BY 1";
    assert_eq!(
        texts(&mut session, columns),
        [
            "Text(\"d\") Double(0.0) Double(100.0) Text(\"2020-01-01\") Text(\"2020-04-09\") Boolean(true) Boolean(true)",
            "Text(\"id\") Double(0.0) Double(20000.0) Text(\"1\") Text(\"20000\") Boolean(true) Boolean(true)",
            "Text(\"x\") Double(0.25) Double(10.0) Text(\"a text of some length 0\") Text(\"a text of some length 9\") Boolean(true) Boolean(true)",
        ]
    );
}

//! Cursors beside what their own transaction and others do.
//!
//! `PAGEFOLD_SQL_ROUNDS` (30) rounds from `PAGEFOLD_SQL_SEED` (1) on.

#[path = "../common/random.rs"]
#[allow(dead_code, reason = "others use more of it")]
mod random;

use super::{database, fails, number, run};
use pagefold_sql::{Session, TransactionState};
use pagefold_types::Value;
use random::{Random, setting};
use std::time::Duration;

/// What a cursor has still to give.
struct Expected {
    name: String,
    rows: Vec<Vec<Value>>,
    /// The savepoints before which it was declared are those behind this one.
    savepoints: usize,
}

const QUERIES: &[&str] = &[
    "SELECT * FROM t",
    "SELECT id, x FROM t WHERE x > 3 ORDER BY x, id",
    "SELECT x, count(*) FROM t GROUP BY x",
    "SELECT a.id, b.id FROM t a JOIN t b ON a.x = b.id",
    "SELECT id FROM t WHERE id BETWEEN 5 AND 30",
    "SELECT x FROM t WHERE id = 7",
    "SELECT DISTINCT x FROM t",
    "SELECT id FROM t WHERE x = 2",
];

fn change(random: &mut Random, step: usize) -> String {
    let (a, b) = (random.below(60), random.below(10));
    match random.below(6) {
        0 => format!("DELETE FROM t WHERE id < {a}"),
        1 => format!("UPDATE t SET x = {b} WHERE id > {a}"),
        2 => format!("UPDATE t SET id = id + {} WHERE x = {b}", 7_000_001 * (step + 1)),
        3 => format!("INSERT INTO t SELECT v, v % 7 FROM generate_series({a}, {}) AS s(v) ON CONFLICT DO NOTHING", a + b),
        4 => format!(
            "MERGE INTO t USING (SELECT {a} AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, {b})"
        ),
        _ => format!("UPDATE t SET x = x + 1 WHERE id % 10 = {b}"),
    }
}

/// Fetches some rows of a cursor; each is to be one of those that were there when it was declared, and to come once. Most queries have no order.
fn fetch(session: &mut Session, cursor: &mut Expected, rows: usize, seed: u64) {
    let found = run(session, &format!("FETCH {rows} FROM {}", cursor.name));
    assert_eq!(found.len(), rows.min(cursor.rows.len()), "seed {seed}, {}", cursor.name);
    for row in found {
        let at = cursor.rows.iter().position(|expected| *expected == row);
        let at = at.unwrap_or_else(|| panic!("seed {seed}, {}: {row:?} of {:?}", cursor.name, cursor.rows));
        cursor.rows.swap_remove(at);
    }
}

#[test]
fn they_give_what_was_there_when_they_were_declared() {
    let first = setting("PAGEFOLD_SQL_SEED", 1);
    for seed in first..first + setting("PAGEFOLD_SQL_ROUNDS", 30) {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let database = database();
        let (mut session, mut other) = (database.session(), database.session());
        let method = random.one(&["none", "row", "page", "fixed", "huffman"]);
        run(&mut session, &format!("CREATE TABLE t (id INTEGER PRIMARY KEY, x INTEGER) WITH (compress = '{method}')"));
        run(&mut session, "CREATE INDEX t_x ON t (x)");
        run(&mut session, "INSERT INTO t SELECT v, v % 9 FROM generate_series(1, 50) AS s(v)");
        let work_mem = random.one(&["2kB", "1MB"]);
        run(&mut session, &format!("SET work_mem = '{work_mem}'"));
        let level = random.one(&["READ COMMITTED", "REPEATABLE READ"]);
        run(&mut session, &format!("BEGIN ISOLATION LEVEL {level}"));
        let (mut cursors, mut savepoints): (Vec<Expected>, usize) = (Vec::new(), 0);
        for step in 0..40 {
            match random.below(10) {
                0 | 1 => {
                    let query = random.one(QUERIES);
                    let name = format!("c{step}");
                    // Both are of one state: nobody else commits between them.
                    run(&mut session, &format!("DECLARE {name} CURSOR FOR {query}"));
                    let rows = run(&mut session, query);
                    cursors.push(Expected { name, rows, savepoints });
                }
                2..=5 if !cursors.is_empty() => {
                    let at = random.below(cursors.len());
                    fetch(&mut session, &mut cursors[at], 1 + random.below(20), seed);
                }
                6 => {
                    run(&mut session, &format!("SAVEPOINT s{savepoints}"));
                    savepoints += 1;
                }
                7 if savepoints > 0 => {
                    let to = random.below(savepoints);
                    if random.percent(30) {
                        run(&mut session, &format!("RELEASE s{to}"));
                        savepoints = to;
                        cursors.iter_mut().for_each(|cursor| cursor.savepoints = cursor.savepoints.min(to));
                    } else {
                        if random.percent(30) {
                            assert_eq!(fails(&mut session, "INSERT INTO t SELECT 5000 FROM generate_series(1, 2)"), "23505");
                        }
                        run(&mut session, &format!("ROLLBACK TO s{to}"));
                        savepoints = to + 1;
                        cursors.retain(|cursor| cursor.savepoints <= to);
                    }
                }
                8 => {
                    run(&mut other, "INSERT INTO t SELECT max(id) + 20000, 3 FROM t");
                }
                _ => {
                    let change = change(&mut random, step);
                    run(&mut session, &change);
                }
            }
        }
        for mut cursor in cursors {
            fetch(&mut session, &mut cursor, 1_000_000, seed);
        }
        run(&mut session, "ROLLBACK");
    }
}

#[test]
fn rows_that_are_left_wait_in_a_file() {
    let database = database();
    let mut session = database.session();
    run(&mut session, "CREATE TABLE t (id INTEGER PRIMARY KEY)");
    run(&mut session, "INSERT INTO t SELECT * FROM generate_series(1, 20000)");
    run(&mut session, "SET work_mem = '2kB'");
    run(&mut session, "BEGIN");
    run(&mut session, "DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id");
    assert_eq!(run(&mut session, "FETCH 10 FROM c").len(), 10);
    let statement = session.prepare("COPY t FROM STDIN").unwrap();
    assert_eq!(session.copy_from(&statement, &mut &b"30000\n"[..]).unwrap(), 1);
    assert_eq!(session.execute("MOVE 19989 FROM c", &[]).unwrap().tag().unwrap(), "MOVE 19989");
    assert_eq!(run(&mut session, "FETCH ALL FROM c"), [[Value::Int(20000)]]);
    assert_eq!(session.execute("MOVE ALL FROM c", &[]).unwrap().tag().unwrap(), "MOVE 0");
    assert_eq!(session.execute("FETCH c", &[]).unwrap().tag().unwrap(), "FETCH 0");
    run(&mut session, "COMMIT");
    assert_eq!(number(&mut session, "SELECT count(*) FROM t"), 20001);
}

#[test]
fn they_can_be_cancelled() {
    let database = database();
    let mut session = database.session();
    run(&mut session, "CREATE TABLE t (id INTEGER)");
    let endless = "DECLARE c CURSOR FOR SELECT v FROM generate_series(1, 1000000000000) AS s(v) WHERE v < 0";
    run(&mut session, "SET statement_timeout = '20ms'");
    run(&mut session, "BEGIN");
    run(&mut session, endless);
    assert_eq!(fails(&mut session, "FETCH c"), "57014");
    assert_eq!(session.transaction_state(), TransactionState::Failed);
    run(&mut session, "ROLLBACK");
    // A statement that changes rows ends when the cursor's are not had in its time; the cursor is gone then.
    run(&mut session, "BEGIN");
    run(&mut session, endless);
    run(&mut session, "SAVEPOINT a");
    assert_eq!(fails(&mut session, "INSERT INTO t VALUES (1)"), "57014");
    run(&mut session, "ROLLBACK TO a");
    assert_eq!(fails(&mut session, "FETCH c"), "34000");
    run(&mut session, "ROLLBACK");
    // The time is that of each FETCH, not that since the first.
    run(&mut session, "SET statement_timeout = '2s'");
    run(&mut session, "BEGIN");
    run(&mut session, "DECLARE d CURSOR FOR SELECT * FROM generate_series(1, 1000000000000)");
    let canceller = session.canceller();
    let cancels = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        canceller.cancel();
    });
    assert_eq!(fails(&mut session, "MOVE ALL FROM d"), "57014");
    cancels.join().unwrap();
    run(&mut session, "ROLLBACK");
    assert_eq!(number(&mut session, "SELECT count(*) FROM t"), 0);
}

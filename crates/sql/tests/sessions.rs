//! Several sessions of one database: what they see of each other, who waits, who has to begin again; plans when definitions change; cancelling.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "sessions/activity.rs"]
mod activity;
#[path = "sessions/cursors.rs"]
mod cursors;
#[path = "sessions/dependents.rs"]
mod dependents;
#[path = "sessions/explained.rs"]
mod explained;
#[path = "sessions/foreign_keys.rs"]
mod foreign_keys;
#[path = "sessions/key_types.rs"]
mod key_types;
#[path = "sessions/spilled.rs"]
mod spilled;
#[path = "sessions/temporary.rs"]
mod temporary;

use pagefold_engine::database::{Database as Engine, OpenMode, Settings};
use pagefold_io::{MemoryStorage, OsClock};
use pagefold_sql::{Database, Session, TransactionState};
use pagefold_types::Value;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

fn database() -> Database {
    let storage = Arc::new(MemoryStorage::new());
    let engine = Engine::open(storage, Arc::new(OsClock), Path::new("memory"), OpenMode::Create, Settings::default()).unwrap();
    Database::new(Arc::new(engine))
}

fn run(session: &mut Session, sql: &str) -> Vec<Vec<Value>> {
    session.execute(sql, &[]).unwrap_or_else(|e| panic!("{sql}: {e}")).rows().unwrap_or_else(|e| panic!("{sql}: {e}"))
}

fn fails(session: &mut Session, sql: &str) -> &'static str {
    match session.execute(sql, &[]) {
        Err(error) => error.sqlstate(),
        Ok(answer) => answer.rows().unwrap_err().sqlstate(),
    }
}

fn number(session: &mut Session, sql: &str) -> i64 {
    match run(session, sql).as_slice() {
        [row] => match row[0] {
            Value::Int(number) => number,
            Value::Decimal(number) => i64::try_from(number).unwrap(),
            ref other => panic!("{sql}: {other:?}"),
        },
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn a_row_that_changed_meanwhile_is_looked_at_again() {
    for method in ["none", "row", "page", "fixed", "huffman"] {
        let database = database();
        let (mut one, mut two) = (database.session(), database.session());
        run(&mut one, &format!("CREATE TABLE t (id INTEGER PRIMARY KEY, x INTEGER) WITH (compress = '{method}')"));
        run(&mut one, "INSERT INTO t SELECT generate_series, 0 FROM generate_series(1, 50)");
        run(&mut one, "BEGIN");
        run(&mut one, "UPDATE t SET x = 7 WHERE id <= 10");
        let waits = thread::spawn(move || {
            // It finds rows with x = 0 that have 7 when it gets them.
            let changed = two.execute("UPDATE t SET x = x + 1 WHERE x = 0", &[]).unwrap();
            let count = changed.count();
            drop(changed);
            count
        });
        thread::sleep(Duration::from_millis(50));
        run(&mut one, "COMMIT");
        assert_eq!(waits.join().unwrap(), 40, "{method}");
        assert_eq!(number(&mut one, "SELECT sum(x) FROM t"), 10 * 7 + 40, "{method}");
    }
}

#[test]
fn no_update_is_lost() {
    let database = database();
    let mut session = database.session();
    run(&mut session, "CREATE TABLE counter (id INTEGER PRIMARY KEY, n INTEGER)");
    run(&mut session, "INSERT INTO counter VALUES (1, 0), (2, 0)");
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let mut session = database.session();
            thread::spawn(move || {
                for _ in 0..200 {
                    run(
                        &mut session,
                        if number % 2 == 0 { "UPDATE counter SET n = n + 1" } else { "UPDATE counter SET n = n + 1 WHERE id = 1" },
                    );
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(number(&mut session, "SELECT n FROM counter WHERE id = 1"), 800);
    assert_eq!(number(&mut session, "SELECT n FROM counter WHERE id = 2"), 400);
}

#[test]
fn merge_looks_again_at_rows_that_others_change() {
    let merge = "MERGE INTO counter USING (SELECT 1 AS id UNION ALL SELECT 2) s ON counter.id = s.id \
                 WHEN MATCHED AND n < 300 THEN UPDATE SET n = counter.n + 1 WHEN MATCHED THEN DELETE \
                 WHEN NOT MATCHED THEN INSERT VALUES (s.id, 0)";
    let database = database();
    let mut session = database.session();
    run(&mut session, "CREATE TABLE counter (id INTEGER PRIMARY KEY, n INTEGER)");
    run(&mut session, "INSERT INTO counter VALUES (1, 0), (2, 0)");
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let mut session = database.session();
            // Where the row is gone, only one of them inserts it.
            thread::spawn(move || (0..200).filter(|_| session.execute(merge, &[]).is_ok_and(|answer| answer.count() == 2)).count())
        })
        .collect();
    let done: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    // 300 times one more, once gone, once there again: 302 to a round.
    let left = i64::try_from(done % 302).unwrap();
    let expected = if left == 301 { Vec::new() } else { vec![vec![Value::Int(left)]; 2] };
    assert_eq!(run(&mut session, "SELECT n FROM counter"), expected, "{done}");
    // Of a snapshot, what others have changed is told.
    run(&mut session, "DELETE FROM counter");
    run(&mut session, "INSERT INTO counter VALUES (1, 0)");
    let mut other = database.session();
    run(&mut other, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_eq!(number(&mut other, "SELECT count(*) FROM counter"), 1);
    run(&mut session, "UPDATE counter SET n = 5");
    assert_eq!(fails(&mut other, merge), "40001");
    run(&mut other, "ROLLBACK");
    assert_eq!(number(&mut session, "SELECT n FROM counter"), 5);
}

#[test]
fn a_snapshot_stays_and_conflicts_are_told() {
    let database = database();
    let (mut one, mut two) = (database.session(), database.session());
    run(&mut one, "CREATE TABLE t (id INTEGER PRIMARY KEY, x INTEGER)");
    run(&mut one, "INSERT INTO t VALUES (1, 1), (2, 2)");
    run(&mut two, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_eq!(number(&mut two, "SELECT sum(x) FROM t"), 3);
    run(&mut one, "UPDATE t SET x = 10 WHERE id = 1");
    run(&mut one, "INSERT INTO t VALUES (3, 3)");
    assert_eq!(number(&mut two, "SELECT sum(x) FROM t"), 3);
    assert_eq!(fails(&mut two, "UPDATE t SET x = x + 1 WHERE id = 1"), "40001");
    assert_eq!(two.transaction_state(), TransactionState::Failed);
    run(&mut two, "ROLLBACK");
    // Write skew is no serial order.
    let (mut left, mut right) = (database.session(), database.session());
    for session in [&mut left, &mut right] {
        run(session, "BEGIN ISOLATION LEVEL SERIALIZABLE");
        assert_eq!(number(session, "SELECT count(*) FROM t WHERE x > 1"), 3);
    }
    run(&mut left, "UPDATE t SET x = 0 WHERE id = 2");
    let second = right.execute("UPDATE t SET x = 0 WHERE id = 3", &[]).map(drop);
    let first = left.execute("COMMIT", &[]).map(drop);
    let end = right.execute("COMMIT", &[]).map(drop);
    let errors: Vec<&str> =
        [second, first, end].iter().filter_map(|done| done.as_ref().err().map(pagefold_sql::SqlError::sqlstate)).collect();
    assert!(errors.contains(&"40001"), "{errors:?}");
}

#[test]
fn rows_are_locked_passed_over_or_refused() {
    let database = database();
    let (mut one, mut two) = (database.session(), database.session());
    run(&mut one, "CREATE TABLE job (id INTEGER PRIMARY KEY, done BOOLEAN)");
    run(&mut one, "INSERT INTO job SELECT generate_series, false FROM generate_series(1, 5)");
    run(&mut one, "BEGIN");
    assert_eq!(run(&mut one, "SELECT id FROM job WHERE NOT done ORDER BY id LIMIT 2 FOR UPDATE").len(), 2);
    assert_eq!(number(&mut two, "SELECT id FROM job WHERE NOT done ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"), 3);
    assert_eq!(fails(&mut two, "SELECT id FROM job WHERE id = 1 FOR UPDATE NOWAIT"), "55P03");
    run(&mut two, "SET lock_timeout = '20ms'");
    assert_eq!(fails(&mut two, "UPDATE job SET done = true WHERE id = 1"), "55P03");
    run(&mut one, "ROLLBACK");
    run(&mut two, "UPDATE job SET done = true WHERE id = 1");
}

#[test]
fn a_deadlock_ends() {
    let database = database();
    let mut one = database.session();
    run(&mut one, "CREATE TABLE t (id INTEGER PRIMARY KEY, x INTEGER)");
    run(&mut one, "INSERT INTO t VALUES (1, 0), (2, 0)");
    run(&mut one, "BEGIN");
    run(&mut one, "UPDATE t SET x = 1 WHERE id = 1");
    let mut two = database.session();
    let other = thread::spawn(move || {
        run(&mut two, "BEGIN");
        run(&mut two, "UPDATE t SET x = 2 WHERE id = 2");
        thread::sleep(Duration::from_millis(50));
        let done = two.execute("UPDATE t SET x = 2 WHERE id = 1", &[]).map(drop).map_err(|e| e.sqlstate());
        drop(two.execute(if done.is_ok() { "COMMIT" } else { "ROLLBACK" }, &[]));
        done
    });
    thread::sleep(Duration::from_millis(30));
    let own = one.execute("UPDATE t SET x = 1 WHERE id = 2", &[]).map(drop).map_err(|e| e.sqlstate());
    drop(one.execute(if own.is_ok() { "COMMIT" } else { "ROLLBACK" }, &[]));
    let states = [own, other.join().unwrap()];
    assert!(states.contains(&Err("40P01")) && states.contains(&Ok(())), "{states:?}");
}

#[test]
fn plans_follow_definitions() {
    let database = database();
    let (mut one, mut two) = (database.session(), database.session());
    run(&mut one, "CREATE TABLE t (id INTEGER PRIMARY KEY, x INTEGER)");
    run(&mut one, "INSERT INTO t SELECT generate_series, generate_series % 7 FROM generate_series(1, 1000)");
    let count = "SELECT count(*) FROM t WHERE x = 3";
    let before = run(&mut two, &format!("EXPLAIN {count}"));
    assert_eq!(number(&mut two, count), 143);
    run(&mut one, "CREATE INDEX t_x ON t (x)");
    assert_ne!(before, run(&mut two, &format!("EXPLAIN {count}")));
    assert_eq!(number(&mut two, count), 143);
    run(&mut one, "DROP INDEX t_x");
    assert_eq!(number(&mut two, count), 143);
    // One transaction sees its own table in the place of the other; the others do not.
    run(&mut one, "BEGIN");
    run(&mut one, "DROP TABLE t");
    run(&mut one, "CREATE TABLE t (id INTEGER PRIMARY KEY, x INTEGER)");
    assert_eq!(number(&mut one, count), 0);
    run(&mut one, "ROLLBACK");
    assert_eq!(number(&mut one, count), 143);
    run(&mut one, "TRUNCATE t");
    assert_eq!(number(&mut two, count), 0);
}

/// A plan of the session serves a transaction with a snapshot as long as that has the same definitions.
#[test]
fn a_snapshot_has_its_own_definitions() {
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        let database = database();
        let (mut one, mut two) = (database.session(), database.session());
        run(&mut one, "CREATE TABLE t (id INTEGER PRIMARY KEY, x INTEGER)");
        run(&mut one, "INSERT INTO t SELECT g, g % 7 FROM generate_series(1, 100) g");
        let (all, few) = ("SELECT * FROM t WHERE id = 1", "SELECT count(*) FROM t WHERE x = 3");
        let columns = |session: &mut Session| run(session, all)[0].len();
        assert_eq!((columns(&mut two), number(&mut two, few)), (2, 14));
        run(&mut two, &format!("BEGIN ISOLATION LEVEL {level}"));
        assert_eq!((columns(&mut two), number(&mut two, few)), (2, 14));
        run(&mut one, "ALTER TABLE t ADD COLUMN y INTEGER DEFAULT 5");
        run(&mut one, "CREATE INDEX t_x ON t (x)");
        run(&mut one, "DELETE FROM t WHERE x = 3 AND id < 50");
        assert_eq!((columns(&mut one), number(&mut one, few)), (3, 7));
        assert_eq!((columns(&mut two), number(&mut two, few)), (2, 14));
        run(&mut one, "DROP TABLE t");
        run(&mut one, "CREATE TABLE t (id INTEGER PRIMARY KEY)");
        run(&mut one, "INSERT INTO t VALUES (1)");
        assert_eq!((columns(&mut two), number(&mut two, few)), (2, 14));
        // One that begins now, in between, and the next statement of the first.
        let mut three = database.session();
        run(&mut three, &format!("BEGIN ISOLATION LEVEL {level}"));
        assert_eq!(columns(&mut three), 1);
        assert_eq!((columns(&mut two), number(&mut two, few)), (2, 14));
        run(&mut two, "COMMIT");
        assert_eq!(columns(&mut two), 1);
        run(&mut three, "ROLLBACK");
    }
}

/// A decimal number is given without its scale: that of a column, a cast or PREPARE; where none says it, it is refused.
#[test]
fn decimal_parameters_have_a_scale() {
    let database = database();
    let mut session = database.session();
    run(&mut session, "CREATE TABLE t (id INTEGER PRIMARY KEY, ytd DECIMAL(12,2))");
    let five = Value::Decimal(500);
    let mut with = |sql: &str, params: &[Value]| -> Result<Vec<Vec<Value>>, &'static str> {
        session.execute(sql, params).and_then(pagefold_sql::Answer::rows).map_err(|error| error.sqlstate())
    };
    with("INSERT INTO t VALUES (1, ?), (2, 7.25)", std::slice::from_ref(&five)).unwrap();
    assert_eq!(with("SELECT id FROM t WHERE ytd = ?", std::slice::from_ref(&five)), Ok(vec![vec![Value::Int(1)]]));
    for sql in ["UPDATE t SET ytd = ytd + ? WHERE id = 1", "SELECT ytd * ? FROM t", "SELECT ? - ytd FROM t", "SELECT CAST(? AS NUMERIC)"] {
        assert_eq!(with(sql, std::slice::from_ref(&five)), Err("22023"), "{sql}");
    }
    with("UPDATE t SET ytd = ytd + CAST(? AS DECIMAL(12,2)) WHERE id = 1", std::slice::from_ref(&five)).unwrap();
    with("UPDATE t SET ytd = ytd + ? WHERE id = 1", &[Value::Text("0.25".into())]).unwrap();
    with("UPDATE t SET ytd = ytd + ? WHERE id = 1", &[Value::Double(0.5)]).unwrap();
    with("UPDATE t SET ytd = ytd + ? WHERE id = 1", &[Value::Int(1)]).unwrap();
    assert_eq!(with("SELECT ytd FROM t WHERE id = 1", &[]), Ok(vec![vec![Value::Decimal(1175)]]));
}

#[test]
fn numbers_of_a_sequence_are_given_once() {
    let database = database();
    let mut session = database.session();
    run(&mut session, "CREATE TABLE t (id BIGSERIAL PRIMARY KEY, who INTEGER)");
    let threads: Vec<_> = (0..4)
        .map(|who| {
            let mut session = database.session();
            thread::spawn(move || {
                for round in 0..100 {
                    run(&mut session, "BEGIN");
                    run(&mut session, &format!("INSERT INTO t (who) VALUES ({who})"));
                    run(&mut session, if round % 3 == 0 { "ROLLBACK" } else { "COMMIT" });
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(number(&mut session, "SELECT count(DISTINCT id) FROM t"), 4 * 66);
}

#[test]
fn a_statement_is_cancelled_or_runs_out_of_time_or_memory() {
    let database = database();
    let mut session = database.session();
    let canceller = session.canceller();
    let cancels = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        canceller.cancel();
    });
    let forever = "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b";
    assert_eq!(fails(&mut session, forever), "57014");
    cancels.join().unwrap();
    run(&mut session, "SET statement_timeout = '50ms'");
    assert_eq!(fails(&mut session, forever), "57014");
    run(&mut session, "RESET statement_timeout");
    run(&mut session, "SET work_mem = '64kB'");
    // What one group gathers stays in memory.
    assert_eq!(fails(&mut session, "SELECT count(DISTINCT g) FROM generate_series(1, 100000) g"), "53200");
    // A transaction goes on with what was before.
    run(&mut session, "BEGIN");
    run(&mut session, "CREATE TABLE t (x INTEGER)");
    run(&mut session, "SAVEPOINT s");
    assert_eq!(fails(&mut session, "INSERT INTO t SELECT 10 / (5000 - g) FROM generate_series(1, 10000) g"), "22012");
    run(&mut session, "ROLLBACK TO s");
    run(&mut session, "COMMIT");
    assert_eq!(number(&mut session, "SELECT count(*) FROM t"), 0);
}

#[test]
fn parameters_have_the_types_of_what_they_meet() {
    let database = database();
    let mut session = database.session();
    run(&mut session, "CREATE TABLE t (id INTEGER PRIMARY KEY, day DATE, amount NUMERIC(10,2), name TEXT)");
    let insert = session.prepare("INSERT INTO t VALUES ($1, $2, $3, $4)").unwrap();
    for id in 1..=3 {
        let values = [Value::Int(id), Value::Text(format!("2024-01-0{id}")), Value::Int(id * 10), Value::Text("x".into())];
        assert_eq!(session.run(&insert, &values).unwrap().tag().unwrap(), "INSERT 0 1");
    }
    let found =
        session.execute("SELECT id FROM t WHERE day > ? AND amount < ? + 5", &[Value::Text("2024-01-01".into()), Value::Int(20)]).unwrap();
    assert_eq!(found.rows().unwrap(), [[Value::Int(2)]]);
    let select = session.prepare("SELECT name FROM t WHERE id = $1").unwrap();
    assert_eq!(session.run(&select, &[Value::Int(2)]).unwrap().rows().unwrap().len(), 1);
    assert_eq!(session.run(&select, &[Value::Int(1 << 40)]).unwrap_err().sqlstate(), "22003");
    assert_eq!(session.run(&select, &[Value::Null]).unwrap().rows().unwrap().len(), 0);
    assert_eq!(session.run(&select, &[]).unwrap_err().sqlstate(), "08P01");
    assert_eq!(session.run(&select, &[Value::Text("two".into())]).unwrap_err().sqlstate(), "22P02");
}

#[test]
fn an_answer_that_is_dropped_early_leaves_nothing_open() {
    let database = database();
    let mut session = database.session();
    run(&mut session, "CREATE TABLE t (x INTEGER)");
    run(&mut session, "INSERT INTO t SELECT * FROM generate_series(1, 1000)");
    let mut answer = session.execute("SELECT x FROM t", &[]).unwrap();
    assert!(answer.next_row().unwrap().is_some());
    drop(answer);
    assert_eq!(session.transaction_state(), TransactionState::None);
    run(&mut session, "DROP TABLE t");
}

#[test]
fn long_and_deep_statements_end() {
    let database = database();
    let mut session = database.session();
    run(&mut session, "CREATE TABLE t (x INTEGER)");
    run(&mut session, "INSERT INTO t VALUES (1), (5)");
    // A thread of a test has two megabytes for its stack.
    for operator in [" + 1", " || 'a'", " = true"] {
        for count in [300, 3_900] {
            let sql = format!("SELECT {}{}", if operator.contains('=') { "true" } else { "1" }, operator.repeat(count));
            let done = session.execute(&sql, &[]).and_then(pagefold_sql::Answer::rows).map_err(|e| e.sqlstate());
            assert!(done.is_ok() || done == Err("54001"), "{operator} {count}: {done:?}");
        }
    }
    for word in ["AND", "OR"] {
        let terms: Vec<String> = (0..1_900).map(|number| format!("x <> {number}")).collect();
        assert!(number(&mut session, &format!("SELECT count(*) FROM t WHERE {}", terms.join(&format!(" {word} ")))) <= 2);
        let unknown = terms.join(&format!(" {word} ")).replace('x', "y");
        assert_eq!(fails(&mut session, &format!("SELECT 1 FROM t WHERE {unknown}")), "42703");
    }
    for operator in
        [" IS NULL", " IS NOT NULL", " COLLATE \"C\"", " NOTNULL", " LIKE 'a'", " AT TIME ZONE 'UTC'", " IN (1)", "[1]", "::text"]
    {
        for count in [300, 3_900, 20_000] {
            let sql = format!("SELECT x{} FROM t", operator.repeat(count));
            let done = session.execute(&sql, &[]).and_then(pagefold_sql::Answer::rows).map_err(|e| e.sqlstate());
            assert!(count < 20_000 || matches!(done, Err("54001" | "42601")), "{operator} {count}: {done:?}");
        }
    }
    let union = vec!["SELECT 1"; 500].join(" UNION ALL ");
    assert_eq!(run(&mut session, &union).len(), 500);
    for operator in ["UNION ALL", "UNION", "EXCEPT", "INTERSECT"] {
        for count in [500, 1_000, 20_000] {
            let sql = vec!["SELECT 1, 2"; count].join(&format!(" {operator} "));
            let done = session.execute(&sql, &[]).and_then(pagefold_sql::Answer::rows).map_err(|e| e.sqlstate());
            assert!(count > 500 || done.is_ok() == operator.starts_with("UNION"), "{operator} {count}: {done:?}");
            assert!(done.is_ok() || done == Err("54001"), "{operator} {count}: {done:?}");
        }
    }
    // What is kept as text is read again as deep as it is.
    for (number, count) in [300, 3_900].into_iter().enumerate() {
        let sum = format!("1{}", " + 1".repeat(count));
        for sql in [
            format!("CREATE VIEW deep_{number} AS SELECT {sum} AS x"),
            format!("CREATE TABLE deep_table_{number} (x INTEGER DEFAULT {sum} CHECK (x < {sum}))"),
        ] {
            let done = session.execute(&sql, &[]).and_then(pagefold_sql::Answer::rows).map_err(|e| e.sqlstate());
            assert!(done.is_ok() || ["54000", "54001"].contains(&done.clone().unwrap_err()), "{count}: {done:?}");
        }
    }
    // A condition goes through all of them.
    let union = vec!["SELECT x FROM t"; 500].join(" UNION ALL ");
    assert_eq!(number(&mut session, &format!("SELECT count(*) FROM ({union}) s WHERE x = 5 AND x + 1 > 2")), 500);
    // Chains within each other are as deep as all of them together.
    let (mut sum, mut queries) = ("1".to_owned(), "SELECT 1".to_owned());
    for _ in 0..20 {
        sum = format!("({sum}{})", " + 1".repeat(3_000));
        queries = format!("({queries}{})", " UNION ALL SELECT 1".repeat(300));
    }
    assert_eq!(fails(&mut session, &format!("SELECT {sum}")), "54001");
    assert_eq!(fails(&mut session, &queries), "54001");
    // Views that double with each level.
    let mut with = "WITH c0 AS (SELECT 1 AS a)".to_owned();
    for level in 1..30 {
        with.push_str(&format!(", c{level} AS (SELECT p.a FROM c{0} p, c{0} q)", level - 1));
    }
    assert_eq!(fails(&mut session, &format!("{with} SELECT * FROM c29")), "54001");
}

#[test]
fn what_was_executed_and_failed_leaves_nothing_open() {
    let database = database();
    let mut session = database.session();
    run(&mut session, "CREATE TABLE t (x INTEGER)");
    run(&mut session, "PREPARE wanted (integer) AS SELECT 10 / $1");
    for failing in
        ["EXECUTE wanted (0)", "EXECUTE wanted (1 / 0)", "EXECUTE nothing (1)", "EXPLAIN SELECT nothing", "EXPLAIN ANALYZE SELECT 1 / 0"]
    {
        fails(&mut session, failing);
        assert_eq!(session.transaction_state(), TransactionState::None, "{failing}");
        // Whatever was left open would be found by BEGIN, and committed with it.
        run(&mut session, "BEGIN");
        run(&mut session, "INSERT INTO t VALUES (1)");
        run(&mut session, "ROLLBACK");
        assert_eq!(number(&mut session, "SELECT count(*) FROM t"), 0, "{failing}");

        run(&mut session, "BEGIN");
        run(&mut session, "INSERT INTO t VALUES (1)");
        fails(&mut session, failing);
        assert_eq!(session.transaction_state(), TransactionState::Failed, "{failing}");
        assert_eq!(fails(&mut session, "EXECUTE wanted (5)"), "25P02", "{failing}");
        assert_eq!(fails(&mut session, "EXPLAIN SELECT 1"), "25P02", "{failing}");
        run(&mut session, "COMMIT");
        assert_eq!(number(&mut session, "SELECT count(*) FROM t"), 0, "{failing}");
    }
    run(&mut session, "BEGIN");
    run(&mut session, "INSERT INTO t VALUES (1)");
    assert_eq!(number(&mut session, "EXECUTE wanted (5)"), 2);
    run(&mut session, "EXPLAIN SELECT * FROM t");
    assert_eq!(session.transaction_state(), TransactionState::Open);
    run(&mut session, "ROLLBACK");
    assert_eq!(number(&mut session, "SELECT count(*) FROM t"), 0);
}

#[test]
fn statements_are_prepared_once() {
    let database = database();
    let mut session = database.session();
    assert_eq!(fails(&mut session, "PREPARE a AS EXECUTE a"), "42601");
    assert_eq!(fails(&mut session, "PREPARE a AS CREATE TABLE t (x INTEGER)"), "42601");
    run(&mut session, "PREPARE a AS SELECT 1");
    assert_eq!(fails(&mut session, "PREPARE a AS SELECT 2"), "42P05");
    assert_eq!(number(&mut session, "EXECUTE a"), 1);
    // The same text with other types is another plan.
    run(&mut session, "PREPARE whole (integer) AS SELECT $1 / 4");
    run(&mut session, "PREPARE exact (decimal(10, 2)) AS SELECT $1 / 4");
    for _ in 0..2 {
        assert_eq!(run(&mut session, "EXECUTE whole (10)"), [[Value::Int(2)]]);
        assert_ne!(run(&mut session, "EXECUTE exact (10)"), [[Value::Int(2)]]);
        assert_eq!(run(&mut session, "SELECT (10.0 / 4 = 2.5)::integer"), [[Value::Int(1)]]);
    }
    run(&mut session, "DEALLOCATE a");
    assert_eq!(fails(&mut session, "EXECUTE a"), "26000");
}

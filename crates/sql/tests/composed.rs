//! Statements that say in one what others say in several, compared with those: grouping sets with plain groups, DISTINCT ON and WITH TIES with window functions, MERGE with
//! UPDATE, DELETE and INSERT; recursive queries with SQLite's.
//!
//! `PAGEFOLD_SQL_ROUNDS` (30) rounds from `PAGEFOLD_SQL_SEED` (1) on. Each is run with much memory and with little.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "common/random.rs"]
#[allow(dead_code, reason = "others use more of it")]
mod random;

use pagefold_engine::database::{Database as Engine, OpenMode, Settings};
use pagefold_io::{MemoryStorage, OsClock};
use pagefold_sql::{Database, Session};
use pagefold_types::Value;
use random::{Random, setting};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// A session, and what its statements may take.
struct Tested {
    session: Session,
    memory: &'static str,
}

fn rounds(run: impl Fn(&mut Random, &mut Tested)) {
    let first = setting("PAGEFOLD_SQL_SEED", 1);
    for seed in first..first + setting("PAGEFOLD_SQL_ROUNDS", 30) {
        let storage = Arc::new(MemoryStorage::new());
        let engine = Engine::open(storage, Arc::new(OsClock), Path::new("memory"), OpenMode::Create, Settings::default()).unwrap();
        let mut tested = Tested { session: Database::new(Arc::new(engine)).session(), memory: "1GB" };
        for memory in ["1GB", "2kB"] {
            tested.memory = memory;
            run(&mut Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1), &mut tested);
        }
    }
}

fn set_memory(tested: &mut Tested, memory: &str) {
    tested.session.execute(&format!("SET work_mem = '{memory}'"), &[]).map(drop).unwrap();
}

/// With as little memory as the round has.
fn try_rows(tested: &mut Tested, sql: &str) -> Result<Vec<Vec<Value>>, String> {
    set_memory(tested, tested.memory);
    let done = run(tested, sql);
    set_memory(tested, "1GB");
    done
}

fn run(tested: &mut Tested, sql: &str) -> Result<Vec<Vec<Value>>, String> {
    let mut answer = tested.session.execute(sql, &[]).map_err(|error| format!("{} {error}", error.sqlstate()))?;
    let mut rows = Vec::new();
    while let Some(row) = answer.next_row().map_err(|error| format!("{} {error}", error.sqlstate()))? {
        rows.push(row.to_vec());
    }
    Ok(rows)
}

/// With as much memory as it needs.
fn rows(session: &mut Tested, sql: &str) -> Vec<Vec<Value>> {
    run(session, sql).unwrap_or_else(|error| panic!("{error}: {sql}"))
}

/// Rows of both, in any order; the first with the memory of the round.
fn expect_same(session: &mut Tested, one: &str, other: &str) {
    let mut a = try_rows(session, one).unwrap_or_else(|error| panic!("{error}: {one}"));
    let mut b = rows(session, other);
    a.sort_unstable();
    b.sort_unstable();
    assert!(a == b, "{} rows, and {}:\n{one}\n{other}", a.len(), b.len());
}

/// A table `t` of `id` and columns a to d, with ties and NULLs.
fn make_table(random: &mut Random, session: &mut Tested, most: usize) {
    rows(session, "DROP TABLE IF EXISTS t");
    rows(session, "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT, c INTEGER, d INTEGER)");
    let count = random.below(most);
    if count == 0 {
        return;
    }
    let mut sql = String::from("INSERT INTO t VALUES ");
    for id in 0..count {
        let mut number = |end: usize| if random.below(8) == 0 { "NULL".to_owned() } else { random.below(end).to_string() };
        let (a, c, d) = (number(4), number(6), number(50));
        let b = if random.below(6) == 0 { "NULL".to_owned() } else { format!("'{}'", random.one(&["x", "y", "z"])) };
        let _ = write!(sql, "{}({id}, {a}, {b}, {c}, {d})", if id == 0 { "" } else { ", " });
    }
    rows(session, &sql);
}

#[test]
fn grouping_sets_are_plain_groups_together() {
    const KEYS: [&str; 4] = ["a", "b", "c", "a + c"];
    rounds(|random, session| {
        make_table(random, session, 300);
        for _ in 0..8 {
            // Sets as numbers: bit n for key n.
            let (written, sets): (String, Vec<usize>) = match random.below(3) {
                0 => ("ROLLUP (a, b, a + c)".into(), vec![0b1011, 0b0011, 0b0001, 0]),
                1 => ("CUBE (b, c), a".into(), vec![0b0111, 0b0011, 0b0101, 0b0001]),
                _ => {
                    let sets: Vec<usize> = (0..1 + random.below(4)).map(|_| random.below(16)).collect();
                    let set = |set: &usize| {
                        let keys: Vec<&str> = (0..4).filter(|key| set >> key & 1 == 1).map(|key| KEYS[key]).collect();
                        format!("({})", keys.join(", "))
                    };
                    (format!("GROUPING SETS ({})", sets.iter().map(set).collect::<Vec<_>>().join(", ")), sets)
                }
            };
            let all = sets.iter().fold(0, |all, set| all | set);
            let used: Vec<usize> = (0..4).filter(|key| all >> key & 1 == 1).collect();
            let condition = random.one(&["true", "d > 10", "id < 0", "b IS NOT NULL"]);
            let having = random.one(&["true", "count(*) > 2", "sum(d) > 40 OR min(c) = 1"]);
            let aggregates = "count(*), sum(d), min(c), max(b), count(d) FILTER (WHERE c > 2)";
            let keys: Vec<&str> = used.iter().map(|key| KEYS[*key]).collect();
            let grouping = if keys.is_empty() { "0".to_owned() } else { format!("GROUPING({})", keys.join(", ")) };
            let list = keys.iter().map(|key| format!("{key}, ")).collect::<String>();
            let one = format!("SELECT {list}{grouping}, {aggregates} FROM t WHERE {condition} GROUP BY {written} HAVING {having}");
            let plain = |set: &usize| {
                let list: String = (used.iter())
                    .map(|key| match set >> key & 1 {
                        1 => format!("{}, ", KEYS[*key]),
                        _ => format!("NULL::{}, ", if *key == 1 { "TEXT" } else { "INTEGER" }),
                    })
                    .collect();
                let missing = used.iter().fold(0, |bits, key| bits << 1 | usize::from(set >> key & 1 == 0));
                let keys: Vec<&str> = (0..4).filter(|key| set >> key & 1 == 1).map(|key| KEYS[key]).collect();
                let group = if keys.is_empty() { String::new() } else { format!("GROUP BY {}", keys.join(", ")) };
                format!("SELECT {list}{missing}, {aggregates} FROM t WHERE {condition} {group} HAVING {having}")
            };
            let other = sets.iter().map(plain).collect::<Vec<_>>().join(" UNION ALL ");
            expect_same(session, &one, &other);
        }
    });
}

#[test]
fn first_rows_and_ties_are_those_of_window_functions() {
    rounds(|random, session| {
        make_table(random, session, 300);
        for _ in 0..8 {
            let on = random.one(&["a", "b", "a, b", "c % 2, b", "a + c"]);
            let direction = random.one(&["ASC", "DESC", "ASC NULLS FIRST", "DESC NULLS LAST"]);
            let order = format!("{} {direction}, id", random.one(&["c", "d", "b"]));
            let one = format!("SELECT DISTINCT ON ({on}) id, d FROM t ORDER BY {on}, {order}");
            let other = format!(
                "SELECT id, d FROM (SELECT id, d, row_number() OVER (PARTITION BY {on} ORDER BY {order}) AS n FROM t) q WHERE n = 1"
            );
            expect_same(session, &one, &other);
            let key = random.one(&["a", "c", "d", "b, a", "id"]);
            let (skip, first) = (random.below(5), random.below(30));
            let order = format!("{} {direction}", key.replace(", ", &format!(" {direction}, ")));
            // Which rows are left out of equal ones is not said, so only ranks are compared.
            let one = format!("SELECT {key} FROM t ORDER BY {order} OFFSET {skip} FETCH FIRST {first} ROWS WITH TIES");
            let other = format!(
                "SELECT {key} FROM (SELECT *, row_number() OVER w AS n, rank() OVER w AS r FROM t WINDOW w AS (ORDER BY {order})) q WHERE {first} > 0 AND n > {skip} AND r <= {}",
                skip + first
            );
            expect_same(session, &one, &other);
        }
    });
}

#[test]
fn recursive_queries_are_those_of_sqlite() {
    let (compared, too_little) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    rounds(|random, session| {
        let sqlite = rusqlite::Connection::open_in_memory().unwrap();
        rows(session, "DROP TABLE IF EXISTS edge");
        let nodes = 2 + random.below(9);
        let mut setup = vec!["CREATE TABLE edge (a INTEGER, b INTEGER, w INTEGER)".to_owned()];
        for _ in 0..1 + random.below(nodes * 2) {
            setup.push(format!("INSERT INTO edge VALUES ({}, {}, {})", random.below(nodes), random.below(nodes), random.below(4)));
        }
        if random.below(2) == 0 {
            setup.push("CREATE INDEX edge_a ON edge (a)".to_owned());
        }
        for sql in &setup {
            rows(session, sql);
            sqlite.execute(sql, []).unwrap();
        }
        let (start, depth) = (random.below(nodes), 1 + random.below(5));
        for sql in [
            format!("WITH RECURSIVE r(n) AS (SELECT {start} UNION SELECT b FROM r JOIN edge ON a = n) SELECT n, 0, 0 FROM r"),
            format!(
                "WITH RECURSIVE p(n, d, w) AS (SELECT {start}, 0, 0 UNION ALL SELECT b, d + 1, p.w + edge.w FROM edge, p WHERE a = n AND d < {depth}) SELECT n, d, w FROM p"
            ),
            format!(
                "WITH RECURSIVE p(n, d) AS (SELECT a, 0 FROM edge UNION SELECT q.b, d + 1 FROM p JOIN (SELECT * FROM edge WHERE w > 0) q ON q.a = p.n WHERE d < {depth}), m AS (SELECT n, min(d) AS d FROM p GROUP BY n) SELECT m.n, m.d, count(*) FROM m JOIN p ON p.n = m.n GROUP BY m.n, m.d"
            ),
            format!(
                "WITH RECURSIVE p(n, d) AS (SELECT DISTINCT a, 1 FROM edge UNION ALL SELECT e.b, d * 2 FROM p LEFT JOIN edge e ON e.a = n WHERE d < 9 AND e.b NOT IN (SELECT a FROM edge WHERE w = {depth})) SELECT n, d, count(*) FROM p GROUP BY n, d"
            ),
            format!(
                "SELECT a, b, (WITH RECURSIVE u(n, k) AS (SELECT e.b, 0 UNION SELECT f.b, k + 1 FROM u JOIN edge f ON f.a = u.n WHERE k < {depth}) SELECT sum(n * 10 + k) FROM u) FROM edge e"
            ),
        ] {
            let ours = try_rows(session, &sql);
            // All rows of a UNION are kept in memory.
            if ours.as_ref().is_err_and(|error| error.starts_with("53200")) && session.memory == "2kB" {
                too_little.set(too_little.get() + 1);
                continue;
            }
            compared.set(compared.get() + 1);
            let number = |value: Value| match value {
                Value::Null => None,
                Value::Int(number) => Some(number),
                Value::Decimal(number) => Some(i64::try_from(number).unwrap()),
                other => panic!("{other:?}"),
            };
            let mut ours: Vec<[Option<i64>; 3]> = (ours.unwrap_or_else(|error| panic!("{error}: {sql}")).into_iter())
                .map(|row| <[Value; 3]>::try_from(row).unwrap().map(number))
                .collect();
            let mut statement = sqlite.prepare(&sql).unwrap();
            let theirs = statement.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?])).unwrap();
            let mut theirs: Vec<[Option<i64>; 3]> = theirs.collect::<Result<_, _>>().unwrap();
            ours.sort_unstable();
            theirs.sort_unstable();
            assert!(ours == theirs, "{ours:?}\n{theirs:?}\n{sql}\n{setup:#?}");
        }
    });
    assert!(compared.get() > 0 && too_little.get() > 0, "{compared:?} {too_little:?}");
}

#[test]
fn merge_is_update_delete_and_insert() {
    const CONDITIONS: [&str; 5] = ["s.x > 10", "t.c IS NOT NULL AND t.c > s.x % 5", "s.k % 2 = 0", "t.id % 3 = 1", "true"];
    let twice = std::cell::Cell::new(0);
    rounds(|random, session| {
        for _ in 0..4 {
            make_table(random, session, 60);
            rows(session, "DROP TABLE IF EXISTS s");
            rows(session, "DROP TABLE IF EXISTS expected");
            rows(session, "CREATE TABLE s (k INTEGER, x INTEGER)");
            for _ in 0..random.below(40) {
                rows(session, &format!("INSERT INTO s VALUES ({}, {})", random.below(80), random.below(30)));
            }
            if random.below(3) > 0 {
                rows(session, "DELETE FROM s a USING s b WHERE a.k = b.k AND a.x < b.x");
                rows(session, "DELETE FROM s WHERE k IN (SELECT k FROM s GROUP BY k HAVING count(*) > 1)");
            }
            rows(session, "CREATE TABLE expected AS SELECT * FROM t");
            rows(session, "CREATE UNIQUE INDEX ON expected (id)");
            let key = random.one(&["id", "id + 1"]);
            let (first, second) = (random.one(&CONDITIONS), random.one(&CONDITIONS));
            let (mut merge, on) = (format!("MERGE INTO t USING s ON t.{key} = s.k"), format!("t.{key} = s.k"));
            let _ = write!(merge, " WHEN MATCHED AND {first} THEN DELETE WHEN MATCHED AND {second} THEN UPDATE SET c = s.x, d = t.d + s.x");
            let (by_source, inserts) = (random.below(2) == 0, random.below(2) == 0);
            if by_source {
                merge.push_str(" WHEN NOT MATCHED BY SOURCE AND t.a = 1 THEN UPDATE SET b = 'gone'");
            }
            if inserts {
                // One row for each key: their keys are those of no row.
                merge.push_str(" WHEN NOT MATCHED AND s.x > 5 THEN INSERT (id, d) VALUES (1000 + s.k * 100 + s.x, s.x)");
            }
            // In the copy, one after the other, by what the table was before.
            let matched = format!("FROM t JOIN s ON {on}");
            let change = format!("({first}) OR ({second})");
            let repeated = rows(session, &format!("SELECT t.id {matched} WHERE {change} GROUP BY t.id HAVING count(*) > 1"));
            let same = rows(
                session,
                &format!("SELECT k, x FROM s WHERE NOT EXISTS (SELECT 1 FROM t WHERE {on}) AND x > 5 GROUP BY k, x HAVING count(*) > 1"),
            );
            let done = try_rows(session, &merge);
            // Which rows it has met is kept in memory.
            if done.as_ref().is_err_and(|error| error.starts_with("53200")) && session.memory == "2kB" {
                expect_same(session, "SELECT * FROM t", "SELECT * FROM expected");
                continue;
            }
            if !repeated.is_empty() {
                twice.set(twice.get() + 1);
                assert!(done.as_ref().is_err_and(|error| error.starts_with("21000")), "{done:?} {merge}");
                expect_same(session, "SELECT * FROM t", "SELECT * FROM expected");
                continue;
            }
            if inserts && !same.is_empty() {
                assert!(done.as_ref().is_err_and(|error| error.starts_with("23505")), "{done:?} {merge}");
                expect_same(session, "SELECT * FROM t", "SELECT * FROM expected");
                continue;
            }
            done.unwrap_or_else(|error| panic!("{error}: {merge}"));
            rows(session, "CREATE TABLE before AS SELECT * FROM expected");
            let of_before = |sql: &str| sql.replace("t.", "before.").replace("FROM t ", "FROM before ");
            let matched = of_before(&matched);
            let (first, second) = (of_before(first), of_before(second));
            rows(session, &format!("DELETE FROM expected WHERE id IN (SELECT before.id {matched} WHERE {first})"));
            rows(
                session,
                &format!(
                    "UPDATE expected SET c = s.x, d = expected.d + s.x FROM s, before WHERE expected.id = before.id AND {} AND ({second}) AND NOT coalesce({first}, false)",
                    of_before(&on)
                ),
            );
            let none = format!("NOT EXISTS (SELECT 1 FROM s WHERE {})", on.replace("t.", "expected."));
            if by_source {
                rows(session, &format!("UPDATE expected SET b = 'gone' WHERE a = 1 AND id < 1000 AND {none}"));
            }
            if inserts {
                let sql = "INSERT INTO expected (id, d) SELECT 1000 + k * 100 + x, x FROM s WHERE x > 5 AND NOT EXISTS (SELECT 1 FROM before WHERE ";
                rows(session, &format!("{sql}{})", of_before(&on)));
            }
            rows(session, "DROP TABLE before");
            expect_same(session, "SELECT * FROM t", "SELECT * FROM expected");
        }
    });
    assert!(twice.get() > 0);
}

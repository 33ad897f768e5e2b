//! Random statements, compared with SQLite: queries with joins, groups, subqueries and set operations, and changes of rows; the same rows come, and the same are left. Each round has
//! tables of its own, of another method, with random indexes.
//!
//! `PAGEFOLD_SQL_ROUNDS` (40) rounds of 60 statements from `PAGEFOLD_SQL_SEED` (1) on.
//!
//! Where the two differ in what they mean, the statements keep away from it: numbers are small, nothing is divided but by constants, NULLs are ordered explicitly.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "differential/maker.rs"]
mod maker;

use maker::{Maker, Random};
use pagefold_engine::database::{Database as Engine, OpenMode, PartitionSpec, Settings, TransactionOptions, limit_key};
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::table_space::{Method, TableAttributes};
use pagefold_io::{MemoryStorage, OsClock};
use pagefold_sql::{Database, Session};
use pagefold_types::{Column, DataType, Direction, Schema, Value, ValueRef};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

fn ours(session: &mut Session, sql: &str) -> Vec<Vec<String>> {
    let answer = session.execute(sql, &[]).unwrap_or_else(|e| panic!("{e} ({})\n{sql}", e.sqlstate()));
    let rows = answer.rows().unwrap_or_else(|e| panic!("{e} ({})\n{sql}", e.sqlstate()));
    let text = |value: &Value| match value {
        Value::Null => "NULL".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Decimal(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        other => panic!("{other:?}\n{sql}"),
    };
    rows.iter().map(|row| row.iter().map(text).collect()).collect()
}

fn theirs(sqlite: &rusqlite::Connection, sql: &str) -> Vec<Vec<String>> {
    use rusqlite::types::ValueRef;
    let mut statement = sqlite.prepare(sql).unwrap_or_else(|e| panic!("{e}\n{sql}"));
    let columns = statement.column_count();
    let mut rows = statement.query([]).unwrap();
    let mut all = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        let text = |at: usize| match row.get_ref(at).unwrap() {
            ValueRef::Null => "NULL".to_owned(),
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
            other => panic!("{other:?}\n{sql}"),
        };
        all.push((0..columns).map(text).collect());
    }
    all
}

/// Makes a table of these columns that is divided by its key, or by `a`, over all of whose parts the key is unique all the same; the last part under another method.
fn divide(database: &Database, table: &str, method: &str, by_key: bool) {
    let column = |name: &str, data_type| Column::new(name, data_type, name != "id");
    let (number, text) = (DataType::Integer, DataType::Varchar(None));
    let schema =
        Schema::new(vec![column("id", number), column("a", number), column("b", number), column("c", text), column("d", number)]).unwrap();
    let mut attributes = TableAttributes::new(table, schema).with_page_bytes(4096);
    attributes.method = method.parse().unwrap();
    attributes.primary_key = vec![0];
    let (by, ends) = if by_key { (0, [10, 25]) } else { (1, [2, 6]) };
    let below = |end: i64| limit_key(&attributes, &[by], &[Some(ValueRef::Int(end))]).unwrap();
    let part = |name: &str, limit| PartitionSpec { name: name.into(), limit, ..PartitionSpec::default() };
    let rest = PartitionSpec { method: Some(Method::None), ..part("rest", None) };
    let parts = [part("low", below(ends[0])), part("middle", below(ends[1])), rest];
    let mut transaction = database.engine().begin_owned(TransactionOptions::default());
    transaction.create_partitioned_table(&attributes, &[by], &parts).unwrap();
    let key = IndexAttributes::new(format!("{table}_pkey"), vec![(0, Direction::Ascending)], true).with_format(IndexFormat::Prefix, 4096);
    transaction.create_partitioned_index(table, &key).unwrap();
    transaction.commit().unwrap();
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn same_rows_as_sqlite() {
    let (rounds, seed) = (setting("PAGEFOLD_SQL_ROUNDS", 40), setting("PAGEFOLD_SQL_SEED", 1));
    let (mut queries, mut with_rows, mut within, mut changes, mut changed, mut divided) = (0, 0, 0, 0, 0, 0);
    let (mut in_little_memory, mut too_little) = (0, 0);
    for round in seed..seed + rounds {
        let mut random = Random(round.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let storage = Arc::new(MemoryStorage::new());
        let engine = Engine::open(storage, Arc::new(OsClock), Path::new("memory"), OpenMode::Create, Settings::default()).unwrap();
        let database = Database::new(Arc::new(engine));
        let mut session = database.session();
        // Some queries pair all rows several times over.
        ours(&mut session, "SET work_mem = '1GB'");
        // The same in so little memory that most rows go to a file.
        let mut poor = database.session();
        ours(&mut poor, "SET work_mem = '2kB'");
        let sqlite = rusqlite::Connection::open_in_memory().unwrap();
        sqlite.execute_batch("PRAGMA case_sensitive_like = ON").unwrap();
        for table in ["t", "u", "v"] {
            let method = random.one(&["none", "row", "page", "fixed", "huffman"]);
            let format = random.one(&["plain", "prefix", "fold"]);
            let columns = "(id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, c VARCHAR, d INTEGER)";
            if random.percent(30) {
                divided += 1;
                divide(&database, table, method, random.percent(50));
            } else {
                ours(&mut session, &format!("CREATE TABLE {table} {columns} WITH (compress = '{method}', page_size = '4K')"));
            }
            theirs(&sqlite, &format!("CREATE TABLE {table} {columns}"));
            for number in 0..random.below(3) {
                let columns = random.one(&["a", "b, a", "d DESC", "c", "a, c DESC", "c, b"]);
                let name = format!("{table}_{number}");
                ours(&mut session, &format!("CREATE INDEX {name} ON {table} ({columns}) WITH (format = '{format}')"));
            }
            let rows = random.below(60) + 1;
            for id in 1..=rows {
                let mut number = || if random.percent(15) { "NULL".to_owned() } else { random.below(12).to_string() };
                let (a, b, d) = (number(), number(), number());
                let c = if random.percent(10) { "NULL" } else { random.one(&["'x'", "'xy'", "'y1'", "''", "'zzz'", "'xyz1'"]) };
                let insert = format!("INSERT INTO {table} VALUES ({id}, {a}, {b}, {c}, {d})");
                ours(&mut session, &insert);
                theirs(&sqlite, &insert);
            }
        }
        let mut keys = 0;
        for _ in 0..60 {
            let mut maker = Maker { random: &mut random, aliases: 0, changed: "", keys };
            if maker.random.percent(80) {
                let (query, is_ordered) = maker.whole_query();
                let (mut own, mut other) = (ours(&mut session, &query), theirs(&sqlite, &query));
                if !is_ordered {
                    own.sort();
                    other.sort();
                }
                assert_eq!(own, other, "round {round}: {query}\n{}", ours(&mut session, &format!("EXPLAIN {query}")).concat().join("\n"));
                match poor.execute(&query, &[]).and_then(pagefold_sql::Answer::rows) {
                    Ok(_) => {
                        let mut spilled = ours(&mut poor, &query);
                        if !is_ordered {
                            spilled.sort();
                        }
                        assert_eq!(spilled, other, "round {round}, in little memory: {query}");
                        in_little_memory += 1;
                    }
                    Err(error) if error.sqlstate() == "53200" => too_little += 1,
                    Err(error) => panic!("round {round}, in little memory: {error}\n{query}"),
                }
                queries += 1;
                with_rows += u64::from(!own.is_empty());
                within += u64::from(query.contains("FROM (SELECT") || query.contains("JOIN (SELECT"));
            } else {
                let change = maker.change();
                keys = maker.keys;
                let answer = session.execute(&change, &[]).unwrap_or_else(|e| panic!("round {round}: {e}\n{change}"));
                let count = answer.count();
                drop(answer);
                let other = sqlite.execute(&change, []).unwrap_or_else(|e| panic!("round {round}: {e}\n{change}"));
                assert_eq!(count, other as u64, "round {round}: {change}");
                for table in ["t", "u", "v"] {
                    let all = format!("SELECT * FROM {table} ORDER BY id");
                    assert_eq!(ours(&mut session, &all), theirs(&sqlite, &all), "round {round}: {change}");
                }
                changes += 1;
                changed += count;
            }
        }
    }
    println!(
        "{queries} queries, {with_rows} with rows, {within} of queries; {changes} changes of {changed} rows; {divided} of {} tables divided; in little memory {in_little_memory}, refused {too_little}",
        rounds * 3
    );
    assert!(too_little * 10 < in_little_memory, "{too_little} queries did not run in little memory");
    assert!(with_rows * 2 > queries && within * 4 > queries && changed > changes && divided > rounds / 2, "the statements are too weak");
}

/// Foreign keys of a round: child, its columns, parent, columns of that, what to do on DELETE and UPDATE.
type Key = (&'static str, &'static str, &'static str, &'static str, String, String);

/// Random changes of tables that refer to each other: p is referred to by c, by its key and by a unique column, c by g, s by itself, q by d with two columns.
#[test]
fn foreign_keys_as_sqlite() {
    let (rounds, seed) = (setting("PAGEFOLD_SQL_ROUNDS", 60), setting("PAGEFOLD_SQL_SEED", 1));
    let mut reached: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
    let mut note = |what: String| *reached.entry(what).or_default() += 1;
    let mut divided = 0;
    for round in seed..seed + rounds {
        let mut random = Random(round.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let storage = Arc::new(MemoryStorage::new());
        let engine = Engine::open(storage, Arc::new(OsClock), Path::new("memory"), OpenMode::Create, Settings::default()).unwrap();
        let database = Database::new(Arc::new(engine));
        let mut session = database.session();
        let sqlite = rusqlite::Connection::open_in_memory().unwrap();
        sqlite.execute_batch("PRAGMA foreign_keys = ON").unwrap();
        let mut keys: Vec<Key> = Vec::new();
        let is_divided = |random: &mut Random| random.percent(25);
        let parts: std::collections::BTreeMap<&str, bool> =
            ["p", "c", "g", "s", "q", "d"].into_iter().map(|table| (table, is_divided(&mut random))).collect();
        for (child, columns, parent, referred) in
            [("c", "a", "p", "id"), ("c", "b", "p", "d"), ("g", "a", "c", "id"), ("s", "a", "s", "id"), ("d", "a, b", "q", "a, b")]
        {
            // SQLite looks for RESTRICT at each row, PostgreSQL when all rows of the statement have changed.
            let actions: &[&str] = match child {
                "g" | "d" => &["NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT"],
                _ => &["NO ACTION", "CASCADE", "SET NULL", "SET DEFAULT"],
            };
            let (delete, update) = (random.one(actions).to_owned(), random.one(actions).to_owned());
            keys.push((child, columns, parent, referred, delete, update));
        }
        let clause =
            |key: &Key| format!("FOREIGN KEY ({}) REFERENCES {} ({}) ON DELETE {} ON UPDATE {}", key.1, key.2, key.3, key.4, key.5);
        for (table, is_divided) in
            [("p", parts["p"]), ("c", parts["c"]), ("g", parts["g"]), ("s", parts["s"]), ("q", parts["q"]), ("d", parts["d"])]
        {
            let method = random.one(&["none", "row", "page", "fixed", "huffman"]);
            let format = random.one(&["plain", "prefix", "fold"]);
            let unique = match table {
                "p" => Some("d"),
                "q" => Some("a, b"),
                _ => None,
            };
            let of_table = || keys.iter().filter(|key| key.0 == table);
            let mut theirs_said =
                format!("CREATE TABLE {table} (id INTEGER PRIMARY KEY, a INTEGER DEFAULT 1, b INTEGER DEFAULT 1, c VARCHAR, d INTEGER");
            unique.iter().for_each(|unique| write!(theirs_said, ", UNIQUE ({unique})").unwrap());
            of_table().for_each(|key| write!(theirs_said, ", {}", clause(key)).unwrap());
            theirs(&sqlite, &(theirs_said + ")"));
            if is_divided {
                divided += 1;
                divide(&database, table, method, random.percent(50));
            } else {
                ours(
                    &mut session,
                    &format!(
                        "CREATE TABLE {table} (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, c VARCHAR, d INTEGER) WITH (compress = '{method}', page_size = '4K')"
                    ),
                );
            }
            ours(&mut session, &format!("ALTER TABLE {table} ALTER COLUMN a SET DEFAULT 1"));
            ours(&mut session, &format!("ALTER TABLE {table} ALTER COLUMN b SET DEFAULT 1"));
            if let Some(unique) = unique {
                ours(&mut session, &format!("CREATE UNIQUE INDEX {table}_key ON {table} ({unique}) WITH (format = '{format}')"));
            }
            if random.percent(60) {
                let columns = random.one(&["a", "b, a", "b", "a DESC, d"]);
                ours(&mut session, &format!("CREATE INDEX {table}_by ON {table} ({columns}) WITH (format = '{format}')"));
            }
            for key in of_table() {
                ours(&mut session, &format!("ALTER TABLE {table} ADD {}", clause(key)));
            }
        }
        let mut jump = 0;
        for turn in 0..126 {
            let number = |random: &mut Random| if random.percent(12) { "NULL".to_owned() } else { (random.below(9) + 1).to_string() };
            let mut table = random.one(&["p", "p", "p", "c", "c", "g", "s", "s", "q", "q", "d"]).to_owned();
            // First all tables are filled, parents before those that refer to them.
            let filling = turn < 66;
            if filling {
                table = ["p", "q", "s", "c", "g", "d"][turn / 11].to_owned();
            }
            let condition = match random.below(4) {
                0 => format!("id % {} = 1", random.below(4) + 2),
                1 => format!("d % 3 = {}", random.below(3)),
                _ => format!("id = {}", random.below(10) + 1),
            };
            let change = match if filling { 0 } else { random.below(14) } {
                0..=3 => {
                    let first = if filling { turn as u64 % 11 + 1 } else { random.below(10) + 1 };
                    let most = if filling { 1 } else { 3 };
                    let rows: Vec<String> = (0..random.below(most) + 1)
                        .map(|at| {
                            let (a, b) = (number(&mut random), number(&mut random));
                            let id = first + at;
                            // Keys of q are small pairs, d of p is its key: what refers to them finds some.
                            let (a, b) = if table == "q" {
                                ((id % 3 + 1).to_string(), (id % 4 + 1).to_string())
                            } else if table == "d" {
                                (format!("{} % 3 + 1", id), format!("{} % 4 + 1", id + random.below(2) * 12))
                            } else {
                                (a, b)
                            };
                            format!("({id}, {a}, {b}, 'x', {id})")
                        })
                        .collect();
                    let conflict = random.one(&["", "", " ON CONFLICT (id) DO NOTHING", " ON CONFLICT (id) DO UPDATE SET a = excluded.a"]);
                    format!("INSERT INTO {table} VALUES {}{conflict}", rows.join(", "))
                }
                4 | 5 => format!("UPDATE {table} SET {} = {} WHERE {condition}", random.one(&["a", "b"]), number(&mut random)),
                6..=9 => {
                    // No two sums of these are the same: a key that comes is none that goes in the same statement, which SQLite refuses, or not, by the order of rows.
                    jump += 1;
                    let column = if table == "p" && random.percent(50) {
                        "d"
                    } else if table == "q" {
                        "b"
                    } else {
                        "id"
                    };
                    // There and back, so that keys stay small.
                    let sign = if jump < 22 && random.percent(60) { format!("+ {}", 100u64 << jump) } else { "% 100".to_owned() };
                    format!("UPDATE {table} SET {column} = {column} {sign} WHERE {condition}")
                }
                10 => format!("UPDATE {table} SET c = c || 'y' WHERE {condition}"),
                _ => format!("DELETE FROM {table} WHERE {condition}"),
            };
            let all = |table: &str| format!("SELECT * FROM {table} ORDER BY id");
            let before: Vec<_> = ["p", "c", "g", "s", "q", "d"].iter().map(|table| ours(&mut session, &all(table))).collect();
            // Sometimes in a transaction, and taken back to a savepoint.
            let back = random.percent(15);
            if back {
                for sql in ["BEGIN", "SAVEPOINT one"] {
                    ours(&mut session, sql);
                    sqlite.execute_batch(sql).unwrap();
                }
            }
            let own = session.execute(&change, &[]).map(|answer| answer.count()).map_err(|error| (error.sqlstate(), error.to_string()));
            let other = sqlite.execute(&change, []).map_err(|error| error.to_string());
            if back && own.is_err() {
                ours(&mut session, "ROLLBACK TO one");
                sqlite.execute_batch("ROLLBACK TO one").unwrap();
            }
            let said = || keys.iter().map(|key| format!("{}: {}", key.0, clause(key))).collect::<Vec<_>>().join("\n");
            let what = format!("round {round}: {change}\n{own:?} {other:?}\n{}", said());
            match (&own, &other) {
                (Ok(count), Ok(other)) if table != "s" => assert_eq!(*count, *other as u64, "{what}"),
                (Ok(_), Ok(_)) => {}
                (Err((state, _)), Err(_)) => {
                    assert!(state.starts_with("23"), "{what}");
                    note((*state).to_owned());
                }
                _ => panic!("{what}\n{before:?}"),
            }
            let after: Vec<_> = ["p", "c", "g", "s", "q", "d"].iter().map(|table| ours(&mut session, &all(table))).collect();
            for (table, rows) in ["p", "c", "g", "s", "q", "d"].iter().zip(&after) {
                assert_eq!(*rows, theirs(&sqlite, &all(table)), "{table}: {what}");
            }
            let touched =
                |name: &str| ["p", "c", "g", "s", "q", "d"].iter().zip(before.iter().zip(&after)).any(|(t, (b, a))| *t == name && b != a);
            for key in keys.iter().filter(|key| own.is_ok() && key.2 == table && key.0 != table && touched(key.0)) {
                match change.split(' ').next() {
                    Some("DELETE") => note(format!("DELETE {}", key.4)),
                    Some("UPDATE") => note(format!("UPDATE {}", key.5)),
                    _ => {}
                }
                if key.0 == "c" && touched("g") {
                    note("grandchildren".into());
                }
            }
            if back {
                for sql in ["ROLLBACK TO one", "COMMIT"] {
                    ours(&mut session, sql);
                    sqlite.execute_batch(sql).unwrap();
                }
                let now: Vec<_> = ["p", "c", "g", "s", "q", "d"].iter().map(|table| ours(&mut session, &all(table))).collect();
                assert_eq!(now, before, "{what}");
            }
        }
    }
    println!("{reached:?}; {divided} tables divided");
    for what in [
        "23503",
        "DELETE CASCADE",
        "DELETE SET NULL",
        "DELETE SET DEFAULT",
        "UPDATE CASCADE",
        "UPDATE SET NULL",
        "UPDATE SET DEFAULT",
        "grandchildren",
    ] {
        assert!(reached.get(what).is_some_and(|count| *count >= rounds / 10), "{what}: {reached:?}");
    }
}

//! Random statements: of rows, of definitions, of transactions. Most succeed; which do not is part of what is looked at.

use crate::random::Random;

/// Tables that others refer to, of which `p` is divided, tables that refer to them, and a name that one of them may get.
pub(crate) const PARENTS: [&str; 3] = ["t0", "t1", "p"];
pub(crate) const CHILDREN: [&str; 2] = ["u0", "u1"];
pub(crate) const VIEWS: [&str; 2] = ["v0", "v1"];
/// `o` is made before its partitions.
const TABLES: [&str; 7] = ["t0", "t1", "u0", "u1", "p", "w", "o"];

/// What a statement does to the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Begin,
    Commit,
    Rollback,
    Savepoint,
    RollbackTo,
    /// Rows, or a query.
    Rows,
    /// Definitions.
    Definition,
    /// Partitions that come, go and are exchanged.
    Partition,
    /// Those of a table that is made before them.
    OpenPartition,
    /// Tables that become such partitions, and partitions that become tables.
    Attached,
    /// Numbers of the sequence that stays.
    Number,
}

fn storage(random: &mut Random) -> String {
    let method = random.one(&["none", "row", "page", "fixed", "huffman"]);
    let page = random.one(&["2K", "4K", "8K"]);
    format!("WITH (compress = '{method}', page_size = '{page}', pctfree = {})", random.one(&["0", "5", "30"]))
}

/// How a partition is stored.
fn part(random: &mut Random) -> String {
    format!("WITH (compress = '{}', page_size = '{}')", random.one(&["none", "row", "page", "fixed", "huffman"]), random.one(&["2K", "4K"]))
}

/// A table that is made before its partitions: they come in any order, are attached and detached.
fn open_partition(random: &mut Random) -> (Kind, String) {
    let (number, storage) = (random.below(5), part(random));
    let name = format!("o{number}");
    // Some overlap.
    let end = number * 20 + if random.percent(25) { 30 } else { 20 };
    let range = format!("FOR VALUES FROM ({}) TO ({end})", number * 20);
    let what = random.below(14);
    let sql = match what {
        0..=1 => format!(
            "CREATE TABLE o (id INTEGER PRIMARY KEY, a INTEGER NOT NULL DEFAULT 5 CHECK (a > -500), b TEXT, c DECIMAL(12, 2)) \
             PARTITION BY RANGE (id) {storage}"
        ),
        2..=4 => format!("CREATE TABLE {name} PARTITION OF o {range} {storage}"),
        5..=6 => format!("ALTER TABLE o DETACH PARTITION {name}"),
        7..=9 => format!("ALTER TABLE o ATTACH PARTITION {} {range}", random.one(&[&*name, &*name, "w", "t0"])),
        10 => format!("DROP TABLE {} CASCADE", random.one(&[&*name, &*name, "o"])),
        11 => format!("INSERT INTO {name} (id, b) SELECT n, 'in a partition' FROM generate_series({0}, {0} + 9) AS s(n)", number * 20),
        _ => format!("INSERT INTO o (id, a, b, c) SELECT id, a, b, c FROM {} WHERE id < {}", random.one(&["t0", "t1", "p"]), number * 20),
    };
    (if (5..=9).contains(&what) { Kind::Attached } else { Kind::OpenPartition }, sql)
}

fn partition(random: &mut Random) -> String {
    let (limit, storage) = (70 + random.below(12) * 20, part(random));
    let name = format!("to{}", 60 + random.below(4) * 20);
    match random.below(8) {
        0..=2 => format!("ALTER TABLE p ADD PARTITION to{limit} VALUES LESS THAN ({limit}) {storage}"),
        3 => format!("ALTER TABLE p DROP PARTITION {}", random.one(&["low", "high", &name])),
        4..=5 => format!("ALTER TABLE p ROTATE PARTITION to{limit} VALUES LESS THAN ({limit})"),
        _ => format!(
            "ALTER TABLE p EXCHANGE PARTITION {} WITH TABLE {}",
            random.one(&["low", "high", &name]),
            random.one(&["t0", "t1", "w"])
        ),
    }
}

/// A table, by its name.
pub(crate) fn create_table(random: &mut Random, name: &str) -> String {
    let storage = storage(random);
    if PARENTS.contains(&name) {
        let unique = random.one(&["", ", UNIQUE (a, b)", ", UNIQUE (c)"]);
        let (unique, division) = match name {
            "p" => (
                "",
                format!(
                    "PARTITION BY RANGE (id) (PARTITION low VALUES LESS THAN (20), PARTITION high VALUES LESS THAN (60) {})",
                    part(random)
                ),
            ),
            _ => (unique, String::new()),
        };
        return format!(
            "CREATE TABLE {name} (id INTEGER PRIMARY KEY, a INTEGER NOT NULL DEFAULT 5 CHECK (a > -500), b TEXT, c DECIMAL(12, 2){unique}) {division} {storage}"
        );
    }
    // Partitions of what others refer to stay.
    let parent = random.one(&["t0", "t1", "t0", "t1", "t0", "t1", "p"]);
    let action =
        random.one(&["", "ON DELETE CASCADE", "ON DELETE SET NULL ON UPDATE CASCADE", "ON DELETE SET DEFAULT", "ON UPDATE CASCADE"]);
    format!(
        "CREATE TABLE {name} (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, p INTEGER REFERENCES {parent} {action}, a INTEGER, b TEXT, \
         c DECIMAL(12, 2), g INTEGER GENERATED ALWAYS AS (a * 2) STORED) {storage}"
    )
}

fn definition(random: &mut Random) -> String {
    let table = random.one(&TABLES);
    let n = random.below(4);
    match random.below(24) {
        0..=3 => {
            let name = random.one(&TABLES[..5]);
            create_table(random, name)
        }
        4 => match random.below(3) {
            0 => format!(
                "CREATE TABLE w (id BIGINT PRIMARY KEY, a INTEGER CHECK (a < 400), n INTEGER GENERATED ALWAYS AS IDENTITY) {} AS SELECT id, a FROM {table}",
                storage(random)
            ),
            _ => format!("CREATE TABLE w {} AS SELECT * FROM {table}", storage(random)),
        },
        5..=7 => {
            let (unique, column) = (random.one(&["", "", "UNIQUE"]), random.one(&["a", "b", "c", "b DESC, a", "a, id", "c DESC"]));
            let format = random.one(&["plain", "prefix", "fold"]);
            let page = if format == "fold" { "8K" } else { random.one(&["2K", "4K"]) };
            format!("CREATE {unique} INDEX i{n} ON {table} ({column}) WITH (format = '{format}', page_size = '{page}')")
        }
        8 if random.below(2) == 0 => format!("ALTER INDEX i{n} RENAME TO i{}", random.below(4)),
        8 => format!("DROP INDEX i{n}"),
        9 => {
            let check = random.one(&["", "WITH CHECK OPTION"]);
            format!("CREATE OR REPLACE VIEW {} AS SELECT id, a FROM {table} WHERE a > {n} {check}", random.one(&VIEWS))
        }
        10 => format!("DROP VIEW IF EXISTS {}", random.one(&VIEWS)),
        11 => {
            let column = random.one(&[
                "INTEGER",
                "TEXT DEFAULT 'new'",
                "INTEGER NOT NULL DEFAULT 7",
                "DECIMAL(8, 3) CHECK (x0 < 100)",
                "TEXT UNIQUE",
            ]);
            format!("ALTER TABLE {table} ADD COLUMN x{} {column}", random.below(3))
        }
        12 => format!("ALTER TABLE {table} DROP COLUMN {}", random.one(&["x0", "x1", "x2", "c", "b CASCADE"])),
        13 => {
            format!("ALTER TABLE {table} ALTER COLUMN {} TYPE {}", random.one(&["a", "c", "x0"]), random.one(&["BIGINT", "DECIMAL(15, 2)"]))
        }
        14 => format!("ALTER TABLE {table} ALTER COLUMN {} {} NOT NULL", random.one(&["a", "b", "c"]), random.one(&["SET", "DROP"])),
        15 => format!(
            "ALTER TABLE {table} ADD CONSTRAINT r{n} {}",
            random.one(&["CHECK (a < 100000)", "UNIQUE (a, id)", "CHECK (c IS NOT NULL)"])
        ),
        16 => format!("ALTER TABLE {table} DROP CONSTRAINT IF EXISTS r{n}"),
        17 => format!("ALTER TABLE {table} RENAME COLUMN {} TO {}", random.one(&["x0", "x1", "c"]), random.one(&["x1", "x2", "c"])),
        18 => format!("DROP TABLE IF EXISTS {} {}", random.one(&["w", "w", table]), random.one(&["", "CASCADE"])),
        // And another one of its name comes.
        19 => format!("ALTER TABLE {} RENAME TO {}", random.one(&["w", table]), random.one(&["w", "u0", "t0"])),
        20 => format!("TRUNCATE {table} {}", random.one(&["", "CASCADE"])),
        21 => format!("ALTER TABLE {table} ALTER COLUMN a {}", random.one(&["SET DEFAULT 9", "DROP DEFAULT"])),
        22 => {
            random.one(&["CREATE SEQUENCE s1", "DROP SEQUENCE IF EXISTS s1", "CREATE SEQUENCE IF NOT EXISTS s1 INCREMENT BY 5"]).to_owned()
        }
        _ => format!("COMMENT ON TABLE {table} IS 'a comment {n}'"),
    }
}

/// A text, as an expression: short, longer than what fits beside others, longer than a page.
fn text(random: &mut Random) -> String {
    let n = random.below(1000);
    match random.below(12) {
        0 => "NULL".to_owned(),
        1 => format!("repeat('large {n} ', {})", 200 + random.below(1500)),
        2..=3 => format!("repeat('some more {n} ', {})", 10 + random.below(60)),
        _ => format!("'text {}'", n % 40),
    }
}

fn rows(random: &mut Random) -> String {
    let table = random.one(&TABLES);
    let (id, wide, n) = (random.below(60), random.below(30), random.below(9));
    let parent = random.one(&PARENTS);
    let child = random.one(&CHILDREN);
    let text = text(random);
    match random.below(33) {
        0..=2 => format!("INSERT INTO {parent} (id, a, b, c) VALUES ({id}, {n}, {text}, {n}.5), ({}, {id}, {text}, {id}.25)", id + 60),
        3..=4 => format!(
            "INSERT INTO {parent} (id, a, b) SELECT n, n % 7, {text} FROM generate_series({id}, {}) AS s(n) ON CONFLICT DO NOTHING",
            id + wide
        ),
        5 => format!(
            "INSERT INTO {parent} (id, b) VALUES ({id}, {text}) ON CONFLICT (id) DO UPDATE SET a = {parent}.a + 1, b = excluded.b RETURNING a"
        ),
        6..=8 => format!("INSERT INTO {child} (p, a, b) VALUES ({id}, {n}, {text}), (NULL, {id}, {text})"),
        9..=10 => format!("INSERT INTO {child} (p, a, b, c) SELECT id, a, b, c FROM {parent} WHERE id >= {id} AND a < 600"),
        11..=12 => format!("UPDATE {table} SET a = a + 1, b = {text} WHERE a = {n}"),
        13 => format!("UPDATE {table} SET b = b || ' longer', c = c + 1 WHERE id BETWEEN {id} AND {}", id + wide),
        14 => format!("UPDATE {parent} SET id = id + 200 WHERE id < {n}"),
        15 => format!("UPDATE {child} SET a = t.a, p = t.id FROM {parent} t WHERE {child}.id % 20 = t.id % 20 AND t.id < 20"),
        16..=17 => format!("DELETE FROM {table} WHERE id BETWEEN {id} AND {}", id + wide),
        18 => format!("DELETE FROM {table} WHERE a = {n}"),
        19 => format!("DELETE FROM {child} USING {parent} t WHERE {child}.p = t.id AND t.a = {n}"),
        20 => format!(
            "MERGE INTO {parent} m USING (SELECT n, {text} AS b FROM generate_series({id}, {}) AS g(n)) s ON m.id = s.n WHEN MATCHED AND m.a > 100 \
             THEN DELETE WHEN MATCHED THEN UPDATE SET a = m.a + 1, b = s.b WHEN NOT MATCHED THEN INSERT (id, a, b) VALUES (s.n, {n}, s.b)",
            id + wide
        ),
        21 => format!("SELECT b, count(*), sum(a) FROM {table} GROUP BY b ORDER BY 2 DESC, 1"),
        22 => format!("SELECT * FROM {table} WHERE a = {n} FOR UPDATE"),
        // As many rows as a work_mem of 2 kB has no room for.
        23 => format!(
            "INSERT INTO {child} (a, b) SELECT a, max(b) FROM (SELECT a, b FROM {parent} UNION ALL SELECT a, b FROM {child}) x GROUP BY a"
        ),
        24..=25 => format!("COPY (SELECT id + {id}, a, b, c FROM {parent}) TO '{parent}.csv' WITH (FORMAT csv)"),
        26..=27 => format!("COPY {parent} (id, a, b, c) FROM '{}.csv' WITH (FORMAT csv)", random.one(&PARENTS)),
        28 => format!("DECLARE c{n} CURSOR FOR SELECT * FROM {table} ORDER BY b"),
        29 => format!("FETCH {id} FROM c{n}"),
        // Through a view, which is of one of the tables.
        30 => format!("UPDATE {} SET a = a - 1 WHERE id > {id} RETURNING *", random.one(&VIEWS)),
        31 => match random.below(2) {
            0 => format!("INSERT INTO {} (a) VALUES ({n}), ({id})", random.one(&VIEWS)),
            _ => format!("DELETE FROM {} WHERE a = {n}", random.one(&VIEWS)),
        },
        // An error behind many rows.
        _ => format!("UPDATE {table} SET a = 10 / (a - {n}), c = 1"),
    }
}

/// The next statement, in a transaction or not, which may have failed, and has these savepoints.
pub(crate) fn statement(random: &mut Random, is_open: bool, has_failed: bool, savepoints: &[&str]) -> (Kind, String) {
    let back = |random: &mut Random| match savepoints {
        [] => (Kind::RollbackTo, "ROLLBACK TO nowhere".to_owned()),
        known => (Kind::RollbackTo, format!("ROLLBACK TO {}", random.one(known))),
    };
    if has_failed {
        return if savepoints.is_empty() || random.percent(15) { (Kind::Rollback, "ROLLBACK".into()) } else { back(random) };
    }
    let percent = random.below(100);
    match (is_open, percent) {
        (false, 0..=14) => {
            let level = random.one(&["READ COMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]);
            (Kind::Begin, format!("BEGIN ISOLATION LEVEL {level}"))
        }
        (true, 0..=9) => (Kind::Commit, "COMMIT".into()),
        (true, 10..=12) => (Kind::Rollback, "ROLLBACK".into()),
        (true, 13..=20) => (Kind::Savepoint, format!("SAVEPOINT s{}", random.below(2))),
        (true, 21..=22) => back(random),
        (_, 23..=25) => (Kind::Number, "SELECT nextval('numbers')".into()),
        (_, 26) => (Kind::Number, "SELECT setval('numbers', nextval('numbers') + 100)".into()),
        (_, 27..=44) => (Kind::Definition, definition(random)),
        (_, 45..=48) => (Kind::Partition, partition(random)),
        (_, 49..=53) => open_partition(random),
        _ => (Kind::Rows, rows(random)),
    }
}

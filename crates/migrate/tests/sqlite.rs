//! SQLite files: what comes over, what does not, and what is refused.

#![allow(clippy::unwrap_used, reason = "tests")]

use pagefold_engine::database::{Database, OpenMode, Settings};
use pagefold_engine::index::IndexFormat;
use pagefold_interchange::Source;
use pagefold_io::{MemoryStorage, SimulatedClock};
use pagefold_migrate::sqlite::{Mixed, SqliteFile, is_sqlite, with_table};
use pagefold_migrate::{Foreign, ForeignTable, compare, estimate, load};
use pagefold_types::{DataType, TimeUnit, Value};
use pagefold_utility::{EstimateOptions, LoadOptions, Scratch, Setting, Silent};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

fn new_database() -> Database {
    let clock = Arc::new(SimulatedClock::new(Duration::from_secs(1)));
    Database::open(Arc::new(MemoryStorage::new()), clock, Path::new("db"), OpenMode::Create, Settings::default()).unwrap()
}

fn made(directory: &tempfile::TempDir, statements: &str) -> PathBuf {
    let path = directory.path().join("app.sqlite");
    let _ = std::fs::remove_file(&path);
    Connection::open(&path).unwrap().execute_batch(statements).unwrap();
    path
}

fn all(file: &SqliteFile) -> Vec<&ForeignTable> {
    file.tables().iter().collect()
}

fn refused(path: &Path, statements_seen: &str) -> String {
    let file = SqliteFile::open(path, Mixed::Refuse).unwrap();
    let error = load(&new_database(), &file, &all(&file), &LoadOptions::default(), true, &Silent).unwrap_err().to_string();
    assert!(error.contains(statements_seen), "{error}");
    error
}

const SHOP: &str = "
    CREATE TABLE customer (id INTEGER PRIMARY KEY, name VARCHAR(30) NOT NULL, email TEXT UNIQUE COLLATE NOCASE, born DATE, active BOOLEAN DEFAULT 1,
        picture BLOB, score REAL, twice INTEGER GENERATED ALWAYS AS (id * 2));
    CREATE TABLE orders (customer INTEGER, number INTEGER, placed DATETIME, total NUMERIC(10,2), \"odd \"\"name\" ANY, PRIMARY KEY (customer, number DESC)) WITHOUT ROWID;
    CREATE TABLE log (at TIMESTAMP, what);
    CREATE INDEX by_placed ON orders (placed DESC, total);
    CREATE INDEX by_part ON orders (total) WHERE total > 100;
    CREATE INDEX by_lower ON customer (lower(name));
    CREATE VIEW v AS SELECT * FROM orders;
    CREATE TRIGGER t AFTER INSERT ON log BEGIN SELECT 1; END;
    CREATE VIRTUAL TABLE words USING fts5(word);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
        INSERT INTO customer(id, name, email, born, active, picture, score)
        SELECT i * 3, 'Name ' || i, CASE WHEN i % 5 THEN 'User' || i || '@example.org' END, date('1950-01-01', i || ' days'), i % 2,
            CASE WHEN i % 100 = 0 THEN randomblob(20000) WHEN i % 7 = 0 THEN x'00ff' END, i / 7.0 FROM n;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
        INSERT INTO orders SELECT i % 300 * 3, i, datetime('2020-01-01', i || ' minutes'), (i * 37 % 100000) / 100.0, NULL FROM n;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
        INSERT INTO log SELECT strftime('%Y-%m-%d %H:%M:%f', '2020-01-01', i || ' seconds'), 'what ' || i FROM n;";

#[test]
fn everything_comes_over_and_is_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let path = made(&directory, SHOP);
    assert!(is_sqlite(&path));
    let file = SqliteFile::open(&path, Mixed::Refuse).unwrap();
    file.check().unwrap();
    assert_eq!(all(&file).iter().map(|table| table.name.as_str()).collect::<Vec<_>>(), ["customer", "log", "orders"]);
    for (format, method) in [(IndexFormat::Prefix, "page"), (IndexFormat::Plain, "none"), (IndexFormat::Fold, "huffman")] {
        let database = new_database();
        let options =
            LoadOptions { method: method.parse::<Setting<_>>().unwrap(), key_format: Setting::Given(format), ..LoadOptions::default() };
        let loaded = load(&database, &file, &all(&file), &options, true, &Silent).unwrap();
        let compared: Vec<_> = loaded.tables.iter().map(|table| table.compared.clone().unwrap()).collect();
        assert_eq!(
            compared.iter().map(|c| (c.rows, c.values, c.entries)).collect::<Vec<_>>(),
            [(3_000, 24_000, 6_000), (500, 1_000, 0), (5_000, 25_000, 10_000)]
        );
        let customer = database.table("customer").unwrap();
        let types: Vec<DataType> = customer.attributes().schema.columns().iter().map(|column| column.data_type).collect();
        let varchar = DataType::Varchar;
        assert_eq!(
            types,
            [
                DataType::BigInt,
                varchar(Some(30)),
                varchar(None),
                DataType::Date,
                DataType::Boolean,
                DataType::Bytea,
                DataType::Double,
                DataType::BigInt
            ]
        );
        assert_eq!(customer.attributes().primary_key, [0]);
        let of_log = database.table("log").unwrap().attributes().schema.columns()[0].data_type;
        assert_eq!(of_log, DataType::Timestamp { unit: TimeUnit::Milli, with_zone: false });
        let orders = database.table("orders").unwrap();
        let kinds: Vec<DataType> = orders.attributes().schema.columns().iter().map(|column| column.data_type).collect();
        assert_eq!(kinds[2], DataType::Timestamp { unit: TimeUnit::Second, with_zone: false });
        assert_eq!(kinds[3], DataType::Decimal { precision: 10, scale: 2 });
        let key = database.index("customer_key1").unwrap();
        assert!(key.attributes().unique);
        assert_eq!(database.index("by_placed").unwrap().attributes().columns.len(), 2);
    }
    let left_out: Vec<String> = file.tables().iter().flat_map(|table| table.left_out.clone()).chain(file.left_out().to_vec()).collect();
    for what in [
        "by_part",
        "by_lower",
        "NOCASE",
        "generated",
        "default of column \"active\"",
        "view \"v\"",
        "trigger \"t\"",
        "virtual table \"words\"",
    ] {
        assert!(left_out.iter().any(|line| line.contains(what)), "{what}: {left_out:?}");
    }
}

#[test]
fn a_difference_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let path = made(&directory, SHOP);
    let file = SqliteFile::open(&path, Mixed::Refuse).unwrap();
    let database = new_database();
    load(&database, &file, &all(&file), &LoadOptions::default(), false, &Silent).unwrap();
    let log = file.table("LOG").unwrap();
    assert_eq!(compare(&database, &file, log, &Silent).unwrap().difference, None);
    let mut t = database.begin(pagefold_engine::database::TransactionOptions::default());
    let table = database.table("log").unwrap();
    let first = database.read_view().scan(&table, &pagefold_engine::database::ScanRequest::default()).unwrap().into_rows().next();
    let (rid, row) = first.unwrap().unwrap();
    assert!(matches!(&row[1], Value::Text(what) if what == "what 1"));
    assert!(t.update(&table, rid, &[(1, pagefold_types::ValueRef::Text("what?"))]).unwrap());
    t.commit().unwrap();
    let difference = compare(&database, &file, log, &Silent).unwrap().difference.unwrap();
    assert_eq!(difference, "row 1, column \"what\": what? here, what 1 there");
}

#[test]
fn what_is_estimated_is_what_it_takes() {
    let directory = tempfile::tempdir().unwrap();
    let path = made(&directory, SHOP);
    let file = SqliteFile::open(&path, Mixed::Refuse).unwrap();
    let scratch = Scratch { storage: Arc::new(MemoryStorage::new()), directory: PathBuf::from("/") };
    let options = EstimateOptions::default();
    let estimated = estimate(&file, &all(&file), &scratch, &options, &Silent).unwrap();
    let database = new_database();
    let loaded = load(&database, &file, &all(&file), &LoadOptions::default(), true, &Silent).unwrap();
    for (estimated, loaded) in estimated.tables.iter().zip(&loaded.tables) {
        let table = estimated.table_bytes("page", 8192).unwrap();
        assert_eq!((table.0, table.1), (table.2, loaded.report.size_bytes), "{}", loaded.name);
        assert_eq!(estimated.index_bytes("prefix", 8192).1, loaded.index_bytes, "{}", loaded.name);
        assert!(estimated.table.bytes.unwrap() > 0);
    }
}

/// Rows of a sample are rows of the table, in clusters.
#[test]
fn samples_and_batches() {
    let directory = tempfile::tempdir().unwrap();
    let path = made(
        &directory,
        "CREATE TABLE t (n INTEGER); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) INSERT INTO t SELECT i FROM n;",
    );
    let file = SqliteFile::open(&path, Mixed::Refuse).unwrap();
    let mut source = file.source(file.table("t").unwrap()).unwrap();
    let rows = |source: &mut dyn Source| source.batches().unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>();
    assert_eq!((rows(source.as_mut()), rows(source.as_mut())), (50_000, 50_000));
    assert_eq!((source.row_count(), source.bytes_done()), (Some(50_000), source.bytes_total()));
    // Whoever wants no more leaves the thread.
    assert!(source.batches().unwrap().next().is_some());
    let sampled: Vec<usize> = source.sample(2_000, 7).unwrap().map(|batch| batch.unwrap().num_rows()).collect();
    assert_eq!(sampled, [256; 8]);
    assert!(source.place(41).unwrap().ends_with("app.sqlite, table \"t\", row 42"));
}

#[test]
fn what_does_not_fit_is_named_and_nothing_comes() {
    let directory = tempfile::tempdir().unwrap();
    let path = made(
        &directory,
        "CREATE TABLE a (n INTEGER); INSERT INTO a VALUES (1), (2); CREATE TABLE b (n INTEGER, m); INSERT INTO b VALUES (1, 1), (2, 'two'), (3, 3);",
    );
    let error = refused(
        &path,
        "table \"b\", column \"m\": its values have no type in common (texts: 1, first in row 2; integers: 2, first in row 1)",
    );
    assert!(error.contains("app.sqlite"), "{error}");
    let file = SqliteFile::open(&path, Mixed::Refuse).unwrap();
    let database = new_database();
    load(&database, &file, &all(&file), &LoadOptions::default(), true, &Silent).unwrap_err();
    assert!(database.table_names().is_empty(), "the table before it is dropped again");
    let file = SqliteFile::open(&path, Mixed::AsText).unwrap();
    let loaded = load(&database, &file, &all(&file), &LoadOptions::default(), true, &Silent).unwrap();
    assert_eq!(loaded.tables[1].compared.as_ref().unwrap().values, 6);
    // Names that are taken.
    let taken = load(&database, &file, &all(&file), &LoadOptions::default(), true, &Silent).unwrap_err().to_string();
    assert!(taken.contains("the database has a, b already"), "{taken}");
    // A text that is none, a blob beside numbers, a key with NULLs.
    let path = made(&directory, "CREATE TABLE a (t TEXT); INSERT INTO a VALUES (CAST(x'ff' AS TEXT));");
    refused(&path, "column \"t\": row 1 has a text that is not UTF-8");
    let path = made(&directory, "CREATE TABLE a (t); INSERT INTO a VALUES (x'ff'), (1.5);");
    refused(&path, "blobs: 1, first in row 1; floating-point numbers: 1, first in row 2");
    let path = made(&directory, "CREATE TABLE a (t TEXT PRIMARY KEY, n); INSERT INTO a VALUES (NULL, 1), (NULL, 2);");
    let file = SqliteFile::open(&path, Mixed::Refuse).unwrap();
    assert!(file.tables()[0].primary_key.is_empty() && file.tables()[0].left_out[0].contains("2 rows have a NULL"));
    load(&new_database(), &file, &all(&file), &LoadOptions::default(), true, &Silent).unwrap();
}

#[test]
fn files_that_are_none_or_damaged_or_locked() {
    let directory = tempfile::tempdir().unwrap();
    let path = made(&directory, SHOP);
    assert_eq!(with_table(Path::new(&format!("{}:orders", path.display()))), Some((path.clone(), "orders".to_owned())));
    assert_eq!(with_table(&path), None);
    let text = directory.path().join("text.csv");
    std::fs::write(&text, "a,b\n1,2\n").unwrap();
    assert!(!is_sqlite(&text) && !is_sqlite(directory.path()));
    let error = SqliteFile::open(&text, Mixed::Refuse).unwrap_err().to_string();
    assert!(error.contains("no SQLite database"), "{error}");
    // Pages of zeros in the middle.
    let mut bytes = std::fs::read(&path).unwrap();
    let half = bytes.len() / 8192 * 4096;
    bytes[half..half + 40_960].fill(0);
    let damaged = directory.path().join("damaged.sqlite");
    std::fs::write(&damaged, &bytes).unwrap();
    let found = SqliteFile::open(&damaged, Mixed::Refuse).and_then(|file| file.check());
    let error = found.unwrap_err().to_string();
    assert!(error.contains("damaged"), "{error}");
    // What somebody writes meanwhile is not seen.
    let file = SqliteFile::open(&path, Mixed::Refuse).unwrap();
    let writer = Connection::open(&path).unwrap();
    writer.busy_timeout(Duration::ZERO).unwrap();
    assert!(writer.execute("DELETE FROM log", []).is_err(), "the file is read just now");
    drop(file);
    writer.execute_batch("PRAGMA journal_mode = WAL; INSERT INTO log VALUES ('2021-01-01 00:00:00.000', 'in the log');").unwrap();
    let file = SqliteFile::open(&path, Mixed::Refuse).unwrap();
    assert_eq!(file.table("log").unwrap().rows, 501);
    writer.execute("DELETE FROM log", []).unwrap();
    let database = new_database();
    let loaded = load(&database, &file, &[file.table("log").unwrap()], &LoadOptions::default(), true, &Silent).unwrap();
    assert_eq!(loaded.tables[0].report.rows, 501);
    assert_eq!(database.table_names(), ["log"]);
}

/// A real one, written by nobody here.
#[test]
fn chinook() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/chinook.sqlite");
    if !path.exists() {
        eprintln!("skipped: {} is not there", path.display());
        return;
    }
    let file = SqliteFile::open(&path, Mixed::Refuse).unwrap();
    let loaded = load(&new_database(), &file, &all(&file), &LoadOptions::default(), true, &Silent).unwrap();
    assert_eq!(loaded.tables.len(), 11);
    let sum =
        |of: fn(&pagefold_migrate::Compared) -> u64| loaded.tables.iter().map(|table| of(table.compared.as_ref().unwrap())).sum::<u64>();
    assert_eq!((sum(|c| c.rows), sum(|c| c.values), sum(|c| c.entries)), (15_607, 66_439, 48_852));
}

/// Names that are given here, keys that are too long here, lengths that no type has here.
#[test]
fn what_sqlite_allows_and_is_otherwise_here() {
    let directory = tempfile::tempdir().unwrap();
    let path = made(
        &directory,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a VARCHAR(2147483647), b TEXT UNIQUE, c NUMERIC(10,2));
         CREATE INDEX t_pk ON t (a); CREATE INDEX t_key1 ON t (c);
         CREATE TABLE k (name TEXT COLLATE NOCASE PRIMARY KEY) WITHOUT ROWID;
         INSERT INTO t VALUES (1, 'short', 'x', 0.5), (2, printf('%.3000c', 'y'), 'z', 7); INSERT INTO k VALUES ('A'), ('b');",
    );
    let file = SqliteFile::open(&path, Mixed::Refuse).unwrap();
    let database = new_database();
    let loaded = load(&database, &file, &all(&file), &LoadOptions::default(), true, &Silent).unwrap();
    let t = file.table("t").unwrap();
    let mut names: Vec<&str> = t.indexes.iter().map(|index| index.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["t_key1", "t_key1_2", "t_pk_2"]);
    assert_eq!(loaded.tables[1].left_out.len(), 1, "{:?}", loaded.tables[1].left_out);
    assert!(loaded.tables[1].left_out[0].contains("t_pk_2"), "its key is too long");
    let columns = database.table("t").unwrap().attributes().schema.columns().to_vec();
    assert_eq!((columns[1].data_type, columns[3].data_type), (DataType::Varchar(None), DataType::Decimal { precision: 10, scale: 2 }));
    assert!(file.table("k").unwrap().left_out.iter().any(|what| what.contains("NOCASE")));
    assert_eq!(database.index_names(), ["k_pk", "t_key1", "t_key1_2", "t_pk"]);
    // A table that has the name of another one's key.
    let path = made(&directory, "CREATE TABLE t (id INTEGER PRIMARY KEY); CREATE TABLE t_pk (n);");
    refused(&path, "would be called t_pk");
}

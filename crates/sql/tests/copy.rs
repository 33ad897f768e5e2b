//! COPY: what is written is read back, what is wrong is told with line and column, and rows that are read are as strictly taken as those of INSERT.
//!
//! `PAGEFOLD_SQL_ROUNDS` (20) rounds of the random ones from `PAGEFOLD_SQL_SEED` (1) on.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "copy/errors.rs"]
mod errors;
#[path = "copy/files.rs"]
mod files;
#[path = "common/random.rs"]
#[allow(dead_code, reason = "others use more of it")]
mod random;
#[path = "copy/round_trip.rs"]
mod round_trip;
#[path = "copy/tables.rs"]
mod tables;

use pagefold_engine::database::{Database as Engine, OpenMode, Settings};
use pagefold_io::{MemoryStorage, OsClock};
use pagefold_sql::{CopyStream, Database, Session, SqlResult, TransactionState};
use pagefold_types::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;

fn database() -> Database {
    let storage = Arc::new(MemoryStorage::new());
    let engine = Engine::open(storage, Arc::new(OsClock), Path::new("memory"), OpenMode::Create, Settings::default()).unwrap();
    Database::new(Arc::new(engine))
}

fn session(definitions: &str) -> Session {
    let mut session = database().session();
    for definition in definitions.split(';').filter(|definition| !definition.trim().is_empty()) {
        run(&mut session, definition);
    }
    session
}

fn run(session: &mut Session, sql: &str) -> Vec<Vec<Value>> {
    session.execute(sql, &[]).unwrap_or_else(|e| panic!("{sql}: {e}")).rows().unwrap_or_else(|e| panic!("{sql}: {e}"))
}

/// Rows with values as they are written, `NULL` apart.
fn shown(session: &mut Session, sql: &str) -> Vec<String> {
    let value = |value: Value| match value {
        Value::Null => "NULL".to_owned(),
        Value::Text(text) => format!("{text:?}"),
        Value::Int(number) => number.to_string(),
        Value::Boolean(truth) => truth.to_string(),
        other => format!("{other:?}"),
    };
    run(session, sql).into_iter().map(|row| row.into_iter().map(value).collect::<Vec<_>>().join(" ")).collect()
}

fn count(session: &mut Session, table: &str) -> i64 {
    match run(session, &format!("SELECT count(*) FROM {table}"))[0][0] {
        Value::Int(count) => count,
        ref other => panic!("{other:?}"),
    }
}

fn copy_from(session: &mut Session, sql: &str, mut text: impl BufRead) -> SqlResult<u64> {
    let statement = session.prepare(sql)?;
    session.copy_from(&statement, &mut text)
}

fn copy_bytes_to(session: &mut Session, sql: &str) -> SqlResult<Vec<u8>> {
    let statement = session.prepare(sql)?;
    let mut bytes = Vec::new();
    session.copy_to(&statement, &mut bytes)?;
    Ok(bytes)
}

fn copy_to(session: &mut Session, sql: &str) -> String {
    String::from_utf8(copy_bytes_to(session, sql).unwrap_or_else(|e| panic!("{sql}: {e}"))).unwrap()
}

#[test]
fn text_is_read_as_postgresql_reads_it() {
    for (options, text, rows) in [
        ("", "1\ta\n2\t\\N\n", &["1 \"a\"", "2 NULL"][..]),
        // Without a line end, with a marker and what is behind it, with other line ends, without anything.
        ("", "1\ta", &["1 \"a\""]),
        ("", "1\ta\n\\.\nnot a row\n", &["1 \"a\""]),
        ("", "1\ta\r\n2\tb\r\n\\.\r\n", &["1 \"a\"", "2 \"b\""]),
        ("", "", &[]),
        ("", "\\.", &[]),
        ("", "1\t\n", &["1 \"\""]),
        // Escapes.
        ("", "1\t\\b\\f\\n\\r\\t\\v\\\\\\q\n", &["1 \"\\u{8}\\u{c}\\n\\r\\t\\u{b}\\\\q\""]),
        ("", "1\t\\101\\x42\\x4g\\7\n", &["1 \"AB\\u{4}g\\u{7}\""]),
        ("", "1\t\\303\\251\\xc3\\xa9é\n", &["1 \"ééé\""]),
        ("", "1\ta\\\tb\n", &["1 \"a\\tb\""]),
        ("", "1\ta\\\nb\n", &["1 \"a\\nb\""]),
        ("", "1\ta\\\r\n2\tb\n", &["1 \"a\\r\"", "2 \"b\""]),
        ("", "1\ta\\", &["1 \"a\""]),
        // NULL is compared as it is written.
        ("", "1\t\\\\N\n", &["1 \"\\\\N\""]),
        ("(NULL '')", "1\t\n", &["1 NULL"]),
        ("(NULL 'none')", "1\tnone\n2\t\\none\n3\t\\N\n", &["1 NULL", "2 \"\\none\"", "3 \"N\""]),
        ("(DELIMITER '|')", "1|a\tb\n2|a\\|b\n", &["1 \"a\\tb\"", "2 \"a|b\""]),
        ("(DELIMITER E'\\x01', HEADER)", "x\n1\u{1}a\n", &["1 \"a\""]),
        ("(HEADER match)", "id\tx\n1\ta\n", &["1 \"a\""]),
        ("(HEADER off)", "1\ta\n", &["1 \"a\""]),
        ("(FORMAT text, ENCODING 'utf-8', ON_ERROR stop)", "1\tä\n", &["1 \"ä\""]),
        ("DELIMITER AS '|' NULL 'x'", "1|x\n", &["1 NULL"]),
        ("USING DELIMITERS '|' WITH NULL AS 'x'", "1|x\n", &["1 NULL"]),
    ] {
        let mut session = session("CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT)");
        let sql = format!("COPY t FROM STDIN {options}");
        let copied = copy_from(&mut session, &sql, text.as_bytes()).unwrap_or_else(|e| panic!("{sql} {text:?}: {e} {:?}", e.context()));
        assert_eq!(shown(&mut session, "SELECT * FROM t ORDER BY id"), rows, "{sql} {text:?}");
        assert_eq!(copied, rows.len() as u64);
    }
}

#[test]
fn csv_is_read_as_postgresql_reads_it() {
    for (options, text, rows) in [
        ("(FORMAT csv)", "1,a\n2,\n3,\"\"\n", &["1 \"a\"", "2 NULL", "3 \"\""][..]),
        ("CSV", "1,\"a\"\"b\"\n2,a\"b,\"c\n3, \"d\" \n", &["1 \"a\\\"b\"", "2 \"ab,c\"", "3 \" d \""]),
        ("(FORMAT csv)", "1,\"a\nb\"\n2,\"\r\n\\.\n\"\n\\.\nnot a row\n", &["1 \"a\\nb\"", "2 \"\\r\\n\\\\.\\n\""]),
        ("(FORMAT csv)", "1,a\r\n2,\"b\n\r\"\r\n", &["1 \"a\"", "2 \"b\\n\\r\""]),
        ("(FORMAT csv)", "1,\\N\n2,a\\tb\n", &["1 \"\\\\N\"", "2 \"a\\\\tb\""]),
        ("(FORMAT csv, DELIMITER ';', NULL 'none')", "1;none\n2;\"none\"\n3;\n", &["1 NULL", "2 \"none\"", "3 \"\""]),
        ("(FORMAT csv, QUOTE '''')", "1,'a,b'\n2,'it''s'\n3,\"\n", &["1 \"a,b\"", "2 \"it's\"", "3 \"\\\"\""]),
        ("(FORMAT csv, ESCAPE '\\')", "1,\"a\\\"\\\\b\\c\"\n2,\"\\\\\"\n", &["1 \"a\\\"\\\\b\\\\c\"", "2 \"\\\\\""]),
        ("(FORMAT csv, FORCE_NOT_NULL (x))", "1,\n", &["1 \"\""]),
        ("(FORMAT csv, FORCE_NOT_NULL *, NULL 'n')", "1,n\n", &["1 \"n\""]),
        ("(FORMAT csv, FORCE_NULL (x))", "1,\"\"\n", &["1 NULL"]),
        ("(FORMAT csv, FORCE_NULL (x), FORCE_NOT_NULL (x))", "1,\"\"\n2,\n", &["1 NULL", "2 \"\""]),
        ("(FORMAT csv, HEADER)", "\"a\nb\",c\n1,a\n", &["1 \"a\""]),
        ("WITH CSV HEADER QUOTE AS '''' ESCAPE '\\' FORCE NOT NULL x", "id,x\n1,'\\''\n2,\n", &["1 \"'\"", "2 \"\""]),
        ("CSV FORCE NULL x", "1,\"\"\n", &["1 NULL"]),
        ("(FORMAT csv)", "1,\"a\"", &["1 \"a\""]),
        ("(FORMAT csv) WHERE id > 1 AND x IS NOT NULL", "1,a\n2,b\n3,\n", &["2 \"b\""]),
    ] {
        let mut session = session("CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT)");
        let sql = format!("COPY t FROM STDIN {options}");
        let copied = copy_from(&mut session, &sql, text.as_bytes()).unwrap_or_else(|e| panic!("{sql} {text:?}: {e} {:?}", e.context()));
        assert_eq!(shown(&mut session, "SELECT * FROM t ORDER BY id"), rows, "{sql} {text:?}");
        assert_eq!(copied, rows.len() as u64);
    }
}

#[test]
fn rows_are_written_as_postgresql_writes_them() {
    let mut session = session(
        "CREATE TABLE t (id INTEGER, b BOOLEAN, x TEXT, y BYTEA, n DECIMAL(9, 2));
         INSERT INTO t VALUES (1, true, E'a\\tb\\n\\\\c\\r|,\"', '\\x00ff', -1.5), (2, false, '', NULL, NULL), (3, NULL, NULL, '', 0), (4, NULL, '\\N', NULL, 1)",
    );
    for (options, text) in [
        ("", "1\tt\ta\\tb\\n\\\\c\\r|,\"\t\\\\x00ff\t-1.50\n2\tf\t\t\\N\t\\N\n3\t\\N\t\\N\t\\\\x\t0.00\n4\t\\N\t\\\\N\t\\N\t1.00\n"),
        (
            "(DELIMITER '|', NULL 'null', HEADER)",
            "id|b|x|y|n\n1|t|a\\tb\\n\\\\c\\r\\|,\"|\\\\x00ff|-1.50\n2|f||null|null\n3|null|null|\\\\x|0.00\n4|null|\\\\N|null|1.00\n",
        ),
        ("CSV", "1,t,\"a\tb\n\\c\r|,\"\"\",\\x00ff,-1.50\n2,f,\"\",,\n3,,,\\x,0.00\n4,,\\N,,1.00\n"),
        (
            "(FORMAT csv, QUOTE '''', ESCAPE '\\', FORCE_QUOTE (x, b), NULL '\\N')",
            "1,'t','a\tb\n\\\\c\r|,\"',\\x00ff,-1.50\n2,'f','',\\N,\\N\n3,\\N,\\N,\\x,0.00\n4,\\N,'\\\\N',\\N,1.00\n",
        ),
        (
            "CSV HEADER FORCE QUOTE *",
            "id,b,x,y,n\n\"1\",\"t\",\"a\tb\n\\c\r|,\"\"\",\"\\x00ff\",\"-1.50\"\n\"2\",\"f\",\"\",,\n\"3\",,,\"\\x\",\"0.00\"\n\"4\",,\"\\N\",,\"1.00\"\n",
        ),
    ] {
        assert_eq!(copy_to(&mut session, &format!("COPY t TO STDOUT {options}")), text, "{options}");
    }
    assert_eq!(copy_to(&mut session, "COPY t (n, id) TO STDOUT CSV"), "-1.50,1\n,2\n0.00,3\n1.00,4\n");
    let grouped = "COPY (SELECT b, count(*) AS \"n b\" FROM t GROUP BY b ORDER BY b NULLS FIRST) TO STDOUT (FORMAT csv, HEADER)";
    assert_eq!(copy_to(&mut session, grouped), "b,n b\n,2\nf,1\nt,1\n");
    assert_eq!(copy_to(&mut session, "COPY (VALUES (1, 'a'), (2, NULL)) TO STDOUT"), "1\ta\n2\t\\N\n");
    assert_eq!(copy_to(&mut session, "COPY (SELECT 1 WHERE false) TO STDOUT"), "");
    // What would end the input is quoted.
    assert_eq!(copy_to(&mut session, "COPY (SELECT '\\.') TO STDOUT CSV"), "\"\\.\"\n");
    assert_eq!(copy_to(&mut session, "COPY (SELECT '\\', '') TO STDOUT (FORMAT csv, DELIMITER '.', NULL 'x')"), "\"\\\".\"\"\n");
    assert_eq!(copy_to(&mut session, "COPY (SELECT '\\.') TO STDOUT"), "\\\\.\n");
    // What there is of the database itself.
    assert_eq!(copy_to(&mut session, "COPY information_schema.tables (table_name) TO STDOUT"), "t\n");
}

#[test]
fn who_gives_the_text_is_asked_for_no_more_than_it() {
    let mut session = session("CREATE TABLE t (id INTEGER, x TEXT)");
    for (sql, text) in [("COPY t FROM STDIN", "1\ta\n2\tb\n\\.\n"), ("COPY t FROM STDIN CSV", "3,\"a\n\\.\n\"\n\\.\n")] {
        for capacity in [1, 3, 1000] {
            let all = format!("{text}SELECT 1;\n");
            let mut input = BufReader::with_capacity(capacity, all.as_bytes());
            let statement = session.prepare(sql).unwrap();
            assert_eq!(statement.copy_stream(), Some(CopyStream::In));
            session.copy_from(&statement, &mut input).unwrap();
            let mut rest = String::new();
            input.read_to_string(&mut rest).unwrap();
            assert_eq!(rest, "SELECT 1;\n", "{sql}");
        }
    }
    assert_eq!(count(&mut session, "t"), 9);
}

/// Gives rows, or one that does not end; and does something now and then.
struct Endless<F> {
    row: &'static [u8],
    bytes: Vec<u8>,
    given: u64,
    each: F,
}

impl<F: FnMut(u64)> Endless<F> {
    fn new(row: &'static [u8], each: F) -> Endless<F> {
        Endless { row, bytes: Vec::new(), given: 0, each }
    }
}

impl<F: FnMut(u64)> Read for Endless<F> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.fill_buf()?.read(bytes)
    }
}

impl<F: FnMut(u64)> BufRead for Endless<F> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        if self.bytes.is_empty() {
            self.bytes = self.row.repeat(1000);
            (self.each)(self.given);
        }
        Ok(&self.bytes)
    }

    fn consume(&mut self, amount: usize) {
        self.given += amount as u64;
        self.bytes.drain(..amount);
    }
}

#[test]
fn it_ends_when_it_is_cancelled() {
    let mut session = session("CREATE TABLE t (x INTEGER); SET work_mem = '2kB'");
    let canceller = session.canceller();
    let input = Endless::new(b"12345\n", |given| {
        if given > 200_000 {
            canceller.cancel();
        }
    });
    assert_eq!(copy_from(&mut session, "COPY t FROM STDIN", input).unwrap_err().sqlstate(), "57014");
    assert_eq!(count(&mut session, "t"), 0);
    // A writer that does not come to its end.
    struct Cancelling(pagefold_sql::Canceller);
    impl Write for Cancelling {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.cancel();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut output = Cancelling(session.canceller());
    let statement = session.prepare("COPY (SELECT * FROM generate_series(1, 1000000000000)) TO STDOUT").unwrap();
    assert_eq!(session.copy_to(&statement, &mut output).unwrap_err().sqlstate(), "57014");
    // One that is over before it has begun to be read.
    run(&mut session, "SET statement_timeout = '1ms'");
    let input = Endless::new(b"12345\n", |_| {});
    assert_eq!(copy_from(&mut session, "COPY t FROM STDIN", input).unwrap_err().sqlstate(), "57014");
    run(&mut session, "SET statement_timeout = 0");
    assert_eq!((count(&mut session, "t"), session.transaction_state()), (0, TransactionState::None));
}

#[test]
fn a_line_that_does_not_end_is_an_error() {
    let mut session = session("CREATE TABLE t (x TEXT)");
    for (sql, begin, row) in [
        ("COPY t FROM STDIN", &b"a"[..], &b"abcdefgh"[..]),
        ("COPY t FROM STDIN CSV", b"\"", b"abc\n"),
        ("COPY t FROM STDIN (HEADER)", b"", b"\\\n"),
    ] {
        let error = copy_from(&mut session, sql, begin.chain(Endless::new(row, |_| {}))).unwrap_err();
        assert_eq!(error.sqlstate(), "54000", "{sql}: {error}");
        assert!(error.context().unwrap().starts_with("COPY t, line "), "{sql}");
    }
    // Nor is a row written that could not be read.
    let long = "COPY (SELECT repeat('x', 40000000), repeat('y', 40000000)) TO STDOUT";
    assert_eq!(copy_bytes_to(&mut session, long).unwrap_err().sqlstate(), "54000");
    assert_eq!(count(&mut session, "t"), 0);
}

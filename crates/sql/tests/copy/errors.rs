//! What is wrong with an input, or with the statement.

use super::{copy_bytes_to, copy_from, count, run, session};
use std::io::{BufReader, Read, Write};

/// Each: table, what stands behind FROM STDIN, input, SQLSTATE, part of the message, context.
type Wrong = (&'static str, &'static str, &'static [u8], &'static str, &'static str, &'static str);

const WRONG: &[Wrong] = &[
    ("t", "", b"1\ta\n2\n", "22P04", "missing data for column \"x\"", "COPY t, line 2: \"2\""),
    ("t", "", b"\n", "22P02", "integer: \"\"", "COPY t, line 1, column id: \"\""),
    ("t", "", b"1\ta\tb\n", "22P04", "extra data after last expected column", "COPY t, line 1: \"1\ta\tb\""),
    ("t", "", b"1\ta\n\nx\n", "22P02", "integer", "COPY t, line 2, column id: \"\""),
    ("t", "", b"x\ta\n", "22P02", "invalid input syntax for type integer: \"x\"", "COPY t, line 1, column id: \"x\""),
    ("t", "", b"1\ta\n\t\n", "22P02", "integer: \"\"", "COPY t, line 2, column id: \"\""),
    ("t", "", b"99999999999\ta\n", "22003", "out of range", "COPY t, line 1, column id: \"99999999999\""),
    ("t", "", b"1\ta\n\\N\tb\n", "23502", "null value in column \"id\"", "COPY t, line 2: \"\\N\tb\""),
    ("t", "", b"1\ta\n2\ttoo long\n", "22001", "too long for type character varying(5)", "COPY t, line 2, column x: \"too long\""),
    ("t", "", b"1\ta\n-2\tb\n", "23514", "violates check constraint \"positive\"", "COPY t, line 2: \"-2\tb\""),
    ("t", "", b"1\ta\n2\tb\n1\tc\n", "23505", "duplicate key", "COPY t, line 3"),
    ("t", "", b"1\ta\n2\t\xff\n", "22021", "invalid byte sequence for encoding \"UTF8\": 0xff", "COPY t, line 2"),
    ("t", "", b"1\t\xc3", "22021", "0xc3", "COPY t, line 1"),
    ("t", "", b"1\t\\377\n", "22021", "0xff", "COPY t, line 1: \"1\t\\377\""),
    ("t", "", b"1\ta\0\n", "22021", "0x00", "COPY t, line 1"),
    ("t", "", b"1\t\\0\n", "22021", "0x00", "COPY t, line 1: \"1\t\\0\""),
    ("t", "", b"1\ta\n2\\.\tb\n", "22P04", "end-of-copy marker", "COPY t, line 2: \"2\\.\tb\""),
    ("t", "", b"1\ta\rb\n", "22P04", "literal carriage return found in data", "COPY t, line 1"),
    ("t", "", b"1\ta\n2\tb\r\n", "22P04", "literal carriage return found in data", "COPY t, line 2"),
    ("t", "", b"1\ta\r\n2\tb\n", "22P04", "literal newline found in data", "COPY t, line 2"),
    ("t", "CSV", b"1,a\n2,\"b\n3,c\n", "22P04", "unterminated CSV quoted field", "COPY t, line 4: \"2,\"b\n3,c\n\""),
    ("t", "CSV", b"1,\"a\nb\"\nx,a\n", "22P02", "integer", "COPY t, line 3, column id: \"x\""),
    ("t", "CSV", b"1,a,\n", "22P04", "extra data", "COPY t, line 1: \"1,a,\""),
    ("t", "CSV", b"1,a\r2,b\n", "22P04", "unquoted carriage return found in data", "COPY t, line 1"),
    ("t", "CSV", b"1,a\r\n2,b\n", "22P04", "unquoted newline found in data", "COPY t, line 2"),
    ("t", "CSV", b"\"\",a\n", "22P02", "integer: \"\"", "COPY t, line 1, column id: \"\""),
    ("t", "(HEADER match)", b"id\ty\n", "22P04", "field 2: got \"y\", expected \"x\"", "COPY t, line 1: \"id\ty\""),
    ("t", "(HEADER match)", b"id\n", "22P04", "wrong number of fields in header line: got 1, expected 2", "COPY t, line 1"),
    ("t", "(HEADER match)", b"id\tx\ty\tz\n", "22P04", "got 4, expected 2", "COPY t, line 1"),
    ("t", "(HEADER match)", b"id\t\\N\n", "22P04", "got null value (\"\\N\"), expected \"x\"", "COPY t, line 1"),
    ("t (x)", "", b"a\n", "23502", "null value in column \"id\"", "COPY t, line 1: \"a\""),
    ("t", "WHERE 1 / (id - 2) > 0", b"1\ta\n2\tb\n", "22012", "division by zero", "COPY t, line 2: \"2\tb\""),
];

const TABLE: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY CONSTRAINT positive CHECK (id > 0), x VARCHAR(5))";

#[test]
fn input_that_is_wrong() {
    let mut session = session(TABLE);
    for (table, options, text, sqlstate, message, context) in WRONG {
        for capacity in [1, 4096] {
            let sql = format!("COPY {table} FROM STDIN {options}");
            let error = copy_from(&mut session, &sql, BufReader::with_capacity(capacity, *text)).unwrap_err();
            let shown = String::from_utf8_lossy(text);
            assert_eq!(error.sqlstate(), *sqlstate, "{sql} {shown:?}: {error}");
            assert!(error.message().contains(message), "{sql} {shown:?}: {error}");
            assert!(error.context().unwrap().starts_with(context), "{sql} {shown:?}: {:?}", error.context());
            assert_eq!(count(&mut session, "t"), 0, "{sql} {shown:?}");
        }
    }
}

#[test]
fn the_line_is_told_behind_many_rows() {
    let mut session = session(&format!("{TABLE}; SET work_mem = '1MB'"));
    let rows = |wrong: &str, at: usize| {
        let mut text: Vec<String> = (1..=5000).map(|id| format!("{id}\tx\n")).collect();
        text[at - 1] = wrong.to_owned();
        text.concat()
    };
    for (wrong, at, sqlstate, context) in [
        ("17\tx\n", 4321, "23505", "COPY t, line 4321"),
        ("4999\tx\n", 18, "23505", "COPY t, line 4999"),
        ("-1\tx\n", 2500, "23514", "COPY t, line 2500: \"-1\tx\""),
        ("1\n", 5000, "22P04", "COPY t, line 5000: \"1\""),
    ] {
        let error = copy_from(&mut session, "COPY t FROM STDIN", rows(wrong, at).as_bytes()).unwrap_err();
        assert_eq!((error.sqlstate(), error.context()), (sqlstate, Some(context)), "{error}");
        assert_eq!(count(&mut session, "t"), 0);
    }
    // The constraint is told as INSERT tells it.
    let error = copy_from(&mut session, "COPY t FROM STDIN", rows("17\tx\n", 4321).as_bytes()).unwrap_err();
    assert_eq!((error.constraint(), error.table()), (Some("t_pkey"), Some("t")));
    assert_eq!(copy_from(&mut session, "COPY t FROM STDIN", rows("6000\tx\n", 1).as_bytes()).unwrap(), 5000);
}

#[test]
fn statements_that_are_wrong() {
    let mut session = session(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT, g INTEGER GENERATED ALWAYS AS (id + 1) STORED);
         CREATE VIEW v AS SELECT * FROM t",
    );
    for (sql, sqlstate) in [
        ("COPY t FROM", "42601"),
        ("COPY t STDIN", "42601"),
        ("COPY t FROM STDIN STDIN", "42601"),
        ("COPY t FROM STDIN (", "42601"),
        ("COPY t FROM STDIN ()", "42601"),
        ("COPY t FROM \"file\"", "42601"),
        ("COPY (SELECT 1) FROM STDIN", "42601"),
        ("COPY (DELETE FROM t RETURNING id) TO STDOUT", "0A000"),
        ("COPY t () FROM STDIN", "42601"),
        ("COPY t TO STDOUT WHERE id = 1", "42601"),
        ("COPY t FROM STDIN FORCE x", "42601"),
        // Options.
        ("COPY t FROM STDIN (FORMAT cvs)", "22023"),
        ("COPY t FROM STDIN (FORMAT)", "42601"),
        ("COPY t FROM STDIN (FORMAT binary)", "0A000"),
        ("COPY t FROM STDIN BINARY", "0A000"),
        ("COPY BINARY t FROM STDIN", "0A000"),
        ("COPY t TO STDOUT (FORMAT parquet)", "0A000"),
        ("COPY t FROM STDIN (FORMAT csv, FORMAT csv)", "42601"),
        ("COPY t FROM STDIN CSV CSV", "42601"),
        ("COPY t FROM STDIN (COLOUR 'red')", "42601"),
        ("COPY t FROM STDIN (DELIMITER 'ab')", "0A000"),
        ("COPY t FROM STDIN (DELIMITER 'é')", "0A000"),
        ("COPY t FROM STDIN (DELIMITER '')", "0A000"),
        ("COPY t FROM STDIN (DELIMITER)", "42601"),
        ("COPY t FROM STDIN (DELIMITER E'\\n')", "22023"),
        ("COPY t FROM STDIN (DELIMITER 'a')", "22023"),
        ("COPY t FROM STDIN (DELIMITER '\\')", "22023"),
        ("COPY t FROM STDIN (DELIMITER '.')", "22023"),
        ("COPY t FROM STDIN (NULL E'\\r')", "22023"),
        ("COPY t FROM STDIN (NULL 'a|b', DELIMITER '|')", "22023"),
        ("COPY t FROM STDIN (NULL '\\.')", "22023"),
        ("COPY t FROM STDIN (FORMAT csv, NULL '\"')", "22023"),
        ("COPY t FROM STDIN (FORMAT csv, QUOTE ',')", "22023"),
        ("COPY t FROM STDIN (FORMAT csv, QUOTE E'\\n')", "22023"),
        ("COPY t FROM STDIN (FORMAT csv, QUOTE 'ab')", "0A000"),
        ("COPY t FROM STDIN (FORMAT csv, ESCAPE 'ab')", "0A000"),
        ("COPY t FROM STDIN (QUOTE '''')", "0A000"),
        ("COPY t FROM STDIN (ESCAPE '\\')", "0A000"),
        ("COPY t FROM STDIN (FORCE_NULL (x))", "0A000"),
        ("COPY t TO STDOUT (FORCE_QUOTE (x))", "0A000"),
        ("COPY t FROM STDIN (FORMAT csv, FORCE_QUOTE (x))", "22023"),
        ("COPY t TO STDOUT (FORMAT csv, FORCE_NULL (x))", "22023"),
        ("COPY t TO STDOUT (FORMAT csv, FORCE_NOT_NULL (x))", "22023"),
        ("COPY t TO STDOUT (FORMAT csv, FORCE_QUOTE x)", "22023"),
        ("COPY t TO STDOUT (FORMAT csv, FORCE_QUOTE (y))", "42P10"),
        ("COPY t (id) FROM STDIN (FORMAT csv, FORCE_NULL (x))", "42P10"),
        ("COPY t FROM STDIN (HEADER maybe)", "42601"),
        ("COPY t TO STDOUT (HEADER match)", "0A000"),
        ("COPY t FROM STDIN (ENCODING 'latin1')", "0A000"),
        ("COPY t FROM STDIN (FREEZE)", "0A000"),
        ("COPY t FROM STDIN (ON_ERROR ignore)", "0A000"),
        ("COPY t FROM STDIN (DEFAULT 'd')", "0A000"),
        ("COPY t FROM PROGRAM 'ls'", "0A000"),
        // Tables and columns.
        ("COPY u FROM STDIN", "42P01"),
        ("COPY u TO STDOUT", "42P01"),
        ("COPY t (y) FROM STDIN", "42703"),
        ("COPY t (id, id) FROM STDIN", "42701"),
        ("COPY t (g) FROM STDIN", "42P10"),
        ("COPY t (g) TO STDOUT", "42P10"),
        ("COPY v FROM STDIN", "42809"),
        ("COPY v TO STDOUT", "42809"),
        ("COPY pagefold_tables FROM STDIN", "42501"),
        ("COPY (SELECT * FROM t FOR UPDATE) TO STDOUT", "0A000"),
        ("COPY (SELECT $1) TO STDOUT", "42P02"),
        ("COPY t FROM STDIN WHERE id = $1", "42P02"),
        ("COPY t FROM STDIN WHERE id = (SELECT 1)", "0A000"),
        ("COPY t FROM STDIN WHERE count(*) = 1", "42803"),
        ("COPY t FROM STDIN WHERE g = 1", "42P10"),
        ("COPY t FROM STDIN WHERE id", "42804"),
    ] {
        let done = match sql.contains("FROM STDIN") || !sql.contains("TO STDOUT") {
            true => copy_from(&mut session, sql, &b""[..]).map(drop),
            false => copy_bytes_to(&mut session, sql).map(drop),
        };
        let error = done.expect_err(sql);
        assert_eq!(error.sqlstate(), sqlstate, "{sql}: {error}");
    }
}

#[test]
fn each_statement_has_its_call() {
    let mut session = session("CREATE TABLE t (id INTEGER)");
    for (sql, call) in [("COPY t FROM STDIN", "Session::copy_from"), ("COPY t TO STDOUT", "Session::copy_to")] {
        let error = session.execute(sql, &[]).map(drop).unwrap_err();
        assert_eq!(error.sqlstate(), "0A000");
        assert!(error.message().contains(call), "{error}");
    }
    for sql in ["COPY t TO STDOUT", "COPY t FROM 'file'", "SELECT 1"] {
        assert_eq!(copy_from(&mut session, sql, &b""[..]).unwrap_err().sqlstate(), "42809", "{sql}");
    }
    assert_eq!(copy_bytes_to(&mut session, "COPY t FROM STDIN").unwrap_err().sqlstate(), "42809");
    // Within a transaction such a mistake is one as any other.
    run(&mut session, "BEGIN");
    copy_from(&mut session, "SELECT 1", &b""[..]).unwrap_err();
    assert_eq!(copy_from(&mut session, "COPY t FROM STDIN", &b"1\n"[..]).unwrap_err().sqlstate(), "25P02");
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("the line is dead"))
    }
}

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("the line is dead"))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn ends_that_fail() {
    let mut session = session("CREATE TABLE t (id INTEGER)");
    let input = BufReader::with_capacity(8, (&b"1\n2\n3\n"[..]).chain(Broken));
    let error = copy_from(&mut session, "COPY t FROM STDIN", input).unwrap_err();
    assert_eq!((error.sqlstate(), error.message()), ("58030", "could not read what is to be copied: the line is dead"));
    assert_eq!(count(&mut session, "t"), 0);
    let statement = session.prepare("COPY (SELECT 1) TO STDOUT").unwrap();
    let error = session.copy_to(&statement, &mut Broken).unwrap_err();
    assert_eq!((error.sqlstate(), error.message()), ("58030", "could not write what was copied: the line is dead"));
}

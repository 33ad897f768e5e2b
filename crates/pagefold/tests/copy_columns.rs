//! COPY with Parquet and Arrow files: what is written comes back, what does not fit is told with its row, and files that are damaged are errors.
#![allow(missing_docs, clippy::unwrap_used)]

use arrow_array::{Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use pagefold::Database;
use pagefold::interchange::{FileFormat, OpenSource, ParquetOptions, TableSchema, open_source};
use pagefold::io::OsStorage;
use pagefold::sql::{Session, SqlError};
use std::path::Path;
use std::sync::Arc;

const FORMATS: [&str; 2] = ["parquet", "arrow"];

const COLUMNS: &str =
    "id INTEGER PRIMARY KEY, b BOOLEAN, s SMALLINT, i INTEGER, l BIGINT, r REAL, d DOUBLE PRECISION, n DECIMAL(9,3), w DECIMAL(38,10),
    c CHAR(5), v VARCHAR(20), t TEXT, x BYTEA, day DATE, clock TIME, moment TIMESTAMP, at TIMESTAMP WITH TIME ZONE, u UUID, span INTERVAL";

const ROWS: &str = "
    (1, true, -32768, -2147483648, -9223372036854775808, -1.5, 1e300, -999999.999, -1234567890123456789012345678.0123456789,
     'ab', 'naïve', '', '\\x00ff', '0001-01-01', '00:00:00', '0001-01-01 00:00:00', '1969-12-31 23:59:59.999999+00', '00000000-0000-0000-0000-000000000000', '-178956970 years -8 mons 30 days'),
    (2, false, 32767, 2147483647, 9223372036854775807, 3.4e38, -1e-300, 999999.999, 1234567890123456789012345678.0123456789,
     'abcde', '  blanks  ', 'two
lines', '\\x', '9999-12-31', '23:59:59.999999', '9999-12-31 23:59:59.999999', '2026-11-30 12:00:00+02', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '1 mon -2147483648 days 2562047788:00:54.775807'),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)";

fn session() -> Session {
    Database::in_memory().unwrap().session()
}

fn run(session: &mut Session, sql: &str) -> u64 {
    let mut answer = session.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
    while answer.next_row().unwrap_or_else(|error| panic!("{sql}: {error}")).is_some() {}
    answer.count()
}

fn error(session: &mut Session, sql: &str) -> SqlError {
    match session.execute(sql, &[]).and_then(pagefold::sql::Answer::rows) {
        Ok(rows) => panic!("{sql}: {rows:?}"),
        Err(error) => error,
    }
}

fn lines(session: &mut Session, sql: &str) -> Vec<String> {
    let rows = session.execute(sql, &[]).and_then(pagefold::sql::Answer::rows).unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows.iter().map(|row| format!("{row:?}")).collect()
}

#[test]
fn every_type_comes_back_as_it_was() {
    for format in FORMATS {
        let mut session = session();
        run(&mut session, &format!("CREATE TABLE a ({COLUMNS}) WITH (compress = 'page')"));
        run(&mut session, &format!("CREATE TABLE b ({COLUMNS})"));
        run(&mut session, &format!("INSERT INTO a VALUES {ROWS}"));
        run(&mut session, "INSERT INTO a (id, i, t) SELECT g, g * 7, repeat('word ', g % 300) FROM generate_series(4, 20003) AS g");
        let file = format!("rows.{format}");
        // The name of the file says the format.
        assert_eq!(run(&mut session, &format!("COPY a TO '{file}'")), 20_003);
        assert_eq!(run(&mut session, &format!("COPY b FROM '{file}'")), 20_003);
        assert_eq!(lines(&mut session, "SELECT * FROM a ORDER BY id"), lines(&mut session, "SELECT * FROM b ORDER BY id"));
        // Of a query, in a file of another name; no rows are a file, too.
        assert_eq!(run(&mut session, &format!("COPY (SELECT * FROM a WHERE id < 0) TO 'none' (FORMAT {format})")), 0);
        assert_eq!(run(&mut session, &format!("COPY b FROM 'none' (FORMAT {format})")), 0);
    }
}

/// By every method, written anew: what is stored is what was given, part by part.
#[test]
fn intervals_are_the_same_by_every_method() {
    let mut session = session();
    run(&mut session, "CREATE TABLE t (id INTEGER PRIMARY KEY, span INTERVAL, other INTERVAL NOT NULL)");
    run(
        &mut session,
        "INSERT INTO t SELECT g, CASE WHEN g % 9 > 0 THEN make_interval(months => g % 40, days => g % 70 - 30, secs => g * 0.001) END,
         make_interval(days => g % 3) FROM generate_series(1, 20000) AS g",
    );
    run(&mut session, "CREATE INDEX t_span ON t (span DESC)");
    let rows = "SELECT id, span, other FROM t ORDER BY id";
    let before = lines(&mut session, rows);
    let ordered = "SELECT id FROM t WHERE span BETWEEN '10 mons' AND '1 year' ORDER BY span, id";
    let found = lines(&mut session, ordered);
    assert!(found.len() > 100);
    for method in ["none", "row", "page", "fixed", "huffman"] {
        run(&mut session, &format!("REORG TABLE t WITH (compress = '{method}', page_size = '4K')"));
        run(&mut session, "ANALYZE t");
        assert_eq!(lines(&mut session, rows), before, "{method}");
        assert_eq!(lines(&mut session, ordered), found, "{method}");
        assert!(lines(&mut session, "CHECK").is_empty(), "{method}");
    }
    // Statistics have keys, which say how long an interval is, not its parts.
    let ends = "SELECT \"least\"::interval = (SELECT min(span) FROM t) AND \"greatest\"::interval = (SELECT max(span) FROM t)
        FROM pagefold_column_statistics WHERE table_name = 't' AND column_name = 'span'";
    assert_eq!(lines(&mut session, ends), ["[Boolean(true)]"]);
}

#[test]
fn columns_are_found_by_name_and_assigned() {
    let mut session = session();
    run(
        &mut session,
        "CREATE TABLE t (id BIGINT PRIMARY KEY, price DECIMAL(8,2) NOT NULL DEFAULT 7, name VARCHAR(5), double BIGINT GENERATED ALWAYS AS (id * 2) STORED)",
    );
    run(&mut session, "COPY (SELECT 'abc' AS name, 1.239 AS price, 5 AS id UNION ALL SELECT 'x', 2, 6) TO 'one.parquet'");
    assert_eq!(run(&mut session, "COPY t FROM 'one.parquet' WHERE id > 5"), 1);
    assert_eq!(run(&mut session, "COPY t FROM 'one.parquet' WHERE id = 5"), 1);
    run(&mut session, "COPY (SELECT 8 AS id) TO 'two.arrow'");
    assert_eq!(run(&mut session, "COPY t (id) FROM 'two.arrow'"), 1);
    let wanted = ["5 1.24 abc 10", "6 2.00 x 12", "8 7.00  16"];
    let found = session.execute("SELECT concat(id, ' ', price, ' ', name, ' ', double) FROM t ORDER BY id", &[]).unwrap().rows().unwrap();
    assert_eq!(found.iter().map(|row| format!("{:?}", row[0])).collect::<Vec<_>>(), wanted.map(|text| format!("Text({text:?})")));
}

#[test]
fn what_does_not_fit_is_told_and_leaves_nothing() {
    let mut session = session();
    run(&mut session, "CREATE TABLE t (id SMALLINT PRIMARY KEY, name VARCHAR(5) NOT NULL)");
    run(&mut session, "INSERT INTO t VALUES (7, 'there')");
    let cases = [
        ("SELECT g AS id, 'a' AS name FROM generate_series(32700, 32800) AS g", "22003", "COPY t, row 69"),
        ("SELECT g AS id, repeat('a', g % 7) AS name FROM generate_series(100, 200) AS g", "22001", "COPY t, row 5"),
        ("SELECT g AS id, CASE WHEN g <> 1500 THEN 'a' END AS name FROM generate_series(100, 2000) AS g", "23502", "COPY t, row 1401"),
        ("SELECT g AS id, 'a' AS name FROM generate_series(0, 100) AS g", "23505", "COPY t, row 8"),
    ];
    for (query, sqlstate, context) in cases {
        run(&mut session, &format!("COPY ({query}) TO 'rows.parquet'"));
        let error = error(&mut session, "COPY t FROM 'rows.parquet'");
        assert_eq!((error.sqlstate(), error.context()), (sqlstate, Some(context)), "{query}: {error}");
        assert_eq!(lines(&mut session, "SELECT * FROM t").len(), 1, "{query}");
    }
    let columns = [
        ("SELECT 1 AS id, 'a' AS name, 2 AS more", "22P04", "\"more\""),
        ("SELECT 1 AS id", "22P04", "no column \"name\""),
        ("SELECT DATE '2026-11-30' AS id, 'a' AS name", "42804", "of type smallint but expression is of type date"),
    ];
    for (query, sqlstate, message) in columns {
        run(&mut session, &format!("COPY ({query}) TO 'rows.parquet'"));
        let error = error(&mut session, "COPY t FROM 'rows.parquet'");
        assert_eq!(error.sqlstate(), sqlstate, "{query}: {error}");
        assert!(error.to_string().contains(message), "{error}");
    }
    assert_eq!(error(&mut session, "COPY (SELECT 1 AS a, 2 AS a) TO 'twice.parquet'").sqlstate(), "42701");
    assert_eq!(error(&mut session, "COPY t FROM 'nowhere.parquet'").sqlstate(), "58P01");
    assert_eq!(error(&mut session, "COPY t TO 'memory/inside.parquet'").sqlstate(), "42501");
    assert_eq!(error(&mut session, "COPY t FROM STDIN (FORMAT parquet)").sqlstate(), "0A000");
}

#[test]
fn a_file_appears_when_it_is_complete() {
    let mut session = session();
    run(&mut session, "CREATE TABLE t (id INTEGER)");
    run(&mut session, "COPY (SELECT 1 AS id) TO 'rows.parquet'");
    let failing = "COPY (SELECT 100 / (50000 - g) AS id FROM generate_series(1, 60000) AS g) TO 'rows.parquet'";
    assert_eq!(error(&mut session, failing).sqlstate(), "22012");
    assert_eq!(run(&mut session, "COPY t FROM 'rows.parquet'"), 1);
    assert_eq!(error(&mut session, &failing.replace("rows.", "none.")).sqlstate(), "22012");
    assert_eq!(error(&mut session, "COPY t FROM 'none.parquet'").sqlstate(), "58P01");
}

/// Writes columns `id` and `name` as another program would.
fn write_file(path: &Path, names: Vec<&str>) {
    let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int32, false), Field::new("name", DataType::Utf8, true)]));
    let ids = Int32Array::from_iter_values(0..i32::try_from(names.len()).unwrap());
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(ids), Arc::new(StringArray::from(names))]).unwrap();
    let format = if path.extension().unwrap() == "arrow" { FileFormat::Arrow } else { FileFormat::Parquet(ParquetOptions::default()) };
    let table = TableSchema::from_arrow(schema).unwrap();
    let mut sink = format.sink(std::fs::File::create(path).unwrap(), &table, None).unwrap();
    sink.write(&batch).unwrap();
    sink.finish().unwrap();
}

#[test]
fn texts_of_files_are_texts_of_sql() {
    let directory = tempfile::tempdir().unwrap();
    let mut session = Database::create(directory.path().join("db")).unwrap().session();
    run(&mut session, "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)");
    for format in FORMATS {
        let path = directory.path().join(format!("rows.{format}"));
        write_file(&path, vec!["fine", "", "a\0b"]);
        let error = error(&mut session, &format!("COPY t FROM '{}'", path.display()));
        assert_eq!((error.sqlstate(), error.context()), ("22021", Some("COPY t, row 3")), "{error}");
    }
}

/// Whatever lengths the end of an Arrow file is made to say: the library would make room for them.
#[test]
fn lengths_that_a_file_says_are_not_believed() {
    let directory = tempfile::tempdir().unwrap();
    let mut session = Database::create(directory.path().join("db")).unwrap().session();
    run(&mut session, "CREATE TABLE t (id INTEGER, name TEXT)");
    let path = directory.path().join("rows.arrow");
    write_file(&path, vec!["one", "two", "three"]);
    let whole = std::fs::read(&path).unwrap();
    let mut refused = 0;
    for at in (whole.len().saturating_sub(600)..whole.len() - 8).step_by(4) {
        for length in [1i64 << 52, 1 << 34, 0x7FFF_FFFF, -1] {
            let mut bytes = whole.clone();
            bytes[at..at + 8].copy_from_slice(&length.to_le_bytes());
            std::fs::write(&path, bytes).unwrap();
            refused += u32::from(session.execute(&format!("COPY t FROM '{}'", path.display()), &[]).is_err());
        }
    }
    assert!(refused > 100, "{refused}");
}

/// Long values that come often take little of a Parquet file.
#[test]
fn batches_are_bounded_by_what_values_take_in_memory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows.parquet");
    let text = "long ".repeat(20_000);
    write_file(&path, vec![text.as_str(); 1500]);
    assert!(std::fs::metadata(&path).unwrap().len() < 1 << 20);
    let mut source = open_source(&OsStorage, &[path], &OpenSource::default()).unwrap();
    let batches: Vec<usize> = source.batches().unwrap().map(|batch| batch.unwrap().num_rows()).collect();
    assert_eq!(batches.iter().sum::<usize>(), 1500);
    assert!(batches.iter().all(|rows| *rows <= 170), "{batches:?}");
}

/// A real directory, so that files can be changed in it.
#[test]
fn a_damaged_file_is_an_error_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::create(directory.path().join("db")).unwrap();
    let mut session = database.session();
    run(&mut session, "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, amount DECIMAL(9,2))");
    for format in FORMATS {
        let path = directory.path().join(format!("rows.{format}"));
        let name = path.display();
        run(
            &mut session,
            &format!("COPY (SELECT g AS id, 'name ' || g % 50 AS name, g / 4.0 AS amount FROM generate_series(1, 3000) AS g) TO '{name}'"),
        );
        let whole = std::fs::read(&path).unwrap();
        let (mut errors, mut taken) = (0, 0);
        for step in 0..120 {
            let mut bytes = whole.clone();
            let at = step * whole.len() / 120;
            match step % 3 {
                0 => bytes.truncate(at),
                1 => bytes[at] ^= 0xFF,
                _ => bytes[at] = bytes[at].wrapping_add(1),
            }
            std::fs::write(&path, bytes).unwrap();
            match session.execute(&format!("COPY t FROM '{name}' (FORMAT {format})"), &[]).and_then(|mut answer| {
                while answer.next_row()?.is_some() {}
                Ok(answer.count())
            }) {
                // A value may have become another one, which nothing in the file tells.
                Ok(count) => {
                    assert_eq!(lines(&mut session, "SELECT id FROM t").len() as u64, count);
                    run(&mut session, "DELETE FROM t");
                    taken += 1;
                }
                Err(_) => errors += 1,
            }
            assert_eq!(lines(&mut session, "SELECT * FROM t").len(), 0);
        }
        assert!(errors > 40, "{format}: {errors} errors, {taken} taken");
        // As text it is no file of columns, and the other way round.
        std::fs::write(&path, "id,name\n1,a\n").unwrap();
        let as_other = path.with_extension("csv");
        std::fs::write(&as_other, "id,name,amount\n1,a,2\n").unwrap();
        let error = error(&mut session, &format!("COPY t FROM '{}' (FORMAT {format})", as_other.display()));
        assert_eq!(error.sqlstate(), "22P04", "{error}");
    }
}

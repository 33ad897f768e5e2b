//! Text files: what is read, what is refused, and that what is written back is the same rows.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::{Rng, batches, get, memory, open_csv, put, rows};
use pagefold_interchange::{CsvOptions, DateOrder, FileFormat, FileSink, Header, InterchangeError, Rejects, Sink, Source, TableSchema};
use pagefold_io::Storage;
use pagefold_types::{Column, DataType, Schema, Value};
use std::path::Path;
use std::sync::Arc;

fn types(table: &TableSchema) -> Vec<String> {
    let columns = table.schema().columns();
    columns.iter().map(|c| format!("{} {}{}", c.name, c.data_type, if c.nullable { "" } else { " NOT NULL" })).collect()
}

fn read(path: &str, text: &str, options: CsvOptions) -> Result<(TableSchema, Vec<Vec<Value>>), String> {
    let storage = memory();
    put(&*storage, path, text.as_bytes());
    let mut source = open_csv(&*storage, &[path], options)?;
    let batches = batches(&mut *source)?;
    let table = source.table().clone();
    let rows = rows(&table, &batches);
    assert!(source.row_count().is_none_or(|n| n == rows.len() as u64));
    Ok((table, rows))
}

fn export(storage: &Arc<dyn Storage>, path: &str, source: &mut dyn Source, options: CsvOptions) -> Result<Vec<u8>, InterchangeError> {
    let table = source.table().clone();
    let mut sink = FileSink::create(Arc::clone(storage), Path::new(path), &FileFormat::Csv(options), &table)?;
    for batch in source.batches()? {
        sink.write(&batch?)?;
    }
    sink.finish()?;
    Ok(get(&**storage, path))
}

fn text(s: &str) -> Value {
    Value::Text(s.to_owned())
}

#[test]
fn fields_and_lines() {
    let csv = "\u{FEFF}id,name,note\r\n1,plain,\"a, b\"\r\n2,\"say \"\"hi\"\"\",\"two\nlines\"\n\n3,\"\",\n4,a\"b,x\\y";
    let (table, rows) = read("t.csv", csv, CsvOptions::default()).unwrap();
    assert_eq!(types(&table), ["id INTEGER NOT NULL", "name VARCHAR NOT NULL", "note VARCHAR"]);
    assert_eq!(
        rows,
        [
            vec![Value::Int(1), text("plain"), text("a, b")],
            vec![Value::Int(2), text("say \"hi\""), text("two\nlines")],
            vec![Value::Int(3), text(""), Value::Null],
            vec![Value::Int(4), text("a\"b"), text("x\\y")],
        ]
    );
}

#[test]
fn headers() {
    let names = |text: &str, header: Header| {
        let (table, rows) = read("t.csv", text, CsvOptions { header, ..CsvOptions::default() }).unwrap();
        (table.schema().columns().iter().map(|c| c.name.clone()).collect::<Vec<_>>().join(" "), rows.len())
    };
    let found = |s: &str, n: usize| (s.to_owned(), n);
    assert_eq!(names("a,b\n1,x\n2,y\n", Header::Auto), found("a b", 2));
    assert_eq!(names("a,b\nc,x\nd,y\n", Header::Auto), found("a b", 2));
    assert_eq!(names("a,x\nc,x\nd,y\n", Header::Auto), found("column1 column2", 3));
    assert_eq!(names("1,2\n3,4\n", Header::Auto), found("column1 column2", 2));
    assert_eq!(names("a,a\n1,2\n", Header::Auto), found("a a_2", 1));
    assert_eq!(names("a,,\n1,2,x\n", Header::Auto), found("a column2 column3", 1));
    assert_eq!(names(",name\n0,x\n1,y\n", Header::Auto), found("column1 name", 2));
    assert_eq!(names("a,b\nc,x\n", Header::Yes), found("a b", 1));
    assert_eq!(names("a,b\n1,x\n", Header::No), found("column1 column2", 2));
    assert_eq!(names("a,\n1,x\n", Header::Yes), found("a column2", 1));
    assert_eq!(names("a,b\n", Header::Yes), found("a b", 0));
    assert_eq!(names("a\n", Header::Auto), found("column1", 1));
    // A line longer than what is looked at first.
    let long = format!("id,t\n1,{}\n2,short\n3,short\n", "x".repeat(300_000));
    assert_eq!(names(&long, Header::Auto), found("id t", 3));
    // A header makes text of no column: the numbers stay numbers.
    let (table, rows) = read("t.csv", "n\n1\n2", CsvOptions::default()).unwrap();
    assert_eq!((types(&table), rows.len()), (vec!["n INTEGER NOT NULL".to_owned()], 2));
}

#[test]
fn one_column_has_empty_rows() {
    let (table, rows) = read("t.csv", "\n1\n\n2\n", CsvOptions { header: Header::No, ..CsvOptions::default() }).unwrap();
    assert_eq!(types(&table), ["column1 INTEGER"]);
    assert_eq!(rows, [vec![Value::Null], vec![Value::Int(1)], vec![Value::Null], vec![Value::Int(2)]]);
}

#[test]
fn null_texts_and_escapes() {
    let options = CsvOptions { null: Some("\\N".to_owned()), header: Header::No, ..CsvOptions::default() };
    let (table, rows) = read("t.csv", "1,\\N,a\n\\N,2,\n3,4,\"\\N\"\n", options.clone()).unwrap();
    assert_eq!(types(&table), ["column1 INTEGER", "column2 INTEGER", "column3 VARCHAR NOT NULL"]);
    assert_eq!(rows[1], [Value::Null, Value::Int(2), text("")]);
    assert_eq!(rows[2][2], text("\\N"));
    let escaped = CsvOptions { escape: Some(b'\\'), ..options };
    let (_, rows) = read("t.csv", "\"a\\\"b\",\\N,x\\\n\"\\\\\",\"\\N\",\"p\"\"q\"\n", escaped).unwrap();
    assert_eq!(rows, [vec![text("a\"b"), Value::Null, text("x\\")], vec![text("\\"), text("N"), text("p\"q")]].map(|r| r).to_vec());
}

#[test]
fn tbl_files() {
    let (table, rows) = read("t.tbl", "1|a\"b||3.50|\n2|c|x|4.25|\n", CsvOptions::default()).unwrap();
    assert_eq!(types(&table), ["column1 INTEGER NOT NULL", "column2 VARCHAR NOT NULL", "column3 VARCHAR", "column4 DECIMAL(4,2) NOT NULL"]);
    assert_eq!(rows[0], [Value::Int(1), text("a\"b"), Value::Null, Value::Decimal(350)]);
    let (table, _) = read("t.tbl", "1|a\n2|b\n", CsvOptions::default()).unwrap();
    assert_eq!(table.schema().len(), 2);
    let (table, _) = read("t.tsv", "1\ta b\n2\tb\n", CsvOptions::default()).unwrap();
    assert_eq!(table.schema().len(), 2);
}

#[test]
fn errors_name_file_line_and_column() {
    let error = |path: &str, text: &str, options: CsvOptions| read(path, text, options).map(|_| ()).unwrap_err();
    let default = CsvOptions::default;
    assert_eq!(error("t.csv", "a,b\n1,2\n\"x\ny\",3\n4\n", default()), "t.csv, line 5: 1 fields, where 2 are expected");
    assert_eq!(error("t.csv", "a,b\n1,2,3\n", default()), "t.csv, line 2: 3 fields, where 2 are expected");
    assert_eq!(error("t.tbl", "1|2|\n3|4|5|\n", default()), "t.tbl, line 2: 3 fields, where 2 are expected");
    assert_eq!(error("t.tbl", "1|2|\n3|4|5\n", default()), "t.tbl, line 2: 3 fields, where 2 are expected");
    assert_eq!(error("t.tbl", "1|2|\n3\n", default()), "t.tbl, line 2: 1 fields, where 2 are expected");
    assert_eq!(error("t.csv", "a,b\n1,\"2\n3,4\n", default()), "t.csv, line 2: column 2: the quote is not closed");
    assert_eq!(error("t.csv", "a,b\n1,\"2\" 3\n", default()), "t.csv, line 2: column 2: text behind the closing quote");
    assert_eq!(error("t.csv", "", default()), "t.csv: the file has no rows, so its columns are unknown");
    let preamble = "a report\n1,2\n3,4\n5,6\n7,8\n9,1\n2,3\n4,5\n6,7\n8,9\n0,1\n";
    let reason = "t.csv, line 1: 1 fields, where nearly all lines have 2; --skip 1 begins behind it";
    assert_eq!(error("t.csv", preamble, default()), reason);
    let (_, rows) = read("t.csv", preamble, CsvOptions { skip: 1, ..default() }).unwrap();
    assert_eq!(rows.len(), 10);
    assert_eq!(
        error("t.csv", &format!("{preamble}x\n"), CsvOptions { skip: 1, ..default() }),
        "t.csv, line 12: 1 fields, where 2 are expected"
    );
    let storage = memory();
    put(&*storage, "t.csv", b"a,b\n1,2\n3,\xFF\n");
    assert_eq!(open_csv(&*storage, &["t.csv"], default()).map(|_| ()).unwrap_err(), "t.csv, line 3: column 2: not UTF-8");
    assert!(open_csv(&*storage, &["none.csv"], default()).map(|_| ()).unwrap_err().contains("none.csv"));

    let schema = Schema::new(vec![Column::new("id", DataType::SmallInt, false), Column::new("code", DataType::Char(2), true)]).unwrap();
    let known = CsvOptions { schema: Some(schema), ..default() };
    let (table, rows) = read("t.csv", "code,id\nab,1\n,2\n", known.clone()).unwrap();
    assert_eq!(types(&table), ["code CHAR(2)", "id SMALLINT NOT NULL"]);
    assert_eq!(rows, [vec![text("ab"), Value::Int(1)], vec![Value::Null, Value::Int(2)]]);
    assert_eq!(
        error("t.csv", "1,a\n40000,b\n", known.clone()),
        "t.csv, line 2: column 1 (\"id\"): \"40000\" is not SMALLINT: out of range"
    );
    assert_eq!(
        error("t.csv", "1,a\n2,abc\n", known.clone()),
        "t.csv, line 2: column 2 (\"code\"): column \"code\": \"abc\" does not fit CHAR(2)"
    );
    assert_eq!(error("t.csv", "1,a\n,b\n", known.clone()), "t.csv, line 2: column 1 (\"id\"): NULL, but the column is NOT NULL");
    assert_eq!(error("t.csv", "1,a\nx,b\n", known.clone()), "t.csv, line 2: column 1 (\"id\"): \"x\" is not SMALLINT: not an integer");
    assert!(error("t.csv", "x,y\n1,b\n", CsvOptions { header: Header::Yes, ..known.clone() }).contains("does not name the columns"));
    let (_, rows) = read("t.csv", "", known).unwrap();
    assert!(rows.is_empty());
    for bad in [
        CsvOptions { delimiter: Some(b'"'), ..default() },
        CsvOptions { delimiter: Some(b'\n'), ..default() },
        CsvOptions { delimiter: Some(0xE4), ..default() },
        CsvOptions { null: Some(",".to_owned()), ..default() },
    ] {
        assert!(!error("t.csv", "1,2\n", bad).is_empty());
    }
}

#[test]
fn several_files_are_one_table() {
    let storage = memory();
    put(&*storage, "a.csv", b"n,t\n1,x\n2,y\n");
    put(&*storage, "b.csv", b"n,t\n3000000000,z\n");
    put(&*storage, "c.csv", b"");
    put(&*storage, "d.csv", b"n,u\n1,x\n");
    let mut source = open_csv(&*storage, &["a.csv", "b.csv", "c.csv"], CsvOptions::default()).unwrap();
    assert_eq!(types(source.table()), ["n BIGINT NOT NULL", "t VARCHAR NOT NULL"]);
    let all = batches(&mut *source).unwrap();
    assert_eq!(rows(source.table(), &all).len(), 3);
    assert_eq!(source.bytes_done(), source.bytes_total());
    let error = open_csv(&*storage, &["a.csv", "d.csv"], CsvOptions::default()).map(|_| ()).unwrap_err();
    assert_eq!(error, "d.csv, line 1: its header is not that of the first file: \"t\" missing, \"u\" more");
    // By name, in whatever order; a file without names by position; each decides for itself.
    put(&*storage, "e.csv", b"t;n\nv;5\nw;6\n");
    put(&*storage, "f.csv", b"7,q\n8,r\n");
    let mut source = open_csv(&*storage, &["a.csv", "e.csv", "f.csv"], CsvOptions::default()).unwrap();
    let all = batches(&mut *source).unwrap();
    let expected: Vec<Vec<Value>> =
        [(1, "x"), (2, "y"), (5, "v"), (6, "w"), (7, "q"), (8, "r")].map(|(n, t)| vec![Value::Int(n), text(t)]).to_vec();
    assert_eq!(rows(source.table(), &all), expected);
    let decided = source.decided();
    assert_eq!(
        decided.files.iter().map(|f| (f.delimiter, f.header)).collect::<Vec<_>>(),
        [(Some(','), Some(true)), (Some(';'), Some(true)), (Some(','), Some(false))]
    );
    assert_eq!(source.place(3), Some("e.csv, line 3".to_owned()));
    assert_eq!((source.place(4), source.place(9)), (Some("f.csv, line 1".to_owned()), None));
    // The same first line in several files is names, even where all is text.
    put(&*storage, "g.csv", b"x,y\nx,z\n");
    put(&*storage, "h.csv", b"y,x\nq,r\n");
    let mut source = open_csv(&*storage, &["g.csv", "h.csv"], CsvOptions::default()).unwrap();
    let all = batches(&mut *source).unwrap();
    assert_eq!(rows(source.table(), &all), [vec![text("x"), text("z")], vec![text("r"), text("q")]]);
}

/// Delimiter, quotes and line ends as they are found.
#[test]
fn dialects_are_found() {
    let found = |path: &str, text: &str| {
        let storage = memory();
        put(&*storage, path, text.as_bytes());
        let mut source = open_csv(&*storage, &[path], CsvOptions::default()).unwrap();
        let rows: usize = batches(&mut *source).unwrap().iter().map(|b| b.num_rows()).sum();
        let file = source.decided().files[0].clone();
        (
            file.delimiter.unwrap(),
            file.quote.unwrap_or('-'),
            file.escape.unwrap_or('-'),
            file.line_end.unwrap(),
            source.table().schema().len(),
            rows,
        )
    };
    assert_eq!(found("t.csv", "a;b\n1;2,5\n2;3,5\n"), (';', '"', '-', "LF", 2, 2));
    assert_eq!(found("t.csv", "a\tb\r\n1\tx\r\n"), ('\t', '"', '-', "CR LF", 2, 1));
    assert_eq!(found("t.csv", "a|b|c\r1|x|y\r2|z|w"), ('|', '"', '-', "CR", 3, 2));
    assert_eq!(found("t.csv", "a,b\n1,'x, y'\n2,'z, w'\n"), (',', '\'', '-', "LF", 2, 2));
    assert_eq!(found("t.csv", "a,b\n1,\"x \\\"y\\\", z\"\n"), (',', '"', '\\', "LF", 2, 1));
    assert_eq!(found("t.csv", "a, b\n1, \"x, y\"\n2, \"z, w\"\n"), (',', '"', '-', "LF", 2, 2));
    assert_eq!(found("t.csv", "a,b\n1,p|q|r\n2,s|t|u\n"), (',', '"', '-', "LF", 2, 2));
    assert_eq!(found("t.tsv", "a,b\n1,x\n"), (',', '"', '-', "LF", 2, 1));
    assert_eq!(found("t.csv", "one\ntwo\nthree\n"), (',', '"', '-', "LF", 1, 3));
}

#[test]
fn single_columns_get_types_and_rows_that_do_not_fit_go_elsewhere() {
    let csv = "zip,day,n\n01234,01/02/2024,1\n98765,03/04/2024,x\n5,05/06/2024,3,4\n7,07/08/2024,4\n";
    let given = |name: &str, t: &str| (name.to_owned(), t.parse::<DataType>().unwrap());
    let rejects = Rejects::new(10);
    let options = CsvOptions {
        types: vec![given("n", "integer"), given("zip", "text")],
        date_order: Some(DateOrder::MonthDayYear),
        rejects: Some(rejects.clone()),
        ..CsvOptions::default()
    };
    let (table, found) = read("t.csv", csv, options.clone()).unwrap();
    assert_eq!(types(&table), ["zip VARCHAR NOT NULL", "day DATE NOT NULL", "n INTEGER NOT NULL"]);
    let day = |d: i64| Value::Int(19_723 + d);
    assert_eq!(found, [vec![text("01234"), day(1), Value::Int(1)], vec![text("7"), day(189), Value::Int(4)]]);
    assert_eq!(rejects.rows(), 2);
    let report = rejects.report();
    assert!(report.starts_with("file,line,reason,row\n\"t.csv\",3,\"column 3 (\"\"n\"\"): \"\"x\"\" is not INTEGER"), "{report}");
    assert!(report.ends_with("\"t.csv\",4,\"4 fields, where 3 are expected\",\"5,05/06/2024,3,4\"\n"), "{report}");
    let few = CsvOptions { rejects: Some(Rejects::new(1)), ..options.clone() };
    assert!(read("t.csv", csv, few).unwrap_err().contains("line 4: 4 fields, where 3 are expected; more than 1 rows"));
    let unknown = CsvOptions { types: vec![given("zap", "text")], ..options };
    assert!(read("t.csv", csv, unknown).unwrap_err().contains("\"zap\"; there are zip, day, n"));
    // Without a word for it nobody chooses: text, and a note.
    let storage = memory();
    put(&*storage, "t.csv", b"d,n\n01/02/2024,1\n03/04/2024,2\n");
    let source = open_csv(&*storage, &["t.csv"], CsvOptions::default()).unwrap();
    let column = source.decided().columns[0].clone();
    assert!(column.data_type.is_text() && column.note.unwrap().contains("--date-order"));
}

/// What a table that is replaced has, as long as the values are of it.
#[test]
fn types_of_a_table_are_kept_or_widened() {
    let base = Schema::new(vec![
        Column::new("zip", DataType::Varchar(None), true),
        Column::new("n", DataType::SmallInt, false),
        Column::new("price", DataType::Decimal { precision: 9, scale: 2 }, true),
    ]);
    let options = CsvOptions { base: Some(base.unwrap()), ..CsvOptions::default() };
    let (table, _) = read("t.csv", "zip,n,price\n123,1,1.5\n", options.clone()).unwrap();
    assert_eq!(types(&table), ["zip VARCHAR", "n SMALLINT NOT NULL", "price DECIMAL(9,2)"]);
    let (table, _) = read("t.csv", "zip,n,price\n123,40000,1.505\n", options.clone()).unwrap();
    assert_eq!(types(&table), ["zip VARCHAR", "n INTEGER NOT NULL", "price DECIMAL(10,3)"]);
    assert!(read("t.csv", "zip,n,price\n123,x,1.5\n", options).unwrap_err().contains("SMALLINT in the table, but VARCHAR"));
}

/// JSON lines: what is written is read as the same rows of the same types; members in any order.
#[test]
fn json_lines() {
    let storage = memory();
    let json = "{\"id\":1,\"name\":\"a \\\"b\\\"\",\"price\":1.50,\"day\":\"2024-01-31\",\"ok\":true}\n\n\
                {\"day\":null,\"id\":2,\"name\":\"007\",\"price\":20.25,\"more\":{\"x\":[1]}}\n";
    put(&*storage, "t.jsonl", json.as_bytes());
    let mut source = open_csv(&*storage, &["t.jsonl"], CsvOptions::default()).unwrap();
    assert_eq!(
        types(source.table()),
        ["id INTEGER NOT NULL", "name VARCHAR NOT NULL", "price DECIMAL(4,2) NOT NULL", "day DATE", "ok BOOLEAN", "more VARCHAR"]
    );
    let all = batches(&mut *source).unwrap();
    let found = rows(source.table(), &all);
    assert_eq!(found[1], [Value::Int(2), text("007"), Value::Decimal(2025), Value::Null, Value::Null, text("{\"x\":[1]}")]);
    assert_eq!(source.place(1), Some("t.jsonl, line 3".to_owned()));
    let table = source.table().clone();
    let mut sink = FileSink::create(Arc::clone(&storage), Path::new("u.jsonl"), &FileFormat::JsonLines, &table).unwrap();
    all.iter().for_each(|b| sink.write(b).unwrap());
    sink.finish().unwrap();
    let mut again = open_csv(&*storage, &["u.jsonl"], CsvOptions::default()).unwrap();
    let back = batches(&mut *again).unwrap();
    assert_eq!((types(again.table()), rows(again.table(), &back)), (types(&table), found));
    for (bad, reason) in [
        ("{\"a\":1}\n[1]\n", "line 2: an array"),
        ("{\"a\":1}\n{\"a\":\n", "line 2: not a JSON object"),
        ("[{\"a\":1}]", "line 1: an array"),
    ] {
        put(&*storage, "bad.json", bad.as_bytes());
        let error = open_csv(&*storage, &["bad.json"], CsvOptions::default()).map(|_| ()).unwrap_err();
        assert!(error.contains(reason), "{error}");
        storage.remove(Path::new("bad.json")).unwrap();
    }
}

/// Random tables of awkward texts: written and read again they are the same rows.
#[test]
fn random_rows_round_trip() {
    let mut rng = Rng(41);
    let pieces = ["", "a", ",", "\"", "\n", "\r", "\r\n", "|", "\\", "\\N", "ä", " ", "7", "007", "1.50", "'", "NULL", "\t"];
    for round in 0..400u64 {
        let storage = memory();
        let columns = 1 + rng.below(4);
        let table = Schema::new((0..columns).map(|i| Column::new(format!("c\"{i}"), DataType::Varchar(None), true)).collect()).unwrap();
        let table = TableSchema::from_schema(table);
        let rows_in: Vec<Vec<Value>> = (0..1 + rng.below(20))
            .map(|_| {
                let value = |rng: &mut Rng| match rng.below(5) {
                    0 => Value::Null,
                    _ => Value::Text((0..rng.below(4)).map(|_| pieces[rng.below(pieces.len() as u64) as usize]).collect()),
                };
                (0..columns).map(|_| value(&mut rng)).collect()
            })
            .collect();
        let layout = pagefold_types::RowLayout::new(table.schema()).unwrap();
        let all: Vec<usize> = (0..columns as usize).collect();
        let mut builder = pagefold_interchange::BatchBuilder::new(&table, &layout, &all, 100).unwrap();
        rows_in.iter().for_each(|r| builder.push_row(r).unwrap());
        let batch = builder.finish().unwrap();
        let options = CsvOptions {
            header: if round % 2 == 0 { Header::Yes } else { Header::No },
            null: [None, Some("\\N".to_owned()), Some("NULL".to_owned())][rng.below(3) as usize].clone(),
            escape: [None, Some(b'\\')][rng.below(2) as usize],
            delimiter: [Some(b','), Some(b'|'), Some(b'\t')][rng.below(3) as usize],
            quote: Some(Some(b'"')),
            ..CsvOptions::default()
        };
        let mut sink = FileSink::create(Arc::clone(&storage), Path::new("t.csv"), &FileFormat::Csv(options.clone()), &table).unwrap();
        sink.write(&batch).unwrap();
        sink.finish().unwrap();
        let known = CsvOptions { schema: Some(table.schema().clone()), ..options.clone() };
        let mut source = open_csv(&*storage, &["t.csv"], known).unwrap();
        let back = batches(&mut *source).unwrap();
        assert_eq!(rows(source.table(), &back), rows_in, "{options:?} {:?}", String::from_utf8_lossy(&get(&*storage, "t.csv")));

        // Types inferred, written, read again: the same file, byte for byte.
        let mut source = open_csv(&*storage, &["t.csv"], options.clone()).unwrap();
        let as_written = source.decided().columns.iter().all(|column| column.note.is_none());
        let first = export(&storage, "u.csv", &mut *source, options.clone()).unwrap();
        let mut source = open_csv(&*storage, &["u.csv"], options.clone()).unwrap();
        assert_eq!(export(&storage, "v.csv", &mut *source, options.clone()).unwrap(), first);
        let read_again =
            open_csv(&*storage, &["v.csv"], CsvOptions { schema: Some(table.schema().clone()), ..options }).map(|mut s| batches(&mut *s));
        let back = read_again.unwrap().unwrap();
        // The same rows, unless a note says that numbers and dates are written otherwise.
        assert!(!as_written || rows(&table, &back) == rows_in);
    }
}

/// Any bytes: an error or rows, never a panic.
#[test]
fn hostile_texts() {
    let mut rng = Rng(42);
    let bytes = b"\",\n\r|a1\\\xFF\xC3\x00.- N";
    for i in 0..20_000 {
        let storage = memory();
        let n = rng.below(40);
        let text: Vec<u8> = (0..n).map(|_| bytes[rng.below(bytes.len() as u64) as usize]).collect();
        let path = ["t.csv", "t.tbl"][i % 2];
        put(&*storage, path, &text);
        let options = CsvOptions { escape: (i % 3 == 0).then_some(b'\\'), ..CsvOptions::default() };
        if let Ok(mut source) = open_csv(&*storage, &[path], options) {
            let read = batches(&mut *source).unwrap();
            let count: usize = read.iter().map(|b| b.num_rows()).sum();
            assert_eq!(source.row_count(), Some(count as u64), "what the first pass takes the second does too: {text:?}");
        }
    }
}

/// Records longer than the read buffer, and every place where the buffer may end.
#[test]
fn buffers_end_anywhere() {
    let storage = memory();
    let mut csv = String::from("id,text\r\n");
    let mut expected = Vec::new();
    let mut rng = Rng(43);
    for i in 0..3_000u64 {
        let length = if i % 500 == 7 { 700_000 } else { rng.below(300) };
        let text: String = (0..length / 4).map(|_| ["ab", "\"\"", ",x", "\r\n", "é"][rng.below(5) as usize]).collect();
        csv.push_str(&format!("{i},\"{text}\"\r\n"));
        expected.push(vec![Value::Int(i as i64), Value::Text(text.replace("\"\"", "\""))]);
    }
    put(&*storage, "t.csv", csv.as_bytes());
    let mut source = open_csv(&*storage, &["t.csv"], CsvOptions::default()).unwrap();
    let all = batches(&mut *source).unwrap();
    assert!(rows(source.table(), &all) == expected);
}

#[test]
fn samples_are_rows_from_everywhere() {
    let storage = memory();
    let line = |i: u64| format!("{i},\"text\n{}\"\n", i * 7);
    let whole: String = (0..50_000).map(line).collect();
    put(&*storage, "a.csv", whole.as_bytes());
    put(&*storage, "b.csv", (50_000..90_000).map(line).collect::<String>().as_bytes());
    for schema in [
        None,
        Some(Schema::new(vec![Column::new("n", DataType::Integer, false), Column::new("t", DataType::Varchar(None), false)]).unwrap()),
    ] {
        let mut source = open_csv(&*storage, &["a.csv", "b.csv"], CsvOptions { schema, ..CsvOptions::default() }).unwrap();
        let sample: Vec<_> = source.sample(5_000, 3).unwrap().collect::<Result<_, _>>().unwrap();
        let clusters: Vec<Vec<i64>> = sample
            .iter()
            .map(|b| {
                let values = rows(source.table(), std::slice::from_ref(b));
                values
                    .iter()
                    .map(|r| match (&r[0], &r[1]) {
                        (Value::Int(n), Value::Text(t)) if *t == format!("text\n{}", n * 7) => *n,
                        other => panic!("{other:?}"),
                    })
                    .collect()
            })
            .collect();
        assert_eq!(clusters.len(), 20);
        for (i, cluster) in clusters.iter().enumerate() {
            assert_eq!(cluster.len(), 256);
            assert!(cluster.windows(2).all(|p| p[0] + 1 == p[1]), "neighbours");
            assert_eq!(cluster[0] / 4_500, i as i64, "one in each stratum");
        }
        let again: Vec<_> = source.sample(5_000, 3).unwrap().collect::<Result<_, _>>().unwrap();
        assert_eq!(again, sample);
        let other: Vec<_> = source.sample(5_000, 4).unwrap().collect::<Result<_, _>>().unwrap();
        assert_ne!(other, sample);
        let all: usize = source.sample(100_000, 1).unwrap().map(|b| b.unwrap().num_rows()).sum();
        assert_eq!(all, 90_000);
    }
}

/// The real files: types, and every byte of every row back.
#[test]
fn real_files() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    if !data.exists() {
        eprintln!("skipped: {} is not there", data.display());
        return;
    }
    for (name, nulls, count, expected) in [
        (
            "comic-characters.csv",
            None,
            16_376,
            "page_id INTEGER, name VARCHAR, urlslug VARCHAR, ID VARCHAR, ALIGN VARCHAR, EYE VARCHAR, HAIR VARCHAR, SEX VARCHAR, \
          GSM VARCHAR, ALIVE VARCHAR, APPEARANCES INTEGER, FIRST APPEARANCE VARCHAR, Year INTEGER",
        ),
        ("airports.csv", None, 7_698, ""),
        ("airports.csv", Some("\\N"), 7_698, ""),
        ("routes.csv", None, 67_663, ""),
        (
            "routes.csv",
            Some("\\N"),
            67_663,
            "column1 VARCHAR, column2 INTEGER, column3 VARCHAR, column4 INTEGER, column5 VARCHAR, column6 INTEGER, column7 VARCHAR, \
          column8 INTEGER, column9 VARCHAR",
        ),
    ] {
        let storage = memory();
        let original = std::fs::read(data.join(name)).unwrap();
        put(&*storage, name, &original);
        let options = CsvOptions { null: nulls.map(str::to_owned), ..CsvOptions::default() };
        let mut source = open_csv(&*storage, &[name], options.clone()).unwrap();
        assert_eq!(source.row_count(), Some(count));
        let columns: Vec<String> = source.table().schema().columns().iter().map(|c| format!("{} {}", c.name, c.data_type)).collect();
        if !expected.is_empty() {
            assert_eq!(columns.join(", "), expected);
        }
        // As text, without any type: the rows of the file itself.
        let texts =
            Schema::new(source.table().schema().columns().iter().map(|c| Column::new(&c.name, DataType::Varchar(None), true)).collect())
                .unwrap();
        let as_text = |path: &str, header: bool| {
            let header = if header { Header::Yes } else { Header::No };
            let options = CsvOptions { schema: Some(texts.clone()), header, ..options.clone() };
            let mut source = open_csv(&*storage, &[path], options).unwrap();
            let batches = batches(&mut *source).unwrap();
            rows(&TableSchema::from_schema(texts.clone()), &batches)
        };
        let before = as_text(name, source.has_names());
        let all = batches(&mut *source).unwrap();
        let through = common::through_records(source.table(), &all, 32_767, 1_000);
        let mut sink =
            FileSink::create(Arc::clone(&storage), Path::new("out.csv"), &FileFormat::Csv(options.clone()), source.table()).unwrap();
        through.iter().for_each(|b| sink.write(b).unwrap());
        sink.finish().unwrap();
        let after = as_text("out.csv", true);
        assert_eq!(after.len(), before.len());
        // Every byte, but in columns with a note that says so: there the same numbers.
        let notes: Vec<bool> = source.decided().columns.iter().map(|column| column.note.is_some()).collect();
        let number = |value: &Value| if let Value::Text(text) = value { text.trim().parse::<f64>().ok() } else { None };
        for (a, b) in before.iter().zip(&after) {
            for ((a, b), note) in a.iter().zip(b).zip(&notes) {
                assert!(a == b || (*note && number(a).is_some() && number(a) == number(b)), "{name}: {a:?} {b:?}");
            }
        }
    }
}

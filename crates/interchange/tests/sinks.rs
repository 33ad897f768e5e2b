//! What people and programs get to see.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use pagefold_interchange::{BatchBuilder, CsvOptions, FileFormat, InterchangeError, ParquetOptions, TableSchema};
use pagefold_types::{Column, DataType, RowLayout, Schema, Value};
use std::path::Path;

fn table() -> TableSchema {
    let columns = [
        ("id", "INTEGER"),
        ("na\"me", "VARCHAR"),
        ("price", "DECIMAL(9,2)"),
        ("day", "DATE"),
        ("x", "DOUBLE"),
        ("raw", "BYTEA"),
        ("ok", "BOOLEAN"),
    ];
    TableSchema::from_schema(Schema::new(columns.map(|(n, t)| Column::new(n, t.parse().unwrap(), true)).to_vec()).unwrap())
}

fn rows() -> Vec<Vec<Value>> {
    vec![
        vec![
            Value::Int(1),
            Value::Text("O'Neil, \"Bob\"\n\u{1}".into()),
            Value::Decimal(-5),
            Value::Int(0),
            Value::Double(0.1),
            Value::Bytes(vec![1, 255]),
            Value::Boolean(true),
        ],
        vec![Value::Null, Value::Text(String::new()), Value::Null, Value::Null, Value::Double(f64::NAN), Value::Null, Value::Null],
    ]
}

fn written(format: &FileFormat, path: &str) -> Result<String, InterchangeError> {
    let table = table();
    let layout = RowLayout::new(table.schema()).unwrap();
    let mut builder = BatchBuilder::new(&table, &layout, &[0, 1, 2, 3, 4, 5, 6], 10)?;
    rows().iter().for_each(|r| builder.push_row(r).unwrap());
    let mut out = Vec::new();
    let mut sink = format.sink(&mut out, &table, Some(Path::new(path)))?;
    sink.write(&builder.finish()?)?;
    sink.finish()?;
    drop(sink);
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn csv() {
    let text = written(&FileFormat::Csv(CsvOptions::default()), "t.csv").unwrap();
    assert_eq!(
        text,
        "id,\"na\"\"me\",price,day,x,raw,ok\n1,\"O'Neil, \"\"Bob\"\"\n\u{1}\",-0.05,1970-01-01,0.1,\\x01ff,true\n,\"\",,,NaN,,\n"
    );
    let error = written(&FileFormat::Csv(CsvOptions::default()), "t.tbl").unwrap_err().to_string();
    assert!(error.starts_with("row 1, column \"na\"me\" cannot be written"), "{error}");
}

/// Without quotes an empty text is written only where it cannot be taken for NULL.
#[test]
fn empty_texts_without_quotes() {
    let write = |nullable: bool, null: Option<&str>| {
        let table = TableSchema::from_schema(Schema::new(vec![Column::new("t", DataType::Varchar(None), nullable)]).unwrap());
        let layout = RowLayout::new(table.schema()).unwrap();
        let mut builder = BatchBuilder::new(&table, &layout, &[0], 10)?;
        for text in ["a", ""] {
            builder.push_row(&[Value::Text(text.into())])?;
        }
        if nullable {
            builder.push_row(&[Value::Null])?;
        }
        let mut out = Vec::new();
        let format = FileFormat::Csv(CsvOptions { null: null.map(str::to_owned), ..CsvOptions::default() });
        let mut sink = format.sink(&mut out, &table, Some(Path::new("t.tbl")))?;
        sink.write(&builder.finish()?)?;
        sink.finish()?;
        drop(sink);
        Ok::<_, InterchangeError>(String::from_utf8(out).unwrap())
    };
    assert_eq!(write(false, None).unwrap(), "a|\n|\n");
    assert_eq!(write(true, Some("\\N")).unwrap(), "a|\n|\n\\N|\n");
    let error = write(true, None).unwrap_err().to_string();
    assert!(error.starts_with("row 2, column \"t\" cannot be written") && error.contains("--null"), "{error}");
}

/// A reader that goes away is told as such by every format.
#[test]
fn a_closed_pipe_is_an_error_of_the_system() {
    struct Closed;
    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
    }
    let table = table();
    let layout = RowLayout::new(table.schema()).unwrap();
    let formats = [
        FileFormat::Table,
        FileFormat::Csv(CsvOptions::default()),
        FileFormat::JsonLines,
        FileFormat::Arrow,
        FileFormat::Parquet(ParquetOptions::default()),
    ];
    for format in formats {
        let mut builder = BatchBuilder::new(&table, &layout, &[0, 1, 2, 3, 4, 5, 6], 10).unwrap();
        rows().iter().for_each(|r| builder.push_row(r).unwrap());
        let batch = builder.finish().unwrap();
        let written = format.sink(Closed, &table, None).and_then(|mut sink| {
            sink.write(&batch)?;
            sink.finish()
        });
        let error = written.unwrap_err();
        assert!(matches!(&error, InterchangeError::Io(io) if io.kind() == std::io::ErrorKind::BrokenPipe), "{format:?}: {error:?}");
    }
}

#[test]
fn json_lines() {
    let text = written(&FileFormat::JsonLines, "-").unwrap();
    assert_eq!(
        text,
        "{\"id\":1,\"na\\\"me\":\"O'Neil, \\\"Bob\\\"\\n\\u0001\",\"price\":-0.05,\"day\":\"1970-01-01\",\"x\":0.1,\"raw\":\"\\\\x01ff\",\"ok\":true}\n\
         {\"id\":null,\"na\\\"me\":\"\",\"price\":null,\"day\":null,\"x\":\"NaN\",\"raw\":null,\"ok\":null}\n"
    );
}

#[test]
fn aligned_table() {
    let text = written(&FileFormat::Table, "-").unwrap();
    let expected = [
        "  id  na\"me                 price  day           x  raw     ok",
        "----  --------------------  -----  ----------  ---  ------  ----",
        "   1  O'Neil, \"Bob\"\\n\\u{1}  -0.05  1970-01-01  0.1  \\x01ff  true",
        "NULL                         NULL  NULL        NaN  NULL    NULL",
        "",
    ];
    assert_eq!(text, expected.join("\n"));
}

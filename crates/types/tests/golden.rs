//! The bytes of records, keys and stored schemas, as version 1 of the format has them. A golden file is never edited; a new version gets new files.
//!
//! `PAGEFOLD_GOLDEN=write` writes the files that do not exist yet.
#![allow(missing_docs, clippy::unwrap_used)]

use pagefold_types::{Column, ColumnValue, DataType, Direction, Interval, KeyLayout, LargeValueRef, RowLayout, Schema, Value, ValueRef};
use std::fmt::Write;

fn schema() -> Schema {
    let columns = [
        ("boolean", "BOOLEAN", true),
        ("smallint", "SMALLINT", false),
        ("integer", "INTEGER", true),
        ("bigint", "BIGINT", false),
        ("real", "REAL", true),
        ("double", "DOUBLE", false),
        ("money", "DECIMAL(15,2)", false),
        ("wide", "DECIMAL(38,10)", true),
        ("date", "DATE", false),
        ("time", "TIME(3)", true),
        ("stamp", "TIMESTAMP WITH TIME ZONE", true),
        ("code", "CHAR(4)", false),
        ("name", "VARCHAR(20)", true),
        ("blob", "BYTEA", true),
        ("uuid", "UUID", true),
    ];
    Schema::new(columns.map(|(name, t, nullable)| Column::new(name, t.parse().unwrap(), nullable)).to_vec()).unwrap()
}

fn rows() -> Vec<Vec<Value>> {
    let uuid = *b"\x6b\xa7\xb8\x10\x9d\xad\x11\xd1\x80\xb4\x00\xc0\x4f\xd4\x30\xc8";
    vec![
        vec![
            Value::Boolean(true),
            Value::Int(-2),
            Value::Int(70_000),
            Value::Int(1 << 40),
            Value::Real(-1.5),
            Value::Double(0.1),
            Value::Decimal(-12_345),
            Value::Decimal(10i128.pow(37)),
            Value::Int(19_782),
            Value::Int(86_399_999),
            Value::Int(1_709_164_800_000_000),
            Value::Text("äb".into()),
            Value::Text("a\u{0}\u{1}z".into()),
            Value::Bytes(vec![0, 1, 2, 255]),
            Value::Uuid(uuid),
        ],
        vec![
            Value::Null,
            Value::Int(i64::from(i16::MAX)),
            Value::Null,
            Value::Int(i64::MIN),
            Value::Null,
            Value::Double(-0.0),
            Value::Decimal(999_999_999_999_999),
            Value::Null,
            Value::Int(-1),
            Value::Null,
            Value::Null,
            Value::Text(String::new()),
            Value::Null,
            Value::Null,
            Value::Null,
        ],
    ]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut s, b| {
        write!(s, "{b:02x}").unwrap();
        s
    })
}

fn compare(name: &str, text: &str) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var("PAGEFOLD_GOLDEN").is_ok_and(|v| v == "write") && !std::path::Path::new(&path).exists() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{name}: the format has changed");
}

#[test]
fn records() {
    let layout = RowLayout::new(&schema()).unwrap();
    let mut text = String::new();
    for row in rows() {
        let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
        let mut record = Vec::new();
        layout.encode(&values, &mut record).unwrap();
        writeln!(text, "{}", hex(&record)).unwrap();
        let mut columns: Vec<ColumnValue<'_>> = values.iter().map(|v| ColumnValue::Value(*v)).collect();
        columns[12] = ColumnValue::Large(LargeValueRef { first_page: 1, raw_bytes: 0x10_000, tag: 0x200, partition: 3 });
        record.clear();
        layout.encode_columns(&columns, &mut record).unwrap();
        writeln!(text, "{}", hex(&record)).unwrap();
    }
    compare("record-1.hex", &text);
}

#[test]
fn keys() {
    let schema = schema();
    let mut text = String::new();
    for row in rows() {
        let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
        for (i, column) in schema.columns().iter().enumerate() {
            for direction in [Direction::Ascending, Direction::Descending] {
                let mut key = Vec::new();
                KeyLayout::new(&schema, &[(i, direction)]).encode_from_values(&values, &mut key).unwrap();
                writeln!(text, "{} {direction:?} {}", column.name, hex(&key)).unwrap();
            }
        }
    }
    compare("key-1.hex", &text);
}

#[test]
fn stored_schema() {
    let mut bytes = Vec::new();
    schema().encode(&mut bytes);
    compare("schema-1.hex", &format!("{}\n", hex(&bytes)));
    assert_eq!(schema().columns()[0].data_type, DataType::Boolean);
}

/// INTERVAL came later, with files of its own: records, keys and the schema.
#[test]
fn intervals() {
    let schema = Schema::new(vec![
        Column::new("id", DataType::SmallInt, false),
        Column::new("span", DataType::Interval, false),
        Column::new("maybe", DataType::Interval, true),
    ])
    .unwrap();
    let layout = RowLayout::new(&schema).unwrap();
    let of = |months, days, micros| Value::Interval(Interval { months, days, micros });
    let mut text = String::new();
    for row in [
        [Value::Int(1), of(14, -3, 14_706_700_000), of(1, 0, 0)],
        [Value::Int(2), of(0, 30, 0), Value::Null],
        [Value::Int(3), of(i32::MIN, i32::MIN, i64::MIN), of(i32::MAX, i32::MAX, i64::MAX)],
    ] {
        let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
        let mut record = Vec::new();
        layout.encode(&values, &mut record).unwrap();
        writeln!(text, "record {}", hex(&record)).unwrap();
        for (i, column) in schema.columns().iter().enumerate().skip(1) {
            for direction in [Direction::Ascending, Direction::Descending] {
                let mut key = Vec::new();
                KeyLayout::new(&schema, &[(i, direction)]).encode_from_values(&values, &mut key).unwrap();
                writeln!(text, "{} {direction:?} {}", column.name, hex(&key)).unwrap();
            }
        }
    }
    let mut bytes = Vec::new();
    schema.encode(&mut bytes);
    writeln!(text, "schema {}", hex(&bytes)).unwrap();
    compare("interval-1.hex", &text);
}

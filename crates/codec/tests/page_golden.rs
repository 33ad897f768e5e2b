//! Column areas that earlier versions wrote. Files are added, never edited.

use std::sync::Arc;

use pagefold_codec::page::{ColumnArea, PageEncoder, PageSchema};
use pagefold_codec::row::{Dictionary, Encoder};
use pagefold_types::{Column, ColumnValue, DataType, LargeValueRef, RowLayout, Schema, ValueRef};

const AREA: &[u8] = include_bytes!("golden/page_area_v1.bin");

fn dictionary() -> Dictionary {
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    tokens.extend(["DELIVER IN PERSON", "the ", "quick", " brown ", "fox"].map(Into::into));
    Dictionary::from_tokens(&tokens).expect("every byte is a token")
}

/// A table that needs every encoding, and its rows.
fn table() -> (RowLayout, Vec<Vec<u8>>) {
    let decimal = DataType::Decimal { precision: 15, scale: 2 };
    let text = DataType::Varchar(None);
    let columns = [
        ("nothing", DataType::Integer, true),
        ("frame", DataType::BigInt, true),
        ("wide_frame", DataType::BigInt, false),
        ("multiple", decimal, false),
        ("linear", DataType::BigInt, false),
        ("dictionary", DataType::BigInt, false),
        ("date", DataType::Date, false),
        ("later_date", DataType::Date, true),
        ("outliers", DataType::Integer, false),
        ("double", DataType::Double, false),
        ("bytes", text, true),
        ("codes", text, false),
        ("distinct_bytes", DataType::Char(6), true),
        ("distinct_codes", text, false),
        ("uuid", DataType::Uuid, false),
        ("wide_decimal", DataType::Decimal { precision: 30, scale: 0 }, false),
    ];
    let columns = columns.map(|(name, data_type, nullable)| Column::new(name, data_type, nullable));
    let layout = RowLayout::new(&Schema::new(columns.to_vec()).expect("a schema")).expect("a layout");
    let rows = (0..100_i64).map(|i| {
        // Numbers without an order.
        let mixed = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64);
        let up_to = |limit: u64| ((mixed as u64 >> 20) % limit) as i64;
        let bytes = format!("Nr.{:05}", up_to(99_999));
        let codes = format!("{}the quick brown fox {i}", "quick".repeat(up_to(4) as usize));
        let large = LargeValueRef { first_page: 5, raw_bytes: 70_000, tag: 60_000, partition: 1 };
        let values = [
            ColumnValue::Value(ValueRef::Null),
            if i % 7 == 0 { ValueRef::Null.into() } else { ValueRef::Int(1000 + up_to(500)).into() },
            ValueRef::Int((1 << 50) + up_to(90)).into(),
            ValueRef::Decimal(i128::from(100 * up_to(50))).into(),
            ValueRef::Int(33 * i + up_to(5)).into(),
            ValueRef::Int([1 << 60, -3, 77_777_777][up_to(3) as usize]).into(),
            ValueRef::Int(9000 + up_to(2500)).into(),
            if i % 9 == 1 { ValueRef::Null.into() } else { ValueRef::Int(9000 + up_to(2500) + i % 30).into() },
            ValueRef::Int(if i == 50 { -123_456_789 } else { up_to(16) }).into(),
            ValueRef::Double(1.5).into(),
            if i == 3 {
                ColumnValue::Large(large)
            } else if i % 10 == 5 {
                ValueRef::Null.into()
            } else {
                ValueRef::Text(&bytes).into()
            },
            ValueRef::Text(&codes).into(),
            if i % 11 == 0 { ValueRef::Null.into() } else { ValueRef::Text(["N", "é", "long"][up_to(3) as usize]).into() },
            ValueRef::Text(["DELIVER IN PERSON", "the fox", ""][up_to(3) as usize]).into(),
            ValueRef::Uuid((mixed as u128).to_be_bytes()).into(),
            ValueRef::Decimal(i128::from(mixed) * 1_000_000_007).into(),
        ];
        let mut record = Vec::new();
        layout.encode_columns(&values, &mut record).expect("a record");
        record
    });
    let rows = rows.collect();
    (layout, rows)
}

/// Reading must always give the rows; an encoder may do better one day.
#[test]
fn area_v1() {
    let (layout, records) = table();
    let (schema, dictionary) = (Arc::new(PageSchema::new(&layout)), dictionary());
    let mut encoder = PageEncoder::new(schema.clone(), Some(Arc::new(Encoder::new(&dictionary))));
    records.iter().for_each(|record| encoder.push(record).unwrap());
    let mut encodings: Vec<&str> = encoder.column_sizes(records.len()).map(|size| size.encoding).collect();
    encodings.sort_unstable();
    encodings.dedup();
    assert_eq!(encodings.len(), 10, "{encodings:?}");
    let mut bytes = Vec::new();
    assert!(encoder.encode(records.len(), &mut bytes).unwrap() <= AREA.len());

    let area = ColumnArea::parse(&schema, Some(&dictionary), AREA).unwrap();
    assert_eq!(area.rows(), records.len());
    let mut record = Vec::new();
    for (row, expected) in records.iter().enumerate() {
        record.clear();
        area.record(row, &mut record).unwrap();
        assert_eq!(record, *expected);
    }
}

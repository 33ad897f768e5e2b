//! What goes in comes out: value by value and record by record, in as many bytes as foretold.

use super::data::{CODES, Table, table};
use crate::page::{ColumnArea, PageEncoder, StringValue};
use crate::row::Dictionary;
use pagefold_types::{ColumnValue, ValueRef};

/// Encodes the first `rows` rows with one of the dictionaries or none.
pub(super) fn encoded(table: &Table, rows: usize, codes: Option<usize>) -> Vec<u8> {
    let mut encoder = PageEncoder::new(table.schema.clone(), codes.map(|which| CODES[which].1.clone()));
    for record in &table.records[..rows] {
        encoder.push(record).unwrap();
    }
    let mut area = b"before".to_vec();
    let len = encoder.len_of(rows);
    assert_eq!(encoder.encode(rows, &mut area), Some(len));
    assert_eq!(area.len(), 6 + len);
    area.drain(..6);
    area
}

pub(super) fn dictionary(codes: Option<usize>) -> Option<&'static Dictionary> {
    codes.map(|which| &CODES[which].0)
}

/// Rows taken apart together come onto areas in pieces, and some of them stay for the next one.
#[test]
fn prepared_rows_make_the_same_areas() {
    for seed in 0..90 {
        let (all, held) = [(40, 40), (300, 300), (2_600, 250)][seed as usize % 3];
        let table = table(seed, 6, all);
        let codes = [None, Some(0), Some(1)][seed as usize / 3 % 3].map(|which: usize| &CODES[which].1);
        let new = || PageEncoder::new(table.schema.clone(), codes.cloned());
        // One is no row, and is not wanted.
        let mut records: Vec<&[u8]> = table.records.iter().map(Vec::as_slice).collect();
        let none = held / 3;
        records.insert(none, &[]);
        let mut encoder = new();
        let prepared = encoder.preparer().prepare(records.iter().copied());
        assert!(encoder.push_prepared(&records[..=none], &prepared, 0).is_err());
        assert_eq!(encoder.rows(), 0);
        let same_as_by_record = |encoder: &mut PageEncoder, rows: &[&[u8]]| {
            let mut by_record = new();
            rows.iter().for_each(|record| by_record.push(record).unwrap());
            assert_eq!(encoder.rows(), rows.len());
            assert!(rows.iter().enumerate().all(|(row, record)| encoder.held_record(row) == *record));
            let mut areas = [Vec::new(), Vec::new()];
            encoder.encode(rows.len(), &mut areas[0]);
            by_record.encode(rows.len(), &mut areas[1]);
            assert!(areas[0] == areas[1], "seed {seed}");
        };
        for (first, end) in [(0, none), (none + 1, held / 2), (held / 2, held / 2), (held / 2, held + 1)] {
            encoder.push_prepared(&records[first..end], &prepared, first).unwrap();
        }
        records.remove(none);
        same_as_by_record(&mut encoder, &records[..held]);
        let taken = held * (seed as usize % 5) / 6;
        encoder.drain(taken);
        same_as_by_record(&mut encoder, &records[taken..held]);
        let more = all.min(held + taken);
        encoder.push_prepared(&records[held..more], &prepared, held + 1).unwrap();
        same_as_by_record(&mut encoder, &records[taken..more]);
    }
}

/// The integer that an area holds for a value.
pub(super) fn int_of(value: ColumnValue<'_>) -> Option<i64> {
    match value {
        ColumnValue::Value(ValueRef::Null) => None,
        ColumnValue::Value(ValueRef::Boolean(b)) => Some(i64::from(b)),
        ColumnValue::Value(ValueRef::Int(i)) => Some(i),
        ColumnValue::Value(ValueRef::Decimal(d)) => Some(d as i64),
        ColumnValue::Value(ValueRef::Real(x)) => Some(i64::from(x.to_bits() as i32)),
        ColumnValue::Value(ValueRef::Double(x)) => Some(x.to_bits() as i64),
        other => panic!("{other:?}"),
    }
}

/// The value of a column as the record has it.
fn expect_value(area: &ColumnArea<'_>, table: &Table, column: usize, row: usize, buffer: &mut Vec<u8>) {
    let expected = table.layout.column(&table.records[row], column).unwrap();
    assert_eq!(area.is_null(column, row), expected == ColumnValue::Value(ValueRef::Null));
    if table.schema.is_int(column) {
        assert_eq!(area.int(column, row), int_of(expected), "column {column}, row {row}, {:?}", table.shapes[column]);
        return;
    }
    let found = area.bytes(column, row, buffer).unwrap();
    let plain = |bytes: &[u8]| assert_eq!(found, Some(StringValue::Bytes(bytes)), "column {column}, row {row}");
    match expected {
        ColumnValue::Value(ValueRef::Null) => assert_eq!(found, None),
        ColumnValue::Value(ValueRef::Text(text)) => plain(text.as_bytes()),
        ColumnValue::Value(ValueRef::Bytes(bytes)) => plain(bytes),
        ColumnValue::Value(ValueRef::Uuid(bytes)) => plain(&bytes),
        ColumnValue::Value(ValueRef::Decimal(d)) => plain(&d.to_le_bytes()[..table.layout.fixed_span(column).unwrap().1]),
        ColumnValue::Large(large) => assert_eq!(found, Some(StringValue::Large(large))),
        ColumnValue::Value(other) => panic!("{other:?}"),
    }
}

fn round_trip(table: &Table, rows: usize, codes: Option<usize>) {
    let bytes = encoded(table, rows, codes);
    let area = ColumnArea::parse(&table.schema, dictionary(codes), &bytes).unwrap();
    assert_eq!((area.rows(), ColumnArea::len_at(&bytes)), (rows, Some(bytes.len())));
    (0..rows).for_each(|row| expect_row(&area, table, row));
}

/// A row, value by value and as a record.
pub(super) fn expect_row(area: &ColumnArea<'_>, table: &Table, row: usize) {
    let (mut buffer, mut record) = (Vec::new(), Vec::new());
    for column in 0..table.layout.column_count() {
        expect_value(area, table, column, row, &mut buffer);
    }
    assert_eq!(area.record(row, &mut record), Ok(table.records[row].len()));
    assert_eq!(record, table.records[row]);
}

#[test]
fn random_tables() {
    for seed in 0..150 {
        let rows = [1, 2, 3, 8, 31, 32, 63, 64, 65, 200, 300][seed as usize % 11];
        let table = table(seed, 1 + seed as usize % 13, rows);
        for codes in [None, Some(0), Some(1)] {
            round_trip(&table, rows, codes);
        }
    }
}

#[test]
fn each_shape_alone() {
    for seed in 1000..1400 {
        let table = table(seed, 1, 100);
        round_trip(&table, 100, Some(seed as usize % 2));
    }
}

#[test]
fn the_most_rows() {
    for seed in 2000..2030 {
        let table = table(seed, 2, 4096);
        let mut encoder = PageEncoder::new(table.schema.clone(), None);
        table.records.iter().for_each(|record| encoder.push(record).unwrap());
        if encoder.len_of(4096) <= crate::page::AREA_BYTES_MAX {
            round_trip(&table, 4096, None);
        } else {
            let mut out = vec![1];
            assert_eq!(encoder.encode(4096, &mut out), None);
            assert_eq!(out, [1]);
        }
    }
}

#[test]
fn first_rows_alone_decide() {
    for seed in 3000..3040 {
        let table = table(seed, 6, 150);
        let mut encoder = PageEncoder::new(table.schema.clone(), Some(CODES[0].1.clone()));
        table.records.iter().for_each(|record| encoder.push(record).unwrap());
        for rows in [1, 17, 90, 150] {
            let mut area = Vec::new();
            encoder.encode(rows, &mut area).unwrap();
            assert_eq!(area, encoded(&table, rows, Some(0)));
        }
        encoder.drain(40);
        assert_eq!(encoder.rows(), 110);
        let mut area = Vec::new();
        encoder.encode(110, &mut area).unwrap();
        let rest = Table { records: table.records[40..].to_vec(), layout: table.layout, schema: table.schema, shapes: table.shapes };
        assert_eq!(area, encoded(&rest, 110, Some(0)));
    }
}

#[test]
fn as_many_rows_as_fit() {
    for seed in 4000..4060 {
        let table = table(seed, 5, 400);
        let mut encoder = PageEncoder::new(table.schema.clone(), Some(CODES[0].1.clone()));
        table.records.iter().for_each(|record| encoder.push(record).unwrap());
        for room in [0, 60, 300, 1000, 4000, 40_000] {
            let rows = encoder.rows_that_fit(room, usize::MAX, |_| 0);
            assert!(rows == 0 || encoder.len_of(rows) <= room);
            // A few rows may be missing: a trial takes longer than they are worth.
            let more = rows + 3 + rows / 50;
            assert!(more > 400 || encoder.len_of(more) > room, "room {room}: {rows} rows");
        }
    }
}

#[test]
fn records_of_other_schemas() {
    let table = table(5, 8, 20);
    let mut encoder = PageEncoder::new(table.schema.clone(), None);
    for record in &table.records {
        assert!(encoder.push(&record[..record.len() - 1]).is_err() || table.layout.constant_len().is_none());
        assert!(encoder.push(&[record, &[0u8][..]].concat()).is_err());
        assert!(encoder.push(&[]).is_err());
    }
    assert_eq!(encoder.rows(), 0);
}

//! A patched area is the area of the changed rows, read value by value.

use super::data::{Shape, below, random, table};
use super::round_trip::{dictionary, encoded, expect_row, int_of};
use crate::page::{ColumnArea, Patch};
use pagefold_types::{ColumnValue, DataType, ValueRef};

#[test]
fn patched_rows_read_as_changed() {
    let (mut patched, mut refused, mut state) = ([0; 2], [0; 2], 5);
    for seed in 0..600 {
        let rows = [1, 20, 64, 150][seed as usize % 4];
        let mut table = table(40_000 + seed, 1 + seed as usize % 6, rows);
        let codes = [None, Some(0), Some(1)][seed as usize % 3];
        let mut bytes = encoded(&table, rows, codes);
        let mut patch = Patch::default();
        for _ in 0..60 {
            let (row, other) = (below(&mut state, rows as u64) as usize, below(&mut state, rows as u64) as usize);
            let column = below(&mut state, table.layout.column_count() as u64) as usize;
            let area = ColumnArea::parse(&table.schema, dictionary(codes), &bytes).unwrap();
            // The value of another row, or one near it.
            let record = table.records[other].clone();
            let mut value = table.layout.column(&record, column).unwrap();
            if let ColumnValue::Value(ValueRef::Int(i)) = value {
                let near = i.wrapping_add(below(&mut state, 5) as i64 - 2);
                let (least, most) = table.layout.data_type(column).int_range().unwrap();
                value = ColumnValue::Value(ValueRef::Int(near.clamp(least, most)));
            }
            let mut changed = Vec::new();
            table.layout.replace(&table.records[row], &[(column, value)], &mut changed).unwrap().unwrap();
            let fits = if table.schema.is_int(column) {
                area.patch_int(column, row, int_of(value), &mut patch)
            } else {
                let width = table.layout.fixed_span(column).map_or(0, |(_, width)| width);
                let held = match value {
                    ColumnValue::Value(ValueRef::Null) => None,
                    ColumnValue::Value(ValueRef::Text(text)) => Some(text.as_bytes().to_vec()),
                    ColumnValue::Value(ValueRef::Bytes(bytes)) => Some(bytes.to_vec()),
                    ColumnValue::Value(ValueRef::Uuid(bytes)) => Some(bytes.to_vec()),
                    ColumnValue::Value(ValueRef::Decimal(d)) => Some(d.to_le_bytes()[..width].to_vec()),
                    ColumnValue::Large(_) => continue,
                    other => panic!("{other:?}"),
                };
                area.patch_bytes(column, row, held.as_deref(), &mut patch)
            };
            let kind = usize::from(table.schema.is_int(column));
            if !fits {
                refused[kind] += 1;
                // Its own value always fits, unless it lies elsewhere or is what others are differences to.
                continue;
            }
            patched[kind] += 1;
            assert_eq!(bytes[patch.offset..patch.offset + patch.old.len()], patch.old);
            assert_eq!(patch.old.len(), patch.new.len());
            bytes[patch.offset..patch.offset + patch.new.len()].copy_from_slice(&patch.new);
            table.records[row] = changed;
            let area = ColumnArea::parse(&table.schema, dictionary(codes), &bytes).unwrap();
            for row in 0..rows {
                expect_row(&area, &table, row);
            }
        }
    }
    assert!(patched.iter().chain(&refused).all(|count| *count > 500), "{patched:?} {refused:?}");
}

#[test]
fn what_fits_the_bits_is_patched() {
    let mut state = 9;
    for seed in 0..200 {
        let table = table(60_000 + seed, 1, 64);
        if !table.schema.is_int(0) || !matches!(table.layout.data_type(0), DataType::BigInt) {
            continue;
        }
        let bytes = encoded(&table, 64, None);
        let area = ColumnArea::parse(&table.schema, None, &bytes).unwrap();
        let mut patch = Patch::default();
        let row = below(&mut state, 64) as usize;
        for other in 0..64 {
            // Any value of the column fits a frame or dictionary.
            if area.is_null(0, row) || area.is_null(0, other) {
                continue;
            }
            let fits = area.patch_int(0, row, area.int(0, other), &mut patch);
            let always = matches!(table.shapes[0], Shape::Constant | Shape::Few | Shape::Multiples | Shape::Extremes);
            assert!(fits || !always, "{:?}", table.shapes[0]);
        }
        let far = random(&mut state) as i64;
        let _ = area.patch_int(0, row, Some(far), &mut patch);
    }
}

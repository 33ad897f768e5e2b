//! Many rows at once are what single accesses give.

use std::ops::Range;

use super::data::{Table, below, table};
use super::round_trip::{dictionary, encoded};
use crate::page::{Bitmap, ColumnArea, StringValue};

fn batch_is_single(table: &Table, area: &ColumnArea<'_>, column: usize, rows: Range<usize>) {
    let (mut validity, mut large) = (Bitmap::new(3, true), Bitmap::new(1, false));
    let nulls = area.validity(column, rows.clone(), &mut validity);
    area.large(column, rows.clone(), &mut large);
    let is_null = |row: usize| area.is_null(column, row);
    assert_eq!((validity.len(), large.len()), (3 + rows.len(), 1 + rows.len()));
    assert!(rows.clone().enumerate().all(|(i, row)| validity.get(3 + i) != is_null(row)));
    assert_eq!(nulls, rows.clone().filter(|row| is_null(*row)).count());
    if table.schema.is_int(column) {
        let (mut values, mut narrow, mut doubles) = (vec![5i64], vec![5i16], vec![5f64]);
        area.ints(column, rows.clone(), &mut values);
        area.ints(column, rows.clone(), &mut narrow);
        area.ints(column, rows.clone(), &mut doubles);
        assert_eq!((values.len(), values[0]), (1 + rows.len(), 5));
        for (i, row) in rows.enumerate() {
            if let Some(value) = area.int(column, row) {
                assert_eq!((values[1 + i], narrow[1 + i], doubles[1 + i].to_bits()), (value, value as i16, value as u64));
            }
        }
        return;
    }
    let (mut ends, mut bytes) = (vec![2], vec![1, 1]);
    area.strings(column, rows.clone(), &mut ends, &mut bytes, usize::MAX).unwrap();
    assert_eq!(ends.len(), 1 + rows.len());
    let mut buffer = Vec::new();
    for (i, row) in rows.clone().enumerate() {
        let found = &bytes[ends[i] as usize..ends[i + 1] as usize];
        let single = area.bytes(column, row, &mut buffer).unwrap();
        assert_eq!(large.get(1 + i), matches!(single, Some(StringValue::Large(_))));
        match single {
            None => assert!(found.is_empty()),
            Some(StringValue::Bytes(value)) => assert_eq!(found, value),
            Some(StringValue::Large(value)) => assert_eq!(found, value.to_bytes()),
        }
    }
    if bytes.len() > 2 {
        let (mut ends, mut short) = (vec![2], vec![1, 1]);
        assert!(area.strings(column, rows, &mut ends, &mut short, bytes.len() - 1).is_err());
        assert_eq!((ends, short), (vec![2], vec![1, 1]));
    }
}

/// Selected rows, against a batch of all.
fn selected_are_of_all(table: &Table, area: &ColumnArea<'_>, column: usize, selection: &Bitmap) {
    let wanted: Vec<usize> = selection.ones().collect();
    let (mut validity, mut large) = (Bitmap::new(3, true), Bitmap::new(1, false));
    let nulls = area.validity_selected(column, selection, &mut validity);
    area.large_selected(column, selection, &mut large);
    let (mut all_valid, mut all_large) = (Bitmap::default(), Bitmap::default());
    area.validity(column, 0..area.rows(), &mut all_valid);
    area.large(column, 0..area.rows(), &mut all_large);
    assert_eq!((validity.len(), large.len()), (3 + wanted.len(), 1 + wanted.len()));
    assert!(
        wanted.iter().enumerate().all(|(i, row)| validity.get(3 + i) == all_valid.get(*row) && large.get(1 + i) == all_large.get(*row))
    );
    assert_eq!(nulls, wanted.iter().filter(|row| !all_valid.get(**row)).count());
    if table.schema.is_int(column) {
        let (mut values, mut all) = (vec![5i64], Vec::new());
        area.ints_selected(column, selection, &mut values);
        area.ints(column, 0..area.rows(), &mut all);
        assert_eq!(values.len(), 1 + wanted.len());
        assert!(wanted.iter().enumerate().all(|(i, row)| !all_valid.get(*row) || values[1 + i] == all[*row]));
        return;
    }
    let (mut ends, mut bytes) = (vec![2], vec![1, 1]);
    area.strings_selected(column, selection, &mut ends, &mut bytes, usize::MAX).unwrap();
    let (mut all_ends, mut all_bytes) = (vec![0], Vec::new());
    area.strings(column, 0..area.rows(), &mut all_ends, &mut all_bytes, usize::MAX).unwrap();
    assert_eq!(ends.len(), 1 + wanted.len());
    for (i, row) in wanted.iter().enumerate() {
        let found = &bytes[ends[i] as usize..ends[i + 1] as usize];
        assert_eq!(found, &all_bytes[all_ends[*row] as usize..all_ends[row + 1] as usize]);
    }
    if bytes.len() > 2 {
        let (mut ends, mut short) = (vec![2], vec![1, 1]);
        assert!(area.strings_selected(column, selection, &mut ends, &mut short, bytes.len() - 1).is_err());
        assert_eq!((ends, short), (vec![2], vec![1, 1]));
    }
}

#[test]
fn any_selection() {
    for seed in 0..300 {
        let rows = [1, 5, 64, 70, 128, 200, 333][seed as usize % 7];
        let table = table(19_000 + seed, 1 + seed as usize % 6, rows);
        let codes = [None, Some(0), Some(1)][seed as usize % 3];
        let bytes = encoded(&table, rows, codes);
        let area = ColumnArea::parse(&table.schema, dictionary(codes), &bytes).unwrap();
        let mut state = seed;
        for column in 0..table.layout.column_count() {
            for one_in in [1, 2, 7, 50] {
                let mut selection = Bitmap::new(rows, false);
                (0..rows).for_each(|row| selection.set(row, below(&mut state, one_in) == 0));
                selected_are_of_all(&table, &area, column, &selection);
            }
        }
    }
}

#[test]
fn any_rows() {
    for seed in 0..300 {
        let rows = [1, 5, 64, 70, 128, 200, 333][seed as usize % 7];
        let table = table(9000 + seed, 1 + seed as usize % 6, rows);
        let codes = [None, Some(0), Some(1)][seed as usize % 3];
        let bytes = encoded(&table, rows, codes);
        let area = ColumnArea::parse(&table.schema, dictionary(codes), &bytes).unwrap();
        let mut state = seed;
        for column in 0..table.layout.column_count() {
            batch_is_single(&table, &area, column, 0..rows);
            for _ in 0..6 {
                let end = below(&mut state, rows as u64 + 1);
                let start = below(&mut state, end + 1);
                batch_is_single(&table, &area, column, start as usize..end as usize);
            }
        }
    }
}

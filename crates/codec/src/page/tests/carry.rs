//! Rows that are carried over are encoded as their records are.

use super::data::{CODES, below, table};
use crate::page::{CarriedRows, ColumnArea, PageEncoder, PageSchema};
use crate::row::Dictionary;
use pagefold_types::{Column, ColumnValue, DataType, RowLayout, Schema, ValueRef};
use std::sync::Arc;

/// String codes of one of two dictionaries, or none.
fn codes(which: usize) -> (Option<Arc<crate::row::Encoder>>, Option<&'static Dictionary>) {
    match CODES.get(which) {
        Some((dictionary, encoder)) => (Some(Arc::clone(encoder)), Some(dictionary)),
        None => (None, None),
    }
}

#[test]
#[cfg_attr(miri, ignore = "safe code, slow there")]
fn as_by_their_records() {
    let (mut equal_codes, mut other_codes, mut carried_rows) = (0, 0, 0);
    for seed in 0..600 {
        let state = &mut (seed * 77 + 5);
        let (columns, rows) = (1 + below(state, 9) as usize, 1 + below(state, [12, 200, 1500][seed as usize % 3]) as usize);
        let table = table(seed, columns, rows);
        let (from, to) = (below(state, 3) as usize, below(state, 3) as usize);
        let ((from_codes, dictionary), (to_codes, _)) = (codes(from), codes(to));
        let mut first = PageEncoder::new(Arc::clone(&table.schema), from_codes);
        let kept = 1 + below(state, rows as u64) as usize;
        table.records[..kept].iter().for_each(|record| first.push(record).unwrap());
        let mut bytes = Vec::new();
        if first.encode(kept, &mut bytes).is_none() {
            continue;
        }
        let area = ColumnArea::parse(&table.schema, dictionary, &bytes).unwrap();
        let mut carried = CarriedRows::new(area, from == to);
        let mut by_record = PageEncoder::new(Arc::clone(&table.schema), to_codes.clone());
        let mut by_area = PageEncoder::new(Arc::clone(&table.schema), to_codes);
        let (mut record, mut pushed, mut run) = (Vec::new(), 0, Vec::new());
        for row in 0..rows {
            // Some rows go, some come twice, and new ones come in between and behind.
            let times = [1, 1, 1, 0, 2][below(state, 5) as usize];
            for _ in 0..times {
                pushed += 1;
                if row < kept && below(state, 8) > 0 {
                    record.clear();
                    area.record(row, &mut record).unwrap();
                    by_record.push(&record).unwrap();
                    run.push(row as u16);
                    carried_rows += 1;
                } else {
                    by_area.push_carried(&mut carried, &std::mem::take(&mut run)).unwrap();
                    by_record.push(&table.records[row]).unwrap();
                    by_area.push(&table.records[row]).unwrap();
                }
            }
        }
        by_area.push_carried(&mut carried, &run).unwrap();
        if pushed == 0 {
            continue;
        }
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        assert_eq!(by_record.encode(pushed, &mut expected), by_area.encode(pushed, &mut found), "seed {seed}");
        assert!(expected == found, "seed {seed}: {columns} columns, {kept} of {rows} rows, codes {from} to {to}");
        (equal_codes, other_codes) = (equal_codes + usize::from(from == to), other_codes + usize::from(from != to));
    }
    assert!(equal_codes > 150 && other_codes > 300 && carried_rows > 50_000, "{equal_codes}, {other_codes}, {carried_rows}");
}

/// When 128 rows have hardly a value twice, equal ones are not looked for any more: also when the next row is carried over.
#[test]
fn equal_values_behind_many_that_differ() {
    let layout = RowLayout::new(&Schema::new(vec![Column::new("text", DataType::Varchar(None), false)]).unwrap()).unwrap();
    let schema = Arc::new(PageSchema::new(&layout));
    let record = |text: &str| {
        let mut record = Vec::new();
        layout.encode_columns(&[ColumnValue::Value(ValueRef::Text(text))], &mut record).unwrap();
        record
    };
    let mut first = PageEncoder::new(Arc::clone(&schema), None);
    (0..300).for_each(|row| first.push(&record(["common one", "common two"][row % 2])).unwrap());
    let mut bytes = Vec::new();
    first.encode(300, &mut bytes).unwrap();
    let mut carried = CarriedRows::new(ColumnArea::parse(&schema, None, &bytes).unwrap(), false);
    let [mut by_record, mut by_area] = [(); 2].map(|()| PageEncoder::new(Arc::clone(&schema), None));
    for row in 0..700 {
        if (1..128).contains(&row) {
            let unlike = record(&format!("{row} is unlike all others"));
            by_record.push(&unlike).unwrap();
            by_area.push(&unlike).unwrap();
        } else {
            by_record.push(&record("common one")).unwrap();
            by_area.push_carried(&mut carried, &[2 * (row % 100) as u16]).unwrap();
        }
    }
    let (mut expected, mut found) = (Vec::new(), Vec::new());
    by_record.encode(700, &mut expected).unwrap();
    by_area.encode(700, &mut found).unwrap();
    assert!(expected == found);
}

/// Of bytes that are no area a row is an error, or is carried over as something: nothing panics.
#[test]
#[cfg_attr(miri, ignore = "safe code, slow there")]
fn damaged_areas() {
    let mut errors = 0;
    for seed in 0..300 {
        let state = &mut (seed * 31 + 9);
        let table = table(seed, 1 + below(state, 6) as usize, 60);
        let (encoder, dictionary) = codes(seed as usize % 3);
        let mut first = PageEncoder::new(Arc::clone(&table.schema), encoder.clone());
        table.records.iter().for_each(|record| first.push(record).unwrap());
        let mut bytes = Vec::new();
        first.encode(60, &mut bytes).unwrap();
        for _ in 0..20 {
            let mut damaged = bytes.clone();
            for _ in 0..1 + below(state, 4) {
                let at = below(state, damaged.len() as u64) as usize;
                damaged[at] ^= 1 << below(state, 8);
            }
            let mut carried = CarriedRows::new(ColumnArea::trusted(&table.schema, dictionary, &damaged), true);
            let mut second = PageEncoder::new(Arc::clone(&table.schema), encoder.clone());
            let pushed = second.push_carried(&mut carried, &std::array::from_fn::<u16, 60, _>(|row| row as u16));
            errors += usize::from(pushed.is_err());
            if pushed.is_ok() {
                _ = second.encode(60, &mut Vec::new());
            }
        }
    }
    assert!(errors > 100, "{errors}");
}

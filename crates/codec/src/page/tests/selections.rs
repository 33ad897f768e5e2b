//! Selections are filters of decoded values.

use std::ops::Bound;

use super::data::{Table, below, random, table};
use super::round_trip::{dictionary, encoded};
use crate::page::schema::Class;
use crate::page::{Bitmap, ColumnArea, IntMembers, IntSet, StringValue};

/// A selection to start from, and what must be left of it.
fn check(area: &ColumnArea<'_>, state: &mut u64, select: impl FnOnce(&mut Bitmap), meets: impl Fn(usize) -> bool) {
    let mut selection = Bitmap::new(area.rows(), true);
    match below(state, 3) {
        0 => (0..area.rows()).for_each(|row| selection.set(row, below(state, 2) == 0)),
        1 => (0..area.rows()).for_each(|row| selection.set(row, row / 64 % 2 == 1)),
        _ => {}
    }
    let expected: Vec<usize> = selection.ones().filter(|row| meets(*row)).collect();
    select(&mut selection);
    assert_eq!(selection.ones().collect::<Vec<_>>(), expected);
}

fn ints(area: &ColumnArea<'_>, column: usize, state: &mut u64) {
    let values: Vec<Option<i64>> = (0..area.rows()).map(|row| area.int(column, row)).collect();
    let bound = |state: &mut u64| match below(state, 6) {
        0 => [i64::MIN, i64::MAX, 0][below(state, 3) as usize],
        1 => random(state) as i64 >> below(state, 64),
        _ => values[below(state, values.len() as u64) as usize].unwrap_or(7).wrapping_add(below(state, 3) as i64 - 1),
    };
    let (least, most) = (bound(state), bound(state));
    for (least, most) in [(least, most), (most, least), (least, least)] {
        let meets = |row: usize| values[row].is_some_and(|value| (least..=most).contains(&value));
        check(area, state, |selection| area.select_int(column, least..=most, selection), meets);
    }
    // Lists: few, and more than are compared one by one; close together, and far apart.
    let list: Vec<i64> = (0..[0, 1, 3, 40][below(state, 4) as usize]).map(|_| bound(state)).collect();
    let meets = |row: usize| values[row].is_some_and(|value| list.contains(&value));
    let set = IntSet::of(list.iter().map(|value| *value..=*value));
    check(area, state, |selection| area.select_ints(column, &set, selection), meets);
    let members = IntMembers::of(list.clone());
    check(area, state, |selection| area.select_members(column, &members, selection), meets);
}

fn strings(table: &Table, area: &ColumnArea<'_>, column: usize, state: &mut u64) {
    let mut buffer = Vec::new();
    let values: Vec<_> = (0..area.rows())
        .map(|row| match area.bytes(column, row, &mut buffer).unwrap() {
            None => Some(None),
            Some(StringValue::Bytes(bytes)) => Some(Some(bytes.to_vec())),
            Some(StringValue::Large(_)) => None,
        })
        .collect();
    // What lies in large-value pages stays.
    let test = |meets: &dyn Fn(&[u8]) -> bool, row: usize| match &values[row] {
        None => true,
        Some(value) => value.as_deref().is_some_and(meets),
    };
    let padded = matches!(table.schema.columns[column].class, Class::Variable { chars: Some(_) });
    for _ in 0..4 {
        let mut bound = || {
            let mut bytes = values[below(state, values.len() as u64) as usize].clone().flatten().unwrap_or_default();
            match below(state, 4) {
                0 => drop(bytes.pop()),
                1 => bytes.push(if padded { b' ' } else { random(state) as u8 }),
                2 if !bytes.is_empty() => *bytes.last_mut().unwrap() ^= 1,
                _ => {}
            }
            bytes
        };
        let (low, high) = (bound(), bound());
        let ordered = |value: &[u8], bound: &[u8]| {
            let blanks =
                |bytes: &[u8]| [bytes, &vec![b' '; 100 * usize::from(padded)]].concat()[..if padded { 60 } else { bytes.len() }].to_vec();
            blanks(value).cmp(&blanks(bound))
        };
        check(
            area,
            state,
            |selection| area.select_bytes_equal(column, &low, selection).unwrap(),
            |row| test(&|value| ordered(value, &low).is_eq(), row),
        );
        check(
            area,
            state,
            |selection| area.select_bytes_range(column, Bound::Included(&low), Bound::Excluded(&high), selection).unwrap(),
            |row| test(&|value| ordered(value, &low).is_ge() && ordered(value, &high).is_lt(), row),
        );
        check(
            area,
            state,
            |selection| area.select_bytes_range(column, Bound::Excluded(&low), Bound::Unbounded, selection).unwrap(),
            |row| test(&|value| ordered(value, &low).is_gt(), row),
        );
        check(
            area,
            state,
            |selection| area.select_bytes_range(column, Bound::Unbounded, Bound::Included(&high), selection).unwrap(),
            |row| test(&|value| ordered(value, &high).is_le(), row),
        );
        let part = low.get(1..3).unwrap_or_default();
        let contains = |value: &[u8]| value.windows(2).any(|window| window == part);
        check(area, state, |selection| area.select_bytes(column, contains, selection).unwrap(), |row| test(&contains, row));
    }
}

#[test]
fn selections_are_filters() {
    let mut state = 77;
    for seed in 0..400 {
        let rows = [1, 63, 64, 65, 200, 333][seed as usize % 6];
        let table = table(20_000 + seed, 1 + seed as usize % 6, rows);
        let codes = [None, Some(0), Some(1)][seed as usize % 3];
        let bytes = encoded(&table, rows, codes);
        let area = ColumnArea::parse(&table.schema, dictionary(codes), &bytes).unwrap();
        for column in 0..table.layout.column_count() {
            for null in [true, false] {
                let meets = |row| area.is_null(column, row) == null;
                check(&area, &mut state, |selection| area.select_null(column, null, selection), meets);
            }
            if table.schema.is_int(column) {
                (0..5).for_each(|_| ints(&area, column, &mut state));
            } else {
                strings(&table, &area, column, &mut state);
            }
        }
    }
}

//! All ways to read a column area, against each other, and changes in place.

use pagefold_codec::page::{Bitmap, ColumnArea, IntMembers, PageSchema, Patch, StringValue};
use pagefold_codec::row::Dictionary;
use pagefold_types::RowLayout;
use std::ops::Bound;

/// Strings of a column are read up to so many bytes.
pub const STRING_BYTES_MAX: usize = 1 << 16;

/// What an area is read with.
#[derive(Clone, Copy)]
pub struct Under<'a> {
    /// The records.
    pub layout: &'a RowLayout,
    /// Their columns on pages.
    pub schema: &'a PageSchema,
    /// The dictionary of string codes.
    pub dictionary: Option<&'a Dictionary>,
}

/// The first rows and columns, which are looked at one by one: so many of each.
const ROWS: usize = 100;
const COLUMNS: usize = 20;

/// A selection of rows that has dense and thin blocks.
fn selection(rows: usize, seed: u64) -> Bitmap {
    let mut selection = Bitmap::new(rows, true);
    let step = [1, 2, 3, 40][seed as usize % 4];
    (0..rows).filter(|row| row % step != 0 || (row / 64) % 3 == 2 && row % 29 != 0).for_each(|row| selection.set(row, false));
    selection
}

fn large(area: &ColumnArea<'_>, column: usize) -> Vec<bool> {
    let mut bits = Bitmap::default();
    area.large(column, 0..area.rows(), &mut bits);
    (0..area.rows()).map(|row| bits.get(row)).collect()
}

/// Of an area that was parsed every way to read a column gives the same. `seed` chooses rows and bounds.
pub fn read(under: Under<'_>, area: &ColumnArea<'_>, seed: u64) {
    let rows = area.rows();
    let all = Bitmap::new(rows, true);
    let some = selection(rows, seed);
    for column in 0..under.layout.column_count().min(COLUMNS) {
        let mut valid = Bitmap::default();
        let nulls = area.validity(column, 0..rows, &mut valid);
        assert_eq!((valid.len(), valid.count_ones()), (rows, rows - nulls));
        (0..rows.min(ROWS)).for_each(|row| assert_eq!(area.is_null(column, row), !valid.get(row)));
        for (null, count) in [(true, nulls), (false, rows - nulls)] {
            let mut kept = all.clone();
            area.select_null(column, null, &mut kept);
            assert_eq!(kept.count_ones(), count);
        }
        let mut of_some = Bitmap::default();
        let nulls = area.validity_selected(column, &some, &mut of_some);
        assert!(of_some.len() == some.count_ones() && of_some.count_ones() + nulls == of_some.len());
        assert!(some.ones().enumerate().all(|(i, row)| of_some.get(i) == valid.get(row)));
        let large = large(area, column);
        let mut of_some = Bitmap::default();
        area.large_selected(column, &some, &mut of_some);
        assert!(some.ones().enumerate().all(|(i, row)| of_some.get(i) == large[row]));
        if under.schema.is_int(column) {
            read_ints(area, column, &some, &valid, seed);
        } else {
            read_strings(area, column, &some, &valid, &large, seed);
        }
    }
    read_records(under, area);
}

fn read_ints(area: &ColumnArea<'_>, column: usize, some: &Bitmap, valid: &Bitmap, seed: u64) {
    let rows = area.rows();
    let mut values: Vec<i64> = Vec::new();
    area.ints(column, 0..rows, &mut values);
    let from = seed as usize % rows;
    let mut part: Vec<i64> = Vec::new();
    area.ints(column, from..rows, &mut part);
    assert!(part == values[from..]);
    let mut bits: Vec<f64> = Vec::new();
    area.ints(column, from..rows, &mut bits);
    assert!(bits.iter().zip(&part).all(|(bits, value)| bits.to_bits() == *value as u64));
    let mut of_some: Vec<i64> = Vec::new();
    area.ints_selected(column, some, &mut of_some);
    assert_eq!(of_some.len(), some.count_ones());
    for (value, row) in of_some.iter().zip(some.ones()) {
        assert!(*value == values[row] || !valid.get(row));
    }
    for row in 0..rows.min(ROWS) {
        assert_eq!(area.int(column, row), valid.get(row).then(|| values[row]));
    }
    // Bounds at and beside values that are there.
    let (a, b) = (values[from], values[(seed >> 16) as usize % rows]);
    for range in [a..=b, b..=a, a.saturating_sub(1)..=a.saturating_add(3), i64::MIN..=b, a.saturating_add(1)..=i64::MAX, -5..=1000] {
        let mut kept = some.clone();
        area.select_int(column, range.clone(), &mut kept);
        for row in some.ones() {
            assert_eq!(kept.get(row), valid.get(row) && range.contains(&values[row]), "{range:?}");
        }
    }
    let members = IntMembers::of(vec![a, b, a.saturating_add(3), i64::MAX, -5]);
    let mut kept = some.clone();
    area.select_members(column, &members, &mut kept);
    for row in some.ones() {
        assert_eq!(kept.get(row), valid.get(row) && members.contains(values[row]));
    }
}

fn read_strings(area: &ColumnArea<'_>, column: usize, some: &Bitmap, valid: &Bitmap, large: &[bool], seed: u64) {
    let rows = area.rows();
    let (mut ends, mut bytes) = (vec![3], b"abc".to_vec());
    let done = area.strings(column, 0..rows, &mut ends, &mut bytes, 3 + STRING_BYTES_MAX);
    assert!(bytes.len() <= 3 + STRING_BYTES_MAX && bytes.starts_with(b"abc"));
    assert!(if done.is_ok() { ends.len() == rows + 1 } else { (ends.len(), bytes.len()) == (1, 3) });
    let (mut some_ends, mut some_bytes) = (Vec::new(), Vec::new());
    let some_done = area.strings_selected(column, some, &mut some_ends, &mut some_bytes, STRING_BYTES_MAX);
    let mut buffer = Vec::new();
    if done.is_err() {
        for row in 0..rows.min(ROWS) {
            let _ = area.bytes(column, row, &mut buffer);
        }
        let _ = area.select_bytes_equal(column, b"abc", &mut some.clone());
        let _ = area.select_bytes_range(column, Bound::Excluded(b"a"), Bound::Included(b"x"), &mut some.clone());
        let _ = area.select_bytes(column, |value| value.len() < 9, &mut some.clone());
        return;
    }
    some_done.expect("a part of what can be read");
    let value = |row: usize| &bytes[ends[row] as usize..ends[row + 1] as usize];
    for (i, row) in some.ones().enumerate() {
        let start = if i == 0 { 0 } else { some_ends[i - 1] as usize };
        assert!(some_bytes[start..some_ends[i] as usize] == *value(row));
    }
    for row in 0..rows.min(ROWS) {
        match area.bytes(column, row, &mut buffer) {
            Ok(None) => assert!(!valid.get(row) && value(row).is_empty()),
            Ok(Some(StringValue::Bytes(found))) => assert!(valid.get(row) && !large[row] && found == value(row)),
            Ok(Some(StringValue::Large(found))) => assert!(large[row] && found.to_bytes() == value(row)),
            Err(_) => assert!(large[row], "what is read with the others is read by itself"),
        }
    }
    let wanted = value(seed as usize % rows);
    // CHAR compares as if blanks without end followed.
    let key = |value: &[u8]| value[..value.len() - value.iter().rev().take_while(|b| **b == b' ').count()].to_vec();
    let mut equal = some.clone();
    area.select_bytes_equal(column, wanted, &mut equal).expect("strings that can be read");
    let mut met = some.clone();
    area.select_bytes(column, |value| value == wanted, &mut met).expect("strings that can be read");
    let mut ranged = some.clone();
    area.select_bytes_range(column, Bound::Included(wanted), Bound::Included(wanted), &mut ranged).expect("strings that can be read");
    let mut below = some.clone();
    area.select_bytes_range(column, Bound::Unbounded, Bound::Excluded(wanted), &mut below).expect("strings that can be read");
    let mut above = some.clone();
    area.select_bytes_range(column, Bound::Excluded(wanted), Bound::Unbounded, &mut above).expect("strings that can be read");
    for row in some.ones() {
        let is_equal = valid.get(row) && (large[row] || value(row) == wanted);
        assert_eq!(met.get(row), is_equal);
        assert!(!is_equal || equal.get(row));
        assert!(!equal.get(row) || large[row] || key(value(row)) == key(wanted));
        assert_eq!(equal.get(row), ranged.get(row));
        let sides = [below.get(row), equal.get(row), above.get(row)].map(usize::from).iter().sum::<usize>();
        assert_eq!(
            sides,
            if !valid.get(row) {
                0
            } else if large[row] {
                3
            } else {
                1
            }
        );
    }
}

fn read_records(under: Under<'_>, area: &ColumnArea<'_>) {
    let count = under.layout.column_count();
    let wanted: Vec<usize> = (0..count).filter(|column| column % 3 != 1).collect();
    let (mut record, mut part) = (b"before".to_vec(), b"before".to_vec());
    for row in 0..area.rows().min(ROWS) {
        record.truncate(6);
        part.truncate(6);
        let done = area.record(row, &mut record);
        let some = area.record_columns(row, &wanted, &mut part);
        assert_eq!((record.len(), part.len()), (6 + done.unwrap_or(0), 6 + some.unwrap_or(0)));
        if done.is_err() || under.layout.validate(&record[6..]).is_err() {
            continue;
        }
        some.expect("a part of a valid record");
        for column in &wanted {
            assert_eq!(under.layout.column(&part[6..], *column), under.layout.column(&record[6..], *column));
        }
    }
}

/// Asks for changes of any bytes: what is found lies in the area.
pub fn patch_any(under: Under<'_>, area: &ColumnArea<'_>, bytes: &[u8], rows: usize) {
    let mut patch = Patch::default();
    let check = |found: bool, patch: &Patch| {
        assert!(!found || patch.new.len() == patch.old.len() && bytes[patch.offset..].starts_with(&patch.old));
    };
    for row in 0..area.rows().min(rows) {
        for column in 0..under.layout.column_count().min(COLUMNS) {
            if under.schema.is_int(column) {
                for value in [Some(7), Some(-1), None] {
                    check(area.patch_int(column, row, value, &mut patch), &patch);
                }
            } else {
                for value in [Some(b"abc".as_slice()), Some(b""), None] {
                    check(area.patch_bytes(column, row, value, &mut patch), &patch);
                }
            }
        }
    }
}

/// An encoded area gives its records back; one in the place of another by changes in place leaves the others.
pub fn encoded(under: Under<'_>, bytes: &[u8], records: &[Vec<u8>], seed: u64) {
    let area = ColumnArea::parse(under.schema, under.dictionary, bytes).expect("as encoded");
    assert_eq!(area.rows(), records.len());
    let mut record = Vec::new();
    for (row, expected) in records.iter().enumerate() {
        record.clear();
        area.record(row, &mut record).expect("as encoded");
        assert!(record == *expected, "row {row}: {record:?}, was {expected:?}");
    }
    read(under, &area, seed);
    let (row, other) = (seed as usize % records.len(), (seed >> 16) as usize % records.len());
    let mut patches = Vec::new();
    if !area.patch_record(row, &records[row], &records[other], &mut patches) {
        return;
    }
    let mut changed = bytes.to_vec();
    for patch in &patches {
        let place = patch.offset..patch.offset + patch.new.len();
        assert_eq!(bytes[place.clone()], patch.old);
        changed[place].copy_from_slice(&patch.new);
    }
    let area = ColumnArea::parse(under.schema, under.dictionary, &changed).expect("changed in place");
    for (at, expected) in records.iter().enumerate() {
        record.clear();
        area.record(at, &mut record).expect("changed in place");
        assert!(record == if at == row { &records[other] } else { expected }.as_slice(), "row {at} after a change of row {row} to {other}");
    }
}

//! Damaged and random bytes: refused or read as something, without panics and within bounds.

use std::ops::Bound;

use super::data::{CODES, Table, below, random, table};
use super::round_trip::encoded;
use crate::page::layout::{Entry, Kind};
use crate::page::{Bitmap, ColumnArea, IntMembers, Patch};
use crate::row::Dictionary;
use pagefold_types::RECORD_BYTES_MAX;

/// Everything that reads.
fn read_all(table: &Table, dictionary: Option<&Dictionary>, bytes: &[u8]) -> bool {
    let parsed = ColumnArea::parse(&table.schema, dictionary, bytes);
    // What was not parsed is harmless, too.
    let area = parsed.unwrap_or(ColumnArea::trusted(&table.schema, dictionary, bytes));
    let (mut buffer, mut record, mut patch) = (Vec::new(), vec![1], Patch::default());
    let rows = area.rows();
    for row in (0..rows).step_by(1 + rows / 50) {
        match area.record(row, &mut record) {
            Ok(len) => assert!(len <= RECORD_BYTES_MAX && record.len() == 1 + len),
            Err(_) => assert_eq!(record, [1]),
        }
        record.truncate(1);
    }
    for column in 0..table.schema.column_count() {
        let mut selection = Bitmap::new(rows, true);
        area.select_null(column, false, &mut selection);
        area.validity(column, 0..rows, &mut Bitmap::default());
        area.large(column, 0..rows, &mut Bitmap::default());
        if table.schema.is_int(column) {
            let mut out: Vec<i64> = Vec::new();
            area.ints(column, 0..rows, &mut out);
            assert_eq!(out.len(), rows);
            area.select_int(column, -1000..=100_000, &mut selection);
            area.select_members(column, &IntMembers::of(vec![-1000, 7, 100_000, i64::MIN]), &mut selection);
            for row in (0..rows).step_by(1 + rows / 50) {
                let value = area.int(column, row);
                // A parsed area reads the same either way.
                assert!(parsed.is_err() || value.is_none_or(|value| value == out[row]));
                area.patch_int(column, row, Some(5), &mut patch);
                area.patch_int(column, row, None, &mut patch);
            }
            continue;
        }
        let (mut ends, mut out) = (Vec::new(), Vec::new());
        if area.strings(column, 0..rows, &mut ends, &mut out, 100_000).is_ok() {
            assert!(out.len() <= 100_000 && ends.len() == rows);
        }
        let _ = area.select_bytes_equal(column, b"always", &mut selection);
        let _ = area.select_bytes_range(column, Bound::Included(b"a"), Bound::Excluded(b"m"), &mut selection);
        let _ = area.select_bytes(column, |bytes| bytes.len() < 6, &mut selection);
        for row in (0..rows).step_by(1 + rows / 50) {
            let _ = area.bytes(column, row, &mut buffer);
            area.patch_bytes(column, row, Some(b"always"), &mut patch);
            area.patch_bytes(column, row, None, &mut patch);
        }
    }
    parsed.is_ok()
}

/// A dictionary of a column with more values than rows, which take no bytes when they are 0 bits wide.
#[test]
fn dictionaries_larger_than_the_page() {
    let (mut ints, mut strings) = (0, 0);
    for seed in 0..60 {
        let rows = 90;
        let table = table(90_000 + seed, 5, rows);
        let bytes = encoded(&table, rows, Some(0));
        for column in 0..table.schema.column_count() {
            let entry = Entry::read(&bytes, column);
            let (count, width) = match entry.known_kind() {
                Some(Kind::Dictionary) => (entry.outside() + 10, entry.outside() + 12),
                Some(kind) if kind.is_string_dictionary() => (entry.outside() + 14, entry.outside() + 16),
                _ => continue,
            };
            *(if entry.known_kind() == Some(Kind::Dictionary) { &mut ints } else { &mut strings }) += 1;
            let mut damaged = bytes.clone();
            damaged[width] = 0;
            damaged[count..count + 2].copy_from_slice(&(rows as u16).to_le_bytes());
            assert!(ColumnArea::parse(&table.schema, Some(&CODES[0].0), &damaged).is_ok());
            damaged[count..count + 2].copy_from_slice(&(rows as u16 + 1).to_le_bytes());
            assert!(ColumnArea::parse(&table.schema, Some(&CODES[0].0), &damaged).is_err());
        }
    }
    assert!(ints > 0 && strings > 0, "{ints} {strings}");
}

#[test]
fn damaged_areas() {
    let (mut state, mut accepted, mut refused) = (3, 0, 0);
    for seed in 0..120 {
        let rows = [1, 10, 40, 90][seed as usize % 4];
        let table = table(80_000 + seed, 1 + seed as usize % 5, rows);
        let which = seed as usize % 2;
        let bytes = encoded(&table, rows, Some(which));
        let directory = bytes.len().min(6 + 8 * table.schema.column_count() + 20 * table.schema.column_count());
        for round in 0..120 {
            let mut damaged = bytes.clone();
            for _ in 0..1 + round % 3 {
                // Mostly what leads to other parts.
                let limit = if round % 4 == 0 { bytes.len() } else { directory };
                let at = below(&mut state, limit as u64) as usize;
                damaged[at] = if round % 2 == 0 { random(&mut state) as u8 } else { damaged[at] ^ 1 << below(&mut state, 8) };
            }
            if round % 20 == 0 {
                damaged.truncate(below(&mut state, damaged.len() as u64) as usize);
            }
            let ok = read_all(&table, Some(&CODES[which].0), &damaged);
            accepted += usize::from(ok);
            refused += usize::from(!ok);
            if round % 30 == 0 {
                read_all(&table, None, &damaged);
            }
        }
    }
    assert!(accepted > 500 && refused > 500, "{accepted} {refused}");
}

#[test]
fn random_bytes() {
    let mut state = 4;
    for seed in 0..2000 {
        let table = table(90_000 + seed % 50, 1 + seed as usize % 4, 1);
        let mut bytes: Vec<u8> = (0..below(&mut state, 400)).map(|_| random(&mut state) as u8).collect();
        let header = [1 + below(&mut state, 200) as u16, table.schema.column_count() as u16, bytes.len() as u16];
        for (to, word) in bytes.chunks_exact_mut(2).zip(header) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        read_all(&table, Some(&CODES[1].0), &bytes);
    }
}

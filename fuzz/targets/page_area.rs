//! A column area under any schema: refused or read, within bounds; what it gives encodes again.
#![no_main]

use std::ops::Bound;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use pagefold_codec::page::{Bitmap, ColumnArea, PageEncoder, PageSchema, Patch};
use pagefold_codec::row::{Dictionary, Encoder};
use pagefold_fuzz::input::Input;
use pagefold_fuzz::schema;
use pagefold_types::RowLayout;

/// Few tokens, so that there are codes without one.
static CODES: LazyLock<(Dictionary, Arc<Encoder>)> = LazyLock::new(|| {
    let tokens: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).chain([b"ab".to_vec(), b"abc".to_vec(), vec![b'x'; 32]]).collect();
    let dictionary = Dictionary::from_tokens(&tokens).expect("a dictionary");
    let encoder = Arc::new(Encoder::new(&dictionary));
    (dictionary, encoder)
});

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let Some(schema) = schema::take(&mut input) else { return };
    let Ok(layout) = RowLayout::new(&schema) else { return };
    let page_schema = Arc::new(PageSchema::new(&layout));
    let dictionary = (input.byte() & 1 == 0).then_some(&CODES.0);
    let mut bytes = input.rest().to_vec();
    let len = bytes.len();
    // What a fuzzer hardly finds: numbers of columns and bytes.
    for (to, word) in bytes.chunks_exact_mut(2).skip(1).zip([layout.column_count() as u16, len as u16]) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    let parsed = ColumnArea::parse(&page_schema, dictionary, &bytes);
    let area = parsed.unwrap_or(ColumnArea::trusted(&page_schema, dictionary, &bytes));
    let rows = area.rows();
    let (mut record, mut buffer, mut patch) = (Vec::new(), Vec::new(), Patch::default());
    let mut encoder = PageEncoder::new(page_schema.clone(), dictionary.map(|_| CODES.1.clone()));
    for row in 0..rows.min(100) {
        record.clear();
        if area.record(row, &mut record).is_ok() && layout.validate(&record).is_ok() {
            encoder.push(&record).expect("a valid record");
        }
    }
    for column in 0..layout.column_count().min(20) {
        let mut selection = Bitmap::new(rows, true);
        let nulls = area.validity(column, 0..rows, &mut Bitmap::default());
        area.select_null(column, false, &mut selection);
        assert_eq!(selection.count_ones(), rows - nulls);
        area.large(column, 0..rows, &mut Bitmap::default());
        if page_schema.is_int(column) {
            let mut values: Vec<i64> = Vec::new();
            area.ints(column, 0..rows, &mut values);
            area.select_int(column, -5..=1000, &mut selection);
            for row in 0..rows.min(100) {
                if let (Some(value), true) = (area.int(column, row), parsed.is_ok()) {
                    assert_eq!(values[row], value);
                    assert_eq!(selection.get(row), (-5..=1000).contains(&value));
                }
                area.patch_int(column, row, Some(7), &mut patch);
                area.patch_int(column, row, None, &mut patch);
            }
        } else {
            let (mut ends, mut strings) = (Vec::new(), Vec::new());
            if area.strings(column, 0..rows, &mut ends, &mut strings, 1 << 16).is_ok() {
                assert!(ends.len() == rows && strings.len() <= 1 << 16);
            }
            let _ = area.select_bytes_equal(column, b"abc", &mut selection);
            let _ = area.select_bytes_range(column, Bound::Excluded(b"a"), Bound::Included(b"x"), &mut selection);
            let _ = area.select_bytes(column, |value| value.len() < 9, &mut selection);
            for row in 0..rows.min(100) {
                let _ = area.bytes(column, row, &mut buffer);
                area.patch_bytes(column, row, Some(b"abc"), &mut patch);
                area.patch_bytes(column, row, None, &mut patch);
            }
        }
    }
    let held = encoder.rows();
    if held == 0 {
        return;
    }
    let len = encoder.len_of(held);
    let mut again = Vec::new();
    if encoder.encode(held, &mut again).is_none() {
        return;
    }
    assert_eq!(again.len(), len);
    let area = ColumnArea::parse(&page_schema, dictionary, &again).expect("as encoded");
    for row in 0..held {
        record.clear();
        area.record(row, &mut record).expect("as encoded");
        layout.validate(&record).expect("as pushed");
    }
});

//! A column area under any schema: refused or read, within bounds; every way to read it gives the same; what it gives encodes again.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use pagefold_codec::page::{ColumnArea, PageEncoder, PageSchema};
use pagefold_codec::row::{Dictionary, Encoder};
use pagefold_fuzz::area::{self, Under};
use pagefold_fuzz::input::Input;
use pagefold_fuzz::schema;
use pagefold_types::{RowLayout, Schema};

/// Few tokens, so that there are codes without one.
static CODES: LazyLock<(Dictionary, Arc<Encoder>)> = LazyLock::new(|| {
    let tokens: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).chain([b"ab".to_vec(), b"abc".to_vec(), vec![b'x'; 32]]).collect();
    let dictionary = Dictionary::from_tokens(&tokens).expect("a dictionary");
    let encoder = Arc::new(Encoder::new(&dictionary));
    (dictionary, encoder)
});

/// Rows that are encoded again: choosing encodings takes long.
const ENCODED: usize = 30;

/// Reads everything of bytes that were refused, or of a few rows: no harm is done.
fn probe(under: Under<'_>, area: &ColumnArea<'_>) {
    let rows = area.rows().min(40);
    let mut buffer = Vec::new();
    for row in 0..rows {
        let _ = area.record(row, &mut buffer);
        for column in 0..under.layout.column_count().min(20) {
            if under.schema.is_int(column) {
                let _ = area.int(column, row);
            } else {
                let _ = area.bytes(column, row, &mut buffer);
            }
        }
        buffer.clear();
    }
    for column in 0..under.layout.column_count().min(20) {
        if under.schema.is_int(column) {
            area.ints(column, 0..rows, &mut Vec::<i64>::new());
        } else {
            let _ = area.strings(column, 0..rows, &mut Vec::new(), &mut buffer, area::STRING_BYTES_MAX);
        }
    }
    let _ = area.encodings().count();
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let Some(schema): Option<Schema> = schema::take(&mut input) else { return };
    let Ok(layout) = RowLayout::new(&schema) else { return };
    let page_schema = Arc::new(PageSchema::new(&layout));
    let dictionary = (input.byte() & 1 == 0).then_some(&CODES.0);
    let seed = u64::from(input.u32());
    let mut bytes = input.rest().to_vec();
    let len = bytes.len();
    // What a fuzzer hardly finds: numbers of columns and bytes.
    for (to, word) in bytes.chunks_exact_mut(2).skip(1).zip([layout.column_count() as u16, len as u16]) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    let under = Under { layout: &layout, schema: &page_schema, dictionary };
    let Ok(area) = ColumnArea::parse(&page_schema, dictionary, &bytes) else {
        let area = ColumnArea::trusted(&page_schema, dictionary, &bytes);
        probe(under, &area);
        return area::patch_any(under, &area, &bytes, 2);
    };
    probe(under, &area);
    area::read(under, &area, seed);
    area::patch_any(under, &area, &bytes, 8);

    let mut encoder = PageEncoder::new(page_schema.clone(), dictionary.map(|_| CODES.1.clone()));
    let mut records = Vec::new();
    for row in 0..area.rows().min(ENCODED) {
        let mut record = Vec::new();
        if area.record(row, &mut record).is_ok() && layout.validate(&record).is_ok() {
            encoder.push(&record).expect("a valid record");
            records.push(record);
        }
    }
    if records.is_empty() {
        return;
    }
    let len = encoder.len_of(records.len());
    let mut again = Vec::new();
    if encoder.encode(records.len(), &mut again).is_some() {
        assert_eq!(again.len(), len);
        area::encoded(under, &again, &records, seed);
    }
});

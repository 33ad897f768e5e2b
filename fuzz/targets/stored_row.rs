//! Stored rows of every form under any schema: plain, compact, codes of both types of dictionary, rows of a column part; whole and some columns.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_codec::row::{Dictionary, HuffmanCodes, HuffmanDictionary, RowDictionary};
use pagefold_format::data::forms::{COMPACT, RecordDecoder, RecordEncoder, body};
use pagefold_format::data::{Body, ColumnPart};
use pagefold_fuzz::input::Input;
use pagefold_fuzz::schema;
use pagefold_types::{CompactLayout, RowLayout};
use std::sync::LazyLock;

const PAGE_BYTES: usize = 4096;

/// One of each type, and what encodes with it: all there can be of tokens, so that few codes are wrong.
static MADE: LazyLock<[(RowDictionary, RecordEncoder); 2]> = LazyLock::new(|| {
    let mut tokens: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).collect();
    tokens.extend((256..4096u32).map(|i| [vec![0; i as usize % 7], i.to_be_bytes()[2..].to_vec(), vec![b'x'; i as usize % 5]].concat()));
    tokens.sort();
    tokens.dedup();
    let tokens = Dictionary::from_tokens(&tokens).expect("a dictionary");
    let counts: Vec<u32> = (0..tokens.token_count() as u32).map(|i| 1 << (i % 20)).collect();
    let huffman = HuffmanDictionary::new(tokens.clone(), HuffmanCodes::from_counts(&counts)).expect("a code for each token");
    [RowDictionary::Fixed(tokens), RowDictionary::Huffman(huffman)].map(|dictionary| {
        let encoder = RecordEncoder::codes(1, &dictionary);
        (dictionary, encoder)
    })
});

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let Some(schema) = schema::take(&mut input) else { return };
    let Ok(layout) = RowLayout::new(&schema) else { return };
    let flags = input.byte();
    let (form, number) = (input.u16(), input.byte());
    let columns: Vec<usize> = (0..usize::from(number >> 5)).map(|_| usize::from(input.byte())).collect();
    let stored = input.rest();
    let decoder = RecordDecoder::new(&layout, PAGE_BYTES);
    let made = &MADE[usize::from(flags & 1)];
    let dictionary = (flags & 2 == 0).then_some(&made.0);
    let row = match flags >> 2 & 3 {
        0 => Body::Compressed { version: COMPACT, codes: stored },
        1 => Body::Compressed { version: 1 | form & 0x8000, codes: stored },
        2 => Body::Column { part: ColumnPart::new(stored), row: form % 300 },
        _ => body(form, stored, stored),
    };
    let mut out = vec![0xA5; usize::from(flags >> 4)];
    let (mut some, mut changed) = (Vec::new(), Vec::new());
    let decoded = decoder.decode(row, dictionary, &mut out);
    if let Ok(record) = decoded {
        assert!(matches!(row, Body::Plain(_)) || record.len() <= PAGE_BYTES, "a record of {} bytes", record.len());
    }
    // A compact record whose sums are wrong has all its values, but by itself a column is looked for elsewhere.
    let sound = match row {
        Body::Compressed { version: COMPACT, codes } => CompactLayout::new(layout.clone()).validate(codes).is_ok(),
        _ => true,
    };
    let valid = decoded.ok().filter(|record| layout.validate(record).is_ok());
    if let Some(wanted) = decoder.wanted(&columns) {
        let part = decoder.decode_columns(row, dictionary, Some(&wanted), &mut some);
        if let Ok(part) = &part {
            assert!(matches!(row, Body::Plain(_)) || part.len() <= PAGE_BYTES + 8);
        }
        if let Some(record) = valid.filter(|_| sound) {
            let part = part.expect("a part of a valid record");
            for column in columns {
                assert_eq!(layout.column(part, column), layout.column(record, column), "column {column}");
            }
        }
    }
    let Some(record) = valid.filter(|record| record.len() <= PAGE_BYTES) else { return };
    let compact = RecordEncoder::compact(CompactLayout::new(layout.clone()));
    for (encoder, dictionary) in [(&compact, None), (&made.1, Some(&made.0))] {
        changed.clear();
        let form = encoder.append(record, &mut changed);
        assert_eq!(form == 0, changed.is_empty());
        let again = body(form, record, &changed);
        assert_eq!(decoder.decode(again, dictionary, &mut some).expect("as encoded"), record);
        // As if this row came from another that is stored: what comes is the same row, whatever the codes there.
        let mut other = Vec::new();
        let form = encoder.append_changed(record, again, record, &mut other);
        assert_eq!(decoder.decode(body(form, record, &other), dictionary, &mut some).expect("as encoded"), record);
    }
});

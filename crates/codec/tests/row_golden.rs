//! Bytes that earlier versions wrote. Files are added, never edited.

use pagefold_codec::row::{Dictionary, Encoder};

const DICTIONARY: &[u8] = include_bytes!("golden/row_dictionary_v1.bin");
const ROWS: &[u8] = include_bytes!("golden/rows_v1.bin");

fn tokens() -> Vec<Vec<u8>> {
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    tokens.extend(
        ["ab", "abc", "abcd", "bcdefgh", "DELIVER IN PERSON", "exactly fifteen", "sixteen   bytes ", "sixteen   bytes and"].map(Into::into),
    );
    tokens.push(vec![0; 32]);
    tokens.push([&[0; 31][..], &[1]].concat());
    tokens
}

const GOLDEN_ROWS: [&[u8]; 4] = [b"abcdefghabcabcd", b"DELIVER IN PERSON", &[0; 99], b"sixteen   bytes and exactly fifteen abcd"];

#[test]
fn dictionary_v1() {
    let dictionary = Dictionary::from_tokens(&tokens()).unwrap();
    assert_eq!(dictionary.to_bytes(), DICTIONARY);
    let read = Dictionary::from_bytes(DICTIONARY).unwrap();
    assert!(read.tokens().eq(dictionary.tokens()));
}

/// Each row: length (1 byte), compressed bytes. Decoding must always give the rows; an encoder may do better one day.
#[test]
fn rows_v1() {
    let dictionary = Dictionary::from_bytes(DICTIONARY).unwrap();
    let encoder = Encoder::new(&dictionary);
    let mut rest = ROWS;
    for row in GOLDEN_ROWS {
        let (&len, after) = rest.split_first().unwrap();
        let (compressed, after) = after.split_at(usize::from(len));
        rest = after;
        let mut out = Vec::new();
        dictionary.decode(compressed, &mut out, row.len()).unwrap();
        assert_eq!(out, row);
        let mut encoded = Vec::new();
        assert!(encoder.encode(row, &mut encoded).unwrap() <= compressed.len());
    }
    assert!(rest.is_empty());
}

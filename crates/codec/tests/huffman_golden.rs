//! Bytes of method `huffman` that earlier versions wrote. Files are added, never edited.

use pagefold_codec::row::{Dictionary, HuffmanCodes, HuffmanDictionary, HuffmanEncoder, RowDictionary};

const DICTIONARY: &[u8] = include_bytes!("golden/huffman_dictionary_v1.bin");
const ROWS: &[u8] = include_bytes!("golden/huffman_rows_v1.bin");

/// The tokens of the golden dictionary of type F, and frequencies for them: 267, so that the last code length stands alone in its byte.
fn dictionary() -> HuffmanDictionary {
    let fixed = Dictionary::from_bytes(include_bytes!("golden/row_dictionary_v1.bin")).expect("a dictionary");
    let tokens: Vec<&[u8]> = fixed.tokens().chain([&b"sixteen"[..]]).collect();
    let tokens = Dictionary::from_tokens(&tokens).expect("a dictionary");
    let counts: Vec<u32> =
        tokens.tokens().map(|token| if token.len() > 1 { 100 << (token.len() % 13) } else { u32::from(token[0]) / 8 }).collect();
    HuffmanDictionary::new(tokens, HuffmanCodes::from_counts(&counts)).expect("a dictionary")
}

const GOLDEN_ROWS: [&[u8]; 5] =
    [b"abcdefghabcabcd", b"DELIVER IN PERSON", &[0; 99], b"sixteen   bytes and exactly fifteen abcd", b"sixteen sixteen zebras"];

#[test]
fn dictionary_v1() {
    assert_eq!(dictionary().to_bytes(), DICTIONARY);
    let RowDictionary::Huffman(read) = RowDictionary::from_bytes(DICTIONARY).unwrap() else { panic!("type H") };
    assert!(read.tokens().tokens().eq(dictionary().tokens().tokens()));
    assert_eq!(read.codes(), dictionary().codes());
    let RowDictionary::Fixed(_) = RowDictionary::from_bytes(include_bytes!("golden/row_dictionary_v1.bin")).unwrap() else {
        panic!("type F")
    };
}

/// Each row: length (1 byte), compressed bytes. Decoding must always give the rows; an encoder may do better one day.
#[test]
fn rows_v1() {
    let RowDictionary::Huffman(dictionary) = RowDictionary::from_bytes(DICTIONARY).unwrap() else { panic!("type H") };
    let encoder = HuffmanEncoder::new(&dictionary);
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

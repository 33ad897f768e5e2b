//! The row dictionary of either type in serial form, and rows of Huffman codes: the way with AVX and the one without give the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_codec::row::{DECODE_SLACK, Dictionary, HuffmanCodes, HuffmanDictionary, HuffmanEncoder, RowDictionary};
use pagefold_fuzz::input::Input;
use std::sync::LazyLock;

/// Few tokens with code words of all lengths; and all there can be, most of them long, with code words of 12 bits.
static MADE: LazyLock<[Made; 2]> = LazyLock::new(|| {
    [300, 4096u16].map(|count| {
        let mut tokens: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).collect();
        tokens.extend((256..count).map(|i| {
            let len = if count == 300 { 2 + i % 31 } else { 32 - i % 9 };
            i.to_be_bytes().into_iter().chain([b'x'; 30]).take(usize::from(len)).collect()
        }));
        let counts: Vec<u32> = (0..u32::from(count)).map(|i| if count == 300 { 1 << (i % 25) } else { 1 }).collect();
        let tokens = Dictionary::from_tokens(&tokens).expect("a dictionary");
        let dictionary = HuffmanDictionary::new(tokens, HuffmanCodes::from_counts(&counts)).expect("a code for each token");
        let encoder = HuffmanEncoder::new(&dictionary);
        Made { encoder: Some(encoder), ..Made::of(dictionary) }
    })
});

/// A dictionary, and what is derived from it.
struct Made {
    narrow: HuffmanDictionary,
    dictionary: HuffmanDictionary,
    encoder: Option<HuffmanEncoder>,
    reference: Reference,
}

impl Made {
    fn of(dictionary: HuffmanDictionary) -> Made {
        let reference = Reference::of(&dictionary);
        Made { narrow: dictionary.clone().without_wide_copies(), dictionary, encoder: None, reference }
    }
}

/// The code words by the format's description: numbered by length, then token.
struct Reference {
    by_rank: Vec<u16>,
    /// Where each word begins as a fraction of 2^16: they follow one another.
    starts: Vec<u32>,
}

impl Reference {
    fn of(dictionary: &HuffmanDictionary) -> Reference {
        let lens = dictionary.codes().lens();
        let mut by_rank: Vec<u16> = (0..lens.len() as u16).collect();
        by_rank.sort_by_key(|token| lens[usize::from(*token)]);
        let starts = by_rank.iter().scan(0, |at, token| {
            let start = *at;
            *at += 1 << (16 - u32::from(lens[usize::from(*token)]));
            Some(start)
        });
        let starts = starts.collect();
        Reference { by_rank, starts }
    }
}

/// The row by the format's description: code words, and up to seven ones behind the last.
fn decoded(Made { dictionary, reference: Reference { by_rank, starts }, .. }: &Made, bytes: &[u8]) -> Option<Vec<u8>> {
    let lens = dictionary.codes().lens();
    let bit = |i: usize| bytes.get(i / 8).map_or(1, |b| u32::from(b >> (7 - i % 8) & 1));
    let (mut row, mut at, end) = (Vec::new(), 0, bytes.len() * 8);
    while end - at > 7 || (at..end).any(|i| bit(i) == 0) {
        let next = (at..at + 16).fold(0, |bits, i| bits << 1 | bit(i));
        let token = by_rank[starts.partition_point(|start| *start <= next) - 1];
        at += usize::from(lens[usize::from(token)]);
        if at > end {
            return None;
        }
        row.extend_from_slice(dictionary.tokens().token(token));
    }
    Some(row)
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    // Rows of no more than a page or two: longer ones take long and show nothing else.
    let cap = usize::from(input.u16()) % 9000;
    let (need, which) = (usize::from(input.byte()), input.byte());
    let row = input.chunk();
    let changed = input.chunk();
    let read = if which % 3 == 1 { RowDictionary::from_bytes(input.rest()).ok() } else { None };
    let parsed;
    let made = match read {
        Some(RowDictionary::Huffman(dictionary)) => {
            let again = RowDictionary::from_bytes(&dictionary.to_bytes()).expect("as written");
            assert!(again.tokens().tokens().eq(dictionary.tokens().tokens()) && again.codes() == Some(dictionary.codes()));
            // What it takes to encode is not from disk, and takes long to make.
            let encoder = (which < 32).then(|| HuffmanEncoder::new(&dictionary));
            parsed = Made { encoder, ..Made::of(dictionary) };
            &parsed
        }
        _ => &MADE[usize::from(which % 3) / 2],
    };
    let Made { narrow, dictionary, encoder, .. } = made;
    let expected = decoded(made, row).filter(|row| row.len() <= cap);

    let mut out = b"before".to_vec();
    assert_eq!(dictionary.decode(row, &mut out, cap).ok(), expected.as_ref().map(Vec::len));
    assert!(out.starts_with(b"before") && out[6..] == *expected.as_deref().unwrap_or_default());
    let mut buffer = vec![0; cap + DECODE_SLACK];
    assert_eq!(dictionary.decode_into(row, &mut buffer, cap).ok(), expected.as_ref().map(Vec::len));
    let mut narrow_out = b"before".to_vec();
    assert_eq!(narrow.decode(row, &mut narrow_out, cap).ok(), expected.as_ref().map(Vec::len));
    assert_eq!(narrow_out, out, "the ways to copy differ");
    let (mut many, mut ends) = (vec![0xA5; usize::from(which)], vec![7]);
    assert_eq!(dictionary.decode_many(&[row, changed, row], &mut many, &mut ends, cap).is_ok(), ends.len() == 3);
    assert_eq!(ends.is_empty(), expected.is_none());
    assert!(many.len() <= usize::from(which).max(3 * (cap + DECODE_SLACK)));
    let Some(expected) = expected else { return };
    assert!(ends[0] == expected.len() && many[..ends[0]] == expected);
    if let [_, second, third] = ends[..] {
        assert!(many[second..third] == expected);
    }
    assert_eq!(buffer[..expected.len()], expected);
    let n = dictionary.decode_prefix(row, &mut buffer, cap, need).expect("no longer than all");
    assert!(n >= need.min(expected.len()) && buffer[..n] == expected[..n]);
    assert_eq!(narrow.decode_prefix(row, &mut buffer, cap, need), Ok(n));
    assert_eq!(buffer[..n], expected[..n]);
    let Some(encoder) = encoder.as_ref().filter(|_| expected.len() + changed.len() < 1500) else { return };
    for (codes, row) in [(None, &*expected), (Some(row), changed)] {
        let mut again = Vec::new();
        let len = match codes {
            Some(codes) => encoder.reencode(&expected, codes, row, &mut again),
            None => encoder.encode(row, &mut again),
        };
        if len.is_some() {
            let mut back = Vec::new();
            assert_eq!(dictionary.decode(&again, &mut back, row.len()), Ok(row.len()));
            assert_eq!(back, row);
        }
    }
});

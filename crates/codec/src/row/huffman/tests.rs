//! The decoder against a slow one that looks for code words bit by bit, on good and on hostile bytes; and the other units together.

use std::collections::HashMap;

use proptest::prelude::*;

use super::codes::PADDING_BITS_MAX;
use super::*;
use crate::CodecError;
use crate::row::tests::{log_rows, random, random_dictionary};
use crate::row::{DECODE_SLACK, Dictionary, DictionaryType, RowSample, TrainOptions};

/// Codes of random frequencies, the more different the greater `skew`.
pub(super) fn random_codes(count: usize, skew: usize, state: &mut u64) -> HuffmanCodes {
    let mut frequency = || {
        let below = 1 << random(state, skew);
        random(state, below) as u32
    };
    let counts: Vec<u32> = (0..count).map(|_| frequency()).collect();
    HuffmanCodes::from_counts(&counts)
}

fn random_huffman(count: usize, len_max: usize, alphabet: usize, skew: usize, state: &mut u64) -> HuffmanDictionary {
    let tokens = random_dictionary(count, len_max, alphabet, state);
    let codes = random_codes(tokens.token_count(), skew, state);
    HuffmanDictionary::new(tokens, codes).unwrap()
}

/// Tokens by length and bits of their code words.
type ByWord = HashMap<(u8, u16), u16>;

fn by_word(dictionary: &HuffmanDictionary) -> ByWord {
    let words = dictionary.codes().words();
    (0..dictionary.tokens().token_count() as u16)
        .map(|token| (words[usize::from(token)], token))
        .map(|(w, token)| ((w.len, w.bits), token))
        .collect()
}

/// The tokens of `compressed`, or nothing if it is not whole code words and up to seven ones.
fn reference_tokens(by_word: &ByWord, compressed: &[u8]) -> Option<Vec<u16>> {
    let bits: Vec<bool> = compressed.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1)).collect();
    let (mut tokens, mut at) = (Vec::new(), 0);
    while bits.len() - at > PADDING_BITS_MAX as usize || bits[at..].iter().any(|&bit| !bit) {
        let (mut word, mut len) = (0, 0);
        loop {
            word = word << 1 | u16::from(*bits.get(at)?);
            (at, len) = (at + 1, len + 1);
            if let Some(&token) = by_word.get(&(len, word)) {
                tokens.push(token);
                break;
            }
        }
    }
    Some(tokens)
}

/// The same dictionary for a processor like this one, and for one that lacks what this one may have.
struct Variants {
    dictionaries: [HuffmanDictionary; 2],
    by_word: ByWord,
}

impl Variants {
    fn new(dictionary: HuffmanDictionary) -> Self {
        let by_word = by_word(&dictionary);
        Self { dictionaries: [dictionary.clone().without_wide_copies(), dictionary], by_word }
    }

    fn reference(&self, compressed: &[u8]) -> Option<Vec<u8>> {
        let tokens = reference_tokens(&self.by_word, compressed)?;
        Some(tokens.iter().flat_map(|&token| self.dictionaries[0].tokens().token(token)).copied().collect())
    }

    /// Checks all decoders on `compressed` with a cap of `cap`.
    fn check(&self, compressed: &[u8], cap: usize) {
        let whole = self.reference(compressed);
        for dictionary in &self.dictionaries {
            check_one(dictionary, compressed, cap, whole.as_deref());
        }
    }

    /// Checks them with caps around the length of the row, if it is one.
    fn check_around(&self, compressed: &[u8]) {
        let natural = self.reference(compressed).map_or(compressed.len() * 3, |row| row.len());
        for cap in [0, 1, natural.saturating_sub(1), natural, natural + 1, natural + 1000] {
            self.check(compressed, cap);
        }
    }
}

fn check_one(dictionary: &HuffmanDictionary, compressed: &[u8], cap: usize, whole: Option<&[u8]>) {
    let expected = whole.filter(|row| row.len() <= cap);
    let mut appended = vec![1, 2, 3];
    let decoded = dictionary.decode(compressed, &mut appended, cap);
    assert_eq!(decoded.ok(), expected.map(<[u8]>::len));
    assert_eq!(appended[..3], [1, 2, 3]);
    assert_eq!(&appended[3..], expected.unwrap_or_default());

    // What follows the slack must stay untouched.
    const GUARD: usize = 64;
    let mut buffer = vec![0xa5; cap + DECODE_SLACK + GUARD];
    let (out, guard) = buffer.split_at_mut(cap + DECODE_SLACK);
    assert_eq!(dictionary.decode_into(compressed, out, usize::MAX).ok(), expected.map(<[u8]>::len));
    if let Some(row) = expected {
        assert_eq!(&out[..row.len()], row);
    }
    for need in [0, 1, cap / 2, cap, whole.map_or(0, <[u8]>::len), cap + 1] {
        out.fill(0);
        match (dictionary.decode_prefix(compressed, out, cap, need), expected) {
            (Ok(done), Some(row)) => {
                assert!(done >= need.min(row.len()) && done <= row.len());
                assert_eq!(out[..done], row[..done]);
            }
            (Ok(done), None) => assert!(done >= need && done <= cap),
            (Err(_), expected) => assert!(expected.is_none()),
        }
    }
    assert!(guard.iter().all(|&byte| byte == 0xa5));
}

/// The length of `row` as stored, after it came back.
fn round_trip(variants: &Variants, encoder: &HuffmanEncoder, row: &[u8]) -> usize {
    let mut out = b"kept".to_vec();
    let len = encoder.encode(row, &mut out);
    assert_eq!(&out[..4], b"kept");
    assert_eq!(encoder.encoded_len(row), len);
    let lens = encoder.encoded_lens(row);
    assert_eq!((lens.plain, lens.fixed), (row.len(), encoder.fixed().encoded_len(row).unwrap_or(row.len())));
    match len {
        Some(len) => {
            assert_eq!((lens.huffman, out.len()), (len, len + 4));
            assert!(len < row.len());
            variants.check(&out[4..], row.len());
            assert_eq!(variants.reference(&out[4..]).as_deref(), Some(row));
        }
        None => assert!(lens.huffman >= row.len() && out.len() == 4),
    }
    len.unwrap_or(row.len())
}

#[test]
#[cfg_attr(miri, ignore = "safe code, slow there")]
fn rows_come_back_smaller_than_with_fixed_codes() {
    let (bytes, ends) = log_rows(3000);
    let sample = RowSample::new(&bytes, &ends).unwrap();
    let dictionary = HuffmanDictionary::train(train(&sample), &sample, &TrainOptions::default());
    let encoder = HuffmanEncoder::new(&dictionary);
    let variants = Variants::new(dictionary);
    let huffman: usize = sample.rows().map(|row| round_trip(&variants, &encoder, row)).sum();
    let fixed: usize = sample.rows().map(|row| encoder.encoded_lens(row).fixed).sum();
    assert!(huffman * 100 < fixed * 95, "{huffman} for {fixed}");
}

fn train(sample: &RowSample<'_>) -> Dictionary {
    crate::row::train(sample, &TrainOptions::default())
}

#[test]
fn other_rows_come_back_and_never_grow() {
    let mut state = 3;
    for skew in [1, 20] {
        let dictionary = random_huffman(if cfg!(miri) { 300 } else { 1000 }, 12, 3, skew, &mut state);
        let encoder = HuffmanEncoder::new(&dictionary);
        let variants = Variants::new(dictionary);
        for len in (0..300).step_by(if cfg!(miri) { 61 } else { 1 }) {
            for alphabet in [1, 2, 40, 256] {
                let row: Vec<u8> = (0..len).map(|_| random(&mut state, alphabet) as u8).collect();
                assert!(round_trip(&variants, &encoder, &row) <= row.len());
            }
        }
    }
}

#[test]
fn hostile_bytes_do_no_harm() {
    let mut state = 11;
    let cases = if cfg!(miri) { &[(300, 20), (4096, 1)][..] } else { &[(256, 1), (257, 24), (1000, 12), (4095, 24), (4096, 1)][..] };
    for &(count, skew) in cases {
        let variants = Variants::new(random_huffman(count, 32, 256, skew, &mut state));
        for len in (0..120).step_by(if cfg!(miri) { 17 } else { 1 }) {
            for round in 0..if cfg!(miri) { 1 } else { 6 } {
                let mut compressed: Vec<u8> = (0..len).map(|_| random(&mut state, 256) as u8).collect();
                // Ones at the end, more of them than padding can be, too.
                let ones = random(&mut state, 20).min(8 * len);
                if round % 2 == 0 {
                    (8 * len - ones..8 * len).for_each(|bit| compressed[bit / 8] |= 0x80 >> (bit % 8));
                }
                variants.check_around(&compressed);
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "safe code, slow there")]
fn damaged_rows_do_no_harm() {
    let mut state = 13;
    let dictionary = random_huffman(700, 9, 3, 12, &mut state);
    let encoder = HuffmanEncoder::new(&dictionary);
    let variants = Variants::new(dictionary);
    for len in 10..150 {
        let row: Vec<u8> = (0..len).map(|_| random(&mut state, 3) as u8).collect();
        let mut stored = Vec::new();
        if encoder.encode(&row, &mut stored).is_none() {
            continue;
        }
        for _ in 0..10 {
            let mut damaged = stored.clone();
            let at = random(&mut state, damaged.len());
            match random(&mut state, 4) {
                0 => damaged.truncate(at),
                1 => damaged.push(0xff),
                _ => damaged[at] ^= 1 << random(&mut state, 8),
            }
            variants.check_around(&damaged);
        }
    }
}

/// What is accepted is what an encoder writes for the same codes: there are no two forms of the same tokens.
#[test]
#[cfg_attr(miri, ignore = "safe code, slow there")]
fn tokens_have_one_form() {
    let mut state = 17;
    let dictionary = random_huffman(300, 4, 256, 20, &mut state);
    let (words, by_word) = (dictionary.codes().words(), by_word(&dictionary));
    let mut accepted = 0;
    for _ in 0..20_000 {
        let compressed: Vec<u8> =
            (0..random(&mut state, 12)).map(|_| random(&mut state, 256) as u8 | random(&mut state, 256) as u8).collect();
        let Some(tokens) = reference_tokens(&by_word, &compressed) else { continue };
        let mut again = Vec::new();
        let mut writer = BitWriter::new(&mut again);
        tokens.iter().for_each(|&token| writer.push(words[usize::from(token)]));
        writer.finish();
        assert_eq!(again, compressed);
        accepted += 1;
    }
    assert!(accepted > 1000);
}

#[test]
fn longest_tokens_fill_the_slack() {
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    tokens.push(vec![9; 32]);
    let tokens = Dictionary::from_tokens(&tokens).unwrap();
    let mut counts = vec![0; 257];
    // The token of 32 bytes gets a code of one bit.
    counts[10] = 1 << 20;
    let dictionary = HuffmanDictionary::new(tokens, HuffmanCodes::from_counts(&counts)).unwrap();
    assert_eq!((dictionary.tokens().token(10).len(), dictionary.codes().lens()[10]), (32, 1));
    let encoder = HuffmanEncoder::new(&dictionary);
    let variants = Variants::new(dictionary);
    for len in (0..2000).step_by(if cfg!(miri) { 331 } else { 1 }) {
        round_trip(&variants, &encoder, &vec![9; len]);
    }
    for len in 0..20 {
        variants.check_around(&vec![0; len]);
    }
}

#[test]
fn decoding_needs_room() {
    let mut state = 19;
    let dictionary = random_huffman(256, 1, 256, 1, &mut state);
    for len in 0..DECODE_SLACK {
        assert!(dictionary.decode_into(&[], &mut vec![0; len], 100).is_err());
    }
    assert_eq!(dictionary.decode_into(&[], &mut [0; DECODE_SLACK], 100), Ok(0));
    assert!(dictionary.decode_into(&[65], &mut [0; DECODE_SLACK], 100).is_err());
    let mut out = [0; DECODE_SLACK + 1];
    assert_eq!(dictionary.decode_into(&[65], &mut out, 100), Ok(1));
    assert_eq!(out[0], 65);
}

#[test]
#[cfg_attr(miri, ignore = "safe code, slow there")]
fn many_rows_at_once() {
    let mut state = 23;
    let dictionary = random_huffman(700, 9, 3, 12, &mut state);
    let encoder = HuffmanEncoder::new(&dictionary);
    let (mut out, mut ends) = (Vec::new(), Vec::new());
    for count in 0..20 {
        let rows: Vec<Vec<u8>> = (0..count).map(|_| vec![random(&mut state, 3) as u8; 20 + random(&mut state, 90)]).collect();
        let stored: Vec<Vec<u8>> = rows
            .iter()
            .map(|row| {
                let mut stored = Vec::new();
                encoder.encode(row, &mut stored).unwrap();
                stored
            })
            .collect();
        let mut slices: Vec<&[u8]> = stored.iter().map(Vec::as_slice).collect();
        dictionary.decode_many(&slices, &mut out, &mut ends, 110).unwrap();
        assert_eq!(ends.len(), count);
        assert_eq!(out[..ends.last().copied().unwrap_or(0)], rows.concat());
        if count > 3 {
            slices[2] = &[0; 300];
            assert!(dictionary.decode_many(&slices, &mut out, &mut ends, 110).is_err());
            assert_eq!(ends.len(), 2);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "safe code, slow there")]
fn no_parse_takes_fewer_bits() {
    let mut state = 29;
    for (count, len_max, alphabet, skew) in [(280, 4, 2, 9), (1500, 9, 3, 20), (4096, 32, 2, 12)] {
        let dictionary = random_huffman(count, len_max, alphabet, skew, &mut state);
        let encoder = HuffmanEncoder::new(&dictionary);
        let words = dictionary.codes().words();
        let tokens: Vec<&[u8]> = dictionary.tokens().tokens().collect();
        for len in [0, 1, 7, 60, 511, 512, 513, 1500] {
            let row: Vec<u8> = (0..len).map(|_| random(&mut state, alphabet) as u8).collect();
            let mut fewest = vec![0; len + 1];
            for start in (0..len).rev() {
                let matching = tokens.iter().zip(words.iter()).filter(|(token, _)| row[start..].starts_with(token));
                fewest[start] = matching.map(|(token, word)| fewest[start + token.len()] + usize::from(word.len)).min().unwrap();
            }
            let mut bits = 0;
            let mut parsed = Vec::new();
            encoder.codes(&row, |token| {
                bits += usize::from(words[usize::from(token)].len);
                parsed.extend_from_slice(tokens[usize::from(token)]);
            });
            assert_eq!(parsed, row);
            assert!(bits >= fewest[0]);
            // Long rows are cut in windows.
            assert!(bits * 1000 <= fewest[0] * if len <= 512 { 1000 } else { 1002 }, "{bits} bits, {} would do", fewest[0]);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "safe code, slow there")]
fn serial_forms_come_back() {
    let mut state = 31;
    for (count, skew) in [(256, 1), (301, 9), (4095, 24), (4096, 12)] {
        let dictionary = random_huffman(count, 20, 256, skew, &mut state);
        let bytes = dictionary.to_bytes();
        let back = RowDictionary::from_bytes(&bytes).unwrap();
        assert_eq!((back.dictionary_type(), back.token_count()), (DictionaryType::Huffman, dictionary.tokens().token_count()));
        assert_eq!(back.to_bytes(), bytes);
        assert_eq!(back.codes(), Some(dictionary.codes()));
        assert!(back.tokens().tokens().eq(dictionary.tokens().tokens()));
        for len in (0..bytes.len()).step_by(bytes.len() / 200 + 1) {
            assert!(RowDictionary::from_bytes(&bytes[..len]).is_err());
        }
        assert!(RowDictionary::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
        assert!(matches!(Dictionary::from_bytes(&bytes), Err(CodecError::Dictionary("type is not F"))));
        let fixed = dictionary.tokens().to_bytes();
        assert_eq!(bytes.len(), fixed.len() + HuffmanCodes::serial_len(dictionary.tokens().token_count()));
        let fixed = RowDictionary::from_bytes(&fixed).unwrap();
        assert_eq!((fixed.dictionary_type(), fixed.codes()), (DictionaryType::Fixed, None));
        assert!(HuffmanDictionary::new(dictionary.tokens().clone(), random_codes(400, 3, &mut state)).is_err());
    }
}

#[test]
#[cfg_attr(miri, ignore = "safe code, slow there")]
fn damaged_serial_forms_do_no_harm() {
    let mut state = 37;
    let bytes = random_huffman(600, 32, 4, 9, &mut state).to_bytes();
    for position in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[position] ^= 1 << random(&mut state, 8);
        if let Ok(RowDictionary::Huffman(dictionary)) = RowDictionary::from_bytes(&damaged) {
            assert!(RowDictionary::from_bytes(&dictionary.to_bytes()).is_ok_and(|again| again.codes() == Some(dictionary.codes())));
            if position % 8 == 0 {
                Variants::new(dictionary).check(&damaged[..200], 5000);
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "safe code, slow there")]
fn training_chooses_what_is_smaller() {
    let (bytes, ends) = log_rows(6000);
    let options = TrainOptions::default();
    let sample = RowSample::new(&bytes, &ends).unwrap();
    let types = |sample: &RowSample<'_>| {
        [DictionaryChoice::Smaller, DictionaryChoice::Fixed, DictionaryChoice::Huffman]
            .map(|choice| train_row_dictionary(sample, &options, choice).dictionary_type())
    };
    assert_eq!(types(&sample), [DictionaryType::Huffman, DictionaryType::Fixed, DictionaryType::Huffman]);
    // The code lengths take more than a few rows save.
    let sample = RowSample::new(&bytes, &ends[..10]).unwrap();
    assert_eq!(types(&sample), [DictionaryType::Fixed, DictionaryType::Fixed, DictionaryType::Huffman]);
    assert_eq!(types(&RowSample::new(&[], &[]).unwrap())[..2], [DictionaryType::Fixed; 2]);
    let again = |_| train_row_dictionary(&sample, &options, DictionaryChoice::Huffman).to_bytes();
    assert_eq!(again(0), again(1));
}

#[test]
#[cfg_attr(miri, ignore = "safe code, slow there")]
fn reencoded_rows_come_back_and_are_nearly_as_short() {
    let mut state = 41;
    for (count, len_max, alphabet, skew) in [(256, 1, 4, 9), (280, 4, 2, 20), (1500, 9, 3, 12), (4096, 32, 256, 1)] {
        let dictionary = random_huffman(count, len_max, alphabet, skew, &mut state);
        let encoder = HuffmanEncoder::new(&dictionary);
        let (mut stored_total, mut full_total) = (0, 0);
        for _ in 0..1500 {
            let mut row: Vec<u8> = (0..random(&mut state, 160)).map(|_| random(&mut state, alphabet) as u8).collect();
            let mut stored = Vec::new();
            let mut known = encoder.encode(&row, &mut stored).is_some();
            for _ in 0..4 {
                let before = row.clone();
                let start = random(&mut state, row.len() + 1);
                let end = start + random(&mut state, row.len() - start + 1).min(random(&mut state, 9));
                let fresh = if random(&mut state, 2) == 0 { end - start } else { random(&mut state, 9) };
                row.splice(start..end, (0..fresh).map(|_| random(&mut state, alphabet) as u8));
                let mut out = b"kept".to_vec();
                let len = if known { encoder.reencode(&before, &stored, &row, &mut out) } else { encoder.encode(&row, &mut out) };
                assert_eq!((&out[..4], len.unwrap_or(0)), (&b"kept"[..], out.len() - 4));
                known = len.is_some();
                let full = encoder.encoded_len(&row);
                assert!(full.is_none() || len.is_some_and(|len| len < row.len()));
                if let (Some(len), Some(full)) = (len, full) {
                    let mut back = Vec::new();
                    assert_eq!(dictionary.decode(&out[4..], &mut back, row.len()), Ok(row.len()));
                    assert_eq!(back, row);
                    (stored_total, full_total) = (stored_total + len, full_total + full);
                }
                stored = out.split_off(4);
            }
        }
        assert!(stored_total * 100 <= full_total * 101, "{stored_total}, {full_total} would do");
    }
}

#[test]
#[cfg_attr(miri, ignore = "safe code, slow there")]
fn codes_of_another_row_do_no_harm() {
    let mut state = 43;
    let dictionary = random_huffman(700, 6, 3, 12, &mut state);
    let encoder = HuffmanEncoder::new(&dictionary);
    for _ in 0..20_000 {
        let [before, codes, row] = [3, 256, 3].map(|alphabet| {
            let len = random(&mut state, 60);
            (0..len).map(|_| random(&mut state, alphabet) as u8).collect::<Vec<_>>()
        });
        let mut out = Vec::new();
        let len = encoder.reencode(&before, &codes, &row, &mut out);
        assert_eq!(len.unwrap_or(0), out.len());
        assert!(out.len() <= row.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[cfg_attr(miri, ignore = "safe code, slow there")]
    fn any_rows_come_back(rows in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..30), repeats in 1_usize..6) {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for row in rows.iter().flat_map(|row| std::iter::repeat_n(row, repeats)) {
            bytes.extend_from_slice(row);
            ends.push(bytes.len() as u32);
        }
        let sample = RowSample::new(&bytes, &ends).unwrap();
        let dictionary = train_row_dictionary(&sample, &TrainOptions::default(), DictionaryChoice::Huffman);
        let Ok(RowDictionary::Huffman(dictionary)) = RowDictionary::from_bytes(&dictionary.to_bytes()) else { panic!("type H") };
        let encoder = HuffmanEncoder::new(&dictionary);
        let variants = Variants::new(dictionary);
        for row in &rows {
            prop_assert!(round_trip(&variants, &encoder, row) <= row.len());
            round_trip(&variants, &encoder, &row.iter().rev().copied().collect::<Vec<_>>());
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "safe code, slow there")]
    fn any_bytes_are_safe_to_read_as_dictionary(mut bytes in prop::collection::vec(any::<u8>(), 0..3000), version in any::<bool>()) {
        if version && bytes.len() >= 4 {
            bytes[..2].copy_from_slice(&[1, 1]);
            bytes[3] = 1;
        }
        let _ = RowDictionary::from_bytes(&bytes);
    }
}

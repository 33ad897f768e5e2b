//! The decoder against a slow one made of slices only, on good and on hostile bytes; and the other units together.

use proptest::prelude::*;

use super::decode::unpack;
use super::*;

/// The row of `compressed`, or nothing if a code has no token or the length is wrong.
fn reference(dictionary: &Dictionary, compressed: &[u8]) -> Option<Vec<u8>> {
    let codes = code_count(compressed.len())?;
    if codes % 2 == 1 && compressed[compressed.len() - 1] >> 4 != 0 {
        return None;
    }
    let mut row = Vec::new();
    for code in unpack(compressed) {
        let token = dictionary.token(code);
        if token.is_empty() {
            return None;
        }
        row.extend_from_slice(token);
    }
    Some(row)
}

/// Checks all decoders on `compressed` with a cap of `cap`, with and without what the processor may lack.
fn check(dictionary: &Dictionary, compressed: &[u8], cap: usize) {
    check_one(dictionary, compressed, cap);
    check_one(&dictionary.clone().without_wide_copies(), compressed, cap);
}

fn check_one(dictionary: &Dictionary, compressed: &[u8], cap: usize) {
    let expected = reference(dictionary, compressed).filter(|row| row.len() <= cap);
    let mut appended = vec![1, 2, 3];
    match &expected {
        Some(row) => {
            assert_eq!(dictionary.decode(compressed, &mut appended, cap), Ok(row.len()));
            assert_eq!(&appended[3..], row);
        }
        None => assert!(dictionary.decode(compressed, &mut appended, cap).is_err()),
    }
    assert_eq!(&appended[..3], [1, 2, 3]);
    if expected.is_none() {
        assert_eq!(appended.len(), 3);
    }

    // What follows the slack must stay untouched.
    const GUARD: usize = 64;
    let mut buffer = vec![0xa5; cap + DECODE_SLACK + GUARD];
    let (out, guard) = buffer.split_at_mut(cap + DECODE_SLACK);
    match &expected {
        Some(row) => {
            assert_eq!(dictionary.decode_into(compressed, out, usize::MAX), Ok(row.len()));
            assert_eq!(&out[..row.len()], row);
            for need in [0, 1, row.len() / 2, row.len(), row.len() + 1] {
                out.fill(0);
                let done = dictionary.decode_prefix(compressed, out, cap, need).unwrap();
                assert!(done >= need.min(row.len()) && done <= row.len());
                assert_eq!(out[..done], row[..done]);
            }
        }
        None => {
            assert!(dictionary.decode_into(compressed, out, usize::MAX).is_err());
            for need in [0, cap / 2, cap] {
                if let Ok(done) = dictionary.decode_prefix(compressed, out, cap, need) {
                    assert!(done <= cap);
                }
            }
        }
    }
    assert!(guard.iter().all(|&byte| byte == 0xa5));
}

fn random(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % below
}

fn single_bytes() -> Vec<Vec<u8>> {
    (0..=255).map(|byte| vec![byte]).collect()
}

/// `count` tokens of up to `len_max` bytes out of `alphabet` of them.
fn random_dictionary(count: usize, len_max: usize, alphabet: usize, state: &mut u64) -> Dictionary {
    let mut tokens = single_bytes();
    while tokens.len() < count {
        let len = 1 + random(state, len_max);
        tokens.push((0..len).map(|_| random(state, alphabet) as u8).collect());
        if tokens.len() == count {
            tokens.sort();
            tokens.dedup();
        }
    }
    Dictionary::from_tokens(&tokens).unwrap()
}

fn log_rows(count: usize) -> (Vec<u8>, Vec<u32>) {
    let words = ["carefully", "final", "deposits", "sleep", "furiously", "TRUCK", "DELIVER IN PERSON", "1996-03-1", "quick"];
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    let mut state = 1;
    for number in 0..count {
        bytes.extend_from_slice(format!("{number}|").as_bytes());
        for _ in 0..number % 9 {
            bytes.extend_from_slice(words[random(&mut state, words.len())].as_bytes());
            bytes.push(b' ');
        }
        ends.push(bytes.len() as u32);
    }
    (bytes, ends)
}

/// Encodes `row` and decodes it again; returns what a table would store.
fn round_trip(dictionary: &Dictionary, encoder: &Encoder, row: &[u8]) -> usize {
    let mut out = b"before".to_vec();
    let len = encoder.encode(row, &mut out);
    assert_eq!(encoder.encoded_len(row), len);
    assert_eq!(&out[..6], b"before");
    assert_eq!(out.len(), 6 + len.unwrap_or(0));
    let mut codes = Vec::new();
    encoder.codes(row, |code| codes.push(code));
    assert_eq!(codes.iter().flat_map(|&code| dictionary.token(code)).copied().collect::<Vec<_>>(), row);
    match len {
        Some(len) => {
            assert!(len < row.len());
            assert_eq!(len, compressed_len(codes.len()));
            assert_eq!(unpack(&out[6..]).collect::<Vec<_>>(), codes);
            assert_eq!(reference(dictionary, &out[6..]).as_deref(), Some(row));
            check(dictionary, &out[6..], row.len());
            check(dictionary, &out[6..], row.len() - 1);
            len
        }
        None => {
            assert!(compressed_len(codes.len()) >= row.len());
            row.len()
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "the training is safe code, slow there")]
fn rows_of_the_sample_come_back_smaller() {
    let (bytes, ends) = log_rows(2000);
    let sample = RowSample::new(&bytes, &ends).unwrap();
    let dictionary = train(&sample, &TrainOptions::default());
    let encoder = Encoder::new(&dictionary);
    let total: usize = sample.rows().map(|row| round_trip(&dictionary, &encoder, row)).sum();
    assert!(total * 4 < bytes.len(), "{total} of {}", bytes.len());
}

#[test]
fn other_rows_come_back_and_never_grow() {
    let mut state = 3;
    let dictionary = random_dictionary(1000, 12, 3, &mut state);
    let encoder = Encoder::new(&dictionary);
    for len in 0..if cfg!(miri) { 12 } else { 300 } {
        for alphabet in [1, 2, 40, 256] {
            let row: Vec<u8> = (0..len).map(|_| random(&mut state, alphabet) as u8).collect();
            assert!(round_trip(&dictionary, &encoder, &row) <= row.len());
        }
    }
}

#[test]
fn hostile_codes_do_no_harm() {
    let mut state = 11;
    let counts = if cfg!(miri) { &[300, 4096][..] } else { &[256, 257, 1000, 4095, 4096][..] };
    for &count in counts {
        let dictionary = random_dictionary(count, 32, 256, &mut state);
        for len in 0..if cfg!(miri) { 20 } else { 120 } {
            for round in 0..if cfg!(miri) { 1 } else { 8 } {
                let mut compressed: Vec<u8> = (0..len).map(|_| random(&mut state, 256) as u8).collect();
                if round % 2 == 0 && len % 3 == 2 {
                    compressed[len - 1] &= 0xf;
                }
                let natural = reference(&dictionary, &compressed).map_or(len * 3, |row| row.len());
                for cap in [0, 1, natural.saturating_sub(1), natural, natural + 1, natural + 1000] {
                    check(&dictionary, &compressed, cap);
                }
            }
        }
    }
}

#[test]
fn longest_tokens_fill_the_slack() {
    let mut tokens = single_bytes();
    tokens.push(vec![9; MAX_TOKEN_LEN]);
    let dictionary = Dictionary::from_tokens(&tokens).unwrap();
    let encoder = Encoder::new(&dictionary);
    for len in (0..20 * MAX_TOKEN_LEN).step_by(if cfg!(miri) { 31 } else { 1 }) {
        round_trip(&dictionary, &encoder, &vec![9; len]);
    }
}

#[test]
fn decoding_needs_room() {
    let dictionary = Dictionary::from_tokens(&single_bytes()).unwrap();
    for len in 0..DECODE_SLACK {
        assert!(dictionary.decode_into(&[], &mut vec![0; len], 100).is_err());
    }
    assert_eq!(dictionary.decode_into(&[], &mut [0; DECODE_SLACK], 100), Ok(0));
    assert!(dictionary.decode_into(&[65, 0], &mut [0; DECODE_SLACK], 100).is_err());
    let mut out = [0; DECODE_SLACK + 1];
    assert_eq!(dictionary.decode_into(&[65, 0], &mut out, 100), Ok(1));
    assert_eq!(out[0], 65);
    assert!(dictionary.decode_into(&[65, 16], &mut out, 100).is_err());
}

#[test]
#[cfg_attr(miri, ignore = "safe code, slow there")]
fn parse_is_near_the_fewest_codes() {
    let (bytes, ends) = log_rows(2000);
    let sample = RowSample::new(&bytes, &ends).unwrap();
    let dictionary = train(&sample, &TrainOptions::default());
    let encoder = Encoder::new(&dictionary);
    let tokens: Vec<&[u8]> = dictionary.tokens().collect();
    let (mut total, mut fewest_total) = (0, 0);
    for row in sample.rows().step_by(40) {
        encoder.codes(row, |_| total += 1);
        let mut fewest = vec![0; row.len() + 1];
        for start in (0..row.len()).rev() {
            let matching = tokens.iter().filter(|token| row[start..].starts_with(token));
            fewest[start] = 1 + matching.map(|token| fewest[start + token.len()]).min().unwrap();
        }
        fewest_total += fewest[0];
    }
    assert!(total >= fewest_total);
    assert!(total * 100 <= fewest_total * 102, "{total} codes, {fewest_total} would do");
}

#[test]
#[cfg_attr(miri, ignore = "safe code, slow there")]
fn training_is_deterministic() {
    let (bytes, ends) = log_rows(1500);
    let sample = RowSample::new(&bytes, &ends).unwrap();
    let options = TrainOptions::default();
    let first = train(&sample, &options).to_bytes();
    assert_eq!(train(&sample, &options).to_bytes(), first);
    let other_options = TrainOptions { merge_bytes: 4000, refine_bytes: 8000, refine_rounds: 1 };
    assert_eq!(train(&sample, &other_options).to_bytes(), train(&sample, &other_options).to_bytes());
}

#[test]
#[cfg_attr(miri, ignore = "safe code, slow there")]
fn samples_that_say_little() {
    let options = TrainOptions::default();
    for (bytes, ends) in [
        (vec![], vec![]),
        (vec![], vec![0, 0, 0]),
        (vec![7], vec![1]),
        (b"abcabcabcabc".to_vec(), vec![12]),
        (vec![0; 5000], vec![1000, 1000, 5000]),
        ((0..=255).collect(), (0..=256).collect()),
    ] {
        let sample = RowSample::new(&bytes, &ends).unwrap();
        for options in [options, TrainOptions { merge_bytes: 0, refine_bytes: 0, refine_rounds: 0 }] {
            let dictionary = train(&sample, &options);
            assert!(dictionary.token_count() >= 256);
            let encoder = Encoder::new(&dictionary);
            for row in sample.rows() {
                round_trip(&dictionary, &encoder, row);
            }
        }
    }
}

#[test]
fn samples_are_checked() {
    assert!(RowSample::new(b"abc", &[1, 4]).is_err());
    assert!(RowSample::new(b"abc", &[2, 1]).is_err());
    let sample = RowSample::new(b"abcd", &[1, 1, 3]).unwrap();
    assert_eq!((sample.len(), sample.byte_len(), sample.is_empty()), (3, 3, false));
    assert_eq!(sample.rows().collect::<Vec<_>>(), [&b"a"[..], b"", b"bc"]);
}

#[test]
#[cfg_attr(miri, ignore = "safe code, slow there")]
fn dictionaries_are_checked() {
    let error = |change: &dyn Fn(&mut Vec<Vec<u8>>)| {
        let mut tokens = single_bytes();
        change(&mut tokens);
        Dictionary::from_tokens(&tokens).unwrap_err()
    };
    for change in [
        &|tokens: &mut Vec<Vec<u8>>| tokens.clear() as _,
        &|tokens: &mut Vec<Vec<u8>>| tokens.truncate(255),
        &|tokens: &mut Vec<Vec<u8>>| tokens[9] = vec![],
        &|tokens: &mut Vec<Vec<u8>>| tokens[9] = vec![1; 33],
        &|tokens: &mut Vec<Vec<u8>>| tokens[9] = vec![8],
        &|tokens: &mut Vec<Vec<u8>>| tokens[9] = vec![8, 8],
        &|tokens: &mut Vec<Vec<u8>>| tokens.extend((0..=4096_u16).map(|token| token.to_le_bytes().to_vec())),
    ] as [&dyn Fn(&mut Vec<Vec<u8>>); 7]
    {
        assert!(matches!(error(change), crate::CodecError::Dictionary(_)));
    }
}

#[test]
#[cfg_attr(miri, ignore = "safe code, slow there")]
fn serial_forms_come_back() {
    let mut state = 23;
    for (count, len_max, alphabet) in [(256, 1, 256), (300, 32, 256), (4096, 32, 2), (4096, 32, 256), (4096, 3, 40), (4000, 20, 3)] {
        let dictionary = random_dictionary(count, len_max, alphabet, &mut state);
        let bytes = dictionary.to_bytes();
        let back = Dictionary::from_bytes(&bytes).unwrap();
        assert!(back.tokens().eq(dictionary.tokens()));
        assert_eq!(back.to_bytes(), bytes);
        for len in (0..bytes.len()).step_by(bytes.len() / 200 + 1) {
            assert!(Dictionary::from_bytes(&bytes[..len]).is_err());
        }
        assert!(Dictionary::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
    }
}

#[test]
#[cfg_attr(miri, ignore = "safe code, slow there")]
fn damaged_serial_forms_do_no_harm() {
    let mut state = 29;
    let bytes = random_dictionary(600, 32, 4, &mut state).to_bytes();
    for position in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[position] ^= 1 << random(&mut state, 8);
        if let Ok(dictionary) = Dictionary::from_bytes(&damaged) {
            // Another dictionary, but a dictionary.
            assert!(dictionary.tokens().is_sorted_by(|a, b| a < b));
            assert!((0..=255).all(|byte| dictionary.tokens().any(|token| token == [byte])));
            check(&dictionary, &damaged, 5000);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[cfg_attr(miri, ignore = "safe code, slow there")]
    fn any_rows_come_back(rows in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..30), repeats in 1_usize..6) {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for row in &rows {
            for _ in 0..repeats {
                bytes.extend_from_slice(row);
                ends.push(bytes.len() as u32);
            }
        }
        let dictionary = train(&RowSample::new(&bytes, &ends).unwrap(), &TrainOptions::default());
        let dictionary = Dictionary::from_bytes(&dictionary.to_bytes()).unwrap();
        let encoder = Encoder::new(&dictionary);
        for row in &rows {
            prop_assert!(round_trip(&dictionary, &encoder, row) <= row.len());
            round_trip(&dictionary, &encoder, &row.iter().rev().copied().collect::<Vec<_>>());
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "safe code, slow there")]
    fn any_bytes_are_safe_to_read_as_dictionary(mut bytes in prop::collection::vec(any::<u8>(), 0..3000), version in any::<bool>()) {
        if version && bytes.len() >= 4 {
            bytes[0] = 1;
            bytes[1] = 0;
            bytes[3] = 1;
        }
        let _ = Dictionary::from_bytes(&bytes);
    }
}

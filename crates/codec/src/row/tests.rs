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

/// The same dictionary for a processor like this one, and for one that lacks what this one may have.
struct Variants([Dictionary; 2]);

impl Variants {
    fn new(dictionary: Dictionary) -> Self {
        Self([dictionary.clone().without_wide_copies(), dictionary])
    }

    /// Checks all decoders on `compressed` with a cap of `cap`.
    fn check(&self, compressed: &[u8], cap: usize) {
        for dictionary in &self.0 {
            check_one(dictionary, compressed, cap);
        }
    }
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

pub(crate) fn random(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % below
}

fn single_bytes() -> Vec<Vec<u8>> {
    (0..=255).map(|byte| vec![byte]).collect()
}

/// `count` tokens of up to `len_max` bytes out of `alphabet` of them.
pub(super) fn random_dictionary(count: usize, len_max: usize, alphabet: usize, state: &mut u64) -> Dictionary {
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

pub(super) fn log_rows(count: usize) -> (Vec<u8>, Vec<u32>) {
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
fn round_trip(variants: &Variants, encoder: &Encoder, row: &[u8]) -> usize {
    let dictionary = &variants.0[0];
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
            variants.check(&out[6..], row.len());
            variants.check(&out[6..], row.len() - 1);
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
    let variants = Variants::new(dictionary);
    let total: usize = sample.rows().map(|row| round_trip(&variants, &encoder, row)).sum();
    assert!(total * 4 < bytes.len(), "{total} of {}", bytes.len());
}

#[test]
fn other_rows_come_back_and_never_grow() {
    let mut state = 3;
    let dictionary = random_dictionary(if cfg!(miri) { 300 } else { 1000 }, 12, 3, &mut state);
    let encoder = Encoder::new(&dictionary);
    let variants = Variants::new(dictionary);
    for len in (0..300).step_by(if cfg!(miri) { 61 } else { 1 }) {
        for alphabet in [1, 2, 40, 256] {
            let row: Vec<u8> = (0..len).map(|_| random(&mut state, alphabet) as u8).collect();
            assert!(round_trip(&variants, &encoder, &row) <= row.len());
        }
    }
}

#[test]
fn hostile_codes_do_no_harm() {
    let mut state = 11;
    let counts = if cfg!(miri) { &[300, 4096][..] } else { &[256, 257, 1000, 4095, 4096][..] };
    for &count in counts {
        let variants = Variants::new(random_dictionary(count, 32, 256, &mut state));
        let dictionary = &variants.0[0];
        for len in (0..120).step_by(if cfg!(miri) { 17 } else { 1 }) {
            for round in 0..if cfg!(miri) { 1 } else { 8 } {
                let mut compressed: Vec<u8> = (0..len).map(|_| random(&mut state, 256) as u8).collect();
                if round % 2 == 0 && len % 3 == 2 {
                    compressed[len - 1] &= 0xf;
                }
                let natural = reference(dictionary, &compressed).map_or(len * 3, |row| row.len());
                for cap in [0, 1, natural.saturating_sub(1), natural, natural + 1, natural + 1000] {
                    variants.check(&compressed, cap);
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
    let variants = Variants::new(dictionary);
    for len in (0..20 * MAX_TOKEN_LEN).step_by(if cfg!(miri) { 131 } else { 1 }) {
        round_trip(&variants, &encoder, &vec![9; len]);
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
fn shorter_token_when_the_next_one_then_gets_further() {
    let codes = |tokens: &[&str], row: &str| {
        let tokens: Vec<Vec<u8>> = single_bytes().into_iter().chain(tokens.iter().map(|token| token.as_bytes().to_vec())).collect();
        let dictionary = Dictionary::from_tokens(&tokens).unwrap();
        let mut parse = Vec::new();
        Encoder::new(&dictionary).codes(row.as_bytes(), |code| parse.push(String::from_utf8(dictionary.token(code).to_vec()).unwrap()));
        parse.join(" ")
    };
    assert_eq!(codes(&["ab", "abc", "cdef"], "abcdef"), "ab cdef");
    // One byte further is enough, at the end of the row and before it.
    assert_eq!(codes(&["ab", "abc", "cde", "xy"], "abcdexy"), "ab cde xy");
    assert_eq!(codes(&["ab", "abc", "cde"], "abcde"), "ab cde");
    // As far is not.
    assert_eq!(codes(&["ab", "abc", "cd"], "abcd"), "abc d");
    assert_eq!(codes(&["abc", "bcd"], "abcd"), "abc d");
}

#[test]
#[cfg_attr(miri, ignore = "safe code, slow there")]
fn refinement_pays() {
    let (bytes, ends) = log_rows(3000);
    let sample = RowSample::new(&bytes, &ends).unwrap();
    let codes = |refine_rounds| {
        let options = TrainOptions { merge_bytes: 20_000, refine_bytes: usize::MAX, refine_rounds };
        let encoder = Encoder::new(&train(&sample, &options));
        let mut codes = 0;
        sample.rows().for_each(|row| encoder.codes(row, |_| codes += 1));
        codes
    };
    assert!(codes(3) < codes(0));
}

#[test]
fn shared_bytes_beyond_the_token_before() {
    let bytes = Dictionary::from_tokens(&single_bytes()).unwrap().to_bytes();
    // The token behind [0] takes two bytes from it, which has one.
    let mut damaged = bytes[..6].to_vec();
    damaged.extend_from_slice(&[2, 0]);
    damaged.extend_from_slice(&bytes[6..]);
    damaged[2..4].copy_from_slice(&257_u16.to_le_bytes());
    assert!(matches!(Dictionary::from_bytes(&damaged), Err(crate::CodecError::Dictionary("lengths of a token"))));
    damaged[6] = 1;
    assert_eq!(Dictionary::from_bytes(&damaged).unwrap().token(1), [0, 0]);
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
            let variants = Variants::new(dictionary);
            for row in sample.rows() {
                round_trip(&variants, &encoder, row);
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
            Variants::new(dictionary).check(&damaged, 5000);
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
            bytes[0] = 1;
            bytes[1] = 0;
            bytes[3] = 1;
        }
        let _ = Dictionary::from_bytes(&bytes);
    }
}

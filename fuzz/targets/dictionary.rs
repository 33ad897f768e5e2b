//! The row dictionary's serial form, and rows of codes: the way with AVX and the one without give the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_codec::row::{DECODE_SLACK, Dictionary, Encoder, code_count};
use pagefold_fuzz::input::Input;
use std::sync::LazyLock;

/// Few tokens, so that there are codes without one; and all there can be, most of them long.
static MADE: LazyLock<[(Dictionary, Dictionary, Encoder); 2]> = LazyLock::new(|| {
    [300, 4096u16].map(|count| {
        let mut tokens: Vec<Vec<u8>> = (0..=255u8).map(|b| vec![b]).collect();
        tokens.extend((256..count).map(|i| {
            let len = if count == 300 { 2 + i % 31 } else { 32 - i % 9 };
            i.to_be_bytes().into_iter().chain([b'x'; 30]).take(usize::from(len)).collect()
        }));
        let dictionary = Dictionary::from_tokens(&tokens).expect("a dictionary");
        let encoder = Encoder::new(&dictionary);
        (dictionary.clone().without_wide_copies(), dictionary, encoder)
    })
});

/// The codes by the format's description.
fn codes(bytes: &[u8]) -> Vec<u16> {
    let nibble = |i: usize| u16::from(bytes[i / 2] >> (i % 2 * 4) & 15);
    (0..code_count(bytes.len()).unwrap_or(0)).map(|c| (0..3).map(|k| nibble(3 * c + k) << (4 * k)).sum()).collect()
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    // Rows of no more than a page or two: longer ones take long and show nothing else.
    let cap = usize::from(input.u16()) % 9000;
    let (need, which) = (usize::from(input.byte()), input.byte());
    let row = input.chunk();
    let read = if which % 3 == 1 { Dictionary::from_bytes(input.rest()).ok() } else { None };
    let (parsed, built);
    let (narrow, dictionary, encoder) = match read {
        Some(dictionary) => {
            let again = Dictionary::from_bytes(&dictionary.to_bytes()).expect("as written");
            assert!(again.tokens().eq(dictionary.tokens()));
            // What it takes to encode is not from disk, and takes long to make.
            built = (which < 32).then(|| Encoder::new(&dictionary));
            parsed = (dictionary.clone().without_wide_copies(), dictionary);
            (&parsed.0, &parsed.1, built.as_ref())
        }
        None => {
            let made = &MADE[usize::from(which % 3) / 2];
            (&made.0, &made.1, Some(&made.2))
        }
    };
    let row_codes = row;
    let codes = codes(row);
    let valid = code_count(row.len()).is_some()
        && (codes.len() % 2 == 0 || row.last().is_none_or(|b| b >> 4 == 0))
        && codes.iter().all(|c| usize::from(*c) < dictionary.token_count());
    let expected: Vec<u8> = codes.iter().flat_map(|c| dictionary.token(*c).iter().copied()).collect();

    let mut out = b"before".to_vec();
    let decoded = dictionary.decode(row, &mut out, cap);
    assert_eq!(decoded.is_ok(), valid && expected.len() <= cap);
    if decoded.is_ok() {
        assert!(out.starts_with(b"before") && out[6..] == expected);
    } else {
        assert_eq!(out, b"before");
    }
    let mut narrow_out = b"before".to_vec();
    assert_eq!(narrow.decode(row, &mut narrow_out, cap), decoded);
    assert_eq!(narrow_out, out, "the ways to copy differ");
    let mut buffer = vec![0; cap + DECODE_SLACK];
    assert_eq!(dictionary.decode_into(row, &mut buffer, cap).is_ok(), decoded.is_ok());
    if decoded.is_ok() {
        assert_eq!(buffer[..expected.len()], expected);
        let n = dictionary.decode_prefix(row, &mut buffer, cap, need).expect("no longer than all");
        assert!(n >= need.min(expected.len()) && buffer[..n] == expected[..n]);
        let mut narrow_buffer = vec![0; cap + DECODE_SLACK];
        assert_eq!(narrow.decode_prefix(row, &mut narrow_buffer, cap, need), Ok(n));
        assert_eq!(narrow_buffer[..n], buffer[..n]);
        let Some(encoder) = encoder.filter(|_| expected.len() < 1500) else { return };
        let mut changed = expected.clone();
        changed.truncate(changed.len().saturating_sub(usize::from(which >> 5)));
        changed.extend(expected.first());
        for row in [&expected, &changed] {
            let (mut again, mut re) = (Vec::new(), Vec::new());
            let done = encoder.encode(row, &mut again).is_some();
            let done = [(done, again), (encoder.reencode(&expected, row_codes, row, &mut re).is_some(), re)];
            for (_, again) in done.iter().filter(|(done, _)| *done) {
                let mut back = Vec::new();
                assert_eq!(dictionary.decode(again, &mut back, row.len()), Ok(row.len()));
                assert_eq!(back, *row);
            }
        }
    }
});

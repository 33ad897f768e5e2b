#[cfg(not(miri))]
use proptest::prelude::*;

use super::*;

fn round_trip(chunk: &[u8]) -> usize {
    let mut stored = b"before".to_vec();
    let len = compress(chunk, &mut stored);
    assert_eq!(stored.len(), 6 + len);
    assert!(stored.starts_with(b"before"));
    assert!(len <= chunk.len() + OVERHEAD);
    let stored = &stored[6..];
    let mut out = b"before".to_vec();
    decompress(stored, chunk.len(), &mut out).unwrap();
    assert_eq!(&out[6..], chunk);
    for wrong in [0, chunk.len() / 2, chunk.len() + 1, chunk.len() * 2 + 7, usize::MAX] {
        if wrong != chunk.len() {
            assert!(decompress(stored, wrong, &mut out).is_err());
            assert_eq!(out.len(), 6 + chunk.len());
        }
    }
    len
}

#[test]
fn chunks_come_back() {
    assert_eq!(round_trip(b""), 1);
    assert_eq!(round_trip(b"abc"), 4);
    assert!(round_trip(&[0; 10_000]) < 100);
    let noise: Vec<u8> = (0..5000_u32).map(|number| (number.wrapping_mul(0x9e37_79b1) >> 24) as u8 ^ (number >> 3) as u8).collect();
    round_trip(&noise);
}

#[test]
fn forms_are_as_documented() {
    let mut stored = Vec::new();
    compress(b"xy", &mut stored);
    assert_eq!(stored, b"\0xy");
    stored.clear();
    compress(&[b'x'; 500], &mut stored);
    assert_eq!(stored[0], 1);
    assert_eq!(lz4_flex::block::decompress(&stored[1..], 500).unwrap(), [b'x'; 500]);
}

#[test]
fn no_stored_form() {
    let mut out = Vec::new();
    for (stored, expected_len) in [(&b""[..], 0), (b"\x02abc", 3), (b"\x01", 0), (b"\x01", 4), (b"\x01\xff\xff", 9)] {
        assert!(decompress(stored, expected_len, &mut out).is_err(), "{stored:?}");
        assert!(out.is_empty());
    }
}

#[test]
fn memory_is_bounded_by_what_is_stored() {
    let mut out = Vec::new();
    assert!(decompress(&[1; 100], 1 << 40, &mut out).is_err());
    assert!(out.capacity() <= 100 * LZ4_EXPANSION_MAX);
}

#[cfg(not(miri))]
proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_chunk_comes_back(chunk in prop::collection::vec(0_u8..4, 0..2000)) {
        round_trip(&chunk);
    }

    #[test]
    fn any_bytes_are_safe(mut stored in prop::collection::vec(any::<u8>(), 1..300), flag in 0_u8..3, expected_len in 0_usize..5000) {
        stored[0] = flag;
        let mut out = vec![1];
        match decompress(&stored, expected_len, &mut out) {
            Ok(()) => prop_assert_eq!(out.len(), 1 + expected_len),
            Err(_) => prop_assert_eq!(out, [1]),
        }
    }

    #[test]
    fn damage_is_an_error_or_a_chunk_of_that_length(chunk in prop::collection::vec(0_u8..3, 50..500), at in any::<prop::sample::Index>(), bit in 0..8) {
        let mut stored = Vec::new();
        compress(&chunk, &mut stored);
        let at = at.index(stored.len());
        stored[at] ^= 1_u8 << bit;
        let mut out = Vec::new();
        match decompress(&stored, chunk.len(), &mut out) {
            Ok(()) => prop_assert_eq!(out.len(), chunk.len()),
            Err(_) => prop_assert!(out.is_empty()),
        }
    }
}

//! Stored chunks of large values.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_codec::block::{OVERHEAD, compress, decompress};
use pagefold_fuzz::input::Input;

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let expected_len = input.u32() as usize;
    let stored = input.rest();
    let mut out = b"before".to_vec();
    match decompress(stored, expected_len, &mut out) {
        Ok(()) => assert_eq!(out.len(), 6 + expected_len),
        Err(_) => assert_eq!(out, b"before"),
    }
    assert!(out.starts_with(b"before"));
    assert!(out.capacity() <= 64 + 256 * (stored.len() + 8), "memory that the stored bytes do not justify");
    for chunk in [&out[6..], stored] {
        let mut again = Vec::new();
        let len = compress(chunk, &mut again);
        assert!(len == again.len() && len <= chunk.len() + OVERHEAD);
        let mut back = Vec::new();
        decompress(&again, chunk.len(), &mut back).expect("as compressed");
        assert_eq!(back, chunk);
    }
});

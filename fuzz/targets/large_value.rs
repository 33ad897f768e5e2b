//! What is stored of a large value: blocks of 64 KB, each compressed by itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_codec::block::{pack_value, unpack_value};
use pagefold_fuzz::input::Input;

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let raw_bytes = input.u32() as usize;
    let stored = input.rest();
    let unpacked = unpack_value(stored, raw_bytes);
    if let Ok(value) = &unpacked {
        assert_eq!(value.len(), raw_bytes);
        assert!(value.capacity() <= 64 + 256 * 2 * (stored.len() + 8), "memory that the stored bytes do not justify");
        assert!(unpack_value(stored, raw_bytes + 1).is_err() && (raw_bytes == 0 || unpack_value(stored, raw_bytes - 1).is_err()));
    }
    for value in [unpacked.as_deref().unwrap_or_default(), stored] {
        assert_eq!(unpack_value(&pack_value(value), value.len()).expect("as packed"), value);
    }
    // More than one block.
    if data.len() % 64 == 1 {
        let value: Vec<u8> = stored.iter().copied().cycle().take(if stored.is_empty() { 0 } else { 150_000 }).collect();
        assert_eq!(unpack_value(&pack_value(&value), value.len()).expect("as packed"), value);
    }
});

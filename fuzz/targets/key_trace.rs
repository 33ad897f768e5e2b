//! A key trace: any bytes, and those with a checksum that is right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_format::key_trace::{KeyTrace, TRACED_KEY_BYTES_MAX, spans_have};
use xxhash_rust::xxh3::xxh3_64;

fn read(file: &[u8]) {
    let Ok(trace) = KeyTrace::decode(file) else { return };
    assert!(trace.keys.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(trace.keys.iter().all(|key| key.len() <= TRACED_KEY_BYTES_MAX));
    assert!(trace.references.iter().all(|number| (*number as usize) < trace.keys.len()));
    assert!(trace.spans.windows(2).all(|pair| pair[0].ends_before(&pair[1].low)));
    assert!(trace.spans.iter().all(|span| spans_have(&trace.spans, &span.low)));
    let bytes = trace.encode();
    assert_eq!(KeyTrace::decode(&bytes).as_ref(), Ok(&trace));
    assert!(bytes == file, "one form of a trace only");
}

fuzz_target!(|data: &[u8]| {
    read(data);
    let mut file = b"PFKEYTRC\x01\x00".to_vec();
    file.extend_from_slice(data);
    let sum = xxh3_64(&file);
    file.extend_from_slice(&sum.to_le_bytes());
    read(&file);
});

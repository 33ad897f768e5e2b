//! What a process shows of itself: a place of the file with any bytes, and with a checksum that is right; and any text of metrics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_format::live_view::{LIVE_HEADER_BYTES, LIVE_TEXT_BYTES_MAX, LiveView};
use pagefold_format::metrics_text::parse_metrics;
use pagefold_fuzz::input::Input;
use xxhash_rust::xxh3::xxh3_64_with_seed;

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let place = u64::from(input.byte() & 1);
    assert_eq!(LiveView::parse(input.0, place), None, "a checksum that nobody made");
    let mut bytes = vec![0; LIVE_HEADER_BYTES];
    let rest = input.0;
    let head = rest.len().min(LIVE_HEADER_BYTES - 8);
    bytes[8..8 + head].copy_from_slice(&rest[..head]);
    bytes.extend_from_slice(&rest[head..]);
    let sum = xxh3_64_with_seed(&bytes[8..], place);
    bytes[..8].copy_from_slice(&sum.to_le_bytes());
    if let Some(view) = LiveView::parse(&bytes, place) {
        assert!(view.text.len() <= LIVE_TEXT_BYTES_MAX && view.place() == place);
        assert_eq!(LiveView::parse(&view.build(), place), Some(view));
    }
    if let Ok(text) = std::str::from_utf8(rest) {
        for sample in parse_metrics(text) {
            assert!(text.contains(&sample.name) && sample.labels.iter().all(|(label, _)| text.contains(label.as_str())));
        }
    }
});

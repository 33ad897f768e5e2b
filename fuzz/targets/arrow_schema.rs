//! Stored Arrow schemas.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_interchange::{TableSchema, arrow_schema_from_bytes, arrow_schema_to_bytes};
use std::sync::Once;

static QUIET: Once = Once::new();

fuzz_target!(|data: &[u8]| {
    // The library under the decoder panics and the decoder catches it. The fuzzer's hook would end the run before; a panic that nobody catches still does.
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    let Ok(schema) = arrow_schema_from_bytes(data) else { return };
    let _ = TableSchema::from_arrow(schema.clone());
    if let Ok(again) = arrow_schema_from_bytes(&arrow_schema_to_bytes(&schema)) {
        assert_eq!(again, schema);
    }
});

//! A key under any schema.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_fuzz::input::Input;
use pagefold_fuzz::schema;
use pagefold_types::{Direction, KeyLayout, ValueRef};

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let Some(schema) = schema::take(&mut input) else { return };
    let directions = input.byte();
    let columns: Vec<(usize, Direction)> = (0..schema.len().min(8))
        .map(|i| (i, if directions >> i & 1 == 0 { Direction::Ascending } else { Direction::Descending }))
        .collect();
    let layout = KeyLayout::new(&schema, &columns);
    let key = input.rest();
    let text = layout.describe(key);
    assert!(text.len() <= 64 + 600 * columns.len(), "a message of {} bytes", text.len());
    let Ok(values) = layout.decode(key) else { return };
    let refs: Vec<ValueRef<'_>> = values.iter().map(|v| v.as_ref()).collect();
    let mut again = Vec::new();
    layout.encode(&refs, &mut again).expect("what a key holds");
    assert_eq!(again, key, "two keys of the same values");
});

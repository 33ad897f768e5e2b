//! A slot of the control file: any bytes, and those with a checksum that is right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_format::control::{CONTROL_SLOT_BYTES, ControlSlot, SlotState};
use pagefold_fuzz::input::Input;
use xxhash_rust::xxh3::xxh3_64_with_seed;

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let number = usize::from(input.byte() & 1);
    assert!(!matches!(ControlSlot::parse(data, number), SlotState::Valid(_) | SlotState::Newer(_)), "a checksum that nobody made");
    let mut slot = [0; CONTROL_SLOT_BYTES];
    let fields = input.take(CONTROL_SLOT_BYTES - 8);
    slot[8..8 + fields.len()].copy_from_slice(fields);
    let _ = ControlSlot::parse(&slot, number);
    let sum = xxh3_64_with_seed(&slot[8..], number as u64);
    slot[..8].copy_from_slice(&sum.to_le_bytes());
    if let SlotState::Valid(state) = ControlSlot::parse(&slot, number) {
        assert_eq!(ControlSlot::slot_number(state.sequence), number);
        assert_eq!(ControlSlot::parse(&state.build(), number), SlotState::Valid(state));
    }
});

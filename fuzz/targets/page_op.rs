//! Ops in their log form, on real pages of every type.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_fuzz::input::Input;
use pagefold_fuzz::{ops, pages};
use std::sync::LazyLock;

static PAGES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(pages::all);

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let mut page = PAGES[usize::from(input.byte()) % PAGES.len()].clone();
    ops::run(input.rest(), &mut page);
});

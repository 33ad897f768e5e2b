//! A non-leaf page: its checks, search in it, ops on it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_format::index::non_leaf::{NonLeaf, check, validate};
use pagefold_fuzz::input::Input;
use pagefold_fuzz::ops;

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let key = Input(&data[data.len() / 2048 * 2048..]).chunk();
    let view = NonLeaf::new(data);
    let _ = (view.lower_bound(key), view.child_for(key), view.level(), view.free_bytes(), view.run(0));
    for i in (0..=view.separator_count()).chain([usize::MAX - 1]) {
        let _ = (view.child(i), view.separator(i));
    }
    let Some(mut page) = input.page() else { return };
    if validate(&page).is_err() {
        return;
    }
    let view = NonLeaf::new(&page);
    let child = view.child_for(key);
    assert!(child <= view.separator_count());
    if check(&page).is_ok() {
        assert_eq!(child, (0..view.separator_count()).take_while(|i| view.separator(*i) <= key).count());
    }
    ops::run(input.rest(), &mut page);
});

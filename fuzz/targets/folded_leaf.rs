//! A folded leaf: expansion, and the fold of what was expanded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_format::index::folded::{check_folded, expand, expanded_bytes, fold};
use pagefold_format::index::header::FOLDED_PAGE_BYTES;
use pagefold_format::index::leaf::{Leaf, validate};

fuzz_target!(|data: &[u8]| {
    let _ = expanded_bytes(data);
    let mut folded = data[..data.len().min(FOLDED_PAGE_BYTES)].to_vec();
    folded.resize(FOLDED_PAGE_BYTES, 0);
    for bytes in [2048, 8192] {
        let _ = expand(&folded, &mut vec![0; bytes]);
    }
    let Ok(bytes) = expanded_bytes(&folded) else { return };
    let mut page = vec![0xEE; bytes];
    let expanded = expand(&folded, &mut page);
    if expanded.is_ok() {
        validate(&page).expect("in bounds by construction");
        let leaf = Leaf::new(&page);
        assert!(leaf.entries().all(|e| e.rid_count() > 0));
    }
    if let Ok(checked) = check_folded(&folded) {
        expanded.expect("checked");
        assert!(checked == page, "what was in the page before shows through");
        let mut again = vec![0xEE; FOLDED_PAGE_BYTES];
        fold(&page, &mut again).expect("what was folded");
        assert!(again == folded, "two folds of one leaf");
    }
});

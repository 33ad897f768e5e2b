//! A leaf: its checks, search in it, ops on it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_format::index::leaf::{Leaf, Place, check, validate};
use pagefold_format::index::limits::cut;
use pagefold_fuzz::input::Input;
use pagefold_fuzz::{ops, view};
use pagefold_types::Rid;

/// Never validated: nothing panics.
fn probe(page: &[u8], key: &[u8]) {
    let leaf = Leaf::new(page);
    let rid = Rid::from_u64(0x0001_0203_0405_06).expect("56 bits");
    let bytes: usize = leaf.entries().map(|e| e.key.len() + e.rids.len()).sum();
    assert!(bytes <= leaf.entry_count() * page.len());
    let _ = (leaf.lower_bound(key), leaf.find(key), leaf.lower_bound_rid(key, rid), leaf.seek(key));
    let _ = (leaf.plan_insert(key, rid), leaf.free_bytes(), leaf.folded_bytes(), leaf.next(), leaf.kind(), leaf.rid_count());
    let _ = leaf.last_place().map(|place| leaf.rid(place));
    if validate(page).is_ok() {
        let _ = (cut(&leaf, 1, 2), cut(&leaf, 1, 5), leaf.run(Place::default(), Place { entry: leaf.entry_count(), rid: 0 }));
    }
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let Some(mut page) = input.page() else { return probe(data, b"key") };
    let key = Input(input.0).chunk();
    probe(&page, key);
    if validate(&page).is_err() {
        return;
    }
    let leaf = Leaf::new(&page);
    assert_eq!(leaf.rid_count(), leaf.entries().map(|e| e.rid_count()).sum::<usize>());
    view::ask(&page, key, check(&page).is_ok());
    if check(&page).is_ok() {
        let less = |e: &pagefold_codec::index::layout::Entry<'_>| e.key < key;
        assert_eq!(leaf.lower_bound(key).0, leaf.entries().take_while(less).count());
        assert_eq!(leaf.lower_bound(key).1, leaf.entries().any(|e| e.key == key));
        for (i, entry) in leaf.entries().enumerate() {
            for r in [0, entry.rid_count() - 1] {
                let rid = Rid::from_u64(entry.rid(r)).expect("56 bits");
                assert_eq!(leaf.lower_bound_rid(entry.key, rid), (Place { entry: i, rid: r }, true));
                assert!(leaf.plan_insert(entry.key, rid).is_err(), "it is there already");
            }
        }
    }
    ops::run(input.rest(), &mut page);
});

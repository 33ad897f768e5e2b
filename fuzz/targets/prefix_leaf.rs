//! A prefix leaf: its checks, search in it, ops on it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagefold_format::index::leaf::Place;
use pagefold_format::index::prefix::PrefixLeaf;
use pagefold_format::index::prefix::check::{check, validate};
use pagefold_format::index::prefix::reader::{PairReader, PlaceReader};
use pagefold_fuzz::input::Input;
use pagefold_fuzz::{ops, view};
use pagefold_types::Rid;

/// Never validated: nothing panics.
fn probe(page: &[u8], key: &[u8]) {
    let leaf = PrefixLeaf::new(page);
    let rid = Rid::from_u64(0x0001_0203_0405_06).expect("56 bits");
    let _ = (leaf.lower_bound(key), leaf.find(key), leaf.lower_bound_rid(key, rid), leaf.seek(key));
    let _ = (leaf.plan_insert(key, rid).is_ok(), leaf.plan_remove(key, rid).is_ok(), leaf.free_bytes(), leaf.next(), leaf.rid_count());
    let _ = (leaf.cut(1, 2), leaf.cut(1, 5), leaf.run(Place::default(), leaf.end()).is_ok());
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let Some(mut page) = input.page() else { return probe(data, b"key") };
    let key = Input(input.0).chunk();
    probe(&page, key);
    if validate(&page).is_err() {
        return;
    }
    view::ask(&page, key, check(&page).is_ok());
    if check(&page).is_ok() {
        let leaf = PrefixLeaf::new(&page);
        let mut reader = PairReader::new();
        reader.seek(&leaf, Place::default()).expect("checked");
        let mut less = 0;
        let mut pairs = 0;
        while let Some((k, rid)) = reader.next(&leaf).expect("checked") {
            pairs += 1;
            less += usize::from(k < key);
            assert!(leaf.lower_bound_rid(k, rid).1 && leaf.plan_insert(k, rid).is_err());
        }
        assert_eq!(pairs, leaf.rid_count());
        let place = leaf.lower_bound(key).0;
        let mut places = PlaceReader::new();
        for place in [Place::default(), place] {
            if places.go(&leaf, place).is_ok() && place != leaf.end() {
                assert!(places.pair().0.len() <= page.len() && places.pairs_of_block() > 0);
            }
        }
        let before: usize = (0..place.entry).filter_map(|i| leaf.block(i)).map(|b| b.pair_count()).sum();
        assert_eq!(before + place.rid, less);
    }
    ops::run(input.rest(), &mut page);
});

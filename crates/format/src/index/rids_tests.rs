//! RIDs of leaves without their keys, for the tests of each kind of leaf.

use super::leaf_view::LeafView;
use super::prefix::reader::BlockRids;
use crate::test_random::Random;
use pagefold_types::Rid;

/// Parts of a leaf give the RIDs that its pairs have there, in steps of any size.
pub(super) fn assert_rids(page: &[u8]) {
    let view = LeafView::new(page);
    let mut all: Vec<Rid> = Vec::new();
    let push = |_: &[u8], rid| {
        all.push(rid);
        Ok::<_, String>(())
    };
    view.for_each(push, |e| e.to_string()).unwrap();
    let mut places = vec![view.end()];
    while let Some(before) = view.place_before(places[places.len() - 1]) {
        places.push(before);
    }
    places.reverse();
    assert_eq!(places.len(), all.len() + 1);
    let mut random = Random(all.len() as u64);
    let mut block = BlockRids::default();
    for _ in 0..3 {
        let (a, b) = (random.below(places.len() as u64) as usize, random.below(places.len() as u64) as usize);
        let (from, to) = (a.min(b), a.max(b));
        let (mut place, mut rids) = (places[from], Vec::new());
        while place < places[to] {
            let most = 1 + random.below(70) as usize;
            let before = rids.len();
            place = view.rids(place, places[to], most, &mut block, &mut rids).unwrap();
            assert!((1..=most).contains(&(rids.len() - before)));
            assert_eq!(place, places[from + rids.len()]);
        }
        assert_eq!(rids, all[from..to]);
    }
}

//! What trees ask of a leaf, whatever its kind.

use pagefold_format::index::leaf::Place;
use pagefold_format::index::leaf_view::LeafView;
use pagefold_types::Rid;

/// Asks everything of a leaf that has passed its structural check: all stays in the page, and what it says fits together as far as keys ascend (`exact`).
pub fn ask(page: &[u8], key: &[u8], exact: bool) {
    let view = LeafView::new(page);
    let rid = Rid::from_u64(0x0001_0203_0405_06).expect("56 bits");
    let (first, lower) = (view.first_rid(key), view.lower_bound(key));
    let (seek, end) = (view.seek(key), view.end());
    let _ = (view.layout().format_op(3, view.next()), view.free_bytes(), view.folded_bytes(), view.lower_bound_rid(key, rid));
    let _ = (view.is_behind_all(key, rid), view.is_alone(lower.0, key, rid), view.is_alone(Place::default(), key, rid));
    if let Ok(planned) = view.plan_insert(key, rid) {
        let _ = planned.fits(&view);
    }
    if let Ok(Some(change)) = view.plan_remove(key, rid) {
        let _ = view.takes(&change);
    }
    let cut = view.cut(1, 2);
    let runs = [Some(Place::default()), cut, Some(lower.0), Some(seek)].map(|from| from.map(|from| view.run(from, end)));
    assert!(runs.into_iter().flatten().flatten().all(|(count, run)| count <= view.rid_count() && run.len() <= 64 * page.len()));
    let _ = view.fill();
    let (mut pair, mut count) = (Vec::new(), 0);
    let mut last = view.place_before(end);
    let walked = view.for_each(
        |_, _| {
            count += 1;
            Ok(())
        },
        |error| error,
    );
    for _ in 0..20 {
        let Some(place) = last else { break };
        pair.clear();
        let _ = view.pair(place, &mut pair);
        last = view.place_before(place);
    }
    let keys = view.keys();
    if exact {
        walked.expect("checked");
        assert_eq!((count, view.is_empty()), (view.rid_count(), view.rid_count() == 0));
        assert_eq!(first.is_ok(), lower.1);
        keys.expect("checked");
    }
}

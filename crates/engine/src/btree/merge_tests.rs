//! Empty leaves at every place of the tree.

use super::tests::{Model, SHAPES, create_index, key, no_faults, open};
use super::tree::{BTree, search_bytes};
use crate::database::OpenMode;
use crate::index::IndexFormat;
use crate::pool::{Access, MiniTransaction};
use pagefold_format::index::leaf::Place;
use pagefold_format::index::leaf_view::LeafView;
use pagefold_format::index::non_leaf::NonLeaf;
use pagefold_format::index::ops::LeafOp;
use pagefold_format::log::Counts;
use pagefold_format::op::PageOp;
use pagefold_io::MemoryStorage;
use pagefold_types::Rid;
use std::sync::Arc;

const FORMATS: [(IndexFormat, usize); 3] = [(IndexFormat::Plain, 2048), (IndexFormat::Fold, 8192), (IndexFormat::Prefix, 2048)];

/// Runs `test` on a tree of three levels, with its model.
fn on_three_levels(mut test: impl FnMut(&BTree<'_>, &mut Model)) {
    for (format, page_bytes) in FORMATS {
        let storage = Arc::new(MemoryStorage::new());
        let database = open(&storage, OpenMode::Create, 64 << 20);
        let mut change = database.change();
        let index = create_index(&mut change, SHAPES[5], format, page_bytes);
        let mut model: Model = (0..40_000).map(|n| (key(&index, SHAPES[5], n), Rid::new(0, (n / 60) as u32, (n % 60) as u16))).collect();
        let mut builder = index.build(59);
        for (key, rid) in &model {
            builder.push(key, *rid).unwrap();
        }
        builder.finish().unwrap();
        assert_eq!(index.tree().levels().unwrap().len(), 3, "{format}");
        test(&index.tree(), &mut model);
        no_faults(&index.tree(), &model);
    }
}

/// The page above the leaves that is child `i` of the root, and its bounds: from where on entries lie below it, and where its second and third leaf begin.
fn bounds(tree: &BTree<'_>, i: usize) -> [Vec<u8>; 3] {
    let root = tree.manager.shared(tree.data_set, tree.root().0, Access::Random).unwrap();
    let node = NonLeaf::new(&root);
    let low = if i == 0 { Vec::new() } else { node.separator(i - 1).to_vec() };
    let page = tree.manager.shared(tree.data_set, node.child(i), Access::Random).unwrap();
    let node = NonLeaf::new(&page);
    [low, node.separator(0).to_vec(), node.separator(1).to_vec()]
}

fn between(model: &Model, low: &[u8], high: &[u8]) -> Vec<(Vec<u8>, Rid)> {
    let inside = |e: &&(Vec<u8>, Rid)| (low..high).contains(&search_bytes(&e.0, e.1).as_slice());
    model.iter().filter(inside).cloned().collect()
}

fn delete(tree: &BTree<'_>, model: &mut Model, entries: Vec<(Vec<u8>, Rid)>) {
    for (key, rid) in entries {
        assert!(tree.delete(&key, rid).unwrap());
        model.remove(&(key, rid));
    }
}

fn leaves(tree: &BTree<'_>) -> u64 {
    tree.levels().unwrap()[0].pages
}

#[test]
fn an_empty_leaf_goes_wherever_it_is() {
    on_three_levels(|tree, model| {
        // The first leaf of all, the first of the next page, the one behind that.
        for (child, leaf) in [(0, 0), (1, 0), (1, 1)] {
            let bounds = bounds(tree, child);
            let gone = between(model, &bounds[leaf], &bounds[leaf + 1]);
            let before = leaves(tree);
            // A greater slot than any on the leaf behind, which will come in this one's place.
            let (key, rid) = (gone[0].0.clone(), Rid::new(0, 70_000, 4000));
            delete(tree, model, gone[..1].to_vec());
            tree.insert(&key, rid).unwrap();
            model.insert((key.clone(), rid));
            delete(tree, model, gone[1..].to_vec());
            delete(tree, model, vec![(key, rid)]);
            assert!(leaves(tree) < before, "child {child}, leaf {leaf}: {before} leaves, and still {}", leaves(tree));
            no_faults(tree, model);
        }
    });
}

/// As a crash leaves it between the delete and the merge.
#[test]
fn an_empty_leaf_is_taken_out_by_who_works_beside_it() {
    on_three_levels(|tree, model| {
        for child in [0, 1] {
            let [low, high, behind] = bounds(tree, child);
            let gone = between(model, &low, &high);
            let page = tree.leaf_for_change(&search_bytes(&gone[0].0, gone[0].1), |_| {}).unwrap().unwrap();
            assert_eq!(LeafView::new(&page).rid_count(), gone.len());
            let mut mtr = MiniTransaction::begin(tree.manager);
            let handle = mtr.adopt(page);
            mtr.apply(handle, PageOp::Leaf(LeafOp::KeepFirst { cut: Place::default() })).unwrap();
            let less = -(gone.len() as i64);
            mtr.count(tree.data_set, Counts { rows: less, keys: less, ..Counts::default() });
            mtr.commit().unwrap();
            gone.iter().for_each(|entry| assert!(model.remove(entry)));
            no_faults(tree, model);
            let before = leaves(tree);
            // A third of the next leaf.
            let thinned = between(model, &high, &behind).into_iter().step_by(3).collect();
            delete(tree, model, thinned);
            assert!(leaves(tree) < before, "child {child}: {before} leaves, and still {}", leaves(tree));
            no_faults(tree, model);
        }
    });
}

/// Pages above the leaves that have lost nearly all of their children get one from a neighbour, or are merged with it; in the end one page is left.
#[test]
fn pages_above_shrink_with_their_leaves() {
    for backward in [false, true] {
        on_three_levels(|tree, model| {
            let mut all: Vec<_> = model.iter().cloned().collect();
            if backward {
                all.reverse();
            }
            let left = all.split_off(all.len() - 5);
            let mut before = leaves(tree);
            for part in all.chunks(2000) {
                delete(tree, model, part.to_vec());
                let levels = tree.levels().unwrap();
                let now = levels[0].pages;
                assert!(now < before, "{before} leaves, then {now}");
                // Each page above the leaves has several, on average.
                assert!(levels.len() < 2 || levels[1].pages <= now / 8 + 2, "{levels:?}");
                before = now;
            }
            assert_eq!(tree.levels().unwrap().iter().map(|l| l.pages).sum::<u64>(), 1);
            delete(tree, model, left);
        });
    }
}

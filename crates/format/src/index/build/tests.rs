//! Built indexes hold what was pushed; counting gives what building gives.

use super::{BuiltTree, CountingSink, LeafBuilder, LeafPacker, PageSink, TreeBuilder};
use crate::FormatError;
use crate::index::header::{FOLDED_PAGE_BYTES, LeafKind};
use crate::index::leaf::{self, Leaf};
use crate::index::non_leaf::{self, NonLeaf};
use crate::index::ops::LeafOp;
use crate::test_random::Random;
use pagefold_types::Rid;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
struct Pages {
    next: u32,
    pages: BTreeMap<u32, Vec<u8>>,
}

impl PageSink for Pages {
    type Error = FormatError;

    fn allocate(&mut self, _leaf: bool) -> Result<u32, FormatError> {
        self.next += 3;
        Ok(self.next)
    }

    fn take(&mut self, page_number: u32, _leaf: bool, image: &[u8]) -> Result<(), FormatError> {
        assert!(self.pages.insert(page_number, image.to_vec()).is_none());
        Ok(())
    }
}

fn rows(random: &mut Random, single: bool, fixed: bool, n: usize) -> Vec<(Vec<u8>, Rid)> {
    let length = random.one_of(&[3u64, 6, 40]);
    let alphabet = random.one_of(&[5u64, 256]);
    let mut set = BTreeSet::new();
    for i in 0..n {
        let bytes = if fixed { length } else { random.below(length) };
        let mut key: Vec<u8> = (0..bytes).map(|_| 1 + random.below(alphabet - 1) as u8).collect();
        if !single && random.below(3) > 0 {
            key.iter_mut().for_each(|b| *b = 1);
        }
        // No key is a prefix of another: index keys are not.
        key.extend((!fixed).then_some(0));
        set.insert((key, Rid::new(0, (i / 60) as u32, (i % 60) as u16)));
    }
    let mut rows: Vec<_> = set.into_iter().collect();
    if single {
        rows.dedup_by(|a, b| a.0 == b.0);
    }
    rows
}

fn walk(pages: &Pages, built: &BuiltTree) -> Vec<(Vec<u8>, Rid)> {
    let mut rows = Vec::new();
    if built.root_page == 0 {
        return rows;
    }
    let mut number = built.root_page;
    for level in (1..built.levels.len()).rev() {
        let page = NonLeaf::new(&pages.pages[&number]);
        assert_eq!(usize::from(page.level()), level);
        number = page.child(0);
    }
    while number != 0 {
        let page = &pages.pages[&number];
        leaf::check(page).unwrap();
        let view = Leaf::new(page);
        rows.extend(view.entries().flat_map(|e| (0..e.rid_count()).map(move |r| (e.key.to_vec(), leaf::rid(&e, r)))));
        number = view.next();
    }
    rows
}

#[test]
fn trees_hold_what_was_pushed_and_counting_agrees() {
    let mut random = Random(31);
    let mut deepest = 0;
    for round in 0..60 {
        let fold = round % 2 == 0;
        let (single, fixed) = (random.below(2) == 0, random.below(2) == 0);
        let n = random.one_of(&[0usize, 1, 40, 3000, 20_000]);
        let rows = rows(&mut random, single, fixed, n);
        let (leaf_bytes, non_leaf_bytes) = if fold { (random.one_of(&[8192usize, 16384, 32768]), 4096) } else { (2048, 2048) };
        let fixed_key_bytes = rows.first().map_or(0, |r| if fixed { r.0.len() as u16 } else { 0 });
        let kind = LeafKind { single, fold, fixed_key_bytes, slot_bits: if fold { 6 } else { 12 } };
        let free_percent = random.one_of(&[0u8, 10, 50, 99]);
        let mut tree = TreeBuilder::new(Pages::default(), kind, leaf_bytes, non_leaf_bytes, free_percent);
        let mut counted = TreeBuilder::new(CountingSink::default(), kind, leaf_bytes, non_leaf_bytes, free_percent);
        for (key, rid) in &rows {
            tree.push(key, *rid).unwrap();
            counted.push(key, *rid).unwrap();
        }
        let (built, pages) = tree.finish().unwrap();
        let (mut count, sink) = counted.finish().unwrap();
        assert_eq!(sink.pages as usize, pages.pages.len());
        count.root_page = built.root_page;
        assert_eq!(count, built);
        assert_eq!(walk(&pages, &built), rows);
        assert_eq!(built.rids as usize, rows.len());
        assert_eq!(built.keys as usize, rows.iter().map(|r| &r.0).collect::<BTreeSet<_>>().len());
        deepest = deepest.max(built.levels.len());
        // Every row is found from the root down, by key and by (key, RID); facts are sums over the pages.
        for (key, rid) in rows.iter().step_by(7) {
            let search = [key.as_slice(), &rid.to_bytes()].concat();
            let mut number = built.root_page;
            for _ in 1..built.levels.len() {
                let page = NonLeaf::new(&pages.pages[&number]);
                number = page.child(page.child_for(&search));
            }
            assert!(Leaf::new(&pages.pages[&number]).lower_bound_rid(key, *rid).1);
        }
        let mut free = vec![0; built.levels.len()];
        for page in pages.pages.values() {
            if crate::page::page_type(page) == Some(crate::page::PageType::Leaf) {
                free[0] += Leaf::new(page).free_bytes() as u64;
                assert!(Leaf::new(page).folded_bytes() <= FOLDED_PAGE_BYTES);
            } else {
                non_leaf::check(page).unwrap();
                free[usize::from(NonLeaf::new(page).level())] += NonLeaf::new(page).free_bytes() as u64;
            }
        }
        assert_eq!(free, built.levels.iter().map(|l| l.free_bytes).collect::<Vec<_>>());
    }
    assert!(deepest >= 4, "{deepest}");
}

/// A built leaf is the leaf that inserts would have made, and full means full.
#[test]
fn built_leaves_equal_inserted_ones() {
    let mut random = Random(32);
    for round in 0..40 {
        let fold = round % 2 == 0;
        let (single, fixed) = (random.below(2) == 0, random.below(2) == 0);
        let rows = rows(&mut random, single, fixed, 3000);
        let kind = LeafKind {
            single,
            fold,
            fixed_key_bytes: if fixed { rows[0].0.len() as u16 } else { 0 },
            slot_bits: if fold { 6 } else { 12 },
        };
        let bytes = if fold { 8192 } else { 4096 };
        let mut builder = LeafBuilder::new(kind, bytes, 0);
        let mut packer = LeafPacker::new(kind, bytes, 0);
        let mut inserted = vec![0; bytes];
        LeafOp::Format { page_number: 4, kind, next: 2 }.apply(&mut inserted).unwrap();
        for (key, rid) in &rows {
            let fits = builder.push(key, *rid).unwrap();
            assert_eq!(packer.push(key, *rid).unwrap(), fits);
            assert_eq!(LeafOp::Insert { key, rid: *rid }.apply(&mut inserted).is_ok(), fits);
            if !fits {
                let mut built = vec![0xEE; bytes];
                builder.finish(4, 2, &mut built);
                assert!(built == inserted);
                packer.reset();
                LeafOp::Format { page_number: 4, kind, next: 2 }.apply(&mut inserted).unwrap();
                assert!(builder.push(key, *rid).unwrap() && packer.push(key, *rid).unwrap());
                LeafOp::Insert { key, rid: *rid }.apply(&mut inserted).unwrap();
            }
        }
    }
}

#[test]
fn wrong_order_and_wrong_keys_are_refused() {
    let kind = LeafKind { single: false, fold: true, fixed_key_bytes: 2, slot_bits: 3 };
    let mut tree = TreeBuilder::new(CountingSink::default(), kind, 8192, 4096, 0);
    let rid = |n| Rid::new(0, 0, n);
    tree.push(b"bb", rid(1)).unwrap();
    for (key, rid) in [(&b"ba"[..], rid(2)), (b"bb", rid(1)), (b"bb", rid(0)), (b"bbb", rid(2)), (b"bc", rid(8))] {
        assert!(tree.push(key, rid).is_err(), "{key:?} {rid}");
    }
    tree.push(b"bb", rid(2)).unwrap();
    assert_eq!(tree.last(), Some((&b"bb"[..], rid(2))));
    let plain = LeafKind { single: true, fold: false, fixed_key_bytes: 0, slot_bits: 12 };
    let mut tree = TreeBuilder::new(CountingSink::default(), plain, 2048, 2048, 0);
    assert!(tree.push(&[1; 3000], rid(1)).is_err());
}

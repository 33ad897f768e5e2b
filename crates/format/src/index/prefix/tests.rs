//! Leaves of every shape of key against an ordered set; sizes at every step; hostile bytes and runs.

use super::super::leaf::Place;
use super::super::ops::LeafOp;
use super::check::{check, validate};
use super::header::{DIRECTORY_BYTES, PREFIX_HEADER_BYTES};
use super::reader::PairReader;
use super::view::PrefixLeaf;
use crate::index::rids_tests::assert_rids;
use crate::test_random::Random;
use pagefold_types::Rid;
use std::collections::BTreeSet;

type Model = BTreeSet<(Vec<u8>, u64)>;

/// Length of all keys (0: any), a key of a number, how many numbers there are.
type Shape = (u16, fn(u64) -> Vec<u8>, u64);

const SHAPES: [Shape; 7] = [
    (8, |n| n.to_be_bytes().to_vec(), 1 << 20),
    (8, |n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().to_vec(), 1 << 40),
    (4, |n| (n as u32).to_be_bytes().to_vec(), 5),
    (4, |n| (n as u32).to_be_bytes().to_vec(), 120),
    (12, |n| [&((n / 4) >> 3 << 5 | ((n / 4) & 7)).to_be_bytes()[..], &((n % 4) as u32).to_be_bytes()].concat(), 1 << 16),
    (0, |n| format!("https://example.org/a/long/path/{}/{n:x}\0", n % 3).into_bytes(), 4000),
    (0, |n| format!("{}{}\0", "ab".repeat((n % 30) as usize), n / 30 % 200).into_bytes(), 6000),
];

fn leaf(bytes: usize, shape: Shape) -> Vec<u8> {
    let mut page = vec![0; bytes];
    LeafOp::FormatPrefix { page_number: 4, fixed_key_bytes: shape.0, next: 0 }.apply(&mut page).unwrap();
    page
}

fn rid(n: u64) -> Rid {
    Rid::from_u64(n).unwrap()
}

fn pairs(page: &[u8]) -> Vec<(Vec<u8>, u64)> {
    let leaf = PrefixLeaf::new(page);
    let mut reader = PairReader::new();
    reader.seek(&leaf, Place::default()).unwrap();
    let mut pairs = Vec::new();
    while let Some((key, rid)) = reader.next(&leaf).unwrap() {
        pairs.push((key.to_vec(), rid.to_u64()));
    }
    pairs
}

/// The whole leaf is what the model is.
fn assert_same(page: &[u8], model: &Model) {
    check(page).unwrap();
    assert!(pairs(page).iter().eq(model));
    assert_eq!(PrefixLeaf::new(page).rid_count(), model.len());
    assert_rids(page);
}

/// The place of the pair that has so many before it.
fn place_of(leaf: &PrefixLeaf<'_>, mut pair: usize) -> Place {
    for entry in 0..leaf.block_count() {
        let n = leaf.block(entry).unwrap().pair_count();
        if pair < n {
            return Place { entry, rid: pair };
        }
        pair -= n;
    }
    assert_eq!(pair, 0);
    leaf.end()
}

fn assert_searches(page: &[u8], model: &Model, key: &[u8], n: u64) {
    let leaf = PrefixLeaf::new(page);
    let at = |wanted: &(Vec<u8>, u64)| place_of(&leaf, model.iter().take_while(|p| *p < wanted).count());
    let wanted = (key.to_vec(), 0);
    let found = model.range(wanted.clone()..).next().is_some_and(|p| p.0 == key);
    assert_eq!(leaf.lower_bound(key), (at(&wanted), found));
    let first = model.range(wanted.clone()..).next().filter(|p| p.0 == key).map(|p| rid(p.1));
    assert_eq!(leaf.find(key), first);
    let wanted = (key.to_vec(), n);
    assert_eq!(leaf.lower_bound_rid(key, rid(n)), (at(&wanted), model.contains(&wanted)));
    let search = [key, &rid(n).to_bytes()[..(n % 8) as usize], &[0; 2][..(n / 8 % 3) as usize]].concat();
    for search in [search.as_slice(), &key[..key.len() / 2], &[], &[0xFF; 3]] {
        let less = model.iter().filter(|(k, r)| [k.as_slice(), &rid(*r).to_bytes()].concat().as_slice() < search).count();
        assert_eq!(leaf.seek(search), place_of(&leaf, less), "{search:?}");
    }
}

/// 100,000 steps over all shapes and page sizes; each leaf is filled to the brim and emptied again.
#[test]
fn leaves_are_what_an_ordered_set_is() {
    let mut random = Random(21);
    let mut refused = 0;
    for shape in SHAPES {
        for page_bytes in [2048, 8192, 32768] {
            let mut page = leaf(page_bytes, shape);
            let mut model = Model::new();
            let mut ascending = 0;
            let steps = if cfg!(miri) { 100 } else { 4800 };
            for step in 0..steps {
                let phase = step / 600 % 4;
                ascending += 1;
                let number = if phase == 2 { ascending } else { random.next() };
                let key = (shape.1)(number % shape.2);
                let n = [((ascending / 100) << 12) | (ascending % 100), random.below(5000) << 12 | random.below(70), random.next() >> 8]
                    [random.below(3) as usize];
                let view = PrefixLeaf::new(&page);
                let before = page.clone();
                if random.below(8) < if phase == 3 { 2 } else { 6 } {
                    let pair = (key, n);
                    let planned = view.plan_insert(&pair.0, rid(n));
                    assert_eq!(planned.is_err(), model.contains(&pair));
                    let fits = planned.as_ref().is_ok_and(|p| p.fits(&view));
                    let free = planned.as_ref().map_or(0, |p| p.free_bytes(&view));
                    let done = LeafOp::Insert { key: &pair.0, rid: rid(n) }.apply(&mut page);
                    assert_eq!(done.is_ok(), fits);
                    if fits {
                        assert_eq!(PrefixLeaf::new(&page).free_bytes(), free);
                        model.insert(pair);
                    } else {
                        refused += 1;
                        assert!(page == before);
                    }
                } else {
                    let pair = match model.range((key.clone(), 0)..).next().or_else(|| model.iter().next()) {
                        Some(pair) if random.below(16) > 0 => pair.clone(),
                        _ => (key, n),
                    };
                    let planned = view.plan_remove(&pair.0, rid(pair.1));
                    assert_eq!(planned.is_ok(), model.contains(&pair));
                    let fits = planned.as_ref().is_ok_and(|p| p.fits(&view));
                    let free = planned.as_ref().map_or(0, |p| p.free_bytes(&view));
                    let done = LeafOp::Remove { key: &pair.0, rid: rid(pair.1) }.apply(&mut page);
                    assert_eq!(done.is_ok(), fits);
                    if fits {
                        assert_eq!(PrefixLeaf::new(&page).free_bytes(), free);
                        model.remove(&pair);
                    } else {
                        assert!(page == before);
                    }
                }
                let view = PrefixLeaf::new(&page);
                let blocks: usize = (0..view.blocks).map(|i| view.range(i).len() + DIRECTORY_BYTES).sum();
                assert_eq!(page_bytes - view.free_bytes(), PREFIX_HEADER_BYTES + view.shared.len() + blocks);
                if step % 150 == 0 {
                    assert_same(&page, &model);
                    let key = (shape.1)(random.next() % shape.2);
                    assert_searches(&page, &model, &key, random.below(5000) << 12 | random.below(70));
                    if let Some(pair) = model.iter().nth(random.below(model.len().max(1) as u64) as usize) {
                        assert_searches(&page, &model, &pair.0, pair.1);
                    }
                }
                if step % 600 == 599 {
                    cuts_and_joins(&page, &model, &mut random);
                }
            }
            assert_same(&page, &model);
            while let Some(pair) = model.pop_first() {
                LeafOp::Remove { key: &pair.0, rid: rid(pair.1) }.apply(&mut page).unwrap();
            }
            assert_same(&page, &model);
        }
    }
    assert!(refused > 1000, "{refused}");
}

/// The leaf cut anywhere, and put together again.
fn cuts_and_joins(page: &[u8], model: &Model, random: &mut Random) {
    let view = PrefixLeaf::new(page);
    let Some(middle) = view.cut(1, 2) else { return };
    let any = random.below(model.len() as u64 + 1) as usize;
    let quarter = view.cut(1, 4).unwrap();
    for cut in [middle, quarter, place_of(&view, any), Place::default(), view.end()] {
        let (mut left, mut right) = (page.to_vec(), page.to_vec());
        LeafOp::KeepFirst { cut }.apply(&mut left).unwrap();
        LeafOp::KeepFrom { cut }.apply(&mut right).unwrap();
        check(&left).unwrap();
        check(&right).unwrap();
        let (low, high) = (pairs(&left), pairs(&right));
        assert!(low.iter().chain(&high).eq(model));
        assert_eq!(low.len(), (0..cut.entry).map(|i| view.block(i).unwrap().pair_count()).sum::<usize>() + cut.rid);
        if cut == middle && view.block_count() > 10 {
            let (a, b) = (PrefixLeaf::new(&left).free_bytes(), PrefixLeaf::new(&right).free_bytes());
            assert!(a.min(b) > page.len() / 4, "{a} {b}");
        }
        if cut == quarter && view.block_count() > 10 {
            let used = page.len() - PrefixLeaf::new(&left).free_bytes();
            assert!(used < (page.len() - view.free_bytes()) / 2, "{used}");
        }
        let (count, run) = PrefixLeaf::new(&right).run(Place::default(), PrefixLeaf::new(&right).end()).unwrap();
        let append = LeafOp::Append { count: count as u16, run: &run };
        let copy = append.on_copy(&left);
        let done = append.apply(&mut left);
        assert_eq!(done.is_ok(), copy.is_some());
        if done.is_ok() {
            assert_same(&left, model);
            assert!(copy.unwrap() == left);
        }
        let (count, run) = view.run(Place::default(), cut).unwrap();
        let prepend = LeafOp::Prepend { count: count as u16, run: &run };
        // What the parts take when they are together does not depend on who comes to whom, but for the shared bytes of an empty leaf.
        if let Some(whole) = prepend.on_copy(&right) {
            assert_same(&whole, model);
            assert_eq!(PrefixLeaf::new(&whole).next(), view.next());
        }
        if !low.is_empty() {
            assert!(prepend.on_copy(page).is_none(), "what is there already");
        }
        // The other way round they do not ascend.
        if !low.is_empty() && !high.is_empty() {
            let before = right.clone();
            let (count, run) = view.run(Place::default(), cut).unwrap();
            assert!(LeafOp::Append { count: count as u16, run: &run }.apply(&mut right).is_err());
            assert!(right == before);
        }
    }
    let outside = Place { entry: view.block_count() + 1, rid: 0 };
    assert!(LeafOp::KeepFirst { cut: outside }.apply(&mut page.to_vec()).is_err());
    assert!(LeafOp::KeepFrom { cut: Place { entry: 0, rid: 200 } }.apply(&mut page.to_vec()).is_err());
}

fn some_leaf(shape: Shape, random: &mut Random) -> Vec<u8> {
    let mut page = leaf(2048, shape);
    for i in 0..400 {
        let key = (shape.1)(random.next() % shape.2);
        let _ = LeafOp::Insert { key: &key, rid: rid(i << 9) }.apply(&mut page);
    }
    page
}

/// Damaged leaves: nothing panics; what passes the checks can be read whole; an op is refused or leaves a leaf that passes the structural check.
#[test]
fn damaged_leaves_do_no_harm() {
    let mut random = Random(22);
    let (mut valid, mut whole) = (0, 0);
    for round in 0..if cfg!(miri) { 20 } else { 3000 } {
        let shape = SHAPES[round % SHAPES.len()];
        let good = some_leaf(shape, &mut random);
        for _ in 0..4 {
            let mut page = good.clone();
            for _ in 0..=random.below(3) {
                let at = match random.below(3) {
                    0 => 24 + random.below(40),
                    1 => 2048 - 1 - random.below(60),
                    _ => random.below(2048),
                } as usize;
                page[at] = [0, 0xFF, random.next() as u8, page[at] ^ 1 << random.below(8)][random.below(4) as usize];
            }
            let view = PrefixLeaf::new(&page);
            let key = (shape.1)(random.next() % shape.2);
            let _ = (view.lower_bound(&key), view.lower_bound_rid(&key, rid(77)), view.seek(&key[..1]), view.free_bytes(), view.cut(1, 2));
            let _ = (view.plan_insert(&key, rid(3)), view.plan_remove(&key, rid(3)), view.rid(Place { entry: 1, rid: 5 }));
            let _ = (view.run(Place::default(), view.end()), view.cut(1, 5));
            if validate(&page).is_ok() {
                valid += 1;
                if check(&page).is_ok() {
                    whole += 1;
                    assert_eq!(pairs(&page).len(), PrefixLeaf::new(&page).rid_count());
                }
            }
            let known = pairs(&good)[3].clone();
            let ops = [
                LeafOp::Insert { key: &key, rid: rid(9) },
                LeafOp::Remove { key: &known.0, rid: rid(known.1) },
                LeafOp::KeepFirst { cut: Place { entry: 1, rid: 2 } },
                LeafOp::KeepFrom { cut: Place { entry: 1, rid: 2 } },
            ];
            for op in ops {
                let mut changed = page.clone();
                if op.apply(&mut changed).is_err() {
                    assert!(changed == page);
                } else if check(&page).is_ok() {
                    check(&changed).unwrap();
                } else if validate(&page).is_ok() {
                    validate(&changed).unwrap();
                }
            }
        }
    }
    assert!(valid > whole && whole > 100, "{valid} {whole}");
}

/// A first key that ends within its head: a search compares whole heads, so what follows the key there counts.
#[test]
fn heads_end_in_zeros_behind_short_keys() {
    let mut page = some_leaf(SHAPES[3], &mut Random(5));
    check(&page).unwrap();
    let leaf = PrefixLeaf::new(&page);
    assert!(leaf.block_count() > 1);
    let first = Place { entry: leaf.block_count() - 1, rid: 0 };
    let mut key = Vec::new();
    leaf.key(first, &mut key);
    let rid = leaf.rid(first);
    assert!(leaf.lower_bound_rid(&key, rid).1);

    let head = page.len() - DIRECTORY_BYTES * (first.entry + 1) + 2;
    assert_eq!(page[head], 0, "the key has fewer than four bytes of its own");
    page[head] = 5;
    assert!(!PrefixLeaf::new(&page).lower_bound_rid(&key, rid).1);
    assert_eq!(check(&page).unwrap_err().to_string(), format!("head of block {} is not that of its first key", first.entry));
}

#[test]
fn damaged_runs_are_refused() {
    let mut random = Random(23);
    let mut taken = 0;
    for round in 0..if cfg!(miri) { 20 } else { 3000 } {
        let shape = SHAPES[round % SHAPES.len()];
        let page = some_leaf(shape, &mut random);
        let view = PrefixLeaf::new(&page);
        let (count, mut run) = view.run(Place::default(), view.end()).unwrap();
        let at = random.below(run.len() as u64) as usize;
        run[at] ^= 1 << random.below(8);
        if random.below(3) == 0 {
            run.truncate(at);
        }
        for mut target in [leaf(4096, shape), page.clone()] {
            let before = target.clone();
            match (LeafOp::Append { count: count as u16, run: &run }).apply(&mut target) {
                Ok(()) => {
                    taken += 1;
                    check(&target).unwrap();
                }
                Err(_) => assert!(target == before),
            }
        }
    }
    assert!(taken > 100);
}

#[test]
fn ops_are_read_back_from_the_log() {
    for op in [
        LeafOp::FormatPrefix { page_number: 77, fixed_key_bytes: 12, next: 5 },
        LeafOp::KeepFrom { cut: Place { entry: 3, rid: 127 } },
        LeafOp::Append { count: 3, run: b"blocks" },
    ] {
        let mut bytes = Vec::new();
        op.encode(&mut bytes);
        assert_eq!(LeafOp::decode(&mut crate::wire::Reader::new(&bytes)).unwrap(), op);
    }
}

#[test]
fn bytes_of_a_leaf() {
    let mut page = leaf(2048, SHAPES[0]);
    for n in [7u64, 9, 0x1FF] {
        LeafOp::Insert { key: &n.to_be_bytes(), rid: rid(n << 12) }.apply(&mut page).unwrap();
    }
    assert_eq!(page[24..32], [9, 1, 1, 0, 71, 0, 0, 0], "type, version, blocks, low end, garbage");
    assert_eq!(page[32..48], [0, 0, 8, 0, 6, 0, 0, 8, 0, 0, 0, 0, 3, 0, 0, 0]);
    assert_eq!(page[48..54], [0; 6], "shared");
    // Three pairs, RIDs ascend; three entries; frame or delta of 8 bits and more: mask 01 FE.
    assert_eq!(page[54..61], [0x82, 2, 0x22 - 1, 0, 0x10, 0, 9]);
    assert_eq!(page[2048 - 6..], [54, 0, 0, 0, 7, 0]);
}

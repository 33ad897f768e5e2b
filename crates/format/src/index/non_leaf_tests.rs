//! Non-leaf pages against an ordered map.

use super::non_leaf::{NonLeaf, check, validate};
use super::ops::NonLeafOp;
use crate::test_random::Random;
use crate::wire::Reader;
use std::collections::BTreeMap;

fn apply(op: NonLeafOp<'_>, page: &mut [u8]) -> Result<(), crate::FormatError> {
    let mut log = Vec::new();
    op.encode(&mut log);
    let mut reader = Reader::new(&log);
    assert_eq!(NonLeafOp::decode(&mut reader).unwrap(), op);
    assert!(reader.is_empty());
    op.apply(page)
}

fn contents(page: &[u8]) -> Vec<(Vec<u8>, u32)> {
    let view = NonLeaf::new(page);
    (0..view.separator_count()).map(|i| (view.separator(i).to_vec(), view.child(i + 1))).collect()
}

fn random_separator(random: &mut Random, prefix: &[u8], most: u64, alphabet: u64) -> Vec<u8> {
    let mut separator = prefix.to_vec();
    separator.extend((0..random.below(most) + 1).map(|_| random.below(alphabet) as u8));
    separator
}

#[test]
fn non_leaf_pages_are_what_an_ordered_map_is() {
    let mut random = Random(21);
    let (mut inserts, mut full) = (0, 0);
    for _ in 0..150 {
        let page_bytes = random.one_of(&[2048usize, 4096, 32768]);
        let prefix: Vec<u8> = (0..random.one_of(&[0, 3, 30])).map(|_| random.next() as u8).collect();
        let (most, alphabet) = (random.one_of(&[2, 8, 100]), random.one_of(&[3, 256]));
        let mut page = vec![0xEE; page_bytes];
        apply(NonLeafOp::Format { page_number: 4, level: 2, first_child: 77 }, &mut page).unwrap();
        let mut model: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
        for step in 0..1500u32 {
            let separator = random_separator(&mut random, &prefix, most, alphabet);
            let kind = random.below(10);
            let n = model.len();
            let mut copy = page.clone();
            if kind < 6 {
                let op = NonLeafOp::Insert { separator: &separator, child: step + 100 };
                let room = NonLeaf::separator_bytes(separator.len()) <= NonLeaf::new(&page).free_bytes();
                if model.contains_key(&separator) || !room {
                    full += usize::from(!room);
                    assert!(apply(op, &mut copy).is_err() && copy == page);
                } else {
                    apply(op, &mut page).unwrap();
                    model.insert(separator.clone(), step + 100);
                    inserts += 1;
                }
            } else if kind < 8 && n > 0 {
                let index = random.below(n as u64) as usize;
                let key = model.keys().nth(index).unwrap().clone();
                apply(NonLeafOp::Remove { index: index as u16 }, &mut page).unwrap();
                model.remove(&key);
            } else if kind < 9 && n > 0 {
                let index = random.below(n as u64) as usize;
                let keys: Vec<Vec<u8>> = model.keys().cloned().collect();
                let op = NonLeafOp::Replace { index: index as u16, separator: &separator };
                let ascends = (index == 0 || keys[index - 1] < separator) && keys.get(index + 1).is_none_or(|k| separator < *k);
                let room = separator.len() <= keys[index].len() + NonLeaf::new(&page).free_bytes();
                if ascends && room {
                    apply(op, &mut page).unwrap();
                    let child = model.remove(&keys[index]).unwrap();
                    model.insert(separator.clone(), child);
                } else {
                    assert!(apply(op, &mut copy).is_err() && copy == page);
                }
            } else {
                assert!(apply(NonLeafOp::Remove { index: n as u16 }, &mut copy).is_err() && copy == page);
            }
            let search = random_separator(&mut random, &prefix, most + 2, alphabet);
            let view = NonLeaf::new(&page);
            let expected = model.range(..=search.clone()).next_back().map_or(77, |s| *s.1);
            assert_eq!(view.child(view.child_for(&search)), expected);
            if step % 20 == 0 {
                check(&page).unwrap();
            }
        }
        assert_eq!(contents(&page), model.clone().into_iter().collect::<Vec<_>>());
        // Split as the tree does: the middle separator goes up.
        let view = NonLeaf::new(&page);
        let n = view.separator_count();
        let middle = n / 2;
        let mut right = vec![0; page_bytes];
        apply(NonLeafOp::Format { page_number: 5, level: 2, first_child: view.child(middle + 1) }, &mut right).unwrap();
        let run = view.run(middle + 1);
        apply(NonLeafOp::Append { count: (n - middle - 1) as u16, run: &run }, &mut right).unwrap();
        let up = view.separator(middle).to_vec();
        let mut left = page.clone();
        apply(NonLeafOp::KeepFirst { count: middle as u16 }, &mut left).unwrap();
        check(&left).unwrap();
        check(&right).unwrap();
        // And together again.
        let mut run = Vec::new();
        let right = NonLeaf::new(&right);
        super::non_leaf::put_separator(&mut run, &up, right.child(0));
        run.extend(right.run(0));
        apply(NonLeafOp::Append { count: right.separator_count() as u16 + 1, run: &run }, &mut left).unwrap();
        assert!(left == page);
        apply(NonLeafOp::SetFirstChild { child: 8 }, &mut left).unwrap();
        assert_eq!(NonLeaf::new(&left).child(0), 8);
    }
    assert!(inserts > 30_000 && full > 1_000, "{inserts} {full}");
}

#[test]
fn hostile_pages_and_ops_do_no_harm() {
    let mut random = Random(22);
    let (mut valid, mut invalid) = (0, 0);
    for _ in 0..3000 {
        let mut page = vec![0; 2048];
        NonLeafOp::Format { page_number: 4, level: 1, first_child: 77 }.apply(&mut page).unwrap();
        for _ in 0..random.below(40) {
            let separator = random_separator(&mut random, b"p", 12, 4);
            let _ = NonLeafOp::Insert { separator: &separator, child: 9 }.apply(&mut page);
        }
        let run = NonLeaf::new(&page).run(0);
        let count = NonLeaf::new(&page).separator_count() as u16;
        for _ in 0..=random.below(6) {
            let at = if random.below(2) == 0 { 24 + random.below(30) } else { random.below(2048) } as usize;
            page[at] = random.next() as u8;
        }
        let ok = validate(&page).is_ok();
        valid += usize::from(ok);
        invalid += usize::from(!ok);
        let _ = check(&page);
        let separator = random_separator(&mut random, b"p", 12, 4);
        let view = NonLeaf::new(&page);
        let _ = (view.child(view.child_for(&separator)), view.free_bytes(), view.run(1));
        let index = random.below(50) as u16;
        for op in [
            NonLeafOp::Insert { separator: &separator, child: 1 },
            NonLeafOp::Remove { index },
            NonLeafOp::Replace { index, separator: &separator },
            NonLeafOp::KeepFirst { count: index },
            NonLeafOp::Append { count, run: &run },
            NonLeafOp::Format { page_number: 0, level: 99, first_child: 0 },
        ] {
            let _ = op.apply(&mut page.clone());
        }
        let bytes: Vec<u8> = (0..random.below(30)).map(|i| if i == 0 { random.below(8) as u8 } else { random.below(9) as u8 }).collect();
        if let Ok(op) = NonLeafOp::decode(&mut Reader::new(&bytes)) {
            let _ = op.apply(&mut page);
        }
    }
    assert!(valid > 100 && invalid > 1000, "{valid} {invalid}");
}

//! Leaves of every shape against an ordered map.

use super::folded;
use super::header::{FOLDED_PAGE_BYTES, LEAF_HEADER_BYTES, LeafKind};
use super::leaf::{Leaf, Place, check, validate};
use super::limits;
use super::ops::LeafOp;
use super::rids_tests::assert_rids;
use crate::test_random::Random;
use crate::wire::Reader;
use pagefold_codec::index::encode::{encode, encode_calls};
use pagefold_types::{Rid, key_bytes_max};
use std::collections::BTreeSet;

type Model = BTreeSet<(Vec<u8>, Rid)>;

/// What keys and RIDs a test draws.
struct Source {
    kind: LeafKind,
    prefix: Vec<u8>,
    rest: usize,
    alphabet: u64,
    pages: u64,
    slots: u64,
}

impl Source {
    fn new(random: &mut Random, page_bytes: usize, fold: bool) -> Source {
        let single = random.below(2) == 0;
        let prefix_bytes = random.one_of(&[0usize, 0, 2, 9, 40]);
        let rest = random.one_of(&[1usize, 2, 3, 4, 8, 12, 20, 40, 300]);
        let most = key_bytes_max(if fold { FOLDED_PAGE_BYTES } else { page_bytes });
        let rest = rest.min(most - prefix_bytes);
        let fixed = random.below(2) == 0;
        Source {
            kind: LeafKind {
                single,
                fold,
                fixed_key_bytes: if fixed { (prefix_bytes + rest) as u16 } else { 0 },
                slot_bits: if fold { random.one_of(&[0, 5, 12]) } else { 12 },
            },
            prefix: (0..prefix_bytes).map(|_| random.next() as u8).collect(),
            rest,
            alphabet: random.one_of(&[2, 4, 256]),
            pages: random.one_of(&[1, 20, 10_000, u64::from(u32::MAX)]),
            slots: random.one_of(&[1, 30, 4096]),
        }
    }

    /// Keys that are prefixes of one another are drawn, too.
    fn key(&self, random: &mut Random) -> Vec<u8> {
        let mut key = self.prefix.clone();
        let rest = if self.kind.fixed_key_bytes == 0 { random.below(self.rest as u64 + 1) as usize } else { self.rest };
        key.extend((0..rest).map(|_| random.below(self.alphabet) as u8));
        key
    }

    fn rid(&self, random: &mut Random) -> Rid {
        let partition = if random.below(50) == 0 { 4095 } else { 0 };
        Rid::new(partition, random.below(self.pages) as u32, random.below(self.slots) as u16)
    }
}

fn apply(op: LeafOp<'_>, page: &mut [u8]) -> Result<(), crate::FormatError> {
    let mut log = vec![7];
    op.encode(&mut log);
    let mut reader = Reader::new(&log[1..]);
    assert_eq!(LeafOp::decode(&mut reader).unwrap(), op);
    assert!(reader.is_empty());
    op.apply(page)
}

fn contents(page: &[u8]) -> Vec<(Vec<u8>, Rid)> {
    let leaf = Leaf::new(page);
    leaf.entries().flat_map(|e| (0..e.rid_count()).map(move |r| (e.key.to_vec(), super::leaf::rid(&e, r)))).collect()
}

fn assert_searches(page: &[u8], model: &Model, key: &[u8], rid: Rid) {
    let leaf = Leaf::new(page);
    let first = model.range((key.to_vec(), Rid::MIN)..).next();
    let (i, found) = leaf.lower_bound(key);
    assert_eq!(found, first.is_some_and(|f| f.0 == key));
    assert_eq!(leaf.find(key).is_some(), found);
    match first {
        Some((k, r)) => assert_eq!((leaf.entry(i).key, leaf.rid(Place { entry: i, rid: 0 })), (k.as_slice(), *r)),
        None => assert_eq!(i, leaf.entry_count()),
    }
    // Keys of one length are prefix-free, as index keys are: only then do byte strings order like (key, RID).
    if leaf.shape().fixed_key_bytes != 0 {
        let search = [key, &rid.to_bytes()[..(rid.to_u64() % 8) as usize]].concat();
        let sought = leaf.seek(&search);
        let all = Place { entry: leaf.entry_count(), rid: 0 };
        assert!(sought == all || [leaf.entry(sought.entry).key, &leaf.rid(sought).to_bytes()].concat() >= search);
        let before = if sought.rid > 0 {
            Some(Place { rid: sought.rid - 1, ..sought })
        } else {
            sought.entry.checked_sub(1).map(|entry| Place { entry, rid: leaf.entry(entry).rid_count() - 1 })
        };
        assert!(before.is_none_or(|p| [leaf.entry(p.entry).key, &leaf.rid(p).to_bytes()].concat() < search));
    }
    let (place, found) = leaf.lower_bound_rid(key, rid);
    assert_eq!(found, model.contains(&(key.to_vec(), rid)));
    match model.range((key.to_vec(), rid)..).next() {
        Some((k, r)) => assert_eq!((leaf.entry(place.entry).key, leaf.rid(place)), (k.as_slice(), *r)),
        None => assert_eq!(place, Place { entry: leaf.entry_count(), rid: 0 }),
    }
}

fn assert_folds(page: &[u8]) {
    let leaf = Leaf::new(page);
    let mut out = [0u8; FOLDED_PAGE_BYTES];
    let used = encode(leaf.shape(), leaf.entries(), &mut out).unwrap();
    assert_eq!(LEAF_HEADER_BYTES + used, leaf.folded_bytes());
    folded::fold(page, &mut out).unwrap();
    let mut back = vec![0xA5; page.len()];
    folded::expand(&out, &mut back).unwrap();
    assert!(back == page, "a fold that does not come back");
    folded::check_folded(&out).unwrap();
}

#[test]
fn leaves_are_what_an_ordered_map_is() {
    let mut random = Random(11);
    let (mut inserts, mut full, mut removes, mut splits) = (0, 0, 0, 0);
    for round in 0..240 {
        let fold = round % 2 == 0;
        let page_bytes = if fold { random.one_of(&[8192, 16384, 32768]) } else { random.one_of(&[2048, 4096, 6144, 16384, 32768]) };
        let source = Source::new(&mut random, page_bytes, fold);
        let mut page = vec![0xEE; page_bytes];
        apply(LeafOp::Format { page_number: 5, kind: source.kind, next: 9 }, &mut page).unwrap();
        let mut model = Model::new();
        let mut phase = 0;
        for step in 0..2500 {
            if step % 500 == 0 {
                phase = random.below(3);
            }
            let (key, rid) = (source.key(&mut random), source.rid(&mut random));
            let before = encode_calls();
            if random.below(3) >= phase {
                let leaf = Leaf::new(&page);
                let op = LeafOp::Insert { key: &key, rid };
                let mut copy = page.clone();
                match leaf.plan_insert(&key, rid) {
                    Ok(plan) if plan.fits(&leaf) => {
                        apply(op, &mut page).unwrap();
                        model.insert((key.clone(), rid));
                        inserts += 1;
                        assert_eq!(Leaf::new(&page).folded_bytes(), plan.folded_bytes);
                    }
                    Ok(_) => {
                        full += 1;
                        assert!(apply(op, &mut copy).is_err() && copy == page);
                    }
                    Err(_) => {
                        assert!(model.contains(&(key.clone(), rid)));
                        assert!(apply(op, &mut copy).is_err() && copy == page);
                    }
                }
            } else if let Some((key, rid)) = model.iter().nth(random.below(model.len().max(1) as u64) as usize).cloned() {
                let folded_before = Leaf::new(&page).folded_bytes();
                apply(LeafOp::Remove { key: &key, rid }, &mut page).unwrap();
                model.remove(&(key, rid));
                removes += 1;
                assert!(Leaf::new(&page).folded_bytes() <= folded_before);
            }
            assert!(model.contains(&(key.clone(), rid)) || apply(LeafOp::Remove { key: &key, rid }, &mut page.clone()).is_err());
            assert_eq!(encode_calls(), before, "a change ran the encoder");
            assert_searches(&page, &model, &key, rid);
            if step % 16 == 0 {
                check(&page).unwrap();
                assert_rids(&page);
                if fold {
                    assert_folds(&page);
                }
            }
        }
        assert_eq!(contents(&page), model.iter().cloned().collect::<Vec<_>>());
        assert_eq!(Leaf::new(&page).rid_count(), model.len());
        assert_eq!(Leaf::new(&page).next(), 9);
        splits += usize::from(split_and_join(&page, &source));
    }
    assert!(inserts > 50_000 && full > 5_000 && removes > 20_000 && splits > 150, "{inserts} {full} {removes} {splits}");
}

/// Cuts the leaf in the middle and puts it together again.
fn split_and_join(page: &[u8], source: &Source) -> bool {
    let leaf = Leaf::new(page);
    let Some(cut) = limits::cut(&leaf, 1, 2) else {
        assert!(leaf.rid_count() < 2);
        return false;
    };
    let end = Place { entry: leaf.entry_count(), rid: 0 };
    let (count, run) = leaf.run(cut, end);
    let mut left = page.to_vec();
    apply(LeafOp::KeepFirst { cut }, &mut left).unwrap();
    let mut right = vec![0; page.len()];
    let kind = Leaf::new(page).kind();
    apply(LeafOp::Format { page_number: 6, kind, next: 9 }, &mut right).unwrap();
    apply(LeafOp::Append { count: count as u16, run: &run }, &mut right).unwrap();
    let mut from = page.to_vec();
    apply(LeafOp::KeepFrom { cut }, &mut from).unwrap();
    assert_eq!(contents(&from), contents(&right));
    let mut all = contents(&left);
    all.extend(contents(&right));
    assert_eq!(all, contents(page));
    for half in [&left, &right, &from] {
        check(half).unwrap();
        if source.kind.fold {
            assert_folds(half);
        }
    }
    let share = |p: &[u8]| p.len() - Leaf::new(p).free_bytes();
    if leaf.rid_count() > 60 && !source.kind.fold {
        assert!(share(&left) * 4 > share(page) && share(&right) * 4 > share(page), "lopsided");
    }
    let append = LeafOp::Append { count: count as u16, run: &run };
    assert!(append.on_copy(&left).unwrap() == page, "halves joined are not the whole");
    apply(append, &mut left).unwrap();
    assert!(left == page, "halves joined are not the whole");
    // The same from the front.
    let (count, run) = leaf.run(Place::default(), cut);
    let prepend = LeafOp::Prepend { count: count as u16, run: &run };
    assert!(append.on_copy(page).is_none() && prepend.on_copy(page).is_none(), "what is there already");
    crate::page::set_lsn(&mut from, 77);
    apply(prepend, &mut from).unwrap();
    assert_eq!(crate::page::lsn(&from), 77);
    crate::page::set_lsn(&mut from, crate::page::lsn(page));
    assert!(from == page, "halves joined from the front are not the whole");
    parts_are_as_wanted(page, source);
    true
}

/// Cuts lie about where they are wanted, as far as entries allow.
fn parts_are_as_wanted(page: &[u8], source: &Source) {
    let leaf = Leaf::new(page);
    if leaf.rid_count() < 100 || source.kind.fold {
        return;
    }
    let used = |p: &[u8]| p.len() - Leaf::new(p).free_bytes();
    for part in 1..8 {
        let cut = limits::cut(&leaf, part, 8).unwrap();
        let mut first = page.to_vec();
        apply(LeafOp::KeepFirst { cut }, &mut first).unwrap();
        let off = (used(&first) * 8).abs_diff(used(page) * part);
        assert!(off <= 2 * page.len(), "{part} of 8: {} of {}", used(&first), used(page));
    }
}

#[test]
fn small_changes_are_refused_whole() {
    let kind = LeafKind { single: false, fold: true, fixed_key_bytes: 4, slot_bits: 12 };
    let mut page = vec![0; 8192];
    LeafOp::Format { page_number: 1, kind, next: 0 }.apply(&mut page).unwrap();
    let rid = Rid::new(0, 7, 7);
    LeafOp::Insert { key: b"aaaa", rid }.apply(&mut page).unwrap();
    let before = page.clone();
    let mut run = Vec::new();
    super::leaf::put_entry(&mut run, kind.shape(), b"aaaa", &rid.to_bytes());
    let append = |count, run| LeafOp::Append { count, run };
    for op in [
        LeafOp::Insert { key: b"aaaa", rid },
        LeafOp::Insert { key: b"aaaaa", rid },
        LeafOp::Remove { key: b"aaaa", rid: Rid::MIN },
        LeafOp::Remove { key: b"aaab", rid },
        LeafOp::KeepFirst { cut: Place { entry: 2, rid: 0 } },
        LeafOp::KeepFirst { cut: Place { entry: 0, rid: 1 } },
        LeafOp::KeepFrom { cut: Place { entry: 1, rid: 1 } },
        append(1, &run),
        append(2, &run),
        append(0, &run),
        append(1, &run[..5]),
        LeafOp::Format { page_number: 1, kind: LeafKind { slot_bits: 13, ..kind }, next: 0 },
    ] {
        assert!(op.apply(&mut page).is_err(), "{op:?}");
        assert!(page == before, "{op:?}");
    }
    assert!(LeafOp::SetNext { next: 2 }.apply(&mut page[..2000]).is_err());
}

/// A leaf with a slot larger than its slot bits allow gets more bits, and an exact new size.
#[test]
fn slot_bits_grow() {
    let kind = LeafKind { single: true, fold: true, fixed_key_bytes: 8, slot_bits: 2 };
    let mut page = vec![0; 16384];
    LeafOp::Format { page_number: 1, kind, next: 0 }.apply(&mut page).unwrap();
    for i in 0..400u64 {
        LeafOp::Insert { key: &i.to_be_bytes(), rid: Rid::new(0, (i / 4) as u32, (i % 4) as u16) }.apply(&mut page).unwrap();
    }
    let small = Leaf::new(&page).folded_bytes();
    assert_folds(&page);
    LeafOp::Insert { key: &999u64.to_be_bytes(), rid: Rid::new(0, 3, 4095) }.apply(&mut page).unwrap();
    assert_eq!(Leaf::new(&page).kind().slot_bits, 12);
    assert!(Leaf::new(&page).folded_bytes() > small + 100);
    check(&page).unwrap();
    assert_folds(&page);
}

#[test]
fn a_leaf_has_one_fold() {
    let kind = LeafKind { single: true, fold: true, fixed_key_bytes: 3, slot_bits: 12 };
    let mut page = vec![0; 8192];
    LeafOp::Format { page_number: 5, kind, next: 0 }.apply(&mut page).unwrap();
    LeafOp::Insert { key: b"key", rid: Rid::MIN }.apply(&mut page).unwrap();
    let mut disk = [0; FOLDED_PAGE_BYTES];
    folded::fold(&page, &mut disk).unwrap();
    assert!(folded::check_folded(&disk).unwrap() == page);
    // The first RID's difference is 0: one byte, to be added (code 4) or subtracted (code 11).
    assert_eq!(disk[LEAF_HEADER_BYTES], 3 << 4 | 4);
    disk[LEAF_HEADER_BYTES] = 3 << 4 | 11;
    let mut back = vec![0; 8192];
    folded::expand(&disk, &mut back).unwrap();
    assert!(back == page);
    assert!(folded::check_folded(&disk).is_err());

    let kind = LeafKind { fixed_key_bytes: 0, ..kind };
    LeafOp::Format { page_number: 5, kind, next: 0 }.apply(&mut page).unwrap();
    LeafOp::Insert { key: b"key", rid: Rid::MIN }.apply(&mut page).unwrap();
    folded::fold(&page, &mut disk).unwrap();
    folded::check_folded(&disk).unwrap();
    // The length of the longest key is one more than it is.
    assert_eq!(disk[38], 3);
    disk[38] = 4;
    folded::expand(&disk, &mut back).unwrap();
    assert!(folded::check_folded(&disk).is_err());
}

#[test]
fn hostile_leaves_ops_and_folds_do_no_harm() {
    let mut random = Random(12);
    let (mut valid, mut invalid, mut expanded) = (0, 0, 0);
    for round in 0..400 {
        let fold = round % 2 == 0;
        let page_bytes = if fold { 8192 } else { 2048 };
        let source = Source::new(&mut random, page_bytes, fold);
        let mut page = vec![0; page_bytes];
        LeafOp::Format { page_number: 5, kind: source.kind, next: 9 }.apply(&mut page).unwrap();
        for _ in 0..random.below(150) {
            let _ = LeafOp::Insert { key: &source.key(&mut random), rid: source.rid(&mut random) }.apply(&mut page);
        }
        let mut disk = [0u8; FOLDED_PAGE_BYTES];
        if fold {
            folded::fold(&page, &mut disk).unwrap();
        }
        for _ in 0..60 {
            let mut bad = page.clone();
            for _ in 0..=random.below(6) {
                let low = Leaf::new(&page).low_end() as u64 + 1;
                let at = match random.below(3) {
                    0 => 24 + random.below(32),
                    1 => random.below(low),
                    _ => page_bytes as u64 - 1 - random.below(400),
                };
                let values = [0, 0xFF, random.next() as u8, bad[at as usize] ^ 1 << random.below(8)];
                bad[at as usize] = random.one_of(&values);
            }
            let ok = validate(&bad).is_ok();
            let _ = check(&bad);
            valid += usize::from(ok);
            invalid += usize::from(!ok);
            // Every access and op, validated or not.
            let leaf = Leaf::new(&bad);
            let (key, rid) = (source.key(&mut random), source.rid(&mut random));
            let _ = (
                leaf.lower_bound(&key),
                leaf.lower_bound_rid(&key, rid),
                leaf.free_bytes(),
                leaf.plan_insert(&key, rid),
                leaf.last_place(),
            );
            let _ = (leaf.entries().count(), limits::cut(&leaf, 1, 2), leaf.run(Place { entry: 1, rid: 1 }, Place { entry: 7, rid: 3 }));
            let cut = Place { entry: random.below(200) as usize, rid: random.below(4) as usize };
            let (count, run) = Leaf::new(&page).run(Place::default(), Place { entry: 9, rid: 0 });
            for op in [
                LeafOp::Insert { key: &key, rid },
                LeafOp::Remove { key: &key, rid },
                LeafOp::Remove { key: leaf.entry(0).key, rid: leaf.rid(Place::default()) },
                LeafOp::KeepFirst { cut },
                LeafOp::KeepFrom { cut },
                LeafOp::Append { count: count as u16, run: &run },
            ] {
                let _ = op.apply(&mut bad.clone());
            }
            if fold {
                let mut bad = disk;
                for _ in 0..=random.below(4) {
                    let at = if random.below(2) == 0 { 24 + random.below(32) } else { random.below(FOLDED_PAGE_BYTES as u64) } as usize;
                    bad[at] ^= random.next() as u8;
                }
                let mut out = vec![0; page_bytes];
                if folded::expand(&bad, &mut out).is_ok() {
                    validate(&out).unwrap();
                    expanded += 1;
                }
                let _ = folded::check_folded(&bad);
                let _ = folded::expand(&bad[..random.below(4096) as usize], &mut out);
            }
        }
    }
    for _ in 0..20_000 {
        let bytes: Vec<u8> = (0..random.below(40)).map(|i| if i == 0 { random.below(8) as u8 } else { random.below(20) as u8 }).collect();
        if let Ok(op) = LeafOp::decode(&mut Reader::new(&bytes)) {
            let mut page = vec![0; 2048];
            let _ = op.apply(&mut page);
        }
    }
    assert!(valid > 1000 && invalid > 5000 && expanded > 500, "{valid} {invalid} {expanded}");
}

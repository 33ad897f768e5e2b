//! Blocks against sorted vectors: what is encoded comes back, sizes are exact, searches find what a plain search finds, hostile bytes do no harm.

use super::{Block, Entries, Frame, Inserted, PAIRS_MAX, Plan};
use crate::index::layout::key_head;
use crate::index::tests::Random;

type Pair = (Vec<u8>, u64);

/// Keys of one kind: (fixed length, a key of the random number).
type KeyKind = (usize, fn(u64) -> Vec<u8>);

const KINDS: [KeyKind; 9] = [
    (4, |n| ((n % 300) as u32).to_be_bytes().to_vec()),
    (8, |n| (n % 1_000_000).to_be_bytes().to_vec()),
    (8, |n| n.to_be_bytes().to_vec()),
    (12, |n| [&((n % 4000) >> 3 << 5 | n & 7).to_be_bytes()[..], &((n % 7) as u32).to_be_bytes()].concat()),
    (16, |n| [(n % 200).to_be_bytes(), (n / 200 % 10_000).to_be_bytes()].concat()),
    (40, |n| [&[b' '; 35][..], &((n % 70_000) as u32).to_be_bytes(), b"!"].concat()),
    (20, |n| format!("{:<20}", ["", "a", "ab", "abc"][n as usize % 4].repeat((n / 4 % 5) as usize)).into_bytes()),
    (0, |n| format!("{}{}\0", "xy".repeat((n % 4) as usize), n / 4 % 60).into_bytes()),
    (0, |n| format!("{}{:x}\0", "long ".repeat((n % 9) as usize), n / 9 % 400).into_bytes()),
];

fn pairs(random: &mut Random, kind: KeyKind, count: usize, rid_kind: u64) -> Vec<Pair> {
    let few = [3, 40, u64::MAX][random.below(3) as usize];
    let mut pairs: Vec<Pair> = (0..count)
        .map(|i| {
            let rid = match rid_kind {
                0 => random.below(100_000) << 12 | random.below(160),
                1 => (i as u64 / 130) << 12 | (i as u64 % 130),
                2 => random.next() >> 8,
                _ => random.below(30),
            };
            ((kind.1)(random.next() % few), rid)
        })
        .collect();
    pairs.sort();
    pairs.dedup();
    if rid_kind == 1 {
        let mut rids: Vec<u64> = pairs.iter().map(|p| p.1).collect();
        rids.sort_unstable();
        rids.dedup();
        pairs.truncate(rids.len());
        pairs.iter_mut().zip(rids).for_each(|(p, rid)| p.1 = rid);
    }
    pairs
}

fn entries(pairs: &[Pair]) -> Entries {
    let mut entries = Entries::new();
    pairs.iter().for_each(|(key, rid)| entries.push(key, *rid));
    entries
}

fn frame<'a>(kind: KeyKind, pairs: &'a [Pair], shared: usize) -> Frame<'a> {
    Frame { fixed_key_bytes: kind.0, shared: &pairs[0].0[..shared], head: key_head(&pairs[0].0, shared) }
}

fn blocks(seed: u64, rounds: usize, mut check: impl FnMut(&mut Random, KeyKind, &[Pair], &[u8], usize)) {
    let mut random = Random(seed);
    for round in 0..rounds {
        let kind = KINDS[round % KINDS.len()];
        let count = [1, 2, 3, 17, 64, PAIRS_MAX][random.below(6) as usize];
        let rid_kind = random.below(4);
        let pairs = pairs(&mut random, kind, count, rid_kind);
        let entries = entries(&pairs);
        let plan = Plan::new(&entries, kind.0).unwrap();
        let most = entries.shared_bytes().min(pairs[0].0.len() - 1);
        let shared = random.below(most as u64 + 1) as usize;
        let mut bytes = Vec::new();
        plan.encode(&entries, shared, &mut bytes);
        assert_eq!(bytes.len(), plan.bytes(shared));
        check(&mut random, kind, &pairs, &bytes, shared);
    }
}

#[test]
fn blocks_come_back() {
    let mut forms = [0; 16];
    blocks(1, 6000, |_, kind, pairs, bytes, shared| {
        let block = Block::read(bytes, bytes.len(), frame(kind, pairs, shared)).unwrap();
        block.validate().unwrap();
        let mut back = Entries::new();
        block.decode(&mut back).unwrap();
        assert_eq!(back.pairs().map(|(k, r)| (k.to_vec(), r)).collect::<Vec<_>>(), pairs);
        assert_eq!(back, entries(pairs));
        let mut rids = vec![7];
        block.rids(&mut rids).unwrap();
        assert!(rids[1..].iter().eq(pairs.iter().map(|pair| &pair.1)));
        let distinct = back.entry_count();
        let counts = if distinct == pairs.len() { 0 } else { 1 + usize::from(block.entries == pairs.len()) };
        forms[block.form as usize * 4 + counts] += 1;
    });
    // One key; frame, delta: one RID each, with counts, without; text: one RID each, with counts.
    for form in [0, 1, 4, 5, 6, 8, 9, 10, 12, 13] {
        assert!(forms[form] > 0, "form {form} was not seen: {forms:?}");
    }
}

#[test]
fn searches_are_those_of_a_vector() {
    blocks(2, 3000, |random, kind, pairs, bytes, shared| {
        let block = Block::read(bytes, bytes.len(), frame(kind, pairs, shared)).unwrap();
        for (i, pair) in pairs.iter().enumerate() {
            assert_eq!(block.rid(i), pair.1);
        }
        let prefix = &pairs[0].0[..shared];
        let mut keys: Vec<Vec<u8>> = (0..6).map(|_| (kind.1)(random.next() % 5000)).collect();
        for _ in 0..6 {
            let mut key = pairs[random.below(pairs.len() as u64) as usize].0.clone();
            keys.push(key.clone());
            keys.push(key[..random.below(key.len() as u64 + 1) as usize].to_vec());
            let at = random.below(key.len() as u64) as usize;
            key[at] ^= 1 << random.below(8);
            keys.push(key.clone());
            key.push(random.next() as u8);
            keys.push(key);
        }
        for key in keys.iter().filter(|key| key.starts_with(prefix)) {
            let own = &key[shared..];
            let place = pairs.partition_point(|p| p.0 < *key);
            let found = pairs.get(place).is_some_and(|p| p.0 == *key);
            assert_eq!(block.lower_bound(own), (place, found), "{key:?} in {pairs:?}");
            assert_eq!(block.cmp_first_key(own), pairs[0].0.cmp(key));
            let any = pairs[random.below(pairs.len() as u64) as usize].1;
            for rid in [any, any + 1, any.saturating_sub(1), 0, (1 << 56) - 1, random.next() >> 8, any | 0xFFF] {
                let wanted = (key.clone(), rid);
                assert_eq!(block.cmp_first_rid(rid), pairs[0].1.cmp(&rid));
                let place = pairs.partition_point(|p| *p < wanted);
                assert_eq!(block.lower_bound_pair(own, rid), (place, pairs.get(place) == Some(&wanted)), "{wanted:?} in {pairs:?}");
            }
        }
    });
}

#[test]
fn entries_are_what_an_ordered_set_is() {
    let mut random = Random(3);
    for kind in KINDS {
        let mut model = std::collections::BTreeSet::new();
        let mut entries = Entries::new();
        for _ in 0..1500 {
            let pair = ((kind.1)(random.below(40)), random.below(12));
            if random.below(5) < 3 {
                let place = model.iter().position(|p| *p >= pair).unwrap_or(model.len());
                let inserted = model.insert(pair.clone());
                assert_eq!(entries.insert(&pair.0, pair.1), inserted.then_some(place));
            } else {
                assert_eq!(entries.remove(&pair.0, pair.1), model.remove(&pair));
            }
            assert_eq!(entries.pair_count(), model.len());
        }
        assert!(entries.pairs().map(|(k, r)| (k.to_vec(), r)).eq(model.iter().cloned()));
        let n = entries.pair_count();
        let mut again = Entries::new();
        let cut = random.below(n as u64) as usize;
        again.extend(&entries, 0, cut);
        assert_eq!(again.pair_count(), cut);
        again.extend(&entries, cut, n);
        assert_eq!(again, entries);
    }
}

/// An insert among codes gives the block that all its pairs give, byte for byte.
#[test]
fn inserts_among_codes_are_plans_of_all_pairs() {
    let (mut seen, mut plan) = ([[0; 2]; 4], Plan::default());
    blocks(11, 6000, |random, kind, pairs, bytes, shared| {
        let block = Block::read(bytes, bytes.len(), frame(kind, pairs, shared)).unwrap();
        for _ in 0..8 {
            let any = &pairs[random.below(pairs.len() as u64) as usize];
            let key = if random.below(2) == 0 { any.0.clone() } else { (kind.1)(random.next() % 5000) };
            let rid =
                [any.1, any.1 + 1, any.1 ^ 1 << random.below(12), random.below(1 << 30), random.next() >> 8][random.below(5) as usize];
            let Some(own) = key.strip_prefix(&pairs[0].0[..shared]) else { continue };
            let place = pairs.binary_search(&(key.clone(), rid));
            let inserted = plan.insert(&block, own, rid).unwrap();
            seen[block.form as usize][usize::from(inserted != Inserted::Otherwise)] += 1;
            let at = match inserted {
                Inserted::At(at) => at,
                Inserted::Known => {
                    assert!(place.is_ok());
                    continue;
                }
                Inserted::Otherwise => continue,
            };
            assert_eq!(place, Err(at));
            let mut all = pairs.to_vec();
            all.insert(at, (key.clone(), rid));
            let all_entries = entries(&all);
            let expected = Plan::new(&all_entries, kind.0).unwrap();
            let (mut from_codes, mut from_pairs) = (Vec::new(), Vec::new());
            let head = plan.encode_inserted(&block, own, at, &mut from_codes);
            expected.encode(&all_entries, shared, &mut from_pairs);
            assert_eq!(from_codes, from_pairs, "{:?} {kind:?}", block.form);
            assert_eq!((plan.bytes(shared), plan.is_slow()), (from_pairs.len(), expected.is_slow()));
            assert_eq!(head, key_head(&all[0].0, shared));
        }
    });
    assert!((0..3).all(|form| seen[form][1] > 1000) && seen[3][1] == 0, "{seen:?}");
}

/// Pairs that come in order make the blocks that a build makes; most of them by moving bits alone.
#[test]
fn appended_blocks_are_plans_of_all_pairs() {
    let mut seen = [[0; 2]; 4];
    let mut random = Random(21);
    for round in 0..3000 {
        let kind = KINDS[round % KINDS.len()];
        let (start, step) = (random.below(1 << 40), 1 + random.below(3) * random.below(300));
        let mut keys: Vec<Vec<u8>> = (0..=PAIRS_MAX as u64).map(|i| (kind.1)(start + i * step + random.below(step))).collect();
        keys.sort();
        keys.dedup();
        // RIDs as a table gives them that grows, with rows of others between.
        let (per_page, skip) = ([7, 130, 4000][random.below(3) as usize] + random.below(90), 1 + random.below(5));
        let mut row = random.below(1 << 30);
        let all: Vec<Pair> = keys
            .into_iter()
            .map(|key| {
                row += 1 + random.below(skip);
                (key, ((row / per_page) << 12) | (row % per_page))
            })
            .collect();
        let from = 1 + random.below(all.len() as u64) as usize;
        let shared = random.below(entries(&all).shared_bytes().min(all[0].0.len() - 1) as u64 + 1) as usize;
        for count in from..all.len().min(from + 12) {
            let (there, pair) = (&all[..count], &all[count]);
            let there_entries = entries(there);
            let mut bytes = Vec::new();
            Plan::new(&there_entries, kind.0).unwrap().encode(&there_entries, shared, &mut bytes);
            let block = Block::read(&bytes, bytes.len(), frame(kind, there, shared)).unwrap();
            let mut appended = b"before".to_vec();
            let is_appended = block.append(&pair.0[shared..], pair.1, &mut appended);
            seen[block.form as usize][usize::from(is_appended)] += 1;
            // What is not behind the last is none of it.
            let known = &there[random.below(count as u64) as usize];
            let mut nothing = Vec::new();
            assert!(!block.append(&known.0[shared..], known.1, &mut nothing) && nothing.is_empty());
            if !is_appended {
                assert_eq!(appended, b"before");
                continue;
            }
            let together = entries(&all[..=count]);
            let mut expected = b"before".to_vec();
            Plan::new(&together, kind.0).unwrap().encode(&together, shared, &mut expected);
            assert_eq!(appended, expected, "{:?} {kind:?} {count}", block.form);
            assert_eq!(block.head(), key_head(&all[0].0, shared));
        }
    }
    assert!(seen[1][1] > 100 && seen[2][1] > 5000, "{seen:?}");
}

/// Never a panic; what is accepted whole decodes to ascending pairs, and they encode to no more bytes.
#[test]
fn damaged_blocks_do_no_harm() {
    let mut accepted = 0;
    blocks(4, 4000, |random, kind, pairs, bytes, shared| {
        for _ in 0..20 {
            let mut bytes = bytes.to_vec();
            for _ in 0..=random.below(3) {
                let n = if random.below(2) == 0 { bytes.len().min(12) } else { bytes.len() };
                let at = random.below(n as u64) as usize;
                bytes[at] = [0, 0xFF, random.next() as u8, bytes[at] ^ 1 << random.below(8)][random.below(4) as usize];
            }
            if random.below(4) == 0 {
                bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
            }
            let Ok(block) = Block::read(&bytes, bytes.len(), frame(kind, pairs, shared)) else { continue };
            let own = &pairs[0].0[shared..];
            let _ = (block.lower_bound(own), block.lower_bound_pair(own, 77), block.rid(0), block.rid(127), block.validate());
            let _ = (block.lower_bound(&[]), block.lower_bound(&[0xFF; 50]), block.lower_bound_pair(&own[..own.len() - 1], u64::MAX >> 8));
            let mut plan = Plan::default();
            let mut inserted = Vec::new();
            if let Ok(Inserted::At(at)) = plan.insert(&block, own, 1 << 55 | 4000) {
                plan.encode_inserted(&block, own, at, &mut inserted);
                assert_eq!(inserted.len(), plan.bytes(shared));
            }
            let (mut back, mut rids) = (Entries::new(), Vec::new());
            let _ = block.rids(&mut rids);
            assert!(rids.len() <= PAIRS_MAX);
            if block.decode(&mut back).is_ok() {
                accepted += 1;
                assert_eq!(rids, back.all_rids());
                let all: Vec<(&[u8], u64)> = back.pairs().collect();
                assert!(all.len() <= PAIRS_MAX && all.windows(2).all(|p| p[0] < p[1]));
                block.validate().unwrap();
            }
        }
    });
    assert!(accepted > 1000);
}

#[test]
fn noise_does_no_harm() {
    let mut random = Random(9);
    for _ in 0..200_000 {
        let bytes: Vec<u8> =
            (0..random.below(120)).map(|_| if random.below(3) == 0 { random.next() as u8 } else { random.below(8) as u8 }).collect();
        let shared = [1; 3];
        let frame = Frame { fixed_key_bytes: [0, 3, 9][random.below(3) as usize], shared: &shared, head: random.next() as u32 };
        let Ok(block) = Block::read(&bytes, bytes.len(), frame) else { continue };
        let _ = (block.lower_bound(b"abc"), block.lower_bound_pair(&[], 9), block.rid(5), block.validate());
        let _ = (block.decode(&mut Entries::new()), block.rids(&mut Vec::new()));
        let mut plan = Plan::default();
        for own in [&[][..], b"abcdef"] {
            if let Ok(Inserted::At(at)) = plan.insert(&block, own, random.next() >> 8) {
                plan.encode_inserted(&block, own, at, &mut Vec::new());
            }
        }
    }
}

#[test]
fn bytes_of_a_block() {
    // Mask 63 00 00 00 03: codes are 0100_01, 0100_10, 0101_01, 0110_01, 0110_10, 1000_01, so deltas are 1, 3, 4, 1, 7, of three bits each; then five RID gaps of one bit.
    let pairs: Vec<Pair> = [(32u64, 1u32), (32, 2), (33, 1), (34, 1), (34, 2), (64, 1)]
        .iter()
        .enumerate()
        .map(|(i, (order, line))| ([&order.to_be_bytes()[..], &line.to_be_bytes()].concat(), 0x5000 + 2 * i as u64))
        .collect();
    let entries = entries(&pairs);
    let plan = Plan::new(&entries, 12).unwrap();
    let mut bytes = Vec::new();
    plan.encode(&entries, 7, &mut bytes);
    assert_eq!(bytes[..7], [0x85, 5, 2 | 1 << 5, 10, 0x40, 0, 1], "header: delta, 11 slots, window of 5 bytes");
    assert_eq!(bytes[7..8], [1], "the last byte of the line number is behind the head");
    assert_eq!(bytes[8..15], [3, 0, 0x63, 0, 0, 0, 3], "code width, tail, mask");
    assert_eq!(bytes[15..], [55, 0x19, 0xF3, 0x0F], "base: slot 0 of page 5; bits");
}

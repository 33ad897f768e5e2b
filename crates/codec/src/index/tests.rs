//! The fold as a whole: sizes are exact, what is folded comes back, hostile bytes do no harm.

use super::cost::{Neighbour, entry_cost};
use super::encode::encode;
use super::expand::{Body, Expanded, expand, expand_by};
use super::layout::{Entry, MAP_BYTES, Shape, common_prefix, key_head, put_map, rid_bytes};
use super::slot_bits_for;

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }
}

struct Leaf {
    shape: Shape,
    keys: Vec<Vec<u8>>,
    rids: Vec<Vec<u8>>,
}

const START: usize = 56;

impl Leaf {
    fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.keys.iter().zip(&self.rids).map(|(key, rids)| Entry { key, rids })
    }

    fn cost(&self) -> usize {
        let mut before = Neighbour::NONE;
        let mut sum = 0;
        for entry in self.entries() {
            sum += entry_cost(self.shape, before, &entry);
            before = Neighbour::of(&entry);
        }
        sum
    }

    fn header(&self) -> Body {
        let common = match (self.keys.first(), self.keys.last()) {
            (Some(a), Some(b)) => common_prefix(a, b),
            _ => 0,
        };
        Body {
            entries: self.keys.len(),
            common_prefix: common,
            longest_key: self.keys.iter().map(Vec::len).max().unwrap_or(usize::from(self.shape.fixed_key_bytes)),
        }
    }

    /// The expanded body, written plainly.
    fn page(&self, bytes: usize) -> Option<(Vec<u8>, Expanded)> {
        let mut page = vec![0u8; bytes];
        let mut out = START;
        let header = self.header();
        let mut rids = 0;
        for (i, entry) in self.entries().enumerate() {
            if out + self.shape.entry_bytes(entry.key.len(), entry.rid_count()) + MAP_BYTES * self.keys.len() > bytes {
                return None;
            }
            put_map(&mut page, i, out, key_head(entry.key, header.common_prefix)).ok()?;
            let mut bytes = Vec::new();
            if self.shape.fixed_key_bytes == 0 {
                bytes.extend((entry.key.len() as u16).to_le_bytes());
            }
            if !self.shape.single {
                bytes.extend((entry.rid_count() as u16).to_le_bytes());
            }
            bytes.extend(entry.key);
            bytes.extend(entry.rids);
            page[out..out + bytes.len()].copy_from_slice(&bytes);
            out += bytes.len();
            rids += entry.rid_count();
        }
        Some((page, Expanded { low_end: out, rids }))
    }
}

/// A leaf of random contents; by `kind` from dense to wild.
fn random_leaf(random: &mut Random, kind: u64) -> Leaf {
    let single = random.below(2) == 0;
    let fixed = random.below(2) == 0;
    let prefix: Vec<u8> = (0..random.one_of(&[0, 0, 3, 17, 40])).map(|_| random.next() as u8).collect();
    let key_rest = random.one_of(&[1, 2, 4, 8, 12, 16, 17, 31, 32, 33, 100]);
    let alphabet = if random.below(2) == 0 { 3 } else { 256 };
    let wanted = {
        let most = random.one_of(&[3, 40, 600]);
        random.below(most) + 1
    };
    let mut keys: Vec<Vec<u8>> = (0..wanted)
        .map(|i| {
            let mut key = prefix.clone();
            if kind == 0 && key_rest >= 4 {
                key.extend(std::iter::repeat_n(7, key_rest - 4));
                key.extend((i as u32 * 3).to_be_bytes());
            } else {
                let n = if fixed { key_rest } else { random.below(key_rest as u64 + 1) as usize };
                key.extend((0..n).map(|_| random.below(alphabet) as u8));
            }
            key
        })
        .collect();
    keys.sort();
    keys.dedup();
    let max_slot = random.one_of(&[0u16, 1, 60, 255, 4095]);
    let slot_bits = (slot_bits_for(max_slot) + random.below(3) as u8).min(12);
    let mut next = random.below(1 << 20);
    let lists = random.one_of(&[1u64, 2, 20, 300]);
    let rids = keys
        .iter()
        .map(|_| {
            let n = if single { 1 } else { random.below(lists) + 1 };
            let mut list: Vec<u64> = (0..n)
                .map(|_| {
                    let page = match kind {
                        0 => {
                            next += 1;
                            next / 50
                        }
                        1 => {
                            let bits = random.one_of(&[4, 16, 30, 44]);
                            random.below(1 << bits)
                        }
                        _ => random.below(100_000),
                    };
                    page << 12 | random.below(u64::from(max_slot) + 1)
                })
                .collect();
            list.sort_unstable();
            list.dedup();
            list.into_iter().flat_map(rid_bytes).collect()
        })
        .collect();
    let fixed_key_bytes = if fixed { prefix.len() + key_rest } else { 0 } as u16;
    let fixed_ok = keys.iter().all(|k| k.len() == usize::from(fixed_key_bytes));
    Leaf { shape: Shape { fixed_key_bytes: if fixed_ok { fixed_key_bytes } else { 0 }, single, slot_bits }, keys, rids }
}

#[test]
fn sizes_are_exact_and_folds_come_back() {
    let mut random = Random(1);
    let (mut folded, mut fast) = (0, 0);
    for round in 0..if cfg!(miri) { 3 } else { 6000 } {
        let leaf = random_leaf(&mut random, round % 3);
        let size = leaf.cost();
        let mut out = vec![0xA5u8; 40_000];
        let Ok(used) = encode(leaf.shape, leaf.entries(), &mut out) else { continue };
        assert_eq!(used, size);
        assert!(encode(leaf.shape, leaf.entries(), &mut vec![0; size - 1]).is_err());
        let Some((page, expected)) = leaf.page(32 * 1024) else { continue };
        folded += 1;
        let header = leaf.header();
        for (lead, behind) in [(0, 0), (56, 0), (56, 200)] {
            let mut input = vec![0xEEu8; lead];
            input.extend(&out[..used]);
            input.extend(std::iter::repeat_n(0xEE, behind));
            for with_fast in [true, false] {
                let mut back = vec![0x55u8; page.len()];
                back[..START].fill(0);
                let done = expand_by(leaf.shape, header, &input, lead..lead + used, &mut back, START, with_fast).unwrap();
                assert_eq!(done, expected);
                assert!(back == page, "round {round} {:?} {header:?}", leaf.shape);
            }
            fast += usize::from(header.longest_key - header.common_prefix <= 32);
        }
        // A page with no byte to spare.
        let exact = expected.low_end + MAP_BYTES * leaf.keys.len();
        let mut back = vec![0u8; exact];
        assert_eq!(expand(leaf.shape, header, &out, 0..used, &mut back, START), Ok(expected));
        let (tight, _) = leaf.page(exact).unwrap();
        assert!(back == tight, "round {round} {:?} {header:?}", leaf.shape);
        assert!(expand(leaf.shape, header, &out, 0..used, &mut back[..exact - 1], START).is_err());
    }
    assert!(cfg!(miri) || (folded > 2000 && fast > 1000), "{folded} {fast}");
}

#[test]
fn hostile_bodies_do_no_harm() {
    let mut random = Random(2);
    let mut page = vec![0u8; 16 * 1024];
    let (mut good, mut bad) = (0, 0);
    for round in 0..if cfg!(miri) { 6 } else { 3000 } {
        let leaf = random_leaf(&mut random, round % 3);
        let mut out = vec![0u8; 4096];
        let used = encode(leaf.shape, leaf.entries(), &mut out).unwrap_or(4096);
        for _ in 0..if cfg!(miri) { 3 } else { 20 } {
            let mut input = out[..used].to_vec();
            for _ in 0..=random.below(4) {
                let at = random.below(input.len() as u64) as usize;
                input[at] = [0xFF, 0, random.next() as u8, input[at] ^ 1 << random.below(8)][random.below(4) as usize];
            }
            input.truncate(used - random.below(2) as usize * random.below(used as u64) as usize);
            let mut header = leaf.header();
            let mut shape = leaf.shape;
            match random.below(10) {
                0 => header.entries = random.below(3000) as usize,
                1 => header.common_prefix = random.below(70) as usize,
                2 => header.longest_key = random.below(70_000) as usize,
                3 => shape.single = !shape.single,
                4 => shape.fixed_key_bytes = random.below(40) as u16,
                5 => shape.slot_bits = random.below(20) as u8,
                _ => {}
            }
            let end = input.len();
            let fast = expand(shape, header, &input, 0..end, &mut page, START);
            let copy = page.clone();
            let exact = expand_by(shape, header, &input, 0..end, &mut page, START, false);
            assert_eq!(fast.is_ok(), exact.is_ok(), "{fast:?} {exact:?} {shape:?} {header:?}");
            if fast.is_ok() {
                assert_eq!(fast, exact);
                assert!(copy == page);
                good += 1;
            } else {
                bad += 1;
            }
        }
    }
    assert!(cfg!(miri) || (good > 1000 && bad > 10_000), "{good} {bad}");
}

/// The claim of `cost`: taking a RID or an entry out never makes the fold larger.
#[test]
#[cfg_attr(miri, ignore = "safe code, slow there")]
fn removals_never_grow_the_fold() {
    let mut random = Random(3);
    let mut removals = 0;
    for round in 0..1500 {
        let mut leaf = random_leaf(&mut random, round % 3);
        if leaf.keys.len() > 60 {
            leaf.keys.truncate(60);
            leaf.rids.truncate(60);
        }
        let mut size = leaf.cost();
        while leaf.keys.len() > 1 && random.below(100) != 0 {
            let i = random.below(leaf.keys.len() as u64) as usize;
            let n = leaf.rids[i].len() / 7;
            if n == 1 {
                leaf.keys.remove(i);
                leaf.rids.remove(i);
            } else {
                let any = random.below(n as u64) as usize;
                let r = random.one_of(&[0, n - 1, any]);
                leaf.rids[i].drain(7 * r..7 * r + 7);
            }
            let now = leaf.cost();
            assert!(now <= size, "{size} to {now} {:?}", leaf.shape);
            size = now;
            removals += 1;
        }
    }
    assert!(removals > 30_000, "{removals}");
}

/// The same claim where it is tightest: RIDs at the edges of the codes' ranges.
#[test]
#[cfg_attr(miri, ignore = "safe code, slow there")]
fn removals_never_grow_the_fold_at_the_edges() {
    let mut random = Random(4);
    let mut edges = vec![1u64, 2, 3, 4, 5];
    for shift in [7u32, 8, 14, 16, 21, 24, 28, 32, 35, 40, 41] {
        edges.extend([(1u64 << shift) - 2, (1 << shift) - 1, 1 << shift, (1 << shift) + 1]);
    }
    for round in 0..200_000 {
        let shape = Shape { fixed_key_bytes: 2 * (round % 2) as u16, single: round % 3 == 0, slot_bits: 0 };
        let edge = |random: &mut Random| random.one_of(&edges);
        let keys: Vec<Vec<u8>> = [[1u8, 1], [1, 2], [1, 3]].map(Vec::from).into();
        let rids: Vec<Vec<u64>> = (0..3)
            .map(|_| {
                let mut at = edge(&mut random);
                let mut list = vec![at];
                for _ in 0..if shape.single { 0 } else { random.below(3) } {
                    at += edge(&mut random);
                    list.push(at);
                }
                list
            })
            .collect();
        let make = |keys: &[Vec<u8>], rids: &[Vec<u64>]| Leaf {
            shape,
            keys: keys.to_vec(),
            rids: rids.iter().map(|l| l.iter().flat_map(|r| rid_bytes(r << 12)).collect()).collect(),
        };
        let size = make(&keys, &rids).cost();
        for i in 0..3 {
            for r in 0..rids[i].len() {
                let (mut k, mut l) = (keys.clone(), rids.clone());
                l[i].remove(r);
                if l[i].is_empty() {
                    k.remove(i);
                    l.remove(i);
                }
                let now = make(&k, &l).cost();
                assert!(now <= size, "{size} to {now}: {rids:?} without {i} {r} {shape:?}");
            }
        }
    }
}

//! The indexes of LINEITEM as the specification of TPC-H draws their columns: sizes, and times against plain leaves.
//!
//! `cargo test --release -p pagefold-format --lib shapes -- --ignored --nocapture` takes all rows of scale factor 1.

use super::super::build::LeafBuilder;
use super::super::header::LeafKind;
use super::super::leaf::{Leaf, Place};
use super::super::ops::LeafOp;
use super::builder::PrefixLeafBuilder;
use super::check::check;
use super::reader::PairReader;
use super::view::PrefixLeaf;
use crate::test_random::Random;
use pagefold_types::Rid;
use std::hint::black_box;
use std::time::{Duration, Instant};

const INTEGER_SIGN: u64 = 1 << 63;
const MODES: [&str; 7] = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"];
const INSTRUCTIONS: [&str; 4] = ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"];

struct Item {
    order: u64,
    line: u32,
    part: u64,
    supplier: u64,
    ship_date: u32,
    instruction: u8,
    mode: u8,
    rid: Rid,
}

/// So many orders with one to seven lines each, in data pages of 16 KB in the rows' order.
fn items(orders: u64) -> Vec<Item> {
    let mut random = Random(77);
    let (parts, suppliers) = ((orders * 2 / 15).max(1), (orders / 150).max(4));
    let mut items = Vec::new();
    let (mut page, mut slot, mut used) = (2, 0, 0);
    for i in 0..orders {
        let order_date = 8035 + random.below(2406) as u32;
        for line in 1..=1 + random.below(7) as u32 {
            let part = 1 + random.below(parts);
            let corner = random.below(4);
            let row_bytes = 4 + 78 + 10 + random.below(34);
            if used + row_bytes > 16_384 - 36 {
                (page, slot, used) = (page + 1, 0, 0);
            }
            items.push(Item {
                order: (i >> 3 << 5 | i & 7) + 1,
                line,
                part,
                supplier: (part + corner * (suppliers / 4 + (part - 1) / suppliers)) % suppliers + 1,
                ship_date: order_date + 1 + random.below(121) as u32,
                instruction: random.below(4) as u8,
                mode: random.below(7) as u8,
                rid: Rid::new(0, page, slot),
            });
            slot += 1;
            used += row_bytes;
        }
    }
    items
}

struct IndexShape {
    name: &'static str,
    unique: bool,
    fixed_key_bytes: u16,
    key: fn(&Item, &mut Vec<u8>),
    /// Bytes an entry at most, RID included.
    goal: f64,
}

fn integer(value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&(value ^ INTEGER_SIGN).to_be_bytes());
}

const INDEXES: [IndexShape; 4] = [
    IndexShape {
        name: "(l_orderkey, l_linenumber)",
        unique: true,
        fixed_key_bytes: 12,
        key: |item, out| {
            integer(item.order, out);
            out.extend_from_slice(&(item.line ^ 1 << 31).to_be_bytes());
        },
        goal: 3.0,
    },
    IndexShape {
        name: "(l_shipdate)",
        unique: false,
        fixed_key_bytes: 4,
        key: |item, out| out.extend_from_slice(&(item.ship_date ^ 1 << 31).to_be_bytes()),
        goal: 0.7 * 21.1e6 / 6_001_215.0,
    },
    IndexShape {
        name: "(l_partkey, l_suppkey)",
        unique: false,
        fixed_key_bytes: 16,
        key: |item, out| {
            integer(item.part, out);
            integer(item.supplier, out);
        },
        goal: 0.7 * 31.4e6 / 6_001_215.0,
    },
    IndexShape {
        name: "(l_shipmode, l_shipinstruct, l_orderkey)",
        unique: false,
        fixed_key_bytes: 0,
        key: |item, out| {
            out.extend_from_slice(MODES[usize::from(item.mode)].as_bytes());
            out.push(0);
            out.extend_from_slice(INSTRUCTIONS[usize::from(item.instruction)].as_bytes());
            out.push(0);
            integer(item.order, out);
        },
        goal: 0.7 * 16.1e6 / 6_001_215.0,
    },
];

/// Keys one behind the other, and which belongs to which RID, in index order.
struct Sorted {
    keys: Vec<u8>,
    /// End of the key in `keys`, RID.
    pairs: Vec<(u32, Rid)>,
}

impl Sorted {
    fn new(items: &[Item], shape: &IndexShape) -> Sorted {
        let mut all: Vec<(Vec<u8>, Rid)> = items
            .iter()
            .map(|item| {
                let mut key = Vec::new();
                (shape.key)(item, &mut key);
                (key, item.rid)
            })
            .collect();
        all.sort_unstable();
        let mut sorted = Sorted { keys: Vec::new(), pairs: Vec::new() };
        for (key, rid) in all {
            sorted.keys.extend_from_slice(&key);
            sorted.pairs.push((sorted.keys.len() as u32, rid));
        }
        sorted
    }

    fn key(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.pairs[i - 1].0 };
        &self.keys[start as usize..self.pairs[i].0 as usize]
    }
}

/// Leaves and the number of pairs before each.
#[derive(Default)]
struct Leaves {
    pages: Vec<Vec<u8>>,
    starts: Vec<usize>,
}

fn prefix_leaves(sorted: &Sorted, shape: &IndexShape, page_bytes: usize, free_bytes: usize) -> Leaves {
    let mut leaves = Leaves::default();
    let mut builder = PrefixLeafBuilder::new(page_bytes, shape.fixed_key_bytes, free_bytes);
    let mut pairs = 0;
    let mut finish = |builder: &mut PrefixLeafBuilder| {
        let mut page = vec![0; page_bytes];
        builder.finish(&mut page, 4, 0).unwrap();
        leaves.starts.push(pairs);
        pairs += PrefixLeaf::new(&page).rid_count();
        leaves.pages.push(page);
    };
    for i in 0..sorted.pairs.len() {
        if builder.push(sorted.key(i), sorted.pairs[i].1).unwrap() {
            finish(&mut builder);
        }
    }
    while builder.flush().unwrap() || !builder.is_empty() {
        finish(&mut builder);
    }
    assert_eq!(pairs, sorted.pairs.len());
    leaves
}

fn plain_leaves(sorted: &Sorted, shape: &IndexShape, page_bytes: usize) -> Leaves {
    let mut leaves = Leaves::default();
    let kind = LeafKind { single: shape.unique, fold: false, fixed_key_bytes: shape.fixed_key_bytes, slot_bits: 12 };
    let mut builder = LeafBuilder::new(kind, page_bytes, 0);
    leaves.starts.push(0);
    for i in 0..sorted.pairs.len() {
        if !builder.push(sorted.key(i), sorted.pairs[i].1).unwrap() {
            let mut page = vec![0; page_bytes];
            builder.finish(4, 0, &mut page);
            leaves.pages.push(page);
            leaves.starts.push(i);
            assert!(builder.push(sorted.key(i), sorted.pairs[i].1).unwrap());
        }
    }
    let mut page = vec![0; page_bytes];
    builder.finish(4, 0, &mut page);
    leaves.pages.push(page);
    leaves
}

#[test]
fn built_leaves_have_all_pairs_and_are_as_small_as_is_asked() {
    let items = items(if cfg!(miri) { 50 } else { 20_000 });
    for shape in &INDEXES {
        let sorted = Sorted::new(&items, shape);
        for page_bytes in [2048, 4096, 16_384, 32_768] {
            let leaves = prefix_leaves(&sorted, shape, page_bytes, 0);
            let mut reader = PairReader::new();
            let mut i = 0;
            for page in &leaves.pages {
                check(page).unwrap();
                let leaf = PrefixLeaf::new(page);
                reader.seek(&leaf, Place::default()).unwrap();
                while let Some((key, rid)) = reader.next(&leaf).unwrap() {
                    assert!(key == sorted.key(i) && rid == sorted.pairs[i].1);
                    i += 1;
                }
            }
            assert_eq!(i, items.len());
            // Full, but for less than a small block.
            let free: usize = leaves.pages.iter().rev().skip(1).map(|p| PrefixLeaf::new(p).free_bytes()).sum();
            assert!(free <= leaves.pages.len() * 150, "{} {page_bytes}: {free} of {}", shape.name, leaves.pages.len());
        }
    }
}

/// Time of the processor that this thread has had, where the system tells: other work on the machine counts less.
fn processor_time(start: Instant) -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = stat.and_then(|stat| stat.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

fn time(rounds: u32, mut a: impl FnMut(), mut b: impl FnMut()) -> (Vec<Duration>, Vec<Duration>) {
    let (mut times_a, mut times_b) = (Vec::new(), Vec::new());
    let once = |f: &mut dyn FnMut()| {
        let start = Instant::now();
        let before = processor_time(start);
        f();
        processor_time(start) - before
    };
    for _ in 0..rounds {
        times_a.push(once(&mut a));
        times_b.push(once(&mut b));
    }
    times_a.sort();
    times_b.sort();
    (times_a, times_b)
}

fn show(what: &str, n: usize, times: &(Vec<Duration>, Vec<Duration>)) {
    let ns = |t: &Duration| t.as_nanos() as f64 / n as f64;
    let middle = times.0.len() / 2;
    let (plain, prefix) = (ns(&times.0[middle]), ns(&times.1[middle]));
    println!(
        "    {what:28} plain {plain:7.1} ns, prefix {prefix:7.1} ns: {:.2} ({:.2} to {:.2})",
        prefix / plain,
        ns(&times.1[0]) / plain,
        ns(&times.1[times.1.len() - 1]) / plain
    );
}

/// Every second pair in leaves as a build makes them, then the others one by one, into the leaf they belong to, until that is full.
fn insert_time(sorted: &Sorted, shape: &IndexShape, page_bytes: usize) -> (f64, usize) {
    let mut halves = Sorted { keys: Vec::new(), pairs: Vec::new() };
    for i in (0..sorted.pairs.len()).step_by(2) {
        halves.keys.extend_from_slice(sorted.key(i));
        halves.pairs.push((halves.keys.len() as u32, sorted.pairs[i].1));
    }
    let mut leaves = prefix_leaves(&halves, shape, page_bytes, page_bytes * 5 / 8);
    let (mut total, mut count) = (Duration::ZERO, 0);
    for (l, page) in leaves.pages.iter_mut().enumerate() {
        let from = leaves.starts[l] * 2;
        let to = leaves.starts.get(l + 1).map_or(sorted.pairs.len(), |s| s * 2);
        let mut inside: Vec<usize> = (from..to).filter(|i| i % 2 == 1).collect();
        let mut random = Random(l as u64);
        for i in (1..inside.len()).rev() {
            inside.swap(i, random.below(i as u64 + 1) as usize);
        }
        let start = Instant::now();
        for i in inside {
            let op = LeafOp::Insert { key: sorted.key(i), rid: sorted.pairs[i].1 };
            if op.apply(page).is_err() {
                break;
            }
            count += 1;
        }
        total += start.elapsed();
    }
    (total.as_nanos() as f64 / f64::from(count), count as usize)
}

#[test]
#[ignore = "measures: seconds, in release"]
fn times_of_inserts() {
    let items = items(100_000);
    for shape in &INDEXES {
        let sorted = Sorted::new(&items, shape);
        for page_bytes in [4096, 16_384] {
            let (time, count) = insert_time(&sorted, shape, page_bytes);
            println!("{} {page_bytes}: {time:.0} ns an insert ({count})", shape.name);
        }
    }
}

#[test]
#[ignore = "measures: minutes, in release"]
fn sizes_and_times() {
    let items = items(std::env::var("ORDERS").ok().and_then(|n| n.parse().ok()).unwrap_or(1_500_000));
    println!("{} rows", items.len());
    let wanted = std::env::var("SHAPE").unwrap_or_default();
    for shape in INDEXES.iter().filter(|shape| shape.name.contains(&wanted)) {
        let sorted = Sorted::new(&items, shape);
        let n = sorted.pairs.len();
        for page_bytes in [4096, 16_384] {
            let start = Instant::now();
            let prefix = prefix_leaves(&sorted, shape, page_bytes, 0);
            let built = start.elapsed();
            let start = Instant::now();
            let plain = plain_leaves(&sorted, shape, page_bytes);
            let built_plain = start.elapsed();
            let bytes = prefix.pages.len() * page_bytes;
            println!(
                "{} {page_bytes}: {:.2} MB, {:.3} bytes an entry (goal {:.3}), plain {:.2} MB; built in {:.0} ns an entry, plain {:.0}",
                shape.name,
                bytes as f64 / 1e6,
                bytes as f64 / n as f64,
                shape.goal,
                (plain.pages.len() * page_bytes) as f64 / 1e6,
                built.as_nanos() as f64 / n as f64,
                built_plain.as_nanos() as f64 / n as f64
            );
            times(&sorted, shape, &plain, &prefix);
        }
    }
}

fn times(sorted: &Sorted, shape: &IndexShape, plain: &Leaves, prefix: &Leaves) {
    let n = sorted.pairs.len();
    let leaf_of = |leaves: &Leaves, i: usize| leaves.starts.partition_point(|s| *s <= i) - 1;
    for (what, range) in [("seek, all leaves", 0..n), ("seek, leaves in L2", n / 2..n / 2 + 20_000.min(n / 2))] {
        let mut random = Random(5);
        let wanted: Vec<(usize, usize, usize)> = (0..300_000)
            .map(|_| {
                let i = range.start + random.below(range.len() as u64) as usize;
                (i, leaf_of(plain, i), leaf_of(prefix, i))
            })
            .collect();
        // In a unique index the RID of a key, else whether there is this RID under the key: what first_rid and contains of a B+tree do.
        let seek_plain = |key: &[u8], rid: Rid, leaf: usize| {
            let view = Leaf::new(&plain.pages[leaf]);
            if shape.unique {
                let (entry, found) = view.lower_bound(key);
                (view.rid(Place { entry, rid: 0 }), found)
            } else {
                (rid, view.lower_bound_rid(key, rid).1)
            }
        };
        let seek_prefix = |key: &[u8], rid: Rid, leaf: usize| {
            let view = PrefixLeaf::new(&prefix.pages[leaf]);
            if shape.unique { view.find(key).map_or((Rid::MIN, false), |rid| (rid, true)) } else { (rid, view.lower_bound_rid(key, rid).1) }
        };
        for (i, a, b) in &wanted {
            let (key, rid) = (sorted.key(*i), sorted.pairs[*i].1);
            assert_eq!(seek_plain(key, rid, *a), (rid, true));
            assert_eq!(seek_prefix(key, rid, *b), (rid, true));
        }
        // The next key depends on what was found, so searches do not overlap.
        let run = |prefixed: bool| {
            let mut step = 0;
            for _ in 0..wanted.len() {
                let (i, a, b) = wanted[step];
                let (key, rid) = (sorted.key(i), sorted.pairs[i].1);
                let found = if prefixed { seek_prefix(key, rid, b) } else { seek_plain(key, rid, a) };
                step = (step + 1 + usize::from(!found.1) + usize::from(found.0 == Rid::MIN)) % wanted.len();
            }
            black_box(step);
        };
        show(what, wanted.len(), &time(9, || run(false), || run(true)));
    }
    let scan_plain = || {
        let mut sum = 0u64;
        for page in &plain.pages {
            for entry in Leaf::new(page).entries() {
                for r in 0..entry.rid_count() {
                    sum = sum.wrapping_add(entry.rid(r)).wrapping_add(u64::from(entry.key[entry.key.len() - 1]));
                }
            }
        }
        sum
    };
    let scan_prefix = || {
        let mut sum = 0u64;
        let mut reader = PairReader::new();
        for page in &prefix.pages {
            let leaf = PrefixLeaf::new(page);
            reader.seek(&leaf, Place::default()).unwrap();
            while let Some((entries, _)) = reader.next_block(&leaf).unwrap() {
                for e in 0..entries.entry_count() {
                    let key = entries.key(e);
                    for rid in entries.rids(e) {
                        sum = sum.wrapping_add(*rid).wrapping_add(u64::from(key[key.len() - 1]));
                    }
                }
            }
        }
        sum
    };
    assert_eq!(scan_plain(), scan_prefix());
    show("scan, an entry", n, &time(7, || _ = black_box(scan_plain()), || _ = black_box(scan_prefix())));
    changes(sorted, plain, prefix);
}

/// Takes pairs out of leaves in the middle of the index and puts them back.
fn changes(sorted: &Sorted, plain: &Leaves, prefix: &Leaves) {
    let mut random = Random(6);
    let mut run = |leaves: &Leaves| {
        let mut total = Duration::ZERO;
        let (mut count, mut done) = (0, 0);
        for l in 0..40 {
            let l = leaves.pages.len() / 2 + l;
            let Some(end) = leaves.starts.get(l + 1) else { break };
            let mut page = leaves.pages[l].clone();
            let picked: Vec<usize> = (0..50).map(|_| leaves.starts[l] + random.below((end - leaves.starts[l]) as u64) as usize).collect();
            for i in &picked {
                let op = LeafOp::Remove { key: sorted.key(*i), rid: sorted.pairs[*i].1 };
                let _ = op.apply(&mut page);
            }
            let start = Instant::now();
            let before = processor_time(start);
            for i in &picked {
                let op = LeafOp::Insert { key: sorted.key(*i), rid: sorted.pairs[*i].1 };
                done += usize::from(op.apply(&mut page).is_ok());
            }
            total += processor_time(start) - before;
            count += picked.len();
        }
        (total.as_nanos() as f64 / count as f64, done * 100 / count)
    };
    let ((a, done_a), (b, done_b)) = (run(plain), run(prefix));
    println!("    {:28} plain {a:7.1} ns, prefix {b:7.1} ns: {:.2} ({done_a} and {done_b} % had room)", "insert (op applied)", b / a);
}

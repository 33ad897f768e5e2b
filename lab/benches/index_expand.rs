//! Expanding a folded leaf, against copying it, zstd and LZ4.
//!
//! `cargo bench -p pagefold-lab --bench index_expand`. Leaves of 16 KB, as a build fills them: the report's test index (CHAR(16) constant and unique INTEGER), the primary
//! key of LINEITEM, a unique index of random 16-byte keys, texts of different length, and RID lists. zstd and LZ4 compress the very bytes of the leaf in memory. Cold: each leaf
//! comes from memory not touched for a gigabyte, and goes to such memory. What is decoded is compared with the leaf before anything is timed.

use std::hint::black_box;

use pagefold_format::index::build::LeafBuilder;
use pagefold_format::index::folded;
use pagefold_format::index::header::{FOLDED_PAGE_BYTES, LeafKind};
use pagefold_format::index::leaf::Leaf;
use pagefold_lab::measure::{Clock, Contender, interleave};
use pagefold_types::Rid;

const LEAF_BYTES: usize = 16384;
const ROUNDS: usize = 11;
/// Leaves decoded in one round.
const PER_ROUND: usize = 1024;
/// Leaves in the memory that makes them cold.
const COLD: usize = 65536;

type Entry = (Vec<u8>, Rid);

fn mix(n: u64) -> u64 {
    let mut z = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn row(n: u64) -> Rid {
    Rid::new(0, 1000 + (n / 75) as u32, (n % 75) as u16)
}

struct Case {
    name: &'static str,
    kind: LeafKind,
    entry: fn(u64) -> Entry,
}

fn cases() -> Vec<Case> {
    let kind = |single, fixed_key_bytes| LeafKind { single, fold: true, fixed_key_bytes, slot_bits: 7 };
    vec![
        Case {
            name: "CHAR(16) constant, unique INTEGER",
            kind: kind(true, 20),
            entry: |n| ([&b"CONSTANT KEYPART"[..], &(0x8000_0000u32 + 500_000 + n as u32).to_be_bytes()].concat(), row(n)),
        },
        Case {
            name: "LINEITEM (orderkey BIGINT, linenumber INTEGER)",
            kind: kind(true, 12),
            entry: |n| {
                // Orders have 1 to 7 lines, 4 on average; every fourth group of eight order keys is used.
                let (mut order, mut line) = (n / 4, n % 4 + 1);
                if mix(order).is_multiple_of(2) && line == 4 {
                    (order, line) = (order + 1, 0);
                }
                let key = 100_000 + (order & 7) + (order >> 3) * 32;
                ([(key ^ 1 << 63).to_be_bytes().as_slice(), &(line as u32 ^ 1 << 31).to_be_bytes()].concat(), row(n))
            },
        },
        Case {
            name: "random 16-byte keys, random rows",
            kind: kind(true, 16),
            entry: |n| ([n.wrapping_mul(1 << 44).to_be_bytes(), mix(n).to_be_bytes()].concat(), row(mix(n) % 6_000_000)),
        },
        Case {
            name: "texts of 8 to 24 bytes",
            kind: kind(true, 0),
            entry: |n| {
                let mut key = format!("customer {:06}", n / 3).into_bytes();
                key.extend(&b" street and city\0"[..1 + (mix(n / 3) % 12) as usize]);
                key.push(b'a' + (n % 3) as u8);
                (key, row(mix(n) % 6_000_000))
            },
        },
        Case {
            name: "one key of 300 rows, as l_shipdate",
            kind: kind(false, 4),
            entry: |n| (((n / 300) as u32).to_be_bytes().to_vec(), row(n % 300 * 2400 + mix(n) % 2400)),
        },
    ]
}

/// A leaf, filled in order, and how many entries it has.
fn leaf(case: &Case) -> Vec<u8> {
    let mut builder = LeafBuilder::new(case.kind, LEAF_BYTES, 0);
    for n in 0.. {
        let (key, rid) = (case.entry)(n);
        if !builder.push(&key, rid).expect("entries ascend") {
            break;
        }
    }
    let mut page = vec![0; LEAF_BYTES];
    builder.finish(7, 8, &mut page);
    page
}

/// The same bytes many times, in steps of `bytes`; the copies are visited in an order that jumps.
struct Memory {
    bytes: Vec<u8>,
    step: usize,
    copies: usize,
    at: usize,
}

impl Memory {
    fn new(bytes: &[u8], copies: usize) -> Memory {
        Memory { bytes: bytes.repeat(copies), step: bytes.len(), copies, at: 0 }
    }

    fn next(&mut self) -> &mut [u8] {
        self.at = (self.at + 40_503) % self.copies;
        &mut self.bytes[self.at * self.step..(self.at + 1) * self.step]
    }
}

fn compare(name: &str, page: &[u8], cold: bool) {
    let copies = if cold { COLD } else { 1 };
    let mut disk = [0; FOLDED_PAGE_BYTES];
    folded::fold(page, &mut disk).expect("a leaf that folds");
    let zstd_bytes = zstd::bulk::compress(page, 3).expect("zstd");
    let lz4_bytes = lz4_flex::block::compress(page);
    let mut zstd = zstd::bulk::Decompressor::new().expect("zstd");

    let mut out = vec![0; LEAF_BYTES];
    folded::expand(&disk, &mut out).expect("expand");
    assert!(out == page);
    assert_eq!(zstd.decompress_to_buffer(&zstd_bytes, &mut out).expect("zstd"), LEAF_BYTES);
    assert!(out == page);

    let leaf = Leaf::new(page);
    if !cold {
        println!(
            "\n{name}\n  {} entries, {} RIDs; folded {} bytes ({:.2} an entry, {:.2}:1), zstd -3 {}, LZ4 {}",
            leaf.entry_count(),
            leaf.rid_count(),
            leaf.folded_bytes(),
            leaf.folded_bytes() as f64 / leaf.entry_count() as f64,
            (LEAF_BYTES - leaf.free_bytes()) as f64 / leaf.folded_bytes() as f64,
            zstd_bytes.len(),
            lz4_bytes.len(),
        );
    }
    // Memory is filled once for all contenders: they take turns, so each finds it as cold as the others.
    let (mut pages, mut folds) = (Memory::new(page, copies), Memory::new(&disk[..leaf.folded_bytes()], copies));
    let (mut zstds, mut lz4s) = (Memory::new(&zstd_bytes, copies), Memory::new(&lz4_bytes, copies));
    let mut outs: Vec<Memory> = (0..4).map(|_| Memory::new(&vec![1; LEAF_BYTES], if cold { COLD / 4 } else { 1 })).collect();
    let [copy_out, expand_out, zstd_out, lz4_out] = outs.as_mut_slice() else { unreachable!() };
    let results = interleave(
        Clock::Thread,
        ROUNDS,
        vec![
            Contender::new("copy", || {
                for _ in 0..PER_ROUND {
                    black_box(copy_out.next()).copy_from_slice(black_box(pages.next()));
                }
                PER_ROUND as u64
            }),
            Contender::new("expand", || {
                let mut whole = [0; FOLDED_PAGE_BYTES];
                for _ in 0..PER_ROUND {
                    let fold = folds.next();
                    // As read from disk the page is whole; only its used bytes are kept cold here.
                    whole[..fold.len()].copy_from_slice(fold);
                    folded::expand(black_box(&whole), black_box(expand_out.next())).expect("expand");
                }
                PER_ROUND as u64
            }),
            Contender::new("zstd -3", || {
                for _ in 0..PER_ROUND {
                    zstd.decompress_to_buffer(black_box(zstds.next()), black_box(zstd_out.next())).expect("zstd");
                }
                PER_ROUND as u64
            }),
            Contender::new("LZ4", || {
                for _ in 0..PER_ROUND {
                    lz4_flex::block::decompress_into(black_box(lz4s.next()), black_box(lz4_out.next())).expect("LZ4");
                }
                PER_ROUND as u64
            }),
        ],
    );
    let copy = &results[0];
    for timing in &results {
        let (ns, ratio) = (timing.spread().median * 1e9 / PER_ROUND as f64, copy.speed_over(timing));
        println!(
            "  {} {:8} {ns:8.0} ns a leaf, {:5.2}x the time of copying ({:.2} to {:.2})",
            if cold { "cold" } else { "hot " },
            timing.name,
            ratio.median,
            ratio.low,
            ratio.high
        );
    }
    let (zstd, lz4) = (results[1].speed_over(&results[2]), results[1].speed_over(&results[3]));
    println!("       expand is {:.1} times as fast as zstd -3, {:.1} times as fast as LZ4", zstd.median, lz4.median);
}

fn main() {
    for case in cases() {
        let page = leaf(&case);
        for cold in [false, true] {
            compare(case.name, &page, cold);
        }
    }
}

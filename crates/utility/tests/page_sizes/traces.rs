//! What traces say of pools, against pools of that size that are asked the same, at every page size and in every format.

use crate::data::{build, database};
use crate::random::Rng;
use pagefold_engine::index::{Index, IndexFormat, RecordOptions};
use pagefold_format::key_trace::KeyTrace;
use pagefold_types::ValueRef;
use pagefold_utility::{IndexOptions, PageSizeOptions, Silent, drop_object, page_sizes};

const ROWS: u64 = 200_000;
const REQUESTS: usize = 300_000;
const POOL_BYTES: usize = 1 << 20;
const CHUNK_BYTES: u64 = 256 << 10;

/// Places in key order that are asked for, one after the other.
fn requests(kind: &str) -> Vec<u64> {
    let mut random = Rng(11);
    let exponent = if kind == "zipf 0.9" { 0.9 } else { 1.2 };
    let mut sum = 0.0;
    let weights: Vec<f64> = (1..=ROWS)
        .map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        })
        .collect();
    let mut scan = 0;
    let mut one = || {
        if kind == "uniform" {
            return random.below(ROWS);
        }
        if kind == "hot range and scan" && random.below(5) == 0 {
            // Every place, in key order.
            scan += 3;
            return scan % ROWS;
        }
        let at = (random.next() >> 11) as f64 / (1u64 << 53) as f64 * sum;
        let rank = weights.partition_point(|weight| *weight < at) as u64;
        // Popular keys lie side by side, or anywhere.
        if kind == "zipf 0.9" { rank.wrapping_mul(0x9E37_79B1) % ROWS } else { (rank + ROWS / 3) % ROWS }
    };
    (0..REQUESTS).map(|_| one()).collect()
}

fn ask(index: &Index, keys: &[Vec<u8>], requests: &[u64]) {
    for place in requests {
        assert!(index.tree().first_rid(&keys[*place as usize]).unwrap().is_some());
    }
}

fn keys_in_order(index: &Index) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = (0..ROWS)
        .map(|row| {
            let mut key = Vec::new();
            let value = (row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 8) as i64;
            index.key_layout().encode(&[ValueRef::Int(value)], &mut key).unwrap();
            key
        })
        .collect();
    keys.sort_unstable();
    keys
}

#[test]
fn hit_ratios_are_within_two_points() {
    let database = database(ROWS, 64 << 20);
    let plain = IndexOptions { unique: true, ..IndexOptions::default() };
    let pages = [2048usize, 4096, 8192, 16384, 32768];
    // Made before any index is: the pools that indexes of these page sizes get.
    let index_pool = |bytes: usize| format!("I{}K", bytes / 1024);
    let first = build(&database, &["up"], &IndexOptions { page_bytes: Some(6144), ..plain.clone() });
    for bytes in pages {
        first.manager().create_pool(&index_pool(bytes), bytes, POOL_BYTES).unwrap();
    }
    drop_object(&database, "i").unwrap();
    let mut farthest_of_all = 0.0f64;
    for kind in ["uniform", "zipf 0.9", "hot range and scan"] {
        let index = build(&database, &["random"], &plain);
        let (keys, requests) = (keys_in_order(&index), requests(kind));
        index.record_keys(&RecordOptions { bytes_max: 16 << 20, one_in: 1 }).unwrap();
        ask(&index, &keys, &requests);
        let trace = KeyTrace::decode(&index.stop_recording_keys().unwrap().encode()).unwrap();
        assert_eq!(trace.references.len(), REQUESTS);
        let options = |pool_bytes| PageSizeOptions { trace: Some(trace.clone()), pool_bytes, ..PageSizeOptions::default() };
        let report = page_sizes(&database, "i", &options(POOL_BYTES as u64), &Silent).unwrap();
        // Pages above folded leaves have a pool of their own here, beside that of the leaves.
        let folded = page_sizes(&database, "i", &options(POOL_BYTES as u64 + CHUNK_BYTES), &Silent).unwrap();
        drop((drop_object(&database, "i").unwrap(), index));
        println!("{kind}:");
        let (mut farthest, mut least, mut most) = (0.0f64, 1.0f64, 0.0f64);
        for (line, of_folded) in report.lines.iter().zip(&folded.lines) {
            let candidate = line.estimate.candidate;
            if !pages.contains(&candidate.page_bytes) {
                continue;
            }
            let forecast = if candidate.folds() { &of_folded.forecast } else { &line.forecast }.as_ref().unwrap();
            let format: IndexFormat = candidate.format().parse().unwrap();
            let index = build(
                &database,
                &["random"],
                &IndexOptions { format: format.into(), page_bytes: Some(candidate.page_bytes), ..plain.clone() },
            );
            ask(&index, &keys, &requests[..REQUESTS / 2]);
            let before = index.data_set().counters().synchronous_reads;
            ask(&index, &keys, &requests[REQUESTS / 2..]);
            let reads = (index.data_set().counters().synchronous_reads - before) as f64 / (REQUESTS / 2) as f64;
            let off = forecast.reads_per_request - reads;
            println!(
                "  {:>6} {:>2} KB: {:.4} pages read for a request, foretold {:.4} ({off:+.4}), {} of {} leaves",
                candidate.format(),
                candidate.page_bytes / 1024,
                reads,
                forecast.reads_per_request,
                forecast.leaf_frames,
                forecast.leaves_sampled,
            );
            assert!(forecast.is_warm);
            farthest = farthest.max(off.abs());
            (least, most) = (least.min(reads), most.max(reads));
            drop((drop_object(&database, "i").unwrap(), index));
        }
        println!("  off by {:.2} points at most", farthest * 100.0);
        assert!(most - least > 0.05, "{kind}: page sizes differ in what they read: {least} to {most}");
        farthest_of_all = farthest_of_all.max(farthest);
    }
    assert!(farthest_of_all < 0.02, "{farthest_of_all}");
}

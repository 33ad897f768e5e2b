//! Runs of a sample against the whole index.

use super::*;
use pagefold_types::Rid;

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }
}

fn rid(row: u64) -> Rid {
    Rid::new(0, 2 + (row / 60) as u32, (row % 60) as u16)
}

fn entries(shape: &str, n: u64) -> Vec<(Vec<u8>, Rid)> {
    let mut rng = Rng(5);
    let mut entries: Vec<(Vec<u8>, Rid)> = (0..n)
        .map(|row| {
            let r = rng.next();
            let key = match shape {
                "unique ascending" => row.to_be_bytes().to_vec(),
                "unique random" => r.to_be_bytes().to_vec(),
                "few keys" => (r % 300).to_be_bytes()[6..].to_vec(),
                "texts" => format!("customer {:07} {}\u{1}", r % (n / 3), "x".repeat((r >> 40) as usize % 20)).into_bytes(),
                _ => unreachable!(),
            };
            (key, rid(row))
        })
        .collect();
    entries.sort();
    entries
}

#[test]
fn runs_say_what_the_whole_index_takes() {
    let shapes =
        [("unique ascending", Some(8), true), ("unique random", Some(8), true), ("few keys", Some(2), false), ("texts", None, false)];
    for (shape, fixed_key_bytes, unique) in shapes {
        let entries = entries(shape, 200_000);
        let keys = IndexKeys { unique, fixed_key_bytes, slot_max: 59 };
        let mut estimator = IndexEstimator::new(keys, &index_candidates(0));
        entries.iter().for_each(|(key, rid)| estimator.push(key, *rid).unwrap());
        let whole = estimator.finish().unwrap();
        assert!(whole.iter().all(|e| e.rids == 200_000 && e.pages.half_width() == 0.0));
        // All of it as one run: the estimate is the truth.
        let mut all = IndexSampler::default();
        all.begin_run();
        entries.iter().for_each(|(key, rid)| all.push(key, *rid));
        for (a, b) in all.finish(keys, true, &index_candidates(0), 200_000).iter().zip(&whole) {
            assert!(a.leaf_pages.value.abs_diff(b.leaf_pages.value) <= 1 + b.leaf_pages.value / 500, "{shape}: {a:?} {b:?}");
            assert!(a.pages.value.abs_diff(b.pages.value) <= 2 + b.pages.value / 200, "{shape}: {a:?} {b:?}");
            assert_eq!(a.levels.len(), b.levels.len(), "{shape}: {a:?} {b:?}");
            assert!(
                a.keys.abs_diff(b.keys) <= 1 && a.entry_bytes.abs_diff(b.entry_bytes) * 1000 <= b.entry_bytes * 5,
                "{shape}: {a:?} {b:?}"
            );
            assert!((a.ratio() - b.ratio()).abs() < 0.01, "{shape}: {a:?} {b:?}");
        }
        // Runs of the length of a leaf.
        let mut rng = Rng(9);
        let (trials, mut inside, mut far) = (20, vec![0; whole.len()], 0.0f64);
        for _ in 0..trials {
            let mut sampler = IndexSampler::default();
            let mut starts: Vec<u64> = (0..80).map(|_| rng.next() % 1000).collect();
            starts.sort_unstable();
            starts.dedup();
            for start in starts {
                sampler.begin_run();
                entries[start as usize * 200..][..200].iter().for_each(|(key, rid)| sampler.push(key, *rid));
            }
            for (i, e) in sampler.finish(keys, true, &index_candidates(0), 200_000).iter().enumerate() {
                let truth = whole[i].leaf_pages.value;
                // A page of rounding at the end of the sample is more than nothing of a small one: of indexes of few pages one page does not count.
                inside[i] += u32::from(e.leaf_pages.contains(truth));
                let off = e.leaf_pages.value.abs_diff(truth).saturating_sub(u64::from(truth < 50));
                far = far.max(off as f64 / truth as f64);
            }
        }
        println!("{shape}: inside {inside:?} of {trials}, farthest {far:.4}");
        assert!(far < 0.06, "{shape}: {far}");
    }
}

#[test]
fn keys_too_long_for_small_pages_are_told() {
    let keys = IndexKeys { unique: true, fixed_key_bytes: None, slot_max: 0 };
    let mut estimator = IndexEstimator::new(keys, &index_candidates(0));
    estimator.push(&[b'a'; 20], rid(0)).unwrap();
    estimator.push(&[b'b'; 900], rid(60)).unwrap();
    for e in estimator.finish().unwrap() {
        assert_eq!(e.key_too_long, (e.candidate.disk_bytes() == 2048).then_some(900), "{e:?}");
    }
    let mut sampler = IndexSampler::default();
    sampler.begin_run();
    sampler.push(&[b'a'; 20], rid(0));
    sampler.push(&[b'b'; 900], rid(60));
    assert_eq!(sampler.finish(keys, true, &[IndexCandidate::plain(2048)], 2)[0].key_too_long, Some(900));
}

#[test]
fn published_figures_of_the_unused_buffer() {
    // At a ratio of 0.47: 8 KB leave nothing unused, 16 KB 46 %, 32 KB 73 %.
    for (buffer, unused) in [(8192, 0.0), (16384, 0.46), (32768, 0.73)] {
        assert!((buffer_unused(0.472, buffer) - unused).abs() < 0.015);
    }
}

#[test]
fn no_entries() {
    let keys = IndexKeys { unique: true, fixed_key_bytes: Some(8), slot_max: 0 };
    for e in IndexEstimator::new(keys, &index_candidates(0)).finish().unwrap() {
        assert_eq!((e.pages.value, e.leaf_pages.value, e.levels.len()), (0, 0, 0));
    }
    for e in IndexSampler::default().finish(keys, true, &index_candidates(0), 0) {
        assert_eq!(e.pages.value, 0);
    }
}

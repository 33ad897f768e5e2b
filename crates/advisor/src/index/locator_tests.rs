//! Located keys against trees of plain separators.

use super::*;
use pagefold_format::key_trace::KeySpan;
use pagefold_types::Rid;

fn rid(row: u64) -> Rid {
    Rid::new(0, 2 + (row / 60) as u32, (row % 60) as u16)
}

fn entries(n: u64) -> Vec<(Vec<u8>, Rid)> {
    (0..n).map(|row| ((row * 7).to_be_bytes().to_vec(), rid(row))).collect()
}

fn locate(n: u64, wanted: Vec<Vec<u8>>, spans: Vec<KeySpan>) -> Vec<(IndexEstimate, Vec<LevelPlaces>)> {
    let keys = IndexKeys { unique: true, fixed_key_bytes: Some(8), slot_max: 59 };
    let mut locator = KeyLocator::new(keys, &index_candidates(0), wanted, spans);
    entries(n).iter().for_each(|(key, rid)| locator.push(key, *rid).unwrap());
    locator.finish().unwrap()
}

#[test]
fn every_key_has_a_page_on_every_level() {
    const N: u64 = 60_000;
    let wanted: Vec<Vec<u8>> = (0..N * 7 + 20).map(|key| key.to_be_bytes().to_vec()).collect();
    for (estimate, levels) in locate(N, wanted.clone(), vec![KeySpan::all()]) {
        assert_eq!(levels.iter().map(|level| level.pages).collect::<Vec<_>>(), estimate.levels);
        for level in &levels {
            assert_eq!((level.pages_sampled, level.page_of.len()), (level.pages, wanted.len()));
            assert!(level.page_of.is_sorted(), "in key order");
            assert_eq!((level.page_of[0], u64::from(*level.page_of.last().unwrap())), (0, level.pages - 1));
            // Every page has keys.
            let distinct = 1 + level.page_of.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64;
            assert_eq!(distinct, level.pages, "{:?}", estimate.candidate);
        }
        // Plain leaves of one key length are filled alike: the place follows from the number of the entry.
        if estimate.candidate.format == LeafFormat::Plain {
            let page_of = |entry: u64| u64::from(levels[0].page_of[(entry * 7) as usize]);
            let fill = (0..N).find(|entry| page_of(*entry) != 0).unwrap_or(N);
            for entry in 0..N {
                assert_eq!(page_of(entry), entry / fill, "{:?}: entry {entry}", estimate.candidate);
            }
        }
    }
}

#[test]
fn pages_that_reach_out_of_a_span_are_left_out() {
    const N: u64 = 60_000;
    let key = |entry: u64| (entry * 7).to_be_bytes().to_vec();
    let wanted: Vec<Vec<u8>> = (0..N).map(key).collect();
    let spans = vec![
        KeySpan { low: key(10_000), high: Some(key(20_000)) },
        KeySpan { low: key(20_000), high: Some(key(30_000)) },
        KeySpan { low: key(50_000), high: None },
    ];
    for ((estimate, levels), (_, all)) in locate(N, wanted.clone(), spans).into_iter().zip(locate(N, wanted, vec![KeySpan::all()])) {
        let (leaves, full) = (&levels[0], &all[0]);
        let mut sampled = std::collections::BTreeSet::new();
        for (entry, (page, true_page)) in leaves.page_of.iter().zip(&full.page_of).enumerate() {
            if *page == NOT_SAMPLED {
                continue;
            }
            assert_eq!(page, true_page);
            assert!((10_000..30_000).contains(&entry) || entry >= 50_000, "{:?}: {entry}", estimate.candidate);
            sampled.insert(*page);
        }
        assert_eq!(sampled.len() as u64, leaves.pages_sampled);
        // Half of the keys, but for the page over each of five ends.
        let half = leaves.pages / 2;
        assert!(leaves.pages_sampled <= half + 1 && leaves.pages_sampled + 6 >= half, "{:?}: {leaves:?}", estimate.candidate);
    }
}

#[test]
fn the_smallest_page_size_that_saves_a_level() {
    let keys = IndexKeys { unique: true, fixed_key_bytes: Some(8), slot_max: 59 };
    let estimate = |candidates: &[IndexCandidate]| {
        let mut estimator = IndexEstimator::new(keys, candidates);
        entries(400_000).iter().for_each(|(key, rid)| estimator.push(key, *rid).unwrap());
        estimator.finish().unwrap()
    };
    let mut all = estimate(&index_candidates(0));
    let before = all.iter().find(|e| e.candidate == IndexCandidate::plain(2048)).unwrap().clone();
    let between = sizes_between(&all, &before);
    assert!(between.iter().all(|c| !all.iter().any(|e| e.candidate == *c)), "{between:?}");
    all.extend(estimate(&between));
    let saved = levels_saved(&all, &before);
    assert!([LeafFormat::Plain, LeafFormat::Prefix].iter().all(|format| saved.iter().any(|s| s.candidate.format == *format)));
    for saved in saved {
        assert!(saved.levels < saved.levels_before);
        // Every smaller size has as many levels as before, those between the usual ones too.
        let smaller: Vec<IndexCandidate> = (1..16)
            .map(|n| IndexCandidate { page_bytes: n * 2048, ..saved.candidate })
            .filter(|c| c.page_bytes < saved.candidate.page_bytes)
            .collect();
        if !saved.candidate.folds() {
            assert!(estimate(&smaller).iter().all(|e| e.levels.len() >= before.levels.len()), "{saved:?}");
        }
        let own = all.iter().find(|e| e.candidate == saved.candidate).unwrap();
        assert_eq!(saved.more_bytes, own.size_bytes() as i64 - before.size_bytes() as i64);
    }
    // Nothing has fewer levels than one.
    let one = IndexEstimate { levels: vec![1], ..before };
    assert!(levels_saved(&all, &one).is_empty() && sizes_between(&all, &one).is_empty());
}

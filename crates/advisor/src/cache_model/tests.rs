//! Against pools that are simulated request by request, on traces of different skew.

use super::shards::mix;
use super::*;
use std::collections::VecDeque;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 += 1;
        mix(self.0)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Ranks by a Zipf distribution, from a table of cumulative weights.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(n: u64, exponent: f64) -> Zipf {
        let mut sum = 0.0;
        Zipf(
            (1..=n)
                .map(|rank| {
                    sum += (rank as f64).powf(-exponent);
                    sum
                })
                .collect(),
        )
    }

    fn draw(&self, random: &mut Random) -> u64 {
        let at = random.unit() * self.0.last().unwrap();
        self.0.partition_point(|sum| *sum < at) as u64
    }
}

const PAGES: u64 = 100_000;

/// Pages asked for, by kind of trace.
fn trace(kind: &str, requests: usize) -> Vec<u64> {
    let mut random = Random(7);
    let zipf = Zipf::new(PAGES, if kind == "zipf 0.9" { 0.9 } else { 1.2 });
    let mut scan = 0;
    (0..requests)
        .map(|_| match kind {
            "uniform" => random.below(PAGES),
            "zipf 0.9" => zipf.draw(&mut random),
            // A hot spot, and a scan over everything beside it.
            _ if random.below(4) == 0 => {
                scan += 1;
                scan % PAGES
            }
            _ => zipf.draw(&mut random),
        })
        .collect()
}

const KINDS: [&str; 3] = ["uniform", "zipf 0.9", "zipf 1.2 and a scan"];

#[test]
fn distances_are_places_in_a_stack() {
    let mut random = Random(3);
    for pages in [1u64, 2, 40, 900] {
        let (mut distances, mut stack) = (StackDistances::default(), VecDeque::new());
        for step in 0..6_000 {
            let page = random.below(pages) * 1_000_003;
            let place = stack.iter().position(|other| *other == page);
            assert_eq!(distances.request(page), place.map(|place| place as u64 + 1), "step {step}");
            if let Some(place) = place {
                stack.remove(place);
            }
            stack.push_front(page);
            if random.below(50) == 0 {
                let gone = random.below(pages) * 1_000_003;
                distances.forget(gone);
                stack.retain(|other| *other != gone);
            }
            assert_eq!(distances.len(), stack.len());
        }
    }
}

/// Hits of a pool that forgets the least recently used page, by brute force.
fn hits_of_lru(trace: &[u64], frames: usize) -> u64 {
    let mut stamps = std::collections::HashMap::new();
    let mut by_stamp = std::collections::BTreeMap::new();
    let mut hits = 0;
    for (now, page) in trace.iter().enumerate() {
        match stamps.insert(*page, now) {
            Some(before) => {
                hits += 1;
                by_stamp.remove(&before);
            }
            None if stamps.len() > frames => {
                let (_, oldest) = by_stamp.pop_first().unwrap();
                stamps.remove(&oldest);
            }
            None => {}
        }
        by_stamp.insert(now, *page);
    }
    hits
}

#[test]
fn one_pass_says_what_pools_of_all_sizes_hit() {
    for kind in KINDS {
        let trace = trace(kind, 60_000);
        let (mut distances, mut counts) = (StackDistances::default(), DistanceCounts::default());
        trace.iter().for_each(|page| counts.add(distances.request(*page)));
        let curve = counts.curve(trace.len() as f64, 1.0);
        // Where each distance has a class of its own, exactly.
        for frames in [1u64, 2, 3, 50, 200, 255] {
            let hits = curve.hit_ratio(frames) * trace.len() as f64;
            assert!((hits - hits_of_lru(&trace, frames as usize) as f64).abs() < 0.01, "{kind}, {frames} frames: {hits}");
        }
        for frames in [256u64, 300, 1_000, 5_000, 30_000] {
            let brute = hits_of_lru(&trace, frames as usize) as f64 / trace.len() as f64;
            assert!((curve.hit_ratio(frames) - brute).abs() < 0.005, "{kind}, {frames} frames: {brute} {}", curve.hit_ratio(frames));
        }
        let first = trace.iter().collect::<std::collections::HashSet<_>>().len() as f64 / trace.len() as f64;
        assert!((curve.first_ratio() - first).abs() < 1e-9);
        assert!((curve.hit_ratio(PAGES) + first - 1.0).abs() < 1e-9, "a pool of all pages misses each once");
        assert_eq!(curve.hit_ratio(0), 0.0);
    }
}

#[test]
fn samples_are_within_two_points() {
    for kind in KINDS {
        let trace = trace(kind, 1_500_000);
        let (mut distances, mut counts) = (StackDistances::default(), DistanceCounts::default());
        trace.iter().for_each(|page| counts.add(distances.request(*page)));
        let truth = counts.curve(trace.len() as f64, 1.0);
        for (rate, pages_max) in [(0.1, usize::MAX), (1.0, 9_000), (0.2, 10_000)] {
            let mut shards = Shards::new(rate, pages_max);
            trace.iter().for_each(|page| shards.request(*page));
            assert!(shards.pages() <= pages_max && shards.rate() <= rate + 1e-9, "bounded");
            assert!(shards.pages() >= 8_000, "{kind}: {} pages", shards.pages());
            let (curve, mut farthest) = (shards.curve(), 0.0f64);
            // Of the smallest pools the sample has ten pages; what it says from 100 on is what counts.
            for frames in [100, 300, 1_000, 3_000, 10_000, 30_000, 50_000, 80_000] {
                let off = curve.hit_ratio(frames) - truth.hit_ratio(frames);
                assert!(off.abs() < 0.05, "{kind}, {frames} frames: {off}");
                farthest = farthest.max(if frames < 1_000 { 0.0 } else { off.abs() });
            }
            let (pages, rate) = (shards.pages(), shards.rate());
            println!("{kind}: {pages} pages, in the end {rate:.3} of all: off by {farthest:.4} at most");
            assert!(farthest < 0.02, "{kind}, {pages} pages, at most {pages_max}: {farthest}");
        }
    }
}

#[test]
fn a_miniature_clock_stands_for_the_whole_one() {
    for kind in KINDS {
        let trace = trace(kind, 600_000);
        for frames in [5_000usize, 30_000] {
            let mut whole = ClockPool::new(frames);
            let hits = trace.iter().filter(|page| whole.request(**page)).count() as f64 / trace.len() as f64;
            let mut small = ClockPool::new(frames / 10);
            let sampled: Vec<u64> = trace.iter().copied().filter(|page| mix(*page) % 10 == 3).collect();
            let misses = sampled.iter().filter(|page| !small.request(**page)).count();
            let estimated = 1.0 - misses as f64 * 10.0 / trace.len() as f64;
            println!("{kind}, {frames} frames: {hits:.4}, estimated {estimated:.4}");
            assert!((hits - estimated).abs() < 0.02, "{kind}, {frames} frames: {hits} {estimated}");
        }
    }
}

#[test]
fn a_clock_keeps_what_is_used() {
    let mut pool = ClockPool::new(3);
    assert!([1, 2, 3].iter().all(|page| !pool.request(*page)));
    assert!([1, 2, 3].iter().all(|page| pool.request(*page)));
    // The hand takes all uses in three rounds, then the first page.
    assert!(!pool.request(4) && pool.request(2) && pool.request(3) && !pool.request(1));
    // A page that was read just now has as many uses as one that is asked for again and again: the hand takes the first.
    let mut pool = ClockPool::new(2);
    assert!(!pool.request(1) && !pool.request(2) && (0..5).all(|_| pool.request(1)));
    assert!(!pool.request(3) && pool.request(2) && !pool.request(1));
    assert!(!ClockPool::new(0).request(1));
}

#[test]
fn nothing_asked_for() {
    let curve = Shards::new(0.1, 10).curve();
    assert_eq!((curve.hit_ratio(10), curve.first_ratio()), (0.0, 0.0));
}

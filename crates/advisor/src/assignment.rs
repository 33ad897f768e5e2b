//! How memory is divided among objects, and how each of them is stored: what reads least.
//!
//! Each object can be stored in some ways; of each it is known what it would read in a pool of any number of units of memory. Curves need not bend one way only (a scan that just fits makes a step),
//! so giving each unit to whom it helps most would stop before a step. What is done instead is exact: the best for one object more, with any number of units, follows from the best without it.
//!
//! Time is objects x units squared, memory objects x units.

/// One way to store an object.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredAs {
    /// What it reads with 0, 1, ... units of memory; with more than there are values, the last.
    pub reads: Vec<f64>,
    /// Bytes on disk: of ways that read the same the smaller one is chosen.
    pub size_bytes: u64,
}

impl StoredAs {
    fn reads_with(&self, units: usize) -> f64 {
        self.reads.get(units).or(self.reads.last()).copied().unwrap_or(f64::INFINITY)
    }
}

/// What an object gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assigned {
    /// Which of its ways.
    pub way: usize,
    /// Units of memory.
    pub units: usize,
    /// What it reads then.
    pub reads: f64,
}

/// Reads that differ by less than this part are the same.
const SAME: f64 = 1e-9;

/// The best way for one object with so many units.
fn best_way(ways: &[StoredAs], units: usize) -> Option<(usize, f64)> {
    let least = ways.iter().map(|way| way.reads_with(units)).min_by(f64::total_cmp)?;
    let is_least = |(_, way): &(usize, &StoredAs)| way.reads_with(units) <= least * (1.0 + SAME) + SAME;
    let (way, _) = ways.iter().enumerate().filter(is_least).min_by_key(|(_, way)| way.size_bytes)?;
    Some((way, ways[way].reads_with(units)))
}

/// Divides so many units of memory among objects, so that they read least together; each object has one way at least. Units that help nobody are left.
#[must_use]
pub fn assign(objects: &[Vec<StoredAs>], units: usize) -> Option<Vec<Assigned>> {
    let mut best = vec![0.0; units + 1];
    let mut given: Vec<Vec<usize>> = Vec::with_capacity(objects.len());
    for ways in objects {
        let own: Vec<f64> = (0..=units).map(|units| best_way(ways, units).map(|(_, reads)| reads)).collect::<Option<_>>()?;
        let (mut next, mut taken) = (vec![f64::INFINITY; units + 1], vec![0; units + 1]);
        for all in 0..=units {
            for (more, reads) in own[..=all].iter().enumerate() {
                let sum = best[all - more] + reads;
                if sum < next[all] - SAME {
                    (next[all], taken[all]) = (sum, more);
                }
            }
        }
        best = next;
        given.push(taken);
    }
    let mut left = units;
    let mut assigned = Vec::with_capacity(objects.len());
    for (ways, taken) in objects.iter().zip(&given).rev() {
        let units = taken[left];
        let (way, reads) = best_way(ways, units)?;
        assigned.push(Assigned { way, units, reads });
        left -= units;
    }
    assigned.reverse();
    Some(assigned)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Random(u64);

    impl Random {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % n
        }
    }

    /// The least over all divisions, tried one by one.
    fn least(objects: &[Vec<StoredAs>], units: usize) -> f64 {
        let Some((first, others)) = objects.split_first() else { return 0.0 };
        let of = |own: usize| first.iter().map(|way| way.reads_with(own)).fold(f64::INFINITY, f64::min) + least(others, units - own);
        (0..=units).map(of).fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn nothing_reads_less() {
        let mut random = Random(5);
        for round in 0..200 {
            let objects: Vec<Vec<StoredAs>> = (0..1 + random.below(4))
                .map(|_| {
                    let ways = 1 + random.below(3);
                    (0..ways)
                        .map(|_| {
                            let mut reads = (random.below(1000) + 1) as f64;
                            let mut next = || {
                                // Steps, slopes and stretches where more memory helps nothing.
                                reads -= reads * [0.0, 0.0, 0.1, 0.7][random.below(4) as usize];
                                reads
                            };
                            let steps = 3 + round as usize % 6;
                            StoredAs { reads: (0..steps).map(|_| next()).collect(), size_bytes: 1 }
                        })
                        .collect()
                })
                .collect();
            let units = random.below(9) as usize;
            let assigned = assign(&objects, units).unwrap();
            let sum: f64 = assigned.iter().map(|own| own.reads).sum();
            assert!((sum - least(&objects, units)).abs() < 1e-6, "{sum} {}", least(&objects, units));
            assert!(assigned.iter().map(|own| own.units).sum::<usize>() <= units);
            for (own, ways) in assigned.iter().zip(&objects) {
                assert_eq!(own.reads, ways[own.way].reads_with(own.units));
            }
        }
    }

    #[test]
    fn a_step_is_reached_that_single_units_do_not_show() {
        let slope = StoredAs { reads: vec![10.0, 9.0, 8.0, 7.0, 6.0], size_bytes: 1 };
        let step = StoredAs { reads: vec![100.0, 100.0, 100.0, 0.0], size_bytes: 1 };
        let assigned = assign(&[vec![slope], vec![step]], 4).unwrap();
        assert_eq!(assigned.iter().map(|own| own.units).collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn of_the_same_reads_the_smaller_and_no_memory_for_nothing() {
        let way = |size_bytes| StoredAs { reads: vec![5.0, 1.0, 1.0], size_bytes };
        let assigned = assign(&[vec![way(9), way(3), way(4)]], 2).unwrap();
        assert_eq!(assigned, [Assigned { way: 1, units: 1, reads: 1.0 }]);
        assert_eq!(assign(&[vec![]], 2), None);
        assert_eq!(assign(&[], 2), Some(vec![]));
    }
}

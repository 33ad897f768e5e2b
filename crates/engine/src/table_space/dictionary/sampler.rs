//! A sample of all records that come, however many.
//!
//! Invariants:
//! - every k-th record that came is kept, from the first on; k is a power of two, so which are kept depends on nothing but what came;
//! - they have no more than a given number of bytes, unless the first one alone has more.

use super::sample::{SAMPLE_BYTES, SampledRecords};

/// Takes every k-th record. When there is no room for another one, every second of those that it has goes, and k doubles.
#[derive(Debug)]
pub struct Sampler {
    sample: SampledRecords,
    bytes_max: usize,
    step: u64,
    seen: u64,
    longest: usize,
}

impl Default for Sampler {
    /// With room for what a dictionary is trained on.
    fn default() -> Sampler {
        Sampler::new(SAMPLE_BYTES)
    }
}

impl Sampler {
    /// With room for so many bytes of records.
    #[must_use]
    pub fn new(bytes_max: usize) -> Sampler {
        Sampler { sample: SampledRecords::default(), bytes_max, step: 1, seen: 0, longest: 0 }
    }

    /// A record has come.
    #[inline]
    pub fn push(&mut self, record: &[u8]) {
        let number = self.seen;
        self.seen += 1;
        self.longest = self.longest.max(record.len());
        while number.is_multiple_of(self.step) {
            if self.sample.is_empty() || self.sample.bytes() + record.len() <= self.bytes_max {
                self.sample.push(record);
                return;
            }
            self.sample.thin();
            self.step *= 2;
        }
    }

    /// Records that came.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Bytes of the longest record that came, kept or not; 0: none came.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The records that are kept.
    #[must_use]
    pub fn into_sample(self) -> SampledRecords {
        self.sample
    }
}

impl<'a> FromIterator<&'a [u8]> for Sampler {
    /// Of records that are all there, with the default's room.
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(records: I) -> Sampler {
        let mut sampler = Sampler::default();
        records.into_iter().for_each(|record| sampler.push(record));
        sampler
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The finisher of SplitMix64 (Steele, Lea, Flood 2014).
    fn random(number: u64) -> usize {
        let z = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) >> 33) as usize
    }

    #[test]
    fn every_kth_record_is_kept_in_bounded_memory() {
        let mut thinned = 0;
        for seed in 1..400u64 {
            let count = random(seed) % 2000;
            let bytes_max = random(seed << 20) % 20_000;
            let record = |i: usize| [&i.to_le_bytes()[..4], &vec![0x5A; random(seed << 40 | i as u64) % 300]].concat();
            let records: Vec<Vec<u8>> = (0..count).map(record).collect();
            let mut sampler = Sampler::new(bytes_max);
            for record in &records {
                sampler.push(record);
                assert!(sampler.sample.bytes() <= bytes_max.max(records[0].len()), "seed {seed}");
            }
            assert_eq!(sampler.longest(), records.iter().map(Vec::len).max().unwrap_or(0));
            assert_eq!(sampler.seen(), count as u64);
            let step = sampler.step as usize;
            let sample = sampler.into_sample();
            assert!(
                step.is_power_of_two() && sample.iter().eq(records.iter().step_by(step).map(Vec::as_slice)),
                "seed {seed}, one in {step}"
            );
            // Never thinned for nothing: with half the step there were too many.
            let bytes: usize = records.iter().step_by((step / 2).max(1)).map(Vec::len).sum();
            assert!(step == 1 || bytes > bytes_max, "seed {seed}, one in {step}");
            thinned += u32::from(step > 2);
        }
        assert!(thinned > 100, "{thinned} of them");
    }
}

//! Checks on offsets and lengths that every implementation makes alike, and the set of ranges that memory files count their space with.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::Path;

use crate::error::{error_at, error_on};

/// No offset goes beyond what the operating system can express.
const OFFSET_MAX: u64 = i64::MAX as u64;

/// The end of a range that is to be read or written.
pub(crate) fn range_end(operation: &'static str, path: &Path, offset: u64, len: u64) -> io::Result<u64> {
    match offset.checked_add(len) {
        Some(end) if end <= OFFSET_MAX => Ok(end),
        _ => {
            let cause = io::Error::new(io::ErrorKind::InvalidInput, format!("{len} bytes from there end beyond {OFFSET_MAX}"));
            Err(error_at(operation, path, offset, cause))
        }
    }
}

/// A length that a file may have.
pub(crate) fn check_len(path: &Path, len: u64) -> io::Result<()> {
    if len <= OFFSET_MAX {
        return Ok(());
    }
    Err(error_on("set length of", path, io::Error::new(io::ErrorKind::InvalidInput, format!("{len} bytes are more than a file can have"))))
}

/// A handle that may write.
pub(crate) fn check_writable(operation: &'static str, path: &Path, writable: bool) -> io::Result<()> {
    if writable {
        return Ok(());
    }
    Err(error_on(operation, path, io::Error::new(io::ErrorKind::PermissionDenied, "the file was opened for reading only")))
}

/// Offset and length of a direct write.
pub(crate) fn check_alignment(path: &Path, offset: u64, len: usize, alignment: usize) -> io::Result<()> {
    let mask = alignment as u64 - 1;
    if (offset | len as u64) & mask == 0 {
        return Ok(());
    }
    let message = format!("direct I/O here needs offset and length in multiples of {alignment} bytes, the length was {len}");
    Err(error_at("write", path, offset, io::Error::new(io::ErrorKind::InvalidInput, message)))
}

/// A set of integers as disjoint, non-adjacent ranges.
#[derive(Debug, Clone, Default)]
pub(crate) struct RangeSet {
    ends: BTreeMap<u64, u64>,
    total: u64,
}

impl RangeSet {
    /// How many integers are in the set.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// How many integers of `range` are not in the set.
    pub(crate) fn missing(&self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let mut missing = range.end - range.start;
        for (&start, &end) in self.ends.range(..range.end).rev() {
            if end <= range.start {
                break;
            }
            missing -= end.min(range.end) - start.max(range.start);
        }
        missing
    }

    /// Adds the range.
    pub(crate) fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        self.total += self.missing(range.clone());
        let (mut from, mut to) = (range.start, range.end);
        // Everything that overlaps or touches becomes one range.
        while let Some((&start, &end)) = self.ends.range(..=to).next_back() {
            if end < from {
                break;
            }
            from = from.min(start);
            to = to.max(end);
            self.ends.remove(&start);
        }
        self.ends.insert(from, to);
    }

    /// Takes the range out.
    pub(crate) fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        while let Some((&start, &end)) = self.ends.range(..range.end).next_back() {
            if end <= range.start {
                break;
            }
            self.ends.remove(&start);
            self.total -= end.min(range.end) - start.max(range.start);
            if start < range.start {
                self.ends.insert(start, range.start);
            }
            if end > range.end {
                self.ends.insert(range.end, end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn ranges_behave_like_a_bitmap() {
        let mut random = Random::new(7);
        for _ in 0..200 {
            let mut set = RangeSet::default();
            let mut bitmap = [false; 64];
            for _ in 0..60 {
                let start = random.below(64) as usize;
                let end = start + random.below(65 - start as u64) as usize;
                let range = start as u64..end as u64;
                assert_eq!(set.missing(range.clone()), bitmap[start..end].iter().filter(|&&bit| !bit).count() as u64);
                let add = random.chance(1, 2);
                if add {
                    set.insert(range)
                } else {
                    set.remove(range)
                }
                bitmap[start..end].fill(add);
                assert_eq!(set.total(), bitmap.iter().filter(|&&bit| bit).count() as u64);
                assert!(set.ends.values().zip(set.ends.keys().skip(1)).all(|(end, next)| end < next), "disjoint and not adjacent");
            }
        }
    }

    #[test]
    fn ranges_beyond_the_largest_offset_are_refused() {
        let path = Path::new("/x");
        assert_eq!(range_end("read", path, 5, 6).unwrap(), 11);
        assert_eq!(range_end("read", path, i64::MAX as u64, 0).unwrap(), i64::MAX as u64);
        for (offset, len) in [(u64::MAX, 1), (i64::MAX as u64, 1), (1, u64::MAX)] {
            let error = range_end("read", path, offset, len).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert!(error.to_string().contains("/x"), "{error}");
        }
    }
}

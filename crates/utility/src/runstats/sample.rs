//! How much is to be read.

/// Of fewer pages nothing could be said that is worth it.
pub const SAMPLE_PAGES_MIN: u64 = 64;

/// How much of a table or index is read. Of half of the pages or more all are read: that takes hardly longer, and is exact.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Sample {
    /// All pages.
    #[default]
    All,
    /// So many percent of the pages, but [`SAMPLE_PAGES_MIN`] at least.
    Percent(f64),
    /// So many pages, but [`SAMPLE_PAGES_MIN`] at least.
    Pages(u64),
}

impl Sample {
    /// Pages to read of so many; `None`: all.
    pub(super) fn pages_of(self, pages: u64) -> Option<u64> {
        let wanted = match self {
            Sample::All => return None,
            Sample::Percent(percent) => (pages as f64 * percent / 100.0).ceil() as u64,
            Sample::Pages(wanted) => wanted,
        };
        let wanted = wanted.max(SAMPLE_PAGES_MIN);
        (wanted.saturating_mul(2) < pages).then_some(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_pages_are_read_whole() {
        assert_eq!(Sample::All.pages_of(1_000_000), None);
        assert_eq!(
            [100, 129, 10_000, 1_000_000].map(|pages| Sample::Percent(1.0).pages_of(pages)),
            [None, Some(64), Some(100), Some(10_000)]
        );
        assert_eq!(
            [Sample::Pages(500), Sample::Pages(499), Sample::Pages(1)].map(|sample| sample.pages_of(1_000)),
            [None, Some(499), Some(64)]
        );
        assert_eq!(Sample::Percent(f64::MAX).pages_of(1_000), None);
    }
}

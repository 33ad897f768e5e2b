//! All entries, in order, through the builder that builds indexes, without page images.

use super::candidate::{IndexCandidate, IndexKeys};
use super::estimate::IndexEstimate;
use crate::Result;
use pagefold_format::index::build::{CountingSink, TreeBuilder};
use pagefold_types::Rid;

enum Build {
    Running(Box<TreeBuilder<CountingSink>>),
    /// A key that is too long for its pages: so many bytes.
    Refused(usize),
}

/// Estimates an index from all its entries.
pub struct IndexEstimator {
    keys: IndexKeys,
    builds: Vec<(IndexCandidate, Build)>,
    rids: u64,
}

impl IndexEstimator {
    /// For these candidates. Every RID has a slot of at most `keys.slot_max`.
    #[must_use]
    pub fn new(keys: IndexKeys, candidates: &[IndexCandidate]) -> IndexEstimator {
        let build = |c: &IndexCandidate| match keys.fixed_key_bytes {
            Some(length) if length > c.key_bytes_max() => Build::Refused(length),
            _ => Build::Running(Box::new(TreeBuilder::with_layout(
                CountingSink::default(),
                c.leaf_layout(&keys),
                c.page_bytes,
                c.disk_bytes(),
                c.pctfree,
            ))),
        };
        IndexEstimator { keys, builds: candidates.iter().map(|c| (*c, build(c))).collect(), rids: 0 }
    }

    /// Adds an entry, in ascending order of (key, RID).
    ///
    /// # Errors
    /// When the order is wrong.
    pub fn push(&mut self, key: &[u8], rid: Rid) -> Result<()> {
        self.rids += 1;
        for (candidate, build) in &mut self.builds {
            let Build::Running(builder) = build else { continue };
            if key.len() > candidate.key_bytes_max() {
                *build = Build::Refused(key.len());
                continue;
            }
            builder.push(key, rid)?;
        }
        Ok(())
    }

    /// What came out, by candidate.
    ///
    /// # Errors
    /// When there are more pages than a data set can have.
    pub fn finish(self) -> Result<Vec<IndexEstimate>> {
        let (keys, rids) = (self.keys, self.rids);
        let one = |(candidate, build): (IndexCandidate, Build)| match build {
            Build::Refused(length) => Ok(IndexEstimate::refused(candidate, keys, rids, length)),
            Build::Running(builder) => Ok(IndexEstimate::exact(candidate, keys, &builder.finish()?.0)),
        };
        self.builds.into_iter().map(one).collect()
    }
}

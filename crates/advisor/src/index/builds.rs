//! All entries, in order, through the builder that builds indexes, without page images: one build for each format and page size.
//!
//! Invariant: a candidate whose pages a key is too long for is refused from then on; the others go on.

use super::candidate::{IndexCandidate, IndexKeys};
use super::estimate::IndexEstimate;
use crate::Result;
use pagefold_format::FormatError;
use pagefold_format::index::build::{PageSink, TreeBuilder};
use pagefold_types::Rid;

enum Build<S> {
    Running(Box<TreeBuilder<S>>),
    /// A key that is too long for its pages: so many bytes.
    Refused(usize),
}

/// Builds side by side.
pub(super) struct Builds<S> {
    keys: IndexKeys,
    builds: Vec<(IndexCandidate, Build<S>)>,
    rids: u64,
}

impl<S: PageSink<Error = FormatError>> Builds<S> {
    /// For these candidates, each with a sink. Every RID has a slot of at most `keys.slot_max`.
    pub(super) fn new(keys: IndexKeys, candidates: &[IndexCandidate], sink: impl Fn() -> S) -> Builds<S> {
        let build = |c: &IndexCandidate| match keys.fixed_key_bytes {
            Some(length) if length > c.key_bytes_max() => Build::Refused(length),
            _ => Build::Running(Box::new(TreeBuilder::with_layout(sink(), c.leaf_layout(&keys), c.page_bytes, c.disk_bytes(), c.pctfree))),
        };
        Builds { keys, builds: candidates.iter().map(|c| (*c, build(c))).collect(), rids: 0 }
    }

    /// Adds an entry, in ascending order of (key, RID).
    pub(super) fn push(&mut self, key: &[u8], rid: Rid) -> Result<()> {
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

    /// What came out, by candidate; without a sink where a key was too long.
    pub(super) fn finish(self) -> Result<Vec<(IndexEstimate, Option<S>)>> {
        let (keys, rids) = (self.keys, self.rids);
        let one = |(candidate, build): (IndexCandidate, Build<S>)| match build {
            Build::Refused(length) => Ok((IndexEstimate::refused(candidate, keys, rids, length), None)),
            Build::Running(builder) => {
                let (built, sink) = builder.finish()?;
                Ok((IndexEstimate::exact(candidate, keys, &built), Some(sink)))
            }
        };
        self.builds.into_iter().map(one).collect()
    }
}

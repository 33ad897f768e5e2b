//! Runs of neighbouring entries: leaves of an index, or key ranges.
//!
//! A run's first entry serves as the left neighbour of the second and is not counted. Everything else is counted with its true neighbour, so what prefixes and RID differences take is
//! what they take in the whole index; no model of the keys is needed.

use super::candidate::{IndexCandidate, IndexKeys, LeafFormat};
use super::estimate::IndexEstimate;
use super::leaf_stream::LeafStream;
use super::prefix_stream::PrefixStream;
use crate::pages::data_set_pages;
use crate::sample::{END_OF_SAMPLE, Interval, Shares};
use pagefold_codec::index::cost::Neighbour;
use pagefold_codec::index::layout::RID_BYTES;
use pagefold_codec::index::prefix::Entries;
use pagefold_codec::index::slot_bits_for;
use pagefold_format::index::limits::separator_len;
use pagefold_format::index::non_leaf::{NON_LEAF_HEADER_BYTES, NonLeaf};
use pagefold_types::{Rid, SLOT_MAX};

/// The free part of non-leaf pages that a build leaves at most.
const NON_LEAF_FREE_PERCENT_MAX: u8 = 10;

/// Part of a prefix leaf that the sample may be wrong by, all leaves alike: where a leaf ends blocks are short, and short blocks begin elsewhere in a sample.
const END_OF_PREFIX_LEAF: f64 = 0.005;

/// Keeps the entries of a sample and estimates from them.
#[derive(Clone, Debug, Default)]
pub struct IndexSampler {
    bytes: Vec<u8>,
    /// End of the key in `bytes`, and RID.
    entries: Vec<(usize, Rid)>,
    /// First entry of each run.
    runs: Vec<usize>,
    slot_max: u16,
    key_bytes_max: usize,
}

impl IndexSampler {
    /// What follows is another run.
    pub fn begin_run(&mut self) {
        self.runs.push(self.entries.len());
    }

    /// Comes this entry behind all of the run? True of any in an empty run.
    #[must_use]
    pub fn is_behind(&self, key: &[u8], rid: Rid) -> bool {
        self.runs.last() == Some(&self.entries.len()) || self.entries.last().is_none_or(|_| self.entry(self.len() - 1) < (key, rid))
    }

    /// Adds an entry to the run, in ascending order of (key, RID).
    pub fn push(&mut self, key: &[u8], rid: Rid) {
        self.bytes.extend_from_slice(key);
        self.entries.push((self.bytes.len(), rid));
        self.slot_max = self.slot_max.max(rid.slot());
        self.key_bytes_max = self.key_bytes_max.max(key.len());
    }

    /// Entries so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// None?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Runs so far.
    #[must_use]
    pub fn run_count(&self) -> usize {
        self.runs.len()
    }

    /// The largest slot seen.
    #[must_use]
    pub fn slot_max(&self) -> u16 {
        self.slot_max
    }

    /// The entries.
    pub fn entries(&self) -> impl Iterator<Item = (&[u8], Rid)> {
        (0..self.len()).map(|i| self.entry(i))
    }

    fn entry(&self, i: usize) -> (&[u8], Rid) {
        let start = if i == 0 { 0 } else { self.entries[i - 1].0 };
        (&self.bytes[start..self.entries[i].0], self.entries[i].1)
    }

    /// Visits every entry that is not the first of its run, with the one before; `begin` is called for each run.
    fn visit<S>(&self, state: &mut S, begin: impl Fn(&mut S), pair: impl Fn(&mut S, (&[u8], Rid), (&[u8], Rid))) {
        for (i, start) in self.runs.iter().enumerate() {
            let end = self.runs.get(i + 1).copied().unwrap_or(self.entries.len());
            begin(state);
            for at in *start + 1..end {
                pair(state, self.entry(at - 1), self.entry(at));
            }
        }
    }

    /// What the runs say about an index of `rids` RIDs, by candidate. Is `keys.slot_max` that of all RIDs, or may RIDs that are not in the sample have larger
    /// slots? A fold gives RIDs the bits that the largest slot needs; when that may be one more than in the sample, the interval has both cases.
    #[must_use]
    pub fn finish(&self, keys: IndexKeys, slot_max_known: bool, candidates: &[IndexCandidate], rids: u64) -> Vec<IndexEstimate> {
        let keys = IndexKeys { slot_max: keys.slot_max.max(self.slot_max), ..keys };
        let more = keys.slot_max.saturating_add((keys.slot_max / 4).max(2)).min(SLOT_MAX);
        let wider = (!slot_max_known && slot_bits_for(more) > slot_bits_for(keys.slot_max)).then_some(IndexKeys { slot_max: more, ..keys });
        let mut facts = Facts::default();
        self.visit(
            &mut facts,
            |_| {},
            |facts, before, (key, rid)| {
                facts.rids += 1;
                if before.0 != key {
                    facts.keys += 1;
                    facts.key_bytes += key.len() as u64;
                }
                facts.separator_bytes += NonLeaf::separator_bytes(separator_len(before.0, before.1, key, rid)) as u64;
            },
        );
        let one = |candidate: &IndexCandidate| {
            let mut estimate = self.estimate(keys, *candidate, &facts, rids);
            if let Some(wider) = wider.filter(|_| candidate.folds() && estimate.key_too_long.is_none()) {
                let other = self.estimate(wider, *candidate, &facts, rids);
                estimate.leaf_pages = estimate.leaf_pages.or(other.leaf_pages);
                estimate.pages = estimate.pages.or(other.pages);
            }
            estimate
        };
        candidates.iter().map(one).collect()
    }

    fn fill(&self, keys: IndexKeys, candidate: IndexCandidate, facts: &Facts) -> Filled {
        let mut stream = LeafStream::new(candidate.leaf_kind(&keys), candidate.page_bytes, candidate.pctfree);
        self.visit(
            &mut stream,
            |stream| stream.shares.begin(),
            |stream, before, (key, rid)| {
                stream.push(Neighbour { key: before.0, last_rid: before.1.to_u64() }, key, rid.to_u64());
            },
        );
        stream.end();
        let (entry_bytes, folded_bytes) = stream.entry_bytes();
        let of_one = |bytes: u64| bytes as f64 / facts.rids.max(1) as f64;
        let stored_bytes = of_one(if candidate.folds() { folded_bytes } else { entry_bytes });
        Filled { pages: stream.pages, shares: stream.shares, entry_bytes: of_one(entry_bytes), stored_bytes }
    }

    fn fill_prefix(&self, keys: IndexKeys, candidate: IndexCandidate) -> Filled {
        let mut stream = PrefixStream::new(keys.fixed_key_bytes.unwrap_or(0), candidate.page_bytes, candidate.pctfree);
        let mut run = Entries::new();
        for (i, start) in self.runs.iter().enumerate() {
            let end = self.runs.get(i + 1).copied().unwrap_or(self.entries.len());
            run.clear();
            for at in *start..end {
                let (key, rid) = self.entry(at);
                run.push(key, rid.to_u64());
            }
            stream.push_run(&run);
        }
        stream.end();
        let bytes = stream.block_bytes as f64 / stream.pairs.max(1) as f64;
        Filled { pages: stream.pages, shares: stream.shares, entry_bytes: bytes, stored_bytes: bytes }
    }

    fn estimate(&self, keys: IndexKeys, candidate: IndexCandidate, facts: &Facts, rids: u64) -> IndexEstimate {
        let longest = self.key_bytes_max.max(keys.fixed_key_bytes.unwrap_or(0));
        if longest > candidate.key_bytes_max() {
            return IndexEstimate::refused(candidate, keys, rids, longest);
        }
        let filled = match candidate.format {
            LeafFormat::Prefix => self.fill_prefix(keys, candidate),
            LeafFormat::Plain | LeafFormat::Fold => self.fill(keys, candidate, facts),
        };
        // Runs differ in length, as one ends where another began: what part of the index they are is to be seen from their entries only.
        let runs = self.run_count() as f64 * rids as f64 / self.len().max(1) as f64;
        let (per_rid, relative) = filled.shares.estimator().ratio(runs);
        let modelled = if candidate.format == LeafFormat::Prefix { END_OF_PREFIX_LEAF } else { facts.end_of_leaf(candidate) };
        let relative = if relative > 0.0 { relative + modelled + END_OF_SAMPLE / (filled.pages + 1) as f64 } else { relative };
        // An index of any entries has a leaf.
        let least = u64::from(rids > 0);
        let leaf_pages = Interval::around(per_rid * rids as f64, relative).map(|pages| pages.max(least));
        let scale = rids as f64 / facts.rids.max(1) as f64;
        let scaled = |n: u64| (n as f64 * scale).round() as u64;
        let levels = |leaves: u64| facts.levels(leaves, candidate);
        let all = |leaves: u64| data_set_pages(levels(leaves).iter().sum(), candidate.disk_bytes());
        let of_all = |bytes: f64| (bytes * rids as f64).round() as u64;
        let own = levels(leaf_pages.value);
        IndexEstimate {
            candidate,
            keys_known: keys,
            key_too_long: None,
            keys: scaled(facts.keys),
            rids,
            key_bytes: scaled(facts.key_bytes),
            entry_bytes: of_all(filled.entry_bytes),
            stored_bytes: of_all(filled.stored_bytes),
            leaf_pages,
            non_leaf_pages: own.iter().skip(1).sum(),
            levels: own,
            pages: leaf_pages.map(all),
        }
    }
}

/// Leaves filled with a sample.
struct Filled {
    /// Full ones.
    pages: u64,
    shares: Shares,
    /// Of one RID, in memory and on disk.
    entry_bytes: f64,
    stored_bytes: f64,
}

#[derive(Debug, Default)]
struct Facts {
    rids: u64,
    keys: u64,
    key_bytes: u64,
    separator_bytes: u64,
}

impl Facts {
    /// Part of a leaf that the sample may be wrong by, all leaves alike: a leaf ends where a key finds no room, or where a further RID of a list does, which takes less. Lists that are alike make
    /// one of these the rule, and seams between runs break it. Without lists all entries end leaves in the same way.
    fn end_of_leaf(&self, candidate: IndexCandidate) -> f64 {
        if self.keys == self.rids {
            return 0.0;
        }
        let key = self.key_bytes as f64 / self.keys.max(1) as f64 + RID_BYTES as f64;
        key / 2.0 / candidate.disk_bytes() as f64
    }

    /// Pages of each level, leaves first.
    fn levels(&self, leaves: u64, candidate: IndexCandidate) -> Vec<u64> {
        let mut levels = vec![leaves];
        let room = (candidate.disk_bytes() - NON_LEAF_HEADER_BYTES) as f64;
        let room = room * f64::from(100 - candidate.pctfree.min(NON_LEAF_FREE_PERCENT_MAX)) / 100.0;
        let separator = self.separator_bytes as f64 / self.rids.max(1) as f64;
        let children = (room / separator.max(1.0)).floor().max(2.0) + 1.0;
        let mut pages = leaves;
        while pages > 1 {
            pages = (pages as f64 / children).ceil() as u64;
            levels.push(pages);
        }
        levels
    }
}

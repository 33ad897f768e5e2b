//! Prefix leaves filled with the pairs of a sample.
//!
//! As in `LeafStream` the runs of a sample are packed one behind the other. A block is made of pairs of one run only, so it is as long as in the whole index; the few pairs at the end of a
//! run that do not make a block are passed over. What all keys of a leaf share is what the keys of each of its parts share.
//!
//! Invariant: for one run that is the whole index the leaves are those of `PrefixLeafBuilder`, but for the last blocks.

use crate::sample::Shares;
use pagefold_codec::bytes::common_prefix;
use pagefold_codec::index::prefix::{Entries, HEAD_BYTES, PAIRS_MAX, Plan};
use pagefold_format::index::prefix::{DIRECTORY_BYTES, PREFIX_HEADER_BYTES, block_bytes_max};

/// What is left of a run is passed over if it has fewer pairs than this.
const REST_PAIRS: usize = PAIRS_MAX / 2;
/// A leaf is full when so few pairs do not fit.
const LAST_PAIRS: usize = PAIRS_MAX / 8;

/// What a block takes where nothing is shared.
#[derive(Clone, Copy, Debug)]
struct Packed {
    bytes: usize,
    key_bytes: usize,
}

impl Packed {
    fn sharing(self, shared: usize) -> usize {
        let rest = |shared: usize| self.key_bytes.saturating_sub(shared + HEAD_BYTES);
        self.bytes - rest(0) + rest(shared)
    }
}

/// Fills prefix leaves of one size.
pub(super) struct PrefixStream {
    fixed_key_bytes: usize,
    page_bytes: usize,
    free_bytes: usize,
    /// Of the leaf being filled.
    blocks: Vec<Packed>,
    shared: usize,
    /// Bytes of blocks and directory in complete leaves and, at the end, in this one.
    pub(super) block_bytes: u64,
    pub(super) pages: u64,
    pub(super) pairs: u64,
    pub(super) shares: Shares,
    part: Entries,
}

impl PrefixStream {
    pub(super) fn new(fixed_key_bytes: usize, page_bytes: usize, pctfree: u8) -> PrefixStream {
        PrefixStream {
            fixed_key_bytes,
            page_bytes,
            free_bytes: page_bytes * usize::from(pctfree.min(99)) / 100,
            blocks: Vec::new(),
            shared: 0,
            block_bytes: 0,
            pages: 0,
            pairs: 0,
            shares: Shares::default(),
            part: Entries::new(),
        }
    }

    /// Packs a run.
    pub(super) fn push_run(&mut self, run: &Entries) {
        self.shares.begin();
        let (n, mut at) = (run.pair_count(), 0);
        // Where the run's part of the leaf begins.
        let mut start = 0;
        while at < n && (at == 0 || n - at >= REST_PAIRS) {
            let mut take = PAIRS_MAX;
            while take > 0 {
                let last = (at + take).min(n) - 1;
                let shared = common_prefix(run.key(run.entry_of(start)), run.key(run.entry_of(last)));
                let shared = if self.blocks.is_empty() { shared } else { shared.min(self.shared) };
                let (packed, slow) = self.block(run, at, take);
                let good = take == 1 || (!slow && packed.bytes <= block_bytes_max(self.page_bytes));
                let free_bytes = if self.blocks.is_empty() && take == 1 { 0 } else { self.free_bytes };
                let all = self.bytes_sharing(shared) + packed.sharing(shared) + DIRECTORY_BYTES;
                if good && (all + free_bytes <= self.page_bytes || (take == 1 && self.blocks.is_empty())) {
                    self.blocks.push(packed);
                    self.shared = shared;
                    self.pairs += take as u64;
                    at += take;
                    let each = (packed.sharing(shared) + DIRECTORY_BYTES) as f64 / take as f64;
                    (0..take).for_each(|_| self.shares.row(each));
                    break;
                }
                if good && !self.blocks.is_empty() && (self.free_bytes > 0 || take <= LAST_PAIRS) {
                    self.block_bytes += (self.bytes_sharing(self.shared) - PREFIX_HEADER_BYTES) as u64;
                    self.blocks.clear();
                    self.pages += 1;
                    self.shares.close(1.0);
                    start = at;
                    break;
                }
                take /= 2;
            }
        }
    }

    /// Ends the sample: the leaf being filled counts as the part that it is of a leaf as full as the others.
    pub(super) fn end(&mut self) {
        let used = (self.bytes_sharing(self.shared) - PREFIX_HEADER_BYTES) as u64;
        let full = self.block_bytes.checked_div(self.pages).unwrap_or((self.page_bytes - self.free_bytes) as u64);
        self.shares.close((used as f64 / full.max(1) as f64).min(1.0));
        self.block_bytes += used;
    }

    /// Bytes of the leaf being filled where its keys share so many bytes.
    fn bytes_sharing(&self, shared: usize) -> usize {
        let blocks: usize = self.blocks.iter().map(|block| block.sharing(shared) + DIRECTORY_BYTES).sum();
        PREFIX_HEADER_BYTES + shared + blocks
    }

    fn plan(&mut self, run: &Entries, at: usize, take: usize) -> (usize, bool) {
        self.part.clear();
        self.part.extend(run, at, at + take);
        // Pairs of a sample are as many as a block takes, and their keys no longer than a page.
        Plan::new(&self.part, self.fixed_key_bytes).map_or((usize::MAX / 2, true), |plan| (plan.bytes(0), plan.is_slow()))
    }

    /// A block of `take` pairs from pair `at` on, and whether it is searched too slowly. Where the run has fewer pairs: by what they take, and half of them. What keys and RIDs take grows with
    /// the logarithm of the number of pairs, as they are apart.
    fn block(&mut self, run: &Entries, at: usize, take: usize) -> (Packed, bool) {
        let key_bytes = run.key(run.entry_of(at)).len();
        let have = (run.pair_count() - at).min(take);
        let (bytes, slow) = self.plan(run, at, have);
        if have == take || have < 4 {
            return (Packed { bytes: bytes * take.div_ceil(have), key_bytes }, slow);
        }
        let (one, _) = self.plan(run, at, 1);
        let (half, _) = self.plan(run, at, have / 2);
        let each = |bytes: usize, pairs: usize| bytes.saturating_sub(one) as f64 / pairs as f64;
        let doubled = (each(bytes, have) - each(half, have / 2)).clamp(0.0, 0.25);
        let more = each(bytes, have) + doubled * (take as f64 / have as f64).log2();
        (Packed { bytes: one + (more * take as f64).round() as usize, key_bytes }, slow)
    }
}

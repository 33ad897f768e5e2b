//! Samples: clusters of neighbouring rows, and key ranges of indexes that do not exist.
//!
//! What a key takes in an index depends on its neighbours there, and the rows of a sample are not neighbours. So for a proposed index the keys of all rows are read (only their
//! columns, where the source is by column), and a bounded number of them is kept: of each of a number of random rows, the entries that follow it in the index. As every entry has the same
//! chance to lie behind one of the rows, the ranges are a sample of the index; they are estimated from like leaves that were read.
//!
//! Invariant: memory is bounded by ranges times entries, whatever the rows are.

use super::proposed::ProposedIndex;
use super::random::SplitMix64;
use crate::Result;
use pagefold_advisor::IndexSampler;
use pagefold_codec::index::layout::common_prefix;
use pagefold_types::{PackedRow, RID_BYTES, Rid, Value};
use std::cmp::Ordering;

/// Key ranges, at most.
pub(super) const RANGES_MAX: usize = 128;
/// Entries of a range.
const RANGE_ENTRIES: usize = 512;

/// The rows of a sample.
#[derive(Debug, Default)]
pub(super) struct Clusters {
    bytes: Vec<u8>,
    /// End of each row's record.
    rows: Vec<(usize, Rid)>,
    /// Row and values of those that have no record.
    wide: Vec<(usize, Vec<Value>)>,
    /// First row of each cluster.
    starts: Vec<usize>,
    /// So many clusters, one behind the other, were drawn together; 0 and 1: each by itself.
    pub(super) drawn_together: usize,
}

impl Clusters {
    pub(super) fn begin(&mut self) {
        self.starts.push(self.rows.len());
    }

    pub(super) fn push(&mut self, row: PackedRow<'_>, rid: Rid) {
        match row {
            PackedRow::Record(record) => self.bytes.extend_from_slice(record),
            PackedRow::Wide(values) => self.wide.push((self.rows.len(), values.to_vec())),
        }
        self.rows.push((self.bytes.len(), rid));
    }

    /// Number of clusters.
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Is this the first of the clusters that were drawn together?
    pub(super) fn is_draw(&self, cluster: usize) -> bool {
        cluster.is_multiple_of(self.drawn_together.max(1))
    }

    /// Number of draws.
    pub(super) fn draws(&self) -> usize {
        self.len().div_ceil(self.drawn_together.max(1))
    }

    pub(super) fn row_count(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn record_bytes(&self) -> usize {
        self.bytes.len()
    }

    fn range(&self, cluster: usize) -> std::ops::Range<usize> {
        self.starts[cluster]..self.starts.get(cluster + 1).copied().unwrap_or(self.rows.len())
    }

    fn row(&self, row: usize) -> (PackedRow<'_>, Rid) {
        let start = if row == 0 { 0 } else { self.rows[row - 1].0 };
        let (end, rid) = self.rows[row];
        match self.wide.binary_search_by_key(&row, |wide| wide.0) {
            Ok(at) => (PackedRow::Wide(&self.wide[at].1), rid),
            Err(_) => (PackedRow::Record(&self.bytes[start..end]), rid),
        }
    }

    /// The rows of a cluster.
    pub(super) fn rows(&self, cluster: usize) -> impl Iterator<Item = (PackedRow<'_>, Rid)> {
        self.range(cluster).map(|row| self.row(row))
    }

    /// The records of a cluster; rows without one are passed over.
    pub(super) fn records(&self, cluster: usize) -> impl Iterator<Item = &[u8]> {
        self.rows(cluster).filter_map(|(row, _)| match row {
            PackedRow::Record(record) => Some(record),
            PackedRow::Wide(_) => None,
        })
    }

    /// One random row from each of at most [`RANGES_MAX`] random clusters.
    pub(super) fn random_rows(&self, random: &mut SplitMix64) -> Vec<(PackedRow<'_>, Rid)> {
        let mut clusters: Vec<usize> = (0..self.len()).filter(|cluster| !self.range(*cluster).is_empty()).collect();
        let count = random.choose(&mut clusters, RANGES_MAX as u64);
        let row = |cluster: &usize| {
            let range = self.range(*cluster);
            self.row(range.start + random.below(range.len() as u64) as usize)
        };
        clusters[..count].iter().map(row).collect()
    }
}

/// A key and RID, one behind the other: they compare like (key, RID).
pub(super) fn entry_bytes(key: &[u8], rid: Rid) -> Vec<u8> {
    [key, &rid.to_bytes()].concat()
}

/// The entries that follow one row.
#[derive(Debug, Default)]
struct KeyRange {
    bytes: Vec<u8>,
    /// Start in `bytes`, and length.
    entries: Vec<(u32, u32)>,
    /// Beyond it nothing is wanted any more.
    limit: Option<Vec<u8>>,
}

impl KeyRange {
    fn push(&mut self, entry: &[u8]) {
        self.entries.push((self.bytes.len() as u32, entry.len() as u32));
        self.bytes.extend_from_slice(entry);
        if self.entries.len() >= 4 * RANGE_ENTRIES {
            self.keep_first();
        }
    }

    /// Sorts, and forgets all but the first entries.
    fn keep_first(&mut self) {
        let old = std::mem::take(&mut self.bytes);
        let get = |&(start, length): &(u32, u32)| &old[start as usize..][..length as usize];
        self.entries.sort_unstable_by(|a, b| get(a).cmp(get(b)));
        if self.entries.len() > RANGE_ENTRIES {
            self.entries.truncate(RANGE_ENTRIES);
            self.limit = self.entries.last().map(|last| get(last).to_vec());
        }
        for entry in &mut self.entries {
            let start = self.bytes.len() as u32;
            self.bytes.extend_from_slice(get(entry));
            entry.0 = start;
        }
    }
}

/// Collects key ranges of one proposed index.
#[derive(Debug)]
pub(super) struct KeyRanges {
    pub(super) index: ProposedIndex,
    starts: Vec<Vec<u8>>,
    ranges: Vec<KeyRange>,
    slot_max: u16,
    pub(super) slot_max_known: bool,
    rids: u64,
    /// What all starts begin with, and for each the 8 bytes behind that: they settle most comparisons.
    prefix: usize,
    /// The first 8 bytes of the first start.
    first_head: u64,
    heads: Vec<u64>,
    /// For each range the 8 bytes of its limit at the same place.
    limits: Vec<u64>,
}

/// The 8 bytes from `prefix` on, zero-padded, as a number.
fn head(key: &[u8], prefix: usize) -> u64 {
    let rest = key.get(prefix..).unwrap_or_default();
    match rest.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => {
            let mut chunk = [0; 8];
            chunk[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(chunk)
        }
    }
}

impl KeyRanges {
    /// With ranges that start at these entries (key and RID one behind the other). `slot_max`: when RIDs are not the real ones,
    /// the largest slot known of.
    pub(super) fn new(index: ProposedIndex, mut starts: Vec<Vec<u8>>, slot_max: Option<u16>) -> KeyRanges {
        starts.sort_unstable();
        starts.dedup();
        let ranges = starts.iter().map(|_| KeyRange::default()).collect();
        let prefix = match (starts.first(), starts.last()) {
            (Some(first), Some(last)) => common_prefix(first, last),
            _ => 0,
        };
        let first_head = starts.first().map_or(0, |start| head(start, 0));
        let heads = starts.iter().map(|start| head(start, prefix)).collect();
        let limits = vec![u64::MAX; starts.len()];
        KeyRanges {
            index,
            starts,
            ranges,
            slot_max: slot_max.unwrap_or(0),
            slot_max_known: slot_max.is_none(),
            rids: 0,
            prefix,
            first_head,
            heads,
            limits,
        }
    }

    /// Sees an entry. `key` has room for the RID behind it.
    pub(super) fn push(&mut self, key: &mut Vec<u8>, rid: Rid) {
        self.rids += 1;
        self.slot_max = self.slot_max.max(rid.slot());
        // Starts can have bytes of their RIDs in common too.
        key.extend_from_slice(&rid.to_bytes());
        let Some(first) = self.starts.first() else { return };
        // The first 8 bytes as a number: most keys need no call to compare their prefix.
        let shift = 64 - 8 * self.prefix.min(8) as u32;
        let order = match head(key, 0).checked_shr(shift).cmp(&self.first_head.checked_shr(shift)) {
            Ordering::Equal if self.prefix > 8 => key.get(..self.prefix).unwrap_or(key).cmp(&first[..self.prefix]),
            order => order,
        };
        let number = match order {
            Ordering::Less => return,
            Ordering::Greater => self.starts.len() - 1,
            Ordering::Equal => {
                let own = head(key, self.prefix);
                let below = self.heads.partition_point(|head| *head < own);
                // What lies in a range whose limit is below is wanted by nobody.
                if self.heads.get(below) != Some(&own) && below.checked_sub(1).is_none_or(|number| self.limits[number] < own) {
                    return;
                }
                let same = self.heads[below..].partition_point(|head| *head <= own);
                let behind = below + self.starts[below..below + same].partition_point(|start| start.as_slice() <= key.as_slice());
                let Some(number) = behind.checked_sub(1) else { return };
                return self.offer(number, key);
            }
        };
        self.offer(number, key);
    }

    fn offer(&mut self, number: usize, entry: &[u8]) {
        let range = &mut self.ranges[number];
        if range.limit.as_ref().is_none_or(|limit| entry < limit.as_slice()) {
            range.push(entry);
            if let Some(limit) = &range.limit {
                // A limit that does not begin like the starts lies behind all that do.
                self.limits[number] =
                    if limit.starts_with(&self.starts[number][..self.prefix]) { head(limit, self.prefix) } else { u64::MAX };
            }
        }
    }

    /// The ranges as runs of a sample; RIDs in all.
    pub(super) fn finish(mut self) -> Result<(ProposedIndex, IndexSampler, u16, u64)> {
        let mut sampler = IndexSampler::default();
        for range in &mut self.ranges {
            range.keep_first();
            sampler.begin_run();
            for (start, length) in &range.entries {
                let entry = &range.bytes[*start as usize..][..*length as usize];
                let (key, bytes) = entry.split_at(entry.len().saturating_sub(RID_BYTES));
                let mut rid = [0; RID_BYTES];
                rid.copy_from_slice(bytes);
                sampler.push(key, Rid::from_bytes(rid));
            }
        }
        Ok((self.index, sampler, self.slot_max, self.rids))
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::Proposal;
    use super::*;
    use pagefold_types::{Column, DataType, Direction, Schema};

    /// Each range holds the entries that follow its start, up to the next start.
    #[test]
    fn ranges_hold_what_follows_their_start() {
        let schema = Schema::new(vec![Column::new("k", DataType::Bytea, false)]).unwrap();
        let proposal = Proposal { name: "i".into(), columns: vec![("k".into(), Direction::Ascending)], unique: false };
        let index = ProposedIndex::new(&proposal, &schema).unwrap();
        for shape in 0..4u64 {
            let mut random = SplitMix64(shape);
            let mut entries: Vec<(Vec<u8>, Rid)> = (0..40_000u32)
                .map(|row| {
                    let r = random.below(1 << 40);
                    let key = match shape {
                        0 => r.to_be_bytes().to_vec(),
                        1 => vec![(r % 3) as u8],
                        2 => [b"the same beginning ".as_slice(), &(r % 5000).to_be_bytes()[5..]].concat(),
                        _ => r.to_be_bytes()[3..3 + 1 + (r % 5) as usize].to_vec(),
                    };
                    (key, Rid::new(0, 2 + row / 50, (row % 50) as u16))
                })
                .collect();
            let starts: Vec<Vec<u8>> = (0..20).map(|_| &entries[random.below(40_000) as usize]).map(|(k, r)| entry_bytes(k, *r)).collect();
            let mut ranges = KeyRanges::new(index.clone(), starts.clone(), None);
            entries.iter().for_each(|(key, rid)| ranges.push(&mut key.clone(), *rid));
            let mut all: Vec<Vec<u8>> = entries.drain(..).map(|(k, r)| entry_bytes(&k, r)).collect();
            all.sort_unstable();
            for (i, range) in ranges.ranges.iter_mut().enumerate() {
                range.keep_first();
                let got: Vec<&[u8]> =
                    range.entries.iter().map(|(start, length)| &range.bytes[*start as usize..][..*length as usize]).collect();
                let next = ranges.starts.get(i + 1);
                let from = all.partition_point(|entry| *entry < ranges.starts[i]);
                let wanted: Vec<&[u8]> = all[from..]
                    .iter()
                    .take_while(|entry| next.is_none_or(|next| *entry < next))
                    .take(RANGE_ENTRIES)
                    .map(Vec::as_slice)
                    .collect();
                assert_eq!(got, wanted, "shape {shape}, range {i}");
            }
            assert_eq!((ranges.rids, ranges.slot_max), (40_000, 49));
        }
    }
}

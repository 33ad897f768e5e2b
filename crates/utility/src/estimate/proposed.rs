//! Indexes that do not exist: all their keys, sorted, into the estimator.

use super::costs::{Costs, KeySample, KeysOf};
use super::options::{EstimateOptions, Proposal, Scratch};
use super::report::IndexesEstimate;
use crate::key_sort::KeySorter;
use crate::progress::tell;
use crate::{Error, Progress, Result, Unit};
use pagefold_advisor::{AdvisorError, IndexCandidate, IndexEstimator, IndexKeys};
use pagefold_types::{Direction, KeyLayout, Rid, RowLayout, Schema, Value, ValueRef};
use std::sync::atomic::{AtomicU64, Ordering};

/// Entries between two looks at whether to stop.
const ENTRIES_PER_LOOK: u64 = 64 * 1024;

/// Tells temporary files of estimates in one process apart.
static FILES: AtomicU64 = AtomicU64::new(0);

impl From<AdvisorError> for Error {
    fn from(error: AdvisorError) -> Error {
        Error::Data(error.to_string())
    }
}

/// `a, b DESC`
pub(super) fn columns_text(schema: &Schema, columns: &[(usize, Direction)]) -> String {
    let name = |(column, direction): &(usize, Direction)| {
        let name = &schema.columns()[*column].name;
        if *direction == Direction::Descending { format!("{name} DESC") } else { name.clone() }
    };
    columns.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// A proposed index, resolved against the columns of its table.
#[derive(Clone, Debug)]
pub(super) struct ProposedIndex {
    pub(super) name: String,
    pub(super) columns: Vec<(usize, Direction)>,
    pub(super) unique: bool,
    /// Keys of any length: which page sizes take them is for the estimate to say.
    pub(super) layout: KeyLayout,
    pub(super) text: String,
    /// Columns of its table.
    schema: Schema,
}

impl ProposedIndex {
    pub(super) fn new(proposal: &Proposal, schema: &Schema) -> Result<ProposedIndex> {
        let mut columns: Vec<(usize, Direction)> = Vec::with_capacity(proposal.columns.len());
        for (name, direction) in &proposal.columns {
            let column = schema.index_of(name).map_err(|e| Error::Usage(format!("index \"{}\": {e}", proposal.name)))?;
            if columns.iter().any(|(c, _)| *c == column) {
                return Err(Error::Usage(format!("index \"{}\": column \"{name}\" comes twice", proposal.name)));
            }
            columns.push((column, *direction));
        }
        if columns.is_empty() {
            return Err(Error::Usage(format!("index \"{}\" has no columns", proposal.name)));
        }
        let layout = KeyLayout::new(schema, &columns);
        let text = columns_text(schema, &columns);
        Ok(ProposedIndex { name: proposal.name.clone(), columns, unique: proposal.unique, layout, text, schema: schema.clone() })
    }

    pub(super) fn keys(&self, slot_max: u16) -> IndexKeys {
        IndexKeys { unique: self.unique, fixed_key_bytes: self.layout.fixed_len(), slot_max }
    }

    pub(super) fn keys_of(&self) -> KeysOf<'_> {
        KeysOf { schema: &self.schema, columns: &self.columns, unique: self.unique }
    }

    /// Does a key hold a NULL? Such keys never count as duplicates.
    fn has_null(&self, key: &[u8]) -> bool {
        self.layout.fixed_len().is_none() && self.layout.decode(key).is_ok_and(|values| values.iter().any(|v| matches!(v, Value::Null)))
    }
}

/// Collects and sorts the keys of one proposed index.
pub(super) struct ProposedKeys {
    pub(super) index: ProposedIndex,
    candidates: Vec<IndexCandidate>,
    costs: Costs,
    sorter: KeySorter,
    key: Vec<u8>,
}

impl ProposedKeys {
    pub(super) fn new(index: ProposedIndex, scratch: &Scratch, options: &EstimateOptions) -> ProposedKeys {
        let name = format!("estimate-{:x}-{:x}", std::process::id(), FILES.fetch_add(1, Ordering::Relaxed));
        let sorter = KeySorter::in_directory(scratch.storage.clone(), scratch.directory.clone(), &name, options.sort_bytes);
        ProposedKeys { index, candidates: options.index_candidates(options.index_pctfree), costs: options.costs, sorter, key: Vec::new() }
    }

    pub(super) fn push_record(&mut self, layout: &RowLayout, record: &[u8], rid: Rid) -> Result<()> {
        self.key.clear();
        let encoded = self.index.layout.encode_from_record(layout, record, &mut self.key);
        encoded.map_err(|e| Error::Data(format!("index \"{}\": {e}", self.index.name)))?;
        self.push_key(rid)
    }

    pub(super) fn push_values(&mut self, values: &[ValueRef<'_>], rid: Rid) -> Result<()> {
        self.key.clear();
        let encoded = self.index.layout.encode_from_values(values, &mut self.key);
        encoded.map_err(|e| Error::Data(format!("index \"{}\": {e}", self.index.name)))?;
        self.push_key(rid)
    }

    fn push_key(&mut self, rid: Rid) -> Result<()> {
        self.sorter.push(&self.key, rid)
    }

    pub(super) fn finish(self, progress: &dyn Progress) -> Result<IndexesEstimate> {
        let index = self.index;
        let keys = index.keys(self.sorter.slot_max());
        progress.start(&format!("estimating index {}", index.name), Some(self.sorter.len()), Unit::Rows);
        let mut estimator = IndexEstimator::new(keys, &self.candidates);
        let mut sample = KeySample::default();
        let (mut duplicates, mut done, mut last) = (0u64, 0u64, None::<Vec<u8>>);
        self.sorter.drain(|key, rid| {
            if index.unique {
                match &mut last {
                    Some(last) if last == key => duplicates += u64::from(!index.has_null(key)),
                    Some(last) => {
                        last.clear();
                        last.extend_from_slice(key);
                    }
                    None => last = Some(key.to_vec()),
                }
            }
            estimator.push(key, rid)?;
            sample.push(key, rid);
            done += 1;
            tell(done, ENTRIES_PER_LOOK, progress)
        })?;
        progress.finish();
        let estimates = estimator.finish()?;
        let costs = self.costs.of_formats(&index.keys_of(), sample, &estimates, progress)?;
        let mut estimate = IndexesEstimate::new(index.name, index.text, index.unique, estimates, &costs, None);
        if duplicates > 0 {
            estimate.advice = format!("It cannot be unique: {duplicates} rows have the key of another. {}", estimate.advice);
        }
        estimate.duplicates = duplicates;
        Ok(estimate)
    }
}

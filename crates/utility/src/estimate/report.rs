//! What ESTIMATE found.
//!
//! In `--json`: `rows`; `methods` from [`EstimateReport::methods`] (`method`, `page_size_bytes`, `pages`, `pages_low`, `pages_high`, `size_bytes`, ...); `indexes` from all
//! [`IndexesEstimate::lines`] (`name`, `format`, `page_size_bytes`, `leaf_pages`, `space_reduction`, `buffer_unused`, ...).

use pagefold_advisor::{Choice, Cost, IndexEstimate, LeafFormat, Saving, TableEstimate, choose_format, choose_method, table_advice};

/// What is there now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectNow {
    /// Method of a table, format of an index.
    pub method: String,
    /// Page size; of an index that of leaves in memory.
    pub page_bytes: usize,
    /// Pages of all kinds.
    pub pages: u64,
    /// Pages with rows, or leaf pages.
    pub data_pages: u64,
    /// Bytes of all pages.
    pub size_bytes: u64,
}

/// A table under one method and page size.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodEstimate {
    /// Pages and bytes.
    pub estimate: TableEstimate,
    /// What it saves: against what is there now or, for files, against no compression with the same page size.
    pub saving: Saving,
}

/// An index in one format and page size.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexReportLine {
    /// Pages and bytes.
    pub estimate: IndexEstimate,
    /// What it saves: against what is there now or, for a proposed index, against a plain one with pages of 8 KB.
    pub saving: Saving,
    /// The part of the leaf pages' space that is saved.
    pub space_reduction: f64,
}

/// One index in all formats and page sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexesEstimate {
    /// Its name; of a proposed index what the proposal said.
    pub name: String,
    /// Its columns, as text.
    pub columns: String,
    /// No two rows with the same key?
    pub unique: bool,
    /// RIDs whose key another RID has, although the index is to be unique: it would be refused. (Keys with a NULL apart. Not known from a sample.)
    pub duplicates: u64,
    /// What is there now.
    pub now: Option<ObjectNow>,
    /// All formats and page sizes.
    pub lines: Vec<IndexReportLine>,
    /// What `auto` would choose; `None` when no page size takes the keys.
    pub choice: Option<Choice>,
    /// What to choose.
    pub advice: String,
}

/// How much was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleFacts {
    /// Pages of a database that were read as the sample; 0 for files.
    pub pages: u64,
    /// Rows, or RIDs, in the sample.
    pub rows: u64,
    /// Clusters: pages, or runs of rows of a file.
    pub clusters: u64,
    /// Were the key columns of all rows read, for proposed indexes?
    pub all_keys: bool,
}

/// What ESTIMATE found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EstimateReport {
    /// Name of the table or index; empty for files.
    pub object: String,
    /// Rows, or RIDs of an index.
    pub rows: u64,
    /// What is there now.
    pub now: Option<ObjectNow>,
    /// Methods and page sizes; those with the page size in use come first. Empty for an index.
    pub methods: Vec<MethodEstimate>,
    /// The index, or the indexes proposed.
    pub indexes: Vec<IndexesEstimate>,
    /// What `auto` would choose for the table, with the page size in use.
    pub choice: Option<Choice>,
    /// What to choose for the table.
    pub advice: String,
    /// `None`: everything was read, and the result is exact.
    pub sample: Option<SampleFacts>,
}

/// Page size that a proposed index is compared with.
const PLAIN_BYTES: usize = 8192;

impl MethodEstimate {
    /// Lines for all estimates. `before` packs the rows as they are now; without it (files) `none` of the same page size is what is compared with.
    pub(super) fn all(estimates: Vec<TableEstimate>, before: Option<(&TableEstimate, &ObjectNow)>) -> Vec<MethodEstimate> {
        let plain: Vec<TableEstimate> = estimates.iter().filter(|e| e.method == "none").cloned().collect();
        let saving = |e: &TableEstimate| match before {
            Some((before, now)) => e.saving(before, now.data_pages, now.pages),
            None => plain
                .iter()
                .find(|p| p.options.page_bytes == e.options.page_bytes)
                .map(|p| e.saving(p, p.data_pages.value, p.pages.value))
                .unwrap_or_default(),
        };
        estimates.into_iter().map(|estimate| MethodEstimate { saving: saving(&estimate), estimate }).collect()
    }
}

impl EstimateReport {
    /// Completes the part on the table.
    pub(super) fn set_methods(&mut self, methods: Vec<MethodEstimate>, page_bytes: usize, costs: &[(&'static str, Cost)]) {
        let estimates: Vec<TableEstimate> = methods.iter().map(|m| m.estimate.clone()).collect();
        let cost = |method: &str| costs.iter().find(|(name, _)| *name == method).map(|(_, cost)| *cost);
        self.choice = choose_method(&estimates, page_bytes, cost);
        self.advice = self.choice.as_ref().map_or_else(String::new, |choice| table_advice(choice, &estimates));
        self.methods = methods;
    }
}

impl IndexesEstimate {
    /// Of an index that exists, or of a proposed one. `before`: number of the candidate that is as the index is now.
    pub(super) fn new(
        name: String,
        columns: String,
        unique: bool,
        estimates: Vec<IndexEstimate>,
        costs: &[Option<Cost>],
        now: Option<(ObjectNow, usize)>,
    ) -> IndexesEstimate {
        let plain = |e: &&IndexEstimate| {
            e.candidate.format == LeafFormat::Plain && e.candidate.page_bytes == PLAIN_BYTES && e.key_too_long.is_none()
        };
        let before = match &now {
            Some((_, number)) => estimates.get(*number),
            None => estimates.iter().find(plain).or_else(|| estimates.iter().find(|e| e.key_too_long.is_none())),
        };
        let (leaf_pages, pages) = match (&now, before) {
            (Some((now, _)), _) => (now.data_pages, now.pages),
            (None, Some(before)) => (before.leaf_pages.value, before.pages.value),
            (None, None) => (0, 0),
        };
        let leaf_bytes = before.map_or(0, |before| leaf_pages * before.candidate.disk_bytes() as u64);
        let line = |e: &IndexEstimate| IndexReportLine {
            saving: before.filter(|_| e.key_too_long.is_none()).map(|before| e.saving(before, leaf_pages, pages)).unwrap_or_default(),
            space_reduction: if e.key_too_long.is_some() { 0.0 } else { e.space_reduction(leaf_bytes) },
            estimate: e.clone(),
        };
        let lines = estimates.iter().map(line).collect();
        let cost = |candidate: &_| estimates.iter().position(|e| e.candidate == *candidate).and_then(|i| costs.get(i).copied().flatten());
        let page_bytes = before.map_or(PLAIN_BYTES, |before| before.candidate.page_bytes);
        let choice = choose_format(&estimates, page_bytes, cost);
        let too_long = || "Its keys are too long for every page size.".to_owned();
        let advice = choice.as_ref().map_or_else(too_long, |choice| choice.reason.clone());
        IndexesEstimate { name, columns, unique, duplicates: 0, now: now.map(|(now, _)| now), lines, choice, advice }
    }
}

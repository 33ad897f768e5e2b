//! All methods and page sizes at once: each record is encoded once for each encoder, and counted into the pages of every candidate.
//!
//! Invariant: what is stored of a row is what `BulkLoader` stores: both ask a `RecordEncoder`.

use super::estimate::{Correction, TableEstimate};
use super::packer::{TableOptions, TablePacker};
use crate::Result;
use pagefold_codec::block::{pack_value, value_tag};
use pagefold_codec::page::PageSchema;
use pagefold_codec::row::RowDictionary;
use pagefold_format::data::forms::{RecordEncoder, plain_len};
use pagefold_format::data::{ColumnPacker, STORED_BYTES_MIN, string_codes};
use pagefold_types::{ColumnValue, CompactLayout, LargeValueRef, Rid, RowLayout, ValueError, ValueRef};

/// One method and page size.
struct Candidate {
    method: &'static str,
    encoder: Option<usize>,
    dictionary: bool,
    packer: TablePacker,
    /// Where rows lie by column.
    columns: Option<Box<ColumnPacker>>,
    record_bytes: u64,
    compressed_rows: u64,
    rid: Rid,
    slot_max: u16,
    /// Its pages take every row so far.
    fits: bool,
}

/// A value that goes to pages of its own.
#[derive(Clone, Copy)]
struct MovedValue {
    column: usize,
    raw_bytes: usize,
    stored_bytes: usize,
    tag: u64,
}

/// An encoder, and what its output is to be scaled by.
struct ScaledEncoder {
    encoder: RecordEncoder,
    scale: f64,
    /// Bytes that rounding has left over.
    carry: f64,
}

/// Estimates a table.
pub struct TableEstimator<'l> {
    layout: &'l RowLayout,
    keep: Vec<usize>,
    encoders: Vec<ScaledEncoder>,
    candidates: Vec<Candidate>,
    /// Stored bytes of the current record, by encoder; the last one: plain.
    lengths: Vec<(usize, bool)>,
    limit_min: usize,
    sampled: bool,
}

impl<'l> TableEstimator<'l> {
    /// For records of this layout. Columns in `keep` (those of the primary key) are never moved out of a record.
    #[must_use]
    pub fn new(layout: &'l RowLayout, keep: &[usize]) -> TableEstimator<'l> {
        TableEstimator {
            layout,
            keep: keep.to_vec(),
            encoders: Vec::new(),
            candidates: Vec::new(),
            lengths: Vec::new(),
            limit_min: usize::MAX,
            sampled: false,
        }
    }

    /// Makes an encoder known; gives its number.
    pub fn add_encoder(&mut self, encoder: RecordEncoder) -> usize {
        self.encoders.push(ScaledEncoder { encoder, scale: 1.0, carry: 0.0 });
        self.encoders.len() - 1
    }

    /// From now on what an encoder gives counts `scale` times its length: for a dictionary that stands for another one, which nobody has trained yet.
    ///
    /// # Panics
    /// When there is no such encoder.
    pub fn set_scale(&mut self, encoder: usize, scale: f64) {
        self.encoders[encoder].scale = scale;
    }

    /// Adds a candidate; gives its number. `encoder`: its number, and the bytes of its dictionary's serial form if it has one.
    pub fn add(&mut self, method: &'static str, options: TableOptions, encoder: Option<(usize, Option<usize>)>) -> usize {
        let dictionary = encoder.and_then(|(_, bytes)| bytes);
        self.limit_min = self.limit_min.min(options.record_bytes_max());
        let packer = TablePacker::new(options, dictionary);
        self.candidates.push(Candidate {
            method,
            encoder: encoder.map(|(number, _)| number),
            dictionary: dictionary.is_some(),
            packer,
            columns: None,
            record_bytes: 0,
            compressed_rows: 0,
            rid: Rid::MIN,
            slot_max: 0,
            fits: true,
        });
        self.candidates.len() - 1
    }

    /// Adds a candidate whose rows lie by column, with a dictionary of strings if it has one; gives its number.
    pub fn add_columns(&mut self, method: &'static str, options: TableOptions, dictionary: Option<&RowDictionary>) -> usize {
        let number = self.add(method, options, None);
        let layouts = (CompactLayout::new(self.layout.clone()), PageSchema::new(self.layout));
        let codes = dictionary.map(|dictionary| (1, string_codes(dictionary)));
        let candidate = &mut self.candidates[number];
        candidate.packer = TablePacker::new(options, dictionary.map(|dictionary| dictionary.to_bytes().len()));
        candidate.dictionary = dictionary.is_some();
        candidate.columns = Some(Box::new(ColumnPacker::new(layouts, codes, options.page_bytes, options.pctfree, options.maxrows)));
        number
    }

    /// The rows that follow are another cluster of a sample.
    pub fn begin_cluster(&mut self) {
        self.sampled = true;
        self.candidates.iter_mut().for_each(|candidate| candidate.packer.shares.begin());
    }

    /// The RID of the last row in a candidate; where rows lie by column, of the last whose page is complete.
    ///
    /// # Panics
    /// When there is no such candidate.
    #[must_use]
    pub fn rid(&self, candidate: usize) -> Rid {
        self.candidates[candidate].rid
    }

    /// The largest slot of all rows in a candidate.
    ///
    /// # Panics
    /// When there is no such candidate.
    #[must_use]
    pub fn slot_max(&self, candidate: usize) -> u16 {
        self.candidates[candidate].slot_max
    }

    /// Where a candidate comes in what [`finish`](Self::finish) gives; `None` when some row does not fit it.
    ///
    /// # Panics
    /// When there is no such candidate.
    #[must_use]
    pub fn place(&self, candidate: usize) -> Option<usize> {
        let before = self.candidates[..candidate].iter().filter(|candidate| candidate.fits).count();
        self.candidates[candidate].fits.then_some(before)
    }

    /// Rows on a page of a candidate, on average so far; before it has a page, all rows.
    ///
    /// # Panics
    /// When there is no such candidate.
    #[must_use]
    pub fn page_rows(&self, candidate: usize) -> f64 {
        let packer = &self.candidates[candidate].packer;
        packer.rows as f64 / packer.data_pages().max(1) as f64
    }

    /// Adds a row by its record. It may be of any length that a page of 32 KB takes; for a candidate whose pages are smaller, values are moved out. It holds no large values.
    ///
    /// # Errors
    /// When the record is damaged, or cannot be made short enough.
    pub fn push(&mut self, record: &[u8]) -> Result<()> {
        if record.len() <= self.limit_min {
            self.measure(record);
            for candidate in &mut self.candidates {
                let (stored, compressed) = self.lengths[candidate.encoder.unwrap_or(self.encoders.len())];
                candidate.take(record, stored, compressed);
            }
            return Ok(());
        }
        let values = self.layout.decode(record)?;
        let values: Vec<ValueRef<'_>> =
            values.into_iter().map(|value| if let ColumnValue::Value(value) = value { value } else { ValueRef::Null }).collect();
        self.push_values(&values)
    }

    /// Adds a row by its values, however wide.
    ///
    /// # Errors
    /// When values do not fit their columns, or the row cannot be made narrow enough for any candidate. One for which it cannot is none from now on.
    pub fn push_values(&mut self, values: &[ValueRef<'_>]) -> Result<()> {
        let mut record = Vec::new();
        let mut moved: Vec<MovedValue> = Vec::new();
        for i in 0..self.candidates.len() {
            record.clear();
            let options = *self.candidates[i].packer.options();
            let large = match self.layout.plan_large(values, options.record_bytes_max(), &self.keep) {
                Err(error @ ValueError::TooWide { .. }) => {
                    self.candidates[i].fits = false;
                    if self.candidates.iter().any(|candidate| candidate.fits) {
                        continue;
                    }
                    return Err(error.into());
                }
                planned => planned?,
            };
            let mut columns: Vec<ColumnValue<'_>> = values.iter().map(|value| ColumnValue::Value(*value)).collect();
            for column in large {
                let value = match moved.iter().find(|value| value.column == column) {
                    Some(value) => *value,
                    None => {
                        let bytes = self.layout.large_bytes(column, values[column])?;
                        let stored = pack_value(&bytes);
                        let value = MovedValue { column, raw_bytes: bytes.len(), stored_bytes: stored.len(), tag: value_tag(&stored) };
                        moved.push(value);
                        value
                    }
                };
                let (partition, first_page) = self.candidates[i].packer.large_value(value.stored_bytes);
                let (raw_bytes, tag) = (value.raw_bytes as u32, value.tag);
                columns[column] = ColumnValue::Large(LargeValueRef { first_page, raw_bytes, partition, tag });
            }
            self.layout.encode_columns(&columns, &mut record)?;
            let encoder = self.candidates[i].encoder;
            let (stored, compressed) = self.stored_len(encoder, &record);
            self.candidates[i].take(&record, stored, compressed);
        }
        Ok(())
    }

    fn stored_len(&mut self, encoder: Option<usize>, record: &[u8]) -> (usize, bool) {
        encoder.map_or_else(|| (plain_len(record), false), |number| self.encoders[number].stored_len(record))
    }

    fn measure(&mut self, record: &[u8]) {
        let mut lengths = std::mem::take(&mut self.lengths);
        lengths.clear();
        lengths.extend((0..self.encoders.len()).map(|number| self.stored_len(Some(number), record)));
        lengths.push(self.stored_len(None, record));
        self.lengths = lengths;
    }

    /// What came out, by candidate in the order they were added, without those that some row does not fit. All rows were pushed.
    #[must_use]
    pub fn finish(self) -> Vec<TableEstimate> {
        debug_assert!(!self.sampled);
        self.candidates
            .into_iter()
            .filter(|candidate| candidate.fits)
            .map(Candidate::complete)
            .map(|c| TableEstimate::exact(c.method, c.dictionary, c.record_bytes, c.compressed_rows, &c.packer))
            .collect()
    }

    /// What the clusters pushed say about a table of `rows` rows in `clusters` clusters like these; `corrections` by candidate. Without those that some row does not fit.
    #[must_use]
    pub fn finish_sample(self, rows: u64, clusters: f64, corrections: &[Correction]) -> Vec<TableEstimate> {
        self.candidates
            .into_iter()
            .zip(corrections.iter().copied().chain(std::iter::repeat(Correction::default())))
            .filter(|(candidate, _)| candidate.fits)
            .map(|(c, correction)| {
                let mut c = c.complete();
                c.packer.end_sample();
                TableEstimate::of_sample(
                    (c.method, c.dictionary),
                    (c.record_bytes, c.compressed_rows),
                    &c.packer,
                    rows,
                    clusters,
                    correction,
                )
            })
            .collect()
    }
}

impl ScaledEncoder {
    #[inline]
    fn stored_len(&mut self, record: &[u8]) -> (usize, bool) {
        let (length, compressed) = self.encoder.stored_len(record);
        if self.scale == 1.0 || !compressed {
            return (length, compressed);
        }
        let scaled = length as f64 * self.scale + self.carry;
        let whole = (scaled as usize).clamp(STORED_BYTES_MIN, plain_len(record));
        self.carry = (scaled - whole as f64).clamp(-1.0, 1.0);
        (whole, true)
    }
}

impl Candidate {
    #[inline]
    fn take(&mut self, record: &[u8], stored_bytes: usize, compressed: bool) {
        self.record_bytes += record.len() as u64;
        let Some(columns) = &mut self.columns else {
            self.rid = self.packer.push(stored_bytes);
            self.slot_max = self.slot_max.max(self.rid.slot());
            self.compressed_rows += u64::from(compressed);
            return;
        };
        // Records that were made here, or have been read: of the layout.
        if columns.push(record).is_ok() {
            self.put_pages(false);
        }
    }

    fn put_pages(&mut self, last: bool) {
        let Some(columns) = &mut self.columns else { return };
        while let Some(page) = columns.next_page(last) {
            self.rid = self.packer.push_page(page);
            self.slot_max = self.slot_max.max(self.rid.slot());
            self.compressed_rows += if page.columns { page.rows as u64 } else { 0 };
            columns.take(page.rows);
        }
    }

    /// With the rows of the last pages.
    fn complete(mut self) -> Candidate {
        self.put_pages(true);
        self
    }
}

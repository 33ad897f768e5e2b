//! Rows that a dictionary is trained on.
//!
//! Invariant: deterministic, so that a full estimate equals the load.

use super::super::attributes::Method;
use super::super::table::Table;
use super::super::{DataPages, RowBuffer};
use super::sampler::Sampler;
use super::saving::Saving;
use crate::Result;
use crate::data_set::DataSet;
use crate::pool::Access;
use pagefold_codec::page::{PageEncoder, PageSchema};
use pagefold_codec::row::{
    Dictionary, DictionaryChoice, DictionaryType, RowDictionary, RowSample, TrainOptions, train, train_row_dictionary,
};
use pagefold_format::data::forms::RecordEncoder;
use pagefold_format::data::{DataPage, PageFill, Stored, area_encoder, row_space, string_codes};
use pagefold_types::RowLayout;
use std::sync::Arc;

/// Rows in a sample, in clusters spread over the source.
pub const SAMPLE_ROWS: u64 = 64 * 1024;
/// Bytes of records in a sample, at most.
pub const SAMPLE_BYTES: usize = 8 << 20;
/// Rows of the areas that a dictionary for pages by column is tried on.
const AREA_ROWS: usize = 500;
/// Distinct strings of a page hold less to learn than whole rows, and strings are a part of it only: on LINEITEM a third of the work for 0.2 % more pages at most.
const COLUMN_TRAINING: TrainOptions = TrainOptions { merge_bytes: 1 << 19, refine_bytes: 1 << 20, refine_rounds: 1 };

/// Records of a sample, one behind the other.
#[derive(Clone, Debug, Default)]
pub struct SampledRecords {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl SampledRecords {
    /// Adds a record. Who adds them sees to it that they do not become too many.
    pub(super) fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.ends.push(self.bytes.len() as u32);
    }

    /// Bytes of the records.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Records, evenly taken, of about so many bytes at most.
    pub(super) fn limited(&self, bytes: usize) -> SampledRecords {
        let step = self.bytes.len().div_ceil(bytes).max(1);
        self.iter().step_by(step).collect()
    }

    /// Of about so many bytes of the records at most: runs of `run_bytes`, evenly taken.
    pub(super) fn runs(&self, bytes: usize, run_bytes: usize) -> impl Iterator<Item = &[u8]> {
        let step = self.bytes.len().div_ceil(bytes).max(1);
        let starts = std::iter::once(0).chain(self.ends.iter().map(|end| *end as usize));
        starts.zip(self.iter()).filter(move |(start, _)| (start / run_bytes).is_multiple_of(step)).map(|(_, record)| record)
    }

    /// The first records, and the rest: one in k of them.
    pub(super) fn split(&self, k: usize) -> (SampledRecords, SampledRecords) {
        let first = self.len() - self.len() / k;
        (self.iter().take(first).collect(), self.iter().skip(first).collect())
    }

    /// Adds as many bytes of records, evenly taken from others.
    pub(super) fn mix(&mut self, others: &SampledRecords) {
        for record in others.limited(self.bytes.len().max(1)).iter() {
            self.push(record);
        }
    }

    /// Adds records; of both, fewer when they would be more than so many bytes.
    pub(super) fn extend(&mut self, others: &SampledRecords, bytes_max: usize) {
        while self.bytes.len() + others.bytes.len() > bytes_max && !self.is_empty() {
            self.thin();
        }
        others.iter().for_each(|record| self.push(record));
    }

    /// Lets go of every second record, the second first.
    pub(super) fn thin(&mut self) {
        let (mut start, mut length, mut kept) = (0, 0, 0);
        for number in 0..self.ends.len() {
            let end = self.ends[number] as usize;
            if number.is_multiple_of(2) {
                self.bytes.copy_within(start..end, length);
                length += end - start;
                self.ends[kept] = length as u32;
                kept += 1;
            }
            start = end;
        }
        self.bytes.truncate(length);
        self.ends.truncate(kept);
    }

    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// None?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The records.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|end| *end as usize));
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end as usize])
    }

    /// Trains the dictionary of a method, and keeps it if on pages that are filled so it saves more pages of `rows_total` rows like these than it takes.
    #[must_use]
    pub fn train(&self, method: Method, layout: &RowLayout, rows_total: u64, fill: PageFill) -> Option<RowDictionary> {
        self.train_any(method, layout).filter(|dictionary| Saving::new(self, method, layout, dictionary).pays(rows_total, fill))
    }

    /// The dictionary that [`Self::train`] trains, whether it pays or not.
    #[must_use]
    pub fn train_any(&self, method: Method, layout: &RowLayout) -> Option<RowDictionary> {
        match method {
            Method::Page => self.column_dictionary(layout),
            method => self.dictionary(&TrainOptions::default(), method.dictionary_type()?),
        }
    }

    /// Bytes that the records take under a method with this dictionary, slots included.
    pub(super) fn stored_bytes(&self, method: Method, layout: &RowLayout, dictionary: &RowDictionary) -> u64 {
        if method == Method::Page {
            return self.areas(area_encoder(PageSchema::new(layout), Some(string_codes(dictionary))), |_| ());
        }
        let encoder = RecordEncoder::codes(1, dictionary);
        self.iter().map(|record| row_space(encoder.stored_len(record).0) as u64).sum()
    }

    /// Trains a dictionary for the strings of pages by column; `None` where there are none.
    fn column_dictionary(&self, layout: &RowLayout) -> Option<RowDictionary> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        self.areas(area_encoder(PageSchema::new(layout), None), |encoder| encoder.sample_strings(&mut bytes, &mut ends));
        let sample = RowSample::new(&bytes, &ends).ok().filter(|sample| !sample.is_empty())?;
        Some(RowDictionary::Fixed(train(&sample, &COLUMN_TRAINING)))
    }

    /// Bytes of the records in areas of a few hundred each.
    fn areas(&self, mut encoder: PageEncoder, mut visit: impl FnMut(&PageEncoder)) -> u64 {
        let mut bytes = 0;
        let mut records = self.iter().peekable();
        while let Some(record) = records.next() {
            // Records come from pages and packers: they are of the layout.
            let _ = encoder.push(record);
            if encoder.rows() > 0 && (encoder.rows() == AREA_ROWS || records.peek().is_none()) {
                visit(&encoder);
                bytes += encoder.len_of(encoder.rows()) as u64;
                encoder.clear();
            }
        }
        bytes
    }

    /// Trains a dictionary; `None` without rows. One of type H only where that is smaller.
    #[must_use]
    pub fn dictionary(&self, options: &TrainOptions, kind: DictionaryType) -> Option<RowDictionary> {
        let sample = RowSample::new(&self.bytes, &self.ends).ok()?;
        (!sample.is_empty()).then(|| train_row_dictionary(&sample, options, choice(kind)))
    }

    /// A dictionary with the tokens of another one.
    #[must_use]
    pub fn dictionary_of(&self, tokens: &Dictionary, options: &TrainOptions, kind: DictionaryType) -> Option<RowDictionary> {
        let sample = RowSample::new(&self.bytes, &self.ends).ok()?;
        (!sample.is_empty()).then(|| RowDictionary::of_tokens(tokens.clone(), &sample, options, choice(kind)))
    }
}

impl<'a> FromIterator<&'a [u8]> for SampledRecords {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(records: I) -> SampledRecords {
        let mut sample = SampledRecords::default();
        records.into_iter().for_each(|record| sample.push(record));
        sample
    }
}

fn choice(kind: DictionaryType) -> DictionaryChoice {
    match kind {
        DictionaryType::Fixed => DictionaryChoice::Fixed,
        DictionaryType::Huffman => DictionaryChoice::Smaller,
    }
}

impl Table {
    /// Pages of a sample: every k-th of each partition.
    fn sampled_pages(&self) -> impl Iterator<Item = (u16, &Arc<DataSet>, Vec<u32>)> {
        let step = self.row_count().div_ceil(SAMPLE_ROWS).max(1) as usize;
        let pages = move |data_set: &DataSet| data_set.data_page_numbers().into_iter().step_by(step).collect();
        self.data_sets().enumerate().map(move |(partition, data_set)| (partition as u16, data_set, pages(data_set)))
    }

    /// A sample of the rows for a dictionary.
    ///
    /// # Errors
    /// When a page is damaged.
    pub fn sample_records(&self) -> Result<SampledRecords> {
        let mut sampler = Sampler::default();
        let pages = self.sampled_pages().flat_map(|(partition, _, pages)| pages.into_iter().map(move |page| (partition, page)));
        self.visit_newest(DataPages::from(pages.collect::<Vec<_>>()), |_, record| {
            sampler.push(record);
            Ok::<_, crate::Error>(())
        })?;
        Ok(sampler.into_sample())
    }

    /// Samples of the rows of some versions, and what part of the sampled rows each is.
    pub(super) fn samples_of(&self, versions: &[u16]) -> Result<Vec<(SampledRecords, f64)>> {
        let mut samples: Vec<(Sampler, f64)> = versions.iter().map(|_| (Sampler::default(), 0.0)).collect();
        let (mut rows, mut buffer) = (0.0, RowBuffer::default());
        for (_, data_set, pages) in self.sampled_pages() {
            for number in pages {
                let Some(page) = self.data_page(data_set, number, Access::Random)? else { continue };
                let view = DataPage::new(&page);
                for row in (0..view.slot_count()).filter_map(|slot| view.row(slot)) {
                    let stored = Stored::parse(row, view.dictionary_version()).map_err(|e| data_set.corrupt(number, e))?;
                    let (Stored::Home(body) | Stored::Away { body, .. } | Stored::Hosted { body, .. }) = stored else { continue };
                    rows += 1.0;
                    let Some(at) = versions.iter().position(|version| body.dictionary() == Some(*version)) else { continue };
                    samples[at].1 += 1.0;
                    self.decode(data_set, number, body, &mut buffer, |record| samples[at].0.push(record))?;
                }
            }
        }
        Ok(samples.into_iter().map(|(sampler, count)| (sampler.into_sample(), count / f64::max(rows, 1.0))).collect())
    }
}

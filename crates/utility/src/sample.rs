//! The sample a dictionary is trained on, and whether it pays. LOAD, REORG and the estimator share this.
//!
//! Invariant: deterministic for a given source, so that a full estimate equals the load.

use crate::Result;
use pagefold_codec::page::{PageEncoder, PageSchema};
use pagefold_codec::row::{
    Dictionary, DictionaryChoice, DictionaryType, RowDictionary, RowSample, TrainOptions, train, train_row_dictionary,
};
use pagefold_engine::table_space::Method;
use pagefold_format::chain;
use pagefold_format::data::forms::{RecordEncoder, plain_len};
use pagefold_format::data::{area_encoder, row_space};
use pagefold_interchange::{Packer, Source, TableSchema};
use pagefold_types::{PackedRow, PackedRows, RowLayout};

/// Rows in the sample, in clusters spread over the source.
pub const SAMPLE_ROWS: u64 = 64 * 1024;
/// Bytes of records in the sample, at most.
pub const SAMPLE_BYTES: usize = 8 << 20;
/// Rows of the areas that a dictionary for pages by column is tried on.
const AREA_ROWS: usize = 500;
const SAMPLE_SEED: u64 = 0x7061_6765_666F_6C64;

/// Records of a sample, one behind the other.
#[derive(Clone, Debug, Default)]
pub struct SampledRecords {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl SampledRecords {
    /// Adds a record; false when the sample is full.
    pub fn push(&mut self, record: &[u8]) -> bool {
        if self.bytes.len() + record.len() > SAMPLE_BYTES {
            return false;
        }
        self.bytes.extend_from_slice(record);
        self.ends.push(self.bytes.len() as u32);
        true
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

    /// Trains the dictionary of a method, and keeps it if for `rows_total` rows like these it saves more pages of `page_bytes` than it takes.
    #[must_use]
    pub fn train(&self, method: Method, layout: &RowLayout, rows_total: u64, page_bytes: usize) -> Option<RowDictionary> {
        let kind = method.dictionary_type()?;
        let (dictionary, saving) = if method == Method::Page {
            self.column_dictionary(layout)?
        } else {
            let dictionary = self.dictionary(&TrainOptions::default(), kind)?;
            let saving = self.saving(&dictionary);
            (dictionary, saving)
        };
        saving.pays(rows_total, page_bytes).then_some(dictionary)
    }

    /// Trains a dictionary for the strings of pages by column; `None` where there are none.
    pub(crate) fn column_dictionary(&self, layout: &RowLayout) -> Option<(RowDictionary, Saving)> {
        let schema = PageSchema::new(layout);
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        let plain_bytes = self.areas(area_encoder(schema.clone(), None), |encoder| encoder.sample_strings(&mut bytes, &mut ends));
        let sample = RowSample::new(&bytes, &ends).ok().filter(|sample| !sample.is_empty())?;
        let dictionary = RowDictionary::Fixed(train(&sample, &TrainOptions::default()));
        let compressed_bytes = self.areas(area_encoder(schema, Some(&dictionary)), |_| ());
        let dictionary_bytes = dictionary.to_bytes().len();
        Some((dictionary, Saving { rows: self.len() as u64, plain_bytes, compressed_bytes, dictionary_bytes }))
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

    /// What a dictionary saves of these rows.
    pub(crate) fn saving(&self, dictionary: &RowDictionary) -> Saving {
        let encoder = RecordEncoder::codes(1, dictionary);
        let mut saving = Saving { rows: self.len() as u64, dictionary_bytes: dictionary.to_bytes().len(), ..Saving::default() };
        for record in self.iter() {
            saving.plain_bytes += row_space(plain_len(record)) as u64;
            saving.compressed_bytes += row_space(encoder.stored_len(record).0) as u64;
        }
        saving
    }
}

/// What a dictionary saves of the rows of a sample, slots included.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Saving {
    rows: u64,
    plain_bytes: u64,
    compressed_bytes: u64,
    dictionary_bytes: usize,
}

impl Saving {
    /// Does the dictionary save more pages of `page_bytes` than it takes, for `rows_total` rows like these?
    pub(crate) fn pays(&self, rows_total: u64, page_bytes: usize) -> bool {
        let scale = rows_total.max(self.rows) as f64 / self.rows as f64;
        let saved_pages = self.plain_bytes.saturating_sub(self.compressed_bytes) as f64 * scale / page_bytes as f64;
        saved_pages > chain::pages_needed(self.dictionary_bytes, page_bytes) as f64
    }

    /// The page sizes for which it pays.
    pub(crate) fn paying(&self, rows_total: u64, page_sizes: &[usize]) -> Vec<usize> {
        page_sizes.iter().copied().filter(|size| self.pays(rows_total, *size)).collect()
    }
}

fn choice(kind: DictionaryType) -> DictionaryChoice {
    match kind {
        DictionaryType::Fixed => DictionaryChoice::Fixed,
        DictionaryType::Huffman => DictionaryChoice::Smaller,
    }
}

/// Samples a source for a dictionary.
///
/// # Errors
/// When the source cannot be read.
pub fn sample_source(source: &mut dyn Source, table: &TableSchema, layout: &RowLayout, record_bytes_max: usize) -> Result<SampledRecords> {
    let packer = Packer::new(table, layout, (0..layout.column_count()).collect(), record_bytes_max);
    let mut sample = SampledRecords::default();
    let mut rows = PackedRows::default();
    for batch in source.sample(SAMPLE_ROWS, SAMPLE_SEED)? {
        rows.clear();
        packer.pack(&batch?, &mut rows)?;
        for row in rows.iter() {
            if let PackedRow::Record(record) = row
                && !sample.push(record)
            {
                return Ok(sample);
            }
        }
    }
    Ok(sample)
}

//! Forms in which records are stored, and bringing records into them.
//!
//! | Bits of a form | What |
//! |---|---|
//! | 0-9 | how: 0 the record itself; 1 to 1,022 codes of the dictionary of this version; 1,023 the compact record |
//! | 10-14 | the layout that the record has ([altering tables](../../../../docs/altering.md)); of a table that was never altered 0 |
//! | 15 | 12-bit codes of the tokens of a dictionary whose own codes are Huffman codes |
//!
//! The compact record of layout 0 alone is written 0x7FFF: it was there before there were layouts.
//!
//! Invariants:
//! - LOAD, transactions and the estimator ask this file what is stored of a record, so they agree to the byte;
//! - what is read of a row is a record of the layout that whoever reads it has, whatever layout the stored one is of.

use super::column_part::ColumnPart;
use super::stored::{Body, OTHER_OVERHEAD, STORED_BYTES_MIN, Stored};
use crate::FormatError;
use pagefold_codec::page::{ColumnArea, PageSchema};
use pagefold_codec::row::{Coding, DECODE_SLACK, RowDictionary, RowEncoder};
use pagefold_types::{CompactColumns, CompactLayout, RowConversion, RowLayout};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The form of compact records of layout 0.
pub const COMPACT: u16 = 0x7FFF;

/// Set in the form of 12-bit codes that are not the dictionary's own.
const SHORT: u16 = 0x8000;

/// Bits of a form that say how the record is stored.
const HOW_BITS: u32 = 10;
const HOW: u16 = (1 << HOW_BITS) - 1;
/// How: as compact record.
const AS_COMPACT: u16 = HOW;

/// The largest version of a dictionary.
pub const DICTIONARY_VERSION_MAX: u16 = AS_COMPACT - 1;

/// The largest number of a layout: forms of the next would be taken for [`COMPACT`].
pub const LAYOUT_MAX: u8 = (COMPACT >> HOW_BITS) as u8 - 1;

/// The dictionary version of a form; `None` when it needs none.
#[must_use]
pub fn dictionary_of(form: u16) -> Option<u16> {
    match form & HOW {
        0 | AS_COMPACT => None,
        version => Some(version),
    }
}

/// The layout of a form's records.
#[inline]
#[must_use]
pub fn layout_of(form: u16) -> u8 {
    match form & !SHORT {
        COMPACT => 0,
        form => (form >> HOW_BITS) as u8,
    }
}

/// The form of records of a layout that are stored as they are.
#[inline]
#[must_use]
pub fn record_form(layout: u8) -> u16 {
    u16::from(layout) << HOW_BITS
}

/// A record of a layout, as it is.
#[must_use]
pub fn record_body(layout: u8, record: &[u8]) -> Body<'_> {
    body(record_form(layout), record, record)
}

/// What an area says of its dictionary (0: none) and layout.
#[must_use]
pub fn area_form(layout: u8, dictionary: u16) -> u16 {
    record_form(layout) | dictionary
}

fn form_of(version: u16, coding: Coding) -> u16 {
    match coding {
        Coding::Own => version,
        Coding::Short => version | SHORT,
    }
}

/// How records are stored, if not as they are.
#[derive(Debug)]
enum How {
    Record,
    Compact(CompactLayout),
    /// Codes of a dictionary.
    Codes {
        version: u16,
        encoder: Box<RowEncoder>,
    },
}

/// Brings records of one layout into the form of a table.
#[derive(Debug)]
pub struct RecordEncoder {
    layout: u8,
    how: How,
}

impl RecordEncoder {
    /// For codes of a dictionary.
    #[must_use]
    pub fn codes(version: u16, dictionary: &RowDictionary) -> RecordEncoder {
        RecordEncoder { layout: 0, how: How::Codes { version, encoder: Box::new(RowEncoder::new(dictionary)) } }
    }

    /// For compact records.
    #[must_use]
    pub fn compact(layout: CompactLayout) -> RecordEncoder {
        RecordEncoder { layout: 0, how: How::Compact(layout) }
    }

    /// For records as they are. Those of layout 0 need none.
    #[must_use]
    pub fn records() -> RecordEncoder {
        RecordEncoder { layout: 0, how: How::Record }
    }

    /// The same for records of another layout of the table than the first.
    #[must_use]
    pub fn of_layout(mut self, number: u8) -> RecordEncoder {
        self.layout = number;
        self
    }

    /// The form that most records get: that of the pages.
    #[must_use]
    pub fn page_form(&self) -> u16 {
        match &self.how {
            How::Record => record_form(self.layout),
            How::Compact(_) if self.layout == 0 => COMPACT,
            How::Compact(_) => record_form(self.layout) | AS_COMPACT,
            How::Codes { version, .. } => record_form(self.layout) | version,
        }
    }

    fn encode(&self, record: &[u8], out: &mut Vec<u8>) -> Option<(usize, u16)> {
        match &self.how {
            How::Record => None,
            How::Compact(layout) => layout.compact(record, out).map(|len| (len, self.page_form())),
            How::Codes { encoder, .. } => {
                encoder.encode(record, OTHER_OVERHEAD, out).map(|(len, coding)| (len, form_of(self.page_form(), coding)))
            }
        }
    }

    /// Appends what is to be stored of a record to `out`, and returns its form. 0, and nothing appended: the record as it is, because that is not larger, and its layout is 0.
    pub fn append(&self, record: &[u8], out: &mut Vec<u8>) -> u16 {
        let start = out.len();
        let encoded = self.encode(record, out);
        self.taken(record, encoded, start, out)
    }

    /// As [`append`](Self::append), for a record that differs little from one that is stored so.
    pub fn append_changed(&self, before: &[u8], stored: Body<'_>, record: &[u8], out: &mut Vec<u8>) -> u16 {
        let (How::Codes { encoder, .. }, Body::Compressed { version: form, codes }) = (&self.how, stored) else {
            return self.append(record, out);
        };
        if form & !SHORT != self.page_form() {
            return self.append(record, out);
        }
        let coding = if form == self.page_form() { Coding::Own } else { Coding::Short };
        let start = out.len();
        let encoded = encoder.reencode((before, codes, coding), record, OTHER_OVERHEAD, out);
        self.taken(record, encoded.map(|(len, coding)| (len, form_of(self.page_form(), coding))), start, out)
    }

    /// Bytes that a record takes in its slot on a page of this form, and whether it is brought into another form than its own.
    #[must_use]
    pub fn stored_len(&self, record: &[u8]) -> (usize, bool) {
        let encoded = match &self.how {
            How::Record => None,
            How::Compact(layout) => layout.compact_len(record).map(|len| (len, self.page_form())),
            How::Codes { encoder, .. } => {
                encoder.encoded_len(record, OTHER_OVERHEAD).map(|(len, coding)| (len, form_of(self.page_form(), coding)))
            }
        };
        let plain = self.plain_len(record);
        match encoded.map(|(len, form)| self.slot_len(len, form)) {
            Some(len) if len < plain => (len, true),
            _ => (plain, false),
        }
    }

    /// Bytes that `len` of a form take in a slot on a page of [this form](Self::page_form).
    fn slot_len(&self, len: usize, form: u16) -> usize {
        let overhead = if form == self.page_form() { 0 } else { OTHER_OVERHEAD };
        STORED_BYTES_MIN.max(overhead + len)
    }

    /// Bytes that a record takes in its slot as it is.
    fn plain_len(&self, record: &[u8]) -> usize {
        match self.layout {
            0 => plain_len(record),
            layout => self.slot_len(record.len(), record_form(layout)),
        }
    }

    /// The form, unless what was appended would take no less than the record: no row is shorter than a forward pointer.
    fn taken(&self, record: &[u8], encoded: Option<(usize, u16)>, start: usize, out: &mut Vec<u8>) -> u16 {
        match encoded.filter(|(len, form)| self.slot_len(*len, *form) < self.plain_len(record)) {
            Some((_, form)) => form,
            None => {
                out.truncate(start);
                if self.layout > 0 {
                    out.extend_from_slice(record);
                }
                record_form(self.layout)
            }
        }
    }
}

/// Bytes that a record takes in its slot as it is.
#[must_use]
pub fn plain_len(record: &[u8]) -> usize {
    Stored::Home(Body::Plain(record)).len(0)
}

/// The body with this form.
#[must_use]
pub fn body<'a>(form: u16, record: &'a [u8], stored: &'a [u8]) -> Body<'a> {
    if form == 0 { Body::Plain(record) } else { Body::Compressed { version: form, codes: stored } }
}

/// Columns that are read without the others.
#[derive(Clone, Debug)]
pub struct WantedColumns {
    /// Ascending.
    columns: Box<[usize]>,
    /// Bytes of a record up to the last of them; `None`: all.
    prefix: Option<usize>,
    /// Those of compact records, where they are integers.
    compact: Option<CompactColumns>,
}

/// How the records of a layout are stored.
#[derive(Clone, Debug)]
struct Shape {
    compact: CompactLayout,
    columns: PageSchema,
}

impl Shape {
    fn new(layout: &RowLayout) -> Shape {
        Shape { compact: CompactLayout::new(layout.clone()), columns: PageSchema::new(layout) }
    }
}

/// The layouts of a table, for who reads its rows in one of them: others may come while he does.
pub trait OtherLayouts: fmt::Debug + Send + Sync {
    /// The layout of this number, and what brings its records into the one of the reader. `None`: there is none.
    fn layout(&self, number: u8) -> Option<(RowLayout, RowConversion)>;
}

/// A layout that rows of a table may have, which is not that of whoever reads them.
#[derive(Clone, Debug)]
struct OtherLayout {
    number: u8,
    shape: Shape,
    conversion: RowConversion,
}

/// Brings stored rows of a table back to records of one layout.
#[derive(Clone, Debug)]
pub struct RecordDecoder {
    shape: Shape,
    /// No record of the table is longer.
    cap: usize,
    /// The number of the layout.
    number: u8,
    source: Option<Arc<dyn OtherLayouts>>,
    /// Those that were met.
    others: Arc<Mutex<Vec<Arc<OtherLayout>>>>,
}

impl RecordDecoder {
    /// For records of this layout on pages of `page_bytes`.
    #[must_use]
    pub fn new(layout: &RowLayout, page_bytes: usize) -> RecordDecoder {
        RecordDecoder { shape: Shape::new(layout), cap: page_bytes, number: 0, source: None, others: Arc::default() }
    }

    /// The same for a table that may have other layouts than this one, which has the number `own`.
    #[must_use]
    pub fn with_others(mut self, own: u8, source: Arc<dyn OtherLayouts>) -> RecordDecoder {
        (self.number, self.source) = (own, Some(source));
        self
    }

    /// The number of its layout.
    #[inline]
    #[must_use]
    pub fn layout(&self) -> u8 {
        self.number
    }

    /// No record that is stored is longer.
    #[must_use]
    pub fn record_bytes_max(&self) -> usize {
        self.cap
    }

    /// How column parts hold the columns.
    #[must_use]
    pub fn columns(&self) -> &PageSchema {
        &self.shape.columns
    }

    /// The same of the rows of another layout.
    ///
    /// # Errors
    /// When there is no such layout.
    pub fn columns_of(&self, layout: u8) -> Result<PageSchema, FormatError> {
        if layout == self.number { Ok(self.shape.columns.clone()) } else { Ok(self.other(layout)?.shape.columns.clone()) }
    }

    /// What is needed to read only these columns. `None` when that is no gain.
    #[must_use]
    pub fn wanted(&self, columns: &[usize]) -> Option<WantedColumns> {
        let layout = self.shape.compact.packed();
        let mut columns = columns.to_vec();
        columns.sort_unstable();
        columns.dedup();
        if columns.last().is_some_and(|last| *last >= layout.column_count()) || columns.len() * 2 > layout.column_count() {
            return None;
        }
        let end = |column: &usize| layout.fixed_span(*column).map(|(at, width)| at + width);
        let bitmap = columns.iter().filter_map(|column| layout.null_bit(*column)).map(|(byte, _)| byte + 1).max().unwrap_or(0);
        let prefix = columns.iter().map(end).try_fold(bitmap, |most, end| Some(most.max(end?)));
        let compact = self.shape.compact.integer_columns(&columns);
        Some(WantedColumns { columns: columns.into(), prefix, compact })
    }

    /// A column part's area, which has rows of this layout. `dictionary` is that of the part's version.
    ///
    /// # Errors
    /// When the area needs a dictionary that is not given, or is of another layout.
    #[inline]
    pub fn area<'a>(&'a self, part: ColumnPart<'a>, dictionary: Option<&'a RowDictionary>) -> Result<ColumnArea<'a>, FormatError> {
        if part.layout() != self.number {
            return Err(FormatError::new(format!("rows by column of layout {}, not {}", part.layout(), self.number)));
        }
        area_of(&self.shape, part, dictionary)
    }

    /// The record of a row: as it lies, or written to the front of `out`, which grows as needed. `dictionary` is that of the [row's version](Body::dictionary).
    ///
    /// # Errors
    /// When there is no such dictionary, or the bytes are no such form.
    #[inline]
    pub fn decode<'r>(&self, body: Body<'r>, dictionary: Option<&RowDictionary>, out: &'r mut Vec<u8>) -> Result<&'r [u8], FormatError> {
        self.decode_columns(body, dictionary, None, out)
    }

    /// As [`decode`](Self::decode); only the columns that are wanted may be read in the record, if that is not all. What is no [`Body::Plain`] of layout 0 is written to the front of `out`.
    ///
    /// # Errors
    /// As `decode`, as far as it has looked.
    #[inline]
    pub fn decode_columns<'r>(
        &self,
        body: Body<'r>,
        dictionary: Option<&RowDictionary>,
        wanted: Option<&WantedColumns>,
        out: &'r mut Vec<u8>,
    ) -> Result<&'r [u8], FormatError> {
        if body.layout() == self.number {
            return self.decode_shape(&self.shape, body, dictionary, wanted, out);
        }
        self.decode_other(body, dictionary, out)
    }

    /// The record of a row in the layout that it is stored in.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_as_stored<'r>(
        &self,
        body: Body<'r>,
        dictionary: Option<&RowDictionary>,
        out: &'r mut Vec<u8>,
    ) -> Result<&'r [u8], FormatError> {
        if body.layout() == self.number {
            return self.decode_shape(&self.shape, body, dictionary, None, out);
        }
        self.decode_shape(&self.other(body.layout())?.shape, body, dictionary, None, out)
    }

    /// What brings records of a layout into compact form.
    ///
    /// # Errors
    /// When there is no such layout.
    pub fn compact_encoder(&self, layout: u8) -> Result<RecordEncoder, FormatError> {
        let compact = if layout == self.number { self.shape.compact.clone() } else { self.other(layout)?.shape.compact.clone() };
        Ok(RecordEncoder::compact(compact).of_layout(layout))
    }

    fn other(&self, layout: u8) -> Result<Arc<OtherLayout>, FormatError> {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = others.iter().find(|other| other.number == layout) {
            return Ok(Arc::clone(other));
        }
        let found = self.source.as_ref().and_then(|source| source.layout(layout));
        let (own, conversion) = found.ok_or_else(|| FormatError::new(format!("a row of layout {layout}, which the table has not had")))?;
        let other = Arc::new(OtherLayout { number: layout, shape: Shape::new(&own), conversion });
        others.push(Arc::clone(&other));
        Ok(other)
    }

    #[cold]
    fn decode_other<'r>(&self, body: Body<'_>, dictionary: Option<&RowDictionary>, out: &'r mut Vec<u8>) -> Result<&'r [u8], FormatError> {
        let other = self.other(body.layout())?;
        let mut stored = Vec::new();
        let record = self.decode_shape(&other.shape, body, dictionary, None, &mut stored)?;
        out.clear();
        let length =
            other.conversion.convert(record, out).map_err(|e| FormatError::new(format!("a record of layout {}: {e}", other.number)))?;
        Ok(&out[..length])
    }

    #[inline]
    fn decode_shape<'r>(
        &self,
        shape: &Shape,
        body: Body<'r>,
        dictionary: Option<&RowDictionary>,
        wanted: Option<&WantedColumns>,
        out: &'r mut Vec<u8>,
    ) -> Result<&'r [u8], FormatError> {
        let length = match body {
            Body::Plain(record) => return Ok(record),
            Body::Compressed { version, codes } => match version & HOW {
                AS_COMPACT if version & SHORT == 0 => {
                    let expanded = match wanted {
                        Some(WantedColumns { compact: Some(columns), .. }) => columns.expand(&shape.compact, codes, out),
                        Some(wanted) => {
                            out.clear();
                            shape.compact.expand_columns(codes, &wanted.columns, out)
                        }
                        None => {
                            out.clear();
                            shape.compact.expand(codes, out)
                        }
                    };
                    expanded.map_err(|e| FormatError::new(format!("compact record: {e}")))?
                }
                0 if version & SHORT == 0 => {
                    out.clear();
                    out.extend_from_slice(codes);
                    codes.len()
                }
                _ => {
                    let dictionary = dictionary.ok_or_else(|| no_dictionary(dictionary_of(version).unwrap_or(0)))?;
                    if out.len() < self.cap + DECODE_SLACK {
                        out.resize(self.cap + DECODE_SLACK, 0);
                    }
                    let coding = if version & SHORT == 0 { Coding::Own } else { Coding::Short };
                    let prefix = wanted.and_then(|wanted| wanted.prefix);
                    let need = prefix.unwrap_or(usize::MAX);
                    let length =
                        dictionary.decode_prefix(coding, codes, out, self.cap, need).map_err(|e| FormatError::new(e.to_string()))?;
                    match prefix {
                        Some(prefix) if length < prefix => return Err(FormatError::new(format!("a record of {length} bytes"))),
                        // Readers ask for all of the fixed part, whatever lies there behind the columns that are wanted.
                        Some(_) => length.max(shape.compact.packed().fixed_len()),
                        None => length,
                    }
                }
            },
            Body::Column { part, row } => {
                let area = area_of(shape, part, dictionary)?;
                if usize::from(row) >= area.rows() {
                    return Err(FormatError::new(format!("row {row} of an area of {}", area.rows())));
                }
                out.clear();
                let record = match wanted {
                    Some(wanted) => area.record_columns(row.into(), &wanted.columns, out),
                    None => area.record(row.into(), out),
                };
                record.map_err(|e| FormatError::new(e.to_string()))?
            }
        };
        if length > self.cap {
            return Err(FormatError::new(format!("a record of {length} bytes, longer than a row can be")));
        }
        Ok(&out[..length])
    }
}

#[inline]
fn area_of<'a>(shape: &'a Shape, part: ColumnPart<'a>, dictionary: Option<&'a RowDictionary>) -> Result<ColumnArea<'a>, FormatError> {
    if part.dictionary() != 0 && dictionary.is_none() {
        return Err(no_dictionary(part.dictionary()));
    }
    Ok(ColumnArea::trusted(&shape.columns, dictionary.map(RowDictionary::tokens), part.area()))
}

fn no_dictionary(version: u16) -> FormatError {
    FormatError::new(format!("a row of dictionary version {version}, which does not exist"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagefold_codec::row::{Dictionary, HuffmanCodes, HuffmanDictionary};
    use pagefold_types::{Column, DataType, Schema, ValueRef};

    /// Of either type: single bytes, and a token of 32.
    fn dictionaries() -> [RowDictionary; 2] {
        let mut tokens: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte]).collect();
        tokens.push(vec![b'x'; 32]);
        tokens.sort();
        let tokens = Dictionary::from_tokens(&tokens).unwrap();
        let counts: Vec<u32> = (0..tokens.token_count() as u32).map(|i| if i % 16 == 8 { 1 << 20 } else { 1 }).collect();
        let huffman = HuffmanDictionary::new(tokens.clone(), HuffmanCodes::from_counts(&counts)).unwrap();
        [RowDictionary::Fixed(tokens), RowDictionary::Huffman(huffman)]
    }

    #[test]
    fn what_is_stored_is_as_long_as_was_said_and_never_longer_than_the_record() {
        let layout = RowLayout::new(&Schema::new(vec![Column::new("text", DataType::Varchar(None), false)]).unwrap()).unwrap();
        let decoder = RecordDecoder::new(&layout, 2048);
        let dictionaries = dictionaries();
        let compact = CompactLayout::new(layout.clone());
        let encoders = dictionaries.iter().map(|dictionary| (RecordEncoder::codes(5, dictionary), Some(dictionary)));
        for (encoder, dictionary) in encoders.chain([(RecordEncoder::compact(compact), None)]) {
            let (mut padded, mut before) = (0, (Vec::new(), 0, Vec::new()));
            for length in 0..200usize {
                let mut record = Vec::new();
                let text = "x".repeat(length / 3 * 2) + &"8".repeat(length % 3);
                layout.encode(&[ValueRef::Text(&text)], &mut record).unwrap();
                let (mut codes, mut changed) = (Vec::new(), Vec::new());
                let form = encoder.append(&record, &mut codes);
                let len = Stored::Home(body(form, &record, &codes)).len(encoder.page_form());
                assert_eq!((len, form != 0), encoder.stored_len(&record), "{length}");
                // Made from the codes of another row it may be longer, but not longer than the record.
                let again = encoder.append_changed(&before.0, body(before.1, &before.0, &before.2), &record, &mut changed);
                for (form, codes) in [(form, &codes), (again, &changed)] {
                    let body = body(form, &record, codes);
                    assert!(Stored::Home(body).len(encoder.page_form()) <= plain_len(&record));
                    assert_eq!(decoder.decode(body, dictionary, &mut Vec::new()).unwrap(), record);
                }
                padded += usize::from(form != 0 && codes.len() < STORED_BYTES_MIN);
                before = (record, form, codes);
            }
            assert!(padded > 0, "{encoder:?}");
        }
    }
}

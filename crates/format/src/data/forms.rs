//! Forms in which records are stored, and bringing records into them.
//!
//! | Form | What the bytes are |
//! |---|---|
//! | 0 | the record itself |
//! | 1 ... | codes of the dictionary of this version |
//! | 0x7FFF | the compact record (method `row`) |
//! | 0x8000 + version | 12-bit codes of the tokens of a dictionary whose own codes are Huffman codes |
//!
//! Invariant: LOAD, transactions and the estimator ask this file what is stored of a record, so they agree to the byte.

use super::column_part::ColumnPart;
use super::stored::{Body, OTHER_OVERHEAD, STORED_BYTES_MIN, Stored};
use crate::FormatError;
use pagefold_codec::page::{ColumnArea, PageSchema};
use pagefold_codec::row::{Coding, DECODE_SLACK, RowDictionary, RowEncoder};
use pagefold_types::{CompactColumns, CompactLayout, RowLayout};

/// The form of compact records.
pub const COMPACT: u16 = 0x7FFF;

/// Set in the form of 12-bit codes that are not the dictionary's own.
const SHORT: u16 = 0x8000;

/// The largest version of a dictionary.
pub const DICTIONARY_VERSION_MAX: u16 = COMPACT - 1;

/// The dictionary version of a form; `None` when it needs none.
#[must_use]
pub fn dictionary_of(form: u16) -> Option<u16> {
    match form & !SHORT {
        0 => None,
        COMPACT => None,
        version => Some(version),
    }
}

fn form_of(version: u16, coding: Coding) -> u16 {
    match coding {
        Coding::Own => version,
        Coding::Short => version | SHORT,
    }
}

/// Brings records into the form of a table.
#[derive(Debug)]
pub enum RecordEncoder {
    /// Compact records.
    Compact(CompactLayout),
    /// Codes of a dictionary.
    Codes {
        /// Its version.
        version: u16,
        /// For it.
        encoder: Box<RowEncoder>,
    },
}

impl RecordEncoder {
    /// For codes of a dictionary.
    #[must_use]
    pub fn codes(version: u16, dictionary: &RowDictionary) -> RecordEncoder {
        RecordEncoder::Codes { version, encoder: Box::new(RowEncoder::new(dictionary)) }
    }

    /// The form that most records get: that of the pages.
    #[must_use]
    pub fn page_form(&self) -> u16 {
        match self {
            RecordEncoder::Compact(_) => COMPACT,
            RecordEncoder::Codes { version, .. } => *version,
        }
    }

    /// Appends what is to be stored of a record to `out`, and returns its form. 0, and nothing appended: the record as it is, because that is not larger.
    pub fn append(&self, record: &[u8], out: &mut Vec<u8>) -> u16 {
        let start = out.len();
        let encoded = match self {
            RecordEncoder::Compact(layout) => layout.compact(record, out).map(|len| (len, COMPACT)),
            RecordEncoder::Codes { version, encoder } => {
                encoder.encode(record, OTHER_OVERHEAD, out).map(|(len, coding)| (len, form_of(*version, coding)))
            }
        };
        self.taken(record, encoded, start, out)
    }

    /// As [`append`](Self::append), for a record that differs little from one that is stored so.
    pub fn append_changed(&self, before: &[u8], stored: Body<'_>, record: &[u8], out: &mut Vec<u8>) -> u16 {
        let (RecordEncoder::Codes { version, encoder }, Body::Compressed { version: form, codes }) = (self, stored) else {
            return self.append(record, out);
        };
        if form & !SHORT != *version {
            return self.append(record, out);
        }
        let coding = if form == *version { Coding::Own } else { Coding::Short };
        let start = out.len();
        let encoded = encoder.reencode((before, codes, coding), record, OTHER_OVERHEAD, out);
        self.taken(record, encoded.map(|(len, coding)| (len, form_of(*version, coding))), start, out)
    }

    /// Bytes that a record takes in its slot on a page of this form, and whether it is brought into another form than its own.
    #[must_use]
    pub fn stored_len(&self, record: &[u8]) -> (usize, bool) {
        let encoded = match self {
            RecordEncoder::Compact(layout) => layout.compact_len(record).map(|len| (len, COMPACT)),
            RecordEncoder::Codes { version, encoder } => {
                encoder.encoded_len(record, OTHER_OVERHEAD).map(|(len, coding)| (len, form_of(*version, coding)))
            }
        };
        let plain = plain_len(record);
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

    /// The form, unless what was appended would take no less than the record: no row is shorter than a forward pointer.
    fn taken(&self, record: &[u8], encoded: Option<(usize, u16)>, start: usize, out: &mut Vec<u8>) -> u16 {
        match encoded.filter(|(len, form)| self.slot_len(*len, *form) < plain_len(record)) {
            Some((_, form)) => form,
            None => {
                out.truncate(start);
                0
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

/// Brings stored rows of a table back to records.
#[derive(Clone, Debug)]
pub struct RecordDecoder {
    compact: CompactLayout,
    columns: PageSchema,
    /// No record of the table is longer.
    cap: usize,
}

impl RecordDecoder {
    /// For records of this layout on pages of `page_bytes`.
    #[must_use]
    pub fn new(layout: &RowLayout, page_bytes: usize) -> RecordDecoder {
        RecordDecoder { compact: CompactLayout::new(layout.clone()), columns: PageSchema::new(layout), cap: page_bytes }
    }

    /// How column parts hold the columns.
    #[must_use]
    pub fn columns(&self) -> &PageSchema {
        &self.columns
    }

    /// What is needed to read only these columns. `None` when that is no gain.
    #[must_use]
    pub fn wanted(&self, columns: &[usize]) -> Option<WantedColumns> {
        let layout = self.compact.packed();
        let mut columns = columns.to_vec();
        columns.sort_unstable();
        columns.dedup();
        if columns.last().is_some_and(|last| *last >= layout.column_count()) || columns.len() * 2 > layout.column_count() {
            return None;
        }
        let end = |column: &usize| layout.fixed_span(*column).map(|(at, width)| at + width);
        let bitmap = columns.iter().filter_map(|column| layout.null_bit(*column)).map(|(byte, _)| byte + 1).max().unwrap_or(0);
        let prefix = columns.iter().map(end).try_fold(bitmap, |most, end| Some(most.max(end?)));
        let compact = self.compact.integer_columns(&columns);
        Some(WantedColumns { columns: columns.into(), prefix, compact })
    }

    /// A column part's area. `dictionary` is that of the part's version.
    ///
    /// # Errors
    /// When the area needs a dictionary that is not given.
    #[inline]
    pub fn area<'a>(&'a self, part: ColumnPart<'a>, dictionary: Option<&'a RowDictionary>) -> Result<ColumnArea<'a>, FormatError> {
        if part.dictionary() != 0 && dictionary.is_none() {
            return Err(no_dictionary(part.dictionary()));
        }
        Ok(ColumnArea::trusted(&self.columns, dictionary.map(RowDictionary::tokens), part.area()))
    }

    /// The record of a row: as it lies, or written to the front of `out`, which grows as needed. `dictionary` is that of the [row's version](Body::dictionary).
    ///
    /// # Errors
    /// When there is no such dictionary, or the bytes are no such form.
    #[inline]
    pub fn decode<'r>(&self, body: Body<'r>, dictionary: Option<&RowDictionary>, out: &'r mut Vec<u8>) -> Result<&'r [u8], FormatError> {
        self.decode_columns(body, dictionary, None, out)
    }

    /// As [`decode`](Self::decode); only the columns that are wanted may be read in the record, if that is not all.
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
        let length = match body {
            Body::Plain(record) => return Ok(record),
            Body::Compressed { version: COMPACT, codes } => {
                let expanded = match wanted {
                    Some(WantedColumns { compact: Some(columns), .. }) => columns.expand(&self.compact, codes, out),
                    Some(wanted) => {
                        out.clear();
                        self.compact.expand_columns(codes, &wanted.columns, out)
                    }
                    None => {
                        out.clear();
                        self.compact.expand(codes, out)
                    }
                };
                expanded.map_err(|e| FormatError::new(format!("compact record: {e}")))?
            }
            Body::Compressed { version, codes } => {
                let dictionary = dictionary.ok_or_else(|| no_dictionary(dictionary_of(version).unwrap_or(0)))?;
                if out.len() < self.cap + DECODE_SLACK {
                    out.resize(self.cap + DECODE_SLACK, 0);
                }
                let coding = if version & SHORT == 0 { Coding::Own } else { Coding::Short };
                let prefix = wanted.and_then(|wanted| wanted.prefix);
                let need = prefix.unwrap_or(usize::MAX);
                let length = dictionary.decode_prefix(coding, codes, out, self.cap, need).map_err(|e| FormatError::new(e.to_string()))?;
                match prefix {
                    Some(prefix) if length < prefix => return Err(FormatError::new(format!("a record of {length} bytes"))),
                    // Readers ask for all of the fixed part, whatever lies there behind the columns that are wanted.
                    Some(_) => length.max(self.compact.packed().fixed_len()),
                    None => length,
                }
            }
            Body::Column { part, row } => {
                let area = self.area(part, dictionary)?;
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
        for (encoder, dictionary) in encoders.chain([(RecordEncoder::Compact(compact), None)]) {
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

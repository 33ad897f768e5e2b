//! Statistics of a table or an index, as RUNSTATS keeps them among the notes of the object.
//!
//! | Offset | Size | Field |
//! |---|---|---|
//! | 0 | 1 | form of the statistics: 1 |
//! | 1 | | attributes |
//!
//! | Tag | Attribute |
//! |---|---|
//! | 2 | when they were gathered: milliseconds since 1970-01-01 UTC |
//! | 4 | pages that were read, pages there were, rows or entries that were read |
//! | 6 | the seed of the sample; not there: everything was read |
//! | 8 | a list: a figure of the table or index: its number, then the figure |
//! | 10 | a list: statistics of a column, which are attributes (below) |
//! | 12 | a list, of an index: how many distinct values its first column has, its first two, and so on: figures |
//!
//! | Tag | Attribute of a column |
//! |---|---|
//! | 2 | id of the column |
//! | 4 | a list: a figure of the column: its number, then the figure |
//! | 6 | least value; 8 greatest value |
//! | 10 | a list: bounds of the histogram, ascending; between two of them lie as many rows |
//! | 12 | a list: a frequent value: its share of the rows, a figure; then the value |
//!
//! A figure is its value, or value, low and high end of its interval: 1 or 3, then as many IEEE 754 numbers of 8 bytes.
//! A value is a key of one ascending column that is not nullable, so values compare as bytes.
//!
//! Invariants:
//! - what is decoded is within its limits: numbers are finite, an interval has its value in it;
//! - what a later version says is kept: all tags are even, and a number of a figure need not be known.

use super::attributes::{Attribute, Attributes, Kept, put, put_number};
use crate::FormatError;
use crate::wire::{Reader, put_varint};

const FORM: u8 = 1;

/// Statistics of an object are at most so long: with all notes of it they fit its definition.
pub const STATISTICS_BYTES_MAX: usize = 128 << 10;

/// Numbers of figures.
pub mod figure {
    /// Of a table: rows. Of an index: RIDs.
    pub const ROWS: u32 = 1;
    /// Pages that hold rows; of an index leaf pages.
    pub const DATA_PAGES: u32 = 2;
    /// All pages in use.
    pub const PAGES: u32 = 3;
    /// Bytes of a record before compression.
    pub const RECORD_BYTES: u32 = 4;
    /// Bytes of a row on its page.
    pub const STORED_BYTES: u32 = 5;
    /// Share of the rows that have moved from home.
    pub const MOVED_SHARE: u32 = 6;
    /// Share of the rows that are compressed.
    pub const COMPRESSED_SHARE: u32 = 7;
    /// Share of the pages with rows that have one.
    pub const PAGES_WITH_ROWS_SHARE: u32 = 8;

    /// Of a column: share of the rows that are NULL.
    pub const NULL_SHARE: u32 = 16;
    /// Bytes of a value that is not NULL.
    pub const VALUE_BYTES: u32 = 17;
    /// Distinct values, NULL apart.
    pub const DISTINCT: u32 = 18;
    /// Rank correlation of the values and where their rows lie.
    pub const CORRELATION: u32 = 19;
    /// Share of the pages that may have values below the least one, or above the greatest.
    pub const BEYOND_SHARE: u32 = 20;
    /// How much the share of rows up to a bound of the histogram is off at most.
    pub const HISTOGRAM_ERROR: u32 = 21;

    /// Of an index: distinct keys.
    pub const KEYS: u32 = 32;
    /// Levels.
    pub const LEVELS: u32 = 33;
    /// Bytes of a key.
    pub const KEY_BYTES: u32 = 34;
    /// Share of the neighbours in key order whose rows lie on one page, or on the next one.
    pub const CLUSTER_RATIO: u32 = 35;
    /// Share of the steps from row to row, in key order, that need a page which is neither the same nor the next.
    pub const SYNCHRONOUS_SHARE: u32 = 36;
}

/// A number, and the interval that has the truth in it. What is known exactly has three equal ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figure {
    /// The best guess.
    pub value: f64,
    /// Not less.
    pub low: f64,
    /// Not more.
    pub high: f64,
}

impl Figure {
    /// A number that is known.
    #[must_use]
    pub fn exact(value: f64) -> Figure {
        Figure { value, low: value, high: value }
    }

    /// A number and its interval, which is made to have it.
    #[must_use]
    pub fn within(value: f64, low: f64, high: f64) -> Figure {
        Figure { value, low: low.min(value), high: high.max(value) }
    }

    /// Is it known?
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.low == self.high
    }

    /// Is a number in the interval?
    #[must_use]
    pub fn contains(&self, number: f64) -> bool {
        // Sums of many numbers are off by their last digits.
        let slack = 1e-9 * number.abs().max(1e-9);
        self.low - slack <= number && number <= self.high + slack
    }

    fn put(&self, out: &mut Vec<u8>) {
        if self.is_exact() {
            out.push(1);
            out.extend_from_slice(&self.value.to_le_bytes());
        } else {
            out.push(3);
            [self.value, self.low, self.high].iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Figure, FormatError> {
        let count = reader.u8()?;
        let mut number = || reader.u64().map(f64::from_bits);
        let figure = match count {
            1 => Figure::exact(number()?),
            3 => Figure { value: number()?, low: number()?, high: number()? },
            _ => return Err(FormatError::new(format!("a figure of {count} numbers"))),
        };
        let is_sound = figure.low.is_finite() && figure.high.is_finite() && figure.low <= figure.value && figure.value <= figure.high;
        if is_sound { Ok(figure) } else { Err(FormatError::new("a figure outside of its interval")) }
    }
}

/// Figures by number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures(Vec<(u32, Figure)>);

impl Figures {
    /// Sets a figure.
    pub fn set(&mut self, number: u32, figure: Figure) {
        match self.0.binary_search_by_key(&number, |(other, _)| *other) {
            Ok(at) => self.0[at].1 = figure,
            Err(at) => self.0.insert(at, (number, figure)),
        }
    }

    /// A figure, if it is there.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<Figure> {
        self.0.binary_search_by_key(&number, |(other, _)| *other).ok().map(|at| self.0[at].1)
    }

    /// All of them, by number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Figure)> + '_ {
        self.0.iter().copied()
    }

    fn put(&self, tag: u32, out: &mut Vec<u8>) {
        for (number, figure) in &self.0 {
            let mut bytes = Vec::with_capacity(30);
            put_varint(&mut bytes, (*number).into());
            figure.put(&mut bytes);
            put(out, tag, &bytes);
        }
    }

    fn take(&mut self, attribute: Attribute<'_>) -> Result<(), FormatError> {
        let mut reader = Reader::new(attribute.bytes);
        let number = reader.varint32()?;
        let figure = Figure::read(&mut reader)?;
        attribute.ends(&reader)?;
        if self.0.last().is_some_and(|(last, _)| *last >= number) {
            return Err(FormatError::new(format!("figure {number} is not behind the one before")));
        }
        self.0.push((number, figure));
        Ok(())
    }
}

/// What was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Pages that were read.
    pub pages_read: u64,
    /// Pages there were to read.
    pub pages: u64,
    /// Rows, or entries, that were looked at.
    pub rows_read: u64,
}

/// Statistics of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnStatistics {
    /// Id of the column.
    pub column: u32,
    /// Its figures.
    pub figures: Figures,
    /// The least value seen.
    pub least: Option<Vec<u8>>,
    /// The greatest.
    pub greatest: Option<Vec<u8>>,
    /// Bounds of the histogram, ascending: between two of them lie as many rows.
    pub bounds: Vec<Vec<u8>>,
    /// Frequent values and their shares of all rows, the most frequent first.
    pub frequent: Vec<(Vec<u8>, Figure)>,
    /// What a later version has said.
    pub kept: Kept,
}

impl ColumnStatistics {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, 2, self.column.into());
        self.figures.put(4, &mut out);
        self.least.iter().for_each(|value| put(&mut out, 6, value));
        self.greatest.iter().for_each(|value| put(&mut out, 8, value));
        self.bounds.iter().for_each(|value| put(&mut out, 10, value));
        for (value, share) in &self.frequent {
            let mut bytes = Vec::new();
            share.put(&mut bytes);
            bytes.extend_from_slice(value);
            put(&mut out, 12, &bytes);
        }
        self.kept.merge(out)
    }

    fn decode(bytes: &[u8]) -> Result<ColumnStatistics, FormatError> {
        let mut found = ColumnStatistics::default();
        for attribute in Attributes::new(bytes) {
            let attribute = attribute?;
            match attribute.tag {
                2 => found.column = attribute.number()?,
                4 => found.figures.take(attribute)?,
                6 => found.least = Some(attribute.bytes.into()),
                8 => found.greatest = Some(attribute.bytes.into()),
                10 if found.bounds.last().is_some_and(|last| last.as_slice() > attribute.bytes) => {
                    return Err(FormatError::new("bounds of a histogram that do not ascend"));
                }
                10 => found.bounds.push(attribute.bytes.into()),
                12 => {
                    let mut reader = Reader::new(attribute.bytes);
                    let share = Figure::read(&mut reader)?;
                    found.frequent.push((reader.rest().into(), share));
                }
                _ => found.kept.keep(attribute)?,
            }
        }
        Ok(found)
    }

    /// Every other bound, and half of the frequent values: for tables of very many columns.
    fn thin(&mut self) {
        let last = self.bounds.len().saturating_sub(1);
        // An even number of steps stays one: so all steps have as many rows.
        if self.bounds.len() > 2 && last.is_multiple_of(2) {
            let mut at = 0;
            self.bounds.retain(|_| {
                at += 1;
                (at - 1) % 2 == 0
            });
        } else {
            self.bounds.clear();
        }
        self.frequent.truncate(self.frequent.len() / 2);
    }
}

/// Statistics of a table or an index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// When they were gathered: milliseconds since 1970-01-01 UTC.
    pub gathered_ms: u64,
    /// What was looked at.
    pub looked: Looked,
    /// Which sample; `None`: everything was read.
    pub seed: Option<u64>,
    /// Figures of the object.
    pub figures: Figures,
    /// Of a table: its columns.
    pub columns: Vec<ColumnStatistics>,
    /// Of an index: distinct values of its first column, its first two, and so on.
    pub prefixes: Vec<Figure>,
    /// What a later version has said.
    pub kept: Kept,
}

impl Statistics {
    /// Their bytes, as notes have them. Where that would be too much, histograms have fewer steps.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.encode_all();
        let mut thinner = self.clone();
        // From 128 steps it takes eight times until there are none.
        for _ in 0..8 {
            if bytes.len() <= STATISTICS_BYTES_MAX {
                break;
            }
            thinner.columns.iter_mut().for_each(ColumnStatistics::thin);
            bytes = thinner.encode_all();
        }
        if bytes.len() > STATISTICS_BYTES_MAX {
            thinner.columns.clear();
            bytes = thinner.encode_all();
        }
        bytes
    }

    fn encode_all(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, 2, self.gathered_ms);
        let mut looked = Vec::new();
        [self.looked.pages_read, self.looked.pages, self.looked.rows_read].iter().for_each(|number| put_varint(&mut looked, *number));
        put(&mut out, 4, &looked);
        self.seed.iter().for_each(|seed| put_number(&mut out, 6, *seed));
        self.figures.put(8, &mut out);
        self.columns.iter().for_each(|column| put(&mut out, 10, &column.encode()));
        for figure in &self.prefixes {
            let mut bytes = Vec::with_capacity(25);
            figure.put(&mut bytes);
            put(&mut out, 12, &bytes);
        }
        let mut all = self.kept.merge(out);
        all.insert(0, FORM);
        all
    }

    /// Read back.
    ///
    /// # Errors
    /// When the bytes are none, or of another form.
    pub fn decode(bytes: &[u8]) -> Result<Statistics, FormatError> {
        let mut reader = Reader::new(bytes);
        let form = reader.u8()?;
        if form != FORM {
            return Err(FormatError::new(format!("statistics of form {form}, which this version does not know")));
        }
        let mut found = Statistics::default();
        for attribute in Attributes::new(reader.rest()) {
            let attribute = attribute?;
            let mut reader = Reader::new(attribute.bytes);
            match attribute.tag {
                2 => found.gathered_ms = attribute.number()?,
                4 => {
                    found.looked = Looked { pages_read: reader.varint()?, pages: reader.varint()?, rows_read: reader.varint()? };
                    attribute.ends(&reader)?;
                }
                6 => found.seed = Some(attribute.number()?),
                8 => found.figures.take(attribute)?,
                10 => found.columns.push(ColumnStatistics::decode(attribute.bytes)?),
                12 => {
                    found.prefixes.push(Figure::read(&mut reader)?);
                    attribute.ends(&reader)?;
                }
                _ => found.kept.keep(attribute)?,
            }
        }
        Ok(found)
    }

    /// Statistics of a column.
    #[must_use]
    pub fn column(&self, column: u32) -> Option<&ColumnStatistics> {
        self.columns.iter().find(|statistics| statistics.column == column)
    }
}

#[cfg(test)]
#[path = "statistics_tests.rs"]
mod tests;

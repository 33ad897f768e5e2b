//! Rows in batches, column by column: how scans read pages whose rows lie so, and what turns into Arrow arrays without a look at single values.
//!
//! Invariant: every column of a batch has as many values as the batch has rows, but for those whose records wait; none wait when a batch is delivered.

use super::filter::{AreaRows, Filter, rows_there};
use super::table::Table;
use crate::{Error, Result};
use pagefold_codec::CodecError;
use pagefold_codec::page::{Bitmap, ColumnArea};
use pagefold_format::data::DataPage;
use pagefold_types::{LARGE_VALUE_REF_BYTES, Physical, Rid};

/// Rows of a batch from which on it is delivered.
const ROWS: usize = 1024;
/// Rows looked at from which on it is delivered, even without a row.
const ROWS_LOOKED_AT: usize = 16 * 1024;
/// Records that wait until they are taken apart: as many as a word has bits.
const WAITING: usize = 64;
/// As many columns of numbers take less when each record is taken apart than when it waits for others.
const NUMBERS_MAX: usize = 4;
/// Bytes of strings in a batch; what one page holds may come on top.
const BYTES_MAX: usize = 1 << 30;
/// Memory that a column of bytes has before it has any, at most.
const EXPECTED_BYTES_MAX: usize = 1 << 20;

/// The values of a column.
#[derive(Debug)]
pub enum BatchValues {
    /// BOOLEAN, integers, dates, times, DECIMAL of up to 8 bytes: the number; REAL and DOUBLE: the two's complement of their bits. NULL rows have some number.
    Ints(Vec<i64>),
    /// The bytes of all others, as in the record, one behind the other, and behind each its end. NULL rows have none.
    Bytes {
        /// All of them.
        bytes: Vec<u8>,
        /// As many as rows.
        ends: Vec<i32>,
        /// The bit of a row is set when its bytes are a reference to a large value.
        large: Bitmap,
    },
}

/// A column of a batch.
#[derive(Debug)]
pub struct BatchColumn {
    number: usize,
    physical: Physical,
    values: BatchValues,
    validity: Bitmap,
    nulls: usize,
    /// Of a batch of numbers: which of the rows that wait are NULL.
    waiting_nulls: u64,
}

impl BatchColumn {
    /// Its number in the table.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// How records have its values.
    #[must_use]
    pub(super) fn physical(&self) -> Physical {
        self.physical
    }

    /// Its values.
    #[must_use]
    pub fn values(&self) -> &BatchValues {
        &self.values
    }

    /// A bit for each row: not NULL.
    #[must_use]
    pub fn validity(&self) -> &Bitmap {
        &self.validity
    }

    /// Rows that are NULL.
    #[must_use]
    pub fn null_count(&self) -> usize {
        self.nulls
    }

    /// The numbers of a column of [`BatchValues::Ints`]; empty for others.
    #[must_use]
    pub fn ints(&self) -> &[i64] {
        if let BatchValues::Ints(ints) = &self.values { ints } else { &[] }
    }
}

/// Some columns of some rows.
#[derive(Debug)]
pub struct ColumnBatch {
    columns: Vec<BatchColumn>,
    /// Few columns, all of numbers: values are taken from each record at once.
    are_numbers: bool,
    /// Of each row, if they were asked for.
    rids: Option<Vec<Rid>>,
    /// Those that wait among them.
    rows: usize,
    looked_at: usize,
    waiting: Waiting,
}

/// Rows of a batch, and bytes of its columns of bytes.
#[derive(Debug, Default)]
pub(crate) struct BatchSizes {
    rows: usize,
    bytes: Vec<usize>,
}

/// Records of the last rows, which the columns do not have yet.
#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Of a batch of numbers, whose columns have all but whether they are NULL.
    numbers: usize,
}

impl Waiting {
    fn records(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |end| &self.bytes[std::mem::replace(&mut start, *end)..*end])
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.numbers = 0;
    }
}

impl ColumnBatch {
    /// An empty batch of these columns, with memory for one of these sizes.
    ///
    /// # Errors
    /// When the table has no such column.
    pub(crate) fn new(table: &Table, columns: &[usize], sizes: &BatchSizes) -> Result<ColumnBatch> {
        let (schema, rows) = (table.decoder.columns(), sizes.rows);
        table.check_columns(columns)?;
        let columns = columns.iter().enumerate().map(|(at, number)| {
            let values = if schema.is_int(*number) {
                BatchValues::Ints(Vec::with_capacity(rows))
            } else {
                let bytes = Vec::with_capacity(sizes.bytes.get(at).copied().unwrap_or(0));
                BatchValues::Bytes { bytes, ends: Vec::with_capacity(rows), large: Bitmap::with_capacity(rows) }
            };
            BatchColumn {
                number: *number,
                physical: table.layout.data_type(*number).physical(),
                values,
                validity: Bitmap::with_capacity(rows),
                nulls: 0,
                waiting_nulls: 0,
            }
        });
        let columns: Vec<BatchColumn> = columns.collect();
        let are_numbers = columns.len() <= NUMBERS_MAX && columns.iter().all(|column| matches!(column.values, BatchValues::Ints(_)));
        Ok(ColumnBatch { columns, are_numbers, rids: None, rows: 0, looked_at: 0, waiting: Waiting::default() })
    }

    /// No rows; keeps the memory, and has some for as many rows as wait at most.
    pub(crate) fn clear(&mut self) {
        (self.rows, self.looked_at) = (0, 0);
        self.waiting.clear();
        self.rids.iter_mut().for_each(Vec::clear);
        for column in &mut self.columns {
            column.validity.clear();
            (column.nulls, column.waiting_nulls) = (0, 0);
            match &mut column.values {
                BatchValues::Ints(ints) => {
                    ints.clear();
                    ints.reserve(WAITING);
                }
                BatchValues::Bytes { bytes, ends, large } => {
                    bytes.clear();
                    ends.clear();
                    ends.reserve(WAITING);
                    large.clear();
                }
            }
        }
    }

    /// How large it is: the next one is so, too, about. One that is a little larger is not to be moved for that.
    pub(crate) fn sizes(&self, sizes: &mut BatchSizes) {
        sizes.rows = self.rows + self.rows / 16;
        sizes.bytes.clear();
        sizes.bytes.extend(self.columns.iter().map(|column| match &column.values {
            BatchValues::Ints(_) => 0,
            // Long strings come seldom and by chance.
            BatchValues::Bytes { bytes, .. } => (bytes.len() + bytes.len() / 16).min(EXPECTED_BYTES_MAX),
        }));
    }

    /// The same, with the RIDs of the rows.
    pub(crate) fn with_rids(self) -> ColumnBatch {
        ColumnBatch { rids: Some(Vec::new()), ..self }
    }

    /// The RIDs of its rows, if they were asked for.
    #[must_use]
    pub fn rids(&self) -> Option<&[Rid]> {
        self.rids.as_deref()
    }

    /// Its columns, as they were asked for.
    #[must_use]
    pub fn columns(&self) -> &[BatchColumn] {
        &self.columns
    }

    /// Rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// No rows?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Rows of the table that were looked at for it, those that a condition left out among them.
    #[must_use]
    pub fn rows_looked_at(&self) -> usize {
        self.looked_at
    }

    /// Keeps the first rows. None wait.
    pub(crate) fn truncate(&mut self, rows: usize) {
        if rows >= self.rows {
            return;
        }
        self.rows = rows;
        self.rids.iter_mut().for_each(|rids| rids.truncate(rows));
        for column in &mut self.columns {
            column.validity.truncate(rows);
            column.nulls = rows - column.validity.count_ones();
            match &mut column.values {
                BatchValues::Ints(ints) => ints.truncate(rows),
                BatchValues::Bytes { bytes, ends, large } => {
                    ends.truncate(rows);
                    bytes.truncate(ends.last().map_or(0, |end| *end as usize));
                    large.truncate(rows);
                }
            }
        }
    }

    /// Adds a row by its record, if the filter lets it through.
    pub(super) fn push_record(&mut self, table: &Table, rid: Rid, record: &[u8], filter: Option<&Filter>) -> Result<()> {
        self.looked_at += 1;
        if !filter.map_or(Ok(true), |filter| filter.matches(table, record))? {
            return Ok(());
        }
        self.rids.iter_mut().for_each(|rids| rids.push(rid));
        if self.are_numbers {
            return self.push_numbers(table, record);
        }
        self.waiting.bytes.extend_from_slice(record);
        self.waiting.ends.push(self.waiting.bytes.len());
        self.rows += 1;
        if self.waiting.ends.len() < WAITING { Ok(()) } else { self.settle(table) }
    }

    fn push_numbers(&mut self, table: &Table, record: &[u8]) -> Result<()> {
        let schema = table.decoder.columns();
        let row = self.waiting.numbers;
        for column in &mut self.columns {
            let BatchValues::Ints(ints) = &mut column.values else { continue };
            if !schema.record_ints(column.number, std::iter::once(record), ints) {
                return Err(damaged_record(table));
            }
            column.waiting_nulls |= u64::from(schema.is_null(column.number, record)) << row;
        }
        self.rows += 1;
        self.waiting.numbers += 1;
        if self.waiting.numbers == WAITING {
            self.settle_numbers();
        }
        Ok(())
    }

    fn settle_numbers(&mut self) {
        let rows = std::mem::take(&mut self.waiting.numbers);
        if rows == 0 {
            return;
        }
        for column in &mut self.columns {
            let nulls = std::mem::take(&mut column.waiting_nulls);
            column.validity.append_word(!nulls, rows);
            column.nulls += nulls.count_ones() as usize;
        }
    }

    /// Adds rows by their records, which lie where they need no copy, as far as the filter lets them through.
    ///
    /// # Errors
    /// When a record is damaged.
    pub(super) fn push_records<'r>(
        &mut self,
        table: &Table,
        records: impl Iterator<Item = (Rid, &'r [u8])>,
        filter: Option<&Filter>,
    ) -> Result<()> {
        self.settle(table)?;
        let mut chunk: [&[u8]; WAITING] = [&[]; WAITING];
        let mut count = 0;
        for (rid, record) in records {
            self.looked_at += 1;
            if !filter.map_or(Ok(true), |filter| filter.matches(table, record))? {
                continue;
            }
            self.rids.iter_mut().for_each(|rids| rids.push(rid));
            chunk[count] = record;
            count += 1;
            if count == WAITING {
                self.append(table, &chunk)?;
                count = 0;
            }
        }
        self.append(table, &chunk[..count])
    }

    /// Takes the records that wait apart.
    ///
    /// # Errors
    /// When a record is damaged.
    pub(super) fn settle(&mut self, table: &Table) -> Result<()> {
        self.settle_numbers();
        let waiting = std::mem::take(&mut self.waiting);
        let mut chunk: [&[u8]; WAITING] = [&[]; WAITING];
        chunk.iter_mut().zip(waiting.records()).for_each(|(place, record)| *place = record);
        // They were counted when they came.
        self.rows -= waiting.ends.len();
        self.append(table, &chunk[..waiting.ends.len()])?;
        self.waiting = waiting;
        self.waiting.clear();
        Ok(())
    }

    /// Adds at most as many rows as a word has bits: column by column, as the values of one column are found in the same way in all records.
    fn append(&mut self, table: &Table, records: &[&[u8]]) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        let schema = table.decoder.columns();
        let records = || records.iter().copied();
        let rows = records().len();
        for BatchColumn { number, values, validity, nulls, .. } in &mut self.columns {
            let column = *number;
            let null_bits = match schema.is_nullable(column) {
                true => bits(records().map(|record| schema.is_null(column, record))),
                false => 0,
            };
            validity.append_word(!null_bits, rows);
            *nulls += null_bits.count_ones() as usize;
            match values {
                BatchValues::Ints(ints) => {
                    if !schema.record_ints(column, records(), ints) {
                        return Err(damaged_record(table));
                    }
                }
                BatchValues::Bytes { bytes, ends, large } => {
                    let mut large_bits = 0;
                    for (row, record) in records().enumerate() {
                        let (value, is_large) = schema.record_bytes(column, record).ok_or_else(|| damaged_record(table))?;
                        if null_bits >> row & 1 == 0 {
                            bytes.extend_from_slice(value);
                        }
                        ends.push(bytes.len() as i32);
                        large_bits |= u64::from(is_large && value.len() == LARGE_VALUE_REF_BYTES) << row;
                    }
                    large.append_word(large_bits, rows);
                }
            }
        }
        self.rows += rows;
        Ok(())
    }

    /// Adds the rows that a page has in its column part and that the filter lets through.
    pub(super) fn push_area(
        &mut self,
        table: &Table,
        area: &ColumnArea<'_>,
        page: &DataPage<'_>,
        rows: &AreaRows,
        filter: Option<&Filter>,
    ) -> Result<()> {
        self.settle(table)?;
        let mut selection = rows_there(area, page, rows);
        self.looked_at += selection.count_ones();
        if let Some(filter) = filter {
            filter.select(table, area, &mut selection)?;
        }
        let (count, all) = (selection.count_ones(), 0..area.rows());
        if count == 0 {
            return Ok(());
        }
        let damaged = |e: CodecError| Error::Damaged { path: table.object(), reason: e.to_string() };
        for BatchColumn { number, values, validity, nulls, .. } in &mut self.columns {
            let column = *number;
            match values {
                BatchValues::Ints(ints) if count == area.rows() => area.ints(column, all.clone(), ints),
                BatchValues::Ints(ints) => area.ints_selected(column, &selection, ints),
                BatchValues::Bytes { bytes, ends, large } if count == area.rows() => {
                    area.strings(column, all.clone(), ends, bytes, BYTES_MAX).map_err(damaged)?;
                    area.large(column, all.clone(), large);
                }
                BatchValues::Bytes { bytes, ends, large } => {
                    area.strings_selected(column, &selection, ends, bytes, BYTES_MAX).map_err(damaged)?;
                    area.large_selected(column, &selection, large);
                }
            }
            *nulls += if count == area.rows() {
                area.validity(column, all.clone(), validity)
            } else {
                area.validity_selected(column, &selection, validity)
            };
        }
        self.rows += count;
        Ok(())
    }

    /// Should it be taken before more rows come? Then it has a thousand rows, or long strings; or so many rows were looked at that who reads them may want to know.
    pub(crate) fn is_full(&self) -> bool {
        let long = |column: &BatchColumn| matches!(&column.values, BatchValues::Bytes { bytes, .. } if bytes.len() > BYTES_MAX / 4);
        self.rows >= ROWS || self.looked_at >= ROWS_LOOKED_AT || self.columns.iter().any(long)
    }
}

impl Table {
    /// Refuses columns that are not there.
    pub(crate) fn check_columns(&self, columns: &[usize]) -> Result<()> {
        match columns.iter().find(|column| **column >= self.layout.column_count()) {
            Some(column) => Err(Error::Value(format!("{}: no column number {column}", self.object()))),
            None => Ok(()),
        }
    }
}

#[cold]
fn damaged_record(table: &Table) -> Error {
    Error::Damaged { path: table.object(), reason: "a record that is too short".into() }
}

/// Bit i: what the i-th is.
fn bits(flags: impl Iterator<Item = bool>) -> u64 {
    flags.enumerate().fold(0, |bits, (index, flag)| bits | u64::from(flag) << index)
}

//! Batches from files whose rows are text, whatever splits them.

use super::index::{Checkpoint, RowIndex};
use super::reject::Rejects;
use super::value::{ValueFormat, read_value};
use crate::arrow::ColumnBuilder;
use crate::{InterchangeError, TableSchema};
use arrow_array::{RecordBatch, RecordBatchOptions};
use pagefold_types::ValueRef;
use std::path::Path;

/// Rows and bytes of a batch.
const BATCH_ROWS: usize = 8_192;
const BATCH_BYTES: usize = 16 << 20;

/// Reads the rows of one file, one after the other.
pub(crate) trait RowReader: Send {
    /// Goes to the next row; false behind the last one.
    fn next(&mut self) -> Result<bool, InterchangeError>;

    /// What is wrong with the row as a whole.
    fn fault(&self) -> Option<String>;

    /// The text of a column of the table, `None` for NULL; a fault of the row when it is none.
    fn field(&self, column: usize) -> Result<Option<&str>, String>;

    fn path(&self) -> &Path;

    /// The line, from 1, on which the row starts.
    fn line(&self) -> u64;

    /// Where in the file the row starts.
    fn offset(&self) -> u64;

    /// The row as it is in the file.
    fn raw(&self) -> &[u8];
}

/// How to read the values of a table's columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowFormat {
    pub(crate) values: Vec<ValueFormat>,
    /// Rows that do not fit go here, instead of ending everything.
    pub(crate) rejects: Option<Rejects>,
}

/// One column: its number, name and type, whether it can be NULL.
fn field_value(
    rows: &dyn RowReader,
    number: usize,
    column: &pagefold_types::Column,
    format: ValueFormat,
    take: &mut dyn FnMut(ValueRef<'_>) -> Result<(), InterchangeError>,
) -> Result<Result<(), InterchangeError>, String> {
    let place = |reason: String| format!("column {} (\"{}\"): {reason}", number + 1, column.name);
    let null = || if column.nullable { Ok(()) } else { Err(place("NULL, but the column is NOT NULL".to_owned())) };
    Ok(match rows.field(number)? {
        None => {
            null()?;
            take(ValueRef::Null)
        }
        Some(text) if column.data_type.is_text() => {
            let value = ValueRef::Text(text);
            value.check(&column.data_type, &column.name).map_err(|e| place(e.to_string()))?;
            take(value)
        }
        Some(text) => {
            let value = read_value(text, &column.data_type, format).map_err(place)?;
            if value.as_ref().is_null() {
                null()?;
            }
            take(value.as_ref())
        }
    })
}

/// What does not fit in the row, if anything.
fn fault(rows: &dyn RowReader, table: &TableSchema, formats: &[ValueFormat]) -> Option<String> {
    if let Some(fault) = rows.fault() {
        return Some(fault);
    }
    let columns = table.schema().columns().iter().zip(formats).enumerate();
    columns.map(|(i, (column, format))| field_value(rows, i, column, *format, &mut |_| Ok(()))).find_map(Result::err)
}

/// Reads on to row `number` (from 0) of those that fit; its file and line.
pub(crate) fn check_rows(
    mut open: impl FnMut(usize) -> Option<Box<dyn RowReader>>,
    table: &TableSchema,
    format: &RowFormat,
    number: u64,
) -> Option<String> {
    let mut left = number;
    for file in 0.. {
        let mut rows = open(file)?;
        while rows.next().ok()? {
            if format.rejects.is_some() && fault(rows.as_ref(), table, &format.values).is_some() {
                continue;
            }
            if left == 0 {
                return Some(format!("{}, line {}", rows.path().display(), rows.line()));
            }
            left -= 1;
        }
    }
    None
}

/// Opens a file, at its start or at a place.
pub(crate) type OpenRows<'s> = Box<dyn FnMut(usize, Option<Checkpoint>) -> Option<Box<dyn RowReader>> + Send + 's>;

/// The batches of all files, or of clusters.
pub(crate) struct BatchReader<'s> {
    open: OpenRows<'s>,
    table: &'s TableSchema,
    format: &'s RowFormat,
    builders: Vec<ColumnBuilder>,
    rows: Option<Box<dyn RowReader>>,
    next_file: usize,
    /// Of a sample: rows that do not fit are passed over without a word.
    sample: bool,
    failed: bool,
}

impl<'s> BatchReader<'s> {
    pub(crate) fn new(open: OpenRows<'s>, table: &'s TableSchema, format: &'s RowFormat) -> BatchReader<'s> {
        let builders = table.schema().columns().iter().enumerate().map(|(i, c)| ColumnBuilder::new(i, c.data_type)).collect();
        BatchReader { open, table, format, builders, rows: None, next_file: 0, sample: false, failed: false }
    }

    /// For samples.
    pub(crate) fn of_sample(mut self) -> BatchReader<'s> {
        self.sample = true;
        self
    }

    /// Goes to a row of the next file that has one; false behind the last.
    fn next_row(&mut self) -> Result<bool, InterchangeError> {
        loop {
            if let Some(rows) = &mut self.rows
                && rows.next()?
            {
                return Ok(true);
            }
            let Some(rows) = (self.open)(self.next_file, None) else { return Ok(false) };
            self.next_file += 1;
            self.rows = Some(rows);
        }
    }

    /// Is the row to be left out?
    fn is_rejected(&self, rows: &dyn RowReader) -> Result<bool, InterchangeError> {
        let Some(rejects) = &self.format.rejects else { return Ok(false) };
        let Some(reason) = fault(rows, self.table, &self.format.values) else { return Ok(false) };
        if self.sample || rejects.add(rows.path(), rows.line(), &reason, rows.raw()) {
            return Ok(true);
        }
        let limit = rejects.limit();
        Err(InterchangeError::line(rows.path(), rows.line(), format!("{reason}; more than {limit} rows, or 64 MB of them, do not fit")))
    }

    /// Appends the row to the builders.
    fn append(&self, rows: &dyn RowReader, row: usize, builders: &mut [ColumnBuilder]) -> Result<(), InterchangeError> {
        let error = |reason: String| InterchangeError::line(rows.path(), rows.line(), reason);
        if let Some(fault) = rows.fault() {
            return Err(error(fault));
        }
        let columns = self.table.schema().columns().iter().zip(&self.format.values);
        for (i, (builder, (column, format))) in builders.iter_mut().zip(columns).enumerate() {
            field_value(rows, i, column, *format, &mut |value| Ok(builder.push(row, value)?)).map_err(error)??;
        }
        Ok(())
    }

    /// Up to `rows_max` rows; `None` behind the last.
    fn batch(&mut self, rows_max: usize) -> Result<Option<RecordBatch>, InterchangeError> {
        let mut builders = std::mem::take(&mut self.builders);
        let (mut count, mut bytes, mut left_out) = (0, 0, 0);
        while count < rows_max && bytes < BATCH_BYTES && self.next_row()? {
            let Some(rows) = self.rows.take() else { break };
            bytes += rows.raw().len();
            if self.is_rejected(rows.as_ref())? {
                left_out += 1;
            } else {
                self.append(rows.as_ref(), count, &mut builders)?;
                count += 1;
            }
            self.rows = Some(rows);
        }
        let arrays = builders.iter_mut().map(|b| b.finish(count)).collect::<Result<Vec<_>, _>>()?;
        self.builders = builders;
        if count + left_out == 0 {
            return Ok(None);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(Some(RecordBatch::try_new_with_options(std::sync::Arc::clone(self.table.arrow()), arrays, &options)?))
    }

    /// A cluster of a sample: `rows` rows from row `row` on, which the checkpoint is at or before.
    pub(crate) fn cluster(&mut self, from: Checkpoint, row: u64, rows: usize) -> Result<RecordBatch, InterchangeError> {
        self.rows = (self.open)(from.file, Some(from));
        self.next_file = from.file + 1;
        for _ in from.row..row {
            self.next_row()?;
        }
        let missing = || InterchangeError::Mismatch("the file has become shorter while it was read".to_owned());
        self.batch(rows)?.ok_or_else(missing)
    }
}

impl Iterator for BatchReader<'_> {
    type Item = Result<RecordBatch, InterchangeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let batch = self.batch(BATCH_ROWS).transpose();
        self.failed = matches!(batch, None | Some(Err(_)));
        batch
    }
}

/// Counts all rows.
pub(crate) fn index_rows(mut open: impl FnMut(usize) -> Option<Box<dyn RowReader>>) -> Result<RowIndex, InterchangeError> {
    let mut index = RowIndex::default();
    for file in 0.. {
        let Some(mut rows) = open(file) else { break };
        while rows.next()? {
            index.add(file, rows.offset(), rows.line());
        }
    }
    Ok(index)
}

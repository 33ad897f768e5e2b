//! Batches to CSV, TSV or `.tbl`.

use super::dialect::{CsvOptions, Dialect, Header};
use crate::arrow::ColumnView;
use crate::sink::Sink;
use crate::{InterchangeError, TableSchema};
use arrow_array::RecordBatch;
use pagefold_types::text;
use std::io::Write;
use std::path::Path;

/// Writes rows as text.
#[derive(Debug)]
pub struct CsvSink<W> {
    out: W,
    table: TableSchema,
    dialect: Dialect,
    rows: u64,
    buffer: Vec<u8>,
    field: Vec<u8>,
}

/// The buffer goes out at this size.
const BUFFER_BYTES: usize = 256 * 1024;

impl<W: Write> CsvSink<W> {
    /// Starts with the header, unless there is none. `path` gives the dialect where the options do not; a `.tbl` file has a delimiter behind each field.
    ///
    /// # Errors
    /// Options that contradict each other; [`InterchangeError::Io`].
    pub fn new(out: W, table: &TableSchema, options: &CsvOptions, path: Option<&Path>) -> Result<CsvSink<W>, InterchangeError> {
        let mut dialect = Dialect::new(options, path)?;
        dialect.trailing = dialect.is_tbl;
        let header = match options.header {
            Header::Yes => true,
            Header::No => false,
            Header::Auto => !dialect.is_tbl,
        };
        let mut sink = CsvSink { out, table: table.clone(), dialect, rows: 0, buffer: Vec::new(), field: Vec::new() };
        if header {
            for i in 0..table.schema().len() {
                let name = table.schema().columns()[i].name.clone().into_bytes();
                sink.put(i, &name)?;
            }
            sink.end_row();
        }
        Ok(sink)
    }

    /// Appends a field that is not NULL.
    fn put(&mut self, column: usize, bytes: &[u8]) -> Result<(), InterchangeError> {
        let Dialect { delimiter, quote, escape, .. } = self.dialect;
        if column > 0 {
            self.buffer.push(delimiter);
        }
        let special = |b: &u8| *b == delimiter || matches!(b, b'\n' | b'\r') || Some(*b) == quote || Some(*b) == escape;
        if bytes != self.dialect.null && !bytes.iter().any(special) {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        let Some(quote) = quote else {
            let reason = match (bytes.is_empty(), self.table.schema().columns()[column].nullable) {
                (true, false) => return Ok(()),
                (true, true) => "without quotes an empty text cannot be told from NULL: give another text for NULL (--null)",
                (false, _) => "a delimiter, a line end or the null text needs quotes, which this format has not",
            };
            let column = self.table.schema().columns()[column].name.clone();
            return Err(InterchangeError::Write { row: self.rows + 1, column, reason });
        };
        self.buffer.push(quote);
        for byte in bytes {
            if *byte == quote || Some(*byte) == escape {
                self.buffer.push(escape.unwrap_or(quote));
            }
            self.buffer.push(*byte);
        }
        self.buffer.push(quote);
        Ok(())
    }

    fn put_null(&mut self, column: usize) {
        if column > 0 {
            self.buffer.push(self.dialect.delimiter);
        }
        self.buffer.extend_from_slice(&self.dialect.null);
    }

    fn end_row(&mut self) {
        if self.dialect.trailing {
            self.buffer.push(self.dialect.delimiter);
        }
        self.buffer.push(b'\n');
    }

    fn flush(&mut self) -> Result<(), InterchangeError> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl<W: Write + Send> Sink for CsvSink<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), InterchangeError> {
        let columns = self.table.schema().columns().to_vec();
        let views = ColumnView::of_batch(batch, &columns)?;
        let mut field = std::mem::take(&mut self.field);
        for row in 0..batch.num_rows() {
            for (i, (view, column)) in views.iter().zip(&columns).enumerate() {
                let value = view.value(row);
                if value.is_null() {
                    self.put_null(i);
                    continue;
                }
                field.clear();
                text::write(value, &column.data_type, &mut field);
                self.put(i, &field)?;
            }
            self.end_row();
            self.rows += 1;
            if self.buffer.len() >= BUFFER_BYTES {
                self.flush()?;
            }
        }
        self.field = field;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), InterchangeError> {
        self.flush()?;
        Ok(self.out.flush()?)
    }
}

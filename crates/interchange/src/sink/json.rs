//! Batches as JSON, one object a line.
//!
//! Numbers are JSON numbers (DECIMAL too, with all its digits); NaN and infinities, dates, times, UUIDs and bytes are strings, in their canonical text.

use super::Sink;
use crate::arrow::ColumnView;
use crate::{InterchangeError, TableSchema};
use arrow_array::RecordBatch;
use pagefold_types::{ValueRef, text};
use std::io::Write;

/// Writes JSON lines.
#[derive(Debug)]
pub struct JsonLinesSink<W> {
    out: W,
    table: TableSchema,
    /// The column names as JSON, each with what stands before it
    keys: Vec<Vec<u8>>,
    buffer: Vec<u8>,
}

fn put_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            // Writing to a Vec cannot fail.
            0..0x20 => drop(write!(out, "\\u{byte:04x}")),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

impl<W: Write> JsonLinesSink<W> {
    /// Begins.
    #[must_use]
    pub fn new(out: W, table: &TableSchema) -> JsonLinesSink<W> {
        let keys = table.schema().columns().iter().enumerate().map(|(i, column)| {
            let mut key = vec![if i == 0 { b'{' } else { b',' }];
            put_string(&column.name, &mut key);
            key.push(b':');
            key
        });
        JsonLinesSink { out, table: table.clone(), keys: keys.collect(), buffer: Vec::new() }
    }
}

impl<W: Write + Send> Sink for JsonLinesSink<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), InterchangeError> {
        let columns = self.table.schema().columns();
        let views = ColumnView::of_batch(batch, columns)?;
        for row in 0..batch.num_rows() {
            for ((view, column), key) in views.iter().zip(columns).zip(&self.keys) {
                self.buffer.extend_from_slice(key);
                let value = view.value(row);
                let plain = match value {
                    ValueRef::Null => {
                        self.buffer.extend_from_slice(b"null");
                        continue;
                    }
                    ValueRef::Text(text) => {
                        put_string(text, &mut self.buffer);
                        continue;
                    }
                    ValueRef::Boolean(_) | ValueRef::Decimal(_) => true,
                    ValueRef::Int(_) => matches!(
                        column.data_type,
                        pagefold_types::DataType::SmallInt | pagefold_types::DataType::Integer | pagefold_types::DataType::BigInt
                    ),
                    ValueRef::Real(x) => x.is_finite(),
                    ValueRef::Double(x) => x.is_finite(),
                    ValueRef::Bytes(_) | ValueRef::Uuid(_) | ValueRef::Interval(_) => false,
                };
                if plain {
                    text::write(value, &column.data_type, &mut self.buffer);
                } else {
                    put_string(&text::to_text(value, &column.data_type), &mut self.buffer);
                }
            }
            self.buffer.extend_from_slice(b"}\n");
        }
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn finish(&mut self) -> Result<(), InterchangeError> {
        Ok(self.out.flush()?)
    }
}

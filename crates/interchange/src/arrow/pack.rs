//! Batches to packed records, column by column.

use super::column::{ColumnData, ColumnView};
use super::mapping::{ABSENT, TableSchema};
use crate::InterchangeError;
use arrow_array::{Array, RecordBatch, new_null_array};
use pagefold_types::{BatchWriter, PackedRows, RowLayout, ValueRef};
use std::sync::Arc;

/// Turns batches of one source into records of one table.
#[derive(Debug)]
pub struct Packer<'t> {
    table: &'t TableSchema,
    layout: &'t RowLayout,
    /// For each column of the table, the source's.
    columns: Vec<usize>,
    record_bytes_max: usize,
}

/// Rows written at a time: their records stay in the processor's cache while the columns are written one after the other.
const CHUNK_ROWS: usize = 512;

/// Calls a method of the writer with a closure from row to value or NULL, without a look at the NULLs where there are none.
macro_rules! write_rows {
    ($writer:ident.$method:ident($column:ident), $array:ident, $from:ident, |$value:ident| $convert:expr) => {
        if $array.null_count() == 0 {
            $writer.$method($column, |row| {
                let $value = $array.value($from + row);
                Some($convert)
            })
        } else {
            $writer.$method($column, |row| {
                if $array.is_null($from + row) {
                    return None;
                }
                let $value = $array.value($from + row);
                Some($convert)
            })
        }
    };
}

impl<'t> Packer<'t> {
    /// For the table's own columns in the table's order, or as [`TableSchema::match_source`] gave them. Rows above `record_bytes_max` become wide ones.
    ///
    /// # Panics
    /// When `columns` are not as many as the table's.
    #[must_use]
    pub fn new(table: &'t TableSchema, layout: &'t RowLayout, columns: Vec<usize>, record_bytes_max: usize) -> Packer<'t> {
        assert_eq!(columns.len(), layout.column_count());
        Packer { table, layout, columns, record_bytes_max: record_bytes_max.max(layout.fixed_len()) }
    }

    /// Appends the records of a batch. On an error `rows` holds some of them and is to be dropped or cleared.
    ///
    /// # Errors
    /// [`InterchangeError::Value`] with the row in the batch, for NULL in a NOT NULL column and values out of range;
    /// [`InterchangeError::Column`] for a batch whose columns are not the source's.
    pub fn pack(&self, batch: &RecordBatch, rows: &mut PackedRows) -> Result<(), InterchangeError> {
        let mut views = Vec::with_capacity(self.columns.len());
        for ((position, column), field) in self.columns.iter().zip(self.table.schema().columns()).zip(self.table.arrow().fields()) {
            let missing = || InterchangeError::Column { column: column.name.clone(), reason: "the batch lacks it".to_owned() };
            let array = match *position {
                ABSENT => new_null_array(field.data_type(), batch.num_rows()),
                position => Arc::clone(batch.columns().get(position).ok_or_else(missing)?),
            };
            views.push(ColumnView::new(&array, &column.data_type, &column.name)?);
        }
        for from in (0..batch.num_rows()).step_by(CHUNK_ROWS) {
            let count = CHUNK_ROWS.min(batch.num_rows() - from);
            self.pack_chunk(&views, from, count, rows).map_err(|(row, error)| InterchangeError::Value { row: from + row, error })?;
        }
        Ok(())
    }

    fn pack_chunk(
        &self,
        views: &[ColumnView],
        from: usize,
        count: usize,
        rows: &mut PackedRows,
    ) -> Result<(), (usize, pagefold_types::ValueError)> {
        let mut writer = BatchWriter::new(self.layout, count, self.record_bytes_max, rows);
        for (i, view) in views.iter().enumerate() {
            match &view.data {
                ColumnData::Utf8(a) => write_rows!(writer.add_lengths(i), a, from, |v| v.as_bytes())?,
                ColumnData::LargeUtf8(a) => write_rows!(writer.add_lengths(i), a, from, |v| v.as_bytes())?,
                ColumnData::Utf8View(a) => write_rows!(writer.add_lengths(i), a, from, |v| v.as_bytes())?,
                ColumnData::Binary(a) => write_rows!(writer.add_lengths(i), a, from, |v| v)?,
                ColumnData::LargeBinary(a) => write_rows!(writer.add_lengths(i), a, from, |v| v)?,
                ColumnData::BinaryView(a) => write_rows!(writer.add_lengths(i), a, from, |v| v)?,
                ColumnData::Fixed(a) => write_rows!(writer.add_lengths(i), a, from, |v| v)?,
                _ => {}
            }
        }
        let wide = writer.place();
        for (i, view) in views.iter().enumerate() {
            match &view.data {
                ColumnData::Boolean(a) => write_rows!(writer.put_values(i), a, from, |v| ValueRef::Boolean(v))?,
                ColumnData::Int8(a) => write_rows!(writer.put_ints(i), a, from, |v| i64::from(v))?,
                ColumnData::Int16(a) => write_rows!(writer.put_ints(i), a, from, |v| i64::from(v))?,
                ColumnData::Int32(a) => write_rows!(writer.put_ints(i), a, from, |v| i64::from(v))?,
                ColumnData::Int64(a) => write_rows!(writer.put_ints(i), a, from, |v| v)?,
                ColumnData::UInt8(a) => write_rows!(writer.put_ints(i), a, from, |v| i64::from(v))?,
                ColumnData::UInt16(a) => write_rows!(writer.put_ints(i), a, from, |v| i64::from(v))?,
                ColumnData::UInt32(a) => write_rows!(writer.put_ints(i), a, from, |v| i64::from(v))?,
                ColumnData::Float32(a) => write_rows!(writer.put_values(i), a, from, |v| ValueRef::Real(v))?,
                ColumnData::Float64(a) => write_rows!(writer.put_values(i), a, from, |v| ValueRef::Double(v))?,
                ColumnData::Decimal(a) => write_rows!(writer.put_decimals(i), a, from, |v| v)?,
                ColumnData::Uuid(a) => {
                    write_rows!(writer.put_values(i), a, from, |v| ValueRef::Uuid(v.try_into().unwrap_or_default()))?;
                }
                ColumnData::Interval(a) => write_rows!(writer.put_values(i), a, from, |v| ValueRef::Interval(v))?,
                ColumnData::Utf8(a) => write_rows!(writer.put_bytes(i), a, from, |v| v.as_bytes())?,
                ColumnData::LargeUtf8(a) => write_rows!(writer.put_bytes(i), a, from, |v| v.as_bytes())?,
                ColumnData::Utf8View(a) => write_rows!(writer.put_bytes(i), a, from, |v| v.as_bytes())?,
                ColumnData::Binary(a) => write_rows!(writer.put_bytes(i), a, from, |v| v)?,
                ColumnData::LargeBinary(a) => write_rows!(writer.put_bytes(i), a, from, |v| v)?,
                ColumnData::BinaryView(a) => write_rows!(writer.put_bytes(i), a, from, |v| v)?,
                ColumnData::Fixed(a) => write_rows!(writer.put_bytes(i), a, from, |v| v)?,
            }
        }
        writer.finish(&wide, |row| views.iter().map(|v| v.value(from + row).to_owned()).collect())
    }
}

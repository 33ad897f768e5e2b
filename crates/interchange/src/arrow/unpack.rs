//! Records to batches, column by column, for scan and export.

use super::column::cast_to;
use super::mapping::TableSchema;
use super::mapping::natural_type;
use crate::InterchangeError;
use arrow_array::builder::{BooleanBufferBuilder, StringBuilder};
use arrow_array::types::{
    Date32Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, Decimal128Array, FixedSizeBinaryArray, Float32Array, Float64Array,
    PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType as Arrow, TimeUnit as ArrowUnit};
use pagefold_types::{ColumnValue, DataType, Interval, LargeValueRef, Physical, RecordError, RowLayout, Value, ValueRef, text};
use std::sync::Arc;

/// Values gathered for one column, NULLs as zero or nothing.
#[derive(Debug)]
enum Values {
    Boolean(BooleanBufferBuilder),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Real(Vec<f32>),
    Double(Vec<f64>),
    Decimal(Vec<i128>),
    Uuid(Vec<u8>),
    Interval(Vec<Interval>),
    /// Bytes, and behind each value their end
    Bytes(Vec<u8>, Vec<i32>),
}

#[derive(Debug)]
pub(crate) struct ColumnBuilder {
    /// In the table
    position: usize,
    data_type: DataType,
    values: Values,
    /// Rows that are NULL, ascending
    nulls: Vec<u32>,
}

/// Builds batches of some columns of a table from its records.
#[derive(Debug)]
pub struct BatchBuilder<'l> {
    layout: &'l RowLayout,
    output: TableSchema,
    columns: Vec<ColumnBuilder>,
    rows: usize,
    rows_max: usize,
}

/// A batch is full when its values take this much, however few rows it has.
const BATCH_BYTES_MAX: usize = 64 << 20;

/// Rows times bytes stay below this, so that offsets of 32 bits suffice.
const OFFSET_MAX: usize = i32::MAX as usize;

impl ColumnBuilder {
    pub(crate) fn new(position: usize, data_type: DataType) -> ColumnBuilder {
        let values = match data_type.physical() {
            Physical::Boolean => Values::Boolean(BooleanBufferBuilder::new(0)),
            Physical::Int { width: 2 } => Values::Int16(Vec::new()),
            Physical::Int { width: 4 } => Values::Int32(Vec::new()),
            Physical::Int { .. } => Values::Int64(Vec::new()),
            Physical::Real => Values::Real(Vec::new()),
            Physical::Double => Values::Double(Vec::new()),
            Physical::Decimal { .. } => Values::Decimal(Vec::new()),
            Physical::Uuid => Values::Uuid(Vec::new()),
            Physical::Interval => Values::Interval(Vec::new()),
            Physical::Char { .. } | Physical::Text | Physical::Bytes => Values::Bytes(Vec::new(), Vec::new()),
        };
        ColumnBuilder { position, data_type, values, nulls: Vec::new() }
    }

    /// Appends a value of the column's kind, or NULL.
    pub(crate) fn push(&mut self, row: usize, value: ValueRef<'_>) -> Result<(), RecordError> {
        if value.is_null() {
            self.nulls.push(row as u32);
        }
        let wrong = RecordError::NoSuchColumn { column: self.position };
        match (&mut self.values, value) {
            (Values::Boolean(to), ValueRef::Boolean(v)) => to.append(v),
            (Values::Int16(to), ValueRef::Int(v)) => to.push(v as i16),
            (Values::Int32(to), ValueRef::Int(v)) => to.push(v as i32),
            (Values::Int64(to), ValueRef::Int(v)) => to.push(v),
            (Values::Real(to), ValueRef::Real(v)) => to.push(v),
            (Values::Double(to), ValueRef::Double(v)) => to.push(v),
            (Values::Decimal(to), ValueRef::Decimal(v)) => to.push(v),
            (Values::Uuid(to), ValueRef::Uuid(v)) => to.extend(v),
            (Values::Bytes(to, ends), ValueRef::Text(_) | ValueRef::Bytes(_) | ValueRef::Null) => {
                match value {
                    ValueRef::Text(v) => to.extend_from_slice(v.as_bytes()),
                    ValueRef::Bytes(v) => to.extend_from_slice(v),
                    _ => {}
                }
                ends.push(i32::try_from(to.len()).map_err(|_| wrong)?);
            }
            (Values::Boolean(to), ValueRef::Null) => to.append(false),
            (Values::Int16(to), ValueRef::Null) => to.push(0),
            (Values::Int32(to), ValueRef::Null) => to.push(0),
            (Values::Int64(to), ValueRef::Null) => to.push(0),
            (Values::Real(to), ValueRef::Null) => to.push(0.0),
            (Values::Double(to), ValueRef::Null) => to.push(0.0),
            (Values::Decimal(to), ValueRef::Null) => to.push(0),
            (Values::Uuid(to), ValueRef::Null) => to.extend([0; 16]),
            (Values::Interval(to), ValueRef::Interval(v)) => to.push(v),
            (Values::Interval(to), ValueRef::Null) => to.push(Interval::ZERO),
            _ => return Err(wrong),
        }
        Ok(())
    }

    /// Appends the column of records.
    fn extend(
        &mut self,
        layout: &RowLayout,
        first_row: usize,
        records: &[&[u8]],
        fetch: &mut dyn FnMut(LargeValueRef) -> Result<Vec<u8>, InterchangeError>,
    ) -> Result<(), InterchangeError> {
        let reader = layout.reader(self.position)?;
        let nulls = &mut self.nulls;
        let mut null = |i: usize| nulls.push((first_row + i) as u32);
        macro_rules! gather {
            ($to:ident, $method:ident, $zero:expr, |$v:ident| $convert:expr) => {{
                $to.reserve(records.len());
                for (i, record) in records.iter().enumerate() {
                    $to.push(match reader.$method(record)? {
                        Some($v) => $convert,
                        None => {
                            null(i);
                            $zero
                        }
                    });
                }
            }};
        }
        match &mut self.values {
            Values::Int16(to) => gather!(to, int, 0, |v| v as i16),
            Values::Int32(to) => gather!(to, int, 0, |v| v as i32),
            Values::Int64(to) => gather!(to, int, 0, |v| v),
            Values::Real(to) => gather!(to, real, 0.0, |v| v),
            Values::Double(to) => gather!(to, double, 0.0, |v| v),
            Values::Decimal(to) => gather!(to, decimal, 0, |v| v),
            Values::Interval(to) => gather!(to, interval, Interval::ZERO, |v| v),
            Values::Boolean(to) => {
                for (i, record) in records.iter().enumerate() {
                    let value = reader.boolean(record)?;
                    if value.is_none() {
                        null(i);
                    }
                    to.append(value.unwrap_or(false));
                }
            }
            Values::Uuid(to) => {
                for (i, record) in records.iter().enumerate() {
                    let value = reader.uuid(record)?;
                    if value.is_none() {
                        null(i);
                    }
                    to.extend(value.unwrap_or_default());
                }
            }
            Values::Bytes(to, ends) => {
                ends.reserve(records.len());
                for (i, record) in records.iter().enumerate() {
                    match reader.bytes(record) {
                        Ok(Some(bytes)) => to.extend_from_slice(bytes),
                        Ok(None) => null(i),
                        Err(RecordError::Large { .. }) => {
                            if let ColumnValue::Large(large) = reader.value(record)? {
                                to.extend_from_slice(&fetch(large)?);
                            }
                        }
                        Err(e) => return Err(e.into()),
                    }
                    ends.push(i32::try_from(to.len()).map_err(|_| too_long())?);
                }
            }
        }
        Ok(())
    }

    /// Appends values that lie by column.
    fn extend_from(
        &mut self,
        first_row: usize,
        column: &ColumnSlice<'_>,
        fetch: &mut dyn FnMut(LargeValueRef) -> Result<Vec<u8>, InterchangeError>,
    ) -> Result<(), InterchangeError> {
        let is_set = |words: &[u64], row: usize| words.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1);
        if column.nulls > 0 {
            let rows = 0..column.values.len();
            self.nulls.extend(rows.filter(|row| !is_set(column.validity, *row)).map(|row| (first_row + row) as u32));
        }
        let wrong = InterchangeError::Record(RecordError::NoSuchColumn { column: self.position });
        match (&mut self.values, column.values) {
            (Values::Boolean(to), ColumnValues::Ints(ints)) => ints.iter().for_each(|value| to.append(*value != 0)),
            (Values::Int16(to), ColumnValues::Ints(ints)) => to.extend(ints.iter().map(|value| *value as i16)),
            (Values::Int32(to), ColumnValues::Ints(ints)) => to.extend(ints.iter().map(|value| *value as i32)),
            (Values::Int64(to), ColumnValues::Ints(ints)) => to.extend_from_slice(ints),
            (Values::Real(to), ColumnValues::Ints(ints)) => to.extend(ints.iter().map(|value| f32::from_bits(*value as u32))),
            (Values::Double(to), ColumnValues::Ints(ints)) => to.extend(ints.iter().map(|value| f64::from_bits(*value as u64))),
            (Values::Decimal(to), ColumnValues::Ints(ints)) => to.extend(ints.iter().map(|value| i128::from(*value))),
            (values, ColumnValues::Bytes { bytes, ends, large }) => {
                let mut start = 0;
                for (row, end) in ends.iter().enumerate() {
                    let value = bytes
                        .get(start..*end as usize)
                        .ok_or(InterchangeError::Record(RecordError::EndOffset { column: self.position }))?;
                    start = *end as usize;
                    let is_null = column.nulls > 0 && !is_set(column.validity, row);
                    match values {
                        Values::Decimal(_) | Values::Uuid(_) | Values::Interval(_) if is_null => push_zero(values),
                        Values::Decimal(to) => to.push(wide_decimal(value)),
                        Values::Uuid(to) if value.len() == 16 => to.extend_from_slice(value),
                        Values::Interval(to) if let Ok(bytes) = value.try_into() => to.push(Interval::from_bytes(bytes)),
                        Values::Bytes(to, to_ends) => {
                            match LargeValueRef::from_bytes(value).filter(|_| is_set(large, row)) {
                                Some(large) => to.extend_from_slice(&fetch(large)?),
                                None => to.extend_from_slice(value),
                            }
                            to_ends.push(i32::try_from(to.len()).map_err(|_| too_long())?);
                        }
                        _ => return Err(wrong),
                    }
                }
            }
            _ => return Err(wrong),
        }
        Ok(())
    }

    pub(crate) fn bytes(&self) -> usize {
        match &self.values {
            Values::Bytes(bytes, _) => bytes.len(),
            _ => 0,
        }
    }

    /// The natural array of the column; empties the builder.
    pub(crate) fn finish(&mut self, rows: usize) -> Result<ArrayRef, InterchangeError> {
        let nulls = (!self.nulls.is_empty()).then(|| {
            let mut valid = BooleanBufferBuilder::new(rows);
            valid.append_n(rows, true);
            self.nulls.drain(..).for_each(|row| valid.set_bit(row as usize, false));
            NullBuffer::new(valid.finish())
        });
        let natural = natural_type(&self.data_type);
        Ok(match &mut self.values {
            Values::Boolean(bits) => {
                let bits: BooleanBuffer = bits.finish();
                Arc::new(BooleanArray::new(bits, nulls))
            }
            Values::Int16(values) => primitive::<Int16Type>(values, nulls, &natural),
            Values::Int32(values) => match natural {
                Arrow::Date32 => primitive::<Date32Type>(values, nulls, &natural),
                Arrow::Time32(ArrowUnit::Second) => primitive::<Time32SecondType>(values, nulls, &natural),
                Arrow::Time32(_) => primitive::<Time32MillisecondType>(values, nulls, &natural),
                _ => primitive::<Int32Type>(values, nulls, &natural),
            },
            Values::Int64(values) => match natural {
                Arrow::Time64(ArrowUnit::Microsecond) => primitive::<Time64MicrosecondType>(values, nulls, &natural),
                Arrow::Time64(_) => primitive::<Time64NanosecondType>(values, nulls, &natural),
                Arrow::Timestamp(ArrowUnit::Second, _) => primitive::<TimestampSecondType>(values, nulls, &natural),
                Arrow::Timestamp(ArrowUnit::Millisecond, _) => primitive::<TimestampMillisecondType>(values, nulls, &natural),
                Arrow::Timestamp(ArrowUnit::Microsecond, _) => primitive::<TimestampMicrosecondType>(values, nulls, &natural),
                Arrow::Timestamp(ArrowUnit::Nanosecond, _) => primitive::<TimestampNanosecondType>(values, nulls, &natural),
                _ => primitive::<Int64Type>(values, nulls, &natural),
            },
            Values::Real(values) => Arc::new(Float32Array::new(std::mem::take(values).into(), nulls)),
            Values::Double(values) => Arc::new(Float64Array::new(std::mem::take(values).into(), nulls)),
            Values::Decimal(values) => Arc::new(Decimal128Array::new(std::mem::take(values).into(), nulls).with_data_type(natural)),
            Values::Uuid(values) => Arc::new(FixedSizeBinaryArray::try_new(16, Buffer::from_vec(std::mem::take(values)), nulls)?),
            Values::Interval(values) => {
                let mut texts = StringBuilder::new();
                for (row, value) in std::mem::take(values).into_iter().enumerate() {
                    match nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                        true => texts.append_null(),
                        false => texts.append_value(text::to_text(ValueRef::Interval(value), &DataType::Interval)),
                    }
                }
                Arc::new(texts.finish())
            }
            Values::Bytes(values, ends) => {
                let mut offsets = Vec::with_capacity(ends.len() + 1);
                offsets.push(0);
                offsets.append(ends);
                let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
                let values = Buffer::from_vec(std::mem::take(values));
                if self.data_type.is_text() {
                    // Checks UTF-8 in one go.
                    Arc::new(StringArray::try_new(offsets, values, nulls)?)
                } else {
                    Arc::new(BinaryArray::try_new(offsets, values, nulls)?)
                }
            }
        })
    }
}

fn too_long() -> InterchangeError {
    InterchangeError::LargeValue(format!("more than {OFFSET_MAX} bytes in one batch of one column"))
}

fn push_zero(values: &mut Values) {
    match values {
        Values::Decimal(to) => to.push(0),
        Values::Uuid(to) => to.extend([0; 16]),
        Values::Interval(to) => to.push(Interval::ZERO),
        _ => {}
    }
}

/// The number with these bytes, little-endian; at most 16.
fn wide_decimal(bytes: &[u8]) -> i128 {
    let sign = if bytes.last().is_some_and(|top| top & 0x80 != 0) { 0xFF } else { 0 };
    let mut word = [sign; 16];
    let len = bytes.len().min(16);
    word[..len].copy_from_slice(&bytes[..len]);
    i128::from_le_bytes(word)
}

/// Values of a column that lie one behind the other.
#[derive(Clone, Copy, Debug)]
pub enum ColumnValues<'a> {
    /// BOOLEAN, integers, dates, times, DECIMAL of up to 8 bytes: the number; REAL and DOUBLE: their bits. NULL rows have some number.
    Ints(&'a [i64]),
    /// All others: bytes as in the record, and behind each value its end. NULL rows have none.
    Bytes {
        /// All bytes.
        bytes: &'a [u8],
        /// As many as rows.
        ends: &'a [i32],
        /// A bit for each row: its bytes are a reference to a large value.
        large: &'a [u64],
    },
}

impl ColumnValues<'_> {
    fn len(&self) -> usize {
        match self {
            ColumnValues::Ints(ints) => ints.len(),
            ColumnValues::Bytes { ends, .. } => ends.len(),
        }
    }
}

/// A column of some rows.
#[derive(Clone, Copy, Debug)]
pub struct ColumnSlice<'a> {
    /// Its values.
    pub values: ColumnValues<'a>,
    /// A bit for each row: not NULL.
    pub validity: &'a [u64],
    /// Rows that are NULL.
    pub nulls: usize,
}

fn primitive<T: ArrowPrimitiveType>(values: &mut Vec<T::Native>, nulls: Option<NullBuffer>, natural: &Arrow) -> ArrayRef
where
    ScalarBuffer<T::Native>: From<Vec<T::Native>>,
{
    Arc::new(PrimitiveArray::<T>::new(std::mem::take(values).into(), nulls).with_data_type(natural.clone()))
}

impl<'l> BatchBuilder<'l> {
    /// For these columns (positions in the table, in the output's order), batches of at most `rows_max` rows.
    ///
    /// # Errors
    /// As [`TableSchema::project`].
    ///
    /// # Panics
    /// When a position is not in the schema.
    pub fn new(
        table: &TableSchema,
        layout: &'l RowLayout,
        columns: &[usize],
        rows_max: usize,
    ) -> Result<BatchBuilder<'l>, InterchangeError> {
        let output = table.project(columns)?;
        let columns = columns.iter().map(|i| ColumnBuilder::new(*i, layout.data_type(*i))).collect();
        Ok(BatchBuilder { layout, output, columns, rows: 0, rows_max: rows_max.max(1) })
    }

    /// The schema of the batches.
    #[must_use]
    pub fn output(&self) -> &TableSchema {
        &self.output
    }

    /// Rows gathered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// No rows gathered?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Time for [`BatchBuilder::finish`]?
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.rows >= self.rows_max || self.columns.iter().map(ColumnBuilder::bytes).sum::<usize>() >= BATCH_BYTES_MAX
    }

    /// Appends records, all of them; `fetch` gives the bytes of large values. Many at a time are faster. After an error the builder is to be dropped.
    ///
    /// # Errors
    /// [`InterchangeError::Record`] for damaged records, and those of `fetch`.
    pub fn push_records(
        &mut self,
        records: &[&[u8]],
        mut fetch: impl FnMut(LargeValueRef) -> Result<Vec<u8>, InterchangeError>,
    ) -> Result<(), InterchangeError> {
        for column in &mut self.columns {
            column.extend(self.layout, self.rows, records, &mut fetch)?;
        }
        self.rows += records.len();
        Ok(())
    }

    /// Appends rows that lie by column: as many columns as the batches have, in their order, each of `rows` values. After an error the builder is to be dropped.
    ///
    /// # Errors
    /// [`InterchangeError::Record`] when a column is of another kind or length, and those of `fetch`.
    pub fn push_columns<'a>(
        &mut self,
        rows: usize,
        slices: impl Iterator<Item = ColumnSlice<'a>>,
        mut fetch: impl FnMut(LargeValueRef) -> Result<Vec<u8>, InterchangeError>,
    ) -> Result<(), InterchangeError> {
        let mut slices = slices;
        for column in &mut self.columns {
            let slice = slices.next().filter(|slice| slice.values.len() == rows);
            let slice = slice.ok_or(RecordError::NoSuchColumn { column: column.position })?;
            column.extend_from(self.rows, &slice, &mut fetch)?;
        }
        self.rows += rows;
        Ok(())
    }

    /// Appends one row, given as the values of all the table's columns.
    ///
    /// # Errors
    /// [`InterchangeError::Record`] when a value is of another kind than its column.
    pub fn push_row(&mut self, values: &[Value]) -> Result<(), InterchangeError> {
        for column in &mut self.columns {
            let value = values.get(column.position).ok_or(RecordError::NoSuchColumn { column: column.position })?;
            column.push(self.rows, value.as_ref())?;
        }
        self.rows += 1;
        Ok(())
    }

    /// The batch of all rows gathered, in the source's Arrow types; the builder is empty then.
    ///
    /// # Errors
    /// [`InterchangeError::Record`] or [`InterchangeError::Arrow`] when records are damaged (text that is not UTF-8);
    /// [`InterchangeError::Column`] when a value has no place in the source's type.
    pub fn finish(&mut self) -> Result<RecordBatch, InterchangeError> {
        let rows = std::mem::take(&mut self.rows);
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (column, field) in self.columns.iter_mut().zip(self.output.arrow().fields()) {
            let array = column.finish(rows)?;
            arrays.push(cast_to(&array, field.data_type(), field.name())?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(self.output.arrow()), arrays, &options)?)
    }
}

//! The rows of a table as batches.
//!
//! A thread reads them and is a few batches ahead; it ends when nobody wants more.

use super::profile::decimal_of;
use super::{SqliteFile, refused};
use crate::foreign::ForeignTable;
use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float64Builder, Int16Builder, Int32Builder, Int64Builder,
    StringBuilder, TimestampMicrosecondBuilder, TimestampMillisecondBuilder, TimestampSecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use pagefold_interchange::{
    Batches, ColumnDecided, Decided, FileDecided, InterchangeError, Source, TableSchema, of_clusters, sample_clusters,
};
use pagefold_types::{Column, DataType, TimeUnit, Value, text};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};

/// Rows of a batch, at most; fewer where they are long.
const BATCH_ROWS: usize = 8_192;
/// Bytes of texts and blobs after which a batch ends.
const BATCH_BYTES: usize = 4 << 20;
/// Batches that are read ahead.
const AHEAD: usize = 2;

/// A table of a SQLite file.
#[derive(Debug)]
pub(super) struct SqliteSource {
    path: PathBuf,
    connection: Arc<Mutex<Connection>>,
    name: String,
    query: String,
    rows: u64,
    bytes: u64,
    schema: TableSchema,
    read: Arc<AtomicU64>,
}

impl SqliteSource {
    pub(super) fn new(file: &SqliteFile, table: &ForeignTable, query: &str, schema: TableSchema) -> SqliteSource {
        SqliteSource {
            path: file.path.clone(),
            connection: Arc::clone(&file.connection),
            name: table.name.clone(),
            query: query.to_owned(),
            rows: table.rows,
            bytes: table.bytes.unwrap_or(0),
            schema,
            read: Arc::default(),
        }
    }
}

/// A column of a batch that is being made.
enum Cells {
    Boolean(BooleanBuilder),
    SmallInt(Int16Builder),
    Integer(Int32Builder),
    BigInt(Int64Builder),
    Double(Float64Builder),
    Decimal(Decimal128Builder, i8),
    Date(Date32Builder),
    Seconds(TimestampSecondBuilder, DataType),
    Millis(TimestampMillisecondBuilder, DataType),
    Micros(TimestampMicrosecondBuilder, DataType),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
}

/// A time as a number.
fn moment(value: ValueRef<'_>, data_type: &DataType) -> Option<i64> {
    let text = value.as_str().ok()?;
    match text::parse(text, data_type) {
        Ok(Value::Int(number)) => Some(number),
        _ => None,
    }
}

/// A number, or what SQLite makes of one as a text.
pub(super) fn text_of(value: ValueRef<'_>) -> Option<std::borrow::Cow<'_, str>> {
    match value {
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok().map(Into::into),
        ValueRef::Integer(number) => Some(number.to_string().into()),
        ValueRef::Real(number) => Some(real_text(number).into()),
        ValueRef::Null | ValueRef::Blob(_) => None,
    }
}

/// The shortest text that is the same number again.
fn real_text(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "Inf".into() } else { "-Inf".into() };
    }
    let short = format!("{number:?}");
    short.replace('e', "e+").replace("e+-", "e-")
}

impl Cells {
    fn new(data_type: &DataType) -> Option<Cells> {
        Some(match data_type {
            DataType::Boolean => Cells::Boolean(BooleanBuilder::new()),
            DataType::SmallInt => Cells::SmallInt(Int16Builder::new()),
            DataType::Integer => Cells::Integer(Int32Builder::new()),
            DataType::BigInt => Cells::BigInt(Int64Builder::new()),
            DataType::Double => Cells::Double(Float64Builder::new()),
            DataType::Decimal { precision, scale } => {
                Cells::Decimal(Decimal128Builder::new().with_precision_and_scale(*precision, *scale).ok()?, *scale)
            }
            DataType::Date => Cells::Date(Date32Builder::new()),
            DataType::Timestamp { unit: TimeUnit::Second, .. } => Cells::Seconds(TimestampSecondBuilder::new(), *data_type),
            DataType::Timestamp { unit: TimeUnit::Milli, .. } => Cells::Millis(TimestampMillisecondBuilder::new(), *data_type),
            DataType::Timestamp { unit: TimeUnit::Micro, .. } => Cells::Micros(TimestampMicrosecondBuilder::new(), *data_type),
            DataType::Varchar(_) => Cells::Text(StringBuilder::new()),
            DataType::Bytea => Cells::Bytes(BinaryBuilder::new()),
            _ => return None,
        })
    }

    /// Adds a value; `None` when it is none of the type. Bytes that it takes, where these differ.
    fn push(&mut self, value: ValueRef<'_>) -> Option<usize> {
        let is_null = matches!(value, ValueRef::Null);
        // One that has no such form is none, and not NULL.
        fn taken<T>(is_null: bool, made: Option<T>) -> Option<Option<T>> {
            if is_null { Some(None) } else { made.map(Some) }
        }
        let integer = || if let ValueRef::Integer(number) = value { Some(number) } else { None };
        match self {
            Cells::Boolean(cells) => cells.append_option(taken(is_null, integer().map(|number| number != 0))?),
            Cells::SmallInt(cells) => cells.append_option(taken(is_null, integer().and_then(|number| number.try_into().ok()))?),
            Cells::Integer(cells) => cells.append_option(taken(is_null, integer().and_then(|number| number.try_into().ok()))?),
            Cells::BigInt(cells) => cells.append_option(taken(is_null, integer())?),
            Cells::Double(cells) => cells.append_option(taken(is_null, number_of(value))?),
            Cells::Decimal(cells, scale) => cells.append_option(taken(is_null, decimal(value, *scale))?),
            Cells::Date(cells) => {
                let day = moment(value, &DataType::Date).and_then(|day| i32::try_from(day).ok());
                cells.append_option(taken(is_null, day)?);
            }
            Cells::Seconds(cells, data_type) => cells.append_option(taken(is_null, moment(value, data_type))?),
            Cells::Millis(cells, data_type) => cells.append_option(taken(is_null, moment(value, data_type))?),
            Cells::Micros(cells, data_type) => cells.append_option(taken(is_null, moment(value, data_type))?),
            Cells::Text(cells) => {
                let text = taken(is_null, text_of(value))?;
                cells.append_option(text.as_deref());
                return Some(text.map_or(0, |text| text.len()));
            }
            Cells::Bytes(cells) => {
                let bytes = taken(is_null, if let ValueRef::Blob(bytes) = value { Some(bytes) } else { None })?;
                cells.append_option(bytes);
                return Some(bytes.map_or(0, <[u8]>::len));
            }
        }
        Some(0)
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Cells::Boolean(cells) => Arc::new(cells.finish()),
            Cells::SmallInt(cells) => Arc::new(cells.finish()),
            Cells::Integer(cells) => Arc::new(cells.finish()),
            Cells::BigInt(cells) => Arc::new(cells.finish()),
            Cells::Double(cells) => Arc::new(cells.finish()),
            Cells::Decimal(cells, _) => Arc::new(cells.finish()),
            Cells::Date(cells) => Arc::new(cells.finish()),
            Cells::Seconds(cells, _) => Arc::new(cells.finish()),
            Cells::Millis(cells, _) => Arc::new(cells.finish()),
            Cells::Micros(cells, _) => Arc::new(cells.finish()),
            Cells::Text(cells) => Arc::new(cells.finish()),
            Cells::Bytes(cells) => Arc::new(cells.finish()),
        }
    }
}

pub(super) fn number_of(value: ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::Integer(number) => Some(number as f64),
        ValueRef::Real(number) => Some(number),
        _ => None,
    }
}

pub(super) fn decimal(value: ValueRef<'_>, scale: i8) -> Option<i128> {
    match value {
        ValueRef::Integer(number) => i128::from(number).checked_mul(10i128.checked_pow(scale.try_into().ok()?)?),
        ValueRef::Real(number) => decimal_of(number, scale),
        _ => None,
    }
}

type Sent = Result<RecordBatch, InterchangeError>;

/// Reads the rows until `send` wants no more.
fn read(
    connection: &Connection,
    (path, name): (&std::path::Path, &str),
    query: &str,
    schema: &TableSchema,
    mut send: impl FnMut(Sent) -> bool,
) -> Result<(), InterchangeError> {
    let failed = |error: rusqlite::Error| refused(path, &format!("table \"{name}\""), &error);
    let columns = schema.schema().columns();
    let cells = || columns.iter().map(|column| Cells::new(&column.data_type)).collect::<Option<Vec<Cells>>>();
    let mut batch = cells().ok_or_else(|| InterchangeError::Mismatch(format!("table \"{name}\" has a type that is not known")))?;
    let mut statement = connection.prepare(query).map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    let (mut count, mut bytes, mut done) = (0, 0, 0_u64);
    let take = |batch: &mut Vec<Cells>| {
        let arrays = batch.iter_mut().map(Cells::finish).collect();
        RecordBatch::try_new(Arc::clone(schema.arrow()), arrays).map_err(InterchangeError::from)
    };
    while let Some(row) = rows.next().map_err(failed)? {
        for (column, cells) in batch.iter_mut().enumerate() {
            let value = row.get_ref(column).map_err(failed)?;
            let refuse = || InterchangeError::File {
                path: path.to_owned(),
                reason: format!("table \"{name}\", column \"{}\": row {} has another type than before", columns[column].name, done + 1),
            };
            bytes += cells.push(value).ok_or_else(refuse)?;
        }
        (count, done) = (count + 1, done + 1);
        if count == BATCH_ROWS || bytes > BATCH_BYTES {
            (count, bytes) = (0, 0);
            if !send(take(&mut batch)) {
                return Ok(());
            }
        }
    }
    if count > 0 {
        send(take(&mut batch));
    }
    Ok(())
}

impl Source for SqliteSource {
    fn table(&self) -> &TableSchema {
        &self.schema
    }

    fn has_names(&self) -> bool {
        true
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.rows)
    }

    fn bytes_total(&self) -> u64 {
        self.bytes
    }

    fn bytes_done(&self) -> u64 {
        let read = self.read.load(Ordering::Relaxed);
        (u128::from(self.bytes) * u128::from(read) / u128::from(self.rows.max(1))) as u64
    }

    fn decided(&self) -> Decided {
        let decided = |column: &Column| ColumnDecided {
            name: column.name.clone(),
            data_type: column.data_type,
            nullable: column.nullable,
            order: None,
            note: None,
        };
        let file = FileDecided { path: self.path.clone(), format: "sqlite", ..FileDecided::default() };
        Decided { files: vec![file], columns: self.schema.schema().columns().iter().map(decided).collect() }
    }

    fn place(&mut self, row: u64) -> Option<String> {
        Some(format!("{}, table \"{}\", row {}", self.path.display(), self.name, row + 1))
    }

    fn batches(&mut self) -> Result<Batches<'_>, InterchangeError> {
        let (sender, receiver) = sync_channel::<Sent>(AHEAD);
        let (connection, path, name) = (Arc::clone(&self.connection), self.path.clone(), self.name.clone());
        let (query, schema, rows) = (self.query.clone(), self.schema.clone(), Arc::clone(&self.read));
        rows.store(0, Ordering::Relaxed);
        let run = move || {
            let Ok(connection) = connection.lock() else {
                let _ = sender.send(Err(InterchangeError::File { path, reason: "a thread that read it has failed".into() }));
                return;
            };
            let send = |batch: Sent| {
                rows.fetch_add(batch.as_ref().map_or(0, |batch| batch.num_rows() as u64), Ordering::Relaxed);
                sender.send(batch).is_ok()
            };
            if let Err(error) = read(&connection, (&path, &name), &query, &schema, send) {
                // Nobody may want to know.
                let _ = sender.send(Err(error));
            }
        };
        std::thread::Builder::new().name("sqlite".into()).spawn(run)?;
        Ok(Box::new(receiver.into_iter()))
    }

    fn sample(&mut self, rows: u64, seed: u64) -> Result<Batches<'_>, InterchangeError> {
        let Some(starts) = sample_clusters(self.rows, rows, seed) else { return self.batches() };
        let schema = Arc::clone(self.schema.arrow());
        Ok(of_clusters(schema, self.batches()?, starts))
    }
}

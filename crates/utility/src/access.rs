//! Reading rows: EXPORT, scan, get.

use crate::load::table_schema;
use crate::{Error, Progress, Result, Unit};
use pagefold_engine::btree::Direction as CursorDirection;
use pagefold_engine::database::Database;
use pagefold_engine::index::Index;
use pagefold_engine::table_space::{BatchValues, ColumnBatch, Method, RowBuffer, Table};
use pagefold_interchange::{BatchBuilder, ColumnSlice, ColumnValues, InterchangeError, Sink, TableSchema};
use pagefold_types::{KeyRange, Predicate, Rid, Value, ValueRef, text};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Rows in a batch.
const BATCH_ROWS: usize = 8192;
/// Rows that an index scan asks for at once: the list of a list prefetch.
const LIST_ROWS: usize = 1024;
/// Records gathered before they are turned into columns.
const GATHERED_BYTES: usize = 256 * 1024;

/// What to read of a table.
#[derive(Clone, Debug, Default)]
pub struct ScanOptions {
    /// Columns by name, in this order; all when `None`.
    pub columns: Option<Vec<String>>,
    /// A condition such as `a >= 3 and b = "x"`.
    pub condition: Option<String>,
    /// Read through this index, in its order.
    pub index: Option<String>,
    /// At most so many rows.
    pub limit: Option<u64>,
}

/// A scan that is ready to run.
pub struct Scan {
    table: Arc<Table>,
    schema: TableSchema,
    columns: Vec<usize>,
    condition: Option<Predicate>,
    index: Option<Arc<Index>>,
    limit: u64,
}

impl Scan {
    /// Prepares a scan.
    ///
    /// # Errors
    /// When the table, a column or the index does not exist, or the condition cannot be understood.
    pub fn new(database: &Database, table: &str, options: &ScanOptions) -> Result<Scan> {
        let table = database.table(table)?;
        let schema = table_schema(&table)?;
        let own = &table.attributes().schema;
        let usage = |e: &dyn std::fmt::Display| Error::Usage(format!("table \"{}\": {e}", table.name()));
        let columns = match &options.columns {
            Some(names) => names.iter().map(|name| own.index_of(name).map_err(|e| usage(&e))).collect::<Result<Vec<usize>>>()?,
            None => (0..own.len()).collect(),
        };
        let condition = options.condition.as_deref().map(|text| Predicate::parse(text, own).map_err(|e| usage(&e))).transpose()?;
        let index = options.index.as_deref().map(|name| database.index(name)).transpose()?;
        if let Some(index) = &index
            && !database.indexes_of(&table).iter().any(|i| Arc::ptr_eq(i, index))
        {
            return Err(usage(&format!("index \"{}\" belongs to another table", index.name())));
        }
        let limit = options.limit.unwrap_or(u64::MAX);
        Ok(Scan { schema, columns, condition, index, limit, table })
    }

    /// The columns that come out.
    ///
    /// # Errors
    /// When a column was asked for twice.
    pub fn output(&self) -> Result<TableSchema> {
        Ok(self.schema.project(&self.columns)?)
    }

    /// Writes the rows into a sink; returns how many.
    ///
    /// # Errors
    /// When a page is damaged or the sink fails.
    pub fn run(&self, sink: &mut dyn Sink, progress: &dyn Progress) -> Result<u64> {
        progress.start(&format!("reading {}", self.table.name()), Some(self.table.row_count()), Unit::Rows);
        let builder = BatchBuilder::new(&self.schema, self.table.layout(), &self.columns, BATCH_ROWS)?;
        let mut output = Output { scan: self, builder, gathered: Vec::new(), ends: Vec::new(), rows: 0, sink };
        if self.limit > 0 {
            match &self.index {
                Some(index) => self.run_index(index, &mut output, progress)?,
                None => self.run_table(&mut output, progress)?,
            }
        }
        let rows = output.finish()?;
        progress.finish();
        Ok(rows)
    }

    /// For the columns that are looked at.
    fn buffer(&self) -> RowBuffer {
        let conditions = self.condition.as_ref().map_or(&[][..], Predicate::columns);
        RowBuffer::for_columns(&self.table, &[&self.columns, conditions].concat())
    }

    /// Where rows lie by column, columns become columns.
    fn run_columns(&self, output: &mut Output<'_, '_>, progress: &dyn Progress) -> Result<()> {
        self.table.scan_columns(&self.columns, self.condition.as_ref(), |batch| {
            let flow = output.offer_batch(batch)?;
            progress.advance(batch.rows_looked_at() as u64);
            if progress.interrupted() { Err(Error::Interrupted) } else { Ok(flow) }
        })?;
        Ok(())
    }

    fn run_table(&self, output: &mut Output<'_, '_>, progress: &dyn Progress) -> Result<()> {
        if self.table.attributes().method == Method::Page {
            return self.run_columns(output, progress);
        }
        let mut seen = 0u64;
        self.table.scan(&mut self.buffer(), |_, record| {
            seen += 1;
            if seen.is_multiple_of(BATCH_ROWS as u64) {
                progress.advance(BATCH_ROWS as u64);
                if progress.interrupted() {
                    return Err(Error::Interrupted);
                }
            }
            output.offer(record)
        })?;
        Ok(())
    }

    fn run_index(&self, index: &Index, output: &mut Output<'_, '_>, progress: &dyn Progress) -> Result<()> {
        let ranges = match &self.condition {
            Some(condition) => condition.key_ranges(index.key_layout()),
            None => vec![KeyRange { start: Vec::new(), end: None }],
        };
        let mut buffer = self.buffer();
        let mut rids: Vec<Rid> = Vec::new();
        for range in ranges {
            let mut cursor = index.tree().range(range, CursorDirection::Forward);
            loop {
                rids.clear();
                while rids.len() < LIST_ROWS
                    && let Some((_, rid)) = cursor.next()?
                {
                    rids.push(rid);
                }
                if rids.is_empty() {
                    break;
                }
                self.table.prefetch_rows(&rids)?;
                progress.advance(rids.len() as u64);
                if progress.interrupted() {
                    return Err(Error::Interrupted);
                }
                for rid in &rids {
                    let outcome = self.table.read(*rid, &mut buffer, |record| output.offer(record))?;
                    if outcome.ok_or_else(|| missing_row(index, *rid))??.is_break() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    fn matches(&self, record: &[u8]) -> Result<bool> {
        let Some(condition) = &self.condition else { return Ok(true) };
        Ok(self.table.satisfies(condition, record)?)
    }
}

/// Rows on their way to the sink.
struct Output<'s, 'l> {
    scan: &'l Scan,
    builder: BatchBuilder<'l>,
    gathered: Vec<u8>,
    ends: Vec<usize>,
    rows: u64,
    sink: &'s mut dyn Sink,
}

impl Output<'_, '_> {
    fn offer(&mut self, record: &[u8]) -> Result<ControlFlow<()>> {
        if !self.scan.matches(record)? {
            return Ok(ControlFlow::Continue(()));
        }
        self.gathered.extend_from_slice(record);
        self.ends.push(self.gathered.len());
        self.rows += 1;
        let last = self.rows == self.scan.limit;
        if last || self.gathered.len() >= GATHERED_BYTES || self.builder.len() + self.ends.len() >= BATCH_ROWS {
            self.turn()?;
        }
        Ok(if last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Takes rows that lie by column, as many as are still wanted.
    fn offer_batch(&mut self, batch: &ColumnBatch<'_>) -> Result<ControlFlow<()>> {
        let table = &self.scan.table;
        let wanted = usize::try_from(self.scan.limit - self.rows).unwrap_or(usize::MAX).min(batch.len());
        let slices = batch.columns().iter().map(|column| ColumnSlice {
            values: match column.values() {
                BatchValues::Ints(ints) => ColumnValues::Ints(&ints[..wanted]),
                BatchValues::Bytes { bytes, ends, large } => ColumnValues::Bytes { bytes, ends: &ends[..wanted], large: large.words() },
            },
            validity: column.validity().words(),
            nulls: column.null_count(),
        });
        self.builder.push_columns(wanted, slices, |reference| {
            table.read_large(reference).map_err(|e| InterchangeError::LargeValue(e.to_string()))
        })?;
        self.rows += wanted as u64;
        if self.builder.is_full() {
            self.sink.write(&self.builder.finish()?)?;
        }
        Ok(if self.rows == self.scan.limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Turns the gathered records into columns.
    fn turn(&mut self) -> Result<()> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let records: Vec<&[u8]> = starts.zip(&self.ends).map(|(start, end)| &self.gathered[start..*end]).collect();
        let table = &self.scan.table;
        self.builder
            .push_records(&records, |reference| table.read_large(reference).map_err(|e| InterchangeError::LargeValue(e.to_string())))?;
        self.gathered.clear();
        self.ends.clear();
        if self.builder.is_full() {
            self.sink.write(&self.builder.finish()?)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<u64> {
        self.turn()?;
        if !self.builder.is_empty() {
            self.sink.write(&self.builder.finish()?)?;
        }
        self.sink.finish()?;
        Ok(self.rows)
    }
}

/// Writes all rows of a table into a sink; returns how many.
///
/// # Errors
/// When there is no such table, a page is damaged or the sink fails.
pub fn export(database: &Database, table: &str, sink: &mut dyn Sink, progress: &dyn Progress) -> Result<u64> {
    Scan::new(database, table, &ScanOptions::default())?.run(sink, progress)
}

/// The row with this primary key, given as texts. `None` when there is none.
///
/// # Errors
/// When the table has no primary key, the number of values or one of them does not fit, or a page is damaged.
pub fn get(database: &Database, table: &str, key: &[String]) -> Result<Option<Vec<Value>>> {
    let table = database.table(table)?;
    let columns = &table.attributes().primary_key;
    if columns.is_empty() {
        return Err(Error::Data(format!("table \"{}\" has no primary key; load it with --primary-key", table.name())));
    }
    let own = table.attributes().schema.columns();
    if key.len() != columns.len() {
        let names: Vec<&str> = columns.iter().map(|column| own[*column].name.as_str()).collect();
        return Err(Error::Usage(format!(
            "the primary key of \"{}\" is ({}); {} values were given",
            table.name(),
            names.join(", "),
            key.len()
        )));
    }
    let mut values = Vec::with_capacity(key.len());
    for (column, word) in columns.iter().zip(key) {
        let column = &own[*column];
        values.push(text::parse(word, &column.data_type).map_err(|e| Error::Usage(format!("column \"{}\": {e}", column.name)))?);
    }
    let refs: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
    let index = primary_key_index(database, &table)?;
    let mut encoded = Vec::new();
    index.key_layout().encode(&refs, &mut encoded).map_err(|e| Error::Usage(e.to_string()))?;
    let Some(rid) = index.tree().first_rid(&encoded)? else { return Ok(None) };
    let record = table.get(rid)?.ok_or_else(|| missing_row(&index, rid))?;
    Ok(Some(table.values(&record)?))
}

fn missing_row(index: &Index, rid: Rid) -> Error {
    Error::Data(format!("index \"{}\" names row {rid}, which does not exist; run check", index.name()))
}

/// The index of a table's primary key.
///
/// # Errors
/// When it was dropped.
pub fn primary_key_index(database: &Database, table: &Table) -> Result<Arc<Index>> {
    let columns = &table.attributes().primary_key;
    database
        .indexes_of(table)
        .into_iter()
        .find(|index| index.attributes().unique && index.attributes().columns.iter().map(|(c, _)| c).eq(columns.iter()))
        .ok_or_else(|| Error::Data(format!("table \"{}\" has no index on its primary key", table.name())))
}

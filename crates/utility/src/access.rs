//! Reading rows: EXPORT, scan, get.

use crate::load::table_schema;
use crate::partitions::Tables;
use crate::{Error, Progress, Result, Unit};
use pagefold_engine::btree::Direction as CursorDirection;
use pagefold_engine::database::{Database, Isolation, Part, PartOrder, PartitionedTable, ReadView, ScanRequest, TransactionOptions};
use pagefold_engine::index::Index;
use pagefold_engine::table_space::{BatchValues, ColumnBatch, Table};
use pagefold_interchange::{BatchBuilder, ColumnSlice, ColumnValues, InterchangeError, Sink, TableSchema};
use pagefold_types::{KeyRange, Predicate, Value, ValueRef, text};
use std::sync::Arc;

/// Rows in a batch.
const BATCH_ROWS: usize = 8192;

/// An index is taken by itself when the condition leaves at most one entry of it for so many rows of the table.
const ROWS_PER_ENTRY: u64 = 50;

/// What to read of a table.
#[derive(Clone, Debug, Default)]
pub struct ScanOptions {
    /// Columns by name, in this order; all when `None`.
    pub columns: Option<Vec<String>>,
    /// A condition such as `a >= 3 and b = 'x'`.
    pub condition: Option<String>,
    /// Read through this index, in its order. When `None`, through one that the condition narrows to few rows, if there is such; then the rows come in the order of the table or of that index.
    pub index: Option<String>,
    /// At most so many rows.
    pub limit: Option<u64>,
}

/// A scan that is ready to run. It reads what was committed when it was prepared.
pub struct Scan {
    view: ReadView,
    name: String,
    /// It stands for the columns.
    first: Arc<Table>,
    schema: TableSchema,
    columns: Vec<usize>,
    condition: Option<Predicate>,
    /// By table: that index, in these ranges; nothing of a table that cannot have rows for which the condition is true.
    parts: Vec<Part>,
    order: PartOrder,
    index_name: Option<String>,
    limit: Option<u64>,
}

impl Scan {
    /// Prepares a scan.
    ///
    /// # Errors
    /// When the table, a column or the index does not exist, or the condition cannot be understood.
    pub fn new(database: &Database, table: &str, options: &ScanOptions) -> Result<Scan> {
        let view = database.read_view();
        let tables = Tables::find(database, table)?;
        let schema = table_schema(tables.first())?;
        let own = &tables.first().attributes().schema;
        let usage = |e: &dyn std::fmt::Display| Error::Usage(format!("table \"{table}\": {e}"));
        let columns = match &options.columns {
            Some(names) => names.iter().map(|name| own.index_of(name).map_err(|e| usage(&e))).collect::<Result<Vec<usize>>>()?,
            None => tables.first().attributes().visible_columns(),
        };
        let condition = options.condition.as_deref().map(|text| Predicate::parse(text, own).map_err(|e| usage(&e))).transpose()?;
        let (parts, order) = parts(database, &view, &tables, options.index.as_deref(), condition.as_ref())?;
        let by = |part: &Part| part.by.as_ref().map(|(index, _)| index.name().to_owned());
        let index_name = options.index.clone().or_else(|| parts.first().and_then(by));
        let (name, first) = (tables.name().to_owned(), Arc::clone(tables.first()));
        Ok(Scan { view, name, first, schema, columns, condition, parts, order, index_name, limit: options.limit })
    }

    /// The index that it reads through; of a partitioned table, where the condition chose one for each partition, that of the first.
    #[must_use]
    pub fn index_name(&self) -> Option<&str> {
        self.index_name.as_deref()
    }

    /// Names of the tables that it reads: of a partitioned table the partitions that can have rows for which the condition is true.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|part| part.table.name())
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
        let rows = self.parts.iter().map(|part| part.table.row_count()).sum();
        progress.start(&format!("reading {}", self.name), Some(rows), Unit::Rows);
        let builder = BatchBuilder::new(&self.schema, self.first.layout(), &self.columns, BATCH_ROWS)?;
        let mut output = Output { builder, rows: 0, sink };
        let (condition, limit) = (self.condition.clone(), self.limit);
        let request = ScanRequest { columns: Some(self.columns.clone()), condition, limit, rids: false };
        for batch in self.view.parts(self.parts.clone(), self.order, &request)? {
            let (table, batch) = batch?;
            output.take(&table, &batch)?;
            progress.advance(batch.rows_looked_at() as u64);
            if progress.interrupted() {
                return Err(Error::Interrupted);
            }
        }
        let rows = output.finish()?;
        progress.finish();
        Ok(rows)
    }
}

/// How the rows of a condition are come to in each table, and in which order the tables are.
fn parts(
    database: &Database,
    view: &ReadView,
    tables: &Tables<'_>,
    index: Option<&str>,
    condition: Option<&Predicate>,
) -> Result<(Vec<Part>, PartOrder)> {
    let forward = PartOrder::Parts(CursorDirection::Forward);
    let ranges_of = |index: &Index| match condition {
        Some(condition) => condition.key_ranges(index.key_layout()),
        None => vec![KeyRange { start: Vec::new(), end: None }],
    };
    let chosen = tables.whole.as_ref().map_or_else(|| vec![0], |whole| whole.find_for_condition(condition));
    match (index, &tables.whole) {
        (None, _) => {
            let part = |at: &usize| {
                let table = Arc::clone(tables.table(*at)?);
                let narrow = condition.map(|condition| narrow_index(database, view, &table, condition)).transpose()?.flatten();
                let by = narrow.map(|index| (Arc::clone(&index), ranges_of(&index)));
                Ok(Part { table, by })
            };
            Ok((chosen.iter().map(part).collect::<Result<_>>()?, forward))
        }
        (Some(name), None) => {
            let (index, table) = (database.index(name)?, tables.first());
            if !table.all_indexes().iter().any(|own| Arc::ptr_eq(own, &index)) {
                return Err(Error::Usage(format!("table \"{}\": index \"{name}\" belongs to another table", table.name())));
            }
            index.check_usable()?;
            let ranges = ranges_of(&index);
            Ok((vec![Part { table: Arc::clone(table), by: Some((index, ranges)) }], forward))
        }
        (Some(name), Some(whole)) => {
            if !database.partitioned_indexes_of(whole).iter().any(|own| own == name) {
                return Err(Error::Usage(format!("{} has no index \"{name}\" of all partitions", whole.object())));
            }
            let like = like_index(database, whole, name)?;
            let (planned, is_in_order) = whole.plan(&like.attributes().columns, &ranges_of(&like), &chosen, false);
            let part = |(at, ranges): (usize, Vec<KeyRange>)| {
                let index = database.index_of_partition(&whole.partitions()[at], name)?;
                index.check_usable()?;
                Ok(Part { table: Arc::clone(tables.table(at)?), by: Some((index, ranges)) })
            };
            let parts = planned.into_iter().map(part).collect::<Result<_>>()?;
            Ok((parts, if is_in_order { forward } else { PartOrder::Keys(CursorDirection::Forward) }))
        }
    }
}

/// The index that some partition has of an index of the whole.
pub(crate) fn like_index(database: &Database, whole: &PartitionedTable, name: &str) -> Result<Arc<Index>> {
    let mut refused = None;
    for partition in whole.partitions() {
        match database.index_of_partition(partition, name) {
            Ok(index) => return Ok(index),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.map_or_else(|| Error::Data(format!("{} has no partition", whole.object())), Error::from))
}

/// The index that has the fewest entries in the ranges that the condition leaves, if that are few: entries are counted, up to the fewest so far.
fn narrow_index(database: &Database, view: &ReadView, table: &Arc<Table>, condition: &Predicate) -> Result<Option<Arc<Index>>> {
    let (mut best, mut fewest) = (None, table.row_count() / ROWS_PER_ENTRY);
    for index in database.indexes_of(table) {
        let ranges = condition.key_ranges(index.key_layout());
        if ranges.iter().any(|range| range.start.is_empty() && range.end.is_none()) {
            continue;
        }
        let mut entries = 0u64;
        'ranges: for range in ranges {
            match count_entries(view, table, &index, range, fewest - entries.min(fewest)) {
                Ok(counted) => entries += counted,
                // Where a page of it is damaged, there is another way.
                Err(error) if error.is_damage() => entries = u64::MAX,
                Err(error) => return Err(error),
            }
            if entries > fewest {
                break 'ranges;
            }
        }
        if entries <= fewest && fewest > 0 {
            (best, fewest) = (Some(index), entries);
        }
        if fewest == 0 {
            break;
        }
    }
    Ok(best)
}

/// How many entries an index has in a range; one more than `most` when there are more than that.
fn count_entries(view: &ReadView, table: &Arc<Table>, index: &Arc<Index>, range: KeyRange, most: u64) -> Result<u64> {
    let mut keys = view.keys(table, index, range, CursorDirection::Forward)?;
    let mut entries = 0;
    while entries <= most && keys.next_record()?.is_some() {
        entries += 1;
    }
    Ok(entries)
}

/// Rows on their way to the sink.
struct Output<'s, 'l> {
    builder: BatchBuilder<'l>,
    rows: u64,
    sink: &'s mut dyn Sink,
}

impl Output<'_, '_> {
    fn take(&mut self, table: &Table, batch: &ColumnBatch) -> Result<()> {
        push_rows(&mut self.builder, table, batch)?;
        self.rows += batch.len() as u64;
        if self.builder.is_full() {
            self.sink.write(&self.builder.finish()?)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<u64> {
        if !self.builder.is_empty() {
            self.sink.write(&self.builder.finish()?)?;
        }
        self.sink.finish()?;
        Ok(self.rows)
    }
}

/// Adds the rows of a batch to those of which Arrow arrays are made; large values are read.
///
/// # Errors
/// When a page is damaged, or a record batch cannot hold the values.
pub fn push_rows(builder: &mut BatchBuilder<'_>, table: &Table, batch: &ColumnBatch) -> Result<()> {
    let slices = batch.columns().iter().map(|column| ColumnSlice {
        values: match column.values() {
            BatchValues::Ints(ints) => ColumnValues::Ints(ints),
            BatchValues::Bytes { bytes, ends, large } => ColumnValues::Bytes { bytes, ends, large: large.words() },
        },
        validity: column.validity().words(),
        nulls: column.null_count(),
    });
    let read_large = |reference| table.read_large(reference).map_err(|e| InterchangeError::LargeValue(e.to_string()));
    Ok(builder.push_columns(batch.len(), slices, read_large)?)
}

/// Writes all rows of a table into a sink; returns how many.
///
/// # Errors
/// When there is no such table, a page is damaged or the sink fails.
pub fn export(database: &Database, table: &str, sink: &mut dyn Sink, progress: &dyn Progress) -> Result<u64> {
    let progress: &dyn Progress = &database.watch(format!("export {table}"), progress);
    Scan::new(database, table, &ScanOptions::default())?.run(sink, progress)
}

/// The row with this primary key, given as texts. `None` when there is none.
///
/// # Errors
/// When the table has no primary key, the number of values or one of them does not fit, or a page is damaged.
pub fn get(database: &Database, table: &str, key: &[String]) -> Result<Option<Vec<Value>>> {
    let tables = Tables::find(database, table)?;
    let columns = &tables.first().attributes().primary_key;
    let name = tables.name();
    if columns.is_empty() {
        return Err(Error::Data(format!("table \"{}\" has no primary key; load it with --primary-key", name)));
    }
    let own = tables.first().attributes().schema.columns();
    if key.len() != columns.len() {
        let names: Vec<&str> = columns.iter().map(|column| own[*column].name.as_str()).collect();
        return Err(Error::Usage(format!("the primary key of \"{}\" is ({}); {} values were given", name, names.join(", "), key.len())));
    }
    let mut values = Vec::with_capacity(key.len());
    for (column, word) in columns.iter().zip(key) {
        let column = &own[*column];
        values.push(text::parse(word, &column.data_type).map_err(|e| Error::Usage(format!("column \"{}\": {e}", column.name)))?);
    }
    let refs: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
    // One snapshot: a row that goes from one partition to another meanwhile is in one of them.
    let isolation = Isolation::RepeatableRead;
    let mut transaction = database.begin(TransactionOptions { read_only: true, isolation, ..TransactionOptions::default() });
    for place in tables.places_of_key(&refs)? {
        let table = tables.table(place)?;
        let index = primary_key_index(table)?;
        index.key_layout().encode(&refs, &mut Vec::new()).map_err(|e| Error::Usage(e.to_string()))?;
        if let Some(row) = transaction.get(table, &index, &refs, |_, record| table.values(record))? {
            return Ok(Some(row?));
        }
    }
    Ok(None)
}

/// The index of a table's primary key, to find rows by.
///
/// # Errors
/// When it was dropped, or is damaged.
pub fn primary_key_index(table: &Table) -> Result<Arc<Index>> {
    let index =
        find_primary_key_index(table).ok_or_else(|| Error::Data(format!("table \"{}\" has no index on its primary key", table.name())))?;
    index.check_usable()?;
    Ok(index)
}

/// The index of a table's primary key, whatever state it is in; one that can be used comes first.
pub(crate) fn find_primary_key_index(table: &Table) -> Option<Arc<Index>> {
    let columns = &table.attributes().primary_key;
    let is_it = |index: &&Arc<Index>| index.attributes().is_of_key(columns);
    table.indexes().iter().chain(table.damaged_indexes().iter()).find(is_it).cloned()
}

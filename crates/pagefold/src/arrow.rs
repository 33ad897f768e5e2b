//! Rows as Arrow record batches, out of tables and into them.
//!
//! Columns come as the table has them: under `page` from the page's columns into arrays, without a row in between.

use crate::select::{Batches, Select};
use crate::table::Table;
use crate::{Error, Result};
use arrow_array::{RecordBatch, new_null_array};
use arrow_schema::SchemaRef;
use pagefold_engine::table_space as space;
use pagefold_interchange::{BatchBuilder, ColumnView, InterchangeError, TableSchema};
use pagefold_types::ValueRef;
use pagefold_utility::push_rows;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows of a batch, at least, but for the last one; fewer where values are long.
const BATCH_ROWS: usize = 8192;

/// Record batches of the rows of a [`Select`]. It owns what it needs, can go to another thread, and holds nobody up between two batches.
#[derive(Debug)]
pub struct RecordBatches {
    scan: Batches,
    table: Arc<space::Table>,
    schema: TableSchema,
    output: SchemaRef,
    columns: Vec<usize>,
    is_done: bool,
}

fn from_interchange(table: &str, error: InterchangeError) -> Error {
    match error {
        InterchangeError::Io(error) => error.into(),
        other => Error::Value(format!("table \"{table}\": {other}")),
    }
}

fn from_utility(table: &str, error: pagefold_utility::Error) -> Error {
    match error {
        pagefold_utility::Error::Engine(error) => error,
        pagefold_utility::Error::Interchange(error) => from_interchange(table, error),
        other => Error::Value(format!("table \"{table}\": {other}")),
    }
}

impl Select<'_> {
    /// The rows in Arrow record batches.
    ///
    /// # Errors
    /// When the table does not count for the transaction any more.
    pub fn record_batches(self) -> Result<RecordBatches> {
        let scan = self.scan()?;
        // Of a partitioned table one of its partitions: all have the same columns.
        let table = if let Batches::Table(_, table) = &scan { Arc::clone(table) } else { Arc::clone(self.table.inner()) };
        let schema = pagefold_utility::table_schema(&table).map_err(|e| from_utility(table.name(), e))?;
        let output = schema.project(&self.columns).map_err(|e| from_interchange(table.name(), e))?;
        let output = Arc::clone(output.arrow());
        Ok(RecordBatches { scan, table, schema, output, columns: self.columns, is_done: false })
    }
}

impl RecordBatches {
    /// The Arrow schema of the batches.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.output
    }

    /// The same rows in at most so many parts, one for each thread. In one part where rows come in an order, or no more than some.
    #[must_use]
    pub fn split(self, parts: usize) -> Vec<RecordBatches> {
        let RecordBatches { scan, table, schema, output, columns, is_done } = self;
        let part = |scan| RecordBatches {
            scan,
            table: Arc::clone(&table),
            schema: schema.clone(),
            output: Arc::clone(&output),
            columns: columns.clone(),
            is_done,
        };
        scan.split(parts).into_iter().map(part).collect()
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let name = self.table.name();
        let builder = BatchBuilder::new(&self.schema, self.table.layout(), &self.columns, BATCH_ROWS);
        let mut builder = builder.map_err(|e| from_interchange(name, e))?;
        while !self.is_done && !builder.is_full() {
            let Some((table, batch)) = self.scan.next().transpose()? else { break };
            push_rows(&mut builder, &table, &batch).map_err(|e| from_utility(name, e))?;
        }
        if builder.is_empty() { Ok(None) } else { builder.finish().map(Some).map_err(|e| from_interchange(name, e)) }
    }
}

impl Iterator for RecordBatches {
    type Item = Result<RecordBatch>;

    /// After an error nothing more comes.
    fn next(&mut self) -> Option<Result<RecordBatch>> {
        let next = self.next_batch();
        self.is_done |= next.is_err();
        next.transpose()
    }
}

impl Table<'_> {
    fn table_schema(&self) -> Result<TableSchema> {
        pagefold_utility::table_schema(self.inner()).map_err(|e| from_utility(self.name(), e))
    }

    /// The columns as Arrow has them: with the types of the file that the table was loaded from, if it was.
    ///
    /// # Errors
    /// When what the catalog has of these types is damaged.
    pub fn arrow_schema(&self) -> Result<SchemaRef> {
        let shown = self.table_schema()?.project(self.places()).map_err(|e| from_interchange(self.name(), e))?;
        Ok(Arc::clone(shown.arrow()))
    }

    /// Inserts the rows of a batch, all or none of them. Its columns are found by name and may stand in any order; types are those
    /// that [`crate::interchange`] maps to the table's. Returns how many rows.
    ///
    /// # Errors
    /// When a column is missing, too many, or of another type; else as [`insert`](Self::insert).
    pub fn insert_batch(&self, batch: &RecordBatch) -> Result<u64> {
        let name = self.name();
        let schema = self.table_schema()?;
        let source = TableSchema::from_arrow(batch.schema()).map_err(|e| from_interchange(name, e))?;
        let positions = schema.match_source(&source, false).map_err(|e| from_interchange(name, e))?;
        let fields = schema.arrow().fields();
        let views = positions.iter().zip(schema.schema().columns()).zip(fields).map(|((position, column), field)| {
            // What was dropped no batch has.
            let given = batch.columns().get(*position).map(Arc::clone);
            let array = given.unwrap_or_else(|| new_null_array(field.data_type(), batch.num_rows()));
            let view = ColumnView::new(&array, &column.data_type, &column.name);
            view.map_err(|e| from_interchange(name, e))
        });
        let views = views.collect::<Result<Vec<ColumnView>>>()?;
        let insert = |table: &Table<'_>, mut numbers: &mut dyn Iterator<Item = usize>| {
            table.transaction().with(|t| {
                let savepoint = t.savepoint();
                let mut row: Vec<ValueRef<'_>> = Vec::with_capacity(views.len());
                let inserted = t.insert_rows(table.inner(), |rows| {
                    (&mut numbers).try_for_each(|number| {
                        row.clear();
                        row.extend(views.iter().map(|view| view.value(number)));
                        rows.push(&row)
                    })
                });
                // After a lock that was not had the transaction goes on from here. Where only rollback is left, that takes these rows back, too.
                inserted.inspect_err(|_| drop(t.roll_back_to(savepoint)))
            })
        };
        let Some(whole) = self.whole() else { return self.following(|table| insert(table, &mut (0..batch.num_rows()))) };
        whole.run(|partitions| {
            let mut of_partitions: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
            let mut row: Vec<ValueRef<'_>> = Vec::with_capacity(views.len());
            for number in 0..batch.num_rows() {
                row.clear();
                row.extend(views.iter().map(|view| view.value(number)));
                of_partitions.entry(partitions.place_of_values(&row)?).or_default().push(number);
            }
            let savepoint = self.transaction().savepoint();
            let mut rows = 0;
            for (at, numbers) in &of_partitions {
                let inserted = partitions.table(*at)?.following(|table| insert(table, &mut numbers.iter().copied()));
                rows += inserted.inspect_err(|_| drop(self.transaction().roll_back_to(savepoint)))?;
            }
            Ok(rows)
        })
    }
}

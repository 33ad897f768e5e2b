//! Tables that say what there is and what goes on. Their rows are made when a statement begins, of what its transaction would find then: what it has defined itself, not what others have and may take
//! back.
//!
//! * `information_schema`: tables, columns, constraints, as the SQL standard has them
//! * `objects`: `pagefold_tables`, `pagefold_partitions`, `pagefold_indexes`, `pagefold_dictionaries`, `pagefold_column_statistics`
//! * `activity`: what the database does at this moment: pools, counters, transactions, locks, the log, utilities, statements

mod activity;
mod information_schema;
mod objects;

use crate::bind::Output;
use crate::catalog::is_system;
use crate::partition_names::partition_relations;
use crate::{Database, SqlResult};
use pagefold_engine::Error;
use pagefold_engine::database::{RangePartition, Transaction, split_partition_name};
use pagefold_engine::index::Index;
use pagefold_engine::table_space::Table;
use pagefold_format::catalog::Notes;
use pagefold_types::{DataType, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const NUMBER: DataType = DataType::BigInt;
const FRACTION: DataType = DataType::Double;
const TRUTH: DataType = DataType::Boolean;

/// Rows of one of them.
type Rows = Vec<Vec<Value>>;

/// A table of the database's own.
pub(crate) struct SystemTable {
    /// As a statement has it.
    name: &'static str,
    columns: &'static [(&'static str, DataType)],
    rows: fn(&mut Seen<'_>) -> SqlResult<Rows>,
}

/// What rows are made of.
struct Seen<'a> {
    database: &'a Database,
    transaction: &'a mut Transaction<'static>,
    /// The monotonic clock.
    clock: Duration,
}

/// Relations of the database's own that can be read, with their columns and these columns' types, for tools that show what there is.
pub fn system_relations() -> impl Iterator<Item = (&'static str, &'static [(&'static str, DataType)])> {
    ALL.into_iter().flatten().map(|table| (table.name, table.columns))
}

static ALL: [&[SystemTable]; 3] = [information_schema::TABLES, objects::TABLES, activity::TABLES];

impl std::fmt::Debug for SystemTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for SystemTable {
    fn eq(&self, other: &SystemTable) -> bool {
        self.name == other.name
    }
}

impl SystemTable {
    /// The one of this name, as a statement has it.
    pub(crate) fn named(name: &str) -> Option<&'static SystemTable> {
        ALL.into_iter().flatten().find(|table| table.name == name)
    }

    /// Its name without its schema.
    pub(crate) fn name(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }

    pub(crate) fn columns(&self) -> Vec<Output> {
        self.columns.iter().map(|(name, data_type)| Output { name: (*name).into(), data_type: *data_type }).collect()
    }

    /// Its rows.
    ///
    /// # Errors
    /// When a table cannot be opened.
    pub(crate) fn rows(&self, database: &Database, transaction: &mut Transaction<'static>, clock: Duration) -> SqlResult<Vec<Vec<Value>>> {
        (self.rows)(&mut Seen { database, transaction, clock })
    }
}

/// A table that is not divided, or a partition, as a transaction finds it.
struct Part {
    table: Arc<Table>,
    notes: Arc<Notes>,
    indexes: Vec<Arc<Index>>,
}

impl Part {
    fn is_template(&self) -> bool {
        RangePartition::of(&self.table).is_some_and(|partition| partition.is_template())
    }

    fn find(transaction: &mut Transaction<'static>, name: &str) -> SqlResult<Option<Part>> {
        let mut find = || {
            let table = transaction.table(name)?;
            let (notes, indexes) = (transaction.notes_of_table(&table), transaction.indexes(&table)?);
            Ok(Part { table, notes, indexes })
        };
        match find() {
            Ok(part) => Ok(Some(part)),
            // It has come since the snapshot, or goes at this moment.
            Err(Error::Unknown { .. } | Error::Stale { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Seen<'_> {
    /// All tables by name, with their parts: one that is divided is one table.
    fn tables(&mut self) -> SqlResult<BTreeMap<String, Vec<Part>>> {
        let mut tables: BTreeMap<String, Vec<Part>> = BTreeMap::new();
        for name in self.transaction.table_names() {
            let Some(part) = Part::find(self.transaction, &name)? else { continue };
            let whole = split_partition_name(&name).filter(|_| part.table.attributes().range.is_some());
            let name = whole.map_or(&*name, |(name, _)| name).to_owned();
            tables.entry(name).or_default().push(part);
        }
        // A template stands for its table where there is no other partition.
        for parts in tables.values_mut().filter(|parts| parts.len() > 1) {
            parts.retain(|part| !part.is_template());
        }
        tables.retain(|name, _| !is_system(name));
        Ok(tables)
    }

    /// Rows of each table, and of each partition that is a relation of its own.
    fn of_relations(&mut self, mut push: impl FnMut(&str, &Part, &mut Rows)) -> SqlResult<Rows> {
        let mut rows = Vec::new();
        self.tables()?.iter().for_each(|(name, parts)| push(name, &parts[0], &mut rows));
        for (name, own) in partition_relations(self.transaction)? {
            if let Some(part) = Part::find(self.transaction, &own)?.filter(|_| !is_system(&name)) {
                push(&name, &part, &mut rows);
            }
        }
        Ok(rows)
    }

    /// Rows of each table.
    fn of_tables(&mut self, mut push: impl FnMut(&str, &[Part], &mut Rows)) -> SqlResult<Rows> {
        let mut rows = Vec::new();
        self.tables()?.iter().for_each(|(name, parts)| push(name, parts, &mut rows));
        Ok(rows)
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn number(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Schema and name.
fn split(name: &str) -> (&str, &str) {
    name.split_once('.').unwrap_or(("public", name))
}

fn text_or_null(value: Option<&str>) -> Value {
    value.map_or(Value::Null, text)
}

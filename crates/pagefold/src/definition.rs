//! What a table is to be like.

use crate::row::{Fitted, IntoValues, fit};
use crate::{Error, Result};
use pagefold_engine::database::{PartitionSpec, limit_key};
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::table_space::{Method, TableAttributes};
use pagefold_types::{Column, DataType, Direction, Schema, Value, ValueRef};

/// Page size of tables.
const PAGE_BYTES: usize = 16 * 1024;
/// Page size of indexes.
const INDEX_PAGE_BYTES: usize = 8 * 1024;

/// Columns, primary key and compression of a table that is to be made.
#[derive(Clone, Debug)]
pub struct TableDefinition {
    columns: Vec<Column>,
    primary_key: Vec<String>,
    method: Method,
    page_bytes: usize,
    partition_by: Vec<String>,
    partitions: Vec<PartitionDefinition>,
}

impl Default for TableDefinition {
    fn default() -> TableDefinition {
        TableDefinition::new()
    }
}

impl TableDefinition {
    /// No columns yet; rows by column in pages of 16 KB.
    #[must_use]
    pub fn new() -> TableDefinition {
        TableDefinition {
            columns: Vec::new(),
            primary_key: Vec::new(),
            method: Method::Page,
            page_bytes: PAGE_BYTES,
            partition_by: Vec::new(),
            partitions: Vec::new(),
        }
    }

    /// One more column, which is never NULL.
    #[must_use]
    pub fn column(mut self, name: impl Into<String>, data_type: DataType) -> TableDefinition {
        self.columns.push(Column::new(name, data_type, false));
        self
    }

    /// One more column, which may be NULL.
    #[must_use]
    pub fn nullable(mut self, name: impl Into<String>, data_type: DataType) -> TableDefinition {
        self.columns.push(Column::new(name, data_type, true));
        self
    }

    /// The columns whose values tell rows apart. An index on them comes with the table, by the name of the table and `_pk`.
    #[must_use]
    pub fn primary_key<N: Into<String>>(mut self, columns: impl IntoIterator<Item = N>) -> TableDefinition {
        self.primary_key = columns.into_iter().map(Into::into).collect();
        self
    }

    /// How rows are compressed.
    #[must_use]
    pub fn method(mut self, method: Method) -> TableDefinition {
        self.method = method;
        self
    }

    /// Page size: 2 to 32 KB in steps of 2 KB.
    #[must_use]
    pub fn page_bytes(mut self, bytes: usize) -> TableDefinition {
        self.page_bytes = bytes;
        self
    }

    /// Divides the table by ranges of the values of these columns, which a primary key must have among its own. [`partition`](Self::partition)
    /// says which ranges.
    #[must_use]
    pub fn partition_by<N: Into<String>>(mut self, columns: impl IntoIterator<Item = N>) -> TableDefinition {
        self.partition_by = columns.into_iter().map(Into::into).collect();
        self
    }

    /// One more partition, behind those that were said before.
    #[must_use]
    pub fn partition(mut self, partition: PartitionDefinition) -> TableDefinition {
        self.partitions.push(partition);
        self
    }

    /// The columns by which the table is divided, and its partitions, if it is.
    pub(crate) fn take_partitions(&mut self) -> Option<(Vec<String>, Vec<PartitionDefinition>)> {
        let (columns, partitions) = (std::mem::take(&mut self.partition_by), std::mem::take(&mut self.partitions));
        (!columns.is_empty() || !partitions.is_empty()).then_some((columns, partitions))
    }

    pub(crate) fn attributes(self, name: &str) -> Result<TableAttributes> {
        let refused = |e: &dyn std::fmt::Display| Error::Parameter(format!("table \"{name}\": {e}"));
        let schema = Schema::new(self.columns).map_err(|e| refused(&e))?;
        let primary_key = self.primary_key.iter().map(|column| schema.index_of(column).map_err(|e| refused(&e)));
        let primary_key = primary_key.collect::<Result<Vec<usize>>>()?;
        let mut attributes = TableAttributes::new(name, schema).with_page_bytes(self.page_bytes);
        (attributes.method, attributes.primary_key) = (self.method, primary_key);
        Ok(attributes)
    }
}

/// A range partition that is to be made: the rows that are below its limit, and not below that of the partition before.
#[derive(Clone, Debug)]
pub struct PartitionDefinition {
    name: String,
    limit: Option<Vec<Value>>,
    method: Option<Method>,
    page_bytes: Option<usize>,
}

impl PartitionDefinition {
    /// Of rows whose values are less than these: one for each column by which the table is divided, or for the first of them.
    #[must_use]
    pub fn below(name: impl Into<String>, limit: impl IntoValues) -> PartitionDefinition {
        let limit = Some(limit.values().iter().map(ValueRef::to_owned).collect());
        PartitionDefinition { name: name.into(), limit, method: None, page_bytes: None }
    }

    /// Of all rows that are not below the limit of the partition before.
    #[must_use]
    pub fn rest(name: impl Into<String>) -> PartitionDefinition {
        PartitionDefinition { name: name.into(), limit: None, method: None, page_bytes: None }
    }

    /// How its rows are compressed, if not like those of the others.
    #[must_use]
    pub fn method(mut self, method: Method) -> PartitionDefinition {
        self.method = Some(method);
        self
    }

    /// Its page size, likewise.
    #[must_use]
    pub fn page_bytes(mut self, bytes: usize) -> PartitionDefinition {
        self.page_bytes = Some(bytes);
        self
    }

    pub(crate) fn spec(&self, attributes: &TableAttributes, columns: &[usize]) -> Result<PartitionSpec> {
        let limit = match &self.limit {
            None => None,
            Some(values) => {
                let own = attributes.schema.columns();
                let fitted = values.iter().zip(columns).map(|(value, column)| fit(value.as_ref(), &own[*column]));
                let fitted = fitted.collect::<Result<Vec<Fitted<'_>>>>()?;
                let mut limit: Vec<Option<ValueRef<'_>>> = fitted.iter().map(|value| Some(value.as_ref())).collect();
                // What is too much is refused there.
                limit.extend(values.iter().skip(columns.len()).map(|value| Some(value.as_ref())));
                limit_key(attributes, columns, &limit)?
            }
        };
        Ok(PartitionSpec { name: self.name.clone(), limit, method: self.method, page_bytes: self.page_bytes, ..PartitionSpec::default() })
    }
}

/// Columns of an index that is to be made.
#[derive(Clone, Debug)]
pub struct IndexDefinition {
    columns: Vec<(String, Direction)>,
    unique: bool,
    format: IndexFormat,
    page_bytes: usize,
}

impl IndexDefinition {
    /// Of these columns, ascending; compressed by prefixes, in pages of 8 KB.
    #[must_use]
    pub fn new<N: Into<String>>(columns: impl IntoIterator<Item = N>) -> IndexDefinition {
        let columns = columns.into_iter().map(|column| (column.into(), Direction::Ascending)).collect();
        IndexDefinition { columns, unique: false, format: IndexFormat::Prefix, page_bytes: INDEX_PAGE_BYTES }
    }

    /// One more column, descending.
    #[must_use]
    pub fn descending(mut self, column: impl Into<String>) -> IndexDefinition {
        self.columns.push((column.into(), Direction::Descending));
        self
    }

    /// No two rows have the same key, unless it has a NULL.
    #[must_use]
    pub fn unique(mut self) -> IndexDefinition {
        self.unique = true;
        self
    }

    /// How its leaves are compressed, and its page size.
    #[must_use]
    pub fn format(mut self, format: IndexFormat, page_bytes: usize) -> IndexDefinition {
        (self.format, self.page_bytes) = (format, page_bytes);
        self
    }

    pub(crate) fn attributes(self, name: &str, schema: &Schema) -> Result<IndexAttributes> {
        let position = |column: &str| schema.index_of(column).map_err(|e| Error::Parameter(format!("index \"{name}\": {e}")));
        let columns = self.columns.iter().map(|(column, direction)| Ok((position(column)?, *direction)));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(IndexAttributes::new(name, columns, self.unique).with_format(self.format, self.page_bytes))
    }
}

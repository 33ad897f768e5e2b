//! What a table is to be like.

use crate::{Error, Result};
use pagefold_engine::index::{IndexAttributes, IndexFormat};
use pagefold_engine::table_space::{Method, TableAttributes};
use pagefold_types::{Column, DataType, Direction, Schema};

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
        TableDefinition { columns: Vec::new(), primary_key: Vec::new(), method: Method::Page, page_bytes: PAGE_BYTES }
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

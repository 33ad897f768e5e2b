//! What to read of a table, said step by step: columns, a condition, a range of keys, how many.
//!
//! Invariant: a selection reads what one statement sees, by the same scans as everything else.

use crate::row::{IntoValues, Row};
use crate::table::{ByIndex, Table};
use crate::{Error, IntoCondition, Result};
use pagefold_engine::btree::Direction;
use pagefold_engine::database::{PartRows, PartScan, RowScan, Scan, ScanRequest};
use pagefold_engine::table_space as space;
#[cfg(feature = "arrow")]
use pagefold_engine::table_space::ColumnBatch;
use pagefold_types::{Condition, KeyRange, Schema, Value};
use std::ops::RangeBounds;
use std::sync::Arc;

/// Rows of a table that are to be read. Made by [`Table::select`] and [`ByIndex::select`]; nothing is read before one of the
/// last calls: [`rows`](Self::rows), or with the feature `arrow` `record_batches`.
#[derive(Clone, Debug)]
#[must_use = "nothing is read before rows or record_batches"]
pub struct Select<'t> {
    pub(crate) table: Table<'t>,
    /// Columns by number, in the order in which they were named.
    pub(crate) columns: Vec<usize>,
    path: Path<'t>,
    condition: Option<Condition>,
    limit: Option<u64>,
}

/// How a selection comes to its rows.
#[derive(Clone, Debug)]
enum Path<'t> {
    /// As they lie.
    Pages,
    /// By an index, range by range.
    Index { index: ByIndex<'t>, ranges: Vec<KeyRange>, direction: Direction },
}

/// Rows one after the other: of a scan, or a range of keys. They are those that the statement saw when it began, but for rows that its own transaction changes meanwhile: these come as they are when the scan
/// comes to them. Nothing is held up by a slow reader.
#[derive(Debug)]
pub struct Rows {
    schema: Arc<Schema>,
    scan: RowsOf,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one for each scan")]
enum RowsOf {
    Table(RowScan),
    Partitions(PartRows),
}

impl RowsOf {
    fn next(&mut self) -> Option<Result<Vec<Value>>> {
        match self {
            RowsOf::Table(rows) => Some(rows.next()?.map(|(_, values)| values)),
            RowsOf::Partitions(rows) => rows.next(),
        }
    }
}

/// Batches of rows of a table, or of partitions, each with the table that it is of.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one for each scan")]
#[cfg_attr(not(feature = "arrow"), allow(dead_code, reason = "who makes arrays of batches needs the table of each"))]
pub(crate) enum Batches {
    Table(Scan, Arc<space::Table>),
    Partitions(PartScan),
}

impl Batches {
    #[cfg(feature = "arrow")]
    pub(crate) fn next(&mut self) -> Option<Result<(Arc<space::Table>, ColumnBatch)>> {
        match self {
            Batches::Table(scan, table) => Some(scan.next()?.map(|batch| (Arc::clone(table), batch))),
            Batches::Partitions(scan) => scan.next(),
        }
    }

    #[cfg(feature = "arrow")]
    pub(crate) fn split(self, parts: usize) -> Vec<Batches> {
        match self {
            Batches::Table(scan, table) => scan.split(parts).into_iter().map(|scan| Batches::Table(scan, Arc::clone(&table))).collect(),
            Batches::Partitions(scan) => scan.split(parts).into_iter().map(Batches::Partitions).collect(),
        }
    }

    fn into_rows(self) -> RowsOf {
        match self {
            Batches::Table(scan, _) => RowsOf::Table(scan.into_rows()),
            Batches::Partitions(scan) => RowsOf::Partitions(scan.into_rows()),
        }
    }
}

impl Iterator for Rows {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        self.scan.next().map(|next| next.map(|values| Row::new(&self.schema, values)))
    }
}

impl<'t> Table<'t> {
    /// Some columns of the rows, by name, in this order.
    ///
    /// ```
    /// # use pagefold::{DataType, Database, TableDefinition};
    /// # fn main() -> pagefold::Result<()> {
    /// # let database = Database::in_memory()?;
    /// # let transaction = database.begin();
    /// # let definition = TableDefinition::new().column("name", DataType::Varchar(None)).nullable("built", DataType::Integer);
    /// # let ships = transaction.create_table("ship", definition.primary_key(["name"]))?;
    /// ships.insert(("Fram", 1892))?;
    /// ships.insert(("Vega", 1872))?;
    /// let old = ships.select(["name"])?.filter("built < 1900")?.range("G"..)?.limit(10);
    /// let names: Vec<String> = old.rows()?.map(|row| row?.get("name")).collect::<Result<_, _>>()?;
    /// assert_eq!(names, ["Vega"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When there is no such column, or one is named twice.
    pub fn select<'n>(&self, columns: impl IntoIterator<Item = &'n str>) -> Result<Select<'t>> {
        let place = |name: &str| self.stored().index_of(name).map_err(|e| Error::Value(format!("table \"{}\": {e}", self.name())));
        let columns = columns.into_iter().map(place).collect::<Result<Vec<usize>>>()?;
        if let Some(twice) = columns.iter().enumerate().find_map(|(at, column)| columns[..at].contains(column).then_some(*column)) {
            let name = &self.stored().columns()[twice].name;
            return Err(Error::Value(format!("table \"{}\": column \"{name}\" is named twice", self.name())));
        }
        Ok(Select { columns, ..self.all() })
    }

    /// All columns of all rows, as they lie.
    pub(crate) fn all(&self) -> Select<'t> {
        let columns = self.places().to_vec();
        Select { table: self.clone(), columns, path: Path::Pages, condition: None, limit: None }
    }
}

impl<'t> ByIndex<'t> {
    /// Some columns of the rows, by name, in this order; rows come in the order of the index.
    ///
    /// # Errors
    /// As [`Table::select`].
    pub fn select<'n>(&self, columns: impl IntoIterator<Item = &'n str>) -> Result<Select<'t>> {
        Ok(self.ordered(self.table().select(columns)?))
    }

    /// The same rows in the order of the index.
    pub(crate) fn ordered(&self, select: Select<'t>) -> Select<'t> {
        let ranges = vec![KeyRange { start: Vec::new(), end: None }];
        Select { path: Path::Index { index: self.clone(), ranges, direction: Direction::Forward }, ..select }
    }
}

impl<'t> Select<'t> {
    /// Only rows for which a condition is true, as in [`Table::filter`]; said twice, both.
    ///
    /// # Errors
    /// As there.
    pub fn filter(mut self, condition: impl IntoCondition) -> Result<Select<'t>> {
        let more = condition.into_condition().map_err(|e| Error::Parameter(e.to_string()))?;
        let condition = match self.condition.take() {
            Some(condition) => condition.and(more),
            None => more,
        };
        // What cannot be compared is refused here, where it was said.
        condition.clone().bind(self.table.stored()).map_err(|e| Error::Parameter(e.to_string()))?;
        Ok(Select { condition: Some(condition), ..self })
    }

    /// Only rows whose keys are in a range, in the order of the keys: of the index that it was selected by, else of the primary
    /// key. A bound may have the first values of a key only.
    ///
    /// # Errors
    /// When there is no primary key, or a value is none of its column.
    pub fn range<K: IntoValues>(self, range: impl RangeBounds<K>) -> Result<Select<'t>> {
        let (index, direction) = self.index()?;
        let ranges = vec![index.key_range(range)?];
        Ok(Select { path: Path::Index { index, ranges, direction }, ..self })
    }

    /// Only rows that have one of these keys, in the order in which they are listed: of the index that it was selected by, else of the primary key. Each may be the first values of a
    /// key only; one that no row has is passed over. Rows are asked for ahead: many are faster read than by [`Table::get`].
    ///
    /// ```
    /// # use pagefold::{DataType, Database, TableDefinition};
    /// # fn main() -> pagefold::Result<()> {
    /// # let database = Database::in_memory()?;
    /// # let transaction = database.begin();
    /// # let definition = TableDefinition::new().column("name", DataType::Varchar(None)).nullable("built", DataType::Integer);
    /// # let ships = transaction.create_table("ship", definition.primary_key(["name"]))?;
    /// ships.insert(("Fram", 1892))?;
    /// ships.insert(("Vega", 1872))?;
    /// let built = ships.select(["built"])?.keys(["Vega", "Gjoa", "Fram"])?.rows()?;
    /// let built: Vec<i64> = built.map(|row| row?.get("built")).collect::<Result<_, _>>()?;
    /// assert_eq!(built, [1872, 1892]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`range`](Self::range).
    pub fn keys<K: IntoValues>(self, keys: impl IntoIterator<Item = K>) -> Result<Select<'t>> {
        let (index, direction) = self.index()?;
        let ranges = keys.into_iter().map(|key| index.key_range::<K>(&key..=&key)).collect::<Result<_>>()?;
        Ok(Select { path: Path::Index { index, ranges, direction }, ..self })
    }

    /// The index that it reads by, else the primary key, and which way.
    fn index(&self) -> Result<(ByIndex<'t>, Direction)> {
        match &self.path {
            Path::Index { index, direction, .. } => Ok((index.clone(), *direction)),
            Path::Pages => Ok((self.table.following(Table::primary)?, Direction::Forward)),
        }
    }

    /// From the last key to the first. Without a range or an index: of the primary key.
    ///
    /// # Errors
    /// When there is no primary key.
    pub fn backward(self) -> Result<Select<'t>> {
        let mut select = match self.path {
            Path::Index { .. } => self,
            Path::Pages => self.table.following(Table::primary)?.ordered(self),
        };
        if let Path::Index { direction, .. } = &mut select.path {
            *direction = Direction::Backward;
        }
        Ok(select)
    }

    /// At most so many rows.
    pub fn limit(self, rows: u64) -> Select<'t> {
        Select { limit: Some(rows), ..self }
    }

    /// The engine's scan, and the table that it is of: the one that has come in the place of this one, if it has been written anew.
    pub(crate) fn scan(&self) -> Result<Batches> {
        let bound = self.condition.clone().map(|condition| condition.bind(self.table.stored()));
        let condition = bound.transpose().map_err(|e| Error::Parameter(e.to_string()))?;
        let request = ScanRequest { columns: Some(self.columns.clone()), condition, limit: self.limit, rids: false };
        if let Some(whole) = self.table.whole() {
            let scan = whole.run(|partitions| {
                let condition = request.condition.as_ref();
                let (parts, order) = match &self.path {
                    Path::Pages => partitions.all_parts(condition)?,
                    Path::Index { index, ranges, direction } => {
                        let name = index.of_whole().unwrap_or_else(|| index.name());
                        partitions.index_parts(name, index.inner(), ranges, *direction, condition)?
                    }
                };
                self.table.read_view()?.parts(parts, order, &request)
            });
            return scan.map(Batches::Partitions);
        }
        match &self.path {
            Path::Pages => self
                .table
                .following(|table| Ok(Batches::Table(table.read_view()?.scan(table.inner(), &request)?, Arc::clone(table.inner())))),
            Path::Index { index, ranges, direction } => index.following(|by| {
                let (view, table) = (by.table().read_view()?, by.table());
                let scan = view.ranges(table.inner(), by.inner(), ranges.clone(), *direction, &request)?;
                Ok(Batches::Table(scan, Arc::clone(table.inner())))
            }),
        }
    }

    /// The rows, one after the other.
    ///
    /// # Errors
    /// When the table does not count for the transaction any more.
    pub fn rows(self) -> Result<Rows> {
        let schema = self.table.columns_at(&self.columns)?;
        Ok(Rows { schema, scan: self.scan()?.into_rows() })
    }
}

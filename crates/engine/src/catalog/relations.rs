//! The catalog's relations, and how entries become rows and rows entries.
//!
//! The catalog is a table space with one BYTEA column. Each row is a relation number (one byte) and a packed record of that relation:
//!
//! | Number | Relation | Columns |
//! |---|---|---|
//! | 1 | tables | object, name, method, page size, PCTFREE, MAXROWS, extents, partition size, pool |
//! | 2 | columns | object, ordinal, name, type, nullable |
//! | 3 | key columns | object (table: primary key; index), ordinal, column, descending |
//! | 4 | indexes | object, table, name, unique, format, page size, PCTFREE, extents, pool |
//! | 5 | data sets | object, partition, file id, writes of the header page |
//! | 6 | source schemas | object, sequence, bytes |
//!
//! Invariant: what is read is checked as if a stranger had written it; an entry that makes no sense is an error, not a panic.

use super::entries::{CatalogEntries, DataSetEntry, IndexEntry, TableEntry};
use crate::data_set::Extents;
use crate::index::{IndexAttributes, IndexFormat};
use crate::table_space::{BulkLoader, Method, RowBuffer, Table, TableAttributes};
use crate::{Error, Result};
use pagefold_format::wire::{Reader, put_bytes};
use pagefold_types::{Column, DataType, Direction, RowLayout, Schema, Value, ValueRef};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::str::FromStr;
use std::sync::OnceLock;

const TABLES: u8 = 1;
const COLUMNS: u8 = 2;
const KEY_COLUMNS: u8 = 3;
const INDEXES: u8 = 4;
const DATA_SETS: u8 = 5;
const SOURCE_SCHEMAS: u8 = 6;

/// Bytes of a source schema in one row.
const SOURCE_SCHEMA_PART: usize = 1024;

/// A row of the catalog is at most so long: it fits a page of its table space.
const ROW_BYTES_MAX: usize = 3500;

/// Page size of the catalog's own table space.
const CATALOG_PAGE_BYTES: usize = 4096;

/// The attributes of the catalog's own table space.
///
/// # Errors
/// Never in practice: the schema is a constant.
pub fn catalog_attributes() -> Result<TableAttributes> {
    let schema = Schema::new(vec![Column::new("row", DataType::Bytea, false)]).map_err(|e| damaged(&e))?;
    Ok(TableAttributes { pool: "CATALOG".into(), ..TableAttributes::new("catalog", schema).with_page_bytes(CATALOG_PAGE_BYTES) })
}

fn damaged(reason: &dyn std::fmt::Display) -> Error {
    Error::Damaged { path: "catalog".into(), reason: reason.to_string() }
}

/// How the records of a relation are laid out.
fn layout(relation: u8) -> Result<&'static RowLayout> {
    static LAYOUTS: OnceLock<Vec<Option<RowLayout>>> = OnceLock::new();
    let layouts = LAYOUTS.get_or_init(|| (0..=SOURCE_SCHEMAS).map(|relation| make_layout(relation).ok()).collect());
    let found = layouts.get(usize::from(relation)).and_then(Option::as_ref);
    found.ok_or_else(|| damaged(&format!("unknown relation {relation}")))
}

fn make_layout(relation: u8) -> Result<RowLayout> {
    let columns: &[(&str, DataType, bool)] = match relation {
        TABLES => &[
            ("object", DataType::BigInt, false),
            ("page_bytes", DataType::BigInt, false),
            ("pctfree", DataType::BigInt, false),
            ("maxrows", DataType::BigInt, false),
            ("first_extent", DataType::BigInt, false),
            ("second_extent", DataType::BigInt, false),
            ("partition_bytes", DataType::BigInt, false),
            ("name", DataType::Varchar(None), false),
            ("method", DataType::Varchar(None), false),
            ("pool", DataType::Varchar(None), false),
        ],
        COLUMNS => &[
            ("object", DataType::BigInt, false),
            ("ordinal", DataType::BigInt, false),
            ("nullable", DataType::BigInt, false),
            ("name", DataType::Varchar(None), false),
            ("type", DataType::Varchar(None), false),
        ],
        KEY_COLUMNS => &[
            ("object", DataType::BigInt, false),
            ("ordinal", DataType::BigInt, false),
            ("column", DataType::BigInt, false),
            ("descending", DataType::BigInt, false),
        ],
        INDEXES => &[
            ("object", DataType::BigInt, false),
            ("table", DataType::BigInt, false),
            ("unique", DataType::BigInt, false),
            ("page_bytes", DataType::BigInt, false),
            ("pctfree", DataType::BigInt, false),
            ("first_extent", DataType::BigInt, false),
            ("second_extent", DataType::BigInt, false),
            ("name", DataType::Varchar(None), false),
            ("format", DataType::Varchar(None), false),
            ("pool", DataType::Varchar(None), false),
        ],
        DATA_SETS => &[
            ("object", DataType::BigInt, false),
            ("partition", DataType::BigInt, false),
            ("file", DataType::BigInt, false),
            ("header_writes", DataType::BigInt, true),
        ],
        SOURCE_SCHEMAS => &[("object", DataType::BigInt, false), ("sequence", DataType::BigInt, false), ("bytes", DataType::Bytea, false)],
        other => return Err(damaged(&format!("unknown relation {other}"))),
    };
    let columns = columns.iter().map(|(name, data_type, nullable)| Column::new(*name, *data_type, *nullable)).collect();
    let schema = Schema::new(columns).map_err(|e| damaged(&e))?;
    RowLayout::new(&schema).map_err(|e| damaged(&e))
}

/// Makes the rows of entries.
struct Rows<'a> {
    put: &'a mut dyn FnMut(&[u8]) -> Result<()>,
}

impl Rows<'_> {
    fn push(&mut self, relation: u8, values: &[ValueRef<'_>]) -> Result<()> {
        let mut row = vec![relation];
        layout(relation)?.encode(values, &mut row).map_err(|e| damaged(&e))?;
        if row.len() > ROW_BYTES_MAX {
            return Err(Error::Parameter(format!(
                "a name of {} bytes: the catalog has no place for more than about {ROW_BYTES_MAX}",
                row.len()
            )));
        }
        (self.put)(&row)
    }

    fn data_sets(&mut self, object: i64, entries: &[DataSetEntry]) -> Result<()> {
        for entry in entries {
            let writes = entry.header_writes.map_or(ValueRef::Null, |w| int(w.into()));
            self.push(DATA_SETS, &[int(object), int(entry.partition.into()), int(entry.file_id.into()), writes])?;
        }
        Ok(())
    }

    fn key(&mut self, object: i64, columns: impl Iterator<Item = (usize, Direction)>) -> Result<()> {
        for (ordinal, (column, direction)) in columns.enumerate() {
            let descending = i64::from(direction == Direction::Descending);
            self.push(KEY_COLUMNS, &[int(object), int(ordinal as i64), int(column as i64), int(descending)])?;
        }
        Ok(())
    }

    fn table(&mut self, table: &TableEntry) -> Result<()> {
        let object = i64::from(table.object_id);
        let a = &table.attributes;
        self.push(
            TABLES,
            &[
                int(object),
                int(a.page_bytes as i64),
                int(a.pctfree.into()),
                int(a.maxrows.into()),
                int(a.extents.first_bytes as i64),
                int(a.extents.second_bytes as i64),
                int(a.partition_bytes as i64),
                ValueRef::Text(&a.name),
                ValueRef::Text(a.method.name()),
                ValueRef::Text(&a.pool),
            ],
        )?;
        for (ordinal, column) in a.schema.columns().iter().enumerate() {
            let data_type = column.data_type.to_string();
            self.push(
                COLUMNS,
                &[int(object), int(ordinal as i64), int(column.nullable.into()), ValueRef::Text(&column.name), ValueRef::Text(&data_type)],
            )?;
        }
        self.key(object, a.primary_key.iter().map(|column| (*column, Direction::Ascending)))?;
        self.data_sets(object, &table.data_sets)?;
        for (sequence, part) in a.source_schema.chunks(SOURCE_SCHEMA_PART).enumerate() {
            self.push(SOURCE_SCHEMAS, &[int(object), int(sequence as i64), ValueRef::Bytes(part)])?;
        }
        Ok(())
    }

    fn index(&mut self, index: &IndexEntry) -> Result<()> {
        let object = i64::from(index.object_id);
        let a = &index.attributes;
        self.push(
            INDEXES,
            &[
                int(object),
                int(index.table_id.into()),
                int(a.unique.into()),
                int(a.page_bytes as i64),
                int(a.pctfree.into()),
                int(a.extents.first_bytes as i64),
                int(a.extents.second_bytes as i64),
                ValueRef::Text(&a.name),
                ValueRef::Text(a.format.name()),
                ValueRef::Text(&a.pool),
            ],
        )?;
        self.key(object, a.columns.iter().copied())?;
        self.data_sets(object, &index.data_sets)
    }
}

fn int(value: i64) -> ValueRef<'static> {
    ValueRef::Int(value)
}

/// Writes all entries into an empty catalog table space.
pub(crate) fn write_catalog(space: &Table, entries: &CatalogEntries) -> Result<()> {
    let mut loader = BulkLoader::new(space)?;
    let mut record = Vec::new();
    let mut put = |row: &[u8]| {
        record.clear();
        space.layout().encode(&[ValueRef::Bytes(row)], &mut record).map_err(|e| damaged(&e))?;
        loader.push(&record, |_, _| Ok(()))
    };
    let mut rows = Rows { put: &mut put };
    entries.tables.iter().try_for_each(|table| rows.table(table))?;
    entries.indexes.iter().try_for_each(|index| rows.index(index))?;
    loader.finish(|_, _| Ok(()))
}

/// What the log says of a table or index that comes: its rows of the catalog, each with its length before it.
fn definition(make: impl FnOnce(&mut Rows<'_>) -> Result<()>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut put = |row: &[u8]| {
        put_bytes(&mut bytes, row);
        Ok(())
    };
    make(&mut Rows { put: &mut put })?;
    Ok(bytes)
}

/// What the log says of a table that comes.
pub(crate) fn table_definition(table: &TableEntry) -> Result<Vec<u8>> {
    definition(|rows| rows.table(table))
}

/// What the log says of an index that comes.
pub(crate) fn index_definition(index: &IndexEntry) -> Result<Vec<u8>> {
    definition(|rows| rows.index(index))
}

/// A table or index that comes.
#[derive(Clone, Debug, PartialEq)]
pub enum Defined {
    /// A table.
    Table(TableEntry),
    /// An index.
    Index(IndexEntry),
}

/// The data sets in what the log says of a table or index that comes.
///
/// # Errors
/// When the rows make no sense.
pub(crate) fn definition_data_sets(object_id: u32, bytes: &[u8]) -> Result<Vec<DataSetEntry>> {
    parts_of(&definition_parts(bytes)?.data_sets, object_id)
}

fn definition_parts(bytes: &[u8]) -> Result<CatalogParts> {
    let mut reader = Reader::new(bytes);
    let mut parts = CatalogParts::default();
    while !reader.is_empty() {
        parts.add(reader.bytes().map_err(|e| damaged(&e))?)?;
    }
    Ok(parts)
}

/// Reads what the log says of a table or index that comes; `schema` gives the columns of a table that is there.
///
/// # Errors
/// When the rows are not those of one object with this number.
pub fn read_definition(object_id: u32, bytes: &[u8], schema: impl Fn(u32) -> Option<Schema>) -> Result<Defined> {
    let (mut entries, errors) = definition_parts(bytes)?.finish_beside(schema);
    if let Some(error) = errors.into_iter().next() {
        return Err(error);
    }
    let defined = match (entries.tables.pop(), entries.indexes.pop()) {
        (Some(table), None) if table.object_id == object_id => Defined::Table(table),
        (None, Some(index)) if index.object_id == object_id => Defined::Index(index),
        _ => return Err(damaged(&format!("the log does not define object {object_id} where it says so"))),
    };
    if entries != CatalogEntries::default() {
        return Err(damaged(&format!("the log defines more than object {object_id}")));
    }
    Ok(defined)
}

/// A catalog row, its columns taken one by one.
struct Fields(std::vec::IntoIter<Value>);

impl Fields {
    fn int(&mut self) -> Result<i64> {
        match self.0.next() {
            Some(Value::Int(value)) => Ok(value),
            other => Err(damaged(&format!("a number was expected, not {other:?}"))),
        }
    }

    fn number<T: TryFrom<i64>>(&mut self) -> Result<T> {
        let value = self.int()?;
        T::try_from(value).map_err(|_| damaged(&format!("the number {value} is out of range")))
    }

    fn text(&mut self) -> Result<String> {
        match self.0.next() {
            Some(Value::Text(value)) => Ok(value),
            other => Err(damaged(&format!("a text was expected, not {other:?}"))),
        }
    }

    fn bytes(&mut self) -> Result<Vec<u8>> {
        match self.0.next() {
            Some(Value::Bytes(value)) => Ok(value),
            other => Err(damaged(&format!("bytes were expected, not {other:?}"))),
        }
    }

    fn optional<T: TryFrom<i64>>(&mut self) -> Result<Option<T>> {
        if matches!(self.0.as_slice().first(), Some(Value::Null)) {
            self.0.next();
            return Ok(None);
        }
        self.number().map(Some)
    }
}

/// The rows of a catalog, put together to entries: by whoever opens the database, and by `check`, which reads the pages itself.
#[derive(Default)]
pub struct CatalogParts {
    tables: Vec<(u32, Fields)>,
    indexes: Vec<(u32, Fields)>,
    columns: BTreeMap<(u32, u32), Column>,
    keys: BTreeMap<(u32, u32), (usize, Direction)>,
    data_sets: BTreeMap<(u32, u32), DataSetEntry>,
    source_schemas: BTreeMap<(u32, u32), Vec<u8>>,
}

fn parts_of<T: Clone>(map: &BTreeMap<(u32, u32), T>, object: u32) -> Result<Vec<T>> {
    let found: Vec<(u32, T)> = map.range((object, 0)..=(object, u32::MAX)).map(|((_, i), part)| (*i, part.clone())).collect();
    if found.iter().enumerate().any(|(expected, (i, _))| expected as u32 != *i) {
        return Err(damaged(&format!("a part of object {object} is missing")));
    }
    Ok(found.into_iter().map(|(_, part)| part).collect())
}

impl CatalogParts {
    /// Takes one row of the catalog's table space (the value of its only column).
    ///
    /// # Errors
    /// When it is not a row of a known relation; it is then left out.
    pub fn add(&mut self, row: &[u8]) -> Result<()> {
        let (&relation, record) = row.split_first().ok_or_else(|| damaged(&"an empty row"))?;
        let layout = layout(relation)?;
        layout.validate(record).map_err(|e| damaged(&e))?;
        let values: Result<Vec<Value>> =
            (0..layout.column_count()).map(|i| layout.value(record, i).map(|v| v.to_owned()).map_err(|e| damaged(&e))).collect();
        let mut fields = Fields(values?.into_iter());
        let object: u32 = fields.number()?;
        match relation {
            TABLES => self.tables.push((object, fields)),
            INDEXES => self.indexes.push((object, fields)),
            COLUMNS => {
                let ordinal = fields.number()?;
                let nullable = fields.int()? != 0;
                let name = fields.text()?;
                let data_type = DataType::from_str(&fields.text()?).map_err(|e| damaged(&e))?;
                self.columns.insert((object, ordinal), Column::new(name, data_type, nullable));
            }
            KEY_COLUMNS => {
                let ordinal = fields.number()?;
                let column = fields.number()?;
                let direction = if fields.int()? == 0 { Direction::Ascending } else { Direction::Descending };
                self.keys.insert((object, ordinal), (column, direction));
            }
            DATA_SETS => {
                let partition: u16 = fields.number()?;
                let entry = DataSetEntry { partition, file_id: fields.number()?, header_writes: fields.optional()? };
                self.data_sets.insert((object, u32::from(partition)), entry);
            }
            _ => {
                let sequence = fields.number()?;
                self.source_schemas.insert((object, sequence), fields.bytes()?);
            }
        }
        Ok(())
    }

    /// All entries that can be made of the rows, and what is wrong with the others.
    #[must_use]
    pub fn finish(self) -> (CatalogEntries, Vec<Error>) {
        self.finish_beside(|_| None)
    }

    /// The same beside tables that are there already, whose columns `schema` gives.
    fn finish_beside(mut self, schema: impl Fn(u32) -> Option<Schema>) -> (CatalogEntries, Vec<Error>) {
        let mut entries = CatalogEntries::default();
        let mut errors = Vec::new();
        let mut positions = BTreeMap::new();
        for (object, fields) in std::mem::take(&mut self.tables) {
            match self.table(object, fields) {
                Ok(table) => {
                    positions.entry(object).or_insert(entries.tables.len());
                    entries.tables.push(table);
                }
                Err(error) => errors.push(error),
            }
        }
        for (object, fields) in std::mem::take(&mut self.indexes) {
            let columns = |id| positions.get(&id).map(|at: &usize| entries.tables[*at].attributes.schema.clone()).or_else(|| schema(id));
            match self.index(object, fields, columns) {
                Ok(index) => entries.indexes.push(index),
                Err(error) => errors.push(error),
            }
        }
        (entries, errors)
    }

    fn table(&self, object: u32, mut fields: Fields) -> Result<TableEntry> {
        let schema = Schema::new(parts_of(&self.columns, object)?).map_err(|e| damaged(&e))?;
        let page_bytes = fields.number()?;
        let pctfree = fields.number()?;
        let maxrows = fields.number()?;
        let extents = Extents { first_bytes: fields.number()?, second_bytes: fields.number()? };
        let partition_bytes = fields.number()?;
        let name = fields.text()?;
        let method = Method::from_str(&fields.text()?)?;
        let pool = fields.text()?;
        let primary_key: Vec<usize> = parts_of(&self.keys, object)?.into_iter().map(|(column, _)| column).collect();
        if primary_key.iter().any(|column| *column >= schema.len()) {
            return Err(damaged(&format!("table \"{name}\": its primary key names a column that does not exist")));
        }
        let attributes = TableAttributes {
            name,
            schema,
            method,
            page_bytes,
            pctfree,
            maxrows,
            extents,
            partition_bytes,
            pool,
            primary_key,
            source_schema: parts_of(&self.source_schemas, object)?.concat(),
        };
        attributes.check()?;
        Ok(TableEntry { object_id: object, attributes, data_sets: parts_of(&self.data_sets, object)? })
    }

    fn index(&self, object: u32, mut fields: Fields, schema: impl Fn(u32) -> Option<Schema>) -> Result<IndexEntry> {
        let table_id: u32 = fields.number()?;
        let unique = fields.int()? != 0;
        let page_bytes = fields.number()?;
        let pctfree = fields.number()?;
        let extents = Extents { first_bytes: fields.number()?, second_bytes: fields.number()? };
        let name = fields.text()?;
        let format = IndexFormat::from_str(&fields.text()?)?;
        let pool = fields.text()?;
        let columns = parts_of(&self.keys, object)?;
        let attributes = IndexAttributes { name, columns, unique, format, page_bytes, pctfree, extents, pool };
        let schema = schema(table_id)
            .ok_or_else(|| damaged(&format!("index \"{}\" belongs to table number {table_id}, which does not exist", attributes.name)))?;
        attributes.check(&schema)?;
        let data_sets = parts_of(&self.data_sets, object)?;
        if data_sets.len() != 1 {
            return Err(damaged(&format!("index \"{}\" has {} data sets", attributes.name, data_sets.len())));
        }
        Ok(IndexEntry { object_id: object, table_id, attributes, data_sets })
    }
}

/// Reads all entries.
pub(crate) fn read_catalog(space: &Table) -> Result<CatalogEntries> {
    let mut parts = CatalogParts::default();
    space.scan(&mut RowBuffer::default(), |_, record| {
        let row = space.layout().bytes_at(record, 0).map_err(|e| damaged(&e))?;
        parts.add(row.ok_or_else(|| damaged(&"a row is NULL"))?)?;
        Ok::<_, Error>(ControlFlow::Continue(()))
    })?;
    let (entries, errors) = parts.finish();
    errors.into_iter().next().map_or(Ok(entries), Err)
}

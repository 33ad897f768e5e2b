//! An object as bytes: what the catalog keeps of it, and what the log says when it comes.
//!
//! Invariant: what is read is checked as if a stranger had written it; a definition that makes no sense is an error, not a panic.

use super::entries::{IndexEntry, OtherEntry, TableEntry};
use crate::data_set::{DataSetEntry, Extents};
use crate::index::{IndexAttributes, IndexFormat};
use crate::table_space::{ColumnHistory, Layouts, Method, RangeOf, TableAttributes};
use crate::{Error, Result};
use pagefold_format::FormatError;
use pagefold_format::catalog::attributes::{Attribute, Attributes, must_be_known, put, put_number, unknown};
use pagefold_format::catalog::{DEFINITION_BYTES_MAX, DefinedKind, DefinitionView, Notes, definition_head, tag};
use pagefold_format::wire::{Reader, put_varint};
use pagefold_types::{Column, DataType, Direction, Schema, SchemaError};
use std::borrow::Cow;
use std::str::FromStr;

pub(super) fn damaged(reason: &dyn std::fmt::Display) -> Error {
    Error::Damaged { path: "catalog".into(), reason: reason.to_string() }
}

fn refuse(reason: impl Into<Cow<'static, str>>) -> FormatError {
    FormatError::new(reason)
}

fn put_extents(out: &mut Vec<u8>, extents: Extents) {
    let mut bytes = Vec::new();
    put_varint(&mut bytes, extents.first_bytes);
    put_varint(&mut bytes, extents.second_bytes);
    put(out, tag::EXTENTS, &bytes);
}

fn put_key(out: &mut Vec<u8>, columns: impl Iterator<Item = (usize, Direction)>) {
    let mut bytes = Vec::new();
    for (column, direction) in columns {
        put_varint(&mut bytes, column as u64);
        bytes.push((direction == Direction::Descending).into());
    }
    if !bytes.is_empty() {
        put(out, tag::KEY, &bytes);
    }
}

fn put_data_sets(out: &mut Vec<u8>, data_sets: &[DataSetEntry]) {
    for entry in data_sets {
        let mut bytes = Vec::new();
        for number in [entry.partition.into(), entry.file_id, entry.header_writes.unwrap_or(0)] {
            put_varint(&mut bytes, number.into());
        }
        put(out, tag::DATA_SET, &bytes);
    }
}

/// A column at its place, and what it was in the layouts that there have been.
fn put_column(out: &mut Vec<u8>, (at, column): (usize, &Column), layouts: &Layouts) {
    let mut bytes = Vec::new();
    put(&mut bytes, tag::COLUMN_NAME, column.name.as_bytes());
    put(&mut bytes, tag::COLUMN_TYPE, column.data_type.to_string().as_bytes());
    if column.nullable {
        put(&mut bytes, tag::COLUMN_NULLABLE, &[]);
    }
    if let Some((_, history)) = layouts.columns().get(at) {
        put(&mut bytes, tag::COLUMN_LAYOUTS, &history.encode());
        history.before().iter().for_each(|before| put(&mut bytes, tag::COLUMN_BEFORE, before));
    }
    put(out, tag::COLUMN, &bytes);
}

/// A definition with these attributes, by tag, and the notes among them.
///
/// # Errors
/// When it is too long for the catalog.
fn definition(kind: DefinedKind, own: &[u8], notes: &Notes, name: &str) -> Result<Vec<u8>> {
    let mut bytes = definition_head(kind);
    notes.write_with(own, &mut bytes);
    if bytes.len() > DEFINITION_BYTES_MAX {
        return Err(Error::Parameter(format!(
            "{} \"{}\": its definition takes {} bytes, the catalog has place for {DEFINITION_BYTES_MAX}",
            kind.name(),
            name.chars().take(64).collect::<String>(),
            bytes.len()
        )));
    }
    Ok(bytes)
}

/// What the catalog has of a table, and the log says of one that comes.
pub(crate) fn table_definition(table: &TableEntry) -> Result<Vec<u8>> {
    let a = &table.attributes;
    let mut out = Vec::with_capacity(256);
    put(&mut out, tag::NAME, a.name.as_bytes());
    for column in a.schema.columns().iter().enumerate() {
        put_column(&mut out, column, &a.layouts);
    }
    // Of changes that were taken back: pages may have been written with them.
    for (at, (name, _)) in a.layouts.columns().iter().enumerate().skip(a.schema.len()) {
        put_column(&mut out, (at, &Column::new(name.as_str(), DataType::Boolean, true)), &a.layouts);
    }
    put(&mut out, tag::METHOD, a.method.name().as_bytes());
    put_number(&mut out, tag::PAGE_BYTES, a.page_bytes as u64);
    put_number(&mut out, tag::PCTFREE, a.pctfree.into());
    put_number(&mut out, tag::MAXROWS, a.maxrows.into());
    put_extents(&mut out, a.extents);
    put_number(&mut out, tag::PARTITION_BYTES, a.partition_bytes);
    put(&mut out, tag::POOL, a.pool.as_bytes());
    put_key(&mut out, a.primary_key.iter().map(|column| (*column, Direction::Ascending)));
    put_data_sets(&mut out, &table.data_sets);
    if !a.source_schema.is_empty() {
        put(&mut out, tag::SOURCE_SCHEMA, &a.source_schema);
    }
    if a.layouts.number() > 0 {
        put_number(&mut out, tag::LAYOUT_VERSION, a.layouts.number().into());
    }
    if let Some(range) = &a.range {
        range.written().map_err(|e| Error::Parameter(format!("table \"{}\": {e}", a.name)))?.write_with(&[], &mut out);
    }
    definition(DefinedKind::Table, &out, &a.notes, &a.name)
}

/// What the catalog has of an index, and the log says of one that comes.
pub(crate) fn index_definition(index: &IndexEntry) -> Result<Vec<u8>> {
    let a = &index.attributes;
    let mut out = Vec::with_capacity(128);
    put(&mut out, tag::NAME, a.name.as_bytes());
    put_number(&mut out, tag::TABLE, index.table_id.into());
    put_number(&mut out, tag::PAGE_BYTES, a.page_bytes as u64);
    put_number(&mut out, tag::PCTFREE, a.pctfree.into());
    put_extents(&mut out, a.extents);
    put(&mut out, tag::POOL, a.pool.as_bytes());
    put_key(&mut out, a.columns.iter().copied());
    if a.unique {
        put(&mut out, tag::UNIQUE, &[]);
    }
    put(&mut out, tag::FORMAT, a.format.name().as_bytes());
    put_data_sets(&mut out, &index.data_sets);
    index.damaged.iter().for_each(|reason| put(&mut out, tag::DAMAGED, reason.as_bytes()));
    definition(DefinedKind::Index, &out, &a.notes, &a.name)
}

/// A definition with other data sets.
///
/// # Errors
/// When it is none.
pub(crate) fn with_data_sets(bytes: &[u8], data_sets: &[DataSetEntry]) -> Result<Vec<u8>> {
    let view = DefinitionView::new(bytes).map_err(|e| damaged(&e))?;
    let mut out = definition_head(view.kind);
    let mut pending = Some(data_sets);
    for attribute in view.attributes() {
        let attribute = attribute.map_err(|e| damaged(&e))?;
        if attribute.tag >= tag::DATA_SET {
            pending.take().iter().for_each(|data_sets| put_data_sets(&mut out, data_sets));
        }
        if attribute.tag != tag::DATA_SET {
            put(&mut out, attribute.tag, attribute.bytes);
        }
    }
    pending.take().iter().for_each(|data_sets| put_data_sets(&mut out, data_sets));
    Ok(out)
}

/// A definition that takes the place of another one: with the data sets of that, and damaged if that was. A mark never goes: the index does.
///
/// # Errors
/// When one of them is none.
pub(crate) fn in_place_of(definition: &[u8], before: &[u8]) -> Result<Vec<u8>> {
    let altered = with_data_sets(definition, &definition_data_sets(before)?)?;
    match (definition_damage(before)?, definition_damage(&altered)?) {
        (Some(reason), None) => with_attribute(&altered, tag::DAMAGED, reason.as_bytes()),
        _ => Ok(altered),
    }
}

/// A definition with one more attribute.
fn with_attribute(bytes: &[u8], tag: u32, value: &[u8]) -> Result<Vec<u8>> {
    let view = DefinitionView::new(bytes).map_err(|e| damaged(&e))?;
    let mut out = definition_head(view.kind);
    let mut pending = Some(value);
    for attribute in view.attributes() {
        let attribute = attribute.map_err(|e| damaged(&e))?;
        if attribute.tag > tag {
            pending.take().iter().for_each(|value| put(&mut out, tag, value));
        }
        put(&mut out, attribute.tag, attribute.bytes);
    }
    pending.take().iter().for_each(|value| put(&mut out, tag, value));
    Ok(out)
}

/// Why the index that a definition is of is not to be used, if it says so.
///
/// # Errors
/// When the bytes are none.
pub(crate) fn definition_damage(bytes: &[u8]) -> Result<Option<String>> {
    let view = DefinitionView::new(bytes).map_err(|e| damaged(&e))?;
    if view.kind != DefinedKind::Index {
        return Ok(None);
    }
    for attribute in view.attributes() {
        let attribute = attribute.map_err(|e| damaged(&e))?;
        if attribute.tag >= tag::DAMAGED {
            let reason = (attribute.tag == tag::DAMAGED).then(|| attribute.text().map(str::to_owned));
            return reason.transpose().map_err(|e| damaged(&e));
        }
    }
    Ok(None)
}

/// An object that comes, or is there.
#[derive(Clone, Debug, PartialEq)]
pub enum Defined {
    /// A table.
    Table(TableEntry),
    /// An index.
    Index(IndexEntry),
    /// Something that has no pages.
    Other(OtherEntry),
}

/// The data sets in a definition.
///
/// # Errors
/// When the bytes are none.
pub(crate) fn definition_data_sets(bytes: &[u8]) -> Result<Vec<DataSetEntry>> {
    let view = DefinitionView::new(bytes).map_err(|e| damaged(&e))?;
    let mut parts = Parts::default();
    for attribute in view.attributes() {
        let attribute = attribute.map_err(|e| damaged(&e))?;
        if attribute.tag == tag::DATA_SET {
            parts.data_set(attribute).map_err(|e| damaged(&e))?;
        }
    }
    Ok(parts.data_sets)
}

/// Of which rows of a partitioned table the table of a definition is a partition.
///
/// # Errors
/// When the bytes are none.
pub(crate) fn definition_range(bytes: &[u8]) -> Result<Option<RangeOf>> {
    let view = DefinitionView::new(bytes).map_err(|e| damaged(&e))?;
    let mut range = Notes::default();
    for attribute in view.attributes() {
        let attribute = attribute.map_err(|e| damaged(&e))?;
        if matches!(attribute.tag, tag::RANGE_COLUMNS | tag::RANGE_PARTITION) {
            range.take(attribute).map_err(|e| damaged(&e))?;
        }
    }
    RangeOf::read(&range).map_err(|e| damaged(&format!("{} \"{}\": {e}", view.kind.name(), view.name)))
}

/// What a definition says beside what the engine acts on.
///
/// # Errors
/// When the bytes are none.
pub(crate) fn definition_notes(bytes: &[u8]) -> Result<Notes> {
    let view = DefinitionView::new(bytes).map_err(|e| damaged(&e))?;
    let mut parts = Parts::default();
    view.attributes().try_for_each(|attribute| parts.take(view.kind, attribute?)).map_err(|e| damaged(&e))?;
    Ok(parts.notes)
}

/// What the catalog has of something that has no pages, and the log says when it comes.
pub(crate) fn other_definition(kind: DefinedKind, name: &str, notes: &Notes) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    put(&mut out, tag::NAME, name.as_bytes());
    definition(kind, &out, notes, name)
}

/// Reads a definition; `schema` gives the columns of a table that is there.
///
/// # Errors
/// When the bytes are none, or a later version has said what must be known.
pub fn read_definition(object_id: u32, bytes: &[u8], schema: impl Fn(u32) -> Option<Schema>) -> Result<Defined> {
    let view = DefinitionView::new(bytes).map_err(|e| damaged(&format!("object number {object_id}: {e}")))?;
    let of_object = |e: FormatError| damaged(&format!("{} \"{}\": {e}", view.kind.name(), view.name));
    let mut parts = Parts::default();
    for attribute in view.attributes() {
        attribute.and_then(|attribute| parts.take(view.kind, attribute)).map_err(of_object)?;
    }
    let name = view.name.to_owned();
    match view.kind {
        DefinedKind::Table => Ok(Defined::Table(parts.table(object_id, name).map_err(of_object)?.checked()?)),
        DefinedKind::Index => {
            let index = parts.index(object_id, name).map_err(of_object)?;
            let table = schema(index.table_id)
                .ok_or_else(|| of_object(refuse(format!("it belongs to table number {}, which does not exist", index.table_id))))?;
            index.attributes.check(&table)?;
            Ok(Defined::Index(index))
        }
        kind => Ok(Defined::Other(OtherEntry { object_id, kind, name, definition: bytes.into(), notes: parts.notes })),
    }
}

impl TableEntry {
    fn checked(self) -> Result<TableEntry> {
        self.attributes.check()?;
        Ok(self)
    }
}

/// What was read of a definition so far.
#[derive(Default)]
struct Parts {
    table: Option<u32>,
    columns: Vec<(Column, Option<ColumnHistory>)>,
    /// The layout that rows get.
    layout: u8,
    method: Option<Method>,
    page_bytes: Option<usize>,
    pctfree: u8,
    maxrows: Option<u16>,
    extents: Option<Extents>,
    partition_bytes: Option<u64>,
    pool: Option<String>,
    key: Vec<(usize, Direction)>,
    unique: bool,
    format: Option<IndexFormat>,
    data_sets: Vec<DataSetEntry>,
    source_schema: Vec<u8>,
    damaged: Option<String>,
    /// What is said of the range of a range partition.
    range: Notes,
    notes: Notes,
}

fn named<T: FromStr<Err = Error>>(attribute: Attribute<'_>) -> std::result::Result<T, FormatError> {
    T::from_str(attribute.text()?).map_err(|e| refuse(e.to_string()))
}

fn missing(what: &'static str) -> FormatError {
    refuse(format!("its {what} is missing"))
}

impl Parts {
    fn take(&mut self, kind: DefinedKind, attribute: Attribute<'_>) -> std::result::Result<(), FormatError> {
        let (of_table, of_index) = (kind == DefinedKind::Table, kind == DefinedKind::Index);
        let of_both = of_table || of_index;
        match attribute.tag {
            tag::NAME => {}
            tag::TABLE if of_index => self.table = Some(attribute.number()?),
            tag::COLUMN if of_table => self.columns.push(column(attribute.bytes, self.columns.len())?),
            tag::METHOD if of_table => self.method = Some(named(attribute)?),
            tag::PAGE_BYTES if of_both => self.page_bytes = Some(attribute.number()?),
            tag::PCTFREE if of_both => self.pctfree = attribute.number()?,
            tag::MAXROWS if of_table => self.maxrows = Some(attribute.number()?),
            tag::EXTENTS if of_both => {
                let mut reader = Reader::new(attribute.bytes);
                self.extents = Some(Extents { first_bytes: reader.varint()?, second_bytes: reader.varint()? });
                attribute.ends(&reader)?;
            }
            tag::PARTITION_BYTES if of_table => self.partition_bytes = Some(attribute.number()?),
            tag::POOL if of_both => self.pool = Some(attribute.text()?.into()),
            tag::KEY if of_both => self.key = key(attribute)?,
            tag::UNIQUE if of_index => self.unique = attribute.mark()?,
            tag::FORMAT if of_index => self.format = Some(named(attribute)?),
            tag::DATA_SET if of_both => self.data_set(attribute)?,
            tag::DAMAGED if of_index => self.damaged = Some(attribute.text()?.into()),
            tag::SOURCE_SCHEMA if of_table => self.source_schema = attribute.bytes.to_vec(),
            tag::LAYOUT_VERSION if of_table => {
                self.layout = attribute.number()?;
            }
            tag::NEXT_COLUMN if of_table => {
                let next: u32 = attribute.number()?;
                if next as usize != self.columns.len() {
                    return Err(refuse("it has lost columns, which this version cannot read"));
                }
            }
            tag::RANGE_COLUMNS | tag::RANGE_PARTITION if of_table => self.range.take(attribute)?,
            other if kind_is_later(kind) && !must_be_known(other) => self.notes.take(attribute)?,
            other if kind_is_later(kind) => {
                // Nothing is done with it, and its bytes stay as they are.
                let _ = other;
            }
            other if other < tag::FIRST_NOTE && must_be_known(other) => return Err(unknown(other)),
            _ => self.notes.take(attribute)?,
        }
        Ok(())
    }

    fn data_set(&mut self, attribute: Attribute<'_>) -> std::result::Result<(), FormatError> {
        let mut reader = Reader::new(attribute.bytes);
        let (partition, file_id, writes) = (reader.varint16()?, reader.varint32()?, reader.varint32()?);
        attribute.ends(&reader)?;
        if usize::from(partition) != self.data_sets.len() {
            return Err(refuse(format!("partition {partition} where {} comes next", self.data_sets.len())));
        }
        self.data_sets.push(DataSetEntry { file_id, partition, header_writes: Some(writes).filter(|writes| *writes > 0) });
        Ok(())
    }

    fn table(self, object_id: u32, name: String) -> std::result::Result<TableEntry, FormatError> {
        let (schema, layouts) = columns_of(self.layout, self.columns)?;
        if self.key.iter().any(|(column, _)| *column >= schema.len()) {
            return Err(refuse("its primary key names a column that does not exist"));
        }
        if self.key.iter().any(|(_, direction)| *direction == Direction::Descending) {
            return Err(refuse("a column of its primary key descends"));
        }
        let attributes = TableAttributes {
            name,
            schema,
            layouts,
            method: self.method.ok_or_else(|| missing("method"))?,
            page_bytes: self.page_bytes.ok_or_else(|| missing("page size"))?,
            pctfree: self.pctfree,
            maxrows: self.maxrows.ok_or_else(|| missing("MAXROWS"))?,
            extents: self.extents.ok_or_else(|| missing("extents"))?,
            partition_bytes: self.partition_bytes.ok_or_else(|| missing("partition size"))?,
            pool: self.pool.ok_or_else(|| missing("pool"))?,
            primary_key: self.key.into_iter().map(|(column, _)| column).collect(),
            source_schema: self.source_schema,
            range: RangeOf::read(&self.range)?,
            notes: self.notes,
        };
        Ok(TableEntry { object_id, attributes, data_sets: self.data_sets })
    }

    fn index(self, object_id: u32, name: String) -> std::result::Result<IndexEntry, FormatError> {
        if self.data_sets.len() > 1 {
            return Err(refuse(format!("it has {} data sets", self.data_sets.len())));
        }
        let attributes = IndexAttributes {
            name,
            columns: self.key,
            unique: self.unique,
            format: self.format.ok_or_else(|| missing("format"))?,
            page_bytes: self.page_bytes.ok_or_else(|| missing("page size"))?,
            pctfree: self.pctfree,
            extents: self.extents.ok_or_else(|| missing("extents"))?,
            pool: self.pool.ok_or_else(|| missing("pool"))?,
            notes: self.notes,
        };
        let table_id = self.table.ok_or_else(|| missing("table"))?;
        Ok(IndexEntry { object_id, table_id, attributes, data_sets: self.data_sets, damaged: self.damaged })
    }
}

fn kind_is_later(kind: DefinedKind) -> bool {
    matches!(kind, DefinedKind::Later(_))
}

fn key(attribute: Attribute<'_>) -> std::result::Result<Vec<(usize, Direction)>, FormatError> {
    let mut reader = Reader::new(attribute.bytes);
    let mut columns = Vec::new();
    while !reader.is_empty() {
        let column = reader.varint32()? as usize;
        let direction = match reader.u8()? {
            0 => Direction::Ascending,
            1 => Direction::Descending,
            other => return Err(refuse(format!("a key column in order {other}"))),
        };
        columns.push((column, direction));
    }
    Ok(columns)
}

/// The columns that rows get, and those of all layouts.
fn columns_of(layout: u8, columns: Vec<(Column, Option<ColumnHistory>)>) -> std::result::Result<(Schema, Layouts), FormatError> {
    let refused = |e: SchemaError| refuse(e.to_string());
    if layout == 0 && columns.iter().all(|(_, history)| history.is_none()) {
        let schema = Schema::new(columns.into_iter().map(|(column, _)| column).collect()).map_err(refused)?;
        return Ok((schema, Layouts::default()));
    }
    let types: Vec<Column> = columns.iter().map(|(column, _)| column.clone()).collect();
    let history = |(column, history): (Column, Option<ColumnHistory>)| Some((column.name, history?));
    let histories = columns.into_iter().map(history).collect::<Option<Vec<_>>>();
    let layouts = Layouts::read(layout, histories.ok_or_else(|| refuse("a column of which no layout says what it is"))?)?;
    // A type that takes all values of another as they lie needs no layout of its own: the columns themselves say which it is.
    let own = layouts.schema(layout).map_err(refused)?;
    let is_so = |column: &Column, own: &Column| column.data_type.holds_as_is(&own.data_type) && column.nullable == own.nullable;
    if !types.iter().zip(own.columns()).all(|(column, own)| is_so(column, own)) {
        return Err(refuse("a column that is another one in its layout"));
    }
    let named = types.into_iter().zip(own.columns()).map(|(column, own)| Column::new(own.name.clone(), column.data_type, own.nullable));
    Ok((Schema::new(named.collect()).map_err(refused)?, layouts))
}

/// A column, at its place among the columns, and what it was in the layouts that there have been.
fn column(bytes: &[u8], place: usize) -> std::result::Result<(Column, Option<ColumnHistory>), FormatError> {
    let (mut name, mut data_type, mut nullable) = (None, None, false);
    let (mut layouts, mut before) = (None, None);
    for attribute in Attributes::new(bytes) {
        let attribute = attribute?;
        match attribute.tag {
            tag::COLUMN_NAME => name = Some(attribute.text()?),
            tag::COLUMN_TYPE => data_type = Some(DataType::from_str(attribute.text()?).map_err(|e| refuse(e.to_string()))?),
            tag::COLUMN_NULLABLE => nullable = attribute.mark()?,
            tag::COLUMN_ID if attribute.number::<u32>()? as usize == place => {}
            tag::COLUMN_ID => return Err(refuse("a column that is not at its place")),
            tag::COLUMN_LAYOUTS => layouts = Some(attribute.bytes),
            tag::COLUMN_BEFORE => before = Some(attribute.bytes),
            other => return Err(unknown(other)),
        }
    }
    let history = layouts.map(|bytes| ColumnHistory::decode(bytes, before)).transpose()?;
    match (name, data_type) {
        (Some(name), Some(data_type)) => Ok((Column::new(name, data_type, nullable), history)),
        _ => Err(refuse("a column without name or type")),
    }
}

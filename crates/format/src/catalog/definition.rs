//! What an object is, and how that lies in rows of the catalog.
//!
//! | Offset | Size | Field of a definition |
//! |---|---|---|
//! | 0 | 1 | form of the definition: 1 |
//! | 1 | 1 | kind: 1 table, 2 index, 3 view, 4 sequence, 5 schema, 6 partitioned table, 7 partitioned index. One of 128 and above that a reader does not know it keeps as it is; one below it refuses |
//! | 2 | | attributes; the first is the name |
//!
//! | Offset | Size | Field of a row of the catalog |
//! |---|---|---|
//! | 0 | 1 | kind of row: 1, a part of a definition |
//! | 1 | 4 | object id |
//! | 5 | 2 | number of the part, from 0 |
//! | 7 | 2 | number of parts |
//! | 9 | | bytes of the part |
//!
//! Invariant: the log has the same bytes of a definition as the catalog, in one piece.

use super::attributes::{Attribute, Attributes};
use crate::FormatError;
use crate::wire::Reader;

/// Tags of attributes of a definition. Those from 64 on are notes: the store itself does not act on them.
pub mod tag {
    /// Its name.
    pub const NAME: u32 = 1;
    /// Of an index: object id of the table.
    pub const TABLE: u32 = 3;
    /// A list: columns, each with attributes of its own.
    pub const COLUMN: u32 = 5;
    /// Method of a table.
    pub const METHOD: u32 = 7;
    /// Page size.
    pub const PAGE_BYTES: u32 = 9;
    /// PCTFREE.
    pub const PCTFREE: u32 = 11;
    /// MAXROWS.
    pub const MAXROWS: u32 = 13;
    /// Bytes of the first extent, and of further ones.
    pub const EXTENTS: u32 = 15;
    /// Bytes of a partition.
    pub const PARTITION_BYTES: u32 = 17;
    /// Buffer pool.
    pub const POOL: u32 = 19;
    /// Columns of the primary key or of the index, each with 1 when it descends.
    pub const KEY: u32 = 21;
    /// No bytes: the index is unique.
    pub const UNIQUE: u32 = 23;
    /// Format of the leaves of an index.
    pub const FORMAT: u32 = 25;
    /// A list: partition, file id, writes of the header page (0: no file).
    pub const DATA_SET: u32 = 27;
    /// The schema of the source.
    pub const SOURCE_SCHEMA: u32 = 28;
    /// The layout that rows get; not there: 0.
    pub const LAYOUT_VERSION: u32 = 29;
    /// The lowest column id never used; not there: the number of columns.
    pub const NEXT_COLUMN: u32 = 31;
    /// Of an index: it is damaged, and has not been kept since; why, as text. What its data set has is not to be believed.
    pub const DAMAGED: u32 = 33;
    /// The first tag of what the store does not act on.
    pub const FIRST_NOTE: u32 = 64;
    /// A comment.
    pub const COMMENT: u32 = 64;
    /// Object id of its schema; not there: the schema `main`.
    pub const SCHEMA: u32 = 65;
    /// Statistics, as who makes them writes them.
    pub const STATISTICS: u32 = 66;
    /// A list: what is said of a column ([`ColumnNotes`](crate::catalog::ColumnNotes)).
    pub const COLUMN_NOTES: u32 = 67;
    /// A list: constraints ([`Constraint`](crate::catalog::Constraint)).
    pub const CONSTRAINT: u32 = 69;
    /// Of a partitioned table, and of each of its range partitions: ids of the columns by which it is divided.
    pub const RANGE_COLUMNS: u32 = 71;
    /// Of a table that is a range partition: which one ([`RangePartition`](crate::catalog::RangePartition)).
    pub const RANGE_PARTITION: u32 = 73;
    /// What a view selects, as text.
    pub const TEXT: u32 = 75;
    /// How the numbers of a sequence go ([`Sequence`](crate::catalog::Sequence)).
    pub const SEQUENCE: u32 = 77;
    /// Of a partitioned index: object id of its partitioned table.
    pub const PARTITIONED_TABLE: u32 = 79;

    /// Name of a column.
    pub const COLUMN_NAME: u32 = 1;
    /// Type of a column, as text.
    pub const COLUMN_TYPE: u32 = 3;
    /// No bytes: the column may be NULL.
    pub const COLUMN_NULLABLE: u32 = 5;
    /// Id of the column, which no other of the table ever has; not there: its place among the columns.
    pub const COLUMN_ID: u32 = 7;
    /// What the column is in which layouts of the table; not there: the same in all.
    pub const COLUMN_LAYOUTS: u32 = 9;
    /// What a row of a layout without the column has in it, as a record of one column that may be NULL.
    pub const COLUMN_BEFORE: u32 = 13;
}

/// A definition is at most so long.
pub const DEFINITION_BYTES_MAX: usize = 1 << 20;

/// A row of the catalog is at most so long: it fits a page of its table space.
pub const ROW_BYTES_MAX: usize = 3500;

const FORM: u8 = 1;
const PART: u8 = 1;
const ROW_HEADER_BYTES: usize = 9;
const PART_BYTES_MAX: usize = ROW_BYTES_MAX - ROW_HEADER_BYTES;
/// Kinds from here on may be kept by who does not know them.
const FIRST_KEPT_KIND: u8 = 128;

const _: () = assert!(DEFINITION_BYTES_MAX.div_ceil(PART_BYTES_MAX) <= u16::MAX as usize);

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DefinedKind {
    /// A table.
    Table,
    /// An index.
    Index,
    /// A view.
    View,
    /// A sequence.
    Sequence,
    /// A schema: what has names of its own.
    Schema,
    /// A table that is divided by ranges: each of them is a table.
    PartitionedTable,
    /// An index of a partitioned table: each of its tables has an index.
    PartitionedIndex,
    /// Something that a later version has made, by its number.
    Later(u8),
}

impl DefinedKind {
    const KNOWN: [DefinedKind; 7] = [
        DefinedKind::Table,
        DefinedKind::Index,
        DefinedKind::View,
        DefinedKind::Sequence,
        DefinedKind::Schema,
        DefinedKind::PartitionedTable,
        DefinedKind::PartitionedIndex,
    ];

    /// Its number in a definition.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            DefinedKind::Table => 1,
            DefinedKind::Index => 2,
            DefinedKind::View => 3,
            DefinedKind::Sequence => 4,
            DefinedKind::Schema => 5,
            DefinedKind::PartitionedTable => 6,
            DefinedKind::PartitionedIndex => 7,
            DefinedKind::Later(number) => number,
        }
    }

    /// What errors call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DefinedKind::Table => "table",
            DefinedKind::Index => "index",
            DefinedKind::View => "view",
            DefinedKind::Sequence => "sequence",
            DefinedKind::Schema => "schema",
            DefinedKind::PartitionedTable => "partitioned table",
            DefinedKind::PartitionedIndex => "partitioned index",
            DefinedKind::Later(_) => "object of a later version",
        }
    }

    fn from_number(number: u8) -> Result<DefinedKind, FormatError> {
        match DefinedKind::KNOWN.into_iter().find(|kind| kind.number() == number) {
            Some(kind) => Ok(kind),
            None if number >= FIRST_KEPT_KIND => Ok(DefinedKind::Later(number)),
            None => Err(FormatError::new(format!(
                "an object of kind {number}, which a later version has made: this version cannot use the database"
            ))),
        }
    }
}

/// A definition as its bytes have it: form, kind and name are looked at, the rest is not.
#[derive(Clone, Copy, Debug)]
pub struct DefinitionView<'a> {
    /// What it defines.
    pub kind: DefinedKind,
    /// Its name.
    pub name: &'a str,
    attributes: &'a [u8],
}

impl<'a> DefinitionView<'a> {
    /// A view of a definition.
    ///
    /// # Errors
    /// When it is of another form, of a kind that must be known, or has no name.
    pub fn new(bytes: &'a [u8]) -> Result<DefinitionView<'a>, FormatError> {
        let mut reader = Reader::new(bytes);
        let form = reader.u8()?;
        if form != FORM {
            return Err(FormatError::new(format!("a definition of form {form}, which this version does not know")));
        }
        let kind = DefinedKind::from_number(reader.u8()?)?;
        let attributes = reader.rest();
        let first = Attributes::new(attributes).next().transpose()?;
        let name = first.filter(|attribute| attribute.tag == tag::NAME).ok_or_else(|| FormatError::new("a definition without a name"))?;
        Ok(DefinitionView { kind, name: name.text()?, attributes })
    }

    /// All attributes, the name among them.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.attributes)
    }

    /// The table that an index is of.
    ///
    /// # Errors
    /// When there is none.
    pub fn table(&self) -> Result<u32, FormatError> {
        for attribute in self.attributes() {
            let attribute: Attribute<'_> = attribute?;
            if attribute.tag >= tag::TABLE {
                return if attribute.tag == tag::TABLE { attribute.number() } else { break };
            }
        }
        Err(FormatError::new("an index of no table"))
    }
}

/// The first bytes of a definition; its attributes follow.
#[must_use]
pub fn definition_head(kind: DefinedKind) -> Vec<u8> {
    vec![FORM, kind.number()]
}

/// Gives a definition as rows of the catalog.
///
/// # Errors
/// Those of `put`.
pub fn definition_rows<E>(object_id: u32, definition: &[u8], mut put: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    let parts = definition.len().div_ceil(PART_BYTES_MAX).max(1);
    let mut row = Vec::with_capacity(ROW_BYTES_MAX.min(definition.len() + ROW_HEADER_BYTES));
    for part in 0..parts {
        let bytes = &definition[part * PART_BYTES_MAX..definition.len().min((part + 1) * PART_BYTES_MAX)];
        row.clear();
        row.push(PART);
        row.extend_from_slice(&object_id.to_le_bytes());
        row.extend_from_slice(&(part as u16).to_le_bytes());
        row.extend_from_slice(&(parts as u16).to_le_bytes());
        row.extend_from_slice(bytes);
        put(&row)?;
    }
    Ok(())
}

/// A row of the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowPart<'a> {
    /// The object that it is about.
    pub object_id: u32,
    /// Which part of its definition.
    pub part: u16,
    /// Of how many.
    pub parts: u16,
    /// The part.
    pub bytes: &'a [u8],
}

impl<'a> RowPart<'a> {
    /// Reads a row.
    ///
    /// # Errors
    /// When it is of another kind, or none.
    pub fn parse(row: &'a [u8]) -> Result<RowPart<'a>, FormatError> {
        let mut reader = Reader::new(row);
        let kind = reader.u8()?;
        if kind != PART {
            return Err(FormatError::new(format!("a row of kind {kind}, which this version does not know")));
        }
        let part = RowPart { object_id: reader.u32()?, part: reader.u16()?, parts: reader.u16()?, bytes: reader.rest() };
        if part.part >= part.parts {
            return Err(FormatError::new(format!("part {} of {} of a definition", part.part, part.parts)));
        }
        Ok(part)
    }
}

//! What is said of an object that the store itself does not act on: comments, defaults, constraints, statistics, and what later versions say.
//!
//! Invariant: every attribute was looked at when it came here, so those with attributes of their own can be read.

use super::attributes::{Attribute, Attributes, must_be_known, numbers, put, unknown};
use super::definition::{DEFINITION_BYTES_MAX, tag};
use super::{ColumnNotes, Constraint, RangePartition, Sequence};
use crate::FormatError;
use crate::wire::put_varint;

/// Attributes by tag, lists in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    attributes: Vec<(u32, Box<[u8]>)>,
}

impl Notes {
    /// Takes an attribute of a definition.
    ///
    /// # Errors
    /// When its value is none, or it must be known and is not.
    pub fn take(&mut self, attribute: Attribute<'_>) -> Result<(), FormatError> {
        check(attribute)?;
        self.insert(attribute.tag, attribute.bytes.into());
        Ok(())
    }

    fn insert(&mut self, tag: u32, bytes: Box<[u8]>) {
        let at = self.attributes.partition_point(|(other, _)| *other <= tag);
        self.attributes.insert(at, (tag, bytes));
    }

    /// Is nothing said?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.attributes.is_empty()
    }

    /// Appends the attributes, with those of `own`, which are by tag, among them.
    pub fn write_with(&self, own: &[u8], out: &mut Vec<u8>) {
        if self.attributes.is_empty() {
            out.extend_from_slice(own);
            return;
        }
        let own = Attributes::new(own).filter_map(Result::ok).map(|attribute| (attribute.tag, attribute.bytes));
        let mut all: Vec<(u32, &[u8])> = own.chain(self.attributes.iter().map(|(tag, bytes)| (*tag, &**bytes))).collect();
        all.sort_by_key(|(tag, _)| *tag);
        all.into_iter().for_each(|(tag, bytes)| put(out, tag, bytes));
    }

    /// The attributes of a tag.
    pub fn all(&self, tag: u32) -> impl Iterator<Item = Attribute<'_>> {
        let from = self.attributes.partition_point(|(other, _)| *other < tag);
        let of_tag = self.attributes[from..].iter().take_while(move |(other, _)| *other == tag);
        of_tag.map(|(tag, bytes)| Attribute { tag: *tag, bytes })
    }

    /// The attribute of a tag that comes once.
    #[must_use]
    pub fn get(&self, tag: u32) -> Option<Attribute<'_>> {
        self.all(tag).next()
    }

    /// Puts these values in the place of all of a tag.
    ///
    /// # Errors
    /// When a value is none of this tag, or there is too much of all.
    pub fn set(&mut self, tag: u32, values: impl IntoIterator<Item = Vec<u8>>) -> Result<(), FormatError> {
        let values: Vec<Vec<u8>> = values.into_iter().collect();
        for bytes in &values {
            check(Attribute { tag, bytes })?;
        }
        self.attributes.retain(|(other, _)| *other != tag);
        values.into_iter().for_each(|bytes| self.insert(tag, bytes.into()));
        if self.attributes.iter().map(|(_, bytes)| bytes.len() + 10).sum::<usize>() > DEFINITION_BYTES_MAX / 2 {
            return Err(FormatError::new(format!("more is said of an object than {} bytes", DEFINITION_BYTES_MAX / 2)));
        }
        Ok(())
    }

    /// The comment.
    #[must_use]
    pub fn comment(&self) -> Option<&str> {
        self.get(tag::COMMENT)?.text().ok()
    }

    /// Sets the comment, or takes it away.
    ///
    /// # Errors
    /// When it is too long.
    pub fn set_comment(&mut self, comment: Option<&str>) -> Result<(), FormatError> {
        self.set(tag::COMMENT, comment.map(|text| text.as_bytes().to_vec()))
    }

    /// Object id of the schema; 0 for `main`.
    #[must_use]
    pub fn schema_id(&self) -> u32 {
        self.get(tag::SCHEMA).and_then(|attribute| attribute.number().ok()).unwrap_or(0)
    }

    /// Sets the schema.
    ///
    /// # Errors
    /// When too much is said already.
    pub fn set_schema_id(&mut self, schema_id: u32) -> Result<(), FormatError> {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, schema_id.into());
        self.set(tag::SCHEMA, (schema_id != 0).then_some(bytes))
    }

    /// Statistics, as they were written.
    #[must_use]
    pub fn statistics(&self) -> Option<&[u8]> {
        Some(self.get(tag::STATISTICS)?.bytes)
    }

    /// Sets the statistics.
    ///
    /// # Errors
    /// When they are too long.
    pub fn set_statistics(&mut self, statistics: Option<Vec<u8>>) -> Result<(), FormatError> {
        self.set(tag::STATISTICS, statistics)
    }

    /// What is said of columns.
    #[must_use]
    pub fn columns(&self) -> Vec<ColumnNotes> {
        self.all(tag::COLUMN_NOTES).filter_map(|attribute| ColumnNotes::decode(attribute.bytes).ok()).collect()
    }

    /// What is said of a column, given its id.
    #[must_use]
    pub fn column(&self, column: u32) -> ColumnNotes {
        self.columns().into_iter().find(|notes| notes.column == column).unwrap_or_else(|| ColumnNotes::new(column))
    }

    /// Says something of a column, in the place of what was said.
    ///
    /// # Errors
    /// When it is too much.
    pub fn set_column(&mut self, notes: &ColumnNotes) -> Result<(), FormatError> {
        let mut all = self.columns();
        all.retain(|other| other.column != notes.column);
        if *notes != ColumnNotes::new(notes.column) {
            all.push(notes.clone());
        }
        all.sort_by_key(|notes| notes.column);
        self.set(tag::COLUMN_NOTES, all.iter().map(ColumnNotes::encode))
    }

    /// The constraints.
    #[must_use]
    pub fn constraints(&self) -> Vec<Constraint> {
        self.all(tag::CONSTRAINT).filter_map(|attribute| Constraint::decode(attribute.bytes).ok()).collect()
    }

    /// Sets the constraints.
    ///
    /// # Errors
    /// When they are too long, or two have one name.
    pub fn set_constraints(&mut self, constraints: &[Constraint]) -> Result<(), FormatError> {
        for (i, constraint) in constraints.iter().enumerate() {
            if constraints[..i].iter().any(|other| other.name == constraint.name) {
                return Err(FormatError::new(format!("two constraints \"{}\"", constraint.name)));
            }
        }
        self.set(tag::CONSTRAINT, constraints.iter().map(Constraint::encode))
    }

    /// Ids of the columns by which a table is divided, and its ranges.
    #[must_use]
    pub fn ranges(&self) -> (Vec<u32>, Vec<RangePartition>) {
        let columns = self.get(tag::RANGE_COLUMNS).and_then(|attribute| attribute.numbers().ok()).unwrap_or_default();
        (columns, self.all(tag::RANGE_PARTITION).filter_map(|attribute| RangePartition::decode(attribute.bytes).ok()).collect())
    }

    /// Sets by which columns a table is divided, and its ranges.
    ///
    /// # Errors
    /// When they are too long.
    pub fn set_ranges(&mut self, columns: &[u32], ranges: &[RangePartition]) -> Result<(), FormatError> {
        self.set(tag::RANGE_COLUMNS, (!columns.is_empty()).then(|| numbers(columns)))?;
        self.set(tag::RANGE_PARTITION, ranges.iter().map(RangePartition::encode))
    }

    /// Of a partitioned index: object id of its partitioned table.
    #[must_use]
    pub fn partitioned_table(&self) -> Option<u32> {
        self.get(tag::PARTITIONED_TABLE)?.number().ok()
    }

    /// Sets of which partitioned table an index is.
    ///
    /// # Errors
    /// When too much is said already.
    pub fn set_partitioned_table(&mut self, table: u32) -> Result<(), FormatError> {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, table.into());
        self.set(tag::PARTITIONED_TABLE, Some(bytes))
    }

    /// What a view selects.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.get(tag::TEXT)?.text().ok()
    }

    /// Sets what a view selects.
    ///
    /// # Errors
    /// When it is too long.
    pub fn set_text(&mut self, text: Option<&str>) -> Result<(), FormatError> {
        self.set(tag::TEXT, text.map(|text| text.as_bytes().to_vec()))
    }

    /// How the numbers of a sequence go.
    #[must_use]
    pub fn sequence(&self) -> Option<Sequence> {
        Sequence::decode(self.get(tag::SEQUENCE)?.bytes).ok()
    }

    /// Sets how the numbers of a sequence go.
    ///
    /// # Errors
    /// When it has no numbers.
    pub fn set_sequence(&mut self, sequence: Option<&Sequence>) -> Result<(), FormatError> {
        self.set(tag::SEQUENCE, sequence.map(Sequence::encode))
    }
}

/// Refuses a value that is none, and what must be known and is not.
fn check(attribute: Attribute<'_>) -> Result<(), FormatError> {
    match attribute.tag {
        tag::COMMENT | tag::TEXT => attribute.text().map(drop),
        tag::SCHEMA | tag::PARTITIONED_TABLE => attribute.number::<u32>().map(drop),
        tag::COLUMN_NOTES => ColumnNotes::decode(attribute.bytes).map(drop),
        tag::CONSTRAINT => Constraint::decode(attribute.bytes).map(drop),
        tag::RANGE_COLUMNS => attribute.numbers().map(drop),
        tag::RANGE_PARTITION => RangePartition::decode(attribute.bytes).map(drop),
        tag::SEQUENCE => Sequence::decode(attribute.bytes).map(drop),
        tag if must_be_known(tag) => Err(unknown(tag)),
        _ => Ok(()),
    }
}

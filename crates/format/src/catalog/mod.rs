//! The catalog's bytes: rows, definitions of objects, and what is said of them. All of it but the first bytes of a row and of a definition are
//! attributes with a tag and a length, so that a reader tells what it does not know.
//!
//! * `attributes`: tags, lengths, and what a reader does with a tag that it does not know
//! * `definition`: what an object is; parts of it as rows
//! * `notes`: what is said of an object that the store itself does not act on
//! * `constraint`, `column`, `sequence`, `partition`, `statistics`: values of attributes that have attributes of their own

pub mod attributes;
mod column;
mod constraint;
mod definition;
mod notes;
mod partition;
mod sequence;
mod statistics;
#[cfg(test)]
mod tests;

pub use column::{ColumnNotes, Identity};
pub use constraint::{Constraint, ConstraintKind, Reference};
pub use definition::{DEFINITION_BYTES_MAX, DefinedKind, DefinitionView, ROW_BYTES_MAX, RowPart, definition_head, definition_rows, tag};
pub use notes::Notes;
pub use partition::RangePartition;
pub use sequence::Sequence;
pub use statistics::{ColumnStatistics, Figure, Figures, Looked, STATISTICS_BYTES_MAX, Statistics, figure};

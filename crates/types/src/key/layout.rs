//! Which columns make a key, and how.
//!
//! A key is its columns one behind the other. Each: a marker byte when the column is nullable (0 = not NULL, 1 = NULL, without more bytes), then the value
//! (`scalar.rs`). All bytes of a descending column, marker too, are inverted. So NULLs come last ascending and first descending.
//!
//! Invariant: keys compare, as byte strings, like the values of their columns; and they are prefix-free, so `key || RID` compares like (key, RID).

use crate::data_type::Physical;
use crate::{DataType, Schema};

/// Order of a key column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Ascending, NULLs last
    Ascending,
    /// Descending, NULLs first
    Descending,
}

/// One column of a key.
#[derive(Clone, Debug)]
pub(super) struct KeyColumn {
    /// Position in the table.
    pub(super) column: usize,
    pub(super) name: Box<str>,
    pub(super) data_type: DataType,
    pub(super) physical: Physical,
    pub(super) nullable: bool,
    pub(super) direction: Direction,
}

/// How the keys of an index are made.
#[derive(Clone, Debug)]
pub struct KeyLayout {
    pub(super) columns: Box<[KeyColumn]>,
    /// Of the index, for messages.
    pub(super) name: Box<str>,
    pub(super) bytes_max: usize,
    fixed_len: Option<usize>,
}

/// The longest key of an index with pages of this many bytes: at least four entries fit in a page, with the page header, RIDs and slots. Never above 2,000.
///
/// For a folded index that is the 4 KB page on disk, whatever its buffer: non-leaf pages are 4 KB.
#[must_use]
pub const fn key_bytes_max(page_size: usize) -> usize {
    // Page header and end marks 64; per entry 32 for RID, slot, child page number and lengths.
    let quarter = page_size.saturating_sub(64) / 4;
    let bytes = quarter.saturating_sub(32);
    if bytes < 2_000 { bytes } else { 2_000 }
}

/// Makes of `prefix` the least byte string above all that begin with it; false when there is none (all bytes 0xFF, or empty), and `prefix` is then empty.
pub fn prefix_end(prefix: &mut Vec<u8>) -> bool {
    while let Some(last) = prefix.last_mut() {
        if *last < u8::MAX {
            *last += 1;
            return true;
        }
        prefix.pop();
    }
    false
}

impl KeyLayout {
    /// Keys of these columns (positions in the schema), of any length.
    ///
    /// # Panics
    /// When a position is not in the schema, or there are no columns.
    #[must_use]
    pub fn new(schema: &Schema, columns: &[(usize, Direction)]) -> KeyLayout {
        assert!(!columns.is_empty());
        let columns: Box<[KeyColumn]> = columns
            .iter()
            .map(|(position, direction)| {
                let column = &schema.columns()[*position];
                KeyColumn {
                    column: *position,
                    name: column.name.as_str().into(),
                    data_type: column.data_type,
                    physical: column.data_type.physical(),
                    nullable: column.nullable,
                    direction: *direction,
                }
            })
            .collect();
        let fixed_len = columns.iter().map(|c| if c.nullable { None } else { c.physical.fixed_width() }).sum();
        KeyLayout { columns, name: "the key".into(), bytes_max: usize::MAX, fixed_len }
    }

    /// Refuses keys above `bytes_max`; errors name the index.
    #[must_use]
    pub fn with_limit(mut self, name: &str, bytes_max: usize) -> KeyLayout {
        self.name = name.into();
        self.bytes_max = bytes_max;
        self
    }

    /// How many columns.
    #[must_use]
    pub fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// Positions in the table, and order, of the key columns.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = (usize, Direction)> + '_ {
        self.columns.iter().map(|c| (c.column, c.direction))
    }

    /// Order of the `i`-th key column.
    pub(crate) fn direction(&self, i: usize) -> Direction {
        self.columns[i].direction
    }

    /// Type of the `i`-th key column.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn data_type(&self, i: usize) -> DataType {
        self.columns[i].data_type
    }

    /// Bytes of every key, when all have the same.
    #[must_use]
    pub fn fixed_len(&self) -> Option<usize> {
        self.fixed_len
    }

    /// Does [`KeyLayout::decode`] give the `i`-th column bit for bit? Not for REAL and DOUBLE: the sign of zero and the bits of a NaN are lost; nor for
    /// INTERVAL: its parts are.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn decodes_exactly(&self, i: usize) -> bool {
        !matches!(self.columns[i].physical, Physical::Real | Physical::Double | Physical::Interval)
    }
}

//! The changes an index page can undergo, as values.
//!
//! Invariants: an op is deterministic; applied to a valid page it leaves a valid page, or an error and the page as it was. An op read from a log is untrusted.

use super::header::{LeafKind, format_leaf, set_next};
use super::leaf::Place;
use super::{leaf_edit, non_leaf, non_leaf_edit, prefix};
use crate::FormatError;
use crate::page::{self, PageType, is_page_size};
use crate::wire::{Reader, put_bytes};
use pagefold_types::Rid;

/// One change of a leaf (in memory; a folded leaf is folded when it is written).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafOp<'a> {
    /// An empty leaf.
    Format {
        /// Its number in the data set.
        page_number: u32,
        /// Layout of its entries.
        kind: LeafKind,
        /// Page after in key order; 0: none.
        next: u32,
    },
    /// An empty leaf of the format `prefix`. All other ops change leaves of both formats; a place in a prefix leaf is a block and a pair, a run is as [`PrefixLeaf::run`] gives it.
    ///
    /// [`PrefixLeaf::run`]: super::prefix::PrefixLeaf::run
    FormatPrefix {
        /// Its number in the data set.
        page_number: u32,
        /// Length of every key; 0 when lengths differ.
        fixed_key_bytes: u16,
        /// Page after in key order; 0: none.
        next: u32,
    },
    /// A RID under a key: a new entry, or one more in its RID list.
    Insert {
        /// The key.
        key: &'a [u8],
        /// The RID.
        rid: Rid,
    },
    /// Takes a RID from a key, and the entry with its last RID.
    Remove {
        /// The key.
        key: &'a [u8],
        /// The RID.
        rid: Rid,
    },
    /// Keeps what lies before a place.
    KeepFirst {
        /// The first place to go.
        cut: Place,
    },
    /// Keeps what lies at and behind a place.
    KeepFrom {
        /// The first place to stay.
        cut: Place,
    },
    /// Entries behind all there are, as [`super::leaf::Leaf::run`] gives them.
    Append {
        /// Number of entries.
        count: u16,
        /// The entries in their layout.
        run: &'a [u8],
    },
    /// Entries in front of all there are, as [`super::leaf::Leaf::run`] gives them.
    Prepend {
        /// Number of entries.
        count: u16,
        /// The entries in their layout.
        run: &'a [u8],
    },
    /// Another page after.
    SetNext {
        /// Page after in key order; 0: none.
        next: u32,
    },
}

impl LeafOp<'_> {
    /// Applies the change.
    ///
    /// # Errors
    /// When the page cannot take it; it is then unchanged.
    pub fn apply(&self, page: &mut [u8]) -> Result<(), FormatError> {
        let prefix = match self {
            LeafOp::Format { .. } | LeafOp::FormatPrefix { .. } if !is_page_size(page.len()) => {
                return Err(FormatError::new(format!("leaf of {} bytes", page.len())));
            }
            LeafOp::Format { .. } | LeafOp::FormatPrefix { .. } => false,
            _ if page::is_of_type(page, PageType::PrefixLeaf) => true,
            _ => {
                page::expect_type(page, PageType::Leaf)?;
                false
            }
        };
        match *self {
            LeafOp::Format { page_number, kind, next } => {
                LeafKind::from_parts(kind.flags(), kind.slot_bits, kind.fixed_key_bytes)?;
                format_leaf(page, page_number, kind, next);
                Ok(())
            }
            LeafOp::FormatPrefix { page_number, fixed_key_bytes, next } => {
                prefix::format_leaf(page, page_number, fixed_key_bytes, next);
                Ok(())
            }
            LeafOp::Insert { key, rid } if prefix => prefix::insert(page, key, rid),
            LeafOp::Remove { key, rid } if prefix => prefix::remove(page, key, rid),
            LeafOp::KeepFirst { cut } if prefix => prefix::keep_first(page, cut),
            LeafOp::KeepFrom { cut } if prefix => prefix::keep_from(page, cut),
            LeafOp::Append { count, run } if prefix => prefix::append(page, usize::from(count), run),
            LeafOp::Prepend { count, run } if prefix => prefix::prepend(page, usize::from(count), run),
            LeafOp::Insert { key, rid } => leaf_edit::insert(page, key, rid),
            LeafOp::Remove { key, rid } => leaf_edit::remove(page, key, rid),
            LeafOp::KeepFirst { cut } => leaf_edit::keep_first(page, cut),
            LeafOp::KeepFrom { cut } => leaf_edit::keep_from(page, cut),
            LeafOp::Append { count, run } => leaf_edit::append(page, usize::from(count), run),
            LeafOp::Prepend { count, run } => leaf_edit::prepend(page, usize::from(count), run),
            LeafOp::SetNext { next } => {
                set_next(page, next);
                Ok(())
            }
        }
    }

    /// The page as the op would leave it; `None` when it does not fit. For what moves many entries: an insert or a removal is worked out without a copy.
    #[must_use]
    pub fn on_copy(&self, page: &[u8]) -> Option<Vec<u8>> {
        let mut copy = page.to_vec();
        self.apply(&mut copy).is_ok().then_some(copy)
    }

    /// Appends the op's log form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            LeafOp::Format { page_number, kind, next } => {
                out.push(0);
                out.extend_from_slice(&page_number.to_le_bytes());
                out.push(kind.flags());
                out.push(kind.slot_bits);
                out.extend_from_slice(&kind.fixed_key_bytes.to_le_bytes());
                out.extend_from_slice(&next.to_le_bytes());
            }
            LeafOp::FormatPrefix { page_number, fixed_key_bytes, next } => {
                out.push(7);
                out.extend_from_slice(&page_number.to_le_bytes());
                out.extend_from_slice(&fixed_key_bytes.to_le_bytes());
                out.extend_from_slice(&next.to_le_bytes());
            }
            LeafOp::Insert { key, rid } | LeafOp::Remove { key, rid } => {
                out.push(if matches!(self, LeafOp::Insert { .. }) { 1 } else { 2 });
                out.extend_from_slice(&rid.to_bytes());
                put_bytes(out, key);
            }
            LeafOp::KeepFirst { cut } | LeafOp::KeepFrom { cut } => {
                out.push(if matches!(self, LeafOp::KeepFirst { .. }) { 3 } else { 4 });
                out.extend_from_slice(&(cut.entry as u16).to_le_bytes());
                out.extend_from_slice(&(cut.rid as u16).to_le_bytes());
            }
            LeafOp::Append { count, run } | LeafOp::Prepend { count, run } => {
                out.push(if matches!(self, LeafOp::Append { .. }) { 5 } else { 8 });
                out.extend_from_slice(&count.to_le_bytes());
                put_bytes(out, run);
            }
            LeafOp::SetNext { next } => {
                out.push(6);
                out.extend_from_slice(&next.to_le_bytes());
            }
        }
    }

    /// Reads an op back from its log form.
    ///
    /// # Errors
    /// When the bytes are not an op.
    pub fn decode<'a>(reader: &mut Reader<'a>) -> Result<LeafOp<'a>, FormatError> {
        let tag = reader.u8()?;
        Ok(match tag {
            0 => {
                let page_number = reader.u32()?;
                let (flags, slot_bits) = (reader.u8()?, reader.u8()?);
                let kind = LeafKind::from_parts(flags, slot_bits, reader.u16()?)?;
                LeafOp::Format { page_number, kind, next: reader.u32()? }
            }
            1 | 2 => {
                let mut bytes = [0; 7];
                bytes.copy_from_slice(reader.take(7)?);
                let rid = Rid::from_bytes(bytes);
                let key = reader.bytes()?;
                if tag == 1 { LeafOp::Insert { key, rid } } else { LeafOp::Remove { key, rid } }
            }
            3 | 4 => {
                let cut = Place { entry: usize::from(reader.u16()?), rid: usize::from(reader.u16()?) };
                if tag == 3 { LeafOp::KeepFirst { cut } } else { LeafOp::KeepFrom { cut } }
            }
            5 => LeafOp::Append { count: reader.u16()?, run: reader.bytes()? },
            6 => LeafOp::SetNext { next: reader.u32()? },
            7 => LeafOp::FormatPrefix { page_number: reader.u32()?, fixed_key_bytes: reader.u16()?, next: reader.u32()? },
            8 => LeafOp::Prepend { count: reader.u16()?, run: reader.bytes()? },
            other => return Err(FormatError::new(format!("unknown leaf op {other}"))),
        })
    }
}

/// One change of a non-leaf page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonLeafOp<'a> {
    /// A page with one child.
    Format {
        /// Its number in the data set.
        page_number: u32,
        /// Levels down to the leaves, from 1.
        level: u8,
        /// The child.
        first_child: u32,
    },
    /// A separator and the child after it.
    Insert {
        /// The separator.
        separator: &'a [u8],
        /// The child.
        child: u32,
    },
    /// Takes a separator and the child after it out.
    Remove {
        /// Number of the separator.
        index: u16,
    },
    /// Another separator between the same children.
    Replace {
        /// Number of the separator.
        index: u16,
        /// The new one.
        separator: &'a [u8],
    },
    /// Keeps so many separators, and one child more.
    KeepFirst {
        /// Number of separators.
        count: u16,
    },
    /// Separators behind all there are, as [`super::non_leaf::NonLeaf::run`] gives them.
    Append {
        /// Number of separators.
        count: u16,
        /// Children and separators.
        run: &'a [u8],
    },
    /// Another first child.
    SetFirstChild {
        /// The child.
        child: u32,
    },
}

impl NonLeafOp<'_> {
    /// Applies the change.
    ///
    /// # Errors
    /// When the page cannot take it; it is then unchanged.
    pub fn apply(&self, page: &mut [u8]) -> Result<(), FormatError> {
        if !matches!(self, NonLeafOp::Format { .. }) {
            page::expect_type(page, PageType::NonLeaf)?;
        } else if !is_page_size(page.len()) {
            return Err(FormatError::new(format!("non-leaf page of {} bytes", page.len())));
        }
        match *self {
            NonLeafOp::Format { page_number, level, first_child } => {
                if !(1..=non_leaf::LEVEL_MAX).contains(&level) {
                    return Err(FormatError::new(format!("non-leaf page of level {level}")));
                }
                non_leaf::format(page, page_number, level, first_child);
                Ok(())
            }
            NonLeafOp::Insert { separator, child } => non_leaf_edit::insert(page, separator, child),
            NonLeafOp::Remove { index } => non_leaf_edit::remove(page, usize::from(index)),
            NonLeafOp::Replace { index, separator } => non_leaf_edit::replace(page, usize::from(index), separator),
            NonLeafOp::KeepFirst { count } => non_leaf_edit::keep_first(page, usize::from(count)),
            NonLeafOp::Append { count, run } => non_leaf_edit::append(page, usize::from(count), run),
            NonLeafOp::SetFirstChild { child } => {
                non_leaf::set_first_child(page, child);
                Ok(())
            }
        }
    }

    /// Appends the op's log form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            NonLeafOp::Format { page_number, level, first_child } => {
                out.push(0);
                out.extend_from_slice(&page_number.to_le_bytes());
                out.push(level);
                out.extend_from_slice(&first_child.to_le_bytes());
            }
            NonLeafOp::Insert { separator, child } => {
                out.push(1);
                non_leaf::put_separator(out, separator, child);
            }
            NonLeafOp::Remove { index } => {
                out.push(2);
                out.extend_from_slice(&index.to_le_bytes());
            }
            NonLeafOp::Replace { index, separator } => {
                out.push(3);
                out.extend_from_slice(&index.to_le_bytes());
                put_bytes(out, separator);
            }
            NonLeafOp::KeepFirst { count } => {
                out.push(4);
                out.extend_from_slice(&count.to_le_bytes());
            }
            NonLeafOp::Append { count, run } => {
                out.push(5);
                out.extend_from_slice(&count.to_le_bytes());
                put_bytes(out, run);
            }
            NonLeafOp::SetFirstChild { child } => {
                out.push(6);
                out.extend_from_slice(&child.to_le_bytes());
            }
        }
    }

    /// Reads an op back from its log form.
    ///
    /// # Errors
    /// When the bytes are not an op.
    pub fn decode<'a>(reader: &mut Reader<'a>) -> Result<NonLeafOp<'a>, FormatError> {
        Ok(match reader.u8()? {
            0 => NonLeafOp::Format { page_number: reader.u32()?, level: reader.u8()?, first_child: reader.u32()? },
            1 => {
                let child = reader.u32()?;
                NonLeafOp::Insert { separator: reader.bytes()?, child }
            }
            2 => NonLeafOp::Remove { index: reader.u16()? },
            3 => NonLeafOp::Replace { index: reader.u16()?, separator: reader.bytes()? },
            4 => NonLeafOp::KeepFirst { count: reader.u16()? },
            5 => NonLeafOp::Append { count: reader.u16()?, run: reader.bytes()? },
            6 => NonLeafOp::SetFirstChild { child: reader.u32()? },
            other => return Err(FormatError::new(format!("unknown non-leaf op {other}"))),
        })
    }
}

//! The header of a leaf and of a folded leaf, behind the common page header.
//!
//! | Offset | Size | Field |
//! |---|---|---|
//! | 32 | 1 | flags: 1 single (one RID per entry: unique index), 2 fold |
//! | 33 | 1 | slot bits: all slots are below 2^(slot bits); 12 unless the leaf folds |
//! | 34 | 2 | length of every key; 0: lengths differ |
//! | 36 | 2 | bytes that all keys share |
//! | 38 | 2 | folded leaf: length of the longest key; leaf: 0 |
//! | 40 | 4 | page after in key order; 0: none |
//! | 44 | 4 | 0 |
//! | 48 | 2 | bytes of the folded leaf, header included; 0 unless the leaf folds |
//! | 50 | 2 | RIDs of all entries |
//! | 52 | 2 | bytes of the leaf in memory |
//! | 54 | 2 | 0 |
//!
//! In the common header, count is the number of entries and low end the end of the entries (leaf) or of the body (folded leaf); garbage is always 0.

use crate::FormatError;
use crate::page::{self, HEADER_BYTES, PageType, get_u16, get_u32, put_u16, put_u32};
use pagefold_codec::index::layout::{MAP_BYTES, Shape};

const FLAGS: usize = HEADER_BYTES;
const SLOT_BITS: usize = FLAGS + 1;
const FIXED_KEY_BYTES: usize = SLOT_BITS + 1;
const COMMON_PREFIX: usize = FIXED_KEY_BYTES + 2;
const LONGEST_KEY: usize = COMMON_PREFIX + 2;
const NEXT: usize = LONGEST_KEY + 2;
const RESERVED: usize = NEXT + 4;
const FOLDED_BYTES: usize = RESERVED + 4;
const RIDS: usize = FOLDED_BYTES + 2;
const PAGE_BYTES: usize = RIDS + 2;

/// Bytes of common and leaf header together; entries and folded bodies start here.
pub const LEAF_HEADER_BYTES: usize = PAGE_BYTES + 4;
const _: () = assert!(LEAF_HEADER_BYTES == 56);

/// Bytes of a folded leaf on disk.
pub const FOLDED_PAGE_BYTES: usize = 4096;

/// Format version of leaves.
pub const LEAF_VERSION: u8 = 1;
/// Format version of folded leaves: of the fold, too.
pub const FOLDED_LEAF_VERSION: u8 = 1;

const FLAG_SINGLE: u8 = 1;
const FLAG_FOLD: u8 = 2;

/// How the leaves of an index are laid out; the same for all leaves of one index, but for `slot_bits`, which an insert may raise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafKind {
    /// One RID per entry: a unique index.
    pub single: bool,
    /// Stored as a folded leaf.
    pub fold: bool,
    /// Length of every key; 0 when lengths differ.
    pub fixed_key_bytes: u16,
    /// Slots on the leaf are below 2^`slot_bits`, at most 12. Of use to the fold only: where the indexed table's slots are known to be small, RIDs take less.
    pub slot_bits: u8,
}

impl LeafKind {
    /// The layout of entries.
    #[inline]
    #[must_use]
    pub fn shape(self) -> Shape {
        Shape { fixed_key_bytes: self.fixed_key_bytes, single: self.single, slot_bits: self.slot_bits.min(12) }
    }

    /// Flags as they are stored.
    pub(crate) fn flags(self) -> u8 {
        (FLAG_SINGLE * u8::from(self.single)) | (FLAG_FOLD * u8::from(self.fold))
    }

    /// From stored parts.
    ///
    /// # Errors
    /// When they name no kind.
    pub(crate) fn from_parts(flags: u8, slot_bits: u8, fixed_key_bytes: u16) -> Result<LeafKind, FormatError> {
        if flags & !(FLAG_SINGLE | FLAG_FOLD) != 0 || slot_bits > 12 {
            return Err(FormatError::new("leaf of an unknown kind"));
        }
        let fold = flags & FLAG_FOLD != 0;
        if !fold && slot_bits != 12 {
            return Err(FormatError::new("slot bits of a plain leaf are not 12"));
        }
        Ok(LeafKind { single: flags & FLAG_SINGLE != 0, fold, fixed_key_bytes, slot_bits })
    }
}

/// All of the leaf header, checked one by one but not against the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeafHeader {
    pub(crate) kind: LeafKind,
    pub(crate) common_prefix: usize,
    pub(crate) longest_key: usize,
    pub(crate) folded_bytes: usize,
    pub(crate) rids: usize,
    pub(crate) page_bytes: usize,
    pub(crate) entries: usize,
    pub(crate) low_end: usize,
}

impl LeafHeader {
    pub(crate) fn read(page: &[u8]) -> Result<LeafHeader, FormatError> {
        if page.len() < LEAF_HEADER_BYTES {
            return Err(FormatError::new("leaf shorter than its header"));
        }
        if get_u32(page, RESERVED) != 0 || get_u16(page, PAGE_BYTES + 2) != 0 || page::garbage(page) != 0 {
            return Err(FormatError::new("reserved fields of the leaf header are not 0"));
        }
        Ok(LeafHeader {
            kind: LeafKind::from_parts(page[FLAGS], page[SLOT_BITS], get_u16(page, FIXED_KEY_BYTES))?,
            common_prefix: usize::from(get_u16(page, COMMON_PREFIX)),
            longest_key: usize::from(get_u16(page, LONGEST_KEY)),
            folded_bytes: usize::from(get_u16(page, FOLDED_BYTES)),
            rids: usize::from(get_u16(page, RIDS)),
            page_bytes: usize::from(get_u16(page, PAGE_BYTES)),
            entries: usize::from(page::count(page)),
            low_end: usize::from(page::low_end(page)),
        })
    }
}

/// Makes an empty leaf of the whole slice.
pub(crate) fn format_leaf(page: &mut [u8], page_number: u32, kind: LeafKind, next: u32) {
    page.fill(0);
    page::init_header(page, page_number, PageType::Leaf, LEAF_VERSION);
    page[FLAGS] = kind.flags();
    page[SLOT_BITS] = kind.slot_bits;
    put_u16(page, FIXED_KEY_BYTES, kind.fixed_key_bytes);
    put_u16(page, PAGE_BYTES, page.len() as u16);
    page::set_low_end(page, LEAF_HEADER_BYTES as u16);
    set_next(page, next);
    set_folded_bytes(page, if kind.fold { LEAF_HEADER_BYTES } else { 0 });
}

/// Turns a copied leaf header into a folded leaf's, or back.
pub(crate) fn convert(page: &mut [u8], page_type: PageType, version: u8, longest_key: usize, low_end: usize) {
    page::set_page_type(page, page_type);
    page::set_page_version(page, version);
    put_u16(page, LONGEST_KEY, longest_key as u16);
    page::set_low_end(page, low_end as u16);
}

#[inline]
pub(crate) fn flags(page: &[u8]) -> (bool, bool) {
    (page[FLAGS] & FLAG_SINGLE != 0, page[FLAGS] & FLAG_FOLD != 0)
}

#[inline]
pub(crate) fn slot_bits(page: &[u8]) -> u8 {
    page[SLOT_BITS]
}

pub(crate) fn set_slot_bits(page: &mut [u8], bits: u8) {
    page[SLOT_BITS] = bits;
}

#[inline]
pub(crate) fn fixed_key_bytes(page: &[u8]) -> u16 {
    get_u16(page, FIXED_KEY_BYTES)
}

#[inline]
pub(crate) fn common_prefix(page: &[u8]) -> usize {
    usize::from(get_u16(page, COMMON_PREFIX))
}

pub(crate) fn set_common_prefix(page: &mut [u8], bytes: usize) {
    put_u16(page, COMMON_PREFIX, bytes as u16);
}

#[inline]
pub(crate) fn next(page: &[u8]) -> u32 {
    get_u32(page, NEXT)
}

pub(crate) fn set_next(page: &mut [u8], next: u32) {
    put_u32(page, NEXT, next);
}

pub(crate) fn folded_bytes(page: &[u8]) -> usize {
    usize::from(get_u16(page, FOLDED_BYTES))
}

pub(crate) fn set_folded_bytes(page: &mut [u8], bytes: usize) {
    put_u16(page, FOLDED_BYTES, bytes as u16);
}

pub(crate) fn rids(page: &[u8]) -> usize {
    usize::from(get_u16(page, RIDS))
}

pub(crate) fn set_rids(page: &mut [u8], rids: usize) {
    put_u16(page, RIDS, rids as u16);
}

/// Entries that a leaf of this size can have at most.
pub(crate) fn entries_max(page_bytes: usize) -> usize {
    page_bytes.saturating_sub(LEAF_HEADER_BYTES) / MAP_BYTES
}

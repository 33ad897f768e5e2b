//! The directory of an area: where each column lies and how it is encoded. The table of the format is in the module above.
//!
//! Reading here never panics; what [`super::check`] refuses reads as something harmless.

use super::bits::{load, load_u16};

/// Bytes before the directory.
pub(super) const HEADER_BYTES: usize = 6;
/// Bytes of a column in the directory.
pub(super) const ENTRY_BYTES: usize = 8;
/// Bytes before the rows of exceptions: number, bytes of a value.
pub(super) const EXCEPTION_HEADER_BYTES: usize = 3;

/// The most rows of an area.
pub const ROWS_MAX: usize = 4_096;
/// The longest area: offsets have 16 bits.
pub const AREA_BYTES_MAX: usize = u16::MAX as usize;

const KIND_MASK: u8 = 0x0F;
/// A bitmap of rows that are NULL lies before the packed numbers.
pub(super) const NULLS: u8 = 0x10;
/// A list of exceptions lies behind the packed numbers.
pub(super) const EXCEPTIONS: u8 = 0x20;
/// The parameters lie behind the directory.
pub(super) const OUTSIDE: u8 = 0x40;
/// A bitmap of rows whose value is a large-value reference lies before that of NULLs.
pub(super) const LARGE: u8 = 0x80;

/// Encodings, as numbered in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// Every row is NULL.
    Null = 0,
    /// base + number
    Frame = 1,
    /// base + factor * number
    Multiple = 2,
    /// base + slope * row + number
    Linear = 3,
    /// number-th of the distinct integers
    Dictionary = 4,
    /// an earlier column's value + base + number
    Difference = 5,
    /// bytes
    Bytes = 8,
    /// string codes
    Codes = 9,
    /// number-th of the distinct byte strings
    BytesDictionary = 10,
    /// number-th of the distinct strings, kept as codes
    CodesDictionary = 11,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Frame => "frame",
            Kind::Multiple => "multiple",
            Kind::Linear => "linear",
            Kind::Dictionary => "dictionary",
            Kind::Difference => "difference",
            Kind::Bytes => "bytes",
            Kind::Codes => "codes",
            Kind::BytesDictionary => "dictionary of bytes",
            Kind::CodesDictionary => "dictionary of codes",
        }
    }

    pub(super) fn is_string(self) -> bool {
        self as u8 >= Kind::Bytes as u8
    }

    pub(super) fn is_string_dictionary(self) -> bool {
        matches!(self, Kind::BytesDictionary | Kind::CodesDictionary)
    }

    pub(super) fn has_codes(self) -> bool {
        matches!(self, Kind::Codes | Kind::CodesDictionary)
    }

    /// Bytes of the parameters, where they lie behind the directory.
    pub(super) const fn outside_bytes(self) -> usize {
        match self {
            Kind::Null => 0,
            Kind::Frame => 8,
            Kind::Multiple | Kind::Linear => 16,
            Kind::Dictionary => 14,
            Kind::Difference => 10,
            Kind::Bytes | Kind::Codes => 12,
            Kind::BytesDictionary | Kind::CodesDictionary => 17,
        }
    }
}

/// A column in the directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// As stored; 15 stands for one that is not known.
    kind_bits: u8,
    pub(super) flags: u8,
    /// Bits of a packed number.
    pub(super) width: u32,
    /// Offset of the packed numbers.
    pub(super) at: usize,
    /// Parameters, or (low 16 bits) where they lie.
    pub(super) parameters: u32,
}

const _: () = assert!(size_of::<u64>() == ENTRY_BYTES);

impl Entry {
    pub(super) fn new(kind: Kind, flags: u8, width: u32, at: usize, parameters: u32) -> Self {
        Self { kind_bits: kind as u8, flags, width, at, parameters }
    }

    #[inline(always)]
    pub(super) fn read(area: &[u8], column: usize) -> Self {
        let word = load(area, HEADER_BYTES + ENTRY_BYTES * column);
        let tag = word as u8;
        Self {
            kind_bits: tag & KIND_MASK,
            flags: tag & !KIND_MASK,
            width: ((word >> 8) as u8).min(64).into(),
            at: usize::from((word >> 16) as u16),
            parameters: (word >> 32) as u32,
        }
    }

    pub(super) fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        debug_assert!(self.at <= AREA_BYTES_MAX && self.width <= 64);
        let tag = u64::from(self.kind_bits | self.flags);
        (tag | u64::from(self.width) << 8 | (self.at as u64) << 16 | u64::from(self.parameters) << 32).to_le_bytes()
    }

    /// How the column is encoded; what is not known reads as NULL.
    #[inline(always)]
    pub(super) fn kind(self) -> Kind {
        self.known_kind().unwrap_or(Kind::Null)
    }

    #[inline(always)]
    pub(super) fn known_kind(self) -> Option<Kind> {
        Some(match self.kind_bits {
            0 => Kind::Null,
            1 => Kind::Frame,
            2 => Kind::Multiple,
            3 => Kind::Linear,
            4 => Kind::Dictionary,
            5 => Kind::Difference,
            8 => Kind::Bytes,
            9 => Kind::Codes,
            10 => Kind::BytesDictionary,
            11 => Kind::CodesDictionary,
            _ => return None,
        })
    }

    #[inline(always)]
    pub(super) fn is_string(self) -> bool {
        (Kind::Bytes as u8..=Kind::CodesDictionary as u8).contains(&self.kind_bits)
    }

    #[inline(always)]
    pub(super) fn is_string_dictionary(self) -> bool {
        self.kind_bits == Kind::BytesDictionary as u8 || self.kind_bits == Kind::CodesDictionary as u8
    }

    #[inline(always)]
    pub(super) fn has_codes(self) -> bool {
        self.kind_bits == Kind::Codes as u8 || self.kind_bits == Kind::CodesDictionary as u8
    }

    /// Base and packed numbers are all there is?
    #[inline(always)]
    pub(super) fn is_plain_frame(self) -> bool {
        self.kind_bits | self.flags == Kind::Frame as u8
    }

    #[inline(always)]
    pub(super) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Offset of the parameters behind the directory.
    #[inline(always)]
    pub(super) fn outside(self) -> usize {
        (self.parameters & 0xFFFF) as usize
    }

    /// Offset of the bitmap of NULLs of an area of so many rows.
    #[inline(always)]
    pub(super) fn nulls_at(self, rows: usize) -> Option<usize> {
        if self.has(NULLS) { self.at.checked_sub(rows.div_ceil(8)) } else { None }
    }

    /// Offset of the bitmap of large-value references.
    #[inline(always)]
    pub(super) fn large_at(self, rows: usize) -> Option<usize> {
        let bitmaps = if self.has(NULLS) { 2 } else { 1 };
        if self.has(LARGE) { self.at.checked_sub(bitmaps * rows.div_ceil(8)) } else { None }
    }
}

/// Number of rows in the header.
#[inline(always)]
pub(super) fn header_rows(area: &[u8]) -> usize {
    usize::from(load_u16(area, 0)).min(ROWS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 10] = [
        Kind::Null,
        Kind::Frame,
        Kind::Multiple,
        Kind::Linear,
        Kind::Dictionary,
        Kind::Difference,
        Kind::Bytes,
        Kind::Codes,
        Kind::BytesDictionary,
        Kind::CodesDictionary,
    ];

    #[test]
    fn entries_come_back() {
        for kind in KINDS {
            let entry = Entry::new(kind, NULLS | LARGE, 33, 0xABCD, 0x1234_5678);
            let mut area = vec![0; HEADER_BYTES + ENTRY_BYTES];
            area.extend(entry.to_bytes());
            let read = Entry::read(&area, 1);
            assert_eq!(
                (read.known_kind(), read.flags, read.width, read.at, read.parameters),
                (Some(kind), NULLS | LARGE, 33, 0xABCD, 0x1234_5678)
            );
        }
    }
}

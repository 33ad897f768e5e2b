//! Compact records from packed ones.

use super::layout::{CompactLayout, INLINE_MAX, LARGE_BIT, LONG, LONG_INLINE};
use crate::data_type::Physical;
use crate::row::RECORD_BYTES_MAX;
use crate::row::layout::ColumnLayout;

/// What is left of a value, and whether it is a large-value reference.
type Left<'r> = (&'r [u8], bool);

/// Two's complement without the bytes that the sign of the others tells.
fn minimal(bytes: &[u8]) -> &[u8] {
    let sign = if bytes.last().is_some_and(|top| top & 0x80 != 0) { 0xff } else { 0 };
    let mut len = bytes.iter().rposition(|&byte| byte != sign).map_or(0, |last| last + 1);
    // The top bit of what is left has to be the sign; of -1 nothing would be left.
    let told = if len == 0 { 0 } else { bytes[len - 1] & 0x80 };
    if told != sign & 0x80 {
        len += 1;
    }
    &bytes[..len]
}

/// IEEE 754 without the low-order bytes that are zero.
fn without_low_zeros(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.iter().position(|&byte| byte != 0).unwrap_or(bytes.len())..]
}

/// What is left of a CHAR(n) without blanks at the end; `None` when it does not have n characters.
fn without_blanks(bytes: &[u8], chars: u32) -> Option<&[u8]> {
    let len = bytes.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1);
    (padding(&bytes[..len], chars)? == bytes.len() - len).then(|| &bytes[..len])
}

/// Blanks that make `bytes` a CHAR(n); `None` when it has more than n characters.
#[inline]
pub(super) fn padding(bytes: &[u8], chars: u32) -> Option<usize> {
    // Bytes of UTF-8 that begin a character.
    let found = if bytes.is_ascii() { bytes.len() } else { bytes.iter().filter(|&&byte| byte & 0xc0 != 0x80).count() };
    (chars as usize).checked_sub(found)
}

/// What is left of the bytes of a value that is not NULL. One value has one form.
pub(super) fn left(physical: Physical, bytes: &[u8]) -> Option<&[u8]> {
    match physical {
        Physical::Boolean | Physical::Int { .. } | Physical::Decimal { .. } => Some(minimal(bytes)),
        Physical::Real | Physical::Double => Some(without_low_zeros(bytes)),
        Physical::Char { chars } => without_blanks(bytes, chars),
        Physical::Uuid | Physical::Text | Physical::Bytes => Some(bytes),
    }
}

fn is_inline((bytes, large): Left<'_>) -> bool {
    bytes.len() <= INLINE_MAX && !large
}

impl CompactLayout {
    /// What is left of a column of a packed record. `None` when that is damaged.
    fn left_of<'r>(&self, column: &ColumnLayout, packed: &'r [u8]) -> Option<Left<'r>> {
        if column.is_null(packed) {
            return Some((&[], false));
        }
        if let Some(width) = column.physical.fixed_width() {
            let bytes = self.packed.fixed_bytes(column, width, packed).ok()?;
            return Some((left(column.physical, bytes)?, false));
        }
        let (start, end, large) = self.packed.var_span(column, packed)?;
        let bytes = packed.get(start..end)?;
        if large { Some((bytes, true)) } else { Some((left(column.physical, bytes)?, false)) }
    }

    /// Bytes of the inline and of the long part.
    fn part_lens(&self, packed: &[u8]) -> Option<(usize, usize)> {
        let (mut inline, mut long) = (0, 0);
        for column in &self.packed.columns {
            let left = self.left_of(column, packed)?;
            if is_inline(left) {
                inline += left.0.len();
            } else {
                inline += LONG_INLINE;
                long += left.0.len();
            }
        }
        Some((inline, long))
    }

    /// Bytes that the compact record of `packed` takes; `None` when that is not smaller, or `packed` is no packed record of this layout.
    #[must_use]
    pub fn compact_len(&self, packed: &[u8]) -> Option<usize> {
        let (inline, long) = self.part_lens(packed)?;
        Some(self.header_len() + inline + long).filter(|&len| len < packed.len() && len <= RECORD_BYTES_MAX)
    }

    /// Appends the compact record of `packed` to `out` and returns its length; or leaves `out` as it was and returns `None` when it would not be
    /// smaller, or `packed` is no packed record of this layout.
    pub fn compact(&self, packed: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let (inline, long) = self.part_lens(packed)?;
        let header = self.header_len();
        let len = header + inline + long;
        if len >= packed.len() || len > RECORD_BYTES_MAX {
            return None;
        }
        let out_start = out.len();
        out.resize(out_start + len, 0);
        let record = &mut out[out_start..];
        let bitmap = self.packed.bitmap_len();
        record[..bitmap].copy_from_slice(&packed[..bitmap]);
        let (mut at, mut long_at) = (header, header + inline);
        for (index, column) in self.packed.columns.iter().enumerate() {
            if let Some(sum_at) = self.sum_at(index) {
                record[sum_at..sum_at + 2].copy_from_slice(&((at - header) as u16).to_le_bytes());
            }
            // As before, when the lengths were added.
            let (bytes, large) = self.left_of(column, packed).unwrap_or_default();
            if is_inline((bytes, large)) {
                self.set_length(record, index, bytes.len());
                record[at..at + bytes.len()].copy_from_slice(bytes);
                at += bytes.len();
                continue;
            }
            self.set_length(record, index, LONG);
            record[long_at..long_at + bytes.len()].copy_from_slice(bytes);
            long_at += bytes.len();
            let end = long_at as u16 | if large { LARGE_BIT } else { 0 };
            record[at..at + LONG_INLINE].copy_from_slice(&end.to_le_bytes());
            at += LONG_INLINE;
        }
        debug_assert_eq!((at, long_at), (header + inline, len));
        Some(len)
    }
}

//! Compact records from packed ones.

use super::expand::extend_sign;
use super::layout::{CompactLayout, INLINE_MAX, LARGE_BIT, LONG, LONG_INLINE};
use crate::data_type::Physical;
use crate::row::RECORD_BYTES_MAX;
use crate::row::layout::ColumnLayout;

/// What is left of a value, and whether it is a large-value reference.
type Left<'r> = (&'r [u8], bool);

/// Two's complement without the bytes that the sign of the others tells.
#[inline]
fn minimal(bytes: &[u8]) -> &[u8] {
    // The bits that are not all the sign, and one that is.
    let bits = match (bytes.first_chunk(), bytes.last_chunk()) {
        // Of up to eight bytes the first and the last four are all.
        (Some(low), Some(high)) if bytes.len() <= 8 => {
            let (low, high) = (u64::from(u32::from_le_bytes(*low)), i64::from(i32::from_le_bytes(*high)));
            bits_of(low as i64 | high << (8 * (bytes.len() - 4)))
        }
        _ => {
            let mut all = [0; 16];
            extend_sign(bytes, &mut all);
            let value = i128::from_le_bytes(all);
            if value == 0 { 0 } else { i128::BITS - (value ^ value >> 127).leading_zeros() + 1 }
        }
    };
    &bytes[..bits.div_ceil(8) as usize]
}

/// Bytes that are left of a number of `width` bytes, at most eight, with which `bytes` begin.
#[inline]
fn minimal_len(bytes: &[u8], width: usize) -> Option<usize> {
    let Some(word) = bytes.first_chunk() else { return bytes.get(..width).map(|bytes| minimal(bytes).len()) };
    let others = u64::BITS - 8 * width as u32;
    Some(bits_of((u64::from_le_bytes(*word) << others) as i64 >> others).div_ceil(8) as usize)
}

/// Bits of a number and its sign; of zero none.
#[inline]
fn bits_of(value: i64) -> u32 {
    if value == 0 { 0 } else { i64::BITS - (value ^ value >> 63).leading_zeros() + 1 }
}

/// IEEE 754 without the low-order bytes that are zero.
fn without_low_zeros(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.iter().position(|&byte| byte != 0).unwrap_or(bytes.len())..]
}

/// What is left of a CHAR(n) without blanks at the end; `None` when it does not have n characters.
fn without_blanks(bytes: &[u8], chars: u32) -> Option<&[u8]> {
    let len = without_trailing_blanks(bytes);
    (padding(&bytes[..len], chars)? == bytes.len() - len).then(|| &bytes[..len])
}

/// Length without the blanks at the end, eight of which are looked at together.
#[inline]
fn without_trailing_blanks(bytes: &[u8]) -> usize {
    const BLANKS: u64 = u64::from_le_bytes([b' '; 8]);
    let mut rest = bytes;
    while let Some((before, word)) = rest.split_last_chunk() {
        let others = u64::from_le_bytes(*word) ^ BLANKS;
        if others != 0 {
            return rest.len() - others.leading_zeros() as usize / 8;
        }
        rest = before;
    }
    rest.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1)
}

/// Blanks that make `bytes` a CHAR(n); `None` when it has more than n characters.
#[inline]
pub(super) fn padding(bytes: &[u8], chars: u32) -> Option<usize> {
    // Bytes of UTF-8 that begin a character.
    let found = if bytes.is_ascii() { bytes.len() } else { bytes.iter().filter(|&&byte| byte & 0xc0 != 0x80).count() };
    (chars as usize).checked_sub(found)
}

/// What is left of the bytes of a value that is not NULL. One value has one form.
#[inline]
pub(super) fn left(physical: Physical, bytes: &[u8]) -> Option<&[u8]> {
    match physical {
        Physical::Boolean | Physical::Int { .. } | Physical::Decimal { .. } => Some(minimal(bytes)),
        Physical::Real | Physical::Double => Some(without_low_zeros(bytes)),
        Physical::Char { chars } => without_blanks(bytes, chars),
        Physical::Uuid | Physical::Interval | Physical::Text | Physical::Bytes => Some(bytes),
    }
}

fn is_inline((bytes, large): Left<'_>) -> bool {
    bytes.len() <= INLINE_MAX && !large
}

impl CompactLayout {
    /// What is left of a column of a packed record. `None` when that is damaged.
    #[inline]
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

    /// Bytes that the compact record of `packed` takes; `None` when that is not smaller, or `packed` is no packed record of this layout.
    #[must_use]
    pub fn compact_len(&self, packed: &[u8]) -> Option<usize> {
        let mut len = self.header_len();
        for &(offset, width) in &self.numbers {
            // Of NULL all bytes are zero.
            len += minimal_len(packed.get(usize::from(offset)..)?, usize::from(width))?;
        }
        for &column in &self.others {
            let left = self.left_of(&self.packed.columns[usize::from(column)], packed)?;
            len += left.0.len() + if is_inline(left) { 0 } else { LONG_INLINE };
        }
        Some(len).filter(|&len| len < packed.len() && len <= RECORD_BYTES_MAX)
    }

    /// Appends the compact record of `packed` to `out` and returns its length; or leaves `out` as it was and returns `None` when it would not be
    /// smaller, or `packed` is no packed record of this layout.
    pub fn compact(&self, packed: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let start = out.len();
        let len = self.append(packed, start, out).filter(|&len| len < packed.len() && len <= RECORD_BYTES_MAX);
        if len.is_none() {
            out.truncate(start);
        }
        len
    }

    fn append(&self, packed: &[u8], start: usize, out: &mut Vec<u8>) -> Option<usize> {
        let (header, bitmap) = (self.header_len(), self.packed.bitmap_len());
        out.extend_from_slice(packed.get(..bitmap)?);
        out.resize(start + header, 0);
        let mut any_long = false;
        for (index, column) in self.packed.columns.iter().enumerate() {
            if let Some(sum_at) = self.sum_at(index) {
                let sum = (out.len() - start - header) as u16;
                out[start + sum_at..start + sum_at + 2].copy_from_slice(&sum.to_le_bytes());
            }
            let left = self.left_of(column, packed)?;
            if is_inline(left) {
                self.set_length(&mut out[start..], index, left.0.len());
                out.extend_from_slice(left.0);
            } else {
                // Its end is known when all inline values are there.
                self.set_length(&mut out[start..], index, LONG);
                out.extend_from_slice(&[0; LONG_INLINE]);
                any_long = true;
            }
        }
        let mut at = start + header;
        for (index, column) in self.packed.columns.iter().enumerate().filter(|_| any_long) {
            let length = self.length(&out[start..], index)?;
            if length != LONG {
                at += length;
                continue;
            }
            let (bytes, large) = self.left_of(column, packed)?;
            out.extend_from_slice(bytes);
            // What is too long for the type is longer than `packed`, too, and not kept.
            let end = (out.len() - start) as u16 | if large { LARGE_BIT } else { 0 };
            out[at..at + LONG_INLINE].copy_from_slice(&end.to_le_bytes());
            at += LONG_INLINE;
        }
        Some(out.len() - start)
    }
}

#[cfg(test)]
mod tests {
    use super::without_trailing_blanks;

    #[test]
    fn blanks_at_the_end_are_counted_as_one_by_one() {
        for (len, last, byte) in (0..40).flat_map(|len| (0..=len).flat_map(move |last| [b'x', 0, 0xa0, b'!'].map(|byte| (len, last, byte))))
        {
            let mut bytes = vec![b' '; len];
            if let Some(before) = last.checked_sub(1) {
                bytes[before] = byte;
            }
            assert_eq!(without_trailing_blanks(&bytes), last, "{bytes:?}");
        }
    }
}

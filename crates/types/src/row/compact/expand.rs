//! Packed records from compact ones.
//!
//! One pass over the columns, without looking any of them up. Bounds are checked as it goes, so damaged records give errors; that what comes out is a
//! packed record is for [`CompactLayout::validate`] to say.

use super::encode::padding;
use super::layout::{CompactLayout, INLINE_MAX, LARGE_BIT, LONG, LONG_INLINE, get_u16};
use crate::RecordError;
use crate::data_type::Physical;
use crate::row::RECORD_BYTES_MAX;

/// Bytes that a value in the inline part is read as, and written as.
const WORD: usize = size_of::<u128>();

const BLANKS: u128 = u128::from_le_bytes([b' '; WORD]);

const _: () = assert!(INLINE_MAX < WORD, "a shift by the bits of an inline value is less than a word");

/// Writes the two's complement of `bytes` to `to`, which is as long or longer; or as much of it as fits.
#[inline]
pub(super) fn extend_sign(bytes: &[u8], to: &mut [u8]) {
    let sign = if bytes.last().is_some_and(|top| top & 0x80 != 0) { 0xff } else { 0 };
    let len = bytes.len().min(to.len());
    to[..len].copy_from_slice(&bytes[..len]);
    to[len..].fill(sign);
}

/// Writes `bytes` to the high end of `to`, zeros before them; or as much of it as fits.
#[inline]
pub(super) fn extend_low(bytes: &[u8], to: &mut [u8]) {
    let len = bytes.len().min(to.len());
    let (zeros, high) = to.split_at_mut(to.len() - len);
    zeros.fill(0);
    high.copy_from_slice(&bytes[..len]);
}

/// The two's complement of an integer of up to eight bytes; `word` has them in its low bytes.
#[inline]
pub(super) fn sign_extended(word: u64, len: usize) -> u64 {
    // Two shifts, as there may be no bytes and a shift by 64 is none.
    let half = (4 * (8 - len as u32)) & 63;
    ((word << half << half) as i64 >> half >> half) as u64
}

impl CompactLayout {
    /// Appends the packed record that `compact` holds to `out`; returns its length.
    ///
    /// # Errors
    /// [`RecordError`] when `compact` is damaged; `out` is then as before. A record that [`validate`](Self::validate) accepts gives none.
    pub fn expand(&self, compact: &[u8], out: &mut Vec<u8>) -> Result<usize, RecordError> {
        let start = out.len();
        let result = self.expand_at(compact, start, out);
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    fn expand_at(&self, compact: &[u8], out_start: usize, out: &mut Vec<u8>) -> Result<usize, RecordError> {
        let (header, fixed_len) = (self.header_len(), self.packed.fixed_len());
        if compact.len() < header {
            return Err(self.length_error(compact));
        }
        // Room for all that can come, blanks where CHAR is padded.
        out.resize(out_start + fixed_len, 0);
        out.resize(out_start + (fixed_len + compact.len() + self.chars).min(RECORD_BYTES_MAX) + WORD, b' ');
        let record = &mut out[out_start..];
        let bitmap = self.packed.bitmap_len();
        record[..bitmap].copy_from_slice(&compact[..bitmap]);
        let (mut at, mut end) = (header, fixed_len);
        let mut long_at = self.inline_offset(compact, self.packed.column_count());
        for (index, column) in self.packed.columns.iter().enumerate() {
            let damaged = RecordError::EndOffset { column: index };
            let length = usize::from(compact[bitmap + index / 2] >> (index % 2 * 4) & 15);
            let word = word_at(compact, at);
            let (value, large) = if length == LONG {
                let word = get_u16(compact, at).ok_or(damaged)?;
                let end = usize::from(word & !LARGE_BIT);
                let value = compact.get(long_at..end).ok_or(damaged)?;
                (at, long_at) = (at + LONG_INLINE, end);
                (value, word & LARGE_BIT != 0)
            } else {
                let value = compact.get(at..at + length).ok_or(damaged)?;
                at += length;
                (value, false)
            };
            if let Some(width) = column.physical.fixed_width() {
                let place = usize::from(column.offset);
                let to = &mut record[place..place + width];
                match column.physical {
                    Physical::Real | Physical::Double => extend_low(value, to),
                    Physical::Uuid | Physical::Interval => to[..value.len().min(width)].copy_from_slice(&value[..value.len().min(width)]),
                    _ if length <= 8 && width <= 8 => {
                        let integer = sign_extended(word as u64, length).to_le_bytes();
                        // The usual widths with one store.
                        match width {
                            8 => to.copy_from_slice(&integer),
                            4 => to.copy_from_slice(&integer[..4]),
                            _ => to.iter_mut().zip(integer).for_each(|(to, byte)| *to = byte),
                        }
                    }
                    _ => extend_sign(value, to),
                }
                continue;
            }
            let blanks = match column.physical {
                Physical::Char { chars } if !large && !column.is_null(compact) => {
                    padding(value, chars).ok_or(RecordError::Value { column: index })?
                }
                _ => 0,
            };
            let start = end;
            end += value.len() + blanks;
            if end > RECORD_BYTES_MAX {
                return Err(RecordError::Length { bytes: end, least: fixed_len, most: RECORD_BYTES_MAX });
            }
            if length == LONG {
                record[start..start + value.len()].copy_from_slice(value);
            } else {
                // All 16 bytes, blanks behind the value.
                let behind = u128::MAX << (8 * length);
                record[start..start + WORD].copy_from_slice(&(word & !behind | BLANKS & behind).to_le_bytes());
            }
            column.set_end(record, end, large);
        }
        out.truncate(out_start + end);
        Ok(end)
    }
}

/// The bytes of `compact` from `at` on that fit a word, zeros behind its end.
#[inline]
fn word_at(compact: &[u8], at: usize) -> u128 {
    let rest = compact.get(at..).unwrap_or_default();
    match rest.first_chunk() {
        Some(word) => u128::from_le_bytes(*word),
        None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u128::from(byte)),
    }
}

//! Packed records from compact ones.
//!
//! One pass over the columns, without looking any of them up. Bounds are checked as it goes, so damaged records give errors; that what comes out is a
//! packed record is for [`CompactLayout::validate`] to say.

use super::encode::padding;
use super::layout::{CompactLayout, LARGE_BIT, LONG, LONG_INLINE, get_u16};
use crate::RecordError;
use crate::data_type::Physical;
use crate::row::RECORD_BYTES_MAX;

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
fn sign_extended(word: u64, len: usize) -> u64 {
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
        let header = self.header_len();
        if compact.len() < header {
            return Err(self.length_error(compact));
        }
        out.resize(out_start + self.packed.fixed_len(), 0);
        let bitmap = self.packed.bitmap_len();
        out[out_start..out_start + bitmap].copy_from_slice(&compact[..bitmap]);
        let mut at = header;
        let mut long_at = self.inline_offset(compact, self.packed.column_count());
        for (index, column) in self.packed.columns.iter().enumerate() {
            let damaged = RecordError::EndOffset { column: index };
            let length = usize::from(compact[bitmap + index / 2] >> (index % 2 * 4) & 15);
            let (value, large) = if length == LONG {
                let word = get_u16(compact, at).ok_or(damaged)?;
                let end = usize::from(word & !LARGE_BIT);
                let value = compact.get(long_at..end).ok_or(damaged)?;
                at += LONG_INLINE;
                long_at = end;
                (value, word & LARGE_BIT != 0)
            } else {
                let value = compact.get(at..at + length).ok_or(damaged)?;
                at += length;
                (value, false)
            };
            if let Some(width) = column.physical.fixed_width() {
                if value.is_empty() && column.physical != Physical::Uuid {
                    continue;
                }
                let place = out_start + usize::from(column.offset);
                let to = &mut out[place..place + width];
                match column.physical {
                    Physical::Real | Physical::Double => extend_low(value, to),
                    Physical::Uuid => to[..value.len().min(width)].copy_from_slice(&value[..value.len().min(width)]),
                    _ => match (compact.get(at.wrapping_sub(length)..).and_then(<[u8]>::first_chunk), to.len()) {
                        // Integers of the usual widths with a load and a store.
                        (Some(word), 8) if length <= 8 => {
                            to.copy_from_slice(&sign_extended(u64::from_le_bytes(*word), length).to_le_bytes());
                        }
                        (Some(word), 4) if length <= 8 => {
                            to.copy_from_slice(&(sign_extended(u64::from_le_bytes(*word), length) as u32).to_le_bytes());
                        }
                        _ => extend_sign(value, to),
                    },
                }
                continue;
            }
            let blanks = match column.physical {
                Physical::Char { chars } if !large && !column.is_null(compact) => {
                    padding(value, chars).ok_or(RecordError::Value { column: index })?
                }
                _ => 0,
            };
            let end = out.len() - out_start + value.len() + blanks;
            if end > RECORD_BYTES_MAX {
                return Err(RecordError::Length { bytes: end, least: self.packed.fixed_len(), most: RECORD_BYTES_MAX });
            }
            out.extend_from_slice(value);
            out.resize(out_start + end, b' ');
            column.set_end(&mut out[out_start..], end, large);
        }
        Ok(out.len() - out_start)
    }
}

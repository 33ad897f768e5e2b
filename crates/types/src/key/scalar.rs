//! One value of a key, ascending and not NULL, as bytes. Formats:
//!
//! | Kind | Bytes |
//! |---|---|
//! | BOOLEAN | 1: 0 or 1 |
//! | integers, dates, times | big-endian at the width of the record, sign bit flipped |
//! | DECIMAL | as integers, at the width its precision needs |
//! | REAL, DOUBLE | big-endian bits; all flipped when negative, else only the sign; -0 as 0; one NaN, greatest |
//! | UUID | its 16 bytes |
//! | INTERVAL | its span in microseconds, as an integer of 16 bytes |
//! | CHAR(n) | UTF-8, padded with blanks to n characters, no terminator |
//! | VARCHAR, BYTEA | the bytes, then 00; a byte 00 is written 01 01, a byte 01 is written 01 02 |
//!
//! **Prefix-free**: of two different keys of one layout none is the beginning of the other. Fixed widths are so trivially. CHAR(n): both have n characters, and of
//! UTF-8 texts the longer one that begins with the shorter has more characters. Terminated ones: 00 occurs only as the last byte.
//!
//! **Order-preserving**: for the escapes, 00 < 01 < 02 become 01 01 < 01 02 < 02, and all are above the terminator.

use crate::data_type::Physical;
use crate::value::{f32_from_ordered, f32_ordered, f64_from_ordered, f64_ordered, fit_char};
use crate::{Interval, Value, ValueRef};

const TERMINATOR: u8 = 0;
const ESCAPE: u8 = 1;

/// Little-endian two's complement to key bytes.
#[inline]
pub(super) fn put_flipped(little_endian: &[u8], out: &mut Vec<u8>) {
    let at = out.len();
    out.extend(little_endian.iter().rev());
    if let Some(first) = out.get_mut(at) {
        *first ^= 0x80;
    }
}

/// Appends escaped and terminated bytes.
pub(super) fn put_terminated(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + 1);
    if bytes.iter().all(|b| *b > ESCAPE) {
        out.extend_from_slice(bytes);
    } else {
        for byte in bytes {
            if *byte <= ESCAPE {
                out.push(ESCAPE);
            }
            out.push(if *byte <= ESCAPE { byte + 1 } else { *byte });
        }
    }
    out.push(TERMINATOR);
}

/// Appends a value; the caller has checked that it is of the kind and fits. Another kind appends nothing and gives false.
pub(super) fn put(value: ValueRef<'_>, physical: Physical, out: &mut Vec<u8>) -> bool {
    match (physical, value) {
        (Physical::Boolean, ValueRef::Boolean(b)) => out.push(u8::from(b)),
        (Physical::Int { width }, ValueRef::Int(i)) => put_flipped(&i.to_le_bytes()[..usize::from(width)], out),
        (Physical::Decimal { width }, ValueRef::Decimal(d)) => put_flipped(&d.to_le_bytes()[..usize::from(width)], out),
        (Physical::Real, ValueRef::Real(x)) => out.extend(f32_ordered(x).to_be_bytes()),
        (Physical::Double, ValueRef::Double(x)) => out.extend(f64_ordered(x).to_be_bytes()),
        (Physical::Uuid, ValueRef::Uuid(u)) => out.extend(u),
        (Physical::Interval, ValueRef::Interval(i)) => put_flipped(&i.span().to_le_bytes(), out),
        (Physical::Char { chars }, ValueRef::Text(s)) => {
            let Some((kept, pad)) = fit_char(s, chars) else { return false };
            out.extend_from_slice(kept.as_bytes());
            out.resize(out.len() + pad, b' ');
        }
        (Physical::Text, ValueRef::Text(s)) => put_terminated(s.as_bytes(), out),
        (Physical::Bytes, ValueRef::Bytes(b)) => put_terminated(b, out),
        _ => return false,
    }
    true
}

/// Bytes with the direction undone.
pub(super) struct KeyReader<'k> {
    key: &'k [u8],
    at: usize,
    /// 0xFF for a descending column.
    pub(super) flip: u8,
}

impl<'k> KeyReader<'k> {
    pub(super) fn new(key: &'k [u8]) -> KeyReader<'k> {
        KeyReader { key, at: 0, flip: 0 }
    }

    pub(super) fn offset(&self) -> usize {
        self.at
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.key.len()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let byte = self.key.get(self.at)? ^ self.flip;
        self.at += 1;
        Some(byte)
    }

    pub(super) fn skip(&mut self, bytes: usize) -> Option<()> {
        self.at = self.at.checked_add(bytes).filter(|at| *at <= self.key.len())?;
        Some(())
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut bytes: [u8; N] = self.key.get(self.at..self.at + N)?.try_into().ok()?;
        bytes.iter_mut().for_each(|b| *b ^= self.flip);
        self.at += N;
        Some(bytes)
    }

    /// Sign-extended big-endian with the sign flipped.
    fn flipped(&mut self, width: u8) -> Option<i128> {
        let mut value = i128::from((self.byte()? ^ 0x80).cast_signed());
        for _ in 1..width {
            value = value << 8 | i128::from(self.byte()?);
        }
        Some(value)
    }

    fn terminated(&mut self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            match self.byte()? {
                TERMINATOR => return Some(bytes),
                ESCAPE => match self.byte()? {
                    escaped @ (1 | 2) => bytes.push(escaped - 1),
                    _ => return None,
                },
                byte => bytes.push(byte),
            }
        }
    }

    fn chars(&mut self, chars: u32) -> Option<String> {
        let mut bytes = Vec::new();
        for _ in 0..chars {
            let first = self.byte()?;
            bytes.push(first);
            let more = match first {
                0xF0.. => 3,
                0xE0.. => 2,
                0xC0.. => 1,
                _ => 0,
            };
            for _ in 0..more {
                bytes.push(self.byte()?);
            }
        }
        String::from_utf8(bytes).ok()
    }

    /// Takes a value; `None` when the bytes are none.
    pub(super) fn value(&mut self, physical: Physical) -> Option<Value> {
        Some(match physical {
            Physical::Boolean => match self.byte()? {
                0 => Value::Boolean(false),
                1 => Value::Boolean(true),
                _ => return None,
            },
            Physical::Int { width } => Value::Int(self.flipped(width)? as i64),
            Physical::Decimal { width } => Value::Decimal(self.flipped(width)?),
            // Of the bits of zeros and NaNs only one of each is a key.
            Physical::Real => {
                let ordered = u32::from_be_bytes(self.array()?);
                Some(f32_from_ordered(ordered)).filter(|x| f32_ordered(*x) == ordered).map(Value::Real)?
            }
            Physical::Double => {
                let ordered = u64::from_be_bytes(self.array()?);
                Some(f64_from_ordered(ordered)).filter(|x| f64_ordered(*x) == ordered).map(Value::Double)?
            }
            Physical::Uuid => Value::Uuid(self.array()?),
            Physical::Interval => Value::Interval(Interval::of_span(self.flipped(16)?)?),
            Physical::Char { chars } => Value::Text(self.chars(chars)?),
            Physical::Text => Value::Text(String::from_utf8(self.terminated()?).ok()?),
            Physical::Bytes => Value::Bytes(self.terminated()?),
        })
    }
}

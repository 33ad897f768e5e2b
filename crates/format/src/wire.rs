//! Reading and writing small binary records: log forms of ops, header fields, catalog blobs.
//!
//! Invariant: a [`Reader`] never reads past its bytes and never allocates.

use crate::FormatError;
use pagefold_codec::splice::{Splice, Unit};

/// Appends a length (u16) and the bytes. Everything inside a page is shorter than 64 KB.
///
/// # Panics
/// When `bytes` are longer than 65,535: no caller has such.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).expect("a part of a page");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Appends a number in as few bytes as it needs: seven bits a byte, the low ones first, the top bit set on all but the last (LEB128).
pub fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The two units that a splice may count, by the lowest bit of its first number. Whether a splice counts [bits](is_in_bits) the tag before it tells.
const UNITS: [[Unit; 2]; 2] = [[Unit::Bytes, Unit::Codes], [Unit::Bits, Unit::BitsCut]];

/// Does it count bits?
#[must_use]
pub fn is_in_bits(splice: &Splice<'_>) -> bool {
    matches!(splice.unit, Unit::Bits | Unit::BitsCut)
}

/// Appends a splice: where, with the unit in the lowest bit (1: codes, or bits with a cut), how many units go, how many come, and those.
pub fn put_splice(out: &mut Vec<u8>, splice: Splice<'_>) {
    put_varint(out, u64::from(splice.at) << 1 | u64::from(matches!(splice.unit, Unit::Codes | Unit::BitsCut)));
    put_varint(out, splice.removed.into());
    put_varint(out, splice.inserted.into());
    out.extend_from_slice(splice.bytes);
}

/// Reads a splice back, one in bits or another.
///
/// # Errors
/// When the bytes are none.
pub fn read_splice<'a>(reader: &mut Reader<'a>, in_bits: bool) -> Result<Splice<'a>, FormatError> {
    let head = reader.varint32()?;
    let unit = UNITS[usize::from(in_bits)][head as usize & 1];
    let at = u16::try_from(head >> 1).map_err(|_| FormatError::new("a change far behind a row"))?;
    let (removed, inserted) = (reader.varint16()?, reader.varint16()?);
    Ok(Splice { unit, at, removed, inserted, bytes: reader.take(Splice::piece_len(unit, inserted))? })
}

/// A cursor over untrusted bytes.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads these bytes from their start.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes }
    }

    /// Nothing left?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next `n` bytes.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], FormatError> {
        let (head, tail) =
            self.bytes.split_at_checked(n).ok_or_else(|| FormatError::new(format!("{n} bytes expected, {} left", self.bytes.len())))?;
        self.bytes = tail;
        Ok(head)
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    /// One byte.
    ///
    /// # Errors
    /// When none is left.
    pub fn u8(&mut self) -> Result<u8, FormatError> {
        Ok(self.array::<1>()?[0])
    }

    /// Two bytes, little-endian.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn u16(&mut self) -> Result<u16, FormatError> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes, little-endian.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn u32(&mut self) -> Result<u32, FormatError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes, little-endian.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn u64(&mut self) -> Result<u64, FormatError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Sixteen bytes, little-endian.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn u128(&mut self) -> Result<u128, FormatError> {
        self.array().map(u128::from_le_bytes)
    }

    /// A number as [`put_varint`] writes it, of at most 16 bits.
    ///
    /// # Errors
    /// When bytes are missing, or the number has more bits.
    pub fn varint16(&mut self) -> Result<u16, FormatError> {
        u16::try_from(self.varint()?).map_err(|_| FormatError::new("a number of more than 16 bits"))
    }

    /// A number as [`put_varint`] writes it.
    ///
    /// # Errors
    /// When bytes are missing, or the number has more than 64 bits.
    pub fn varint(&mut self) -> Result<u64, FormatError> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte == 0 && shift > 0 {
                return Err(FormatError::new("a number in more bytes than it needs"));
            }
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(FormatError::new("a number of more than 64 bits"))
    }

    /// A number of at most 32 bits as [`put_varint`] writes it.
    ///
    /// # Errors
    /// As [`Self::varint`].
    pub fn varint32(&mut self) -> Result<u32, FormatError> {
        u32::try_from(self.varint()?).map_err(|_| FormatError::new("a number of more than 32 bits"))
    }

    /// Bytes behind their length, as [`put_bytes`] writes them.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn bytes(&mut self) -> Result<&'a [u8], FormatError> {
        let length = self.u16()?;
        self.take(usize::from(length))
    }
}

//! What turns one stored row into another: one piece in the place of another.
//!
//! Pieces are counted in bytes, in 12-bit codes or in bits. In codes, because a change in the number of codes shifts all that follow by half bytes, and in bits where codes are of any length: as bytes the whole rest of the row would differ.
//!
//! Invariant: counts are those of the rows that a splice was made of; [`Splice::apply`] checks them against any other row.

mod bits;

use crate::CodecError;
use crate::bytes::difference;
use crate::row::{CODE_BITS, CodeWriter, code_at, code_count, compressed_len};

/// What a splice counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Codes of 12 bits, see [`crate::row`].
    Codes,
    /// Bits, the highest of a byte first. Behind the last one a byte is filled up with ones.
    Bits,
    /// Bits; of the last byte those that are in excess of whole bytes are cut off.
    BitsCut,
}

/// One piece of a row in the place of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Splice<'a> {
    /// What is counted.
    pub unit: Unit,
    /// Units before the piece.
    pub at: u16,
    /// Units that go.
    pub removed: u16,
    /// Units that come.
    pub inserted: u16,
    /// What comes: [`piece_len`](Self::piece_len) bytes.
    pub bytes: &'a [u8],
}

/// Rows whose codes are shifted against each other have no more than this in common at their ends, but by chance.
const UNSHIFTED_TAIL: usize = 4;

/// Four or five codes: what a change of a value differs by.
const FEW_CODES_BYTES: usize = 8;

const NO_SUCH_PIECE: CodecError = CodecError::Row("has no such piece");

/// Number of codes in a row; `None` when it has bits that are in none of them: it is of another kind.
fn whole_codes(row: &[u8]) -> Option<usize> {
    let count = code_count(row.len())?;
    (count.is_multiple_of(2) || row.last().is_some_and(|last| last >> 4 == 0)).then_some(count)
}

/// How many of the last codes of two rows are the same, up to `most`.
fn common_tail((a, a_count): (&[u8], usize), (b, b_count): (&[u8], usize), most: usize) -> usize {
    let four = |bytes: &[u8], index: usize| {
        let bit = index * CODE_BITS as usize;
        Some(u64::from_le_bytes(*bytes.get(bit / 8..)?.first_chunk()?) >> (bit % 8) & ((1 << (4 * CODE_BITS)) - 1))
    };
    let mut tail = 0;
    while tail < most {
        // Four at a time where eight bytes can be loaded.
        if tail + 4 <= most
            && let (Some(x), Some(y)) = (four(a, a_count - tail - 4), four(b, b_count - tail - 4))
            && x == y
        {
            tail += 4;
        } else if code_at(a, a_count - tail - 1) == code_at(b, b_count - tail - 1) {
            tail += 1;
        } else {
            break;
        }
    }
    tail
}

/// A row has at most 32 KB.
fn short(n: usize) -> u16 {
    u16::try_from(n).expect("a row has less than 64 KB")
}

/// What a splice counts, and how many.
struct Counts {
    unit: Unit,
    at: usize,
    removed: usize,
    inserted: usize,
}

/// The shortest splice in codes, when it is shorter than that of bytes; `piece` gets the codes.
fn codes_between(from: &[u8], to: &[u8], as_bytes: &Splice<'_>, piece: &mut Vec<u8>) -> Option<Counts> {
    // While pairs of codes stay pairs, the bytes that differ are those of the codes that do, but for half bytes at either end.
    if from.len() % 3 == to.len() % 3 {
        return None;
    }
    let (from_count, to_count) = (whole_codes(from)?, whole_codes(to)?);
    let fewer = from_count.min(to_count);
    // The codes that lie in the bytes before the piece are the same, and perhaps the one that ends in it.
    let mut head = (usize::from(as_bytes.at) * 8 / CODE_BITS as usize).min(fewer);
    while head < fewer && code_at(from, head) == code_at(to, head) {
        head += 1;
    }
    let tail = common_tail((from, from_count), (to, to_count), fewer - head);
    let inserted = to_count - head - tail;
    if compressed_len(inserted) >= as_bytes.bytes.len() {
        return None;
    }
    piece.clear();
    let mut writer = CodeWriter::new(piece);
    (head..to_count - tail).for_each(|index| writer.push(code_at(to, index)));
    writer.finish();
    Some(Counts { unit: Unit::Codes, at: head, removed: from_count - head - tail, inserted })
}

impl<'a> Splice<'a> {
    /// These bytes in the place of so many others.
    ///
    /// # Panics
    /// When there are 64 KB or more.
    #[must_use]
    pub fn of_bytes(at: usize, removed: usize, bytes: &'a [u8]) -> Splice<'a> {
        Splice { unit: Unit::Bytes, at: short(at), removed: short(removed), inserted: short(bytes.len()), bytes }
    }

    /// The shortest one between two rows.
    ///
    /// # Panics
    /// When a row has 64 KB or more.
    #[must_use]
    pub fn between(from: &[u8], to: &'a [u8]) -> Splice<'a> {
        let (at, removed, bytes) = difference(from, to);
        Splice::of_bytes(at, removed, bytes)
    }

    /// The shortest one between two compressed rows: of bytes, unless codes or bits take fewer. `piece` gets those.
    ///
    /// # Panics
    /// As [`between`](Self::between).
    #[must_use]
    pub fn between_compressed(from: &[u8], to: &'a [u8], piece: &'a mut Vec<u8>) -> Splice<'a> {
        let as_bytes = Splice::between(from, to);
        // A code takes two bytes.
        if as_bytes.bytes.len() <= 2 {
            return as_bytes;
        }
        let mut found = codes_between(from, to, &as_bytes, piece);
        let tail = from.len() - usize::from(as_bytes.at) - usize::from(as_bytes.removed);
        let shortest = if found.is_some() { piece.len() } else { as_bytes.bytes.len() };
        // Rows that end alike are not shifted, and those that are shifted by codes differ by few of them.
        if tail < UNSHIFTED_TAIL && (found.is_none() || shortest > FEW_CODES_BYTES) {
            let mut in_bits = Vec::new();
            if let Some(counts) = bits::between(from, to, &mut in_bits).filter(|_| in_bits.len() + 1 < shortest) {
                found = Some(counts);
                *piece = in_bits;
            }
        }
        let Some(Counts { unit, at, removed, inserted }) = found else { return as_bytes };
        Splice { unit, at: short(at), removed: short(removed), inserted: short(inserted), bytes: piece }
    }

    /// Bytes that so many units take.
    #[must_use]
    pub fn piece_len(unit: Unit, units: u16) -> usize {
        match unit {
            Unit::Bytes => usize::from(units),
            Unit::Codes => compressed_len(usize::from(units)),
            Unit::Bits | Unit::BitsCut => usize::from(units).div_ceil(8),
        }
    }

    /// Appends what a row becomes.
    ///
    /// # Errors
    /// When the row has no such piece, or is not one of codes; nothing is appended then.
    pub fn apply(&self, row: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
        let (at, end) = (usize::from(self.at), usize::from(self.at) + usize::from(self.removed));
        if self.bytes.len() != Splice::piece_len(self.unit, self.inserted) {
            return Err(CodecError::Row("a piece of another length"));
        }
        match self.unit {
            Unit::Bytes => {
                let tail = row.get(end..).ok_or(NO_SUCH_PIECE)?;
                [&row[..at], self.bytes, tail].into_iter().for_each(|part| out.extend_from_slice(part));
            }
            Unit::Codes => {
                if whole_codes(row).is_none_or(|count| end > count) {
                    return Err(NO_SUCH_PIECE);
                }
                let mut writer = CodeWriter::new(out);
                writer.push_first(row, at);
                (0..usize::from(self.inserted)).for_each(|index| writer.push(code_at(self.bytes, index)));
                writer.finish_with(row, end);
            }
            Unit::Bits | Unit::BitsCut => bits::apply(self, row, out)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::bits::tests::packed;
    use super::*;
    use crate::row::tests::random;

    fn row(codes: &[u16]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = CodeWriter::new(&mut out);
        codes.iter().for_each(|&code| writer.push(code));
        writer.finish();
        out
    }

    #[test]
    fn leads_from_one_row_to_the_other() {
        let mut state = 3;
        let mut random = |below| random(&mut state, below);
        let mut in_codes = 0;
        for _ in 0..20_000 {
            // Few different codes, so that pieces can be placed in more ways than one.
            let alphabet = if random(2) == 0 { 2 } else { 4096 };
            let from: Vec<u16> = (0..random(40)).map(|_| random(alphabet) as u16).collect();
            let at = random(from.len() + 1);
            let end = at + random(from.len() - at + 1).min(3);
            let mut to = from.clone();
            let piece: Vec<u16> = (0..random(4)).map(|_| random(alphabet) as u16).collect();
            to.splice(at..end, piece.iter().copied());
            let (from, to) = (row(&from), row(&to));
            let mut codes = Vec::new();
            let splice = Splice::between_compressed(&from, &to, &mut codes);
            in_codes += u32::from(splice.unit == Unit::Codes);
            assert!(splice.bytes.len() <= compressed_len(piece.len()).max(1) + 1);
            for splice in [splice, Splice::between(&from, &to)] {
                let mut out = b"before".to_vec();
                splice.apply(&from, &mut out).unwrap();
                assert_eq!(out[6..], to);
            }
        }
        assert!(in_codes > 2000, "{in_codes}");
    }

    /// Rows of Huffman codes before and after a change that makes a code longer or shorter: what is logged is that code, not all that it shifts.
    #[test]
    #[cfg_attr(miri, ignore = "safe code, slow there")]
    fn shifted_bits_are_not_in_a_splice() {
        let mut state = 11;
        let mut random = |below| random(&mut state, below);
        let (mut in_bits, mut pieces) = (0, 0);
        for _ in 0..5000 {
            // Code words as number and length.
            let mut words: Vec<(u32, usize)> = (0..40).map(|_| (random(1 << 12) as u32, 4 + random(9))).collect();
            let packed = |words: &[(u32, usize)]| {
                packed(&words.iter().flat_map(|(word, len)| (0..*len).rev().map(move |bit| word >> bit & 1 == 1)).collect::<Vec<bool>>())
            };
            let from = packed(&words);
            words[random(30)] = (random(1 << 12) as u32, 4 + random(9));
            let to = packed(&words);
            let mut piece = Vec::new();
            let splice = Splice::between_compressed(&from, &to, &mut piece);
            in_bits += u32::from(matches!(splice.unit, Unit::Bits | Unit::BitsCut));
            pieces += splice.bytes.len();
            let mut out = Vec::new();
            splice.apply(&from, &mut out).unwrap();
            assert_eq!(out, to);
        }
        assert!(in_bits > 3500, "{in_bits}");
        assert!(pieces < 5000 * 3, "{pieces} bytes");
    }

    #[test]
    fn rows_of_another_kind_stay_whole() {
        let mut state = 5;
        let mut random = |below| random(&mut state, below);
        for _ in 0..20_000 {
            let from: Vec<u8> = (0..random(30)).map(|_| random(256) as u8).collect();
            // Shifted by half a byte, so that it would pay to count codes.
            let mut to: Vec<u8> = from.iter().scan(7, |carry, byte| Some(byte << 4 | std::mem::replace(carry, byte >> 4))).collect();
            to.truncate(to.len() - random(to.len() + 1) % 3);
            let (mut codes, mut out) = (Vec::new(), Vec::new());
            let splice = Splice::between_compressed(&from, &to, &mut codes);
            splice.apply(&from, &mut out).unwrap();
            assert_eq!(out, to, "{splice:?}");
        }
    }

    #[test]
    fn a_piece_that_is_not_there_is_refused() {
        let from = row(&[1, 2, 3, 4, 5]);
        for unit in [Unit::Bytes, Unit::Codes] {
            for (at, removed, inserted, len) in
                (0..12).flat_map(|at| (0..12).flat_map(move |removed| [(at, removed, 2, 3), (at, removed, 3, 3), (at, removed, 0, 0)]))
            {
                let bytes = &[7; 8][..len];
                let splice = Splice { unit, at, removed, inserted, bytes };
                let units = if unit == Unit::Bytes { from.len() } else { 5 };
                let fits = usize::from(at + removed) <= units && len == Splice::piece_len(unit, inserted);
                let mut out = Vec::new();
                assert_eq!(splice.apply(&from, &mut out).is_ok(), fits, "{splice:?}");
                assert!(fits || out.is_empty());
            }
        }
        let splice = Splice { unit: Unit::Codes, at: 0, removed: 0, inserted: 0, bytes: &[] };
        assert!(splice.apply(&[1, 2, 3, 4], &mut Vec::new()).is_err(), "no row of codes has four bytes");
    }
}

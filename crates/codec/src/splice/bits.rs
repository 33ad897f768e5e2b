//! Splices of rows whose codes are of any number of bits.
//!
//! The bits of such a row end within its last byte, and nobody but its dictionary tells where: what is behind them are ones. So the bits that two rows have in common at their ends are looked for with either's last bits left out, as many as padding can be.
//!
//! Invariant: the highest bit of a byte is its first.

use super::{CodecError, Counts, NO_SUCH_PIECE, Splice, Unit};
use crate::bytes::common_prefix;
use crate::row::BitWriter;

/// Padding has fewer bits.
const BYTE_BITS: usize = 8;
/// Rows of more bytes are told apart by bytes: counts of a splice have 16 bits.
const ROW_BYTES_MAX: usize = u16::MAX as usize / BYTE_BITS;

/// The 64 bits before `end`; zeros where there are none.
fn before(row: &[u8], end: usize) -> u64 {
    let (last, shift) = (end.div_ceil(BYTE_BITS), end.wrapping_neg() % BYTE_BITS);
    let word = |last: usize| match row[..last].last_chunk::<8>() {
        Some(word) => u64::from_be_bytes(*word),
        None => row[..last].iter().fold(0, |word, byte| word << BYTE_BITS | u64::from(*byte)),
    };
    if shift == 0 {
        return word(last);
    }
    // Nine bytes hold them.
    let high = if last > BYTE_BITS { u64::from(row[last - 1 - BYTE_BITS]) } else { 0 };
    word(last) >> shift | high << (64 - shift)
}

/// How many of the first bits are the same.
fn common_head(from: &[u8], to: &[u8]) -> usize {
    let bytes = common_prefix(from, to);
    match (from.get(bytes), to.get(bytes)) {
        (Some(a), Some(b)) => bytes * BYTE_BITS + (a ^ b).leading_zeros() as usize,
        _ => bytes * BYTE_BITS,
    }
}

/// How many bits before these ends are the same, `most` at most.
fn common_tail((from, from_end): (&[u8], usize), (to, to_end): (&[u8], usize), most: usize) -> usize {
    let mut tail = 0;
    while tail < most {
        let differing = before(from, from_end - tail) ^ before(to, to_end - tail);
        tail += differing.trailing_zeros() as usize;
        if differing != 0 {
            break;
        }
    }
    tail.min(most)
}

/// The shortest splice in bits; `piece` gets the bits. `None` when a row is too long, or there is none that leads to the other row.
pub(super) fn between(from: &[u8], to: &[u8], piece: &mut Vec<u8>) -> Option<Counts> {
    if from.len().max(to.len()) > ROW_BYTES_MAX {
        return None;
    }
    let (from_bits, to_bits) = (from.len() * BYTE_BITS, to.len() * BYTE_BITS);
    let head = common_head(from, to);
    let tail = |from_end: usize, to_end: usize| {
        let most = from_end.min(to_end).checked_sub(head)?;
        Some((common_tail((from, from_end), (to, to_end), most), from_end, to_end))
    };
    // The other row has so many bits of padding more, or fewer.
    let more = (0..BYTE_BITS).filter(|more| before(to, to_bits).trailing_ones() as usize >= *more);
    let more = more.filter_map(|more| tail(from_bits, to_bits.checked_sub(more)?));
    let fewer = (1..BYTE_BITS).filter_map(|fewer| tail(from_bits.checked_sub(fewer)?, to_bits));
    let (tail, from_end, to_end) = more.chain(fewer).min_by_key(|(tail, _, to_end)| to_end - tail)?;
    piece.clear();
    let mut writer = BitWriter::new(piece);
    writer.push_range(to, head, to_end - tail);
    writer.finish();
    let unit = if from_end < from_bits { Unit::BitsCut } else { Unit::Bits };
    Some(Counts { unit, at: head, removed: from_end - tail - head, inserted: to_end - tail - head })
}

/// Appends what a row becomes.
///
/// # Errors
/// When the row has no such piece; nothing is appended then.
pub(super) fn apply(splice: &Splice<'_>, row: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
    let (at, inserted) = (usize::from(splice.at), usize::from(splice.inserted));
    let tail = at + usize::from(splice.removed);
    let mut end = row.len() * BYTE_BITS;
    let tail_bits = end.checked_sub(tail).ok_or(NO_SUCH_PIECE)?;
    if splice.unit == Unit::BitsCut {
        let surplus = (at + inserted + tail_bits) % BYTE_BITS;
        end = end.checked_sub(surplus).filter(|end| *end >= tail).ok_or(NO_SUCH_PIECE)?;
    }
    let mut writer = BitWriter::new(out);
    writer.push_range(row, 0, at);
    writer.push_range(splice.bytes, 0, inserted);
    writer.push_range(row, tail, end);
    writer.finish();
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::row::tests::random;

    #[test]
    fn bits_before_a_place() {
        let row: Vec<u8> = (0..20).map(|i| (i * 37 + 11) as u8).collect();
        for end in 0..=row.len() * 8 {
            let expected = (end.saturating_sub(64)..end).fold(0_u64, |word, bit| word << 1 | u64::from(row[bit / 8] >> (7 - bit % 8) & 1));
            assert_eq!(before(&row, end), expected, "{end}");
        }
    }

    /// Bits as a row has them, filled up with ones.
    pub(in crate::splice) fn packed(bits: &[bool]) -> Vec<u8> {
        let byte = |bits: &[bool]| (0..8).fold(0, |byte, i| byte << 1 | u8::from(bits.get(i).copied().unwrap_or(true)));
        bits.chunks(8).map(byte).collect()
    }

    fn splice<'a>(from: &[u8], to: &[u8], piece: &'a mut Vec<u8>) -> Splice<'a> {
        let Counts { unit, at, removed, inserted } = between(from, to, piece).unwrap();
        let [at, removed, inserted] = [at, removed, inserted].map(|count| count as u16);
        Splice { unit, at, removed, inserted, bytes: piece }
    }

    #[test]
    #[cfg_attr(miri, ignore = "safe code, slow there")]
    fn leads_from_one_row_to_the_other() {
        let mut state = 7;
        let mut longest = 0;
        for round in 0..60_000 {
            // Few different bits, so that pieces can be placed in more ways than one.
            let few = round % 2 == 0;
            let mut bits = |count: usize| -> Vec<bool> { (0..count).map(|_| random(&mut state, if few { 9 } else { 2 }) == 0).collect() };
            let from = bits(round % 301);
            let piece = bits(round % 23);
            let at = random(&mut state, from.len() + 1);
            let end = at + random(&mut state, from.len() - at + 1).min(round % 19);
            let mut to = from.clone();
            to.splice(at..end, piece.iter().copied());
            let (from, to) = (packed(&from), packed(&to));
            let mut room = Vec::new();
            let splice = splice(&from, &to, &mut room);
            assert!(usize::from(splice.inserted) <= piece.len() + 7, "{splice:?}");
            let mut out = b"before".to_vec();
            splice.apply(&from, &mut out).unwrap();
            assert_eq!(&out[6..], to, "{splice:?}");
            longest = longest.max(splice.inserted);
        }
        assert!(longest > 15);
    }

    #[test]
    fn any_row_comes_of_any_other() {
        let mut state = 9;
        for _ in 0..20_000 {
            let [from, to] = [40, 40].map(|most| {
                let count = random(&mut state, most);
                (0..count).map(|_| [0, 255, random(&mut state, 256) as u8][random(&mut state, 3)]).collect::<Vec<u8>>()
            });
            let mut room = Vec::new();
            let splice = splice(&from, &to, &mut room);
            let mut out = Vec::new();
            splice.apply(&from, &mut out).unwrap();
            assert_eq!(out, to, "{from:?} {splice:?}");
        }
        let long = vec![1; ROW_BYTES_MAX + 1];
        assert!(between(&long, &[], &mut Vec::new()).is_none() && between(&[], &long, &mut Vec::new()).is_none());
    }

    #[test]
    fn a_piece_that_is_not_there_is_refused() {
        let row = [0x5a; 3];
        let mut refused = 0;
        for unit in [Unit::Bits, Unit::BitsCut] {
            for (at, removed, inserted) in (0..30).flat_map(|at| (0..30).flat_map(move |removed| (0..10).map(move |i| (at, removed, i)))) {
                let bytes = &[7; 2][..Splice::piece_len(unit, inserted)];
                let splice = Splice { unit, at, removed, inserted, bytes };
                let mut out = Vec::new();
                let done = splice.apply(&row, &mut out).is_ok();
                let bits = 24 + usize::from(inserted) - usize::from(removed).min(24);
                assert!(done || out.is_empty());
                assert!(!done || (at + removed <= 24 && out.len() <= bits.div_ceil(8)), "{splice:?}");
                assert_eq!(done, at + removed <= 24 && (unit == Unit::Bits || 24 - at - removed >= (24 + inserted - removed) % 8));
                refused += u32::from(!done);
            }
        }
        assert!(refused > 1000);
    }
}

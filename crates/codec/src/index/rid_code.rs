//! RIDs as small numbers.
//!
//! A RID is made **linear** first: its 12 slot bits shrink to `slot_bits`, so that the first slot of a page follows the last of the one before at a small distance.
//! The first RID of an entry is coded as the difference from the last RID of the entry before (0 for the first entry): a 4-bit code and up to 7 bytes.
//!
//! | Code | Difference | Bytes |
//! |---|---|---|
//! | 0-3 | +1 to +4 | 0 |
//! | 4-10 | not negative | 1-7 |
//! | 11-14 | negative, its absolute value | 1, 3, 5, 7 |
//! | 15 | reserved (entries with deleted marks, next version) | |
//!
//! Invariant: dropping an entry from between two others never makes the fold larger. Positive lengths are complete and negative lengths grow by 2,
//! the byte that holds the dropped code makes up for it; `cost::tests` has the proof by trial.

/// RIDs are 56 bits.
const RID_BITS: u32 = 56;
/// Slot bits of a RID.
const SLOT_BITS: u32 = 12;

/// Bytes after the code.
pub(crate) const LENGTH: [u8; 16] = [0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 1, 3, 5, 7, 0];
/// What the code itself stands for.
pub(crate) const BASE: [u8; 16] = [1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// All ones when the bytes are subtracted.
pub(crate) const SIGN: [u64; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, !0, !0, !0, !0, 0];
/// Selects the bytes after the code from a little-endian word.
pub(crate) const MASK: [u64; 16] = {
    let mut mask = [0u64; 16];
    let mut i = 0;
    while i < 16 {
        mask[i] = (1u64 << (8 * LENGTH[i])) - 1;
        i += 1;
    }
    mask
};
/// The code that is none.
pub(crate) const RESERVED: u8 = 15;

/// The packed RID (below 2^56) with its slot cut to `slot_bits`, which it must fit.
#[inline]
#[must_use]
pub fn linear_rid(packed: u64, slot_bits: u8) -> u64 {
    (packed >> SLOT_BITS) << slot_bits | (packed & 0xFFF)
}

/// The packed RID of a linear one.
#[inline]
pub(crate) fn from_linear(linear: u64, slot_bits: u8) -> u64 {
    (linear >> slot_bits) << SLOT_BITS | (linear & ((1 << slot_bits) - 1))
}

/// Linear RIDs are below this.
#[inline]
#[must_use]
pub fn linear_limit(slot_bits: u8) -> u64 {
    1 << (RID_BITS - SLOT_BITS + u32::from(slot_bits))
}

/// The slot bits that `slot` needs.
#[inline]
#[must_use]
pub fn slot_bits_for(slot: u16) -> u8 {
    (16 - slot.leading_zeros()) as u8
}

/// Code and bytes (little-endian, as many as [`LENGTH`] says) of a first RID after `before`.
#[inline]
pub(crate) fn code(before: u64, linear: u64) -> (u8, u64) {
    if linear >= before {
        let up = linear - before;
        if up.wrapping_sub(1) < 4 {
            return ((up - 1) as u8, 0);
        }
        let bytes = (64 - (up | 1).leading_zeros()).div_ceil(8);
        (3 + bytes as u8, up)
    } else {
        let down = before - linear;
        let bytes = (64 - down.leading_zeros()).div_ceil(8);
        (11 + (bytes / 2) as u8, down)
    }
}

/// Bytes after the code.
#[inline]
pub(crate) fn code_len(before: u64, linear: u64) -> usize {
    usize::from(LENGTH[usize::from(code(before, linear).0)])
}

/// The difference that a code and the word after it stand for.
#[inline]
pub(crate) fn difference(code: u8, word: u64) -> u64 {
    let c = usize::from(code & 15);
    ((word & MASK[c]) ^ SIGN[c]).wrapping_sub(SIGN[c]).wrapping_add(u64::from(BASE[c]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip_and_are_shortest() {
        let mut values = vec![0u64, 1, 2, 3, 4, 5, 6, 255, 256, 257];
        for shift in 8..56 {
            values.extend([(1u64 << shift) - 1, 1 << shift, (1 << shift) + 1]);
        }
        for &before in &values {
            for &linear in &values {
                let (c, word) = code(before, linear);
                assert!(c < RESERVED);
                assert_eq!(before.wrapping_add(difference(c, word | !MASK[usize::from(c)])), linear, "{before} {linear} {c}");
                if c > 4 && c != 11 {
                    assert!(word > MASK[usize::from(c - 1)], "one code less would have done");
                }
            }
        }
    }

    #[test]
    fn linear_rids_keep_order_and_round_trip() {
        for bits in 0..=12u8 {
            let mut last = None;
            for page in [0u64, 1, 2, 1 << 20, (1 << 44) - 1] {
                for slot in [0u64, (1 << bits) / 2, (1 << bits) - 1] {
                    let linear = linear_rid(page << 12 | slot, bits);
                    assert!(linear < linear_limit(bits));
                    assert_eq!(from_linear(linear, bits), page << 12 | slot);
                    assert!(last.is_none_or(|l| l <= linear));
                    last = Some(linear);
                }
            }
        }
        assert_eq!([0, 1, 2, 3, 4, 255, 256, 4095].map(slot_bits_for), [0, 1, 2, 2, 3, 8, 9, 12]);
    }
}

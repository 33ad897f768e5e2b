//! Bits of a window picked by a mask, one behind the other, and back.
//!
//! Invariant: for numbers that agree outside the mask, `pick` keeps their order.

/// The bits of `value` under `mask`, the lowest first. The mask has at most 64 bits.
#[inline]
pub(super) fn pick(value: u128, mask: u128) -> u64 {
    if mask >> 64 == 0 {
        return pick64(value as u64, mask as u64);
    }
    let low = pick64(value as u64, mask as u64);
    let high = pick64((value >> 64) as u64, (mask >> 64) as u64);
    match (mask as u64).count_ones() {
        64 => low,
        bits => low | high << bits,
    }
}

/// As [`pick`], for two numbers at once: the runs of the mask are found once.
#[inline]
pub(super) fn pick_two(a: u128, b: u128, mask: u128) -> (u64, u64) {
    if mask >> 64 != 0 {
        return (pick(a, mask), pick(b, mask));
    }
    let (mut a, mut b, mut mask, mut codes, mut at) = (a as u64, b as u64, mask as u64, (0, 0), 0);
    while mask != 0 {
        let zeros = mask.trailing_zeros();
        (a, b, mask) = (a >> zeros, b >> zeros, mask >> zeros);
        let ones = mask.trailing_ones();
        if ones == 64 {
            return (a, b);
        }
        let run = (1 << ones) - 1;
        codes = (codes.0 | (a & run) << at, codes.1 | (b & run) << at);
        (a, b, mask) = (a >> ones, b >> ones, mask >> ones);
        at += ones;
    }
    codes
}

/// The number under `mask` whose picked bits are `code`.
#[inline]
pub(super) fn spread(code: u64, mask: u128) -> u128 {
    if mask >> 64 == 0 {
        return u128::from(spread64(code, mask as u64));
    }
    let low = spread64(code, mask as u64);
    let high = match (mask as u64).count_ones() {
        64 => 0,
        bits => spread64(code >> bits, (mask >> 64) as u64),
    };
    u128::from(high) << 64 | u128::from(low)
}

/// Run by run: masks of integer columns have few.
#[inline]
fn pick64(value: u64, mask: u64) -> u64 {
    let (mut value, mut mask, mut code, mut at) = (value, mask, 0, 0);
    while mask != 0 {
        let zeros = mask.trailing_zeros();
        value >>= zeros;
        mask >>= zeros;
        let ones = mask.trailing_ones();
        if ones == 64 {
            return value;
        }
        code |= (value & ((1 << ones) - 1)) << at;
        value >>= ones;
        mask >>= ones;
        at += ones;
    }
    code
}

#[inline]
fn spread64(code: u64, mask: u64) -> u64 {
    let (mut code, mut mask, mut value, mut at) = (code, mask, 0, 0);
    while mask != 0 {
        let zeros = mask.trailing_zeros();
        mask >>= zeros;
        at += zeros;
        let ones = mask.trailing_ones();
        if ones == 64 {
            return code;
        }
        value |= (code & ((1 << ones) - 1)) << at;
        code >>= ones;
        mask >>= ones;
        at += ones;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::tests::Random;

    #[test]
    fn bit_by_bit() {
        let mut random = Random(6);
        for round in 0..20_000u32 {
            let wide = u128::from(random.next()) << 64 | u128::from(random.next());
            let mut mask = wide & (u128::MAX >> (round % 128)) & u128::from_ne_bytes([random.next() as u8 | 1; 16]);
            while mask.count_ones() > 56 {
                mask &= mask << 1 | 1;
                mask &= u128::from(random.next()) << 64 | u128::from(random.next());
            }
            let value = u128::from(random.next()) << 64 | u128::from(random.next());
            let mut expected = 0;
            let mut at = 0;
            for bit in 0..128 {
                if mask >> bit & 1 == 1 {
                    expected |= ((value >> bit & 1) as u64) << at;
                    at += 1;
                }
            }
            assert_eq!(pick(value, mask), expected, "{mask:x}");
            assert_eq!(pick_two(!value, value, mask), (pick(!value, mask), expected), "{mask:x}");
            assert_eq!(spread(expected, mask), value & mask, "{mask:x}");
        }
        for mask in [u128::from(u64::MAX), u128::from(u64::MAX) << 64, 0, 1 << 127, u128::from(u64::MAX) << 32] {
            assert_eq!(spread(pick(u128::MAX / 3, mask), mask), (u128::MAX / 3) & mask);
        }
    }
}

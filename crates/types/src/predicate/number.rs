//! Numbers as they are written, and where they lie among the numbers of a column. Exact: nothing is rounded.

/// Where a number lies among whole multiples of 10^-scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scaled {
    /// It is this many.
    Exact(i128),
    /// It lies between this many and one more.
    Behind(i128),
    /// It is greater than all that 128 bits hold.
    Above,
    /// It is less than all.
    Below,
}

/// Digits of the largest 128-bit integer.
const DIGITS_MAX: i64 = 39;

/// Reads a sign, digits with or without a point, and an exponent. `None`: it is no number.
pub(super) fn scaled(text: &str, scale: i8) -> Option<Scaled> {
    let (negative, rest) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        all => (false, all),
    };
    let (mantissa, exponent) = match rest.iter().position(|b| matches!(b, b'e' | b'E')) {
        Some(at) => (&rest[..at], exponent_of(&rest[at + 1..])?),
        None => (rest, 0),
    };
    let point = mantissa.iter().position(|b| *b == b'.').unwrap_or(mantissa.len());
    let behind = mantissa.get(point + 1..).unwrap_or_default();
    let mut digits: Vec<u8> = [&mantissa[..point], behind].concat();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let mut exponent = exponent.saturating_sub(behind.len() as i64).saturating_add(i64::from(scale));
    while digits.last() == Some(&b'0') {
        digits.pop();
        exponent = exponent.saturating_add(1);
    }
    let leading = digits.iter().take_while(|b| **b == b'0').count();
    let digits = &digits[leading..];
    if digits.is_empty() {
        return Some(Scaled::Exact(0));
    }
    let beyond = if negative { Scaled::Below } else { Scaled::Above };
    let whole = exponent.saturating_add(digits.len() as i64);
    if whole > DIGITS_MAX {
        return Some(beyond);
    }
    // At most 39: the digits before the point, or zeros behind them all.
    let taken = &digits[..digits.len().min(whole.max(0) as usize)];
    let zeros = exponent.max(0) as usize;
    let number = taken.iter().map(|b| i128::from(b - b'0')).chain(std::iter::repeat_n(0, zeros));
    let Some(number) = number.into_iter().try_fold(0i128, |n, digit| n.checked_mul(10)?.checked_add(digit)) else {
        return Some(beyond);
    };
    Some(match (exponent < 0, negative) {
        (false, false) => Scaled::Exact(number),
        (false, true) => Scaled::Exact(-number),
        (true, false) => Scaled::Behind(number),
        (true, true) => Scaled::Behind(-number - 1),
    })
}

/// The number behind an `e`; one that is out of all range is the last one within.
fn exponent_of(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        all => (false, all),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0i64, |n, b| n.saturating_mul(10).saturating_add(i64::from(b - b'0')));
    Some(if negative { -number } else { number })
}

/// How a·10^-a_scale compares with b·10^-b_scale.
pub(super) fn compare((a, a_scale): (i128, i8), (b, b_scale): (i128, i8)) -> std::cmp::Ordering {
    if a_scale < b_scale {
        return compare((b, b_scale), (a, a_scale)).reverse();
    }
    let power = 10i128.checked_pow(u32::from(a_scale.abs_diff(b_scale)));
    match (b, power.and_then(|power| b.checked_mul(power))) {
        (0, _) => a.cmp(&0),
        (_, Some(b)) => a.cmp(&b),
        // Beyond all that a can be.
        (b, None) => 0.cmp(&b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering;

    #[test]
    fn numbers_lie_where_they_are() {
        use Scaled::*;
        for (text, scale, place) in [
            ("85.5", 0, Behind(85)),
            ("-85.5", 0, Behind(-86)),
            ("85.50", 1, Exact(855)),
            ("1.505", 2, Behind(150)),
            ("1e3", 0, Exact(1000)),
            ("15e-1", 0, Behind(1)),
            ("15e-1", 1, Exact(15)),
            ("1200", -2, Exact(12)),
            ("1250", -2, Behind(12)),
            ("0e999999999999999999999", 0, Exact(0)),
            ("1e999999999999999999999", 0, Above),
            ("-1e400", 9, Below),
            ("1e-999999999999999999999", 38, Behind(0)),
            ("-1e-400", 38, Behind(-1)),
            ("170141183460469231731687303715884105727", 0, Exact(i128::MAX)),
            ("170141183460469231731687303715884105728", 0, Above),
            ("+.5", 1, Exact(5)),
            ("000.000", 0, Exact(0)),
        ] {
            assert_eq!(scaled(text, scale), Some(place), "{text} of scale {scale}");
        }
        for text in ["", ".", "-", "1e", "e5", "1.2.3", "1e+", "x", "0x10", "1 "] {
            assert_eq!(scaled(text, 0), None, "{text}");
        }
    }

    #[test]
    fn numbers_of_two_scales_compare() {
        assert_eq!(compare((150, 2), (15, 1)), Ordering::Equal);
        assert_eq!(compare((1, 0), (101, 2)), Ordering::Less);
        assert_eq!(compare((i128::MAX, 38), (2, 0)), Ordering::Less);
        assert_eq!(compare((i128::MIN, 38), (-2, 0)), Ordering::Greater);
        assert_eq!(compare((1, -100), (i128::MAX, 38)), Ordering::Greater);
        assert_eq!(compare((0, -100), (0, 38)), Ordering::Equal);
    }
}

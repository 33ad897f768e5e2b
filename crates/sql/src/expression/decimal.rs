//! DECIMAL as unscaled 128-bit numbers: scales, products and quotients, exact before they are rounded.
//!
//! Rounding is half away from zero. A result of more than 38 digits is an error; nothing wraps, as what does not fit 128 bits is worked
//! out in 256.
//!
//! Scales of results, which are part of their types:
//!
//! | | Scale |
//! |---|---|
//! | `a + b`, `a - b`, `a % b` | the larger one |
//! | `a * b` | the sum. Where the digits of both are more than 38: at most 18, or as many as leave room for all digits before the point |
//! | `a / b` | the larger one, at least 16; more than 16 only as far as they leave room for all digits before the point |
//!
//! PostgreSQL chooses the scale of a quotient by the values, so that it has at least 16 significant digits; a type that is known before
//! there are values cannot.

use super::types::{as_decimal, decimal_of};
use crate::{SqlError, SqlResult};
use pagefold_types::{DECIMAL_PRECISION_MAX, DataType, decimal_limit};

/// The most digits behind the point of a product that has no room for all.
const PRODUCT_SCALE: u8 = 18;
/// The least digits behind the point of a quotient or an average.
pub(super) const QUOTIENT_SCALE: u8 = 16;

/// What every number is below.
const LIMIT: u128 = 10u128.pow(DECIMAL_PRECISION_MAX as u32);

pub(super) fn overflow(precision: u8, scale: i8) -> SqlError {
    let before = i16::from(precision) - i16::from(scale);
    let bound = if before == 0 { "1".to_owned() } else { format!("10^{before}") };
    SqlError::new("22003", "numeric field overflow")
        .with_detail(format!("A field with precision {precision}, scale {scale} must round to an absolute value less than {bound}."))
}

/// The value, if it has at most `precision` digits.
pub(super) fn fit(value: i128, precision: u8, scale: i8) -> SqlResult<i128> {
    if value.unsigned_abs() < decimal_limit(precision.min(DECIMAL_PRECISION_MAX)).unsigned_abs() {
        Ok(value)
    } else {
        Err(overflow(precision, scale))
    }
}

pub(super) fn too_large() -> SqlError {
    SqlError::new("22003", "value overflows numeric format").with_detail("A number has at most 38 digits.")
}

/// A number with its sign put back, if it has at most 38 digits.
fn signed(magnitude: u128, negative: bool) -> SqlResult<i128> {
    let value = i128::try_from(magnitude).ok().filter(|_| magnitude < LIMIT).ok_or_else(too_large)?;
    Ok(if negative { -value } else { value })
}

/// The number, if it has at most 38 digits.
pub(super) fn checked(value: i128) -> SqlResult<i128> {
    signed(value.unsigned_abs(), value < 0)
}

fn power_of_ten(digits: u32) -> u128 {
    10u128.pow(digits)
}

/// A number of 256 bits.
#[derive(Clone, Copy)]
struct Wide {
    high: u128,
    low: u128,
}

impl Wide {
    fn product(a: u128, b: u128) -> Wide {
        const HALF: u128 = u64::MAX as u128;
        let (a1, a0, b1, b0) = (a >> 64, a & HALF, b >> 64, b & HALF);
        let low = a0 * b0;
        let middle = a1 * b0 + (low >> 64);
        let other = a0 * b1 + (middle & HALF);
        Wide { high: a1 * b1 + (middle >> 64) + (other >> 64), low: (other << 64) | (low & HALF) }
    }

    fn times(self, factor: u128) -> Option<Wide> {
        let low = Wide::product(self.low, factor);
        let high = self.high.checked_mul(factor)?.checked_add(low.high)?;
        Some(Wide { high, low: low.low })
    }

    /// Quotient and remainder; `None` when the quotient has more than 128 bits.
    fn divided(self, divisor: u128) -> Option<(u128, u128)> {
        if self.high == 0 {
            return Some((self.low.checked_div(divisor)?, self.low % divisor));
        }
        if self.high >= divisor {
            return None;
        }
        // Bit by bit; the remainder stays below the divisor, and what is shifted out of it counts as 2^128.
        let (mut quotient, mut rest) = (0u128, self.high);
        for bit in (0..128).rev() {
            let carry = rest >> 127 == 1;
            rest = (rest << 1) | (self.low >> bit & 1);
            quotient <<= 1;
            if carry || rest >= divisor {
                rest = rest.wrapping_sub(divisor);
                quotient |= 1;
            }
        }
        Some((quotient, rest))
    }

    /// Rounded half up.
    fn divided_rounded(self, divisor: u128) -> Option<u128> {
        let (quotient, rest) = self.divided(divisor)?;
        if rest >= divisor - rest { quotient.checked_add(1) } else { Some(quotient) }
    }
}

/// From one scale to another: rounded half away from zero, or with zeros.
pub(super) fn rescale(value: i128, from: i8, to: i8) -> SqlResult<i128> {
    let by = i32::from(to) - i32::from(from);
    if by == 0 || value == 0 {
        return Ok(value);
    }
    let digits = by.unsigned_abs();
    if by > 0 {
        // 10^39 is no number of 128 bits with a sign.
        let factor = if digits > 38 { None } else { i128::try_from(power_of_ten(digits)).ok() };
        return factor.and_then(|factor| value.checked_mul(factor)).ok_or_else(too_large);
    }
    if digits > 38 {
        return Ok(0);
    }
    let divisor = power_of_ten(digits);
    let magnitude = value.unsigned_abs();
    let (quotient, rest) = (magnitude / divisor, magnitude % divisor);
    signed(quotient + u128::from(rest >= divisor - rest), value < 0)
}

/// `a * b` of `scales` digits together, with `scale` digits.
pub(super) fn multiply(a: i128, b: i128, scales: u8, scale: u8) -> SqlResult<i128> {
    if scales == scale
        && let Some(product) = a.checked_mul(b)
    {
        return signed(product.unsigned_abs(), product < 0);
    }
    let negative = (a < 0) != (b < 0);
    let product = Wide::product(a.unsigned_abs(), b.unsigned_abs());
    let over = u32::from(scales.saturating_sub(scale));
    // At most 76 digits are to be cut off: in two steps only the second rounds, and a rest of the first decides no tie, as it is below it.
    let magnitude = if over <= 38 {
        product.divided_rounded(power_of_ten(over))
    } else {
        product.divided(power_of_ten(38)).map(|(quotient, _)| {
            let divisor = power_of_ten(over - 38);
            let (whole, rest) = (quotient / divisor, quotient % divisor);
            whole + u128::from(rest >= divisor - rest)
        })
    };
    signed(magnitude.ok_or_else(too_large)?, negative)
}

/// `a / b` with `scale` digits; `shift` is that scale and the scale of `b` without that of `a`.
pub(super) fn divide(a: i128, b: i128, shift: i16) -> SqlResult<i128> {
    if b == 0 {
        return Err(division_by_zero());
    }
    let negative = (a < 0) != (b < 0);
    let (a, b) = (a.unsigned_abs(), b.unsigned_abs());
    let digits = u32::from(shift.unsigned_abs());
    let magnitude = if shift < 0 {
        // A divisor beyond 128 bits is more than twice any number of 38 digits: nothing is left of it.
        let divisor = if digits > 38 { None } else { b.checked_mul(power_of_ten(digits)) };
        divisor.map_or(Some(0), |divisor| Wide { high: 0, low: a }.divided_rounded(divisor))
    } else {
        let first = Wide::product(a, power_of_ten(digits.min(38)));
        let all = if digits > 38 { first.times(power_of_ten(digits - 38)) } else { Some(first) };
        all.and_then(|all| all.divided_rounded(b))
    };
    signed(magnitude.ok_or_else(too_large)?, negative)
}

pub(super) fn division_by_zero() -> SqlError {
    SqlError::new("22012", "division by zero")
}

/// What has digits before and behind the point.
fn digits(data_type: &DataType) -> (u8, u8) {
    as_decimal(data_type).map_or((DECIMAL_PRECISION_MAX, 0), |(precision, scale)| (precision - scale, scale))
}

/// The type of a sum or difference.
pub(super) fn sum_type(a: &DataType, b: &DataType) -> DataType {
    let ((before_a, scale_a), (before_b, scale_b)) = (digits(a), digits(b));
    decimal_of(before_a.max(before_b).saturating_add(1), scale_a.max(scale_b))
}

/// The type of a product.
pub(super) fn product_type(a: &DataType, b: &DataType) -> DataType {
    let ((before_a, scale_a), (before_b, scale_b)) = (digits(a), digits(b));
    let (before, scale) = (before_a + before_b, scale_a + scale_b);
    let room = DECIMAL_PRECISION_MAX.saturating_sub(before);
    decimal_of(before, scale.min(room.max(PRODUCT_SCALE)))
}

/// The type of a quotient.
pub(super) fn quotient_type(a: &DataType, b: &DataType) -> DataType {
    let ((before_a, scale_a), (_, scale_b)) = (digits(a), digits(b));
    // The least divisor is 1 in its last digit.
    let before = before_a.saturating_add(scale_b);
    let room = DECIMAL_PRECISION_MAX.saturating_sub(before);
    decimal_of(before, scale_a.max(scale_b).max(QUOTIENT_SCALE).min(room.max(QUOTIENT_SCALE)))
}

/// The type of a remainder.
pub(super) fn remainder_type(a: &DataType, b: &DataType) -> DataType {
    let ((before_a, scale_a), (before_b, scale_b)) = (digits(a), digits(b));
    decimal_of(before_a.max(before_b), scale_a.max(scale_b))
}

/// The nearest double.
pub(super) fn to_double(value: i128, scale: i8) -> f64 {
    const EXACT: u128 = 1 << 53;
    if value.unsigned_abs() <= EXACT && (0..=22).contains(&scale) {
        // Both are exact, and so the quotient is rounded once.
        return value as f64 / 10f64.powi(i32::from(scale));
    }
    format!("{value}e{}", -i16::from(scale)).parse().unwrap_or(f64::NAN)
}

/// A double as PostgreSQL makes a number of it: of `significant` digits.
pub(super) fn from_double(value: f64, significant: usize, precision: u8, scale: i8) -> SqlResult<i128> {
    if !value.is_finite() {
        return Err(SqlError::new("22003", format!("cannot convert {} to numeric", if value.is_nan() { "NaN" } else { "infinity" })));
    }
    let text = format!("{value:.*e}", significant.saturating_sub(1));
    let number = Number::read(&text).ok_or_else(|| overflow(precision, scale))?;
    number.with_scale(precision, scale)
}

/// A decimal number as it was written: digits, and how many of them are behind the point.
pub(super) struct Number {
    pub(super) negative: bool,
    /// Without zeros at the front.
    digits: Vec<u8>,
    /// Below 0: zeros follow.
    behind: i32,
}

impl Number {
    /// A sign, digits with or without a point, an exponent.
    pub(super) fn read(text: &str) -> Option<Number> {
        let (negative, rest) = match text.as_bytes() {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let end = rest.iter().position(|b| matches!(b, b'e' | b'E')).unwrap_or(rest.len());
        let (mantissa, exponent) = rest.split_at(end);
        let exponent: i32 = match exponent {
            [] => 0,
            [_, digits @ ..] => {
                let digits = std::str::from_utf8(digits).ok()?;
                let shown = digits.strip_prefix(['+', '-']).unwrap_or(digits);
                if shown.is_empty() || !shown.bytes().all(|b| b.is_ascii_digit()) {
                    return None;
                }
                // An exponent beyond all types is as good as any such.
                digits
                    .parse::<i32>()
                    .map_or(if digits.starts_with('-') { -1_000_000 } else { 1_000_000 }, |e| e.clamp(-1_000_000, 1_000_000))
            }
        };
        let mut digits = Vec::with_capacity(mantissa.len());
        let mut behind = None;
        for byte in mantissa {
            match byte {
                b'.' if behind.is_none() => behind = Some(0i32),
                b'0'..=b'9' => {
                    digits.push(byte - b'0');
                    behind = behind.map(|count| count.saturating_add(1));
                }
                _ => return None,
            }
        }
        if digits.is_empty() {
            return None;
        }
        let zeros = digits.iter().take_while(|d| **d == 0).count();
        digits.drain(..zeros);
        Some(Number { negative, digits, behind: behind.unwrap_or(0).saturating_sub(exponent) })
    }

    /// The type that has just its digits; `None` beyond 38.
    pub(super) fn data_type(&self) -> Option<DataType> {
        let behind = u8::try_from(self.behind.max(0)).ok()?;
        let zeros = usize::try_from(-self.behind.min(0)).ok()?;
        let digits = if self.digits.is_empty() { 1 } else { u8::try_from(self.digits.len() + zeros).ok()? };
        let precision = digits.max(behind).max(1);
        (precision <= DECIMAL_PRECISION_MAX).then_some(DataType::Decimal { precision, scale: behind.cast_signed() })
    }

    /// As a value of DECIMAL(precision, scale), rounded.
    pub(super) fn with_scale(&self, precision: u8, scale: i8) -> SqlResult<i128> {
        if self.digits.is_empty() {
            return Ok(0);
        }
        let more = i32::from(scale) - self.behind;
        let length = i32::try_from(self.digits.len()).unwrap_or(i32::MAX);
        // Digits of the result before it is rounded.
        if length.saturating_add(more) > 39 {
            return Err(overflow(precision, scale));
        }
        if length.saturating_add(more) < 0 {
            return Ok(0);
        }
        let kept = if more < 0 { (length + more).unsigned_abs() as usize } else { self.digits.len() };
        let mut value = self.digits.iter().take(kept).fold(0u128, |value, digit| value * 10 + u128::from(*digit));
        if more > 0 {
            value = value.checked_mul(power_of_ten(more.unsigned_abs())).ok_or_else(|| overflow(precision, scale))?;
        } else if self.digits.get(kept).is_some_and(|digit| *digit >= 5) {
            value += 1;
        }
        let value = i128::try_from(value).map_err(|_| overflow(precision, scale))?;
        fit(if self.negative { -value } else { value }, precision, scale)
    }
}

//! The order of values, the one that keys reproduce.
//!
//! Total, as in PostgreSQL: NaN is greater than every number and equal to itself, -0 equals 0, false before true, text and bytes by their bytes
//! (for UTF-8: by code point), intervals by [`span`](crate::Interval::span), NULL last. Values of CHAR(n) are compared as stored, that is padded: blanks at the end do not count.
//! Values of different kinds never meet in a column; they are ordered by kind, so that the order is total all the same.

use super::{Value, ValueRef};
use std::cmp::Ordering;

/// Bits that order like the numbers: sign flipped, -0 taken as 0, every NaN as one.
#[inline]
#[must_use]
pub(crate) fn f32_ordered(x: f32) -> u32 {
    let bits = if x.is_nan() { f32::NAN.to_bits() & !(1 << 31) } else { (x + 0.0).to_bits() };
    if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
}

/// As [`f32_ordered`].
#[inline]
#[must_use]
pub(crate) fn f64_ordered(x: f64) -> u64 {
    let bits = if x.is_nan() { f64::NAN.to_bits() & !(1 << 63) } else { (x + 0.0).to_bits() };
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Back from [`f32_ordered`].
#[must_use]
pub(crate) fn f32_from_ordered(bits: u32) -> f32 {
    f32::from_bits(if bits >> 31 == 1 { bits & !(1 << 31) } else { !bits })
}

/// Back from [`f64_ordered`].
#[must_use]
pub(crate) fn f64_from_ordered(bits: u64) -> f64 {
    f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits })
}

fn rank(value: &ValueRef<'_>) -> u8 {
    match value {
        ValueRef::Boolean(_) => 0,
        ValueRef::Int(_) => 1,
        ValueRef::Decimal(_) => 2,
        ValueRef::Real(_) => 3,
        ValueRef::Double(_) => 4,
        ValueRef::Text(_) => 5,
        ValueRef::Bytes(_) => 6,
        ValueRef::Uuid(_) => 7,
        ValueRef::Interval(_) => 8,
        ValueRef::Null => 9,
    }
}

impl Ord for ValueRef<'_> {
    fn cmp(&self, other: &ValueRef<'_>) -> Ordering {
        match (self, other) {
            (ValueRef::Boolean(a), ValueRef::Boolean(b)) => a.cmp(b),
            (ValueRef::Int(a), ValueRef::Int(b)) => a.cmp(b),
            (ValueRef::Decimal(a), ValueRef::Decimal(b)) => a.cmp(b),
            (ValueRef::Real(a), ValueRef::Real(b)) => f32_ordered(*a).cmp(&f32_ordered(*b)),
            (ValueRef::Double(a), ValueRef::Double(b)) => f64_ordered(*a).cmp(&f64_ordered(*b)),
            (ValueRef::Text(a), ValueRef::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (ValueRef::Bytes(a), ValueRef::Bytes(b)) => a.cmp(b),
            (ValueRef::Uuid(a), ValueRef::Uuid(b)) => a.cmp(b),
            (ValueRef::Interval(a), ValueRef::Interval(b)) => a.span().cmp(&b.span()),
            (a, b) => rank(a).cmp(&rank(b)),
        }
    }
}

impl PartialOrd for ValueRef<'_> {
    fn partial_cmp(&self, other: &ValueRef<'_>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ValueRef<'_> {
    fn eq(&self, other: &ValueRef<'_>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for ValueRef<'_> {}

impl Ord for Value {
    fn cmp(&self, other: &Value) -> Ordering {
        self.as_ref().cmp(&other.as_ref())
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Value) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_total() {
        let doubles = [f64::NEG_INFINITY, f64::MIN, -1.0, -f64::MIN_POSITIVE, -5e-324, 0.0, 5e-324, 1.0, f64::MAX, f64::INFINITY, f64::NAN];
        for (i, a) in doubles.iter().enumerate() {
            for (j, b) in doubles.iter().enumerate() {
                assert_eq!(ValueRef::Double(*a).cmp(&ValueRef::Double(*b)), i.cmp(&j), "{a} {b}");
                let (x, y) = (*a as f32, *b as f32);
                if (i != 1 && i != 3 && i != 4 && i != 6 && i != 8) && (j != 1 && j != 3 && j != 4 && j != 6 && j != 8) {
                    assert_eq!(ValueRef::Real(x).cmp(&ValueRef::Real(y)), i.cmp(&j), "{x} {y}");
                }
            }
            assert!(f64_from_ordered(f64_ordered(*a)).to_bits() == a.to_bits() || a.is_nan());
        }
        assert_eq!(ValueRef::Double(-0.0), ValueRef::Double(0.0));
        assert_eq!(ValueRef::Double(-f64::NAN), ValueRef::Double(f64::from_bits(0x7FF0_0000_0000_0001)));
        assert_eq!(ValueRef::Real(-0.0), ValueRef::Real(0.0));
        assert!(f32_from_ordered(f32_ordered(f32::NAN)).is_nan());
        assert!(ValueRef::Null > ValueRef::Double(f64::NAN) && ValueRef::Null == ValueRef::Null);
    }
}

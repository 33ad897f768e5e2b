//! Intervals: months, days and microseconds, each a number of its own, as PostgreSQL has them.
//!
//! * `read`: from text; `words`: its fields; `iso`: from ISO 8601
//! * `write`: to text, as PostgreSQL's `intervalstyle = postgres`
//!
//! Invariants:
//! - `==` asks whether the three parts are the same; SQL compares [`Interval::span`], in which a month has 30 days and a day 24 hours, and so do
//!   [`Value`](crate::Value) and [`ValueRef`](crate::ValueRef);
//! - nothing wraps: what has no room in its part is no interval.

mod iso;
mod read;
mod words;
mod write;

pub use read::{IntervalError, IntervalField, parse_interval};
pub(crate) use write::write;

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// Bytes of the stored form.
pub(crate) const INTERVAL_BYTES: usize = 16;

/// A span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Interval {
    /// Months; years are twelve of them.
    pub months: i32,
    /// Days; weeks are seven of them.
    pub days: i32,
    /// Microseconds; hours, minutes and seconds.
    pub micros: i64,
}

impl Interval {
    /// Nothing of each part.
    pub const ZERO: Interval = Interval { months: 0, days: 0, micros: 0 };

    /// The microseconds that it has where a month is 30 days and a day 24 hours: what SQL compares.
    #[inline]
    #[must_use]
    pub fn span(self) -> i128 {
        (i128::from(self.months) * 30 + i128::from(self.days)) * i128::from(DAY) + i128::from(self.micros)
    }

    /// One that has this span, in as large units as it goes; `None` where there is none.
    #[must_use]
    pub fn of_span(span: i128) -> Option<Interval> {
        let day = i128::from(DAY);
        let part = |amount: i128| amount.clamp(i32::MIN.into(), i32::MAX.into());
        let months = part(span / (30 * day));
        // What the clamps leave has room in microseconds, if the span is that of any interval.
        let rest = span - months * 30 * day;
        let days = part(rest / day);
        let micros = i64::try_from(rest - days * day).ok()?;
        Some(Interval { months: i32::try_from(months).ok()?, days: i32::try_from(days).ok()?, micros })
    }

    /// Each part with the other sign; `None` when that has no room.
    #[must_use]
    pub fn checked_neg(self) -> Option<Interval> {
        Some(Interval { months: self.months.checked_neg()?, days: self.days.checked_neg()?, micros: self.micros.checked_neg()? })
    }

    /// Part by part; `None` when one has no room.
    #[must_use]
    pub fn checked_add(self, other: Interval) -> Option<Interval> {
        Some(Interval {
            months: self.months.checked_add(other.months)?,
            days: self.days.checked_add(other.days)?,
            micros: self.micros.checked_add(other.micros)?,
        })
    }

    /// Part by part; `None` when one has no room.
    #[must_use]
    pub fn checked_sub(self, other: Interval) -> Option<Interval> {
        Some(Interval {
            months: self.months.checked_sub(other.months)?,
            days: self.days.checked_sub(other.days)?,
            micros: self.micros.checked_sub(other.micros)?,
        })
    }

    /// The stored form: months, days and microseconds, little-endian.
    #[must_use]
    pub fn to_bytes(self) -> [u8; INTERVAL_BYTES] {
        let mut bytes = [0; INTERVAL_BYTES];
        bytes[..4].copy_from_slice(&self.months.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.days.to_le_bytes());
        bytes[8..].copy_from_slice(&self.micros.to_le_bytes());
        bytes
    }

    /// Back from [`Interval::to_bytes`]; all bytes are an interval.
    #[must_use]
    pub fn from_bytes(bytes: [u8; INTERVAL_BYTES]) -> Interval {
        let [a, b, c, d, e, f, g, h, micros @ ..] = bytes;
        Interval { months: i32::from_le_bytes([a, b, c, d]), days: i32::from_le_bytes([e, f, g, h]), micros: i64::from_le_bytes(micros) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ValueRef;

    #[test]
    fn compared_by_their_span() {
        let of = |months, days, micros| Interval { months, days, micros };
        let value = ValueRef::Interval;
        assert_eq!(value(of(1, 0, 0)), value(of(0, 30, 0)));
        assert_ne!(of(1, 0, 0), of(0, 30, 0));
        assert_eq!(value(of(0, 1, 0)), value(of(0, 0, DAY)));
        assert!(value(of(0, 0, -1)) < value(Interval::ZERO) && value(of(1, 0, 0)) < value(of(0, 31, 0)));
        // The extremes have a span each.
        let (least, most) = (of(i32::MIN, i32::MIN, i64::MIN), of(i32::MAX, i32::MAX, i64::MAX));
        assert!(least.span() < 0 && most.span() > 0 && value(least) < value(most));
        for interval in [least, most, of(1, 2, 3), of(-1, 40, -5), Interval::ZERO] {
            assert_eq!(Interval::of_span(interval.span()).map(Interval::span), Some(interval.span()));
        }
        assert_eq!(Interval::of_span(most.span() + 1), None);
        assert_eq!(Interval::of_span(least.span() - 1), None);
        assert_eq!(Interval::of_span(i128::MIN), None);
        assert_eq!(least.checked_neg(), None);
        assert_eq!(most.checked_add(of(0, 1, 0)), None);
        assert_eq!(least.checked_sub(of(0, 0, 1)), None);
        assert_eq!(of(1, -2, 3).checked_neg(), Some(of(-1, 2, -3)));
    }

    #[test]
    fn bytes_round_trip() {
        for interval in
            [Interval::ZERO, Interval { months: 1, days: -2, micros: 3 }, Interval { months: i32::MIN, days: i32::MAX, micros: i64::MIN }]
        {
            assert_eq!(Interval::from_bytes(interval.to_bytes()), interval);
        }
        assert_eq!(Interval { months: 1, days: 2, micros: 3 }.to_bytes(), [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
    }
}

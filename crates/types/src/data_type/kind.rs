//! The types, and how each is held.
//!
//! Invariant: a `DataType` that this crate hands out satisfies [`DataType::is_valid`]; layouts refuse others.

/// The largest precision of DECIMAL.
pub const DECIMAL_PRECISION_MAX: u8 = 38;

/// The largest n of CHAR(n), in characters: every value takes at least as many bytes, and is padded wherever it is made.
pub const CHAR_LENGTH_MAX: u32 = 32_000;

/// The largest n of VARCHAR(n), in characters.
pub const VARCHAR_LENGTH_MAX: u32 = 1 << 28;

/// Unit of a TIME or TIMESTAMP: that of the source, so that nothing is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// 1 s
    Second,
    /// 10^-3 s
    Milli,
    /// 10^-6 s
    Micro,
    /// 10^-9 s
    Nano,
}

impl TimeUnit {
    /// Units per second.
    #[must_use]
    pub fn per_second(self) -> i64 {
        match self {
            TimeUnit::Second => 1,
            TimeUnit::Milli => 1_000,
            TimeUnit::Micro => 1_000_000,
            TimeUnit::Nano => 1_000_000_000,
        }
    }

    /// Units per day.
    #[must_use]
    pub fn per_day(self) -> i64 {
        86_400 * self.per_second()
    }

    /// Digits behind the point of a second: 0, 3, 6 or 9.
    #[must_use]
    pub fn digits(self) -> u8 {
        match self {
            TimeUnit::Second => 0,
            TimeUnit::Milli => 3,
            TimeUnit::Micro => 6,
            TimeUnit::Nano => 9,
        }
    }

    /// The unit with this number of digits.
    #[must_use]
    pub fn from_digits(digits: u8) -> Option<TimeUnit> {
        [TimeUnit::Second, TimeUnit::Milli, TimeUnit::Micro, TimeUnit::Nano].into_iter().find(|u| u.digits() == digits)
    }
}

/// A SQL data type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// BOOLEAN
    Boolean,
    /// 16-bit integer
    SmallInt,
    /// 32-bit integer
    Integer,
    /// 64-bit integer
    BigInt,
    /// 32-bit floating point
    Real,
    /// 64-bit floating point
    Double,
    /// A decimal number of at most `precision` digits, `scale` of them behind the point.
    Decimal {
        /// 1 to 38
        precision: u8,
        /// At most `precision`; below 0 the number is a multiple of a power of ten.
        scale: i8,
    },
    /// Days since 1970-01-01, 32 bits
    Date,
    /// Time of day since midnight, in `unit`
    Time {
        /// Unit of the integer
        unit: TimeUnit,
    },
    /// Time since 1970-01-01 00:00:00, in `unit`, 64 bits; of UTC when `with_zone`
    Timestamp {
        /// Unit of the integer
        unit: TimeUnit,
        /// WITH TIME ZONE: an instant
        with_zone: bool,
    },
    /// Text of exactly n characters; shorter values are padded with blanks, so trailing blanks do not count in comparisons
    Char(u32),
    /// Text of at most n characters, or of any length
    Varchar(Option<u32>),
    /// Bytes
    Bytea,
    /// 16 bytes
    Uuid,
    /// Months, days and microseconds
    Interval,
}

/// How a type is held in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Physical {
    /// One byte, 0 or 1
    Boolean,
    /// Two's complement of 2, 4 or 8 bytes
    Int {
        /// Bytes
        width: u8,
    },
    /// IEEE 754, 4 bytes
    Real,
    /// IEEE 754, 8 bytes
    Double,
    /// Two's complement of 1 to 16 bytes
    Decimal {
        /// Bytes
        width: u8,
    },
    /// 16 bytes
    Uuid,
    /// Months and days of 4 bytes, microseconds of 8
    Interval,
    /// UTF-8 padded to a number of characters
    Char {
        /// Characters
        chars: u32,
    },
    /// UTF-8
    Text,
    /// Bytes
    Bytes,
}

/// Bytes that every DECIMAL of this precision fits in as two's complement.
///
/// # Panics
/// When `precision` is not in 1..=38.
#[must_use]
pub fn decimal_width(precision: u8) -> u8 {
    let limit = decimal_limit(precision).unsigned_abs();
    (1..=16u8).find(|w| limit <= 1u128 << (u32::from(*w) * 8 - 1)).unwrap_or(16)
}

/// 10^precision: values of a DECIMAL lie strictly between this and its negative.
///
/// # Panics
/// When `precision` is above 38.
#[must_use]
pub fn decimal_limit(precision: u8) -> i128 {
    assert!(precision <= DECIMAL_PRECISION_MAX);
    10i128.pow(u32::from(precision))
}

impl DataType {
    /// Precision, scale and length are within their limits?
    #[must_use]
    pub fn is_valid(&self) -> bool {
        match *self {
            DataType::Decimal { precision, scale } => {
                (1..=DECIMAL_PRECISION_MAX).contains(&precision) && i16::from(scale) <= i16::from(precision)
            }
            DataType::Char(n) => (1..=CHAR_LENGTH_MAX).contains(&n),
            DataType::Varchar(Some(n)) => (1..=VARCHAR_LENGTH_MAX).contains(&n),
            _ => true,
        }
    }

    /// How it is held in a record.
    ///
    /// # Panics
    /// When the type is not valid.
    #[must_use]
    pub fn physical(&self) -> Physical {
        match *self {
            DataType::Boolean => Physical::Boolean,
            DataType::SmallInt => Physical::Int { width: 2 },
            DataType::Integer | DataType::Date | DataType::Time { unit: TimeUnit::Second | TimeUnit::Milli } => Physical::Int { width: 4 },
            DataType::BigInt | DataType::Time { .. } | DataType::Timestamp { .. } => Physical::Int { width: 8 },
            DataType::Real => Physical::Real,
            DataType::Double => Physical::Double,
            DataType::Decimal { precision, .. } => Physical::Decimal { width: decimal_width(precision) },
            DataType::Char(chars) => Physical::Char { chars },
            DataType::Varchar(_) => Physical::Text,
            DataType::Bytea => Physical::Bytes,
            DataType::Uuid => Physical::Uuid,
            DataType::Interval => Physical::Interval,
        }
    }

    /// Bytes in a record, when every value takes the same.
    #[must_use]
    pub fn fixed_width(&self) -> Option<usize> {
        self.physical().fixed_width()
    }

    /// The integers that values of this type are held as: `None` when the type is not held as `Int`.
    #[must_use]
    pub fn int_range(&self) -> Option<(i64, i64)> {
        match self {
            DataType::SmallInt => Some((i64::from(i16::MIN), i64::from(i16::MAX))),
            DataType::Integer | DataType::Date => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
            DataType::BigInt | DataType::Timestamp { .. } => Some((i64::MIN, i64::MAX)),
            // 24:00:00 is a time of day in SQL systems.
            DataType::Time { unit } => Some((0, unit.per_day())),
            _ => None,
        }
    }

    /// CHAR or VARCHAR?
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(self, DataType::Char(_) | DataType::Varchar(_))
    }
}

impl Physical {
    /// Bytes in a record, when every value takes the same.
    #[inline]
    #[must_use]
    pub fn fixed_width(self) -> Option<usize> {
        match self {
            Physical::Boolean => Some(1),
            Physical::Int { width } | Physical::Decimal { width } => Some(usize::from(width)),
            Physical::Real => Some(4),
            Physical::Double => Some(8),
            Physical::Uuid | Physical::Interval => Some(16),
            Physical::Char { .. } | Physical::Text | Physical::Bytes => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_widths_are_the_smallest() {
        for precision in 1..=DECIMAL_PRECISION_MAX {
            let width = decimal_width(precision);
            let largest = decimal_limit(precision) - 1;
            let fits = |w: u8| w == 16 || (largest >> (u32::from(w) * 8 - 1)) == 0;
            assert!(fits(width) && (width == 1 || !fits(width - 1)), "{precision} -> {width}");
        }
        assert_eq!([1, 2, 3, 9, 10, 15, 18, 19, 20, 38].map(decimal_width), [1, 1, 2, 4, 5, 7, 8, 9, 9, 16]);
    }
}

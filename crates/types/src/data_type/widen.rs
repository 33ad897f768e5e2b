//! The least type that holds the values of two.

use super::{DECIMAL_PRECISION_MAX, DataType};

/// Decimal digits before the point that every value of an integer type has at most.
fn integer_digits(data_type: &DataType) -> Option<u8> {
    match data_type {
        DataType::SmallInt => Some(5),
        DataType::Integer => Some(10),
        DataType::BigInt => Some(19),
        _ => None,
    }
}

/// Digits before and behind the point.
fn decimal_digits(data_type: &DataType) -> Option<(u8, u8)> {
    match *data_type {
        DataType::Decimal { precision, scale } => {
            let before = i16::from(precision) - i16::from(scale);
            Some((u8::try_from(before).unwrap_or(0), scale.max(0).unsigned_abs()))
        }
        _ => integer_digits(data_type).map(|digits| (digits, 0)),
    }
}

impl DataType {
    /// The least type that has every value of both, with nothing lost. `None` when there is none, or only text would do.
    #[must_use]
    pub fn widened_with(&self, other: &DataType) -> Option<DataType> {
        if self == other {
            return Some(*self);
        }
        if self.is_text() && other.is_text() {
            let length = |t: &DataType| match *t {
                DataType::Char(n) => Some(n),
                DataType::Varchar(n) => n,
                _ => None,
            };
            return Some(DataType::Varchar(length(self).zip(length(other)).map(|(a, b)| a.max(b))));
        }
        match (*self, *other) {
            (DataType::Real, DataType::Double) | (DataType::Double, DataType::Real) => Some(DataType::Double),
            // A double has every integer of 32 bits.
            (DataType::Double, DataType::SmallInt | DataType::Integer) | (DataType::SmallInt | DataType::Integer, DataType::Double) => {
                Some(DataType::Double)
            }
            (DataType::Real, DataType::SmallInt) | (DataType::SmallInt, DataType::Real) => Some(DataType::Real),
            (DataType::Date, timestamp @ DataType::Timestamp { with_zone: false, .. })
            | (timestamp @ DataType::Timestamp { with_zone: false, .. }, DataType::Date) => Some(timestamp),
            (DataType::Timestamp { unit: a, with_zone }, DataType::Timestamp { unit: b, with_zone: other }) if with_zone == other => {
                Some(DataType::Timestamp { unit: if a.digits() >= b.digits() { a } else { b }, with_zone })
            }
            (DataType::Time { unit: a }, DataType::Time { unit: b }) => {
                Some(DataType::Time { unit: if a.digits() >= b.digits() { a } else { b } })
            }
            (a, b) => match (integer_digits(&a), integer_digits(&b)) {
                (Some(of_a), Some(of_b)) => Some(if of_a >= of_b { a } else { b }),
                _ => {
                    let ((before_a, behind_a), (before_b, behind_b)) = (decimal_digits(&a)?, decimal_digits(&b)?);
                    let (before, behind) = (before_a.max(before_b), behind_a.max(behind_b));
                    let precision = before.checked_add(behind).filter(|p| *p <= DECIMAL_PRECISION_MAX)?;
                    Some(DataType::Decimal { precision, scale: behind.cast_signed() })
                }
            },
        }
    }

    /// Does every value of `other` fit, with nothing lost?
    #[must_use]
    pub fn takes_all_of(&self, other: &DataType) -> bool {
        self.widened_with(other) == Some(*self)
    }

    /// Is every value of `other` one of this type as it lies in a record and in a key? Text may have more characters then, a DECIMAL more digits before
    /// the point, as long as it takes as many bytes.
    #[must_use]
    pub fn holds_as_is(&self, other: &DataType) -> bool {
        let is_alike = match (self, other) {
            (DataType::Varchar(_), DataType::Varchar(_)) => true,
            (DataType::Decimal { scale, .. }, DataType::Decimal { scale: of_other, .. }) => {
                scale == of_other && self.fixed_width() == other.fixed_width()
            }
            _ => self == other,
        };
        is_alike && self.takes_all_of(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_type_of_both() {
        let t = |text: &str| text.parse::<DataType>().unwrap();
        for (a, b, both) in [
            ("smallint", "bigint", "bigint"),
            ("integer", "integer", "integer"),
            ("integer", "decimal(4,2)", "decimal(12,2)"),
            ("decimal(9,2)", "decimal(6,4)", "decimal(11,4)"),
            ("real", "double", "double"),
            ("integer", "double", "double"),
            ("date", "timestamp(3)", "timestamp(3)"),
            ("timestamp(0)", "timestamp", "timestamp"),
            ("time(3)", "time(9)", "time(9)"),
            ("char(3)", "varchar(10)", "varchar(10)"),
            ("char(3)", "text", "text"),
        ] {
            assert_eq!(t(a).widened_with(&t(b)), Some(t(both)), "{a} {b}");
            assert_eq!(t(b).widened_with(&t(a)), Some(t(both)), "{b} {a}");
        }
        for (a, b) in [
            ("date", "text"),
            ("bigint", "double"),
            ("boolean", "integer"),
            ("timestamp", "timestamptz"),
            ("decimal(38,0)", "decimal(38,38)"),
            ("uuid", "text"),
        ] {
            assert_eq!(t(a).widened_with(&t(b)), None, "{a} {b}");
            assert_eq!(t(b).widened_with(&t(a)), None, "{b} {a}");
        }
        assert!(t("bigint").takes_all_of(&t("smallint")) && !t("smallint").takes_all_of(&t("bigint")));
        let as_is = [("varchar(10)", "varchar(3)"), ("text", "varchar(3)"), ("decimal(9,2)", "decimal(8,2)"), ("integer", "integer")];
        assert!(as_is.iter().all(|(wide, narrow)| t(wide).holds_as_is(&t(narrow))));
        let not = [
            ("varchar(3)", "varchar(10)"),
            ("varchar(3)", "text"),
            ("bigint", "integer"),
            ("decimal(10,2)", "decimal(9,2)"),
            ("decimal(9,3)", "decimal(8,2)"),
            ("text", "char(3)"),
            ("char(4)", "char(3)"),
            ("time(3)", "time(0)"),
            ("timestamp(6)", "timestamp(3)"),
        ];
        assert!(not.iter().all(|(wide, narrow)| !t(wide).holds_as_is(&t(narrow))));
        assert!(t("decimal(15,2)").takes_all_of(&t("integer")) && !t("decimal(11,2)").takes_all_of(&t("integer")));
    }
}

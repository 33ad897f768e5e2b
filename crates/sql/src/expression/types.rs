//! Types as messages name them, the common type of several, and what can be cast to what.
//!
//! Numbers widen in one direction: SMALLINT, INTEGER, BIGINT, DECIMAL, REAL, DOUBLE. A literal in quotes and a parameter have no type
//! (`None`) until something asks for one.

use crate::{SqlError, SqlResult};
use pagefold_types::{DECIMAL_PRECISION_MAX, DataType, TimeUnit};

/// Where a cast stands: each allows what those before it do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Context {
    /// An operand.
    Implicit,
    /// What becomes the value of a column.
    Assignment,
    /// CAST
    Explicit,
}

/// The text type that has any value.
pub(crate) const TEXT: DataType = DataType::Varchar(None);

/// The name that PostgreSQL has in messages, without precision or length.
pub(crate) fn name(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Boolean => "boolean",
        DataType::SmallInt => "smallint",
        DataType::Integer => "integer",
        DataType::BigInt => "bigint",
        DataType::Real => "real",
        DataType::Double => "double precision",
        DataType::Decimal { .. } => "numeric",
        DataType::Date => "date",
        DataType::Time { .. } => "time without time zone",
        DataType::Timestamp { with_zone: false, .. } => "timestamp without time zone",
        DataType::Timestamp { with_zone: true, .. } => "timestamp with time zone",
        DataType::Char(_) => "character",
        DataType::Varchar(Some(_)) => "character varying",
        DataType::Varchar(None) => "text",
        DataType::Bytea => "bytea",
        DataType::Uuid => "uuid",
        DataType::Interval => "interval",
    }
}

/// As [`name`]; `unknown` of what has no type.
pub(super) fn name_of(data_type: Option<&DataType>) -> &'static str {
    data_type.map_or("unknown", name)
}

/// The place of a type among the numbers.
fn rank(data_type: &DataType) -> Option<u8> {
    Some(match data_type {
        DataType::SmallInt => 0,
        DataType::Integer => 1,
        DataType::BigInt => 2,
        DataType::Decimal { .. } => 3,
        DataType::Real => 4,
        DataType::Double => 5,
        _ => return None,
    })
}

pub(super) fn is_integer(data_type: &DataType) -> bool {
    matches!(data_type, DataType::SmallInt | DataType::Integer | DataType::BigInt)
}

pub(super) fn is_number(data_type: &DataType) -> bool {
    rank(data_type).is_some()
}

/// A DECIMAL that has all of the integer type.
fn integer_as_decimal(data_type: &DataType) -> Option<DataType> {
    let precision = match data_type {
        DataType::SmallInt => 5,
        DataType::Integer => 10,
        DataType::BigInt => 19,
        _ => return None,
    };
    Some(DataType::Decimal { precision, scale: 0 })
}

/// An integer or DECIMAL as a DECIMAL with a scale of 0 or more.
pub(super) fn as_decimal(data_type: &DataType) -> Option<(u8, u8)> {
    match integer_as_decimal(data_type).unwrap_or(*data_type) {
        DataType::Decimal { precision, scale } => {
            let below = if scale < 0 { scale.unsigned_abs() } else { 0 };
            Some((precision.saturating_add(below).min(DECIMAL_PRECISION_MAX), scale.max(0).unsigned_abs()))
        }
        _ => None,
    }
}

/// A DECIMAL of these digits before and behind the point; those before give way.
pub(super) fn decimal_of(before: u8, behind: u8) -> DataType {
    let behind = behind.min(DECIMAL_PRECISION_MAX);
    let precision = before.saturating_add(behind).clamp(1, DECIMAL_PRECISION_MAX);
    DataType::Decimal { precision, scale: behind.cast_signed() }
}

fn finer(a: TimeUnit, b: TimeUnit) -> TimeUnit {
    if a.digits() >= b.digits() { a } else { b }
}

/// The type that values of both become: `None` when there is none.
pub(super) fn common(a: &DataType, b: &DataType) -> Option<DataType> {
    if a == b {
        return Some(*a);
    }
    if let (Some(rank_a), Some(rank_b)) = (rank(a), rank(b)) {
        let wider = if rank_a >= rank_b { a } else { b };
        return Some(match (wider, as_decimal(a), as_decimal(b)) {
            (DataType::Decimal { .. }, Some((precision_a, scale_a)), Some((precision_b, scale_b))) => {
                decimal_of((precision_a - scale_a).max(precision_b - scale_b), scale_a.max(scale_b))
            }
            _ => *wider,
        });
    }
    match (*a, *b) {
        (DataType::Char(a), DataType::Char(b)) => Some(DataType::Char(a.max(b))),
        (a, b) if a.is_text() && b.is_text() => Some(TEXT),
        (DataType::Date, timestamp @ DataType::Timestamp { .. }) | (timestamp @ DataType::Timestamp { .. }, DataType::Date) => {
            Some(timestamp)
        }
        (DataType::Timestamp { unit: a, with_zone: zone_a }, DataType::Timestamp { unit: b, with_zone: zone_b }) => {
            Some(DataType::Timestamp { unit: finer(a, b), with_zone: zone_a || zone_b })
        }
        (DataType::Time { unit: a }, DataType::Time { unit: b }) => Some(DataType::Time { unit: finer(a, b) }),
        _ => None,
    }
}

/// The type in which values of both are compared. REAL with another kind of number is compared as DOUBLE, TIME with INTERVAL as that.
pub(super) fn comparable(a: &DataType, b: &DataType) -> Option<DataType> {
    if let (DataType::Time { .. }, DataType::Interval) | (DataType::Interval, DataType::Time { .. }) = (a, b) {
        return Some(DataType::Interval);
    }
    let is_real = |data_type: &DataType| matches!(data_type, DataType::Real);
    if is_number(a) && is_number(b) && is_real(a) != is_real(b) {
        return Some(DataType::Double);
    }
    common(a, b)
}

/// The common type of branches, rows or elements; `None` when none has a type. `what` is what they are of, as messages say it: CASE, UNION.
pub(crate) fn common_type(types: impl Iterator<Item = Option<DataType>>, what: &str) -> SqlResult<Option<DataType>> {
    let mut found: Option<DataType> = None;
    for data_type in types.flatten() {
        found = Some(match found {
            None => data_type,
            Some(before) => common(&before, &data_type)
                .ok_or_else(|| SqlError::types(format!("{what} types {} and {} cannot be matched", name(&before), name(&data_type))))?,
        });
    }
    Ok(found)
}

/// Can values of `from` become values of `to`?
pub(super) fn castable(from: &DataType, to: &DataType, context: Context) -> bool {
    use DataType::{Boolean, Date, Integer, Time, Timestamp};
    if std::mem::discriminant(from) == std::mem::discriminant(to) {
        // Only time zones divide a kind: an instant becomes a local time by assignment.
        return match (from, to) {
            (Timestamp { with_zone: true, .. }, Timestamp { with_zone: false, .. }) => context >= Context::Assignment,
            _ => true,
        };
    }
    if let (Some(from), Some(to)) = (rank(from), rank(to)) {
        return from <= to || context >= Context::Assignment;
    }
    match (from, to) {
        (from, to) if from.is_text() && to.is_text() => true,
        (_, to) if to.is_text() => context >= Context::Assignment,
        (from, _) if from.is_text() => context >= Context::Explicit,
        (Date, Timestamp { .. }) => true,
        (Timestamp { .. }, Date | Time { .. }) | (DataType::Interval, Time { .. }) => context >= Context::Assignment,
        (Time { .. }, DataType::Interval) => true,
        (Integer, Boolean) | (Boolean, Integer) => context >= Context::Explicit,
        _ => false,
    }
}

/// Are values of both held alike, so that no cast is needed?
pub(super) fn same_values(from: &DataType, to: &DataType) -> bool {
    from == to || matches!((from, to), (DataType::Varchar(_), DataType::Varchar(None)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn t(text: &str) -> DataType {
        text.parse().unwrap()
    }

    #[test]
    fn common_types() {
        for (a, b, both) in [
            ("smallint", "bigint", "bigint"),
            ("integer", "decimal(4,2)", "decimal(12,2)"),
            ("bigint", "real", "real"),
            ("decimal(9,2)", "double", "double"),
            ("decimal(38,6)", "decimal(38,16)", "decimal(38,16)"),
            ("decimal(3,-2)", "decimal(4,2)", "decimal(7,2)"),
            ("real", "double", "double"),
            ("date", "timestamptz", "timestamptz"),
            ("timestamp(3)", "timestamptz(0)", "timestamptz(3)"),
            ("char(3)", "char(5)", "char(5)"),
            ("char(3)", "varchar(2)", "text"),
            ("time(0)", "time", "time"),
        ] {
            assert_eq!(common(&t(a), &t(b)), Some(t(both)), "{a} {b}");
            assert_eq!(common(&t(b), &t(a)), Some(t(both)), "{b} {a}");
        }
        for (a, b) in [("integer", "text"), ("boolean", "integer"), ("date", "time"), ("uuid", "bytea"), ("date", "integer")] {
            assert_eq!(common(&t(a), &t(b)), None);
        }
        let error = common_type([Some(t("integer")), None, Some(t("text"))].into_iter(), "UNION").unwrap_err();
        assert_eq!((error.sqlstate(), error.message()), ("42804", "UNION types integer and text cannot be matched"));
        assert_eq!(common_type([None, None].into_iter(), "CASE").unwrap(), None);
    }

    #[test]
    fn casts_by_context() {
        use Context::{Assignment, Explicit, Implicit};
        for (from, to, least) in [
            ("smallint", "decimal(5,2)", Implicit),
            ("decimal(5,2)", "real", Implicit),
            ("bigint", "integer", Assignment),
            ("double", "decimal(5,2)", Assignment),
            ("date", "timestamptz", Implicit),
            ("timestamp", "date", Assignment),
            ("timestamptz", "timestamp", Assignment),
            ("timestamp", "timestamptz", Implicit),
            ("integer", "text", Assignment),
            ("text", "integer", Explicit),
            ("integer", "boolean", Explicit),
            ("char(3)", "varchar(2)", Implicit),
            ("time", "interval", Implicit),
            ("interval", "time", Assignment),
            ("interval", "text", Assignment),
            ("text", "interval", Explicit),
        ] {
            for context in [Implicit, Assignment, Explicit] {
                assert_eq!(castable(&t(from), &t(to), context), context >= least, "{from} {to} {context:?}");
            }
        }
        for (from, to) in [("bigint", "boolean"), ("integer", "date"), ("uuid", "bytea"), ("boolean", "double"), ("time", "date")] {
            assert!(!castable(&t(from), &t(to), Explicit), "{from} {to}");
        }
    }
}

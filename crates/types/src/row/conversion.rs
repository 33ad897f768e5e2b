//! Records of one layout brought into another: what the rows of a table are that has got other columns or types since they were stored.
//!
//! Invariants:
//! - a column keeps its place: the n-th column of one layout is the n-th of the other, unless one of them ends before;
//! - what comes out is a record of the new layout, whatever the old one was: a value that does not go into the new type, or a NULL where there can be none,
//!   becomes the zero of the type. Whoever changes a layout makes sure that no row has such a value.

use super::ColumnValue;
use super::layout::RowLayout;
use crate::{DataType, Interval, RecordError, Value, ValueRef};
use std::borrow::Cow;

/// What a column of the new layout has.
#[derive(Clone, Debug)]
pub enum ColumnSource {
    /// What the column of the same place has, in the new type.
    Column,
    /// This value, in all rows.
    Constant(Value),
}

/// Brings records of one layout into another.
#[derive(Clone, Debug)]
pub struct RowConversion {
    from: RowLayout,
    to: RowLayout,
    sources: Box<[ColumnSource]>,
    zeros: Box<[Value]>,
}

impl RowConversion {
    /// `sources`: for each column of `to`.
    ///
    /// # Panics
    /// When there are not as many sources as columns, or one is a column that `from` does not have.
    #[must_use]
    pub fn new(from: RowLayout, to: RowLayout, sources: Vec<ColumnSource>) -> RowConversion {
        assert_eq!(sources.len(), to.column_count());
        let is_there = |(at, source): (usize, &ColumnSource)| matches!(source, ColumnSource::Constant(_)) || at < from.column_count();
        assert!(sources.iter().enumerate().all(is_there));
        let zeros = (0..to.column_count()).map(|column| to.data_type(column).zero()).collect();
        RowConversion { from, to, sources: sources.into(), zeros }
    }

    /// Appends the record of the new layout; gives its length. Values that lie outside stay there.
    ///
    /// # Errors
    /// When the record is none of the old layout, or the new one would be longer than any record.
    pub fn convert(&self, record: &[u8], out: &mut Vec<u8>) -> Result<usize, RecordError> {
        let mut values = Vec::with_capacity(self.sources.len());
        for (column, source) in self.sources.iter().enumerate() {
            let value = match source {
                ColumnSource::Constant(value) => ColumnValue::Value(value.as_ref()),
                ColumnSource::Column => match self.from.column(record, column)? {
                    ColumnValue::Value(value) => {
                        let (from, to) = (self.from.data_type(column), self.to.data_type(column));
                        ColumnValue::Value(value.converted(&from, &to).unwrap_or(self.zeros[column].as_ref()))
                    }
                    large => large,
                },
            };
            values.push(match value {
                ColumnValue::Value(ValueRef::Null) if !self.to.is_nullable(column) => ColumnValue::Value(self.zeros[column].as_ref()),
                value => value,
            });
        }
        // What was read of a record may still be none of its type, where that was damaged.
        self.to.encode_columns(&values, out).map_err(|_| RecordError::Value { column: self.sources.len() })
    }
}

impl DataType {
    /// A value that every column of the type can have: zero, or nothing.
    #[must_use]
    pub fn zero(&self) -> Value {
        match self {
            DataType::Boolean => Value::Boolean(false),
            DataType::SmallInt
            | DataType::Integer
            | DataType::BigInt
            | DataType::Date
            | DataType::Time { .. }
            | DataType::Timestamp { .. } => Value::Int(0),
            DataType::Real => Value::Real(0.0),
            DataType::Double => Value::Double(0.0),
            DataType::Decimal { .. } => Value::Decimal(0),
            DataType::Char(_) | DataType::Varchar(_) => Value::Text(String::new()),
            DataType::Bytea => Value::Bytes(Vec::new()),
            DataType::Uuid => Value::Uuid([0; 16]),
            DataType::Interval => Value::Interval(Interval::ZERO),
        }
    }

    /// Is there a way from values of the other type to those of this one at all? Single values may still not go.
    #[must_use]
    pub fn converts_from(&self, other: &DataType) -> bool {
        use DataType::{Bytea, Date, Double, Real, Time, Timestamp};
        let is_number = |t: &DataType| matches!(t, Real | Double | DataType::Decimal { .. }) || is_integer(t);
        match (other, self) {
            (Timestamp { with_zone: a, .. }, Timestamp { with_zone: b, .. }) => a == b,
            (Date, Timestamp { with_zone, .. }) => !with_zone,
            (Time { .. }, Time { .. }) | (Bytea, Bytea) => true,
            (a, b) => a == b || a.is_text() && b.is_text() || is_number(a) && is_number(b),
        }
    }
}

fn is_integer(data_type: &DataType) -> bool {
    matches!(data_type, DataType::SmallInt | DataType::Integer | DataType::BigInt)
}

impl<'a> ValueRef<'a> {
    /// The same value in another type; `None` when that does not have it exactly.
    #[must_use]
    pub fn converted(self, from: &DataType, to: &DataType) -> Option<ValueRef<'a>> {
        use DataType::{Char, Date, Decimal, Double, Real, Time, Timestamp};
        let found = match (self, from, to) {
            (ValueRef::Null, ..) => ValueRef::Null,
            (value, from, to) if from == to => value,
            (ValueRef::Text(text), Char(_), _) if to.is_text() => ValueRef::Text(text.trim_end_matches(' ')),
            // CHAR has no blanks at the end, whatever it is made of: they would be back when it becomes another type.
            (ValueRef::Text(text), _, Char(_)) if text.ends_with(' ') => return None,
            (ValueRef::Text(text), ..) if to.is_text() => ValueRef::Text(text),
            (ValueRef::Int(days), Date, Timestamp { unit, with_zone: false }) => ValueRef::Int(days.checked_mul(unit.per_day())?),
            (ValueRef::Int(number), Timestamp { unit: a, with_zone }, Timestamp { unit: b, with_zone: other }) if with_zone == other => {
                ValueRef::Int(rescaled(number.into(), a.digits().into(), b.digits().into())?.try_into().ok()?)
            }
            (ValueRef::Int(number), Time { unit: a }, Time { unit: b }) => {
                ValueRef::Int(rescaled(number.into(), a.digits().into(), b.digits().into())?.try_into().ok()?)
            }
            (ValueRef::Int(number), from, to) if is_integer(from) && is_integer(to) => ValueRef::Int(number),
            (ValueRef::Int(number), from, Decimal { scale, .. }) if is_integer(from) => {
                ValueRef::Decimal(rescaled(number.into(), 0, (*scale).into())?)
            }
            (ValueRef::Decimal(number), Decimal { scale: a, .. }, Decimal { scale: b, .. }) => {
                ValueRef::Decimal(rescaled(number, (*a).into(), (*b).into())?)
            }
            (ValueRef::Decimal(number), Decimal { scale, .. }, to) if is_integer(to) => {
                ValueRef::Int(rescaled(number, (*scale).into(), 0)?.try_into().ok()?)
            }
            (ValueRef::Int(number), from, Double) if is_integer(from) && number.unsigned_abs() <= 1 << 53 => {
                ValueRef::Double(number as f64)
            }
            (ValueRef::Int(number), from, Real) if is_integer(from) && number.unsigned_abs() <= 1 << 24 => ValueRef::Real(number as f32),
            (ValueRef::Real(number), _, Double) => ValueRef::Double(number.into()),
            (ValueRef::Double(number), _, Real) if f64::from(number as f32).to_bits() == number.to_bits() => ValueRef::Real(number as f32),
            _ => return None,
        };
        found.check(to, "").ok().map(|()| found)
    }
}

/// A number with so many digits behind the point, with other ones; `None` when digits would be lost, or it is too large.
fn rescaled(number: i128, from: i16, to: i16) -> Option<i128> {
    let power = 10i128.checked_pow(from.abs_diff(to).into())?;
    if to >= from { number.checked_mul(power) } else { (number % power == 0).then(|| number / power) }
}

/// A value that is kept as a record of one column, as definitions keep what rows of before have in a column.
#[must_use]
pub fn value_record(data_type: DataType, value: ValueRef<'_>) -> Option<Vec<u8>> {
    let mut record = Vec::new();
    single(data_type)?.encode(&[value], &mut record).ok().map(|_| record)
}

/// The value of such a record.
///
/// # Errors
/// When the record is none.
pub fn record_value(data_type: DataType, record: &[u8]) -> Result<Value, RecordError> {
    let layout = single(data_type).ok_or(RecordError::NoSuchColumn { column: 0 })?;
    layout.validate(record)?;
    Ok(layout.value(record, 0)?.to_owned())
}

fn single(data_type: DataType) -> Option<RowLayout> {
    let column = crate::Column::new(Cow::Borrowed("value"), data_type, true);
    RowLayout::new(&crate::Schema::new(vec![column]).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, Schema};

    fn layout(columns: &[(&str, &str, bool)]) -> RowLayout {
        let columns = columns.iter().map(|(name, t, nullable)| Column::new(*name, t.parse().unwrap(), *nullable)).collect();
        RowLayout::new(&Schema::new(columns).unwrap()).unwrap()
    }

    #[test]
    fn columns_that_came_went_and_were_widened() {
        let from = layout(&[("a", "smallint", false), ("b", "text", true), ("c", "decimal(5,2)", false)]);
        let to = layout(&[("a", "bigint", true), ("b", "boolean", true), ("c", "decimal(20,4)", false), ("d", "text", false)]);
        let constant = ColumnSource::Constant(Value::Null);
        let new = ColumnSource::Constant(Value::Text("new".into()));
        let conversion = RowConversion::new(from.clone(), to.clone(), vec![ColumnSource::Column, constant, ColumnSource::Column, new]);
        let (mut record, mut converted) = (Vec::new(), Vec::new());
        from.encode(&[ValueRef::Int(-7), ValueRef::Text("gone"), ValueRef::Decimal(-12345)], &mut record).unwrap();
        let len = conversion.convert(&record, &mut converted).unwrap();
        assert_eq!(len, converted.len());
        let values: Vec<Value> = to.decode_owned::<RecordError>(&converted, |_| unreachable!()).unwrap();
        assert_eq!(values, [Value::Int(-7), Value::Null, Value::Decimal(-1234500), Value::Text("new".into())]);
        // Back: what does not go becomes zero, and it is a record all the same.
        let back =
            RowConversion::new(to, from.clone(), vec![ColumnSource::Column, ColumnSource::Constant(Value::Null), ColumnSource::Column]);
        record.clear();
        back.convert(&converted, &mut record).unwrap();
        let values: Vec<Value> = from.decode_owned::<RecordError>(&record, |_| unreachable!()).unwrap();
        assert_eq!(values, [Value::Int(-7), Value::Null, Value::Decimal(-12345)]);
        assert!(conversion.convert(&record[..3], &mut converted).is_err());
    }

    #[test]
    fn a_value_goes_into_another_type_exactly_or_not_at_all() {
        let go = |value: ValueRef<'_>, from: &str, to: &str| {
            value.converted(&from.parse().unwrap(), &to.parse().unwrap()).map(|value| value.to_owned())
        };
        assert_eq!(go(ValueRef::Int(7), "integer", "decimal(5,2)"), Some(Value::Decimal(700)));
        assert_eq!(go(ValueRef::Int(70000), "integer", "smallint"), None);
        assert_eq!(go(ValueRef::Decimal(700), "decimal(5,2)", "smallint"), Some(Value::Int(7)));
        assert_eq!(go(ValueRef::Decimal(701), "decimal(5,2)", "smallint"), None);
        assert_eq!(go(ValueRef::Int(1), "date", "timestamp(3)"), Some(Value::Int(86_400_000)));
        assert_eq!(go(ValueRef::Int(1500), "timestamp(3)", "timestamp(6)"), Some(Value::Int(1_500_000)));
        assert_eq!(go(ValueRef::Int(1500), "timestamp(3)", "timestamp(0)"), None);
        assert_eq!(go(ValueRef::Int(i64::MAX), "timestamp(0)", "timestamp(9)"), None);
        assert_eq!(go(ValueRef::Text("ab  "), "char(4)", "varchar(2)"), Some(Value::Text("ab".into())));
        assert_eq!(go(ValueRef::Text("abc"), "text", "varchar(2)"), None);
        assert_eq!(go(ValueRef::Int(1 << 60), "bigint", "double"), None);
        assert_eq!(go(ValueRef::Null, "bigint", "uuid"), Some(Value::Null));
        assert_eq!(go(ValueRef::Int(1), "bigint", "uuid"), None);
        let converts = |from: &str, to: &str| to.parse::<DataType>().unwrap().converts_from(&from.parse().unwrap());
        assert!(converts("bigint", "smallint") && converts("text", "char(3)") && converts("date", "timestamp"));
        assert!(!converts("timestamp", "date") && !converts("text", "integer") && !converts("boolean", "integer"));
    }

    #[test]
    fn a_value_is_kept_as_a_record() {
        let t: DataType = "decimal(9,2)".parse().unwrap();
        let record = value_record(t, ValueRef::Decimal(-5)).unwrap();
        assert_eq!(record_value(t, &record).unwrap(), Value::Decimal(-5));
        assert!(record_value(t, &record[..2]).is_err() && record_value(t, &[]).is_err());
        assert!(value_record(t, ValueRef::Text("x")).is_none());
    }
}

//! Rows, and values of Rust types on their way into columns and out of them.

use crate::{Error, Result};
use pagefold_types::{Column, DataType, Interval, Schema, Value, ValueRef, text};
use std::sync::Arc;

/// A row that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    names: Names,
    values: Vec<Value>,
}

/// Names of the columns of a row.
#[derive(Clone, Debug, PartialEq)]
enum Names {
    OfTable(Arc<Schema>),
    /// Of a query: a name may come twice, then the first counts.
    #[cfg(feature = "sql")]
    OfQuery(Arc<[String]>),
}

impl Names {
    fn place(&self, column: &str) -> Result<usize> {
        match self {
            Names::OfTable(schema) => schema.index_of(column).map_err(|e| Error::Value(e.to_string())),
            #[cfg(feature = "sql")]
            Names::OfQuery(names) => {
                let found = names.iter().position(|name| name == column);
                found.ok_or_else(|| Error::Value(format!("the query has no column \"{column}\"; it has: {}", names.join(", "))))
            }
        }
    }

    fn get(&self, place: usize) -> &str {
        match self {
            Names::OfTable(schema) => &schema.columns()[place].name,
            #[cfg(feature = "sql")]
            Names::OfQuery(names) => &names[place],
        }
    }
}

impl Row {
    pub(crate) fn new(schema: &Arc<Schema>, values: Vec<Value>) -> Row {
        Row { names: Names::OfTable(Arc::clone(schema)), values }
    }

    #[cfg(feature = "sql")]
    pub(crate) fn of_query(names: &Arc<[String]>, values: Vec<Value>) -> Row {
        Row { names: Names::OfQuery(Arc::clone(names)), values }
    }

    /// All values, in the order of the columns.
    #[must_use]
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The value of a column, by name.
    ///
    /// # Errors
    /// When there is no such column, or its value is none of this type.
    pub fn get<T: FromValue>(&self, column: &str) -> Result<T> {
        let position = self.names.place(column)?;
        T::from_value(&self.values[position]).ok_or_else(|| mismatch::<T>(column, &self.values[position]))
    }

    /// The first values as a tuple; a row of one column as its value.
    ///
    /// # Errors
    /// When there are fewer, or one of them is not of its type.
    pub fn into<T: FromRow>(self) -> Result<T> {
        T::from_row(&self)
    }
}

fn mismatch<T>(column: &str, value: &Value) -> Error {
    let found = match value {
        Value::Null => "NULL: read it into an Option",
        Value::Boolean(_) => "a boolean",
        Value::Int(_) => "an integer, or one out of range",
        Value::Decimal(_) => "a decimal number, read it as i128: the digits without the point",
        Value::Real(_) | Value::Double(_) => "a floating-point number",
        Value::Text(_) => "text",
        Value::Bytes(_) => "bytes",
        Value::Uuid(_) => "a UUID",
        Value::Interval(_) => "an interval",
    };
    Error::Value(format!("column \"{column}\" is not a {}: its value is {found}", std::any::type_name::<T>()))
}

/// What a value can be read as.
pub trait FromValue: Sized {
    /// `None` when the value is of another type, or out of range.
    fn from_value(value: &Value) -> Option<Self>;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl FromValue for $type {
            fn from_value(value: &Value) -> Option<$type> {
                if let Value::Int(value) = value { <$type>::try_from(*value).ok() } else { None }
            }
        }
    )*};
}
integers!(i8 i16 i32 i64 u8 u16 u32 u64 usize);

macro_rules! others {
    ($($type:ty: $pattern:pat => $value:expr;)*) => {$(
        impl FromValue for $type {
            fn from_value(value: &Value) -> Option<$type> {
                match value {
                    $pattern => Some($value),
                    _ => None,
                }
            }
        }
    )*};
}
others! {
    bool: Value::Boolean(value) => *value;
    i128: Value::Decimal(value) => *value;
    f32: Value::Real(value) => *value;
    String: Value::Text(value) => value.clone();
    Vec<u8>: Value::Bytes(value) => value.clone();
    [u8; 16]: Value::Uuid(value) => *value;
    Interval: Value::Interval(value) => *value;
}

impl FromValue for f64 {
    fn from_value(value: &Value) -> Option<f64> {
        match value {
            Value::Double(value) => Some(*value),
            Value::Real(value) => Some((*value).into()),
            _ => None,
        }
    }
}

impl FromValue for Value {
    fn from_value(value: &Value) -> Option<Value> {
        Some(value.clone())
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Option<Option<T>> {
        if *value == Value::Null { Some(None) } else { T::from_value(value).map(Some) }
    }
}

/// What a row can be read as: tuples.
pub trait FromRow: Sized {
    /// Reads the first values of a row.
    ///
    /// # Errors
    /// When there are fewer, or one of them is not of its type.
    fn from_row(row: &Row) -> Result<Self>;
}

fn value_at<T: FromValue>(row: &Row, position: usize) -> Result<T> {
    let Some(value) = row.values.get(position) else {
        return Err(Error::Value(format!("the row has {} columns, not {} or more", row.values.len(), position + 1)));
    };
    T::from_value(value).ok_or_else(|| mismatch::<T>(row.names.get(position), value))
}

/// Values on their way into a row or a key: a tuple, a single value, a slice of values.
pub trait IntoValues {
    /// Lends them, in order.
    fn values(&self) -> Vec<ValueRef<'_>>;
}

/// One value on its way into a column.
pub trait AsValue {
    /// Lends it.
    fn as_value(&self) -> ValueRef<'_>;
}

macro_rules! as_value {
    ($($type:ty: $self:ident => $value:expr;)*) => {$(
        impl AsValue for $type {
            fn as_value(&self) -> ValueRef<'_> {
                let $self = self;
                $value
            }
        }

        impl IntoValues for $type {
            fn values(&self) -> Vec<ValueRef<'_>> {
                vec![self.as_value()]
            }
        }
    )*};
}
as_value! {
    bool: v => ValueRef::Boolean(*v);
    i8: v => ValueRef::Int((*v).into());
    i16: v => ValueRef::Int((*v).into());
    i32: v => ValueRef::Int((*v).into());
    i64: v => ValueRef::Int(*v);
    u8: v => ValueRef::Int((*v).into());
    u16: v => ValueRef::Int((*v).into());
    u32: v => ValueRef::Int((*v).into());
    i128: v => ValueRef::Decimal(*v);
    f32: v => ValueRef::Real(*v);
    f64: v => ValueRef::Double(*v);
    &str: v => ValueRef::Text(v);
    String: v => ValueRef::Text(v);
    &[u8]: v => ValueRef::Bytes(v);
    Vec<u8>: v => ValueRef::Bytes(v);
    [u8; 16]: v => ValueRef::Uuid(*v);
    Interval: v => ValueRef::Interval(*v);
    Value: v => v.as_ref();
}

impl<T: AsValue> AsValue for Option<T> {
    fn as_value(&self) -> ValueRef<'_> {
        self.as_ref().map_or(ValueRef::Null, AsValue::as_value)
    }
}

/// No values.
impl IntoValues for () {
    fn values(&self) -> Vec<ValueRef<'_>> {
        Vec::new()
    }
}

impl IntoValues for &[Value] {
    fn values(&self) -> Vec<ValueRef<'_>> {
        self.iter().map(Value::as_ref).collect()
    }
}

impl IntoValues for Vec<Value> {
    fn values(&self) -> Vec<ValueRef<'_>> {
        self.iter().map(Value::as_ref).collect()
    }
}

impl IntoValues for Row {
    fn values(&self) -> Vec<ValueRef<'_>> {
        self.values.iter().map(Value::as_ref).collect()
    }
}

macro_rules! tuples {
    ($($name:ident $position:tt)*) => {
        impl<$($name: AsValue),*> IntoValues for ($($name,)*) {
            fn values(&self) -> Vec<ValueRef<'_>> {
                vec![$(self.$position.as_value()),*]
            }
        }

        impl<$($name: FromValue),*> FromRow for ($($name,)*) {
            fn from_row(row: &Row) -> Result<($($name,)*)> {
                Ok(($(value_at::<$name>(row, $position)?,)*))
            }
        }
    };
}
tuples!(A 0);
tuples!(A 0 B 1);
tuples!(A 0 B 1 C 2);
tuples!(A 0 B 1 C 2 D 3);
tuples!(A 0 B 1 C 2 D 3 E 4);
tuples!(A 0 B 1 C 2 D 3 E 4 F 5);
tuples!(A 0 B 1 C 2 D 3 E 4 F 5 G 6);
tuples!(A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7);
tuples!(A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8);
tuples!(A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9);
tuples!(A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10);
tuples!(A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11);
tuples!(A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12);
tuples!(A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12 N 13);
tuples!(A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12 N 13 O 14);
tuples!(A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12 N 13 O 14 P 15);

/// A value as its column has it.
#[derive(Debug)]
pub(crate) enum Fitted<'v> {
    AsItIs(ValueRef<'v>),
    Made(Value),
}

impl Fitted<'_> {
    pub(crate) fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Fitted::AsItIs(value) => *value,
            Fitted::Made(value) => value.as_ref(),
        }
    }
}

/// Makes of a value what its column has: of an integer a DECIMAL or floating-point number, of text whatever can be read from it (a date, a time, a UUID, a decimal number). What it does not know it leaves to
/// whoever stores it.
pub(crate) fn fit<'v>(value: ValueRef<'v>, column: &Column) -> Result<Fitted<'v>> {
    let Column { name, data_type, .. } = column;
    Ok(Fitted::Made(match (value, *data_type) {
        (ValueRef::Text(text), data_type) if !data_type.is_text() => {
            text::parse(text, &data_type).map_err(|e| Error::Value(format!("column \"{name}\": {e}")))?
        }
        (ValueRef::Int(number), DataType::Decimal { scale, .. }) => {
            let scaled = unscaled(number.into(), scale);
            Value::Decimal(scaled.ok_or_else(|| Error::Value(format!("column \"{name}\": {number} is no {data_type}")))?)
        }
        (ValueRef::Int(number), DataType::Double) if number.unsigned_abs() <= 1 << 53 => Value::Double(number as f64),
        (ValueRef::Int(number), DataType::Real) if number.unsigned_abs() <= 1 << 24 => Value::Real(number as f32),
        (ValueRef::Real(number), DataType::Double) => Value::Double(number.into()),
        (ValueRef::Double(number), DataType::Real) => Value::Real(number as f32),
        _ => return Ok(Fitted::AsItIs(value)),
    }))
}

/// The digits of a whole number with so many behind the point.
fn unscaled(number: i128, scale: i8) -> Option<i128> {
    let power = 10i128.checked_pow(scale.unsigned_abs().into())?;
    if scale >= 0 { number.checked_mul(power) } else { (number % power == 0).then(|| number / power) }
}

//! Values to their canonical text.

use super::{binary, date_time, float, number};
use crate::{DataType, ValueRef};

/// Appends the canonical text of a value; nothing for NULL. A value of another kind than the type's is written as its kind is.
pub fn write(value: ValueRef<'_>, data_type: &DataType, out: &mut Vec<u8>) {
    match (value, data_type) {
        (ValueRef::Null, _) => {}
        (ValueRef::Boolean(b), _) => out.extend_from_slice(if b { b"true" } else { b"false" }),
        (ValueRef::Int(i), DataType::Date) => date_time::write_date(i, out),
        (ValueRef::Int(i), DataType::Time { unit }) => date_time::write_time(i, *unit, out),
        (ValueRef::Int(i), DataType::Timestamp { unit, with_zone }) => date_time::write_timestamp(i, *unit, *with_zone, out),
        (ValueRef::Int(i), _) => number::write_int(i, out),
        (ValueRef::Decimal(d), DataType::Decimal { scale, .. }) => number::write_decimal(d, *scale, out),
        (ValueRef::Decimal(d), _) => number::write_decimal(d, 0, out),
        (ValueRef::Real(x), _) => float::write_f32(x, out),
        (ValueRef::Double(x), _) => float::write_f64(x, out),
        (ValueRef::Text(s), _) => out.extend_from_slice(s.as_bytes()),
        (ValueRef::Bytes(b), _) => binary::write_bytes(b, out),
        (ValueRef::Uuid(u), _) => binary::write_uuid(&u, out),
        (ValueRef::Interval(i), _) => crate::interval::write(i, out),
    }
}

/// The canonical text; `NULL` for NULL.
#[must_use]
pub fn to_text(value: ValueRef<'_>, data_type: &DataType) -> String {
    if value.is_null() {
        return "NULL".to_owned();
    }
    let mut out = Vec::new();
    write(value, data_type, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

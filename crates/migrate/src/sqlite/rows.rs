//! The rows of a table as values, to be compared.

use super::refused;
use super::source::{decimal, number_of, text_of};
use crate::foreign::ForeignTable;
use pagefold_interchange::InterchangeError;
use pagefold_types::{DataType, Value, text};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use std::path::Path;

/// A value as a column of this type has it, which must come back as what SQLite has: a time as the same text, a decimal as a text that is
/// the same floating-point number.
fn value_of(value: ValueRef<'_>, data_type: &DataType) -> Option<Value> {
    Some(match (value, data_type) {
        (ValueRef::Null, _) => Value::Null,
        (ValueRef::Integer(number @ (0 | 1)), DataType::Boolean) => Value::Boolean(number == 1),
        (ValueRef::Integer(number), DataType::SmallInt | DataType::Integer | DataType::BigInt) => Value::Int(number),
        (_, DataType::Double) => Value::Double(number_of(value)?),
        (_, DataType::Decimal { scale, .. }) => {
            let unscaled = Value::Decimal(decimal(value, *scale)?);
            let is_same =
                |number: f64| text::to_text(unscaled.as_ref(), data_type).parse().is_ok_and(|back: f64| back.to_bits() == number.to_bits());
            if let ValueRef::Real(number) = value
                && !is_same(number)
            {
                return None;
            }
            unscaled
        }
        (ValueRef::Text(bytes), DataType::Date | DataType::Timestamp { .. }) => {
            let known = std::str::from_utf8(bytes).ok()?;
            let parsed = text::parse(known, data_type).ok()?;
            (text::to_text(parsed.as_ref(), data_type) == known).then_some(parsed)?
        }
        (_, DataType::Varchar(_)) => Value::Text(text_of(value)?.into_owned()),
        (ValueRef::Blob(bytes), DataType::Bytea) => Value::Bytes(bytes.to_vec()),
        _ => return None,
    })
}

pub(super) fn visit(
    connection: &Connection,
    path: &Path,
    table: &ForeignTable,
    query: &str,
    types: &[DataType],
    visit: &mut dyn FnMut(&[Value]) -> bool,
) -> Result<(), InterchangeError> {
    let failed = |error: rusqlite::Error| refused(path, &format!("table \"{}\"", table.name), &error);
    let mut statement = connection.prepare(query).map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    let (mut values, mut number) = (Vec::new(), 0_u64);
    while let Some(row) = rows.next().map_err(failed)? {
        number += 1;
        values.clear();
        for (column, data_type) in types.iter().enumerate() {
            let value = value_of(row.get_ref(column).map_err(failed)?, data_type);
            let refuse = || InterchangeError::File {
                path: path.to_owned(),
                reason: format!("table \"{}\", column \"{}\": row {number} is no {data_type}", table.name, table.columns[column].name),
            };
            values.push(value.ok_or_else(refuse)?);
        }
        if !visit(&values) {
            break;
        }
    }
    Ok(())
}

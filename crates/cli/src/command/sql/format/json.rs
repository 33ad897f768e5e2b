//! Rows as JSON objects: in one array, or one a line.
//!
//! Values are as `pagefold scan --json` has them: numbers are JSON numbers (DECIMAL with all its digits), NaN, infinities, dates, times, UUIDs and bytes are strings. Of columns with the same name
//! the later ones get a number, so that no member is there twice.

use super::{OutputColumn, RowWriter, field};
use crate::failure::Result;
use pagefold::{DataType, Value};
use std::io::{self, Write};

pub(super) struct JsonRows {
    columns: Vec<OutputColumn>,
    /// Names as JSON, with the colon.
    keys: Vec<String>,
    is_array: bool,
    rows: u64,
}

/// Names of which none is there twice.
pub(super) fn distinct_names(columns: &[OutputColumn]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(columns.len());
    for column in columns {
        let mut name = column.name.clone();
        let mut number = 2_u32;
        while names.contains(&name) {
            name = format!("{}_{number}", column.name);
            number += 1;
        }
        names.push(name);
    }
    names
}

impl JsonRows {
    pub(super) fn new(columns: &[OutputColumn], is_array: bool) -> JsonRows {
        let keys = distinct_names(columns).into_iter().map(|name| format!("{}:", serde_json::Value::from(name))).collect();
        JsonRows { columns: columns.to_vec(), keys, is_array, rows: 0 }
    }
}

fn is_plain(value: &Value, data_type: &DataType) -> bool {
    match value {
        Value::Boolean(_) | Value::Decimal(_) => true,
        Value::Int(_) => matches!(data_type, DataType::SmallInt | DataType::Integer | DataType::BigInt),
        Value::Real(x) => x.is_finite(),
        Value::Double(x) => x.is_finite(),
        Value::Null | Value::Text(_) | Value::Bytes(_) | Value::Uuid(_) | Value::Interval(_) => false,
    }
}

fn put(value: &Value, column: &OutputColumn, out: &mut dyn Write) -> io::Result<()> {
    match field(value, column) {
        None => out.write_all(b"null"),
        Some(text) if is_plain(value, &column.data_type) => out.write_all(text.as_bytes()),
        Some(text) => Ok(serde_json::to_writer(out, &text)?),
    }
}

impl RowWriter for JsonRows {
    fn row(&mut self, row: &[Value], out: &mut dyn Write) -> Result<()> {
        let before: &[u8] = match (self.is_array, self.rows) {
            (true, 0) => b"[{",
            (true, _) => b",\n{",
            (false, _) => b"{",
        };
        self.rows += 1;
        out.write_all(before)?;
        for (at, ((value, column), key)) in row.iter().zip(&self.columns).zip(&self.keys).enumerate() {
            out.write_all(if at > 0 { b"," } else { b"" })?;
            out.write_all(key.as_bytes())?;
            put(value, column, out)?;
        }
        Ok(out.write_all(if self.is_array { b"}" } else { b"}\n" })?)
    }

    fn end(&mut self, is_complete: bool, out: &mut dyn Write) -> Result<()> {
        if self.is_array && (is_complete || self.rows > 0) {
            out.write_all(if self.rows == 0 { b"[]\n" } else { b"]\n" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_member_is_there_twice() {
        let column = |name: &str| OutputColumn { name: name.into(), data_type: DataType::Integer };
        assert_eq!(distinct_names(&[column("a"), column("a"), column("a_2"), column("a")]), ["a", "a_2", "a_2_2", "a_3"]);
    }
}

//! Rows of a batch as values: for who takes rows one by one and wants them read column by column.
//!
//! Invariant: the values are those that the row's record has.

use super::batch::{BatchColumn, BatchValues, ColumnBatch};
use super::table::Table;
use crate::{Error, Result};
use pagefold_types::{Interval, LargeValueRef, Physical, Value, push_value};

impl ColumnBatch {
    /// Puts the values of a row behind others, as [`Table::values_into`] does of its record.
    ///
    /// # Errors
    /// When a value is damaged, or a large one cannot be read.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    pub fn values_into(&self, table: &Table, row: usize, values: &mut Vec<Value>) -> Result<()> {
        for column in self.columns() {
            if column.null_count() > 0 && !column.validity().get(row) {
                push_value(values, Value::Null);
                continue;
            }
            match (column.values(), column.physical()) {
                (BatchValues::Ints(ints), Physical::Int { .. }) => push_value(values, Value::Int(ints[row])),
                (BatchValues::Ints(ints), Physical::Decimal { .. }) => push_value(values, Value::Decimal(ints[row].into())),
                (BatchValues::Ints(ints), physical) => push_value(values, number(ints[row], physical)),
                (BatchValues::Bytes { bytes, ends, large }, physical) => {
                    let start = row.checked_sub(1).map_or(0, |before| ends[before] as usize);
                    let bytes = &bytes[start..ends[row] as usize];
                    push_value(
                        values,
                        if large.get(row) { large_value(table, column, bytes)? } else { value(table, column, bytes, physical)? },
                    );
                }
            }
        }
        Ok(())
    }
}

fn number(number: i64, physical: Physical) -> Value {
    match physical {
        Physical::Boolean => Value::Boolean(number != 0),
        Physical::Real => Value::Real(f32::from_bits(number as u32)),
        Physical::Double => Value::Double(f64::from_bits(number.cast_unsigned())),
        _ => Value::Int(number),
    }
}

fn damaged(table: &Table, column: &BatchColumn) -> Error {
    Error::Damaged { path: table.object(), reason: format!("a value of column number {}", column.number()) }
}

fn value(table: &Table, column: &BatchColumn, bytes: &[u8], physical: Physical) -> Result<Value> {
    Ok(match physical {
        Physical::Char { .. } | Physical::Text => Value::Text(std::str::from_utf8(bytes).map_err(|_| damaged(table, column))?.to_owned()),
        Physical::Decimal { .. } => {
            let sign = bytes.last().ok_or_else(|| damaged(table, column))? >> 7;
            let mut whole = [0_u8.wrapping_sub(sign); 16];
            whole.get_mut(..bytes.len()).ok_or_else(|| damaged(table, column))?.copy_from_slice(bytes);
            Value::Decimal(i128::from_le_bytes(whole))
        }
        Physical::Uuid => Value::Uuid(bytes.try_into().map_err(|_| damaged(table, column))?),
        Physical::Interval => Value::Interval(Interval::from_bytes(bytes.try_into().map_err(|_| damaged(table, column))?)),
        _ => Value::Bytes(bytes.to_vec()),
    })
}

#[cold]
fn large_value(table: &Table, column: &BatchColumn, bytes: &[u8]) -> Result<Value> {
    let reference = LargeValueRef::from_bytes(bytes).ok_or_else(|| damaged(table, column))?;
    let bytes = table.read_large(reference)?;
    table.layout().large_value(column.number(), bytes).map_err(|_| damaged(table, column))
}

//! A schema from an input, and its stored form.

use crate::input::Input;
use pagefold_types::{Column, DataType, Schema, TimeUnit};

/// The schema behind its length; its stored form is the only one.
pub fn take(input: &mut Input<'_>) -> Option<Schema> {
    let bytes = input.chunk();
    let schema = Schema::decode(bytes).ok()?;
    let mut again = Vec::new();
    schema.encode(&mut again);
    assert_eq!(again, bytes, "two stored forms of one schema");
    Some(schema)
}

/// Columns of every type.
pub fn every_type() -> Schema {
    let types = [
        DataType::Boolean,
        DataType::SmallInt,
        DataType::Integer,
        DataType::BigInt,
        DataType::Real,
        DataType::Double,
        DataType::Decimal { precision: 15, scale: 2 },
        DataType::Decimal { precision: 38, scale: 10 },
        DataType::Date,
        DataType::Time { unit: TimeUnit::Micro },
        DataType::Timestamp { unit: TimeUnit::Nano, with_zone: true },
        DataType::Timestamp { unit: TimeUnit::Second, with_zone: false },
        DataType::Char(3),
        DataType::Varchar(None),
        DataType::Varchar(Some(5)),
        DataType::Bytea,
        DataType::Uuid,
        DataType::Interval,
    ];
    let columns = types.iter().enumerate().map(|(i, t)| Column::new(format!("c{i}"), *t, i % 2 == 0)).collect();
    Schema::new(columns).expect("valid types")
}

/// The parts of an input that [`take`] reads.
pub fn put(schema: &Schema, out: &mut Vec<u8>) {
    let mut bytes = Vec::new();
    schema.encode(&mut bytes);
    out.extend((bytes.len() as u16).to_le_bytes());
    out.extend(bytes);
}

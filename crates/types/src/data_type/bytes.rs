//! A type as bytes in the catalog: a tag, then parameters.
//!
//! | Tag | Type | Parameters |
//! |---|---|---|
//! | 1..=6 | BOOLEAN, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE | |
//! | 7 | DECIMAL | precision u8, scale i8 |
//! | 8 | DATE | |
//! | 9 | TIME | digits u8 |
//! | 10, 11 | TIMESTAMP, WITH TIME ZONE | digits u8 |
//! | 12 | CHAR | n u32 |
//! | 13 | VARCHAR | n u32, 0 = any |
//! | 14, 15 | BYTEA, UUID | |
//! | 16 | INTERVAL | |

use super::{DataType, TimeUnit};
use crate::SchemaError;
use crate::bytes::Reader;

impl DataType {
    /// Appends the stored form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            DataType::Boolean => out.push(1),
            DataType::SmallInt => out.push(2),
            DataType::Integer => out.push(3),
            DataType::BigInt => out.push(4),
            DataType::Real => out.push(5),
            DataType::Double => out.push(6),
            DataType::Decimal { precision, scale } => out.extend([7, precision, scale.cast_unsigned()]),
            DataType::Date => out.push(8),
            DataType::Time { unit } => out.extend([9, unit.digits()]),
            DataType::Timestamp { unit, with_zone } => out.extend([10 + u8::from(with_zone), unit.digits()]),
            DataType::Char(n) => {
                out.push(12);
                out.extend(n.to_le_bytes());
            }
            DataType::Varchar(n) => {
                out.push(13);
                out.extend(n.unwrap_or(0).to_le_bytes());
            }
            DataType::Bytea => out.push(14),
            DataType::Uuid => out.push(15),
            DataType::Interval => out.push(16),
        }
    }

    pub(crate) fn decode_from(reader: &mut Reader<'_>) -> Result<DataType, SchemaError> {
        let damaged = SchemaError::Bytes("type");
        let unit = |reader: &mut Reader<'_>| reader.u8().and_then(TimeUnit::from_digits);
        let data_type = match reader.u8() {
            Some(1) => Some(DataType::Boolean),
            Some(2) => Some(DataType::SmallInt),
            Some(3) => Some(DataType::Integer),
            Some(4) => Some(DataType::BigInt),
            Some(5) => Some(DataType::Real),
            Some(6) => Some(DataType::Double),
            Some(7) => {
                let (precision, scale) = (reader.u8(), reader.u8());
                precision.zip(scale).map(|(precision, scale)| DataType::Decimal { precision, scale: scale.cast_signed() })
            }
            Some(8) => Some(DataType::Date),
            Some(9) => unit(reader).map(|unit| DataType::Time { unit }),
            Some(tag @ (10 | 11)) => unit(reader).map(|unit| DataType::Timestamp { unit, with_zone: tag == 11 }),
            Some(12) => reader.u32().map(DataType::Char),
            Some(13) => reader.u32().map(|n| DataType::Varchar((n > 0).then_some(n))),
            Some(14) => Some(DataType::Bytea),
            Some(15) => Some(DataType::Uuid),
            Some(16) => Some(DataType::Interval),
            _ => None,
        };
        data_type.filter(DataType::is_valid).ok_or(damaged)
    }
}

//! Types as SQL text, and back: `DECIMAL(15,2)`, `TIMESTAMP(3) WITH TIME ZONE`.
//!
//! Invariant: `t.to_string().parse() == t` for every valid type.
//! A TIME or TIMESTAMP without digits has six, as in PostgreSQL; digits are 0, 3, 6 or 9.

use super::{DECIMAL_PRECISION_MAX, DataType, TimeUnit};
use crate::SchemaError;
use std::fmt;
use std::str::FromStr;

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = |f: &mut fmt::Formatter<'_>, name: &str, unit: TimeUnit| match unit {
            TimeUnit::Micro => f.write_str(name),
            other => write!(f, "{name}({})", other.digits()),
        };
        match *self {
            DataType::Boolean => f.write_str("BOOLEAN"),
            DataType::SmallInt => f.write_str("SMALLINT"),
            DataType::Integer => f.write_str("INTEGER"),
            DataType::BigInt => f.write_str("BIGINT"),
            DataType::Real => f.write_str("REAL"),
            DataType::Double => f.write_str("DOUBLE"),
            DataType::Decimal { precision, scale } => write!(f, "DECIMAL({precision},{scale})"),
            DataType::Date => f.write_str("DATE"),
            DataType::Time { unit } => digits(f, "TIME", unit),
            DataType::Timestamp { unit, with_zone } => {
                digits(f, "TIMESTAMP", unit)?;
                f.write_str(if with_zone { " WITH TIME ZONE" } else { "" })
            }
            DataType::Char(n) => write!(f, "CHAR({n})"),
            DataType::Varchar(Some(n)) => write!(f, "VARCHAR({n})"),
            DataType::Varchar(None) => f.write_str("VARCHAR"),
            DataType::Bytea => f.write_str("BYTEA"),
            DataType::Uuid => f.write_str("UUID"),
            DataType::Interval => f.write_str("INTERVAL"),
        }
    }
}

/// Upper-case words, and the numbers in the one pair of parentheses.
struct Parts {
    words: Vec<String>,
    numbers: Vec<i64>,
}

fn parts(text: &str) -> Result<Parts, &'static str> {
    let mut parts = Parts { words: Vec::new(), numbers: Vec::new() };
    let (before, rest) = text.split_once('(').unwrap_or((text, ""));
    let (inside, after) = match (text.contains('('), rest.split_once(')')) {
        (false, _) => ("", ""),
        (true, Some(split)) => split,
        (true, None) => return Err("the parenthesis is not closed"),
    };
    for word in before.split_whitespace().chain(after.split_whitespace()) {
        parts.words.push(word.to_ascii_uppercase());
    }
    if text.contains('(') {
        for number in inside.split(',') {
            parts.numbers.push(number.trim().parse().map_err(|_| "not a number between the parentheses")?);
        }
    }
    Ok(parts)
}

fn from_parts(parts: &Parts) -> Result<DataType, &'static str> {
    const SHAPE: &str = "wrong parameters for this type";
    let words: Vec<&str> = parts.words.iter().map(String::as_str).collect();
    let length = |n: i64| u32::try_from(n).map_err(|_| "the length is out of range");
    let unit = |numbers: &[i64]| match numbers {
        [] => Ok(TimeUnit::Micro),
        [n] => u8::try_from(*n).ok().and_then(TimeUnit::from_digits).ok_or("the digits of a second are 0, 3, 6 or 9"),
        _ => Err(SHAPE),
    };
    let numbers = parts.numbers.as_slice();
    let plain = |t: DataType| if numbers.is_empty() { Ok(t) } else { Err(SHAPE) };
    match words.as_slice() {
        ["BOOLEAN" | "BOOL"] => plain(DataType::Boolean),
        ["SMALLINT" | "INT2"] => plain(DataType::SmallInt),
        ["INTEGER" | "INT" | "INT4"] => plain(DataType::Integer),
        ["BIGINT" | "INT8"] => plain(DataType::BigInt),
        ["REAL" | "FLOAT4"] => plain(DataType::Real),
        ["DOUBLE" | "FLOAT8"] | ["DOUBLE", "PRECISION"] => plain(DataType::Double),
        ["DECIMAL" | "NUMERIC" | "DEC"] => {
            let (precision, scale) = match *numbers {
                [p] => (p, 0),
                [p, s] => (p, s),
                _ => return Err("DECIMAL takes a precision and a scale"),
            };
            let precision = u8::try_from(precision).map_err(|_| "the precision is 1 to 38")?;
            if !(1..=DECIMAL_PRECISION_MAX).contains(&precision) {
                return Err("the precision is 1 to 38");
            }
            let scale = i8::try_from(scale).map_err(|_| "the scale is at most the precision")?;
            Ok(DataType::Decimal { precision, scale })
        }
        ["DATE"] => plain(DataType::Date),
        ["TIME"] | ["TIME", "WITHOUT", "TIME", "ZONE"] => Ok(DataType::Time { unit: unit(numbers)? }),
        ["TIMESTAMP"] | ["TIMESTAMP", "WITHOUT", "TIME", "ZONE"] => Ok(DataType::Timestamp { unit: unit(numbers)?, with_zone: false }),
        ["TIMESTAMPTZ"] | ["TIMESTAMP", "WITH", "TIME", "ZONE"] => Ok(DataType::Timestamp { unit: unit(numbers)?, with_zone: true }),
        ["CHAR" | "CHARACTER" | "BPCHAR"] => match *numbers {
            [] => Ok(DataType::Char(1)),
            [n] => Ok(DataType::Char(length(n)?)),
            _ => Err(SHAPE),
        },
        ["VARCHAR"] | ["CHARACTER", "VARYING"] => match *numbers {
            [] => Ok(DataType::Varchar(None)),
            [n] => Ok(DataType::Varchar(Some(length(n)?))),
            _ => Err(SHAPE),
        },
        ["TEXT" | "STRING"] => plain(DataType::Varchar(None)),
        ["BYTEA" | "BLOB" | "BINARY" | "VARBINARY"] => plain(DataType::Bytea),
        ["UUID"] => plain(DataType::Uuid),
        ["INTERVAL"] => plain(DataType::Interval),
        _ => Err("there is no type of that name"),
    }
}

impl FromStr for DataType {
    type Err = SchemaError;

    /// Any case, any blanks, the usual synonyms.
    fn from_str(text: &str) -> Result<DataType, SchemaError> {
        let error = |reason| SchemaError::TypeText { text: text.chars().take(80).collect(), reason };
        let data_type = parts(text).and_then(|p| from_parts(&p)).map_err(error)?;
        if data_type.is_valid() { Ok(data_type) } else { Err(error("a parameter is out of range")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Reader;

    pub(crate) fn samples() -> Vec<DataType> {
        use DataType::*;
        let mut all = vec![
            Boolean,
            SmallInt,
            Integer,
            BigInt,
            Real,
            Double,
            Date,
            Bytea,
            Uuid,
            Interval,
            Char(1),
            Char(16),
            Varchar(None),
            Varchar(Some(44)),
        ];
        for precision in 1..=38 {
            all.extend([0, 2, -3].into_iter().filter(|s| *s <= precision as i8).map(|scale| Decimal { precision, scale }));
        }
        for digits in [0, 3, 6, 9] {
            let unit = TimeUnit::from_digits(digits).unwrap();
            all.extend([Time { unit }, Timestamp { unit, with_zone: false }, Timestamp { unit, with_zone: true }]);
        }
        all
    }

    #[test]
    fn text_and_bytes_round_trip() {
        for t in samples() {
            assert_eq!(t.to_string().parse::<DataType>().unwrap(), t, "{t}");
            assert_eq!(t.to_string().to_lowercase().parse::<DataType>().unwrap(), t);
            let mut bytes = Vec::new();
            t.encode(&mut bytes);
            assert_eq!(DataType::decode_from(&mut Reader::new(&bytes)).unwrap(), t);
            for cut in 0..bytes.len() {
                assert!(DataType::decode_from(&mut Reader::new(&bytes[..cut])).is_err());
            }
        }
    }

    #[test]
    fn synonyms_and_refusals() {
        let parse = |s: &str| s.parse::<DataType>();
        assert_eq!(parse(" timestamp ( 3 ) with  time zone ").unwrap(), DataType::Timestamp { unit: TimeUnit::Milli, with_zone: true });
        assert_eq!(parse("numeric(9)").unwrap(), DataType::Decimal { precision: 9, scale: 0 });
        assert_eq!(parse("text").unwrap(), DataType::Varchar(None));
        for bad in [
            "",
            "DECIMAL",
            "DECIMAL(39,2)",
            "DECIMAL(0,0)",
            "DECIMAL(5,6)",
            "CHAR(0)",
            "CHAR(",
            "CHAR(x)",
            "VARCHAR(-1)",
            "TIME(2)",
            "INT(4)",
            "MAP",
            "DECIMAL(5,2,1)",
            "CHAR(4294967296)",
        ] {
            let error = parse(bad).unwrap_err().to_string();
            assert!(error.contains(&format!("\"{bad}\"")), "{error}");
        }
    }
}

//! Text to values.

use super::{binary, date_time, float, number};
use crate::interval::{IntervalError, parse_interval};
use crate::{DataType, Value};

/// Why a text is no value of a type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not {data_type}: {reason}")]
pub struct TextError {
    /// The text, shortened.
    pub text: String,
    /// The type.
    pub data_type: DataType,
    /// What is wrong.
    pub reason: &'static str,
}

fn read(text: &str, data_type: &DataType) -> Result<Value, &'static str> {
    Ok(match *data_type {
        DataType::Boolean => Value::Boolean(match text.to_ascii_lowercase().as_str() {
            "true" | "t" | "yes" | "y" | "on" | "1" => true,
            "false" | "f" | "no" | "n" | "off" | "0" => false,
            _ => return Err("neither true nor false"),
        }),
        DataType::SmallInt | DataType::Integer | DataType::BigInt => Value::Int(number::parse_int(text)?),
        DataType::Real => Value::Real(float::parse_float(text)?),
        DataType::Double => Value::Double(float::parse_float(text)?),
        DataType::Decimal { precision, scale } => Value::Decimal(number::parse_decimal(text, precision, scale)?),
        DataType::Date => Value::Int(date_time::parse_date(text)?),
        DataType::Time { unit } => Value::Int(date_time::parse_time(text, unit)?),
        DataType::Timestamp { unit, with_zone } => Value::Int(date_time::parse_timestamp(text, unit, with_zone)?),
        DataType::Char(_) | DataType::Varchar(_) => Value::Text(text.to_owned()),
        DataType::Bytea => Value::Bytes(binary::parse_bytes(text)?),
        DataType::Uuid => Value::Uuid(binary::parse_uuid(text)?),
        DataType::Interval => Value::Interval(parse_interval(text, None).map_err(|error| match error {
            IntervalError::Syntax => "not an interval",
            IntervalError::Field | IntervalError::Range => "out of range",
        })?),
    })
}

/// Reads a value of the type; never NULL.
///
/// # Errors
/// [`TextError`] when the text is no value of the type, or one out of its range.
pub fn parse(text: &str, data_type: &DataType) -> Result<Value, TextError> {
    let error = |reason| TextError { text: text.chars().take(60).collect(), data_type: *data_type, reason };
    let value = read(text, data_type).map_err(error)?;
    match value.as_ref().check(data_type, "") {
        Ok(()) => Ok(value),
        Err(_) if data_type.is_text() => Err(error("too many characters")),
        Err(_) => Err(error("out of range")),
    }
}

/// Would the value that this text gives be written as just this text? `scratch` is overwritten.
#[must_use]
pub fn is_canonical(text: &str, data_type: &DataType, scratch: &mut Vec<u8>) -> bool {
    match data_type {
        DataType::Varchar(None) => return true,
        DataType::SmallInt | DataType::Integer | DataType::BigInt if !number::is_canonical_int(text) => return false,
        DataType::BigInt => return true,
        _ => {}
    }
    let Ok(value) = read(text, data_type) else { return false };
    if value.as_ref().check(data_type, "").is_err() {
        return false;
    }
    scratch.clear();
    super::write(value.as_ref(), data_type, scratch);
    scratch == text.as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TimeUnit;
    use crate::text::{civil_from_days, days_from_civil, to_text};

    fn date_time_days(year: i64, month: u8) -> u8 {
        let leap = year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0);
        [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][usize::from(month) - 1]
    }

    fn t(text: &str) -> DataType {
        text.parse().unwrap()
    }

    #[test]
    fn canonical_texts() {
        let yes = [
            ("0", "INTEGER"),
            ("-7", "SMALLINT"),
            ("32767", "SMALLINT"),
            ("-9223372036854775808", "BIGINT"),
            ("1.50", "DECIMAL(15,2)"),
            ("-0.05", "DECIMAL(3,2)"),
            ("0.00", "DECIMAL(15,2)"),
            ("99999999999999999999999999999999999999", "DECIMAL(38,0)"),
            ("1200", "DECIMAL(3,-2)"),
            ("0", "DECIMAL(3,-2)"),
            ("2024-02-29", "DATE"),
            ("0000-01-01", "DATE"),
            ("-0044-03-15", "DATE"),
            ("+10000-01-01", "DATE"),
            ("23:59:59", "TIME(0)"),
            ("24:00:00.000", "TIME(3)"),
            ("2024-02-29 23:59:59.123456", "TIMESTAMP"),
            ("1969-12-31 23:59:59.999999999", "TIMESTAMP(9)"),
            ("2024-02-29 00:00:00+00", "TIMESTAMP(0) WITH TIME ZONE"),
            ("true", "BOOLEAN"),
            ("6.081689834590001", "DOUBLE"),
            ("-0", "DOUBLE"),
            ("1e16", "DOUBLE"),
            ("1.5e-7", "REAL"),
            ("NaN", "DOUBLE"),
            ("-Infinity", "REAL"),
            ("0.1", "REAL"),
            ("\\x00ff", "BYTEA"),
            ("\\x", "BYTEA"),
            ("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "UUID"),
            ("1 year 2 mons -3 days +04:05:06.7", "INTERVAL"),
            ("00:00:00", "INTERVAL"),
            ("", "VARCHAR"),
            ("\u{0}ä", "VARCHAR"),
        ];
        for (text, data_type) in yes {
            assert!(is_canonical(text, &t(data_type), &mut Vec::new()), "{text} {data_type}");
            assert_eq!(to_text(parse(text, &t(data_type)).unwrap().as_ref(), &t(data_type)), text);
        }
        let read_but_no = [
            ("007", "INTEGER"),
            ("+7", "INTEGER"),
            ("-0", "INTEGER"),
            ("1.5", "DECIMAL(15,2)"),
            ("01.50", "DECIMAL(15,2)"),
            (".50", "DECIMAL(15,2)"),
            ("-0.00", "DECIMAL(15,2)"),
            ("1.500", "DECIMAL(15,2)"),
            ("3.0", "DOUBLE"),
            ("1E5", "DOUBLE"),
            ("0.10000000000000001", "DOUBLE"),
            ("TRUE", "BOOLEAN"),
            ("t", "BOOLEAN"),
            ("2024-02-29T23:59:59", "TIMESTAMP(0)"),
            ("2024-02-29 23:59:59", "TIMESTAMP"),
            ("2024-02-29 23:59:59Z", "TIMESTAMP(0) WITH TIME ZONE"),
            ("2024-02-29 23:59:59+05:30", "TIMESTAMP(0) WITH TIME ZONE"),
            ("12:30", "TIME(0)"),
            ("6BA7B810-9dad-11d1-80b4-00c04fd430c8", "UUID"),
            ("6ba7b8109dad11d180b400c04fd430c8", "UUID"),
            ("\\xFF", "BYTEA"),
            ("-0000-01-01", "DATE"),
            ("+2024-01-01", "DATE"),
            ("1 day 00:00:00", "INTERVAL"),
            ("13 mons", "INTERVAL"),
            ("P1D", "INTERVAL"),
        ];
        for (text, data_type) in read_but_no {
            assert!(parse(text, &t(data_type)).is_ok(), "{text} {data_type}");
            assert!(!is_canonical(text, &t(data_type), &mut Vec::new()), "{text} {data_type}");
        }
        let no = [
            ("", "INTEGER"),
            ("-", "INTEGER"),
            ("1 ", "INTEGER"),
            ("32768", "SMALLINT"),
            ("2147483648", "INTEGER"),
            ("9223372036854775808", "BIGINT"),
            ("1e3", "INTEGER"),
            ("1.505", "DECIMAL(15,2)"),
            ("1000.00", "DECIMAL(5,2)"),
            (".", "DECIMAL(5,2)"),
            ("1.2.3", "DECIMAL(5,2)"),
            ("1250", "DECIMAL(2,-2)"),
            ("100000", "DECIMAL(3,-2)"),
            ("99999999999999999999999999999999999999999999999999999", "DECIMAL(38,0)"),
            ("2023-02-29", "DATE"),
            ("2023-13-01", "DATE"),
            ("2023-1-1", "DATE"),
            ("20230101", "DATE"),
            ("12345-01-01", "DATE"),
            ("24:00:01", "TIME(0)"),
            ("12:60:00", "TIME(0)"),
            ("12:00:00.5", "TIME(0)"),
            ("12:00:00.", "TIME(3)"),
            ("2024-01-01 00:00:00+00", "TIMESTAMP(0)"),
            ("2024-01-01 00:00:00+16", "TIMESTAMP(0) WITH TIME ZONE"),
            ("2300-01-01 00:00:00", "TIMESTAMP(9)"),
            ("yess", "BOOLEAN"),
            ("1e400", "DOUBLE"),
            ("1e40", "REAL"),
            ("x", "DOUBLE"),
            ("ff", "BYTEA"),
            ("\\xf", "BYTEA"),
            ("\\xgg", "BYTEA"),
            ("abc", "CHAR(2)"),
            ("abc", "VARCHAR(2)"),
            ("6ba7b810-9dad-11d1-80b4-00c04fd430c", "UUID"),
            ("+999999999999-01-01", "TIMESTAMP(0)"),
            ("+5881580-07-12", "DATE"),
            ("1 dai", "INTERVAL"),
            ("2147483648 days", "INTERVAL"),
        ];
        for (text, data_type) in no {
            let error = parse(text, &t(data_type)).unwrap_err().to_string();
            assert!(error.contains(&t(data_type).to_string()), "{error}");
            assert!(!is_canonical(text, &t(data_type), &mut Vec::new()), "{text} {data_type}");
        }
        assert_eq!(parse("2024-02-29 01:00:00+05:30", &t("TIMESTAMP(0) WITH TIME ZONE")).unwrap(), Value::Int(1_709_148_600));
    }

    #[test]
    fn days_follow_the_calendar() {
        let mut days = days_from_civil(-801, 1, 1);
        for year in -801..2805 {
            for month in 1..=12 {
                for day in 1..=date_time_days(year, month) {
                    assert_eq!(days_from_civil(year, month, day), days);
                    assert_eq!(civil_from_days(days), (year, month, day));
                    days += 1;
                }
            }
        }
        assert_eq!(days_from_civil(1970, 1, 1), 0);
        assert_eq!(days_from_civil(2000, 3, 1), 11_017);
    }

    #[test]
    fn extremes_round_trip() {
        let timestamps = [TimeUnit::Second, TimeUnit::Milli, TimeUnit::Micro, TimeUnit::Nano];
        for unit in timestamps {
            for with_zone in [false, true] {
                let data_type = DataType::Timestamp { unit, with_zone };
                for value in [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX] {
                    let text = to_text(Value::Int(value).as_ref(), &data_type);
                    assert_eq!(parse(&text, &data_type).unwrap(), Value::Int(value), "{text}");
                }
            }
        }
        for value in [i64::from(i32::MIN), i64::from(i32::MAX), -719_528, -719_529] {
            let text = to_text(Value::Int(value).as_ref(), &DataType::Date);
            assert_eq!(parse(&text, &DataType::Date).unwrap(), Value::Int(value), "{text}");
        }
    }
}

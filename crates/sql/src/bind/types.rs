//! Types as they are written in SQL.

use crate::expression::interval::Fields;
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, IntervalField as Field};
use sqlparser::ast::{self, CharacterLength, ExactNumberInfo, TimezoneInfo};
use std::str::FromStr;

/// Digits of DECIMAL without any given: PostgreSQL's has as many as it needs, here a column has a number of them.
const DECIMAL: DataType = DataType::Decimal { precision: 38, scale: 10 };

/// NUMERIC without digits, which a cast takes from what it casts?
pub(crate) fn is_any_number(written: &ast::DataType) -> bool {
    use ast::DataType as Written;
    matches!(
        written,
        Written::Numeric(ExactNumberInfo::None) | Written::Decimal(ExactNumberInfo::None) | Written::Dec(ExactNumberInfo::None)
    )
}

/// What a type name means. `SERIAL` and its kin are the integers; that they count is for whoever makes a table.
pub(crate) fn data_type(written: &ast::DataType) -> SqlResult<DataType> {
    use ast::DataType as Written;
    let unsupported = || SqlError::new("0A000", format!("type {written} is not supported"));
    let found = match written {
        Written::Boolean | Written::Bool => DataType::Boolean,
        Written::SmallInt(_) | Written::Int2(_) | Written::TinyInt(_) => DataType::SmallInt,
        Written::Int(_) | Written::Int4(_) | Written::Integer(_) | Written::MediumInt(_) => DataType::Integer,
        Written::BigInt(_) | Written::Int8(_) => DataType::BigInt,
        Written::Real | Written::Float4 => DataType::Real,
        Written::Double(_) | Written::DoublePrecision | Written::Float8 => DataType::Double,
        Written::Float(info) => match info {
            ExactNumberInfo::Precision(bits) if *bits <= 24 => DataType::Real,
            _ => DataType::Double,
        },
        Written::Numeric(info) | Written::Decimal(info) | Written::Dec(info) => decimal(info)?,
        Written::Char(length) | Written::Character(length) => DataType::Char(characters(length.as_ref())?.unwrap_or(1)),
        Written::Varchar(length) | Written::CharacterVarying(length) | Written::CharVarying(length) | Written::Nvarchar(length) => {
            DataType::Varchar(characters(length.as_ref())?)
        }
        Written::Text | Written::String(_) | Written::TinyText | Written::MediumText | Written::LongText | Written::Clob(_) => {
            DataType::Varchar(None)
        }
        Written::Bytea | Written::Blob(_) | Written::Binary(_) | Written::Varbinary(_) => DataType::Bytea,
        Written::Uuid => DataType::Uuid,
        Written::Interval { fields: None, precision: None } => DataType::Interval,
        Written::Date => DataType::Date,
        Written::Time(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => parsed("TIME", *digits, "")?,
        Written::Timestamp(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) | Written::TimestampNtz(digits) => {
            parsed("TIMESTAMP", *digits, "")?
        }
        Written::Datetime(digits) => parsed("TIMESTAMP", *digits, "")?,
        Written::Timestamp(digits, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => parsed("TIMESTAMP", *digits, " WITH TIME ZONE")?,
        // PostgreSQL's type of identifiers: at most 63 characters.
        Written::Custom(name, modifiers) if modifiers.is_empty() && name.to_string().eq_ignore_ascii_case("name") => {
            DataType::Varchar(Some(63))
        }
        Written::Custom(_, modifiers) if modifiers.is_empty() => {
            serial(written).ok_or_else(|| SqlError::new("42704", format!("type \"{written}\" does not exist")))?
        }
        _ => return Err(unsupported()),
    };
    if found.is_valid() {
        Ok(found)
    } else {
        Err(SqlError::new("22023", format!("type {written} cannot be: its length or digits are out of range")))
    }
}

/// Units, and digits of a second, of INTERVAL; `None` for other types.
pub(crate) fn interval(written: &ast::DataType) -> Option<(Fields, Option<u8>)> {
    use ast::IntervalFields as Written;
    let ast::DataType::Interval { fields, precision } = written else { return None };
    let fields = fields.as_ref().map(|fields| match fields {
        Written::Year => (Field::Year, Field::Year),
        Written::Month => (Field::Month, Field::Month),
        Written::Day => (Field::Day, Field::Day),
        Written::Hour => (Field::Hour, Field::Hour),
        Written::Minute => (Field::Minute, Field::Minute),
        Written::Second => (Field::Second, Field::Second),
        Written::YearToMonth => (Field::Year, Field::Month),
        Written::DayToHour => (Field::Day, Field::Hour),
        Written::DayToMinute => (Field::Day, Field::Minute),
        Written::DayToSecond => (Field::Day, Field::Second),
        Written::HourToMinute => (Field::Hour, Field::Minute),
        Written::HourToSecond => (Field::Hour, Field::Second),
        Written::MinuteToSecond => (Field::Minute, Field::Second),
    });
    Some((fields, precision.map(digits)))
}

/// Digits of a second: more than six are six, as in PostgreSQL.
fn digits(written: u64) -> u8 {
    u8::try_from(written.min(6)).unwrap_or(6)
}

/// What stands behind the text of a literal: units, and digits of a second.
pub(crate) fn interval_of_literal(literal: &ast::Interval) -> SqlResult<(Fields, Option<u8>)> {
    let named = |field: &ast::DateTimeField| {
        Field::named(&field.to_string()).ok_or_else(|| SqlError::unsupported(format!("INTERVAL '...' {field}")))
    };
    let Some(first) = &literal.leading_field else { return Ok((None, None)) };
    let first = named(first)?;
    let last = literal.last_field.as_ref().map(named).transpose()?;
    let order = [Field::Day, Field::Hour, Field::Minute, Field::Second];
    let place = |field: Field| order.iter().position(|own| *own == field);
    let fits = match (first, last) {
        (_, None) | (Field::Year, Some(Field::Month)) => true,
        (first, Some(last)) => place(first).zip(place(last)).is_some_and(|(first, last)| first < last),
    };
    if !fits {
        return Err(SqlError::syntax(format!("{literal} is no interval")));
    }
    // Of seconds alone it says how many digits are behind the point, of other units (in the standard, and in TPC-H) how many the number has at most.
    let of_first = literal.leading_precision.filter(|_| first != Field::Second);
    if of_first.is_some_and(|most| first_number(&literal.value).is_some_and(|digits| digits as u64 > most)) {
        return Err(SqlError::new("22015", format!("interval field value out of range: {literal}")));
    }
    let precision = literal.fractional_seconds_precision.or(literal.leading_precision.filter(|_| of_first.is_none()));
    Ok((Some((first, last.unwrap_or(first))), precision.map(digits)))
}

/// How many digits the first number of a literal has.
fn first_number(literal: &ast::Expr) -> Option<usize> {
    let ast::Expr::Value(value) = literal else { return None };
    let ast::Value::SingleQuotedString(text) = &value.value else { return None };
    let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit()).bytes().take_while(u8::is_ascii_digit);
    Some(digits.skip_while(|digit| *digit == b'0').count())
}

/// The type of the numbers of SERIAL and its kin.
fn serial(written: &ast::DataType) -> Option<DataType> {
    let ast::DataType::Custom(name, _) = written else { return None };
    match name.to_string().to_lowercase().as_str() {
        "serial" | "serial4" => Some(DataType::Integer),
        "bigserial" | "serial8" => Some(DataType::BigInt),
        "smallserial" | "serial2" => Some(DataType::SmallInt),
        _ => None,
    }
}

/// Is it SERIAL, or one of its kin?
pub(crate) fn is_serial(written: &ast::DataType) -> bool {
    serial(written).is_some()
}

fn characters(length: Option<&CharacterLength>) -> SqlResult<Option<u32>> {
    match length {
        None | Some(CharacterLength::Max) => Ok(None),
        Some(CharacterLength::IntegerLength { length, .. }) => {
            let characters = u32::try_from(*length).ok().filter(|length| *length > 0);
            characters.map(Some).ok_or_else(|| SqlError::new("22023", format!("a length of {length} characters cannot be")))
        }
    }
}

fn decimal(info: &ExactNumberInfo) -> SqlResult<DataType> {
    let (precision, scale) = match *info {
        ExactNumberInfo::None => return Ok(DECIMAL),
        ExactNumberInfo::Precision(precision) => (precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (precision, scale),
    };
    let (digits, behind) = (u8::try_from(precision), i8::try_from(scale));
    match (digits, behind) {
        (Ok(precision), Ok(scale)) if (DataType::Decimal { precision, scale }).is_valid() => Ok(DataType::Decimal { precision, scale }),
        _ => Err(SqlError::new("22023", format!("NUMERIC({precision}, {scale}): at most 38 digits, no more of them behind the point"))),
    }
}

fn parsed(name: &str, digits: Option<u64>, zone: &str) -> SqlResult<DataType> {
    // The next finer unit that there is.
    let digits = digits.map_or(6, |digits| [0, 3, 6, 9].into_iter().find(|own| *own >= digits).unwrap_or(9));
    DataType::from_str(&format!("{name}({digits}){zone}")).map_err(|e| SqlError::types(e.to_string()))
}

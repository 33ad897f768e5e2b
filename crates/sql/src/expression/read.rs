//! Texts to values, as PostgreSQL's input functions read them, with its wording where they cannot.

use super::decimal::{self, Number};
use super::{calendar, types};
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, Value, text};

/// A text for a message: not all of a long one.
pub(super) fn shown(text: &str) -> String {
    const SHOWN: usize = 100;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn invalid(text: &str, data_type: &DataType) -> SqlError {
    SqlError::new("22P02", format!("invalid input syntax for type {}: \"{}\"", types::name(data_type), shown(text)))
}

fn out_of_range(text: &str, data_type: &DataType) -> SqlError {
    SqlError::new("22003", format!("value \"{}\" is out of range for type {}", shown(text), types::name(data_type)))
}

/// The digits of a UUID: it may have braces around it, and hyphens behind any four digits.
fn uuid_digits(text: &str) -> Option<String> {
    const DIGITS: usize = 32;
    let text = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}')?,
        None => text,
    };
    let mut digits = String::with_capacity(DIGITS);
    let mut after_hyphen = true;
    for c in text.chars() {
        match c {
            '-' if !after_hyphen && digits.len().is_multiple_of(4) && digits.len() < DIGITS => after_hyphen = true,
            c if c.is_ascii_hexdigit() && digits.len() < DIGITS => {
                digits.push(c);
                after_hyphen = false;
            }
            _ => return None,
        }
    }
    (digits.len() == DIGITS).then_some(digits)
}

fn boolean(text: &str) -> Option<bool> {
    let text = text.trim().to_ascii_lowercase();
    let begins = |word: &str, least: usize| text.len() >= least && word.starts_with(&text);
    if text == "1" || begins("true", 1) || begins("yes", 1) || begins("on", 2) {
        return Some(true);
    }
    (text == "0" || begins("false", 1) || begins("no", 1) || begins("off", 2)).then_some(false)
}

fn integer(text: &str, data_type: &DataType) -> SqlResult<i64> {
    let trimmed = text.trim();
    let digits = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(invalid(text, data_type));
    }
    let value = trimmed.parse::<i64>().map_err(|_| out_of_range(text, data_type))?;
    match data_type.int_range() {
        Some((least, most)) if (least..=most).contains(&value) => Ok(value),
        _ => Err(out_of_range(text, data_type)),
    }
}

fn float<F>(text: &str, data_type: &DataType) -> SqlResult<F>
where
    F: std::str::FromStr + Into<f64> + Copy,
{
    let trimmed = text.trim();
    let value: F = trimmed.parse().map_err(|_| invalid(text, data_type))?;
    let double: f64 = value.into();
    let mantissa = trimmed.split(['e', 'E']).next().unwrap_or_default();
    let vanished = double == 0.0 && mantissa.bytes().any(|b| matches!(b, b'1'..=b'9'));
    if vanished || (double.is_infinite() && mantissa.bytes().any(|b| b.is_ascii_digit())) {
        return Err(SqlError::new("22003", format!("\"{}\" is out of range for type {}", shown(text), types::name(data_type))));
    }
    Ok(value)
}

/// `\x` and hexadecimal digits, or characters with `\\` and `\ooo` among them.
fn bytes(text: &str) -> SqlResult<Vec<u8>> {
    if text.starts_with("\\x") {
        let refused = |error: text::TextError| SqlError::new("22023", format!("invalid hexadecimal data: {}", error.reason));
        return match text::parse(text, &DataType::Bytea).map_err(refused)? {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Ok(Vec::new()),
        };
    }
    let mut made = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    loop {
        match rest {
            [] => return Ok(made),
            [b'\\', b'\\', tail @ ..] => {
                made.push(b'\\');
                rest = tail;
            }
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..] => {
                made.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = tail;
            }
            [b'\\', ..] => return Err(SqlError::new("22P02", "invalid input syntax for type bytea")),
            [byte, tail @ ..] => {
                made.push(*byte);
                rest = tail;
            }
        }
    }
}

/// A text as a value of the type. Too long a text is cut, as by an explicit cast.
pub(super) fn read(text: &str, data_type: &DataType) -> SqlResult<Value> {
    Ok(match *data_type {
        DataType::Boolean => Value::Boolean(boolean(text).ok_or_else(|| invalid(text, data_type))?),
        DataType::SmallInt | DataType::Integer | DataType::BigInt => Value::Int(integer(text, data_type)?),
        DataType::Real => Value::Real(float(text, data_type)?),
        DataType::Double => Value::Double(float(text, data_type)?),
        DataType::Decimal { precision, scale } => {
            let number = Number::read(text.trim()).ok_or_else(|| invalid(text, data_type))?;
            Value::Decimal(number.with_scale(precision, scale)?)
        }
        DataType::Date | DataType::Timestamp { .. } if text.trim().eq_ignore_ascii_case("epoch") => Value::Int(0),
        DataType::Time { .. } if text.trim().eq_ignore_ascii_case("allballs") => Value::Int(0),
        DataType::Date | DataType::Time { .. } | DataType::Timestamp { .. } => Value::Int(calendar::read(text, data_type)?),
        DataType::Char(_) | DataType::Varchar(_) => Value::Text(fit_text(text.to_owned(), data_type)),
        DataType::Bytea => Value::Bytes(bytes(text)?),
        DataType::Interval => Value::Interval(super::interval::read(text, None)?),
        DataType::Uuid => {
            let digits = uuid_digits(text.trim()).ok_or_else(|| invalid(text, data_type))?;
            text::parse(&digits, data_type).map_err(|_| invalid(text, data_type))?
        }
    })
}

/// Cut to the length of a text type, and padded to that of CHAR.
pub(super) fn fit_text(mut text: String, data_type: &DataType) -> String {
    let most = match *data_type {
        DataType::Char(n) | DataType::Varchar(Some(n)) => n as usize,
        _ => return text,
    };
    if text.len() > most
        && let Some((end, _)) = text.char_indices().nth(most)
    {
        text.truncate(end);
    }
    if matches!(data_type, DataType::Char(_)) {
        let chars = text.chars().count();
        text.extend(std::iter::repeat_n(' ', most.saturating_sub(chars)));
    }
    text
}

/// The type of a number in quotes, where any number will do.
pub(super) fn number_type(text: &str) -> Option<DataType> {
    Number::read(text.trim())?.data_type()
}

/// A value as text, as PostgreSQL writes it: seconds without zeros at their end, exponents with a sign and two digits.
pub(super) fn write(value: pagefold_types::ValueRef<'_>, data_type: &DataType) -> String {
    use pagefold_types::ValueRef;
    match (value, data_type) {
        (ValueRef::Real(value), _) => write_float(f64::from(value), &format!("{value:e}"), 6),
        (ValueRef::Double(value), _) => write_float(value, &format!("{value:e}"), 15),
        (ValueRef::Int(_), DataType::Time { .. } | DataType::Timestamp { .. }) => {
            let all = text::to_text(value, data_type);
            let (moment, zone) = all.strip_suffix("+00").map_or((all.as_str(), ""), |moment| (moment, "+00"));
            let moment = if moment.contains('.') { moment.trim_end_matches('0').trim_end_matches('.') } else { moment };
            format!("{moment}{zone}")
        }
        _ => text::to_text(value, data_type),
    }
}

/// From the shortest digits with an exponent, such as `1.5e-7`.
fn write_float(value: f64, shortest: &str, digits: i32) -> String {
    if !value.is_finite() {
        return text::to_text(pagefold_types::ValueRef::Double(value), &DataType::Double);
    }
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..digits).contains(&exponent) {
        // The shortest digits again, without an exponent.
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        let sign = if mantissa.starts_with('-') { "-" } else { "" };
        let before = exponent + 1;
        if before <= 0 {
            return format!("{sign}0.{}{digits}", "0".repeat(before.unsigned_abs() as usize));
        }
        let before = before.unsigned_abs() as usize;
        return match digits.split_at_checked(before) {
            Some((whole, "")) => format!("{sign}{whole}"),
            Some((whole, rest)) => format!("{sign}{whole}.{rest}"),
            None => format!("{sign}{digits:0<before$}"),
        };
    }
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.unsigned_abs())
}

/// A number that an integer type holds, or an error that names it.
pub(super) fn fit_integer(value: i128, data_type: &DataType) -> SqlResult<i64> {
    let fits = data_type.int_range().and_then(|(least, most)| i64::try_from(value).ok().filter(|v| (least..=most).contains(v)));
    fits.ok_or_else(|| SqlError::out_of_range(types::name(data_type)))
}

/// A DECIMAL rounded to an integer type.
pub(super) fn decimal_to_integer(value: i128, scale: i8, data_type: &DataType) -> SqlResult<i64> {
    fit_integer(decimal::rescale(value, scale, 0).map_err(|_| SqlError::out_of_range(types::name(data_type)))?, data_type)
}

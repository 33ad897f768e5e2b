//! Intervals: months, days and microseconds, which are added apart.
//!
//! There is no type INTERVAL: an interval is a literal that is added to a date or time.

use super::calendar::Field;
use super::decimal::Number;
use crate::{SqlError, SqlResult};

/// What is added to a date or time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) months: i64,
    pub(crate) days: i64,
    pub(crate) micros: i64,
}

const DAY: i64 = 86_400_000_000;
/// Digits behind the point that count in an amount.
const DIGITS: u8 = 6;
const ONE: i128 = 1_000_000;

impl Interval {
    pub(crate) fn negated(self) -> Option<Interval> {
        Some(Interval { months: self.months.checked_neg()?, days: self.days.checked_neg()?, micros: self.micros.checked_neg()? })
    }

    /// As PostgreSQL compares intervals: a month has 30 days, a day 24 hours.
    pub(crate) fn is_negative(self) -> bool {
        (i128::from(self.months) * 30 + i128::from(self.days)) * i128::from(DAY) + i128::from(self.micros) < 0
    }

    pub(crate) fn plus(self, other: Interval) -> Option<Interval> {
        Some(Interval {
            months: self.months.checked_add(other.months)?,
            days: self.days.checked_add(other.days)?,
            micros: self.micros.checked_add(other.micros)?,
        })
    }

    /// `amount` millionths of a unit. What is no whole month becomes days, what is no whole day time, as in PostgreSQL.
    fn of(amount: i128, unit: Field) -> Option<Interval> {
        let months = |each: i128| {
            let all = amount.checked_mul(each)?;
            let mut made = Interval::of(all % ONE * 30, Field::Day)?;
            made.months = i64::try_from(all / ONE).ok()?;
            Some(made)
        };
        let days = |each: i128| {
            let all = amount.checked_mul(each)?;
            let micros = (all % ONE).checked_mul(i128::from(DAY))? / ONE;
            Some(Interval { months: 0, days: i64::try_from(all / ONE).ok()?, micros: i64::try_from(micros).ok()? })
        };
        let time = |each: i128| {
            let micros = amount.checked_mul(each)? / ONE;
            Some(Interval { months: 0, days: 0, micros: i64::try_from(micros).ok()? })
        };
        match unit {
            Field::Microseconds => time(1),
            Field::Milliseconds => time(1_000),
            Field::Second => time(ONE),
            Field::Minute => time(60 * ONE),
            Field::Hour => time(3_600 * ONE),
            Field::Day => days(1),
            Field::Week => days(7),
            Field::Month => months(1),
            Field::Quarter => months(3),
            Field::Year => months(12),
            // A year of months holds no fraction of one of its own: whole months are what is left of it.
            Field::Decade => months(120),
            Field::Century => months(1_200),
            Field::Millennium => months(12_000),
            _ => None,
        }
    }
}

fn invalid(text: &str) -> SqlError {
    SqlError::new("22007", format!("invalid input syntax for type interval: \"{}\"", super::read::shown(text)))
}

fn out_of_range(text: &str) -> SqlError {
    SqlError::new("22008", format!("interval field value out of range: \"{}\"", super::read::shown(text)))
}

/// A number in millionths.
fn amount(text: &str) -> Option<i128> {
    Number::read(text)?.with_scale(30, DIGITS.cast_signed()).ok()
}

/// `[-]hours:minutes[:seconds]` in microseconds.
fn clock(text: &str) -> Option<i128> {
    let (negative, rest) = text.strip_prefix('-').map_or((false, text.strip_prefix('+').unwrap_or(text)), |rest| (true, rest));
    let mut parts = rest.split(':');
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse::<i128>().ok()).flatten();
    let (hours, minutes) = (digits(parts.next()?)?, digits(parts.next()?)?);
    let seconds = parts.next().map_or(Some(0), |part| if part.starts_with(['-', '+']) { None } else { amount(part) })?;
    if parts.next().is_some() || minutes > 59 || seconds >= 60 * ONE {
        return None;
    }
    let all = hours.checked_mul(3_600 * ONE)? + minutes * 60 * ONE + seconds;
    Some(if negative { -all } else { all })
}

/// Reads the text of an interval: `90`, with the unit that was said behind it or seconds; `1 year 2 months -3 days 04:05:06.7`; `1 month ago`.
pub(crate) fn parse_interval(text: &str, unit: Option<&str>) -> SqlResult<Interval> {
    let default = match unit {
        Some(unit) => Field::named(unit).ok_or_else(|| SqlError::unsupported(format!("INTERVAL {}", super::read::shown(unit))))?,
        None => Field::Second,
    };
    let spaced = with_blanks_before_units(text);
    let mut words = spaced.split_whitespace().peekable();
    let mut sum = Interval::default();
    let mut count = 0;
    let mut ago = false;
    while let Some(word) = words.next() {
        if count > 0 && words.peek().is_none() && word.eq_ignore_ascii_case("ago") {
            ago = true;
            break;
        }
        count += 1;
        let part = if word.contains(':') {
            let micros = clock(word).ok_or_else(|| invalid(text))?;
            i64::try_from(micros).ok().map(|micros| Interval { months: 0, days: 0, micros })
        } else {
            let amount = amount(word).ok_or_else(|| invalid(text))?;
            let unit = match words.peek() {
                Some(next) if !next.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) && *next != "ago" => {
                    let unit = Field::named(next).ok_or_else(|| invalid(text))?;
                    words.next();
                    unit
                }
                _ => default,
            };
            Interval::of(amount, unit)
        };
        sum = part.and_then(|part| sum.plus(part)).ok_or_else(|| out_of_range(text))?;
    }
    if count == 0 {
        return Err(invalid(text));
    }
    if ago { sum.negated().ok_or_else(|| out_of_range(text)) } else { Ok(sum) }
}

/// `90d` becomes `90 d`.
fn with_blanks_before_units(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len() + 8);
    let mut digit = false;
    for c in text.chars() {
        if digit && c.is_ascii_alphabetic() {
            spaced.push(' ');
        }
        digit = c.is_ascii_digit();
        spaced.push(c);
    }
    spaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_text() {
        let interval = |months, days, micros| Interval { months, days, micros };
        for (text, unit, expected) in [
            ("90", Some("day"), interval(0, 90, 0)),
            ("3", Some("MONTH"), interval(3, 0, 0)),
            ("1", Some("year"), interval(12, 0, 0)),
            ("1 year", None, interval(12, 0, 0)),
            ("-1 year 2 mons", None, interval(-10, 0, 0)),
            ("1 day 02:03:04.5", None, interval(0, 1, 7_384_500_000)),
            ("-00:00:01", None, interval(0, 0, -1_000_000)),
            ("1.5 days", None, interval(0, 1, 43_200_000_000)),
            ("1.5 months", None, interval(1, 15, 0)),
            ("0.5 year", None, interval(6, 0, 0)),
            ("2 weeks", None, interval(0, 14, 0)),
            ("10", None, interval(0, 0, 10_000_000)),
            ("1 month ago", None, interval(-1, 0, 0)),
            ("3d", None, interval(0, 3, 0)),
            ("1 quarter", None, interval(3, 0, 0)),
            ("1.25 seconds", None, interval(0, 0, 1_250_000)),
        ] {
            assert_eq!(parse_interval(text, unit).unwrap(), expected, "{text}");
        }
        for (text, state) in [
            ("", "22007"),
            ("x", "22007"),
            ("1 fortnight", "22007"),
            ("1:2:3:4", "22007"),
            ("1:60", "22007"),
            ("ago", "22007"),
            ("99999999999999999999 years", "22008"),
            ("1 day dow", "22007"),
        ] {
            assert_eq!(parse_interval(text, None).unwrap_err().sqlstate(), state, "{text}");
        }
        assert_eq!(parse_interval("1", Some("dow")).unwrap_err().sqlstate(), "22008");
    }
}

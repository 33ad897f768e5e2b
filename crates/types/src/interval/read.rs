//! Text to intervals, as PostgreSQL reads them: `1 year 2 mons -3 days 04:05:06.7`, `1-2`, `1 02:03:04`, `@ 3 days ago`, `P1Y2M3DT4H`.
//!
//! Words are looked at from the last to the first: so a number knows its unit. What is no whole number of a unit goes on as smaller ones: of years
//! the nearest number of months, of months and weeks days and time, of days time.

use super::words::{Word, next};
use super::{DAY, Interval, iso};

/// Words of a text: more are none of an interval.
const WORDS_MAX: usize = 25;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// Why a text is no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntervalError {
    /// It is none.
    #[error("not an interval")]
    Syntax,
    /// A number in it is too large for its unit.
    #[error("a field of the interval is out of range")]
    Field,
    /// All together are too large.
    #[error("out of range")]
    Range,
}

/// A unit of intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum IntervalField {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
}

use IntervalField as Field;

impl IntervalField {
    /// The unit of this name, or of one of its short forms, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<IntervalField> {
        Some(match name.to_ascii_lowercase().as_str() {
            "microseconds" | "microsecond" | "us" | "usec" | "usecs" | "usecond" | "useconds" => Field::Microsecond,
            "milliseconds" | "millisecond" | "ms" | "msec" | "msecs" | "msecond" | "mseconds" => Field::Millisecond,
            "second" | "seconds" | "sec" | "secs" | "s" => Field::Second,
            "minute" | "minutes" | "min" | "mins" | "m" => Field::Minute,
            "hour" | "hours" | "hr" | "hrs" | "h" => Field::Hour,
            "day" | "days" | "d" => Field::Day,
            "week" | "weeks" | "w" => Field::Week,
            "month" | "months" | "mon" | "mons" => Field::Month,
            "quarter" | "quarters" | "qtr" => Field::Quarter,
            "year" | "years" | "yr" | "yrs" | "y" => Field::Year,
            "decade" | "decades" | "dec" | "decs" => Field::Decade,
            "century" | "centuries" | "cent" | "c" => Field::Century,
            "millennium" | "millennia" | "mil" | "mils" => Field::Millennium,
            _ => return None,
        })
    }

    /// Of [`Sum::seen`]. A fraction of a second is all that is less than one.
    fn bits(self, has_fraction: bool) -> u16 {
        match self {
            Field::Second if has_fraction => 0b111,
            field => 1 << field as u16,
        }
    }
}

/// What has been added up of a text.
#[derive(Debug, Default)]
pub(super) struct Sum {
    years: i32,
    months: i32,
    days: i32,
    micros: i64,
    /// Units that have been there.
    seen: u16,
}

/// A fraction of a unit as so many smaller ones, whole and the rest.
fn split(fraction: f64, smaller: f64) -> (i32, f64) {
    let all = fraction * smaller;
    (all.trunc() as i32, all.fract())
}

impl Sum {
    fn micros(&mut self, amount: i64, each: i64) -> Option<()> {
        self.micros = self.micros.checked_add(amount.checked_mul(each)?)?;
        Some(())
    }

    fn days(&mut self, amount: i64, each: i32) -> Option<()> {
        self.days = self.days.checked_add(i32::try_from(amount).ok()?.checked_mul(each)?)?;
        Some(())
    }

    fn months(&mut self, amount: i64, each: i32) -> Option<()> {
        self.months = self.months.checked_add(i32::try_from(amount).ok()?.checked_mul(each)?)?;
        Some(())
    }

    fn years(&mut self, amount: i64, each: i32) -> Option<()> {
        self.years = self.years.checked_add(i32::try_from(amount).ok()?.checked_mul(each)?)?;
        Some(())
    }

    /// A fraction of `each` microseconds, to the nearest one.
    fn fraction_of_micros(&mut self, fraction: f64, each: i64) -> Option<()> {
        let all = fraction * each as f64;
        let nearest = if all.fract().abs() > 0.5 { all.trunc() + all.signum() } else { all.trunc() };
        // A fraction of a day has room in an i64 by far.
        self.micros(nearest as i64, 1)
    }

    fn fraction_of_days(&mut self, fraction: f64, each: f64) -> Option<()> {
        let (days, rest) = split(fraction, each);
        self.days(days.into(), 1)?;
        self.fraction_of_micros(rest, DAY)
    }

    /// Adds so many of a unit, and a fraction of one that has the same sign.
    pub(super) fn add(&mut self, whole: i64, fraction: f64, unit: Field) -> Option<()> {
        let mut time = |each: i64| {
            self.micros(whole, each)?;
            self.fraction_of_micros(fraction, each)
        };
        match unit {
            Field::Microsecond => return time(1),
            Field::Millisecond => return time(1_000),
            Field::Second => return time(SECOND),
            Field::Minute => return time(MINUTE),
            Field::Hour => return time(HOUR),
            _ => {}
        }
        let years = match unit {
            Field::Decade => 10,
            Field::Century => 100,
            Field::Millennium => 1_000,
            _ => 1,
        };
        match unit {
            Field::Day => {
                self.days(whole, 1)?;
                self.fraction_of_micros(fraction, DAY)
            }
            Field::Week => {
                self.days(whole, 7)?;
                self.fraction_of_days(fraction, 7.0)
            }
            Field::Month => {
                self.months(whole, 1)?;
                self.fraction_of_days(fraction, 30.0)
            }
            Field::Quarter => {
                let (months, rest) = split(fraction, 3.0);
                self.months(whole, 3)?;
                self.months(months.into(), 1)?;
                self.fraction_of_days(rest, 30.0)
            }
            _ => {
                self.years(whole, years)?;
                self.months((fraction * f64::from(years) * 12.0).round_ties_even() as i64, 1)
            }
        }
    }

    /// Notes that a unit has been there; false: it had been before.
    fn note(&mut self, bits: u16) -> bool {
        let is_new = self.seen & bits == 0;
        self.seen |= bits;
        is_new
    }

    pub(super) fn interval(&self) -> Option<Interval> {
        let months = i64::from(self.years) * 12 + i64::from(self.months);
        Some(Interval { months: i32::try_from(months).ok()?, days: self.days, micros: self.micros })
    }
}

/// Digits with a sign, all of them; no digits are 0. `None` when they are too many.
fn whole(digits: &str, negative: bool) -> Option<i64> {
    digits.bytes().try_fold(0_i64, |value, digit| {
        let digit = i64::from(digit.wrapping_sub(b'0'));
        let value = value.checked_mul(10)?;
        if negative { value.checked_sub(digit) } else { value.checked_add(digit) }
    })
}

/// Digits behind a point.
fn fraction(digits: &str) -> Option<f64> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    format!("0.{digits}0").parse().ok()
}

/// `hours:minutes[:seconds]` in microseconds, which may be one more than a positive interval has; two numbers are minutes and seconds where that is asked for, or the second one has a fraction.
fn clock(text: &str, of_minutes: bool) -> Result<i128, IntervalError> {
    let mut parts = text.split(':');
    let digits = |part: Option<&str>| match part {
        Some(part) if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) => whole(part, false).ok_or(IntervalError::Field),
        _ => Err(IntervalError::Syntax),
    };
    let first = digits(parts.next())?;
    let (second, third) = (parts.next().ok_or(IntervalError::Syntax)?, parts.next());
    let with_fraction = |part: &str| {
        let (before, behind) = part.split_once('.').unwrap_or((part, ""));
        let micros = (fraction(behind).ok_or(IntervalError::Syntax)? * 1e6).round_ties_even() as i64;
        Ok((digits(Some(before))?, micros))
    };
    let (hours, minutes, (seconds, micros)) = match third {
        Some(third) => (first, digits(Some(second))?, with_fraction(third)?),
        None if of_minutes || second.contains('.') => (0, first, with_fraction(second)?),
        None => (first, digits(Some(second))?, (0, 0)),
    };
    if parts.next().is_some() {
        return Err(IntervalError::Syntax);
    }
    if minutes > 59 || seconds > 60 {
        return Err(IntervalError::Field);
    }
    Ok(i128::from(hours) * i128::from(HOUR) + i128::from(minutes * MINUTE + seconds * SECOND + micros))
}

/// What is known of a number from what stands behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Nothing does.
    Last,
    /// Its name stands there: a number has to come.
    Named(Field),
    /// What a number has that comes.
    Next(Field),
    /// `ago`: a unit has to come.
    Ago,
}

/// How a text is read: the units that it has, the last one of which is that of a number without one.
#[derive(Clone, Copy, Debug)]
struct Reader {
    first: Field,
    last: Field,
    unit: Unit,
}

impl Reader {
    fn number(&mut self, text: &str, negative: bool, sum: &mut Sum) -> Result<(), IntervalError> {
        let mut unit = match self.unit {
            Unit::Last => self.last,
            Unit::Named(unit) | Unit::Next(unit) => unit,
            Unit::Ago => return Err(IntervalError::Syntax),
        };
        let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
        let (digits, rest) = text.split_at_checked(end).ok_or(IntervalError::Syntax)?;
        let mut amount = whole(digits, negative).ok_or(IntervalError::Field)?;
        let mut part = 0.0;
        if let Some(months) = rest.strip_prefix('-') {
            // Years and months, as the SQL standard has them.
            if months.is_empty() || !months.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(IntervalError::Syntax);
            }
            let months = whole(months, negative).filter(|months| months.unsigned_abs() < 12).ok_or(IntervalError::Field)?;
            unit = Field::Month;
            amount = amount.checked_mul(12).and_then(|years| years.checked_add(months)).ok_or(IntervalError::Field)?;
        } else if let Some(behind) = rest.strip_prefix('.') {
            part = fraction(behind).ok_or(IntervalError::Syntax)?;
            part = if negative { -part } else { part };
        } else if !rest.is_empty() {
            return Err(IntervalError::Syntax);
        }
        sum.add(amount, part, unit).ok_or(IntervalError::Field)?;
        self.unit = Unit::Next(if unit == Field::Hour { Field::Day } else { unit });
        if sum.note(unit.bits(part != 0.0)) { Ok(()) } else { Err(IntervalError::Syntax) }
    }

    fn time(&mut self, text: &str, negative: bool, sum: &mut Sum) -> Result<(), IntervalError> {
        if let Unit::Named(_) = self.unit {
            return Err(IntervalError::Syntax);
        }
        let of_minutes = (self.first, self.last) == (Field::Minute, Field::Second);
        let micros = clock(text, of_minutes)?;
        let micros = i64::try_from(if negative { -micros } else { micros });
        micros.ok().and_then(|micros| sum.micros(micros, 1)).ok_or(IntervalError::Field)?;
        self.unit = Unit::Next(Field::Day);
        if sum.note(0b11111) { Ok(()) } else { Err(IntervalError::Syntax) }
    }

    fn read(mut self, words: &[Word<'_>]) -> Result<Interval, IntervalError> {
        let mut sum = Sum::default();
        let mut ago = false;
        for (at, word) in words.iter().enumerate().rev() {
            if let (Unit::Named(_), Word::Name(_)) = (self.unit, word) {
                return Err(IntervalError::Syntax);
            }
            match *word {
                Word::Name(name) if name.eq_ignore_ascii_case("ago") && at + 1 == words.len() => {
                    (ago, self.unit) = (true, Unit::Ago);
                }
                Word::Name(name) => self.unit = Unit::Named(Field::named(name).ok_or(IntervalError::Syntax)?),
                Word::Time(text) => self.time(text, false, &mut sum)?,
                Word::Signed { negative, rest } if rest.contains(':') => self.time(rest, negative, &mut sum)?,
                Word::Number(text) => self.number(text, false, &mut sum)?,
                Word::Signed { negative, rest } => self.number(rest, negative, &mut sum)?,
            }
        }
        if sum.seen == 0 || matches!(self.unit, Unit::Named(_)) {
            return Err(IntervalError::Syntax);
        }
        let interval = sum.interval().ok_or(IntervalError::Range)?;
        if ago { interval.checked_neg().ok_or(IntervalError::Field) } else { Ok(interval) }
    }
}

/// Reads an interval. `fields`: the first and the last unit that it has, as `INTERVAL '...' HOUR TO SECOND` says it; a number without a unit is of the last one, and what is less than that is cut off.
///
/// # Errors
/// [`IntervalError`]
pub fn parse_interval(text: &str, fields: Option<(IntervalField, IntervalField)>) -> Result<Interval, IntervalError> {
    let (first, last) = fields.unwrap_or((Field::Second, Field::Second));
    let mut words = Vec::new();
    let mut rest = text;
    let found = loop {
        match next(&mut rest) {
            Ok(None) => break Reader { first, last, unit: Unit::Last }.read(&words),
            Ok(Some(word)) if words.len() < WORDS_MAX => words.push(word),
            _ => break Err(IntervalError::Syntax),
        }
    };
    let found = match found {
        Err(IntervalError::Syntax) => iso::read(text),
        found => found,
    };
    Ok(found?.cut_to(fields))
}

impl Interval {
    /// Without what is less than the last of these units, or more than it where that is months or years: as a value of `INTERVAL first TO last`.
    #[must_use]
    pub fn cut_to(self, fields: Option<(IntervalField, IntervalField)>) -> Interval {
        let down = |each: i64| self.micros - self.micros % each;
        match fields {
            Some((_, Field::Year)) => Interval { months: self.months - self.months % 12, ..Interval::ZERO },
            Some((_, Field::Month)) => Interval { months: self.months, ..Interval::ZERO },
            Some((_, Field::Day)) => Interval { micros: 0, ..self },
            Some((_, Field::Hour)) => Interval { micros: down(HOUR), ..self },
            Some((_, Field::Minute)) => Interval { micros: down(MINUTE), ..self },
            _ => self,
        }
    }

    /// With so many digits of a second, the last one rounded; `None` when that has no room.
    #[must_use]
    pub fn rounded(self, digits: u8) -> Option<Interval> {
        let each = 10_i64.checked_pow(6_u32.saturating_sub(digits.into()))?;
        let half = each / 2 * self.micros.signum();
        let micros = self.micros.checked_add(half)?;
        Some(Interval { micros: micros - micros % each, ..self })
    }
}

#[cfg(test)]
mod tests;

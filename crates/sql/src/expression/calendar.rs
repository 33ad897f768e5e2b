//! Dates and times: read from text, fields of them, months added, cut to a unit.
//!
//! Text is ISO 8601 as PostgreSQL reads it: `1998-12-01`, `1998-2-3`, `19981201`, `1998-12-01 10:30[:00[.5]] [+02[:00]]`. Digits of a second beyond
//! those of the type are rounded. Time zones are offsets from UTC, and UTC is that of every session.

use crate::{SqlError, SqlResult};
use pagefold_types::text::{civil_from_days, days_from_civil};
use pagefold_types::{DataType, IntervalField, TimeUnit};

/// Why a text is no date or time.
enum Wrong {
    /// 22007
    Syntax,
    /// 22008
    Range,
}

pub(super) fn days_in_month(year: i64, month: u8) -> u8 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// The day, if there is one.
pub(super) fn day(year: i64, month: i64, day: i64) -> Option<i64> {
    let (month, day) = (u8::try_from(month).ok()?, u8::try_from(day).ok()?);
    let there_is = (1..=12).contains(&month) && day >= 1 && day <= days_in_month(year, month) && year.unsigned_abs() < 1 << 40;
    there_is.then(|| days_from_civil(year, month, day))
}

struct Text<'a>(&'a [u8]);

impl Text<'_> {
    /// A number of these many digits, at least and at most.
    fn number(&mut self, least: usize, most: usize) -> Result<i64, Wrong> {
        let count = self.0.iter().take(most).take_while(|b| b.is_ascii_digit()).count();
        if count < least {
            return Err(Wrong::Syntax);
        }
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        Ok(digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0')))
    }

    fn take(&mut self, wanted: &[u8]) -> bool {
        match self.0 {
            [first, rest @ ..] if wanted.contains(first) => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    fn blanks(&mut self) {
        while self.take(b" \t\n\r") {}
    }

    fn date(&mut self) -> Result<i64, Wrong> {
        let sign = if self.take(b"-") { -1 } else { 1 };
        let signed = sign < 0 || self.take(b"+");
        let digits = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        let (year, month, of_month) = if digits == 8 && !signed && self.0.get(8) != Some(&b'-') {
            (self.number(4, 4)?, self.number(2, 2)?, self.number(2, 2)?)
        } else {
            let year = self.number(3, 12)?;
            if !self.take(b"-/") {
                return Err(Wrong::Syntax);
            }
            let month = self.number(1, 2)?;
            if !self.take(b"-/") {
                return Err(Wrong::Syntax);
            }
            (year, month, self.number(1, 2)?)
        };
        day(sign * year, month, of_month).ok_or(Wrong::Range)
    }

    /// Units since midnight, up to 24:00 of them.
    fn time(&mut self, unit: TimeUnit) -> Result<i64, Wrong> {
        let hour = self.number(1, 2)?;
        if !self.take(b":") {
            return Err(Wrong::Syntax);
        }
        let minute = self.number(1, 2)?;
        let mut second = 0;
        let mut units = 0;
        if self.take(b":") {
            second = self.number(1, 2)?;
            if self.take(b".") {
                let count = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
                let (digits, rest) = self.0.split_at(count);
                self.0 = rest;
                let kept = usize::from(unit.digits());
                units = (0..kept).fold(0, |value, at| value * 10 + i64::from(digits.get(at).map_or(0, |d| d - b'0')));
                units += i64::from(digits.get(kept).is_some_and(|d| *d >= b'5'));
            }
        }
        let all = (hour * 3_600 + minute * 60 + second) * unit.per_second() + units;
        // 60 seconds are a minute, as leap seconds have them.
        if minute > 59 || second > 60 || all > unit.per_day() {
            return Err(Wrong::Range);
        }
        Ok(all)
    }

    /// Seconds east of UTC; `None` without a zone.
    fn zone(&mut self) -> Result<Option<i64>, Wrong> {
        self.blanks();
        if self.take(b"Zz") {
            return Ok(Some(0));
        }
        if self.0.len() == 3 && self.0.eq_ignore_ascii_case(b"UTC") {
            self.0 = &[];
            return Ok(Some(0));
        }
        let sign = match self.0.first() {
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return Ok(None),
        };
        self.0 = &self.0[1..];
        let hours = self.number(1, 2)?;
        self.take(b":");
        let minutes = if self.0.first().is_some_and(u8::is_ascii_digit) { self.number(2, 2)? } else { 0 };
        if hours > 15 || minutes > 59 {
            return Err(Wrong::Range);
        }
        Ok(Some(sign * (hours * 3_600 + minutes * 60)))
    }

    fn end(&mut self) -> Result<(), Wrong> {
        self.blanks();
        if self.0.is_empty() { Ok(()) } else { Err(Wrong::Syntax) }
    }
}

fn read_kind(text: &str, data_type: &DataType) -> Result<i64, Wrong> {
    let mut text = Text(text.as_bytes());
    text.blanks();
    if let DataType::Time { unit } = *data_type {
        let time = text.time(unit)?;
        text.zone()?;
        text.end()?;
        return Ok(time);
    }
    let days = text.date()?;
    let unit = if let DataType::Timestamp { unit, .. } = *data_type { unit } else { TimeUnit::Nano };
    let before = text.0.len();
    text.take(b"Tt");
    text.blanks();
    let time = if text.0.len() < before && text.0.first().is_some_and(u8::is_ascii_digit) { text.time(unit)? } else { 0 };
    let zone = text.zone()?;
    text.end()?;
    let DataType::Timestamp { unit, with_zone } = *data_type else { return Ok(days) };
    let east = if with_zone { zone.unwrap_or(0) } else { 0 };
    let units = i128::from(days) * i128::from(unit.per_day()) + i128::from(time) - i128::from(east) * i128::from(unit.per_second());
    i64::try_from(units).map_err(|_| Wrong::Range)
}

/// Reads a DATE, TIME or TIMESTAMP.
pub(super) fn read(text: &str, data_type: &DataType) -> SqlResult<i64> {
    let shown = || super::read::shown(text);
    let value = read_kind(text, data_type).map_err(|wrong| match wrong {
        Wrong::Syntax => {
            let name =
                if let DataType::Timestamp { with_zone: false, .. } = data_type { "timestamp" } else { super::types::name(data_type) };
            let name = name.split(" without").next().unwrap_or(name);
            SqlError::new("22007", format!("invalid input syntax for type {name}: \"{}\"", shown()))
        }
        Wrong::Range => SqlError::new("22008", format!("date/time field value out of range: \"{}\"", shown())),
    })?;
    match data_type.int_range() {
        Some((least, most)) if !(least..=most).contains(&value) => {
            Err(SqlError::new("22008", format!("date/time field value out of range: \"{}\"", shown())))
        }
        _ => Ok(value),
    }
}

pub(super) fn out_of_range(data_type: &DataType) -> SqlError {
    let name = match data_type {
        DataType::Date => "date",
        DataType::Time { .. } => "time",
        _ => "timestamp",
    };
    SqlError::new("22008", format!("{name} out of range"))
}

/// The same day some months later, or the last of that month.
pub(super) fn add_months(days: i64, months: i64) -> Option<i64> {
    let (year, month, of_month) = civil_from_days(days);
    let all = year.checked_mul(12)?.checked_add(i64::from(month) - 1)?.checked_add(months)?;
    let (year, month) = (all.div_euclid(12), all.rem_euclid(12) + 1);
    let last = days_in_month(year, u8::try_from(month).ok()?);
    day(year, month, i64::from(of_month.min(last)))
}

/// From one unit of time to another; digits that are lost are rounded half up.
pub(super) fn rescale(value: i64, from: TimeUnit, to: TimeUnit) -> Option<i64> {
    let (per_from, per_to) = (from.per_second(), to.per_second());
    if per_to >= per_from {
        return value.checked_mul(per_to / per_from);
    }
    let factor = per_from / per_to;
    let (whole, rest) = (value.div_euclid(factor), value.rem_euclid(factor));
    Some(whole + i64::from(rest >= factor - rest))
}

/// What can be asked of a date or time, and what it can be cut to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Microseconds,
    Milliseconds,
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
    IsoYear,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    Epoch,
    Julian,
}

impl Field {
    pub(super) fn named(name: &str) -> Option<Field> {
        let name = name.trim();
        if let Some(unit) = IntervalField::named(name) {
            return Some(Field::of(unit));
        }
        Some(match name.to_ascii_lowercase().as_str() {
            "isoyear" => Field::IsoYear,
            "dow" => Field::DayOfWeek,
            "isodow" => Field::IsoDayOfWeek,
            "doy" => Field::DayOfYear,
            "epoch" => Field::Epoch,
            "julian" => Field::Julian,
            _ => return None,
        })
    }

    /// Units of intervals are fields of times, too.
    fn of(unit: IntervalField) -> Field {
        match unit {
            IntervalField::Microsecond => Field::Microseconds,
            IntervalField::Millisecond => Field::Milliseconds,
            IntervalField::Second => Field::Second,
            IntervalField::Minute => Field::Minute,
            IntervalField::Hour => Field::Hour,
            IntervalField::Day => Field::Day,
            IntervalField::Week => Field::Week,
            IntervalField::Month => Field::Month,
            IntervalField::Quarter => Field::Quarter,
            IntervalField::Year => Field::Year,
            IntervalField::Decade => Field::Decade,
            IntervalField::Century => Field::Century,
            IntervalField::Millennium => Field::Millennium,
        }
    }

    pub(super) fn unknown(name: &str, data_type: &DataType) -> SqlError {
        SqlError::new("22023", format!("unit \"{}\" not recognized for type {}", super::read::shown(name), super::types::name(data_type)))
    }
}

/// ISO weekday: 1 is Monday.
fn iso_weekday(days: i64) -> i64 {
    (days + 3).rem_euclid(7) + 1
}

/// ISO year and week.
fn iso_week(days: i64) -> (i64, i64) {
    let thursday = days - iso_weekday(days) + 4;
    let (year, _, _) = civil_from_days(thursday);
    (year, (thursday - days_from_civil(year, 1, 1)) / 7 + 1)
}

/// A field of a date as a whole number; `None` for those of a time.
pub(super) fn of_date(field: Field, days: i64) -> Option<i64> {
    let (year, month, of_month) = civil_from_days(days);
    let hundreds = |size: i64| if year > 0 { (year + size - 1) / size } else { -((size - 1 - (year - 1)) / size) };
    Some(match field {
        Field::Day => of_month.into(),
        Field::Week => iso_week(days).1,
        Field::Month => month.into(),
        Field::Quarter => i64::from((month - 1) / 3 + 1),
        // There was no year 0: what the calendar calls 0 is 1 before Christ.
        Field::Year if year <= 0 => year - 1,
        Field::Year => year,
        Field::Decade => year.div_euclid(10),
        Field::Century => hundreds(100),
        Field::Millennium => hundreds(1_000),
        Field::IsoYear => match iso_week(days).0 {
            year if year <= 0 => year - 1,
            year => year,
        },
        Field::DayOfWeek => iso_weekday(days) % 7,
        Field::IsoDayOfWeek => iso_weekday(days),
        Field::DayOfYear => days - days_from_civil(year, 1, 1) + 1,
        Field::Epoch => days * 86_400,
        Field::Julian => days + 2_440_588,
        _ => return None,
    })
}

/// A field of a time of day, in microseconds for those that have fractions; `None` for those of a date.
pub(super) fn of_time(field: Field, micros: i64) -> Option<i64> {
    Some(match field {
        Field::Microseconds | Field::Milliseconds | Field::Second => micros % 60_000_000,
        Field::Minute => micros / 60_000_000 % 60,
        Field::Hour => micros / 3_600_000_000,
        _ => return None,
    })
}

/// The first moment of the unit that a moment is in, in microseconds; `None` for fields that are no unit.
pub(super) fn truncate(field: Field, micros: i64) -> Option<i64> {
    const DAY: i64 = 86_400_000_000;
    let down = |unit: i64| micros.checked_sub(micros.rem_euclid(unit));
    let days = micros.div_euclid(DAY);
    let (year, month, _) = civil_from_days(days);
    let first = |year: i64, month: u8| days_from_civil(year, month, 1);
    // Centuries begin with year 1, and with year 0 of those before Christ.
    let span = |size: i64| if year > 0 { (year - 1) / size * size + 1 } else { -((size - year) / size * size) + 1 };
    let days = match field {
        Field::Microseconds => return Some(micros),
        Field::Milliseconds => return down(1_000),
        Field::Second => return down(1_000_000),
        Field::Minute => return down(60_000_000),
        Field::Hour => return down(3_600_000_000),
        Field::Day => days,
        Field::Week => days - iso_weekday(days) + 1,
        Field::Month => first(year, month),
        Field::Quarter => first(year, (month - 1) / 3 * 3 + 1),
        Field::Year => first(year, 1),
        Field::Decade => first(year.div_euclid(10) * 10, 1),
        Field::Century => first(span(100), 1),
        Field::Millennium => first(span(1_000), 1),
        _ => return None,
    };
    days.checked_mul(DAY)
}

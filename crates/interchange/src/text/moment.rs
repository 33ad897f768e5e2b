//! Dates and times as people and programs write them, beyond the canonical form.
//!
//! | Written | Read as |
//! |---|---|
//! | `2024-01-31`, `2024/1/31`, `2024.01.31` | year, month, day |
//! | `31.01.2024` | day, month, year |
//! | `31/01/2024`, `31-1-2024`, `01/31/2024` | day, month, year or month, day, year: what all values allow |
//! | `31-Jan-2024` | day, month, year |
//! | behind a date a blank or `T`, `23:59`, `23:59:59`, `23:59:59.123` | a timestamp |
//! | `11:59 PM` | twelve hours |
//! | behind a time `Z`, ` UTC`, `+02`, `+0200`, `+02:00` | with time zone |
//!
//! Years have four digits. Nothing is read in two ways: of days and months that could change places nobody chooses here.

use pagefold_types::{TimeUnit, text::days_from_civil};

/// In which order a date has its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateOrder {
    /// Year, month, day
    YearMonthDay,
    /// Day, month, year
    DayMonthYear,
    /// Month, day, year
    MonthDayYear,
}

impl DateOrder {
    pub(crate) const ALL: [DateOrder; 3] = [DateOrder::YearMonthDay, DateOrder::DayMonthYear, DateOrder::MonthDayYear];

    /// As it is printed: `year-month-day`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DateOrder::YearMonthDay => "year-month-day",
            DateOrder::DayMonthYear => "day-month-year",
            DateOrder::MonthDayYear => "month-day-year",
        }
    }
}

/// The day number of a date by each order; `None` where it is none.
pub(crate) type Days = [Option<i32>; 3];

/// A time of day: seconds, nanoseconds, and how many digits behind the point were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: i64,
    pub(crate) digits: u8,
}

impl Clock {
    /// In a unit; `None` when digits would be lost.
    pub(crate) fn units(self, unit: TimeUnit) -> Option<i64> {
        let per_second = unit.per_second();
        let nanoseconds_each = 1_000_000_000 / per_second;
        (self.nanoseconds % nanoseconds_each == 0).then(|| self.seconds * per_second + self.nanoseconds / nanoseconds_each)
    }
}

/// A date with or without time of day and offset from UTC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) days: Days,
    /// Midnight where only a date is written
    pub(crate) clock: Option<Clock>,
    /// Seconds east of UTC
    pub(crate) east: Option<i64>,
}

fn digits(text: &str, least: usize, most: usize) -> Option<i64> {
    ((least..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

fn month_by_name(text: &str) -> Option<i64> {
    const NAMES: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    NAMES.iter().position(|name| text.eq_ignore_ascii_case(name)).map(|i| i as i64 + 1)
}

fn day_number(year: i64, month: i64, day: i64) -> Option<i32> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    ((1..=last).contains(&day)).then(|| i32::try_from(days_from_civil(year, month as u8, day as u8)).ok())?
}

/// A date by each order.
pub(crate) fn days(text: &str) -> Days {
    let none = [None; 3];
    let Some(separator) = text.chars().find(|c| matches!(c, '-' | '/' | '.')) else { return none };
    let mut parts = text.split(separator);
    let (Some(a), Some(b), Some(c), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else { return none };
    if let Some(year) = digits(a, 4, 4) {
        let number = digits(b, 1, 2).zip(digits(c, 1, 2)).and_then(|(month, day)| day_number(year, month, day));
        return [number, None, None];
    }
    let Some(year) = digits(c, 4, 4) else { return none };
    let Some(first) = digits(a, 1, 2) else { return none };
    if let Some(month) = month_by_name(b) {
        return [None, day_number(year, month, first), None];
    }
    let Some(second) = digits(b, 1, 2) else { return none };
    let month_first = if separator == '.' { None } else { day_number(year, first, second) };
    [None, day_number(year, second, first), month_first]
}

/// A time of day, all of the text.
pub(crate) fn clock(text: &str) -> Option<Clock> {
    let upper = text.len().checked_sub(2).and_then(|at| text.get(at..)).map(str::to_ascii_uppercase);
    let (text, afternoon) = match upper.as_deref() {
        Some("AM") => (text[..text.len() - 2].trim_end(), Some(false)),
        Some("PM") => (text[..text.len() - 2].trim_end(), Some(true)),
        _ => (text, None),
    };
    let mut parts = text.split(':');
    let (hour, minute, rest) = (parts.next()?, parts.next()?, parts.next());
    if parts.next().is_some() {
        return None;
    }
    let (second, fraction) = match rest {
        None => ("00", ""),
        Some(rest) => match rest.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (rest, ""),
        },
    };
    let (mut hour, minute, second) = (digits(hour, 1, 2)?, digits(minute, 2, 2)?, digits(second, 2, 2)?);
    match afternoon {
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(afternoon) => hour = hour % 12 + if afternoon { 12 } else { 0 },
        None => {}
    }
    if minute > 59 || second > 59 || hour > 23 {
        return None;
    }
    let nanoseconds = if fraction.is_empty() { 0 } else { digits(fraction, 1, 9)? * 10i64.pow(9 - fraction.len() as u32) };
    Some(Clock { seconds: hour * 3_600 + minute * 60 + second, nanoseconds, digits: fraction.len() as u8 })
}

/// Seconds east of UTC: `Z`, ` UTC`, `+02`, `-0530`, `+02:00`.
fn zone(text: &str) -> Option<i64> {
    let text = text.trim_start();
    if text.eq_ignore_ascii_case("z") || text == "UTC" {
        return Some(0);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = match text[1..].split_once(':') {
        Some(parts) => parts,
        None if text.len() == 5 => (text.get(1..3)?, text.get(3..)?),
        None => (&text[1..], "00"),
    };
    let (hours, minutes) = (digits(hours, 2, 2)?, digits(minutes, 2, 2)?);
    (hours <= 15 && minutes <= 59).then_some(sign * (hours * 3_600 + minutes * 60))
}

/// A date, or a date and a time.
pub(crate) fn moment(text: &str) -> Option<Moment> {
    let behind = text.find([' ', 'T', 't']).unwrap_or(text.len());
    let days = days(&text[..behind]);
    if days == [None; 3] {
        return None;
    }
    let Some(rest) = text.get(behind + 1..).filter(|rest| !rest.is_empty()) else {
        return (behind == text.len()).then_some(Moment { days, clock: None, east: None });
    };
    if let Some(clock) = clock(rest) {
        return Some(Moment { days, clock: Some(clock), east: None });
    }
    // A zone begins behind the digits of the time.
    let at = rest.find(|c: char| !matches!(c, '0'..='9' | ':' | '.'))?;
    Some(Moment { days, clock: Some(clock(&rest[..at])?), east: Some(zone(&rest[at..])?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_in_each_order() {
        let day = |y, m, d| Some(days_from_civil(y, m, d) as i32);
        assert_eq!(days("2024-01-31"), [day(2024, 1, 31), None, None]);
        assert_eq!(days("2024/1/31"), days("2024.01.31"));
        assert_eq!(days("31.1.2024"), [None, day(2024, 1, 31), None]);
        assert_eq!(days("31/01/2024"), [None, day(2024, 1, 31), None]);
        assert_eq!(days("01/31/2024"), [None, None, day(2024, 1, 31)]);
        assert_eq!(days("1-2-2024"), [None, day(2024, 2, 1), day(2024, 1, 2)]);
        assert_eq!(days("31-Jan-2024"), [None, day(2024, 1, 31), None]);
        for no in [
            "",
            "2024",
            "2024-13-01",
            "2024-02-30",
            "1.2.24",
            "12.13.2024",
            "2024-01",
            "2024-01-01-01",
            "1-2-20245",
            "a-b-2024",
            "-1-1-1",
            "2024-1/1",
        ] {
            assert_eq!(days(no), [None; 3], "{no}");
        }
    }

    #[test]
    fn moments() {
        let read = |text| moment(text).map(|m| (m.clock.map(|c| (c.seconds, c.nanoseconds, c.digits)), m.east));
        assert_eq!(read("2024-01-31"), Some((None, None)));
        assert_eq!(read("2024-01-31T01:02:03Z"), Some((Some((3723, 0, 0)), Some(0))));
        assert_eq!(read("2024-01-31 01:02:03.25+02:00"), Some((Some((3723, 250_000_000, 2)), Some(7200))));
        assert_eq!(read("31.01.2024 1:02"), Some((Some((3720, 0, 0)), None)));
        assert_eq!(read("1/31/2024 12:05:00 AM"), Some((Some((300, 0, 0)), None)));
        assert_eq!(read("1/31/2024 12:05 pm"), Some((Some((43_500, 0, 0)), None)));
        assert_eq!(read("2024-01-31 01:02:03-0530"), Some((Some((3723, 0, 0)), Some(-19_800))));
        assert_eq!(read("2024-01-31 01:02:03 UTC"), Some((Some((3723, 0, 0)), Some(0))));
        for no in [
            "2024-01-31 ",
            "2024-01-31T",
            "2024-01-31 x",
            "2024-01-31 25:00",
            "2024-01-31 01:02:03+",
            "2024-01-31 13:00 PM",
            "12:00",
            "2024-01-31 01:02:03 CET",
            "ä-ö-ü",
        ] {
            assert_eq!(read(no), None, "{no}");
        }
    }
}

//! Dates and times as text, in the proleptic Gregorian calendar.
//!
//! Day numbers follow Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".

use super::number::write_u128;
use crate::TimeUnit;

const SHAPE: &str = "not a date or time";

/// Days since 1970-01-01 of a date. The caller has checked month and day.
#[must_use]
pub fn days_from_civil(year: i64, month: u8, day: u8) -> i64 {
    let (month, day) = (i64::from(month), i64::from(day));
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month and day of a day number. Days beyond 2^60 are none that an `i64` of seconds reaches.
#[must_use]
pub fn civil_from_days(days: i64) -> (i64, u8, u8) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let year_of_era = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let day_of_year = doe - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month as u8, day as u8)
}

fn days_in_month(year: i64, month: u8) -> u8 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

fn two(value: u8, out: &mut Vec<u8>) {
    out.extend([b'0' + value / 10 % 10, b'0' + value % 10]);
}

/// Appends a date by its day number.
pub(super) fn write_date(days: i64, out: &mut Vec<u8>) {
    let (year, month, day) = civil_from_days(days);
    if !(0..=9_999).contains(&year) {
        out.push(if year < 0 { b'-' } else { b'+' });
    }
    write_u128(u128::from(year.unsigned_abs()), 4, out);
    out.push(b'-');
    two(month, out);
    out.push(b'-');
    two(day, out);
}

/// Appends a time of day, `units` since midnight; of other values what they would be as an interval.
pub(super) fn write_time(units: i64, unit: TimeUnit, out: &mut Vec<u8>) {
    if units < 0 {
        out.push(b'-');
    }
    let units = units.unsigned_abs();
    let per_second = unit.per_second().unsigned_abs();
    let seconds = units / per_second;
    write_u128(u128::from(seconds / 3_600), 2, out);
    out.push(b':');
    two((seconds / 60 % 60) as u8, out);
    out.push(b':');
    two((seconds % 60) as u8, out);
    if unit.digits() > 0 {
        out.push(b'.');
        write_u128(u128::from(units % per_second), usize::from(unit.digits()), out);
    }
}

/// Appends a timestamp.
pub(super) fn write_timestamp(units: i64, unit: TimeUnit, with_zone: bool, out: &mut Vec<u8>) {
    write_date(units.div_euclid(unit.per_day()), out);
    out.push(b' ');
    write_time(units.rem_euclid(unit.per_day()), unit, out);
    if with_zone {
        out.extend_from_slice(b"+00");
    }
}

/// Takes `count` digits.
fn digits(text: &mut &[u8], count: usize) -> Result<i64, &'static str> {
    let (head, tail) = text.split_at_checked(count).ok_or(SHAPE)?;
    let mut value = 0i64;
    for byte in head {
        if !byte.is_ascii_digit() {
            return Err(SHAPE);
        }
        value = value * 10 + i64::from(byte - b'0');
    }
    *text = tail;
    Ok(value)
}

fn expect(text: &mut &[u8], wanted: u8) -> Result<(), &'static str> {
    match text {
        [first, rest @ ..] if *first == wanted => {
            *text = rest;
            Ok(())
        }
        _ => Err(SHAPE),
    }
}

/// Takes a date; returns the day number.
fn take_date(text: &mut &[u8]) -> Result<i64, &'static str> {
    let sign = text.first().copied().filter(|b| matches!(b, b'+' | b'-'));
    if sign.is_some() {
        *text = &text[1..];
    }
    let year_digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    // An i64 of seconds reaches years of 12 digits.
    if !(4..=12).contains(&year_digits) || (sign.is_none() && year_digits != 4) {
        return Err(SHAPE);
    }
    let mut year = digits(text, year_digits)?;
    if sign == Some(b'-') {
        year = -year;
    }
    expect(text, b'-')?;
    let month = digits(text, 2)? as u8;
    expect(text, b'-')?;
    let day = digits(text, 2)? as u8;
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return Err("no such day");
    }
    Ok(days_from_civil(year, month, day))
}

/// Takes a time of day; returns units since midnight.
fn take_time(text: &mut &[u8], unit: TimeUnit) -> Result<i64, &'static str> {
    let hour = digits(text, 2)?;
    expect(text, b':')?;
    let minute = digits(text, 2)?;
    let second = if text.first() == Some(&b':') {
        *text = &text[1..];
        digits(text, 2)?
    } else {
        0
    };
    let mut fraction = 0i64;
    if text.first() == Some(&b'.') {
        *text = &text[1..];
        let count = text.iter().take_while(|b| b.is_ascii_digit()).count();
        let kept = count.min(usize::from(unit.digits()));
        if count == 0 {
            return Err(SHAPE);
        }
        fraction = digits(text, kept)? * 10i64.pow(u32::from(unit.digits()) - kept as u32);
        if text[..count - kept].iter().any(|b| *b != b'0') {
            return Err("more digits of a second than the type has");
        }
        *text = &text[count - kept..];
    }
    let units = (hour * 3_600 + minute * 60 + second) * unit.per_second() + fraction;
    if minute > 59 || second > 59 || units > unit.per_day() {
        return Err("no such time of day");
    }
    Ok(units)
}

/// Takes the rest as an offset from UTC; returns seconds east.
fn take_zone(text: &mut &[u8]) -> Result<i64, &'static str> {
    let sign = match text {
        [] => return Ok(0),
        [b'Z' | b'z'] => {
            *text = &[];
            return Ok(0);
        }
        [b'+', ..] => 1,
        [b'-', ..] => -1,
        _ => return Err(SHAPE),
    };
    *text = &text[1..];
    let hours = digits(text, 2)?;
    if text.first() == Some(&b':') {
        *text = &text[1..];
    }
    let minutes = if text.is_empty() { 0 } else { digits(text, 2)? };
    if hours > 15 || minutes > 59 {
        return Err("no such time zone");
    }
    Ok(sign * (hours * 3_600 + minutes * 60))
}

fn all<T>(text: &[u8], value: T) -> Result<T, &'static str> {
    if text.is_empty() { Ok(value) } else { Err(SHAPE) }
}

/// Reads a date as day number.
pub(super) fn parse_date(text: &str) -> Result<i64, &'static str> {
    let mut rest = text.as_bytes();
    let days = take_date(&mut rest)?;
    all(rest, days)
}

/// Reads a time of day.
pub(super) fn parse_time(text: &str, unit: TimeUnit) -> Result<i64, &'static str> {
    let mut rest = text.as_bytes();
    let units = take_time(&mut rest, unit)?;
    all(rest, units)
}

/// Reads a timestamp; a zone only when the type has one.
pub(super) fn parse_timestamp(text: &str, unit: TimeUnit, with_zone: bool) -> Result<i64, &'static str> {
    let mut rest = text.as_bytes();
    let days = take_date(&mut rest)?;
    let time = match rest {
        [] => 0,
        [b' ' | b'T' | b't', tail @ ..] => {
            rest = tail;
            take_time(&mut rest, unit)?
        }
        _ => return Err(SHAPE),
    };
    let east = if with_zone { take_zone(&mut rest)? } else { 0 };
    let units = i128::from(days) * i128::from(unit.per_day()) + i128::from(time) - i128::from(east * unit.per_second());
    all(rest, i64::try_from(units).map_err(|_| "out of range")?)
}

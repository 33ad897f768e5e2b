//! Intervals: read with PostgreSQL's errors, and what is done with them.
//!
//! Invariant: months, days and microseconds are added apart, and what has no room in them is 22008, never a wrapped number. Where PostgreSQL computes in
//! double precision (products, quotients), so is done here, step by step as it does, so that the last digit is the same.

use super::calendar::{self, Field};
use super::read::shown;
use crate::{SqlError, SqlResult};
use pagefold_types::text::civil_from_days;
use pagefold_types::{Interval, IntervalError, IntervalField, TimeUnit};

pub(super) const DAY: i64 = 86_400_000_000;
const DAY_SECONDS: f64 = 86_400.0;
const SECOND: i64 = 1_000_000;

pub(super) fn out_of_range() -> SqlError {
    SqlError::new("22008", "interval out of range")
}

/// The first and the last unit of an interval, as they are written behind it.
pub(crate) type Fields = Option<(IntervalField, IntervalField)>;

/// Reads the text of an interval; a number without a unit is of the last of these, or seconds.
pub(crate) fn read(text: &str, fields: Fields) -> SqlResult<Interval> {
    pagefold_types::parse_interval(text, fields).map_err(|error| match error {
        IntervalError::Syntax => SqlError::new("22007", format!("invalid input syntax for type interval: \"{}\"", shown(text))),
        IntervalError::Field => SqlError::new("22015", format!("interval field value out of range: \"{}\"", shown(text))),
        IntervalError::Range => out_of_range(),
    })
}

/// As `INTERVAL first TO last (digits)` has it.
pub(super) fn limited(of: Interval, fields: Fields, digits: Option<u8>) -> SqlResult<Interval> {
    let cut = of.cut_to(fields);
    digits.map_or(Ok(cut), |digits| cut.rounded(digits).ok_or_else(out_of_range))
}

/// A double that is an integer of 32 bits when its fraction is cut off.
fn whole(value: f64) -> Option<i32> {
    (-2_147_483_648.0..2_147_483_648.0).contains(&value).then_some(value as i32)
}

/// As PostgreSQL rounds what is left of months and days: to a millionth.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round_ties_even() / 1e6
}

/// What `by` makes of each part, fractions going on as smaller units: of months as days of 30, of days as time.
fn scaled(of: Interval, by: impl Fn(f64) -> f64) -> Option<Interval> {
    let (in_months, in_days) = (by(of.months.into()), by(of.days.into()));
    let (months, mut days) = (whole(in_months)?, whole(in_days)?);
    let rest_days = rounded((in_months - f64::from(months)) * 30.0);
    let mut seconds = rounded((in_days - f64::from(days) + rest_days - rest_days.trunc()) * DAY_SECONDS);
    // Rounded, it may be a day.
    if seconds.abs() >= DAY_SECONDS {
        let more = whole(seconds / DAY_SECONDS)?;
        days = days.checked_add(more)?;
        seconds -= f64::from(more) * DAY_SECONDS;
    }
    days = days.checked_add(whole(rest_days)?)?;
    let micros = (by(of.micros as f64) + seconds * 1e6).round_ties_even();
    // 2^63 itself is no i64; every double below it is.
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&micros);
    fits.then_some(Interval { months, days, micros: micros as i64 })
}

pub(super) fn multiplied(of: Interval, factor: f64) -> SqlResult<Interval> {
    scaled(of, |part| part * factor).ok_or_else(out_of_range)
}

pub(super) fn divided(of: Interval, divisor: f64) -> SqlResult<Interval> {
    if divisor == 0.0 {
        return Err(super::decimal::division_by_zero());
    }
    scaled(of, |part| part / divisor).ok_or_else(out_of_range)
}

/// Time as days, as far as it goes; both have one sign then.
pub(super) fn justified_hours(of: Interval) -> SqlResult<Interval> {
    let Interval { months, days, micros } = of;
    let days = i128::from(days) + i128::from(micros / DAY);
    same_sign(months, days, micros % DAY)
}

/// Of days and less than a day of time, with one sign.
fn same_sign(months: i32, days: i128, micros: i64) -> SqlResult<Interval> {
    let (days, micros) = match (days.signum(), micros.signum()) {
        (1, -1) => (days - 1, micros + DAY),
        (-1, 1) => (days + 1, micros - DAY),
        _ => (days, micros),
    };
    Ok(Interval { months, days: i32::try_from(days).map_err(|_| out_of_range())?, micros })
}

/// Days as months of 30, as far as it goes; both have one sign then.
pub(super) fn justified_days(of: Interval) -> SqlResult<Interval> {
    let (months, days) = (i64::from(of.months) + i64::from(of.days / 30), of.days % 30);
    let (months, days) = match (months.signum(), days.signum()) {
        (1, -1) => (months - 1, days + 30),
        (-1, 1) => (months + 1, days - 30),
        _ => (months, days),
    };
    Ok(Interval { months: i32::try_from(months).map_err(|_| out_of_range())?, days, micros: of.micros })
}

/// Both; all have one sign then.
pub(super) fn justified(of: Interval) -> SqlResult<Interval> {
    let days = i64::from(of.days) + of.micros / DAY;
    let mut micros = of.micros % DAY;
    let (mut months, mut days) = (i64::from(of.months) + days / 30, days % 30);
    if months > 0 && (days < 0 || (days == 0 && micros < 0)) {
        (months, days) = (months - 1, days + 30);
    } else if months < 0 && (days > 0 || (days == 0 && micros > 0)) {
        (months, days) = (months + 1, days - 30);
    }
    if days > 0 && micros < 0 {
        (days, micros) = (days - 1, micros + DAY);
    } else if days < 0 && micros > 0 {
        (days, micros) = (days + 1, micros - DAY);
    }
    let small = |part: i64| i32::try_from(part).map_err(|_| out_of_range());
    Ok(Interval { months: small(months)?, days: small(days)?, micros })
}

/// The time between two moments of a unit, in days and less than a day.
pub(super) fn between(later: i64, earlier: i64, unit: TimeUnit) -> SqlResult<Interval> {
    let micros = micros_of(i128::from(later) - i128::from(earlier), unit);
    let (days, micros) = (micros / i128::from(DAY), micros % i128::from(DAY));
    same_sign(0, days, micros as i64)
}

/// Units of time as microseconds; those that are less are rounded.
pub(super) fn micros_of(units: i128, unit: TimeUnit) -> i128 {
    match unit.per_second() {
        1_000_000_000 => (units + 500 * units.signum()) / 1_000,
        // No more than an i64 of them.
        per_second => units * i128::from(SECOND / per_second),
    }
}

/// A moment, in microseconds, as years, months and days, and the time of its day.
fn parts(micros: i64) -> (i64, i64, i64, i64) {
    let (year, month, day) = civil_from_days(micros.div_euclid(DAY));
    (year, month.into(), day.into(), micros.rem_euclid(DAY))
}

/// From the second moment to the first in years, months, days and time, as one counts age. Both in microseconds.
pub(super) fn age(later: i64, earlier: i64) -> SqlResult<Interval> {
    let is_back = later < earlier;
    // In either direction the days of a month that is not full are those of the month of the earlier moment.
    let (first, last) = if is_back { (later, earlier) } else { (earlier, later) };
    let ((year, month, day, time), (last_year, last_month, last_day, last_time)) = (parts(first), parts(last));
    let mut months = (last_year - year) * 12 + last_month - month;
    let (mut days, mut micros) = (last_day - day, last_time - time);
    if micros < 0 {
        (days, micros) = (days - 1, micros + DAY);
    }
    if days < 0 {
        let in_month = calendar::days_in_month(year, u8::try_from(month).unwrap_or(1));
        (months, days) = (months - 1, days + i64::from(in_month));
    }
    let small = |part: i64| i32::try_from(part).map_err(|_| out_of_range());
    let age = Interval { months: small(months)?, days: small(days)?, micros };
    if is_back { age.checked_neg().ok_or_else(out_of_range) } else { Ok(age) }
}

/// A field of an interval, in millionths for those of less than a minute and for all its seconds (`epoch`); `None` for those that it has not.
pub(super) fn field(field: Field, of: Interval) -> Option<i128> {
    let (years, months) = (i64::from(of.months / 12), i64::from(of.months % 12));
    Some(i128::from(match field {
        Field::Microseconds | Field::Milliseconds | Field::Second => of.micros % (60 * SECOND),
        Field::Minute => of.micros / (60 * SECOND) % 60,
        Field::Hour => of.micros / (3_600 * SECOND),
        Field::Day => of.days.into(),
        Field::Month => months,
        Field::Quarter => months / 3 + 1,
        Field::Year => years,
        Field::Decade => years / 10,
        Field::Century => years / 100,
        Field::Millennium => years / 1_000,
        Field::Epoch => {
            // A year has 365.25 days, a month that is left 30.
            let quarter_days = i128::from(years) * 1_461 + (i128::from(months) * 30 + i128::from(of.days)) * 4;
            return Some(quarter_days * i128::from(DAY / 4) + i128::from(of.micros));
        }
        _ => return None,
    }))
}

/// Without what is less than the unit; `None` for units that have no whole number of the next larger one, and for what is none.
pub(super) fn truncated(field: Field, of: Interval) -> Option<Interval> {
    let months = |each: i32| Some(Interval { months: of.months - of.months % each, ..Interval::ZERO });
    let time = |each: i64| Some(Interval { micros: of.micros - of.micros % each, ..of });
    match field {
        Field::Microseconds => Some(of),
        Field::Milliseconds => time(1_000),
        Field::Second => time(SECOND),
        Field::Minute => time(60 * SECOND),
        Field::Hour => time(3_600 * SECOND),
        Field::Day => Some(Interval { micros: 0, ..of }),
        Field::Month => months(1),
        Field::Quarter => months(3),
        Field::Year => months(12),
        Field::Decade => months(120),
        Field::Century => months(1_200),
        Field::Millennium => months(12_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(months: i32, days: i32, micros: i64) -> Interval {
        Interval { months, days, micros }
    }

    #[test]
    fn products_go_on_in_smaller_units() {
        assert_eq!(multiplied(of(1, 0, 0), 1.5).unwrap(), of(1, 15, 0));
        assert_eq!(multiplied(of(0, 1, 0), 0.1).unwrap(), of(0, 0, 8_640_000_000));
        assert_eq!(divided(of(1, 0, 0), 30.0).unwrap(), of(0, 1, 0));
        assert_eq!(divided(of(12, 0, 0), 5.0).unwrap(), of(2, 12, 0));
        assert_eq!(multiplied(of(-1, -1, -1), -1.0).unwrap(), of(1, 1, 1));
        for factor in [f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(multiplied(of(1, 1, 1), factor).unwrap_err().sqlstate(), "22008");
        }
        assert_eq!(divided(of(1, 0, 0), 0.0).unwrap_err().sqlstate(), "22012");
        assert_eq!(multiplied(of(i32::MIN, i32::MIN, i64::MIN), -1.0).unwrap_err().sqlstate(), "22008");
    }

    #[test]
    fn signs_are_made_one() {
        assert_eq!(justified_hours(of(0, 1, -3_600 * SECOND)).unwrap(), of(0, 0, 23 * 3_600 * SECOND));
        assert_eq!(justified_days(of(1, -35, 0)).unwrap(), of(0, -5, 0));
        assert_eq!(justified(of(1, -1, 3_600 * SECOND)).unwrap(), of(0, 29, 3_600 * SECOND));
        assert_eq!(justified_days(of(i32::MAX, 30, 0)).unwrap_err().sqlstate(), "22008");
        assert_eq!(justified_hours(of(0, i32::MAX, DAY)).unwrap_err().sqlstate(), "22008");
        for months in [i32::MIN, -1, 0, 1, i32::MAX] {
            for days in [i32::MIN, -31, -1, 0, 1, 31, i32::MAX] {
                for micros in [i64::MIN, -DAY, -1, 0, 1, DAY, i64::MAX] {
                    let interval = of(months, days, micros);
                    for made in [justified_hours, justified_days, justified].map(|justify| justify(interval)).into_iter().flatten() {
                        assert_eq!(made.span(), interval.span());
                    }
                    let _ = (multiplied(interval, -1.5), divided(interval, 0.3), field(Field::Epoch, interval));
                    let _ = truncated(Field::Millennium, interval);
                }
            }
        }
    }

    #[test]
    fn extremes_of_moments() {
        for unit in [TimeUnit::Second, TimeUnit::Milli, TimeUnit::Micro, TimeUnit::Nano] {
            let all = between(i64::MAX, i64::MIN, unit);
            assert_eq!(all.is_err(), matches!(unit, TimeUnit::Second | TimeUnit::Milli), "{unit:?}");
            let _ = between(i64::MIN, i64::MAX, unit);
        }
        let _ = (age(i64::MAX, i64::MIN), age(i64::MIN, i64::MAX));
    }
}

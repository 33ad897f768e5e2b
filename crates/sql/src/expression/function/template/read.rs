//! Texts that a template says how to read: `to_date`, `to_timestamp`.
//!
//! Invariant: numbers are bounded before anything is computed of them, and what a text does not say is that of 1 January of the year before the first, at midnight, as in PostgreSQL.

use super::{Args, DAY, DAYS, Datum, Field, Function, MONTHS, NAMES, Piece, ROMAN, pieces, strip, text_of};
use crate::expression::calendar::{self, Field as Part};
use crate::expression::read::shown;
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, TimeUnit};

/// What is read of a text.
#[derive(Debug, Default)]
struct Read {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    week_of_month: Option<i64>,
    week_of_year: Option<i64>,
    julian: Option<i64>,
    century: Option<i64>,
    /// The last two digits of the year.
    of_century: Option<i64>,
    iso: [Option<i64>; 3],
    hour: i64,
    hour_is_said: bool,
    minute: i64,
    second: i64,
    second_of_day: i64,
    micros: i64,
    is_late: Option<bool>,
    twelve: bool,
    is_before: bool,
    /// Seconds east of UTC.
    zone: i64,
}

fn invalid(text: &str, name: &str) -> SqlError {
    let found: String = text.chars().take(10).collect();
    SqlError::new("22007", format!("invalid value \"{}\" for \"{name}\"", shown(&found)))
}

fn out_of_range(text: &str) -> SqlError {
    SqlError::new("22008", format!("date/time field value out of range: \"{}\"", shown(text)))
}

fn name_of(field: Field) -> &'static str {
    NAMES.iter().find(|(_, other)| *other == field).map_or("", |(name, _)| *name)
}

/// A number of at most so many digits, and what is behind it.
fn number(text: &str, digits: usize, field: Field) -> SqlResult<(i64, &str)> {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) if matches!(field, Field::Year(4) | Field::ZoneHours) => (-1, unsigned),
        _ => (1, text.strip_prefix('+').filter(|_| field == Field::ZoneHours).unwrap_or(text)),
    };
    let count = unsigned.bytes().take(digits).take_while(u8::is_ascii_digit).count();
    let (found, rest) = unsigned.split_at(count);
    let number = found.parse::<i64>().map_err(|_| invalid(text, name_of(field)))?;
    Ok((sign * number, rest))
}

/// Which of these a text begins with, in whatever case; the longest.
fn word<'t>(text: &'t str, words: &[&str], short: bool, field: Field) -> SqlResult<(i64, &'t str)> {
    let found = (0..).zip(words).find_map(|(at, word)| {
        let word = if short { word.get(..3).unwrap_or(word) } else { word };
        strip(text, word).map(|rest| (at, rest))
    });
    found.ok_or_else(|| invalid(text, name_of(field)))
}

impl Read {
    fn of(text: &str, template: &str) -> SqlResult<Read> {
        let (mut read, mut rest) = (Read::default(), text);
        let pieces = pieces(template);
        for (at, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Text(separators) => {
                    for separator in separators.chars() {
                        // Each stands for one that is there, or none.
                        let is_same = |c: char| c == separator || !c.is_alphanumeric() && !separator.is_alphanumeric();
                        rest = rest.strip_prefix(is_same).unwrap_or(rest);
                    }
                }
                Piece::Field { field, ordinal, .. } => {
                    rest = rest.trim_start();
                    // A text may end before its template.
                    if rest.is_empty() {
                        break;
                    }
                    // Digits that follow each other are as many as the field has.
                    let is_followed = matches!(pieces.get(at + 1), Some(Piece::Field { field, .. }) if is_numeric(*field));
                    rest = read.field(*field, rest, is_followed)?;
                    if ordinal.is_some() {
                        rest = rest.get(2..).unwrap_or_default();
                    }
                }
            }
        }
        Ok(read)
    }

    fn field<'t>(&mut self, field: Field, text: &'t str, is_followed: bool) -> SqlResult<&'t str> {
        let digits = |width: usize| if is_followed { width } else { 18 };
        let (value, rest) = match field {
            Field::MonthName { short } => word(text, &MONTHS, short, field)?,
            Field::DayName { short } => word(text, &DAYS, short, field)?,
            Field::MonthRoman => {
                // The longest of those that begin alike.
                let found =
                    (0..).zip(ROMAN).filter_map(|(at, roman)| strip(text, roman).map(|rest| (at, rest))).min_by_key(|(_, rest)| rest.len());
                found.ok_or_else(|| invalid(text, "RM"))?
            }
            Field::Meridiem { dots } => word(text, if dots { &["A.M.", "P.M."] } else { &["AM", "PM"] }, false, field)?,
            Field::Era { dots } => word(text, if dots { &["A.D.", "B.C."] } else { &["AD", "BC"] }, false, field)?,
            Field::Zone | Field::ZoneOffset => {
                let zone = strip(text, "UTC").or_else(|| strip(text, "Z")).map(|rest| (0, rest));
                zone.map_or_else(|| number(text, 2, Field::ZoneHours), Ok)?
            }
            Field::YearWithComma => {
                let (thousands, rest) = number(text, 6, Field::Year(4))?;
                let rest = rest.strip_prefix(',').ok_or_else(|| invalid(text, "Y,YYY"))?;
                let (units, rest) = number(rest, 3, field)?;
                (thousands * 1000 + units, rest)
            }
            Field::Year(4) | Field::Julian | Field::IsoYear(4) => number(text, digits(if field == Field::Julian { 7 } else { 4 }), field)?,
            Field::Fraction(wanted) => {
                let count = text.bytes().take(if is_followed { wanted.into() } else { 18 }).take_while(u8::is_ascii_digit).count();
                let (value, rest) = number(text, count, field)?;
                // As many digits as there are: .5 is half a second.
                let scale = u32::try_from(6 - i64::try_from(count).unwrap_or(7)).map_err(|_| out_of_range(text))?;
                (value * 10_i64.pow(scale), rest)
            }
            Field::DayOfYear | Field::IsoDayOfYear => number(text, digits(3), field)?,
            Field::SecondOfDay => number(text, digits(5), field)?,
            Field::Year(width) | Field::IsoYear(width) => number(text, if is_followed { width.into() } else { 4 }, field)?,
            Field::DayOfWeek | Field::IsoDayOfWeek | Field::WeekOfMonth | Field::Quarter => number(text, digits(1), field)?,
            _ => number(text, digits(2), field)?,
        };
        let most = match field {
            Field::Zone | Field::ZoneOffset | Field::ZoneHours => 15,
            Field::ZoneMinutes => 59,
            Field::Century => 1 << 32,
            _ => i64::MAX,
        };
        if value.abs() > most {
            return Err(invalid(text, name_of(field)));
        }
        match field {
            Field::Hour12 => (self.hour, self.hour_is_said, self.twelve) = (value, true, true),
            Field::Hour24 => (self.hour, self.hour_is_said) = (value, true),
            Field::Minute => self.minute = value,
            Field::Second => self.second = value,
            Field::Fraction(_) => self.micros = value,
            Field::SecondOfDay => self.second_of_day = value,
            Field::Meridiem { .. } => self.is_late = Some(value == 1),
            Field::Year(width) => {
                let nearest = if width < 4 { nearest(value, text.len() - rest.len()) } else { value };
                (self.year, self.of_century) = (Some(nearest), (width <= 2).then_some(value % 100));
            }
            Field::YearWithComma => self.year = Some(value),
            Field::Era { .. } => self.is_before = value == 1,
            Field::Month => self.month = Some(value),
            Field::MonthName { .. } | Field::MonthRoman => self.month = Some(value + 1),
            Field::DayOfMonth => self.day = Some(value),
            Field::DayOfYear => self.day_of_year = Some(value),
            Field::Julian => self.julian = Some(value),
            Field::Century => self.century = Some(value),
            Field::IsoYear(width) => self.iso[0] = Some(if width < 4 { nearest(value, text.len() - rest.len()) } else { value }),
            Field::IsoWeek => self.iso[1] = Some(value),
            Field::IsoDayOfWeek => self.iso[2] = Some(value),
            Field::IsoDayOfYear => (self.iso[1], self.iso[2]) = (Some((value - 1).div_euclid(7) + 1), Some((value - 1).rem_euclid(7) + 1)),
            Field::Zone | Field::ZoneOffset | Field::ZoneHours => self.zone = value * 3_600,
            Field::ZoneMinutes => self.zone += if self.zone < 0 { -value * 60 } else { value * 60 },
            Field::WeekOfMonth => self.week_of_month = Some(value),
            Field::WeekOfYear => self.week_of_year = Some(value),
            // They say nothing that counts.
            Field::DayName { .. } | Field::DayOfWeek | Field::Quarter => {}
        }
        Ok(rest)
    }

    fn days(&self, text: &str) -> SqlResult<i64> {
        let wrong = || out_of_range(text);
        if let Some(julian) = self.julian {
            return Ok(julian - 2_440_588);
        }
        if let [Some(year), week, day] = self.iso {
            // The first week has the fourth of January.
            let fourth = calendar::day(year, 1, 4).ok_or_else(wrong)?;
            let monday = fourth - (calendar::of_date(Part::IsoDayOfWeek, fourth).unwrap_or(1) - 1);
            let (week, day) = (week.unwrap_or(1), day.unwrap_or(1));
            let fits = (1..=53).contains(&week) && (1..=7).contains(&day);
            return if fits { Ok(monday + (week - 1) * 7 + day - 1) } else { Err(wrong()) };
        }
        let year = match (self.century, self.of_century, self.year) {
            // Its last year ends with 00.
            (Some(century), Some(0), _) => century * 100,
            (Some(century), Some(of), _) => (century - 1) * 100 + of,
            (Some(century), None, None) => (century - 1) * 100 + 1,
            (_, _, Some(year)) => year,
            (None, _, None) => 0,
        };
        // Before Christ there is no year 0, but one here.
        let year = match year {
            year if self.is_before && year > 0 => 1 - year,
            year if year < 0 => year + 1,
            year => year,
        };
        let first = calendar::day(year, 1, 1).ok_or_else(wrong)?;
        let of_year = self.day_of_year.or(self.week_of_year.map(|week| (week - 1) * 7 + 1)).filter(|_| self.month.is_none());
        if let Some(of_year) = of_year {
            let next = calendar::day(year + 1, 1, 1).ok_or_else(wrong)?;
            return if (1..=next - first).contains(&of_year) { Ok(first + of_year - 1) } else { Err(wrong()) };
        }
        let of_month = self.day.or(self.week_of_month.map(|week| (week - 1) * 7 + 1));
        calendar::day(year, self.month.unwrap_or(1), of_month.unwrap_or(1)).ok_or_else(wrong)
    }

    /// Microseconds since midnight UTC, which may be more than a day.
    fn time(&self, text: &str) -> SqlResult<i64> {
        let hour = match (self.is_late, self.hour) {
            (_, hour) if (self.twelve || self.is_late.is_some()) && !(1..=12).contains(&hour) && self.hour_is_said => {
                return Err(SqlError::new("22007", format!("hour \"{hour}\" is invalid for the 12-hour clock"))
                    .with_hint("Use the 24-hour clock, or give an hour between 1 and 12."));
            }
            (Some(true), hour) if hour < 12 => hour + 12,
            (Some(false), 12) => 0,
            (None, 12) if self.twelve => 0,
            (_, hour) => hour,
        };
        if !(0..24).contains(&hour)
            || !(0..60).contains(&self.minute)
            || !(0..60).contains(&self.second)
            || !(0..86_400).contains(&self.second_of_day)
        {
            return Err(out_of_range(text));
        }
        Ok((hour * 3_600 + self.minute * 60 + self.second + self.second_of_day - self.zone) * 1_000_000 + self.micros)
    }
}

fn is_numeric(field: Field) -> bool {
    use Field::{DayName, Era, Meridiem, MonthName, MonthRoman, Zone, ZoneHours, ZoneOffset};
    !matches!(field, DayName { .. } | Era { .. } | Meridiem { .. } | MonthName { .. } | MonthRoman | Zone | ZoneHours | ZoneOffset)
}

/// The year nearest to 2020 that ends so, of a year of few digits.
fn nearest(year: i64, digits: usize) -> i64 {
    match (digits, year) {
        (1 | 2, 0..70) => year + 2000,
        (1 | 2, 70..100) => year + 1900,
        (3, 100..520) => year + 2000,
        (3, 520..1000) => year + 1000,
        (3, 0..100) => year + 2000,
        _ => year,
    }
}

/// to_date(text, template)
pub(in super::super) fn date_of<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let text = text_of(arguments, 0);
    let days = Read::of(text, text_of(arguments, 1))?.days(text)?;
    if i32::try_from(days).is_err() { Err(calendar::out_of_range(&DataType::Date)) } else { Ok(Datum::from_int(days)) }
}

/// to_timestamp(text, template)
pub(in super::super) fn timestamp_of<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let text = text_of(arguments, 0);
    let read = Read::of(text, text_of(arguments, 1))?;
    let (days, time) = (read.days(text)?, read.time(text)?);
    let micros = days.checked_mul(DAY).and_then(|midnight| midnight.checked_add(time));
    micros.map(Datum::from_int).ok_or_else(|| calendar::out_of_range(&DataType::Timestamp { unit: TimeUnit::Micro, with_zone: true }))
}

//! Dates, times and intervals as a template has them: `to_char`.

use super::super::internal::check_length;
use super::{
    Apply, Args, Body, Case, DAY, DAYS, Datum, Field, Function, MONTHS, Piece, ROMAN, hidden, immutable, int, interval_of, pieces, text_of,
};
use crate::expression::calendar::{self, Field as Part};
use crate::expression::{ParamTypes, Typed, make, types};
use crate::{SqlError, SqlResult};
use pagefold_types::text::civil_from_days;
use pagefold_types::{DataType, TimeUnit};

/// A moment, or a span of time, taken apart.
struct Moment {
    /// Of spans the number of years, months and days.
    year: i64,
    month: i64,
    day: i64,
    /// Days since 1970; of spans `None`.
    days: Option<i64>,
    /// Since midnight; of spans all of it.
    micros: i64,
    /// What time it is where: of the type with a time zone.
    has_zone: bool,
}

impl Moment {
    fn of(micros: i64, has_zone: bool) -> Moment {
        let (days, micros) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
        let (year, month, day) = civil_from_days(days);
        Moment { year, month: month.into(), day: day.into(), days: Some(days), micros, has_zone }
    }

    fn part(&self, part: Part) -> Option<i64> {
        calendar::of_date(part, self.days?)
    }

    /// The number that a field is, and how wide.
    fn number(&self, field: Field) -> Option<(i64, usize)> {
        let (seconds, hours) = (self.micros / 1_000_000, self.micros / 3_600_000_000);
        let era = |year: i64| if self.days.is_some() && year <= 0 { 1 - year } else { year };
        let last = |year: i64, digits: u8| if digits == 4 { era(year) } else { era(year) % 10_i64.pow(digits.into()) };
        Some(match field {
            Field::Hour12 if hours % 12 == 0 => (12, 2),
            Field::Hour12 => (hours % 12, 2),
            Field::Hour24 => (hours, 2),
            Field::Minute => (seconds / 60 % 60, 2),
            Field::Second => (seconds % 60, 2),
            Field::Fraction(digits) => (self.micros % 1_000_000 / 10_i64.pow(6 - u32::from(digits)), digits.into()),
            Field::SecondOfDay => (seconds, 1),
            Field::Year(digits) => (last(self.year, digits), digits.into()),
            Field::IsoYear(digits) => (last(self.part(Part::IsoYear)?.abs(), digits), digits.into()),
            Field::Month => (self.month, 2),
            Field::DayOfMonth => (self.day, 2),
            Field::DayOfYear => (self.part(Part::DayOfYear)?, 3),
            Field::IsoDayOfYear => ((self.part(Part::Week)? - 1) * 7 + self.part(Part::IsoDayOfWeek)?, 3),
            Field::DayOfWeek => (self.part(Part::DayOfWeek)? + 1, 1),
            Field::IsoDayOfWeek => (self.part(Part::IsoDayOfWeek)?, 1),
            Field::WeekOfMonth => ((self.day - 1) / 7 + 1, 1),
            Field::WeekOfYear => ((self.part(Part::DayOfYear)? - 1) / 7 + 1, 2),
            Field::IsoWeek => (self.part(Part::Week)?, 2),
            Field::Century if self.days.is_none() => (self.year / 100, 2),
            Field::Century => (self.part(Part::Century)?, 2),
            Field::Julian => (self.part(Part::Julian)?, 1),
            Field::Quarter => ((self.month - 1) / 3 + 1, 1),
            _ => return None,
        })
    }

    /// The word that a field is, and how wide words of its kind are.
    fn word(&self, field: Field, case: Case) -> Option<(String, usize)> {
        let named = |names: &[&'static str], at: i64| usize::try_from(at).ok().and_then(|at| names.get(at)).copied();
        let (word, width) = match field {
            Field::MonthName { short: true } => (named(&MONTHS, self.month - 1)?.get(..3)?, 3),
            Field::MonthName { short: false } => (named(&MONTHS, self.month - 1)?, 9),
            Field::DayName { short: true } => (named(&DAYS, self.part(Part::DayOfWeek)?)?.get(..3)?, 3),
            Field::DayName { short: false } => (named(&DAYS, self.part(Part::DayOfWeek)?)?, 9),
            Field::MonthRoman => (named(&ROMAN, self.month - 1)?, 4),
            Field::Meridiem { dots } => {
                let is_late = self.micros / 3_600_000_000 % 24 >= 12;
                (if is_late { ["PM", "P.M."] } else { ["AM", "A.M."] }[usize::from(dots)], 0)
            }
            Field::Era { dots } => (if self.year <= 0 { ["BC", "B.C."] } else { ["AD", "A.D."] }[usize::from(dots)], 0),
            Field::Zone if self.days.is_some() => (if self.has_zone { "UTC" } else { "" }, 0),
            Field::ZoneOffset | Field::ZoneHours if self.days.is_some() => ("+00", 0),
            Field::ZoneMinutes if self.days.is_some() => ("00", 0),
            _ => return None,
        };
        let written = match case {
            Case::Upper => word.to_uppercase(),
            Case::Lower => word.to_lowercase(),
            Case::Title => {
                word.chars().take(1).flat_map(char::to_uppercase).chain(word.chars().skip(1).flat_map(char::to_lowercase)).collect()
            }
        };
        Some((written, width))
    }

    fn put(&self, template: &str) -> SqlResult<String> {
        let mut out = String::new();
        for piece in pieces(template) {
            match piece {
                Piece::Text(text) => out.push_str(&text),
                Piece::Field { field: Field::YearWithComma, .. } => {
                    let year = self.number(Field::Year(4)).map_or(0, |(year, _)| year);
                    out.push_str(&format!("{},{:03}", year / 1000, year % 1000));
                }
                Piece::Field { field, case, fill, ordinal } => {
                    if let Some((number, width)) = self.number(field) {
                        let width = if fill { width + usize::from(number < 0) } else { 0 };
                        out.push_str(&format!("{number:0width$}"));
                        let ending = ordinal_ending(number.into());
                        match ordinal {
                            Some(true) => out.push_str(&ending.to_uppercase()),
                            Some(false) => out.push_str(ending),
                            None => {}
                        }
                    } else if let Some((word, width)) = self.word(field, case) {
                        let width = if fill { width } else { 0 };
                        out.push_str(&format!("{word:width$}"));
                    } else {
                        return Err(SqlError::new("22007", "invalid format specification for an interval value")
                            .with_hint("Intervals are not tied to specific calendar dates."));
                    }
                }
            }
            check_length(out.len())?;
        }
        Ok(out)
    }
}

/// `st`, `nd`, `rd` or `th`.
pub(in super::super) fn ordinal_ending(number: i128) -> &'static str {
    match (number.unsigned_abs() % 100, number.unsigned_abs() % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

/// to_char(moment, template), of a DATE, TIMESTAMP or INTERVAL
pub(in super::super) fn to_char(of: Typed, template: Typed, params: &ParamTypes) -> SqlResult<Typed> {
    let with_zone = matches!(of.data_type, Some(DataType::Timestamp { with_zone: true, .. }));
    let template = make::coerce(template, &types::TEXT, params)?;
    let (of, body): (Typed, Body) = match of.data_type {
        Some(DataType::Interval) => (of, of_interval),
        _ => (make::cast(of, DataType::Timestamp { unit: TimeUnit::Micro, with_zone }, params)?, of_moment),
    };
    Ok(immutable("to_char", Apply::Strict(body), vec![of.expr, template.expr, hidden(i64::from(with_zone))], types::TEXT))
}

/// An empty template gives NULL.
fn written<'a>(moment: &Moment, template: &str) -> SqlResult<Datum<'a>> {
    if template.is_empty() { Ok(Datum::NULL) } else { moment.put(template).map(Datum::from_text) }
}

fn of_moment<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    written(&Moment::of(int(arguments, 0), int(arguments, 2) != 0), text_of(arguments, 1))
}

fn of_interval<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let interval = interval_of(arguments, 0);
    let (months, days) = (i64::from(interval.months), i64::from(interval.days));
    let moment = Moment { year: months / 12, month: months % 12, day: days, days: None, micros: interval.micros, has_zone: false };
    written(&moment, text_of(arguments, 1))
}

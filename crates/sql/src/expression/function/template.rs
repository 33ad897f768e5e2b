//! Dates, times and intervals by a template: `to_char`, `to_date`, `to_timestamp` (PostgreSQL's patterns).
//!
//! A template is a list of fields, and of text that stands for itself. A field is the longest name that fits; names in capitals, small letters or one capital say how words are written.
//!
//! Invariant: what a text does not say is that of 1 January of the year before the first, at midnight, as in PostgreSQL; zones are UTC, as that of all sessions.

use super::internal::check_length;
use super::{Apply, Body, Function, hidden, immutable, int, interval_of, text_of};
use crate::expression::calendar::{self, Field as Part};
use crate::expression::datum::Datum;
use crate::expression::read::shown;
use crate::expression::{ParamTypes, Typed, make, types};
use crate::{SqlError, SqlResult};
use pagefold_types::text::civil_from_days;
use pagefold_types::{DataType, TimeUnit};

type Args<'x, 'a> = &'x mut [Datum<'a>];

const DAY: i64 = 86_400_000_000;
const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// How a word is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Upper,
    Lower,
    Title,
}

/// What a template names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Hour12,
    Hour24,
    Minute,
    Second,
    /// So many digits behind the point of a second.
    Fraction(u8),
    SecondOfDay,
    Meridiem {
        dots: bool,
    },
    /// So many of its last digits.
    Year(u8),
    YearWithComma,
    IsoYear(u8),
    Era {
        dots: bool,
    },
    Month,
    MonthName {
        short: bool,
    },
    MonthRoman,
    DayName {
        short: bool,
    },
    DayOfYear,
    IsoDayOfYear,
    DayOfMonth,
    DayOfWeek,
    IsoDayOfWeek,
    WeekOfMonth,
    WeekOfYear,
    IsoWeek,
    Century,
    Julian,
    Quarter,
    Zone,
    ZoneHours,
    ZoneMinutes,
    ZoneOffset,
}

/// Names of fields, the longest of those that begin alike first.
const NAMES: &[(&str, Field)] = &[
    ("SSSSS", Field::SecondOfDay),
    ("Y,YYY", Field::YearWithComma),
    ("MONTH", Field::MonthName { short: false }),
    ("A.D.", Field::Era { dots: true }),
    ("B.C.", Field::Era { dots: true }),
    ("A.M.", Field::Meridiem { dots: true }),
    ("P.M.", Field::Meridiem { dots: true }),
    ("HH12", Field::Hour12),
    ("HH24", Field::Hour24),
    ("SSSS", Field::SecondOfDay),
    ("YYYY", Field::Year(4)),
    ("IYYY", Field::IsoYear(4)),
    ("IDDD", Field::IsoDayOfYear),
    ("FF1", Field::Fraction(1)),
    ("FF2", Field::Fraction(2)),
    ("FF3", Field::Fraction(3)),
    ("FF4", Field::Fraction(4)),
    ("FF5", Field::Fraction(5)),
    ("FF6", Field::Fraction(6)),
    ("YYY", Field::Year(3)),
    ("IYY", Field::IsoYear(3)),
    ("MON", Field::MonthName { short: true }),
    ("DAY", Field::DayName { short: false }),
    ("DDD", Field::DayOfYear),
    ("TZH", Field::ZoneHours),
    ("TZM", Field::ZoneMinutes),
    ("HH", Field::Hour12),
    ("MI", Field::Minute),
    ("MM", Field::Month),
    ("MS", Field::Fraction(3)),
    ("US", Field::Fraction(6)),
    ("SS", Field::Second),
    ("AM", Field::Meridiem { dots: false }),
    ("PM", Field::Meridiem { dots: false }),
    ("AD", Field::Era { dots: false }),
    ("BC", Field::Era { dots: false }),
    ("YY", Field::Year(2)),
    ("IY", Field::IsoYear(2)),
    ("IW", Field::IsoWeek),
    ("ID", Field::IsoDayOfWeek),
    ("DY", Field::DayName { short: true }),
    ("DD", Field::DayOfMonth),
    ("WW", Field::WeekOfYear),
    ("CC", Field::Century),
    ("RM", Field::MonthRoman),
    ("TZ", Field::Zone),
    ("OF", Field::ZoneOffset),
    ("Y", Field::Year(1)),
    ("I", Field::IsoYear(1)),
    ("D", Field::DayOfWeek),
    ("W", Field::WeekOfMonth),
    ("J", Field::Julian),
    ("Q", Field::Quarter),
];

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// `fill`: with zeros or blanks up to its width; `ordinal`: with `th`, in capitals or not.
    Field {
        field: Field,
        case: Case,
        fill: bool,
        ordinal: Option<bool>,
    },
    Text(String),
}

fn strip<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let head = text.get(..name.len()).filter(|head| head.eq_ignore_ascii_case(name))?;
    Some(&text[head.len()..])
}

fn pieces(template: &str) -> Vec<Piece> {
    let (mut out, mut text, mut rest) = (Vec::new(), String::new(), template);
    while let Some(c) = rest.chars().next() {
        let (mut named, mut fill) = (rest, true);
        while let Some(behind) = strip(named, "FM").or_else(|| strip(named, "TM")).or_else(|| strip(named, "FX")) {
            fill &= !named[..2].eq_ignore_ascii_case("FM");
            named = behind;
        }
        let found = NAMES.iter().find_map(|(name, field)| strip(named, name).map(|behind| (*field, behind)));
        if let Some((field, behind)) = found {
            let name = &named[..named.len() - behind.len()];
            let mut letters = name.chars();
            let case = match (letters.next(), letters.next()) {
                (Some(first), _) if first.is_lowercase() => Case::Lower,
                (_, Some(second)) if second.is_lowercase() => Case::Title,
                _ => Case::Upper,
            };
            let ordinal = if behind.starts_with("TH") { Some(true) } else { behind.starts_with("th").then_some(false) };
            rest = if ordinal.is_some() { &behind[2..] } else { behind };
            if !text.is_empty() {
                out.push(Piece::Text(std::mem::take(&mut text)));
            }
            out.push(Piece::Field { field, case, fill, ordinal });
            continue;
        }
        if named.len() < rest.len() {
            rest = named;
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            // Quoted: for itself.
            '"' => {
                let mut characters = rest.char_indices();
                let mut end = rest.len();
                while let Some((at, c)) = characters.next() {
                    match c {
                        '"' => {
                            end = at + 1;
                            break;
                        }
                        '\\' => text.extend(characters.next().map(|(_, c)| c)),
                        c => text.push(c),
                    }
                }
                rest = &rest[end..];
            }
            '\\' if rest.starts_with('"') => {
                text.push('"');
                rest = &rest[1..];
            }
            c => text.push(c),
        }
    }
    if !text.is_empty() {
        out.push(Piece::Text(text));
    }
    out
}

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
pub(super) fn ordinal_ending(number: i128) -> &'static str {
    match (number.unsigned_abs() % 100, number.unsigned_abs() % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

/// to_char(moment, template), of a DATE, TIMESTAMP or INTERVAL
pub(super) fn to_char(of: Typed, template: Typed, params: &ParamTypes) -> SqlResult<Typed> {
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
pub(super) fn date_of<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let text = text_of(arguments, 0);
    let days = Read::of(text, text_of(arguments, 1))?.days(text)?;
    if i32::try_from(days).is_err() { Err(calendar::out_of_range(&DataType::Date)) } else { Ok(Datum::from_int(days)) }
}

/// to_timestamp(text, template)
pub(super) fn timestamp_of<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let text = text_of(arguments, 0);
    let read = Read::of(text, text_of(arguments, 1))?;
    let (days, time) = (read.days(text)?, read.time(text)?);
    let micros = days.checked_mul(DAY).and_then(|midnight| midnight.checked_add(time));
    micros.map(Datum::from_int).ok_or_else(|| calendar::out_of_range(&DataType::Timestamp { unit: TimeUnit::Micro, with_zone: true }))
}

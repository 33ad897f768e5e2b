//! Dates, times and intervals by a template: `to_char`, `to_date`, `to_timestamp` (PostgreSQL's patterns).
//!
//! `written` puts them, `read` reads them.
//!
//! A template is a list of fields, and of text that stands for itself. A field is the longest name that fits; names in capitals, small letters or one capital say how words are written.
//!
//! Invariant: zones are UTC, as that of all sessions.

mod read;
mod written;

pub(super) use read::{date_of, timestamp_of};
pub(super) use written::{ordinal_ending, to_char};

use super::{Apply, Body, Function, hidden, immutable, int, interval_of, text_of};
use crate::expression::datum::Datum;

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

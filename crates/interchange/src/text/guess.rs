//! The type of a column from all of its values.
//!
//! A type is possible as long as every value can be read by it without losing anything. Of the possible ones: BOOLEAN; INTEGER, BIGINT or DECIMAL(p,0) by range; DECIMAL(p,s) where all
//! values have s digits behind the point; DOUBLE where all are the shortest texts of such; DECIMAL(p,s) where they have at most s; DOUBLE where none has more than 15 digits; DATE,
//! TIMESTAMP, TIME, UUID; else VARCHAR. The precision of a DECIMAL is the largest that takes the same bytes.
//!
//! What looks like a number and is a name stays text: leading zeros, a plus sign. Nothing between quotes is NULL in a column that is no text.

use super::moment::{Clock, DateOrder, clock, moment};
use super::value::{ValueFormat, read_value, without_blanks};
use pagefold_types::{DECIMAL_PRECISION_MAX, DataType, TimeUnit, decimal_width, text};

/// What a value is where the file says more than its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It may be of any type.
    Any,
    /// Text: no number and no truth value, whatever it looks like.
    Text,
}

/// What all values so far have in common.
#[derive(Debug, Clone)]
pub(crate) struct Guess {
    /// A type to keep as long as all values are of it, and whether they are.
    hint: Option<(DataType, bool)>,
    /// The order of dates that was told.
    told: Option<DateOrder>,
    has_null: bool,
    /// Something of no characters between quotes
    has_empty: bool,
    has_value: bool,
    /// Every value so far would be written as it is in the file, if it is read as what it can be
    as_written: bool,
    boolean: bool,
    /// Digits of the longest integer; `None` when not all are integers
    integer: Option<u8>,
    /// All integers fit 32 bits, 64 bits
    fits: [bool; 2],
    /// The most digits before the point, and the one number behind it
    same_scale: Option<(u8, Option<u8>)>,
    /// The most digits before and behind the point
    any_scale: Option<(u8, u8)>,
    double: bool,
    /// Doubles of at most 15 digits, however written
    short_double: bool,
    date: bool,
    timestamp: bool,
    time: bool,
    /// In which orders all dates are some
    orders: [bool; 3],
    /// The most digits of a second, and whether there is a zone; `None` before the first time of day
    second_digits: u8,
    seen_digits: Option<u8>,
    zoned: Option<bool>,
    /// All days can be counted in nanoseconds
    near: bool,
    uuid: bool,
}

/// A number's text in parts: digits before and behind the point, without sign. `None` when it has an exponent or is not to be taken for a number.
fn plain_number(text: &str) -> Option<(&str, Option<&str>)> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (before, behind) = match digits.split_once('.') {
        Some((before, behind)) => (before, Some(behind)),
        None => (digits, None),
    };
    let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let some = !before.is_empty() || behind.is_some_and(|b| !b.is_empty());
    (some && all_digits(before) && behind.is_none_or(all_digits) && !(before.len() > 1 && before.starts_with('0')))
        .then_some((before, behind))
}

/// The widest precision in the same bytes.
fn widened(digits: u8) -> u8 {
    let digits = digits.clamp(1, DECIMAL_PRECISION_MAX);
    let width = decimal_width(digits);
    (digits..=DECIMAL_PRECISION_MAX).rev().find(|p| decimal_width(*p) == width).unwrap_or(digits)
}

fn length(s: &str) -> Option<u8> {
    u8::try_from(s.len()).ok().filter(|n| *n <= DECIMAL_PRECISION_MAX)
}

/// Days from 1970 that nanoseconds in 64 bits reach.
const NEAR_DAYS: i32 = 106_000;

impl Guess {
    /// `hint`: the type that the column has in a table that is there. `told`: the order of dates.
    pub(crate) fn new(hint: Option<DataType>, told: Option<DateOrder>) -> Guess {
        Guess {
            hint: hint.map(|t| (t, true)),
            told,
            has_null: false,
            has_empty: false,
            has_value: false,
            as_written: true,
            boolean: true,
            integer: Some(0),
            fits: [true; 2],
            same_scale: Some((0, None)),
            any_scale: Some((0, 0)),
            double: true,
            short_double: true,
            date: true,
            timestamp: true,
            time: true,
            orders: [true; 3],
            second_digits: 0,
            seen_digits: None,
            zoned: None,
            near: true,
            uuid: true,
        }
    }

    fn is_number(&self) -> bool {
        self.integer.is_some() || self.same_scale.is_some() || self.any_scale.is_some() || self.double || self.short_double
    }

    /// Can only text be left?
    pub(crate) fn is_text(&self) -> bool {
        !(self.boolean || self.is_number() || self.date || self.timestamp || self.time || self.uuid)
    }

    /// Takes a value, or NULL.
    pub(crate) fn add(&mut self, value: Option<&str>, kind: Kind, scratch: &mut Vec<u8>) {
        let Some(written) = value else {
            self.has_null = true;
            return;
        };
        let value = without_blanks(written);
        if let Some((hint, true)) = self.hint {
            let fits = match hint {
                DataType::Varchar(None) => true,
                DataType::Char(_) | DataType::Varchar(_) => text::parse(written, &hint).is_ok(),
                _ => read_value(written, &hint, ValueFormat { order: self.told.or(Some(DateOrder::DayMonthYear)) }).is_ok(),
            };
            self.hint = Some((hint, fits));
        }
        if value.is_empty() {
            self.has_empty = true;
            return;
        }
        self.has_value = true;
        if self.is_text() {
            return;
        }
        self.as_written &= value.len() == written.len();
        if kind == Kind::Text {
            (self.boolean, self.integer, self.same_scale, self.any_scale, self.short_double) = (false, None, None, None, false);
            self.double &= matches!(value, "NaN" | "Infinity" | "-Infinity");
        }
        if self.boolean {
            self.boolean = value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false");
            self.as_written &= !self.boolean || matches!(value, "true" | "false");
        }
        if self.is_number() {
            self.add_number(value, scratch);
        }
        if self.date || self.timestamp {
            self.add_moment(value, scratch);
        }
        if self.time {
            match clock(value) {
                Some(clock) => self.add_clock(clock, value.len() >= 8 && value.as_bytes()[2] == b':' && !value.contains(['M', 'm'])),
                None => self.time = false,
            }
        }
        if self.uuid {
            self.uuid = value.len() == 36 && text::parse(value, &DataType::Uuid).is_ok();
            self.as_written &= !self.uuid || !value.bytes().any(|b| b.is_ascii_uppercase());
        }
    }

    fn add_number(&mut self, value: &str, scratch: &mut Vec<u8>) {
        let Some((before, behind)) = plain_number(value) else {
            (self.integer, self.same_scale, self.any_scale) = (None, None, None);
            self.double = self.double && text::is_canonical(value, &DataType::Double, scratch);
            let digits = value.bytes().filter(u8::is_ascii_digit).count();
            let shaped = || !value.starts_with('+') && value.bytes().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E'));
            let leading_zero =
                || value.trim_start_matches('-').strip_prefix('0').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
            self.short_double = self.short_double
                && (self.double
                    || ((1..=15).contains(&digits) && shaped() && !leading_zero() && text::parse(value, &DataType::Double).is_ok()));
            return;
        };
        let negative_zero = value.starts_with('-') && value.bytes().all(|b| matches!(b, b'-' | b'0' | b'.'));
        let lengths = length(before).zip(length(behind.unwrap_or_default()));
        self.integer = match (self.integer, behind) {
            (Some(digits), None) if !negative_zero => length(before).map(|n| n.max(digits)),
            _ => None,
        };
        if self.integer.is_some() {
            let number = value.parse::<i64>().ok();
            self.fits[0] &= number.is_some_and(|n| i32::try_from(n).is_ok());
            self.fits[1] &= number.is_some();
        }
        let significant = if before == "0" { 0 } else { length(before).unwrap_or(u8::MAX) };
        let within = |before: u8, behind: u8| before.saturating_add(behind) <= DECIMAL_PRECISION_MAX;
        self.same_scale = match (self.same_scale, behind.filter(|b| !b.is_empty()).and_then(length)) {
            (Some((had, same)), Some(scale)) if same.is_none_or(|s| s == scale) && !before.is_empty() && !negative_zero => {
                let most = significant.max(had);
                within(most, scale).then_some((most, Some(scale)))
            }
            _ => None,
        };
        self.any_scale = match (self.any_scale, lengths) {
            (Some((had, scale)), Some((_, digits))) => {
                let (most, scale) = (significant.max(had), scale.max(digits));
                within(most, scale).then_some((most, scale))
            }
            _ => None,
        };
        // Up to 15 digits every decimal number is the shortest text of its DOUBLE, unless it ends in 0 behind the point or is so small that an exponent is written.
        let behind = behind.unwrap_or_default();
        let surely = !before.is_empty()
            && !value.ends_with('.')
            && before.len() + behind.len() <= 15
            && !behind.ends_with('0')
            && (before != "0" || !behind.starts_with("0000"));
        self.double = self.double && (surely || text::is_canonical(value, &DataType::Double, scratch));
        self.short_double = self.short_double && (self.double || before.len() + behind.len() <= 15);
    }

    fn add_moment(&mut self, value: &str, scratch: &mut Vec<u8>) {
        if self.date && text::is_canonical(value, &DataType::Date, scratch) {
            let days = text::parse(value, &DataType::Date);
            self.orders[1..].fill(false);
            self.near &= days.is_ok_and(|d| matches!(d, pagefold_types::Value::Int(d) if d.abs() < i64::from(NEAR_DAYS)));
            return;
        }
        let Some(moment) = moment(value) else {
            (self.date, self.timestamp) = (false, false);
            return;
        };
        for (possible, days) in self.orders.iter_mut().zip(moment.days) {
            *possible &= days.is_some();
            self.near &= days.is_none_or(|d| d.abs() < NEAR_DAYS);
        }
        if !self.orders.iter().any(|possible| *possible) {
            (self.date, self.timestamp) = (false, false);
            return;
        }
        let canonical_date = value.len() >= 10 && value.as_bytes()[4] == b'-' && value.as_bytes()[7] == b'-';
        match moment.clock {
            None => self.as_written &= canonical_date && value.len() == 10,
            Some(clock) => {
                self.date = false;
                let zone = moment.east.is_some();
                self.timestamp &= self.zoned.is_none_or(|zoned| zoned == zone);
                self.zoned = Some(zone);
                let tail = value.get(10..).unwrap_or_default();
                self.add_clock(
                    clock,
                    canonical_date
                        && tail.starts_with(' ')
                        && tail.len() >= 9
                        && !tail.contains(['M', 'm'])
                        && (!zone || tail.ends_with("+00")),
                );
            }
        }
    }

    /// `canonical`: but for the digits of the second it is written as it would be.
    fn add_clock(&mut self, clock: Clock, canonical: bool) {
        // All with the same digits, those of a unit.
        let same = self.seen_digits.is_none_or(|digits| digits == clock.digits);
        self.seen_digits = Some(clock.digits);
        self.as_written &= canonical && same && matches!(clock.digits, 0 | 3 | 6 | 9);
        self.second_digits = self.second_digits.max(clock.digits);
    }

    /// The order of its dates, where that is to be known.
    fn order(&self) -> Option<DateOrder> {
        let possible: Vec<DateOrder> = DateOrder::ALL.into_iter().zip(self.orders).filter(|(_, p)| *p).map(|(order, _)| order).collect();
        match (possible.as_slice(), self.told) {
            ([one], _) => Some(*one),
            (many, Some(told)) if many.contains(&told) => Some(told),
            _ => None,
        }
    }

    /// Dates of which nobody can say whether the day or the month comes first?
    pub(crate) fn is_ambiguous(&self) -> bool {
        self.has_value && (self.date || self.timestamp) && self.order().is_none()
    }

    fn own_type(&self) -> DataType {
        if !self.has_value {
            return DataType::Varchar(None);
        }
        let decimal = |before: u8, scale: u8| {
            let digits = before.saturating_add(scale);
            DataType::Decimal { precision: widened(digits), scale: scale.cast_signed() }
        };
        let unit =
            [TimeUnit::Second, TimeUnit::Milli, TimeUnit::Micro, TimeUnit::Nano].into_iter().find(|u| u.digits() >= self.second_digits);
        let unit = unit.unwrap_or(TimeUnit::Nano);
        match (self.integer, self.same_scale, self.any_scale) {
            _ if self.boolean => DataType::Boolean,
            (Some(_), ..) if self.fits[0] => DataType::Integer,
            (Some(_), ..) if self.fits[1] => DataType::BigInt,
            (Some(digits), ..) => DataType::Decimal { precision: widened(digits), scale: 0 },
            (_, Some((before, Some(scale))), _) => decimal(before, scale),
            _ if self.double => DataType::Double,
            (_, _, Some((before, scale))) => decimal(before, scale),
            _ if self.short_double => DataType::Double,
            _ if self.date && self.order().is_some() => DataType::Date,
            _ if self.timestamp && self.order().is_some() && (self.near || unit != TimeUnit::Nano) => {
                DataType::Timestamp { unit, with_zone: self.zoned == Some(true) }
            }
            _ if self.time => DataType::Time { unit },
            _ if self.uuid => DataType::Uuid,
            _ => DataType::Varchar(None),
        }
    }

    /// The type of all values: that of the table that is there if they are all of it, else the least that holds both; `Err` when there is none.
    pub(crate) fn data_type(&self) -> Result<DataType, (DataType, DataType)> {
        let own = self.own_type();
        match self.hint {
            None => Ok(own),
            Some((hint, true)) => Ok(hint),
            Some((hint, false)) => hint.widened_with(&own).ok_or((hint, own)),
        }
    }

    /// Can a value be NULL?
    pub(crate) fn nullable(&self) -> bool {
        self.has_null || (self.has_empty && self.data_type().is_ok_and(|t| !t.is_text()))
    }

    /// How values are written that are read as this type.
    pub(crate) fn format(&self) -> ValueFormat {
        let is_date = self.date || self.timestamp;
        ValueFormat { order: if is_date { self.order() } else { self.told } }
    }

    /// Would the values be written as they are in the file?
    pub(crate) fn is_as_written(&self, data_type: &DataType) -> bool {
        match data_type {
            DataType::Varchar(_) => true,
            // Nothing between quotes becomes NULL.
            _ if self.has_empty => false,
            DataType::Decimal { scale: 1.., .. } => self.as_written && self.same_scale.is_some(),
            DataType::Integer | DataType::BigInt | DataType::Decimal { .. } => self.as_written && self.integer.is_some(),
            DataType::Double => self.as_written && self.double,
            DataType::Timestamp { unit, .. } | DataType::Time { unit } => self.as_written && self.seen_digits == Some(unit.digits()),
            _ => self.as_written,
        }
    }

    /// Does this text look like a value of the column, given the others?
    pub(crate) fn takes(&self, field: &str, data_type: &DataType) -> bool {
        data_type.is_text() || read_value(field, data_type, self.format()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guessed(values: &[&str]) -> Guess {
        let mut guess = Guess::new(None, None);
        values.iter().for_each(|value| guess.add(Some(value), Kind::Any, &mut Vec::new()));
        guess
    }

    fn guess(values: &[&str]) -> String {
        guessed(values).data_type().unwrap().to_string()
    }

    #[test]
    fn types_from_all_values() {
        for (values, expected) in [
            (&["1", "2"][..], "INTEGER"),
            (&["0", "-2147483648"], "INTEGER"),
            (&["1", "2147483648"], "BIGINT"),
            (&["18446744073709551615", "5"], "DECIMAL(21,0)"),
            (&["007", "008"], "VARCHAR"),
            (&["1", "007"], "VARCHAR"),
            (&["-0"], "DOUBLE"),
            (&["+1"], "VARCHAR"),
            (&["1", ""], "INTEGER"),
            (&["", ""], "VARCHAR"),
            (&["1", " 2"], "INTEGER"),
            (&["1.50", "22.25"], "DECIMAL(4,2)"),
            (&["0.04", "0.10"], "DECIMAL(2,2)"),
            (&["123.45", "0.10"], "DECIMAL(6,2)"),
            (&["1.50", "1.5"], "DECIMAL(4,2)"),
            (&["-.5", "1.25"], "DECIMAL(4,2)"),
            (&["-.5"], "DECIMAL(2,1)"),
            (&[".5", "12"], "DECIMAL(4,1)"),
            (&["1.25", "1.5"], "DOUBLE"),
            (&["1.25", "3"], "DOUBLE"),
            (&["1.25", "3.0"], "DECIMAL(4,2)"),
            (&["-6.081689834590001", "145.391998291"], "DOUBLE"),
            (&["0.00001", "1.5"], "DOUBLE"),
            (&["0.000001", "1.5"], "DECIMAL(9,6)"),
            (&["-0.00", "1.50"], "DECIMAL(4,2)"),
            (&["1e16", "1.5"], "DOUBLE"),
            (&["1e5"], "DOUBLE"),
            (&["1E5", "2.50"], "DOUBLE"),
            (&["00e5"], "VARCHAR"),
            (&["1e400"], "VARCHAR"),
            (&["NaN", "1.5"], "DOUBLE"),
            (&["99999999999999999999999999999999999999"], "DECIMAL(38,0)"),
            (&["999999999999999999999999999999999999999"], "VARCHAR"),
            (&["true", "false"], "BOOLEAN"),
            (&["true", "False"], "BOOLEAN"),
            (&["t", "f"], "VARCHAR"),
            (&["2024-02-29", "1969-12-31"], "DATE"),
            (&["2024-02-30"], "VARCHAR"),
            (&["2024-02-29", "x"], "VARCHAR"),
            (&["2024/02/29", "2024/3/1"], "DATE"),
            (&["31.12.2024", "1.1.2025"], "DATE"),
            (&["01/02/2024", "31/01/2024"], "DATE"),
            (&["01/02/2024", "01/31/2024"], "DATE"),
            (&["01/02/2024", "03/04/2024"], "VARCHAR"),
            (&["31/01/2024", "01/31/2024"], "VARCHAR"),
            (&["31-Jan-2024"], "DATE"),
            (&["2024-02-29 00:00:00", "2024-02-29 23:59:59"], "TIMESTAMP(0)"),
            (&["2024-02-29 00:00:00.123", "2024-02-29 23:59:59.000"], "TIMESTAMP(3)"),
            (&["2024-02-29 00:00:00.123", "2024-02-29 23:59:59"], "TIMESTAMP(3)"),
            (&["2024-02-29 00:00:00.5"], "TIMESTAMP(3)"),
            (&["2024-02-29", "2024-02-29 12:00:00"], "TIMESTAMP(0)"),
            (&["2024-02-29 00:00:00.123456+00"], "TIMESTAMP WITH TIME ZONE"),
            (&["2024-02-29T00:00:00"], "TIMESTAMP(0)"),
            (&["2024-02-29T00:00:00Z", "2024-02-29T00:00:00.25Z"], "TIMESTAMP(3) WITH TIME ZONE"),
            (&["2024-02-29T00:00:00Z", "2024-02-29T00:00:00"], "VARCHAR"),
            (&["1/31/2024 3:45:00 PM"], "TIMESTAMP(0)"),
            (&["9999-12-31 00:00:00.123456789"], "VARCHAR"),
            (&["12:30:00", "00:00:01"], "TIME(0)"),
            (&["12:30"], "TIME(0)"),
            (&["25:30"], "VARCHAR"),
            (&["6ba7b810-9dad-11d1-80b4-00c04fd430c8"], "UUID"),
            (&["6BA7B810-9dad-11d1-80b4-00c04fd430c8"], "UUID"),
            (&[], "VARCHAR"),
        ] {
            assert_eq!(guess(values), expected, "{values:?}");
        }
    }

    #[test]
    fn hints_are_kept_or_widened() {
        let with = |hint: &str, values: &[&str]| {
            let mut guess = Guess::new(Some(hint.parse().unwrap()), None);
            values.iter().for_each(|value| guess.add(Some(value), Kind::Any, &mut Vec::new()));
            guess.data_type().map_or_else(|(a, b)| format!("{a} and {b}"), |t| t.to_string())
        };
        assert_eq!(with("VARCHAR", &["1", "2"]), "VARCHAR");
        assert_eq!(with("BIGINT", &["1", "2"]), "BIGINT");
        assert_eq!(with("INTEGER", &["1", "3000000000"]), "BIGINT");
        assert_eq!(with("SMALLINT", &["40000"]), "INTEGER");
        assert_eq!(with("DECIMAL(9,2)", &["1.5", "3"]), "DECIMAL(9,2)");
        assert_eq!(with("DECIMAL(4,2)", &["1.50", "300.25"]), "DECIMAL(6,2)");
        assert_eq!(with("VARCHAR(3)", &["abcd"]), "VARCHAR");
        assert_eq!(with("CHAR(3)", &["abc"]), "CHAR(3)");
        assert_eq!(with("DATE", &["2024-01-01 10:00:00"]), "TIMESTAMP(0)");
        assert_eq!(with("DATE", &["x"]), "DATE and VARCHAR");
        assert_eq!(with("BOOLEAN", &["1", "0"]), "BOOLEAN");
    }

    /// Whatever is inferred, every value can be read, and is the same number, day or time when it is written and read again; and is the same text where that is said.
    #[test]
    fn inferred_types_lose_nothing() {
        let pieces = [
            "0",
            "1",
            "9",
            "00",
            "-",
            ".",
            "5",
            "e",
            "+",
            " ",
            "2024-02-2",
            ":",
            "12:30:00",
            "true",
            "123456789012345",
            "NaN",
            "000",
            "/",
            "T",
            "Z",
            "31.12.2024",
            "01/31/2024",
        ];
        let mut state = 1u64;
        let mut next = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut typed = 0;
        for _ in 0..100_000 {
            let values: Vec<String> =
                (0..1 + next(3)).map(|_| (0..1 + next(4)).map(|_| pieces[next(pieces.len() as u64) as usize]).collect()).collect();
            let guess = guessed(&values.iter().map(String::as_str).collect::<Vec<_>>());
            let data_type = guess.data_type().unwrap();
            typed += u32::from(data_type != DataType::Varchar(None));
            for value in values.iter().filter(|_| !data_type.is_text()) {
                let read = read_value(value, &data_type, guess.format()).unwrap_or_else(|e| panic!("{values:?} {data_type}: {e}"));
                let written = text::to_text(read.as_ref(), &data_type);
                if read.as_ref().is_null() {
                    continue;
                }
                assert!(!text::parse(&written, &data_type).unwrap().as_ref().is_null());
                if let (Ok(a), Ok(b)) = (value.trim().parse::<f64>(), written.parse::<f64>()) {
                    assert!(a == b || a.is_nan(), "{value} {written}");
                }
                if guess.is_as_written(&data_type) {
                    assert_eq!(written, *value, "{values:?} {data_type}");
                }
            }
        }
        assert!(typed > 5_000, "{typed}");
    }
}

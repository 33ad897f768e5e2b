//! The type of a column from all of its values.
//!
//! A type is possible as long as every value is its canonical text: then the file's text comes back. Of the possible ones: BOOLEAN, INTEGER, BIGINT or
//! DECIMAL(p,0) by range, DECIMAL(p,s) (one s for all values), DOUBLE, DATE, TIMESTAMP, TIME, UUID, else VARCHAR. The precision of a DECIMAL is the largest that
//! takes the same bytes.

use pagefold_types::{DECIMAL_PRECISION_MAX, DataType, TimeUnit, decimal_width, text};

/// What all values so far have in common.
#[derive(Debug, Clone)]
pub(super) struct Guess {
    pub(super) has_null: bool,
    has_value: bool,
    boolean: bool,
    /// Digits of the longest integer; `None` when not all are integers
    integer: Option<u8>,
    /// All integers fit 32 bits, 64 bits
    fits: [bool; 2],
    decimal: Option<Decimal>,
    double: bool,
    date: bool,
    timestamp: Alike,
    time: Alike,
    uuid: bool,
}

/// Digits before and behind the point.
#[derive(Debug, Clone, Copy)]
struct Decimal {
    before: u8,
    /// `None` before the first value
    behind: Option<u8>,
}

/// One type for all values, which the first one decides.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Alike {
    Open,
    All(DataType),
    No,
}

/// A number's text in parts: digits before and behind the point, without sign. `None` when it is no canonical number without exponent.
fn plain_number(text: &str) -> Option<(&str, Option<&str>)> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (before, behind) = match digits.split_once('.') {
        Some((before, behind)) => (before, Some(behind)),
        None => (digits, None),
    };
    let all_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let is_zero = || digits.bytes().all(|b| matches!(b, b'0' | b'.'));
    if !all_digits(before)
        || !behind.is_none_or(all_digits)
        || (before.len() > 1 && before.starts_with('0'))
        || (digits.len() < text.len() && is_zero())
    {
        return None;
    }
    Some((before, behind))
}

/// The widest precision in the same bytes.
fn widened(digits: u8) -> u8 {
    let width = decimal_width(digits);
    (digits..=DECIMAL_PRECISION_MAX).rev().find(|p| decimal_width(*p) == width).unwrap_or(digits)
}

impl Guess {
    pub(super) fn new() -> Guess {
        Guess {
            has_null: false,
            has_value: false,
            boolean: true,
            integer: Some(0),
            fits: [true; 2],
            decimal: Some(Decimal { before: 0, behind: None }),
            double: true,
            date: true,
            timestamp: Alike::Open,
            time: Alike::Open,
            uuid: true,
        }
    }

    fn is_text(&self) -> bool {
        let typed = self.boolean || self.integer.is_some() || self.decimal.is_some() || self.double || self.date || self.uuid;
        !typed && self.timestamp == Alike::No && self.time == Alike::No
    }

    /// Takes a value, or NULL.
    pub(super) fn add(&mut self, value: Option<&str>, scratch: &mut Vec<u8>) {
        let Some(value) = value else {
            self.has_null = true;
            return;
        };
        if self.is_text() {
            self.has_value = true;
            return;
        }
        self.boolean &= matches!(value, "true" | "false");
        if self.integer.is_some() || self.decimal.is_some() || self.double {
            self.add_number(value, scratch);
        }
        self.date = self.date && text::is_canonical(value, &DataType::Date, scratch);
        self.timestamp = alike(self.timestamp, value, timestamp_type, scratch);
        self.time = alike(self.time, value, time_type, scratch);
        self.uuid = self.uuid && text::is_canonical(value, &DataType::Uuid, scratch);
        self.has_value = true;
    }

    fn add_number(&mut self, value: &str, scratch: &mut Vec<u8>) {
        let Some((before, behind)) = plain_number(value) else {
            self.integer = None;
            self.decimal = None;
            self.double = self.double && text::is_canonical(value, &DataType::Double, scratch);
            return;
        };
        let length = |s: &str| u8::try_from(s.len()).ok().filter(|n| *n <= DECIMAL_PRECISION_MAX);
        self.integer = match (self.integer, behind) {
            (Some(digits), None) => length(before).map(|n| n.max(digits)),
            _ => None,
        };
        if self.integer.is_some() {
            let number = value.parse::<i64>().ok();
            self.fits[0] &= number.is_some_and(|n| i32::try_from(n).is_ok());
            self.fits[1] &= number.is_some();
        }
        self.decimal = match (self.decimal, behind.and_then(length)) {
            (Some(had), Some(scale)) if had.behind.is_none_or(|s| s == scale) => {
                let digits = if before == "0" { 0 } else { length(before).unwrap_or(u8::MAX) }.max(had.before);
                (digits.saturating_add(scale) <= DECIMAL_PRECISION_MAX).then_some(Decimal { before: digits, behind: Some(scale) })
            }
            _ => None,
        };
        // Up to 15 digits every decimal number is the shortest text of its DOUBLE, unless it ends in 0 behind the point or is so small that an exponent is written.
        let behind = behind.unwrap_or_default();
        let surely = before.len() + behind.len() <= 15 && !behind.ends_with('0') && (before != "0" || !behind.starts_with("0000"));
        self.double = self.double && (surely || text::is_canonical(value, &DataType::Double, scratch));
    }

    /// The type of all values.
    pub(super) fn data_type(&self) -> DataType {
        if !self.has_value {
            return DataType::Varchar(None);
        }
        let decimal = self.decimal.and_then(|d| d.behind.map(|scale| (d.before.saturating_add(scale), scale)));
        match (self.integer, decimal) {
            _ if self.boolean => DataType::Boolean,
            (Some(_), _) if self.fits[0] => DataType::Integer,
            (Some(_), _) if self.fits[1] => DataType::BigInt,
            (Some(digits), _) => DataType::Decimal { precision: widened(digits), scale: 0 },
            (_, Some((digits, scale))) => DataType::Decimal { precision: widened(digits), scale: scale.cast_signed() },
            _ if self.double => DataType::Double,
            _ if self.date => DataType::Date,
            _ => match (self.timestamp, self.time) {
                (Alike::All(data_type), _) | (_, Alike::All(data_type)) => data_type,
                _ if self.uuid => DataType::Uuid,
                _ => DataType::Varchar(None),
            },
        }
    }
}

fn alike(had: Alike, value: &str, first: impl Fn(&str) -> Option<DataType>, scratch: &mut Vec<u8>) -> Alike {
    let data_type = match had {
        Alike::Open => first(value),
        Alike::All(data_type) => Some(data_type),
        Alike::No => None,
    };
    data_type.filter(|t| text::is_canonical(value, t, scratch)).map_or(Alike::No, Alike::All)
}

/// Digits behind the point of a second.
fn unit_of(time: &str) -> Option<TimeUnit> {
    let digits = time.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    u8::try_from(digits).ok().and_then(TimeUnit::from_digits)
}

fn timestamp_type(value: &str) -> Option<DataType> {
    let with_zone = value.ends_with("+00");
    let unit = unit_of(value.strip_suffix("+00").unwrap_or(value))?;
    value.contains(' ').then_some(DataType::Timestamp { unit, with_zone })
}

fn time_type(value: &str) -> Option<DataType> {
    (value.as_bytes().get(2) == Some(&b':')).then_some(DataType::Time { unit: unit_of(value)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(values: &[&str]) -> String {
        let mut guess = Guess::new();
        for value in values {
            guess.add(Some(value), &mut Vec::new());
        }
        guess.data_type().to_string()
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
            (&["1", ""], "VARCHAR"),
            (&["1", " 2"], "VARCHAR"),
            (&["1.50", "22.25"], "DECIMAL(4,2)"),
            (&["0.04", "0.10"], "DECIMAL(2,2)"),
            (&["123.45", "0.10"], "DECIMAL(6,2)"),
            (&["1.50", "1.5"], "VARCHAR"),
            (&["1.25", "1.5"], "DOUBLE"),
            (&["1.25", "3"], "DOUBLE"),
            (&["1.25", "3.0"], "VARCHAR"),
            (&["-6.081689834590001", "145.391998291"], "DOUBLE"),
            (&["0.00001", "1.5"], "DOUBLE"),
            (&["0.000001", "1.5"], "VARCHAR"),
            (&["-0.00", "1.50"], "VARCHAR"),
            (&["1e16", "1.5"], "DOUBLE"),
            (&["1e5"], "VARCHAR"),
            (&["NaN", "1.5"], "DOUBLE"),
            (&["99999999999999999999999999999999999999"], "DECIMAL(38,0)"),
            (&["999999999999999999999999999999999999999"], "VARCHAR"),
            (&["true", "false"], "BOOLEAN"),
            (&["true", "False"], "VARCHAR"),
            (&["t", "f"], "VARCHAR"),
            (&["2024-02-29", "1969-12-31"], "DATE"),
            (&["2024-02-30"], "VARCHAR"),
            (&["2024-02-29", "x"], "VARCHAR"),
            (&["2024-02-29 00:00:00", "2024-02-29 23:59:59"], "TIMESTAMP(0)"),
            (&["2024-02-29 00:00:00.123", "2024-02-29 23:59:59.000"], "TIMESTAMP(3)"),
            (&["2024-02-29 00:00:00.123", "2024-02-29 23:59:59"], "VARCHAR"),
            (&["2024-02-29 00:00:00.5"], "VARCHAR"),
            (&["2024-02-29 00:00:00.123456+00"], "TIMESTAMP WITH TIME ZONE"),
            (&["2024-02-29T00:00:00"], "VARCHAR"),
            (&["12:30:00", "00:00:01"], "TIME(0)"),
            (&["12:30"], "VARCHAR"),
            (&["6ba7b810-9dad-11d1-80b4-00c04fd430c8"], "UUID"),
            (&["6BA7B810-9dad-11d1-80b4-00c04fd430c8"], "VARCHAR"),
            (&[], "VARCHAR"),
        ] {
            assert_eq!(guess(values), expected, "{values:?}");
        }
    }

    /// Whatever is inferred, every value is the canonical text of it.
    #[test]
    fn inferred_types_give_the_text_back() {
        let pieces =
            ["0", "1", "9", "00", "-", ".", "5", "e", "+", " ", "2024-02-2", ":", "12:30:00", "true", "123456789012345", "NaN", "000"];
        let mut state = 1u64;
        let mut next = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut typed = 0;
        for _ in 0..300_000 {
            let values: Vec<String> =
                (0..1 + next(3)).map(|_| (0..1 + next(4)).map(|_| pieces[next(pieces.len() as u64) as usize]).collect()).collect();
            let mut guess = Guess::new();
            values.iter().for_each(|v| guess.add(Some(v), &mut Vec::new()));
            let data_type = guess.data_type();
            typed += u32::from(data_type != DataType::Varchar(None));
            assert!(values.iter().all(|v| text::is_canonical(v, &data_type, &mut Vec::new())), "{values:?} {data_type}");
        }
        assert!(typed > 10_000, "{typed}");
    }
}

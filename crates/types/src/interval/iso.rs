//! Intervals as ISO 8601 writes them: `P1Y2M3DT4H5M6S`, `P0001-02-03T04:05:06`, `P00010203T040506`.
//!
//! Invariant: what is read is what PostgreSQL reads; numbers have signs and fractions, and come in any order.

use super::Interval;
use super::read::{IntervalError, IntervalField as Field, Sum};

/// A number with its fraction, which has the same sign.
#[derive(Clone, Copy, Debug)]
struct Number {
    whole: i64,
    fraction: f64,
    /// Digits that it begins with.
    digits: usize,
}

struct Text<'t>(&'t str);

impl Text<'_> {
    /// Passes a byte that is ASCII.
    fn skip(&mut self) {
        self.0 = self.0.get(1..).unwrap_or_default();
    }

    /// Digits, a point among them, and an exponent.
    fn number(&mut self) -> Result<Number, IntervalError> {
        let (text, bytes) = (self.0, self.0.as_bytes());
        let count = |from: usize| bytes.get(from..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count();
        let begin = usize::from(bytes.first() == Some(&b'-'));
        let digits = count(begin);
        let mut end = begin + digits;
        if bytes.get(end) == Some(&b'.') {
            let behind = count(end + 1);
            if digits + behind == 0 {
                return Err(IntervalError::Syntax);
            }
            end += 1 + behind;
        } else if digits == 0 {
            return Err(IntervalError::Syntax);
        }
        if let Some(b'e' | b'E') = bytes.get(end) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
            let exponent = count(end + 1 + sign);
            end += if exponent > 0 { 1 + sign + exponent } else { 0 };
        }
        let (number, rest) = text.split_at_checked(end).ok_or(IntervalError::Syntax)?;
        let value: f64 = number.parse().map_err(|_| IntervalError::Syntax)?;
        if !(-1e15..=1e15).contains(&value) {
            return Err(IntervalError::Field);
        }
        self.0 = rest;
        Ok(Number { whole: value.trunc() as i64, fraction: value.fract(), digits })
    }
}

/// Adds units that stand one behind the other, with this between them; of a date T may follow, which is left.
fn several(text: &mut Text<'_>, first: Number, units: [Field; 3], between: u8, sum: &mut Sum) -> Result<(), IntervalError> {
    let mut number = first;
    for (at, unit) in units.into_iter().enumerate() {
        sum.add(number.whole, number.fraction, unit).ok_or(IntervalError::Field)?;
        match text.0.bytes().next() {
            None => return Ok(()),
            Some(b'T') if between == b'-' => return Ok(()),
            Some(byte) if byte == between && at < 2 => text.skip(),
            _ => return Err(IntervalError::Syntax),
        }
        number = text.number()?;
    }
    Err(IntervalError::Syntax)
}

/// Three numbers that are one: of so many digits for the last two each.
fn joined(number: Number, units: [Field; 3], sum: &mut Sum) -> Option<()> {
    let Number { whole, fraction, .. } = number;
    sum.add(whole / 10_000, 0.0, units[0])?;
    sum.add(whole / 100 % 100, 0.0, units[1])?;
    sum.add(whole % 100, fraction, units[2])
}

const DATE: [Field; 3] = [Field::Year, Field::Month, Field::Day];
const TIME: [Field; 3] = [Field::Hour, Field::Minute, Field::Second];

pub(super) fn read(text: &str) -> Result<Interval, IntervalError> {
    let mut text = Text(text.strip_prefix('P').filter(|rest| !rest.is_empty()).ok_or(IntervalError::Syntax)?);
    let mut sum = Sum::default();
    let (mut in_date, mut has_field) = (true, false);
    while !text.0.is_empty() {
        if text.0.starts_with('T') {
            text.skip();
            (in_date, has_field) = (false, false);
            continue;
        }
        let number = text.number()?;
        let alternative = !has_field;
        let (all, digits, between) = if in_date { (DATE, 8, b'-') } else { (TIME, 6, b':') };
        let behind = text.0.bytes().next();
        let unit = match (behind, in_date) {
            (Some(b'Y'), true) => Field::Year,
            (Some(b'M'), true) => Field::Month,
            (Some(b'W'), true) => Field::Week,
            (Some(b'D'), true) => Field::Day,
            (Some(b'H'), false) => Field::Hour,
            (Some(b'M'), false) => Field::Minute,
            (Some(b'S'), false) => Field::Second,
            // One number of all digits.
            (None, _) | (Some(b'T'), true) if alternative && number.digits == digits => {
                joined(number, all, &mut sum).ok_or(IntervalError::Field)?;
                continue;
            }
            (None, _) | (Some(b'T'), true) if alternative => {
                sum.add(number.whole, number.fraction, all[0]).ok_or(IntervalError::Field)?;
                continue;
            }
            (Some(byte), _) if alternative && byte == between => {
                several(&mut text, number, all, between, &mut sum)?;
                continue;
            }
            _ => return Err(IntervalError::Syntax),
        };
        text.skip();
        sum.add(number.whole, number.fraction, unit).ok_or(IntervalError::Field)?;
        has_field = true;
    }
    sum.interval().ok_or(IntervalError::Range)
}

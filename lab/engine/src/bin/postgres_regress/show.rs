//! Results as psql prints them, aligned, with values as a server shows them that has the settings of the regression tests: DateStyle `Postgres, MDY`, and extra_float_digits
//! as the scripts set it.
//!
//! The zone of these settings is PST8PDT. There is none but UTC here, so instants are shown in that, and are other than expected.

use crate::expected::Block;
use pagefold_types::{DataType, TimeUnit, Value, text};

/// A result.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) columns: Vec<(String, DataType)>,
    pub(crate) rows: Vec<Vec<Value>>,
}

impl Table {
    /// As psql prints it; NULL is shown as `null`; `digits` is extra_float_digits.
    pub(crate) fn block(&self, null: &str, digits: i32) -> Block {
        let cell = |(value, (_, data_type)): (&Value, &(String, DataType))| {
            if matches!(value, Value::Null) { null.to_owned() } else { shown(value, data_type, digits) }
        };
        let cells: Vec<Vec<String>> = self.rows.iter().map(|row| row.iter().zip(&self.columns).map(cell).collect()).collect();
        let mut widths: Vec<usize> = self.columns.iter().map(|(name, _)| width(name)).collect();
        for row in &cells {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(self::width(cell));
            }
        }
        if self.columns.is_empty() {
            return Block::Table { header: Vec::new(), rows: Vec::new() };
        }
        let centred = |((name, _), width): (&(String, DataType), &usize)| {
            let blanks = width.saturating_sub(self::width(name));
            format!(" {}{name}{} ", " ".repeat(blanks / 2), " ".repeat(blanks.div_ceil(2)))
        };
        let header = self.columns.iter().zip(&widths).map(centred).collect::<Vec<_>>().join("|");
        let rows = cells.iter().map(|row| self.row(row, &widths)).collect();
        Block::Table { header: vec![header], rows }
    }

    /// A row, of several lines where a value has these.
    fn row(&self, cells: &[String], widths: &[usize]) -> String {
        let parts: Vec<Vec<&str>> = cells.iter().map(|cell| cell.split('\n').collect()).collect();
        let lines = parts.iter().map(Vec::len).max().unwrap_or(1);
        let mut out = String::new();
        for line in 0..lines {
            if line > 0 {
                out.push('\n');
            }
            for (column, parts) in parts.iter().enumerate() {
                let part = parts.get(line).copied().unwrap_or("");
                let (is_last, goes_on) = (column + 1 == cells.len(), line + 1 < parts.len());
                let blanks = " ".repeat(widths[column].saturating_sub(width(part)));
                out.push(' ');
                match is_right(&self.columns[column].1) {
                    true => out.push_str(&format!("{blanks}{part}")),
                    // Nothing is put behind the last value of a line.
                    false if is_last && !goes_on => out.push_str(part),
                    false => out.push_str(&format!("{part}{blanks}")),
                }
                match (goes_on, is_last) {
                    (true, _) => out.push('+'),
                    (false, false) => out.push(' '),
                    (false, true) => {}
                }
                if !is_last {
                    out.push('|');
                }
            }
        }
        out
    }
}

fn width(text: &str) -> usize {
    text.split('\n').map(|line| line.chars().count()).max().unwrap_or(0)
}

fn is_right(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::SmallInt | DataType::Integer | DataType::BigInt | DataType::Real | DataType::Double | DataType::Decimal { .. }
    )
}

fn shown(value: &Value, data_type: &DataType, digits: i32) -> String {
    match (value, data_type) {
        (Value::Boolean(truth), _) => if *truth { "t" } else { "f" }.into(),
        (Value::Int(days), DataType::Date) => date(*days),
        (Value::Int(units), DataType::Time { unit }) => time(*units, *unit),
        (Value::Int(units), DataType::Timestamp { unit, with_zone }) => {
            let zone = if *with_zone { " UTC" } else { "" };
            timestamp(*units, *unit, zone)
        }
        (Value::Real(number), _) if digits < 1 => float(f64::from(*number), 6 + digits),
        (Value::Double(number), _) if digits < 1 => float(*number, 15 + digits),
        (Value::Real(_) | Value::Double(_), data_type) => with_sign(&text::to_text(value.as_ref(), data_type)),
        (value, data_type) => text::to_text(value.as_ref(), data_type),
    }
}

/// A number with so many digits, as `%g` writes it.
fn float(number: f64, digits: i32) -> String {
    if !number.is_finite() {
        return text::to_text(Value::Double(number).as_ref(), &DataType::Double);
    }
    let digits = usize::try_from(digits.max(1)).unwrap_or(1);
    let scientific = format!("{number:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if exponent < -4 || exponent >= digits as i32 {
        return with_sign(&format!("{}e{exponent}", trimmed(mantissa)));
    }
    let behind = usize::try_from(digits as i32 - 1 - exponent).unwrap_or(0);
    trimmed(&format!("{number:.behind$}"))
}

/// An exponent has a sign, and at least two digits.
fn with_sign(text: &str) -> String {
    let Some((mantissa, exponent)) = text.split_once('e') else { return text.to_owned() };
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// The year as it is counted, and what stands behind a date before our era.
fn year(year: i64) -> (i64, &'static str) {
    if year > 0 { (year, "") } else { (1 - year, " BC") }
}

fn date(days: i64) -> String {
    let (years, month, day) = text::civil_from_days(days);
    let (year, era) = year(years);
    format!("{month:02}-{day:02}-{year:04}{era}")
}

/// A time of day, without the zeros at its end.
fn time(units: i64, unit: TimeUnit) -> String {
    let seconds = units.div_euclid(unit.per_second());
    let mut shown = format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let fraction = units.rem_euclid(unit.per_second());
    if fraction > 0 {
        let digits = format!("{fraction:0width$}", width = usize::from(unit.digits()));
        shown.push('.');
        shown.push_str(digits.trim_end_matches('0'));
    }
    shown
}

fn timestamp(units: i64, unit: TimeUnit, zone: &str) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let days = units.div_euclid(unit.per_day());
    let (years, month, day) = text::civil_from_days(days);
    let (year, era) = year(years);
    let weekday = DAYS[days.rem_euclid(7) as usize];
    let month = MONTHS[usize::from(month) - 1];
    let time = time(units.rem_euclid(unit.per_day()), unit);
    format!("{weekday} {month} {day:02} {time} {year:04}{zone}{era}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: DataType = DataType::Varchar(None);

    fn lines(columns: &[(&str, DataType)], rows: &[&[Value]]) -> (Vec<String>, Vec<String>) {
        let table = Table {
            columns: columns.iter().map(|(name, data_type)| ((*name).into(), *data_type)).collect(),
            rows: rows.iter().map(|row| row.to_vec()).collect(),
        };
        match table.block("", 1) {
            Block::Table { header, rows } => (header, rows),
            _ => unreachable!(),
        }
    }

    #[test]
    fn numbers_stand_right_and_texts_left() {
        let text = |text: &str| Value::Text(text.into());
        let (header, rows) = lines(
            &[("count", DataType::BigInt), ("name", TEXT)],
            &[&[Value::Int(12), text("a")], &[Value::Null, text("longer")], &[Value::Int(7), text("b\nc")]],
        );
        assert_eq!(header, [" count |  name  "]);
        assert_eq!(rows, ["    12 | a", "       | longer", "     7 | b     +\n       | c"]);
    }

    #[test]
    fn floats_are_shown_with_as_many_digits_as_are_asked_for() {
        let of = |number: f64, digits| shown(&Value::Double(number), &DataType::Double, digits);
        assert_eq!(of(-1.2345678901234e200, 1), "-1.2345678901234e+200");
        assert_eq!((of(1e-7, 1), of(1e-7, 0)), ("1e-07".into(), "1e-07".into()));
        assert_eq!((of(431.7726001, -9), of(0.1 + 0.2, 0), of(0.0, 0)), ("431.773".into(), "0.3".into(), "0".into()));
        assert_eq!((of(f64::INFINITY, 0), of(1e15, 0), of(123.0, 0)), ("Infinity".into(), "1e+15".into(), "123".into()));
    }

    #[test]
    fn times_are_shown_as_the_tests_want_them() {
        assert_eq!(date(0), "01-01-1970");
        assert_eq!(date(-719_529), "12-31-0002 BC");
        assert_eq!(time(1_500, TimeUnit::Milli), "00:00:01.5");
        assert_eq!(timestamp(0, TimeUnit::Micro, ""), "Thu Jan 01 00:00:00 1970");
    }
}

//! One value of a text file, read by the type of its column.

use super::moment::{self, DateOrder};
use pagefold_types::{DataType, Value, text};

/// How the values of a column are written, beyond their type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ValueFormat {
    /// Which of day and month comes first, where it is not the year.
    pub(crate) order: Option<DateOrder>,
}

/// Without the blanks and tabs around, which do not count but in text.
pub(crate) fn without_blanks(written: &str) -> &str {
    written.trim_matches([' ', '\t'])
}

/// Reads a value; NULL where nothing is written between quotes and the type is no text.
///
/// # Errors
/// What is wrong, with value and type.
pub(crate) fn read_value(written: &str, data_type: &DataType, format: ValueFormat) -> Result<Value, String> {
    let trimmed = without_blanks(written);
    if trimmed.is_empty() {
        return Ok(Value::Null);
    }
    text::parse(trimmed, data_type).or_else(|error| match *data_type {
        DataType::Date | DataType::Time { .. } | DataType::Timestamp { .. } => read_moment(trimmed, data_type, format)
            .map_err(|reason| reason.map_or_else(|| error.to_string(), |why| format!("{error} ({why})"))),
        _ => Err(error.to_string()),
    })
}

/// What a date or time in one of the other forms is. The error may have a reason that says more than that it is none.
fn read_moment(written: &str, data_type: &DataType, format: ValueFormat) -> Result<Value, Option<&'static str>> {
    if let DataType::Time { unit } = *data_type {
        let clock = moment::clock(written).ok_or(None)?;
        return Ok(Value::Int(clock.units(unit).ok_or(Some("more digits of a second than the type has"))?));
    }
    let moment = moment::moment(written).ok_or(None)?;
    let [by_year, by_day, by_month] = moment.days;
    let days = match (by_year, format.order) {
        (Some(days), _) => days,
        (None, Some(DateOrder::DayMonthYear)) => by_day.ok_or(Some("read as day, month, year"))?,
        (None, Some(DateOrder::MonthDayYear)) => by_month.ok_or(Some("read as month, day, year"))?,
        (None, _) => match (by_day, by_month) {
            (Some(day), Some(month)) if day != month => return Err(Some("day or month first? --date-order says it")),
            (day, month) => day.or(month).ok_or(None)?,
        },
    };
    let value = match *data_type {
        DataType::Timestamp { unit, with_zone } => {
            if moment.east.is_some() && !with_zone {
                return Err(Some("the type has no time zone"));
            }
            let time = match moment.clock {
                Some(clock) => clock.units(unit).ok_or(Some("more digits of a second than the type has"))?,
                None => 0,
            };
            let east = moment.east.unwrap_or(0) * unit.per_second();
            let units = i128::from(days) * i128::from(unit.per_day()) + i128::from(time) - i128::from(east);
            i64::try_from(units).map_err(|_| Some("out of range"))?
        }
        _ if moment.clock.is_some() => return Err(Some("it has a time of day")),
        _ => i64::from(days),
    };
    Ok(Value::Int(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(written: &str, data_type: &str, order: Option<DateOrder>) -> String {
        let data_type: DataType = data_type.parse().unwrap();
        match read_value(written, &data_type, ValueFormat { order }) {
            Ok(value) => text::to_text(value.as_ref(), &data_type),
            Err(error) => error,
        }
    }

    #[test]
    fn values_are_read_as_people_write_them() {
        let (day, month) = (Some(DateOrder::DayMonthYear), Some(DateOrder::MonthDayYear));
        for (written, data_type, order, expected) in [
            (" 7 ", "INTEGER", None, "7"),
            ("-.5", "DECIMAL(5,2)", None, "-0.50"),
            ("", "INTEGER", None, "NULL"),
            ("  ", "DATE", None, "NULL"),
            ("31.01.2024", "DATE", None, "2024-01-31"),
            ("01/02/2024", "DATE", day, "2024-02-01"),
            ("01/02/2024", "DATE", month, "2024-01-02"),
            ("2024/01/02", "DATE", day, "2024-01-02"),
            ("31/01/2024", "DATE", None, "2024-01-31"),
            ("2024-01-31T10:00:00Z", "TIMESTAMP(0) WITH TIME ZONE", None, "2024-01-31 10:00:00+00"),
            ("2024-01-31T10:00:00.5", "TIMESTAMP(3)", None, "2024-01-31 10:00:00.500"),
            ("31.1.2024 10:00", "TIMESTAMP(0)", None, "2024-01-31 10:00:00"),
            ("2024-01-31 10:00:00+02:00", "TIMESTAMP(0) WITH TIME ZONE", None, "2024-01-31 08:00:00+00"),
            ("9:05 PM", "TIME(0)", None, "21:05:00"),
        ] {
            assert_eq!(read(written, data_type, order), expected, "{written}");
        }
        for (written, data_type, part) in [
            ("01/02/2024", "DATE", "--date-order"),
            ("2024-01-31 10:00", "DATE", "time of day"),
            ("2024-01-31T10:00:00Z", "TIMESTAMP(0)", "no time zone"),
            ("2024-01-31T10:00:00.5", "TIMESTAMP(0)", "digits"),
            ("x", "INTEGER", "\"x\" is not INTEGER"),
        ] {
            let error = read(written, data_type, None);
            assert!(error.contains(part) && error.contains(written), "{error}");
        }
    }
}

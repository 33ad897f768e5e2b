//! Functions of dates and times. What is the time is that at which the transaction began.

use super::{Apply, Function, LazyBody, Volatility, double, immutable, int, interval_of, take, text_of};
use crate::expression::calendar::{self, Field};
use crate::expression::datum::Datum;
use crate::expression::{Env, Expr, ParamTypes, Typed, cast, decimal, interval, make, types};
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, Interval, TimeUnit, Value, ValueRef};

type Args<'x, 'a> = &'x mut [Datum<'a>];

const INSTANT: DataType = DataType::Timestamp { unit: TimeUnit::Micro, with_zone: true };
const LOCAL: DataType = DataType::Timestamp { unit: TimeUnit::Micro, with_zone: false };
const TIME: DataType = DataType::Time { unit: TimeUnit::Micro };
/// Behind the second.
const DIGITS_MAX: u32 = 6;

fn moment<'a>(function: &Function, _: &'a [Expr], env: &'a Env<'a>) -> SqlResult<Datum<'a>> {
    cast::cast(Datum::from_int(env.now.transaction), &INSTANT, &function.data_type)
}

fn moment_of_statement<'a>(_: &Function, _: &'a [Expr], env: &'a Env<'a>) -> SqlResult<Datum<'a>> {
    Ok(Datum::from_int(env.now.statement))
}

fn moment_of_clock<'a>(_: &Function, _: &'a [Expr], env: &'a Env<'a>) -> SqlResult<Datum<'a>> {
    env.subqueries.clock().map(Datum::from_int)
}

/// now() and its likes, with the type that each has.
pub(super) fn now(name: &str) -> Option<Typed> {
    let (name, data_type) = match name {
        "now" => ("now", INSTANT),
        "current_timestamp" => ("current_timestamp", INSTANT),
        "transaction_timestamp" => ("transaction_timestamp", INSTANT),
        "current_date" => ("current_date", DataType::Date),
        "localtimestamp" => ("localtimestamp", LOCAL),
        "localtime" => ("localtime", TIME),
        "statement_timestamp" => ("statement_timestamp", INSTANT),
        "clock_timestamp" => ("clock_timestamp", INSTANT),
        _ => return None,
    };
    let (body, volatility): (LazyBody, _) = match name {
        "statement_timestamp" => (moment_of_statement, Volatility::Stable),
        "clock_timestamp" => (moment_of_clock, Volatility::Volatile),
        _ => (moment, Volatility::Stable),
    };
    let function = Function { name, apply: Apply::Lazy(body), data_type, volatility };
    Some(Typed::of(Expr::Call { function, arguments: Vec::new() }, data_type))
}

/// The same to so many digits of a second, which are a hidden argument; rounded.
fn moment_to_digits<'a>(function: &Function, arguments: &'a [Expr], env: &'a Env<'a>) -> SqlResult<Datum<'a>> {
    let digits = match arguments.first() {
        Some(Expr::Literal(Value::Int(digits))) => u32::try_from(*digits).unwrap_or(DIGITS_MAX),
        _ => DIGITS_MAX,
    };
    let step = 10_i64.pow(DIGITS_MAX.saturating_sub(digits));
    let micros = env.now.transaction.saturating_add(step / 2).div_euclid(step).saturating_mul(step);
    cast::cast(Datum::from_int(micros), &INSTANT, &function.data_type)
}

/// current_timestamp(n) and its likes. Of more than six digits there are six, as in PostgreSQL.
pub(super) fn now_to_digits(name: &str, digits: &Typed) -> SqlResult<Typed> {
    let (name, data_type) = match name {
        "localtimestamp" => ("localtimestamp", LOCAL),
        "localtime" => ("localtime", TIME),
        _ => ("current_timestamp", INSTANT),
    };
    let Some(Value::Int(digits @ 0..)) = digits.literal() else {
        return Err(SqlError::syntax(format!("{name} takes a number of digits that is written")));
    };
    let digits = (*digits).min(i64::from(DIGITS_MAX));
    let function = Function { name, apply: Apply::Lazy(moment_to_digits), data_type, volatility: Volatility::Stable };
    Ok(Typed::of(Expr::Call { function, arguments: vec![super::hidden(digits)] }, data_type))
}

/// A date or time as PostgreSQL's functions of time take it: of microseconds.
fn source(of: Typed, params: &ParamTypes) -> SqlResult<Typed> {
    let of = of.known(params);
    let to = match of.data_type {
        None => LOCAL,
        Some(DataType::Timestamp { with_zone, .. }) => DataType::Timestamp { unit: TimeUnit::Micro, with_zone },
        Some(DataType::Time { .. }) => TIME,
        Some(DataType::Date) => DataType::Date,
        Some(DataType::Interval) => DataType::Interval,
        Some(other) => return Err(SqlError::types(format!("{} has no fields of a date or time", types::name(&other)))),
    };
    make::cast(of, to, params)
}

/// EXTRACT(field FROM source), a DECIMAL, and date_part(field, source), a DOUBLE.
pub(super) fn extract(name: &'static str, field: Typed, of: Typed, params: &ParamTypes) -> SqlResult<Typed> {
    let of = source(of, params)?;
    let Some(data_type) = of.data_type else { return Err(SqlError::types("EXTRACT of nothing")) };
    let Some(Value::Text(text)) = field.literal() else {
        return Err(SqlError::unsupported(format!("{name} with a field that is computed")));
    };
    let text = text.to_lowercase();
    let text = text.as_str();
    let field = Field::named(text).ok_or_else(|| Field::unknown(text, &data_type))?;
    let supported = match data_type {
        DataType::Date => calendar::of_date(field, 0).is_some(),
        DataType::Time { .. } => field == Field::Epoch || calendar::of_time(field, 0).is_some(),
        DataType::Interval => interval::field(field, Interval::ZERO).is_some(),
        _ => true,
    };
    if !supported {
        let message = format!("unit \"{}\" not supported for type {}", crate::expression::read::shown(text), types::name(&data_type));
        return Err(SqlError::new("0A000", message));
    }
    let of_date = matches!(data_type, DataType::Date);
    let scale = match field {
        Field::Second | Field::Epoch if !of_date => 6,
        Field::Milliseconds => 3,
        Field::Julian if !of_date => 20,
        _ => 0,
    };
    let to = types::decimal_of(if field == Field::Epoch { 20 } else { 10 }, scale);
    let arguments = vec![of.expr, super::hidden(field as i64), super::hidden(i64::from(kind(&data_type)))];
    let made = immutable(name, Apply::Strict(field_of), arguments, to);
    if name == "date_part" { make::cast(made, DataType::Double, params) } else { Ok(made) }
}

/// What a source is, as a hidden argument.
fn kind(data_type: &DataType) -> u8 {
    match data_type {
        DataType::Date => 0,
        DataType::Time { .. } => 1,
        DataType::Interval => 3,
        _ => 2,
    }
}

const FIELDS: [Field; 19] = [
    Field::Microseconds,
    Field::Milliseconds,
    Field::Second,
    Field::Minute,
    Field::Hour,
    Field::Day,
    Field::Week,
    Field::Month,
    Field::Quarter,
    Field::Year,
    Field::Decade,
    Field::Century,
    Field::Millennium,
    Field::IsoYear,
    Field::DayOfWeek,
    Field::IsoDayOfWeek,
    Field::DayOfYear,
    Field::Epoch,
    Field::Julian,
];

fn field_of<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    const DAY: i64 = 86_400_000_000;
    let (value, kind) = (int(arguments, 0), int(arguments, 2));
    let field = usize::try_from(int(arguments, 1)).ok().and_then(|at| FIELDS.get(at)).copied();
    let Some(field) = field else { return Ok(Datum::NULL) };
    if kind == 3 {
        let found = interval::field(field, interval_of(arguments, 0));
        return Ok(found.map_or(Datum::NULL, |found| Datum::Ref(ValueRef::Decimal(found))));
    }
    let (days, micros) = match kind {
        0 => (value, 0),
        1 => (0, value),
        _ => (value.div_euclid(DAY), value.rem_euclid(DAY)),
    };
    let found = match (field, kind) {
        (Field::Epoch, 0) => days.checked_mul(86_400).map(i128::from),
        // Microseconds since 1970 or midnight: six digits behind the point.
        (Field::Epoch, _) => Some(value.into()),
        (Field::Julian, 2) => {
            let day = calendar::of_date(field, days).map(i128::from);
            let part = decimal::rescale(micros.into(), 0, 20)? / i128::from(DAY);
            day.map(|day| decimal::rescale(day, 0, 20).map(|day| day + part)).transpose()?
        }
        _ => calendar::of_time(field, micros).or_else(|| calendar::of_date(field, days)).map(i128::from),
    };
    Ok(found.map_or(Datum::NULL, |found| Datum::Ref(ValueRef::Decimal(found))))
}

/// date_trunc(field, source): a TIMESTAMP, or an INTERVAL; of a DATE one with time zone, as in PostgreSQL.
pub(super) fn date_trunc(field: Typed, of: Typed, params: &ParamTypes) -> SqlResult<Typed> {
    let field = make::coerce(field, &types::TEXT, params)?;
    let of = of.known(params);
    let to = match of.data_type {
        Some(DataType::Timestamp { with_zone: false, .. }) => LOCAL,
        Some(DataType::Timestamp { with_zone: true, .. } | DataType::Date) | None => INSTANT,
        Some(DataType::Interval | DataType::Time { .. }) => DataType::Interval,
        Some(other) => return Err(SqlError::new("42883", format!("function date_trunc(unknown, {}) does not exist", types::name(&other)))),
    };
    if let Some(Value::Text(name)) = field.literal() {
        truncating(name, &to)?;
    }
    let of = make::cast(of, to, params)?;
    Ok(immutable("date_trunc", Apply::Strict(truncated), vec![field.expr, of.expr], to))
}

fn truncating(name: &str, data_type: &DataType) -> SqlResult<Field> {
    let field = Field::named(name).ok_or_else(|| Field::unknown(name, data_type))?;
    let is_unit = match data_type {
        DataType::Interval => interval::truncated(field, Interval::ZERO).is_some(),
        _ => calendar::truncate(field, 0).is_some(),
    };
    if is_unit {
        return Ok(field);
    }
    let message = format!("unit \"{}\" not supported for type {}", crate::expression::read::shown(name), types::name(data_type));
    Err(SqlError::new("0A000", message))
}

fn truncated<'a>(function: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let field = truncating(text_of(arguments, 0), &function.data_type)?;
    if function.data_type == DataType::Interval {
        let made = interval::truncated(field, interval_of(arguments, 1));
        return Ok(made.map_or(Datum::NULL, |made| Datum::Ref(ValueRef::Interval(made))));
    }
    let micros = calendar::truncate(field, int(arguments, 1));
    micros.map(Datum::from_int).ok_or_else(|| calendar::out_of_range(&function.data_type))
}

/// make_date(year, month, day)
pub(super) fn make_date<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let (year, month, day) = (int(arguments, 0), int(arguments, 1), int(arguments, 2));
    // A year below 0 is one before Christ, of which the first is 0 in the calendar.
    let counted = match year {
        0 => None,
        year if year < 0 => Some(year + 1),
        year => Some(year),
    };
    let found = counted.and_then(|year| calendar::day(year, month, day)).filter(|day| i32::try_from(*day).is_ok());
    found.map(Datum::from_int).ok_or_else(|| SqlError::new("22008", format!("date field value out of range: {year}-{month:02}-{day:02}")))
}

/// make_timestamp(year, month, day, hour, minute, seconds)
pub(super) fn make_timestamp<'a>(function: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let (hour, minute, seconds) = (int(arguments, 3), int(arguments, 4), double(arguments, 5));
    let days = make_date(function, arguments)?.int();
    let fits = (0..=24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60.0).contains(&seconds);
    let time = (hour * 3_600 + minute * 60) * 1_000_000 + if fits { (seconds * 1e6).round_ties_even() as i64 } else { 0 };
    if !fits || time > 86_400_000_000 {
        return Err(SqlError::new("22008", format!("time field value out of range: {hour}:{minute:02}:{seconds:02}")));
    }
    let all = days.checked_mul(86_400_000_000).and_then(|midnight| midnight.checked_add(time));
    all.map(Datum::from_int).ok_or_else(|| calendar::out_of_range(&function.data_type))
}

/// make_time(hour, minute, seconds)
pub(super) fn make_time<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let (hour, minute, seconds) = (int(arguments, 0), int(arguments, 1), double(arguments, 2));
    let fits = (0..=24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60.0).contains(&seconds);
    let time = if fits { (hour * 3_600 + minute * 60) * 1_000_000 + (seconds * 1e6).round_ties_even() as i64 } else { i64::MAX };
    match time <= 86_400_000_000 {
        true => Ok(Datum::from_int(time)),
        false => Err(SqlError::new("22008", format!("time field value out of range: {hour}:{minute:02}:{seconds:02}"))),
    }
}

/// date_bin(stride, source, origin)
pub(super) fn date_bin<'a>(function: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let (stride, source, origin) = (interval_of(arguments, 0), int(arguments, 1), int(arguments, 2));
    if stride.months != 0 {
        return Err(SqlError::unsupported("timestamps cannot be binned into intervals containing months or years"));
    }
    let stride = i128::from(stride.days) * 86_400_000_000 + i128::from(stride.micros);
    if stride <= 0 {
        return Err(SqlError::new("22008", "stride must be greater than zero"));
    }
    let (source, origin) = (i128::from(source), i128::from(origin));
    let begin = origin + (source - origin).div_euclid(stride) * stride;
    i64::try_from(begin).map(Datum::from_int).map_err(|_| calendar::out_of_range(&function.data_type))
}

/// How far a time zone is ahead of UTC, in microseconds: `UTC`, or a fixed offset, whose sign is that of POSIX, as in PostgreSQL: `+3` is west of Greenwich.
fn ahead(zone: &str) -> SqlResult<i64> {
    let name = zone.trim();
    let offset = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let abbreviation = &name[..name.len() - offset.len()];
    let is_utc = ["", "utc", "gmt", "z", "zulu", "uct"].iter().any(|known| abbreviation.eq_ignore_ascii_case(known));
    let unknown = || {
        SqlError::unsupported(format!("time zone \"{}\"", crate::expression::read::shown(zone)))
            .with_hint("There are UTC and fixed offsets, such as INTERVAL '2 hours'.")
    };
    if !is_utc || name.is_empty() {
        return Err(unknown());
    }
    if offset.is_empty() {
        return Ok(0);
    }
    let (sign, digits) = match offset.as_bytes()[0] {
        b'+' => (-1, &offset[1..]),
        b'-' => (1, &offset[1..]),
        _ => (-1, offset),
    };
    let mut parts = digits.split(':').map(|part| part.parse::<i64>().ok().filter(|_| part.len() <= 2));
    let (hours, minutes, seconds) = (parts.next().flatten(), parts.next().unwrap_or(Some(0)), parts.next().unwrap_or(Some(0)));
    match (hours, minutes, seconds, parts.next()) {
        (Some(hours @ 0..=23), Some(minutes @ 0..=59), Some(seconds @ 0..=59), None) => {
            Ok(sign * (hours * 3_600 + minutes * 60 + seconds) * 1_000_000)
        }
        _ => Err(unknown()),
    }
}

/// timezone(zone, source): a TIMESTAMP in a zone is a moment, and a moment is a TIMESTAMP in it.
pub(super) fn in_zone<'a>(function: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let ahead = match arguments.first().map(Datum::as_ref) {
        Some(ValueRef::Interval(zone)) if zone.months != 0 || zone.days != 0 => {
            return Err(SqlError::new("22023", "interval time zone must not include months or days"));
        }
        Some(ValueRef::Interval(zone)) => zone.micros,
        _ => ahead(text_of(arguments, 0))?,
    };
    let is_local = matches!(function.data_type, DataType::Timestamp { with_zone: false, .. });
    let micros = int(arguments, 1).checked_add(if is_local { ahead } else { -ahead });
    micros.map(Datum::from_int).ok_or_else(|| calendar::out_of_range(&function.data_type))
}

/// to_timestamp(seconds since 1970)
pub(super) fn to_timestamp<'a>(function: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let seconds = take(arguments, 0).double();
    let micros = (seconds * 1e6).round_ties_even();
    if !(-9.2e18..9.2e18).contains(&micros) {
        return Err(calendar::out_of_range(&function.data_type));
    }
    Ok(Datum::from_int(micros as i64))
}

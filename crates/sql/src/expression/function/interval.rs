//! Functions of intervals.

use super::{Apply, Function, double, hidden, immutable, int, interval_of};
use crate::SqlResult;
use crate::expression::datum::Datum;
use crate::expression::interval::{self, Fields};
use crate::expression::types::{Context, castable};
use crate::expression::{Expr, ParamTypes, Typed, make};
use pagefold_types::{DataType, Interval, IntervalField, TimeUnit, Value, ValueRef};

type Args<'x, 'a> = &'x mut [Datum<'a>];

const INTERVAL: DataType = DataType::Interval;
const LOCAL: DataType = DataType::Timestamp { unit: TimeUnit::Micro, with_zone: false };
const INSTANT: DataType = DataType::Timestamp { unit: TimeUnit::Micro, with_zone: true };

fn given<'a>(made: Interval) -> SqlResult<Datum<'a>> {
    Ok(Datum::Ref(ValueRef::Interval(made)))
}

pub(super) fn justify_hours<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    given(interval::justified_hours(interval_of(arguments, 0))?)
}

pub(super) fn justify_days<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    given(interval::justified_days(interval_of(arguments, 0))?)
}

pub(super) fn justify_interval<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    given(interval::justified(interval_of(arguments, 0))?)
}

/// Nothing is infinite here.
pub(super) fn is_finite<'a>(_: &Function, _: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    Ok(Datum::boolean(Some(true)))
}

/// age(later, earlier), and age(earlier): until the day on which the transaction began.
pub(super) fn age(of: Typed, earlier: Option<Typed>, refused: crate::SqlError, params: &ParamTypes) -> SqlResult<Typed> {
    let is_moment = |typed: &Typed| matches!(typed.data_type, None | Some(DataType::Date | DataType::Timestamp { .. }));
    let (later, earlier) = match earlier {
        Some(earlier) => (of, earlier),
        None => match super::time::now("current_date") {
            Some(today) => (today, of),
            None => return Err(refused),
        },
    };
    if !is_moment(&later) || !is_moment(&earlier) {
        return Err(refused);
    }
    let is_local = |typed: &Typed| matches!(typed.data_type, Some(DataType::Timestamp { with_zone: false, .. }));
    let to = if is_local(&later) || is_local(&earlier) { LOCAL } else { INSTANT };
    let arguments = vec![make::cast(later, to, params)?.expr, make::cast(earlier, to, params)?.expr];
    Ok(immutable("age", Apply::Strict(age_of), arguments, INTERVAL))
}

fn age_of<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    given(interval::age(int(arguments, 0), int(arguments, 1))?)
}

/// Names of the arguments of make_interval, in their order.
pub(crate) const MAKE_INTERVAL: [&str; 7] = ["years", "months", "weeks", "days", "hours", "mins", "secs"];

/// make_interval: whole numbers, and seconds with a fraction; those that are left out are 0.
pub(super) fn make_interval(arguments: Vec<Typed>, refused: crate::SqlError, params: &ParamTypes) -> SqlResult<Typed> {
    let type_of = |at: usize| if at < 6 { DataType::Integer } else { DataType::Double };
    let fits = |(at, typed): (usize, &Typed)| typed.data_type.is_none_or(|from| castable(&from, &type_of(at), Context::Implicit));
    if arguments.len() > MAKE_INTERVAL.len() || !arguments.iter().enumerate().all(fits) {
        return Err(refused);
    }
    let mut all = Vec::with_capacity(MAKE_INTERVAL.len());
    for (at, argument) in arguments.into_iter().enumerate() {
        all.push(make::coerce(argument, &type_of(at), params)?.expr);
    }
    while all.len() < 6 {
        all.push(hidden(0));
    }
    if all.len() < 7 {
        all.push(Expr::Literal(Value::Double(0.0)));
    }
    Ok(immutable("make_interval", Apply::Strict(made), all, INTERVAL))
}

fn made<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let part = |at: usize| i128::from(int(arguments, at));
    let months = part(0) * 12 + part(1);
    let days = part(2) * 7 + part(3);
    let seconds = (double(arguments, 6) * 1e6).round_ties_even();
    // Beyond that nothing fits, and no fraction is lost below.
    let seconds = if seconds.abs() < 1e19 { seconds as i128 } else { i128::MAX >> 1 };
    let micros = (part(4) * 3_600 + part(5) * 60) * 1_000_000 + seconds;
    let interval =
        || Some(Interval { months: i32::try_from(months).ok()?, days: i32::try_from(days).ok()?, micros: i64::try_from(micros).ok()? });
    given(interval().ok_or_else(interval::out_of_range)?)
}

/// An interval with the units, and the digits of a second, that are said of it.
pub(in crate::expression) fn limited(of: Expr, fields: Fields, digits: Option<u8>) -> Typed {
    let place = |field: IntervalField| UNITS.iter().position(|unit| *unit == field).and_then(|at| i64::try_from(at).ok()).unwrap_or(-1);
    let (first, last) = fields.map_or((-1, -1), |(first, last)| (place(first), place(last)));
    let arguments = vec![of, hidden(first), hidden(last), hidden(digits.map_or(-1, i64::from))];
    immutable("interval", Apply::Strict(limit), arguments, INTERVAL)
}

/// Those that may be said of an interval.
const UNITS: [IntervalField; 6] =
    [IntervalField::Year, IntervalField::Month, IntervalField::Day, IntervalField::Hour, IntervalField::Minute, IntervalField::Second];

fn limit<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let unit = |at: usize| usize::try_from(int(arguments, at)).ok().and_then(|at| UNITS.get(at)).copied();
    let digits = u8::try_from(int(arguments, 3)).ok();
    given(interval::limited(interval_of(arguments, 0), unit(1).zip(unit(2)), digits)?)
}

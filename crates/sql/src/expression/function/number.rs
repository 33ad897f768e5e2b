//! Functions of numbers.

use super::{Apply, Function, Volatility, decimal_of, double, hidden, immutable, int};
use crate::expression::arithmetic::{self, checked};
use crate::expression::datum::Datum;
use crate::expression::{Expr, ParamTypes, Typed, decimal, make, read, types};
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, Value, ValueRef};
use std::hash::{BuildHasher, Hasher, RandomState};

type Args<'x, 'a> = &'x mut [Datum<'a>];

fn from_double<'a>(value: f64) -> SqlResult<Datum<'a>> {
    Ok(Datum::Ref(ValueRef::Double(value)))
}

/// A function of doubles with PostgreSQL's errors.
pub(super) fn sqrt<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let value = double(arguments, 0);
    if value < 0.0 {
        return Err(SqlError::new("2201F", "cannot take square root of a negative number"));
    }
    from_double(value.sqrt())
}

pub(super) fn cbrt<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    from_double(double(arguments, 0).cbrt())
}

pub(super) fn exp<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let value = double(arguments, 0);
    from_double(checked(value.exp(), [value, 0.0], value.is_infinite())?)
}

fn logarithm(value: f64, of: impl Fn(f64) -> f64) -> SqlResult<f64> {
    if value == 0.0 {
        return Err(SqlError::new("2201E", "cannot take logarithm of zero"));
    }
    if value < 0.0 {
        return Err(SqlError::new("2201E", "cannot take logarithm of a negative number"));
    }
    Ok(of(value))
}

pub(super) fn ln<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    from_double(logarithm(double(arguments, 0), f64::ln)?)
}

pub(super) fn log10<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    from_double(logarithm(double(arguments, 0), f64::log10)?)
}

/// log(base, x)
pub(super) fn log<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let (base, value) = (logarithm(double(arguments, 0), f64::ln)?, logarithm(double(arguments, 1), f64::ln)?);
    if base == 0.0 {
        return Err(decimal::division_by_zero());
    }
    from_double(value / base)
}

pub(super) fn power<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    from_double(arithmetic::power(double(arguments, 0), double(arguments, 1))?)
}

pub(super) fn degrees<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    from_double(double(arguments, 0).to_degrees())
}

pub(super) fn radians<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    from_double(double(arguments, 0).to_radians())
}

pub(super) fn pi<'a>(_: &Function, _: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    from_double(std::f64::consts::PI)
}

/// 64 bits that nobody knows: the standard library's seeds, which are the operating system's.
pub(super) fn random_bits() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// In [0, 1).
fn random<'a>(_: &Function, _: &'a [Expr], _: &'a crate::expression::Env<'a>) -> SqlResult<Datum<'a>> {
    from_double((random_bits() >> 11) as f64 / (1u64 << 53) as f64)
}

pub(super) fn make_random() -> Typed {
    let function = Function { name: "random", apply: Apply::Lazy(random), data_type: DataType::Double, volatility: Volatility::Volatile };
    Typed::of(Expr::Call { function, arguments: Vec::new() }, DataType::Double)
}

/// What a function does with a number of any type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    Abs,
    Sign,
    Ceil,
    Floor,
    Round,
    Trunc,
}

fn scale_of(data_type: &DataType) -> i8 {
    if let DataType::Decimal { scale, .. } = data_type { *scale } else { 0 }
}

/// What has no type is a double, as is REAL for all but abs.
fn number(of: Typed, rounding: Rounding, params: &ParamTypes) -> SqlResult<(Expr, DataType)> {
    let of = of.known(params);
    let to = match of.data_type {
        Some(DataType::Real) if rounding != Rounding::Abs => DataType::Double,
        // Of integers these are functions of DOUBLE in PostgreSQL.
        Some(t) if types::is_integer(&t) && rounding != Rounding::Abs => DataType::Double,
        Some(DataType::Decimal { precision, scale }) if scale < 0 => types::decimal_of(precision.saturating_add(scale.unsigned_abs()), 0),
        Some(data_type) => data_type,
        None => DataType::Double,
    };
    let made = make::coerce(of, &to, params)?;
    Ok((made.expr, to))
}

/// abs, sign, ceil, floor, round and trunc of one argument.
pub(super) fn rounded(name: &'static str, rounding: Rounding, of: Typed, params: &ParamTypes) -> SqlResult<Typed> {
    let (expr, data_type) = number(of, rounding, params)?;
    let result = match (rounding, data_type) {
        (Rounding::Abs, same) => same,
        (Rounding::Sign, DataType::Decimal { .. }) => DataType::Decimal { precision: 1, scale: 0 },
        // One digit more than there is before the point: 9.5 becomes 10.
        (_, DataType::Decimal { precision, scale }) => {
            let before = precision.saturating_sub(scale.max(0).unsigned_abs());
            types::decimal_of(before.saturating_add(1), 0)
        }
        (_, other) => other,
    };
    let body = match rounding {
        Rounding::Abs => abs,
        Rounding::Sign => sign,
        Rounding::Ceil => ceil,
        Rounding::Floor => floor,
        Rounding::Round => round,
        Rounding::Trunc => trunc,
    };
    Ok(immutable(name, Apply::Strict(body), vec![expr, hidden(scale_of(&data_type))], result))
}

/// round(x, n) and trunc(x, n), of DECIMAL.
pub(super) fn to_digits(name: &'static str, rounding: Rounding, of: Typed, digits: Typed, params: &ParamTypes) -> SqlResult<Typed> {
    let (precision, scale) = match of.clone().known(params).data_type {
        Some(data_type) => types::as_decimal(&data_type),
        None => Some((38, decimal::QUOTIENT_SCALE)),
    }
    .ok_or_else(|| SqlError::new("42883", format!("function {name}(double precision, integer) does not exist")))?;
    let of = make::coerce(of, &DataType::Decimal { precision, scale: scale.cast_signed() }, params)?;
    let digits = make::coerce(digits, &DataType::Integer, params)?;
    // The digits that are asked for are those of the type, if they are known; else it keeps all that there are.
    let to_scale = match digits.literal() {
        Some(Value::Int(digits)) => u8::try_from((*digits).clamp(0, 38)).unwrap_or(0),
        _ => scale,
    };
    let result = types::decimal_of((precision - scale).saturating_add(1), to_scale);
    let body = if rounding == Rounding::Round { round_to } else { trunc_to };
    Ok(immutable(name, Apply::Strict(body), vec![of.expr, digits.expr, hidden(scale.cast_signed())], result))
}

/// A number that is one of these, worked on as what it is.
fn each<'a>(
    function: &Function,
    arguments: &[Datum<'a>],
    of_double: impl Fn(f64) -> f64,
    of_decimal: impl Fn(i128, i8) -> SqlResult<i128>,
) -> SqlResult<Datum<'a>> {
    let scale = i8::try_from(int(arguments, 1)).unwrap_or(0);
    Ok(Datum::Ref(match arguments.first().map_or(ValueRef::Null, Datum::as_ref) {
        ValueRef::Decimal(value) => ValueRef::Decimal(decimal::checked(of_decimal(value, scale)?)?),
        ValueRef::Int(value) => ValueRef::Int(read::fit_integer(of_decimal(value.into(), 0)?, &function.data_type)?),
        ValueRef::Double(value) => ValueRef::Double(of_double(value)),
        ValueRef::Real(value) => ValueRef::Real(of_double(value.into()) as f32),
        _ => ValueRef::Null,
    }))
}

fn abs<'a>(function: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    each(function, arguments, f64::abs, |value, _| value.checked_abs().ok_or_else(decimal::too_large))
}

fn sign<'a>(function: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let of_double = |value: f64| if value == 0.0 || value.is_nan() { value } else { value.signum() };
    each(function, arguments, of_double, |value, _| Ok(value.signum()))
}

/// Whole numbers: the quotient rounded down, and what is left.
fn whole(value: i128, scale: i8) -> (i128, bool) {
    match 10i128.checked_pow(u32::from(scale.max(0).unsigned_abs())) {
        Some(unit) => (value.div_euclid(unit), value.rem_euclid(unit) != 0),
        None => (0, value != 0),
    }
}

fn ceil<'a>(function: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    each(function, arguments, f64::ceil, |value, scale| {
        let (down, rest) = whole(value, scale);
        Ok(down + i128::from(rest))
    })
}

fn floor<'a>(function: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    each(function, arguments, f64::floor, |value, scale| Ok(whole(value, scale).0))
}

fn round<'a>(function: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    each(function, arguments, f64::round_ties_even, |value, scale| decimal::rescale(value, scale, 0))
}

fn trunc<'a>(function: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    each(function, arguments, f64::trunc, |value, scale| {
        let (down, rest) = whole(value, scale);
        Ok(if value < 0 { down + i128::from(rest) } else { down })
    })
}

/// Rounded to digits, or cut, and then of the scale of the result.
fn at_digits<'a>(function: &Function, arguments: &[Datum<'_>], to_scale: impl Fn(i128, i8, i8) -> SqlResult<i128>) -> SqlResult<Datum<'a>> {
    let scale = i8::try_from(int(arguments, 2)).unwrap_or(0);
    let digits = i8::try_from(int(arguments, 1).clamp(-100, 100)).unwrap_or(0).min(scale);
    let value = to_scale(decimal_of(arguments, 0), scale, digits)?;
    Ok(Datum::Ref(ValueRef::Decimal(decimal::checked(decimal::rescale(value, digits, scale_of(&function.data_type))?)?)))
}

fn round_to<'a>(function: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    at_digits(function, arguments, decimal::rescale)
}

fn trunc_to<'a>(function: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    at_digits(function, arguments, |value, from, to| {
        let cut = u32::try_from(i32::from(from) - i32::from(to)).unwrap_or(0);
        Ok(10i128.checked_pow(cut).map_or(0, |unit| value / unit))
    })
}

/// Greatest common divisor, by Euclid; 0 of two zeros.
fn divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Two integers without their signs: below 2^64.
fn sizes(arguments: Args<'_, '_>) -> (u128, u128) {
    (int(arguments, 0).unsigned_abs().into(), int(arguments, 1).unsigned_abs().into())
}

fn from_size<'a>(size: u128, function: &Function) -> SqlResult<Datum<'a>> {
    Ok(Datum::from_int(read::fit_integer(i128::try_from(size).unwrap_or(i128::MAX), &function.data_type)?))
}

pub(super) fn gcd<'a>(function: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let (a, b) = sizes(arguments);
    from_size(divisor(a, b), function)
}

/// Least common multiple.
pub(super) fn lcm<'a>(function: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let (a, b) = sizes(arguments);
    from_size(a.checked_div(divisor(a, b)).unwrap_or(0) * b, function)
}

/// In which of so many ranges of the same width between two bounds a number lies, counted from 1: 0 below all, one more above. Bounds may descend.
pub(super) fn width_bucket<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let (value, low, high, count) = (double(arguments, 0), double(arguments, 1), double(arguments, 2), int(arguments, 3));
    let refuse = |what: &str| Err(SqlError::new("2201G", what.to_owned()));
    if count <= 0 {
        return refuse("count must be greater than zero");
    }
    if value.is_nan() || low.is_nan() || high.is_nan() {
        return refuse("operand, lower bound, and upper bound cannot be NaN");
    }
    if low.is_infinite() || high.is_infinite() {
        return refuse("lower and upper bounds must be finite");
    }
    if low == high {
        return refuse("lower bound cannot equal upper bound");
    }
    let (below, above) = if low < high { (value < low, value >= high) } else { (value > low, value <= high) };
    let bucket = match (below, above) {
        (true, _) => 0,
        (_, true) => count + 1,
        // Halves do not overflow.
        _ => ((((value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0)) * count as f64) as i64 + 1).min(count),
    };
    Ok(Datum::from_int(read::fit_integer(bucket.into(), &DataType::Integer)?))
}

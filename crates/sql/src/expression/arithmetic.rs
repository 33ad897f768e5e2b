//! Arithmetic on values whose types are known.
//!
//! Invariant: the operands are what [`Operands`] says. A result out of range is an error, never a wrapped or infinite number.

use super::datum::Datum;
use super::{calendar, decimal, interval, read};
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, Interval, TimeUnit, Value, ValueRef};

/// An operator between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
}

impl Operation {
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Operation::Add => "+",
            Operation::Subtract => "-",
            Operation::Multiply => "*",
            Operation::Divide => "/",
            Operation::Remainder => "%",
            Operation::Power => "^",
            Operation::BitAnd => "&",
            Operation::BitOr => "|",
            Operation::BitXor => "#",
            Operation::ShiftLeft => "<<",
            Operation::ShiftRight => ">>",
        }
    }
}

/// What an operation is done on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operands {
    /// Both of this integer type, as is the result. The second operand of a shift is any integer.
    Integers(DataType),
    /// Scales of left, right and result.
    Decimals {
        left: u8,
        right: u8,
        scale: u8,
    },
    Reals,
    Doubles,
    /// DATE and an integer (the second operand), giving DATE.
    DateAndDays,
    /// Two DATEs, giving INTEGER.
    Dates,
    /// DATE and TIME of this unit, giving TIMESTAMP of it.
    DateAndTime(TimeUnit),
    /// A TIMESTAMP or TIME of this type and an INTERVAL, giving the same type.
    MomentAndInterval(DataType),
    /// Two TIMESTAMPs of this unit, giving INTERVAL.
    Timestamps(TimeUnit),
    /// Two TIMEs of this unit, giving INTERVAL.
    Times(TimeUnit),
    /// Two INTERVALs, giving INTERVAL.
    Intervals,
    /// INTERVAL and DOUBLE, giving INTERVAL.
    IntervalAndNumber,
}

fn float_overflow() -> SqlError {
    SqlError::new("22003", "value out of range: overflow")
}

fn float_underflow() -> SqlError {
    SqlError::new("22003", "value out of range: underflow")
}

/// A result that is finite unless an operand is not, and 0 only where it may be.
pub(super) fn checked(result: f64, operands: [f64; 2], may_vanish: bool) -> SqlResult<f64> {
    if result.is_infinite() && operands.iter().all(|operand| !operand.is_infinite()) {
        return Err(float_overflow());
    }
    if result == 0.0 && !may_vanish {
        return Err(float_underflow());
    }
    Ok(result)
}

fn doubles(operation: Operation, a: f64, b: f64) -> SqlResult<f64> {
    match operation {
        Operation::Add => checked(a + b, [a, b], true),
        Operation::Subtract => checked(a - b, [a, b], true),
        Operation::Multiply => checked(a * b, [a, b], a == 0.0 || b == 0.0),
        Operation::Divide if b == 0.0 && !a.is_nan() => Err(decimal::division_by_zero()),
        Operation::Divide => checked(a / b, [a, b], a == 0.0 || b.is_infinite()),
        Operation::Power => power(a, b),
        _ => Err(impossible()),
    }
}

/// `a` to the power of `b`, with PostgreSQL's errors.
pub(super) fn power(a: f64, b: f64) -> SqlResult<f64> {
    if a == 0.0 && b < 0.0 {
        return Err(SqlError::new("2201F", "zero raised to a negative power is undefined"));
    }
    if a < 0.0 && b.is_finite() && b.fract() != 0.0 {
        return Err(SqlError::new("2201F", "a negative number raised to a non-integer power yields a complex result"));
    }
    checked(a.powf(b), [a, b], a == 0.0 || a.is_infinite() || b.is_infinite())
}

fn impossible() -> SqlError {
    SqlError::new("XX000", "operation on operands that it is not defined for")
}

fn integers(operation: Operation, a: i64, b: i64, data_type: &DataType) -> SqlResult<i64> {
    let bits = match data_type {
        DataType::SmallInt => 16,
        DataType::Integer => 32,
        _ => 64,
    };
    let wide = match operation {
        Operation::Add => i128::from(a) + i128::from(b),
        Operation::Subtract => i128::from(a) - i128::from(b),
        Operation::Multiply => i128::from(a) * i128::from(b),
        Operation::Divide | Operation::Remainder if b == 0 => return Err(decimal::division_by_zero()),
        Operation::Divide => i128::from(a) / i128::from(b),
        Operation::Remainder => i128::from(a) % i128::from(b),
        Operation::BitAnd => (a & b).into(),
        Operation::BitOr => (a | b).into(),
        Operation::BitXor => (a ^ b).into(),
        // As the processor does it: by the low bits of the distance, and bits that leave the type are gone.
        Operation::ShiftLeft => return Ok(sign_extended(a.wrapping_shl((b & 63) as u32 & shift_mask(bits)), bits)),
        Operation::ShiftRight => return Ok(a >> ((b & 63) as u32 & shift_mask(bits)).min(63)),
        Operation::Power => return Err(impossible()),
    };
    read::fit_integer(wide, data_type)
}

/// A distance is taken by 32 for the smaller types.
fn shift_mask(bits: u32) -> u32 {
    if bits == 64 { 63 } else { 31 }
}

fn sign_extended(value: i64, bits: u32) -> i64 {
    let unused = 64 - bits;
    (value << unused) >> unused
}

/// The result of an operation on two values that are not NULL.
pub(crate) fn apply<'a>(operation: Operation, on: &Operands, left: ValueRef<'_>, right: ValueRef<'_>) -> SqlResult<Datum<'a>> {
    Ok(Datum::Ref(match (on, left, right) {
        (Operands::Integers(data_type), ValueRef::Int(a), ValueRef::Int(b)) => ValueRef::Int(integers(operation, a, b, data_type)?),
        (Operands::Decimals { left, right, scale }, ValueRef::Decimal(a), ValueRef::Decimal(b)) => {
            ValueRef::Decimal(decimal::checked(decimals(operation, (a, *left), (b, *right), *scale)?)?)
        }
        (Operands::Reals, ValueRef::Real(a), ValueRef::Real(b)) => {
            // In doubles, and rounded once: those have more than twice the digits.
            let result = doubles(operation, a.into(), b.into())?;
            ValueRef::Real(if result.is_infinite() { result as f32 } else { super::cast::to_real(result)? })
        }
        (Operands::Doubles, ValueRef::Double(a), ValueRef::Double(b)) => ValueRef::Double(doubles(operation, a, b)?),
        (Operands::DateAndDays, ValueRef::Int(day), ValueRef::Int(days)) => {
            let moved = if operation == Operation::Add { day.checked_add(days) } else { day.checked_sub(days) };
            let moved = moved.filter(|day| i32::try_from(*day).is_ok());
            ValueRef::Int(moved.ok_or_else(|| calendar::out_of_range(&DataType::Date))?)
        }
        (Operands::Dates, ValueRef::Int(a), ValueRef::Int(b)) => {
            ValueRef::Int(read::fit_integer(i128::from(a) - i128::from(b), &DataType::Integer)?)
        }
        (Operands::DateAndTime(unit), ValueRef::Int(day), ValueRef::Int(time)) => {
            let moment = day.checked_mul(unit.per_day()).and_then(|midnight| midnight.checked_add(time));
            ValueRef::Int(moment.ok_or_else(|| calendar::out_of_range(&DataType::Timestamp { unit: *unit, with_zone: false }))?)
        }
        (Operands::MomentAndInterval(data_type), ValueRef::Int(moment), ValueRef::Interval(by)) => {
            let by = if operation == Operation::Subtract { by.checked_neg().ok_or_else(interval::out_of_range)? } else { by };
            ValueRef::Int(moved(moment, by, data_type).ok_or_else(|| calendar::out_of_range(data_type))?)
        }
        (Operands::Timestamps(unit), ValueRef::Int(a), ValueRef::Int(b)) => ValueRef::Interval(interval::between(a, b, *unit)?),
        (Operands::Times(unit), ValueRef::Int(a), ValueRef::Int(b)) => {
            let micros = i64::try_from(interval::micros_of(i128::from(a) - i128::from(b), *unit));
            ValueRef::Interval(Interval { micros: micros.map_err(|_| interval::out_of_range())?, ..Interval::ZERO })
        }
        (Operands::Intervals, ValueRef::Interval(a), ValueRef::Interval(b)) => {
            let all = if operation == Operation::Subtract { a.checked_sub(b) } else { a.checked_add(b) };
            ValueRef::Interval(all.ok_or_else(interval::out_of_range)?)
        }
        (Operands::IntervalAndNumber, ValueRef::Interval(of), ValueRef::Double(by)) => ValueRef::Interval(match operation {
            Operation::Divide => interval::divided(of, by)?,
            _ => interval::multiplied(of, by)?,
        }),
        _ => return Err(impossible()),
    }))
}

/// A TIMESTAMP or TIME and an interval: months first, then days, then time, as PostgreSQL adds them. Of a TIME only time counts, and goes around.
fn moved(moment: i64, by: Interval, data_type: &DataType) -> Option<i64> {
    let units = |unit: TimeUnit| i128::from(by.micros) * i128::from(unit.per_second()) / 1_000_000;
    match *data_type {
        DataType::Timestamp { unit, .. } => {
            let (day, time) = (moment.div_euclid(unit.per_day()), moment.rem_euclid(unit.per_day()));
            let day = if by.months == 0 { day } else { calendar::add_months(day, by.months.into())? };
            let all = (i128::from(day) + i128::from(by.days)) * i128::from(unit.per_day()) + i128::from(time) + units(unit);
            i64::try_from(all).ok()
        }
        DataType::Time { unit } => i64::try_from((i128::from(moment) + units(unit)).rem_euclid(i128::from(unit.per_day()))).ok(),
        _ => None,
    }
}

fn decimals(operation: Operation, (a, left): (i128, u8), (b, right): (i128, u8), scale: u8) -> SqlResult<i128> {
    let aligned = |value: i128, from: u8| decimal::rescale(value, from.cast_signed(), scale.cast_signed());
    Ok(match operation {
        Operation::Add => aligned(a, left)?.checked_add(aligned(b, right)?).ok_or_else(decimal::too_large)?,
        Operation::Subtract => aligned(a, left)?.checked_sub(aligned(b, right)?).ok_or_else(decimal::too_large)?,
        Operation::Multiply => decimal::multiply(a, b, left + right, scale)?,
        Operation::Divide => decimal::divide(a, b, i16::from(scale) + i16::from(right) - i16::from(left))?,
        Operation::Remainder if b == 0 => return Err(decimal::division_by_zero()),
        Operation::Remainder => aligned(a, left)? % aligned(b, right)?,
        _ => return Err(impossible()),
    })
}

/// The negative of a value that is not NULL.
pub(super) fn negate(value: ValueRef<'_>, data_type: &DataType) -> SqlResult<Value> {
    Ok(match value {
        ValueRef::Int(value) => Value::Int(read::fit_integer(-i128::from(value), data_type)?),
        ValueRef::Decimal(value) => Value::Decimal(value.checked_neg().ok_or_else(decimal::too_large)?),
        ValueRef::Real(value) => Value::Real(-value),
        ValueRef::Double(value) => Value::Double(-value),
        ValueRef::Interval(value) => Value::Interval(value.checked_neg().ok_or_else(interval::out_of_range)?),
        _ => return Err(impossible()),
    })
}

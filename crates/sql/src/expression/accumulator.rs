//! The values of a group, taken in one by one.
//!
//! Invariants: NULLs do not count; without values the result is NULL, of count 0. A sum of integers or decimals is exact: it is held in 128 bits and
//! an error when it leaves them, or its type in the end.

use super::aggregate::{Aggregate, AggregateKind};
use super::arithmetic::checked;
use super::regression::Pairs;
use super::{cast, decimal, interval, read};
use crate::bind::SortKey;
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, Interval, Value, ValueRef};
use std::collections::BTreeSet;

/// Bytes that a value of a set takes beside its own: its place in a node.
const ENTRY_BYTES: usize = 48;

/// The most bytes of the text that string_agg makes.
const TEXT_BYTES_MAX: usize = 256 << 20;

#[derive(Debug)]
enum State {
    Count(i64),
    /// Of integers and decimals, unscaled.
    Whole {
        sum: i128,
        count: i64,
    },
    Float {
        sum: f64,
        count: i64,
    },
    /// Of the parts of intervals, each by itself.
    Interval {
        months: i128,
        days: i128,
        micros: i128,
        count: i64,
    },
    /// The least or greatest until now.
    Extreme {
        best: Value,
        least: bool,
    },
    /// All true, or one.
    Truth {
        so_far: Option<bool>,
        all: bool,
    },
    Text {
        text: Option<String>,
    },
    /// Texts, and what they are to be put in order by.
    Gathered {
        texts: Vec<(Vec<Value>, String)>,
        bytes: usize,
    },
    /// Number, sum, and sum of squares of the differences from the mean, as Youngs and Cramer keep them: as exact as sums are.
    Moments {
        count: f64,
        sum: f64,
        squares: f64,
    },
    Pairs(Pairs),
    Bits {
        bits: Option<i64>,
        with: fn(i64, i64) -> i64,
    },
}

impl State {
    const NO_INTERVALS: State = State::Interval { months: 0, days: 0, micros: 0, count: 0 };
}

fn small(part: i128) -> Option<i32> {
    i32::try_from(part).ok()
}

/// What has been taken in of a group for one aggregate.
#[derive(Debug)]
pub(crate) struct Accumulator {
    state: State,
    kind: AggregateKind,
    data_type: DataType,
    /// What has been there already, of DISTINCT.
    seen: Option<BTreeSet<Value>>,
    /// Of `seen`.
    seen_bytes: usize,
}

fn bytes_of(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Text(text) => text.len(),
        ValueRef::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}

/// Puts a text behind others.
fn put_behind(text: &mut Option<String>, separator: &str, value: &str) -> SqlResult<()> {
    let text = match text {
        Some(text) => {
            text.push_str(separator);
            text
        }
        None => text.insert(String::new()),
    };
    if text.len() + value.len() > TEXT_BYTES_MAX {
        return Err(SqlError::new("54000", "string_agg makes a text that is too long"));
    }
    text.push_str(value);
    Ok(())
}

/// Texts one behind the other, in the order of the values that they came with.
fn in_order(mut texts: Vec<(Vec<Value>, String)>, separator: &str, order: &[SortKey]) -> SqlResult<Value> {
    texts.sort_by(|(a, _), (b, _)| SortKey::compare(a, b, order));
    let mut all = None;
    for (_, text) in texts {
        put_behind(&mut all, separator, &text)?;
    }
    Ok(all.map_or(Value::Null, Value::Text))
}

/// The result of a sum or an average of integers or decimals, of what was added up and how many there were.
pub(crate) fn summed(aggregate: &Aggregate, sum: i128, count: i64) -> SqlResult<Value> {
    let mut all = Accumulator::new(aggregate);
    match &mut all.state {
        State::Whole { sum: own, count: own_count } => (*own, *own_count) = (sum, count),
        _ => return Err(SqlError::new("XX000", "an aggregate that adds nothing up")),
    }
    all.value()
}

/// A sum that leaves 128 bits.
pub(crate) fn sum_overflow() -> SqlError {
    decimal::too_large()
}

impl Accumulator {
    /// Counts rows, for `count(*)`.
    pub(crate) fn count_rows(&mut self, rows: u64) -> SqlResult<()> {
        let State::Count(count) = &mut self.state else { return Err(SqlError::new("XX000", "rows are counted by count(*) alone")) };
        *count = count.checked_add_unsigned(rows).ok_or_else(|| SqlError::out_of_range("bigint"))?;
        Ok(())
    }

    /// Takes in whole numbers, or decimal ones without their point, all at once, if that is what is added up here. False: nothing was done.
    pub(crate) fn add_whole(&mut self, numbers: &[i64]) -> SqlResult<bool> {
        match &mut self.state {
            State::Count(count) if self.seen.is_none() => {
                *count += numbers.len() as i64;
                Ok(true)
            }
            State::Whole { sum, count } if self.seen.is_none() => {
                // No number of rows leaves 128 bits so soon.
                let all: i128 = numbers.iter().map(|number| i128::from(*number)).sum();
                *sum = sum.checked_add(all).ok_or_else(|| SqlError::out_of_range("numeric"))?;
                *count += numbers.len() as i64;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    pub(crate) fn new(aggregate: &Aggregate) -> Accumulator {
        let float = matches!(aggregate.data_type, DataType::Real | DataType::Double);
        let state = match aggregate.kind {
            AggregateKind::Count => State::Count(0),
            AggregateKind::FloatAverage => State::Float { sum: 0.0, count: 0 },
            AggregateKind::Sum if float => State::Float { sum: 0.0, count: 0 },
            AggregateKind::Sum if aggregate.data_type == DataType::Interval => State::NO_INTERVALS,
            AggregateKind::IntervalAverage => State::NO_INTERVALS,
            AggregateKind::Sum | AggregateKind::Average { .. } => State::Whole { sum: 0, count: 0 },
            AggregateKind::Min => State::Extreme { best: Value::Null, least: true },
            AggregateKind::Max => State::Extreme { best: Value::Null, least: false },
            AggregateKind::BoolAnd => State::Truth { so_far: None, all: true },
            AggregateKind::BoolOr => State::Truth { so_far: None, all: false },
            AggregateKind::StringAgg { ref order, .. } if !order.is_empty() => State::Gathered { texts: Vec::new(), bytes: 0 },
            AggregateKind::StringAgg { .. } => State::Text { text: None },
            AggregateKind::Variance { .. } => State::Moments { count: 0.0, sum: 0.0, squares: 0.0 },
            AggregateKind::Regression(_) => State::Pairs(Pairs::default()),
            AggregateKind::BitAnd => State::Bits { bits: None, with: |a, b| a & b },
            AggregateKind::BitOr => State::Bits { bits: None, with: |a, b| a | b },
            AggregateKind::BitXor => State::Bits { bits: None, with: |a, b| a ^ b },
        };
        let seen = aggregate.distinct.then(BTreeSet::new);
        Accumulator { state, kind: aggregate.kind.clone(), data_type: aggregate.data_type, seen, seen_bytes: 0 }
    }

    /// Takes a value in. count(*) is told of each row by a value that is not NULL.
    pub(crate) fn add(&mut self, value: ValueRef<'_>) -> SqlResult<()> {
        if value.is_null() {
            return Ok(());
        }
        if let Some(seen) = &mut self.seen {
            if !seen.insert(value.to_owned()) {
                return Ok(());
            }
            self.seen_bytes += ENTRY_BYTES + size_of::<Value>() + bytes_of(value);
        }
        match (&mut self.state, value) {
            (State::Count(count), _) => *count += 1,
            (State::Whole { sum, count }, ValueRef::Int(value)) => {
                *sum = sum.checked_add(value.into()).ok_or_else(decimal::too_large)?;
                *count += 1;
            }
            (State::Whole { sum, count }, ValueRef::Decimal(value)) => {
                *sum = sum.checked_add(value).ok_or_else(decimal::too_large)?;
                *count += 1;
            }
            (State::Float { sum, count }, ValueRef::Double(value)) => {
                *sum = checked(*sum + value, [*sum, value], true)?;
                *count += 1;
            }
            (State::Float { sum, count }, ValueRef::Real(value)) => {
                *sum += f64::from(value);
                *count += 1;
            }
            (State::Interval { months, days, micros, count }, ValueRef::Interval(value)) => {
                // No number of rows leaves 128 bits.
                *months += i128::from(value.months);
                *days += i128::from(value.days);
                *micros += i128::from(value.micros);
                *count += 1;
            }
            (State::Extreme { best, least }, value) => {
                let before = best.as_ref();
                let better = if *least { value < before } else { value > before };
                if before.is_null() || better {
                    *best = value.to_owned();
                }
            }
            (State::Truth { so_far, all }, ValueRef::Boolean(value)) => {
                *so_far = Some(so_far.map_or(value, |before| if *all { before && value } else { before || value }));
            }
            (State::Text { text }, ValueRef::Text(value)) => {
                if let AggregateKind::StringAgg { separator, .. } = &self.kind {
                    put_behind(text, separator, value)?;
                }
            }
            (State::Moments { count, sum, squares }, ValueRef::Double(value)) => {
                *count += 1.0;
                *sum += value;
                if *count > 1.0 {
                    let difference = value * *count - *sum;
                    *squares += difference * difference / (*count * (*count - 1.0));
                } else if !value.is_finite() {
                    // Nothing is known of how far others are from it.
                    *squares = f64::NAN;
                }
            }
            (State::Pairs(pairs), ValueRef::Bytes(pair)) => pairs.add(pair)?,
            (State::Bits { bits, with }, ValueRef::Int(value)) => *bits = Some(bits.map_or(value, |before| with(before, value))),
            _ => return Err(SqlError::new("XX000", format!("an aggregate of {} was given {}", self.data_type, value.kind()))),
        }
        Ok(())
    }

    /// Takes a text in that is to be put in order by these values.
    pub(crate) fn add_in_order(&mut self, value: ValueRef<'_>, by: Vec<Value>) -> SqlResult<()> {
        let ValueRef::Text(text) = value else { return Ok(()) };
        if let Some(seen) = &mut self.seen {
            if !seen.insert(value.to_owned()) {
                return Ok(());
            }
            self.seen_bytes += ENTRY_BYTES + size_of::<Value>() + bytes_of(value);
        }
        let State::Gathered { texts, bytes } = &mut self.state else { return Err(SqlError::new("XX000", "texts without an order")) };
        *bytes += size_of::<(Vec<Value>, String)>() + text.len();
        *bytes += by.iter().map(|value| size_of::<Value>() + bytes_of(value.as_ref())).sum::<usize>();
        texts.push((by, text.to_owned()));
        Ok(())
    }

    /// Can what was taken in be taken out again, exactly?
    pub(crate) fn is_exact(&self) -> bool {
        self.seen.is_none() && matches!(self.state, State::Count(_) | State::Whole { .. } | State::Interval { .. })
    }

    /// Takes a value out that was taken in, if that [is exact](Self::is_exact).
    pub(crate) fn remove(&mut self, value: ValueRef<'_>) -> SqlResult<()> {
        match (&mut self.state, value) {
            (_, ValueRef::Null) => {}
            (State::Count(count), _) => *count -= 1,
            (State::Whole { sum, count }, ValueRef::Int(value)) => {
                *sum = sum.checked_sub(value.into()).ok_or_else(decimal::too_large)?;
                *count -= 1;
            }
            (State::Whole { sum, count }, ValueRef::Decimal(value)) => {
                *sum = sum.checked_sub(value).ok_or_else(decimal::too_large)?;
                *count -= 1;
            }
            (State::Interval { months, days, micros, count }, ValueRef::Interval(value)) => {
                *months -= i128::from(value.months);
                *days -= i128::from(value.days);
                *micros -= i128::from(value.micros);
                *count -= 1;
            }
            _ => return Err(SqlError::new("XX000", "a value cannot be taken out of this aggregate")),
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> SqlResult<Value> {
        match self.state {
            State::Extreme { best, .. } => Ok(best),
            State::Text { text } => Ok(text.map_or(Value::Null, Value::Text)),
            State::Gathered { texts, .. } => {
                let AggregateKind::StringAgg { separator, order } = self.kind else { return Ok(Value::Null) };
                in_order(texts, &separator, &order)
            }
            _ => self.value(),
        }
    }

    /// What comes of all that has been taken in until now.
    pub(crate) fn value(&self) -> SqlResult<Value> {
        Ok(match &self.state {
            State::Count(count) => Value::Int(*count),
            State::Whole { count: 0, .. } | State::Float { count: 0, .. } | State::Interval { count: 0, .. } => Value::Null,
            State::Interval { months, days, micros, count } => {
                let all = || Some(Interval { months: small(*months)?, days: small(*days)?, micros: i64::try_from(*micros).ok()? });
                let sum = all().ok_or_else(interval::out_of_range)?;
                let is_average = self.kind == AggregateKind::IntervalAverage;
                Value::Interval(if is_average { interval::divided(sum, *count as f64)? } else { sum })
            }
            State::Whole { sum, count } => match (&self.kind, self.data_type) {
                (AggregateKind::Average { from, to }, _) => {
                    Value::Decimal(decimal::divide(*sum, (*count).into(), i16::from(*to) - i16::from(*from))?)
                }
                (_, DataType::Decimal { .. }) => Value::Decimal(decimal::checked(*sum)?),
                (_, integer) => Value::Int(read::fit_integer(*sum, &integer)?),
            },
            State::Float { sum, count } => match (&self.kind, self.data_type) {
                (AggregateKind::FloatAverage, _) => Value::Double(*sum / *count as f64),
                (_, DataType::Real) => Value::Real(if sum.is_infinite() || *sum == 0.0 { *sum as f32 } else { cast::to_real(*sum)? }),
                _ => Value::Double(*sum),
            },
            State::Extreme { best, .. } => best.clone(),
            State::Truth { so_far, .. } => so_far.map_or(Value::Null, Value::Boolean),
            State::Text { text } => text.clone().map_or(Value::Null, Value::Text),
            State::Gathered { texts, .. } => match &self.kind {
                AggregateKind::StringAgg { separator, order } => in_order(texts.clone(), separator, order)?,
                _ => Value::Null,
            },
            State::Moments { count, squares, .. } => match self.kind {
                AggregateKind::Variance { sample, root } => {
                    let degrees = if sample { count - 1.0 } else { *count };
                    let variance = squares / degrees;
                    match (degrees > 0.0, root) {
                        (false, _) => Value::Null,
                        (true, false) => Value::Double(variance),
                        (true, true) => Value::Double(variance.sqrt()),
                    }
                }
                _ => Value::Null,
            },
            State::Pairs(pairs) => match self.kind {
                AggregateKind::Regression(of) => pairs.value(of),
                _ => Value::Null,
            },
            State::Bits { bits, .. } => bits.map_or(Value::Null, Value::Int),
        })
    }

    /// Does it keep more than one value: those of DISTINCT, or texts that are put together?
    pub(crate) fn gathers(&self) -> bool {
        self.seen.is_some() || matches!(self.state, State::Text { .. } | State::Gathered { .. })
    }

    /// Memory that it takes beside itself: of values of DISTINCT, and of texts.
    pub(crate) fn grown_bytes(&self) -> usize {
        let of_state = match &self.state {
            State::Text { text } => text.as_ref().map_or(0, String::capacity),
            State::Gathered { bytes, .. } => *bytes,
            State::Extreme { best, .. } => bytes_of(best.as_ref()),
            _ => 0,
        };
        of_state + self.seen_bytes
    }
}

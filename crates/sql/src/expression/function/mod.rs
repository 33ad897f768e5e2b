//! Functions of SQL: what each does with its arguments, and how a name and operands become a call.
//!
//! * `call`: names, overloads, types of results
//! * `text`, `number`, `time`, `interval`, `general`: what is done with values
//! * `bytes`: bytes as texts, digests
//! * `pattern`: regular expressions; `format`: texts put together; `template`, `number_template`: dates and numbers as a template has them
//! * `internal`: functions without a name, which operators are made of
//!
//! Invariant: the arguments of a call are of the types that its function takes, and its result of that which `data_type` says.

mod bytes;
mod call;
mod format;
mod general;
mod internal;
mod interval;
mod number;
mod number_template;
mod pattern;
mod template;
mod text;
mod time;
mod trigonometry;

pub(crate) use call::call;
pub(crate) use internal::compared_rows;
pub(super) use internal::{compare_decimals, compare_rows, concat, fit_column, pair};
pub(crate) use interval::MAKE_INTERVAL;
pub(super) use interval::limited;

use super::datum::Datum;
use super::{Env, Expr, Typed};
use crate::SqlResult;
use pagefold_types::{DataType, Value};

/// What is done with the values of the arguments, which may be taken away.
type Body = for<'a> fn(&Function, &mut [Datum<'a>]) -> SqlResult<Datum<'a>>;

/// As [`Body`], with arguments that are not evaluated yet.
type LazyBody = for<'a> fn(&Function, &'a [Expr], &'a Env<'a>) -> SqlResult<Datum<'a>>;

/// How a function gets its arguments.
#[derive(Clone, Copy, Debug)]
enum Apply {
    /// NULL if one of them is, without asking the function.
    Strict(Body),
    /// NULLs and all.
    Values(Body),
    /// It evaluates those that it needs.
    Lazy(LazyBody),
}

/// Does a function give the same again?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Volatility {
    /// Always.
    Immutable,
    /// Within a transaction.
    Stable,
    /// Never.
    Volatile,
}

/// A function with its types settled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    apply: Apply,
    data_type: DataType,
    volatility: Volatility,
}

/// The same function, if it gives the same for the same.
impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.name == other.name && self.data_type == other.data_type && !self.is_volatile()
    }
}

impl Function {
    pub(crate) fn is_immutable(&self) -> bool {
        self.volatility == Volatility::Immutable
    }

    /// Of its results.
    pub(crate) fn data_type(&self) -> DataType {
        self.data_type
    }

    /// Does it give another value for each row?
    pub(crate) fn is_volatile(&self) -> bool {
        self.volatility == Volatility::Volatile
    }

    pub(super) fn evaluate<'a>(&self, arguments: &'a [Expr], env: &'a Env<'a>) -> SqlResult<Datum<'a>> {
        /// Those of nearly all functions, without memory of their own.
        const FEW: usize = 4;
        let (body, strict) = match self.apply {
            Apply::Strict(body) => (body, true),
            Apply::Values(body) => (body, false),
            Apply::Lazy(body) => return body(self, arguments, env),
        };
        let mut few = [Datum::NULL; FEW];
        let mut many = Vec::new();
        let values = match few.get_mut(..arguments.len()) {
            Some(values) => values,
            None => {
                many.resize_with(arguments.len(), || Datum::NULL);
                many.as_mut_slice()
            }
        };
        for (value, argument) in values.iter_mut().zip(arguments) {
            *value = argument.evaluate_ref(env)?;
            if strict && value.is_null() {
                return Ok(Datum::NULL);
            }
        }
        body(self, values)
    }
}

/// A call that does the same with the same values.
fn immutable(name: &'static str, apply: Apply, arguments: Vec<Expr>, data_type: DataType) -> Typed {
    let function = Function { name, apply, data_type, volatility: Volatility::Immutable };
    Typed::of(Expr::Call { function, arguments }.folded(), data_type)
}

/// An argument that no one writes: a scale, say.
fn hidden(value: impl Into<i64>) -> Expr {
    Expr::Literal(Value::Int(value.into()))
}

/// Takes an argument away.
fn take<'a>(arguments: &mut [Datum<'a>], at: usize) -> Datum<'a> {
    arguments.get_mut(at).map_or(Datum::NULL, |argument| std::mem::replace(argument, Datum::NULL))
}

/// An integer argument; 0 where there is none.
fn int(arguments: &[Datum<'_>], at: usize) -> i64 {
    arguments.get(at).map_or(0, Datum::int)
}

/// A text argument; empty where there is none.
fn text_of<'d>(arguments: &'d [Datum<'_>], at: usize) -> &'d str {
    arguments.get(at).map_or("", Datum::text)
}

/// An argument as a double.
fn double(arguments: &[Datum<'_>], at: usize) -> f64 {
    arguments.get(at).map_or(f64::NAN, Datum::double)
}

/// A DECIMAL argument; 0 where there is none.
fn decimal_of(arguments: &[Datum<'_>], at: usize) -> i128 {
    match arguments.get(at).map(Datum::as_ref) {
        Some(pagefold_types::ValueRef::Decimal(value)) => value,
        _ => 0,
    }
}

/// An INTERVAL argument; nothing where there is none.
fn interval_of(arguments: &[Datum<'_>], at: usize) -> pagefold_types::Interval {
    match arguments.get(at).map(Datum::as_ref) {
        Some(pagefold_types::ValueRef::Interval(value)) => value,
        _ => pagefold_types::Interval::ZERO,
    }
}

//! Aggregates: names, and the types of arguments and results.
//!
//! | | Of | Gives |
//! |---|---|---|
//! | count | rows, or values | BIGINT |
//! | sum | SMALLINT, INTEGER | BIGINT |
//! | | BIGINT | DECIMAL(38,0) |
//! | | DECIMAL(p,s) | DECIMAL(38,s) |
//! | | REAL, DOUBLE | the same |
//! | avg | integers, DECIMAL(p,s) | DECIMAL(38, s or 16, whichever is more) |
//! | | REAL, DOUBLE | DOUBLE |
//! | sum, avg | INTERVAL | the same |
//! | min, max | anything | the same |
//! | bool_and, every, bool_or | BOOLEAN | the same |
//! | string_agg | text, and what goes between | text |
//! | variance, var_samp, var_pop, stddev, stddev_samp, stddev_pop | numbers | DOUBLE |
//! | corr, covar_pop, covar_samp, regr_avgx, regr_avgy, regr_intercept, regr_r2, regr_slope, regr_sxx, regr_sxy, regr_syy | two numbers | DOUBLE |
//! | regr_count | two numbers | BIGINT |
//! | bit_and, bit_or, bit_xor | integers | the same |

use super::regression::Regression;
use super::types::{self, Context, TEXT};
use super::{Expr, ParamTypes, Typed, decimal, make};
use crate::bind::SortKey;
use crate::{SqlError, SqlResult};
use pagefold_types::{DECIMAL_PRECISION_MAX, DataType, Value};

/// What is computed of the values of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AggregateKind {
    /// Without an argument it counts rows.
    Count,
    Sum,
    /// Of integers and decimals: `from` is the scale of the argument, `to` that of the result.
    Average {
        from: i8,
        to: i8,
    },
    /// Of floating-point numbers.
    FloatAverage,
    /// Of intervals.
    IntervalAverage,
    Min,
    Max,
    /// Are all true?
    BoolAnd,
    /// Is one true?
    BoolOr,
    StringAgg {
        separator: String,
        /// Of the values of `Aggregate::order`; none: as they come.
        order: Vec<SortKey>,
    },
    /// Of doubles.
    Variance {
        sample: bool,
        root: bool,
    },
    /// Of two doubles that are one value.
    Regression(Regression),
    BitAnd,
    BitOr,
    BitXor,
}

impl AggregateKind {
    /// Is it NULL of no rows?
    pub(crate) fn is_null_of_nothing(&self) -> bool {
        !matches!(self, AggregateKind::Count | AggregateKind::Regression(Regression::Count))
    }
}

/// An aggregate with its types settled.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Aggregate {
    pub(crate) kind: AggregateKind,
    /// `None` of count(*).
    pub(crate) argument: Option<Expr>,
    /// What its values are put in order by.
    pub(crate) order: Vec<Expr>,
    pub(crate) distinct: bool,
    pub(crate) data_type: DataType,
}

impl Aggregate {
    fn new(kind: AggregateKind, argument: Option<Expr>, distinct: bool, data_type: DataType) -> Aggregate {
        Aggregate { kind, argument, order: Vec::new(), distinct, data_type }
    }

    /// ORDER BY within its parentheses; what comes of other aggregates does not depend on it.
    ///
    /// # Errors
    /// 42P10 when it is not what DISTINCT leaves.
    pub(crate) fn ordered(mut self, by: Vec<Expr>, keys: Vec<SortKey>) -> SqlResult<Aggregate> {
        if self.distinct && by.iter().any(|expr| Some(expr) != self.argument.as_ref()) {
            let message = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
            return Err(SqlError::new("42P10", message));
        }
        if let AggregateKind::StringAgg { order, .. } = &mut self.kind {
            (*order, self.order) = (keys, by);
        }
        Ok(self)
    }

    /// The expressions of rows that it needs.
    pub(crate) fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.argument.iter().chain(&self.order)
    }

    /// The same, to be changed.
    pub(crate) fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.argument.iter_mut().chain(&mut self.order)
    }
}

const NAMES: &[&str] = &[
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "covar_pop",
    "covar_samp",
    "every",
    "max",
    "min",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "var_pop",
    "var_samp",
    "variance",
];

/// Is there an aggregate of this name? In lower case.
pub(crate) fn is_aggregate(name: &str) -> bool {
    NAMES.contains(&name)
}

fn refused(name: &str, arguments: &[Typed]) -> SqlError {
    let shown: Vec<&str> = arguments.iter().map(|argument| types::name_of(argument.data_type.as_ref())).collect();
    SqlError::new("42883", format!("function {name}({}) does not exist", shown.join(", ")))
        .with_hint("No function matches the given name and argument types. You might need to add explicit type casts.")
}

/// An aggregate by its name, in lower case. No arguments: `count(*)`.
pub(crate) fn aggregate(name: &str, arguments: Vec<Typed>, distinct: bool, params: &ParamTypes) -> SqlResult<Aggregate> {
    let arguments: Vec<Typed> = arguments.into_iter().map(|argument| argument.known(params)).collect();
    let error = refused(name, &arguments);
    let mut rest = arguments.into_iter();
    match (name, rest.next(), rest.next(), rest.next()) {
        ("count", None, None, None) if !distinct => Ok(Aggregate::new(AggregateKind::Count, None, false, DataType::BigInt)),
        ("string_agg", Some(of), Some(separator), None) => string_agg(of, &separator, distinct, params, error),
        (name, Some(y), Some(x), None) => match Regression::named(name) {
            Some(regression) => of_two(regression, (y, x), distinct, params, error),
            None => Err(error),
        },
        (name, Some(of), None, None) if name != "string_agg" && is_aggregate(name) && Regression::named(name).is_none() => {
            of_one(name, of, distinct, params, error)
        }
        _ => Err(error),
    }
}

fn string_agg(of: Typed, separator: &Typed, distinct: bool, params: &ParamTypes, error: SqlError) -> SqlResult<Aggregate> {
    let is_text = |typed: &Typed| typed.data_type.is_none_or(|data_type| data_type.is_text());
    if !is_text(&of) || !is_text(separator) {
        return Err(error);
    }
    let separator = match separator.literal() {
        Some(Value::Text(separator)) => separator.clone(),
        // As PostgreSQL has it: nothing between.
        Some(Value::Null) => String::new(),
        _ => return Err(SqlError::unsupported("string_agg with a separator that is computed")),
    };
    let argument = Some(make::coerce(of, &TEXT, params)?.expr);
    Ok(Aggregate::new(AggregateKind::StringAgg { separator, order: Vec::new() }, argument, distinct, TEXT))
}

fn of_one(name: &str, of: Typed, distinct: bool, params: &ParamTypes, error: SqlError) -> SqlResult<Aggregate> {
    let made = |kind: AggregateKind, argument: Expr, data_type: DataType| Ok(Aggregate::new(kind, Some(argument), distinct, data_type));
    let to = |of: Typed, to: DataType, error: SqlError| {
        let fits = of.data_type.is_none_or(|from| types::castable(&from, &to, Context::Implicit));
        if fits { make::coerce(of, &to, params) } else { Err(error) }
    };
    match name {
        "count" => made(AggregateKind::Count, make::settle(of, params)?.expr, DataType::BigInt),
        "min" | "max" => {
            let of = make::settle(of, params)?;
            let kind = if name == "min" { AggregateKind::Min } else { AggregateKind::Max };
            made(kind, of.expr, of.data_type.unwrap_or(TEXT))
        }
        "bool_and" | "every" => made(AggregateKind::BoolAnd, to(of, DataType::Boolean, error)?.expr, DataType::Boolean),
        "bool_or" => made(AggregateKind::BoolOr, to(of, DataType::Boolean, error)?.expr, DataType::Boolean),
        "sum" | "avg" => of_numbers(name, of, distinct, params, error),
        "bit_and" | "bit_or" | "bit_xor" => {
            let kind = match name {
                "bit_and" => AggregateKind::BitAnd,
                "bit_or" => AggregateKind::BitOr,
                _ => AggregateKind::BitXor,
            };
            match of.data_type {
                Some(data_type) if types::is_integer(&data_type) => made(kind, of.expr, data_type),
                _ => Err(error),
            }
        }
        _ => {
            let (sample, root) = match name {
                "var_pop" => (false, false),
                "stddev_pop" => (false, true),
                "stddev" | "stddev_samp" => (true, true),
                _ => (true, false),
            };
            let of = to(of, DataType::Double, error)?;
            made(AggregateKind::Variance { sample, root }, of.expr, DataType::Double)
        }
    }
}

fn of_two(regression: Regression, (y, x): (Typed, Typed), distinct: bool, params: &ParamTypes, error: SqlError) -> SqlResult<Aggregate> {
    let fits = |of: &Typed| of.data_type.is_none_or(|from| types::castable(&from, &DataType::Double, Context::Implicit));
    if !fits(&y) || !fits(&x) {
        return Err(error);
    }
    let (y, x) = (make::coerce(y, &DataType::Double, params)?, make::coerce(x, &DataType::Double, params)?);
    let (kind, argument) = regression.of(y.expr, x.expr);
    Ok(Aggregate::new(kind, Some(argument), distinct, regression.data_type()))
}

fn of_numbers(name: &str, of: Typed, distinct: bool, params: &ParamTypes, error: SqlError) -> SqlResult<Aggregate> {
    // What has no type is a double: so PostgreSQL resolves sum('1').
    let of = if of.data_type.is_some() { of } else { make::coerce(of, &DataType::Double, params)? };
    if of.data_type == Some(DataType::Interval) {
        let kind = if name == "sum" { AggregateKind::Sum } else { AggregateKind::IntervalAverage };
        return Ok(Aggregate::new(kind, Some(of.expr), distinct, DataType::Interval));
    }
    let Some(from) = of.data_type.filter(types::is_number) else { return Err(error) };
    let of = match from {
        DataType::Decimal { scale, .. } if scale < 0 => {
            make::cast(of, DataType::Decimal { precision: DECIMAL_PRECISION_MAX, scale: 0 }, params)?
        }
        _ => of,
    };
    let scale = if let DataType::Decimal { scale, .. } = from { scale.max(0) } else { 0 };
    let decimal = |scale: i8| DataType::Decimal { precision: DECIMAL_PRECISION_MAX, scale };
    let (kind, data_type) = match (name, from) {
        ("sum", DataType::SmallInt | DataType::Integer) => (AggregateKind::Sum, DataType::BigInt),
        ("sum", DataType::Real | DataType::Double) => (AggregateKind::Sum, from),
        ("sum", _) => (AggregateKind::Sum, decimal(scale)),
        (_, DataType::Real | DataType::Double) => (AggregateKind::FloatAverage, DataType::Double),
        _ => {
            let to = scale.max(decimal::QUOTIENT_SCALE.cast_signed());
            (AggregateKind::Average { from: scale, to }, decimal(to))
        }
    };
    Ok(Aggregate::new(kind, Some(of.expr), distinct, data_type))
}

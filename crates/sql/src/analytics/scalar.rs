//! Expressions of rows, whole columns at a time.
//!
//! Invariants:
//! - both sides of a comparison have one kind, and that is not a floating-point one: those, and all else that is not done by columns, are a [`RowExpr`];
//! - AND, OR and CASE evaluate what stands behind only for rows for which it counts: there an error is one.

use crate::expression::NoSubqueries;
use crate::expression::arithmetic::{self, Operands, Operation};
use crate::expression::{Env, Expr, Now};
use crate::{SqlError, SqlResult};
use pagefold_types::{Comparison, DataType, Value, ValueRef};
use std::sync::Arc;

/// What values of a column are: as [`Value`] has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// [`Value::Boolean`]
    Boolean,
    /// [`Value::Int`]: integers, dates, times
    Int,
    /// [`Value::Decimal`]
    Decimal,
    /// [`Value::Real`]
    Real,
    /// [`Value::Double`]
    Double,
    /// [`Value::Text`]
    Text,
    /// [`Value::Bytes`]
    Bytes,
    /// [`Value::Uuid`]
    Uuid,
}

impl Kind {
    /// Of values of a type; `None` of INTERVAL, which only the row executor knows.
    #[must_use]
    pub fn of(data_type: &DataType) -> Option<Kind> {
        Some(match data_type {
            DataType::Boolean => Kind::Boolean,
            DataType::SmallInt | DataType::Integer | DataType::BigInt => Kind::Int,
            DataType::Date | DataType::Time { .. } | DataType::Timestamp { .. } => Kind::Int,
            DataType::Real => Kind::Real,
            DataType::Double => Kind::Double,
            DataType::Decimal { .. } => Kind::Decimal,
            DataType::Char(_) | DataType::Varchar(_) => Kind::Text,
            DataType::Bytea => Kind::Bytes,
            DataType::Uuid => Kind::Uuid,
            DataType::Interval => return None,
        })
    }

    /// Of a value; `None` of NULL, and of intervals.
    #[must_use]
    pub fn of_value(value: &Value) -> Option<Kind> {
        Some(match value {
            Value::Null | Value::Interval(_) => return None,
            Value::Boolean(_) => Kind::Boolean,
            Value::Int(_) => Kind::Int,
            Value::Decimal(_) => Kind::Decimal,
            Value::Real(_) => Kind::Real,
            Value::Double(_) => Kind::Double,
            Value::Text(_) => Kind::Text,
            Value::Bytes(_) => Kind::Bytes,
            Value::Uuid(_) => Kind::Uuid,
        })
    }

    /// Are values equal just when they are the same, and ordered as their numbers or bytes are? Not so -0 and NaN.
    #[must_use]
    pub fn is_plain(self) -> bool {
        !matches!(self, Kind::Real | Kind::Double)
    }
}

/// What is computed of a row.
#[derive(Clone, Debug)]
pub enum Scalar {
    /// A column of the input.
    Column(usize, Kind),
    /// The same for all rows.
    Literal(Value, Kind),
    /// Three-valued, as all conditions are.
    Not(Box<Scalar>),
    /// All, one after the other; what stands behind one that is false is not evaluated.
    And(Vec<Scalar>),
    /// One; what stands behind one that is true is not evaluated.
    Or(Vec<Scalar>),
    /// IS NULL, or IS NOT NULL.
    IsNull {
        /// Of this.
        of: Box<Scalar>,
        /// IS NOT NULL
        negated: bool,
    },
    /// A comparison of values of one kind, which is plain. Where the left one is NULL the right one is not evaluated.
    Compare {
        /// How.
        comparison: Comparison,
        /// One side.
        left: Box<Scalar>,
        /// The other side.
        right: Box<Scalar>,
    },
    /// IN, or NOT IN, these values, which are in order and of one plain kind.
    In {
        /// What is looked for.
        of: Box<Scalar>,
        /// None of them is NULL.
        values: Vec<Value>,
        /// There was a NULL among them.
        has_null: bool,
        /// NOT IN
        negated: bool,
    },
    /// LIKE, or NOT LIKE, a pattern.
    Like {
        /// A text.
        of: Box<Scalar>,
        /// Which texts match.
        pattern: LikePattern,
        /// NOT LIKE
        negated: bool,
    },
    /// The value behind the first condition that is true.
    Case {
        /// Conditions, each with its value.
        branches: Vec<(Scalar, Scalar)>,
        /// Where none is true: NULL if there is nothing.
        otherwise: Option<Box<Scalar>>,
        /// Of all values.
        kind: Kind,
    },
    /// Of two numbers; NULL where one of them is.
    Arithmetic {
        /// What is done with them.
        arithmetic: Arithmetic,
        /// The first.
        left: Box<Scalar>,
        /// The second.
        right: Box<Scalar>,
    },
    /// Anything else, row by row.
    Row(RowExpr),
}

impl Scalar {
    /// Of its values.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Scalar::Column(_, kind) | Scalar::Literal(_, kind) | Scalar::Case { kind, .. } => *kind,
            Scalar::Arithmetic { arithmetic, .. } => arithmetic.kind(),
            Scalar::Row(row) => row.kind,
            _ => Kind::Boolean,
        }
    }

    /// May it fail on some row?
    #[must_use]
    pub fn can_fail(&self) -> bool {
        match self {
            Scalar::Column(..) | Scalar::Literal(..) => false,
            Scalar::Not(of) | Scalar::IsNull { of, .. } | Scalar::In { of, .. } => of.can_fail(),
            Scalar::And(all) | Scalar::Or(all) => all.iter().any(Scalar::can_fail),
            Scalar::Compare { left, right, .. } => left.can_fail() || right.can_fail(),
            Scalar::Like { of, pattern, .. } => pattern.can_fail || of.can_fail(),
            Scalar::Case { branches, otherwise, .. } => {
                branches.iter().any(|(when, then)| when.can_fail() || then.can_fail()) || otherwise.as_ref().is_some_and(|o| o.can_fail())
            }
            Scalar::Arithmetic { .. } | Scalar::Row(_) => true,
        }
    }

    /// Shows the number of each column that it needs, which may be changed.
    pub fn columns_mut(&mut self, each: &mut dyn FnMut(&mut usize)) {
        match self {
            Scalar::Column(column, _) => each(column),
            Scalar::Literal(..) => {}
            Scalar::Not(of) | Scalar::IsNull { of, .. } | Scalar::In { of, .. } | Scalar::Like { of, .. } => of.columns_mut(each),
            Scalar::And(all) | Scalar::Or(all) => all.iter_mut().for_each(|one| one.columns_mut(each)),
            Scalar::Compare { left, right, .. } | Scalar::Arithmetic { left, right, .. } => {
                left.columns_mut(each);
                right.columns_mut(each);
            }
            Scalar::Case { branches, otherwise, .. } => {
                for (when, then) in branches {
                    when.columns_mut(each);
                    then.columns_mut(each);
                }
                otherwise.iter_mut().for_each(|otherwise| otherwise.columns_mut(each));
            }
            Scalar::Row(row) => row.columns.iter_mut().for_each(each),
        }
    }
}

/// An operation on two numbers, with what it needs to know of their types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arithmetic {
    operation: Operation,
    on: Operands,
    kind: Kind,
}

/// An operation as a loop over numbers can do it; results outside of what is said are an error, which [`Arithmetic::apply`] gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direct {
    /// `a + b` of integers of so many bits.
    AddInts(u32),
    /// `a - b`
    SubtractInts(u32),
    /// `a * b`
    MultiplyInts(u32),
    /// `a * left + b * right` of unscaled decimals, of at most 38 digits.
    AddDecimals(i128, i128),
    /// `a * left - b * right`
    SubtractDecimals(i128, i128),
    /// `a * b`
    MultiplyDecimals,
}

impl Arithmetic {
    /// `None` of what has an interval as operand or result.
    pub(super) fn new(operation: Operation, on: Operands) -> Option<Arithmetic> {
        let kind = match on {
            Operands::Integers(_) | Operands::DateAndDays | Operands::Dates | Operands::DateAndTime(_) => Kind::Int,
            Operands::Decimals { .. } => Kind::Decimal,
            Operands::Reals => Kind::Real,
            Operands::Doubles => Kind::Double,
            Operands::MomentAndInterval(_) | Operands::Timestamps(_) | Operands::Times(_) => return None,
            Operands::Intervals | Operands::IntervalAndNumber => return None,
        };
        Some(Arithmetic { operation, on, kind })
    }

    /// Of results.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// How a loop does it; `None`: value by value.
    #[must_use]
    pub fn direct(&self) -> Option<Direct> {
        let power = |digits: u8| 10_i128.checked_pow(u32::from(digits));
        Some(match (self.operation, &self.on) {
            (operation, Operands::Integers(data_type)) => {
                let bits = match data_type {
                    DataType::SmallInt => 16,
                    DataType::Integer => 32,
                    _ => 64,
                };
                match operation {
                    Operation::Add => Direct::AddInts(bits),
                    Operation::Subtract => Direct::SubtractInts(bits),
                    Operation::Multiply => Direct::MultiplyInts(bits),
                    _ => return None,
                }
            }
            (Operation::Add, Operands::Decimals { left, right, scale }) => {
                Direct::AddDecimals(power(scale.checked_sub(*left)?)?, power(scale.checked_sub(*right)?)?)
            }
            (Operation::Subtract, Operands::Decimals { left, right, scale }) => {
                Direct::SubtractDecimals(power(scale.checked_sub(*left)?)?, power(scale.checked_sub(*right)?)?)
            }
            (Operation::Multiply, Operands::Decimals { left, right, scale }) if left.checked_add(*right) == Some(*scale) => {
                Direct::MultiplyDecimals
            }
            _ => return None,
        })
    }

    /// The result of two values, neither of which is NULL.
    ///
    /// # Errors
    /// 22003 and 22012, as the row executor has them.
    pub fn apply(&self, left: ValueRef<'_>, right: ValueRef<'_>) -> SqlResult<Value> {
        Ok(arithmetic::apply(self.operation, &self.on, left, right)?.into_value())
    }
}

/// A pattern of LIKE.
#[derive(Clone, Debug)]
pub struct LikePattern {
    pub(super) pattern: String,
    pub(super) escape: Option<char>,
    pub(super) ignores_case: bool,
    pub(super) can_fail: bool,
}

impl LikePattern {
    /// Does a text match?
    ///
    /// # Errors
    /// 22025 when the pattern ends with its escape character.
    #[inline]
    pub fn matches(&self, text: &str) -> SqlResult<bool> {
        crate::expression::like_matches(text, &self.pattern, self.escape, self.ignores_case)
    }
}

/// An expression that is evaluated row by row, as the row executor does.
#[derive(Clone, Debug)]
pub struct RowExpr {
    /// Of slots that count `columns`.
    pub(super) expr: Arc<Expr>,
    pub(super) columns: Vec<usize>,
    pub(super) kind: Kind,
    pub(super) now: Now,
}

impl RowExpr {
    /// Columns of the input that it needs.
    #[must_use]
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Of its values.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its value, of the values of these columns.
    ///
    /// # Errors
    /// Those of the expression.
    pub fn evaluate(&self, row: &[Value]) -> SqlResult<Value> {
        let value = self.expr.evaluate(&Env { row, outer: &[], params: &[], now: self.now, subqueries: &NoSubqueries })?;
        match Kind::of_value(&value) {
            Some(kind) if kind != self.kind => Err(SqlError::new("XX000", "an expression gave a value of another kind than was said")),
            _ => Ok(value),
        }
    }
}

//! Literals and parameters, and constants that are computed when they are made.

use super::decimal::Number;
use super::{Env, Expr, Now, ParamTypes, Subqueries, Typed};
use crate::{SqlError, SqlResult};
use pagefold_types::{DataType, Value, ValueRef};

/// For what has no subqueries.
pub(crate) struct NoSubqueries;

impl Subqueries for NoSubqueries {
    fn number(&self, _: &crate::sequences::SequenceCall) -> SqlResult<i64> {
        Err(SqlError::unsupported("a sequence here"))
    }

    fn set_number(&self, _: &crate::sequences::SequenceRef, _: i64, _: bool) -> SqlResult<()> {
        Err(SqlError::unsupported("a sequence here"))
    }

    fn clock(&self) -> SqlResult<i64> {
        Err(SqlError::unsupported("a look at the clock here"))
    }

    fn run(&self, _: usize, _: &[Value], _: &mut dyn FnMut(Value) -> SqlResult<bool>) -> SqlResult<()> {
        Err(SqlError::unsupported("a subquery here"))
    }

    fn is_among(&self, _: usize, _: &[ValueRef<'_>]) -> SqlResult<Option<bool>> {
        Err(SqlError::unsupported("a subquery here"))
    }
}

impl Env<'static> {
    /// Without row, parameters and time.
    pub(crate) const EMPTY: Env<'static> =
        Env { row: &[], outer: &[], params: &[], now: Now { transaction: 0, statement: 0 }, subqueries: &NoSubqueries };
}

impl Typed {
    pub(crate) fn of(expr: Expr, data_type: DataType) -> Typed {
        Typed { expr, data_type: Some(data_type) }
    }

    pub(crate) fn null() -> Typed {
        Typed { expr: Expr::Literal(Value::Null), data_type: None }
    }

    /// A literal in quotes. What it meets says its type.
    pub(crate) fn unknown_text(text: String) -> Typed {
        Typed { expr: Expr::Literal(Value::Text(text)), data_type: None }
    }

    pub(crate) fn boolean(truth: bool) -> Typed {
        Typed::of(Expr::Literal(Value::Boolean(truth)), DataType::Boolean)
    }

    /// A number as it was written, with a sign or without: INTEGER, BIGINT or DECIMAL, the first that has it, or else DOUBLE.
    pub(crate) fn number(text: &str) -> SqlResult<Typed> {
        let number = Number::read(text).ok_or_else(|| SqlError::syntax(format!("\"{}\" is no number", super::read::shown(text))))?;
        let whole = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+'));
        if whole && let Ok(value) = text.parse::<i64>() {
            let data_type = if i32::try_from(value).is_ok() { DataType::Integer } else { DataType::BigInt };
            return Ok(Typed::of(Expr::Literal(Value::Int(value)), data_type));
        }
        if let Some(data_type @ DataType::Decimal { precision, scale }) = number.data_type() {
            return Ok(Typed::of(Expr::Literal(Value::Decimal(number.with_scale(precision, scale)?)), data_type));
        }
        let value = super::read::read(text, &DataType::Double)?;
        Ok(Typed::of(Expr::Literal(value), DataType::Double))
    }

    /// The value of a literal.
    pub(crate) fn literal(&self) -> Option<&Value> {
        match &self.expr {
            Expr::Literal(value) => Some(value),
            _ => None,
        }
    }

    /// With the type that a parameter has been found to have.
    pub(crate) fn known(mut self, params: &ParamTypes) -> Typed {
        if let (None, Expr::Param(number)) = (&self.data_type, &self.expr) {
            self.data_type = params.get(*number);
        }
        self
    }
}

impl ParamTypes {
    /// The type of a parameter, if it is known.
    pub(crate) fn get(&self, number: usize) -> Option<DataType> {
        self.0.borrow().get(number).copied().flatten()
    }

    /// Says what a parameter is, unless it has been said.
    pub(crate) fn set(&self, number: usize, data_type: DataType) {
        let mut all = self.0.borrow_mut();
        if all.len() <= number {
            all.resize(number + 1, None);
        }
        if let Some(known) = all.get_mut(number) {
            known.get_or_insert(data_type);
        }
    }
}

impl Expr {
    /// Computed, if it is constant. An error is left for those who evaluate it: it may never come to that.
    pub(super) fn folded(self) -> Expr {
        if matches!(self, Expr::Literal(_)) || !self.has_literal_parts() {
            return self;
        }
        match self.evaluate(&Env::EMPTY) {
            Ok(value) => Expr::Literal(value),
            Err(_) => self,
        }
    }
}

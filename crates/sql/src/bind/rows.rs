//! Rows of values: `(a, b)` and `ROW(a, b)`, where they are compared.
//!
//! Equal rows are equal in each value. Which of two is less is said by the first pair of values that are not equal; where a NULL comes before that, it is unknown.

use super::Binder;
use super::expression::comparison;
use crate::dialect::{DISTINCT, NOT_DISTINCT};
use crate::expression::{Comparison, ParamTypes, Typed, make};
use crate::parse::identifier;
use crate::{SqlError, SqlResult};
use sqlparser::ast::{BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectNamePart};

/// What is called like a function, and makes a row.
pub(super) const ROW: &str = "row";

/// A row stands where a value has to.
pub(super) fn refused() -> SqlError {
    SqlError::unsupported("a row of several values here")
}

/// The values of a row, if an expression is one.
pub(super) fn fields(expr: &Expr) -> Option<Vec<&Expr>> {
    match expr {
        Expr::Tuple(fields) => Some(fields.iter().collect()),
        Expr::Nested(of) => fields(of),
        Expr::Function(call) => {
            let ([ObjectNamePart::Identifier(name)], FunctionArguments::List(list)) = (call.name.0.as_slice(), &call.args) else {
                return None;
            };
            if name.quote_style.is_some() || identifier(name) != ROW {
                return None;
            }
            let mut all = Vec::with_capacity(list.args.len());
            for argument in &list.args {
                let FunctionArg::Unnamed(FunctionArgExpr::Expr(field)) = argument else { return None };
                all.push(field);
            }
            Some(all)
        }
        _ => None,
    }
}

/// Compares two rows of values.
pub(super) fn compare(comparison: Comparison, left: Vec<Typed>, right: Vec<Typed>, params: &ParamTypes) -> SqlResult<Typed> {
    if left.len() != right.len() {
        return Err(SqlError::syntax("unequal number of entries in row expressions"));
    }
    if left.is_empty() {
        return Err(SqlError::unsupported("comparing rows of zero length"));
    }
    if !matches!(comparison, Comparison::Equal | Comparison::NotEqual) {
        return make::compare_rows(comparison, left, right, params);
    }
    let join = if comparison == Comparison::Equal { make::and } else { make::or };
    let mut pairs = left.into_iter().zip(right).map(|(left, right)| make::compare(comparison, left, right, params));
    let first = pairs.next().unwrap_or_else(|| Ok(Typed::boolean(true)))?;
    pairs.try_fold(first, |all, pair| join(all, pair?, params))
}

impl Binder<'_> {
    fn bound_fields(&mut self, fields: &[&Expr], depth: usize) -> SqlResult<Vec<Typed>> {
        fields.iter().map(|field| self.bound_expression(field, depth)).collect()
    }

    /// The values of a row, or the one value.
    pub(super) fn row_or_value(&mut self, expr: &Expr, depth: usize) -> SqlResult<Vec<Typed>> {
        match fields(expr) {
            Some(fields) => self.bound_fields(&fields, depth),
            None => Ok(vec![self.bound_expression(expr, depth)?]),
        }
    }

    /// Compares a row with what stands on the other side: a row or a subquery. `None`: it is neither.
    pub(super) fn compared_rows(&mut self, by: Comparison, left: &[&Expr], right: &Expr, depth: usize) -> SqlResult<Option<Typed>> {
        let right = match (fields(right), right) {
            (Some(right), _) => self.bound_fields(&right, depth)?,
            (None, Expr::Subquery(query)) => self.scalars(query)?,
            _ => return Ok(None),
        };
        let left = self.bound_fields(left, depth)?;
        compare(by, left, right, self.params).map(Some)
    }

    /// An operator between rows; `None`: there is no row on its left.
    pub(super) fn row_operator(&mut self, left: &Expr, operator: &BinaryOperator, right: &Expr, depth: usize) -> SqlResult<Option<Typed>> {
        let Some(own) = fields(left) else { return Ok(None) };
        let of_distinct = match operator {
            BinaryOperator::Custom(name) if name == DISTINCT => Some(false),
            BinaryOperator::Custom(name) if name == NOT_DISTINCT => Some(true),
            _ => None,
        };
        if let (Some(negated), Some(others)) = (of_distinct, fields(right)) {
            if own.len() != others.len() {
                return Err(SqlError::syntax("unequal number of entries in row expressions"));
            }
            let (own, others) = (self.bound_fields(&own, depth)?, self.bound_fields(&others, depth)?);
            let pairs = own.into_iter().zip(others).map(|(left, right)| make::is_distinct(left, right, negated, self.params));
            let pairs = pairs.collect::<SqlResult<Vec<_>>>()?;
            return self.joined(pairs, if negated { make::and } else { make::or }).map(Some);
        }
        let by = comparison(operator).ok_or_else(refused)?;
        let compared = self.compared_rows(by, &own, right, depth)?;
        compared.ok_or_else(refused).map(Some)
    }

    /// BETWEEN, of rows too.
    pub(super) fn between(
        &mut self,
        of: &Expr,
        low: &Expr,
        high: &Expr,
        (negated, symmetric): (bool, bool),
        depth: usize,
    ) -> SqlResult<Typed> {
        let params = self.params;
        let Some(of) = fields(of) else {
            let of = self.bound_expression(of, depth)?;
            let (low, high) = (self.bound_expression(low, depth)?, self.bound_expression(high, depth)?);
            return make::between(of, low, high, negated, symmetric, params);
        };
        let (Some(low), Some(high)) = (fields(low), fields(high)) else { return Err(refused()) };
        let (of, low, high) = (self.bound_fields(&of, depth)?, self.bound_fields(&low, depth)?, self.bound_fields(&high, depth)?);
        let within = |low: &[Typed], high: &[Typed]| {
            let least = compare(Comparison::GreaterOrEqual, of.clone(), low.to_vec(), params)?;
            make::and(least, compare(Comparison::LessOrEqual, of.clone(), high.to_vec(), params)?, params)
        };
        let mut found = within(&low, &high)?;
        if symmetric {
            found = make::or(found, within(&high, &low)?, params)?;
        }
        if negated { make::not(found, params) } else { Ok(found) }
    }

    /// IS [NOT] NULL: of a row it asks each value.
    pub(super) fn is_null(&mut self, of: &Expr, negated: bool, depth: usize) -> SqlResult<Typed> {
        let values = self.row_or_value(of, depth)?;
        let all = values.into_iter().map(|of| make::is_null(of, negated, self.params)).collect::<SqlResult<Vec<_>>>()?;
        self.joined(all, make::and)
    }
}

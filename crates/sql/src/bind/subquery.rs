//! Subqueries in expressions.

use super::expression::comparison;
use super::{Binder, rows};
use crate::expression::{Comparison, Expr, SubqueryKind, TEXT, Typed, make};
use crate::{SqlError, SqlResult};
use pagefold_types::DataType;
use sqlparser::ast::{self, BinaryOperator};

/// A subquery that is planned.
struct Subplan {
    number: usize,
    /// What it needs of the row around it.
    outer: Vec<Expr>,
    /// Of its columns.
    types: Vec<DataType>,
}

impl Subplan {
    fn expr(self, kind: SubqueryKind) -> Expr {
        Expr::Subquery { number: self.number, kind, outer: self.outer }
    }
}

impl Binder<'_> {
    pub(super) fn exists(&mut self, query: &ast::Query) -> SqlResult<Typed> {
        let subquery = self.subplan(query, None)?;
        self.limit_subplan(&subquery, 1);
        Ok(Typed::of(subquery.expr(SubqueryKind::Exists), DataType::Boolean))
    }

    /// The one value of a subquery.
    pub(super) fn scalar(&mut self, query: &ast::Query) -> SqlResult<Typed> {
        let subquery = self.subplan(query, Some(1))?;
        // The second row is an error.
        self.limit_subplan(&subquery, 2);
        let data_type = subquery.types.first().copied().unwrap_or(TEXT);
        Ok(Typed::of(subquery.expr(SubqueryKind::Scalar), data_type))
    }

    /// Is a value, or a row of values, among the rows of a subquery?
    pub(super) fn in_subquery(&mut self, of: Vec<Typed>, query: &ast::Query, negated: bool) -> SqlResult<Typed> {
        let subquery = self.subplan(query, Some(of.len()))?;
        if of.len() > 1 && !subquery.outer.is_empty() {
            let found = self.each_compared(of, Comparison::Equal, subquery, false)?;
            return if negated { make::not(found, self.params) } else { Ok(found) };
        }
        let (of, subquery) = self.same_types(of, subquery)?;
        Ok(Typed::of(subquery.expr(SubqueryKind::In { of, negated }), DataType::Boolean))
    }

    /// ANY and ALL.
    pub(super) fn quantified(
        &mut self,
        left: &ast::Expr,
        operator: &BinaryOperator,
        right: &ast::Expr,
        all: bool,
        depth: usize,
    ) -> SqlResult<Typed> {
        let comparison = comparison(operator).ok_or_else(|| SqlError::syntax(format!("{operator} is no comparison")))?;
        let ast::Expr::Subquery(query) = right else { return Err(SqlError::unsupported("ANY and ALL of an array")) };
        let of = self.row_or_value(left, depth)?;
        if of.len() > 1 {
            return match (comparison, all) {
                (Comparison::Equal, false) => self.in_subquery(of, query, false),
                (Comparison::NotEqual, true) => self.in_subquery(of, query, true),
                _ => {
                    let subquery = self.subplan(query, Some(of.len()))?;
                    self.each_compared(of, comparison, subquery, all)
                }
            };
        }
        let subquery = self.subplan(query, Some(1))?;
        let (mut of, subquery) = self.same_types(of, subquery)?;
        let of = Box::new(of.pop().ok_or_else(rows::refused)?);
        Ok(Typed::of(subquery.expr(SubqueryKind::Quantified { of, comparison, all }), DataType::Boolean))
    }

    /// Compares a row of values with each row of a subquery, which then has the outcomes, and is asked whether one of these, or all, are true.
    fn each_compared(&mut self, of: Vec<Typed>, comparison: Comparison, mut subquery: Subplan, all: bool) -> SqlResult<Typed> {
        let mut left = Vec::with_capacity(of.len());
        for value in of {
            let value = make::settle(value, self.params)?;
            left.push(Typed { expr: Expr::Outer(subquery.outer.len()), data_type: value.data_type });
            subquery.outer.push(value.expr);
        }
        let right = subquery.types.iter().enumerate().map(|(at, data_type)| Typed::of(Expr::Slot(at), *data_type)).collect();
        let compared = rows::compare(comparison, left, right, self.params)?;
        let plan = std::mem::take(&mut self.subplans[subquery.number]);
        self.subplans[subquery.number] = plan.projected(vec![compared.expr]);
        let of = Box::new(Typed::boolean(true).expr);
        Ok(Typed::of(subquery.expr(SubqueryKind::Quantified { of, comparison: Comparison::Equal, all }), DataType::Boolean))
    }

    /// Brings what is compared with a subquery, and that one's columns, to the same types.
    fn same_types(&mut self, of: Vec<Typed>, subquery: Subplan) -> SqlResult<(Vec<Expr>, Subplan)> {
        let (mut values, mut columns) = (Vec::with_capacity(of.len()), Vec::with_capacity(of.len()));
        for (at, (value, data_type)) in of.into_iter().zip(&subquery.types).enumerate() {
            let (value, column) = make::alike_by_column(value, Typed::of(Expr::Slot(at), *data_type), self.params)?;
            values.push(value);
            columns.push(column);
        }
        if columns.iter().enumerate().any(|(at, column)| *column != Expr::Slot(at)) {
            let plan = std::mem::take(&mut self.subplans[subquery.number]);
            self.subplans[subquery.number] = plan.projected(columns);
        }
        Ok((values, subquery))
    }

    /// Of the rows of a subquery, no more than these are looked at.
    fn limit_subplan(&mut self, subquery: &Subplan, rows: i64) {
        let plan = std::mem::take(&mut self.subplans[subquery.number]);
        self.subplans[subquery.number] = plan.first_rows(rows);
    }

    /// The columns of the one row of a subquery, each as a subquery of its own.
    pub(super) fn scalars(&mut self, query: &ast::Query) -> SqlResult<Vec<Typed>> {
        self.expressions += 1;
        let planned = self.subquery(query);
        self.expressions -= 1;
        let (planned, outer) = planned?;
        let mut columns = Vec::with_capacity(planned.outputs.len());
        for (column, output) in planned.outputs.iter().enumerate() {
            // The second row is an error.
            self.subplans.push(planned.plan.clone().projected(vec![Expr::Slot(column)]).first_rows(2));
            let number = self.subplans.len() - 1;
            columns.push(Typed::of(Expr::Subquery { number, kind: SubqueryKind::Scalar, outer: outer.clone() }, output.data_type));
        }
        Ok(columns)
    }

    /// Plans a subquery of this many columns.
    fn subplan(&mut self, query: &ast::Query, columns: Option<usize>) -> SqlResult<Subplan> {
        self.expressions += 1;
        let planned = self.subquery(query);
        self.expressions -= 1;
        let (planned, outer) = planned?;
        let found = planned.outputs.len();
        match columns {
            Some(1) if found != 1 => {
                return Err(SqlError::syntax(format!("subquery must return only one column, this has {found}")));
            }
            Some(wanted) if found != wanted => {
                return Err(SqlError::syntax(format!("subquery has too {} columns", if found < wanted { "few" } else { "many" })));
            }
            _ => {}
        }
        let types = planned.outputs.iter().map(|output| output.data_type).collect();
        self.subplans.push(planned.plan);
        Ok(Subplan { number: self.subplans.len() - 1, outer, types })
    }
}

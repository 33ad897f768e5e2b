//! INSERT of one row of values, as programs do all day: without a view, operators, or copies of what is given.
//!
//! Invariants:
//! - it does what the plan of the statement does, with the same errors;
//! - a row that is refused leaves nothing: the engine takes its part of it back, and there is no other.

use super::change;
use crate::SqlResult;
use crate::bind::insert::InsertPlan;
use crate::expression::{Datum, Env, Expr};
use crate::plan::Plan;
use pagefold_engine::database::Transaction;
use pagefold_types::{Value, ValueRef};

/// The values of the row, by column: of the statement and its parameters alone.
#[derive(Debug)]
pub(crate) struct DirectInsert {
    exprs: Vec<Expr>,
}

impl DirectInsert {
    /// `None`: the plan has more to do than that.
    pub(crate) fn of(plan: &InsertPlan) -> Option<DirectInsert> {
        let Plan::Values(rows) = &plan.source else { return None };
        let [row] = rows.as_slice() else { return None };
        let is_plain = plan.conflict.is_none() && plan.returning.is_none() && plan.references.is_empty() && plan.rules.generated.is_empty();
        if !is_plain {
            return None;
        }
        let exprs: Vec<Expr> = plan.exprs.iter().map(|expr| placed(expr, row)).collect();
        // Several that draw would draw in another order.
        let drawing: usize = exprs.iter().map(count_volatile).sum();
        (drawing <= 1).then_some(DirectInsert { exprs })
    }
}

/// The same with what the row has in the place of its slots.
fn placed(expr: &Expr, row: &[Expr]) -> Expr {
    let mut placed = expr.clone();
    placed.rewrite(&mut |part| {
        if let Expr::Slot(at) = part
            && let Some(own) = row.get(*at)
        {
            *part = own.clone();
        }
    });
    placed
}

fn count_volatile(expr: &Expr) -> usize {
    let mut count = 0;
    expr.visit(&mut |part| count += usize::from(part.is_volatile()));
    count
}

/// Inserts the row.
pub(crate) fn insert(direct: &DirectInsert, plan: &InsertPlan, transaction: &mut Transaction<'static>, env: &Env<'_>) -> SqlResult<()> {
    let data = direct.exprs.iter().map(|expr| expr.evaluate_ref(env)).collect::<SqlResult<Vec<Datum<'_>>>>()?;
    let values: Vec<ValueRef<'_>> = data.iter().map(Datum::as_ref).collect();
    change::not_null(&plan.table, values.iter().copied().enumerate())?;
    if !(plan.rules.checks.is_empty() && plan.rules.views.is_empty()) {
        let row: Vec<Value> = values.iter().map(ValueRef::to_owned).collect();
        change::meets_checks(&plan.table, &plan.rules, &Env { row: &row, ..*env })?;
    }
    change::insert_values(&plan.table, transaction, &values)
}

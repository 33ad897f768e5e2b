//! Subqueries in RETURNING and ON CONFLICT DO UPDATE, which are evaluated while rows change.
//!
//! Invariant: they see the table as it was before the statement. Where one of them reads it, those that need nothing of the row are run before the first one changes, and one that needs something of
//! it is refused.

use super::Binder;
use crate::catalog::TableRef;
use crate::expression::Expr;
use crate::{SqlError, SqlResult};

/// A subquery that is run before rows change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beforehand {
    pub(crate) number: usize,
    /// It is asked whether a value is among its rows.
    pub(crate) is_set: bool,
}

impl Binder<'_> {
    /// Those of expressions that were bound when there were `from` subqueries already.
    pub(super) fn beforehand<'e>(
        &self,
        table: &TableRef,
        from: usize,
        exprs: impl IntoIterator<Item = &'e Expr>,
        clause: &str,
    ) -> SqlResult<Vec<Beforehand>> {
        let exprs: Vec<&Expr> = exprs.into_iter().collect();
        // Columns of a view that is changed were bound before.
        let is_before = |part: &Expr| matches!(part, Expr::Subquery { number, .. } if *number < from);
        let from = if exprs.iter().any(|expr| expr.any(is_before)) { 0 } else { from };
        if !self.subplans[from..].iter().any(|plan| plan.reads(&table.name)) {
            // They are the same later, and perhaps nobody asks. What foreign keys do comes behind all rows.
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        let mut needs_row = false;
        for expr in exprs {
            expr.visit(&mut |part| {
                if let Expr::Subquery { number, kind, outer } = part {
                    needs_row |= !outer.is_empty();
                    if outer.is_empty() {
                        found.push(Beforehand { number: *number, is_set: kind.is_membership() });
                    }
                }
            });
        }
        if needs_row {
            let what = format!("a subquery in {clause} that needs something of the row and reads the table that changes");
            return Err(SqlError::unsupported(what));
        }
        Ok(found)
    }
}

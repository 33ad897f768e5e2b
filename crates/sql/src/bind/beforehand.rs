//! Subqueries in RETURNING and ON CONFLICT DO UPDATE, which are evaluated while rows change.
//!
//! Invariant: they see the table as it was before the statement. Those that need nothing of the row are run before the first one changes; one that needs something of it, and reads the table that
//! changes, is refused.

use super::Binder;
use super::change::reads;
use crate::catalog::TableRef;
use crate::expression::{Comparison, Expr, SubqueryKind};
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
        let mut found = Vec::new();
        let mut needs_row = false;
        for expr in exprs {
            expr.visit(&mut |part| {
                if let Expr::Subquery { number, kind, outer } = part {
                    needs_row |= !outer.is_empty();
                    let is_equality = |comparison: &Comparison| matches!(comparison, Comparison::Equal | Comparison::NotEqual);
                    let is_set = match kind {
                        SubqueryKind::In { .. } => true,
                        SubqueryKind::Quantified { comparison, .. } => is_equality(comparison),
                        SubqueryKind::Scalar | SubqueryKind::Exists => false,
                    };
                    if outer.is_empty() {
                        found.push(Beforehand { number: *number, is_set });
                    }
                }
            });
        }
        if needs_row && self.subplans[from..].iter().any(|plan| reads(plan, table)) {
            let what = format!("a subquery in {clause} that needs something of the row and reads the table that changes");
            return Err(SqlError::unsupported(what));
        }
        Ok(found)
    }
}

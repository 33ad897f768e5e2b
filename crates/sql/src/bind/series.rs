//! Functions in the SELECT list that give rows: `SELECT generate_series(1, 3)`.
//!
//! Such a function is a query behind all of FROM, as if it were written there behind LATERAL: each row comes once for each of its rows.
//!
//! Invariant: there is one at most, and nothing that gathers rows, which would come before it.

use super::Binder;
use super::select::From;
use crate::{SqlError, SqlResult};
use sqlparser::ast::{self, Expr, SelectItem};

/// The one function that gives rows.
pub(super) const SERIES: &str = "generate_series";

impl Binder<'_> {
    /// The relation of the function in a SELECT list, if there is one.
    pub(super) fn series_of(&mut self, items: &[SelectItem]) -> SqlResult<Option<From>> {
        let call = match calls(items).as_slice() {
            [] => return Ok(None),
            [call] => *call,
            _ => return Err(SqlError::unsupported(format!("more than one {SERIES} in a SELECT list"))),
        };
        let ast::FunctionArguments::List(list) = &call.args else { return Ok(None) };
        let visible = self.scope().relations.len();
        let alias = ast::TableAlias {
            explicit: true,
            name: ast::Ident::with_quote('"', format!("\u{0}series {visible}")),
            columns: Vec::new(),
            at: None,
        };
        let relation = self.table_function(&call.name, Some(&alias), &list.args)?;
        // Nobody names it, nor does `*` mean it.
        self.scope().relations[relation].is_visible = false;
        self.scope().series = Some(relation);
        Ok(Some(From::Relation(relation)))
    }
}

/// Is there such a function in a SELECT list?
pub(super) fn gives_rows(items: &[SelectItem]) -> bool {
    !calls(items).is_empty()
}

fn calls(items: &[SelectItem]) -> Vec<&ast::Function> {
    let mut found = Vec::new();
    for item in items {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            find(expr, &mut found);
        }
    }
    found
}

/// Finds its calls where they may stand: not in CASE, nor in a subquery, whose SELECT list it is then.
fn find<'e>(expr: &'e Expr, found: &mut Vec<&'e ast::Function>) {
    match expr {
        Expr::Function(call) if call.over.is_none() && call.name.to_string().eq_ignore_ascii_case(SERIES) => found.push(call),
        Expr::Function(call) => {
            let ast::FunctionArguments::List(list) = &call.args else { return };
            for argument in &list.args {
                if let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(argument)) = argument {
                    find(argument, found);
                }
            }
        }
        Expr::BinaryOp { left, right, .. } => {
            find(left, found);
            find(right, found);
        }
        Expr::Nested(of) | Expr::UnaryOp { expr: of, .. } | Expr::Cast { expr: of, .. } => find(of, found),
        _ => {}
    }
}

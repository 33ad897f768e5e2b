//! From the syntax tree to a query whose names and types are known.
//!
//! * `scope`: names of relations and columns, and where they are found; subqueries that name columns around them
//! * `expression`: expressions; `rows`: rows of values that are compared; `subquery`: subqueries in expressions
//! * `aggregates`: aggregates, expressions of groups; `grouping`: GROUP BY
//! * `windows`: calls of window functions; `frame`: frames of windows
//! * `from`: FROM: tables, views, joins, subqueries
//! * `select`: SELECT, set operations, ORDER BY, LIMIT
//! * `sequence`: calls on sequences
//! * `series`: functions in the SELECT list that give rows
//! * `names`: what columns without a name are called
//! * `with`: WITH, and queries that ask themselves; `with_change`: statements in WITH that change rows
//! * `insert`: INSERT; `change`: UPDATE, DELETE; `merge`: MERGE; `copy`: COPY
//! * `rules`: defaults, generated columns, CHECK
//! * `view_change`: views whose rows are changed
//! * `foreign_key`: other tables that a change has to look at
//! * `needs`: what a text of the catalog names
//! * `types`: types as they are written
//!
//! Invariants:
//! - after binding no name is looked up again;
//! - what a subquery needs of the query around it is a list of expressions of that query ([`Expr::Subquery`]'s `outer`), so that each query knows only its own relations;
//! - views and WITH queries are bound where they are used, as subqueries in FROM.

mod aggregates;
pub(crate) mod beforehand;
pub(crate) mod change;
pub(crate) mod copy;
mod expression;
pub(crate) mod foreign_key;
mod frame;
mod from;
mod grouping;
pub(crate) mod insert;
pub(crate) mod merge;
mod names;
mod needs;
mod rows;
pub(crate) mod rules;
mod scope;
mod select;
mod sequence;
mod series;
mod subquery;
pub(crate) mod types;
pub(crate) mod view_change;
mod windows;
mod with;
mod with_change;

pub(crate) use aggregates::{AGGREGATES, KEYS, Noted};
pub(crate) use expression::string;
pub(crate) use frame::{Bound, Frame, FrameUnit, Offset, negative_size};
pub(crate) use grouping::{GROUPINGS, GroupingSet, Groups};
pub(crate) use needs::{Needs, Wildcard};
pub(crate) use scope::{NAMELESS, Relation, Scope, Source};
pub(crate) use select::{Distinct, From, Limit, Query, Select, SetOperation, SortKey};
pub(crate) use windows::{WINDOWS, WindowCall, WindowFunction, WindowOrder};
pub(crate) use with_change::{Changing, Turn, order};

pub(crate) use crate::expression::TEXT;
use crate::expression::{Expr, ParamTypes, Typed};
use crate::plan::Plan;
use crate::system::SystemTable;
use crate::{SqlError, SqlResult};
use pagefold_engine::database::Transaction;
use pagefold_types::DataType;

/// Views and subqueries within each other.
const DEPTH_MAX: usize = 60;

/// Binds one statement.
pub(crate) struct Binder<'b> {
    pub(crate) transaction: &'b mut Transaction<'static>,
    pub(crate) params: &'b ParamTypes,
    /// Scopes of the queries around, the innermost last.
    pub(crate) scopes: Vec<Scope>,
    /// Plans of subqueries in expressions, by number.
    pub(crate) subplans: Vec<Plan>,
    /// Tables of the database's own that are named.
    pub(crate) system: Vec<&'static SystemTable>,
    /// Queries of WITH that can be seen, the innermost last.
    with: Vec<with::Level>,
    /// Of each recursive query how often it named itself.
    recursions: Vec<usize>,
    /// Subqueries in expressions around.
    expressions: usize,
    /// Calls that give other values each time, until now.
    drawn: usize,
    /// Queries of WITH whose rows are kept, until now.
    kept: usize,
    /// Statements of WITH that change rows.
    pub(crate) changes: Vec<Changing>,
    depth: usize,
    /// Relations that were bound, those of views each time they are used.
    relations: usize,
    /// A query is bound whose rows are locked.
    locks: bool,
    /// The column of a SELECT list that could not be bound.
    failed: Option<String>,
    /// What was named, if somebody asks.
    needs: Option<Needs>,
}

impl<'b> Binder<'b> {
    pub(crate) fn new(transaction: &'b mut Transaction<'static>, params: &'b ParamTypes) -> Binder<'b> {
        Binder {
            transaction,
            params,
            scopes: Vec::new(),
            subplans: Vec::new(),
            system: Vec::new(),
            with: Vec::new(),
            recursions: Vec::new(),
            expressions: 0,
            drawn: 0,
            kept: 0,
            changes: Vec::new(),
            depth: 0,
            relations: 0,
            locks: false,
            failed: None,
            needs: None,
        }
    }

    /// Is what is bound the whole statement?
    pub(crate) fn is_whole(&self) -> bool {
        self.depth == 0 && self.with.is_empty() && self.changes.is_empty()
    }

    /// One level deeper.
    fn deeper<R>(&mut self, run: impl FnOnce(&mut Self) -> SqlResult<R>) -> SqlResult<R> {
        if self.depth == DEPTH_MAX {
            return Err(SqlError::new("54001", format!("more than {DEPTH_MAX} views and subqueries within each other")));
        }
        self.depth += 1;
        let done = run(self);
        self.depth -= 1;
        done
    }

    pub(crate) fn scope(&mut self) -> &mut Scope {
        if self.scopes.is_empty() {
            self.scopes.push(Scope::default());
        }
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }
}

/// A column that comes out of a query.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Output {
    pub(crate) name: String,
    pub(crate) data_type: DataType,
}

/// An expression whose type is known: what has none becomes text.
pub(crate) fn settled(typed: Typed, params: &ParamTypes) -> SqlResult<(Expr, DataType)> {
    let typed = crate::expression::make::settle(typed, params)?;
    Ok((typed.expr, typed.data_type.unwrap_or(TEXT)))
}

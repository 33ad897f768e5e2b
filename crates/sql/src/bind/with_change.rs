//! Statements in WITH that change rows.
//!
//! Together with the statement that has the WITH they are parts, which see the tables as they were before any of them: of what another part has done only the rows are known that it returns.
//! The engine shows a transaction what it has done itself, so that is a matter of their order: a part that reads a table runs before those that change it.
//!
//! Invariant: where no such order is, because a part needs rows of another one and a table that this one changes, the statement is refused.

use super::foreign_key::References;
use super::{Binder, Output};
use crate::plan::Plan;
use crate::planned::{Action, Planned};
use crate::{SqlError, SqlResult};
use sqlparser::ast::{self, SetExpr, Statement};

/// A statement of WITH that changes rows.
#[derive(Debug)]
pub(crate) struct Changing {
    /// By which its rows are kept.
    pub(crate) number: usize,
    pub(crate) action: Action,
    /// Subqueries of its expressions, by number.
    subplans: std::ops::Range<usize>,
}

/// Which part is run next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// A statement of WITH, by its place.
    Change(usize),
    /// The statement itself.
    Main,
}

/// The statement that a query of WITH is, if it changes rows.
pub(super) fn changing(query: &ast::Query) -> Option<&Statement> {
    match &*query.body {
        SetExpr::Insert(node) | SetExpr::Update(node) | SetExpr::Delete(node) | SetExpr::Merge(node) => Some(node),
        _ => None,
    }
}

impl Binder<'_> {
    /// Binds one; its number, and what it returns.
    pub(super) fn change_in_with(&mut self, query: &ast::Query, node: &Statement) -> SqlResult<(usize, Option<Vec<Output>>)> {
        let (scopes, levels, first) = (std::mem::take(&mut self.scopes), self.with.len(), self.subplans.len());
        let bound = self.with_queries(query.with.as_ref(), false).and_then(|()| Planned::action(node, self));
        self.with.truncate(levels);
        self.scopes = scopes;
        let (action, outputs, _) = bound?;
        self.kept += 1;
        let number = self.kept;
        let outputs = action.returns().then_some(outputs);
        self.changes.push(Changing { number, action, subplans: first..self.subplans.len() });
        Ok((number, outputs))
    }
}

/// What a part has to do with tables and with other parts.
struct Part<'p> {
    turn: Turn,
    plans: Vec<&'p Plan>,
    references: Option<&'p References>,
    own: Option<&'p str>,
}

impl Part<'_> {
    fn reads(&self, table: &str) -> bool {
        self.plans.iter().any(|plan| plan.reads(table))
    }

    fn needs(&self, number: usize) -> bool {
        self.plans.iter().any(|plan| plan.any(&|part| matches!(part, Plan::Kept(own) if *own == number)))
    }

    /// Does it change rows that the other one reads?
    fn disturbs(&self, other: &Part<'_>) -> bool {
        let reached = self.references.iter().flat_map(|references| &references.tables).filter(|node| !node.reach.is_none());
        self.own.into_iter().chain(reached.map(|node| node.table.name.as_str())).any(|table| other.reads(table))
    }
}

/// In which order parts are run.
pub(crate) fn order(changes: &[Changing], main: &Action, subplans: &[Plan]) -> SqlResult<Vec<Turn>> {
    let is_of_change = |number: &usize| changes.iter().any(|change| change.subplans.contains(number));
    let mut waiting: Vec<Part<'_>> = Vec::with_capacity(changes.len() + 1);
    for (at, change) in changes.iter().enumerate() {
        let plans = subplans[change.subplans.clone()].iter().chain(change.action.source()).collect();
        let (references, own) = (change.action.references(), change.action.changed_table());
        waiting.push(Part { turn: Turn::Change(at), plans, references, own });
    }
    let own_subplans = (0..subplans.len()).filter(|number| !is_of_change(number)).map(|number| &subplans[number]);
    let plans = own_subplans.chain(main.source()).collect();
    waiting.push(Part { turn: Turn::Main, plans, references: main.references(), own: main.changed_table() });
    let mut order = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let is_next = |at: &usize| {
            let own = &waiting[*at];
            let needs_none = waiting.iter().all(|other| match other.turn {
                Turn::Change(change) => !own.needs(changes[change].number),
                Turn::Main => true,
            });
            let disturbs_none = (0..waiting.len()).filter(|other| other != at).all(|other| !own.disturbs(&waiting[other]));
            needs_none && disturbs_none
        };
        let Some(next) = (0..waiting.len()).find(is_next) else {
            let error =
                SqlError::new("0A000", "a part of a statement cannot read a table that WITH changes and need the rows that this returns");
            return Err(error.with_hint("Make them two statements of one transaction."));
        };
        order.push(waiting.remove(next).turn);
    }
    Ok(order)
}

//! Parts of a subquery that need nothing of the row around it, though the subquery does, and so are opened anew for each such row. From the second time on what comes of them is kept: the rows of
//! groups, rows that are sorted, the table of hashes of a join.
//!
//! Invariants:
//! - only what [is the same each time](Plan::is_constant) is kept;
//! - it is charged to the statement, which keeps it until it ends; where there is no memory for it, it is made each time, as before.

use super::hash_join::Built;
use super::kept::Again;
use super::{Context, Operator, Tuple, bytes_of};
use crate::SqlResult;
use crate::plan::{HashPlan, Plan};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// What is known of a part.
#[derive(Clone)]
enum Part {
    /// It was opened once.
    Once,
    /// It varies, or there is no memory for it.
    Varies,
    Rows(Arc<Vec<Tuple>>),
    Built(Arc<Built>),
}

/// Of the parts of a statement's subqueries, by their places in memory.
#[derive(Default)]
pub(super) struct Repeated(RefCell<HashMap<usize, Part>>);

/// What is known of a part that is opened now; it is noted that it is.
fn opened(place: usize, context: &Context<'_>, is_constant: impl FnOnce() -> bool) -> Part {
    let mut parts = context.execution.repeated.0.borrow_mut();
    if let Some(part) = parts.get(&place) {
        return part.clone();
    }
    parts.insert(place, if is_constant() { Part::Once } else { Part::Varies });
    Part::Varies
}

fn keep(place: usize, context: &Context<'_>, part: Part) {
    context.execution.repeated.0.borrow_mut().insert(place, part);
}

/// Opens a part of which nothing is wanted before all of it is done.
pub(super) fn open_rows(
    plan: &Plan,
    place: usize,
    context: &Context<'_>,
    open: impl Fn() -> SqlResult<Box<dyn Operator>>,
) -> SqlResult<Box<dyn Operator>> {
    match opened(place, context, || plan.is_constant()) {
        Part::Rows(rows) => Ok(Box::new(Again::of(rows))),
        Part::Once => match all_rows(open()?, context)? {
            Some(rows) => {
                keep(place, context, Part::Rows(Arc::clone(&rows)));
                Ok(Box::new(Again::of(rows)))
            }
            None => {
                keep(place, context, Part::Varies);
                open()
            }
        },
        _ => open(),
    }
}

/// All rows; `None` when there is no memory for them.
fn all_rows(mut from: Box<dyn Operator>, context: &Context<'_>) -> SqlResult<Option<Arc<Vec<Tuple>>>> {
    let execution = context.execution;
    let (mut rows, mut taken) = (Vec::new(), 0);
    while let Some(row) = from.next(context)? {
        execution.look()?;
        let bytes = bytes_of(&row);
        if execution.budget.take(bytes).is_err() {
            execution.budget.give_back(taken);
            return Ok(None);
        }
        taken += bytes;
        rows.push(row);
    }
    execution.known.charge(taken);
    Ok(Some(Arc::new(rows)))
}

/// The table of hashes of a join, if it was kept; and whether one that is made now is to be.
pub(super) fn built(plan: &Arc<HashPlan>, context: &Context<'_>) -> (Option<Arc<Built>>, bool) {
    match opened(Arc::as_ptr(plan).addr(), context, || plan.has_constant_second()) {
        Part::Built(built) => (Some(built), false),
        part => (None, matches!(part, Part::Once)),
    }
}

/// Keeps the table of hashes of a join, which takes so many bytes, if there is memory for it.
pub(super) fn keep_built(plan: &Arc<HashPlan>, context: &Context<'_>, built: &Arc<Built>, bytes: usize) -> bool {
    let execution = context.execution;
    let is_kept = execution.budget.take(bytes).is_ok();
    if is_kept {
        execution.known.charge(bytes);
    }
    keep(Arc::as_ptr(plan).addr(), context, if is_kept { Part::Built(Arc::clone(built)) } else { Part::Varies });
    is_kept
}

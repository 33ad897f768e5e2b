//! Statements that change rows, alone or as parts of one with a WITH.
//!
//! Invariant: parts run in the order that their plan says, under one view; whoever calls takes all of them back when one fails or begins again.

use crate::bind::Turn;
use crate::execute::change::{self, Changed, Outcome};
use crate::execute::{Execution, bytes_of, open};
use crate::planned::{Action, Planned, PointPlan};
use crate::{SqlError, SqlResult};
use pagefold_engine::database::Transaction;

/// Runs a statement that changes or locks rows.
pub(super) fn change(action: &Action, transaction: &mut Transaction<'static>, execution: &Execution) -> SqlResult<Outcome> {
    match action {
        Action::Locking(locking) => change::lock_rows(locking, transaction, execution),
        Action::Insert { plan, .. } => change::insert(plan, transaction, execution),
        Action::Change(plan) => change::change(plan, transaction, execution),
        Action::Merge(plan) => crate::execute::merge::merge(plan, transaction, execution),
        Action::Query(_) | Action::Point(_) => Err(SqlError::new("XX000", "a query that is to change rows")),
        Action::CopyFrom(_) | Action::CopyTo(_) => Err(SqlError::new("XX000", "a COPY without its text")),
    }
}

/// Runs a statement and those of its WITH that change rows; what is done is what the statement itself does.
pub(super) fn run(planned: &Planned, transaction: &mut Transaction<'static>, execution: &Execution) -> SqlResult<Outcome> {
    let mut main = Changed::default();
    for turn in &planned.order {
        let (number, action) = match turn {
            Turn::Change(at) => (Some(planned.changes[*at].number), &planned.changes[*at].action),
            Turn::Main => (None, &planned.action),
        };
        let changed = match action {
            // Its rows are taken now: what comes behind it in the order changes what it reads.
            Action::Query(plan) | Action::Point(PointPlan { plan, .. }) => {
                let context = execution.context();
                let (mut rows, mut taken) = (open(plan, &context)?, Changed::default());
                while let Some(row) = rows.next(&context)? {
                    execution.look()?;
                    execution.budget.take(bytes_of(&row))?;
                    taken.returned.push(row);
                }
                taken.rows = taken.returned.len() as u64;
                taken
            }
            action => match change(action, transaction, execution)? {
                Outcome::Done(changed) => changed,
                Outcome::Again => return Ok(Outcome::Again),
            },
        };
        match number {
            Some(number) => execution.keep(number, changed.returned),
            None => main = changed,
        }
    }
    Ok(Outcome::Done(main))
}

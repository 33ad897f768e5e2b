//! MERGE.
//!
//! Invariant: what becomes of each row, and all values that it takes, is settled before the first one changes.

use super::change::{ChangeTo, Changed, Changer, Outcome, RowChange, RowsMet, follow, insert_one, place_of};
use super::foreign_key::Keeper;
use super::spill::RowList;
use super::{Context, Execution, Operator, Tuple, open};
use crate::bind::merge::{MergeAction, MergePlan, When};
use crate::{SqlError, SqlResult};
use pagefold_engine::database::Transaction;
use pagefold_types::Value;

/// Part and RID.
const PLACE: usize = 2;

/// Runs a MERGE.
pub(crate) fn merge(plan: &MergePlan, transaction: &mut Transaction<'static>, execution: &Execution) -> SqlResult<Outcome> {
    let context = execution.context();
    execution.know(&plan.beforehand)?;
    let mut rows = settled(plan, &context)?;
    let mut changed = Changed::default();
    let mut changer = Changer { table: &plan.table, rules: &plan.rules, has_all: true, keeper: Keeper::new(&plan.references) };
    let width = plan.table.schema.len();
    let mut row = Tuple::new();
    while rows.fill(&context, &mut row)? {
        execution.look()?;
        let Some(Value::Int(number)) = row.pop() else { return Err(SqlError::new("XX000", "a row of MERGE without its clause")) };
        let clause = &plan.clauses[number as usize];
        let (joined, values) = row.split_at(row.len() - clause.values());
        let (old, source) = joined[PLACE..].split_at(width);
        let new = match &clause.action {
            MergeAction::Insert(_) => {
                let mut new = values.to_vec();
                follow(&plan.table, &plan.rules, &context, &mut new)?;
                insert_one(&plan.table, transaction, &new)?;
                changer.keeper.came(transaction, execution, 0, None, &new)?;
                new
            }
            action => {
                let to = match action {
                    MergeAction::Update(columns, _) => ChangeTo::Values { columns, assigned: values },
                    _ => ChangeTo::Nothing,
                };
                match changer.change(transaction, &context, place_of(joined)?, old, to)? {
                    RowChange::Again => return Ok(Outcome::Again),
                    RowChange::Gone => continue,
                    RowChange::Done(new) => new.unwrap_or_else(|| old.to_vec()),
                }
            }
        };
        changed.rows += 1;
        if plan.returning.is_some() {
            let both = [source, &new].concat();
            changed.give(plan.returning.as_ref(), &context, &both)?;
        }
    }
    changer.keeper.finish(transaction, execution)?;
    Ok(Outcome::Done(changed))
}

/// Rows of which something becomes: as they are joined, behind them the values of their clause, and its number.
fn settled(plan: &MergePlan, context: &Context<'_>) -> SqlResult<super::spill::ListRows> {
    let execution = context.execution;
    let mut source = open(&plan.source, context)?;
    let mut rows = RowList::default();
    let mut met = RowsMet::default();
    while let Some(mut row) = source.next(context)? {
        execution.look()?;
        let when = match (&row[0], row.last()) {
            (Value::Null, _) => When::NotMatched,
            (_, Some(Value::Null)) => When::NotMatchedBySource,
            _ => When::Matched,
        };
        let mut found = None;
        for (number, clause) in plan.clauses.iter().enumerate().filter(|(_, clause)| clause.when == when) {
            if clause.condition.as_ref().map_or(Ok(true), |condition| context.is_true(condition, &row))? {
                found = Some((number, clause));
                break;
            }
        }
        let Some((number, clause)) = found else { continue };
        if matches!(clause.action, MergeAction::Nothing) {
            continue;
        }
        if when == When::Matched && !met.is_first(execution, place_of(&row)?)? {
            return Err(SqlError::new("21000", "MERGE command cannot affect row a second time")
                .with_hint("Ensure that not more than one source row matches any one target row."));
        }
        if let MergeAction::Insert(exprs) | MergeAction::Update(_, exprs) = &clause.action {
            let values = exprs.iter().map(|expr| context.evaluate(expr, &row)).collect::<SqlResult<Tuple>>()?;
            row.extend(values);
        }
        row.push(Value::Int(number as i64));
        rows.push(execution, row)?;
    }
    drop(source);
    met.forget(execution);
    rows.finish(execution)
}

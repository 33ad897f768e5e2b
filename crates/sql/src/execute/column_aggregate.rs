//! Aggregates of a whole table, column by column: the values of a batch go to their accumulators as they lie in it, and no row is made.
//!
//! Invariant: what comes is what the rows one by one would give.

use super::tests::ask;
use super::{Context, Tuple};
use crate::expression::{Accumulator, Expr};
use crate::plan::{Access, AggregatePlan, CountPlan, Plan, ScanPlan};
use crate::{SqlError, SqlResult};
use pagefold_engine::database::ScanRequest;
use pagefold_engine::table_space::BatchColumn;
use pagefold_types::{DataType, Physical, Value, ValueRef};
use std::sync::Arc;

/// Where the value of an aggregate is: `None` counts rows.
type Place = Option<(usize, DataType)>;

/// The scan, and where each aggregate finds its values, if all of them are columns that a batch has as numbers.
fn places(plan: &AggregatePlan) -> Option<(&Arc<ScanPlan>, Vec<Place>)> {
    let Plan::Scan(scan) = &plan.input else { return None };
    let is_plain = plan.keys.is_empty() && scan.access == Access::Pages && scan.residual.is_none();
    let has_places = scan.columns.iter().any(|column| *column >= scan.table.schema.len());
    if !is_plain || has_places {
        return None;
    }
    let place = |argument: &Option<Expr>| match argument {
        None => Some(None),
        Some(Expr::Slot(slot)) => {
            let data_type = scan.table.schema.columns()[scan.columns[*slot]].data_type;
            is_number(&data_type).then_some(Some((*slot, data_type)))
        }
        Some(_) => None,
    };
    let places = plan.aggregates.iter().map(|noted| if noted.filter.is_some() { None } else { place(&noted.aggregate.argument) });
    Some((scan, places.collect::<Option<Vec<Place>>>()?))
}

/// Has a batch its values as numbers of 64 bits?
fn is_number(data_type: &DataType) -> bool {
    match data_type.physical() {
        Physical::Int { .. } | Physical::Real | Physical::Double | Physical::Boolean => true,
        Physical::Decimal { width } => width <= 8,
        _ => false,
    }
}

/// The one row of a query without GROUP BY; `None` when it has to be computed row by row.
pub(super) fn compute(plan: &AggregatePlan, context: &Context<'_>) -> SqlResult<Option<Tuple>> {
    let Some((scan, places)) = places(plan) else { return Ok(None) };
    let (asked, parts) = ask(scan, context, &[])?;
    let mut accumulators: Vec<Accumulator> = plan.aggregates.iter().map(|noted| Accumulator::new(&noted.aggregate)).collect();
    let mut grown = 0;
    let observed = context.execution.observed.as_ref();
    observed.inspect(|observed| observed.gave(std::ptr::from_ref(&plan.input), 0, true));
    for part in parts {
        let table = &scan.table.parts[part].table;
        let request = ScanRequest { columns: Some(scan.columns.clone()), condition: asked.clone(), limit: None, rids: false };
        for batch in context.execution.view.scan(table, &request)? {
            let batch = batch?;
            context.execution.limits.check()?;
            observed.inspect(|observed| observed.gave(std::ptr::from_ref(&plan.input), batch.len() as u64, false));
            for (place, accumulator) in places.iter().zip(&mut accumulators) {
                match place {
                    None => accumulator.count_rows(batch.len() as u64)?,
                    Some((slot, data_type)) => add(accumulator, &batch.columns()[*slot], data_type)?,
                }
            }
            let bytes: usize = accumulators.iter().map(Accumulator::grown_bytes).sum();
            context.execution.budget.take(bytes.saturating_sub(grown))?;
            grown = grown.max(bytes);
        }
    }
    accumulators.into_iter().map(Accumulator::finish).collect::<SqlResult<Tuple>>().map(Some)
}

/// Of a table without conditions, how many rows the view sees: pages are asked for that, and not their rows.
pub(crate) fn count(plan: &CountPlan, context: &Context<'_>) -> SqlResult<Tuple> {
    let mut rows = 0_u64;
    for part in plan.table.parts_for(None)? {
        rows += context.execution.view.count_rows(&plan.table.parts[part].table, || context.execution.look())?;
    }
    let rows = i64::try_from(rows).map_err(|_| SqlError::out_of_range("bigint"))?;
    Ok(vec![Value::Int(rows); plan.columns])
}

fn add(accumulator: &mut Accumulator, column: &BatchColumn, data_type: &DataType) -> SqlResult<()> {
    let is_whole = matches!(data_type.physical(), Physical::Int { .. } | Physical::Decimal { .. });
    if is_whole && column.null_count() == 0 && accumulator.add_whole(column.ints())? {
        return Ok(());
    }
    let validity = (column.null_count() > 0).then(|| column.validity());
    let is_there = |row: usize| validity.is_none_or(|validity| validity.get(row));
    let mut each = |value: &dyn Fn(i64) -> ValueRef<'static>| -> SqlResult<()> {
        for (row, number) in column.ints().iter().enumerate() {
            if is_there(row) {
                accumulator.add(value(*number))?;
            }
        }
        Ok(())
    };
    match data_type.physical() {
        Physical::Boolean => each(&|number| ValueRef::Boolean(number != 0)),
        Physical::Real => each(&|number| ValueRef::Real(f32::from_bits(number as u32))),
        Physical::Double => each(&|number| ValueRef::Double(f64::from_bits(number.cast_unsigned()))),
        Physical::Decimal { .. } => each(&|number| ValueRef::Decimal(number.into())),
        _ => each(&ValueRef::Int),
    }
}

//! The plan of a SELECT.

use super::join::{Joining, place};
use super::{HashPlan, JoinKind, Plan};
use crate::SqlResult;
use crate::bind::{AGGREGATES, Binder, Distinct, GROUPINGS, Groups, KEYS, Noted, Select, SortKey, Source};
use crate::expression::{AggregateKind, Expr, SubqueryKind};
use std::sync::Arc;

/// Plans a SELECT whose relations are those of the innermost scope.
pub(crate) fn plan(binder: &mut Binder<'_>, select: Select) -> SqlResult<Plan> {
    let Select { from, mut conditions, groups, windows, mut projection, visible, distinct, mut order, limit } = select;
    let scope = binder.scope();
    let relations = &scope.relations;
    let extreme = groups.as_ref().and_then(|groups| extreme_column(groups, relations));
    let wanted = match extreme {
        Some(Extreme { column, descending, is_nullable }) => {
            // Of what is no NULL, the first is the least.
            let of = Box::new(Expr::Column { relation: 0, column });
            conditions.extend(is_nullable.then_some(Expr::IsNull { of, negated: true }));
            Some(vec![(column, descending)])
        }
        None => wanted_order(
            &order,
            &projection,
            groups.is_some() || distinct != Distinct::None || !windows.is_empty() || !limit.ties.is_empty(),
            relations,
        ),
    };
    let few = limit.limit.is_some() && windows.is_empty() || extreme.is_some();
    let joining = Joining { relations, order: wanted.as_deref().unwrap_or(&[]), few };
    let (joined, with_subqueries) = joining.join(from, conditions)?;
    let is_ordered = wanted.is_some() && joined.is_ordered;
    let mut plan = ask_subqueries(binder, joined.plan, joined.layout.len(), with_subqueries);
    match (is_ordered, extreme) {
        (true, Some(_)) => plan = plan.first_rows(1),
        (true, None) => order.clear(),
        _ => {}
    }
    let mut layout = joined.layout;
    match groups {
        None => {}
        Some(Groups { mut keys, sets, mut aggregates, mut having }) => {
            keys.iter_mut().for_each(|key| place(key, &layout));
            for noted in &mut aggregates {
                noted.aggregate.exprs_mut().for_each(|expr| place(expr, &layout));
                noted.filter.iter_mut().for_each(|filter| place(filter, &layout));
            }
            let (count, calls) = (keys.len(), sets.first().map_or(0, |set| set.calls.len()));
            let width = layout.len();
            layout = (0..count).map(|key| (KEYS, key)).collect();
            layout.extend((0..calls).map(|call| (GROUPINGS, call)));
            plan = if sets.is_empty() {
                plan.aggregated(keys, aggregates.clone())
            } else {
                // The number of the set comes behind.
                layout.push((KEYS, count));
                plan.expanded(keys, sets, width, aggregates.clone())
            };
            layout.extend((0..aggregates.len()).map(|aggregate| (AGGREGATES, aggregate)));
            having.iter_mut().for_each(|expr| place(expr, &layout));
            plan = plan.filtered(having);
        }
    }
    plan = plan.windowed(windows, &mut layout);
    projection.iter_mut().for_each(|expr| place(expr, &layout));
    // What rows were ordered by, and are no more, need not come.
    if order.is_empty() {
        projection.truncate(visible);
    }
    if distinct == Distinct::None && !order.is_empty() {
        let is_key = |slot: usize| order.iter().any(|key| key.slot == slot);
        let late = projection.iter().enumerate().map(|(slot, expr)| is_late(expr, limit.limit.is_some()) && !is_key(slot));
        let late: Vec<bool> = late.collect();
        if late[..visible].contains(&true) {
            let (before, behind) = around_sort(projection, &late, &mut order, visible);
            return Ok(plan.projected(before).sorted(order).limited(limit).projected(behind));
        }
    }
    let columns = projection.len();
    plan = plan.projected(projection);
    let plan = match distinct {
        Distinct::None => plan.sorted(order),
        Distinct::Rows => plan.distinct().sorted(order),
        Distinct::On(slots) => plan.sorted(order).first_of_each(slots),
    };
    Ok(plan.limited(limit).cut(columns, visible))
}

/// Is a value to be computed of the rows that come out only, in their order? What gives another one each time is; a subquery is worth it where not all rows come out.
fn is_late(expr: &Expr, has_limit: bool) -> bool {
    expr.any(|part| part.is_volatile() || has_limit && matches!(part, Expr::Subquery { outer, .. } if !outer.is_empty()))
}

/// What comes of the rows before they are sorted, and what of these behind that: the `visible` columns. Places of keys become those in the former.
fn around_sort(projection: Vec<Expr>, late: &[bool], order: &mut [SortKey], visible: usize) -> (Vec<Expr>, Vec<Expr>) {
    let mut before: Vec<Expr> = Vec::with_capacity(projection.len());
    let mut moved = vec![0; projection.len()];
    for (slot, expr) in projection.iter().enumerate().filter(|(slot, _)| !late[*slot]) {
        moved[slot] = before.len();
        before.push(expr.clone());
    }
    let mut behind = Vec::with_capacity(visible);
    for (slot, mut expr) in projection.into_iter().enumerate().take(visible) {
        if !late[slot] {
            behind.push(Expr::Slot(moved[slot]));
            continue;
        }
        expr.rewrite(&mut |part| {
            if let Expr::Slot(own) = *part {
                let own = Expr::Slot(own);
                let at = before.iter().position(|known| *known == own).unwrap_or(before.len());
                if at == before.len() {
                    before.push(own);
                }
                *part = Expr::Slot(at);
            }
        });
        behind.push(expr);
    }
    order.iter_mut().for_each(|key| key.slot = moved[key.slot]);
    (before, behind)
}

/// Asks conditions with subqueries. One that is IN or NOT IN a subquery that needs nothing of the row is a join: its values are hashed once.
fn ask_subqueries(binder: &mut Binder<'_>, mut plan: Plan, width: usize, conditions: Vec<Expr>) -> Plan {
    let has_subquery = |of: &Expr| of.any(|part| matches!(part, Expr::Subquery { .. }));
    let mut rest = Vec::new();
    for condition in conditions {
        match condition {
            Expr::Subquery { number, kind: SubqueryKind::In { of, negated }, outer }
                // A row with a NULL among others may be unequal to another one.
                if outer.is_empty() && (of.len() == 1 || !negated) && !of.iter().any(has_subquery) =>
            {
                // Nobody else has the plan of a subquery.
                let second = std::mem::take(&mut binder.subplans[number]);
                let kind = if negated { JoinKind::Anti } else { JoinKind::Semi };
                let (second_keys, columns) = ((0..of.len()).map(Expr::Slot).collect(), of.len());
                let hash = HashPlan {
                    kind,
                    first: plan,
                    second,
                    first_keys: of,
                    second_keys,
                    condition: None,
                    widths: (width, columns),
                    nulls_match: negated,
                };
                plan = Plan::Hash(Arc::new(hash));
            }
            other => rest.push(other),
        }
    }
    plan.filtered(rest)
}

/// The first value of a column of the one table, in an order.
#[derive(Clone, Copy)]
struct Extreme {
    column: usize,
    descending: bool,
    is_nullable: bool,
}

/// What MIN or MAX asks for, if nothing else is asked for.
fn extreme_column(groups: &Groups, relations: &[crate::bind::Relation]) -> Option<Extreme> {
    let ([], [Noted { aggregate, filter: None }], [relation]) = (groups.keys.as_slice(), groups.aggregates.as_slice(), relations) else {
        return None;
    };
    let descending = match aggregate.kind {
        AggregateKind::Min => false,
        AggregateKind::Max => true,
        _ => return None,
    };
    match (&aggregate.argument, &relation.source) {
        (Some(Expr::Column { relation: 0, column }), Source::Table(table)) if groups.sets.is_empty() => {
            Some(Extreme { column: *column, descending, is_nullable: table.schema.columns()[*column].nullable })
        }
        _ => None,
    }
}

/// The order of rows as columns of the one table that they are of, if that is what is asked for.
fn wanted_order(order: &[SortKey], projection: &[Expr], is_other: bool, relations: &[crate::bind::Relation]) -> Option<Vec<(usize, bool)>> {
    let [relation] = relations else { return None };
    let Source::Table(table) = &relation.source else { return None };
    if is_other || order.is_empty() {
        return None;
    }
    let column = |key: &SortKey| {
        let Expr::Column { relation: 0, column } = projection[key.slot] else { return None };
        // NULLs are last in an index, first when it is read backward.
        let is_nullable = table.schema.columns()[column].nullable;
        (!is_nullable || key.nulls_first == key.descending).then_some((column, key.descending))
    };
    order.iter().map(column).collect()
}

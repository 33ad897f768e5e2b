//! Conditions that are asked as early as they can be: those of a query on a view, or on a query in FROM, go into it.
//!
//! A condition that arrives at a table becomes a test of it, and may choose an index, as if it had been written there.
//!
//! Invariants:
//! - a condition is asked of the same values, and of each row that would come out; only whether rows that would be dropped are computed at all is another matter;
//! - it passes nothing that would come out otherwise: no LIMIT, no group that it does not name, no window but by columns of its partitions, not the side of an outer join that may be NULL;
//! - a scan whose order somebody relies on keeps its access.

use super::access::{Wanted, choose, keeps_order, needs_row};
use super::join::place;
use super::together;
use super::{
    Access, AggregatePlan, CutPlan, HashPlan, JoinKind, LateralPlan, LookUpPlan, Plan, ProjectPlan, ScanPlan, SetPlan, SortPlan,
    WindowPlan, WithinPlan,
};
use crate::expression::{Comparison, Expr};
use std::sync::Arc;

/// Stands for the one table of a scan.
const OWN: usize = 0;

impl Plan {
    /// Its rows for which these conditions of its columns ([`Expr::Slot`]) are true.
    pub(crate) fn asking(self, conditions: Vec<Expr>) -> Plan {
        let (pushed, kept): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(can_move);
        self.pushed(pushed).filtered(kept)
    }

    fn pushed(self, conditions: Vec<Expr>) -> Plan {
        if conditions.is_empty() {
            return self;
        }
        match self {
            Plan::Scan(scan) => ask_table(&scan, conditions),
            Plan::Filter(filter) => {
                // What may fail is asked only of rows that the filter lets through.
                let (below, above): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(cannot_fail);
                let condition = [vec![filter.condition.clone()], above].concat();
                filter.input.clone().pushed(below).filtered(condition)
            }
            Plan::Project(project) => {
                let exprs = &project.exprs;
                let (below, above) = split(conditions, |slot| exprs.get(slot).is_some_and(can_move));
                let below = below.into_iter().map(|condition| in_terms_of(condition, exprs)).collect();
                let input = project.input.clone().pushed(below);
                Plan::Project(Arc::new(ProjectPlan { input, exprs: exprs.clone() })).filtered(above)
            }
            Plan::Within(within) => {
                // The outer row is another one in there.
                let (above, below) =
                    conditions.into_iter().partition(|condition: &Expr| condition.any(|part| matches!(part, Expr::Outer(_))));
                let (input, outer) = (within.input.clone().pushed(below), within.outer.clone());
                Plan::Within(Arc::new(WithinPlan { input, outer })).filtered(above)
            }
            // Without keys there is a row even of no rows.
            Plan::Aggregate(aggregate) if !aggregate.keys.is_empty() && aggregate.totals.is_empty() => {
                let keys = &aggregate.keys;
                let (below, mut above) = split(conditions, |slot| keys.get(slot).is_some_and(can_move));
                // Groups that need nothing of the row around are made once for all rows around.
                let (around, below): (Vec<Expr>, Vec<Expr>) = below.into_iter().partition(asks_of_others_around);
                above.extend(around);
                let below = below.into_iter().map(|condition| in_terms_of(condition, keys)).collect();
                let (input, aggregates) = (aggregate.input.clone().pushed(below), aggregate.aggregates.clone());
                Plan::Aggregate(Arc::new(AggregatePlan { input, keys: keys.clone(), aggregates, totals: Vec::new() })).filtered(above)
            }
            Plan::Window(window) => {
                // A partition comes whole, or not at all.
                let is_key = |slot| slot < window.width && window.partition.contains(&Expr::Slot(slot));
                let (below, above) = split(conditions, is_key);
                let (partition, order, calls) = (window.partition.clone(), window.order.clone(), window.calls.clone());
                let (input, width) = (window.input.clone().pushed(below), window.width);
                Plan::Window(Arc::new(WindowPlan { input, width, partition, order, calls })).filtered(above)
            }
            Plan::Distinct(input) => Plan::Distinct(Arc::new(input.as_ref().clone().pushed(conditions))),
            Plan::FirstOfEach(first) => {
                let (below, above) = split(conditions, |slot| first.slots.contains(&slot));
                first.input.clone().pushed(below).first_of_each(first.slots.clone()).filtered(above)
            }
            Plan::Sort(sort) if sort.limit.limit.is_none() && sort.limit.offset.is_none() => {
                let input = sort.input.clone().pushed(conditions);
                Plan::Sort(Arc::new(SortPlan { input, keys: sort.keys.clone(), limit: sort.limit.clone() }))
            }
            Plan::Cut(cut) => Plan::Cut(Arc::new(CutPlan { input: cut.input.clone().pushed(conditions), columns: cut.columns })),
            Plan::Set(set) => {
                let (first, second) = (set.first.clone().pushed(conditions.clone()), set.second.clone().pushed(conditions));
                Plan::Set(Arc::new(SetPlan { operation: set.operation, all: set.all, first, second }))
            }
            Plan::Lateral(lateral) => ask_lateral(&lateral, conditions),
            Plan::Hash(hash) => ask_hash(&hash, conditions),
            Plan::LookUp(look_up) => ask_look_up(&look_up, conditions),
            other @ (Plan::Values(_)
            | Plan::Series(_)
            | Plan::System(_)
            | Plan::Expand(_)
            | Plan::Aggregate(_)
            | Plan::Count(_)
            | Plan::Recursive(_)
            | Plan::Step(_)
            | Plan::Shared(_)
            | Plan::Kept(_)
            | Plan::Sort(_)
            | Plan::Limit(_)) => other.filtered(conditions),
        }
    }
}

/// Can it be asked elsewhere? Not what is another value each time, and not what asks a subquery for each row.
fn can_move(expr: &Expr) -> bool {
    !expr.any(|part| part.is_volatile() || needs_row(part))
}

/// Does it compare with the row around otherwise than by an equality, which leaves few rows to be found?
fn asks_of_others_around(condition: &Expr) -> bool {
    let is_equality = matches!(condition, Expr::Compare { comparison: Comparison::Equal, .. });
    !is_equality && condition.any(|part| matches!(part, Expr::Outer(_)))
}

/// Has it a value whatever the row is?
fn cannot_fail(expr: &Expr) -> bool {
    !expr.any(|part| match part {
        Expr::Arithmetic { .. } | Expr::Negate { .. } | Expr::Call { .. } | Expr::Subquery { .. } => true,
        Expr::Cast { from, to, .. } => !keeps_order(from, to),
        _ => false,
    })
}

/// Conditions all of whose slots are so, and the others.
fn split(conditions: Vec<Expr>, is_below: impl Fn(usize) -> bool) -> (Vec<Expr>, Vec<Expr>) {
    conditions.into_iter().partition(|condition| !condition.any(|part| matches!(part, Expr::Slot(slot) if !is_below(*slot))))
}

/// A condition with these expressions in the place of its slots.
fn in_terms_of(mut condition: Expr, exprs: &[Expr]) -> Expr {
    condition.rewrite(&mut |part| {
        if let Expr::Slot(slot) = part {
            *part = exprs[*slot].clone();
        }
    });
    condition
}

/// A condition of what stands so many columns further left.
fn moved(mut condition: Expr, by: usize) -> Expr {
    condition.rewrite(&mut |part| {
        if let Expr::Slot(slot) = part {
            *slot -= by;
        }
    });
    condition
}

fn ask_table(scan: &Arc<ScanPlan>, conditions: Vec<Expr>) -> Plan {
    // What says where a row stands is no column of the table.
    let (conditions, above) = split(conditions, |slot| scan.columns[slot] < scan.table.schema.len());
    Plan::Scan(Arc::new(asking_table(scan, conditions))).filtered(above)
}

fn asking_table(scan: &ScanPlan, conditions: Vec<Expr>) -> ScanPlan {
    let columns: Vec<Expr> = scan.columns.iter().map(|column| Expr::Column { relation: OWN, column: *column }).collect();
    let layout: Vec<(usize, usize)> = scan.columns.iter().map(|column| (OWN, *column)).collect();
    let wanted = Wanted {
        table: &scan.table,
        relation: OWN,
        columns: scan.columns.clone(),
        tests: scan.tests.clone(),
        conditions: conditions.into_iter().map(|condition| in_terms_of(condition, &columns)).collect(),
        relations: &[],
        order: &[],
        few: false,
        pairs: false,
    };
    let mut asking = choose(&wanted).scan(&wanted, &mut |_| {}, &mut |expr| place(expr, &layout));
    if scan.access != Access::Pages {
        asking.access = scan.access.clone();
        asking.keys = scan.keys.clone();
        asking.in_order = scan.in_order;
    }
    asking.rows = asking.rows.min(scan.rows);
    asking.residual = together(scan.residual.iter().cloned().chain(asking.residual).collect());
    asking
}

fn ask_hash(hash: &HashPlan, conditions: Vec<Expr>) -> Plan {
    let width = hash.widths.0;
    let (of_first, rest) = match hash.kind {
        JoinKind::Full => (Vec::new(), conditions),
        _ => split(conditions, |slot| slot < width),
    };
    let (of_second, above) = match hash.kind {
        JoinKind::Inner => split(rest, |slot| slot >= width),
        _ => (Vec::new(), rest),
    };
    let of_second = of_second.into_iter().map(|condition| moved(condition, width)).collect();
    let plan = HashPlan {
        kind: hash.kind,
        first: hash.first.clone().pushed(of_first),
        second: hash.second.clone().pushed(of_second),
        first_keys: hash.first_keys.clone(),
        second_keys: hash.second_keys.clone(),
        condition: hash.condition.clone(),
        widths: hash.widths,
        nulls_match: hash.nulls_match,
    };
    Plan::Hash(Arc::new(plan)).filtered(above)
}

fn ask_lateral(lateral: &LateralPlan, conditions: Vec<Expr>) -> Plan {
    // The outer row of the second side is another one.
    let (of_first, above) = split(conditions, |slot| slot < lateral.widths.0);
    let plan = LateralPlan {
        kind: lateral.kind,
        first: lateral.first.clone().pushed(of_first),
        second: lateral.second.clone(),
        outer: lateral.outer.clone(),
        condition: lateral.condition.clone(),
        widths: lateral.widths,
    };
    Plan::Lateral(Arc::new(plan)).filtered(above)
}

fn ask_look_up(look_up: &LookUpPlan, conditions: Vec<Expr>) -> Plan {
    let (of_first, rest) = split(conditions, |slot| slot < look_up.width);
    let (of_second, above) = match look_up.kind {
        JoinKind::Inner => split(rest, |slot| slot >= look_up.width),
        _ => (Vec::new(), rest),
    };
    let of_second: Vec<Expr> = of_second.into_iter().map(|condition| moved(condition, look_up.width)).collect();
    let plan = LookUpPlan {
        kind: look_up.kind,
        first: look_up.first.clone().pushed(of_first),
        second: if of_second.is_empty() { Arc::clone(&look_up.second) } else { Arc::new(asking_table(&look_up.second, of_second)) },
        width: look_up.width,
        condition: look_up.condition.clone(),
    };
    Plan::LookUp(Arc::new(plan)).filtered(above)
}

//! Joins: by hashes, whatever the row executor does.

use super::correlated::{Correlation, are_alike, nothing};
use super::translate::{Part, Translated, exprs_of, terms};
use super::{Chooser, Join, JoinType, Node, Operation, Scalar};
use crate::bind::SetOperation;
use crate::expression::{Comparison, Expr};
use crate::plan::access::{Test, TestKind};
use crate::plan::{HashPlan, JoinKind, LookUpPlan};
use pagefold_types::DataType;

/// A column as values of another type are compared with it.
pub(super) fn as_compared(column: usize, own: &DataType, data_type: &DataType) -> Expr {
    use DataType::{BigInt, Decimal, Integer, SmallInt, Varchar};
    let is_same = match (own, data_type) {
        (SmallInt | Integer | BigInt, SmallInt | Integer | BigInt) | (Varchar(_), Varchar(_)) => true,
        (Decimal { scale: a, .. }, Decimal { scale: b, .. }) => a == b,
        (a, b) => a == b,
    };
    let slot = Expr::Slot(column);
    if is_same { slot } else { Expr::Cast { of: Box::new(slot), from: *own, to: *data_type } }
}

fn join_type(kind: JoinKind) -> JoinType {
    match kind {
        JoinKind::Inner => JoinType::Inner,
        JoinKind::Left => JoinType::Left,
        JoinKind::Full => JoinType::Full,
        JoinKind::Semi => JoinType::Semi,
        JoinKind::Anti => JoinType::Anti,
    }
}

/// Do columns of both sides come out?
pub(super) fn is_pair(kind: JoinType) -> bool {
    matches!(kind, JoinType::Inner | JoinType::Left | JoinType::Full)
}

impl Join {
    /// May its keys fail, or what it asks of pairs?
    pub(super) fn may_fail(&self) -> bool {
        self.condition.as_ref().is_some_and(Scalar::can_fail) || self.keys.iter().any(|(a, b)| a.can_fail() || b.can_fail())
    }

    /// A semi-join whose keys are columns of one side of an inner join below it is made there, before the rows of that side are joined: it leaves some of them out. Where that was done, the first
    /// side is all of it. Nothing may fail that is then evaluated of fewer rows.
    fn take_down(&mut self) -> bool {
        let columns: Option<Vec<usize>> =
            self.keys.iter().map(|(key, _)| if let Scalar::Column(column, _) = key { Some(*column) } else { None }).collect();
        let (Some(columns), Operation::Join(below)) = (columns, &mut self.first.operation) else { return false };
        let width = below.first.kinds.len();
        let (in_first, in_second) = (columns.iter().all(|column| *column < width), columns.iter().all(|column| *column >= width));
        if columns.is_empty()
            || self.kind != JoinType::Semi
            || self.condition.is_some()
            || below.kind != JoinType::Inner
            || below.may_fail()
            || !(in_first || in_second)
        {
            return false;
        }
        let side = if in_first { &mut below.first } else { &mut below.second };
        let mut keys = std::mem::take(&mut self.keys);
        if in_second {
            keys.iter_mut().for_each(|(key, _)| key.columns_mut(&mut |column| *column -= width));
        }
        let first = std::mem::replace(side, nothing());
        let second = std::mem::replace(&mut self.second, nothing());
        let (kinds, rows, part) = (first.kinds.clone(), (first.rows * 0.5).max(1.0), first.part * 0.5);
        let mut join = Join { kind: JoinType::Semi, first, second, keys, condition: None, nulls_match: false, nulls_equal: false };
        *side = match join.take_down() {
            true => join.first,
            false => Node { operation: Operation::Join(Box::new(join)), kinds, rows, part },
        };
        self.first.rows = (self.first.rows * 0.5).max(1.0);
        true
    }
}

/// Rows of one side that are among those of the other, or are not; NULL is equal to NULL.
pub(super) fn compared(first: Node, second: Node, operation: SetOperation) -> Option<Node> {
    let keys = (0..first.kinds.len()).map(|column| Some((first.column(column)?, second.column(column)?)));
    let keys = keys.collect::<Option<Vec<(Scalar, Scalar)>>>()?;
    if !are_alike(&keys) || keys.is_empty() {
        return None;
    }
    let kind = if operation == SetOperation::Intersect { JoinType::Semi } else { JoinType::Anti };
    let (kinds, rows, part) = (first.kinds.clone(), (first.rows * 0.5).max(1.0), first.part * 0.5);
    let join = Join { kind, first, second, keys, condition: None, nulls_match: false, nulls_equal: true };
    Some(Node { operation: Operation::Join(Box::new(join)), kinds, rows, part })
}

/// Two sides that are to be joined.
struct Sides {
    kind: JoinKind,
    first: Translated,
    second: Translated,
    /// Expressions of the slots of each side's plan.
    keys: Vec<(Expr, Expr)>,
    /// Of the slots of both plans.
    conditions: Vec<Expr>,
    nulls_match: bool,
    rows: f64,
}

impl Chooser<'_> {
    pub(super) fn hash(&self, plan: &HashPlan) -> Option<Translated> {
        let (first, second) = (self.part(&plan.first)?, self.part(&plan.second)?);
        if (first.0.width, second.0.width) != plan.widths {
            return None;
        }
        let (one, other) = (first.0.node.rows, second.0.node.rows);
        // As between a key and what refers to it: one side loses what the other one has lost.
        let related = (one * second.0.node.part).max(other * first.0.node.part).max(1.0);
        let rows = if plan.first_keys.is_empty() { one * other } else { related };
        let keys = plan.first_keys.iter().cloned().zip(plan.second_keys.iter().cloned()).collect();
        let conditions = plan.condition.as_ref().map_or_else(Vec::new, |condition| terms(condition).to_vec());
        self.joined(Sides { kind: plan.kind, first, second, keys, conditions, nulls_match: plan.nulls_match, rows })
    }

    /// What is looked up by values of the row before is joined by them.
    pub(super) fn look_up(&self, plan: &LookUpPlan) -> Option<Translated> {
        let first = self.part(&plan.first)?;
        if first.0.width != plan.width {
            return None;
        }
        let scan = &plan.second;
        let needs_row = |test: &&Test| exprs_of(test).any(|expr| expr.any(|part| matches!(part, Expr::Slot(_))));
        let (by_row, own): (Vec<&Test>, Vec<&Test>) = scan.tests.iter().partition(needs_row);
        let mut more: Vec<usize> = Vec::new();
        let (mut keys, mut conditions) = (Vec::new(), Vec::new());
        for test in by_row {
            let TestKind::Compare { comparison, value, data_type } = &test.kind else { return None };
            let at = scan.columns.iter().chain(&more).position(|column| *column == test.column);
            let at = at.unwrap_or_else(|| {
                more.push(test.column);
                scan.columns.len() + more.len() - 1
            });
            let own = as_compared(at, &scan.table.schema.columns().get(test.column)?.data_type, data_type);
            match *comparison {
                Comparison::Equal => keys.push((value.clone(), own)),
                // Of both rows; its own columns stand behind those of the first side.
                comparison => {
                    let mut own = own;
                    own.rewrite(&mut |part| {
                        if let Expr::Slot(slot) = part {
                            *slot += plan.width;
                        }
                    });
                    conditions.push(Expr::Compare { comparison, left: Box::new(own), right: Box::new(value.clone()) });
                }
            }
        }
        let second = self.scan(scan, &own, &more)?;
        conditions.extend(plan.condition.iter().flat_map(terms).cloned());
        let rows = (first.0.node.rows * scan.rows).max(1.0);
        // Columns that are only compared stand behind the second side's, where slots of conditions find them.
        self.joined(Sides { kind: plan.kind, first, second, keys, conditions, nulls_match: false, rows })
    }

    fn joined(&self, sides: Sides) -> Option<Translated> {
        let Sides { kind, first: (first, of_first), second: (second, of_second), keys, conditions, nulls_match, rows } = sides;
        // What the second side hangs on is a condition of each row, so of pairs only.
        if of_second.is_there() && kind != JoinKind::Inner || of_first.is_there() && kind == JoinKind::Full {
            return None;
        }
        let (width, columns) = (first.width, first.node.kinds.len());
        let keys = keys.iter().map(|(a, b)| Some((self.converted(a, &first.node.kinds)?, self.converted(b, &second.node.kinds)?)));
        let keys = keys.collect::<Option<Vec<(Scalar, Scalar)>>>()?;
        // The second of several keys is not evaluated where the first is NULL.
        let can_fail = keys.len() > 1 && keys.iter().any(|(a, b)| a.can_fail() || b.can_fail());
        if can_fail || !are_alike(&keys) || nulls_match && (keys.len() != 1 || !conditions.is_empty()) {
            return None;
        }
        let both: Vec<_> = first.node.kinds.iter().chain(&second.node.kinds).copied().collect();
        let place = |slot: usize| if slot < width { slot } else { slot - width + columns };
        let (mut hanging, mut terms) = (Correlation::default(), Vec::new());
        for condition in &conditions {
            if condition.any(|part| matches!(part, Expr::Outer(_))) {
                if kind != JoinKind::Inner {
                    return None;
                }
                let mut condition = condition.clone();
                condition.rewrite(&mut |part| {
                    if let Expr::Slot(slot) = part {
                        *slot = place(*slot);
                    }
                });
                hanging.ask(condition);
                continue;
            }
            terms.push(self.prepared_and_converted(condition, &both, &place)?);
        }
        let condition = match terms.len() {
            0 | 1 => terms.pop(),
            _ => Some(Scalar::And(terms)),
        };
        let one_side = matches!(kind, JoinKind::Semi | JoinKind::Anti);
        // Where one partner is enough no other one is looked at.
        if one_side && condition.as_ref().is_some_and(Scalar::can_fail) {
            return None;
        }
        if one_side {
            let (kinds, estimate, part) = (first.node.kinds.clone(), (first.node.rows * 0.5).max(1.0), first.node.part * 0.5);
            let mut join =
                Join { kind: join_type(kind), first: first.node, second: second.node, keys, condition, nulls_match, nulls_equal: false };
            let node = match join.take_down() {
                true => join.first,
                false => Node { operation: Operation::Join(Box::new(join)), kinds, rows: estimate, part },
            };
            return Some((Part { node, width }, of_first));
        }
        let (second_width, all, part) = (second.width, both.len(), first.node.part * second.node.part);
        let join = Join { kind: join_type(kind), first: first.node, second: second.node, keys, condition, nulls_match, nulls_equal: false };
        let mut node = Node { operation: Operation::Join(Box::new(join)), kinds: both, rows, part };
        let mut of_second = of_second;
        of_second.columns_mut(&mut |column| *column += columns);
        let mut correlation = of_first.with(of_second).with(hanging);
        if columns > width {
            // The columns of both plans come first.
            let order: Vec<usize> =
                (0..width).chain(columns..columns + second_width).chain(width..columns).chain(columns + second_width..all).collect();
            correlation.columns_mut(&mut |column| *column = order.iter().position(|from| from == column).unwrap_or(*column));
            node = node.picked(order.into_iter())?;
        }
        Some((Part { node, width: width + second_width }, correlation))
    }
}

//! Subqueries that need values of the row around them, as joins: what they hang on is taken out of them, and becomes what rows are joined by.
//!
//! EXISTS and IN become a semi-join, NOT EXISTS an anti-join. A scalar subquery that is an aggregate without GROUP BY is grouped by what it hangs on, and joined; a row without a group has NULL, which is what such an
//! aggregate of no rows gives where nothing above it makes anything else of NULL (Kim, On Optimizing an SQL-like Nested Query, ACM TODS 7(3), 1982; with the care of Ganski and Wong, SIGMOD 1987).

use super::translate::{Part, Translated};
use super::{Chooser, Join, JoinType, Node, Operation, Scalar};
use crate::bind::Limit;
use crate::expression::{Comparison, Expr, SubqueryKind};
use crate::plan::Plan;
use pagefold_types::Value;

/// How the rows of a subquery hang on the row around it.
#[derive(Debug, Default)]
pub(super) struct Correlation {
    /// An expression of the row around, and the column that it equals.
    keys: Vec<(Expr, usize)>,
    /// Conditions of both: slots are columns.
    rest: Vec<Expr>,
    /// It is an aggregate without GROUP BY: it gives a row also where there is none.
    pub(super) is_scalar: bool,
}

impl Correlation {
    pub(super) fn is_there(&self) -> bool {
        !self.keys.is_empty() || !self.rest.is_empty()
    }

    /// What is compared with an expression of its own.
    pub(super) fn add(&mut self, comparison: Comparison, value: Expr, own: Expr) {
        match (comparison, own) {
            (Comparison::Equal, Expr::Slot(column)) if !value.any(|part| matches!(part, Expr::Slot(_))) => self.keys.push((value, column)),
            (_, own) => self.rest.push(Expr::Compare { comparison, left: Box::new(own), right: Box::new(value) }),
        }
    }

    /// A condition with values of the row around.
    pub(super) fn ask(&mut self, condition: Expr) {
        let is_own = |expr: &Expr| matches!(expr, Expr::Slot(_));
        let is_outer = |expr: &Expr| expr.any(|part| matches!(part, Expr::Outer(_))) && !expr.any(|part| matches!(part, Expr::Slot(_)));
        match condition {
            Expr::Compare { comparison: Comparison::Equal, left, right } if is_own(&left) && is_outer(&right) => {
                self.add(Comparison::Equal, *right, *left);
            }
            Expr::Compare { comparison: Comparison::Equal, left, right } if is_own(&right) && is_outer(&left) => {
                self.add(Comparison::Equal, *left, *right);
            }
            condition => self.rest.push(condition),
        }
    }

    /// Shows each of its own columns, which may be changed.
    pub(super) fn columns_mut(&mut self, each: &mut dyn FnMut(&mut usize)) {
        self.keys.iter_mut().for_each(|(_, column)| each(column));
        for condition in &mut self.rest {
            condition.rewrite(&mut |part| {
                if let Expr::Slot(slot) = part {
                    each(slot);
                }
            });
        }
    }

    /// Columns by which groups are made in place of what it hangs on; `None` where that is more than what is equal.
    pub(super) fn group_by(&self) -> Option<Vec<usize>> {
        (self.rest.is_empty() && !self.is_scalar).then(|| self.keys.iter().map(|(_, column)| *column).collect())
    }

    /// They are now these columns, in their order.
    pub(super) fn regrouped(&mut self, from: usize) {
        self.keys.iter_mut().enumerate().for_each(|(at, (_, column))| *column = from + at);
    }

    /// Both together.
    pub(super) fn with(mut self, other: Correlation) -> Correlation {
        self.keys.extend(other.keys);
        self.rest.extend(other.rest);
        self
    }
}

/// Has it a subquery that needs the row?
pub(super) fn has_correlated(expr: &Expr) -> bool {
    expr.any(|part| matches!(part, Expr::Subquery { outer, .. } if !outer.is_empty()))
}

impl Chooser<'_> {
    /// The subquery, if it hangs on something.
    fn subquery(&self, number: usize) -> Option<Translated> {
        let translated = self.part(self.subplans.get(number)?)?;
        translated.1.is_there().then_some(translated)
    }

    /// Asks a condition that is EXISTS or IN, or NOT EXISTS: false when it is none of these.
    pub(super) fn existing(&self, part: &mut Part, term: &Expr) -> Option<bool> {
        let (subquery, negated) = match term {
            Expr::Not(of) => (&**of, true),
            of => (of, false),
        };
        let Expr::Subquery { number, kind, outer } = subquery else { return Some(false) };
        let among = match (kind, negated) {
            (SubqueryKind::Exists, _) => &[],
            (SubqueryKind::In { of, negated: false }, false) => of.as_slice(),
            (SubqueryKind::Quantified { of, comparison: Comparison::Equal, all: false }, false) => std::slice::from_ref(&**of),
            (SubqueryKind::Scalar, _) => return Some(false),
            _ => return None,
        };
        let (second, correlation) = match (kind, self.subplans.get(*number)?) {
            // One row is as good as all, where none of them fails.
            (SubqueryKind::Exists, Plan::Limit(limit)) if takes_one(&limit.limit) => {
                self.part(&limit.input).filter(|(part, correlation)| correlation.is_there() && !part.node.may_fail())?
            }
            _ => self.subquery(*number)?,
        };
        // An aggregate gives a row whatever there is.
        if correlation.is_scalar {
            return None;
        }
        let first = std::mem::replace(&mut part.node, nothing());
        let mut keys = self.keys(&first, &second.node, &correlation, outer)?;
        for (at, of) in among.iter().enumerate() {
            keys.insert(at, (self.converted(of, &first.kinds)?, second.node.column(at).filter(|_| second.width > at)?));
        }
        let condition = self.rest(&first, &second.node, &correlation, outer)?;
        if keys.is_empty() || condition.as_ref().is_some_and(Scalar::can_fail) || !are_alike(&keys) {
            return None;
        }
        let (kinds, rows, of_all) = (first.kinds.clone(), (first.rows * 0.5).max(1.0), first.part * 0.5);
        let kind = if negated { JoinType::Anti } else { JoinType::Semi };
        let join = Join { kind, first, second: second.node, keys, condition, nulls_match: false, nulls_equal: false };
        part.node = Node { operation: Operation::Join(Box::new(join)), kinds, rows, part: of_all };
        Some(true)
    }

    /// The expression with columns in the place of scalar subqueries that need the row: these are joined.
    pub(super) fn with_scalars(&self, part: &mut Part, expr: &Expr) -> Option<Expr> {
        let mut expr = expr.clone();
        let mut failed = false;
        expr.rewrite(&mut |sub| {
            if let Expr::Subquery { number, kind: SubqueryKind::Scalar, outer } = sub
                && !outer.is_empty()
                && !failed
            {
                match self.scalar_joined(part, *number, outer) {
                    Some(column) => *sub = Expr::Slot(column),
                    None => failed = true,
                }
            }
        });
        (!failed).then_some(expr)
    }

    fn scalar_joined(&self, part: &mut Part, number: usize, outer: &[Expr]) -> Option<usize> {
        let plan = self.subplans.get(number)?;
        let (second, correlation) = self.subquery(number)?;
        let is_null = null_without_rows(plan)?;
        if !correlation.is_scalar || !correlation.rest.is_empty() || !is_null.first().is_some_and(|is_null| *is_null) {
            return None;
        }
        let first = std::mem::replace(&mut part.node, nothing());
        let keys = self.keys(&first, &second.node, &correlation, outer)?;
        if keys.is_empty() || !are_alike(&keys) {
            return None;
        }
        let (column, rows, of_all) = (first.kinds.len(), first.rows, first.part);
        let kinds = first.kinds.iter().chain(&second.node.kinds).copied().collect();
        let join = Join { kind: JoinType::Left, first, second: second.node, keys, condition: None, nulls_match: false, nulls_equal: false };
        part.node = Node { operation: Operation::Join(Box::new(join)), kinds, rows, part: of_all };
        Some(column)
    }

    fn keys(&self, first: &Node, second: &Node, correlation: &Correlation, outer: &[Expr]) -> Option<Vec<(Scalar, Scalar)>> {
        let key = |(value, column): &(Expr, usize)| {
            let value = self.converted(&with_outer(value, outer, 0)?, &first.kinds)?;
            Some((value, second.column(*column)?))
        };
        correlation.keys.iter().map(key).collect()
    }

    fn rest(&self, first: &Node, second: &Node, correlation: &Correlation, outer: &[Expr]) -> Option<Option<Scalar>> {
        let kinds: Vec<_> = first.kinds.iter().chain(&second.kinds).copied().collect();
        let term = |condition: &Expr| self.converted(&with_outer(condition, outer, first.kinds.len())?, &kinds);
        let mut terms = correlation.rest.iter().map(term).collect::<Option<Vec<Scalar>>>()?;
        Some(match terms.len() {
            0 | 1 => terms.pop(),
            _ => Some(Scalar::And(terms)),
        })
    }
}

/// Does a limit let the first row through?
fn takes_one(limit: &Limit) -> bool {
    let is_there = matches!(&limit.limit, Some(Expr::Literal(Value::Int(rows))) if *rows > 0);
    is_there && limit.offset.is_none() && limit.ties.is_empty()
}

/// What stands for a node that was taken away.
pub(super) fn nothing() -> Node {
    Node { operation: Operation::Values(Vec::new()), kinds: Vec::new(), rows: 0.0, part: 1.0 }
}

/// Have both sides of each key one kind, whose values are equal just when they are the same?
pub(super) fn are_alike(keys: &[(Scalar, Scalar)]) -> bool {
    keys.iter().all(|(a, b)| a.kind() == b.kind() && a.kind().is_plain())
}

/// With expressions of the row around in place of its values, and its own slots behind so many columns.
fn with_outer(expr: &Expr, outer: &[Expr], behind: usize) -> Option<Expr> {
    let mut expr = expr.clone();
    let mut failed = false;
    expr.rewrite(&mut |part| match part {
        Expr::Slot(slot) => *slot += behind,
        Expr::Outer(at) => match outer.get(*at) {
            Some(of) => *part = of.clone(),
            None => failed = true,
        },
        _ => {}
    });
    (!failed).then_some(expr)
}

/// Of an aggregate without GROUP BY, and what is made of it: for each column, is it NULL where there are no rows?
fn null_without_rows(plan: &Plan) -> Option<Vec<bool>> {
    match plan {
        Plan::Aggregate(aggregate) if aggregate.keys.is_empty() => {
            Some(aggregate.aggregates.iter().map(|noted| noted.aggregate.kind.is_null_of_nothing()).collect())
        }
        // Rows that a condition leaves out are as none.
        Plan::Filter(filter) => null_without_rows(&filter.input),
        Plan::Cut(cut) => null_without_rows(&cut.input),
        Plan::Project(project) => {
            let below = null_without_rows(&project.input)?;
            Some(project.exprs.iter().map(|expr| is_null_with(expr, &below)).collect())
        }
        _ => None,
    }
}

fn is_null_with(expr: &Expr, below: &[bool]) -> bool {
    match expr {
        Expr::Slot(slot) => below.get(*slot).copied().unwrap_or(false),
        Expr::Cast { of, .. } | Expr::Negate { of, .. } => is_null_with(of, below),
        Expr::Arithmetic { left, right, .. } => is_null_with(left, below) || is_null_with(right, below),
        _ => false,
    }
}

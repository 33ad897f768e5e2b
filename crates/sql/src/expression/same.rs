//! Are two expressions the same? What is grouped by is found again by it, and so are aggregates that are asked for twice.
//!
//! Invariant: same expressions give the same value of each row, to the last bit: the interval of a month is equal to that of 30 days, and no literal in its
//! place; nor is -0 one in the place of 0.

use super::Expr;
use pagefold_types::Value;

/// Is a value the other one, rather than equal to it?
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Interval(a), Value::Interval(b)) => a == b,
        (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits(),
        (Value::Real(a), Value::Real(b)) => a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    }
}

impl PartialEq for Expr {
    fn eq(&self, other: &Expr) -> bool {
        match (self, other) {
            (Expr::Literal(a), Expr::Literal(b)) => is_same(a, b),
            (Expr::Column { relation, column }, Expr::Column { relation: r, column: c }) => (relation, column) == (r, c),
            (Expr::Slot(a), Expr::Slot(b)) | (Expr::Outer(a), Expr::Outer(b)) | (Expr::Param(a), Expr::Param(b)) => a == b,
            (Expr::Not(a), Expr::Not(b)) => a == b,
            (Expr::And(a), Expr::And(b)) | (Expr::Or(a), Expr::Or(b)) => a == b,
            (Expr::IsNull { of, negated }, Expr::IsNull { of: o, negated: n }) => negated == n && of == o,
            (Expr::IsTruth { of, truth, negated }, Expr::IsTruth { of: o, truth: t, negated: n }) => (truth, negated) == (t, n) && of == o,
            (Expr::Compare { comparison, left, right }, Expr::Compare { comparison: c, left: l, right: r }) => {
                comparison == c && left == l && right == r
            }
            (Expr::IsDistinct { left, right, negated }, Expr::IsDistinct { left: l, right: r, negated: n }) => {
                negated == n && left == l && right == r
            }
            (Expr::In { of, list, negated, sorted }, Expr::In { of: o, list: l, negated: n, sorted: s }) => {
                (negated, sorted) == (n, s) && of == o && list == l
            }
            (
                Expr::Like { of, pattern, escape, ignores_case, negated },
                Expr::Like { of: o, pattern: p, escape: e, ignores_case: i, negated: n },
            ) => (escape, ignores_case, negated) == (e, i, n) && of == o && pattern == p,
            (Expr::Case { branches, otherwise }, Expr::Case { branches: b, otherwise: o }) => branches == b && otherwise == o,
            (Expr::Cast { of, from, to }, Expr::Cast { of: o, from: f, to: t }) => (from, to) == (f, t) && of == o,
            (Expr::Negate { of, data_type }, Expr::Negate { of: o, data_type: d }) => data_type == d && of == o,
            (
                Expr::Arithmetic { operation, on, left, right },
                Expr::Arithmetic { operation: of_other, on: on_other, left: l, right: r },
            ) => (operation, on) == (of_other, on_other) && left == l && right == r,
            (Expr::Call { function, arguments }, Expr::Call { function: f, arguments: a }) => function == f && arguments == a,
            (Expr::Sequence { call, arguments }, Expr::Sequence { call: c, arguments: a }) => call == c && arguments == a,
            (Expr::Subquery { number, kind, outer }, Expr::Subquery { number: n, kind: k, outer: o }) => {
                number == n && kind == k && outer == o
            }
            // All are named, so that none is forgotten.
            (Expr::Literal(_) | Expr::Column { .. } | Expr::Slot(_) | Expr::Outer(_) | Expr::Param(_) | Expr::Sequence { .. }, _)
            | (Expr::Not(_) | Expr::And(_) | Expr::Or(_) | Expr::IsNull { .. } | Expr::IsTruth { .. } | Expr::IsDistinct { .. }, _)
            | (Expr::Compare { .. } | Expr::In { .. } | Expr::Like { .. } | Expr::Case { .. } | Expr::Cast { .. }, _)
            | (Expr::Negate { .. } | Expr::Arithmetic { .. } | Expr::Call { .. } | Expr::Subquery { .. }, _) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagefold_types::Interval;

    #[test]
    fn equal_values_are_not_always_the_same() {
        let month = Expr::Literal(Value::Interval(Interval { months: 1, ..Interval::ZERO }));
        let days = Expr::Literal(Value::Interval(Interval { days: 30, ..Interval::ZERO }));
        assert!(month != days && month == month.clone());
        let not = |expr: &Expr| Expr::Not(Box::new(expr.clone()));
        assert!(not(&month) != not(&days) && not(&days) == not(&days));
        let double = |value: f64| Expr::Literal(Value::Double(value));
        assert!(double(0.0) != double(-0.0) && double(f64::NAN) == double(f64::NAN));
        assert!(Expr::Slot(1) != Expr::Outer(1));
        assert!(Expr::And(vec![month.clone()]) != Expr::Or(vec![month]));
    }
}

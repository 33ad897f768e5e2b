//! Expressions of plans as expressions of batches.
//!
//! Invariant: what is not done by columns keeps its parts and is evaluated row by row, so that it means what it means everywhere.

use super::scalar::{Arithmetic, Kind, LikePattern, RowExpr, Scalar};
use super::{Chooser, Mode};
use crate::expression::arithmetic::Operands;
use crate::expression::{Expr, SubqueryKind};
use pagefold_types::{DataType, Value};
use std::sync::Arc;

/// An expression that was converted.
pub(super) struct Converted {
    pub(super) scalar: Scalar,
    /// It is not just NULL, of whatever kind.
    pub(super) has_kind: bool,
}

impl Converted {
    fn of(scalar: Scalar) -> Converted {
        Converted { scalar, has_kind: true }
    }
}

impl Chooser<'_> {
    /// The expression with values in the place of parameters and of subqueries that need nothing of the row, and with other numbers of slots. `None` where something is left that is of this statement
    /// alone, or of a row around it.
    pub(super) fn prepared(&self, expr: &Expr, place: &dyn Fn(usize) -> usize) -> Option<Expr> {
        let mut expr = expr.clone();
        let mut is_refused = false;
        expr.rewrite(&mut |part| match part {
            Expr::Slot(slot) => *slot = place(*slot),
            Expr::Param(_) => match self.value(part) {
                Some(value) => *part = Expr::Literal(value),
                None => is_refused = true,
            },
            Expr::Subquery { kind: SubqueryKind::Scalar | SubqueryKind::Exists, outer, .. } if outer.is_empty() => match self.value(part) {
                Some(value) => *part = Expr::Literal(value),
                None => is_refused = true,
            },
            Expr::Subquery { .. } | Expr::Outer(_) | Expr::Column { .. } => is_refused = true,
            part => is_refused |= part.is_volatile(),
        });
        (!is_refused).then_some(expr)
    }

    /// The value of what needs no row; NULL while it is only asked what would be done.
    pub(super) fn value(&self, expr: &Expr) -> Option<Value> {
        match self.mode {
            Mode::Told => Some(Value::Null),
            Mode::Run(execution) => execution.context().evaluate(expr, &[]).ok(),
        }
    }

    /// Converts an expression of slots that are columns of these kinds.
    pub(super) fn converted(&self, expr: &Expr, kinds: &[Kind]) -> Option<Scalar> {
        self.prepared_and_converted(expr, kinds, &|slot| slot)
    }

    /// The same, with other numbers of slots.
    pub(super) fn prepared_and_converted(&self, expr: &Expr, kinds: &[Kind], place: &dyn Fn(usize) -> usize) -> Option<Scalar> {
        self.convert(&self.prepared(expr, place)?, kinds).map(|converted| converted.scalar)
    }

    /// Converts one that was prepared.
    pub(super) fn convert(&self, expr: &Expr, kinds: &[Kind]) -> Option<Converted> {
        Some(match expr {
            Expr::Literal(Value::Null) => Converted { scalar: Scalar::Literal(Value::Null, Kind::Text), has_kind: false },
            Expr::Literal(value) => Converted::of(Scalar::Literal(value.clone(), Kind::of_value(value)?)),
            Expr::Slot(slot) => Converted::of(Scalar::Column(*slot, *kinds.get(*slot)?)),
            Expr::Not(of) => Converted::of(Scalar::Not(Box::new(self.condition(of, kinds)?))),
            Expr::And(all) => Converted::of(Scalar::And(self.conditions(all, kinds)?)),
            Expr::Or(all) => Converted::of(Scalar::Or(self.conditions(all, kinds)?)),
            Expr::IsNull { of, negated } => {
                Converted::of(Scalar::IsNull { of: Box::new(self.convert(of, kinds)?.scalar), negated: *negated })
            }
            // Intervals are no values of columns; what comes of them may be one.
            Expr::Compare { left, right, .. } if is_interval(left) || is_interval(right) => {
                return self.by_row(expr, Kind::Boolean, kinds);
            }
            Expr::In { of, .. } if is_interval(of) => return self.by_row(expr, Kind::Boolean, kinds),
            Expr::Arithmetic { on: Operands::MomentAndInterval(_), .. } => return self.by_row(expr, Kind::Int, kinds),
            Expr::Compare { comparison, left, right } => {
                let (a, b) = (self.convert(left, kinds)?, self.convert(right, kinds)?);
                if !(a.has_kind && b.has_kind) {
                    return self.unknown(expr, Kind::Boolean, &[&a.scalar, &b.scalar], kinds);
                }
                if a.scalar.kind() != b.scalar.kind() {
                    return None;
                }
                if !a.scalar.kind().is_plain() {
                    return self.by_row(expr, Kind::Boolean, kinds);
                }
                let (left, right) = (Box::new(a.scalar), Box::new(b.scalar));
                Converted::of(Scalar::Compare { comparison: *comparison, left, right })
            }
            Expr::In { of, list, negated, .. } => {
                let converted = self.convert(of, kinds)?;
                let kind = converted.scalar.kind();
                let literal = |expr: &Expr| if let Expr::Literal(value) = expr { Some(value.clone()) } else { None };
                let values: Option<Vec<Value>> = list.iter().map(literal).collect();
                match values {
                    Some(mut values) if converted.has_kind && kind.is_plain() => {
                        let count = values.len();
                        values.retain(|value| *value != Value::Null);
                        let has_null = values.len() < count;
                        if values.iter().any(|value| Kind::of_value(value) != Some(kind)) {
                            return None;
                        }
                        values.sort();
                        values.dedup();
                        Converted::of(Scalar::In { of: Box::new(converted.scalar), values, has_null, negated: *negated })
                    }
                    _ => return self.by_row(expr, Kind::Boolean, kinds),
                }
            }
            Expr::Like { of, pattern, escape, ignores_case, negated } => match &**pattern {
                Expr::Literal(Value::Text(pattern)) => {
                    let of = self.convert(of, kinds)?;
                    if of.has_kind && of.scalar.kind() != Kind::Text {
                        return None;
                    }
                    let escape = escape.unwrap_or(Some('\\'));
                    let can_fail = escape.is_some_and(|escape| pattern.contains(escape));
                    let pattern = LikePattern { pattern: pattern.clone(), escape, ignores_case: *ignores_case, can_fail };
                    Converted::of(Scalar::Like { of: Box::new(of.scalar), pattern, negated: *negated })
                }
                _ => return self.by_row(expr, Kind::Boolean, kinds),
            },
            Expr::Case { branches, otherwise } => return self.case(branches, otherwise.as_deref(), kinds),
            Expr::Cast { of, from, to } if keeps_values(from, to) => return self.convert(of, kinds),
            Expr::Cast { to, .. } => return self.by_row(expr, Kind::of(to)?, kinds),
            Expr::Negate { data_type, .. } => return self.by_row(expr, Kind::of(data_type)?, kinds),
            Expr::Arithmetic { operation, on, left, right } => {
                let arithmetic = Arithmetic::new(*operation, *on)?;
                let (a, b) = (self.convert(left, kinds)?, self.convert(right, kinds)?);
                if !(a.has_kind && b.has_kind) {
                    return self.unknown(expr, arithmetic.kind(), &[&a.scalar, &b.scalar], kinds);
                }
                Converted::of(Scalar::Arithmetic { arithmetic, left: Box::new(a.scalar), right: Box::new(b.scalar) })
            }
            Expr::Call { function, .. } => return self.by_row(expr, Kind::of(&function.data_type())?, kinds),
            Expr::IsTruth { .. } | Expr::IsDistinct { .. } => return self.by_row(expr, Kind::Boolean, kinds),
            Expr::Column { .. } | Expr::Outer(_) | Expr::Param(_) | Expr::Sequence { .. } | Expr::Subquery { .. } => return None,
        })
    }

    fn conditions(&self, all: &[Expr], kinds: &[Kind]) -> Option<Vec<Scalar>> {
        all.iter().map(|one| self.condition(one, kinds)).collect()
    }

    fn condition(&self, expr: &Expr, kinds: &[Kind]) -> Option<Scalar> {
        let converted = self.convert(expr, kinds)?;
        match converted.has_kind {
            true => (converted.scalar.kind() == Kind::Boolean).then_some(converted.scalar),
            false => Some(Scalar::Literal(Value::Null, Kind::Boolean)),
        }
    }

    fn case(&self, branches: &[(Expr, Expr)], otherwise: Option<&Expr>, kinds: &[Kind]) -> Option<Converted> {
        let whens = branches.iter().map(|(when, _)| self.condition(when, kinds)).collect::<Option<Vec<Scalar>>>()?;
        let mut thens = branches.iter().map(|(_, then)| self.convert(then, kinds)).collect::<Option<Vec<Converted>>>()?;
        let mut otherwise = match otherwise {
            Some(otherwise) => Some(self.convert(otherwise, kinds)?),
            None => None,
        };
        let mut kind = None;
        for converted in thens.iter().chain(&otherwise).filter(|converted| converted.has_kind) {
            if *kind.get_or_insert(converted.scalar.kind()) != converted.scalar.kind() {
                return None;
            }
        }
        let has_kind = kind.is_some();
        let kind = kind.unwrap_or(Kind::Text);
        for converted in thens.iter_mut().chain(&mut otherwise).filter(|converted| !converted.has_kind) {
            converted.scalar = Scalar::Literal(Value::Null, kind);
        }
        let branches = whens.into_iter().zip(thens.into_iter().map(|then| then.scalar)).collect();
        let otherwise = otherwise.map(|otherwise| Box::new(otherwise.scalar));
        Some(Converted { scalar: Scalar::Case { branches, otherwise, kind }, has_kind })
    }

    /// What is NULL whatever the row, as a part of it is; the other parts may fail.
    fn unknown(&self, expr: &Expr, kind: Kind, parts: &[&Scalar], kinds: &[Kind]) -> Option<Converted> {
        match parts.iter().any(|part| part.can_fail()) {
            true => self.by_row(expr, kind, kinds),
            false => Some(Converted::of(Scalar::Literal(Value::Null, kind))),
        }
    }

    fn by_row(&self, expr: &Expr, kind: Kind, kinds: &[Kind]) -> Option<Converted> {
        let mut columns = Vec::new();
        let mut expr = expr.clone();
        expr.rewrite(&mut |part| {
            if let Expr::Slot(slot) = part {
                let known = columns.iter().position(|column| column == slot);
                *slot = known.unwrap_or_else(|| {
                    columns.push(*slot);
                    columns.len() - 1
                });
            }
        });
        let now = match self.mode {
            Mode::Told => crate::expression::Now::default(),
            Mode::Run(execution) => execution.now,
        };
        let is_there = columns.iter().all(|column| *column < kinds.len());
        is_there.then(|| Converted::of(Scalar::Row(RowExpr { expr: Arc::new(expr), columns, kind, now })))
    }
}

/// Is it an expression of type INTERVAL? Columns are none.
fn is_interval(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value) => matches!(value, Value::Interval(_)),
        Expr::Cast { to: DataType::Interval, .. } | Expr::Negate { data_type: DataType::Interval, .. } => true,
        Expr::Arithmetic { on, .. } => {
            matches!(on, Operands::Timestamps(_) | Operands::Times(_) | Operands::Intervals | Operands::IntervalAndNumber)
        }
        Expr::Call { function, .. } => function.data_type() == DataType::Interval,
        Expr::Case { branches, otherwise } => branches.iter().map(|(_, then)| then).chain(otherwise.as_deref()).any(is_interval),
        _ => false,
    }
}

/// Is every value of one type the same value of the other?
fn keeps_values(from: &DataType, to: &DataType) -> bool {
    use DataType::{BigInt, Integer, SmallInt, Varchar};
    from == to || matches!((from, to), (SmallInt, Integer | BigInt) | (Integer, BigInt) | (Varchar(_), Varchar(None)))
}

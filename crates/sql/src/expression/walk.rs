//! The parts of an expression: looked at, replaced, asked for.

use super::{Expr, SubqueryKind};

/// The direct parts of an expression, in the order in which they are evaluated, go to `each`. `iter` goes through a list of them: `iter`, or `iter_mut`.
macro_rules! parts {
    ($of:expr, $each:ident, $iter:ident) => {
        match $of {
            Expr::Literal(_) | Expr::Column { .. } | Expr::Slot(_) | Expr::Outer(_) | Expr::Param(_) => {}
            Expr::Not(of) | Expr::IsNull { of, .. } | Expr::IsTruth { of, .. } | Expr::Cast { of, .. } | Expr::Negate { of, .. } => {
                $each(of)
            }
            Expr::And(all) | Expr::Or(all) | Expr::Call { arguments: all, .. } | Expr::Sequence { arguments: all, .. } => {
                all.$iter().for_each($each)
            }
            Expr::Compare { left, right, .. } | Expr::IsDistinct { left, right, .. } | Expr::Arithmetic { left, right, .. } => {
                $each(left);
                $each(right);
            }
            Expr::In { of, list, .. } => {
                $each(of);
                list.$iter().for_each($each);
            }
            Expr::Like { of, pattern, .. } => {
                $each(of);
                $each(pattern);
            }
            Expr::Case { branches, otherwise } => {
                for (when, then) in branches {
                    $each(when);
                    $each(then);
                }
                otherwise.$iter().for_each(|otherwise| $each(otherwise));
            }
            Expr::Subquery { kind, outer, .. } => {
                outer.$iter().for_each(&mut *$each);
                match kind {
                    SubqueryKind::Scalar | SubqueryKind::Exists => {}
                    SubqueryKind::In { of, .. } => of.$iter().for_each(&mut *$each),
                    SubqueryKind::Quantified { of, .. } => $each(of),
                }
            }
        }
    };
}

impl Expr {
    fn parts<'e>(&'e self, each: &mut dyn FnMut(&'e Expr)) {
        parts!(self, each, iter);
    }

    pub(crate) fn parts_mut(&mut self, each: &mut dyn FnMut(&mut Expr)) {
        parts!(self, each, iter_mut);
    }

    /// Shows it and all its parts, each before its own parts. What a subquery computes is none of them, what it needs of the row and what is compared with it are.
    pub(crate) fn visit<'e>(&'e self, look: &mut dyn FnMut(&'e Expr)) {
        look(self);
        self.parts(&mut |part| part.visit(look));
    }

    /// Is it so of it, or of any of its parts?
    pub(crate) fn any(&self, is_it: impl Fn(&Expr) -> bool) -> bool {
        let mut found = false;
        self.visit(&mut |part| found = found || is_it(part));
        found
    }

    /// Does it by itself, whatever its parts do, ask a sequence, or draw a number?
    pub(crate) fn is_volatile(&self) -> bool {
        match self {
            Expr::Sequence { .. } => true,
            Expr::Call { function, .. } => function.is_volatile(),
            _ => false,
        }
    }

    /// Lets `change` replace each part, and then what has them.
    pub(crate) fn rewrite(&mut self, change: &mut dyn FnMut(&mut Expr)) {
        self.parts_mut(&mut |part| part.rewrite(change));
        change(self);
    }

    /// Is it constant, given that its parts have been folded?
    pub(super) fn has_literal_parts(&self) -> bool {
        let mut literal = match self {
            Expr::Column { .. } | Expr::Slot(_) | Expr::Outer(_) | Expr::Param(_) | Expr::Sequence { .. } | Expr::Subquery { .. } => false,
            Expr::Call { function, .. } => function.is_immutable(),
            _ => true,
        };
        self.parts(&mut |part| literal &= matches!(part, Expr::Literal(_)));
        literal
    }
}

//! Columns that nobody needs, left out as far below as can be.
//!
//! Invariant: what is kept is at least what is asked for, and in its order.

use super::join::is_pair;
use super::{Node, Operation, Scalar};
use std::collections::BTreeSet;

/// Columns, by number.
type Columns = BTreeSet<usize>;

/// A node with some of its columns, and which these were.
type Pruned = Option<(Node, Vec<usize>)>;

fn add(scalar: &Scalar, to: &mut Columns) {
    // Nothing is changed: there is one way through the parts of an expression.
    scalar.clone().columns_mut(&mut |column| _ = to.insert(*column));
}

/// Columns are now where they are kept.
fn moved(scalar: &mut Scalar, kept: &[usize]) {
    scalar.columns_mut(&mut |column| *column = place(*column, kept));
}

fn place(column: usize, kept: &[usize]) -> usize {
    kept.binary_search(&column).unwrap_or(column)
}

impl Node {
    /// The same columns, of less below.
    pub(super) fn without_others(self) -> Option<Node> {
        let all: Columns = (0..self.kinds.len()).collect();
        let wanted: Vec<usize> = all.iter().copied().collect();
        let (node, kept) = self.pruned(&all)?;
        // All were needed.
        if kept == wanted { Some(node) } else { None }
    }

    fn with_kept(operation: Operation, like: (f64, f64), kinds: Vec<super::Kind>) -> Node {
        Node { operation, kinds, rows: like.0, part: like.1 }
    }

    fn pruned(self, needed: &Columns) -> Pruned {
        let like = (self.rows, self.part);
        let Node { operation, kinds, .. } = self;
        let all = || (0..kinds.len()).collect::<Vec<usize>>();
        Some(match operation {
            Operation::Scan(mut scan) => {
                let kept: Vec<usize> = if needed.is_empty() { vec![0] } else { needed.iter().copied().collect() };
                scan.columns = kept.iter().map(|column| scan.columns.get(*column).copied()).collect::<Option<_>>()?;
                let kinds = kept.iter().map(|column| kinds.get(*column).copied()).collect::<Option<_>>()?;
                (Node::with_kept(Operation::Scan(scan), like, kinds), kept)
            }
            Operation::Values(rows) => {
                let kept = all();
                (Node::with_kept(Operation::Values(rows), like, kinds), kept)
            }
            Operation::Filter { input, mut condition } => {
                let mut needed = needed.clone();
                add(&condition, &mut needed);
                let (input, kept) = input.pruned(&needed)?;
                moved(&mut condition, &kept);
                let kinds = input.kinds.clone();
                (Node::with_kept(Operation::Filter { input: Box::new(input), condition }, like, kinds), kept)
            }
            Operation::Project { input, exprs } => {
                // What may fail fails, whoever needs it.
                let mut kept = needed.clone();
                kept.extend((0..exprs.len()).filter(|at| exprs[*at].can_fail()));
                let kept: Vec<usize> = if kept.is_empty() { vec![0] } else { kept.into_iter().collect() };
                let mut exprs = kept.iter().map(|at| exprs.get(*at).cloned()).collect::<Option<Vec<Scalar>>>()?;
                let mut of_input = Columns::new();
                exprs.iter().for_each(|expr| add(expr, &mut of_input));
                let (input, from) = input.pruned(&of_input)?;
                exprs.iter_mut().for_each(|expr| moved(expr, &from));
                let kinds = exprs.iter().map(Scalar::kind).collect();
                (Node::with_kept(Operation::Project { input: Box::new(input), exprs }, like, kinds), kept)
            }
            Operation::Join(mut join) => {
                let width = join.first.kinds.len();
                let mut both = needed.clone();
                join.condition.iter().for_each(|condition| add(condition, &mut both));
                let mut of_second: Columns = both.split_off(&width).into_iter().map(|column| column - width).collect();
                for (first, second) in &join.keys {
                    add(first, &mut both);
                    add(second, &mut of_second);
                }
                let super::Join { kind, first, second, mut keys, mut condition, nulls_match, nulls_equal } = *join;
                let (first, kept_first) = first.pruned(&both)?;
                let (second, kept_second) = second.pruned(&of_second)?;
                for (a, b) in &mut keys {
                    moved(a, &kept_first);
                    moved(b, &kept_second);
                }
                let kept: Vec<usize> = kept_first.iter().copied().chain(kept_second.iter().map(|column| column + width)).collect();
                condition.iter_mut().for_each(|condition| moved(condition, &kept));
                let pairs = is_pair(kind);
                let kinds: Vec<_> = if pairs { first.kinds.iter().chain(&second.kinds).copied().collect() } else { first.kinds.clone() };
                let kept = if pairs { kept } else { kept_first };
                join = Box::new(super::Join { kind, first, second, keys, condition, nulls_match, nulls_equal });
                let node = Node::with_kept(Operation::Join(join), like, kinds);
                // Keys of pairs are often needed for nothing else.
                let wanted: Vec<usize> = kept.iter().copied().filter(|column| needed.contains(column)).collect();
                match pairs && !wanted.is_empty() && wanted.len() < kept.len() {
                    true => (node.picked(wanted.iter().map(|column| place(*column, &kept)))?, wanted),
                    false => (node, kept),
                }
            }
            Operation::Aggregate { input, mut keys, mut aggregates } => {
                let kept = all();
                let mut of_input = Columns::new();
                keys.iter().chain(aggregates.iter().filter_map(|one| one.argument.as_ref())).for_each(|expr| add(expr, &mut of_input));
                let (input, from) = input.pruned(&of_input)?;
                keys.iter_mut().chain(aggregates.iter_mut().filter_map(|one| one.argument.as_mut())).for_each(|expr| moved(expr, &from));
                (Node::with_kept(Operation::Aggregate { input: Box::new(input), keys, aggregates }, like, kinds), kept)
            }
            Operation::Distinct(input) => {
                let kept = all();
                (Node::with_kept(Operation::Distinct(Box::new(input.without_others()?)), like, kinds), kept)
            }
            Operation::Sort { input, mut keys, limit } => {
                let mut needed = needed.clone();
                needed.extend(keys.iter().map(|key| key.column));
                let (input, kept) = input.pruned(&needed)?;
                keys.iter_mut().for_each(|key| key.column = place(key.column, &kept));
                let kinds = input.kinds.clone();
                (Node::with_kept(Operation::Sort { input: Box::new(input), keys, limit }, like, kinds), kept)
            }
            Operation::Limit { input, offset, rows } => {
                let (input, kept) = input.pruned(needed)?;
                let kinds = input.kinds.clone();
                (Node::with_kept(Operation::Limit { input: Box::new(input), offset, rows }, like, kinds), kept)
            }
            Operation::Union(first, second) => {
                let kept = all();
                let (first, second) = (first.without_others()?, second.without_others()?);
                (Node::with_kept(Operation::Union(Box::new(first), Box::new(second)), like, kinds), kept)
            }
        })
    }
}

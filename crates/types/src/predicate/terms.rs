//! The AND-ed terms of a condition that compare one column with constants: what can be asked of values that nobody has decoded.

use super::Predicate;
use super::tree::{Comparison, Node};
use crate::ValueRef;
use std::ops::Bound;

/// What such a term asks of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ColumnTest<'p> {
    /// A value between these bounds; NULL is not.
    Between(Bound<ValueRef<'p>>, Bound<ValueRef<'p>>),
    /// NULL
    Null,
    /// A value
    NotNull,
}

/// `column = 1`, `column < 1`, `column is null` and the like.
fn term(node: &Node) -> Option<(usize, ColumnTest<'_>)> {
    match node {
        Node::Compare { column, comparison, value } => {
            let value = value.as_ref();
            let bounds = match comparison {
                Comparison::Equal => (Bound::Included(value), Bound::Included(value)),
                Comparison::Less => (Bound::Unbounded, Bound::Excluded(value)),
                Comparison::LessOrEqual => (Bound::Unbounded, Bound::Included(value)),
                Comparison::Greater => (Bound::Excluded(value), Bound::Unbounded),
                Comparison::GreaterOrEqual => (Bound::Included(value), Bound::Unbounded),
                Comparison::NotEqual => return None,
            };
            Some((*column, ColumnTest::Between(bounds.0, bounds.1)))
        }
        Node::Null { column, negated } => Some((*column, if *negated { ColumnTest::NotNull } else { ColumnTest::Null })),
        _ => None,
    }
}

/// What is left of a node without the terms that were taken; `None`: nothing.
fn without_taken(node: &Node, take: &mut dyn FnMut(usize, ColumnTest<'_>) -> bool) -> Option<Node> {
    if let Node::And(nodes) = node {
        let mut rest: Vec<Node> = nodes.iter().filter_map(|node| without_taken(node, take)).collect();
        return if rest.len() < 2 { rest.pop() } else { Some(Node::And(rest)) };
    }
    let taken = term(node).is_some_and(|(column, test)| take(column, test));
    (!taken).then(|| node.clone())
}

impl Predicate {
    /// Offers each AND-ed term on one column; gives the condition without those that were taken, `None` when that is all. A row satisfies the condition exactly if it satisfies all that
    /// were taken and what is left.
    #[must_use]
    pub fn take_terms(&self, mut take: impl FnMut(usize, ColumnTest<'_>) -> bool) -> Option<Predicate> {
        without_taken(&self.root, &mut take).map(Predicate::of)
    }
}

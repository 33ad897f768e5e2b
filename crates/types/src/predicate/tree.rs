//! A condition bound to a schema.

use super::like::Pattern;
use super::{bind, parse};
use crate::{Schema, Value};

/// Why a condition is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("condition, character {position}: {message}")]
pub struct PredicateError {
    /// Position in the text, in characters from 1.
    pub position: usize,
    /// What is wrong there.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// The one that is true where this is false.
    pub(super) fn negated(self) -> Comparison {
        use Comparison::*;
        match self {
            Equal => NotEqual,
            NotEqual => Equal,
            Less => GreaterOrEqual,
            LessOrEqual => Greater,
            Greater => LessOrEqual,
            GreaterOrEqual => Less,
        }
    }

    /// The one with the sides exchanged.
    pub(super) fn mirrored(self) -> Comparison {
        use Comparison::*;
        match self {
            Less => Greater,
            LessOrEqual => GreaterOrEqual,
            Greater => Less,
            GreaterOrEqual => LessOrEqual,
            same => same,
        }
    }
}

/// NOT is gone: it was pushed down to the leaves, which three-valued logic allows.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Compare {
        column: usize,
        comparison: Comparison,
        value: Value,
    },
    CompareColumns {
        left: usize,
        comparison: Comparison,
        right: usize,
    },
    /// Values sorted, none twice.
    In {
        column: usize,
        values: Vec<Value>,
        negated: bool,
    },
    Null {
        column: usize,
        negated: bool,
    },
    Like {
        column: usize,
        pattern: Pattern,
        trim: bool,
        negated: bool,
    },
    And(Vec<Node>),
    Or(Vec<Node>),
}

/// A condition bound to a schema.
#[derive(Clone, Debug)]
pub struct Predicate {
    pub(super) root: Node,
    columns: Vec<usize>,
}

impl Predicate {
    /// Reads a condition on rows of this schema.
    ///
    /// # Errors
    /// [`PredicateError`] with the place: syntax, an unknown column, a literal that is no value of the column's type.
    pub fn parse(text: &str, schema: &Schema) -> Result<Predicate, PredicateError> {
        Ok(Predicate::of(bind::bind(&parse::parse(text)?, schema)?))
    }

    pub(super) fn of(root: Node) -> Predicate {
        let mut columns = Vec::new();
        root.collect_columns(&mut columns);
        columns.sort_unstable();
        columns.dedup();
        Predicate { root, columns }
    }

    /// The columns (positions in the schema, ascending) whose values decide.
    #[must_use]
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }
}

impl Node {
    fn collect_columns(&self, out: &mut Vec<usize>) {
        match self {
            Node::Compare { column, .. } | Node::In { column, .. } | Node::Null { column, .. } | Node::Like { column, .. } => {
                out.push(*column)
            }
            Node::CompareColumns { left, right, .. } => out.extend([*left, *right]),
            Node::And(nodes) | Node::Or(nodes) => nodes.iter().for_each(|n| n.collect_columns(out)),
        }
    }
}

//! A condition bound to a schema.

use super::condition::Condition;
use super::like::LikePattern;
use crate::{Schema, Value};
use std::cmp::Ordering;

/// Why a condition is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PredicateError {
    /// Position in the text, in characters from 1; `None` when the condition was built from values.
    pub position: Option<usize>,
    /// What is wrong there.
    pub message: String,
}

impl std::fmt::Display for PredicateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.position {
            Some(position) => write!(f, "condition, character {position}: {}", self.message),
            None => write!(f, "condition: {}", self.message),
        }
    }
}

impl std::error::Error for PredicateError {}

/// How two values are compared. Written out (`Display`) it is the sign: `<=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// Does it hold for values in this order?
    #[must_use]
    pub fn holds(self, ordering: Ordering) -> bool {
        match self {
            Comparison::Equal => ordering.is_eq(),
            Comparison::NotEqual => ordering.is_ne(),
            Comparison::Less => ordering.is_lt(),
            Comparison::LessOrEqual => ordering.is_le(),
            Comparison::Greater => ordering.is_gt(),
            Comparison::GreaterOrEqual => ordering.is_ge(),
        }
    }

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
    #[must_use]
    pub fn mirrored(self) -> Comparison {
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

/// How numbers of two types compare.
#[derive(Clone, Copy, Debug)]
pub(super) enum Numbers {
    /// Whole multiples of 10^-scale, each column with its scale
    Scaled(i8, i8),
    /// REAL with DOUBLE
    Floating,
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
        as_numbers: Option<Numbers>,
    },
    /// Values sorted, none twice, none NULL: that there was one among them is `has_null`.
    In {
        column: usize,
        values: Vec<Value>,
        has_null: bool,
        negated: bool,
    },
    /// The same for each value of the column, as no value is what it is compared with; unknown when that is NULL.
    Constant {
        column: usize,
        holds: Option<bool>,
    },
    Null {
        column: usize,
        negated: bool,
    },
    Like {
        column: usize,
        pattern: LikePattern,
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
    /// [`PredicateError`] with the place: syntax, an unknown column, a literal that cannot be compared with its column.
    pub fn parse(text: &str, schema: &Schema) -> Result<Predicate, PredicateError> {
        Condition::parse(text)?.bind(schema)
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
            Node::Compare { column, .. }
            | Node::In { column, .. }
            | Node::Null { column, .. }
            | Node::Like { column, .. }
            | Node::Constant { column, .. } => out.push(*column),
            Node::CompareColumns { left, right, .. } => out.extend([*left, *right]),
            Node::And(nodes) | Node::Or(nodes) => nodes.iter().for_each(|n| n.collect_columns(out)),
        }
    }
}

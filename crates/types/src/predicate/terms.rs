//! A condition taken apart, for those who can ask values that nobody has decoded.
//!
//! NOT is gone from a bound condition, so a row satisfies an AND exactly if it satisfies each part, and an OR if it satisfies one: nobody who takes it apart has to
//! tell unknown from false.

use super::Predicate;
use super::like::LikePattern;
use super::tree::{Comparison, Node};
use crate::{Value, ValueRef};
use std::ops::Bound;

/// What a part asks of one column.
#[derive(Clone, Copy, Debug)]
pub enum ColumnTest<'p> {
    /// A value between these bounds; NULL is not.
    Between(Bound<ValueRef<'p>>, Bound<ValueRef<'p>>),
    /// One of these values, or, negated, a value that is none of them. They ascend, none twice; none is NULL.
    In {
        /// The values
        values: &'p [Value],
        /// Another than these
        negated: bool,
    },
    /// A text that matches, or one that does not. Of CHAR, without the blanks at its end.
    Like {
        /// What it is to match
        pattern: &'p LikePattern,
        /// One that does not
        negated: bool,
    },
    /// NULL
    Null,
    /// A value
    NotNull,
    /// What no row has
    Never,
}

impl ColumnTest<'_> {
    /// Does a value meet it? By definition: what is faster has to say the same. Trailing blanks of CHAR must be gone for `Like`.
    #[must_use]
    pub fn meets(&self, value: ValueRef<'_>) -> bool {
        use std::ops::RangeBounds;
        match (self, value) {
            (ColumnTest::Null, value) => value.is_null(),
            (ColumnTest::Never, _) | (_, ValueRef::Null) => false,
            (ColumnTest::NotNull, _) => true,
            (ColumnTest::Between(low, high), value) => (*low, *high).contains(&value),
            (ColumnTest::In { values, negated }, value) => values.iter().any(|v| v.as_ref() == value) != *negated,
            (ColumnTest::Like { pattern, negated }, ValueRef::Text(text)) => pattern.matches(text) != *negated,
            (ColumnTest::Like { .. }, _) => false,
        }
    }
}

/// A part of a condition, or all of it.
#[derive(Clone, Copy, Debug)]
pub struct Term<'p>(&'p Node);

/// What a part is made of.
#[derive(Clone, Debug)]
pub enum Parts<'p> {
    /// True where all are
    And(Vec<Term<'p>>),
    /// True where one is
    Or(Vec<Term<'p>>),
    /// What one column, by its position, is asked
    Column(usize, ColumnTest<'p>),
    /// Something else: ask the row
    Other,
}

impl<'p> Term<'p> {
    /// What it is made of.
    #[must_use]
    pub fn parts(self) -> Parts<'p> {
        match self.0 {
            Node::And(nodes) => Parts::And(nodes.iter().map(Term).collect()),
            Node::Or(nodes) => Parts::Or(nodes.iter().map(Term).collect()),
            Node::Compare { column, comparison, value } => Parts::Column(*column, test(*comparison, value)),
            Node::In { column, values, has_null, negated } => {
                Parts::Column(*column, if *negated && *has_null { ColumnTest::Never } else { ColumnTest::In { values, negated: *negated } })
            }
            Node::Null { column, negated } => Parts::Column(*column, if *negated { ColumnTest::NotNull } else { ColumnTest::Null }),
            Node::Constant { column, holds } => {
                Parts::Column(*column, if *holds == Some(true) { ColumnTest::NotNull } else { ColumnTest::Never })
            }
            Node::Like { column, pattern, negated, .. } => Parts::Column(*column, ColumnTest::Like { pattern, negated: *negated }),
            Node::CompareColumns { .. } => Parts::Other,
        }
    }

    /// The part as a condition of its own.
    #[must_use]
    pub fn to_predicate(self) -> Predicate {
        Predicate::of(self.0.clone())
    }

    /// These parts as a condition that is true where all are, or (`any`) where one is.
    #[must_use]
    pub fn together(terms: &[Term<'p>], any: bool) -> Predicate {
        let nodes = terms.iter().map(|term| term.0.clone()).collect();
        Predicate::of(if any { Node::Or(nodes) } else { Node::And(nodes) })
    }
}

fn test(comparison: Comparison, value: &Value) -> ColumnTest<'_> {
    let it: ValueRef<'_> = value.as_ref();
    match comparison {
        Comparison::Equal => ColumnTest::In { values: std::slice::from_ref(value), negated: false },
        Comparison::NotEqual => ColumnTest::In { values: std::slice::from_ref(value), negated: true },
        Comparison::Less => ColumnTest::Between(Bound::Unbounded, Bound::Excluded(it)),
        Comparison::LessOrEqual => ColumnTest::Between(Bound::Unbounded, Bound::Included(it)),
        Comparison::Greater => ColumnTest::Between(Bound::Excluded(it), Bound::Unbounded),
        Comparison::GreaterOrEqual => ColumnTest::Between(Bound::Included(it), Bound::Unbounded),
    }
}

impl Predicate {
    /// All of it, to be taken apart.
    #[must_use]
    pub fn term(&self) -> Term<'_> {
        Term(&self.root)
    }
}

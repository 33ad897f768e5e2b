//! Evaluation, in SQL's three-valued logic: `None` is unknown.

use super::tree::{Node, Numbers};
use super::{Predicate, number};
use crate::{RecordError, RowLayout, ValueRef};
use std::cmp::Ordering;

impl Numbers {
    fn cmp(self, left: ValueRef<'_>, right: ValueRef<'_>) -> Ordering {
        let whole = |value: ValueRef<'_>| match value {
            ValueRef::Int(value) => value.into(),
            ValueRef::Decimal(value) => value,
            _ => 0,
        };
        let double = |value: ValueRef<'_>| match value {
            ValueRef::Real(value) => value.into(),
            ValueRef::Double(value) => value,
            _ => f64::NAN,
        };
        match self {
            Numbers::Scaled(l, r) => number::compare((whole(left), l), (whole(right), r)),
            Numbers::Floating => ValueRef::Double(double(left)).cmp(&ValueRef::Double(double(right))),
        }
    }
}

impl Node {
    fn eval<'r, E>(&self, get: &mut impl FnMut(usize) -> Result<ValueRef<'r>, E>) -> Result<Option<bool>, E> {
        Ok(match self {
            Node::Compare { column, comparison, value } => {
                let found = get(*column)?;
                (!found.is_null()).then(|| comparison.holds(found.cmp(&value.as_ref())))
            }
            Node::CompareColumns { left, comparison, right, as_numbers } => {
                let (left, right) = (get(*left)?, get(*right)?);
                (!left.is_null() && !right.is_null())
                    .then(|| comparison.holds(as_numbers.map_or_else(|| left.cmp(&right), |n| n.cmp(left, right))))
            }
            Node::In { column, values, has_null, negated } => {
                let found = get(*column)?;
                if found.is_null() {
                    return Ok(None);
                }
                match values.binary_search_by(|v| v.as_ref().cmp(&found)).is_ok() {
                    true => Some(!negated),
                    false if *has_null => None,
                    false => Some(*negated),
                }
            }
            Node::Constant { column, holds } => {
                if get(*column)?.is_null() {
                    None
                } else {
                    *holds
                }
            }
            Node::Null { column, negated } => Some(get(*column)?.is_null() != *negated),
            Node::Like { column, pattern, trim, negated } => match get(*column)? {
                ValueRef::Text(text) => Some(pattern.matches(if *trim { text.trim_end_matches(' ') } else { text }) != *negated),
                _ => None,
            },
            Node::And(nodes) => combine(nodes, false, get)?,
            Node::Or(nodes) => combine(nodes, true, get)?,
        })
    }
}

/// AND (`decisive` false) and OR (true): a decisive term decides, else an unknown one, else the other value.
fn combine<'r, E>(nodes: &[Node], decisive: bool, get: &mut impl FnMut(usize) -> Result<ValueRef<'r>, E>) -> Result<Option<bool>, E> {
    let mut result = Some(!decisive);
    for node in nodes {
        match node.eval(get)? {
            Some(value) if value == decisive => return Ok(Some(decisive)),
            None => result = None,
            Some(_) => {}
        }
    }
    Ok(result)
}

impl Predicate {
    /// True, false, or unknown for a row whose values `get` gives by column.
    ///
    /// # Errors
    /// Those of `get`.
    pub fn eval<'r, E>(&self, mut get: impl FnMut(usize) -> Result<ValueRef<'r>, E>) -> Result<Option<bool>, E> {
        self.root.eval(&mut get)
    }

    /// Is the condition true for this record?
    ///
    /// # Errors
    /// [`RecordError`]: a damaged record, or [`RecordError::Large`] when a value that decides lies outside it; then fetch what
    /// [`Predicate::columns`] names and use [`Predicate::eval`].
    pub fn matches(&self, layout: &RowLayout, record: &[u8]) -> Result<bool, RecordError> {
        Ok(self.eval(|column| layout.value(record, column))? == Some(true))
    }
}

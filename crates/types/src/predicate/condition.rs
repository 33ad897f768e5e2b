//! Conditions that are bound to no table yet: parsed from text, or built from values. Both make the same trees, with the same limits.

use super::operand::{Atom, Operand, Placed};
use super::tree::{Comparison, Predicate};
use super::{PredicateError, bind, parse};
use crate::Schema;
use std::str::FromStr;

/// Parentheses and NOTs inside each other: bounds the stack, also of built conditions.
pub(super) const DEPTH_MAX: usize = 100;

/// A condition as it was written.
///
/// Invariant: no AND is directly within an AND, no OR within an OR; neither has just one term.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    Compare {
        left: Placed,
        comparison: Comparison,
        right: Placed,
    },
    Between {
        column: Placed,
        low: Placed,
        high: Placed,
    },
    In {
        column: Placed,
        values: Vec<Placed>,
    },
    IsNull {
        column: Placed,
    },
    Like {
        column: Placed,
        pattern: Placed,
        /// A character, or nothing: no escapes. When absent, a backslash.
        escape: Option<Placed>,
    },
    /// A BOOLEAN column alone
    Alone(Placed),
    Not(Box<Expr>),
    /// Without terms: true
    And(Vec<Expr>),
    /// Without terms: false
    Or(Vec<Expr>),
    /// What was built is deeper than what can be written.
    TooDeep,
}

impl Expr {
    pub(super) fn and(terms: impl IntoIterator<Item = Expr>) -> Expr {
        let mut flat = Vec::new();
        for term in terms {
            if let Expr::And(inner) = term { flat.extend(inner) } else { flat.push(term) }
        }
        Expr::one_or(flat, Expr::And)
    }

    pub(super) fn or(terms: impl IntoIterator<Item = Expr>) -> Expr {
        let mut flat = Vec::new();
        for term in terms {
            if let Expr::Or(inner) = term { flat.extend(inner) } else { flat.push(term) }
        }
        Expr::one_or(flat, Expr::Or)
    }

    fn one_or(mut terms: Vec<Expr>, make: impl Fn(Vec<Expr>) -> Expr) -> Expr {
        if terms.len() == 1 { terms.swap_remove(0) } else { make(terms) }
    }

    /// Levels of parentheses and NOTs that its text has, as the parser counts them.
    fn depth(&self) -> usize {
        match self {
            Expr::Not(inner) => 1 + inner.depth() + usize::from(inner.is_compound()),
            Expr::And(terms) => terms.iter().map(|t| t.depth() + usize::from(t.is_or())).max().unwrap_or(1),
            Expr::Or(terms) => terms.iter().map(Expr::depth).max().unwrap_or(1),
            _ => 1,
        }
    }

    fn is_or(&self) -> bool {
        matches!(self, Expr::Or(terms) if !terms.is_empty())
    }

    /// Is it written in parentheses behind NOT?
    pub(super) fn is_compound(&self) -> bool {
        self.is_or() || matches!(self, Expr::And(terms) if !terms.is_empty())
    }
}

/// A condition on rows of a table that is not known yet.
///
/// ```
/// use pagefold_types::{Column, Condition, DataType, Schema, column};
///
/// let cheap = column("price").less_than(2).or(column("price").is_null());
/// let built = cheap.and(column("name").like("F%"));
/// assert_eq!(built, Condition::parse("(price < 2 or price is null) and name like 'F%'").unwrap());
///
/// let schema = Schema::new(vec![
///     Column::new("name", DataType::Varchar(None), false),
///     Column::new("price", DataType::Decimal { precision: 9, scale: 2 }, true),
/// ]);
/// let predicate = built.bind(&schema.unwrap()).unwrap();
/// assert_eq!(predicate.columns(), [0, 1]);
/// ```
///
/// Written out (`Display`) it is the text that [`parse`](Self::parse) reads as the same condition.
#[derive(Clone, Debug)]
pub struct Condition {
    pub(super) expr: Expr,
    depth: usize,
}

impl PartialEq for Condition {
    fn eq(&self, other: &Condition) -> bool {
        self.expr == other.expr
    }
}

impl Condition {
    fn of(expr: Expr) -> Condition {
        Condition { expr, depth: 1 }
    }

    /// One of this depth; without what it was made of when that is too much.
    fn limited(depth: usize, make: impl FnOnce() -> Expr) -> Condition {
        if depth > DEPTH_MAX { Condition { expr: Expr::TooDeep, depth: DEPTH_MAX } } else { Condition { expr: make(), depth } }
    }

    /// Reads a condition; the forms are in the [crate's documentation](crate::Predicate).
    ///
    /// # Errors
    /// [`PredicateError`] with the place: where the text is no condition.
    pub fn parse(text: &str) -> Result<Condition, PredicateError> {
        let expr = parse::parse(text)?;
        let depth = expr.depth();
        Ok(Condition { expr, depth })
    }

    /// Finds its columns in a schema, and makes its values ones of their types.
    ///
    /// # Errors
    /// [`PredicateError`]: an unknown column, or a value that cannot be compared with its column; both are named, with the column's type. When the condition
    /// has more than a hundred levels of NOT and parentheses.
    pub fn bind(&self, schema: &Schema) -> Result<Predicate, PredicateError> {
        Ok(Predicate::of(bind::bind(&self.expr, schema)?))
    }

    /// True where both are.
    #[must_use]
    pub fn and(self, other: impl Into<Condition>) -> Condition {
        Condition::all([self, other.into()])
    }

    /// True where one of both is.
    #[must_use]
    pub fn or(self, other: impl Into<Condition>) -> Condition {
        Condition::any([self, other.into()])
    }

    /// True where all are; without any, everywhere.
    #[must_use]
    pub fn all(conditions: impl IntoIterator<Item = Condition>) -> Condition {
        let (mut depth, mut terms) = (1, Vec::new());
        for condition in conditions {
            depth = depth.max(condition.depth + usize::from(condition.expr.is_or()));
            terms.push(condition.expr);
        }
        Condition::limited(depth, || Expr::and(terms))
    }

    /// True where one of them is; without any, nowhere.
    #[must_use]
    pub fn any(conditions: impl IntoIterator<Item = Condition>) -> Condition {
        let (mut depth, mut terms) = (1, Vec::new());
        for condition in conditions {
            depth = depth.max(condition.depth);
            terms.push(condition.expr);
        }
        Condition::limited(depth, || Expr::or(terms))
    }
}

/// True where the other is false, and unknown where that is.
impl std::ops::Not for Condition {
    type Output = Condition;

    fn not(self) -> Condition {
        let depth = 1 + self.depth + usize::from(self.expr.is_compound());
        Condition::limited(depth, || Expr::Not(Box::new(self.expr)))
    }
}

/// True where the condition is false, and unknown where that is: `!condition`.
#[must_use]
pub fn not(condition: impl Into<Condition>) -> Condition {
    !condition.into()
}

impl FromStr for Condition {
    type Err = PredicateError;

    fn from_str(text: &str) -> Result<Condition, PredicateError> {
        Condition::parse(text)
    }
}

/// The column of this name, in a condition that is built.
#[must_use]
pub fn column(name: impl Into<String>) -> ColumnName {
    ColumnName(name.into())
}

/// A column of a condition: [`column()`]. It is NULL in a row, or has a value; all but [`is_null`](Self::is_null) and
/// [`is_not_null`](Self::is_not_null) is unknown where it is NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnName(String);

impl From<ColumnName> for Operand {
    fn from(column: ColumnName) -> Operand {
        Operand(Atom::Column(column.0))
    }
}

impl ColumnName {
    fn placed(self) -> Placed {
        Operand::from(self).built()
    }

    /// Compared so.
    #[must_use]
    pub fn compared(self, comparison: Comparison, with: impl Into<Operand>) -> Condition {
        Condition::of(Expr::Compare { left: self.placed(), comparison, right: with.into().built() })
    }

    /// `=`
    #[must_use]
    pub fn equal_to(self, other: impl Into<Operand>) -> Condition {
        self.compared(Comparison::Equal, other)
    }

    /// `<>`
    #[must_use]
    pub fn not_equal_to(self, other: impl Into<Operand>) -> Condition {
        self.compared(Comparison::NotEqual, other)
    }

    /// `<`
    #[must_use]
    pub fn less_than(self, other: impl Into<Operand>) -> Condition {
        self.compared(Comparison::Less, other)
    }

    /// `<=`
    #[must_use]
    pub fn at_most(self, other: impl Into<Operand>) -> Condition {
        self.compared(Comparison::LessOrEqual, other)
    }

    /// `>`
    #[must_use]
    pub fn greater_than(self, other: impl Into<Operand>) -> Condition {
        self.compared(Comparison::Greater, other)
    }

    /// `>=`
    #[must_use]
    pub fn at_least(self, other: impl Into<Operand>) -> Condition {
        self.compared(Comparison::GreaterOrEqual, other)
    }

    /// `between`: both ends are within.
    #[must_use]
    pub fn between(self, low: impl Into<Operand>, high: impl Into<Operand>) -> Condition {
        Condition::of(Expr::Between { column: self.placed(), low: low.into().built(), high: high.into().built() })
    }

    /// `in`: it is one of these values. Of none, nothing is.
    #[must_use]
    pub fn in_list<V: Into<Operand>>(self, values: impl IntoIterator<Item = V>) -> Condition {
        let values: Vec<Placed> = values.into_iter().map(|value| value.into().built()).collect();
        if values.is_empty() {
            return Condition::of(Expr::Or(Vec::new()));
        }
        Condition::of(Expr::In { column: self.placed(), values })
    }

    /// `is null`
    #[must_use]
    pub fn is_null(self) -> Condition {
        Condition::of(Expr::IsNull { column: self.placed() })
    }

    /// `is not null`
    #[must_use]
    pub fn is_not_null(self) -> Condition {
        !self.is_null()
    }

    /// `like`: `%` is any text, `_` one character; `\` takes the next one as it is.
    #[must_use]
    pub fn like(self, pattern: impl Into<String>) -> Condition {
        let pattern = Operand::from(pattern.into()).built();
        Condition::of(Expr::Like { column: self.placed(), pattern, escape: None })
    }

    /// `like` with another character that takes the next one as it is.
    #[must_use]
    pub fn like_escaped(self, pattern: impl Into<String>, escape: char) -> Condition {
        let pattern = Operand::from(pattern.into()).built();
        Condition::of(Expr::Like { column: self.placed(), pattern, escape: Some(Operand::from(escape.to_string()).built()) })
    }

    /// A BOOLEAN column that is true.
    #[must_use]
    pub fn is_true(self) -> Condition {
        Condition::of(Expr::Alone(self.placed()))
    }
}

//! Conditions on rows: `a >= 3 and (b = 'x' or c is null)`.
//!
//! | Form | Notes |
//! |---|---|
//! | `a = 1`, `<>` `!=` `<` `<=` `>` `>=`, `1 < a`, `a < b` | a literal, or two columns of one type, or of two types of numbers that compare exactly |
//! | `a between 1 and 5`, `a in (1, 2)`, `a is null`, each with `not` | |
//! | `a like 'x%'`, `a not like 'x!%' escape '!'` | `%` any text, `_` one character; `\` takes the next as it is, or the character behind `escape`; none behind `escape ''` |
//! | `a` | a BOOLEAN column alone |
//! | `true`, `false` | every row, no row |
//! | `and`, `or`, `not`, parentheses | as in SQL; `not` binds tighter than `and`, that tighter than `or` |
//!
//! Text is in single quotes, doubled inside; column names that are no words are in double quotes or backquotes. `x'00ff'` are bytes. `date '1995-01-01'` and
//! `timestamp '...'` are read as the text alone.
//!
//! A number is compared with columns of whole and of decimal numbers exactly, also where the column has no such value: `a > 85.5` of an INTEGER, `a = 1.505` of two digits behind
//! the point (never true). For REAL and DOUBLE it is the nearest number that these have. Any other literal is read as a value of the column's type.
//!
//! NULL makes a comparison unknown, also when it is written (`a = null`, `a in (1, null)`), and a row is taken only when the whole is true. Values order as in keys.
//!
//! A [`Condition`] is bound to no table yet: parsed, or built by [`column()`] and its methods. Bound to a schema it is a [`Predicate`].

mod bind;
mod condition;
mod eval;
mod like;
mod number;
mod operand;
mod parse;
mod print;
mod range;
mod terms;
mod token;
mod tree;

pub use condition::{ColumnName, Condition, column, not};
pub use like::LikePattern;
pub use operand::Operand;
pub use range::KeyRange;
pub use terms::{ColumnTest, Parts, Term};
pub use tree::{Comparison, Predicate, PredicateError};

//! Conditions on rows: `a >= 3 and (b = 'x' or c is null)`.
//!
//! | Form | Notes |
//! |---|---|
//! | `a = 1`, `<>` `!=` `<` `<=` `>` `>=`, `1 < a`, `a < b` | the literal is read as a value of the column's type; two columns have to be of one type |
//! | `a between 1 and 5`, `a in (1, 2)`, `a is null`, `a like 'x%'`, each with `not` | `%` any text, `_` one character, `\` takes the next as it is |
//! | `a` | a BOOLEAN column alone |
//! | `and`, `or`, `not`, parentheses | as in SQL; `not` binds tighter than `and`, that tighter than `or` |
//!
//! Text is in single quotes (doubled inside), and, to the right of an operator, in double quotes too; to the left, double quotes hold a column name, as backquotes
//! do everywhere. `date '1995-01-01'` and `timestamp '...'` are read as the text alone.
//!
//! NULL makes a comparison unknown, and a row is taken only when the whole is true. Values order as in keys.

mod bind;
mod eval;
mod like;
mod parse;
mod range;
mod terms;
mod token;
mod tree;

pub use range::KeyRange;
pub use terms::ColumnTest;
pub use tree::{Predicate, PredicateError};

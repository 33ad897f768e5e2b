//! Expressions from operands: which types an operator takes, what comes out, what is cast.
//!
//! * `convert`: casts: explicit, of what a column takes, of operands
//! * `operator`: arithmetic and `||`
//! * `compare`: comparisons, BETWEEN, IN, LIKE
//! * `logic`: NOT, AND, OR, IS, CASE
//! * `moments`: words that stand for a date or time
//!
//! Invariants:
//! - what has no type (a literal in quotes, NULL, a parameter) gets that of the other operand, text where all have none;
//! - of a literal and something else, the literal is cast, if nothing of it is lost: so a column stays as it is, and an index of it is of use;
//! - what is constant is computed when it is made, unless that is an error.

mod compare;
mod convert;
mod logic;
mod moments;
mod operator;

pub(crate) use compare::{alike_by_column, between, compare, compare_rows, in_list, is_distinct, like, two_texts};
pub(crate) use convert::{argument, assign, cast, cast_to_interval, cast_to_number, coerce, settle, type_beside};
pub(crate) use logic::{and, case, common_of, condition, is_null, is_truth, not, or, unify};
pub(crate) use operator::{arithmetic, concat, negate};

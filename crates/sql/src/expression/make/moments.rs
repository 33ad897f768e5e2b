//! Words in quotes that stand for a date or time: `'now'`, `'today'`, `'tomorrow'`, `'yesterday'`.
//!
//! A kept plan has no moment in it: such a word is what `current_date` and its likes are, each time anew. So a DEFAULT is the moment of the row, and not, as in PostgreSQL, that of CREATE TABLE.
//! `'epoch'` and `'allballs'` are values as others are, and read with them.

use super::{arithmetic, cast};
use crate::SqlResult;
use crate::expression::arithmetic::Operation;
use crate::expression::{Expr, ParamTypes, Typed, function};
use pagefold_types::{DataType, Value};

/// The expression that a text stands for as a value of this type, if it is such a word.
pub(super) fn moment(text: &str, to: &DataType, params: &ParamTypes) -> SqlResult<Option<Typed>> {
    let word = text.trim().to_ascii_lowercase();
    let call = |name: &str| function::call(name, Vec::new(), params);
    let day = |from_now: i64| {
        let days = Typed::of(Expr::Literal(Value::Int(from_now)), DataType::Integer);
        arithmetic(Operation::Add, call("current_date")?, days, params)
    };
    let found = match (word.as_str(), to) {
        ("now", DataType::Date) => call("current_date"),
        ("now", DataType::Time { .. }) => call("localtime"),
        ("now", DataType::Timestamp { with_zone: true, .. }) => call("current_timestamp"),
        ("now", DataType::Timestamp { with_zone: false, .. }) => call("localtimestamp"),
        ("today", DataType::Date | DataType::Timestamp { .. }) => call("current_date"),
        ("tomorrow", DataType::Date | DataType::Timestamp { .. }) => day(1),
        ("yesterday", DataType::Date | DataType::Timestamp { .. }) => day(-1),
        _ => return Ok(None),
    };
    cast(found?, *to, params).map(Some)
}

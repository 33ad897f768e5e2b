//! Expressions, and what PostgreSQL 15 gives.
//!
//! The results are from knowledge of PostgreSQL and its documentation; no server was asked. A line is `expression => type: value`, or
//! `expression => !SQLSTATE message`. Types are without precision; texts are without quotes. `differences.txt` has what is other here, on purpose.

use super::sql::{Columns, on_row, shown, unfolded};
use crate::SqlResult;
use crate::expression::types;
use pagefold_types::{DataType, Value};

fn outcome(result: SqlResult<(Value, DataType)>) -> String {
    match result {
        Ok((value, data_type)) => format!("{}: {}", types::name(&data_type), shown(&value, &data_type)),
        Err(error) => format!("!{} {}", error.sqlstate(), error.message()),
    }
}

fn check(table: &str) -> usize {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in table.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let (expression, expected) = line.rsplit_once(" => ").unwrap_or_else(|| panic!("no => in {line}"));
        // Computed when it is made, and on a row. Digits that are not known before there is a row leave the scale as it is.
        let digits = ["round(", "trunc("].iter().any(|name| expression.starts_with(name)) && expression.contains(", ");
        let mut ways = vec![outcome(on_row(expression, &Columns(&[]), &[]))];
        if !digits {
            ways.push(outcome(unfolded(expression)));
        }
        for found in ways {
            if found.trim_end() != expected.trim_end() {
                wrong.push(format!("{expression}\n   expected {expected}\n   found    {found}"));
            }
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    count
}

#[test]
fn numbers() {
    assert!(check(include_str!("numbers.txt")) >= 100);
}

#[test]
fn texts() {
    assert!(check(include_str!("texts.txt")) >= 100);
}

#[test]
fn times() {
    assert!(check(include_str!("times.txt")) >= 70);
}

#[test]
fn intervals() {
    assert!(check(include_str!("intervals.txt")) >= 90);
}

#[test]
fn logic_and_branches() {
    assert!(check(include_str!("logic.txt")) >= 70);
}

#[test]
fn what_is_other_here() {
    check(include_str!("differences.txt"));
}

//! Is what was given what PostgreSQL gives?
//!
//! Rows and columns are compared as they are printed. Where nothing orders the rows of a statement, any order of them is the same answer. That both fail counts as
//! the same answer; whether with the same message is counted apart. Messages that are no errors are not compared.

use crate::expected::{Block, first_word};
use crate::runner::Given;

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// The same rows, or done in both.
    Same,
    /// Both fail; with the same message.
    BothFail {
        same_message: bool,
    },
    Different(Difference),
    FailedHere,
    SucceededHere,
}

/// How the rows are other ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Difference {
    /// What EXPLAIN says.
    Plan,
    /// The same rows in another order.
    Order,
    /// The same rows under other names.
    Names,
    /// The same numbers with other digits behind the point.
    Digits,
    Rows,
}

pub(crate) fn compare(sql: &str, expected: &[Block], given: &Given) -> Verdict {
    let fails = expected.iter().find_map(|block| match block {
        Block::Error(message) => Some(message),
        _ => None,
    });
    match (fails, &given.error) {
        (Some(message), Some(failure)) => Verdict::BothFail { same_message: *message == failure.message },
        (Some(_), None) => Verdict::SucceededHere,
        (None, Some(_)) => Verdict::FailedHere,
        (None, None) => match difference(sql, expected, &given.blocks) {
            None => Verdict::Same,
            Some(difference) => Verdict::Different(difference),
        },
    }
}

fn difference(sql: &str, expected: &[Block], given: &[Block]) -> Option<Difference> {
    if expected == given {
        return None;
    }
    if first_word(sql).eq_ignore_ascii_case("explain") {
        return Some(Difference::Plan);
    }
    if expected.len() != given.len() {
        return Some(Difference::Rows);
    }
    let pairs = || expected.iter().zip(given);
    let is_any_order = !is_ordered(sql);
    if pairs().all(|(a, b)| is_any_order && sorted(a) == sorted(b)) {
        return None;
    }
    if pairs().all(|(a, b)| sorted(a) == sorted(b)) {
        return Some(Difference::Order);
    }
    if pairs().all(|(a, b)| values(a, str::to_owned) == values(b, str::to_owned)) {
        return Some(Difference::Names);
    }
    if pairs().all(|(a, b)| values(a, number) == values(b, number)) {
        return Some(Difference::Digits);
    }
    Some(Difference::Rows)
}

fn sorted(block: &Block) -> Block {
    let mut block = block.clone();
    match &mut block {
        Block::Table { rows, .. } => rows.sort(),
        Block::Lines(lines) => lines.sort(),
        Block::Error(_) => {}
    }
    block
}

/// The values of a table, in any order.
fn values(block: &Block, value: impl Fn(&str) -> String) -> Option<Vec<Vec<String>>> {
    let Block::Table { rows, .. } = block else { return None };
    let mut rows: Vec<Vec<String>> = rows.iter().map(|row| row.split('|').map(|cell| value(cell.trim())).collect()).collect();
    rows.sort();
    Some(rows)
}

/// A number without the zeros at its end; any other text as it is.
fn number(text: &str) -> String {
    let is_number = text.contains('.') && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'));
    if is_number { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text.to_owned() }
}

/// Does the statement order its rows? It does with ORDER BY outside parentheses; what a cursor gives, and what a prepared statement gives, may be ordered.
fn is_ordered(sql: &str) -> bool {
    let lower = without_texts(&sql.to_lowercase());
    if matches!(first_word(&lower), "fetch" | "execute" | "explain" | "show") {
        return true;
    }
    let mut depth = 0_i32;
    let mut words: Vec<&str> = Vec::new();
    let mut begin = 0;
    for (at, c) in lower.char_indices() {
        match c {
            '(' | ')' => {
                depth += if c == '(' { 1 } else { -1 };
                begin = at + 1;
            }
            c if c.is_alphanumeric() || c == '_' => {
                let ends = lower[at + c.len_utf8()..].chars().next().is_none_or(|next| !next.is_alphanumeric() && next != '_');
                if ends && depth == 0 {
                    words.push(&lower[begin..at + c.len_utf8()]);
                }
            }
            _ => begin = at + c.len_utf8(),
        }
    }
    words.windows(2).any(|pair| pair == ["order", "by"])
}

/// Without texts in quotes, and without comments.
fn without_texts(sql: &str) -> String {
    let mut out = String::new();
    let mut rest = sql;
    while let Some(c) = rest.chars().next() {
        let skipped = match c {
            '\'' | '"' => rest[1..].find(c).map_or(rest.len(), |end| end + 2),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            c => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
                continue;
            }
        };
        out.push(' ');
        rest = &rest[skipped.min(rest.len())..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[&str]) -> Vec<Block> {
        vec![Block::Table { header: vec![" a ".into()], rows: rows.iter().map(|row| (*row).into()).collect() }]
    }

    fn given(blocks: Vec<Block>) -> Given {
        Given { blocks, error: None }
    }

    #[test]
    fn order_counts_where_it_is_asked_for() {
        let of = |sql: &str| compare(sql, &rows(&[" 1", " 2"]), &given(rows(&[" 2", " 1"])));
        assert_eq!(of("select a from t"), Verdict::Same);
        assert_eq!(of("select a from (select a from t order by a) s"), Verdict::Same);
        assert_eq!(of("select a from t -- order by\n"), Verdict::Same);
        assert_eq!(of("select a from t order  by a"), Verdict::Different(Difference::Order));
        assert_eq!(of("fetch 2 from c"), Verdict::Different(Difference::Order));
    }

    #[test]
    fn rows_are_compared_exactly() {
        let of = |a: &str, b: &str| compare("select a from t", &rows(&[a]), &given(rows(&[b])));
        assert_eq!(of(" 1", " 2"), Verdict::Different(Difference::Rows));
        assert_eq!(of(" 1.50", " 1.5"), Verdict::Different(Difference::Digits));
        assert_eq!(of(" a", " a "), Verdict::Different(Difference::Names));
        assert_eq!(compare("select a from t", &rows(&[" 1"]), &given(rows(&[" 1", " 1"]))), Verdict::Different(Difference::Rows));
    }
}

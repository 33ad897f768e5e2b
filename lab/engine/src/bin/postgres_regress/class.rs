//! Why an answer is another one: classes, by what the error says.

use crate::compare::{Difference, Verdict};
use crate::expected::{Block, first_word};
use crate::runner::Failure;
use std::collections::HashSet;

/// What statements that failed only here would have made: whatever fails for want of that is of one class.
#[derive(Debug, Default)]
pub(crate) struct Lost(HashSet<String>);

impl Lost {
    /// A statement has failed only here, or was done only here.
    pub(crate) fn add(&mut self, sql: &str) {
        let lower = sql.to_lowercase();
        let words: Vec<&str> =
            lower.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.')).filter(|word| !word.is_empty()).collect();
        let made = words.iter().position(|word| {
            matches!(
                *word,
                "table"
                    | "view"
                    | "sequence"
                    | "index"
                    | "function"
                    | "type"
                    | "schema"
                    | "domain"
                    | "declare"
                    | "prepare"
                    | "into"
                    | "savepoint"
            )
        });
        let names = made.map_or(&words[..0], |at| &words[at + 1..]);
        let is_noise = |word: &&&str| matches!(**word, "if" | "not" | "exists" | "only" | "concurrently" | "temp" | "temporary" | "table");
        let changes = words.first() == Some(&"alter");
        for name in names.iter().filter(|word| !is_noise(word)).take(if changes { 12 } else { 1 }) {
            self.0.insert(name.rsplit('.').next().unwrap_or(name).to_owned());
        }
    }

    fn has(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.0.contains(name.rsplit('.').next().unwrap_or(&name))
    }
}

/// The class of a step that is not the same.
pub(crate) fn class(sql: &str, verdict: Verdict, expected: &[Block], failure: Option<&Failure>, lost: &Lost, had_failed: bool) -> String {
    match verdict {
        Verdict::Same | Verdict::BothFail { .. } => "same".into(),
        Verdict::Different(Difference::Plan) => "EXPLAIN: the plan is shown otherwise".into(),
        Verdict::Different(Difference::Order) => "the same rows in another order".into(),
        Verdict::Different(Difference::Names) => "names of columns, or blanks, only".into(),
        Verdict::Different(Difference::Digits) => "zeros behind the point only".into(),
        Verdict::Different(Difference::Rows) => "other rows".into(),
        Verdict::SucceededHere => {
            let message = expected.iter().find_map(|block| match block {
                Block::Error(message) => Some(message.as_str()),
                _ => None,
            });
            format!("PostgreSQL: {}", general(message.unwrap_or_default()))
        }
        Verdict::FailedHere => failure.map_or_else(String::new, |failure| failed(sql, failure, lost, had_failed)),
    }
}

fn failed(sql: &str, failure: &Failure, lost: &Lost, had_failed: bool) -> String {
    let Failure { sqlstate, message } = failure;
    if sqlstate == "25P02" || had_failed {
        return "follows: the transaction had failed".into();
    }
    let quoted: Vec<&str> = message.split('"').skip(1).step_by(2).collect();
    if matches!(sqlstate.as_str(), "42P01" | "42703" | "42704" | "26000" | "34000" | "3B001" | "3F000")
        && quoted.iter().any(|name| lost.has(name))
    {
        return "follows: what it names was not made".into();
    }
    if sqlstate == "42601" {
        return format!("syntax: {}", statement(sql));
    }
    if message.starts_with("function ") {
        return format!("{sqlstate} {message}");
    }
    let general = general(message);
    format!("{sqlstate} {}", general.chars().take(90).collect::<String>())
}

/// A message without what is quoted, and without numbers.
fn general(message: &str) -> String {
    let mut out = String::new();
    for (at, part) in message.lines().next().unwrap_or_default().split('"').enumerate() {
        if at % 2 == 0 { out.push_str(part) } else { out.push('…') }
    }
    let mut short = String::new();
    for c in out.chars() {
        match c {
            c if c.is_ascii_digit() && short.ends_with('#') => {}
            c if c.is_ascii_digit() => short.push('#'),
            c => short.push(c),
        }
    }
    short
}

/// Which statement it is: its first words.
fn statement(sql: &str) -> String {
    let first = first_word(sql).to_uppercase();
    if !matches!(first.as_str(), "CREATE" | "ALTER" | "DROP" | "SET" | "COMMENT") {
        return first;
    }
    let at = sql.to_uppercase().find(&first).unwrap_or(0);
    let words = sql[at..].split_whitespace().map(str::to_uppercase);
    let is_noise =
        |word: &String| matches!(word.as_str(), "OR" | "REPLACE" | "TEMP" | "TEMPORARY" | "UNLOGGED" | "RECURSIVE" | "UNIQUE" | "LOCAL");
    words.filter(|word| !is_noise(word)).take(2).collect::<Vec<_>>().join(" ")
}

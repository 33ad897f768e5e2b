//! What psql printed of each step of a script, from the file of its output.
//!
//! psql was run so that it shows each line that it reads, and what a statement gives behind the line that the statement ends in. So the lines of the script
//! are found in the output in their order, and what is between them is what was given.

use crate::script::{Script, Step, Then};

/// A part of what is printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    /// Lines of a table: the header, and each row (a value of several lines makes the row one of several lines).
    Table { header: Vec<String>, rows: Vec<String> },
    /// The message of an error.
    Error(String),
    /// Anything else, as the text of COPY TO STDOUT.
    Lines(Vec<String>),
}

/// What is expected of each step, by its number. An error, where the output is not that of the script: the line of the script that is missing, from 1.
pub(crate) fn expected(sql: &str, script: &Script, output: &str) -> Result<Vec<Vec<Block>>, usize> {
    let shown: Vec<(usize, &str)> = sql
        .lines()
        .enumerate()
        .filter(|(number, line)| !script.hidden.get(*number).copied().unwrap_or(false) && !line.trim().is_empty())
        .collect();
    let output: Vec<&str> = output.lines().collect();
    let mut given = vec![Vec::new(); script.steps.len()];
    let (mut at, mut step) = (0, 0);
    for (place, (number, _)) in shown.iter().enumerate() {
        // The lines up to the next one that gives something are found together: a line alone may be in a result, too.
        at = find(&output, at, &shown[place..], script, step).ok_or(number + 1)? + 1;
        // What ends in lines that are not shown gives what stands behind the one before them.
        let first = step;
        let next = shown.get(place + 1).map_or(usize::MAX, |(next, _)| *next);
        while script.steps.get(step).is_some_and(|placed| placed.line < next) {
            step += 1;
        }
        if step == first {
            continue;
        }
        let end = match shown.get(place + 1) {
            Some((next, _)) => find(&output, at, &shown[place + 1..], script, step).ok_or(next + 1)?,
            None => output.len(),
        };
        let blocks = blocks(&output[at..end]);
        share(&script.steps[first..step].iter().map(|placed| &placed.step).collect::<Vec<_>>(), blocks, &mut given[first..step]);
        at = end;
    }
    Ok(given)
}

/// Where these lines, up to the first that ends a step, are in the output, one behind the other.
fn find(output: &[&str], from: usize, lines: &[(usize, &str)], script: &Script, step: usize) -> Option<usize> {
    let last = script.steps.get(step).map_or(usize::MAX, |placed| placed.line);
    let run = lines.iter().take_while(|(number, _)| *number <= last).count().max(1);
    let is_at = |at: &usize| {
        let mut rest = output[*at..].iter().filter(|line| !line.trim().is_empty());
        lines[..run].iter().all(|(_, line)| rest.next() == Some(line))
    };
    (from..output.len()).filter(|at| output[*at] == lines[0].1).find(is_at)
}

const MESSAGES: [&str; 6] = ["NOTICE:  ", "WARNING:  ", "INFO:  ", "LOG:  ", "FATAL:  ", "ERROR:  "];
const FOLLOWING: [&str; 5] = ["DETAIL:  ", "HINT:  ", "CONTEXT:  ", "QUERY:  ", "LINE "];

/// Cuts what was printed.
fn blocks(lines: &[&str]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut pending: Vec<String> = Vec::new();
    let mut lines = lines.iter().peekable();
    while let Some(line) = lines.next() {
        if let Some(kind) = MESSAGES.iter().find(|kind| line.starts_with(**kind)) {
            flush(&mut pending, &mut blocks);
            let mut message = line[kind.len()..].to_owned();
            // A message, and what is said of it, may be of several lines. It ends where something else begins.
            let mut is_message = true;
            while let Some(next) = lines.peek().copied() {
                if next.trim().is_empty() || MESSAGES.iter().any(|kind| next.starts_with(kind)) || is_header(&lines) {
                    break;
                }
                is_message &= next.trim() != "^" && !FOLLOWING.iter().any(|kind| next.starts_with(kind));
                if is_message {
                    message.push('\n');
                    message.push_str(next);
                }
                lines.next();
            }
            if matches!(*kind, "ERROR:  " | "FATAL:  ") {
                blocks.push(Block::Error(message));
            }
        } else if is_rule(line) {
            let header = std::mem::take(&mut pending);
            let mut rows: Vec<String> = Vec::new();
            for row in lines.by_ref() {
                if is_footer(row) {
                    break;
                }
                match rows.last_mut() {
                    Some(last) if continues(last) => {
                        last.push('\n');
                        last.push_str(row);
                    }
                    _ => rows.push((*row).to_owned()),
                }
            }
            blocks.push(Block::Table { header, rows });
        } else if !line.is_empty() || !pending.is_empty() {
            pending.push((*line).to_owned());
        }
    }
    flush(&mut pending, &mut blocks);
    blocks
}

fn flush(pending: &mut Vec<String>, blocks: &mut Vec<Block>) {
    while pending.last().is_some_and(String::is_empty) {
        pending.pop();
    }
    if !pending.is_empty() {
        blocks.push(Block::Lines(std::mem::take(pending)));
    }
}

/// Does a table begin here?
fn is_header(lines: &std::iter::Peekable<std::slice::Iter<'_, &str>>) -> bool {
    let mut ahead = lines.clone();
    ahead.next();
    ahead.next().is_some_and(|line| is_rule(line))
}

fn is_rule(line: &str) -> bool {
    line.starts_with("--") && line.bytes().all(|byte| matches!(byte, b'-' | b'+'))
}

fn is_footer(line: &str) -> bool {
    let count = line.strip_prefix('(').and_then(|line| line.strip_suffix(" rows)").or_else(|| line.strip_suffix(" row)")));
    count.is_some_and(|count| !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Is it not the last line of its row? A value that goes on ends with `+` in the place of the blank behind it.
pub(crate) fn continues(row: &str) -> bool {
    let last = row.rsplit('\n').next().unwrap_or(row);
    last.ends_with('+') || last.contains("+|")
}

/// Shares what was printed among the steps that end in one line.
fn share(steps: &[&Step], blocks: Vec<Block>, given: &mut [Vec<Block>]) {
    if let [only] = given {
        *only = blocks;
        return;
    }
    let mut blocks = std::collections::VecDeque::from(blocks);
    for (at, step) in steps.iter().enumerate() {
        let later = steps[at + 1..].iter().filter(|step| gives(step)).count();
        let takes = match blocks.front() {
            None => false,
            Some(Block::Error(_)) => gives(step) || blocks.len() > later,
            Some(_) => gives(step),
        };
        if takes {
            given[at].extend(blocks.pop_front());
        }
    }
    if let Some(last) = given.last_mut() {
        last.extend(blocks);
    }
}

/// Does a step print something when it succeeds?
fn gives(step: &Step) -> bool {
    match step {
        Step::Sql { then: Then::Set, .. } => false,
        Step::Sql { text, .. } => {
            let text = text.to_lowercase();
            let first = first_word(&text);
            matches!(first, "select" | "values" | "with" | "table" | "explain" | "show" | "fetch" | "execute" | "(")
                || text.contains("returning")
        }
        Step::Command(name) => name.starts_with('d'),
    }
}

/// The first word behind comments.
pub(crate) fn first_word(sql: &str) -> &str {
    let mut rest = sql.trim_start();
    loop {
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, rest)| rest).trim_start();
        } else if rest.starts_with('(') {
            return "(";
        } else {
            return rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::cut;
    use std::collections::HashMap;

    fn of(sql: &str, output: &str) -> Vec<Vec<Block>> {
        expected(sql, &cut(sql, &mut HashMap::new()), output).expect("the lines are there")
    }

    fn table(header: &str, rows: &[&str]) -> Block {
        Block::Table { header: vec![header.into()], rows: rows.iter().map(|row| (*row).into()).collect() }
    }

    #[test]
    fn outputs_are_found_between_lines() {
        let sql = "-- one\nselect 1 as a;\n\ncreate table t (a int);\nselect\n  x;\n";
        let output = "-- one\nselect 1 as a;\n a \n---\n 1\n(1 row)\n\ncreate table t (a int);\nNOTICE:  well\nselect\n  x;\nERROR:  no x\nLINE 2:   x;\n          ^\n";
        assert_eq!(of(sql, output), [vec![table(" a ", &[" 1"])], vec![], vec![Block::Error("no x".into())]]);
    }

    #[test]
    fn several_steps_of_one_line_share() {
        let sql = "begin; select 1; select y; rollback;\n";
        let output = "begin; select 1; select y; rollback;\n ?column? \n----------\n        1\n(1 row)\n\nERROR:  no y\nLINE 1: select y;\n               ^\n";
        assert_eq!(of(sql, output), [vec![], vec![table(" ?column? ", &["        1"])], vec![Block::Error("no y".into())], vec![]]);
    }

    #[test]
    fn rows_of_several_lines_are_one() {
        let sql = "select 'a\nb';\nselect 2;\n";
        let output = "select 'a\nb';\n ?column? \n----------\n a       +\n b\n(1 row)\n\nselect 2;\n";
        assert_eq!(of(sql, output), [vec![table(" ?column? ", &[" a       +\n b"])], vec![]]);
    }
}

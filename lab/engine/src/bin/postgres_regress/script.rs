//! A script as psql reads it: statements, commands of psql, rows of COPY.
//!
//! Invariants:
//! - a statement ends at a `;` outside quotes, comments and parentheses, or at `\g` and its kin; `\;` joins statements into one text;
//! - each step knows the line that it ends in: what psql prints of it comes behind the echo of that line;
//! - variables are put in where psql would: outside quotes, as `:name`, `:'name'` and `:"name"`.

use std::collections::HashMap;

/// What psql does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A statement, or several that are sent together. `data`: lines of COPY FROM STDIN.
    Sql { text: String, data: Option<Vec<String>>, then: Then },
    /// A command of psql, without its backslash.
    Command(String),
}

/// What becomes of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Print,
    /// `\gset`: its columns are variables.
    Set,
    /// `\gexec`: its values are statements.
    Execute,
}

/// A step and the number of the line that it ends in, from 0.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) line: usize,
    pub(crate) step: Step,
}

/// The steps of a script, and which of its lines psql does not show.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) steps: Vec<Placed>,
    /// Rows of COPY, and lines between `\set ECHO none` and what ends it.
    pub(crate) hidden: Vec<bool>,
}

enum State {
    Plain,
    Quoted { end: u8, escapes: bool },
    Comment(u32),
    Dollar(String),
}

struct Cutter<'v> {
    state: State,
    sql: String,
    parentheses: usize,
    variables: &'v mut HashMap<String, String>,
    script: Script,
}

/// Cuts a script. `variables` are those of psql; `\set` adds to them.
pub(crate) fn cut(text: &str, variables: &mut HashMap<String, String>) -> Script {
    let lines: Vec<&str> = text.lines().collect();
    let script = Script { steps: Vec::new(), hidden: vec![false; lines.len()] };
    let mut cutter = Cutter { state: State::Plain, sql: String::new(), parentheses: 0, variables, script };
    let (mut number, mut is_silent) = (0, false);
    while number < lines.len() {
        let before = cutter.script.steps.len();
        cutter.line(number, lines[number]);
        let taken = match cutter.script.steps[before..].last_mut() {
            Some(Placed { step: Step::Sql { text, data, .. }, .. }) if is_copy_in(text) => rows_of_copy(&lines[number + 1..]).map(|rows| {
                *data = Some(rows.iter().map(|row| (*row).to_owned()).collect());
                rows.len() + 1
            }),
            _ => None,
        };
        // What turns the echo off is shown, and what turns it on again is not.
        cutter.script.hidden[number] = is_silent;
        is_silent = cutter.variables.get("ECHO").is_some_and(|echo| echo == "none");
        for hidden in 0..taken.unwrap_or(0) {
            cutter.script.hidden[number + 1 + hidden] = true;
        }
        number += 1 + taken.unwrap_or(0);
    }
    cutter.script
}

fn is_copy_in(sql: &str) -> bool {
    let words = sql.to_lowercase();
    let bare = words.trim_start();
    bare.starts_with("copy")
        && bare.split_whitespace().collect::<Vec<_>>().windows(2).any(|pair| pair[0] == "from" && pair[1].starts_with("std"))
}

/// The lines up to `\.`; none, where statements come first: the COPY is one that fails before it reads.
fn rows_of_copy<'l>(lines: &[&'l str]) -> Option<Vec<&'l str>> {
    let end = lines.iter().position(|line| *line == "\\.")?;
    let rows = &lines[..end];
    let is_statement = |line: &&str| line.trim_end().ends_with(';') && line.trim_start().starts_with(|c: char| c.is_ascii_alphabetic());
    (!rows.iter().any(is_statement)).then(|| rows.to_vec())
}

impl Cutter<'_> {
    fn line(&mut self, number: usize, line: &str) {
        let bytes = line.as_bytes();
        let mut at = 0;
        let mut plain = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            match &mut self.state {
                State::Quoted { end, escapes } => {
                    if *escapes && byte == b'\\' {
                        at += 1;
                    } else if byte == *end {
                        self.state = State::Plain;
                    }
                    at += 1;
                }
                State::Comment(depth) => {
                    if bytes[at..].starts_with(b"*/") {
                        *depth -= 1;
                        if *depth == 0 {
                            self.state = State::Plain;
                        }
                        at += 2;
                    } else if bytes[at..].starts_with(b"/*") {
                        *depth += 1;
                        at += 2;
                    } else {
                        at += 1;
                    }
                }
                State::Dollar(tag) => {
                    if bytes[at..].starts_with(tag.as_bytes()) {
                        at += tag.len();
                        self.state = State::Plain;
                    } else {
                        at += 1;
                    }
                }
                State::Plain => match byte {
                    b'\'' => {
                        let escapes = at > 0 && matches!(bytes[at - 1], b'e' | b'E') && (at < 2 || !is_word(bytes[at - 2]));
                        self.state = State::Quoted { end: b'\'', escapes };
                        at += 1;
                    }
                    b'"' => {
                        self.state = State::Quoted { end: b'"', escapes: false };
                        at += 1;
                    }
                    b'-' if bytes[at..].starts_with(b"--") => break,
                    b'/' if bytes[at..].starts_with(b"/*") => {
                        self.state = State::Comment(1);
                        at += 2;
                    }
                    b'$' if at == 0 || !is_word(bytes[at - 1]) => match dollar_tag(&line[at..]) {
                        Some(tag) => {
                            at += tag.len();
                            self.state = State::Dollar(tag.to_owned());
                        }
                        None => at += 1,
                    },
                    b'(' => {
                        self.parentheses += 1;
                        at += 1;
                    }
                    b')' => {
                        self.parentheses = self.parentheses.saturating_sub(1);
                        at += 1;
                    }
                    b';' if self.parentheses == 0 => {
                        self.sql.push_str(&line[plain..at]);
                        self.end(number, Then::Print);
                        at += 1;
                        plain = at;
                    }
                    b'\\' if bytes.get(at + 1) == Some(&b';') => {
                        self.sql.push_str(&line[plain..at]);
                        self.sql.push(';');
                        at += 2;
                        plain = at;
                    }
                    b'\\' => {
                        self.sql.push_str(&line[plain..at]);
                        self.command(number, &line[at + 1..]);
                        return;
                    }
                    b':' if bytes.get(at + 1) == Some(&b':') => at += 2,
                    b':' => match self.variable(&line[at + 1..]) {
                        Some((value, length)) => {
                            self.sql.push_str(&line[plain..at]);
                            // What a variable holds may be statements of its own.
                            self.put(number, &value);
                            at += 1 + length;
                            plain = at;
                        }
                        None => at += 1,
                    },
                    _ => at += 1,
                },
            }
        }
        self.sql.push_str(&line[plain..]);
        self.sql.push('\n');
    }

    fn put(&mut self, number: usize, value: &str) {
        let mut parts = value.split(';').peekable();
        while let Some(part) = parts.next() {
            self.sql.push_str(part);
            if parts.peek().is_some() {
                self.end(number, Then::Print);
            }
        }
    }

    /// The value of the variable that is named, and how long its name is written.
    fn variable(&self, rest: &str) -> Option<(String, usize)> {
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let name = &rest[quote.map_or(0, char::len_utf8)..];
        let length = name.bytes().take_while(|byte| is_word(*byte)).count();
        let value = self.variables.get(&name[..length])?;
        match quote {
            None => Some((value.clone(), length)),
            Some(quote) if name[length..].starts_with(quote) => {
                let doubled = value.replace(quote, &format!("{quote}{quote}"));
                Some((format!("{quote}{doubled}{quote}"), length + 2))
            }
            Some(_) => None,
        }
    }

    fn end(&mut self, line: usize, then: Then) {
        let text = std::mem::take(&mut self.sql);
        if has_content(&text) {
            self.script.steps.push(Placed { line, step: Step::Sql { text, data: None, then } });
        }
    }

    fn command(&mut self, line: usize, rest: &str) {
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '?').collect();
        match name.as_str() {
            "g" | "gx" | "gdesc" | "crosstabview" => self.end(line, Then::Print),
            "gset" => self.end(line, Then::Set),
            "gexec" => self.end(line, Then::Execute),
            "set" => {
                let mut words = words(&rest[name.len()..], self.variables).into_iter();
                if let Some(variable) = words.next() {
                    self.variables.insert(variable, words.collect());
                }
            }
            _ => {}
        }
        self.script.steps.push(Placed { line, step: Step::Command(rest.to_owned()) });
        self.sql.push('\n');
    }
}

/// The words of a command of psql, with variables put in.
fn words(text: &str, variables: &HashMap<String, String>) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix('\'') {
            let (mut word, mut end) = (String::new(), quoted.len());
            let mut chars = quoted.char_indices().peekable();
            while let Some((at, c)) = chars.next() {
                match c {
                    '\'' if chars.next_if(|(_, next)| *next == '\'').is_some() => word.push('\''),
                    '\'' => {
                        end = at + 1;
                        break;
                    }
                    c => word.push(c),
                }
            }
            words.push(word);
            rest = quoted[end..].trim_start();
        } else {
            let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let word = &rest[..length];
            words.push(word.strip_prefix(':').and_then(|name| variables.get(name)).cloned().unwrap_or_else(|| word.to_owned()));
            rest = rest[length..].trim_start();
        }
    }
    words
}

/// Is there more than blanks and comments?
fn has_content(sql: &str) -> bool {
    let mut depth = 0_u32;
    for line in sql.lines() {
        let mut rest = line;
        while let Some(c) = rest.chars().next() {
            if rest.starts_with("/*") {
                depth += 1;
                rest = &rest[2..];
            } else if depth > 0 && rest.starts_with("*/") {
                depth -= 1;
                rest = &rest[2..];
            } else if depth == 0 && rest.starts_with("--") {
                break;
            } else if depth == 0 && !c.is_whitespace() {
                return true;
            } else {
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    false
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// `$tag$` at the beginning of a text.
fn dollar_tag(text: &str) -> Option<&str> {
    let end = 1 + text[1..].find('$')?;
    let tag = &text[1..end];
    (tag.bytes().all(is_word) && !tag.starts_with(|c: char| c.is_ascii_digit())).then(|| &text[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(script: &str) -> Vec<String> {
        let steps = cut(script, &mut HashMap::new()).steps;
        steps
            .into_iter()
            .map(|placed| match placed.step {
                Step::Sql { text, data, .. } => {
                    format!("{}{}", text.trim(), data.map_or_else(String::new, |data| format!("<{}>", data.len())))
                }
                Step::Command(text) => format!("\\{text}"),
            })
            .collect()
    }

    #[test]
    fn statements_end_where_psql_ends_them() {
        assert_eq!(texts("select ';', $$;$$;select (1;2);"), ["select ';', $$;$$", "select (1;2)"]);
        assert_eq!(texts("-- none;\n/* none; */\nselect 1\n  -- a ; comment\n;"), ["-- none;\n/* none; */\nselect 1\n  -- a ; comment"]);
        assert_eq!(texts("begin\\; select 1;\n\\d t\nselect 2 \\gset\n"), ["begin; select 1", "\\d t", "select 2", "\\gset"]);
        assert_eq!(texts("select e'\\';', 'a\\';"), ["select e'\\';', 'a\\'"]);
    }

    #[test]
    fn rows_of_copy_are_no_statements() {
        assert_eq!(texts("copy t from stdin;\n1;2\n\\.\nselect 1;"), ["copy t from stdin<1>", "select 1"]);
        assert_eq!(
            texts("copy t from stdin;\nselect 1;\ncopy t from stdin;\n1\n\\.\n"),
            ["copy t from stdin", "select 1", "copy t from stdin<1>"]
        );
    }

    #[test]
    fn variables_are_put_in() {
        assert_eq!(texts("\\set x 'a b'\nselect :'x', 1::int, :y;\n:x;"), ["\\set x 'a b'", "select 'a b', 1::int, :y", "a b"]);
    }
}

//! Regular expressions: `~` and its kin, SIMILAR TO, `regexp_...`, `substring` by a pattern.
//!
//! What is written is PostgreSQL's (advanced regular expressions); the crate `regex` matches it, in time that grows with the text and not with the pattern's choices. So there are no references back
//! and no looking around (2201B), and of several alternatives the first that fits is taken, not the longest.
//!
//! Invariant: what means something else to the crate is written otherwise before it gets it.

use super::internal::check_length;
use super::{Function, int, take, text_of};
use crate::expression::datum::Datum;
use crate::{SqlError, SqlResult};
use regex::{Captures, Regex, RegexBuilder};
use std::cell::RefCell;
use std::rc::Rc;

type Args<'x, 'a> = &'x mut [Datum<'a>];

/// Patterns that a thread remembers.
const KEPT: usize = 16;
/// Bytes that a pattern may take when it is made ready.
const PATTERN_BYTES_MAX: usize = 4 << 20;

/// How a pattern is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Flags {
    ignores_case: bool,
    /// `.` is no new line.
    dot_stops: bool,
    /// `^` and `$` are at each line.
    by_line: bool,
    expanded: bool,
    /// Characters mean themselves.
    literal: bool,
    /// All places, not just the first.
    all: bool,
}

/// A pattern that was made ready.
type Kept = (String, Flags, Rc<Regex>);

thread_local! {
    /// The last that was asked for comes last.
    static PATTERNS: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) };
}

fn invalid(why: &str) -> SqlError {
    SqlError::new("2201B", format!("invalid regular expression: {why}"))
}

impl Flags {
    /// As the letters say. `g` is refused where a number says which place is meant.
    fn read(letters: &str, takes_all: bool) -> SqlResult<Flags> {
        let mut flags = Flags::default();
        for letter in letters.chars() {
            match letter {
                'g' if takes_all => flags.all = true,
                'i' => flags.ignores_case = true,
                'c' => flags.ignores_case = false,
                'n' | 'm' => (flags.dot_stops, flags.by_line) = (true, true),
                'p' => (flags.dot_stops, flags.by_line) = (true, false),
                'w' => (flags.dot_stops, flags.by_line) = (false, true),
                's' => (flags.dot_stops, flags.by_line) = (false, false),
                'x' => flags.expanded = true,
                't' => flags.expanded = false,
                'q' => flags.literal = true,
                other => return Err(SqlError::new("22023", format!("invalid regular expression option: \"{other}\""))),
            }
        }
        Ok(flags)
    }
}

/// A pattern as the crate takes it.
fn translated(pattern: &str) -> SqlResult<String> {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next() {
                Some('y') => out.push_str(r"\b"),
                Some('Y') => out.push_str(r"\B"),
                Some('m') => out.push_str(r"\b{start}"),
                Some('M') => out.push_str(r"\b{end}"),
                Some('Z') => out.push_str(r"\z"),
                Some(digit @ '1'..='9') => return Err(invalid(&format!("a reference back (\\{digit}) is not supported"))),
                Some(other) => out.extend(['\\', other]),
                None => return Err(invalid("invalid escape \\ sequence")),
            },
            '{' if !rest.peek().is_some_and(char::is_ascii_digit) => out.push_str(r"\{"),
            '[' => bracketed(&mut rest, &mut out)?,
            other => out.push(other),
        }
    }
    Ok(out)
}

/// What stands in brackets, where the crate has operators of sets that PostgreSQL has not.
fn bracketed(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) -> SqlResult<()> {
    out.push('[');
    if rest.next_if_eq(&'^').is_some() {
        out.push('^');
    }
    let mut is_first = true;
    while let Some(c) = rest.next() {
        match c {
            ']' if !is_first => {
                out.push(']');
                return Ok(());
            }
            '[' if rest.next_if_eq(&':').is_some() => {
                let name: String = std::iter::from_fn(|| rest.next_if(char::is_ascii_alphabetic)).collect();
                if rest.next() != Some(':') || rest.next() != Some(']') {
                    return Err(invalid("invalid character class"));
                }
                out.push_str(class(&name)?);
            }
            ']' | '[' | '&' | '~' => out.extend(['\\', c]),
            '-' if rest.peek() == Some(&'-') => out.push_str(r"\-"),
            '\\' => out.extend(std::iter::once('\\').chain(rest.next())),
            other => out.push(other),
        }
        is_first = false;
    }
    Err(invalid("brackets [] not balanced"))
}

/// A class of characters by its name, within brackets.
fn class(name: &str) -> SqlResult<&'static str> {
    Ok(match name {
        "alpha" => r"\p{L}",
        "alnum" => r"\p{L}\p{N}",
        "upper" => r"\p{Lu}",
        "lower" => r"\p{Ll}",
        "digit" => "0-9",
        "space" => r"\s",
        "word" => r"\w",
        "blank" => r" \t",
        "punct" => "[:punct:]",
        "xdigit" => "[:xdigit:]",
        "cntrl" => "[:cntrl:]",
        "graph" => "[:graph:]",
        "print" => "[:print:]",
        _ => return Err(invalid("invalid character class")),
    })
}

/// The pattern of SIMILAR TO as one of these: it is about the whole text.
fn of_similar(pattern: &str, escape: Option<char>) -> SqlResult<String> {
    let mut out = String::from("^(?:");
    let mut rest = pattern.chars();
    let mut in_brackets = false;
    while let Some(c) = rest.next() {
        match c {
            c if Some(c) == escape => match rest.next() {
                Some(c) if c.is_alphanumeric() => out.push(c),
                Some(c) => out.extend(['\\', c]),
                None => return Err(SqlError::new("22025", "the pattern ends with its escape character")),
            },
            '[' | ']' => {
                in_brackets = c == '[';
                out.push(c);
            }
            '%' if !in_brackets => out.push_str(".*"),
            '_' if !in_brackets => out.push('.'),
            '(' if !in_brackets => out.push_str("(?:"),
            '\\' | '.' | '^' | '$' if !in_brackets => out.extend(['\\', c]),
            '\\' => out.push_str(r"\\"),
            other => out.push(other),
        }
    }
    out.push_str(")$");
    Ok(out)
}

fn ready(pattern: &str, flags: Flags) -> SqlResult<Rc<Regex>> {
    let flags = Flags { all: false, ..flags };
    PATTERNS.with_borrow_mut(|kept| {
        let at = kept.iter().position(|(text, of, _)| text == pattern && *of == flags);
        if let Some(at) = at {
            kept[at..].rotate_left(1);
        } else {
            let text = if flags.literal { regex::escape(pattern) } else { translated(pattern)? };
            let made = RegexBuilder::new(&text)
                .case_insensitive(flags.ignores_case)
                .dot_matches_new_line(!flags.dot_stops)
                .multi_line(flags.by_line)
                .ignore_whitespace(flags.expanded)
                .size_limit(PATTERN_BYTES_MAX)
                .dfa_size_limit(PATTERN_BYTES_MAX)
                .build()
                .map_err(|error| invalid(error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ")))?;
            if kept.len() == KEPT {
                kept.remove(0);
            }
            kept.push((pattern.to_owned(), flags, Rc::new(made)));
        }
        kept.last().map(|(_, _, regex)| Rc::clone(regex)).ok_or_else(|| invalid("it was not kept"))
    })
}

/// Where the character of a number is, from 1, as an offset; `None` behind the end.
fn start(text: &str, arguments: &[Datum<'_>], at: usize, name: &str) -> SqlResult<Option<usize>> {
    match arguments.get(at).map_or(1, Datum::int) {
        from if from < 1 => Err(SqlError::new("22023", format!("invalid value for parameter \"start\" of {name}: {from}"))),
        from => {
            let skipped = usize::try_from(from - 1).unwrap_or(usize::MAX);
            Ok(text.char_indices().map(|(offset, _)| offset).chain([text.len()]).nth(skipped))
        }
    }
}

/// The places that a pattern has in a text, from an offset on. One that is empty may follow right behind another.
struct Places<'t> {
    pattern: Rc<Regex>,
    text: &'t str,
    /// `None` at the end.
    next: Option<usize>,
}

impl<'t> Iterator for Places<'t> {
    type Item = Captures<'t>;

    fn next(&mut self) -> Option<Captures<'t>> {
        let found = self.pattern.captures_at(self.text, self.next?);
        let whole = found.as_ref().and_then(|groups| groups.get(0));
        self.next = whole.and_then(|whole| {
            let behind = self.text[whole.end()..].chars().next().map_or(1, char::len_utf8);
            Some(if whole.is_empty() { whole.end() + behind } else { whole.end() }).filter(|next| *next <= self.text.len())
        });
        found
    }
}

fn places<'t>(pattern: &str, flags: Flags, text: &'t str, from: Option<usize>) -> SqlResult<Places<'t>> {
    Ok(Places { pattern: ready(pattern, flags)?, text, next: from })
}

/// Which of the places is meant, from 1.
fn ordinal(arguments: &[Datum<'_>], at: usize, least: i64, what: &str) -> SqlResult<usize> {
    let number = arguments.get(at).map_or(1, Datum::int);
    let error = || SqlError::new("22023", format!("invalid value for parameter \"{what}\": {number}"));
    usize::try_from(number).ok().filter(|_| number >= least).ok_or_else(error)
}

/// regexp_like(text, pattern [, flags])
pub(super) fn is_like<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let flags = Flags::read(text_of(arguments, 2), false)?;
    let found = ready(text_of(arguments, 1), flags)?.is_match(text_of(arguments, 0));
    Ok(Datum::boolean(Some(found)))
}

/// text SIMILAR TO pattern, with an escape character, or an empty text for none
pub(super) fn is_similar<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let mut escape = text_of(arguments, 2).chars();
    let (escape, more) = (escape.next(), escape.next());
    if more.is_some() {
        return Err(SqlError::new("22019", "invalid escape string: it has one character, or none"));
    }
    let pattern = of_similar(text_of(arguments, 1), escape)?;
    let found = ready(&pattern, Flags::default())?.is_match(text_of(arguments, 0));
    Ok(Datum::boolean(Some(found)))
}

/// substring(text FROM pattern): what its first parentheses have, or all of it.
pub(super) fn part<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let pattern = ready(text_of(arguments, 1), Flags::default())?;
    let found = pattern.captures(text_of(arguments, 0)).and_then(|groups| groups.get(usize::from(groups.len() > 1)));
    let range = found.map(|found| found.range());
    Ok(range.map_or(Datum::NULL, |range| take(arguments, 0).cut(range)))
}

/// regexp_count(text, pattern [, start [, flags]])
pub(super) fn count<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let (text, flags) = (text_of(arguments, 0), Flags::read(text_of(arguments, 3), false)?);
    let from = start(text, arguments, 2, "regexp_count")?;
    let count = places(text_of(arguments, 1), flags, text, from)?.count();
    Ok(Datum::from_int(i64::try_from(count).unwrap_or(i64::MAX)))
}

/// regexp_substr(text, pattern [, start [, N [, flags [, parentheses]]]])
pub(super) fn nth<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let (text, flags) = (text_of(arguments, 0), Flags::read(text_of(arguments, 4), false)?);
    let from = start(text, arguments, 2, "regexp_substr")?;
    let (number, group) = (ordinal(arguments, 3, 1, "n")?, if arguments.len() > 5 { ordinal(arguments, 5, 0, "subexpr")? } else { 0 });
    let found = places(text_of(arguments, 1), flags, text, from)?.nth(number - 1).and_then(|groups| groups.get(group));
    let range = found.map(|found| found.range());
    Ok(range.map_or(Datum::NULL, |range| take(arguments, 0).cut(range)))
}

/// regexp_instr(text, pattern [, start [, N [, end [, flags [, parentheses]]]]]): where it is, in characters from 1; 0 where it is not.
pub(super) fn place<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let (text, flags) = (text_of(arguments, 0), Flags::read(text_of(arguments, 5), false)?);
    let from = start(text, arguments, 2, "regexp_instr")?;
    let number = ordinal(arguments, 3, 1, "n")?;
    let behind = if arguments.len() > 4 { int(arguments, 4) } else { 0 };
    if !(0..=1).contains(&behind) {
        return Err(SqlError::new("22023", format!("invalid value for parameter \"endoption\": {behind}")));
    }
    let group = if arguments.len() > 6 { ordinal(arguments, 6, 0, "subexpr")? } else { 0 };
    let found = places(text_of(arguments, 1), flags, text, from)?.nth(number - 1).and_then(|groups| groups.get(group));
    let at = found.map_or(0, |found| {
        let offset = if behind == 1 { found.end() } else { found.start() };
        i64::try_from(text[..offset].chars().count()).map_or(i64::MAX, |before| before + 1)
    });
    Ok(Datum::from_int(at))
}

/// regexp_replace(text, pattern, replacement [, flags]): the first place, or with `g` all.
pub(super) fn replace<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let letters = text_of(arguments, 3);
    if letters.starts_with(|c: char| c.is_ascii_digit()) {
        let error = SqlError::new("22023", format!("invalid regular expression option: \"{}\"", &letters[..1]));
        return Err(
            error.with_hint("If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.")
        );
    }
    let flags = Flags::read(letters, true)?;
    replaced(arguments, Some(0), if flags.all { 0 } else { 1 }, flags)
}

/// regexp_replace(text, pattern, replacement, start [, N [, flags]]): the Nth place, or with 0 all.
pub(super) fn replace_from<'a>(_: &Function, arguments: Args<'_, 'a>) -> SqlResult<Datum<'a>> {
    let flags = Flags::read(text_of(arguments, 5), arguments.len() < 5)?;
    let from = start(text_of(arguments, 0), arguments, 3, "regexp_replace")?;
    let number = if arguments.len() > 4 { ordinal(arguments, 4, 0, "n")? } else { 1 };
    replaced(arguments, from, number, flags)
}

/// `number`: which place, from 1; 0: all.
fn replaced<'a>(arguments: &[Datum<'_>], from: Option<usize>, number: usize, flags: Flags) -> SqlResult<Datum<'a>> {
    let (text, with) = (text_of(arguments, 0), text_of(arguments, 2));
    let (mut out, mut copied) = (String::new(), 0);
    for (at, groups) in (1..).zip(places(text_of(arguments, 1), flags, text, from)?) {
        if number > 0 && at < number {
            continue;
        }
        let Some(whole) = groups.get(0) else { continue };
        out.push_str(&text[copied..whole.start()]);
        put_replacement(with, &groups, &mut out);
        check_length(out.len())?;
        copied = whole.end();
        if number > 0 {
            break;
        }
    }
    out.push_str(&text[copied..]);
    check_length(out.len())?;
    Ok(Datum::from_text(out))
}

/// `\1` to `\9` are what parentheses have, `\&` all, `\\` a backslash.
fn put_replacement(with: &str, groups: &Captures<'_>, out: &mut String) {
    let mut rest = with.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match rest.next() {
            Some(digit @ '1'..='9') => out.push_str(groups.get(digit as usize - '0' as usize).map_or("", |group| group.as_str())),
            Some('&') => out.push_str(groups.get(0).map_or("", |group| group.as_str())),
            Some('\\') | None => out.push('\\'),
            Some(other) => out.extend(['\\', other]),
        }
    }
}

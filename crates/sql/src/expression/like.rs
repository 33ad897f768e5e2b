//! LIKE: a text against a pattern, without making anything of the pattern first.
//!
//! Steps: at most length of text times length of pattern, as only the last `%` is ever taken up again: those before it have matched as early
//! as possible.

use crate::{SqlError, SqlResult};
use std::str::Chars;

fn ends_with_escape() -> SqlError {
    SqlError::new("22025", "LIKE pattern must not end with escape character")
}

/// One step of a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Char(char),
    /// `_`
    One,
    /// `%`
    Any,
    End,
}

fn next(pattern: &mut Chars<'_>, escape: Option<char>) -> SqlResult<Step> {
    Ok(match pattern.next() {
        None => Step::End,
        Some(c) if Some(c) == escape => Step::Char(pattern.next().ok_or_else(ends_with_escape)?),
        Some('%') => Step::Any,
        Some('_') => Step::One,
        Some(c) => Step::Char(c),
    })
}

fn same(a: char, b: char, ignores_case: bool) -> bool {
    a == b || (ignores_case && a.to_lowercase().eq(b.to_lowercase()))
}

/// Does the text match? A backslash, or what else `escape` is, takes the next character as it is.
pub(crate) fn matches(text: &str, pattern: &str, escape: Option<char>, ignores_case: bool) -> SqlResult<bool> {
    // The last character decides whether the pattern is one at all, and that must not depend on the text.
    let special = |c: char| matches!(c, '%' | '_') || Some(c) == escape;
    if !ignores_case && !pattern.contains(special) {
        return Ok(text == pattern);
    }
    if let Some(escape) = escape
        && pattern.ends_with(escape)
    {
        let mut all = pattern.chars();
        while next(&mut all, Some(escape))? != Step::End {}
    }
    if !ignores_case
        && escape != Some('%')
        && let Some(inner) = pattern.strip_prefix('%').and_then(|rest| rest.strip_suffix('%'))
        && !inner.contains(special)
    {
        return Ok(text.contains(inner));
    }
    let mut pattern = pattern.chars();
    let mut rest = text.chars();
    let mut retry: Option<(Chars<'_>, Chars<'_>)> = None;
    loop {
        let step = next(&mut pattern, escape)?;
        if step == Step::Any {
            if pattern.as_str().is_empty() {
                return Ok(true);
            }
            retry = Some((pattern.clone(), rest.clone()));
            continue;
        }
        let fits = match (step, rest.next()) {
            (Step::End, None) => return Ok(true),
            (Step::Char(a), Some(b)) => same(a, b, ignores_case),
            (Step::One, Some(_)) => true,
            _ => false,
        };
        if fits {
            continue;
        }
        let Some((again, from)) = retry.as_mut() else { return Ok(false) };
        if from.next().is_none() {
            return Ok(false);
        }
        pattern = again.clone();
        rest = from.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By definition, recursively.
    fn slow(pattern: &[char], text: &[char], escape: Option<char>) -> bool {
        match (pattern, text) {
            ([], []) => true,
            ([e, c, rest @ ..], _) if Some(*e) == escape => text.split_first().is_some_and(|(t, tail)| t == c && slow(rest, tail, escape)),
            (['%', rest @ ..], _) => (0..=text.len()).any(|skip| slow(rest, &text[skip..], escape)),
            (['_', rest @ ..], [_, tail @ ..]) => slow(rest, tail, escape),
            ([a, rest @ ..], [b, tail @ ..]) => a == b && slow(rest, tail, escape),
            _ => false,
        }
    }

    fn words(alphabet: &[char], longest: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut from = 0;
        for _ in 0..longest {
            let to = all.len();
            for i in from..to {
                for c in alphabet {
                    all.push(format!("{}{c}", all[i]));
                }
            }
            from = to;
        }
        all
    }

    #[test]
    fn all_short_patterns_on_all_short_texts() {
        let texts = words(&['a', 'é', '%'], 4);
        for pattern in words(&['a', 'é', '%', '_', '\\'], 4) {
            let chars: Vec<char> = pattern.chars().collect();
            let trailing = chars.iter().rev().take_while(|c| **c == '\\').count() % 2 == 1;
            for text in &texts {
                let text_chars: Vec<char> = text.chars().collect();
                match matches(text, &pattern, Some('\\'), false) {
                    Ok(found) => assert_eq!(found, slow(&chars, &text_chars, Some('\\')), "{text} like {pattern}"),
                    Err(error) => assert!(trailing && error.sqlstate() == "22025", "{text} like {pattern}"),
                }
                assert_eq!(matches(text, &pattern, None, false).unwrap(), slow(&chars, &text_chars, None), "{text} like {pattern}");
                let upper = text.to_uppercase();
                assert_eq!(matches(&upper, &pattern, None, true).unwrap(), slow(&chars, &text_chars, None), "{upper} ilike {pattern}");
            }
        }
        assert!(matches("x", "\\", Some('\\'), false).is_err(), "told of any text");
    }

    #[test]
    fn hostile_patterns_end_soon() {
        let text = "a".repeat(20_000);
        let pattern = format!("{}b", "a%".repeat(2_000));
        assert!(!matches(&text, &pattern, Some('\\'), false).unwrap());
    }
}

//! EXCLUDE of window frames, which sqlparser does not know.
//!
//! Invariant: what is parsed has no EXCLUDE in a window; the name of the window that it refines says it instead, by a mark that no statement can write in a name.

use crate::bind::NAMELESS;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use std::collections::{HashMap, HashSet};

/// Rows that are left out of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Exclusion {
    #[default]
    NoOthers,
    CurrentRow,
    Group,
    Ties,
}

impl Exclusion {
    /// As it is written; nothing for what is so without a word.
    pub(crate) fn words(self) -> Option<&'static str> {
        match self {
            Exclusion::NoOthers => None,
            Exclusion::CurrentRow => Some(" EXCLUDE CURRENT ROW"),
            Exclusion::Group => Some(" EXCLUDE GROUP"),
            Exclusion::Ties => Some(" EXCLUDE TIES"),
        }
    }

    fn mark(self) -> &'static str {
        match self {
            Exclusion::NoOthers => "",
            Exclusion::CurrentRow => "row",
            Exclusion::Group => "group",
            Exclusion::Ties => "ties",
        }
    }
}

/// What a name of a window says, and the name without it.
pub(crate) fn split(name: &str) -> (Exclusion, Option<&str>) {
    let Some((mark, rest)) = name.strip_prefix(NAMELESS).and_then(|marked| marked.split_once(NAMELESS)) else {
        return (Exclusion::NoOthers, Some(name));
    };
    let all = [Exclusion::CurrentRow, Exclusion::Group, Exclusion::Ties];
    let exclusion = all.into_iter().find(|exclusion| exclusion.mark() == mark).unwrap_or_default();
    (exclusion, (!rest.is_empty()).then_some(rest))
}

/// The exclusion that these words say, and how many of them.
fn read(words: &[&str]) -> Option<(Exclusion, usize)> {
    let is = |at: usize, word: &str| words.get(at).is_some_and(|own| own.eq_ignore_ascii_case(word));
    match () {
        () if is(0, "no") && is(1, "others") => Some((Exclusion::NoOthers, 2)),
        () if is(0, "current") && is(1, "row") => Some((Exclusion::CurrentRow, 2)),
        () if is(0, "group") => Some((Exclusion::Group, 1)),
        () if is(0, "ties") => Some((Exclusion::Ties, 1)),
        () => None,
    }
}

fn word(token: &TokenWithSpan) -> Option<&Word> {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word),
        _ => None,
    }
}

/// Takes EXCLUDE out of frames, and marks their windows.
pub(crate) fn marked(tokens: &mut Vec<TokenWithSpan>) {
    let is_exclude = |token: &TokenWithSpan| word(token).is_some_and(|word| word.keyword == Keyword::EXCLUDE);
    if !tokens.iter().any(is_exclude) {
        return;
    }
    let own: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let (mut open, mut marks, mut gone): (Vec<usize>, HashMap<usize, Exclusion>, HashSet<usize>) = Default::default();
    for (at, place) in own.iter().enumerate() {
        match &tokens[*place].token {
            Token::LParen => open.push(*place),
            Token::RParen => _ = open.pop(),
            _ => {}
        }
        let ends_frame = |token: &TokenWithSpan| {
            word(token).is_some_and(|word| matches!(word.keyword, Keyword::ROW | Keyword::PRECEDING | Keyword::FOLLOWING))
        };
        let (Some(first), true) = (open.last(), at > 0 && is_exclude(&tokens[*place]) && ends_frame(&tokens[own[at - 1]])) else {
            continue;
        };
        let next: Vec<&str> = own[at + 1..].iter().take(2).map_while(|next| word(&tokens[*next]).map(|word| word.value.as_str())).collect();
        let Some((exclusion, words)) = read(&next) else { continue };
        if own.get(at + 1 + words).is_some_and(|end| tokens[*end].token == Token::RParen) {
            marks.insert(*first, exclusion);
            gone.extend(&own[at..=at + words]);
        }
    }
    let old = std::mem::take(tokens);
    let mut mark: Option<String> = None;
    for (at, mut token) in old.into_iter().enumerate() {
        if gone.contains(&at) {
            continue;
        }
        let span = token.span;
        let named = |value: String| Token::Word(Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword });
        if mark.is_some() && !matches!(token.token, Token::Whitespace(_)) {
            let mark = mark.take().unwrap_or_default();
            match &token.token {
                Token::Word(name) if name.keyword == Keyword::NoKeyword => {
                    let name = if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() };
                    token.token = named(mark + &name);
                }
                _ => tokens.push(TokenWithSpan { token: named(mark), span }),
            }
        }
        mark = mark.or_else(|| {
            let exclusion = marks.get(&at).filter(|exclusion| **exclusion != Exclusion::NoOthers)?;
            Some(format!("{NAMELESS}{}{NAMELESS}", exclusion.mark()))
        });
        tokens.push(token);
    }
}

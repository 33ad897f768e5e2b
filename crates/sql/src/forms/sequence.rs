//! Options of sequences, which may stand in any order: sqlparser knows one.

use super::{Change, Tokens};
use sqlparser::tokenizer::Token;

/// Puts the options of CREATE SEQUENCE, and of identity columns, into the order in which they are read.
pub(super) fn in_order(read: &Tokens<'_>) -> Vec<Change> {
    let mut begins = Vec::new();
    if let Some(sequence) = (1..3).find(|at| read.is(*at, &["sequence"])) {
        let name = if read.is(sequence + 1, &["if"]) { sequence + 4 } else { sequence + 1 };
        let behind = read.behind_name(name);
        begins.push(if read.is(behind, &["as"]) { behind + 2 } else { behind });
    }
    let is_identity = |at: &usize| read.is(*at - 1, &["identity"]) && read.token(*at) == Some(&Token::LParen);
    begins.extend((1..read.own.len()).filter(is_identity).map(|at| at + 1));
    begins.into_iter().filter_map(|begin| sorted(read, begin)).collect()
}

/// The options that begin at a place, sorted; `None`: they are.
fn sorted(read: &Tokens<'_>, begin: usize) -> Option<Change> {
    let mut options = Vec::new();
    let mut end = begin;
    while let Some((rank, length)) = option(read, end) {
        options.push((rank, end..end + length));
        end += length;
    }
    if options.is_sorted_by_key(|(rank, _)| *rank) {
        return None;
    }
    options.sort_by_key(|(rank, _)| *rank);
    let tokens = options.into_iter().flat_map(|(_, places)| places).filter_map(|at| read.token(at).cloned());
    Some((begin..end, tokens.collect()))
}

/// Where the option comes that stands at a place, and how many tokens it has.
fn option(read: &Tokens<'_>, at: usize) -> Option<(u8, usize)> {
    let no = usize::from(read.is(at, &["no"]));
    let named = |names: &[&str]| read.is(at + no, names);
    if named(&["cycle"]) {
        return Some((5, no + 1));
    }
    let rank = match () {
        () if named(&["minvalue"]) => 1,
        () if named(&["maxvalue"]) => 2,
        () if no > 0 => return None,
        () if named(&["increment"]) => 0,
        () if named(&["start"]) => 3,
        () if named(&["cache"]) => 4,
        () => return None,
    };
    if no > 0 {
        return Some((rank, 2));
    }
    let value = at + 1 + usize::from(read.is(at + 1, &["by", "with"]));
    let number = value + usize::from(matches!(read.token(value), Some(Token::Minus | Token::Plus)));
    matches!(read.token(number), Some(Token::Number(..))).then_some((rank, number + 1 - at))
}

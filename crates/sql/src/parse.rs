//! Text to statements, by sqlparser with PostgreSQL's dialect.

use crate::{SqlError, SqlResult};
use sqlparser::ast::{Expr, Ident, ObjectName, ObjectNamePart, Statement};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Span, Token, Tokenizer};

/// Statements within each other: bounds the stack.
const DEPTH_MAX: usize = 100;
/// Longer texts are refused: each token takes some hundred bytes of memory.
pub(crate) const TEXT_BYTES_MAX: usize = 64 << 20;

fn parser(text: &str) -> SqlResult<Parser<'static>> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(SqlError::new("54000", format!("a text of {} bytes; at most {TEXT_BYTES_MAX} are read at once", text.len())));
    }
    let dialect = &PostgreSqlDialect {};
    let mut tokens = Tokenizer::new(dialect, text).tokenize_with_location().map_err(|e| error(ParserError::from(e)))?;
    // `?` stands for the parameters one after the other, as SQLite has it.
    let mut number = 0;
    for token in &mut tokens {
        if token.token == Token::Question {
            number += 1;
            token.token = Token::Placeholder(format!("${number}"));
        }
    }
    Ok(Parser::new(dialect).with_recursion_limit(DEPTH_MAX).with_tokens_with_locations(tokens))
}

/// All statements of a text.
pub(crate) fn parse(text: &str) -> SqlResult<Vec<Statement>> {
    parser(text)?.parse_statements().map_err(error)
}

/// An expression as the catalog has it: a default, a condition.
pub(crate) fn parse_expression(text: &str) -> SqlResult<Expr> {
    parser(text)?.parse_expr().map_err(error)
}

/// sqlparser tells the place at the end of its message.
fn error(error: ParserError) -> SqlError {
    let text = match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text,
        ParserError::RecursionLimitExceeded => return SqlError::new("54001", format!("more than {DEPTH_MAX} levels within each other")),
    };
    let place = text.rsplit_once(" at Line: ").and_then(|(message, place)| {
        let (line, column) = place.split_once(", Column: ")?;
        Some((message.to_owned(), line.trim().parse().ok()?, column.trim().parse().ok()?))
    });
    match place {
        Some((message, line, column)) => SqlError::syntax(format!("syntax error: {message}")).at(line, column),
        None => SqlError::syntax(format!("syntax error: {text}")),
    }
}

/// An identifier as names are compared: in lower case, unless it was quoted.
pub(crate) fn identifier(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() }
}

/// The parts of a name with points.
pub(crate) fn parts(name: &ObjectName) -> SqlResult<Vec<&Ident>> {
    fn part(part: &ObjectNamePart) -> SqlResult<&Ident> {
        match part {
            ObjectNamePart::Identifier(ident) => Ok(ident),
            other => Err(SqlError::syntax(format!("{other} is no name"))),
        }
    }
    name.0.iter().map(part).collect()
}

/// The name of an object as the engine has it: those of schema `public` alone, others behind the name of their schema and a point.
pub(crate) fn object_name(name: &ObjectName) -> SqlResult<String> {
    let parts: Vec<String> = parts(name)?.into_iter().map(identifier).collect();
    match parts.as_slice() {
        [name] => Ok(name.clone()),
        [schema, name] if schema == "public" => Ok(name.clone()),
        [schema, name] => Ok(format!("{schema}.{name}")),
        _ => Err(SqlError::syntax(format!("{name} has too many parts"))),
    }
}

/// Adds the place of something in the text to an error.
pub(crate) trait At {
    fn at_span(self, span: Span) -> Self;
}

impl At for SqlError {
    fn at_span(self, span: Span) -> SqlError {
        self.at(span.start.line, span.start.column)
    }
}

impl<T> At for SqlResult<T> {
    fn at_span(self, span: Span) -> SqlResult<T> {
        self.map_err(|error| error.at_span(span))
    }
}

/// The known name that is nearest to one that is not, for a hint: at most half of its characters differ.
pub(crate) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let best = known.map(|other| (distance(name, other), other)).min_by_key(|(distance, _)| *distance)?;
    (best.0 * 2 <= name.chars().count()).then_some(best.1)
}

/// Characters to put in, take out or change (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(100).flat_map(char::to_lowercase).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(100).flat_map(char::to_lowercase).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_tell_the_place() {
        let error = parse("select 1;\nselect (1;").unwrap_err();
        assert_eq!(error.sqlstate(), "42601");
        assert_eq!(error.position().map(|(line, _)| line), Some(2), "{error}");
    }

    #[test]
    fn deep_texts_are_refused() {
        let deep = format!("select {}1{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(parse(&deep).is_err());
    }

    #[test]
    fn the_nearest_name() {
        assert_eq!(nearest("custmer", ["customer", "orders"].into_iter()), Some("customer"));
        assert_eq!(nearest("xyz", ["customer", "orders"].into_iter()), None);
    }
}

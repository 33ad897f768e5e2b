//! DECLARE, FETCH, MOVE and CLOSE as they are written.
//!
//! Cursors go forward and end with their transaction: what asks for more is refused, each with the SQLSTATE that PostgreSQL has for it.

use crate::parse::{error, identifier, word};
use crate::{SqlError, SqlResult};
use sqlparser::ast::Query;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

#[derive(Debug)]
pub(crate) enum CursorStatement {
    Declare {
        name: String,
        query: Box<Query>,
    },
    /// The next so many rows, or all.
    Fetch {
        name: String,
        rows: Option<u64>,
        /// MOVE: they are passed over.
        moves: bool,
    },
    Close {
        /// Without one, all.
        name: Option<String>,
    },
}

/// The first words of such statements.
const FIRST: [&str; 4] = ["declare", "fetch", "move", "close"];

/// Is a statement that begins so one of these?
pub(crate) fn is_cursor(first: &Token) -> bool {
    word(first).is_some_and(|word| FIRST.contains(&word.as_str()))
}

/// Takes the next word if it is this one.
fn takes(parser: &mut Parser<'_>, wanted: &str) -> bool {
    let is_there = word(&parser.peek_token_ref().token).is_some_and(|word| word == wanted);
    if is_there {
        parser.next_token();
    }
    is_there
}

/// Reads a statement from its first word on.
pub(crate) fn parse(parser: &mut Parser<'_>) -> SqlResult<CursorStatement> {
    match word(&parser.next_token().token).as_deref() {
        Some("declare") => declare(parser),
        Some("close") => match takes(parser, "all") {
            true => Ok(CursorStatement::Close { name: None }),
            false => Ok(CursorStatement::Close { name: Some(name(parser)?) }),
        },
        first => fetch(parser, first == Some("move")),
    }
}

fn name(parser: &mut Parser<'_>) -> SqlResult<String> {
    parser.parse_identifier().map(|name| identifier(&name)).map_err(error)
}

fn declare(parser: &mut Parser<'_>) -> SqlResult<CursorStatement> {
    let name = name(parser)?;
    loop {
        match word(&parser.peek_token_ref().token).as_deref() {
            Some("cursor") => break,
            Some("insensitive" | "asensitive") => {}
            Some("no") => {
                parser.next_token();
                if word(&parser.peek_token_ref().token).as_deref() != Some("scroll") {
                    return Err(error(expected("SCROLL", parser)));
                }
            }
            Some("scroll") => return Err(SqlError::unsupported("a cursor with SCROLL")),
            Some("binary") => return Err(SqlError::unsupported("a cursor with BINARY")),
            _ => return Err(error(expected("CURSOR", parser))),
        }
        parser.next_token();
    }
    parser.next_token();
    if parser.parse_keywords(&[Keyword::WITH, Keyword::HOLD]) {
        return Err(SqlError::unsupported("a cursor WITH HOLD"));
    }
    let _ = parser.parse_keywords(&[Keyword::WITHOUT, Keyword::HOLD]);
    parser.expect_keyword(Keyword::FOR).map_err(error)?;
    let query = parser.parse_query().map_err(error)?;
    if !query.locks.is_empty() {
        return Err(SqlError::unsupported("a cursor FOR UPDATE or FOR SHARE"));
    }
    Ok(CursorStatement::Declare { name, query })
}

fn expected(what: &str, parser: &Parser<'_>) -> ParserError {
    match parser.expected::<()>(what, parser.peek_token()) {
        Err(error) => error,
        Ok(()) => ParserError::ParserError(format!("Expected: {what}")),
    }
}

/// A number of rows: forward only.
fn number(parser: &mut Parser<'_>) -> SqlResult<Option<u64>> {
    let is_negative = parser.consume_token(&Token::Minus);
    let Token::Number(digits, _) = parser.peek_token().token else {
        return if is_negative { Err(error(expected("a number", parser))) } else { Ok(None) };
    };
    parser.next_token();
    match digits.parse::<i64>() {
        Ok(0) => Err(SqlError::unsupported("FETCH 0, the same row again,")),
        Ok(_) if is_negative => Err(backward()),
        Ok(rows) => Ok(Some(rows.unsigned_abs())),
        Err(_) => Err(SqlError::syntax(format!("\"{digits}\" is no number of rows"))),
    }
}

/// 55000: a cursor goes forward.
fn backward() -> SqlError {
    SqlError::new("55000", "cursor can only scan forward")
}

fn fetch(parser: &mut Parser<'_>, moves: bool) -> SqlResult<CursorStatement> {
    let direction = word(&parser.peek_token_ref().token);
    // A cursor may have the name of a direction: then nothing stands behind it.
    let is_name = matches!(parser.peek_nth_token(1).token, Token::EOF);
    let rows = match direction.as_deref().filter(|_| !is_name) {
        Some("next") => {
            parser.next_token();
            Some(1)
        }
        Some("all") => {
            parser.next_token();
            None
        }
        Some("forward") => {
            parser.next_token();
            match number(parser)? {
                Some(rows) => Some(rows),
                None if takes(parser, "all") => None,
                None => Some(1),
            }
        }
        Some("prior" | "backward") => return Err(backward()),
        Some(other @ ("first" | "last" | "absolute" | "relative")) => {
            return Err(SqlError::unsupported(format!("FETCH {}", other.to_uppercase())));
        }
        _ => Some(number(parser)?.unwrap_or(1)),
    };
    if !takes(parser, "from") {
        takes(parser, "in");
    }
    Ok(CursorStatement::Fetch { name: name(parser)?, rows, moves })
}

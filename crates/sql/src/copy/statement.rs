//! COPY as it is written. sqlparser's own reading of it knows less than PostgreSQL has, and takes what PostgreSQL refuses.

use super::options::{CopyFormat, Given, Setting, check};
use crate::SqlResult;
use crate::parse::error;
use sqlparser::ast::{Expr, Ident, ObjectName, Query};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Span, Token};

/// A COPY.
#[derive(Debug)]
pub(crate) struct CopyStatement {
    pub(crate) source: CopySource,
    pub(crate) direction: Direction,
    pub(crate) end: CopyEnd,
    pub(crate) format: CopyFormat,
    /// Which of the rows that are read come into the table.
    pub(crate) condition: Option<Expr>,
}

/// What is copied.
#[derive(Debug)]
pub(crate) enum CopySource {
    Table { name: ObjectName, columns: Vec<Ident> },
    Query(Box<Query>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    From,
    To,
}

impl Direction {
    /// As messages name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Direction::From => "COPY FROM",
            Direction::To => "COPY TO",
        }
    }
}

/// Where the text is.
#[derive(Debug)]
pub(crate) enum CopyEnd {
    /// STDIN or STDOUT: with whoever runs the statement.
    Client,
    File(String),
}

/// Does a statement begin with COPY?
pub(crate) fn is_copy(first: &Token) -> bool {
    matches!(first, Token::Word(word) if word.keyword == Keyword::COPY && word.quote_style.is_none())
}

/// Reads a statement from its first word on.
pub(crate) fn parse(parser: &mut Parser<'_>) -> SqlResult<CopyStatement> {
    let read = read(parser).map_err(error)?;
    let Read { source, direction, end, settings, condition } = read;
    let format = check(settings, direction, &end)?;
    Ok(CopyStatement { source, direction, end, format, condition })
}

/// As it is written, options unchecked.
struct Read {
    source: CopySource,
    direction: Direction,
    end: CopyEnd,
    settings: Vec<Setting>,
    condition: Option<Expr>,
}

fn read(parser: &mut Parser<'_>) -> Result<Read, ParserError> {
    parser.expect_keyword(Keyword::COPY)?;
    let mut settings = Vec::new();
    let span = parser.peek_token().span;
    let source = if parser.consume_token(&Token::LParen) {
        let query = parser.parse_query()?;
        parser.expect_token(&Token::RParen)?;
        CopySource::Query(query)
    } else {
        // Before the name it is the oldest way to say so, unless it is the name.
        let names_table =
            matches!(parser.peek_nth_token(1).token, Token::Word(word) if [Keyword::FROM, Keyword::TO].contains(&word.keyword));
        if !names_table && parser.parse_keyword(Keyword::BINARY) {
            settings.push(Setting::new("format", Given::Text("binary".into()), span));
        }
        let name = parser.parse_object_name(false)?;
        let columns = if parser.peek_token_ref().token == Token::LParen { names(parser)? } else { Vec::new() };
        CopySource::Table { name, columns }
    };
    let direction = match parser.parse_one_of_keywords(&[Keyword::FROM, Keyword::TO]) {
        Some(Keyword::FROM) if matches!(source, CopySource::Table { .. }) => Direction::From,
        Some(Keyword::TO) => Direction::To,
        _ => return parser.expected("FROM or TO", parser.peek_token()),
    };
    let end = match parser.parse_one_of_keywords(&[Keyword::STDIN, Keyword::STDOUT, Keyword::PROGRAM]) {
        Some(Keyword::PROGRAM) => {
            text(parser)?;
            settings.push(Setting::new("program", Given::Nothing, span));
            CopyEnd::Client
        }
        Some(_) => CopyEnd::Client,
        None => CopyEnd::File(text(parser)?),
    };
    if is_word(parser, "using") {
        parser.next_token();
    }
    if is_word(parser, "delimiters") {
        let span = parser.next_token().span;
        settings.push(Setting::new("delimiter", Given::Text(text(parser)?), span));
    }
    let _ = parser.parse_keyword(Keyword::WITH);
    if parser.consume_token(&Token::LParen) {
        settings.extend(parser.parse_comma_separated(setting)?);
        parser.expect_token(&Token::RParen)?;
    } else {
        while let Some(setting) = old_setting(parser)? {
            settings.push(setting);
        }
    }
    let condition = match direction {
        Direction::From if parser.parse_keyword(Keyword::WHERE) => Some(parser.parse_expr()?),
        _ => None,
    };
    Ok(Read { source, direction, end, settings, condition })
}

/// Names in parentheses, of which there is at least one.
fn names(parser: &mut Parser<'_>) -> Result<Vec<Ident>, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let names = parser.parse_comma_separated(Parser::parse_identifier)?;
    parser.expect_token(&Token::RParen)?;
    Ok(names)
}

/// A text in quotes.
fn text(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    let token = parser.next_token();
    match token.token {
        Token::SingleQuotedString(text)
        | Token::EscapedStringLiteral(text)
        | Token::UnicodeStringLiteral(text)
        | Token::NationalStringLiteral(text) => Ok(text),
        Token::DollarQuotedString(text) => Ok(text.value),
        _ => parser.expected("a text in quotes", token),
    }
}

fn is_word(parser: &Parser<'_>, wanted: &str) -> bool {
    matches!(&parser.peek_token_ref().token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

/// An option in parentheses: a name, and what it is given.
fn setting(parser: &mut Parser<'_>) -> Result<Setting, ParserError> {
    let token = parser.next_token();
    let Token::Word(word) = &token.token else { return parser.expected("the name of an option", token) };
    let name = if word.quote_style.is_some() { word.value.clone() } else { word.value.to_lowercase() };
    let next = parser.peek_token();
    let given = match next.token {
        Token::Comma | Token::RParen => Given::Nothing,
        Token::Mul => {
            parser.next_token();
            Given::All
        }
        Token::LParen => Given::Names(names(parser)?),
        Token::Word(word) => {
            parser.next_token();
            Given::Text(if word.quote_style.is_some() { word.value } else { word.value.to_lowercase() })
        }
        Token::Number(number, _) => {
            parser.next_token();
            Given::Text(number)
        }
        _ => Given::Text(text(parser)?),
    };
    Ok(Setting::new(name, given, token.span))
}

/// An option as it was written before PostgreSQL 9.0.
fn old_setting(parser: &mut Parser<'_>) -> Result<Option<Setting>, ParserError> {
    let Token::Word(word) = parser.peek_token().token else { return Ok(None) };
    let span = parser.peek_token().span;
    let name = word.value.to_lowercase();
    let said = |name: &str, given: Given| Ok(Some(Setting::new(name, given, span)));
    match name.as_str() {
        "binary" | "csv" => {
            parser.next_token();
            said("format", Given::Text(name))
        }
        "freeze" | "header" => {
            parser.next_token();
            said(&name, Given::Text("true".into()))
        }
        "delimiter" | "null" | "quote" | "escape" | "encoding" => {
            parser.next_token();
            let _ = parser.parse_keyword(Keyword::AS);
            let text = text(parser)?;
            said(&name, Given::Text(text))
        }
        "force" => {
            parser.next_token();
            forced(parser, span).map(Some)
        }
        _ => Ok(None),
    }
}

/// What stands behind FORCE.
fn forced(parser: &mut Parser<'_>, span: Span) -> Result<Setting, ParserError> {
    let name = if is_word(parser, "quote") {
        parser.next_token();
        "force_quote"
    } else if parser.parse_keywords(&[Keyword::NOT, Keyword::NULL]) {
        "force_not_null"
    } else if parser.parse_keyword(Keyword::NULL) {
        "force_null"
    } else {
        return parser.expected("QUOTE, NOT NULL or NULL", parser.peek_token());
    };
    if parser.consume_token(&Token::Mul) {
        return Ok(Setting::new(name, Given::All, span));
    }
    Ok(Setting::new(name, Given::Names(parser.parse_comma_separated(Parser::parse_identifier)?), span))
}

//! Utilities as they are written:
//!
//! ```text
//! ANALYZE [VERBOSE] [table [, ...]] [WITH (sample = '1%')]
//! REORG { TABLE table [PARTITION partition] | INDEX index } [WITH (...)]
//! REINDEX { TABLE table | INDEX index }
//! CHECK
//! ESTIMATE { TABLE table [PARTITION partition] | INDEX index | [UNIQUE] INDEX ON table (column [ASC | DESC] [, ...]) } [WITH (sample_pages = 400)]
//! ADVISE [table or index [, ...]] [WITH (sample_pages = 400)]
//! BACKUP [TABLE table [, ...]] TO 'file' [WITH (base = 'file')]
//! ```

use super::options::Given;
use crate::parse::{error, identifier, word};
use crate::settings::text_of;
use crate::{SqlError, SqlResult};
use pagefold_types::Direction;
use sqlparser::ast::{Expr, Ident, ObjectName, Value};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// A utility, its names not yet looked up.
#[derive(Debug)]
pub(crate) struct UtilityStatement {
    /// Its first word.
    pub(crate) name: &'static str,
    pub(crate) asked: Asked,
    pub(crate) options: Vec<Given>,
}

/// Which utility, of what.
#[derive(Debug)]
pub(crate) enum Asked {
    Analyze { is_verbose: bool, tables: Vec<ObjectName> },
    Reorg(Object),
    Reindex(Object),
    Check,
    Estimate(Object),
    EstimateNewIndex { table: ObjectName, columns: Vec<(Ident, Direction)>, unique: bool },
    Advise { objects: Vec<ObjectName> },
    Backup { tables: Vec<ObjectName>, file: String },
}

/// A table, a partition or an index.
#[derive(Debug)]
pub(crate) enum Object {
    Table(ObjectName, Option<Ident>),
    Index(ObjectName),
}

/// The first words of such statements.
const FIRST: [&str; 7] = ["ANALYZE", "REORG", "REINDEX", "CHECK", "ESTIMATE", "ADVISE", "BACKUP"];

fn first_word(token: &Token) -> Option<&'static str> {
    let word = word(token)?;
    // PostgreSQL knows both spellings.
    let word = if word == "analyse" { "analyze" } else { &word };
    FIRST.into_iter().find(|first| first.eq_ignore_ascii_case(word))
}

/// Is a statement that begins so a utility?
pub(crate) fn is_utility(first: &Token) -> bool {
    first_word(first).is_some()
}

/// Reads a statement from its first word on.
pub(crate) fn parse(parser: &mut Parser<'_>) -> SqlResult<UtilityStatement> {
    let name = first_word(&parser.next_token().token).unwrap_or_default();
    let asked = match name {
        "REORG" => object(parser).map(Asked::Reorg).map_err(error)?,
        "REINDEX" => object(parser).map(Asked::Reindex).map_err(error)?,
        "CHECK" => Asked::Check,
        "ESTIMATE" => estimate(parser).map_err(error)?,
        "ADVISE" => names(parser).map(|objects| Asked::Advise { objects }).map_err(error)?,
        "BACKUP" => backup(parser).map_err(error)?,
        _ => analyze(parser)?,
    };
    Ok(UtilityStatement { name, asked, options: options(parser).map_err(error)? })
}

fn analyze(parser: &mut Parser<'_>) -> SqlResult<Asked> {
    let mut is_verbose = parser.parse_keyword(Keyword::VERBOSE);
    if parser.consume_token(&Token::LParen) {
        parser.expect_keyword(Keyword::VERBOSE).and_then(|_| parser.expect_token(&Token::RParen)).map_err(error)?;
        is_verbose = true;
    }
    let tables = names(parser).map_err(error)?;
    if parser.peek_token_ref().token == Token::LParen {
        let place = parser.peek_token_ref().span.start;
        return Err(SqlError::unsupported("ANALYZE of some columns").at(place.line, place.column));
    }
    Ok(Asked::Analyze { is_verbose, tables })
}

/// Names up to the end or WITH; there may be none.
fn names(parser: &mut Parser<'_>) -> Result<Vec<ObjectName>, ParserError> {
    match &parser.peek_token_ref().token {
        Token::EOF => Ok(Vec::new()),
        Token::Word(word) if word.keyword == Keyword::WITH && word.quote_style.is_none() => Ok(Vec::new()),
        _ => parser.parse_comma_separated(|parser| parser.parse_object_name(false)),
    }
}

fn table(parser: &mut Parser<'_>) -> Result<Object, ParserError> {
    let name = parser.parse_object_name(false)?;
    let partition = if parser.parse_keyword(Keyword::PARTITION) { Some(parser.parse_identifier()?) } else { None };
    Ok(Object::Table(name, partition))
}

fn object(parser: &mut Parser<'_>) -> Result<Object, ParserError> {
    match parser.parse_one_of_keywords(&[Keyword::TABLE, Keyword::INDEX]) {
        Some(Keyword::TABLE) => table(parser),
        Some(_) => parser.parse_object_name(false).map(Object::Index),
        None => parser.expected("TABLE or INDEX", parser.peek_token()),
    }
}

fn estimate(parser: &mut Parser<'_>) -> Result<Asked, ParserError> {
    let unique = parser.parse_keyword(Keyword::UNIQUE);
    if unique || is_new_index(parser) {
        parser.expect_keyword(Keyword::INDEX)?;
        parser.expect_keyword(Keyword::ON)?;
        let table = parser.parse_object_name(false)?;
        parser.expect_token(&Token::LParen)?;
        let columns = parser.parse_comma_separated(|parser| {
            let column = parser.parse_identifier()?;
            let is_descending = parser.parse_one_of_keywords(&[Keyword::ASC, Keyword::DESC]) == Some(Keyword::DESC);
            Ok((column, if is_descending { Direction::Descending } else { Direction::Ascending }))
        })?;
        parser.expect_token(&Token::RParen)?;
        return Ok(Asked::EstimateNewIndex { table, columns, unique });
    }
    object(parser).map(Asked::Estimate)
}

/// INDEX ON?
fn is_new_index(parser: &Parser<'_>) -> bool {
    let is = |ahead, wanted| matches!(parser.peek_nth_token(ahead).token, Token::Word(word) if word.keyword == wanted && word.quote_style.is_none());
    is(0, Keyword::INDEX) && is(1, Keyword::ON)
}

fn backup(parser: &mut Parser<'_>) -> Result<Asked, ParserError> {
    let tables = match parser.parse_keyword(Keyword::TABLE) {
        true => parser.parse_comma_separated(|parser| parser.parse_object_name(false))?,
        false => Vec::new(),
    };
    parser.expect_keyword(Keyword::TO)?;
    Ok(Asked::Backup { tables, file: parser.parse_literal_string()? })
}

/// What an option is given. A word that is not quoted is one in lower case, as names are.
fn option_value(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    let token = parser.peek_token();
    Ok(match parser.parse_expr()? {
        Expr::Identifier(word) => identifier(&word),
        Expr::Value(value) if matches!(value.value, Value::Null) => return parser.expected("a value", token),
        other => text_of(&other),
    })
}

fn options(parser: &mut Parser<'_>) -> Result<Vec<Given>, ParserError> {
    if !parser.parse_keyword(Keyword::WITH) {
        return Ok(Vec::new());
    }
    parser.expect_token(&Token::LParen)?;
    let options = parser.parse_comma_separated(|parser| {
        let name = parser.parse_identifier()?;
        let value = match parser.consume_token(&Token::Eq) {
            true => option_value(parser)?,
            false => "true".to_owned(),
        };
        Ok(Given { name: name.value.to_lowercase(), value, span: name.span })
    })?;
    parser.expect_token(&Token::RParen)?;
    Ok(options)
}

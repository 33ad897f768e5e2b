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
//! ALTER TABLE table SPLIT PARTITION partition AT (value [, ...]) INTO (PARTITION name, PARTITION name)
//! ALTER TABLE table MERGE PARTITIONS partition, partition [, ...] INTO PARTITION name
//! ```

use super::options::Given;
use crate::parse::{error, identifier, word};
use crate::settings::text_of;
use crate::{SqlError, SqlResult};
use pagefold_types::Direction;
use sqlparser::ast::{Expr, Ident, ObjectName, Value};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// A utility, its names not yet looked up.
#[derive(Debug)]
pub(crate) struct UtilityStatement {
    /// The word that it begins with, or two.
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
    Split { table: ObjectName, partition: Ident, at: Vec<Expr>, into: [Ident; 2] },
    Merge { table: ObjectName, partitions: Vec<Ident>, into: Ident },
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

/// Are these the tokens of a utility?
pub(crate) fn is_utility(tokens: &[TokenWithSpan]) -> bool {
    let mut own = tokens.iter().map(|token| &token.token).filter(|token| !matches!(token, Token::Whitespace(_)));
    let Some(first) = own.next() else { return false };
    if first_word(first).is_some() {
        return true;
    }
    let is = |token: Option<&Token>, wanted: &str| token.and_then(word).is_some_and(|word| word == wanted);
    if !is(Some(first), "alter") || !is(own.next(), "table") {
        return false;
    }
    // The name, which is as long as it is.
    own.next();
    let mut verb = own.next();
    while verb == Some(&Token::Period) {
        own.next();
        verb = own.next();
    }
    let what = own.next();
    (is(verb, "split") && is(what, "partition")) || (is(verb, "merge") && is(what, "partitions"))
}

/// Reads a statement from its first word on.
pub(crate) fn parse(parser: &mut Parser<'_>) -> SqlResult<UtilityStatement> {
    let Some(name) = first_word(&parser.peek_token_ref().token) else {
        let asked = alter_table(parser).map_err(error)?;
        return Ok(UtilityStatement { name: "ALTER TABLE", asked, options: Vec::new() });
    };
    parser.next_token();
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

/// ALTER TABLE ... SPLIT PARTITION or MERGE PARTITIONS.
fn alter_table(parser: &mut Parser<'_>) -> Result<Asked, ParserError> {
    parser.expect_keywords(&[Keyword::ALTER, Keyword::TABLE])?;
    let table = parser.parse_object_name(false)?;
    // SPLIT is no word of sqlparser's.
    let is_merge = word(&parser.next_token().token).as_deref() == Some("merge");
    parser.next_token();
    if is_merge {
        let partitions = parser.parse_comma_separated(Parser::parse_identifier)?;
        parser.expect_keyword(Keyword::INTO)?;
        return Ok(Asked::Merge { table, partitions, into: named_partition(parser)? });
    }
    let partition = parser.parse_identifier()?;
    parser.expect_keyword(Keyword::AT)?;
    parser.expect_token(&Token::LParen)?;
    let at = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_token(&Token::RParen)?;
    parser.expect_keyword(Keyword::INTO)?;
    parser.expect_token(&Token::LParen)?;
    let lower = named_partition(parser)?;
    parser.expect_token(&Token::Comma)?;
    let upper = named_partition(parser)?;
    parser.expect_token(&Token::RParen)?;
    Ok(Asked::Split { table, partition, at, into: [lower, upper] })
}

/// A name, behind the word PARTITION or without it.
fn named_partition(parser: &mut Parser<'_>) -> Result<Ident, ParserError> {
    let _ = parser.parse_keyword(Keyword::PARTITION);
    parser.parse_identifier()
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

//! ALTER SEQUENCE, and ALTER TABLE ... ALTER COLUMN where it is about the sequence of a column, as they are written.

use crate::parse::{error, word};
use crate::{SqlError, SqlResult};
use sqlparser::ast::{Ident, ObjectName, SequenceOptions};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// What is altered.
#[derive(Debug)]
pub(crate) enum Altered {
    Sequence(ObjectName),
    /// The one of a column.
    Column(ObjectName, Ident),
}

/// RESTART.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restart {
    /// With the first number.
    First,
    With(i64),
}

#[derive(Debug)]
pub(crate) struct AlterSequence {
    pub(crate) altered: Altered,
    pub(crate) if_exists: bool,
    pub(crate) options: Vec<SequenceOptions>,
    pub(crate) restart: Option<Restart>,
    /// Without a column: of none.
    pub(crate) owned_by: Option<Option<ObjectName>>,
}

/// The words of a statement, `None` for what is no word.
fn words(tokens: &[TokenWithSpan]) -> Vec<Option<String>> {
    tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).map(|token| word(&token.token)).collect()
}

/// Is a statement one of these?
pub(crate) fn is_alter(tokens: &[TokenWithSpan]) -> bool {
    let words = words(tokens);
    let is = |at: usize, wanted: &str| words.get(at).is_some_and(|word| word.as_deref() == Some(wanted));
    if !is(0, "alter") {
        return false;
    }
    if is(1, "sequence") {
        return true;
    }
    let options = ["increment", "minvalue", "maxvalue", "no", "start", "cache", "cycle", "restart"];
    is(1, "table")
        && (2..words.len()).any(|at| match () {
            () if is(at, "set") => options.iter().any(|option| is(at + 1, option)),
            // A column may have that name.
            () => is(at, "restart") && !is(at - 1, "alter") && !is(at - 1, "column"),
        })
        && (2..words.len()).filter(|at| is(*at, "alter")).count() == 1
}

/// Reads a statement from its first word on.
pub(crate) fn parse(parser: &mut Parser<'_>) -> SqlResult<AlterSequence> {
    read(parser).map_err(error)?
}

fn takes(parser: &mut Parser<'_>, wanted: &str) -> bool {
    let is_there = word(&parser.peek_token_ref().token).is_some_and(|word| word == wanted);
    if is_there {
        parser.next_token();
    }
    is_there
}

fn expects(parser: &mut Parser<'_>, wanted: &str) -> Result<(), ParserError> {
    match takes(parser, wanted) {
        true => Ok(()),
        false => parser.expected(&wanted.to_uppercase(), parser.peek_token()),
    }
}

fn read(parser: &mut Parser<'_>) -> Result<SqlResult<AlterSequence>, ParserError> {
    expects(parser, "alter")?;
    let is_table = takes(parser, "table");
    if !is_table {
        expects(parser, "sequence")?;
    }
    let if_exists = takes(parser, "if");
    if if_exists {
        expects(parser, "exists")?;
    }
    if is_table {
        takes(parser, "only");
    }
    let name = parser.parse_object_name(false)?;
    let altered = match is_table {
        true => {
            expects(parser, "alter")?;
            takes(parser, "column");
            Altered::Column(name, parser.parse_identifier()?)
        }
        false => Altered::Sequence(name),
    };
    let mut alter = AlterSequence { altered, if_exists, options: Vec::new(), restart: None, owned_by: None };
    let mut count = 0;
    while !matches!(parser.peek_token_ref().token, Token::EOF) {
        if is_table && !takes(parser, "set") && word(&parser.peek_token_ref().token).as_deref() != Some("restart") {
            return parser.expected("SET or RESTART", parser.peek_token());
        }
        if let Err(refused) = option(parser, &mut alter)? {
            return Ok(Err(refused));
        }
        count += 1;
    }
    match count {
        0 => parser.expected("an option of a sequence", parser.peek_token()),
        _ => Ok(Ok(alter)),
    }
}

fn option(parser: &mut Parser<'_>, alter: &mut AlterSequence) -> Result<SqlResult<()>, ParserError> {
    let found = parser.next_token();
    let name = word(&found.token).unwrap_or_default();
    let made = match name.as_str() {
        "increment" => {
            takes(parser, "by");
            SequenceOptions::IncrementBy(parser.parse_number()?, false)
        }
        "minvalue" => SequenceOptions::MinValue(Some(parser.parse_number()?)),
        "maxvalue" => SequenceOptions::MaxValue(Some(parser.parse_number()?)),
        "start" => {
            takes(parser, "with");
            SequenceOptions::StartWith(parser.parse_number()?, false)
        }
        "cache" => SequenceOptions::Cache(parser.parse_number()?),
        "cycle" => SequenceOptions::Cycle(false),
        "no" => match word(&parser.next_token().token).as_deref() {
            Some("minvalue") => SequenceOptions::MinValue(None),
            Some("maxvalue") => SequenceOptions::MaxValue(None),
            Some("cycle") => SequenceOptions::Cycle(true),
            _ => return parser.expected("MINVALUE, MAXVALUE or CYCLE", parser.peek_token()),
        },
        "restart" => {
            let is_with = takes(parser, "with");
            let has_number = is_with || matches!(parser.peek_token_ref().token, Token::Number(..) | Token::Minus | Token::Plus);
            let number = if has_number { Some(parser.parse_number()?) } else { None };
            alter.restart = match number.map(|number| crate::define::sequence::number(&number)) {
                None => Some(Restart::First),
                Some(Ok(number)) => Some(Restart::With(number)),
                Some(Err(refused)) => return Ok(Err(refused)),
            };
            return Ok(Ok(()));
        }
        "owned" => {
            expects(parser, "by")?;
            alter.owned_by = Some(if takes(parser, "none") { None } else { Some(parser.parse_object_name(false)?) });
            return Ok(Ok(()));
        }
        "rename" | "owner" | "set" | "as" => {
            return Ok(Err(SqlError::unsupported(format!("ALTER SEQUENCE ... {}", name.to_uppercase()))));
        }
        _ => return parser.expected("an option of a sequence", found),
    };
    alter.options.push(made);
    Ok(Ok(()))
}

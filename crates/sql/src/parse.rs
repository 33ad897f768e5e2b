//! Text to statements, by sqlparser with PostgreSQL's dialect (`dialect`).

use crate::copy::statement::{self as copy, CopyStatement};
use crate::cursor::{self, CursorStatement};
use crate::dialect::{Postgres, join_distinct, mark_lists};
use crate::keywords::is_keyword;
use crate::sequences::statement::{self as sequence, AlterSequence};
use crate::utility::statement::{self as utility, UtilityStatement};
use crate::{SqlError, SqlResult};
use sqlparser::ast::{Expr, Ident, ObjectName, ObjectNamePart, Query, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer};

/// Statements within each other: bounds the stack.
const DEPTH_MAX: usize = 100;
/// Longer texts are refused: each token takes some hundred bytes of memory.
pub(crate) const TEXT_BYTES_MAX: usize = 64 << 20;

/// Operators one behind the other: what is parsed of them is a tree as deep as they are many.
const OPERATORS_MAX: u32 = 4_000;
/// Queries with UNION and the like between them, of which each takes as much of the stack as several operators. As many as SQLite takes.
const QUERIES_MAX: u32 = 500;

fn nul() -> SqlError {
    SqlError::new("22021", "invalid byte sequence for encoding \"UTF8\": 0x00")
}

fn tokens(text: &str) -> SqlResult<Vec<TokenWithSpan>> {
    if text.contains('\0') {
        return Err(nul());
    }
    if text.len() > TEXT_BYTES_MAX {
        return Err(SqlError::new("54000", format!("a text of {} bytes; at most {TEXT_BYTES_MAX} are read at once", text.len())));
    }
    let tokens = Tokenizer::new(&Postgres, text).tokenize_with_location();
    let tokens = tokens.map_err(|e| error(ParserError::from(e)))?;
    refuse_junk(&tokens)?;
    let tokens = join_literals(tokens)?.into_iter().map(printable).collect::<SqlResult<Vec<TokenWithSpan>>>()?;
    Ok(mark_lists(join_distinct(tokens.into_iter().flat_map(signs_apart).collect())))
}

/// Literals one behind the other are one, if there is a new line between them; else they are an error (SQL-92, 5.3).
fn join_literals(tokens: Vec<TokenWithSpan>) -> SqlResult<Vec<TokenWithSpan>> {
    let mut joined: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        if let Token::SingleQuotedString(more) = &token.token {
            let is_blank = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
            let before = joined.iter().rposition(|token| !is_blank(token));
            if let Some(before) = before
                && let TokenWithSpan { token: text, span } = &mut joined[before]
                && let Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) | Token::NationalStringLiteral(text) = text
            {
                if span.end.line == token.span.start.line {
                    let found = SqlError::syntax(format!("syntax error at or near \"'{more}'\""));
                    return Err(found.at(token.span.start.line, token.span.start.column));
                }
                text.push_str(more);
                span.end = token.span.end;
                joined.truncate(before + 1);
                continue;
            }
        }
        joined.push(token);
    }
    Ok(joined)
}

/// What is kept as text (defaults, conditions, views) is printed by sqlparser, which takes two quotes side by side, and one behind a backslash, for escaped already: what it prints would be read as another text.
/// As `E'...'` a literal comes back as it was. For names there is no other form.
fn printable(token: TokenWithSpan) -> SqlResult<TokenWithSpan> {
    let looks_escaped = |text: &str, quote: char| {
        let mut before = '\0';
        text.chars().any(|c| {
            let found = c == quote && (before == quote || before == '\\');
            before = c;
            found
        })
    };
    match token.token {
        Token::SingleQuotedString(text) if looks_escaped(&text, '\'') => {
            Ok(TokenWithSpan { token: Token::EscapedStringLiteral(text), span: token.span })
        }
        Token::Word(word) if word.quote_style == Some('"') && looks_escaped(&word.value, '"') => {
            let found = SqlError::new("42602", "a name with two double quotes side by side, or one behind a backslash, is not supported");
            Err(found.at(token.span.start.line, token.span.start.column))
        }
        _ => Ok(token),
    }
}

/// A number ends where no letter follows: `1a` is none, nor a number with a name.
fn refuse_junk(tokens: &[TokenWithSpan]) -> SqlResult<()> {
    for pair in tokens.windows(2) {
        let junk = match (&pair[0].token, &pair[1].token) {
            (Token::Number(number, true), _) => format!("{number}L"),
            (Token::Number(number, false), Token::Word(word)) if word.quote_style.is_none() && pair[0].span.end == pair[1].span.start => {
                format!("{number}{}", word.value)
            }
            _ => continue,
        };
        let found = SqlError::syntax(format!("trailing junk after numeric literal at or near \"{junk}\""));
        return Err(found.at(pair[0].span.start.line, pair[0].span.start.column));
    }
    Ok(())
}

/// `a>-1` has two operators: one of several characters ends with a sign only if it has a character that no other operator has (PostgreSQL, "Operators").
fn signs_apart(token: TokenWithSpan) -> Vec<TokenWithSpan> {
    let Token::CustomBinaryOperator(operator) = &token.token else { return vec![token] };
    let sign = match operator.chars().last() {
        Some('-') => Token::Minus,
        Some('+') => Token::Plus,
        _ => return vec![token],
    };
    let first = match &operator[..operator.len() - 1] {
        "=" => Token::Eq,
        "<" => Token::Lt,
        ">" => Token::Gt,
        "<=" => Token::LtEq,
        ">=" => Token::GtEq,
        "<>" => Token::Neq,
        "<<" => Token::ShiftLeft,
        ">>" => Token::ShiftRight,
        "*" => Token::Mul,
        "/" => Token::Div,
        "+" => Token::Plus,
        "-" => Token::Minus,
        _ => return vec![token],
    };
    vec![TokenWithSpan { token: first, span: token.span }, TokenWithSpan { token: sign, span: token.span }]
}

/// A statement, with its text.
pub(crate) struct Parsed {
    pub(crate) text: String,
    pub(crate) syntax: Syntax,
}

/// What a statement says.
#[derive(Debug)]
pub(crate) enum Syntax {
    Sql(Box<Statement>),
    Copy(Box<CopyStatement>),
    Cursor(CursorStatement),
    Utility(Box<UtilityStatement>),
    Sequence(Box<AlterSequence>),
}

/// All statements of a text. The mark of its encoding, with which some editors begin a file, is no part of it.
pub(crate) fn parse(text: &str) -> SqlResult<Vec<Parsed>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut places = Places::of(text);
    let mut parsed = Vec::new();
    for mut tokens in tokens(text)?.split(|token| token.token == Token::SemiColon).map(<[TokenWithSpan]>::to_vec) {
        crate::forms::rewrite(&mut tokens)?;
        crate::rewrite::rewrite(&mut tokens);
        let mut own = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
        let Some(first) = own.next() else { continue };
        let (is_copy, is_cursor, is_utility) = (copy::is_copy(&first.token), cursor::is_cursor(&first.token), utility::is_utility(&tokens));
        let is_sequence = sequence::is_alter(&tokens);
        let last = own.next_back().unwrap_or(first);
        let end = last.span.end;
        let text = text[places.at(first.span.start)..places.at(end)].to_owned();
        number_parameters(&mut tokens);
        crate::exclusion::marked(&mut tokens);
        crate::partitioning::marked(&mut tokens)?;
        check_chains(&tokens)?;
        let mut parser = parser(tokens);
        let syntax = match () {
            () if is_copy => copy::parse(&mut parser).map(|copy| Syntax::Copy(Box::new(copy))),
            () if is_cursor => cursor::parse(&mut parser).map(Syntax::Cursor),
            () if is_sequence => sequence::parse(&mut parser).map(|alter| Syntax::Sequence(Box::new(alter))),
            () if is_utility => utility::parse(&mut parser).map(|utility| Syntax::Utility(Box::new(utility))),
            () => parser.parse_statement().map(|node| Syntax::Sql(Box::new(node))).map_err(error),
        };
        let syntax = syntax.map_err(|error| at_end(error, end))?;
        let rest = parser.next_token();
        if rest.token != Token::EOF {
            let found = SqlError::syntax(format!("syntax error: Expected: end of statement, found: {}", rest.token));
            return Err(found.at(rest.span.start.line, rest.span.start.column));
        }
        parsed.push(Parsed { text, syntax });
    }
    Ok(parsed)
}

/// The one query of a text of the catalog, or of one that is made.
pub(crate) fn parse_query(text: &str) -> SqlResult<Box<Query>> {
    if let Some(Parsed { syntax: Syntax::Sql(node), .. }) = parse(text)?.pop()
        && let Statement::Query(query) = *node
    {
        return Ok(query);
    }
    Err(SqlError::new("XX001", "a query that is none"))
}

fn parser(tokens: Vec<TokenWithSpan>) -> Parser<'static> {
    Parser::new(&Postgres).with_recursion_limit(DEPTH_MAX).with_tokens_with_locations(tokens)
}

/// `?` stands for the parameters one after the other, as SQLite has it.
fn number_parameters(tokens: &mut [TokenWithSpan]) {
    let mut number = 0;
    for token in tokens {
        if token.token == Token::Question {
            number += 1;
            token.token = Token::Placeholder(format!("${number}"));
        }
    }
}

/// How deep the tree of what stands within one pair of parentheses is at most, in operators.
#[derive(Default)]
struct Chain {
    /// Since the last comma: what stands before it is a tree of its own.
    operators: u32,
    /// The deepest of the parentheses since the last comma.
    within: u32,
    /// The deepest of what ended with a comma.
    ended: u32,
    /// Set operations: commas do not end them.
    queries: u32,
}

impl Chain {
    fn depth(&self) -> u32 {
        self.ended.max(self.operators + self.within) + self.queries
    }
}

/// Refuses what would be a tree that is too deep.
fn check_chains(tokens: &[TokenWithSpan]) -> SqlResult<()> {
    let (mut outer, mut chain) = (Vec::new(), Chain::default());
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket => outer.push(std::mem::take(&mut chain)),
            Token::RParen | Token::RBracket => {
                let closed = std::mem::replace(&mut chain, outer.pop().unwrap_or_default());
                chain.within = chain.within.max(closed.depth());
                // As those of `a[1][2]`.
                chain.operators += u32::from(token.token == Token::RBracket);
            }
            Token::Comma => {
                chain = Chain { ended: chain.ended.max(chain.operators + chain.within), queries: chain.queries, ..Chain::default() }
            }
            Token::Word(word) if matches!(word.keyword, Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT) => {
                chain.queries += OPERATORS_MAX / QUERIES_MAX;
            }
            Token::Word(word) if !is_operator(word.keyword) => {}
            Token::Whitespace(_) | Token::Number(..) | Token::SingleQuotedString(_) | Token::Period | Token::EOF => {}
            _ => chain.operators += 1,
        }
        if chain.depth() > OPERATORS_MAX {
            let error = SqlError::new(
                "54001",
                format!("more than {OPERATORS_MAX} operators, or {QUERIES_MAX} queries of a set operation, one behind the other"),
            );
            return Err(error.at(token.span.start.line, token.span.start.column));
        }
    }
    Ok(())
}

/// Words that make a tree of what stands before them.
fn is_operator(word: Keyword) -> bool {
    use Keyword as K;
    const COMPARING: [Keyword; 9] = [K::BETWEEN, K::ILIKE, K::IN, K::IS, K::LIKE, K::NOTNULL, K::OPERATOR, K::OVERLAPS, K::SIMILAR];
    const OTHER: [Keyword; 9] = [K::AND, K::AT, K::COLLATE, K::JOIN, K::MATCH_RECOGNIZE, K::NOT, K::OR, K::PIVOT, K::UNPIVOT];
    COMPARING.contains(&word) || OTHER.contains(&word)
}

/// An error at the end of a text has no place of its own.
fn at_end(error: SqlError, end: Location) -> SqlError {
    error.at(end.line, end.column)
}

/// Where places of a text are, in bytes.
struct Places<'t> {
    text: &'t str,
    /// Where lines begin.
    lines: Vec<usize>,
    /// The last place that was asked for, and its byte: what is asked for next stands behind it.
    last: (Location, usize),
}

impl<'t> Places<'t> {
    fn of(text: &'t str) -> Places<'t> {
        let mut lines = vec![0];
        lines.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        Places { text, lines, last: (Location::new(1, 1), 0) }
    }

    /// The byte at a place, which is told in lines and characters.
    fn at(&mut self, place: Location) -> usize {
        let index = |number: u64| usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
        let (known, start) = match self.last {
            (last, byte) if last.line == place.line && last.column <= place.column => (last.column, byte),
            _ => (1, self.lines.get(index(place.line)).copied().unwrap_or(self.text.len())),
        };
        let rest = &self.text[start..];
        let characters = usize::try_from(place.column.saturating_sub(known)).unwrap_or(usize::MAX);
        let found = rest.char_indices().nth(characters).map_or(self.text.len(), |(at, _)| start + at);
        self.last = (place, found);
        found
    }
}

/// A text with others in the place of single characters, at places that ascend.
pub(crate) fn replaced(text: &str, places: &[(Location, String)]) -> String {
    let (mut found, mut all, mut done) = (Places::of(text), String::with_capacity(text.len()), 0);
    for (place, instead) in places {
        let at = found.at(*place);
        all.push_str(&text[done..at]);
        all.push_str(instead);
        done = at + text[at..].chars().next().map_or(0, char::len_utf8);
    }
    all.push_str(&text[done..]);
    all
}

/// An expression as the catalog has it: a default, a condition.
pub(crate) fn parse_expression(text: &str) -> SqlResult<Expr> {
    let tokens = tokens(text)?;
    check_chains(&tokens)?;
    parser(tokens).parse_expr().map_err(error)
}

/// The name of an object as it is written within a text: that of NEXTVAL.
pub(crate) fn parse_name(text: &str) -> SqlResult<String> {
    let mut parser = parser(tokens(text)?);
    let name = parser.parse_object_name(false).map_err(error)?;
    match parser.next_token().token {
        Token::EOF => object_name(&name),
        other => Err(SqlError::syntax(format!("syntax error: Expected: end of a name, found: {other}"))),
    }
}

/// The name of an object as it can be written: each part in quotes that would be another without them.
#[must_use]
pub fn quoted_where_needed(name: &str) -> String {
    name.split('.').map(quoted_part).collect::<Vec<_>>().join(".")
}

/// A name without a schema as it can be written: a point is a character of it.
pub(crate) fn quoted_part(part: &str) -> String {
    let is_plain = part.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !is_keyword(part);
    if is_plain { part.to_owned() } else { format!("\"{}\"", part.replace('"', "\"\"")) }
}

/// The name of a relation or column as it can be written, whatever it is: in quotes where it would be read as something else.
pub(crate) fn quoted_ident(name: &str) -> String {
    let written = quoted_part(name);
    let is_read_so = || matches!(parse_expression(name), Ok(Expr::Identifier(_)));
    if written != name || is_read_so() { written } else { format!("\"{name}\"") }
}

/// sqlparser tells the place at the end of its message.
pub(crate) fn error(error: ParserError) -> SqlError {
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

/// A word that is not quoted, in lower case.
pub(crate) fn word(token: &Token) -> Option<String> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_lowercase()),
        _ => None,
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

/// The name of a relation without its schema.
pub(crate) fn short_name(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(_, name)| name)
}

/// The name of an object as the engine has it: those of schema `public` alone, others behind the name of their schema and a point. A temporary table of the session comes first.
pub(crate) fn object_name(name: &ObjectName) -> SqlResult<String> {
    crate::temporary::resolved(&own_parts(name)?)
}

/// The name of an object that is to be made.
pub(crate) fn new_object_name(name: &ObjectName) -> SqlResult<String> {
    crate::temporary::resolved_new(&own_parts(name)?)
}

fn own_parts(name: &ObjectName) -> SqlResult<Vec<String>> {
    let parts: Vec<String> = parts(name)?.into_iter().map(identifier).collect();
    // A schema and a name are kept with a point between them.
    match parts.iter().find(|part| part.contains('.')) {
        Some(part) => Err(SqlError::new("42602", format!("the name \"{part}\" has a point in it"))),
        None => Ok(parts),
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
        let error = parse("select 1;\nselect (1;").map(drop).unwrap_err();
        assert_eq!(error.sqlstate(), "42601");
        assert_eq!(error.position().map(|(line, _)| line), Some(2), "{error}");
    }

    #[test]
    fn statements_of_one_line_have_their_texts() {
        let text = "select 'é' ;\tselect 2;".repeat(50_000);
        let parsed = parse(&text).unwrap();
        assert_eq!(parsed.len(), 100_000);
        assert!(parsed.chunks(2).all(|pair| pair[0].text == "select 'é'" && pair[1].text == "select 2"));
    }

    #[test]
    fn deep_texts_are_refused() {
        let deep = format!("select {}1{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(parse(&deep).is_err());
    }

    #[test]
    fn statements_have_their_texts() {
        let texts: Vec<String> =
            parse(" select 'ä;' ;\n\n-- nothing\nselect ?, ?; ;").unwrap().into_iter().map(|parsed| parsed.text).collect();
        assert_eq!(texts, ["select 'ä;'", "select ?, ?"]);
        let chain = format!("select 1{}", " + 1".repeat(10_000));
        assert_eq!(parse(&chain).map(drop).unwrap_err().sqlstate(), "54001");
        // What is not within each other may be long.
        let rows = vec!["(-1, 2 + 3)"; 20_000].join(", ");
        assert_eq!(parse(&format!("insert into t values {rows}")).unwrap().len(), 1);
    }

    #[test]
    fn what_is_no_part_of_a_statement() {
        assert_eq!(parse("\u{feff}select 1").unwrap()[0].text, "select 1");
        for text in ["select 'a\0b'", "select 1 \0"] {
            assert_eq!(parse(text).map(drop).unwrap_err().sqlstate(), "22021", "{text:?}");
        }
        assert!(matches!(&parse(" abort").unwrap()[0].syntax, Syntax::Sql(node) if matches!(**node, Statement::Rollback { .. })));
        assert!(parse("\"abort\"").is_err());
    }

    #[test]
    fn the_nearest_name() {
        assert_eq!(nearest("custmer", ["customer", "orders"].into_iter()), Some("customer"));
        assert_eq!(nearest("xyz", ["customer", "orders"].into_iter()), None);
    }
}

//! What PostgreSQL's syntax, and so sqlparser, does not have of partitions:
//!
//! ```text
//! CREATE TABLE ... PARTITION BY RANGE (columns) (PART, ...) [WITH (...)] [AS ...]
//! ALTER TABLE t ADD PARTITION PART
//! ALTER TABLE t ROTATE PARTITION PART
//! ALTER TABLE t DROP PARTITION name
//! ALTER TABLE t EXCHANGE PARTITION name WITH TABLE other
//! ALTER TABLE t ATTACH PARTITION name FOR VALUES FROM (values) TO (values)
//! ALTER TABLE t DETACH PARTITION name
//!
//! PART: PARTITION name VALUES LESS THAN (values) [WITH (compress = ..., page_size = ...)]     (after ADD and ROTATE the word PARTITION stands once)
//! ```
//!
//! Each becomes an expression where sqlparser takes one: a call of a function whose name no statement can write.
//!
//! Invariant: tokens keep their places in the text, so that errors of what is between them show where it stands.

use crate::bind::NAMELESS;
use crate::{SqlError, SqlResult};
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Word};

/// What one of these expressions says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A partition: name, limit, perhaps storage parameters.
    Part,
    /// The same, and the first one goes.
    Rotate,
    /// Name of the partition, and of the table that takes its place.
    Exchange,
    /// Name of the table that becomes a partition, and its bounds; without these it is to be the default one.
    Attach,
    /// Name of the partition that becomes a table.
    Detach,
}

impl Mark {
    const ALL: [Mark; 5] = [Mark::Part, Mark::Rotate, Mark::Exchange, Mark::Attach, Mark::Detach];

    fn name(self) -> String {
        let word = match self {
            Mark::Part => "part",
            Mark::Rotate => "rotate",
            Mark::Exchange => "exchange",
            Mark::Attach => "attach",
            Mark::Detach => "detach",
        };
        format!("{NAMELESS}{word}")
    }

    /// What an expression says, with its arguments.
    pub(crate) fn of(expr: &ast::Expr) -> Option<(Mark, Vec<&ast::Expr>)> {
        let ast::Expr::Function(function) = expr else { return None };
        let [ast::ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return None };
        let mark = Mark::ALL.into_iter().find(|mark| mark.name() == name.value)?;
        Some((mark, arguments(function)))
    }
}

/// The plain arguments of a call.
pub(crate) fn arguments(function: &ast::Function) -> Vec<&ast::Expr> {
    let ast::FunctionArguments::List(list) = &function.args else { return Vec::new() };
    let plain = |argument| match argument {
        &ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ref expr)) => Some(expr),
        _ => None,
    };
    list.args.iter().filter_map(plain).collect()
}

/// Tokens that mean something, one after the other.
struct Reader<'t> {
    tokens: &'t [TokenWithSpan],
    at: usize,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Option<&'t TokenWithSpan> {
        let found = self.tokens.get(self.at);
        self.at += 1;
        found
    }

    fn is(&self, ahead: usize, word: &str) -> bool {
        self.tokens.get(self.at + ahead).is_some_and(|token| is_word(token, word))
    }

    /// Are these words next? They are taken then.
    fn takes(&mut self, words: &[&str]) -> bool {
        let are = words.iter().enumerate().all(|(ahead, word)| self.is(ahead, word));
        if are {
            self.at += words.len();
        }
        are
    }

    fn takes_create_table(&mut self) -> bool {
        self.takes(&["CREATE"]) && {
            while ["GLOBAL", "LOCAL", "TEMP", "TEMPORARY"].iter().any(|word| self.takes(&[word])) {}
            self.takes(&["TABLE"])
        }
    }

    fn expect(&mut self, words: &[&str]) -> SqlResult<()> {
        if self.takes(words) { Ok(()) } else { Err(self.expected(&words.join(" "))) }
    }

    /// The next token, or the last one, is not what it is to be.
    fn expected(&self, what: &str) -> SqlError {
        let found = self.tokens.get(self.at).filter(|token| token.token != Token::EOF);
        let error = SqlError::syntax(format!(
            "syntax error: Expected: {what}, found: {}",
            found.map_or("the end".into(), |found| found.to_string())
        ));
        match found.or(self.tokens.last()) {
            Some(token) => error.at(token.span.start.line, token.span.start.column),
            None => error,
        }
    }

    /// What stands in parentheses, with these.
    fn parentheses(&mut self) -> SqlResult<&'t [TokenWithSpan]> {
        let begin = self.at;
        let mut depth = 0_usize;
        if self.tokens.get(begin).is_none_or(|token| token.token != Token::LParen) {
            return Err(self.expected("("));
        }
        while let Some(token) = self.next() {
            match token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Ok(&self.tokens[begin..self.at]);
            }
        }
        self.at = self.tokens.len();
        Err(self.expected(")"))
    }

    /// A name. It is quoted, so that no word means something else.
    fn name(&mut self) -> SqlResult<TokenWithSpan> {
        match self.tokens.get(self.at).map(|token| (&token.token, token.span)) {
            Some((Token::Word(word), span)) => {
                self.at += 1;
                let value = if word.quote_style.is_some() { word.value.clone() } else { word.value.to_lowercase() };
                Ok(TokenWithSpan { token: quoted(value), span })
            }
            _ => Err(self.expected("the name of a partition")),
        }
    }

    /// The name of a table, with its schema if that is said.
    fn relation(&mut self, made: &mut Vec<TokenWithSpan>) -> SqlResult<()> {
        made.push(self.name()?);
        while self.tokens.get(self.at).is_some_and(|token| token.token == Token::Period) {
            made.extend(self.next().cloned());
            made.push(self.name()?);
        }
        Ok(())
    }

    /// The table that becomes a partition, and its bounds, as a call.
    fn attach(&mut self, span: Span, made: &mut Vec<TokenWithSpan>) -> SqlResult<()> {
        begin_call(Mark::Attach, span, made);
        self.relation(made)?;
        if !self.takes(&["DEFAULT"]) {
            self.expect(&["FOR", "VALUES"])?;
            if self.is(0, "IN") || self.is(0, "WITH") {
                return Err(not_of_ranges());
            }
            for word in ["FROM", "TO"] {
                self.expect(&[word])?;
                made.push(TokenWithSpan { token: Token::Comma, span });
                made.extend_from_slice(self.parentheses()?);
            }
        }
        made.push(TokenWithSpan { token: Token::RParen, span });
        Ok(())
    }

    /// Name, limit and storage parameters of a partition, as a call.
    fn part(&mut self, mark: Mark, made: &mut Vec<TokenWithSpan>) -> SqlResult<()> {
        let name = self.name()?;
        let span = name.span;
        self.expect(&["VALUES", "LESS", "THAN"])?;
        begin_call(mark, span, made);
        made.extend([name, TokenWithSpan { token: Token::Comma, span }]);
        if self.is(0, "MAXVALUE") {
            made.push(TokenWithSpan { token: Token::LParen, span });
            made.extend(self.next().cloned());
            made.push(TokenWithSpan { token: Token::RParen, span });
        } else {
            made.extend_from_slice(self.parentheses()?);
        }
        if self.takes(&["WITH"]) {
            made.push(TokenWithSpan { token: Token::Comma, span });
            made.extend_from_slice(self.parentheses()?);
        }
        made.push(TokenWithSpan { token: Token::RParen, span });
        Ok(())
    }
}

/// Bounds of a partition by lists or hashes.
pub(crate) fn not_of_ranges() -> SqlError {
    SqlError::new("42P16", "invalid bound specification for a range partition").with_hint("FOR VALUES FROM (...) TO (...)")
}

fn is_word(token: &TokenWithSpan, word: &str) -> bool {
    matches!(&token.token, Token::Word(own) if own.quote_style.is_none() && own.value.eq_ignore_ascii_case(word))
}

fn quoted(value: String) -> Token {
    Token::Word(Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword })
}

fn begin_call(mark: Mark, span: Span, made: &mut Vec<TokenWithSpan>) {
    made.extend([TokenWithSpan { token: quoted(mark.name()), span }, TokenWithSpan { token: Token::LParen, span }]);
}

/// Makes expressions of what a statement says of partitions.
///
/// # Errors
/// 42601 where that is begun and is not as it is to be.
pub(crate) fn marked(tokens: &mut Vec<TokenWithSpan>) -> SqlResult<()> {
    if !tokens.iter().any(|token| is_word(token, "PARTITION")) {
        return Ok(());
    }
    let own: Vec<TokenWithSpan> =
        tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF)).cloned().collect();
    let mut reader = Reader { tokens: &own, at: 0 };
    let made = match () {
        () if reader.takes_create_table() => create_table(&mut reader)?,
        () if reader.takes(&["ALTER", "TABLE"]) => alter_table(&mut reader)?,
        () => None,
    };
    if let Some(made) = made {
        *tokens = made;
    }
    Ok(())
}

/// PARTITION BY goes behind the storage parameters, as sqlparser has it, and the parts are arguments of RANGE.
fn create_table(reader: &mut Reader<'_>) -> SqlResult<Option<Vec<TokenWithSpan>>> {
    // Behind AS there is a query.
    while reader.at < reader.tokens.len()
        && !reader.is(0, "AS")
        && !(reader.is(0, "PARTITION") && reader.is(1, "BY") && reader.is(2, "RANGE"))
    {
        match reader.tokens[reader.at].token {
            // What stands in parentheses is of columns.
            Token::LParen => _ = reader.parentheses()?,
            _ => reader.at += 1,
        }
    }
    let begin = reader.at;
    if !reader.takes(&["PARTITION", "BY", "RANGE"]) {
        return Ok(None);
    }
    let mut range = reader.tokens[begin..reader.at].to_vec();
    let (close, columns) = reader.parentheses()?.split_last().map_or((None, &[][..]), |(close, columns)| (Some(close), columns));
    range.extend_from_slice(columns);
    if reader.tokens.get(reader.at).is_some_and(|token| token.token == Token::LParen) {
        loop {
            // The parenthesis, or the comma.
            reader.at += 1;
            let span = reader.tokens.get(reader.at).map_or_else(Span::empty, |token| token.span);
            range.push(TokenWithSpan { token: Token::Comma, span });
            reader.expect(&["PARTITION"])?;
            reader.part(Mark::Part, &mut range)?;
            match reader.tokens.get(reader.at).map(|token| &token.token) {
                Some(Token::Comma) => {}
                Some(Token::RParen) => break,
                _ => return Err(reader.expected(", or )")),
            }
        }
        reader.at += 1;
    }
    range.extend(close.cloned());
    let mut made = reader.tokens[..begin].to_vec();
    let behind = reader.at;
    while reader.at < reader.tokens.len() && !reader.is(0, "AS") && !(reader.is(0, "ON") && reader.is(1, "COMMIT")) {
        match reader.tokens[reader.at].token {
            Token::LParen => _ = reader.parentheses()?,
            _ => reader.at += 1,
        }
    }
    made.extend_from_slice(&reader.tokens[behind..reader.at]);
    made.extend(range);
    made.extend_from_slice(&reader.tokens[reader.at..]);
    Ok(Some(made))
}

/// What is not of partitions stays.
fn alter_table(reader: &mut Reader<'_>) -> SqlResult<Option<Vec<TokenWithSpan>>> {
    let verbs = ["ADD", "DROP", "ROTATE", "EXCHANGE", "ATTACH", "DETACH"];
    // Behind the name, which is as long as it is.
    reader.takes(&["IF", "EXISTS"]);
    reader.takes(&["ONLY"]);
    reader.at += 1;
    while reader.tokens.get(reader.at).is_some_and(|token| token.token == Token::Period) {
        reader.at += 2;
    }
    let Some(verb) = verbs.into_iter().find(|verb| reader.is(0, verb) && reader.is(1, "PARTITION")) else { return Ok(None) };
    let begin = reader.at;
    reader.at += 2;
    // `DROP PARTITION (...)` and the like are left to sqlparser.
    if reader.tokens.get(reader.at).is_some_and(|token| token.token == Token::LParen) {
        return Ok(None);
    }
    let word = |word: &str| TokenWithSpan { token: Token::make_keyword(word), span: reader.tokens[begin].span };
    let mut made = reader.tokens[..begin].to_vec();
    made.extend([word(if verb == "DROP" { "DROP" } else { "ADD" }), word("PARTITION")]);
    let span = reader.tokens[begin].span;
    made.push(TokenWithSpan { token: Token::LParen, span });
    match verb {
        "DROP" => made.push(reader.name()?),
        "EXCHANGE" => {
            begin_call(Mark::Exchange, span, &mut made);
            made.extend([reader.name()?, TokenWithSpan { token: Token::Comma, span }]);
            reader.expect(&["WITH", "TABLE"])?;
            made.extend_from_slice(&reader.tokens[reader.at.min(reader.tokens.len())..]);
            reader.at = reader.tokens.len();
            made.push(TokenWithSpan { token: Token::RParen, span });
        }
        "ATTACH" => reader.attach(span, &mut made)?,
        "DETACH" => {
            begin_call(Mark::Detach, span, &mut made);
            reader.relation(&mut made)?;
            if reader.is(0, "CONCURRENTLY") || reader.is(0, "FINALIZE") {
                let hint = "DETACH PARTITION alone takes moments: no row is written.";
                return Err(SqlError::unsupported("DETACH PARTITION ... CONCURRENTLY and FINALIZE").with_hint(hint));
            }
            made.push(TokenWithSpan { token: Token::RParen, span });
        }
        "ROTATE" => reader.part(Mark::Rotate, &mut made)?,
        _ => reader.part(Mark::Part, &mut made)?,
    }
    if reader.at < reader.tokens.len() {
        return Err(reader.expected("end of statement"));
    }
    made.push(TokenWithSpan { token: Token::RParen, span });
    Ok(Some(made))
}

//! Tokens to a tree of names and literals.

use super::PredicateError;
use super::condition::{DEPTH_MAX, Expr};
use super::operand::{Atom, Placed};
use super::token::{Kind, Token, tokens};
use crate::{DataType, Value};

/// The longest text of a condition, in bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

const KEYWORDS: [&str; 11] = ["and", "or", "not", "is", "null", "between", "in", "like", "true", "false", "exists"];

fn error<T>(position: usize, message: impl Into<String>) -> Result<T, PredicateError> {
    Err(PredicateError { position: Some(position), message: message.into() })
}

impl Parser {
    fn peek(&self) -> &Token {
        // The last token is End, and nobody steps over it.
        &self.tokens[self.at]
    }

    fn next(&mut self) -> Token {
        let token = self.tokens[self.at].clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.peek().is_word(word);
        if found {
            self.at += 1;
        }
        found
    }

    fn expect(&mut self, kind: &Kind, what: &str) -> Result<(), PredicateError> {
        let token = self.next();
        if token.kind == *kind { Ok(()) } else { error(token.position, format!("expected {what}{}", found(&token))) }
    }

    fn or(&mut self) -> Result<Expr, PredicateError> {
        let mut terms = vec![self.and()?];
        while self.take_word("or") {
            terms.push(self.and()?);
        }
        Ok(Expr::or(terms))
    }

    fn and(&mut self) -> Result<Expr, PredicateError> {
        let mut terms = vec![self.not()?];
        while self.take_word("and") {
            terms.push(self.not()?);
        }
        Ok(Expr::and(terms))
    }

    fn not(&mut self) -> Result<Expr, PredicateError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return error(self.peek().position, format!("more than {DEPTH_MAX} levels of parentheses and not"));
        }
        let expr = if self.take_word("not") {
            Expr::Not(Box::new(self.not()?))
        } else if self.peek().kind == Kind::Open {
            self.at += 1;
            let inner = self.or()?;
            self.expect(&Kind::Close, "a closing parenthesis")?;
            inner
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn test(&mut self) -> Result<Expr, PredicateError> {
        let left = self.operand()?;
        if let Kind::Comparison(comparison) = self.peek().kind {
            self.at += 1;
            let right = self.operand()?;
            return Ok(Expr::Compare { left, comparison, right });
        }
        if self.take_word("is") {
            let negated = self.take_word("not");
            if !self.take_word("null") {
                return error(self.peek().position, format!("expected null{}", found(self.peek())));
            }
            return Ok(negate_if(negated, Expr::IsNull { column: left }));
        }
        let before = self.at;
        let negated = self.take_word("not");
        let expr = if self.take_word("between") {
            let low = self.operand()?;
            if !self.take_word("and") {
                return error(self.peek().position, format!("expected and, as in \"between 1 and 5\"{}", found(self.peek())));
            }
            Expr::Between { column: left, low, high: self.operand()? }
        } else if self.take_word("in") {
            self.expect(&Kind::Open, "a list in parentheses")?;
            let mut values = vec![self.operand()?];
            while self.peek().kind == Kind::Comma {
                self.at += 1;
                values.push(self.operand()?);
            }
            self.expect(&Kind::Close, "a comma or a closing parenthesis")?;
            Expr::In { column: left, values }
        } else if self.take_word("like") {
            let pattern = self.operand()?;
            let escape = if self.take_word("escape") { Some(self.operand()?) } else { None };
            Expr::Like { column: left, pattern, escape }
        } else if negated {
            self.at = before;
            return error(self.peek().position, "expected an operator behind the column, or between, in or like behind not");
        } else {
            match left.atom {
                Atom::Boolean(true) => Expr::And(Vec::new()),
                Atom::Boolean(false) => Expr::Or(Vec::new()),
                _ => Expr::Alone(left),
            }
        };
        Ok(negate_if(negated, expr))
    }

    fn operand(&mut self) -> Result<Placed, PredicateError> {
        let token = self.next();
        let position = token.position;
        let quoted = matches!(token.kind, Kind::Name(_));
        let atom = match token.kind {
            Kind::Number(text) => Atom::number(text),
            Kind::Text(text) => Atom::Text(text),
            Kind::Name(name) => Atom::Column(name),
            Kind::Word(word) => match word.to_ascii_lowercase().as_str() {
                "true" => Atom::Boolean(true),
                "false" => Atom::Boolean(false),
                "null" => Atom::Null,
                "date" | "timestamp" | "time" if matches!(self.peek().kind, Kind::Text(_)) => match self.next().kind {
                    Kind::Text(text) => Atom::Text(text),
                    _ => Atom::Null,
                },
                "x" if matches!(self.peek().kind, Kind::Text(_)) => match self.next().kind {
                    Kind::Text(text) => match crate::text::parse(&format!("\\x{text}"), &DataType::Bytea) {
                        Ok(Value::Bytes(bytes)) => Atom::Bytes(bytes),
                        _ => return error(position, format!("x'{text}' is not bytes: two hexadecimal digits for each")),
                    },
                    _ => Atom::Null,
                },
                keyword if KEYWORDS.contains(&keyword) => {
                    return error(
                        position,
                        format!("expected a column or a value, found {word}; a column of that name is written `{word}`"),
                    );
                }
                _ => Atom::Column(word),
            },
            _ => return error(position, format!("expected a column or a value{}", found(&token))),
        };
        Ok(Placed { atom, position: Some(position), quoted })
    }
}

fn negate_if(negated: bool, expr: Expr) -> Expr {
    if negated { Expr::Not(Box::new(expr)) } else { expr }
}

fn found(token: &Token) -> String {
    match &token.kind {
        Kind::Word(text) | Kind::Name(text) | Kind::Number(text) => format!(", found {text}"),
        Kind::Text(text) => format!(", found the text {text:?}"),
        Kind::Comparison(_) => ", found a comparison".to_owned(),
        Kind::Open => ", found (".to_owned(),
        Kind::Close => ", found )".to_owned(),
        Kind::Comma => ", found a comma".to_owned(),
        Kind::End => "; the condition ends here".to_owned(),
    }
}

/// Reads a condition.
pub(super) fn parse(text: &str) -> Result<Expr, PredicateError> {
    if text.len() > TEXT_BYTES_MAX {
        return error(1, format!("a condition of {} bytes; at most {TEXT_BYTES_MAX} are possible", text.len()));
    }
    let mut parser = Parser { tokens: tokens(text)?, at: 0, depth: 0 };
    let expr = parser.or()?;
    let rest = parser.peek();
    if rest.kind == Kind::End { Ok(expr) } else { error(rest.position, format!("expected and, or, or the end{}", found(rest))) }
}

//! Tokens to a tree of names and literals.

use super::PredicateError;
use super::token::{Kind, Token, tokens};
use super::tree::Comparison;

/// Parentheses and NOTs inside each other: bounds the stack.
const DEPTH_MAX: usize = 100;

/// The longest text of a condition, in bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Debug)]
pub(super) enum Operand {
    Column(String),
    Number(String),
    Text(String),
    Boolean(bool),
    Null,
}

#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) operand: Operand,
    pub(super) position: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Expr {
    Compare {
        left: Placed,
        comparison: Comparison,
        right: Placed,
    },
    Between {
        column: Placed,
        low: Placed,
        high: Placed,
    },
    In {
        column: Placed,
        values: Vec<Placed>,
    },
    IsNull {
        column: Placed,
    },
    Like {
        column: Placed,
        pattern: Placed,
    },
    /// A BOOLEAN column alone
    Alone(Placed),
    Not(Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

const KEYWORDS: [&str; 11] = ["and", "or", "not", "is", "null", "between", "in", "like", "true", "false", "exists"];

fn error<T>(position: usize, message: impl Into<String>) -> Result<T, PredicateError> {
    Err(PredicateError { position, message: message.into() })
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
        Ok(if terms.len() == 1 { terms.swap_remove(0) } else { Expr::Or(terms) })
    }

    fn and(&mut self) -> Result<Expr, PredicateError> {
        let mut terms = vec![self.not()?];
        while self.take_word("and") {
            terms.push(self.not()?);
        }
        Ok(if terms.len() == 1 { terms.swap_remove(0) } else { Expr::And(terms) })
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
        let left = self.operand(true)?;
        if let Kind::Comparison(comparison) = self.peek().kind {
            self.at += 1;
            let right = self.operand(false)?;
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
            let low = self.operand(false)?;
            if !self.take_word("and") {
                return error(self.peek().position, format!("expected and, as in \"between 1 and 5\"{}", found(self.peek())));
            }
            Expr::Between { column: left, low, high: self.operand(false)? }
        } else if self.take_word("in") {
            self.expect(&Kind::Open, "a list in parentheses")?;
            let mut values = vec![self.operand(false)?];
            while self.peek().kind == Kind::Comma {
                self.at += 1;
                values.push(self.operand(false)?);
            }
            self.expect(&Kind::Close, "a comma or a closing parenthesis")?;
            Expr::In { column: left, values }
        } else if self.take_word("like") {
            Expr::Like { column: left, pattern: self.operand(false)? }
        } else if negated {
            self.at = before;
            return error(self.peek().position, "expected an operator behind the column, or between, in or like behind not");
        } else {
            Expr::Alone(left)
        };
        Ok(negate_if(negated, expr))
    }

    fn operand(&mut self, is_left: bool) -> Result<Placed, PredicateError> {
        let token = self.next();
        let position = token.position;
        let operand = match token.kind {
            Kind::Number(text) => Operand::Number(text),
            Kind::Text(text) => Operand::Text(text),
            Kind::Name(name) => Operand::Column(name),
            Kind::DoubleQuoted(text) => {
                if is_left {
                    Operand::Column(text)
                } else {
                    Operand::Text(text)
                }
            }
            Kind::Word(word) => match word.to_ascii_lowercase().as_str() {
                "true" => Operand::Boolean(true),
                "false" => Operand::Boolean(false),
                "null" => Operand::Null,
                "date" | "timestamp" | "time" if matches!(self.peek().kind, Kind::Text(_)) => match self.next().kind {
                    Kind::Text(text) => Operand::Text(text),
                    _ => Operand::Null,
                },
                keyword if KEYWORDS.contains(&keyword) => {
                    return error(
                        position,
                        format!("expected a column or a value, found {word}; a column of that name is written `{word}`"),
                    );
                }
                _ => Operand::Column(word),
            },
            _ => return error(position, format!("expected a column or a value{}", found(&token))),
        };
        Ok(Placed { operand, position })
    }
}

fn negate_if(negated: bool, expr: Expr) -> Expr {
    if negated { Expr::Not(Box::new(expr)) } else { expr }
}

fn found(token: &Token) -> String {
    match &token.kind {
        Kind::Word(text) | Kind::Name(text) | Kind::Number(text) => format!(", found {text}"),
        Kind::DoubleQuoted(text) | Kind::Text(text) => format!(", found the text {text:?}"),
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

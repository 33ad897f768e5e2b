//! A condition's text in tokens.

use super::PredicateError;
use super::tree::Comparison;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// A name or keyword, as written
    Word(String),
    /// In double quotes or backquotes: a column name
    Name(String),
    /// In single quotes
    Text(String),
    Number(String),
    Comparison(Comparison),
    Open,
    Close,
    Comma,
    End,
}

#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// In characters, from 1
    pub(super) position: usize,
}

impl Token {
    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(&self.kind, Kind::Word(w) if w.eq_ignore_ascii_case(word))
    }
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
}

impl Lexer {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let start = self.at;
        while self.peek().is_some_and(&wanted) {
            self.at += 1;
        }
        self.chars[start..self.at].iter().collect()
    }

    fn error(&self, at: usize, message: impl Into<String>) -> PredicateError {
        PredicateError { position: Some(at + 1), message: message.into() }
    }

    /// Behind an opening quote, to the closing one; a doubled quote is one of the text.
    fn quoted(&mut self, quote: char) -> Result<String, PredicateError> {
        let open = self.at - 1;
        let mut text = String::new();
        loop {
            match self.peek() {
                None => return Err(self.error(open, format!("the {quote} is not closed"))),
                Some(c) if c == quote => {
                    self.at += 1;
                    if self.peek() != Some(quote) {
                        return Ok(text);
                    }
                    text.push(quote);
                }
                Some(c) => text.push(c),
            }
            self.at += 1;
        }
    }

    fn number(&mut self) -> Result<String, PredicateError> {
        let start = self.at;
        self.at += 1;
        self.take_while(|c| c.is_ascii_alphanumeric() || c == '.');
        // The sign of an exponent.
        if matches!(self.chars[self.at - 1], 'e' | 'E') && matches!(self.peek(), Some('+' | '-')) {
            self.at += 1;
            self.take_while(|c| c.is_ascii_digit());
        }
        let text: String = self.chars[start..self.at].iter().collect();
        if text.parse::<f64>().is_err() {
            return Err(self.error(start, format!("\"{text}\" is not a number")));
        }
        Ok(text)
    }

    fn comparison(&mut self, first: char) -> Result<Kind, PredicateError> {
        self.at += 1;
        let second = self.peek();
        let (comparison, length) = match (first, second) {
            ('=', Some('=')) => (Comparison::Equal, 2),
            ('=', _) => (Comparison::Equal, 1),
            ('!', Some('=')) | ('<', Some('>')) => (Comparison::NotEqual, 2),
            ('<', Some('=')) => (Comparison::LessOrEqual, 2),
            ('<', _) => (Comparison::Less, 1),
            ('>', Some('=')) => (Comparison::GreaterOrEqual, 2),
            ('>', _) => (Comparison::Greater, 1),
            _ => return Err(self.error(self.at - 1, "\"!\" is not an operator; there are not and <>")),
        };
        self.at += length - 1;
        Ok(Kind::Comparison(comparison))
    }

    fn next(&mut self) -> Result<Token, PredicateError> {
        self.take_while(char::is_whitespace);
        let start = self.at;
        let Some(first) = self.peek() else {
            return Ok(Token { kind: Kind::End, position: start + 1 });
        };
        let kind = match first {
            '(' | ')' | ',' => {
                self.at += 1;
                [Kind::Open, Kind::Close, Kind::Comma][['(', ')', ','].iter().position(|c| *c == first).unwrap_or(0)].clone()
            }
            '\'' | '"' | '`' => {
                self.at += 1;
                let text = self.quoted(first)?;
                if first == '\'' { Kind::Text(text) } else { Kind::Name(text) }
            }
            '=' | '!' | '<' | '>' => self.comparison(first)?,
            '-' | '+' | '.' | '0'..='9' => Kind::Number(self.number()?),
            c if c.is_alphabetic() || c == '_' => Kind::Word(self.take_while(|c| c.is_alphanumeric() || c == '_' || c == '$')),
            other => return Err(self.error(start, format!("{other:?} has no meaning here"))),
        };
        Ok(Token { kind, position: start + 1 })
    }
}

/// All tokens, the last one `End`.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, PredicateError> {
    let mut lexer = Lexer { chars: text.chars().collect(), at: 0 };
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next()?;
        let end = token.kind == Kind::End;
        tokens.push(token);
        if end {
            return Ok(tokens);
        }
    }
}

//! By which columns a table is divided, and where: as text, and bound to the columns.
//!
//! | Text | Means |
//! |---|---|
//! | `day: 2024-01-01, 2024-07-01, MAXVALUE` | rows before the first day; those before the second; all others |
//! | `day: old = 2024-01-01, new = MAXVALUE` | the same with names; without them partitions are `p1`, `p2`, ... |
//! | `year, month: (2024, 7), (2025, MAXVALUE)` | rows before July 2024; all others before 2026 |
//! | `name: 'M', MAXVALUE` | text with commas, parentheses or blanks goes in single quotes |

use crate::{Error, Result};
use pagefold_engine::database::{PartitionSpec, limit_key};
use pagefold_engine::table_space::{Method, TableAttributes};
use pagefold_types::{Value, text};
use std::str::FromStr;

/// A partition that is to be made, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionText {
    /// Its name.
    pub name: Option<String>,
    /// The values that are the first behind it; `None`: above all.
    pub limit: Vec<Option<String>>,
    /// Its method, if not that of the others.
    pub method: Option<Method>,
    /// Its page size, likewise.
    pub page_bytes: Option<usize>,
}

/// A division of a table into range partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Division {
    /// Names of columns.
    pub columns: Vec<String>,
    /// The partitions, ascending.
    pub partitions: Vec<PartitionText>,
}

impl Division {
    /// The columns by number.
    pub(crate) fn columns_of(&self, attributes: &TableAttributes) -> Result<Vec<usize>> {
        let column = |name: &String| {
            let found = attributes.schema.index_of(name);
            found.map_err(|e| Error::Usage(format!("--partition-by of \"{}\": {e}", attributes.name)))
        };
        self.columns.iter().map(column).collect()
    }

    /// The partitions for a table of these columns.
    pub(crate) fn specs(&self, attributes: &TableAttributes, columns: &[usize]) -> Result<Vec<PartitionSpec>> {
        self.partitions.iter().enumerate().map(|(at, partition)| partition.spec(attributes, columns, || format!("p{}", at + 1))).collect()
    }
}

impl PartitionText {
    pub(crate) fn spec(&self, attributes: &TableAttributes, columns: &[usize], name: impl FnOnce() -> String) -> Result<PartitionSpec> {
        let mut values: Vec<Option<Value>> = Vec::with_capacity(self.limit.len());
        for (at, word) in self.limit.iter().enumerate() {
            let value = match (word, columns.get(at)) {
                (Some(word), Some(column)) => {
                    let column = &attributes.schema.columns()[*column];
                    let parsed = text::parse(word, &column.data_type);
                    Some(parsed.map_err(|e| Error::Usage(format!("limit of a partition: column \"{}\": {e}", column.name)))?)
                }
                // Too many are refused below.
                _ => None,
            };
            values.push(value);
        }
        let refs: Vec<_> = values.iter().map(|value| value.as_ref().map(Value::as_ref)).collect();
        let limit = limit_key(attributes, columns, &refs).map_err(|e| Error::Usage(e.to_string()))?;
        Ok(PartitionSpec {
            name: self.name.clone().unwrap_or_else(name),
            limit,
            method: self.method,
            page_bytes: self.page_bytes,
            ..PartitionSpec::default()
        })
    }
}

/// Words, quoted texts and punctuation.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// As it stands.
    Word(String),
    /// Out of quotes.
    Quoted(String),
    /// `,`, `(`, `)` or `=`.
    Mark(char),
}

fn tokens(text: &str) -> std::result::Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            ' ' | '\t' | '\n' => {}
            ',' | '(' | ')' | '=' => tokens.push(Token::Mark(next)),
            '\'' => {
                let mut quoted = String::new();
                loop {
                    match rest.next() {
                        Some('\'') if rest.next_if_eq(&'\'').is_some() => quoted.push('\''),
                        Some('\'') => break,
                        Some(other) => quoted.push(other),
                        None => return Err(format!("'{quoted} lacks its closing quote")),
                    }
                }
                tokens.push(Token::Quoted(quoted));
            }
            first => {
                let mut word = String::from(first);
                while let Some(more) = rest.next_if(|c| !matches!(c, ',' | '(' | ')' | '=' | '\'')) {
                    word.push(more);
                }
                tokens.push(Token::Word(word.trim_end().to_owned()));
            }
        }
    }
    Ok(tokens)
}

/// Limits, one after the other.
struct Parser(std::vec::IntoIter<Token>, Option<Token>);

impl Parser {
    fn next(&mut self) -> Option<Token> {
        std::mem::replace(&mut self.1, self.0.next())
    }

    fn value(&mut self) -> std::result::Result<Option<String>, String> {
        match self.next() {
            Some(Token::Word(word)) if word.eq_ignore_ascii_case("maxvalue") => Ok(None),
            Some(Token::Word(text) | Token::Quoted(text)) => Ok(Some(text)),
            other => Err(expected("a value", other.as_ref())),
        }
    }

    fn limit(&mut self) -> std::result::Result<Vec<Option<String>>, String> {
        if self.1 != Some(Token::Mark('(')) {
            return Ok(vec![self.value()?]);
        }
        self.next();
        let mut values = vec![self.value()?];
        loop {
            match self.next() {
                Some(Token::Mark(',')) => values.push(self.value()?),
                Some(Token::Mark(')')) => return Ok(values),
                other => return Err(expected("a comma or a closing parenthesis", other.as_ref())),
            }
        }
    }

    fn partition(&mut self) -> std::result::Result<PartitionText, String> {
        let mut partition = PartitionText::default();
        if matches!(self.1, Some(Token::Word(_) | Token::Quoted(_))) && self.0.as_slice().first() == Some(&Token::Mark('=')) {
            partition.name = self.value()?;
            self.next();
        }
        partition.limit = self.limit()?;
        Ok(partition)
    }
}

fn expected(what: &str, found: Option<&Token>) -> String {
    match found {
        Some(Token::Word(text) | Token::Quoted(text)) => format!("{what} was expected where \"{text}\" stands"),
        Some(Token::Mark(mark)) => format!("{what} was expected where \"{mark}\" stands"),
        None => format!("{what} was expected at the end"),
    }
}

fn parser(text: &str) -> std::result::Result<Parser, String> {
    let mut tokens = tokens(text)?.into_iter();
    let first = tokens.next();
    Ok(Parser(tokens, first))
}

/// One partition: `2024-01-01`, `(2024, 7)`, `name = MAXVALUE`.
impl FromStr for PartitionText {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<PartitionText, String> {
        let mut parser = parser(text)?;
        let partition = parser.partition()?;
        parser.next().map_or(Ok(partition), |more| Err(expected("the end", Some(&more))))
    }
}

impl FromStr for Division {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Division, String> {
        let Some((columns, limits)) = text.split_once(':') else {
            return Err("columns, a colon and limits were expected: 'day: 2024-01-01, 2024-07-01, MAXVALUE'".into());
        };
        let columns: Vec<String> = columns.split(',').map(|name| name.trim().to_owned()).collect();
        if columns.iter().any(String::is_empty) {
            return Err("the name of a column is missing before the colon".into());
        }
        let mut parser = parser(limits)?;
        let mut partitions = vec![parser.partition()?];
        loop {
            match parser.next() {
                Some(Token::Mark(',')) => partitions.push(parser.partition()?),
                None => return Ok(Division { columns, partitions }),
                other => return Err(expected("a comma", other.as_ref())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(text: &str) -> Vec<Vec<Option<String>>> {
        text.parse::<Division>().unwrap().partitions.into_iter().map(|partition| partition.limit).collect()
    }

    #[test]
    fn divisions_are_understood() {
        let value = |text: &str| Some(text.to_owned());
        let division: Division = "day: 2024-01-01, last = MAXVALUE".parse().unwrap();
        assert_eq!(division.columns, ["day"]);
        assert_eq!(division.partitions[0], PartitionText { limit: vec![value("2024-01-01")], ..PartitionText::default() });
        assert_eq!(division.partitions[1], PartitionText { name: value("last"), limit: vec![None], ..PartitionText::default() });
        assert_eq!(limits("a,b:(1, 2) , (3,maxvalue)"), [vec![value("1"), value("2")], vec![value("3"), None]]);
        assert_eq!(
            limits("t: 'a, (b) = ''c''', 12:30:00, two words"),
            [vec![value("a, (b) = 'c'")], vec![value("12:30:00")], vec![value("two words")]]
        );
        assert_eq!(limits("t: 'MAXVALUE'"), [vec![value("MAXVALUE")]], "a text in quotes is one");
        let named: PartitionText = "p = (1, 2)".parse().unwrap();
        assert_eq!((named.name, named.limit.len()), (value("p"), 2));
    }

    #[test]
    fn what_cannot_be_understood_says_where() {
        for (text, says) in [
            ("day", "a colon and limits were expected"),
            (": 1", "name of a column is missing"),
            ("a,: 1", "name of a column is missing"),
            ("a:", "a value was expected at the end"),
            ("a: 1,", "a value was expected at the end"),
            ("a: (1, 2", "closing parenthesis was expected at the end"),
            ("a: (1 2)) 3", "a comma was expected where \")\" stands"),
            ("a: 'x", "lacks its closing quote"),
            ("a: = 3", "a value was expected where \"=\" stands"),
            ("a: p = ", "a value was expected at the end"),
        ] {
            let error = text.parse::<Division>().unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
        assert!("1, 2".parse::<PartitionText>().unwrap_err().contains("the end was expected"));
    }
}

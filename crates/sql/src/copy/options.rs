//! Options of COPY: what they may be, and which go together, with the SQLSTATE that PostgreSQL has for each.
//!
//! Invariant: an option that is taken does what it says. What only PostgreSQL does is refused.

use super::columnar::ColumnFormat;
use super::statement::{CopyEnd, Direction};
use crate::parse::At;
use crate::{SqlError, SqlResult};
use sqlparser::ast::Ident;
use sqlparser::tokenizer::Span;

/// What rows are copied to, or from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CopyFormat {
    Text(TextFormat),
    /// A file of columns.
    Columns(ColumnFormat),
}

/// How the text is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextFormat {
    pub(crate) is_csv: bool,
    pub(crate) delimiter: u8,
    /// What stands for NULL.
    pub(crate) null: String,
    pub(crate) header: Header,
    /// Of CSV.
    pub(crate) quote: u8,
    /// What a quote, or itself, stands behind within quotes.
    pub(crate) escape: u8,
    /// Columns that are quoted whatever they have.
    pub(crate) force_quote: Columns,
    /// Columns in which what stands for NULL is a value.
    pub(crate) force_not_null: Columns,
    /// Columns in which it is NULL even in quotes.
    pub(crate) force_null: Columns,
}

/// The first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    None,
    /// Names of columns, which are not looked at.
    Names,
    /// Names of columns, which are to be those that are copied.
    Match,
}

/// Columns that an option is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    All,
    Named(Vec<Ident>),
}

impl Columns {
    pub(crate) const NONE: Columns = Columns::Named(Vec::new());

    fn is_none(&self) -> bool {
        *self == Columns::NONE
    }
}

/// An option as it is written.
#[derive(Debug)]
pub(crate) struct Setting {
    name: String,
    given: Given,
    span: Span,
}

#[derive(Debug)]
pub(crate) enum Given {
    Nothing,
    Text(String),
    Names(Vec<Ident>),
    /// `*`
    All,
}

impl Setting {
    pub(crate) fn new(name: impl Into<String>, given: Given, span: Span) -> Setting {
        Setting { name: name.into(), given, span }
    }

    fn text(self) -> SqlResult<String> {
        match self.given {
            Given::Text(text) => Ok(text),
            Given::All => Ok("*".into()),
            _ => Err(SqlError::syntax(format!("{} requires a parameter", self.name)).at_span(self.span)),
        }
    }

    fn truth(&self) -> Option<bool> {
        match &self.given {
            Given::Nothing => Some(true),
            Given::Text(text) => match text.to_ascii_lowercase().as_str() {
                "true" | "on" | "1" => Some(true),
                "false" | "off" | "0" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    fn columns(self) -> SqlResult<Columns> {
        match self.given {
            Given::All => Ok(Columns::All),
            Given::Names(names) => Ok(Columns::Named(names)),
            _ => {
                let message = format!("argument to option \"{}\" must be a list of column names", self.name);
                Err(SqlError::new("22023", message).at_span(self.span))
            }
        }
    }

    fn header(&self, direction: Direction) -> SqlResult<Header> {
        if let Given::Text(text) = &self.given
            && text.eq_ignore_ascii_case("match")
        {
            return match direction {
                Direction::From => Ok(Header::Match),
                Direction::To => Err(SqlError::new("0A000", "cannot use \"match\" with HEADER in COPY TO").at_span(self.span)),
            };
        }
        match self.truth() {
            Some(true) => Ok(Header::Names),
            Some(false) => Ok(Header::None),
            None => Err(SqlError::syntax("header requires a Boolean value or \"match\"").at_span(self.span)),
        }
    }
}

/// Options that were given.
#[derive(Default)]
struct All {
    format: Option<String>,
    delimiter: Option<String>,
    null: Option<String>,
    header: Option<Header>,
    quote: Option<String>,
    escape: Option<String>,
    force_quote: Option<Columns>,
    force_not_null: Option<Columns>,
    force_null: Option<Columns>,
}

impl All {
    fn put(&mut self, setting: Setting, direction: Direction) -> SqlResult<()> {
        match setting.name.as_str() {
            "format" => {
                let span = setting.span;
                let format = setting.text()?;
                match format.as_str() {
                    "text" | "csv" | "parquet" | "arrow" => {}
                    "binary" => return Err(SqlError::unsupported("COPY in binary format").at_span(span)),
                    "json" => {
                        let error = SqlError::unsupported(format!("COPY format \"{format}\""));
                        return Err(error.with_hint("\"pagefold load\" and \"pagefold export\" read and write such files.").at_span(span));
                    }
                    _ => return Err(SqlError::new("22023", format!("COPY format \"{format}\" not recognized")).at_span(span)),
                }
                self.format = Some(format);
            }
            "delimiter" => self.delimiter = Some(setting.text()?),
            "null" => self.null = Some(setting.text()?),
            "header" => self.header = Some(setting.header(direction)?),
            "quote" => self.quote = Some(setting.text()?),
            "escape" => self.escape = Some(setting.text()?),
            "force_quote" => self.force_quote = Some(setting.columns()?),
            "force_not_null" => self.force_not_null = Some(setting.columns()?),
            "force_null" => self.force_null = Some(setting.columns()?),
            "encoding" => {
                let span = setting.span;
                let encoding = setting.text()?;
                if !["utf8", "utf-8", "unicode"].contains(&encoding.to_ascii_lowercase().as_str()) {
                    return Err(SqlError::unsupported(format!("COPY in encoding \"{encoding}\"")).at_span(span));
                }
            }
            "program" => return Err(SqlError::unsupported("COPY with PROGRAM").at_span(setting.span)),
            // That an error ends the statement is what is done.
            "on_error" if matches!(&setting.given, Given::Text(text) if text == "stop") && direction == Direction::From => {}
            "freeze" | "on_error" | "log_verbosity" | "default" | "reject_limit" => {
                return Err(SqlError::unsupported(format!("COPY with {}", setting.name.to_uppercase())).at_span(setting.span));
            }
            name => return Err(SqlError::syntax(format!("option \"{name}\" not recognized")).at_span(setting.span)),
        }
        Ok(())
    }
}

/// The format that these options say, or the name of the file.
pub(super) fn check(settings: Vec<Setting>, direction: Direction, end: &CopyEnd) -> SqlResult<CopyFormat> {
    let mut known: Vec<String> = Vec::with_capacity(settings.len());
    let other = settings.iter().find(|setting| setting.name != "format").map(|setting| (setting.name.to_uppercase(), setting.span));
    let mut all = All::default();
    for setting in settings {
        if known.contains(&setting.name) {
            return Err(SqlError::syntax("conflicting or redundant options").at_span(setting.span));
        }
        known.push(setting.name.clone());
        all.put(setting, direction)?;
    }
    let columns = match (all.format.as_deref(), end) {
        (Some(format), _) => ColumnFormat::of_name(format),
        (None, CopyEnd::File(name)) => ColumnFormat::of_file(name),
        (None, CopyEnd::Client) => None,
    };
    if let Some(format) = columns {
        let name = format.name();
        return match (other, end) {
            (Some((other, span)), _) => {
                Err(SqlError::new("0A000", format!("COPY {other} cannot be used with format \"{name}\"")).at_span(span))
            }
            (None, CopyEnd::Client) => Err(no_file(format)),
            (None, CopyEnd::File(_)) => Ok(CopyFormat::Columns(format)),
        };
    }
    let is_csv = all.format.as_deref() == Some("csv");
    let needs_csv = |name: &str, is_given: bool| match is_given && !is_csv {
        true => Err(SqlError::new("0A000", format!("COPY {name} requires CSV mode"))),
        false => Ok(()),
    };
    let delimiter = one_byte("delimiter", all.delimiter, if is_csv { b',' } else { b'\t' })?;
    let null = all.null.unwrap_or_else(|| if is_csv { String::new() } else { "\\N".to_owned() });
    if matches!(delimiter, b'\n' | b'\r') {
        return Err(invalid("COPY delimiter cannot be newline or carriage return"));
    }
    if null.contains(['\n', '\r']) {
        return Err(invalid("COPY null representation cannot use newline or carriage return"));
    }
    if null == "\\." {
        return Err(invalid("COPY null representation cannot be the end-of-copy marker"));
    }
    // In text each of these means something behind a backslash.
    if !is_csv && matches!(delimiter, b'\\' | b'.' | b'a'..=b'z' | b'0'..=b'9') {
        return Err(invalid(format!("COPY delimiter cannot be \"{}\"", char::from(delimiter))));
    }
    needs_csv("QUOTE", all.quote.is_some())?;
    let quote = one_byte("quote", all.quote, b'"')?;
    if is_csv && delimiter == quote {
        return Err(invalid("COPY delimiter and quote must be different"));
    }
    needs_csv("ESCAPE", all.escape.is_some())?;
    let escape = one_byte("escape", all.escape, quote)?;
    if [quote, escape].iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        return Err(invalid("COPY quote and escape cannot be newline or carriage return"));
    }
    let forced = |columns: Option<Columns>, name: &str, of: Direction| {
        let columns = columns.unwrap_or(Columns::NONE);
        needs_csv(name, !columns.is_none())?;
        match !columns.is_none() && of != direction {
            true => Err(invalid(format!("COPY {name} cannot be used with {}", direction.name()))),
            false => Ok(columns),
        }
    };
    let force_quote = forced(all.force_quote, "FORCE_QUOTE", Direction::To)?;
    let force_not_null = forced(all.force_not_null, "FORCE_NOT_NULL", Direction::From)?;
    let force_null = forced(all.force_null, "FORCE_NULL", Direction::From)?;
    if null.as_bytes().contains(&delimiter) {
        return Err(invalid("COPY delimiter character must not appear in the NULL specification"));
    }
    if is_csv && null.as_bytes().contains(&quote) {
        return Err(invalid("CSV quote character must not appear in the NULL specification"));
    }
    let header = all.header.unwrap_or(Header::None);
    let text = TextFormat { is_csv, delimiter, null, header, quote, escape, force_quote, force_not_null, force_null };
    Ok(CopyFormat::Text(text))
}

/// Columns are neither read from a stream nor written to one.
pub(crate) fn no_file(format: ColumnFormat) -> SqlError {
    let error = SqlError::new("0A000", format!("COPY in format \"{}\" is to or from a file", format.name()));
    error.with_hint("Name the file in quotes instead of STDIN or STDOUT.")
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new("22023", message)
}

/// An option that is a character of one byte.
fn one_byte(name: &str, given: Option<String>, default: u8) -> SqlResult<u8> {
    match given.as_deref().map(str::as_bytes) {
        None => Ok(default),
        Some([byte]) => Ok(*byte),
        Some(_) => Err(SqlError::new("0A000", format!("COPY {name} must be a single one-byte character"))),
    }
}

//! How a text file is written: what the user says, and what follows from the file's name.

use crate::InterchangeError;
use pagefold_types::Schema;
use std::path::Path;

/// Is the first line names?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// Yes when its fields are different and not empty, and one of them does not fit the type that all the other rows of its column have. When in doubt it is a
    /// row: so nothing is lost. Never in a `.tbl` file.
    #[default]
    Auto,
    /// Yes
    Yes,
    /// No
    No,
}

/// How to read a text file, and how to write one.
#[derive(Clone, Debug, Default)]
pub struct CsvOptions {
    /// Is the first line names? When writing: `Auto` is yes, but not in a `.tbl` file.
    pub header: Header,
    /// Between fields, one ASCII character. By default `|` in `.tbl` files, a tab in `.tsv` files, else a comma.
    pub delimiter: Option<u8>,
    /// Around fields, or `Some(None)` for none. By default `"`, none in `.tbl` files.
    pub quote: Option<Option<u8>>,
    /// Before a character in quotes that is to be taken as it is. By default none: a quote within quotes is written twice.
    pub escape: Option<u8>,
    /// What NULL is. By default nothing.
    pub null: Option<String>,
    /// The columns, where they are known; else names come from the header (or are `column1`, ...) and types from all values of the file.
    pub schema: Option<Schema>,
}

/// The dialect of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dialect {
    pub(super) delimiter: u8,
    pub(super) quote: Option<u8>,
    pub(super) escape: Option<u8>,
    pub(super) null: Vec<u8>,
    /// A delimiter behind the last field too.
    pub(super) trailing: bool,
    /// A `.tbl` file.
    pub(super) is_tbl: bool,
}

impl Dialect {
    /// Of a file of this name. Whether a delimiter ends each line of a `.tbl` file is decided by the first one.
    pub(super) fn new(options: &CsvOptions, path: Option<&Path>) -> Result<Dialect, InterchangeError> {
        let extension = path.and_then(Path::extension).map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
        let is_tbl = extension == "tbl";
        let delimiter = options.delimiter.unwrap_or(match extension.as_str() {
            "tbl" => b'|',
            "tsv" | "tab" => b'\t',
            _ => b',',
        });
        let quote = options.quote.unwrap_or(if is_tbl { None } else { Some(b'"') });
        let null = options.null.clone().unwrap_or_default().into_bytes();
        let mut special = vec![("delimiter", delimiter)];
        special.extend(quote.map(|c| ("quote", c)));
        special.extend(options.escape.map(|c| ("escape", c)));
        for (i, (name, byte)) in special.iter().enumerate() {
            if !byte.is_ascii() || matches!(byte, b'\n' | b'\r') {
                return Err(InterchangeError::Mismatch(format!("the {name} has to be an ASCII character, and not a line end")));
            }
            // An escape that is the quote says what is so anyway.
            if special[..i].iter().any(|(other, b)| b == byte && (*other, *name) != ("quote", "escape")) {
                return Err(InterchangeError::Mismatch(format!("the {name} is already another special character")));
            }
        }
        if null.iter().any(|b| *b == delimiter || matches!(b, b'\n' | b'\r') || quote == Some(*b)) {
            return Err(InterchangeError::Mismatch("the null text holds a delimiter, quote or line end".to_owned()));
        }
        let escape = options.escape.filter(|e| Some(*e) != quote);
        Ok(Dialect { delimiter, quote, escape, null, trailing: false, is_tbl })
    }
}

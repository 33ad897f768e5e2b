//! How a text file is written: what the user says, and what follows from the file's name. What is left open, `sniff` finds.

use crate::InterchangeError;
use crate::text::{DateOrder, Rejects};
use pagefold_types::{DataType, Schema};
use std::path::Path;

/// Is the first line names?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// By what the first line is, compared with the others (`csv/header.rs`). Never in a `.tbl` file.
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
    /// Between fields, one ASCII character. By default what the file has; when writing `|` in `.tbl` files, a tab in `.tsv` files, else a comma.
    pub delimiter: Option<u8>,
    /// Around fields, or `Some(None)` for none. By default what the file has; when writing `"`, none in `.tbl` files.
    pub quote: Option<Option<u8>>,
    /// Before a character in quotes that is to be taken as it is. By default what the file has; when writing none: a quote within quotes is written twice.
    pub escape: Option<u8>,
    /// What NULL is. By default nothing.
    pub null: Option<String>,
    /// Lines before the first one, which are passed over.
    pub skip: u64,
    /// Whether day or month comes first in dates that do not begin with the year, where the values do not say it.
    pub date_order: Option<DateOrder>,
    /// Types of single columns by name; those of the others come from their values.
    pub types: Vec<(String, DataType)>,
    /// The columns of a table that is there: their types are kept as long as the values are of them, and widened where they are not.
    pub base: Option<Schema>,
    /// The columns, where they are known; else names come from the header (or are `column1`, ...) and types from all values of the file.
    pub schema: Option<Schema>,
    /// Where rows go that do not fit. Without it the first one ends everything.
    pub rejects: Option<Rejects>,
}

/// The dialect of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(super) delimiter: u8,
    pub(super) quote: Option<u8>,
    pub(super) escape: Option<u8>,
    pub(super) null: Vec<u8>,
    /// The last byte of a line: LF (a CR before it is no part of the line, either) or CR
    pub(super) line_end: u8,
    /// Blanks before a field are no part of it.
    pub(super) skip_blanks: bool,
    /// A delimiter behind the last field too.
    pub(super) trailing: bool,
    /// A `.tbl` file.
    pub(super) is_tbl: bool,
}

impl Dialect {
    /// Lines as a whole: of text that has no zero bytes.
    pub(crate) fn lines() -> Dialect {
        Dialect {
            delimiter: 0,
            quote: None,
            escape: None,
            null: Vec::new(),
            line_end: b'\n',
            skip_blanks: false,
            trailing: false,
            is_tbl: false,
        }
    }

    /// Of a file of this name. Whether a delimiter ends each line of a `.tbl` file is decided by the first one.
    pub(super) fn new(options: &CsvOptions, path: Option<&Path>) -> Result<Dialect, InterchangeError> {
        let extension = path.and_then(Path::extension).map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
        Dialect::of_extension(options, &extension)
    }

    /// Of a file with this extension.
    pub(super) fn of_extension(options: &CsvOptions, extension: &str) -> Result<Dialect, InterchangeError> {
        let is_tbl = extension == "tbl";
        let delimiter = options.delimiter.unwrap_or(match extension {
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
        Ok(Dialect { delimiter, quote, escape, null, line_end: b'\n', skip_blanks: false, trailing: false, is_tbl })
    }
}

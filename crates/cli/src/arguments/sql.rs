//! Arguments of `sql`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

const GUIDE: &str = "\
Without STATEMENT, statements are read from standard input: at a terminal with a line editor, else as a script, one after the other as they come. A statement ends at `;`.

Examples:
  pagefold sql shop.db
  pagefold sql shop.db \"SELECT count(*) FROM orders\" --format csv
  pagefold sql shop.db < script.sql
  pagefold sql shop.db \"SELECT * FROM orders\" --output orders.parquet

In the shell:
  .help (or \\?) lists its commands; the usual ones of sqlite3 and psql are there
  \\d, \\d TABLE, .tables, .schema    what there is
  .import FILE TABLE                 rows of a Parquet, CSV or JSON-lines file
  .mode, .output, .once              how and where results are written
  .timer on, \\x, .quit
  Ctrl-C cancels the statement that runs, Ctrl-D ends the shell; a transaction that is open then is rolled back.

Errors go to standard error as FILE:LINE: SQLSTATE message. A script ends with the first one, and exit code 1.

Not yet (each is refused with SQLSTATE 0A000, none is left out in silence): triggers, functions and procedures in SQL, arrays and JSON, indexes of expressions or of some rows, users and rights, a time zone but UTC.";

/// Runs SQL: PostgreSQL's dialect. The database is made when it is not there, as sqlite3 and duckdb do, unless it is opened with --read-only.
#[derive(Debug, Args)]
#[command(after_help = GUIDE)]
pub(crate) struct SqlArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub(crate) database: PathBuf,
    /// Statements and commands of the shell to run, each argument one or more of them, instead of standard input
    #[arg(value_name = "STATEMENT", allow_hyphen_values = false)]
    pub(crate) statements: Vec<String>,
    /// How rows are written [default: box; with --json: json; with --output: what the name of the file says]
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "json")]
    pub(crate) format: Option<RowsFormat>,
    /// Write results to this file
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) output: Option<PathBuf>,
    /// Refuse statements that change something; others may write the database meanwhile
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Go on with a script after an error; the exit code is 1 all the same
    #[arg(long)]
    pub(crate) keep_going: bool,
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowsFormat {
    /// A table of box characters; long texts are cut
    Box,
    /// RFC 4180
    Csv,
    /// One array of objects for each statement
    Json,
    /// One JSON object a line
    #[value(name = "jsonlines")]
    JsonLines,
    /// A table for Markdown
    Markdown,
    /// Values with | between them
    List,
    /// A Parquet file; needs --output, .output or .once
    Parquet,
}

impl RowsFormat {
    /// What the name of a file says.
    pub(crate) fn of(path: &std::path::Path) -> Option<RowsFormat> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => Some(RowsFormat::Csv),
            "json" => Some(RowsFormat::Json),
            "jsonl" | "ndjson" => Some(RowsFormat::JsonLines),
            "md" => Some(RowsFormat::Markdown),
            "parquet" => Some(RowsFormat::Parquet),
            _ => None,
        }
    }
}

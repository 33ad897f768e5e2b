//! Commands of the shell: those of sqlite3 begin with a point, those of psql with a backslash. Each that both have is there under both names.

use super::{Shell, words};
use crate::arguments::{Arguments, Command, RowsFormat};
use crate::failure::{Failure, Result};
use crate::session::find_files;
use crate::size::grouped;
use clap::{Parser, ValueEnum};
use pagefold::interchange::Inputs;
use pagefold::io::{FileReader, OpenOptions, OsStorage, Storage};
use pagefold::sql::TransactionState;
use pagefold::utility::{self, LoadMode};
use std::io::BufReader;
use std::path::Path;

/// Scripts that read scripts: bounds the stack.
const DEPTH_MAX: u32 = 50;

/// Names of commands, for completion.
pub(super) const NAMES: &[&str] = &[
    ".databases",
    ".exit",
    ".expanded",
    ".headers",
    ".help",
    ".import",
    ".indexes",
    ".maxwidth",
    ".mode",
    ".nullvalue",
    ".once",
    ".output",
    ".pager",
    ".print",
    ".quit",
    ".read",
    ".schema",
    ".tables",
    ".timer",
    "\\copy",
    "\\d",
    "\\di",
    "\\ds",
    "\\dt",
    "\\dv",
    "\\echo",
    "\\i",
    "\\l",
    "\\o",
    "\\pset",
    "\\q",
    "\\timing",
    "\\x",
    "\\?",
];

pub(super) const HELP: &str = "\
What there is
  .tables [PATTERN]  \\dt          tables and views; PATTERN has % or * for any characters
  \\d [NAME]                      all relations, or the columns, indexes and constraints of one
  .indexes [TABLE]   \\di          indexes
  \\dv, \\ds                       views, sequences
  .schema [PATTERN]              definitions as SQL
  .databases         \\l           this database
Rows
  .mode FORMAT                   box, csv, json, jsonlines, markdown, list, parquet
  .output [FILE]     \\o           results go to FILE; without one back to standard output
  .once FILE                     the next result goes to FILE
  .headers on|off                names of columns
  .nullvalue TEXT                what stands for NULL (\\pset null TEXT)
  .maxwidth N                    wider texts are cut in boxes; 0 for never
  .expanded on|off   \\x           one column a line
  .pager on|off                  long results are shown by $PAGER, or less (\\pset pager on|off)
Files
  .read FILE         \\i           runs a script
  .import FILE TABLE [OPTIONS]   rows of a CSV, Parquet, Arrow or JSON-lines file; TABLE is made if it is not there; OPTIONS are those of `pagefold load`
  \\copy ...                      COPY in one line; the file is in quotes
Else
  .timer on|off      \\timing      how long statements take
  .print TEXT        \\echo
  .help              \\?
  .quit              \\q           also .exit, and Ctrl-D

A statement ends at `;`. Ctrl-C cancels it.";

/// The words of a command; those in quotes as they are.
fn words(text: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c.is_whitespace() {
            continue;
        }
        let mut word = String::new();
        // Names in double quotes keep them: they say how a name is meant.
        if c == '\'' {
            loop {
                match chars.next() {
                    Some('\'') if chars.peek() == Some(&'\'') => {
                        chars.next();
                        word.push('\'');
                    }
                    Some('\'') => break,
                    Some(c) => word.push(c),
                    None => return Err(Failure::Failed("a quote is not closed".into())),
                }
            }
        } else {
            let mut is_quoted = c == '"';
            word.push(c);
            while let Some(c) = chars.next_if(|c| is_quoted || !c.is_whitespace()) {
                is_quoted ^= c == '"';
                word.push(c);
            }
            if is_quoted {
                return Err(Failure::Failed("a quote is not closed".into()));
            }
        }
        words.push(word);
    }
    Ok(words)
}

/// A word that is no name: quotes around it go.
fn plain(word: &str) -> &str {
    word.strip_prefix('"').and_then(|word| word.strip_suffix('"')).unwrap_or(word)
}

fn on_off(word: Option<&String>, now: bool) -> Result<bool> {
    match word.map(|word| word.to_lowercase()).as_deref() {
        None => Ok(!now),
        Some("on" | "yes" | "true" | "1") => Ok(true),
        Some("off" | "no" | "false" | "0") => Ok(false),
        Some(other) => Err(Failure::Failed(format!("\"{other}\" is neither on nor off"))),
    }
}

fn needed<'w>(word: Option<&'w String>, what: &str) -> Result<&'w str> {
    word.map(|word| plain(word)).ok_or_else(|| Failure::Failed(format!("{what} is missing; see .help")))
}

impl Shell<'_> {
    /// Runs a command of the shell.
    pub(super) fn shell_command(&mut self, text: &str) -> Result<()> {
        let text = text.trim().trim_end_matches(';');
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let words = words(rest)?;
        let first = words.first();
        match name {
            ".help" | "\\?" | "\\h" => self.output.text(HELP),
            ".quit" | ".exit" | "\\q" => {
                self.is_over = true;
                Ok(())
            }
            ".tables" | "\\dt" => self.list_tables(first.map(String::as_str)),
            "\\dv" => self.list_others(super::catalog::Kind::View, first.map(String::as_str)),
            "\\ds" => self.list_others(super::catalog::Kind::Sequence, first.map(String::as_str)),
            ".indexes" | "\\di" => self.list_indexes(first.map(String::as_str)),
            "\\d" | "\\d+" | ".describe" => match first {
                Some(name) => self.describe(name),
                None => self.list_relations(),
            },
            ".schema" => self.schema(first.map(String::as_str)),
            ".databases" | "\\l" => self.list_database(),
            ".mode" => self.set_format(first),
            ".output" | "\\o" => self.output.set_file(first.map(|word| plain(word))),
            ".once" => {
                self.output.once(needed(first, "the file")?);
                Ok(())
            }
            ".headers" | ".header" => self.set(|shell| &mut shell.style.headers, first),
            ".expanded" | "\\x" => {
                self.set(|shell| &mut shell.style.expanded, first)?;
                self.say(if self.style.expanded { "Expanded display is on." } else { "Expanded display is off." })
            }
            ".timer" | "\\timing" => {
                self.set(|shell| &mut shell.timer, first)?;
                self.say(if self.timer { "Timing is on." } else { "Timing is off." })
            }
            ".pager" => self.set(|shell| &mut shell.pages, first),
            ".nullvalue" => self.set_null(words.first()),
            ".maxwidth" => {
                let width = needed(first, "the width")?;
                self.style.width_max = width.parse().map_err(|_| Failure::Failed(format!("\"{width}\" is no number")))?;
                Ok(())
            }
            "\\pset" => self.set_print(&words),
            ".read" | "\\i" => self.read(needed(first, "the file")?),
            ".import" => self.import(&words),
            ".print" | "\\echo" => {
                let words: Vec<&str> = words.iter().map(|word| plain(word)).collect();
                self.output.text(&words.join(" "))
            }
            name => Err(Failure::Failed(format!("there is no command {name}; .help lists those that there are"))),
        }
    }

    /// Says what a setting is now, to who types.
    fn say(&mut self, text: &str) -> Result<()> {
        if self.is_terminal { self.output.text(text) } else { Ok(()) }
    }

    fn set(&mut self, field: impl Fn(&mut Self) -> &mut bool, word: Option<&String>) -> Result<()> {
        let field = field(self);
        *field = on_off(word, *field)?;
        Ok(())
    }

    fn set_null(&mut self, word: Option<&String>) -> Result<()> {
        self.style.null = word.map(|word| plain(word).to_owned()).unwrap_or_default();
        Ok(())
    }

    fn set_format(&mut self, word: Option<&String>) -> Result<()> {
        let known = || {
            let names = RowsFormat::value_variants().iter().filter_map(|format| Some(format.to_possible_value()?.get_name().to_owned()));
            names.collect::<Vec<_>>().join(", ")
        };
        let Some(word) = word else {
            let now = self.style.format.to_possible_value().map(|value| value.get_name().to_owned());
            return self.output.text(&format!("{} (there are: {})", now.unwrap_or_default(), known()));
        };
        self.style.format = RowsFormat::from_str(plain(word), true)
            .map_err(|_| Failure::Failed(format!("there is no format \"{word}\"; there are: {}", known())))?;
        Ok(())
    }

    fn set_print(&mut self, words: &[String]) -> Result<()> {
        let value = words.get(1);
        match words.first().map(String::as_str) {
            Some("null") => self.set_null(value),
            Some("format") => self.set_format(value),
            Some("pager") => self.set(|shell| &mut shell.pages, value),
            Some("expanded" | "x") => self.set(|shell| &mut shell.style.expanded, value),
            Some("tuples_only" | "t") => {
                self.set(|shell| &mut shell.style.headers, value)?;
                // It says the opposite.
                if value.is_some() {
                    self.style.headers = !self.style.headers;
                }
                Ok(())
            }
            other => {
                Err(Failure::Failed(format!("\\pset {}: there are null, format, pager, expanded, tuples_only", other.unwrap_or_default())))
            }
        }
    }

    fn read(&mut self, path: &str) -> Result<()> {
        if self.depth >= DEPTH_MAX {
            return Err(Failure::Failed(format!("{path}: more than {DEPTH_MAX} scripts within each other")));
        }
        let failed = |error: std::io::Error| Failure::Failed(format!("{path}: {error}"));
        let file = OsStorage.open(Path::new(path), &OpenOptions::read_only()).map_err(failed)?;
        let mut reader = BufReader::with_capacity(1 << 16, FileReader::new(file));
        self.depth += 1;
        let done = self.script(&mut reader, path, true);
        self.depth -= 1;
        done
    }

    /// Rows of a file, through LOAD. It is a transaction of its own.
    fn import(&mut self, words: &[String]) -> Result<()> {
        if self.sql.transaction_state() != TransactionState::None {
            return Err(Failure::Failed(".import is a transaction of its own: COMMIT or ROLLBACK the one that is open first".into()));
        }
        let file = needed(words.first(), "the file")?;
        // The table is written as in SQL; what comes after it are options of LOAD.
        let name = words.get(1).map(|word| words::meant(word)).ok_or_else(|| Failure::Failed("the table is missing; see .help".into()))?;
        if file == "-" {
            return Err(Failure::Failed("standard input has the script; import a file".into()));
        }
        let directory = self.directory.to_string_lossy().into_owned();
        let given =
            ["pagefold", "load", directory.as_str(), name.as_str(), file].into_iter().chain(words.iter().skip(2).map(|word| plain(word)));
        let parsed = Arguments::try_parse_from(given).map_err(|error| {
            let text = error.to_string();
            Failure::Usage(text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ").trim().to_owned())
        })?;
        let Command::Load(arguments) = parsed.command else { return Err(Failure::Usage(".import: these are no options of LOAD".into())) };
        let mut options = super::super::load::options(self.command, &arguments)?;
        let is_there = self.look(|transaction| super::catalog::table(transaction, &name))?.is_some();
        if is_there && !arguments.replace {
            options.mode = LoadMode::Append;
        }
        let inputs = Inputs::open(&OsStorage, &find_files(&arguments.files)?)?;
        self.has_defined = true;
        let loaded = utility::load_inputs(self.database.engine(), &name, &inputs, &options, &self.command.bars)?;
        self.command.bars.clear();
        let verb = if options.mode == LoadMode::Append { "added to" } else { "loaded into" };
        self.say(&format!("{} rows {verb} table {}", grouped(loaded.rows), words::quoted(&name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_quotes() {
        assert_eq!(words(" a  'b c' \"D e\" 'it''s' s.\"T u\" ").unwrap(), ["a", "b c", "\"D e\"", "it's", "s.\"T u\""]);
        assert!(words("'a").is_err() && words("\"a").is_err());
        assert_eq!(plain("\"a b\""), "a b");
    }

    #[test]
    fn each_command_is_in_the_help() {
        for name in NAMES {
            let is_there = HELP.split(|c: char| c.is_whitespace() || c == ',' || c == '(' || c == ')').any(|word| word == *name);
            assert!(is_there, "{name}");
        }
    }
}

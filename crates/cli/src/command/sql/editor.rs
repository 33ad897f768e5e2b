//! The shell at a terminal: the line editor with history, completion and colours, and the prompt.
//!
//! Invariants:
//! - the prompt says in which state the transaction is: `=>`, `=*>` within one, `=!>` after an error in it, `->` where a statement goes on;
//! - the history has whole statements: one that took several lines comes back as one, and can be edited as such;
//! - names for completion are looked up anew only when something has been defined, and never within a transaction.

use super::copy::{Lines, Rows};
use super::output::Pager;
use super::pieces::Splitter;
use super::{Shell, catalog, commands, words};
use crate::failure::{Failure, Result};
use pagefold::sql::TransactionState;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{ColorMode, CompletionType, Config, Context, Editor, Helper};
use std::borrow::Cow;
use std::io::{BufRead, Read, Write};
use std::path::PathBuf;

/// Lines of the history.
const HISTORY_MAX: usize = 10_000;
/// Columns are completed of so many tables: each is opened for that.
const TABLES_MAX: usize = 200;
const CANDIDATES_MAX: usize = 500;

/// Names that can be completed: relations, and the columns of tables.
#[derive(Default)]
struct Names {
    relations: Vec<String>,
    columns: Vec<(String, Vec<String>)>,
}

#[derive(Default)]
struct SqlHelper {
    names: Names,
    files: FilenameCompleter,
}

/// Reads and runs until Ctrl-D or `.quit`.
pub(super) fn run(shell: &mut Shell<'_>, is_new: bool) -> Result<()> {
    let colors = if std::env::var_os("NO_COLOR").is_some() { ColorMode::Disabled } else { ColorMode::Enabled };
    let config = Config::builder().max_history_size(HISTORY_MAX).map_err(|e| failed(&e))?;
    let config = config.history_ignore_space(true).completion_type(CompletionType::List).color_mode(colors).build();
    let mut editor: Editor<SqlHelper, FileHistory> = Editor::with_config(config).map_err(|e| failed(&e))?;
    editor.set_helper(Some(SqlHelper::default()));
    let history = history_path();
    if let Some(path) = &history {
        // The first time there is none.
        let _ = editor.load_history(path);
    }
    let place = shell.directory.display();
    let new = if is_new { "new database" } else { "database" };
    shell.output.text(&format!("pagefold {}, {new} {place}\nType .help for help, .quit to end.", env!("CARGO_PKG_VERSION")))?;
    let mut splitter = Splitter::new();
    let mut entry = String::new();
    while !shell.is_over {
        // Within a transaction a look could take its snapshot before its first statement does.
        if shell.sql.transaction_state() == TransactionState::None && std::mem::take(&mut shell.has_defined) {
            let names = names(shell);
            if let Some(helper) = editor.helper_mut() {
                helper.names = names;
            }
        }
        shell.output.pager =
            if shell.pages { pager(editor.dimensions().map(|(columns, rows)| (usize::from(columns), usize::from(rows)))) } else { None };
        match editor.readline(prompt(shell.sql.transaction_state(), splitter.is_within())) {
            Ok(line) => {
                let word = line.trim().trim_end_matches(';').to_lowercase();
                if !splitter.is_within() && matches!(word.as_str(), "quit" | "exit") {
                    break;
                }
                entry.push_str(&line);
                let mut typed = Typed { editor: &mut editor, line: Vec::new(), at: 0, is_over: false };
                for byte in line.bytes().chain([b'\n']) {
                    let piece = splitter.push(byte);
                    let mut rows = Lines::new(&mut typed);
                    shell.cut(piece, "terminal", Rows::Here(&mut rows)).or_else(end_only_when_closed)?;
                    if shell.is_over {
                        break;
                    }
                }
                if splitter.is_within() {
                    entry.push('\n');
                } else {
                    // A history that cannot be kept is no reason to stop.
                    let _ = editor.add_history_entry(std::mem::take(&mut entry).trim_end());
                }
            }
            Err(ReadlineError::Interrupted) => {
                splitter.clear();
                entry.clear();
            }
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(failed(&error)),
        }
    }
    if let Some(path) = &history
        && let Err(error) = editor.save_history(path)
    {
        let _ = writeln!(std::io::stderr(), "pagefold: the history is not kept: {}: {error}", path.display());
    }
    Ok(())
}

fn failed(error: &ReadlineError) -> Failure {
    Failure::Failed(format!("the terminal: {error}"))
}

/// Rows of COPY that are typed, up to `\.` or Ctrl-D.
struct Typed<'e> {
    editor: &'e mut Editor<SqlHelper, FileHistory>,
    line: Vec<u8>,
    at: usize,
    is_over: bool,
}

impl Read for Typed<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let read = self.fill_buf()?.read(bytes)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Typed<'_> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        if self.at >= self.line.len() && !self.is_over {
            self.at = 0;
            self.line.clear();
            match self.editor.readline(">> ") {
                Ok(line) => {
                    self.line.extend_from_slice(line.as_bytes());
                    self.line.push(b'\n');
                }
                Err(error) => {
                    self.is_over = true;
                    if !matches!(error, ReadlineError::Eof) {
                        return Err(std::io::Error::other(error));
                    }
                }
            }
        }
        Ok(&self.line[self.at..])
    }

    fn consume(&mut self, amount: usize) {
        self.at += amount;
    }
}

/// What fails at the terminal was told there.
fn end_only_when_closed(failure: Failure) -> Result<()> {
    if matches!(failure, Failure::OutputClosed) { Err(failure) } else { Ok(()) }
}

/// `$PAGEFOLD_HISTORY`, or a file in the user's home; none where there is no home.
fn history_path() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("PAGEFOLD_HISTORY") {
        return Some(PathBuf::from(path)).filter(|path| !path.as_os_str().is_empty());
    }
    let home = PathBuf::from(std::env::var_os("HOME")?);
    home.is_dir().then(|| home.join(".pagefold_history"))
}

fn prompt(state: TransactionState, is_within: bool) -> &'static str {
    match (is_within, state) {
        (true, _) => "pagefold-> ",
        (false, TransactionState::None) => "pagefold=> ",
        (false, TransactionState::Open) => "pagefold=*> ",
        (false, TransactionState::Failed) => "pagefold=!> ",
    }
}

/// `$PAGER`, or less where it is there.
fn pager(terminal: Option<(usize, usize)>) -> Option<Pager> {
    let (columns, rows) = terminal.filter(|(columns, rows)| *columns > 0 && *rows > 0)?;
    let command = match std::env::var("PAGER") {
        Ok(command) if !command.trim().is_empty() => command,
        // Set to nothing: none is wanted.
        Ok(_) => return None,
        Err(_) => {
            let path = std::env::var_os("PATH")?;
            std::env::split_paths(&path).find(|directory| directory.join("less").is_file()).map(|_| "less -SRFX".to_owned())?
        }
    };
    Some(Pager { command, rows, columns })
}

fn names(shell: &mut Shell<'_>) -> Names {
    let looked = shell.look(|transaction| {
        let relations: Vec<String> = catalog::relations(transaction)?.into_iter().map(|(name, _)| name).collect();
        let mut columns = Vec::new();
        for name in relations.iter().take(TABLES_MAX) {
            if let Some(found) = catalog::table(transaction, name)? {
                columns.push((name.clone(), found.columns().into_iter().map(|column| column.name).collect()));
            }
        }
        let mut relations = relations;
        // Those of the standard are found by whoever looks for them.
        for (name, own) in pagefold::sql::system_relations().filter(|(name, _)| !name.contains('.')) {
            relations.push(name.to_owned());
            columns.push((name.to_owned(), own.iter().map(|(column, _)| (*column).to_owned()).collect()));
        }
        Ok(Names { relations, columns })
    });
    // In a transaction that has failed, or with a damaged table, nothing is completed but words.
    looked.unwrap_or_default()
}

impl Names {
    /// What a word may become. Where it has a point, columns of what is before it, if that is a table, else of all.
    fn candidates(&self, word: &str) -> Vec<String> {
        let columns = |of: Option<&str>| {
            let known = of.is_some_and(|of| self.columns.iter().any(|(table, _)| table == of));
            let wanted = self.columns.iter().filter(move |(table, _)| !known || of == Some(table.as_str()));
            wanted.flat_map(|(_, columns)| columns).map(|name| words::quoted(name)).collect::<Vec<String>>()
        };
        let mut found: Vec<String> = match word.rsplit_once('.') {
            Some((table, _)) => columns(Some(&words::meant(table))).into_iter().map(|column| format!("{table}.{column}")).collect(),
            None => {
                let is_upper = word.chars().any(|c| c.is_ascii_uppercase());
                let key_words = words::KEY_WORDS.iter().map(|word| if is_upper { (*word).to_owned() } else { word.to_lowercase() });
                let relations = self.relations.iter().map(|name| words::quoted(name));
                key_words.chain(relations).chain(columns(None)).chain(words::FUNCTIONS.iter().map(|name| format!("{name}("))).collect()
            }
        };
        let plain = |text: &str| text.replace('"', "").to_lowercase();
        let wanted = plain(word);
        found.retain(|name| plain(name).starts_with(&wanted));
        found.sort_unstable();
        found.dedup();
        found.truncate(CANDIDATES_MAX);
        found
    }
}

/// Where the word begins that ends at `at`.
fn word_start(line: &str, at: usize) -> usize {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '"' | '.');
    line[..at].char_indices().rev().take_while(|(_, c)| is_part(*c)).last().map_or(at, |(start, _)| start)
}

impl Completer for SqlHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, context: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let pairs = |names: Vec<String>| names.into_iter().map(|name| Pair { display: name.clone(), replacement: name }).collect();
        let before = &line[..at];
        if let Some(command) = before.strip_prefix(['.', '\\']) {
            let Some((name, rest)) = command.split_once(' ') else {
                let known = commands::NAMES.iter().filter(|name| name.starts_with(before)).map(|name| (*name).to_owned()).collect();
                return Ok((0, pairs(known)));
            };
            if matches!(name, "read" | "i" | "import" | "output" | "once" | "o") && !rest.contains(' ') {
                return self.files.complete(line, at, context);
            }
            let start = word_start(line, at);
            let mut relations: Vec<String> = self.names.relations.iter().map(|name| words::quoted(name)).collect();
            relations.retain(|name| name.starts_with(&line[start..at]));
            return Ok((start, pairs(relations)));
        }
        let start = word_start(line, at);
        if start == at {
            return Ok((at, Vec::new()));
        }
        Ok((start, pairs(self.names.candidates(&line[start..at]))))
    }
}

/// Key words bold, texts green, comments dim. The text is the same.
fn highlighted(line: &str) -> String {
    let mut out = String::with_capacity(line.len() + 32);
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let closed = |end: Option<usize>, length: usize| end.map_or(rest.len(), |end| end + length);
        let (length, style) = if rest.starts_with("--") {
            (rest.find('\n').unwrap_or(rest.len()), "\u{1b}[2m")
        } else if let Some(inside) = rest.strip_prefix("/*") {
            (closed(inside.find("*/").map(|end| end + 2), 2), "\u{1b}[2m")
        } else if c == '\'' {
            (closed(rest[1..].find('\'').map(|end| end + 1), 1), "\u{1b}[32m")
        } else if c == '"' {
            (closed(rest[1..].find('"').map(|end| end + 1), 1), "")
        } else if c.is_alphabetic() || c == '_' {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            (length, if words::is_key_word(&rest[..length]) { "\u{1b}[1m" } else { "" })
        } else {
            (c.len_utf8(), "")
        };
        let (token, behind) = rest.split_at(length);
        out.push_str(style);
        out.push_str(token);
        if !style.is_empty() {
            out.push_str("\u{1b}[0m");
        }
        rest = behind;
    }
    out
}

impl Highlighter for SqlHelper {
    fn highlight<'l>(&self, line: &'l str, _at: usize) -> Cow<'l, str> {
        if line.starts_with(['.', '\\']) { Cow::Borrowed(line) } else { Cow::Owned(highlighted(line)) }
    }

    fn highlight_char(&self, _line: &str, _at: usize, kind: CmdKind) -> bool {
        kind != CmdKind::MoveCursor
    }
}

impl Hinter for SqlHelper {
    type Hint = String;
}

impl Validator for SqlHelper {}

impl Helper for SqlHelper {}

#[cfg(test)]
mod tests {
    use super::*;

    fn helper() -> Names {
        let columns = vec![("ship".into(), vec!["name".into(), "built".into()]), ("port".into(), vec!["nation".into(), "Order".into()])];
        Names { relations: vec!["port".into(), "ship".into()], columns }
    }

    #[test]
    fn words_names_and_columns_are_completed() {
        let names = helper();
        assert_eq!(names.candidates("sel"), ["select"]);
        assert_eq!(names.candidates("SEL"), ["SELECT"]);
        assert_eq!(names.candidates("shi"), ["ship"]);
        assert_eq!(names.candidates("na"), ["name", "nation", "natural"]);
        assert_eq!(names.candidates("ship."), ["ship.built", "ship.name"]);
        assert_eq!(names.candidates("s.na"), ["s.name", "s.nation"], "an alias may be of any table");
        assert_eq!(names.candidates("port.o"), ["port.\"Order\""]);
        assert_eq!(names.candidates("zzz"), [""; 0]);
    }

    #[test]
    fn the_word_at_the_cursor() {
        assert_eq!(word_start("select na", 9), 7);
        assert_eq!(word_start("select s.na", 11), 7);
        assert_eq!(word_start("select öl", 10), 7);
        assert_eq!(word_start("select ", 7), 7);
    }

    #[test]
    fn colours_change_no_text() {
        for line in ["select 'it''s', \"From\" from ship -- from\n where /* x */ 1", "'open", "/* open", "\"open", "é'ü'--", "/*/", "--"]
        {
            let mut plain = highlighted(line);
            for code in ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[32m"] {
                plain = plain.replace(code, "");
            }
            assert_eq!(plain, line);
        }
        assert!(highlighted("select a").starts_with("\u{1b}[1mselect\u{1b}[0m a"));
    }

    #[test]
    fn the_prompt_shows_the_transaction() {
        assert_eq!(prompt(TransactionState::None, false), "pagefold=> ");
        assert_eq!(prompt(TransactionState::Open, false), "pagefold=*> ");
        assert_eq!(prompt(TransactionState::Failed, false), "pagefold=!> ");
        assert_eq!(prompt(TransactionState::Failed, true), "pagefold-> ");
    }
}

//! `pagefold sql`: a shell, scripts, statements as arguments.
//!
//! Invariants:
//! - what is read, and what is written, is never kept as a whole: scripts are cut into statements as they come, rows go out as they are computed;
//! - a statement that fails ends a script, unless it is to go on; at the terminal it does not end the shell;
//! - Ctrl-C cancels the statement that runs. Of a script nothing runs after that.

mod catalog;
mod commands;
mod copy;
mod describe;
mod editor;
mod format;
mod input;
mod output;
mod partition_definitions;
mod pieces;
mod report;
mod words;

use crate::arguments::{RowsFormat, SqlArguments};
use crate::failure::{Failure, Result};
use crate::progress::{self, Bars};
use crate::session::Session;
use copy::{Lines, Rows};
use format::{OutputColumn, Style};
use input::Input;
use output::Output;
use pagefold::engine::{OpenMode, Transaction};
use pagefold::io::{Clock, OsClock, OsStorage, Storage};
use pagefold::sql::{Canceller, Session as SqlSession, SqlError, TransactionState};
use pagefold::utility::{Progress, Unit};
use pagefold::{DataType, Database, Value};
use pieces::{Piece, PieceKind, Splitter};
use serde_json::json;
use std::io::{BufRead, ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) fn run(command: &Session, arguments: &SqlArguments) -> Result<()> {
    let is_new = !OsStorage.exists(&arguments.database.join("control"))?;
    let mode = if arguments.read_only { OpenMode::Read } else { OpenMode::Create };
    let database = command.open(&arguments.database, mode)?;
    let is_terminal = arguments.statements.is_empty() && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let mut shell = Shell::new(command, arguments, command.speaking(database), is_terminal)?;
    let done = if is_terminal {
        editor::run(&mut shell, is_new)
    } else if arguments.statements.is_empty() {
        shell.script(&mut std::io::stdin().lock(), "stdin", true)
    } else {
        shell.arguments(&arguments.statements)
    };
    done.and(shell.end())
}

/// What the shell runs just now, for who receives signals.
struct Running {
    canceller: Canceller,
    /// A statement or a command runs.
    is_busy: AtomicBool,
    /// The shell is to end, too.
    is_ending: AtomicBool,
}

impl Running {
    /// What a signal does; it may end the process, which a database survives.
    fn signal(&self, signal: i32, is_first: bool, is_terminal: bool) -> bool {
        self.canceller.cancel();
        let is_busy = self.is_busy.load(Ordering::Relaxed);
        if is_terminal && signal == signal_hook::consts::SIGINT {
            // At the prompt the line editor sees Ctrl-C as a key.
            return true;
        }
        self.is_ending.store(true, Ordering::Relaxed);
        if is_busy && is_first {
            return true;
        }
        if is_terminal {
            // The line editor may have it in another mode, and nobody is there to put that right.
            let _ = std::process::Command::new("stty").arg("sane").status();
        }
        let _ = writeln!(std::io::stderr(), "pagefold: interrupted; what was not committed is taken back");
        std::process::exit(1);
    }
}

/// Bars of utilities. A statement is stopped by cancelling it.
#[derive(Default)]
struct UtilityBars(Bars);

impl Progress for UtilityBars {
    fn start(&self, phase: &str, total: Option<u64>, unit: Unit) {
        self.0.start(phase, total, unit);
    }

    fn advance(&self, n: u64) {
        self.0.advance(n);
    }

    fn finish(&self) {
        self.0.finish();
    }

    fn interrupted(&self) -> bool {
        false
    }
}

/// A shell over one session.
struct Shell<'s> {
    command: &'s Session,
    database: Database,
    directory: &'s Path,
    sql: SqlSession,
    output: Output,
    style: Style,
    /// Says how long each statement took.
    timer: bool,
    /// Somebody types.
    is_terminal: bool,
    keep_going: bool,
    has_failed: bool,
    /// Scripts within each other.
    depth: u32,
    /// The shell is to end.
    is_over: bool,
    /// What there is may have changed since names were looked up.
    has_defined: bool,
    /// Long results may be shown by a pager.
    pages: bool,
    running: Arc<Running>,
    /// Standard input, once COPY has read it.
    input: Option<Input>,
    bars: Arc<UtilityBars>,
}

/// Why a statement did not come to its end.
enum Stop {
    Sql(SqlError),
    Other(Failure),
}

impl From<SqlError> for Stop {
    fn from(error: SqlError) -> Stop {
        Stop::Sql(error)
    }
}

impl<'s> Shell<'s> {
    fn new(command: &'s Session, arguments: &'s SqlArguments, database: Database, is_terminal: bool) -> Result<Shell<'s>> {
        let mut sql = database.session();
        let bars = Arc::new(UtilityBars::default());
        sql.watch_utilities(Arc::clone(&bars) as Arc<_>);
        let named = arguments.output.as_deref().and_then(RowsFormat::of);
        let format = match (arguments.format, command.global.json) {
            (Some(format), _) => format,
            (None, true) => RowsFormat::Json,
            (None, false) => named.unwrap_or(RowsFormat::Box),
        };
        let mut output = Output::new(&arguments.database, Arc::new(OsStorage));
        if let Some(path) = &arguments.output {
            let path = path.to_str().ok_or_else(|| Failure::Usage("--output: the name is not UTF-8".into()))?;
            output.set_file(Some(path))?;
        }
        let running = Arc::new(Running { canceller: sql.canceller(), is_busy: AtomicBool::new(false), is_ending: AtomicBool::new(false) });
        let told = Arc::clone(&running);
        progress::handle_interrupts(Box::new(move |signal, is_first| told.signal(signal, is_first, is_terminal)));
        Ok(Shell {
            command,
            database,
            directory: &arguments.database,
            sql,
            output,
            style: Style::new(format),
            timer: false,
            is_terminal,
            keep_going: arguments.keep_going,
            has_failed: false,
            depth: 0,
            is_over: false,
            has_defined: true,
            pages: true,
            running,
            input: None,
            bars,
        })
    }

    fn arguments(&mut self, statements: &[String]) -> Result<()> {
        for (at, statement) in statements.iter().enumerate() {
            self.script(&mut statement.as_bytes(), &format!("argument {}", at + 1), false)?;
        }
        Ok(())
    }

    /// Runs a script as it comes. Rows of COPY FROM STDIN are in it, or else in standard input.
    fn script(&mut self, reader: &mut dyn BufRead, source: &str, has_rows: bool) -> Result<()> {
        let mut splitter = Splitter::new();
        while !self.is_over {
            let mut next = Ok(None);
            let mut used = 0;
            match reader.fill_buf() {
                Ok([]) => break,
                Ok(bytes) => {
                    for byte in bytes {
                        used += 1;
                        next = splitter.push(*byte);
                        if !matches!(next, Ok(None)) {
                            break;
                        }
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::Failed(format!("{source}: {error}"))),
            }
            reader.consume(used);
            let mut lines = Lines::new(reader);
            self.cut(next, source, if has_rows { Rows::NextLine(&mut lines) } else { Rows::StandardInput })?;
            splitter.add_lines(lines.count());
        }
        if self.is_over {
            return Ok(());
        }
        let mut lines = Lines::new(reader);
        self.cut(splitter.finish(), source, if has_rows { Rows::NextLine(&mut lines) } else { Rows::StandardInput })
    }

    /// Runs the piece that a script was cut into.
    fn cut(&mut self, piece: std::result::Result<Option<Piece>, pieces::CutError>, source: &str, rows: Rows<'_, '_>) -> Result<()> {
        match piece {
            Ok(None) => Ok(()),
            Ok(Some(piece)) => self.piece(&piece, source, rows),
            // Where the next statement begins is not known.
            Err(error) => {
                self.tell(&format!("{source}:{}: {}", error.line, error.reason), None);
                Err(Failure::Reported)
            }
        }
    }

    /// Runs a statement or command.
    fn piece(&mut self, piece: &Piece, source: &str, rows: Rows<'_, '_>) -> Result<()> {
        if self.is_typed() {
            progress::forget_interrupt();
        } else if progress::interrupted() {
            return Err(Failure::Failed("interrupted; what was not committed is taken back".into()));
        }
        self.running.is_busy.store(true, Ordering::Relaxed);
        let began = OsClock.monotonic();
        let done = match piece.kind {
            PieceKind::Statement => self.statement(piece, source, rows),
            PieceKind::Command => match copy::of_command(&piece.text) {
                // Its line is read already.
                Some(text) => self.statement(&Piece { text, ..piece.clone() }, source, rows.here()),
                None => self.shell_command(&piece.text),
            },
        };
        self.command.bars.clear();
        self.bars.0.clear();
        self.running.is_busy.store(false, Ordering::Relaxed);
        if self.timer && piece.kind == PieceKind::Statement {
            let elapsed = OsClock.monotonic().saturating_sub(began);
            let _ = writeln!(std::io::stderr(), "Time: {:.3} ms", elapsed.as_secs_f64() * 1000.0);
        }
        if self.is_terminal && self.running.is_ending.load(Ordering::Relaxed) {
            self.is_over = true;
        }
        match done {
            Ok(()) => return Ok(()),
            Err(Failure::OutputClosed) => return Err(Failure::OutputClosed),
            Err(Failure::Reported) => {}
            Err(Failure::Usage(message) | Failure::Failed(message)) => {
                let told = if self.is_typed() { format!("ERROR: {message}") } else { format!("{source}:{}: {message}", piece.line) };
                self.tell(&told, None);
            }
        }
        self.has_failed = true;
        let goes_on = self.is_typed() || (self.keep_going && !progress::interrupted());
        if goes_on { Ok(()) } else { Err(Failure::Reported) }
    }

    /// Is it typed, and no file that is read?
    fn is_typed(&self) -> bool {
        self.is_terminal && self.depth == 0
    }

    /// Says what is wrong on standard error; with `--json` in a document, too.
    fn tell(&self, text: &str, error: Option<&SqlError>) {
        if self.command.global.json {
            // What is already going wrong cannot go more wrong.
            let _ = match error {
                Some(error) => self.command.print_json(&json!({
                    "error": error.message(),
                    "sqlstate": error.sqlstate(),
                    "line": error.position().map(|(line, _)| line),
                    "column": error.position().map(|(_, column)| column),
                    "detail": error.detail(),
                    "hint": error.hint(),
                    "context": error.context(),
                })),
                None => self.command.print_json(&json!({ "error": text })),
            };
        }
        let _ = writeln!(std::io::stderr(), "{text}");
    }

    fn statement(&mut self, piece: &Piece, source: &str, rows: Rows<'_, '_>) -> Result<()> {
        match self.run(&piece.text, rows) {
            Ok(()) => Ok(()),
            Err(Stop::Other(failure)) => Err(failure),
            Err(Stop::Sql(error)) => {
                self.bars.0.clear();
                let text = if self.is_typed() { report::at_terminal(piece, &error) } else { report::in_script(source, piece, &error) };
                self.tell(&text, Some(&error));
                Err(Failure::Reported)
            }
        }
    }

    fn run(&mut self, text: &str, rows: Rows<'_, '_>) -> std::result::Result<(), Stop> {
        if self.copy(text, rows)? {
            return Ok(());
        }
        let mut answer = self.sql.execute(text, &[])?;
        let columns: Vec<OutputColumn> =
            answer.columns().map(|column| OutputColumn { name: column.name.to_owned(), data_type: column.data_type }).collect();
        if columns.is_empty() {
            let counts = answer.counts_rows();
            while answer.next_row()?.is_some() {}
            let count = answer.count();
            let tag = answer.tag()?;
            for notice in self.sql.notices() {
                self.bars.0.clear();
                let _ = writeln!(std::io::stderr(), "{}", report::notice(notice));
            }
            self.has_defined |= !counts;
            return self.tell_tag(&tag, counts.then_some(count)).map_err(Stop::Other);
        }
        let mut failed = None;
        let next = || {
            answer.next_row().map_err(|error| {
                failed = Some(error);
                Failure::Reported
            })
        };
        let written = self.output.rows(&self.style, &columns, next);
        match failed {
            Some(error) => Err(error.into()),
            None => written.map_err(Stop::Other),
        }
    }

    /// Says what a statement without rows has done.
    fn tell_tag(&mut self, tag: &str, rows: Option<u64>) -> Result<()> {
        if self.command.global.json {
            return self.output.text(&json!({ "tag": tag, "rows": rows }).to_string());
        }
        if self.is_typed() && !self.output.is_file() { self.output.text(tag) } else { Ok(()) }
    }

    /// Shows a table of the shell's own.
    fn table(&mut self, names: &[&str], rows: Vec<Vec<Value>>) -> Result<()> {
        let is_number = |at: usize| rows.iter().any(|row| matches!(row.get(at), Some(Value::Int(_))));
        let data_type = |at: usize| if is_number(at) { DataType::BigInt } else { DataType::Varchar(None) };
        let column = |(at, name): (usize, &&str)| OutputColumn { name: (*name).to_owned(), data_type: data_type(at) };
        let columns: Vec<OutputColumn> = names.iter().enumerate().map(column).collect();
        let mut style = Style { expanded: false, ..self.style.clone() };
        if style.format == RowsFormat::Parquet {
            style.format = RowsFormat::Box;
        }
        let mut rows = rows.into_iter();
        self.output.rows(&style, &columns, || Ok(rows.next()))
    }

    /// Looks at what there is.
    fn look<R>(&mut self, look: impl FnOnce(&mut Transaction<'static>) -> pagefold::Result<R>) -> Result<R> {
        match self.sql.look(look) {
            Ok(looked) => Ok(looked?),
            Err(error) => Err(Failure::Failed(format!("{} {}", error.sqlstate(), error.message()))),
        }
    }

    /// The shell ends: what is left is written, and a transaction that is open is rolled back.
    fn end(&mut self) -> Result<()> {
        self.output.end()?;
        if self.sql.transaction_state() != TransactionState::None {
            let _ = writeln!(std::io::stderr(), "WARNING: the transaction that was open is rolled back");
            self.sql.execute("ROLLBACK", &[]).map(drop).map_err(|error| Failure::Failed(error.to_string()))?;
        }
        if self.has_failed && !self.is_terminal { Err(Failure::Reported) } else { Ok(()) }
    }
}

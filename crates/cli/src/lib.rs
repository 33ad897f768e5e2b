//! The `pagefold` command, for programs that add something to it.

mod arguments;
mod column_list;
mod command;
mod demo;
mod failure;
mod json_rows;
mod pattern;
mod progress;
mod session;
mod size;
mod tpch;

use arguments::{Arguments, Command};
use clap::Parser;
use clap::error::ErrorKind;
use failure::Failure;
use pagefold::sql::Analytics;
use serde_json::json;
use session::Session;
use std::process::ExitCode;
use std::sync::Arc;

/// Runs the command that the arguments of the process say. `analytics`: who runs large queries of `pagefold sql` by batches.
#[must_use]
pub fn run(analytics: Option<Arc<dyn Analytics>>) -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let is_error = !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            if is_error && std::env::args_os().any(|argument| argument == "--json") {
                use std::io::Write;
                // The first paragraph says what is wrong; the others how it is used.
                let text = error.render().to_string();
                let message = text.split("\n\n").next().unwrap_or_default().trim().trim_start_matches("error: ");
                let _ = writeln!(std::io::stdout(), "{:#}", json!({ "error": message }));
            }
            return match error.print() {
                _ if is_error => ExitCode::from(2),
                // To a closed pipe: nobody is there to tell.
                Err(reason) if reason.kind() != std::io::ErrorKind::BrokenPipe => {
                    eprintln!("pagefold: {reason}");
                    ExitCode::from(1)
                }
                _ => ExitCode::SUCCESS,
            };
        }
    };
    progress::catch_interrupts();
    pagefold::io::allow_open_files();
    // A panic while a file of others is decoded is an error of that file, and is told as one.
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !pagefold::interchange::is_decoding() {
            tell(panic);
        }
    }));
    let mut global = arguments.global;
    if let Command::Demo(demo) = &arguments.command {
        global.memory = global.memory.or(Some(demo::memory(demo.scale_factor)));
    }
    let session = Session::new(global, analytics);
    let outcome = command::run(&session, arguments.command);
    session.bars.clear();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report(&session, &failure);
            failure.exit_code()
        }
    }
}

/// One line on standard error; with `--json` the document says it too.
fn report(session: &Session, failure: &Failure) {
    let Some(message) = failure.message() else { return };
    if session.global.json {
        // What is already going wrong cannot go more wrong.
        let _ = session.print_json(&json!({ "error": message }));
    }
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "pagefold: {message}");
}

//! The `pagefold` command.

mod arguments;
mod column_list;
mod command;
mod demo;
mod failure;
mod json_rows;
mod progress;
mod session;
mod size;
mod tpch;

use arguments::{Arguments, Command};
use clap::Parser;
use clap::error::ErrorKind;
use failure::Failure;
use serde_json::json;
use session::Session;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // To a closed pipe: nobody is there to tell.
            let _ = error.print();
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
                _ => ExitCode::from(2),
            };
        }
    };
    progress::catch_interrupts();
    let mut global = arguments.global;
    if let Command::Demo(demo) = &arguments.command {
        global.memory = global.memory.or(Some(demo::memory(demo.scale_factor)));
    }
    let session = Session::new(global);
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
